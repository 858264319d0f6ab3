"""Rows out of each database, some at a time, as they come over the wire.

    DuckDB       Arrow batches
    PostgreSQL   COPY as CSV, in which it writes doubles to the last bit; the server sends each row
                 as a message, so that the stream is cut between rows, and parsed by many threads
    SQLite       tuples; it has no types of columns, only of cells

Only a few batches are in memory at a time.
"""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from discriminant.engines.connecting import cursor_of
from discriminant.errors import DatabaseError
from discriminant.table.cells import Cells, Frame, Kind, from_arrow
from discriminant.table.database import Database

_BATCH = 1 << 16  # rows
_PIECE = 1 << 22  # bytes of CSV parsed together
_CELLS = 1 << 20  # of SQLite, which are objects
_DAY = 8.64e10  # microseconds


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows that have come out of a database."""

    rows: Any  # Arrow table
    start: int
    count: int

    @property
    def name(self) -> str:
        """Where they were."""
        return f"the rows from {self.start} on"

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Themselves."""
        some = self.rows.select(list(columns))
        yield Frame(from_arrow(some, coded=columns), some.num_rows)

    def table(self) -> Any:
        """Themselves, in Arrow."""
        return self.rows


@dataclass(frozen=True, slots=True, eq=False)
class Copied:
    """Rows as PostgreSQL writes them."""

    text: bytes
    kinds: Mapping[str, Kind]
    whole: frozenset[str]  # columns of integers
    start: int
    count: int

    @property
    def name(self) -> str:
        """Where they were."""
        return f"the rows from {self.start} on"

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Themselves, parsed."""
        table = self._parsed().select(list(columns))
        found = from_arrow(table, coded=columns)
        cells = tuple(_dated(c) if self.kinds[c.name] == "date" else c for c in found)
        yield Frame(cells, self.count)

    def table(self) -> Any:
        """Themselves, in Arrow."""
        import pyarrow as pa

        found = self._parsed()
        for j, (name, kind) in enumerate(self.kinds.items()):
            if kind == "date":
                instants = found.column(j).cast(pa.int64()).cast(pa.timestamp("us"))
                found = found.set_column(j, name, instants)
        return found

    def _parsed(self) -> Any:
        """An unquoted empty field is NULL, a quoted one an empty text."""
        import pyarrow as pa
        from pyarrow import csv

        text = pa.dictionary(pa.int32(), pa.string())
        known = {"number": pa.float64(), "date": pa.float64(), "boolean": pa.bool_(), "text": text}
        types = {
            name: pa.int64() if name in self.whole else known[kind]
            for name, kind in self.kinds.items()
        }
        return csv.read_csv(
            io.BytesIO(self.text),
            read_options=csv.ReadOptions(
                column_names=list(types), block_size=2 * len(self.text) + 1, use_threads=False
            ),
            parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=["t"],
                false_values=["f"],
            ),
        )


Unloaded: TypeAlias = Generator[Batch | Copied, None, None]


def _dated(cells: Cells) -> Cells:
    """Microseconds as days."""
    return replace(cells, kind="date", values=cells.values / _DAY)


def unloaded(
    connection: Any,
    database: Database,
    query: str,
    *,
    kinds: Mapping[str, Kind],
    whole: frozenset[str],
) -> Unloaded:
    """The rows of a query that selects these columns, in their order; to be closed if not all are
    taken, for until then the connection is busy with them."""
    if database.name == "duckdb":
        return _from_duckdb(connection, query)
    if database.name == "postgres":
        return _from_postgres(connection, query, kinds, whole)
    return _from_sqlite(connection, query, kinds)


def spelled(database: Database, name: str, kind: Kind | None) -> str:
    """How a column is asked for, so that it comes out as what it is."""
    term = database.identifier(name)
    if database.name == "duckdb" and kind == "text":
        return f"CAST({term} AS VARCHAR) AS {term}"
    if database.name != "postgres":
        return term
    made = {
        "text": f"CAST({term} AS TEXT)",
        "date": f"CAST(EXTRACT(EPOCH FROM {term}) * 1000000 AS DOUBLE PRECISION)",
    }
    return f"{made.get(kind or '', term)} AS {term}"


def _from_duckdb(connection: Any, query: str) -> Unloaded:
    import pyarrow as pa

    found = connection.sql(query)
    read = getattr(found, "to_arrow_reader", None) or found.fetch_record_batch  # before DuckDB 2
    start = 0
    with read(_BATCH) as batches:
        for batch in batches:  # of at least 2,048 rows if there are as many
            for lo in range(0, batch.num_rows, _BATCH):
                some = batch.slice(lo, _BATCH)
                yield Batch(pa.Table.from_batches([some]), start + lo, some.num_rows)
            start += batch.num_rows


def _from_postgres(
    connection: Any, query: str, kinds: Mapping[str, Kind], whole: frozenset[str]
) -> Unloaded:
    waiting: list[bytes] = []
    size = start = 0
    with connection.cursor().copy(f"COPY ({query}) TO STDOUT (FORMAT CSV)") as copy:
        for row in copy:
            waiting.append(bytes(row))
            size += len(row)
            if size >= _PIECE or len(waiting) >= _BATCH:
                yield Copied(b"".join(waiting), kinds, whole, start, len(waiting))
                start, waiting, size = start + len(waiting), [], 0
    if waiting:
        yield Copied(b"".join(waiting), kinds, whole, start, len(waiting))


def _from_sqlite(connection: Any, query: str, kinds: Mapping[str, Kind]) -> Unloaded:
    import pyarrow as pa

    from discriminant.table.database import DATABASES

    cursor = cursor_of(connection, DATABASES["sqlite"])
    cursor.execute(query)
    names = [column[0] for column in cursor.description]
    start, most = 0, min(_BATCH, max(_CELLS // len(names), 64))
    while rows := cursor.fetchmany(most):
        columns = zip(*rows, strict=True)
        made = {n: _sqlite_column(n, c, kinds) for n, c in zip(names, columns, strict=True)}
        yield Batch(pa.table(made), start, len(rows))
        start += len(rows)


def _sqlite_column(name: str, cells: Sequence[Any], known: Mapping[str, Kind]) -> Any:
    import pyarrow as pa

    if known.get(name) == "date":  # which are texts here
        return pa.array(cells, pa.string()).cast(pa.timestamp("us"))
    kinds = {type(cell) for cell in cells} - {type(None)}
    if kinds == {int, float}:
        return pa.array(cells, pa.float64())
    if len(kinds) > 1 or bytes in kinds:
        raise DatabaseError.mixed(name, sorted(kind.__name__ for kind in kinds))
    return pa.array(cells)
