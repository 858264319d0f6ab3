"""Shrinkage discriminant analysis: LDA with shrunken correlations and variances, and CAT scores.

Let n be the weight of all rows and n_k that of class k, for K classes and d features. Let z be the
rows minus their class means, v_j the mean of z_j^2 and r_ij the mean of z_i z_j / sqrt(v_i v_j).
Correlations, variances and class shares are shrunk, by the amounts a, b and c (Ahdesmäki and
Strimmer 2010; Schäfer and Strimmer 2005; Opgen-Rhein and Strimmer 2007):

    correlations   R = a I + (1 - a) (r_ij)
        a = sum_{i != j} (mean(z_i^2 z_j^2) / (v_i v_j) - r_ij^2) / ((n - 1) sum_{i != j} r_ij^2)
    variances      V_j = (b median(v) + (1 - b) v_j) n / (n - K)
        b = sum_j (mean(z_j^4) - v_j^2) / ((n - 1) sum_j (v_j - median(v))^2)
    class shares   f_k = c / K + (1 - c) n_k / n
        c = (1 - sum_k (n_k / n)^2) / ((n - 1) sum_k (1 / K - n_k / n)^2)

a, b and c are restricted to [0, 1]. The scores are those of LDA, with the covariance
V^1/2 R V^1/2 and the priors f_k. Features are ranked by correlation-adjusted t (CAT) scores,

    t_kj = (mean_kj - sum_l f_l mean_lj) / sqrt(V_j (1 - f_k) / (n f_k))
    CAT_k = R^-1/2 t_k                    score_j = sum_k (1 - f_k) CAT_kj^2

If a = 1 and b = c = 0, score_j is K - 1 times the F statistic of feature j.

If there are more features than rows, no d x d matrix is formed. With the thin SVD U diag(e) V' of
the rows z_i sqrt(w_i / n) / sqrt(v), the matrix (r_ij) is V diag(e^2) V', so that for any power p

    R^p = a^p (I - V V') + V diag((a + (1 - a) e^2)^p) V'

and the sums over i != j follow from the N x N products of these rows. If there are fewer features
than rows, all sums follow from moments of detail 'fourth'. Constant columns are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.linalg import eigh
from scipy.special import fdtrc

from discriminant.errors import ConstantColumnWarning, NoFeatureSelectedWarning, warn
from discriminant.models.gaussian.covariance import (
    Columns,
    Metric,
    diagonal_metric,
    floor_variances,
    pooled_degrees,
    thin_svd,
)
from discriminant.models.gaussian.family import check_classes, linear_rule
from discriminant.models.gaussian.shrunken_centroids import constant_columns
from discriminant.models.rules import LinearRule
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.table.blocks import Floats, Places

Classes = ClassMoments | ClassRows
Intensity = float | Literal["auto"]
_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class Intensities:
    """Amounts of shrinkage, from 0 to 1; an amount of 'auto' is estimated from the data."""

    correlation: Intensity = "auto"  # a; 1 for uncorrelated features
    variance: Intensity = "auto"  # b
    frequency: Intensity = "auto"  # c

    @property
    def need_fourth(self) -> bool:
        """Whether an amount is estimated that requires fourth moments."""
        return "auto" in (self.correlation, self.variance)


@dataclass(frozen=True, slots=True, eq=False)
class Correlations:
    """Eigenvalues and eigenvectors of the sample correlations within classes."""

    values: Floats  # (r,) e^2, positive
    vectors: Floats  # (d, r) orthonormal columns of V
    amount: float  # a

    @classmethod
    def of(cls, values: Floats, vectors: Floats, amount: float, apart: Columns) -> Correlations:
        """Create correlations, which are zero for columns without variance (the mask `apart`)."""
        if apart.any():
            columns = np.flatnonzero(apart)
            axes = np.zeros((len(apart), len(columns)))
            axes[columns, np.arange(len(columns))] = 1.0
            vectors = np.hstack([vectors, axes])
            values = np.concatenate([values, np.ones(len(columns))])
        return cls(values, vectors, float(amount))

    def power(self, rows: Floats, exponent: float) -> Floats:
        """Return the rows (m, d) times a power of the shrunk correlation matrix R.

        If the amount of shrinkage is zero, R may be singular, and the rows are projected on the
        eigenvectors with positive eigenvalues.
        """
        inside = rows @ self.vectors
        factor = (self.amount + (1.0 - self.amount) * self.values) ** exponent
        if self.amount == 0.0:
            return np.asarray((inside * factor) @ self.vectors.T)
        rest = self.amount**exponent
        return np.asarray(rest * rows + (inside * (factor - rest)) @ self.vectors.T)

    def metric(self, sd: Floats) -> Metric:
        """Return the metric of the covariance sd_i R_ij sd_j."""
        a, values = self.amount, self.values
        logdet = 2.0 * float(np.log(sd).sum())
        if a == 0.0:
            basis = self.vectors / np.sqrt(values) / sd[:, None]
            logdet += float(np.log(values).sum())
            return Metric(np.ones(len(sd)), basis, np.ones(len(values)), 0.0, logdet)
        stretched = 1.0 + (1.0 - a) / a * values
        logdet += float(len(sd) * np.log(a) + np.log(stretched).sum())
        return Metric(1.0 / (sd * np.sqrt(a)), self.vectors, 1.0 / stretched, 1.0, logdet)


@dataclass(frozen=True, slots=True, eq=False)
class ShrinkageEstimates:
    """Shrunken variances, class shares and correlations of the columns that vary."""

    moments: ClassMoments  # of the columns that vary
    sd: Floats  # (d,) sqrt(V) of the offsets (x - origin) / unit
    shares: Floats  # (K,) f
    correlations: Correlations | None  # None for uncorrelated features
    amounts: tuple[float, float, float]  # a, b, c

    @classmethod
    def of(cls, classes: Classes, intensities: Intensities) -> ShrinkageEstimates:
        """Estimate from moments or rows; every column must vary.

        A column that varies only between classes has variance zero before shrinking.
        """
        moments = _variances_of(classes)
        weight = float(moments.weight.sum())
        pooled = moments.pooled if moments.pooled.ndim == 1 else np.diagonal(moments.pooled)
        still, _ = constant_columns(moments, pooled / weight)
        sample = np.where(still, 0.0, pooled / weight)
        sums: _RowSums | _MomentSums
        if isinstance(classes, ClassRows):
            sums = _RowSums(classes, sample)
        else:
            sums = _MomentSums(classes, sample)
        unit = moments.anchor.unit / moments.anchor.unit.max()
        variance = sample * unit**2  # comparable between columns
        amount, target = intensities.variance, float(np.median(variance))
        if amount == "auto":
            scatter = float(np.sum(sums.fourth() * unit**4 - variance**2))
            amount = _ratio(scatter, (weight - 1.0) * float(np.sum((variance - target) ** 2)))
        shrunken = amount * target + (1.0 - amount) * variance
        shrunken *= weight / pooled_degrees(moments, "unbiased")
        if (shrunken == 0.0).any():
            floor = floor_variances(moments, sample) * unit**2
            shrunken = np.maximum(np.where(shrunken == 0.0, floor, shrunken), _TINY)
        frequency, shares = class_shares(classes, intensities.frequency)
        correlations = sums.correlations(intensities.correlation)
        a = 1.0 if correlations is None else correlations.amount
        sd = np.sqrt(shrunken) / unit
        return cls(moments, sd, shares, correlations, (a, float(amount), frequency))

    def metric(self) -> Metric:
        """Return the metric of the covariance V^1/2 R V^1/2."""
        if self.correlations is None:
            return diagonal_metric(self.sd**2)
        return self.correlations.metric(self.sd)

    def cat_scores(self) -> Floats:
        """Return the (K, d) CAT scores, which are t scores if the features are uncorrelated."""
        mean, shares = self.moments.mean, self.shares
        error = np.sqrt((1.0 - shares) / shares / self.moments.weight.sum())
        t = (mean - shares @ mean) / self.sd / error[:, None]
        return t if self.correlations is None else self.correlations.power(t, -0.5)


def class_shares(classes: Classes, amount: Intensity) -> tuple[float, Floats]:
    """Return the amount c by which the class shares are shrunk, and the (K,) shrunken shares."""
    total, K = float(classes.weight.sum()), len(classes.labels)
    shares = classes.weight / total
    if amount == "auto":
        below = (total - 1.0) * float(np.sum((1.0 / K - shares) ** 2))
        amount = _ratio(1.0 - float(shares @ shares), below)
    return float(amount), np.asarray(amount / K + (1.0 - amount) * shares)


def _ratio(numerator: float, denominator: float) -> float:
    """Return the ratio, restricted to [0, 1]; a denominator of 0 gives 1."""
    return 1.0 if denominator <= 0.0 else float(np.clip(numerator / denominator, 0.0, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class _MomentSums:
    """Fourth moments and correlations, computed from class moments."""

    moments: ClassMoments
    variance: Floats  # (d,) v

    def fourth(self) -> Floats:
        """Return the (d,) means of z_j^4."""
        return np.asarray(np.diagonal(self._products()))

    def correlations(self, amount: Intensity) -> Correlations | None:
        """Return the correlations, shrunk by `amount`, or None if they are shrunk to zero."""
        if amount == 1.0:
            return None
        root = _inverse_root(self.variance)
        sample = self.moments.pooled / self.moments.weight.sum() * root[:, None] * root
        if amount == "auto":
            squares = float(np.sum(sample**2) - np.sum(np.diagonal(sample) ** 2))
            scaled = self._products() * root[:, None] ** 2 * root**2
            products = float(scaled.sum() - np.trace(scaled))
            weight = float(self.moments.weight.sum())
            amount = _ratio(products - squares, (weight - 1.0) * squares)
            if amount == 1.0:
                return None
        values, vectors = eigh(sample, check_finite=False)
        positive = values > 8 * len(root) * _EPS * values[-1]
        return Correlations.of(values[positive], vectors[:, positive], amount, root == 0.0)

    def _products(self) -> Floats:
        """Return the (d, d) means of z_i^2 z_j^2."""
        assert self.moments.fourth is not None
        return np.asarray(self.moments.fourth.sum(axis=0) / self.moments.weight.sum())


@dataclass(frozen=True, slots=True, eq=False)
class _RowSums:
    """Fourth moments and correlations, computed from the rows of a wide table."""

    rows: ClassRows
    variance: Floats  # (d,) v

    def fourth(self) -> Floats:
        """Return the (d,) means of z_j^4."""
        squares = self.rows.centred**2
        return np.asarray(np.einsum("n,nj,nj->j", self._share(), squares, squares))

    def correlations(self, amount: Intensity) -> Correlations | None:
        """Return the correlations, shrunk by `amount`, or None if they are shrunk to zero."""
        if amount == 1.0:
            return None
        root, share = _inverse_root(self.variance), self._share()
        standard = self.rows.centred * root
        weighted = standard * np.sqrt(share)[:, None]
        if amount == "auto":
            squares = float(np.sum((weighted @ weighted.T) ** 2)) - int((root > 0.0).sum())
            standard **= 2
            products = float(share @ standard.sum(axis=1) ** 2)
            products -= float(share @ np.einsum("nj,nj->n", standard, standard))
            weight = float(self.rows.weights.sum())
            amount = _ratio(products - squares, (weight - 1.0) * squares)
            if amount == 1.0:
                return None
        _, length, right = thin_svd(weighted)
        positive = length**2 > 8 * len(root) * _EPS * length.max(initial=0.0) ** 2
        return Correlations.of(length[positive] ** 2, right[positive].T, amount, root == 0.0)

    def _share(self) -> Floats:
        return np.asarray(self.rows.weights / self.rows.weights.sum())


def _inverse_root(variance: Floats) -> Floats:
    """Return 1 / sqrt(variance), or zero where the variance is zero."""
    positive = variance > 0.0
    return np.divide(1.0, np.sqrt(variance), out=np.zeros_like(variance), where=positive)


@dataclass(frozen=True, slots=True, eq=False)
class CorrelationAdjustedRule(LinearRule):
    """Linear rule of shrinkage discriminant analysis, with the scores that rank the features."""

    cat: Floats  # (K, d) CAT scores of all features; zero for constant columns
    score: Floats  # (d,) sum over classes of (1 - f_k) CAT^2
    p_value: Floats  # (d,) p-values of the scores, by an F distribution
    selected: Places  # (m,) columns of the selected features, by decreasing score
    amounts: tuple[float, float, float]  # a, b, c of the selected features

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of a rule are invalid, or None if they are valid."""
        reason = LinearRule.invalid_reason(parts)
        K, d = parts["coef"].shape
        if reason is None and not (
            parts["cat"].shape == (K, d)
            and parts["score"].shape == parts["p_value"].shape == (d,)
            and parts["selected"].ndim == 1
        ):
            reason = f"cat, score and p_value must be of {K} classes and {d} features"
        selected = parts["selected"]
        if reason is None and len(selected) and not 0 <= selected.min() <= selected.max() < d:
            reason = f"selected must hold columns from 0 to {d - 1}"
        return reason


def fit_correlation_adjusted(
    classes: Classes,
    *,
    intensities: Intensities,
    prior: Floats | None = None,
    n_features: int | None = None,
    fdr: float | None = None,
) -> CorrelationAdjustedRule:
    """Fit shrinkage discriminant analysis to moments, or to the rows of a wide table.

    Parameters
    ----------
    classes
        Rows or moments. The moments must have detail 'fourth' if an amount of shrinkage is
        estimated.
    intensities
        Amounts of shrinkage.
    prior
        (K,) priors of the rule; the default is the shrunken class shares. Priors do not affect the
        ranking of features.
    n_features
        Number of features to select, those with the largest scores (default: all).
    fdr
        Largest false discovery rate (Benjamini and Hochberg) of the selected features.

    Examples
    --------
    >>> from discriminant.engines.dispatch import moments
    >>> X = [[0.0, 1.0], [1.0, 0.0], [4.0, 0.5], [6.0, 1.0]]
    >>> classes = moments(X, ["a", "a", "b", "b"], detail="diagonal")
    >>> no_shrinkage = Intensities(correlation=1.0, variance=0.0, frequency=0.0)
    >>> rule = fit_correlation_adjusted(classes, intensities=no_shrinkage, n_features=1)
    >>> rule.score.round(3).tolist(), rule.selected.tolist()  # F statistics with K - 1 = 1
    ([16.2, 0.2], [0])
    """
    check_classes(classes)
    K, d = len(classes.labels), len(classes.features)
    varying = np.flatnonzero(~_constant(classes))
    cat, score, p_value = np.zeros((K, d)), np.zeros(d), np.ones(d)
    everything = None
    if not len(varying):
        warn(NoFeatureSelectedWarning.of_constant())
    else:
        everything = ShrinkageEstimates.of(_select(classes, varying), intensities)
        cat[:, varying] = everything.cat_scores()
        score = (1.0 - everything.shares) @ cat**2
        degrees = K - 1.0, float(classes.weight.sum()) - K
        p_value[varying] = fdtrc(*degrees, score[varying] / degrees[0])
    order: Places = np.lexsort((np.arange(d), -score))
    order = order[np.isin(order, varying)]
    if fdr is not None:
        order = _discoveries(classes.features, order, p_value, fdr)
    chosen = order if n_features is None else order[:n_features]
    estimates = everything
    if len(chosen) < len(varying):
        estimates = None
        if len(chosen):
            estimates = ShrinkageEstimates.of(_select(classes, np.sort(chosen)), intensities)
    frequency, shares = class_shares(classes, intensities.frequency)
    prior = shares if prior is None else prior
    rule = _embedded(classes, np.sort(chosen), estimates, prior)
    amounts = (1.0, 1.0, frequency) if estimates is None else estimates.amounts
    return CorrelationAdjustedRule(
        rule.labels, rule.anchor, rule.coef, rule.intercept, cat, score, p_value, chosen, amounts
    )


def _select(classes: Classes, columns: Places) -> Classes:
    """Return the moments or rows of some columns."""
    whole = len(columns) == len(classes.features)
    return classes if whole else classes.select(columns.tolist())


def _variances_of(classes: Classes) -> ClassMoments:
    """Return moments that contain the variances of the classes."""
    if isinstance(classes, ClassRows):
        moments: ClassMoments = classes.reduce("diagonal")
        return moments
    return classes


def _constant(classes: Classes) -> Columns:
    """Return the mask (d,) of the columns that are constant in all rows; warn about them."""
    moments = _variances_of(classes)
    pooled = moments.pooled if moments.pooled.ndim == 1 else np.diagonal(moments.pooled)
    _, constant = constant_columns(moments, pooled / moments.weight.sum())
    if constant.any():
        names = np.array(classes.features, dtype=object)[constant]
        warn(ConstantColumnWarning.of_columns(names.tolist()))
    return constant


def _discoveries(features: tuple[str, ...], order: Places, p_value: Floats, fdr: float) -> Places:
    """Return the longest leading part of `order` with a false discovery rate of at most `fdr`."""
    if not len(order):
        return order
    number = len(order)
    ranked = np.sort(p_value[order])
    rates = ranked * number / np.arange(1, number + 1)
    passing = np.flatnonzero(rates <= fdr)
    if not len(passing):
        name = features[int(order[0])]
        warn(NoFeatureSelectedWarning.of_fdr(fdr, float(rates.min()), name))
        return order[:0]
    return order[: passing[-1] + 1]


def _embedded(
    classes: Classes, columns: Places, estimates: ShrinkageEstimates | None, prior: Floats
) -> LinearRule:
    """Extend a rule on the selected columns to all columns, with zero coefficients."""
    anchor, K = classes.anchor, len(classes.labels)
    coef = np.zeros((K, len(classes.features)))
    if estimates is None:
        return LinearRule(classes.labels, anchor, coef, np.log(prior))
    rule = linear_rule(estimates.moments, metric=estimates.metric(), prior=prior)
    coef[:, columns] = rule.coef
    origin = anchor.origin.copy()
    origin[columns] = rule.anchor.origin
    return LinearRule(classes.labels, type(anchor)(origin, anchor.unit), coef, rule.intercept)
