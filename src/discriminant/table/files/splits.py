"""Splits of files into parts: row groups of Parquet, record batches of Arrow, ranges of lines.

A part opens its file, reads its rows in batches, and checks that the file has not changed since it
was first opened. Only the requested columns are read. A key in the name of a folder (`year=2024`)
becomes a column with the same value in every row of a file.

A text file (CSV or JSON lines) is split at line ends. A line end within a quoted field, after an
odd number of quotes, does not end a row. Every part counts its own quotes: if all counts are even,
all splits are correct. If a count is odd, `SplitError` is raised, and the caller reads the file in
one part. Compressed files are always read in one part.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Self

from discriminant.errors import FileError
from discriminant.table.column_cells import Frame, columns_from_arrow
from discriminant.table.files.csv import (
    CsvColumns,
    cell_of_row,
    cells_from_csv,
    check_quotes,
    count_rows_before,
    line_of_row,
    raise_first_error,
)
from discriminant.table.files.csv_dialect import MAX_LINE
from discriminant.table.files.formats import FileFormat, FileIdentity
from discriminant.table.files.pyarrow_readers import (
    MAX_DEPTH,
    arrow_input,
    first_deep_line,
    open_ipc,
    raise_json_error,
    raise_parquet_error,
    translate_arrow_errors,
)
from discriminant.table.files.text_decoding import EncodingMismatch, TextEncoding

BATCH = 1 << 17  # rows converted and summed at a time: the size of a page written by pyarrow
_CELLS = 1 << 22  # largest number of cells of a batch
TEXTS = ("string", "large_string", "string_view")  # Arrow types of texts
SMALL = 1 << 16  # number of rows; smaller row groups and record batches are combined to this size
RANGE = 1 << 25  # bytes of text in a part
_BUFFER = 1 << 18  # bytes of a column read ahead; otherwise pyarrow reads a whole row group
_BLOCK = 1 << 22  # bytes parsed at a time
_PIECE = 1 << 20


class FilePart(ABC):
    """Part of a file."""

    __slots__ = ()
    identity: FileIdentity
    start: int  # number of the first row if known, else 0

    @property
    @abstractmethod
    def name(self) -> str:
        """Position of the part in the file, for messages."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Size of the part: the number of rows or, for a text file, the number of bytes."""

    @abstractmethod
    def tables(self, columns: Sequence[str], *, max_rows: int | None = None) -> Iterator[Any]:
        """Yield the rows as Arrow tables.

        Pass `max_rows`, the maximum number of rows of a table, if only the first rows are needed.
        """

    def frame(self, table: Any, *, place: int = 0) -> Frame:
        """Convert a table from `tables` to cells; its first row is row `place` of the part."""
        return Frame(columns_from_arrow(table), table.num_rows)

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Yield the rows as cells. Raise FileError if the file has changed since it was opened."""
        self.identity.check()
        place = 0
        for table in self.tables(columns):
            yield self.frame(table, place=place)
            place += table.num_rows
        self.identity.check()

    def with_start(self) -> Self:
        """Return the part with the number of its first row, which may take some time."""
        return self


@dataclass(frozen=True, slots=True)
class FolderKeys:
    """Columns defined by the names of a file's folders; each has one value in the whole file."""

    values: tuple[tuple[str, int | str | None], ...] = ()
    whole: frozenset[str] = frozenset()  # keys whose values are all integers or missing

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(name for name, _ in self.values)

    def file_columns(self, columns: Sequence[str]) -> list[str]:
        """Return the columns that are in the file itself, not in folder names."""
        return [name for name in columns if name not in self.names]

    def append_to(self, table: Any, columns: Sequence[str]) -> Any:
        """Append to an Arrow table the folder keys that are among `columns`."""
        import pyarrow as pa

        for name, value in self.values:
            if name in columns:
                kind = pa.int64() if name in self.whole else pa.string()
                column = pa.repeat(pa.scalar(value, kind), table.num_rows)
                table = table.append_column(name, column)
        return table


# --- Parquet and Arrow ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ParquetPart(FilePart):
    """Some row groups of a Parquet file."""

    identity: FileIdentity
    groups: tuple[int, ...]
    start: int
    rows: int
    keys: FolderKeys = FolderKeys()

    @property
    def name(self) -> str:
        first, last = self.groups[0], self.groups[-1]
        which = f"group {first}" if first == last else f"groups {first} to {last}"
        return f"{self.identity.path}, row {which}"

    @property
    def size(self) -> int:
        return self.rows

    def tables(self, columns: Sequence[str], *, max_rows: int | None = None) -> Iterator[Any]:
        import pyarrow as pa

        names = self.keys.file_columns(columns)
        with open_parquet_file(self.identity, names) as file:
            if not names:
                empty = pa.table({"": pa.nulls(self.rows)})
                yield self.keys.append_to(empty, columns).select(list(columns))
                return
            try:
                rows = min(BATCH, max(_CELLS // len(names), 1024), max_rows or BATCH)
                for batch in file.iter_batches(
                    rows, row_groups=list(self.groups), columns=names, use_threads=False
                ):
                    # with pa.table(batch), codes of texts would keep all its columns in memory
                    yield self.keys.append_to(pa.Table.from_batches([batch]), columns)
            except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
                self.identity.check()
                raise_parquet_error(self.identity.path, file, names, self.groups, fault)

    def frame(self, table: Any, *, place: int = 0) -> Frame:
        return Frame(columns_from_arrow(table, coded=_text_columns(self.identity)), table.num_rows)


@dataclass(frozen=True, slots=True)
class ArrowPart(FilePart):
    """Some record batches of an Arrow IPC file, or a whole stream."""

    format: FileFormat
    identity: FileIdentity
    batches: tuple[int, int] | None  # first batch and end (exclusive); None for a stream
    start: int
    rows: int
    keys: FolderKeys = FolderKeys()

    @property
    def name(self) -> str:
        if self.batches is None:
            return self.identity.path
        return f"{self.identity.path}, record batches {self.batches[0]} to {self.batches[1] - 1}"

    @property
    def size(self) -> int:
        return self.rows

    def tables(self, columns: Sequence[str], *, max_rows: int | None = None) -> Iterator[Any]:
        import pyarrow as pa

        requested = set(columns)
        with translate_arrow_errors(self.format), pa.OSFile(self.identity.path) as source:
            for batch in self._read(source, self.keys.file_columns(columns)):
                batch.validate(full=True)
                whole = pa.Table.from_batches([batch])
                for lo in range(0, batch.num_rows, BATCH):
                    table = self.keys.append_to(whole.slice(lo, BATCH), columns)
                    yield table.select([name for name in table.column_names if name in requested])

    def _read(self, source: Any, names: Sequence[str]) -> Iterator[Any]:
        all_names = open_ipc(source).schema.names
        source.seek(0)
        reader = open_ipc(source, [all_names.index(name) for name in names] or [0])
        if self.batches is None:
            yield from reader
            return
        for number in range(*self.batches):
            yield reader.get_batch(number)


def parquet_parts(identity: FileIdentity, start: int, keys: FolderKeys) -> list[ParquetPart]:
    """Return the parts of a Parquet file: row groups; small row groups are combined."""
    footer = _footer(identity)
    sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
    return [
        ParquetPart(identity, tuple(range(lo, hi)), start + before, rows, keys)
        for lo, hi, before, rows in _runs(sizes)
    ]


def arrow_parts(
    format: FileFormat, identity: FileIdentity, start: int, keys: FolderKeys
) -> list[ArrowPart]:
    """Return the parts of an Arrow file: record batches; small batches are combined.

    A stream is a single part.
    """
    import pyarrow as pa

    # Only metadata is read, not the rows.
    with translate_arrow_errors(format), pa.memory_map(format.path) as source:
        reader = open_ipc(source, [0])
        if not hasattr(reader, "num_record_batches"):
            rows = sum(batch.num_rows for batch in reader)
            return [ArrowPart(format, identity, None, start, rows, keys)] if rows else []
        sizes = [reader.get_batch(k).num_rows for k in range(reader.num_record_batches)]
    return [
        ArrowPart(format, identity, (lo, hi), start + before, rows, keys)
        for lo, hi, before, rows in _runs(sizes)
    ]


def _runs(sizes: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """Combine consecutive groups of rows of the given sizes into runs of at least `SMALL` rows.

    Yield, for each run, the first group, the end (exclusive), the number of rows before the run,
    and the number of rows in it.

    >>> list(_runs([SMALL, 2, SMALL, 3])) == [
    ...     (0, 1, 0, SMALL), (1, 3, SMALL, SMALL + 2), (3, 4, 2 * SMALL + 2, 3)
    ... ]
    True
    """
    lo = before = rows = 0
    for k, size in enumerate(sizes):
        rows += size
        if rows >= SMALL:
            yield lo, k + 1, before, rows
            lo, before, rows = k + 1, before + rows, 0
    if rows:
        yield lo, len(sizes), before, rows


def open_parquet_file(identity: FileIdentity, columns: Sequence[str]) -> Any:
    """Open a Parquet file for reading these columns. Texts are read as dictionaries."""
    import pyarrow.parquet as pq

    footer = _footer(identity)
    texts = _text_columns(identity)
    with translate_arrow_errors(FileFormat(identity.path, "parquet")):
        return pq.ParquetFile(
            identity.path,
            metadata=footer,
            read_dictionary=[name for name in columns if name in texts],
            pre_buffer=False,
            buffer_size=_BUFFER,
            page_checksum_verification=True,
        )


@lru_cache(maxsize=64)
def _footer(identity: FileIdentity) -> Any:
    import pyarrow.parquet as pq

    with translate_arrow_errors(FileFormat(identity.path, "parquet")):
        return pq.read_metadata(identity.path)


@lru_cache(maxsize=64)
def _text_columns(identity: FileIdentity) -> frozenset[str]:
    schema = _footer(identity).schema.to_arrow_schema()
    return frozenset(field.name for field in schema if str(field.type) in TEXTS)


# --- texts ---------------------------------------------------------------------------------------


class SplitError(Exception):
    """Raised if a file cannot be read in the parts into which it was split."""

    def __init__(
        self,
        path: str,
        *,
        encoding: TextEncoding | None = None,
        long_lines: bool = False,
        new_fields: bool = False,
    ) -> None:
        super().__init__(path)
        self.path = path
        self.encoding = encoding  # correct encoding, if the detected one was wrong
        self.long_lines = long_lines  # whether a line is longer than a block
        self.new_fields = new_fields  # whether a JSON field is not in the first lines


class _TextPart(FilePart):
    """Byte range of a text file, or the whole file."""

    __slots__ = ()
    span: tuple[int, int] | None

    @property
    def name(self) -> str:
        if self.span is None:
            return self.identity.path
        return f"{self.identity.path}, bytes {self.span[0]} to {self.span[1]}"

    @property
    def size(self) -> int:
        return self.identity.size if self.span is None else self.span[1] - self.span[0]


@dataclass(frozen=True, slots=True)
class CsvPart(_TextPart):
    """Some lines of a CSV."""

    plan: CsvColumns
    identity: FileIdentity
    span: tuple[int, int] | None  # first byte and end; None means the whole file
    start: int = 0  # known for the first part, and after `with_start`
    before: int = 0  # number of rows before the part, if known
    keys: FolderKeys = FolderKeys()
    long_lines: bool = False  # whether lines are longer than a block

    def with_start(self) -> Self:
        """Count all rows before the part; return the part with the number of its first row."""
        if self.span is None or not self.span[0]:
            return self
        before = count_rows_before(self.plan.format, self.span[0])
        return replace(self, start=before, before=before)

    def frame(self, table: Any, *, place: int = 0) -> Frame:
        rows, format, first = table.num_rows, self.plan.format, self.before + place
        keys = [name for name in table.column_names if name in self.keys.names]
        names = [name for name in table.column_names if name not in self.keys.names]
        cells = (
            *cells_from_csv(table.select(names), self.plan),
            *columns_from_arrow(table.select(keys)),
        )
        return Frame(
            cells,
            rows,
            line_of=lambda row: line_of_row(format, first + row),
            text_of=lambda row, column: cell_of_row(format, first + row, column),
        )

    def tables(self, columns: Sequence[str], *, max_rows: int | None = None) -> Iterator[Any]:
        import pyarrow as pa

        names = self.keys.file_columns(columns) or list(self.plan.kinds)[:1]
        plan = replace(self.plan, kinds={name: self.plan.kinds[name] for name in names})
        try:
            for batch in self._batches(plan):
                table = pa.Table.from_batches([batch]).rename_columns(names)
                for lo in range(0, table.num_rows, BATCH):
                    yield self.keys.append_to(table.slice(lo, BATCH), columns)
        except EncodingMismatch as mismatch:
            raise SplitError(plan.format.path, encoding=mismatch.encoding) from None
        except pa.ArrowInvalid as fault:
            self._raise_parse_error(str(fault))

    def _batches(self, plan: CsvColumns) -> Iterator[Any]:
        from pyarrow import csv

        has_header = self.span is None or self.span[0] == 0
        with plan.open_text(self.span) as stream:
            with arrow_input(stream) as open_input:
                reader = csv.open_csv(
                    open_input(),
                    read_options=csv.ReadOptions(
                        use_threads=self.span is None,
                        block_size=4 * MAX_LINE if self.long_lines else _BLOCK,
                        column_names=None if has_header else list(plan.format.csv_dialect.header),
                    ),
                    parse_options=plan.parse_options(multiline=self.span is None),
                    convert_options=plan.convert_options(),
                )
                try:
                    yield from reader
                finally:
                    reader.close()
                    del reader  # the reader holds the blocks that were read ahead
            if stream.quotes % 2:
                self._raise_quote_error()
            if stream.text_after_quote:
                check_quotes(plan.format, plan.kinds, self.span)

    def _raise_parse_error(self, reason: str) -> None:
        """Raise the error that stopped pyarrow, or SplitError if another way of splitting helps."""
        path = self.plan.format.path
        if "straddl" in reason and not self.long_lines:
            raise SplitError(path, long_lines=True)
        if "Empty CSV" in reason:
            return
        if "out of sync" in reason or self._begins_in_quotes():
            self._raise_quote_error()
        self._raise_first_error()
        raise FileError.damaged(path, "the text", reason) from None

    def _begins_in_quotes(self) -> bool:
        if self.span is None or not self.span[0]:
            return False
        quote, quotes, left = self.plan.format.csv_dialect.quote.encode(), 0, self.span[0]
        with open(self.identity.path, "rb") as file:
            while left > 0 and (piece := file.read(min(_PIECE, left))):
                quotes, left = quotes + piece.count(quote), left - len(piece)
        return quotes % 2 == 1

    def _raise_quote_error(self) -> None:
        if self.span is not None:
            raise SplitError(self.plan.format.path)
        self._raise_first_error()

    def _raise_first_error(self) -> None:
        self.identity.check()
        raise_first_error(self.plan)


@dataclass(frozen=True, slots=True)
class JsonPart(_TextPart):
    """Some lines of JSON."""

    format: FileFormat
    identity: FileIdentity
    schema: Any  # Arrow schema
    span: tuple[int, int] | None
    all_fields: bool = False  # whether the schema covers all lines, not only the first
    start: int = 0
    keys: FolderKeys = FolderKeys()

    def tables(self, columns: Sequence[str], *, max_rows: int | None = None) -> Iterator[Any]:
        import pyarrow as pa

        path = self.format.path
        try:
            for table in json_tables(
                self.format, self.span, self.schema, all_fields=self.all_fields
            ):
                in_file = table.select(self.keys.file_columns(columns) or table.column_names[:1])
                for lo in range(0, table.num_rows, BATCH):
                    yield self.keys.append_to(in_file.slice(lo, BATCH), columns)
        except EncodingMismatch as mismatch:
            raise SplitError(path, encoding=mismatch.encoding) from None
        except pa.ArrowInvalid as fault:
            self.identity.check()
            if "unexpected field" in str(fault) and not self.all_fields:
                raise SplitError(path, new_fields=True) from None
            raise_json_error(self.format, str(fault))


def json_tables(
    format: FileFormat,
    span: tuple[int, int] | None,
    schema: Any = None,
    *,
    all_fields: bool = False,
) -> Iterator[Any]:
    """Yield JSON lines as several Arrow tables.

    Parameters
    ----------
    format : FileFormat
        A file of kind 'jsonl'.
    span : tuple of int or None
        First byte and end of the range to read, or None to read the whole file.
    schema : pyarrow.Schema, optional
        Types of the fields; by default they are inferred for each table.
    all_fields : bool, default=False
        Whether the schema has the fields of all lines. If False, an error is raised for a field
        that the schema lacks.
    """
    import pyarrow as pa
    from pyarrow import json

    known = "ignore" if all_fields else "error"
    for piece in _line_pieces(format, span):
        if first_deep_line(piece) is not None:
            raise_json_error(format, f"nested more than {MAX_DEPTH} deep")
        try:
            with arrow_input(io.BytesIO(piece)) as open_input:
                table = json.read_json(
                    open_input(),
                    read_options=json.ReadOptions(use_threads=False),
                    parse_options=json.ParseOptions(
                        explicit_schema=schema,
                        unexpected_field_behavior="infer" if schema is None else known,
                    ),
                )
            yield table
        except pa.ArrowInvalid as fault:
            if schema is not None:  # the caller knows the schema and explains the error
                raise
            raise_json_error(format, str(fault))


def infer_json_schema(format: FileFormat, span: tuple[int, int] | None) -> Any:
    """Return the Arrow schema that is inferred from the first lines of a JSON file."""
    import pyarrow as pa

    with closing(json_tables(format, span)) as tables:  # type: ignore[type-var]
        first = next(tables, None)
    return pa.schema([]) if first is None else first.schema


def _line_pieces(format: FileFormat, span: tuple[int, int] | None) -> Iterator[bytes]:
    """Yield pieces of the text, each of which consists of complete lines."""
    rest = b""
    with format.open_text(span=span) as stream:
        while piece := stream.read(RANGE):
            rest += piece
            end = rest.rfind(b"\n") + 1
            if end and rest[:end].strip():
                yield rest[:end]
                rest = rest[end:]
            if len(rest) > MAX_LINE:
                raise_json_error(format, "a line without an end")
    if rest.strip():
        yield rest


def line_ranges(format: FileFormat, size: int) -> list[tuple[int, int]] | None:
    """Return the byte ranges into which a text is split, or None if it cannot be split."""
    wide = format.encoding.name.startswith("utf-16")
    if format.gzip or wide or (format.dialect is not None and format.dialect.multiline):
        return None
    ends = [0]
    with open(format.path, "rb") as file:
        while ends[-1] + RANGE < size:
            file.seek(ends[-1] + RANGE)
            if not file.readline(MAX_LINE).endswith(b"\n"):
                break
            ends.append(min(file.tell(), size))
    if ends[-1] < size:
        ends.append(size)
    return list(pairwise(ends))
