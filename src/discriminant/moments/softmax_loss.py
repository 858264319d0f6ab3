"""What a score costs where the truth is a class: softmax, and two classes by a link.

    softmax   l(s) = log sum_k exp s_k - s_y          l' = p - e_y     l'' = diag p - p p'
    two       l(s) = -log P(y | s),  P(1 | s) = mu(s)

A link of two classes is given by its two log probabilities and the two hazards mu'/mu and
mu'/(1 - mu), each exact in its own tail; nothing is worked out as 1 - mu. Its curvature is the
expected one, mu'^2 / (mu (1 - mu)): the product of both hazards. With the logit that is the
observed one too.

The pull of Jeffreys' prior: the gradient of half the log determinant of the curvature.

With H the curvature of the summed softmax loss in coordinates theta, z the row in them and
V = Z' H^-1 Z the (K, K) covariance of the scores of the row, Z = C (x) z,

    d/ds_c  log det H / 2  =  p_c (V_cc - v) / 2 - p_c ((V p)_c - p'V p)        v = sum_a V_aa p_a

row by row, times its weight; [u, 1] times that, summed over the rows. Two classes with one score
are the same with p = (1 - mu, mu): h (1/2 - mu), with h the leverage of the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import log_ndtr

from discriminant.moments.anchor import Anchor
from discriminant.moments.loss import ScoreDerivatives, Want, tile_rows
from discriminant.table.blocks import Block, Floats

LinkName = Literal["logit", "probit", "cloglog", "cauchit"]

_SAFE = 500.0  # scores within this of zero need no shift before they are exponentiated
_ROOT_2PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True, slots=True)
class SoftmaxLoss:
    """K classes, each with a score; the truth is the code of a row."""

    columns: int  # K

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """Loss and derivatives; the scores become the probabilities."""
        rows = np.arange(len(tile))
        true = scores[tile.codes, rows]
        if scores.max() > _SAFE or scores.min() < -_SAFE:
            top = scores.max(axis=0)
            scores -= top
            true = true - top
        chances = np.exp(scores, out=scores)
        total = chances.sum(axis=0)
        chances /= total
        loss = np.log(total) - true
        weight = tile.weight
        least = chances.min(axis=0) if want == "floor" else None
        curve = cross = None
        if want == "curvature":
            curve, cross = _spread(chances, weight)
        if least is not None:
            curve = least if weight is None else least * weight
        smallest = _smallest(chances if least is None else least, weight)
        chances[tile.codes, rows] -= 1.0
        if weight is not None:
            chances *= weight
        return ScoreDerivatives(_total(loss, weight), chances, curve, cross, smallest)


@dataclass(frozen=True, slots=True)
class BinaryLoss:
    """Two classes and one score, that of the second."""

    link: LinkName = "logit"

    @property
    def columns(self) -> int:
        """One score."""
        return 1

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """Loss and derivatives."""
        if self.link == "logit":
            return _logit_rows(scores[0], tile, want)
        second = tile.codes.astype(bool)
        found = LINK_TAILS[self.link](scores[0])
        loss = -np.where(second, found.log_one, found.log_zero)
        slope = np.where(second, -found.hazard_one, found.hazard_zero)
        curve = found.hazard_one * found.hazard_zero
        smallest = _smallest(curve, tile.weight)
        return _binary(_total(loss, tile.weight), slope, curve, smallest, tile.weight, want)


class LinkTails(NamedTuple):
    """A link at some scores."""

    log_one: Floats  # log mu
    log_zero: Floats  # log(1 - mu)
    hazard_one: Floats  # mu' / mu
    hazard_zero: Floats  # mu' / (1 - mu)


def logit(scores: Floats) -> LinkTails:
    """mu = 1 / (1 + exp(-s))."""
    small = np.exp(-np.abs(scores))
    near, far = 1.0 / (1.0 + small), small / (1.0 + small)
    up = scores >= 0
    log_near = -np.log1p(small)
    log_far = log_near - np.abs(scores)
    return LinkTails(
        np.where(up, log_near, log_far),
        np.where(up, log_far, log_near),
        np.where(up, far, near),
        np.where(up, near, far),
    )


def probit(scores: Floats) -> LinkTails:
    """mu = Phi(s)."""
    density = -0.5 * scores * scores - _ROOT_2PI
    one, zero = log_ndtr(scores), log_ndtr(-scores)
    return LinkTails(one, zero, np.exp(density - one), np.exp(density - zero))


def cloglog(scores: Floats) -> LinkTails:
    """mu = 1 - exp(-exp(s)): log(1 - mu) is -exp(s), and mu'/(1 - mu) is exp(s)."""
    rate = np.exp(np.minimum(scores, 700.0))
    one = np.where(rate < 1e-300, scores, np.log(-np.expm1(-np.maximum(rate, 1e-300))))
    missing = np.exp(-np.maximum(rate, 1.0))
    one = np.where(rate < 1.0, one, np.log1p(-missing))  # near one, from what is missing
    faint = np.maximum(rate, 1e-300)
    some = faint / np.expm1(np.minimum(faint, 700.0))
    hazard = np.where(rate < 700.0, some, 0.0)  # beyond, it is less than 1e-300
    return LinkTails(one, -rate, hazard, rate)


def cauchit(scores: Floats) -> LinkTails:
    """mu = 1/2 + arctan(s) / pi; in a tail arctan(1 / |s|) / pi, which is exact there."""
    far = np.arctan2(1.0, np.abs(scores)) / np.pi  # the smaller of mu and 1 - mu
    up = scores >= 0
    one, zero = np.where(up, 1.0 - far, far), np.where(up, far, 1.0 - far)
    density = 1.0 / (np.pi * (1.0 + scores * scores))
    log_near, log_far = np.log1p(-far), np.log(far)
    return LinkTails(
        np.where(up, log_near, log_far),
        np.where(up, log_far, log_near),
        density / one,
        density / zero,
    )


LINK_TAILS = {"logit": logit, "probit": probit, "cloglog": cloglog, "cauchit": cauchit}


def _logit_rows(scores: Floats, tile: Block, want: Want) -> ScoreDerivatives:
    """The logit, with few and short passes over the rows: this is where time goes.

    `side` is -1 for the second class and 1 for the first, so that t = side s is how far a row is on
    the wrong side, and with small = exp(-|t|) its loss is log(1 + small) + (t + |t|) / 2.
    """
    side = np.where(tile.codes, -1.0, 1.0)
    against = side * scores
    away = np.abs(against)
    small = np.negative(away)
    np.exp(small, out=small)
    near = small + 1.0
    loss = _total(np.log(near), tile.weight)
    np.divide(1.0, near, out=near)  # the larger of both probabilities
    small *= near  # the smaller one
    away += against
    loss += 0.5 * _total(away, tile.weight)
    slope = np.where(against > 0, near, small)
    slope *= side
    near *= small
    return _binary(loss, slope, near, _smallest(near, tile.weight), tile.weight, want)


def _binary(
    loss: float,
    slope: Floats,
    curve: Floats,
    smallest: float,
    weight: Floats | None,
    want: Want,
) -> ScoreDerivatives:
    if weight is not None:
        slope, curve = slope * weight, curve * weight
    return ScoreDerivatives(
        loss, slope[None], None if want == "gradient" else curve[None], None, smallest
    )


def _spread(chances: Floats, weight: Floats | None) -> tuple[Floats, Floats]:
    """Diagonal p and vector p of diag p - p p', times the weight."""
    if weight is None:
        return chances.copy(), chances.copy()
    return chances * weight, chances * np.sqrt(weight)


def _total(loss: Floats, weight: Floats | None) -> float:
    return float(loss.sum()) if weight is None else float(loss @ weight)


def _smallest(floor: Floats, weight: Floats | None) -> float:
    if weight is None:
        return float(floor.min(initial=np.inf))
    counts = weight > 0
    return float((floor * weight)[..., counts].min(initial=np.inf))


@dataclass(frozen=True, slots=True, eq=False)
class JeffreysGradient:
    """The sum."""

    gradient: Floats  # (d+1, K or 1)

    def __add__(self, other: JeffreysGradient) -> JeffreysGradient:
        return JeffreysGradient(self.gradient + other.gradient)

    def __radd__(self, other: object) -> JeffreysGradient:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class JeffreysReading:
    """Read the pull at given coefficients, with a given curvature."""

    anchor: Anchor
    coef: Floats  # (d, K or 1)
    intercept: Floats  # (K or 1,)
    frame: Floats  # (d+1, q) from theta to coefficients
    contrast: Floats | None  # (K, m); None for two classes with one score
    root: Floats  # (m, q, m q) with H^-1 = root root', over theta column by column

    @property
    def summary_size(self) -> int:
        """Size of the summary, and of what is at hand for a row."""
        return self.coef.size + self.root.size

    def read(self, block: Block) -> JeffreysGradient:
        """The sum over the rows of one block."""
        total = np.zeros((len(self.coef) + 1, len(self.intercept)))
        size = tile_rows(len(self.coef) + self.root[:, 0].size)
        for lo in range(0, len(block), size):
            total += self._tile(block.rows(lo, min(lo + size, len(block))))
        return JeffreysGradient(total)

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
