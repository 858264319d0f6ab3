"""The two contracts of everything that is summed over rows.

A Reading says what to sum over a block of rows; a Summary is the sum. Summaries add:

    read(rows) == read(some of the rows) + read(the others)

up to rounding, in any grouping. Engines know nothing else, so every engine can sum every reading.
`tests/laws/test_summaries.py` holds every summary to its laws.

Sums over the rows of each fold, in one reading of all of them.

    found_f = sum of a reading over the rows of fold f          whole = found_0 + ... + found_{F-1}

Blocks come with the fold of each row (`Block.fold`). Any reading can be read by fold.
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
        """The sum over both sets of rows."""
        ...


S_co = TypeVar("S_co", bound=Summary, covariant=True)


class Reading(Protocol[S_co]):
    """What to sum over rows."""

    @property
    def summary_size(self) -> int:
        """How many numbers its summary holds, so that an engine can choose the size of a block."""
        ...

    def read(self, block: Block) -> S_co:
        """Sum over the rows of one block; the block is left as it was."""
        ...


S = TypeVar("S", bound=Summary)


@dataclass(frozen=True, slots=True, eq=False)
class FoldSums(Generic[S]):
    """A summary of each fold."""

    parts: tuple[S | None, ...]  # F; None of no rows

    def __add__(self, other: FoldSums[S]) -> FoldSums[S]:
        """Over the rows of both."""
        if len(self.parts) != len(other.parts):
            raise MomentsMismatchError.of_shape("folds", (len(other.parts),), (len(self.parts),))
        both = zip(self.parts, other.parts, strict=True)
        return FoldSums(tuple(_sum(one, two) for one, two in both))

    def __radd__(self, other: object) -> FoldSums[S]:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class FoldSumsReading(Generic[S]):
    """Read each fold on its own."""

    reading: Reading[S]
    folds: int

    @property
    def summary_size(self) -> int:
        """Size of the summary."""
        return self.folds * self.reading.summary_size

    def read(self, block: Block) -> FoldSums[S]:
        """The folds of one block."""
        found: list[S | None] = [None] * self.folds
        for f, part in split_by_fold(block):
            found[f] = self.reading.read(part)
        return FoldSums(tuple(found))


def split_by_fold(block: Block) -> Iterator[tuple[int, Block]]:
    """The rows of each fold that a block has rows of, side by side."""
    assert block.fold is not None
    order = np.argsort(block.fold, kind="stable")
    count = np.bincount(block.fold)
    ends = np.cumsum(count).tolist()
    together = block.take(order)
    for f in np.flatnonzero(count).tolist():
        yield f, together.rows(ends[f] - int(count[f]), ends[f])


def _sum(one: S | None, two: S | None) -> S | None:
    if one is None or two is None:
        return two if one is None else one
    return one + two
