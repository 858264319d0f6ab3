"""Asking a database for sums over a query, and how its columns are spelled as features.

Cells become what the plan says, in SQL: a category is an indicator for each of its levels, what is
missing is dropped or filled. Texts are compared letter by letter, whatever a column's collation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discriminant.engines.connecting import cursor_of
from discriminant.errors import DatabaseError
from discriminant.table.cells import Kind
from discriminant.table.database import LARGEST, Database
from discriminant.table.encoding import Column, Encoding
from discriminant.table.parts import Plan

MANY = 400  # terms of a statement; PostgreSQL has room for 1,664
_BUCKETS = 64
_COLLATIONS = {"postgres": ' COLLATE "C"', "sqlite": " COLLATE BINARY", "duckdb": ""}
_NUMBERS = ("int", "tinyint", "smallint", "bigint", "hugeint", "float", "double", "real")
_DECIMALS = ("numeric", "decimal")


@dataclass(frozen=True, slots=True, eq=False)
class Inside:
    """A query, and the connection that answers it."""

    name: str
    query: str
    database: Database
    connection: Any
    known: Mapping[str, Kind]  # what columns are; of SQLite only which are dates
    every: str = ""  # the query with the rows that are dropped for want of a label

    @property
    def rows(self) -> str:
        """What is summed over."""
        return f"({self.query}) AS rows"

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of an answer; they are few."""
        cursor = cursor_of(self.connection, self.database)
        cursor.execute(statement)
        return [tuple(row) for row in cursor.fetchall()]

    def totals(self, terms: Sequence[str], source: str = "") -> list[Any]:
        """One row of aggregates, in as many statements as they take."""
        found: list[Any] = []
        for lo in range(0, len(terms), MANY):
            some = ", ".join(terms[lo : lo + MANY])
            found += self.ask(f"SELECT {some} FROM {source or self.rows}")[0]
        return found

    def count(self) -> int:
        """How many rows there are."""
        return int(self.totals(["COUNT(*)"])[0])

    def count_every(self) -> int:
        """How many rows there are, those without a label included."""
        source = f"({self.every or self.query}) AS rows"
        return int(self.totals(["COUNT(*)"], source)[0])

    def kinds(self, columns: Sequence[str]) -> dict[str, Kind]:
        """What the cells of each column are."""
        if self.database.name != "sqlite":
            return {name: self.known[name] for name in columns}
        names = [self.database.identifier(name) for name in columns]
        least = self.totals([f"TYPEOF(MIN({name}))" for name in names])
        most = self.totals([f"TYPEOF(MAX({name}))" for name in names])  # numbers < texts < bytes
        for name, low, high in zip(columns, least, most, strict=True):
            if high == "blob" or (high == "text") != (low == "text"):
                raise DatabaseError.mixed(name, sorted({low, high}))
        found: dict[str, Kind] = {
            n: "text" if t == "text" else "number" for n, t in zip(columns, most, strict=True)
        }
        return found | {name: self.known[name] for name in columns if name in self.known}

    def value(self, name: str, kind: Kind) -> str:
        """A column as a number."""
        term = self.database.identifier(name)
        if kind == "boolean":
            return self.database.as_truth(term)
        return self.database.days(term) if kind == "date" else self.database.as_double(term)

    def text(self, name: str) -> str:
        """A column as text, compared letter by letter."""
        spelled = self.database.as_text(self.database.identifier(name))
        return f"{spelled}{_COLLATIONS[self.database.name]}"

    def by_class(
        self, terms: Sequence[str], source: str, *, having: str = ""
    ) -> list[tuple[Any, ...]]:
        """y, and sums of terms over the rows of each class in `source`.

        DuckDB has a sum that keeps what rounding takes. Elsewhere rows are dealt into 64 heaps that
        are summed first: rounding goes with the longest row of additions.
        """
        if self.database.name == "duckdb":
            asked = ", ".join(f"FSUM({term})" for term in terms)
            return self.ask(f"{having}SELECT y, {asked} FROM ({source}) AS s GROUP BY y")
        heaps = ", ".join(f"SUM({term}) AS s{j}" for j, term in enumerate(terms))
        whole = ", ".join(f"SUM(s{j})" for j in range(len(terms)))
        dealt = f"SELECT *, (ROW_NUMBER() OVER ()) % {_BUCKETS} AS heap FROM ({source}) AS s"
        return self.ask(
            f"{having}SELECT y, {whole} FROM (SELECT y, {heaps} FROM ({dealt}) AS d "
            "GROUP BY y, heap) AS h GROUP BY y"
        )


def kind_of_type(type_: str) -> Kind:
    """What a database calls the type of a column; what is nothing else is its text."""
    word = type_.lower().partition("(")[0]
    if word.startswith("bool"):
        return "boolean"
    if word.startswith(("date", "timestamp")):
        return "date"
    plain = word.removeprefix("u")
    return "number" if plain in _NUMBERS or plain.startswith(_DECIMALS) else "text"


class Base:
    """The rows that count: class y, weight w and features f0, f1, ... of them."""

    def __init__(self, inside: Inside, plan: Plan) -> None:
        self.inside, self.plan = inside, plan
        used = plan.encoding.used
        self.kinds = inside.kinds([column.name for column in used])
        self.label = label_term(inside, plan.target)
        self.terms = [term for column in used for term in self._features(column)]
        self.gaps = {column.name: self._missing(column) for column in used}

    def __call__(self, columns: Sequence[int]) -> str:
        """With some of the features."""
        some = "".join(f", {self.terms[j]} AS f{j}" for j in columns)
        head = f"{self.label} AS y, {self.weight} AS w"
        return f"SELECT {head}{some} FROM {self.inside.rows}{self._where}"

    @property
    def weight(self) -> str:
        """Of a row."""
        return weight_term(self.inside, self.plan.weight)

    @property
    def _where(self) -> str:
        """Only complete rows, where the others are dropped."""
        if self.plan.encoding.missing not in ("drop", "marginal"):
            return ""
        return " WHERE " + " AND ".join(f"NOT {gap}" for gap in self.gaps.values())

    def check(self) -> None:
        """Refuse what a row would be refused for: cells missing or infinite, negative weights."""
        inside = self.inside
        self._refuse("missing", {self.plan.target: f"{self.label} IS NULL"})
        if self.plan.encoding.missing == "error":
            self._refuse("missing", self.gaps)
        numbers = [name for name in self.gaps if self.kinds[name] == "number"]
        self._refuse("infinite", {n: _infinite(inside, inside.value(n, "number")) for n in numbers})
        if self.plan.weight is not None:
            term = self.weight
            bad = f"({inside.database.is_missing(term)} OR {term} < 0 OR {term} > {LARGEST})"
            self._refuse("weights", {self.plan.weight: bad})

    def _refuse(self, what: str, conditions: Mapping[str, str]) -> None:
        counts = self.inside.totals([_counted(term) for term in conditions.values()])
        for name, count in zip(conditions, counts, strict=True):
            if count:
                raise getattr(DatabaseError, what)(self.inside.name, name, int(count))

    # --- inside -----------------------------------------------------------------------------------

    def _missing(self, column: Column) -> str:
        term = self.inside.database.identifier(column.name)
        if self.kinds[column.name] != "number":
            return f"({term} IS NULL)"
        return f"({self.inside.database.is_missing(self.inside.value(column.name, 'number'))})"

    def _features(self, column: Column) -> Iterator[str]:
        """The features of a column, in SQL."""
        database, encoding = self.inside.database, self.plan.encoding
        gap = self._missing(column)
        for j, term in enumerate(self._raw(column)):
            yield _filled(database, term, gap, column, j, encoding)
        if column.indicator:
            yield _truth(database, gap)

    def _raw(self, column: Column) -> Iterator[str]:
        database = self.inside.database
        if column.kind == "category":
            for level in column.kept:
                yield _truth(database, self._is(column, level))
        elif column.kind == "ordered":
            top = max(len(column.levels) - 1, 1)
            cases = " ".join(
                f"WHEN {self._is(column, level)} THEN {database.typed(place / top)}"
                for place, level in enumerate(column.levels)
            )
            yield f"CASE {cases} END"
        else:
            yield self.inside.value(column.name, self.kinds[column.name])

    def _is(self, column: Column, level: str) -> str:
        """Whether a cell is of a level; numbers that are levels are compared as numbers."""
        kind = self.kinds[column.name]
        if kind == "text":
            return f"{self.inside.text(column.name)} = {self.inside.database.text(level)}"
        try:
            number = self.inside.database.number(float(level))
        except ValueError:  # a level that no number is
            return "1 = 0"
        return f"{self.inside.value(column.name, kind)} = {number}"


def _filled(
    database: Database, term: str, gap: str, column: Column, j: int, encoding: Encoding
) -> str:
    if encoding.missing not in ("mean", "indicator"):
        return term
    return f"CASE WHEN {gap} THEN {database.typed(column.fill[j])} ELSE {term} END"


def weight_term(inside: Inside, weight: str | None) -> str:
    """The weight of a row."""
    return inside.database.typed(1.0) if weight is None else inside.value(weight, "number")


def label_term(inside: Inside, target: str) -> str:
    """The class of a row, as it is compared with labels."""
    kind = inside.kinds([target])[target]
    if kind == "text":
        return inside.text(target)
    name = inside.database.identifier(target)
    return inside.value(target, kind) if kind == "date" else name


def _truth(database: Database, condition: str) -> str:
    return f"CASE WHEN {condition} THEN {database.typed(1.0)} ELSE {database.typed(0.0)} END"


def _counted(condition: str) -> str:
    return f"SUM(CASE WHEN {condition} THEN 1 ELSE 0 END)"


def _infinite(inside: Inside, term: str) -> str:
    return f"(NOT {inside.database.is_missing(term)} AND ABS({term}) > {LARGEST})"
