"""Minimisers of a convex loss that is summed over rows: Newton, L-BFGS and gradient descent.

    f(theta) = loss(theta) / weight  +  theta' Q theta / 2

Every step is one pass over the rows (`linear.whitening` defines theta). All minimisers reach the
same point and stop by the same two criteria, in coordinates where every feature has variance one:

    largest |gradient| <= 1e-8      and      Newton decrement  g' H^-1 g / 2 <= 1e-10

Newton uses the exact H. L-BFGS (Nocedal & Wright, algorithm 7.4) builds it up from the passes, each
step beginning from a sketch (`linear.whitening`), and gradient descent uses an upper bound; their
decrement is computed with that H.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from discriminant.models.linear.preconditioning import Coordinates, ScaledCoordinates
from discriminant.moments.anchor import Anchor
from discriminant.moments.loss import Loss, LossReading, LossSums, Pass, Want
from discriminant.table.blocks import Floats

GRADIENT, DECREMENT = 1e-8, 1e-10
_ARMIJO = 1e-4
_HALVINGS = 40
_PAIRS = 12

Progress = Callable[[int, float, float], object]  # passes so far, loss, largest gradient


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A point theta, with the value and derivatives of the objective there."""

    theta: Floats  # (q, m)
    value: float
    gradient: Floats  # (q, m)
    curvature: Floats | None  # (m q, m q)
    slope: LossSums

    @property
    def max_gradient(self) -> float:
        """Largest entry of the gradient."""
        return float(np.abs(self.gradient).max(initial=0.0))


class CurvatureModel(Protocol):
    """A model of the curvature that can be inverted."""

    def solve(self, gradient: Floats) -> Floats:
        """(q, m) its inverse times a gradient."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ExactCurvature:
    """The exact curvature at a point."""

    curvature: Floats  # (m q, m q)

    def solve(self, gradient: Floats) -> Floats:
        """(q, m) H^-1 g; directions without curvature are left out."""
        q, m = gradient.shape
        flat = gradient.T.ravel()
        try:
            solved = cho_solve(cho_factor(self.curvature), flat)
        except LinAlgError:
            values, vectors = np.linalg.eigh(self.curvature)
            some = values > 1e-14 * max(float(values[-1]), 1e-300)
            solved = vectors[:, some] @ ((vectors[:, some].T @ flat) / values[some])
        return np.asarray(solved.reshape(m, q).T)


def exact_curvature(point: Point) -> ExactCurvature:
    """The exact curvature at a point, as a model of it elsewhere."""
    assert point.curvature is not None
    return ExactCurvature(point.curvature)


class Objective(Protocol):
    """A function to minimise."""

    def evaluate(self, theta: Floats, *, want: Want = "gradient") -> Point:
        """Evaluate at theta, by one pass over the rows."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PenalisedLoss:
    """Mean loss plus a quadratic penalty."""

    read: Pass
    features: tuple[str, ...]  # d names
    anchor: Anchor
    loss: Loss
    coordinates: Coordinates | ScaledCoordinates
    penalty: Floats | None  # (q, q) Q, or (q,) its diagonal

    def evaluate(self, theta: Floats, *, want: Want = "gradient") -> Point:
        """Evaluate at theta, by one pass over the rows."""
        slope = self.read(self._reading(theta, want))
        value = slope.loss / slope.weight
        gradient = self.coordinates.gradient(slope.gradient) / slope.weight
        curvature = None
        if want == "curvature" and slope.curvature is not None:
            curvature = self.coordinates.curvature(slope.curvature) / slope.weight
        if self.penalty is None:
            return Point(theta, value, gradient, curvature, slope)
        square = self.penalty.ndim == 2
        pull = self.penalty @ theta if square else self.penalty[:, None] * theta
        if curvature is not None:
            steeper = self.penalty if square else np.diag(self.penalty)
            curvature = curvature + np.kron(np.eye(theta.shape[1]), steeper)
        value += 0.5 * float((theta * pull).sum())
        return Point(theta, value, gradient + pull, curvature, slope)

    def _reading(self, theta: Floats, want: Want) -> Any:
        coordinates = self.coordinates
        if not isinstance(coordinates, Coordinates):
            at = coordinates.coefficients(theta)
            return LossReading(self.features, self.anchor, *at, self.loss, want)
        at = coordinates.summed.coefficients(theta)
        return coordinates.reading(
            self.features,
            self.anchor,
            lambda anchor: LossReading(self.features, anchor, *at, self.loss, want),
        )


@dataclass(frozen=True, slots=True, eq=False)
class OptimisationResult:
    """Result of a minimisation."""

    theta: Floats  # (q, m)
    point: Point  # last point evaluated; theta may be one Newton step further
    converged: bool
    decrement: float
    path: tuple[float, ...] = field(default=())  # value at each pass, including rejected steps

    @property
    def passes(self) -> int:
        """Number of passes over the rows."""
        return len(self.path)


class Trace:
    """Evaluations of an objective, counted and reported."""

    def __init__(self, objective: Objective, most: int, progress: Progress | None) -> None:
        self.objective, self.most, self.progress = objective, most, progress
        self.path: list[float] = []

    def evaluate(self, theta: Floats, *, want: Want = "gradient") -> Point:
        point = self.objective.evaluate(theta, want=want)
        self.path.append(point.value)
        if self.progress is not None:
            self.progress(len(self.path), point.value, point.max_gradient)
        return point

    @property
    def exhausted(self) -> bool:
        return len(self.path) >= self.most

    def result(
        self, point: Point, decrement: float, theta: Floats | None = None
    ) -> OptimisationResult:
        met = point.max_gradient <= GRADIENT and decrement <= DECREMENT
        converged = met and bool(np.isfinite(point.value))
        end = point.theta if theta is None else theta
        return OptimisationResult(end, point, converged, decrement, tuple(self.path))


def newton_descent(
    objective: Objective,
    start: Floats,
    *,
    most: int = 100,
    progress: Progress | None = None,
    goal: float = GRADIENT,
    foresee: bool = False,
    stop: Callable[[Point], bool] | None = None,
) -> OptimisationResult:
    """Newton's steps, each halved until the value falls; with an expected curvature, Fisher's.

    When both tests are met one more step is taken without reading the rows again: it squares what
    is left of the error. With `foresee`, for the losses of which `foreseen` holds, it is enough
    that they are proved to be met after that step. Iteration ends early where `stop` is true.
    """
    trace = Trace(objective, most, progress)
    point = trace.evaluate(start, want="curvature")
    while True:
        step = -exact_curvature(point).solve(point.gradient)
        decrement = -0.5 * float((point.gradient * step).sum())
        if point.max_gradient <= goal and decrement <= DECREMENT:
            return trace.result(point, decrement, point.theta + step)
        if foresee:
            ahead, left = bounds_after_newton_step(point, decrement)
            if ahead <= goal and left <= DECREMENT:
                return replace(trace.result(point, left, point.theta + step), converged=True)
        if trace.exhausted or (stop is not None and stop(point)):
            return trace.result(point, decrement)
        after = _halved(trace, point, step, want="curvature")
        if after is None:
            return trace.result(point, decrement)
        point = after


def bounds_after_newton_step(point: Point, decrement: float) -> tuple[float, float]:
    """Bounds of the largest gradient and of the decrement after a full Newton step.

    For the logit and softmax, whose third derivative along a direction is at most the range of its
    scores times the second. Over a step whose scores range over no more than r in any row, the
    curvature changes by a factor within exp(-r) and exp(r) (Bach 2010), so that in the measure of
    H^-1 the gradient after it is at most (exp(r) - 1 - r) / r times the one before. And r is at
    most sqrt(2 g'H^-1 g / least), for the curvature of no row exceeds H.
    """
    assert point.curvature is not None
    weight, least = point.slope.weight, point.slope.least
    before = np.sqrt(2.0 * weight * max(decrement, 0.0))
    r = before * np.sqrt(2.0 / least) if 0 < least < np.inf else np.inf
    if not r < 1.0:
        return np.inf, np.inf
    after = before * (np.expm1(r) - r) / r if r > 0 else 0.0
    steepest = float(np.diagonal(point.curvature).max())
    return after * np.sqrt(np.exp(r) * steepest / weight), 0.5 * after**2 * np.exp(r) / weight


def lbfgs(
    objective: Objective,
    start: Floats,
    *,
    sketch: Callable[[Point], CurvatureModel],
    renewed: int | None = 2,
    most: int = 1000,
    progress: Progress | None = None,
    goal: float = GRADIENT,
    enough: Callable[[Point], bool] | None = None,
    share: Callable[[Floats], float] | None = None,
    memory: int = _PAIRS,
    stop: Callable[[Point], bool] | None = None,
) -> OptimisationResult:
    """L-BFGS steps from a sketch of the curvature, corrected by the last few passes.

    The sketch is made at the start and once more after so many steps, where they have led; if that
    is None, before every step. Where the tests are met but `enough` says no, it goes on to a
    gradient of a hundredth, twice at most. `share`: how much of a step may be taken. `memory`: how
    many passes correct the sketch. Iteration ends early where `stop` is true.
    """
    trace = Trace(objective, most, progress)
    point = trace.evaluate(start)
    guess, pairs, last = sketch(point), list[CorrectionPair](), 1e-4 * goal
    for turn in count():
        if turn == renewed or renewed is None:
            guess = sketch(point)
        step = _two_loops(point.gradient, pairs, guess)
        decrement = -0.5 * float((point.gradient * step).sum())
        if point.max_gradient <= goal and decrement <= DECREMENT:
            if enough is None or goal <= last or enough(point):
                return trace.result(point, decrement)
            goal *= 0.01
        if trace.exhausted or (stop is not None and stop(point)):
            return trace.result(point, decrement)
        if share is not None:
            step *= share(step)
        after = _halved(trace, point, step, want="gradient")
        if after is None and not pairs:
            return trace.result(point, decrement)
        if after is None:  # the curvature was misjudged: begin again from a sketch
            guess, pairs = sketch(point), []
            continue
        pair = CorrectionPair(after.theta - point.theta, after.gradient - point.gradient)
        if pair.product > 0:
            pairs = [*pairs[-memory + 1 :], pair]
        point = after
    raise AssertionError("unreachable")


def gradient_descent(
    objective: Objective,
    start: Floats,
    *,
    scale: float,
    most: int = 10000,
    progress: Progress | None = None,
) -> OptimisationResult:
    """Gradient steps of length 1/scale, with `scale` an upper bound of the curvature."""
    trace = Trace(objective, most, progress)
    point = trace.evaluate(start)
    while True:
        step = -point.gradient / scale
        decrement = -0.5 * float((point.gradient * step).sum())
        if (point.max_gradient <= GRADIENT and decrement <= DECREMENT) or trace.exhausted:
            return trace.result(point, decrement)
        after = _halved(trace, point, step, want="gradient")
        if after is None:
            return trace.result(point, decrement)
        point = after


class CorrectionPair:
    """A step, and how the gradient changed along it."""

    def __init__(self, move: Floats, change: Floats) -> None:
        self.move, self.change = move, change
        self.product = float((move * change).sum())


def _two_loops(gradient: Floats, pairs: list[CorrectionPair], guess: CurvatureModel) -> Floats:
    direction, shares = gradient.copy(), []
    for pair in reversed(pairs):
        shares.append(float((pair.move * direction).sum()) / pair.product)
        direction -= shares[-1] * pair.change
    direction = guess.solve(direction)
    for pair, share in zip(pairs, reversed(shares), strict=True):
        direction += (share - float((pair.change * direction).sum()) / pair.product) * pair.move
    return -direction


def _halved(trace: Trace, point: Point, step: Floats, *, want: Want) -> Point | None:
    """The point a step away, or half of it, or half of that; None where no part of it goes down.

    Near the end values agree to rounding, and then a smaller gradient is as good.
    """
    slope = float((point.gradient * step).sum())
    if not slope < 0:
        return None
    share = 1.0
    for _ in range(_HALVINGS):
        after = trace.evaluate(point.theta + share * step, want=want)
        if np.isfinite(after.value):
            blur = 1e-14 * max(1.0, abs(point.value))
            if after.value <= point.value + _ARMIJO * share * slope:
                return after
            if after.value <= point.value + blur and after.max_gradient < point.max_gradient:
                return after
        if trace.exhausted:
            return None
        share *= _shorter(point.value, share * slope, after.value)
    return None


def _shorter(value: float, slope: float, after: float) -> float:
    """How much of a step to keep that went too far: to the least of a parabola, or nearly."""
    over = after - value - slope
    if not np.isfinite(over) or over <= 0:
        return 0.5 if np.isfinite(over) else 0.1
    return float(np.clip(-0.5 * slope / over, 0.05, 0.5))
