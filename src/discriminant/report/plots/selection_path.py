"""Plot of a penalty path: held-out error and number of features of every penalty or threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discriminant.assessment.resampling.held_out_penalty_path import SelectionPath
from discriminant.errors import PlotError
from discriminant.report.format import count_with_noun
from discriminant.report.plots.matplotlib_axes import Canvas, check_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TICKS = 8  # largest number of penalties whose number of features is shown


def plot_selection_path(path: Any, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Plot the held-out error of every penalty, with the number of features above.

    Parameters
    ----------
    path
        `cv_` of a model whose threshold or penalty is 'cv', or the model.
    ax
        Axes to draw on (default: those of a new figure).
    title
        Title of the plot (default: the chosen penalty and its error).
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
