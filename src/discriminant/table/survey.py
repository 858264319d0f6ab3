"""A survey of all rows: what the columns of a table in parts are like, summed over the parts.

Only columns about which some rows leave a doubt need it: categories, whose levels must all be known
before rows become features, columns that looked constant, and means that fill what is missing.

What becomes of the columns of a table in parts, before all of its rows are read.

Some rows show what most columns are: numbers. Columns that they leave in doubt are surveyed first,
those columns alone:

    categories               all of their levels, and how frequent they are
    what looked constant     whether it is
    what may count the rows  whether it does
    means that fill gaps     of all rows

So the plan is the same as if all rows had been in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import DatabaseError, DiscriminantError
from discriminant.table.blocks import Floats, Labels, check_weight
from discriminant.table.cells import CellKind, Cells, Frame, encode_label_cells
from discriminant.table.column_profile import (
    CellsProfile,
    ColumnProfile,
    Runs,
    describe_constant,
    integer_run,
    is_row_number,
    may_be_row_number,
    merge_runs,
)
from discriminant.table.column_types import ReadOptions, encoding_from_profiles
from discriminant.table.labels import union_labels
from discriminant.table.open import check_classes
from discriminant.table.partitioned import PartialSum, PartitionedSource, ReadPlan, TablePart

_MOST = 100_000  # levels of a column that are kept
_EXACT = 2.0**53
_NONE = (0, 0.0)  # rows and weight of a level without rows


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSurvey:
    """What the cells of a column add up to."""

    name: str
    kind: CellKind
    ordered: bool
    rows: int
    n_missing: int
    low: float = np.inf
    high: float = -np.inf
    whole: bool = True  # whether all numbers are
    runs: Runs | None = None  # if they count the rows
    weight: float = 0.0  # of the cells that are there
    mean: float = 0.0
    tally: dict[str, tuple[int, float]] = field(default_factory=dict)  # rows and weight of levels
    capped: bool = False
    order: tuple[str, ...] = ()  # levels as every part with a value declares them, else empty

    @classmethod
    def from_cells(cls, cells: Cells, weight: Floats | None) -> ColumnSurvey:
        """Of some rows."""
        rows, gaps = len(cells), cells.n_missing
        if cells.kind == "text":
            order = cells.levels if cells.declared else ()
            tally = _tally(cells, weight)
            return cls(cells.name, "text", cells.ordered, rows, gaps, tally=tally, order=order)
        known = ~cells.missing
        exact = cells.values[known]  # integers, which float64 may not tell apart
        values = exact.astype(np.float64)
        by = None if weight is None else weight[known]
        if not len(values):
            return cls(cells.name, cells.kind, cells.ordered, rows, gaps)
        mass = float(len(values) if by is None else by.sum())
        centre = float(values[0]) if np.isfinite(values[0]) else 0.0
        return cls(
            cells.name,
            cells.kind,
            cells.ordered,
            rows,
            gaps,
            exact.min().item(),
            exact.max().item(),
            bool((values == np.floor(values)).all()),
            integer_run(exact) if not gaps else None,
            mass,
            centre + float(np.average(values - centre, weights=by)) if mass else 0.0,
        )

    def __add__(self, other: ColumnSurvey) -> ColumnSurvey:
        """Of the rows of both, the other's after these."""
        if not self.rows or not other.rows:
            return other if not self.rows else self
        weight = self.weight + other.weight
        share = other.weight / weight if weight else 0.0
        tally = dict(self.tally)
        for level, (rows, mass) in other.tally.items():
            before = tally.get(level, (0, 0.0))
            if level in tally or len(tally) < _MOST:
                tally[level] = before[0] + rows, before[1] + mass
        capped = self.capped or other.capped or len(tally) == _MOST
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
            merge_runs(self.runs, other.runs),
            weight,
            self.mean + share * (other.mean - self.mean),
            tally,
            capped,
            known[0].order if known[0].order == known[-1].order else (),
        )

    def _kind_with(self, other: ColumnSurvey) -> CellKind:
        """Of the rows of both; a part in which all is missing does not tell what the cells are."""
        if self.n_missing == self.rows or other.n_missing == other.rows:
            return other.kind if self.n_missing == self.rows else self.kind
        kinds = {self.kind, other.kind}
        if len(kinds) > 1 and "text" in kinds:
            raise DatabaseError.mixed(self.name, sorted(kinds))
        return "number" if kinds == {"boolean", "number"} else self.kind

    @property
    def constant(self) -> str:
        """The number that all rows have, in words, or nothing."""
        return describe_constant(self.low) if self.low == self.high else ""

    @property
    def row_numbers(self) -> bool:
        """Whether the numbers are k, k+1, k+2, ... by row."""
        return is_row_number(self.runs, self.rows)

    @property
    def exceeds_float64(self) -> bool:
        """Whether they are whole numbers that float64 does not hold exactly."""
        far = max(abs(self.low), abs(self.high))
        return self.whole and _EXACT < far < 2.0**64

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels in their declared order, or those of the rows."""
        return self.order or tuple(self.tally)

    @property
    def declared(self) -> bool:
        """Whether every part lists the same levels in the same order."""
        return bool(self.order)

    @property
    def counts(self) -> npt.NDArray[np.integer[Any]]:
        """Rows of each level."""
        return np.array([self.tally.get(k, _NONE)[0] for k in self.levels], dtype=np.int64)

    @property
    def shares(self) -> Floats:
        """Share of each level in the weight."""
        found = np.array([self.tally.get(level, _NONE)[1] for level in self.levels])
        return np.asarray(found / found.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """Of all columns, and the classes."""

    columns: tuple[ColumnSurvey, ...]
    labels: Labels

    def __add__(self, other: Survey) -> Survey:
        """Of the rows of both."""
        columns = tuple(a + b for a, b in zip(self.columns, other.columns, strict=True))
        return Survey(columns, union_labels(self.labels, other.labels))

    def __getitem__(self, name: str) -> ColumnSurvey:
        return next(column for column in self.columns if column.name == name)


@dataclass(frozen=True, slots=True, eq=False)
class SurveyWork:
    """Survey a part."""

    options: ReadOptions
    columns: tuple[str, ...]

    def __call__(self, part: TablePart) -> PartialSum[Survey]:
        """Of the rows of a part."""
        found: Survey | None = None
        rows = 0
        try:
            for frame in part.frames(self.columns):
                if not len(frame):
                    continue
                one = self._of(replace(frame, start=part.start + rows))
                rows += len(frame)
                found = one if found is None else found + one
        except DiscriminantError as fault:
            return PartialSum.from_error(fault, part, rows)
        return PartialSum(found, rows)

    def _of(self, frame: Frame) -> Survey:
        if self.options.missing == "drop" and self.options.target is not None:
            frame = frame.drop_unlabelled(self.options.target)
        columns, start = [frame[name] for name in self.columns], frame.start
        weight = None
        if self.options.weight is not None:
            values = frame[self.options.weight].values
            weight = check_weight(values, len(frame), some=False, start=start)
        assert self.options.target is not None
        labels, _ = encode_label_cells(frame[self.options.target], start=start)
        turned = (c.as_text() if self.options.is_category(c.name) else c for c in columns)
        return Survey(tuple(ColumnSurvey.from_cells(cells, weight) for cells in turned), labels)


def survey_columns(source: PartitionedSource, wishes: ReadOptions, names: Sequence[str]) -> Survey:
    """Read some columns of all rows, once."""
    found = source.map_reduce(SurveyWork(wishes, tuple(names))).check().total
    assert found is not None
    return found


def _tally(cells: Cells, weight: Floats | None) -> dict[str, tuple[int, float]]:
    known = cells.values >= 0
    codes = cells.values[known]
    rows = np.bincount(codes, minlength=len(cells.levels))
    by = None if weight is None else weight[known]
    mass = np.bincount(codes, by, minlength=len(cells.levels))
    return {
        level: (int(rows[k]), float(mass[k])) for k, level in enumerate(cells.levels) if rows[k]
    }


@dataclass(frozen=True, slots=True, eq=False)
class PlanningResult:
    """A plan, and what is said of it; or the columns to be surveyed before there is one."""

    plan: ReadPlan | None
    notes: tuple[str, ...] = ()
    columns_to_survey: tuple[str, ...] = ()


def plan_reading(
    look: Frame,
    wishes: ReadOptions,
    *,
    survey: Survey | None,
    max_classes: int,
    min_classes: int = 2,
) -> PlanningResult:
    """The plan from some rows, and a survey of the columns that these left in doubt.

    Parameters
    ----------
    look
        Some rows, from all over the source.
    survey
        None where there was none yet.
    """
    assert wishes.target is not None
    labels = encode_label_cells(look[wishes.target])[0] if survey is None else survey.labels
    if survey is None:
        doubtful = _doubtful(look, wishes, labels)
        few = isinstance(max_classes, int) and len(labels) <= max_classes
        if doubtful and few:  # else there is no need to survey all labels
            return PlanningResult(None, columns_to_survey=doubtful)
    check_classes(
        look[wishes.target].name,
        labels,
        len(look),
        max_classes,
        whole=False,
        min_classes=min_classes,
    )
    surveyed = {} if survey is None else {column.name: column for column in survey.columns}
    seen: list[ColumnProfile] = [
        surveyed.get(cells.name) or CellsProfile(cells, None, wishes.is_category(cells.name))
        for cells in look.columns
    ]
    encoding, said = encoding_from_profiles(seen, wishes, left_out=look.excluded, named=look.named)
    return PlanningResult(ReadPlan(encoding, labels, wishes.target, wishes.weight), tuple(said))


def _doubtful(look: Frame, wishes: ReadOptions, labels: Labels) -> tuple[str, ...]:
    """Columns of which some rows do not tell enough, target and weight along with them."""
    aside = (wishes.target, wishes.weight)
    names = [c.name for c in look.columns if c.name not in aside and _in_doubt(c, wishes)]
    if not names and len(labels) > 1:
        return ()
    surveyed = {*names, *aside}
    return tuple(name for name in look.names if name in surveyed)


def _in_doubt(cells: Cells, wishes: ReadOptions) -> bool:
    if cells.kind == "text" or wishes.is_category(cells.name):
        return True
    if wishes.missing in ("mean", "indicator") or cells.n_missing == len(cells):
        return True
    counting = cells.kind == "number" and not cells.n_missing and may_be_row_number(cells.values)
    return bool(CellsProfile(cells, None).constant) or counting


def columns_to_resurvey(look: Frame, wishes: ReadOptions) -> tuple[str, ...]:
    """What to survey where rows held a class that was not foreseen."""
    assert wishes.target is not None
    doubtful = _doubtful(look, wishes, np.zeros(0))
    return doubtful or (wishes.target,)


@dataclass(frozen=True, slots=True)
class LevelSet:
    """Texts that were met; of more than `most` the first by name, one more than that."""

    texts: frozenset[str]
    most: int

    @classmethod
    def limited(cls, texts: Iterable[str], most: int) -> LevelSet:
        """Of some cells."""
        found = frozenset(texts)
        return cls(found if len(found) <= most else frozenset(sorted(found)[: most + 1]), most)

    def __add__(self, other: LevelSet) -> LevelSet:
        """Met in either."""
        return LevelSet.limited(self.texts | other.texts, self.most)


@dataclass(frozen=True, slots=True)
class LevelsWork:
    """Look at one column of a part."""

    column: str
    most: int  # levels that are wanted; it is no more than noticed that there are others

    @property
    def columns(self) -> tuple[str, ...]:
        """That column alone."""
        return (self.column,)

    def __call__(self, part: TablePart) -> PartialSum[LevelSet]:
        """The levels of its rows."""
        found = LevelSet(frozenset(), self.most)
        rows = 0
        try:
            for frame in part.frames([self.column]):
                cells = frame[self.column].as_text()
                rows += len(frame)
                found += LevelSet.limited(_present(cells), self.most)
        except DiscriminantError as fault:
            return PartialSum.from_error(fault, part, rows)
        return PartialSum(found, rows)


def _present(cells: Cells) -> Iterable[str]:
    some = np.unique(cells.values)
    return (cells.levels[code] for code in some.tolist() if code >= 0)
