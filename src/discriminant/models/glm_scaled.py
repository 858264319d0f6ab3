"""Generalised linear models of more sparse features than their products can be kept of.

The loss of `models.glm` with a ridge, in the coordinates of `models.scaled`: columns of variance
one, L-BFGS that begins each step from the mean curvature of the scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discriminant.models.descent import PenalisedLoss, Point, Progress, lbfgs
from discriminant.models.glm import GLMFit, Problem, fit_of, null_fit
from discriminant.models.scaled import ScaledCoordinates, ScaledSample, ScaledSketch
from discriminant.models.scoring import Scaled, Way
from discriminant.moments.anchor import Anchor
from discriminant.moments.columns import ColumnSums
from discriminant.table.schema import Block


@dataclass(frozen=True, slots=True, eq=False)
class _Sketches:
    """Sketches of the curvature of a loss in another unit."""

    sample: ScaledSample
    unit: float

    def at(self, point: Point) -> ScaledSketch:
        """Near a point."""
        found = self.sample.sketch(point.theta)
        return ScaledSketch(found.turn, found.share / self.unit)


def fit_glm_scaled(
    problem: Problem,
    sums: ColumnSums,
    sample: Block,
    *,
    features: tuple[str, ...],
    most: int,
    progress: Progress | None = None,
) -> GLMFit:
    """The least of the penalised loss.

    Parameters
    ----------
    problem
        Its moments are of the responses, beside one column of zeros.
    sums
        Of the columns.
    sample
        Some of the rows.
    """
    d, null = len(features), null_fit(problem)
    spread = sums.spread if problem.intercept else np.hypot(sums.spread, sums.mean)
    scale = np.divide(1.0, spread, out=np.zeros(d), where=spread > 0)
    mean = sums.mean if problem.intercept else np.zeros(d)
    coordinates = ScaledCoordinates(scale, mean, None, int(problem.intercept))
    penalty = problem.ridge * coordinates.penalty(spread)
    zero, loss = Anchor.zero(d), problem.deviance
    plain = PenalisedLoss(problem.read, features, zero, loss, coordinates, penalty)
    objective = Scaled(plain, problem.unit)
    start = np.zeros((coordinates.size, 1))
    if problem.intercept:
        start[0] = null.point.theta[0]
    some = _Sketches(ScaledSample(sample, loss, coordinates, penalty), problem.unit)
    with np.errstate(invalid="ignore"):  # where there is no mean, neither is there a gradient
        found = lbfgs(objective, start, sketch=some.at, most=most, progress=progress)
    way = Way(found, found.path, found.passes, found.converged)
    return fit_of(objective, way, null, passes=1)
