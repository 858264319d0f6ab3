"""A covariance, factorised: what it takes to measure distances and to solve.

With u = offset * root and the columns of `basis` b_i:

    distance^2 = rest * (|u|^2 - |u B|^2)  +  sum_i gain_i (u . b_i)^2

    dense     rest 0, B whitens (B' C B = I), gain 1
    diagonal  no basis, rest 1, root 1/sd
    wide      rest 1, B orthonormal: a diagonal plus a few directions, never a d x d matrix

Rank is judged on standardised columns, relative to the largest eigenvalue, so that the unit of a
column never matters. What is found deficient is named by the caller; here it is only measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh, lapack, qr, svd

from discriminant.table.schema import Floats

_EPS = float(np.finfo(np.float64).eps)
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

    def squared(self, offsets: Floats) -> Floats:
        """(n,) squared distances of offsets (n, d) from zero."""
        u = self._rooted(offsets)
        along = u @ self.basis
        inside = np.vecdot(along * self.gain if self.rest else along, along)
        if not self.rest:
            return np.asarray(inside)
        if along.size:  # what is outside is taken apart, not as a difference of large squares
            u = u - along @ self.basis.T
        return np.asarray(self.rest * np.vecdot(u, u) + inside)

    def squared_columns(self, offsets: Floats, *, out: Floats) -> None:
        """Squared distances of offsets (d, n), a column each, from zero; into `out` (n,)."""
        if self.rest:
            out[:] = self.squared(offsets.T)
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

    def whitened(self, offsets: Floats) -> Floats:
        """(n, m) numbers whose plain distances are the distances of the offsets (n, d)."""
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
        """(d, d) the covariance itself, as far as it counts."""
        spread = self.draw(np.eye(len(self.root)))
        return np.asarray(spread.T @ spread)

    def draw(self, normal: Floats) -> Floats:
        """(n, d) offsets with this covariance, from (n, d) independent standard normal numbers."""
        if not self.rest:
            back = self._unwhitening()
            return np.asarray(normal[:, : len(back)] @ back)
        along = normal @ self.basis
        stretch = 1.0 / np.sqrt(self.gain) - 1.0 / np.sqrt(self.rest)
        spread = normal / np.sqrt(self.rest) + (along * stretch) @ self.basis.T
        return np.asarray(spread * np.where(self.root > 0, 1.0 / np.maximum(self.root, _TINY), 0.0))

    def _unwhitening(self) -> Floats:
        """(r, d) from whitened numbers back to offsets; units are taken out before the inverse."""
        scaled = self.basis * np.sqrt(self.gain)
        size = np.sqrt(np.einsum("ir,ir->i", scaled, scaled))
        per_unit = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
        return np.asarray(np.linalg.pinv(scaled * per_unit[:, None]) * per_unit)

    def _rooted(self, offsets: Floats) -> Floats:
        return offsets * self.root if self.rest else offsets


@dataclass(frozen=True, slots=True, eq=False)
class Deficiency:
    """How far a covariance is from having an inverse."""

    rank: int
    condition: float  # of the standardised columns
    null: Floats  # (d, m) directions of no variance, in standardised columns
    weakest: Floats  # (d, max(m, 1)) the null directions, or the one of least variance
    sd: Floats  # (d,)


def diagonal_metric(variance: Floats) -> Metric:
    """Metric of independent features; a feature of no variance counts for nothing."""
    some = variance > 0
    root = np.divide(1.0, np.sqrt(variance), out=np.zeros_like(variance), where=some)
    logdet = float(np.log(variance[some]).sum())
    return Metric(root, np.zeros((len(variance), 0)), np.zeros(0), 1.0, logdet)


def factor(covariance: Floats) -> tuple[Metric | None, Deficiency | None]:
    """Metric of a (d, d) covariance with a positive diagonal, or what stands in the way.

    Both come back when it can be solved, but with fewer than six digits.
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


def on_subspace(covariance: Floats, lost: Deficiency, floor: npt.NDArray[np.float64]) -> Metric:
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


def independent(standard: Floats) -> npt.NDArray[np.bool_]:
    """Which of d standardised columns to keep, so that none of them depends on the others.

    A Cholesky factor with pivots: each next column is the one that is least explained by those
    before it, and it stops when what is left is rounding.
    """
    _, pivot, rank, _ = lapack.dpstrf(standard, tol=8 * len(standard) * _EPS)
    kept = np.zeros(len(standard), dtype=bool)
    kept[pivot[:rank] - 1] = True
    return kept


def embedded(metric: Metric, columns: npt.NDArray[np.bool_]) -> Metric:
    """A metric of some columns as one of all: the other columns count for nothing."""
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


def _deficiency(standard: Floats, sd: Floats) -> Deficiency:
    values, vectors = eigh(standard)
    tolerance = 8 * len(sd) * _EPS * values[-1]
    null = values <= tolerance
    rank = int((~null).sum())
    least = values[0] if not null.any() else max(values[0], _EPS * values[-1])
    weakest = vectors[:, : max(int(null.sum()), 1)]
    return Deficiency(rank, float(values[-1] / least), vectors[:, null], weakest, sd)
