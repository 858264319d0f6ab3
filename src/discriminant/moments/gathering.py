"""Class moments where every class has a scatter of its own: class by class.

Codes are sorted once a block. The rows of a class are then gathered, some at a time so that they
stay in the cache, about a guess at their mean: see `moments.reading` for the algebra. A class
whose guess was bad is gathered again, that class alone. Third and fourth moments are summed after
that, about the mean found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.products import NARROW, READINGS, TOLERATED, column_sums, products
from discriminant.table.schema import Block, Floats, dense

_BYTES = 1 << 20  # of rows gathered at a time
_GUESS = 64  # rows that say where a class is
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
            rows = rows[:: len(rows) // _GUESS]
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
            squares += products(part, out=product)
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
