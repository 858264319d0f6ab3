"""Connections to databases: whose they are, what they may do, and what is set back afterwards.

All that is done through one is read, in one snapshot where that can be had:

    PostgreSQL   a transaction of our own, REPEATABLE READ and READ ONLY; if the user has one under
                 way, a savepoint in it. Rolled back either way, so that settings made for our
                 statements (no JIT, doubles to the last bit, rows in the order they lie in) are
                 gone, and the user's go on
    DuckDB       a transaction of our own that is rolled back, unless one is under way
    SQLite       likewise; meanwhile it refuses to write

Nobody's transaction is ended but ours. A connection made from a URL is closed again.

What a database says when it refuses, as something that can be acted on.

    no such table      which there are, and the one that is nearest by its name
    a query            what is wrong with it
    a file             that it is damaged, or not what it was taken for
    anything else      that it stopped: it may answer again later

PostgreSQL numbers its faults, DuckDB has classes of them, SQLite has only words.

Rows out of each database, some at a time, as they come over the wire.

    DuckDB       Arrow batches
    PostgreSQL   COPY as CSV, in which it writes doubles to the last bit; the server sends each row
                 as a message, so that the stream is cut between rows, and parsed by many threads
    SQLite       tuples; it has no types of columns, only of cells

Only a few batches are in memory at a time.
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
from discriminant.table.cells import CellKind, Cells, Frame, columns_from_arrow
from discriminant.table.labels import closest_name
from discriminant.table.sql_dialect import SqlDialect

_ABSENT = re.compile(
    r"no such table: (?P<sqlite>.+)"
    r"|Table with name (?P<duckdb>.+?) does not exist"
    r'|relation "(?P<postgres>.+)" does not exist',
    re.DOTALL,
)
_WRONG = re.compile(  # as SQLite says it
    "syntax error|no such (column|function)|unrecognized token|incomplete input|ambiguous column"
)
_DAMAGED = re.compile("malformed|not a database|corrupt|[Dd]eserializ")
_CLASSES = ("ParserException", "BinderException", "CatalogException")
_FORBIDDEN = "42501"
_TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
    "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    "duckdb": "SELECT table_name FROM information_schema.tables ORDER BY table_name",
    "postgres": "SELECT table_name FROM information_schema.tables WHERE table_schema NOT IN "
    "('pg_catalog', 'information_schema') ORDER BY table_name",
}
_MAGIC = (("sqlite", 0, b"SQLite format 3\0"), ("duckdb", 8, b"DUCK"))


def translate_error(
    fault: BaseException, reason: str, *, name: str, database: SqlDialect
) -> DatabaseError:
    """The error for what a driver raised."""
    code = str(getattr(fault, "sqlstate", None) or "")
    if code == _FORBIDDEN:
        return DatabaseError.forbidden(name, database.title, reason)
    if _DAMAGED.search(reason):
        return DatabaseError.damaged(name, database.title, reason)
    kinds = {one.__name__ for one in type(fault).__mro__}
    if code.startswith("42") or kinds & set(_CLASSES) or _WRONG.search(reason):
        return DatabaseError.of_query(name, database.title, reason)
    return DatabaseError.of(name, database.title, reason)


def absent_table(fault: BaseException) -> str | None:
    """The table that a fault says is not there."""
    found = _ABSENT.search(str(fault).partition("\n")[0])
    return None if found is None else next(one for one in found.groups() if one is not None)


def no_such_table(
    absent: str, connection: Any, *, name: str, database: SqlDialect
) -> DatabaseError:
    """The error that says which tables there are."""
    absent = name if name.endswith(absent) else absent
    known = tables_of(connection, database)
    return DatabaseError.no_such_table(
        name, database.title, absent, known, closest_name(absent.rpartition(".")[2], known)
    )


def tables_of(connection: Any, database: SqlDialect) -> list[str]:
    """Names of tables and views; none where they cannot be had."""
    with suppress(Exception):  # it is for a message only
        cursor = connection if database.name == "duckdb" else connection.cursor()
        found = cursor.execute(_TABLES[database.name]).fetchall()
        return [str(next(iter(row.values() if isinstance(row, dict) else row))) for row in found]
    return []


def kind_of_file(path: object) -> str | None:
    """Which database a file is, by its first bytes; None if it is none, or not there."""
    if not isinstance(path, str | os.PathLike) or not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            first = file.read(16)
    except OSError:
        return None
    found = (name for name, at, mark in _MAGIC if first[at : at + len(mark)] == mark)
    return next(found, None)


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
_SETTINGS = (  # compiling so many products takes longer than they do
    "jit = off",
    "extra_float_digits = 3",
    "synchronize_seqscans = off",  # a scan that joins another begins in the middle
    "transaction_read_only = on",  # of a savepoint too
)


def kind_of(connection: Any) -> DatabaseKind:
    """Which database a connection or a URL leads to."""
    if isinstance(connection, str | os.PathLike):
        of_file = kind_of_file(connection)
        if of_file is not None:
            return cast(DatabaseKind, of_file)
        connection = os.fspath(connection)
        register(connection)
        scheme = connection.partition(":")[0].partition("+")[0].lower()
        if scheme not in URLS:
            known = [f"{name}:" for name in URLS]
            raise DatabaseError.unknown_url(shown_address(connection), known)
        return URLS[scheme]
    name = type(connection).__name__
    for base in type(connection).__mro__:
        found = _MODULES.get(base.__module__.partition(".")[0])
        if found is not None and not name.startswith("Async"):
            return found
    raise DatabaseError.unknown_connection(name)


@contextmanager
def open_connection(connection: Any, name: str, database: SqlDialect) -> Iterator[Any]:
    """The user's connection, or one of our own that is closed again; faults are named."""
    given = not isinstance(connection, str)
    try:
        found = connection if given else _connect(connection)
    except EngineError:
        raise
    except DatabaseError:
        raise
    except Exception as fault:
        redact_exception(fault, address=connection)
        raise _unreachable(connection, database, short_message(fault)) from fault
    try:
        with _reading(found, database):
            yield found
    except driver_errors(database) as fault:
        redact_exception(fault, address=connection, query=name)
        absent = absent_table(fault)
        if absent is not None:  # what is there can be asked for only now, after the rollback
            raise no_such_table(absent, found, name=name, database=database) from fault
        raise translate_error(fault, short_message(fault), name=name, database=database) from fault
    finally:
        if not given:
            found.close()


def _unreachable(connection: str, database: SqlDialect, reason: str) -> DatabaseError:
    if database.name == "postgres":
        return DatabaseError.not_reached(database.title, reason)
    return DatabaseError.not_opened(path_of(connection), database.title, reason)


def short_message(fault: BaseException) -> str:
    """The first line of what a driver says."""
    return redact(str(fault)).strip().split("\n")[0][:300].rstrip(".")


def driver_errors(database: SqlDialect) -> tuple[type[BaseException], ...]:
    """What the driver raises; of DuckDB also Arrow, which carries its answers."""
    if database.name == "sqlite":
        import sqlite3

        return (sqlite3.Error, sqlite3.Warning)  # which several statements were before Python 3.12
    library = import_module("duckdb" if database.name == "duckdb" else "psycopg")
    if database.name == "postgres":
        return (library.Error,)
    import pyarrow as pa

    return (library.Error, pa.ArrowException, OSError)


def tuple_cursor(connection: Any, database: SqlDialect) -> Any:
    """Something that executes and fetches tuples, whatever rows the user likes."""
    if database.name == "duckdb":  # a cursor of it would not see its temporary tables and views
        return connection
    cursor = connection.cursor()
    if database.name == "sqlite":
        cursor.row_factory = None
    else:
        cursor.row_factory = import_module("psycopg.rows").tuple_row
    return cursor


@contextmanager
def _reading(connection: Any, database: SqlDialect) -> Iterator[None]:
    """A transaction that reads; it leaves no trace."""
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
    ours = _begun(connection, database)
    try:
        with _not_writing(connection, database):
            yield
    finally:
        if ours:
            with suppress(
                *driver_errors(database)
            ):  # the connection may be gone, and the work with it
                connection.execute("ROLLBACK")


@contextmanager
def _not_writing(connection: Any, database: SqlDialect) -> Iterator[None]:
    """SQLite that refuses to write; whoever called a function of a query."""
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


def _begun(connection: Any, database: SqlDialect) -> bool:
    """Begin a transaction, unless one is under way."""
    if database.name == "sqlite":
        if connection.in_transaction:
            return False
        connection.execute("BEGIN")
        return True
    first, then = (_transaction(connection) for _ in range(2))
    if first == then:  # to begin another would abort it
        return False
    connection.execute("BEGIN TRANSACTION")
    return True


def _transaction(connection: Any) -> int:
    """The number of DuckDB's transaction: another for each statement, unless one is under way."""
    return int(connection.execute("SELECT TXID_CURRENT()").fetchall()[0][0])


def _connect(url: str) -> Any:
    kind = kind_of(url)
    if kind == "postgres":
        if parse_address(url) is None:  # what is taken for a host would be looked up by its name
            raise DatabaseError.unclear_address(shown_address(url))
        return _library("psycopg").connect(f"postgresql:{url.partition(':')[2]}")
    path = path_of(url)
    found = kind_of_file(path)
    if path != ":memory:" and not os.path.exists(path):
        raise DatabaseError.no_file(path)
    if found not in (None, kind):
        raise DatabaseError.other_kind(path, str(found), kind)
    if kind == "duckdb":
        return _library("duckdb").connect(
            path,
            read_only=path != ":memory:",
            config={"autoinstall_known_extensions": "false"},  # nothing is fetched from a network
        )
    import sqlite3

    return sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)


def path_of(url: str) -> str:
    """The file of a URL, or the path that it is."""
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
        yield Frame(columns_from_arrow(some, coded=columns), some.num_rows)

    def table(self) -> Any:
        """Themselves, in Arrow."""
        return self.rows


@dataclass(frozen=True, slots=True, eq=False)
class CopyBatch:
    """Rows as PostgreSQL writes them."""

    text: bytes
    kinds: Mapping[str, CellKind]
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
        found = columns_from_arrow(table, coded=columns)
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


BatchStream: TypeAlias = Generator[Batch | CopyBatch, None, None]


def _dated(cells: Cells) -> Cells:
    """Microseconds as days."""
    return replace(cells, kind="date", values=cells.values / _DAY)


def stream_rows(
    connection: Any,
    database: SqlDialect,
    query: str,
    *,
    kinds: Mapping[str, CellKind],
    whole: frozenset[str],
) -> BatchStream:
    """The rows of a query that selects these columns, in their order; to be closed if not all are
    taken, for until then the connection is busy with them."""
    if database.name == "duckdb":
        return _from_duckdb(connection, query)
    if database.name == "postgres":
        return _from_postgres(connection, query, kinds, whole)
    return _from_sqlite(connection, query, kinds)


def select_term(database: SqlDialect, name: str, kind: CellKind | None) -> str:
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


def _from_duckdb(connection: Any, query: str) -> BatchStream:
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
    connection: Any, query: str, kinds: Mapping[str, CellKind], whole: frozenset[str]
) -> BatchStream:
    waiting: list[bytes] = []
    size = start = 0
    with connection.cursor().copy(f"COPY ({query}) TO STDOUT (FORMAT CSV)") as copy:
        for row in copy:
            waiting.append(bytes(row))
            size += len(row)
            if size >= _PIECE or len(waiting) >= _BATCH:
                yield CopyBatch(b"".join(waiting), kinds, whole, start, len(waiting))
                start, waiting, size = start + len(waiting), [], 0
    if waiting:
        yield CopyBatch(b"".join(waiting), kinds, whole, start, len(waiting))


def _from_sqlite(connection: Any, query: str, kinds: Mapping[str, CellKind]) -> BatchStream:
    import pyarrow as pa

    from discriminant.table.sql_dialect import SQL_DIALECTS

    cursor = tuple_cursor(connection, SQL_DIALECTS["sqlite"])
    cursor.execute(query)
    names = [column[0] for column in cursor.description]
    start, most = 0, min(_BATCH, max(_CELLS // len(names), 64))
    while rows := cursor.fetchmany(most):
        columns = zip(*rows, strict=True)
        made = {n: _sqlite_column(n, c, kinds) for n, c in zip(names, columns, strict=True)}
        yield Batch(pa.table(made), start, len(rows))
        start += len(rows)


def _sqlite_column(name: str, cells: Sequence[Any], known: Mapping[str, CellKind]) -> Any:
    import pyarrow as pa

    if known.get(name) == "date":  # which are texts here
        return pa.array(cells, pa.string()).cast(pa.timestamp("us"))
    kinds = {type(cell) for cell in cells} - {type(None)}
    if kinds == {int, float}:
        return pa.array(cells, pa.float64())
    if len(kinds) > 1 or bytes in kinds:
        raise DatabaseError.mixed(name, sorted(kind.__name__ for kind in kinds))
    return pa.array(cells)
