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

from discriminant.engines.summation import PartWork
from discriminant.errors import NeedsMemoryError, OptionError, SourceChangedError
from discriminant.moments.accumulate import MomentsReading
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.summary_base import Reading, Summary
from discriminant.table.basis import Expanded
from discriminant.table.blocks import Floats, Schema
from discriminant.table.encoding import Unforeseen
from discriminant.table.memory import Table
from discriminant.table.partitioned import Expanding, Plan, Source, Weighed

S = TypeVar("S", bound=Summary)


class Some:
    """Rows in memory: those that the plan was made from, and others when asked for."""

    def __init__(self, at_hand: Table, draw: Callable[[], Table] | None = None) -> None:
        self.at_hand, self._draw = at_hand, draw

    @cached_property
    def spread(self) -> Table:
        """Rows from all over the parts."""
        return self.at_hand if self._draw is None else self._draw()

    def changed(self, change: Callable[[Table], Table]) -> Some:
        """The same rows, changed."""
        after = None if self._draw is None else lambda: change(self.spread)
        return Some(change(self.at_hand), after)


@dataclass(frozen=True, slots=True, eq=False)
class Parted:
    """A table that is not in memory. Made by `discriminant.rows`."""

    schema: Schema
    source: Source
    plan: Plan
    some: Some  # of the rows
    moments: ClassMoments  # of all rows
    rows_read: int  # those dropped or of no weight too
    lightest: float = 1.0  # the least weight of a row that counts
    said: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Rows that count."""
        return int(self.moments.rows.sum())

    @property
    def width(self) -> int:
        """How many features."""
        return len(self.schema.features)

    @property
    def drawn(self) -> Table:
        """Some of the rows, spread over the parts."""
        return self.some.spread

    @property
    def held(self) -> int:
        """How many numbers a row holds."""
        return self.width

    def fold(self, reading: Reading[S]) -> S:
        """The sum of a reading over all rows."""
        name = self.source.name
        try:
            found = self.source.summed(PartWork(self.plan, reading)).checked()
        except Unforeseen as new:
            raise SourceChangedError.of_class(name, new.column, new.level) from None
        if found.rows != self.rows_read:
            raise SourceChangedError.of_rows(name, self.rows_read, found.rows)
        if found.total is None:  # as many rows as before, of which none counts any more
            raise SourceChangedError.of_rows(name, len(self), 0)
        return found.total

    def weighed(self, factors: Floats) -> Parted:
        """The same rows, those of each class counted so many times."""

        def weighed(table: Table) -> Table:
            each = factors[table.codes]
            return replace(table, weight=each if table.weight is None else each * table.weight)

        plan = self.plan.and_then(Weighed(factors))
        made = replace(self, plan=plan, some=self.some.changed(weighed))
        made = replace(made, lightest=self.lightest * float(factors.min()))
        if self.moments.detail != "pooled":
            return replace(made, moments=self.moments.scale(factors))
        return made._read_again(self.moments.anchor)

    def expanded(self, basis: Any) -> Parted:
        """The same rows in the features that a basis makes of theirs; they are read once."""
        schema = replace(self.schema, features=basis.names)

        def expanded(table: Table) -> Table:
            return replace(table, schema=schema, features=Expanded(table.features, basis))

        some = self.some.changed(expanded)
        made = replace(self, schema=schema, plan=self.plan.and_then(Expanding(basis)), some=some)
        return made._read_again(Anchor.of(np.asarray(some.at_hand.sample())))

    def _read_again(self, anchor: Anchor) -> Parted:
        labels, features = self.schema.labels, self.schema.features
        return replace(self, moments=self.fold(MomentsReading(labels, features, anchor, "pooled")))

    @property
    def whole(self) -> bool:
        """Whether `drawn` holds all rows that count."""
        weight = self.some.at_hand.weight
        held = len(self.some.at_hand) if weight is None else int(np.count_nonzero(weight))
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


AnyTable: TypeAlias = Table | Parted


def in_memory(table: AnyTable, who: str) -> Table:
    """A table whose rows are at hand; refuses one whose rows are not, unless they are few."""
    if isinstance(table, Parted):
        if table.whole:
            return table.drawn
        raise NeedsMemoryError.of(who, table.source.name, len(table), len(table.drawn))
    return table


def alone(y: object, weight: object) -> None:
    """Refuse labels and weights beside rows in parts, which know their own."""
    for name, given in (("y", y), ("sample_weight", weight)):
        if given is not None:
            allowed = "left out: rows in parts know their own (target=, weight= of rows)"
            raise OptionError.of(name, "given", allowed)
