"""ROC curve and precision-recall curve over all thresholds, and the ranked rows behind them.

Rows with a score of at least t are predicted positive. P and N are the weights of the positive and
of the negative rows; TP(t) and FP(t) are the weights of those among them that are predicted
positive:

    tpr = recall = TP / P       fpr = FP / N       precision = TP / (TP + FP)

    area              = sum over steps of the trapezia under (fpr, tpr)     ties count one half
    average precision = sum over steps of (rise of recall) * precision      no interpolation

Curves have a point for each distinct score. At the first point no row is predicted positive, at the
last point all rows are. If a `Ranking` is passed in place of rows, only some points of the curve
are known; between two of them the curve lies in the rectangle that they span, and `error` bounds
the error of the area. Let a bin have p positive and q negative rows, with TP positive and FP
negative rows in the bins above it. The bin adds to P times the average precision

    at most    p (TP + p) / (TP + p + FP)                 if its positive rows come first
    at least   integral_0^p (TP + t) / (TP + t + FP + q) dt      if its negative rows come first

Positive and negative rows are counted at each distinct score. NumPy's sort is about eight times as
fast as its argsort. So rows without weights are counted in two steps: all scores are sorted, and
the scores of the positive rows are sorted separately; then a binary search counts, for each
distinct score, the positive rows with at most this score.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.assessment.measures import check_beta
from discriminant.engines.local import available_threads
from discriminant.errors import LabelError, OptionError, ScoreError
from discriminant.moments.ranking import (
    BINS,
    Ranking,
    ScoreCounts,
    as_numbers,
    check_missing,
    score_values,
)
from discriminant.table.blocks import Codes, Floats, Labels
from discriminant.table.column_cells import import_pandas
from discriminant.table.labels import classes_of_score_columns, encode_labels
from discriminant.table.memory import check_weight

_MIN_THREADED = 1 << 16  # number of scores from which sorting in threads is faster


@dataclass(frozen=True, slots=True, eq=False)
class RankedRows:
    """Rows, each with a label and with a score for one class or for every class."""

    labels: Labels  # (K,) names of the classes
    codes: Codes  # (N,) index of each row's class
    # (N,) scores of one class, or (N, K) with columns in the order of the labels
    scores: npt.NDArray[Any]
    weight: Floats | None  # (N,) weights, all positive

    @property
    def multiclass(self) -> bool:
        """Whether there are scores for each of three or more classes."""
        return self.scores.ndim == 2


@np.errstate(under="ignore")
def ranking(
    labels: Any,
    scores: Any,
    *,
    positive: Any = None,
    sample_weight: Any = None,
    bins: int = BINS,
) -> Ranking:
    """Rank rows by their scores in bounded memory; the rankings of several parts can be added.

    Parameters
    ----------
    labels : array of shape (n,)
        True labels of these rows.
    scores : array of shape (n,)
        Higher for rows that are more likely positive; float32 suffices.
    positive : label, optional
        Positive label; all others are negative. None means the second of two labels in sorted
        order. Pass `positive` if some parts may lack one of the classes.
    sample_weight : array of shape (n,), optional
        Number of rows that each row stands for.
    bins : int
        Largest number of distinct scores to store; each takes 24 bytes.

    Returns
    -------
    Ranking

    Examples
    --------
    >>> first = ranking(["ill", "well"], [0.9, 0.2], positive="ill")
    >>> later = ranking(["well", "well"], [0.9, 0.4], positive="ill")
    >>> steps = (first + later).steps()
    >>> steps.threshold.tolist(), steps.positive.tolist(), steps.negative.tolist()
    ([0.2, 0.4, 0.9], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0])
    """
    names, codes = encode_labels(labels)
    positive, code = positive_code(names, positive, absent=True)
    values = score_values(scores, len(codes), names.tolist())
    weight = check_weight(sample_weight, len(codes), some=False)
    return Ranking.of(values, codes == code, positive=positive, weight=weight, bins=bins)


def ranked_rows(
    labels: Any, scores: Any, *, positive: Any = None, classes: Any = None, sample_weight: Any
) -> tuple[RankedRows, Any]:
    """Return the rows of positive weight; if only one class is ranked, also the positive label.

    If there are two classes, or `positive` is given, only one column of (N, K) scores is used.
    """
    if isinstance(labels, Ranking):
        raise ScoreError.without_rows(labels.positive)
    if scores is None:
        raise ScoreError.absent()
    names, codes = encode_labels(labels)
    weight = check_weight(sample_weight, len(codes))
    values = as_numbers(scores)
    classes = classes_of_score_columns(
        scores, labels=names.tolist(), classes=classes, what="scores"
    )
    if values.ndim == 2:
        names, codes = _classes_with_columns(names, codes, classes, values.shape)
        if classes is not None:
            values = values[:, np.argsort(np.searchsorted(names, np.asarray(classes)))]
        if positive is not None or len(names) == 2:
            positive, code = positive_code(names, positive)
            values = np.ascontiguousarray(values[:, code])
    else:
        positive, _ = positive_code(names, positive)
    if values.ndim == 1:
        values = score_values(values, len(codes), names.tolist())
    for k, label in enumerate(names if values.ndim == 2 else ()):
        check_missing(values[:, k], label)
    if weight is not None and not weight.all():
        counted = weight > 0
        codes, values, weight = codes[counted], values[counted], weight[counted]
    return RankedRows(names, codes, values, weight), positive


def counts_by_score(
    labels: Any, scores: Any, *, positive: Any, sample_weight: Any, classes: Any = None
) -> tuple[ScoreCounts, Any]:
    """Return the counts of positive and negative rows at each score, and the positive label.

    `labels` and `scores` are those of rows, or `labels` is a Ranking.
    """
    if isinstance(labels, Ranking):
        options = {"scores": scores, "positive": positive, "classes": classes}
        reject_beside_ranking(**options, sample_weight=sample_weight)
        steps, positive = labels.steps(), labels.positive
        has_negative, has_positive = steps.negative.any(), steps.positive.any()
        if not has_positive:
            raise ScoreError.without_positive(positive, ["others"] if has_negative else [])
        if not has_negative:
            raise ScoreError.only_positive(positive)
        return steps, positive
    rows, positive = ranked_rows(
        labels, scores, positive=positive, classes=classes, sample_weight=sample_weight
    )
    if rows.multiclass:
        raise ScoreError.which_column(rows.labels.tolist())
    own = positive_rows(rows, positive)
    return exact_steps(rows.scores, own, rows.weight), positive


def reject_beside_ranking(**options: Any) -> None:
    """Raise an error if an option is passed together with a Ranking.

    A Ranking has its own rows, scores and weights.
    """
    for name, value in options.items():
        if value is not None:
            allowed = "omitted: a Ranking ranks one class and includes its scores and weights"
            raise OptionError.of(name, "given", allowed)


def positive_code(labels: Any, positive: Any, *, absent: bool = False) -> tuple[Any, int]:
    """Return the positive label and its code.

    If no row has this label, the code is -1 if `absent` is True; otherwise an error is raised.
    """
    names = labels.tolist()
    if positive is None:
        if len(names) != 2:
            raise ScoreError.which_positive(names)
        return names[1], 1
    if positive in names:
        return positive, names.index(positive)
    if not absent:
        raise LabelError.unknown([positive], names)
    return positive, -1


def positive_rows(rows: RankedRows, positive: Any) -> npt.NDArray[np.bool_]:
    """Return a boolean array (N,): True where the row is positive.

    Raises an error unless there are both positive and negative rows.
    """
    _, code = positive_code(rows.labels, positive)
    own = np.asarray(rows.codes == code)
    count = int(np.count_nonzero(own))
    if not count:
        raise ScoreError.without_positive(positive, rows.labels.tolist())
    if count == len(own):
        raise ScoreError.only_positive(positive)
    return own


def exact_steps(
    scores: npt.NDArray[Any], own: npt.NDArray[np.bool_], weight: Floats | None
) -> ScoreCounts:
    """Count the positive and the negative rows at each distinct score.

    >>> steps = exact_steps(np.array([3, 1, 1]), np.array([True, True, False]), None)
    >>> steps.threshold.tolist(), steps.negative.tolist(), steps.positive.tolist()
    ([1.0, 3.0], [1.0, 0.0], [1.0, 1.0])
    """
    if weight is not None:
        return _weighted_steps(scores, own, weight)
    ordered, mine = _sorted(scores, scores[own])
    last = np.flatnonzero(ordered[1:] != ordered[:-1])
    last = np.append(last, len(ordered) - 1)
    threshold = ordered if len(last) == len(ordered) else ordered[last]
    upto = np.searchsorted(mine, threshold, side="right")
    positive = np.diff(upto, prepend=0).astype(np.float64)
    negative = np.diff(last, prepend=-1) - positive
    return ScoreCounts(threshold.astype(np.float64, copy=False), negative, positive)


def _weighted_steps(
    scores: npt.NDArray[Any], own: npt.NDArray[np.bool_], weight: Floats
) -> ScoreCounts:
    order = np.argsort(scores, kind="stable")
    ordered, own, weight = scores[order], own[order], weight[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    negative = np.add.reduceat(np.where(own, 0.0, weight), first)
    positive = np.add.reduceat(np.where(own, weight, 0.0), first)
    return ScoreCounts(ordered[first].astype(np.float64, copy=False), negative, positive)


def _sorted(*values: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Sort each array; long arrays are sorted in threads."""
    if len(values[0]) < _MIN_THREADED or available_threads() == 1:
        return [np.sort(array) for array in values]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(np.sort, values))


def _classes_with_columns(
    names: Labels, codes: Codes, classes: Any, shape: tuple[int, ...]
) -> tuple[Labels, Codes]:
    """Return the classes that have a column of scores, sorted, and the class code of each row."""
    if classes is None:
        if shape != (len(codes), len(names)):
            raise ScoreError.of_shape(shape, len(codes), names.tolist())
        return names, codes
    known = np.unique(np.asarray(classes))
    if shape != (len(codes), len(known)) or len(known) != len(np.asarray(classes)):
        raise ScoreError.of_shape(shape, len(codes), list(classes))
    unknown = [label for label in names.tolist() if label not in known.tolist()]
    if unknown:
        raise LabelError.unknown(unknown, known.tolist())
    return known, np.searchsorted(known, names)[codes]


Average = Literal["macro", "weighted", "micro"]


@dataclass(frozen=True, slots=True, eq=False)
class Roc:
    """ROC curve: true and false positive rates for every threshold.

    Rows with a score of at least the threshold are predicted positive.
    """

    positive: Any  # the label that high scores indicate
    threshold: Floats  # (m,) decreasing; infinity first: no row is predicted positive
    fpr: Floats  # (m,) share of the negative rows predicted positive, from 0 to 1
    tpr: Floats  # (m,) share of the positive rows predicted positive, from 0 to 1
    area: float
    # bound on the error of the area; 0 unless computed from a Ranking whose bins are full
    error: float

    def __repr__(self) -> str:
        off = f" ± {self.error:.2g}" if self.error else ""
        return f"Roc(positive={self.positive!r}, {len(self.fpr)} points, area={self.area:.6g}{off})"

    @property
    def specificity(self) -> Floats:
        """Share of the negative rows that are not predicted positive, (m,)."""
        return np.asarray(1.0 - self.fpr)

    def frame(self) -> Any:
        """Return a pandas frame with a row for each point."""
        columns = {"threshold": self.threshold, "fpr": self.fpr, "tpr": self.tpr}
        return import_pandas().DataFrame(columns)

    def corners(self) -> Roc:
        """Return the same curve without the points that lie on a line between their neighbours."""
        across, up = np.diff(self.fpr), np.diff(self.tpr)
        turn = across[1:] * up[:-1] - across[:-1] * up[1:]
        size = across[1:] * up[:-1] + across[:-1] * up[1:]
        bent = np.abs(turn) > 8 * np.finfo(float).eps * size
        keep = np.concatenate([[True], bent, [True]])
        return replace(self, threshold=self.threshold[keep], fpr=self.fpr[keep], tpr=self.tpr[keep])

    def best(self) -> int:
        """Return the index of the first point with the largest tpr - fpr (Youden's J)."""
        return int(np.argmax(self.tpr - self.fpr))

    def partial_area(self, most_fpr: float, *, standardised: bool = True) -> float:
        """Return the area under the curve for a false positive rate of at most `most_fpr`.

        If `standardised` (McClish), the area is rescaled to 1/2 for random scores and 1 for a
        perfect ranking.

        >>> roc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).partial_area(0.5, standardised=False)
        0.25
        """
        if not 0.0 < most_fpr <= 1.0:
            raise OptionError.of("most_fpr", most_fpr, "above 0 and at most 1")
        stop = int(np.searchsorted(self.fpr, most_fpr, side="right"))
        x, y = self.fpr[:stop], self.tpr[:stop]
        if stop < len(self.fpr):
            edge = np.interp(most_fpr, self.fpr[stop - 1 : stop + 1], self.tpr[stop - 1 : stop + 1])
            x, y = np.append(x, most_fpr), np.append(y, edge)
        area = float(np.trapezoid(y, x))
        if not standardised:
            return area
        chance = 0.5 * most_fpr**2
        return 0.5 * (1.0 + (area - chance) / (most_fpr - chance))


@dataclass(frozen=True, slots=True, eq=False)
class PrecisionRecall:
    """Precision and recall for every threshold, with increasing recall."""

    positive: Any  # the label that high scores indicate
    threshold: Floats  # (m,) decreasing; infinity first: no row is predicted positive
    precision: Floats  # (m,) starts at 1
    recall: Floats  # (m,) increases from 0 to 1
    average_precision: float
    # bound on the error of `average_precision`; 0 unless computed from a Ranking with full bins
    error: float

    def __repr__(self) -> str:
        off = f" ± {self.error:.2g}" if self.error else ""
        return (
            f"PrecisionRecall(positive={self.positive!r}, {len(self.recall)} points, "
            f"average_precision={self.average_precision:.6g}{off})"
        )

    def frame(self) -> Any:
        """Return a pandas frame with a row for each point."""
        names = ("threshold", "precision", "recall")
        return import_pandas().DataFrame({name: getattr(self, name) for name in names})

    def best(self, beta: float = 1.0) -> int:
        """Return the index of the point with the largest F score.

        Recall counts `beta` times as much as precision.
        """
        beta = check_beta(beta)
        below = beta**2 * self.precision + self.recall
        return int(np.argmax(_quotient((1 + beta**2) * self.precision * self.recall, below)))


@np.errstate(under="ignore")
def roc(
    labels: Any,
    scores: Any = None,
    *,
    positive: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
) -> Roc:
    """Compute the ROC curve of one class against the others.

    Parameters
    ----------
    labels : array of shape (N,) or Ranking
        True labels; or a `Ranking`, which replaces all other arguments.
    scores : array of shape (N,) or (N, K)
        Higher for rows that are more likely positive, on any scale; or a column for each class.
    positive : label, optional
        Positive label. None means the second of two labels in sorted order.
    classes : sequence, optional
        Labels of the columns of (N, K) scores. None means the column names of a data frame, or the
        labels in sorted order.
    sample_weight : array of shape (N,), optional
        Weight of each row.

    Returns
    -------
    Roc

    Examples
    --------
    >>> curve = roc(["well", "well", "ill", "ill"], [0.1, 0.4, 0.35, 0.8], positive="ill")
    >>> curve.fpr.tolist(), curve.tpr.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    >>> curve
    Roc(positive='ill', 5 points, area=0.75)
    """
    steps, positive = counts_by_score(
        labels, scores, positive=positive, classes=classes, sample_weight=sample_weight
    )
    tp, fp = _positives(steps)
    fpr, tpr = np.append(0.0, fp / fp[-1]), np.append(0.0, tp / tp[-1])
    area = float(np.trapezoid(tpr, fpr))
    return Roc(positive, _thresholds(steps), fpr, tpr, area, area_error(steps))


@np.errstate(under="ignore")
def precision_recall(
    labels: Any,
    scores: Any = None,
    *,
    positive: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
) -> PrecisionRecall:
    """Compute the precision-recall curve of one class.

    Parameters
    ----------
    labels, scores, positive, classes, sample_weight
        As in `roc`.

    Returns
    -------
    PrecisionRecall

    Examples
    --------
    >>> curve = precision_recall([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> curve.recall.tolist(), curve.precision.round(2).tolist()
    ([0.0, 0.5, 0.5, 1.0, 1.0], [1.0, 1.0, 0.5, 0.67, 0.5])
    >>> round(curve.average_precision, 4)
    0.8333
    """
    steps, positive = counts_by_score(
        labels, scores, positive=positive, classes=classes, sample_weight=sample_weight
    )
    tp, fp = _positives(steps)
    recall, precision = np.append(0.0, tp / tp[-1]), np.append(1.0, tp / (tp + fp))
    value = float(np.diff(recall) @ precision[1:])
    error = 0.0 if steps.exact else _precision_error(tp, fp, value)
    return PrecisionRecall(positive, _thresholds(steps), precision, recall, value, error)


@np.errstate(under="ignore")
def average_precision(
    labels: Any,
    scores: Any = None,
    *,
    positive: Any = None,
    classes: Any = None,
    average: Average = "macro",
    sample_weight: Any = None,
) -> float:
    """Compute the average precision of one class, or its average over K classes.

    Parameters
    ----------
    labels, scores, positive, classes, sample_weight
        As in `roc`. The average over classes needs (N, K) scores.
    average : {'macro', 'weighted', 'micro'}, default 'macro'
        With (N, K) scores: the mean over the classes ('macro'), the mean weighted by their rows
        ('weighted'), or the value for all N K scores as one list ('micro').

    Returns
    -------
    float

    Examples
    --------
    >>> round(average_precision([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), 4)
    0.8333
    """
    if average not in ("macro", "weighted", "micro"):
        raise OptionError.of("average", average, "'macro', 'weighted' or 'micro'")
    if isinstance(labels, Ranking):
        reject_beside_ranking(average=None if average == "macro" else average)
        return precision_recall(
            labels, scores, positive=positive, classes=classes, sample_weight=sample_weight
        ).average_precision
    rows, positive = ranked_rows(
        labels, scores, positive=positive, classes=classes, sample_weight=sample_weight
    )
    if not rows.multiclass:
        return _average_precision(rows.scores, positive_rows(rows, positive), rows.weight)
    K = len(rows.labels)
    class_weight = np.bincount(rows.codes, rows.weight, minlength=K)
    for k in np.flatnonzero(class_weight == 0):
        raise ScoreError.class_absent(rows.labels[k])
    own = rows.codes[:, None] == np.arange(K)
    if average == "micro":
        weight = None if rows.weight is None else np.repeat(rows.weight, K)
        return _average_precision(rows.scores.ravel(), own.ravel(), weight)
    values = [_average_precision(rows.scores[:, k], own[:, k], rows.weight) for k in range(K)]
    return float(np.average(values, weights=class_weight if average == "weighted" else None))


def area_error(steps: ScoreCounts) -> float:
    """Return a bound on the error of the area. The order of rows within a bin is unknown."""
    if steps.exact:
        return 0.0
    pairs = float(steps.positive.sum()) * float(steps.negative.sum())
    return 0.5 * float(steps.positive @ steps.negative) / pairs


def _positives(steps: ScoreCounts) -> tuple[Floats, Floats]:
    """Return the weights of true and of false positives, (m,) each, for decreasing thresholds."""
    return np.cumsum(steps.positive[::-1]), np.cumsum(steps.negative[::-1])


def _thresholds(steps: ScoreCounts) -> Floats:
    return np.append(np.inf, steps.threshold[::-1])


def _average_precision(
    scores: npt.NDArray[Any], own: npt.NDArray[np.bool_], weight: Floats | None
) -> float:
    steps = exact_steps(scores, own, weight)
    tp, fp = _positives(steps)
    return float(steps.positive[::-1] @ (tp / (tp + fp))) / float(tp[-1])


def _precision_error(tp: Floats, fp: Floats, value: float) -> float:
    """Return a bound on the error of the average precision.

    The bound is the distance from the value to the farther of its lower and upper limits.
    """
    p, above, false = np.diff(tp, prepend=0.0), np.append(0.0, tp[:-1]), np.append(0.0, fp[:-1])
    upper = p * _quotient(tp, tp + false)
    start = above + fp  # if all negative rows of the bin come first
    lower = p - fp * np.log1p(_quotient(p, start))
    highest, lowest = (float(bound.sum()) / float(tp[-1]) for bound in (upper, lower))
    return max(highest - value, value - lowest, 0.0)


def _quotient(numerator: Floats, denominator: Floats) -> npt.NDArray[np.float64]:
    zeros = np.zeros_like(denominator)
    return np.divide(numerator, denominator, out=zeros, where=denominator > 0)
