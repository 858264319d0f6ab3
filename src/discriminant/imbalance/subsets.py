"""Moments of several subsets of the rows, overlapping or not, from one reading of the table.

A block is looked at once, and of each subset the rows that lie in it are summed. Sums of parts
add, subset by subset. So T under-samples cost one pass over the rows, wherever these are, and
what all of them share (the rare classes) is one more subset, to be added to each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.reading import MomentsReading
from discriminant.table.schema import Block, Places, is_sparse


@dataclass(frozen=True, slots=True, eq=False)
class SubsetMoments:
    """Moments of T subsets."""

    parts: tuple[ClassMoments, ...]  # T

    def __add__(self, other: SubsetMoments) -> SubsetMoments:
        """Of the rows of both, subset by subset."""
        pairs = zip(self.parts, other.parts, strict=True)
        return SubsetMoments(tuple(ours + theirs for ours, theirs in pairs))

    def __radd__(self, other: object) -> SubsetMoments:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class SubsetsReading:
    """Read the moments of T subsets of a table, given by the numbers of their rows."""

    moments: MomentsReading  # what is read of each
    subsets: tuple[Places, ...]  # T, each sorted and without repeats

    @property
    def numbers(self) -> int:
        """Size of the summary."""
        return len(self.subsets) * self.moments.numbers

    def read(self, block: Block) -> SubsetMoments:
        """Moments of the rows of one block that lie in each subset."""
        self._look(block)
        return SubsetMoments(
            tuple(self.moments.read(_taken(block, subset)) for subset in self.subsets)
        )

    def _look(self, block: Block) -> None:
        """Rows that no subset has are still to be numbers."""
        cells = block.features.data if is_sparse(block.features) else block.features
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(np.sum(cells, dtype=np.float64)):
                block.blame(self.moments.features)


def _taken(block: Block, subset: Places) -> Block:
    ends = np.searchsorted(subset, [block.start, block.start + len(block)])
    rows = subset[slice(*ends)] - block.start
    return Block(
        block.features[rows],
        block.codes[rows],
        None if block.weight is None else block.weight[rows],
        start=block.start,
    )
