"""Sparse discriminant directions: Fisher's criterion with an L1 penalty (Witten and Tibshirani).

The features are treated as uncorrelated within classes, with pooled standard deviations s_j. With

    M_kj = sqrt(n_k / n) (mean_kj - x_j) / s_j            x_j the overall mean, M (K, d)

the first direction maximises, for standardised features,

    f(v) = |M v|^2 - lambda |v|_1      over  |v|_2 <= 1,      lambda = penalty |M|^2

where |M|^2 is the largest eigenvalue of M'M, the ratio of between-class to within-class variance.
For each later direction, M is first projected on the complement of the vectors M v of the earlier
directions, so that the projections are uncorrelated between classes. A step of the algorithm
replaces the convex term |M v|^2 by its tangent at the current v, which never decreases f:

    v  <-  S(M'M v, lambda / 2) / |S(M'M v, lambda / 2)|      S soft thresholding

At a solution of length 1, 2 (M'M v)_j = lambda sign(v_j) + c v_j for some c >= 0 where v_j is not
zero, and |2 (M'M v)_j| <= lambda where v_j is zero. f is not concave, so several maxima may exist.
The iteration starts from the leading eigenvector and from the best single feature, and the better
result is used. v = 0 is a further local maximum, with f = 0. As in the published algorithm, v = 0
is used only if the iteration reaches it from both starts. In that case this direction and all later
ones are dropped. With penalty 2 this always happens, since no entry of M'M v exceeds |M|^2.

Rows are classified by their projections on the directions. The classes are Gaussian, with the
covariance that the projections would have if the features were uncorrelated. Let V (d, r) hold the
directions v_jl / s_j, and G (r, r) the products v_l'v_m. Then

    score_k(x) = (x - (mean_k + x_mean)/2)' V G^-1 V' (mean_k - x_mean) + log prior_k

With penalty 0 and all directions this is diagonal LDA.

References: Witten and Tibshirani (2011), Penalized classification using Fisher's linear
discriminant, J. R. Statist. Soc. B 73.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discriminant.errors import NoFeatureSelectedWarning, NotConvergedWarning, warn
from discriminant.models.gaussian.covariance import floor_variances
from discriminant.models.gaussian.family import check_classes
from discriminant.models.gaussian.fisher import FisherRule
from discriminant.models.gaussian.shrunken_centroids import pooled_variances
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Floats

_NEGLIGIBLE = 1e-11  # singular values below this, relative to the largest, are rounding
_ROUGH = 1e-4  # tolerance of the comparison of two starts


@dataclass(frozen=True, slots=True, eq=False)
class StandardisedMeans:
    """Class means in units of the standard deviations within classes."""

    moments: ClassMoments
    weighted: Floats  # (K, d) M; zero for a constant column
    sd: Floats  # (d,) s_j of the offsets (x - origin) / unit; 1 for a constant column

    @classmethod
    def of(cls, moments: ClassMoments) -> StandardisedMeans:
        """Standardise the class means; warn about constant columns."""
        check_classes(moments, "a pooled variance")
        variance = floor_variances(moments, pooled_variances(moments))
        sd = np.where(variance > 0.0, np.sqrt(variance), 1.0)
        share = moments.weight / moments.weight.sum()
        weighted = np.sqrt(share)[:, None] * (moments.mean - moments.centre) / sd
        weighted[:, variance == 0.0] = 0.0
        return cls(moments, weighted, sd)

    def directions(
        self, penalty: float, *, components: int, tolerance: float, max_steps: int
    ) -> Floats:
        """Return the (d, r) sparse directions v of unit length, with r at most `components`."""
        means = self.weighted
        vectors: Floats = np.zeros((means.shape[1], 0))
        scale = float(np.linalg.norm(means, ord=2)) if means.any() else 0.0
        for _ in range(components):
            size = float(np.linalg.norm(means, ord=2)) if means.any() else 0.0
            if size <= _NEGLIGIBLE * scale:
                break
            vector = sparse_direction(
                means, penalty * size**2, tolerance=tolerance, max_steps=max_steps
            )
            if not vector.any():
                break
            vectors = np.column_stack([vectors, vector])
            basis, _ = np.linalg.qr(self.weighted @ vectors)
            means = self.weighted - basis @ (basis.T @ self.weighted)
        return vectors

    def largest_penalty(self) -> float:
        """Return the smallest penalty that removes every feature, computed to 0.1% by bisection.

        For v of length 1, |(M'M v)_j| is at most |M_j| |M|, which gives an upper bound.
        """
        means = self.weighted
        if not means.any():
            return 0.0
        size = float(np.linalg.norm(means, ord=2))
        low, high = 0.0, 2.0 * float(np.sqrt(np.einsum("kj,kj->j", means, means).max())) / size
        while high - low > 1e-3 * high:
            middle = 0.5 * (low + high)
            vector, _ = _best_ascent(means, middle * size**2, tolerance=1e-6, max_steps=1000)
            low, high = (middle, high) if vector.any() else (low, middle)
        return high

    def rule(self, vectors: Floats, *, prior: Floats) -> FisherRule:
        """Return the rule that classifies along the directions."""
        moments, centre = self.moments, self.moments.centre
        anchor, moved = moments.anchor.shift(centre)
        projected = (moments.mean - centre) / self.sd @ vectors
        gram = vectors.T @ vectors
        solved = np.linalg.solve(gram, projected.T).T if vectors.shape[1] else projected
        scalings = vectors / self.sd[:, None]
        sign = _signs(projected)
        scalings, projected, solved = scalings * sign, projected * sign, solved * sign
        shift = (moved - centre) @ scalings
        intercept = np.log(prior) - 0.5 * np.einsum("kr,kr->k", projected, solved)
        eigenvalues = np.einsum("kr,kr->r", self.weighted @ vectors, self.weighted @ vectors)
        total = float(eigenvalues.sum())
        return FisherRule(
            moments.labels,
            anchor,
            solved @ scalings.T,
            intercept + solved @ shift,
            scalings,
            shift,
            projected,
            eigenvalues,
            eigenvalues / total if total > 0.0 else eigenvalues,
        )


def sparse_direction(means: Floats, strength: float, *, tolerance: float, max_steps: int) -> Floats:
    """Return the (d,) direction v that maximises |means v|^2 - strength |v|_1, of length 1 or 0.

    Examples
    --------
    >>> means = np.array([[2.0, 1.0, 0.1], [-2.0, -1.0, -0.1]])
    >>> direction = sparse_direction(means, 1.0, tolerance=1e-12, max_steps=100)
    >>> np.abs(direction).round(3).tolist()  # the sign is arbitrary
    [0.905, 0.426, 0.0]
    """
    best, change = _best_ascent(means, strength, tolerance=tolerance, max_steps=max_steps)
    if change > tolerance:
        warn(NotConvergedWarning.of("A sparse direction", max_steps, change, tolerance))
    return best


def _best_ascent(
    means: Floats, strength: float, *, tolerance: float, max_steps: int
) -> tuple[Floats, float]:
    """Return the better result of two starts, and the change in its last step.

    The iteration from each start first uses a coarse tolerance; only the better result is iterated
    to the final tolerance.
    """
    leading = np.linalg.svd(means, full_matrices=False)[2][0]
    single = np.zeros(len(leading))
    single[int(np.einsum("kj,kj->j", means, means).argmax())] = 1.0
    rough = max(tolerance, _ROUGH)
    vectors = [
        _ascend(means, strength, start, tolerance=rough, max_steps=max_steps)[0]
        for start in (leading, single)
    ]
    vectors.sort(key=lambda v: _objective(means, strength, v), reverse=True)
    for vector in filter(np.any, vectors):
        best, change = _ascend(means, strength, vector, tolerance=tolerance, max_steps=max_steps)
        if best.any():
            return best, change
    return np.zeros(len(leading)), 0.0


def _ascend(
    means: Floats, strength: float, vector: Floats, *, tolerance: float, max_steps: int
) -> tuple[Floats, float]:
    """Iterate until entries change by at most `tolerance`; return vector and last change."""
    change = np.inf
    for _ in range(max_steps):
        slope = (means @ vector) @ means
        shrunken = np.sign(slope) * np.maximum(np.abs(slope) - 0.5 * strength, 0.0)
        length = float(np.linalg.norm(shrunken))
        if length == 0.0:
            return shrunken, 0.0
        shrunken /= length
        change = float(np.abs(shrunken - vector).max())
        vector = shrunken
        if change <= tolerance:
            break
    return vector, change


def _objective(means: Floats, strength: float, vector: Floats) -> float:
    projected = means @ vector
    return float(projected @ projected - strength * np.abs(vector).sum())


def _signs(projected: Floats) -> Floats:
    """Return the (r,) signs of the directions, from the projected class means (K, r).

    The signs are chosen so that, in each direction, the last class with a non-zero projected mean
    has a positive one.
    """
    distance = np.abs(projected)
    distinct = distance > 1e-6 * distance.max(axis=0, initial=0.0)
    last = len(projected) - 1 - np.argmax(distinct[::-1], axis=0)
    return np.where(projected[last, np.arange(projected.shape[1])] < 0.0, -1.0, 1.0)


def fit_sparse_directions(
    means: StandardisedMeans,
    *,
    penalty: float,
    prior: Floats,
    components: int,
    tolerance: float,
    max_steps: int,
) -> FisherRule:
    """Fit the rule along sparse directions; warn if the penalty removes every feature."""
    vectors = means.directions(
        penalty, components=components, tolerance=tolerance, max_steps=max_steps
    )
    if not vectors.shape[1]:
        if means.weighted.any():
            warn(NoFeatureSelectedWarning.of_penalty(penalty))
        else:
            warn(NoFeatureSelectedWarning.of_constant())
    return means.rule(vectors, prior=prior)
