"""Projection plot: rows projected on discriminant directions, with class ellipses.

    z = transform(x)

    ellipse of class k    mean_k + sd * half axes of the covariance (denominator n_k - 1) of its z
    along one direction   a histogram of z for each class, and a normal curve with its mean and sd

The ellipse of 1 sd contains 39 % of the rows of a Gaussian class, and the ellipse of 2 sd 86 %.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discriminant.errors import OptionError, PlotError
from discriminant.report.plots.boundary import draw_rows, known_labels
from discriminant.report.plots.matplotlib_axes import LINES, Canvas, check_matplotlib
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
    """Plot rows on two discriminant directions with class ellipses; for one, plot histograms.

    Parameters
    ----------
    model : fitted estimator
        A fitted model with `transform`, such as Fisher or LDA.
    X, y : array or data frame of shape (n, d), and array of shape (n,)
        Rows and their labels.
    ax : matplotlib Axes or None, default None
        Axes to draw on. None means the Axes of a new figure.
    directions : pair of int, default (0, 1)
        Indices of the two directions on the axes. If the model has only one direction, as for two
        classes, histograms are drawn instead.
    sd : float, default 2.0
        Half axes of the ellipses, in standard deviations.
    most : int, default 2000
        Largest number of rows shown; more are sampled at random. Ellipses use all rows.
    title : str or None, default None
        Title of the plot (default: a short description).

    Returns
    -------
    Axes

    Examples
    --------
    >>> from discriminant import LDA
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = plot_projection(LDA().fit(X, y), X, y, ax=Figure().subplots())
    >>> ax.get_xlabel()
    'direction 1 (99.1% of the separation)'
    """
    check_matplotlib()
    if not hasattr(model, "transform"):
        raise PlotError.of_model(
            "plot_projection", type(model).__name__, "transform", "Fit Fisher or LDA."
        )
    if not sd > 0:
        raise OptionError.of("sd", sd, "over 0")
    projections = np.asarray(model.transform(X), dtype=np.float64)
    labels, codes = known_labels(model, y, len(projections))
    width = projections.shape[1]
    if width == 1:
        return _densities(model, X, projections[:, 0], codes, labels, Canvas.of(ax), title)
    chosen = list(directions)
    if len(chosen) != 2 or not all(isinstance(j, int) and 0 <= j < width for j in chosen):
        raise OptionError.of("directions", directions, f"two whole numbers from 0 to {width - 1}")
    points = projections[:, chosen]
    canvas = Canvas.of(ax)
    marks = draw_rows(canvas, points, codes, labels, most=most)
    for k in np.unique(codes).tolist():
        draw_ellipse(canvas, points[codes == k], k, sd=sd)
    names = [_direction_name(model, j) for j in chosen]
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
    variances, axes = np.linalg.eigh(np.cov(points.T))
    diameters = 2.0 * sd * np.sqrt(np.maximum(variances, 0.0))
    angle = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
    centre, colour = points.mean(axis=0), canvas.colour(code)
    where = (float(centre[0]), float(centre[1]))
    look: dict[str, Any] = {"width": diameters[1], "height": diameters[0], "angle": float(angle)}
    canvas.ax.add_patch(Ellipse(where, **look, facecolor=colour, alpha=0.12, zorder=1))
    canvas.ax.add_patch(
        Ellipse(where, **look, facecolor="none", edgecolor=colour, linewidth=1.6, zorder=2)
    )
    canvas.ax.plot(*where, "+", color=canvas.ink, markersize=9, markeredgewidth=1.6, zorder=4)
    canvas.ax.autoscale_view()


def _direction_name(model: Any, direction: int) -> str:
    share = getattr(model, "explained_variance_ratio_", None)
    name = f"direction {direction + 1}"
    return name if share is None else f"{name} ({share[direction]:.1%} of the separation)"


def _densities(
    model: Any,
    X: Any,
    projections: Floats,
    codes: Codes,
    labels: Labels,
    canvas: Canvas,
    title: str | None,
) -> Axes:
    """Draw histograms of the classes along one direction; for two classes, also the boundary."""
    from matplotlib.patches import Patch

    n_bins = min(40, max(8, int(np.sqrt(len(projections)))))
    bins = np.histogram_bin_edges(projections, bins=n_bins)
    fine = np.linspace(float(bins[0]), float(bins[-1]), 400)
    handles: list[Any] = []
    for k in np.unique(codes).tolist():
        own, colour = projections[codes == k], canvas.colour(k)
        look: dict[str, Any] = {"color": colour, "alpha": 0.35}
        canvas.ax.hist(own, bins=bins.tolist(), density=True, **look)
        handles.append(Patch(label=str(labels[k]), **look))
        if len(own) > 1 and own.std() > 0:
            deviation = own.std(ddof=1)
            curve = np.exp(-0.5 * ((fine - own.mean()) / deviation) ** 2)
            curve /= deviation * np.sqrt(2 * np.pi)
            canvas.ax.plot(fine, curve, LINES[k % len(LINES)], color=colour, linewidth=2)
    border = _border(model, X, projections)
    if border is not None:
        line = canvas.ax.axvline(border, color=canvas.ink, linewidth=1.4, label="boundary")
        handles.append(line)
    name = "Rows along the discriminant direction\n(curves: normal, each with its mean and sd)"
    canvas.name(title=name if title is None else title, x="direction 1", y="density of each class")
    canvas.legend(handles)
    return canvas.ax


def _border(model: Any, X: Any, projections: Floats) -> float | None:
    """Return the position of the boundary between two classes along the direction."""
    if len(getattr(model, "classes_", ())) != 2 or not hasattr(model, "decision_function"):
        return None
    ends = [int(projections.argmin()), int(projections.argmax())]
    score = np.asarray(model.decision_function(X), dtype=np.float64)[ends]
    if score[0] == score[1]:
        return None
    (a, b), (u, v) = score, projections[ends]
    return float(u - a * (v - u) / (b - a))
