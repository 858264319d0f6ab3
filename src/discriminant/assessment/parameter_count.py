"""Number of parameters of a fitted model, by kind: means, covariances, priors and weights.

A covariance of p features has p (p + 1) / 2 different entries. Lecture 3 counts p^2 entries, since
it counts every covariance between two features twice, and it does not count the priors:

                 lecture 3      here
    LDA          K p + p^2      K p + p (p + 1) / 2    + K - 1 priors
    QDA          K p + K p^2    K p + K p (p + 1) / 2  + K - 1 priors

For a model that selects features, only the parameters of the selected features are counted.
Parameters that are fixed by an option, such as a given prior, are not counted. The weights of K
softmax scores, or of K fitted values that sum to one, are determined up to a common function, so
they count as K - 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import NotFittedError

from discriminant.errors import LinearModelError
from discriminant.models.gaussian.family import GaussianFamily


class ParameterCount(NamedTuple):
    """Number of free parameters of a model, by kind."""

    means: int = 0  # class means, component means or medians
    covariances: int = 0  # different entries of covariances, variances or scales
    priors: int = 0  # class priors and shares of components
    weights: int = 0  # coefficients and intercepts

    @property
    def total(self) -> int:
        """Number of all parameters."""
        return sum(self)


def count_parameters(model: Any) -> ParameterCount:
    """Count the free parameters of a fitted model.

    Parameters
    ----------
    model : fitted classifier or regressor
        Generative or linear model, or a pipeline or wrapper of such models.

    Returns
    -------
    ParameterCount
        Counts of `means`, `covariances`, `priors` and `weights`, and their `total`.

    Examples
    --------
    >>> from discriminant import LDA, QDA
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> count_parameters(LDA().fit(X, y))
    ParameterCount(means=12, covariances=10, priors=2, weights=0)
    >>> count_parameters(QDA().fit(X, y)).total
    44
    """
    if hasattr(model, "__sklearn_is_fitted__") and not model.__sklearn_is_fitted__():
        raise NotFittedError(f"This {type(model).__name__} instance is not fitted yet.")
    kinds = {kind.__name__ for kind in type(model).__mro__}
    if "GaussianClassifier" in kinds or "Fisher" in kinds:
        return _count_gaussian(model)
    if "MDA" in kinds:
        return _count_mixture(model)
    if "LaplaceNB" in kinds:
        K, d = model.medians_.shape
        return ParameterCount(K * d, K * d, _free_priors(model, K))
    if kinds & {"SDA", "SparseLDA", "ShrunkenCentroids"}:
        return _count_selected(model, kinds)
    if "MomentClassifier" in kinds and "LeastSquares" not in kinds:
        raise LinearModelError.no_parameters(type(model).__name__)
    if hasattr(model, "coef_"):
        return ParameterCount(weights=_count_weights(model, kinds))
    members = _members(model)
    if not members:
        raise LinearModelError.no_parameters(type(model).__name__)
    counts = [count_parameters(member) for member in members]
    return ParameterCount(*(sum(kind) for kind in zip(*counts, strict=True)))


def _members(model: Any) -> list[Any]:
    """Return the fitted models within a wrapper or a pipeline."""
    if hasattr(model, "steps"):
        return [model.steps[-1][1]]
    inner = getattr(model, "estimator_", None)
    return [inner] if inner is not None else list(getattr(model, "estimators_", []))


def _free_priors(model: Any, K: int) -> int:
    """Return the number of estimated priors; NearestMean has equal priors unless they are given."""
    options = getattr(model, "_asked", model)  # a copy with the options of the fit
    equal = type(model).__name__ == "NearestMean" or getattr(options, "threshold", 0) == "midpoint"
    return 0 if equal or getattr(options, "prior", None) is not None else K - 1


def _count_gaussian(model: Any) -> ParameterCount:
    K, d = model.means_.shape
    family = model._asked.family  # options of the fit
    if family.structured:
        covariances = K - sum(max(len(group) - 1, 0) for group in family.groups)
        return ParameterCount(
            K * d, covariances * _structured_entries(d, family), _free_priors(model, K)
        )
    shrinkage = getattr(model, "shrinkage_", family.shrinkage)
    diagonal = not isinstance(shrinkage, str) and bool(np.all(np.asarray(shrinkage) == 1.0))
    entries = _entries(d, family.target if diagonal else "")
    covariances = 1 if family.pooling == 1.0 or (diagonal and family.pooling > 0.0) else K
    if not family.linear and diagonal and not family.shrinks_mixture:
        entries, covariances = _entries(d, ""), K  # only the pooled covariance is shrunk
    return ParameterCount(K * d, covariances * entries, _free_priors(model, K))


def _count_selected(model: Any, kinds: set[str]) -> ParameterCount:
    """Return the parameters of the p selected features; the others have no effect.

    `ShrunkenCentroids` has an overall mean, and the differences of class means that are not zero.
    """
    K, p = len(model.classes_), int(model.n_selected_)
    means, covariances = K * p, p
    if "ShrunkenCentroids" in kinds:
        means = min(p + int(np.count_nonzero(model.differences_)), K * p)
    elif "SDA" in kinds and model.shrinkage_ < 1.0:
        covariances = _entries(p, "")
    return ParameterCount(means, covariances, _free_priors(model, K))


def _count_mixture(model: Any) -> ParameterCount:
    K, (C, d) = len(model.classes_), model.means_.shape
    covariances = {"shared": 1, "class": K, "component": C}[model.covariance_structure_]
    entries = _entries(d, model.target if model.shrinkage == 1.0 else "")
    return ParameterCount(C * d, covariances * entries, C - K + _free_priors(model, K))


def _entries(d: int, target: str) -> int:
    """Return the number of free entries of a covariance matrix, given the name of its structure."""
    return {"diagonal": d, "scaled_identity": 1, "identity": 0}.get(target, d * (d + 1) // 2)


def _structured_entries(d: int, family: GaussianFamily) -> int:
    """Return the number of free parameters of a structured covariance."""
    m = family.factors
    # loadings up to a rotation, and specific variances
    factor = d * m - m * (m - 1) // 2 + d
    return {"diagonal": d, "spherical": 1, "factor": factor}.get(family.structure, _entries(d, ""))


def _count_weights(model: Any, kinds: set[str]) -> int:
    weights = np.atleast_2d(model.coef_)
    intercept = getattr(model, "intercept", getattr(model, "fit_intercept", True))
    columns = weights.shape[1] + bool(intercept)
    multiclass = hasattr(model, "classes_") and len(weights) > 1
    determined = kinds & {"Perceptron", "SVM", "LinearSVC", "SGDClassifier"}
    return int(columns * (len(weights) - (multiclass and not determined)))
