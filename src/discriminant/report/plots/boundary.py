"""Decision boundaries and regions of any classifier over two features.

The classifier predicts at the nodes of a grid. Where two neighbours differ, a boundary crosses the
edge between them; bisection locates it:

    24 bisections locate a crossing to within 2^-24 of the length of the edge. Only decisions are
    used, not scores, so this works for any classifier, and costs, thresholds and votes are
    taken into account.

In each cell of the grid the crossings on its edges are joined: two crossings by a line, and more
than two (where three or more regions meet) by lines to their centre.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discriminant.assessment.classifier_outputs import check_classifier, decisions_of
from discriminant.decision.actions import OUTLIER, REJECT, Verdict
from discriminant.errors import OptionError, PlotError, ShapeError, merge_warnings
from discriminant.report.plots.matplotlib_axes import (
    Canvas,
    Plane,
    action_words,
    check_matplotlib,
    model_words,
)
from discriminant.table.blocks import Codes, Floats, Labels
from discriminant.table.labels import encode_known_labels, encode_labels, union_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# function from (m, 2) points to (m,) indices of actions
Decide = Callable[[Floats], npt.NDArray[np.intp]]
Window = Sequence[tuple[float, float]]  # limits of x, limits of y
_BISECTIONS = 24


@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """Decisions over a window of the plane, with their boundaries."""

    x: Floats  # (g,) x of the nodes
    y: Floats  # (g,) y of the nodes
    codes: npt.NDArray[np.intp]  # (g, g) index of the action at (x[j], y[i])
    crossings: Floats  # (c, 2) points where a boundary crosses an edge of the grid
    borders: Floats  # (s, 2, 2) segments of the boundaries, two points each

    @classmethod
    def of(cls, decide: Decide, window: Window, *, nodes: int) -> Regions:
        """Evaluate the decisions at the nodes of a grid over a window."""
        x, y = (np.linspace(*ends, nodes) for ends in window)
        grid = np.stack(np.meshgrid(x, y), axis=-1)  # (g, g, 2)
        codes = decide(grid.reshape(-1, 2)).reshape(nodes, nodes)
        across = codes[:, :-1] != codes[:, 1:]  # (g, g-1) edges along x
        up = codes[:-1, :] != codes[1:, :]  # (g-1, g) edges along y
        start = np.concatenate([grid[:, :-1][across], grid[:-1, :][up]])
        stop = np.concatenate([grid[:, 1:][across], grid[1:, :][up]])
        own = np.concatenate([codes[:, :-1][across], codes[:-1, :][up]])
        crossings = bisect_edges(decide, start, stop, own)
        return cls(x, y, codes, crossings, _join_crossings(crossings, across, up))

    def lines(self) -> list[Floats]:
        """Return the boundary as continuous lines, (m, 2) each."""
        return chain_segments(self.borders)


def bisect_edges(decide: Decide, start: Floats, stop: Floats, own: npt.NDArray[np.intp]) -> Floats:
    """Return the (c, 2) points between `start` and `stop` at which the decision changes.

    `own` are the decisions at `start`.
    """
    if not len(start):
        return start
    low, high = np.zeros(len(start)), np.ones(len(start))
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        same = decide(start + middle[:, None] * (stop - start)) == own
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.asarray(start + 0.5 * (low + high)[:, None] * (stop - start))


def _join_crossings(
    crossings: Floats, across: npt.NDArray[np.bool_], up: npt.NDArray[np.bool_]
) -> Floats:
    """Return the (s, 2, 2) segments that join the crossings on the edges of each cell."""
    number = np.full(across.shape, -1), np.full(up.shape, -1)
    number[0][across] = np.arange(across.sum())
    number[1][up] = across.sum() + np.arange(up.sum())
    sides = np.stack(  # (g-1, g-1, 4) index of the crossing on each side of a cell, or -1
        [number[0][:-1], number[0][1:], number[1][:, :-1], number[1][:, 1:]], axis=-1
    ).reshape(-1, 4)
    n_crossings = (sides >= 0).sum(axis=1)
    two = sides[n_crossings == 2]
    pairs = crossings[two[two >= 0].reshape(-1, 2)]
    spokes = []
    for cell in sides[n_crossings > 2]:
        points = crossings[cell[cell >= 0]]
        centre = np.broadcast_to(points.mean(axis=0), points.shape)
        spokes.append(np.stack([points, centre], axis=1))
    return np.concatenate([pairs.reshape(-1, 2, 2), *spokes])


def action_indices(
    decisions: npt.NDArray[np.object_], actions: list[Hashable]
) -> npt.NDArray[np.intp]:
    """Return the index of each decision in `actions`, (m,); new decisions are appended to it."""
    known = {action: index for index, action in enumerate(actions)}
    for action in dict.fromkeys(decisions.tolist()):
        if action not in known:
            known[action] = len(actions)
            actions.append(action)
    return np.fromiter((known[action] for action in decisions.tolist()), np.intp, len(decisions))


def chain_segments(segments: Floats) -> list[Floats]:
    """Join segments to lines; a line ends at a branch point or a free end.

    >>> [line.tolist() for line in chain_segments(np.array([[[0, 0], [1, 1]], [[2, 0], [1, 1]]]))]
    [[[0, 0], [1, 1], [2, 0]]]
    """
    points, ends = np.unique(segments.reshape(-1, 2), axis=0, return_inverse=True)
    ends = ends.reshape(-1, 2)
    unused: list[set[int]] = [set() for _ in points]  # segments that end at each point
    for segment, (a, b) in enumerate(ends.tolist()):
        unused[a].add(segment)
        unused[b].add(segment)
    branches = [point for point, own in enumerate(unused) if len(own) != 2]
    lines = []
    # open lines first; the remaining lines are closed
    for start in (*branches, *range(len(points))):
        while unused[start]:
            lines.append(points[_follow(start, ends, unused, set(branches))])
    return lines


def _follow(
    start: int, ends: npt.NDArray[Any], unused: list[set[int]], branches: set[int]
) -> list[int]:
    """Return the points from `start` to the next branch point; used segments are removed."""
    line = [start]
    while unused[line[-1]] and (len(line) == 1 or line[-1] not in branches):
        segment = min(unused[line[-1]])
        a, b = ends[segment].tolist()
        unused[a].discard(segment)
        unused[b].discard(segment)
        line.append(b if a == line[-1] else a)
    return line


_CELLS = 1 << 22  # numbers passed to the model at a time
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
    """Plot decision regions and boundaries of a fitted classifier over two features.

    Parameters
    ----------
    model : fitted classifier
        Classifier whose decisions are shown. If it has a method `decide`, as `Decision` has, the
        rejected regions (hatched) and the regions of other actions are shown too.
    X, y : array or data frame of shape (n, d), and array of shape (n,)
        Rows and their labels.
    ax : matplotlib Axes or None, default None
        Axes to draw on. None means the Axes of a new figure.
    features : pair of int or str, default (0, 1)
        Positions or names of the two features on the axes. All other features are fixed at their
        mean (categories at their most frequent value), as the title states. Rows may then lie in
        the region of a class other than their predicted class.
    window : pair of pairs of float or None, default None
        Limits ((low, high), (low, high)) of x and y (default: the range of the rows).
    nodes : int, default 241
        Number of nodes of the grid along each axis. Boundaries are exact where they cross a line of
        the grid.
    most : int, default 2000
        Largest number of rows shown; more are sampled at random.
    title : str or None, default None
        Title of the plot (default: a short description).

    Returns
    -------
    Axes

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
    with merge_warnings():
        regions, actions = regions_of(model, plane, nodes=nodes, window=window)
    canvas = Canvas.of(ax)
    shown = [*labels.tolist(), *(a for a in actions if a not in set(labels.tolist()))]
    patches = _draw_regions(canvas, regions, actions, shown)
    draw_borders(canvas, regions.lines())
    marks = draw_rows(canvas, plane.points, codes, labels, most=most)
    if title is None:
        title = f"Decision regions of {model_words(model)}{fixed_words(plane)}"
    canvas.name(title=title, x=plane.labels[0], y=plane.labels[1])
    canvas.legend([*(marks | {a: p for a, p in patches.items() if a not in marks}).values()])
    return canvas.ax


def plane_of(model: Any, X: Any, features: Sequence[Any], figure: str) -> Plane:
    """Return the rows in the plane of two features; raise an error if that is not possible."""
    names = getattr(model, "feature_names_in_", None)
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    width = shape[1] if len(shape) == 2 else 0
    if width == 1:
        instead = "For one feature see plot_reject and plot_masking."
        raise PlotError.of_width(figure, width, "two features", instead)
    if isinstance(features, str) or len(features) != 2:
        raise OptionError.of("features", features, "two features, by position or by name")
    return Plane.of(X, features, names=names)


def known_labels(model: Any, y: Any, rows: int) -> tuple[Labels, Codes]:
    """Return the classes of the model and of the rows, and the class code of each row."""
    own, codes = encode_labels(y)
    if len(codes) != rows:
        raise ShapeError.of_lengths("y", len(codes), rows)
    labels = union_labels(np.asarray(getattr(model, "classes_", own)), own)
    return labels, encode_known_labels(own[codes], labels)


def decision_function(model: Any, plane: Plane, actions: list[Hashable]) -> Decide:
    """Return a function that maps points to decisions, as indices into `actions`."""
    step = max(_CELLS // len(plane.names), 1)

    def decide(points: Floats) -> npt.NDArray[np.intp]:
        parts = [
            action_indices(decisions_of(model, plane.rows(points[lo : lo + step]))[0], actions)
            for lo in range(0, len(points), step)
        ]
        return np.concatenate(parts)

    return decide


def regions_of(
    model: Any, plane: Plane, *, nodes: int, window: Window | None = None
) -> tuple[Regions, list[Hashable]]:
    """Return the regions over a window, and the actions.

    The default window is the range of the rows.
    """
    actions: list[Hashable] = np.asarray(model.classes_).tolist()
    decide = decision_function(model, plane, actions)
    return Regions.of(decide, window or plane.window(), nodes=nodes), actions


def draw_borders(canvas: Canvas, lines: list[Floats], **style: Any) -> Any:
    """Draw the boundaries as one line collection."""
    from matplotlib.collections import LineCollection

    look: dict[str, Any] = {
        "colors": [canvas.ink],
        "linewidths": 1.4,
        "capstyle": "round",
        "zorder": 2.5,
    } | style
    collection = LineCollection(lines, **look)
    canvas.ax.add_collection(collection, autolim=False)
    return collection


def draw_rows(
    canvas: Canvas, points: Floats, codes: Codes, labels: Labels, *, most: int
) -> dict[Hashable, Any]:
    """Draw the rows of each class."""
    sample = sample_rows(len(points), most)
    points, codes = points[sample], codes[sample]
    return {
        label: canvas.rows(points[codes == k], k, str(label))
        for k, label in enumerate(labels.tolist())
        if (codes == k).any()
    }


def sample_rows(rows: int, most: int) -> npt.NDArray[np.intp]:
    """Return the numbers of all rows, or of a reproducible random sample."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def fixed_words(plane: Plane) -> str:
    """Return the part of the title that states which features are fixed."""
    n = plane.n_fixed
    if not n:
        return ""
    mode = " or the most frequent value" if plane.fixes_categories else ""
    return f"\n({n} other feature{'s' * (n > 1)} held at the mean{mode})"


def _draw_regions(
    canvas: Canvas, regions: Regions, actions: list[Hashable], shown: list[Hashable]
) -> dict[Hashable, Any]:
    """Shade the region of each action, hatched for reject and outlier; return legend patches."""
    from matplotlib.colors import ListedColormap, to_rgba
    from matplotlib.patches import Patch

    shades = [
        to_rgba(canvas.ink, 0.08)
        if isinstance(action, Verdict)
        else to_rgba(canvas.colour(shown.index(action)), 0.2)
        for action in actions
    ]
    canvas.ax.imshow(
        regions.codes,
        origin="lower",
        extent=_image_extent(regions),
        cmap=ListedColormap(shades),
        vmin=-0.5,
        vmax=len(actions) - 0.5,
        aspect="auto",
        interpolation="nearest",
        zorder=0,
    )
    canvas.ax.set_xlim(*regions.x[[0, -1]])
    canvas.ax.set_ylim(*regions.y[[0, -1]])
    patches = {}
    for code in np.unique(regions.codes).tolist():
        action = actions[code]
        look = {"facecolor": shades[code], "label": action_words(action)}
        if isinstance(action, Verdict):
            hatch = _HATCHES[action]
            inside = (regions.codes == code).astype(float)
            style: dict[str, Any] = {"colors": "none", "hatches": [hatch], "zorder": 0.5}
            area = canvas.ax.contourf(regions.x, regions.y, inside, levels=[0.5, 1.5], **style)
            area.set_edgecolor(to_rgba(canvas.ink, 0.35))
            area.set_linewidth(0.0)
            look |= {"hatch": hatch, "edgecolor": to_rgba(canvas.ink, 0.5)}
        patches[action] = Patch(**look)
    return patches


def _image_extent(regions: Regions) -> tuple[float, float, float, float]:
    """Return the image extent that centres each pixel on its node."""
    dx, dy = (0.5 * float(axis[1] - axis[0]) for axis in (regions.x, regions.y))
    return (
        float(regions.x[0]) - dx,
        float(regions.x[-1]) + dx,
        float(regions.y[0]) - dy,
        float(regions.y[-1]) + dy,
    )
