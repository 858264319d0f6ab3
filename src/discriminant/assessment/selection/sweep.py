"""Sweep operator for feature selection: held-out losses of Gaussian models without fitting them.

The losses of all models with one feature more or less are computed at once. For each fold, the
moments of the other folds are swept on the selected features (`SweptRows`). Let s_k be the current
scores of the fold's rows for class k. Adding or removing feature j changes s_k to

    one covariance    s_k + x_j a_jk - m_jk a_jk / 2,        a_jk = m_jk / C_jj
    one for each      s_k - (x_j - m_jk)^2 / (2 C_kjj) - log|C_kjj| / 2

(with one covariance, terms common to all classes are dropped), so all candidates of a step cost
N d K operations. This holds for every Gaussian family in which the covariance of a subset of the
features is a block of the full covariance. The formulas do not hold for shrinkage toward a mean of
variances, nor for an estimated amount of shrinkage.

Losses depend only on differences to the score of the true class:

    t_k = score_k - score_true       wrong: some t_k > 0       log loss: log(1 + sum_k exp t_k)

If scores are equal, the first class is predicted. Since sum log z = log prod z, values are
multiplied over as many rows as possible without overflow, and one log is taken of each product.

Rows and means are swept along with a covariance. With S the selected features, C a covariance, x a
row and m a mean, about any origin, sweeping on a feature p gives

    C_ij - C_ip C_pj / C_pp,   C_ip / C_pp,   C_pp -> -1 / C_pp         x and m as rows of C

For a feature j outside S, x_j is then the residual of the regression of j on S; for j in S, it is
the j-th component of C_S^-1 x. In both cases adding or removing j changes a squared distance and a
log determinant by

    (x_j - m_j)^2 / C_jj         log |C_jj|                              C_jj < 0 within S

One sweep costs N d operations, a rank-one update by BLAS; no system is ever solved.

Leave-one-out for LDA: for a row of class c, with W the scatter within classes of all rows, leaving
the row out of the fit gives (`total`, `loss` and `stretch` as in `resampling.leave_one_out`)

    score_k = -total (D_k + loss g_k^2 / left) / 2 + log prior_k        times stretch^2 for k = c
    D_k = (x - m_k)' W^-1 (x - m_k)    g_k = (x - m_k)' W^-1 (x - m_c)    left = 1 - loss D_c

With rows swept along with W, adding or removing feature j changes D_k and g_k by one product each:

    D_k + (x_j - m_jk)^2 / W_jj        g_k + (x_j - m_jk)(x_j - m_jc) / W_jj

If a row has almost all the scatter in some direction (`left` below 1e-6), the candidate model is
fitted instead.
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

LossSums = Callable[[Iterable[Floats], int, Floats | None], Floats]
_MAX_LOG = 600.0  # largest log of a product of doubles
_MAX_EXPONENT = 80.0  # largest t for which exp t is summed without scaling


def error_sums(margins: Iterable[Floats], code: int, weight: Floats | None) -> Floats:
    """Return the misclassified weight of rows of class `code` for each of m models, (m,).

    `margins` yields `t_k` (m, n) for each other class k.
    """
    wrong = None
    for k, t in enumerate(margins):
        ahead = t >= 0.0 if k < code else t > 0.0
        wrong = ahead if wrong is None else np.logical_or(wrong, ahead, out=wrong)
    assert wrong is not None
    if weight is None:
        return np.asarray(wrong.sum(axis=1, dtype=np.float64))
    return np.asarray(np.dot(wrong.astype(np.float64), weight))


def log_loss_sums(margins: Iterable[Floats], code: int, weight: Floats | None) -> Floats:
    """Return the summed log loss of rows of class `code` for each of m models, (m,).

    Overwrites the margins.
    """
    all_t = list(margins)
    largest = max(0.0, *(float(t.max(initial=0.0)) for t in all_t))
    top = None if largest < _MAX_EXPONENT else _row_maximum(all_t)
    total = np.ones(1) if top is None else np.exp(-top)
    for t in all_t:
        if top is not None:
            t -= top
        total = np.add(total, np.exp(t, out=t), out=t)
    if weight is not None:
        sums = np.dot(np.log(total), weight)
        return np.asarray(sums if top is None else sums + np.dot(top, weight))
    sums = _log_product(total, np.log(len(all_t) + 1) + (largest if top is None else 0.0))
    return np.asarray(sums if top is None else sums + top.sum(axis=1))


def _row_maximum(margins: list[Floats]) -> Floats:
    """Return the largest score of each row minus the score of its true class, (m, n).

    The result is never negative, since the true class is one of the classes.
    """
    top = np.maximum(margins[0], 0.0)
    for t in margins[1:]:
        np.maximum(top, t, out=top)
    return top


def _log_product(values: Floats, largest: float) -> Floats:
    """Return the sum of the logs of each row of an (m, n) array.

    No log is negative or exceeds `largest`.
    """
    factors = 1
    while values.shape[1] > 1 and (2 * factors + 1) * largest < _MAX_LOG:
        half, odd = divmod(values.shape[1], 2)
        products = values[:, :half] * values[:, half : 2 * half]
        if odd:
            products[:, 0] *= values[:, -1]
        values, factors = products, 2 * factors + 1
    return np.asarray(np.log(values).sum(axis=1))


class SweptRows:
    """A covariance, means and rows, all swept on the same features."""

    def __init__(self, within: Floats, means: Floats, rows: Floats) -> None:
        self.within = within  # (d, d) swept covariance
        self.means = means  # (g, d) swept means
        self.rows = rows  # (d, n) swept rows, contiguous by feature
        self.variance = np.diagonal(within).copy()  # (d,) variances before any sweep

    def sweep(self, place: int, *, back: bool) -> None:
        """Sweep on a feature, which enters the model, or leaves it if `back` is True."""
        pivot = self.within[place, place]
        slope = self.within[place] / pivot
        line, mean = self.rows[place].copy(), self.means[:, place].copy()
        blas.dger(-1.0, line, slope, a=self.rows.T, overwrite_a=1)
        self.means -= np.multiply.outer(mean, slope)
        sign = -pivot if back else pivot
        self.rows[place], self.means[:, place] = line / sign, mean / sign
        sweep(self.within, place, back=back)

    def sweep_all(self, features: tuple[str, ...], rows: float, classes: int) -> float:
        """Sweep on all features at once and return the log determinant.

        Raises an error that names the collinear features if the covariance is singular.
        """
        d = len(self.variance)
        if rows - classes < d:
            raise InferenceError.too_wide(_BACKWARD, rows, classes, d)
        sd = np.sqrt(self.variance)
        invertible_metric(self.within / sd[:, None] / sd, features, _BACKWARD)
        low, _ = lapack.dpotrf(self.within, lower=True)
        inverse, _ = lapack.dpotri(low, lower=True)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        self.rows, self.means = np.dot(inverse, self.rows), np.dot(self.means, inverse)
        self.within = -inverse
        return 2.0 * float(np.log(np.diagonal(low)).sum())

    def explained(self, tolerance: float) -> Mask:
        """Return a mask (d,): True where less than `tolerance` of a feature's variance is left."""
        return np.asarray(np.diagonal(self.within) < tolerance * self.variance)


_BACKWARD = "Backward selection"
_TILE = 1 << 15  # numbers processed at a time, so that they stay in the cache


def is_block_wise(family: GaussianFamily) -> bool:
    """Return whether the covariance of a subset of features is a block of the full covariance."""
    if isinstance(family.shrinkage, str) or family.structure != "full":
        return False
    return family.shrinkage == 0.0 or family.target != "scaled_identity"


class FoldSweep:
    """Criterion of Gaussian models on held-out rows of each fold, by sweeping."""

    def __init__(
        self, estimator: Any, table: Table, fold: FoldNumbers, constant: Mask, *, tolerance: float
    ) -> None:
        self.constant, self.tolerance = constant, tolerance
        self.chosen: Mask = np.zeros(table.width, dtype=np.bool_)
        family, priors = estimator.family, fold_log_priors(estimator, table, fold)
        parts = fold_moments(table, fold, "pooled" if family.linear else "class")
        jobs = zip(rows_by_fold(fold), sums_without_each(parts), priors, strict=True)
        folds = [SweptFold(table, rows, train, family, prior) for rows, train, prior in jobs]
        self.folds = [fold for fold in folds if fold.total > 0]
        self.weight = np.array([fold.total for fold in self.folds])

    def evaluate_changes(self, places: Places, criterion: CriterionName) -> CriterionValues:
        """Evaluate all models with one feature more or less, with folds in parallel."""
        sums = self._map_folds(lambda fold: fold.sums(places, criterion))
        return CriterionValues.of_folds(np.array(sums), self.weight)

    def current(self, criterion: CriterionName) -> CriterionValues:
        """Return the criterion of the current model from its scores."""
        sums = [fold.current_sums(criterion) for fold in self.folds]
        return CriterionValues.of_folds(np.array(sums), self.weight)

    def excluded(self) -> Mask:
        """Return a mask of features that are constant, or collinear in some training set."""
        explained = np.any([fold.explained(self.tolerance) for fold in self.folds], axis=0)
        return np.asarray(~self.chosen & (explained | self.constant))

    def toggle(self, place: int) -> None:
        """Sweep the moments and rows of every fold on the feature."""
        back = bool(self.chosen[place])
        self._map_folds(lambda fold: fold.sweep(place, back=back))
        self.chosen[place] = not back

    def include_all(self) -> None:
        """Sweep every fold on all features that are not constant."""
        for fold in self.folds:
            fold.sweep_all()
        self.chosen |= ~self.constant

    def _map_folds(self, work: Callable[[SweptFold], Any]) -> list[Any]:
        with one_blas_thread(), ThreadPoolExecutor(available_threads()) as pool:
            return list(pool.map(in_thread(work), self.folds))


class SweptFold:
    """Rows of one fold, sorted by class, with the swept moments of the other folds."""

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
        # (K, n) current scores
        self.scores = np.repeat(log_prior[present][:, None], len(rows), axis=1)
        self.features, self.trained = train.features, float(train.weight.sum())
        self.swept = sweep_rows(train, train.anchor.offsets(table.features[rows]), family)

    def sums(self, places: Places, criterion: CriterionName) -> Floats:
        """Sum the losses of the rows for each model with one feature added or removed, (m,)."""
        sums = np.zeros(len(places))
        sum_losses = error_sums if criterion == "error" else log_loss_sums
        for code, span in self._classes():
            size = max(1, _TILE // max(span.stop - span.start, 1))
            weight = None if self.weight is None else self.weight[span]
            for start in range(0, len(places), size):
                tile = slice(start, start + size)
                sums[tile] += sum_losses(self._margins(places[tile], span, code), code, weight)
        return sums

    def current_sums(self, criterion: CriterionName) -> Floats:
        """Sum the losses of the rows for the current model, (1,)."""
        sums = np.zeros(1)
        sum_losses: LossSums = error_sums if criterion == "error" else log_loss_sums
        for code, span in self._classes():
            weight = None if self.weight is None else self.weight[span]
            scores = self.scores[:, span]
            margins = (scores[k] - scores[code] for k in range(len(scores)) if k != code)
            sums += sum_losses((t[None] for t in margins), code, weight)
        return sums

    def explained(self, tolerance: float) -> Mask:
        """Return a mask (d,) of features that the selected features explain within classes.

        With a covariance for each class, a feature counts as explained if the selected features
        explain it within any one class.
        """
        return np.asarray(np.any([swept.explained(tolerance) for swept in self.swept], axis=0))

    def sweep(self, place: int, *, back: bool) -> None:
        """Sweep on a feature and update the scores."""
        for k in range(len(self.scores)):
            self.scores[k] += self._change(k, np.array([place]), slice(None))[0]
        for swept in self.swept:
            swept.sweep(place, back=back)

    def sweep_all(self) -> None:
        """Sweep on all features and update the scores."""
        K = len(self.scores)
        for i, swept in enumerate(self.swept):
            rows, means = swept.rows, swept.means
            logdet = swept.sweep_all(self.features, self.trained, K)
            if len(self.swept) == 1:
                self.scores += np.dot(means, swept.rows)
                self.scores -= 0.5 * np.einsum("kd,kd->k", means, swept.means)[:, None]
            else:
                offsets, solved = rows - means[0][:, None], swept.rows - swept.means[0][:, None]
                self.scores[i] -= 0.5 * (np.einsum("dn,dn->n", offsets, solved) + logdet)

    def _classes(self) -> Iterator[tuple[int, slice]]:
        for code, (lo, hi) in enumerate(pairwise(self.ends)):
            if hi > lo:
                yield code, slice(lo, hi)

    def _margins(self, places: Places, span: slice, code: int) -> Iterator[Floats]:
        """Yield the score of each other class minus the score of the true class, (m, n)."""
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
            t = rows * (along[k] - along[code])[:, None]
            t += scores[k] - scores[code]
            t -= (fixed[k] - fixed[code])[:, None]
            yield t

    def _change(self, k: int, places: Places, span: slice) -> Floats:
        """Return the change of the score of class k when a feature is added or removed, (m, n)."""
        swept = self.swept[k if len(self.swept) > 1 else 0]
        own = np.diagonal(swept.within)[places][:, None]
        if len(self.swept) == 1:
            mean = swept.means[k, places][:, None]
            return np.asarray((swept.rows[places, span] - 0.5 * mean) * (mean / own))
        offsets = swept.rows[places, span] - swept.means[0, places][:, None]
        return np.asarray(-0.5 * (offsets**2 / own + np.log(np.abs(own))))


def sweep_rows(train: ClassMoments, offsets: Floats, family: GaussianFamily) -> list[SweptRows]:
    """Return a list of unswept rows, each with covariance and class means.

    The list has a single element, or one element per class if classes have their own covariances.

    Columns are centred and divided by their standard deviation within classes; a column that is
    constant in this training set is zero.
    """
    check_classes(train)
    centre = train.centre
    pooled = pooled_covariance(train, family.denominator)
    variance = floor_variances(train, np.diagonal(pooled))
    per_sd = np.divide(1.0, np.sqrt(variance), out=np.zeros_like(variance), where=variance > 0)
    rows, means = ((offsets - centre) * per_sd).T, (train.mean - centre) * per_sd
    if family.linear:
        amount = float(family.shrinkage)
        shrunk = shrink(pooled, amount, family.target, train.anchor.unit)
        within = _standardise(shrunk, floor_variances(train, np.diagonal(shrunk)), per_sd)
        return [SweptRows(within, means, np.array(rows, order="C"))]
    check_rows_for_family(train, family)
    swept = []
    for k, covariance in enumerate(family_covariances(train, family)):
        floored = floor_variances(train, np.diagonal(covariance), k)
        within = _standardise(covariance, floored, per_sd)
        swept.append(SweptRows(within, means[k : k + 1].copy(), np.array(rows, order="C")))
    return swept


def _standardise(covariance: Floats, variance: Floats, per_sd: Floats) -> Floats:
    """Standardise a covariance and set its diagonal to the variances; to 1 for constant columns."""
    within = covariance * per_sd * per_sd[:, None]
    np.fill_diagonal(within, np.where(per_sd > 0, variance * per_sd**2, 1.0))
    return within


_MIN_LEFT = 1e-6  # least share of the scatter along a row that the other rows must contribute


class LeaveOneOutSweep:
    """Criterion of LDA with each row left out, by sweeping."""

    def __init__(
        self, estimator: Any, table: Table, fold: FoldNumbers, constant: Mask, *, tolerance: float
    ) -> None:
        self.constant, self.tolerance = constant, tolerance
        self.chosen: Mask = np.zeros(table.width, dtype=np.bool_)
        self.refit = RefitCriterion(estimator, table, fold, constant)
        self.refit.chosen = self.chosen
        table = table.take(np.argsort(table.codes, kind="stable"))
        self.weight = np.ones(len(table)) if table.weight is None else table.weight
        # (K, N) log priors without each row
        self.log_prior = fold_log_priors(estimator, table, np.arange(len(table))).T.copy()
        self.moments = read_moments(table, detail="pooled")
        self.without = LeaveOneOutTerms.of(self.moments, table, estimator.family)
        self.degrees = pooled_degrees(self.moments, estimator.family.denominator)
        (self.swept,) = sweep_rows(self.moments, self.without.offsets, estimator.family)
        K = len(self.moments.labels)
        self.ends = np.searchsorted(table.codes, np.arange(K + 1)).tolist()
        self.distance, self.cross = np.zeros((2, K, len(table)))  # D and g, of W / degrees

    def evaluate_changes(self, places: Places, criterion: CriterionName) -> CriterionValues:
        """Evaluate models with one feature more or less; refit those with too few valid digits."""
        sums = np.zeros((2, len(places)))
        size = max(1, _TILE // len(self.weight))
        with one_blas_thread(), np.errstate(divide="ignore", invalid="ignore"):
            for start in range(0, len(places), size):
                tile = slice(start, start + size)
                sums[:, tile] = self._sums(places[tile], criterion)
        values = self._values(sums)
        for i in np.flatnonzero(~np.isfinite(values.mean)):
            refitted = self.refit.evaluate_changes(places[i : i + 1], criterion)
            values.mean[i], values.se[i] = refitted.mean[0], refitted.se[0]
        return values

    def current(self, criterion: CriterionName) -> CriterionValues:
        """Return the criterion of the current model, computed from the distances of its rows."""
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self._values(self._sums(None, criterion))
        return values if np.isfinite(values.mean[0]) else self.refit.current(criterion)

    def excluded(self) -> Mask:
        """Return a mask of features that are constant, or collinear with those selected."""
        return np.asarray(~self.chosen & (self.swept.explained(self.tolerance) | self.constant))

    def toggle(self, place: int) -> None:
        """Sweep on the feature."""
        offsets = self._offsets(np.array([place]), slice(None))
        own = self.swept.within[place, place]
        for k, (lo, hi) in enumerate(pairwise(self.ends)):
            self.cross[:, lo:hi] += offsets[:, 0, lo:hi] * offsets[k, 0, lo:hi] / own
        self.distance += offsets[:, 0] ** 2 / own
        self.swept.sweep(place, back=bool(self.chosen[place]))
        self.chosen[place] ^= True

    def include_all(self) -> None:
        """Sweep on all features that are not constant."""
        rows, means = self.swept.rows, self.swept.means
        self.swept.sweep_all(self.moments.features, float(self.weight.sum()), len(means))
        for k, mean in enumerate(means):
            offsets = rows - mean[:, None]
            solved = self.swept.rows - self.swept.means[k][:, None]
            self.distance[k] = np.einsum("dn,dn->n", offsets, solved)
            for c, (lo, hi) in enumerate(pairwise(self.ends)):
                own = self.swept.rows[:, lo:hi] - self.swept.means[c][:, None]
                self.cross[k, lo:hi] = np.einsum("dn,dn->n", offsets[:, lo:hi], own)
        self.chosen |= ~self.constant

    def _values(self, sums: Floats) -> CriterionValues:
        """Return the criterion from sums of losses and of squared losses; each fold is one row."""
        n, total = int((self.weight > 0).sum()), self.weight.sum()
        mean = sums[0] / total
        return CriterionValues(
            mean, np.sqrt(np.maximum(sums[1] / total - mean**2, 0.0) / max(n - 1, 1))
        )

    def _sums(self, places: Places | None, criterion: CriterionName) -> Floats:
        """Sum losses and squared losses over the rows, (2, m); NaN if too few digits remain."""
        sums = np.zeros((2, 1))
        for code, (lo, hi) in enumerate(pairwise(self.ends)):
            scores = self._scores(places, slice(lo, hi), code)
            losses = _row_losses(scores, code, criterion)
            sums = sums + np.stack([losses, losses**2]) @ self.weight[lo:hi]
        return sums

    def _scores(self, places: Places | None, span: slice, code: int) -> Floats:
        """Return the scores of rows of one class, (K, m, n), by models fitted without the row."""
        distance, cross = self.distance[:, None, span], self.cross[:, None, span]
        if places is not None:
            own = np.diagonal(self.swept.within)[places][:, None]
            offsets = self._offsets(places, span)
            inner = offsets[code] / own
            distance, cross = distance + offsets**2 / own, cross + offsets * inner
        drop = self.without.loss[span] / self.degrees
        left = 1.0 - drop * distance[code]
        scores = distance + (drop / np.where(left < _MIN_LEFT, np.nan, left)) * cross**2
        scores[code] *= self.without.stretch[span] ** 2
        scores *= -0.5 * self.without.total[span] / self.degrees
        scores += self.log_prior[:, None, span]
        return np.asarray(scores)

    def _offsets(self, places: Places, span: slice) -> Floats:
        """Return swept rows minus swept class means, (K, m, n)."""
        return self.swept.rows[places, span] - self.swept.means[:, places, None]


def _row_losses(scores: Floats, code: int, criterion: CriterionName) -> Floats:
    """Return the loss of each row for each model, (m, n); NaN where a score is NaN."""
    if criterion == "error":
        undefined = np.isnan(scores).any(axis=0)
        return np.where(undefined, np.nan, scores.argmax(axis=0) != code)
    top = scores.max(axis=0)
    return np.asarray(np.log(np.exp(scores - top).sum(axis=0)) + top - scores[code])
