# Model matrices of formulas, and glm and lda fitted by formula -> formula.json
#
#     Rscript tests/golden/make_formula.R ../shared/data/glm_classics/birthwt.csv tests/golden/formula.json
#
# `table` are the rows of a small random table and `new` further rows, coded by the terms of the fit.
# `matrices` are model matrices without the column of the intercept.

suppressMessages({library(MASS); library(splines)})
source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "json.R"))

FORMULAS <- c(
  "x + z", "log(x) + sqrt(z)", "I(x^2) + x", "I(x * z) + I(x/z)", "x + a", "a * b", "x * a", "x:a",
  "a + a:x", "a/b", "0 + a + x", "x + a - 1", "0 + x + a", "(x + z + a)^2", "a * b * x",
  "factor(k) + x", "factor(k):x", "poly(x, 3)", "poly(x, 2) * a", "poly(x, 3, raw = TRUE)",
  "poly(x, 1)", "scale(x) + a", "bs(x, df = 5)", "bs(x, knots = c(2, 4), degree = 2)",
  "C(a, contr.sum) + x", "C(a, contr.helmert)", "C(o, contr.poly)", "C(a, contr.sum):b + a + b",
  "flag + x", "flag:x", "I(x > 3)", "exp(-x) + log1p(z)",
  "a:b + a + b + x:z"
)

ORDER <- c("1st", "2nd", "3rd", "4th", "5th")

main <- function(path, target) {
  set.seed(7)
  n <- 30
  columns <- function(n) data.frame(
    x = round(runif(n, 1, 6), 3), z = round(runif(n, 0.5, 3), 3),
    a = factor(sample(c("p", "q", "r"), n, TRUE), levels = c("p", "q", "r")),
    b = factor(sample(c("no", "yes"), n, TRUE), levels = c("no", "yes")),
    o = factor(sample(ORDER, n, TRUE), levels = ORDER),
    k = sample(c(10, 2, 3), n, TRUE), flag = runif(n) > 0.5
  )
  rows <- columns(n)
  new <- columns(8)
  new$x <- pmin(pmax(new$x, min(rows$x)), max(rows$x))
  matrices <- list()
  for (text in FORMULAS) {
    frame <- model.frame(as.formula(paste("~", text)), rows)
    old <- model.matrix(terms(frame), frame)
    levels_of_fit <- .getXlevels(terms(frame), frame)
    again <- model.frame(terms(frame), new, xlev = levels_of_fit)
    fresh <- model.matrix(terms(frame), again, contrasts.arg = attr(old, "contrasts"))
    used <- colnames(old) != "(Intercept)"
    matrices[[text]] <- list(
      names = I(colnames(old)[used]), rows = unname(old[, used, drop = FALSE]),
      new = unname(fresh[, used, drop = FALSE])
    )
  }
  births <- read.csv(path)
  versions <- list(r = as.character(getRversion()), mass = as.character(packageVersion("MASS")))
  result <- list(
    versions = versions, table = as_list(rows), new = as_list(new), matrices = matrices,
    glm = lapply(GLMS, glm_answer, births = births), lda = lda_answer(births)
  )
  writeLines(json(result), target)
}

as_list <- function(rows) lapply(rows, function(column) {
  if (is.factor(column)) as.character(column) else I(as.numeric(column))
})

GLMS <- list(
  main = "low ~ age + lwt + factor(race) + smoke + ptl + ht + ui + ftv",
  terms = "low ~ poly(age, 2) + log(lwt) * smoke + C(factor(race), contr.sum)",
  no_intercept = "low ~ 0 + factor(race) + log(lwt) + smoke"
)

glm_answer <- function(text, births) {
  fit <- glm(as.formula(text), binomial, births, control = glm.control(epsilon = 1e-14, maxit = 100))
  table <- coef(summary(fit))
  list(
    formula = text, names = I(rownames(table)), coef = I(unname(table[, 1])),
    se = I(unname(table[, 2])), deviance = fit$deviance, posterior = I(unname(fitted(fit)[1:20]))
  )
}

lda_answer <- function(births) {
  text <- "low ~ age + log(lwt) + factor(race) + smoke"
  fit <- lda(as.formula(text), births)
  list(
    formula = text, names = I(colnames(fit$means)), means = unname(fit$means),
    scaling = I(unname(fit$scaling[, 1])),
    posterior = I(unname(predict(fit, births)$posterior[1:20, 2]))
  )
}

arguments <- commandArgs(TRUE)
main(arguments[1], arguments[2])
