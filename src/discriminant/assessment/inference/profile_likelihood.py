"""Fits with some combinations of the estimates held: profile intervals and likelihood-ratio tests.

Held at a'theta = c, theta moves in what is left: theta = base + N phi, with the columns of N at
right angles to a. The loss then falls to its least, value(c), and

    r(c) = sign(c - estimate) sqrt(2 weight (value(c) - value) / dispersion)

is almost a line in c. The ends of an interval are where r = -+ the normal quantile. Its slope is
known, since at the held least the gradient is a multiple of a; so they are found by Newton's steps.
Each evaluation is a fit, begun from where the last one ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cho_factor, cho_solve, qr
from scipy.stats import chi2, norm

from discriminant.assessment.inference.wald import INTERCEPT, Inference
from discriminant.models.linear.optimise import Objective, Point, newton_descent
from discriminant.moments.loss import Want
from discriminant.table.blocks import Floats

_TRIES = 40  # fits for one end of an interval, at most
_CLOSE = 1e-11  # of the quantile


@dataclass(frozen=True, slots=True, eq=False)
class Peak:
    """An objective, a likelihood or Jeffreys' penalised one, and where it is least."""

    objective: Objective  # mean loss
    theta: Floats  # (q, m)
    unit: float = 1.0  # what its value is counted in, if not in loss itself
    point: Point = field(init=False)  # one pass there

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", self.objective.evaluate(self.theta, want="curvature"))

    def rise(self, point: Point) -> float:
        """Twice what the objective, summed over rows, is more at a point."""
        return 2.0 * self.point.slope.weight * self.unit * (point.value - self.point.value)

    def spread(self, directions: Floats) -> Floats:
        """(q m, k) H^-1 A' for combinations A (k, q m)."""
        assert self.point.curvature is not None
        return np.asarray(cho_solve(cho_factor(self.point.curvature), directions.T))


@dataclass(frozen=True, slots=True, eq=False)
class ConstrainedObjective:
    """The objective where some combinations of theta keep their value."""

    objective: Objective
    base: Floats  # (q, m) has those values
    free: Floats  # (q m, f) N

    def theta(self, phi: Floats) -> Floats:
        """(q, m) of phi (f, 1)."""
        q, m = self.base.shape
        return self.base + (self.free @ phi[:, 0]).reshape(m, q).T

    def evaluate(self, theta: Floats, *, want: Want = "gradient") -> Point:
        """One pass over the rows, at phi."""
        found = self.objective.evaluate(self.theta(theta), want=want)
        gradient = (self.free.T @ found.gradient.T.ravel())[:, None]
        curvature = found.curvature
        if curvature is not None:
            curvature = self.free.T @ curvature @ self.free
        return Point(theta, found.value, gradient, curvature, found.slope)


@dataclass(frozen=True, slots=True)
class DroppedFeature:
    """The fit without one column."""

    name: str
    deviance: float
    df: int  # estimates dropped
    chi2: float  # likelihood-ratio statistic
    p: float
    aic: float


def profile(
    peak: Peak,
    inference: Inference,
    *,
    level: float = 0.95,
    progress: Callable[[int, int], object] | None = None,
) -> Floats:
    """(p, 2) profile-likelihood intervals; an end that the likelihood never reaches is infinite.

    `progress` is called after each end with how many are done, and of how many.
    """
    quantile = float(norm.isf(0.5 * (1.0 - level)))
    ends = np.full((len(inference.estimate), 2), np.nan)
    places = np.flatnonzero(np.isfinite(inference.std_error) & (inference.std_error > 0))
    for done, j in enumerate(places):
        for side in (0, 1):
            sign = 2 * side - 1
            ends[j, side] = inference.estimate[j] + _End(peak, inference, int(j)).reach(
                sign * quantile
            )
            if progress is not None:
                progress(2 * done + side + 1, 2 * len(places))
    return ends


def drop_each(peak: Peak, inference: Inference) -> list[DroppedFeature]:
    """Likelihood-ratio test of each feature: all its estimates held at zero at once.

    As R's `drop1(test = "LRT")`: the statistic is the rise of the deviance over the dispersion, of
    a Gaussian fit  n log(deviance ratio).
    """
    names = [name for name in dict.fromkeys(inference.names) if name != INTERCEPT]
    return [_dropped(peak, inference, name) for name in names]


def _dropped(peak: Peak, inference: Inference, name: str) -> DroppedFeature:
    places, likelihood = inference.places(name), inference.likelihood
    if not np.isfinite(inference.std_error[places]).all():
        return DroppedFeature(name, *(np.nan, 0, np.nan, np.nan, np.nan))
    rows = inference.directions[places]
    away = -inference.estimate[places]
    point = _fit_held(peak, rows, away)
    rise, df = peak.rise(point), len(places)
    deviance = likelihood.deviance + 2.0 * (point.slope.loss - peak.point.slope.loss)
    ratio = rise / likelihood.dispersion
    aic = likelihood.aic + (deviance - likelihood.deviance) / likelihood.dispersion - 2.0 * df
    if likelihood.gaussian:
        ratio = likelihood.rows * float(np.log1p(rise / likelihood.deviance))
        aic = likelihood.aic + ratio - 2.0 * df
    return DroppedFeature(name, deviance, df, ratio, float(chi2.sf(max(ratio, 0.0), df)), aic)


def _fit_held(
    peak: Peak, rows: Floats, away: Floats, near: tuple[Floats, Floats] | None = None
) -> Point:
    """The least loss where combinations `rows` (k, q m) are `away` from the peak's.

    `near`: a theta to begin from, and how far away it is.
    """
    theta, done = (peak.theta, np.zeros(len(rows))) if near is None else near
    spread = peak.spread(rows)
    q, m = theta.shape
    step = spread @ np.linalg.solve(rows @ spread, away - done)
    free = np.asarray(qr(rows.T)[0][:, len(rows) :], dtype=np.float64)
    held = ConstrainedObjective(peak.objective, theta + step.reshape(m, q).T, free)
    found = newton_descent(held, np.zeros((held.free.shape[1], 1)))
    if not np.isfinite(found.path[0]):
        return found.point
    return peak.objective.evaluate(held.theta(found.theta))


class _End:
    """One end of one interval: between `inside`, not far enough, and `outside`, too far."""

    def __init__(self, peak: Peak, inference: Inference, place: int) -> None:
        self.peak = peak
        self.direction = inference.directions[place]
        self.dispersion = inference.likelihood.dispersion
        self.unit = float(inference.std_error[place])

    def reach(self, quantile: float) -> float:
        """How far from the estimate r is the quantile."""
        sign = float(np.sign(quantile))
        away, inside, outside, wall = quantile * self.unit, 0.0, sign * np.inf, sign * np.inf
        near = self.peak.theta
        for _ in range(_TRIES):
            point = _fit_held(
                self.peak, self.direction[None], np.array([away]), (near, np.array([inside]))
            )
            if not np.isfinite(point.value):  # no mean there: come nearer, and try again from there
                wall = away
                away = 0.5 * (inside + wall)
                if abs(wall - inside) <= 1e-9 * self.unit:
                    return inside
                continue
            found, slope = self._r(point, sign)
            gap = found - quantile
            if abs(gap) <= _CLOSE * abs(quantile):
                return away
            if abs(found) < abs(quantile):
                inside, near, wall = away, point.theta, outside
            else:
                outside = wall = away
            away = self._next(away, gap / slope if slope > 0 else np.nan, inside, wall)
        return away if np.isfinite(outside) else float(outside)

    def _next(self, away: float, step: float, inside: float, wall: float) -> float:
        """A Newton step, if it stays between what is known; else half way, or twice as far."""
        trial = away - step
        low, high = sorted((inside, wall))
        if np.isfinite(step) and low < trial < high and abs(trial) <= 4 * abs(away):
            return trial
        return 0.5 * (inside + wall) if np.isfinite(wall) else 2.0 * away

    def _r(self, point: Point, sign: float) -> tuple[float, float]:
        """r and its slope: at a held least the gradient is a multiple of the direction."""
        rise = self.peak.rise(point) / self.dispersion
        found = sign * float(np.sqrt(max(rise, 0.0)))
        pull = float(self.direction @ point.gradient.T.ravel()) / float(
            self.direction @ self.direction
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.float64(point.slope.weight * self.peak.unit * pull) / self.dispersion / found
        return found, float(slope)
