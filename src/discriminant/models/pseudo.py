"""Solve root w = target in the least-squares sense, whatever its rank.

With the columns of the root brought to length one, root / scale = U s V':

    rank       singular values above a tolerance relative to the largest
    w          V s^-1 U' target / scale                if the rank is full
    w          the shortest w in the user's units      if not: w = Q T'^-1 s^-1 U' target,
                                                       where (scale V) = Q T spans the rows

Standardised columns decide the rank, so units never do; the length that is made least is that of
the coefficients as the user reads them. A well-conditioned triangle is solved as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack, qr, solve_triangular

from discriminant.models.metric import thin_svd
from discriminant.table.schema import Floats

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Solver:
    """The pseudo-inverse of a root, in factors."""

    scale: Floats  # (d,) lengths of the columns
    rank: int
    digits: float  # expected in the coefficients
    weakest: Floats  # (d, k) directions of no or least length, in standardised columns
    upper: Floats | None  # (d, d) the root itself, where it is a good triangle
    left: Floats  # (r, k) U
    gain: Floats  # (k,) 1 / s
    right: Floats  # (d, k) V / scale
    lift: Floats  # (d, k) from coordinates to coefficients

    @classmethod
    def of(cls, root: Floats, *, unit: Floats, squared: bool = False, ridge: float = 0.0) -> Solver:
        """Solver of a root (r, d); `squared` if it comes from sums of squares.

        A `ridge` is for roots too wide to have it built in.
        """
        scale = np.linalg.norm(root, axis=0)
        if ridge:
            return _ridged(root, scale, unit, ridge)
        standard = root / scale
        reciprocal = _reciprocal(standard)
        if reciprocal > (1e-5 if squared else 1e-9):
            none = np.zeros((len(scale), 0))
            empty = np.zeros((len(root), 0))
            digits = 16.0 + (2 if squared else 1) * float(np.log10(reciprocal))
            row = np.zeros(0)
            return cls(scale, len(scale), digits, none, root, empty, row, none, none)
        return _by_svd(standard, scale, unit, squared)

    @property
    def width(self) -> int:
        """Columns."""
        return len(self.scale)

    def back(self, target: Floats) -> Floats:
        """(d, m) w with root w = target."""
        if self.upper is not None and self.width:
            return np.asarray(solve_triangular(self.upper, target))
        return np.asarray(self.lift @ (self.gain[:, None] * (self.left.T @ target)))

    def half(self, pull: Floats) -> Floats:
        """(r, m) t with root' t = pull."""
        if self.upper is not None and self.width:
            return np.asarray(solve_triangular(self.upper, pull, trans="T"))
        return np.asarray(self.left @ (self.gain[:, None] * (self.right.T @ pull)))

    def involved(self) -> npt.NDArray[np.bool_]:
        """(d,) columns that take part in a direction of (almost) no length."""
        part = np.abs(self.weakest).max(axis=1, initial=0.0)
        return np.asarray(part > 1e-3 * part.max(initial=0.0))


def _reciprocal(standard: Floats) -> float:
    """One over the condition number of a triangle; zero if it is none."""
    r, d = standard.shape
    if d == 0:
        return 1.0
    if r != d or np.tril(standard, -1).any() or not np.diagonal(standard).all():
        return 0.0
    found, _ = lapack.dtrcon(standard, norm="1", uplo="U")
    return float(found)


def _by_svd(standard: Floats, scale: Floats, unit: Floats, squared: bool) -> Solver:
    left, values, right = thin_svd(standard, driver="gesvd")
    d = len(scale)
    tolerance = 8 * max(standard.shape) * _EPS
    kept = values > values[0] * (np.sqrt(tolerance) if squared else tolerance)
    rank = int(kept.sum())
    least = values[-1] / values[0] if rank == d else _EPS
    digits = 16.0 + (2 if squared and rank == d else 1) * float(np.log10(max(least, _EPS)))
    weakest = _null(right[:rank]) if rank < d else right[-1:].T
    left, values, right = left[:, :rank], values[:rank], right[:rank].T
    lift = _shortest(right, scale * unit, unit) if rank < d else right / scale[:, None]
    return Solver(
        scale, rank, max(digits, 0.0), weakest, None, left, 1 / values, right / scale[:, None], lift
    )


def _shortest(right: Floats, size: Floats, unit: Floats) -> Floats:
    """Coordinates to the shortest coefficients; in standardised columns if sizes are too uneven."""
    basis, upper = qr(right * (size / size.max())[:, None], mode="economic")
    found: Floats = np.full(right.shape, np.nan)
    if upper.diagonal().all():
        with np.errstate(all="ignore"):
            found = solve_triangular(upper, basis.T).T * (unit / size.max())[:, None]
    return np.asarray(found if np.isfinite(found).all() else right * (unit / size)[:, None])


def _null(rows: Floats) -> Floats:
    """(d, 1) how much each column lacks in the rows' space: what it can be changed by, unseen."""
    inside = np.einsum("kd,kd->d", rows, rows)
    return np.asarray(np.sqrt(np.maximum(1.0 - inside, 0.0))[:, None])


def _ridged(root: Floats, scale: Floats, unit: Floats, ridge: float) -> Solver:
    """V s / (s^2 + ridge) U' in the user's units."""
    left, values, right = thin_svd(root * unit, driver="gesvd")
    kept = values > 0
    left, values, right = left[:, kept], values[kept], right[kept].T
    below = values**2 + ridge
    condition = float(np.sqrt(below.max(initial=ridge) / ridge))
    digits = 16.0 - float(np.log10(condition))
    none = np.zeros((len(scale), 0))
    lift = right * unit[:, None]
    return Solver(scale, len(scale), digits, none, None, left, values / below, lift, lift)
