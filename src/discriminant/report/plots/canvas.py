"""Shared elements of all plots: axes, colours and markers, and planes of features.

Colours are those of the report's page, told apart by colour-blind readers too, in two sets: one for
light paper, one for dark. Which of them is asked of the Axes themselves, as is the colour of text
("ink"), so that any style of matplotlib will do. Classes differ by their marks as well.

A few features out of many: rows as points, and points as rows again.

A model asks for all its features. Where some of them make the axes, all others stay where they are
in the middle: numbers at their mean, anything else at its most frequent value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discriminant.decision.actions import OUTLIER, REJECT, Verdict
from discriminant.errors import LibraryMissingError, OptionError, PlotError
from discriminant.table.blocks import Floats, dense, numbered_names
from discriminant.table.memory import as_features

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Colour = Any  # whatever matplotlib takes for a colour

LIGHT = (
    "#0a6ab5",
    "#c2410c",
    "#00796b",
    "#9b3f8f",
    "#8f6a00",
    "#2b93c9",
    "#565c66",
    "#a3263a",
)
DARK = (
    "#63b0f4",
    "#ff8f5c",
    "#45cdb0",
    "#df8fd3",
    "#e5bd4f",
    "#a5dcff",
    "#b3bac5",
    "#ff8193",
)
MARKS = ("o", "s", "^", "D", "P", "v", "X", "p", "*")  # nine, so that eight colours go on
_INSIDE = 4  # entries of a legend that finds room inside of the axes
_ASIDE = 1.9  # inches that a legend beside them takes
_WORDS = {REJECT: "rejected", OUTLIER: "outlier"}


@dataclass(frozen=True, slots=True)
class Canvas:
    """Axes with colours and markers."""

    ax: Axes
    ink: Colour  # of text and lines that are no class's
    paper: Colour  # behind it all
    colours: tuple[str, ...]
    own: bool  # whether the figure is ours, to be made wider

    @classmethod
    def of(cls, ax: Axes | None, *, size: tuple[float, float] = (6.0, 4.5)) -> Canvas:
        """Use the given Axes, or those of a new pyplot figure.

        Called when all is worked out, so that an error leaves no empty figure behind.
        """
        check_matplotlib()
        from matplotlib.axes import Axes
        from matplotlib.colors import to_rgb

        own = ax is None
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=size, layout="constrained")
        if not isinstance(ax, Axes):
            raise OptionError.of(
                "ax", type(ax).__name__, "the Axes of a matplotlib figure, or None"
            )
        paper = ax.get_facecolor()
        red, green, blue = to_rgb(paper)
        light = 0.3 * red + 0.59 * green + 0.11 * blue > 0.5
        return cls(ax, ax.xaxis.label.get_color(), paper, LIGHT if light else DARK, own)

    def colour(self, code: int) -> str:
        """Return the colour of a class; the ninth repeats the first with another marker."""
        return self.colours[code % len(self.colours)]

    def mark(self, code: int) -> str:
        """Return the marker of a class."""
        return MARKS[code % len(MARKS)]

    def name(self, *, title: str | None, x: str, y: str) -> None:
        """Set title and axis labels; without a title, an existing one stays."""
        if title is not None:
            self.ax.set_title(title)
        self.ax.set_xlabel(x)
        self.ax.set_ylabel(y)

    def legend(self, handles: Sequence[Any], *, title: str | None = None, **where: Any) -> None:
        """Draw the legend, beside the axes if it is long."""
        if not handles:
            return
        if not where and len(handles) > _INSIDE and not self.own:  # beside it may be others
            where = {"loc": "best", "fontsize": "small", "ncols": -(-len(handles) // 10)}
        if not where and len(handles) > _INSIDE:
            columns = -(-len(handles) // 16)
            where = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "ncols": columns}
            where["borderaxespad"] = 0.0
            figure = self.ax.get_figure(root=True)
            if figure is not None:
                figure.set_figwidth(figure.get_figwidth() + columns * _ASIDE)
        found = self.ax.legend(handles=list(handles), title=title, **where)
        found.set_zorder(10)

    def rows(self, points: Floats, code: int, label: str, *, alpha: float = 0.9) -> Any:
        """Draw the rows of one class, with an edge so that neighbours stay distinct."""
        return self.ax.scatter(
            points[:, 0],
            points[:, 1],
            s=26,
            marker=self.mark(code),
            facecolor=self.colour(code),
            edgecolor=self.paper,
            linewidth=0.5,
            alpha=alpha,
            label=label,
            zorder=3,
        )


def action_words(action: object) -> str:
    """Return the name of an action in a plot."""
    return _WORDS[action] if isinstance(action, Verdict) else str(action)


def model_words(model: Any) -> str:
    """Return the name of a model, and of the model inside it.

    >>> from discriminant import LDA, Decision
    >>> model_words(Decision(LDA(), reject=0.1))
    'Decision(LDA)'
    """
    inner = getattr(model, "estimator", None)
    name = type(model).__name__
    return name if inner is None else f"{name}({model_words(inner)})"


def check_matplotlib() -> None:
    """Raise an error with installation instructions if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise LibraryMissingError.of("matplotlib", what="A figure", extra="plot") from None


_EDGE = 0.06  # of the range of the rows, left free around them


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """A plane (or line) on which some features vary and all others are fixed."""

    names: tuple[str, ...]  # d: of all features
    axes: tuple[int, ...]  # places of those that vary
    points: Floats  # (n, len(axes)) the rows there
    middle: Floats  # (d,) of an array: where the others stay
    frame: Any  # the user's frame, as narwhals has it; None for an array

    @classmethod
    def of(cls, X: Any, features: Sequence[Any] | None, *, names: Any = None) -> Plane:
        """Create a plane from an array or frame; features by position or name, None for all.

        `names` are for an array, which has none.
        """
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            return cls._of_frame(X, features)
        table = dense(as_features(X)[0]).astype(np.float64, copy=False)
        width = table.shape[1]
        named = names is not None and len(names) == width
        told = tuple(map(str, names)) if named else numbered_names(width)
        axes = _places(features, told)
        points = np.column_stack([_numbers(table[:, j], told[j]) for j in axes])
        return cls(told, axes, points, table.mean(axis=0), None)

    @classmethod
    def _of_frame(cls, X: Any, features: Sequence[Any] | None) -> Plane:
        import narwhals as nw

        whole = nw.from_native(X, eager_only=True)
        told = tuple(map(str, whole.columns))
        axes = _places(features, told)
        columns = list(whole.iter_columns())
        points = np.column_stack([_numbers(columns[j].to_numpy(), told[j]) for j in axes])
        return cls(told, axes, points, np.zeros(0), whole)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the names of the varying features."""
        return tuple(self.names[j] for j in self.axes)

    @property
    def held(self) -> int:
        """Return the number of fixed features."""
        return len(self.names) - len(self.axes)

    @property
    def holds_words(self) -> bool:
        """Whether a fixed feature is not numeric."""
        if self.frame is None:
            return False
        columns = enumerate(self.frame.iter_columns())
        return any(j not in self.axes and not one.dtype.is_numeric() for j, one in columns)

    def rows(self, points: Floats) -> Any:
        """Convert (m, len(axes)) points to rows for the model: a frame if it was fitted to one."""
        if self.frame is None:
            found = np.tile(self.middle, (len(points), 1))
            found[:, list(self.axes)] = points
            return found
        import narwhals as nw

        backend, columns = self.frame.implementation, {}
        for j, series in enumerate(self.frame.iter_columns()):
            if j in self.axes:
                values = points[:, self.axes.index(j)]
            elif series.dtype.is_numeric():
                values = np.full(len(points), series.mean())
            else:  # as many of one of its own values: so it stays of its kind
                columns[series.name] = series[[_frequent(series)] * len(points)]
                continue
            columns[series.name] = nw.new_series(series.name, values, backend=backend)
        return nw.from_dict(columns, backend=backend).to_native()

    def window(self) -> tuple[tuple[float, float], ...]:
        """Return the limits of each axis."""
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        room = np.where(high > low, _EDGE * (high - low), 1.0)
        return tuple(zip((low - room).tolist(), (high + room).tolist(), strict=True))


def _places(features: Sequence[Any] | None, names: tuple[str, ...]) -> tuple[int, ...]:
    if features is None:
        return tuple(range(len(names)))
    return tuple(_place(feature, names) for feature in features)


def _place(feature: Any, names: tuple[str, ...]) -> int:
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if isinstance(feature, int | np.integer) and -len(names) <= feature < len(names):
        return int(feature) % len(names)
    raise PlotError.of_feature(feature, names)


def _numbers(values: Any, name: str) -> Floats:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise PlotError.of_column(name) from None
    if not len(found) or not np.isfinite(found).all():
        raise PlotError.of_column(name)
    return found


def _frequent(series: Any) -> int:
    """Return the number of the first row with the most frequent value."""
    counts: dict[Any, list[int]] = {}
    for row, value in enumerate(series.to_list()):
        counts.setdefault(value, []).append(row)
    return max(counts.values(), key=len)[0]
