# Intervals of predicted means by R's predict.glm(se.fit = TRUE) -> mean_intervals.json
#
#     Rscript tests/golden/make_mean_intervals.R tests/golden/glm_sets.json tests/golden/mean_intervals.json
#
# `link` and `se` are predict(type = "link", se.fit = TRUE) at new rows: rows of the fit, shifted by 0.5,
# with offset 0.2 where the fit has an offset. `mean`, `low`, `high` are the inverse link of `link` and of
# link -+ qnorm(0.95) se, in increasing order. A fit is started again from its own estimate until the
# coefficients stand still, since glm's standard errors are those of the step before the last.

source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "json.R"))

LINKS <- list(
  gaussian = c("identity", "log"),
  binomial = c("logit", "probit", "cloglog", "cauchit"),
  grouped = c("logit", "cloglog"),
  poisson = "log",
  Gamma = c("inverse", "log")
)
TIGHT <- glm.control(epsilon = 1e-15, maxit = 200)
SHOWN <- seq(1, 50, by = 7)
LEVEL <- 0.9

main <- function(source, target) {
  rows <- jsonlite::fromJSON(source)$glm
  fits <- list()
  for (kind in names(LINKS)) for (link in LINKS[[kind]]) {
    name <- paste(kind, link, sep = "-")
    plans <- if (kind == "grouped") c("plain", "offset") else c("plain", "weight", "offset")
    for (plan in plans) fits[[name]][[plan]] <- interval_answer(rows, kind, link, plan)
  }
  answer <- list(
    versions = list(r = as.character(getRversion())),
    rows = SHOWN - 1, shift = 0.5, offset = 0.2, level = LEVEL, fits = fits
  )
  writeLines(json(answer), target)
}

interval_answer <- function(rows, kind, link, plan) {
  x <- rows$features
  data <- data.frame(
    y = rows$responses[[paste(kind, link, sep = "-")]],
    x1 = x[, 1], x2 = x[, 2], x3 = x[, 3],
    w = 1, o = if (plan == "offset") rows$offset else 0
  )
  if (plan == "weight") data$w <- if (kind == "binomial") rows$times else rows$weight
  if (kind == "grouped") {
    data$y <- data$y / rows$trials
    data$w <- rows$trials
  }
  family <- get(if (kind == "grouped") "binomial" else kind)(link = link)
  refit <- function(start) {
    suppressWarnings(glm(y ~ x1 + x2 + x3 + offset(o), family, data, weights = w, start = start,
                         control = TIGHT))
  }
  fit <- refit(NULL)
  for (step in 1:20) fit <- refit(fit$coefficients)
  new <- data[SHOWN, ]
  new[c("x1", "x2", "x3")] <- new[c("x1", "x2", "x3")] + 0.5
  new$o <- if (plan == "offset") 0.2 else 0
  predicted <- predict(fit, new, type = "link", se.fit = TRUE)
  reach <- qnorm(0.5 + LEVEL / 2) * predicted$se.fit
  ends <- cbind(family$linkinv(predicted$fit - reach), family$linkinv(predicted$fit + reach))
  if (link == "inverse") stopifnot(predicted$fit - reach > 0)
  list(
    link = unname(predicted$fit),
    se = unname(predicted$se.fit),
    mean = unname(family$linkinv(predicted$fit)),
    low = unname(pmin(ends[, 1], ends[, 2])),
    high = unname(pmax(ends[, 1], ends[, 2]))
  )
}

words <- commandArgs(trailingOnly = TRUE)
main(words[1], words[2])
