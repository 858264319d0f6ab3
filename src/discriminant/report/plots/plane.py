"""Two features out of many: rows as points, and points as rows again.

A model asks for all its features. Where two of them make the axes, all others stay where they are
in the middle: numbers at their mean, anything else at its most frequent value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discriminant.errors import PlotError, ShapeError
from discriminant.table.schema import Floats, dense, is_sparse, numbered

_EDGE = 0.06  # of the range of the rows, left free around them


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """Where two features vary, and all others do not."""

    names: tuple[str, ...]  # d: of all features
    axes: tuple[int, ...]  # places of those that vary
    points: Floats  # (n, len(axes)) the rows there
    middle: tuple[Any, ...]  # d: where the others stay
    frame: Any  # the user's frame; None for an array

    @classmethod
    def of(cls, X: Any, features: Sequence[Any] | None, *, names: Any = None) -> Plane:
        """Of an array or frame; features by place or by name, or None for all.

        `names` are for an array, which has none.
        """
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            columns, frame = _columns_of(X), X
        else:
            columns, frame = dict(_array_columns(X, names)), None
        told, values = tuple(columns), list(columns.values())
        asked = told if features is None else features
        axes = tuple(_place(feature, told) for feature in asked)
        points = np.column_stack([_numbers(values[j], told[j]) for j in axes])
        return cls(told, axes, points, tuple(_middle(v) for v in values), frame)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the features that vary."""
        return tuple(self.names[j] for j in self.axes)

    @property
    def held(self) -> int:
        """How many features do not vary."""
        return len(self.names) - len(self.axes)

    def rows(self, points: Floats) -> Any:
        """(m, len(axes)) points as rows that the model takes."""
        if self.frame is None:
            found = np.tile(np.array(self.middle, dtype=np.float64), (len(points), 1))
            found[:, list(self.axes)] = points
            return found
        import narwhals as nw

        whole = nw.from_native(self.frame, eager_only=True)
        columns = {}
        for j, (name, series) in enumerate(zip(whole.columns, whole.iter_columns(), strict=True)):
            vary = j in self.axes
            values = points[:, self.axes.index(j)] if vary else [self.middle[j]] * len(points)
            kind = nw.Float64() if vary or series.dtype.is_numeric() else series.dtype
            columns[name] = nw.new_series(name, values, kind, backend=whole.implementation)
        return nw.from_dict(columns, backend=whole.implementation).to_native()

    def window(self) -> tuple[tuple[float, float], ...]:
        """Least and largest value shown of each axis."""
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        room = np.where(high > low, _EDGE * (high - low), 1.0)
        return tuple(zip((low - room).tolist(), (high + room).tolist(), strict=True))


def _columns_of(X: Any) -> dict[str, Any]:
    import narwhals as nw

    whole = nw.from_native(X, eager_only=True)
    return {str(series.name): series for series in whole.iter_columns()}


def _array_columns(X: Any, names: Any) -> Iterator[tuple[str, Any]]:
    table = dense(X) if is_sparse(X) else np.asarray(X)
    if table.ndim != 2:
        raise ShapeError.not_a_table(f"an array of {table.ndim} dimension(s)")
    width = table.shape[1]
    known = numbered(width) if names is None or len(names) != width else map(str, names)
    return zip(known, table.T, strict=True)


def _place(feature: Any, names: tuple[str, ...]) -> int:
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if isinstance(feature, int | np.integer) and -len(names) <= feature < len(names):
        return int(feature) % len(names)
    raise PlotError.of_feature(feature, names)


def _numbers(values: Any, name: str) -> Floats:
    try:
        found = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values, np.float64)
    except (TypeError, ValueError):
        raise PlotError.of_column(name) from None
    if not len(found) or not np.isfinite(found).all():
        raise PlotError.of_column(name)
    return found


def _middle(values: Any) -> Any:
    """Mean of numbers; of anything else the most frequent value, the first of equal ones."""
    found = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if found.dtype.kind in "iuf":
        return float(np.nanmean(found.astype(np.float64)))
    counts: dict[Any, int] = {}
    for value in found.tolist():
        counts[value] = counts.get(value, 0) + 1
    return max(counts, key=lambda value: counts[value])
