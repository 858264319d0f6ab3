"""Rows in parts, opened: what their columns become, their moments, and some of them in memory.

Opening reads the rows once. What a column becomes is planned from some rows; if the others hold a
class or level that these did not, all rows are surveyed and the plan is made again. After that all
is known that most models need: `moments` of all rows, and `drawn`, rows spread over the parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from discriminant.engines.summing import PartWork
from discriminant.errors import NeedsMemoryError, OptionError, SourceChangedError
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.reading import MomentsReading
from discriminant.moments.summary import Reading, Summary
from discriminant.table.basis import Expanded
from discriminant.table.encoding import Unforeseen
from discriminant.table.parts import Plan, Source
from discriminant.table.schema import Floats, Schema
from discriminant.table.source import Table
from discriminant.table.steps import Expanding, Weighed

S = TypeVar("S", bound=Summary)


@dataclass(frozen=True, slots=True, eq=False)
class Parted:
    """A table that is not in memory. Made by `discriminant.rows`."""

    schema: Schema
    source: Source
    plan: Plan
    drawn: Table  # some of the rows, spread over the parts
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
        drawn = self.drawn
        each = factors[drawn.codes]
        drawn = replace(drawn, weight=each if drawn.weight is None else each * drawn.weight)
        made = replace(self, plan=self.plan.and_then(Weighed(factors)), drawn=drawn)
        made = replace(made, lightest=self.lightest * float(factors.min()))
        if self.moments.detail != "pooled":
            return replace(made, moments=self.moments.scale(factors))
        return made._read_again(self.moments.anchor)

    def expanded(self, basis: Any) -> Parted:
        """The same rows in the features that a basis makes of theirs; they are read once."""
        schema = replace(self.schema, features=basis.names)
        drawn = replace(self.drawn, schema=schema, features=Expanded(self.drawn.features, basis))
        plan = self.plan.and_then(Expanding(basis))
        made = replace(self, schema=schema, plan=plan, drawn=drawn)
        return made._read_again(Anchor.of(np.asarray(drawn.sample())))

    def _read_again(self, anchor: Anchor) -> Parted:
        labels, features = self.schema.labels, self.schema.features
        return replace(self, moments=self.fold(MomentsReading(labels, features, anchor, "pooled")))

    @property
    def whole(self) -> bool:
        """Whether `drawn` holds all rows that count."""
        weight = self.drawn.weight
        held = len(self.drawn) if weight is None else int(np.count_nonzero(weight))
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
