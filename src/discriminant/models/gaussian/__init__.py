"""Gaussian models: LDA, QDA, RDA and Fisher's discriminant, fitted from class moments."""
