"""Meta-estimators: classifiers that wrap others, for decisions, encoding, resampling and fusion."""
