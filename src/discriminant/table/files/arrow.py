"""Parquet, Arrow IPC and JSON lines to cells, by pyarrow.

Parquet is read with `pre_buffer=False`, which alone keeps its memory bounded, and with the
checksums of its pages verified where they are there. A file that cannot be read is looked at part
by part, so that the message names the column. Extension types are refused: see CVE-2023-47248.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from discriminant.errors import ColumnNamesError, FileError
from discriminant.table.cells import Frame, columns_from_arrow
from discriminant.table.files.csv_dialect import MAX_LINE
from discriminant.table.files.formats import FileFormat
from discriminant.table.files.text_decoding import MAX_BYTES, EncodingMismatch, TextStream

_MARK = b"ARROW:extension:name"


def arrow_names(format: FileFormat) -> tuple[str, ...]:
    """Names of the columns of a Parquet or Arrow file; extension types are refused."""
    return tuple(arrow_schema(format).names)


def arrow_schema(format: FileFormat) -> Any:
    """Columns of a Parquet or Arrow file; extension types are refused."""
    with translate_arrow_errors(format):
        schema = _schema(format)
        for field in schema:
            _refuse_extensions(format.path, field.name, field)
        _check_names(schema.names)
        return schema


def read_arrow(format: FileFormat, names: Sequence[str], wanted: Sequence[str]) -> Frame:
    """Some columns of a Parquet or Arrow file, all rows."""
    table = _parquet(format, wanted) if format.kind == "parquet" else _ipc(format, wanted)
    if not table.num_rows:
        raise FileError.no_rows(format.path, len(names))
    return _frame(table, names, wanted)


def read_json(
    format: FileFormat, *, max_bytes: int = MAX_BYTES
) -> tuple[tuple[str, ...], Any, FileFormat]:
    """Names, Arrow table and format of JSON lines; they have no header, so all is read at once."""
    try:
        return *_read_json(format, max_bytes), format
    except EncodingMismatch as found:
        format = format.with_encoding(found.encoding)
        return *_read_json(format, max_bytes), format


def _read_json(format: FileFormat, max_bytes: int) -> tuple[tuple[str, ...], Any]:
    import pyarrow as pa
    from pyarrow import json as arrow_json

    with TextStream(
        format.path, gzip=format.gzip, encoding=format.encoding, max_bytes=max_bytes
    ) as stream:
        try:
            table = arrow_json.read_json(_Shallow(stream, format.path))
        except pa.ArrowInvalid as fault:
            raise_json_error(format)
            raise FileError.damaged(format.path, "the text", str(fault)) from None
    _check_names(table.column_names)
    return tuple(table.column_names), table


def json_frame(table: Any, names: Sequence[str], wanted: Sequence[str]) -> Frame:
    """Some columns of JSON lines as cells."""
    return _frame(table.select(list(wanted)), names, wanted)


def _frame(table: Any, names: Sequence[str], wanted: Sequence[str]) -> Frame:
    used = set(wanted)
    others = tuple(name for name in names if name not in used)
    rows = table.num_rows
    return Frame(columns_from_arrow(table), rows, excluded=others)


# --- Parquet and Arrow ---------------------------------------------------------------------------


def _schema(format: FileFormat) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if format.kind == "parquet":
        with pq.ParquetFile(format.path, pre_buffer=False) as file:
            return file.schema_arrow
    with pa.OSFile(format.path) as source:
        return open_ipc(source).schema


def _parquet(format: FileFormat, names: Sequence[str]) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with translate_arrow_errors(format):
        file = pq.ParquetFile(format.path, pre_buffer=False, page_checksum_verification=True)
    with file:
        try:
            return file.read(columns=list(names))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
            raise_parquet_error(format.path, file, names, range(file.num_row_groups))
            raise unreadable_rows_error(format.path, fault) from None


def unreadable_rows_error(path: str, fault: BaseException) -> FileError:
    """The error for rows that cannot be read."""
    return FileError.damaged(path, "the rows", _short(fault))


def raise_parquet_error(path: str, file: Any, names: Sequence[str], groups: Iterable[int]) -> None:
    """Name the first column and part (row group) that cannot be read."""
    import pyarrow as pa

    for group in groups:
        for name in names:
            try:
                file.read_row_group(group, columns=[name])
            except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
                where = f"a page of column '{name}' in row group {group}"
                raise FileError.damaged(path, where, _short(fault)) from None


def _ipc(format: FileFormat, names: Sequence[str]) -> Any:
    import pyarrow as pa

    with translate_arrow_errors(format), pa.OSFile(format.path) as source:
        reader = open_ipc(source)
        table = reader.read_all()
        table.validate(full=True)
        return table.select(list(names))


def open_ipc(source: Any, columns: Sequence[int] = ()) -> Any:
    """Reader of an Arrow file or stream; of some of its columns, or of all."""
    import pyarrow as pa

    start = source.read(6)
    source.seek(0)
    some = pa.ipc.IpcReadOptions(included_fields=list(columns))
    way = pa.ipc.open_file if start == b"ARROW1" else pa.ipc.open_stream
    return way(source, options=some)


@contextmanager
def translate_arrow_errors(format: FileFormat) -> Iterator[None]:
    """Tell a file that is cut off or damaged as such."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as fault:
        text = _short(fault)
        with open(format.path, "rb") as file:
            file.seek(max(os.path.getsize(format.path) - 4, 0))
            end = file.read()
        if format.kind == "parquet" and end != b"PAR1":
            raise FileError.cut_off(format.path, "no footer: it does not end with PAR1") from None
        raise FileError.damaged(format.path, "its schema or rows", text) from None


def _refuse_extensions(path: str, name: str, field: Any) -> None:
    import pyarrow as pa

    mark = (field.metadata or {}).get(_MARK)
    if isinstance(field.type, pa.BaseExtensionType) or mark is not None:
        kind = mark.decode(errors="replace") if mark else str(field.type)
        raise FileError.of_extension(path, name, kind)
    for j in range(field.type.num_fields):
        _refuse_extensions(path, name, field.type.field(j))


def _check_names(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        for name in (name for j, name in enumerate(names) if name in names[:j]):
            raise ColumnNamesError.of_duplicates(
                name, [i for i, n in enumerate(names) if n == name]
            )


def _short(fault: BaseException) -> str:
    return str(fault).split("\n")[0].rstrip(".")[:200]


# --- JSON ----------------------------------------------------------------------------------------


MAX_DEPTH = 64  # of JSON values within each other: Arrow's parser recurses without a limit
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)


def first_deep_line(text: bytes) -> int | None:
    """Position, from 0, of the first line of JSON that is nested too deep; None if none is."""
    for position, line in enumerate(text.split(b"\n")):
        if line.count(b"[") + line.count(b"{") > MAX_DEPTH and _depth(line) > MAX_DEPTH:
            return position
    return None


def _depth(line: bytes) -> int:
    """How deep arrays and objects are nested; brackets in texts do not count.

    >>> _depth(b'{"a": [[1], "[[["]}')
    3
    """
    marks = np.frombuffer(_TEXTS.sub(b"", line), np.uint8)
    opened = np.isin(marks, np.frombuffer(b"[{", np.uint8)).astype(np.int64)
    closed = np.isin(marks, np.frombuffer(b"]}", np.uint8))
    return int(np.cumsum(opened - closed).max(initial=0))


class _Shallow(io.RawIOBase):
    """A stream of JSON lines, each of them checked for its depth before Arrow sees it."""

    def __init__(self, stream: TextStream, path: str) -> None:
        self._stream, self._path = stream, path
        self._line, self._rest = 1, b""  # the line that is being read, as far as it was read

    def readable(self) -> bool:
        """Return True: the stream is readable."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes into a buffer; how many there were."""
        text = self._stream.read(len(buffer))
        buffer[: len(text)] = text
        self._rest += text
        position = first_deep_line(self._rest)
        if position is not None:
            raise _too_deep(self._path, self._line + position)
        self._line += self._rest.count(b"\n")
        self._rest = self._rest[self._rest.rfind(b"\n") + 1 :]
        if len(self._rest) > MAX_LINE:
            raise FileError.long_line(self._path, self._line, MAX_LINE)
        return len(text)


def _too_deep(path: str, number: int) -> FileError:
    return FileError.of_json(path, number, f"nested more than {MAX_DEPTH} deep")


def raise_json_error(format: FileFormat) -> None:
    """Raise the error for the first line that is no object, or not like the first one."""
    kinds: dict[str, str] = {}
    with TextStream(format.path, gzip=format.gzip, encoding=format.encoding) as stream:
        for number, line in enumerate(stream.read().splitlines(), start=1):
            if line.strip():
                _check_object(format.path, number, line, kinds)


def _check_object(path: str, number: int, line: bytes, kinds: dict[str, str]) -> None:
    if first_deep_line(line) is not None:
        raise _too_deep(path, number)
    try:
        found = json.loads(line)
    except ValueError as fault:
        raise FileError.of_json(path, number, f"no JSON ({_short(fault)})") from None
    if not isinstance(found, dict):
        raise FileError.of_json(path, number, f"a {type(found).__name__}, not an object")
    for name, value in found.items():
        kind = _kind(value)
        if kind is not None and kinds.setdefault(name, kind) != kind:
            shown = f"the text {value[:80]!r}" if isinstance(value, str) else f"a {kind}"
            reason = f"column '{name}' holds {shown}, and a {kinds[name]} in the lines before"
            raise FileError.of_json(path, number, reason)


def _kind(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "truth value"
    return "number" if isinstance(value, int | float) else type(value).__name__
