"""Coordinates in which every unit and every correlation of the features is the same.

Coefficients for offsets u, [coef; intercept], are a linear map of what is sought:

    [coef; intercept] = A theta C'        A = [[0, T], [1, -mean'T]]        T' S T = I

with S the covariance of the features. In theta the features are white and centred: an iteration
there takes the same path whatever the columns were multiplied by or mixed with, and what does not
vary has no coordinate. C (K, K-1) has orthonormal columns that sum to zero: K scores are known up
to a common one, and |theta C'| = |theta|, so that a penalty means the same in both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import helmert, qr, solve_triangular

from discriminant.errors import CollinearWarning, ConstantColumnWarning, tell
from discriminant.models.metric import Deficiency, factor, on_subspace
from discriminant.models.support import rounding
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.schema import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """The map from theta (q, m) to coefficients and intercepts of the scores."""

    frame: Floats  # (d+1, q) A; the intercept is its last row
    contrast: Floats | None  # (K, m) C; None where scores need no contrast
    free: int  # the first so many of the q are intercepts, which no penalty touches

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

    def gradient(self, gradient: Floats) -> Floats:
        """(q, m) by theta, of a gradient (d+1, K) by coefficients."""
        found = self.frame.T @ gradient
        return found if self.contrast is None else found @ self.contrast

    def curvature(self, curvature: Floats) -> Floats:
        """(m q, m q) by theta, of a curvature (K (d+1), K (d+1)) by coefficients."""
        p, q = self.frame.shape
        scores = len(curvature) // p
        blocks = curvature.reshape(scores, p, scores, p)
        found = np.einsum("pq,apbr,rs->aqbs", self.frame, blocks, self.frame, optimize=True)
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
    told: bool = True,
    ridged: Floats | None = None,
) -> Coordinates:
    """Coordinates in which the features that moments describe are white.

    `classes`: how many scores there are if they are known up to a common one, else 0. Columns
    that are constant or made of others are told of, and have no coordinate of their own.
    `ridged` (d,): what a ridge multiplies coefficients by before it squares them, if there is one.
    It chooses among the coefficients of columns made of others, and then these are no fault.
    """
    weight = moments.weight.sum()
    mean = moments.centre if intercept else np.zeros(len(moments.features))
    apart = moments.mean - mean
    total = moments.pooled + (moments.weight[:, None] * apart).T @ apart
    covariance = total / weight
    moving = np.diagonal(covariance) > 4 * rounding(moments.mean)
    if told and not moving.all():
        names = np.array(moments.features, dtype=object)[~moving].tolist()
        tell(ConstantColumnWarning.of_columns(names))
    basis = np.zeros((len(moving), 0))
    if moving.any():
        kept = covariance[np.ix_(moving, moving)]
        metric, lost = factor(kept)
        if lost is not None and told and ridged is None:
            _tell_of(moments, lost, moving)
        if metric is not None:
            found = metric.basis
        else:
            assert lost is not None
            found = on_subspace(kept, lost, np.zeros(lost.null.shape[1])).basis
            found = found if ridged is None else _cheapest(found, lost.sd, ridged[moving])
        basis = np.zeros((len(moving), found.shape[1]))
        basis[moving] = found
    return Coordinates(
        _frame(basis, mean, intercept), contrasts(classes) if classes else None, int(intercept)
    )


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
    moments: ClassMoments, lost: Deficiency, moving: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
) -> None:
    part = np.abs(lost.weakest).max(axis=1)
    names = np.array(moments.features, dtype=object)[moving][part > 1e-3 * part.max()]
    found = CollinearWarning.of_columns(
        [str(name) for name in names],
        rank=lost.rank,
        features=int(moving.sum()),
        condition=lost.condition,
        remedy="ridge",
    )
    tell(found)
