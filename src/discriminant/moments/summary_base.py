"""Base classes of summaries, which are sums over rows, and of the readings that compute them.

A `Reading` defines what is summed over a block of rows, and a `Summary` is the sum. Summaries of
disjoint sets of rows can be added:

    read(rows) == read(some of the rows) + read(the other rows)

up to rounding, however the rows are grouped. Engines rely only on this property, so every engine
can compute every summary. `tests/laws/test_summaries.py` checks these laws for every summary.

`FoldSumsReading` wraps any reading and sums every cross-validation fold separately, in one pass.
`Block.fold` holds the fold of each row:

    sums_f = sum of a reading over the rows of fold f          total = sums_0 + ... + sums_{F-1}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from discriminant.errors import MomentsMismatchError
from discriminant.table.blocks import Block


class Summary(Protocol):
    """A sum over rows."""

    def __add__(self, other: Self) -> Self:
        """Return the sum over both sets of rows."""
        ...


S_co = TypeVar("S_co", bound=Summary, covariant=True)


class Reading(Protocol[S_co]):
    """Definition of what is summed over the rows of a table."""

    @property
    def summary_size(self) -> int:
        """Number of values in the summary, from which an engine chooses the block size."""
        ...

    def read(self, block: Block) -> S_co:
        """Return the summary of the rows of one block. The block must not be modified."""
        ...


S = TypeVar("S", bound=Summary)


class Summable:
    """Base class of summaries. `0 + summary` is defined, so that `sum(summaries)` works."""

    __slots__ = ()

    def __radd__(self, other: object) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class FoldSums(Summable, Generic[S]):
    """Summaries of all folds."""

    parts: tuple[S | None, ...]  # one summary for each of F folds; None for a fold without rows

    def __add__(self, other: FoldSums[S]) -> FoldSums[S]:
        if len(self.parts) != len(other.parts):
            raise MomentsMismatchError.of_shape("folds", (len(other.parts),), (len(self.parts),))
        both = zip(self.parts, other.parts, strict=True)
        return FoldSums(tuple(_add(ours, theirs) for ours, theirs in both))


@dataclass(frozen=True, slots=True, eq=False)
class FoldSumsReading(Generic[S]):
    """Apply a reading to each fold separately."""

    reading: Reading[S]
    folds: int

    @property
    def summary_size(self) -> int:
        return self.folds * self.reading.summary_size

    def read(self, block: Block) -> FoldSums[S]:
        sums: list[S | None] = [None] * self.folds
        for f, part in split_by_fold(block):
            sums[f] = self.reading.read(part)
        return FoldSums(tuple(sums))


def split_rows(block: Block, size: int) -> Iterator[Block]:
    """Yield a block in tiles of `size` rows; the last one may be shorter."""
    for lo in range(0, len(block), size):
        yield block.rows(lo, min(lo + size, len(block)))


def split_by_fold(block: Block) -> Iterator[tuple[int, Block]]:
    """Split a block by fold: yield each fold that occurs, with a block of its rows."""
    assert block.fold is not None
    order = np.argsort(block.fold, kind="stable")
    count = np.bincount(block.fold)
    ends = np.cumsum(count).tolist()
    sorted_block = block.take(order)
    for f in np.flatnonzero(count).tolist():
        yield f, sorted_block.rows(ends[f] - int(count[f]), ends[f])


def _add(ours: S | None, theirs: S | None) -> S | None:
    if ours is None or theirs is None:
        return theirs if ours is None else ours
    return ours + theirs
