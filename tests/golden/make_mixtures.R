# Mixtures of Gaussians per class by mclust -> mixtures.json
#
#     python tests/golden/export_sets.py FOLDER
#     Rscript tests/golden/make_mixtures.R FOLDER tests/golden/mixtures.json
#
# Parameters, log likelihood, BIC and posteriors of MclustDA with two components in each class.

suppressMessages(library(mclust))
source(file.path(dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE))), "json.R"))

MODELS <- c(class = "EEE", component = "VVV")
COLUMNS <- list(iris = 1:4, wine = c(1, 7, 10))

main <- function(folder, target) {
  sets <- sapply(names(COLUMNS), function(name) set_answer(read_set(folder, name), COLUMNS[[name]]), simplify = FALSE)
  versions <- list(r = as.character(getRversion()), mclust = as.character(packageVersion("mclust")))
  writeLines(json(list(versions = versions, sets = sets)), target)
}

read_set <- function(folder, name) {
  text <- read.csv(file.path(folder, paste0(name, ".csv")), colClasses = "character")
  list(x = sapply(text[-ncol(text)], as.numeric), y = factor(as.integer(text$y)))
}

set_answer <- function(set, columns) {
  x <- set$x[, columns]
  rows <- seq(1, nrow(x), by = 5)
  answers <- sapply(names(MODELS), function(structure) {
    fit <- MclustDA(x, set$y, G = 2, modelNames = MODELS[[structure]], verbose = FALSE)
    summary <- summary(fit)
    list(
      classes = numbered(lapply(fit$models, function(model) list(
        shares = model$parameters$pro,
        means = unname(t(model$parameters$mean)),
        covariances = numbered(lapply(1:2, function(c) unname(model$parameters$variance$sigma[, , c])))
      ))),
      log_likelihood = summary$loglik,
      parameters = summary$df,
      bic = summary$bic,
      posterior = unname(predict(fit, x[rows, ])$z)
    )
  }, simplify = FALSE)
  c(list(columns = columns - 1, rows = rows - 1), answers)
}

numbered <- function(parts) setNames(parts, seq_along(parts))

do.call(main, as.list(commandArgs(trailingOnly = TRUE)))
