"""Heat maps: the confusion matrix, and the loss surface of RDA.

Rows of the confusion matrix are decisions and columns are true classes, as in
`Assessment.confusion`. The colour of a cell is its share of the true class, so that the diagonal
shows recall, however rare a class is.

The loss surface is the held-out loss of RDA over pooling and shrinkage, with its minimum marked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discriminant.assessment.assessment import Assessment
from discriminant.assessment.resampling.rda_grid import Grid
from discriminant.errors import OptionError, PlotError
from discriminant.moments.confusion import Tally
from discriminant.report.format import count_with_noun
from discriminant.report.plots.matplotlib_axes import Canvas, action_words, check_matplotlib
from discriminant.table.blocks import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_TEXTS = 15  # largest number of rows or columns for which the cells have text
_CONTRAST = 3.0  # least contrast between text and background, as in WCAG 2


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
    found : Assessment, HeldOutPredictions, HeldOutTally or Tally
        Result of `assess`, `evaluate` or `cross_validate`, or a `Tally`. Rejected rows and other
        actions have rows of their own.
    ax : matplotlib Axes or None, default None
        Axes to draw on. None means the Axes of a new figure.
    normalise : {'true', 'decided', 'all'} or None, default None
        Show shares of the 'true' class, of the 'decided' class or of 'all' rows (default: counts).
    transpose : bool, default False
        Whether to draw true classes in rows, as scikit-learn does.
    title : str or None, default None
        Title of the plot (default: the error).

    Returns
    -------
    Axes

    Examples
    --------
    >>> from discriminant import assess
    >>> from matplotlib.figure import Figure
    >>> assessment = assess(["a", "a", "b", "b"], ["a", "b", "b", "b"])
    >>> plot_confusion(assessment, ax=Figure().subplots()).get_title()
    'Error 25.0% on 4 rows'
    """
    check_matplotlib()
    tally = _assessment(found)
    shares, cells = tally.confusion(normalise="true"), tally.confusion(normalise=normalise)
    actions = [action_words(action) for action in tally.actions]
    labels = [str(label) for label in tally.labels.tolist()]
    size = 2.6 + 0.62 * len(labels), 1.9 + 0.55 * len(actions)
    canvas = Canvas.of(ax, size=(max(size[0], 4.6), max(size[1], 3.4)))
    axes = ("true class", labels), ("decision", actions)
    if transpose:
        shares, cells, axes = shares.T, cells.T, axes[::-1]
    _draw_cells(canvas, shares, cells, share=normalise is not None)
    for axis, (name, names) in zip((canvas.ax.xaxis, canvas.ax.yaxis), axes, strict=True):
        axis.set_ticks(np.arange(len(names)), names)
        axis.set_label_text(name)
    if sum(map(len, axes[0][1])) > 36:  # the labels would overlap
        canvas.ax.tick_params(axis="x", labelrotation=35)
        for label in canvas.ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    canvas.ax.set_title(_default_title(tally) if title is None else title)
    return canvas.ax


def _assessment(result: Any) -> Assessment:
    tally = getattr(result, "tally", result)
    if isinstance(tally, Assessment):
        return tally
    if isinstance(tally, Tally):
        return Assessment.of_tally(tally)
    expected = "a result of assess, evaluate or cross_validate"
    raise PlotError.of_kind("plot_confusion", type(tally).__name__, expected)


def _draw_cells(canvas: Canvas, shares: Floats, cells: Floats, *, share: bool) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    # From the background to a full colour, which suits light and dark backgrounds.
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
        text = _cell_text(float(value), share=share)
        canvas.ax.text(j, i, text, ha="center", va="center", color=colour)


def _readable(ground: Any, ink: Any, paper: Any) -> Any:
    """Return the text colour that has enough contrast with the background."""
    from matplotlib.colors import to_rgb

    def luminance(colour: Any) -> float:  # relative luminance, as defined in WCAG 2
        parts = (
            v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)
        )
        return 0.05 + sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), parts, strict=True))

    contrast = luminance(paper) / luminance(ground)
    return paper if max(contrast, 1.0 / contrast) >= _CONTRAST else ink


def _cell_text(value: float, *, share: bool) -> str:
    """Format a count, a weight or a percentage; the text of an empty cell is blank."""
    if np.isnan(value):
        return "–"
    if share:
        return f"{value:.1%}"
    return f"{value:.0f}" if value == round(value) else f"{value:.4g}"


def _default_title(tally: Assessment) -> str:
    counted = count_with_noun(int(tally.rows.sum()), "row")
    if tally.coverage == 1.0:
        return f"Error {tally.error:.1%} on {counted}"
    error = f"error of the decided rows {tally.error:.1%}"
    return f"{counted}, {tally.coverage:.1%} decided\n({error})"


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
    """Plot the held-out loss of every candidate of RDA, with a ring around the lowest loss.

    Parameters
    ----------
    grid : Grid, or fitted RDA
        Result of `rda_grid`, or an RDA fitted with 'cv'.
    ax : matplotlib Axes or None, default None
        Axes to draw on. None means the Axes of a new figure.
    measure : {'log_loss', 'error'}, default 'log_loss'
        'log_loss', by which RDA is tuned, or 'error'. If several candidates have the lowest loss,
        the candidate with the most pooling is marked, and among these the one with the most
        shrinkage.
    prior : int, default 0
        Index of the prior in the grid.
    title : str or None, default None
        Title of the plot (default: the position of the lowest loss).

    Returns
    -------
    Axes

    Examples
    --------
    >>> from discriminant import rda_grid
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = rda_grid(X, y, folds=5, pooling=[0.0, 0.5, 1.0], shrinkage=[0.0, 0.5])
    >>> print(plot_surface(grid, ax=Figure().subplots()).get_title())
    Least held-out log loss 0.0548
    at pooling 0.5, shrinkage 0.5
    """
    check_matplotlib()
    losses = getattr(grid, "cv_", grid)
    if not isinstance(losses, Grid):
        expected = "a result of rda_grid, or an RDA fitted with pooling='cv' or shrinkage='cv'"
        raise PlotError.of_kind("plot_surface", type(grid).__name__, expected)
    if measure not in _NAMES:
        raise OptionError.of("measure", measure, "'log_loss' or 'error'")
    if prior not in range(len(losses.prior)):
        raise OptionError.of("prior", prior, f"from 0 to {len(losses.prior) - 1}")
    loss = np.asarray(getattr(losses, measure)[:, :, prior], dtype=np.float64)
    p, s = lowest_position(loss)
    canvas = Canvas.of(ax)
    _draw_surface(canvas, loss, _NAMES[measure])
    for colour, width in (("black", 3.6), ("white", 1.6)):  # a ring that is visible on any colour
        look: dict[str, Any] = {"edgecolor": colour, "linewidth": width, "zorder": 3}
        canvas.ax.scatter([s], [p], s=190, facecolor="none", **look)
    names = [f"{value:g}" for value in losses.pooling.tolist()]
    shrinkages = [v if isinstance(v, str) else f"{v:g}" for v in losses.shrinkage]
    _ticks(canvas.ax.yaxis, names)
    _ticks(canvas.ax.xaxis, shrinkages)
    if title is None:
        title = (
            f"Least {_NAMES[measure]} {loss[p, s]:.3g}\n"
            f"at pooling {names[p]}, shrinkage {shrinkages[s]}"
        )
    canvas.name(title=title, x="shrinkage", y="pooling (0: separate covariances, 1: a common one)")
    return canvas.ax


def lowest_position(loss: Floats) -> tuple[int, int]:
    """Return the position of the lowest loss; ties are broken as in `Grid.best`."""
    least = float(np.nanmin(loss))
    near = np.argwhere(loss <= least + 1e-12 * (1.0 + abs(least)))
    p, s = max(near.tolist())
    return p, s


def _draw_surface(canvas: Canvas, loss: Floats, name: str) -> None:
    """Draw the losses, low losses dark; the colour scale ends before a few huge losses."""
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


def _ticks(axis: Any, names: list[str]) -> None:
    ticks = np.unique(np.linspace(0, len(names) - 1, min(len(names), _TICKS)).round().astype(int))
    axis.set_ticks(ticks, [names[i] for i in ticks])
