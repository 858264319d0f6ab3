"""Weight, mean and spread of each column of sparse rows, zeros unread.

    weight = sum w      total = sum w x      squares = sum w (x - centre)^2

The zeros of a column are not stored; together they add their weight times centre^2. Read first
about zero for the means and then about these, nothing is squared far from its mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discriminant.table.schema import Block, Features, Floats


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSums:
    """Sums over rows."""

    centre: Floats  # (d,)
    weight: float
    total: Floats  # (d,)
    squares: Floats  # (d,)

    def __add__(self, other: ColumnSums) -> ColumnSums:
        """Over the rows of both, about the same centre."""
        return ColumnSums(
            self.centre,
            self.weight + other.weight,
            self.total + other.total,
            self.squares + other.squares,
        )

    def __radd__(self, other: object) -> ColumnSums:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    @property
    def mean(self) -> Floats:
        """(d,) mean of each column."""
        return self.total / self.weight

    @property
    def spread(self) -> Floats:
        """(d,) standard deviation of each column, with the weight as denominator."""
        variance = self.squares / self.weight - (self.mean - self.centre) ** 2
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


@dataclass(frozen=True, slots=True, eq=False)
class ColumnReading:
    """Read the sums of d columns."""

    features: tuple[str, ...]  # d names, for messages
    centre: Floats  # (d,)

    @property
    def numbers(self) -> int:
        """Size of the summary."""
        return 2 * len(self.features)

    def read(self, block: Block) -> ColumnSums:
        """Sums over the rows of one block."""
        weight = np.ones(len(block)) if block.weight is None else block.weight
        rows = _each_place_once(block.features)
        each, d = np.repeat(weight, np.diff(rows.indptr)), len(self.centre)
        with np.errstate(invalid="ignore", over="ignore"):  # a cell that is no number is named
            total = np.bincount(rows.indices, each * rows.data, minlength=d)
            apart = rows.data - self.centre[rows.indices]
            squares = np.bincount(rows.indices, each * apart * apart, minlength=d)
        if not np.isfinite(total).all():
            block.blame(self.features)
        stored = np.bincount(rows.indices, each, minlength=d)
        squares += (weight.sum() - stored) * self.centre**2
        sums = np.asarray([total, squares], dtype=np.float64)
        return ColumnSums(self.centre, float(weight.sum()), sums[0], sums[1])


def _each_place_once(rows: Features) -> Features:
    """CSR whose entries at one place have been added up."""
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows
