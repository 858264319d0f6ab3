"""What becomes of each column, found from the rows of a fit.

    numbers, truth values, dates       used as they are
    texts                              categories, unless an order of their levels is given
    texts that are all different,      identifiers, set aside: they name a row and say nothing
    whole numbers 1, 2, 3, ... by row  of another
    one value in all rows              constant, set aside
    more than `max_levels` levels      set aside: so many indicators would drown the rest

Whatever is set aside, or turned, is said. A column that is named in `columns` is used, come what
may.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import (
    CategoryError,
    EmptyColumnError,
    LargeIntegerWarning,
    LookalikeWarning,
    NoFeaturesError,
    OptionError,
    TargetError,
    tell,
)
from discriminant.table.cells import Cells, Frame, open_frame
from discriminant.table.dialect import DOUBTFUL, is_number
from discriminant.table.encoding import MISSING, UNSEEN, Column, Encoding
from discriminant.table.naming import lookalikes, nearest
from discriminant.table.schema import Floats

REFERENCES = ("frequent", "first", None)
_EXACT = 2.0**53
_FEW = 20  # rows below which 1, 2, 3, ... may well be a measurement


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user asked for."""

    target: str | None = None
    weight: str | None = None
    columns: tuple[str, ...] | None = None  # the only ones to use
    exclude: tuple[str, ...] = ()
    ordered: Mapping[str, Sequence[str]] = field(default_factory=dict)  # levels, lowest first
    categories: tuple[str, ...] = ()  # columns that are categories though they look like numbers
    missing: Any = "error"
    unseen: Any = "error"
    reference: Any = "frequent"  # the level of a category that has no indicator
    max_levels: Any = 100
    missing_texts: tuple[str, ...] | None = None

    def check(self) -> None:
        """Refuse options that cannot be."""
        allowed = (("missing", MISSING), ("unseen", UNSEEN), ("reference", REFERENCES))
        for name, values in allowed:
            if getattr(self, name) not in values:
                words = ", ".join(repr(value) for value in values)
                raise OptionError.of(name, getattr(self, name), f"one of {words}")
        if not isinstance(self.max_levels, int) or self.max_levels < 2:
            raise OptionError.of("max_levels", self.max_levels, "a whole number, 2 or more")

    def check_names(self, names: Sequence[str]) -> None:
        """Refuse names that no column has."""
        asked = {
            "target": [self.target] if self.target is not None else [],
            "weight": [self.weight] if self.weight is not None else [],
            "columns": self.columns or (),
            "exclude": self.exclude,
            "ordered": self.ordered,
            "categories": self.categories,
        }
        for what, some in asked.items():
            for name in some:
                if name not in names:
                    if what == "target" and _values_for_names(names):
                        raise TargetError.headless(str(name), names)
                    raise TargetError.no_column(str(name), names, nearest(name, names), what=what)

    def wanted(self, names: Sequence[str]) -> list[str]:
        """The columns to read, target and weight among them."""
        some = [
            name
            for name in names
            if (self.columns is None or name in self.columns) and name not in self.exclude
        ]
        return [name for name in names if name in some or name in (self.target, self.weight)]


def open_chosen(source: Any, wishes: Wishes) -> Frame:
    """The columns of a frame that are to be used."""

    def wanted(names: Sequence[str]) -> list[str]:
        wishes.check_names(names)
        return wishes.wanted(names)

    if not isinstance(source, Frame):
        return open_frame(source, wanted=wanted)
    kept = wanted(source.names)
    others = tuple(name for name in source.names if name not in kept)
    return replace(source, columns=tuple(source[name] for name in kept), left_out=others)


def learn(
    frame: Frame, wishes: Wishes, *, weight: Floats | None = None
) -> tuple[Encoding, list[str]]:
    """The encoding for the rows of a fit, and what is to be said of it."""
    wishes.check()
    pairs = lookalikes((*frame.names, *frame.left_out))
    if pairs:
        tell(LookalikeWarning.of("column names", pairs))
    columns = [_learn_column(cells, wishes, weight) for cells in frame.columns]
    _warn_of_large([frame[column.name] for column in columns if column.kind == "number"])
    columns += [Column(name, "dropped", note="excluded") for name in frame.left_out]
    encoding = Encoding(
        tuple(_distinct(columns)),
        wishes.target,
        wishes.missing,
        wishes.unseen,
        frame.named,
        wishes.missing_texts,
    )
    if not encoding.features:
        raise NoFeaturesError.of([f"'{c.name}' ({c.note or c.kind})" for c in encoding.aside])
    return encoding, [line for column in encoding.columns for line in _said(column, wishes)]


def _learn_column(cells: Cells, wishes: Wishes, weight: Floats | None) -> Column:
    name = cells.name
    if name in (wishes.target, wishes.weight):
        return Column(name, "target" if name == wishes.target else "weight")
    gaps = cells.gaps
    if gaps == len(cells) and gaps:
        if wishes.columns and name in wishes.columns:
            raise EmptyColumnError.of(name, len(cells))
        return Column(name, "dropped", missing=gaps, note="missing in every row")
    kept = wishes.columns is not None and name in wishes.columns
    if name in wishes.ordered or (cells.ordered and name not in wishes.categories):
        column = _ordered(cells.as_text(), wishes)
    elif cells.kind == "text" or name in wishes.categories:
        column = _category(cells.as_text(), wishes, kept)
    else:
        column = _number(cells, kept)
    column = replace(column, missing=gaps)
    return _with_fill(column, cells, wishes, weight) if column.features else column


def _number(cells: Cells, kept: bool) -> Column:
    values = cells.values
    if not kept:
        note = _constant(values)
        if note:
            return Column(cells.name, "constant", note=note)
        if cells.kind == "number" and _row_numbers(values):
            return Column(cells.name, "identifier", note="whole numbers that count the rows")
    note = "days since 1970-01-01" if cells.kind == "date" else ""
    return Column(cells.name, cells.kind, features=(cells.name,), note=note)  # type: ignore[arg-type]


def _category(cells: Cells, wishes: Wishes, kept: bool) -> Column:
    counts = np.bincount(cells.values[cells.values >= 0], minlength=len(cells.levels))
    present = np.flatnonzero(counts)
    if len(present) == 1 and not kept:
        return Column(cells.name, "constant", note=f"'{cells.levels[present[0]]}' in every row")
    known = int(counts.sum())
    if len(present) == known and not kept:
        return Column(cells.name, "identifier", note=f"{known} texts, all different")
    if len(present) > wishes.max_levels and not kept:
        note = f"{len(present)} levels, more than max_levels={wishes.max_levels}"
        return Column(cells.name, "dropped", note=note)
    order = sorted(present.tolist(), key=lambda code: cells.levels[code])
    levels = tuple(cells.levels[code] for code in order)
    reference = None
    if wishes.reference is not None:
        frequent = int(np.argmax(counts[order])) if wishes.reference == "frequent" else 0
        reference = levels[frequent]
    column = Column(cells.name, "category", levels, reference)
    return replace(column, features=tuple(f"{cells.name}={level}" for level in column.kept))


def _ordered(cells: Cells, wishes: Wishes) -> Column:
    present = [cells.levels[code] for code in np.unique(cells.values[cells.values >= 0])]
    levels = tuple(str(level) for level in wishes.ordered.get(cells.name, cells.levels))
    if len(levels) < 2 or len(set(levels)) < len(levels):
        allowed = "two or more different levels, from lowest to highest"
        raise OptionError.of(f"ordered['{cells.name}']", list(levels), allowed)
    for level in present:
        if level not in levels:
            raise CategoryError.of_order(cells.name, level, levels)
    note = " < ".join(levels)
    return Column(cells.name, "ordered", levels, features=(cells.name,), note=note)


def _with_fill(column: Column, cells: Cells, wishes: Wishes, weight: Floats | None) -> Column:
    """The column with the means of its features, and the indicator of missing if it needs one."""
    filled = wishes.missing in ("mean", "indicator")
    if not filled and column.kind != "ordered":
        return column
    fill = _means(column, cells, weight)
    indicator = wishes.missing == "indicator" and column.missing > 0
    more = (f"{column.name} missing",) if indicator else ()
    features = column.features + more
    return replace(column, fill=fill, indicator=indicator, features=features)


def _means(column: Column, cells: Cells, weight: Floats | None) -> tuple[float, ...]:
    known = ~cells.missing
    by = None if weight is None else weight[known]
    if column.kind not in ("ordered", "category"):
        values = cells.values[known].astype(np.float64, copy=False)
        centre = float(values[0]) if len(values) and np.isfinite(values[0]) else 0.0
        return (centre + float(np.average(values - centre, weights=by)),)
    text = cells.as_text()
    counts = np.bincount(text.values[known], by, minlength=len(text.levels)).astype(float)
    share = dict(zip(text.levels, (counts / counts.sum()).tolist(), strict=True))
    if column.kind == "category":
        return tuple(share.get(level, 0.0) for level in column.kept)
    top = len(column.levels) - 1
    return (sum(share.get(level, 0.0) * j / top for j, level in enumerate(column.levels)),)


# --- what a column is like -----------------------------------------------------------------------


def _constant(values: npt.NDArray[Any]) -> str:
    """The value that all rows have, in words, or nothing."""
    start = values[:100]
    if len(values) < 2 or ((start != start[0]).any() and not np.isnan(float(start[0]))):
        return ""
    known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    low, high = known.min(), known.max()
    return f"{float(low):g} in every row" if low == high else ""


def _row_numbers(values: npt.NDArray[Any]) -> bool:
    """Whether the values are k, k+1, k+2, ... by row, k a whole number."""
    rows = len(values)
    if rows < _FEW or values[0] % 1 or values[1] - values[0] != 1 or values[-1] - values[0] != rows - 1:
        return False
    return bool(np.array_equal(values, np.arange(rows) + values[0]))


def _warn_of_large(columns: Sequence[Cells]) -> None:
    """Warn of whole numbers that float64 does not hold exactly."""
    large = [cells.name for cells in columns if _is_large(cells.values)]
    if large:
        tell(LargeIntegerWarning.of_columns(large))


def _is_large(values: npt.NDArray[Any]) -> bool:
    if values.dtype.itemsize < 8 or not len(values):
        return False
    high, low = np.nanmax(values), np.nanmin(values)
    if not (high > _EXACT or low < -_EXACT):
        return False
    if values.dtype.kind != "f":
        return True
    some = values[np.isfinite(values)]
    return bool((some == np.floor(some)).all() and max(abs(high), abs(low)) < 2.0**64)


def _values_for_names(names: Sequence[str]) -> bool:
    return 2 * sum(is_number(name) for name in names) > len(names)


def _distinct(columns: Sequence[Column]) -> list[Column]:
    """The columns with feature names that no two share."""
    taken: set[str] = set()
    found = []
    for column in columns:
        names = []
        for name in column.features:
            while name in taken:
                name += "'"
            taken.add(name)
            names.append(name)
        found.append(replace(column, features=tuple(names)))
    return found


def _said(column: Column, wishes: Wishes) -> list[str]:
    name = f"Column '{column.name}'"
    if column.kind in ("identifier", "constant", "dropped"):
        return [f"{name} is set aside: {column.note}."]
    if column.kind == "date":
        return [f"{name} is a date, used as {column.note}."]
    if column.kind == "ordered":
        return [f"{name} is ordered, from 0 to 1 in equal steps: {column.note}."]
    if column.kind == "category":
        dropped = "" if column.reference is None else f", reference '{column.reference}'"
        told = f"{name} is a category of {len(column.levels)} levels{dropped}."
        doubtful = [level for level in column.levels if level.casefold() in DOUBTFUL]
        for level in doubtful[:1]:
            told += f" '{level}' is one of them; if it means missing, name it in missing_texts."
        return [told]
    return []
