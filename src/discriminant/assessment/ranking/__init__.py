"""Ranking measures: ROC curves, precision-recall curves, and the areas under them."""
