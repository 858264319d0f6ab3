# CPU seconds of glmnet on rows in a binary file: called by model_fits.py.
#
#     Rscript benchmarks/model_fits.R FILE ROWS COLUMNS ALPHA PENALTIES FOLDS
#
# FOLDS 0: one path; otherwise cv.glmnet. The least of three times is printed.

suppressMessages(library(glmnet))
given <- commandArgs(trailingOnly = TRUE)
size <- as.integer(given[2:3])
numbers <- readBin(given[1], "double", size[1] * (size[2] + 1))
x <- matrix(numbers[seq(size[1] * size[2])], size[1])
y <- numbers[-seq(size[1] * size[2])]
alpha <- as.numeric(given[4])
penalties <- as.integer(given[5])
folds <- as.integer(given[6])
fold <- rep_len(seq(max(folds, 1)), size[1])

seconds <- replicate(3, {
  before <- proc.time()
  if (folds == 0) {
    glmnet(x, y, "binomial", alpha = alpha, nlambda = penalties)
  } else {
    cv.glmnet(x, y, family = "binomial", alpha = alpha, nlambda = penalties, foldid = fold)
  }
  sum((proc.time() - before)[c("user.self", "sys.self")])
})
cat(min(seconds), "\n")
