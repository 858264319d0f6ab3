# cv.glmnet with its default options: x.csv, y.csv (codes) and z.csv of a folder to p.csv.
library(glmnet)
place <- commandArgs(trailingOnly = TRUE)[1]
read <- function(name) as.matrix(read.csv(file.path(place, name), header = FALSE))
x <- read("x.csv"); z <- read("z.csv"); y <- as.vector(read("y.csv"))
if (ncol(x) == 1) { x <- cbind(x, 0); z <- cbind(z, 0) }  # glmnet needs two columns
set.seed(1)
family <- if (max(y) > 1) "multinomial" else "binomial"
fit <- suppressWarnings(cv.glmnet(x, factor(y), family = family))
p <- predict(fit, z, s = "lambda.min", type = "response")
p <- if (length(dim(p)) == 3) p[, , 1] else p
write.table(format(p, digits = 17), file.path(place, "p.csv"), sep = ",", quote = FALSE,
            row.names = FALSE, col.names = FALSE)
