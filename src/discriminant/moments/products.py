"""Products of rows, as quick and as exact as BLAS can: what both ways of reading share.

`np.dot` lets other threads run however small its result is; `@` holds them up below 500 numbers.
Rows times themselves take half the work of two matrices: NumPy sees that both are the same.
"""

from __future__ import annotations

import numpy as np

from discriminant.table.schema import Floats

SLICE, NARROW = 1024, 8  # rows of a slice; tiles of up to this width are long and are sliced
TOLERATED = 0.5  # share of a sum of squares that may cancel before rows are read again
READINGS = 3  # at most; the third only if rows are so far away that the first says little


def products(rows: Floats, out: Floats | None = None) -> Floats:
    """(d, d) rows' rows; of a long narrow tile in slices, so that rounding does not add up."""
    if len(rows) <= SLICE or rows.shape[1] > NARROW:
        return np.asarray(np.dot(rows.T, rows, out=out))
    slices = (rows[lo : lo + SLICE] for lo in range(0, len(rows), SLICE))
    return np.asarray(np.sum([np.dot(part.T, part) for part in slices], axis=0))


def column_sums(rows: Floats, weights: Floats) -> Floats:
    """(d,) weighted sums; of a long narrow tile by halves."""
    if len(rows) <= SLICE or rows.shape[1] > NARROW:
        return np.asarray(np.dot(weights, rows))
    return np.asarray(np.ascontiguousarray((rows * weights[:, None]).T).sum(axis=1))
