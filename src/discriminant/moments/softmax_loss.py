"""Losses of classifiers: softmax for K classes, four links for two classes; Jeffreys' prior.

    softmax   l(s) = log sum_k exp s_k - s_y          l' = p - e_y     l'' = diag p - p p'
    binary    l(s) = -log P(y | s),  P(1 | s) = mu(s)

A link for two classes is described by the log probabilities of both classes and by both hazards,
`mu'/mu` and `mu'/(1 - mu)`. None of these four quantities is computed from `1 - mu`, so each is
accurate even if it is tiny.
  The expected curvature is used, `mu'^2 / (mu (1 - mu))`, which is the product of both hazards. For
  the logit link, the expected curvature equals the observed curvature.

`JeffreysGradientReading` sums the gradient of the log of Jeffreys' prior, which is half the log
determinant of the curvature. Let `H` be the curvature of the summed softmax loss in coordinates
`theta`, `z` the row in these coordinates, `C` the contrasts, `Z = C (x) z`, and `V = Z' H^-1 Z` the
covariance (K, K) of the scores of the row. Then

    d/ds_c  log det H / 2  =  p_c (V_cc - v) / 2 - p_c ((V p)_c - p'V p)        v = sum_a V_aa p_a

for each row, times its weight. The gradient with respect to the coefficients is the sum, over the
rows, of this derivative times `[u, 1]`. For two classes with one score, `p = (1 - mu, mu)`, and the
derivative is `h (1/2 - mu)`, where `h` is the leverage of the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import log_ndtr

from discriminant.moments.anchor import Anchor
from discriminant.moments.loss_gradient_sums import ScoreDerivatives, Want, tile_rows
from discriminant.moments.summary_base import Summable, split_rows
from discriminant.table.blocks import Block, Floats

LinkName = Literal["logit", "probit", "cloglog", "cauchit"]

_SAFE = 500.0  # exp of scores up to this size cannot overflow, so they need no shift
_CANCELLED = 1e-3  # loss per row, relative to the largest score, below which terms cancel too much
_LOG_ROOT_2PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True, slots=True)
class SoftmaxLoss:
    """Softmax loss of K classes with one score each; `codes` holds the true class of each row."""

    columns: int  # K

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """Return the loss and its derivatives. The array `scores` is overwritten."""
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
        curvature = cross = None
        if want == "floor":
            floor = probability.min(axis=0)
            curvature = floor if weight is None else floor * weight
            smallest = _smallest(floor, weight)
        else:
            if want == "curvature":
                curvature, cross = _diagonal_and_vector(probability, weight)
            smallest = _smallest(probability, weight)
        probability[tile.codes, rows] -= 1.0
        if weight is not None:
            probability *= weight
        return ScoreDerivatives(
            _weighted_total(loss, weight), probability, curvature, cross, smallest
        )


@dataclass(frozen=True, slots=True)
class BinaryLoss:
    """Loss of two classes with a single score; a large score indicates the second class."""

    link: LinkName = "logit"

    @property
    def columns(self) -> int:
        """Number of scores: one."""
        return 1

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """Return the loss and its derivatives with respect to the score."""
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
    """Log probabilities and hazards of a link at given scores, accurate even if they are tiny."""

    log_one: Floats  # log mu
    log_zero: Floats  # log(1 - mu)
    hazard_one: Floats  # mu' / mu
    hazard_zero: Floats  # mu' / (1 - mu)


def logit_tails(scores: Floats) -> LinkTails:
    """Return the log probabilities and hazards of the logit link, mu = 1 / (1 + exp(-s))."""
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


def probit_tails(scores: Floats) -> LinkTails:
    """Return the log probabilities and hazards of the probit link, mu = Phi(s)."""
    density = -0.5 * scores * scores - _LOG_ROOT_2PI  # log of the normal density
    log_one, log_zero = log_ndtr(scores), log_ndtr(-scores)
    return LinkTails(log_one, log_zero, np.exp(density - log_one), np.exp(density - log_zero))


def cloglog_tails(scores: Floats) -> LinkTails:
    """Return the log probabilities and hazards of the complementary log-log link.

    Here `log(1 - mu) = -exp(s)` and `mu'/(1 - mu) = exp(s)`.
    """
    rate = np.exp(np.minimum(scores, 700.0))
    positive = np.maximum(rate, 1e-300)
    log_one = np.where(rate < 1e-300, scores, np.log(-np.expm1(-positive)))
    complement = np.exp(-np.maximum(rate, 1.0))
    log_one = np.where(rate < 1.0, log_one, np.log1p(-complement))  # exact near mu = 1
    hazard = positive / np.expm1(np.minimum(positive, 700.0))
    hazard = np.where(rate < 700.0, hazard, 0.0)  # at larger rates it is below 1e-300
    return LinkTails(log_one, -rate, hazard, rate)


def cauchit_tails(scores: Floats) -> LinkTails:
    """Return the log probabilities and hazards of the cauchit link, mu = 1/2 + arctan(s) / pi.

    The smaller of `mu` and `1 - mu` is computed as `arctan(1 / |s|) / pi`, which is accurate.
    """
    far = np.arctan2(1.0, np.abs(scores)) / np.pi  # the smaller of mu and 1 - mu
    up = scores >= 0
    mean, complement = np.where(up, 1.0 - far, far), np.where(up, far, 1.0 - far)
    density = 1.0 / (np.pi * (1.0 + scores * scores))
    log_near, log_far = np.log1p(-far), np.log(far)
    return LinkTails(
        np.where(up, log_near, log_far),
        np.where(up, log_far, log_near),
        density / mean,
        density / complement,
    )


LINK_TAILS = {
    "logit": logit_tails,
    "probit": probit_tails,
    "cloglog": cloglog_tails,
    "cauchit": cauchit_tails,
}


def _logit_rows(scores: Floats, tile: Block, want: Want) -> ScoreDerivatives:
    """Return the logistic loss and its derivatives, in few passes over the rows for speed.

    `side` is -1 for the second class and 1 for the first, so `t = side s` is positive if the row is
    misclassified. With `odds = exp(-t)` and `wrong = 1 / (1 + odds)`, the probability of the other
    class,

        l = log(1 + odds) + t      l' = side wrong      l'' = odds wrong^2

    If nearly all of the loss cancels in this sum, or `odds` overflows, the loss of each row is
    computed as `log(1 + exp(-|t|)) + (t + |t|) / 2`.
    """
    side = np.where(tile.codes, -1.0, 1.0)
    t = np.multiply(scores, side, out=scores)
    odds = np.negative(t)
    size = max(float(odds.max(initial=0.0)), 0.0)
    if not size < _SAFE:
        return _distant_logit_rows(t, side, tile, want)
    np.exp(odds, out=odds)
    wrong = odds + 1.0
    loss = _weighted_total(np.log(wrong), tile.weight) + _weighted_total(t, tile.weight)
    if loss < _CANCELLED * size * len(t):
        return _distant_logit_rows(t, side, tile, want)
    np.divide(1.0, wrong, out=wrong)
    odds *= wrong
    odds *= wrong
    wrong *= side
    return _binary(loss, wrong, odds, _smallest(odds, tile.weight), tile.weight, want)


def _distant_logit_rows(t: Floats, side: Floats, tile: Block, want: Want) -> ScoreDerivatives:
    """Return the logistic loss and its derivatives, accurate even for rows far from the boundary.

    `small = exp(-|t|)` is the odds of the less probable class.
    """
    distance = np.abs(t)
    small = np.negative(distance)
    np.exp(small, out=small)
    near = small + 1.0
    loss = _weighted_total(np.log(near), tile.weight)
    np.divide(1.0, near, out=near)  # the larger of the two probabilities
    small *= near  # the smaller one
    distance += t
    loss += 0.5 * _weighted_total(distance, tile.weight)
    slope = np.where(t > 0, near, small)
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
    """Return the weighted terms of the curvature `diag p - p p'`: the diagonal, and the vector p.

    The diagonal is multiplied by the row weight, and the vector by the square root of the weight.
    """
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
    """Gradient of the log of Jeffreys' prior, summed over rows."""

    gradient: Floats  # (d+1, K or 1)

    def __add__(self, other: JeffreysGradient) -> JeffreysGradient:
        return JeffreysGradient(self.gradient + other.gradient)


@dataclass(frozen=True, slots=True, eq=False)
class JeffreysGradientReading:
    """Sum the gradient of the log of Jeffreys' prior at given coefficients and curvature."""

    anchor: Anchor
    coef: Floats  # (d, K or 1)
    intercept: Floats  # (K or 1,)
    frame: Floats  # (d+1, q) maps theta to coefficients
    contrast: Floats | None  # (K, m); None for two classes with one score
    root: Floats  # (m, q, m q) with H^-1 = root root'; theta is stacked by columns

    @property
    def summary_size(self) -> int:
        """Number of values in the summary and in the temporary matrices of each row."""
        return self.coef.size + self.root.size

    def read(self, block: Block) -> JeffreysGradient:
        total = np.zeros((len(self.coef) + 1, len(self.intercept)))
        size = tile_rows(len(self.coef) + self.root[:, 0].size)
        for tile in split_rows(block, size):
            total += self._tile(tile)
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
        tails = logit_tails(scores[:, 0])
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
