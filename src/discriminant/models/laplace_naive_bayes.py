"""Naive Bayes with Laplace-distributed features: medians where a Gaussian model has means.

    p(x_j | k) = exp(-|x_j - m_kj| / b_kj) / (2 b_kj)

    m_kj = weighted median of the rows of class k              (maximum likelihood)
    b_kj = weighted mean of |x_j - m_kj| over them
    score_k(x) = log prior_k - sum_j |x_j - m_kj| / b_kj - sum_j log 2 b_kj

The score is piecewise linear, with kinks where a feature crosses a median (lecture 4). A median is
half way between the two middle values when the weights below and above are equal, so that an
integer weight equals repeated rows. Medians do not add, so this model needs the rows: `ClassRows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discriminant.errors import LabelError, TooFewRowsError, WeightError
from discriminant.models.expressions import Expression, offset_expression, stack
from discriminant.models.gaussian.covariance import floor_variances
from discriminant.models.rules import overflow_rows, relative_to_largest, scale_by_power
from discriminant.moments.anchor import Anchor, Powers
from discriminant.moments.stored_rows import ClassRows
from discriminant.table.blocks import Features, Floats, Labels, dense

_EPS = float(np.finfo(np.float64).eps)
_ROWS = 2048  # rows scored at a time, so that a block stays in the cache


@dataclass(frozen=True, slots=True, eq=False)
class LaplaceRule:
    """K Laplacian classes of independent features."""

    labels: Labels  # (K,)
    anchor: Anchor
    median: Floats  # (K, d) offsets
    scale: Floats  # (K, d) mean deviation from the median; infinite where a column is left out
    log_prior: Floats  # (K,)

    def scores(self, features: Features) -> Floats:
        """(n, K) score of each class."""
        scores = self._deviations(features)
        scores += self.log_prior - self._height()
        for rows in overflow_rows(scores):
            far = relative_to_largest(*self._scaled(features[rows]))
            scores[rows] = far + (self.log_prior - self._height())
        return scores

    def expression(self, x: Expression, names: Sequence[str]) -> Expression:
        """(K,) scores as an expression of the features of one row."""
        u, counted = offset_expression(x, self.anchor), np.isfinite(self.scale)
        each = []
        for median, scale, some, name in zip(self.median, self.scale, counted, names, strict=True):
            own = np.flatnonzero(some)
            deviation = ((u.pick(own) - median[own]).abs() / scale[own]).sum()
            each.append(deviation.with_name(f"away_{name}"))
        scores: Expression = stack(each) * -1.0 + (self.log_prior - self._height())
        return scores.with_name("score", names)

    def log_densities(self, features: Features) -> Floats:
        """(n, K) log p(x | class) in units of the anchor; -inf beyond float64."""
        densities = self._deviations(features)
        densities -= self._height()
        for rows in overflow_rows(densities):
            densities[rows] = scale_by_power(*self._scaled(features[rows])) - self._height()
        return densities

    def _height(self) -> Floats:
        """(K,) sum of log 2 b_kj over the columns that count."""
        counted = np.isfinite(self.scale)
        return np.asarray(np.log(2.0 * np.where(counted, self.scale, 0.5)).sum(axis=1))

    def _scaled(self, features: Features) -> tuple[Floats, Powers]:
        """(n, K) less the sum of deviations, divided by 2^power (n,)."""
        offsets, power = self.anchor.scaled_offsets(features)
        each = [
            -(np.abs(offsets - np.ldexp(median, -power[:, None])) / scale).sum(axis=1)
            for median, scale in zip(self.median, self.scale, strict=True)
        ]
        return np.column_stack(each), power

    @np.errstate(over="ignore", invalid="ignore")
    def _deviations(self, features: Features) -> Floats:
        """(n, K) less the sum of deviations from the medians of a class, each over its scale."""
        deviations = np.empty((features.shape[0], len(self.labels)))
        for lo in range(0, len(deviations), _ROWS):
            offsets = self.anchor.offsets(dense(features[lo : lo + _ROWS]))
            for k, (median, scale) in enumerate(zip(self.median, self.scale, strict=True)):
                deviations[lo : lo + _ROWS, k] = -(np.abs(offsets - median) / scale).sum(axis=1)
        return deviations


def fit_laplace(rows: ClassRows, *, prior: Floats) -> LaplaceRule:
    """Rule of Laplacian classes.

    Examples
    --------
    >>> from discriminant.engines.dispatch import moments
    >>> found = moments([[0.0], [1.0], [5.0], [6.0], [9.0]], list("aabbb"), detail="rows")
    >>> rule = fit_laplace(found, prior=np.array([0.5, 0.5]))
    >>> rule.anchor.values(rule.median).ravel().tolist(), rule.scale.round(3).ravel().tolist()
    ([0.5, 6.0], [0.5, 1.333])
    """
    _check(rows)
    median, scale = np.zeros_like(rows.mean), np.zeros_like(rows.mean)
    spread = rows.reduce("diagonal")
    for k in range(len(rows.labels)):
        own = rows.codes == k
        offsets, weights = rows.offsets[own], rows.weights[own]
        median[k] = weighted_median(offsets, weights)
        deviation = weights @ np.abs(offsets - median[k]) / rows.weight[k]
        scale[k] = np.sqrt(floor_variances(spread, deviation**2, k))
    scale[scale == 0] = np.inf
    return LaplaceRule(rows.labels, rows.anchor, median, scale, np.log(prior))


def weighted_median(values: Floats, weights: Floats) -> Floats:
    """(d,) median of each column of values (n, d), each row counted `weights` (n,) times.

    >>> weighted_median(np.array([[1.0], [2.0], [9.0]]), np.array([1.0, 1.0, 2.0])).tolist()
    [5.5]
    """
    if (weights == weights[0]).all():
        return np.asarray(np.median(values, axis=0))
    order = np.argsort(values, axis=0, kind="stable")
    below = np.cumsum(weights[order], axis=0)
    half, dust = 0.5 * below[-1], len(weights) * _EPS * below[-1]
    lower = np.argmax(below >= half - dust, axis=0)
    upper = np.argmax(below > half + dust, axis=0)
    ranked = np.take_along_axis(values, order, axis=0)
    columns = np.arange(values.shape[1])
    low, high = ranked[lower, columns], ranked[upper, columns]
    return np.asarray(low + 0.5 * (high - low))


def _check(rows: ClassRows) -> None:
    """Two or more classes, each with weight, and a row more than classes."""
    if len(rows.labels) < 2:
        raise LabelError.one_class(rows.labels[0] if len(rows.labels) else "none")
    for k in np.flatnonzero(rows.weight <= 0):
        raise WeightError.zero_class(rows.labels[k])
    if rows.rows.sum() <= len(rows.labels):
        raise TooFewRowsError.of_table(int(rows.rows.sum()), len(rows.labels), "a mean deviation")
