"""Held-out assessment: folds, cross-validation, leave-one-out, RDA grid."""
