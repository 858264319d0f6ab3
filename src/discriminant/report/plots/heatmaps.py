"""Heat maps: the confusion matrix, and the loss surface of RDA.

A row of the table is what was decided, a column what is true, as in `Assessment.confusion`. A cell
is coloured by its share of the true class, so that the diagonal is recall, however rare a class.

Held-out loss of RDA over pooling and shrinkage, the least of it marked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discriminant.assessment.assessment import Assessment
from discriminant.assessment.resampling.rda_grid import Grid
from discriminant.errors import OptionError, PlotError
from discriminant.moments.confusion import Tally
from discriminant.report.plots.canvas import Canvas, action_words, check_matplotlib
from discriminant.table.blocks import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_TEXTS = 15  # classes whose cells have texts
_CONTRAST = 3.0


def plot_confusion(
    found: Any,
    *,
    ax: Axes | None = None,
    normalise: Literal["true", "decided", "all"] | None = None,
    transpose: bool = False,
    title: str | None = None,
) -> Axes:
    """Plot the confusion matrix of an assessment: decisions in rows, true classes in columns.

    Parameters
    ----------
    found
        What `assess`, `evaluate` or `cross_validate` gave, or a `Tally`. Rejected rows and other
        actions have rows of their own.
    ax
        Where to draw; None: on a new figure.
    normalise
        None: cells hold counts. 'true', 'decided', 'all': shares of that.
    transpose
        True classes in rows, as scikit-learn draws it.
    title
        None: the error, in words.
    """
    check_matplotlib()
    tally = _assessment(found)
    shares, cells = tally.confusion(normalise="true"), tally.confusion(normalise=normalise)
    actions = [action_words(action) for action in tally.actions]
    labels = [str(label) for label in tally.labels.tolist()]
    size = 2.6 + 0.62 * len(labels), 1.9 + 0.55 * len(actions)
    canvas = Canvas.of(ax, size=(max(size[0], 4.6), max(size[1], 3.4)))
    axes = ("what is true", labels), ("what was decided", actions)
    if transpose:
        shares, cells, axes = shares.T, cells.T, axes[::-1]
    _draw_cells(canvas, shares, cells, share=normalise is not None)
    for axis, (name, names) in zip((canvas.ax.xaxis, canvas.ax.yaxis), axes, strict=True):
        axis.set_ticks(np.arange(len(names)), names)
        axis.set_label_text(name)
    _lean(canvas, axes[0][1])
    canvas.ax.set_title(_default_title(tally) if title is None else title)
    return canvas.ax


def _assessment(found: Any) -> Assessment:
    found = getattr(found, "tally", found)
    if isinstance(found, Assessment):
        return found
    if isinstance(found, Tally):
        return Assessment.of_tally(found)
    wanted = "what assess, evaluate or cross_validate gave"
    raise PlotError.of_kind("plot_confusion", type(found).__name__, wanted)


def _draw_cells(canvas: Canvas, shares: Floats, cells: Floats, *, share: bool) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    # From the paper to a full colour: right for light paper and for dark.
    colours = LinearSegmentedColormap.from_list("share", [canvas.paper, canvas.colour(0)])
    shown = np.nan_to_num(shares)
    canvas.ax.imshow(shown, cmap=colours, vmin=0.0, vmax=1.0, aspect="auto")
    for edge in np.arange(0.5, cells.shape[1] - 0.5):
        canvas.ax.axvline(edge, color=canvas.ink, alpha=0.25, linewidth=0.6)
    for edge in np.arange(0.5, cells.shape[0] - 0.5):
        canvas.ax.axhline(edge, color=canvas.ink, alpha=0.25, linewidth=0.6)
    if max(cells.shape) > _TEXTS:
        return
    for (i, j), value in np.ndenumerate(cells):
        colour = _readable(colours(shown[i, j]), canvas.ink, canvas.paper)
        text = _written(float(value), share=share)
        canvas.ax.text(j, i, text, ha="center", va="center", color=colour)


def _readable(ground: Any, ink: Any, paper: Any) -> Any:
    """Return the text colour with enough contrast to the background."""
    from matplotlib.colors import to_rgb

    def light(colour: Any) -> float:  # relative luminance, as WCAG 2 has it
        parts = (
            v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)
        )
        return 0.05 + sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), parts, strict=True))

    contrast = light(paper) / light(ground)
    return paper if max(contrast, 1.0 / contrast) >= _CONTRAST else ink


def _written(value: float, *, share: bool) -> str:
    """Format counts, weights or percentages; empty cells are blank."""
    if np.isnan(value):
        return "–"
    if share:
        return f"{value:.1%}"
    return f"{value:.0f}" if value == round(value) else f"{value:.4g}"


def _default_title(tally: Assessment) -> str:
    rows = int(tally.rows.sum())
    if tally.coverage == 1.0:
        return f"{rows} rows: {tally.error:.1%} in a wrong class"
    wrong = f"{tally.error:.1%} of the decided rows in a wrong class"
    return f"{rows} rows, {tally.coverage:.1%} decided\n{wrong}"


def _lean(canvas: Canvas, names: list[str]) -> None:
    """Rotate tick labels that would overlap."""
    if sum(map(len, names)) > 36:
        canvas.ax.tick_params(axis="x", labelrotation=35)
        for label in canvas.ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")


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
    """Plot the held-out loss of every candidate of RDA, with a ring around the lowest.

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
    """Return the position of the lowest loss; ties as in `Grid.best`."""
    least = float(np.nanmin(loss))
    near = np.argwhere(loss <= least + 1e-12 * (1.0 + abs(least)))
    p, s = max(near.tolist())
    return p, s


def _draw_surface(canvas: Canvas, loss: Floats, name: str) -> None:
    """Draw the losses, dark for low; the colour scale ends before a few huge losses."""
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
    """Draw a ring in two tones, visible on any colour."""
    x, y = [place[1]], [place[0]]
    for size, colour, width in ((190, "black", 3.6), (190, "white", 1.6)):
        canvas.ax.scatter(
            x, y, s=size, facecolor="none", edgecolor=colour, linewidth=width, zorder=3
        )


def _ticks(axis: Any, names: list[str]) -> None:
    some = np.unique(np.linspace(0, len(names) - 1, min(len(names), _TICKS)).round().astype(int))
    axis.set_ticks(some, [names[i] for i in some])
