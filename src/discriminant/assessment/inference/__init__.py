"""Standard errors, tests and printed tables of fitted models and of class moments."""
