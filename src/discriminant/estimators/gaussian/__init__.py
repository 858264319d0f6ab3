"""Estimators of Gaussian classes: LDA, QDA, RDA, nearest mean, Fisher."""
