# Discriminant analysis by R's MASS -> mass.json
#
#     python tests/golden/export_sets.py FOLDER
#     Rscript tests/golden/make_mass.R FOLDER tests/golden/mass.json
#
# Rows and classes are counted from 0. The layout is in README.md.

library(MASS)
source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "json.R"))

SETS <- list(
  iris = list(every = 5, prior = c(.1, .2, .7), dimen = 1:2),
  wine = list(every = 5, prior = c(.2, .3, .5), dimen = 1:2),
  breast_cancer = list(every = 20, prior = c(.3, .7), dimen = NULL)
)
FITS <- list(lda = lda, qda = qda)

main <- function(folder, target) {
  sets <- Map(function(name, plan) set_answer(read_set(folder, name), plan), names(SETS), SETS)
  versions <- list(r = as.character(getRversion()), mass = as.character(packageVersion("MASS")))
  writeLines(json(list(versions = versions, sets = sets)), target)
}

read_set <- function(folder, name) {
  text <- read.csv(file.path(folder, paste0(name, ".csv")), colClasses = "character")
  x <- sapply(text[-ncol(text)], as.numeric)
  stopifnot(sprintf("%.17g", x) == unlist(text[-ncol(text)]))  # the very doubles
  if (name == "iris") stopifnot(x == as.matrix(datasets::iris[1:4]))
  list(x = x, y = factor(as.integer(text$y)))
}

set_answer <- function(set, plan) {
  rows <- seq(1, nrow(set$x), by = plan$every)
  answer <- list(rows = rows - 1, prior = plan$prior)
  for (model in names(FITS)) {
    for (method in c("moment", "mle")) {
      answer[[model]][[method]] <- model_answer(model, method, set, plan, rows)
    }
  }
  answer
}

model_answer <- function(model, method, set, plan, rows) {
  fit_with <- function(...) FITS[[model]](set$x, set$y, method = method, ...)
  plain <- fit_with()
  given <- fit_with(prior = plan$prior)
  answer <- list(
    default = fit_answer(plain, set, plan, rows),
    prior_at_fit = fit_answer(given, set, plan, rows),
    prior_at_predict = labelled(predict(plain, set$x, prior = plan$prior), set, rows),
    loo_default = labelled(fit_with(CV = TRUE), set, rows),
    loo_prior = labelled(fit_with(prior = plan$prior, CV = TRUE), set, rows)
  )
  check_loo(answer$loo_prior$posterior, model, method, set, plan$prior, rows)
  answer
}

# MASS leaves one out by a shortcut. Leave it out in earnest, the prior kept.
check_loo <- function(posterior, model, method, set, prior, rows) {
  for (i in seq_along(rows)) {
    row <- rows[i]
    fit <- FITS[[model]](set$x[-row, ], set$y[-row], prior = prior, method = method)
    earnest <- predict(fit, set$x[row, , drop = FALSE])$posterior
    stopifnot(abs(posterior[i, ] - earnest) < 1e-12)
  }
}

fit_answer <- function(fit, set, plan, rows) {
  facts <- list(prior = unname(fit$prior), means = unname(fit$means))
  if (inherits(fit, "lda")) {
    stopifnot(ncol(fit$scaling) == min(nlevels(set$y) - 1, ncol(set$x)))
    facts$scaling <- unname(fit$scaling)
    facts$svd <- I(fit$svd)
    for (dimen in plan$dimen) {
      facts[[paste0("dimen_", dimen)]] <- labelled(predict(fit, set$x, dimen = dimen), set, rows)
    }
  } else {
    facts$ldet <- fit$ldet
  }
  c(facts, labelled(predict(fit, set$x), set, rows))
}

labelled <- function(said, set, rows) {
  list(
    posterior = unname(said$posterior[rows, ]),
    class = as.integer(as.character(said$class[rows])),
    errors = sum(said$class != set$y)
  )
}

words <- commandArgs(trailingOnly = TRUE)
main(words[1], words[2])
