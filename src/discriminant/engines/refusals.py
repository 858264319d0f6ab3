"""What a database says when it refuses, as something that can be acted on.

    no such table      which there are, and the one that is nearest by its name
    a query            what is wrong with it
    a file             that it is damaged, or not what it was taken for
    anything else      that it stopped: it may answer again later

PostgreSQL numbers its faults, DuckDB has classes of them, SQLite has only words.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Any

from discriminant.errors import DatabaseError
from discriminant.table.database import Database
from discriminant.table.naming import nearest

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


def refused(fault: BaseException, reason: str, *, name: str, database: Database) -> DatabaseError:
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


def no_such_table(absent: str, connection: Any, *, name: str, database: Database) -> DatabaseError:
    """The error that says which tables there are."""
    absent = name if name.endswith(absent) else absent
    known = tables_of(connection, database)
    return DatabaseError.no_such_table(
        name, database.title, absent, known, nearest(absent.rpartition(".")[2], known)
    )


def tables_of(connection: Any, database: Database) -> list[str]:
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
