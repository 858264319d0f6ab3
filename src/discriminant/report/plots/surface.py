"""Held-out loss of RDA over pooling and shrinkage, the least of it marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discriminant.assessment.grid import Grid
from discriminant.errors import OptionError, PlotError
from discriminant.report.plots.canvas import Canvas, check_matplotlib
from discriminant.table.schema import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TICKS = 11
_NAMES = {"log_loss": "held-out log loss", "error": "held-out error"}


def plot_surface(
    grid: Any,
    *,
    ax: Axes | None = None,
    measure: Literal["log_loss", "error"] = "log_loss",
    prior: int = 0,
    title: str | None = None,
) -> Axes:
    """Held-out loss of every candidate of RDA; a ring is around the least.

    Parameters
    ----------
    grid
        What `rda_grid` gave, or an RDA fitted with 'cv', whose `cv_` it is.
    ax
        Where to draw; None: on a new figure.
    measure
        'log_loss', by which RDA chooses, or 'error'. Of equal ones that of more pooling is
        marked, then that of more shrinkage.
    prior
        Which of the grid's priors, counted from 0.
    title
        None: in words where the least is.
    """
    check_matplotlib()
    found = getattr(grid, "cv_", grid)
    if not isinstance(found, Grid):
        wanted = "what rda_grid gave, or an RDA fitted with pooling='cv' or shrinkage='cv'"
        raise PlotError.of_kind("plot_surface", type(grid).__name__, wanted)
    if measure not in _NAMES:
        raise OptionError.of("measure", measure, "'log_loss' or 'error'")
    if prior not in range(len(found.prior)):
        raise OptionError.of("prior", prior, f"from 0 to {len(found.prior) - 1}")
    loss = np.asarray(getattr(found, measure)[:, :, prior], dtype=np.float64)
    p, s = least_place(loss)
    canvas = Canvas.of(ax)
    _draw_surface(canvas, loss, _NAMES[measure])
    _mark(canvas, (p, s))
    names = [f"{value:g}" for value in found.pooling.tolist()]
    shrinkages = [v if isinstance(v, str) else f"{v:g}" for v in found.shrinkage]
    _ticks(canvas.ax.yaxis, names)
    _ticks(canvas.ax.xaxis, shrinkages)
    if title is None:
        title = (
            f"Least {_NAMES[measure]} {loss[p, s]:.3g}\n"
            f"at pooling {names[p]}, shrinkage {shrinkages[s]}"
        )
    canvas.name(title=title, x="shrinkage", y="pooling (0: a covariance each, 1: one for all)")
    return canvas.ax


def least_place(loss: Floats) -> tuple[int, int]:
    """Place of the least, as `Grid.best` breaks ties."""
    least = float(np.nanmin(loss))
    near = np.argwhere(loss <= least + 1e-12 * (1.0 + abs(least)))
    p, s = max(near.tolist())
    return p, s


def _draw_surface(canvas: Canvas, loss: Floats, name: str) -> None:
    """Dark is low. A few huge losses must not wash out the rest: the scale ends before them."""
    finite = loss[np.isfinite(loss)]
    low = float(finite.min())
    high = float(min(finite.max(), low + 3.0 * max(np.median(finite) - low, 0.0)))
    high = high if high > low else float(finite.max())
    cut = bool((~np.isfinite(loss) | (loss > high)).any())
    image = canvas.ax.imshow(
        np.where(np.isfinite(loss), loss, np.inf),
        origin="lower",
        cmap="cividis",
        vmin=low,
        vmax=high if high > low else low + 1e-9,
        aspect="auto",
    )
    figure = canvas.ax.figure
    figure.colorbar(image, ax=canvas.ax, label=name, extend="max" if cut else "neither")


def _mark(canvas: Canvas, place: tuple[int, int]) -> None:
    """A ring in two tones, seen on any colour."""
    x, y = [place[1]], [place[0]]
    for size, colour, width in ((190, "black", 3.6), (190, "white", 1.6)):
        canvas.ax.scatter(
            x, y, s=size, facecolor="none", edgecolor=colour, linewidth=width, zorder=3
        )


def _ticks(axis: Any, names: list[str]) -> None:
    some = np.unique(np.linspace(0, len(names) - 1, min(len(names), _TICKS)).round().astype(int))
    axis.set_ticks(some, [names[i] for i in some])
