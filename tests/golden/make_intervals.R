# Intervals of a rate by R's stats -> intervals_r.json
#
#     Rscript tests/golden/make_intervals.R tests/golden/intervals_r.json
#
# prop.test without continuity correction is Wilson's interval, binom.test that of Clopper and Pearson.

source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "json.R"))

COUNTS <- list(c(0, 1), c(1, 1), c(0, 10), c(1, 10), c(5, 10), c(8, 10), c(10, 10), c(3, 333), c(252, 333),
               c(275, 10000), c(999999, 1000000))
LEVELS <- c(0.8, 0.95, 0.999)

main <- function(target) {
  rows <- do.call(rbind, lapply(COUNTS, function(count) do.call(rbind, lapply(LEVELS, one, count = count))))
  versions <- list(r = as.character(getRversion()))
  columns <- list(x = rows[, 1], n = rows[, 2], level = rows[, 3], wilson = rows[, 4:5], exact = rows[, 6:7])
  writeLines(json(c(list(versions = versions), columns)), target)
}

one <- function(level, count) {
  wilson <- suppressWarnings(prop.test(count[1], count[2], conf.level = level, correct = FALSE))
  exact <- binom.test(count[1], count[2], conf.level = level)
  c(count, level, wilson$conf.int, exact$conf.int)
}

main(commandArgs(trailingOnly = TRUE)[1])
