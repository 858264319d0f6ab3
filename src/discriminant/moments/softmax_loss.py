"""Loss of class scores: softmax for K classes, four links for two, and Jeffreys' prior.

    softmax   l(s) = log sum_k exp s_k - s_y          l' = p - e_y     l'' = diag p - p p'
    binary    l(s) = -log P(y | s),  P(1 | s) = mu(s)

A link of two classes is given by its two log probabilities and the two hazards mu'/mu and
mu'/(1 - mu), each exact in its own tail; nothing is computed as 1 - mu. The curvature is the
expected one, mu'^2 / (mu (1 - mu)): the product of both hazards. For the logit it equals the
observed one.

`JeffreysReading` sums the gradient of Jeffreys' prior, half the log determinant of the curvature.
With H the curvature of the summed softmax loss in coordinates theta, z the row in them and
V = Z' H^-1 Z the (K, K) covariance of the scores of the row, Z = C (x) z,

    d/ds_c  log det H / 2  =  p_c (V_cc - v) / 2 - p_c ((V p)_c - p'V p)        v = sum_a V_aa p_a

for each row, times its weight; [u, 1] times that, summed over the rows. Two classes with one score
are the same with p = (1 - mu, mu): h (1/2 - mu), with h the leverage of the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import log_ndtr

from discriminant.moments.anchor import Anchor
from discriminant.moments.loss import ScoreDerivatives, Want, tile_rows
from discriminant.moments.summary_base import Summable
from discriminant.table.blocks import Block, Floats

LinkName = Literal["logit", "probit", "cloglog", "cauchit"]

_SAFE = 500.0  # scores within this of zero need no shift before they are exponentiated
_ROOT_2PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True, slots=True)
class SoftmaxLoss:
    """Softmax loss of K classes, each with a score; the true class is the code of a row."""

    columns: int  # K

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """Return loss and derivatives; the scores are overwritten by the probabilities."""
        rows = np.arange(len(tile))
        true = scores[tile.codes, rows]
        if scores.max() > _SAFE or scores.min() < -_SAFE:
            largest = scores.max(axis=0)
            scores -= largest
            true = true - largest
        probability = np.exp(scores, out=scores)
        total = probability.sum(axis=0)
        probability /= total
        loss = np.log(total) - true
        weight = tile.weight
        floor = probability.min(axis=0) if want == "floor" else None
        curvature = cross = None
        if want == "curvature":
            curvature, cross = _diagonal_and_vector(probability, weight)
        if floor is not None:
            curvature = floor if weight is None else floor * weight
        smallest = _smallest(probability if floor is None else floor, weight)
        probability[tile.codes, rows] -= 1.0
        if weight is not None:
            probability *= weight
        return ScoreDerivatives(
            _weighted_total(loss, weight), probability, curvature, cross, smallest
        )


@dataclass(frozen=True, slots=True)
class BinaryLoss:
    """Loss of two classes with one score, that of the second class."""

    link: LinkName = "logit"

    @property
    def columns(self) -> int:
        """Number of scores: one."""
        return 1

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """Return loss and derivatives."""
        if self.link == "logit":
            return _logit_rows(scores[0], tile, want)
        second = tile.codes.astype(bool)
        tails = LINK_TAILS[self.link](scores[0])
        loss = -np.where(second, tails.log_one, tails.log_zero)
        slope = np.where(second, -tails.hazard_one, tails.hazard_zero)
        curvature = tails.hazard_one * tails.hazard_zero
        smallest = _smallest(curvature, tile.weight)
        return _binary(
            _weighted_total(loss, tile.weight), slope, curvature, smallest, tile.weight, want
        )


class LinkTails(NamedTuple):
    """Log probabilities and hazards of a link at some scores, each exact in its own tail."""

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
    one = np.where(rate < 1.0, one, np.log1p(-missing))  # near one, from the complement
    faint = np.maximum(rate, 1e-300)
    hazard = faint / np.expm1(np.minimum(faint, 700.0))
    hazard = np.where(rate < 700.0, hazard, 0.0)  # beyond, it is less than 1e-300
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
    """Return loss and derivatives of the logit, in few passes over the rows for speed.

    `side` is -1 for the second class and 1 for the first, so that t = side s is how far a row is on
    the wrong side. With small = exp(-|t|) its loss is log(1 + small) + (t + |t|) / 2.
    """
    side = np.where(tile.codes, -1.0, 1.0)
    wrong_side = side * scores
    distance = np.abs(wrong_side)
    small = np.negative(distance)
    np.exp(small, out=small)
    near = small + 1.0
    loss = _weighted_total(np.log(near), tile.weight)
    np.divide(1.0, near, out=near)  # the larger of the two probabilities
    small *= near  # the smaller one
    distance += wrong_side
    loss += 0.5 * _weighted_total(distance, tile.weight)
    slope = np.where(wrong_side > 0, near, small)
    slope *= side
    near *= small
    return _binary(loss, slope, near, _smallest(near, tile.weight), tile.weight, want)


def _binary(
    loss: float,
    slope: Floats,
    curvature: Floats,
    smallest: float,
    weight: Floats | None,
    want: Want,
) -> ScoreDerivatives:
    if weight is not None:
        slope, curvature = slope * weight, curvature * weight
    return ScoreDerivatives(
        loss, slope[None], None if want == "gradient" else curvature[None], None, smallest
    )


def _diagonal_and_vector(probability: Floats, weight: Floats | None) -> tuple[Floats, Floats]:
    """Return p, the diagonal and the vector of diag p - p p', times the weight."""
    if weight is None:
        return probability.copy(), probability.copy()
    return probability * weight, probability * np.sqrt(weight)


def _weighted_total(loss: Floats, weight: Floats | None) -> float:
    return float(loss.sum()) if weight is None else float(loss @ weight)


def _smallest(floor: Floats, weight: Floats | None) -> float:
    if weight is None:
        return float(floor.min(initial=np.inf))
    positive = weight > 0
    return float((floor * weight)[..., positive].min(initial=np.inf))


@dataclass(frozen=True, slots=True, eq=False)
class JeffreysGradient(Summable):
    """Gradient of Jeffreys' prior, summed over rows."""

    gradient: Floats  # (d+1, K or 1)

    def __add__(self, other: JeffreysGradient) -> JeffreysGradient:
        return JeffreysGradient(self.gradient + other.gradient)


@dataclass(frozen=True, slots=True, eq=False)
class JeffreysReading:
    """Sum the gradient of Jeffreys' prior at given coefficients and curvature."""

    anchor: Anchor
    coef: Floats  # (d, K or 1)
    intercept: Floats  # (K or 1,)
    frame: Floats  # (d+1, q) from theta to coefficients
    contrast: Floats | None  # (K, m); None for two classes with one score
    root: Floats  # (m, q, m q) with H^-1 = root root', over theta column by column

    @property
    def summary_size(self) -> int:
        """Size of the summary and of the matrices used for each row."""
        return self.coef.size + self.root.size

    def read(self, block: Block) -> JeffreysGradient:
        total = np.zeros((len(self.coef) + 1, len(self.intercept)))
        size = tile_rows(len(self.coef) + self.root[:, 0].size)
        for lo in range(0, len(block), size):
            total += self._tile(block.rows(lo, min(lo + size, len(block))))
        return JeffreysGradient(total)

    def _tile(self, tile: Block) -> Floats:
        offsets = self.anchor.offsets(tile.features)
        rows = offsets @ self.frame[:-1] + self.frame[-1]
        scores = offsets @ self.coef + self.intercept
        halves = [rows @ half for half in self.root]  # m of (n, m q)
        gradient = (
            self._binary_gradient(scores, halves[0])
            if self.contrast is None
            else self._softmax_gradient(scores, halves)
        )
        if tile.weight is not None:
            gradient *= tile.weight[:, None]
        return np.vstack([offsets.T @ gradient, gradient.sum(axis=0)])

    def _binary_gradient(self, scores: Floats, half: Floats) -> Floats:
        tails = logit(scores[:, 0])
        slope = tails.hazard_one * tails.hazard_zero * 0.5 * (tails.hazard_one - tails.hazard_zero)
        return np.asarray((np.vecdot(half, half) * slope)[:, None])

    def _softmax_gradient(self, scores: Floats, halves: list[Floats]) -> Floats:
        assert self.contrast is not None
        probability = np.exp(scores - scores.max(axis=1, keepdims=True))
        probability /= probability.sum(axis=1, keepdims=True)
        score_roots = np.einsum("km,mnx->knx", self.contrast, np.stack(halves), optimize=True)
        variance = np.vecdot(score_roots, score_roots).T  # (n, K) V_kk
        mean_root = np.einsum("nk,knx->nx", probability, score_roots, optimize=True)
        cross = np.einsum("knx,nx->nk", score_roots, mean_root, optimize=True)  # (V p)_k
        mean_variance = np.vecdot(probability, variance)[:, None]
        return np.asarray(
            probability
            * (
                0.5 * (variance - mean_variance)
                - (cross - np.vecdot(mean_root, mean_root)[:, None])
            )
        )
