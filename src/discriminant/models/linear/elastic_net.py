"""Elastic net: logistic regression with a ridge and a lasso penalty.

    minimise  mean loss  +  ridge ( (1 - l1_ratio) / 2 sum (sd_j coef_j)^2
                                    + l1_ratio sum |sd_j coef_j| )

as glmnet does: two classes have one score, K classes have K, each with its coefficients (symmetric,
ungrouped). A score common to all classes changes the penalty but not the loss, so the penalty
determines it: the K coefficients of a column need not sum to zero. Intercepts, which nothing
determines, sum to zero where columns have their means. With l1_ratio 1 and K even, the K
coefficients of a column may be shifted from one of their two medians being zero to the other at the
same cost. Unless several are zero, the shift with the smaller sum of squares is used.

Columns are scaled and centred for the optimiser; the penalty is unchanged by that: theta_j = size_j
coef_j, and sd_j becomes sd_j / size_j. The objective is

    f(theta) = loss(theta) / weight  +  sum_j steep_j |theta_j|^2 / 2  +  sum_j corner_j |theta_j|_1

Every step is one pass over the rows, as in `linear.optimise`. In place of the gradient there is the
smallest subgradient, zero at the minimum only, with the same criterion:

    theta_jk = 0     |slope_jk| - corner_j, if more than zero
    else             |slope_jk + corner_j sign theta_jk|             <= 1e-8

`proximal_newton` computes the curvature and steps to the minimum of the quadratic with the l1
penalty (`L1Quadratic`). `orthant_lbfgs` uses gradients alone (Andrew & Gao 2007): it keeps the
signs of the last point, and learns the curvature of the non-zero coordinates from the last passes.
`proximal_gradient` is accelerated descent (Beck & Teboulle 2009) with restarts (O'Donoghue & Candes
2015).

`L1Quadratic` is one lasso step, without rows:

    minimise over x    g'(x - x0)  +  (x - x0)' H (x - x0) / 2  +  sum_i a_i |x_i|

Where the signs of x are known this is a linear system, so signs are guessed and the guess improved.
A face is the set of x with given signs and given zeros. In turn:

    zeros that should move      most do, at once: each takes its own best step, divided by their
                                number, which by convexity decreases the value
    Newton's step on the face   as far as signs are kept; a coordinate that would change sign
                                becomes zero

Every turn decreases the value and no face attains its minimum twice, so the iteration ends, and it
is exact: an excluded coordinate is exactly zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from discriminant.errors import ConstantColumnWarning, warn
from discriminant.models.gaussian.covariance import rounding_variance
from discriminant.models.linear.logistic import LogisticFit, LogisticOptions, shift_progress
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
from discriminant.moments.loss import Pass, Want
from discriminant.moments.qr_factor import ColumnSums
from discriminant.moments.softmax_loss import BinaryLoss, SoftmaxLoss
from discriminant.table.blocks import Floats

_TURNS = 1000
_DRAWN = 0.5  # of the strongest pull on any zero; the weaker are mostly gone when that has moved
_DUST = 1e-12  # added to the diagonal of the curvature, relatively: columns may be copies
_FLAT = 1e-12  # of the largest eigenvalue: a curvature that is rounding
_TINY = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class L1Quadratic:
    """What is to be made small."""

    gradient: Floats  # (n,) g, at x0
    curvature: Floats  # (n, n) H, positive semidefinite
    corner: Floats  # (n,) a, zero where a coordinate is free
    origin: Floats  # (n,) x0

    def value(self, x: Floats) -> float:
        """How much x costs."""
        step = x - self.origin
        curve = 0.5 * float(step @ (self.curvature @ step))
        return float(self.gradient @ step) + curve + float(self.corner @ np.abs(x))

    def slope(self, x: Floats) -> Floats:
        """(n,) gradient of the quadratic alone."""
        return self.gradient + self.curvature @ (x - self.origin)

    def minimise(self, *, goal: float) -> Floats:
        """(n,) the x that costs least, from x0 on."""
        x, value = self.origin, np.inf
        for _ in range(_TURNS):
            x = self._on_face(self._entered(x))
            steepest = np.abs(subgradient(self.slope(x), x, self.corner)).max(initial=0.0)
            before, value = value, self.value(x)
            if steepest <= goal or not value < before:
                break
        return x

    def _entered(self, x: Floats) -> Floats:
        """The coordinates that are zero and ought not to be, a little out."""
        pull = subgradient(self.slope(x), x, self.corner)
        curve = np.diagonal(self.curvature)
        drawn = np.abs(np.where((x == 0) & (curve > 0), pull, 0.0))
        ought = (drawn > 0) & (drawn >= _DRAWN * drawn.max())
        share = max(int(ought.sum()), 1)
        return np.asarray(np.where(ought, -pull / np.where(ought, curve, 1.0) / share, x))

    def _on_face(self, x: Floats) -> Floats:
        """Down the face that x is on, and its edges, to where no sign wants to change."""
        for _ in range(len(x) + 1):
            step = self._newton(x)
            after = x + step
            turned = (self.corner > 0) & (x * after <= 0)
            if not turned[x != 0].any():
                return after
            cut = np.where(turned, 0.0, after)
            edge = _to_edge(x, step, turned & (x != 0))  # until there this is the face itself
            x = cut if self.value(cut) < self.value(edge) else edge
        return x

    def _newton(self, x: Floats) -> Floats:
        """(n,) the step to the least of the quadratic that has these signs and zeros."""
        curve = np.diagonal(self.curvature)
        on = (x != 0) | ((self.corner == 0) & (curve > 0))
        step = np.zeros_like(x)
        if not on.any():
            return step
        slope = (self.slope(x) + self.corner * np.sign(x))[on]
        step[on] = -_solved(self.curvature[np.ix_(on, on)], slope)
        return step


def _solved(curvature: Floats, slope: Floats) -> Floats:
    """(n,) H^-1 g, judged on a diagonal of ones; along what is flat nothing is done."""
    size = np.sqrt(np.maximum(np.diagonal(curvature), _TINY))
    part = curvature / size[:, None] / size
    part[np.diag_indices_from(part)] += _DUST
    try:
        return np.asarray(cho_solve(cho_factor(part), slope / size) / size)
    except LinAlgError:
        values, vectors = eigh(part)
        some = values > _FLAT * values[-1]
        along = vectors[:, some]
        return np.asarray(along @ ((along.T @ (slope / size)) / values[some]) / size)


def subgradient(slope: Floats, x: Floats, corner: Floats) -> Floats:
    """The smallest subgradient at x of a smooth function with that slope plus sum corner |x|.

    It is zero at the least value and nowhere else.

    >>> subgradient(np.array([-3.0, 0.5]), np.zeros(2), np.ones(2)).tolist()
    [-2.0, 0.0]
    """
    at_corner = np.sign(slope) * np.maximum(np.abs(slope) - corner, 0.0)
    return np.asarray(np.where(x == 0, at_corner, slope + corner * np.sign(x)))


def _to_edge(x: Floats, step: Floats, turned: npt.NDArray[np.bool_]) -> Floats:
    """Along a step to where the first of those that would change sign is zero."""
    places = np.flatnonzero(turned)
    shares = -x[places] / step[places]
    edge = x + shares.min() * step
    edge[places[shares == shares.min()]] = 0.0
    return np.asarray(edge)


_ARMIJO = 1e-4
_HALVINGS = 40
_PAIRS = 20
_BLUR = 1e-14  # values that agree so far, relatively, are alike


@dataclass(frozen=True, slots=True, eq=False)
class SubgradientPoint(Point):
    """Somewhere on the trace; its gradient is the smallest subgradient."""

    smooth: Floats  # (q, m) gradient of loss and squares alone


@dataclass(frozen=True, slots=True, eq=False)
class L1PenalisedLoss:
    """Mean loss, squares and absolute values."""

    plain: PenalisedLoss  # the loss and the squares
    corner: Floats  # (q, 1)

    def evaluate(self, theta: Floats, *, want: Want = "gradient") -> SubgradientPoint:
        """One pass over the rows."""
        point = self.plain.evaluate(theta, want=want)
        value = point.value + float((self.corner * np.abs(theta)).sum())
        pull = subgradient(point.gradient, theta, self.corner)
        return SubgradientPoint(theta, value, pull, point.curvature, point.slope, point.gradient)


class _ProximalTrace(Trace):
    """Passes made, and whether a step was worth its pass."""

    def __init__(
        self, objective: L1PenalisedLoss, most: int, goal: float, progress: Progress | None
    ) -> None:
        super().__init__(objective, most, progress)
        self.corner, self.goal = objective.corner, goal

    def evaluate(self, theta: Floats, *, want: Want = "gradient") -> SubgradientPoint:
        point = super().evaluate(theta, want=want)
        assert isinstance(point, SubgradientPoint)
        return point

    def done(self, point: SubgradientPoint, decrement: float) -> bool:
        return point.max_gradient <= self.goal and decrement <= DECREMENT

    def better(self, point: SubgradientPoint, after: SubgradientPoint, fall: float) -> bool:
        """Whether a step that promised a fall (negative) kept some of it.

        Near the end values agree to rounding, and then a smaller gradient is as good.
        """
        if not np.isfinite(after.value):
            return False
        if fall < 0 and after.value <= point.value + _ARMIJO * fall:
            return True
        blur = _BLUR * max(1.0, abs(point.value))
        return after.value <= point.value + blur and after.max_gradient < point.max_gradient


# --- Newton ---------------------------------------------------------------------------------------


def proximal_newton(
    objective: L1PenalisedLoss,
    start: Floats,
    *,
    most: int = 100,
    progress: Progress | None = None,
    goal: float = GRADIENT,
) -> OptimisationResult:
    """Newton's steps to the least of the quadratic with corners, each halved until f falls.

    When the goal is met one more step is taken without reading the rows again, as in `newton`.
    """
    trace = _ProximalTrace(objective, most, goal, progress)
    point = trace.evaluate(start, want="curvature")
    while True:
        there = _least_near(point, objective.corner)
        step = there - point.theta
        rise = float((objective.corner * (np.abs(there) - np.abs(point.theta))).sum())
        fall = float((point.smooth * step).sum()) + rise
        decrement = -0.5 * fall
        if trace.done(point, decrement):
            return trace.result(point, decrement, there)
        after = None if trace.exhausted else _shortened(trace, point, step, fall)
        if after is None:
            return trace.result(point, decrement)
        point = after


def _least_near(point: SubgradientPoint, corner: Floats) -> Floats:
    """(q, m) where loss, taken for a quadratic, and penalty are least."""
    assert point.curvature is not None
    q, m = point.theta.shape
    near = L1Quadratic(
        point.smooth.T.ravel(),
        point.curvature,
        np.tile(corner.ravel(), m),
        point.theta.T.ravel(),
    )
    return near.minimise(goal=1e-4 * min(point.max_gradient, GRADIENT)).reshape(m, q).T


def _shortened(
    trace: _ProximalTrace, point: SubgradientPoint, step: Floats, fall: float
) -> SubgradientPoint | None:
    share = 1.0
    for _ in range(_HALVINGS):
        after = trace.evaluate(point.theta + share * step, want="curvature")
        if trace.better(point, after, share * fall):
            return after
        if trace.exhausted:
            return None
        share *= 0.5 if np.isfinite(after.value) else 0.1
    return None


# --- gradients alone ------------------------------------------------------------------------------


def orthant_lbfgs(
    objective: L1PenalisedLoss,
    start: Floats,
    *,
    scale: Floats,
    most: int = 1000,
    progress: Progress | None = None,
    goal: float = GRADIENT,
) -> OptimisationResult:
    """Steps that learn the curvature from the last passes, and keep to the signs they began with.

    `scale` (q, m): about how steep the loss and the squares are.
    """
    trace = _ProximalTrace(objective, most, goal, progress)
    point, pairs = trace.evaluate(start), list[_Pair]()
    while True:
        step = _direction(point, pairs, scale, objective.corner)
        decrement = -0.5 * float((point.gradient * step).sum())
        if trace.done(point, decrement) or trace.exhausted:
            return trace.result(point, decrement)
        after = _within_orthant(trace, point, step)
        if after is not None:
            pairs = [*pairs[-_PAIRS + 1 :], _Pair.between(point, after)]
            point = after
        elif pairs:  # the curvature was misjudged: begin again
            pairs = []
        else:
            return trace.result(point, decrement)


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """A step, and how the gradient of the smooth part changed along it."""

    move: Floats  # (q, m)
    change: Floats  # (q, m)

    @classmethod
    def between(cls, point: SubgradientPoint, after: SubgradientPoint) -> _Pair:
        return cls(after.theta - point.theta, after.smooth - point.smooth)


def _direction(
    point: SubgradientPoint, pairs: list[_Pair], scale: Floats, corner: Floats
) -> Floats:
    """(q, m) down, in the coordinates that are not zero or ought not to be."""
    pull = point.gradient
    on = (point.theta != 0) | (pull != 0)
    step = -_two_loops(pull, pairs, scale, on)
    wrong = (point.theta == 0) & (corner > 0) & (step * pull >= 0)
    step = np.where(wrong, 0.0, step)
    if float((step * pull).sum()) < 0:
        return np.asarray(step)
    return np.asarray(-pull / scale)


def _two_loops(
    pull: Floats, pairs: list[_Pair], scale: Floats, on: npt.NDArray[np.bool_]
) -> Floats:
    """(q, m) L-BFGS among some coordinates, as if there were no others."""
    direction, used, ratio = pull.copy(), list[tuple[Floats, Floats, float, float]](), 1.0
    for pair in reversed(pairs):
        move, change = np.where(on, pair.move, 0.0), np.where(on, pair.change, 0.0)
        product, steep = float((move * change).sum()), float((change * change / scale).sum())
        if not product > 1e-10 * steep:
            continue
        ratio = ratio if used else product / steep
        share = float((move * direction).sum()) / product
        direction -= share * change
        used.append((move, change, product, share))
    direction *= ratio / scale
    for move, change, product, share in reversed(used):
        direction += (share - float((change * direction).sum()) / product) * move
    return direction


def _within_orthant(
    trace: _ProximalTrace, point: SubgradientPoint, step: Floats
) -> SubgradientPoint | None:
    """The point a step away, or a part of it; who would change sign is zero there."""
    side = np.where(point.theta == 0, -np.sign(point.gradient), np.sign(point.theta))
    share = 1.0
    for _ in range(_HALVINGS):
        there = point.theta + share * step
        turned = (trace.corner > 0) & (there * side <= 0)
        there = np.where(turned, 0.0, there)
        after = trace.evaluate(there)
        if trace.better(point, after, float((point.gradient * (there - point.theta)).sum())):
            return after
        if trace.exhausted:
            return None
        share *= 0.5 if np.isfinite(after.value) else 0.1
    return None


def proximal_gradient(
    objective: L1PenalisedLoss,
    start: Floats,
    *,
    scale: Floats,
    most: int = 10000,
    progress: Progress | None = None,
) -> OptimisationResult:
    """Accelerated steps down the gradient and to the corners; shorter where they overshoot."""
    trace = _ProximalTrace(objective, most, GRADIENT, progress)
    point = here = trace.evaluate(start)
    steep, speed = float(scale.max()), 1.0
    while point.max_gradient > GRADIENT and not trace.exhausted:
        there = _pulled(here.theta - here.smooth / steep, objective.corner / steep)
        after, move = trace.evaluate(there), there - here.theta
        if _overshot(here, after, move, steep, objective.corner):
            steep *= 2.0
            continue
        onward = there - point.theta
        faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * speed**2))
        run = (speed - 1.0) / faster
        if float((move * onward).sum()) < 0:  # it turned back
            faster, run = 1.0, 0.0
        point, speed = after, faster
        here = after if run == 0 or trace.exhausted else trace.evaluate(there + run * onward)
    return trace.result(point, 0.5 * float((point.gradient**2).sum()) / steep)


def _pulled(theta: Floats, corner: Floats) -> Floats:
    return np.asarray(np.sign(theta) * np.maximum(np.abs(theta) - corner, 0.0))


def _overshot(
    here: SubgradientPoint, after: SubgradientPoint, move: Floats, steep: float, corner: Floats
) -> bool:
    """Whether the loss is above the parabola that the step took it for."""
    smooth = after.value - float((corner * np.abs(after.theta)).sum())
    before = here.value - float((corner * np.abs(here.theta)).sum())
    bound = before + float((here.smooth * move).sum()) + 0.5 * steep * float((move**2).sum())
    blur = _BLUR * max(1.0, abs(before))
    return not smooth <= bound + blur


_CENTRED = 4.0  # a mean of so many standard deviations costs no digit worth a subtraction
_FEW = 64  # coefficients; up to so many, their curvature is read about as fast as their gradient
_SOME = 1500  # coefficients; up to so many, it is better read than guessed for long
_PATIENCE = 32, 200  # passes at least, at most; else half as many as coefficients
_SLOW_GOAL = 1e-12  # largest gradient to aim at where the last step does not square the error


@dataclass(frozen=True, slots=True, eq=False)
class ColumnScales:
    """Where columns are and how far they spread, in offsets from an anchor."""

    features: tuple[str, ...]  # d names
    anchor: Anchor
    mean: Floats  # (d,)
    spread: Floats  # (d,) standard deviation with the weight as denominator; 0 if constant
    weight: Floats  # (K,) of each class

    @classmethod
    def of_moments(cls, moments: ClassMoments, *, intercept: bool) -> ColumnScales:
        """From moments in detail diagonal; columns that do not vary are told of."""
        total = moments.weight.sum()
        apart = moments.mean - moments.centre
        variance = (moments.pooled + moments.weight @ apart**2) / total
        still = variance <= 4 * rounding_variance(moments.mean)
        spread = np.where(still, 0.0, np.sqrt(variance))
        at_zero = Anchor(np.zeros_like(spread), moments.anchor.unit)
        centre = moments.centre + moments.anchor.shift_to(at_zero)
        idle = still if intercept else still & (centre == 0)
        if idle.any():
            names = np.array(moments.features, dtype=object)[idle].tolist()
            warn(ConstantColumnWarning.of_columns(names))
        if not intercept or (np.abs(centre) <= _CENTRED * spread).all():
            return cls(moments.features, at_zero, centre, spread, moments.weight)
        return cls(moments.features, moments.anchor, moments.centre, spread, moments.weight)

    @classmethod
    def of_sums(
        cls, sums: ColumnSums, *, features: tuple[str, ...], weight: Floats
    ) -> ColumnScales:
        """From sums about zero: sparse rows of many features."""
        return cls(features, Anchor.zero(len(features)), sums.mean, sums.std, weight)

    def coordinates(self, *, intercept: bool) -> ScaledCoordinates:
        """In which columns have variance one; without an intercept, mean square one."""
        size = self.spread if intercept else np.hypot(self.spread, self.mean)
        scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
        mean = self.mean if intercept else np.zeros_like(size)
        return ScaledCoordinates(scale, mean, None, int(intercept))

    def penalised(self, *, standardize: bool, intercept: bool) -> Floats:
        """(d,) what a coefficient is multiplied by in the penalty."""
        if not standardize:
            return np.asarray(1.0 / self.anchor.unit)
        return self.spread if intercept else np.hypot(self.spread, self.mean)


def fit_elastic_net(read: Pass, columns: ColumnScales, options: LogisticOptions) -> LogisticFit:
    """Fit by passes over the rows.

    Parameters
    ----------
    read
        The fold over the rows, whoever does it.
    columns
        Of the same rows.
    """
    K = len(columns.weight)
    loss = SoftmaxLoss(K) if K > 2 else BinaryLoss(options.link)
    coordinates = columns.coordinates(intercept=options.intercept)
    size = columns.penalised(standardize=options.standardize, intercept=options.intercept)
    square = coordinates.penalty(size)  # (q,)
    steep = options.ridge * (1.0 - options.l1_ratio) * square
    corner = options.ridge * options.l1_ratio * np.sqrt(square)
    plain = PenalisedLoss(read, columns.features, columns.anchor, loss, coordinates, steep)
    share = columns.weight / columns.weight.sum()
    descent = _descend(L1PenalisedLoss(plain, corner[:, None]), share, options)
    theta = _settled(descent.theta, coordinates.free, lasso=options.l1_ratio == 1)
    return LogisticFit(
        plain, coordinates, columns.anchor, replace(descent, theta=theta), overlap=True
    )


def _descend(
    objective: L1PenalisedLoss, share: Floats, options: LogisticOptions
) -> OptimisationResult:
    """The trace asked for; left to us, Newton where it is cheap and L-BFGS where it is not."""
    goal = GRADIENT if options.link == "logit" else _SLOW_GOAL  # others expect their curvature
    start = _level(objective, share)
    most, progress, solver = options.max_passes, options.progress, options.solver
    if solver == "newton" or (solver == "auto" and start.size <= _FEW):
        return proximal_newton(objective, start, most=most, progress=progress, goal=goal)
    scale = _steepness(objective, share)
    if solver == "gradient":
        return proximal_gradient(objective, start, scale=scale, most=most, progress=progress)
    some = solver == "auto" and start.size <= _SOME
    patience = min(most, int(np.clip(start.size // 2, *_PATIENCE))) if some else most
    first = orthant_lbfgs(objective, start, scale=scale, most=patience, progress=progress)
    left = most - first.passes
    if first.converged or not some or left < 1:
        return first
    rest = proximal_newton(
        objective,
        first.theta,
        most=left,
        progress=shift_progress(progress, first.passes),
        goal=goal,
    )
    return replace(rest, path=first.path + rest.path)


def _steepness(objective: L1PenalisedLoss, share: Floats) -> Floats:
    """(q, m) curvature of the loss and the squares where no feature tells of a class."""
    squares = objective.plain.penalty
    assert squares is not None
    curve = share * (1.0 - share)
    return np.asarray(squares[:, None] + (curve if len(share) > 2 else curve[1:]))


def _level(objective: L1PenalisedLoss, share: Floats) -> Floats:
    """(q, m) no slopes, and with an intercept the shares of the classes."""
    coordinates = objective.plain.coordinates
    level = np.log(share)
    level = level - level.mean() if len(share) > 2 else level[1:] - level[:1]
    start = np.zeros((coordinates.size, len(level)))
    start[: coordinates.free] = level
    return start


def _settled(theta: Floats, free: int, *, lasso: bool) -> Floats:
    """(q, m) with what is common to all classes settled where loss and penalty do not."""
    m = theta.shape[1]
    if m == 1:
        return theta
    shifted_theta = theta.copy()
    shifted_theta[:free] -= shifted_theta[:free].mean(axis=1, keepdims=True)
    if lasso and m % 2 == 0:
        middle = np.sort(shifted_theta[free:], axis=1)[:, m // 2 - 1 : m // 2 + 1]
        loose = (middle[:, 0] < middle[:, 1]) & ((shifted_theta[free:] == 0).sum(axis=1) < 2)
        for j in np.flatnonzero(loose):
            shifted = [shifted_theta[free + j] - median for median in middle[j]]
            shifted_theta[free + j] = min(shifted, key=lambda row: float(row @ row))
    return shifted_theta
