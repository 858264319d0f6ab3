"""How class moments are read from a block of rows: tile by tile, while a tile is in the cache.

Rows z of a tile are taken about the running means c_k of their classes and then multiplied (BLAS,
one thread: an engine runs several blocks at once). With t_k the mean of z in class k, w_k its
weight and n_k the weight so far, the tile merges as

    scatter += sum z z'  -  w_k share_k t_k t_k'        share_k = w_k / (n_k + w_k)
    mean_k  += share_k t_k

That loses digits only if the last term is most of the one before it, that is if c_k was a bad
guess: then, and always for the first tile, the tile is read again about its own means. So nothing
is ever squared far from its mean, and no digit is lost to a large mean or to rows that drift.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.fourth import Powers, shift_fourth, shift_third
from discriminant.table.schema import Block, Floats, Labels, dense

_TILE_BYTES = 5 << 20  # several steps of NumPy go over a tile: long ones, so that threads overlap
_FEW = 64  # classes; to sum apart more of them takes too long
_SLICE, _NARROW = 1024, 8  # rows of a slice; tiles of up to this width are long and are sliced
_TOLERATED = 0.125  # share of a sum of squares that may cancel before a tile is read again


@dataclass(frozen=True, slots=True, eq=False)
class MomentsReading:
    """Read the moments of K classes in d columns: features, then responses if there are any."""

    labels: Labels  # (K,)
    features: tuple[str, ...]  # d names
    anchor: Anchor
    detail: Detail = "class"

    @property
    def numbers(self) -> int:
        """Size of the summary."""
        K, d = len(self.labels), len(self.features)
        return {"diagonal": K * d, "pooled": d * d + K * d, "class": K * d * d}.get(
            self.detail, 3 * K * d * d
        )

    def read(self, block: Block) -> ClassMoments:
        """Moments of the rows of one block."""
        size = min(tile_rows(len(self.features), len(self.labels)), len(block))
        running = _Running(self, size)
        with np.errstate(invalid="ignore", over="ignore"):  # a cell that is no number is named
            for lo in range(0, len(block), max(size, 1)):
                running.add(block.rows(lo, min(lo + size, len(block))))
        return running.moments


def tile_rows(width: int, classes: int = 1) -> int:
    """Rows of a tile: some megabytes, but enough that its rows outweigh what is done per class."""
    row = 8 * width
    rows = min(max(_TILE_BYTES // row, 4 * width, 32 * classes), 6 * _TILE_BYTES // row)
    return int(np.clip(rows, 256, 32768))


class _Running:
    """Moments under way, updated in place: the one place in the house where sums change."""

    def __init__(self, reading: MomentsReading, rows: int) -> None:
        self.moments = ClassMoments.empty(
            reading.labels, reading.features, detail=reading.detail, anchor=reading.anchor
        )
        d = len(reading.features)
        self.room, self.centres = np.empty((rows, d)), np.empty((rows, d))
        self.product = np.empty((d, d) if reading.detail == "pooled" else (0, 0))

    def add(self, tile: Block) -> None:
        now = self.moments
        rows, weight, weight2 = _class_weights(tile, len(now.labels))
        total = now.weight + weight
        share = np.divide(weight, total, out=np.zeros_like(total), where=total > 0)
        if now.detail in ("pooled", "diagonal"):
            self._add_together(tile, weight, share)
        else:
            self._add_each(tile, weight, share)
        now.rows[:] += rows
        now.weight[:] = total
        now.weight2[:] += weight2

    def _add_together(self, tile: Block, weight: Floats, share: Floats) -> None:
        """All classes at once, about the running means or, if those are far, the tile's own."""
        now, chosen = self.moments, _indicator(tile, len(weight))
        centre, centred, shift = self._means(tile, chosen, weight, now.mean)
        if not now.weight.any():  # there are no running means yet
            centre, centred, shift = self._means(tile, chosen, weight, centre + shift)
            self._add_outer(weight, shift, -1.0, self._squares(centred, tile, chosen))
            now.mean[:] = centre + shift
            return
        squares = self._squares(centred, tile, chosen)
        if not self._cancels(weight * share, shift, squares):
            self._add_outer(weight * share, shift, -1.0, squares)
        else:
            centre, centred, shift = self._means(tile, chosen, weight, centre + shift)
            self._add_outer(weight, shift, -1.0, self._squares(centred, tile, chosen))
            self._add_outer(now.weight * share, (centre - now.mean) + shift, 1.0)
        now.mean[:] += share[:, None] * ((centre - now.mean) + shift)

    def _means(
        self, tile: Block, chosen: sparse.csc_array, weight: Floats, centre: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Centres as they were used, rows about them, and class means about them."""
        centre, centred = self._about(tile, centre)
        shift = _sums(chosen, centred) / np.where(weight > 0, weight, 1.0)[:, None]
        if not np.isfinite(shift).all():
            tile.blame(self.moments.features)
        return centre, centred, shift

    def _squares(self, centred: Floats, tile: Block, chosen: sparse.csc_array) -> Floats:
        """Sums of squares of each class, or of products; the rows are used up."""
        if self.moments.detail == "diagonal":
            return _sums(chosen, np.square(centred, out=centred))
        if tile.weight is not None:
            centred *= np.sqrt(tile.weight)[:, None]
        return _products(centred, out=self.product)

    def _cancels(self, weight: Floats, shift: Floats, squares: Floats) -> bool:
        """Whether the correction for the shift would eat up what it is taken from."""
        excess = weight[:, None] * shift**2
        if self.moments.detail == "pooled":
            return bool((excess.sum(axis=0) > _TOLERATED * np.diagonal(squares)).any())
        return bool((excess > _TOLERATED * squares).any())

    def _add_outer(
        self, weight: Floats, step: Floats, sign: float, squares: Floats | None = None
    ) -> None:
        """Add sign * weight * step step' of every class, and `squares`, to the scatter."""
        now = self.moments
        if squares is not None:
            now.scatter[...] += squares
        if now.detail == "diagonal":
            now.scatter[...] += sign * weight[:, None] * step**2
        elif weight.any():
            root = np.sqrt(weight)[:, None] * step
            now.scatter[...] += sign * (root.T @ root)

    def _about(self, tile: Block, centre: Floats) -> tuple[Floats, Floats]:
        """Rows of the tile about the centres of their classes, and these as they were used.

        The row less its centre in one step: the centre is rounded to where rows are, so that the
        difference is exact, and what that rounds off is given back.
        """
        anchor, room = self.moments.anchor, self.room[: len(tile)]
        columns = dense(tile.features)
        if tile.responses is not None:
            columns = np.hstack([columns, tile.responses])
        if not anchor.plain:
            room = anchor.offsets(columns, out=room)
            room -= centre.take(tile.codes, axis=0)
            return centre, room
        place = centre + anchor.origin
        near = place.take(tile.codes, axis=0, out=self.centres[: len(tile)], mode="clip")
        return place - anchor.origin, np.subtract(columns, near, out=room, dtype=np.float64)

    def _add_each(self, tile: Block, weight: Floats, share: Floats) -> None:
        """Rows of a class brought together, then each class about its own mean."""
        now = self.moments
        centre, centred = self._about(tile, now.mean)
        order = np.argsort(tile.codes, kind="stable")
        centred.take(order, axis=0, out=self.centres[: len(tile)], mode="clip")
        weights = np.ones(len(tile)) if tile.weight is None else tile.weight[order]
        ends = np.cumsum(np.bincount(tile.codes, minlength=len(weight)))
        for k in np.flatnonzero(weight):
            rows = slice(ends[k - 1] if k else 0, ends[k])
            part = _Class.of(self.centres[rows], weights[rows], float(weight[k]))
            if not np.isfinite(part.shift).all():
                tile.blame(now.features)
            self._merge(int(k), part, float(share[k]), centre[k])

    def _merge(self, k: int, part: _Class, share: float, centre: Floats) -> None:
        """One class of the tile into the running moments of that class."""
        now = self.moments
        step = (centre - now.mean[k]) + part.shift
        if now.third is not None and now.fourth is not None:
            third, fourth = part.powers()
            ours = Powers.of_class(now.weight[k], now.scatter[k], now.third[k], now.fourth[k])
            theirs = Powers.of_class(part.weight, part.scatter, third, fourth)
            down, up = -share * step[None], (1 - share) * step[None]
            powers = (
                (shift_third(ours, down) + shift_third(theirs, up))[0],
                (shift_fourth(ours, down) + shift_fourth(theirs, up))[0],
            )
            now.third[k], now.fourth[k] = powers  # both worked out first: `ours` is a view of them
        now.scatter[k] += part.scatter
        now.scatter[k] += ((now.weight[k] * share) * step)[:, None] * step
        now.mean[k] += share * step


@dataclass(frozen=True, slots=True, eq=False)
class _Class:
    """The rows of one class in a tile."""

    weight: float
    shift: Floats  # (d,) their mean about the centre they came with
    scatter: Floats  # (d, d)
    centred: Floats  # (n, d) about their own mean
    weights: Floats  # (n,)

    @classmethod
    def of(cls, rows: Floats, weights: Floats, weight: float) -> _Class:
        shift = weights @ rows / weight
        rows -= shift
        if rows.shape[1] <= _NARROW:
            shift += weights @ rows / weight  # what summing so many rows has rounded off
        heavy = rows if (weights == 1.0).all() else rows * np.sqrt(weights)[:, None]
        return cls(weight, shift, _products(heavy), rows, weights)

    def powers(self) -> tuple[Floats, Floats]:
        """Third and fourth moments about the mean."""
        squares = self.centred**2
        heavy = squares * self.weights[:, None]
        return heavy.T @ self.centred, heavy.T @ squares


def _sums(chosen: sparse.csc_array, rows: Floats) -> Floats:
    """(K, d) sums of rows by class; of a long narrow tile by halves, so that rounding stays small.

    Values of few kinds, as narrow tables often have, would all be rounded the same way.
    """
    K, n = chosen.shape
    if n <= _SLICE or rows.shape[1] > _NARROW or K > _FEW:
        return np.asarray(chosen @ rows)
    order = np.argsort(chosen.indices.astype(np.uint16), kind="stable")
    columns = np.ascontiguousarray((rows * chosen.data[:, None]).take(order, axis=0).T)
    ends = np.cumsum(np.bincount(chosen.indices, minlength=K)).tolist()
    return np.stack([columns[:, lo:hi].sum(axis=1) for lo, hi in pairwise([0, *ends])])


def _products(rows: Floats, out: Floats | None = None) -> Floats:
    """(d, d) rows' rows; of a long narrow tile in slices, so that rounding does not add up."""
    if len(rows) <= _SLICE or rows.shape[1] > _NARROW:
        return np.matmul(rows.T, rows, out=out)
    slices = (rows[lo : lo + _SLICE] for lo in range(0, len(rows), _SLICE))
    return np.asarray(np.sum([part.T @ part for part in slices], axis=0))


def _class_weights(tile: Block, classes: int) -> tuple[npt.NDArray[np.intp], Floats, Floats]:
    """Of each class: rows of positive weight, sum of weights, sum of their squares."""
    if tile.weight is None:
        count = np.bincount(tile.codes, minlength=classes)
        return count, count.astype(np.float64), count.astype(np.float64)
    return (
        np.bincount(tile.codes[tile.weight > 0], minlength=classes),
        np.asarray(np.bincount(tile.codes, tile.weight, minlength=classes), dtype=np.float64),
        np.asarray(np.bincount(tile.codes, tile.weight**2, minlength=classes), dtype=np.float64),
    )


def _indicator(tile: Block, classes: int) -> sparse.csc_array:
    """(K, n) weight of each row in the row of its class: times a matrix, it sums by class."""
    weight = np.ones(len(tile)) if tile.weight is None else tile.weight
    places = tile.codes.astype(np.int32), np.arange(len(tile) + 1, dtype=np.int32)
    return sparse.csc_array((weight, *places), shape=(classes, len(tile)))
