"""Summation in a fixed order, shared by all engines: results of single parts are added up.

The result for a part is the same on every machine, and results are added in the order of the parts
by a balanced tree. Therefore a sum is bitwise the same on one core and on a cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from discriminant.engines.available_memory import available_threads as available_threads
from discriminant.engines.threads import one_blas_thread as one_blas_thread
from discriminant.errors import (
    ColumnNamesError,
    DiscriminantError,
    InfiniteValueError,
    MissingValueError,
)
from discriminant.moments.summary_base import Reading, Summary
from discriminant.table.column_cells import Frame
from discriminant.table.encoding import LevelNotInPlan
from discriminant.table.partitioned_source import Additive, PartialSum, ReadPlan, TablePart

S = TypeVar("S", bound=Summary)
A = TypeVar("A", bound=Additive)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class ReadingTask(Generic[S]):
    """Function of a part: encode its rows by a plan and apply a reading to them."""

    plan: ReadPlan
    reading: Reading[S]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the plan reads."""
        return self.plan.columns

    def __call__(self, part: TablePart) -> PartialSum[S]:
        """Return the sum of the reading over the rows of a part."""
        rows, column_wise = 0, getattr(self.reading, "column_wise", False)
        sums: list[tuple[int, S]] = []  # sums of 1, 2, 4, ... blocks
        try:
            with one_blas_thread():
                for frame in part.frames(self.plan.columns):
                    if not len(frame):
                        continue
                    numbered = replace(frame, start=part.start + rows)
                    rows += len(frame)
                    try:
                        summary = self._read(numbered, column_wise)
                    except (MissingValueError, InfiniteValueError):
                        if not column_wise:
                            raise
                        column_wise = False  # most likely there are more missing values
                        summary = self._read(numbered, column_wise)
                    if summary is not None:
                        tree_push(sums, summary)
        except (DiscriminantError, LevelNotInPlan) as error:
            return PartialSum.from_error(error, part, rows)
        return PartialSum(tree_total(sums) if sums else None, rows)

    def _read(self, frame: Frame, column_wise: bool) -> S | None:
        block = self.plan.block(frame, columnar=column_wise)
        return self.reading.read(block) if len(block) else None


def tree_sum(summaries: Iterable[A]) -> A:
    """Add one or more summaries in order, by a balanced tree.

    The rounding error grows with the logarithm of the number of summaries, not with the number
    itself. Only partial sums of 1, 2, 4, ... summaries are in memory at any time.
    """
    sums: list[tuple[int, A]] = []
    for summary in summaries:
        tree_push(sums, summary)
    return tree_total(sums)


def tree_push(sums: list[tuple[int, A]], summary: A) -> None:
    """Add a summary to the partial sums of `tree_sum`, in place.

    Each partial sum is stored with the number of summaries in it, which is a power of two; the
    first partial sum has the most summaries.
    """
    size = 1
    while sums and sums[-1][0] == size:
        summary = sums.pop()[1] + summary
        size *= 2
    sums.append((size, summary))


def tree_total(sums: list[tuple[int, A]]) -> A:
    """Return the sum of all summaries that were added by `tree_push`."""
    *others, (_, total) = sums
    for _, earlier in reversed(others):
        total = earlier + total
    return total


def ordered_map(
    pool: Executor, work: Callable[[T], A], parts: Iterable[T], ahead: int
) -> Iterator[A]:
    """Apply `work` to the parts concurrently; yield the results in the order of the parts.

    At most `ahead` results are pending at a time.
    """
    pending: list[Future[A]] = []
    try:
        for part in parts:
            pending.append(pool.submit(work, part))
            if len(pending) >= ahead:
                yield pending.pop(0).result()
        while pending:
            yield pending.pop(0).result()
    finally:
        _cancel_and_wait(pending)


def run_all(pool: Executor, work: Callable[[T], object], items: Iterable[T]) -> None:
    """Apply `work` to all items; after an error, wait for the tasks that have started."""
    futures = [pool.submit(work, item) for item in items]
    try:
        for future in futures:
            future.result()
    finally:
        _cancel_and_wait(futures)


def _cancel_and_wait(futures: Sequence[Future[Any]]) -> None:
    for future in futures:
        future.cancel()
    wait(futures)


def check_unique_names(columns: Iterable[Any]) -> tuple[str, ...]:
    """Return the names of columns as strings; raise ColumnNamesError for duplicates."""
    names = tuple(str(name) for name in columns)
    for name in (name for name, count in Counter(names).items() if count > 1):
        positions = [j for j, other in enumerate(names) if other == name]
        raise ColumnNamesError.of_duplicates(name, positions)
    return names
