"""Cells of a column, converted from Arrow or a data frame to numbers or to codes for texts.

    number, boolean, date   values are numbers, NaN where missing (a date is days since 1970)
    text                    values are codes into `levels`, -1 where missing

Numbers keep their type and are copied only if necessary. Texts are encoded here, once. Later steps
work on the distinct texts, which are called levels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.errors import (
    CellTypeError,
    ColumnKindError,
    ColumnNamesError,
    LabelError,
    LibraryMissingError,
    ShapeError,
)
from discriminant.table.blocks import Codes, Labels
from discriminant.table.labels import compact_codes, drop_empty_classes, encode_labels

CellKind = Literal["number", "boolean", "date", "text"]

_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


@dataclass(frozen=True, slots=True, eq=False)
class ColumnCells:
    """Cells of one column."""

    name: str
    kind: CellKind
    values: npt.NDArray[Any]  # (n,) numbers, or codes of texts
    levels: tuple[str, ...] = ()  # distinct texts
    labels: npt.NDArray[Any] | None = None  # (k,) original values of levels that are not texts
    ordered: bool = False  # whether the order of the levels is meaningful
    declared: bool = False  # whether the source declares a list of levels

    def __len__(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """(n,) mask of missing cells."""
        if self.kind == "text":
            return np.asarray(self.values < 0)
        if self.values.dtype.kind == "f":
            return np.asarray(np.isnan(self.values))
        return np.zeros(len(self.values), dtype=bool)

    @property
    def n_missing(self) -> int:
        """Number of missing cells."""
        if self.kind == "text":
            return int((self.values < 0).sum())
        if self.values.dtype.kind != "f" or not np.isnan(self.values.sum()):
            return 0
        return int(np.isnan(self.values).sum())

    def take(self, rows: npt.NDArray[Any]) -> ColumnCells:
        """Return the given rows."""
        return replace(self, values=self.values[rows])

    def as_text(self) -> ColumnCells:
        """Convert the cells to a categorical column whose levels are the texts `str(value)`.

        Truth values become the texts True and False, however the source stores them.
        """
        if self.kind == "text":
            return self
        known = ~self.missing
        present = self.values[known]
        present = present.astype(bool) if self.kind == "boolean" else present
        distinct, codes = np.unique(present, return_inverse=True)
        values = np.full(len(self.values), -1, dtype=np.int32)
        values[known] = codes
        return ColumnCells(self.name, "text", values, tuple(map(_level_text, distinct.tolist())))


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Columns of equal length, with the position of their rows in the source."""

    columns: tuple[ColumnCells, ...]
    rows: int
    line_of: Callable[[int], int] | None = None  # line of the file on which a row begins
    text_of: Callable[[int, str], str] | None = None  # text of a cell in the file
    named: bool = True  # whether the user gave the column names
    excluded: tuple[str, ...] = ()  # columns of the source that were not read
    start: int = 0  # number of the first row in its source, for messages
    row_numbers: npt.NDArray[np.intp] | None = None  # (n,) in the source, if rows were dropped
    positions: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        positions = {cells.name: j for j, cells in enumerate(self.columns)}
        object.__setattr__(self, "positions", positions)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(cells.name for cells in self.columns)

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, name: str) -> ColumnCells:
        return self.columns[self.positions[name]]

    def line_number(self, row: int) -> int | None:
        """Return the line of the file on which a row begins, or None if the source is no text."""
        return None if self.line_of is None else self.line_of(self._number(row))

    def cell_text(self, row: int, column: str) -> str | None:
        """Return a cell exactly as written in the file, or None if the source is no text file."""
        return None if self.text_of is None else self.text_of(self._number(row), column)

    def row_number(self, row: int) -> int:
        """Return the number of a row in its source, for messages."""
        return self.start + self._number(row)

    def take(self, rows: npt.NDArray[np.intp]) -> Frame:
        """Return the given rows. The rows keep the row numbers of the source."""
        numbers = rows if self.row_numbers is None else self.row_numbers[rows]
        columns = tuple(cells.take(rows) for cells in self.columns)
        return replace(self, columns=columns, rows=len(rows), row_numbers=numbers)

    def drop_unlabelled(self, target: str) -> Frame:
        """Return the frame without the rows whose label is missing."""
        cells = self[target]
        return self.take(np.flatnonzero(~cells.missing)) if cells.n_missing else self

    def _number(self, row: int) -> int:
        return row if self.row_numbers is None else int(self.row_numbers[row])


def encode_label_cells(cells: ColumnCells, *, start: int = 0) -> tuple[Labels, Codes]:
    """Return the sorted labels of a target column and the code of each row.

    Labels are not changed: they remain exactly as the source writes them.

    Parameters
    ----------
    cells : ColumnCells
        The target column.
    start : int, default=0
        Number of the first row in its source, for messages.

    Returns
    -------
    labels : array of shape (K,)
        Distinct labels that occur in the rows, sorted.
    codes : array of shape (n,)
        Position of each row's label in `labels`.
    """
    if cells.n_missing:
        missing = (start + np.flatnonzero(cells.missing)).tolist()
        raise LabelError.missing_in_table(cells.name, missing)
    if cells.kind == "date":
        raise LabelError.of_dates(cells.name)
    if cells.kind == "boolean":
        return encode_labels(cells.values.astype(bool))
    if cells.kind != "text":
        return encode_labels(cells.values)
    if cells.labels is not None:
        return encode_labels(cells.labels[cells.values])
    order = sorted(range(len(cells.levels)), key=lambda code: cells.levels[code])
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    labels = np.array([cells.levels[code] for code in order])
    return drop_empty_classes(labels, compact_codes(rank, len(order))[cells.values])


# --- from Arrow ----------------------------------------------------------------------------------


def columns_from_arrow(table: Any, *, coded: Collection[str] = ()) -> tuple[ColumnCells, ...]:
    """Convert an Arrow table to cells.

    Each Arrow column is released as soon as it is converted, to save memory.

    For an Arrow dictionary column, the order of the dictionary is the declared order of the levels.
    Columns in `coded` have no declared order, because the reader encoded their texts as a
    dictionary only to save memory.
    """
    fields, columns = list(table.schema), list(table.columns)
    del table
    converted = []
    for arrow_field in fields:
        name = arrow_field.name
        declared = name not in coded and not _has_mark(arrow_field, _POLARS_CATEGORICAL)
        cells = cells_from_arrow_column(name, columns.pop(0), declared=declared)
        is_enum = _has_mark(arrow_field, _POLARS_ENUM)
        converted.append(replace(cells, ordered=False) if is_enum else cells)
    return tuple(converted)


_POLARS_CATEGORICAL = b"_PL_CATEGORICAL"  # levels in order of appearance, meaningless in polars
_POLARS_ENUM = b"_PL_ENUM"  # a fixed list of levels, which Arrow marks as ordered


def _has_mark(field: Any, mark: bytes) -> bool:
    return any(key.startswith(mark) for key in field.metadata or ())


def cells_from_arrow_column(
    name: str, column: Any, *, missing: Collection[str] = (), declared: bool = False
) -> ColumnCells:
    """Convert one Arrow column, chunked or not, to cells.

    Parameters
    ----------
    name : str
        Name of the column, for messages.
    column : pyarrow.Array or pyarrow.ChunkedArray
        Numbers, truth values, dates, texts or a dictionary.
    missing : collection of str, default=()
        Texts that mean that a cell is missing.
    declared : bool, default=False
        Whether the user declared the order of the dictionary.
    """
    import pyarrow as pa
    import pyarrow.types as kinds

    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        raise ColumnKindError.of(name, str(kind))
    if kinds.is_dictionary(kind):
        return _from_dictionary(name, column, missing, declared)
    if kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind):
        texts = column if kinds.is_string(kind) else column.cast(pa.large_string())
        return _from_dictionary(name, texts.dictionary_encode(), missing, False)
    if kinds.is_boolean(kind):
        return ColumnCells(name, "boolean", _numbers(column.cast(pa.uint8())))
    if kinds.is_integer(kind) or kinds.is_floating(kind):
        return ColumnCells(name, "number", _numbers(column))
    if kinds.is_decimal(kind):
        return ColumnCells(name, "number", _numbers(column.cast(pa.float64())))
    if kinds.is_null(kind):
        return ColumnCells(name, "number", np.full(len(column), np.nan))
    if kinds.is_date(kind) or kinds.is_timestamp(kind):
        return ColumnCells(name, "date", _days(column))
    raise ColumnKindError.of(name, str(kind))


def _numbers(column: Any) -> npt.NDArray[Any]:
    """Return the numbers of a column, with NaN for null."""
    if hasattr(column, "combine_chunks") and column.num_chunks == 1:
        column = column.chunk(0)
    elif hasattr(column, "chunks") and str(column.type) == "double" and not column.null_count:
        numbers = np.empty(len(column))
        lo = 0
        for chunk in column.chunks:  # copied without the lock of the interpreter
            numbers[lo : lo + len(chunk)] = chunk.to_numpy()
            lo += len(chunk)
        return numbers
    return np.asarray(column.to_numpy(**({} if hasattr(column, "chunks") else _COPY)))


_COPY = {"zero_copy_only": False}


def _days(column: Any) -> npt.NDArray[np.float64]:
    """Convert dates to days since 1970-01-01; times with a time zone are first converted to UTC."""
    import pyarrow as pa
    import pyarrow.types as kinds

    if kinds.is_date32(column.type):
        return _numbers(column.cast(pa.int32())).astype(np.float64)
    unit = "ms" if kinds.is_date64(column.type) else column.type.unit
    return np.asarray(_numbers(column.cast(pa.int64())).astype(np.float64) / _DAY[unit])


def _from_dictionary(
    name: str, column: Any, missing: Collection[str], declared: bool
) -> ColumnCells:
    """Convert a dictionary column to cells.

    If all chunks have the same dictionary, its order is kept. If the dictionaries of the chunks
    differ, no order is declared.
    """
    import pyarrow as pa

    ordered = bool(column.type.ordered)
    chunks = column.chunks if hasattr(column, "chunks") else [column]
    if not chunks:
        return ColumnCells(name, "text", np.zeros(0, dtype=np.int32))
    known = [chunk for chunk in chunks if chunk.null_count < len(chunk)] or chunks[:1]
    if any(not chunk.dictionary.equals(known[0].dictionary) for chunk in known[1:]):
        declared, chunks = False, column.unify_dictionaries().chunks
        known = chunks
    raw = known[0].dictionary
    if isinstance(raw.type, pa.BaseExtensionType):
        raise ColumnKindError.of(name, str(column.type))
    indices = (chunk.indices.cast(pa.int32()).fill_null(-1) for chunk in chunks)
    parts = [np.asarray(codes.to_numpy(**_COPY)) for codes in indices]
    codes = parts[0] if len(parts) == 1 else np.concatenate(parts)
    values = raw.to_pylist()
    texts = all(isinstance(value, str) for value in values)
    labels = None if texts else np.asarray(values)
    levels = tuple(values if texts else map(_level_text, values))
    absent = [code for code, level in enumerate(levels) if level in missing]
    if absent:
        codes = np.where(np.isin(codes, absent), np.int32(-1), codes)
    return ColumnCells(name, "text", codes, levels, labels, ordered, declared)


def _level_text(value: Any) -> str:
    """Return a value as text; 1.0 and 1 are the same level."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


# --- from frames ---------------------------------------------------------------------------------


def frame_from_dataframe(
    source: Any, *, wanted: Callable[[Sequence[str]], Sequence[str]] | None = None
) -> Frame:
    """Convert a data frame to cells.

    Parameters
    ----------
    source : data frame or Arrow stream
        A pandas, Polars or Arrow table, a dictionary of columns, or any object with an Arrow
        stream.
    wanted : callable, optional
        Function that receives all column names and returns the names of the columns to convert. The
        other columns may have any type.

    Returns
    -------
    Frame
        The selected columns; `excluded` has the names of all other columns.
    """
    import narwhals as nw

    source = _as_frame(source)
    names = [str(name) for name in checked_column_names(source)]
    selected = set(names if wanted is None else wanted(names))
    others = tuple(name for name in names if name not in selected)
    if hasattr(source, "column_names"):  # Arrow, whose schema may contain metadata of polars
        cells = columns_from_arrow(source.select([name for name in names if name in selected]))
        return Frame(cells, len(source), excluded=others)
    series = nw.from_native(source, eager_only=True).iter_columns()
    pairs = zip(names, series, strict=True)
    cells = tuple(_series_cells(name, each) for name, each in pairs if name in selected)
    return Frame(cells, len(source), excluded=others)


def checked_column_names(source: Any) -> list[Any]:
    """Return the column names of a data frame.

    Raises an error if there are no columns, if a name occurs twice, or if only some names are
    texts.

    scikit-learn does not accept a mixture of texts and other names either.
    """
    columns = getattr(source, "column_names", None) or source.columns
    names = columns.tolist() if hasattr(columns, "tolist") else list(columns)
    if not names:
        raise ShapeError.no_features(len(source))
    check_duplicate_names(names)
    texts = [name for name in names if isinstance(name, str)]
    if texts and len(texts) < len(names):
        others = [name for name in names if not isinstance(name, str)]
        raise ColumnNamesError.of_mixed(texts, others)
    return names


def check_duplicate_names(names: Sequence[Any]) -> None:
    """Raise ColumnNamesError if two columns have the same name."""
    if len(set(names)) < len(names):
        name = next(name for j, name in enumerate(names) if name in names[:j])
        positions = [j for j, other in enumerate(names) if other == name]
        raise ColumnNamesError.of_duplicates(str(name), positions)


def _as_frame(source: Any) -> Any:
    if type(source).__name__ == "LazyFrame":
        raise ShapeError.not_a_table("a LazyFrame")
    if isinstance(source, dict):
        import pyarrow as pa

        return pa.table(source)
    known = hasattr(source, "columns") and hasattr(source, "shape")
    if (known or hasattr(source, "column_names")) and type(source).__name__ != "RecordBatch":
        return source
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        import pyarrow as pa

        return pa.table(source)
    raise ShapeError.not_a_table(type(source).__name__)


def _series_cells(name: str, series: Any) -> ColumnCells:
    import pyarrow as pa

    native = series.to_native()
    kind = getattr(native, "dtype", None)
    if isinstance(kind, np.dtype) and kind.kind in "fiub":
        return ColumnCells(name, "boolean" if kind.kind == "b" else "number", native.to_numpy())
    if isinstance(kind, np.dtype) and kind.kind == "c":
        raise ColumnKindError.of(name, str(kind))
    if type(kind).__name__ in ("Int128", "UInt128"):  # types of polars that Arrow lacks
        return _integers(name, native.to_list())
    if hasattr(native, "to_arrow"):  # polars
        declared = type(kind).__name__ == "Enum"
        return replace(
            cells_from_arrow_column(name, native.to_arrow(), declared=declared), ordered=False
        )
    try:
        chunked = isinstance(native, pa.ChunkedArray)
        column = native if chunked else pa.array(native, from_pandas=True)
    except OverflowError:  # integers too large for any machine type
        return _integers(name, list(native))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise _object_error(name, native) from None
    return cells_from_arrow_column(name, column, declared=True)


def _integers(name: str, values: Sequence[Any]) -> ColumnCells:
    """Return the cells of Python integers.

    If all integers fit into 64 bits, the cells are numbers, otherwise texts of digits.
    """
    import pyarrow as pa

    known = [None if value is None or value != value else value for value in values]
    for row, value in enumerate(known):
        if value is not None and not isinstance(value, int | np.integer):
            raise CellTypeError.of_cell(row, name, type(value).__name__)
    try:
        return cells_from_arrow_column(name, pa.array(known))
    except OverflowError:
        texts = [None if value is None else str(value) for value in known]
        return cells_from_arrow_column(name, pa.array(texts))


def _object_error(name: str, series: Any) -> Exception:
    """Return the error for a column of objects of several types."""
    values = list(series)
    for row, value in enumerate(values):
        if not isinstance(value, str | int | float | bool | type(None)):
            return CellTypeError.of_cell(row, name, type(value).__name__)
    kinds = sorted({type(value).__name__ for value in values if value is not None})
    return ColumnKindError.of(name, f"object ({' and '.join(kinds)} mixed)")


def import_pandas() -> Any:
    """Import pandas, or raise an error that says how to install it.

    >>> import_pandas().__name__
    'pandas'
    """
    try:
        return import_module("pandas")
    except ImportError:
        raise LibraryMissingError.of("pandas", what="A frame") from None
