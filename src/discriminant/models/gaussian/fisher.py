"""Fisher's discriminant: directions with class means far apart and little variance within classes.

Let S_w be the scatter within classes and S_b the scatter of the class means: S_b is the sum of
n prior_k a_k a_k' with a_k = mean_k - centre and centre = sum prior_k mean_k. Unless a prior is
given, n prior_k is the weight of class k. The discriminant directions v solve

    S_b v = lambda S_w v,   at most K - 1 directions with lambda > 0
    canonical correlation = sqrt(lambda / (1 + lambda))

Neither S_w^-1 S_b nor S_b is formed. C = S_w / degrees is factorised (a `Metric`), and the vectors
sqrt(n prior_k) a_k are whitened by it; their right singular vectors give the directions. The
directions are scaled so that projected rows have the identity as covariance within classes, as in
R's MASS. The sign of a direction is chosen so that the projected mean of the last class is
positive; classes whose projected mean coincides with the centre are skipped. So with two classes
the direction is a positive multiple of C^-1 (m_2 - m_1). The sign does not depend on the units of
the columns.

The other criteria (trace ratio, mean difference) determine only the subspace spanned by r
directions W. Canonical directions within this subspace are then computed as above, so scale and
sign are the same for every criterion.

For classification, a threshold is added to the projection. With z the projection of a row, and z_k
the projected mean of class k:

    score_k = z . z_k - |z_k|^2 / 2 + log prior_k     'gaussian': LDA in the subspace (reduced rank)
    without log prior_k                               'midpoint': the nearest projected mean
    boundary at (z_1 s_2 + z_2 s_1) / (s_1 + s_2)     'equal_error': equal error rates for two
                                                      Gaussian classes, s_k their projected sd

The trace ratio tr(W' S_b W) / tr(W' S_w W) is maximised over matrices W (d, r) with orthonormal
columns. The trace ratio is often replaced by the ratio trace tr((W' S_w W)^-1 (W' S_b W)), whose
maximum has a closed form and does not depend on the units of the columns; the two agree only for r
= 1. The maximum of the trace ratio has no closed form, but

    f(t) = max over W of tr(W' (S_b - t S_w) W) = the sum of the r largest eigenvalues

is decreasing and convex in t, and its zero is the maximum of the trace ratio. A step of Newton's
method on f (Dinkelbach 1967) replaces t by the trace ratio of the W that attains f(t). Started at
0, t increases monotonically and converges quadratically (Wang et al. 2007, CVPR; Jia, Nie and Zhang
2009). At the optimum W spans the r leading eigenvectors of S_b - t S_w, and t is the trace ratio of
W. Directions along which the rows do not vary are removed first, since they would be arbitrary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.linalg import eigh

from discriminant.errors import NotConvergedWarning, OptionError, warn
from discriminant.models.gaussian.covariance import (
    Metric,
    class_covariances,
    pooled_covariance,
    pooled_degrees,
    shrink,
)
from discriminant.models.gaussian.family import (
    GaussianFamily,
    check_class_weights,
    check_classes,
    pooled_metric,
    shrinkage_amount,
)
from discriminant.models.rules import LinearRule
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Features, Floats, Labels

_EPS = float(np.finfo(np.float64).eps)
_TOLERANCE = 1e-13


def best_trace_ratio(means: Floats, *, within: Floats, components: int, steps: int = 100) -> Floats:
    """Return the (d, r) orthonormal directions W with the largest trace ratio.

    Parameters
    ----------
    means
        (K, d) weighted and centred class means, so that means' means = S_b.
    within
        (d, d) scatter S_w within classes.
    components
        Number r of directions. Fewer are returned if the rows vary along fewer directions.
    steps
        Maximum number of Newton steps.
    """
    basis = _varying_directions(means.T @ means + within)
    means, within = means @ basis, basis.T @ within @ basis
    between = means.T @ means
    r = min(components, len(between))
    ratio, change = 0.0, np.inf
    for _ in range(steps):
        directions = _leading_eigenvectors(between - ratio * within, r)
        attained = _trace_ratio(directions, between, within)
        change = abs(attained - ratio) / attained if attained > 0 else 0.0
        ratio = max(ratio, attained)
        if change <= _TOLERANCE:
            return np.asarray(basis @ directions)
    warn(NotConvergedWarning.of("The trace ratio", steps, change, _TOLERANCE))
    return np.asarray(basis @ directions)


def _varying_directions(total: Floats) -> Floats:
    """Return (d, m) orthonormal directions that span the range of the total scatter (d, d)."""
    values, vectors = eigh(total)
    return np.asarray(vectors[:, values > len(values) * _EPS * values[-1]])


def _leading_eigenvectors(matrix: Floats, r: int) -> Floats:
    """Return the (d, r) eigenvectors of the r largest eigenvalues, in descending order."""
    d = len(matrix)
    return np.asarray(eigh(matrix, subset_by_index=[d - r, d - 1])[1][:, ::-1])


def _trace_ratio(directions: Floats, between: Floats, within: Floats) -> float:
    numerator = np.einsum("ir,ij,jr->", directions, between, directions, optimize=True)
    denominator = np.einsum("ir,ij,jr->", directions, within, directions, optimize=True)
    return float(numerator / denominator)


Method = Literal["fisher", "mean_difference"]
Criterion = Literal["ratio_trace", "trace_ratio"]
Threshold = Literal["gaussian", "midpoint", "equal_error"]
METHODS = ("fisher", "mean_difference")
CRITERIA = ("ratio_trace", "trace_ratio")
THRESHOLDS = ("gaussian", "midpoint", "equal_error")
_NULL = 1e-11  # singular values below this, relative to the largest, are rounding
_DISTINCT = 1e-6  # projected means nearer (relatively) to the centre coincide with it


@dataclass(frozen=True, slots=True)
class ProjectionOptions:
    """Number of directions, how they are chosen, and the decision threshold."""

    components: int | None = None  # None: all
    method: Method = "fisher"
    criterion: Criterion = "ratio_trace"
    threshold: Threshold = "gaussian"

    @property
    def closed(self) -> bool:
        """Whether the directions have a closed form, given the class means and a metric."""
        return self.method == "fisher" and self.criterion == "ratio_trace"


@dataclass(frozen=True, slots=True, eq=False)
class FisherRule(LinearRule):
    """Linear rule on r discriminant directions. Rows are centred at `centre`, up to rounding."""

    scalings: Floats  # (d, r) discriminant directions, for offsets
    shift: Floats  # (r,) added to projected offsets, so that they refer to the exact centre
    projected: Floats  # (K, r) projected class means
    eigenvalues: Floats  # (r,) lambda, in decreasing order
    share: Floats  # (r,) each lambda divided by the sum of all

    def project(self, features: Features) -> Floats:
        """Return the (n, r) projections of rows on the directions, relative to the centre."""
        return LinearRule(self.labels, self.anchor, self.scalings.T, self.shift).values(features)

    @property
    def trace_ratio(self) -> float:
        """Trace ratio tr(W' S_b W) / tr(W' S_w W), where W spans the directions.

        The columns of W are orthonormal in the units of the data. With scalings = W R, W' S_w W is
        proportional to R^-T R^-1, and W' S_b W to R^-T diag(lambda) R^-1.
        """
        slopes = self.scalings / self.anchor.unit[:, None]
        size = np.abs(slopes).max(axis=0)
        size = np.where(size > 0, size, 1.0)  # divisor of slopes: squares do not overflow
        upper = np.linalg.qr(slopes / size, mode="r")
        inverse = (np.linalg.pinv(upper) * (size.min() / size)[:, None]) ** 2
        return float((self.eigenvalues @ inverse).sum() / max(inverse.sum(), 1e-300))


@dataclass(frozen=True, slots=True, eq=False)
class CanonicalVariates:
    """Discriminant directions of class moments; the fields are as in `FisherRule`."""

    scalings: Floats  # (d, r)
    projected: Floats  # (K, r)
    eigenvalues: Floats  # (r,)
    share: Floats  # (r,)


def fit_fisher(
    moments: ClassMoments,
    *,
    family: GaussianFamily,
    prior: Floats,
    projection: ProjectionOptions,
    metric: Metric | None = None,
) -> FisherRule:
    """Fit Fisher's discriminant: a linear rule on r discriminant directions.

    Parameters
    ----------
    moments
        Class moments.
    family
        Covariance structure. The family must be linear, with one covariance for all classes.
    prior
        (K,) class probabilities.
    projection
        Number of directions, criterion and threshold.
    metric
        The factorised covariance C; by default it is computed from the moments.

    Examples
    --------
    >>> from discriminant.engines.dispatch import moments
    >>> classes = moments([[0.0, 0.0], [2.0, 0.0], [4.0, 1.0], [6.0, 1.0]], ["a", "a", "b", "b"])
    >>> rule = fit_fisher(
    ...     classes.select([0]),
    ...     family=GaussianFamily(),
    ...     prior=np.array([0.5, 0.5]),
    ...     projection=ProjectionOptions(components=1),
    ... )
    >>> rule.project(np.array([[3.0], [5.0]])).round(4).tolist()  # 3 is the centre, the sd sqrt 2
    [[0.0], [1.4142]]
    """
    check_classes(moments)
    _check_components(moments, projection.components)
    centre = prior @ moments.mean
    centred = replace(moments, mean=moments.mean - centre)
    variates = _variates(centred, metric, family=family, prior=prior, projection=projection)
    intercept = _intercepts(
        centred, variates, family=family, prior=prior, threshold=projection.threshold
    )
    anchor, moved = moments.anchor.shift(centre)
    return _rule(moments.labels, anchor, variates, intercept=intercept, residue=centre - moved)


def canonical_variates(
    moments: ClassMoments, *, metric: Metric, degrees: float, prior: Floats, components: int | None
) -> CanonicalVariates:
    """Return the directions that maximise the ratio trace.

    The means of `moments` must be relative to the centre. `metric` is that of the covariance within
    classes, and `degrees` its denominator.
    """
    root = np.sqrt(moments.weight.sum() * prior)[:, None]
    means = metric.whiten(moments.mean)
    _, singular, right = np.linalg.svd(root * means, full_matrices=False)
    limit = min(len(prior) - 1, len(singular))
    rank = max(int((singular[:limit] > _NULL * singular[0]).sum()), 1)
    r = rank if components is None else min(components, limit)
    axes = right[:r].T * _signs(means @ right[:r].T)
    eigenvalues = singular[:limit] ** 2 / degrees
    total = float(eigenvalues.sum())
    share = eigenvalues[:r] / total if total > 0 else np.zeros(r)
    return CanonicalVariates(metric.directions(axes), means @ axes, eigenvalues[:r], share)


def _variates(
    moments: ClassMoments,
    metric: Metric | None,
    *,
    family: GaussianFamily,
    prior: Floats,
    projection: ProjectionOptions,
) -> CanonicalVariates:
    """Compute the directions from centred means, by the method and criterion of `projection`."""
    degrees = pooled_degrees(moments, family.denominator)
    if projection.method == "mean_difference":
        covariance = _plain_covariance(moments, family)
        directions = _mean_directions(moments, prior, projection.components)
        return _variates_within(moments, directions, covariance, family=family, prior=prior)
    metric = pooled_metric(moments, family) if metric is None else metric
    closed = canonical_variates(
        moments, metric=metric, degrees=degrees, prior=prior, components=projection.components
    )
    r = closed.scalings.shape[1]
    if projection.criterion == "ratio_trace" or r == 1:  # with one direction both are the same
        return closed
    covariance, relative = metric.covariance(), _relative_units(moments.anchor)
    root = np.sqrt(moments.weight.sum() * prior / degrees)[:, None] * moments.mean
    directions = best_trace_ratio(
        root * relative, within=covariance * relative[:, None] * relative, components=r
    )
    directions *= relative[:, None]
    return _variates_within(moments, directions, covariance, family=family, prior=prior)


def _variates_within(
    moments: ClassMoments,
    directions: Floats,
    covariance: Floats,
    *,
    family: GaussianFamily,
    prior: Floats,
) -> CanonicalVariates:
    """Return the canonical variates within the subspace that `directions` (d, r) span."""
    r, degrees = directions.shape[1], pooled_degrees(moments, family.denominator)
    projected = replace(
        moments,
        features=tuple(f"direction {j}" for j in range(r)),
        anchor=Anchor.zero(r),
        detail="pooled",
        mean=moments.mean @ directions,
        scatter=directions.T @ covariance @ directions * degrees,
        lost=np.zeros(r),
        third=None,
        fourth=None,
    )
    metric = pooled_metric(projected, GaussianFamily(denominator=family.denominator))
    inner = canonical_variates(projected, metric=metric, degrees=degrees, prior=prior, components=r)
    return replace(inner, scalings=directions @ inner.scalings)


def _mean_directions(moments: ClassMoments, prior: Floats, components: int | None) -> Floats:
    """Return the (d, r) directions in which the class means differ most.

    The directions are orthonormal in the units of the data.
    """
    relative = _relative_units(moments.anchor)
    weighted_means = np.sqrt(prior)[:, None] * moments.mean * relative
    _, singular, right = np.linalg.svd(weighted_means, full_matrices=False)
    limit = min(len(prior) - 1, len(singular))
    rank = max(int((singular[:limit] > _NULL * singular[0]).sum()), 1)
    r = rank if components is None else min(components, limit)
    return np.asarray(right[:r].T) * relative[:, None]


def _plain_covariance(moments: ClassMoments, family: GaussianFamily) -> Floats:
    """Return the (d, d) pooled covariance, shrunk as the family requires. It may be singular."""
    pooled = pooled_covariance(moments, family.denominator)
    full = np.diag(pooled) if pooled.ndim == 1 else pooled
    return shrink(full, shrinkage_amount(moments, family), family.target, moments.anchor.unit)


def _rule(
    labels: Labels,
    anchor: Anchor,
    variates: CanonicalVariates,
    *,
    intercept: Floats,
    residue: Floats,
) -> FisherRule:
    """Return the rule for offsets from `anchor`, `(x - origin) / unit`.

    `residue` (d,) is the centre minus the anchor.
    """
    projected = variates.projected
    shift = -residue @ variates.scalings
    half = 0.5 * np.einsum("kr,kr->k", projected, projected)
    return FisherRule(
        labels,
        anchor,
        projected @ variates.scalings.T,
        intercept - half + projected @ shift,
        variates.scalings,
        shift,
        projected,
        variates.eigenvalues,
        variates.share,
    )


def _intercepts(
    moments: ClassMoments,
    variates: CanonicalVariates,
    *,
    family: GaussianFamily,
    prior: Floats,
    threshold: Threshold,
) -> Floats:
    """Return the (K,) terms that, added to the nearest-mean scores, give the chosen threshold."""
    if threshold == "gaussian":
        return np.asarray(np.log(prior))
    if threshold == "midpoint":
        return np.zeros(len(prior))
    return _equal_error_intercepts(moments, variates, family)


def _equal_error_intercepts(
    moments: ClassMoments, variates: CanonicalVariates, family: GaussianFamily
) -> Floats:
    """Return the (2,) terms that move the boundary to the point of equal error rates."""
    if len(moments.labels) != 2:
        allowed = f"'gaussian' or 'midpoint' with {len(moments.labels)} classes: it takes two"
        raise OptionError.of("threshold", "equal_error", allowed)
    check_class_weights(moments, family.denominator)
    covariances = class_covariances(moments, family.denominator)
    direction = variates.scalings[:, 0]
    sd = np.sqrt(np.maximum(np.einsum("i,kij,j->k", direction, covariances, direction), 0.0))
    first, second = variates.projected[:, 0]
    half = 0.5 * (first + second)
    boundary = (first * sd[1] + second * sd[0]) / sd.sum() if sd.any() else half
    return np.asarray(np.array([-0.5, 0.5]) * (second - first) * (half - boundary))


def _check_components(moments: ClassMoments, components: int | None) -> None:
    if components is None:
        return
    K, d = moments.mean.shape
    limit = min(K - 1, d)
    is_integer = isinstance(components, int | np.integer) and not isinstance(components, bool)
    if not is_integer or not 1 <= components <= limit:
        allowed = f"None or a whole number from 1 to {limit} ({K} classes, {d} features)"
        raise OptionError.of("n_components", components, allowed)


def _signs(projected: Floats) -> Floats:
    """Return the (r,) signs of the directions, given the projected class means (K, r).

    With these signs, the projection is positive for the last class whose mean differs from the
    centre.
    """
    distance = np.abs(projected)
    distinct = distance > _DISTINCT * distance.max(axis=0)
    last = len(projected) - 1 - np.argmax(distinct[::-1], axis=0)
    return np.where(projected[last, np.arange(projected.shape[1])] < 0, -1.0, 1.0)


def _relative_units(anchor: Anchor) -> Floats:
    """Return the (d,) units of the columns, divided by the largest unit."""
    return np.asarray(anchor.unit / anchor.unit.max())
