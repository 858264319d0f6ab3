# Mixture discriminant analysis by R's mda -> mda.json
#
#     python tests/golden/export_sets.py FOLDER
#     Rscript tests/golden/make_mda.R FOLDER tests/golden/mda.json
#
# Two components in each class and one covariance, from given components of the rows: posterior,
# weights of the components and deviance after some steps of EM.

suppressMessages(library(mda))
source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "json.R"))

COLUMNS <- list(iris = 1:4, wine = c(1, 7, 10))
STEPS <- c(1, 5, 2000)
COMPONENTS <- 2

main <- function(folder, target) {
  sets <- sapply(names(COLUMNS), function(name) set_answer(read_set(folder, name), COLUMNS[[name]]), simplify = FALSE)
  versions <- list(r = as.character(getRversion()), mda = as.character(packageVersion("mda")))
  writeLines(json(list(versions = versions, sets = sets)), target)
}

read_set <- function(folder, name) {
  text <- read.csv(file.path(folder, paste0(name, ".csv")), colClasses = "character")
  list(x = sapply(text[-ncol(text)], as.numeric), y = factor(as.integer(text$y)))
}

set_answer <- function(set, columns) {
  x <- set$x[, columns]
  set.seed(1)
  start <- integer(nrow(x))
  for (level in levels(set$y)) {
    own <- set$y == level
    start[own] <- kmeans(scale(x[own, ]), COMPONENTS)$cluster
  }
  weights <- sapply(levels(set$y), function(level) {
    outer(start[set$y == level], seq(COMPONENTS), "==") + 0
  }, simplify = FALSE)
  frame <- data.frame(y = set$y, x)
  rows <- seq(1, nrow(x), by = 5)
  answers <- sapply(as.character(STEPS), function(steps) {
    fit <- mda(y ~ ., frame, subclasses = COMPONENTS, weights = weights, iter = as.integer(steps))
    list(
      posterior = unname(predict(fit, frame[rows, ], type = "posterior")),
      weights = numbered(lapply(fit$weights, unname)),
      deviance = fit$deviance
    )
  }, simplify = FALSE)
  list(columns = columns - 1, rows = rows - 1, start = start - 1, steps = answers)
}

numbered <- function(parts) setNames(parts, seq_along(parts))

do.call(main, as.list(commandArgs(trailingOnly = TRUE)))
