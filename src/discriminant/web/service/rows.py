"""Rows of a request: JSON, CSV or Arrow IPC, read as the cells that a model's encoding expects.

    JSON records     [{"size": 1.5, "colour": "red"}, ...]
    JSON split       {"columns": ["size", "colour"], "data": [[1.5, "red"], ...]}
    JSON columns     {"size": [1.5, ...], "colour": ["red", ...]}
    CSV              with a header, as from a file
    Arrow IPC        stream or file, not compressed

The kinds of the cells are checked here, the values by the encoding of the model (`table.encoding`),
so that a request and a file with the same rows give the same predictions and the same errors. An
error names the row (counted from 0), the column and the type of the value.

Arrow data from a client are validated completely before they are used, since their lengths and
offsets could point anywhere. Compressed Arrow data are rejected, because a small body could expand
to any size.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from struct import unpack_from
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from discriminant.errors import DiscriminantError, FileError
from discriminant.table.column_cells import (
    ColumnCells,
    Frame,
    check_duplicate_names,
    columns_from_arrow,
)
from discriminant.table.encoding import Column, EncodedRows, Encoding
from discriminant.table.files.formats import detect_format
from discriminant.table.load import read_frame
from discriminant.table.memory import ColumnarFeatures
from discriminant.web.responses import HttpError

_NUMBERS = {int, float}
_FEW_ROWS = 16
_JSON_TYPES = {
    dict: "an object",
    list: "an array",
    str: "a text",
    bool: "a truth value",
    int: "a number",
    float: "a number",
    type(None): "null",
}
_EXPECTED: dict[str, set[type]] = {
    "number": {int, float},
    "date": {str},
    "boolean": {bool},
    "ordered": {str, int, float, bool},
    "category": {str, int, float, bool},
}
_WORDS = {
    "number": "a number",
    "date": "a date as text (YYYY-MM-DD)",
    "boolean": "a truth value",
    "ordered": "a text",
    "category": "a text",
}


class RequestError(HttpError):
    """A request whose content is not valid."""

    def __init__(self, message: str, *, kind: str = "RequestError", status: int = 400) -> None:
        super().__init__(status, kind, message)


def parse_json(body: bytes) -> Any:
    """Return the value of a JSON body."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise RequestError(
            f"The body is not valid JSON ({place}). NaN and Infinity are not JSON; a missing cell "
            "is null.",
            kind="JsonError",
        ) from None


def check_row_count(rows: int, limit: int) -> None:
    """Raise an error if a request has no rows or too many."""
    if not rows:
        raise RequestError("The request has no rows. Send at least one.", kind="ShapeError")
    if rows > limit:
        raise RequestError(
            f"The request has {rows:,} rows, more than {limit:,}. Send fewer rows at a time, or "
            "start the server with a larger --max-rows.",
            kind="TooManyRowsError",
            status=413,
        )


# --- JSON -----------------------------------------------------------------------------------------


def plain_getter(encoding: Encoding) -> Callable[[Any], tuple[Any, ...]] | None:
    """Return a function that extracts the values of a record, or None.

    There is such a function only if every column is used as a plain number.
    """
    plain = all(
        column.kind == "number" and not column.indicator and not column.written
        for column in encoding.used
    )
    if not plain or encoding.formula is not None or len(encoding.used) < 2:
        return None
    return itemgetter(*(column.name for column in encoding.used))


def plain_rows(rows: Any, values_of: Callable[[Any], tuple[Any, ...]]) -> EncodedRows | None:
    """Return the features of a few records of finite numbers; None for any other rows.

    The features are those that the encoding would return, computed in less time. The caller reads
    all other rows, and rows with an error, as a frame.
    """
    if type(rows) is not list or not 0 < len(rows) <= _FEW_ROWS:
        return None
    values: list[Any] = []
    width = 0
    for row in rows:
        try:
            part = values_of(row) if type(row) is dict else ()
        except KeyError:
            return None
        width = len(part)
        if len(row) != width:
            return None
        values += part
    if not set(map(type, values)) <= _NUMBERS:
        return None
    matrix = np.array(values, dtype=np.float64).reshape(len(rows), width)
    if not np.isfinite(matrix.sum()):
        return None
    nothing = np.zeros(len(rows), dtype=bool)
    return EncodedRows(ColumnarFeatures(tuple(matrix.T)), nothing, nothing)


def frame_of_records(rows: Any, encoding: Encoding, limit: int) -> Frame:
    """Return the cells of a list of objects, or of a list of arrays in the order of the columns."""
    if isinstance(rows, dict):
        rows = [rows]
    if not isinstance(rows, list):
        raise RequestError(f"The rows are {_type_of(rows)}. Send an array of objects.")
    check_row_count(len(rows), limit)
    if all(type(row) is list for row in rows):
        names = [column.name for column in encoding.used]
        return frame_of_split(names, rows, encoding, limit)
    for number, row in enumerate(rows):
        if type(row) is not dict:
            raise RequestError(
                f"Row {number} (counted from 0) is {_type_of(row)}. Send each row as an object, "
                '{"column": value, ...}.'
            )
    columns: dict[str, list[Any]] = {}
    for column in encoding.used:
        name = column.name
        try:
            columns[name] = [row[name] for row in rows]
        except KeyError:
            if any(name in row for row in rows):
                columns[name] = [row.get(name) for row in rows]
    extra: tuple[str, ...] = ()
    if max(map(len, rows)) > len(columns):
        extra = tuple(name for name in dict.fromkeys(chain(*rows)) if name not in columns)
    return _frame(columns, encoding, len(rows), extra)


def frame_of_split(names: Any, data: Any, encoding: Encoding, limit: int) -> Frame:
    """Return the cells of rows that are arrays; the names of the columns are given separately."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise RequestError("columns is not an array of texts. Send the name of each column once.")
    check_duplicate_names(names)
    if not isinstance(data, list):
        raise RequestError(f"data is {_type_of(data)}. Send an array of rows.")
    check_row_count(len(data), limit)
    for number, row in enumerate(data):
        if type(row) is not list or len(row) != len(names):
            is_what = f"{len(row)} values" if type(row) is list else _type_of(row)
            raise RequestError(
                f"Row {number} (counted from 0) is {is_what}, and the columns are "
                f"{_listed(names)}: send an array of {len(names)} values.",
                kind="ShapeError",
            )
    place = {name: j for j, name in enumerate(names)}
    used = [column.name for column in encoding.used if column.name in place]
    columns = {name: [row[place[name]] for row in data] for name in used}
    extra = tuple(name for name in names if name not in columns)
    return _frame(columns, encoding, len(data), extra)


def frame_of_columns(given: Any, encoding: Encoding, limit: int) -> Frame:
    """Return the cells of a JSON object that holds one array for each column."""
    if not isinstance(given, dict) or not given:
        raise RequestError(f"The columns are {_type_of(given)}. Send an object of arrays.")
    lengths = {}
    for name, values in given.items():
        if type(values) is not list:
            raise RequestError(
                f"Column '{name[:100]}' is {_type_of(values)}. Send an array with a value for "
                "each row."
            )
        lengths[name] = len(values)
    if len(set(lengths.values())) > 1:
        pairs = ", ".join(f"'{name[:100]}': {n}" for name, n in list(lengths.items())[:5])
        raise RequestError(f"The columns have different lengths: {pairs}.", kind="ShapeError")
    rows = next(iter(lengths.values()))
    check_row_count(rows, limit)
    used = [column.name for column in encoding.used if column.name in given]
    extra = tuple(name for name in given if name not in used)
    return _frame({name: given[name] for name in used}, encoding, rows, extra)


def _frame(
    columns: Mapping[str, list[Any]], encoding: Encoding, rows: int, extra: tuple[str, ...]
) -> Frame:
    cells = tuple(
        json_cells(column, columns[column.name])
        for column in encoding.used
        if column.name in columns
    )
    return Frame(cells, rows, excluded=extra)


def json_cells(column: Column, values: list[Any]) -> ColumnCells:
    """Return the cells of a column from JSON values, of one type apart from null."""
    types = set(map(type, values))
    text = column.kind in ("category", "ordered")
    if types <= _NUMBERS and not text:
        return ColumnCells(column.name, "number", np.array(values, dtype=np.float64))
    types.discard(type(None))
    if types <= {str}:
        if not types and not text:
            return ColumnCells(column.name, "number", np.full(len(values), np.nan))
        return _text_cells(column.name, values)
    if text and types <= {str, int, float, bool}:
        return _text_cells(column.name, [_level_text(value) for value in values])
    if types <= _NUMBERS:
        known = [np.nan if value is None else value for value in values]
        return ColumnCells(column.name, "number", np.array(known, dtype=np.float64))
    if types == {bool}:
        flags = [np.nan if value is None else float(value) for value in values]
        return ColumnCells(column.name, "boolean", np.array(flags))
    for number, value in enumerate(values):
        if value is not None and type(value) not in _EXPECTED[column.kind]:
            raise RequestError(
                f"Row {number} (counted from 0), column '{column.name}': the value is "
                f"{_type_of(value)}, and the model expects {_WORDS[column.kind]} there. Send "
                f"{_WORDS[column.kind]}, or null for a missing cell.",
                kind="CellTypeError",
            )
    raise AssertionError("a mixture of types has a value of another type")


def _text_cells(name: str, values: Sequence[str | None]) -> ColumnCells:
    codes: dict[str | None, int] = {None: -1}
    for value in values:
        codes.setdefault(value, len(codes) - 1)
    del codes[None]
    lookup = {**codes, None: -1}
    places = np.array([lookup[value] for value in values], dtype=np.int32)
    return ColumnCells(name, "text", places, tuple(level for level in codes if level is not None))


def _level_text(value: Any) -> str | None:
    """Return a value as the text that a category has when it is read from a file."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if value is None or isinstance(value, str) else str(value)


def _type_of(value: Any) -> str:
    return _JSON_TYPES.get(type(value), type(value).__name__)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name[:100]}'" for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def sparse_rows(rows: Any, *, width: int, first: int, limit: int) -> Any:
    """Return a CSR matrix of rows that are objects of feature numbers and values.

    For example [{"3": 0.5, "17": 1.25}, {}]; features that are left out are 0.
    """
    from scipy.sparse import csr_array

    rows = [rows] if isinstance(rows, dict) else rows
    if not isinstance(rows, list):
        raise RequestError(f"The rows are {_type_of(rows)}. Send an array of objects.")
    check_row_count(len(rows), limit)
    starts, places, values = [0], list[int](), list[float]()
    for number, row in enumerate(rows):
        if type(row) is not dict:
            raise RequestError(
                f"Row {number} (counted from 0) is {_type_of(row)}. Send each row as an object of "
                'feature numbers, {"3": 0.5, ...}.'
            )
        for key, value in row.items():
            place = int(key) - first if key.isascii() and key.isdigit() and len(key) < 12 else -1
            if not 0 <= place < width:
                raise RequestError(
                    f"Row {number} (counted from 0): '{key[:100]}' is not the number of a feature, "
                    f"{first} to {first + width - 1}.",
                    kind="ColumnNamesError",
                )
            if type(value) not in _NUMBERS or not np.isfinite(float(value)):
                raise RequestError(
                    f"Row {number} (counted from 0), feature {key}: the value is "
                    f"{_type_of(value)}, and the model expects a finite number there.",
                    kind="CellTypeError",
                )
            places.append(place)
            values.append(value)
        starts.append(len(places))
    data = np.array(values, dtype=np.float32)
    matrix = csr_array((data, places, starts), shape=(len(rows), width), dtype=np.float32)
    matrix.sum_duplicates()
    return matrix


# --- CSV ------------------------------------------------------------------------------------------


def frame_of_csv(body: bytes, encoding: Encoding, limit: int, charset: str | None) -> Frame:
    """Return the cells of a CSV, which is read in the same way as a CSV file."""
    with TemporaryDirectory(prefix="discriminant-") as folder:  # readable by this user only
        path = os.path.join(folder, "rows.csv")
        Path(path).write_bytes(body)
        try:
            format = detect_format(path, encoding=charset)
            if format.kind != "csv" or format.gzip:
                raise RequestError(
                    "The body is not a CSV, although its Content-Type is text/csv. Send plain "
                    "text with a header line, or name the type of the body.",
                    kind="FileError",
                )
            frame, _ = read_frame(
                path, encoding=encoding, format=format, max_bytes=max(len(body), 1) * 4
            )
        except DiscriminantError as error:
            raise type(error)(str(error).replace(path, "The CSV")) from None
        if not len(frame):
            raise FileError.no_rows("The CSV", len(frame.names))
    check_row_count(len(frame), limit)
    used = {column.name for column in encoding.used}
    cells = tuple(cell for cell in frame.columns if cell.name in used)
    extra = tuple(cell.name for cell in frame.columns if cell.name not in used)
    return Frame(cells, len(frame), excluded=(*extra, *frame.excluded))


# --- Arrow ----------------------------------------------------------------------------------------


def frame_of_arrow(body: bytes, encoding: Encoding, limit: int) -> Frame:
    """Return the cells of an Arrow IPC stream or file."""
    try:
        table = _arrow_table(body, limit)
    except (pa.ArrowException, OSError, ValueError, IndexError, struct.error) as error:
        if isinstance(error, DiscriminantError):
            raise
        raise RequestError(
            "The body is not a valid Arrow IPC stream or file. Write it with "
            "pyarrow.ipc.new_stream and send all of it.",
            kind="ArrowError",
        ) from None
    check_duplicate_names(table.column_names)
    used = [column.name for column in encoding.used if column.name in table.column_names]
    extra = tuple(name for name in table.column_names if name not in used)
    return Frame(columns_from_arrow(table.select(used)), table.num_rows, excluded=extra)


def _arrow_table(body: bytes, limit: int) -> Any:
    buffer = pa.py_buffer(body)
    if body[:6] == b"ARROW1":
        stream = body[8:]  # a file is a stream between a magic number and a footer
        buffer = pa.py_buffer(stream)
    _check_uncompressed(buffer)
    rows, batches = 0, []
    with pa.ipc.open_stream(buffer) as reader:
        for batch in reader:
            rows += batch.num_rows
            if rows > limit:
                check_row_count(rows, limit)
            batch.validate(full=True)
            batches.append(batch)
        table = pa.Table.from_batches(batches, reader.schema)
    check_row_count(table.num_rows, limit)
    table.validate(full=True)
    return table


def _check_uncompressed(buffer: Any) -> None:
    """Raise an error if an Arrow IPC message has compressed buffers."""
    for message in pa.ipc.MessageReader.open_stream(buffer):
        if _is_compressed(message.metadata.to_pybytes()):
            raise RequestError(
                "The Arrow data is compressed, and could expand to any size. Write it without "
                "compression.",
                kind="ArrowError",
            )


def _is_compressed(metadata: bytes) -> bool:
    """Return whether the flatbuffer of a message describes compressed buffers.

    The message (Message.fbs) has its header in field 2, whose type is field 1. A record batch
    (type 3) names its compression in field 3; a dictionary batch (type 2) has a record batch in
    field 1.
    """
    table = unpack_from("<I", metadata, 0)[0]
    kind = _field(metadata, table, 1)
    header = _field(metadata, table, 2)
    if kind is None or header is None:
        return False
    number = metadata[kind]
    batch: int | None = _follow(metadata, header)
    if number == 2 and batch is not None:
        inner = _field(metadata, batch, 1)
        batch = None if inner is None else _follow(metadata, inner)
    if number not in (2, 3) or batch is None:
        return False
    return _field(metadata, batch, 3) is not None


def _follow(data: bytes, place: int) -> int:
    return int(place + unpack_from("<I", data, place)[0])


def _field(data: bytes, table: int, number: int) -> int | None:
    """Return the position of a field of a flatbuffer table, or None if it is absent."""
    vtable = table - unpack_from("<i", data, table)[0]
    size = unpack_from("<H", data, vtable)[0]
    slot = 4 + 2 * number
    if slot + 2 > size:
        return None
    offset = unpack_from("<H", data, vtable + slot)[0]
    return table + offset if offset else None
