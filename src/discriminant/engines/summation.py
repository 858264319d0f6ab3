"""What all engines share: work on a part, the tree by which answers are added, BLAS on one thread.

Whoever does the work, a part gives the same answer, and answers are added in the order of their
parts by one balanced tree. So the sum is the same to the last bit on one core and on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from discriminant.engines.memory_limit import available_threads as available_threads
from discriminant.engines.threads import one_blas_thread as one_blas_thread
from discriminant.errors import DiscriminantError, InfiniteValueError, MissingValueError
from discriminant.moments.summary_base import Reading, Summary
from discriminant.table.cells import Frame
from discriminant.table.encoding import UnknownLevel
from discriminant.table.partitioned import Additive, PartialSum, ReadPlan, TablePart

S = TypeVar("S", bound=Summary)
A = TypeVar("A", bound=Additive)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class ReadingTask(Generic[S]):
    """Read a part: a pure function that travels to where the part is."""

    plan: ReadPlan
    reading: Reading[S]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the plan reads."""
        return self.plan.columns

    def __call__(self, part: TablePart) -> PartialSum[S]:
        """The sum of the reading over the rows of a part."""
        rows, apart = 0, getattr(self.reading, "column_wise", False)
        parts: list[tuple[int, S]] = []  # sums of 1, 2, 4, ... blocks
        try:
            with one_blas_thread():
                for frame in part.frames(self.plan.columns):
                    if not len(frame):
                        continue
                    placed = replace(frame, start=part.start + rows)
                    rows += len(frame)
                    try:
                        found = self._read(placed, apart=apart)
                    except (MissingValueError, InfiniteValueError):
                        if not apart:
                            raise
                        apart = False  # where one number is missing, more are
                        found = self._read(placed, apart=apart)
                    if found is not None:
                        tree_push(parts, found)
        except (DiscriminantError, UnknownLevel) as fault:
            return PartialSum.from_error(fault, part, rows)
        return PartialSum(tree_total(parts) if parts else None, rows)

    def _read(self, frame: Frame, *, apart: bool) -> S | None:
        block = self.plan.block(frame, apart=apart)
        return self.reading.read(block) if len(block) else None


def tree_sum(parts: Iterable[A]) -> A:
    """The sum of one or more summaries, by a balanced tree over their order.

    Rounding then grows with the logarithm of their number; one after the other it grows with the
    number itself. Only sums of 1, 2, 4, ... parts are held at a time.
    """
    waiting: list[tuple[int, A]] = []
    for part in parts:
        tree_push(waiting, part)
    return tree_total(waiting)


def tree_push(waiting: list[tuple[int, A]], part: A) -> None:
    """Add one more to the sums of 1, 2, 4, ... parts that are held."""
    size, found = 1, part
    while waiting and waiting[-1][0] == size:
        found = waiting.pop()[1] + found
        size *= 2
    waiting.append((size, found))


def tree_total(waiting: list[tuple[int, A]]) -> A:
    """The sum of what is held."""
    held = [found for _, found in waiting]
    found = held.pop()
    while held:
        found = held.pop() + found
    return found


def ordered_map(
    pool: Executor, work: Callable[[T], A], things: Iterable[T], ahead: int
) -> Iterator[A]:
    """Answers in the order of what they are about, with only a few under way at once."""
    waiting: list[Future[A]] = []
    try:
        for thing in things:
            waiting.append(pool.submit(work, thing))
            if len(waiting) >= ahead:
                yield waiting.pop(0).result()
        while waiting:
            yield waiting.pop(0).result()
    finally:
        for future in waiting:
            future.cancel()
