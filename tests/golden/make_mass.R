# Discriminant analysis by R's MASS -> mass.json
#
#     python tests/golden/export_sets.py FOLDER
#     Rscript tests/golden/make_mass.R FOLDER tests/golden/mass.json
#
# Rows and classes are counted from 0. Numbers are written with 17 digits, by `json` below: jsonlite
# stops at 15. The layout is in README.md.

library(MASS)

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

# A list is an object, a matrix an array of rows, one number a number.
json <- function(value, depth = 0) {
  pad <- strrep(" ", depth + 1)
  block <- function(open, items, close) {
    paste0(open, "\n", paste0(pad, items, collapse = ",\n"), "\n", strrep(" ", depth), close)
  }
  if (is.list(value)) {
    items <- sapply(value, json, depth = depth + 1)
    block("{", paste0('"', names(value), '": ', items), "}")
  } else if (is.matrix(value)) {
    block("[", apply(value, 1, function(row) json(I(row))), "]")
  } else if (is.character(value)) {
    paste0('"', value, '"')
  } else {
    stopifnot(is.finite(value))
    words <- sprintf("%.17g", value)
    if (length(words) == 1 && !inherits(value, "AsIs")) return(words)
    paste0("[", paste(words, collapse = ", "), "]")
  }
}

words <- commandArgs(trailingOnly = TRUE)
main(words[1], words[2])
