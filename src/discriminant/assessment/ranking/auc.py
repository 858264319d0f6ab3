"""Area under the ROC curve (AUC) with its interval, and DeLong's test of two AUCs.

The AUC `A` is the share of pairs (positive row, negative row) in which the positive row has the
higher score; a tie counts half.

    Var A = s^2(V over positive rows) / m + s^2(V over negative rows) / n     V: placements

    interval   A ± z sd, cut to [0, 1]                          ("delong", as R's pROC)
               logit^-1( logit A ± z sd / (A (1 - A)) )         ("logit": inside of (0, 1) if A is)

Two AUCs of the same rows are compared by z = (A1 - A2) / sd, which is normally distributed, with sd
from the variance of the differences of placements. AUCs of different rows are compared by t on
Welch's degrees of freedom, as in pROC,

    df = (Var1 + Var2)^2 / (Var1^2 / (N1 - 1) + Var2^2 / (N2 - 1))

For K classes the AUC is the mean over classes, each against the rest, or the mean over pairs of
classes (Hand and Till's M, 2001: the rows of two classes are ranked by the scores of either class).

The placement V of a row is the share of its pairs that are ranked correctly (DeLong, DeLong and
Clarke-Pearson 1988). With P the positive and Q the negative rows:

    V_i = share of Q below i, for i in P        V_j = share of P above j, for j in Q
    A   = mean of V over P = mean of V over Q

Sorting gives the placements of all rows in N log N operations, as in Sun and Xu (2014). The
influence f of a row on A is V - A, divided by the weight of P for a positive row and by the weight
of Q for a negative row. If AUCs are averaged over classes or pairs, their influences are averaged
in the same way. If the rows of class j, of weight W_j, are independent,

    Var = sum_j W_j / (W_j - 1)  sum_{i in j} w_i (f_i - mean_j f)^2

which is DeLong's variance if there are two classes. The influences on a difference of two AUCs of
the same rows are the differences of the influences, so no covariance is needed. Weights count rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from discriminant.assessment.intervals import check_level
from discriminant.assessment.printed_results import (
    PrintedResult,
    format_number,
    format_p,
    text_table,
)
from discriminant.assessment.ranking.roc import (
    Average,
    RankedRows,
    area_error,
    counts_by_score,
    exact_steps,
    positive_rows,
    ranked_rows,
    reject_beside_ranking,
)
from discriminant.errors import NoSpreadWarning, OptionError, ScoreError, ShapeError, warn
from discriminant.moments.ranking import Ranking, ScoreCounts
from discriminant.table.blocks import Floats

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class AUCInfluences:
    """An AUC, and the influence of each row on it."""

    value: float
    by_row: Floats  # (N,) influence of the row on the AUC, per unit of its weight
    # if the AUC is an average: the averaged AUCs, by class or pair of classes
    parts: dict[Any, float]

    def __sub__(self, other: AUCInfluences) -> AUCInfluences:
        """Return the influences of the rows on the difference of two AUCs of the same rows."""
        return AUCInfluences(self.value - other.value, self.by_row - other.by_row, {})


def delong(scores: npt.NDArray[Any], own: Mask) -> tuple[float, float]:
    """Return the AUC of the positive rows (`own`) against all other rows, and DeLong's variance.

    All rows have weight one.

    The scores of positive and negative rows are sorted separately: sorting is faster than argsort.

    >>> delong(np.array([1, 2, 3, 0, 2]), np.arange(5) < 3)
    (0.75, 0.08333333333333333)
    """
    positive, negative = (np.sort(scores[np.flatnonzero(mask)]) for mask in (own, ~own))
    placements = _placements(positive, negative)
    value = float(placements[0].mean())
    return value, sum(_variance_of_mean(values, value) for values in placements)


def auc_influences(
    scores: npt.NDArray[Any], own: Mask, weight: Floats | None
) -> tuple[float, Floats]:
    """Return the AUC of the positive rows (`own`) against the others, and the rows' influences.

    >>> value, influence = auc_influences(np.array([1, 2, 3, 0, 2]), np.arange(5) < 3, None)
    >>> value, (3 * influence[:3] + value).tolist()  # the placements of the first three
    (0.75, [0.5, 0.75, 1.0])
    """
    if weight is not None:
        return _weighted_influences(scores, own, weight)
    kinds = np.flatnonzero(own), np.flatnonzero(~own)
    ordered = [rows[np.argsort(scores[rows])] for rows in kinds]
    placements = _placements(scores[ordered[0]], scores[ordered[1]])
    value, influence = float(placements[0].mean()), np.empty(len(own))
    for rows, values in zip(ordered, placements, strict=True):
        values -= value
        values /= len(rows)
        influence[rows] = values
    return value, influence


def _placements(positive: npt.NDArray[Any], negative: npt.NDArray[Any]) -> tuple[Floats, Floats]:
    """Return the placements of m sorted positive and n sorted negative scores.

    The placement of a positive score is the share of negative scores below it; the placement of a
    negative score is the share of positive scores above it.

    The negative scores below each positive score are counted by binary search. A positive score
    lies below the j-th negative score if at most j negative scores are less than or equal to it,
    so a cumulative sum of the counts gives the number of such scores.
    """
    m, n = len(positive), len(negative)
    below = np.searchsorted(negative, positive)
    lower = np.cumsum(np.bincount(below, minlength=n)[:n])
    if not (negative.take(below, mode="clip") == positive).any():
        return below / n, 1.0 - lower / m
    upto = np.searchsorted(negative, positive, side="right")
    lower += np.cumsum(np.bincount(upto, minlength=n)[:n])
    return (below + upto) / (2.0 * n), 1.0 - lower / (2.0 * m)


def _variance_of_mean(values: Floats, mean: float) -> float:
    """Return the variance of a mean of `values`; NaN if there is only one value. Overwrites
    `values`.
    """
    m = len(values)
    values -= mean
    return float(np.dot(values, values)) / (m - 1) / m if m > 1 else np.nan


def _weighted_influences(
    scores: npt.NDArray[Any], own: Mask, weight: Floats
) -> tuple[float, Floats]:
    """Return the AUC of weighted rows, and the influence of each row on it.

    All rows are sorted once. The weight below a row is the total weight of the rows with lower
    scores, plus half the weight of the rows with equal scores.
    """
    order = np.argsort(scores)
    own, weight = own[order], weight[order]
    positive, both = _cumulative(np.where(own, weight, 0.0)), _cumulative(weight)
    first, last = _ties(scores[order])
    below = positive[first] + positive[last]
    others = both[first] + both[last] - below
    total, rest = float(positive[-1]), float(both[-1] - positive[-1])
    placements = np.where(own, others / (2.0 * rest), 1.0 - below / (2.0 * total))
    value = float(np.average(placements[own], weights=weight[own]))
    influence = np.empty(len(order))
    influence[order] = (placements - value) / np.where(own, total, rest)
    return value, influence


def _cumulative(values: npt.NDArray[Any]) -> Floats:
    """Return the cumulative sums of n values, starting with 0, (n + 1,)."""
    sums = np.zeros(len(values) + 1)
    np.cumsum(values, out=sums[1:])
    return sums


def _ties(keys: npt.NDArray[Any]) -> tuple[Any, Any]:
    """Return, for each of the sorted keys, the start and the end of the run of equal keys."""
    new = np.append(True, keys[1:] != keys[:-1])
    if new.all():
        return slice(0, len(keys)), slice(1, len(keys) + 1)
    starts = np.flatnonzero(new)
    group = np.cumsum(new) - 1
    return starts[group], np.append(starts[1:], len(keys))[group]


def average_auc(rows: RankedRows, *, versus: str, average: str) -> AUCInfluences:
    """Return the average AUC of K classes: each class against the rest, or all pairs of classes."""
    if average == "micro":
        return _micro(rows)
    influence, class_weight = np.zeros(len(rows.codes)), class_weight_sums(rows)
    parts, factors = {}, []
    terms = list(
        _rest_terms(rows, class_weight) if versus == "rest" else _pair_terms(rows, class_weight)
    )
    total = sum(term_weight for *_, term_weight in terms)
    for name, members, columns, term_weight in terms:
        factor = term_weight / total if average == "weighted" else 1.0 / len(terms)
        value = 0.0
        for k in columns:
            own = rows.codes[members] == k
            weight = None if rows.weight is None else rows.weight[members]
            column_auc, by_row = auc_influences(rows.scores[members, k], own, weight)
            value += column_auc / len(columns)
            influence[members] += factor / len(columns) * by_row
        parts[name] = value
        factors.append(factor)
    return AUCInfluences(float(np.dot(factors, list(parts.values()))), influence, parts)


def variance(rows: RankedRows, influences: AUCInfluences) -> float:
    """Return the variance of an AUC, or of a difference of AUCs, from the rows' influences."""
    weight = np.ones(len(rows.codes)) if rows.weight is None else rows.weight
    class_weight = class_weight_sums(rows)
    for k in np.flatnonzero(class_weight <= 1.0):
        raise ScoreError.too_few(rows.labels[k], float(class_weight[k]))
    K = len(class_weight)
    mean = np.bincount(rows.codes, weight * influences.by_row, minlength=K) / class_weight
    squares = weight * (influences.by_row - mean[rows.codes]) ** 2
    factor = class_weight / (class_weight - 1.0)
    return float(factor @ np.bincount(rows.codes, squares, minlength=K))


def class_weight_sums(rows: RankedRows) -> Floats:
    """Return the total weight of the rows of each class, (K,); no class may be empty."""
    weight = np.bincount(rows.codes, rows.weight, minlength=len(rows.labels)).astype(np.float64)
    for k in np.flatnonzero(weight == 0):
        raise ScoreError.class_absent(rows.labels[k])
    return weight


# name, indices of the rows, columns of the scores, weight in the average
Term = tuple[Any, Any, list[int], float]


def _rest_terms(rows: RankedRows, class_weight: Floats) -> Iterator[Term]:
    for k, label in enumerate(rows.labels.tolist()):
        yield label, slice(None), [k], float(class_weight[k])


def _pair_terms(rows: RankedRows, class_weight: Floats) -> Iterator[Term]:
    names = rows.labels.tolist()
    members = [np.flatnonzero(rows.codes == k) for k in range(len(names))]
    for j, k in combinations(range(len(names)), 2):
        both = np.concatenate([members[j], members[k]])
        yield (names[j], names[k]), both, [j, k], float(class_weight[j] + class_weight[k])


def _micro(rows: RankedRows) -> AUCInfluences:
    """Return the micro-averaged AUC, which ranks all N K scores as one list.

    The variance takes into account that the K scores of a row are dependent.
    """
    class_weight_sums(rows)
    K = len(rows.labels)
    own = (rows.codes[:, None] == np.arange(K)).ravel()
    weight = None if rows.weight is None else np.repeat(rows.weight, K)
    value, influence = auc_influences(rows.scores.ravel(), own, weight)
    return AUCInfluences(value, influence.reshape(-1, K).sum(axis=1), {})


Versus = Literal["rest", "pairs"]
Method = Literal["delong", "logit"]
Alternative = Literal["two-sided", "less", "greater"]
_OTHERS = "all others"


@dataclass(frozen=True, slots=True, eq=False)
class AUC:
    """Area under the ROC curve with its interval."""

    value: float
    low: float  # NaN if no interval was requested
    high: float
    standard_error: float
    level: float | None  # confidence level of the interval
    weight: float  # number of all rows
    positive: Any = None  # the label that high scores indicate; None for an average over classes
    # for an average: the AUC of each class or pair of classes
    parts: dict[Any, float] | None = None
    # bound on the error of `value`; 0 unless computed from a Ranking whose bins are full
    error: float = 0.0

    def __repr__(self) -> str:
        text = f"{self.value:.4f}" + (f" ± {self.error:.2g}" if self.error else "")
        if self.level is not None:
            text += f", {self.level:.0%}: {self.low:.4f} to {self.high:.4f}"
        return f"AUC({text})"

    def __float__(self) -> float:
        return self.value

    def to_dict(self) -> dict[str, Any]:
        """Return the AUC as a dictionary of plain numbers and texts."""
        names = ("value", "low", "high", "standard_error", "weight", "error")
        facts: dict[str, Any] = {name: float(getattr(self, name)) for name in names}
        facts["level"] = None if self.level is None else float(self.level)
        parts = [{"of": of, "value": float(value)} for of, value in (self.parts or {}).items()]
        return facts | {"parts": parts}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AUCComparison(PrintedResult):
    """Result of `compare_auc`: two AUCs and the test of their difference."""

    first: AUC
    second: AUC
    paired: bool  # whether both AUCs are of the same rows
    difference: float  # first - second
    low: float
    high: float
    standard_error: float
    statistic: float  # `z`, or `t` if the rows differ
    df: float  # degrees of freedom; infinite for `z`
    p: float
    alternative: Alternative
    level: float

    @property
    def text(self) -> str:
        """Table of the two AUCs and their difference, and one line for the test."""
        lines = [
            [name, *map(format_number, values)]
            for name, *values in (
                ("First", self.first.value, self.first.low, self.first.high),
                ("Second", self.second.value, self.second.low, self.second.high),
                ("Difference", self.difference, self.low, self.high),
            )
        ]
        name = "z" if np.isinf(self.df) else f"t on {self.df:.2f} degrees of freedom"
        rows = "the same rows" if self.paired else "different rows"
        test = (
            f"DeLong: {name} = {format_number(self.statistic, 4)}, p = {format_p(self.p)} "
            f"({self.alternative})"
        )
        table = text_table(f"AUCs of {rows}", ["", "AUC", "Low", "High"], lines)
        return "\n".join([*table, "", test])


@np.errstate(under="ignore")
def auc(
    labels: Any,
    scores: Any = None,
    interval: float | None = 0.95,
    *,
    positive: Any = None,
    classes: Any = None,
    versus: Versus = "rest",
    average: Average = "macro",
    method: Method = "delong",
    sample_weight: Any = None,
) -> AUC:
    """Compute the area under the ROC curve, with DeLong's interval.

    Parameters
    ----------
    labels : array of shape (N,) or Ranking
        True labels; or a `Ranking`, which has its own scores and weights.
    scores : array of shape (N,) or (N, K)
        As in `roc`. NaN raises an error; infinite scores are the highest and the lowest.
    interval : float, optional
        Level of the interval; None computes only the value, which is faster.
    positive, classes
        As in `roc`.
    versus : {'rest', 'pairs'}
        With K > 2 columns: each class against the rest, or pairs of classes.
    average : {'macro', 'weighted', 'micro'}
        With K > 2 columns: the mean over classes or pairs ('macro'), the mean weighted by their
        rows ('weighted'), or the AUC of all scores as one list ('micro', only with versus='rest').
        versus='pairs' with 'macro' is Hand and Till's M.
    method : {'delong', 'logit'}
        'logit' is more accurate for an AUC near 1, and its interval stays inside (0, 1). At an AUC
        of exactly 0 or 1 both intervals have zero width.
    sample_weight : array of shape (N,), optional
        Number of rows that each row stands for.

    Returns
    -------
    AUC

    Examples
    --------
    >>> auc(["well", "well", "ill", "ill"], [0.1, 0.4, 0.35, 0.8], positive="ill")
    AUC(0.7500, 95%: 0.0570 to 1.0000)
    """
    _check_options(versus, average, method)
    if interval is not None:
        interval = check_level(interval, "interval")
    if isinstance(labels, Ranking):
        reject_beside_ranking(
            versus=None if versus == "rest" else versus,
            average=None if average == "macro" else average,
        )
        steps, positive = counts_by_score(
            labels, scores, positive=positive, classes=classes, sample_weight=sample_weight
        )
        return _auc_of_steps(steps, [_OTHERS, positive], interval, method)
    rows, positive = ranked_rows(
        labels, scores, positive=positive, classes=classes, sample_weight=sample_weight
    )
    if rows.multiclass:
        influences = average_auc(rows, versus=versus, average=average)
        area = _auc_of_influences(rows, influences, None, interval, method)
        if interval is not None:
            constant = bool((rows.scores == rows.scores[:1]).all())
            _warn_if_degenerate(area.value, area.standard_error, constant, area.weight)
        return area
    rows, own = as_two_classes(rows, positive)
    names = rows.labels.tolist()
    if rows.weight is None:
        return _auc_of_rows(rows.scores, own, names, interval, method)
    return _auc_of_steps(exact_steps(rows.scores, own, rows.weight), names, interval, method)


@np.errstate(under="ignore")
def compare_auc(
    labels: Any,
    first: Any,
    second: Any,
    *,
    second_labels: Any = None,
    level: float = 0.95,
    alternative: Alternative = "two-sided",
    positive: Any = None,
    classes: Any = None,
    versus: Versus = "rest",
    average: Average = "macro",
    sample_weight: Any = None,
    second_weight: Any = None,
) -> AUCComparison:
    """Test whether two AUCs differ, by DeLong's test.

    Parameters
    ----------
    labels : array of shape (N,)
        True labels.
    first, second : array of shape (N,) or (N, K)
        Scores of the same rows by two models, on any scales.
    second_labels, second_weight : array, optional
        Labels and weights of the rows scored by `second`, if these are not the rows scored by
        `first`. The two AUCs are then independent.
    level : float, default=0.95
        Confidence level of the intervals of both AUCs and of the difference.
    alternative : {'two-sided', 'less', 'greater'}
        Alternative hypothesis; 'less' means that the first AUC is less than the second.
    positive, classes, versus, average, sample_weight
        As in `auc`.

    Returns
    -------
    AUCComparison

    Examples
    --------
    >>> labels = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> test = compare_auc(labels, [1, 2, 3, 6, 4, 5, 7, 8], [1, 6, 3, 7, 4, 2, 5, 8])
    >>> test.difference, round(test.p, 4)
    (0.3125, 0.1138)
    """
    _check_options(versus, average, "delong")
    level = check_level(level)
    if alternative not in ("two-sided", "less", "greater"):
        raise OptionError.of("alternative", alternative, "'two-sided', 'less' or 'greater'")
    options = {"positive": positive, "classes": classes}
    first_rows, name = ranked_rows(labels, first, sample_weight=sample_weight, **options)
    paired = second_labels is None
    if paired and np.shape(second)[:1] != np.shape(first)[:1]:
        raise ShapeError.of_lengths("second", np.shape(second)[0], np.shape(first)[0])
    weight = sample_weight if paired else second_weight
    second_rows, _ = ranked_rows(
        labels if paired else second_labels, second, sample_weight=weight, **options
    )
    sides = [_influences(rows, name, versus, average) for rows in (first_rows, second_rows)]
    aucs = [_auc_of_influences(rows, influences, name, level) for rows, influences in sides]
    if paired:
        total = variance(sides[0][0], sides[0][1] - sides[1][1])
        df = np.inf
    else:
        variances = np.array([side.standard_error**2 for side in aucs])
        counts = np.array([side.weight for side in aucs])
        total = float(variances.sum())
        df = total**2 / float(np.sum(variances**2 / (counts - 1.0))) if total else np.inf
    return _compare(aucs[0], aucs[1], paired, total, df, alternative, level)


def as_two_classes(rows: RankedRows, positive: Any) -> tuple[RankedRows, Any]:
    """Merge the classes into two, negative and positive; also return the (N,) mask of positives."""
    own = positive_rows(rows, positive)
    others = [label for label in rows.labels.tolist() if label != positive]
    names = np.empty(2, dtype=object)
    names[:] = [others[0] if len(others) == 1 else _OTHERS, positive]
    return replace(rows, labels=names, codes=own.astype(np.uint8)), own


def _influences(
    rows: RankedRows, positive: Any, versus: str, average: str
) -> tuple[RankedRows, AUCInfluences]:
    if rows.multiclass:
        return rows, average_auc(rows, versus=versus, average=average)
    rows, own = as_two_classes(rows, positive)
    return rows, AUCInfluences(*auc_influences(rows.scores, own, rows.weight), {})


def _auc_of_influences(
    rows: RankedRows,
    influences: AUCInfluences,
    positive: Any,
    level: float | None,
    method: Method = "delong",
) -> AUC:
    total = float(len(rows.codes)) if rows.weight is None else float(rows.weight.sum())
    value, nan = influences.value, np.nan
    area = AUC(value, nan, nan, nan, None, total, positive, influences.parts or None)
    if level is None:
        return area
    se = float(np.sqrt(variance(rows, influences)))
    low, high = _interval(value, se, level, method)
    return replace(area, low=low, high=high, standard_error=se, level=level)


def _auc_of_rows(
    scores: Any, own: Any, names: list[Any], interval: float | None, method: Method
) -> AUC:
    """Return the AUC of rows that all have weight one."""
    value, variance = delong(scores, own)
    m = float(np.count_nonzero(own))
    area = AUC(value, np.nan, np.nan, np.nan, None, float(len(own)), names[1])
    constant = variance == 0.0 and bool((scores == scores[0]).all())
    weights = dict(zip(names, (area.weight - m, m), strict=True))
    return _with_interval(area, interval, method, variance, weights, constant=constant)


def _auc_of_steps(
    steps: ScoreCounts, names: list[Any], interval: float | None, method: Method
) -> AUC:
    """Return the AUC from the weights of the positive and the negative rows at each score."""
    m, n = float(steps.positive.sum()), float(steps.negative.sum())
    below = np.cumsum(steps.negative)
    below -= 0.5 * steps.negative
    value = float(steps.positive @ below) / m / n
    error = area_error(steps)
    area = AUC(value, np.nan, np.nan, np.nan, None, m + n, names[1], error=error)
    above = np.cumsum(steps.positive[::-1])[::-1] - 0.5 * steps.positive
    variance = _weighted_variance_of_mean(below / n - value, steps.positive, m)
    variance += _weighted_variance_of_mean(above / m - value, steps.negative, n)
    weights, constant = dict(zip(names, (n, m), strict=True)), len(steps.threshold) == 1
    return _with_interval(area, interval, method, variance, weights, constant=constant)


def _with_interval(
    area: AUC,
    level: float | None,
    method: Method,
    variance: float,
    weights: dict[Any, float],
    *,
    constant: bool,
) -> AUC:
    """Return the AUC with its interval, or without an interval if `level` is None.

    `weights` are the total weights of the positive and of the negative rows.
    """
    if level is None:
        return area
    for name, total in weights.items():
        if total <= 1.0:
            raise ScoreError.too_few(name, total)
    se = float(np.sqrt(variance))
    _warn_if_degenerate(area.value, se, constant, area.weight)
    low, high = _interval(area.value, se, level, method)
    return replace(area, low=low, high=high, standard_error=se, level=level)


def _weighted_variance_of_mean(deviations: Floats, weight: Floats, total: float) -> float:
    return float(weight @ np.square(deviations)) / (total - 1.0) / total if total > 1.0 else np.nan


def _interval(value: float, se: float, level: float, method: Method) -> tuple[float, float]:
    z = float(special.ndtri(0.5 + 0.5 * level))
    if method == "delong" or not 0.0 < value < 1.0:
        return max(value - z * se, 0.0), min(value + z * se, 1.0)
    step = z * se / (value * (1.0 - value))
    middle = special.logit(value)
    return float(special.expit(middle - step)), float(special.expit(middle + step))


def _warn_if_degenerate(value: float, se: float, constant: bool, rows: float) -> None:
    if constant:
        warn(NoSpreadWarning.of_constant(int(rows)))
    elif se == 0.0 and value in (0.0, 1.0):
        warn(NoSpreadWarning.of_auc(value))


def _compare(
    first: AUC,
    second: AUC,
    paired: bool,
    variance: float,
    df: float,
    alternative: Alternative,
    level: float,
) -> AUCComparison:
    """Test the difference of two AUCs, given its variance."""
    gap, sd = first.value - second.value, float(np.sqrt(variance))
    if sd <= 1e-15:  # an sd this small is rounding error
        sd = 0.0
        warn(NoSpreadWarning.of_comparison(gap))
    z = gap / sd if sd else float(np.copysign(np.inf, gap)) if abs(gap) > 1e-15 else 0.0
    lower = float(special.ndtr(z) if np.isinf(df) else special.stdtr(df, z))
    upper = float(special.ndtr(-z) if np.isinf(df) else special.stdtr(df, -z))
    p = {"two-sided": 2.0 * min(lower, upper), "less": lower, "greater": upper}[alternative]
    half = 0.5 + 0.5 * level
    reach = sd * float(special.ndtri(half) if np.isinf(df) else special.stdtrit(df, half))
    ends = max(gap - reach, -1.0), min(gap + reach, 1.0)
    return AUCComparison(first, second, paired, gap, *ends, sd, z, df, p, alternative, level)


def _check_options(versus: str, average: str, method: str) -> None:
    for name, value, allowed in (
        ("versus", versus, ("rest", "pairs")),
        ("average", average, ("macro", "weighted", "micro")),
        ("method", method, ("delong", "logit")),
    ):
        if value not in allowed:
            raise OptionError.of(name, value, f"one of {', '.join(allowed)}")
    if versus == "pairs" and average == "micro":
        raise OptionError.of("average", average, "'macro' or 'weighted' with versus='pairs'")
