"""How class moments are read from a block of rows: tile by tile, while a tile is in the cache.

Rows x are taken about a reference c_k of their class, a guess at its mean from some rows of the
block, and their sums and products are added up (BLAS, one thread: an engine runs several blocks
at once). What the guess was off by is corrected once, at the end of the block:

    z = x - c_k      s_k = sum w z      t_k = s_k / weight_k
    mean_k = c_k + t_k                  scatter = sum w z z'  -  weight_k t_k t_k'

That loses digits only if most of the sum of squares goes in the correction, that is if c_k was a
bad guess: then the block is read again about the means just found. So nothing is ever squared far
from its mean, and no digit is lost to a large mean or to rows that drift.

Where every class has a scatter of its own, rows are gathered class by class: `moments.gathering`,
and where they are very many, straight from their columns: `moments.columnar`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.columnar import gather_columns, takes, worth_loading
from discriminant.moments.gathering import gather_classes
from discriminant.moments.products import NARROW, READINGS, SLICE, TOLERATED, products
from discriminant.table.schema import Block, Floats, Labels, dense

_TILE_BYTES = 2 << 20  # several steps of NumPy go over a tile: it should stay in the cache
_FEW = 64  # classes; to sum apart more of them takes too long
_GUESS = 512  # rows of a block that say where its classes are, if it has many more


@dataclass(frozen=True, slots=True, eq=False)
class MomentsReading:
    """Read the moments of K classes in d columns: features, then responses if there are any."""

    labels: Labels  # (K,)
    features: tuple[str, ...]  # d names
    anchor: Anchor
    detail: Detail = "class"
    rows: int = 0  # about how many there are in all, where that is known: many are worth more care

    @property
    def apart(self) -> bool:
        """Whether the columns of a block may, and had better, be left where they are."""
        many = worth_loading(self.rows, len(self.features))
        return many and self.detail == "class" and self.anchor.plain

    @property
    def numbers(self) -> int:
        """Size of the summary."""
        K, d = len(self.labels), len(self.features)
        return {"diagonal": K * d, "pooled": d * d + K * d, "class": K * d * d}.get(
            self.detail, 3 * K * d * d
        )

    def read(self, block: Block) -> ClassMoments:
        """Moments of the rows of one block."""
        found = ClassMoments.empty(
            self.labels, self.features, detail=self.detail, anchor=self.anchor
        )
        if not len(block):
            return found
        found.rows[:], found.weight[:], found.weight2[:] = _class_weights(block, len(self.labels))
        with np.errstate(invalid="ignore", over="ignore"):  # a cell that is no number is named
            if self.detail in ("pooled", "diagonal"):
                _Together(found, block).read()
            elif self.apart and takes(block):
                gather_columns(found, block)
            else:
                gather_classes(found, block)
        if not np.isfinite(found.mean).all():
            block.blame(self.features)
        return found


class _Together:
    """All classes of a block at once, into moments of which only the weights are known."""

    def __init__(self, moments: ClassMoments, block: Block) -> None:
        self.moments, self.block = moments, block
        K, d = moments.mean.shape
        self.size = tile_rows(d, K, len(block))
        self.room, self.near = np.empty((2, self.size, d))
        self.product = np.empty_like(moments.scatter)

    def read(self) -> None:
        now = self.moments
        weight = np.where(now.weight > 0, now.weight, 1.0)[:, None]
        centre = self._guess()
        for left in reversed(range(READINGS)):
            centre, sums, squares = self._about(centre)
            shift = sums / weight
            if not left or not self._cancels(shift, squares):
                break
            centre = centre + shift
        now.mean[:] = np.where(now.weight[:, None] > 0, centre + shift, 0.0)
        squares -= self._excess(shift)
        own = now.scatter if now.detail == "diagonal" else np.einsum("jj->j", now.scatter)
        np.maximum(own, 0.0, out=own)  # where nothing is left, rounding may go below

    def _guess(self) -> Floats:
        """(K, d) about where the classes are: means of rows spread over the block."""
        K, d = self.moments.mean.shape
        sums, weight = np.zeros((K, d)), np.zeros(K)
        for tile in self._tiles(_spread(self.block, K, whole=d <= NARROW)):
            rows = self.moments.anchor.offsets(_columns(tile), out=self.room[: len(tile)])
            sums += _sums(_indicator(tile, K), rows)
            weight += np.bincount(tile.codes, tile.weight, minlength=K)
        guess = sums / np.where(weight > 0, weight, 1.0)[:, None]
        return np.where(np.isfinite(guess), guess, 0.0)

    def _about(self, centre: Floats) -> tuple[Floats, Floats, Floats]:
        """The centres as they were used, and sums (K, d) and squares or products about them."""
        now = self.moments
        sums, squares, used = np.zeros_like(now.mean), now.scatter, centre
        squares[...] = 0.0
        for tile in self._tiles(self.block):
            used, rows = self._rows(tile, centre)
            chosen = _indicator(tile, len(sums))
            sums += _sums(chosen, rows)
            if now.detail == "diagonal":
                squares += _sums(chosen, np.square(rows, out=rows))
                continue
            if tile.weight is not None:
                rows *= np.sqrt(tile.weight)[:, None]
            squares += products(rows, out=self.product)
        return used, sums, squares

    def _tiles(self, block: Block) -> Iterator[Block]:
        for lo in range(0, len(block), self.size):
            yield block.rows(lo, min(lo + self.size, len(block)))

    def _rows(self, tile: Block, centre: Floats) -> tuple[Floats, Floats]:
        """The centres as they were used, and rows of the tile about those of their classes.

        The row less its centre in one step: the centre is rounded to where rows are, so that the
        difference is exact, and what that rounds off is given back.
        """
        anchor, room = self.moments.anchor, self.room[: len(tile)]
        columns = _columns(tile)
        if not anchor.plain:
            room = anchor.offsets(columns, out=room)
            room -= centre.take(tile.codes, axis=0)
            return centre, room
        place = centre + anchor.origin
        near = place.take(tile.codes, axis=0, out=self.near[: len(tile)], mode="clip")
        return place - anchor.origin, np.subtract(columns, near, out=room, dtype=np.float64)

    def _excess(self, shift: Floats) -> Floats:
        """What squares and products have too much for being taken that far from the means."""
        weight = self.moments.weight[:, None]
        if self.moments.detail == "diagonal":
            return weight * shift**2
        root = np.sqrt(weight) * shift
        return np.asarray(np.dot(root.T, root, out=self.product))

    def _cancels(self, shift: Floats, squares: Floats) -> bool:
        """Whether the correction would eat up most of what it is taken from."""
        excess = self.moments.weight[:, None] * shift**2
        if self.moments.detail == "pooled":
            return bool((excess.sum(axis=0) > TOLERATED * np.diagonal(squares)).any())
        return bool((excess > TOLERATED * squares).any())


def tile_rows(width: int, classes: int, rows: int) -> int:
    """Rows of a tile: some megabytes, but enough that its rows outweigh what is done per class.

    Tiles of a block are alike in size.
    """
    row = 8 * width
    most = min(max(_TILE_BYTES // row, 4 * width, 8 * classes), 16 * _TILE_BYTES // row)
    size = int(np.clip(most, 256, 16384))
    return -(-rows // -(-rows // size))


def _spread(block: Block, classes: int, *, whole: bool) -> Block:
    """Rows spread evenly over a block, and a first one of each class that is not among them."""
    step = len(block) // max(_GUESS, 4 * classes)
    if whole or step < 2:
        return block
    rows = np.arange(0, len(block), step)
    count = np.bincount(block.codes[rows], minlength=classes)
    if not count.all():
        first = np.full(classes, -1)
        first[block.codes[::-1]] = np.arange(len(block))[::-1]  # the last to be written stays
        rows = np.concatenate([rows, first[(count == 0) & (first >= 0)]])
    return Block(
        block.features[rows],
        block.codes[rows],
        None if block.weight is None else block.weight[rows],
        None if block.responses is None else block.responses[rows],
    )


def _columns(tile: Block) -> npt.NDArray[Any]:
    features = dense(tile.features)
    return features if tile.responses is None else np.hstack([features, tile.responses])


def _sums(chosen: sparse.csc_array, rows: Floats) -> Floats:
    """(K, d) sums of rows by class; of a long narrow tile by halves, so that rounding stays small.

    Values of few kinds, as narrow tables often have, would all be rounded the same way.
    """
    K, n = chosen.shape
    if n <= SLICE or rows.shape[1] > NARROW or K > _FEW:
        return np.asarray(chosen @ rows)
    order = np.argsort(chosen.indices.astype(np.uint16), kind="stable")
    columns = np.ascontiguousarray((rows * chosen.data[:, None]).take(order, axis=0).T)
    ends = np.cumsum(np.bincount(chosen.indices, minlength=K)).tolist()
    return np.stack([columns[:, lo:hi].sum(axis=1) for lo, hi in pairwise([0, *ends])])


def _class_weights(block: Block, classes: int) -> tuple[npt.NDArray[np.intp], Floats, Floats]:
    """Of each class: rows of positive weight, sum of weights, sum of their squares."""
    if block.weight is None:
        count = np.bincount(block.codes, minlength=classes)
        return count, count.astype(np.float64), count.astype(np.float64)
    return (
        np.bincount(block.codes[block.weight > 0], minlength=classes),
        np.asarray(np.bincount(block.codes, block.weight, minlength=classes), dtype=np.float64),
        np.asarray(np.bincount(block.codes, block.weight**2, minlength=classes), dtype=np.float64),
    )


def _indicator(tile: Block, classes: int) -> sparse.csc_array:
    """(K, n) weight of each row in the row of its class: times a matrix, it sums by class."""
    weight = np.ones(len(tile)) if tile.weight is None else tile.weight
    places = tile.codes.astype(np.int32), np.arange(len(tile) + 1, dtype=np.int32)
    return sparse.csc_array((weight, *places), shape=(classes, len(tile)))
