"""Sum over rows in memory: blocks on both cores, one BLAS thread in each.

Blocks are cut by the size of the table and of the summary alone and are added by one tree, so the
answer is the same to the last bit whatever the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from discriminant.errors import MissingValueError
from discriminant.moments.summary import Reading, Summary
from discriminant.table.schema import Block, Features, Floats
from discriminant.table.source import Table

_BLOCK_BYTES = 1 << 25
_ALONE = 1 << 13  # numbers; so few BLAS leaves to one thread anyway
_PARTS = 16  # a table is cut into about this many blocks, if they do not get too small for that

S = TypeVar("S", bound=Summary)


def fold(table: Table, reading: Reading[S], *, threads: int | None = None) -> S:
    """The sum of the reading over all rows of the table."""
    try:
        return _fold(table, reading, threads)
    except MissingValueError:
        table.blame()  # a block knows only its own missing cells
        raise


def _fold(table: Table, reading: Reading[S], threads: int | None) -> S:
    size = block_rows(len(table), table.width, reading.numbers)
    blocks = table.blocks(size)
    if len(table) <= size and len(table) * table.width < _ALONE:
        return reading.read(next(blocks))
    threads = threads or available_threads()
    with one_blas_thread():
        if threads == 1 or len(table) <= size:
            return add_up(reading.read(block) for block in blocks)
        with ThreadPoolExecutor(threads) as pool:
            return add_up(_ordered(pool, reading, blocks, 2 * threads))


def map_rows(
    scoring: Callable[[Features], Floats], features: Features, *, threads: int | None = None
) -> Floats:
    """What `scoring` says of every row, blocks of rows on all cores."""
    rows, width = features.shape
    size = max(_BLOCK_BYTES // 8 // (8 * width), 2048)
    if rows <= size:
        return scoring(features)
    spans = [slice(lo, min(lo + size, rows)) for lo in range(0, rows, size)]
    with one_blas_thread(), ThreadPoolExecutor(threads or available_threads()) as pool:
        return np.concatenate(list(pool.map(lambda span: scoring(features[span]), spans)))


def block_rows(rows: int, width: int, numbers: int) -> int:
    """Rows of a block: neither so many that memory grows, nor so few that adding up is the work."""
    most = max(_BLOCK_BYTES // (8 * width), 1)
    fewest = max(min(16384, most), 4 * numbers // width)
    return max(min(-(-rows // _PARTS), most), fewest)


def available_threads() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def one_blas_thread() -> Any:
    """A context in which BLAS keeps to one thread, so that its threads do not fight with ours."""
    return _blas().limit(limits=1)


def _ordered(
    pool: ThreadPoolExecutor, reading: Reading[S], blocks: Iterator[Block], ahead: int
) -> Iterator[S]:
    """Summaries in the order of their blocks, with only a few blocks under way at once."""
    waiting: list[Any] = []
    try:
        for block in blocks:
            waiting.append(pool.submit(reading.read, block))
            if len(waiting) >= ahead:
                yield waiting.pop(0).result()
        while waiting:
            yield waiting.pop(0).result()
    finally:
        for future in waiting:
            future.cancel()


def add_up(parts: Iterable[S]) -> S:
    """The sum of one or more summaries, by a balanced tree over their order.

    Rounding then grows with the logarithm of their number; one after the other it grows with the
    number itself. Only sums of 1, 2, 4, ... parts are held at a time.
    """
    waiting: list[tuple[int, S]] = []
    for part in parts:
        size, total = 1, part
        while waiting and waiting[-1][0] == size:
            total = waiting.pop()[1] + total
            size *= 2
        waiting.append((size, total))
    total = waiting.pop()[1]
    while waiting:
        total = waiting.pop()[1] + total
    return total


@lru_cache(maxsize=1)
def _blas() -> Any:
    """The BLAS libraries loaded; finding them takes longer than a small fit."""
    import scipy.linalg  # noqa: F401 -- brings a BLAS of its own, which is to be found too
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
