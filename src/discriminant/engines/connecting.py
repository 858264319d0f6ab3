"""Connections to databases: whose they are, what they may do, and what is set back afterwards.

All that is done through one is read, in one snapshot where that can be had:

    PostgreSQL   a transaction of our own, REPEATABLE READ and READ ONLY; if the user has one under
                 way, a savepoint in it. Rolled back either way, so that settings made for our
                 statements (no JIT, doubles to the last bit, rows in the order they lie in) are
                 gone, and the user's go on
    DuckDB       a transaction of our own that is rolled back, unless one is under way
    SQLite       likewise; meanwhile it refuses to write

Nobody's transaction is ended but ours. A connection made from a URL is closed again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, Literal, cast
from urllib.parse import quote

from discriminant.engines.refusals import absent_table, kind_of_file, no_such_table, refused
from discriminant.errors import DatabaseError, EngineError
from discriminant.redaction import (
    parse_address,
    redact,
    redact_exception,
    register,
    shown_address,
)
from discriminant.table.database import Database

Kind = Literal["duckdb", "postgres", "sqlite"]
URLS: dict[str, Kind] = {
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
_SETTINGS = (  # compiling so many products takes longer than they do
    "jit = off",
    "extra_float_digits = 3",
    "synchronize_seqscans = off",  # a scan that joins another begins in the middle
    "transaction_read_only = on",  # of a savepoint too
)


def kind_of(connection: Any) -> Kind:
    """Which database a connection or a URL leads to."""
    if isinstance(connection, str | os.PathLike):
        of_file = kind_of_file(connection)
        if of_file is not None:
            return cast(Kind, of_file)
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
def opened(connection: Any, name: str, database: Database) -> Iterator[Any]:
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
        raise _unreachable(connection, database, short(fault)) from fault
    try:
        with _reading(found, database):
            yield found
    except faults(database) as fault:
        redact_exception(fault, address=connection, query=name)
        absent = absent_table(fault)
        if absent is not None:  # what is there can be asked for only now, after the rollback
            raise no_such_table(absent, found, name=name, database=database) from fault
        raise refused(fault, short(fault), name=name, database=database) from fault
    finally:
        if not given:
            found.close()


def _unreachable(connection: str, database: Database, reason: str) -> DatabaseError:
    if database.name == "postgres":
        return DatabaseError.not_reached(database.title, reason)
    return DatabaseError.not_opened(path_of(connection), database.title, reason)


def short(fault: BaseException) -> str:
    """The first line of what a driver says."""
    return redact(str(fault)).strip().split("\n")[0][:300].rstrip(".")


def faults(database: Database) -> tuple[type[BaseException], ...]:
    """What the driver raises; of DuckDB also Arrow, which carries its answers."""
    if database.name == "sqlite":
        import sqlite3

        return (sqlite3.Error, sqlite3.Warning)  # which several statements were before Python 3.12
    library = import_module("duckdb" if database.name == "duckdb" else "psycopg")
    if database.name == "postgres":
        return (library.Error,)
    import pyarrow as pa

    return (library.Error, pa.ArrowException, OSError)


def cursor_of(connection: Any, database: Database) -> Any:
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
def _reading(connection: Any, database: Database) -> Iterator[None]:
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
            with suppress(*faults(database)):  # the connection may be gone, and the work with it
                connection.execute("ROLLBACK")


@contextmanager
def _not_writing(connection: Any, database: Database) -> Iterator[None]:
    """SQLite that refuses to write; whoever called a function of a query."""
    if database.name != "sqlite":
        yield
        return
    cursor = cursor_of(connection, database)
    before = cursor.execute("PRAGMA query_only").fetchone()[0]
    cursor.execute("PRAGMA query_only = ON")
    try:
        yield
    finally:
        with suppress(*faults(database)):
            cursor.execute(f"PRAGMA query_only = {before}")


def _begun(connection: Any, database: Database) -> bool:
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
