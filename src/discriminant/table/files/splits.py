"""Parts of files: row groups of Parquet, record batches of Arrow IPC, ranges of lines of a text.

A part opens its file, gives its rows some at a time, and looks whether the file is still the one
that was opened. Only the columns asked for are read. Keys of a partitioned folder (`year=2024`)
are columns that every row of a file has.

Ranges of lines of a text file, CSV or JSON lines, that can be read apart from the others.

A file is cut at line ends. A line end in a quoted field is none: whether a cut lies in one shows in
the quotes before it, of which there is then an odd number. Since every part counts its own, all
cuts are right if all counts are even; else the file is read again in one part, as is one that is
packed. `Recut` says so to whoever reads the parts.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Protocol

from discriminant.errors import FileError
from discriminant.table.cells import Frame, columns_from_arrow
from discriminant.table.files.arrow import (
    first_deep_line,
    open_ipc,
    raise_json_error,
    raise_parquet_error,
    translate_arrow_errors,
    unreadable_rows_error,
)
from discriminant.table.files.csv import (
    CsvColumns,
    cell_of_row,
    cells_from_csv,
    check_quotes,
    convert_options,
    count_rows_before,
    line_of_row,
    raise_first_error,
)
from discriminant.table.files.csv_dialect import MAX_LINE
from discriminant.table.files.formats import FileFormat, FileIdentity
from discriminant.table.files.text_decoding import EncodingMismatch, TextEncoding, TextStream

BATCH = 1 << 17  # rows turned and summed at a time: those of a page, as pyarrow writes it
_CELLS = 1 << 22  # of a batch, at most
TEXTS = ("string", "large_string", "string_view")  # Arrow's ways to hold texts
SMALL = 1 << 16  # rows; row groups and batches that are smaller are read together
_BUFFER = 1 << 18  # bytes of a column read ahead; without it a whole row group is


class FilePart(Protocol):
    """A part of a file, and what its rows are in Arrow."""

    @property
    def name(self) -> str: ...

    @property
    def start(self) -> int: ...

    @property
    def identity(self) -> FileIdentity: ...

    @property
    def size(self) -> int:
        """How much of the source it is: rows, or bytes of text."""
        ...

    def tables(self, columns: Sequence[str], *, most: int | None = None) -> Iterator[Any]:
        """Arrow tables of its rows; if only the first are wanted, so many of them at a time."""
        ...

    def frame(self, table: Any, *, place: int = 0) -> Frame:
        """Cells of such a table; `place` is the number of its first row in the part."""
        ...

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]: ...

    def with_start(self) -> FilePart:
        """Itself with its start, where that takes time to find."""
        ...


@dataclass(frozen=True, slots=True)
class FolderKeys:
    """What the folders that a file lies in say of all its rows."""

    values: tuple[tuple[str, int | str | None], ...] = ()
    whole: frozenset[str] = frozenset()  # keys that are whole numbers in all folders, or missing

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return tuple(name for name, _ in self.values)

    def file_columns(self, columns: Sequence[str]) -> list[str]:
        """The columns that are in the file."""
        return [name for name in columns if name not in self.names]

    def append_to(self, table: Any, columns: Sequence[str]) -> Any:
        """The table with the keys that are asked for."""
        import pyarrow as pa

        for name, value in self.values:
            if name in columns:
                kind = pa.int64() if name in self.whole else pa.string()
                column = pa.repeat(pa.scalar(value, kind), table.num_rows)
                table = table.append_column(name, column)
        return table


@dataclass(frozen=True, slots=True)
class ParquetPart:
    """Some row groups of a Parquet file."""

    identity: FileIdentity
    groups: tuple[int, ...]
    start: int
    rows: int
    keys: FolderKeys = FolderKeys()

    @property
    def name(self) -> str:
        """Where it lies."""
        first, last = self.groups[0], self.groups[-1]
        which = f"group {first}" if first == last else f"groups {first} to {last}"
        return f"{self.identity.path}, row {which}"

    @property
    def size(self) -> int:
        """Rows."""
        return self.rows

    def tables(self, columns: Sequence[str], *, most: int | None = None) -> Iterator[Any]:
        """Arrow tables of its rows; if only the first are wanted, so many of them at a time."""
        import pyarrow as pa

        path, held = self.identity.path, self.keys.file_columns(columns)
        with open_parquet(self.identity, held) as file:
            if not held:
                empty = pa.table({"": pa.nulls(self.rows)})
                yield self.keys.append_to(empty, columns).select(list(columns))
                return
            try:
                rows = min(BATCH, max(_CELLS // len(held), 1024), most or BATCH)
                for batch in file.iter_batches(
                    rows, row_groups=list(self.groups), columns=held, use_threads=False
                ):
                    # not pa.table(batch): codes of texts would keep all its columns alive
                    yield self.keys.append_to(pa.Table.from_batches([batch]), columns)
            except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
                self.identity.check()
                raise_parquet_error(path, file, held, self.groups)
                raise unreadable_rows_error(path, fault) from None

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Its rows, some at a time."""
        return frames_of_part(self, columns)

    def frame(self, table: Any, *, place: int = 0) -> Frame:
        """Cells of an Arrow table."""
        return Frame(columns_from_arrow(table, coded=_texts(self.identity)), table.num_rows)

    def with_start(self) -> ParquetPart:
        """Itself."""
        return self


@dataclass(frozen=True, slots=True)
class ArrowPart:
    """Some record batches of an Arrow IPC file, or a whole stream."""

    format: FileFormat
    identity: FileIdentity
    batches: tuple[int, int] | None  # first and one past the last; None: all of a stream
    start: int
    rows: int
    keys: FolderKeys = FolderKeys()

    @property
    def name(self) -> str:
        """Where it lies."""
        if self.batches is None:
            return self.identity.path
        return f"{self.identity.path}, record batches {self.batches[0]} to {self.batches[1] - 1}"

    @property
    def size(self) -> int:
        """Rows."""
        return self.rows

    def tables(self, columns: Sequence[str], *, most: int | None = None) -> Iterator[Any]:
        """Arrow tables of its rows."""
        import pyarrow as pa

        asked = set(columns)
        with translate_arrow_errors(self.format), pa.OSFile(self.identity.path) as source:
            for batch in self._read(source, self.keys.file_columns(columns)):
                batch.validate(full=True)
                held = pa.Table.from_batches([batch])
                for lo in range(0, batch.num_rows, BATCH):
                    some = self.keys.append_to(held.slice(lo, BATCH), columns)
                    yield some.select([name for name in some.column_names if name in asked])

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Its rows, some at a time."""
        return frames_of_part(self, columns)

    def frame(self, table: Any, *, place: int = 0) -> Frame:
        """Cells of an Arrow table."""
        return Frame(columns_from_arrow(table), table.num_rows)

    def with_start(self) -> ArrowPart:
        """Itself."""
        return self

    def _read(self, source: Any, names: Sequence[str]) -> Iterator[Any]:
        every = open_ipc(source).schema.names
        source.seek(0)
        reader = open_ipc(source, [every.index(name) for name in names] or [0])
        if self.batches is None:
            yield from reader
            return
        for number in range(*self.batches):
            yield reader.get_batch(number)


def frames_of_part(part: FilePart, columns: Sequence[str]) -> Iterator[Frame]:
    """The rows of a part as cells; a file that changed meanwhile is refused."""
    part.identity.check()
    place = 0
    for table in part.tables(columns):
        yield part.frame(table, place=place)
        place += table.num_rows
    part.identity.check()


# --- cutting files into parts --------------------------------------------------------------------


def parquet_parts(identity: FileIdentity, start: int, keys: FolderKeys) -> list[ParquetPart]:
    """Row groups, small ones together."""
    footer = _footer(identity)
    sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
    parts = []
    for lo, hi in _runs(sizes):
        rows = sum(sizes[lo:hi])
        parts.append(ParquetPart(identity, tuple(range(lo, hi)), start, rows, keys))
        start += rows
    return parts


def arrow_parts(
    format: FileFormat, identity: FileIdentity, start: int, keys: FolderKeys
) -> list[ArrowPart]:
    """Record batches, small ones together; a stream is one part."""
    import pyarrow as pa

    with (
        translate_arrow_errors(format),
        pa.memory_map(format.path) as source,
    ):  # rows are not touched
        reader = open_ipc(source, [0])
        if not hasattr(reader, "num_record_batches"):
            rows = sum(batch.num_rows for batch in reader)
            return [ArrowPart(format, identity, None, start, rows, keys)] if rows else []
        sizes = [reader.get_batch(k).num_rows for k in range(reader.num_record_batches)]
    parts = []
    for lo, hi in _runs(sizes):
        rows = sum(sizes[lo:hi])
        parts.append(ArrowPart(format, identity, (lo, hi), start, rows, keys))
        start += rows
    return parts


def _runs(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Where to cut, so that what is read together has enough rows; of nothing, nowhere."""
    runs, lo, rows = [], 0, 0
    for k, size in enumerate(sizes):
        rows += size
        if rows >= SMALL:
            runs.append((lo, k + 1))
            lo, rows = k + 1, 0
    return [*runs, (lo, len(sizes))] if rows else runs


def open_parquet(identity: FileIdentity, columns: Sequence[str]) -> Any:
    """A Parquet file of which these columns are read; texts come as the codes that they are in."""
    import pyarrow.parquet as pq

    footer = _footer(identity)
    texts = _texts(identity)
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
    """Read once by each process."""
    import pyarrow.parquet as pq

    with translate_arrow_errors(FileFormat(identity.path, "parquet")):
        return pq.read_metadata(identity.path)


@lru_cache(maxsize=64)
def _texts(identity: FileIdentity) -> frozenset[str]:
    schema = _footer(identity).schema.to_arrow_schema()
    return frozenset(one.name for one in schema if str(one.type) in TEXTS)


RANGE = 1 << 25  # bytes of text in a part
_BLOCK = 1 << 22  # bytes parsed at a time
_PIECE = 1 << 20


class SplitError(Exception):
    """A file cannot be read by the parts that it was cut into."""

    def __init__(
        self,
        path: str,
        *,
        encoding: TextEncoding | None = None,
        long: bool = False,
        late: bool = False,
    ) -> None:
        super().__init__(path)
        self.path, self.encoding, self.long_lines = path, encoding, long
        self.new_fields = late  # a field of JSON is not among those of the first lines


class _Span:
    """Some bytes of a file of text, or all."""

    __slots__ = ()
    identity: FileIdentity
    span: tuple[int, int] | None

    @property
    def name(self) -> str:
        """Where it lies."""
        if self.span is None:
            return self.identity.path
        return f"{self.identity.path}, bytes {self.span[0]} to {self.span[1]}"

    @property
    def size(self) -> int:
        """Bytes."""
        return self.identity.size if self.span is None else self.span[1] - self.span[0]


@dataclass(frozen=True, slots=True)
class CsvPart(_Span):
    """Some lines of a CSV."""

    plan: CsvColumns
    identity: FileIdentity
    span: tuple[int, int] | None  # bytes; None: all
    start: int = 0  # in its file; known of the first part, and when `placed` is asked
    before: int = 0  # rows of the file before it, likewise
    keys: FolderKeys = FolderKeys()
    long: bool = False  # lines are longer than a block

    def with_start(self) -> CsvPart:
        """Itself with its start: all lines before are counted."""
        if self.span is None or not self.span[0]:
            return self
        before = count_rows_before(self.plan.format, self.span[0])
        return replace(self, start=before, before=before)

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Its rows, some at a time."""
        return frames_of_part(self, columns)

    def frame(self, table: Any, *, place: int = 0) -> Frame:
        """Cells of an Arrow table."""
        rows, path = table.num_rows, self.plan.format
        known = [name for name in table.column_names if name not in self.keys.names]
        first = self.before + place
        also = [name for name in table.column_names if name in self.keys.names]
        cells = (
            *cells_from_csv(table.select(known), self.plan),
            *columns_from_arrow(table.select(also)),
        )
        return Frame(
            cells,
            rows,
            line_of=lambda row: line_of_row(path, first + row),
            text_of=lambda row, column: cell_of_row(path, first + row, column),
        )

    def tables(self, columns: Sequence[str], *, most: int | None = None) -> Iterator[Any]:
        """Arrow tables of its rows."""
        import pyarrow as pa

        format = self.plan.format
        names = self.keys.file_columns(columns) or list(self.plan.kinds)[:1]
        plan = replace(self.plan, kinds={name: self.plan.kinds[name] for name in names})
        try:
            for batch in self._batches(plan):
                table = pa.Table.from_batches([batch]).rename_columns(names)
                for lo in range(0, table.num_rows, BATCH):
                    yield self.keys.append_to(table.slice(lo, BATCH), columns)
        except EncodingMismatch as found:
            raise SplitError(format.path, encoding=found.encoding) from None
        except pa.ArrowInvalid as fault:
            self._explain(str(fault))

    # --- inside ---------------------------------------------------------------------------------

    def _batches(self, plan: CsvColumns) -> Iterator[Any]:
        from pyarrow import csv

        dialect, format = plan.format.dialect, plan.format
        assert dialect is not None
        headless = self.span is not None and self.span[0] > 0
        with TextStream(
            format.path,
            gzip=format.gzip,
            encoding=format.encoding,
            max_bytes=plan.max_bytes,
            quote=dialect.quote,
            delimiter=dialect.delimiter,
            span=self.span,
        ) as stream:
            with csv.open_csv(
                stream,
                read_options=csv.ReadOptions(
                    use_threads=self.span is None,
                    block_size=4 * MAX_LINE if self.long else _BLOCK,
                    column_names=list(dialect.header) if headless else None,
                ),
                parse_options=csv.ParseOptions(
                    delimiter=dialect.delimiter,
                    quote_char=dialect.quote,
                    newlines_in_values=self.span is None,
                ),
                convert_options=convert_options(plan),
            ) as reader:
                yield from reader
            if stream.quotes % 2:
                self._whole_or_blame()
            if stream.text_after_quote:
                check_quotes(format, plan.kinds, self.span)

    def _explain(self, text: str) -> None:
        """Raise the error for what stopped pyarrow, or ask for another cut."""
        format = self.plan.format
        if "straddl" in text and not self.long:
            raise SplitError(format.path, long=True)
        if "Empty CSV" in text:
            return
        if "out of sync" in text or self._odd_before():
            self._whole_or_blame()
        self._blame()
        raise FileError.damaged(format.path, "the text", text) from None

    def _odd_before(self) -> bool:
        """Whether the part begins in a quoted field."""
        if self.span is None or not self.span[0]:
            return False
        dialect = self.plan.format.dialect
        assert dialect is not None
        return _count(self.identity.path, dialect.quote.encode(), self.span[0]) % 2 == 1

    def _whole_or_blame(self) -> None:
        if self.span is not None:
            raise SplitError(self.plan.format.path)
        self._blame()

    def _blame(self) -> None:
        self.identity.check()
        raise_first_error(self.plan.format, self.plan.kinds, self.plan.missing)


@dataclass(frozen=True, slots=True)
class JsonPart(_Span):
    """Some lines of JSON."""

    format: FileFormat
    identity: FileIdentity
    schema: Any  # of Arrow
    span: tuple[int, int] | None
    every: bool = False  # whether the schema is of all lines, and not of the first
    start: int = 0
    keys: FolderKeys = FolderKeys()

    def with_start(self) -> JsonPart:
        """Itself."""
        return self

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Its rows, some at a time."""
        return frames_of_part(self, columns)

    def frame(self, table: Any, *, place: int = 0) -> Frame:
        """Cells of an Arrow table."""
        return Frame(columns_from_arrow(table), table.num_rows)

    def tables(self, columns: Sequence[str], *, most: int | None = None) -> Iterator[Any]:
        """Arrow tables of its rows."""
        import pyarrow as pa

        path = self.format.path
        try:
            for table in json_tables(self.format, self.span, self.schema, every=self.every):
                held = table.select(self.keys.file_columns(columns) or table.column_names[:1])
                for lo in range(0, table.num_rows, BATCH):
                    yield self.keys.append_to(held.slice(lo, BATCH), columns)
        except EncodingMismatch as found:
            raise SplitError(path, encoding=found.encoding) from None
        except pa.ArrowInvalid as fault:
            self.identity.check()
            if "unexpected field" in str(fault) and not self.every:
                raise SplitError(path, late=True) from None
            raise_json_error(self.format)
            raise FileError.damaged(path, "the text", str(fault)) from None


def json_tables(
    format: FileFormat, span: tuple[int, int] | None, schema: Any = None, *, every: bool = False
) -> Iterator[Any]:
    """Lines as Arrow tables, some at a time: of these kinds, or of those that each has.

    A field that is not in the schema is an error, unless that is said to be of every line: then it
    is one within a field.
    """
    import pyarrow as pa
    from pyarrow import json

    known = "ignore" if every else "error"
    for piece in _pieces(format, span):
        if first_deep_line(piece) is not None:
            raise_json_error(format)
        try:
            yield json.read_json(
                io.BytesIO(piece),
                read_options=json.ReadOptions(use_threads=False),
                parse_options=json.ParseOptions(
                    explicit_schema=schema,
                    unexpected_field_behavior="infer" if schema is None else known,
                ),
            )
        except pa.ArrowInvalid as fault:
            if schema is not None:  # the part, which knows its schema, says what is wrong
                raise
            raise_json_error(format)
            raise FileError.damaged(format.path, "the text", str(fault)) from None


def first_schema(format: FileFormat, span: tuple[int, int] | None) -> Any:
    """The schema of the first lines."""
    import pyarrow as pa

    with closing(json_tables(format, span)) as tables:  # type: ignore[type-var]
        first = next(tables, None)
    return pa.schema([]) if first is None else first.schema


def _pieces(format: FileFormat, span: tuple[int, int] | None) -> Iterator[bytes]:
    """Whole lines, as many as are read together."""
    rest = b""
    with TextStream(format.path, gzip=format.gzip, encoding=format.encoding, span=span) as stream:
        while piece := stream.read(RANGE):
            rest += piece
            end = rest.rfind(b"\n") + 1
            if end and rest[:end].strip():
                yield rest[:end]
                rest = rest[end:]
            if len(rest) > MAX_LINE:
                raise_json_error(format)
                raise FileError.damaged(format.path, "the text", "a line without an end")
    if rest.strip():
        yield rest


def line_ranges(format: FileFormat, size: int) -> list[tuple[int, int]] | None:
    """Where a text may be cut, if it may."""
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


def _count(path: str, mark: bytes, end: int) -> int:
    found = 0
    with open(path, "rb") as file:
        while end > 0 and (piece := file.read(min(_PIECE, end))):
            found, end = found + piece.count(mark), end - len(piece)
    return found
