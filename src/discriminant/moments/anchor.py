"""Anchor of a table: an origin and a unit for each column, by which values are centred and scaled.

    offset = (x - origin) / unit

All sums and all fitted models use these offsets instead of the values. With the origin near the
rows, `x - origin` is exact in floating point (Sterbenz), so a mean of 1e8 costs no digits. The unit
of a column is 1 unless its range is above 2^200 or below 2^-200 (1e+-60), where fourth powers would
overflow or underflow. For such a range the unit is another power of two, so that the division is
exact as well. A large range is reduced to 2^200 rather than to one, so that small values in such a
column keep their digits. The unit is estimated from a few rows. If the sums show that other rows
need another unit, `ColumnMagnitudesReading` computes the largest distance of any row from the
origin, and the rows are read again with the unit that `rescale_to` derives from this distance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from discriminant.moments.summary_base import Summable
from discriminant.table.blocks import Block, Features, Floats, Places, dense

Powers = npt.NDArray[np.integer[Any]]

_INNER = 512  # numbers that are subtracted in one inner loop of NumPy
_LARGE = 200  # ranges above 2**200 are scaled to 2**200, those below 2**-200 to one


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """Origin and unit of d columns."""

    origin: Floats  # (d,)
    unit: Floats  # (d,) powers of two
    plain: bool = field(init=False)  # every unit is one: no division is needed
    idle: bool = field(init=False)  # every unit is one and every origin zero: offsets are values

    def __post_init__(self) -> None:
        # `count_nonzero` is faster than `all` and `any` for a few numbers
        plain = np.count_nonzero(self.unit == 1.0) == len(self.unit)
        object.__setattr__(self, "plain", plain)
        object.__setattr__(self, "idle", plain and not np.count_nonzero(self.origin))

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of an anchor are invalid, or None if they are valid."""
        origin, unit = parts["origin"], parts["unit"]
        if origin.ndim != 1 or origin.shape != unit.shape:
            return f"origin {origin.shape} and unit {unit.shape} must be vectors of one length"
        if not (np.isfinite(origin).all() and np.isfinite(unit).all() and (unit > 0).all()):
            return "origin and unit must be finite, and units positive"
        return None

    @classmethod
    def from_sample(cls, sample: npt.NDArray[Any], *, at_zero: bool = False) -> Anchor:
        """Return the anchor for a sample of rows.

        The origin is the median of each column. With `at_zero` the origin is zero, so that sparse
        rows stay sparse.
        """
        columns = sample.T.astype(np.float64, order="C")
        finite = np.isfinite(columns)
        if np.count_nonzero(finite) < finite.size:
            columns[~finite] = 0.0
        origin = np.zeros(len(columns)) if at_zero else _lower_medians(columns)
        columns -= origin[:, None]
        extent = np.abs(columns, out=columns).max(axis=1)
        if np.count_nonzero(extent) < len(extent):
            extent = np.where(extent > 0, extent, np.abs(origin))
        return cls(origin, _unit(extent))

    def rescale_to(self, extent: Floats) -> Anchor:
        """Return an anchor with the same origin, and units suitable for offsets of size `extent`.

        A column whose `extent` is 0 keeps its unit.
        """
        return Anchor(self.origin, np.where(extent > 0, _unit(extent), self.unit))

    @classmethod
    def zero(cls, width: int) -> Anchor:
        """Return the anchor with origin zero and unit one: offsets equal values."""
        return cls(np.zeros(width), np.ones(width))

    def offsets(self, features: Features, out: Floats | None = None) -> Floats:
        """Return the rows as float64, as offsets (x - origin) / unit."""
        offsets = subtract_row(dense(features), self.origin, out=out)
        if not self.plain:
            offsets /= self.unit
        return offsets

    def scaled_offsets(self, features: Features) -> tuple[Floats, Powers]:
        """Return the offsets of rows that overflow, as fractions (n, d) and exponents `power` (n,).

        The offsets of row i are `fraction[i] * 2**power[i]`, with fractions of at most one.

        Infinite values become NaN.

        >>> offsets, power = Anchor(np.array([-1e308]), np.ones(1)).scaled_offsets([[1e308]])
        >>> offsets.round(6).tolist(), power.tolist(), round(1e308 / 2.0**1023, 6)
        ([[0.556268]], [1025], 1.112537)
        """
        rows = np.asarray(dense(features), dtype=np.float64)
        fraction, power = np.frexp(0.25 * rows - 0.25 * self.origin)  # a quarter does not overflow
        fraction[np.isinf(fraction)] = np.nan
        power = np.where(fraction == 0.0, -(1 << 14), power + 3 - np.frexp(self.unit)[1])
        largest = power.max(axis=1)
        return np.ldexp(fraction, power - largest[:, None]), largest

    def values(self, offsets: Floats) -> Floats:
        """Return offsets converted back to data values."""
        return offsets * self.unit + self.origin

    def shift_to(self, other: Anchor) -> Floats:
        """Return the vector to add to offsets in order to obtain offsets from `other.origin`.

        The vector and the offsets are in the units of `other`.
        """
        return (self.origin - other.origin) / other.unit

    def shift(self, offset: Floats) -> tuple[Anchor, Floats]:
        """Return an anchor whose origin is shifted by about `offset`, and the exact shift."""
        origin = self.origin + offset * self.unit
        return Anchor(origin, self.unit), (origin - self.origin) / self.unit

    def select(self, columns: Places) -> Anchor:
        """Return the anchor restricted to some columns."""
        return Anchor(self.origin[columns], self.unit[columns])

    def same_as(self, other: Anchor) -> bool:
        """Whether both anchors have bitwise equal origins and units."""
        return self is other or (
            np.array_equal(self.origin, other.origin) and np.array_equal(self.unit, other.unit)
        )


class Anchored(Protocol):
    """A sum over rows that was computed from offsets `(x - origin) / unit`."""

    @property
    def anchor(self) -> Anchor: ...

    def at(self, anchor: Anchor) -> Self:
        """Convert the sum to another origin and other units."""
        ...

    def zero_columns(self) -> npt.NDArray[np.bool_]:
        """Return a boolean array (d,): True for columns that are zero in every row.

        The unit of such a column may be changed freely.
        """
        ...


A = TypeVar("A", bound=Anchored)


def align_anchors(
    ours: A, theirs: A, *, empty: bool = False, other_empty: bool = False
) -> tuple[A, A]:
    """Convert two summaries to the same anchor.

    If one summary is empty, the common anchor is the anchor of the other summary.

    Otherwise the common anchor has the origin of the first summary and, for each column, the larger
    of the two units. For a column that is zero in every row of one summary, the unit of the other
    summary is used.
    """
    anchor, other = ours.anchor, theirs.anchor
    if empty:
        anchor = other
    elif not other_empty and not anchor.same_as(other):
        unit = np.maximum(anchor.unit, other.unit)
        unit = np.where(theirs.zero_columns(), anchor.unit, unit)
        anchor = Anchor(anchor.origin, np.where(ours.zero_columns(), other.unit, unit))
    return ours.at(anchor), theirs.at(anchor)


def subtract_row(rows: npt.NDArray[Any], row: Floats, *, out: Floats | None = None) -> Floats:
    """Return `rows - row` as float64, for rows (n, d) and a row (d,).

    If rows are short, several are processed together, since NumPy has a fixed cost for each of its
    inner loops.
    """
    n, d = rows.shape
    group = _INNER // max(d, 1)
    contiguous = rows.flags.c_contiguous and (out is None or out.flags.c_contiguous)
    if group < 2 or n < 8 * group or not contiguous:
        return np.asarray(np.subtract(rows, row, out=out, dtype=np.float64))
    out = np.empty((n, d)) if out is None else out
    whole = n - n % group
    shape = whole // group, group * d
    np.subtract(
        rows[:whole].reshape(shape),
        np.tile(row, group),
        out=out[:whole].reshape(shape),
        dtype=np.float64,
    )
    np.subtract(rows[whole:], row, out=out[whole:], dtype=np.float64)
    return out


def _lower_medians(columns: Floats) -> Floats:
    """Return the lower median of each row of `columns` (d, n); the values are reordered."""
    middle = (columns.shape[1] - 1) // 2
    columns.partition(middle, axis=1)
    return columns[:, middle].copy()


def _unit(extent: Floats) -> Floats:
    if len(extent) and extent.max() <= 2.0**_LARGE and extent.min() >= 2.0**-_LARGE:
        return np.ones(len(extent))
    high, low = extent > 2.0**_LARGE, (extent > 0) & (extent < 2.0**-_LARGE)
    power = np.frexp(np.where(high | low, extent, 1.0))[1] - 1
    power = np.where(high, power - _LARGE, np.where(low, power, 0))
    return np.asarray(np.ldexp(1.0, np.maximum(power, -1074)))


@dataclass(frozen=True, slots=True, eq=False)
class ColumnMagnitudes(Summable):
    """Largest distance from the origin in each column, and the smallest positive weight."""

    max_abs: Floats  # (m,)
    min_weight: float = np.inf  # smallest positive weight of a row
    rows_of_weight_zero: int = 0

    def __add__(self, other: ColumnMagnitudes) -> ColumnMagnitudes:
        return ColumnMagnitudes(
            np.maximum(self.max_abs, other.max_abs),
            min(self.min_weight, other.min_weight),
            self.rows_of_weight_zero + other.rows_of_weight_zero,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ColumnMagnitudesReading:
    """Compute the largest distance from the origin in some columns.

    `columns` holds indices of columns, where the responses follow the features.
    """

    origin: Floats  # (m,) origin of these columns
    columns: npt.NDArray[np.intp]  # (m,)

    @property
    def summary_size(self) -> int:
        return len(self.columns) + 1

    def read(self, block: Block) -> ColumnMagnitudes:
        values = dense(block.features)
        if block.responses is not None:
            values = np.hstack([values, block.responses])
        min_weight, rows_of_weight_zero = 1.0, 0
        if block.weight is not None:
            positive = block.weight > 0
            values = values[positive]
            min_weight = float(block.weight.min(where=positive, initial=np.inf))
            rows_of_weight_zero = len(positive) - int(positive.sum())
        with np.errstate(over="ignore"):
            distance = np.abs(values[:, self.columns] - self.origin)
        largest_float = np.finfo(np.float64).max
        return ColumnMagnitudes(
            np.minimum(distance.max(axis=0, initial=0.0), largest_float),
            min_weight,
            rows_of_weight_zero,
        )
