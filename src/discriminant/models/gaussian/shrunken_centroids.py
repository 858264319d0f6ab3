"""Nearest shrunken centroids (PAM): class means shrunk towards the overall mean, by feature.

For feature j and class k of weight n_k, with n the weight of all K classes, x_j the overall mean,
s_j^2 the pooled variance (denominator n - K) and s_0 a quantile of all s_j:

    m_k   = sqrt(1 / n_k - 1 / n)
    d_kj  = (mean_kj - x_j) / (m_k (s_j + s_0))              standardised difference
    d'_kj = sign(d_kj) max(|d_kj| - threshold, 0)            soft threshold
    centroid_kj = x_j + m_k (s_j + s_0) d'_kj                shrunken centroid

    score_k(x) = log prior_k - 1/2 sum_j ((x_j - centroid_kj) / (s_j + s_0))^2

A feature whose d'_kj are zero for all classes adds the same term to all scores, so it is left out.
The scores are linear in x, up to a term common to all classes:

    score_k(x) = sum_j (x_j - x_j mean) m_k d'_kj / (s_j + s_0) - 1/2 sum_j (m_k d'_kj)^2
                 + log prior_k

Only weights, means and variances are needed. With K = 2 and threshold 0, d_kj is a t statistic with
s_0 added to its denominator; s_0 prevents features with a very small variance from being selected
by chance. The formulas are those of Tibshirani, Hastie, Narasimhan and Chu (2002, PNAS 99, and
2003, Statistical Science 18, which corrects the sign in m_k).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discriminant.errors import (
    ConstantColumnWarning,
    NoFeatureSelectedWarning,
    TooFewRowsError,
    warn,
)
from discriminant.models.gaussian.covariance import (
    Columns,
    floor_variances,
    non_finite_message,
    pooled_covariance,
    rounding_variance,
)
from discriminant.models.gaussian.family import check_classes
from discriminant.models.rules import LinearRule
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.table.blocks import Floats

_LARGEST = 1e300  # largest scale; larger scales (of columns of tiny values) are replaced by it


@dataclass(frozen=True, slots=True, eq=False)
class CentroidDifferences:
    """Standardised differences between the class means and the overall mean."""

    moments: ClassMoments
    difference: Floats  # (K, d) d_kj; zero for a column that is constant in all rows
    error: Floats  # (K,) m_k
    scale: Floats  # (d,) s_j + s_0 of the offsets (x - origin) / unit; 1 for a constant column
    offset: float  # s_0 in data units

    @classmethod
    def of(cls, moments: ClassMoments, *, offset_percent: float) -> CentroidDifferences:
        """Standardise the differences of class means; warn about constant columns."""
        check_classes(moments, "a pooled variance")
        sd, constant, offset = _column_scales(moments, offset_percent)
        with np.errstate(over="ignore"):
            scale = np.minimum(sd + offset / moments.anchor.unit, _LARGEST)
        scale = np.where(constant, 1.0, scale)
        error = np.sqrt(1.0 / moments.weight - 1.0 / moments.weight.sum())
        difference = (moments.mean - moments.centre) / scale / error[:, None]
        difference[:, constant] = 0.0
        return cls(moments, difference, error, scale, offset)

    @property
    def largest(self) -> float:
        """Smallest threshold that removes every feature: the largest |d_kj|."""
        return float(np.abs(self.difference).max(initial=0.0))

    def shrink(self, threshold: float) -> Floats:
        """Return the (K, d) differences d'_kj after soft thresholding."""
        size = np.maximum(np.abs(self.difference) - threshold, 0.0)
        return np.asarray(np.copysign(size, self.difference) + 0.0)  # no negative zero

    def rule(self, threshold: float, *, prior: Floats) -> ShrunkenCentroidRule:
        """Return the rule with this threshold; warn if it removes every feature."""
        shrunken = self.shrink(threshold)
        if not shrunken.any():
            self._warn_empty(threshold)
        moments, centre = self.moments, self.moments.centre
        anchor, moved = moments.anchor.shift(centre)
        step = self.error[:, None] * shrunken
        coef = step / self.scale
        intercept = np.log(prior) - 0.5 * np.einsum("kj,kj->k", step, step)
        intercept += coef @ (moved - centre)  # the anchor differs from the centre by rounding
        return ShrunkenCentroidRule(
            moments.labels,
            anchor,
            coef,
            intercept,
            shrunken,
            centre - moved + step * self.scale,
            self.scale,
            float(threshold),
            self.offset,
        )

    def _warn_empty(self, threshold: float) -> None:
        if not self.difference.any():
            warn(NoFeatureSelectedWarning.of_constant())
            return
        column = int(np.abs(self.difference).max(axis=0).argmax())
        name = self.moments.features[column]
        warn(NoFeatureSelectedWarning.of_threshold(threshold, self.largest, name))


@dataclass(frozen=True, slots=True, eq=False)
class ShrunkenCentroidRule(LinearRule):
    """Linear rule of shrunken centroids; the coefficients of removed features are zero."""

    shrunken: Floats  # (K, d) standardised differences d'_kj after soft thresholding
    centroid: Floats  # (K, d) offsets of the shrunken centroids from the anchor
    scale: Floats  # (d,) s_j + s_0 of the offsets (x - origin) / unit
    threshold: float
    offset: float  # s_0 in data units

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of a rule are invalid, or None if they are valid."""
        reason = LinearRule.invalid_reason(parts)
        shape = parts["coef"].shape
        if reason is None and not (
            parts["shrunken"].shape == parts["centroid"].shape == shape
            and parts["scale"].shape == shape[1:]
        ):
            reason = f"shrunken, centroid and scale must fit coef {shape}"
        return reason or non_finite_message("centroid", parts["centroid"])


def fit_shrunken_centroids(
    moments: ClassMoments, *, threshold: float, prior: Floats, offset_percent: float = 50.0
) -> ShrunkenCentroidRule:
    """Fit the rule of nearest shrunken centroids to class moments of any detail.

    Examples
    --------
    >>> from discriminant.engines.dispatch import moments
    >>> X = [[0.0, 0.0], [2.0, 2.0], [4.0, 0.5], [6.0, 2.5]]
    >>> classes = moments(X, ["a", "a", "b", "b"], detail="diagonal")
    >>> rule = fit_shrunken_centroids(classes, threshold=0.5, prior=np.array([0.5, 0.5]))
    >>> rule.shrunken.round(3).tolist()  # the second feature is removed
    [[-0.914, 0.0], [0.914, 0.0]]
    """
    check_class_rows(moments)
    differences = CentroidDifferences.of(moments, offset_percent=offset_percent)
    return differences.rule(threshold, prior=prior)


def pooled_variances(moments: ClassMoments) -> Floats:
    """Return the (d,) pooled variances (denominator n - K) of the offsets `(x - origin) / unit`."""
    pooled = pooled_covariance(moments)
    return pooled if pooled.ndim == 1 else np.diagonal(pooled)


def constant_columns(moments: ClassMoments, variance: Floats) -> tuple[Columns, Columns]:
    """Return two masks (d,): columns constant within each class, and columns constant in all rows.

    A variance within the rounding of the class means counts as zero.
    """
    noise = rounding_variance(moments.mean)
    still = variance <= noise
    if not still.any():
        return still, still
    offsets = moments.mean - moments.centre
    between = moments.weight @ offsets**2 / moments.weight.sum()
    return still, still & (variance + between <= 4 * noise)


def _column_scales(moments: ClassMoments, offset_percent: float) -> tuple[Floats, Columns, float]:
    """Return the standard deviations s_j, a mask of the constant columns, and the quantile s_0.

    The s_j (d,) are those of the offsets `(x - origin) / unit`. s_0 is in the units of the data and
    is computed over the columns that vary. If s_0 is zero, columns that vary only between classes
    get a very small s_j instead of zero.
    """
    variance = pooled_variances(moments)
    still, constant = constant_columns(moments, variance)
    sd = np.sqrt(np.where(still, 0.0, variance))
    varying = (sd * moments.anchor.unit)[~constant]
    offset = float(np.quantile(varying, offset_percent / 100.0)) if len(varying) else 0.0
    if offset == 0.0 and (still & ~constant).any():
        sd = np.sqrt(floor_variances(moments, variance))
    elif constant.any():
        names = np.array(moments.features, dtype=object)[constant]
        warn(ConstantColumnWarning.of_columns(names.tolist()))
    return sd, constant, offset


def check_class_rows(moments: ClassMoments | ClassRows) -> None:
    """Raise an error if a class has only a single row, with weight one.

    The centroid of a class with one row is this row, so the distance between them carries no
    information.
    """
    for k in np.flatnonzero((moments.rows == 1) & (moments.weight <= 1.0)):
        label, rows = moments.labels[k], int(moments.rows[k])
        raise TooFewRowsError.of_class(label, rows, 2, "a shrunken centroid")
