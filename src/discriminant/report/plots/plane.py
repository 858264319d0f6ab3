"""A few features out of many: rows as points, and points as rows again.

A model asks for all its features. Where some of them make the axes, all others stay where they are
in the middle: numbers at their mean, anything else at its most frequent value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discriminant.errors import PlotError
from discriminant.table.schema import Floats, dense, numbered
from discriminant.table.source import open_features

_EDGE = 0.06  # of the range of the rows, left free around them


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """Where some features vary, and all others do not."""

    names: tuple[str, ...]  # d: of all features
    axes: tuple[int, ...]  # places of those that vary
    points: Floats  # (n, len(axes)) the rows there
    middle: Floats  # (d,) of an array: where the others stay
    frame: Any  # the user's frame, as narwhals has it; None for an array

    @classmethod
    def of(cls, X: Any, features: Sequence[Any] | None, *, names: Any = None) -> Plane:
        """Of an array or frame; features by place or by name, or None for all.

        `names` are for an array, which has none.
        """
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            return cls._of_frame(X, features)
        table = dense(open_features(X)[0]).astype(np.float64, copy=False)
        width = table.shape[1]
        named = names is not None and len(names) == width
        told = tuple(map(str, names)) if named else numbered(width)
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
        """Names of the features that vary."""
        return tuple(self.names[j] for j in self.axes)

    @property
    def held(self) -> int:
        """How many features do not vary."""
        return len(self.names) - len(self.axes)

    @property
    def holds_words(self) -> bool:
        """Whether a feature that does not vary is no number."""
        if self.frame is None:
            return False
        columns = enumerate(self.frame.iter_columns())
        return any(j not in self.axes and not one.dtype.is_numeric() for j, one in columns)

    def rows(self, points: Floats) -> Any:
        """(m, len(axes)) points as rows that the model takes: a frame if it was fitted to one."""
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
        """Least and largest value shown of each axis."""
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
    """Number of the first row with the most frequent value."""
    counts: dict[Any, list[int]] = {}
    for row, value in enumerate(series.to_list()):
        counts.setdefault(value, []).append(row)
    return max(counts.values(), key=len)[0]
