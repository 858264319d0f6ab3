# How the makers written in R write their numbers: with 17 digits (jsonlite stops at 15). A list is an
# object, a matrix an array of rows, one number a number (an array within I()), NA null.

json <- function(value, depth = 0) {
  pad <- strrep(" ", depth + 1)
  block <- function(open, items, close) {
    paste0(open, "\n", paste0(pad, items, collapse = ",\n"), "\n", strrep(" ", depth), close)
  }
  if (is.list(value)) {
    items <- sapply(value, json, depth = depth + 1)
    block("{", paste0('"', names(value), '": ', items), "}")
  } else if (is.matrix(value)) {
    block("[", apply(value, 1, function(row) json(I(row))), "]")
  } else if (is.character(value)) {
    words <- paste0('"', value, '"')
    if (length(words) == 1 && !inherits(value, "AsIs")) return(words)
    paste0("[", paste(words, collapse = ", "), "]")
  } else {
    stopifnot(is.na(value) | is.finite(value))
    words <- ifelse(is.na(value), "null", sprintf("%.17g", value))
    if (length(words) == 1 && !inherits(value, "AsIs")) return(words)
    paste0("[", paste(words, collapse = ", "), "]")
  }
}
