"""Wide data (more features than rows): the Gaussian family without forming a d x d matrix.

With z_i the N rows minus their class means, every covariance of the family has the form

    S = sum_i a_i z_i z_i' + D,      a_i >= 0, D diagonal (added by shrinkage)

for LDA   a_i = (1 - s) w_i / v
for RDA   a_i = (1 - pooling) w_i [i in k] / v_k + pooling (1 - s) w_i / v

where w_i are the weights of the rows, s is the amount of shrinkage, and v and v_k are the
denominators. The matrix with the rows sqrt(a_i) z_i D^-1/2 has the thin SVD U diag(e) V', so

    S = D^1/2 (I + V diag(e^2) V') D^1/2,      log det S = sum log D + sum log(1 + e^2)

The result is a `Metric`; computing it takes about N^2 d operations. If D is zero, S has no inverse;
this case is handled as described in `models.gaussian.covariance`, with the same warnings.

`RowSpace` is for penalised linear models. The centred and scaled rows have the thin SVD U S V', so
they span at most N directions. The coefficients of the fit lie in this span, since any part outside
it would be penalised without changing a score:

    score = z'gamma + b,    z = V'(x - mean) / sd,    coef = V gamma / sd,    |V gamma| = |gamma|

`fit_gaussian_from_moments_or_rows`, `shared_family_metric`, `family_shrinkage` and
`fit_fisher_rule` accept class moments or rows and choose the algebra accordingly. Moments and rows
give the same rules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import qr

from discriminant.errors import CollinearWarning, ShrinkageChosenWarning, warn
from discriminant.models.gaussian.covariance import (
    Metric,
    class_degrees,
    class_metric,
    diagonal_metric,
    embed_columns,
    factorise,
    floor_variances,
    ledoit_wolf,
    oas,
    pooled_covariance,
    pooled_degrees,
    shared_metric,
    shrinkage_scale,
    target_diagonal,
    thin_svd,
)
from discriminant.models.gaussian.family import (
    GaussianFamily,
    check_classes,
    check_rows_for_family,
    check_shrinkage,
    fit_gaussian,
    linear_rule,
    pooled_metric,
    quadratic_rule,
    shrinkage_amount,
)
from discriminant.models.gaussian.fisher import FisherRule, ProjectionOptions, fit_fisher
from discriminant.models.rules import LinearRule, QuadraticRule
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.table.blocks import Floats

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class RowSpace:
    """Coordinates of N rows with respect to r directions that span them."""

    rows: Floats  # (N, r) coordinates z of the rows
    axes: Floats  # (d, r) V / sd
    mean: Floats  # (d,) mean of the rows; zero if rows are not centred

    @classmethod
    def from_rows(
        cls, offsets: Floats, *, weight: Floats | None, centred: bool, standardize: bool = True
    ) -> RowSpace:
        """Return the row space of `offsets` (N, d). Constant features are left out.

        >>> rows = np.array([[0.0, 0, 1], [2, 0, 1]])
        >>> space = RowSpace.from_rows(rows, weight=None, centred=True)
        >>> np.abs(space.rows).round(9).tolist()
        [[1.0], [1.0]]
        """
        mean = np.zeros(offsets.shape[1])
        if centred:
            mean = np.average(offsets, axis=0, weights=weight)
        offsets = offsets - mean
        sd = np.sqrt(np.average(offsets * offsets, axis=0, weights=weight))
        varying = sd > 16 * _EPS * np.abs(mean)
        scale = sd if standardize else np.ones_like(sd)
        per_unit = np.divide(1.0, scale, out=np.zeros_like(sd), where=varying)
        left, size, right = thin_svd(offsets * per_unit)
        nonzero = size > 8 * max(offsets.shape) * _EPS * size.max(initial=0.0)
        return cls(left[:, nonzero] * size[nonzero], right[nonzero].T * per_unit[:, None], mean)

    def coefficients(self, gamma: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Return the (d, m) coefficients and (m,) intercepts for offsets.

        `gamma` (r, m) and `intercept` (m,) are those for the coordinates z.
        """
        coef = self.axes @ gamma
        return coef, intercept - self.mean @ coef


_SMALL = 500  # up to this number of features the cost of a d x d matrix is negligible

Columns = npt.NDArray[np.bool_]


def is_wide(rows: int, features: int) -> bool:
    """Return whether the data are wide, so that the rows are stored instead of their products."""
    return features > _SMALL and features > rows


def fit_wide(
    rows: ClassRows, *, family: GaussianFamily, prior: Floats
) -> LinearRule | QuadraticRule:
    """Fit a rule of Gaussian classes with the covariances of the family to wide rows.

    Examples
    --------
    >>> from discriminant.engines.dispatch import moments
    >>> rows = moments([[0.0, 1, 0], [2, 0, 1], [4, 1, 1], [6, 0, 0]], list("aabb"), detail="rows")
    >>> rule = fit_wide(rows, family=GaussianFamily(shrinkage=0.5), prior=np.array([0.5, 0.5]))
    >>> scores = rule.scores(np.array([[3.0, 0.5, 0.5]]))  # half way: a tie
    >>> bool(abs(scores[0, 0] - scores[0, 1]) < 1e-12)
    True
    """
    centred = _CentredRows.from_rows(rows)
    check_classes(centred.moments)
    if family.linear:
        return linear_rule(centred.moments, metric=_pooled_metric(centred, family), prior=prior)
    return quadratic_rule(centred.moments, metrics=_class_metrics(centred, family), prior=prior)


def wide_metric(rows: ClassRows, family: GaussianFamily) -> Metric:
    """Return the metric of the covariance that all classes of a linear family share."""
    return _pooled_metric(_CentredRows.from_rows(rows), family)


def wide_shrinkage(rows: ClassRows, family: GaussianFamily) -> float | Floats:
    """Return the amount of shrinkage, which is estimated if the option is 'auto' or 'oas'.

    The amount is (K,) if it is estimated for each class separately, else a number.
    """
    check_shrinkage(family)
    if not isinstance(family.shrinkage, str):
        return float(family.shrinkage)
    if family.shrinks_mixture and family.pooling == 0.0:
        codes = range(len(rows.labels))
        return np.array([_optimal_shrinkage(rows, rows.codes == k, family) for k in codes])
    return _optimal_shrinkage(rows, np.ones(len(rows.codes), dtype=np.bool_), family)


def _optimal_shrinkage(
    rows: ClassRows, selected: npt.NDArray[np.bool_], family: GaussianFamily
) -> float:
    """Return the optimal shrinkage of the covariance S of the selected rows.

    |S|^2 is computed from the Gram matrix of the rows, so that S itself is not needed.
    """
    centred, weights = rows.centred[selected], rows.weights[selected]
    weight = float(weights.sum())
    variance = np.einsum("n,nj,nj->j", weights, centred, centred) / weight
    centred /= shrinkage_scale(variance, family.target, rows.anchor.unit)
    products = centred @ centred.T
    lengths = np.diagonal(products)
    share = weights / weight
    squares = float(share @ products**2 @ share)
    size = squares, float(share @ lengths), len(rows.features)
    if family.shrinkage == "oas":
        return oas(*size, weight)
    return ledoit_wolf(*size, weight, float(weights @ lengths**2))


# --- covariances as weighted sums over rows -------------------------------------------------------


def _pooled_metric(centred: _CentredRows, family: GaussianFamily) -> Metric:
    """Return the metric of the covariance that all classes of a linear family share."""
    rows, amount = centred.rows, float(wide_shrinkage(centred.rows, family))
    pooled = pooled_covariance(centred.moments, family.denominator)
    target = target_diagonal(pooled, family.target, rows.anchor.unit)
    if amount == 1.0:
        return diagonal_metric(floor_variances(centred.moments, target))
    share = (1.0 - amount) * rows.weights / pooled_degrees(centred.moments, family.denominator)
    return _mixture_metric(centred, _Mixture(share, amount * target))


def _class_metrics(centred: _CentredRows, family: GaussianFamily) -> tuple[Metric, ...]:
    """Return the metric of the covariance of each class."""
    check_rows_for_family(centred.moments, family)
    amounts = np.broadcast_to(wide_shrinkage(centred.rows, family), len(centred.rows.labels))
    return tuple(
        _mixture_metric(centred, _class_mixture(centred, family, float(amount), k))
        for k, amount in enumerate(amounts)
    )


@dataclass(frozen=True, slots=True, eq=False)
class _CentredRows:
    """Rows with their moments, and with offsets from the means of their classes."""

    rows: ClassRows
    moments: ClassMoments  # moments of the rows, of detail 'diagonal'
    offsets: Floats  # (N, d) z, the rows minus their class means

    @classmethod
    def from_rows(cls, rows: ClassRows) -> _CentredRows:
        return cls(rows, rows.reduce("diagonal"), rows.centred)


@dataclass(frozen=True, slots=True, eq=False)
class _Mixture:
    """Covariance before it is factorised: sum over rows of share_i z_i z_i', plus a diagonal."""

    share: Floats  # (N,) the a_i of the module docstring
    diagonal: Floats  # (d,) the D of the module docstring
    code: int | None = None  # class whose covariance it is; None if all classes share it


def _class_mixture(
    centred: _CentredRows, family: GaussianFamily, amount: float, code: int
) -> _Mixture:
    """Return the covariance of class `code` in the family, with `amount` of shrinkage."""
    moments, pooling = centred.moments, family.pooling
    own_factor, pooled_factor = _weight_factors(moments, family, code)
    weights, unit = centred.rows.weights, centred.rows.anchor.unit
    own_share = np.where(centred.rows.codes == code, own_factor * weights, 0.0)
    if family.shrinks_mixture:
        variance = own_factor * moments.scatter[code] + pooled_factor * moments.pooled
        diagonal = amount * target_diagonal(variance, family.target, unit)
        return _Mixture((1.0 - amount) * (own_share + pooled_factor * weights), diagonal, code)
    pooled = pooled_covariance(moments, family.denominator)
    diagonal = pooling * amount * target_diagonal(pooled, family.target, unit)
    return _Mixture(own_share + (1.0 - amount) * pooled_factor * weights, diagonal, code)


def _weight_factors(
    moments: ClassMoments, family: GaussianFamily, code: int
) -> tuple[float, float]:
    """Return two factors by which row weights are multiplied in the covariance of class `code`.

    The first factor is for the scatter of the class itself, the second for the pooled scatter.
    """
    pooling = family.pooling
    degrees = class_degrees(moments, family.denominator)
    total = pooled_degrees(moments, family.denominator)
    if family.weighting == "friedman":
        below = (1.0 - pooling) * float(degrees[code]) + pooling * total
        return (1.0 - pooling) / below, pooling / below
    return (1.0 - pooling) / float(degrees[code]), pooling / total


# --- factorising ----------------------------------------------------------------------------------


def _mixture_metric(centred: _CentredRows, mixture: _Mixture) -> Metric:
    """Return the metric of a mixture. Columns with zero variance are treated as in
    `floor_variances`.
    """
    moments, code = centred.moments, mixture.code
    within = np.einsum("n,nj,nj->j", mixture.share, centred.offsets, centred.offsets)
    variance = floor_variances(moments, within + mixture.diagonal, code)
    varying = variance > 0
    if not varying.any():
        return diagonal_metric(variance)
    floored = variance != within + mixture.diagonal  # floored: independent of the rows
    used = mixture.share > 0
    whole = bool(used.all() and varying.all())
    part = centred.offsets if whole else centred.offsets[np.ix_(used, varying)]
    part = part * np.sqrt(mixture.share[used])[:, None]
    if floored.any():
        part[:, floored[varying]] = 0.0
    if mixture.diagonal.any() or not used.any():
        diagonal = np.where(floored, variance, mixture.diagonal)[varying]
        return embed_columns(_low_rank_metric(part, diagonal), varying)
    if len(part) >= part.shape[1]:
        degrees = len(part) - len(np.unique(centred.rows.codes[used]))
        metric = _dense_metric(centred, part, variance, varying, code, degrees)
    else:
        metric = _singular_metric(centred, part, variance, varying, floored[varying], code)
    return embed_columns(metric, varying)


def _low_rank_metric(part: Floats, diagonal: Floats) -> Metric:
    """Return the metric of the covariance part' part + diag(diagonal)."""
    root = 1.0 / np.sqrt(diagonal)
    part *= root
    _, length, right = thin_svd(part)
    return _identity_plus_low_rank(root, length**2, right.T)


def _identity_plus_low_rank(root: Floats, extra: Floats, basis: Floats) -> Metric:
    """Return the metric of the covariance R^-1 (I + basis diag(extra) basis') R^-1.

    R is the diagonal matrix with the diagonal `root` (d,).
    """
    significant = extra > _EPS
    logdet = float(np.log1p(extra).sum() - 2.0 * np.log(root).sum())
    return Metric(root, basis[:, significant], 1.0 / (1.0 + extra[significant]), 1.0, logdet)


# --- without shrinkage: as in `gaussian.covariance`, but in the space spanned by the rows ---------


def _dense_metric(
    centred: _CentredRows,
    part: Floats,
    variance: Floats,
    varying: Columns,
    code: int | None,
    degrees: int,
) -> Metric:
    """Return the metric, computed from the full covariance matrix of the columns that vary.

    Call this function only if the number of rows is at least the number of columns that vary.
    """
    moments: ClassMoments = centred.rows.select(np.flatnonzero(varying).tolist()).reduce("class")
    covariance = part.T @ part
    np.fill_diagonal(covariance, variance[varying])
    if code is None:
        return shared_metric(moments, covariance, degrees=degrees)
    return class_metric(moments, covariance, code, degrees=degrees)


def _singular_metric(
    centred: _CentredRows,
    part: Floats,
    variance: Floats,
    varying: Columns,
    floored: Columns,
    code: int | None,
) -> Metric:
    """Return the metric of part' part, which is singular.

    If class means or rows lie outside the range of the covariance, the covariance is shrunk;
    otherwise the metric is restricted to the range.
    """
    sd = np.sqrt(variance[varying])
    # Each array of this size takes as long to allocate as to compute, so arrays are reused.
    standard = np.divide(part, sd, out=part if code is None else None)
    _, length, right = thin_svd(standard)
    nonzero = length**2 > 8 * len(sd) * _EPS * length.max() ** 2
    values, basis = length[nonzero] ** 2, (right if nonzero.all() else right[nonzero]).T
    rank, n_floored = int(nonzero.sum() + floored.sum()), int(floored.sum())
    if _leave_span(centred, basis, sd, varying, floored, within=code is not None):
        weight = centred.moments.weight.sum() if code is None else centred.moments.weight[code]
        size = float((values**2).sum()) + n_floored, float(values.sum()) + n_floored, len(sd)
        amount = oas(*size, float(weight))
        name = "The pooled covariance"
        if code is not None:
            name = f"The covariance of class '{centred.moments.labels[code]}'"
        warn(ShrinkageChosenWarning.of(name, rank, len(sd), amount))
        root = np.where(floored, 1.0, 1.0 / np.sqrt(amount)) / sd
        metric = _identity_plus_low_rank(root, (1.0 - amount) / amount * values, basis)
        return replace(metric, shrunk=amount)
    _warn_of_dependence(centred.moments, basis, varying, floored, rank)
    if code is not None:
        return _metric_of_independent(centred, part, sd, varying)
    basis /= np.sqrt(values)
    if n_floored:
        basis = np.hstack([basis, np.eye(len(sd))[:, floored]])
    basis /= sd[:, None]
    logdet = float(np.log(values).sum() + 2.0 * np.log(sd).sum())
    return Metric(np.ones(len(sd)), basis, np.ones(rank), 0.0, logdet)


def _metric_of_independent(
    centred: _CentredRows, part: Floats, sd: Floats, varying: Columns
) -> Metric:
    """Return the metric of columns that are linearly independent over the rows of all classes.

    Columns that depend linearly on the chosen ones are left out.
    """
    standard = centred.offsets[:, varying] * np.sqrt(centred.rows.weights)[:, None]
    standard /= np.sqrt(centred.moments.pooled[varying])
    upper, pivot = qr(standard, mode="r", pivoting=True, check_finite=False)
    rank = int((np.diagonal(upper) ** 2 > 8 * len(sd) * _EPS).sum())
    independent = np.zeros(len(sd), dtype=np.bool_)
    independent[pivot[:rank]] = True
    covariance = part[:, independent].T @ part[:, independent]
    np.fill_diagonal(covariance, sd[independent] ** 2)
    metric, _ = factorise(covariance)
    if metric is None:
        metric = diagonal_metric(sd[independent] ** 2)
    return embed_columns(metric, independent)


def _leave_span(
    centred: _CentredRows,
    basis: Floats,
    sd: Floats,
    varying: Columns,
    floored: Columns,
    *,
    within: bool,
) -> bool:
    """Return whether a class mean lies outside the span of the basis.

    With `within`, return whether a class mean or a row lies outside the span.
    """
    moments = centred.moments
    means = (moments.mean - moments.centre)[:, varying] / sd
    tests = [(means, 1e-7)]
    if within:
        tests.append((centred.offsets[:, varying] / sd, 1e-5))
    for offsets, tolerance in tests:
        size = np.abs(offsets).max(initial=0.0)
        offsets = np.where(floored, 0.0, offsets)
        outside = offsets - (offsets @ basis) @ basis.T
        if np.abs(outside).max(initial=0.0) > tolerance * size:
            return True
    return False


def _warn_of_dependence(
    moments: ClassMoments, basis: Floats, varying: Columns, floored: Columns, rank: int
) -> None:
    outside = np.where(floored, 0.0, 1.0 - np.einsum("ji,ji->j", basis, basis))
    names = np.array(moments.features, dtype=object)[varying]
    involved = [str(name) for name in names[outside > 1e-6]]
    warning = CollinearWarning.of_columns(
        involved, rank=rank, features=len(names), condition=1.0 / _EPS
    )
    warn(warning)


# --- moments or rows ----------------------------------------------------------------------------

Classes = ClassMoments | ClassRows


def fit_gaussian_from_moments_or_rows(
    classes: Classes, *, family: GaussianFamily, prior: Floats
) -> LinearRule | QuadraticRule:
    """Fit the Gaussian family to class moments (`fit_gaussian`) or to wide rows (`fit_wide`)."""
    if isinstance(classes, ClassRows):
        return fit_wide(classes, family=family, prior=prior)
    return fit_gaussian(classes, family=family, prior=prior)


def shared_family_metric(classes: Classes, family: GaussianFamily) -> Metric:
    """Return the metric of the covariance that all classes of a linear family share."""
    if isinstance(classes, ClassRows):
        return wide_metric(classes, family)
    return pooled_metric(classes, family)


def family_shrinkage(classes: Classes, family: GaussianFamily) -> Any:
    """Return the amount of shrinkage, which is estimated if the option is 'auto' or 'oas'.

    The amount is (K,) if it is estimated for each class separately, else a number.
    """
    if isinstance(classes, ClassRows):
        return wide_shrinkage(classes, family)
    return shrinkage_amount(classes, family)


def fit_fisher_rule(
    classes: Classes, *, family: GaussianFamily, prior: Floats, projection: ProjectionOptions
) -> FisherRule:
    """Fit Fisher's discriminant, with the covariance of a linear family, to moments or rows."""
    if not isinstance(classes, ClassRows):
        return fit_fisher(classes, family=family, prior=prior, projection=projection)
    variances: ClassMoments = classes.reduce("diagonal")
    metric = wide_metric(classes, family)
    return fit_fisher(variances, family=family, prior=prior, projection=projection, metric=metric)
