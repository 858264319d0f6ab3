"""Local engine: sums over a table in memory, on all cores with one BLAS thread each.

The rows are divided into blocks, whose size depends only on the sizes of the table and of the
summary. The results are added in order by a balanced tree. Therefore the result is bitwise the same
for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from discriminant.engines.summation import (
    available_threads as available_threads,
    one_blas_thread as one_blas_thread,
    ordered_map,
    run_all,
    tree_sum as tree_sum,
)
from discriminant.engines.threads import thread_pool
from discriminant.errors import MissingValueError
from discriminant.moments.summary_base import Reading, Summary
from discriminant.table.blocks import Features
from discriminant.table.memory import Table

_BLOCK_BYTES = 1 << 25
_WIDE = 512  # columns from which BLAS gains from threads
_PIECE_BYTES = 1 << 20  # of rows scored at a time
_FEW_NUMBERS = 1 << 20  # for fewer, summing or scoring with threads takes longer than without
_NARROW = 64  # columns below which BLAS factorises a matrix in one thread anyway
_SMALL = 1 << 13  # numbers for which BLAS uses one thread anyway
_BLOCKS = 16  # approximate number of blocks of a table, unless they would be too small

S = TypeVar("S", bound=Summary)


def fold(table: Table, reading: Reading[S], *, threads: int | None = None) -> S:
    """Add up, over all blocks of rows of a table, what `reading` computes for each block."""
    try:
        return _fold(table, reading, threads)
    except MissingValueError:
        table.raise_bad_cell()  # the error of a block would count only its own missing cells
        raise


def _fold(table: Table, reading: Reading[S], threads: int | None) -> S:
    size = block_rows(len(table), table.numbers_per_row, reading.summary_size)
    blocks = table.blocks(size)
    if len(table) <= size and len(table) * table.width < _SMALL:
        return reading.read(next(blocks))
    with one_blas_thread():
        if len(table) <= size:
            return reading.read(next(blocks))
        threads = threads or threads_for(len(table) * table.numbers_per_row)
        if threads == 1:
            return tree_sum(reading.read(block) for block in blocks)
        return tree_sum(ordered_map(thread_pool(threads), reading.read, blocks, 2 * threads))


def map_rows(
    score: Callable[[Features], npt.NDArray[Any]],
    features: Features,
    *,
    threads: int | None = None,
    order: Literal["C", "F"] = "C",
) -> npt.NDArray[Any]:
    """Apply `score` to all rows, some thousand rows at a time, on all cores.

    The number of rows is chosen so that they fit into the processor's cache. `order` is the memory
    layout of the result; with 'F' the scores of each class are contiguous.
    """
    rows, width = features.shape
    size = min(max(_PIECE_BYTES // (8 * width), 512), 8192)
    threads = threads or threads_for(rows * width)
    if rows <= size:
        with nullcontext() if rows * width < _SMALL else one_blas_thread():
            return score(features)
    with one_blas_thread():
        first = score(features[:size])
        scores = np.empty((rows, *first.shape[1:]), dtype=first.dtype, order=order)
        scores[:size] = first

        def fill(lo: int) -> None:
            for start in range(lo, min(lo + 8 * size, rows), size):
                piece = slice(start, min(start + size, rows))
                scores[piece] = score(features[piece])

        starts = range(size, rows, 8 * size)
        if threads == 1:
            for start in starts:
                fill(start)
        else:
            run_all(thread_pool(threads), fill, starts)
    return scores


def threads_for(numbers: int) -> int:
    """Return the number of threads for processing `numbers` numbers: one if these are few."""
    return 1 if numbers < _FEW_NUMBERS else available_threads()


def block_rows(rows: int, width: int, summary_size: int) -> int:
    """Return the number of rows of a block.

    Blocks are small enough to limit memory, and large enough that summing a block takes longer than
    adding its summary.

    The number of blocks is even and their sizes are nearly equal, so that two cores finish at the
    same time.
    """
    most = max(_BLOCK_BYTES // (8 * width), 1)
    fewest = max(min(16384, most), 4 * summary_size // width)
    size = max(min(-(-rows // _BLOCKS), most), fewest)
    pairs = -(-rows // (2 * size))
    return size if rows <= size else -(-rows // (2 * pairs))


def blas_context(width: int, *, rows: int | None = None) -> Any:
    """Return a context manager that limits BLAS to one thread for matrices of small width.

    For small matrices several threads are not faster, and on a busy machine they wait for each
    other. If `rows` is given, the matrices have at most this number of rows. BLAS uses one thread
    for very small matrices anyway.
    """
    size = width if rows is None else min(rows, width)
    if size >= _WIDE or (rows is not None and rows * width < _SMALL and width < _NARROW):
        return nullcontext()
    return one_blas_thread()
