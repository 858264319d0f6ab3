# Discriminant analysis by DiscriMiner -> discriminer.json
#
#     python tests/golden/export_sets.py FOLDER
#     Rscript tests/golden/make_discriminer.R FOLDER tests/golden/discriminer.json
#
# The layout is in README.md.

suppressMessages(library(DiscriMiner))
source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "json.R"))

KEPT <- c(iris = 5, wine = 5, breast_cancer = 20)  # one row in so many, as in export_sets.py

main <- function(folder, target) {
  sets <- sapply(names(KEPT), function(name) set_answer(read_set(folder, name), KEPT[[name]]), simplify = FALSE)
  versions <- list(r = as.character(getRversion()), discriminer = as.character(packageVersion("DiscriMiner")))
  writeLines(json(list(versions = versions, sets = sets)), target)
}

read_set <- function(folder, name) {
  text <- read.csv(file.path(folder, paste0(name, ".csv")), colClasses = "character")
  list(x = sapply(text[-ncol(text)], as.numeric), y = factor(as.integer(text$y)))
}

set_answer <- function(set, step) {
  rows <- seq(1, nrow(set$x), by = step)
  said <- function(fit) {
    list(
      scores = unname(fit$scores[rows, ]),
      confusion = unname(unclass(fit$confusion))
    )
  }
  quadratic <- quaDA(set$x, set$y)
  answer <- list(
    rows = I(rows - 1),
    lin = said(linDA(set$x, set$y)),
    lin_prior = said(linDA(set$x, set$y, prior = prior_of(nlevels(set$y)))),
    geo = said(geoDA(set$x, set$y)),
    qua = list(ldet = I(quadratic$ldet), confusion = unname(unclass(quadratic$confusion))),
    power = unname(as.matrix(discPower(set$x, set$y))[, 1:3]),
    p = I(unname(apply(set$x, 2, FRatio, set$y)[2, ])),
    within = unname(withinSS(set$x, set$y)),
    between = unname(betweenSS(set$x, set$y)),
    total = unname(totalSS(set$x))
  )
  if (length(unique(table(set$y))) == 1) answer$described <- described(set)
  answer
}

# Of classes of one size only: desDA 0.1-29 weighs every class by the number of rows of the last.
described <- function(set) {
  found <- desDA(set$x, set$y)
  list(values = unname(found$values), discrivar = unname(found$discrivar), discor = unname(found$discor))
}

prior_of <- function(classes) if (classes == 3) c(0.1, 0.2, 0.7) else c(0.3, 0.7)

words <- commandArgs(trailingOnly = TRUE)
main(words[1], words[2])
