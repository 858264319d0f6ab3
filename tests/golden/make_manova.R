# Multivariate analysis of variance by R's stats -> manova.json
#
#     python tests/golden/export_sets.py FOLDER
#     Rscript tests/golden/make_manova.R FOLDER tests/golden/manova.json
#
# The layout is in README.md.

library(MASS)
source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "json.R"))

SETS <- c("iris", "wine", "breast_cancer")
TESTS <- c("Wilks", "Pillai", "Hotelling-Lawley", "Roy")

main <- function(folder, target) {
  sets <- sapply(SETS, function(name) set_answer(read_set(folder, name)), simplify = FALSE)
  versions <- list(r = as.character(getRversion()), mass = as.character(packageVersion("MASS")))
  writeLines(json(list(versions = versions, sets = sets)), target)
}

read_set <- function(folder, name) {
  text <- read.csv(file.path(folder, paste0(name, ".csv")), colClasses = "character")
  list(x = sapply(text[-ncol(text)], as.numeric), y = factor(as.integer(text$y)))
}

set_answer <- function(set) {
  fit <- manova(set$x ~ set$y)
  answer <- list(
    tests = sapply(TESTS, function(test) test_answer(fit, test), simplify = FALSE),
    univariate = univariate(fit),
    canonical = canonical(set, fit)
  )
  if (nlevels(set$y) == 2) answer$hotelling <- t_squared(set)
  answer
}

test_answer <- function(fit, test) {
  row <- unname(summary(fit, test = test, tol = 0)$stats[1, ])
  list(value = row[2], f = row[3], df1 = row[4], df2 = row[5], p = row[6])
}

univariate <- function(fit) {
  rows <- lapply(summary.aov(fit), function(table) unlist(table[1, c("F value", "Pr(>F)")]))
  list(f = unname(sapply(rows, `[`, 1)), p = unname(sapply(rows, `[`, 2)))
}

# Eigenvalues by cancor of the rows with indicators, correlations of scores by cor: no formula of ours.
canonical <- function(set, fit) {
  indicators <- model.matrix(~ set$y)[, -1, drop = FALSE]
  correlation <- cancor(set$x, indicators)$cor
  directions <- lda(set$x, set$y)
  scores <- set$x %*% directions$scaling
  inside <- function(table) apply(table, 2, function(column) column - ave(column, set$y))
  sd_within <- sqrt(colSums(inside(set$x)^2) / fit$df.residual)
  list(
    correlation = I(correlation),
    raw = unname(directions$scaling),
    standardised = unname(directions$scaling * sd_within),
    total = unname(directions$scaling * apply(set$x, 2, sd)),
    structure = unname(cor(inside(set$x), inside(scores))),
    structure_total = unname(cor(set$x, scores))
  )
}

# By mahalanobis and var: T2 = n1 n2 / n D2.
t_squared <- function(set) {
  n <- table(set$y)
  parts <- split(as.data.frame(set$x), set$y)
  pooled <- Reduce(`+`, Map(function(part, size) var(part) * (size - 1), parts, n)) / (sum(n) - 2)
  d2 <- mahalanobis(colMeans(parts[[1]]), colMeans(parts[[2]]), pooled, tol = 0)
  t <- sapply(seq_len(ncol(set$x)), function(j) {
    found <- t.test(set$x[, j] ~ set$y, var.equal = TRUE)
    c(-found$statistic, found$p.value)
  })
  list(d2 = d2, t2 = prod(n) / sum(n) * d2, t = unname(t[1, ]), p = unname(t[2, ]))
}

words <- commandArgs(trailingOnly = TRUE)
main(words[1], words[2])
