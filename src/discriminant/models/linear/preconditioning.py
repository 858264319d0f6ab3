"""Preconditioning of linear fits: coefficients in white coordinates, sketches of the curvature.

The optimisers work on coordinates theta. The coefficients for offsets u are a linear map of theta:

    [coef; intercept] = A theta C'        A = [[0, T], [1, -mean'T]]        T' S T = I

with S the covariance of the features. In these coordinates the features are white (uncorrelated,
with variance one) and centred. So linear transformations of the columns do not change the path of
an optimiser, and directions in which the features are constant have no coordinate. T is computed
from the moments. If columns are nearly collinear, S is not accurate enough, since forming it
squares the condition number. T is then computed from the triangular factor of the rows
(`moments.qr_factor`), and rows are transformed by A before anything is summed. The K - 1 columns of
C (K, K-1) are orthonormal, and each sums to zero, since K scores are determined only up to a common
term. Multiplication by C' leaves the norm unchanged, |theta C'| = |theta|, so the penalty on theta
equals the penalty on the coefficients of the K scores.

`WhiteSample` approximates (sketches) the curvature from a sample of rows. Rows z are white and
centred, and their scores are s = z'theta C'. In directions orthogonal to the columns of theta, z is
independent of s if the features are Gaussian, and approximately so otherwise. So the curvature in
these directions is

    E[C' l''(s) C]  (x)  I        plus the penalty  I (x) Q

The curvature is summed exactly only in the r <= m + 1 directions B on which scores depend, the
intercept included, as an (r m, r m) matrix. The sketch is the sum of these two curvatures, so its
inverse needs only the inverses of two small matrices, whatever the number of features. The sketch
needs scores but no labels, and a few thousand rows are enough: an inaccurate sketch costs more
passes, but no accuracy of the result.

`ScaledCoordinates` are used if there are too many features for a d x d matrix:

    coef = scale theta,    intercept = theta_0 - mean'coef        scale = 1 / sd

In these coordinates the columns have variance one, but remain correlated. The curvature is
approximated by the mean curvature of the scores, which is used for every column, plus the penalty.
L-BFGS then corrects the approximation for the correlations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh, helmert, qr, solve_triangular, svd
from scipy.linalg.lapack import dpocon, dpotrf, dpotri

from discriminant.errors import ConstantColumnWarning, warn
from discriminant.models.gaussian.covariance import (
    RankDeficiency,
    factorise,
    rounding_variance,
    subspace_metric,
    warn_collinear,
)
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.loss_gradient_sums import (
    Loss,
    Pass,
    ScoreDerivatives,
    TransformedReading,
    Want,
)
from discriminant.moments.qr_factor import ScatterFactor, ScatterFactorReading
from discriminant.table.blocks import Block, Codes, Features, Floats

_EPS = float(np.finfo(np.float64).eps)
_RANK = 1e-11  # least relative singular value of standardised columns, as in R's glm
_WORTH_WARNING = 1e6  # condition number that leaves fewer than ten digits


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """Map from theta (q, m) to coefficients and intercepts of the scores."""

    frame: Floats  # (d+1, q) A; its last row gives the intercept
    contrast: Floats | None  # (K, m) C; None for a single score, where m is 1
    free: int  # number of leading coordinates that are intercepts, which are not penalised
    turned: bool = False  # whether rows are transformed by the frame before they are summed

    @property
    def size(self) -> int:
        """Number q of coordinates."""
        return int(self.frame.shape[1])

    def coefficients(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the (d, K) coefficients and (K,) intercepts for offsets."""
        coefficients = self.frame @ theta
        if self.contrast is not None:
            coefficients = coefficients @ self.contrast.T
        return coefficients[:-1], coefficients[-1]

    @property
    def summed(self) -> Coordinates:
        """Coordinates with the same theta, for rows that have been transformed by the frame.

        If no frame transforms the rows, the coordinates themselves are returned.
        """
        if not self.turned:
            return self
        frame = np.vstack([np.eye(self.size), np.zeros((1, self.size))])
        return Coordinates(frame, self.contrast, 0)

    def reading(
        self, features: tuple[str, ...], anchor: Anchor, make: Callable[[Anchor], Any]
    ) -> Any:
        """Return the reading that `make` creates, given the anchor of the rows that are summed.

        If there is a frame, the reading transforms the rows by the frame first.
        """
        if not self.turned:
            return make(anchor)
        return TransformedReading(make(Anchor.zero(self.size)), features, anchor, self.frame)

    def gradient(self, gradient: Floats) -> Floats:
        """Convert a gradient for the coefficients of `summed` to a (q, m) gradient for theta."""
        transformed = self.summed.frame.T @ gradient
        return transformed if self.contrast is None else transformed @ self.contrast

    def curvature(self, curvature: Floats) -> Floats:
        """Return the (m q, m q) curvature for theta.

        `curvature` is the curvature for the coefficients of `summed`: a square matrix with K (d+1)
        rows, or K (q+1) if rows are transformed before they are summed.
        """
        frame = self.summed.frame
        p, q = frame.shape
        scores = len(curvature) // p
        if scores == 1:
            return np.asarray(frame.T @ curvature @ frame)
        blocks = curvature.reshape(scores, p, scores, p)
        transformed = np.einsum("pq,apbr,rs->aqbs", frame, blocks, frame, optimize=True)
        if self.contrast is not None:
            transformed = np.einsum(
                "am,aqbs,bn->mqns", self.contrast, transformed, self.contrast, optimize=True
            )
        side = transformed.shape[0] * q
        return np.asarray(transformed.reshape(side, side))

    def penalty(self, scale: Floats) -> Floats:
        """Return the (q, q) matrix Q with theta' Q theta = sum_j (scale_j coef_j)^2."""
        scaled = scale[:, None] * self.frame[:-1]
        return np.asarray(scaled.T @ scaled)


def white_coordinates(
    moments: ClassMoments,
    *,
    classes: int,
    intercept: bool = True,
    ridged: Floats | None = None,
    read: Pass | None = None,
    remedy: str | None = "ridge",
) -> Coordinates:
    """Return coordinates in which the features are white.

    Columns that are constant or linearly dependent on others cause a warning and have no
    coordinate.

    Parameters
    ----------
    moments
        Moments of the features, of detail 'pooled' or finer.
    classes
        Number K of scores if they are determined only up to a common term, or 0 for a single score.
    intercept
        Whether the scores have an intercept.
    ridged
        (d,) factors of the coefficients in a ridge penalty, if there is one. The ridge determines
        the coefficients of linearly dependent columns, so there is no warning about such columns.
    read
        Function that sums a reading over all rows. This function is called once if the moments are
        not accurate enough to decide whether columns are collinear.
    remedy
        Option that the warning about dependent columns recommends.
    """
    mean = moments.centre if intercept else np.zeros(len(moments.features))
    offsets = moments.mean - mean
    total = moments.pooled + (moments.weight[:, None] * offsets).T @ offsets
    covariance = total / moments.weight.sum()
    varying = np.diagonal(covariance) > 4 * rounding_variance(moments.mean)
    if not varying.all():
        names = np.array(moments.features, dtype=object)[~varying].tolist()
        warn(ConstantColumnWarning.of_columns(names))
    basis, from_rows = np.zeros((len(varying), 0)), False
    if varying.any():
        varying_covariance = covariance[np.ix_(varying, varying)]
        metric, deficiency = factorise(varying_covariance)
        from_rows = deficiency is not None and ridged is None and read is not None
        if from_rows:
            assert read is not None
            white, deficiency = _basis_from_rows(read, moments, varying, intercept)
        elif metric is not None:
            white = metric.basis
        else:
            assert deficiency is not None
            floor = np.zeros(deficiency.null.shape[1])
            white = subspace_metric(varying_covariance, deficiency, floor).basis
            if ridged is not None:
                white = _least_penalised(white, deficiency.sd, ridged[varying])
        negligible = from_rows and deficiency is not None and deficiency.condition < _WORTH_WARNING
        if deficiency is not None and ridged is None and not negligible:
            warn_collinear(moments, deficiency, varying, remedy=remedy)
        basis = np.zeros((len(varying), white.shape[1]))
        basis[varying] = white
    frame = _frame(basis, mean, intercept)
    return Coordinates(frame, contrasts(classes) if classes else None, int(intercept), from_rows)


def _basis_from_rows(
    read: Pass, moments: ClassMoments, varying: npt.NDArray[np.bool_], intercept: bool
) -> tuple[Floats, RankDeficiency]:
    """Return the basis T of the white coordinates, and the rank deficiency.

    T is computed from the triangular factor of the rows. It has a row for each column that varies.
    Singular values that could be due to rounding errors in the columns count as zero.
    """
    empty = np.zeros((len(moments.labels), 0))
    factor: ScatterFactor = read(ScatterFactorReading(moments.features, moments.anchor, empty))
    root = (factor.centred if intercept else factor.uncentred)[:, varying] / np.sqrt(factor.weight)
    sd = np.linalg.norm(root, axis=0)
    size, axes = svd(root / sd, full_matrices=False, lapack_driver="gesvd")[1:]
    size, axes = np.pad(size, (0, len(sd) - len(size))), _complete_basis(axes)
    distance = np.abs(factor.anchor.values(factor.mean) / factor.anchor.unit)[varying] / sd
    noise = 4 * _EPS * np.sqrt(axes**2 @ (1.0 + distance) ** 2)
    nonzero = size > np.maximum(_RANK * size[0], noise)
    rank = int(nonzero.sum())
    least = max(float(size[nonzero].min()) if nonzero.all() else 0.0, _EPS * float(size[0]))
    null = axes[~nonzero].T
    weakest = null if null.shape[1] else axes[-1:].T
    deficiency = RankDeficiency(rank, float(size[0]) / least, null, weakest, sd)
    return axes[nonzero].T / size[nonzero] / sd[:, None], deficiency


def _complete_basis(axes: Floats) -> Floats:
    """Complete the orthonormal rows `axes` to d orthonormal rows (d, d)."""
    if axes.shape[0] == axes.shape[1]:
        return axes
    return np.vstack([axes, qr(axes.T)[0].T[len(axes) :]])


def contrasts(classes: int) -> Floats:
    """Return a (K, K-1) matrix of orthonormal columns, each with sum zero.

    >>> contrasts(2).ravel().round(3).tolist()
    [0.707, -0.707]
    """
    return np.asarray(helmert(classes).T)


def _least_penalised(basis: Floats, sd: Floats, scale: Floats) -> Floats:
    """Return the (d, r) basis of least ridge penalty that gives rows the same scores as `basis`.

    The rows span the columns of V = sd^2 basis, since `basis` is orthogonal to the null directions
    of standardised columns. So each column c of the result minimises |scale c| subject to
    V'c = V'b, with b the column of `basis`.
    """
    span = sd[:, None] ** 2 * basis
    axes, upper = qr(span / scale[:, None], mode="economic")
    return np.asarray(axes @ solve_triangular(upper, span.T @ basis, trans="T") / scale[:, None])


def _frame(basis: Floats, mean: Floats, intercept: bool) -> Floats:
    d, r = basis.shape
    frame = np.zeros((d + 1, r + intercept))
    frame[:d, intercept:] = basis
    if intercept:
        frame[d, 0] = 1.0
        frame[d, 1:] = -(mean @ basis)
    return frame


_FLOOR = 1e-8  # smallest curvature relative to the largest; it limits steps in flat directions


@dataclass(frozen=True, slots=True, eq=False)
class ScaledCoordinates:
    """Map from theta (q, m), for columns of variance one, to coefficients for the original columns.

    Theta includes the intercepts, and so does the result.
    """

    scale: Floats  # (d,) 1 / sd; zero if a column does not vary
    mean: Floats  # (d,) means of the columns; zero without an intercept
    contrast: Floats | None  # (K, m)
    free: int  # 1, or 0 without an intercept

    @classmethod
    def from_spread(
        cls, spread: Floats, mean: Floats, *, intercept: bool, contrast: Floats | None = None
    ) -> ScaledCoordinates:
        """Create from the (d,) standard deviations and means of columns.

        Pass no means if there is no intercept.
        """
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        return cls(scale, mean if intercept else np.zeros_like(mean), contrast, int(intercept))

    @property
    def size(self) -> int:
        """Number q of coordinates."""
        return len(self.scale) + self.free

    def coefficients(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the (d, K) coefficients and (K,) intercepts."""
        coef = self.scale[:, None] * theta[self.free :]
        intercept = (theta[0] if self.free else 0.0) - self.mean @ coef
        if self.contrast is None:
            return coef, intercept
        return coef @ self.contrast.T, intercept @ self.contrast.T

    def gradient(self, gradient: Floats) -> Floats:
        """Convert the (d+1, K) gradient for the coefficients to the (q, m) gradient for theta."""
        if self.contrast is not None:
            gradient = gradient @ self.contrast
        slope = self.scale[:, None] * (gradient[:-1] - self.mean[:, None] * gradient[-1])
        return np.vstack([gradient[-1:], slope]) if self.free else slope

    def curvature(self, curvature: Floats) -> Floats:
        """Return the (m q, m q) curvature for theta. Use this function only for few features."""
        frame = np.zeros((len(self.scale) + 1, self.size))
        frame[:-1, self.free :] = np.diag(self.scale)
        frame[-1, self.free :] = -self.mean * self.scale
        frame[-1, : self.free] = 1.0
        return Coordinates(frame, self.contrast, self.free).curvature(curvature)

    def penalty(self, scale: Floats) -> Floats:
        """Return the (q,) vector Q with theta' diag(Q) theta = sum_j (scale_j coef_j)^2."""
        return np.concatenate([np.zeros(self.free), (scale * self.scale) ** 2])


@dataclass(frozen=True, slots=True, eq=False)
class ScaledCurvatureSample:
    """Sample of rows that estimates the curvature of the loss in scaled coordinates."""

    block: Block
    loss: Loss
    coordinates: ScaledCoordinates
    penalty: Floats  # (q,)

    def sketch(self, theta: Floats) -> ScaledCurvatureSketch:
        """Return the sketch at theta: the mean curvature of the scores over the sample."""
        coef, intercept = self.coordinates.coefficients(theta)
        rows: Features = self.block.features
        scores = np.ascontiguousarray((rows @ coef + intercept).T)
        derivatives = self.loss.at(scores, self.block, want="curvature")
        assert derivatives.curvature is not None
        mean = np.diag(derivatives.curvature.sum(axis=1))
        if derivatives.cross is not None:
            mean = mean - derivatives.cross @ derivatives.cross.T
        weight = self.block.weight
        mean /= len(self.block) if weight is None else weight.sum()
        contrast = self.coordinates.contrast
        values, rotation = eigh(mean if contrast is None else contrast.T @ mean @ contrast)
        values = np.maximum(values, _FLOOR * max(float(values[-1]), 1e-300))
        return ScaledCurvatureSketch(rotation, self.penalty[:, None] + values)


@dataclass(frozen=True, slots=True, eq=False)
class ScaledCurvatureSketch:
    """Curvature that is the same in all columns, apart from the penalty."""

    rotation: Floats  # (m, m) eigenvectors of the mean curvature
    values: Floats  # (q, m) its eigenvalues plus the penalty

    def solve(self, gradient: Floats) -> Floats:
        """Return the (q, m) product of the inverse of the sketch and a gradient."""
        return np.asarray((gradient @ self.rotation / self.values) @ self.rotation.T)


_COMPARISON_ROWS = 2048  # number of rows on which starting points are compared
_MAX_EXACT = 600  # largest number r m of coordinates in which the sketch is exact
_FRACTIONS = (0.5, 0.25, 0.1, 0.03, 0.01, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class WhiteSample:
    """Sample of rows in white coordinates."""

    rows: Floats  # (n, q) z; with an intercept the first column is 1
    codes: Codes  # (n,) classes
    weight: Floats  # (n,) sums to one
    total: float  # sum of the weights before they were normalised
    loss: Loss
    contrast: Floats | None  # (K, m)
    penalty: Floats | None  # (q, q)

    def sketch(self, theta: Floats) -> CurvatureSketch:
        """Return a sketch of the curvature near theta (q, m)."""
        diagonal, cross = self._curves(theta)
        contrast = np.eye(len(diagonal)) if self.contrast is None else self.contrast
        mean = _contract(diagonal.sum(axis=1), cross @ cross.T, contrast)
        directions = _score_directions(theta)
        exact = self._inner(self.rows @ directions, diagonal, cross, contrast)
        if self.penalty is not None:
            m = theta.shape[1]
            exact += np.kron(np.eye(m), directions.T @ self.penalty @ directions)
        return CurvatureSketch.factorise(directions, mean, exact, self.penalty)

    def best_between(self, low: Floats, high: Floats) -> Floats:
        """Try points between `low` and `high`; return the one with the least loss on the sample.

        If `high` is a linear discriminant estimated from few rows per feature, its coefficients are
        too large. The points are tried from `high` to `low`; since the loss is convex, the search
        stops as soon as the loss increases.
        """
        sample = self._thinned(_COMPARISON_ROWS)
        best, least = high, sample._value(high)
        for fraction in _FRACTIONS:
            point = low + fraction * (high - low)
            value = sample._value(point)
            if value > least:
                break
            if value < least:
                best, least = point, value
        return best

    def _thinned(self, rows: int) -> WhiteSample:
        """Return a systematic subsample of about `rows` rows."""
        if len(self.rows) < 2 * rows:
            return self
        subset = slice(None, None, len(self.rows) // rows)
        weight = self.weight[subset]
        return replace(
            self,
            rows=self.rows[subset],
            codes=self.codes[subset],
            weight=weight / weight.sum(),
            total=self.total * float(weight.sum()),
        )

    def _value(self, theta: Floats) -> float:
        value = self._local(theta, want="gradient").loss
        if self.penalty is not None:
            value += 0.5 * float((theta * (self.penalty @ theta)).sum())
        return value if np.isfinite(value) else np.inf

    def curvature_floor(self, theta: Floats) -> Floats:
        """Return a lower bound of the curvature at theta, as a (q, q) matrix for every score.

        With F this matrix, the bound is the Kronecker product of the identity and F. It refers to
        the loss summed over all rows; it is estimated from the sample.
        """
        least = self._local(theta, want="floor").curvature
        assert least is not None
        return np.asarray((self.rows * least.ravel()[:, None]).T @ self.rows * self.total)

    def curvature_bound(self) -> float:
        """Return an upper bound on the curvature of the penalised mean loss (Boehning 1992)."""
        steepest = 0.0 if self.penalty is None else float(eigh(self.penalty)[0][-1])
        return steepest + (0.25 if self.contrast is None else 0.5)

    def _curves(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return two (K, n) arrays, the terms of the curvature l'' = diag - r r' of each row.

        The first array holds the diagonals, the second the vectors r, both multiplied by the
        weights.
        """
        terms = self._local(theta, want="curvature")
        assert terms.curvature is not None
        cross = np.zeros_like(terms.curvature) if terms.cross is None else terms.cross
        return terms.curvature, cross

    def _local(self, theta: Floats, *, want: Want) -> ScoreDerivatives:
        scores = theta.T @ self.rows.T
        if self.contrast is not None:
            scores = self.contrast @ scores
        block = Block(self.rows, self.codes, self.weight)
        return self.loss.at(np.ascontiguousarray(scores), block, want=want)

    def _inner(self, rows: Floats, curve: Floats, cross: Floats, contrast: Floats) -> Floats:
        """Return the (m r, m r) curvature in the r directions on which scores depend.

        `rows` (n, r) are the coordinates of the rows in these directions.
        """
        m, r = contrast.shape[1], rows.shape[1]
        per_score = np.stack([(rows * weight[:, None]).T @ rows for weight in curve])
        blocks = np.empty((m, r, m, r))
        for i, j in np.ndindex(r, r):
            blocks[:, i, :, j] = (contrast.T * per_score[:, i, j]) @ contrast
        outer = ((contrast.T @ cross).T[:, :, None] * rows[:, None, :]).reshape(len(rows), m * r)
        return np.asarray(blocks.reshape(m * r, m * r) - outer.T @ outer)


@dataclass(frozen=True, slots=True, eq=False)
class CurvatureSketch:
    """Approximate curvature: exact along a few directions, constant along all others."""

    directions: Floats  # (q, r) orthonormal directions
    inverse: Floats  # (m r, m r) inverse of the curvature along the directions
    rotation: Floats  # (m, m) eigenvectors of the mean curvature
    frame: Floats | None  # (q, q) eigenvectors of the penalty
    values: Floats  # (q or 1, m) eigenvalues of the mean curvature plus those of the penalty

    @classmethod
    def factorise(
        cls, directions: Floats, mean: Floats, exact: Floats, penalty: Floats | None
    ) -> CurvatureSketch:
        """Create from the exact and the mean curvature. The curvature of nearly flat directions is
        raised to a minimum.
        """
        values, rotation = eigh(mean)
        values = np.maximum(values, _FLOOR * max(float(values[-1]), 1e-300))
        penalty_values, frame = (np.zeros(1), None) if penalty is None else eigh(penalty)
        inverse = _inverse_with_floor(exact)
        values = np.maximum(penalty_values, 0.0)[:, None] + values
        return cls(directions, inverse, rotation, frame, values)

    def solve(self, gradient: Floats) -> Floats:
        """Return the (q, m) product of the inverse of the sketch and a gradient."""
        m, r = gradient.shape[1], self.directions.shape[1]
        projected = self.directions.T @ gradient
        outside = self._outside(gradient - self.directions @ projected)
        if self.frame is not None:
            outside -= self.directions @ (self.directions.T @ outside)
        inside = (self.inverse @ projected.T.ravel()).reshape(m, r).T
        return np.asarray(outside + self.directions @ inside)

    def _outside(self, gradient: Floats) -> Floats:
        if self.frame is None:
            return np.asarray((gradient @ self.rotation / self.values) @ self.rotation.T)
        rotated = (self.frame.T @ gradient @ self.rotation) / self.values
        return np.asarray(self.frame @ rotated @ self.rotation.T)


def _inverse_with_floor(matrix: Floats) -> Floats:
    """Return the inverse of a symmetric matrix whose small eigenvalues are raised to a minimum.

    The minimum is a small share of the largest eigenvalue. If the condition number proves that no
    eigenvalue is below the minimum, the inverse is computed from a Cholesky factor, which is about
    ten times as fast.
    """
    factor, info = dpotrf(matrix, lower=1)
    if len(matrix) and not info:
        norm = float(np.abs(matrix).sum(axis=0).max())
        reciprocal, _ = dpocon(factor, norm, uplo="L")
        if reciprocal > 10.0 * _FLOOR:  # it is an estimate, at most slightly too large
            inverse, _ = dpotri(factor, lower=1)
            return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T)
    values, vectors = eigh(matrix)
    values = np.maximum(values, _FLOOR * max(float(values[-1]), 1e-300))
    return np.asarray((vectors / values) @ vectors.T)


def _contract(diagonal: Floats, outer: Floats, contrast: Floats) -> Floats:
    """Return the curvature in contrasts of the scores: C' (diag(diagonal) - outer) C."""
    return np.asarray((contrast.T * diagonal) @ contrast - contrast.T @ outer @ contrast)


def _score_directions(theta: Floats) -> Floats:
    """Return (q, r) orthonormal directions on which scores depend.

    The directions are the intercept, followed by the leading left singular vectors of theta.
    """
    intercept = np.zeros((len(theta), 1))
    intercept[0] = 1.0
    axes, size, _ = svd(theta, full_matrices=False)
    limit = max(_MAX_EXACT // theta.shape[1] - 1, 0)
    columns = axes[:, size > 1e-12 * max(size.max(initial=0.0), 1e-300)][:, :limit]
    return np.asarray(np.linalg.qr(np.hstack([intercept, columns]))[0])
