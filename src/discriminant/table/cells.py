"""The cells of a column, whatever it came from: numbers, or codes of texts.

    number, boolean, date   values are numbers, NaN where missing (a date is days since 1970)
    text                    values are codes into `levels`, -1 where missing

Numbers keep their type and are not copied where they need no change. A text becomes its code once,
here; all that follows works on the few levels.

pandas, for those who ask for a frame: nothing else here needs it.
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
class Cells:
    """One column."""

    name: str
    kind: CellKind
    values: npt.NDArray[Any]  # (n,) numbers, or codes of texts
    levels: tuple[str, ...] = ()  # of texts, each once
    labels: npt.NDArray[Any] | None = None  # (k,) levels that were no texts, as they were
    ordered: bool = False  # whether the levels came in an order that means something
    declared: bool = False  # whether the source lists its levels, in an order of its own

    def __len__(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """(n,) whether a cell is missing."""
        if self.kind == "text":
            return np.asarray(self.values < 0)
        if self.values.dtype.kind == "f":
            return np.asarray(np.isnan(self.values))
        return np.zeros(len(self.values), dtype=bool)

    @property
    def n_missing(self) -> int:
        """How many are missing; the common case, none, is quick."""
        if self.kind == "text":
            return int((self.values < 0).sum())
        if self.values.dtype.kind != "f" or not np.isnan(self.values.sum()):
            return 0
        return int(np.isnan(self.values).sum())

    def take(self, rows: npt.NDArray[Any]) -> Cells:
        """Some of the rows."""
        return replace(self, values=self.values[rows])

    def as_text(self) -> Cells:
        """Numbers and truth values as categories, by the text that Python writes for them.

        A truth value is True or False, however its source keeps it.
        """
        if self.kind == "text":
            return self
        known = ~self.missing
        some = self.values[known]
        found, codes = np.unique(
            some.astype(bool) if self.kind == "boolean" else some, return_inverse=True
        )
        values = np.full(len(self.values), -1, dtype=np.int32)
        values[known] = codes
        return Cells(self.name, "text", values, tuple(_written(v) for v in found.tolist()))


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Columns of equal length, and where they came from."""

    columns: tuple[Cells, ...]
    rows: int
    line_of: Callable[[int], int] | None = None  # line of the file that a row begins in
    text_of: Callable[[int, str], str] | None = None  # what is written in a cell of the file
    named: bool = True  # whether the names are the user's
    excluded: tuple[str, ...] = ()  # columns of the source that are not here
    start: int = 0  # number of the first row in its source, for messages
    row_numbers: npt.NDArray[np.intp] | None = (
        None  # (n,) rows of the source, where some were dropped
    )
    positions: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        places = {cells.name: j for j, cells in enumerate(self.columns)}
        object.__setattr__(self, "positions", places)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(cells.name for cells in self.columns)

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, name: str) -> Cells:
        return self.columns[self.positions[name]]

    def line_number(self, row: int) -> int | None:
        """Line of the file that a row begins in, if it came from one with lines."""
        return None if self.line_of is None else self.line_of(self._number(row))

    def cell_text(self, row: int, column: str) -> str | None:
        """What is written in a cell of the file, if it came from one with lines."""
        return None if self.text_of is None else self.text_of(self._number(row), column)

    def row_number(self, row: int) -> int:
        """Number of a row in its source, for messages."""
        return self.start + self._number(row)

    def take(self, rows: npt.NDArray[np.intp]) -> Frame:
        """Some of the rows, which keep their numbers."""
        numbers = rows if self.row_numbers is None else self.row_numbers[rows]
        columns = tuple(cells.take(rows) for cells in self.columns)
        return replace(self, columns=columns, rows=len(rows), row_numbers=numbers)

    def drop_unlabelled(self, target: str) -> Frame:
        """The rows that have a label."""
        cells = self[target]
        return self.take(np.flatnonzero(~cells.missing)) if cells.n_missing else self

    def _number(self, row: int) -> int:
        return row if self.row_numbers is None else int(self.row_numbers[row])


def encode_label_cells(cells: Cells, *, start: int = 0) -> tuple[Labels, Codes]:
    """The classes of some rows exactly as they are written, sorted, and the code of every row.

    `start` is the number of the first of them, for messages.
    """
    if cells.n_missing:
        raise LabelError.missing((start + np.flatnonzero(cells.missing)).tolist())
    if cells.kind == "date":
        raise LabelError.of_dates(cells.name)
    if cells.kind == "boolean":
        return encode_labels(cells.values.astype(bool))
    if cells.kind != "text":
        return encode_labels(cells.values)
    if cells.labels is not None:
        return encode_labels(cells.labels[cells.values])
    order = sorted(range(len(cells.levels)), key=lambda code: cells.levels[code])
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    labels = np.array([cells.levels[code] for code in order])
    return drop_empty_classes(labels, compact_codes(place, len(order))[cells.values])


# --- from Arrow ----------------------------------------------------------------------------------


def columns_from_arrow(table: Any, *, coded: Collection[str] = ()) -> tuple[Cells, ...]:
    """Cells of an Arrow table; each column is released as soon as it is converted.

    A dictionary declares the order of its levels, except in the `coded` columns: texts that the
    reader encoded only to save memory.
    """
    fields, columns = list(table.schema), list(table.columns)
    del table
    found = []
    for one in fields:
        column, columns[0] = columns[0], None
        columns.pop(0)
        declared = one.name not in coded and not _has_mark(one, _POLARS_CATEGORICAL)
        cells = cells_from_arrow(one.name, column, declared=declared)
        found.append(replace(cells, ordered=False) if _has_mark(one, _POLARS_ENUM) else cells)
    return tuple(found)


_POLARS_CATEGORICAL = b"_PL_CATEGORICAL"  # levels in order of appearance, which polars ignores
_POLARS_ENUM = b"_PL_ENUM"  # a fixed list of levels, which Arrow marks as ordered


def _has_mark(field: Any, mark: bytes) -> bool:
    return any(key.startswith(mark) for key in field.metadata or ())


def cells_from_arrow(
    name: str, column: Any, *, missing: Collection[str] = (), declared: bool = False
) -> Cells:
    """Cells of one Arrow column, chunked or not; texts in `missing` are missing cells.

    `declared`: whether the order of a dictionary is the user's.
    """
    import pyarrow as pa
    import pyarrow.types as kinds

    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        raise ColumnKindError.of(name, str(kind))
    if kinds.is_dictionary(kind):
        return _from_dictionary(name, column, missing, declared)
    if kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind):
        plain = column.cast(pa.large_string()) if not kinds.is_string(kind) else column
        return _from_dictionary(name, plain.dictionary_encode(), missing, False)
    if kinds.is_boolean(kind):
        return Cells(name, "boolean", _numbers(column.cast(pa.uint8())))
    if kinds.is_integer(kind) or kinds.is_floating(kind):
        return Cells(name, "number", _numbers(column))
    if kinds.is_decimal(kind):
        return Cells(name, "number", _numbers(column.cast(pa.float64())))
    if kinds.is_null(kind):
        return Cells(name, "number", np.full(len(column), np.nan))
    if kinds.is_date(kind) or kinds.is_timestamp(kind):
        return Cells(name, "date", _days(column))
    raise ColumnKindError.of(name, str(kind))


def _numbers(column: Any) -> npt.NDArray[Any]:
    """Numbers, NaN where null."""
    if hasattr(column, "combine_chunks") and column.num_chunks == 1:
        column = column.chunk(0)
    return np.asarray(column.to_numpy(**({} if hasattr(column, "chunks") else _COPY)))


_COPY = {"zero_copy_only": False}


def _days(column: Any) -> npt.NDArray[np.float64]:
    """Days since 1970-01-01, of instants with a zone in UTC."""
    import pyarrow as pa
    import pyarrow.types as kinds

    if kinds.is_date32(column.type):
        return _numbers(column.cast(pa.int32())).astype(np.float64)
    unit = "ms" if kinds.is_date64(column.type) else column.type.unit
    return np.asarray(_numbers(column.cast(pa.int64())).astype(np.float64) / _DAY[unit])


def _from_dictionary(name: str, column: Any, missing: Collection[str], declared: bool) -> Cells:
    """Chunks with the same dictionary keep its order; different ones leave no declared order."""
    import pyarrow as pa

    ordered = bool(column.type.ordered)
    chunks = column.chunks if hasattr(column, "chunks") else [column]
    if not chunks:
        return Cells(name, "text", np.zeros(0, dtype=np.int32))
    known = [chunk for chunk in chunks if chunk.null_count < len(chunk)] or chunks[:1]
    if any(not chunk.dictionary.equals(known[0].dictionary) for chunk in known[1:]):
        declared, chunks = False, column.unify_dictionaries().chunks
        known = chunks
    raw = known[0].dictionary
    if isinstance(raw.type, pa.BaseExtensionType):
        raise ColumnKindError.of(name, str(column.type))
    plain = [chunk.indices.cast(pa.int32()).fill_null(-1) for chunk in chunks]
    parts = [np.asarray(codes.to_numpy(**_COPY)) for codes in plain]
    codes = parts[0] if len(parts) == 1 else np.concatenate(parts)
    values = raw.to_pylist()
    texts = all(isinstance(value, str) for value in values)
    labels = None if texts else np.asarray(values)
    levels = tuple(values if texts else [_written(value) for value in values])
    gone = [code for code, level in enumerate(levels) if level in missing]
    if gone:
        codes = np.where(np.isin(codes, gone), np.int32(-1), codes)
    return Cells(name, "text", codes, levels, labels, ordered, declared)


def _written(value: Any) -> str:
    """A level as text; 1.0 and 1 are one level."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


# --- from frames ---------------------------------------------------------------------------------


def to_frame(
    source: Any, *, wanted: Callable[[Sequence[str]], Sequence[str]] | None = None
) -> Frame:
    """Cells of a pandas, polars or Arrow frame, or of anything with an Arrow stream.

    `wanted`, asked with all names, says which columns to look at; others may be of any kind.
    """
    import narwhals as nw

    source = _as_frame(source)
    given = list(getattr(source, "column_names", None) or source.columns)
    if not given:
        raise ShapeError.no_features(len(source))
    _check_names(given)
    names = [str(name) for name in given]
    kept = set(names if wanted is None else wanted(names))
    others = tuple(name for name in names if name not in kept)
    if hasattr(source, "column_names"):  # Arrow, whose schema says what polars meant
        cells = columns_from_arrow(source.select([name for name in names if name in kept]))
        return Frame(cells, len(source), excluded=others)
    series = nw.from_native(source, eager_only=True).iter_columns()
    pairs = [(n, one) for n, one in zip(names, series, strict=True) if n in kept]
    cells = tuple(_series_cells(name, one) for name, one in pairs)
    return Frame(cells, len(source), excluded=others)


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


def _check_names(given: Sequence[Any]) -> None:
    if len(set(given)) < len(given):
        for name in (name for j, name in enumerate(given) if name in given[:j]):
            places = [i for i, other in enumerate(given) if other == name]
            raise ColumnNamesError.of_duplicates(str(name), places)
    texts = [name for name in given if isinstance(name, str)]
    if texts and len(texts) < len(given):
        raise ColumnNamesError.of_mixed(texts, [name for name in given if name not in texts])


def _series_cells(name: str, series: Any) -> Cells:
    import pyarrow as pa

    native = series.to_native()
    kind = getattr(native, "dtype", None)
    if isinstance(kind, np.dtype) and kind.kind in "fiub":
        values = native.to_numpy()
        return Cells(name, "boolean" if kind.kind == "b" else "number", values)
    if isinstance(kind, np.dtype) and kind.kind == "c":
        raise ColumnKindError.of(name, str(kind))
    if type(kind).__name__ in ("Int128", "UInt128"):  # polars, which Arrow has no type for
        return _integers(name, native.to_list())
    if hasattr(native, "to_arrow"):  # polars
        declared = type(kind).__name__ == "Enum"
        return replace(cells_from_arrow(name, native.to_arrow(), declared=declared), ordered=False)
    try:
        found = (
            native if isinstance(native, pa.ChunkedArray) else pa.array(native, from_pandas=True)
        )
    except OverflowError:  # integers that no machine type holds
        return _integers(name, list(native))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise _mixed(name, native) from None
    return cells_from_arrow(name, found, declared=True)


def _integers(name: str, values: Sequence[Any]) -> Cells:
    """Cells of Python's integers: numbers if they fit 64 bits, else texts of their digits."""
    import pyarrow as pa

    known = [None if value is None or value != value else value for value in values]
    for row, value in enumerate(known):
        if value is not None and not isinstance(value, int | np.integer):
            raise CellTypeError.of_cell(row, name, type(value).__name__)
    try:
        return cells_from_arrow(name, pa.array(known))
    except OverflowError:
        texts = [None if value is None else str(value) for value in known]
        return cells_from_arrow(name, pa.array(texts))


def _mixed(name: str, series: Any) -> Exception:
    """The error for a column of objects of several kinds."""
    values = list(series)
    for row, value in enumerate(values):
        if not isinstance(value, str | int | float | bool | type(None)):
            return CellTypeError.of_cell(row, name, type(value).__name__)
    kinds = sorted({type(value).__name__ for value in values if value is not None})
    return ColumnKindError.of(name, f"object ({' and '.join(kinds)} mixed)")


def import_pandas() -> Any:
    """The library.

    >>> import_pandas().__name__
    'pandas'
    """
    try:
        return import_module("pandas")
    except ImportError:
        raise LibraryMissingError.of("pandas", what="A frame") from None
