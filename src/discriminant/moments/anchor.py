"""Where numbers are counted from, and in what unit: the origin and unit of every sum and rule.

    offset = (x - origin) / unit

With the origin near the rows, `x - origin` is exact in floating point (Sterbenz), so a mean of 1e8
costs no digit. The unit of a column is 1 unless its spread is beyond 2^+-200 (1e+-60), where
fourth powers would overflow or vanish; then it is a power of two, so that dividing by it is exact
as well. A large spread is brought down to 2^200 and not to one, so that what is small in such a
column keeps its digits. The unit comes from a few rows; where the sums show that the others go
beyond them, the rows are read again: `fit_to`.

How far from an origin rows of any weight go, column by column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.table.blocks import Block, Features, Floats, dense

Powers = npt.NDArray[np.integer[Any]]

_FAR = 200  # a spread of more than 2**200 is brought down to that, less than 2**-200 up to one


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """Origin and unit of d columns."""

    origin: Floats  # (d,)
    unit: Floats  # (d,) powers of two
    plain: bool = field(init=False)  # every unit is one, so that no division is needed
    idle: bool = field(init=False)  # and the origin is zero: values are their own offsets

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
        """Anchor near some rows: their medians, or zero (to keep sparse rows sparse)."""
        sample = sample.astype(np.float64)
        sample[~np.isfinite(sample)] = 0.0
        origin = np.zeros(sample.shape[1]) if at_zero else _lower_median(sample)
        spread = np.abs(sample - origin).max(axis=0)
        spread = np.where(spread > 0, spread, np.abs(origin))
        return cls(origin, _unit(spread))

    def rescale_to(self, spread: Floats) -> Anchor:
        """The same origin in units for values this far from it; where that is 0 the unit stays."""
        return Anchor(self.origin, np.where(spread > 0, _unit(spread), self.unit))

    @classmethod
    def zero(cls, width: int) -> Anchor:
        """The anchor that changes nothing."""
        return cls(np.zeros(width), np.ones(width))

    def offsets(self, features: Features, out: Floats | None = None) -> Floats:
        """Rows as float64 offsets."""
        offsets = np.subtract(dense(features), self.origin, out=out, dtype=np.float64)
        if not self.plain:
            offsets /= self.unit
        return np.asarray(offsets)

    def scaled_offsets(self, features: Features) -> tuple[Floats, Powers]:
        """Offsets of rows so far away that they overflow: (n, d) at most one, times 2^power (n,).

        Infinite cells have NaN.

        >>> offsets, power = Anchor(np.array([-1e308]), np.ones(1)).scaled_offsets([[1e308]])
        >>> offsets.round(6).tolist(), power.tolist(), round(1e308 / 2.0**1023, 6)
        ([[0.556268]], [1025], 1.112537)
        """
        rows = np.asarray(dense(features), dtype=np.float64)
        fraction, power = np.frexp(0.25 * rows - 0.25 * self.origin)  # a quarter does not overflow
        fraction[np.isinf(fraction)] = np.nan
        power = np.where(fraction == 0.0, -(1 << 14), power + 3 - np.frexp(self.unit)[1])
        most = power.max(axis=1)
        return np.ldexp(fraction, power - most[:, None]), most

    def values(self, offsets: Floats) -> Floats:
        """Offsets back in the user's numbers."""
        return offsets * self.unit + self.origin

    def shift_to(self, other: Anchor) -> Floats:
        """What to add to offsets (already in the other's unit) to count from the other's origin."""
        return (self.origin - other.origin) / other.unit

    def shift(self, offset: Floats) -> tuple[Anchor, Floats]:
        """The anchor moved by about `offset`, and by how much it really moved."""
        origin = self.origin + offset * self.unit
        return Anchor(origin, self.unit), (origin - self.origin) / self.unit

    def common_units(
        self, other: Anchor, *, zero: npt.NDArray[np.bool_], zero_too: npt.NDArray[np.bool_]
    ) -> Anchor:
        """This origin in units that suit both: the larger ones, but zeros suit any."""
        unit = np.maximum(self.unit, other.unit)
        unit = np.where(zero, other.unit, np.where(zero_too, self.unit, unit))
        return Anchor(self.origin, unit)

    def select(self, columns: npt.NDArray[np.intp]) -> Anchor:
        """The anchor of some columns."""
        return Anchor(self.origin[columns], self.unit[columns])

    def same_as(self, other: Anchor) -> bool:
        """Whether both count alike, to the last bit."""
        return np.array_equal(self.origin, other.origin) and np.array_equal(self.unit, other.unit)


def _lower_median(sample: Floats) -> Floats:
    middle = (len(sample) - 1) // 2
    return np.asarray(np.partition(sample, middle, axis=0)[middle])


def _unit(spread: Floats) -> Floats:
    high, low = spread > 2.0**_FAR, (spread > 0) & (spread < 2.0**-_FAR)
    power = np.frexp(np.where(high | low, spread, 1.0))[1] - 1
    power = np.where(high, power - _FAR, np.where(low, power, 0))
    return np.asarray(np.ldexp(1.0, np.maximum(power, -1074)))


@dataclass(frozen=True, slots=True, eq=False)
class Extent:
    """The largest distance in each column; of two sets of rows the larger."""

    max_abs: Floats  # (m,)
    min_weight: float = np.inf  # the least weight of a row that counts

    def __add__(self, other: Extent) -> Extent:
        """Of the rows of both."""
        return Extent(
            np.maximum(self.max_abs, other.max_abs), min(self.min_weight, other.min_weight)
        )


@dataclass(frozen=True, slots=True, eq=False)
class ExtentReading:
    """Look at some columns, responses after the features."""

    origin: Floats  # (m,) of the columns looked at
    columns: npt.NDArray[np.intp]  # (m,)

    @property
    def summary_size(self) -> int:
        """Size of the summary."""
        return len(self.columns) + 1

    def read(self, block: Block) -> Extent:
        """The reach of a block."""
        values = dense(block.features)
        if block.responses is not None:
            values = np.hstack([values, block.responses])
        lightest = 1.0
        if block.weight is not None:
            some = block.weight > 0
            values, lightest = values[some], float(block.weight.min(where=some, initial=np.inf))
        with np.errstate(over="ignore"):
            apart = np.abs(values[:, self.columns] - self.origin)
        most = np.finfo(np.float64).max
        return Extent(np.minimum(apart.max(axis=0, initial=0.0), most), lightest)
