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
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.assessment.steps import Judged
from discriminant.errors import ScoreError
from discriminant.table.schema import Floats

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Influences:
    """An AUC, and what each row has to do with it."""

    value: float
    each: Floats  # (N,) influence of a unit of weight of the row
    parts: dict[Any, float]  # the AUCs that it is the average of, by class or pair of classes

    def __sub__(self, other: Influences) -> Influences:
        """Those of the difference, of the same rows."""
        return Influences(self.value - other.value, self.each - other.each, {})


def two_kinds(scores: npt.NDArray[Any], own: Mask) -> tuple[float, float]:
    """The AUC of some rows above the others, each of weight one, and DeLong's variance of it.

    The kinds are sorted apart and nothing is put back in order, which is the quickest way.

    >>> two_kinds(np.array([1, 2, 3, 0, 2]), np.arange(5) < 3)
    (0.75, 0.08333333333333333)
    """
    mine, others = (np.sort(scores[np.flatnonzero(some)]) for some in (own, ~own))
    placed = _placements(mine, others)
    value = float(placed[0].mean())
    return value, sum(_variance_of_mean(each, value) for each in placed)


def one_auc(scores: npt.NDArray[Any], own: Mask, weight: Floats | None) -> tuple[float, Floats]:
    """The AUC of some rows above the others, and the influence of each.

    >>> value, each = one_auc(np.array([1, 2, 3, 0, 2]), np.arange(5) < 3, None)
    >>> value, (3 * each[:3] + value).tolist()  # the placements of the first three
    (0.75, [0.5, 0.75, 1.0])
    """
    if weight is not None:
        return _weighed_auc(scores, own, weight)
    kinds = np.flatnonzero(own), np.flatnonzero(~own)
    ordered = [rows[np.argsort(scores[rows])] for rows in kinds]
    placed = _placements(scores[ordered[0]], scores[ordered[1]])
    value, found = float(placed[0].mean()), np.empty(len(own))
    for rows, each in zip(ordered, placed, strict=True):
        each -= value
        each /= len(rows)
        found[rows] = each
    return value, found


def _placements(mine: npt.NDArray[Any], others: npt.NDArray[Any]) -> tuple[Floats, Floats]:
    """Of m sorted scores and of n others, sorted: the share of the other kind below, and above.

    Others below i are counted by looking it up. Of mine, those below j are the ones that have at
    most j others below or beside them, so a running sum of these numbers counts them.
    """
    m, n = len(mine), len(others)
    below = np.searchsorted(others, mine)
    lower = np.cumsum(np.bincount(below, minlength=n)[:n])
    if not (others.take(below, mode="clip") == mine).any():
        return below / n, 1.0 - lower / m
    upto = np.searchsorted(others, mine, side="right")
    lower += np.cumsum(np.bincount(upto, minlength=n)[:n])
    return (below + upto) / (2.0 * n), 1.0 - lower / (2.0 * m)


def _variance_of_mean(placed: Floats, mean: float) -> float:
    """NaN of a single row; what is handed in is used up."""
    m = len(placed)
    placed -= mean
    return float(np.dot(placed, placed)) / (m - 1) / m if m > 1 else np.nan


def _weighed_auc(scores: npt.NDArray[Any], own: Mask, weight: Floats) -> tuple[float, Floats]:
    """All rows are sorted once; what lies below a row is the weight before its first equal, and
    half of that of its equals.
    """
    order = np.argsort(scores)
    mine, each = own[order], weight[order]
    before, everybody = _running(np.where(mine, each, 0.0)), _running(each)
    first, last = _equals(scores[order])
    below = before[first] + before[last]
    others = everybody[first] + everybody[last] - below
    total, rest = float(before[-1]), float(everybody[-1] - before[-1])
    placed = np.where(mine, others / (2.0 * rest), 1.0 - below / (2.0 * total))
    value = float(np.average(placed[mine], weights=each[mine]))
    found = np.empty(len(order))
    found[order] = (placed - value) / np.where(mine, total, rest)
    return value, found


def _running(values: npt.NDArray[Any]) -> Floats:
    """(n + 1,) sums of the first 0, 1, ... n values."""
    found = np.zeros(len(values) + 1)
    np.cumsum(values, out=found[1:])
    return found


def _equals(keys: npt.NDArray[Any]) -> tuple[Any, Any]:
    """Where the equals of each of some sorted keys begin, and where they have ended."""
    fresh = np.append(True, keys[1:] != keys[:-1])
    if fresh.all():
        return slice(0, len(keys)), slice(1, len(keys) + 1)
    starts = np.flatnonzero(fresh)
    group = np.cumsum(fresh) - 1
    return starts[group], np.append(starts[1:], len(keys))[group]


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
