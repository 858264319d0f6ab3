"""Class moments made inside a database: GROUP BY aggregates in two statements, no row leaves.

    1   weight_k, sum w (x - origin)                    per class: where its mean c_k is
    2   sum w z_i z_j, sum w z_i,  z = x - c_k          per class, about its own mean

What rounding left of the mean is corrected as everywhere (`moments.reading`), so nothing is squared
far from its mean. Products of many columns are asked for in blocks, for a statement has room for
some 1,600 columns. What becomes of a cell (categories, missing ones) is said in SQL, as the plan
says it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any, TypeVar, cast

import numpy as np

from discriminant.engines.summing import PartWork
from discriminant.errors import DatabaseError, LabelError
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.reach import Reach, ReachReading
from discriminant.moments.reading import MomentsReading
from discriminant.table.cells import Cells, Frame, Kind
from discriminant.table.database import Database
from discriminant.table.encoding import Column, Encoding
from discriminant.table.labels import encode_labels
from discriminant.table.parts import Adds, Partial, Plan, Work
from discriminant.table.schema import Floats, Labels
from discriminant.table.survey import ColumnSurvey, Survey, SurveyWork

A = TypeVar("A", bound=Adds)
_WHOLE = ("int", "tinyint", "smallint", "bigint", "hugeint")
_NUMBERS = (*_WHOLE, "float", "double", "real", "numeric", "decimal")
_BLOCK = 32  # columns whose products with another 32 are one statement


@dataclass(frozen=True, slots=True, eq=False)
class Inside:
    """A query, and the connection that answers it."""

    name: str
    query: str
    database: Database
    connection: Any

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of an answer; they are few."""
        cursor = self.connection.cursor()
        if self.database.name == "postgres":  # compiling so many products takes longer than they do
            cursor.execute("SET jit = off")
        cursor.execute(statement)
        return [tuple(row) for row in cursor.fetchall()]

    def kinds(self, columns: Sequence[str]) -> dict[str, Kind]:
        """What the cells of each column are."""
        names = [self.database.identifier(name) for name in columns]
        if self.database.name == "sqlite":
            asked = ", ".join(f"TYPEOF(MAX({name}))" for name in names)
            found = self.ask(f"SELECT {asked} FROM ({self.query}) AS rows")[0]
        elif self.database.name == "duckdb":
            told = self.ask(f"DESCRIBE SELECT {', '.join(names)} FROM ({self.query}) AS rows")
            found = tuple(row[1] for row in told)
        else:
            asked = ", ".join(f"CAST(PG_TYPEOF({name}) AS TEXT)" for name in names)
            told = self.ask(f"SELECT {asked} FROM ({self.query}) AS rows LIMIT 1")
            if not told:
                raise DatabaseError.no_rows(self.name)
            found = told[0]
        return {name: _kind(str(type_)) for name, type_ in zip(columns, found, strict=True)}

    def summing(self, term: str) -> str:
        """A sum; DuckDB has one that keeps what rounding takes."""
        return f"FSUM({term})" if self.database.name == "duckdb" else f"SUM({term})"


def class_means(inside: Inside, columns: Sequence[str]) -> Frame:
    """Three rows that stand for all: means, and these a standard deviation down and up."""
    found = []
    for name, kind in inside.kinds(columns).items():
        if kind == "text":
            term = inside.database.as_text(inside.database.identifier(name))
            level = inside.ask(f"SELECT MIN({term}) FROM ({inside.query}) AS rows")[0][0]
            codes = np.full(3, -1 if level is None else 0, dtype=np.int32)
            found.append(Cells(name, "text", codes, () if level is None else (level,)))
        else:
            mean, spread = _centre(inside, name, kind)
            values = np.array([mean - spread, mean, mean + spread])
            found.append(Cells(name, kind, values > 0.5 if kind == "boolean" else values))
    return Frame(tuple(found), 3)


def summed(inside: Inside, asked: Work[A]) -> A:
    """What the work would have found in the rows, from aggregates."""
    work: Any = asked
    if isinstance(work, SurveyWork):
        return cast(A, _surveyed(inside, work))
    if isinstance(work, PartWork) and work.plan.plain:
        rows = int(inside.ask(f"SELECT COUNT(*) FROM ({inside.query}) AS rows")[0][0])
        if isinstance(work.reading, MomentsReading):
            return cast(A, Partial(_Sums(inside, work.plan, work.reading).read(), rows))
        if isinstance(work.reading, ReachReading) and not len(work.reading.columns):
            return cast(A, Partial(_lightest(inside, work.plan), rows))
    what = type(work.reading if isinstance(work, PartWork) else work).__name__
    raise DatabaseError.must_stay(inside.name, what.removesuffix("Reading").lower() or what)


# --- moments --------------------------------------------------------------------------------------


class _Sums:
    """The two statements."""

    def __init__(self, inside: Inside, plan: Plan, reading: MomentsReading) -> None:
        self.inside, self.plan, self.reading = inside, plan, reading
        self.database = inside.database
        self.base = _base(inside, plan)
        self.unit, self.origin = reading.anchor.unit, reading.anchor.origin

    def read(self) -> ClassMoments:
        """Moments of all rows."""
        reading = self.reading
        found = ClassMoments.empty(
            reading.labels, reading.features, detail=reading.detail, anchor=reading.anchor
        )
        self._means(found)
        self._products(found)
        return found

    def _means(self, found: ClassMoments) -> None:
        d = len(self.reading.features)
        total = self.inside.summing
        head = ["y", "SUM(CASE WHEN w > 0 THEN 1 ELSE 0 END)", total("w"), total("w * w")]
        for block in _blocks(d):
            sums = [total(f"w * {self.database.minus(f'f{j}', self.origin[j])}") for j in block]
            for label, rows, weight, weight2, *first in self._asked([*head, *sums], block):
                k = self._code(label)
                found.rows[k], found.weight[k], found.weight2[k] = rows, weight, weight2
                if found.weight[k] > 0:
                    found.mean[k, block] = np.array(first) / weight / self.unit[block]

    def _products(self, found: ClassMoments) -> None:
        """About the mean of each class, and what that mean was off by."""
        d, weight = len(self.reading.features), np.where(found.weight > 0, found.weight, 1.0)
        place = found.mean * self.unit + self.origin  # rounded to where rows are
        about = (place - self.origin) / self.unit
        rest = np.zeros_like(found.mean)
        products: dict[tuple[int, int], Floats] = {}
        for left, right in combinations_with_replacement(list(_blocks(d)), 2):
            pairs = [(i, j) for i in left for j in right if i <= j]
            if self.reading.detail == "diagonal":
                pairs = [(i, j) for i, j in pairs if i == j]
            for label, *sums in self._centred(pairs, sorted({*left, *right}), place):
                k = self._code(label)
                for j, value in zip(left, sums, strict=False):
                    rest[k, j] = value / weight[k]
                for pair, value in zip(pairs, sums[len(left) :], strict=True):
                    products.setdefault(pair, np.zeros(len(weight)))[k] = value
        found.mean[:] = np.where(found.weight[:, None] > 0, about + rest, 0.0)
        for (i, j), value in products.items():
            value = value - weight * rest[:, i] * rest[:, j]
            _put(found, i, j, np.maximum(value, 0.0) if i == j else value)

    def _centred(
        self, pairs: Sequence[tuple[int, int]], columns: Sequence[int], place: Floats
    ) -> list[tuple[Any, ...]]:
        """Sums and products of some columns about the place of each class."""
        if not pairs:
            return []
        total, left = self.inside.summing, sorted({i for i, _ in pairs})
        sums = [total(f"w * z{i}") for i in left] + [total(f"w * z{i} * z{j}") for i, j in pairs]
        away = [f"(f{j} - c{j}) / {self.database.number(self.unit[j])} AS z{j}" for j in columns]
        centres = " UNION ALL ".join(
            f"SELECT {self.database.literal(label)} AS k, "
            + ", ".join(f"{self.database.typed(place[code, j])} AS c{j}" for j in columns)
            for code, label in enumerate(self.reading.labels.tolist())
        )
        return self.inside.ask(
            f"SELECT y, {', '.join(sums)} FROM (SELECT y, w, {', '.join(away)} "
            f"FROM ({self.base(columns)}) AS b JOIN ({centres}) AS m ON b.y = m.k) AS z GROUP BY y"
        )

    def _asked(self, terms: Sequence[str], columns: Sequence[int]) -> list[tuple[Any, ...]]:
        asked = ", ".join(terms)
        return self.inside.ask(f"SELECT {asked} FROM ({self.base(columns)}) AS b GROUP BY y")

    def _code(self, label: Any) -> int:
        if label is None:
            raise LabelError.missing([])
        return int(np.flatnonzero(self.reading.labels == _plain(label, self.reading.labels))[0])


def _put(found: ClassMoments, i: int, j: int, value: Floats) -> None:
    if found.detail == "diagonal":
        found.scatter[:, i] = value
    elif found.detail == "pooled":
        found.scatter[i, j] = found.scatter[j, i] = value.sum()
    else:
        found.scatter[:, i, j] = found.scatter[:, j, i] = value


def _blocks(columns: int) -> Iterator[list[int]]:
    for lo in range(0, columns, _BLOCK):
        yield list(range(lo, min(lo + _BLOCK, columns)))


class _Base:
    """The rows that count: class y, weight w and features f0, f1, ... of them."""

    def __init__(self, inside: Inside, plan: Plan) -> None:
        self.inside, self.database, self.plan = inside, inside.database, plan
        self.terms = [
            t for c in plan.encoding.used for t in _terms(self.database, c, plan.encoding)
        ]
        self.gaps = {c.name: _missing(self.database, c) for c in plan.encoding.used}
        self._check()

    def __call__(self, columns: Sequence[int]) -> str:
        """With some of the features."""
        target = self.database.identifier(self.plan.target)
        weight = "1.0E0"
        if self.plan.weight is not None:
            weight = self.database.as_double(self.database.identifier(self.plan.weight))
        some = "".join(f", {self.terms[j]} AS f{j}" for j in columns)
        return (
            f"SELECT {target} AS y, {weight} AS w{some} FROM ({self.inside.query}) AS r{self.where}"
        )

    @property
    def where(self) -> str:
        """Only complete rows, where the others are dropped."""
        if self.plan.encoding.missing not in ("drop", "marginal"):
            return ""
        return " WHERE " + " AND ".join(f"NOT {gap}" for gap in self.gaps.values())

    def _check(self) -> None:
        """No cell may be missing if that is an error."""
        target = self.database.identifier(self.plan.target)
        gaps = {} if self.plan.encoding.missing != "error" else self.gaps
        asked = [f"{target} IS NULL", *gaps.values()]
        counts = ", ".join(f"SUM(CASE WHEN {gap} THEN 1 ELSE 0 END)" for gap in asked)
        found = self.inside.ask(f"SELECT {counts} FROM ({self.inside.query}) AS rows")[0]
        for name, count in zip([self.plan.target, *gaps], found, strict=True):
            if count:
                raise DatabaseError.missing(self.inside.name, name, int(count))


def _base(inside: Inside, plan: Plan) -> _Base:
    return _Base(inside, plan)


def _missing(database: Database, column: Column) -> str:
    term = database.identifier(column.name)
    if column.kind in ("ordered", "category", "date", "boolean"):
        return f"({term} IS NULL)"
    return f"({database.is_missing(database.as_double(term))})"


def _terms(database: Database, column: Column, encoding: Encoding) -> Iterator[str]:
    """The features of a column, in SQL."""
    name, gap = database.identifier(column.name), _missing(database, column)
    filled = encoding.missing in ("mean", "indicator")

    def fill(term: str, j: int) -> str:
        if not filled:
            return term
        return f"CASE WHEN {gap} THEN {database.typed(column.fill[j])} ELSE {term} END"

    if column.kind == "category":
        text = database.as_text(name)
        for j, level in enumerate(column.kept):
            yield fill(f"CASE WHEN {text} = {database.text(level)} THEN 1.0E0 ELSE 0.0E0 END", j)
    elif column.kind == "ordered":
        top = max(len(column.levels) - 1, 1)
        cases = " ".join(
            f"WHEN {database.text(level)} THEN {database.typed(place / top)}"
            for place, level in enumerate(column.levels)
        )
        yield fill(f"CASE {database.as_text(name)} {cases} END", 0)
    else:
        spelled = {"boolean": database.as_truth, "date": database.days}
        yield fill(spelled.get(column.kind, database.as_double)(name), 0)
    if column.indicator:
        yield f"CASE WHEN {gap} THEN 1.0E0 ELSE 0.0E0 END"


def _lightest(inside: Inside, plan: Plan) -> Reach:
    base = _base(inside, plan)
    least = inside.ask(f"SELECT MIN(w) FROM ({base([])}) AS b WHERE w > 0")[0][0]
    return Reach(np.zeros(0), np.inf if least is None else float(least))


# --- survey ---------------------------------------------------------------------------------------


def _surveyed(inside: Inside, work: SurveyWork) -> Partial[Survey]:
    wishes, kinds = work.wishes, inside.kinds(work.columns)
    rows = int(inside.ask(f"SELECT COUNT(*) FROM ({inside.query}) AS rows")[0][0])
    weight = "1.0E0"
    if wishes.weight is not None:
        weight = inside.database.as_double(inside.database.identifier(wishes.weight))
    columns = tuple(
        _levels(inside, name, rows, weight)
        if kinds[name] == "text" or wishes.by_level(name)
        else _numbers(inside, name, kinds[name], rows, weight)
        for name in work.columns
    )
    assert wishes.target is not None
    return Partial(Survey(columns, _labels(inside, wishes.target, kinds[wishes.target])), rows)


def _labels(inside: Inside, target: str, kind: Kind) -> Labels:
    name = inside.database.identifier(target)
    found = inside.ask(f"SELECT DISTINCT {name} FROM ({inside.query}) AS rows")
    labels = [row[0] for row in found]
    if any(label is None for label in labels):
        count = inside.ask(f"SELECT COUNT(*) FROM ({inside.query}) AS rows WHERE {name} IS NULL")
        raise DatabaseError.missing(inside.name, target, int(count[0][0]))
    return encode_labels(np.array(labels))[0]


def _levels(inside: Inside, name: str, rows: int, weight: str) -> ColumnSurvey:
    term = inside.database.as_text(inside.database.identifier(name))
    found = inside.ask(
        f"SELECT {term}, COUNT(*), SUM({weight}) FROM ({inside.query}) AS rows GROUP BY {term}"
    )
    gaps = sum(int(count) for level, count, _ in found if level is None)
    tally = {
        str(level): (int(count), float(mass or 0.0))
        for level, count, mass in found
        if level is not None
    }
    return ColumnSurvey(name, "text", False, rows, gaps, tally=tally)


def _numbers(inside: Inside, name: str, kind: Kind, rows: int, weight: str) -> ColumnSurvey:
    """Mean and spread; the extremes leave the database only where they are the same."""
    database = inside.database
    term = _value(database, name, kind)
    known = f"CASE WHEN {database.is_missing(term)} THEN NULL ELSE {term} END"
    mass = f"CASE WHEN {database.is_missing(term)} THEN 0.0E0 ELSE {weight} END"
    centre, spread = _centre(inside, name, kind)
    asked = (
        f"COUNT({known}), SUM({mass}), SUM({mass} * ({known} - {database.number(centre)})), "
        f"CASE WHEN MIN({known}) = MAX({known}) THEN MIN({known}) END"
    )
    count, total, first, same = inside.ask(f"SELECT {asked} FROM ({inside.query}) AS rows")[0]
    made = ColumnSurvey(name, kind, False, rows, rows - int(count), whole=False)
    if not count:
        return made
    mean = centre + (float(first) / float(total) if total else 0.0)
    low, high = (float(same), float(same)) if same is not None else (mean - spread, mean + spread)
    if same is None and low == high:
        low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
    return replace(made, low=low, high=high, weight=float(total), mean=mean)


def _centre(inside: Inside, name: str, kind: Kind) -> tuple[float, float]:
    """Mean and standard deviation of the cells that are there."""
    database = inside.database
    term = _value(database, name, kind)
    known = f"CASE WHEN {database.is_missing(term)} THEN NULL ELSE {term} END"
    mean = inside.ask(f"SELECT AVG({known}) FROM ({inside.query}) AS rows")[0][0]
    if mean is None:
        return float("nan"), float("nan")
    away = f"({known} - {database.number(float(mean))})"
    square = inside.ask(f"SELECT AVG({away} * {away}) FROM ({inside.query}) AS rows")[0][0]
    return float(mean), float(np.sqrt(float(square or 0.0)))


def _value(database: Database, name: str, kind: Kind) -> str:
    term = database.identifier(name)
    if kind == "boolean":
        return database.as_truth(term)
    return database.days(term) if kind == "date" else database.as_double(term)


def _kind(type_: str) -> Kind:
    """What a database calls the type of a column."""
    word = type_.lower().partition("(")[0]
    if word.startswith("bool"):
        return "boolean"
    if word.startswith(("date", "timestamp")):
        return "date"
    return "number" if word.lstrip("u").startswith(_NUMBERS) else "text"


def _plain(label: Any, labels: Labels) -> Any:
    """A label as the plan has it: PostgreSQL gives decimals for some numbers."""
    if labels.dtype.kind in "fiub" and not isinstance(label, str):
        return labels.dtype.type(label)
    return label
