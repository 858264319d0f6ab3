"""Prediction sets: conformity scores, p-values and sets of classes from log posteriors.

The conformity of a row with class k is large if the class is plausible for the row:

    lac   log P(k|x)                                              Sadinle, Lei and Wasserman 2019
    aps   sum of P(l|x) over all classes l less probable than k, plus u P(k|x)
                                                                  Romano, Sesia and Candes 2020

with u uniform on [0, 1); u is a function of the row, so that the same row always has the same set.
With n calibration rows, each scored by a model fitted without it,

    p_k(x) = (1 + number of calibration rows with at most the conformity of (x, k)) / (n + 1)

and the set of a row is {k: p_k(x) > 1 - coverage}. If rows are exchangeable and one model scores
all rows (split conformal prediction, Vovk, Gammerman and Shafer 2005), P(p_y(x) <= a) <= a, so the
set contains the true class with probability `coverage` or more.

The models of a cross-validation can be used instead of one model (cross-conformal prediction, Vovk
2015; jackknife+, Barber et al. 2021). For each calibration row, the conformity of the new row is
then computed by the model that was fitted without the fold of this calibration row. The guaranteed
probability is 2 coverage - 1, up to a term that vanishes as the folds grow. In practice the
probability is near `coverage`.

If p-values are computed by class (Mondrian), class k is compared only
with calibration rows of class k, and the guarantee holds for each class.

Weights are frequencies: a row of weight 2 counts as two rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import OptionError
from discriminant.moments.probability_scores import TIE
from discriminant.table.blocks import Floats, Places

Sets = npt.NDArray[np.bool_]  # (n, K): True where the set of the row contains the class

SCORES = ("lac", "aps")


def conformity_of(log_posterior: Floats, score: str, uniform: Floats) -> Floats:
    """Return the (n, K) conformity of each row with each class.

    `uniform` (n,) holds the number u of each row, for 'aps'.

    >>> conformity_of(np.log([[0.5, 0.3, 0.2]]), "aps", np.array([0.5])).round(12)
    array([[0.75, 0.35, 0.1 ]])
    """
    if score == "lac":
        return log_posterior
    order = np.argsort(-log_posterior, axis=1, kind="stable")
    p = np.exp(np.take_along_axis(log_posterior, order, axis=1))
    # summed from the least probable class, so that small tails are exact
    below = np.cumsum(p[:, :0:-1], axis=1)[:, ::-1]
    tail = np.hstack([below, np.zeros((len(p), 1))])
    values = np.empty_like(p)
    np.put_along_axis(values, order, tail + uniform[:, None] * p, axis=1)
    return values


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationScores:
    """Conformity of n calibration rows with their true classes."""

    values: Floats  # (n,)
    codes: Places  # (n,) true class of each row
    fold: Places  # (n,) model that scored the row
    weight: Floats | None = None  # (n,)
    score: str = "lac"
    seed: int = 0  # seed of the hashes from which u is computed

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of calibration scores are invalid, or None."""
        arrays = [parts[name] for name in ("values", "codes", "fold")]
        if parts.get("weight") is not None:
            arrays.append(parts["weight"])
        n = len(parts["values"])
        if any(array.shape != (n,) for array in arrays) or not n:
            return "values, codes, fold and weight must be vectors of one length"
        if parts.get("score", "lac") not in SCORES:
            return f"score must be one of {', '.join(SCORES)}"
        if min(parts["codes"].min(), parts["fold"].min()) < 0:
            return "codes and folds must not be negative"
        return None

    def total(self, classes: int, *, by_class: bool) -> Floats:
        """Return the (K,) numbers of calibration rows with which each class is compared."""
        if by_class:
            return np.bincount(self.codes, self.weight, classes).astype(np.float64)
        n = float(len(self.values)) if self.weight is None else float(self.weight.sum())
        return np.full(classes, n)

    def count(self, fold: int, values: Floats, *, by_class: bool) -> Floats:
        """Return (m, K) counts of calibration rows whose conformity is at most that of new rows.

        `values` (m, K) is the conformity of the new rows with each class. Only calibration rows
        that the model `fold` scored are counted.
        """
        rows = np.flatnonzero(self.fold == fold)
        counts = np.empty(values.shape)
        for k in range(values.shape[1]):
            if by_class or k == 0:
                own = rows[self.codes[rows] == k] if by_class else rows
                order = own[np.argsort(self.values[own], kind="stable")]
                weight = np.ones(len(order)) if self.weight is None else self.weight[order]
                ranked = _lower(self.values[order])
                below = np.concatenate([[0.0], np.cumsum(weight)])
            counts[:, k] = below[np.searchsorted(ranked, values[:, k], side="right")]
        return counts

    def count_each(self, values: Floats, *, by_class: bool) -> Floats:
        """Return (m, K) counts of calibration rows whose conformity is at most that of new rows.

        Each of the n calibration rows is compared with the values `values[:, :, i]` for this row;
        `values` has shape (K, m, n).
        """
        lowered, counts = _lower(self.values), np.empty(values.shape[1::-1])
        for k, of_class in enumerate(values):
            own = np.flatnonzero(self.codes == k) if by_class else slice(None)
            below = lowered[own] <= of_class[:, own]
            if self.weight is None:  # a loop over rows, which is faster than axis=1
                counts[:, k] = [np.count_nonzero(row) for row in below]
            else:
                counts[:, k] = below @ self.weight[own]
        return counts


def p_values(counts: Floats, total: Floats) -> Floats:
    """Return the (m, K) p-values.

    `counts` (m, K) is the number of calibration rows with at most the conformity of the new row.
    """
    return np.asarray((1.0 + counts) / (1.0 + total))


def prediction_sets(p_value: Floats, coverage: float, log_posterior: Floats | None = None) -> Sets:
    """Return the sets (n, K) of the classes whose p-value exceeds 1 - coverage.

    With `log_posterior` (n, K), an empty set is replaced by the most probable class.

    >>> prediction_sets(np.array([[0.3, 0.1], [0.02, 0.1]]), 0.9)
    array([[ True, False],
           [False, False]])
    """
    # p-values are quotients of whole numbers: a p-value equal to 1 - coverage must not exceed it
    sets = p_value > (1.0 - coverage) * (1.0 + TIE)
    if log_posterior is not None:
        empty = np.flatnonzero(~sets.any(axis=1))
        sets[empty, log_posterior[empty].argmax(axis=1)] = True
    return np.asarray(sets)


def check_coverage(coverage: Any) -> float:
    """Return the coverage as a float; raise `OptionError` unless it is between 0 and 1."""
    number = isinstance(coverage, int | float | np.number) and not isinstance(coverage, bool)
    if not number or not 0.0 < float(coverage) < 1.0:
        allowed = (
            "a number above 0 and below 1, such as 0.9: with 0 every set is empty, and with 1 "
            "every set has all classes"
        )
        raise OptionError.of("coverage", coverage, allowed)
    return float(coverage)


def needed_rows(coverage: float) -> int:
    """Return the smallest number of calibration rows for which a set can exclude a class.

    >>> needed_rows(0.9), needed_rows(0.95), needed_rows(0.5)
    (9, 19, 1)
    """
    return int(np.ceil((coverage / (1.0 - coverage)) * (1.0 - TIE)))


def uniform_numbers(hashes: npt.NDArray[np.uint64]) -> Floats:
    """Return an (n,) array of numbers in [0, 1), computed from hashes of the rows."""
    return np.asarray((hashes >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _lower(values: Floats) -> Floats:
    """Reduce the values by a relative `TIE`, so that values within `TIE` count as equal."""
    return np.asarray(values - np.abs(np.where(np.isfinite(values), values, 0.0)) * TIE)
