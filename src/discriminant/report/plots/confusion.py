"""Truth by decision, as counts in a table whose colours are shares.

A row of the table is what was decided, a column what is true, as in `Assessment.confusion`. A cell
is coloured by its share of the true class, so that the diagonal is recall, however rare a class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discriminant.assessment.measures import Assessment
from discriminant.errors import PlotError
from discriminant.moments.tally import Tally
from discriminant.report.plots.canvas import Canvas, action_words, check_matplotlib
from discriminant.table.schema import Floats

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
    """The confusion matrix of an assessment, decisions in rows and true classes in columns.

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
    canvas.ax.set_title(_said(tally) if title is None else title)
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
    """The paper's colour, as soon as it stands out from the ground; until then the ink's."""
    from matplotlib.colors import to_rgb

    def light(colour: Any) -> float:  # relative luminance, as WCAG 2 has it
        parts = (
            v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)
        )
        return 0.05 + sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), parts, strict=True))

    contrast = light(paper) / light(ground)
    return paper if max(contrast, 1.0 / contrast) >= _CONTRAST else ink


def _written(value: float, *, share: bool) -> str:
    """Counts whole, weights to a few digits, shares in percent; nothing where there is nothing."""
    if np.isnan(value):
        return "–"
    if share:
        return f"{value:.1%}"
    return f"{value:.0f}" if value == round(value) else f"{value:.4g}"


def _said(tally: Assessment) -> str:
    rows = int(tally.rows.sum())
    if tally.coverage == 1.0:
        return f"{rows} rows: {tally.error:.1%} in a wrong class"
    wrong = f"{tally.error:.1%} of the decided rows in a wrong class"
    return f"{rows} rows, {tally.coverage:.1%} decided\n{wrong}"


def _lean(canvas: Canvas, names: list[str]) -> None:
    """Names that would run into one another are written aslant."""
    if sum(map(len, names)) > 36:
        canvas.ax.tick_params(axis="x", labelrotation=35)
        for label in canvas.ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
