"""Fisher's discriminant: directions with class means far apart and little variance within classes.

With S_w the scatter within classes and S_b that of their means, S_b = sum n prior_k a_k a_k' and
a_k = mean_k - centre, centre = sum prior_k mean_k (n prior_k = weight_k unless a prior is given):

    S_b v = lambda S_w v,   at most K - 1 directions of lambda > 0
    canonical correlation = sqrt(lambda / (1 + lambda))

Neither S_w^-1 S_b nor S_b is formed: C = S_w / degrees is factorised (a `Metric`), the rows
sqrt(n prior_k) a_k are whitened by it, and their right singular vectors are the directions. Each is
scaled so that the within-class covariance of projected rows is the identity, as in R's MASS, with
the sign that puts the last class that differs from the centre on the positive side: with two
classes w is C^-1 (m_2 - m_1), scaled. That sign does not depend on the units of the columns.

Other criteria for r directions W (trace ratio, mean difference) give a subspace; canonical
directions within it are then computed in the same way, so the above holds for every criterion.

To classify, a threshold is added. Along z, with projected means z_k:

    score_k = z . z_k - |z_k|^2 / 2 + log prior_k     'gaussian': LDA in the space (reduced rank)
    without log prior_k                               'midpoint': the nearest projected mean
    boundary at (z_1 s_2 + z_2 s_1) / (s_1 + s_2)     'equal_error': equal error rates of two
                                                      Gaussian classes of projected sd s_k

The trace ratio is maximised over orthonormal W (d, r): tr(W' S_b W) / tr(W' S_w W). It is often
replaced by the ratio trace tr((W' S_w W)^-1 (W' S_b W)), which has a closed form and does not
depend on the units of the columns; the two agree for r = 1 only. The trace ratio has no closed
form, but

    f(t) = max over W of tr(W' (S_b - t S_w) W) = the sum of the r largest eigenvalues

is decreasing and convex, and its zero is the largest ratio. Newton's method on f (Dinkelbach 1967)
sets t to the ratio of the W that attains f(t): from t = 0 it increases monotonically and converges
quadratically (Wang et al. 2007, CVPR; Jia, Nie and Zhang 2009). At the optimum W spans the r
leading eigenvectors of S_b - t S_w, and t is its ratio. Directions without any variance are removed
first, since they would be arbitrary.
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
    check_classes,
    check_rows_per_class,
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
    """(d, r) orthonormal directions of the largest trace ratio.

    Parameters
    ----------
    means
        (K, d) with means' means = S_b.
    within
        (d, d) S_w.
    components
        r; fewer come back if fewer directions vary.
    """
    basis = _varying(means.T @ means + within)
    means, within = means @ basis, basis.T @ within @ basis
    between = means.T @ means
    r = min(components, len(between))
    ratio, change = 0.0, np.inf
    for _ in range(steps):
        directions = _largest(between - ratio * within, r)
        better = _ratio(directions, between, within)
        change = abs(better - ratio) / better if better > 0 else 0.0
        ratio = max(ratio, better)
        if change <= _TOLERANCE:
            return np.asarray(basis @ directions)
    warn(NotConvergedWarning.of("The trace ratio", steps, change, _TOLERANCE))
    return np.asarray(basis @ directions)


def _varying(total: Floats) -> Floats:
    """(d, m) orthonormal directions along which rows vary."""
    values, vectors = eigh(total)
    return np.asarray(vectors[:, values > len(values) * _EPS * values[-1]])


def _largest(matrix: Floats, r: int) -> Floats:
    """(d, r) eigenvectors of the r largest eigenvalues."""
    d = len(matrix)
    return np.asarray(eigh(matrix, subset_by_index=[d - r, d - 1])[1][:, ::-1])


def _ratio(directions: Floats, between: Floats, within: Floats) -> float:
    above = np.einsum("ir,ij,jr->", directions, between, directions, optimize=True)
    below = np.einsum("ir,ij,jr->", directions, within, directions, optimize=True)
    return float(above / below)


Method = Literal["fisher", "mean_difference"]
Criterion = Literal["ratio_trace", "trace_ratio"]
Threshold = Literal["gaussian", "midpoint", "equal_error"]
METHODS = ("fisher", "mean_difference")
CRITERIA = ("ratio_trace", "trace_ratio")
THRESHOLDS = ("gaussian", "midpoint", "equal_error")
_NULL = 1e-11  # singular values below this, relative to the largest, are rounding
_TOLD = 1e-6  # a class nearer to the centre than this, relative to the farthest, is not told apart


@dataclass(frozen=True, slots=True)
class ProjectionOptions:
    """How many directions, how they are chosen, and where the border of two classes lies."""

    components: int | None = None
    method: Method = "fisher"
    criterion: Criterion = "ratio_trace"
    threshold: Threshold = "gaussian"

    @property
    def closed(self) -> bool:
        """Whether the directions follow from means and a metric alone."""
        return self.method == "fisher" and self.criterion == "ratio_trace"


@dataclass(frozen=True, slots=True, eq=False)
class FisherRule(LinearRule):
    """A linear rule that lives in r directions; its anchor lies at the centre of the means."""

    scalings: Floats  # (d, r) for offsets
    shift: Floats  # (r,) from the anchor, which is a rounded number, to the centre
    projected: Floats  # (K, r) class means along the directions
    eigenvalues: Floats  # (r,) lambda, falling
    share: Floats  # (r,) of the sum of all lambda

    def project(self, features: Features) -> Floats:
        """(n, r) rows along the directions, counted from the centre."""
        return LinearRule(self.labels, self.anchor, self.scalings.T, self.shift).values(features)

    @property
    def trace_ratio(self) -> float:
        """tr(W' S_b W) / tr(W' S_w W) of orthonormal W (in the user's units) of the same span.

        With scalings = W R: W' S_w W ~ R^-T R^-1 and W' S_b W ~ R^-T diag(lambda) R^-1.
        """
        slopes = self.scalings / self.anchor.unit[:, None]
        size = np.abs(slopes).max(axis=0)
        size = np.where(size > 0, size, 1.0)  # taken out, so that no square overflows
        corner = np.linalg.qr(slopes / size, mode="r")
        inverse = (np.linalg.pinv(corner) * (size.min() / size)[:, None]) ** 2
        return float((self.eigenvalues @ inverse).sum() / max(inverse.sum(), 1e-300))


@dataclass(frozen=True, slots=True, eq=False)
class CanonicalVariates:
    """Canonical directions of some moments."""

    scalings: Floats  # (d, r) for offsets
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
    """Rule in the discriminant space; `metric` where C has been factorised already.

    Examples
    --------
    >>> from discriminant.engines.dispatch import moments
    >>> found = moments([[0.0, 0.0], [2.0, 0.0], [4.0, 1.0], [6.0, 1.0]], ["a", "a", "b", "b"])
    >>> found = found.select([0])
    >>> half = np.array([0.5, 0.5])
    >>> one = ProjectionOptions(components=1)
    >>> rule = fit_fisher(found, family=GaussianFamily(), prior=half, projection=one)
    >>> rule.project(np.array([[3.0], [5.0]])).round(4).tolist()  # 3 is the centre, the sd sqrt 2
    [[0.0], [1.4142]]
    """
    check_classes(moments)
    _check_components(moments, projection.components)
    centre = prior @ moments.mean
    centred = replace(moments, mean=moments.mean - centre)
    variates = _variates(centred, metric, family=family, prior=prior, projection=projection)
    lift = _lift(centred, variates, family=family, prior=prior, threshold=projection.threshold)
    anchor, moved = moments.anchor.shift(centre)
    return _rule(moments.labels, anchor, variates, lift=lift, residue=centre - moved)


def canonical_variates(
    moments: ClassMoments, *, metric: Metric, degrees: float, prior: Floats, components: int | None
) -> CanonicalVariates:
    """Directions of the ratio trace, from means about their centre and the metric of C."""
    root = np.sqrt(moments.weight.sum() * prior)[:, None]
    means = metric.whiten(moments.mean)
    _, singular, right = np.linalg.svd(root * means, full_matrices=False)
    most = min(len(prior) - 1, len(singular))
    rank = max(int((singular[:most] > _NULL * singular[0]).sum()), 1)
    r = rank if components is None else min(components, most)
    along = right[:r].T * _signs(means @ right[:r].T)
    eigenvalues = singular[:most] ** 2 / degrees
    total = float(eigenvalues.sum())
    share = eigenvalues[:r] / total if total > 0 else np.zeros(r)
    return CanonicalVariates(metric.directions(along), means @ along, eigenvalues[:r], share)


def _variates(
    moments: ClassMoments,
    metric: Metric | None,
    *,
    family: GaussianFamily,
    prior: Floats,
    projection: ProjectionOptions,
) -> CanonicalVariates:
    """The directions that the projection asks for."""
    degrees = pooled_degrees(moments, family.denominator)
    if projection.method == "mean_difference":
        covariance = _plain_covariance(moments, family)
        directions = _mean_directions(moments, prior, projection.components)
        return _within(moments, directions, covariance, family=family, prior=prior)
    metric = pooled_metric(moments, family) if metric is None else metric
    closed = canonical_variates(
        moments, metric=metric, degrees=degrees, prior=prior, components=projection.components
    )
    r = closed.scalings.shape[1]
    if projection.criterion == "ratio_trace" or r == 1:  # with one direction both are the same
        return closed
    covariance, relative = metric.covariance(), _relative(moments.anchor)
    root = np.sqrt(moments.weight.sum() * prior / degrees)[:, None] * moments.mean
    directions = best_trace_ratio(
        root * relative, within=covariance * relative[:, None] * relative, components=r
    )
    directions *= relative[:, None]
    return _within(moments, directions, covariance, family=family, prior=prior)


def _within(
    moments: ClassMoments,
    directions: Floats,
    covariance: Floats,
    *,
    family: GaussianFamily,
    prior: Floats,
) -> CanonicalVariates:
    """Canonical variates of the rows projected on given directions (d, r)."""
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
    """(d, r) directions, orthonormal in the user's units, along which means are farthest apart."""
    relative = _relative(moments.anchor)
    spread = np.sqrt(prior)[:, None] * moments.mean * relative
    _, singular, right = np.linalg.svd(spread, full_matrices=False)
    most = min(len(prior) - 1, len(singular))
    rank = max(int((singular[:most] > _NULL * singular[0]).sum()), 1)
    return (
        np.asarray(right[: rank if components is None else min(components, most)].T)
        * relative[:, None]
    )


def _plain_covariance(moments: ClassMoments, family: GaussianFamily) -> Floats:
    """(d, d) pooled covariance, shrunk as asked; it need not have an inverse."""
    pooled = pooled_covariance(moments, family.denominator)
    full = np.diag(pooled) if pooled.ndim == 1 else pooled
    return shrink(full, shrinkage_amount(moments, family), family.target, moments.anchor.unit)


def _rule(
    labels: Labels, anchor: Anchor, variates: CanonicalVariates, *, lift: Floats, residue: Floats
) -> FisherRule:
    """The rule about an anchor that misses the centre by `residue` (d,)."""
    projected = variates.projected
    shift = -residue @ variates.scalings
    half = 0.5 * np.einsum("kr,kr->k", projected, projected)
    return FisherRule(
        labels,
        anchor,
        projected @ variates.scalings.T,
        lift - half + projected @ shift,
        variates.scalings,
        shift,
        projected,
        variates.eigenvalues,
        variates.share,
    )


def _lift(
    moments: ClassMoments,
    variates: CanonicalVariates,
    *,
    family: GaussianFamily,
    prior: Floats,
    threshold: Threshold,
) -> Floats:
    """(K,) what the threshold adds to the scores of nearest means."""
    if threshold == "gaussian":
        return np.asarray(np.log(prior))
    if threshold == "midpoint":
        return np.zeros(len(prior))
    return _equal_error_lift(moments, variates, family)


def _equal_error_lift(
    moments: ClassMoments, variates: CanonicalVariates, family: GaussianFamily
) -> Floats:
    """(2,) what moves the border from half way to where both Gaussian tails are equal."""
    if len(moments.labels) != 2:
        allowed = f"'gaussian' or 'midpoint' with {len(moments.labels)} classes: it takes two"
        raise OptionError.of("threshold", "equal_error", allowed)
    check_rows_per_class(moments, family.denominator)
    each = class_covariances(moments, family.denominator)
    axis = variates.scalings[:, 0]
    sd = np.sqrt(np.maximum(np.einsum("i,kij,j->k", axis, each, axis), 0.0))
    first, second = variates.projected[:, 0]
    half = 0.5 * (first + second)
    border = (first * sd[1] + second * sd[0]) / sd.sum() if sd.any() else half
    return np.asarray(np.array([-0.5, 0.5]) * (second - first) * (half - border))


def _check_components(moments: ClassMoments, components: int | None) -> None:
    if components is None:
        return
    K, d = moments.mean.shape
    most = min(K - 1, d)
    whole = isinstance(components, int | np.integer) and not isinstance(components, bool)
    if not whole or not 1 <= components <= most:
        allowed = f"None or a whole number from 1 to {most} ({K} classes, {d} features)"
        raise OptionError.of("n_components", components, allowed)


def _signs(projected: Floats) -> Floats:
    """(r,) signs that put the last class that a direction tells from the centre on its + side."""
    far = np.abs(projected)
    told = far > _TOLD * far.max(axis=0)
    last = len(projected) - 1 - np.argmax(told[::-1], axis=0)
    return np.where(projected[last, np.arange(projected.shape[1])] < 0, -1.0, 1.0)


def _relative(anchor: Anchor) -> Floats:
    """(d,) units of the columns relative to the largest: all one but for extreme columns."""
    return np.asarray(anchor.unit / anchor.unit.max())
