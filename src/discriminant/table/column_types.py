"""What becomes of each column, found from the rows of a fit.

    numbers, truth values, dates       used as they are
    texts that are numbers or dates    read as such: `table.writing`
    other texts                        categories, unless an order of their levels is given
    texts that are all different,      identifiers, set aside: they name a row and say nothing
    whole numbers 1, 2, 3, ... by row  of another
    the index of a pandas frame        an identifier too, by the name that pandas gives it
    one value in all rows              constant, set aside
    more than `max_levels` levels      set aside: so many indicators would drown the rest

Whatever is set aside, or turned, is said. A column that is named in `columns` is used, come what
may.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from discriminant.errors import (
    CategoryError,
    EmptyColumnError,
    LargeIntegerWarning,
    LookalikeWarning,
    NoFeaturesError,
    OptionError,
    TargetError,
    UnreadTextWarning,
    warn,
)
from discriminant.table.blocks import Floats
from discriminant.table.cells import Cells, Frame, to_frame
from discriminant.table.column_profile import (
    CellsProfile,
    ColumnProfile,
    ParsedTextProfile,
    observed_levels,
)
from discriminant.table.encoding import Column, Encoding, sorted_levels
from discriminant.table.files.csv_dialect import (
    MAYBE_MISSING,
    MISSING_TEXTS as MISSING_TEXTS,
    CsvKind,
    check_thousands,
    is_number,
)
from discriminant.table.labels import closest_name, lookalike_pairs
from discriminant.table.policies import MISSING, UNSEEN
from discriminant.table.text_values import explain_unparsed, parse_texts

REFERENCES = ("frequent", "first", None)

_INDEX = re.compile("__index_level_[0-9]+__")  # as pandas writes one without a name
_NAMES = re.compile(r"(?<![^\W_])(zip|zip ?code|post ?code|plz|postal|code|sku)(?![^\W_])")


_CSV_KINDS: Mapping[str, CsvKind] = {
    "number": "number",
    "boolean": "boolean",
    "ordered": "text",
    "category": "text",
    "weight": "number",
}


@dataclass(frozen=True, slots=True)
class ReadOptions:
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
    thousands: str | None = None  # sign between groups of three digits
    parse_texts: bool = True  # whether texts that are numbers or dates are to be read as such

    @classmethod
    def from_arguments(
        cls,
        *,
        columns: Iterable[str] | None,
        exclude: Iterable[str],
        ordered: Mapping[str, Sequence[str]] | None,
        categories: Iterable[str],
        missing_texts: Iterable[str] | None,
        **others: Any,
    ) -> ReadOptions:
        """As the doors take them; refuses options that cannot be."""
        found = cls(
            columns=None if columns is None else tuple(columns),
            exclude=tuple(exclude),
            ordered=dict(ordered or {}),
            categories=tuple(categories),
            missing_texts=None if missing_texts is None else ("", *missing_texts),
            **others,
        )
        found.check()
        return found

    @property
    def target_and_weight(self) -> tuple[str, ...]:
        """The columns of labels and weights."""
        return tuple(name for name in (self.target, self.weight) if name is not None)

    def check(self) -> None:
        """Refuse options that cannot be."""
        allowed = (("missing", MISSING), ("unseen", UNSEEN), ("reference", REFERENCES))
        for name, values in allowed:
            if getattr(self, name) not in values:
                words = ", ".join(repr(value) for value in values)
                raise OptionError.of(name, getattr(self, name), f"one of {words}")
        if not isinstance(self.max_levels, int) or self.max_levels < 2:
            raise OptionError.of("max_levels", self.max_levels, "a whole number, 2 or more")
        check_thousands(self.thousands)
        self._check_roles()

    def _check_roles(self) -> None:
        """Refuse a column with two roles that exclude each other."""
        roles = {"target": self.target, "weight": self.weight}
        for role, name in roles.items():
            for option in ("exclude", "ordered"):
                if name is not None and name in getattr(self, option):
                    raise OptionError.of(option, name, f"a column other than the {role}")
        for name in (*self.ordered, *self.categories):
            option = "ordered" if name in self.ordered else "categories"
            if name in self.exclude or name not in (self.columns or (name,)):
                raise OptionError.of(option, name, "a column that is used, not left out")

    def is_category(self, name: str) -> bool:
        """Whether a column is to be read as levels, whatever it looks like."""
        return name in self.ordered or name in self.categories

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
        known = set(names)
        for what, some in asked.items():
            for name in some:
                if name not in known:
                    if what == "target" and _values_for_names(names):
                        raise TargetError.no_header(str(name), names)
                    raise TargetError.no_column(
                        str(name), names, closest_name(name, names), what=what
                    )

    def columns_to_read(self, names: Sequence[str]) -> list[str]:
        """The columns to read, target and weight among them."""
        used = set(names if self.columns is None else self.columns) - set(self.exclude)
        used |= set(self.target_and_weight)
        return [name for name in names if name in used]


def frame_with_options(source: Any, wishes: ReadOptions) -> Frame:
    """The columns of a frame that are to be used."""

    def wanted(names: Sequence[str]) -> list[str]:
        wishes.check_names(names)
        return wishes.columns_to_read(names)

    if not isinstance(source, Frame):
        return to_frame(source, wanted=wanted)
    kept = wanted(source.names)
    used = set(kept)
    others = tuple(name for name in source.names if name not in used)
    return replace(source, columns=tuple(source[name] for name in kept), excluded=others)


def long_integers_as_categories(frame: Frame, wishes: ReadOptions) -> ReadOptions:
    """The options with integers that float64 would merge named as categories.

    Integers beyond 2^53 are rounded as numbers. Where two different ones become equal they are
    identifiers or codes, and are compared by their digits.
    """
    names = [
        cells.name
        for cells in frame.columns
        if cells.name not in wishes.target_and_weight
        and not wishes.is_category(cells.name)
        and _merges(cells)
    ]
    return replace(wishes, categories=(*wishes.categories, *names)) if names else wishes


def _merges(cells: Cells) -> bool:
    """Whether different integers of a column are equal in float64."""
    values = cells.values
    if cells.kind != "number" or values.dtype.kind not in "iu" or not len(values):
        return False
    if max(abs(int(values.min())), abs(int(values.max()))) <= 1 << 53:
        return False
    distinct = np.unique(values)
    return len(np.unique(distinct.astype(np.float64))) < len(distinct)


def csv_column_kinds(
    found: Mapping[str, CsvKind], wishes: ReadOptions, fitted: Encoding | None
) -> dict[str, CsvKind]:
    """What each column to be read is read as."""
    kinds = {name: found[name] for name in wishes.columns_to_read(list(found))}
    for name in kinds:
        if name == wishes.weight:
            kinds[name] = "number"
        if name == wishes.target or name in wishes.ordered or name in wishes.categories:
            kinds[name] = "text"
    for column in () if fitted is None else fitted.columns:
        if column.name in kinds:
            grouped = kinds[column.name] == "text" and wishes.thousands is not None
            kinds[column.name] = _CSV_KINDS.get(column.kind, kinds[column.name])
            if grouped and column.kind == "number":
                kinds[column.name] = "grouped"
            if column.written:
                kinds[column.name] = "text"
    return kinds


def infer_encoding(
    frame: Frame, wishes: ReadOptions, *, weight: Floats | None = None
) -> tuple[Encoding, list[str]]:
    """The encoding for the rows of a fit, and what is to be said of it."""
    wishes.check()
    wishes = long_integers_as_categories(frame, wishes)
    seen = [
        CellsProfile(cells, weight, cells.kind != "text" and wishes.is_category(cells.name))
        for cells in frame.columns
    ]
    return encoding_from_profiles(seen, wishes, left_out=frame.excluded, named=frame.named)


def encoding_from_profiles(
    seen: Sequence[ColumnProfile],
    wishes: ReadOptions,
    *,
    left_out: Sequence[str] = (),
    named: bool = True,
) -> tuple[Encoding, list[str]]:
    """The encoding from what is known of each column, and what is to be said of it."""
    pairs = lookalike_pairs((*(one.name for one in seen), *left_out))
    if pairs:
        warn(LookalikeWarning.of("column names", pairs))
    seen = [_as_written(one, wishes) for one in seen]
    columns = [_learn_column(one, wishes) for one in seen]
    _tell_unread(seen, columns, wishes)
    numbers = {column.name for column in columns if column.kind == "number"}
    large = [one.name for one in seen if one.name in numbers and one.exceeds_float64]
    if large:
        warn(LargeIntegerWarning.of_columns(large))
    columns += [Column(name, "dropped", note="excluded") for name in left_out]
    encoding = Encoding(
        tuple(_distinct(columns)),
        wishes.target,
        wishes.missing,
        wishes.unseen,
        named,
        wishes.missing_texts,
    )
    if not encoding.features:
        raise NoFeaturesError.of([f"'{c.name}' ({c.note or c.kind})" for c in encoding.excluded])
    return encoding, [line for column in encoding.columns for line in _said(column, wishes)]


def _as_written(seen: ColumnProfile, wishes: ReadOptions) -> ColumnProfile:
    """A column of texts as one of numbers or dates, if it is."""
    aside = seen.name in (wishes.target, wishes.weight) or wishes.is_category(seen.name)
    if aside or seen.kind != "text" or seen.ordered or not wishes.parse_texts:
        return seen
    found = parse_texts(_texts(seen, wishes), thousands=wishes.thousands)
    return seen if found is None else ParsedTextProfile(seen, found)


def _texts(seen: ColumnProfile, wishes: ReadOptions) -> dict[str, int]:
    """The texts of a column that do not mean missing, and how many rows have each."""
    gone = MISSING_TEXTS if wishes.missing_texts is None else wishes.missing_texts
    pairs = zip(seen.levels, seen.counts.tolist(), strict=True)
    return {text: rows for text, rows in pairs if rows and text not in gone}


def _tell_unread(
    seen: Sequence[ColumnProfile], columns: Sequence[Column], wishes: ReadOptions
) -> None:
    """Warn of columns that look like numbers or dates and are used as something else."""
    found = []
    for one, column in zip(seen, columns, strict=True) if wishes.parse_texts else ():
        asked = wishes.is_category(one.name) or one.ordered or column.kind in ("target", "weight")
        if one.kind != "text" or asked or column.kind == "constant":
            continue
        why = explain_unparsed(_texts(one, wishes))
        if why is not None:
            found.append((one.name, why.kind, why.example, why.reason, bool(column.features)))
    if found:
        warn(UnreadTextWarning.of(found))


def _learn_column(seen: ColumnProfile, wishes: ReadOptions) -> Column:
    name = seen.name
    if name in (wishes.target, wishes.weight):
        return Column(name, "target" if name == wishes.target else "weight")
    gaps = seen.n_missing
    if gaps == seen.rows and gaps:
        if wishes.columns and name in wishes.columns:
            raise EmptyColumnError.of(name, seen.rows)
        return Column(name, "dropped", missing=gaps, note="missing in every row")
    kept = wishes.columns is not None and name in wishes.columns
    if _INDEX.fullmatch(name) and not kept:
        return Column(name, "identifier", missing=gaps, note="the index of a pandas frame")
    if name in wishes.ordered or (seen.ordered and name not in wishes.categories):
        column = _ordered(seen, wishes)
    elif seen.kind == "text":
        column = _category(seen, wishes, kept)
    else:
        column = _number(seen, kept)
    column = replace(column, missing=gaps)
    return _with_fill(column, seen, wishes) if column.features else column


def _number(seen: ColumnProfile, kept: bool) -> Column:
    if not kept:
        if seen.constant:
            return Column(seen.name, "constant", fill=(seen.mean,), note=seen.constant)
        if seen.kind == "number" and seen.row_numbers:
            return Column(seen.name, "identifier", note="whole numbers that count the rows")
    note = "days since 1970-01-01" if seen.kind == "date" else ""
    way = ""
    if isinstance(seen, ParsedTextProfile):
        way, said = seen.written.format, seen.written.note
        note = ", ".join(filter(None, (note, said)))
    features = (seen.name,)
    return Column(seen.name, seen.kind, features=features, note=note, written=way)  # type: ignore[arg-type]


def _category(seen: ColumnProfile, wishes: ReadOptions, kept: bool) -> Column:
    rows = {level: int(n) for level, n in zip(seen.levels, seen.counts, strict=True) if n}
    order = seen.levels if seen.declared else ()
    levels, known = sorted_levels(rows, order), sum(rows.values())
    if len(levels) == 1 and not kept:
        note = f"'{levels[0]}' in every row"
        return Column(seen.name, "constant", levels, note=note, order=order)
    if len(levels) == known and not kept and not seen.capped:
        return Column(seen.name, "identifier", note=f"{known} texts, all different")
    if len(levels) > wishes.max_levels and not kept:
        more = " or more" if seen.capped else ""
        note = f"{len(levels)} levels{more}, more than max_levels={wishes.max_levels}"
        return Column(seen.name, "dropped", note=note)
    reference = None
    if wishes.reference is not None:
        frequent = max(levels, key=lambda level: rows[level])  # the first of those
        reference = frequent if wishes.reference == "frequent" else levels[0]
    column = Column(seen.name, "category", levels, reference, order=order)
    return replace(
        column, features=tuple(f"{seen.name}={level}" for level in column.indicator_levels)
    )


def _ordered(seen: ColumnProfile, wishes: ReadOptions) -> Column:
    present = observed_levels(seen)
    if seen.name not in wishes.ordered and not seen.declared:
        raise CategoryError.of_orders(seen.name, present)
    levels = tuple(str(level) for level in wishes.ordered.get(seen.name, seen.levels))
    if len(levels) < 2 or len(set(levels)) < len(levels):
        allowed = "two or more different levels, from lowest to highest"
        raise OptionError.of(f"ordered['{seen.name}']", list(levels), allowed)
    for level in present:
        if level not in levels:
            raise CategoryError.of_order(seen.name, level, levels)
    note = " < ".join(levels)
    return Column(seen.name, "ordered", levels, features=(seen.name,), note=note)


def _with_fill(column: Column, seen: ColumnProfile, wishes: ReadOptions) -> Column:
    """The column with the means of its features, and the indicator of missing if it needs one."""
    filled = wishes.missing in ("mean", "indicator")
    if not filled and column.kind != "ordered":
        return column
    fill = _means(column, seen)
    indicator = wishes.missing == "indicator" and column.missing > 0
    more = (f"{column.name} missing",) if indicator else ()
    features = column.features + more
    return replace(column, fill=fill, indicator=indicator, features=features)


def _means(column: Column, seen: ColumnProfile) -> tuple[float, ...]:
    if column.kind not in ("ordered", "category"):
        return (seen.mean,)
    share = dict(zip(seen.levels, seen.shares.tolist(), strict=True))
    if column.kind == "category":
        return tuple(share.get(level, 0.0) for level in column.indicator_levels)
    top = len(column.levels) - 1
    return (sum(share.get(level, 0.0) * j / top for j, level in enumerate(column.levels)),)


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


def _said(column: Column, wishes: ReadOptions) -> list[str]:
    name = f"Column '{column.name}'"
    if column.kind in ("identifier", "constant", "dropped"):
        return [f"{name} is set aside: {column.note}."]
    if column.kind == "number" and column.written:
        return [f"{name} is a number, {column.note}."]
    if column.kind == "number" and _NAMES.search(column.name.casefold()):
        return [
            f"{name} is used as a number, although it sounds like one that names something: if so, "
            "name it in categories (--category)."
        ]
    if column.kind == "date":
        return [f"{name} is a date, used as {column.note}."]
    if column.kind == "ordered":
        return [f"{name} is ordered, from 0 to 1 in equal steps: {column.note}."]
    if column.kind == "category":
        dropped = "" if column.reference is None else f", reference '{column.reference}'"
        told = f"{name} is a category of {len(column.levels)} levels{dropped}."
        doubtful = [level for level in column.levels if level.casefold() in MAYBE_MISSING]
        for level in doubtful[:1]:
            told += f" '{level}' is one of them; if it means missing, name it in missing_texts."
        return [told]
    return []
