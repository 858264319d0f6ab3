"""Weight, sum and sum of squares of each column: how far sparse columns spread, zeros unread.

They are taken about zero, where the rows of a sparse table are. What is asked of them is a scale,
not digits: see `moments.class_moments` for these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discriminant.table.schema import Block, Floats, is_sparse


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSums:
    """Sums over rows."""

    weight: float
    total: Floats  # (d,)
    squares: Floats  # (d,)

    def __add__(self, other: ColumnSums) -> ColumnSums:
        return ColumnSums(
            self.weight + other.weight, self.total + other.total, self.squares + other.squares
        )

    @property
    def mean(self) -> Floats:
        """(d,) mean of each column."""
        return self.total / self.weight

    @property
    def spread(self) -> Floats:
        """(d,) standard deviation of each column, with the weight as denominator."""
        return np.asarray(np.sqrt(np.maximum(self.squares / self.weight - self.mean**2, 0.0)))


@dataclass(frozen=True, slots=True, eq=False)
class ColumnReading:
    """Read the sums of d columns."""

    features: tuple[str, ...]  # d names, for messages

    @property
    def numbers(self) -> int:
        """Size of the summary."""
        return 2 * len(self.features)

    def read(self, block: Block) -> ColumnSums:
        """Sums over the rows of one block."""
        weight = np.ones(len(block)) if block.weight is None else block.weight
        rows = block.features
        squares = rows.multiply(rows) if is_sparse(rows) else np.square(rows, dtype=np.float64)
        with np.errstate(invalid="ignore", over="ignore"):  # a cell that is no number is named
            total = np.asarray(rows.T @ weight, dtype=np.float64)
        if not np.isfinite(total).all():
            block.blame(self.features)
        return ColumnSums(float(weight.sum()), total, np.asarray(squares.T @ weight, np.float64))
