"""Plots of the reject option: the rejected region, and error against coverage.

The first plot shows, along a feature, the posteriors of all classes and the band in which rows are
rejected. If every error costs 1 and rejecting costs c, rows are rejected where no posterior reaches
1 - c.

The second plot shows the error of the decided held-out rows against their share, the coverage
(`decision.risk_and_cost_curves`). The error falls as more of the uncertain rows are rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discriminant.assessment.classifier_outputs import check_classifier
from discriminant.assessment.resampling.held_out_folds import HeldOutPredictions
from discriminant.decision.actions import REJECT, Reject, exceeds
from discriminant.decision.risk_and_cost_curves import RiskCoverage, risk_coverage
from discriminant.errors import PlotError, PosteriorError, merge_warnings
from discriminant.report.plots.boundary import (
    bisect_edges,
    decision_function,
    fixed_words,
    known_labels,
    sample_rows,
)
from discriminant.report.plots.matplotlib_axes import (
    LINES,
    Canvas,
    Plane,
    check_matplotlib,
    model_words,
)
from discriminant.table.blocks import Codes, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NODES = 801


def plot_reject(
    found: Any,
    X: Any = None,
    y: Any = None,
    *,
    ax: Axes | None = None,
    feature: Any = 0,
    reject: float | None = None,
    most: int = 600,
    title: str | None = None,
) -> Axes:
    """Plot the region that a Decision rejects, or the risk-coverage curve.

    Parameters
    ----------
    found : fitted classifier with `decide`, HeldOutPredictions or RiskCoverage
        A fitted `Decision` (or any classifier with `decide` and `predict_proba`), with rows X; or
        the result of `cross_validate` or of `risk_coverage`.
    X, y : array or data frame of shape (n, d), and array of shape (n,), default None
        Rows for a Decision, and their labels if they are to be shown.
    ax : matplotlib Axes or None, default None
        Axes to draw on. None means the Axes of a new figure.
    feature : int or str, default 0
        Position or name of the feature along which posteriors are shown; all others are fixed at
        their mean.
    reject : float or None, default None
        Cost of rejecting to mark on the risk-coverage curve.
    most : int, default 600
        Largest number of rows shown; more are sampled at random.
    title : str or None, default None
        Title of the plot (default: a short description).

    Returns
    -------
    Axes

    Examples
    --------
    >>> from discriminant import LDA, Decision
    >>> from matplotlib.figure import Figure
    >>> rows, labels = [[0.0], [1.0], [4.0], [5.0]], list("aabb")
    >>> model = Decision(LDA(), reject=0.1).fit(rows, labels)
    >>> plot_reject(model, rows, labels, ax=Figure().subplots()).get_title()
    'Rejected region of Decision(LDA)'
    """
    check_matplotlib()
    if isinstance(found, HeldOutPredictions):
        if not found.probabilistic:
            raise PosteriorError.not_probabilities("the model held out", "plot_reject")
        curve = risk_coverage(found.log_posterior, found.codes, sample_weight=found.weight)
        words = "error of the decided rows"
        return _draw_curve(Canvas.of(ax), curve, reject, title, words)
    if isinstance(found, RiskCoverage):
        words = "mean cost of the decided rows"
        return _draw_curve(Canvas.of(ax), found, reject, title, words)
    check_classifier(found)
    if not hasattr(found, "decide") or not hasattr(found, "predict_proba"):
        instead = "Put it into Decision(..., reject=...)."
        raise PlotError.of_model("plot_reject", type(found).__name__, "decide", instead)
    if X is None:
        raise PlotError.of_kind("plot_reject", "model without rows", "X, and y to show their class")
    return _draw_band(found, X, y, ax, feature=feature, most=most, title=title)


def rejected_bands(model: Any, plane: Plane, places: Floats) -> list[tuple[float, float]]:
    """Return the intervals of the feature in which rows are rejected.

    The ends of an interval are located by bisection.
    """
    actions: list[Any] = [REJECT]
    decide = decision_function(model, plane, actions)

    def rejects(points: Floats) -> npt.NDArray[np.intp]:
        return np.asarray(decide(points) == 0, dtype=np.intp)

    inside = rejects(places[:, None])
    edges = np.flatnonzero(np.diff(inside))
    ends = bisect_edges(rejects, places[edges, None], places[edges + 1, None], inside[edges])[:, 0]
    first, last = places[:1][inside[:1] == 1], places[-1:][inside[-1:] == 1]
    bands = np.concatenate([first, ends, last]).reshape(-1, 2)
    return [(float(low), float(high)) for low, high in bands]


def _draw_band(
    model: Any, X: Any, y: Any, ax: Axes | None, *, feature: Any, most: int, title: str | None
) -> Axes:
    plane = Plane.of(X, (feature,), names=getattr(model, "feature_names_in_", None))
    places = np.linspace(*plane.window()[0], _NODES)
    labels, codes = np.asarray(model.classes_), None
    if y is not None:
        labels, codes = known_labels(model, y, len(plane.points))
    with merge_warnings():
        bands = rejected_bands(model, plane, places)
        posterior = np.asarray(model.predict_proba(plane.rows(places[:, None])))
    canvas = Canvas.of(ax)
    handles = []
    for k, label in enumerate(np.asarray(model.classes_).tolist()):
        code = labels.tolist().index(label)
        look: dict[str, Any] = {"color": canvas.colour(code), "linewidth": 2, "label": str(label)}
        style = LINES[code % len(LINES)]
        handles += canvas.ax.plot(places, posterior[:, k], style, zorder=3, **look)
    handles += [_shade(canvas, band) for band in bands][:1]
    handles += _threshold(canvas, model)
    if codes is not None:
        _draw_rows_below(canvas, plane.points[:, 0], codes, most=most)
    if title is None:
        title = f"Rejected region of {model_words(model)}{fixed_words(plane)}"
    canvas.name(title=title, x=plane.labels[0], y="posterior of each class")
    canvas.ax.set_xlim(*places[[0, -1]])
    canvas.legend(handles)
    return canvas.ax


def _shade(canvas: Canvas, band: tuple[float, float]) -> Any:
    from matplotlib.colors import to_rgba

    return canvas.ax.axvspan(
        *band,
        facecolor=to_rgba(canvas.ink, 0.08),
        edgecolor=to_rgba(canvas.ink, 0.35),
        hatch="////",
        linewidth=0.0,
        label="rejected",
        zorder=0.5,
    )


def _threshold(canvas: Canvas, model: Any) -> list[Any]:
    """Draw the threshold on the posterior for rejecting, if it is the same for all classes."""
    options = [getattr(model, name, None) for name in ("reject", "cost", "threshold")]
    if options[0] is None or options[1] is not None or options[2] is not None:
        return []
    reject = Reject.of(options[0])
    limit = max(reject.threshold, 1.0 - reject.cost)
    if not 0.0 < limit <= 1.0:
        return []
    text = f"least posterior to decide: {limit:.3g}"
    return [canvas.ax.axhline(limit, color=canvas.ink, linewidth=1, linestyle=":", label=text)]


def _draw_rows_below(canvas: Canvas, values: Floats, codes: Codes, *, most: int) -> None:
    sample, present = sample_rows(len(codes), most), np.unique(codes).tolist()
    for j, k in enumerate(present):
        own = values[sample][codes[sample] == k]
        canvas.rows(np.column_stack([own, np.full(len(own), -0.05 * (j + 1))]), k, "_", alpha=0.7)
    canvas.ax.set_ylim(-0.05 * (len(present) + 1), 1.03)
    canvas.ax.set_yticks(np.linspace(0.0, 1.0, 6))  # no tick below zero, where the rows are drawn


def _draw_curve(
    canvas: Canvas, curve: RiskCoverage, reject: float | None, title: str | None, words: str
) -> Axes:
    look: dict[str, Any] = {"color": canvas.colour(0), "linewidth": 2, "where": "post"}
    handles = canvas.ax.step(curve.coverage, curve.risk, **look, label="most certain rows first")
    text = f"all rows: {curve.risk[-1]:.3g}"
    handles += canvas.ax.plot(
        [1.0], curve.risk[-1:], "o", color=canvas.colour(0), label=text, clip_on=False, zorder=4
    )
    if reject is not None:
        place = int((~exceeds(curve.bound, reject)).sum()) - 1
        if place >= 0:
            at = curve.coverage[place], curve.risk[place]
            text = f"rejecting costs {reject:g}: {at[0]:.1%} decided, {at[1]:.3g}"
            handles += canvas.ax.plot(
                *([v] for v in at), "D", color=canvas.colour(1), label=text, zorder=5
            )
    name = "Risk-coverage curve" if title is None else title
    canvas.name(title=name, x="coverage (share of rows decided)", y=words)
    canvas.ax.set_xlim(0.0, 1.0)
    canvas.ax.set_ylim(0.0, max(float(curve.risk.max()) * 1.08, 1e-3))
    canvas.legend(handles)
    return canvas.ax
