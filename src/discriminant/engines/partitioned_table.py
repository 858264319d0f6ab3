"""Rows in parts, opened: what their columns become, their moments, and some of them in memory.

Opening reads the rows once. What a column becomes is planned from some rows; if the others hold a
class or level that these did not, all rows are surveyed and the plan is made again. After that all
is known that most models need: `moments` of all rows. Some models need rows: `drawn`, spread over
all parts, are read when they are first asked for, where the rows of the plan are not spread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np

from discriminant.engines.summation import ReadingTask
from discriminant.errors import NeedsMemoryError, OptionError, SourceChangedError
from discriminant.moments.accumulate import MomentsReading
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.summary_base import Reading, Summary
from discriminant.table.basis import ExpandedFeatures
from discriminant.table.blocks import Floats, Schema
from discriminant.table.encoding import UnknownLevel
from discriminant.table.memory import Table
from discriminant.table.partitioned import Expand, PartitionedSource, ReadPlan, Reweight

S = TypeVar("S", bound=Summary)


class RowSample:
    """Rows in memory: those that the plan was made from, and others when asked for."""

    def __init__(self, at_hand: Table, draw: Callable[[], Table] | None = None) -> None:
        self.planning_rows, self._draw = at_hand, draw

    @cached_property
    def spread_rows(self) -> Table:
        """Rows from all over the parts."""
        return self.planning_rows if self._draw is None else self._draw()

    def map(self, change: Callable[[Table], Table]) -> RowSample:
        """The same rows, changed."""
        after = None if self._draw is None else lambda: change(self.spread_rows)
        return RowSample(change(self.planning_rows), after)


@dataclass(frozen=True, slots=True, eq=False)
class PartitionedTable:
    """A table that is not in memory. Made by `discriminant.rows`."""

    schema: Schema
    source: PartitionedSource
    plan: ReadPlan
    row_sample: RowSample  # of the rows
    moments: ClassMoments  # of all rows
    rows_read: int  # those dropped or of no weight too
    min_weight: float = 1.0  # the least weight of a row that counts
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Rows that count."""
        return int(self.moments.rows.sum())

    @property
    def width(self) -> int:
        """How many features."""
        return len(self.schema.features)

    @property
    def sample(self) -> Table:
        """Some of the rows, spread over the parts."""
        return self.row_sample.spread_rows

    @property
    def held(self) -> int:
        """How many numbers a row holds."""
        return self.width

    def fold(self, reading: Reading[S]) -> S:
        """The sum of a reading over all rows."""
        name = self.source.name
        try:
            found = self.source.map_reduce(ReadingTask(self.plan, reading)).check()
        except UnknownLevel as new:
            raise SourceChangedError.of_class(name, new.column, new.level) from None
        if found.rows != self.rows_read:
            raise SourceChangedError.of_rows(name, self.rows_read, found.rows)
        if found.total is None:  # as many rows as before, of which none counts any more
            raise SourceChangedError.of_rows(name, len(self), 0)
        return found.total

    def reweight(self, factors: Floats) -> PartitionedTable:
        """The same rows, those of each class counted so many times."""

        def weighed(table: Table) -> Table:
            each = factors[table.codes]
            return replace(table, weight=each if table.weight is None else each * table.weight)

        plan = self.plan.with_transforms(Reweight(factors))
        made = replace(self, plan=plan, row_sample=self.row_sample.map(weighed))
        made = replace(made, min_weight=self.min_weight * float(factors.min()))
        if self.moments.detail != "pooled":
            return replace(made, moments=self.moments.scale(factors))
        return made._read_again(self.moments.anchor)

    def expand(self, basis: Any) -> PartitionedTable:
        """The same rows in the features that a basis makes of theirs; they are read once."""
        schema = replace(self.schema, features=basis.names)

        def expanded(table: Table) -> Table:
            return replace(table, schema=schema, features=ExpandedFeatures(table.features, basis))

        some = self.row_sample.map(expanded)
        made = replace(
            self, schema=schema, plan=self.plan.with_transforms(Expand(basis)), row_sample=some
        )
        return made._read_again(Anchor.from_sample(np.asarray(some.planning_rows.sample())))

    def _read_again(self, anchor: Anchor) -> PartitionedTable:
        labels, features = self.schema.labels, self.schema.features
        return replace(self, moments=self.fold(MomentsReading(labels, features, anchor, "pooled")))

    @property
    def sample_is_complete(self) -> bool:
        """Whether `drawn` holds all rows that count."""
        weight = self.row_sample.planning_rows.weight
        held = (
            len(self.row_sample.planning_rows) if weight is None else int(np.count_nonzero(weight))
        )
        return held == len(self)

    def complete(self) -> None:
        """Remove the checkpoint, if there is one: all that was to be done is done."""
        journal = getattr(self.source, "journal", None)
        if journal is not None:
            journal.complete()

    def __repr__(self) -> str:
        """One line: where it is, and how many rows, features and classes."""
        return (
            f"Rows({self.source.name}: {len(self)} rows, {self.width} features, "
            f"{len(self.schema.labels)} classes)"
        )


AnyTable: TypeAlias = Table | PartitionedTable


def table_in_memory(table: AnyTable, who: str) -> Table:
    """A table whose rows are at hand; refuses one whose rows are not, unless they are few."""
    if isinstance(table, PartitionedTable):
        if table.sample_is_complete:
            return table.sample
        raise NeedsMemoryError.of(who, table.source.name, len(table), len(table.sample))
    return table


def reject_separate_labels(y: object, weight: object) -> None:
    """Refuse labels and weights beside rows in parts, which know their own."""
    for name, given in (("y", y), ("sample_weight", weight)):
        if given is not None:
            allowed = "left out: rows in parts know their own (target=, weight= of rows)"
            raise OptionError.of(name, "given", allowed)
