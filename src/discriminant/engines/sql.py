"""A table, view or query of a database: rows streamed out of it, or sums made inside.

    stream      batches of rows, summed here on all cores: the default, for moving rows on one host
                takes less than summing them in SQL
    pushdown    GROUP BY aggregates inside the database; no row leaves it: `engines.pushdown`

DuckDB gives Arrow batches. PostgreSQL copies rows out as CSV, in which it writes doubles to the
last bit. SQLite gives rows one by one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeVar

from discriminant.engines import pushdown as inside
from discriminant.engines.summing import add_up, available_threads, in_order
from discriminant.errors import DatabaseError, EngineError
from discriminant.table.cells import Frame, from_arrow
from discriminant.table.database import DATABASES, Database
from discriminant.table.parts import Adds, Part, Work

A = TypeVar("A", bound=Adds)
Kind = Literal["duckdb", "postgres", "sqlite"]
_BATCH = 1 << 16  # rows
_PIECE = 1 << 22  # bytes of CSV parsed together
_QUERY = re.compile(r"\s*(\(|select|with|values|from|table)\b", re.IGNORECASE)
_URLS: dict[str, Kind] = {
    "duckdb": "duckdb",
    "sqlite": "sqlite",
    "postgres": "postgres",
    "postgresql": "postgres",
}
_MODULES: dict[str, Kind] = {
    "duckdb": "duckdb",
    "_duckdb": "duckdb",
    "sqlite3": "sqlite",
    "psycopg": "postgres",
}


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """Rows of a database, not yet read. Made by `discriminant.sql`."""

    connection: Any  # or a URL
    text: str  # a query, or the name of a table or view
    pushdown: bool = False

    def __repr__(self) -> str:
        """The text of it; a connection may hold a password."""
        return f"sql({self.text!r})"


def sql(connection: Any, table_or_query: str, *, pushdown: bool = False) -> Query:
    """Name rows of a database: a source for `rows`, `moments` and `study`.

    Parameters
    ----------
    connection
        An open DuckDB, psycopg or sqlite3 connection, or a URL: duckdb:///file.db,
        postgresql://user@host/name, sqlite:///file.db.
    table_or_query
        The name of a table or view, dots between its parts, or a SELECT.
    pushdown
        Sum inside the database, so that no row leaves it: for data that may not, or for a server
        behind a slow link. Only what is made from moments can be fitted then.

    Examples
    --------
    >>> import sqlite3
    >>> sql(sqlite3.connect(":memory:"), "loans")
    sql('loans')
    """
    if not isinstance(table_or_query, str) or not table_or_query.strip():
        raise DatabaseError.no_query(table_or_query)
    return Query(connection, table_or_query, pushdown)


def takes(source: Any) -> bool:
    """Whether it was made by `sql`."""
    return isinstance(source, Query)


def source_of(source: Any) -> SqlSource:
    """The columns of a query, looked up in its database."""
    if not isinstance(source, Query):
        raise EngineError.of_source(type(source).__name__, ["sql"])
    kind = _kind(source.connection)
    spelled = DATABASES[kind]
    rows = source.text.strip().rstrip(";")
    if not _QUERY.match(rows):
        rows = ".".join(spelled.identifier(part) for part in rows.split("."))
        rows = f"SELECT * FROM {rows}"
    made = SqlSource(source.text, (), source.connection, rows, spelled, source.pushdown)
    return made.described()


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows that have come out of a database."""

    rows: Any  # Arrow table
    start: int

    @property
    def name(self) -> str:
        """Where they were."""
        return f"the rows from {self.start} on"

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Themselves."""
        some = self.rows.select(list(columns))
        yield Frame(from_arrow(some), some.num_rows)


@dataclass(frozen=True, slots=True, eq=False)
class SqlSource:
    """The rows of a query."""

    name: str
    names: tuple[str, ...]
    connection: Any
    query: str
    database: Database
    pushdown: bool = False

    @property
    def said(self) -> tuple[str, ...]:
        """Where the sums are made."""
        where = "summed inside it, no row leaves" if self.pushdown else "rows streamed out of it"
        return (f"{self.database.title}, {where}.",)

    def described(self) -> SqlSource:
        """With the names of its columns."""
        with self._open() as connection:
            cursor = connection.cursor()
            cursor.execute(f"SELECT * FROM ({self.query}) AS rows LIMIT 0")
            names = tuple(column[0] for column in cursor.description)
        return SqlSource(
            self.name, names, self.connection, self.query, self.database, self.pushdown
        )

    def sample(self, columns: Sequence[str], rows: int) -> Frame:
        """Rows drawn from all over; with pushdown, means of the classes, for no row is to leave."""
        import pyarrow as pa

        if self.pushdown:
            with self._open() as connection:
                return inside.class_means(self._aggregates(connection), columns)
        found = list(self._batches(self._drawn(columns, rows)))
        table = pa.concat_tables(found, promote_options="permissive") if found else None
        if table is None or not table.num_rows:
            raise DatabaseError.no_rows(self.name)
        return Frame(from_arrow(table.combine_chunks()), table.num_rows)

    def summed(self, work: Work[A]) -> A:
        """Batches summed on all cores while the next ones come; or sums made inside."""
        if self.pushdown:
            with self._open() as connection:
                return inside.summed(self._aggregates(connection), work)
        threads = available_threads()
        with ThreadPoolExecutor(threads) as pool:
            return add_up(in_order(pool, work, self._parts(work.columns), 2 * threads))

    # --- inside -----------------------------------------------------------------------------------

    def _aggregates(self, connection: Any) -> inside.Inside:
        return inside.Inside(self.name, self.query, self.database, connection)

    def _parts(self, columns: Sequence[str]) -> Iterator[Part]:
        start = 0
        some = ", ".join(self.database.identifier(name) for name in columns)
        for batch in self._batches(f"SELECT {some} FROM ({self.query}) AS rows"):
            yield Batch(batch, start)
            start += batch.num_rows

    def _drawn(self, columns: Sequence[str], rows: int) -> str:
        """A query for about so many rows, drawn by the same seed every time where there is one."""
        some = ", ".join(self.database.identifier(name) for name in columns)
        every = f"SELECT {some} FROM ({self.query}) AS rows"
        if self.database.name == "duckdb":
            return f"SELECT * FROM ({every}) USING SAMPLE reservoir({rows} ROWS) REPEATABLE (1)"
        with self._open() as connection:
            cursor = connection.cursor()
            cursor.execute(f"SELECT COUNT(*) FROM ({self.query}) AS rows")
            count = int(cursor.fetchone()[0])
        if count <= rows:
            return every
        if self.database.name == "postgres":
            return f"{every} WHERE RANDOM() < {1.1 * rows / count}"
        return f"{every} WHERE ABS(RANDOM() % 1000000) < {int(1.1e6 * rows / count) + 1}"

    def _batches(self, query: str) -> Iterator[Any]:
        """Arrow tables of a query's rows, some at a time."""
        with self._open() as connection:
            if self.database.name == "duckdb":
                yield from _from_duckdb(connection, query)
            elif self.database.name == "postgres":
                yield from _from_postgres(connection, query)
            else:
                yield from _from_sqlite(connection, query)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        """The user's connection, or one of our own that is closed again; faults are named."""
        given = not isinstance(self.connection, str)
        try:
            found = self.connection if given else _connect(self.connection)
        except Exception as fault:
            raise DatabaseError.not_reached(self.database.title, _short(fault)) from fault
        try:
            yield found
        except _faults(self.database.name) as fault:
            raise DatabaseError.of(self.name, self.database.title, _short(fault)) from fault
        finally:
            if not given:
                found.close()


def _kind(connection: Any) -> Kind:
    if isinstance(connection, str):
        scheme = connection.partition(":")[0].partition("+")[0].lower()
        if scheme not in _URLS:
            raise DatabaseError.unknown_url(scheme, list(_URLS))
        return _URLS[scheme]
    for base in type(connection).__mro__:
        found = _MODULES.get(base.__module__.partition(".")[0])
        if found is not None:
            return found
    raise DatabaseError.unknown_connection(type(connection).__name__)


def _connect(url: str) -> Any:
    kind = _kind(url)
    if kind == "postgres":
        return _library("psycopg").connect(url.replace("postgres://", "postgresql://", 1))
    path = url.partition(":///")[2] or ":memory:"
    if kind == "duckdb":
        return _library("duckdb").connect(path, read_only=path != ":memory:")
    import sqlite3

    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise EngineError.not_installed(name, "sql") from None


def _faults(name: str) -> tuple[type[BaseException], ...]:
    """What the driver raises."""
    if name == "sqlite":
        import sqlite3

        return (sqlite3.Error,)
    library = _library("duckdb" if name == "duckdb" else "psycopg")
    return (library.Error,)


def _short(fault: BaseException) -> str:
    return str(fault).strip().split("\n")[0][:300]


# --- rows out of each database ------------------------------------------------------------------


def _from_duckdb(connection: Any, query: str) -> Iterator[Any]:
    import pyarrow as pa

    found = connection.cursor().sql(query)
    read = getattr(found, "to_arrow_reader", None) or found.fetch_record_batch  # before DuckDB 2
    for batch in read(_BATCH):
        if batch.num_rows:
            yield pa.Table.from_batches([batch])


def _from_postgres(connection: Any, query: str) -> Iterator[Any]:
    """By COPY as CSV: an unquoted empty field is NULL, a quoted one an empty text."""
    from pyarrow import csv

    cursor = connection.cursor()
    cursor.execute(f"SELECT * FROM ({query}) AS rows LIMIT 0")
    types = {column.name: _postgres_type(column.type_code) for column in cursor.description}
    with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT CSV)") as copy:
        reader = csv.open_csv(
            io.BufferedReader(_Copied(copy), _PIECE),
            read_options=csv.ReadOptions(column_names=list(types), block_size=_PIECE),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=["t"],
                false_values=["f"],
            ),
        )
        import pyarrow as pa

        for batch in reader:
            if batch.num_rows:
                yield pa.Table.from_batches([batch])


class _Copied(io.RawIOBase):
    """What COPY sends, as a file."""

    def __init__(self, copy: Any) -> None:
        self._pieces = iter(copy)
        self._rest = b""

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes; how many there were."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = bytes(piece)
        some = min(len(buffer), len(self._rest))
        buffer[:some], self._rest = self._rest[:some], self._rest[some:]
        return some


def _postgres_type(code: int) -> Any:
    """The Arrow type of a column; PostgreSQL numbers its types for good."""
    import pyarrow as pa

    known = {
        16: pa.bool_(),
        20: pa.int64(),
        21: pa.int16(),
        23: pa.int32(),
        700: pa.float32(),
        701: pa.float64(),
        1700: pa.float64(),
        1082: pa.date32(),
        1114: pa.timestamp("us"),
    }
    return known.get(code, pa.dictionary(pa.int32(), pa.string()))


def _from_sqlite(connection: Any, query: str) -> Iterator[Any]:
    """SQLite has no types of columns, only of cells."""
    import pyarrow as pa

    cursor = connection.cursor()
    cursor.execute(query)
    names = [column[0] for column in cursor.description]
    while rows := cursor.fetchmany(_BATCH):
        columns = zip(*rows, strict=True)
        yield pa.table({n: _sqlite_column(n, c) for n, c in zip(names, columns, strict=True)})


def _sqlite_column(name: str, cells: Sequence[Any]) -> Any:
    import pyarrow as pa

    kinds = {type(cell) for cell in cells} - {type(None)}
    if kinds == {int, float}:
        return pa.array(cells, pa.float64())
    if len(kinds) > 1 or bytes in kinds:
        raise DatabaseError.mixed(name, sorted(kind.__name__ for kind in kinds))
    return pa.array(cells)
