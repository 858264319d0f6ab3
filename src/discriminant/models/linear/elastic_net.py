"""Elastic net: logistic regression with a ridge and a lasso penalty.

    minimise  mean loss  +  ridge ( (1 - l1_ratio) / 2 sum (sd_j coef_j)^2
                                    + l1_ratio sum |sd_j coef_j| )

as in glmnet: two classes have one score; K > 2 classes have K scores, each with its own
coefficients (symmetric, ungrouped). Adding the same term to the scores of all classes changes the
penalty but not the loss, so the penalty determines this term, and the K coefficients of a column
need not sum to zero. A common term of the intercepts is arbitrary; it is chosen so that the scores
of a row at the column means sum to zero. If l1_ratio is 1 and K is even, the minimum is not unique:
the K coefficients of a column may be shifted by a common term, between the two shifts at which one
of their two medians is zero. Unless several coefficients are zero, the shift that gives the smaller
sum of squares is used.

The optimiser works on scaled and centred columns, which does not change the penalty:
theta_j = size_j coef_j, and sd_j is replaced by sd_j / size_j. The objective is

    f(theta) = loss(theta) / weight  +  sum_j steep_j |theta_j|^2 / 2  +  sum_j corner_j |theta_j|_1

Every evaluation is one pass over the rows, as in `linear.optimise`. The smallest subgradient
replaces the gradient. It is zero only at the minimum, and the fit has converged if all its entries
satisfy

    theta_jk = 0     |slope_jk| - corner_j, or 0 if this is negative
    else             |slope_jk + corner_j sign theta_jk|             <= 1e-8

`proximal_newton` computes the curvature, and steps to the minimum of the quadratic approximation of
the loss plus the l1 penalty (`L1Quadratic`). `orthant_lbfgs` uses only gradients (Andrew & Gao
2007): no coordinate changes its sign within a step, and the curvature of the non-zero coordinates
is approximated from the last passes. `proximal_gradient` is accelerated descent (Beck & Teboulle
2009) with restarts (O'Donoghue & Candes 2015).

`L1Quadratic` solves the subproblem of one step of `proximal_newton`, for which no rows are read:

    minimise over x    g'(x - x0)  +  (x - x0)' H (x - x0) / 2  +  sum_i a_i |x_i|

If the signs of x were known, this would be a linear system. Therefore the signs are guessed, and
the guess is improved iteratively. A face is the set of all x with given signs, some of which are
zero. Each iteration does two things:

    zeros that should move      those with a large subgradient move together: each makes its own
                                best step, divided by their number, which decreases the value by
                                convexity
    Newton step on the face     it goes as far as the signs do not change; a coordinate that would
                                change its sign becomes zero

Every iteration decreases the value and the minimum on a face is reached at most once, so the
iteration ends. The result is exact: a coordinate that is not in the model is exactly zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.linalg.lapack import dposv

from discriminant.errors import ConstantColumnWarning, warn
from discriminant.models.gaussian.covariance import rounding_variance
from discriminant.models.linear.logistic import (
    FEW_COEFFICIENTS,
    NEAR_ZERO,
    SLOW_TOLERANCE,
    SOME_COEFFICIENTS,
    LogisticFit,
    LogisticOptions,
    shift_progress,
)
from discriminant.models.linear.optimise import (
    DECREMENT,
    GRADIENT,
    OptimisationResult,
    PenalisedLoss,
    Point,
    Progress,
    Trace,
)
from discriminant.models.linear.preconditioning import ScaledCoordinates
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.loss_gradient_sums import Pass, Want
from discriminant.moments.qr_factor import ColumnSums
from discriminant.moments.softmax_loss import BinaryLoss, SoftmaxLoss
from discriminant.table.blocks import Floats

_TURNS = 1000  # largest number of iterations of `L1Quadratic.minimise`
_STRONG_SHARE = 0.5  # zeros move if their subgradient is at least this share of the largest
_DIAGONAL_RIDGE = 1e-12  # added to the unit diagonal of the curvature, since columns may be equal
_FLAT = 1e-12  # smaller eigenvalues of the curvature, relative to the largest, are rounding errors
_TINY = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class L1Quadratic:
    """Quadratic function plus an l1 penalty."""

    gradient: Floats  # (n,) g, the gradient at x0
    curvature: Floats  # (n, n) H, positive semidefinite
    corner: Floats  # (n,) a, the l1 penalties; zero for a coordinate that is not penalised
    origin: Floats  # (n,) x0

    def value(self, x: Floats) -> float:
        """Return the value at x."""
        step = x - self.origin
        quadratic = 0.5 * float(step @ (self.curvature @ step))
        return float(self.gradient @ step) + quadratic + float(self.corner @ np.abs(x))

    def slope(self, x: Floats) -> Floats:
        """Return the (n,) gradient of the quadratic part at x."""
        return self.gradient + self.curvature @ (x - self.origin)

    def minimise(self, *, tolerance: float) -> Floats:
        """Return the (n,) minimiser. The search starts at x0."""
        x, value, slope = self.origin, np.inf, self.gradient
        least = subgradient(slope, x, self.corner)
        for _ in range(_TURNS):
            x = self._minimise_on_face(*self._activate_zeros(x, slope, least))
            slope = self.slope(x)
            least = subgradient(slope, x, self.corner)
            if np.abs(least).max(initial=0.0) <= tolerance:
                break
            before, value = value, self.value(x)
            if not value < before:
                break
        return x

    def _activate_zeros(self, x: Floats, slope: Floats, least: Floats) -> tuple[Floats, Floats]:
        """Return x after a small step along zero coordinates with a large subgradient, and the
        slope there.
        """
        curvature = np.diagonal(self.curvature)
        strength = np.abs(least) * ((x == 0) & (curvature > 0))
        strongest = strength.max(initial=0.0)
        if not strongest > 0:
            return x, slope
        enter = np.flatnonzero(strength >= _STRONG_SHARE * strongest)
        moved = x.copy()
        moved[enter] = -least[enter] / curvature[enter] / len(enter)
        return moved, self.slope(moved)

    def _minimise_on_face(self, x: Floats, slope: Floats) -> Floats:
        """Return the minimiser on the face of x, or on a smaller face if a sign would change."""
        for _ in range(len(x) + 1):
            step = self._newton(x, slope)
            after = x + step
            changing = (x * after <= 0) & (x != 0) & (self.corner > 0)
            if not changing.any():
                return after
            truncated = np.where((x * after <= 0) & (self.corner > 0), 0.0, after)
            at_zero = _to_first_zero(x, step, changing)  # still on the face
            x = truncated if self.value(truncated) < self.value(at_zero) else at_zero
            slope = self.slope(x)
        return x

    def _newton(self, x: Floats, slope: Floats) -> Floats:
        """Return the (n,) Newton step from x to the minimum on its face.

        Signs are assumed not to change, and penalised coordinates that are zero stay zero.
        """
        curvature = np.diagonal(self.curvature)
        active = np.flatnonzero((x != 0) | ((self.corner == 0) & (curvature > 0)))
        step = np.zeros_like(x)
        if len(active):
            downhill = slope[active] + self.corner[active] * np.sign(x[active])
            face = (
                self.curvature if len(active) == len(x) else self.curvature[active[:, None], active]
            )
            step[active] = -_solve_regularised(face, downhill)
        return step


def _solve_regularised(curvature: Floats, slope: Floats) -> Floats:
    """Return the (n,) solution H^-1 g, computed with H scaled to a unit diagonal.

    If H is singular, directions without curvature are left out.
    """
    size = np.sqrt(np.maximum(np.diagonal(curvature), _TINY))
    standard = curvature / size[:, None] / size
    standard.ravel()[:: len(size) + 1] += _DIAGONAL_RIDGE
    _, solution, info = dposv(standard, slope / size)  # thousands of small systems: no wrappers
    if info == 0:
        return np.asarray(solution / size)
    values, vectors = eigh(standard)
    positive = values > _FLAT * values[-1]
    directions = vectors[:, positive]
    return np.asarray(directions @ ((directions.T @ (slope / size)) / values[positive]) / size)


def subgradient(slope: Floats, x: Floats, corner: Floats) -> Floats:
    """Return the smallest subgradient at x of a smooth function plus sum_i corner_i |x_i|.

    `slope` is the gradient of the smooth function at x. The result is zero only at the minimum.

    >>> subgradient(np.array([-3.0, 0.5]), np.zeros(2), np.ones(2)).tolist()
    [-2.0, 0.0]
    """
    at_corner = np.sign(slope) * np.maximum(np.abs(slope) - corner, 0.0)
    return np.asarray(np.where(x == 0, at_corner, slope + corner * np.sign(x)))


def _to_first_zero(x: Floats, step: Floats, changing: npt.NDArray[np.bool_]) -> Floats:
    """Return the first point along `step` at which one of the `changing` coordinates is zero."""
    indices = np.flatnonzero(changing)
    factors = -x[indices] / step[indices]
    point = x + factors.min() * step
    point[indices[factors == factors.min()]] = 0.0
    return np.asarray(point)


_ARMIJO = 1e-4
_HALVINGS = 40
_PAIRS = 20
_ROUNDING = 1e-14  # smaller relative differences of values count as zero


@dataclass(frozen=True, slots=True, eq=False)
class SubgradientPoint(Point):
    """Point at which the field `gradient` holds the smallest subgradient."""

    smooth: Floats  # (q, m) gradient of the loss plus the ridge, without the l1 penalty


@dataclass(frozen=True, slots=True, eq=False)
class L1PenalisedLoss:
    """Mean loss with a ridge and a lasso penalty."""

    plain: PenalisedLoss  # loss plus the ridge
    corner: Floats  # (q, 1) l1 penalty of each coordinate

    def evaluate(self, theta: Floats, *, want: Want = "gradient") -> SubgradientPoint:
        """Return the value and the derivatives at theta, by one pass over the rows."""
        point = self.plain.evaluate(theta, want=want)
        value = point.value + float((self.corner * np.abs(theta)).sum())
        least = subgradient(point.gradient, theta, self.corner)
        return SubgradientPoint(theta, value, least, point.curvature, point.slope, point.gradient)


class _ProximalTrace(Trace):
    """Trace with the criteria for convergence and for accepting a step, given an l1 penalty."""

    def __init__(
        self,
        objective: L1PenalisedLoss,
        max_passes: int,
        tolerance: float,
        progress: Progress | None,
    ) -> None:
        super().__init__(objective, max_passes, progress)
        self.corner, self.tolerance = objective.corner, tolerance

    def evaluate(self, theta: Floats, *, want: Want = "gradient") -> SubgradientPoint:
        point = super().evaluate(theta, want=want)
        assert isinstance(point, SubgradientPoint)
        return point

    def done(self, point: SubgradientPoint, decrement: float) -> bool:
        return point.max_gradient <= self.tolerance and decrement <= DECREMENT

    def better(self, point: SubgradientPoint, after: SubgradientPoint, decrease: float) -> bool:
        """Return whether the step from `point` to `after` is accepted.

        A step is accepted if the value decreases by at least a small share of the predicted change
        `decrease`, which is negative. Near the minimum, values differ only by rounding errors, so a
        point with a smaller subgradient is accepted too.
        """
        if not np.isfinite(after.value):
            return False
        if decrease < 0 and after.value <= point.value + _ARMIJO * decrease:
            return True
        rounding = _ROUNDING * max(1.0, abs(point.value))
        return after.value <= point.value + rounding and after.max_gradient < point.max_gradient


# --- Newton ---------------------------------------------------------------------------------------


def proximal_newton(
    objective: L1PenalisedLoss,
    start: Floats,
    *,
    max_passes: int = 100,
    progress: Progress | None = None,
    tolerance: float = GRADIENT,
) -> OptimisationResult:
    """Minimise by proximal Newton steps with a line search.

    A step goes to the minimum of the quadratic approximation of the loss plus the penalty. At
    convergence one more step is taken without a pass over the rows, as in `newton_descent`.
    """
    trace = _ProximalTrace(objective, max_passes, tolerance, progress)
    point = trace.evaluate(start, want="curvature")
    while True:
        minimum = _quadratic_minimum(point, objective.corner)
        step = minimum - point.theta
        penalty_change = float((objective.corner * (np.abs(minimum) - np.abs(point.theta))).sum())
        decrease = float((point.smooth * step).sum()) + penalty_change
        decrement = -0.5 * decrease
        if trace.done(point, decrement):
            return trace.result(point, decrement, minimum)
        next_point = None if trace.exhausted else _line_search(trace, point, step, decrease)
        if next_point is None:
            return trace.result(point, decrement)
        point = next_point


def _quadratic_minimum(point: SubgradientPoint, corner: Floats) -> Floats:
    """Return the (q, m) minimiser of the quadratic approximation of the loss plus the penalty."""
    assert point.curvature is not None
    q, m = point.theta.shape
    model = L1Quadratic(
        point.smooth.T.ravel(),
        point.curvature,
        np.tile(corner.ravel(), m),
        point.theta.T.ravel(),
    )
    return model.minimise(tolerance=1e-4 * min(point.max_gradient, GRADIENT)).reshape(m, q).T


def _line_search(
    trace: _ProximalTrace, point: SubgradientPoint, step: Floats, decrease: float
) -> SubgradientPoint | None:
    factor = 1.0
    for _ in range(_HALVINGS):
        after = trace.evaluate(point.theta + factor * step, want="curvature")
        if trace.better(point, after, factor * decrease):
            return after
        if trace.exhausted:
            return None
        factor *= 0.5 if np.isfinite(after.value) else 0.1
    return None


# --- first-order methods --------------------------------------------------------------------------


def orthant_lbfgs(
    objective: L1PenalisedLoss,
    start: Floats,
    *,
    scale: Floats,
    max_passes: int = 1000,
    progress: Progress | None = None,
    tolerance: float = GRADIENT,
) -> OptimisationResult:
    """Minimise by L-BFGS steps within orthants: no coordinate changes its sign within a step.

    `scale` (q, m) is the approximate diagonal of the curvature of the loss plus the ridge.
    """
    trace = _ProximalTrace(objective, max_passes, tolerance, progress)
    point, pairs = trace.evaluate(start), list[_CorrectionPair]()
    while True:
        step = _direction(point, pairs, scale, objective.corner)
        decrement = -0.5 * float((point.gradient * step).sum())
        if trace.done(point, decrement) or trace.exhausted:
            return trace.result(point, decrement)
        next_point = _within_orthant(trace, point, step)
        if next_point is not None:
            pairs = [*pairs[-_PAIRS + 1 :], _CorrectionPair.between(point, next_point)]
            point = next_point
        elif pairs:  # the curvature is wrong: restart
            pairs = []
        else:
            return trace.result(point, decrement)


@dataclass(frozen=True, slots=True, eq=False)
class _CorrectionPair:
    """A step, and the change of the gradient of the penalised loss over that step."""

    move: Floats  # (q, m)
    change: Floats  # (q, m)

    @classmethod
    def between(cls, point: SubgradientPoint, after: SubgradientPoint) -> _CorrectionPair:
        return cls(after.theta - point.theta, after.smooth - point.smooth)


def _direction(
    point: SubgradientPoint, pairs: list[_CorrectionPair], scale: Floats, corner: Floats
) -> Floats:
    """Return a (q, m) descent direction.

    Coordinates that are zero, and whose subgradient is zero, do not move.
    """
    gradient = point.gradient
    active = (point.theta != 0) | (gradient != 0)
    step = -_two_loops(gradient, pairs, scale, active)
    uphill = (point.theta == 0) & (corner > 0) & (step * gradient >= 0)
    step = np.where(uphill, 0.0, step)
    if float((step * gradient).sum()) < 0:
        return np.asarray(step)
    return np.asarray(-gradient / scale)


def _two_loops(
    gradient: Floats, pairs: list[_CorrectionPair], scale: Floats, active: npt.NDArray[np.bool_]
) -> Floats:
    """Return the (q, m) L-BFGS direction restricted to the active coordinates."""
    direction, used, ratio = gradient.copy(), list[tuple[Floats, Floats, float, float]](), 1.0
    for pair in reversed(pairs):
        move, change = np.where(active, pair.move, 0.0), np.where(active, pair.change, 0.0)
        product, norm = (float((move * change).sum()), float((change * change / scale).sum()))
        if not product > 1e-10 * norm:
            continue
        ratio = ratio if used else product / norm
        coefficient = float((move * direction).sum()) / product
        direction -= coefficient * change
        used.append((move, change, product, coefficient))
    direction *= ratio / scale
    for move, change, product, coefficient in reversed(used):
        direction += (coefficient - float((change * direction).sum()) / product) * move
    return direction


def _within_orthant(
    trace: _ProximalTrace, point: SubgradientPoint, step: Floats
) -> SubgradientPoint | None:
    """Try shorter and shorter steps; return the first accepted point, or None.

    Coordinates that would change their sign are set to zero.
    """
    side = np.where(point.theta == 0, -np.sign(point.gradient), np.sign(point.theta))
    factor = 1.0
    for _ in range(_HALVINGS):
        theta = point.theta + factor * step
        crossing = (trace.corner > 0) & (theta * side <= 0)
        theta = np.where(crossing, 0.0, theta)
        after = trace.evaluate(theta)
        if trace.better(point, after, float((point.gradient * (theta - point.theta)).sum())):
            return after
        if trace.exhausted:
            return None
        factor *= 0.5 if np.isfinite(after.value) else 0.1
    return None


def proximal_gradient(
    objective: L1PenalisedLoss,
    start: Floats,
    *,
    scale: Floats,
    max_passes: int = 10000,
    progress: Progress | None = None,
) -> OptimisationResult:
    """Minimise by accelerated proximal gradient steps. Steps that overshoot are shortened."""
    trace = _ProximalTrace(objective, max_passes, GRADIENT, progress)
    point = extrapolated = trace.evaluate(start)
    curvature, momentum = float(scale.max()), 1.0
    while point.max_gradient > GRADIENT and not trace.exhausted:
        theta = _soft_threshold(
            extrapolated.theta - extrapolated.smooth / curvature, objective.corner / curvature
        )
        after, step = trace.evaluate(theta), theta - extrapolated.theta
        if _overshoots(extrapolated, after, step, curvature, objective.corner):
            curvature *= 2.0
            continue
        progress_step = theta - point.theta
        next_momentum = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        extrapolation = (momentum - 1.0) / next_momentum
        if float((step * progress_step).sum()) < 0:  # restart
            next_momentum, extrapolation = 1.0, 0.0
        point, momentum = after, next_momentum
        extrapolated = (
            after
            if extrapolation == 0 or trace.exhausted
            else trace.evaluate(theta + extrapolation * progress_step)
        )
    return trace.result(point, 0.5 * float((point.gradient**2).sum()) / curvature)


def _soft_threshold(theta: Floats, corner: Floats) -> Floats:
    return np.asarray(np.sign(theta) * np.maximum(np.abs(theta) - corner, 0.0))


def _overshoots(
    start: SubgradientPoint, after: SubgradientPoint, step: Floats, curvature: float, corner: Floats
) -> bool:
    """Return whether the loss after a step exceeds its quadratic upper bound.

    The bound assumes that the curvature is at most `curvature`.
    """
    smooth = after.value - float((corner * np.abs(after.theta)).sum())
    before = start.value - float((corner * np.abs(start.theta)).sum())
    bound = before + float((start.smooth * step).sum()) + 0.5 * curvature * float((step**2).sum())
    rounding = _ROUNDING * max(1.0, abs(before))
    return not smooth <= bound + rounding


# L-BFGS makes half as many passes as there are coefficients, but within these limits, before Newton
# steps are tried.
_PATIENCE = 32, 200


@dataclass(frozen=True, slots=True, eq=False)
class ColumnScales:
    """Means and standard deviations of the columns, for offsets from an anchor."""

    features: tuple[str, ...]  # d names
    anchor: Anchor
    mean: Floats  # (d,)
    spread: Floats  # (d,) standard deviation with the weight as denominator; 0 if constant
    weight: Floats  # (K,) weight of each class

    @classmethod
    def of_moments(cls, moments: ClassMoments, *, intercept: bool) -> ColumnScales:
        """Create from moments of detail 'diagonal'. Warn about constant columns."""
        total = moments.weight.sum()
        offsets = moments.mean - moments.centre
        variance = (moments.pooled + moments.weight @ offsets**2) / total
        constant = variance <= 4 * rounding_variance(moments.mean)
        spread = np.where(constant, 0.0, np.sqrt(variance))
        at_zero = Anchor(np.zeros_like(spread), moments.anchor.unit)
        centre = moments.centre + moments.anchor.shift_to(at_zero)
        useless = constant if intercept else constant & (centre == 0)
        if useless.any():
            names = np.array(moments.features, dtype=object)[useless].tolist()
            warn(ConstantColumnWarning.of_columns(names))
        if not intercept or (np.abs(centre) <= NEAR_ZERO * spread).all():
            return cls(moments.features, at_zero, centre, spread, moments.weight)
        return cls(moments.features, moments.anchor, moments.centre, spread, moments.weight)

    @classmethod
    def of_sums(
        cls, sums: ColumnSums, *, features: tuple[str, ...], weight: Floats
    ) -> ColumnScales:
        """Create from column sums about zero, for sparse rows with many features."""
        return cls(features, Anchor.zero(len(features)), sums.mean, sums.std, weight)

    def coordinates(self, *, intercept: bool) -> ScaledCoordinates:
        """Return coordinates in which every column has variance one.

        Without an intercept the columns have a mean square of one instead.
        """
        size = self.penalty_factors(standardize=True, intercept=intercept)
        return ScaledCoordinates.from_spread(size, self.mean, intercept=intercept)

    def penalty_factors(self, *, standardize: bool, intercept: bool) -> Floats:
        """Return the (d,) factors by which coefficients are multiplied in the penalty."""
        if not standardize:
            return np.asarray(1.0 / self.anchor.unit)
        return self.spread if intercept else np.hypot(self.spread, self.mean)


def fit_elastic_net(read: Pass, columns: ColumnScales, options: LogisticOptions) -> LogisticFit:
    """Fit logistic regression with an elastic-net penalty by passes over the rows.

    Parameters
    ----------
    read
        Function that passes over the rows: it sums over all blocks of rows what a reading computes
        for each block.
    columns
        Means and scales of the columns of the same rows.
    options
        Link, penalty, solver and limits.
    """
    K = len(columns.weight)
    loss = SoftmaxLoss(K) if K > 2 else BinaryLoss(options.link)
    coordinates = columns.coordinates(intercept=options.intercept)
    size = columns.penalty_factors(standardize=options.standardize, intercept=options.intercept)
    square = coordinates.penalty(size)  # (q,)
    ridge = options.ridge * (1.0 - options.l1_ratio) * square
    lasso = options.ridge * options.l1_ratio * np.sqrt(square)
    plain = PenalisedLoss(read, columns.features, columns.anchor, loss, coordinates, ridge)
    share = columns.weight / columns.weight.sum()
    descent = _descend(L1PenalisedLoss(plain, lasso[:, None]), share, options)
    theta = _fix_common_shift(descent.theta, coordinates.free, lasso=options.l1_ratio == 1)
    return LogisticFit(
        plain, coordinates, columns.anchor, replace(descent, theta=theta), overlap=True
    )


def _descend(
    objective: L1PenalisedLoss, share: Floats, options: LogisticOptions
) -> OptimisationResult:
    """Minimise with the solver that the options name.

    'auto' means Newton's method if there are few coefficients, else L-BFGS, followed by Newton
    steps if L-BFGS converges slowly.
    """
    tolerance = GRADIENT if options.link == "logit" else SLOW_TOLERANCE  # else expected
    start = _intercept_start(objective, share)
    max_passes, progress, solver = options.max_passes, options.progress, options.solver
    if solver == "newton" or (solver == "auto" and start.size <= FEW_COEFFICIENTS):
        return proximal_newton(
            objective, start, max_passes=max_passes, progress=progress, tolerance=tolerance
        )
    scale = _starting_curvature(objective, share)
    if solver == "gradient":
        return proximal_gradient(
            objective, start, scale=scale, max_passes=max_passes, progress=progress
        )
    auto = solver == "auto" and start.size <= SOME_COEFFICIENTS
    patience = min(max_passes, int(np.clip(start.size // 2, *_PATIENCE))) if auto else max_passes
    first = orthant_lbfgs(objective, start, scale=scale, max_passes=patience, progress=progress)
    remaining = max_passes - first.passes
    if first.converged or not auto or remaining < 1:
        return first
    second = proximal_newton(
        objective,
        first.theta,
        max_passes=remaining,
        progress=shift_progress(progress, first.passes),
        tolerance=tolerance,
    )
    return replace(second, path=first.path + second.path)


def _starting_curvature(objective: L1PenalisedLoss, share: Floats) -> Floats:
    """Return the (q, m) diagonal of the curvature of the loss plus the ridge, at zero slopes."""
    ridge = objective.plain.penalty
    assert ridge is not None
    variance = share * (1.0 - share)
    return np.asarray(ridge[:, None] + (variance if len(share) > 2 else variance[1:]))


def _intercept_start(objective: L1PenalisedLoss, share: Floats) -> Floats:
    """Return theta (q, m) with slopes of zero and intercepts that predict the class shares."""
    coordinates = objective.plain.coordinates
    level = np.log(share)
    level = level - level.mean() if len(share) > 2 else level[1:] - level[:1]
    start = np.zeros((coordinates.size, len(level)))
    start[: coordinates.free] = level
    return start


def _fix_common_shift(theta: Floats, free: int, *, lasso: bool) -> Floats:
    """Return theta (q, m) after fixing the terms that loss and penalty do not determine.

    Loss and penalty do not change if the intercepts of all classes are shifted by a common term;
    with a pure lasso, the coefficients of a column may be shifted too. The module docstring
    describes how these terms are chosen.
    """
    m = theta.shape[1]
    if m == 1:
        return theta
    shifted_theta = theta.copy()
    shifted_theta[:free] -= shifted_theta[:free].mean(axis=1, keepdims=True)
    if lasso and m % 2 == 0:
        middle = np.sort(shifted_theta[free:], axis=1)[:, m // 2 - 1 : m // 2 + 1]
        ambiguous = (middle[:, 0] < middle[:, 1]) & ((shifted_theta[free:] == 0).sum(axis=1) < 2)
        for j in np.flatnonzero(ambiguous):
            shifted = [shifted_theta[free + j] - median for median in middle[j]]
            shifted_theta[free + j] = min(shifted, key=lambda row: float(row @ row))
    return shifted_theta
