"""Reading of Parquet, Arrow IPC and JSON lines with pyarrow.

Parquet is read with `pre_buffer=False`, because otherwise memory use is not bounded. Checksums of
pages are verified if the file has them. If a file cannot be read, its parts are read one by one, so
that the message can name the damaged column. Extension types are rejected: see CVE-2023-47248.

When one of Arrow's readers returns or raises, its threads may still hold blocks of a Python stream.
To release a block, a thread needs the interpreter lock. If the interpreter exits before that, the
whole process is aborted ("terminate called without an active exception"). `arrow_input` therefore
waits until Arrow has released the stream and every block read from it.
"""

from __future__ import annotations

import io
import json
import os
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from typing import Any, NoReturn

import numpy as np

from discriminant.errors import FileError
from discriminant.table.column_cells import Frame, check_duplicate_names, columns_from_arrow
from discriminant.table.files.csv_dialect import MAX_LINE
from discriminant.table.files.formats import FileFormat
from discriminant.table.files.text_decoding import MAX_BYTES, EncodingMismatch, TextStream

_TIMEOUT = 10.0  # seconds; blocks are released within milliseconds, so this is never reached


@contextmanager
def arrow_input(stream: Any) -> Iterator[Callable[[], Any]]:
    """Provide a stream to one of Arrow's readers, and wait on exit until Arrow has released it.

    Parameters
    ----------
    stream : file-like
        Stream with the method `read`.

    Yields
    ------
    callable
        Function without arguments, whose result is to be passed to Arrow. Keep no reference to this
        result or to a reader that was created from it.
    """
    held: dict[int, weakref.ref[Any]] = {}  # by identity, as equal blocks have equal references
    released = Event()

    def release(reference: weakref.ref[Any]) -> None:
        del held[id(reference)]
        if not held:
            released.set()

    def track(value: Any) -> Any:
        reference = weakref.ref(value, release)
        held[id(reference)] = reference
        return value

    read = stream.read

    def open_input() -> Any:
        # A closure, not a method: the traceback of a read that fails must not keep the handle.
        return track(_Handle(lambda size: track(memoryview(read(size)))))

    try:
        yield open_input
    finally:
        if held:
            released.wait(_TIMEOUT)


class _Handle:
    """File that Arrow reads."""

    closed = False

    def __init__(self, read: Callable[[int], Any]) -> None:
        self.read = read

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        pass


_EXTENSION = b"ARROW:extension:name"


def read_arrow_schema(format: FileFormat) -> Any:
    """Return the Arrow schema of a Parquet or Arrow file; extension types are rejected."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with translate_arrow_errors(format):
        if format.kind == "parquet":
            with pq.ParquetFile(format.path, pre_buffer=False) as file:
                schema = file.schema_arrow
        else:
            with pa.OSFile(format.path) as source:
                schema = open_ipc(source).schema
        for field in schema:
            _reject_extensions(format.path, field.name, field)
        check_duplicate_names(schema.names)
        return schema


def read_arrow(format: FileFormat, names: Sequence[str], wanted: Sequence[str]) -> Frame:
    """Read some columns of a Parquet or Arrow file.

    Parameters
    ----------
    format : FileFormat
        A file of kind 'parquet' or 'arrow'.
    names : sequence of str
        Names of all columns.
    wanted : sequence of str
        Names of the columns to read.
    """
    read = _read_parquet if format.kind == "parquet" else _read_ipc
    table = read(format, wanted)
    if not table.num_rows:
        raise FileError.no_rows(format.path, len(names))
    return _frame(table, names)


def read_json(format: FileFormat, *, max_bytes: int = MAX_BYTES) -> tuple[Any, FileFormat]:
    """Read JSON lines with all columns, since no header lists the columns.

    Returns
    -------
    table : pyarrow.Table
        All rows.
    format : FileFormat
        The format, with the text encoding detected from the whole file.
    """
    try:
        return _read_json(format, max_bytes), format
    except EncodingMismatch as mismatch:
        format = format.with_encoding(mismatch.encoding)
        return _read_json(format, max_bytes), format


def _read_json(format: FileFormat, max_bytes: int) -> Any:
    import pyarrow as pa
    from pyarrow import json as arrow_json

    with format.open_text(max_bytes=max_bytes) as stream:
        try:
            with arrow_input(_DepthCheckedStream(stream, format.path)) as open_input:
                table = arrow_json.read_json(open_input())
        except pa.ArrowInvalid as fault:
            raise_json_error(format, str(fault))
    check_duplicate_names(table.column_names)
    return table


def json_frame(table: Any, wanted: Sequence[str]) -> Frame:
    """Convert some columns of an Arrow table of JSON lines to cells."""
    return _frame(table.select(list(wanted)), table.column_names)


def _frame(table: Any, names: Sequence[str]) -> Frame:
    used, rows = set(table.column_names), table.num_rows
    excluded = tuple(name for name in names if name not in used)
    return Frame(columns_from_arrow(table), rows, excluded=excluded)


# --- Parquet and Arrow ---------------------------------------------------------------------------


def _read_parquet(format: FileFormat, names: Sequence[str]) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with translate_arrow_errors(format):
        file = pq.ParquetFile(format.path, pre_buffer=False, page_checksum_verification=True)
    with file:
        try:
            return file.read(columns=list(names))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
            raise_parquet_error(format.path, file, names, range(file.num_row_groups), fault)


def raise_parquet_error(
    path: str, file: Any, names: Sequence[str], groups: Iterable[int], fault: BaseException
) -> NoReturn:
    """Raise FileError for the first column and row group that cannot be read."""
    import pyarrow as pa

    for group in groups:
        for name in names:
            try:
                file.read_row_group(group, columns=[name])
            except (pa.ArrowException, OSError, UnicodeDecodeError) as page_fault:
                where = f"a page of column '{name}' in row group {group}"
                raise FileError.damaged(path, where, _first_line(page_fault)) from None
    raise FileError.damaged(path, "the rows", _first_line(fault)) from None


def _read_ipc(format: FileFormat, names: Sequence[str]) -> Any:
    import pyarrow as pa

    with translate_arrow_errors(format), pa.OSFile(format.path) as source:
        table = open_ipc(source).read_all()
        table.validate(full=True)
        return table.select(list(names))


def open_ipc(source: Any, columns: Sequence[int] = ()) -> Any:
    """Open an Arrow IPC file or stream.

    If `columns` is given, only columns at these positions are read.
    """
    import pyarrow as pa

    start = source.read(6)
    source.seek(0)
    open_reader = pa.ipc.open_file if start == b"ARROW1" else pa.ipc.open_stream
    return open_reader(source, options=pa.ipc.IpcReadOptions(included_fields=list(columns)))


@contextmanager
def translate_arrow_errors(format: FileFormat) -> Iterator[None]:
    """Translate errors of pyarrow to a FileError for a truncated or damaged file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as fault:
        reason = _first_line(fault)
        with open(format.path, "rb") as file:
            file.seek(max(os.path.getsize(format.path) - 4, 0))
            end = file.read()
        if format.kind == "parquet" and end != b"PAR1":
            raise FileError.cut_off(format.path, "no footer: it does not end with PAR1") from None
        raise FileError.damaged(format.path, "its schema or rows", reason) from None


def _reject_extensions(path: str, name: str, field: Any) -> None:
    import pyarrow as pa

    mark = (field.metadata or {}).get(_EXTENSION)
    if isinstance(field.type, pa.BaseExtensionType) or mark is not None:
        kind = mark.decode(errors="replace") if mark else str(field.type)
        raise FileError.of_extension(path, name, kind)
    for j in range(field.type.num_fields):
        _reject_extensions(path, name, field.type.field(j))


def _first_line(fault: BaseException) -> str:
    return str(fault).split("\n")[0].rstrip(".")[:200]


# --- JSON ----------------------------------------------------------------------------------------


MAX_DEPTH = 64  # deepest nesting of JSON values; Arrow's parser recurses without a limit
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)


def first_deep_line(text: bytes) -> int | None:
    """Return the index, from 0, of the first line of JSON that is nested too deeply, or None."""
    for position, line in enumerate(text.split(b"\n")):
        if line.count(b"[") + line.count(b"{") > MAX_DEPTH and _depth(line) > MAX_DEPTH:
            return position
    return None


def _depth(line: bytes) -> int:
    """Return the nesting depth of arrays and objects; brackets in strings do not count.

    >>> _depth(b'{"a": [[1], "[[["]}')
    3
    """
    marks = np.frombuffer(_STRINGS.sub(b"", line), np.uint8)
    opened = np.isin(marks, np.frombuffer(b"[{", np.uint8)).astype(np.int64)
    closed = np.isin(marks, np.frombuffer(b"]}", np.uint8))
    return int(np.cumsum(opened - closed).max(initial=0))


class _DepthCheckedStream(io.RawIOBase):
    """Stream of JSON lines, whose nesting depth is checked before Arrow parses them."""

    def __init__(self, stream: TextStream, path: str) -> None:
        self._stream, self._path = stream, path
        self._line, self._rest = 1, b""  # number of the current line, and its part read so far

    def readable(self) -> bool:
        """Return True: the stream is readable."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer and return their number."""
        text = self._stream.read(len(buffer))
        buffer[: len(text)] = text
        self._rest += text
        position = first_deep_line(self._rest)
        if position is not None:
            raise _depth_error(self._path, self._line + position)
        self._line += self._rest.count(b"\n")
        self._rest = self._rest[self._rest.rfind(b"\n") + 1 :]
        if len(self._rest) > MAX_LINE:
            raise FileError.long_line(self._path, self._line, MAX_LINE)
        return len(text)


def _depth_error(path: str, number: int) -> FileError:
    return FileError.of_json(path, number, f"nested more than {MAX_DEPTH} deep")


def raise_json_error(format: FileFormat, reason: str) -> NoReturn:
    """Raise FileError for the first line that is not an object or whose types differ.

    If no line is invalid, raise FileError with the message `reason`.
    """
    kinds: dict[str, str] = {}
    with format.open_text() as stream:
        for number, line in enumerate(stream.read().splitlines(), start=1):
            if line.strip():
                _check_object(format.path, number, line, kinds)
    raise FileError.damaged(format.path, "the text", reason) from None


def _check_object(path: str, number: int, line: bytes, kinds: dict[str, str]) -> None:
    if first_deep_line(line) is not None:
        raise _depth_error(path, number)
    try:
        record = json.loads(line)
    except ValueError as fault:
        raise FileError.of_json(path, number, f"no JSON ({_first_line(fault)})") from None
    if not isinstance(record, dict):
        raise FileError.of_json(path, number, f"a {type(record).__name__}, not an object")
    for name, value in record.items():
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
