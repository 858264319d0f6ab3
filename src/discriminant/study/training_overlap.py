"""Range and sketch of the rows to which a model was fitted.

The sketch recognises the training rows when a model is assessed.

Rows are hashed by their encoded features. The sketch holds the `SIZE` smallest hashes: a random
sample of the distinct training rows, which is the same whenever the rows are. Among the rows of
another table, those with a hash up to the largest hash of the sketch are a random sample too, so

    share of training rows  =  rows of that sample that are in the sketch / rows of that sample

which is exact if there are at most `SIZE` training rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.table.blocks import Floats, dense
from discriminant.table.hash_folds import row_hashes

SIZE = 512
_PIECE = 65_536


def row_sketch(features: Any) -> Floats:
    """Return the smallest hashes of the rows, each split into two numbers of 32 bits."""
    smallest = np.zeros(0, dtype=np.uint64)
    for start in range(0, features.shape[0], _PIECE):
        hashes = _hashes(features[start : start + _PIECE])
        if len(smallest) == SIZE:  # few are smaller, so that few are sorted
            hashes = hashes[hashes < smallest[-1]]
        smallest = np.unique(np.concatenate([smallest, hashes]))[:SIZE]
    return np.column_stack([smallest >> np.uint64(32), smallest & np.uint64(0xFFFFFFFF)]).astype(
        np.float64
    )


def feature_range(features: Any) -> Floats:
    """Return the lowest and the highest value of each feature, without missing values.

    >>> feature_range(np.array([[1.0, 5.0], [3.0, np.nan], [2.0, 4.0]])).tolist()
    [[1.0, 4.0], [3.0, 5.0]]
    """
    limits = np.full((2, features.shape[1]), np.nan)
    for start in range(0, features.shape[0], _PIECE):
        piece = np.asarray(dense(features[start : start + _PIECE]), dtype=np.float64)
        limits[0] = np.fmin(limits[0], np.fmin.reduce(piece, axis=0))
        limits[1] = np.fmax(limits[1], np.fmax.reduce(piece, axis=0))
    return limits


def training_share(sketch: Floats, features: Any) -> float | None:
    """Return the share of rows that are also training rows; None if too few can be compared.

    >>> rows = np.arange(12.0).reshape(6, 2)
    >>> sketch = row_sketch(rows)
    >>> training_share(sketch, rows[:4]), training_share(sketch, rows + 0.5)
    (1.0, 0.0)
    """
    high, low = (sketch[:, j].astype(np.uint64) for j in (0, 1))
    known = (high << np.uint64(32)) | low
    hashes = np.concatenate(
        [_hashes(features[start : start + _PIECE]) for start in range(0, features.shape[0], _PIECE)]
    )
    if len(known) == SIZE:
        hashes = hashes[hashes <= known.max()]
    if not len(hashes) or not len(known):
        return None
    return float(np.isin(hashes, known).mean())


def _hashes(features: Any) -> Any:
    rows = np.ascontiguousarray(dense(features), dtype=np.float64) + 0.0  # -0 becomes 0
    return row_hashes(rows, np.zeros(len(rows), dtype=np.int64))
