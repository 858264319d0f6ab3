"""Optimisation of a convex loss summed over rows: Newton's method, L-BFGS, gradient descent.

    f(theta) = loss(theta) / weight  +  theta' Q theta / 2

Every evaluation of f is one pass over the rows (`linear.preconditioning` defines theta). All
methods reach the same point and stop by the same two criteria, in coordinates where every feature
has variance one:

    largest |gradient| <= 1e-8      and      Newton decrement  g' H^-1 g / 2 <= 1e-10

Newton's method uses the exact curvature H. L-BFGS (Nocedal & Wright, algorithm 7.4) starts from an
approximation, a sketch (`linear.preconditioning`), and corrects it by the gradients of the last
passes. If full steps turn out to be too long, the sketch is also rescaled to match the curvature
along the last step (ibid., equation 7.20). Gradient descent uses an upper bound of the curvature.
The Newton decrement is computed with the exact or approximate curvature H that the method uses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Protocol

import numpy as np
from scipy.linalg.lapack import dposv

from discriminant.models.linear.preconditioning import Coordinates, ScaledCoordinates
from discriminant.moments.anchor import Anchor
from discriminant.moments.loss_gradient_sums import Loss, LossReading, LossSums, Pass, Want
from discriminant.table.blocks import Floats

GRADIENT, DECREMENT = 1e-8, 1e-10  # convergence criteria
_ARMIJO = 1e-4  # an accepted step attains at least this share of the decrease the slope predicts
_HALVINGS = 40  # largest number of trial steps of a line search
_CHEAP_PRODUCTS = 4e6  # number in a curvature that takes about as long as the gradient
_GOOD_REDUCTION = 0.15  # reduction of the gradient by a step that needs no new curvature
_GIVEN_REDUCTION = 0.5  # the same for a given approximate curvature, which each step improves
# Gradient at the last point, relative to the tolerance. If it were larger, refinement or standard
# errors would need another pass for the curvature, which takes longer than one for the gradient.
_SMALL_GRADIENT = 0.1
_FEWEST_APPROXIMATE = 4  # passes; with fewer, an approximation of the curvature is not used
_QUADRATIC = 4.0  # assumed gradient after a Newton step, relative to the square of that before it
_SKETCH_STEPS = 20  # number of L-BFGS steps after which the curvature is sketched again
_PAIRS = 12  # number of corrections of the curvature that L-BFGS stores

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
        """Largest absolute entry of the gradient."""
        return float(np.abs(self.gradient).max(initial=0.0))


class CurvatureApproximation(Protocol):
    """An invertible approximation of the curvature."""

    def solve(self, gradient: Floats) -> Floats:
        """Return the (q, m) product of the inverse curvature and a gradient (q, m)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ExactCurvature:
    """The exact curvature at a point."""

    curvature: Floats  # (m q, m q)

    def solve(self, gradient: Floats) -> Floats:
        """Return the (q, m) product H^-1 g. If H is singular, the pseudo-inverse is used."""
        q, m = gradient.shape
        flat = gradient.T.ravel()
        solution = solve_positive(self.curvature, flat)
        if solution is None:
            values, vectors = np.linalg.eigh(self.curvature)
            positive = values > 1e-14 * max(float(values[-1]), 1e-300)
            solution = vectors[:, positive] @ ((vectors[:, positive].T @ flat) / values[positive])
        return np.asarray(solution.reshape(m, q).T)


def solve_positive(matrix: Floats, rhs: Floats) -> Floats | None:
    """Return the solution of a linear system, or None if its matrix is not positive definite.

    LAPACK is called directly, since for few unknowns the checks of `cho_factor` take longer than
    the solution.
    """
    if not rhs.size:
        return rhs
    _, solution, info = dposv(matrix, rhs)
    return None if info else np.asarray(solution)


def exact_curvature(point: Point) -> ExactCurvature:
    """Return the exact curvature at a point as a curvature model."""
    assert point.curvature is not None
    return ExactCurvature(point.curvature)


class Objective(Protocol):
    """A function of theta to minimise."""

    def evaluate(self, theta: Floats, *, want: Want = "gradient") -> Point:
        """Return the value and the derivatives at theta, by one pass over the rows."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PenalisedLoss:
    """Mean loss plus a quadratic penalty."""

    read: Pass
    features: tuple[str, ...]  # d names
    anchor: Anchor
    loss: Loss
    coordinates: Coordinates | ScaledCoordinates
    penalty: Floats | None  # (q, q) Q, or (q,) its diagonal; None: no penalty

    def evaluate(self, theta: Floats, *, want: Want = "gradient") -> Point:
        """Return the value and the derivatives at theta, by one pass over the rows."""
        slope = self.read(self._reading(theta, want))
        value = slope.loss / slope.weight
        gradient = self.coordinates.gradient(slope.gradient) / slope.weight
        curvature = None
        if want == "curvature" and slope.curvature is not None:
            curvature = self.coordinates.curvature(slope.curvature) / slope.weight
        if self.penalty is None:
            return Point(theta, value, gradient, curvature, slope)
        is_matrix = self.penalty.ndim == 2
        penalty_gradient = self.penalty @ theta if is_matrix else self.penalty[:, None] * theta
        if curvature is not None:
            penalty_matrix = self.penalty if is_matrix else np.diag(self.penalty)
            curvature = curvature + np.kron(np.eye(theta.shape[1]), penalty_matrix)
        value += 0.5 * float((theta * penalty_gradient).sum())
        return Point(theta, value, gradient + penalty_gradient, curvature, slope)

    def _reading(self, theta: Floats, want: Want) -> Any:
        coordinates = self.coordinates
        if not isinstance(coordinates, Coordinates):
            coefficients = coordinates.coefficients(theta)
            return LossReading(self.features, self.anchor, *coefficients, self.loss, want)
        coefficients = coordinates.summed.coefficients(theta)
        return coordinates.reading(
            self.features,
            self.anchor,
            lambda anchor: LossReading(self.features, anchor, *coefficients, self.loss, want),
        )


@dataclass(frozen=True, slots=True, eq=False)
class OptimisationResult:
    """Result of a minimisation."""

    theta: Floats  # (q, m)
    point: Point  # last point evaluated; theta may be one Newton step further
    converged: bool
    decrement: float
    path: tuple[float, ...] = field(default=())  # value in each pass, also of rejected steps

    @property
    def passes(self) -> int:
        """Number of passes over the rows."""
        return len(self.path)


class Trace:
    """Evaluates an objective, counts the passes, and reports progress."""

    def __init__(self, objective: Objective, max_passes: int, progress: Progress | None) -> None:
        self.objective, self.max_passes, self.progress = objective, max_passes, progress
        self.path: list[float] = []

    def evaluate(self, theta: Floats, *, want: Want = "gradient") -> Point:
        point = self.objective.evaluate(theta, want=want)
        self.path.append(point.value)
        if self.progress is not None:
            self.progress(len(self.path), point.value, point.max_gradient)
        return point

    @property
    def remaining(self) -> int:
        return max(self.max_passes - len(self.path), 0)

    @property
    def exhausted(self) -> bool:
        return not self.remaining

    def result(
        self, point: Point, decrement: float, theta: Floats | None = None
    ) -> OptimisationResult:
        within = point.max_gradient <= GRADIENT and decrement <= DECREMENT
        converged = within and bool(np.isfinite(point.value))
        final = point.theta if theta is None else theta
        return OptimisationResult(final, point, converged, decrement, tuple(self.path))


def newton_descent(
    objective: Objective,
    start: Floats,
    *,
    max_passes: int = 100,
    progress: Progress | None = None,
    tolerance: float = GRADIENT,
    skip_confirmation: bool = False,
    stop: Callable[[Point], bool] | None = None,
    reuse_curvature: bool = False,
    approximation: CurvatureApproximation | None = None,
) -> OptimisationResult:
    """Minimise by Newton steps with a line search.

    If the loss returns its expected curvature, this is Fisher scoring. When both criteria are met,
    one more step is taken without another pass over the rows, which squares the remaining error.
    A `tolerance` larger than that of the criteria also applies to the decrement.
    With `skip_confirmation` the iteration ends as soon as the criteria are proved to hold after the
    next step; this requires a loss for which the bounds of `gradient_bounds_after_newton_step`
    hold. The iteration ends early at a point for which `stop` returns True. With `reuse_curvature`
    a curvature that takes long to compute is used for several steps. Reusing the curvature takes
    more passes over the rows, but less time if the rows are in memory. If an `approximation` of the
    curvature near the start is given, the first steps use it, so that the exact curvature is not
    computed before a point near the minimum is reached. The result contains the curvature at its
    point, unless the value there is infinite or `stop` returned True.
    """
    trace = Trace(objective, max_passes, progress)
    least_decrement = DECREMENT if tolerance <= GRADIENT else tolerance
    if approximation is None or max_passes < _FEWEST_APPROXIMATE:
        point = trace.evaluate(start, want="curvature")
    else:
        first = trace.evaluate(start)
        if not np.isfinite(first.value):
            return trace.result(first, np.inf)
        near = _descend_with_fixed_curvature(
            trace,
            first,
            approximation,
            stop,
            target=np.sqrt(_SMALL_GRADIENT * tolerance / _QUADRATIC),
            good_reduction=_GIVEN_REDUCTION,
        )
        point = trace.evaluate(start, want="curvature") if near is None else near
    while point.curvature is not None:
        step = -exact_curvature(point).solve(point.gradient)
        decrement = -0.5 * float((point.gradient * step).sum())
        if point.max_gradient <= tolerance and decrement <= least_decrement:
            return trace.result(point, decrement, point.theta + step)
        if skip_confirmation:
            next_gradient, next_decrement = gradient_bounds_after_newton_step(point, decrement)
            if next_gradient <= tolerance and next_decrement <= DECREMENT:
                return replace(
                    trace.result(point, next_decrement, point.theta + step), converged=True
                )
        if trace.exhausted or (stop is not None and stop(point)):
            return trace.result(point, decrement)
        is_expensive = point.slope.rows * point.theta.size**2 > _CHEAP_PRODUCTS
        if reuse_curvature and is_expensive and trace.remaining > 1:
            target = _SMALL_GRADIENT * tolerance
            if _QUADRATIC * point.max_gradient**2 <= target:
                next_point = line_search(trace, point, step, want="curvature")
            else:
                next_point = _descend_with_fixed_curvature(
                    trace, point, exact_curvature(point), stop, target=target
                )
        else:
            next_point = line_search(trace, point, step, want="curvature")
        if next_point is None:
            return trace.result(point, decrement)
        point = next_point
    return trace.result(point, np.inf)  # `stop` ended the steps with a fixed curvature


def _descend_with_fixed_curvature(
    trace: Trace,
    point: Point,
    curvature: CurvatureApproximation,
    stop: Callable[[Point], bool] | None,
    *,
    target: float,
    good_reduction: float = _GOOD_REDUCTION,
) -> Point | None:
    """Take steps with a fixed curvature, corrected as in L-BFGS, as long as steps succeed.

    A pass that computes only the gradient takes a fraction of the time of a pass that also computes
    the curvature. The steps end when the next one is expected to reduce the gradient to `target`,
    judging by the previous step, or when a step was not good. The pass of the last step also
    computes the curvature; one of the remaining passes is reserved for it. Return the last point
    with its curvature, or None if no step is accepted. A point for which `stop` returns True is
    returned without its curvature.
    """
    pairs, last, is_last = list[CorrectionPair](), None, False
    while trace.remaining > 1:
        step = _two_loops(point.gradient, pairs, curvature)
        want: Want = "curvature" if is_last else "gradient"
        next_point = line_search(trace, point, step, want=want, reserved=1)
        if next_point is None:
            break
        reduction = next_point.max_gradient / point.max_gradient
        pair = CorrectionPair(next_point.theta - point.theta, next_point.gradient - point.gradient)
        if pair.product > 0:
            pairs.append(pair)
        last = point = next_point
        if stop is not None and stop(point):
            return last
        if is_last:
            break
        expected = reduction * point.max_gradient
        is_last = reduction > good_reduction or expected <= target
    if last is None or last.curvature is not None:
        return last
    return trace.evaluate(last.theta, want="curvature")


def gradient_bounds_after_newton_step(point: Point, decrement: float) -> tuple[float, float]:
    """Return upper bounds of the largest gradient and of the decrement after a full Newton step.

    The largest gradient means its largest absolute component. The bounds hold for the logit
    and softmax losses. For a row, the range of a step is the largest minus the smallest change of
    its scores. The third derivative of these losses along a step is at most its range times the
    second derivative. If the range is at most r for all rows, the curvature changes by a factor
    between exp(-r) and exp(r) (Bach 2010), so the step multiplies the norm of the gradient, sqrt(g'
    H^-1 g), by at most (exp(r) - 1 - r) / r. The range r is at most sqrt(2 g'H^-1 g / least), since
    the curvature of a row never exceeds H.
    """
    assert point.curvature is not None
    weight, least = point.slope.weight, point.slope.least
    norm = np.sqrt(2.0 * weight * max(decrement, 0.0))
    r = norm * np.sqrt(2.0 / least) if 0 < least < np.inf else np.inf
    if not r < 1.0:
        return np.inf, np.inf
    after = norm * (np.expm1(r) - r) / r if r > 0 else 0.0
    largest = float(np.diagonal(point.curvature).max())
    return after * np.sqrt(np.exp(r) * largest / weight), 0.5 * after**2 * np.exp(r) / weight


def lbfgs(
    objective: Objective,
    start: Floats,
    *,
    sketch: Callable[[Point], CurvatureApproximation],
    resketch_after: int | None = 2,
    max_passes: int = 1000,
    progress: Progress | None = None,
    tolerance: float = GRADIENT,
    accept: Callable[[Point], bool] | None = None,
    step_factor: Callable[[Floats], float] | None = None,
    memory: int = _PAIRS,
    stop: Callable[[Point], bool] | None = None,
) -> OptimisationResult:
    """Minimise by L-BFGS: the last passes correct a sketch (approximation) of the curvature.

    Parameters
    ----------
    objective
        Function to minimise.
    start
        (q, m) starting point.
    sketch
        Function that returns a curvature model at a point. The function is called at the start,
        after `resketch_after` steps, and after every 20th step, since the curvature may have
        changed. If `resketch_after` is None, the function is called before every step.
    max_passes
        Maximum number of passes over the rows.
    progress
        Callback that is called after each pass.
    tolerance
        Largest absolute component of the gradient at which the iteration stops.
    accept
        Function that returns whether a converged point is accepted. If the result is rejected, the
        iteration continues with a hundredth of the tolerance, at most twice.
    step_factor
        Function that returns the factor, at most one, by which to shorten a step.
    memory
        Maximum number of earlier passes by which the sketch is corrected.
    stop
        The iteration ends early at a point for which this function returns True.
    """
    trace = Trace(objective, max_passes, progress)
    point = trace.evaluate(start)
    curvature, pairs, final_tolerance = sketch(point), list[CorrectionPair](), 1e-4 * tolerance
    scale, too_long = 1.0, False
    for iteration in count():
        is_old = iteration > 0 and iteration % _SKETCH_STEPS == 0
        if iteration == resketch_after or resketch_after is None or is_old:
            curvature = sketch(point)
        step = _two_loops(point.gradient, pairs, curvature, scale)
        decrement = -0.5 * float((point.gradient * step).sum())
        if point.max_gradient <= tolerance and decrement <= DECREMENT:
            if accept is None or tolerance <= final_tolerance or accept(point):
                return trace.result(point, decrement)
            tolerance *= 0.01
        if trace.exhausted or (stop is not None and stop(point)):
            return trace.result(point, decrement)
        if step_factor is not None:
            step *= step_factor(step)
        passes = len(trace.path)
        next_point = line_search(trace, point, step, want="gradient")
        if next_point is None and not pairs:
            return trace.result(point, decrement)
        if next_point is None:  # the curvature is wrong: restart from a sketch
            curvature, pairs, scale, too_long = sketch(point), [], 1.0, False
            continue
        too_long = too_long or len(trace.path) > passes + 1
        pair = CorrectionPair(next_point.theta - point.theta, next_point.gradient - point.gradient)
        if pair.product > 0:
            pairs = [*pairs[-memory + 1 :], pair]
            if too_long:
                scale = min(1.0, pair.product / pair.predicted_product(curvature))
        point = next_point
    raise AssertionError("unreachable")


def gradient_descent(
    objective: Objective,
    start: Floats,
    *,
    scale: float,
    max_passes: int = 10000,
    progress: Progress | None = None,
) -> OptimisationResult:
    """Minimise by gradient steps -gradient / scale; `scale` is an upper bound of the curvature."""
    trace = Trace(objective, max_passes, progress)
    point = trace.evaluate(start)
    while True:
        step = -point.gradient / scale
        decrement = -0.5 * float((point.gradient * step).sum())
        if (point.max_gradient <= GRADIENT and decrement <= DECREMENT) or trace.exhausted:
            return trace.result(point, decrement)
        next_point = line_search(trace, point, step, want="gradient")
        if next_point is None:
            return trace.result(point, decrement)
        point = next_point


class CorrectionPair:
    """A step and the change of the gradient along it."""

    def __init__(self, move: Floats, change: Floats) -> None:
        self.move, self.change = move, change
        self.product = float((move * change).sum())

    def predicted_product(self, curvature: CurvatureApproximation) -> float:
        """Return the product of step and gradient change that the given curvature predicts."""
        return float((self.change * curvature.solve(self.change)).sum())


def _two_loops(
    gradient: Floats,
    pairs: list[CorrectionPair],
    curvature: CurvatureApproximation,
    scale: float = 1.0,
) -> Floats:
    """Return the L-BFGS step. The inverse of `curvature` is multiplied by `scale`."""
    direction, weights = gradient.copy(), []
    for pair in reversed(pairs):
        weights.append(float((pair.move * direction).sum()) / pair.product)
        direction -= weights[-1] * pair.change
    direction = curvature.solve(direction)
    if scale != 1.0:
        direction *= scale
    for pair, weight in zip(pairs, reversed(weights), strict=True):
        direction += (weight - float((pair.change * direction).sum()) / pair.product) * pair.move
    return -direction


def line_search(
    trace: Trace, point: Point, step: Floats, *, want: Want, reserved: int = 0
) -> Point | None:
    """Return the first point, among shorter and shorter steps, that decreases the value enough.

    Near the minimum, values differ only by rounding errors, so a point with a smaller gradient is
    accepted too. Return None if no step is accepted before only `reserved` passes remain.
    """
    slope = float((point.gradient * step).sum())
    if not slope < 0:
        return None
    factor = 1.0
    for _ in range(_HALVINGS):
        after = trace.evaluate(point.theta + factor * step, want=want)
        if np.isfinite(after.value):
            rounding = 1e-14 * max(1.0, abs(point.value))
            if after.value <= point.value + _ARMIJO * factor * slope:
                return after
            if after.value <= point.value + rounding and after.max_gradient < point.max_gradient:
                return after
        if trace.remaining <= reserved:
            return None
        factor *= _step_factor(point.value, factor * slope, after.value)
    return None


def _step_factor(value: float, slope: float, after: float) -> float:
    """Return the factor by which to shorten a step.

    The shorter step ends at the minimum of the parabola that passes through both values and has the
    given slope at the start. The factor is restricted to values from 0.05 to 0.5.
    """
    excess = after - value - slope
    if not np.isfinite(excess) or excess <= 0:
        return 0.5 if np.isfinite(excess) else 0.1
    return float(np.clip(-0.5 * slope / excess, 0.05, 0.5))
