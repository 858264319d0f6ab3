"""Rules of Gaussian classes, fitted from moments."""
