"""Resampling: folds, cross-validation, leave-one-out, RDA grids, and comparison of models."""
