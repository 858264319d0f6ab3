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
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from discriminant.moments.anchor import Anchor
from discriminant.table.schema import Block, Features, Floats, dense, is_sparse

Want = Literal["gradient", "curvature", "floor"]

_TILE_BYTES = 6 << 20  # tiles long enough that threads do not wait for one another


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """A loss and its derivatives by the scores, row by row."""

    loss: float  # summed over rows, with their weights
    slope: Floats  # (m, n) l'(s), times the weight of the row
    curve: Floats | None  # (m, n) diagonal of l''(s), or (n,) floor f(s); times the weight
    cross: Floats | None  # (m, n) r(s), where l'' = diag(curve) - r r'; None where m is one
    least: float  # smallest weight times f(s) of a row that counts


class Loss(Protocol):
    """What scores cost, given the truth."""

    @property
    def columns(self) -> int:
        """m, how many scores a row has."""
        ...

    def at(self, scores: Floats, tile: Block, *, want: Want) -> Local:
        """Loss and derivatives at scores (m, n) of a tile; the scores may be overwritten."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Slope:
    """The sums."""

    rows: int
    weight: float
    loss: float
    gradient: Floats  # (d+1, m)
    curvature: Floats | None  # (m (d+1), m (d+1)) or, as floor, (d+1, d+1)
    least: float  # over all rows

    def __add__(self, other: Slope) -> Slope:
        ours, theirs = self.curvature, other.curvature
        return Slope(
            self.rows + other.rows,
            self.weight + other.weight,
            self.loss + other.loss,
            self.gradient + other.gradient,
            None if ours is None or theirs is None else ours + theirs,
            min(self.least, other.least),
        )

    def __radd__(self, other: object) -> Slope:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class SlopeReading:
    """Read loss and derivatives at given coefficients."""

    features: tuple[str, ...]  # d names, for messages
    anchor: Anchor
    coef: Floats  # (d, m) for offsets
    intercept: Floats  # (m,)
    loss: Loss
    want: Want = "gradient"

    @property
    def numbers(self) -> int:
        """Size of the summary."""
        p, m = len(self.coef) + 1, len(self.intercept)
        return {"gradient": p * m, "floor": p * p}.get(self.want, p * m * p * m)

    def read(self, block: Block) -> Slope:
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

    def __init__(self, reading: SlopeReading, block: Block) -> None:
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
        self.slope = Slope(0, 0.0, 0.0, np.zeros((p, m)), none, np.inf)

    def add(self, tile: Block) -> None:
        reading, now = self.reading, self.slope
        rows = self._offsets(tile.features)
        scores = _times(self.across, rows)
        scores += reading.intercept[:, None]
        local = reading.loss.at(scores, tile, want=reading.want)
        if not np.isfinite(local.loss):
            tile.blame(reading.features)
        gradient = np.vstack([_sums(rows, local.slope), local.slope.sum(axis=1)])
        curvature = None if local.curve is None else self._curvature(rows, local)
        weight = float(len(tile)) if tile.weight is None else float(tile.weight.sum())
        self.slope = now + Slope(len(tile), weight, local.loss, gradient, curvature, local.least)

    def _offsets(self, features: Features) -> Features:
        """Offsets of a tile; the rows themselves where these are their own offsets."""
        anchor = self.reading.anchor
        if anchor.idle and (is_sparse(features) or dense(features).dtype == np.float64):
            return features
        return anchor.offsets(features, out=self.room[: features.shape[0]])

    def _curvature(self, rows: Features, local: Local) -> Floats:
        """One block of (d+1, d+1) for each pair of scores; for a floor only one."""
        assert local.curve is not None
        rows = dense(rows)
        if local.cross is None:
            return self._weighted(rows, np.atleast_2d(local.curve)[0])
        m, p = len(local.curve), rows.shape[1] + 1
        ones = np.hstack([rows, np.ones((len(rows), 1))])
        wide = (local.cross.T[:, :, None] * ones[:, None, :]).reshape(len(rows), m * p)
        found = np.asarray(-np.dot(wide.T, wide))
        for k in range(m):
            found[k * p : (k + 1) * p, k * p : (k + 1) * p] += self._weighted(rows, local.curve[k])
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
