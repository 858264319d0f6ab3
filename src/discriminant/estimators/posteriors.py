"""Log posteriors of anybody's classifier, and the priors that they are under."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from discriminant.errors import PosteriorError
from discriminant.posterior import log_posterior
from discriminant.table.labels import code_labels
from discriminant.table.schema import Floats, Labels

_PRIORS = ("prior_", "priors_", "class_prior_")  # ours, and scikit-learn's


def log_posterior_of(model: Any, X: Any) -> Floats:
    """(n, K) normalised log posteriors of a fitted classifier."""
    name = type(model).__name__
    with np.errstate(divide="ignore"):  # a posterior of 0 has the log -inf, and that is meant
        if hasattr(model, "predict_log_proba"):
            found = np.asarray(model.predict_log_proba(X), dtype=np.float64)
        elif hasattr(model, "predict_proba"):
            found = np.log(np.asarray(model.predict_proba(X), dtype=np.float64))
        else:
            raise PosteriorError.absent(name)
    if found.ndim != 2 or found.shape[1] != len(model.classes_):
        raise PosteriorError.of_shape(found.shape, len(model.classes_))
    for row in np.flatnonzero(~(found.max(axis=1) > -np.inf) | np.isnan(found).any(axis=1)):
        raise PosteriorError.no_number(int(row), name)
    return log_posterior(found)


def stated_prior(model: Any, labels: Labels) -> Floats | None:
    """(K,) the priors that a fitted classifier says its posteriors are under, if it does."""
    model = _inmost(model)
    if hasattr(model, "class_log_prior_"):  # scikit-learn's naive Bayes for counts
        return np.asarray(np.exp(model.class_log_prior_), dtype=np.float64)
    for name in _PRIORS:
        found = getattr(model, name, None)
        if found is not None and np.shape(found) == labels.shape:
            return np.asarray(found, dtype=np.float64)
    return None


def share_of(model: Any, y: Any, sample_weight: Any, labels: Labels) -> Floats:
    """(K,) share of each class in the rows of a fit, as the classifier was told to count them.

    With `class_weight`, classifiers of scikit-learn weigh rows, so that posteriors are those of a
    population with other shares.
    """
    y = np.ravel(np.asarray(y))
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    counted = getattr(_inmost(model), "class_weight", None)
    if counted is not None:
        weight = weight * compute_sample_weight(counted, y)
    total = np.bincount(code_labels(y, labels), weights=weight, minlength=len(labels))
    return np.asarray(total / total.sum())


def _inmost(model: Any) -> Any:
    """The classifier at the end of a pipeline, or found by a search."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            model = model.steps[-1][1]
        else:
            return model
