"""What a linear fit leaves over: sums of residuals, from which a fit is corrected.

    r = v - b - u w          pull = sum over rows of  weight * [1, u]' r

A least-squares fit has pull zero; whatever it is instead, solved for, is the correction (iterative
refinement). With `exact` every product and sum is carried as a pair high + low of float64 (Dekker
1971, Knuth 4.2.2), some 32 digits, so the corrected fit is right to the last digits of float64
even where the columns almost depend on one another (Björck 1996, section 2.9).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from discriminant.errors import MomentsMismatchError
from discriminant.moments.anchor import Anchor
from discriminant.moments.factor import offsets_of
from discriminant.table.schema import Block, Floats, dense

_TILE_BYTES = 1 << 19
_SPLIT = 134217729.0  # 2**27 + 1

Pair = tuple[Floats, Floats]  # high and low part of one number


@dataclass(frozen=True, slots=True, eq=False)
class Pull:
    """Sums of residuals of one fit, alone and times each feature."""

    features: tuple[str, ...]  # d names
    anchor: Anchor  # of features, then responses
    rows: int  # how many of positive weight
    high: Floats  # (1 + d, m)
    low: Floats  # (1 + d, m) what does not fit into the high part

    @classmethod
    def empty(cls, features: Sequence[str], *, anchor: Anchor) -> Pull:
        """Pull of no rows: added to any other it changes nothing, not even the last bit."""
        shape = 1 + len(features), len(anchor.origin) - len(features)
        return cls(tuple(features), anchor, 0, np.zeros(shape), np.zeros(shape))

    def __add__(self, other: Pull) -> Pull:
        """Over the rows of both; the fit is to be the same, about whatever anchor."""
        if self.features != other.features:
            raise MomentsMismatchError.of_features(self.features, other.features)
        if not other.rows or not self.rows:
            return self if self.rows else other
        anchor = self.anchor
        if not anchor.same_as(other.anchor):
            zero, zero_too = self._zero(), other._zero()
            anchor = anchor.with_unit_for(other.anchor, zero=zero, zero_too=zero_too)
        ours, theirs = self.at(anchor), other.at(anchor)
        high, low = added((ours.high, ours.low), (theirs.high, theirs.low))
        return replace(ours, rows=self.rows + other.rows, high=high, low=low)

    def __radd__(self, other: object) -> Pull:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def at(self, anchor: Anchor) -> Pull:
        """The same sums about another origin and in other units."""
        if anchor.same_as(self.anchor):
            return self
        d = len(self.features)
        ratio = np.where(self._zero(), 1.0, self.anchor.unit / anchor.unit)
        scale = np.append(1.0, ratio[:d])[:, None] * ratio[d:]  # powers of two: exact
        high, low = self.high * scale, self.low * scale
        shift = self.anchor.shift_to(anchor)[:d, None]
        top, rest = product(np.broadcast_to(high[:1], (d, high.shape[1])), shift)
        high[1:], low[1:] = added((high[1:], low[1:]), (top, rest + low[:1] * shift))
        return replace(self, anchor=anchor, high=high, low=low)

    def _zero(self) -> npt.NDArray[np.bool_]:
        """(d + m,) columns that may be zero in every row, so that any unit suits the sums."""
        some = (self.high != 0) | (self.low != 0)
        still = np.append(~some[1:].any(axis=1), ~some.any(axis=0))
        return np.asarray((self.anchor.origin == 0) & still)

    @property
    def sums(self) -> Floats:
        """(1 + d, m)."""
        return self.high + self.low


@dataclass(frozen=True, slots=True, eq=False)
class ResidualReading:
    """Read the pull that is left at a fit."""

    features: tuple[str, ...]  # d names
    anchor: Anchor  # of features, then responses
    coef: Floats  # (d, m) for offsets
    intercept: Floats  # (m,)
    exact: bool = False

    @property
    def numbers(self) -> int:
        """Size of the summary."""
        return 2 * (1 + len(self.coef)) * len(self.intercept)

    def read(self, block: Block) -> Pull:
        """Pull of the rows of one block."""
        total = Pull.empty(self.features, anchor=self.anchor)
        size = max(_TILE_BYTES // (8 * sum(self.coef.shape)), 16)
        for lo in range(0, len(block), size):
            tile = block.rows(lo, min(lo + size, len(block)))
            total = total + (self._exact(tile) if self.exact else self._plain(tile))
        return total

    def _plain(self, tile: Block) -> Pull:
        u, v = offsets_of(tile, self.anchor, None)
        left = v - self.intercept - u @ self.coef
        if tile.weight is not None:
            left *= tile.weight[:, None]
        pull = np.vstack([left.sum(axis=0), u.T @ left])
        return self._pull(tile, pull, np.zeros_like(pull))

    def _exact(self, tile: Block) -> Pull:
        u, v = offsets_of(tile, self.anchor, None)
        rest, left = self._rest(tile, u), self._left(tile, v)
        for j, coef in enumerate(self.coef):
            left = added(left, product(-u[:, j, None], coef))
        left = added(left, (-(rest @ self.coef), np.zeros_like(v)))
        if tile.weight is not None:
            high, low = product(left[0], tile.weight[:, None])
            left = high, low + left[1] * tile.weight[:, None]
        sums = [summed(left)]
        for j in range(u.shape[1]):
            high, low = product(left[0], u[:, j, None])
            low = low + left[1] * u[:, j, None] + left[0] * rest[:, j, None]
            sums.append(summed((high, low)))
        return self._pull(tile, np.stack([s[0] for s in sums]), np.stack([s[1] for s in sums]))

    def _pull(self, tile: Block, high: Floats, low: Floats) -> Pull:
        seen = len(tile) if tile.weight is None else int((tile.weight > 0).sum())
        return Pull(self.features, self.anchor, seen, high, low)

    def _left(self, tile: Block, v: Floats) -> Pair:
        """Responses less the intercept."""
        d = len(self.coef)
        assert tile.responses is not None
        _, low = difference(tile.responses, self.anchor.origin[d:])
        low /= self.anchor.unit[d:]
        return added((v, low), (np.broadcast_to(-self.intercept, v.shape), np.zeros_like(v)))

    def _rest(self, tile: Block, u: Floats) -> Floats:
        """(n, d) what rounding took from the offsets."""
        d = u.shape[1]
        features = dense(tile.features).astype(np.float64, copy=False)
        return difference(features, self.anchor.origin[:d])[1] / self.anchor.unit[:d]


def product(a: Floats, b: Floats) -> Pair:
    """a b, exactly."""
    high = a * b
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2


def difference(a: Floats, b: Floats) -> Pair:
    """a - b, exactly."""
    high = a - b
    back = high - a
    return high, (a - (high - back)) - (b + back)


def added(a: Pair, b: Pair) -> Pair:
    """a + b, to some 32 digits."""
    high = a[0] + b[0]
    back = high - a[0]
    low = (a[0] - (high - back)) + (b[0] - back) + a[1] + b[1]
    top = high + low
    return top, low - (top - high)


def summed(a: Pair) -> Pair:
    """Sum over the first axis, by halves."""
    high, low = a
    while len(high) > 1:
        half, odd = len(high) // 2, len(high) % 2
        pair = added((high[:half], low[:half]), (high[half : 2 * half], low[half : 2 * half]))
        high, low = (
            np.concatenate([x, y[-1:]]) if odd else x
            for x, y in zip(pair, (high, low), strict=True)
        )
    return high[0], low[0]


def _halves(a: Floats) -> Pair:
    """a as two numbers of 26 bits."""
    wide = _SPLIT * a
    high = wide - (wide - a)
    return high, a - high
