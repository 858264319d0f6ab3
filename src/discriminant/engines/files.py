"""Files larger than memory: parts read, decoded and summed on all cores."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from discriminant.engines.summing import add_up, available_threads, in_order
from discriminant.errors import FileError
from discriminant.table.cells import Frame, from_arrow
from discriminant.table.parts import Adds, Part

A = TypeVar("A", bound=Adds)
_BATCH = 1 << 16  # rows


@dataclass(frozen=True, slots=True)
class ParquetPart:
    """A row group of a Parquet file."""

    path: str
    group: int
    start: int

    @property
    def name(self) -> str:
        """Where it lies."""
        return f"{self.path}, row group {self.group}"

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Its rows, some at a time."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path, pre_buffer=False) as file:
            for batch in file.iter_batches(
                _BATCH, row_groups=[self.group], columns=list(columns), use_threads=False
            ):
                yield Frame(from_arrow(pa.table(batch)), batch.num_rows)


@dataclass(frozen=True, slots=True, eq=False)
class FilesSource:
    """Files of one schema."""

    name: str
    names: tuple[str, ...]
    parts: tuple[Part, ...]
    said: tuple[str, ...] = ()

    def sample(self, columns: Sequence[str], rows: int) -> Frame:
        """The first rows of parts all over the files."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        step = max(len(self.parts) // 16, 1)
        some = self.parts[::step]
        each = -(-rows // len(some))
        found = []
        for part in some:
            with pq.ParquetFile(part.path, pre_buffer=False) as file:  # type: ignore[attr-defined]
                group = part.group  # type: ignore[attr-defined]
                batch = next(file.iter_batches(each, row_groups=[group], columns=list(columns)))
                found.append(batch)
        table = pa.Table.from_batches(found).select(list(columns))
        return Frame(from_arrow(table), table.num_rows)

    def summed(self, work: Callable[[Part], A]) -> A:
        """On all cores, added in the order of the parts."""
        threads = available_threads()
        with ThreadPoolExecutor(threads) as pool:
            return add_up(in_order(pool, work, self.parts, 2 * threads))


def takes(source: Any) -> bool:
    """Whether it names files."""
    return isinstance(source, str | os.PathLike)


def source_of(source: Any) -> FilesSource:
    """Parts of Parquet files."""
    import pyarrow.parquet as pq

    paths = sorted(glob.glob(os.fspath(source)))
    if not paths:
        raise FileError.absent(os.fspath(source))
    parts: list[ParquetPart] = []
    start = 0
    names: tuple[str, ...] = ()
    for path in paths:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            names = tuple(file.schema_arrow.names)
            for group in range(file.num_row_groups):
                parts.append(ParquetPart(path, group, start))
                start += file.metadata.row_group(group).num_rows
    return FilesSource(os.fspath(source), names, tuple(parts))
