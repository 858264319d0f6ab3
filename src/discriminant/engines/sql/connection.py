"""Connections to databases: read-only transactions, errors of drivers, and streams of rows.

Data are only read, from a single snapshot if the database supports it:

    PostgreSQL   a transaction of our own, REPEATABLE READ and READ ONLY; within a transaction of
                 the user, a savepoint. Both are rolled back, which also restores the settings of
                 the session that we change (no JIT, doubles with all digits, rows in stored order)
    DuckDB       a transaction of our own that is rolled back, unless the user has started one
    SQLite       as for DuckDB; writing is disabled during the transaction

A transaction that the user has started is never ended. A connection opened from a URL is closed
again.

Errors of a driver are translated to a `DatabaseError`, whose message depends on the kind of error:

    no such table      lists the tables of the database, and suggests the closest name
    invalid query      states what is wrong
    damaged file       or a file of another kind
    all others         the database stopped; the query may succeed later

PostgreSQL has error codes, DuckDB has exception classes, SQLite has only messages.

Rows are streamed in batches; only a few batches are in memory at a time:

    DuckDB       Arrow batches
    PostgreSQL   COPY as CSV, with all digits of doubles; the server sends each row as a message, so
                 that the stream can be split between rows and parsed by many threads
    SQLite       tuples, since each cell has its own type
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import quote

from discriminant.errors import DatabaseError, EngineError
from discriminant.redaction import parse_address, redact, redact_exception, register, shown_address
from discriminant.table.column_cells import CellKind, Frame, columns_from_arrow
from discriminant.table.files.pyarrow_readers import arrow_input
from discriminant.table.labels import closest_name
from discriminant.table.sql_dialect import SqlDialect

_ABSENT = re.compile(
    r"no such table: (?P<sqlite>.+)"
    r"|Table with name (?P<duckdb>.+?) does not exist"
    r'|relation "(?P<postgres>.+)" does not exist',
    re.DOTALL,
)
_INVALID = re.compile(  # messages of SQLite for invalid queries
    "syntax error|no such (column|function)|unrecognized token|incomplete input|ambiguous column"
)
_DAMAGED = re.compile("malformed|not a database|corrupt|[Dd]eserializ")
_INVALID_CLASSES = {"ParserException", "BinderException", "CatalogException"}  # in DuckDB
_FORBIDDEN = "42501"  # code of PostgreSQL; codes that start with 42 mean invalid queries
_TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
    "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    "duckdb": "SELECT table_name FROM information_schema.tables ORDER BY table_name",
    "postgres": "SELECT table_name FROM information_schema.tables WHERE table_schema NOT IN "
    "('pg_catalog', 'information_schema') ORDER BY table_name",
}
_MAGIC = (("sqlite", 0, b"SQLite format 3\0"), ("duckdb", 8, b"DUCK"))


def translate_error(
    error: BaseException, reason: str, *, name: str, database: SqlDialect
) -> DatabaseError:
    """Return the DatabaseError for an error of the driver."""
    code = str(getattr(error, "sqlstate", None) or "")
    if code == _FORBIDDEN:
        return DatabaseError.forbidden(name, database.title, reason)
    if _DAMAGED.search(reason):
        return DatabaseError.damaged(name, database.title, reason)
    classes = {base.__name__ for base in type(error).__mro__}
    if code.startswith("42") or classes & _INVALID_CLASSES or _INVALID.search(reason):
        return DatabaseError.of_query(name, database.title, reason)
    return DatabaseError.of(name, database.title, reason)


def missing_table_name(error: BaseException) -> str | None:
    """Return the name of the missing table if an error reports one, else None."""
    match = _ABSENT.search(str(error).partition("\n")[0])
    return None if match is None else next(name for name in match.groups() if name is not None)


def no_such_table_error(
    absent: str, connection: Any, *, name: str, database: SqlDialect
) -> DatabaseError:
    """Return an error that lists the tables of the database."""
    absent = name if name.endswith(absent) else absent
    known = tables_of(connection, database)
    return DatabaseError.no_such_table(
        name,
        database.title,
        absent,
        known,
        closest_name(absent.rpartition(".")[2], known),
        query=len(absent.split()) > 1,
    )


def tables_of(connection: Any, database: SqlDialect) -> list[str]:
    """Return the names of tables and views, for messages.

    If listing fails, return an empty list.
    """
    with suppress(Exception):
        cursor = connection if database.name == "duckdb" else connection.cursor()
        rows = cursor.execute(_TABLES[database.name]).fetchall()
        return [str(next(iter(row.values() if isinstance(row, dict) else row))) for row in rows]
    return []


def kind_of_file(path: object) -> str | None:
    """Return the kind of a database file by its first bytes, or None for any other path."""
    if not isinstance(path, str | os.PathLike) or not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            header = file.read(16)
    except OSError:
        return None
    return next((kind for kind, start, magic in _MAGIC if header[start:].startswith(magic)), None)


DatabaseKind = Literal["duckdb", "postgres", "sqlite"]
URLS: dict[str, DatabaseKind] = {
    "duckdb": "duckdb",
    "sqlite": "sqlite",
    "postgres": "postgres",
    "postgresql": "postgres",
}
_MODULES: dict[str, DatabaseKind] = {
    "duckdb": "duckdb",
    "_duckdb": "duckdb",
    "sqlite3": "sqlite",
    "psycopg": "postgres",
}
_SETTINGS = (  # settings of PostgreSQL
    "jit = off",  # compiling many products takes longer than their computation
    "extra_float_digits = 3",
    "synchronize_seqscans = off",  # otherwise a scan may start in the middle of a table
    "transaction_read_only = on",  # applies within a savepoint as well
)


def kind_of(connection: Any) -> DatabaseKind:
    """Return the kind of database of a connection, a URL or a file."""
    if isinstance(connection, str | os.PathLike):
        file_kind = kind_of_file(connection)
        if file_kind is not None:
            return cast(DatabaseKind, file_kind)
        connection = os.fspath(connection)
        register(connection)
        scheme = connection.partition(":")[0].partition("+")[0].lower()
        if scheme not in URLS:
            known = [f"{name}:" for name in URLS]
            raise DatabaseError.unknown_url(shown_address(connection), known)
        return URLS[scheme]
    name = type(connection).__name__
    for base in type(connection).__mro__:
        kind = _MODULES.get(base.__module__.partition(".")[0])
        if kind is not None and not name.startswith("Async"):
            return kind
    raise DatabaseError.unknown_connection(name)


@contextmanager
def open_connection(connection: Any, name: str, database: SqlDialect) -> Iterator[Any]:
    """Open a read-only transaction on the user's connection or, for a URL, on a new connection.

    Errors of the driver are translated, and a new connection is closed.
    """
    new = isinstance(connection, str)
    try:
        opened = _connect(connection) if new else connection
    except (EngineError, DatabaseError):
        raise
    except Exception as error:
        redact_exception(error, address=connection)
        reason = short_message(error)
        if database.name == "postgres":
            raise DatabaseError.not_reached(database.title, reason) from error
        raise DatabaseError.not_opened(path_of(connection), database.title, reason) from error
    try:
        with _read_transaction(opened, database):
            yield opened
    except driver_errors(database) as error:
        redact_exception(error, address=connection, query=name)
        absent = missing_table_name(error)
        if absent is not None:  # tables can be listed after the rollback
            raise no_such_table_error(absent, opened, name=name, database=database) from error
        raise translate_error(error, short_message(error), name=name, database=database) from error
    finally:
        if new:
            opened.close()


def short_message(error: BaseException) -> str:
    """Return the first line of a driver's error message, without passwords."""
    return redact(str(error)).strip().split("\n")[0][:300].rstrip(".")


def driver_errors(database: SqlDialect) -> tuple[type[BaseException], ...]:
    """Return the exceptions that a driver raises; those of DuckDB include Arrow's exceptions."""
    if database.name == "sqlite":
        import sqlite3

        return (sqlite3.Error, sqlite3.Warning)  # Warning: several statements, before 3.12
    library = import_module("duckdb" if database.name == "duckdb" else "psycopg")
    if database.name == "postgres":
        return (library.Error,)
    import pyarrow as pa

    return (library.Error, pa.ArrowException, OSError)


def tuple_cursor(connection: Any, database: SqlDialect) -> Any:
    """Return a cursor whose rows are tuples, whatever row factory the user has set."""
    if database.name == "duckdb":  # a new cursor would not see temporary tables and views
        return connection
    cursor = connection.cursor()
    if database.name == "sqlite":
        cursor.row_factory = None
    else:
        cursor.row_factory = import_module("psycopg.rows").tuple_row
    return cursor


@contextmanager
def _read_transaction(connection: Any, database: SqlDialect) -> Iterator[None]:
    """Run a `with` block in a read-only transaction that is rolled back."""
    if database.name == "postgres":
        status = import_module("psycopg").pq.TransactionStatus.IDLE
        idle = connection.info.transaction_status == status
        with connection.transaction(force_rollback=True):
            cursor = connection.cursor()
            if idle:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            for setting in _SETTINGS:
                cursor.execute(f"SET LOCAL {setting}")
            yield
        return
    started = _start_transaction(connection, database)
    try:
        with _query_only(connection, database):
            yield
    finally:
        if started:
            with suppress(*driver_errors(database)):  # the connection may be lost
                connection.execute("ROLLBACK")


@contextmanager
def _query_only(connection: Any, database: SqlDialect) -> Iterator[None]:
    """Disable writing in SQLite within a `with` block, even by functions that a query calls."""
    if database.name != "sqlite":
        yield
        return
    cursor = tuple_cursor(connection, database)
    before = cursor.execute("PRAGMA query_only").fetchone()[0]
    cursor.execute("PRAGMA query_only = ON")
    try:
        yield
    finally:
        with suppress(*driver_errors(database)):
            cursor.execute(f"PRAGMA query_only = {before}")


def _start_transaction(connection: Any, database: SqlDialect) -> bool:
    """Start a transaction in SQLite or DuckDB; return False if the user has already started one."""
    if database.name == "sqlite":
        in_transaction = connection.in_transaction
    else:  # outside a transaction, each statement has its own transaction id
        first, second = (connection.execute("SELECT TXID_CURRENT()").fetchall() for _ in range(2))
        in_transaction = first == second
    if not in_transaction:
        connection.execute("BEGIN TRANSACTION")
    return not in_transaction


def _connect(url: str) -> Any:
    kind = kind_of(url)
    if kind == "postgres":
        if parse_address(url) is None:  # part of a password might be taken for a host name
            raise DatabaseError.unclear_address(shown_address(url))
        return _library("psycopg").connect(f"postgresql:{url.partition(':')[2]}")
    path = path_of(url)
    file_kind = kind_of_file(path)
    if path != ":memory:" and not os.path.exists(path):
        raise DatabaseError.no_file(path)
    if file_kind not in (None, kind):
        raise DatabaseError.other_kind(path, str(file_kind), kind)
    if kind == "duckdb":
        return _library("duckdb").connect(
            path,
            read_only=path != ":memory:",
            config={"autoinstall_known_extensions": "false"},  # prevents downloads
        )
    import sqlite3

    return sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)


def path_of(url: str) -> str:
    """Return the file path in a URL. A path is returned unchanged."""
    if "://" not in url:
        return url
    return url.partition(":///")[2] or ":memory:"


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise EngineError.not_installed(name, "sql") from None


_BATCH = 1 << 16  # rows
_PIECE = 1 << 22  # bytes of CSV parsed together
_CELLS = 1 << 20  # most cells of a batch of SQLite, where cells are Python objects
_DAY = 8.64e10  # microseconds per day


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows of a database as an Arrow table."""

    rows: Any  # Arrow table; in a CopyBatch, CSV text
    start: int
    count: int

    @property
    def name(self) -> str:
        """Position of the rows, for messages."""
        return f"the rows from {self.start} on"

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Yield the rows as one frame."""
        table = self.rows.select(list(columns))
        yield Frame(columns_from_arrow(table, coded=columns), table.num_rows)

    def table(self) -> Any:
        """Return the rows as an Arrow table."""
        return self.rows


@dataclass(frozen=True, slots=True, eq=False)
class CopyBatch(Batch):
    """Rows as CSV text written by PostgreSQL. Dates are in microseconds."""

    kinds: Mapping[str, CellKind]
    integers: frozenset[str]  # columns of integers

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Yield the rows as one frame."""
        table = self._parse().select(list(columns))
        cells = tuple(
            replace(column, kind="date", values=column.values / _DAY)
            if self.kinds[column.name] == "date"
            else column
            for column in columns_from_arrow(table, coded=columns)
        )
        yield Frame(cells, self.count)

    def table(self) -> Any:
        """Return the rows as an Arrow table."""
        import pyarrow as pa

        table = self._parse()
        for j, (name, kind) in enumerate(self.kinds.items()):
            if kind == "date":
                timestamps = table.column(j).cast(pa.int64()).cast(pa.timestamp("us"))
                table = table.set_column(j, name, timestamps)
        return table

    def _parse(self) -> Any:
        """Parse the text to an Arrow table.

        An unquoted empty field is NULL; a quoted empty field is an empty text.
        """
        import pyarrow as pa
        from pyarrow import csv

        double, text = pa.float64(), pa.dictionary(pa.int32(), pa.string())
        type_of = {"number": double, "date": double, "boolean": pa.bool_(), "text": text}
        types = {
            name: pa.int64() if name in self.integers else type_of[kind]
            for name, kind in self.kinds.items()
        }
        with arrow_input(io.BytesIO(self.rows)) as open_input:
            return csv.read_csv(
                open_input(),
                read_options=csv.ReadOptions(
                    column_names=list(types), block_size=2 * len(self.rows) + 1, use_threads=False
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


BatchStream: TypeAlias = Generator[Batch, None, None]


def stream_rows(
    connection: Any,
    database: SqlDialect,
    query: str,
    *,
    kinds: Mapping[str, CellKind],
    integers: frozenset[str],
) -> BatchStream:
    """Yield the rows of a query in batches.

    If the generator is not exhausted, it must be closed. The connection is busy until the generator
    is exhausted or closed.
    """
    if database.name == "duckdb":
        return _stream_duckdb(connection, query)
    if database.name == "postgres":
        return _stream_postgres(connection, query, kinds, integers)
    return _stream_sqlite(connection, query, kinds, database)


def select_term(database: SqlDialect, name: str, kind: CellKind | None) -> str:
    """Return the SQL term that selects a column with the type that batches expect."""
    term = database.identifier(name)
    if database.name == "duckdb" and kind == "text":
        return f"CAST({term} AS VARCHAR) AS {term}"
    if database.name != "postgres":
        return term
    terms = {
        "text": f"CAST({term} AS TEXT)",
        "date": f"CAST(EXTRACT(EPOCH FROM {term}) * 1000000 AS DOUBLE PRECISION)",
    }
    return f"{terms.get(kind or '', term)} AS {term}"


def _stream_duckdb(connection: Any, query: str) -> BatchStream:
    import pyarrow as pa

    relation = connection.sql(query)
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch  # before 2.0
    start = 0
    with read(_BATCH) as batches:
        for batch in batches:  # each but the last has at least 2,048 rows
            for lo in range(0, batch.num_rows, _BATCH):
                piece = batch.slice(lo, _BATCH)
                yield Batch(pa.Table.from_batches([piece]), start + lo, piece.num_rows)
            start += batch.num_rows


def _stream_postgres(
    connection: Any, query: str, kinds: Mapping[str, CellKind], integers: frozenset[str]
) -> BatchStream:
    rows: list[bytes] = []
    size = start = 0
    with connection.cursor().copy(f"COPY ({query}) TO STDOUT (FORMAT CSV)") as copy:
        for row in copy:
            rows.append(bytes(row))
            size += len(row)
            if size >= _PIECE or len(rows) >= _BATCH:
                yield CopyBatch(b"".join(rows), start, len(rows), kinds, integers)
                start, rows, size = start + len(rows), [], 0
    if rows:
        yield CopyBatch(b"".join(rows), start, len(rows), kinds, integers)


def _stream_sqlite(
    connection: Any, query: str, kinds: Mapping[str, CellKind], database: SqlDialect
) -> BatchStream:
    import pyarrow as pa

    cursor = tuple_cursor(connection, database)
    cursor.execute(query)
    names = [column[0] for column in cursor.description]
    start, size = 0, min(_BATCH, max(_CELLS // len(names), 64))
    while rows := cursor.fetchmany(size):
        columns = zip(names, zip(*rows, strict=True), strict=True)
        table = pa.table({name: _sqlite_array(name, cells, kinds) for name, cells in columns})
        yield Batch(table, start, len(rows))
        start += len(rows)


def _sqlite_array(name: str, cells: Sequence[Any], kinds: Mapping[str, CellKind]) -> Any:
    import pyarrow as pa

    if kinds.get(name) == "date":  # SQLite stores dates as text
        return pa.array(cells, pa.string()).cast(pa.timestamp("us"))
    types = {type(cell) for cell in cells} - {type(None)}
    if types == {int, float}:
        return pa.array(cells, pa.float64())
    if len(types) > 1 or bytes in types:
        raise DatabaseError.mixed(name, sorted(type_.__name__ for type_ in types))
    return pa.array(cells)
