"""Laplace naive Bayes: independent Laplace-distributed features, with medians in place of means.

    p(x_j | k) = exp(-|x_j - m_kj| / b_kj) / (2 b_kj)

    m_kj = weighted median of x_j over the rows of class k     (maximum likelihood)
    b_kj = weighted mean of |x_j - m_kj| over the rows of class k
    score_k(x) = log prior_k - sum_j |x_j - m_kj| / b_kj - sum_j log 2 b_kj

The score is piecewise linear, with kinks where a feature crosses a median (lecture 4). If the
weights below and above are equal, the median is half way between the two middle values; so a row of
weight 2 is equivalent to two equal rows. The median of all rows cannot be computed from the medians
of subsets, so this model needs the rows (`ClassRows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discriminant.models.expressions import Expression, offset_expression, stack
from discriminant.models.gaussian.covariance import floor_variances
from discriminant.models.gaussian.family import check_classes
from discriminant.models.rules import overflow_rows, relative_to_largest, scale_by_power
from discriminant.moments.anchor import Anchor, Powers
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.table.blocks import Features, Floats, Labels, dense

_EPS = float(np.finfo(np.float64).eps)
_ROWS = 2048  # rows scored at a time, so that a block stays in the cache


@dataclass(frozen=True, slots=True, eq=False)
class LaplaceRule:
    """Rule of K classes whose features are independent and Laplace-distributed."""

    labels: Labels  # (K,)
    anchor: Anchor
    median: Floats  # (K, d) offsets of the class medians
    scale: Floats  # (K, d) mean deviation from the median; infinite leaves the column out
    log_prior: Floats  # (K,)

    def scores(self, features: Features) -> Floats:
        """Return the (n, K) scores of the classes."""
        scores = self._deviations(features)
        scores += self.log_prior - self._log_norm()
        for rows in overflow_rows(scores):
            far = relative_to_largest(*self._scaled(features[rows]))
            scores[rows] = far + (self.log_prior - self._log_norm())
        return scores

    def expression(self, x: Expression, names: Sequence[str]) -> Expression:
        """Return the (K,) scores as an expression of the features of one row."""
        u = offset_expression(x, self.anchor)
        deviations = []
        for median, scale, name in zip(self.median, self.scale, names, strict=True):
            used = np.flatnonzero(np.isfinite(scale))
            deviation = ((u.pick(used) - median[used]).abs() / scale[used]).sum()
            deviations.append(deviation.with_name(f"away_{name}"))
        scores: Expression = stack(deviations) * -1.0 + (self.log_prior - self._log_norm())
        return scores.with_name("score", names)

    def log_densities(self, features: Features) -> Floats:
        """Return the (n, K) log densities log p(x | class) of the offsets `(x - origin) / unit`.

        A log density below the range of float64 is -inf.
        """
        densities = self._deviations(features)
        densities -= self._log_norm()
        for rows in overflow_rows(densities):
            densities[rows] = scale_by_power(*self._scaled(features[rows])) - self._log_norm()
        return densities

    def _log_norm(self) -> Floats:
        """Return the sum over columns of log(2 scale) for each class, its log normaliser."""
        used = np.isfinite(self.scale)
        return np.asarray(np.log(2.0 * np.where(used, self.scale, 0.5)).sum(axis=1))

    def _scaled(self, features: Features) -> tuple[Floats, Powers]:
        """Return `_deviations` divided by 2^power for each row, and the (n,) powers."""
        offsets, power = self.anchor.scaled_offsets(features)
        deviations = [
            -(np.abs(offsets - np.ldexp(median, -power[:, None])) / scale).sum(axis=1)
            for median, scale in zip(self.median, self.scale, strict=True)
        ]
        return np.column_stack(deviations), power

    @np.errstate(over="ignore", invalid="ignore")
    def _deviations(self, features: Features) -> Floats:
        """Return the (n, K) sums over columns of -|x - median| / scale, by class."""
        deviations = np.empty((features.shape[0], len(self.labels)))
        for lo in range(0, len(deviations), _ROWS):
            offsets = self.anchor.offsets(dense(features[lo : lo + _ROWS]))
            for k, (median, scale) in enumerate(zip(self.median, self.scale, strict=True)):
                deviations[lo : lo + _ROWS, k] = -(np.abs(offsets - median) / scale).sum(axis=1)
        return deviations


def fit_laplace(rows: ClassRows, *, prior: Floats) -> LaplaceRule:
    """Fit Laplace naive Bayes to rows.

    Examples
    --------
    >>> from discriminant.engines.dispatch import moments
    >>> rows = moments([[0.0], [1.0], [5.0], [6.0], [9.0]], list("aabbb"), detail="rows")
    >>> rule = fit_laplace(rows, prior=np.array([0.5, 0.5]))
    >>> rule.anchor.values(rule.median).ravel().tolist(), rule.scale.round(3).ravel().tolist()
    ([0.5, 6.0], [0.5, 1.333])
    """
    check_classes(rows, "a mean deviation")
    median, scale = np.zeros_like(rows.mean), np.zeros_like(rows.mean)
    moments = rows.reduce("diagonal")
    for k in range(len(rows.labels)):
        own = rows.codes == k
        offsets, weights = rows.offsets[own], rows.weights[own]
        median[k] = weighted_median(offsets, weights)
        deviation = weights @ np.abs(offsets - median[k]) / rows.weight[k]
        scale[k] = np.sqrt(floor_variances(moments, deviation**2, k))
    scale[scale == 0] = np.inf
    return LaplaceRule(rows.labels, rows.anchor, median, scale, np.log(prior))


def weighted_median(values: Floats, weights: Floats) -> Floats:
    """Return the (d,) weighted medians of the columns of `values` (n, d); `weights` is (n,).

    >>> weighted_median(np.array([[1.0], [2.0], [9.0]]), np.array([1.0, 1.0, 2.0])).tolist()
    [5.5]
    """
    if (weights == weights[0]).all():
        return np.asarray(np.median(values, axis=0))
    order = np.argsort(values, axis=0, kind="stable")
    below = np.cumsum(weights[order], axis=0)
    half, rounding = 0.5 * below[-1], len(weights) * _EPS * below[-1]
    lower = np.argmax(below >= half - rounding, axis=0)
    upper = np.argmax(below > half + rounding, axis=0)
    ranked = np.take_along_axis(values, order, axis=0)
    columns = np.arange(values.shape[1])
    low, high = ranked[lower, columns], ranked[upper, columns]
    return np.asarray(low + 0.5 * (high - low))
