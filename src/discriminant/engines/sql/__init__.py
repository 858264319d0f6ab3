"""SQL engine: rows of a database table, view or query, streamed or aggregated in the database.

stream      batches of rows, summed in this process on all cores: the default, because on one host
            moving rows takes less time than summing them in SQL
pushdown    GROUP BY aggregates inside the database; no row leaves it: `engines.sql.aggregate`
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from discriminant.engines.sql.aggregate import (
    AggregateQuery,
    column_kind,
    compute_from_aggregates,
    representative_rows,
)
from discriminant.engines.sql.connection import (
    URLS,
    Batch,
    BatchStream,
    kind_of,
    kind_of_file,
    open_connection,
    select_term,
    stream_rows,
    tables_of,
    tuple_cursor,
)
from discriminant.engines.summation import (
    available_threads,
    check_unique_names,
    ordered_map,
    tree_sum,
)
from discriminant.errors import DatabaseError, EngineError
from discriminant.redaction import masked, register, split_table
from discriminant.table.column_cells import CellKind, ColumnCells, Frame
from discriminant.table.column_types import ReadOptions
from discriminant.table.encoding import Encoding
from discriminant.table.partitioned_source import Additive, Work
from discriminant.table.sql_dialect import SQL_DIALECTS, SqlDialect

A = TypeVar("A", bound=Additive)
_QUERY = re.compile(r"\s*(\(|(select|with|values|from|table)[\s(*'\"])", re.IGNORECASE)
_PART = r'"(?:[^"]|"")*"|[^".]+'
_NAME = re.compile(rf"(?:{_PART})(?:\.(?:{_PART}))*")
_MODULUS, _FACTOR = 1_000_003, 618_035  # primes: the hash has no period
_DATE_PREVIEW = 100  # number of rows of SQLite that are searched for dates


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """Rows of a database that have not been read yet, as returned by `discriminant.sql`."""

    connection: Any  # open connection or URL
    text: str | tuple[str, ...]  # query, name of a table or view, or parts of a name
    pushdown: bool = False

    def __repr__(self) -> str:
        """Return the text of the table or query, without passwords."""
        text = masked(self.text) if isinstance(self.text, str) else self.text
        return f"sql({text!r})"


def sql(connection: Any, table_or_query: str | Sequence[str], *, pushdown: bool = False) -> Query:
    """Select rows of a database as a source for `rows`, `moments` and `study`.

    Parameters
    ----------
    connection : connection or str
        An open DuckDB, psycopg or sqlite3 connection, or a URL: duckdb:///file.db,
        postgresql://user@host/name, sqlite:///file.db.
    table_or_query : str or list of str
        Name of a table or view, a list of the parts of its name, or a SELECT statement. Parts of a
        name are separated by dots; a part that itself contains a dot must be in double quotes.
    pushdown : bool, default=False
        Aggregate inside the database, so that no row leaves it. Use this for confidential data, or
        if the connection to the server is slow. Only models that are fitted from moments alone can
        then be used.

    Returns
    -------
    Query

    Examples
    --------
    >>> import sqlite3
    >>> sql(sqlite3.connect(":memory:"), "loans")
    sql('loans')
    """
    if isinstance(table_or_query, list | tuple) and all(isinstance(p, str) for p in table_or_query):
        text: str | tuple[str, ...] = tuple(table_or_query)
        empty = not text
    else:
        empty = not isinstance(table_or_query, str) or not table_or_query.strip()
        text = str(table_or_query)
    if empty:
        raise DatabaseError.no_query(table_or_query)
    if isinstance(connection, os.PathLike):
        connection = os.fspath(connection)
    register(connection, text)
    return Query(connection, text, pushdown)


def accepts(source: Any) -> bool:
    """Whether a source is a result of `sql`, the URL of a database or a database file."""
    if isinstance(source, str):
        scheme, separator, _ = source.partition("://")
        if separator and scheme.partition("+")[0].lower() in URLS:
            return True
    return isinstance(source, Query) or kind_of_file(source) is not None


def as_source(
    source: Any, *, table: str | Sequence[str] | None = None, pushdown: bool = False
) -> SqlSource:
    """Return the source for a query, with the names and types of its columns.

    Parameters
    ----------
    source : Query, str or connection
        A result of `sql`, a connection, or a URL. Unless `table` is given, a URL must end in
        `#table`.
    table : str or list of str, optional
        Table, view or query, if `source` is a URL or connection.
    pushdown : bool, default=False
        Aggregate inside the database.

    Returns
    -------
    SqlSource
    """
    if not isinstance(source, Query):
        source = _query_of(source, table, pushdown)
    database, text = SQL_DIALECTS[kind_of(source.connection)], source.text
    name = text if isinstance(text, str) else ".".join(text)
    query, pushdown = _select_statement(text, database), source.pushdown or pushdown
    return SqlSource(name, (), source.connection, query, database, pushdown).with_columns()


def _query_of(source: Any, table: Any, pushdown: bool) -> Query:
    """Return the query for a URL, a database file or a connection."""
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    if table is None and isinstance(source, str):
        if kind_of_file(source) is None:
            register(source)
            source, table = split_table(source)
        if not table:
            database = SQL_DIALECTS[kind_of(source)]
            with open_connection(source, database.title, database) as connection:
                tables = tables_of(connection, database)
            raise DatabaseError.no_table(database.title, database.name, tables)
    if table is None:
        raise EngineError.of_source(type(source).__name__, ["sql"])
    return sql(source, table, pushdown=pushdown)


def _select_statement(text: str | tuple[str, ...], database: SqlDialect) -> str:
    """Return a query unchanged, or for the name of a table a SELECT with the quoted name."""
    if isinstance(text, str):
        query = text.strip().rstrip(";")
        if _QUERY.match(query):
            return f"{query}\n"  # the query may end with a comment
        parts = re.findall(_PART, query) if _NAME.fullmatch(query) else query.split(".")
        text = tuple(_unquoted(part) for part in parts)
    return f"SELECT * FROM {'.'.join(database.identifier(part) for part in text)}"


def _unquoted(part: str) -> str:
    quoted = len(part) > 1 and part.startswith('"') and part.endswith('"')
    return part[1:-1].replace('""', '"') if quoted else part


@dataclass(frozen=True, slots=True, eq=False)
class SqlSource:
    """Rows of a query."""

    name: str
    names: tuple[str, ...]
    connection: Any = field(repr=False)  # open connection or URL
    query: str
    database: SqlDialect
    pushdown: bool = False
    kinds: Mapping[str, CellKind] = field(default_factory=dict)  # for SQLite only date columns
    integers: frozenset[str] = frozenset()  # columns of integers
    options: ReadOptions | None = None

    def __repr__(self) -> str:
        """Return the text of the table or query, without passwords, and the number of columns."""
        return f"SqlSource({masked(self.name)!r}, {len(self.names)} columns)"

    @property
    def notes(self) -> tuple[str, ...]:
        """Note that says whether rows are summed in this process or in the database."""
        where = "summed inside it, no row leaves" if self.pushdown else "rows streamed out of it"
        return (f"{self.database.title}, {where}.",)

    def with_columns(self) -> SqlSource:
        """Return the source with the names and types of its columns."""
        with open_connection(self.connection, self.name, self.database) as connection:
            types = _column_types(connection, self.database, self.query)
            dates = _sqlite_dates(connection, self.query, self.database, [n for n, _ in types])
        names = check_unique_names(name for name, _ in types)
        if self.database.name == "sqlite":
            return replace(self, names=names, kinds=dict.fromkeys(dates, "date"))
        kinds = {name: column_kind(type_) for name, type_ in types}
        integers = frozenset(n for n, type_ in types if type_ in ("bigint", "int", "smallint"))
        return replace(self, names=names, kinds=kinds, integers=integers)

    def with_options(self, options: ReadOptions, fitted: Encoding | None = None) -> SqlSource:
        """Return the source with the name of the target column."""
        return replace(self, options=options)

    def sample(self, columns: Sequence[str], rows: int) -> Frame:
        """Return a sample of rows, spread over the result of the query.

        With pushdown, rows that consist of class means are returned instead.
        """
        with open_connection(self.connection, self.name, self.database) as connection:
            if self.pushdown:
                return representative_rows(self._aggregates(connection), columns, self.options)
            cursor = tuple_cursor(connection, self.database)
            cursor.execute(f"SELECT COUNT(*) FROM ({self.query}) AS rows")
            count = int(cursor.fetchall()[0][0])
            query = self._sample_query(columns, rows / count if count else 1.0)
            with closing(self._stream(connection, query, columns)) as batches:
                parts = list(batches)
        frames = [frame for part in parts for frame in part.frames(columns)]
        if not frames:
            raise DatabaseError.no_rows(self.name)
        return _concat_frames(frames)

    def map_reduce(self, work: Work[A]) -> A:
        """Return the sum of the results of `work` over all rows.

        Batches are summed on all cores while more batches arrive. With pushdown, the sum is
        computed from aggregates.
        """
        with open_connection(self.connection, self.name, self.database) as connection:
            if self.pushdown:
                return compute_from_aggregates(self._aggregates(connection), work)
            threads = available_threads()
            query = self._column_query(work.columns)
            with (  # the stream is closed after an interrupt; a rollback would wait for it
                closing(self._stream(connection, query, work.columns)) as parts,
                ThreadPoolExecutor(threads) as pool,
            ):
                return tree_sum(ordered_map(pool, work, _at_least_one(parts), 2 * threads))

    def stream_tables(self, columns: Sequence[str]) -> Generator[Any, None, None]:
        """Yield all rows as Arrow tables. The generator must be closed if it is not exhausted."""
        with (
            open_connection(self.connection, self.name, self.database) as connection,
            closing(self._stream(connection, self._column_query(columns), columns)) as parts,
        ):
            for part in parts:
                yield part.table()

    def _aggregates(self, connection: Any) -> AggregateQuery:
        """Return the query to aggregate, without unlabelled rows if these are to be dropped."""
        query, options = self.query, self.options
        if options is not None and options.drops_unlabelled and options.target:
            term = self.database.identifier(options.target)
            missing = f"{term} IS NULL"
            if self.kinds.get(options.target) == "number":
                missing = self.database.is_missing(self.database.as_double(term))
            query = f"SELECT * FROM ({self.query}) AS every_row WHERE NOT ({missing})"
        return AggregateQuery(self.name, query, self.database, connection, self.kinds, self.query)

    def _terms(self, columns: Sequence[str]) -> str:
        return ", ".join(select_term(self.database, name, self.kinds.get(name)) for name in columns)

    def _column_query(self, columns: Sequence[str]) -> str:
        return f"SELECT {self._terms(columns)} FROM ({self.query}) AS rows"

    def _sample_query(self, columns: Sequence[str], share: float) -> str:
        """Return a query for a share of the rows, which are chosen by a hash of the row number."""
        if share >= 1.0:
            return self._column_query(columns)
        number, names = "n", {name.casefold() for name in self.names}
        while number in names:
            number += "n"
        return (
            f"SELECT {self._terms(columns)} FROM (SELECT *, ROW_NUMBER() OVER () AS {number} "
            f"FROM ({self.query}) AS every) AS rows WHERE "
            f"(({number} % {_MODULUS}) * {_FACTOR}) % {_MODULUS} < {int(share * _MODULUS) + 1}"
        )

    def _stream(self, connection: Any, query: str, columns: Sequence[str]) -> BatchStream:
        kinds = {name: self.kinds[name] for name in columns if name in self.kinds}
        return stream_rows(connection, self.database, query, kinds=kinds, integers=self.integers)


def _at_least_one(parts: Iterator[Batch]) -> Iterator[Batch]:
    """Yield the batches, or a single empty batch if there are no batches."""
    first = next(parts, None)
    yield _EmptyBatch((), 0, 0) if first is None else first
    yield from parts


class _EmptyBatch(Batch):
    """A batch without rows."""

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        return iter(())


def _column_types(connection: Any, database: SqlDialect, query: str) -> list[tuple[str, str]]:
    """Return the name of each column, and the name of its type in the database.

    An error is raised before the query is run unless it is a single SELECT. For this check the
    query is put in parentheses, in which only a SELECT is valid; several statements are rejected.
    """
    cursor = tuple_cursor(connection, database)
    if database.name == "duckdb":
        statement = f"SELECT * FROM ({query}) AS rows"
        kinds = [part.type.name for part in connection.extract_statements(statement)]
        if kinds != ["SELECT"]:  # otherwise DuckDB would run several statements
            raise DatabaseError.no_select(kinds)
        cursor.execute(f"DESCRIBE {statement}")
        return [(row[0], str(row[1]).lower()) for row in cursor.fetchall()]
    if database.name == "sqlite":
        bare = query.strip()
        while bare.startswith("(") and bare.endswith(")"):  # SQLite rejects outer parentheses
            bare = bare[1:-1].strip()
        cursor.execute(f"SELECT * FROM ({bare}\n) LIMIT 0")  # fails unless the query is a SELECT
        cursor.execute(bare)  # for the original names; no rows are read before they are fetched
        names = [column[0] for column in cursor.description]
        cursor.close()
        for name in (name for name in names if name.lower() in database.reserved):
            raise DatabaseError.reserved(name, database.title)
        return [(name, "") for name in names]
    cursor.execute(f"SELECT * FROM ({query}) AS rows LIMIT 0", binary=True)  # a single statement
    return [(c.name, _POSTGRES.get(c.type_code, "text")) for c in cursor.description]


def _sqlite_dates(
    connection: Any, query: str, database: SqlDialect, names: Sequence[str]
) -> list[str]:
    """Return the columns whose texts are all dates or times in the format of SQLite."""
    if database.name != "sqlite":
        return []
    cursor, same = tuple_cursor(connection, database), "'+0 days'"  # DATE may change a date

    def dates(names: Sequence[str], rows: str, accepted: Sequence[int | None]) -> list[str]:
        if not names:
            return []
        terms = (
            f"MIN(CASE WHEN {c} IS NOT NULL THEN TYPEOF({c}) = 'text' AND "
            f"({c} IS DATE({c}, {same}) OR {c} IS DATETIME({c}, {same})) END)"
            for c in map(database.identifier, names)
        )
        cursor.execute(f"SELECT {', '.join(terms)} FROM ({rows})")
        return [n for n, date in zip(names, cursor.fetchall()[0], strict=True) if date in accepted]

    rows = f"SELECT * FROM ({query})"
    return dates(dates(names, f"{rows} LIMIT {_DATE_PREVIEW}", (1, None)), rows, (1,))


_POSTGRES = {  # type codes, which are fixed in PostgreSQL
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


def _concat_frames(frames: Sequence[Frame]) -> Frame:
    """Concatenate the rows of frames that have the same columns."""
    if len(frames) == 1:
        return frames[0]
    columns = tuple(_concat_cells([frame[name] for frame in frames]) for name in frames[0].names)
    return Frame(columns, sum(map(len, frames)))


def _concat_cells(cells: Sequence[ColumnCells]) -> ColumnCells:
    kinds = {c.kind for c in cells if c.n_missing < len(c)} or {cells[0].kind}
    if "text" not in kinds:
        kind = "number" if len(kinds) > 1 else kinds.pop()
        return ColumnCells(cells[0].name, kind, np.concatenate([c.values for c in cells]))
    if len(kinds) > 1:
        raise DatabaseError.mixed(cells[0].name, sorted(kinds))
    levels = tuple(dict.fromkeys(level for c in cells for level in c.levels))
    code_of = {level: code for code, level in enumerate(levels)}
    codes = []
    for c in cells:
        if c.kind == "text":
            recode = np.array([*(code_of[level] for level in c.levels), -1], dtype=np.int32)
            codes.append(recode[c.values])
        else:
            codes.append(np.full(len(c), -1, dtype=np.int32))
    return ColumnCells(cells[0].name, "text", np.concatenate(codes), levels)
