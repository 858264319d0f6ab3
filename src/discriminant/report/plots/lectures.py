"""Plots for the lectures: masking of a class by least squares, and the path of a perceptron.

Masking shows the scores of each class along the line through the class means.

    z = (x - m) / s          m the mean of the class means, s the sd of each feature
    u                        the unit direction in which the class means differ most, in z
    position t on the line   x = m + s u t

Least squares fits a straight line to the indicator of each class. If the means of three classes lie
on one line, the fitted line of the middle class is nearly level and is nowhere the highest line:
the class is masked.

The path of a perceptron is shown as its boundary after some of its passes, or as the number of its
updates in each pass. A fitted perceptron stores these numbers, but not the earlier boundaries.
Since a boundary depends only on the options and the order of the rows, the boundary after p passes
equals the boundary of the same perceptron fitted with at most p passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from discriminant.assessment.classifier_outputs import check_classifier
from discriminant.errors import OptionError, PlotError, capture_warnings, merge_warnings
from discriminant.report.plots.boundary import (
    draw_borders,
    draw_rows,
    known_labels,
    plane_of,
    regions_of,
    sample_rows,
)
from discriminant.report.plots.matplotlib_axes import LINES, Canvas, Plane, check_matplotlib
from discriminant.table.blocks import Codes, Floats, Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_NODES = 801


@dataclass(frozen=True, slots=True, eq=False)
class MeansLine:
    """A line in feature space, with the positions of the rows along it."""

    start: Floats  # (d,) the point at t = 0
    step: Floats  # (d,) step from position t to t + 1
    rows: Floats  # (n,) position of each row
    means: Floats  # (K,) position of each class mean
    words: str  # label of the axis

    @classmethod
    def of(cls, points: Floats, codes: Codes, names: tuple[str, ...]) -> MeansLine:
        """Return the line through the class means, with the positions of the rows."""
        means = np.array([points[codes == k].mean(axis=0) for k in np.unique(codes)])
        if points.shape[1] == 1:
            return cls(np.zeros(1), np.ones(1), points[:, 0], means[:, 0], names[0])
        middle, sd = means.mean(axis=0), points.std(axis=0)
        scale = np.where(sd > 0, sd, 1.0)
        offsets = (means - middle) / scale
        _, sizes, directions = np.linalg.svd(offsets, full_matrices=False)
        u = directions[0] * np.sign(offsets[-1] @ directions[0] or 1.0)
        share = sizes[0] ** 2 / max(float((sizes**2).sum()), np.finfo(float).tiny)
        words = "position on the line along which the class means differ most"
        words += f"\n({share:.0%} of the variance of the means)" if share < 0.995 else ""
        rows = ((points - middle) / scale) @ u
        return cls(middle, scale * u, rows, offsets @ u, words)

    def positions(self) -> Floats:
        """Return (m,) positions that cover the range of the rows, with a margin."""
        low, high = float(self.rows.min()), float(self.rows.max())
        margin = 0.04 * (high - low) or 1.0
        return np.linspace(low - margin, high + margin, _NODES)

    def points(self, positions: Floats) -> Floats:
        """Return the (m, d) points at (m,) positions."""
        return np.asarray(self.start + positions[:, None] * self.step)


def plot_masking(
    model: Any,
    X: Any,
    y: Any,
    *,
    ax: Axes | None = None,
    most: int = 600,
    title: str | None = None,
) -> Axes:
    """Plot fitted values or posteriors of all classes along the line through their means.

    The curve of a class is heavy where that class is predicted. A class that is never predicted
    along the line is masked, and named in the title.

    Parameters
    ----------
    model : fitted classifier
        Classifier of three or more classes. For `LeastSquares` the fitted values are shown, for any
        other classifier the posteriors.
    X, y : array or data frame of shape (n, d), and array of shape (n,)
        Numeric rows and their labels. The rows are shown along the bottom of the plot.
    ax : matplotlib Axes or None, default None
        Axes to draw on. None means the Axes of a new figure.
    most : int, default 600
        Largest number of rows shown; more are sampled at random.
    title : str or None, default None
        Title of the plot (default: the masked classes, if any).

    Returns
    -------
    Axes

    Examples
    --------
    >>> from discriminant import LDA
    >>> from matplotlib.figure import Figure
    >>> rows, labels = [[0.0], [1.0], [4.0], [5.0], [8.0], [9.0]], list("aabbcc")
    >>> ax = plot_masking(LDA().fit(rows, labels), rows, labels, ax=Figure().subplots())
    >>> ax.get_title()
    'LDA: no class is masked along this line'
    """
    check_matplotlib()
    check_classifier(model)
    names = getattr(model, "feature_names_in_", None)
    plane = Plane.of(X, None, names=names)
    labels, codes = known_labels(model, y, len(plane.points))
    if len(labels) < 3:
        raise PlotError.of_classes("plot_masking", len(labels), "three classes or more")
    line = MeansLine.of(plane.points, codes, plane.names)
    positions = line.positions()
    with merge_warnings():
        values, what = _values(model, plane.rows(line.points(positions)))
    canvas = Canvas.of(ax)
    predicted = values.argmax(axis=1)
    masked = sorted(set(range(len(labels))) - set(predicted.tolist()))
    handles = _draw_values(canvas, positions, values, predicted, labels)
    _draw_rows_below(canvas, line, codes, most=most)
    name = f"{type(model).__name__}: {_masked_words([labels[k] for k in masked])}"
    canvas.name(title=name if title is None else title, x=line.words, y=what)
    canvas.ax.set_xlim(*positions[[0, -1]])
    canvas.legend(handles)
    return canvas.ax


def _values(model: Any, rows: Any) -> tuple[Floats, str]:
    """Return the (m, K) curves of the K classes at m points, and their name.

    At each point the class with the largest value is predicted.
    """
    if hasattr(model, "masked_"):
        return np.asarray(model.decision_function(rows)), "fitted value of each class"
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(rows)), "posterior of each class"
    instead = "Fit LeastSquares, or a classifier with predict_proba."
    raise PlotError.of_model("plot_masking", type(model).__name__, "predict_proba", instead)


def _masked_words(masked: list[Any]) -> str:
    if not masked:
        return "no class is masked along this line"
    names = " and ".join(f"'{label}'" for label in masked)
    noun, verb = ("class", "is") if len(masked) == 1 else ("classes", "are")
    return f"{noun} {names} {verb} masked along this line"


def _draw_values(
    canvas: Canvas,
    positions: Floats,
    values: Floats,
    predicted: npt.NDArray[np.intp],
    labels: Labels,
) -> list[Any]:
    handles = []
    for k, label in enumerate(labels.tolist()):
        name = str(label) if (predicted == k).any() else f"{label} (masked)"
        look: dict[str, Any] = {"color": canvas.colour(k), "zorder": 3}
        style = LINES[k % 3]
        handles += canvas.ax.plot(positions, values[:, k], style, linewidth=1.8, label=name, **look)
        largest = np.where(predicted == k, values[:, k], np.nan)
        canvas.ax.plot(positions, largest, linewidth=6, alpha=0.35, solid_capstyle="butt", **look)
    return handles


def _draw_rows_below(canvas: Canvas, line: MeansLine, codes: Codes, *, most: int) -> None:
    """Draw the rows below the curves, one level per class, with a cross at each mean."""
    low, high = canvas.ax.get_ylim()
    present = np.unique(codes)
    sample, step = sample_rows(len(codes), most), 0.045 * (high - low)
    for j, k in enumerate(present.tolist()):
        own = line.rows[sample][codes[sample] == k]
        level = low - step * (j + 1)
        canvas.rows(np.column_stack([own, np.full(len(own), level)]), k, "_", alpha=0.7)
        canvas.ax.plot(
            [line.means[j]], [level], "+", color=canvas.ink, markersize=11, mew=1.8, zorder=4
        )
    canvas.ax.axhline(low, color=canvas.ink, linewidth=0.6, alpha=0.4)
    canvas.ax.set_yticks([tick for tick in canvas.ax.get_yticks() if low <= tick <= high])
    canvas.ax.set_ylim(low - step * (len(present) + 1), high)


_PATH_NODES = 121


def plot_perceptron_path(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    ax: Axes | None = None,
    borders: Any = 6,
    most: int = 2000,
    title: str | None = None,
) -> Axes:
    """Plot the boundary of a perceptron after some passes; without rows, its updates per pass.

    Parameters
    ----------
    model : fitted Perceptron
        Perceptron whose path is shown.
    X, y : array or data frame of shape (n, d), and array of shape (n,), default None
        Rows and labels to which the perceptron was fitted, in the same order and with two features.
        None means a plot of the number of updates in each pass.
    ax : matplotlib Axes or None, default None
        Axes to draw on. None means the Axes of a new figure.
    borders : int, default 6
        Largest number of boundaries, including the final one. Most of the boundaries shown are from
        the first passes, in which the boundary moves most.
    most : int, default 2000
        Largest number of rows shown; more are sampled at random.
    title : str or None, default None
        Title of the plot (default: the numbers of updates and of misclassified rows).

    Returns
    -------
    Axes

    Examples
    --------
    >>> from discriminant import Perceptron
    >>> from matplotlib.figure import Figure
    >>> model = Perceptron().fit([[0.0], [1.0], [3.0], [4.0]], list("aabb"))
    >>> print(plot_perceptron_path(model, ax=Figure().subplots()).get_title())
    Perceptron: 2 updates in 2 passes
    (no rows misclassified)
    """
    check_matplotlib()
    if not hasattr(model, "path_") or not hasattr(model, "n_updates_"):
        instead = "Fit discriminant.Perceptron."
        raise PlotError.of_model("plot_perceptron_path", type(model).__name__, "path_", instead)
    if not isinstance(borders, Integral) or borders < 1:
        raise OptionError.of("borders", borders, "a whole number of 1 or more")
    if X is None:
        return _draw_updates(Canvas.of(ax), model, title)
    plane = plane_of(model, X, (0, 1), "plot_perceptron_path")
    if plane.n_fixed:
        instead = "If X and y are not given, the plot shows the number of updates in each pass."
        raise PlotError.of_width("plot_perceptron_path", len(plane.names), "just two", instead)
    labels, codes = known_labels(model, y, len(plane.points))
    passes = shown_passes(model.n_passes_, int(borders))[:-1]
    models = [*(refit(model, X, y, p) for p in passes), model]
    names = [*(_pass_words(model, p) for p in passes), "final boundary"]
    lines = [regions_of(m, plane, nodes=_PATH_NODES)[0].lines() for m in models]
    canvas = Canvas.of(ax)
    handles = [_draw_border(canvas, lines[i], i, len(lines), name) for i, name in enumerate(names)]
    marks = draw_rows(canvas, plane.points, codes, labels, most=most)
    window = plane.window()
    canvas.ax.set_xlim(*window[0])
    canvas.ax.set_ylim(*window[1])
    name = _path_words(model) if title is None else title
    canvas.name(title=name, x=plane.labels[0], y=plane.labels[1])
    canvas.legend([*marks.values(), *handles])
    return canvas.ax


def shown_passes(passes: int, most: int) -> list[int]:
    """Return the passes after which a boundary is drawn: at growing distances, and the last pass.

    >>> shown_passes(100, 5)
    [1, 3, 10, 32, 100]
    """
    return sorted({int(p) for p in np.geomspace(1, passes, min(most, passes)).round()})


def refit(model: Any, X: Any, y: Any, passes: int) -> Any:
    """Return the same perceptron after a number of passes."""
    if model.shuffle and not isinstance(model.random_state, Integral):
        allowed = "an integer if rows are shuffled, so that the passes can be repeated"
        raise OptionError.of("random_state", model.random_state, allowed)
    with capture_warnings():  # the fit is stopped early on purpose
        return clone(model).set_params(max_passes=passes, keep="last").fit(X, y)


def _pass_words(model: Any, passes: int) -> str:
    if model.update == "batch":
        return f"best of {passes} step{'s' * (passes > 1)}"
    updates = int(model.path_[:passes].sum())
    return f"after pass {passes} ({updates} update{'s' * (updates != 1)})"


def _path_words(model: Any) -> str:
    wrong = int(model.n_wrong_)
    rows = f"{wrong or 'no'} row{'s' * (wrong != 1)} misclassified"
    return f"Perceptron: {model.n_updates_} updates in {model.n_passes_} passes\n({rows})"


def _draw_border(canvas: Canvas, lines: list[Floats], step: int, steps: int, label: str) -> Any:
    """Draw one of several boundaries, the earlier the fainter; return its legend entry."""
    from matplotlib.lines import Line2D

    last = step == steps - 1
    share = 1.0 if last else 0.3 + 0.5 * step / max(steps - 1, 1)
    look = {"color": canvas.ink, "alpha": share, "linewidth": 2.2 if last else 1.0 + share}
    look["linestyle"] = "-" if last else ((0, (1, 1.6)), (0, (3, 2)), (0, (6, 2)))[step % 3]
    draw_borders(
        canvas,
        lines,
        colors=[look["color"]],
        alpha=share,
        linewidths=look["linewidth"],
        linestyles=[look["linestyle"]],
    )
    return Line2D([], [], label=label if lines else f"{label}, outside the plot", **look)


def _draw_updates(canvas: Canvas, model: Any, title: str | None) -> Axes:
    from matplotlib.ticker import MaxNLocator

    batch = model.update == "batch"
    passes = 1 + np.arange(len(model.path_))
    few: dict[str, Any] = {"marker": "o"} if len(passes) <= 40 else {}
    canvas.ax.plot(passes, model.path_, color=canvas.colour(0), linewidth=1.8, **few)
    canvas.name(
        title=_path_words(model) if title is None else title,
        x="step" if batch else "pass over the rows",
        y="rows misclassified before the step" if batch else "updates",
    )
    canvas.ax.set_ylim(bottom=0.0)
    canvas.ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return canvas.ax
