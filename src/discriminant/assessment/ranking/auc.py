"""Area under the ROC curve with its interval, and whether two of them differ (DeLong).

    A = share of pairs (positive row, negative row) in order of their scores, a tie half of one

    Var A = s^2(V over positive rows) / m + s^2(V over negative rows) / n     V: placements

    interval   A ± z sd, cut to [0, 1]                          ("delong", as R's pROC)
               logit^-1( logit A ± z sd / (A (1 - A)) )         ("logit": inside of (0, 1) if A is)

Two AUCs of the same rows: z = (A1 - A2) / sd, with the variance of the difference of placements, on
a normal. Of different rows: t on Welch's degrees of freedom, as in pROC,

    df = (Var1 + Var2)^2 / (Var1^2 / (N1 - 1) + Var2^2 / (N2 - 1))

K classes: the mean over classes of each against the rest, or over pairs (Hand and Till 2001: M,
each pair ranked by both of its columns). Their variance is that of `assessment.placements`.

How much each row has to do with an AUC: placements and influences.

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
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from discriminant.assessment.inference.summary import format_number, format_p, text_table
from discriminant.assessment.intervals import check_level
from discriminant.assessment.ranking.roc import (
    Average,
    RankedRows,
    area_error,
    check_ranking_alone,
    exact_steps,
    own_rows,
    ranked_rows,
    steps_of,
)
from discriminant.errors import NoSpreadWarning, OptionError, ScoreError, ShapeError, warn
from discriminant.moments.ranking import Ranking, ScoreCounts
from discriminant.table.blocks import Floats

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


def averaged(rows: RankedRows, *, versus: str, average: str) -> Influences:
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


def variance(rows: RankedRows, influences: Influences) -> float:
    """Variance of an AUC, or of a difference, from the influences of its rows."""
    weight = np.ones(len(rows.codes)) if rows.weight is None else rows.weight
    share = class_weights(rows)
    for k in np.flatnonzero(share <= 1.0):
        raise ScoreError.too_few(rows.labels[k], float(share[k]))
    K = len(share)
    mean = np.bincount(rows.codes, weight * influences.each, minlength=K) / share
    apart = weight * (influences.each - mean[rows.codes]) ** 2
    return float((share / (share - 1.0)) @ np.bincount(rows.codes, apart, minlength=K))


def class_weights(rows: RankedRows) -> Floats:
    """(K,) weight of the rows of each class; refuses a class that has none."""
    share = np.bincount(rows.codes, rows.weight, minlength=len(rows.labels)).astype(np.float64)
    for k in np.flatnonzero(share == 0):
        raise ScoreError.class_absent(rows.labels[k])
    return share


Term = tuple[Any, Any, list[int], float]  # name, rows, columns of scores, weight


def _rest(rows: RankedRows, share: Floats) -> Iterator[Term]:
    for k, label in enumerate(rows.labels.tolist()):
        yield label, slice(None), [k], float(share[k])


def _pairs(rows: RankedRows, share: Floats) -> Iterator[Term]:
    names = rows.labels.tolist()
    members = [np.flatnonzero(rows.codes == k) for k in range(len(names))]
    for j, k in combinations(range(len(names)), 2):
        both = np.concatenate([members[j], members[k]])
        yield (names[j], names[k]), both, [j, k], float(share[j] + share[k])


def _micro(rows: RankedRows) -> Influences:
    """All scores as one list; the K scores of a row belong together."""
    class_weights(rows)
    K = len(rows.labels)
    own = (rows.codes[:, None] == np.arange(K)).ravel()
    weight = None if rows.weight is None else np.repeat(rows.weight, K)
    value, each = one_auc(rows.scores.ravel(), own, weight)
    return Influences(value, each.reshape(-1, K).sum(axis=1), {})


Versus = Literal["rest", "pairs"]
Method = Literal["delong", "logit"]
Alternative = Literal["two-sided", "less", "greater"]
_OTHERS = "all others"


@dataclass(frozen=True, slots=True, eq=False)
class AUC:
    """What `auc` returns."""

    value: float
    low: float  # NaN without an interval
    high: float
    standard_error: float
    level: float | None  # of the interval
    weight: float  # of all rows
    positive: Any = None  # the label that high scores speak for; None for an average over classes
    parts: dict[Any, float] | None = None  # of an average: AUC of each class, or pair of classes
    error: float = 0.0  # how far value can be off; 0 but for a Ranking that is full

    def __repr__(self) -> str:
        """One line: the value, the interval, and the bound of a Ranking."""
        off = f" ± {self.error:.2g}" if self.error else ""
        span = (
            "" if self.level is None else f", {self.level:.0%}: {self.low:.4f} to {self.high:.4f}"
        )
        return f"AUC({self.value:.4f}{off}{span})"

    def __float__(self) -> float:
        return self.value

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts."""
        names = ("value", "low", "high", "standard_error", "weight", "error")
        found: dict[str, Any] = {name: float(getattr(self, name)) for name in names}
        found |= {"level": None if self.level is None else float(self.level)}
        parts = self.parts or {}
        return found | {"parts": [{"of": of, "value": float(v)} for of, v in parts.items()]}


@dataclass(frozen=True, slots=True, eq=False)
class AUCComparison:
    """What `compare_auc` returns: print it, or ask for its numbers."""

    first: AUC
    second: AUC
    paired: bool  # whether both are of the same rows
    difference: float  # first - second
    low: float
    high: float
    standard_error: float
    statistic: float  # z, or t
    df: float  # infinite for z
    p: float
    alternative: Alternative
    level: float

    def __str__(self) -> str:
        """Two lines of AUCs and one of the test."""
        aucs = [
            [name, format_number(one.value), format_number(one.low), format_number(one.high)]
            for name, one in (("First", self.first), ("Second", self.second))
        ]
        gap = [
            "Difference",
            format_number(self.difference),
            format_number(self.low),
            format_number(self.high),
        ]
        name = "z" if np.isinf(self.df) else f"t on {self.df:.2f} degrees of freedom"
        rows = "the same rows" if self.paired else "different rows"
        return "\n".join(
            [
                *text_table(f"AUCs of {rows}", ["", "AUC", "Low", "High"], [*aucs, gap]),
                "",
                f"DeLong: {name} = {format_number(self.statistic, 4)}, p = {format_p(self.p)} "
                f"({self.alternative})",
            ]
        )

    __repr__ = __str__


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
    """Area under the ROC curve, with DeLong's interval.

    Parameters
    ----------
    labels
        (N,) true labels; or a `Ranking`, which has the rest with it.
    scores
        As in `roc`. NaN is refused; infinities rank first and last.
    interval
        Level of the interval; None for the value alone, which is quicker.
    positive, classes
        As in `roc`.
    versus
        With K > 2 columns: each class against the rest, or "pairs" of classes.
    average
        With K > 2 columns: plain mean ("macro"), weighted by rows, or all scores as one list
        ("micro", against the rest only). versus="pairs" with "macro" is Hand and Till's M.
    method
        "delong", or "logit", which is better near 1 and stays inside of (0, 1) if the AUC is; at 0
        and 1 neither has any width.
    sample_weight
        (N,) how many rows each counts for.

    Examples
    --------
    >>> auc(["well", "well", "ill", "ill"], [0.1, 0.4, 0.35, 0.8], positive="ill")
    AUC(0.7500, 95%: 0.0570 to 1.0000)
    """
    _check(versus, average, method)
    if interval is not None:
        interval = check_level(interval, "interval")
    if not isinstance(labels, Ranking):
        rows, one = ranked_rows(
            labels, scores, positive=positive, classes=classes, sample_weight=sample_weight
        )
        if rows.many:
            return _of_classes(rows, versus, average, interval, method)
        rows, own = one_above(rows, one)
        names = rows.labels.tolist()
        if rows.weight is None:
            return _of_rows(rows.scores, own, names, interval, method)
        steps = exact_steps(rows.scores, own, rows.weight)
    else:
        check_ranking_alone(
            versus=None if versus == "rest" else versus,
            average=None if average == "macro" else average,
        )
        steps, one = steps_of(
            labels, scores, positive=positive, classes=classes, sample_weight=sample_weight
        )
        names = [_OTHERS, one]
    return _of_steps(steps, names, interval, method)


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
    """Whether two AUCs differ, by DeLong's test.

    Parameters
    ----------
    labels
        (N,) true labels.
    first, second
        Scores of the same rows by two models, (N,) or (N, K), on any scales.
    second_labels, second_weight
        If `second` are scores of other rows: their labels and weights. The test is then that of
        independent AUCs.
    level
        Of the intervals, of both AUCs and of the difference.
    alternative
        "less": that the first is less; "greater"; or either.
    positive, classes, versus, average, sample_weight
        As in `auc`.

    Examples
    --------
    >>> labels = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> found = compare_auc(labels, [1, 2, 3, 6, 4, 5, 7, 8], [1, 6, 3, 7, 4, 2, 5, 8])
    >>> found.difference, round(found.p, 4)
    (0.3125, 0.1138)
    """
    _check(versus, average, "delong")
    level = check_level(level)
    if alternative not in ("two-sided", "less", "greater"):
        raise OptionError.of("alternative", alternative, "'two-sided', 'less' or 'greater'")
    options = {"positive": positive, "classes": classes}
    one, name = ranked_rows(labels, first, sample_weight=sample_weight, **options)
    paired = second_labels is None
    if paired and np.shape(second)[:1] != np.shape(first)[:1]:
        raise ShapeError.of_lengths("second", np.shape(second)[0], np.shape(first)[0])
    other = sample_weight if paired else second_weight
    two, _ = ranked_rows(
        labels if paired else second_labels, second, sample_weight=other, **options
    )
    kept = [_influences(rows, name, versus, average) for rows in (one, two)]
    sides = [_side(rows, found, level, name) for rows, found in kept]
    if paired:
        spread = variance(kept[0][0], kept[0][1] - kept[1][1])
        df = np.inf
    else:
        each = np.array([side.standard_error**2 for side in sides])
        counts = np.array([side.weight for side in sides])
        spread = float(each.sum())
        df = spread**2 / float(np.sum(each**2 / (counts - 1.0))) if spread else np.inf
    return _tested(sides[0], sides[1], paired, spread, df, alternative, level)


def one_above(rows: RankedRows, positive: Any) -> tuple[RankedRows, Any]:
    """The rows as two classes, the positive one and the others; and (N,) which are positive."""
    own = own_rows(rows, positive)
    others = [label for label in rows.labels.tolist() if label != positive]
    names = np.empty(2, dtype=object)
    names[:] = [others[0] if len(others) == 1 else _OTHERS, positive]
    return replace(rows, labels=names, codes=own.astype(np.uint8)), own


def _influences(
    rows: RankedRows, positive: Any, versus: str, average: str
) -> tuple[RankedRows, Influences]:
    if rows.many:
        return rows, averaged(rows, versus=versus, average=average)
    rows, own = one_above(rows, positive)
    return rows, Influences(*one_auc(rows.scores, own, rows.weight), {})


def _side(rows: RankedRows, found: Influences, level: float, positive: Any) -> AUC:
    spread = np.sqrt(variance(rows, found))
    low, high = _span(found.value, spread, level, "delong")
    total = float(len(rows.codes)) if rows.weight is None else float(rows.weight.sum())
    return AUC(found.value, low, high, spread, level, total, positive, found.parts or None)


def _of_classes(
    rows: RankedRows, versus: str, average: str, interval: float | None, method: Method
) -> AUC:
    """The average over classes or pairs."""
    found = averaged(rows, versus=versus, average=average)
    total = float(len(rows.codes)) if rows.weight is None else float(rows.weight.sum())
    parts = found.parts or None
    if interval is None:
        return AUC(found.value, np.nan, np.nan, np.nan, None, total, None, parts)
    spread = float(np.sqrt(variance(rows, found)))
    _warn(found.value, spread, bool((rows.scores == rows.scores[:1]).all()), total)
    low, high = _span(found.value, spread, interval, method)
    return AUC(found.value, low, high, spread, interval, total, None, parts)


def _of_rows(
    scores: Any, own: Any, names: list[Any], interval: float | None, method: Method
) -> AUC:
    """Of rows that count as one each."""
    value, spread = two_kinds(scores, own)
    m = float(np.count_nonzero(own))
    found = AUC(value, np.nan, np.nan, np.nan, None, float(len(own)), names[1])
    constant = spread == 0.0 and bool((scores == scores[0]).all())
    kinds = dict(zip(names, (found.weight - m, m), strict=True))
    return _within(found, interval, method, variance=spread, kinds=kinds, constant=constant)


def _of_steps(steps: ScoreCounts, names: list[Any], interval: float | None, method: Method) -> AUC:
    """From the weights of both kinds at each score."""
    m, n = float(steps.positive.sum()), float(steps.negative.sum())
    below = np.cumsum(steps.negative)
    below -= 0.5 * steps.negative
    value = float(steps.positive @ below) / m / n
    error = area_error(steps)
    found = AUC(value, np.nan, np.nan, np.nan, None, m + n, names[1], error=error)
    above = np.cumsum(steps.positive[::-1])[::-1] - 0.5 * steps.positive
    spread = _spread(below / n - value, steps.positive, m)
    spread += _spread(above / m - value, steps.negative, n)
    kinds, constant = dict(zip(names, (n, m), strict=True)), len(steps.threshold) == 1
    return _within(found, interval, method, variance=spread, kinds=kinds, constant=constant)


def _within(
    found: AUC,
    level: float | None,
    method: Method,
    *,
    variance: float,
    kinds: dict[Any, float],
    constant: bool,
) -> AUC:
    """With its interval if one is asked for; `kinds` are the weights of both."""
    if level is None:
        return found
    for name, total in kinds.items():
        if total <= 1.0:
            raise ScoreError.too_few(name, total)
    spread = float(np.sqrt(variance))
    _warn(found.value, spread, constant, found.weight)
    low, high = _span(found.value, spread, level, method)
    return replace(found, low=low, high=high, standard_error=spread, level=level)


def _spread(apart: Floats, weight: Floats, total: float) -> float:
    """Variance of a mean, from distances from the mean."""
    return float(weight @ np.square(apart)) / (total - 1.0) / total if total > 1.0 else np.nan


def _span(value: float, spread: float, level: float, method: Method) -> tuple[float, float]:
    """The interval about an AUC."""
    z = float(special.ndtri(0.5 + 0.5 * level))
    if method == "delong" or not 0.0 < value < 1.0:
        return max(value - z * spread, 0.0), min(value + z * spread, 1.0)
    step = z * spread / (value * (1.0 - value))
    middle = special.logit(value)
    return float(special.expit(middle - step)), float(special.expit(middle + step))


def _warn(value: float, spread: float, constant: bool, rows: float) -> None:
    if constant:
        warn(NoSpreadWarning.of_constant(int(rows)))
    elif spread == 0.0 and value in (0.0, 1.0):
        warn(NoSpreadWarning.of_auc(value))


def _tested(
    first: AUC,
    second: AUC,
    paired: bool,
    spread: float,
    df: float,
    alternative: Alternative,
    level: float,
) -> AUCComparison:
    """The test of a difference with a variance."""
    gap, sd = first.value - second.value, float(np.sqrt(spread))
    if sd <= 1e-15:  # nothing but rounding
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


def _check(versus: str, average: str, method: str) -> None:
    for name, value, allowed in (
        ("versus", versus, ("rest", "pairs")),
        ("average", average, ("macro", "weighted", "micro")),
        ("method", method, ("delong", "logit")),
    ):
        if value not in allowed:
            raise OptionError.of(name, value, f"one of {', '.join(allowed)}")
    if versus == "pairs" and average == "micro":
        raise OptionError.of("average", average, "'macro' or 'weighted' with versus='pairs'")
