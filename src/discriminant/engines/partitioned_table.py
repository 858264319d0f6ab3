"""Partitioned tables: not in memory, but with an encoding, class moments and a sample of rows.

Most models need only the moments of all rows, which one pass computes. Other models also need a few
rows. The sample from which the encoding was planned is in memory. If this sample has only the first
rows of some parts, a second sample, spread over all parts, is read on first use.
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
from discriminant.table.blocks import Floats, Places, Schema
from discriminant.table.encoding import LevelNotInPlan
from discriminant.table.memory import Table
from discriminant.table.partitioned_source import (
    ExpandBasis,
    PartitionedSource,
    ReadPlan,
    ReweightClasses,
    SelectFeatures,
)

S = TypeVar("S", bound=Summary)


class PlanningSample:
    """Sample in memory: the rows used for planning, and rows spread over all parts.

    The rows spread over all parts are read on first use.
    """

    def __init__(
        self, planning_rows: Table, read_sample: Callable[[], Table] | None = None
    ) -> None:
        self.planning_rows, self._read_sample = planning_rows, read_sample

    @cached_property
    def spread_rows(self) -> Table:
        """Sample of rows spread over all parts."""
        return self.planning_rows if self._read_sample is None else self._read_sample()

    def map(self, transform: Callable[[Table], Table]) -> PlanningSample:
        """Apply a function to both tables of the sample."""
        read_sample = None if self._read_sample is None else lambda: transform(self.spread_rows)
        return PlanningSample(transform(self.planning_rows), read_sample)


@dataclass(frozen=True, slots=True, eq=False)
class PartitionedTable:
    """A table whose rows are not in memory, as returned by `discriminant.rows`."""

    schema: Schema
    source: PartitionedSource
    plan: ReadPlan
    row_sample: PlanningSample
    moments: ClassMoments  # class moments of all rows
    rows_read: int  # including rows that were dropped or have weight zero
    min_weight: float = 1.0  # smallest positive weight of a row
    rows_of_weight_zero: int = 0
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of rows with positive weight."""
        return int(self.moments.rows.sum())

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.schema.features)

    @property
    def sample(self) -> Table:
        """Sample of rows spread over the parts."""
        return self.row_sample.spread_rows

    def fold(self, reading: Reading[S]) -> S:
        """Add up, over all blocks of rows, what `reading` computes for each block."""
        name = self.source.name
        try:
            result = self.source.map_reduce(ReadingTask(self.plan, reading)).check()
        except LevelNotInPlan as new:
            raise SourceChangedError.of_class(name, new.column, new.level) from None
        if result.rows != self.rows_read:
            raise SourceChangedError.of_rows(name, self.rows_read, result.rows)
        if result.total is None:  # after a change of the weights, none is positive
            raise SourceChangedError.of_rows(name, len(self), 0)
        return result.total

    def reweight(self, factors: Floats) -> PartitionedTable:
        """Multiply the weight of each row by the factor of its class."""

        def reweight(table: Table) -> Table:
            weight = factors[table.codes]
            return replace(table, weight=weight if table.weight is None else weight * table.weight)

        table = replace(
            self,
            plan=self.plan.with_transforms(ReweightClasses(factors)),
            row_sample=self.row_sample.map(reweight),
            min_weight=self.min_weight * float(factors.min()),
        )
        if self.moments.detail != "pooled":
            return replace(table, moments=self.moments.scale(factors))
        return table._with_pooled_moments(self.moments.anchor)

    def select(self, places: Places) -> PartitionedTable:
        """Return the table with the given features, in that order."""
        schema = replace(self.schema, features=tuple(self.schema.features[j] for j in places))
        return replace(
            self,
            schema=schema,
            plan=self.plan.with_transforms(SelectFeatures(places)),
            row_sample=self.row_sample.map(lambda table: table.select(places)),
            moments=self.moments.select(places.tolist()),
        )

    def expand(self, basis: Any) -> PartitionedTable:
        """Return the table with its features expanded in a basis, after one pass over the rows."""
        schema = replace(self.schema, features=basis.names)

        def expand(table: Table) -> Table:
            return replace(table, schema=schema, features=ExpandedFeatures(table.features, basis))

        row_sample = self.row_sample.map(expand)
        plan = self.plan.with_transforms(ExpandBasis(basis))
        table = replace(self, schema=schema, plan=plan, row_sample=row_sample)
        return table._with_pooled_moments(
            Anchor.from_sample(np.asarray(row_sample.planning_rows.sample()))
        )

    def _with_pooled_moments(self, anchor: Anchor) -> PartitionedTable:
        labels, features = self.schema.labels, self.schema.features
        return replace(self, moments=self.fold(MomentsReading(labels, features, anchor, "pooled")))

    @property
    def sample_is_complete(self) -> bool:
        """Whether the sample contains all rows with positive weight."""
        rows = self.row_sample.planning_rows
        count = len(rows) if rows.weight is None else int(np.count_nonzero(rows.weight))
        return count == len(self)

    def complete(self) -> None:
        """Remove the checkpoint, if there is one."""
        journal = getattr(self.source, "journal", None)
        if journal is not None:
            journal.complete()

    def __repr__(self) -> str:
        return (
            f"Rows({self.source.name}: {len(self)} rows, {self.width} features, "
            f"{len(self.schema.labels)} classes)"
        )


AnyTable: TypeAlias = Table | PartitionedTable


def table_in_memory(table: AnyTable, what: str) -> Table:
    """Return a table whose rows are in memory: the table itself, or a sample that has all rows.

    Raise NeedsMemoryError, which names `what`, if the sample does not have all rows.
    """
    if isinstance(table, PartitionedTable):
        if table.sample_is_complete:
            return table.sample
        raise NeedsMemoryError.of(what, table.source.name, len(table), len(table.sample))
    return table


def reject_separate_labels(y: object, weight: object) -> None:
    """Raise OptionError if labels or weights are passed together with a partitioned table."""
    for name, value in (("y", y), ("sample_weight", weight)):
        if value is not None:
            allowed = "left out: a partitioned table has its own (target=, weight= of rows)"
            raise OptionError.of(name, "given", allowed)
