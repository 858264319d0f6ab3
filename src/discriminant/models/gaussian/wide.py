"""The Gaussian family where features outnumber rows, without forming a d x d matrix.

Every covariance of the family is, with z_i the rows about their class means,

    S = sum_i a_i z_i z_i' + D,      a_i >= 0, D diagonal (added by shrinkage)

for LDA   a_i = (1 - s) w_i / v
for RDA   a_i = (1 - pooling) w_i [i in k] / v_k + pooling (1 - s) w_i / v

(v and v_k the denominators). With the thin SVD of the rows sqrt(a_i) z_i D^-1/2 = U diag(e) V'

    S = D^1/2 (I + V diag(e^2) V') D^1/2,      log det S = sum log D + sum log(1 + e^2)

which is a `Metric` at a cost of N^2 d. Where D is zero there is no inverse; that is handled, and
warned about, as in `gaussian.covariance`.

`RowSpace` serves penalised linear models: centred and scaled rows are U S V' (thin), at most N
directions of d, and the fit lies in their span, since a coefficient outside it is penalised and
changes no score:

    score = z'gamma + b,    z = V'(x - mean) / sd,    coef = V gamma / sd,    |V gamma| = |gamma|

`fit_family` and its companions accept either summary, class moments or rows, and choose the
algebra; both give the same rules.
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
from discriminant.moments.stored_rows import ClassRows
from discriminant.table.blocks import Floats

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class RowSpace:
    """N rows in the r directions that they span."""

    rows: Floats  # (N, r) z
    axes: Floats  # (d, r) V / sd
    mean: Floats  # (d,) zero where rows are not centred

    @classmethod
    def from_rows(
        cls, offsets: Floats, *, weight: Floats | None, centred: bool, standardize: bool = True
    ) -> RowSpace:
        """Row space of offsets (N, d), without constant features.

        >>> rows = np.array([[0.0, 0, 1], [2, 0, 1]])
        >>> space = RowSpace.from_rows(rows, weight=None, centred=True)
        >>> np.abs(space.rows).round(9).tolist()
        [[1.0], [1.0]]
        """
        mean = np.zeros(offsets.shape[1])
        if centred:
            mean = np.average(offsets, axis=0, weights=weight)
        apart = offsets - mean
        sd = np.sqrt(np.average(apart * apart, axis=0, weights=weight))
        some = sd > 16 * _EPS * np.abs(mean)
        scale = sd if standardize else np.ones_like(sd)
        per_unit = np.divide(1.0, scale, out=np.zeros_like(sd), where=some)
        left, size, right = thin_svd(apart * per_unit)
        kept = size > 8 * max(offsets.shape) * _EPS * size.max(initial=0.0)
        return cls(left[:, kept] * size[kept], right[kept].T * per_unit[:, None], mean)

    def coefficients(self, gamma: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """(d, m) coefficients and (m,) intercepts for offsets, from those in the row space."""
        coef = self.axes @ gamma
        return coef, intercept - self.mean @ coef


_LEAST = 500  # up to here a d x d matrix is small enough not to matter

Columns = npt.NDArray[np.bool_]


def is_wide(rows: int, features: int) -> bool:
    """Whether to store the rows rather than their products."""
    return features > _LEAST and features > rows


def fit_wide(
    rows: ClassRows, *, family: GaussianFamily, prior: Floats
) -> LinearRule | QuadraticRule:
    """Rule of Gaussian classes whose covariances are those of the family, from the rows.

    Examples
    --------
    >>> from discriminant.engines.dispatch import moments
    >>> found = moments([[0.0, 1, 0], [2, 0, 1], [4, 1, 1], [6, 0, 0]], list("aabb"), detail="rows")
    >>> rule = fit_wide(found, family=GaussianFamily(shrinkage=0.5), prior=np.array([0.5, 0.5]))
    >>> scores = rule.scores(np.array([[3.0, 0.5, 0.5]]))  # half way: a tie
    >>> bool(abs(scores[0, 0] - scores[0, 1]) < 1e-12)
    True
    """
    spread = _Spread.of(rows)
    check_classes(spread.moments)
    if family.linear:
        return linear_rule(spread.moments, metric=_shared(spread, family), prior=prior)
    return quadratic_rule(spread.moments, metrics=_each(spread, family), prior=prior)


def wide_metric(rows: ClassRows, family: GaussianFamily) -> Metric:
    """Metric of the covariance that all classes share."""
    return _shared(_Spread.of(rows), family)


def wide_shrinkage(rows: ClassRows, family: GaussianFamily) -> float | Floats:
    """Shrinkage as a number, estimated if the family asks for that; for QDA (K,), one per class."""
    check_shrinkage(family)
    if not isinstance(family.shrinkage, str):
        return float(family.shrinkage)
    if family.shrinks_mixture and family.pooling == 0.0:
        codes = range(len(rows.labels))
        return np.array([_best(rows, rows.codes == k, family) for k in codes])
    return _best(rows, np.ones(len(rows.codes), dtype=np.bool_), family)


def _best(rows: ClassRows, chosen: npt.NDArray[np.bool_], family: GaussianFamily) -> float:
    """Best shrinkage from some rows: |S|^2 is that of their products, |z|^4 is summed as it is."""
    centred, weights = rows.centred[chosen], rows.weights[chosen]
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


# --- covariances as shares of rows ----------------------------------------------------------------


def _shared(spread: _Spread, family: GaussianFamily) -> Metric:
    """Metric of the covariance that all classes share."""
    rows, amount = spread.rows, float(wide_shrinkage(spread.rows, family))
    pooled = pooled_covariance(spread.moments, family.denominator)
    target = target_diagonal(pooled, family.target, rows.anchor.unit)
    if amount == 1.0:
        return diagonal_metric(floor_variances(spread.moments, target))
    share = (1.0 - amount) * rows.weights / pooled_degrees(spread.moments, family.denominator)
    return _metric(spread, _Mixture(share, amount * target))


def _each(spread: _Spread, family: GaussianFamily) -> tuple[Metric, ...]:
    """Metric of each class's covariance."""
    check_rows_for_family(spread.moments, family)
    amounts = np.broadcast_to(wide_shrinkage(spread.rows, family), len(spread.rows.labels))
    return tuple(
        _metric(spread, _mixture(spread, family, float(amount), k))
        for k, amount in enumerate(amounts)
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Spread:
    """Rows about the means of their classes."""

    rows: ClassRows
    moments: ClassMoments  # of detail diagonal
    centred: Floats  # (N, d)

    @classmethod
    def of(cls, rows: ClassRows) -> _Spread:
        return cls(rows, rows.reduce("diagonal"), rows.centred)


@dataclass(frozen=True, slots=True, eq=False)
class _Mixture:
    """A covariance before it is factorised: the sum of share z z' over the rows and a diagonal."""

    share: Floats  # (N,)
    diagonal: Floats  # (d,)
    code: int | None = None  # of the class it belongs to; None is all


def _mixture(spread: _Spread, family: GaussianFamily, amount: float, code: int) -> _Mixture:
    """The covariance of one class by the family's formula."""
    moments, pooling = spread.moments, family.pooling
    own, common = _factors(moments, family, code)
    weights, unit = spread.rows.weights, spread.rows.anchor.unit
    owned = np.where(spread.rows.codes == code, own * weights, 0.0)
    if family.shrinks_mixture:
        variance = own * moments.scatter[code] + common * moments.pooled
        diagonal = amount * target_diagonal(variance, family.target, unit)
        return _Mixture((1.0 - amount) * (owned + common * weights), diagonal, code)
    pooled = pooled_covariance(moments, family.denominator)
    diagonal = pooling * amount * target_diagonal(pooled, family.target, unit)
    return _Mixture(owned + (1.0 - amount) * common * weights, diagonal, code)


def _factors(moments: ClassMoments, family: GaussianFamily, code: int) -> tuple[float, float]:
    """Factors of a row's weight in the covariance of its class and in the pooled one."""
    pooling = family.pooling
    degrees = class_degrees(moments, family.denominator)
    total = pooled_degrees(moments, family.denominator)
    if family.weighting == "friedman":
        below = (1.0 - pooling) * float(degrees[code]) + pooling * total
        return (1.0 - pooling) / below, pooling / below
    return (1.0 - pooling) / float(degrees[code]), pooling / total


# --- factorising ----------------------------------------------------------------------------------


def _metric(spread: _Spread, mixture: _Mixture) -> Metric:
    """Metric of a mixture; constant columns are left out or given a floor of variance."""
    moments, code = spread.moments, mixture.code
    within = np.einsum("n,nj,nj->j", mixture.share, spread.centred, spread.centred)
    variance = floor_variances(moments, within + mixture.diagonal, code)
    moving = variance > 0
    if not moving.any():
        return diagonal_metric(variance)
    still = variance != within + mixture.diagonal  # nothing of the rows is left in these columns
    counted = mixture.share > 0
    part = spread.centred[np.ix_(counted, moving)]
    part *= np.sqrt(mixture.share[counted])[:, None]
    part[:, still[moving]] = 0.0
    if mixture.diagonal.any() or not counted.any():
        diagonal = np.where(still, variance, mixture.diagonal)[moving]
        return embed_columns(_plus_diagonal(part, diagonal), moving)
    if len(part) >= part.shape[1]:
        degrees = len(part) - len(np.unique(spread.rows.codes[counted]))
        return embed_columns(_narrow(spread, part, variance, moving, code, degrees), moving)
    return embed_columns(_unshrunk(spread, part, variance, moving, still[moving], code), moving)


def _plus_diagonal(part: Floats, diagonal: Floats) -> Metric:
    """Metric of part' part + diag(diagonal)."""
    root = 1.0 / np.sqrt(diagonal)
    part *= root
    _, length, right = thin_svd(part)
    return _round_plus(root, length**2, right.T)


def _round_plus(root: Floats, extra: Floats, basis: Floats) -> Metric:
    """Metric of 1/root (I + basis diag(extra) basis') 1/root."""
    felt = extra > _EPS
    logdet = float(np.log1p(extra).sum() - 2.0 * np.log(root).sum())
    return Metric(root, basis[:, felt], 1.0 / (1.0 + extra[felt]), 1.0, logdet)


# --- no shrinkage: what models.support does, in the space of the rows -----------------------------


def _narrow(
    spread: _Spread,
    part: Floats,
    variance: Floats,
    moving: Columns,
    code: int | None,
    degrees: int,
) -> Metric:
    """Metric where constant columns leave fewer columns than rows: by the d x d algebra."""
    moments: ClassMoments = spread.rows.select(np.flatnonzero(moving).tolist()).reduce("class")
    covariance = part.T @ part
    np.fill_diagonal(covariance, variance[moving])
    if code is None:
        return shared_metric(moments, covariance, degrees=degrees)
    return class_metric(moments, covariance, code, degrees=degrees)


def _unshrunk(
    spread: _Spread,
    part: Floats,
    variance: Floats,
    moving: Columns,
    still: Columns,
    code: int | None,
) -> Metric:
    """Metric of the singular part' part: shrunk, or restricted to its range."""
    sd = np.sqrt(variance[moving])
    _, length, right = thin_svd(part / sd)
    kept = length**2 > 8 * len(sd) * _EPS * length.max() ** 2
    values, basis = length[kept] ** 2, right[kept].T
    rank, lone = int(kept.sum() + still.sum()), int(still.sum())
    if _beyond(spread, basis, sd, moving, still, within=code is not None):
        weight = spread.moments.weight.sum() if code is None else spread.moments.weight[code]
        size = float((values**2).sum()) + lone, float(values.sum()) + lone, len(sd)
        amount = oas(*size, float(weight))
        what = "The pooled covariance"
        if code is not None:
            what = f"The covariance of class '{spread.moments.labels[code]}'"
        warn(ShrinkageChosenWarning.of(what, rank, len(sd), amount))
        root = np.where(still, 1.0, 1.0 / np.sqrt(amount)) / sd
        metric = _round_plus(root, (1.0 - amount) / amount * values, basis)
        return replace(metric, shrunk=amount)
    _warn_of_dependence(spread.moments, basis, moving, still, rank)
    if code is not None:
        return _without_copies(spread, part, sd, moving)
    whiten = np.hstack([basis / np.sqrt(values), np.eye(len(sd))[:, still]]) / sd[:, None]
    logdet = float(np.log(values).sum() + 2.0 * np.log(sd).sum())
    return Metric(np.ones(len(sd)), whiten, np.ones(rank), 0.0, logdet)


def _without_copies(spread: _Spread, part: Floats, sd: Floats, moving: Columns) -> Metric:
    """Metric without the columns that depend on others in all classes."""
    standard = spread.centred[:, moving] * np.sqrt(spread.rows.weights)[:, None]
    standard /= np.sqrt(spread.moments.pooled[moving])
    corner, pivot = qr(standard, mode="r", pivoting=True, check_finite=False)
    rank = int((np.diagonal(corner) ** 2 > 8 * len(sd) * _EPS).sum())
    kept = np.zeros(len(sd), dtype=np.bool_)
    kept[pivot[:rank]] = True
    covariance = part[:, kept].T @ part[:, kept]
    np.fill_diagonal(covariance, sd[kept] ** 2)
    metric, _ = factorise(covariance)
    return embed_columns(diagonal_metric(sd[kept] ** 2) if metric is None else metric, kept)


def _beyond(
    spread: _Spread,
    basis: Floats,
    sd: Floats,
    moving: Columns,
    still: Columns,
    *,
    within: bool,
) -> bool:
    """Whether class means, or with `within` rows of any class, leave the span of the basis."""
    moments = spread.moments
    apart = (moments.mean - moments.centre)[:, moving] / sd
    tests = [(apart, 1e-7)]
    if within:
        tests.append((spread.centred[:, moving] / sd, 1e-5))
    for offsets, share in tests:
        size = np.abs(offsets).max(initial=0.0)
        offsets = np.where(still, 0.0, offsets)
        outside = offsets - (offsets @ basis) @ basis.T
        if np.abs(outside).max(initial=0.0) > share * size:
            return True
    return False


def _warn_of_dependence(
    moments: ClassMoments, basis: Floats, moving: Columns, still: Columns, rank: int
) -> None:
    outside = np.where(still, 0.0, 1.0 - np.einsum("ji,ji->j", basis, basis))
    names = np.array(moments.features, dtype=object)[moving]
    involved = [str(name) for name in names[outside > 1e-6]]
    found = CollinearWarning.of_columns(
        involved, rank=rank, features=len(names), condition=1.0 / _EPS
    )
    warn(found)


# --- moments or rows ----------------------------------------------------------------------------

Classes = ClassMoments | ClassRows


def fit_family(
    classes: Classes, *, family: GaussianFamily, prior: Floats
) -> LinearRule | QuadraticRule:
    """Fit the Gaussian family to class moments, or in their row space to wide rows."""
    if isinstance(classes, ClassRows):
        return fit_wide(classes, family=family, prior=prior)
    return fit_gaussian(classes, family=family, prior=prior)


def family_metric(classes: Classes, family: GaussianFamily) -> Metric:
    """Metric of the covariance that all classes of a linear family share."""
    if isinstance(classes, ClassRows):
        return wide_metric(classes, family)
    return pooled_metric(classes, family)


def family_shrinkage(classes: Classes, family: GaussianFamily) -> Any:
    """Shrinkage as a number, estimated if the family asks for that; for QDA (K,), one per class."""
    if isinstance(classes, ClassRows):
        return wide_shrinkage(classes, family)
    return shrinkage_amount(classes, family)


def fit_fisher_rule(
    classes: Classes, *, family: GaussianFamily, prior: Floats, projection: ProjectionOptions
) -> FisherRule:
    """Fit Fisher's discriminant directions in the metric of a linear family."""
    if not isinstance(classes, ClassRows):
        return fit_fisher(classes, family=family, prior=prior, projection=projection)
    variances: ClassMoments = classes.reduce("diagonal")
    metric = wide_metric(classes, family)
    return fit_fisher(variances, family=family, prior=prior, projection=projection, metric=metric)
