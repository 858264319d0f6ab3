"""What there is to know of a column before it is said what becomes of it.

Of columns in memory it is worked out when it is asked for (`CellsSeen`); of rows in parts it is
summed over all of them (`table.survey`), and adds.

Row numbers: a column of k, k+1, k+2 and so on is a position, not a feature.

    rows in memory    whole numbers that go up by one from row to row
    rows in parts     they do so in every part, and the parts, put in order, go on from one another
    some rows         whole numbers, all different: whatever lies between them, they may count rows
    sums of columns   whole numbers, all different, from k to k + rows - 1, for there is no order

A few rows may well be numbered by a measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from discriminant.table.blocks import Floats
from discriminant.table.cells import CellKind, Cells
from discriminant.table.text_values import ParsedTexts

Numbers: TypeAlias = npt.NDArray[Any]
Runs: TypeAlias = tuple[tuple[float, float], ...]  # first and last of each; integers stay exact

MIN_COUNTED_ROWS = 20  # rows below which 1, 2, 3, ... may well be a measurement


def integer_run(values: Numbers) -> Runs | None:
    """First and last of numbers that count their rows, else None.

    >>> [integer_run(np.array(values)) for values in ([3.0, 4.0, 5.0], [3.0, 5.0], [0.5])]
    [((3.0, 5.0),), None, None]
    """
    first, last, rows = values[0].item(), values[-1].item(), len(values)
    if not float(first).is_integer() or last - first != rows - 1:
        return None
    counting = bool((np.diff(values) == 1).all())
    return ((first, last),) if counting else None


def merge_runs(left: Runs | None, right: Runs | None) -> Runs | None:
    """Runs of two sets of rows; those that go on from one another are one. None if they overlap.

    >>> merge_runs(((1.0, 4.0), (9.0, 9.0)), ((5.0, 8.0),))
    ((1.0, 9.0),)
    """
    if left is None or right is None:
        return None
    found: list[tuple[float, float]] = []
    for first, last in sorted((*left, *right)):
        if found and first <= found[-1][1]:
            return None
        if found and first == found[-1][1] + 1:
            first = found.pop()[0]
        found.append((first, last))
    return tuple(found)


def is_row_number(runs: Runs | None, rows: int) -> bool:
    """Whether all rows are one run."""
    return runs is not None and len(runs) == 1 and rows >= MIN_COUNTED_ROWS


def may_be_row_number(values: Numbers) -> bool:
    """Whether some rows of a column leave it open that it counts all of them.

    >>> steps = np.arange(5, 500, 7)
    >>> [may_be_row_number(values) for values in (steps, steps / 2, np.ones(30))]
    [True, False, False]
    """
    if len(values) < MIN_COUNTED_ROWS:
        return False
    return _differ(values[:MIN_COUNTED_ROWS]) and _differ(
        values
    )  # mostly the first few show that it does not


def _differ(values: Numbers) -> bool:
    """Whether numbers are whole and all different."""
    whole = values.dtype.kind != "f" or bool((np.floor(values) == values).all())
    return whole and len(np.unique(values)) == len(values)


_EXACT = 2.0**53


class ColumnProfile(Protocol):
    """What the cells of a column are like."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> CellKind: ...

    @property
    def ordered(self) -> bool:
        """Whether levels have an order of their own."""
        ...

    @property
    def declared(self) -> bool:
        """Whether the source lists the levels, in an order of its own."""
        ...

    @property
    def rows(self) -> int: ...

    @property
    def n_missing(self) -> int:
        """How many are missing."""
        ...

    @property
    def constant(self) -> str:
        """The number that all rows have, in words, or nothing."""
        ...

    @property
    def row_numbers(self) -> bool:
        """Whether the numbers are k, k+1, k+2, ... by row."""
        ...

    @property
    def exceeds_float64(self) -> bool:
        """Whether they are whole numbers that float64 does not hold exactly."""
        ...

    @property
    def mean(self) -> float:
        """Of the cells that are there, by weight."""
        ...

    @property
    def levels(self) -> tuple[str, ...]:
        """All that a category may be, in their own order if they have one."""
        ...

    @property
    def counts(self) -> npt.NDArray[np.integer[Any]]:
        """Rows of each level."""
        ...

    @property
    def shares(self) -> Floats:
        """Share of each level in the weight of the cells that are there."""
        ...

    @property
    def capped(self) -> bool:
        """Whether there are more levels than were kept."""
        ...


@dataclass(eq=False)
class CellsProfile:
    """Of a column in memory."""

    cells: Cells
    weight: Floats | None
    as_text: bool = False  # a category, though it looks like numbers
    capped: bool = False  # in memory all levels are kept

    @property
    def name(self) -> str:
        """Of the column."""
        return self.cells.name

    @property
    def kind(self) -> CellKind:
        """Of its cells."""
        return "text" if self.as_text else self.cells.kind

    @property
    def ordered(self) -> bool:
        """Whether levels have an order of their own."""
        return self.cells.ordered

    @property
    def declared(self) -> bool:
        """Whether the source lists the levels, in an order of its own."""
        return self.cells.declared

    @property
    def rows(self) -> int:
        """How many."""
        return len(self.cells)

    @cached_property
    def n_missing(self) -> int:
        """How many are missing."""
        return self.cells.n_missing

    @cached_property
    def constant(self) -> str:
        """The number that all rows have, in words, or nothing; mostly seen at once."""
        values = self.cells.values
        start = values[:100]
        if len(values) < 2 or ((start != start[0]).any() and not np.isnan(float(start[0]))):
            return ""
        known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
        low, high = known.min(), known.max()
        return describe_constant(low.item()) if low == high else ""

    @cached_property
    def row_numbers(self) -> bool:
        """Whether the numbers are k, k+1, k+2, ... by row."""
        return self.rows >= MIN_COUNTED_ROWS and is_row_number(
            integer_run(self.cells.values), self.rows
        )

    @cached_property
    def exceeds_float64(self) -> bool:
        """Whether they are whole numbers that float64 does not hold exactly."""
        values = self.cells.values
        if values.dtype.itemsize < 8 or not len(values):
            return False
        high, low = np.nanmax(values), np.nanmin(values)
        if not (high > _EXACT or low < -_EXACT):
            return False
        if values.dtype.kind != "f":
            return True
        some = values[np.isfinite(values)]
        return bool((some == np.floor(some)).all() and max(abs(high), abs(low)) < 2.0**64)

    @cached_property
    def mean(self) -> float:
        """Of the cells that are there, by weight, about one of them."""
        known = ~self.cells.missing
        by = None if self.weight is None else self.weight[known]
        values = self.cells.values[known].astype(np.float64, copy=False)
        centre = float(values[0]) if len(values) and np.isfinite(values[0]) else 0.0
        return centre + float(np.average(values - centre, weights=by))

    @property
    def levels(self) -> tuple[str, ...]:
        """All that it may be."""
        return self._text.levels

    @cached_property
    def counts(self) -> npt.NDArray[np.integer[Any]]:
        """Rows of each level."""
        return self._counted(None)

    @cached_property
    def shares(self) -> Floats:
        """Share of each level."""
        found = self._counted(self.weight).astype(np.float64)
        return np.asarray(found / found.sum())

    @cached_property
    def _text(self) -> Cells:
        return self.cells.as_text()

    def _counted(self, weight: Floats | None) -> npt.NDArray[Any]:
        codes = self._text.values
        known = codes >= 0
        by = None if weight is None else weight[known]
        return np.bincount(codes[known], by, minlength=len(self.levels))


@dataclass(eq=False)
class ParsedTextProfile:
    """Of a column of texts that are numbers or dates; texts that mean missing are gaps."""

    seen: ColumnProfile
    written: ParsedTexts
    ordered: bool = False
    declared: bool = False
    row_numbers: bool = False  # who groups digits does not count rows
    exceeds_float64: bool = False
    capped: bool = False

    @property
    def name(self) -> str:
        """Of the column."""
        return self.seen.name

    @property
    def kind(self) -> CellKind:
        """Number or date."""
        return self.written.kind

    @property
    def rows(self) -> int:
        """How many."""
        return self.seen.rows

    @property
    def n_missing(self) -> int:
        """How many are missing."""
        return self.rows - int(sum(self._known(self.seen.counts).values()))

    @property
    def constant(self) -> str:
        """The number that all rows have, in words, or nothing."""
        found = set(self.written.values.values())
        return describe_constant(found.pop()) if len(found) == 1 and self.rows > 1 else ""

    @property
    def mean(self) -> float:
        """Of the cells that are there, by weight, about one of them."""
        shares = self._known(self.seen.shares)
        values = [self.written.values[text] for text in shares]
        weights = list(shares.values())
        return values[0] + float(np.average(np.array(values) - values[0], weights=weights))

    @property
    def levels(self) -> tuple[str, ...]:
        """Of numbers none."""
        return ()

    @property
    def counts(self) -> npt.NDArray[np.integer[Any]]:
        """Of none."""
        return np.zeros(0, dtype=np.int64)

    @property
    def shares(self) -> Floats:
        """Of none."""
        return np.zeros(0)

    def _known(self, by_level: npt.NDArray[Any]) -> dict[str, Any]:
        pairs = zip(self.seen.levels, by_level.tolist(), strict=True)
        return {text: value for text, value in pairs if value and text in self.written.values}


def describe_constant(value: float) -> str:
    """That a column is constant, in words; beyond 2^53 float64 may have rounded it.

    >>> describe_constant(1.5), describe_constant(2**60)
    ('1.5 in every row', '1152921504606846976 in every row')
    """
    if isinstance(value, float) and value.is_integer() and abs(value) >= _EXACT:
        return (
            f"{value:g} in every row after rounding to float64; if these are identifiers, store "
            "them as texts"
        )
    return f"{value:g} in every row" if isinstance(value, float) else f"{value} in every row"


def observed_levels(seen: ColumnProfile) -> Sequence[str]:
    """Levels that some row has, sorted."""
    return sorted(level for level, rows in zip(seen.levels, seen.counts, strict=True) if rows)
