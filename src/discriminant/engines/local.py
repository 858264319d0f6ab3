"""Sum over rows in memory: blocks on both cores, one BLAS thread in each.

Blocks are cut by the size of the table and of the summary alone and are added by one tree, so the
answer is the same to the last bit whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from discriminant.engines.summation import (
    available_threads as available_threads,
    one_blas_thread as one_blas_thread,
    ordered_map,
    tree_sum as tree_sum,
)
from discriminant.errors import MissingValueError
from discriminant.moments.summary_base import Reading, Summary
from discriminant.table.blocks import Features
from discriminant.table.memory import Table

_BLOCK_BYTES = 1 << 25
_WORTH_THREADS = 512  # columns
_PIECE_BYTES = 1 << 20  # of rows scored at a time
_ALONE = 1 << 13  # numbers; so few BLAS leaves to one thread anyway
_PARTS = 16  # a table is cut into about this many blocks, if they do not get too small for that

S = TypeVar("S", bound=Summary)


def fold(table: Table, reading: Reading[S], *, threads: int | None = None) -> S:
    """The sum of the reading over all rows of the table."""
    try:
        return _fold(table, reading, threads)
    except MissingValueError:
        table.raise_bad_cell()  # a block knows only its own missing cells
        raise


def _fold(table: Table, reading: Reading[S], threads: int | None) -> S:
    size = block_rows(len(table), table.numbers_per_row, reading.summary_size)
    blocks = table.blocks(size)
    if len(table) <= size and len(table) * table.width < _ALONE:
        return reading.read(next(blocks))
    threads = threads or available_threads()
    with one_blas_thread():
        if threads == 1 or len(table) <= size:
            return tree_sum(reading.read(block) for block in blocks)
        with ThreadPoolExecutor(threads) as pool:
            return tree_sum(ordered_map(pool, reading.read, blocks, 2 * threads))


def map_rows(
    scoring: Callable[[Features], npt.NDArray[Any]],
    features: Features,
    *,
    threads: int | None = None,
    order: Literal["C", "F"] = "C",
) -> npt.NDArray[Any]:
    """What `scoring` says of every row: some thousand rows at a time, on all cores.

    Rows of a piece stay in the cache. `order` is that of the answer, 'F' for the answers of a
    class side by side, which is quicker where something is done with them row by row.
    """
    rows, width = features.shape
    size = min(max(_PIECE_BYTES // (8 * width), 512), 8192)
    if rows <= size:
        if rows * width < _ALONE:
            return scoring(features)
        with one_blas_thread():
            return scoring(features)
    with one_blas_thread():
        first = scoring(features[:size])
        found = np.empty((rows, *first.shape[1:]), dtype=first.dtype, order=order)
        found[:size] = first

        def fill(lo: int) -> None:
            for start in range(lo, min(lo + 8 * size, rows), size):
                part = slice(start, min(start + size, rows))
                found[part] = scoring(features[part])

        with ThreadPoolExecutor(threads or available_threads()) as pool:
            list(pool.map(fill, range(size, rows, 8 * size)))
    return found


def block_rows(rows: int, width: int, numbers: int) -> int:
    """Rows of a block: neither so many that memory grows, nor so few that adding up is the work.

    Blocks are even in number and alike in size, so that no core is left with the last one alone.
    """
    most = max(_BLOCK_BYTES // (8 * width), 1)
    fewest = max(min(16384, most), 4 * numbers // width)
    size = max(min(-(-rows // _PARTS), most), fewest)
    pairs = -(-rows // (2 * size))
    return size if rows <= size else -(-rows // (2 * pairs))


def blas_context(width: int) -> Any:
    """A context for work on matrices of that width: small ones keep BLAS to one thread.

    Its threads gain nothing on them, and on a busy machine they wait for each other.
    """
    return one_blas_thread() if width < _WORTH_THREADS else nullcontext()
