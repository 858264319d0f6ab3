"""Columns to features, by a plan that is fixed at the fit and travels with the model.

    number, date     x itself; a date is days since 1970-01-01. Texts are read as `table.writing`
                     found them written at the fit; dates also as 2023-10-27
    boolean          0 or 1
    ordered          place among k levels / (k - 1): low, medium, high are 0, 0.5, 1
    category         an indicator (0 or 1) for each level, named `column=level`; the reference
                     level, if there is one, has none: it is all zeros

    a missing cell   error, drop   an error (rows are dropped at the fit only)
                     mean          `fill`: the mean of each of the column's features at the fit
                     indicator     `fill`, and 1 in one more feature, `column missing`
                     marginal      NaN in all features of the column: the model does without them
    an unseen level  error         an error
                     ignore        no indicator is 1; an ordered column takes its `fill`
                     reject        as ignore, and the row is marked: it is not to be decided

Columns are matched by name. An Encoding is plain facts: `to_dict` gives what JSON can hold.

What may be done with missing cells and unseen levels: words that need nothing to be read.

What the columns of two tables become, so that the moments of both add.

Tables of one kind from two sites may differ in what was met there:

    a level of one that the other never met    its indicator is 0 in every row there
    a column with one value in every row       set aside there; its features are known all the same
    nothing missing                            the indicator of missing is 0 in every row there
    another order of categories                levels are sorted, as pandas.concat drops the order

So the union of both is known exactly, with the constant that stands in each new feature. What
differs otherwise (kinds, reference levels, orders) makes features that mean different things.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.errors import (
    BadNumberError,
    CategoryError,
    ColumnKindError,
    ColumnNamesError,
    ExtraColumnsWarning,
    InfiniteCellError,
    MissingCellError,
    ShapeError,
    SitesError,
    warn,
)
from discriminant.table.blocks import Floats
from discriminant.table.cells import Cells, Frame, to_frame
from discriminant.table.files.csv_dialect import MISSING_TEXTS as MISSING_TEXTS, is_number
from discriminant.table.labels import other_spellings
from discriminant.table.memory import ColumnarFeatures
from discriminant.table.policies import Missing, Unseen
from discriminant.table.text_values import text_parser

ColumnKind = Literal[
    "number",
    "boolean",
    "date",
    "ordered",
    "category",
    "target",
    "weight",
    "identifier",
    "constant",
    "dropped",
]
_UNKNOWN = -2  # code of a level that was not seen; -1 is missing
_WORDS = {"number": "numbers", "boolean": "truth values", "date": "dates", "text": "texts"}


class UnknownLevel(Exception):  # noqa: N818 -- not a fault: whoever made the plan makes a wider one
    """Rows of a fit hold a class or a level that is not among those foreseen."""

    def __init__(self, column: str, level: Any) -> None:
        super().__init__(column, level)
        self.column, self.level = column, level


@dataclass(frozen=True, slots=True)
class Column:
    """What becomes of one column."""

    name: str
    kind: ColumnKind
    levels: tuple[str, ...] = ()  # of ordered (lowest first) and unordered categories
    reference: str | None = None  # the level that has no indicator
    fill: tuple[float, ...] = ()  # one for each feature, but for the indicator of missing
    indicator: bool = False  # whether the last feature says that the cell is missing
    features: tuple[str, ...] = ()
    missing: int = 0  # cells that were missing at the fit
    note: str = ""  # why, where a reader may wonder
    written: str = ""  # how numbers or dates are, of texts: `table.writing`
    order: tuple[str, ...] = ()  # levels of a category as its source lists them, unused ones too

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return why these fields cannot form a column, or None."""
        levels, features, reference = parts["levels"], parts["features"], parts["reference"]
        fill, kind = parts["fill"], parts["kind"]
        if len(set(levels)) < len(levels):
            return "a level appears twice"
        if reference is not None and reference not in levels:
            return f"the reference '{reference[:100]}' is not one of its {len(levels)} levels"
        expected = len(levels) - (reference is not None) if kind == "category" else 1
        if kind not in ("number", "boolean", "date", "ordered", "category"):
            return f"a column of kind {kind} has no features" if features else None
        if len(features) != expected + parts["indicator"]:
            return f"it has {len(features)} features, not {expected + parts['indicator']}"
        if fill and len(fill) != expected:
            return f"it has {len(fill)} numbers for missing cells, not {expected}"
        return None if np.isfinite(fill).all() else "a number for missing cells is not finite"

    @property
    def indicator_levels(self) -> tuple[str, ...]:
        """Levels that have an indicator, in the order of the features."""
        return tuple(level for level in self.levels if level != self.reference)


def sorted_levels(levels: Collection[str], order: Sequence[str]) -> tuple[str, ...]:
    """Levels of the rows in the order that their source declares, else in that of the alphabet.

    Levels without rows are left out, as R's lm and glm do.

    >>> sorted_levels({"mid", "low"}, ["low", "mid", "high"]), sorted_levels({"mid", "high"}, [])
    (('low', 'mid'), ('high', 'mid'))
    """
    return tuple(level for level in order if level in levels) if order else tuple(sorted(levels))


@dataclass(frozen=True, slots=True, eq=False)
class EncodedRows:
    """Rows as features."""

    features: ColumnarFeatures  # (n, d)
    rejected: npt.NDArray[np.bool_]  # (n,) rows with a level that was not seen, to be rejected
    incomplete: npt.NDArray[np.bool_]  # (n,) rows with a missing cell

    def matrix(self) -> Floats:
        """(n, d) float64."""
        return np.asarray(self.features[:], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Encoding:
    """What becomes of every column."""

    columns: tuple[Column, ...]
    target: str | None = None
    missing: Missing = "error"
    unseen: Unseen = "error"
    named: bool = True  # whether columns are matched by name; else by place
    missing_texts: tuple[str, ...] | None = None  # of CSV; None: as `table.dialect` has them
    decimal: str = "."  # sign of the CSV that the model was fitted to

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return why these fields cannot form an encoding, or None."""
        columns: tuple[Column, ...] = parts["columns"]
        names = [column.name for column in columns]
        features = [name for column in columns for name in column.features]
        if len(set(names)) < len(names) or len(set(features)) < len(features):
            return "a column or a feature appears twice"
        if parts["missing"] in ("mean", "indicator"):
            for column in columns:
                if column.features and not column.fill:
                    return f"column '{column.name[:100]}' has no number for missing cells"
        return None

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the d features."""
        return tuple(name for column in self.columns for name in column.features)

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns that features are made of."""
        return tuple(column for column in self.columns if column.features)

    @property
    def excluded(self) -> tuple[Column, ...]:
        """Columns that were set aside."""
        some = ("identifier", "constant", "dropped")
        return tuple(column for column in self.columns if column.kind in some)

    def encode(self, frame: Any) -> Floats:
        """(n, d) features of any frame, checked by name."""
        return self.encode_rows(frame).matrix()

    def encode_rows(
        self, source: Any, *, fitting: bool = False, looking: bool = True
    ) -> EncodedRows:
        """Features of a frame column by column, and the rows to be rejected.

        Numbers need not be looked at for whoever will see in the sums that some are missing.
        """
        frame = source
        if not isinstance(frame, Frame):
            needed = {column.name for column in self.used}
            frame = to_frame(source, wanted=lambda names: [n for n in names if n in needed])
        self._check_names(frame)
        if not len(frame):
            raise ShapeError.no_rows(0)
        work = _Work(self, frame, fitting, looking)
        found = [part for column in self.used for part in work.column(column)]
        work.check_missing()
        return EncodedRows(ColumnarFeatures(tuple(found)), work.rejected, work.gaps)

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold; of a column only what is not the default, for there may be many."""
        found = asdict(replace(self, columns=()))
        return {**found, "columns": tuple(_nondefault(column) for column in self.columns)}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Encoding:
        """The encoding that `to_dict` was asked of."""
        columns = tuple(Column(**_tuples(column)) for column in found["columns"])
        return cls(**{**_tuples(found), "columns": columns})

    def _check_names(self, frame: Frame) -> None:
        wanted = [column.name for column in self.used]
        known = {column.name for column in self.columns}
        absent = [name for name in wanted if name not in frame.positions]
        extra = [name for name in (*frame.names, *frame.excluded) if name not in known]
        if absent:
            raise ColumnNamesError.of_missing(absent, extra)
        if extra:
            warn(ExtraColumnsWarning.of_columns(extra))


def _nondefault(column: Column) -> dict[str, Any]:
    """The fields of a column that differ from their defaults."""
    values = {one.name: (getattr(column, one.name), one.default) for one in fields(column)}
    return {name: value for name, (value, default) in values.items() if value != default}


def _tuples(found: Mapping[str, Any]) -> dict[str, Any]:
    """Lists, which JSON has instead of tuples, as tuples."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in found.items()}


def _reader(column: Column) -> Callable[[str], float | None]:
    """What reads the texts of a column of numbers or dates."""
    if column.written or column.kind == "date":
        way = text_parser(column.written)
        iso = text_parser("")
        return way if column.kind == "number" else lambda text: _first(way(text), iso(text))
    return lambda text: float(text) if is_number(text) else None


def _first(one: float | None, other: float | None) -> float | None:
    return other if one is None else one


def _word(column: Column) -> str:
    """What the texts of a column are to be."""
    if column.kind == "date":
        ways = dict.fromkeys((column.written or "YYYY-MM-DD", "YYYY-MM-DD"))
        return f"date ({' or '.join(ways)})"
    if column.written:
        style, _, unit = column.written.partition(";")
        return f"number such as {style}{unit and ' with '}{unit}"
    return "truth value" if column.kind == "boolean" else "number"


class _Work:
    """Turning one frame."""

    def __init__(self, encoding: Encoding, frame: Frame, fitting: bool, looking: bool) -> None:
        self.frame = frame
        self.missing = encoding.missing
        self.unseen = encoding.unseen
        self.texts = MISSING_TEXTS if encoding.missing_texts is None else encoding.missing_texts
        self.fitting = fitting
        self.looking = looking
        self.rejected = np.zeros(len(frame), dtype=bool)
        self.gaps = np.zeros(len(frame), dtype=bool)
        self._first: tuple[int, str] | None = None  # the first missing cell
        self._columns = 0  # that have missing cells

    def column(self, column: Column) -> list[npt.NDArray[Any]]:
        """The features of one column."""
        cells = self.frame[column.name]
        if column.kind in ("ordered", "category"):
            return self._levels(column, cells)
        values = self._numbers(column, cells)
        if values.dtype.kind != "f" or not self.looking or np.isfinite(values.sum()):
            return self._filled(column, [values], None)
        self._check_finite(column, values)
        gone = np.isnan(values)
        return self._filled(column, [values], gone if gone.any() else None)

    def check_missing(self) -> None:
        """Raise the error for the first missing cell, where there may be none."""
        if self._first is None or self.missing in ("mean", "indicator", "marginal"):
            return
        if self.fitting and self.missing == "drop":
            return
        row, column = self._first
        raise MissingCellError.of(
            self.frame.row_number(row),
            column,
            rows=int(self.gaps.sum()),
            columns=self._columns,
            fitted=not self.fitting,
            line=self.frame.line_number(row),
        )

    # --- inside ---------------------------------------------------------------------------------

    def _numbers(self, column: Column, cells: Cells) -> npt.NDArray[Any]:
        if cells.kind == "text":
            return self._parsed(column, cells)
        if (cells.kind == "date") != (column.kind == "date"):
            raise ColumnKindError.changed(
                column.name, was=_WORDS[column.kind], now=_WORDS[cells.kind]
            )
        return cells.values

    def _parsed(self, column: Column, cells: Cells) -> Floats:
        """Texts as numbers, where the fit had numbers."""
        read = _reader(column)
        gone = self.texts if column.written else ()
        found = [np.nan if text in gone else read(text) for text in cells.levels]
        bad = [code for code, value in enumerate(found) if value is None]
        rows = np.flatnonzero(np.isin(cells.values, bad))
        if len(rows):
            row = int(rows[0])
            text = cells.levels[cells.values[row]]
            place = self.frame.row_number(row)
            raise BadNumberError.of(
                place, column.name, text, line=self.frame.line_number(row), kind=_word(column)
            )
        table = [np.nan if value is None else value for value in found]
        return np.asarray(np.array([*table, np.nan])[cells.values])

    def _check_finite(self, column: Column, values: npt.NDArray[Any]) -> None:
        for row in np.flatnonzero(np.isinf(values))[:1].tolist():
            text = self.frame.cell_text(row, column.name)
            line = self.frame.line_number(row)
            raise InfiniteCellError.of(
                self.frame.row_number(row), column.name, text=text, line=line
            )

    def _levels(self, column: Column, cells: Cells) -> list[npt.NDArray[Any]]:
        codes = self._codes(column, cells.as_text())
        gone = codes == -1
        if column.kind == "ordered":
            top = max(len(column.levels) - 1, 1)
            values = np.where(codes >= 0, codes / top, column.fill[0] if column.fill else 0.0)
            return self._filled(column, [values], gone if gone.any() else None)
        place = [column.levels.index(level) for level in column.indicator_levels]
        parts: list[npt.NDArray[Any]] = [(codes == code).view(np.uint8) for code in place]
        return self._filled(column, parts, gone if gone.any() else None)

    def _codes(self, column: Column, cells: Cells) -> npt.NDArray[np.int32]:
        """Codes into the levels of the fit, however spelled; -1 missing, -2 not seen."""
        place = {level: code for code, level in enumerate(column.levels)}
        if not all(level in place for level in cells.levels):
            others = other_spellings(column.levels)
            place |= {text: place[level] for text, level in others.items()}
        table = np.array([*(place.get(v, _UNKNOWN) for v in cells.levels), -1], dtype=np.int32)
        codes = np.asarray(table[cells.values])
        if (table == _UNKNOWN).any():
            self._meet_unseen(column, cells, codes == _UNKNOWN)
        return codes

    def _meet_unseen(self, column: Column, cells: Cells, new: npt.NDArray[np.bool_]) -> None:
        rows = np.flatnonzero(new)
        if len(rows) and self.fitting:
            raise UnknownLevel(column.name, cells.levels[cells.values[rows[0]]])
        if len(rows) and self.unseen == "error":
            row = int(rows[0])
            raise CategoryError.unseen(
                self.frame.row_number(row),
                column.name,
                cells.levels[cells.values[row]],
                known=column.levels,
                rows=len(rows),
                line=self.frame.line_number(row),
            )
        if self.unseen == "reject":
            self.rejected |= new

    def _filled(
        self, column: Column, parts: list[npt.NDArray[Any]], gone: npt.NDArray[np.bool_] | None
    ) -> list[npt.NDArray[Any]]:
        """The features with their missing cells as the policy is."""
        if gone is not None:
            self._note(column, gone)
            fill = column.fill if self.missing in ("mean", "indicator") else (np.nan,) * len(parts)
            parts = [np.where(gone, f, part) for part, f in zip(parts, fill, strict=True)]
        if not column.indicator:
            return parts
        mark = np.zeros(len(self.frame), dtype=np.uint8) if gone is None else gone.view(np.uint8)
        return [*parts, mark]

    def _note(self, column: Column, gone: npt.NDArray[np.bool_]) -> None:
        self.gaps |= gone
        self._columns += 1
        row = int(np.argmax(gone))
        if self._first is None or row < self._first[0]:
            self._first = row, column.name


_OUT = ("identifier", "dropped", "target", "weight")


@dataclass(frozen=True, slots=True)
class MergedEncoding:
    """The union of two encodings, and what features that one lacked are in all of its rows."""

    encoding: Encoding
    ours: Mapping[str, float]
    theirs: Mapping[str, float]


def merge_encodings(ours: Encoding, theirs: Encoding) -> MergedEncoding:
    """The union; columns as the first has them in order."""
    for what in ("target", "missing"):
        if getattr(ours, what) != getattr(theirs, what):
            raise SitesError.of_option(what, getattr(ours, what), getattr(theirs, what))
    left, right = _by_name(ours), _by_name(theirs)
    for name in (*left, *right):
        if name not in left or name not in right:
            raise SitesError.of_absent(name, first=name in left)
    columns = [
        _joined(column, right[column.name]) if column.name in right else column
        for column in ours.columns
    ]
    decimal = ours.decimal if ours.decimal == theirs.decimal else "."
    whole = replace(ours, columns=tuple(columns), decimal=decimal)
    return MergedEncoding(whole, _constants(ours, whole), _constants(theirs, whole))


def _by_name(encoding: Encoding) -> dict[str, Column]:
    return {column.name: column for column in encoding.columns if column.kind not in _OUT}


def _joined(one: Column, other: Column) -> Column:
    """One column of both."""
    one = replace(one, order=one.order if one.order == other.order else ())
    other = replace(other, order=one.order)
    if one.kind == other.kind == "constant":
        if one.levels == other.levels and one.fill == other.fill:
            return _marked(one, other)
        one, other = _varied(one, other)
    if one.kind == "constant":
        one, other = other, one
    if one.kind != other.kind and other.kind != "constant":
        raise SitesError.of_kinds(one.name, one.kind, other.kind)
    if other.kind == "constant" and (one.kind in ("category", "ordered")) != bool(other.levels):
        raise SitesError.of_kinds(one.name, one.kind, "a constant of another kind")
    if one.kind == "ordered" and not set(other.levels) <= set(one.levels):
        raise SitesError.of_order(one.name, one.levels, other.levels)
    if one.kind != "category":
        return _marked(one, other)
    if other.kind == "category" and one.reference != other.reference:
        raise SitesError.of_reference(one.name, one.reference, other.reference)
    levels = sorted_levels({*one.levels, *other.levels}, one.order)
    found = replace(one, levels=levels)
    names = tuple(f"{one.name}={level}" for level in found.indicator_levels)
    more = one.features[-1:] if one.indicator else ()
    return _marked(replace(found, features=names + more), other)


def _varied(one: Column, other: Column) -> tuple[Column, Column]:
    """Two constants that differ are a column after all."""
    if one.levels and other.levels:
        return replace(one, kind="category"), other
    if one.levels or other.levels:
        raise SitesError.of_kinds(one.name, "texts", "numbers")
    return replace(one, kind="number", fill=(), features=(one.name,), note=""), other


def _marked(one: Column, other: Column) -> Column:
    """With the indicator of missing if either has it, and the missing cells of both."""
    found = replace(one, missing=one.missing + other.missing)
    if other.indicator and not one.indicator:
        found = replace(found, indicator=True, features=(*one.features, other.features[-1]))
    return found


def _constants(old: Encoding, whole: Encoding) -> dict[str, float]:
    """What stands in the features that a table did not have."""
    before = {column.name: column for column in old.columns}
    known = set(old.features)
    return {
        feature: _constant(before[column.name], column, feature)
        for column in whole.columns
        for feature in column.features
        if feature not in known
    }


def _constant(before: Column, column: Column, feature: str) -> float:
    if column.indicator and feature == column.features[-1]:
        return 0.0
    if before.kind != "constant":
        return 0.0
    if column.kind == "category":
        return float(feature == f"{column.name}={before.levels[0]}")
    if column.kind == "ordered":
        return column.levels.index(before.levels[0]) / max(len(column.levels) - 1, 1)
    return before.fill[0]
