"""Plots of penalty paths: held-out losses, or held-out errors with the number of features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discriminant.assessment.resampling.penalty_search import PenaltyPath
from discriminant.errors import PlotError
from discriminant.report.plots.matplotlib_axes import Canvas, check_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes


from typing import TYPE_CHECKING

from discriminant.assessment.resampling.held_out_penalty_path import SelectionPath
from discriminant.report.format import count_with_noun

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_NAMES = {
    "log_loss": "held-out log loss",
    "error": "held-out error",
    "deviance": "held-out deviance / 2",
    "squared_error": "held-out squared error",
    "squared_hinge": "held-out squared hinge loss",
}
_TICKS = 8  # largest number of penalties whose number of features is shown


def plot_penalty_path(path: Any, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Plot the held-out loss of each penalty, with a band of one standard error on both sides.

    Vertical lines mark the smallest loss (solid) and the largest penalty within one standard error
    of it (dashed). If the number of features differs between penalties, it is shown at the top.

    Parameters
    ----------
    path : PenaltyPath, or fitted model
        `path_` of a model fitted with ridge='cv', or the model.
    ax : matplotlib Axes or None, default None
        Axes to draw on. None means the Axes of a new figure.
    title : str or None, default None
        Title of the plot (default: the chosen penalty and its loss).

    Returns
    -------
    Axes

    Examples
    --------
    >>> from discriminant import LeastSquares
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> model = LeastSquares(ridge="cv").fit(*load_iris(return_X_y=True))
    >>> plot_penalty_path(model, ax=Figure().subplots()).get_title()
    'ridge 1.61: held-out squared error 0.282'
    """
    check_matplotlib()
    losses = getattr(path, "path_", path)
    if not isinstance(losses, PenaltyPath):
        expected = "a model fitted with ridge='cv', or its path_"
        raise PlotError.of_kind("plot_penalty_path", type(path).__name__, expected)
    canvas = Canvas.of(ax)
    axes, colour = canvas.ax, canvas.colour(0)
    low, high = losses.loss - losses.standard_error, losses.loss + losses.standard_error
    axes.fill_between(losses.ridges, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(losses.ridges, losses.loss, color=colour, marker=".")
    for place, style in ((losses.minimum, "-"), (losses.one_standard_error, "--")):
        axes.axvline(losses.ridges[place], color=canvas.ink, linestyle=style, linewidth=0.8)
    axes.set_xscale("log")
    if len(np.unique(losses.nonzero)) > 1:
        _label_features(axes, losses)
    if title is None:
        title = f"ridge {losses.ridge:.3g}: {_NAMES[losses.criterion]} "
        title += f"{losses.loss[losses.chosen]:.3g}"
    canvas.name(title=title, x="ridge", y=_NAMES[losses.criterion])
    return axes


def _label_features(axes: Axes, losses: PenaltyPath) -> None:
    """Show the numbers of features with non-zero coefficients at the top."""
    places = np.unique(np.linspace(0, len(losses.ridges) - 1, _TICKS).round().astype(int))
    top = axes.secondary_xaxis("top")
    top.set_xticks(losses.ridges[places], [str(count) for count in losses.nonzero[places]])
    top.minorticks_off()
    top.set_xlabel("features with non-zero coefficients")


def plot_selection_path(path: Any, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Plot the held-out error of every penalty, with the number of features above.

    Parameters
    ----------
    path : SelectionPath, or fitted model
        `cv_` of a model whose threshold or penalty is 'cv', or the model.
    ax : matplotlib Axes or None, default None
        Axes to draw on. None means the Axes of a new figure.
    title : str or None, default None
        Title of the plot (default: the chosen penalty and its error).

    Returns
    -------
    Axes

    Examples
    --------
    >>> from discriminant import ShrunkenCentroids
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> model = ShrunkenCentroids(threshold="cv").fit(*load_iris(return_X_y=True))
    >>> print(plot_selection_path(model, ax=Figure().subplots()).get_title())
    Least held-out error 4.7%
    at threshold 0.841, 4 features
    """
    check_matplotlib()
    name = getattr(path, "_penalty_option", "penalty")
    losses = getattr(path, "cv_", path)
    if not isinstance(losses, SelectionPath):
        expected = "a model fitted with threshold='cv' or penalty='cv', or its cv_"
        raise PlotError.of_kind("plot_selection_path", type(path).__name__, expected)
    canvas, best = Canvas.of(ax), losses.best()
    penalty, error = losses.penalty, losses.error
    canvas.ax.plot(penalty, error, color=canvas.colour(0), marker=".")
    canvas.ax.axvline(penalty[best], color=canvas.ink, linestyle="--", linewidth=1)
    canvas.ax.set_ylim(bottom=0.0)
    shown = np.unique(np.linspace(0, len(penalty) - 1, min(len(penalty), _TICKS)).round())
    above = canvas.ax.secondary_xaxis("top")
    positions = shown.astype(np.intp)
    above.set_xticks(penalty[positions], [str(n) for n in losses.n_features[positions].tolist()])
    above.set_xlabel("features")
    if title is None:
        features = count_with_noun(int(losses.n_features[best]), "feature")
        title = f"Least held-out error {error[best]:.1%}\nat {name} {penalty[best]:.3g}, {features}"
    canvas.name(title=title, x=name, y="held-out error")
    return canvas.ax
