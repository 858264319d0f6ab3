"""Generalised linear models by Fisher scoring (iteratively reweighted least squares).

    mean loss = sum w d(y, mu) / 2 sum w  +  ridge/2 sum_j (sd_j coef_j)^2

with d the deviance of a row (`moments.glm_families`), in white coordinates. The first step is R's:
least squares to the link of means near the responses. Every later step is a Newton step with the
expected curvature, which is weighted least squares of the working response; a step to where some
row has no mean is halved. With many rows a sample is fitted first, as a start from which few passes
over all rows remain. The units of theta and of the loss are chosen so that the curvature begins at
about one, so that the convergence criteria mean the same in any unit of the response.

After the criteria of `linear.optimise` are met, steps go on until the gradient is rounding: with a
link that is not canonical each gains only some digits, and where responses are far from their means
almost none; then L-BFGS corrects the curvature.

Where means are bounded by a value that responses attain (a share of 1 with the log link, a count of
0 with the identity) the minimum may lie on that boundary, where the gradient does not vanish. What
holds there (Karush, Kuhn, Tucker) is

    gradient = sum of multipliers times the rows at their boundary,    multipliers >= 0

and on the path of a barrier it holds with multipliers push / distance, up to a gap of push for
every row. Its points converge to the minimum as a smooth function of push, so the last three are
extrapolated.

`fit_glm_scaled` fits sparse rows with more features than products of them can be stored: a ridge,
columns of variance one, and L-BFGS whose steps begin from the mean curvature of the scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from discriminant.models.linear.logistic import shift_progress
from discriminant.models.linear.optimise import (
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
    ScaledCurvatureSketch,
    ScaledSample,
    white_coordinates,
)
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.glm_families import (
    BOUNDARIES,
    FREE_DISPERSION,
    SCORES,
    BarrierLoss,
    Deviance,
    Pearson,
    StartingFit,
)
from discriminant.moments.loss import Loss, LossReading, LossSums, Pass, Want
from discriminant.moments.qr_factor import ColumnSums
from discriminant.table.blocks import Block, Floats

_PUSHES = tuple(0.1**k for k in range(7))  # smaller ones are lost in rounding
_TO_ZERO = np.array([1.0, -110.0, 1000.0]) / 891.0  # of a parabola at 0 by 1, 0.1 and 0.01
_NEAR = 1e-4  # a score so near to its edge, against the last push, is on it
_BACK = (1e-6, 1e-4, 1e-2, 1.0)  # shares of the way back from the end until all rows have a mean


@dataclass(frozen=True, slots=True, eq=False)
class BoundaryResult:
    """Where the path ended."""

    descent: OptimisationResult
    touched: bool  # whether a row is at its edge
    passes: int


def minimise_on_boundary(
    objective: PenalisedLoss, start: Floats, *, most: int, progress: Progress | None = None
) -> BoundaryResult:
    """The least that a path from `start`, where every row has a mean, leads to."""
    assert isinstance(objective.loss, Deviance)
    deviance, passes, places = objective.loss, 0, [start]

    def least(push: float) -> OptimisationResult:
        walled = replace(objective, loss=BarrierLoss(deviance, push))
        told = shift_progress(progress, passes)
        return newton_descent(walled, places[-1], most=max(most - passes, 1), progress=told)

    for push in _PUSHES:
        last = least(push)
        places.append(last.theta)
        passes += last.passes
        if not last.converged:
            return BoundaryResult(last, touched=False, passes=passes)
    if last.point.slope.least > _NEAR:
        inside = least(0.0)
        passes += inside.passes
        if inside.converged:
            return BoundaryResult(inside, touched=False, passes=passes)
    return _end(objective, places[-3:], last, passes)


def _end(
    objective: PenalisedLoss, places: list[Floats], last: OptimisationResult, passes: int
) -> BoundaryResult:
    """Where the path ends, from its last three places, which lie as a parabola in push."""
    limit = np.einsum("k,kqm->qm", _TO_ZERO, np.stack(places))
    for back in _BACK:
        theta = limit + back * (places[-1] - limit)
        point = objective.evaluate(theta, want="curvature")
        passes += 1
        if np.isfinite(point.value):
            break
    end = OptimisationResult(theta, point, True, last.decrement, (point.value,))
    return BoundaryResult(end, touched=True, passes=passes)


_SETTLED = 1e-14  # a gradient that is nearly rounding
_FALLING = 0.9  # what is left of the gradient after a step that helps
_STEPS = 40  # after the tests are met, at most
_LONG = 40  # passes after which steps by the expected curvature alone have taken too long
PATIENCE = 20  # passes after which the least is taken to lie on an edge, if there is one


@dataclass(frozen=True, slots=True, eq=False)
class RescaledObjective:
    """An objective in other units of loss."""

    objective: PenalisedLoss
    unit: float

    def evaluate(self, theta: Floats, *, want: Want = "gradient") -> Point:
        """One pass over the rows."""
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
    """How a fit came to its end."""

    end: OptimisationResult  # its point is the last pass that went down
    path: tuple[float, ...]  # of the passes by the loss itself
    passes: int
    converged: bool
    at_edge: bool = False


def minimise_deviance(
    objective: RescaledObjective,
    starts: tuple[Floats, Floats],
    most: int,
    progress: Progress | None,
) -> ScoringResult:
    """Steps until the gradient is rounding, or along an edge that stands in their way."""
    edged = _edged(objective.objective)
    few = min(most, PATIENCE if edged else _LONG)
    start, descent = starts[0], newton_descent(objective, starts[0], most=few, progress=progress)
    if not np.isfinite(descent.path[0]):
        start, descent = (
            starts[1],
            newton_descent(objective, starts[1], most=few, progress=progress),
        )
    short = not descent.converged and descent.passes < most
    if edged and short and np.isfinite(descent.path[0]):
        inside = starts[1] if objective.objective.coordinates.free else start
        return _along_edge(objective, inside, descent, most, progress)
    path = descent.path
    if short and np.isfinite(path[0]):
        descent = _by_pairs(objective, descent, most, progress)
        path += descent.path
    end, more = refine(objective, descent, shift_progress(progress, len(path)))
    path += more
    return ScoringResult(end, path, len(path), descent.converged)


def _by_pairs(
    objective: RescaledObjective, first: OptimisationResult, most: int, progress: Progress | None
) -> OptimisationResult:
    """Where the expected curvature is far from the observed one: corrected by what passes find."""
    guess, done = exact_curvature(first.point), first.passes
    corrected = lbfgs(
        objective,
        first.point.theta,
        sketch=lambda point: guess,
        most=most - done,
        progress=shift_progress(progress, done),
    )
    told = shift_progress(progress, done + corrected.passes)
    rest = newton_descent(objective, corrected.theta, most=1, progress=told)
    return replace(rest, path=corrected.path + rest.path)


def _edged(objective: PenalisedLoss) -> bool:
    loss = objective.loss
    return isinstance(loss, Deviance) and (loss.family, loss.link) in BOUNDARIES


def _along_edge(
    objective: RescaledObjective,
    start: Floats,
    first: OptimisationResult,
    most: int,
    progress: Progress | None,
) -> ScoringResult:
    """The least after a way that stopped short of it."""
    done = first.passes
    more = shift_progress(progress, done)
    edge = minimise_on_boundary(objective.objective, start, most=max(most - done, 1), progress=more)
    done, end = done + edge.passes, edge.descent
    if edge.touched:
        path = (*first.path, end.point.value)
        return ScoringResult(end, path, done, end.converged, at_edge=True)
    if not end.converged:
        return ScoringResult(
            replace(first, theta=first.point.theta), first.path, done, converged=False
        )
    rest = newton_descent(
        objective, end.theta, most=max(most - done, 1), progress=shift_progress(progress, done)
    )
    end, last = refine(objective, rest, shift_progress(progress, done + rest.passes))
    path = first.path + rest.path + last
    return ScoringResult(end, path, done + rest.passes + len(last), rest.converged)


def refine(
    objective: RescaledObjective | PenalisedLoss,
    descent: OptimisationResult,
    progress: Progress | None = None,
) -> tuple[OptimisationResult, tuple[float, ...]]:
    """Further steps from where the tests were met, as long as the gradient falls.

    The point returned is the last pass that helped, so that its curvature is the one at theta; and
    the losses of all passes that it took.
    """
    best, path = descent, tuple[float, ...]()
    if not descent.converged:
        return replace(best, theta=best.point.theta), path
    while len(path) < _STEPS and best.point.max_gradient > _SETTLED:
        after = newton_descent(
            objective, best.theta, most=1, progress=shift_progress(progress, len(path))
        )
        path += after.path
        if not (after.converged and after.point.max_gradient < _FALLING * best.point.max_gradient):
            break
        best = after
    return best, path


_WORSE = 1.0 + 1e-9
_MANY = 50  # rows for each number, enough for a start
_STILL = 1e-6  # a last step longer than this is one of an estimate on its way to infinity


@dataclass(frozen=True, slots=True, eq=False)
class GLMFit:
    """Where the scoring ended, in coordinates; it holds no rows."""

    nan_fields: ClassVar[tuple[str, ...]] = ("pearson",)  # NaN where the dispersion is fixed

    coordinates: Coordinates | ScaledCoordinates
    theta: Floats  # (q, 1)
    slope: LossSums  # of the loss without penalty, with its curvature but for scaled coordinates
    null: float  # deviance of the intercept, or of nothing, alone
    pearson: float  # sum of w (y - mu)^2 / V, where the dispersion is estimated
    converged: bool
    diverging: bool  # the tests are met, but by an estimate that is on its way to infinity
    at_edge: bool  # the least is on the edge of what means can be, where the gradient is not zero
    unit: float  # of the loss, in which the tests for the end were made
    stride: float  # how far the next step would go, in units of theta
    steepness: float  # largest entry of the last gradient
    path: tuple[float, ...]  # penalised mean loss of each pass
    passes: int  # over the rows, for all that is here

    @property
    def deviance(self) -> float:
        """Twice the loss."""
        return 2.0 * self.slope.loss

    def objective(
        self, read: Pass, features: tuple[str, ...], anchor: Anchor, deviance: Deviance
    ) -> PenalisedLoss:
        """The mean loss of rows, in the coordinates of this fit."""
        return PenalisedLoss(read, features, anchor, deviance, self.coordinates, None)


@dataclass(frozen=True, slots=True, eq=False)
class GLMProblem:
    """What is fitted to what."""

    read: Pass
    read_null: Pass  # the same rows with one column of zeros in place of their features
    moments: ClassMoments  # of d features, the response, and the offset if there is one
    width: int  # d
    deviance: Deviance
    intercept: bool
    ridge: float
    standardize: bool = True  # the penalty is on coefficients times standard deviations
    sample: Block | None = None  # some of the rows, where there are many

    @property
    def features(self) -> ClassMoments:
        """Moments of the features alone."""
        return self.moments.select(range(self.width))

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
        """Of the loss: what the responses vary by, squared, for a gaussian."""
        if self.deviance.family != "gaussian":
            return 1.0
        return self.response_sd**2 or self.mean_response**2 or 1.0

    def objective(
        self, coordinates: Coordinates, *, loss: Loss | None = None, penalty: Floats | None = None
    ) -> PenalisedLoss:
        """The mean loss as a function of theta."""
        features = self.features
        chosen = self.deviance if loss is None else loss
        return PenalisedLoss(
            self.read, features.features, features.anchor, chosen, coordinates, penalty
        )

    def scale(self) -> Floats:
        """(d,) deviation of each feature from its mean; with no intercept, from zero."""
        features = self.features
        spread = np.sqrt(np.diagonal(features.pooled) / features.weight.sum())
        return np.asarray(spread if self.intercept else np.hypot(spread, features.centre))

    def penalty_scale(self) -> Floats | None:
        """(d,) what the ridge multiplies coefficients by, if there is one."""
        if not self.ridge:
            return None
        return self.scale() if self.standardize else np.asarray(1.0 / self.features.anchor.unit)

    def penalty(self, coordinates: Coordinates) -> Floats | None:
        """(q, q) of the ridge, if there is one."""
        ridged = self.penalty_scale()
        return None if ridged is None else self.ridge * coordinates.penalty(ridged)

    def _deviation(self, column: int) -> float:
        variance = self.moments.pooled[column, column] / self.moments.weight.sum()
        return float(np.sqrt(variance) * self.moments.anchor.unit[column])


def fit_glm(problem: GLMProblem, *, most: int = 200, progress: Progress | None = None) -> GLMFit:
    """Maximum likelihood, or with a ridge its penalised form."""
    white = white_coordinates(
        problem.features,
        classes=0,
        intercept=problem.intercept,
        ridged=problem.penalty_scale(),
        read=problem.read,
    )
    few = _few(problem, white.size)
    look = StartingFit(problem.deviance, _level(problem))
    first = newton_descent(few.objective(white, loss=look), np.zeros((white.size, 1)), most=1)
    unit, stretch = _units(problem, first.point)
    coordinates = replace(white, frame=white.frame * stretch)
    penalty = problem.penalty(coordinates)
    start, null = _least(first.point) / stretch, fit_null(problem)
    if few is not problem:
        some = newton_descent(
            RescaledObjective(few.objective(coordinates, penalty=penalty), unit),
            start,
            most=PATIENCE,
        )
        start = some.theta if np.isfinite(some.path[0]) else start
    objective = RescaledObjective(problem.objective(coordinates, penalty=penalty), unit)
    starts = start, _from_null(null, coordinates)
    way = minimise_deviance(objective, starts, most, progress)
    passes = int(few is problem)
    if problem.intercept and way.end.point.slope.loss > _WORSE * null.point.slope.loss:
        passes += way.passes  # a least that is worse than no slopes: not all losses are convex
        way = minimise_deviance(objective, (starts[1], starts[1]), most, progress)
    return make_fit(objective, way, null, passes=passes)


def _few(problem: GLMProblem, size: int) -> GLMProblem:
    """The problem of some of the rows, where these are enough for a start."""
    sample = problem.sample
    if sample is None or len(sample) < _MANY * size:
        return problem
    return replace(problem, read=lambda reading: reading.read(sample))


def make_fit(
    objective: RescaledObjective, way: ScoringResult, null: OptimisationResult, *, passes: int
) -> GLMFit:
    """All that is kept of where a way ended; `passes` over the rows went before it."""
    end, plain, unit = way.end, objective.objective, objective.unit
    stride = float(np.abs(end.theta - end.point.theta).max(initial=0.0))
    diverging = way.converged and stride > _STILL * (
        1.0 + float(np.abs(end.theta).max(initial=0.0))
    )
    pearson, extra = _pearson(plain, end.point)
    return GLMFit(
        plain.coordinates,
        end.point.theta,
        end.point.slope,
        2.0 * null.point.slope.loss,
        pearson,
        converged=way.converged and not diverging,
        diverging=diverging,
        at_edge=way.at_edge,
        unit=unit,
        stride=stride,
        steepness=end.point.max_gradient,
        path=tuple(value * unit for value in way.path),
        passes=passes + way.passes + extra,
    )


def _pearson(objective: PenalisedLoss, point: Point) -> tuple[float, int]:
    """Pearson's chi-squared, where it is asked for, and the passes that took."""
    deviance = objective.loss
    assert isinstance(deviance, Deviance)
    if deviance.family == "gaussian":
        return 2.0 * point.slope.loss, 0
    if deviance.family not in FREE_DISPERSION:
        return float("nan"), 0
    coef, level = objective.coordinates.coefficients(point.theta)
    loss = Pearson(deviance)
    reading = LossReading(objective.features, objective.anchor, coef, level, loss)
    return 2.0 * float(objective.read(reading).loss), 1


def fit_null(problem: GLMProblem) -> OptimisationResult:
    """The fit of an intercept alone; without one, of the offset alone."""
    level = Coordinates(np.array([[0.0], [1.0]]), None, 1)
    zero = Anchor.zero(1)
    objective = PenalisedLoss(problem.read_null, ("none",), zero, problem.deviance, level, None)
    if not problem.intercept:
        return newton_descent(objective, np.zeros((1, 1)), most=1)
    mean, spread = problem.offset_moments
    begin = float(SCORES[problem.deviance.link](np.array(_level(problem)))) - mean
    if not spread:
        return newton_descent(objective, np.full((1, 1), begin), most=1)
    unit = problem.unit
    up = -1.0 if problem.deviance.link == "log" else 1.0  # where every row has a mean
    for step in (0.0, 1.0, 2.0, 4.0, 8.0, 16.0):
        start = np.full((1, 1), begin + up * step * spread)
        fit = newton_descent(RescaledObjective(objective, unit), start)
        if np.isfinite(fit.path[0]):
            break
    return refine(RescaledObjective(objective, unit), fit)[0]


def _from_null(null: OptimisationResult, coordinates: Coordinates) -> Floats:
    """The intercept of the null fit and no slopes."""
    start = np.zeros((coordinates.size, 1))
    if coordinates.free:
        start[0, 0] = float(null.point.theta[0, 0]) / coordinates.frame[-1, 0]
    return start


def _least(point: Point) -> Floats:
    """Where a quadratic loss, seen at zero, is least."""
    assert point.curvature is not None
    theta = np.linalg.lstsq(point.curvature, -point.gradient[:, 0], rcond=1e-14)[0]
    return np.asarray(theta)[:, None]


def _units(problem: GLMProblem, point: Point) -> tuple[float, float]:
    """The unit of the loss, and that of theta in which its curvature is about one."""
    assert point.curvature is not None
    unit = problem.unit
    mean = float(np.trace(point.curvature)) / max(len(point.curvature), 1)
    return unit, float(np.sqrt(unit / mean)) if mean > 0 else 1.0


def _level(problem: GLMProblem) -> float:
    """A mean that the link takes: that of the response, or where that is none its spread."""
    level, link = problem.mean_response, problem.deviance.link
    signed = problem.deviance.family == "gaussian" and link in ("identity", "inverse")
    if level > 0 or link == "identity" or (signed and level):
        return level
    return problem.response_sd or 1.0


@dataclass(frozen=True, slots=True, eq=False)
class _Sketches:
    """Sketches of the curvature of a loss in another unit."""

    sample: ScaledSample
    unit: float

    def at(self, point: Point) -> ScaledCurvatureSketch:
        """Near a point."""
        found = self.sample.sketch(point.theta)
        return ScaledCurvatureSketch(found.turn, found.share / self.unit)


def fit_glm_scaled(
    problem: GLMProblem,
    sums: ColumnSums,
    sample: Block,
    *,
    features: tuple[str, ...],
    most: int,
    progress: Progress | None = None,
) -> GLMFit:
    """The least of the penalised loss.

    Parameters
    ----------
    problem
        Its moments are of the responses, beside one column of zeros.
    sums
        Of the columns.
    sample
        Some of the rows.
    """
    d, null = len(features), fit_null(problem)
    spread = sums.std if problem.intercept else np.hypot(sums.std, sums.mean)
    scale = np.divide(1.0, spread, out=np.zeros(d), where=spread > 0)
    mean = sums.mean if problem.intercept else np.zeros(d)
    coordinates = ScaledCoordinates(scale, mean, None, int(problem.intercept))
    penalty = problem.ridge * coordinates.penalty(spread)
    zero, loss = Anchor.zero(d), problem.deviance
    plain = PenalisedLoss(problem.read, features, zero, loss, coordinates, penalty)
    objective = RescaledObjective(plain, problem.unit)
    start = np.zeros((coordinates.size, 1))
    if problem.intercept:
        start[0] = null.point.theta[0]
    some = _Sketches(ScaledSample(sample, loss, coordinates, penalty), problem.unit)
    with np.errstate(invalid="ignore"):  # where there is no mean, neither is there a gradient
        result = lbfgs(objective, start, sketch=some.at, most=most, progress=progress)
    way = ScoringResult(result, result.path, result.passes, result.converged)
    return make_fit(objective, way, null, passes=1)
