# ROC analysis by pROC and McNemar's test by stats -> proc.json
#
#     Rscript tests/golden/make_proc.R tests/golden/proc.json
#
# The layout is in README.md.

suppressPackageStartupMessages(library(pROC))
source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "json.R"))

main <- function(target) {
  versions <- list(
    r = as.character(getRversion()), proc = as.character(packageVersion("pROC"))
  )
  sets <- sapply(scored_sets(), set_answer, simplify = FALSE)
  unpaired <- sapply(UNPAIRED, function(names) unpaired_answer(scored_sets()[names]), simplify = FALSE)
  found <- list(versions = versions, sets = sets, unpaired = unpaired, mcnemar = mcnemar_answers())
  writeLines(json(found), target)
}

UNPAIRED <- list(smooth_rounded = c("smooth", "rounded"), rounded_skewed = c("rounded", "skewed"))

# Truth is 1 for positive; two models score the same rows. Scores are rounded before use, so that the
# decimals written are the doubles read.
scored_sets <- function() {
  set.seed(4)
  draw <- function(m, n, gap, digits) {
    y <- c(rep(1, m), rep(0, n))
    common <- rnorm(m + n)
    first <- round(gap * y + common + rnorm(m + n), digits)
    second <- round(0.6 * gap * y + common + rnorm(m + n), digits)
    list(y = y, first = first, second = second)
  }
  list(
    smooth = draw(40, 60, 1.2, 6), # no ties
    rounded = draw(30, 50, 1.5, 0), # many ties
    skewed = draw(7, 200, 2, 1), # few positive rows, some ties
    reversed = { # worse than chance
      set <- draw(25, 25, 1, 2)
      list(y = 1 - set$y, first = set$first, second = set$second)
    }
  )
}

curve_of <- function(set, name) {
  roc(set$y, set[[name]], levels = c(0, 1), direction = "<", quiet = TRUE)
}

set_answer <- function(set) {
  one <- curve_of(set, "first")
  two <- curve_of(set, "second")
  list(
    y = set$y, first = set$first, second = set$second,
    auc = I(c(auc(one), auc(two))),
    variance = I(c(var(one, method = "delong"), var(two, method = "delong"))),
    covariance = cov(one, two, method = "delong"),
    ci_95 = rbind(interval(one, 0.95), interval(two, 0.95)),
    ci_80 = rbind(interval(one, 0.80), interval(two, 0.80)),
    partial = I(c(partial(one, FALSE), partial(two, FALSE))),
    test = tested(one, two, paired = TRUE),
    less = tested(one, two, paired = TRUE, alternative = "less")
  )
}

interval <- function(curve, level) {
  found <- ci.auc(curve, conf.level = level, method = "delong")
  c(found[1], found[3])
}

partial <- function(curve, correct) {
  as.numeric(auc(curve, partial.auc = c(1, 0.8), partial.auc.correct = correct))
}

tested <- function(one, two, paired, alternative = "two.sided") {
  found <- roc.test(one, two, method = "delong", paired = paired, alternative = alternative)
  answer <- list(statistic = unname(found$statistic), p = found$p.value)
  if (!is.null(found$parameter)) answer$df <- unname(found$parameter)
  if (!is.null(found$conf.int) && alternative == "two.sided") answer$ci <- I(as.numeric(found$conf.int))
  answer
}

unpaired_answer <- function(sets) {
  tested(curve_of(sets[[1]], "first"), curve_of(sets[[2]], "first"), paired = FALSE)
}

# b rows that one model alone has right, c the other; the 9s are rows on which they agree.
mcnemar_answers <- function() {
  counts <- list(few = c(1, 5), even = c(6, 6), many = c(30, 52), none_of_one = c(0, 9))
  sapply(counts, function(bc) {
    found <- mcnemar.test(matrix(c(9, bc[1], bc[2], 9), 2), correct = TRUE)
    list(
      b = bc[1], c = bc[2], chi2 = unname(found$statistic), p = found$p.value,
      exact_p = binom.test(bc[1], sum(bc))$p.value
    )
  }, simplify = FALSE)
}

main(commandArgs(trailingOnly = TRUE)[1])
