"""Held-out losses of every model that is one feature away, without fitting any.

For a fold, with the moments of the others swept on the chosen features (`assessment.swept_rows`)
and s_k the scores of its rows now, feature j entering or leaving makes

    one covariance    s_k + x_j a_jk - m_jk a_jk / 2,        a_jk = m_jk / C_jj
    one for each      s_k - (x_j - m_jk)^2 / (2 C_kjj) - log|C_kjj| / 2

(of one covariance, what all classes share is left out), so all candidates of a step cost N d K
operations. That holds of every member of the Gaussian family whose covariance of some features is
a block of that of all: not where it is shrunk to a mean of variances, or by an amount worked out.

Only differences to the score of the true class t_k = s_k - s_true count: a row is wrong where one
is above zero, and its log loss is log(1 + sum_k exp t_k).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from discriminant.assessment.folds import (
    FoldNumbers,
    all_but_one,
    fold_moments,
    only_present,
    rows_by_fold,
)
from discriminant.assessment.judging import Criterion, Found, Mask, Places, log_priors
from discriminant.assessment.losses import Sums, error_sums, log_loss_sums
from discriminant.assessment.swept_rows import SweptRows
from discriminant.engines.local import available_threads, one_blas_thread
from discriminant.errors import carried
from discriminant.models.covariance import pooled_covariance, shrink
from discriminant.models.gaussian import (
    Family,
    check_classes,
    check_own_rows,
    mixed_covariances,
)
from discriminant.models.support import floored
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.schema import Floats
from discriminant.table.source import Table

_TILE = 1 << 15  # numbers worked on at a time, so that they stay in the cache


def is_block_wise(family: Family) -> bool:
    """Whether the covariance of some features is a block of that of all."""
    if isinstance(family.shrinkage, str):
        return False
    return family.shrinkage == 0.0 or family.target != "scaled_identity"


class SweptFolds:
    """A judge of Gaussian models by the rows of each fold."""

    def __init__(
        self, estimator: Any, table: Table, fold: FoldNumbers, constant: Mask, *, tolerance: float
    ) -> None:
        self.constant, self.tolerance = constant, tolerance
        self.chosen: Mask = np.zeros(table.width, dtype=np.bool_)
        family, priors = estimator.family, log_priors(estimator, table, fold)
        parts = fold_moments(table, fold, "pooled" if family.linear else "class")
        jobs = zip(rows_by_fold(fold), all_but_one(parts), priors, strict=True)
        every = [Part(table, rows, train, family, prior) for rows, train, prior in jobs]
        self.parts = [part for part in every if part.total > 0]
        self.weight = np.array([part.total for part in self.parts])

    def judged(self, places: Places, criterion: Criterion) -> Found:
        """All at once, a fold on each core."""
        sums = self._each(lambda part: part.sums(places, criterion))
        return Found.of_folds(np.array(sums), self.weight)

    def standing(self, criterion: Criterion) -> Found:
        """By the scores at hand."""
        sums = [part.standing(criterion) for part in self.parts]
        return Found.of_folds(np.array(sums), self.weight)

    def barred(self) -> Mask:
        """Constant, or in some training part what is left of them is next to nothing."""
        spent = np.any([part.spent(self.tolerance) for part in self.parts], axis=0)
        return np.asarray(~self.chosen & (spent | self.constant))

    def turn(self, place: int) -> None:
        """Sweep every fold on the feature."""
        back = bool(self.chosen[place])
        self._each(lambda part: part.turn(place, back=back))
        self.chosen[place] = not back

    def fill(self) -> None:
        """All features that are not constant."""
        for part in self.parts:
            part.fill()
        self.chosen |= ~self.constant

    def _each(self, work: Callable[[Part], Any]) -> list[Any]:
        with one_blas_thread(), ThreadPoolExecutor(available_threads()) as pool:
            return list(pool.map(carried(work), self.parts))


class Part:
    """The rows of one fold, those of a class together, and the swept moments of all the others."""

    def __init__(
        self, table: Table, rows: Places, train: ClassMoments, family: Family, log_prior: Floats
    ) -> None:
        present = np.isfinite(log_prior)
        train, codes = only_present(train), table.codes[rows].astype(np.intp)
        rows, codes = rows[present[codes]], (np.cumsum(present) - 1)[codes[present[codes]]]
        order = np.argsort(codes, kind="stable")
        rows, codes = rows[order], codes[order]
        self.weight = None if table.weight is None else table.weight[rows]
        self.total = float(len(rows) if self.weight is None else self.weight.sum())
        self.ends = np.searchsorted(codes, np.arange(len(train.labels) + 1)).tolist()
        self.scores = np.repeat(log_prior[present][:, None], len(rows), axis=1)  # (K, n)
        self.features, self.trained = train.features, float(train.weight.sum())
        self.swept = swept(train, train.anchor.offsets(table.features[rows]), family)

    def sums(self, places: Places, criterion: Criterion) -> Floats:
        """(m,) losses of the rows, of the models one of the features away."""
        found = np.zeros(len(places))
        of = error_sums if criterion == "error" else log_loss_sums
        for code, span in self._classes():
            size = max(1, _TILE // max(span.stop - span.start, 1))
            weight = None if self.weight is None else self.weight[span]
            for lo in range(0, len(places), size):
                some = places[lo : lo + size]
                found[lo : lo + size] += of(self._ahead(some, span, code), code, weight)
        return found

    def standing(self, criterion: Criterion) -> Floats:
        """(1,) losses of the rows as they stand."""
        found = np.zeros(1)
        of: Sums = error_sums if criterion == "error" else log_loss_sums
        for code, span in self._classes():
            weight = None if self.weight is None else self.weight[span]
            scores = self.scores[:, span]
            others = (scores[k] - scores[code] for k in range(len(scores)) if k != code)
            found += of((one[None] for one in others), code, weight)
        return found

    def spent(self, tolerance: float) -> Mask:
        """(d,) features that the chosen ones explain within classes, or within some class."""
        return np.asarray(np.any([one.spent(tolerance) for one in self.swept], axis=0))

    def turn(self, place: int, *, back: bool) -> None:
        """Sweep on a feature and bring the scores up to date."""
        for k in range(len(self.scores)):
            self.scores[k] += self._change(k, np.array([place]), slice(None))[0]
        for one in self.swept:
            one.turn(place, back=back)

    def fill(self) -> None:
        """Sweep on all features."""
        K = len(self.scores)
        for i, one in enumerate(self.swept):
            rows, means = one.rows, one.means
            logdet = one.fill(self.features, self.trained, K)
            if len(self.swept) == 1:
                self.scores += np.dot(means, one.rows)
                self.scores -= 0.5 * np.einsum("kd,kd->k", means, one.means)[:, None]
            else:
                away, solved = rows - means[0][:, None], one.rows - one.means[0][:, None]
                self.scores[i] -= 0.5 * (np.einsum("dn,dn->n", away, solved) + logdet)

    def _classes(self) -> Iterator[tuple[int, slice]]:
        for code, (lo, hi) in enumerate(pairwise(self.ends)):
            if hi > lo:
                yield code, slice(lo, hi)

    def _ahead(self, places: Places, span: slice, code: int) -> Iterator[Floats]:
        """(m, n) how far each other class is ahead of the true one, class after class."""
        scores = self.scores[:, span]
        others = [k for k in range(len(scores)) if k != code]
        if len(self.swept) > 1:
            own = self._change(code, places, span) + scores[code]
            for k in others:
                yield self._change(k, places, span) + scores[k] - own
            return
        rows, means = self.swept[0].rows[places, span], self.swept[0].means[:, places]
        along = means / np.diagonal(self.swept[0].within)[places]
        fixed = 0.5 * means * along
        for k in others:
            ahead = rows * (along[k] - along[code])[:, None]
            ahead += scores[k] - scores[code]
            ahead -= (fixed[k] - fixed[code])[:, None]
            yield ahead

    def _change(self, k: int, places: Places, span: slice) -> Floats:
        """(m, n) what the features change in the score of class k."""
        one = self.swept[k if len(self.swept) > 1 else 0]
        own = np.diagonal(one.within)[places][:, None]
        if len(self.swept) == 1:
            mean = one.means[k, places][:, None]
            return np.asarray((one.rows[places, span] - 0.5 * mean) * (mean / own))
        away = one.rows[places, span] - one.means[0, places][:, None]
        return np.asarray(-0.5 * (away**2 / own + np.log(np.abs(own))))


def swept(train: ClassMoments, offsets: Floats, family: Family) -> list[SweptRows]:
    """One covariance with the means of all classes, or one for each with its own; none chosen.

    Columns are centred and in units of their spread within classes; one that is constant in this
    training part counts for nothing.
    """
    check_classes(train)
    centre = train.centre
    pooled = pooled_covariance(train, family.denominator)
    spread = floored(train, np.diagonal(pooled))
    per_sd = np.divide(1.0, np.sqrt(spread), out=np.zeros_like(spread), where=spread > 0)
    rows, means = ((offsets - centre) * per_sd).T, (train.mean - centre) * per_sd
    if family.linear:
        amount = float(family.shrinkage)
        both = shrink(pooled, amount, family.target, train.anchor.unit)
        within = _inside(both, floored(train, np.diagonal(both)), per_sd)
        return [SweptRows(within, means, _own(rows))]
    check_own_rows(train, family)
    found = []
    for k, covariance in enumerate(mixed_covariances(train, family)):
        within = _inside(covariance, floored(train, np.diagonal(covariance), k), per_sd)
        found.append(SweptRows(within, means[k : k + 1].copy(), _own(rows)))
    return found


def _inside(covariance: Floats, variance: Floats, per_sd: Floats) -> Floats:
    """The covariance in units of the spread, its diagonal floored, 1 where there is none."""
    within = covariance * per_sd * per_sd[:, None]
    np.fill_diagonal(within, np.where(per_sd > 0, variance * per_sd**2, 1.0))
    return within


def _own(rows: Floats) -> Floats:
    return np.array(rows, order="C")
