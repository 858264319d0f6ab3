"""Ways down a convex loss that is read from rows, with corners where coefficients are zero.

    f(theta) = loss(theta) / weight  +  sum_j steep_j |theta_j|^2 / 2  +  sum_j corner_j |theta_j|_1

Every step is one pass over the rows, as in `models.descent`; what the gradient is there is here
the smallest subgradient, zero at the least value alone, and it is held to the same goal:

    theta_jk = 0     |slope_jk| - corner_j, if more than zero
    else             |slope_jk + corner_j sign theta_jk|             <= 1e-8

`proximal_newton` reads the curvature and takes its step to the least of the quadratic with the
corners on it (`models.absolute`). `orthant_lbfgs` reads gradients alone (Andrew & Gao 2007): it
keeps to the signs of the last point, and learns the curvature of the coordinates that are not
zero from the last passes. `proximal_gradient` is plain accelerated descent (Beck & Teboulle 2009),
begun again when it turns back (O'Donoghue & Candes 2015).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discriminant.models.absolute import AbsoluteQuadratic, subgradient
from discriminant.models.descent import (
    DECREMENT,
    GRADIENT,
    Descent,
    PenalisedLoss,
    Point,
    Progress,
    Way,
)
from discriminant.moments.slope import Want
from discriminant.table.schema import Floats

_ARMIJO = 1e-4
_HALVINGS = 40
_PAIRS = 20
_BLUR = 1e-14  # values that agree so far, relatively, are alike


@dataclass(frozen=True, slots=True, eq=False)
class CornerPoint(Point):
    """Somewhere on the way; its gradient is the smallest subgradient."""

    smooth: Floats  # (q, m) gradient of loss and squares alone


@dataclass(frozen=True, slots=True, eq=False)
class CorneredLoss:
    """Mean loss, squares and absolute values."""

    plain: PenalisedLoss  # the loss and the squares
    corner: Floats  # (q, 1)

    def at(self, theta: Floats, *, want: Want = "gradient") -> CornerPoint:
        """One pass over the rows."""
        found = self.plain.at(theta, want=want)
        value = found.value + float((self.corner * np.abs(theta)).sum())
        pull = subgradient(found.gradient, theta, self.corner)
        return CornerPoint(theta, value, pull, found.curvature, found.slope, found.gradient)


class _Way(Way):
    """Passes made, and whether a step was worth its pass."""

    def __init__(
        self, objective: CorneredLoss, most: int, goal: float, progress: Progress | None
    ) -> None:
        super().__init__(objective, most, progress)
        self.corner, self.goal = objective.corner, goal

    def at(self, theta: Floats, *, want: Want = "gradient") -> CornerPoint:
        point = super().at(theta, want=want)
        assert isinstance(point, CornerPoint)
        return point

    def done(self, point: CornerPoint, decrement: float) -> bool:
        return point.steepness <= self.goal and decrement <= DECREMENT

    def better(self, point: CornerPoint, after: CornerPoint, fall: float) -> bool:
        """Whether a step that promised a fall (negative) kept some of it.

        Near the end values agree to rounding, and then a smaller gradient is as good.
        """
        if not np.isfinite(after.value):
            return False
        if fall < 0 and after.value <= point.value + _ARMIJO * fall:
            return True
        blur = _BLUR * max(1.0, abs(point.value))
        return after.value <= point.value + blur and after.steepness < point.steepness


# --- Newton ---------------------------------------------------------------------------------------


def proximal_newton(
    objective: CorneredLoss,
    start: Floats,
    *,
    most: int = 100,
    progress: Progress | None = None,
    goal: float = GRADIENT,
) -> Descent:
    """Newton's steps to the least of the quadratic with corners, each halved until f falls.

    When the goal is met one more step is taken without reading the rows again, as in `newton`.
    """
    way = _Way(objective, most, goal, progress)
    point = way.at(start, want="curvature")
    while True:
        there = _least_near(point, objective.corner)
        step = there - point.theta
        rise = float((objective.corner * (np.abs(there) - np.abs(point.theta))).sum())
        fall = float((point.smooth * step).sum()) + rise
        decrement = -0.5 * fall
        if way.done(point, decrement):
            return way.end(point, decrement, there)
        after = None if way.over else _shortened(way, point, step, fall)
        if after is None:
            return way.end(point, decrement)
        point = after


def _least_near(point: CornerPoint, corner: Floats) -> Floats:
    """(q, m) where loss, taken for a quadratic, and penalty are least."""
    assert point.curvature is not None
    q, m = point.theta.shape
    near = AbsoluteQuadratic(
        point.smooth.T.ravel(),
        point.curvature,
        np.tile(corner.ravel(), m),
        point.theta.T.ravel(),
    )
    return near.least(goal=1e-4 * min(point.steepness, GRADIENT)).reshape(m, q).T


def _shortened(way: _Way, point: CornerPoint, step: Floats, fall: float) -> CornerPoint | None:
    share = 1.0
    for _ in range(_HALVINGS):
        after = way.at(point.theta + share * step, want="curvature")
        if way.better(point, after, share * fall):
            return after
        if way.over:
            return None
        share *= 0.5 if np.isfinite(after.value) else 0.1
    return None


# --- gradients alone ------------------------------------------------------------------------------


def orthant_lbfgs(
    objective: CorneredLoss,
    start: Floats,
    *,
    scale: Floats,
    most: int = 1000,
    progress: Progress | None = None,
    goal: float = GRADIENT,
) -> Descent:
    """Steps that learn the curvature from the last passes, and keep to the signs they began with.

    `scale` (q, m): about how steep the loss and the squares are.
    """
    way = _Way(objective, most, goal, progress)
    point, pairs = way.at(start), list[_Pair]()
    while True:
        step = _direction(point, pairs, scale, objective.corner)
        decrement = -0.5 * float((point.gradient * step).sum())
        if way.done(point, decrement) or way.over:
            return way.end(point, decrement)
        after = _within_orthant(way, point, step)
        if after is not None:
            pairs = [*pairs[-_PAIRS + 1 :], _Pair.between(point, after)]
            point = after
        elif pairs:  # the curvature was misjudged: begin again
            pairs = []
        else:
            return way.end(point, decrement)


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """A step, and how the gradient of the smooth part changed along it."""

    move: Floats  # (q, m)
    change: Floats  # (q, m)

    @classmethod
    def between(cls, point: CornerPoint, after: CornerPoint) -> _Pair:
        return cls(after.theta - point.theta, after.smooth - point.smooth)


def _direction(point: CornerPoint, pairs: list[_Pair], scale: Floats, corner: Floats) -> Floats:
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
    found, used, ratio = pull.copy(), list[tuple[Floats, Floats, float, float]](), 1.0
    for pair in reversed(pairs):
        move, change = np.where(on, pair.move, 0.0), np.where(on, pair.change, 0.0)
        product, steep = float((move * change).sum()), float((change * change / scale).sum())
        if not product > 1e-10 * steep:
            continue
        ratio = ratio if used else product / steep
        share = float((move * found).sum()) / product
        found -= share * change
        used.append((move, change, product, share))
    found *= ratio / scale
    for move, change, product, share in reversed(used):
        found += (share - float((change * found).sum()) / product) * move
    return found


def _within_orthant(way: _Way, point: CornerPoint, step: Floats) -> CornerPoint | None:
    """The point a step away, or a part of it; who would change sign is zero there."""
    side = np.where(point.theta == 0, -np.sign(point.gradient), np.sign(point.theta))
    share = 1.0
    for _ in range(_HALVINGS):
        there = point.theta + share * step
        turned = (way.corner > 0) & (there * side <= 0)
        there = np.where(turned, 0.0, there)
        after = way.at(there)
        if way.better(point, after, float((point.gradient * (there - point.theta)).sum())):
            return after
        if way.over:
            return None
        share *= 0.5 if np.isfinite(after.value) else 0.1
    return None


def proximal_gradient(
    objective: CorneredLoss,
    start: Floats,
    *,
    scale: Floats,
    most: int = 10000,
    progress: Progress | None = None,
) -> Descent:
    """Accelerated steps down the gradient and to the corners; shorter where they overshoot."""
    way = _Way(objective, most, GRADIENT, progress)
    point = here = way.at(start)
    steep, speed = float(scale.max()), 1.0
    while point.steepness > GRADIENT and not way.over:
        there = _pulled(here.theta - here.smooth / steep, objective.corner / steep)
        after, move = way.at(there), there - here.theta
        if _overshot(here, after, move, steep, objective.corner):
            steep *= 2.0
            continue
        onward = there - point.theta
        faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * speed**2))
        run = (speed - 1.0) / faster
        if float((move * onward).sum()) < 0:  # it turned back
            faster, run = 1.0, 0.0
        point, speed = after, faster
        here = after if run == 0 or way.over else way.at(there + run * onward)
    return way.end(point, 0.5 * float((point.gradient**2).sum()) / steep)


def _pulled(theta: Floats, corner: Floats) -> Floats:
    return np.asarray(np.sign(theta) * np.maximum(np.abs(theta) - corner, 0.0))


def _overshot(
    here: CornerPoint, after: CornerPoint, move: Floats, steep: float, corner: Floats
) -> bool:
    """Whether the loss is above the parabola that the step took it for."""
    smooth = after.value - float((corner * np.abs(after.theta)).sum())
    before = here.value - float((corner * np.abs(here.theta)).sum())
    bound = before + float((here.smooth * move).sum()) + 0.5 * steep * float((move**2).sum())
    blur = _BLUR * max(1.0, abs(before))
    return not smooth <= bound + blur
