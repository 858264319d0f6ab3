# Robust estimates by robustbase and rrcov -> robust.json
#
#     python tests/golden/export_sets.py FOLDER
#     Rscript tests/golden/make_robust.R FOLDER tests/golden/robust.json
#
# The layout is in README.md.

suppressMessages(library(rrcov))
source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "json.R"))

STEP <- c(iris = 5, shifted_iris = 5, wine = 5, breast_cancer = 20)  # one row of STEP is stored

main <- function(folder, target) {
  sets <- sapply(names(STEP), function(name) set_answer(read_set(folder, name), STEP[[name]]), simplify = FALSE)
  versions <- list(
    r = as.character(getRversion()), robustbase = as.character(packageVersion("robustbase")),
    rrcov = as.character(packageVersion("rrcov"))
  )
  answer <- list(versions = versions, sets = sets, factors = factors(), scales = scales(folder))
  writeLines(json(answer), target)
}

read_set <- function(folder, name) {
  text <- read.csv(file.path(folder, paste0(sub("shifted_", "", name), ".csv")), colClasses = "character")
  x <- sapply(text[-ncol(text)], as.numeric)
  if (startsWith(name, "shifted")) {
    rows <- seq(1, nrow(x), by = 12)
    x[rows, ] <- x[rows, ] + 10
  }
  # more than half of the rows of setosa have the same petal width
  if (endsWith(name, "iris")) x <- x[, 1:3]
  list(x = unname(x), y = factor(as.integer(text$y)))
}

mcd <- function(x, alpha = 0.5, ...) covMcd(x, alpha = alpha, nsamp = "deterministic", ...)

estimate <- function(fit) {
  list(
    center = I(unname(fit$center)), cov = unname(fit$cov), raw_center = I(unname(fit$raw.center)),
    raw_cov = unname(fit$raw.cov), distances = I(unname(fit$mah)), logdet = fit$crit
  )
}

set_answer <- function(set, step) {
  rows <- seq(1, nrow(set$x), by = step)
  classes <- levels(set$y)
  part <- function(k) set$x[set$y == k, , drop = FALSE]
  by_class <- function(...) lapply(setNames(classes, classes), function(k) mcd(part(k), ...))
  tau <- by_class(scalefn = scaleTau2)
  answer <- list(
    rows = I(rows - 1),
    mcd = lapply(tau, estimate),
    mcd_75 = lapply(by_class(alpha = 0.75, scalefn = scaleTau2), estimate),
    mcd_qn = lapply(by_class(), function(fit) list(center = I(unname(fit$center)), cov = unname(fit$cov)))
  )
  prior <- as.vector(table(set$y)) / nrow(set$x)
  # QdaCov and Linda (method "mcdB") of rrcov, with the deterministic MCD
  centres <- t(sapply(tau, function(fit) fit$center))
  answer$qda <- posterior(set$x[rows, ], centres, lapply(tau, function(fit) fit$cov), prior)
  within <- mcd(set$x - centres[set$y, ], scalefn = scaleTau2)
  centres <- t(t(centres) + within$center)
  answer$lda <- c(
    list(means = unname(centres), cov = unname(within$cov)),
    posterior(set$x[rows, ], centres, rep(list(within$cov), length(classes)), prior)
  )
  # rrcov's own classes, whose MCD starts from random subsets
  set.seed(1)
  linda <- Linda(set$x, set$y)
  answer$linda <- list(center = unname(linda@center), cov = unname(linda@cov))
  answer
}

posterior <- function(x, centres, covs, prior) {
  logs <- sapply(seq_along(covs), function(k) {
    log(prior[k]) - 0.5 * (mahalanobis(x, centres[k, ], covs[[k]]) + determinant(covs[[k]])$modulus)
  })
  shares <- exp(logs - apply(logs, 1, max))
  list(posterior = unname(shares / rowSums(shares)), class = I(unname(apply(logs, 1, which.max)) - 1))
}

# Correction factors for few rows: p features, n rows, alpha, then the raw and the reweighted factor.
factors <- function() {
  cases <- expand.grid(p = c(1:10, 15), n = c(10, 12, 15, 17, 20, 25, 31, 50, 200), alpha = c(0.5, 0.75, 0.9))
  cases <- cases[cases$n >= pmax(2 * cases$p, cases$p + 2), ]
  small <- do.call(rbind, lapply(2:9, function(p) data.frame(p = p, n = (2 * p):20, alpha = 0.5)))
  cases <- rbind(cases, small)
  values <- t(mapply(
    function(p, n, alpha) {
      c(robustbase:::.MCDcnp2(p, n, alpha), robustbase:::.MCDcnp2.rew(p, n, alpha))
    },
    cases$p, cases$n, cases$alpha
  ))
  unname(as.matrix(cbind(cases, values)))
}

scales <- function(folder) {
  list(wine = I(unname(apply(read_set(folder, "wine")$x, 2, scaleTau2))))
}

words <- commandArgs(trailingOnly = TRUE)
main(words[1], words[2])
