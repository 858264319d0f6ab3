"""Decision regions and boundaries of any classifier over two features.

The classifier predicts at the nodes of a grid. Where two neighbours differ, a boundary crosses the
edge between them; bisection locates it:

    24 bisections locate a crossing to within 2^-24 of the edge, for any classifier: only decisions
    are used, not scores, so that costs, thresholds and votes have their own boundaries.

In each cell the crossings of its edges are joined: two by a line, more by lines to their centre,
where three regions meet.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discriminant.assessment.scorers import check_classifier, decisions_of
from discriminant.decision.actions import OUTLIER, REJECT, Verdict
from discriminant.errors import OptionError, PlotError, ShapeError, merge_warnings
from discriminant.report.plots.canvas import (
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


Decide = Callable[[Floats], npt.NDArray[np.intp]]  # of (m, 2) points, (m,) places of actions
Window = Sequence[tuple[float, float]]  # least and largest along x, and along y
_HALVINGS = 24


@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """Decisions over a window."""

    x: Floats  # (g,) of the nodes
    y: Floats  # (g,)
    codes: npt.NDArray[np.intp]  # (g, g) place of the action at (x[j], y[i])
    crossings: Floats  # (c, 2) where a border crosses an edge of the grid
    borders: Floats  # (s, 2, 2) pieces of borders, from point to point

    @classmethod
    def of(cls, decide: Decide, window: Window, *, nodes: int) -> Regions:
        """Evaluate the decisions over a window."""
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
    """Return the (c, 2) points between `start` and `stop` where the decision changes."""
    if not len(start):
        return start
    low, high = np.zeros(len(start)), np.ones(len(start))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        same = decide(start + middle[:, None] * (stop - start)) == own
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.asarray(start + 0.5 * (low + high)[:, None] * (stop - start))


def _join_crossings(
    crossings: Floats, across: npt.NDArray[np.bool_], up: npt.NDArray[np.bool_]
) -> Floats:
    """Return the (s, 2, 2) segments that join the crossings of each cell."""
    number = np.full(across.shape, -1), np.full(up.shape, -1)
    number[0][across] = np.arange(across.sum())
    number[1][up] = across.sum() + np.arange(up.sum())
    sides = np.stack(  # (g-1, g-1, 4) the crossing on each side of a cell, -1 for none
        [number[0][:-1], number[0][1:], number[1][:, :-1], number[1][:, 1:]], axis=-1
    ).reshape(-1, 4)
    found = (sides >= 0).sum(axis=1)
    two = sides[found == 2]
    pairs = crossings[two[two >= 0].reshape(-1, 2)]
    more = sides[found > 2]
    spokes = [_to_middle(crossings[cell[cell >= 0]]) for cell in more]
    return np.concatenate([pairs.reshape(-1, 2, 2), *spokes])


def _to_middle(points: Floats) -> Floats:
    return np.stack([points, np.broadcast_to(points.mean(axis=0), points.shape)], axis=1)


def places(said: npt.NDArray[np.object_], actions: list[Hashable]) -> npt.NDArray[np.intp]:
    """Return the (m,) index of each action in `actions`; new actions are appended."""
    known = {action: place for place, action in enumerate(actions)}
    for action in dict.fromkeys(said.tolist()):
        if action not in known:
            known[action] = len(actions)
            actions.append(action)
    return np.fromiter((known[action] for action in said.tolist()), np.intp, len(said))


def chain_segments(pieces: Floats) -> list[Floats]:
    """Join segments to lines that end only at branch points.

    >>> [line.tolist() for line in chain_segments(np.array([[[0, 0], [1, 1]], [[2, 0], [1, 1]]]))]
    [[[0, 0], [1, 1], [2, 0]]]
    """
    points, ends = np.unique(pieces.reshape(-1, 2), axis=0, return_inverse=True)
    ends = ends.reshape(-1, 2)
    at: list[set[int]] = [set() for _ in points]
    for piece, (a, b) in enumerate(ends.tolist()):
        at[a].add(piece)
        at[b].add(piece)
    forks = [p for p, here in enumerate(at) if len(here) != 2]
    lines = []
    for start in (*forks, *range(len(points))):  # open lines first; then whatever is left is round
        while at[start]:
            lines.append(points[_walk(start, ends, at, set(forks))])
    return lines


def _walk(start: int, ends: npt.NDArray[Any], at: list[set[int]], forks: set[int]) -> list[int]:
    """Return the points from `start` to the next branch point; used segments are removed."""
    way = [start]
    while at[way[-1]] and (len(way) == 1 or way[-1] not in forks):
        piece = min(at[way[-1]])
        a, b = ends[piece].tolist()
        at[a].discard(piece)
        at[b].discard(piece)
        way.append(b if a == way[-1] else a)
    return way


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
    """Plot decision regions and boundaries of a fitted classifier over two features.

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
    with merge_warnings():
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
    """Return two features of the rows; raise an error if that is not possible."""
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
    """Return the classes of the model and of the rows, and the code of each row."""
    own, codes = encode_labels(y)
    if len(codes) != rows:
        raise ShapeError.of_lengths("y", len(codes), rows)
    labels = union_labels(np.asarray(getattr(model, "classes_", own)), own)
    return labels, encode_known_labels(own[codes], labels)


def decided_over(model: Any, plane: Plane, actions: list[Hashable]) -> Decide:
    """Return a function from points to indices of decisions in `actions`."""
    step = max(_CELLS // len(plane.names), 1)

    def decide(points: Floats) -> npt.NDArray[np.intp]:
        parts = [
            places(decisions_of(model, plane.rows(points[lo : lo + step]))[0], actions)
            for lo in range(0, len(points), step)
        ]
        return np.concatenate(parts)

    return decide


def regions_of(
    model: Any, plane: Plane, *, nodes: int, window: Window | None = None
) -> tuple[Regions, list[Hashable]]:
    """Return the regions over a window (default: that of the rows) and the actions."""
    actions: list[Hashable] = np.asarray(model.classes_).tolist()
    decide = decided_over(model, plane, actions)
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
    found = LineCollection(lines, **look)
    canvas.ax.add_collection(found, autolim=False)
    return found


def draw_rows(
    canvas: Canvas, points: Floats, codes: Codes, labels: Labels, *, most: int
) -> dict[Hashable, Any]:
    """Draw the rows of each class."""
    some = some_rows(len(points), most)
    points, codes = points[some], codes[some]
    return {
        label: canvas.rows(points[codes == k], k, str(label))
        for k, label in enumerate(labels.tolist())
        if (codes == k).any()
    }


def some_rows(rows: int, most: int) -> npt.NDArray[np.intp]:
    """Return the numbers of all rows, or of a reproducible random sample."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def held_words(plane: Plane) -> str:
    """Return the part of the title that names fixed features."""
    if not plane.held:
        return ""
    mode = " or the most frequent value" if plane.holds_words else ""
    return f"\n({plane.held} other feature{'s' * (plane.held > 1)} held at the mean{mode})"


def _draw_regions(
    canvas: Canvas, regions: Regions, actions: list[Hashable], shown: list[Hashable]
) -> dict[Hashable, Any]:
    """Shade the region of each action, hatched for reject and outlier; return legend patches."""
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
    """Return the image extent that centres each pixel on its node."""
    dx, dy = (0.5 * float(axis[1] - axis[0]) for axis in (regions.x, regions.y))
    return (
        float(regions.x[0]) - dx,
        float(regions.x[-1]) + dx,
        float(regions.y[0]) - dy,
        float(regions.y[-1]) + dy,
    )
