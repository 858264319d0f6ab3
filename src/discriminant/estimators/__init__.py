"""Estimators: classes with scikit-learn's interface (`fit`, `predict`, `score`)."""
