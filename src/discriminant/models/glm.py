"""Generalised linear models by iterated least squares: Fisher's scoring in white coordinates.

    mean loss = sum w d(y, mu) / 2 sum w  +  ridge/2 sum_j (sd_j coef_j)^2

with d the deviance of a row (`moments.families`). The first step is R's: least squares to the
link of means near the responses. From there on every step is a Newton step by the expected
curvature, which is the weighted least squares of the working response; a step that leads where
there is no mean is halved (`models.descent`).

Where means end at a value that responses have (a share of 1 by the log link, a count of 0 by the
identity) the least may lie on that edge, and steps stop short of it: `models.edge` leads there.

The unit of theta and of the loss is chosen so that the curvature begins at about one. So the tests
for the end mean the same whatever the unit of the response. After they are met, steps go on until
the gradient is rounding: with a link that is not canonical they only gain some digits each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discriminant.models.coordinates import Coordinates, white_coordinates
from discriminant.models.descent import Descent, PenalisedLoss, Point, Progress, newton
from discriminant.models.edge import to_edge
from discriminant.models.logistic import later
from discriminant.moments.anchor import Anchor
from discriminant.moments.barrier import EDGES
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.families import SCORES, Deviance, FirstLook, Pearson
from discriminant.moments.slope import Loss, Pass, Slope, SlopeReading, Want
from discriminant.table.schema import Floats

_SETTLED = 1e-14  # a gradient that is nearly rounding
_FALLING = 0.9  # what is left of the gradient after a step that helps
_STEPS = 40  # after the tests are met, at most
_PATIENCE = 20  # passes after which the least is taken to lie on an edge, if there is one
_STILL = 1e-6  # a last step longer than this is one of an estimate on its way to infinity


@dataclass(frozen=True, slots=True, eq=False)
class GLMFit:
    """Where the scoring ended, in coordinates; it holds no rows."""

    coordinates: Coordinates
    theta: Floats  # (q, 1)
    slope: Slope  # of the loss without penalty, with its curvature
    null: float  # deviance of the intercept, or of nothing, alone
    pearson: float  # sum of w (y - mu)^2 / V
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
class Scaled:
    """An objective in other units of loss."""

    objective: PenalisedLoss
    unit: float

    def at(self, theta: Floats, *, want: Want = "gradient") -> Point:
        """One pass over the rows."""
        found = self.objective.at(theta, want=want)
        curvature = None if found.curvature is None else found.curvature / self.unit
        return replace(
            found,
            value=found.value / self.unit,
            gradient=found.gradient / self.unit,
            curvature=curvature,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What is fitted to what."""

    read: Pass
    moments: ClassMoments  # of d features, the response, and the offset if there is one
    width: int  # d
    deviance: Deviance
    intercept: bool
    ridge: float
    standardize: bool = True  # the penalty is on coefficients times standard deviations

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
    null = null_fit(problem)
    look = FirstLook(problem.deviance, _level(problem))
    first = newton(problem.objective(white, loss=look), np.zeros((white.size, 1)), most=1)
    unit, stretch = _units(problem, first.point)
    coordinates = replace(white, frame=white.frame * stretch)
    penalty = problem.penalty(coordinates)
    objective = Scaled(problem.objective(coordinates, penalty=penalty), unit)
    starts = _least(first.point) / stretch, _from_null(null, coordinates)
    way = _descend(objective, starts, most, progress)
    return _fit_of(problem, objective, way, null)


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
    """How a fit came to its end."""

    end: Descent  # its point is the last pass that went down
    path: tuple[float, ...]  # of the passes by the loss itself
    passes: int
    converged: bool
    at_edge: bool = False


def _descend(
    objective: Scaled, starts: tuple[Floats, Floats], most: int, progress: Progress | None
) -> _Way:
    """Steps until the gradient is rounding, or along an edge that stands in their way."""
    edged = _edged(objective.objective)
    few = min(most, _PATIENCE) if edged else most
    start, descent = starts[0], newton(objective, starts[0], most=few, progress=progress)
    if not np.isfinite(descent.path[0]):
        start, descent = starts[1], newton(objective, starts[1], most=few, progress=progress)
    short = not descent.converged and descent.passes < most
    if edged and short and np.isfinite(descent.path[0]):
        inside = starts[1] if objective.objective.coordinates.free else start
        return _along_edge(objective, inside, descent, most, progress)
    end, more = settle(objective, descent, later(progress, descent.passes))
    path = descent.path + more
    return _Way(end, path, len(path), descent.converged)


def _edged(objective: PenalisedLoss) -> bool:
    loss = objective.loss
    return isinstance(loss, Deviance) and (loss.family, loss.link) in EDGES


def _along_edge(
    objective: Scaled, start: Floats, first: Descent, most: int, progress: Progress | None
) -> _Way:
    """The least after a way that stopped short of it."""
    done = first.passes
    more = later(progress, done)
    edge = to_edge(objective.objective, start, most=max(most - done, 1), progress=more)
    done, end = done + edge.passes, edge.descent
    if edge.touched:
        path = (*first.path, end.point.value)
        return _Way(end, path, done, end.converged, at_edge=True)
    if not end.converged:
        return _Way(replace(first, theta=first.point.theta), first.path, done, converged=False)
    rest = newton(objective, end.theta, most=max(most - done, 1), progress=later(progress, done))
    end, last = settle(objective, rest, later(progress, done + rest.passes))
    path = first.path + rest.path + last
    return _Way(end, path, done + rest.passes + len(last), rest.converged)


def settle(
    objective: Scaled | PenalisedLoss, descent: Descent, progress: Progress | None = None
) -> tuple[Descent, tuple[float, ...]]:
    """Further steps from where the tests were met, as long as the gradient falls.

    The point returned is the last pass that helped, so that its curvature is the one at theta; and
    the losses of all passes that it took.
    """
    best, path = descent, tuple[float, ...]()
    if not descent.converged:
        return replace(best, theta=best.point.theta), path
    while len(path) < _STEPS and best.point.steepness > _SETTLED:
        after = newton(objective, best.theta, most=1, progress=later(progress, len(path)))
        path += after.path
        if not (after.converged and after.point.steepness < _FALLING * best.point.steepness):
            break
        best = after
    return best, path


def _fit_of(problem: Problem, objective: Scaled, way: _Way, null: Descent) -> GLMFit:
    end, coordinates, unit = way.end, objective.objective.coordinates, objective.unit
    assert isinstance(coordinates, Coordinates)
    stride = float(np.abs(end.theta - end.point.theta).max(initial=0.0))
    diverging = way.converged and stride > _STILL * (
        1.0 + float(np.abs(end.theta).max(initial=0.0))
    )
    pearson, extra = 2.0 * end.point.slope.loss, 0
    if problem.deviance.family != "gaussian":
        pearson, extra = 2.0 * _pearson(problem, coordinates, end.point.theta), 1
    return GLMFit(
        coordinates,
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
        passes=2 + null.passes + way.passes + extra,
    )


def _pearson(problem: Problem, coordinates: Coordinates, theta: Floats) -> float:
    coef, intercept = coordinates.coefficients(theta)
    features = problem.features
    loss = Pearson(problem.deviance)
    found = problem.read(SlopeReading(features.features, features.anchor, coef, intercept, loss))
    return float(found.loss)


def null_fit(problem: Problem) -> Descent:
    """The fit of an intercept alone; without one, of the offset alone."""
    frame = np.zeros((problem.width + 1, 1))
    frame[-1, 0] = 1.0
    objective = problem.objective(Coordinates(frame, None, 1))
    if not problem.intercept:
        return newton(objective, np.zeros((1, 1)), most=1)
    mean, spread = problem.shifted
    begin = float(SCORES[problem.deviance.link](np.array(_level(problem)))) - mean
    if not spread:
        return newton(objective, np.full((1, 1), begin), most=1)
    unit = problem.spread**2 if problem.deviance.family == "gaussian" else 1.0
    up = -1.0 if problem.deviance.link == "log" else 1.0  # where every row has a mean
    for step in (0.0, 1.0, 2.0, 4.0, 8.0, 16.0):
        start = np.full((1, 1), begin + up * step * spread)
        found = newton(Scaled(objective, unit or 1.0), start)
        if np.isfinite(found.path[0]):
            break
    return settle(Scaled(objective, unit or 1.0), found)[0]


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
    unit = 1.0
    if problem.deviance.family == "gaussian":
        unit = problem.spread**2 or problem.level**2 or 1.0
    mean = float(np.trace(point.curvature)) / max(len(point.curvature), 1)
    return unit, float(np.sqrt(unit / mean)) if mean > 0 else 1.0


def _level(problem: Problem) -> float:
    """A mean that the link takes: that of the response, or where that is none its spread."""
    level, link = problem.level, problem.deviance.link
    signed = problem.deviance.family == "gaussian" and link in ("identity", "inverse")
    if level > 0 or link == "identity" or (signed and level):
        return level
    return problem.spread or 1.0
