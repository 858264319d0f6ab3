# Cross-validated paths of penalties by cv.glmnet, and elastic nets of GLMs by glmnet ->
# penalty_path.json
#
#     Rscript tests/golden/make_penalty_path.R tests/golden/glm_sets.json ../shared/data \
#         tests/golden/penalty_path.json
#
# Row i (from 0) is in fold i mod 5. glmnet's deviance is twice our loss. Rows of real data (pima, wine)
# are not stored here; their features are all numeric columns but the label.

suppressMessages(library(glmnet))
source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "json.R"))

# family objects (gaussian(), Gamma()) are fitted by reweighted least squares. The family "gaussian"
# would divide the ridge by the standard deviation of the response.
glmnet.control(epsnr = 1e-15, mxitnr = 1000)

LAMBDA <- c(1, 0.3, 0.1, 0.03, 0.01, 0.003)
ALPHA <- c(0, 0.5, 1)
FOLDS <- 5

main <- function(source, folder, target) {
  sets <- jsonlite::fromJSON(source)
  classes <- sets$classes
  two <- classes$codes < 2
  pima <- read.csv(file.path(folder, "pima", "pima_tr.csv"))
  wine <- read.csv(file.path(folder, "wine", "wine.csv"))
  label <- which(names(wine) == "class")
  glm <- sets$glm
  answer <- list(
    versions = list(r = as.character(getRversion()), glmnet = as.character(packageVersion("glmnet"))),
    lambda = I(LAMBDA),
    alpha = I(ALPHA),
    paths = list(
      two = paths(classes$features[two, ], factor(classes$codes[two]), "binomial"),
      three = paths(classes$features, factor(classes$codes), "multinomial"),
      pima = paths(as.matrix(pima[, names(pima) != "type"]), factor(pima$type), "binomial"),
      wine = paths(as.matrix(wine[, -label]), factor(wine$class), "multinomial"),
      gaussian = paths(glm$features, glm$responses[["gaussian-identity"]], gaussian()),
      poisson = paths(glm$features, glm$responses[["poisson-log"]], "poisson")
    ),
    nets = list(
      gaussian = nets(glm, "gaussian-identity", gaussian()),
      binomial = nets(glm, "binomial-logit", "binomial"),
      poisson = nets(glm, "poisson-log", "poisson"),
      poisson_offset = nets(glm, "poisson-log", "poisson", offset = glm$offset),
      gamma = nets(glm, "Gamma-log", Gamma("log"))
    )
  )
  writeLines(json(answer), target)
}

paths <- function(x, y, family) {
  fold <- (seq_len(nrow(x)) - 1) %% FOLDS + 1
  answers <- lapply(ALPHA, function(alpha) {
    fit <- cv.glmnet(x, y, family = family, alpha = alpha, lambda = LAMBDA, foldid = fold,
                     type.measure = "deviance", thresh = 1e-20, maxit = 1e8)
    list(cvm = I(as.numeric(fit$cvm)), cvsd = I(as.numeric(fit$cvsd)),
         lambda_min = fit$lambda.min, lambda_1se = fit$lambda.1se)
  })
  setNames(answers, paste0("alpha_", ALPHA))
}

nets <- function(glm, response, family, offset = NULL) {
  answers <- lapply(c(0.5, 1), function(alpha) {
    fit <- glmnet(glm$features, glm$responses[[response]], family, alpha = alpha,
                  weights = glm$weight, offset = offset, lambda = c(0.1, 0.01), thresh = 1e-20,
                  maxit = 1e8)
    list(coef = unname(t(as.matrix(coef(fit)))))
  })
  setNames(answers, paste0("alpha_", c(0.5, 1)))
}

words <- commandArgs(trailingOnly = TRUE)
main(words[1], words[2], words[3])
