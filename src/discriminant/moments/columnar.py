"""Class moments of very many rows whose columns lie apart, as those of a file do: one pass.

The algebra is that of `moments.reading`: rows about a guess at the mean of their class, which is
corrected at the end of a block. Columns are not put side by side first; a compiled loop takes the
rows of a tile straight from them, class by class. A class whose guess was bad is gathered again by
`moments.gathering`.

It takes half a second to load the loop, and some more to compile it for the first time: only where
rows are very many is it worth that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.gathering import gather_classes
from discriminant.moments.products import TOLERATED
from discriminant.table.schema import Block, Floats, dense, is_sparse

_MANY = 1 << 29  # numbers in a table from which on the loop is worth loading
_WIDEST = 128  # columns; for more of them BLAS is as quick
_TILE_BYTES = 1 << 20
_EACH = 64  # rows of each class in a tile, on average, at least
_GUESS = 64  # rows of each class, on average, that say where it is


def worth_loading(rows: int, width: int) -> bool:
    """Whether a table is so long that the loop saves more time than loading it takes."""
    return width <= _WIDEST and rows * width >= _MANY


def gather_columns(moments: ClassMoments, block: Block) -> None:
    """Means and scatters of the rows of a block, into moments of which only weights are known."""
    origin, some = moments.anchor.origin, moments.weight > 0
    weight = np.where(some, moments.weight, 1.0)[:, None]
    place = _guess(block, len(weight), origin) + origin  # rounded to where rows are
    sums, squares = _about(block, place)
    shift = sums / weight
    own = np.einsum("kjj->kj", squares)
    bad = (weight * shift**2 > TOLERATED * own).any(axis=1)
    squares -= (weight * shift)[:, :, None] * shift[:, None, :]
    np.maximum(own, 0.0, out=own)  # where nothing is left, rounding may go below
    moments.mean[some] = ((place - origin) + shift)[some]
    moments.scatter[some] = squares[some]
    if bad.any():
        beside = replace(block, features=dense(block.features))
        gather_classes(moments, beside, only=np.flatnonzero(bad & some))


def _guess(block: Block, classes: int, origin: Floats) -> Floats:
    """(K, d) offsets of about where the classes are: means of rows spread over the block."""
    rows = np.arange(0, len(block), max(len(block) // (_GUESS * classes), 1))
    offsets = np.asarray(block.features[rows], dtype=np.float64) - origin
    codes = block.codes[rows]
    count = np.maximum(np.bincount(codes, minlength=classes), 1)
    sums = [np.bincount(codes, column, minlength=classes) for column in offsets.T]
    guess = np.stack(sums, axis=1) / count[:, None]
    return np.where(np.isfinite(guess), guess, 0.0)


def _about(block: Block, place: Floats) -> tuple[Floats, Floats]:
    """Sums (K, d) and products (K, d, d) of the rows of each class about a place."""
    from discriminant.moments.loops import class_products

    K, d = place.shape
    width = 4 * (d // 4 + 1)
    tile = int(np.clip(_TILE_BYTES // (8 * width), _EACH * K, 1 << 14))
    panel = np.zeros((width + 2, min(tile, len(block))))
    panel[d] = 1.0
    found = np.zeros((K, width, width + 2))
    columns = _columns(block.features)
    class_products(
        np.array([column.__array_interface__["data"][0] for column in columns], dtype=np.intp),
        block.codes.astype(np.uint32),
        place,
        np.zeros(0) if block.weight is None else np.sqrt(block.weight),
        panel,
        np.zeros(panel.shape[1], dtype=np.uint16),
        np.zeros(K + 1, dtype=np.int64),
        found,
    )
    lower = np.tril(found[:, :d, :d])
    return found[:, d, :d], lower + np.tril(lower, -1).swapaxes(1, 2)


def _columns(features: Any) -> list[Floats]:
    """Each column as float64, side by side with nothing; most are so already."""
    columns = getattr(features, "columns", None)
    if columns is None:
        columns = dense(features).T
    return [np.ascontiguousarray(column, dtype=np.float64) for column in columns]


def takes(block: Block) -> bool:
    """Whether a block can be read so."""
    return block.responses is None and not is_sparse(block.features)
