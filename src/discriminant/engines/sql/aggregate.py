"""Asking a database for sums over a query, and how its columns are spelled as features.

Cells become what the plan says, in SQL: a category is an indicator for each of its levels, what is
missing is dropped or filled. Texts are compared letter by letter, whatever a column's collation.

What columns are like, from aggregates: what a plan is made from where no row may leave.

Of a column of numbers its mean, its spread and whether it is constant; of a category its levels and
how many rows have each, unless there are more than could be features: then only how many.

Class moments made inside a database: GROUP BY aggregates in two statements, no row leaves.

    1   weight_k, sum w (x - origin)                    per class: where its mean c_k is
    2   sum w z_i z_j, sum w z_i,  z = x - c_k          per class, about its own mean

What rounding left of the mean is corrected as everywhere (`moments.reading`), so nothing is squared
far from its mean. Products of many columns are asked for in blocks, for a statement has room for
some 1,600 columns. How cells become features is said in SQL: `engines.inside`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations_with_replacement
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from discriminant.engines.sql.connection import tuple_cursor
from discriminant.engines.summation import ReadingTask
from discriminant.errors import DatabaseError, LabelError
from discriminant.moments.accumulate import MomentsReading
from discriminant.moments.anchor import Extent, ExtentReading
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.confusion import PredictedCounts, PredictedCountsReading
from discriminant.table.blocks import Floats, Labels
from discriminant.table.cells import CellKind, Cells, Frame
from discriminant.table.column_profile import MIN_COUNTED_ROWS
from discriminant.table.column_types import ReadOptions
from discriminant.table.encoding import Column, Encoding, UnknownLevel
from discriminant.table.labels import encode_labels
from discriminant.table.partitioned import Additive, PartialSum, ReadPlan, Work
from discriminant.table.sql_dialect import LARGEST_DOUBLE, SqlDialect
from discriminant.table.survey import ColumnSurvey, Survey, SurveyWork

MANY = 400  # terms of a statement; PostgreSQL has room for 1,664
_BUCKETS = 64
_COLLATIONS = {"postgres": ' COLLATE "C"', "sqlite": " COLLATE BINARY", "duckdb": ""}
_NUMBERS = ("int", "tinyint", "smallint", "bigint", "hugeint", "float", "double", "real")
_DECIMALS = ("numeric", "decimal")


@dataclass(frozen=True, slots=True, eq=False)
class AggregateQuery:
    """A query, and the connection that answers it."""

    name: str
    query: str
    database: SqlDialect
    connection: Any
    known: Mapping[str, CellKind]  # what columns are; of SQLite only which are dates
    every: str = ""  # the query with the rows that are dropped for want of a label

    @property
    def rows(self) -> str:
        """What is summed over."""
        return f"({self.query}) AS rows"

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of an answer; they are few."""
        cursor = tuple_cursor(self.connection, self.database)
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

    def kinds(self, columns: Sequence[str]) -> dict[str, CellKind]:
        """What the cells of each column are."""
        if self.database.name != "sqlite":
            return {name: self.known[name] for name in columns}
        names = [self.database.identifier(name) for name in columns]
        least = self.totals([f"TYPEOF(MIN({name}))" for name in names])
        most = self.totals([f"TYPEOF(MAX({name}))" for name in names])  # numbers < texts < bytes
        for name, low, high in zip(columns, least, most, strict=True):
            if high == "blob" or (high == "text") != (low == "text"):
                raise DatabaseError.mixed(name, sorted({low, high}))
        found: dict[str, CellKind] = {
            n: "text" if t == "text" else "number" for n, t in zip(columns, most, strict=True)
        }
        return found | {name: self.known[name] for name in columns if name in self.known}

    def value(self, name: str, kind: CellKind) -> str:
        """A column as a number."""
        term = self.database.identifier(name)
        if kind == "boolean":
            return self.database.as_boolean(term)
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


def column_kind(type_: str) -> CellKind:
    """What a database calls the type of a column; what is nothing else is its text."""
    word = type_.lower().partition("(")[0]
    if word.startswith("bool"):
        return "boolean"
    if word.startswith(("date", "timestamp")):
        return "date"
    plain = word.removeprefix("u")
    return "number" if plain in _NUMBERS or plain.startswith(_DECIMALS) else "text"


class FeatureQuery:
    """The rows that count: class y, weight w and features f0, f1, ... of them."""

    def __init__(self, inside: AggregateQuery, plan: ReadPlan) -> None:
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
            bad = f"({inside.database.is_missing(term)} OR {term} < 0 OR {term} > {LARGEST_DOUBLE})"
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
            for level in column.indicator_levels:
                yield _truth(database, self._is(column, level))
        elif column.kind == "ordered":
            top = max(len(column.levels) - 1, 1)
            cases = " ".join(
                f"WHEN {self._is(column, level)} THEN {database.typed_number(place / top)}"
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
    database: SqlDialect, term: str, gap: str, column: Column, j: int, encoding: Encoding
) -> str:
    if encoding.missing not in ("mean", "indicator"):
        return term
    return f"CASE WHEN {gap} THEN {database.typed_number(column.fill[j])} ELSE {term} END"


def weight_term(inside: AggregateQuery, weight: str | None) -> str:
    """The weight of a row."""
    return inside.database.typed_number(1.0) if weight is None else inside.value(weight, "number")


def label_term(inside: AggregateQuery, target: str) -> str:
    """The class of a row, as it is compared with labels."""
    kind = inside.kinds([target])[target]
    if kind == "text":
        return inside.text(target)
    name = inside.database.identifier(target)
    return inside.value(target, kind) if kind == "date" else name


def _truth(database: SqlDialect, condition: str) -> str:
    one, zero = database.typed_number(1.0), database.typed_number(0.0)
    return f"CASE WHEN {condition} THEN {one} ELSE {zero} END"


def _counted(condition: str) -> str:
    return f"SUM(CASE WHEN {condition} THEN 1 ELSE 0 END)"


def _infinite(inside: AggregateQuery, term: str) -> str:
    return f"(NOT {inside.database.is_missing(term)} AND ABS({term}) > {LARGEST_DOUBLE})"


_MOST = 100_000  # levels that are told apart by number


def representative_rows(
    inside: AggregateQuery, columns: Sequence[str], wishes: ReadOptions | None
) -> Frame:
    """Rows that stand for all: the mean of each class, and means a standard deviation up and down.

    Of a category they have one level. A column that counts the rows has no values here, so that
    it is surveyed.
    """
    assert wishes is not None
    assert wishes.target is not None
    rows, kinds = inside.count(), inside.kinds(columns)
    if not rows:
        raise DatabaseError.no_rows(inside.name)
    labels, means = _class_means(inside, columns, kinds, wishes)
    size = len(labels) + 2
    if size == rows:  # these are not the rows, and are not to be taken for them
        size += 1
    counting = _counting(inside, columns, kinds, wishes, rows)
    found = []
    for name in columns:
        if name == wishes.target:
            found.append(_label_cells(name, kinds[name], np.resize(labels, size)))
        elif kinds[name] == "text" or wishes.is_category(name):
            found.append(_one_level(inside, name, kinds[name], size))
        elif name in counting:
            found.append(Cells(name, "number", np.full(size, np.nan)))
        else:
            values = np.resize(means[name], size)
            found.append(
                Cells(name, kinds[name], values > 0.5 if kinds[name] == "boolean" else values)
            )
    return Frame(tuple(found), size)


def survey_columns(inside: AggregateQuery, work: SurveyWork) -> PartialSum[Survey]:
    """The survey of some columns."""
    wishes, kinds, rows = work.options, inside.kinds(work.columns), inside.count()
    weight = weight_term(inside, wishes.weight)
    columns = tuple(
        _levels(inside, name, kinds[name], rows, weight, wishes)
        if (kinds[name] == "text" or wishes.is_category(name)) and name != wishes.target
        else _numbers(inside, name, kinds[name], rows, weight)
        for name in work.columns
    )
    assert wishes.target is not None
    labels = _labels(inside, wishes.target, kinds[wishes.target])
    return PartialSum(Survey(columns, labels), rows)


def label_key(label: Any) -> Any:
    """A label as it is looked up: a decimal is the number that it is."""
    return float(label) if isinstance(label, Decimal) else label


# --- labels ---------------------------------------------------------------------------------------


def _labels(inside: AggregateQuery, target: str, kind: CellKind) -> Labels:
    if kind == "date":
        raise LabelError.of_dates(target)
    term = label_term(inside, target)
    found = [row[0] for row in inside.ask(f"SELECT DISTINCT {term} FROM {inside.rows}")]
    if any(label is None for label in found):
        count = inside.ask(f"SELECT COUNT(*) FROM {inside.rows} WHERE {term} IS NULL")
        raise DatabaseError.missing(inside.name, target, int(count[0][0]))
    return encode_labels(_as_read(found, kind))[0]


def _as_read(labels: Sequence[Any], kind: CellKind) -> npt.NDArray[Any]:
    """Labels of the type that rows would bring: decimals are doubles."""
    if kind == "text":
        return np.array([str(label) for label in labels])
    if kind == "boolean":
        return np.array([bool(label) for label in labels])
    return np.array([label_key(label) for label in labels])


def _label_cells(name: str, kind: CellKind, labels: npt.NDArray[Any]) -> Cells:
    if kind != "text":
        return Cells(name, kind, labels)
    levels, codes = np.unique(labels, return_inverse=True)
    return Cells(name, "text", codes.astype(np.int32), tuple(levels.tolist()))


# --- numbers --------------------------------------------------------------------------------------


def _known(inside: AggregateQuery, name: str, kind: CellKind) -> str:
    """A number, NULL where it is missing."""
    term = inside.value(name, kind)
    if kind != "number" or inside.database.name == "sqlite":
        return term
    return f"CASE WHEN {inside.database.is_missing(term)} THEN NULL ELSE {term} END"


def _class_means(
    inside: AggregateQuery, columns: Sequence[str], kinds: dict[str, CellKind], wishes: ReadOptions
) -> tuple[Labels, dict[str, npt.NDArray[np.float64]]]:
    """Labels, and of each number its mean in each class, and a deviation about the whole mean."""
    assert wishes.target is not None
    labels = _labels(inside, wishes.target, kinds[wishes.target])
    names = [
        name
        for name in columns
        if name != wishes.target and kinds[name] != "text" and not wishes.is_category(name)
    ]
    centres = _centres(inside, names, kinds)
    term, found = label_term(inside, wishes.target), {}
    place = {label_key(label): k for k, label in enumerate(labels.tolist())}
    for lo in range(0, len(names), 300):
        some = names[lo : lo + 300]
        asked = ", ".join(f"AVG({_known(inside, name, kinds[name])})" for name in some)
        told = inside.ask(f"SELECT {term}, {asked} FROM {inside.rows} GROUP BY {term}")
        values = np.full((len(labels) + 2, len(some)), np.nan)
        for label, *means in told:
            values[place[label_key(label)]] = [np.nan if m is None else float(m) for m in means]
        for j, name in enumerate(some):
            mean, spread = centres[name]
            own = np.where(np.isfinite(values[:, j]), values[:, j], mean)
            own[-2:] = mean - spread, mean + spread
            found[name] = own
    return labels, found


def _centres(
    inside: AggregateQuery, names: Sequence[str], kinds: dict[str, CellKind]
) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of the cells that are there."""
    known = [_known(inside, name, kinds[name]) for name in names]
    means = [_finite(m) for m in inside.totals([f"AVG({term})" for term in known])]
    away = [
        inside.database.subtract(term, m) if np.isfinite(m) else term
        for term, m in zip((f"({t})" for t in known), means, strict=True)
    ]
    squares = [_finite(s) for s in inside.totals([f"AVG({z} * {z})" for z in away])]
    spreads = [float(np.sqrt(square)) for square in squares]
    return dict(zip(names, zip(means, spreads, strict=True), strict=True))


def _finite(value: Any) -> float:
    """A number; NaN of none. Infinities are named when all cells are checked."""
    found = float("nan") if value is None else float(value)
    return found if np.isfinite(found) else float("nan")


def _counting(
    inside: AggregateQuery,
    columns: Sequence[str],
    kinds: dict[str, CellKind],
    wishes: ReadOptions,
    rows: int,
) -> set[str]:
    """Columns of whole numbers from k to k + rows - 1, all different, which count the rows."""
    kept = wishes.columns or ()
    names = [
        name
        for name in columns
        if kinds[name] == "number" and name not in (wishes.target, wishes.weight, *kept)
    ]
    if rows < MIN_COUNTED_ROWS:
        return set()
    terms = [inside.value(name, "number") for name in names]
    lengths = inside.totals([f"MAX({term}) - MIN({term})" for term in terms])
    some = [n for n, length in zip(names, lengths, strict=True) if _finite(length) == rows - 1]
    return {n for n in some if _numbers(inside, n, "number", rows, "1").row_numbers}


def _numbers(
    inside: AggregateQuery, name: str, kind: CellKind, rows: int, weight: str
) -> ColumnSurvey:
    """Mean and spread; the extremes leave the database only where they are the same."""
    made = ColumnSurvey(name, kind, False, rows, 0, whole=False)
    if kind == "text":  # the target, of which labels are all
        return made
    known = _known(inside, name, kind)
    centre, spread = _centres(inside, [name], {name: kind})[name]
    if not np.isfinite(centre):
        centre = 0.0
    mass = f"CASE WHEN {known} IS NULL THEN 0.0E0 ELSE {weight} END"
    away = inside.database.subtract(f"({known})", centre)
    count, total, first, same, ends = inside.totals(
        [
            f"COUNT({known})",
            f"SUM({mass})",
            f"SUM({mass} * {away})",
            f"CASE WHEN MIN({known}) = MAX({known}) THEN MIN({known}) END",
            f"CASE WHEN COUNT(DISTINCT {known}) = COUNT(*) AND MAX({known}) - MIN({known}) = "
            f"COUNT(*) - 1 THEN MIN({known}) END",
        ]
    )
    made = replace(made, n_missing=rows - int(count))
    if not count:
        return made
    mean = centre + (_finite(first) / float(total) if total else 0.0)
    low, high = (float(same), float(same)) if same is not None else (mean - spread, mean + spread)
    if same is None and low == high:
        low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
    counts = ends is not None and _whole(inside, known, float(ends), rows)
    runs = ((float(ends), float(ends) + rows - 1),) if counts else None
    return replace(made, low=low, high=high, weight=float(total), mean=mean, runs=runs)


def _whole(inside: AggregateQuery, known: str, first: float, rows: int) -> bool:
    """Whether numbers that begin there, and are all different, are whole."""
    if not first.is_integer() or max(abs(first), abs(first) + rows) >= 2**53:
        return False  # there doubles are no longer one apart
    broken = f"SUM(CASE WHEN {known} = CAST({known} AS BIGINT) THEN 0 ELSE 1 END)"
    return not inside.totals([broken])[0]


# --- categories -----------------------------------------------------------------------------------


def _level_term(inside: AggregateQuery, name: str, kind: CellKind) -> str:
    return inside.text(name) if kind == "text" else _known(inside, name, kind)


def _one_level(inside: AggregateQuery, name: str, kind: CellKind, size: int) -> Cells:
    level = inside.totals([f"MIN({_level_term(inside, name, kind)})"])[0]
    if kind != "text":
        return Cells(name, "number", np.full(size, _finite(level)))
    codes = np.full(size, -1 if level is None else 0, dtype=np.int32)
    return Cells(name, "text", codes, () if level is None else (str(level),))


def _levels(
    inside: AggregateQuery, name: str, kind: CellKind, rows: int, weight: str, wishes: ReadOptions
) -> ColumnSurvey:
    """Levels and their rows; of too many, only that they are."""
    term = _level_term(inside, name, kind)
    known, distinct = inside.totals([f"COUNT({term})", f"COUNT(DISTINCT {term})"])
    gaps = rows - int(known)
    kept = name in (wishes.columns or ()) or name in wishes.ordered
    if distinct > wishes.max_levels and not kept:
        some = min(int(distinct), _MOST)
        tally = {f"level {k}": (1, 1.0) for k in range(some)}
        if distinct < known:
            tally["level 0"] = (int(known) - some + 1, 1.0)
        return ColumnSurvey(name, "text", False, rows, gaps, tally=tally, capped=some == _MOST)
    found = inside.ask(f"SELECT {term}, COUNT(*), SUM({weight}) FROM {inside.rows} GROUP BY {term}")
    tally = {
        _written(level, kind): (int(count), float(mass or 0.0))
        for level, count, mass in found
        if level is not None
    }
    return ColumnSurvey(name, "text", False, rows, gaps, tally=tally)


def _written(level: Any, kind: CellKind) -> str:
    """A level as it is written of rows: 1.0 and 1 are one."""
    if kind == "text":
        return str(level)
    number = float(level)
    return str(int(number)) if number.is_integer() else str(number)


A = TypeVar("A", bound=Additive)
_BLOCK = 32  # columns whose products with another 32 are one statement
_DETAILS = ("diagonal", "pooled", "class")
_ROWS, _FOLDS, _MEASURES = "Logistic regression", "Holding out rows", "Measuring a model"
_ASKED = {  # who reads what, for people
    **dict.fromkeys(("LossReading", "ResidualReading", "SaturatedLikelihoodReading"), _ROWS),
    **dict.fromkeys(
        ("JeffreysReading", "MarginReading", "TransformedReading", "ScatterFactorReading"), _ROWS
    ),
    **dict.fromkeys(("FoldSumsReading", "HeldOutReading", "GridReading", "LevelsWork"), _FOLDS),
    **dict.fromkeys(("EvaluationReading", "EvaluationWork", "TallyReading"), _MEASURES),
}


def aggregate_work(inside: AggregateQuery, asked: Work[A]) -> A:
    """What the work would have found in the rows, from aggregates."""
    work: Any = asked
    if isinstance(work, SurveyWork):
        return cast(A, survey_columns(inside, work))
    if isinstance(work, ReadingTask) and work.plan.is_unmodified:
        try:
            found = _read(inside, work.plan, work.reading)
        except UnknownLevel as fault:
            return cast(A, PartialSum(None, inside.count_every(), fault))
        if found is not None:
            return cast(A, PartialSum(found, inside.count_every()))
    what = type(work.reading if isinstance(work, ReadingTask) else work).__name__
    raise DatabaseError.must_stay(inside.name, _ASKED.get(what, f"What is asked for ({what})"))


def _read(inside: AggregateQuery, plan: ReadPlan, reading: Any) -> Any:
    """What a reading sums to; None of one that aggregates do not tell."""
    if isinstance(reading, MomentsReading) and reading.detail in _DETAILS:
        return _Sums(inside, plan, reading).read()
    if isinstance(reading, ExtentReading) and not len(reading.columns):
        return _lightest(inside, plan)
    if isinstance(reading, PredictedCountsReading):
        return _told(inside, plan, reading)
    return None


class _Sums:
    """The two statements."""

    def __init__(self, inside: AggregateQuery, plan: ReadPlan, reading: MomentsReading) -> None:
        self.inside, self.reading = inside, reading
        self.database = inside.database
        self.base = FeatureQuery(inside, plan)
        self.base.check()
        self.target = plan.target
        self.unit, self.origin = reading.anchor.unit, reading.anchor.origin
        self.codes = {label_key(label): k for k, label in enumerate(reading.labels.tolist())}

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
        head = ["CASE WHEN w > 0 THEN 1 ELSE 0 END", "w", "w * w"]
        for block in _blocks(len(self.reading.features)):
            terms = [f"w * {self.database.subtract(f'f{j}', self.origin[j])}" for j in block]
            told = self.inside.by_class([*head, *terms], self.base(block))
            for label, rows, weight, weight2, *first in told:
                k = self._code(label)
                found.rows[k], found.weight[k], found.weight2[k] = int(rows), weight, weight2
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
            for label, *sums in self._centred(left, pairs, sorted({*left, *right}), place):
                k = self._code(label)
                rest[k, left] = np.array(sums[: len(left)], dtype=float) / weight[k]
                for pair, value in zip(pairs, sums[len(left) :], strict=True):
                    products.setdefault(pair, np.zeros(len(weight)))[k] = value
        found.mean[:] = np.where(found.weight[:, None] > 0, about + rest, 0.0)
        for (i, j), value in products.items():
            value = value - weight * rest[:, i] * rest[:, j]
            _put(found, i, j, np.maximum(value, 0.0) if i == j else value)

    def _centred(
        self,
        left: Sequence[int],
        pairs: Sequence[tuple[int, int]],
        columns: Sequence[int],
        place: Floats,
    ) -> list[tuple[Any, ...]]:
        """Sums and products of some columns about the place of each class."""
        if not pairs:
            return []
        terms = [f"w * z{i}" for i in left] + [f"w * z{i} * z{j}" for i, j in pairs]
        away = ", ".join(self._away(j) for j in columns)
        names = ", ".join(f"c{j}, e{j}" for j in columns)
        rows = ", ".join(
            f"({self.database.literal(label)}, "
            + ", ".join(self._place(place[code, j]) for j in columns)
            + ")"
            for code, label in enumerate(self.reading.labels.tolist())
        )
        source = f"SELECT y, w, {away} FROM ({self.base(columns)}) AS b JOIN m ON b.y = m.k"
        return self.inside.by_class(terms, source, having=f"WITH m(k, {names}) AS (VALUES {rows}) ")

    def _away(self, j: int) -> str:
        """z, the difference exact where x is near its class."""
        z = f"(f{j} - c{j} - e{j})"
        if self.unit[j] != 1.0:
            z = f"({z} / {self.database.number(self.unit[j])})"
        return f"{z} AS z{j}"

    def _place(self, place: float) -> str:
        """A centre in two parts: SQLite may read the 17th digit of a number wrong."""
        short = float(f"{place:.15g}") if self.database.name == "sqlite" else place
        return f"{self.database.typed_number(short)}, {self.database.typed_number(place - short)}"

    def _code(self, label: Any) -> int:
        found = self.codes.get(label_key(label))
        if found is None:  # a class that was not there when the plan was made
            raise UnknownLevel(self.target, label)
        return found


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


def _lightest(inside: AggregateQuery, plan: ReadPlan) -> Extent:
    base = FeatureQuery(inside, plan)
    base.check()
    least = inside.ask(f"SELECT MIN(w) FROM ({base([])}) AS b WHERE w > 0")[0][0]
    return Extent(np.zeros(0), np.inf if least is None else float(least))


def _told(
    inside: AggregateQuery, plan: ReadPlan, reading: PredictedCountsReading
) -> PredictedCounts:
    """Rows given to each class: those in which its score is above the earlier, below no later."""
    base, database = FeatureQuery(inside, plan), inside.database
    columns = range(len(reading.features))
    scores = ", ".join(
        database.typed_number(float(level))
        + "".join(
            f" + {database.number(float(b))}"
            f" * {database.subtract(f'f{j}', reading.anchor.origin[j])}"
            f" / {database.number(reading.anchor.unit[j])}"
            for j, b in enumerate(coef)
        )
        + f" AS s{k}"
        for k, (coef, level) in enumerate(zip(reading.coef, reading.intercept, strict=True))
    )
    K = len(reading.intercept)
    found = PredictedCounts.empty(reading.features, K)
    best = [
        " AND ".join(f"s{k} {'>' if i < k else '>='} s{i}" for i in range(K) if i != k)
        for k in range(K)
    ]
    source = f"(SELECT {scores} FROM ({base(columns)}) AS b WHERE w > 0) AS s"
    counts = inside.totals([f"SUM(CASE WHEN {term} THEN 1 ELSE 0 END)" for term in best], source)
    found.counts[:] = [int(count or 0) for count in counts]
    return found
