"""Leave-one-out losses of every LDA that is one feature away, without fitting any.

Of a row of class c, with W the scatter within classes of all rows, leaving it out of the fit makes
(see `assessment.leave_one_out`, whose `total`, `loss` and `stretch` these are)

    score_k = -total (D_k + loss g_k^2 / left) / 2 + log prior_k        times stretch^2 for k = c
    D_k = (x - m_k)' W^-1 (x - m_k)    g_k = (x - m_k)' W^-1 (x - m_c)    left = 1 - loss D_c

Sweeping rows along with W (`assessment.swept_rows`), feature j changes both by one product:

    D_k + (x_j - m_jk)^2 / W_jj        g_k + (x_j - m_jk)(x_j - m_jc) / W_jj

Where a row has a direction almost for itself (`left` below 1e-6), the candidate is fitted instead.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from discriminant.assessment.folds import FoldNumbers
from discriminant.assessment.judging import (
    Criterion,
    Found,
    Mask,
    Places,
    Refitting,
    log_priors,
)
from discriminant.assessment.leave_one_out import Without
from discriminant.assessment.swept_folds import swept
from discriminant.engines.engine import read_moments
from discriminant.engines.local import one_blas_thread
from discriminant.models.covariance import pooled_degrees
from discriminant.table.schema import Floats
from discriminant.table.source import Table

_TILE = 1 << 15  # numbers worked on at a time
_LEFT = 1e-6


class SweptAlone:
    """A judge of LDA by every row left out alone."""

    def __init__(
        self, estimator: Any, table: Table, fold: FoldNumbers, constant: Mask, *, tolerance: float
    ) -> None:
        self.constant, self.tolerance = constant, tolerance
        self.chosen: Mask = np.zeros(table.width, dtype=np.bool_)
        self.fitted = Refitting(estimator, table, fold, constant)
        self.fitted.chosen = self.chosen
        table = table.take(np.argsort(table.codes, kind="stable"))
        self.weight = np.ones(len(table)) if table.weight is None else table.weight
        self.log_prior = log_priors(estimator, table, np.arange(len(table))).T.copy()  # (K, N)
        self.moments = read_moments(table, detail="pooled")
        self.without = Without.of(self.moments, table, estimator.family)
        self.degrees = pooled_degrees(self.moments, estimator.family.denominator)
        (self.swept,) = swept(self.moments, self.without.offsets, estimator.family)
        K = len(self.moments.labels)
        self.ends = np.searchsorted(table.codes, np.arange(K + 1)).tolist()
        self.distance, self.cross = np.zeros((2, K, len(table)))  # D and g, of W / degrees

    def judged(self, places: Places, criterion: Criterion) -> Found:
        """All at once; those without digits one by one."""
        sums = np.zeros((2, len(places)))
        size = max(1, _TILE // len(self.weight))
        with one_blas_thread(), np.errstate(divide="ignore", invalid="ignore"):
            for lo in range(0, len(places), size):
                sums[:, lo : lo + size] = self._sums(places[lo : lo + size], criterion)
        found = self._found(sums)
        for i in np.flatnonzero(~np.isfinite(found.mean)):
            one = self.fitted.judged(places[i : i + 1], criterion)
            found.mean[i], found.se[i] = one.mean[0], one.se[0]
        return found

    def standing(self, criterion: Criterion) -> Found:
        """By the sums at hand."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self._found(self._sums(None, criterion))
        return found if np.isfinite(found.mean[0]) else self.fitted.standing(criterion)

    def barred(self) -> Mask:
        """Constant, or of next to nothing left beside those chosen."""
        return np.asarray(~self.chosen & (self.swept.spent(self.tolerance) | self.constant))

    def turn(self, place: int) -> None:
        """Sweep on the feature."""
        away = self._away(np.array([place]), slice(None))
        own = self.swept.within[place, place]
        for k, (lo, hi) in enumerate(pairwise(self.ends)):
            self.cross[:, lo:hi] += away[:, 0, lo:hi] * away[k, 0, lo:hi] / own
        self.distance += away[:, 0] ** 2 / own
        self.swept.turn(place, back=bool(self.chosen[place]))
        self.chosen[place] ^= True

    def fill(self) -> None:
        """Sweep on all features that are not constant."""
        rows, means = self.swept.rows, self.swept.means
        self.swept.fill(self.moments.features, float(self.weight.sum()), len(means))
        for k, mean in enumerate(means):
            away = rows - mean[:, None]
            solved = self.swept.rows - self.swept.means[k][:, None]
            self.distance[k] = np.einsum("dn,dn->n", away, solved)
            for c, (lo, hi) in enumerate(pairwise(self.ends)):
                of_own = self.swept.rows[:, lo:hi] - self.swept.means[c][:, None]
                self.cross[k, lo:hi] = np.einsum("dn,dn->n", away[:, lo:hi], of_own)
        self.chosen |= ~self.constant

    def _found(self, sums: Floats) -> Found:
        """From sums of losses and of their squares, each row a fold of its own."""
        n, total = int((self.weight > 0).sum()), self.weight.sum()
        mean = sums[0] / total
        return Found(mean, np.sqrt(np.maximum(sums[1] / total - mean**2, 0.0) / max(n - 1, 1)))

    def _sums(self, places: Places | None, criterion: Criterion) -> Floats:
        """(2, m) sums over rows of losses and of their squares; NaN where digits are lost."""
        sums = np.zeros((2, 1))
        for code, (lo, hi) in enumerate(pairwise(self.ends)):
            scores = self._scores(places, slice(lo, hi), code)
            losses = _losses(scores, code, criterion)
            sums = sums + np.stack([losses, losses**2]) @ self.weight[lo:hi]
        return sums

    def _scores(self, places: Places | None, span: slice, code: int) -> Floats:
        """(K, m, n) scores of rows of one class by the models of all other rows."""
        distance, cross = self.distance[:, None, span], self.cross[:, None, span]
        if places is not None:
            own = np.diagonal(self.swept.within)[places][:, None]
            away = self._away(places, span)
            inner = away[code] / own
            distance, cross = distance + away**2 / own, cross + away * inner
        drop = self.without.loss[span] / self.degrees
        left = 1.0 - drop * distance[code]
        scores = distance + (drop / np.where(left < _LEFT, np.nan, left)) * cross**2
        scores[code] *= self.without.stretch[span] ** 2
        scores *= -0.5 * self.without.total[span] / self.degrees
        scores += self.log_prior[:, None, span]
        return np.asarray(scores)

    def _away(self, places: Places, span: slice) -> Floats:
        """(K, m, n) swept rows less swept class means."""
        return self.swept.rows[places, span] - self.swept.means[:, places, None]


def _losses(scores: Floats, code: int, criterion: Criterion) -> Floats:
    """(m, n) loss of each row by each model; NaN where a score is."""
    if criterion == "error":
        lost = np.isnan(scores).any(axis=0)
        return np.where(lost, np.nan, scores.argmax(axis=0) != code)
    top = scores.max(axis=0)
    return np.asarray(np.log(np.exp(scores - top).sum(axis=0)) + top - scores[code])
