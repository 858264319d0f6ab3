"""Rows projected on discriminant directions.

    z = transform(x)

    ellipse of class k    mean_k + sd * half axes of the covariance (n_k - 1) of its rows' z
    along one direction   a histogram of z for each class, and the normal curve of its mean and sd

Of a Gaussian class 39 % of the rows lie within the ellipse of 1 sd and 86 % within that of 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discriminant.errors import OptionError, PlotError
from discriminant.report.plots.boundary import draw_rows, known_labels
from discriminant.report.plots.canvas import Canvas, check_matplotlib
from discriminant.table.blocks import Codes, Floats, Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_projection(
    model: Any,
    X: Any,
    y: Any,
    *,
    ax: Axes | None = None,
    directions: tuple[int, int] = (0, 1),
    sd: float = 2.0,
    most: int = 2000,
    title: str | None = None,
) -> Axes:
    """Plot rows on two discriminant directions with class ellipses, or histograms on one.

    Parameters
    ----------
    model
        A fitted model with `transform`: Fisher, LDA, or another's.
    X, y
        Rows and their labels.
    ax
        Where to draw; None: on a new figure.
    directions
        The two that make the axes, counted from 0. Where the model has one, as with two classes,
        histograms are drawn instead.
    sd
        How many standard deviations the ellipses reach.
    most
        Rows drawn; of more, as many are drawn at random. Ellipses are of all.
    title
        None: in a few words what is shown.
    """
    check_matplotlib()
    if not hasattr(model, "transform"):
        raise PlotError.of_model(
            "plot_projection", type(model).__name__, "transform", "Fit Fisher or LDA."
        )
    if not sd > 0:
        raise OptionError.of("sd", sd, "over 0")
    along = np.asarray(model.transform(X), dtype=np.float64)
    labels, codes = known_labels(model, y, len(along))
    if along.shape[1] == 1:
        return _densities(model, X, along[:, 0], codes, labels, Canvas.of(ax), title)
    chosen = _checked(directions, along.shape[1])
    points = along[:, chosen]
    canvas = Canvas.of(ax)
    marks = draw_rows(canvas, points, codes, labels, most=most)
    for k in np.unique(codes).tolist():
        draw_ellipse(canvas, points[codes == k], k, sd=sd)
    names = [_named(model, j) for j in chosen]
    if title is None:
        title = f"Rows on the discriminant directions\n(ellipses: {sd:g} sd of each class)"
    canvas.name(title=title, x=names[0], y=names[1])
    canvas.legend([*marks.values()])
    return canvas.ax


def draw_ellipse(canvas: Canvas, points: Floats, code: int, *, sd: float) -> None:
    """Draw the covariance ellipse of a class, if it has more than one row."""
    from matplotlib.patches import Ellipse

    if len(points) < 2:
        return
    size, axes = np.linalg.eigh(np.cov(points.T))
    reach = 2.0 * sd * np.sqrt(np.maximum(size, 0.0))
    turn = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
    centre, colour = points.mean(axis=0), canvas.colour(code)
    where = (float(centre[0]), float(centre[1]))
    look: dict[str, Any] = {"width": reach[1], "height": reach[0], "angle": float(turn)}
    canvas.ax.add_patch(Ellipse(where, **look, facecolor=colour, alpha=0.12, zorder=1))
    canvas.ax.add_patch(
        Ellipse(where, **look, facecolor="none", edgecolor=colour, linewidth=1.6, zorder=2)
    )
    canvas.ax.plot(*where, "+", color=canvas.ink, markersize=9, markeredgewidth=1.6, zorder=4)
    canvas.ax.autoscale_view()


def _checked(directions: Any, width: int) -> list[int]:
    found = list(directions)
    if len(found) != 2 or not all(isinstance(j, int) and 0 <= j < width for j in found):
        raise OptionError.of("directions", directions, f"two whole numbers from 0 to {width - 1}")
    return found


def _named(model: Any, direction: int) -> str:
    share = getattr(model, "explained_variance_ratio_", None)
    name = f"direction {direction + 1}"
    return name if share is None else f"{name} ({share[direction]:.1%} of the separation)"


def _densities(
    model: Any,
    X: Any,
    along: Floats,
    codes: Codes,
    labels: Labels,
    canvas: Canvas,
    title: str | None,
) -> Axes:
    """Draw histograms of the classes along one direction, and the boundary of two."""
    from matplotlib.patches import Patch

    bins = np.histogram_bin_edges(along, bins=min(40, max(8, int(np.sqrt(len(along))))))
    fine = np.linspace(float(bins[0]), float(bins[-1]), 400)
    handles: list[Any] = []
    for k in np.unique(codes).tolist():
        own, colour = along[codes == k], canvas.colour(k)
        look: dict[str, Any] = {"color": colour, "alpha": 0.35}
        canvas.ax.hist(own, bins=bins.tolist(), density=True, **look)
        handles.append(Patch(label=str(labels[k]), **look))
        if len(own) > 1 and own.std() > 0:
            deviation = own.std(ddof=1)
            curve = np.exp(-0.5 * ((fine - own.mean()) / deviation) ** 2)
            curve /= deviation * np.sqrt(2 * np.pi)
            style = ("-", "--", "-.", ":")[k % 4]
            canvas.ax.plot(fine, curve, style, color=colour, linewidth=2)
    border = _border(model, X, along)
    if border is not None:
        line = canvas.ax.axvline(border, color=canvas.ink, linewidth=1.4, label="boundary")
        handles.append(line)
    name = "Rows along the discriminant direction\n(curves: normal, each with its mean and sd)"
    canvas.name(title=name if title is None else title, x="direction 1", y="density of each class")
    canvas.legend(handles)
    return canvas.ax


def _border(model: Any, X: Any, along: Floats) -> float | None:
    """Return the boundary of two classes along the direction."""
    if len(getattr(model, "classes_", ())) != 2 or not hasattr(model, "decision_function"):
        return None
    far = [int(along.argmin()), int(along.argmax())]
    score = np.asarray(model.decision_function(X), dtype=np.float64)[far]
    if score[0] == score[1]:
        return None
    (a, b), (u, v) = score, along[far]
    return float(u - a * (v - u) / (b - a))
