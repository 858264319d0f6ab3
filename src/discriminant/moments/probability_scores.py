"""What posteriors were worth, now that the classes are known: losses and calibration, as sums.

For a row of weight w and class y with posterior p:

    log loss    l = -log p_y                     infinite where the posterior of the truth is 0
    Brier       b = sum_k (p_k - [y = k])^2      from 0 to 2
    calibration sums of w, w p_k and w [y = k] over the rows whose p_k lies in each of B bins,
                (j/B, (j+1)/B] and 0 in the first; and likewise of the largest p_k, of being right

Losses are summed with their squares, so that their means have standard errors. B has many
divisors: bins can be put together afterwards, but not taken apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discriminant.errors import MomentsMismatchError
from discriminant.table.blocks import Codes, Floats, Places

BINS = 60
TIE = 1e-9  # relative: posteriors, expected costs and their limits that differ by less are equal
_TILE = 1 << 15  # posteriors at a time, so that they stay in the cache


@dataclass(frozen=True, slots=True, eq=False)
class ProbabilityScores:
    """Losses and calibration of posteriors of K classes."""

    weight: Floats  # (2, K) of the rows that have a posterior, by true class: sums of w, w^2
    log_loss: Floats  # (4, K) by true class: sums of w l, w l^2, w^2 l, w^2 l^2
    brier: Floats  # (4, K) likewise
    bins: Floats  # (3, K, B) by the posterior of a class: sums of w, w p_k, w [y = k]
    top: Floats  # (3, B) by the largest posterior: sums of w, w p, w [y is that class]

    @classmethod
    def empty(cls, classes: int, *, bins: int = BINS) -> ProbabilityScores:
        """Of no rows."""
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
        """Of n rows, all of positive weight; None is one for every row.

        >>> logs = np.log([[0.5, 0.5], [0.1, 0.9]])
        >>> found = ProbabilityScores.from_posteriors(logs, np.array([0, 1]))
        >>> found.brier[0].round(12).tolist()
        [0.5, 0.02]
        """
        n, K = log_posterior.shape
        found = cls.empty(K, bins=bins)
        size = max(_TILE // K, 64)
        for lo in range(0, n, size):
            part = slice(lo, min(lo + size, n))
            logs = np.ascontiguousarray(log_posterior[part].T)  # (K, n): along the rows
            some = None if weight is None else weight[part]
            _add(found, logs, codes[part].astype(np.intp), some)
        return found

    def reindex(self, places: npt.NDArray[np.intp], classes: int) -> ProbabilityScores:
        """The same among more classes, of which these were at `places`."""
        found = ProbabilityScores.empty(classes, bins=self.top.shape[1])
        found.weight[:, places], found.bins[:, places] = self.weight, self.bins
        found.log_loss[:, places], found.brier[:, places] = self.log_loss, self.brier
        found.top[:] = self.top
        return found

    def __add__(self, other: ProbabilityScores) -> ProbabilityScores:
        """Over the rows of both, of the same classes."""
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
    """(B - 1,) the inner ends j/B of the bins, higher by a relative `TIE`.

    Round probabilities, such as 0.05 of a vote, often lie on an end; by way of their logarithms
    they come back with another last digit, and still belong to the bin below.
    """
    return np.asarray(np.arange(1, bins) / bins * (1.0 + TIE))


def _add(found: ProbabilityScores, logs: Floats, own: Places, weight: Floats | None) -> None:
    """Add rows with log posteriors (K, n) to the sums of `found`, which is being made."""
    K, n = logs.shape
    truth = own * n + np.arange(n)  # where, of all K n numbers, those of the true classes are
    p, lost = np.exp(logs), -logs.ravel()[truth]
    _put_in_bins(found, p, own, truth, weight)
    p.ravel()[truth] = -np.expm1(-lost)  # 1 - p from the log of p keeps its digits near 1
    brier = np.einsum("kn,kn->n", p, p)
    found.weight[:] += _by_class(own, K, (None, None) if weight is None else (weight, weight**2))
    found.log_loss[:] += _moments_of(lost, own, weight, K)
    found.brier[:] += _moments_of(brier, own, weight, K)


def _put_in_bins(
    found: ProbabilityScores, p: Floats, own: Places, truth: Places, weight: Floats | None
) -> None:
    K, B = len(p), found.top.shape[1]
    place = _bin_of(p, B)
    for k in range(K):
        found.bins[:2, k] += _in_bins(place[k], p[k], weight, B)
    true = place.ravel()[truth] + B * own
    found.bins[2] += np.bincount(true, weight, minlength=K * B).reshape(K, B)
    largest, best = max_and_argmax(p)
    right = (best == own).astype(np.float64)
    most = place.max(axis=0)  # a larger p is in no lower bin
    found.top[:2] += _in_bins(most, largest, weight, B)
    found.top[2] += np.bincount(most, right if weight is None else weight * right, minlength=B)


def max_and_argmax(p: Floats) -> tuple[Floats, npt.NDArray[np.intp]]:
    """(n,) the largest of (K, n), and which: as `argmax`, some ten times as fast for few classes.

    >>> max_and_argmax(np.array([[0.3, 0.5], [0.7, 0.5]]))
    (array([0.7, 0.5]), array([1, 0]))
    """
    largest, best = p[0].copy(), np.zeros(p.shape[1], dtype=np.intp)
    for k in range(1, len(p)):
        np.copyto(best, k, where=p[k] > largest)
        np.maximum(largest, p[k], out=largest)
    return largest, best


def _bin_of(p: Floats, bins: int) -> Places:
    """The bin of each p: an end belongs to the bin below, as in scikit-learn.

    >>> _bin_of(np.array([0.0, 0.5, 0.51, 1.0]), 2).tolist()
    [0, 0, 1, 1]
    """
    if not (p.min(initial=0.0) >= 0.0 and p.max(initial=0.0) <= 1.0 + 0.5 / bins):
        return np.searchsorted(
            bin_edges(bins), p
        )  # no probabilities: into the first bin or the last
    ends = np.concatenate(([-np.inf], bin_edges(bins), [np.inf]))
    found = (p * bins).astype(np.intp)  # right, or on the lower end of the next bin
    found -= p <= ends[found]
    return found


def _in_bins(place: Places, p: Floats, weight: Floats | None, bins: int) -> Floats:
    """(2, B) sums of w and of w p."""
    what = p if weight is None else weight * p
    return np.array([np.bincount(place, each, minlength=bins) for each in (weight, what)])


def _moments_of(loss: Floats, own: Places, weight: Floats | None, K: int) -> Floats:
    if weight is None:
        return np.tile(_by_class(own, K, (loss, loss * loss)), (2, 1))
    first = weight * loss
    return _by_class(own, K, (first, first * loss, weight * first, first**2))


def _by_class(own: Places, K: int, values: tuple[Floats | None, ...]) -> Floats:
    return np.array([np.bincount(own, value, minlength=K) for value in values], dtype=np.float64)
