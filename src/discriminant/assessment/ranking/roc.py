"""ROC curve, and precision against recall, over all thresholds.

Rows with a score of at least t are called positive. With P and N the weight of the positive and of
the negative rows, and TP(t), FP(t) that of those called positive:

    tpr = recall = TP / P       fpr = FP / N       precision = TP / (TP + FP)

    area              = sum over steps of the trapezia under (fpr, tpr)     ties count one half
    average precision = sum over steps of (rise of recall) * precision      no interpolation

Curves are corner by corner, from no row called positive to all. A `Ranking` in place of rows gives
curves whose corners are true points too; what lies between two of them is known to lie in the
rectangle they span, and `error` says how far the area can be off. A bin with (p, q) positive and
negative rows, after (TP, FP) above it, adds to P times the average precision

    at most    p (TP + p) / (TP + p + FP)                 all of its positive rows first
    at least   integral_0^p (TP + t) / (TP + t + FP + q) dt      all of its negative rows first

From labels and scores to steps: the rows of both kinds at each score, exactly.

NumPy sorts numbers some eight times as fast as it finds their order. So without weights nothing is
put in order: all scores are sorted, those of the positive rows are sorted, and how many of these
are at or below each distinct score is looked up.
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
from discriminant.table.cells import import_pandas
from discriminant.table.labels import classes_of_columns, encode_labels
from discriminant.table.memory import check_weight

_WORTH_THREADS = 1 << 16  # scores


@dataclass(frozen=True, slots=True, eq=False)
class RankedRows:
    """Rows with a label and a score for each class, or for one."""

    labels: Labels  # (K,)
    codes: Codes  # (N,)
    scores: npt.NDArray[Any]  # (N,), or (N, K) in the order of the labels
    weight: Floats | None  # (N,) all positive

    @property
    def many(self) -> bool:
        """Whether every class has its scores, and there are more than two."""
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
    """Rank the rows of a part by their scores, in bounded memory; rankings of parts add.

    Parameters
    ----------
    labels
        (n,) of these rows.
    scores
        (n,) higher where the row is rather of the positive class; float32 is as good.
    positive
        The label that high scores speak for; all others are negative. None: the second of two
        labels in sorted order. Name it where a part may lack a class.
    sample_weight
        (n,) how many rows each counts for.
    bins
        Scores told apart. A bin takes 24 bytes.

    Examples
    --------
    >>> first = ranking(["ill", "well"], [0.9, 0.2], positive="ill")
    >>> later = ranking(["well", "well"], [0.9, 0.4], positive="ill")
    >>> steps = (first + later).steps()
    >>> steps.threshold.tolist(), steps.positive.tolist(), steps.negative.tolist()
    ([0.2, 0.4, 0.9], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0])
    """
    found, codes = encode_labels(labels)
    positive, code = positive_code(found, positive, absent=True)
    values = score_values(scores, len(codes), found.tolist())
    weight = check_weight(sample_weight, len(codes), some=False)
    return Ranking.of(values, codes == code, positive=positive, weight=weight, bins=bins)


def ranked_rows(
    labels: Any, scores: Any, *, positive: Any = None, classes: Any = None, sample_weight: Any
) -> tuple[RankedRows, Any]:
    """Rows that count, and the positive label if one class is ranked above the others.

    A column is taken out of (N, K) scores where there are two classes or one is named.
    """
    if isinstance(labels, Ranking):
        raise ScoreError.without_rows(labels.positive)
    if scores is None:
        raise ScoreError.absent()
    found, codes = encode_labels(labels)
    weight = check_weight(sample_weight, len(codes))
    values = as_numbers(scores)
    classes = classes_of_columns(scores, found=found.tolist(), classes=classes, what="scores")
    if values.ndim == 2:
        found, codes = _ordered(found, codes, classes, values.shape)
        values = values[:, np.argsort(_order_of(found, classes))] if classes is not None else values
        if positive is not None or len(found) == 2:
            positive, code = positive_code(found, positive)
            values = np.ascontiguousarray(values[:, code])
    else:
        positive, _ = positive_code(found, positive)
    if values.ndim == 1:
        values = score_values(values, len(codes), found.tolist())
    for k, label in enumerate(found if values.ndim == 2 else ()):
        check_missing(values[:, k], label)
    if weight is not None and not weight.all():
        some = weight > 0
        codes, values, weight = codes[some], values[some], weight[some]
    return RankedRows(found, codes, values, weight), positive


def steps_of(
    labels: Any, scores: Any, *, positive: Any, sample_weight: Any, classes: Any = None
) -> tuple[ScoreCounts, Any]:
    """Steps of rows, or of a Ranking in place of the labels; and the positive label."""
    if isinstance(labels, Ranking):
        options = {"scores": scores, "positive": positive, "classes": classes}
        check_ranking_alone(**options, sample_weight=sample_weight)
        steps, positive = labels.steps(), labels.positive
        kinds = [steps.negative.sum(), steps.positive.sum()]
        if not kinds[1]:
            raise ScoreError.without_positive(positive, ["others"] if kinds[0] else [])
        if not kinds[0]:
            raise ScoreError.only_positive(positive)
        return steps, positive
    rows, positive = ranked_rows(
        labels, scores, positive=positive, classes=classes, sample_weight=sample_weight
    )
    if rows.many:
        raise ScoreError.which_column(rows.labels.tolist())
    own = own_rows(rows, positive)
    return exact_steps(rows.scores, own, rows.weight), positive


def check_ranking_alone(**options: Any) -> None:
    """Refuse what is said beside a Ranking, which is of one class, its rows, scores and weights."""
    for name, value in options.items():
        if value is not None:
            allowed = "left out: a Ranking is of one class and has its rows, scores and weights"
            raise OptionError.of(name, "given", allowed)


def positive_code(labels: Any, positive: Any, *, absent: bool = False) -> tuple[Any, int]:
    """The positive label and its code, -1 if no row has it and `absent` allows for that."""
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


def own_rows(rows: RankedRows, positive: Any) -> npt.NDArray[np.bool_]:
    """(N,) which rows are positive; refuses to go on without rows of both kinds."""
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
    """Rows of both kinds at each distinct score.

    >>> steps = exact_steps(np.array([3, 1, 1]), np.array([True, True, False]), None)
    >>> steps.threshold.tolist(), steps.negative.tolist(), steps.positive.tolist()
    ([1.0, 3.0], [1.0, 0.0], [1.0, 1.0])
    """
    if weight is not None:
        return _weighed_steps(scores, own, weight)
    ordered, mine = _sorted(scores, scores[own])
    last = np.flatnonzero(ordered[1:] != ordered[:-1])
    last = np.append(last, len(ordered) - 1)
    threshold = ordered if len(last) == len(ordered) else ordered[last]
    upto = np.searchsorted(mine, threshold, side="right")
    positive = np.diff(upto, prepend=0).astype(np.float64)
    negative = np.diff(last, prepend=-1) - positive
    return ScoreCounts(threshold.astype(np.float64, copy=False), negative, positive)


def _weighed_steps(
    scores: npt.NDArray[Any], own: npt.NDArray[np.bool_], weight: Floats
) -> ScoreCounts:
    order = np.argsort(scores, kind="stable")
    ordered, own, weight = scores[order], own[order], weight[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    negative = np.add.reduceat(np.where(own, 0.0, weight), first)
    positive = np.add.reduceat(np.where(own, weight, 0.0), first)
    return ScoreCounts(ordered[first].astype(np.float64, copy=False), negative, positive)


def _sorted(*values: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Each sorted, on threads of their own if they are long."""
    if len(values[0]) < _WORTH_THREADS or available_threads() == 1:
        return [np.sort(one) for one in values]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(np.sort, values))


def _ordered(
    found: Labels, codes: Codes, classes: Any, shape: tuple[int, ...]
) -> tuple[Labels, Codes]:
    """All classes that have a column, sorted, and the codes of the rows among them."""
    if classes is None:
        if shape != (len(codes), len(found)):
            raise ScoreError.of_shape(shape, len(codes), found.tolist())
        return found, codes
    known = np.unique(np.asarray(classes))
    if shape != (len(codes), len(known)) or len(known) != len(np.asarray(classes)):
        raise ScoreError.of_shape(shape, len(codes), list(classes))
    unknown = [label for label in found.tolist() if label not in known.tolist()]
    if unknown:
        raise LabelError.unknown(unknown, known.tolist())
    return known, np.searchsorted(known, found)[codes]


def _order_of(labels: Labels, classes: Any) -> npt.NDArray[np.intp]:
    """(K,) the place among sorted labels of each column."""
    return np.searchsorted(labels, np.asarray(classes))


Average = Literal["macro", "weighted", "micro"]


@dataclass(frozen=True, slots=True, eq=False)
class Roc:
    """Rates at every threshold, rising; a row is called positive if its score is at least that."""

    positive: Any  # the label that high scores speak for
    threshold: Floats  # (m,) falling; infinity first: no row is called positive
    fpr: Floats  # (m,) share of the negative rows that are called positive, from 0 to 1
    tpr: Floats  # (m,) share of the positive rows that are, from 0 to 1
    area: float
    error: float  # how far the area can be off; 0 unless it comes from a Ranking that is full

    def __repr__(self) -> str:
        """One line: the area under it."""
        off = f" ± {self.error:.2g}" if self.error else ""
        return f"Roc(positive={self.positive!r}, {len(self.fpr)} points, area={self.area:.6g}{off})"

    @property
    def specificity(self) -> Floats:
        """(m,) share of the negative rows that are not called positive."""
        return np.asarray(1.0 - self.fpr)

    def frame(self) -> Any:
        """The points as a pandas frame, a row each."""
        return _frame(threshold=self.threshold, fpr=self.fpr, tpr=self.tpr)

    def corners(self) -> Roc:
        """The same curve without the points on a straight line between their neighbours."""
        across, up = np.diff(self.fpr), np.diff(self.tpr)
        turn = across[1:] * up[:-1] - across[:-1] * up[1:]
        size = across[1:] * up[:-1] + across[:-1] * up[1:]
        bent = np.abs(turn) > 8 * np.finfo(float).eps * size
        kept = np.concatenate([[True], bent, [True]])
        return replace(self, threshold=self.threshold[kept], fpr=self.fpr[kept], tpr=self.tpr[kept])

    def best(self) -> int:
        """Place of the largest tpr - fpr (Youden's J); of equal ones the first."""
        return int(np.argmax(self.tpr - self.fpr))

    def partial_area(self, most_fpr: float, *, standardised: bool = True) -> float:
        """Area for fpr up to `most_fpr`; standardised it is 1/2 by chance and 1 at best (McClish).

        >>> roc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).partial_area(0.5, standardised=False)
        0.25
        """
        if not 0.0 < most_fpr <= 1.0:
            raise OptionError.of("most_fpr", most_fpr, "over 0 and at most 1")
        stop = int(np.searchsorted(self.fpr, most_fpr, side="right"))
        x, y = self.fpr[:stop], self.tpr[:stop]
        if stop < len(self.fpr):
            edge = np.interp(most_fpr, self.fpr[stop - 1 : stop + 1], self.tpr[stop - 1 : stop + 1])
            x, y = np.append(x, most_fpr), np.append(y, edge)
        area = float(np.trapezoid(y, x))
        if not standardised:
            return area
        least = 0.5 * most_fpr**2
        return 0.5 * (1.0 + (area - least) / (most_fpr - least))


@dataclass(frozen=True, slots=True, eq=False)
class PrecisionRecall:
    """Precision and recall at every threshold, recall rising."""

    positive: Any  # the label that high scores speak for
    threshold: Floats  # (m,) falling; infinity first: no row is called positive
    precision: Floats  # (m,) 1 at first
    recall: Floats  # (m,) from 0 to 1
    average_precision: float
    error: float  # how far average_precision can be off; 0 but for a Ranking that is full

    def __repr__(self) -> str:
        """One line: the average precision."""
        off = f" ± {self.error:.2g}" if self.error else ""
        return (
            f"PrecisionRecall(positive={self.positive!r}, {len(self.recall)} points, "
            f"average_precision={self.average_precision:.6g}{off})"
        )

    def frame(self) -> Any:
        """The points as a pandas frame, a row each."""
        return _frame(threshold=self.threshold, precision=self.precision, recall=self.recall)

    def best(self, beta: float = 1.0) -> int:
        """Place of the largest F: recall counts beta times as much as precision."""
        beta = check_beta(beta)
        below = beta**2 * self.precision + self.recall
        score = np.divide(
            (1 + beta**2) * self.precision * self.recall,
            below,
            out=np.zeros_like(below),
            where=below > 0,
        )
        return int(np.argmax(score))


@np.errstate(under="ignore")
def roc(
    labels: Any,
    scores: Any = None,
    *,
    positive: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
) -> Roc:
    """ROC curve of one class against the others.

    Parameters
    ----------
    labels
        (N,) true labels; or a `Ranking`, which has the rest with it.
    scores
        (N,) higher where a row is rather positive, on any scale; or (N, K), a column a class.
    positive
        The label that high scores speak for. None: the second of two labels in sorted order.
    classes
        The labels of the columns of (N, K) scores; None: the names of the columns of a data frame,
        or the labels found, sorted.
    sample_weight
        (N,) what each row counts for.

    Examples
    --------
    >>> found = roc(["well", "well", "ill", "ill"], [0.1, 0.4, 0.35, 0.8], positive="ill")
    >>> found.fpr.tolist(), found.tpr.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    >>> found
    Roc(positive='ill', 5 points, area=0.75)
    """
    steps, positive = steps_of(
        labels, scores, positive=positive, classes=classes, sample_weight=sample_weight
    )
    tp, fp = _called(steps)
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
    """Precision against recall of one class; the arguments are those of `roc`.

    >>> found = precision_recall([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> found.recall.tolist(), found.precision.round(2).tolist()
    ([0.0, 0.5, 0.5, 1.0, 1.0], [1.0, 1.0, 0.5, 0.67, 0.5])
    >>> round(found.average_precision, 4)
    0.8333
    """
    steps, positive = steps_of(
        labels, scores, positive=positive, classes=classes, sample_weight=sample_weight
    )
    tp, fp = _called(steps)
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
    """Average precision of one class, or averaged over the K classes of (N, K) scores.

    `average` is the plain mean over classes ("macro"), the mean weighted by their rows
    ("weighted"), or that of all N K scores as one list ("micro"). The rest is as in `roc`.

    >>> round(average_precision([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), 4)
    0.8333
    """
    if average not in ("macro", "weighted", "micro"):
        raise OptionError.of("average", average, "'macro', 'weighted' or 'micro'")
    if isinstance(labels, Ranking):
        check_ranking_alone(average=None if average == "macro" else average)
        return precision_recall(
            labels, scores, positive=positive, classes=classes, sample_weight=sample_weight
        ).average_precision
    rows, one = ranked_rows(
        labels, scores, positive=positive, classes=classes, sample_weight=sample_weight
    )
    if not rows.many:
        return _average(exact_steps(rows.scores, own_rows(rows, one), rows.weight))
    K = len(rows.labels)
    share = np.bincount(rows.codes, rows.weight, minlength=K)
    for k in np.flatnonzero(share == 0):
        raise ScoreError.class_absent(rows.labels[k])
    own = rows.codes[:, None] == np.arange(K)
    if average == "micro":
        weight = None if rows.weight is None else np.repeat(rows.weight, K)
        return _average(exact_steps(rows.scores.ravel(), own.ravel(), weight))
    each = [_average(exact_steps(rows.scores[:, k], own[:, k], rows.weight)) for k in range(K)]
    return float(np.average(each, weights=share if average == "weighted" else None))


def area_error(steps: ScoreCounts) -> float:
    """How far the area can be off because the order of rows within a bin is not known."""
    if steps.exact:
        return 0.0
    kinds = float(steps.positive.sum()) * float(steps.negative.sum())
    return 0.5 * float(steps.positive @ steps.negative) / kinds


def _frame(**columns: Floats) -> Any:
    return import_pandas().DataFrame(columns)


def _called(steps: ScoreCounts) -> tuple[Floats, Floats]:
    """(m,) weight of true and of false positives as the threshold falls."""
    return np.cumsum(steps.positive[::-1]), np.cumsum(steps.negative[::-1])


def _thresholds(steps: ScoreCounts) -> Floats:
    return np.append(np.inf, steps.threshold[::-1])


def _average(steps: ScoreCounts) -> float:
    tp, fp = _called(steps)
    return float(steps.positive[::-1] @ (tp / (tp + fp))) / float(tp[-1])


def _precision_error(tp: Floats, fp: Floats, value: float) -> float:
    """The larger distance of the average precision from what it can be at most and at least."""
    p, above, false = np.diff(tp, prepend=0.0), np.append(0.0, tp[:-1]), np.append(0.0, fp[:-1])
    most = p * _share(tp, tp + false)
    start = above + fp  # where all negative rows of the bin are called first
    growth = np.log1p(np.divide(p, start, out=np.zeros_like(p), where=start > 0))
    least = p - fp * growth
    most_at, least_at = (float(bound.sum()) / float(tp[-1]) for bound in (most, least))
    return max(most_at - value, value - least_at, 0.0)


def _share(part: Floats, whole: Floats) -> npt.NDArray[np.float64]:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
