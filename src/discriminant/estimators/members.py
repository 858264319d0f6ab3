"""Two-class estimators of any kind, fitted to the sides of a code one by one, on several cores.

A classifier is fitted to the classes 0 and 1, a regressor to the numbers 0 and 1. The score of a
classifier is its decision function or log odds; that of a regressor with output f is 2 f - 1, as if
it had been fitted to -1 and 1: positive above one half, and of the same order as f.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, has_fit_parameter

from discriminant.errors import (
    InfiniteValueError,
    LabelError,
    OptionError,
    ResponseError,
    ShapeError,
    WeightError,
)
from discriminant.estimators.available import is_regressor
from discriminant.models.codes import Signs
from discriminant.models.decomposition import SIDES
from discriminant.table.labels import encode_labels
from discriminant.table.schema import Codes, Floats, Labels, canonical_rows, is_sparse
from discriminant.table.source import Table, open_weight

_FURTHEST = 745.0  # log odds of the least probability that is not zero


@dataclass(frozen=True, slots=True, eq=False)
class FittedMembers:
    """M classifiers of the classes 0 and 1, or M regressors on the numbers 0 and 1."""

    fitted: tuple[Any, ...]

    def said(self, X: Any) -> Floats:
        """(n, M) what each says of each row: positive for its positive side."""
        found = np.column_stack([_said(model, X) for model in self.fitted])
        if len(self.fitted) > 1:  # infinite scores cannot be compared
            for row in np.flatnonzero(np.isinf(found).any(axis=1)):
                raise InfiniteValueError.of_row(int(row), type(self.fitted[0]).__name__)
        return found

    def log_odds(self, X: Any) -> Floats:
        """(n, M) log odds of the positive side."""
        return np.column_stack([_log_odds(model, X) for model in self.fitted])


def classes_of(X: Any, y: Any, name: str) -> tuple[Labels, Codes]:
    """Labels and the code of each row."""
    if y is None:
        raise LabelError.absent(name)
    labels, codes = encode_labels(y)
    if _num_samples(X) != len(codes):
        raise ShapeError.of_lengths("y", len(codes), _num_samples(X))
    return labels, codes


def fit_each(
    base: Any,
    X: Any,
    codes: Codes,
    signs: Signs,
    *,
    labels: Labels,
    sample_weight: Any,
    n_jobs: int | None,
    progress: Callable[[int, int], object] | None,
) -> FittedMembers:
    """A clone of the classifier for each column, fitted to the rows of its two sides."""
    weight = open_weight(sample_weight, len(codes))
    if weight is not None and not has_fit_parameter(base, "sample_weight"):
        raise WeightError.not_taken(type(base).__name__)
    if weight is not None:
        for k in np.flatnonzero(np.bincount(codes, weight, minlength=len(signs)) == 0):
            raise WeightError.class_without(labels[k])
    if is_sparse(X):
        X = canonical_rows(X)
    M = signs.shape[1]
    fits = (delayed(_fit_one)(clone(base), X, codes, signs[:, m], weight) for m in range(M))
    fitted = []
    for model in Parallel(n_jobs=n_jobs, return_as="generator")(fits):
        fitted.append(model)
        if progress is not None:
            progress(len(fitted), M)
    return FittedMembers(tuple(fitted))


def two_sided(table: Table, column: npt.NDArray[np.int8]) -> Table:
    """The rows of the two sides of a column, as rows of the classes 0 and 1."""
    side = column[table.codes]
    if not column.all():
        table, side = table.take(np.flatnonzero(side)), side[side != 0]
    schema = replace(table.schema, labels=SIDES)
    return replace(table, schema=schema, codes=(side > 0).astype(np.uint8))


def _fit_one(
    model: Any, X: Any, codes: Codes, column: npt.NDArray[np.int8], weight: Floats | None
) -> Any:
    side = column[codes]
    if not column.all():
        rows = np.flatnonzero(side)
        X, side = _safe_indexing(X, rows), side[rows]
        weight = None if weight is None else weight[rows]
    truth = SIDES[(side > 0).astype(np.intp)]
    try:
        return model.fit(X, truth) if weight is None else model.fit(X, truth, sample_weight=weight)
    except ResponseError as fault:
        allowed = "a regressor that can be fitted to 0 and 1, the codes of two classes"
        raise OptionError.of("estimator", type(model).__name__, allowed) from fault


def _said(model: Any, X: Any) -> Floats:
    if is_regressor(model):
        return 2.0 * np.ravel(np.asarray(model.predict(X), dtype=np.float64)) - 1.0
    if hasattr(model, "decision_function"):
        return np.ravel(np.asarray(model.decision_function(X), dtype=np.float64))
    if hasattr(model, "predict_proba"):
        return _log_odds(model, X)
    predicted = np.asarray(model.predict(X))
    if not np.isin(predicted, SIDES).all():
        allowed = "a classifier or a regressor that says so (ClassifierMixin, RegressorMixin)"
        raise OptionError.of("estimator", type(model).__name__, f"{allowed}: it predicts numbers")
    return np.where(predicted == 1, 1.0, -1.0)


def _log_odds(model: Any, X: Any) -> Floats:
    with np.errstate(divide="ignore"):
        if hasattr(model, "predict_log_proba"):
            logs = np.asarray(model.predict_log_proba(X), dtype=np.float64)
        else:
            logs = np.log(np.asarray(model.predict_proba(X), dtype=np.float64))
    return np.clip(logs[:, 1] - logs[:, 0], -_FURTHEST, _FURTHEST)
