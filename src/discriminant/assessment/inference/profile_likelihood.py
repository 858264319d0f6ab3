"""Profile-likelihood intervals and likelihood-ratio tests, by constrained fits.

Under the constraint a'theta = c, theta = base + N phi with free parameters phi, where the columns
of N are orthogonal to a. With value(c) the smallest loss under the constraint,

    r(c) = sign(c - estimate) sqrt(2 weight (value(c) - value) / dispersion)

is almost linear in c. The ends of an interval are the values of c at which r equals minus and plus
the normal quantile. Newton's method finds them: the slope of r is known, because at the constrained
minimum the gradient is a multiple of a. Each evaluation of r is a fit that starts where the
previous fit ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, qr
from scipy.stats import chi2, norm

from discriminant.assessment.inference.coefficient_summary import Inference
from discriminant.assessment.inference.wald import INTERCEPT
from discriminant.assessment.printed_results import (
    PrintedResult,
    format_p_as_r,
    format_short,
    stars,
    text_table,
)
from discriminant.models.linear.optimise import Objective, Point, newton_descent
from discriminant.moments.loss_gradient_sums import Want
from discriminant.table.blocks import Floats
from discriminant.table.column_cells import import_pandas

_MAX_FITS = 40  # largest number of fits for one end of an interval
_TOLERANCE = 1e-11  # tolerance of r, relative to the quantile


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodMaximum:
    """Minimum of an objective, which is the mean loss with or without Jeffreys' penalty."""

    objective: Objective  # mean loss
    theta: Floats  # (q, m) parameters at the minimum
    unit: float = 1.0  # loss per unit of the objective
    table: Any = None  # rows of the fit
    point: Point = field(init=False)  # value and derivatives of the objective at theta

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", self.objective.evaluate(self.theta, want="curvature"))

    def rise(self, point: Point) -> float:
        """Return twice the increase of the objective from its minimum, summed over rows."""
        return 2.0 * self.point.slope.weight * self.unit * (point.value - self.point.value)

    def inverse_curvature(self, directions: Floats) -> Floats:
        """Return the inverse curvature times k linear combinations of the parameters.

        The shape of `directions` is (k, q m), that of the result (q m, k).
        """
        assert self.point.curvature is not None
        return np.asarray(cho_solve(cho_factor(self.point.curvature), directions.T))


@dataclass(frozen=True, slots=True, eq=False)
class ConstrainedObjective:
    """Objective in which some linear combinations of the parameters theta are held fixed."""

    objective: Objective
    base: Floats  # (q, m) a theta that satisfies the constraints
    free: Floats  # (q m, f) N, a basis of the free directions

    def theta(self, phi: Floats) -> Floats:
        """Return the parameters theta (q, m), given the f free parameters phi (f, 1)."""
        q, m = self.base.shape
        return self.base + (self.free @ phi[:, 0]).reshape(m, q).T

    def evaluate(self, theta: Floats, *, want: Want = "gradient") -> Point:
        """Evaluate the objective at given free parameters phi, in one pass over the rows."""
        point = self.objective.evaluate(self.theta(theta), want=want)
        gradient = (self.free.T @ point.gradient.T.ravel())[:, None]
        curvature = point.curvature
        if curvature is not None:
            curvature = self.free.T @ curvature @ self.free
        return Point(theta, point.value, gradient, curvature, point.slope)


@dataclass(frozen=True, slots=True)
class DropOneTest:
    """Likelihood-ratio test of leaving out one column."""

    name: str
    deviance: float
    df: int  # number of estimates that are dropped with the column
    chi2: float  # likelihood-ratio statistic
    p: float
    aic: float


class DropOneTests(PrintedResult, list[DropOneTest]):
    """Likelihood-ratio tests of leaving out each column."""

    @property
    def text(self) -> str:
        """Text in the layout of R's `drop1`."""
        head = ["", "Df", "Deviance", "AIC", "LRT", "Pr(>Chi)", ""]
        rows = [
            [
                each.name,
                str(each.df),
                *(format_short(value) for value in (each.deviance, each.aic, each.chi2)),
                format_p_as_r(each.p),
                stars(each.p),
            ]
            for each in self
        ]
        return "\n".join(text_table("Single term deletions", head, rows))

    def to_dict(self) -> dict[str, Any]:
        """Return the tests as a dictionary of plain numbers and texts."""
        return {"dropped": [asdict(each) for each in self]}

    def frame(self) -> Any:
        """Return a pandas frame with a row for each column."""
        columns = [field.name for field in fields(DropOneTest)]
        rows = [asdict(each) for each in self]
        return import_pandas().DataFrame(rows, columns=columns).set_index("name")


def profile_intervals(
    peak: LikelihoodMaximum,
    inference: Inference,
    *,
    level: float = 0.95,
    progress: Callable[[int, int], object] | None = None,
) -> Floats:
    """Return the profile-likelihood intervals of the p estimates, (p, 2); ends may be infinite.

    After each end of an interval, `progress` is called with the number of ends computed so far and
    the number of all ends.
    """
    quantile = float(norm.isf(0.5 * (1.0 - level)))
    ends = np.full((len(inference.estimate), 2), np.nan)
    places = np.flatnonzero(np.isfinite(inference.std_error) & (inference.std_error > 0))
    for done, j in enumerate(places):
        for side in (0, 1):
            search = _EndSearch(peak, inference, int(j))
            ends[j, side] = inference.estimate[j] + search.run((2 * side - 1) * quantile)
            if progress is not None:
                progress(2 * done + side + 1, 2 * len(places))
    return ends


def drop_each(peak: LikelihoodMaximum, inference: Inference) -> DropOneTests:
    """Test each feature by a likelihood ratio test, with all its estimates fixed at zero.

    As in R's `drop1(test = "LRT")`, the statistic is the increase of the deviance, divided by the
    dispersion. For a Gaussian fit it is `n log(deviance ratio)`.
    """
    columns = inference.names[: len(inference.names) - inference.thresholds]
    names = [name for name in dict.fromkeys(columns) if name != INTERCEPT]
    return DropOneTests(_drop(peak, inference, name) for name in names)


def _drop(peak: LikelihoodMaximum, inference: Inference, name: str) -> DropOneTest:
    places, likelihood = inference.places(name), inference.likelihood
    if not np.isfinite(inference.std_error[places]).all():
        return DropOneTest(name, *(np.nan, 0, np.nan, np.nan, np.nan))
    point = _constrained_fit(peak, inference.directions[places], -inference.estimate[places])
    rise, df = peak.rise(point), len(places)
    deviance = likelihood.deviance + 2.0 * (point.slope.loss - peak.point.slope.loss)
    ratio = rise / likelihood.dispersion
    aic = likelihood.aic + (deviance - likelihood.deviance) / likelihood.dispersion - 2.0 * df
    if likelihood.gaussian:
        ratio = likelihood.rows * float(np.log1p(rise / likelihood.deviance))
        aic = likelihood.aic + ratio - 2.0 * df
    return DropOneTest(name, deviance, df, ratio, float(chi2.sf(max(ratio, 0.0), df)), aic)


def _constrained_fit(
    peak: LikelihoodMaximum,
    directions: Floats,
    offset: Floats,
    start: tuple[Floats, Floats] | None = None,
) -> Point:
    """Return the minimum subject to fixed values of k linear combinations of the parameters.

    `directions` (k, q m) holds the combinations. Each is fixed at its value at the unconstrained
    minimum plus `offset`.

    `start` is a pair: the theta to start from, and the offset at which that theta is the minimum.
    """
    theta, start_offset = (peak.theta, np.zeros(len(directions))) if start is None else start
    solved = peak.inverse_curvature(directions)
    q, m = theta.shape
    step = solved @ np.linalg.solve(directions @ solved, offset - start_offset)
    free = np.asarray(qr(directions.T)[0][:, len(directions) :], dtype=np.float64)
    objective = ConstrainedObjective(peak.objective, theta + step.reshape(m, q).T, free)
    descent = newton_descent(objective, np.zeros((free.shape[1], 1)))
    if not np.isfinite(descent.path[0]):
        return descent.point
    return peak.objective.evaluate(objective.theta(descent.theta))


class _EndSearch:
    """Search for one end of an interval.

    The end lies between two offsets: `inside` is too near to the estimate, `outside` too far from
    it.
    """

    def __init__(self, peak: LikelihoodMaximum, inference: Inference, place: int) -> None:
        self.peak = peak
        self.direction = inference.directions[place]
        self.dispersion = inference.likelihood.dispersion
        self.unit = float(inference.std_error[place])

    def run(self, quantile: float) -> float:
        """Return the offset from the estimate at which the signed root r equals the quantile."""
        sign = float(np.sign(quantile))
        offset, inside, outside, limit = quantile * self.unit, 0.0, sign * np.inf, sign * np.inf
        start = self.peak.theta
        for _ in range(_MAX_FITS):
            point = _constrained_fit(
                self.peak, self.direction[None], np.array([offset]), (start, np.array([inside]))
            )
            if not np.isfinite(point.value):  # outside the range of possible means: halve the step
                limit = offset
                offset = 0.5 * (inside + limit)
                if abs(limit - inside) <= 1e-9 * self.unit:
                    return inside
                continue
            r, slope = self._r(point, sign)
            gap = r - quantile
            if abs(gap) <= _TOLERANCE * abs(quantile):
                return offset
            if abs(r) < abs(quantile):
                inside, start, limit = offset, point.theta, outside
            else:
                outside = limit = offset
            offset = self._next(offset, gap / slope if slope > 0 else np.nan, inside, limit)
        return offset if np.isfinite(outside) else float(outside)

    def _next(self, offset: float, step: float, inside: float, limit: float) -> float:
        """Return the next offset: by a Newton step if it stays within the bounds.

        Otherwise the interval is bisected or, if it has no outer bound yet, the offset is doubled.
        """
        trial = offset - step
        low, high = sorted((inside, limit))
        if np.isfinite(step) and low < trial < high and abs(trial) <= 4 * abs(offset):
            return trial
        return 0.5 * (inside + limit) if np.isfinite(limit) else 2.0 * offset

    def _r(self, point: Point, sign: float) -> tuple[float, float]:
        """Return the signed root r of the likelihood ratio, and its slope.

        At the constrained minimum the gradient is a multiple of `direction`, which gives the slope.
        """
        rise = self.peak.rise(point) / self.dispersion
        r = sign * float(np.sqrt(max(rise, 0.0)))
        multiple = float(self.direction @ point.gradient.T.ravel()) / float(
            self.direction @ self.direction
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.float64(point.slope.weight * self.peak.unit * multiple) / self.dispersion / r
        return r, float(slope)
