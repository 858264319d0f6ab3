"""ROC plot: curves with confidence bands, areas and marked thresholds.

The curve is computed by `assessment.ranking.roc`, its area with DeLong's interval by
`assessment.ranking.auc`. The band shows the uncertainty of the curve. At a threshold, TP of m
positive and FP of n negative rows are predicted as positive. Wilson's intervals of TP/m and of
FP/n, each at the square root of the level, form a rectangle. As the two rates are independent, the
rectangle contains the true point with a probability of at least the level. The band is the union of
the rectangles of all thresholds:

    upper limit at fpr   the highest tpr of a rectangle that begins at fpr or left of it
    lower limit at fpr   the lowest tpr of a rectangle that ends at fpr or right of it

The level applies to each threshold separately, not to the whole curve at once.
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
from discriminant.report.plots.matplotlib_axes import LINES, Canvas, check_matplotlib
from discriminant.table.blocks import Floats
from discriminant.table.labels import encode_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    y : array of shape (n,) or Ranking
        (N,) true labels; or a `Ranking`, which includes the scores.
    scores : array of shape (n,) or (n, K), or dict of such arrays, default None
        (N,) scores, higher for rows more likely to be positive, on any scale; {name: scores} for
        several models on the same rows; or (N, K), one column per class, for a curve of each class
        against all others.
    ax : matplotlib Axes or None, default None
        Axes to draw on. None means the Axes of a new figure.
    positive : label or None, default None
        Label that high scores predict (default: the second of two in sorted order).
    classes : array of shape (K,) or None, default None
        Labels of the columns of (N, K) scores (default: as in `roc`).
    interval : float or None, default 0.95
        Level of DeLong's intervals of the areas, in the legend, and of the band; None for neither.
    band : bool or None, default None
        Whether to draw a confidence band (default: only if there is one curve). At each threshold
        the band contains the true point with the probability `interval`.
    thresholds : 'youden', float, list of float or None, default 'youden'
        Scores to mark on the curves: a number or several; 'youden' marks the point with the
        largest tpr - fpr; None marks none.
    sample_weight : array of shape (n,) or None, default None
        (N,) number of rows that each row represents.
    title : str or None, default None
        Title of the plot (default: a short description).

    Returns
    -------
    Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = plot_roc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['AUC 0.750 (0.057 to 1.000)', 'chance']
    """
    check_matplotlib()
    options = {"positive": positive, "sample_weight": sample_weight}
    curves = _curves(y, scores, options, interval, classes)
    marked = [_marks(curve, thresholds) for curve, _ in curves.values()]
    level = interval if (len(curves) == 1 if band is None else band) else None
    bands = [
        roc_band(curve, _weights(y, sample_weight, curve.positive), level=level)
        for curve, _ in curves.values()
        if level is not None
    ]
    canvas, handles = Canvas.of(ax, size=(5.4, 5.2)), []
    for k, (rates, low, high) in enumerate(bands):
        look: dict[str, Any] = {"color": canvas.colour(k), "alpha": 0.25, "linewidth": 0}
        canvas.ax.fill_between(rates, low, high, zorder=1, **look)
    for k, (name, (curve, area)) in enumerate(curves.items()):
        handles.append(_draw_curve(canvas, curve, k, _area_words(name, area)))
        _draw_marks(canvas, curve, marked[k], k, words=len(curves) == 1)
    (chance,) = canvas.ax.plot([0, 1], [0, 1], ":", color=canvas.ink, alpha=0.6, label="chance")
    _finish(canvas, [*handles, chance], curves, title, level)
    return canvas.ax


def roc_band(
    curve: Roc, weights: tuple[float, float], *, level: float
) -> tuple[Floats, Floats, Floats]:
    """Return (m,) false positive rates, and the lower and upper limit of the true positive rate."""
    P, N = weights
    root = np.sqrt(level)
    up = wilson((curve.tpr * P, np.full(len(curve.tpr), P)), root)
    across = wilson((curve.fpr * N, np.full(len(curve.fpr), N)), root)
    rates = np.unique(np.concatenate([[0.0, 1.0], *across]))
    # Thresholds decrease, so all four ends of the rectangles increase: the highest rectangle is the
    # last that has begun, and the lowest is the first that has not ended.
    begun = np.searchsorted(across[0], rates, side="right") - 1
    ended = np.minimum(np.searchsorted(across[1], rates, side="left"), len(curve.tpr) - 1)
    return rates, np.asarray(up[0][ended]), np.asarray(up[1][np.maximum(begun, 0)])


def _curves(
    y: Any, scores: Any, options: dict[str, Any], interval: float | None, classes: Any
) -> dict[str, tuple[Roc, AUC]]:
    """Return the ROC curve and its area for each model, or for each class."""
    if interval is not None:
        interval = check_level(interval, "interval")
    if isinstance(scores, Mapping) and not scores:
        raise OptionError.of("scores", scores, "scores, or {name: scores} of one model or more")
    if np.ndim(scores) == 2:
        requests = _class_scores(y, scores, options, classes)
    else:
        by_name = scores if isinstance(scores, Mapping) else {"": scores}
        requests = {str(name): (values, options) for name, values in by_name.items()}
    return {
        name: (roc(y, values, **chosen), auc(y, values, interval, **chosen))
        for name, (values, chosen) in requests.items()
    }


def _class_scores(y: Any, scores: Any, options: dict[str, Any], classes: Any) -> dict[str, Any]:
    """Return the scores of each class, by which the class is ranked against all others.

    For two classes only the scores of the positive class are returned.
    """
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
    return {
        "" if len(own) == 1 else str(name): (
            columns[names.index(name)],
            options | {"positive": name},
        )
        for name in own
    }


def _weights(y: Any, sample_weight: Any, positive: Any) -> tuple[float, float]:
    """Return the numbers of positive and of negative rows, counted by weight."""
    if isinstance(y, Ranking):
        steps = y.steps()
        return float(steps.positive.sum()), float(steps.negative.sum())
    own = np.asarray(y) == positive
    weight = np.ones(len(own)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    return float(weight[own].sum()), float(weight[~own].sum())


def _marks(curve: Roc, thresholds: Any) -> npt.NDArray[np.intp]:
    """Return the indices of the points of the curve at the requested thresholds."""
    if thresholds is None:
        return np.zeros(0, dtype=np.intp)
    if isinstance(thresholds, str):
        if thresholds != "youden":
            raise OptionError.of("thresholds", thresholds, "'youden', numbers or None")
        return np.array([curve.best()])
    values = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
    return np.searchsorted(-curve.threshold, -values, side="right") - 1


def _area_words(name: str, area: AUC) -> str:
    text = f"{name}: AUC {area.value:.3f}" if name else f"AUC {area.value:.3f}"
    return text if area.level is None else f"{text} ({area.low:.3f} to {area.high:.3f})"


def _draw_curve(canvas: Canvas, curve: Roc, code: int, label: str) -> Any:
    corners = curve.corners()
    look: dict[str, Any] = {"color": canvas.colour(code), "linewidth": 2, "zorder": 3}
    (line,) = canvas.ax.plot(
        corners.fpr, corners.tpr, LINES[code % len(LINES)], label=label, **look
    )
    return line


def _draw_marks(
    canvas: Canvas, curve: Roc, marked: npt.NDArray[np.intp], code: int, *, words: bool
) -> None:
    """Draw the points of the curve at the marked thresholds, with their labels."""
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
    curves: Mapping[str, tuple[Roc, AUC]],
    title: str | None,
    level: float | None,
) -> None:
    curve, area = next(iter(curves.values()))
    if title is None:
        several = len({other.positive for other, _ in curves.values()}) > 1
        title = "ROC of each class against all others" if several else f"ROC of {curve.positive!r}"
        title += "" if level is None else f"\n(band: {level:.0%} at each threshold)"
    canvas.name(
        title=title,
        x="false positive rate (1 - specificity)",
        y="true positive rate (recall)",
    )
    canvas.ax.set(xlim=(-0.015, 1.015), ylim=(-0.015, 1.015), aspect="equal")
    heading = None if area.level is None else f"area, {area.level:.0%} interval"
    canvas.legend(handles, title=heading, loc="lower right")
