"""ROC curves with confidence bands, areas and thresholds.

The curve is `assessment.roc`, the interval of its area DeLong's (`assessment.auc`). The band says
how sure the curve itself is. At a threshold, of m positive rows TP are called positive, and FP of n
negative ones; Wilson's intervals of TP/m and of FP/n, each at the root of the level, make a
rectangle that holds the true point with at least that level, since the two are independent. The
band is all that the rectangles of all thresholds cover:

    highest   at a false positive rate, the best tpr of a rectangle that begins at or left of it
    lowest    the worst tpr of a rectangle that ends at or right of it

It holds for one threshold at a time, whichever it is, and not for the whole curve at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discriminant.assessment.intervals import check_level, wilson
from discriminant.assessment.ranking.auc import AUC, auc
from discriminant.assessment.ranking.roc import Roc, roc
from discriminant.errors import LabelError, OptionError, ScoreError
from discriminant.moments.ranking import Ranking
from discriminant.report.plots.canvas import Canvas, check_matplotlib
from discriminant.table.blocks import Floats
from discriminant.table.labels import encode_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINES = ("-", "--", "-.", ":")


def plot_roc(
    y: Any,
    scores: Any = None,
    *,
    ax: Axes | None = None,
    positive: Any = None,
    classes: Any = None,
    interval: float | None = 0.95,
    band: bool | None = None,
    thresholds: Any = "youden",
    sample_weight: Any = None,
    title: str | None = None,
) -> Axes:
    """Plot the true against the false positive rate over all thresholds, with intervals.

    Parameters
    ----------
    y
        (N,) true labels; or a `Ranking`, which has the scores with it.
    scores
        (N,) higher where a row is rather positive, on any scale; {name: scores} of several models
        on the same rows; or (N, K), a column a class, for a curve of each against all others.
    ax
        Where to draw; None: on a new figure.
    positive
        The label that high scores speak for. None: the second of two in sorted order.
    classes
        The labels of the columns of (N, K) scores; None: as in `roc`.
    interval
        Level of DeLong's intervals of the areas, in the legend, and of the band; None for neither.
    band
        Whether the curve has a band; None: if there is one curve. At each threshold the true point
        lies within it with that level.
    thresholds
        Scores to be marked on the curves: a number or several; 'youden' marks the point of the
        largest tpr - fpr; None marks none.
    sample_weight
        (N,) how many rows each counts for.
    title
        None: in a few words what is shown.
    """
    check_matplotlib()
    options = {"positive": positive, "sample_weight": sample_weight}
    found = _curves(y, scores, options, interval, classes)
    marked = [_marks(curve, thresholds) for curve, _ in found.values()]
    banded = interval is not None and (len(found) == 1 if band is None else band)
    bands = (
        [
            roc_band(curve, _weights(y, sample_weight, curve.positive), level=interval)
            for curve, _ in found.values()
        ]
        if banded and interval is not None
        else []
    )
    canvas, handles = Canvas.of(ax, size=(5.4, 5.2)), []
    for k, (rates, low, high) in enumerate(bands):
        look: dict[str, Any] = {"color": canvas.colour(k), "alpha": 0.25, "linewidth": 0}
        canvas.ax.fill_between(rates, low, high, zorder=1, **look)
    for k, (name, (curve, area)) in enumerate(found.items()):
        handles.append(_draw_curve(canvas, curve, k, _said(name, area)))
        _draw_marks(canvas, curve, marked[k], k, words=len(found) == 1)
    (chance,) = canvas.ax.plot([0, 1], [0, 1], ":", color=canvas.ink, alpha=0.6, label="chance")
    _finish(canvas, [*handles, chance], found, title, interval if banded else None)
    return canvas.ax


def roc_band(
    curve: Roc, weights: tuple[float, float], *, level: float
) -> tuple[Floats, Floats, Floats]:
    """Return (m,) false positive rates with the limits of the true positive rate."""
    P, N = weights
    each = np.sqrt(level)
    up = wilson((curve.tpr * P, np.full(len(curve.tpr), P)), each)
    across = wilson((curve.fpr * N, np.full(len(curve.fpr), N)), each)
    rates = np.unique(np.concatenate([[0.0, 1.0], *across]))
    # Thresholds fall, so all four ends rise: the last rectangle that has begun is the highest, and
    # the first that has not ended the lowest.
    begun = np.searchsorted(across[0], rates, side="right") - 1
    ended = np.minimum(np.searchsorted(across[1], rates, side="left"), len(curve.tpr) - 1)
    return rates, np.asarray(up[0][ended]), np.asarray(up[1][np.maximum(begun, 0)])


def _curves(
    y: Any, scores: Any, options: dict[str, Any], interval: float | None, classes: Any
) -> dict[str, tuple[Roc, AUC]]:
    """Return curve and area of each model, or of each class."""
    if interval is not None:
        interval = check_level(interval, "interval")
    if isinstance(scores, Mapping) and not scores:
        raise OptionError.of("scores", scores, "scores, or {name: scores} of one model or more")
    if np.ndim(scores) == 2:
        asked = _by_class(y, scores, options, classes)
    else:
        many = scores if isinstance(scores, Mapping) else {"": scores}
        asked = {str(name): (one, options) for name, one in many.items()}
    return {
        name: (roc(y, one, **more), auc(y, one, interval, **more))
        for name, (one, more) in asked.items()
    }


def _by_class(y: Any, scores: Any, options: dict[str, Any], classes: Any) -> dict[str, Any]:
    """Return the scores of each class against the rest; for two classes, of the positive one."""
    named = list(getattr(scores, "columns", ())) or None
    given = classes if classes is not None else encode_labels(y)[0] if named is None else named
    names, columns = np.asarray(given).tolist(), np.asarray(scores).T
    if len(names) != len(columns):
        raise ScoreError.of_shape(np.shape(scores), len(np.asarray(y)), names)
    own = names[1:] if len(names) == 2 else names
    if options["positive"] is not None:
        own = [options["positive"]]
        if own[0] not in names:
            raise LabelError.unknown(own, names)
    columns_of = {name: columns[names.index(name)] for name in own}
    one = len(own) == 1
    return {
        "" if one else str(name): (column, options | {"positive": name})
        for name, column in columns_of.items()
    }


def _weights(y: Any, sample_weight: Any, positive: Any) -> tuple[float, float]:
    """Return the numbers of positive and negative rows."""
    if isinstance(y, Ranking):
        steps = y.steps()
        return float(steps.positive.sum()), float(steps.negative.sum())
    own = np.asarray(y) == positive
    weight = np.ones(len(own)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    return float(weight[own].sum()), float(weight[~own].sum())


def _marks(curve: Roc, thresholds: Any) -> npt.NDArray[np.intp]:
    """Return the points of the curve at the requested thresholds."""
    if thresholds is None:
        return np.zeros(0, dtype=np.intp)
    if isinstance(thresholds, str):
        if thresholds != "youden":
            raise OptionError.of("thresholds", thresholds, "'youden', numbers or None")
        return np.array([curve.best()])
    asked = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
    return np.searchsorted(-curve.threshold, -asked, side="right") - 1


def _said(name: str, area: AUC) -> str:
    text = f"{name}: AUC {area.value:.3f}" if name else f"AUC {area.value:.3f}"
    return text if area.level is None else f"{text} ({area.low:.3f} to {area.high:.3f})"


def _draw_curve(canvas: Canvas, curve: Roc, code: int, label: str) -> Any:
    corners = curve.corners()
    look: dict[str, Any] = {"color": canvas.colour(code), "linewidth": 2, "zorder": 3}
    (line,) = canvas.ax.plot(
        corners.fpr, corners.tpr, _LINES[code % len(_LINES)], label=label, **look
    )
    return line


def _draw_marks(
    canvas: Canvas, curve: Roc, marked: npt.NDArray[np.intp], code: int, *, words: bool
) -> None:
    """Draw the points at thresholds with their labels."""
    ax = canvas.ax
    at = curve.fpr[marked], curve.tpr[marked]
    look = {"s": 54, "facecolor": canvas.colour(code), "edgecolor": canvas.ink, "zorder": 4}
    ax.scatter(*at, marker=canvas.mark(code), **look)
    for place in marked if words else ():
        text = f"score ≥ {curve.threshold[place]:.3g}"
        where = curve.fpr[place], curve.tpr[place]
        ax.annotate(text, where, xytext=(9, -13), textcoords="offset points", zorder=5)


def _finish(
    canvas: Canvas,
    handles: Sequence[Any],
    found: Mapping[str, tuple[Roc, AUC]],
    title: str | None,
    level: float | None,
) -> None:
    curve, area = next(iter(found.values()))
    if title is None:
        several = len({one.positive for one, _ in found.values()}) > 1
        title = "ROC of each class against all others" if several else f"ROC of {curve.positive!r}"
        title += "" if level is None else f"\n(band: {level:.0%} at each threshold)"
    canvas.name(
        title=title,
        x="false positive rate (share of the others called so)",
        y="true positive rate (share of its rows found)",
    )
    canvas.ax.set(xlim=(-0.015, 1.015), ylim=(-0.015, 1.015), aspect="equal")
    heading = None if area.level is None else f"area, {area.level:.0%} interval"
    canvas.legend(handles, title=heading, loc="lower right")
