# Structured covariances by stats::factanal and mclust -> structure.json
#
#     python tests/golden/export_sets.py FOLDER
#     Rscript tests/golden/make_structure.R FOLDER tests/golden/structure.json
#
# The layout is in README.md.

suppressMessages(library(mclust))
source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "json.R"))

main <- function(folder, target) {
  versions <- list(r = as.character(getRversion()), mclust = as.character(packageVersion("mclust")))
  answer <- list(
    versions = versions,
    factanal = factor_models(read_set(folder, "wine")),
    mclust = lapply(c(iris = "iris", wine = "wine"), function(name) gaussian_models(read_set(folder, name))),
    map = map_models(read_set(folder, "iris"))
  )
  writeLines(json(answer), target)
}

read_set <- function(folder, name) {
  text <- read.csv(file.path(folder, paste0(name, ".csv")), colClasses = "character")
  list(x = unname(sapply(text[-ncol(text)], as.numeric)), y = factor(as.integer(text$y)))
}

by_class <- function(set, f) {
  lapply(setNames(levels(set$y), levels(set$y)), function(k) f(set$x[set$y == k, , drop = FALSE]))
}

# Uniquenesses and the criterion of factanal for 1, 2 and 3 factors of every class.
factor_models <- function(set) {
  control <- list(nstart = 20, lower = 0.005, opt = list(maxit = 10000, factr = 1, pgtol = 0))
  by_class(set, function(x) {
    models <- lapply(1:3, function(m) {
      set.seed(1)
      fit <- factanal(covmat = cov(x), factors = m, rotation = "none", control = control)
      fitted <- tcrossprod(unclass(fit$loadings)) + diag(fit$uniquenesses)
      list(uniquenesses = I(unname(fit$uniquenesses)), correlation = unname(fitted))
    })
    setNames(models, 1:3)
  })
}

# Covariances and log likelihoods of one Gaussian per class (denominator n).
gaussian_models <- function(set) {
  names <- c(spherical = "VII", diagonal = "VVI", full = "VVV")
  lapply(names, function(model) {
    by_class(set, function(x) {
      fit <- Mclust(x, G = 1, modelNames = if (ncol(x) > 1) model else "V", verbose = FALSE)
      list(cov = unname(fit$parameters$variance$sigma[, , 1]), loglik = fit$loglik)
    })
  })
}

# Posterior modes under a normal-inverse-Wishart prior.
map_models <- function(set) {
  d <- ncol(set$x)
  mean <- colMeans(set$x)
  scale <- 0.3 * cov(set$x)
  fits <- function(strength) {  # the degrees of freedom are d + 2, whatever is given
    prior <- priorControl(functionName = "defaultPrior", mean = mean, shrinkage = strength, scale = scale)
    by_class(set, function(x) {
      fit <- Mclust(x, G = 1, modelNames = "VVV", prior = prior, verbose = FALSE)
      list(mean = I(unname(as.vector(fit$parameters$mean))), cov = unname(fit$parameters$variance$sigma[, , 1]))
    })
  }
  list(
    mean = I(unname(mean)), scale = unname(scale),
    weak = list(strength = 0.01, degrees = d + 2, classes = fits(0.01)),
    strong = list(strength = 5, degrees = d + 2, classes = fits(5))
  )
}

words <- commandArgs(trailingOnly = TRUE)
main(words[1], words[2])
