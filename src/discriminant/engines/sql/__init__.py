"""A table, view or query of a database: rows streamed out of it, or sums made inside.

stream      batches of rows, summed here on all cores: the default, for moving rows on one host
            takes less than summing them in SQL
pushdown    GROUP BY aggregates inside the database; no row leaves it: `engines.pushdown`
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from discriminant.engines.sql import aggregate as inside
from discriminant.engines.sql.aggregate import AggregateQuery, column_kind
from discriminant.engines.sql.connection import (
    URLS,
    Batch,
    BatchStream,
    CopyBatch,
    kind_of,
    kind_of_file,
    open_connection,
    select_term,
    stream_rows,
    tables_of,
    tuple_cursor,
)
from discriminant.engines.summation import available_threads, ordered_map, tree_sum
from discriminant.errors import ColumnNamesError, DatabaseError, EngineError
from discriminant.redaction import masked, register, split_table
from discriminant.table.cells import CellKind, Cells, Frame
from discriminant.table.column_types import ReadOptions
from discriminant.table.encoding import Encoding
from discriminant.table.partitioned import Additive, Work
from discriminant.table.sql_dialect import SQL_DIALECTS, SqlDialect

A = TypeVar("A", bound=Additive)
_QUERY = re.compile(r"\s*(\(|(select|with|values|from|table)[\s(*'\"])", re.IGNORECASE)
_PART = r'"(?:[^"]|"")*"|[^".]+'
_NAME = re.compile(rf"(?:{_PART})(?:\.(?:{_PART}))*")
_MIXED = 1_000_003  # a prime: row numbers times another, modulo this, are in no step with anything
_GLANCE = 100  # rows that show which columns of SQLite are worth asking whether they are dates
_FACTOR = 618_035


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """Rows of a database, not yet read. Made by `discriminant.sql`."""

    connection: Any  # or a URL
    text: str | tuple[str, ...]  # a query, or the name of a table or view, or the parts of one
    pushdown: bool = False

    def __repr__(self) -> str:
        """The table or query; the connection may contain a password, and so may the query."""
        text = masked(self.text) if isinstance(self.text, str) else self.text
        return f"sql({text!r})"


def sql(connection: Any, table_or_query: str | Sequence[str], *, pushdown: bool = False) -> Query:
    """Name rows of a database: a source for `rows`, `moments` and `study`.

    Parameters
    ----------
    connection
        An open DuckDB, psycopg or sqlite3 connection, or a URL: duckdb:///file.db,
        postgresql://user@host/name, sqlite:///file.db.
    table_or_query
        The name of a table or view, with dots between its parts (a part that holds a dot in double
        quotes), a list of the parts, or a SELECT.
    pushdown
        Sum inside the database, so that no row leaves it: for data that may not, or for a server
        behind a slow link. Only what is made from moments can be fitted then.

    Examples
    --------
    >>> import sqlite3
    >>> sql(sqlite3.connect(":memory:"), "loans")
    sql('loans')
    """
    if isinstance(table_or_query, list | tuple) and all(isinstance(p, str) for p in table_or_query):
        given: str | tuple[str, ...] = tuple(table_or_query)
        empty = not given
    else:
        empty = not isinstance(table_or_query, str) or not table_or_query.strip()
        given = str(table_or_query)
    if empty:
        raise DatabaseError.no_query(table_or_query)
    if isinstance(connection, os.PathLike):
        connection = os.fspath(connection)
    register(connection, given)
    return Query(connection, given, pushdown)


def accepts(source: Any) -> bool:
    """Whether it was made by `sql`, or is the URL of a database, or a file that is one."""
    if isinstance(source, str):
        scheme, found, _ = source.partition("://")
        if found and scheme.partition("+")[0].lower() in URLS:
            return True
    return isinstance(source, Query) or kind_of_file(source) is not None


def as_source(
    source: Any, *, table: str | Sequence[str] | None = None, pushdown: bool = False
) -> SqlSource:
    """The columns of a query, looked up in its database.

    Parameters
    ----------
    source
        What `sql` returned; or a URL, with `#table` at its end unless `table` says it.
    table
        Table, view or query, if `source` is a URL or a connection.
    """
    if not isinstance(source, Query):
        source = _of_url(source, table, pushdown)
    spelled = SQL_DIALECTS[kind_of(source.connection)]
    text = source.text
    name = text if isinstance(text, str) else ".".join(text)
    rows = _rows(text, spelled)
    wants = source.pushdown or pushdown
    return SqlSource(name, (), source.connection, rows, spelled, wants).with_columns()


def _of_url(source: Any, table: Any, pushdown: bool) -> Query:
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    if table is None and isinstance(source, str):
        if kind_of_file(source) is None:
            register(source)
            source, table = split_table(source)
        if not table:
            raise DatabaseError.no_table(*_tables(source))
    if table is None:
        raise EngineError.of_source(type(source).__name__, ["sql"])
    return sql(source, table, pushdown=pushdown)


def _tables(url: str) -> tuple[str, str, list[str]]:
    """What a database is called, how its URLs begin, and which tables it has."""
    database = SQL_DIALECTS[kind_of(url)]
    with open_connection(url, database.title, database) as connection:
        return database.title, database.name, tables_of(connection, database)


def _rows(text: str | tuple[str, ...], database: SqlDialect) -> str:
    """A SELECT; names are quoted, whatever is in them."""
    if isinstance(text, str):
        query = text.strip().rstrip(";")
        if _QUERY.match(query):
            return f"{query}\n"  # which may end with a comment
        parts = re.findall(_PART, query) if _NAME.fullmatch(query) else query.split(".")
        text = tuple(_unquoted(part) for part in parts)
    return f"SELECT * FROM {'.'.join(database.identifier(part) for part in text)}"


def _unquoted(part: str) -> str:
    quoted = len(part) > 1 and part.startswith('"') and part.endswith('"')
    return part[1:-1].replace('""', '"') if quoted else part


@dataclass(frozen=True, slots=True, eq=False)
class SqlSource:
    """The rows of a query."""

    name: str
    names: tuple[str, ...]
    connection: Any = field(repr=False)  # or a URL
    query: str
    database: SqlDialect
    pushdown: bool = False
    kinds: Mapping[str, CellKind] = field(default_factory=dict)  # of SQLite dates alone
    whole: frozenset[str] = frozenset()  # columns of integers
    wishes: ReadOptions | None = None

    def __repr__(self) -> str:
        """The table or query, and the number of columns."""
        return f"SqlSource({masked(self.name)!r}, {len(self.names)} columns)"

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the sums are made."""
        where = "summed inside it, no row leaves" if self.pushdown else "rows streamed out of it"
        return (f"{self.database.title}, {where}.",)

    def with_columns(self) -> SqlSource:
        """With the names of its columns, and what they are."""
        with open_connection(self.connection, self.name, self.database) as connection:
            told = _columns(connection, self.database, self.query)
            days = _days(connection, self.query, told) if self.database.name == "sqlite" else ()
        names = tuple(name for name, _ in told)
        for name in (n for n, count in Counter(names).items() if count > 1):
            places = [j for j, other in enumerate(names) if other == name]
            raise ColumnNamesError.of_duplicates(name, places)
        if self.database.name == "sqlite":
            return replace(self, names=names, kinds=dict.fromkeys(days, "date"))
        kinds = {name: column_kind(type_) for name, type_ in told}
        whole = frozenset(name for name, type_ in told if type_ in ("bigint", "int", "smallint"))
        return replace(self, names=names, kinds=kinds, whole=whole)

    def with_options(self, wishes: ReadOptions, fitted: Encoding | None = None) -> SqlSource:
        """The source that knows which column the classes are."""
        return replace(self, wishes=wishes)

    def sample(self, columns: Sequence[str], rows: int) -> Frame:
        """Rows drawn from all over; with pushdown, means of the classes, for no row is to leave."""
        with open_connection(self.connection, self.name, self.database) as connection:
            if self.pushdown:
                return inside.representative_rows(self._inside(connection), columns, self.wishes)
            cursor = tuple_cursor(connection, self.database)
            cursor.execute(f"SELECT COUNT(*) FROM ({self.query}) AS rows")
            count = int(cursor.fetchall()[0][0])
            query = self._drawn(columns, rows / count if count else 1.0)
            with closing(self._unloaded(connection, query, columns)) as unloading:
                parts = list(unloading)
        found = [frame for part in parts for frame in part.frames(columns)]
        if not found:
            raise DatabaseError.no_rows(self.name)
        return _joined(found)

    def map_reduce(self, work: Work[A]) -> A:
        """Batches summed on all cores while the next ones come; or sums made inside."""
        with open_connection(self.connection, self.name, self.database) as connection:
            if self.pushdown:
                return inside.aggregate_work(self._inside(connection), work)
            threads = available_threads()
            query = self._some(work.columns)
            with (  # a stop is not to leave the connection busy: to roll back would wait for it
                closing(self._unloaded(connection, query, work.columns)) as parts,
                ThreadPoolExecutor(threads) as pool,
            ):
                return tree_sum(ordered_map(pool, work, _or_none(parts), 2 * threads))

    def stream_tables(self, columns: Sequence[str]) -> Generator[Any, None, None]:
        """Arrow tables of all rows, as they come; to be closed if not all are taken."""
        with (
            open_connection(self.connection, self.name, self.database) as connection,
            closing(self._unloaded(connection, self._some(columns), columns)) as parts,
        ):
            for part in parts:
                yield part.table()

    # --- inside -----------------------------------------------------------------------------------

    def _inside(self, connection: Any) -> AggregateQuery:
        query = self.query
        if self.wishes is not None and self.wishes.missing == "drop" and self.wishes.target:
            query = self._labelled(self.wishes.target)
        return AggregateQuery(self.name, query, self.database, connection, self.kinds, self.query)

    def _labelled(self, target: str) -> str:
        """A query for the rows that have a label."""
        term = self.database.identifier(target)
        missing = f"{term} IS NULL"
        if self.kinds.get(target) == "number":
            missing = self.database.is_missing(self.database.as_double(term))
        return f"SELECT * FROM ({self.query}) AS every_row WHERE NOT ({missing})"

    def _some(self, columns: Sequence[str]) -> str:
        some = (select_term(self.database, name, self.kinds.get(name)) for name in columns)
        return f"SELECT {', '.join(some)} FROM ({self.query}) AS rows"

    def _drawn(self, columns: Sequence[str], share: float) -> str:
        """A query for some of the rows: by their numbers, the same ones every time."""
        if share >= 1.0:
            return self._some(columns)
        number, taken = "n", {name.casefold() for name in self.names}
        while number in taken:
            number += "n"
        some = (select_term(self.database, name, self.kinds.get(name)) for name in columns)
        return (
            f"SELECT {', '.join(some)} FROM (SELECT *, ROW_NUMBER() OVER () AS {number} "
            f"FROM ({self.query}) AS every) AS rows WHERE "
            f"(({number} % {_MIXED}) * {_FACTOR}) % {_MIXED} < {int(share * _MIXED) + 1}"
        )

    def _unloaded(self, connection: Any, query: str, columns: Sequence[str]) -> BatchStream:
        kinds = {name: self.kinds[name] for name in columns if name in self.kinds}
        return stream_rows(connection, self.database, query, kinds=kinds, whole=self.whole)


def _or_none(parts: Iterator[Batch | CopyBatch]) -> Iterator[Batch | CopyBatch]:
    """The parts; one without rows if there is none."""
    none = True
    for part in parts:
        none = False
        yield part
    if none:
        yield _Empty((), 0, 0)


class _Empty(Batch):
    """No rows."""

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """None."""
        return iter(())


def _columns(connection: Any, database: SqlDialect, query: str) -> list[tuple[str, str]]:
    """Names of the columns, and what the database calls their types.

    Here it is seen that a query is one SELECT, before any of it is run: in parentheses nothing else
    can stand, and several statements are refused.
    """
    cursor = tuple_cursor(connection, database)
    if database.name == "duckdb":
        _check_one(connection, f"SELECT * FROM ({query}) AS rows")
        cursor.execute(f"DESCRIBE SELECT * FROM ({query}) AS rows")
        return [(row[0], str(row[1]).lower()) for row in cursor.fetchall()]
    if database.name == "sqlite":
        bare = query.strip()
        while bare.startswith("(") and bare.endswith(")"):  # of which SQLite has them around all
            bare = bare[1:-1].strip()
        cursor.execute(f"SELECT * FROM ({bare}\n) LIMIT 0")  # refuses what is no SELECT
        cursor.execute(bare)  # which has the names as they are, and gives no rows until asked
        names = [column[0] for column in cursor.description]
        cursor.close()
        for name in (name for name in names if name.lower() in database.reserved):
            raise DatabaseError.reserved(name, database.title)
        return [(name, "") for name in names]
    cursor.execute(f"SELECT * FROM ({query}) AS rows LIMIT 0", binary=True)  # takes one statement
    return [(c.name, _POSTGRES.get(c.type_code, "text")) for c in cursor.description]


def _days(connection: Any, query: str, told: Sequence[tuple[str, str]]) -> list[str]:
    """Columns of which every text is a day, or a second of one, as SQLite itself writes it."""
    database = SQL_DIALECTS["sqlite"]
    cursor, same = (
        tuple_cursor(connection, database),
        "'+0 days'",
    )  # so that 30 February becomes March

    def all_days(names: Sequence[str], rows: str, answers: Sequence[int | None]) -> list[str]:
        if not names:
            return []
        each = [database.identifier(name) for name in names]
        terms = (
            f"MIN(CASE WHEN {c} IS NOT NULL THEN TYPEOF({c}) = 'text' AND "
            f"({c} IS DATE({c}, {same}) OR {c} IS DATETIME({c}, {same})) END)"
            for c in each
        )
        cursor.execute(f"SELECT {', '.join(terms)} FROM ({rows})")
        return [n for n, yes in zip(names, cursor.fetchall()[0], strict=True) if yes in answers]

    bare = f"SELECT * FROM ({query})"
    some = all_days([name for name, _ in told], f"{bare} LIMIT {_GLANCE}", (1, None))
    return all_days(some, bare, (1,))


def _check_one(connection: Any, query: str) -> None:
    """Refuse several statements in DuckDB, which would run them all."""
    found = [statement.type.name for statement in connection.extract_statements(query)]
    if found != ["SELECT"]:
        raise DatabaseError.no_select(found)


_POSTGRES = {  # PostgreSQL numbers its types for good
    16: "boolean",
    20: "bigint",
    21: "smallint",
    23: "int",
    700: "real",
    701: "double",
    1700: "numeric",
    1082: "date",
    1114: "timestamp",
    1184: "timestamp with time zone",
}


def _joined(frames: Sequence[Frame]) -> Frame:
    """Frames of the same columns, one below the other."""
    if len(frames) == 1:
        return frames[0]
    columns = tuple(_stacked([f[name] for f in frames]) for name in frames[0].names)
    return Frame(columns, sum(len(frame) for frame in frames))


def _stacked(cells: Sequence[Cells]) -> Cells:
    kinds = {c.kind for c in cells if c.n_missing < len(c)} or {cells[0].kind}
    if "text" not in kinds:
        kind = "number" if len(kinds) > 1 else kinds.pop()
        return Cells(cells[0].name, kind, np.concatenate([c.values for c in cells]))
    if len(kinds) > 1:
        raise DatabaseError.mixed(cells[0].name, sorted(kinds))
    levels = tuple(dict.fromkeys(level for c in cells for level in c.levels))
    place = {level: code for code, level in enumerate(levels)}
    parts = []
    for c in cells:
        if c.kind == "text":
            codes = np.array([*(place[level] for level in c.levels), -1], dtype=np.int32)
            parts.append(codes[c.values])
        else:
            parts.append(np.full(len(c), -1, dtype=np.int32))
    return Cells(cells[0].name, "text", np.concatenate(parts), levels)
