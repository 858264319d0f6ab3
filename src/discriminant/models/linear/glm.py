"""Generalised linear models by Fisher scoring (iteratively reweighted least squares).

    mean loss = sum w d(y, mu) / 2 sum w  +  ridge/2 sum_j (sd_j coef_j)^2

with d the deviance of a row (`moments.glm_families`), in white coordinates. The first step is the
same as in R's `glm`: a least-squares fit of the link of means near the responses. Every later step
is a Newton step with the expected curvature, which is weighted least squares of the working
response. A step is shortened if the mean of some row would be outside the range of the family. With
many rows a sample is fitted first, so that few passes over all rows are needed. Theta and the loss
are scaled so that the curvature at the start is about one, so the convergence criteria do not
depend on the unit of the response.

After the criteria of `linear.optimise` are met, steps continue until the gradient is only rounding
error. With a canonical link, one Newton step from a gradient of 1e-9 is enough, and no further pass
is needed to confirm it. If the link is not canonical, each step gains only a few digits, and almost
none if responses are far from their means. In this case L-BFGS corrects the curvature. The gamma
family with log link has a convex loss, so Newton steps use its observed curvature. Standard errors
use the expected curvature, which for any coefficients is the sum of the products of the rows, known
from the moments.

Means may be bounded by a value that responses attain: a share of 1 with the log link, a count of 0
with the identity link. The minimum may then lie on the boundary, where the gradient does not
vanish. The condition for a minimum (Karush, Kuhn, Tucker) is

    gradient = sum of multipliers times the rows at their boundary,    multipliers >= 0

A barrier term keeps the means of all rows away from their bounds. The minimum with a barrier
satisfies the condition with the multipliers barrier / distance, up to a gap of `barrier` for every
row. As the barrier decreases, these minima form a path that converges smoothly, so its limit is
extrapolated from the last three points.

`fit_glm_scaled` fits sparse rows with too many features for a d x d matrix. A ridge is required.
Columns are scaled to variance one, and L-BFGS is used, whose first approximation of the curvature
is the mean curvature of the scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from discriminant.models.linear.logistic import reading_anchor, shift_progress
from discriminant.models.linear.optimise import (
    ExactCurvature,
    OptimisationResult,
    PenalisedLoss,
    Point,
    Progress,
    exact_curvature,
    lbfgs,
    newton_descent,
)
from discriminant.models.linear.preconditioning import (
    Coordinates,
    ScaledCoordinates,
    ScaledCurvatureSample,
    ScaledCurvatureSketch,
    white_coordinates,
)
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.glm_families import (
    BOUNDARIES,
    CANONICAL,
    FREE_DISPERSION,
    OBSERVABLE,
    SCORES,
    BarrierLoss,
    Deviance,
    ObservedDeviance,
    PearsonStatistic,
    StartingFit,
)
from discriminant.moments.loss_gradient_sums import Loss, LossReading, LossSums, Pass, Want
from discriminant.moments.qr_factor import ColumnSums
from discriminant.table.blocks import Block, Floats

_BARRIERS = tuple(0.1**k for k in range(7))  # smaller ones are dominated by rounding
_EXTRAPOLATION = np.array([1.0, -110.0, 1000.0]) / 891.0  # to 0 of a parabola at 1, 0.1 and 0.01
_AT_BOUNDARY = (
    1e-4  # distance of a score from its boundary, relative to the last barrier, that counts as zero
)
# If some row has no mean at the extrapolated limit, it is moved toward the last point by these
# shares of the distance, one after the other.
_RETREATS = (1e-6, 1e-4, 1e-2, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class BarrierResult:
    """Result of a minimisation with a decreasing barrier."""

    descent: OptimisationResult
    touched: bool  # whether a row is at its boundary
    passes: int


def minimise_on_boundary(
    objective: PenalisedLoss, start: Floats, *, max_passes: int, progress: Progress | None = None
) -> BarrierResult:
    """Minimise with a decreasing barrier. At `start`, every row must have a valid mean."""
    assert isinstance(objective.loss, Deviance)
    deviance, passes, points = objective.loss, 0, [start]

    def minimise(barrier: float) -> OptimisationResult:
        return newton_descent(
            replace(objective, loss=BarrierLoss(deviance, barrier)),
            points[-1],
            max_passes=max(max_passes - passes, 1),
            progress=shift_progress(progress, passes),
        )

    for barrier in _BARRIERS:
        last = minimise(barrier)
        points.append(last.theta)
        passes += last.passes
        if not last.converged:
            return BarrierResult(last, touched=False, passes=passes)
    if last.point.slope.least > _AT_BOUNDARY:
        inside = minimise(0.0)
        passes += inside.passes
        if inside.converged:
            return BarrierResult(inside, touched=False, passes=passes)
    return _extrapolate(objective, points[-3:], last, passes)


def _extrapolate(
    objective: PenalisedLoss, points: list[Floats], last: OptimisationResult, passes: int
) -> BarrierResult:
    """Return the limit of the path, extrapolated from its last three points by a parabola."""
    limit = np.einsum("k,kqm->qm", _EXTRAPOLATION, np.stack(points))
    for retreat in _RETREATS:
        theta = limit + retreat * (points[-1] - limit)
        point = objective.evaluate(theta, want="curvature")
        passes += 1
        if np.isfinite(point.value):
            break
    end = OptimisationResult(theta, point, True, last.decrement, (point.value,))
    return BarrierResult(end, touched=True, passes=passes)


_SETTLED = 1e-14  # a smaller gradient is nearly rounding error
_NEARLY_SETTLED = 1e-9  # from a smaller gradient, an exact Newton step leaves only rounding error
_REDUCTION = 0.9  # a useful step reduces the gradient at least by this factor
_MAX_REFINEMENTS = 40  # largest number of steps after the criteria are met
_MAX_SCORING = 40  # number of passes before L-BFGS corrects the expected curvature
_MAX_BOUNDED_SCORING = 20  # number of passes before the minimum is sought on a boundary


@dataclass(frozen=True, slots=True, eq=False)
class RescaledObjective:
    """Objective divided by the constant `unit`."""

    objective: PenalisedLoss
    unit: float

    def evaluate(self, theta: Floats, *, want: Want = "gradient") -> Point:
        """Return the value and the derivatives at theta, by one pass over the rows."""
        point = self.objective.evaluate(theta, want=want)
        curvature = None if point.curvature is None else point.curvature / self.unit
        return replace(
            point,
            value=point.value / self.unit,
            gradient=point.gradient / self.unit,
            curvature=curvature,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ScoringResult:
    """Result of Fisher scoring."""

    end: OptimisationResult  # its point is that of the last pass that decreased the loss
    path: tuple[float, ...]  # loss in each pass, except passes with a barrier
    passes: int  # number of all passes
    converged: bool
    at_edge: bool = False  # whether the minimum is on the boundary


def minimise_deviance(
    objective: RescaledObjective,
    starts: tuple[Floats, Floats],
    max_passes: int,
    progress: Progress | None,
    *,
    approximation: ExactCurvature | None = None,
    features: ClassMoments | None = None,
) -> ScoringResult:
    """Minimise until the gradient is only rounding error.

    If scoring does not converge and means are bounded, the search continues on the boundary. If the
    mean of some row is invalid at the first of the two `starts`, the second is used.
    `approximation` is the curvature of a sample near the first start. `features` holds the moments
    of the features for the offsets `(x - origin) / unit` with which the rows are read.
    """
    bounded = _has_boundary(objective.objective)
    limit = min(max_passes, _MAX_BOUNDED_SCORING if bounded else _MAX_SCORING)
    observed = _with_observed_curvature(objective)
    for start in starts:
        descent = newton_descent(
            observed,
            start,
            max_passes=limit,
            progress=progress,
            reuse_curvature=True,
            approximation=approximation if start is starts[0] else None,
        )
        if np.isfinite(descent.path[0]):
            break
    coordinates = objective.objective.coordinates
    in_columns = isinstance(coordinates, Coordinates) and not coordinates.turned
    if observed is not objective and descent.converged and in_columns and features is not None:
        end, more_values = refine(observed, descent, shift_progress(progress, descent.passes))
        path = descent.path + more_values
        point = _with_curvature(objective, end.point, _products_of_rows(features))
        return ScoringResult(replace(end, point=point), path, len(path), converged=True)
    if observed is not objective and descent.converged:
        last = newton_descent(
            objective,
            descent.theta,
            max_passes=1,
            progress=shift_progress(progress, descent.passes),
        )
        descent = replace(last, path=descent.path + last.path)
    unfinished = not descent.converged and descent.passes < max_passes
    if bounded and unfinished and np.isfinite(descent.path[0]):
        inside = starts[1] if objective.objective.coordinates.free else start
        return _continue_on_boundary(objective, inside, descent, max_passes, progress)
    path = descent.path
    if unfinished and np.isfinite(path[0]):
        descent = _correct_curvature(objective, descent, max_passes, progress)
        path += descent.path
    end, more_values = refine(objective, descent, shift_progress(progress, len(path)))
    path += more_values
    return ScoringResult(end, path, len(path), descent.converged)


def _with_observed_curvature(objective: RescaledObjective) -> RescaledObjective:
    """Return the objective with the observed curvature, if it is known to be positive."""
    loss = objective.objective.loss
    if isinstance(loss, Deviance) and (loss.family, loss.link) in OBSERVABLE:
        return replace(
            objective, objective=replace(objective.objective, loss=ObservedDeviance(loss))
        )
    return objective


def _products_of_rows(features: ClassMoments) -> Floats:
    """Return the sum of `weight [u, 1][u, 1]'` over the rows, (d+1, d+1)."""
    weight, mean = float(features.weight.sum()), features.centre
    offsets = features.mean - mean
    products = np.empty((len(mean) + 1, len(mean) + 1))
    between = (features.weight[:, None] * offsets).T @ offsets
    products[:-1, :-1] = features.pooled + between + weight * np.outer(mean, mean)
    products[-1, :-1] = products[:-1, -1] = weight * mean
    products[-1, -1] = weight
    return products


def _with_curvature(objective: RescaledObjective, point: Point, summed: Floats) -> Point:
    """Return the point with its curvature replaced by `curvature`, a sum over the rows."""
    penalised = objective.objective
    curvature = penalised.coordinates.curvature(summed) / point.slope.weight
    if penalised.penalty is not None:
        curvature = curvature + penalised.penalty
    slope = replace(point.slope, curvature=summed)
    return replace(point, curvature=curvature / objective.unit, slope=slope)


def _correct_curvature(
    objective: RescaledObjective,
    first: OptimisationResult,
    max_passes: int,
    progress: Progress | None,
) -> OptimisationResult:
    """Continue by L-BFGS after scoring that did not converge.

    Scoring may fail to converge if the expected curvature differs much from the observed curvature.
    """
    curvature, passes = exact_curvature(first.point), first.passes
    corrected = lbfgs(
        objective,
        first.point.theta,
        sketch=lambda point: curvature,
        max_passes=max_passes - passes,
        progress=shift_progress(progress, passes),
    )
    progress_after = shift_progress(progress, passes + corrected.passes)
    last = newton_descent(objective, corrected.theta, max_passes=1, progress=progress_after)
    return replace(last, path=corrected.path + last.path)


def _has_boundary(objective: PenalisedLoss) -> bool:
    loss = objective.loss
    return isinstance(loss, Deviance) and (loss.family, loss.link) in BOUNDARIES


def _continue_on_boundary(
    objective: RescaledObjective,
    start: Floats,
    first: OptimisationResult,
    max_passes: int,
    progress: Progress | None,
) -> ScoringResult:
    """Minimise with a barrier, since scoring did not converge and means are bounded."""
    passes = first.passes
    progress_after = shift_progress(progress, passes)
    boundary = minimise_on_boundary(
        objective.objective, start, max_passes=max(max_passes - passes, 1), progress=progress_after
    )
    passes, end = passes + boundary.passes, boundary.descent
    if boundary.touched:
        path = (*first.path, end.point.value)
        return ScoringResult(end, path, passes, end.converged, at_edge=True)
    if not end.converged:
        end = replace(first, theta=first.point.theta)
        return ScoringResult(end, first.path, passes, converged=False)
    newton = newton_descent(
        objective,
        end.theta,
        max_passes=max(max_passes - passes, 1),
        progress=shift_progress(progress, passes),
    )
    end, more_values = refine(objective, newton, shift_progress(progress, passes + newton.passes))
    path = first.path + newton.path + more_values
    return ScoringResult(end, path, passes + newton.passes + len(more_values), newton.converged)


def refine(
    objective: RescaledObjective | PenalisedLoss,
    descent: OptimisationResult,
    progress: Progress | None = None,
) -> tuple[OptimisationResult, tuple[float, ...]]:
    """Take further steps from a converged point, as long as the gradient decreases.

    Return the last result that decreased the gradient, and the losses of all passes. The curvature
    in the result is computed at the theta of the result.
    """
    best, path = descent, tuple[float, ...]()
    if not descent.converged:
        return replace(best, theta=best.point.theta), path
    settled = _NEARLY_SETTLED if _has_exact_curvature(objective) else _SETTLED
    while len(path) < _MAX_REFINEMENTS and best.point.max_gradient > settled:
        next_result = newton_descent(
            objective, best.theta, max_passes=1, progress=shift_progress(progress, len(path))
        )
        path += next_result.path
        if not (
            next_result.converged
            and next_result.point.max_gradient < _REDUCTION * best.point.max_gradient
        ):
            break
        best = next_result
    return best, path


def _has_exact_curvature(objective: RescaledObjective | PenalisedLoss) -> bool:
    """Return whether steps use the observed curvature, as they always do with a canonical link."""
    penalised = objective.objective if isinstance(objective, RescaledObjective) else objective
    loss = penalised.loss
    if isinstance(loss, ObservedDeviance):
        return True
    return isinstance(loss, Deviance) and (loss.family, loss.link) in CANONICAL


_NOT_WORSE = 1.0 + 1e-9  # largest ratio of the loss to that of the null model
_ROWS_PER_COEFFICIENT = 50  # number of sample rows per coefficient needed to fit a starting point
_SAMPLE_GRADIENT = 1e-3  # of a fit to the sample, whose sampling error is larger
_MAX_RELATIVE_STEP = 1e-6  # if the last step is longer, the estimate diverges


@dataclass(frozen=True, slots=True, eq=False)
class GLMFit:
    """Result of fitting a generalised linear model. It contains no rows."""

    nan_fields: ClassVar[tuple[str, ...]] = ("pearson",)  # NaN where the dispersion is fixed

    coordinates: Coordinates | ScaledCoordinates
    theta: Floats  # (q, 1)
    slope: LossSums  # sums of the loss without penalty; no curvature if coordinates are scaled
    null: float  # deviance of the model with only an intercept; without one, with only the offset
    pearson: float  # sum of w (y - mu)^2 / V, if the dispersion is estimated
    converged: bool
    diverging: bool  # the criteria are met, but the estimate tends to infinity
    at_edge: bool  # the minimum is on the boundary of the means, where the gradient is not zero
    unit: float  # unit of the loss for the convergence criteria
    stride: float  # length of the next step, in units of theta
    steepness: float  # largest entry of the last gradient
    path: tuple[float, ...]  # penalised mean loss of each pass
    passes: int  # number of passes over the rows in all

    @property
    def deviance(self) -> float:
        """Deviance: twice the loss without penalty, summed over the rows."""
        return 2.0 * self.slope.loss

    def objective(
        self, read: Pass, features: tuple[str, ...], anchor: Anchor, deviance: Deviance
    ) -> PenalisedLoss:
        """Return the mean loss of rows in the coordinates of this fit."""
        return PenalisedLoss(read, features, anchor, deviance, self.coordinates, None)


@dataclass(frozen=True, eq=False)
class GLMProblem:
    """Data and options of a generalised linear model."""

    read: Pass
    read_null: Pass  # reads the same rows with a column of zeros instead of the features
    moments: ClassMoments  # moments of d features, the response and, if there is one, the offset
    width: int  # d
    deviance: Deviance
    intercept: bool
    ridge: float
    standardize: bool = True  # penalise coefficients times standard deviations
    sample: Block | None = None  # sample of the rows, if there are many

    @cached_property
    def features(self) -> ClassMoments:
        """Moments of the features only, for the offsets with which the rows are read."""
        features = self.moments.select(range(self.width))
        return features.at(reading_anchor(features, intercept=self.intercept))

    @property
    def mean_response(self) -> float:
        """Mean of the response."""
        return float(self.moments.anchor.values(self.moments.centre)[self.width])

    @property
    def response_sd(self) -> float:
        """Standard deviation of the response."""
        return self._deviation(self.width)

    @property
    def offset_moments(self) -> tuple[float, float]:
        """Mean and standard deviation of the offset."""
        if len(self.moments.features) == self.width + 1:
            return 0.0, 0.0
        mean = self.moments.anchor.values(self.moments.centre)[self.width + 1]
        return float(mean), self._deviation(self.width + 1)

    @property
    def unit(self) -> float:
        """Unit of the loss: the variance of the response for the Gaussian family, else 1."""
        if self.deviance.family != "gaussian":
            return 1.0
        return self.response_sd**2 or self.mean_response**2 or 1.0

    def objective(
        self, coordinates: Coordinates, *, loss: Loss | None = None, penalty: Floats | None = None
    ) -> PenalisedLoss:
        """Return the mean loss as a function of theta."""
        features = self.features
        chosen = self.deviance if loss is None else loss
        return PenalisedLoss(
            self.read, features.features, features.anchor, chosen, coordinates, penalty
        )

    def scale(self) -> Floats:
        """Return the (d,) standard deviations of the features.

        Without an intercept, return root mean squares instead.
        """
        features = self.features
        sd = np.sqrt(np.diagonal(features.pooled) / features.weight.sum())
        return np.asarray(sd if self.intercept else np.hypot(sd, features.centre))

    def penalty_factors(self) -> Floats | None:
        """Return the (d,) factors of the coefficients in the ridge penalty, or None."""
        if not self.ridge:
            return None
        return self.scale() if self.standardize else np.asarray(1.0 / self.features.anchor.unit)

    def penalty(self, coordinates: Coordinates) -> Floats | None:
        """Return the (q, q) matrix of the ridge, or None without a ridge."""
        ridged = self.penalty_factors()
        return None if ridged is None else self.ridge * coordinates.penalty(ridged)

    def _deviation(self, column: int) -> float:
        variance = self.moments.pooled[column, column] / self.moments.weight.sum()
        return float(np.sqrt(variance) * self.moments.anchor.unit[column])


def fit_glm(
    problem: GLMProblem, *, max_passes: int = 200, progress: Progress | None = None
) -> GLMFit:
    """Fit a generalised linear model by maximum likelihood, penalised if there is a ridge."""
    white_frame = white_coordinates(
        problem.features,
        classes=0,
        intercept=problem.intercept,
        ridged=problem.penalty_factors(),
        read=problem.read,
    )
    sampled = _sample_problem(problem, white_frame.size)
    starting_loss = StartingFit(problem.deviance, _starting_mean(problem))
    first = newton_descent(
        sampled.objective(white_frame, loss=starting_loss),
        np.zeros((white_frame.size, 1)),
        max_passes=1,
    )
    unit, scale = _units(problem, first.point)
    coordinates = replace(white_frame, frame=white_frame.frame * scale)
    penalty = problem.penalty(coordinates)
    start, null = _quadratic_minimum(first.point) / scale, fit_null(problem)
    approximation = None
    if sampled is not problem:
        sample_objective = RescaledObjective(sampled.objective(coordinates, penalty=penalty), unit)
        sample_fit = newton_descent(
            _with_observed_curvature(sample_objective),
            start,
            max_passes=_MAX_BOUNDED_SCORING,
            tolerance=_SAMPLE_GRADIENT,
            reuse_curvature=True,
        )
        start = sample_fit.theta if np.isfinite(sample_fit.path[0]) else start
        if sample_fit.point.max_gradient <= _SAMPLE_GRADIENT:
            approximation = exact_curvature(sample_fit.point)
    objective = RescaledObjective(problem.objective(coordinates, penalty=penalty), unit)
    starts = start, _null_start(null, coordinates)
    scoring = minimise_deviance(
        objective,
        starts,
        max_passes,
        progress,
        approximation=approximation,
        features=problem.features,
    )
    passes = int(sampled is problem)
    if problem.intercept and scoring.end.point.slope.loss > _NOT_WORSE * null.point.slope.loss:
        # The loss may be not convex: this local minimum is worse than the null model.
        passes += scoring.passes
        scoring = minimise_deviance(objective, (starts[1], starts[1]), max_passes, progress)
    return make_fit(objective, scoring, null, passes=passes)


def _sample_problem(problem: GLMProblem, size: int) -> GLMProblem:
    """Return the problem restricted to the sample, or unchanged if the sample is too small."""
    sample = problem.sample
    if sample is None or len(sample) < _ROWS_PER_COEFFICIENT * size:
        return problem
    return replace(problem, read=lambda reading: reading.read(sample))


def make_fit(
    objective: RescaledObjective, scoring: ScoringResult, null: OptimisationResult, *, passes: int
) -> GLMFit:
    """Return the fit, given the result of scoring. `passes` counts the passes before scoring."""
    end, penalised, unit = scoring.end, objective.objective, objective.unit
    stride = float(np.abs(end.theta - end.point.theta).max(initial=0.0))
    diverging = scoring.converged and stride > _MAX_RELATIVE_STEP * (
        1.0 + float(np.abs(end.theta).max(initial=0.0))
    )
    is_inside = scoring.converged and not diverging and not scoring.at_edge
    theta = end.theta if is_inside else end.point.theta
    pearson, pearson_passes = _pearson(penalised, end.point, theta)
    return GLMFit(
        penalised.coordinates,
        theta,
        end.point.slope,
        2.0 * null.point.slope.loss,
        pearson,
        converged=scoring.converged and not diverging,
        diverging=diverging,
        at_edge=scoring.at_edge,
        unit=unit,
        stride=stride,
        steepness=end.point.max_gradient,
        path=tuple(value * unit for value in scoring.path),
        passes=passes + scoring.passes + pearson_passes,
    )


def _pearson(objective: PenalisedLoss, point: Point, theta: Floats) -> tuple[float, int]:
    """Return Pearson's chi-squared at theta and the number of passes it took.

    Chi-squared is NaN if the family has a fixed dispersion. For the Gaussian family chi-squared is
    the deviance, which is equal at the last point and at theta to first order.
    """
    deviance = objective.loss
    assert isinstance(deviance, Deviance)
    if deviance.family == "gaussian":
        return 2.0 * point.slope.loss, 0
    if deviance.family not in FREE_DISPERSION:
        return float("nan"), 0
    coef, intercept = objective.coordinates.coefficients(theta)
    loss = PearsonStatistic(deviance)
    reading = LossReading(objective.features, objective.anchor, coef, intercept, loss)
    return 2.0 * float(objective.read(reading).loss), 1


def fit_null(problem: GLMProblem) -> OptimisationResult:
    """Fit the null model, which has only an intercept (and the offset, if any).

    If the problem has no intercept, the null model has only the offset.
    """
    frame = Coordinates(np.array([[0.0], [1.0]]), None, 1)
    zero = Anchor.zero(1)
    objective = PenalisedLoss(problem.read_null, ("none",), zero, problem.deviance, frame, None)
    if not problem.intercept:
        return _single_point(objective, 0.0)
    mean, offset_sd = problem.offset_moments
    score = float(SCORES[problem.deviance.link](np.array(_starting_mean(problem)))) - mean
    if not offset_sd:  # the mean of the null model is that of the response
        return _single_point(objective, score)
    unit = problem.unit
    direction = -1.0 if problem.deviance.link == "log" else 1.0  # toward valid means of all rows
    for step in (0.0, 1.0, 2.0, 4.0, 8.0, 16.0):
        start = np.full((1, 1), score + direction * step * offset_sd)
        fit = newton_descent(RescaledObjective(objective, unit), start)
        if np.isfinite(fit.path[0]):
            break
    return refine(RescaledObjective(objective, unit), fit)[0]


def _single_point(objective: PenalisedLoss, score: float) -> OptimisationResult:
    """Return the result of a minimisation whose solution is known."""
    point = objective.evaluate(np.full((1, 1), score))
    return OptimisationResult(point.theta, point, True, 0.0, (point.value,))


def _null_start(null: OptimisationResult, coordinates: Coordinates) -> Floats:
    """Return theta (q, 1) with the intercept of the null model and zero slopes."""
    start = np.zeros((coordinates.size, 1))
    if coordinates.free:
        start[0, 0] = float(null.point.theta[0, 0]) / coordinates.frame[-1, 0]
    return start


def _quadratic_minimum(point: Point) -> Floats:
    """Return the minimum of a quadratic loss, given its derivatives at zero."""
    assert point.curvature is not None
    theta = np.linalg.lstsq(point.curvature, -point.gradient[:, 0], rcond=1e-14)[0]
    return np.asarray(theta)[:, None]


def _units(problem: GLMProblem, point: Point) -> tuple[float, float]:
    """Return the unit of the loss, and a unit of theta for which the curvature is about one."""
    assert point.curvature is not None
    unit = problem.unit
    mean = float(np.trace(point.curvature)) / max(len(point.curvature), 1)
    return unit, float(np.sqrt(unit / mean)) if mean > 0 else 1.0


def _starting_mean(problem: GLMProblem) -> float:
    """Return a mean at which the link is defined.

    The result is the mean of the response if the link is defined there, otherwise the standard
    deviation of the response.
    """
    mean, link = problem.mean_response, problem.deviance.link
    allows_negative = problem.deviance.family == "gaussian" and link in ("identity", "inverse")
    if mean > 0 or link == "identity" or (allows_negative and mean):
        return mean
    return problem.response_sd or 1.0


def fit_glm_scaled(
    problem: GLMProblem,
    sums: ColumnSums,
    sample: Block,
    *,
    features: tuple[str, ...],
    max_passes: int,
    progress: Progress | None = None,
) -> GLMFit:
    """Fit a generalised linear model with a ridge to sparse rows, without a d x d matrix.

    Parameters
    ----------
    problem
        Problem whose moments are those of the response, with a column of zeros in place of the
        features.
    sums
        Sums of the columns.
    sample
        Sample of the rows.
    features
        Names of the columns.
    max_passes
        Maximum number of passes over the rows.
    progress
        Callback that is called after each pass.
    """
    d, null = len(features), fit_null(problem)
    spread = sums.std if problem.intercept else np.hypot(sums.std, sums.mean)
    coordinates = ScaledCoordinates.from_spread(spread, sums.mean, intercept=problem.intercept)
    penalty = problem.ridge * coordinates.penalty(spread)
    zero, loss = Anchor.zero(d), problem.deviance
    penalised = PenalisedLoss(problem.read, features, zero, loss, coordinates, penalty)
    objective = RescaledObjective(penalised, problem.unit)
    start = np.zeros((coordinates.size, 1))
    if problem.intercept:
        start[0] = null.point.theta[0]
    scaled_sample = ScaledCurvatureSample(sample, loss, coordinates, penalty)

    def sketch(point: Point) -> ScaledCurvatureSketch:
        curvature = scaled_sample.sketch(point.theta)
        return replace(curvature, values=curvature.values / problem.unit)

    with np.errstate(invalid="ignore"):  # a row without a mean has no gradient
        result = lbfgs(objective, start, sketch=sketch, max_passes=max_passes, progress=progress)
    scoring = ScoringResult(result, result.path, result.passes, result.converged)
    return make_fit(objective, scoring, null, passes=1)
