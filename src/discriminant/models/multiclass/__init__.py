"""Multiclass models from two-class rules: output codes, their two-class rules, and decoding."""
