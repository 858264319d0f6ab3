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

Sums of the losses of many models, from how far the wrong classes are ahead of the true one.

    t_k = score_k - score_true       wrong: some t_k > 0       log loss: log(1 + sum_k exp t_k)

Of equal scores the first class is taken. Logs are taken of products of as many rows as cannot
overflow: sum log z = log prod z.

Rows swept along with a covariance: what every feature adds to the distance of every row.

With S the chosen features, C a covariance, x a row and m a mean, about any origin, sweeping on a
feature p makes

    C_ij - C_ip C_pj / C_pp,   C_ip / C_pp,   C_pp -> -1 / C_pp         x and m as rows of C

so that outside of S x_j is what is left of feature j when it is regressed on S, and within S it is
the j-th number of C_S^-1 x. In both cases entering or leaving j changes a squared distance and a
log determinant by

    (x_j - m_j)^2 / C_jj         log |C_jj|                              C_jj < 0 within S

One turn costs N d operations, a rank-one update by BLAS; a model is never solved for.

Leave-one-out losses of every LDA that is one feature away, without fitting any.

Of a row of class c, with W the scatter within classes of all rows, leaving it out of the fit makes
(see `assessment.leave_one_out`, whose `total`, `loss` and `stretch` these are)

    score_k = -total (D_k + loss g_k^2 / left) / 2 + log prior_k        times stretch^2 for k = c
    D_k = (x - m_k)' W^-1 (x - m_k)    g_k = (x - m_k)' W^-1 (x - m_c)    left = 1 - loss D_c

Sweeping rows along with W (`assessment.swept_rows`), feature j changes both by one product:

    D_k + (x_j - m_jk)^2 / W_jj        g_k + (x_j - m_jk)(x_j - m_jc) / W_jj

Where a row has a direction almost for itself (`left` below 1e-6), the candidate is fitted instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from discriminant.assessment.inference.manova import invertible_metric
from discriminant.assessment.resampling.folds import (
    FoldNumbers,
    drop_empty_classes,
    fold_moments,
    rows_by_fold,
    sums_without_each,
)
from discriminant.assessment.resampling.leave_one_out import LeaveOneOutTerms
from discriminant.assessment.selection.refit_criterion import (
    CriterionName,
    CriterionValues,
    Mask,
    Places,
    RefitCriterion,
    fold_log_priors,
)
from discriminant.assessment.selection.stepwise import sweep
from discriminant.engines.dispatch import read_moments
from discriminant.engines.local import available_threads, one_blas_thread
from discriminant.errors import InferenceError, in_thread
from discriminant.models.gaussian.covariance import (
    floor_variances,
    pooled_covariance,
    pooled_degrees,
    shrink,
)
from discriminant.models.gaussian.family import (
    GaussianFamily,
    check_classes,
    check_rows_for_family,
    family_covariances,
)
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Floats
from discriminant.table.memory import Table

Sums = Callable[[Iterable[Floats], int, Floats | None], Floats]
_RANGE = 600.0  # logs up to which a product of doubles is a double
_SMALL = 80.0  # t up to which exp t is summed as it is


def error_sums(ahead: Iterable[Floats], code: int, weight: Floats | None) -> Floats:
    """(m,) weight of the rows of class `code` gone wrong; of each other class (m, n)."""
    wrong = None
    for k, one in enumerate(ahead):
        over = one >= 0.0 if k < code else one > 0.0
        wrong = over if wrong is None else np.logical_or(wrong, over, out=wrong)
    assert wrong is not None
    if weight is None:
        return np.asarray(wrong.sum(axis=1, dtype=np.float64))
    return np.asarray(np.dot(wrong.astype(np.float64), weight))


def log_loss_sums(ahead: Iterable[Floats], code: int, weight: Floats | None) -> Floats:
    """(m,) log loss of the rows of class `code`; what is handed in is used up."""
    each = list(ahead)
    largest = max(0.0, *(float(one.max(initial=0.0)) for one in each))
    top = None if largest < _SMALL else _largest(each)
    total = np.ones(1) if top is None else np.exp(-top)
    for one in each:
        if top is not None:
            one -= top
        total = np.add(total, np.exp(one, out=one), out=one)
    if weight is not None:
        sums = np.dot(np.log(total), weight)
        return np.asarray(sums if top is None else sums + np.dot(top, weight))
    sums = _log_product(total, np.log(len(each) + 1) + (largest if top is None else 0.0))
    return np.asarray(sums if top is None else sums + top.sum(axis=1))


def _largest(ahead: list[Floats]) -> Floats:
    """(m, n) the largest t_k, or zero, that of the true class."""
    top = np.maximum(ahead[0], 0.0)
    for one in ahead[1:]:
        np.maximum(top, one, out=top)
    return top


def _log_product(values: Floats, largest: float) -> Floats:
    """(m,) sum of the logs of (m, n) numbers, each log from 0 to `largest`."""
    many = 1
    while values.shape[1] > 1 and (2 * many + 1) * largest < _RANGE:
        half, odd = divmod(values.shape[1], 2)
        paired = values[:, :half] * values[:, half : 2 * half]
        if odd:
            paired[:, 0] *= values[:, -1]
        values, many = paired, 2 * many + 1
    return np.asarray(np.log(values).sum(axis=1))


class SweptRows:
    """A covariance, some means and some rows, and which features they are swept on."""

    def __init__(self, within: Floats, means: Floats, rows: Floats) -> None:
        self.within = within  # (d, d)
        self.means = means  # (g, d)
        self.rows = rows  # (d, n), those of a feature side by side
        self.first = np.diagonal(within).copy()  # (d,)

    def turn(self, place: int, *, back: bool) -> None:
        """Sweep on a feature, which enters, or goes `back` out."""
        pivot = self.within[place, place]
        slope = self.within[place] / pivot
        line, mean = self.rows[place].copy(), self.means[:, place].copy()
        blas.dger(-1.0, line, slope, a=self.rows.T, overwrite_a=1)
        self.means -= np.multiply.outer(mean, slope)
        sign = -pivot if back else pivot
        self.rows[place], self.means[:, place] = line / sign, mean / sign
        sweep(self.within, place, back=back)

    def fill(self, features: tuple[str, ...], rows: float, classes: int) -> float:
        """Sweep on all features at once; the log determinant. Names those that depend on others."""
        d = len(self.first)
        if rows - classes < d:
            raise InferenceError.too_wide(_BACKWARD, rows, classes, d)
        sd = np.sqrt(self.first)
        invertible_metric(self.within / sd[:, None] / sd, features, _BACKWARD)
        low, _ = lapack.dpotrf(self.within, lower=True)
        inverse, _ = lapack.dpotri(low, lower=True)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        self.rows, self.means = np.dot(inverse, self.rows), np.dot(self.means, inverse)
        self.within = -inverse
        return 2.0 * float(np.log(np.diagonal(low)).sum())

    def spent(self, tolerance: float) -> Mask:
        """(d,) features of which less than `tolerance` is left; of those chosen nothing is said."""
        return np.asarray(np.diagonal(self.within) < tolerance * self.first)


_BACKWARD = "Backward selection"


_TILE = 1 << 15  # numbers worked on at a time, so that they stay in the cache


def is_block_wise(family: GaussianFamily) -> bool:
    """Whether the covariance of some features is a block of that of all."""
    if isinstance(family.shrinkage, str):
        return False
    return family.shrinkage == 0.0 or family.target != "scaled_identity"


class FoldSweep:
    """A judge of Gaussian models by the rows of each fold."""

    def __init__(
        self, estimator: Any, table: Table, fold: FoldNumbers, constant: Mask, *, tolerance: float
    ) -> None:
        self.constant, self.tolerance = constant, tolerance
        self.chosen: Mask = np.zeros(table.width, dtype=np.bool_)
        family, priors = estimator.family, fold_log_priors(estimator, table, fold)
        parts = fold_moments(table, fold, "pooled" if family.linear else "class")
        jobs = zip(rows_by_fold(fold), sums_without_each(parts), priors, strict=True)
        every = [SweptFold(table, rows, train, family, prior) for rows, train, prior in jobs]
        self.parts = [part for part in every if part.total > 0]
        self.weight = np.array([part.total for part in self.parts])

    def evaluate_changes(self, places: Places, criterion: CriterionName) -> CriterionValues:
        """All at once, a fold on each core."""
        sums = self._each(lambda part: part.sums(places, criterion))
        return CriterionValues.of_folds(np.array(sums), self.weight)

    def current(self, criterion: CriterionName) -> CriterionValues:
        """By the scores at hand."""
        sums = [part.standing(criterion) for part in self.parts]
        return CriterionValues.of_folds(np.array(sums), self.weight)

    def excluded(self) -> Mask:
        """Constant, or in some training part what is left of them is next to nothing."""
        spent = np.any([part.spent(self.tolerance) for part in self.parts], axis=0)
        return np.asarray(~self.chosen & (spent | self.constant))

    def toggle(self, place: int) -> None:
        """Sweep every fold on the feature."""
        back = bool(self.chosen[place])
        self._each(lambda part: part.turn(place, back=back))
        self.chosen[place] = not back

    def include_all(self) -> None:
        """All features that are not constant."""
        for part in self.parts:
            part.fill()
        self.chosen |= ~self.constant

    def _each(self, work: Callable[[SweptFold], Any]) -> list[Any]:
        with one_blas_thread(), ThreadPoolExecutor(available_threads()) as pool:
            return list(pool.map(in_thread(work), self.parts))


class SweptFold:
    """The rows of one fold, those of a class together, and the swept moments of all the others."""

    def __init__(
        self,
        table: Table,
        rows: Places,
        train: ClassMoments,
        family: GaussianFamily,
        log_prior: Floats,
    ) -> None:
        present = np.isfinite(log_prior)
        train, codes = drop_empty_classes(train), table.codes[rows].astype(np.intp)
        rows, codes = rows[present[codes]], (np.cumsum(present) - 1)[codes[present[codes]]]
        order = np.argsort(codes, kind="stable")
        rows, codes = rows[order], codes[order]
        self.weight = None if table.weight is None else table.weight[rows]
        self.total = float(len(rows) if self.weight is None else self.weight.sum())
        self.ends = np.searchsorted(codes, np.arange(len(train.labels) + 1)).tolist()
        self.scores = np.repeat(log_prior[present][:, None], len(rows), axis=1)  # (K, n)
        self.features, self.trained = train.features, float(train.weight.sum())
        self.swept = sweep_rows(train, train.anchor.offsets(table.features[rows]), family)

    def sums(self, places: Places, criterion: CriterionName) -> Floats:
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

    def standing(self, criterion: CriterionName) -> Floats:
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


def sweep_rows(train: ClassMoments, offsets: Floats, family: GaussianFamily) -> list[SweptRows]:
    """One covariance with the means of all classes, or one for each with its own; none chosen.

    Columns are centred and in units of their spread within classes; one that is constant in this
    training part counts for nothing.
    """
    check_classes(train)
    centre = train.centre
    pooled = pooled_covariance(train, family.denominator)
    spread = floor_variances(train, np.diagonal(pooled))
    per_sd = np.divide(1.0, np.sqrt(spread), out=np.zeros_like(spread), where=spread > 0)
    rows, means = ((offsets - centre) * per_sd).T, (train.mean - centre) * per_sd
    if family.linear:
        amount = float(family.shrinkage)
        both = shrink(pooled, amount, family.target, train.anchor.unit)
        within = _inside(both, floor_variances(train, np.diagonal(both)), per_sd)
        return [SweptRows(within, means, _own(rows))]
    check_rows_for_family(train, family)
    found = []
    for k, covariance in enumerate(family_covariances(train, family)):
        within = _inside(covariance, floor_variances(train, np.diagonal(covariance), k), per_sd)
        found.append(SweptRows(within, means[k : k + 1].copy(), _own(rows)))
    return found


def _inside(covariance: Floats, variance: Floats, per_sd: Floats) -> Floats:
    """The covariance in units of the spread, its diagonal floored, 1 where there is none."""
    within = covariance * per_sd * per_sd[:, None]
    np.fill_diagonal(within, np.where(per_sd > 0, variance * per_sd**2, 1.0))
    return within


def _own(rows: Floats) -> Floats:
    return np.array(rows, order="C")


_LEFT = 1e-6


class LeaveOneOutSweep:
    """A judge of LDA by every row left out alone."""

    def __init__(
        self, estimator: Any, table: Table, fold: FoldNumbers, constant: Mask, *, tolerance: float
    ) -> None:
        self.constant, self.tolerance = constant, tolerance
        self.chosen: Mask = np.zeros(table.width, dtype=np.bool_)
        self.fitted = RefitCriterion(estimator, table, fold, constant)
        self.fitted.chosen = self.chosen
        table = table.take(np.argsort(table.codes, kind="stable"))
        self.weight = np.ones(len(table)) if table.weight is None else table.weight
        self.log_prior = fold_log_priors(estimator, table, np.arange(len(table))).T.copy()  # (K, N)
        self.moments = read_moments(table, detail="pooled")
        self.without = LeaveOneOutTerms.of(self.moments, table, estimator.family)
        self.degrees = pooled_degrees(self.moments, estimator.family.denominator)
        (self.swept,) = sweep_rows(self.moments, self.without.offsets, estimator.family)
        K = len(self.moments.labels)
        self.ends = np.searchsorted(table.codes, np.arange(K + 1)).tolist()
        self.distance, self.cross = np.zeros((2, K, len(table)))  # D and g, of W / degrees

    def evaluate_changes(self, places: Places, criterion: CriterionName) -> CriterionValues:
        """All at once; those without digits one by one."""
        sums = np.zeros((2, len(places)))
        size = max(1, _TILE // len(self.weight))
        with one_blas_thread(), np.errstate(divide="ignore", invalid="ignore"):
            for lo in range(0, len(places), size):
                sums[:, lo : lo + size] = self._sums(places[lo : lo + size], criterion)
        found = self._found(sums)
        for i in np.flatnonzero(~np.isfinite(found.mean)):
            one = self.fitted.evaluate_changes(places[i : i + 1], criterion)
            found.mean[i], found.se[i] = one.mean[0], one.se[0]
        return found

    def current(self, criterion: CriterionName) -> CriterionValues:
        """By the sums at hand."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self._found(self._sums(None, criterion))
        return found if np.isfinite(found.mean[0]) else self.fitted.current(criterion)

    def excluded(self) -> Mask:
        """Constant, or of next to nothing left beside those chosen."""
        return np.asarray(~self.chosen & (self.swept.spent(self.tolerance) | self.constant))

    def toggle(self, place: int) -> None:
        """Sweep on the feature."""
        away = self._away(np.array([place]), slice(None))
        own = self.swept.within[place, place]
        for k, (lo, hi) in enumerate(pairwise(self.ends)):
            self.cross[:, lo:hi] += away[:, 0, lo:hi] * away[k, 0, lo:hi] / own
        self.distance += away[:, 0] ** 2 / own
        self.swept.turn(place, back=bool(self.chosen[place]))
        self.chosen[place] ^= True

    def include_all(self) -> None:
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

    def _found(self, sums: Floats) -> CriterionValues:
        """From sums of losses and of their squares, each row a fold of its own."""
        n, total = int((self.weight > 0).sum()), self.weight.sum()
        mean = sums[0] / total
        return CriterionValues(
            mean, np.sqrt(np.maximum(sums[1] / total - mean**2, 0.0) / max(n - 1, 1))
        )

    def _sums(self, places: Places | None, criterion: CriterionName) -> Floats:
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


def _losses(scores: Floats, code: int, criterion: CriterionName) -> Floats:
    """(m, n) loss of each row by each model; NaN where a score is."""
    if criterion == "error":
        lost = np.isnan(scores).any(axis=0)
        return np.where(lost, np.nan, scores.argmax(axis=0) != code)
    top = scores.max(axis=0)
    return np.asarray(np.log(np.exp(scores - top).sum(axis=0)) + top - scores[code])
