"""Loss, gradient and curvature of linear scores, summed over rows: all that an iteration asks.

With u = (x - origin) / unit and m scores,

    score      s = u'W + b                                   (m,)
    loss       sum w l(s)
    gradient   sum w [u, 1] l'(s)                            (d+1, m), the intercept last
    curvature  sum w l''(s) (x) [u, 1][u, 1]'                (m (d+1), m (d+1)), score by score
    floor      sum w f(s) [u, 1][u, 1]'                      (d+1, d+1), with f(s) I <= l''(s)

These are sums over rows, so they add. A Loss says what l, l', l'' and f are; it knows no features.
A tile of rows is scored and summed while it is in the cache, so that one iteration is one pass.
Products are np.dot: np.matmul keeps the interpreter to itself where its result is small.
How coefficients are changed from one pass to the next is not done here: see `models.descent`.

What a linear fit leaves over: sums of residuals, from which a fit is corrected.

    r = v - b - u w          pull = sum over rows of  weight * [1, u]' r

A least-squares fit has pull zero; whatever it is instead, solved for, is the correction (iterative
refinement). With `exact` every product and sum is carried as a pair high + low of float64 (Dekker
1971, Knuth 4.2.2), some 32 digits, so the corrected fit is right to the last digits of float64
even where the columns almost depend on one another (Björck 1996, section 2.9).

Rows turned into other coordinates as they are read.

    z = [u, 1] A        u offsets of the features, A a frame (d+1, q)

Sums of products of columns that nearly depend on one another lose the square of what the columns
themselves lose. Sums of z lose it once: whatever is read of z belongs to rows that differ from the
given ones by their own rounding.

Products of rows, each weighed as whoever iterates over them wishes.

For rows u about an anchor, followed by a 1, and numbers that each row has by its place in the
table,

    gram = sum of curve u u'        pull = sum of u pull'

`gram` has its lower triangle only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from discriminant.errors import MomentsMismatchError
from discriminant.moments.anchor import Anchor
from discriminant.moments.scatter_factor import row_offsets
from discriminant.table.blocks import Block, Features, Floats, dense, is_sparse

_RESIDUAL_BYTES = 1 << 19
_SPLIT = 134217729.0  # 2**27 + 1

Pair = tuple[Floats, Floats]  # high and low part of one number


@dataclass(frozen=True, slots=True, eq=False)
class ResidualSums:
    """Sums of residuals of one fit, alone and times each feature."""

    features: tuple[str, ...]  # d names
    anchor: Anchor  # of features, then responses
    rows: int  # how many of positive weight
    high: Floats  # (1 + d, m)
    low: Floats  # (1 + d, m) what does not fit into the high part

    @classmethod
    def empty(cls, features: Sequence[str], *, anchor: Anchor) -> ResidualSums:
        """Pull of no rows: added to any other it changes nothing, not even the last bit."""
        shape = 1 + len(features), len(anchor.origin) - len(features)
        return cls(tuple(features), anchor, 0, np.zeros(shape), np.zeros(shape))

    def __add__(self, other: ResidualSums) -> ResidualSums:
        """Over the rows of both; the fit is to be the same, about whatever anchor."""
        if self.features != other.features:
            raise MomentsMismatchError.of_features(self.features, other.features)
        if not other.rows or not self.rows:
            return self if self.rows else other
        anchor = self.anchor
        if not anchor.same_as(other.anchor):
            zero, zero_too = self._zero(), other._zero()
            anchor = anchor.common_units(other.anchor, zero=zero, zero_too=zero_too)
        ours, theirs = self.at(anchor), other.at(anchor)
        high, low = add_pairs((ours.high, ours.low), (theirs.high, theirs.low))
        return replace(ours, rows=self.rows + other.rows, high=high, low=low)

    def __radd__(self, other: object) -> ResidualSums:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def at(self, anchor: Anchor) -> ResidualSums:
        """The same sums about another origin and in other units."""
        if anchor.same_as(self.anchor):
            return self
        d = len(self.features)
        ratio = np.where(self._zero(), 1.0, self.anchor.unit / anchor.unit)
        scale = np.append(1.0, ratio[:d])[:, None] * ratio[d:]  # powers of two: exact
        high, low = self.high * scale, self.low * scale
        shift = self.anchor.shift_to(anchor)[:d, None]
        top, rest = exact_product(np.broadcast_to(high[:1], (d, high.shape[1])), shift)
        high[1:], low[1:] = add_pairs((high[1:], low[1:]), (top, rest + low[:1] * shift))
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
    def summary_size(self) -> int:
        """Size of the summary."""
        return 2 * (1 + len(self.coef)) * len(self.intercept)

    def read(self, block: Block) -> ResidualSums:
        """Pull of the rows of one block."""
        total = ResidualSums.empty(self.features, anchor=self.anchor)
        size = max(_RESIDUAL_BYTES // (8 * sum(self.coef.shape)), 16)
        for lo in range(0, len(block), size):
            tile = block.rows(lo, min(lo + size, len(block)))
            total = total + (self._exact(tile) if self.exact else self._plain(tile))
        return total

    def _plain(self, tile: Block) -> ResidualSums:
        u, v = row_offsets(tile, self.anchor, None)
        left = v - self.intercept - u @ self.coef
        if tile.weight is not None:
            left *= tile.weight[:, None]
        pull = np.vstack([left.sum(axis=0), u.T @ left])
        return self._pull(tile, pull, np.zeros_like(pull))

    def _exact(self, tile: Block) -> ResidualSums:
        u, v = row_offsets(tile, self.anchor, None)
        rest, left = self._rest(tile, u), self._left(tile, v)
        for j, coef in enumerate(self.coef):
            left = add_pairs(left, exact_product(-u[:, j, None], coef))
        left = add_pairs(left, (-(rest @ self.coef), np.zeros_like(v)))
        if tile.weight is not None:
            high, low = exact_product(left[0], tile.weight[:, None])
            left = high, low + left[1] * tile.weight[:, None]
        sums = [sum_pairs(left)]
        for j in range(u.shape[1]):
            high, low = exact_product(left[0], u[:, j, None])
            low = low + left[1] * u[:, j, None] + left[0] * rest[:, j, None]
            sums.append(sum_pairs((high, low)))
        return self._pull(tile, np.stack([s[0] for s in sums]), np.stack([s[1] for s in sums]))

    def _pull(self, tile: Block, high: Floats, low: Floats) -> ResidualSums:
        seen = len(tile) if tile.weight is None else int((tile.weight > 0).sum())
        return ResidualSums(self.features, self.anchor, seen, high, low)

    def _left(self, tile: Block, v: Floats) -> Pair:
        """Responses less the intercept."""
        d = len(self.coef)
        assert tile.responses is not None
        _, low = exact_difference(tile.responses, self.anchor.origin[d:])
        low /= self.anchor.unit[d:]
        return add_pairs((v, low), (np.broadcast_to(-self.intercept, v.shape), np.zeros_like(v)))

    def _rest(self, tile: Block, u: Floats) -> Floats:
        """(n, d) what rounding took from the offsets."""
        d = u.shape[1]
        features = dense(tile.features).astype(np.float64, copy=False)
        return exact_difference(features, self.anchor.origin[:d])[1] / self.anchor.unit[:d]


def exact_product(a: Floats, b: Floats) -> Pair:
    """a b, exactly."""
    high = a * b
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2


def exact_difference(a: Floats, b: Floats) -> Pair:
    """a - b, exactly."""
    high = a - b
    back = high - a
    return high, (a - (high - back)) - (b + back)


def add_pairs(a: Pair, b: Pair) -> Pair:
    """a + b, to some 32 digits."""
    high = a[0] + b[0]
    back = high - a[0]
    low = (a[0] - (high - back)) + (b[0] - back) + a[1] + b[1]
    top = high + low
    return top, low - (top - high)


def sum_pairs(a: Pair) -> Pair:
    """Sum over the first axis, by halves."""
    high, low = a
    while len(high) > 1:
        half, odd = len(high) // 2, len(high) % 2
        pair = add_pairs((high[:half], low[:half]), (high[half : 2 * half], low[half : 2 * half]))
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


Want = Literal["gradient", "curvature", "floor"]

_TILE_BYTES = 6 << 20  # tiles long enough that threads do not wait for one another


@dataclass(frozen=True, slots=True, eq=False)
class ScoreDerivatives:
    """A loss and its derivatives by the scores, row by row."""

    loss: float  # summed over rows, with their weights
    slope: Floats  # (m, n) l'(s), times the weight of the row
    curvature: Floats | None  # (m, n) diagonal of l''(s), or (n,) floor f(s); times the weight
    cross: Floats | None  # (m, n) r(s), where l'' = diag(curve) - r r'; None where m is one
    least: float  # smallest weight times f(s) of a row that counts


class Loss(Protocol):
    """What scores cost, given the truth."""

    @property
    def columns(self) -> int:
        """m, how many scores a row has."""
        ...

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """Loss and derivatives at scores (m, n) of a tile; the scores may be overwritten."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class LossSums:
    """The sums."""

    rows: int
    weight: float
    loss: float
    gradient: Floats  # (d+1, m)
    curvature: Floats | None  # (m (d+1), m (d+1)) or, as floor, (d+1, d+1)
    least: float  # over all rows

    def __add__(self, other: LossSums) -> LossSums:
        ours, theirs = self.curvature, other.curvature
        return LossSums(
            self.rows + other.rows,
            self.weight + other.weight,
            self.loss + other.loss,
            self.gradient + other.gradient,
            None if ours is None or theirs is None else ours + theirs,
            min(self.least, other.least),
        )

    def __radd__(self, other: object) -> LossSums:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class LossReading:
    """Read loss and derivatives at given coefficients."""

    features: tuple[str, ...]  # d names, for messages
    anchor: Anchor
    coef: Floats  # (d, m) for offsets
    intercept: Floats  # (m,)
    loss: Loss
    want: Want = "gradient"

    @property
    def summary_size(self) -> int:
        """Size of the summary."""
        p, m = len(self.coef) + 1, len(self.intercept)
        return {"gradient": p * m, "floor": p * p}.get(self.want, p * m * p * m)

    def read(self, block: Block) -> LossSums:
        """Sums over the rows of one block."""
        running = _Running(self, block)
        size = max(running.size, 1)
        with np.errstate(invalid="ignore", over="ignore"):  # a cell that is no number is named
            for lo in range(0, len(block), size):
                running.add(block.rows(lo, min(lo + size, len(block))))
        return running.slope


def tile_rows(width: int) -> int:
    """Rows that are scored and summed while they are in the cache."""
    return int(np.clip(_TILE_BYTES // (8 * width), 256, 32768))


class _Running:
    """Sums under way, over the tiles of one block."""

    def __init__(self, reading: LossReading, block: Block) -> None:
        d, m = reading.coef.shape
        self.reading = reading
        wide = m * (d + 1) if reading.want == "curvature" and m > 1 else 0
        sparse = is_sparse(block.features) and reading.anchor.idle and reading.want == "gradient"
        self.size = len(block) if sparse else min(tile_rows(max(d + 2 * m, wide)), len(block))
        self.room = np.empty((0 if sparse else self.size, d))
        self.heavy = np.empty((self.size, d)) if reading.want != "gradient" else self.room
        self.across = np.ascontiguousarray(reading.coef.T)
        p = d + 1
        side = {"gradient": 0, "floor": p}.get(reading.want, m * p)
        none = None if reading.want == "gradient" else np.zeros((side, side))
        self.slope = LossSums(0, 0.0, 0.0, np.zeros((p, m)), none, np.inf)

    def add(self, tile: Block) -> None:
        reading, now = self.reading, self.slope
        rows = self._offsets(tile.features)
        scores = _times(self.across, rows)
        scores += reading.intercept[:, None]
        local = reading.loss.at(scores, tile, want=reading.want)
        if not np.isfinite(local.loss):
            tile.raise_bad_cell(reading.features)
        gradient = np.vstack([_sums(rows, local.slope), local.slope.sum(axis=1)])
        curvature = None if local.curvature is None else self._curvature(rows, local)
        weight = float(len(tile)) if tile.weight is None else float(tile.weight.sum())
        self.slope = now + LossSums(len(tile), weight, local.loss, gradient, curvature, local.least)

    def _offsets(self, features: Features) -> Features:
        """Offsets of a tile; the rows themselves where these are their own offsets."""
        anchor = self.reading.anchor
        if anchor.idle and (is_sparse(features) or dense(features).dtype == np.float64):
            return features
        return anchor.offsets(features, out=self.room[: features.shape[0]])

    def _curvature(self, rows: Features, local: ScoreDerivatives) -> Floats:
        """One block of (d+1, d+1) for each pair of scores; for a floor only one."""
        assert local.curvature is not None
        rows = dense(rows)
        if local.cross is None:
            return self._weighted(rows, np.atleast_2d(local.curvature)[0])
        m, p = len(local.curvature), rows.shape[1] + 1
        ones = np.hstack([rows, np.ones((len(rows), 1))])
        wide = (local.cross.T[:, :, None] * ones[:, None, :]).reshape(len(rows), m * p)
        found = np.asarray(-np.dot(wide.T, wide))
        for k in range(m):
            found[k * p : (k + 1) * p, k * p : (k + 1) * p] += self._weighted(
                rows, local.curvature[k]
            )
        return found

    def _weighted(self, rows: Floats, weight: Floats) -> Floats:
        """(d+1, d+1) sum of weight [u, 1][u, 1]', weights not negative."""
        d = rows.shape[1]
        found = np.empty((d + 1, d + 1))
        root = np.sqrt(weight)
        heavy = np.multiply(rows, root[:, None], out=self.heavy[: len(rows)])
        found[:d, :d] = np.dot(heavy.T, heavy)
        found[d, :d] = found[:d, d] = np.dot(root, heavy)
        found[d, d] = weight.sum()
        return found


def _times(across: Floats, rows: Features) -> Floats:
    """(m, n) scores, class by class, so that what follows runs along the rows."""
    if is_sparse(rows):
        return np.ascontiguousarray((rows @ across.T).T)
    if len(across) == 1:
        return np.asarray(np.dot(rows, across[0]))[None]
    return np.asarray(np.dot(across, rows.T))


def _sums(rows: Features, slope: Floats) -> Floats:
    """(d, m) sum over rows of u times l'(s)."""
    if is_sparse(rows):
        return np.asarray(rows.T @ slope.T)
    if len(slope) == 1:
        return np.asarray(np.dot(slope[0], rows))[:, None]
    return np.asarray(np.dot(slope, rows)).T


Pass = Callable[[Any], Any]  # a fold of a reading over the rows, whoever does it


@dataclass(frozen=True, slots=True, eq=False)
class TransformedReading:
    """Read z in place of the features."""

    reading: Any  # of q columns, which are their own offsets
    features: tuple[str, ...]  # d names, for messages
    anchor: Anchor  # of the features
    frame: Floats  # (d+1, q) A

    @property
    def summary_size(self) -> int:
        """Size of the summary."""
        return int(self.reading.summary_size)

    def read(self, block: Block) -> Any:
        """What the reading finds in the rows of one block, turned."""
        size = tile_rows(sum(self.frame.shape))
        starts = range(0, max(len(block), 1), size)
        return sum(
            self.reading.read(self._turned(block.rows(lo, min(lo + size, len(block)))))
            for lo in starts
        )

    def _turned(self, tile: Block) -> Block:
        found = np.dot(self.anchor.offsets(tile.features), self.frame[:-1]) + self.frame[-1]
        if not np.isfinite(found).all():
            tile.raise_bad_cell(self.features)
        return replace(tile, features=found)


_PRODUCT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class WeightedProducts:
    """Sums of products of rows and a 1. Sums of parts add."""

    gram: Floats  # (d + 1, d + 1) sum of curve u u', or (0, 0)
    rhs: Floats  # (d + 1, m) sum of u pull

    def __add__(self, other: WeightedProducts) -> WeightedProducts:
        return WeightedProducts(self.gram + other.gram, self.rhs + other.rhs)

    def __radd__(self, other: object) -> WeightedProducts:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class WeightedProductsReading:
    """Read sums of products of rows about an anchor, with weights by number of row."""

    anchor: Anchor
    rhs: Floats  # (N, m)
    weights: Floats | None = None  # (N,) not negative

    @property
    def summary_size(self) -> int:
        """Size of the summary."""
        return (len(self.anchor.unit) + 1) ** 2

    def read(self, block: Block) -> WeightedProducts:
        """The sums of one block, tile by tile."""
        d = len(self.anchor.unit)
        size = max(_PRODUCT_BYTES // (8 * d), d, 64)
        curved = 0 if self.weights is None else d + 1
        total = WeightedProducts(np.zeros((curved, curved)), np.zeros((d + 1, self.rhs.shape[1])))
        for lo in range(0, len(block), size):
            self._add(block.rows(lo, min(lo + size, len(block))), total)
        return total

    def _add(self, tile: Block, total: WeightedProducts) -> None:
        offsets = self.anchor.offsets(dense(tile.features))
        rows = slice(tile.start, tile.start + len(tile))
        pull = self.rhs[rows]
        total.rhs[:-1] += offsets.T @ pull
        total.rhs[-1] += pull.sum(axis=0)
        if self.weights is None:
            return
        curve = self.weights[rows]
        active = np.flatnonzero(curve)
        if 4 * len(active) < 3 * len(curve):
            offsets, curve = offsets[active], curve[active]
        root = np.sqrt(curve)
        heavy = offsets * root[:, None]
        total.gram[:-1, :-1] += heavy.T @ heavy
        total.gram[-1, :-1] += root @ heavy
        total.gram[-1, -1] += curve.sum()
