"""Types of columns: decide from the training rows how each column of a table is used.

    numbers, truth values, dates       used as they are
    texts that are numbers or dates    parsed: `table.text_values`
    other texts                        categories, or ordered categories if their order is given
    texts that are all different,      identifiers, excluded: they name a row and carry no
    integers 1, 2, 3, ... by row       information about other rows
    the index of a pandas frame        an identifier, recognised by the name that pandas gives to it
    one value in all rows              constant, excluded
    more than `max_levels` levels      excluded: its many indicators would outnumber other features

A note reports every column that is excluded or converted. Columns listed in the option `columns`
are always used.
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
from discriminant.table.column_cells import ColumnCells, Frame, frame_from_dataframe
from discriminant.table.column_profile import (
    ColumnProfile,
    MemoryColumnProfile,
    ParsedTextProfile,
    observed_levels,
)
from discriminant.table.encoding import Column, Encoding, levels_in_declared_order
from discriminant.table.files.csv_dialect import (
    MAYBE_MISSING,
    CsvKind,
    check_thousands,
    is_number,
    missing_number_texts,
)
from discriminant.table.labels import closest_name, lookalike_pairs
from discriminant.table.missing_and_unseen import MISSING, UNLABELLED, UNSEEN
from discriminant.table.text_values import explain_unparsed, parse_texts

REFERENCES = ("frequent", "first", None)

_UNNAMED_INDEX = re.compile("__index_level_[0-9]+__")  # name that pandas gives to an unnamed index
_CODE_NAMES = re.compile(r"(?<![^\W_])(zip|zip ?code|post ?code|plz|postal|code|sku)(?![^\W_])")

_CSV_KINDS: Mapping[str, CsvKind] = {  # by the kind of the column in the fit
    "number": "number",
    "boolean": "boolean",
    "ordered": "text",
    "category": "text",
    "weight": "number",
}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The user's options on how the columns of a table are read."""

    target: str | None = None
    weight: str | None = None
    columns: tuple[str, ...] | None = None  # use only these columns
    exclude: tuple[str, ...] = ()
    ordered: Mapping[str, Sequence[str]] = field(default_factory=dict)  # levels, from the lowest
    categories: tuple[str, ...] = ()  # columns to use as categories although they look like numbers
    missing: Any = "error"
    unlabelled: Any = "error"  # whether rows without a label are an error, or dropped
    unseen: Any = "error"
    reference: Any = "frequent"  # level without an indicator
    max_levels: Any = 100
    missing_texts: tuple[str, ...] | None = None
    thousands: str | None = None  # sign between groups of three digits
    parse_texts: bool = True  # whether to parse texts that are numbers or dates

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
        """Return checked options from the arguments of a public function."""
        options = cls(
            columns=None if columns is None else tuple(columns),
            exclude=tuple(exclude),
            ordered=dict(ordered or {}),
            categories=tuple(categories),
            missing_texts=None if missing_texts is None else ("", *missing_texts),
            **others,
        )
        options.check()
        return options

    @property
    def drops_unlabelled(self) -> bool:
        """Whether `unlabelled`, or the policy for missing cells, drops rows without a label."""
        return bool(self.unlabelled == "drop" or self.missing != "error")

    @property
    def target_and_weight(self) -> tuple[str, ...]:
        """Names of the columns with labels and weights."""
        return tuple(name for name in (self.target, self.weight) if name is not None)

    def check(self) -> None:
        """Raise OptionError if an option is invalid or a column has contradictory roles."""
        allowed = (
            ("missing", MISSING),
            ("unlabelled", UNLABELLED),
            ("unseen", UNSEEN),
            ("reference", REFERENCES),
        )
        for name, values in allowed:
            if getattr(self, name) not in values:
                words = ", ".join(repr(value) for value in values)
                raise OptionError.of(name, getattr(self, name), f"one of {words}")
        if not isinstance(self.max_levels, int) or self.max_levels < 2:
            raise OptionError.of("max_levels", self.max_levels, "a whole number, 2 or more")
        check_thousands(self.thousands)
        roles = {"target": self.target, "weight": self.weight}
        for role, column in roles.items():
            for option in ("exclude", "ordered"):
                if column is not None and column in getattr(self, option):
                    raise OptionError.of(option, column, f"a column other than the {role}")
        for column in (*self.ordered, *self.categories):
            option = "ordered" if column in self.ordered else "categories"
            if column in self.exclude or column not in (self.columns or (column,)):
                raise OptionError.of(option, column, "a column that is used, not left out")

    def is_category(self, name: str) -> bool:
        """Whether a column is read as a category even if its values look like numbers."""
        return name in self.ordered or name in self.categories

    def is_requested(self, name: str) -> bool:
        """Whether a column is named in the option `columns`, so that it is never excluded."""
        return self.columns is not None and name in self.columns

    def check_names(self, names: Sequence[str]) -> None:
        """Raise TargetError if an option names a column that does not exist."""
        roles = (("target", self.target), ("weight", self.weight))
        requested = [(role, name) for role, name in roles if name is not None]
        for option in ("columns", "exclude", "ordered", "categories"):
            requested += [(option, name) for name in getattr(self, option) or ()]
        known = set(names)
        for option, name in requested:
            if name not in known:
                header_is_data = 2 * sum(is_number(other) for other in names) > len(names)
                if option == "target" and header_is_data:
                    raise TargetError.no_header(str(name), names)
                closest = closest_name(name, names)
                raise TargetError.no_column(str(name), names, closest, what=option)

    def columns_to_read(self, names: Sequence[str]) -> list[str]:
        """Return the columns to read, including target and weight."""
        used = set(names if self.columns is None else self.columns) - set(self.exclude)
        used |= set(self.target_and_weight)
        return [name for name in names if name in used]


def frame_with_options(source: Any, options: ReadOptions) -> Frame:
    """Select the columns of a data frame according to the options.

    Parameters
    ----------
    source : Frame or data frame
        Cells, or any data frame that `table.column_cells.frame_from_dataframe` accepts.
    options : ReadOptions
        Columns to use and their roles.

    Returns
    -------
    Frame
        The selected columns; `excluded` has the names of all other columns.
    """

    def select(names: Sequence[str]) -> list[str]:
        options.check_names(names)
        return options.columns_to_read(names)

    if not isinstance(source, Frame):
        return frame_from_dataframe(source, wanted=select)
    selected = select(source.names)
    used = set(selected)
    excluded = tuple(name for name in source.names if name not in used)
    return replace(source, columns=tuple(source[name] for name in selected), excluded=excluded)


def long_integers_as_categories(frame: Frame, options: ReadOptions) -> ReadOptions:
    """Return the options with some columns of long integers added to `categories`.

    A column is added if different integers in it become equal in float64, where integers above 2^53
    are rounded. Such integers are probably identifiers or codes, and should be compared by their
    digits.
    """
    names = tuple(
        cells.name
        for cells in frame.columns
        if cells.name not in options.target_and_weight
        and not options.is_category(cells.name)
        and _float64_merges(cells)
    )
    return replace(options, categories=(*options.categories, *names)) if names else options


def _float64_merges(cells: ColumnCells) -> bool:
    """Whether a column has different integers that are equal in float64."""
    values = cells.values
    if cells.kind != "number" or values.dtype.kind not in "iu" or not len(values):
        return False
    if max(abs(int(values.min())), abs(int(values.max()))) <= 1 << 53:
        return False
    distinct = np.unique(values)
    return len(np.unique(distinct.astype(np.float64))) < len(distinct)


def resolve_csv_kinds(
    detected: Mapping[str, CsvKind], options: ReadOptions, fitted: Encoding | None
) -> dict[str, CsvKind]:
    """Decide as which kind (number, text and so on) each column of a CSV is to be read.

    Parameters
    ----------
    detected : dict of str to CsvKind
        Kind of every column, detected from the first lines.
    options : ReadOptions
        Columns to read; target and categories are read as text.
    fitted : Encoding or None
        Encoding of a fitted model, whose kinds take precedence.
    """
    kinds = {name: detected[name] for name in options.columns_to_read(list(detected))}
    for name in kinds:
        if name == options.weight:
            kinds[name] = "number"
        if name == options.target or options.is_category(name):
            kinds[name] = "text"
    for column in () if fitted is None else fitted.columns:
        kind = kinds.get(column.name)
        if kind is None:
            continue
        if column.written:
            kinds[column.name] = "text"
        elif kind == "text" and options.thousands is not None and column.kind == "number":
            kinds[column.name] = "grouped"
        else:
            kinds[column.name] = _CSV_KINDS.get(column.kind, kind)
    return kinds


def infer_encoding(
    frame: Frame, options: ReadOptions, *, weight: Floats | None = None
) -> tuple[Encoding, list[str]]:
    """Infer the encoding of columns in memory.

    Parameters
    ----------
    frame : Frame
        The training rows.
    options : ReadOptions
        Options of the user.
    weight : array of shape (n,), optional
        Sample weights, used in the means that fill missing cells.

    Returns
    -------
    encoding : Encoding
        How each column becomes features.
    notes : list of str
        One sentence for each column that is excluded, converted or used as a category.
    """
    options.check()
    options = long_integers_as_categories(frame, options)
    profiles = [
        MemoryColumnProfile(cells, weight, cells.kind != "text" and options.is_category(cells.name))
        for cells in frame.columns
    ]
    return encoding_from_profiles(profiles, options, excluded=frame.excluded, named=frame.named)


def encoding_from_profiles(
    profiles: Sequence[ColumnProfile],
    options: ReadOptions,
    *,
    excluded: Sequence[str] = (),
    named: bool = True,
) -> tuple[Encoding, list[str]]:
    """Infer the encoding from a profile of each column.

    Parameters
    ----------
    profiles : sequence of ColumnProfile
        Statistics of the columns that were read.
    options : ReadOptions
        Options of the user.
    excluded : sequence of str, default=()
        Columns of the source that were not read.
    named : bool, default=True
        Whether the column names were given by the user.

    Returns
    -------
    encoding : Encoding
        How each column becomes features.
    notes : list of str
        One sentence for each column that is excluded, converted or used as a category.
    """
    pairs = lookalike_pairs((*(profile.name for profile in profiles), *excluded))
    if pairs:
        warn(LookalikeWarning.of("column names", pairs))
    profiles = [_parsed(profile, options) for profile in profiles]
    columns = [_infer_column(profile, options) for profile in profiles]
    _warn_of_unparsed(profiles, columns, options)
    numbers = {column.name for column in columns if column.kind == "number"}
    large = [p.name for p in profiles if p.name in numbers and p.exceeds_float64]
    if large:
        warn(LargeIntegerWarning.of_columns(large))
    for column in columns:
        alike = lookalike_pairs(column.levels) if column.kind in ("category", "ordered") else []
        if alike:
            warn(LookalikeWarning.of(f"levels of column '{column.name}'", alike))
    columns += [Column(name, "dropped", note="excluded") for name in excluded]
    encoding = Encoding(
        tuple(_with_distinct_features(columns)),
        options.target,
        options.missing,
        options.unseen,
        named,
        options.missing_texts,
    )
    if not encoding.features:
        raise NoFeaturesError.of([f"'{c.name}' ({c.note or c.kind})" for c in encoding.excluded])
    return encoding, [note for column in encoding.columns for note in _notes(column)]


def _parsed(profile: ColumnProfile, options: ReadOptions) -> ColumnProfile:
    """Parse a column whose texts are all numbers or dates; return the profile of the values.

    The profile of any other column is returned unchanged.
    """
    name = profile.name
    fixed = name in options.target_and_weight or options.is_category(name) or profile.ordered
    if fixed or profile.kind != "text" or not options.parse_texts:
        return profile
    parsed = parse_texts(_known_texts(profile, options), thousands=options.thousands)
    return profile if parsed is None else ParsedTextProfile(profile, parsed)


def _known_texts(profile: ColumnProfile, options: ReadOptions) -> dict[str, int]:
    """Return the number of rows for each text, except texts that mean "missing"."""
    missing = missing_number_texts(options.missing_texts)
    pairs = zip(profile.levels, profile.counts.tolist(), strict=True)
    return {text: rows for text, rows in pairs if rows and text not in missing}


def _warn_of_unparsed(
    profiles: Sequence[ColumnProfile], columns: Sequence[Column], options: ReadOptions
) -> None:
    """Warn about columns that look like numbers or dates but are not used as such."""
    unparsed = []
    for profile, column in zip(profiles, columns, strict=True) if options.parse_texts else ():
        fixed = options.is_category(profile.name) or profile.ordered
        if profile.kind != "text" or fixed or column.kind in ("target", "weight", "constant"):
            continue
        why = explain_unparsed(_known_texts(profile, options))
        if why is not None:
            unparsed.append((column.name, why.kind, why.example, why.reason, bool(column.features)))
    if unparsed:
        warn(UnreadTextWarning.of(unparsed))


def _infer_column(profile: ColumnProfile, options: ReadOptions) -> Column:
    name = profile.name
    if name in options.target_and_weight:
        return Column(name, "target" if name == options.target else "weight")
    missing, requested = profile.n_missing, options.is_requested(name)
    if missing == profile.rows and missing:
        if requested:
            raise EmptyColumnError.of(name, profile.rows)
        return Column(name, "dropped", missing=missing, note="missing in every row")
    if _UNNAMED_INDEX.fullmatch(name) and not requested:
        return Column(name, "identifier", missing=missing, note="the index of a pandas frame")
    if name in options.ordered or (profile.ordered and name not in options.categories):
        column = _ordered(profile, options)
    elif profile.kind == "text":
        column = _category(profile, options, requested)
    else:
        column = _number(profile, requested)
    column = replace(column, missing=missing)
    if column.kind == "constant" and missing:
        known = f"in all {profile.rows - missing:,} cells that are not missing"
        share = f"({missing:,} of {profile.rows:,} are)"
        column = replace(column, note=column.note.replace("in every row", f"{known} {share}"))
    return _with_fill(column, profile, options) if column.features else column


def _number(profile: ColumnProfile, requested: bool) -> Column:
    name, kind = profile.name, profile.kind
    if not requested:
        if profile.constant:
            return Column(name, "constant", fill=(profile.mean,), note=profile.constant)
        if kind == "number" and profile.row_numbers:
            return Column(name, "identifier", note="whole numbers that count the rows")
    notes, format = ["days since 1970-01-01"] if kind == "date" else [], ""
    if isinstance(profile, ParsedTextProfile):
        format = profile.parsed.format
        notes.append(profile.parsed.note)
    note = ", ".join(notes)
    return Column(name, kind, features=(name,), note=note, written=format)  # type: ignore[arg-type]


def _category(profile: ColumnProfile, options: ReadOptions, requested: bool) -> Column:
    name = profile.name
    rows = {level: int(n) for level, n in zip(profile.levels, profile.counts, strict=True) if n}
    order = profile.levels if profile.declared else ()
    levels, known = levels_in_declared_order(rows, order), sum(rows.values())
    if len(levels) == 1 and not requested:
        return Column(name, "constant", levels, note=f"'{levels[0]}' in every row", order=order)
    if len(levels) == known and not requested and not profile.capped:
        return Column(name, "identifier", note=f"{known} texts, all different")
    if len(levels) > options.max_levels and not requested:
        more = " or more" if profile.capped else ""
        note = f"{len(levels)} levels{more}, more than max_levels={options.max_levels}"
        return Column(name, "dropped", note=note)
    reference = None
    if options.reference is not None:
        frequent = max(levels, key=lambda level: rows[level])  # the first of equal counts
        reference = frequent if options.reference == "frequent" else levels[0]
    column = Column(name, "category", levels, reference, order=order)
    return replace(column, features=tuple(f"{name}={level}" for level in column.indicator_levels))


def _ordered(profile: ColumnProfile, options: ReadOptions) -> Column:
    name, present = profile.name, observed_levels(profile)
    if name not in options.ordered and not profile.declared:
        raise CategoryError.of_orders(name, present)
    levels = tuple(str(level) for level in options.ordered.get(name, profile.levels))
    if len(levels) < 2 or len(set(levels)) < len(levels):
        allowed = "two or more different levels, from lowest to highest"
        raise OptionError.of(f"ordered['{name}']", list(levels), allowed)
    for level in present:
        if level not in levels:
            raise CategoryError.of_order(name, level, levels)
    return Column(name, "ordered", levels, features=(name,), note=" < ".join(levels))


def _with_fill(column: Column, profile: ColumnProfile, options: ReadOptions) -> Column:
    """Return the column with `fill`, the means that replace missing cells.

    If missing cells have the policy 'indicator', the column also gets an indicator of missing
    cells.
    """
    if options.missing not in ("mean", "indicator") and column.kind != "ordered":
        return column
    indicator = options.missing == "indicator" and column.missing > 0
    features = column.features + ((f"{column.name} missing",) if indicator else ())
    return replace(column, fill=_means(column, profile), indicator=indicator, features=features)


def _means(column: Column, profile: ColumnProfile) -> tuple[float, ...]:
    if column.kind not in ("ordered", "category"):
        return (profile.mean,)
    share = dict(zip(profile.levels, profile.shares.tolist(), strict=True))
    if column.kind == "category":
        return tuple(share.get(level, 0.0) for level in column.indicator_levels)
    top = len(column.levels) - 1
    return (sum(share.get(level, 0.0) * j / top for j, level in enumerate(column.levels)),)


def _with_distinct_features(columns: Sequence[Column]) -> list[Column]:
    """Make the feature names unique: primes are appended to duplicates."""
    used: set[str] = set()
    renamed = []
    for column in columns:
        names = []
        for name in column.features:
            while name in used:
                name += "'"
            used.add(name)
            names.append(name)
        renamed.append(replace(column, features=tuple(names)))
    return renamed


def _notes(column: Column) -> list[str]:
    name = f"Column '{column.name}'"
    if column.kind in ("identifier", "constant", "dropped"):
        return [f"{name} is set aside: {column.note}."]
    if column.kind == "number" and column.written:
        return [f"{name} is a number, {column.note}."]
    if column.kind == "number" and _CODE_NAMES.search(column.name.casefold()):
        return [
            f"{name} is used as a number, although its name suggests a code: if it is one, "
            "name it in categories (--category)."
        ]
    if column.kind == "date":
        return [f"{name} is a date, used as {column.note}."]
    if column.kind == "ordered":
        return [f"{name} is ordered, from 0 to 1 in equal steps: {column.note}."]
    if column.kind == "category":
        dropped = "" if column.reference is None else f", reference '{column.reference}'"
        note = f"{name} is a category of {len(column.levels)} levels{dropped}."
        doubtful = [level for level in column.levels if level.casefold() in MAYBE_MISSING]
        for level in doubtful[:1]:
            note += (
                f" '{level}' is one of them; if it means missing, name it in missing_texts "
                "(--missing-text)."
            )
        return [note]
    return []
