"""Probability scores as sums over rows: log loss, Brier score and calibration of posteriors.

For a row of weight w and class y with posterior p:

    log loss    l = -log p_y                     infinite where the posterior of the true class is 0
    Brier       b = sum_k (p_k - [y = k])^2      from 0 to 2
    calibration sums of w, w p_k and w [y = k] over the rows whose p_k lies in each of B bins,
                (j/B, (j+1)/B], and p_k = 0 in the first bin; also for the largest p_k, with
                [y is that class]

The squared losses are also summed, so that the standard errors of the mean losses can be computed.
The default number of bins, B, has many divisors, because bins can be merged later but not split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import MomentsMismatchError
from discriminant.moments.summary_base import Summable
from discriminant.table.blocks import Codes, Floats, Places

BINS = 60
TIE = 1e-9  # posteriors, costs and limits with a smaller relative difference are equal
_TILE = 1 << 15  # number of posteriors processed at a time, which fit into the cache


@dataclass(frozen=True, slots=True, eq=False)
class ProbabilityScores(Summable):
    """Losses and calibration of posteriors of K classes."""

    weight: Floats  # (2, K) by true class, for rows with a posterior: sums of w, w^2
    log_loss: Floats  # (4, K) by true class: sums of w l, w l^2, w^2 l, w^2 l^2
    brier: Floats  # (4, K) by true class: the same sums of b
    bins: Floats  # (3, K, B) by the posterior of a class: sums of w, w p_k, w [y = k]
    top: Floats  # (3, B) by the largest posterior: sums of w, w p, w [y is that class]

    @classmethod
    def empty(cls, classes: int, *, bins: int = BINS) -> ProbabilityScores:
        """Return scores without rows."""
        losses = np.zeros((4, classes)), np.zeros((4, classes))
        binned = np.zeros((3, classes, bins)), np.zeros((3, bins))
        return cls(np.zeros((2, classes)), *losses, *binned)

    @classmethod
    def from_posteriors(
        cls,
        log_posterior: Floats,
        codes: Codes,
        weight: Floats | None = None,
        *,
        bins: int = BINS,
    ) -> ProbabilityScores:
        """Return the scores of n rows.

        Weights must be positive; the default weight is one.

        >>> posterior = np.array([[0.5, 0.5], [0.1, 0.9]])
        >>> scores = ProbabilityScores.from_posteriors(np.log(posterior), np.array([0, 1]))
        >>> scores.brier[0].round(12).tolist()
        [0.5, 0.02]
        """
        n, K = log_posterior.shape
        scores = cls.empty(K, bins=bins)
        size = max(_TILE // K, 64)
        for lo in range(0, n, size):
            part = slice(lo, min(lo + size, n))
            logs = np.ascontiguousarray(log_posterior[part].T)  # (K, n), contiguous along the rows
            part_weight = None if weight is None else weight[part]
            _add(scores, logs, codes[part].astype(np.intp), part_weight)
        return scores

    def reindex(self, places: npt.NDArray[np.intp], classes: int) -> ProbabilityScores:
        """Extend the scores to a larger set of classes.

        Class k of these scores has the index `places[k]` in the larger set.
        """
        wider = ProbabilityScores.empty(classes, bins=self.top.shape[1])
        wider.weight[:, places], wider.bins[:, places] = self.weight, self.bins
        wider.log_loss[:, places], wider.brier[:, places] = self.log_loss, self.brier
        wider.top[:] = self.top
        return wider

    def __add__(self, other: ProbabilityScores) -> ProbabilityScores:
        if self.bins.shape != other.bins.shape:
            raise MomentsMismatchError.of_shape("bins", other.bins.shape, self.bins.shape)
        return ProbabilityScores(
            self.weight + other.weight,
            self.log_loss + other.log_loss,
            self.brier + other.brier,
            self.bins + other.bins,
            self.top + other.top,
        )


def bin_edges(bins: int) -> Floats:
    """Return the B - 1 inner edges j/B of the bins, increased slightly by the factor 1 + `TIE`.

    Round probabilities, such as a vote share of 0.05, often lie on an edge, and should count in the
    bin below the edge. Computing such a probability from its logarithm may change its last digit;
    because the edge is increased, it still counts in the lower bin.
    """
    return np.asarray(np.arange(1, bins) / bins * (1.0 + TIE))


def _add(scores: ProbabilityScores, logs: Floats, codes: Places, weight: Floats | None) -> None:
    """Add rows with log posteriors (K, n) to the sums in place."""
    K, n = logs.shape
    truth = codes * n + np.arange(n)  # flat indices of the true classes among K n posteriors
    p, log_loss = np.exp(logs), -logs.ravel()[truth]
    _add_calibration(scores, p, codes, truth, weight)
    p.ravel()[truth] = -np.expm1(-log_loss)  # 1 - p from log p is accurate even near p = 1
    brier = np.einsum("kn,kn->n", p, p)
    scores.weight[:] += _sum_by_class(
        codes, K, (None, None) if weight is None else (weight, weight**2)
    )
    scores.log_loss[:] += _loss_sums(log_loss, codes, weight, K)
    scores.brier[:] += _loss_sums(brier, codes, weight, K)


def _add_calibration(
    scores: ProbabilityScores, p: Floats, codes: Places, truth: Places, weight: Floats | None
) -> None:
    K, B = len(p), scores.top.shape[1]
    bin_index = _bin_of(p, B)
    for k in range(K):
        scores.bins[:2, k] += _bin_sums(bin_index[k], p[k], weight, B)
    true = bin_index.ravel()[truth] + B * codes
    scores.bins[2] += np.bincount(true, weight, minlength=K * B).reshape(K, B)
    largest, predicted = max_and_argmax(p)
    correct = (predicted == codes).astype(np.float64)
    top_bin = bin_index.max(axis=0)  # the bin index increases with p
    scores.top[:2] += _bin_sums(top_bin, largest, weight, B)
    scores.top[2] += np.bincount(
        top_bin, correct if weight is None else weight * correct, minlength=B
    )


def max_and_argmax(p: Floats) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Return the largest value of each column of `p`, (K, n), and its index.

    If there are few classes, this function is about ten times as fast as `argmax` along the first
    axis.

    >>> max_and_argmax(np.array([[0.3, 0.5], [0.7, 0.5]]))
    (array([0.7, 0.5]), array([1, 0]))
    """
    largest, best = p[0].copy(), np.zeros(p.shape[1], dtype=_code_type(len(p)))
    for k in range(1, len(p)):
        larger = (p[k] > largest).view(np.int8).astype(best.dtype, copy=False)
        larger *= best.dtype.type(k)  # k where class k is larger, else 0: faster than a mask
        np.maximum(best, larger, out=best)
        np.maximum(largest, p[k], out=largest)
    return largest, best.astype(np.intp)


def _code_type(classes: int) -> type[np.signedinteger[Any]]:
    return np.int8 if classes <= 1 << 7 else np.int32


def _bin_of(p: Floats, bins: int) -> Places:
    """Return the bin of each p. A value on an edge belongs to the bin below, as in scikit-learn.

    >>> _bin_of(np.array([0.0, 0.5, 0.51, 1.0]), 2).tolist()
    [0, 0, 1, 1]
    """
    if not (p.min(initial=0.0) >= 0.0 and p.max(initial=0.0) <= 1.0 + 0.5 / bins):
        return np.searchsorted(
            bin_edges(bins), p
        )  # values outside [0, 1] go to the first or last bin
    edges = np.concatenate(([-np.inf], bin_edges(bins), [np.inf]))
    index = (p * bins).astype(np.intp)  # correct, except on the lower edge of the next bin
    index -= p <= edges[index]
    return index


def _bin_sums(bin_index: Places, p: Floats, weight: Floats | None, bins: int) -> Floats:
    """Return a (2, bins) array: the sum of weights and the weighted sum of `p` in each bin."""
    weighted = p if weight is None else weight * p
    return np.array([np.bincount(bin_index, each, minlength=bins) for each in (weight, weighted)])


def _loss_sums(loss: Floats, codes: Places, weight: Floats | None, K: int) -> Floats:
    if weight is None:
        return np.tile(_sum_by_class(codes, K, (loss, loss * loss)), (2, 1))
    first = weight * loss
    return _sum_by_class(codes, K, (first, first * loss, weight * first, first**2))


def _sum_by_class(codes: Places, K: int, values: tuple[Floats | None, ...]) -> Floats:
    return np.array([np.bincount(codes, value, minlength=K) for value in values], dtype=np.float64)
