"""Coordinates in which every unit and every correlation of the features is the same.

Coefficients for offsets u, [coef; intercept], are a linear map of what is sought:

    [coef; intercept] = A theta C'        A = [[0, T], [1, -mean'T]]        T' S T = I

with S the covariance of the features. In theta the features are white and centred: an iteration
there takes the same path whatever the columns were multiplied by or mixed with, and what does not
vary has no coordinate. T comes from the moments. Where columns nearly depend on one another S, a
square, has too few digits for it; then T comes from the factor of the rows (`moments.factor`), and
rows are turned by A before anything is summed (`moments.turned`). C (K, K-1) has orthonormal
columns that sum to zero: K scores are known up to a common one, and |theta C'| = |theta|, so that
a penalty means the same in both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import helmert, qr, solve_triangular, svd

from discriminant.errors import CollinearWarning, ConstantColumnWarning, tell
from discriminant.models.metric import Deficiency, factor, on_subspace
from discriminant.models.support import rounding
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.factor import FactorReading, ScatterFactor
from discriminant.moments.slope import Pass
from discriminant.moments.turned import TurnedReading
from discriminant.table.schema import Floats

_EPS = float(np.finfo(np.float64).eps)
_RANK = 1e-11  # of standardised columns, as R's glm has it
_TOLD = 1e6  # condition of columns that leaves less than ten digits


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """The map from theta (q, m) to coefficients and intercepts of the scores."""

    frame: Floats  # (d+1, q) A; the intercept is its last row
    contrast: Floats | None  # (K, m) C; None where scores need no contrast
    free: int  # the first so many of the q are intercepts, which no penalty touches
    turned: bool = False  # whether rows are turned by the frame before they are summed

    @property
    def size(self) -> int:
        """q."""
        return int(self.frame.shape[1])

    def coefficients(self, theta: Floats) -> tuple[Floats, Floats]:
        """(d, K) coefficients and (K,) intercepts for offsets."""
        found = self.frame @ theta
        if self.contrast is not None:
            found = found @ self.contrast.T
        return found[:-1], found[-1]

    @property
    def summed(self) -> Coordinates:
        """The same theta for the rows as they are summed."""
        if not self.turned:
            return self
        frame = np.vstack([np.eye(self.size), np.zeros((1, self.size))])
        return Coordinates(frame, self.contrast, 0)

    def reading(
        self, features: tuple[str, ...], anchor: Anchor, make: Callable[[Anchor], Any]
    ) -> Any:
        """A reading of the rows as they are summed, made from the anchor of these."""
        if not self.turned:
            return make(anchor)
        return TurnedReading(make(Anchor.zero(self.size)), features, anchor, self.frame)

    def gradient(self, gradient: Floats) -> Floats:
        """(q, m) by theta, of a gradient as it is summed, (d+1, K) by coefficients."""
        found = self.summed.frame.T @ gradient
        return found if self.contrast is None else found @ self.contrast

    def curvature(self, curvature: Floats) -> Floats:
        """(m q, m q) by theta, of a curvature as it is summed, (K (d+1))^2 by coefficients."""
        frame = self.summed.frame
        p, q = frame.shape
        scores = len(curvature) // p
        blocks = curvature.reshape(scores, p, scores, p)
        found = np.einsum("pq,apbr,rs->aqbs", frame, blocks, frame, optimize=True)
        if self.contrast is not None:
            found = np.einsum(
                "am,aqbs,bn->mqns", self.contrast, found, self.contrast, optimize=True
            )
        side = found.shape[0] * q
        return np.asarray(found.reshape(side, side))

    def penalty(self, scale: Floats) -> Floats:
        """(q, q) Q with theta' Q theta = sum_j (scale_j coef_j)^2."""
        weighed = scale[:, None] * self.frame[:-1]
        return np.asarray(weighed.T @ weighed)


def white_coordinates(
    moments: ClassMoments,
    *,
    classes: int,
    intercept: bool = True,
    ridged: Floats | None = None,
    read: Pass | None = None,
    remedy: str | None = "ridge",
) -> Coordinates:
    """Coordinates in which the features that moments describe are white.

    `classes`: how many scores there are if they are known up to a common one, else 0. Columns
    that are constant or made of others are told of, and have no coordinate of their own.
    `ridged` (d,): what a ridge multiplies coefficients by before it squares them, if there is one.
    It chooses among the coefficients of columns made of others, and then these are no fault.
    `read`: the fold over the rows, which are read once more where their moments do not tell
    whether columns are made of others. `remedy`: what to raise where they are.
    """
    mean = moments.centre if intercept else np.zeros(len(moments.features))
    apart = moments.mean - mean
    total = moments.pooled + (moments.weight[:, None] * apart).T @ apart
    covariance = total / moments.weight.sum()
    moving = np.diagonal(covariance) > 4 * rounding(moments.mean)
    if not moving.all():
        names = np.array(moments.features, dtype=object)[~moving].tolist()
        tell(ConstantColumnWarning.of_columns(names))
    basis, turned = np.zeros((len(moving), 0)), False
    if moving.any():
        kept = covariance[np.ix_(moving, moving)]
        metric, lost = factor(kept)
        turned = lost is not None and ridged is None and read is not None
        if turned:
            assert read is not None
            found, lost = _from_rows(read, moments, moving, intercept)
        elif metric is not None:
            found = metric.basis
        else:
            assert lost is not None
            found = on_subspace(kept, lost, np.zeros(lost.null.shape[1])).basis
            found = found if ridged is None else _cheapest(found, lost.sd, ridged[moving])
        if lost is not None and ridged is None and not (turned and lost.condition < _TOLD):
            _tell_of(moments, lost, moving, remedy)
        basis = np.zeros((len(moving), found.shape[1]))
        basis[moving] = found
    frame = _frame(basis, mean, intercept)
    return Coordinates(frame, contrasts(classes) if classes else None, int(intercept), turned)


def _from_rows(
    read: Pass, moments: ClassMoments, moving: npt.NDArray[np.bool_], intercept: bool
) -> tuple[Floats, Deficiency]:
    """(moving, r) T from the factor of the rows, and how far the columns depend on one another.

    What is left of columns made of others is their rounding: of each, its last digit.
    """
    nothing = np.zeros((len(moments.labels), 0))
    rows: ScatterFactor = read(FactorReading(moments.features, moments.anchor, nothing))
    root = (rows.centred if intercept else rows.uncentred)[:, moving] / np.sqrt(rows.weight)
    sd = np.linalg.norm(root, axis=0)
    size, axes = svd(root / sd, full_matrices=False, lapack_driver="gesvd")[1:]
    size, axes = np.pad(size, (0, len(sd) - len(size))), _completed(axes)
    far = np.abs(rows.anchor.values(rows.mean) / rows.anchor.unit)[moving] / sd
    noise = 4 * _EPS * np.sqrt(axes**2 @ (1.0 + far) ** 2)
    some = size > np.maximum(_RANK * size[0], noise)
    rank = int(some.sum())
    least = max(float(size[some].min()) if some.all() else 0.0, _EPS * float(size[0]))
    null = axes[~some].T
    weakest = null if null.shape[1] else axes[-1:].T
    lost = Deficiency(rank, float(size[0]) / least, null, weakest, sd)
    return axes[some].T / size[some] / sd[:, None], lost


def _completed(axes: Floats) -> Floats:
    """(d, d) orthonormal rows that begin with these."""
    if axes.shape[0] == axes.shape[1]:
        return axes
    return np.vstack([axes, qr(axes.T)[0].T[len(axes) :]])


def contrasts(classes: int) -> Floats:
    """(K, K-1) orthonormal columns that sum to zero.

    >>> contrasts(2).ravel().round(3).tolist()
    [0.707, -0.707]
    """
    return np.asarray(helmert(classes).T)


def _cheapest(basis: Floats, sd: Floats, ridged: Floats) -> Floats:
    """(d, r) of all that have the scores of `basis` on every row, the least in a ridge.

    Rows span sd^2 basis = V, for basis has no part in what is null of standardised columns. So
    sought is the least |ridged c| with V'c = V' basis.
    """
    span = sd[:, None] ** 2 * basis
    axes, upper = qr(span / ridged[:, None], mode="economic")
    return np.asarray(axes @ solve_triangular(upper, span.T @ basis, trans="T") / ridged[:, None])


def _frame(basis: Floats, mean: Floats, intercept: bool) -> Floats:
    d, r = basis.shape
    frame = np.zeros((d + 1, r + intercept))
    frame[:d, intercept:] = basis
    if intercept:
        frame[d, 0] = 1.0
        frame[d, 1:] = -(mean @ basis)
    return frame


def _tell_of(
    moments: ClassMoments, lost: Deficiency, moving: npt.NDArray[np.bool_], remedy: str | None
) -> None:
    part = np.abs(lost.weakest).max(axis=1)
    names = np.array(moments.features, dtype=object)[moving][part > 1e-3 * part.max()]
    found = CollinearWarning.of_columns(
        [str(name) for name in names],
        rank=lost.rank,
        features=int(moving.sum()),
        condition=lost.condition,
        remedy=remedy,
    )
    tell(found)
