"""Out-of-core engine: reads, decodes and sums files larger than memory, part by part on all cores.

    Parquet, Arrow IPC      row groups or record batches; small ones are read together
    CSV, JSON lines         ranges of lines; a compressed file is one part

Each core processes one part at a time, in small batches. While one core waits for the disk or
decodes, another core sums. Results are added in the order of the parts. All files must have the
same schema.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from discriminant.engines.checkpoint import Journal, digest
from discriminant.engines.sampling import sample_part_heads, systematic_sample
from discriminant.engines.summation import available_threads, one_blas_thread, ordered_map, tree_sum
from discriminant.errors import FileError, SourceChangedError
from discriminant.table.column_cells import Frame
from discriminant.table.column_types import ReadOptions
from discriminant.table.encoding import Encoding
from discriminant.table.files.dataset import Dataset, list_files, open_dataset
from discriminant.table.files.formats import FileIdentity
from discriminant.table.files.splits import FilePart, SplitError
from discriminant.table.partitioned_source import Additive, Work

A = TypeVar("A", bound=Additive)
Progress = Callable[[int, int | None], None]


@dataclass(slots=True, eq=False)
class FilesSource:
    """Files with the same schema."""

    name: str
    dataset: Dataset
    progress: Progress | None = None
    journal: Journal | None = None
    parts: tuple[FilePart, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.parts = self.dataset.parts()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return self.dataset.names

    @property
    def rows(self) -> int:
        """Number of rows if it is known before reading, otherwise 0."""
        return sum(part.size for part in self.parts) if self.dataset.knows_row_count else 0

    @property
    def decimal(self) -> str:
        """Decimal separator of the files; '.' if they differ."""
        separators = {file.format.decimal for file in self.dataset.files}
        return separators.pop() if len(separators) == 1 else "."

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the formats and the number of files."""
        return self.dataset.notes

    @property
    def identities(self) -> tuple[FileIdentity, ...]:
        """Paths, sizes and times of the files, which show whether a file has changed."""
        return self.dataset.identities

    def with_options(self, options: ReadOptions, fitted: Encoding | None = None) -> FilesSource:
        """Return the source with text columns read by the options, or as when fitting."""
        dataset = self.dataset.with_options(options, fitted)
        return FilesSource(self.name, dataset, self.progress, self.journal)

    def with_journal(self, journal: Journal) -> FilesSource:
        """Return a source that stores its sums in a journal."""
        return FilesSource(self.name, self.dataset, self.progress, journal)

    def sample(self, columns: Sequence[str], rows: int) -> Frame:
        """Return a sample: the first rows of parts that are spread over all files.

        In text that can be read from any position, rows at all positions are sampled.
        """
        return self._sample(columns, partial(sample_part_heads, rows=rows))

    def systematic_sample(self, columns: Sequence[str], rows: int) -> Frame:
        """Return a sample of evenly spaced rows from all files."""
        return self._sample(columns, partial(systematic_sample, rows=rows))

    def map_reduce(self, work: Work[A]) -> A:
        """Return the sum of the results of all parts, computed on all cores."""
        while True:
            try:
                with one_blas_thread():  # set once instead of for each part
                    if self.journal is None:
                        return tree_sum(self.results(work))
                    total: A = self.journal.resumed_sum(
                        work, self.parts_digest, partial(self.results, work)
                    )
                    return total
            except SplitError as error:
                self._split_again(error)

    @property
    def parts_digest(self) -> str:
        """Digest (hash) of the parts, which shows whether a part has changed."""
        return digest([repr(part) for part in self.parts])

    def results(self, work: Work[A], start: int = 0) -> Iterator[A]:
        """Yield the results of the parts in order, from part `start` up to the first error."""
        threads, parts = available_threads(), self.parts[start:]
        total = sum(part.size for part in self.parts)
        skipped = sum(part.size for part in self.parts[:start])
        size = rows = 0  # of the finished parts; the size is a number of rows or bytes
        pool = ThreadPoolExecutor(threads)
        try:
            for part, result in zip(
                parts, ordered_map(pool, work, parts, 2 * threads), strict=True
            ):
                if _has_error(result):
                    result = _retry(work, part)
                if _has_error(result):
                    yield result
                    return
                size, rows = size + part.size, rows + getattr(result, "rows", 0)
                if self.progress is not None:
                    # rows per unit of size; for text it is estimated from the bytes
                    rate = 1 if self.dataset.knows_row_count else rows / max(size, 1)
                    self.progress(round((skipped + size) * rate), round(total * rate))
                yield result
        finally:
            pool.shutdown(cancel_futures=True)
        for identity in self.identities:
            identity.check()
        if self.dataset.knows_row_count and skipped + rows != total:
            raise SourceChangedError.of_count(self.name, total, skipped + rows)

    def _sample(self, columns: Sequence[str], sample: Callable[..., list[Any]]) -> Frame:
        import pyarrow as pa

        while True:
            try:
                tables = [table.select(list(columns)) for table in sample(self.parts, columns)]
                if not tables:
                    raise FileError.no_rows(self.name, len(self.names))
                # the types of text columns may differ
                table = pa.concat_tables(tables, promote_options="permissive")
                frame = self.parts[0].frame(table)
                return replace(frame, line_of=None, text_of=None)  # rows come from many parts
            except SplitError as error:
                self._split_again(error)

    def _split_again(self, error: SplitError) -> None:
        self.dataset = self.dataset.split_again(error)
        self.parts = self.dataset.parts()


def _has_error(result: Any) -> bool:
    return getattr(result, "error", None) is not None


def _retry(work: Work[A], part: FilePart) -> A:
    """Repeat work on a part after it failed.

    If the work fails again, the position in the file is added to the error.
    """
    result = work(part)
    numbered = part.with_start() if _has_error(result) else part
    return result if numbered is part else work(numbered)


def accepts(source: Any) -> bool:
    """Whether a source is a path or a list of paths."""
    if isinstance(source, list | tuple):
        return bool(source) and all(map(accepts, source))
    return isinstance(source, str | os.PathLike)


def as_source(
    source: Any,
    *,
    progress: Progress | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
) -> FilesSource:
    """Return a source for the files that a path, a glob, a folder or a list refers to."""
    files = list_files(source)
    style = {
        "encoding": encoding,
        "delimiter": delimiter,
        "decimal": decimal,
        "thousands": thousands,
    }
    return FilesSource(files.name, open_dataset(files, style), progress)
