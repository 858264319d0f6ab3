"""What a grid search does without moments: every candidate fitted to the rows of every fold.

Twice: as a bare loop in NumPy and SciPy without any checks, and as a scikit-learn estimator in its
`GridSearchCV`, which is what a user would write. Rows of a class are taken out, centred and
multiplied; covariances mixed; one Cholesky factor a class; held-out rows scored by a triangular
solve.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.utils.validation import check_is_fitted, validate_data


def grid_losses(X, y, *, poolings, shrinkages, fold):
    """(poolings, shrinkages) mean of -log posterior of the true class on held-out rows."""
    found = np.zeros((len(poolings), len(shrinkages)))
    splits = list(PredefinedSplit(fold).split())
    for i, pooling in enumerate(poolings):
        for j, shrinkage in enumerate(shrinkages):
            for train, test in splits:
                model = fit_rda(X[train], y[train], pooling=pooling, shrinkage=shrinkage)
                found[i, j] -= log_posteriors(model, X[test])[np.arange(len(test)), y[test]].sum()
    return found / len(X)


def search_losses(X, y, *, poolings, shrinkages, fold):
    """The same by GridSearchCV, up to the weight of a fold in the mean."""
    search = GridSearchCV(
        RefittedRDA(),
        {"pooling": poolings, "shrinkage": shrinkages},
        scoring="neg_log_loss",
        cv=PredefinedSplit(fold),
        refit=True,
    ).fit(X, y)
    sizes = np.bincount(fold)
    folds = [search.cv_results_[f"split{i}_test_score"] for i in range(len(sizes))]
    return -(sizes @ np.array(folds) / len(X)).reshape(len(poolings), len(shrinkages))


class RefittedRDA(ClassifierMixin, BaseEstimator):
    """RDA as scikit-learn would write it."""

    def __init__(self, pooling=0.5, shrinkage=0.0):
        self.pooling = pooling
        self.shrinkage = shrinkage

    def fit(self, X, y):
        X, y = validate_data(self, X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.model_ = fit_rda(X, codes, pooling=self.pooling, shrinkage=self.shrinkage)
        return self

    def predict_log_proba(self, X):
        check_is_fitted(self)
        return log_posteriors(self.model_, validate_data(self, X, reset=False))

    def predict_proba(self, X):
        return np.exp(self.predict_log_proba(X))


def fit_rda(X, y, *, pooling, shrinkage):
    """Prior, mean and Cholesky factor of each class, from the rows."""
    classes = np.unique(y)
    means, scatters, counts = [], [], []
    for label in classes:
        rows = X[y == label]
        means.append(rows.mean(axis=0))
        centred = rows - means[-1]
        scatters.append(centred.T @ centred)
        counts.append(len(rows))
    pooled = sum(scatters) / (len(X) - len(classes))
    shrunk = (1 - shrinkage) * pooled + shrinkage * np.diag(np.diag(pooled))
    factors = [
        cholesky((1 - pooling) * scatter / (count - 1) + pooling * shrunk, lower=True)
        for scatter, count in zip(scatters, counts, strict=True)
    ]
    return np.array(counts) / len(X), means, factors


def log_posteriors(model, X):
    """(n, K) log posterior of each class."""
    scores = np.empty((len(X), len(model[0])))
    for k, (prior, mean, factor) in enumerate(zip(*model, strict=True)):
        white = solve_triangular(factor, (X - mean).T, lower=True)
        distance = np.einsum("in,in->n", white, white)
        scores[:, k] = np.log(prior) - np.log(np.diag(factor)).sum() - 0.5 * distance
    scores -= scores.max(axis=1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
