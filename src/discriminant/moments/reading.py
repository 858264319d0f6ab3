"""How class moments are read from a block of rows: tile by tile, while a tile is in the cache.

Of each tile the class means are taken first, then the rows are centred about them, then multiplied
(BLAS, one thread: an engine runs several blocks at once). Tiles merge by the update formula

    scatter += sum over classes of  weight * share * step step'

with step the way from the running mean of a class to that of the tile. Nothing is squared before
it is centred, so no digit is lost to a large mean or to rows that drift.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.fourth import shift_fourth, shift_third
from discriminant.table.schema import Block, Codes, Floats, Labels

_TILE_BYTES = 1 << 20
_FEW_CLASSES = 32  # up to here a dense indicator matrix is faster than a sparse one


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
        running = _Running(self)
        size = tile_rows(len(self.features))
        for lo in range(0, len(block), size):
            running.add(block.rows(lo, min(lo + size, len(block))))
        return running.result()


def tile_rows(width: int) -> int:
    """Rows of a tile: about a megabyte, but enough that the products outweigh adding them up."""
    return int(np.clip(max(_TILE_BYTES // (8 * width), 4 * width), 256, 16384))


class _Running:
    """Moments under way, updated in place: the one place in the house where sums change."""

    def __init__(self, reading: MomentsReading) -> None:
        self.reading = reading
        empty = ClassMoments.empty(
            reading.labels, reading.features, detail=reading.detail, anchor=reading.anchor
        )
        self.rows, self.weight, self.weight2 = empty.rows, empty.weight, empty.weight2
        self.mean, self.scatter = empty.mean, empty.scatter
        self.third = None if empty.third is None else empty.third.copy()
        self.fourth = None if empty.fourth is None else empty.fourth.copy()
        d = len(reading.features)
        self.room = np.empty((tile_rows(d), d))
        self.product = np.empty((d, d)) if reading.detail != "diagonal" else np.empty((0, 0))

    def add(self, tile: Block) -> None:
        offsets = self._offsets(tile)
        count = np.bincount(tile.codes, minlength=len(self.rows))
        seen, weight, weight2 = _class_weights(tile, count)
        mean = _class_means(offsets, tile.codes, tile.weight, weight)
        if not np.isfinite(mean).all():
            tile.blame(self.reading.features)
        total = self.weight + weight
        share = np.divide(weight, total, out=np.zeros_like(total), where=total > 0)
        step = mean - self.mean
        if self.reading.detail == "pooled":
            self._add_pooled(offsets, tile, mean, self.weight * share, step)
        else:
            self._add_each(offsets, tile, mean, count, weight, share, step)
        self.mean += share[:, None] * step
        self.rows += seen
        self.weight = total
        self.weight2 = self.weight2 + weight2

    def result(self) -> ClassMoments:
        empty = ClassMoments.empty(
            self.reading.labels,
            self.reading.features,
            detail=self.reading.detail,
            anchor=self.reading.anchor,
        )
        return ClassMoments(
            empty.labels,
            empty.features,
            empty.anchor,
            empty.detail,
            self.rows,
            self.weight,
            self.weight2,
            self.mean,
            self.scatter,
            empty.lost,
            self.third,
            self.fourth,
        )

    def _offsets(self, tile: Block) -> Floats:
        anchor, room = self.reading.anchor, self.room[: len(tile)]
        if tile.responses is None:
            return anchor.offsets(tile.features, out=room)
        d = tile.features.shape[1]
        columns = np.arange(anchor.origin.size)
        anchor.select(columns[:d]).offsets(tile.features, out=room[:, :d])
        anchor.select(columns[d:]).offsets(tile.responses, out=room[:, d:])
        return room

    def _add_pooled(
        self, offsets: Floats, tile: Block, mean: Floats, drift: Floats, step: Floats
    ) -> None:
        offsets -= mean.take(tile.codes, axis=0)
        if tile.weight is not None:
            offsets *= np.sqrt(tile.weight)[:, None]
        self.scatter += np.matmul(offsets.T, offsets, out=self.product)
        if drift.any():
            root = np.sqrt(drift)[:, None] * step
            self.scatter += np.matmul(root.T, root, out=self.product)

    def _add_each(
        self,
        offsets: Floats,
        tile: Block,
        mean: Floats,
        count: npt.NDArray[np.intp],
        weight: Floats,
        share: Floats,
        step: Floats,
    ) -> None:
        """Rows of a class brought together, then each class by itself."""
        order = np.argsort(tile.codes, kind="stable")
        offsets = offsets.take(order, axis=0)
        weights = None if tile.weight is None else tile.weight[order]
        ends = np.cumsum(count)
        for k in np.flatnonzero(count):
            rows = slice(ends[k] - count[k], ends[k])
            centred = offsets[rows]
            centred -= mean[k]
            part = _scatter(
                centred, None if weights is None else weights[rows], self.reading.detail
            )
            drift = (self.weight[k] * share[k]) * step[k]
            if self.reading.detail == "diagonal":
                self.scatter[k] += part + drift * step[k]
                continue
            if self.third is not None and self.fourth is not None:
                w = weights[rows] if weights is not None else None
                self._add_fourth(
                    int(k), centred, w, part, float(weight[k]), float(share[k]), step[k]
                )
            self.scatter[k] += part
            self.scatter[k] += drift[:, None] * step[k]

    def _add_fourth(
        self,
        k: int,
        centred: Floats,
        weights: Floats | None,
        part: Floats,
        weight: float,
        share: float,
        step: Floats,
    ) -> None:
        assert self.third is not None and self.fourth is not None
        squares = centred**2
        heavy = squares if weights is None else squares * weights[:, None]
        ours = _Powers(self.scatter[k], self.weight[k], self.third[k], self.fourth[k])
        theirs = _Powers(part, weight, heavy.T @ centred, heavy.T @ squares)
        down, up = -share * step, (1 - share) * step
        third = shift_third(ours, down[None]) + shift_third(theirs, up[None])
        fourth = shift_fourth(ours, down[None]) + shift_fourth(theirs, up[None])
        self.third[k], self.fourth[k] = third[0], fourth[0]


class _Powers:
    """The moments of one class, in the shape that `moments.fourth` works on."""

    def __init__(self, scatter: Floats, weight: Any, third: Floats, fourth: Floats) -> None:
        self.scatter, self.third, self.fourth = scatter[None], third[None], fourth[None]
        self.weight = np.atleast_1d(np.asarray(weight, dtype=np.float64))


def _class_weights(
    tile: Block, count: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.intp], Floats, Floats]:
    """Of each class: rows of positive weight, sum of weights, sum of their squares."""
    if tile.weight is None:
        return count, count.astype(np.float64), count.astype(np.float64)
    K = len(count)
    return (
        np.bincount(tile.codes[tile.weight > 0], minlength=K),
        np.asarray(np.bincount(tile.codes, tile.weight, minlength=K), dtype=np.float64),
        np.asarray(np.bincount(tile.codes, tile.weight**2, minlength=K), dtype=np.float64),
    )


def _class_means(offsets: Floats, codes: Codes, weights: Floats | None, weight: Floats) -> Floats:
    """(K, d) means of a tile, zero where a class has no weight in it."""
    K, n = len(weight), len(codes)
    if K == 1:
        sums = (np.ones(n) if weights is None else weights)[None, :] @ offsets
    elif K <= _FEW_CLASSES:
        chosen = (codes == np.arange(K, dtype=codes.dtype)[:, None]).astype(np.float64)
        if weights is not None:
            chosen *= weights
        sums = chosen @ offsets
    else:
        ones = np.ones(n) if weights is None else weights
        chosen = sparse.csc_array((ones, codes.astype(np.int32), np.arange(n + 1)), shape=(K, n))
        sums = chosen @ offsets
    return np.asarray(sums / np.where(weight > 0, weight, 1.0)[:, None])


def _scatter(centred: Floats, weights: Floats | None, detail: Detail) -> Floats:
    """Scatter of centred rows of one class; variances only if that is all that is wanted."""
    if detail == "diagonal":
        ones = np.ones(len(centred)) if weights is None else weights
        return np.asarray(ones @ centred**2)
    if weights is None:
        return np.asarray(centred.T @ centred)
    heavy = centred * np.sqrt(weights)[:, None]
    return np.asarray(heavy.T @ heavy)
