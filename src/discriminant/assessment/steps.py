"""From labels and scores to steps: the rows of both kinds at each score, exactly.

NumPy sorts numbers some eight times as fast as it finds their order. So without weights nothing is
put in order: all scores are sorted, those of the positive rows are sorted, and how many of these
are at or below each distinct score is looked up.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.engines.local import available_threads
from discriminant.errors import LabelError, OptionError, ScoreError
from discriminant.moments.ranking import (
    BINS,
    Ranking,
    Steps,
    as_numbers,
    check_missing,
    score_values,
)
from discriminant.table.class_columns import classes_of_columns
from discriminant.table.labels import encode_labels
from discriminant.table.schema import Codes, Floats, Labels
from discriminant.table.source import open_weight

_WORTH_THREADS = 1 << 16  # scores


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
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
    weight = open_weight(sample_weight, len(codes), some=False)
    return Ranking.of(values, codes == code, positive=positive, weight=weight, bins=bins)


def judged(
    labels: Any, scores: Any, *, positive: Any = None, classes: Any = None, sample_weight: Any
) -> tuple[Judged, Any]:
    """Rows that count, and the positive label if one class is ranked above the others.

    A column is taken out of (N, K) scores where there are two classes or one is named.
    """
    if isinstance(labels, Ranking):
        raise ScoreError.without_rows(labels.positive)
    if scores is None:
        raise ScoreError.absent()
    found, codes = encode_labels(labels)
    weight = open_weight(sample_weight, len(codes))
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
    return Judged(found, codes, values, weight), positive


def steps_of(
    labels: Any, scores: Any, *, positive: Any, sample_weight: Any, classes: Any = None
) -> tuple[Steps, Any]:
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
    rows, positive = judged(
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


def own_rows(rows: Judged, positive: Any) -> npt.NDArray[np.bool_]:
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
) -> Steps:
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
    return Steps(threshold.astype(np.float64, copy=False), negative, positive)


def _weighed_steps(scores: npt.NDArray[Any], own: npt.NDArray[np.bool_], weight: Floats) -> Steps:
    order = np.argsort(scores, kind="stable")
    ordered, own, weight = scores[order], own[order], weight[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    negative = np.add.reduceat(np.where(own, 0.0, weight), first)
    positive = np.add.reduceat(np.where(own, weight, 0.0), first)
    return Steps(ordered[first].astype(np.float64, copy=False), negative, positive)


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
