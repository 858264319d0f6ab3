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

Products of rows, as quick and as exact as BLAS can: what both ways of reading share.

`np.dot` lets other threads run however small its result is; `@` holds them up below 500 numbers.
Rows times themselves take half the work of two matrices: NumPy sees that both are the same.

Class moments where every class has a scatter of its own: class by class.

Codes are sorted once a block. The rows of a class are then gathered, some at a time so that they
stay in the cache, about a guess at their mean: see `moments.reading` for the algebra. A class
whose guess was bad is gathered again, that class alone. Third and fourth moments are summed after
that, about the mean found.

Class moments of very many rows whose columns lie apart, as those of a file do: one pass.

The algebra is that of `moments.reading`: rows about a guess at the mean of their class, which is
corrected at the end of a block. Columns are not put side by side first; a compiled loop takes the
rows of a tile straight from them, class by class. A class whose guess was bad is gathered again by
`moments.gathering`.

It takes half a second to load the loop, and some more to compile it for the first time: only where
rows are very many is it worth that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.table.blocks import Block, Floats, Labels, dense, is_sparse

SLICE, NARROW = 1024, 8  # rows of a slice; tiles of up to this width are long and are sliced
TOLERATED = 0.5  # share of a sum of squares that may cancel before rows are read again
READINGS = 3  # at most; the third only if rows are so far away that the first says little


def gram_matrix(rows: Floats, out: Floats | None = None) -> Floats:
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


_BYTES = 1 << 20  # of rows gathered at a time
_CLASS_GUESS = 64  # rows that say where a class is
_WHOLE = 256  # a class of up to so many rows is guessed by all of them

Places = npt.NDArray[np.intp]


def gather_classes(moments: ClassMoments, block: Block, *, only: Places | None = None) -> None:
    """Means and scatters of the rows of a block, into moments of which only weights are known.

    Of all classes, or only of some.
    """
    count = np.bincount(block.codes, minlength=len(moments.weight))
    ends = np.cumsum(count)
    order = np.argsort(block.codes, kind="stable")
    gathered = _Gathered.of(block, moments.anchor, int(count.max()))
    for k in np.flatnonzero(moments.weight > 0) if only is None else only:
        rows = order[ends[k] - count[k] : ends[k]]
        mean, scatter = gathered.moments_of(rows, float(moments.weight[k]))
        moments.mean[k], moments.scatter[k] = mean, scatter
        if moments.third is not None and moments.fourth is not None:
            moments.third[k], moments.fourth[k] = gathered.powers_of(rows, mean)


@dataclass(frozen=True, slots=True, eq=False)
class _Gathered:
    """Rows of a block, to be gathered by class, and room for some of them."""

    block: Block
    anchor: Anchor
    origin: Floats  # (d,) where values count from; zero if they are offsets already
    ready: bool  # rows of the block can be taken as they are
    columnar: bool  # columns of the block can
    room: Floats  # (m, d)
    away: Floats  # (m, d)

    @classmethod
    def of(cls, block: Block, anchor: Anchor, most: int) -> _Gathered:
        rows, origin = block.features, anchor.origin
        plain = (
            anchor.plain
            and block.responses is None
            and isinstance(rows, np.ndarray)
            and rows.dtype == np.float64
        )
        ready = plain and rows.flags.c_contiguous
        columnar = plain and not ready and rows.flags.f_contiguous
        d = len(origin)
        size = int(np.clip(max(_BYTES // (8 * d), 2 * d), 256, 8192))
        room, away = np.empty((2, min(size, most), d))
        start = origin if anchor.plain else np.zeros(d)
        return cls(block, anchor, start, bool(ready), bool(columnar), room, away)

    def moments_of(self, rows: Places, weight: float) -> tuple[Floats, Floats]:
        """Mean, as an offset, and scatter of the rows of one class."""
        centre = self._guess(rows)
        for left in reversed(range(READINGS)):
            place = centre + self.origin  # rounded to where rows are: differences are exact
            centre = place - self.origin
            sums, squares = self._about(rows, place)
            shift = sums / weight
            excess = weight * shift**2
            if not left or not (excess > TOLERATED * np.diagonal(squares)).any():
                break
            centre = centre + shift
        squares -= (weight * shift)[:, None] * shift
        own = np.einsum("jj->j", squares)
        np.maximum(own, 0.0, out=own)  # where nothing is left, rounding may go below
        return centre + shift, squares

    def powers_of(self, rows: Places, mean: Floats) -> tuple[Floats, Floats]:
        """Third and fourth moments about the mean."""
        third, fourth = np.zeros((2, len(mean), len(mean)))
        place = mean + self.origin
        rest = (place - self.origin) - mean  # what was rounded off
        for part, weights in self._parts(rows, place):
            part += rest
            squares = part**2
            heavy = squares * weights[:, None]
            third += np.dot(heavy.T, part)
            fourth += np.dot(heavy.T, squares)
        return third, fourth

    def _guess(self, rows: Places) -> Floats:
        if len(rows) > _WHOLE and len(self.origin) > NARROW:
            rows = rows[:: len(rows) // _CLASS_GUESS]
        sums, weight = np.zeros_like(self.origin), 0.0
        for part, weights in self._parts(rows, self.origin):
            sums += column_sums(part, weights)
            weight += float(weights.sum())
        guess = sums / weight if weight else sums
        return np.where(np.isfinite(guess), guess, 0.0)

    def _about(self, rows: Places, place: Floats) -> tuple[Floats, Floats]:
        """Sums (d,) and products (d, d) of the rows about a place."""
        d = len(place)
        sums, squares, product = np.zeros(d), np.zeros((d, d)), np.empty((d, d))
        for part, weights in self._parts(rows, place):
            sums += column_sums(part, weights)
            if self.block.weight is not None:
                part *= np.sqrt(weights)[:, None]
            squares += gram_matrix(part, out=product)
        return sums, squares

    def _parts(self, rows: Places, place: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Some rows at a time about a place, with their weights; the room is used again."""
        size, weight = len(self.room), self.block.weight
        away = self.away[: min(size, len(rows))]
        away[:] = place
        ones = np.ones(len(away))
        for lo in range(0, len(rows), size):
            some = rows[lo : lo + size]
            part = self._values(some)
            part -= place if self.columnar else away[: len(some)]
            yield part, ones[: len(some)] if weight is None else weight[some]

    def _values(self, rows: Places) -> Floats:
        """Rows of the block in the room: values, or offsets where the unit is not one."""
        features, room = self.block.features, self.room[: len(rows)]
        if self.ready:
            return np.asarray(features.take(rows, axis=0, out=room, mode="clip"))
        if self.columnar:  # a column at a time, and side by side: so they are quick to multiply
            columns = room.reshape(-1, len(rows))
            return np.asarray(features.T.take(rows, axis=1, out=columns, mode="clip").T)
        found = dense(features[rows])
        if self.block.responses is not None:
            found = np.hstack([found, self.block.responses[rows]])
        if not self.anchor.plain:
            return self.anchor.offsets(found, out=room)
        room[...] = found
        return room


_MANY = 1 << 29  # numbers in a table from which on the loop is worth loading
_WIDEST = 128  # columns; for more of them BLAS is as quick
_COLUMNAR_BYTES = 1 << 20
_EACH = 64  # rows of each class in a tile, on average, at least
_COLUMNAR_GUESS = 64  # rows of each class, on average, that say where it is


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
    rows = np.arange(0, len(block), max(len(block) // (_COLUMNAR_GUESS * classes), 1))
    offsets = np.asarray(block.features[rows], dtype=np.float64) - origin
    codes = block.codes[rows]
    count = np.maximum(np.bincount(codes, minlength=classes), 1)
    sums = [np.bincount(codes, column, minlength=classes) for column in offsets.T]
    guess = np.stack(sums, axis=1) / count[:, None]
    return np.where(np.isfinite(guess), guess, 0.0)


def _about(block: Block, place: Floats) -> tuple[Floats, Floats]:
    """Sums (K, d) and products (K, d, d) of the rows of each class about a place."""
    from discriminant.moments.kernels import class_products

    K, d = place.shape
    width = 4 * (d // 4 + 1)
    tile = int(np.clip(_COLUMNAR_BYTES // (8 * width), _EACH * K, 1 << 14))
    panel = np.zeros((width + 2, min(tile, len(block))))
    panel[d] = 1.0
    found = np.zeros((K, width, width + 2))
    columns = _columnar_columns(block.features)
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


def _columnar_columns(features: Any) -> list[Floats]:
    """Each column as float64, side by side with nothing; most are so already."""
    columns = getattr(features, "columns", None)
    if columns is None:
        columns = dense(features).T
    return [np.ascontiguousarray(column, dtype=np.float64) for column in columns]


def takes(block: Block) -> bool:
    """Whether a block can be read so."""
    return block.responses is None and not is_sparse(block.features)


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
    def column_wise(self) -> bool:
        """Whether the columns of a block may, and had better, be left where they are."""
        many = worth_loading(self.rows, len(self.features))
        return many and self.detail == "class" and self.anchor.plain

    @property
    def summary_size(self) -> int:
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
            elif self.column_wise and takes(block):
                gather_columns(found, block)
            else:
                gather_classes(found, block)
        if not np.isfinite(found.mean).all():
            block.raise_bad_cell(self.features)
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
            squares += gram_matrix(rows, out=self.product)
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
