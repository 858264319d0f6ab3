"""Compute class moments from blocks of rows, tile by tile while a tile is in the cache.

Each row `x` is centred at a reference `c_k` of its class: a guess at the class mean, computed from
some rows of the block. The sums and products of the centred rows are added up by BLAS in one
thread, because an engine runs several blocks at once. The error of the guess is corrected once, at
the end of the block:

    z = x - c_k      s_k = sum w z      t_k = s_k / weight_k
    mean_k = c_k + t_k                  scatter = sum w z z'  -  weight_k t_k t_k'

The correction loses digits only if most of the sum of squares cancels, that is, if `c_k` was a bad
guess. In this case the block is read again, with the computed means as references. So every value
is centred near its mean before it is squared, and neither a large mean nor a trend along the rows
reduces the accuracy.

A block is summed in one of three ways, all with these formulas:

    pooled, diagonal   all classes at once: `_PooledAccumulator`
    class, fourth      class by class: codes are sorted once per block, and the rows of a class are
                       gathered in pieces that fit into the cache; a class whose guess was bad is
                       read again, and third and fourth moments are summed about the mean
    very many rows     if the columns are separate arrays, as after reading a file, a compiled loop
                       reads the rows of a tile directly from the columns
                       (`moments.compiled_products`); loading this loop takes a moment

`np.dot` releases the interpreter lock for a result of any size; `@` holds the lock if the result
has fewer than 500 numbers. NumPy detects the product of a matrix with its own transpose, and does
only half of the work.
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
from discriminant.moments.summary_base import split_rows
from discriminant.table.blocks import Block, Codes, Floats, Labels, Places, dense, is_sparse

SLICE, NARROW = (
    1024,
    8,
)  # rows of a slice; tiles with at most this many columns are summed in slices
TOLERATED = 0.5  # largest share of a sum of squares that may cancel; above it, rows are read again
READINGS = 3  # largest number of times a block is read; the third only for very distant rows


def gram_matrix(rows: Floats, out: Floats | None = None) -> Floats:
    """Return the Gram matrix `rows' rows`, (d, d).

    Long narrow tiles are summed in slices to limit rounding errors.
    """
    if len(rows) <= SLICE or rows.shape[1] > NARROW:
        return np.asarray(np.dot(rows.T, rows, out=out))
    slices = (rows[lo : lo + SLICE] for lo in range(0, len(rows), SLICE))
    return np.asarray(np.sum([np.dot(part.T, part) for part in slices], axis=0))


def column_sums(rows: Floats, weights: Floats) -> Floats:
    """Return the weighted sum of each column, (d,).

    Long narrow tiles are summed pairwise to limit rounding errors.
    """
    if len(rows) <= SLICE or rows.shape[1] > NARROW:
        return np.asarray(np.dot(weights, rows))
    return np.asarray(np.ascontiguousarray((rows * weights[:, None]).T).sum(axis=1))


_BYTES = 1 << 20  # bytes of rows gathered at a time
_CLASS_GUESS = 64  # number of rows from which the mean of a class is guessed
_NEGLIGIBLE = 1e-18  # share of a sum of squares below which its correction is not subtracted
_SMALL_CLASS = 256  # a class with at most this many rows uses all of them for the guess


def accumulate_class_moments(
    moments: ClassMoments, block: Block, *, only: Places | None = None
) -> None:
    """Compute means and scatters of the classes of a block and store them in `moments`.

    `moments` must already hold the class weights. `only` restricts the computation to these
    classes.
    """
    count = np.bincount(block.codes, minlength=len(moments.weight))
    ends = np.cumsum(count)
    order = _sorted_by_class(block.codes, len(count))
    small = only is None and moments.third is None and count.max() <= _SMALL_CLASS
    gatherer = _ClassGatherer.of(block, moments.anchor, len(block) if small else int(count.max()))
    classes = np.flatnonzero(moments.weight > 0) if only is None else only
    if small:
        classes = gatherer.accumulate_small(moments, order, count)
    for k in classes:
        rows = order[ends[k] - count[k] : ends[k]]
        mean, scatter = gatherer.moments_of(rows, float(moments.weight[k]))
        moments.mean[k], moments.scatter[k] = mean, scatter
        if moments.third is not None and moments.fourth is not None:
            moments.third[k], moments.fourth[k] = gatherer.powers_of(rows, mean)


@dataclass(frozen=True, slots=True, eq=False)
class _ClassGatherer:
    """Gathers the rows of a block class by class, in buffers that are reused."""

    block: Block
    anchor: Anchor
    origin: Floats  # (d,) origin of the values; zero if the values are already offsets
    row_major: bool  # rows of the block can be gathered directly
    columnar: bool  # columns of the block can be gathered directly
    buffer: Floats  # (m, d)
    centre_buffer: Floats  # (m, d)

    @classmethod
    def of(cls, block: Block, anchor: Anchor, most_rows: int) -> _ClassGatherer:
        """Create with buffers for the rows that are gathered at one time, at most `most_rows`."""
        rows, origin = block.features, anchor.origin
        plain = (
            anchor.plain
            and block.responses is None
            and isinstance(rows, np.ndarray)
            and rows.dtype == np.float64
        )
        row_major = plain and rows.flags.c_contiguous
        columnar = plain and not row_major and rows.flags.f_contiguous
        d = len(origin)
        size = min(max(_BYTES // (8 * d), 2 * d, 256), 8192)
        buffer, centre_buffer = np.empty((2, min(size, most_rows), d))
        zero_or_origin = origin if anchor.plain else np.zeros(d)
        return cls(
            block, anchor, zero_or_origin, bool(row_major), bool(columnar), buffer, centre_buffer
        )

    def moments_of(self, rows: Places, weight: float) -> tuple[Floats, Floats]:
        """Return mean (as an offset from the origin) and scatter of the rows of one class."""
        centre = self._guess(rows)
        for attempts_left in reversed(range(READINGS)):
            reference = centre + self.origin  # rounded like the rows, so that differences are exact
            centre = reference - self.origin
            sums, squares = self._about(rows, reference)
            shift = sums / weight
            excess = weight * shift**2
            if not attempts_left or not (excess > TOLERATED * np.diagonal(squares)).any():
                break
            centre = centre + shift
        squares -= (weight * shift)[:, None] * shift
        variances = np.einsum("jj->j", squares)
        np.maximum(variances, 0.0, out=variances)  # rounding may go below zero
        return centre + shift, squares

    def accumulate_small(
        self, moments: ClassMoments, order: Places, count: npt.NDArray[np.intp]
    ) -> Places:
        """Store means and scatters of small classes; return classes with a bad guess at the mean.

        A small class has at most `_SMALL_CLASS` rows. The rows of several classes are gathered
        together. `order` holds the rows sorted by class, `count` (K,) the number of rows of each
        class. The classes that are returned must be read again, one by one.
        """
        ends, bad = np.cumsum(count), []
        for first, last in _groups(ends, len(self.buffer)):
            sizes = count[first:last]
            stops = np.cumsum(sizes).tolist()
            slices = [slice(lo, hi) for lo, hi in pairwise([0, *stops])]
            rows = order[ends[first] - count[first] : ends[last - 1]]
            weights = self._weights(rows)
            values = self._values(rows)
            weight = moments.weight[first:last, None]
            weight = np.where(weight > 0, weight, 1.0)
            offsets = np.subtract(values, self.origin, out=self.centre_buffer[: len(rows)])
            guess = _slice_sums(offsets, weights, slices) / weight
            guess[~np.isfinite(guess)] = 0.0
            reference = guess + self.origin
            own = np.repeat(np.arange(len(sizes)), sizes)
            values -= reference.take(own, axis=0, out=offsets, mode="clip")
            shift = _slice_sums(values, weights, slices) / weight
            if self.block.weight is not None:
                values *= np.sqrt(weights)[:, None]
            scatter = moments.scatter[first:last]
            for piece, products in zip(slices, scatter, strict=True):
                gram_matrix(values[piece], out=products)
            variances = np.einsum("kjj->kj", scatter)
            cancels = (weight * shift**2 > TOLERATED * variances).any(axis=1)
            bad.extend((first + np.flatnonzero(cancels)).tolist())
            if (weight * shift**2 > _NEGLIGIBLE * variances).any():
                scatter -= (weight * shift)[:, :, None] * shift[:, None, :]
                np.maximum(variances, 0.0, out=variances)  # rounding may go below zero
            moments.mean[first:last] = (reference - self.origin) + shift
        empty = moments.weight <= 0
        if empty.any():
            moments.mean[empty], moments.scatter[empty] = 0.0, 0.0
        return np.array([k for k in bad if not empty[k]], dtype=np.intp)

    def _weights(self, rows: Places) -> Floats:
        weight = self.block.weight
        return np.ones(len(rows)) if weight is None else weight[rows]

    def powers_of(self, rows: Places, mean: Floats) -> tuple[Floats, Floats]:
        """Return the third and fourth moments of the rows of a class about its mean."""
        third, fourth = np.zeros((2, len(mean), len(mean)))
        reference = mean + self.origin
        rounding = (reference - self.origin) - mean
        for part, weights in self._parts(rows, reference):
            part += rounding
            squares = part**2
            weighted = squares * weights[:, None]
            third += np.dot(weighted.T, part)
            fourth += np.dot(weighted.T, squares)
        return third, fourth

    def _guess(self, rows: Places) -> Floats:
        if len(rows) > _SMALL_CLASS and len(self.origin) > NARROW:
            rows = rows[:: len(rows) // _CLASS_GUESS]
        sums, weight = np.zeros_like(self.origin), 0.0
        for part, weights in self._parts(rows, self.origin):
            sums += column_sums(part, weights)
            weight += float(weights.sum())
        guess = sums / weight if weight else sums
        return np.where(np.isfinite(guess), guess, 0.0)

    def _about(self, rows: Places, reference: Floats) -> tuple[Floats, Floats]:
        """Return sums (d,) and products (d, d) of the rows about a reference."""
        d = len(reference)
        sums, squares, product = np.zeros(d), np.zeros((d, d)), np.empty((d, d))
        for part, weights in self._parts(rows, reference):
            sums += column_sums(part, weights)
            if self.block.weight is not None:
                part *= np.sqrt(weights)[:, None]
            squares += gram_matrix(part, out=product)
        return sums, squares

    def _parts(self, rows: Places, reference: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Yield pieces of the rows, centred at a reference, with their weights.

        The buffer of a piece is reused for the next piece.
        """
        size, weight = len(self.buffer), self.block.weight
        centre_buffer = self.centre_buffer[: min(size, len(rows))]
        centre_buffer[:] = reference
        ones = np.ones(len(centre_buffer))
        for lo in range(0, len(rows), size):
            chosen = rows[lo : lo + size]
            part = self._values(chosen)
            part -= reference if self.columnar else centre_buffer[: len(chosen)]
            yield part, ones[: len(chosen)] if weight is None else weight[chosen]

    def _values(self, rows: Places) -> Floats:
        """Copy rows of the block to the buffer and return it.

        The buffer holds offsets `(x - origin) / unit` if the unit of some column is not one,
        otherwise the values themselves.
        """
        features, buffer = self.block.features, self.buffer[: len(rows)]
        if self.row_major:
            return np.asarray(features.take(rows, axis=0, out=buffer, mode="clip"))
        if self.columnar:  # column by column, contiguous: fast to multiply
            columns = buffer.reshape(-1, len(rows))
            return np.asarray(features.T.take(rows, axis=1, out=columns, mode="clip").T)
        values = dense(features[rows])
        if self.block.responses is not None:
            values = np.hstack([values, self.block.responses[rows]])
        if not self.anchor.plain:
            return self.anchor.offsets(values, out=buffer)
        buffer[...] = values
        return buffer


def _sorted_by_class(codes: Codes, classes: int) -> Places:
    """Return the row numbers sorted by class. NumPy's stable sort of 16-bit numbers is fastest."""
    return np.argsort(codes.astype(np.uint16) if classes <= 1 << 16 else codes, kind="stable")


def _groups(ends: npt.NDArray[np.intp], size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of consecutive classes that have at most `size` rows together.

    `ends` (K,) holds the number of rows up to the end of each class. A class with more than `size`
    rows forms a range of its own.
    """
    first, before = 0, 0
    while first < len(ends):
        last = max(int(np.searchsorted(ends, before + size, side="right")), first + 1)
        yield first, last
        first, before = last, int(ends[last - 1])


def _slice_sums(rows: Floats, weights: Floats, slices: list[slice]) -> Floats:
    """Return the weighted sum of the rows of each slice, (K, d)."""
    return np.array([np.dot(weights[piece], rows[piece]) for piece in slices])


# Size of a table (rows x columns) from which the compiled loop is worth loading: it saves about
# 4 ns of CPU time for each number, and takes 0.3 s to load.
_LARGE = 100_000_000
_MAX_WIDTH = 128  # largest number of columns; with more columns BLAS is as fast
_COLUMNAR_BYTES = 1 << 20
_EACH = 64  # smallest mean number of rows per class in a tile
_COLUMNAR_GUESS = 64  # average number of rows from which a class mean is guessed


def is_worth_compiling(rows: int, width: int) -> bool:
    """Whether a table is so large that the compiled loop saves more time than loading it takes."""
    return width <= _MAX_WIDTH and rows * width >= _LARGE


def gather_columns(moments: ClassMoments, block: Block) -> None:
    """Compute the class means and scatters of a block whose columns are separate arrays.

    The results are stored in `moments`, which must already hold the class weights.
    """
    origin, present = moments.anchor.origin, moments.weight > 0
    weight = np.where(present, moments.weight, 1.0)[:, None]
    reference = _guess(block, len(weight), origin) + origin  # rounded like the rows
    sums, squares = _about(block, reference)
    shift = sums / weight
    variances = np.einsum("kjj->kj", squares)
    bad_guess = (weight * shift**2 > TOLERATED * variances).any(axis=1)
    squares -= (weight * shift)[:, :, None] * shift[:, None, :]
    np.maximum(variances, 0.0, out=variances)  # rounding may go below zero
    moments.mean[present] = ((reference - origin) + shift)[present]
    moments.scatter[present] = squares[present]
    if bad_guess.any():
        dense_block = replace(block, features=dense(block.features))
        accumulate_class_moments(moments, dense_block, only=np.flatnonzero(bad_guess & present))


def _guess(block: Block, classes: int, origin: Floats) -> Floats:
    """Return approximate class means (K, d), as offsets `(x - origin) / unit`.

    The means are computed from rows spread over the block.
    """
    rows = np.arange(0, len(block), max(len(block) // (_COLUMNAR_GUESS * classes), 1))
    offsets = np.asarray(block.features[rows], dtype=np.float64) - origin
    codes = block.codes[rows]
    count = np.maximum(np.bincount(codes, minlength=classes), 1)
    sums = [np.bincount(codes, column, minlength=classes) for column in offsets.T]
    guess = np.stack(sums, axis=1) / count[:, None]
    return np.where(np.isfinite(guess), guess, 0.0)


def _about(block: Block, reference: Floats) -> tuple[Floats, Floats]:
    """Return sums (K, d) and products (K, d, d) of the rows of each class about a reference."""
    from discriminant.moments.compiled_products import class_products

    K, d = reference.shape
    width = 4 * (d // 4 + 1)
    tile = int(np.clip(_COLUMNAR_BYTES // (8 * width), _EACH * K, 1 << 14))
    panel = np.zeros((width + 2, min(tile, len(block))))
    panel[d] = 1.0
    products = np.zeros((K, width, width + 2))
    columns = _columnar_columns(block.features)
    class_products(
        np.array([column.__array_interface__["data"][0] for column in columns], dtype=np.intp),
        block.codes.astype(np.uint32),
        reference,
        np.zeros(0) if block.weight is None else np.sqrt(block.weight),
        panel,
        np.zeros(panel.shape[1], dtype=np.uint16),
        np.zeros(K + 1, dtype=np.int64),
        products,
    )
    lower = np.tril(products[:, :d, :d])
    return products[:, d, :d], lower + np.tril(lower, -1).swapaxes(1, 2)


def _columnar_columns(features: Any) -> list[Floats]:
    """Return each column as a contiguous float64 array.

    Columns that already are such arrays are not copied.
    """
    columns = getattr(features, "columns", None)
    if columns is None:
        columns = dense(features).T
    return [np.ascontiguousarray(column, dtype=np.float64) for column in columns]


def is_dense_without_responses(block: Block) -> bool:
    """Whether a block has dense features and no responses."""
    return block.responses is None and not is_sparse(block.features)


_TILE_BYTES = 2 << 20  # a tile stays in the cache for several NumPy operations
_DENSE = 1 << 17  # multiplications up to which the rows are summed by class in a dense product
_FEW = 64  # most classes that are summed separately; with more, this takes too long
# Rows from which class means are guessed, if the block is much longer: 32 of each class, but at
# most 512 unless these are fewer than 4 of each
_GUESS, _GUESS_EACH, _GUESS_LEAST = 512, 32, 4
# Work for the mean of a class in each block (guessing, summing, merging), relative to adding it.
# With 1,000 classes, short blocks would take twice as long as long ones.
_CLASS_WORK = 16


@dataclass(frozen=True, slots=True, eq=False)
class MomentsReading:
    """Compute the moments of K classes in d columns.

    The columns are the features, followed by the responses if the block has any.
    """

    labels: Labels  # (K,)
    features: tuple[str, ...]  # d names
    anchor: Anchor
    detail: Detail = "class"
    rows: int = 0  # approximate number of rows, or 0 if unknown; chooses the algorithm

    @property
    def column_wise(self) -> bool:
        """Whether the columns of a block should stay separate arrays."""
        plain = self.detail == "class" and self.anchor.plain
        return plain and is_worth_compiling(self.rows, len(self.features))

    @property
    def summary_size(self) -> int:
        K, d = len(self.labels), len(self.features)
        sums = {"diagonal": K * d, "pooled": d * d + _CLASS_WORK * K * d, "class": K * d * d}
        return sums.get(self.detail, 3 * K * d * d)

    def read(self, block: Block) -> ClassMoments:
        moments = ClassMoments.empty(
            self.labels, self.features, detail=self.detail, anchor=self.anchor
        )
        if not len(block):
            return moments
        moments.rows[:], moments.weight[:], moments.weight2[:] = _class_weights(
            block, len(self.labels)
        )
        with np.errstate(invalid="ignore", over="ignore"):  # bad cells are reported
            if self.detail in ("pooled", "diagonal"):
                _PooledAccumulator(moments, block).read()
            elif self.column_wise and is_dense_without_responses(block):
                gather_columns(moments, block)
            else:
                accumulate_class_moments(moments, block)
        if np.count_nonzero(np.isfinite(moments.mean)) < moments.mean.size:
            block.raise_bad_cell(self.features)
        return moments


class _PooledAccumulator:
    """Accumulates the moments of all classes of a block at once.

    `moments` must already hold the class weights.
    """

    def __init__(self, moments: ClassMoments, block: Block) -> None:
        self.moments, self.block = moments, block
        K, d = moments.mean.shape
        self.size = tile_rows(d, K, len(block))
        self.buffer = np.empty((self.size, d))
        self.product = np.empty(moments.scatter.shape)
        self.indicator: Floats | sparse.csc_array | None = None  # of a block of a single tile

    def read(self) -> None:
        moments = self.moments
        empty = moments.weight <= 0
        some_empty = bool(np.count_nonzero(empty))
        weight = (np.where(empty, 1.0, moments.weight) if some_empty else moments.weight)[:, None]
        centre = self._guess()
        for attempts_left in reversed(range(READINGS)):
            centre, sums, squares = self._about(centre)
            shift = sums / weight
            if not attempts_left or not self._cancels(shift, squares):
                break
            centre = centre + shift
        np.add(centre, shift, out=moments.mean)
        if some_empty:
            moments.mean[empty] = 0.0
        squares -= self._excess(shift)
        variances = moments.scatter
        if moments.detail == "pooled":
            variances = variances.reshape(-1)[:: variances.shape[1] + 1]  # a view of the diagonal
        np.maximum(variances, 0.0, out=variances)  # rounding may go below zero

    def _guess(self) -> Floats:
        """Return approximate class means (K, d), as offsets `(x - origin) / unit`.

        The means are computed from rows spread over the block.
        """
        K, d = self.moments.mean.shape
        sums = np.zeros((K, d))
        sample = self.block if d <= NARROW else _spread_rows(self.block, K)
        for tile in split_rows(sample, self.size):
            rows = self.moments.anchor.offsets(_columns(tile), out=self.buffer[: len(tile)])
            sums += self._sums(tile, rows)
        weight = self.moments.weight
        if sample is not self.block:
            weight = np.bincount(sample.codes, sample.weight, minlength=K).astype(np.float64)
        if np.count_nonzero(weight) < K:
            weight = np.where(weight > 0, weight, 1.0)
        guess = sums / weight[:, None]
        finite = np.isfinite(guess)
        return guess if np.count_nonzero(finite) == guess.size else np.where(finite, guess, 0.0)

    def _sums(self, tile: Block, rows: Floats) -> Floats:
        """Return the (K, d) weighted sums of the rows of a tile by class.

        The indicator matrix of a block of a single tile is used again.
        """
        K = len(self.moments.weight)
        if _is_summed_pairwise(rows, K):
            return _pairwise_sums(tile, rows, K)
        if tile is not self.block:
            return np.asarray(_indicator(tile, K, rows.size) @ rows)
        if self.indicator is None:
            self.indicator = _indicator(tile, K, rows.size)
        return np.asarray(self.indicator @ rows)

    def _about(self, centre: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the centres, and the sums, squares or products of the rows about the centres.

        The centres are those requested, rounded to the precision of the rows.
        """
        moments = self.moments
        sums, squares, centres_used = np.zeros(centre.shape), moments.scatter, centre
        squares[...] = 0.0
        for tile in split_rows(self.block, self.size):
            centres_used, rows = self._rows(tile, centre)
            sums += self._sums(tile, rows)
            if moments.detail == "diagonal":
                squares += self._sums(tile, np.square(rows, out=rows))
                continue
            if tile.weight is not None:
                rows *= np.sqrt(tile.weight)[:, None]
            squares += gram_matrix(rows, out=self.product)
        return centres_used, sums, squares

    def _rows(self, tile: Block, centre: Floats) -> tuple[Floats, Floats]:
        """Return the centres, and the rows of the tile, each minus the centre of its class.

        Each centre is first rounded to the precision of the rows, so that subtracting it is exact.
        The rounded centres are returned.
        """
        anchor, buffer = self.moments.anchor, self.buffer[: len(tile)]
        columns = _columns(tile)
        if not anchor.plain:
            buffer = anchor.offsets(columns, out=buffer)
            buffer -= centre.take(tile.codes, axis=0)
            return centre, buffer
        reference = centre + anchor.origin
        reference.take(tile.codes, axis=0, out=buffer, mode="clip")
        return reference - anchor.origin, np.subtract(columns, buffer, out=buffer, dtype=np.float64)

    def _excess(self, shift: Floats) -> Floats:
        """Return the excess of squares and products about centres that are not the means."""
        weight = self.moments.weight[:, None]
        if self.moments.detail == "diagonal":
            return weight * shift**2
        root = np.sqrt(weight) * shift
        return np.asarray(np.dot(root.T, root, out=self.product))

    def _cancels(self, shift: Floats, squares: Floats) -> bool:
        """Whether the correction for this shift would cancel most digits of a sum of squares."""
        weight = self.moments.weight
        if self.moments.detail == "pooled":
            bad = np.dot(weight, shift**2) > TOLERATED * squares.diagonal()
        else:
            bad = weight[:, None] * shift**2 > TOLERATED * squares
        return bool(np.count_nonzero(bad))


def tile_rows(width: int, classes: int, rows: int) -> int:
    """Return the number of rows of a tile.

    A tile takes a few megabytes and has many rows of each class.

    Tiles of a block have nearly equal sizes.
    """
    row = 8 * width
    limit = min(max(_TILE_BYTES // row, 4 * width, 8 * classes), 16 * _TILE_BYTES // row)
    size = min(max(limit, 256), 16384)
    return -(-rows // -(-rows // size))


def _spread_rows(block: Block, classes: int) -> Block:
    """Return evenly spaced rows of a block, and one row of each class that they do not contain."""
    enough = max(min(_GUESS, _GUESS_EACH * classes), _GUESS_LEAST * classes)
    step = len(block) // enough
    if step < 2:
        return block
    rows = np.arange(0, len(block), step)
    count = np.bincount(block.codes[rows], minlength=classes)
    if not count.all():
        first = np.full(classes, -1)
        # the first row of each class is written last
        first[block.codes[::-1]] = np.arange(len(block))[::-1]
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


def _is_summed_pairwise(rows: Floats, classes: int) -> bool:
    """Whether the rows of a tile are summed pairwise to limit rounding errors.

    Long narrow tiles are: narrow tables often have few distinct values, and in sequential
    summation, adding the same value many times would always round in the same direction.
    """
    return len(rows) > SLICE and rows.shape[1] <= NARROW and classes <= _FEW


def _pairwise_sums(tile: Block, rows: Floats, classes: int) -> Floats:
    """Return the (K, d) weighted sums of the rows of a tile by class, summed pairwise."""
    order = np.argsort(tile.codes, kind="stable")
    values = rows if tile.weight is None else rows * tile.weight[:, None]
    columns = np.ascontiguousarray(values.take(order, axis=0).T)
    ends = np.cumsum(np.bincount(tile.codes, minlength=classes)).tolist()
    return np.stack([columns[:, lo:hi].sum(axis=1) for lo, hi in pairwise([0, *ends])])


def _class_weights(block: Block, classes: int) -> tuple[npt.NDArray[np.intp], Floats, Floats]:
    """Return (K,) arrays: rows of positive weight, sums of weights, and of squared weights."""
    if block.weight is None:
        count = np.bincount(block.codes, minlength=classes)
        return count, count.astype(np.float64), count.astype(np.float64)
    return (
        np.bincount(block.codes[block.weight > 0], minlength=classes),
        np.asarray(np.bincount(block.codes, block.weight, minlength=classes), dtype=np.float64),
        np.asarray(np.bincount(block.codes, block.weight**2, minlength=classes), dtype=np.float64),
    )


def _indicator(tile: Block, classes: int, numbers: int) -> Floats | sparse.csc_array:
    """Return a matrix (K, n) whose product with a matrix (n, m) sums the rows of each class.

    Column i holds the weight of row i at the position of its class, and zeros elsewhere. The matrix
    is sparse, unless the second factor has so few columns (`numbers`) that a dense product is
    faster.
    """
    if classes * numbers <= _DENSE:
        member = tile.codes == np.arange(classes, dtype=tile.codes.dtype)[:, None]
        weight = np.float64(1.0) if tile.weight is None else tile.weight
        return np.asarray(member * weight)
    weight = np.ones(len(tile)) if tile.weight is None else tile.weight
    indices, starts = tile.codes.astype(np.int32), np.arange(len(tile) + 1, dtype=np.int32)
    return sparse.csc_array((weight, indices, starts), shape=(classes, len(tile)))
