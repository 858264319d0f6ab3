"""Covariances from scatter matrices: denominators, shrinkage, factorisation and rank deficiency.

Columns are centred and scaled first, `offset = (x - origin) / unit` (`moments.anchor`); covariances
and scatters are those of the offsets. The pooled covariance is the pooled scatter W divided by a
denominator; the covariance of class k is its scatter W_k divided by a denominator. With n_k the
weight of class k and n the weight of all K classes:

    unbiased     W / (n - K)             W_k / (n_k - 1)           weights are numbers of rows
    reliability  W / sum(n_k - q_k/n_k)  W_k / (n_k - q_k/n_k)     q_k the sum of squared weights
    ml           W / n                   W_k / n_k

A covariance S of d features may be shrunk toward a target T, by an amount s:

    S(s) = (1 - s) S + s T,   T = diag S, or (tr S / d) I, or I

Covariances do not depend on the priors. The optimal s by Ledoit and Wolf (2004, "A well-conditioned
estimator for large-dimensional covariance matrices", eq. 14) or by OAS (Chen et al. 2010, eq. 23)
follows from moments: see `ledoit_wolf` and `oas`.

A `Metric` is a factorised covariance: it computes Mahalanobis distances and solves linear systems.
With u = offset * root, and b_i the columns of B, the `basis`:

    distance^2 = rest * (|u|^2 - |u B|^2)  +  sum_i gain_i (u . b_i)^2

    dense     rest 0, B whitens (B' C B = I), gain 1
    diagonal  no basis, rest 1, root 1/sd
    wide      rest 1, B orthonormal: a diagonal plus a few directions, never a d x d matrix

The rank is computed for standardised columns, relative to the largest eigenvalue, so it does not
depend on the units of the columns. Where a covariance has no inverse, or an inaccurate one, a
warning names the columns, and the covariance is treated as follows:

    a column constant in all rows              the column is left out
    a column that varies only between classes  it gets a very small variance, so that it determines
                                               the class
    a column constant in one class only        that class uses the pooled variance of it, since the
                                               rows of one class do not show that it never varies
    columns linearly dependent in all rows,    the direction is left out, as in MASS; if each class
      class means included                     has its own covariance, all classes drop one column
    one dependence within classes that the     the direction gets a very small variance, as for a
    class means do not satisfy                 column that varies only between classes
    several such dependences, or too few rows  the covariance is shrunk toward its diagonal by OAS
    invertible, but fewer than two rows per    the covariance is used unchanged
      column

The scatter of n rows about the means of K classes has a rank of at most n - K. So a rank below d
means that columns are linearly dependent only if n - K is at least d; otherwise there are too few
rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, eigh, lapack, qr, svd

from discriminant.errors import (
    CollinearWarning,
    ConstantColumnWarning,
    ConstantInClassWarning,
    DecompositionError,
    MomentsMismatchError,
    ScarceRowsWarning,
    SeparatingColumnWarning,
    ShrinkageChosenWarning,
    WeightError,
    warn,
)
from discriminant.models.expressions import Expression
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Floats

Denominator = Literal["unbiased", "reliability", "ml"]
Target = Literal["diagonal", "scaled_identity", "identity"]
Best = Literal["auto", "oas"]
Shrinkage = float | Best
DENOMINATORS = ("unbiased", "reliability", "ml")
TARGETS = ("diagonal", "scaled_identity", "identity")
_EPS = float(np.finfo(np.float64).eps)


def class_degrees(moments: ClassMoments, denominator: Denominator) -> Floats:
    """Return the (K,) denominators of the class covariances.

    A denominator of zero or less means that the weight of the class is too small to estimate a
    covariance.
    """
    weight = moments.weight
    if denominator == "ml":
        return weight
    if denominator == "unbiased":
        return weight - 1.0
    squares = np.divide(moments.weight2, weight, out=np.zeros_like(weight), where=weight > 0)
    return weight - squares


def pooled_degrees(moments: ClassMoments, denominator: Denominator) -> float:
    """Return the denominator of the pooled covariance; raise an error if it is (nearly) zero."""
    degrees, weight = class_degrees(moments, denominator), float(moments.weight.sum())
    positive = moments.weight > 0
    if np.count_nonzero(positive) < len(positive):
        degrees = degrees[positive]
    total = weight if degrees is moments.weight else float(degrees.sum())
    if total <= 64 * _EPS * weight:
        raise WeightError.denominator_not_positive(weight, int((moments.weight > 0).sum()))
    return total


def pooled_covariance(moments: ClassMoments, denominator: Denominator = "unbiased") -> Floats:
    """Return the (d, d) pooled covariance of the offsets `(x - origin) / unit`.

    Moments of detail 'diagonal' give only the (d,) variances.
    """
    return np.asarray(moments.pooled / pooled_degrees(moments, denominator))


def class_covariances(moments: ClassMoments, denominator: Denominator = "unbiased") -> Floats:
    """Return the (K, d, d) covariances of the classes, for the offsets `(x - origin) / unit`.

    Every class must have a positive denominator (`class_degrees`).
    """
    if not moments.has("class"):
        raise MomentsMismatchError.needs_detail(
            "A covariance for each class", "class", moments.detail
        )
    return np.asarray(moments.scatter / class_degrees(moments, denominator)[:, None, None])


def shrink(covariance: Floats, amount: float | Floats, target: Target, unit: Floats) -> Floats:
    """Return the shrunk covariance, (1 - amount) covariance + amount target.

    `covariance` is (d, d) or (K, d, d). If `covariance` is (K, d, d), `amount` may be (K,).
    """
    if not np.count_nonzero(amount):
        return covariance
    diagonal = np.diagonal(covariance, axis1=-2, axis2=-1)
    amounts = np.asarray(amount)[..., None]
    shrunk = (1.0 - amounts[..., None]) * covariance
    d = np.arange(diagonal.shape[-1])
    shrunk[..., d, d] += amounts * target_diagonal(diagonal, target, unit)
    return shrunk


def target_diagonal(diagonal: Floats, target: Target, unit: Floats) -> Floats:
    """Return the diagonal of the shrinkage target of a covariance of offsets `(x - origin) / unit`.

    `diagonal` is the diagonal of the covariance, and `unit` (d,) the units.
    """
    if target == "diagonal":
        return diagonal
    relative = (unit / unit.max()) ** 2
    if target == "identity":
        return np.broadcast_to(1.0 / unit**2, diagonal.shape)
    average = (diagonal * relative).mean(axis=-1, keepdims=True)
    return np.asarray(average / relative)


def closed_form_shrinkage(moments: ClassMoments, rule: Best, target: Target) -> float:
    """Return the optimal shrinkage of the pooled covariance by Ledoit-Wolf ('auto') or OAS."""
    fourth = None if moments.fourth is None else moments.fourth.sum(axis=0)
    weight = float(moments.weight.sum())
    return _optimal_shrinkage(moments, moments.pooled, weight, fourth, rule, target)


def closed_form_shrinkages(moments: ClassMoments, rule: Best, target: Target) -> Floats:
    """Return the (K,) optimal shrinkages of the class covariances, each from the rows of the class.

    The formula is Ledoit and Wolf's ('auto') or OAS.
    """
    fourth = [None] * len(moments.labels) if moments.fourth is None else moments.fourth
    classes = zip(moments.scatter, moments.weight.tolist(), fourth, strict=True)
    return np.array([_optimal_shrinkage(moments, *sums, rule, target) for sums in classes])


def _optimal_shrinkage(
    moments: ClassMoments,
    scatter: Floats,
    weight: float,
    fourth: Floats | None,
    rule: Best,
    target: Target,
) -> float:
    if scatter.ndim == 1:
        raise MomentsMismatchError.needs_detail("A best shrinkage", "pooled", moments.detail)
    scale = shrinkage_scale(np.diagonal(scatter) / weight, target, moments.anchor.unit)
    within = scatter / weight / scale[:, None] / scale
    if rule == "oas":
        return oas(*shrinkage_terms(within), weight)
    if fourth is None:
        raise MomentsMismatchError.needs_detail(
            "shrinkage='auto' (Ledoit and Wolf)", "fourth", moments.detail
        )
    lengths = float((fourth / scale[:, None] ** 2 / scale**2).sum())
    return ledoit_wolf(*shrinkage_terms(within), weight, lengths)


def shrinkage_terms(covariance: Floats) -> tuple[float, float, int]:
    """Return |S|^2, tr S and d, the terms of the shrinkage formulas for a (d, d) covariance S."""
    return float((covariance**2).sum()), float(np.trace(covariance)), len(covariance)


def ledoit_wolf(squares: float, trace: float, d: int, weight: float, fourth: float) -> float:
    """Return the optimal shrinkage toward (tr S / d) I by Ledoit and Wolf.

    It is min(beta, delta) / delta with

        beta = (fourth / n - |S|^2) / (n d)        delta = (|S|^2 - tr(S)^2 / d) / d

    where `squares` is |S|^2, `trace` tr S, `weight` n, and `fourth` the sum over rows of |z|^4 for
    centred rows z.
    """
    beta = (fourth / weight - squares) / (weight * d)
    delta = (squares - trace**2 / d) / d
    return 1.0 if delta <= 0 else float(np.clip(beta / delta, 0.0, 1.0))


def oas(squares: float, trace: float, d: int, weight: float) -> float:
    """Return the oracle-approximating shrinkage (OAS) toward (tr S / d) I, for Gaussian rows.

    `squares` is |S|^2, `trace` is tr S.
    """
    alpha = squares / d**2
    mu2 = (trace / d) ** 2
    denominator = (weight + 1.0) * (alpha - mu2 / d)
    return 1.0 if denominator <= 0 else min((alpha + mu2) / denominator, 1.0)


def shrinkage_scale(variance: Floats, target: Target, unit: Floats) -> Floats:
    """Return the (d,) scales of the columns.

    Once the columns are divided by these scales, the shrinkage target is a multiple of the
    identity.
    """
    if target == "diagonal":
        sd = np.sqrt(variance)
        return np.asarray(np.where(sd > 0, sd, 1.0))
    return np.asarray(unit.max() / unit)


_TINY = float(np.finfo(np.float64).tiny)
_ACCURATE = 1e-10  # reciprocal condition number from which solutions have six correct digits
_GROUP_BYTES = 1 << 19  # bytes of the covariances that are factorised together

Driver = Literal["gesdd", "gesvd"]  # LAPACK's SVD: the fast routine, or the most accurate one


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """Factorised covariance of d features, for Mahalanobis distances and linear systems.

    The formula of the distance in the module docstring defines `root`, `basis`, `gain` and `rest`.
    """

    root: Floats  # (d,) factors of the offsets; not used if `rest` is 0
    basis: Floats  # (d, r)
    gain: Floats  # (r,)
    rest: float  # 0 or 1: factor of the squared length outside the span of the basis
    logdet: float
    shrunk: float = 0.0  # amount of shrinkage that made the covariance invertible

    @property
    def rank(self) -> int:
        """Number of directions that contribute to the distance."""
        return int((self.root > 0).sum()) if self.rest else self.basis.shape[1]

    def squared_distances(self, offsets: Floats) -> Floats:
        """Return the (n,) squared Mahalanobis lengths of the rows of `offsets` (n, d)."""
        u = self._rooted(offsets)
        projected = u @ self.basis
        inside = np.vecdot(projected * self.gain if self.rest else projected, projected)
        if not self.rest:
            return np.asarray(inside)
        if projected.size:  # the residual itself is squared: a difference of squares would cancel
            u = u - projected @ self.basis.T
        return np.asarray(self.rest * np.vecdot(u, u) + inside)

    def write_squared_distances(self, offsets: Floats, *, out: Floats) -> None:
        """Write the squared lengths of the columns of `offsets` (d, n) to `out` (n,)."""
        if self.rest:
            out[:] = self.squared_distances(offsets.T)
            return
        projected = np.matmul(self.basis.T, offsets)
        np.square(projected, out=projected).sum(axis=0, out=out)

    def solve(self, offsets: Floats) -> Floats:
        """Return the (n, d) offsets times the inverse covariance."""
        u = self._rooted(offsets)
        inside = u @ self.basis
        if not self.rest:
            return np.asarray((inside * self.gain) @ self.basis.T * self.root)
        outside = u - inside @ self.basis.T
        return np.asarray((self.rest * outside + (inside * self.gain) @ self.basis.T) * self.root)

    def whiten(self, offsets: Floats) -> Floats:
        """Return the (n, m) whitened offsets.

        The Euclidean length of a whitened offset is the Mahalanobis length of the offset in
        `offsets` (n, d).
        """
        u = self._rooted(offsets)
        projected = u @ self.basis
        if not self.rest:
            return np.asarray(projected * np.sqrt(self.gain))
        return np.asarray(u + (projected * (np.sqrt(self.gain) - 1.0)) @ self.basis.T)

    def directions(self, whitened: Floats) -> Floats:
        """Convert (m, r) directions for whitened offsets to (d, r) directions for offsets.

        The projections of offsets on the result equal those of whitened offsets on `whitened`.
        """
        if not self.rest:
            return np.asarray((self.basis * np.sqrt(self.gain)) @ whitened)
        projected = (self.basis.T @ whitened) * (np.sqrt(self.gain) - 1.0)[:, None]
        return np.asarray((whitened + self.basis @ projected) * self.root[:, None])

    def covariance(self) -> Floats:
        """Return the (d, d) covariance."""
        root = self.sample(np.eye(len(self.root)))
        return np.asarray(root.T @ root)

    def sample(self, normal: Floats) -> Floats:
        """Convert (n, d) standard normal numbers to random offsets with this covariance."""
        if not self.rest:
            unwhiten = self._unwhitening()
            return np.asarray(normal[:, : len(unwhiten)] @ unwhiten)
        projected = normal @ self.basis
        stretch = 1.0 / np.sqrt(self.gain) - 1.0 / np.sqrt(self.rest)
        sample = normal / np.sqrt(self.rest) + (projected * stretch) @ self.basis.T
        return np.asarray(sample * np.where(self.root > 0, 1.0 / np.maximum(self.root, _TINY), 0.0))

    def expression(self, apart: Expression, u: Expression, name: str) -> Expression:
        """Return the squared Mahalanobis length of an offset as an expression.

        `apart` is the expression of the offset of the row minus a class mean; `name` names the
        class.
        """
        if not self.rest:
            apart = apart.with_name(f"apart_{name}", u.components)
            along = apart.affine((self.basis * np.sqrt(self.gain)).T, np.zeros(len(self.gain)))
            return along.with_name(f"along_{name}").squares().with_name(f"distance_{name}")
        scaled = (apart * self.root).with_name(f"apart_{name}", u.components)
        if not len(self.gain):
            return scaled.squares().with_name(f"distance_{name}")
        along = scaled.affine(self.basis.T, np.zeros(len(self.gain))).with_name(f"along_{name}")
        back = along.affine(self.basis, np.zeros(len(self.root)))
        outside = (scaled - back).with_name(f"outside_{name}", u.components).squares()
        inside = (along * np.sqrt(self.gain)).with_name(f"inside_{name}").squares()
        return (outside * self.rest + inside).with_name(f"distance_{name}")

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of a metric are invalid, or None if they are valid."""
        root, basis, gain = parts["root"], parts["basis"], parts["gain"]
        if root.ndim != 1 or basis.ndim != 2 or basis.shape != (len(root), len(gain)):
            return f"basis {basis.shape} must be {len(root)} features by {len(gain)} gains"
        return non_finite_message("basis", basis)

    def _unwhitening(self) -> Floats:
        """Return the (r, d) matrix that maps whitened offsets back to offsets.

        The matrix is the pseudo-inverse of the whitening matrix, computed with rows of length one.
        """
        scaled = self.basis * np.sqrt(self.gain)
        size = np.sqrt(np.einsum("ir,ir->i", scaled, scaled))
        per_unit = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
        return np.asarray(np.linalg.pinv(scaled * per_unit[:, None]) * per_unit)

    def _rooted(self, offsets: Floats) -> Floats:
        return offsets * self.root if self.rest else offsets


def non_finite_message(name: str, values: Floats) -> str | None:
    """Return a message if the array `name` has values that are not finite, else None."""
    count = int((~np.isfinite(values)).sum())
    return f"{name} has {count} of {values.size} values that are not finite" if count else None


@dataclass(frozen=True, slots=True, eq=False)
class RankDeficiency:
    """Rank, condition and null directions of a nearly singular covariance of d columns."""

    rank: int
    condition: float  # condition number of the correlation matrix
    null: Floats  # (d, m) directions without variance, for standardised columns
    weakest: Floats  # (d, max(m, 1)) null directions or, if none, the direction of least variance
    sd: Floats  # (d,) standard deviations of the columns


def diagonal_metric(variance: Floats) -> Metric:
    """Return the metric of uncorrelated features. Features with a variance of 0 are left out."""
    positive = variance > 0
    root = np.divide(1.0, np.sqrt(variance), out=np.zeros_like(variance), where=positive)
    logdet = float(np.log(variance[positive]).sum())
    return Metric(root, np.zeros((len(variance), 0)), np.zeros(0), 1.0, logdet)


def factorise(covariance: Floats) -> tuple[Metric | None, RankDeficiency | None]:
    """Return the metric and the rank deficiency of a (d, d) covariance with a positive diagonal.

    The metric is None if the covariance is singular. The deficiency is None if linear systems are
    solved with at least six correct digits. If the covariance is invertible but solutions are less
    accurate, both values are returned.
    """
    d = len(covariance)
    standard, sd, lower, reciprocal = standard_cholesky(covariance)
    if reciprocal < 4 * d * _EPS:
        return None, _deficiency(standard, sd)
    # The triangular inverse of LAPACK is faster on a busy machine than solving for the identity.
    whiten = lapack.dtrtri(lower, lower=True)[0].T / sd[:, None]
    logdet = 2 * float(np.log(lower.diagonal() * sd).sum())
    ones = np.ones(d)
    metric = Metric(ones, whiten, ones, 0.0, logdet)
    doubtful = reciprocal < _ACCURATE
    return metric, _deficiency(standard, sd) if doubtful else None


def standard_cholesky(covariance: Floats) -> tuple[Floats, Floats, Floats, float]:
    """Return correlations, standard deviations, Cholesky factor and reciprocal condition number.

    The Cholesky factor and the condition number are computed for the correlation matrix. The
    reciprocal condition number is 0 if the correlation matrix is not positive definite.
    """
    sd = np.sqrt(covariance.diagonal())
    standard = covariance / sd[:, None] / sd
    lower, failed = lapack.dpotrf(standard, lower=True)
    if failed:
        return standard, sd, lower, 0.0
    norm = float(np.abs(standard).sum(axis=0).max())
    return standard, sd, lower, lapack.dpocon(lower, norm, uplo="L")[0]


def subspace_metric(
    covariance: Floats, deficiency: RankDeficiency, floor: npt.NDArray[np.float64]
) -> Metric:
    """Return the metric of a singular covariance, with given variances of the null directions.

    `floor` (m,) holds a variance for each column of `deficiency.null`. Directions with variance
    zero are left out.
    """
    standard = covariance / deficiency.sd[:, None] / deficiency.sd
    values, vectors = eigh(standard)
    m = deficiency.null.shape[1]
    values[:m] = floor
    positive = values > 0
    basis = vectors[:, positive] / np.sqrt(values[positive]) / deficiency.sd[:, None]
    logdet = float(np.log(values[positive]).sum() + 2 * np.log(deficiency.sd).sum())
    return Metric(np.ones(len(standard)), basis, np.ones(int(positive.sum())), 0.0, logdet)


def independent_columns(standard: Floats) -> npt.NDArray[np.bool_]:
    """Return a boolean array (d,): True for a set of linearly independent columns.

    `standard` is the (d, d) correlation matrix. The columns are chosen by a pivoted Cholesky
    factorisation: the next column is the column with the largest residual variance given the
    previous columns, until the residual variances are only rounding errors.
    """
    _, pivot, rank, _ = lapack.dpstrf(standard, tol=8 * len(standard) * _EPS)
    independent = np.zeros(len(standard), dtype=bool)
    independent[pivot[:rank] - 1] = True
    return independent


def embed_columns(metric: Metric, columns: npt.NDArray[np.bool_]) -> Metric:
    """Extend the metric of the columns where `columns` is True to a metric for all columns.

    Columns where `columns` is False do not affect distances.
    """
    if np.count_nonzero(columns) == len(columns):
        return metric
    basis = np.zeros((len(columns), metric.basis.shape[1]))
    basis[columns] = metric.basis
    root = np.zeros(len(columns))
    root[columns] = metric.root
    return Metric(root, basis, metric.gain, metric.rest, metric.logdet, metric.shrunk)


def thin_svd(rows: Floats, *, driver: Driver = "gesdd") -> tuple[Floats, Floats, Floats]:
    """Return the thin SVD of a matrix (n, d): U (n, r), s (r,) and V' (r, d).

    A wide matrix is decomposed by its product with its transpose if this loses no more than about
    one digit. Otherwise it is first reduced by QR to a triangular matrix (n, n). Singular values of
    zero may be left out.
    """
    if rows.shape[0] >= rows.shape[1]:
        return _svd(rows, driver)
    decomposition = _svd_by_products(rows) if len(rows) and driver == "gesdd" else None
    if decomposition is not None:
        return decomposition
    tall, small = qr(rows.T, mode="economic", check_finite=False)
    right, values, left = _svd(small, driver)
    return left.T, values, (tall @ right).T


def _svd(matrix: npt.NDArray[np.floating[Any]], driver: Driver) -> tuple[Floats, Floats, Floats]:
    """Return the thin SVD of a matrix.

    If "gesdd" does not converge, "gesvd", which is slower, is used.
    """
    drivers: tuple[Driver, ...] = ("gesdd", "gesvd") if driver == "gesdd" else ("gesvd",)
    for each in drivers:
        try:
            left, values, right = svd(matrix, full_matrices=False, lapack_driver=each)
        except LinAlgError:
            continue
        return left, values, right
    raise DecompositionError.of_svd(*matrix.shape)


def _svd_by_products(rows: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Return the thin SVD of a wide matrix (n, d) by way of its products `rows rows'`, (n, n).

    The products square the condition number c, so that the relative error of the smallest singular
    value is about c^2 eps instead of c eps. Return None unless every singular value is either at
    least an eighth of the largest one, or zero up to the rounding of the products.
    """
    squares, vectors = eigh(rows @ rows.T, check_finite=False)
    largest = squares[-1]
    positive = squares > len(rows) * _EPS * largest
    if not (np.isfinite(largest) and largest > _TINY / _EPS) or (
        squares[positive].min() < largest / 64
    ):
        return None
    values, left = np.sqrt(squares[positive])[::-1], vectors[:, positive][:, ::-1]
    right = left.T @ rows
    right /= values[:, None]
    return left, values, right


def _deficiency(standard: Floats, sd: Floats) -> RankDeficiency:
    values, vectors = eigh(standard)
    tolerance = 8 * len(sd) * _EPS * values[-1]
    null = values <= tolerance
    rank = int((~null).sum())
    least = values[0] if not null.any() else max(values[0], _EPS * values[-1])
    weakest = vectors[:, : max(int(null.sum()), 1)]
    return RankDeficiency(rank, float(values[-1] / least), vectors[:, null], weakest, sd)


# variance, relative to the total variance, given to a column that varies only between classes
_FLOOR = 1e-12
# Degrees of freedom per feature below which a warning is issued. If a covariance of d features is
# estimated with m degrees of freedom, classes are separated only as well as if their distance were
# divided by sqrt(m / (m - d)) (T_Sigma of Raudys and Young 2004, "Results in statistical
# discriminant analysis", J. Multivariate Anal. 89). This divisor is sqrt(2) at m = 2 d and tends to
# infinity as m decreases to d. Similarly, with C the true and S the estimated covariance, the
# squared cosine between C^-1 a and S^-1 a in the metric of C has mean (m - d + 2) / (m + 1).
_PER_FEATURE = 2.0

Columns = npt.NDArray[np.bool_]


def shared_metric(moments: ClassMoments, covariance: Floats, *, degrees: float = np.inf) -> Metric:
    """Return the metric of a covariance that all classes share; warn if this is nearly singular.

    `degrees` is the largest rank that the covariance can have with so few rows.
    """
    covariance, varying, n_estimated = _floored_covariance(moments, covariance)
    if not np.count_nonzero(varying):
        return diagonal_metric(np.zeros(len(varying)))
    name = "The pooled covariance"
    metric, deficiency = factorise(covariance)
    floor = np.zeros(0) if deficiency is None else _null_floor(moments, deficiency, varying)
    dependent = deficiency is not None and metric is None and not np.count_nonzero(floor)
    if not dependent and (degrees < n_estimated or (metric is None and (floor > 0).sum() > 1)):
        weight = float(moments.weight.sum())
        rank = _rank(deficiency, degrees + len(covariance) - n_estimated)
        return embed_columns(_shrunk_metric(covariance, weight, rank, name), varying)
    if deficiency is not None:
        _warn_of_deficiency(moments, deficiency, varying, separating=bool(floor.any()))
        metric = subspace_metric(covariance, deficiency, floor) if metric is None else metric
        n_estimated = min(n_estimated, deficiency.rank)
    assert metric is not None
    if degrees < _PER_FEATURE * n_estimated:
        _warn_few_rows(name, int(moments.rows.sum()), degrees, n_estimated)
    return embed_columns(metric, varying)


def class_metrics_of(
    moments: ClassMoments, covariances: Floats, *, degrees: Sequence[float]
) -> tuple[Metric, ...]:
    """Return the metric of each class, given the class covariances; warn as `class_metric` does.

    The covariances (K, d, d) are factorised in groups that are small enough for the processor's
    cache. Singular and nearly singular covariances are passed to `class_metric`.
    """
    K, d = covariances.shape[:2]
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    rounding = (16 * _EPS * np.abs(moments.mean)) ** 2
    regular = (variances > rounding).all(axis=1) & (np.asarray(degrees) >= d)
    sd = np.sqrt(np.where(regular[:, None], variances, 1.0))
    logdet, inverse = np.log(sd).sum(axis=1), np.zeros((K, d, d))
    size = max(_GROUP_BYTES // (8 * d * d), 1)
    for group in (slice(lo, lo + size) for lo in range(0, K, size)):
        _invert_factors(
            covariances[group], sd[group], regular[group], logdet[group], inverse[group]
        )
    metrics, ones = [], np.ones(d)
    for k, accurate in enumerate(regular.tolist()):
        if not accurate:
            metrics.append(class_metric(moments, covariances[k], k, degrees=degrees[k]))
            continue
        metrics.append(Metric(ones, inverse[k], ones, 0.0, 2 * float(logdet[k])))
        few = degrees[k] < _PER_FEATURE * d
        if few and degrees[k] < moments.rows[k]:  # otherwise rows of other classes would contribute
            _warn_few_rows(_class_name(moments, k), int(moments.rows[k]), degrees[k], d)
    return tuple(metrics)


def _invert_factors(
    covariances: Floats, sd: Floats, regular: Columns, logdet: Floats, inverse: Floats
) -> None:
    """Write the whitening matrices of m classes to `inverse`, and add log determinants to `logdet`.

    The log determinants (m,) are those of the Cholesky factors. `regular` (m,) is set to False for
    classes whose covariance is singular, or so nearly singular that solutions are inaccurate.
    """
    standard = covariances / sd[:, None, :]
    standard /= sd[:, :, None]
    for k in np.flatnonzero(regular).tolist():
        # The transpose is in the column order of LAPACK, so that it is not reordered first.
        lower, failed = lapack.dpotrf(standard[k].T, lower=True)
        regular[k] = not failed
        if not failed:
            inverse[k] = lapack.dtrtri(lower, lower=True, overwrite_c=True)[0].T
    diagonal = np.diagonal(inverse, axis1=1, axis2=2)  # of the inverse factors
    logdet -= np.log(np.where(regular[:, None], diagonal, 1.0)).sum(axis=1)
    # |S^-1| <= |L^-1| |L^-T| bounds the condition number of S = L L' without estimating it. This
    # bound is at most d^2 times the sum of squares of L^-1, since correlations are at most one.
    flat = inverse.reshape(len(inverse), -1)
    doubtful = regular & ~(standard.shape[1] ** 2 * np.vecdot(flat, flat) <= 0.5 / _ACCURATE)
    if np.count_nonzero(doubtful):
        size = np.abs(inverse[doubtful])
        norm = np.abs(standard[doubtful]).sum(axis=1).max(axis=1)
        bound = norm * size.sum(axis=1).max(axis=1) * size.sum(axis=2).max(axis=1)
        regular[doubtful] = bound <= 1.0 / _ACCURATE
    inverse /= sd[:, :, None]


def _class_name(moments: ClassMoments, code: int) -> str:
    return f"The covariance of class '{moments.labels[code]}'"


def class_metric(
    moments: ClassMoments, covariance: Floats, code: int, *, degrees: float = np.inf
) -> Metric:
    """Return the metric of the covariance of class `code`; warn if it is nearly singular.

    `degrees` is the largest rank that the covariance can have with so few rows.
    """
    covariance, varying, n_estimated = _floored_covariance(moments, covariance, code)
    if not varying.any():
        return diagonal_metric(np.zeros(len(varying)))
    name = _class_name(moments, code)
    metric, deficiency = factorise(covariance)
    if deficiency is not None and metric is None and _in_all_classes(moments, deficiency, varying):
        _warn_of_deficiency(moments, deficiency, varying, separating=False)
        return _metric_of_independent(moments, covariance, varying)
    if metric is None or degrees < n_estimated:
        weight = float(moments.weight[code])
        rank = _rank(deficiency, degrees + len(covariance) - n_estimated)
        return embed_columns(_shrunk_metric(covariance, weight, rank, name), varying)
    if deficiency is not None:
        _warn_of_deficiency(moments, deficiency, varying, separating=False)
    if degrees < moments.rows[code]:  # otherwise rows of other classes would contribute
        _warn_few_rows(name, int(moments.rows[code]), degrees, n_estimated)
    return embed_columns(metric, varying)


def _rank(deficiency: RankDeficiency | None, limit: float) -> int:
    """Return the numerical rank; it is at most `limit`, which follows from the number of rows."""
    return int(limit if deficiency is None else min(deficiency.rank, limit))


def _warn_few_rows(what: str, rows: int, degrees: float, features: int) -> None:
    """Warn if an invertible covariance of two or more features is estimated from too few rows."""
    if features > 1 and degrees < _PER_FEATURE * features:
        warn(ScarceRowsWarning.of(what, rows=rows, degrees=int(degrees), features=features))


def _metric_of_independent(moments: ClassMoments, covariance: Floats, varying: Columns) -> Metric:
    """Return the metric of linearly independent columns; the other columns are left out.

    The columns are chosen by the pooled covariance, so that all classes leave out the same columns.
    Otherwise the determinants of the classes could not be compared.
    """
    pooled = moments.pooled[np.ix_(varying, varying)]
    sd = np.sqrt(np.diagonal(pooled))
    independent = independent_columns(pooled / sd[:, None] / sd)
    metric, _ = factorise(covariance[np.ix_(independent, independent)])
    if metric is None:
        metric = diagonal_metric(np.diagonal(covariance)[independent])
    columns = varying.copy()
    columns[varying] = independent
    return embed_columns(metric, columns)


def rounding_variance(mean: Floats) -> Floats:
    """Return the (d,) variances that constant columns appear to have because means are rounded.

    `mean` (K, d) holds the class means.
    """
    return np.asarray((16 * _EPS * np.abs(mean).max(axis=0, initial=0.0)) ** 2)


def floor_variances(moments: ClassMoments, variance: Floats, code: int | None = None) -> Floats:
    """Return the (d,) variances, replaced for columns that do not vary; warn about these columns.

    `variance` is the pooled variance or, if `code` is given, that of class `code`. A column does
    not vary if its variance is within the rounding of the class means. The variance of such a
    column is replaced: by zero if the column is constant in all rows, by the pooled variance if the
    column varies within other classes, and by a very small variance if the column varies only
    between classes.
    """
    tiny = variance <= rounding_variance(moments.mean if code is None else moments.mean[code][None])
    if not np.count_nonzero(tiny):
        return variance
    pooled = moments.pooled if moments.pooled.ndim == 1 else np.diagonal(moments.pooled)
    offsets = moments.mean - moments.centre
    total = (pooled + moments.weight @ offsets**2) / moments.weight.sum()
    noise = rounding_variance(moments.mean)
    constant = tiny & (total <= 4 * noise)
    in_class = tiny & ~constant & (pooled > 4 * noise * moments.weight.sum()) & (code is not None)
    separating = tiny & ~constant & ~in_class
    _warn_of_columns(moments, constant, in_class, separating, code)
    variance = np.where(in_class, pooled / moments.weight.sum(), variance)
    return np.where(constant, 0.0, np.where(separating, _FLOOR * total, variance))


def _warn_of_columns(
    moments: ClassMoments,
    constant: Columns,
    in_class: Columns,
    separating: Columns,
    code: int | None,
) -> None:
    names = np.array(moments.features, dtype=object)
    if constant.any():
        warn(ConstantColumnWarning.of_columns(names[constant].tolist()))
    if in_class.any() and code is not None:
        label = moments.labels[code]
        warn(ConstantInClassWarning.of_columns(names[in_class].tolist(), label))
    if separating.any():
        labels = moments.labels.tolist()
        warn(SeparatingColumnWarning.of_columns(names[separating].tolist(), labels))


def _floored_covariance(
    moments: ClassMoments, covariance: Floats, code: int | None = None
) -> tuple[Floats, Columns, int]:
    """Return the covariance of the columns that vary, their mask, and a count of variances.

    `floor_variances` replaces the variances of columns that do not vary. The count is the number of
    variances that it leaves unchanged: those that are estimated from the rows.
    """
    diagonal = covariance.diagonal()
    variance = floor_variances(moments, diagonal, code)
    if variance is diagonal:
        return covariance, np.ones(len(diagonal), dtype=bool), len(diagonal)
    varying = variance > 0
    n_estimated = int((variance[varying] == np.diagonal(covariance)[varying]).sum())
    covariance = covariance.copy() if varying.all() else covariance[np.ix_(varying, varying)]
    np.fill_diagonal(covariance, variance[varying])
    return covariance, varying, n_estimated


def _shrunk_metric(covariance: Floats, weight: float, rank: int, what: str) -> Metric:
    """Shrink the covariance toward its diagonal by OAS, with a warning, and return its metric."""
    sd = np.sqrt(np.diagonal(covariance))
    amount = oas(*shrinkage_terms(covariance / sd[:, None] / sd), weight)
    shrunk = (1.0 - amount) * covariance
    np.fill_diagonal(shrunk, np.diagonal(covariance))
    warn(ShrinkageChosenWarning.of(what, rank, len(covariance), amount))
    metric, _ = factorise(shrunk)
    if metric is None:
        return replace(diagonal_metric(np.diagonal(covariance)), shrunk=1.0)
    return replace(metric, shrunk=amount)


def _in_all_classes(moments: ClassMoments, deficiency: RankDeficiency, varying: Columns) -> bool:
    """Return whether all rows, regardless of class, are constant along the null space.

    All rows are constant along the null space if no class has variance along the null directions
    and the class means do not differ along them.
    """
    pooled = moments.pooled[np.ix_(varying, varying)] / moments.weight.sum()
    along = deficiency.null / deficiency.sd[:, None]
    variance = np.einsum("im,ij,jm->m", along, pooled, along)
    total = np.einsum("im,i,im->m", along, np.diagonal(pooled), along)
    return not ((variance > 1e-10 * total).any() or _null_floor(moments, deficiency, varying).any())


def _null_floor(moments: ClassMoments, deficiency: RankDeficiency, varying: Columns) -> Floats:
    """Return the (m,) variances assigned to the null directions.

    The variance of a direction is zero if the class means do not differ along it, otherwise very
    small.
    """
    offsets = (moments.mean - moments.centre)[:, varying] / deficiency.sd
    along = np.abs(offsets @ deficiency.null).max(axis=0, initial=0.0)
    noise = 1e-7 * np.abs(offsets).max(initial=0.0)
    return np.where(along > noise, _FLOOR * along**2, 0.0)


def _warn_of_deficiency(
    moments: ClassMoments, deficiency: RankDeficiency, varying: Columns, *, separating: bool
) -> None:
    if separating:
        columns = _collinear_columns(moments, deficiency, varying)
        warn(SeparatingColumnWarning.of_direction(columns, moments.labels.tolist()))
    else:
        warn_collinear(moments, deficiency, varying)


def warn_collinear(
    moments: ClassMoments,
    deficiency: RankDeficiency,
    varying: Columns,
    *,
    remedy: str | None = "shrinkage",
) -> None:
    """Warn about linearly dependent columns. `remedy` is the option that the warning recommends."""
    warning = CollinearWarning.of_columns(
        _collinear_columns(moments, deficiency, varying),
        rank=deficiency.rank,
        features=int(varying.sum()),
        condition=deficiency.condition,
        remedy=remedy,
    )
    warn(warning)


def _collinear_columns(
    moments: ClassMoments, deficiency: RankDeficiency, varying: Columns
) -> list[str]:
    """Return the names of the columns that are linearly dependent, or nearly so.

    A column is included if its coefficient is not zero in a direction with (nearly) zero variance.
    """
    names = np.array(moments.features, dtype=object)[varying]
    share = np.abs(deficiency.weakest).max(axis=1)
    return [str(name) for name in names[share > 1e-3 * share.max()]]
