"""Encoding of columns as features; it is determined when fitting, and stored with the model.

    number, date     x itself; a date is days since 1970-01-01. Texts are parsed in the format of
                     the training rows (`table.text_values`); dates also as 2023-10-27
    boolean          0 or 1
    ordered          place among k levels / (k - 1): low, medium, high are 0, 0.5, 1
    category         an indicator (0 or 1) for each level, named `column=level`; the reference
                     level, if there is one, has no indicator: it has only zeros

    a missing cell   error, drop   an error (rows are dropped only when fitting)
                     mean          `fill`: the training mean of each of the column's features
                     indicator     `fill`, and 1 in one more feature, `column missing`
                     marginal      NaN in all features of the column: the model integrates over them
                     em            as marginal; fitting uses the cells that are present
    an unseen level  error         an error
                     ignore        no indicator is 1; an ordered column takes its `fill`
                     reject        as ignore, and the row is marked: no class is predicted for it

Columns are matched by name. An `Encoding` is plain data: the result of `to_dict` can be stored as
JSON.

`merge_encodings` returns the common encoding of two tables, so that their moments can be added.
The tables of two sites may contain different values:

    a level that one table lacks               its indicator is 0 in every row of that table
    a column that is constant in one table     its features have known constant values there
    no missing cell in one table               the indicator of missing cells is 0 in every row
    different orders of categories             levels are sorted, as pandas.concat drops the order

In these cases the common encoding is exact: a feature that a table lacks has a known constant value
in all its rows. Any other difference (kinds, reference levels, orders of ordered categories) makes
the features incomparable and is an error.
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
    FormulaError,
    InfiniteCellError,
    MissingCellError,
    MissingValueError,
    ShapeError,
    SitesError,
    warn,
)
from discriminant.table.blocks import Floats
from discriminant.table.column_cells import ColumnCells, Frame, frame_from_dataframe
from discriminant.table.files.csv_dialect import is_number, missing_number_texts
from discriminant.table.formula.design import Design
from discriminant.table.formula.expressions import BOOLEANS, Categories
from discriminant.table.labels import other_spellings
from discriminant.table.memory import ColumnarFeatures
from discriminant.table.missing_and_unseen import Missing, Unseen
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
_WITH_MISSING = ("mean", "indicator", "marginal", "em")  # policies that encode missing cells
_UNKNOWN = -2  # code of an unseen level; -1 means missing
_WORDS = {"number": "numbers", "boolean": "truth values", "date": "dates", "text": "texts"}


class LevelNotInPlan(Exception):  # noqa: N818 -- not an error: the caller makes a wider plan
    """Raised if training rows contain a class or a level that the encoding or plan lacks."""

    def __init__(self, column: str, level: Any) -> None:
        super().__init__(column, level)
        self.column, self.level = column, level


@dataclass(frozen=True, slots=True)
class Column:
    """Encoding of one column."""

    name: str
    kind: ColumnKind
    levels: tuple[str, ...] = ()  # levels of a category; lowest first if ordered
    reference: str | None = None  # level without an indicator
    fill: tuple[float, ...] = ()  # value of each feature where the cell is missing
    indicator: bool = False  # whether the last feature indicates missing cells
    features: tuple[str, ...] = ()
    missing: int = 0  # number of missing cells at the fit
    note: str = ""  # reason why the column is used in this way
    written: str = ""  # format of texts that are numbers or dates: see `table.text_values`
    order: tuple[str, ...] = ()  # all levels that the source declares, including unused ones

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of a column are invalid, or None if they are valid."""
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


def levels_in_declared_order(levels: Collection[str], order: Sequence[str]) -> tuple[str, ...]:
    """Sort the levels that occur: in the declared order if there is one, else alphabetically.

    Levels without rows are left out, as in R's lm and glm.

    >>> levels_in_declared_order({"mid", "low"}, ["low", "mid", "high"])
    ('low', 'mid')
    >>> levels_in_declared_order({"mid", "high"}, [])
    ('high', 'mid')
    """
    return tuple(level for level in order if level in levels) if order else tuple(sorted(levels))


@dataclass(frozen=True, slots=True, eq=False)
class EncodedRows:
    """Features of some rows."""

    features: ColumnarFeatures  # (n, d)
    rejected: npt.NDArray[np.bool_]  # (n,) whether a row is rejected for an unseen level
    incomplete: npt.NDArray[np.bool_]  # (n,) whether a row has a missing cell

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and number of features."""
        return self.features.shape

    def matrix(self) -> Floats:
        """Return the (n, d) features as float64."""
        return np.asarray(self.features[:], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Encoding:
    """Encoding of every column of a table."""

    columns: tuple[Column, ...]
    target: str | None = None
    missing: Missing = "error"
    unseen: Unseen = "error"
    named: bool = True  # whether columns are matched by name; if False, by position
    missing_texts: tuple[str, ...] | None = None  # besides `csv_dialect.MISSING_TEXTS`
    decimal: str = "."  # decimal sign of the CSV that the model was fitted on
    formula: Design | None = None  # features of a formula, if the model has one

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of an encoding are invalid, or None."""
        columns: tuple[Column, ...] = parts["columns"]
        names = [column.name for column in columns]
        features = [name for column in columns for name in column.features]
        if len(set(names)) < len(names) or len(set(features)) < len(features):
            return "a column or a feature appears twice"
        if parts["missing"] in ("mean", "indicator"):
            for column in columns:
                if column.features and not column.fill:
                    return f"column '{column.name[:100]}' has no number for missing cells"
        design: Design | None = parts["formula"]
        if design is None:
            return None
        return design.unusable_reason([column.name for column in columns if column.features])

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the d features."""
        if self.formula is not None:
            return self.formula.features
        return tuple(name for column in self.columns for name in column.features)

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns that have features."""
        return tuple(column for column in self.columns if column.features)

    @property
    def excluded(self) -> tuple[Column, ...]:
        """The columns that are not used, such as identifiers and constants."""
        kinds = ("identifier", "constant", "dropped")
        return tuple(column for column in self.columns if column.kind in kinds)

    def without(self, names: Collection[str]) -> Encoding:
        """Return the encoding without the features of some columns."""
        columns = tuple(
            replace(column, kind="dropped", features=(), fill=(), indicator=False, note="excluded")
            if column.name in names
            else column
            for column in self.columns
        )
        return replace(self, columns=columns)

    def encode(self, frame: Any) -> Floats:
        """Return the (n, d) features of a data frame, whose columns are matched by name."""
        return self.encode_rows(frame).matrix()

    def encode_rows(
        self, source: Any, *, fitting: bool = False, check_finite: bool = True
    ) -> EncodedRows:
        """Encode the rows of a data frame, column by column.

        Parameters
        ----------
        source : Frame or data frame
            Rows that have all used columns.
        fitting : bool, default=False
            Whether these are training rows. In training rows, an unknown level raises
            `LevelNotInPlan`.
        check_finite : bool, default=True
            Whether to search for missing and infinite numbers. Pass False if such cells will be
            detected later because sums are not finite.

        Returns
        -------
        EncodedRows
            Features, rejected rows and incomplete rows.
        """
        frame = source
        if not isinstance(frame, Frame):
            needed = {column.name for column in self.used}
            frame = frame_from_dataframe(
                source, wanted=lambda names: [n for n in names if n in needed]
            )
        self._check_names(frame)
        if not len(frame):
            raise ShapeError.no_rows(0)
        encoder = _RowEncoder(self, frame, fitting, check_finite)
        if self.formula is not None:
            features = encoder.encode_formula(self.formula)
        else:
            features = [part for column in self.used for part in encoder.encode_column(column)]
            encoder.check_missing()
        return EncodedRows(ColumnarFeatures(tuple(features)), encoder.rejected, encoder.incomplete)

    def raw_columns(self, frame: Frame, *, fitting: bool = False) -> dict[str, Floats | Categories]:
        """Return the numbers or categories of each used column, to evaluate a formula."""
        self._check_names(frame)
        return _RowEncoder(self, frame, fitting, True).raw_columns()

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as plain data.

        Fields of a column that have their default value are left out, as is the formula if there is
        none.
        """
        columns = tuple(_nondefault_fields(column) for column in self.columns)
        state = {**asdict(replace(self, columns=(), formula=None)), "columns": columns}
        del state["formula"]
        return state if self.formula is None else {**state, "formula": self.formula.to_dict()}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Encoding:
        """Return the encoding from the plain data that `to_dict` returned."""
        columns = tuple(Column(**_lists_to_tuples(column)) for column in state["columns"])
        design = state.get("formula")
        formula = None if design is None else Design.from_dict(design)
        return cls(**{**_lists_to_tuples(state), "columns": columns, "formula": formula})

    def _check_names(self, frame: Frame) -> None:
        wanted = [column.name for column in self.used]
        known = {column.name for column in self.columns}
        absent = [name for name in wanted if name not in frame.positions]
        extra = [name for name in (*frame.names, *frame.excluded) if name not in known]
        if absent:
            raise ColumnNamesError.of_missing(absent, extra)
        if extra and self.formula is None:
            warn(ExtraColumnsWarning.of_columns(extra))


def _nondefault_fields(column: Column) -> dict[str, Any]:
    values = {field.name: (getattr(column, field.name), field.default) for field in fields(column)}
    return {name: value for name, (value, default) in values.items() if value != default}


def _lists_to_tuples(state: Mapping[str, Any]) -> dict[str, Any]:
    """Convert lists to tuples in a state that was read from JSON."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in state.items()}


def _column_parser(column: Column) -> Callable[[str], float | None]:
    """Return the function that parses texts in a column of numbers or dates."""
    if not column.written and column.kind != "date":
        return lambda text: float(text) if is_number(text) else None
    parse, parse_iso = text_parser(column.written), text_parser("")
    if column.kind == "number":
        return parse
    return lambda text: parse_iso(text) if (value := parse(text)) is None else value


def _expected_text(column: Column) -> str:
    """Describe the texts that are valid in the column, for messages."""
    if column.kind == "date":
        formats = dict.fromkeys((column.written or "YYYY-MM-DD", "YYYY-MM-DD"))
        return f"date ({' or '.join(formats)})"
    if column.written:
        style, _, unit = column.written.partition(";")
        return f"number such as {style}{unit and ' with '}{unit}"
    return "truth value" if column.kind == "boolean" else "number"


class _RowEncoder:
    """Encodes the columns of one frame and records missing cells and unseen levels."""

    def __init__(self, encoding: Encoding, frame: Frame, fitting: bool, check_finite: bool) -> None:
        self.encoding = encoding
        self.frame = frame
        self.missing = encoding.missing
        self.unseen = encoding.unseen
        self.missing_texts = missing_number_texts(encoding.missing_texts)
        self.fitting = fitting
        self.check_finite = check_finite
        self.rejected = np.zeros(len(frame), dtype=bool)
        self.incomplete = np.zeros(len(frame), dtype=bool)
        self._first_missing: tuple[int, str] | None = None  # its row and column
        self._missing_columns = 0

    def encode_column(self, column: Column) -> list[npt.NDArray[Any]]:
        """Return the features of one column."""
        cells = self.frame[column.name]
        if column.kind in ("ordered", "category"):
            return self._levels(column, cells)
        values = self._numbers(column, cells)
        if values.dtype.kind != "f" or not self.check_finite or np.isfinite(values.sum()):
            return self._fill_missing(column, [values], None)
        self._check_infinite(column, values)
        return self._fill_missing(column, [values], np.isnan(values))

    def raw_columns(self) -> dict[str, Floats | Categories]:
        """Return the numbers or categories of each used column; a missing cell raises an error."""
        columns: dict[str, Floats | Categories] = {}
        for column in self.encoding.used:
            cells = self.frame[column.name]
            if column.kind in ("ordered", "category"):
                codes = self._codes(column, cells.as_text())
                missing = codes == -1
                columns[column.name] = Categories(codes, column.levels)
            else:
                numbers = self._numbers(column, cells).astype(np.float64)
                self._check_infinite(column, numbers)
                missing = np.isnan(numbers)
                columns[column.name] = numbers
                if column.kind == "boolean":
                    flags = np.where(missing, -1.0, numbers).astype(np.intp)
                    columns[column.name] = Categories(flags, BOOLEANS)
            if missing.any():
                self._record_missing(column, missing)
        if not self.frame.named and self._first_missing is not None:  # the message for arrays
            row, name = self._first_missing
            rows = int(self.incomplete.sum())
            raise MissingValueError.of_cell(row, name, rows=rows, columns=self._missing_columns)
        self.check_missing(formula=True)
        return columns

    def encode_formula(self, formula: Design) -> list[npt.NDArray[Any]]:
        """Return the features of a formula."""
        features, unseen = formula.encode(self.raw_columns(), len(self.frame))
        for factor, rows in unseen.items():
            if self.unseen == "error":
                row = int(np.argmax(rows))
                raise FormulaError.unseen(self.frame.row_number(row), factor, int(rows.sum()))
            if self.unseen == "reject":
                self.rejected |= rows
        return [*features]

    def check_missing(self, *, formula: bool = False) -> None:
        """Raise the error for the first missing cell, unless the policy allows missing cells."""
        if self._first_missing is None or self.missing in _WITH_MISSING:
            return
        if self.fitting and self.missing == "drop":
            return
        row, column = self._first_missing
        error = MissingCellError.in_formula if formula else MissingCellError.of
        raise error(
            self.frame.row_number(row),
            column,
            rows=int(self.incomplete.sum()),
            columns=self._missing_columns,
            fitted=not self.fitting,
            line=self.frame.line_number(row),
        )

    def _numbers(self, column: Column, cells: ColumnCells) -> npt.NDArray[Any]:
        if cells.kind == "text":
            return self._parse(column, cells)
        if (cells.kind == "date") != (column.kind == "date"):
            raise ColumnKindError.changed(
                column.name, was=_WORDS[column.kind], now=_WORDS[cells.kind]
            )
        return cells.values

    def _parse(self, column: Column, cells: ColumnCells) -> Floats:
        """Parse the texts of a column that contained numbers or dates when the model was fitted."""
        parse = _column_parser(column)
        missing = self.missing_texts if column.written else ()
        values = [np.nan if text in missing else parse(text) for text in cells.levels]
        bad = [code for code, value in enumerate(values) if value is None]
        for row in np.flatnonzero(np.isin(cells.values, bad))[:1].tolist():
            raise BadNumberError.of(
                self.frame.row_number(row),
                column.name,
                cells.levels[cells.values[row]],
                line=self.frame.line_number(row),
                kind=_expected_text(column),
            )
        by_code = [np.nan if value is None else value for value in values]
        return np.asarray(np.array([*by_code, np.nan])[cells.values])

    def _check_infinite(self, column: Column, values: npt.NDArray[Any]) -> None:
        for row in np.flatnonzero(np.isinf(values))[:1].tolist():
            text = self.frame.cell_text(row, column.name)
            line, number = self.frame.line_number(row), self.frame.row_number(row)
            raise InfiniteCellError.of(number, column.name, text=text, line=line)

    def _levels(self, column: Column, cells: ColumnCells) -> list[npt.NDArray[Any]]:
        codes = self._codes(column, cells.as_text())
        missing = codes == -1
        if column.kind == "ordered":
            top = max(len(column.levels) - 1, 1)
            values = np.where(codes >= 0, codes / top, column.fill[0] if column.fill else 0.0)
            return self._fill_missing(column, [values], missing)
        with_indicator = [column.levels.index(level) for level in column.indicator_levels]
        parts: list[npt.NDArray[Any]] = [(codes == code).view(np.uint8) for code in with_indicator]
        return self._fill_missing(column, parts, missing)

    def _codes(self, column: Column, cells: ColumnCells) -> npt.NDArray[np.int32]:
        """Return the code of each cell, its index among the levels in the training rows.

        Other spellings of a level are recognised. The code is -1 if the cell is missing, and -2 if
        its level does not occur in the training rows.
        """
        code_of = {level: code for code, level in enumerate(column.levels)}
        if not all(level in code_of for level in cells.levels):
            others = other_spellings(column.levels)
            code_of |= {text: code_of[level] for text, level in others.items()}
        new = np.array([*(code_of.get(v, _UNKNOWN) for v in cells.levels), -1], dtype=np.int32)
        codes = np.asarray(new[cells.values])
        if (new == _UNKNOWN).any():
            self._handle_unseen(column, cells, codes == _UNKNOWN)
        return codes

    def _handle_unseen(
        self, column: Column, cells: ColumnCells, unseen: npt.NDArray[np.bool_]
    ) -> None:
        rows = np.flatnonzero(unseen)
        if len(rows) and self.fitting:
            raise LevelNotInPlan(column.name, cells.levels[cells.values[rows[0]]])
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
            self.rejected |= unseen

    def _fill_missing(
        self, column: Column, parts: list[npt.NDArray[Any]], missing: npt.NDArray[np.bool_] | None
    ) -> list[npt.NDArray[Any]]:
        """Fill the missing cells of the features.

        If the column has an indicator of missing cells, the indicator is appended.
        """
        if missing is not None and missing.any():
            self._record_missing(column, missing)
            fill = column.fill if self.missing in ("mean", "indicator") else (np.nan,) * len(parts)
            parts = [np.where(missing, f, part) for part, f in zip(parts, fill, strict=True)]
        if not column.indicator:
            return parts
        absent = np.zeros(len(self.frame), dtype=bool) if missing is None else missing
        return [*parts, absent.view(np.uint8)]

    def _record_missing(self, column: Column, missing: npt.NDArray[np.bool_]) -> None:
        self.incomplete |= missing
        self._missing_columns += 1
        row = int(np.argmax(missing))
        if self._first_missing is None or row < self._first_missing[0]:
            self._first_missing = row, column.name


@dataclass(frozen=True, slots=True)
class CommonEncoding:
    """Common encoding of two tables, with the constant values of features that one table lacks."""

    encoding: Encoding
    ours: Mapping[str, float]
    theirs: Mapping[str, float]


def merge_encodings(ours: Encoding, theirs: Encoding) -> CommonEncoding:
    """Return the common encoding of two tables, with the columns in the order of the first.

    Parameters
    ----------
    ours, theirs : Encoding
        Encodings of tables with the same columns.

    Returns
    -------
    CommonEncoding
        The common encoding, and the constant values of the new features in each table.

    Raises
    ------
    SitesError
        If the target, the treatment of missing cells or the meaning of a column differs.
    """
    for option in ("target", "missing", "formula"):
        if getattr(ours, option) != getattr(theirs, option):
            raise SitesError.of_option(option, getattr(ours, option), getattr(theirs, option))
    left, right = _columns_by_name(ours), _columns_by_name(theirs)
    for name in (*left, *right):
        if name not in left or name not in right:
            raise SitesError.of_absent(name, first=name in left)
    columns = tuple(
        _merge_columns(column, right[column.name]) if column.name in right else column
        for column in ours.columns
    )
    decimal = ours.decimal if ours.decimal == theirs.decimal else "."
    merged = replace(ours, columns=columns, decimal=decimal)
    return CommonEncoding(merged, _new_constants(ours, merged), _new_constants(theirs, merged))


def _columns_by_name(encoding: Encoding) -> dict[str, Column]:
    unused = ("identifier", "dropped", "target", "weight")
    return {column.name: column for column in encoding.columns if column.kind not in unused}


def _merge_columns(ours: Column, theirs: Column) -> Column:
    ours = replace(ours, order=ours.order if ours.order == theirs.order else ())
    theirs = replace(theirs, order=ours.order)
    if ours.kind == theirs.kind == "constant":
        if ours.levels == theirs.levels and ours.fill == theirs.fill:
            return _merge_missing(ours, theirs)
        ours = _vary_constant(ours, theirs)
    if ours.kind == "constant":
        ours, theirs = theirs, ours
    name, kind = ours.name, ours.kind
    if kind != theirs.kind and theirs.kind != "constant":
        raise SitesError.of_kinds(name, kind, theirs.kind)
    if theirs.kind == "constant" and (kind in ("category", "ordered")) != bool(theirs.levels):
        raise SitesError.of_kinds(name, kind, "a constant of another kind")
    if kind == "ordered" and not set(theirs.levels) <= set(ours.levels):
        raise SitesError.of_order(name, ours.levels, theirs.levels)
    if kind != "category":
        return _merge_missing(ours, theirs)
    if theirs.kind == "category" and ours.reference != theirs.reference:
        raise SitesError.of_reference(name, ours.reference, theirs.reference)
    levels = levels_in_declared_order({*ours.levels, *theirs.levels}, ours.order)
    merged = replace(ours, levels=levels)
    features = tuple(f"{name}={level}" for level in merged.indicator_levels)
    indicator = ours.features[-1:] if ours.indicator else ()
    return _merge_missing(replace(merged, features=features + indicator), theirs)


def _vary_constant(ours: Column, theirs: Column) -> Column:
    """Make our constant column a varying one, since its value differs in the other table."""
    if ours.levels and theirs.levels:
        return replace(ours, kind="category")
    if ours.levels or theirs.levels:
        raise SitesError.of_kinds(ours.name, "texts", "numbers")
    return replace(ours, kind="number", fill=(), features=(ours.name,), note="")


def _merge_missing(ours: Column, theirs: Column) -> Column:
    """Add up the missing cells of both tables for one column.

    The resulting column has an indicator of missing cells if it has one in either table.
    """
    merged = replace(ours, missing=ours.missing + theirs.missing)
    if theirs.indicator and not ours.indicator:
        merged = replace(merged, indicator=True, features=(*ours.features, theirs.features[-1]))
    return merged


def _new_constants(old: Encoding, merged: Encoding) -> dict[str, float]:
    """Return the constant value, in the old rows, of each feature that the old encoding lacks."""
    before = {column.name: column for column in old.columns}
    known = set(old.features)
    return {
        feature: _constant_value(before[column.name], column, feature)
        for column in merged.columns
        for feature in column.features
        if feature not in known
    }


def _constant_value(before: Column, column: Column, feature: str) -> float:
    is_indicator = column.indicator and feature == column.features[-1]
    if is_indicator or before.kind != "constant":
        return 0.0
    if column.kind == "category":
        return float(feature == f"{column.name}={before.levels[0]}")
    if column.kind == "ordered":
        return column.levels.index(before.levels[0]) / max(len(column.levels) - 1, 1)
    return before.fill[0]
