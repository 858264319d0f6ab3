# Multinomial, penalised and bias-reduced logistic regression by R -> logistic_r.json
#
#     Rscript tests/golden/make_logistic.R tests/golden/glm_sets.json tests/golden/logistic_r.json
#
# nnet::multinom is a quasi-Newton method, good to about 1e-5. glmnet minimises the mean loss plus
# lambda (alpha |w|_1 + (1 - alpha) / 2 |w|^2) of the standardised features (sd over N) if asked to
# standardise, and gives the coefficients of the features as they came. Rows, matrices of coefficients:
# one per class, the intercept first.

suppressMessages({
  library(nnet)
  library(glmnet)
  library(brglm2)
})
source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "json.R"))

LAMBDA <- c(1, 0.1, 0.01, 0.001)
NET <- c(0.1, 0.01)

main <- function(source, target) {
  sets <- jsonlite::fromJSON(source)
  packages <- c("nnet", "glmnet", "brglm2")
  versions <- lapply(setNames(packages, packages), function(p) as.character(packageVersion(p)))
  answer <- list(
    versions = c(list(r = as.character(getRversion())), versions),
    multinom = list(
      plain = multinom_answer(sets$classes, 1),
      weight = multinom_answer(sets$classes, sets$classes$times)
    ),
    glmnet = list(
      two = glmnet_answers(sets$classes, "binomial"),
      three = glmnet_answers(sets$classes, "multinomial")
    ),
    brglm2 = list(
      two = firth_answer(two_of(sets$classes)),
      three = firth_classes_answer(sets$classes),
      separated_two = firth_answer(two_of(sets$separated)),
      separated_three = firth_classes_answer(sets$separated)
    )
  )
  writeLines(json(answer), target)
}

# The first two classes.
two_of <- function(set) {
  keep <- set$codes < 2
  list(features = set$features[keep, ], codes = set$codes[keep])
}

# --- maximum likelihood ---------------------------------------------------------------------------

multinom_answer <- function(set, times) {
  scaled <- scale(set$features)  # so that it gets as far as it can
  fit <- multinom(factor(set$codes) ~ scaled, weights = rep(times, length.out = nrow(scaled)),
                  reltol = 1e-20, abstol = 1e-20, maxit = 10000, trace = FALSE)
  slope <- t(t(coef(fit)[, -1]) / attr(scaled, "scaled:scale"))
  intercept <- coef(fit)[, 1] - slope %*% attr(scaled, "scaled:center")
  list(coef = unname(cbind(intercept, slope)), deviance = fit$deviance, aic = AIC(fit))
}

# --- penalties ------------------------------------------------------------------------------------

glmnet_answers <- function(set, family) {
  if (family == "binomial") set <- two_of(set)
  answers <- list()
  for (standardize in c(TRUE, FALSE)) {
    name <- if (standardize) "standardized" else "raw"
    answers[[paste0("ridge_", name)]] <- net_answers(set, family, 0, LAMBDA, standardize)
    answers[[paste0("half_", name)]] <- net_answers(set, family, 0.5, NET, standardize)
  }
  answers
}

net_answers <- function(set, family, alpha, lambda, standardize) {
  fit <- glmnet(set$features, factor(set$codes), family, alpha = alpha, lambda = lambda,
                standardize = standardize, thresh = 1e-22, maxit = 1e8)
  stopifnot(fit$jerr == 0)
  answers <- lapply(lambda, function(size) {
    found <- coef(fit, s = size)
    rows <- if (is.list(found)) t(sapply(found, as.numeric)) else matrix(as.numeric(found), 1)
    list(lambda = size, alpha = alpha, coef = unname(rows))
  })
  setNames(answers, paste0("lambda_", lambda))
}

# --- Jeffreys -------------------------------------------------------------------------------------

firth_answer <- function(set) {
  answer <- lapply(c(mean = "AS_mean", jeffreys = "MPL_Jeffreys"), function(type) {
    fit <- glm(set$codes ~ set$features, family = binomial(), method = "brglmFit", type = type,
               epsilon = 1e-13, maxit = 10000)
    list(coef = I(unname(coef(fit))), se = I(unname(sqrt(diag(vcov(fit))))), deviance = fit$deviance)
  })
  stopifnot(abs(answer$mean$coef - answer$jeffreys$coef) < 1e-8)  # one thing, for a canonical link
  answer
}

firth_classes_answer <- function(set) {
  fit <- brmultinom(factor(set$codes) ~ set$features, ref = 1, type = "AS_mean", epsilon = 1e-13,
                    maxit = 10000)
  list(mean = list(coef = unname(coef(fit))))
}

words <- commandArgs(trailingOnly = TRUE)
main(words[1], words[2])
