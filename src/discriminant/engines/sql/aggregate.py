"""Class moments and column surveys, aggregated by the database in SQL; no rows leave it.

Columns are encoded in SQL according to the plan: a category becomes an indicator for each of its
levels, and missing cells are filled, or their rows dropped. Texts are compared byte by byte,
independent of the collation of a column.

The encoding is planned from aggregates. For a numeric column the aggregates are its mean, its
standard deviation and whether it is constant. For a categorical column the aggregates are its
levels and their counts, or only the number of levels if there are too many to become features.

Class moments take two statements, grouped by class:

    1   weight_k, sum w (x - origin)                    the mean c_k of each class
    2   sum w z_i z_j, sum w z_i,  z = x - c_k          products about the mean of the class

The rounding error of the mean is corrected as in `moments.accumulate`, so every value is centred
near its mean before it is squared. Products of many columns are queried in blocks, because a
statement is limited to some 1,600 columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from discriminant.moments.anchor import ColumnMagnitudes, ColumnMagnitudesReading
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.confusion import PredictedCounts, PredictedCountsReading
from discriminant.table.blocks import Floats, Labels
from discriminant.table.column_cells import CellKind, ColumnCells, Frame
from discriminant.table.column_profile import MIN_COUNTED_ROWS
from discriminant.table.column_types import ReadOptions
from discriminant.table.encoding import Column, LevelNotInPlan
from discriminant.table.labels import encode_labels
from discriminant.table.partitioned_source import Additive, PartialSum, ReadPlan, Work
from discriminant.table.sql_dialect import LARGEST_DOUBLE, SqlDialect
from discriminant.table.survey import ColumnSurvey, Survey, SurveyWork

MAX_TERMS = 400  # largest number of terms of a statement; PostgreSQL allows 1,664
_BUCKETS = 64  # partial sums of each class, which limit rounding errors
_COLLATIONS = {"postgres": ' COLLATE "C"', "sqlite": " COLLATE BINARY", "duckdb": ""}
_NUMBERS = ("int", "tinyint", "smallint", "bigint", "hugeint", "float", "double", "real")
_DECIMALS = ("numeric", "decimal")


@dataclass(frozen=True, slots=True, eq=False)
class AggregateQuery:
    """A query, and the connection on which its aggregates are computed."""

    name: str
    query: str
    database: SqlDialect
    connection: Any
    known: Mapping[str, CellKind]  # kinds of columns; for SQLite only date columns
    full_query: str = ""  # query that includes the dropped rows without a label

    @property
    def rows(self) -> str:
        """The query as a table expression."""
        return f"({self.query}) AS rows"

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        cursor = tuple_cursor(self.connection, self.database)
        cursor.execute(statement)
        return [tuple(row) for row in cursor.fetchall()]

    def totals(self, terms: Sequence[str], source: str = "") -> list[Any]:
        """Return the values of aggregates, by several statements if there are many terms."""
        values: list[Any] = []
        for lo in range(0, len(terms), MAX_TERMS):
            part = ", ".join(terms[lo : lo + MAX_TERMS])
            values += self.fetch(f"SELECT {part} FROM {source or self.rows}")[0]
        return values

    def count(self) -> int:
        """Return the number of rows."""
        return int(self.totals(["COUNT(*)"])[0])

    def count_all(self) -> int:
        """Return the number of rows, including rows without a label."""
        source = f"({self.full_query or self.query}) AS rows"
        return int(self.totals(["COUNT(*)"], source)[0])

    def kinds(self, columns: Sequence[str]) -> dict[str, CellKind]:
        """Return the kind of each column."""
        if self.database.name != "sqlite":
            return {name: self.known[name] for name in columns}
        names = [self.database.identifier(name) for name in columns]
        lowest = self.totals([f"TYPEOF(MIN({name}))" for name in names])
        highest = self.totals([f"TYPEOF(MAX({name}))" for name in names])  # number < text < blob
        kinds: dict[str, CellKind] = {}
        for name, low, high in zip(columns, lowest, highest, strict=True):
            if high == "blob" or (high == "text") != (low == "text"):
                raise DatabaseError.mixed(name, sorted({low, high}))
            kinds[name] = self.known.get(name, "text" if high == "text" else "number")
        return kinds

    def value(self, name: str, kind: CellKind) -> str:
        """Return the SQL term for a column as a number."""
        term = self.database.identifier(name)
        if kind == "boolean":
            return self.database.as_boolean(term)
        return self.database.days(term) if kind == "date" else self.database.as_double(term)

    def text(self, name: str) -> str:
        """Return the SQL term for a column as text that is compared byte by byte."""
        term = self.database.as_text(self.database.identifier(name))
        return f"{term}{_COLLATIONS[self.database.name]}"

    def by_class(
        self, terms: Sequence[str], source: str, *, prefix: str = ""
    ) -> list[tuple[Any, ...]]:
        """Return, for each class in `source`, the label `y` and the sums of the terms.

        DuckDB has a compensated sum. In the other databases the rows are split into 64 buckets,
        whose sums are then added, because the rounding error grows with the number of successive
        additions.
        """
        if self.database.name == "duckdb":
            sums = ", ".join(f"FSUM({term})" for term in terms)
            return self.fetch(f"{prefix}SELECT y, {sums} FROM ({source}) AS s GROUP BY y")
        sums = ", ".join(f"SUM({term}) AS s{j}" for j, term in enumerate(terms))
        totals = ", ".join(f"SUM(s{j})" for j in range(len(terms)))
        rows = f"SELECT *, (ROW_NUMBER() OVER ()) % {_BUCKETS} AS bucket FROM ({source}) AS s"
        return self.fetch(
            f"{prefix}SELECT y, {totals} FROM (SELECT y, {sums} FROM ({rows}) AS d "
            "GROUP BY y, bucket) AS h GROUP BY y"
        )


def column_kind(type_: str) -> CellKind:
    """Return the kind of a column from the name of its type. Unknown types are text."""
    word = type_.lower().partition("(")[0]
    if word.startswith("bool"):
        return "boolean"
    if word.startswith(("date", "timestamp")):
        return "date"
    plain = word.removeprefix("u")
    return "number" if plain in _NUMBERS or plain.startswith(_DECIMALS) else "text"


class EncodedRowsQuery:
    """SELECT of the class y, the weight w and the features f0, f1, ... of the rows of a plan."""

    def __init__(self, query: AggregateQuery, plan: ReadPlan) -> None:
        self.query, self.plan = query, plan
        used = plan.encoding.used
        self.kinds = query.kinds([column.name for column in used])
        self.label = label_term(query, plan.target)
        self.terms = [term for column in used for term in self._features(column)]
        self.missing = {column.name: self._missing(column) for column in used}
        self.weight = weight_term(query, plan.weight)

    def select(self, columns: Sequence[int]) -> str:
        """Return the SELECT restricted to some of the features.

        If missing cells have the policy 'drop', incomplete rows are dropped.
        """
        features = "".join(f", {self.terms[j]} AS f{j}" for j in columns)
        statement = f"SELECT {self.label} AS y, {self.weight} AS w{features} FROM {self.query.rows}"
        if self.plan.encoding.missing in ("drop", "marginal"):
            statement += " WHERE " + " AND ".join(f"NOT {term}" for term in self.missing.values())
        return statement

    def check(self) -> None:
        """Raise DatabaseError for missing labels or cells, infinite cells and invalid weights."""
        query, database = self.query, self.query.database
        self._reject(DatabaseError.missing, {self.plan.target: f"{self.label} IS NULL"})
        if self.plan.encoding.missing == "error":
            self._reject(DatabaseError.missing, self.missing)
        values = {n: query.value(n, "number") for n in self.missing if self.kinds[n] == "number"}
        infinite = {
            name: f"(NOT {database.is_missing(term)} AND ABS({term}) > {LARGEST_DOUBLE})"
            for name, term in values.items()
        }
        self._reject(DatabaseError.infinite, infinite)
        if self.plan.weight is not None:
            term = self.weight
            invalid = f"({database.is_missing(term)} OR {term} < 0 OR {term} > {LARGEST_DOUBLE})"
            self._reject(DatabaseError.weights, {self.plan.weight: invalid})

    def _reject(
        self, error: Callable[[str, str, int], DatabaseError], conditions: Mapping[str, str]
    ) -> None:
        """Raise an error if a condition on a column is true in any row."""
        counts = self.query.totals([_count_term(term) for term in conditions.values()])
        for name, count in zip(conditions, counts, strict=True):
            if count:
                raise error(self.query.name, name, int(count))

    def _missing(self, column: Column) -> str:
        term = self.query.database.identifier(column.name)
        if self.kinds[column.name] != "number":
            return f"({term} IS NULL)"
        return f"({self.query.database.is_missing(self.query.value(column.name, 'number'))})"

    def _features(self, column: Column) -> Iterator[str]:
        """Yield the SQL terms for the features of a column."""
        database, missing = self.query.database, self._missing(column)
        filled = self.plan.encoding.missing in ("mean", "indicator")
        for j, term in enumerate(self._values(column)):
            if filled:
                fill = database.typed_number(column.fill[j])
                term = f"CASE WHEN {missing} THEN {fill} ELSE {term} END"
            yield term
        if column.indicator:
            yield _indicator(database, missing)

    def _values(self, column: Column) -> Iterator[str]:
        """Yield the SQL terms for the features of a column, without filling missing cells."""
        database = self.query.database
        if column.kind == "category":
            for level in column.indicator_levels:
                yield _indicator(database, self._is(column, level))
        elif column.kind == "ordered":
            top = max(len(column.levels) - 1, 1)
            cases = " ".join(
                f"WHEN {self._is(column, level)} THEN {database.typed_number(rank / top)}"
                for rank, level in enumerate(column.levels)
            )
            yield f"CASE {cases} END"
        else:
            yield self.query.value(column.name, self.kinds[column.name])

    def _is(self, column: Column, level: str) -> str:
        """Return the SQL condition that a cell equals a level.

        Numeric levels are compared as numbers.
        """
        kind = self.kinds[column.name]
        if kind == "text":
            return f"{self.query.text(column.name)} = {self.query.database.text(level)}"
        try:
            number = self.query.database.number(float(level))
        except ValueError:  # the level is not a number
            return "1 = 0"
        return f"{self.query.value(column.name, kind)} = {number}"


def weight_term(query: AggregateQuery, weight: str | None) -> str:
    """Return the SQL term for the weight of a row."""
    return query.database.typed_number(1.0) if weight is None else query.value(weight, "number")


def label_term(query: AggregateQuery, target: str) -> str:
    """Return the SQL term for the class of a row."""
    kind = query.kinds([target])[target]
    if kind == "text":
        return query.text(target)
    name = query.database.identifier(target)
    return query.value(target, kind) if kind == "date" else name


def _indicator(database: SqlDialect, condition: str) -> str:
    one, zero = database.typed_number(1.0), database.typed_number(0.0)
    return f"CASE WHEN {condition} THEN {one} ELSE {zero} END"


def _count_term(condition: str) -> str:
    return f"SUM(CASE WHEN {condition} THEN 1 ELSE 0 END)"


_MAX_LEVELS = 100_000  # largest number of levels that a survey counts


def representative_rows(
    query: AggregateQuery, columns: Sequence[str], options: ReadOptions | None
) -> Frame:
    """Return rows that represent the table, for planning, without reading actual rows.

    The rows returned are the class means, and the overall mean plus and minus a standard deviation.

    A categorical column has the same level in all representative rows. A column that might be a row
    number has missing values in these rows, so that it is surveyed later.
    """
    assert options is not None
    assert options.target is not None
    rows, kinds = query.count(), query.kinds(columns)
    if not rows:
        raise DatabaseError.no_rows(query.name)
    labels, means = _class_means(query, columns, kinds, options)
    size = len(labels) + 2
    if size == rows:  # so that they cannot be confused with actual rows
        size += 1
    row_numbers = _row_number_columns(query, columns, kinds, options, rows)

    def cells(name: str) -> ColumnCells:
        kind = kinds[name]
        if name == options.target:
            return _label_cells(name, kind, np.resize(labels, size))
        if kind == "text" or options.is_category(name):
            return _constant_cells(query, name, kind, size)
        if name in row_numbers:
            return ColumnCells(name, "number", np.full(size, np.nan))
        values = np.resize(means[name], size)
        return ColumnCells(name, kind, values > 0.5 if kind == "boolean" else values)

    return Frame(tuple(map(cells, columns)), size)


def survey_columns(query: AggregateQuery, work: SurveyWork) -> PartialSum[Survey]:
    """Compute the survey of some columns from aggregates."""
    options, kinds, rows = work.options, query.kinds(work.columns), query.count()
    weight = weight_term(query, options.weight)
    columns = tuple(
        _survey_category(query, name, kinds[name], rows, weight, options)
        if (kinds[name] == "text" or options.is_category(name)) and name != options.target
        else _survey_numbers(query, name, kinds[name], rows, weight)
        for name in work.columns
    )
    assert options.target is not None
    labels = _labels(query, options.target, kinds[options.target])
    return PartialSum(Survey(columns, labels), rows)


def label_key(label: Any) -> Any:
    """Return a label as a dictionary key. Decimals become floats."""
    return float(label) if isinstance(label, Decimal) else label


# --- labels ---------------------------------------------------------------------------------------


def _labels(query: AggregateQuery, target: str, kind: CellKind) -> Labels:
    if kind == "date":
        raise LabelError.of_dates(target)
    term = label_term(query, target)
    labels = [row[0] for row in query.fetch(f"SELECT DISTINCT {term} FROM {query.rows}")]
    if any(label is None for label in labels):
        count = query.fetch(f"SELECT COUNT(*) FROM {query.rows} WHERE {term} IS NULL")
        raise DatabaseError.missing(query.name, target, int(count[0][0]))
    as_read: Callable[[Any], Any] = {"text": str, "boolean": bool}.get(kind, label_key)
    return encode_labels(np.array([as_read(label) for label in labels]))[0]


def _label_cells(name: str, kind: CellKind, labels: npt.NDArray[Any]) -> ColumnCells:
    if kind != "text":
        return ColumnCells(name, kind, labels)
    levels, codes = np.unique(labels, return_inverse=True)
    return ColumnCells(name, "text", codes.astype(np.int32), tuple(levels.tolist()))


# --- numbers --------------------------------------------------------------------------------------


def _value_or_null(query: AggregateQuery, name: str, kind: CellKind) -> str:
    """Return the SQL term for a column as a number, in which missing values and NaN are NULL."""
    term = query.value(name, kind)
    if kind != "number" or query.database.name == "sqlite":
        return term
    return f"CASE WHEN {query.database.is_missing(term)} THEN NULL ELSE {term} END"


def _class_means(
    query: AggregateQuery, columns: Sequence[str], kinds: dict[str, CellKind], options: ReadOptions
) -> tuple[Labels, dict[str, npt.NDArray[np.float64]]]:
    """Return the labels, and the rows of `representative_rows` for each numeric column."""
    assert options.target is not None
    labels = _labels(query, options.target, kinds[options.target])
    names = [
        name
        for name in columns
        if name != options.target and kinds[name] != "text" and not options.is_category(name)
    ]
    centres = _means_and_stds(query, names, kinds)
    term, rows = label_term(query, options.target), {}
    code_of = {label_key(label): k for k, label in enumerate(labels.tolist())}
    for lo in range(0, len(names), 300):
        part = names[lo : lo + 300]
        averages = ", ".join(f"AVG({_value_or_null(query, name, kinds[name])})" for name in part)
        groups = query.fetch(f"SELECT {term}, {averages} FROM {query.rows} GROUP BY {term}")
        values = np.full((len(labels) + 2, len(part)), np.nan)
        for label, *means in groups:
            values[code_of[label_key(label)]] = [np.nan if m is None else float(m) for m in means]
        for j, name in enumerate(part):
            mean, std = centres[name]
            column = np.where(np.isfinite(values[:, j]), values[:, j], mean)
            column[-2:] = mean - std, mean + std
            rows[name] = column
    return labels, rows


def _means_and_stds(
    query: AggregateQuery, names: Sequence[str], kinds: dict[str, CellKind]
) -> dict[str, tuple[float, float]]:
    """Return mean and standard deviation of each column, without missing cells."""
    values = [_value_or_null(query, name, kinds[name]) for name in names]
    means = [_finite(mean) for mean in query.totals([f"AVG({term})" for term in values])]
    deviations = [
        query.database.subtract(f"({term})", mean) if np.isfinite(mean) else f"({term})"
        for term, mean in zip(values, means, strict=True)
    ]
    variances = query.totals([f"AVG({z} * {z})" for z in deviations])
    stds = [float(np.sqrt(_finite(variance))) for variance in variances]
    return dict(zip(names, zip(means, stds, strict=True), strict=True))


def _finite(value: Any) -> float:
    """Convert a value to a float. NULL and infinity become NaN.

    `EncodedRowsQuery.check` reports infinite values.
    """
    number = float("nan") if value is None else float(value)
    return number if np.isfinite(number) else float("nan")


def _row_number_columns(
    query: AggregateQuery,
    columns: Sequence[str],
    kinds: dict[str, CellKind],
    options: ReadOptions,
    rows: int,
) -> set[str]:
    """Return the columns that number the rows: distinct integers from k to k + rows - 1."""
    if rows < MIN_COUNTED_ROWS:
        return set()
    requested = (options.target, options.weight, *(options.columns or ()))
    names = [name for name in columns if kinds[name] == "number" and name not in requested]
    terms = [query.value(name, "number") for name in names]
    ranges = query.totals([f"MAX({term}) - MIN({term})" for term in terms])
    return {
        name
        for name, length in zip(names, ranges, strict=True)
        if _finite(length) == rows - 1
        and _survey_numbers(query, name, "number", rows, "1").row_numbers
    }


def _survey_numbers(
    query: AggregateQuery, name: str, kind: CellKind, rows: int, weight: str
) -> ColumnSurvey:
    """Return the survey of a numeric column, with its mean and standard deviation.

    Minimum and maximum are recorded only if they are equal.
    """
    survey = ColumnSurvey(name, kind, False, rows, 0, whole=False)
    if kind == "text":  # the target; its labels are surveyed separately
        return survey
    value = _value_or_null(query, name, kind)
    centre, std = _means_and_stds(query, [name], {name: kind})[name]
    if not np.isfinite(centre):
        centre = 0.0
    weight = f"CASE WHEN {value} IS NULL THEN 0.0E0 ELSE {weight} END"
    deviation = query.database.subtract(f"({value})", centre)
    count, total, deviations, constant, first = query.totals(
        [
            f"COUNT({value})",
            f"SUM({weight})",
            f"SUM({weight} * {deviation})",
            f"CASE WHEN MIN({value}) = MAX({value}) THEN MIN({value}) END",
            f"CASE WHEN COUNT(DISTINCT {value}) = COUNT(*) AND MAX({value}) - MIN({value}) = "
            f"COUNT(*) - 1 THEN MIN({value}) END",
        ]
    )
    survey = replace(survey, n_missing=rows - int(count))
    if not count:
        return survey
    mean = centre + (_finite(deviations) / float(total) if total else 0.0)
    if constant is not None:
        low = high = float(constant)
    else:
        low, high = mean - std, mean + std
        if low == high:
            low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
    numbered = first is not None and _are_integers(query, value, float(first), rows)
    runs = ((float(first), float(first) + rows - 1),) if numbered else None
    return replace(survey, low=low, high=high, weight=float(total), mean=mean, runs=runs)


def _are_integers(query: AggregateQuery, value: str, first: float, rows: int) -> bool:
    """Return whether a column is first, first + 1, ..., first + rows - 1 in some order.

    The numbers of the column are known to be distinct and to lie in this range, so only whether all
    are integers is checked. If `first` is not an integer, the database is not queried.
    """
    if not first.is_integer() or max(abs(first), abs(first) + rows) >= 2**53:
        return False  # above 2^53 adjacent doubles differ by more than one
    fractions = f"SUM(CASE WHEN {value} = CAST({value} AS BIGINT) THEN 0 ELSE 1 END)"
    return not query.totals([fractions])[0]


# --- categories -----------------------------------------------------------------------------------


def _level_term(query: AggregateQuery, name: str, kind: CellKind) -> str:
    return query.text(name) if kind == "text" else _value_or_null(query, name, kind)


def _constant_cells(query: AggregateQuery, name: str, kind: CellKind, size: int) -> ColumnCells:
    """Return cells that all have the first level of a category."""
    level = query.totals([f"MIN({_level_term(query, name, kind)})"])[0]
    if kind != "text":
        return ColumnCells(name, "number", np.full(size, _finite(level)))
    codes = np.full(size, -1 if level is None else 0, dtype=np.int32)
    return ColumnCells(name, "text", codes, () if level is None else (str(level),))


def _survey_category(
    query: AggregateQuery, name: str, kind: CellKind, rows: int, weight: str, options: ReadOptions
) -> ColumnSurvey:
    """Return the survey of a category, with the count of each level.

    If there are too many levels, only their number is recorded.
    """
    term = _level_term(query, name, kind)
    count, distinct = query.totals([f"COUNT({term})", f"COUNT(DISTINCT {term})"])
    survey = ColumnSurvey(name, "text", False, rows, rows - int(count))
    requested = name in (options.columns or ()) or name in options.ordered
    if distinct > options.max_levels and not requested:
        size = min(int(distinct), _MAX_LEVELS)
        tally = {f"level {k}": (1, 1.0) for k in range(size)}
        if distinct < count:
            tally["level 0"] = (int(count) - size + 1, 1.0)
        return replace(survey, tally=tally, capped=size == _MAX_LEVELS)
    levels = query.fetch(
        f"SELECT {term}, COUNT(*), SUM({weight}) FROM {query.rows} GROUP BY {term}"
    )
    tally = {
        _level_text(level, kind): (int(count), float(weight or 0.0))
        for level, count, weight in levels
        if level is not None
    }
    return replace(survey, tally=tally)


def _level_text(level: Any, kind: CellKind) -> str:
    """Return a level as the rows spell it. 1.0 and 1 are the same level."""
    if kind == "text":
        return str(level)
    number = float(level)
    return str(int(number)) if number.is_integer() else str(number)


A = TypeVar("A", bound=Additive)
_BLOCK = 32  # a statement computes the products of this many columns with as many others
_DETAILS = ("diagonal", "pooled", "class")
_ROWS, _FOLDS, _MEASURES = "Logistic regression", "Holding out rows", "Measuring a model"
_USES = {  # for messages: names of work that needs rows
    **dict.fromkeys(("LossReading", "ResidualReading", "SaturatedLikelihoodReading"), _ROWS),
    **dict.fromkeys(
        ("JeffreysGradientReading", "MarginReading", "TransformedReading", "ScatterFactorReading"),
        _ROWS,
    ),
    **dict.fromkeys(("FoldSumsReading", "HeldOutReading", "GridReading", "LevelsWork"), _FOLDS),
    **dict.fromkeys(("EvaluationReading", "EvaluationWork", "TallyReading"), _MEASURES),
}


def compute_from_aggregates(query: AggregateQuery, requested: Work[A]) -> A:
    """Compute the result of `work` on all rows from aggregates.

    Raise an error if the work needs rows.
    """
    work: Any = requested
    if isinstance(work, SurveyWork):
        return cast(A, survey_columns(query, work))
    if isinstance(work, ReadingTask) and work.plan.is_unmodified:
        try:
            summary = _aggregate_reading(query, work.plan, work.reading)
        except LevelNotInPlan as error:
            return cast(A, PartialSum(None, query.count_all(), error))
        if summary is not None:
            return cast(A, PartialSum(summary, query.count_all()))
    name = type(work.reading if isinstance(work, ReadingTask) else work).__name__
    raise DatabaseError.must_stay(query.name, _USES.get(name, f"What is asked for ({name})"))


def _aggregate_reading(query: AggregateQuery, plan: ReadPlan, reading: Any) -> Any:
    """Compute the summary of a reading from aggregates.

    If the reading needs rows, return None.
    """
    if isinstance(reading, MomentsReading) and reading.detail in _DETAILS:
        return _MomentsQuery(query, plan, reading).read()
    if isinstance(reading, ColumnMagnitudesReading) and not len(reading.columns):
        return _min_weight(query, plan)
    if isinstance(reading, PredictedCountsReading):
        return _count_predictions(query, plan, reading)
    return None


class _MomentsQuery:
    """Class moments from two statements: one for means, one for products."""

    def __init__(self, query: AggregateQuery, plan: ReadPlan, reading: MomentsReading) -> None:
        self.query, self.reading = query, reading
        self.database = query.database
        self.features = EncodedRowsQuery(query, plan)
        self.features.check()
        self.target = plan.target
        self.unit, self.origin = reading.anchor.unit, reading.anchor.origin
        self.codes = {label_key(label): k for k, label in enumerate(reading.labels.tolist())}

    def read(self) -> ClassMoments:
        reading = self.reading
        moments = ClassMoments.empty(
            reading.labels, reading.features, detail=reading.detail, anchor=reading.anchor
        )
        self._read_means(moments)
        self._read_products(moments)
        return moments

    def _read_means(self, moments: ClassMoments) -> None:
        """Store the weights and means of the classes in `moments`."""
        head = ["CASE WHEN w > 0 THEN 1 ELSE 0 END", "w", "w * w"]
        for block in _blocks(len(self.reading.features)):
            terms = [f"w * {self.database.subtract(f'f{j}', self.origin[j])}" for j in block]
            sums = self.query.by_class([*head, *terms], self.features.select(block))
            for label, rows, weight, weight2, *first in sums:
                k = self._code(label)
                moments.rows[k], moments.weight[k], moments.weight2[k] = int(rows), weight, weight2
                if moments.weight[k] > 0:
                    moments.mean[k, block] = np.array(first) / weight / self.unit[block]

    def _read_products(self, moments: ClassMoments) -> None:
        """Store the scatters about the class means in `moments`.

        The rounding error of the means is corrected.
        """
        d, weight = len(self.reading.features), np.where(moments.weight > 0, moments.weight, 1.0)
        centres = moments.mean * self.unit + self.origin  # rounded like the rows
        offsets = (centres - self.origin) / self.unit
        shift = np.zeros_like(moments.mean)
        products: dict[tuple[int, int], Floats] = {}
        for left, right in combinations_with_replacement(list(_blocks(d)), 2):
            pairs = [(i, j) for i in left for j in right if i <= j]
            if self.reading.detail == "diagonal":
                pairs = [(i, j) for i, j in pairs if i == j]
            for label, *sums in self._centred_sums(left, pairs, sorted({*left, *right}), centres):
                k = self._code(label)
                shift[k, left] = np.array(sums[: len(left)], dtype=float) / weight[k]
                for pair, value in zip(pairs, sums[len(left) :], strict=True):
                    products.setdefault(pair, np.zeros(len(weight)))[k] = value
        moments.mean[:] = np.where(moments.weight[:, None] > 0, offsets + shift, 0.0)
        for (i, j), value in products.items():
            value = value - weight * shift[:, i] * shift[:, j]
            _set_scatter(moments, i, j, np.maximum(value, 0.0) if i == j else value)

    def _centred_sums(
        self,
        left: Sequence[int],
        pairs: Sequence[tuple[int, int]],
        columns: Sequence[int],
        centres: Floats,
    ) -> list[tuple[Any, ...]]:
        """Return sums and products of some columns about the centre of each class."""
        if not pairs:
            return []
        terms = [f"w * z{i}" for i in left] + [f"w * z{i} * z{j}" for i, j in pairs]
        deviations = ", ".join(self._deviation(j) for j in columns)
        names = ", ".join(f"c{j}, e{j}" for j in columns)
        rows = ", ".join(
            f"({self.database.literal(label)}, "
            + ", ".join(self._centre(centres[code, j]) for j in columns)
            + ")"
            for code, label in enumerate(self.reading.labels.tolist())
        )
        features = self.features.select(columns)
        source = f"SELECT y, w, {deviations} FROM ({features}) AS b JOIN m ON b.y = m.k"
        return self.query.by_class(terms, source, prefix=f"WITH m(k, {names}) AS (VALUES {rows}) ")

    def _deviation(self, j: int) -> str:
        """Return the SQL term for z, the deviation of x from the centre of its class.

        The deviation is exact if x is near the centre of its class.
        """
        z = f"(f{j} - c{j} - e{j})"
        if self.unit[j] != 1.0:
            z = f"({z} / {self.database.number(self.unit[j])})"
        return f"{z} AS z{j}"

    def _centre(self, centre: float) -> str:
        """Return a centre as two SQL terms, whose sum is the centre.

        SQLite may misread the 17th digit of a single number.
        """
        short = float(f"{centre:.15g}") if self.database.name == "sqlite" else centre
        return f"{self.database.typed_number(short)}, {self.database.typed_number(centre - short)}"

    def _code(self, label: Any) -> int:
        code = self.codes.get(label_key(label))
        if code is None:  # a class that appeared after the plan was made
            raise LevelNotInPlan(self.target, label)
        return code


def _set_scatter(moments: ClassMoments, i: int, j: int, value: Floats) -> None:
    if moments.detail == "diagonal":
        moments.scatter[:, i] = value
    elif moments.detail == "pooled":
        moments.scatter[i, j] = moments.scatter[j, i] = value.sum()
    else:
        moments.scatter[:, i, j] = moments.scatter[:, j, i] = value


def _blocks(columns: int) -> Iterator[list[int]]:
    for lo in range(0, columns, _BLOCK):
        yield list(range(lo, min(lo + _BLOCK, columns)))


def _min_weight(query: AggregateQuery, plan: ReadPlan) -> ColumnMagnitudes:
    features = EncodedRowsQuery(query, plan)
    features.check()
    weight = query.fetch(f"SELECT MIN(w) FROM ({features.select([])}) AS b WHERE w > 0")[0][0]
    return ColumnMagnitudes(np.zeros(0), np.inf if weight is None else float(weight))


def _count_predictions(
    query: AggregateQuery, plan: ReadPlan, reading: PredictedCountsReading
) -> PredictedCounts:
    """Return the number of rows by predicted class.

    The predicted class is the first class with the largest score.
    """
    features, database = EncodedRowsQuery(query, plan), query.database
    columns = range(len(reading.features))
    scores = ", ".join(
        database.typed_number(float(intercept))
        + "".join(
            f" + {database.number(float(b))}"
            f" * {database.subtract(f'f{j}', reading.anchor.origin[j])}"
            f" / {database.number(reading.anchor.unit[j])}"
            for j, b in enumerate(coef)
        )
        + f" AS s{k}"
        for k, (coef, intercept) in enumerate(zip(reading.coef, reading.intercept, strict=True))
    )
    K = len(reading.intercept)
    predictions = PredictedCounts.empty(reading.features, K)
    largest = [
        " AND ".join(f"s{k} {'>' if i < k else '>='} s{i}" for i in range(K) if i != k)
        for k in range(K)
    ]
    source = f"(SELECT {scores} FROM ({features.select(columns)}) AS b WHERE w > 0) AS s"
    counts = query.totals([_count_term(term) for term in largest], source)
    predictions.counts[:] = [int(count or 0) for count in counts]
    return predictions
