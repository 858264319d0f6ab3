"""Survey of a partitioned table: statistics of columns over all rows, for planning its encoding.

For most columns a sample of rows shows that the column is numeric. Only columns for which a sample
is not enough are surveyed before the table is read. The survey determines for

    categories               all of their levels, and how frequent they are
    constants in the sample  whether they are constant in all rows
    possible row numbers     whether they number all rows
    means that fill gaps     means over all rows

With a survey, the plan is the same as if all rows were in memory. The surveys of two sets of rows
can be added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import DatabaseError, DiscriminantError
from discriminant.table.blocks import Floats, Labels, check_weight
from discriminant.table.column_cells import CellKind, ColumnCells, Frame, encode_label_cells
from discriminant.table.column_profile import (
    ColumnProfile,
    MemoryColumnProfile,
    Runs,
    describe_constant,
    integer_run,
    is_row_number,
    join_integer_runs,
    may_be_row_number,
)
from discriminant.table.column_types import ReadOptions, encoding_from_profiles
from discriminant.table.labels import union_labels
from discriminant.table.load import check_classes
from discriminant.table.partitioned_source import PartialSum, PartitionedSource, ReadPlan, TablePart

_MAX_LEVELS = 100_000  # largest number of levels of a column that are counted
_EXACT = 2.0**53  # float64 does not represent every larger integer
_NONE = (0, 0.0)  # rows and weight of a level without rows


@dataclass(frozen=True, slots=True, eq=False)
class PlanningResult:
    """Either a plan with notes, or the columns that must be surveyed before a plan can be made."""

    plan: ReadPlan | None
    notes: tuple[str, ...] = ()
    columns_to_survey: tuple[str, ...] = ()


def plan_reading(
    sample: Frame,
    options: ReadOptions,
    *,
    survey: Survey | None,
    max_classes: int,
    min_classes: int = 2,
) -> PlanningResult:
    """Make a plan from a sample of rows and a survey of the columns that need a survey.

    Parameters
    ----------
    sample
        Rows spread over the source.
    survey
        Survey of columns, or None if no column has been surveyed yet.
    """
    assert options.target is not None
    target = sample[options.target]
    labels = encode_label_cells(target)[0] if survey is None else survey.labels
    if survey is None:
        undecided = _undecided_columns(sample, options, labels)
        few = isinstance(max_classes, int) and len(labels) <= max_classes
        if undecided and few:  # too many labels are an error, which needs no survey
            return PlanningResult(None, columns_to_survey=undecided)
    check_classes(
        target.name, labels, len(sample), max_classes, whole=False, min_classes=min_classes
    )
    surveyed = {} if survey is None else {column.name: column for column in survey.columns}
    profiles: list[ColumnProfile] = [
        surveyed.get(cells.name)
        or MemoryColumnProfile(cells, None, options.is_category(cells.name))
        for cells in sample.columns
    ]
    encoding, notes = encoding_from_profiles(
        profiles, options, excluded=sample.excluded, named=sample.named
    )
    plan = ReadPlan(
        encoding, labels, options.target, options.weight, drop_unlabelled=options.drops_unlabelled
    )
    return PlanningResult(plan, tuple(notes))


def columns_to_survey_for_new_level(sample: Frame, options: ReadOptions) -> tuple[str, ...]:
    """Return the columns to survey because a class or level in the rows is not in the plan."""
    assert options.target is not None
    return _undecided_columns(sample, options, np.zeros(0)) or (options.target,)


def survey_columns(source: PartitionedSource, options: ReadOptions, names: Sequence[str]) -> Survey:
    """Survey some columns over all rows of a source, in one pass."""
    survey = source.map_reduce(SurveyWork(options, tuple(names))).check().total
    assert survey is not None
    return survey


def _undecided_columns(sample: Frame, options: ReadOptions, labels: Labels) -> tuple[str, ...]:
    """Return the columns that need a survey, and the target and the weight.

    If no column needs one and the sample has more than one class, no columns are returned.
    """
    roles = (options.target, options.weight)
    names = [c.name for c in sample.columns if c.name not in roles and _is_undecided(c, options)]
    if not names and len(labels) > 1:
        return ()
    undecided = {*names, *roles}
    return tuple(name for name in sample.names if name in undecided)


def _is_undecided(cells: ColumnCells, options: ReadOptions) -> bool:
    if cells.kind == "text" or options.is_category(cells.name):
        return True
    if options.missing in ("mean", "indicator") or cells.n_missing == len(cells):
        return True
    counting = cells.kind == "number" and not cells.n_missing and may_be_row_number(cells.values)
    return bool(MemoryColumnProfile(cells, None).constant) or counting


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSurvey:
    """Profile of a column, summed over parts; see `column_profile.ColumnProfile`."""

    name: str
    kind: CellKind
    ordered: bool
    rows: int
    n_missing: int
    low: float = np.inf
    high: float = -np.inf
    whole: bool = True  # whether all numbers are integers
    runs: Runs | None = None  # runs of consecutive integers; None for other numbers
    weight: float = 0.0  # total weight of the cells that are not missing
    mean: float = 0.0
    tally: dict[str, tuple[int, float]] = field(default_factory=dict)  # rows and weight of levels
    capped: bool = False
    order: tuple[str, ...] = ()  # levels declared by every part that has values, otherwise empty

    @classmethod
    def from_cells(cls, cells: ColumnCells, weight: Floats | None) -> ColumnSurvey:
        """Survey the column in some rows."""
        rows, n_missing = len(cells), cells.n_missing
        if cells.kind == "text":
            order = cells.levels if cells.declared else ()
            tally = _tally(cells, weight)
            return cls(cells.name, "text", cells.ordered, rows, n_missing, tally=tally, order=order)
        known = ~cells.missing
        exact = cells.values[known]  # these may be different integers that are equal in float64
        values = exact.astype(np.float64)
        by = None if weight is None else weight[known]
        if not len(values):
            return cls(cells.name, cells.kind, cells.ordered, rows, n_missing)
        mass = float(len(values) if by is None else by.sum())
        centre = float(values[0]) if np.isfinite(values[0]) else 0.0
        return cls(
            cells.name,
            cells.kind,
            cells.ordered,
            rows,
            n_missing,
            exact.min().item(),
            exact.max().item(),
            bool((values == np.floor(values)).all()),
            integer_run(exact) if not n_missing else None,
            mass,
            centre + float(np.average(values - centre, weights=by)) if mass else 0.0,
        )

    def __add__(self, other: ColumnSurvey) -> ColumnSurvey:
        """Add two surveys; the rows of `other` follow those of this survey."""
        if not self.rows or not other.rows:
            return other if not self.rows else self
        weight = self.weight + other.weight
        share = other.weight / weight if weight else 0.0
        tally = dict(self.tally)
        for level, (rows, mass) in other.tally.items():
            before = tally.get(level, _NONE)
            if level in tally or len(tally) < _MAX_LEVELS:
                tally[level] = before[0] + rows, before[1] + mass
        capped = self.capped or other.capped or len(tally) == _MAX_LEVELS
        known = [one for one in (self, other) if one.n_missing < one.rows] or [self]
        return ColumnSurvey(
            self.name,
            self._kind_with(other),
            all(one.ordered for one in known),
            self.rows + other.rows,
            self.n_missing + other.n_missing,
            min(self.low, other.low),
            max(self.high, other.high),
            self.whole and other.whole,
            join_integer_runs(self.runs, other.runs),
            weight,
            self.mean + share * (other.mean - self.mean),
            tally,
            capped,
            known[0].order if known[0].order == known[-1].order else (),
        )

    def _kind_with(self, other: ColumnSurvey) -> CellKind:
        """Return the kind of the column in both parts, ignoring a part without values."""
        if self.n_missing == self.rows or other.n_missing == other.rows:
            return other.kind if self.n_missing == self.rows else self.kind
        kinds = {self.kind, other.kind}
        if len(kinds) > 1 and "text" in kinds:
            raise DatabaseError.mixed(self.name, sorted(kinds))
        return "number" if kinds == {"boolean", "number"} else self.kind

    @property
    def constant(self) -> str:
        """Description of the value of a constant column; empty if the column is not constant."""
        return describe_constant(self.low) if self.low == self.high else ""

    @property
    def row_numbers(self) -> bool:
        """Whether the column numbers the rows: k, k+1, k+2, ..."""
        return is_row_number(self.runs, self.rows)

    @property
    def exceeds_float64(self) -> bool:
        """Whether some integers of the column cannot be represented exactly by float64."""
        far = max(abs(self.low), abs(self.high))
        return self.whole and _EXACT < far < 2.0**64

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels in their declared order; if no order is declared, the levels that occur."""
        return self.order or tuple(self.tally)

    @property
    def declared(self) -> bool:
        """Whether every part declares the same levels in the same order."""
        return bool(self.order)

    @property
    def counts(self) -> npt.NDArray[np.integer[Any]]:
        """Number of rows of each level."""
        return np.array([self.tally.get(k, _NONE)[0] for k in self.levels], dtype=np.int64)

    @property
    def shares(self) -> Floats:
        """Share of each level in the total weight."""
        weights = np.array([self.tally.get(level, _NONE)[1] for level in self.levels])
        return np.asarray(weights / weights.sum())


def _tally(cells: ColumnCells, weight: Floats | None) -> dict[str, tuple[int, float]]:
    known = cells.values >= 0
    codes = cells.values[known]
    rows = np.bincount(codes, minlength=len(cells.levels))
    by = None if weight is None else weight[known]
    mass = np.bincount(codes, by, minlength=len(cells.levels))
    return {
        level: (int(rows[k]), float(mass[k])) for k, level in enumerate(cells.levels) if rows[k]
    }


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """Surveys of some columns, and the labels of the rows."""

    columns: tuple[ColumnSurvey, ...]
    labels: Labels

    def __add__(self, other: Survey) -> Survey:
        """Add the surveys of two sets of rows."""
        columns = tuple(a + b for a, b in zip(self.columns, other.columns, strict=True))
        return Survey(columns, union_labels(self.labels, other.labels))

    def __getitem__(self, name: str) -> ColumnSurvey:
        return next(column for column in self.columns if column.name == name)


@dataclass(frozen=True, slots=True, eq=False)
class SurveyWork:
    """Survey some columns of a part."""

    options: ReadOptions
    columns: tuple[str, ...]

    def __call__(self, part: TablePart) -> PartialSum[Survey]:
        """Return the survey of the rows of a part."""
        total: Survey | None = None
        rows = 0
        try:
            for frame in part.frames(self.columns):
                if not len(frame):
                    continue
                survey = self._survey(replace(frame, start=part.start + rows))
                rows += len(frame)
                total = survey if total is None else total + survey
        except DiscriminantError as error:
            return PartialSum.from_error(error, part, rows)
        return PartialSum(total, rows)

    def _survey(self, frame: Frame) -> Survey:
        options = self.options
        assert options.target is not None
        if options.drops_unlabelled:
            frame = frame.drop_unlabelled(options.target)
        columns, start = [frame[name] for name in self.columns], frame.start
        weight = None
        if options.weight is not None:
            values = frame[options.weight].values
            weight = check_weight(values, len(frame), some=False, start=start)
        labels, _ = encode_label_cells(frame[options.target], start=start)
        cells = (c.as_text() if options.is_category(c.name) else c for c in columns)
        return Survey(tuple(ColumnSurvey.from_cells(each, weight) for each in cells), labels)


@dataclass(frozen=True, slots=True)
class LevelSet:
    """Distinct texts of a column.

    If there are more than `most` texts, only the alphabetically first `most + 1` texts are stored.
    """

    texts: frozenset[str]
    most: int

    @classmethod
    def limited(cls, texts: Iterable[str], most: int) -> LevelSet:
        """Create from some texts, of which at most `most + 1` are stored."""
        distinct = frozenset(texts)
        if len(distinct) > most:
            distinct = frozenset(sorted(distinct)[: most + 1])
        return cls(distinct, most)

    def __add__(self, other: LevelSet) -> LevelSet:
        """Return the union of both sets."""
        return LevelSet.limited(self.texts | other.texts, self.most)


@dataclass(frozen=True, slots=True)
class LevelsWork:
    """Collect the levels of one column of a part."""

    column: str
    most: int  # with more levels than this, the set is truncated

    @property
    def columns(self) -> tuple[str, ...]:
        """Name of the column that is read."""
        return (self.column,)

    def __call__(self, part: TablePart) -> PartialSum[LevelSet]:
        """Return the levels of the rows of a part."""
        levels = LevelSet(frozenset(), self.most)
        rows = 0
        try:
            for frame in part.frames([self.column]):
                cells = frame[self.column].as_text()
                rows += len(frame)
                codes = np.unique(cells.values).tolist()
                levels += LevelSet.limited(
                    (cells.levels[code] for code in codes if code >= 0), self.most
                )
        except DiscriminantError as error:
            return PartialSum.from_error(error, part, rows)
        return PartialSum(levels, rows)
