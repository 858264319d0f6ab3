"""Log posteriors of anybody's classifier, and the priors that they are under."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from discriminant.errors import PosteriorError, WeightError
from discriminant.posterior import log_posterior, off_one
from discriminant.table.labels import code_labels
from discriminant.table.schema import Codes, Floats, Labels

_BY_WEIGHT = "sample_weight" in signature(compute_class_weight).parameters
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
    for place, total in off_one(np.exp(found)):
        raise PosteriorError.of_sum(place, total, name)
    return log_posterior(found)


def stated_prior(model: Any, labels: Labels) -> Floats | None:
    """(K,) the priors that a fitted classifier says its posteriors are under, if it does."""
    model = inmost(model)
    if hasattr(model, "class_log_prior_"):  # scikit-learn's naive Bayes for counts
        found = np.exp(np.asarray(model.class_log_prior_, dtype=np.float64))
        return found if found.shape == labels.shape else None
    for name in _PRIORS:
        prior = getattr(model, name, None)
        if prior is not None and np.shape(prior) == labels.shape:
            return np.asarray(prior, dtype=np.float64)
    return None


def share_of(model: Any, y: Any, sample_weight: Any, labels: Labels) -> Floats:
    """(K,) share of each class in the rows of a fit, as the classifier was told to count them.

    With `class_weight`, classifiers of scikit-learn weigh rows, so that posteriors are those of a
    population with other shares. A class that has no weight at all is refused.
    """
    codes = code_labels(np.ravel(np.asarray(y)), labels)
    given = 1.0 if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    weight = np.broadcast_to(given, codes.shape)
    total = np.bincount(codes, weights=weight, minlength=len(labels))
    for k in np.flatnonzero(total == 0):
        raise WeightError.class_without(labels[k])
    told = total * _factors(inmost(model), codes, weight, labels)
    return np.asarray(told / told.sum())


def _factors(model: Any, codes: Codes, weight: Floats, labels: Labels) -> Floats:
    """(K,) what `class_weight` multiplies the weight of a row by.

    'balanced' is by the number of rows; in logistic regression, since scikit-learn has it so, by
    their weights.
    """
    counted = getattr(model, "class_weight", None)
    if counted is None:
        return np.ones(len(labels))
    if not isinstance(counted, str):
        return np.array([float(counted.get(label, 1.0)) for label in labels.tolist()])
    from sklearn.linear_model import LogisticRegression

    weighed = isinstance(model, LogisticRegression) and _BY_WEIGHT
    count = np.bincount(codes, weights=weight if weighed else None, minlength=len(labels))
    return np.asarray(count.sum() / (len(labels) * count))  # 'balanced_subsample' in the mean


def inmost(model: Any) -> Any:
    """The classifier at the end of a pipeline, or found by a search."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            model = model.steps[-1][1]
        else:
            return model
