# Sandwich covariances, influence, analysis of deviance and goodness of fit by R -> sandwich_r.json
#
#     Rscript tests/golden/make_sandwich.R tests/golden/glm_sets.json tests/golden/sandwich_r.json
#
# vcovHC and vcovCL of `sandwich`, coeftest of `lmtest`, hatvalues, cooks.distance, dfbetas and anova
# of `stats`. The tests of Hosmer and Lemeshow and of le Cessie and van Houwelingen are written out
# here after their papers (and after rms's residuals.lrm, type "gof"), because no package is needed.

suppressMessages({
  library(sandwich)
  library(lmtest)
})
source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "json.R"))

TIGHT <- glm.control(epsilon = 1e-15, maxit = 200)
CASES <- list(
  list(name = "gaussian-identity", family = gaussian()),
  list(name = "gaussian-identity", family = gaussian(), weighted = TRUE),
  list(name = "binomial-logit", family = binomial()),
  list(name = "binomial-logit", family = binomial(), weighted = TRUE),
  list(name = "binomial-probit", family = binomial("probit")),
  list(name = "binomial-cloglog", family = binomial("cloglog")),
  list(name = "poisson-log", family = poisson()),
  list(name = "poisson-log", family = poisson(), weighted = TRUE),
  list(name = "Gamma-log", family = Gamma("log"))
)

main <- function(source, target) {
  sets <- jsonlite::fromJSON(source)
  rows <- sets$glm
  packages <- c("sandwich", "lmtest")
  versions <- lapply(setNames(packages, packages), function(p) as.character(packageVersion(p)))
  names <- sapply(CASES, function(case) {
    paste0(case$name, if (isTRUE(case$weighted)) "-weighted" else "")
  })
  fits <- lapply(setNames(CASES, names), function(case) case_answer(rows, case))
  answer <- list(
    versions = c(list(r = as.character(getRversion())), versions),
    clusters = I(cluster_of(length(rows$weight))),
    fits = fits,
    goodness = goodness_answer(sets$classes)
  )
  writeLines(json(answer), target)
}

cluster_of <- function(n) (seq_len(n) * 7) %% 11

case_answer <- function(rows, case) {
  x <- rows$features
  data <- data.frame(y = rows$responses[[case$name]], x1 = x[, 1], x2 = x[, 2], x3 = x[, 3])
  data$w <- 1
  if (isTRUE(case$weighted)) {
    data$w <- if (case$family$family == "binomial") rows$times else rows$weight
  }
  data$g <- cluster_of(nrow(data))
  start <- NULL
  for (turn in 1:3) {
    fit <- glm(y ~ x1 + x2 + x3, family = case$family, data = data, weights = w,
               control = TIGHT, start = start)
    start <- coef(fit)
  }
  small <- glm(y ~ x1, family = case$family, data = data, weights = w, control = TIGHT)
  kinds <- c("HC0", "HC1", "HC2", "HC3")
  robust <- lapply(setNames(kinds, kinds), function(kind) unname(vcovHC(fit, type = kind)))
  tested <- coeftest(fit, vcov. = vcovHC(fit, type = "HC1"))
  changed <- anova(small, fit, test = "Chisq")
  L <- rbind(c(0, 1, 1, 0), c(0, 0, 0, 1))
  V <- vcov(fit)
  gap <- L %*% coef(fit) - c(0.1, 0)
  list(
    robust = robust,
    hc1_statistic = I(unname(tested[, 3])),
    hc1_p = I(unname(tested[, 4])),
    cluster = unname(vcovCL(fit, cluster = ~ g)),
    hat = I(unname(hatvalues(fit))),
    cook = I(unname(cooks.distance(fit))),
    dfbetas = unname(dfbetas(fit)),
    deviance_residual = I(unname(residuals(fit, "deviance"))),
    pearson_residual = I(unname(residuals(fit, "pearson"))),
    anova_deviance = changed$Deviance[2],
    anova_p = changed$`Pr(>Chi)`[2],
    wald = as.numeric(t(gap) %*% solve(L %*% V %*% t(L), gap))
  )
}

# --- goodness of fit ------------------------------------------------------------------------------

goodness_answer <- function(classes) {
  keep <- classes$codes < 2
  x <- classes$features[keep, ]
  y <- classes$codes[keep]
  fit <- glm(y ~ x, family = binomial(), control = TIGHT)
  probit <- glm(y ~ x, family = binomial("probit"), control = TIGHT)
  list(
    hosmer_lemeshow = hosmer_lemeshow(y, fitted(fit), 10),
    hosmer_lemeshow_6 = hosmer_lemeshow(y, fitted(fit), 6),
    hosmer_lemeshow_probit = hosmer_lemeshow(y, fitted(probit), 10),
    le_cessie = le_cessie(y, fitted(fit), x)
  )
}

hosmer_lemeshow <- function(y, p, g) {
  group <- cut(p, breaks = quantile(p, probs = seq(0, 1, 1 / g)), include.lowest = TRUE)
  observed <- xtabs(cbind(1 - y, y) ~ group)
  expected <- xtabs(cbind(1 - p, p) ~ group)
  statistic <- sum((observed - expected)^2 / expected)
  list(statistic = statistic, df = g - 2, p = 1 - pchisq(statistic, g - 2))
}

le_cessie <- function(y, p, x) {
  v <- p * (1 - p)
  regression <- lm.wfit(cbind(1, x), 1 - 2 * p, v)
  sd <- sqrt(sum((regression$residuals * sqrt(v))^2))
  z <- (sum((y - p)^2) - sum(v)) / sd
  list(z = z, p = 2 * (1 - pnorm(abs(z))))
}

arguments <- commandArgs(trailingOnly = TRUE)
main(arguments[1], arguments[2])
