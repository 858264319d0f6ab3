"""Sums over rows that optimisers of linear scores need: loss, gradient, curvature, residuals.

With u = (x - origin) / unit and m scores,

    score      s = u'W + b                                   (m,)
    loss       sum w l(s)
    gradient   sum w [u, 1] l'(s)                            (d+1, m), the intercept last
    curvature  sum w l''(s) (x) [u, 1][u, 1]'                (m (d+1), m (d+1)), score by score
    floor      sum w f(s) [u, 1][u, 1]'                      (d+1, d+1), with f(s) I <= l''(s)

A `Loss` defines `l`, `l'`, `l''` and `f` as functions of the scores, not of the features. A tile of
rows is scored and summed while it is in the cache, so that one iteration is one pass over the rows.
Products use `np.dot`, because `np.matmul` holds the interpreter lock if its result is small. The
optimisers that change the coefficients between passes are in `models.linear.optimise`.

`ResidualReading` sums the residuals of a linear fit, from which the fit is corrected. With
responses `v`, coefficients `w` and intercept `b`:

    r = v - b - u w          sums = sum over rows of  weight * [1, u]' r

The residual sums of an exact least-squares fit are zero. For an inexact fit, solving the normal
equations with the residual sums on the right-hand side gives a correction (iterative refinement).
With `exact`, every product and sum is represented by a pair of float64 numbers, `high + low`, which
has some 32 digits (Dekker 1971, Knuth 4.2.2). The corrected fit is then accurate to the last digits
of float64, even if the columns are nearly collinear (Björck 1996, section 2.9).

`TransformedReading` applies another reading to rows in other coordinates:

    z = [u, 1] A        u offsets of the features, A a matrix (d+1, q), the frame

If columns are nearly collinear, sums of products of the columns lose twice as many digits as a
factorisation of the rows would. Sums of products of `z` do not have this disadvantage, because they
are the exact sums for rows that differ from the given rows only by rounding.

`WeightedProductsReading` sums weighted products of rows `u`, which are offsets followed by the
constant 1. Weights and right-hand sides are looked up by the position of the row in the table. Only
the lower triangle of `gram` is valid:

    gram = sum of weight u u'        rhs = sum of u rhs'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from discriminant.errors import MomentsMismatchError
from discriminant.moments.anchor import Anchor, align_anchors
from discriminant.moments.qr_factor import row_offsets
from discriminant.moments.summary_base import Summable, split_rows
from discriminant.table.blocks import Block, Features, Floats, dense, is_sparse

_RESIDUAL_BYTES = 1 << 19
_SPLIT = 134217729.0  # 2**27 + 1

Pair = tuple[Floats, Floats]  # high and low part of each number


@dataclass(frozen=True, slots=True, eq=False)
class ResidualSums(Summable):
    """Sums of the residuals of a fit, and of their products with each feature."""

    features: tuple[str, ...]  # d names
    anchor: Anchor  # origin and unit of the features, then of the responses
    rows: int  # number of rows of positive weight
    high: Floats  # (1 + d, m)
    low: Floats  # (1 + d, m) rounding error of the high part

    @classmethod
    def empty(cls, features: Sequence[str], *, anchor: Anchor) -> ResidualSums:
        """Return sums without rows; adding them to other sums changes nothing."""
        shape = 1 + len(features), len(anchor.origin) - len(features)
        return cls(tuple(features), anchor, 0, np.zeros(shape), np.zeros(shape))

    def __add__(self, other: ResidualSums) -> ResidualSums:
        """Add residual sums of the same fit; their origins and units may differ."""
        if self.features != other.features:
            raise MomentsMismatchError.of_features(self.features, other.features)
        if not other.rows or not self.rows:
            return self if self.rows else other
        ours, theirs = align_anchors(self, other)
        high, low = add_double_double((ours.high, ours.low), (theirs.high, theirs.low))
        return replace(ours, rows=self.rows + other.rows, high=high, low=low)

    def at(self, anchor: Anchor) -> ResidualSums:
        """Convert the residual sums to another anchor."""
        if anchor.same_as(self.anchor):
            return self
        d = len(self.features)
        ratio = np.where(self.zero_columns(), 1.0, self.anchor.unit / anchor.unit)
        scale = np.append(1.0, ratio[:d])[:, None] * ratio[d:]  # powers of two: exact
        high, low = self.high * scale, self.low * scale
        shift = self.anchor.shift_to(anchor)[:d, None]
        top, rest = exact_product(np.broadcast_to(high[:1], (d, high.shape[1])), shift)
        high[1:], low[1:] = add_double_double((high[1:], low[1:]), (top, rest + low[:1] * shift))
        return replace(self, anchor=anchor, high=high, low=low)

    def zero_columns(self) -> npt.NDArray[np.bool_]:
        """Return a boolean array (d + m,): True for columns that may be zero in every row.

        The unit of such a column may be changed freely.
        """
        nonzero = (self.high != 0) | (self.low != 0)
        zero_sums = np.append(~nonzero[1:].any(axis=1), ~nonzero.any(axis=0))
        return np.asarray((self.anchor.origin == 0) & zero_sums)

    @property
    def sums(self) -> Floats:
        """Residual sums (1 + d, m), rounded to float64."""
        return self.high + self.low


@dataclass(frozen=True, slots=True, eq=False)
class ResidualReading:
    """Sum the residuals of a fit."""

    features: tuple[str, ...]  # d names
    anchor: Anchor  # origin and unit of the features, then of the responses
    coef: Floats  # (d, m) for offsets
    intercept: Floats  # (m,)
    exact: bool = False

    @property
    def summary_size(self) -> int:
        return 2 * (1 + len(self.coef)) * len(self.intercept)

    def read(self, block: Block) -> ResidualSums:
        total = ResidualSums.empty(self.features, anchor=self.anchor)
        size = max(_RESIDUAL_BYTES // (8 * sum(self.coef.shape)), 16)
        for tile in split_rows(block, size):
            total = total + (self._exact(tile) if self.exact else self._plain(tile))
        return total

    def _plain(self, tile: Block) -> ResidualSums:
        u, v = row_offsets(tile, self.anchor, None)
        residual = v - self.intercept - u @ self.coef
        if tile.weight is not None:
            residual *= tile.weight[:, None]
        sums = np.vstack([residual.sum(axis=0), u.T @ residual])
        return self._sums_of_tile(tile, sums, np.zeros_like(sums))

    def _exact(self, tile: Block) -> ResidualSums:
        u, v = row_offsets(tile, self.anchor, None)
        rounding, residual = self._offset_rounding(tile, u), self._centred_responses(tile, v)
        for j, coef in enumerate(self.coef):
            residual = add_double_double(residual, exact_product(-u[:, j, None], coef))
        residual = add_double_double(residual, (-(rounding @ self.coef), np.zeros_like(v)))
        if tile.weight is not None:
            high, low = exact_product(residual[0], tile.weight[:, None])
            residual = high, low + residual[1] * tile.weight[:, None]
        sums = [sum_pairs(residual)]
        for j in range(u.shape[1]):
            high, low = exact_product(residual[0], u[:, j, None])
            low = low + residual[1] * u[:, j, None] + residual[0] * rounding[:, j, None]
            sums.append(sum_pairs((high, low)))
        return self._sums_of_tile(
            tile, np.stack([s[0] for s in sums]), np.stack([s[1] for s in sums])
        )

    def _sums_of_tile(self, tile: Block, high: Floats, low: Floats) -> ResidualSums:
        counted = len(tile) if tile.weight is None else int((tile.weight > 0).sum())
        return ResidualSums(self.features, self.anchor, counted, high, low)

    def _centred_responses(self, tile: Block, v: Floats) -> Pair:
        """Return the responses minus the intercept."""
        d = len(self.coef)
        assert tile.responses is not None
        _, low = exact_difference(tile.responses, self.anchor.origin[d:])
        low /= self.anchor.unit[d:]
        return add_double_double(
            (v, low), (np.broadcast_to(-self.intercept, v.shape), np.zeros_like(v))
        )

    def _offset_rounding(self, tile: Block, u: Floats) -> Floats:
        """Return the rounding error of each offset, (n, d)."""
        d = u.shape[1]
        features = dense(tile.features).astype(np.float64, copy=False)
        return exact_difference(features, self.anchor.origin[:d])[1] / self.anchor.unit[:d]


def exact_product(a: Floats, b: Floats) -> Pair:
    """Return the exact product `a b` as a pair: the rounded product and its rounding error."""
    high = a * b
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2


def exact_difference(a: Floats, b: Floats) -> Pair:
    """Return the exact difference `a - b` as a pair: the rounded difference and its error."""
    high = a - b
    back = high - a
    return high, (a - (high - back)) - (b + back)


def add_double_double(a: Pair, b: Pair) -> Pair:
    """Return the sum of two numbers, each a pair `high + low`, accurate to some 32 digits."""
    high = a[0] + b[0]
    back = high - a[0]
    low = (a[0] - (high - back)) + (b[0] - back) + a[1] + b[1]
    top = high + low
    return top, low - (top - high)


def sum_pairs(a: Pair) -> Pair:
    """Return the sum of double-double numbers over the first axis, by pairwise summation."""
    high, low = a
    while len(high) > 1:
        half, odd = len(high) // 2, len(high) % 2
        pair = add_double_double(
            (high[:half], low[:half]), (high[half : 2 * half], low[half : 2 * half])
        )
        high, low = (
            np.concatenate([x, y[-1:]]) if odd else x
            for x, y in zip(pair, (high, low), strict=True)
        )
    return high[0], low[0]


def _halves(a: Floats) -> Pair:
    """Split each number into a sum of two numbers of 26 bits."""
    wide = _SPLIT * a
    high = wide - (wide - a)
    return high, a - high


Want = Literal["gradient", "curvature", "floor"]

_TILE_BYTES = 6 << 20  # long tiles, so that threads seldom wait for each other


@dataclass(frozen=True, slots=True, eq=False)
class ScoreDerivatives:
    """Loss of a tile and its derivatives with respect to the scores of each row."""

    loss: float  # summed over rows, with their weights
    slope: Floats  # (m, n) l'(s), times the weight of the row
    curvature: Floats | None  # (m, n) diagonal of l''(s), or (n,) floor f(s), times the weight
    # (m, n) vectors r with l'' = diag(curvature) - r r'; None if m is 1. Rows of l'' sum to zero.
    cross: Floats | None
    least: float  # smallest `weight * f(s)` of the rows of positive weight


class Loss(Protocol):
    """A loss function of scores, given the true class or the response of each row."""

    @property
    def columns(self) -> int:
        """Number m of scores per row."""
        ...

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """Return the loss of a tile of rows and its derivatives at the scores (m, n).

        The array `scores` may be overwritten.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class LossSums(Summable):
    """Loss, gradient and curvature, summed over rows."""

    rows: int
    weight: float
    loss: float
    gradient: Floats  # (d+1, m)
    curvature: Floats | None  # (m (d+1), m (d+1)), or (d+1, d+1) for the floor
    least: float  # smallest `least` of all tiles

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


@dataclass(frozen=True, slots=True, eq=False)
class LossReading:
    """Sum the loss and its derivatives at given coefficients over the rows."""

    features: tuple[str, ...]  # d names, for messages
    anchor: Anchor
    coef: Floats  # (d, m) for offsets
    intercept: Floats  # (m,)
    loss: Loss
    want: Want = "gradient"

    @property
    def summary_size(self) -> int:
        p, m = len(self.coef) + 1, len(self.intercept)
        return {"gradient": p * m, "floor": p * p}.get(self.want, p * m * p * m)

    def read(self, block: Block) -> LossSums:
        accumulator = _LossAccumulator(self, block)
        with np.errstate(invalid="ignore", over="ignore"):  # bad cells are reported below
            for tile in split_rows(block, max(accumulator.size, 1)):
                accumulator.add(tile)
        return accumulator.sums


def tile_rows(width: int) -> int:
    """Return the number of rows of a tile that stays in the cache while it is scored and summed."""
    return min(max(_TILE_BYTES // (8 * width), 256), 32768)


class _LossAccumulator:
    """Sums loss, gradient and curvature over the tiles of one block."""

    def __init__(self, reading: LossReading, block: Block) -> None:
        d, m = reading.coef.shape
        self.reading = reading
        wide = m * (d + 1) if reading.want == "curvature" and m > 1 else 0
        sparse = is_sparse(block.features) and reading.anchor.idle and reading.want == "gradient"
        self.size = len(block) if sparse else min(tile_rows(max(d + 2 * m, wide)), len(block))
        self.offset_buffer = np.empty((0 if sparse else self.size, d))
        self.weighted_buffer = (
            np.empty((self.size, d)) if reading.want != "gradient" else self.offset_buffer
        )
        self.wide_buffer = np.empty(wide * self.size)
        self.coef_rows = np.ascontiguousarray(reading.coef.T)
        p = d + 1
        side = {"gradient": 0, "floor": p}.get(reading.want, m * p)
        none = None if reading.want == "gradient" else np.zeros((side, side))
        self.sums = LossSums(0, 0.0, 0.0, np.zeros((p, m)), none, np.inf)

    def add(self, tile: Block) -> None:
        reading = self.reading
        rows = self._offsets(tile.features)
        scores = _scores(self.coef_rows, rows)
        scores += reading.intercept[:, None]
        derivatives = reading.loss.at(scores, tile, want=reading.want)
        if not np.isfinite(derivatives.loss):
            tile.raise_bad_cell(reading.features)
        gradient = np.vstack([_sums(rows, derivatives.slope), derivatives.slope.sum(axis=1)])
        curvature = None if derivatives.curvature is None else self._curvature(rows, derivatives)
        weight = float(len(tile)) if tile.weight is None else float(tile.weight.sum())
        self.sums = self.sums + LossSums(
            len(tile), weight, derivatives.loss, gradient, curvature, derivatives.least
        )

    def _offsets(self, features: Features) -> Features:
        """Return the offsets of a tile.

        If offsets equal values, the features are returned without a copy.
        """
        anchor = self.reading.anchor
        if anchor.idle and (is_sparse(features) or dense(features).dtype == np.float64):
            return features
        return anchor.offsets(features, out=self.offset_buffer[: features.shape[0]])

    def _curvature(self, rows: Features, derivatives: ScoreDerivatives) -> Floats:
        """Return the curvature, which consists of a block (d+1, d+1) for each pair of scores.

        A lower bound of the curvature (`floor`) is a single block.
        """
        assert derivatives.curvature is not None
        rows = dense(rows)
        if derivatives.cross is None:
            return self._weighted_products(rows, np.atleast_2d(derivatives.curvature)[0])
        (n, d), m = rows.shape, len(derivatives.curvature)
        columns = np.empty((d + 1, n))
        columns[:d], columns[d] = rows.T, 1.0
        wide = self.wide_buffer[: m * (d + 1) * n].reshape(m, d + 1, n)
        np.multiply(derivatives.cross[:, None], columns, out=wide)
        flat = wide.reshape(m * (d + 1), n)
        products = np.dot(flat, flat.T).reshape(m, d + 1, m, d + 1)
        diagonal = products.sum(axis=2)  # curvature[k] is cross[k] times the sum of `cross`
        curvature = -products
        for k in range(m):
            curvature[k, :, k] += diagonal[k]
        return np.asarray(curvature.reshape(len(flat), len(flat)))

    def _weighted_products(self, rows: Floats, weight: Floats) -> Floats:
        """Return the sum of `weight [u, 1][u, 1]'`, (d+1, d+1). Weights must not be negative."""
        d = rows.shape[1]
        products = np.empty((d + 1, d + 1))
        root = np.sqrt(weight)
        weighted = np.multiply(rows, root[:, None], out=self.weighted_buffer[: len(rows)])
        products[:d, :d] = np.dot(weighted.T, weighted)
        products[d, :d] = products[:d, d] = np.dot(root, weighted)
        products[d, d] = weight.sum()
        return products


def _scores(coef_rows: Floats, rows: Features) -> Floats:
    """Return the scores as an (m, n) array, with one line for each score."""
    if is_sparse(rows):
        return np.ascontiguousarray((rows @ coef_rows.T).T)
    if len(coef_rows) == 1:
        return np.asarray(np.dot(rows, coef_rows[0]))[None]
    return np.asarray(np.dot(coef_rows, rows.T))


def _sums(rows: Features, slope: Floats) -> Floats:
    """Return the sum over rows of the features times the slopes of the loss, (d, m)."""
    if is_sparse(rows):
        return np.asarray(rows.T @ slope.T)
    if len(slope) == 1:
        return np.asarray(np.dot(slope[0], rows))[:, None]
    return np.asarray(np.dot(slope, rows)).T


Pass = Callable[[Any], Any]  # function that sums a reading over all rows of a table


@dataclass(frozen=True, slots=True, eq=False)
class TransformedReading:
    """Apply a reading to rows in other coordinates: `z = [u, 1] A` replaces the features."""

    reading: Any  # a reading of q columns with origin 0 and unit 1
    features: tuple[str, ...]  # d names, for messages
    anchor: Anchor  # origin and unit of the features
    frame: Floats  # (d+1, q) A

    @property
    def summary_size(self) -> int:
        return int(self.reading.summary_size)

    def read(self, block: Block) -> Any:
        size = tile_rows(sum(self.frame.shape))
        tiles = split_rows(block, size) if len(block) else [block]
        return sum(self.reading.read(self._transform(tile)) for tile in tiles)

    def _transform(self, tile: Block) -> Block:
        z = np.dot(self.anchor.offsets(tile.features), self.frame[:-1]) + self.frame[-1]
        if not np.isfinite(z).all():
            tile.raise_bad_cell(self.features)
        return replace(tile, features=z)


_PRODUCT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class WeightedProducts(Summable):
    """Sums of weighted products of u = [x, 1], the rows with a constant 1 appended."""

    gram: Floats  # (d + 1, d + 1) sum of `weight u u'`; (0, 0) without weights
    rhs: Floats  # (d + 1, m) sum of u rhs'

    def __add__(self, other: WeightedProducts) -> WeightedProducts:
        return WeightedProducts(self.gram + other.gram, self.rhs + other.rhs)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedProductsReading:
    """Sum products of offsets. Weights and right-hand sides are indexed by row number."""

    anchor: Anchor
    rhs: Floats  # (N, m)
    weights: Floats | None = None  # (N,) not negative

    @property
    def summary_size(self) -> int:
        return (len(self.anchor.unit) + 1) ** 2

    def read(self, block: Block) -> WeightedProducts:
        d = len(self.anchor.unit)
        size = max(_PRODUCT_BYTES // (8 * d), d, 64)
        side = 0 if self.weights is None else d + 1
        total = WeightedProducts(np.zeros((side, side)), np.zeros((d + 1, self.rhs.shape[1])))
        for tile in split_rows(block, size):
            self._add(tile, total)
        return total

    def _add(self, tile: Block, total: WeightedProducts) -> None:
        offsets = self.anchor.offsets(dense(tile.features))
        rows = slice(tile.start, tile.start + len(tile))
        rhs = self.rhs[rows]
        total.rhs[:-1] += offsets.T @ rhs
        total.rhs[-1] += rhs.sum(axis=0)
        if self.weights is None:
            return
        weights = self.weights[rows]
        active = np.flatnonzero(weights)
        if 4 * len(active) < 3 * len(weights):
            offsets, weights = offsets[active], weights[active]
        root = np.sqrt(weights)
        weighted = offsets * root[:, None]
        total.gram[:-1, :-1] += weighted.T @ weighted
        total.gram[-1, :-1] += root @ weighted
        total.gram[-1, -1] += weights.sum()
