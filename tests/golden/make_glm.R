# Generalised linear models by R's glm -> glm.json
#
#     Rscript tests/golden/make_glm.R tests/golden/glm_sets.json tests/golden/glm.json
#
# glm stops when the deviance stands still, which leaves coefficients of a link that is not canonical
# with 7 digits, and standard errors of the step before. So `settled` starts it again from its own
# answer until the coefficients stand still too. MASS's profile intervals are interpolated (3 to 4
# digits); `profile` finds the same ends by root finding, and is checked against MASS.

suppressMessages(library(MASS))
source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "json.R"))

LINKS <- list(
  gaussian = c("identity", "log", "inverse"),
  binomial = c("logit", "probit", "cloglog", "cauchit", "log"),
  grouped = c("logit", "probit", "cloglog", "cauchit", "log"),
  poisson = c("log", "identity"),
  Gamma = c("inverse", "log", "identity")
)
CANONICAL <- c("gaussian-identity", "binomial-logit", "poisson-log")
TIGHT <- glm.control(epsilon = 1e-14, maxit = 100)
SHOWN <- seq(1, 50, by = 10)

main <- function(source, target) {
  rows <- jsonlite::fromJSON(source)$glm
  fits <- list()
  for (kind in names(LINKS)) for (link in LINKS[[kind]]) {
    name <- paste(kind, link, sep = "-")
    for (plan in plans_of(name)) {
      message(name, " ", plan)
      fits[[name]][[plan]] <- glm_answer(problem_of(rows, kind, link, plan))
    }
  }
  versions <- list(r = as.character(getRversion()), mass = as.character(packageVersion("MASS")))
  writeLines(json(list(versions = versions, rows = SHOWN - 1, fits = fits)), target)
}

plans_of <- function(name) {
  if (startsWith(name, "grouped")) return(c("plain", "offset"))
  c("plain", "weight", "offset", "both", if (name %in% CANONICAL) "no_intercept")
}

# Everything glm.fit takes. A grouped response is the share of successes, weighted by the trials.
problem_of <- function(rows, kind, link, plan) {
  y <- rows$responses[[paste(kind, link, sep = "-")]]
  weights <- rep(1, length(y))
  if (plan %in% c("weight", "both")) weights <- if (kind == "binomial") rows$times else rows$weight
  if (kind == "grouped") {
    y <- y / rows$trials
    weights <- rows$trials
  }
  x <- rows$features
  colnames(x) <- paste0("x", seq_len(ncol(x)))
  if (plan != "no_intercept") x <- cbind(`(Intercept)` = 1, x)
  family <- get(if (kind == "grouped") "binomial" else kind)(link = link)
  offset <- if (plan %in% c("offset", "both")) rows$offset else rep(0, length(y))
  list(x = x, y = y, weights = weights, offset = offset, family = family,
       intercept = plan != "no_intercept", has_offset = plan %in% c("offset", "both"))
}

glm_answer <- function(problem) {
  fit <- settled(problem)
  said <- summary(fit)
  table <- said$coefficients
  list(
    coef = I(unname(fit$coefficients)),
    se = I(unname(table[, 2])),
    statistic = I(unname(table[, 3])),
    p = I(unname(table[, 4])),
    statistic_name = sub(" value", "", colnames(table)[3]),
    deviance = fit$deviance,
    null_deviance = fit$null.deviance,
    df_residual = fit$df.residual,
    df_null = fit$df.null,
    dispersion = said$dispersion,
    aic = AIC(fit),
    bic = BIC(fit),
    loglik = as.numeric(logLik(fit)),
    fitted = unname(fit$fitted.values[SHOWN]),
    wald = unname(confint.default(fit)),
    profile = profile_ends(problem, fit, said$dispersion),
    drop = drop_answer(problem, fit)
  )
}

# A glm object, so that its methods work, whose numbers are those of the settled fit.
settled <- function(problem) {
  data <- list(y = problem$y, x = problem$x, w = problem$weights, o = problem$offset)
  formula <- if (problem$has_offset) y ~ x - 1 + offset(o) else y ~ x - 1
  start <- settled_fit(problem, problem$x, problem$offset)$coefficients
  fit <- glm(formula, problem$family, data, weights = w, start = start, control = TIGHT)
  stopifnot(abs(fit$coefficients - start) < 1e-11 * (1 + abs(start)))
  if (problem$intercept) {  # glm sees no intercept in x - 1, so it has another null model
    none <- settled_fit(problem, problem$x[, 1, drop = FALSE], problem$offset)
    fit$null.deviance <- none$deviance
    fit$df.null <- none$df.residual
  }
  fit
}

# Fisher scoring from wherever it stands until the coefficients move by no more than rounding. A profile
# needs only the deviance, which has twice the digits.
settled_fit <- function(problem, x, offset, start = NULL, within = 1e-12) {
  again <- function(start) {
    suppressWarnings(glm.fit(x, problem$y, problem$weights, start = start, offset = offset,
                             family = problem$family, control = TIGHT, intercept = FALSE))
  }
  if (is.null(start) && all(x[, 1] == 1)) {
    level <- weighted.mean(problem$y, problem$weights)
    start <- c(problem$family$linkfun(level) - max(offset), rep(0, ncol(x) - 1))
  }
  fit <- again(start)
  for (step in 1:300) {
    before <- fit$coefficients
    fit <- again(before)
    if (max(abs(fit$coefficients - before) / (1 + abs(before))) < 1e-14) break
  }
  stopifnot(fit$converged, max(abs(fit$coefficients - before) / (1 + abs(before))) < within)
  fit
}

# Where sqrt((deviance with the coefficient held - deviance) / dispersion) is the normal quantile.
profile_ends <- function(problem, fit, dispersion) {
  near <- suppressWarnings(suppressMessages(confint(fit, level = 0.95)))
  ends <- t(sapply(seq_along(fit$coefficients), function(j) {
    sapply(c(-1, 1), function(side) profile_end(problem, fit, dispersion, j, side))
  }))
  se <- summary(fit)$coefficients[, 2]
  stopifnot(is.na(near) | abs(ends - near) < 0.01 * se)
  unname(ends)
}

profile_end <- function(problem, fit, dispersion, j, side) {
  at <- fit$coefficients[j]
  se <- summary(fit)$coefficients[j, 2]
  trace <- vcov(fit)[-j, j] / vcov(fit)[j, j]  # how the others follow, near the optimum
  over <- function(steps) {
    value <- at + side * steps * se
    held <- settled_fit(problem, problem$x[, -j, drop = FALSE],
                        problem$offset + value * problem$x[, j],
                        start = fit$coefficients[-j] + trace * (value - at), within = 1e-7)
    sqrt(max(held$deviance - fit$deviance, 0) / dispersion) - qnorm(0.975)
  }
  high <- 1.4  # outwards in small steps: far out a link may have no valid start
  while (over(high) < 0) high <- high + 0.1
  at + side * uniroot(over, c(high - 0.1, high), tol = 1e-13)$root * se
}

# The deviance without each feature. `drop1` tests a Gaussian by N log of the deviance, and all others,
# as `anova` does, by the deviance over the dispersion of the larger fit.
drop_answer <- function(problem, fit) {
  features <- setdiff(colnames(problem$x), "(Intercept)")
  deviance <- sapply(features, function(name) {
    keep <- colnames(problem$x) != name
    settled_fit(problem, problem$x[, keep, drop = FALSE], problem$offset,
                start = fit$coefficients[keep])$deviance
  })
  dispersion <- summary(fit)$dispersion
  anova <- (deviance - fit$deviance) / dispersion
  n <- length(problem$y)
  drop1 <- if (problem$family$family == "gaussian") n * log(deviance / fit$deviance) else anova
  check_drop1(problem, drop1)
  list(
    deviance = I(unname(deviance)),
    drop1 = I(unname(drop1)),
    drop1_p = I(unname(pchisq(drop1, 1, lower.tail = FALSE))),
    anova = I(unname(anova)),
    anova_p = I(unname(pchisq(anova, 1, lower.tail = FALSE)))
  )
}

# R's own drop1 cannot be given a start, which the logarithm of a chance needs.
check_drop1 <- function(problem, found) {
  if (problem$family$family == "binomial" && problem$family$link == "log") return(invisible())
  data <- data.frame(problem$x, y = problem$y, w = problem$weights, o = problem$offset)
  formula <- if (problem$intercept) y ~ x1 + x2 + x3 + offset(o) else y ~ x1 + x2 + x3 - 1 + offset(o)
  fit <- suppressWarnings(glm(formula, problem$family, data, weights = w, control = TIGHT))
  said <- suppressWarnings(drop1(fit, test = "LRT"))
  stopifnot(abs(said[-1, 4] - found) < 1e-7 * (1 + found))
}

words <- commandArgs(trailingOnly = TRUE)
main(words[1], words[2])
