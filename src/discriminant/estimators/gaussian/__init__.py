"""Estimators with Gaussian classes: LDA, QDA, RDA, nearest mean and Fisher's discriminant."""
