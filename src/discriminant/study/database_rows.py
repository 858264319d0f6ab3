"""Rows of a database that are answered one after the other, as those of files are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from discriminant.engines.sql import SqlSource, source_of
from discriminant.errors import DatabaseError
from discriminant.table.cells import Frame, from_arrow
from discriminant.table.filing import File


@dataclass(frozen=True, slots=True, eq=False)
class DatabaseRows:
    """The rows of a table, a view or a query."""

    source: SqlSource
    files: tuple[File, ...] = ()
    counted: bool = False  # to count them may take as long as to read them

    @classmethod
    def of(cls, source: Any) -> DatabaseRows:
        """What `discriminant.sql` returned, or the URL of a table."""
        found = source_of(source)
        if found.pushdown:
            raise DatabaseError.must_stay(found.name, "To answer each row")
        return cls(found)

    @property
    def name(self) -> str:
        """Of the table."""
        return self.source.name

    @property
    def names(self) -> tuple[str, ...]:
        """Of all columns."""
        return self.source.names

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[Any, Frame]]:
        """Rows as they come, as Arrow has them and as cells."""
        place = 0
        with closing(self.source.streamed(columns)) as tables:
            for table in tables:
                yield table, Frame(from_arrow(table), table.num_rows, start=place)
                place += table.num_rows
