"""Generalised linear models by iterated least squares: Fisher's scoring in white coordinates.

    mean loss = sum w d(y, mu) / 2 sum w  +  ridge/2 sum_j (sd_j coef_j)^2

with d the deviance of a row (`moments.families`). The first step is R's: least squares to the
link of means near the responses. From there on every step is a Newton step by the expected
curvature, which is the weighted least squares of the working response; a step that leads where
there is no mean is halved (`models.scoring`). Of many rows, some are fitted first: that is a start
from which few passes over all of them are left.

The unit of theta and of the loss is chosen so that the curvature begins at about one. So the tests
for the end mean the same whatever the unit of the response.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discriminant.models.coordinates import Coordinates, white_coordinates
from discriminant.models.descent import Descent, PenalisedLoss, Point, Progress, newton
from discriminant.models.scaled import ScaledCoordinates
from discriminant.models.scoring import PATIENCE, Scaled, Way, descend, settle
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.families import FREE_DISPERSION, SCORES, Deviance, FirstLook, Pearson
from discriminant.moments.slope import Loss, Pass, Slope, SlopeReading
from discriminant.table.schema import Block, Floats

_WORSE = 1.0 + 1e-9
_MANY = 50  # rows for each number, enough for a start
_STILL = 1e-6  # a last step longer than this is one of an estimate on its way to infinity


@dataclass(frozen=True, slots=True, eq=False)
class GLMFit:
    """Where the scoring ended, in coordinates; it holds no rows."""

    coordinates: Coordinates | ScaledCoordinates
    theta: Floats  # (q, 1)
    slope: Slope  # of the loss without penalty, with its curvature but for scaled coordinates
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
class Problem:
    """What is fitted to what."""

    read: Pass
    alone: Pass  # the same rows with one column of zeros in place of their features
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
    def level(self) -> float:
        """Mean of the response."""
        return float(self.moments.anchor.values(self.moments.centre)[self.width])

    @property
    def spread(self) -> float:
        """Standard deviation of the response."""
        return self._deviation(self.width)

    @property
    def shifted(self) -> tuple[float, float]:
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
        return self.spread**2 or self.level**2 or 1.0

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

    def ridged(self) -> Floats | None:
        """(d,) what the ridge multiplies coefficients by, if there is one."""
        if not self.ridge:
            return None
        return self.scale() if self.standardize else np.asarray(1.0 / self.features.anchor.unit)

    def penalty(self, coordinates: Coordinates) -> Floats | None:
        """(q, q) of the ridge, if there is one."""
        ridged = self.ridged()
        return None if ridged is None else self.ridge * coordinates.penalty(ridged)

    def _deviation(self, column: int) -> float:
        variance = self.moments.pooled[column, column] / self.moments.weight.sum()
        return float(np.sqrt(variance) * self.moments.anchor.unit[column])


def fit_glm(problem: Problem, *, most: int = 200, progress: Progress | None = None) -> GLMFit:
    """Maximum likelihood, or with a ridge its penalised form."""
    white = white_coordinates(
        problem.features,
        classes=0,
        intercept=problem.intercept,
        ridged=problem.ridged(),
        read=problem.read,
    )
    few = _few(problem, white.size)
    look = FirstLook(problem.deviance, _level(problem))
    first = newton(few.objective(white, loss=look), np.zeros((white.size, 1)), most=1)
    unit, stretch = _units(problem, first.point)
    coordinates = replace(white, frame=white.frame * stretch)
    penalty = problem.penalty(coordinates)
    start, null = _least(first.point) / stretch, null_fit(problem)
    if few is not problem:
        some = newton(
            Scaled(few.objective(coordinates, penalty=penalty), unit), start, most=PATIENCE
        )
        start = some.theta if np.isfinite(some.path[0]) else start
    objective = Scaled(problem.objective(coordinates, penalty=penalty), unit)
    starts = start, _from_null(null, coordinates)
    way = descend(objective, starts, most, progress)
    passes = int(few is problem)
    if problem.intercept and way.end.point.slope.loss > _WORSE * null.point.slope.loss:
        passes += way.passes  # a least that is worse than no slopes: not all losses are convex
        way = descend(objective, (starts[1], starts[1]), most, progress)
    return fit_of(objective, way, null, passes=passes)


def _few(problem: Problem, size: int) -> Problem:
    """The problem of some of the rows, where these are enough for a start."""
    sample = problem.sample
    if sample is None or len(sample) < _MANY * size:
        return problem
    return replace(problem, read=lambda reading: reading.read(sample))


def fit_of(objective: Scaled, way: Way, null: Descent, *, passes: int) -> GLMFit:
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
        steepness=end.point.steepness,
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
    reading = SlopeReading(objective.features, objective.anchor, coef, level, loss)
    return 2.0 * float(objective.read(reading).loss), 1


def null_fit(problem: Problem) -> Descent:
    """The fit of an intercept alone; without one, of the offset alone."""
    level = Coordinates(np.array([[0.0], [1.0]]), None, 1)
    zero = Anchor.zero(1)
    objective = PenalisedLoss(problem.alone, ("none",), zero, problem.deviance, level, None)
    if not problem.intercept:
        return newton(objective, np.zeros((1, 1)), most=1)
    mean, spread = problem.shifted
    begin = float(SCORES[problem.deviance.link](np.array(_level(problem)))) - mean
    if not spread:
        return newton(objective, np.full((1, 1), begin), most=1)
    unit = problem.unit
    up = -1.0 if problem.deviance.link == "log" else 1.0  # where every row has a mean
    for step in (0.0, 1.0, 2.0, 4.0, 8.0, 16.0):
        start = np.full((1, 1), begin + up * step * spread)
        found = newton(Scaled(objective, unit), start)
        if np.isfinite(found.path[0]):
            break
    return settle(Scaled(objective, unit), found)[0]


def _from_null(null: Descent, coordinates: Coordinates) -> Floats:
    """The intercept of the null fit and no slopes."""
    start = np.zeros((coordinates.size, 1))
    if coordinates.free:
        start[0, 0] = float(null.point.theta[0, 0]) / coordinates.frame[-1, 0]
    return start


def _least(point: Point) -> Floats:
    """Where a quadratic loss, seen at zero, is least."""
    assert point.curvature is not None
    found = np.linalg.lstsq(point.curvature, -point.gradient[:, 0], rcond=1e-14)[0]
    return np.asarray(found)[:, None]


def _units(problem: Problem, point: Point) -> tuple[float, float]:
    """The unit of the loss, and that of theta in which its curvature is about one."""
    assert point.curvature is not None
    unit = problem.unit
    mean = float(np.trace(point.curvature)) / max(len(point.curvature), 1)
    return unit, float(np.sqrt(unit / mean)) if mean > 0 else 1.0


def _level(problem: Problem) -> float:
    """A mean that the link takes: that of the response, or where that is none its spread."""
    level, link = problem.level, problem.deviance.link
    signed = problem.deviance.family == "gaussian" and link in ("identity", "inverse")
    if level > 0 or link == "identity" or (signed and level):
        return level
    return problem.spread or 1.0
