# Shrinkage of correlations, variances and class shares by R's corpcor -> corpcor.json
#
#     python tests/golden/export_sets.py FOLDER
#     Rscript tests/golden/make_corpcor.R FOLDER tests/golden/corpcor.json
#
# corpcor estimates the intensities and computes powers of the shrunken correlation matrix. The CAT
# scores and discriminant scores are then those of Ahdesmaki and Strimmer (2010), sections 2 and 3.

library(corpcor)
source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "json.R"))

SETS <- c("iris", "wine", "breast_cancer")

main <- function(folder, target) {
  sets <- sapply(SETS, function(name) set_answer(read_set(folder, name)), simplify = FALSE)
  versions <- list(r = as.character(getRversion()), corpcor = as.character(packageVersion("corpcor")))
  writeLines(json(list(versions = versions, every = 20, sets = sets)), target)
}

read_set <- function(folder, name) {
  text <- read.csv(file.path(folder, paste0(name, ".csv")), colClasses = "character")
  list(x = sapply(text[-ncol(text)], as.numeric), y = factor(as.integer(text$y)))
}

set_answer <- function(set) {
  x <- unname(set$x)
  n <- nrow(x)
  counts <- as.vector(table(set$y))
  K <- length(counts)
  means <- t(sapply(levels(set$y), function(k) colMeans(x[set$y == k, , drop = FALSE])))
  centred <- x - means[as.integer(set$y), ]
  shares <- shrunken_shares(counts)
  variances <- var.shrink(centred, verbose = FALSE)
  v <- as.vector(variances) * (n - 1) / (n - K)
  differences <- sweep(means, 2, as.vector(shares$value %*% means))
  t_scores <- sweep(differences, 2, sqrt(v), "/") / sqrt((1 - shares$value) / shares$value / n)
  cat <- crossprod.powcor.shrink(centred, t(t_scores), alpha = -1 / 2, verbose = FALSE)
  slopes <- crossprod.powcor.shrink(centred, t(sweep(differences, 2, sqrt(v), "/")), alpha = -1,
                                    verbose = FALSE)
  slopes <- t(unclass(slopes)[, seq_len(K)] / sqrt(v))
  rows <- seq(1, n, by = 20)
  scores <- x[rows, ] %*% t(slopes)
  middle <- rowSums(slopes * sweep(means, 2, as.vector(shares$value %*% means), "+")) / 2
  scores <- sweep(scores, 2, log(shares$value) - middle, "+")
  posterior <- exp(scores - apply(scores, 1, max))
  list(
    lambda = estimate.lambda(centred, verbose = FALSE),
    lambda_var = estimate.lambda.var(centred, verbose = FALSE),
    lambda_freqs = shares$amount,
    shares = shares$value,
    variances = v,
    t_scores = unname(t_scores),
    cat_scores = unname(t(unclass(cat)[, seq_len(K)])),
    posterior = unname(posterior / rowSums(posterior))
  )
}

# Shrinkage of frequencies toward equal ones (Hausser and Strimmer 2009).
shrunken_shares <- function(counts) {
  n <- sum(counts)
  u <- counts / n
  target <- 1 / length(u)
  amount <- min(1, (1 - sum(u^2)) / ((n - 1) * sum((target - u)^2)))
  if (!is.finite(amount)) amount <- 1  # equal shares: nothing to shrink
  list(amount = amount, value = amount * target + (1 - amount) * u)
}

arguments <- commandArgs(trailingOnly = TRUE)
main(arguments[1], arguments[2])
