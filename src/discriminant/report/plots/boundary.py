"""The regions that a classifier gives to each class, with the rows on top."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discriminant.assessment.answers import check_classifier, said_by
from discriminant.decision.actions import OUTLIER, REJECT, Verdict
from discriminant.errors import OptionError, PlotError, ShapeError, gathered
from discriminant.report.plots.canvas import Canvas, action_words, check_matplotlib, model_words
from discriminant.report.plots.plane import Plane
from discriminant.report.plots.regions import Decide, Regions, Window, places
from discriminant.table.labels import code_labels, encode_labels, joined
from discriminant.table.schema import Codes, Floats, Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELLS = 1 << 22  # numbers of rows asked about at a time
_HATCHES = {REJECT: "////", OUTLIER: "...."}


def plot_boundary(
    model: Any,
    X: Any,
    y: Any,
    *,
    ax: Axes | None = None,
    features: Sequence[Any] = (0, 1),
    window: Window | None = None,
    nodes: int = 241,
    most: int = 2000,
    title: str | None = None,
) -> Axes:
    """Regions and borders of any fitted classifier over two features, and the rows.

    Parameters
    ----------
    model
        A fitted classifier. One that has `decide`, as `Decision`, shows the regions where it
        rejects (hatched) and its other actions too.
    X, y
        Rows and their labels.
    ax
        Where to draw; None: on a new figure.
    features
        The two that make the axes, by place or by name. Where there are more, all others stay at
        their mean (what is no number at its most frequent value), and the title says so: rows
        may then lie in a region that is not theirs.
    window
        ((least, largest) along x, the same along y) to be shown; None: as far as the rows go.
    nodes
        The grid is nodes x nodes. Borders are exact where they cross it.
    most
        Rows drawn; of more, as many are drawn at random.
    title
        None: in a few words what is shown.

    Examples
    --------
    >>> from discriminant import LDA
    >>> from matplotlib.figure import Figure
    >>> X = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [4.0, 4.0], [5.0, 4.0], [5.0, 6.0]]
    >>> ax = plot_boundary(LDA().fit(X, list("aaabbb")), X, list("aaabbb"), ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a', 'b']
    """
    check_matplotlib()
    check_classifier(model)
    plane = plane_of(model, X, features, "plot_boundary")
    labels, codes = known_labels(model, y, len(plane.points))
    with gathered():
        regions, actions = regions_of(model, plane, nodes=nodes, window=window)
    canvas = Canvas.of(ax)
    shown = [*labels.tolist(), *(a for a in actions if a not in set(labels.tolist()))]
    patches = _draw_regions(canvas, regions, actions, shown)
    draw_borders(canvas, regions.lines())
    marks = draw_rows(canvas, plane.points, codes, labels, most=most)
    if title is None:
        title = f"What {model_words(model)} decides{held_words(plane)}"
    canvas.name(title=title, x=plane.labels[0], y=plane.labels[1])
    canvas.legend([*(marks | {a: p for a, p in patches.items() if a not in marks}).values()])
    return canvas.ax


def plane_of(model: Any, X: Any, features: Sequence[Any], figure: str) -> Plane:
    """Two features of the rows, or the error that says why not."""
    names = getattr(model, "feature_names_in_", None)
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    width = shape[1] if len(shape) == 2 else 0
    if width == 1:
        instead = "For one feature see plot_reject and plot_masking."
        raise PlotError.of_width(figure, width, "two features", instead)
    if isinstance(features, str) or len(features) != 2:
        raise OptionError.of("features", features, "two features, by place or by name")
    return Plane.of(X, features, names=names)


def known_labels(model: Any, y: Any, rows: int) -> tuple[Labels, Codes]:
    """The model's classes and those of the rows, and the code of each row."""
    own, codes = encode_labels(y)
    if len(codes) != rows:
        raise ShapeError.of_lengths("y", len(codes), rows)
    labels = joined(np.asarray(getattr(model, "classes_", own)), own)
    return labels, code_labels(own[codes], labels)


def decided_over(model: Any, plane: Plane, actions: list[Hashable]) -> Decide:
    """A function of points that gives the place of what is decided among `actions`."""
    step = max(_CELLS // len(plane.names), 1)

    def decide(points: Floats) -> npt.NDArray[np.intp]:
        parts = [
            places(said_by(model, plane.rows(points[lo : lo + step]))[0], actions)
            for lo in range(0, len(points), step)
        ]
        return np.concatenate(parts)

    return decide


def regions_of(
    model: Any, plane: Plane, *, nodes: int, window: Window | None = None
) -> tuple[Regions, list[Hashable]]:
    """What is decided over a window, that of the rows unless given, and what codes stand for."""
    actions: list[Hashable] = np.asarray(model.classes_).tolist()
    decide = decided_over(model, plane, actions)
    return Regions.of(decide, window or plane.window(), nodes=nodes), actions


def draw_borders(canvas: Canvas, lines: list[Floats], **style: Any) -> Any:
    """Borders as one collection of lines."""
    from matplotlib.collections import LineCollection

    look: dict[str, Any] = {
        "colors": [canvas.ink],
        "linewidths": 1.4,
        "capstyle": "round",
        "zorder": 2.5,
    } | style
    found = LineCollection(lines, **look)
    canvas.ax.add_collection(found, autolim=False)
    return found


def draw_rows(
    canvas: Canvas, points: Floats, codes: Codes, labels: Labels, *, most: int
) -> dict[Hashable, Any]:
    """Marks of the rows of each class that has any."""
    some = some_rows(len(points), most)
    points, codes = points[some], codes[some]
    return {
        label: canvas.rows(points[codes == k], k, str(label))
        for k, label in enumerate(labels.tolist())
        if (codes == k).any()
    }


def some_rows(rows: int, most: int) -> npt.NDArray[np.intp]:
    """Numbers of all rows, or of as many drawn at random, always the same."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def held_words(plane: Plane) -> str:
    """What a title adds where features are held."""
    if not plane.held:
        return ""
    mode = " or the most frequent value" if plane.holds_words else ""
    return f"\n({plane.held} other feature{'s' * (plane.held > 1)} held at the mean{mode})"


def _draw_regions(
    canvas: Canvas, regions: Regions, actions: list[Hashable], shown: list[Hashable]
) -> dict[Hashable, Any]:
    """A wash of colour for each action, hatched where it is a refusal; a patch for each seen."""
    from matplotlib.colors import ListedColormap, to_rgba
    from matplotlib.patches import Patch

    washes = [_wash(canvas, action, shown) for action in actions]
    canvas.ax.imshow(
        regions.codes,
        origin="lower",
        extent=_half_cell_out(regions),
        cmap=ListedColormap(washes),
        vmin=-0.5,
        vmax=len(actions) - 0.5,
        aspect="auto",
        interpolation="nearest",
        zorder=0,
    )
    canvas.ax.set_xlim(*regions.x[[0, -1]])
    canvas.ax.set_ylim(*regions.y[[0, -1]])
    found = {}
    for place in np.unique(regions.codes).tolist():
        action = actions[place]
        look = {"facecolor": washes[place], "label": action_words(action)}
        if isinstance(action, Verdict):
            _hatch(canvas, regions, place, _HATCHES[action])
            look |= {"hatch": _HATCHES[action], "edgecolor": to_rgba(canvas.ink, 0.5)}
        found[action] = Patch(**look)
    return found


def _wash(canvas: Canvas, action: Hashable, shown: list[Hashable]) -> Any:
    from matplotlib.colors import to_rgba

    if isinstance(action, Verdict):
        return to_rgba(canvas.ink, 0.08)
    return to_rgba(canvas.colour(shown.index(action)), 0.2)


def _hatch(canvas: Canvas, regions: Regions, place: int, hatch: str) -> None:
    from matplotlib.colors import to_rgba

    here = (regions.codes == place).astype(float)
    found = canvas.ax.contourf(
        regions.x, regions.y, here, levels=[0.5, 1.5], colors="none", hatches=[hatch], zorder=0.5
    )
    found.set_edgecolor(to_rgba(canvas.ink, 0.35))
    found.set_linewidth(0.0)


def _half_cell_out(regions: Regions) -> tuple[float, float, float, float]:
    """So that the middle of each cell of the image is its node."""
    dx, dy = (0.5 * float(axis[1] - axis[0]) for axis in (regions.x, regions.y))
    return (
        float(regions.x[0]) - dx,
        float(regions.x[-1]) + dx,
        float(regions.y[0]) - dy,
        float(regions.y[-1]) + dy,
    )
