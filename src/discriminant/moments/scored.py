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
from discriminant.table.schema import Codes, Floats

BINS = 60
_TILE = 1 << 17  # posteriors at a time


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Losses and calibration of posteriors of K classes."""

    weight: Floats  # (2, K) of the rows that have a posterior, by true class: sums of w, w^2
    log_loss: Floats  # (4, K) by true class: sums of w l, w l^2, w^2 l, w^2 l^2
    brier: Floats  # (4, K) likewise
    bins: Floats  # (3, K, B) by the posterior of a class: sums of w, w p_k, w [y = k]
    top: Floats  # (3, B) by the largest posterior: sums of w, w p, w [y is that class]

    @classmethod
    def empty(cls, classes: int, *, bins: int = BINS) -> Scored:
        """Of no rows."""
        losses = np.zeros((4, classes)), np.zeros((4, classes))
        binned = np.zeros((3, classes, bins)), np.zeros((3, bins))
        return cls(np.zeros((2, classes)), *losses, *binned)

    @classmethod
    def of(cls, log_posterior: Floats, codes: Codes, weight: Floats, *, bins: int = BINS) -> Scored:
        """Of n rows, all of positive weight.

        >>> found = Scored.of(np.log([[0.5, 0.5], [0.1, 0.9]]), np.array([0, 1]), np.ones(2))
        >>> found.brier[0].round(12).tolist()
        [0.5, 0.02]
        """
        n, K = log_posterior.shape
        found = cls.empty(K, bins=bins)
        brier = np.empty(n)
        size = max(_TILE // K, 64)
        for lo in range(0, n, size):
            part = slice(lo, min(lo + size, n))
            p = np.exp(log_posterior[part])
            _put_in_bins(found, p, codes[part], weight[part])
            brier[part] = _brier(p, log_posterior[part], codes[part])
        own = -np.take_along_axis(log_posterior, codes[:, np.newaxis].astype(np.intp), axis=1)[:, 0]
        return cls(
            _by_class(codes, K, (weight, weight**2)),
            _moments_of(own, codes, weight, K),
            _moments_of(brier, codes, weight, K),
            found.bins,
            found.top,
        )

    def placed(self, places: npt.NDArray[np.intp], classes: int) -> Scored:
        """The same among more classes, of which these were at `places`."""
        found = Scored.empty(classes, bins=self.top.shape[1])
        found.weight[:, places], found.bins[:, places] = self.weight, self.bins
        found.log_loss[:, places], found.brier[:, places] = self.log_loss, self.brier
        found.top[:] = self.top
        return found

    def __add__(self, other: Scored) -> Scored:
        """Over the rows of both, of the same classes."""
        if self.bins.shape != other.bins.shape:
            raise MomentsMismatchError.of_shape("bins", other.bins.shape, self.bins.shape)
        return Scored(
            self.weight + other.weight,
            self.log_loss + other.log_loss,
            self.brier + other.brier,
            self.bins + other.bins,
            self.top + other.top,
        )


def edges(bins: int) -> Floats:
    """(B - 1,) the inner ends j/B of the bins, a little higher.

    Round probabilities, such as 0.05 of a vote, often lie on an end; by way of their logarithms
    they come back with another last digit, and are still to fall into the bin below.
    """
    return np.asarray(np.arange(1, bins) / bins * (1.0 + 2.0**-46))


def _put_in_bins(found: Scored, p: Floats, codes: Codes, weight: Floats) -> None:
    """Add rows with posteriors p, (n, K), to the bins of `found`, which is being made."""
    n, K = p.shape
    B = found.top.shape[1]
    place = np.searchsorted(edges(B), p)  # an end belongs to the bin below, as in scikit-learn
    flat = (place + B * np.arange(K)).ravel()
    rows = np.arange(n)
    own, best = codes.astype(np.intp), p.argmax(axis=1)
    true = place[rows, own] + B * own
    most = place[rows, best]
    every = np.repeat(weight, K)
    for j, (where, what) in enumerate(((flat, every), (flat, every * p.ravel()), (true, weight))):
        found.bins[j] += np.bincount(where, what, minlength=K * B).reshape(K, B)
    for j, what in enumerate((weight, weight * p[rows, best], weight * (best == own))):
        found.top[j] += np.bincount(most, what, minlength=B)


def _brier(p: Floats, log_posterior: Floats, codes: Codes) -> Floats:
    """(n,) sum of squares; 1 - p of the truth from its log, which keeps its digits near 1."""
    rows = np.arange(len(p))
    apart = p.copy()
    apart[rows, codes] = -np.expm1(log_posterior[rows, codes])
    return np.asarray(np.einsum("nk,nk->n", apart, apart))


def _moments_of(loss: Floats, codes: Codes, weight: Floats, K: int) -> Floats:
    first = weight * loss
    return _by_class(codes, K, (first, first * loss, weight * first, first**2))


def _by_class(codes: Codes, K: int, values: tuple[Floats, ...]) -> Floats:
    return np.array([np.bincount(codes, value, minlength=K) for value in values])
