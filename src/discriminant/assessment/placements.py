"""How much each row has to do with an AUC: placements and influences.

The AUC of positive rows P over negative rows Q is the share of pairs in order, a tie half of one.
The placement of a row is its own share (DeLong, DeLong and Clarke-Pearson 1988):

    V_i = share of Q below i, for i in P        V_j = share of P above j, for j in Q
    A   = mean of V over P = mean of V over Q

found for all rows by sorting, as in Sun and Xu (2014): N log N, never N^2. A row's influence on A
is (V - A) over the weight of its kind. An average of AUCs over classes, pairs or all scores at once
has the same average of influences f, and with rows independent within classes j of weight W_j

    Var = sum_j W_j / (W_j - 1)  sum_{i in j} w_i (f_i - mean_j f)^2

which for two classes is DeLong's. The difference of two AUCs of the same rows has the difference of
their influences, so that their covariance need not be written down. Weights count rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.assessment.steps import Judged
from discriminant.errors import ScoreError
from discriminant.table.schema import Floats

Mask = npt.NDArray[np.bool_]
_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")


@dataclass(frozen=True, slots=True, eq=False)
class Influences:
    """An AUC, and what each row has to do with it."""

    value: float
    each: Floats  # (N,) influence of a unit of weight of the row
    parts: dict[Any, float]  # the AUCs that it is the average of, by class or pair of classes

    def __sub__(self, other: Influences) -> Influences:
        """Those of the difference, of the same rows."""
        return Influences(self.value - other.value, self.each - other.each, {})


def placements(scores: npt.NDArray[Any], others: npt.NDArray[Any], weight: Floats | None) -> Floats:
    """(n,) share of the others below each score, a tie half of one.

    >>> placements(np.array([1, 2, 3]), np.array([0, 2]), None).tolist()
    [0.5, 0.75, 1.0]
    """
    order = np.argsort(scores)  # looked up in order, what is needed is in the cache
    keys = scores[order]
    if weight is None:
        others, total = np.sort(others), float(len(others))
        left, right = (np.searchsorted(others, keys, side=side) for side in _SIDES)
        below = np.add(left, right, dtype=np.float64)
    else:
        rank = np.argsort(others)
        others, sums = others[rank], np.append(0.0, np.cumsum(weight[rank]))
        total = float(sums[-1])
        left, right = (np.searchsorted(others, keys, side=side) for side in _SIDES)
        below = sums[left] + sums[right]
    found = np.empty(len(scores))
    found[order] = below / (2.0 * total)
    return found


def one_auc(scores: npt.NDArray[Any], own: Mask, weight: Floats | None) -> tuple[float, Floats]:
    """The AUC of some rows above the others, and the influence of each."""
    mine, theirs = (None, None) if weight is None else (weight[own], weight[~own])
    upper, lower = scores[own], scores[~own]
    placed = placements(upper, lower, theirs)
    value = float(np.average(placed, weights=mine))
    found = np.empty(len(scores))
    found[own] = (placed - value) / _total(mine, upper)
    found[~own] = (1.0 - placements(lower, upper, mine) - value) / _total(theirs, lower)
    return value, found


def averaged(rows: Judged, *, versus: str, average: str) -> Influences:
    """AUC of K classes: each against the rest or pair by pair, averaged."""
    if average == "micro":
        return _micro(rows)
    total, share = np.zeros(len(rows.codes)), class_weights(rows)
    parts, factors = {}, []
    terms = list(_rest(rows, share) if versus == "rest" else _pairs(rows, share))
    whole = sum(prevalence for *_, prevalence in terms)
    for name, some, columns, prevalence in terms:
        factor = prevalence / whole if average == "weighted" else 1.0 / len(terms)
        value = 0.0
        for k in columns:
            own = rows.codes[some] == k
            weight = None if rows.weight is None else rows.weight[some]
            one, influence = one_auc(rows.scores[some, k], own, weight)
            value += one / len(columns)
            total[some] += factor / len(columns) * influence
        parts[name] = value
        factors.append(factor)
    return Influences(float(np.dot(factors, list(parts.values()))), total, parts)


def variance(rows: Judged, influences: Influences) -> float:
    """Variance of an AUC, or of a difference, from the influences of its rows."""
    weight = np.ones(len(rows.codes)) if rows.weight is None else rows.weight
    share = class_weights(rows)
    for k in np.flatnonzero(share <= 1.0):
        raise ScoreError.too_few(rows.labels[k], float(share[k]))
    K = len(share)
    mean = np.bincount(rows.codes, weight * influences.each, minlength=K) / share
    apart = weight * (influences.each - mean[rows.codes]) ** 2
    return float((share / (share - 1.0)) @ np.bincount(rows.codes, apart, minlength=K))


def class_weights(rows: Judged) -> Floats:
    """(K,) weight of the rows of each class; refuses a class that has none."""
    share = np.bincount(rows.codes, rows.weight, minlength=len(rows.labels)).astype(np.float64)
    for k in np.flatnonzero(share == 0):
        raise ScoreError.class_absent(rows.labels[k])
    return share


Term = tuple[Any, Any, list[int], float]  # name, rows, columns of scores, weight


def _rest(rows: Judged, share: Floats) -> Iterator[Term]:
    for k, label in enumerate(rows.labels.tolist()):
        yield label, slice(None), [k], float(share[k])


def _pairs(rows: Judged, share: Floats) -> Iterator[Term]:
    names = rows.labels.tolist()
    members = [np.flatnonzero(rows.codes == k) for k in range(len(names))]
    for j, k in combinations(range(len(names)), 2):
        both = np.concatenate([members[j], members[k]])
        yield (names[j], names[k]), both, [j, k], float(share[j] + share[k])


def _micro(rows: Judged) -> Influences:
    """All scores as one list; the K scores of a row belong together."""
    class_weights(rows)
    K = len(rows.labels)
    own = (rows.codes[:, None] == np.arange(K)).ravel()
    weight = None if rows.weight is None else np.repeat(rows.weight, K)
    value, each = one_auc(rows.scores.ravel(), own, weight)
    return Influences(value, each.reshape(-1, K).sum(axis=1), {})


def _total(weight: Floats | None, rows: npt.NDArray[Any]) -> float:
    return float(len(rows)) if weight is None else float(weight.sum())
