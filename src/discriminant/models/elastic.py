"""The elastic net: logistic regression in which coefficients are small, and many are zero.

    minimise  mean loss  +  ridge ( (1 - l1_ratio) / 2 sum (sd_j coef_j)^2
                                    + l1_ratio sum |sd_j coef_j| )

as glmnet does: two classes have one score, K classes have K, each with its coefficients
(symmetric, ungrouped). A score common to all classes costs nothing in the loss but something in
the penalty, which so decides what it is: the K coefficients of a column need not sum to zero.
Intercepts, which nothing decides, do where columns have their means.

With l1_ratio 1 and K even, a column's K coefficients may be shifted from one of their two medians
being zero to the other and cost the same. Unless several are zero, that median is made zero that
leaves the smaller sum of squares.

A penalty on coefficients as they are, and columns scaled and centred for the sake of the way down,
are one thing: theta_j = size_j coef_j, and sd_j becomes sd_j / size_j.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discriminant.errors import ConstantColumnWarning, tell
from discriminant.models.descent import GRADIENT, Descent, PenalisedLoss
from discriminant.models.logistic import Fit, Wish, later
from discriminant.models.proximal import (
    CorneredLoss,
    orthant_lbfgs,
    proximal_gradient,
    proximal_newton,
)
from discriminant.models.scaled import ScaledCoordinates
from discriminant.models.support import rounding
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.columns import ColumnSums
from discriminant.moments.losses import Binary, Softmax
from discriminant.moments.slope import Pass
from discriminant.table.schema import Floats

_CENTRED = 4.0  # a mean of so many standard deviations costs no digit worth a subtraction
_FEW = 64  # coefficients; up to so many, their curvature is read about as fast as their gradient
_SOME = 1500  # coefficients; up to so many, it is better read than guessed for long
_PATIENCE = 32, 200  # passes at least, at most; else half as many as coefficients
_SLOW_GOAL = 1e-12  # largest gradient to aim at where the last step does not square the error


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Where columns are and how far they spread, in offsets from an anchor."""

    features: tuple[str, ...]  # d names
    anchor: Anchor
    mean: Floats  # (d,)
    spread: Floats  # (d,) standard deviation with the weight as denominator; 0 if constant
    weight: Floats  # (K,) of each class

    @classmethod
    def of_moments(cls, moments: ClassMoments, *, intercept: bool) -> Columns:
        """From moments in detail diagonal; columns that do not vary are told of."""
        total = moments.weight.sum()
        apart = moments.mean - moments.centre
        variance = (moments.pooled + moments.weight @ apart**2) / total
        still = variance <= 4 * rounding(moments.mean)
        spread = np.where(still, 0.0, np.sqrt(variance))
        at_zero = Anchor(np.zeros_like(spread), moments.anchor.unit)
        centre = moments.centre + moments.anchor.shift_to(at_zero)
        idle = still if intercept else still & (centre == 0)
        if idle.any():
            names = np.array(moments.features, dtype=object)[idle].tolist()
            tell(ConstantColumnWarning.of_columns(names))
        if not intercept or (np.abs(centre) <= _CENTRED * spread).all():
            return cls(moments.features, at_zero, centre, spread, moments.weight)
        return cls(moments.features, moments.anchor, moments.centre, spread, moments.weight)

    @classmethod
    def of_sums(cls, sums: ColumnSums, *, features: tuple[str, ...], weight: Floats) -> Columns:
        """From sums about zero: sparse rows of many features."""
        return cls(features, Anchor.zero(len(features)), sums.mean, sums.spread, weight)

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


def fit_net(read: Pass, columns: Columns, wish: Wish) -> Fit:
    """Fit by passes over the rows.

    Parameters
    ----------
    read
        The fold over the rows, whoever does it.
    columns
        Of the same rows.
    """
    K = len(columns.weight)
    loss = Softmax(K) if K > 2 else Binary(wish.link)
    coordinates = columns.coordinates(intercept=wish.intercept)
    size = columns.penalised(standardize=wish.standardize, intercept=wish.intercept)
    square = coordinates.penalty(size)  # (q,)
    steep = wish.ridge * (1.0 - wish.l1_ratio) * square
    corner = wish.ridge * wish.l1_ratio * np.sqrt(square)
    plain = PenalisedLoss(read, columns.features, columns.anchor, loss, coordinates, steep)
    share = columns.weight / columns.weight.sum()
    descent = _descend(CorneredLoss(plain, corner[:, None]), share, wish)
    theta = _settled(descent.theta, coordinates.free, lasso=wish.l1_ratio == 1)
    return Fit(plain, coordinates, columns.anchor, replace(descent, theta=theta), overlap=True)


def _descend(objective: CorneredLoss, share: Floats, wish: Wish) -> Descent:
    """The way asked for; left to us, Newton where it is cheap and L-BFGS where it is not."""
    goal = GRADIENT if wish.link == "logit" else _SLOW_GOAL  # others expect their curvature
    start = _level(objective, share)
    most, progress, solver = wish.most, wish.progress, wish.solver
    if solver == "newton" or (solver == "auto" and start.size <= _FEW):
        return proximal_newton(objective, start, most=most, progress=progress, goal=goal)
    scale = _steepness(objective, share)
    if solver == "gradient":
        return proximal_gradient(objective, start, scale=scale, most=most, progress=progress)
    some = solver == "auto" and start.size <= _SOME
    patience = min(most, int(np.clip(start.size // 2, *_PATIENCE))) if some else most
    found = orthant_lbfgs(objective, start, scale=scale, most=patience, progress=progress)
    left = most - found.passes
    if found.converged or not some or left < 1:
        return found
    rest = proximal_newton(
        objective, found.theta, most=left, progress=later(progress, found.passes), goal=goal
    )
    return replace(rest, path=found.path + rest.path)


def _steepness(objective: CorneredLoss, share: Floats) -> Floats:
    """(q, m) curvature of the loss and the squares where no feature tells of a class."""
    squares = objective.plain.penalty
    assert squares is not None
    curve = share * (1.0 - share)
    return np.asarray(squares[:, None] + (curve if len(share) > 2 else curve[1:]))


def _level(objective: CorneredLoss, share: Floats) -> Floats:
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
    found = theta.copy()
    found[:free] -= found[:free].mean(axis=1, keepdims=True)
    if lasso and m % 2 == 0:
        middle = np.sort(found[free:], axis=1)[:, m // 2 - 1 : m // 2 + 1]
        loose = (middle[:, 0] < middle[:, 1]) & ((found[free:] == 0).sum(axis=1) < 2)
        for j in np.flatnonzero(loose):
            shifted = [found[free + j] - median for median in middle[j]]
            found[free + j] = min(shifted, key=lambda row: float(row @ row))
    return found
