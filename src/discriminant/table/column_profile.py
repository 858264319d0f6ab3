"""Profile of a column: statistics of its cells that decide its type.

`table.column_types` decides from the profile how a column is used. Columns in memory are profiled
on demand (`MemoryColumnProfile`). Columns of a partitioned table are surveyed part by part, and the
surveys are added (`table.survey`).

A column with the values k, k+1, k+2, ... numbers the rows and is not a feature. Such a column is
recognised as follows:

    rows in memory     integers that increase by one from row to row
    partitioned rows   integers that increase by one within every part; sorted parts without gaps
    a sample of rows   distinct integers, since the gaps may be the numbers of other rows
    SQL aggregates     distinct integers from k to k + rows - 1, since rows have no order

If there are fewer than `MIN_COUNTED_ROWS` rows, consecutive integers may be measurements, so the
column is used as a feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from discriminant.table.blocks import Floats
from discriminant.table.column_cells import CellKind, ColumnCells
from discriminant.table.text_values import ParsedTexts

Numbers: TypeAlias = npt.NDArray[Any]
Runs: TypeAlias = tuple[tuple[float, float], ...]  # first and last integer of each run

MIN_COUNTED_ROWS = 20  # with fewer rows, 1, 2, 3, ... may well be a measurement
_EXACT = 2.0**53  # float64 does not represent every larger integer


def integer_run(values: Numbers) -> Runs | None:
    """Return the run (first and last value) of integers that increase by one from row to row.

    For other numbers return None.

    >>> [integer_run(np.array(values)) for values in ([3.0, 4.0, 5.0], [3.0, 5.0], [0.5])]
    [((3.0, 5.0),), None, None]
    """
    first, last, rows = values[0].item(), values[-1].item(), len(values)
    if not float(first).is_integer() or last - first != rows - 1:
        return None
    return ((first, last),) if bool((np.diff(values) == 1).all()) else None


def join_integer_runs(left: Runs | None, right: Runs | None) -> Runs | None:
    """Join the runs of two sets of rows where they are adjacent; return None if runs overlap.

    >>> join_integer_runs(((1.0, 4.0), (9.0, 9.0)), ((5.0, 8.0),))
    ((1.0, 9.0),)
    """
    if left is None or right is None:
        return None
    runs: list[tuple[float, float]] = []
    for first, last in sorted((*left, *right)):
        if runs and first <= runs[-1][1]:
            return None
        if runs and first == runs[-1][1] + 1:
            first = runs.pop()[0]
        runs.append((first, last))
    return tuple(runs)


def is_row_number(runs: Runs | None, rows: int) -> bool:
    """Whether the integers of all rows form a single run."""
    return runs is not None and len(runs) == 1 and rows >= MIN_COUNTED_ROWS


def may_be_row_number(values: Numbers) -> bool:
    """Whether a sample of a column is compatible with a column that numbers all rows.

    >>> steps = np.arange(5, 500, 7)
    >>> [may_be_row_number(values) for values in (steps, steps / 2, np.ones(30))]
    [True, False, False]
    """
    if len(values) < MIN_COUNTED_ROWS:
        return False
    # For most columns the first values suffice.
    return _distinct_integers(values[:MIN_COUNTED_ROWS]) and _distinct_integers(values)


def _distinct_integers(values: Numbers) -> bool:
    whole = values.dtype.kind != "f" or bool((np.floor(values) == values).all())
    return whole and len(np.unique(values)) == len(values)


class ColumnProfile(Protocol):
    """Statistics of the cells of a column."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> CellKind: ...

    @property
    def ordered(self) -> bool:
        """Whether the source declares a meaningful order of the levels."""
        ...

    @property
    def declared(self) -> bool:
        """Whether the source declares a list of levels."""
        ...

    @property
    def rows(self) -> int: ...

    @property
    def n_missing(self) -> int:
        """Number of missing cells."""
        ...

    @property
    def constant(self) -> str:
        """Description of the value of a constant column; empty if the column is not constant."""
        ...

    @property
    def row_numbers(self) -> bool:
        """Whether the column numbers the rows: k, k+1, k+2, ..."""
        ...

    @property
    def exceeds_float64(self) -> bool:
        """Whether some integers of the column cannot be represented exactly by float64."""
        ...

    @property
    def mean(self) -> float:
        """Weighted mean of the cells that are not missing."""
        ...

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels of a category, in the declared order if the source declares one."""
        ...

    @property
    def counts(self) -> npt.NDArray[np.integer[Any]]:
        """Number of rows of each level."""
        ...

    @property
    def shares(self) -> Floats:
        """Share of each level in the total weight of the cells that are not missing."""
        ...

    @property
    def capped(self) -> bool:
        """Whether some levels were not counted, because their number exceeds the limit."""
        ...


@dataclass(eq=False)
class MemoryColumnProfile:
    """Profile of a column in memory; see `ColumnProfile`."""

    cells: ColumnCells
    weight: Floats | None
    as_text: bool = False  # whether the column is a category even if it has numbers
    capped: bool = False  # in memory all levels are counted

    @property
    def name(self) -> str:
        return self.cells.name

    @property
    def kind(self) -> CellKind:
        return "text" if self.as_text else self.cells.kind

    @property
    def ordered(self) -> bool:
        return self.cells.ordered

    @property
    def declared(self) -> bool:
        return self.cells.declared

    @property
    def rows(self) -> int:
        return len(self.cells)

    @cached_property
    def n_missing(self) -> int:
        return self.cells.n_missing

    @cached_property
    def constant(self) -> str:
        values = self.cells.values
        start = values[:100]  # for most columns that are not constant, this comparison is enough
        if len(values) < 2 or ((start != start[0]).any() and not np.isnan(float(start[0]))):
            return ""
        known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
        low, high = known.min(), known.max()
        return describe_constant(low.item()) if low == high else ""

    @cached_property
    def row_numbers(self) -> bool:
        enough = self.rows >= MIN_COUNTED_ROWS
        return enough and is_row_number(integer_run(self.cells.values), self.rows)

    @cached_property
    def exceeds_float64(self) -> bool:
        values = self.cells.values
        if values.dtype.itemsize < 8 or not len(values):
            return False
        high, low = np.nanmax(values), np.nanmin(values)
        if not (high > _EXACT or low < -_EXACT):
            return False
        if values.dtype.kind != "f":
            return True
        finite = values[np.isfinite(values)]
        return bool((finite == np.floor(finite)).all() and max(abs(high), abs(low)) < 2.0**64)

    @cached_property
    def mean(self) -> float:
        known = ~self.cells.missing
        weight = None if self.weight is None else self.weight[known]
        values = self.cells.values[known].astype(np.float64, copy=False)
        centre = float(values[0]) if len(values) and np.isfinite(values[0]) else 0.0
        return centre + float(np.average(values - centre, weights=weight))

    @property
    def levels(self) -> tuple[str, ...]:
        return self._text.levels

    @cached_property
    def counts(self) -> npt.NDArray[np.integer[Any]]:
        return self._level_totals(None)

    @cached_property
    def shares(self) -> Floats:
        totals = self._level_totals(self.weight).astype(np.float64)
        return np.asarray(totals / totals.sum())

    @cached_property
    def _text(self) -> ColumnCells:
        return self.cells.as_text()

    def _level_totals(self, weight: Floats | None) -> npt.NDArray[Any]:
        codes = self._text.values
        known = codes >= 0
        weight = None if weight is None else weight[known]
        return np.bincount(codes[known], weight, minlength=len(self.levels))


@dataclass(eq=False)
class ParsedTextProfile:
    """Profile of a column of texts parsed as numbers or dates; see `ColumnProfile`.

    Texts such as "NA" that mean "missing" count as missing cells.
    """

    texts: ColumnProfile
    parsed: ParsedTexts
    ordered: bool = False
    declared: bool = False
    row_numbers: bool = False  # row numbers are not written with grouped digits
    exceeds_float64: bool = False
    capped: bool = False
    levels: tuple[str, ...] = ()  # numbers have no levels
    counts: npt.NDArray[np.integer[Any]] = field(default_factory=lambda: np.zeros(0, np.int64))
    shares: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def name(self) -> str:
        return self.texts.name

    @property
    def kind(self) -> CellKind:
        return self.parsed.kind

    @property
    def rows(self) -> int:
        return self.texts.rows

    @property
    def n_missing(self) -> int:
        return self.rows - int(sum(self._parsed_texts(self.texts.counts).values()))

    @property
    def constant(self) -> str:
        values = set(self.parsed.values.values())
        return describe_constant(values.pop()) if len(values) == 1 and self.rows > 1 else ""

    @property
    def mean(self) -> float:
        shares = self._parsed_texts(self.texts.shares)
        values = [self.parsed.values[text] for text in shares]
        weights = list(shares.values())
        return values[0] + float(np.average(np.array(values) - values[0], weights=weights))

    def _parsed_texts(self, by_level: npt.NDArray[Any]) -> dict[str, Any]:
        """Return a dictionary from parsed level to entry of an array, without zero entries."""
        pairs = zip(self.texts.levels, by_level.tolist(), strict=True)
        return {text: value for text, value in pairs if value and text in self.parsed.values}


def describe_constant(value: float) -> str:
    """Return a note on the value of a constant column.

    Above 2^53, float64 may have rounded the value.

    >>> describe_constant(1.5), describe_constant(2**60)
    ('1.5 in every row', '1152921504606846976 in every row')
    """
    if isinstance(value, float) and value.is_integer() and abs(value) >= _EXACT:
        return (
            f"{value:g} in every row after rounding to float64; if these are identifiers, store "
            "them as texts"
        )
    return f"{value:g} in every row" if isinstance(value, float) else f"{value} in every row"


def observed_levels(profile: ColumnProfile) -> Sequence[str]:
    """Return the levels that occur in some row, sorted."""
    return sorted(k for k, rows in zip(profile.levels, profile.counts, strict=True) if rows)
