"""Sums over the rows of a table: class moments, losses, confusion matrices, rankings."""
