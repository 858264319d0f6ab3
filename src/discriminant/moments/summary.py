"""The two contracts of everything that is summed over rows.

A Reading says what to sum over a block of rows; a Summary is the sum. Summaries add:

    read(rows) == read(some of the rows) + read(the others)

up to rounding, in any grouping. Engines know nothing else, so every engine can sum every reading.
`tests/laws/test_summaries.py` holds every summary to its laws.
"""

from __future__ import annotations

from typing import Protocol, Self, TypeVar

from discriminant.table.schema import Block


class Summary(Protocol):
    """A sum over rows."""

    def __add__(self, other: Self) -> Self:
        """The sum over both sets of rows."""
        ...


S = TypeVar("S", bound=Summary, covariant=True)


class Reading(Protocol[S]):
    """What to sum over rows."""

    @property
    def numbers(self) -> int:
        """How many numbers its summary holds, so that an engine can choose the size of a block."""
        ...

    def read(self, block: Block) -> S:
        """Sum over the rows of one block; the block is left as it was."""
        ...
