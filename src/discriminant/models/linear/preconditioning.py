"""White coordinates of coefficients, and sketches of the curvature for L-BFGS.

Coefficients for offsets u, [coef; intercept], are a linear map of theta:

    [coef; intercept] = A theta C'        A = [[0, T], [1, -mean'T]]        T' S T = I

with S the covariance of the features. In theta the features are white and centred: an optimiser
takes the same path however the columns are scaled or mixed, and constant directions have no
coordinate. T comes from the moments. Where columns are nearly collinear S, a square, has too few
digits for it; then T comes from the triangular factor of the rows (`moments.scatter_factor`), and
rows are transformed by A before anything is summed. C (K, K-1) has orthonormal columns that sum to
zero: K scores are determined up to a common term, and |theta C'| = |theta|, so that a penalty means
the same in both.

`WhiteSample` sketches the curvature from some rows. Rows z are white and centred, scores are
s = z'theta C'. Orthogonal to the columns of theta, z is uninformative about s (exactly so if the
features are Gaussian), so the curvature there is

    E[C' l''(s) C]  (x)  I        plus the penalty  I (x) Q

and only in the few directions B on which scores depend, including the intercept, is it summed
exactly, (r m, r m) with r <= m + 1. The sketch is the sum of both, so its inverse takes two small
ones however many features there are. It needs scores but no labels: a few thousand rows suffice,
and an error in it costs passes, never digits.

`ScaledCoordinates` are for more features than products of them can be stored:

    coef = scale theta,    intercept = theta_0 - mean'coef        scale = 1 / sd

Columns have variance one but stay correlated; the curvature is sketched as the mean curvature of
the scores, the same for every column, plus the penalty, and L-BFGS learns the correlations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh, helmert, qr, solve_triangular, svd

from discriminant.errors import CollinearWarning, ConstantColumnWarning, warn
from discriminant.models.gaussian.covariance import (
    RankDeficiency,
    factorise,
    rounding_variance,
    subspace_metric,
)
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.loss import Loss, Pass, ScoreDerivatives, TransformedReading, Want
from discriminant.moments.qr_factor import ScatterFactor, ScatterFactorReading
from discriminant.table.blocks import Block, Codes, Features, Floats

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
        coefficients = self.frame @ theta
        if self.contrast is not None:
            coefficients = coefficients @ self.contrast.T
        return coefficients[:-1], coefficients[-1]

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
        return TransformedReading(make(Anchor.zero(self.size)), features, anchor, self.frame)

    def gradient(self, gradient: Floats) -> Floats:
        """(q, m) by theta, of a gradient as it is summed, (d+1, K) by coefficients."""
        transformed = self.summed.frame.T @ gradient
        return transformed if self.contrast is None else transformed @ self.contrast

    def curvature(self, curvature: Floats) -> Floats:
        """(m q, m q) by theta, of a curvature as it is summed, (K (d+1))^2 by coefficients."""
        frame = self.summed.frame
        p, q = frame.shape
        scores = len(curvature) // p
        blocks = curvature.reshape(scores, p, scores, p)
        transformed = np.einsum("pq,apbr,rs->aqbs", frame, blocks, frame, optimize=True)
        if self.contrast is not None:
            transformed = np.einsum(
                "am,aqbs,bn->mqns", self.contrast, transformed, self.contrast, optimize=True
            )
        side = transformed.shape[0] * q
        return np.asarray(transformed.reshape(side, side))

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
    moving = np.diagonal(covariance) > 4 * rounding_variance(moments.mean)
    if not moving.all():
        names = np.array(moments.features, dtype=object)[~moving].tolist()
        warn(ConstantColumnWarning.of_columns(names))
    basis, turned = np.zeros((len(moving), 0)), False
    if moving.any():
        kept = covariance[np.ix_(moving, moving)]
        metric, lost = factorise(kept)
        turned = lost is not None and ridged is None and read is not None
        if turned:
            assert read is not None
            found, lost = _from_rows(read, moments, moving, intercept)
        elif metric is not None:
            found = metric.basis
        else:
            assert lost is not None
            found = subspace_metric(kept, lost, np.zeros(lost.null.shape[1])).basis
            found = found if ridged is None else _cheapest(found, lost.sd, ridged[moving])
        if lost is not None and ridged is None and not (turned and lost.condition < _TOLD):
            _tell_of(moments, lost, moving, remedy)
        basis = np.zeros((len(moving), found.shape[1]))
        basis[moving] = found
    frame = _frame(basis, mean, intercept)
    return Coordinates(frame, contrasts(classes) if classes else None, int(intercept), turned)


def _from_rows(
    read: Pass, moments: ClassMoments, moving: npt.NDArray[np.bool_], intercept: bool
) -> tuple[Floats, RankDeficiency]:
    """(moving, r) T from the factor of the rows, and how far the columns depend on one another.

    What is left of columns made of others is their rounding: of each, its last digit.
    """
    nothing = np.zeros((len(moments.labels), 0))
    rows: ScatterFactor = read(ScatterFactorReading(moments.features, moments.anchor, nothing))
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
    lost = RankDeficiency(rank, float(size[0]) / least, null, weakest, sd)
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
    moments: ClassMoments, lost: RankDeficiency, moving: npt.NDArray[np.bool_], remedy: str | None
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
    warn(found)


_LEAST = 1e-8  # relative to the largest, so that a flat direction is not followed without end


@dataclass(frozen=True, slots=True, eq=False)
class ScaledCoordinates:
    """The map from theta (q, m) to coefficients and intercepts of the scores."""

    scale: Floats  # (d,) zero where a column does not vary
    mean: Floats  # (d,) zero where there is no intercept
    contrast: Floats | None  # (K, m)
    free: int  # 1, or 0 where there is no intercept

    @property
    def size(self) -> int:
        """q."""
        return len(self.scale) + self.free

    def coefficients(self, theta: Floats) -> tuple[Floats, Floats]:
        """(d, K) coefficients and (K,) intercepts."""
        coef = self.scale[:, None] * theta[self.free :]
        intercept = (theta[0] if self.free else 0.0) - self.mean @ coef
        if self.contrast is None:
            return coef, intercept
        return coef @ self.contrast.T, intercept @ self.contrast.T

    def gradient(self, gradient: Floats) -> Floats:
        """(q, m) by theta, of a gradient (d+1, K) by coefficients."""
        if self.contrast is not None:
            gradient = gradient @ self.contrast
        slope = self.scale[:, None] * (gradient[:-1] - self.mean[:, None] * gradient[-1])
        return np.vstack([gradient[-1:], slope]) if self.free else slope

    def curvature(self, curvature: Floats) -> Floats:
        """(m q, m q) by theta; only where there is room for it."""
        frame = np.zeros((len(self.scale) + 1, self.size))
        frame[:-1, self.free :] = np.diag(self.scale)
        frame[-1, self.free :] = -self.mean * self.scale
        frame[-1, : self.free] = 1.0
        return Coordinates(frame, self.contrast, self.free).curvature(curvature)

    def penalty(self, scale: Floats) -> Floats:
        """(q,) Q with theta' diag(Q) theta = sum_j (scale_j coef_j)^2."""
        return np.concatenate([np.zeros(self.free), (scale * self.scale) ** 2])


@dataclass(frozen=True, slots=True, eq=False)
class ScaledSample:
    """Some rows, to say how steep the loss is near theta."""

    block: Block
    loss: Loss
    coordinates: ScaledCoordinates
    penalty: Floats  # (q,)

    def sketch(self, theta: Floats) -> ScaledCurvatureSketch:
        """The mean curvature of the scores of the rows."""
        coef, intercept = self.coordinates.coefficients(theta)
        rows: Features = self.block.features
        scores = np.ascontiguousarray((rows @ coef + intercept).T)
        local = self.loss.at(scores, self.block, want="curvature")
        assert local.curvature is not None
        mean = np.diag(local.curvature.sum(axis=1))
        if local.cross is not None:
            mean = mean - local.cross @ local.cross.T
        weight = self.block.weight
        mean /= len(self.block) if weight is None else weight.sum()
        contrast = self.coordinates.contrast
        values, turn = eigh(mean if contrast is None else contrast.T @ mean @ contrast)
        values = np.maximum(values, _LEAST * max(float(values[-1]), 1e-300))
        return ScaledCurvatureSketch(turn, self.penalty[:, None] + values)


@dataclass(frozen=True, slots=True, eq=False)
class ScaledCurvatureSketch:
    """A curvature that is alike in all columns, but for the penalty."""

    turn: Floats  # (m, m)
    share: Floats  # (q, m)

    def solve(self, gradient: Floats) -> Floats:
        """(q, m) its inverse times a gradient."""
        return np.asarray((gradient @ self.turn / self.share) @ self.turn.T)


_FEW = 2048  # rows that tell which of some places is the better one
_MOST = 600  # numbers that the curvature is summed as it is for
_SHARES = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class WhiteSample:
    """Some rows in white coordinates."""

    rows: Floats  # (n, q) the intercept's ones among them
    codes: Codes  # (n,) of their classes
    weight: Floats  # (n,) sums to one
    total: float  # what it summed to
    loss: Loss
    contrast: Floats | None  # (K, m)
    penalty: Floats | None  # (q, q)

    def sketch(self, theta: Floats) -> CurvatureSketch:
        """The curvature near theta (q, m)."""
        curve, cross = self._curves(theta)
        contrast = np.eye(len(curve)) if self.contrast is None else self.contrast
        mean = _contracted(curve.sum(axis=1), cross @ cross.T, contrast)
        along = _span(theta)
        inner = self._inner(self.rows @ along, curve, cross, contrast)
        if self.penalty is not None:
            m = theta.shape[1]
            inner += np.kron(np.eye(m), along.T @ self.penalty @ along)
        return CurvatureSketch.of(along, mean, inner, self.penalty)

    def best_between(self, low: Floats, high: Floats) -> Floats:
        """Of the places between two, the one where these rows cost least.

        Where there are few rows for their features, a discriminant is too sure of itself.
        """
        places = [low + share * (high - low) for share in _SHARES]
        return min(places, key=self._thinned(_FEW)._value)

    def _thinned(self, rows: int) -> WhiteSample:
        """About so many of the rows."""
        every = slice(None, None, max(len(self.rows) // rows, 1))
        weight = self.weight[every]
        return replace(
            self,
            rows=self.rows[every],
            codes=self.codes[every],
            weight=weight / weight.sum(),
            total=self.total * float(weight.sum()),
        )

    def _value(self, theta: Floats) -> float:
        value = self._local(theta, want="gradient").loss
        if self.penalty is not None:
            value += 0.5 * float((theta * (self.penalty @ theta)).sum())
        return value if np.isfinite(value) else np.inf

    def curvature_floor(self, theta: Floats) -> Floats:
        """(q, q) F with I (x) F <= the curvature of the summed loss of these rows, so of all."""
        least = self._local(theta, want="floor").curvature
        assert least is not None
        return np.asarray((self.rows * least.ravel()[:, None]).T @ self.rows * self.total)

    def curvature_bound(self) -> float:
        """No curvature of the mean loss plus penalty is more (Boehning 1992; white features)."""
        steepest = 0.0 if self.penalty is None else float(eigh(self.penalty)[0][-1])
        return steepest + (0.25 if self.contrast is None else 0.5)

    def _curves(self, theta: Floats) -> tuple[Floats, Floats]:
        """(K, n) diagonal and vector of l'' = diag - r r', times the weights."""
        local = self._local(theta, want="curvature")
        assert local.curvature is not None
        cross = np.zeros_like(local.curvature) if local.cross is None else local.cross
        return local.curvature, cross

    def _local(self, theta: Floats, *, want: Want) -> ScoreDerivatives:
        scores = theta.T @ self.rows.T
        if self.contrast is not None:
            scores = self.contrast @ scores
        block = Block(self.rows, self.codes, self.weight)
        return self.loss.at(np.ascontiguousarray(scores), block, want=want)

    def _inner(self, rows: Floats, curve: Floats, cross: Floats, contrast: Floats) -> Floats:
        """(m r, m r) curvature in the directions (n, r) that scores depend on."""
        m, r = contrast.shape[1], rows.shape[1]
        each = np.stack([(rows * weight[:, None]).T @ rows for weight in curve])
        found = np.einsum("km,kij,kn->minj", contrast, each, contrast, optimize=True)
        wide = ((contrast.T @ cross).T[:, :, None] * rows[:, None, :]).reshape(len(rows), m * r)
        return np.asarray(found.reshape(m * r, m * r) - wide.T @ wide)


@dataclass(frozen=True, slots=True, eq=False)
class CurvatureSketch:
    """Mean curvature outside some directions, the curvature itself along them."""

    along: Floats  # (q, r) orthonormal
    inverse: Floats  # (m r, m r) of the curvature along them
    turn: Floats  # (m, m) eigenvectors of the mean curvature
    frame: Floats | None  # (q, q) eigenvectors of the penalty
    share: Floats  # (q or 1, m) its eigenvalues and those of the penalty, added

    @classmethod
    def of(
        cls, along: Floats, mean: Floats, inner: Floats, penalty: Floats | None
    ) -> CurvatureSketch:
        """Factor both parts; what is nearly flat is taken as a little steeper."""
        values, turn = eigh(mean)
        values = np.maximum(values, _LEAST * max(float(values[-1]), 1e-300))
        sizes, axes = eigh(inner)
        sizes = np.maximum(sizes, _LEAST * max(float(sizes[-1]), 1e-300))
        steep, frame = (np.zeros(1), None) if penalty is None else eigh(penalty)
        share = np.maximum(steep, 0.0)[:, None] + values
        return cls(along, (axes / sizes) @ axes.T, turn, frame, share)

    def solve(self, gradient: Floats) -> Floats:
        """(q, m) the inverse of the sketch times a gradient."""
        m, r = gradient.shape[1], self.along.shape[1]
        part = self.along.T @ gradient
        rest = self._outside(gradient - self.along @ part)
        if self.frame is not None:
            rest -= self.along @ (self.along.T @ rest)
        inner = (self.inverse @ part.T.ravel()).reshape(m, r).T
        return np.asarray(rest + self.along @ inner)

    def _outside(self, gradient: Floats) -> Floats:
        if self.frame is None:
            return np.asarray((gradient @ self.turn / self.share) @ self.turn.T)
        found = (self.frame.T @ gradient @ self.turn) / self.share
        return np.asarray(self.frame @ found @ self.turn.T)


def _contracted(diagonal: Floats, outer: Floats, contrast: Floats) -> Floats:
    """C' (diag - outer) C."""
    return np.asarray((contrast.T * diagonal) @ contrast - contrast.T @ outer @ contrast)


def _span(theta: Floats) -> Floats:
    """(q, r) orthonormal: the intercept's direction, then those that theta goes furthest in."""
    first = np.zeros((len(theta), 1))
    first[0] = 1.0
    axes, size, _ = svd(theta, full_matrices=False)
    most = max(_MOST // theta.shape[1] - 1, 0)
    columns = axes[:, size > 1e-12 * max(size.max(initial=0.0), 1e-300)][:, :most]
    return np.asarray(np.linalg.qr(np.hstack([first, columns]))[0])
