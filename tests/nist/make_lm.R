# Digits that R's lm gets on the NIST linear sets -> r_lm.json
#
#     Rscript tests/nist/make_lm.R tests/nist
#
# Reads linear.json beside it. LRE = -log10(|value - certified| / |certified|), between 0 and 15, the
# least over the coefficients (or over their standard deviations); a coefficient that lm gives up (NA)
# counts 0; null where the certified value is 0. `default` is tol = 1e-7; with `tol_1e-20` lm keeps
# every column (Filip needs that).

library(jsonlite)

folder <- commandArgs(trailingOnly = TRUE)[1]
sets <- fromJSON(file.path(folder, "linear.json"))

lre <- function(value, certified) {
  if (any(certified == 0)) return(NULL)
  value[is.na(value)] <- Inf
  digits <- -log10(abs(value - certified) / abs(certified))
  round(min(pmax(pmin(digits, 15), 0)), 2)
}

terms_of <- function(set) {
  x <- paste0("x", seq_len(ncol(set$x)))
  powers <- if (set$degree > 1) sprintf("I(x1^%d)", 2:set$degree)
  paste(c(x, powers, if (!set$intercept) "-1"), collapse = " + ")
}

digits_of <- function(set, tol) {
  frame <- data.frame(y = set$y, set$x)
  names(frame) <- c("y", paste0("x", seq_len(ncol(set$x))))
  fit <- lm(as.formula(paste("y ~", terms_of(set))), frame, tol = tol)
  found <- suppressWarnings(summary(fit))$coefficients
  sd <- found[match(names(coef(fit)), rownames(found)), "Std. Error"]
  list(
    coef_lre = lre(coef(fit), set$certified$coef),
    sd_lre = lre(sd, set$certified$sd),
    residual_sd_lre = lre(suppressWarnings(summary(fit))$sigma, set$certified$residual_sd)
  )
}

answer <- list(
  versions = list(r = as.character(getRversion()), blas = basename(extSoftVersion()[["BLAS"]])),
  sets = lapply(sets, function(set) {
    list(default = digits_of(set, 1e-7), `tol_1e-20` = digits_of(set, 1e-20))
  })
)
writeLines(
  toJSON(answer, auto_unbox = TRUE, digits = 2, null = "null", pretty = 1),
  file.path(folder, "r_lm.json")
)
