"""Where numbers are counted from, and in what unit: the origin and unit of every sum and rule.

    offset = (x - origin) / unit

With the origin near the rows, `x - origin` is exact in floating point (Sterbenz), so a mean of 1e8
costs no digit. The unit of a column is 1 unless its spread is beyond 1e+-100, where squares would
overflow or vanish; then it is a power of two, so that dividing by it is exact as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.table.schema import Features, Floats, dense

_WIDE = 1e100


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """Origin and unit of d columns."""

    origin: Floats  # (d,)
    unit: Floats  # (d,) powers of two
    plain: bool = field(init=False)  # every unit is one, so that no division is needed

    def __post_init__(self) -> None:
        object.__setattr__(self, "plain", bool((self.unit == 1.0).all()))

    @classmethod
    def of(cls, sample: npt.NDArray[Any], *, at_zero: bool = False) -> Anchor:
        """Anchor near some rows: their medians, or zero (to keep sparse rows sparse)."""
        sample = sample.astype(np.float64)
        sample[~np.isfinite(sample)] = 0.0
        origin = np.zeros(sample.shape[1]) if at_zero else _lower_median(sample)
        spread = np.abs(sample - origin).max(axis=0)
        spread = np.where(spread > 0, spread, np.abs(origin))
        return cls(origin, _unit(spread))

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

    def values(self, offsets: Floats) -> Floats:
        """Offsets back in the user's numbers."""
        return offsets * self.unit + self.origin

    def shift_to(self, other: Anchor) -> Floats:
        """What to add to offsets (already in the other's unit) to count from the other's origin."""
        return (self.origin - other.origin) / other.unit

    def moved(self, offset: Floats) -> tuple[Anchor, Floats]:
        """The anchor moved by about `offset`, and by how much it really moved."""
        origin = self.origin + offset * self.unit
        return Anchor(origin, self.unit), (origin - self.origin) / self.unit

    def with_unit_for(
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
    extreme = (spread > 0) & ((spread > _WIDE) | (spread < 1 / _WIDE))
    power = np.frexp(np.where(extreme, spread, 1.0))[1] - 1
    return np.where(extreme, np.ldexp(1.0, np.clip(power, -1074, 1023)), 1.0)
