"""The pull of Jeffreys' prior: the gradient of half the log determinant of the curvature.

With H the curvature of the summed softmax loss in coordinates theta, z the row in them and
V = Z' H^-1 Z the (K, K) covariance of the scores of the row, Z = C (x) z,

    d/ds_c  log det H / 2  =  p_c (V_cc - v) / 2 - p_c ((V p)_c - p'V p)        v = sum_a V_aa p_a

row by row, times its weight; [u, 1] times that, summed over the rows. Two classes with one score
are the same with p = (1 - mu, mu): h (1/2 - mu), with h the leverage of the row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discriminant.moments.anchor import Anchor
from discriminant.moments.losses import logit
from discriminant.moments.slope import tile_rows
from discriminant.table.schema import Block, Floats


@dataclass(frozen=True, slots=True, eq=False)
class Pulled:
    """The sum."""

    gradient: Floats  # (d+1, K or 1)

    def __add__(self, other: Pulled) -> Pulled:
        return Pulled(self.gradient + other.gradient)

    def __radd__(self, other: object) -> Pulled:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class LeverageReading:
    """Read the pull at given coefficients, with a given curvature."""

    anchor: Anchor
    coef: Floats  # (d, K or 1)
    intercept: Floats  # (K or 1,)
    frame: Floats  # (d+1, q) from theta to coefficients
    contrast: Floats | None  # (K, m); None for two classes with one score
    root: Floats  # (m, q, m q) with H^-1 = root root', over theta column by column

    @property
    def numbers(self) -> int:
        """Size of the summary, and of what is at hand for a row."""
        return self.coef.size + self.root.size

    def read(self, block: Block) -> Pulled:
        """The sum over the rows of one block."""
        total = np.zeros((len(self.coef) + 1, len(self.intercept)))
        size = tile_rows(len(self.coef) + self.root[:, 0].size)
        for lo in range(0, len(block), size):
            total += self._tile(block.rows(lo, min(lo + size, len(block))))
        return Pulled(total)

    def _tile(self, tile: Block) -> Floats:
        offsets = self.anchor.offsets(tile.features)
        rows = offsets @ self.frame[:-1] + self.frame[-1]
        scores = offsets @ self.coef + self.intercept
        each = [rows @ half for half in self.root]  # m of (n, m q)
        pull = self._two(scores, each[0]) if self.contrast is None else self._many(scores, each)
        if tile.weight is not None:
            pull *= tile.weight[:, None]
        return np.vstack([offsets.T @ pull, pull.sum(axis=0)])

    def _two(self, scores: Floats, half: Floats) -> Floats:
        found = logit(scores[:, 0])
        slope = found.hazard_one * found.hazard_zero * 0.5 * (found.hazard_one - found.hazard_zero)
        return np.asarray((np.vecdot(half, half) * slope)[:, None])

    def _many(self, scores: Floats, each: list[Floats]) -> Floats:
        assert self.contrast is not None
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        spread = np.einsum("km,mnx->knx", self.contrast, np.stack(each), optimize=True)
        own = np.vecdot(spread, spread).T  # (n, K) V_kk
        mean = np.einsum("nk,knx->nx", chances, spread, optimize=True)
        cross = np.einsum("knx,nx->nk", spread, mean, optimize=True)  # (V p)_k
        middle = np.vecdot(chances, own)[:, None]
        return np.asarray(
            chances * (0.5 * (own - middle) - (cross - np.vecdot(mean, mean)[:, None]))
        )
