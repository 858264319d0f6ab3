"""Files larger than memory: parts read, decoded and summed on all cores.

    Parquet, Arrow IPC      row groups, record batches: small ones together
    CSV, JSON lines         ranges of lines; a packed file is one part

Each core takes a part at a time, and reads it in small batches: while one waits for the disk or
decodes, another sums. Answers are added in the order of the parts. All files have one schema.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from discriminant.engines.checkpoint import Journal, digest
from discriminant.engines.sampling import head_sample, systematic_sample
from discriminant.engines.summation import available_threads, one_blas_thread, ordered_map, tree_sum
from discriminant.errors import FileError, SourceChangedError
from discriminant.table.cells import Frame
from discriminant.table.column_types import ReadOptions
from discriminant.table.encoding import Encoding
from discriminant.table.files.dataset import Dataset, list_files, open_dataset
from discriminant.table.files.formats import FileIdentity
from discriminant.table.files.splits import FilePart, SplitError
from discriminant.table.partitioned import Additive, Work

A = TypeVar("A", bound=Additive)
Progress = Callable[[int, int | None], None]


@dataclass(slots=True, eq=False)
class FilesSource:
    """Files of one schema."""

    name: str
    filed: Dataset
    progress: Progress | None = None
    journal: Journal | None = None
    parts: tuple[FilePart, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.parts = self.filed.parts()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return self.filed.names

    @property
    def rows(self) -> int:
        """How many there are, where that is known before they are read; else 0."""
        return sum(part.size for part in self.parts) if self.filed.knows_row_count else 0

    @property
    def decimal(self) -> str:
        """Decimal sign of the files; '.' where they differ."""
        signs = {file.format.decimal for file in self.filed.files}
        return signs.pop() if len(signs) == 1 else "."

    @property
    def notes(self) -> tuple[str, ...]:
        """Formats and number of files."""
        return self.filed.notes

    @property
    def identities(self) -> tuple[FileIdentity, ...]:
        """What tells whether the files are still the same."""
        return self.filed.identities

    def with_options(self, wishes: ReadOptions, fitted: Encoding | None = None) -> FilesSource:
        """The source with the columns of texts read as these wishes, or a fit, want them."""
        found = self.filed.with_options(wishes, fitted)
        return FilesSource(self.name, found, self.progress, self.journal)

    def with_journal(self, journal: Journal) -> FilesSource:
        """The source with its sums kept in a journal."""
        return FilesSource(self.name, self.filed, self.progress, journal)

    def sample(self, columns: Sequence[str], rows: int) -> Frame:
        """The first rows of parts all over the files; of text that can be entered, any rows."""
        return self._some(columns, partial(head_sample, rows=rows))

    def systematic_sample(self, columns: Sequence[str], rows: int) -> Frame:
        """Rows from all over the files, at even distances."""
        return self._some(columns, partial(systematic_sample, rows=rows))

    def map_reduce(self, work: Work[A]) -> A:
        """On all cores, added in the order of the parts."""
        while True:
            try:
                with one_blas_thread():  # once for all parts, not anew for each
                    return self._summed(work)
            except SplitError as recut:
                self._cut_again(recut)

    @property
    def cut(self) -> str:
        """What tells whether the parts are still the same."""
        return digest([repr(part) for part in self.parts])

    def answers(self, work: Work[A], start: int = 0) -> Iterator[A]:
        """What work says of the parts from one on, in their order; a fault is the last."""
        threads = available_threads()
        done = before = sum(part.size for part in self.parts[:start])
        told = 0
        whole = sum(part.size for part in self.parts)
        pool = ThreadPoolExecutor(threads)
        try:
            found = ordered_map(pool, work, self.parts[start:], 2 * threads)
            for part, answer in zip(self.parts[start:], found, strict=True):
                if getattr(answer, "error", None) is not None:
                    answer = _again(work, part)
                if getattr(answer, "error", None) is not None:
                    yield answer
                    return
                done, told = done + part.size, told + getattr(answer, "rows", 0)
                if self.progress is not None:
                    self.progress(*self._progress(done, told, whole, start))
                yield answer
        finally:
            pool.shutdown(cancel_futures=True)
        for identity in self.identities:
            identity.check()
        if self.filed.knows_row_count and before + told != whole:
            raise SourceChangedError.of_count(self.name, whole, before + told)

    # --- inside ---------------------------------------------------------------------------------

    def _summed(self, work: Work[A]) -> A:
        if self.journal is None:
            return tree_sum(self.answers(work))
        found: A = self.journal.resumed_sum(work, self.cut, partial(self.answers, work))
        return found

    def _progress(self, done: int, told: int, whole: int, start: int) -> tuple[int, int | None]:
        """Rows read, and rows in all: of text an estimate from the bytes."""
        if self.filed.knows_row_count:
            return done, whole
        before = sum(part.size for part in self.parts[:start])
        rate = told / max(done - before, 1)
        return round(done * rate), round(whole * rate)

    def _some(self, columns: Sequence[str], draw: Callable[..., list[Any]]) -> Frame:
        while True:
            try:
                return self._framed(columns, draw(self.parts, columns))
            except SplitError as found:
                self._cut_again(found)

    def _framed(self, columns: Sequence[str], tables: Sequence[Any]) -> Frame:
        import pyarrow as pa

        if not tables:
            raise FileError.no_rows(self.name, len(self.names))
        some = [one.select(list(columns)) for one in tables]
        table = pa.concat_tables(some, promote_options="permissive")  # texts may be held otherwise
        frame = self.parts[0].frame(table)  # rows of many parts, which have places of their own
        return replace(frame, line_of=None, text_of=None)

    def _cut_again(self, found: SplitError) -> None:
        self.filed = self.filed.split_again(found)
        self.parts = self.filed.parts()


def _again(work: Work[A], part: FilePart) -> A:
    """The part once more: a fault may have passed, and one that stays is told with its place."""
    answer = work(part)
    placed = part.with_start() if getattr(answer, "error", None) is not None else part
    return answer if placed is part else work(placed)


def accepts(source: Any) -> bool:
    """Whether it names files."""
    if isinstance(source, list | tuple):
        return bool(source) and all(accepts(one) for one in source)
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
    """Parts of the files that a path, a glob, a folder or a list names."""
    found = list_files(source)
    style = {
        "encoding": encoding,
        "delimiter": delimiter,
        "decimal": decimal,
        "thousands": thousands,
    }
    return FilesSource(found.name, open_dataset(found, style), progress)
