"""Covariances from scatter matrices: denominators, shrinkage, factorisation and rank deficiency.

    unbiased     W / (n - K)             W_k / (n_k - 1)           weights count rows
    reliability  W / sum(n_k - q_k/n_k)  W_k / (n_k - q_k/n_k)     q_k the sum of squared weights
    ml           W / n                   W_k / n_k

    S(s) = (1 - s) S + s T,   T = diag S, or (tr S / d) I, or I

Priors never enter here. The best s by Ledoit and Wolf (2004, "A well-conditioned estimator for
large-dimensional covariance matrices", eq. 14) or by OAS (Chen et al. 2010, eq. 23) follows from
sums: see `ledoit_wolf` and `oas`.

A `Metric` is a factorised covariance, which measures distances and solves. With u = offset * root
and the columns of `basis` b_i:

    distance^2 = rest * (|u|^2 - |u B|^2)  +  sum_i gain_i (u . b_i)^2

    dense     rest 0, B whitens (B' C B = I), gain 1
    diagonal  no basis, rest 1, root 1/sd
    wide      rest 1, B orthonormal: a diagonal plus a few directions, never a d x d matrix

Rank is determined on standardised columns, relative to the largest eigenvalue, so that the unit of
a column never matters. Where a covariance has no inverse, a warning names the columns:

    a column constant in all rows              left out
    a column that varies only between classes  kept, with a small floor of variance: it decides
    a column constant in one class             takes the pooled variance there, since one class
                                               alone is no evidence that it never varies
    a dependence that no class mean breaks     its direction is left out, as MASS does; where each
                                               class has a covariance, a column for all classes
    one direction that only means break        kept with a floor, as for a column
    many of them, or too few rows              shrunk toward the diagonal by OAS
    fewer than two rows per column             used as it is

The scatter about class means of n rows in K classes has rank n - K at most. Directions beyond it
say nothing about the columns, however few they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh, lapack, qr, svd

from discriminant.errors import (
    CollinearWarning,
    ConstantColumnWarning,
    ConstantInClassWarning,
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
    """(K,) divisor of each class scatter; zero or less where a class has too little weight."""
    weight = moments.weight
    if denominator == "ml":
        return weight
    if denominator == "unbiased":
        return weight - 1.0
    squares = np.divide(moments.weight2, weight, out=np.zeros_like(weight), where=weight > 0)
    return weight - squares


def pooled_degrees(moments: ClassMoments, denominator: Denominator) -> float:
    """Divisor of the pooled scatter; an error if only rounding of the weights is left."""
    total = float(class_degrees(moments, denominator)[moments.weight > 0].sum())
    weight = float(moments.weight.sum())
    if total <= 64 * _EPS * weight:
        raise WeightError.denominator_not_positive(weight, int((moments.weight > 0).sum()))
    return total


def pooled_covariance(moments: ClassMoments, denominator: Denominator = "unbiased") -> Floats:
    """(d, d) within-class covariance in units of the anchor; (d,) from diagonal moments."""
    return np.asarray(moments.pooled / pooled_degrees(moments, denominator))


def class_covariances(moments: ClassMoments, denominator: Denominator = "unbiased") -> Floats:
    """(K, d, d) covariance of each class, all heavy enough to have one, in units of the anchor."""
    if not moments.holds("class"):
        raise MomentsMismatchError.needs_detail(
            "A covariance for each class", "class", moments.detail
        )
    return np.asarray(moments.scatter / class_degrees(moments, denominator)[:, None, None])


def shrink(covariance: Floats, amount: float | Floats, target: Target, unit: Floats) -> Floats:
    """(1 - amount) covariance + amount target; one matrix (d, d), or K and perhaps K amounts."""
    if not np.any(amount):
        return covariance
    diagonal = np.diagonal(covariance, axis1=-2, axis2=-1)
    each = np.asarray(amount)[..., None]
    shrunk = (1.0 - each[..., None]) * covariance
    d = np.arange(diagonal.shape[-1])
    shrunk[..., d, d] += each * target_diagonal(diagonal, target, unit)
    return shrunk


def target_diagonal(diagonal: Floats, target: Target, unit: Floats) -> Floats:
    """The diagonal of the target, in units of the anchor."""
    if target == "diagonal":
        return diagonal
    relative = (unit / unit.max()) ** 2
    if target == "identity":
        return np.broadcast_to(1.0 / unit**2, diagonal.shape)
    average = (diagonal * relative).mean(axis=-1, keepdims=True)
    return np.asarray(average / relative)


def best_shrinkage(moments: ClassMoments, rule: Best, target: Target) -> float:
    """Shrinkage of the pooled covariance that is best by Ledoit and Wolf ('auto') or OAS."""
    fourth = None if moments.fourth is None else moments.fourth.sum(axis=0)
    return _best(moments, moments.pooled, float(moments.weight.sum()), fourth, rule, target)


def best_shrinkages(moments: ClassMoments, rule: Best, target: Target) -> Floats:
    """(K,) best shrinkage of the covariance of each class, from its own rows."""
    fourth = [None] * len(moments.labels) if moments.fourth is None else moments.fourth
    each = zip(moments.scatter, moments.weight.tolist(), fourth, strict=True)
    return np.array([_best(moments, *of_class, rule, target) for of_class in each])


def _best(
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
    """Terms of a covariance in the formulas of shrinkage: |S|^2, tr S and d."""
    return float((covariance**2).sum()), float(np.trace(covariance)), len(covariance)


def ledoit_wolf(squares: float, trace: float, d: int, weight: float, fourth: float) -> float:
    """Best shrinkage toward (tr S / d) I; `fourth` is the sum over rows of |z|^4.

    beta = (fourth / n - |S|^2) / (n d),  delta = (|S|^2 - tr(S)^2 / d) / d,  min(beta, delta)/delta
    """
    beta = (fourth / weight - squares) / (weight * d)
    delta = (squares - trace**2 / d) / d
    return 1.0 if delta <= 0 else float(np.clip(beta / delta, 0.0, 1.0))


def oas(squares: float, trace: float, d: int, weight: float) -> float:
    """Oracle-approximating shrinkage toward (tr S / d) I, for Gaussian rows."""
    alpha = squares / d**2
    mu2 = (trace / d) ** 2
    below = (weight + 1.0) * (alpha - mu2 / d)
    return 1.0 if below <= 0 else min((alpha + mu2) / below, 1.0)


def shrinkage_scale(variance: Floats, target: Target, unit: Floats) -> Floats:
    """Scale of the columns; on standardised columns the diagonal target is I."""
    if target == "diagonal":
        sd = np.sqrt(variance)
        return np.asarray(np.where(sd > 0, sd, 1.0))
    return np.asarray(unit.max() / unit)


_TINY = float(np.finfo(np.float64).tiny)

Driver = Literal["gesdd", "gesvd"]  # of LAPACK: the quick one, or the one closest to exact


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """Distances in a covariance of d features."""

    root: Floats  # (d,)
    basis: Floats  # (d, r)
    gain: Floats  # (r,)
    rest: float  # 0 or 1
    logdet: float
    shrunk: float = 0.0  # how far the covariance had to go to its diagonal to have an inverse

    def squared_distances(self, offsets: Floats) -> Floats:
        """(n,) squared distances of offsets (n, d) from zero."""
        u = self._rooted(offsets)
        along = u @ self.basis
        inside = np.vecdot(along * self.gain if self.rest else along, along)
        if not self.rest:
            return np.asarray(inside)
        if along.size:  # what is outside is taken apart, not as a difference of large squares
            u = u - along @ self.basis.T
        return np.asarray(self.rest * np.vecdot(u, u) + inside)

    def write_squared_distances(self, offsets: Floats, *, out: Floats) -> None:
        """Squared distances of offsets (d, n), a column each, from zero; into `out` (n,)."""
        if self.rest:
            out[:] = self.squared_distances(offsets.T)
            return
        along = np.matmul(self.basis.T, offsets)
        np.square(along, out=along).sum(axis=0, out=out)

    def solve(self, offsets: Floats) -> Floats:
        """(n, d) offsets times the inverse covariance."""
        u = self._rooted(offsets)
        along = u @ self.basis
        if not self.rest:
            return np.asarray((along * self.gain) @ self.basis.T * self.root)
        outside = u - along @ self.basis.T
        return np.asarray((self.rest * outside + (along * self.gain) @ self.basis.T) * self.root)

    def whiten(self, offsets: Floats) -> Floats:
        """(n, m) whitened offsets (n, d): Euclidean distances between them are distances here."""
        u = self._rooted(offsets)
        along = u @ self.basis
        if not self.rest:
            return np.asarray(along * np.sqrt(self.gain))
        return np.asarray(u + (along * (np.sqrt(self.gain) - 1.0)) @ self.basis.T)

    def directions(self, whitened: Floats) -> Floats:
        """(d, r) directions for offsets of directions (m, r) for whitened offsets."""
        if not self.rest:
            return np.asarray((self.basis * np.sqrt(self.gain)) @ whitened)
        along = (self.basis.T @ whitened) * (np.sqrt(self.gain) - 1.0)[:, None]
        return np.asarray((whitened + self.basis @ along) * self.root[:, None])

    def covariance(self) -> Floats:
        """(d, d) the covariance itself."""
        spread = self.sample(np.eye(len(self.root)))
        return np.asarray(spread.T @ spread)

    def sample(self, normal: Floats) -> Floats:
        """(n, d) offsets with this covariance, from (n, d) independent standard normal numbers."""
        if not self.rest:
            back = self._unwhitening()
            return np.asarray(normal[:, : len(back)] @ back)
        along = normal @ self.basis
        stretch = 1.0 / np.sqrt(self.gain) - 1.0 / np.sqrt(self.rest)
        spread = normal / np.sqrt(self.rest) + (along * stretch) @ self.basis.T
        return np.asarray(spread * np.where(self.root > 0, 1.0 / np.maximum(self.root, _TINY), 0.0))

    def expression(self, apart: Expression, u: Expression, name: str) -> Expression:
        """(1,) squared length of `apart`, the offsets `u` less a mean, as an expression."""
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
        """Return why these fields cannot form a metric, or None."""
        root, basis, gain = parts["root"], parts["basis"], parts["gain"]
        if root.ndim != 1 or basis.ndim != 2 or basis.shape != (len(root), len(gain)):
            return f"basis {basis.shape} must be {len(root)} features by {len(gain)} gains"
        return non_finite_reason("basis", basis)

    def _unwhitening(self) -> Floats:
        """(r, d) from whitened numbers back to offsets; units are taken out before the inverse."""
        scaled = self.basis * np.sqrt(self.gain)
        size = np.sqrt(np.einsum("ir,ir->i", scaled, scaled))
        per_unit = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
        return np.asarray(np.linalg.pinv(scaled * per_unit[:, None]) * per_unit)

    def _rooted(self, offsets: Floats) -> Floats:
        return offsets * self.root if self.rest else offsets


def non_finite_reason(name: str, values: Floats) -> str | None:
    """Return a message if an array of a stored rule has values that are not finite, or None."""
    count = int((~np.isfinite(values)).sum())
    return f"{name} has {count} of {values.size} values that are not finite" if count else None


@dataclass(frozen=True, slots=True, eq=False)
class RankDeficiency:
    """Rank, condition and null directions of a nearly singular covariance."""

    rank: int
    condition: float  # of the standardised columns
    null: Floats  # (d, m) directions of no variance, in standardised columns
    weakest: Floats  # (d, max(m, 1)) the null directions, or the one of least variance
    sd: Floats  # (d,)


def diagonal_metric(variance: Floats) -> Metric:
    """Metric of independent features; a feature without variance is ignored."""
    some = variance > 0
    root = np.divide(1.0, np.sqrt(variance), out=np.zeros_like(variance), where=some)
    logdet = float(np.log(variance[some]).sum())
    return Metric(root, np.zeros((len(variance), 0)), np.zeros(0), 1.0, logdet)


def factorise(covariance: Floats) -> tuple[Metric | None, RankDeficiency | None]:
    """Metric of a (d, d) covariance with a positive diagonal, or its rank deficiency.

    Both are returned if it can be solved, but with fewer than six digits.
    """
    d = len(covariance)
    sd = np.sqrt(np.diagonal(covariance))
    standard = covariance / sd[:, None] / sd
    low, fault = lapack.dpotrf(standard, lower=True)
    if fault:
        return None, _deficiency(standard, sd)
    norm = float(np.abs(standard).sum(axis=0).max())
    reciprocal, _ = lapack.dpocon(low, norm, uplo="L")
    if reciprocal < 4 * d * _EPS:
        return None, _deficiency(standard, sd)
    # LAPACK's own triangular inverse: a solve against the identity keeps a busy machine waiting.
    whiten = lapack.dtrtri(low, lower=True)[0].T / sd[:, None]
    logdet = 2 * float(np.log(np.diagonal(low)).sum() + np.log(sd).sum())
    metric = Metric(np.ones(d), whiten, np.ones(d), 0.0, logdet)
    doubtful = reciprocal < 1e-10
    return metric, _deficiency(standard, sd) if doubtful else None


def subspace_metric(
    covariance: Floats, lost: RankDeficiency, floor: npt.NDArray[np.float64]
) -> Metric:
    """Metric without the null directions, except those given a positive floor of variance.

    `floor` (m,) belongs to the columns of `lost.null`; zero drops the direction.
    """
    standard = covariance / lost.sd[:, None] / lost.sd
    values, vectors = eigh(standard)
    m = lost.null.shape[1]
    values[:m] = floor
    keep = values > 0
    basis = vectors[:, keep] / np.sqrt(values[keep]) / lost.sd[:, None]
    logdet = float(np.log(values[keep]).sum() + 2 * np.log(lost.sd).sum())
    return Metric(np.ones(len(standard)), basis, np.ones(int(keep.sum())), 0.0, logdet)


def independent_columns(standard: Floats) -> npt.NDArray[np.bool_]:
    """Which of d standardised columns to keep, so that none of them depends on the others.

    A Cholesky factor with pivots: each next column is the one that is least explained by those
    before it, and it stops when what is left is rounding.
    """
    _, pivot, rank, _ = lapack.dpstrf(standard, tol=8 * len(standard) * _EPS)
    kept = np.zeros(len(standard), dtype=bool)
    kept[pivot[:rank] - 1] = True
    return kept


def embed_columns(metric: Metric, columns: npt.NDArray[np.bool_]) -> Metric:
    """Extend a metric of some columns to all columns; the others are ignored."""
    if columns.all():
        return metric
    basis = np.zeros((len(columns), metric.basis.shape[1]))
    basis[columns] = metric.basis
    root = np.zeros(len(columns))
    root[columns] = metric.root
    return Metric(root, basis, metric.gain, metric.rest, metric.logdet, metric.shrunk)


def thin_svd(rows: Floats, *, driver: Driver = "gesdd") -> tuple[Floats, Floats, Floats]:
    """U (n, r), s (r,) and V' (r, d) of (n, d); of a wide one by way of its triangle, (n, n).

    Its products (n, n) would do as well, and faster, but they square the condition.
    """
    if rows.shape[0] >= rows.shape[1]:
        left, values, right = svd(rows, full_matrices=False, lapack_driver=driver)
        return left, values, right
    tall, small = qr(rows.T, mode="economic", check_finite=False)
    right, values, left = svd(small, lapack_driver=driver)
    return left.T, values, (tall @ right).T


def _deficiency(standard: Floats, sd: Floats) -> RankDeficiency:
    values, vectors = eigh(standard)
    tolerance = 8 * len(sd) * _EPS * values[-1]
    null = values <= tolerance
    rank = int((~null).sum())
    least = values[0] if not null.any() else max(values[0], _EPS * values[-1])
    weakest = vectors[:, : max(int(null.sum()), 1)]
    return RankDeficiency(rank, float(values[-1] / least), vectors[:, null], weakest, sd)


_FLOOR = 1e-12  # variance, relative to the total, of what does not vary within a class
# With m degrees of freedom, d features tell classes apart as if their distance were
# sqrt(m / (m - d)) times shorter (T_Sigma of Raudys and Young 2004, "Results in statistical
# discriminant analysis", J. Multivariate Anal. 89; the squared cosine between C^-1 a and S^-1 a in
# the metric of C has mean (m - d + 2) / (m + 1)): by sqrt(2) at m = 2 d, without bound down to d.
_PER_FEATURE = 2.0

Columns = npt.NDArray[np.bool_]


def shared_metric(moments: ClassMoments, covariance: Floats, *, degrees: float = np.inf) -> Metric:
    """Metric of one covariance for all classes; `degrees` is the rank that its rows allow."""
    covariance, moving, varying = _moving(moments, covariance)
    if not moving.any():
        return diagonal_metric(np.zeros(len(moving)))
    what = "The pooled covariance"
    metric, lost = factorise(covariance)
    floor = np.zeros(0) if lost is None else _null_floor(moments, lost, moving)
    dependent = lost is not None and metric is None and not floor.any()
    if not dependent and (degrees < varying or (metric is None and (floor > 0).sum() > 1)):
        weight = float(moments.weight.sum())
        most = degrees + len(covariance) - varying
        return embed_columns(_shrunk(covariance, weight, _rank(lost, most), what), moving)
    if lost is not None:
        _warn_of(moments, lost, moving, separating=bool(floor.any()))
        metric = subspace_metric(covariance, lost, floor) if metric is None else metric
        varying = min(varying, lost.rank)
    assert metric is not None
    _warn_few_rows(what, int(moments.rows.sum()), degrees, varying)
    return embed_columns(metric, moving)


def class_metric(
    moments: ClassMoments, covariance: Floats, code: int, *, degrees: float = np.inf
) -> Metric:
    """Metric of the covariance of one class; `degrees` is the rank that its rows allow."""
    covariance, moving, varying = _moving(moments, covariance, code)
    if not moving.any():
        return diagonal_metric(np.zeros(len(moving)))
    what = f"The covariance of class '{moments.labels[code]}'"
    metric, lost = factorise(covariance)
    if lost is not None and metric is None and _shared(moments, lost, moving):
        _warn_of(moments, lost, moving, separating=False)
        return _without_copies(moments, covariance, moving)
    if metric is None or degrees < varying:
        weight = float(moments.weight[code])
        most = degrees + len(covariance) - varying
        return embed_columns(_shrunk(covariance, weight, _rank(lost, most), what), moving)
    if lost is not None:
        _warn_of(moments, lost, moving, separating=False)
    if degrees < moments.rows[code]:  # else it is mixed with that of other classes
        _warn_few_rows(what, int(moments.rows[code]), degrees, varying)
    return embed_columns(metric, moving)


def _rank(lost: RankDeficiency | None, most: float) -> int:
    """The numerical rank, or the rank that the rows allow if that is less."""
    return int(most if lost is None else min(lost.rank, most))


def _warn_few_rows(what: str, rows: int, degrees: float, features: int) -> None:
    """Warn about an invertible covariance from too few rows; a single feature is exempt."""
    if features > 1 and degrees < _PER_FEATURE * features:
        warn(ScarceRowsWarning.of(what, rows=rows, degrees=int(degrees), features=features))


def _without_copies(moments: ClassMoments, covariance: Floats, moving: Columns) -> Metric:
    """Metric without the columns that depend on others.

    They are chosen by the pooled covariance, so that all classes drop the same: determinants of
    other columns could not be compared.
    """
    pooled = moments.pooled[np.ix_(moving, moving)]
    sd = np.sqrt(np.diagonal(pooled))
    kept = independent_columns(pooled / sd[:, None] / sd)
    metric, _ = factorise(covariance[np.ix_(kept, kept)])
    if metric is None:
        metric = diagonal_metric(np.diagonal(covariance)[kept])
    columns = moving.copy()
    columns[moving] = kept
    return embed_columns(metric, columns)


def rounding_variance(mean: Floats) -> Floats:
    """(d,) apparent variance of constant columns due to the rounding of means (K, d)."""
    return np.asarray((16 * _EPS * np.abs(mean).max(axis=0, initial=0.0)) ** 2)


def floor_variances(moments: ClassMoments, variance: Floats, code: int | None = None) -> Floats:
    """Variances, zero for constant columns and floored for those constant within classes.

    'Constant' is up to the rounding of the class means: of all classes, or of the class `code`. A
    column that varies in other classes takes the pooled variance.
    """
    still = variance <= rounding_variance(
        moments.mean if code is None else moments.mean[code][None]
    )
    if not still.any():
        return variance
    pooled = moments.pooled if moments.pooled.ndim == 1 else np.diagonal(moments.pooled)
    apart = moments.mean - moments.centre
    total = (pooled + moments.weight @ apart**2) / moments.weight.sum()
    noise = rounding_variance(moments.mean)
    constant = still & (total <= 4 * noise)
    here = still & ~constant & (pooled > 4 * noise * moments.weight.sum()) & (code is not None)
    separating = still & ~constant & ~here
    _tell_of(moments, constant, here, separating, code)
    variance = np.where(here, pooled / moments.weight.sum(), variance)
    return np.where(constant, 0.0, np.where(separating, _FLOOR * total, variance))


def _tell_of(
    moments: ClassMoments, constant: Columns, here: Columns, separating: Columns, code: int | None
) -> None:
    names = np.array(moments.features, dtype=object)
    if constant.any():
        warn(ConstantColumnWarning.of_columns(names[constant].tolist()))
    if here.any() and code is not None:
        label = moments.labels[code]
        warn(ConstantInClassWarning.of_columns(names[here].tolist(), label))
    if separating.any():
        found = SeparatingColumnWarning.of_columns(
            names[separating].tolist(), moments.labels.tolist()
        )
        warn(found)


def _moving(
    moments: ClassMoments, covariance: Floats, code: int | None = None
) -> tuple[Floats, Columns, int]:
    """The covariance of the columns that are not constant, its diagonal floored where it must be.

    And how many of these columns are as they were: their variances are what takes rows.
    """
    variance = floor_variances(moments, np.diagonal(covariance), code)
    moving = variance > 0
    varying = int((variance[moving] == np.diagonal(covariance)[moving]).sum())
    kept = covariance.copy() if moving.all() else covariance[np.ix_(moving, moving)]
    np.fill_diagonal(kept, variance[moving])
    return kept, moving, varying


def _shrunk(covariance: Floats, weight: float, rank: int, what: str) -> Metric:
    """Metric of the covariance shrunk toward its diagonal by OAS."""
    sd = np.sqrt(np.diagonal(covariance))
    amount = oas(*shrinkage_terms(covariance / sd[:, None] / sd), weight)
    shrunk = (1.0 - amount) * covariance
    np.fill_diagonal(shrunk, np.diagonal(covariance))
    warn(ShrinkageChosenWarning.of(what, rank, len(covariance), amount))
    metric, _ = factorise(shrunk)
    if metric is None:
        return replace(diagonal_metric(np.diagonal(covariance)), shrunk=1.0)
    return replace(metric, shrunk=amount)


def _shared(moments: ClassMoments, lost: RankDeficiency, moving: Columns) -> bool:
    """Whether no class varies and no mean differs along the null directions."""
    pooled = moments.pooled[np.ix_(moving, moving)] / moments.weight.sum()
    along = lost.null / lost.sd[:, None]
    spread = np.einsum("im,ij,jm->m", along, pooled, along)
    scale = np.einsum("im,i,im->m", along, np.diagonal(pooled), along)
    return not ((spread > 1e-10 * scale).any() or _null_floor(moments, lost, moving).any())


def _null_floor(moments: ClassMoments, lost: RankDeficiency, moving: Columns) -> Floats:
    """(m,) floor of variance for null directions along which class means differ, else zero."""
    apart = (moments.mean - moments.centre)[:, moving] / lost.sd
    along = np.abs(apart @ lost.null).max(axis=0, initial=0.0)
    noise = 1e-7 * np.abs(apart).max(initial=0.0)
    return np.where(along > noise, _FLOOR * along**2, 0.0)


def _warn_of(
    moments: ClassMoments, lost: RankDeficiency, moving: Columns, *, separating: bool
) -> None:
    columns = _collinear_columns(moments, lost, moving)
    if separating:
        found: Warning = SeparatingColumnWarning.of_direction(columns, moments.labels.tolist())
    else:
        found = CollinearWarning.of_columns(
            columns, rank=lost.rank, features=int(moving.sum()), condition=lost.condition
        )
    warn(found)


def _collinear_columns(moments: ClassMoments, lost: RankDeficiency, moving: Columns) -> list[str]:
    """Names of the columns that take part in a direction of (almost) no variance."""
    names = np.array(moments.features, dtype=object)[moving]
    part = np.abs(lost.weakest).max(axis=1)
    return [str(name) for name in names[part > 1e-3 * part.max()]]
