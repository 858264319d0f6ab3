"""Formulas: parsing, expressions of columns, and the design that a fit learns from its rows."""
