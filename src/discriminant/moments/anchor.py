"""Origin and unit of each column: every sum and every rule works with offsets from them.

    offset = (x - origin) / unit

With the origin near the rows, `x - origin` is exact in floating point (Sterbenz), so a mean of 1e8
costs no digit. The unit of a column is 1 unless its range is above 2^200 or below 2^-200 (1e+-60),
where fourth powers would overflow or underflow; then it is a power of two, so that the division is
exact as well. A large range is reduced to 2^200 rather than to one, so that small values in such a
column keep their digits. The unit is estimated from a few rows; where the sums show that other rows
exceed it, the rows are read again in another unit (`rescale_to`), for which `ExtentReading` finds
the largest distance of any row from the origin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.moments.summary_base import Summable
from discriminant.table.blocks import Block, Features, Floats, Places, dense

Powers = npt.NDArray[np.integer[Any]]

_LARGE = 200  # ranges above 2**200 are scaled down to it, those below 2**-200 up to one


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """Origin and unit of d columns."""

    origin: Floats  # (d,)
    unit: Floats  # (d,) powers of two
    plain: bool = field(init=False)  # every unit is one: no division is needed
    idle: bool = field(init=False)  # and every origin is zero: values equal their offsets

    def __post_init__(self) -> None:
        object.__setattr__(self, "plain", bool((self.unit == 1.0).all()))
        object.__setattr__(self, "idle", self.plain and not self.origin.any())

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return why these fields cannot form an anchor, or None."""
        origin, unit = parts["origin"], parts["unit"]
        if origin.ndim != 1 or origin.shape != unit.shape:
            return f"origin {origin.shape} and unit {unit.shape} must be vectors of one length"
        if not (np.isfinite(origin).all() and np.isfinite(unit).all() and (unit > 0).all()):
            return "origin and unit must be finite, and units positive"
        return None

    @classmethod
    def from_sample(cls, sample: npt.NDArray[Any], *, at_zero: bool = False) -> Anchor:
        """Return an anchor near some rows: their medians, or zero to keep sparse rows sparse."""
        sample = sample.astype(np.float64)
        sample[~np.isfinite(sample)] = 0.0
        origin = np.zeros(sample.shape[1]) if at_zero else _lower_median(sample)
        extent = np.abs(sample - origin).max(axis=0)
        extent = np.where(extent > 0, extent, np.abs(origin))
        return cls(origin, _unit(extent))

    def rescale_to(self, extent: Floats) -> Anchor:
        """Return the same origin with units for offsets of this size (0: the unit stays)."""
        return Anchor(self.origin, np.where(extent > 0, _unit(extent), self.unit))

    @classmethod
    def zero(cls, width: int) -> Anchor:
        """Return the anchor that changes nothing."""
        return cls(np.zeros(width), np.ones(width))

    def offsets(self, features: Features, out: Floats | None = None) -> Floats:
        """Return rows as float64 offsets."""
        offsets = np.subtract(dense(features), self.origin, out=out, dtype=np.float64)
        if not self.plain:
            offsets /= self.unit
        return np.asarray(offsets)

    def scaled_offsets(self, features: Features) -> tuple[Floats, Powers]:
        """Return offsets of rows that overflow: (n, d) of at most one, times 2^power, power (n,).

        Infinite cells become NaN.

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
        """Return the shift of offsets, in units of `other`, that moves them to its origin."""
        return (self.origin - other.origin) / other.unit

    def shift(self, offset: Floats) -> tuple[Anchor, Floats]:
        """Return the anchor moved by about `offset`, and the exact offset it moved by."""
        origin = self.origin + offset * self.unit
        return Anchor(origin, self.unit), (origin - self.origin) / self.unit

    def common_units(
        self, other: Anchor, *, zero: npt.NDArray[np.bool_], zero_too: npt.NDArray[np.bool_]
    ) -> Anchor:
        """Return this origin with units for both: the larger ones; a zero column takes any unit."""
        unit = np.maximum(self.unit, other.unit)
        unit = np.where(zero, other.unit, np.where(zero_too, self.unit, unit))
        return Anchor(self.origin, unit)

    def select(self, columns: Places) -> Anchor:
        """Return the anchor of some columns."""
        return Anchor(self.origin[columns], self.unit[columns])

    def same_as(self, other: Anchor) -> bool:
        """Whether both have bitwise equal origins and units."""
        return np.array_equal(self.origin, other.origin) and np.array_equal(self.unit, other.unit)


def _lower_median(sample: Floats) -> Floats:
    middle = (len(sample) - 1) // 2
    return np.asarray(np.partition(sample, middle, axis=0)[middle])


def _unit(extent: Floats) -> Floats:
    high, low = extent > 2.0**_LARGE, (extent > 0) & (extent < 2.0**-_LARGE)
    power = np.frexp(np.where(high | low, extent, 1.0))[1] - 1
    power = np.where(high, power - _LARGE, np.where(low, power, 0))
    return np.asarray(np.ldexp(1.0, np.maximum(power, -1074)))


@dataclass(frozen=True, slots=True, eq=False)
class Extent(Summable):
    """Largest distance from the origin in each column, and the smallest positive weight."""

    max_abs: Floats  # (m,)
    min_weight: float = np.inf  # smallest positive weight of a row

    def __add__(self, other: Extent) -> Extent:
        return Extent(
            np.maximum(self.max_abs, other.max_abs), min(self.min_weight, other.min_weight)
        )


@dataclass(frozen=True, slots=True, eq=False)
class ExtentReading:
    """Find the extent of some columns; responses are numbered after the features."""

    origin: Floats  # (m,) of these columns
    columns: npt.NDArray[np.intp]  # (m,)

    @property
    def summary_size(self) -> int:
        return len(self.columns) + 1

    def read(self, block: Block) -> Extent:
        values = dense(block.features)
        if block.responses is not None:
            values = np.hstack([values, block.responses])
        min_weight = 1.0
        if block.weight is not None:
            positive = block.weight > 0
            values, min_weight = (
                values[positive],
                float(block.weight.min(where=positive, initial=np.inf)),
            )
        with np.errstate(over="ignore"):
            distance = np.abs(values[:, self.columns] - self.origin)
        largest_float = np.finfo(np.float64).max
        return Extent(np.minimum(distance.max(axis=0, initial=0.0), largest_float), min_weight)
