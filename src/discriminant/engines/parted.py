"""Rows in parts, opened: what their columns become, their moments, and some of them in memory.

Opening reads the rows once. What a column becomes is planned from some rows; if the others hold a
class or level that these did not, all rows are surveyed and the plan is made again. After that all
is known that most models need: `moments` of all rows, and `drawn`, rows spread over the parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from discriminant.engines.summing import PartWork
from discriminant.errors import NeedsMemoryError, SourceChangedError
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.summary import Reading, Summary
from discriminant.table.parts import Plan, Source
from discriminant.table.schema import Schema
from discriminant.table.source import Table

S = TypeVar("S", bound=Summary)


@dataclass(frozen=True, slots=True, eq=False)
class Parted:
    """A table that is not in memory. Made by `discriminant.rows`."""

    schema: Schema
    source: Source
    plan: Plan
    drawn: Table  # some of the rows, spread over the parts
    moments: ClassMoments  # of all rows
    rows_read: int  # those dropped or of no weight too
    lightest: float = 1.0  # the least weight of a row that counts
    said: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Rows that count."""
        return int(self.moments.rows.sum())

    @property
    def width(self) -> int:
        """How many features."""
        return len(self.schema.features)

    @property
    def held(self) -> int:
        """How many numbers a row holds."""
        return self.width

    def fold(self, reading: Reading[S]) -> S:
        """The sum of a reading over all rows."""
        found = self.source.summed(PartWork(self.plan, reading)).checked()
        if found.rows != self.rows_read:
            raise SourceChangedError.of_rows(self.source.name, self.rows_read, found.rows)
        assert found.total is not None
        return found.total

    def __repr__(self) -> str:
        """One line: where it is, and how many rows, features and classes."""
        return (
            f"Rows({self.source.name}: {len(self)} rows, {self.width} features, "
            f"{len(self.schema.labels)} classes)"
        )


AnyTable: TypeAlias = Table | Parted


def in_memory(table: AnyTable, who: str) -> Table:
    """A table whose rows are at hand; refuses one whose rows are not."""
    if isinstance(table, Parted):
        raise NeedsMemoryError.of(who, table.source.name, len(table), len(table.drawn))
    return table
