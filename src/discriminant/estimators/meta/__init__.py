"""Estimators around any classifier: decisions, encodings, codes, resampling, fusion."""
