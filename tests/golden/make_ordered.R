# Cumulative link models by MASS::polr and ordinal::clm -> ordered_r.json
#
#     Rscript tests/golden/make_ordered.R tests/golden/ordered_r.json
#
# clm finds the maximum by Newton's method with the observed information, so its estimates and
# standard errors have all digits. polr uses BFGS and a numerical Hessian: three or four digits.
# `housing` is the table of MASS (Madsen 1976), with counts as weights; `drawn` is drawn here with a
# seed and rounded, so that R and Python read the same doubles.

suppressMessages({
  library(MASS)
  library(ordinal)
})
source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "json.R"))

LINKS <- c("logit", "probit", "cloglog")
TIGHT <- clm.control(gradTol = 1e-10, maxIter = 200)

main <- function(target) {
  packages <- c("MASS", "ordinal")
  versions <- lapply(setNames(packages, packages), function(p) as.character(packageVersion(p)))
  sets <- list(housing = housing_set(), drawn = drawn_set())
  answer <- list(
    versions = c(list(r = as.character(getRversion())), versions),
    sets = lapply(sets, function(set) {
      list(
        features = unname(set$features),
        level = I(set$level),
        weight = I(set$weight),
        clm = lapply(setNames(LINKS, LINKS), function(link) clm_answer(set, link)),
        polr = polr_answer(set)
      )
    })
  )
  writeLines(json(answer), target)
}

housing_set <- function() {
  features <- model.matrix(~ Infl + Type + Cont, housing)[, -1]
  list(names = colnames(features), features = features, level = as.integer(housing$Sat) - 1,
       weight = housing$Freq)
}

drawn_set <- function() {
  set.seed(20261118)
  n <- 150
  features <- cbind(round(rnorm(n), 3), round(runif(n, 100, 102), 3), rbinom(n, 1, 0.4))
  latent <- features %*% c(0.8, -0.7, 0.5) + rlogis(n)
  level <- findInterval(latent, quantile(latent, c(0.2, 0.55, 0.85)))
  list(names = c("a", "b", "c"), features = features, level = as.vector(level),
       weight = sample(1:3, n, replace = TRUE))
}

frame_of <- function(set) {
  data.frame(y = factor(set$level, ordered = TRUE), unname(as.data.frame(set$features)),
             w = set$weight) |> setNames(c("y", paste0("x", seq_along(set$names)), "w"))
}

clm_answer <- function(set, link) {
  rows <- frame_of(set)
  formula <- reformulate(paste0("x", seq_along(set$names)), "y")
  fit <- clm(formula, data = rows, weights = w, link = link, control = TIGHT)
  table <- coef(summary(fit))
  slopes <- seq_along(set$names) + length(fit$alpha)
  one <- rows[seq(1, nrow(rows), length.out = 5), names(rows) != "y"]
  list(
    coef = I(unname(fit$beta)),
    thresholds = I(unname(fit$alpha)),
    se = I(unname(table[slopes, 2])),
    threshold_se = I(unname(table[-slopes, 2])),
    z = I(unname(table[slopes, 3])),
    p = I(unname(table[slopes, 4])),
    loglik = as.numeric(logLik(fit)),
    aic = AIC(fit),
    shown = I(trunc(seq(1, nrow(rows), length.out = 5)) - 1),
    fitted = unname(predict(fit, newdata = one)$fit),
    low = unname(predict(fit, newdata = one, interval = TRUE, level = 0.9)$lwr),
    high = unname(predict(fit, newdata = one, interval = TRUE, level = 0.9)$upr),
    profile = unname(confint(fit, type = "profile"))
  )
}

polr_answer <- function(set) {
  rows <- frame_of(set)
  formula <- reformulate(paste0("x", seq_along(set$names)), "y")
  centred <- rows
  means <- colMeans(set$features)
  for (j in seq_along(means)) centred[[j + 1]] <- centred[[j + 1]] - means[j]
  fit <- polr(formula, data = centred, weights = w, Hess = TRUE,
              control = list(reltol = 1e-15, maxit = 1000))
  table <- coef(summary(fit))
  d <- seq_along(set$names)
  list(
    coef = I(unname(fit$coefficients)),
    thresholds = I(unname(fit$zeta) + sum(means * fit$coefficients)),
    se = I(unname(table[d, 2])),
    deviance = fit$deviance,
    aic = AIC(fit)
  )
}

main(commandArgs(trailingOnly = TRUE)[1])
