"""Statistical inference: standard errors, tests and printed tables of fitted models and moments."""
