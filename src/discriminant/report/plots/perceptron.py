"""How a perceptron found its border: the border after some of its passes, or its moves in each.

A fitted perceptron keeps how often it moved in each pass, not where it stood. Its walk is fixed by
its options and the order of the rows, so that the border after p passes is that of the same
perceptron stopped there: it is walked again for a few p.
"""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from discriminant.errors import OptionError, PlotError, kept
from discriminant.report.plots.boundary import (
    draw_borders,
    draw_rows,
    known_labels,
    plane_of,
    regions_of,
)
from discriminant.report.plots.canvas import Canvas, check_matplotlib
from discriminant.table.schema import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NODES = 121


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
    """Borders of a perceptron pass after pass over its rows; without rows, its moves in each pass.

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
    found = [regions_of(one, plane, nodes=_NODES)[0].lines() for one in (*walked, model)]
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
    """Passes after which a border is drawn, the last one included, at steps that grow.

    >>> stops(100, 5)
    [1, 3, 10, 32, 100]
    """
    places = np.geomspace(1, passes, min(most, passes)).round()
    return sorted({int(place) for place in places})


def stopped(model: Any, X: Any, y: Any, passes: int) -> Any:
    """The same perceptron after so many passes."""
    if model.shuffle and not isinstance(model.random_state, Integral):
        allowed = "a whole number where rows are shuffled, for the same walk once more"
        raise OptionError.of("random_state", model.random_state, allowed)
    with kept():  # that it did not end is the point
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
    """Fainter and thinner the earlier it is; a line for the legend."""
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
