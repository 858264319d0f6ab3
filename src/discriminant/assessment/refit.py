"""Held-out log posteriors of any scikit-learn classifier, by fitting it again for every fold.

A class that is missing from a training part cannot be predicted there: its log posterior is
-inf, and a warning names it. A classifier without posteriors is taken to be sure of what it says.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from discriminant.assessment.folds import FoldNumbers, rows_by_fold
from discriminant.errors import NoPosteriorWarning, tell
from discriminant.models.rules import Rule
from discriminant.table.schema import Codes, Floats, Labels
from discriminant.table.source import Table

_PRIORS = ("prior", "priors")  # ours, and scikit-learn's name for them


def refit_folds(
    estimator: Any,
    X: Any,
    *,
    labels: Labels,
    codes: Codes,
    weight: Floats | None,
    fold: FoldNumbers,
) -> Floats:
    """(N, K) log posteriors, each row's by a model that has not seen its fold."""
    found = np.full((len(codes), len(labels)), -np.inf)
    everybody = np.arange(len(codes))
    for test in rows_by_fold(fold):
        train = np.setdiff1d(everybody, test, assume_unique=True)
        present = present_classes(codes[train], None if weight is None else weight[train], labels)
        model = for_classes(clone(estimator), present)
        more = {} if weight is None else {"sample_weight": weight[train]}
        model.fit(_safe_indexing(X, train), labels[codes[train]], **more)
        columns = np.searchsorted(labels, model.classes_)
        found[np.ix_(test, columns)] = _log_posterior(model, _safe_indexing(X, test))
    return found


def rule_without(estimator: Any, moments: Any, table: Table, rows: Any) -> Rule:
    """The rule of all but some rows: of their moments, or of themselves if those lack digits."""
    if not estimator.needs_rows_for(moments):
        return cast(Rule, estimator.rule_from(moments))
    others = np.delete(np.arange(len(table)), rows)
    return cast(Rule, estimator.rule_of(table.take(others)))


def present_classes(codes: Codes, weight: Floats | None, labels: Labels) -> npt.NDArray[np.bool_]:
    """(K,) which classes have a row of positive weight."""
    some = codes if weight is None else codes[weight > 0]
    return np.bincount(some, minlength=len(labels)) > 0


def for_classes(estimator: Any, present: npt.NDArray[np.bool_]) -> Any:
    """The estimator with its priors, if it was given any, for the classes present alone."""
    if present.all():
        return estimator
    options = estimator.get_params(deep=False)
    for name in _PRIORS:
        if np.shape(options.get(name)) == present.shape:
            kept = np.asarray(options[name], dtype=np.float64)[present]
            return clone(estimator).set_params(**{name: kept / kept.sum()})
    return estimator


def _log_posterior(model: Any, X: Any) -> Floats:
    if hasattr(model, "predict_log_proba"):
        return np.asarray(model.predict_log_proba(X))
    with np.errstate(divide="ignore"):
        if hasattr(model, "predict_proba"):
            return np.asarray(np.log(model.predict_proba(X)))
        tell(NoPosteriorWarning.of(type(model).__name__))
        chosen = np.asarray(model.predict(X))[:, None] == np.asarray(model.classes_)
        return np.asarray(np.log(chosen.astype(np.float64)))
