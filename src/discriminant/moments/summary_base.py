"""Summaries that add over rows, and the readings that compute them.

A Reading says what to sum over a block of rows; a Summary is the sum. Summaries add:

    read(rows) == read(some of the rows) + read(the other rows)

up to rounding, in any grouping. Engines rely on nothing else, so every engine can sum every
reading. `tests/laws/test_summaries.py` checks these laws for every summary.

`FoldSumsReading` wraps any reading and sums every cross-validation fold separately, in one pass;
blocks carry the fold of each row (`Block.fold`):

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
    """What to sum over rows."""

    @property
    def summary_size(self) -> int:
        """Number of values in the summary, from which an engine chooses the block size."""
        ...

    def read(self, block: Block) -> S_co:
        """Sum over the rows of one block, which is not modified."""
        ...


S = TypeVar("S", bound=Summary)


class Summable:
    """Base class of summaries, so that `sum(summaries)` works: it starts from 0."""

    __slots__ = ()

    def __radd__(self, other: object) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class FoldSums(Summable, Generic[S]):
    """Summaries of all folds."""

    parts: tuple[S | None, ...]  # F of them; None for a fold without rows

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


def split_by_fold(block: Block) -> Iterator[tuple[int, Block]]:
    """Yield each fold that a block has rows of, with a block of these rows."""
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
