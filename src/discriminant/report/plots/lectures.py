"""Plots for the lectures: masking along a line, and the path of a perceptron.

Masking shows the scores of each class along the line through the class means.

    z = (x - m) / s          m the mean of the class means, s the spread of each feature
    u                        the direction of unit length in which the class means' z differ most
    place t on the line      x = m + s u t

Least squares fits a straight line to the indicator of each class. With three classes in a row that
of the middle one is nearly level, and so is nowhere the largest: the class is masked.

How a perceptron found its border: the border after some of its passes, or its moves in each.

A fitted perceptron keeps how often it moved in each pass, not where it stood. Its walk is fixed by
its options and the order of the rows, so that the border after p passes is that of the same
perceptron stopped there: it is walked again for a few p.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from discriminant.assessment.scorers import check_classifier
from discriminant.errors import OptionError, PlotError, capture_warnings, merge_warnings
from discriminant.report.plots.boundary import (
    draw_borders,
    draw_rows,
    known_labels,
    plane_of,
    regions_of,
    some_rows,
)
from discriminant.report.plots.canvas import Canvas, Plane, check_matplotlib
from discriminant.table.blocks import Codes, Floats, Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_NODES = 801
_STYLES = ("-", "--", "-.")


@dataclass(frozen=True, slots=True, eq=False)
class MeansLine:
    """A line in feature space, with the positions of the rows along it."""

    start: Floats  # (d,) the point t = 0
    step: Floats  # (d,) from t to t + 1
    rows: Floats  # (n,) place of each row
    means: Floats  # (K,) place of each class mean
    words: str

    @classmethod
    def of(cls, points: Floats, codes: Codes, names: tuple[str, ...]) -> MeansLine:
        """Fit the line through the class means."""
        means = np.array([points[codes == k].mean(axis=0) for k in np.unique(codes)])
        if points.shape[1] == 1:
            return cls(np.zeros(1), np.ones(1), points[:, 0], means[:, 0], names[0])
        middle, spread = means.mean(axis=0), points.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        apart = (means - middle) / scale
        _, size, turned = np.linalg.svd(apart, full_matrices=False)
        u = turned[0] * np.sign(apart[-1] @ turned[0] or 1.0)
        share = size[0] ** 2 / max(float((size**2).sum()), np.finfo(float).tiny)
        words = "place on the line along which the class means differ most"
        words += f"\n({share:.0%} of the variance of the means)" if share < 0.995 else ""
        rows = ((points - middle) / scale) @ u
        return cls(middle, scale * u, rows, apart @ u, words)

    def places(self) -> Floats:
        """Return (m,) positions over the range of the rows with a margin."""
        low, high = float(self.rows.min()), float(self.rows.max())
        room = 0.04 * (high - low) or 1.0
        return np.linspace(low - room, high + room, _NODES)

    def points(self, places: Floats) -> Floats:
        """(m, d)"""
        return np.asarray(self.start + places[:, None] * self.step)


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

    Where a line is heavy, its class is the one that is said. A class that is never said along the
    line is named: it is masked there.

    Parameters
    ----------
    model
        A fitted classifier of three classes or more. Of LeastSquares the fitted values are shown,
        of any other the posteriors.
    X, y
        Rows, all numbers, and their labels; they stand along the bottom.
    ax
        Where to draw; None: on a new figure.
    most
        Rows drawn; of more, as many are drawn at random.
    title
        None: which class is masked along the line, if one is.
    """
    check_matplotlib()
    check_classifier(model)
    names = getattr(model, "feature_names_in_", None)
    plane = Plane.of(X, None, names=names)
    labels, codes = known_labels(model, y, len(plane.points))
    if len(labels) < 3:
        raise PlotError.of_classes("plot_masking", len(labels), "three classes or more")
    line = MeansLine.of(plane.points, codes, plane.names)
    places = line.places()
    with merge_warnings():
        values, what = _values(model, plane.rows(line.points(places)))
    canvas = Canvas.of(ax)
    said = values.argmax(axis=1)
    masked = sorted(set(range(len(labels))) - set(said.tolist()))
    handles = _draw_values(canvas, places, values, said, labels)
    _draw_feet(canvas, line, codes, most=most)
    name = f"{type(model).__name__}: {_told([labels[k] for k in masked])}"
    canvas.name(title=name if title is None else title, x=line.words, y=what)
    canvas.ax.set_xlim(*places[[0, -1]])
    canvas.legend(handles)
    return canvas.ax


def _values(model: Any, rows: Any) -> tuple[Floats, str]:
    """Return the (m, K) values of each class; the largest is predicted."""
    if hasattr(model, "masked_"):
        return np.asarray(model.decision_function(rows)), "fitted value of each class"
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(rows)), "posterior of each class"
    instead = "Fit LeastSquares, or a classifier with predict_proba."
    raise PlotError.of_model("plot_masking", type(model).__name__, "predict_proba", instead)


def _told(masked: list[Any]) -> str:
    if not masked:
        return "each class is the largest somewhere"
    names = " and ".join(f"'{label}'" for label in masked)
    noun, verb = ("class", "is") if len(masked) == 1 else ("classes", "are")
    return f"{noun} {names} {verb} masked along this line"


def _draw_values(
    canvas: Canvas, places: Floats, values: Floats, said: npt.NDArray[np.intp], labels: Labels
) -> list[Any]:
    handles = []
    for k, label in enumerate(labels.tolist()):
        never = not (said == k).any()
        name = f"{label} (masked)" if never else str(label)
        look: dict[str, Any] = {"color": canvas.colour(k), "zorder": 3}
        style = _STYLES[k % len(_STYLES)]
        handles += canvas.ax.plot(places, values[:, k], style, linewidth=1.8, label=name, **look)
        on_top = np.where(said == k, values[:, k], np.nan)
        canvas.ax.plot(places, on_top, linewidth=6, alpha=0.35, solid_capstyle="butt", **look)
    return handles


def _draw_feet(canvas: Canvas, line: MeansLine, codes: Codes, *, most: int) -> None:
    """Draw the rows below the curves, one level per class, with a cross at each mean."""
    low, high = canvas.ax.get_ylim()
    present = np.unique(codes)
    some, step = some_rows(len(codes), most), 0.045 * (high - low)
    for j, k in enumerate(present.tolist()):
        own = line.rows[some][codes[some] == k]
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
    """Plot the boundary of a perceptron after each pass; without rows, its updates per pass.

    Parameters
    ----------
    model
        A fitted Perceptron.
    X, y
        The rows that it was fitted to, of two features, in the same order; None for the moves.
    ax
        Where to draw; None: on a new figure.
    borders
        At most so many, the rule kept included: more of the first passes, in which it moves most.
    most
        Rows drawn; of more, as many are drawn at random.
    title
        None: how many moves it took, and whether all rows are right.
    """
    check_matplotlib()
    if not hasattr(model, "path_") or not hasattr(model, "n_updates_"):
        instead = "Fit discriminant.Perceptron."
        raise PlotError.of_model("plot_perceptron_path", type(model).__name__, "path_", instead)
    if not isinstance(borders, Integral) or borders < 1:
        raise OptionError.of("borders", borders, "a whole number of 1 or more")
    if X is None:
        return _draw_moves(Canvas.of(ax), model, title)
    plane = plane_of(model, X, (0, 1), "plot_perceptron_path")
    if plane.held:
        instead = "Without X and y its moves in each pass are shown."
        raise PlotError.of_width("plot_perceptron_path", len(plane.names), "just two", instead)
    labels, codes = known_labels(model, y, len(plane.points))
    passes = stops(model.n_passes_, int(borders))[:-1]
    walked = [stopped(model, X, y, p) for p in passes]
    found = [regions_of(one, plane, nodes=_PATH_NODES)[0].lines() for one in (*walked, model)]
    canvas = Canvas.of(ax)
    handles = [
        _draw_border(canvas, found[i], i, len(found), _words(model, p))
        for i, p in enumerate(passes)
    ]
    handles.append(_draw_border(canvas, found[-1], len(passes), len(found), "the rule kept"))
    marks = draw_rows(canvas, plane.points, codes, labels, most=most)
    window = plane.window()
    canvas.ax.set_xlim(*window[0])
    canvas.ax.set_ylim(*window[1])
    name = _said(model) if title is None else title
    canvas.name(title=name, x=plane.labels[0], y=plane.labels[1])
    canvas.legend([*marks.values(), *handles])
    return canvas.ax


def stops(passes: int, most: int) -> list[int]:
    """Return the passes after which a boundary is drawn, at growing steps, with the last.

    >>> stops(100, 5)
    [1, 3, 10, 32, 100]
    """
    places = np.geomspace(1, passes, min(most, passes)).round()
    return sorted({int(place) for place in places})


def stopped(model: Any, X: Any, y: Any, passes: int) -> Any:
    """Return the same perceptron after a number of passes."""
    if model.shuffle and not isinstance(model.random_state, Integral):
        allowed = "a whole number where rows are shuffled, for the same walk once more"
        raise OptionError.of("random_state", model.random_state, allowed)
    with capture_warnings():  # that it did not end is the point
        return clone(model).set_params(max_passes=passes, keep="last").fit(X, y)


def _words(model: Any, passes: int) -> str:
    if model.update == "batch":
        return f"best of {passes} step{'s' * (passes > 1)}"
    moves = int(model.path_[:passes].sum())
    return f"after pass {passes} ({moves} move{'s' * (moves != 1)})"


def _said(model: Any) -> str:
    wrong = int(model.n_wrong_)
    right = "all rows right" if not wrong else f"{wrong} row{'s' * (wrong > 1)} wrong"
    return f"Perceptron: {model.n_updates_} moves in {model.n_passes_} passes\n({right})"


def _draw_border(canvas: Canvas, lines: list[Floats], step: int, steps: int, label: str) -> Any:
    """Draw a boundary, fainter the earlier it is; return its legend entry."""
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
    return Line2D([], [], label=label if lines else f"{label}, out of sight", **look)


def _draw_moves(canvas: Canvas, model: Any, title: str | None) -> Axes:
    from matplotlib.ticker import MaxNLocator

    batch = model.update == "batch"
    passes = 1 + np.arange(len(model.path_))
    few: dict[str, Any] = {"marker": "o"} if len(passes) <= 40 else {}
    canvas.ax.plot(passes, model.path_, color=canvas.colour(0), linewidth=1.8, **few)
    canvas.name(
        title=_said(model) if title is None else title,
        x="step" if batch else "pass over the rows",
        y="rows wrong before the step" if batch else "moves of the border",
    )
    canvas.ax.set_ylim(bottom=0.0)
    canvas.ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return canvas.ax
