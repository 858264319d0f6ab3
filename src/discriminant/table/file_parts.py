"""Parts of files: row groups of Parquet, record batches of Arrow IPC, ranges of lines of a text.

A part opens its file, gives its rows some at a time, and looks whether the file is still the one
that was opened. Only the columns asked for are read. Keys of a partitioned folder (`year=2024`)
are columns that every row of a file has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from discriminant.table.arrow_files import (
    blame_parquet,
    guarded,
    ipc_reader,
    unreadable,
)
from discriminant.table.cells import Frame, from_arrow
from discriminant.table.files import Format, Identity

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
    def identity(self) -> Identity: ...

    @property
    def share(self) -> int:
        """How much of the source it is: rows, or bytes of text."""
        ...

    def tables(self, columns: Sequence[str], *, most: int | None = None) -> Iterator[Any]:
        """Arrow tables of its rows; if only the first are wanted, so many of them at a time."""
        ...

    def frame(self, table: Any, *, place: int = 0) -> Frame:
        """Cells of such a table; `place` is the number of its first row in the part."""
        ...

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]: ...

    def placed(self) -> FilePart:
        """Itself with its start, where that takes time to find."""
        ...


@dataclass(frozen=True, slots=True)
class Keys:
    """What the folders that a file lies in say of all its rows."""

    values: tuple[tuple[str, int | str | None], ...] = ()
    whole: frozenset[str] = frozenset()  # keys that are whole numbers in all folders, or missing

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return tuple(name for name, _ in self.values)

    def apart(self, columns: Sequence[str]) -> list[str]:
        """The columns that are in the file."""
        return [name for name in columns if name not in self.names]

    def joined(self, table: Any, columns: Sequence[str]) -> Any:
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

    identity: Identity
    groups: tuple[int, ...]
    start: int
    rows: int
    keys: Keys = Keys()

    @property
    def name(self) -> str:
        """Where it lies."""
        first, last = self.groups[0], self.groups[-1]
        which = f"group {first}" if first == last else f"groups {first} to {last}"
        return f"{self.identity.path}, row {which}"

    @property
    def share(self) -> int:
        """Rows."""
        return self.rows

    def tables(self, columns: Sequence[str], *, most: int | None = None) -> Iterator[Any]:
        """Arrow tables of its rows; if only the first are wanted, so many of them at a time."""
        import pyarrow as pa

        path, held = self.identity.path, self.keys.apart(columns)
        with open_parquet(self.identity, held) as file:
            if not held:
                empty = pa.table({"": pa.nulls(self.rows)})
                yield self.keys.joined(empty, columns).select(list(columns))
                return
            try:
                rows = min(BATCH, max(_CELLS // len(held), 1024), most or BATCH)
                for batch in file.iter_batches(
                    rows, row_groups=list(self.groups), columns=held, use_threads=False
                ):
                    # not pa.table(batch): codes of texts would keep all its columns alive
                    yield self.keys.joined(pa.Table.from_batches([batch]), columns)
            except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
                self.identity.check()
                blame_parquet(path, file, held, self.groups)
                raise unreadable(path, fault) from None

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Its rows, some at a time."""
        return framed(self, columns)

    def frame(self, table: Any, *, place: int = 0) -> Frame:
        """Cells of an Arrow table."""
        return Frame(from_arrow(table, coded=_texts(self.identity)), table.num_rows)

    def placed(self) -> ParquetPart:
        """Itself."""
        return self


@dataclass(frozen=True, slots=True)
class ArrowPart:
    """Some record batches of an Arrow IPC file, or a whole stream."""

    format: Format
    identity: Identity
    batches: tuple[int, int] | None  # first and one past the last; None: all of a stream
    start: int
    rows: int
    keys: Keys = Keys()

    @property
    def name(self) -> str:
        """Where it lies."""
        if self.batches is None:
            return self.identity.path
        return f"{self.identity.path}, record batches {self.batches[0]} to {self.batches[1] - 1}"

    @property
    def share(self) -> int:
        """Rows."""
        return self.rows

    def tables(self, columns: Sequence[str], *, most: int | None = None) -> Iterator[Any]:
        """Arrow tables of its rows."""
        import pyarrow as pa

        asked = set(columns)
        with guarded(self.format), pa.OSFile(self.identity.path) as source:
            for batch in self._read(source, self.keys.apart(columns)):
                batch.validate(full=True)
                held = pa.Table.from_batches([batch])
                for lo in range(0, batch.num_rows, BATCH):
                    some = self.keys.joined(held.slice(lo, BATCH), columns)
                    yield some.select([name for name in some.column_names if name in asked])

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Its rows, some at a time."""
        return framed(self, columns)

    def frame(self, table: Any, *, place: int = 0) -> Frame:
        """Cells of an Arrow table."""
        return Frame(from_arrow(table), table.num_rows)

    def placed(self) -> ArrowPart:
        """Itself."""
        return self

    def _read(self, source: Any, names: Sequence[str]) -> Iterator[Any]:
        every = ipc_reader(source).schema.names
        source.seek(0)
        reader = ipc_reader(source, [every.index(name) for name in names] or [0])
        if self.batches is None:
            yield from reader
            return
        for number in range(*self.batches):
            yield reader.get_batch(number)


def framed(part: FilePart, columns: Sequence[str]) -> Iterator[Frame]:
    """The rows of a part as cells; a file that changed meanwhile is refused."""
    part.identity.check()
    place = 0
    for table in part.tables(columns):
        yield part.frame(table, place=place)
        place += table.num_rows
    part.identity.check()


# --- cutting files into parts --------------------------------------------------------------------


def parquet_parts(identity: Identity, start: int, keys: Keys) -> list[ParquetPart]:
    """Row groups, small ones together."""
    footer = _footer(identity)
    sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
    parts = []
    for lo, hi in _runs(sizes):
        rows = sum(sizes[lo:hi])
        parts.append(ParquetPart(identity, tuple(range(lo, hi)), start, rows, keys))
        start += rows
    return parts


def arrow_parts(format: Format, identity: Identity, start: int, keys: Keys) -> list[ArrowPart]:
    """Record batches, small ones together; a stream is one part."""
    import pyarrow as pa

    with guarded(format), pa.memory_map(format.path) as source:  # rows are not touched
        reader = ipc_reader(source, [0])
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


def open_parquet(identity: Identity, columns: Sequence[str]) -> Any:
    """A Parquet file of which these columns are read; texts come as the codes that they are in."""
    import pyarrow.parquet as pq

    footer = _footer(identity)
    texts = _texts(identity)
    with guarded(Format(identity.path, "parquet")):
        return pq.ParquetFile(
            identity.path,
            metadata=footer,
            read_dictionary=[name for name in columns if name in texts],
            pre_buffer=False,
            buffer_size=_BUFFER,
            page_checksum_verification=True,
        )


@lru_cache(maxsize=64)
def _footer(identity: Identity) -> Any:
    """Read once by each process."""
    import pyarrow.parquet as pq

    with guarded(Format(identity.path, "parquet")):
        return pq.read_metadata(identity.path)


@lru_cache(maxsize=64)
def _texts(identity: Identity) -> frozenset[str]:
    schema = _footer(identity).schema.to_arrow_schema()
    return frozenset(one.name for one in schema if str(one.type) in TEXTS)
