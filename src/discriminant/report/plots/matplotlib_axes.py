"""Canvas of a plot: axes, colours and markers; and planes in which some features vary.

The colours are the same as in the report page. Colour-blind readers can distinguish them; there is
one set for light and one for dark backgrounds. The background and the colour of text ("ink") are
taken from the Axes, so that any matplotlib style works. Classes also differ by their markers.

A plane shows a few of the features of a model. The model needs all features, so the features that
are not shown are fixed: numbers at their mean, anything else at its most frequent value.
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


Colour = Any  # any colour that matplotlib accepts

LIGHT = (
    "#0a6ab5",
    "#c2410c",
    "#00796b",
    "#9b3f8f",
    "#8f6a00",
    "#3f7d0a",
    "#565c66",
    "#a3263a",
    "#2e0387",
    "#d61fc0",
    "#5a2a00",
    "#8a5cf6",
)
DARK = (
    "#63b0f4",
    "#ff8f5c",
    "#45cdb0",
    "#df8fd3",
    "#e5bd4f",
    "#6fd13c",
    "#b3bac5",
    "#ff8193",
    "#8f5cff",
    "#e02ba6",
    "#a87b4f",
    "#d8ff3c",
)
# nine markers, to be combined with twelve colours
MARKS = ("o", "s", "^", "D", "P", "v", "X", "p", "*")
LINES = ("-", "--", "-.", ":")
_INSIDE = 4  # largest number of entries of a legend inside the axes
_LEGEND_WIDTH = 1.9  # width in inches of a legend beside the axes
_WORDS = {REJECT: "rejected", OUTLIER: "outlier"}


@dataclass(frozen=True, slots=True)
class Canvas:
    """Axes with the colours and markers of classes."""

    ax: Axes
    ink: Colour  # colour of text, and of lines that belong to no class
    paper: Colour  # colour of the background
    colours: tuple[str, ...]
    own: bool  # whether the figure was created here, so that it may be widened

    @classmethod
    def of(cls, ax: Axes | None, *, size: tuple[float, float] = (6.0, 4.5)) -> Canvas:
        """Use the given Axes, or the Axes of a new pyplot figure.

        Call this function after all computations, so that an error leaves no empty figure behind.
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
        """Return the colour of a class.

        The ninth class has the colour of the first, but another marker.
        """
        return self.colours[code % len(self.colours)]

    def mark(self, code: int) -> str:
        """Return the marker of a class."""
        return MARKS[code % len(MARKS)]

    def name(self, *, title: str | None, x: str, y: str) -> None:
        """Set the title and the axis labels; if `title` is empty, an existing title remains."""
        if title is not None:
            self.ax.set_title(title)
        self.ax.set_xlabel(x)
        self.ax.set_ylabel(y)

    def legend(self, handles: Sequence[Any], *, title: str | None = None, **where: Any) -> None:
        """Draw the legend, beside the axes if it is long."""
        if not handles:
            return
        # other axes may be beside this one
        if not where and len(handles) > _INSIDE and not self.own:
            where = {"loc": "best", "fontsize": "small", "ncols": -(-len(handles) // 10)}
        if not where and len(handles) > _INSIDE:
            columns = -(-len(handles) // 16)
            where = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "ncols": columns}
            where["borderaxespad"] = 0.0
            figure = self.ax.get_figure(root=True)
            if figure is not None:
                figure.set_figwidth(figure.get_figwidth() + columns * _LEGEND_WIDTH)
        self.ax.legend(handles=list(handles), title=title, **where).set_zorder(10)

    def rows(self, points: Floats, code: int, label: str, *, alpha: float = 0.9) -> Any:
        """Draw the rows of one class, with an edge around each so that neighbours stay distinct."""
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
    """Return the name of a model, with the name of the model inside it.

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


_MARGIN = 0.06  # margin around the rows, relative to their range


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """A plane (or line) on which some features vary and all others are fixed."""

    names: tuple[str, ...]  # names of all d features
    axes: tuple[int, ...]  # indices of the features that vary
    points: Floats  # (n, len(axes)) coordinates of the rows in the plane
    middle: Floats  # (d,) means, at which the other features are fixed; empty for a frame
    frame: Any  # the narwhals frame of the rows; None for an array

    @classmethod
    def of(cls, X: Any, features: Sequence[Any] | None, *, names: Any = None) -> Plane:
        """Create a plane from an array or frame.

        `features` are positions or names; None stands for all features.

        `names` are the feature names of an array.
        """
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            return cls._of_frame(X, features)
        table = dense(as_features(X)[0]).astype(np.float64, copy=False)
        width = table.shape[1]
        named = names is not None and len(names) == width
        feature_names = tuple(map(str, names)) if named else numbered_names(width)
        return cls._of_columns(feature_names, features, table.T, table.mean(axis=0), None)

    @classmethod
    def _of_frame(cls, X: Any, features: Sequence[Any] | None) -> Plane:
        import narwhals as nw

        frame = nw.from_native(X, eager_only=True)
        names, columns = tuple(map(str, frame.columns)), list(frame.iter_columns())
        return cls._of_columns(names, features, columns, np.zeros(0), frame)

    @classmethod
    def _of_columns(
        cls,
        names: tuple[str, ...],
        features: Sequence[Any] | None,
        columns: Any,  # sequence of d columns
        middle: Floats,
        frame: Any,
    ) -> Plane:
        indices = range(len(names)) if features is None else features
        axes = tuple(_index(feature, names) for feature in indices)
        points = np.column_stack([_numbers(np.asarray(columns[j]), names[j]) for j in axes])
        return cls(names, axes, points, middle, frame)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the varying features."""
        return tuple(self.names[j] for j in self.axes)

    @property
    def n_fixed(self) -> int:
        """Number of fixed features."""
        return len(self.names) - len(self.axes)

    @property
    def fixes_categories(self) -> bool:
        """Whether a fixed feature is not numeric."""
        if self.frame is None:
            return False
        columns = enumerate(self.frame.iter_columns())
        return any(j not in self.axes and not series.dtype.is_numeric() for j, series in columns)

    def rows(self, points: Floats) -> Any:
        """Convert (m, len(axes)) points to rows for the model.

        The result is a frame if the plane was created from a frame.
        """
        if self.frame is None:
            rows = np.tile(self.middle, (len(points), 1))
            rows[:, list(self.axes)] = points
            return rows
        import narwhals as nw

        backend, columns = self.frame.implementation, {}
        for j, series in enumerate(self.frame.iter_columns()):
            if j in self.axes:
                values = points[:, self.axes.index(j)]
            elif series.dtype.is_numeric():
                values = np.full(len(points), series.mean())
            else:  # repeat a value of the column, which keeps its type
                columns[series.name] = series[[_most_frequent(series)] * len(points)]
                continue
            columns[series.name] = nw.new_series(series.name, values, backend=backend)
        return nw.from_dict(columns, backend=backend).to_native()

    def window(self) -> tuple[tuple[float, float], ...]:
        """Return the limits of each axis."""
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        margin = np.where(high > low, _MARGIN * (high - low), 1.0)
        return tuple(zip((low - margin).tolist(), (high + margin).tolist(), strict=True))


def _index(feature: Any, names: tuple[str, ...]) -> int:
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if isinstance(feature, int | np.integer) and -len(names) <= feature < len(names):
        return int(feature) % len(names)
    raise PlotError.of_feature(feature, names)


def _numbers(values: Any, name: str) -> Floats:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise PlotError.of_column(name) from None
    if not len(numbers) or not np.isfinite(numbers).all():
        raise PlotError.of_column(name)
    return numbers


def _most_frequent(series: Any) -> int:
    """Return the number of the first row that has the most frequent value."""
    counts: dict[Any, list[int]] = {}
    for row, value in enumerate(series.to_list()):
        counts.setdefault(value, []).append(row)
    return max(counts.values(), key=len)[0]
