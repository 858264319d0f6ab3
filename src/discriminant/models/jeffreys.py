"""Logistic regression with Jeffreys' prior (Firth 1993): finite whatever separates the classes.

    minimise  loss / weight  -  log det H / (2 weight)

with H the curvature of the summed loss. The determinant needs one pass, its gradient another one;
a step is taken by H alone, as is usual, which ends at the same place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from discriminant.models.coordinates import Coordinates
from discriminant.models.descent import PenalisedLoss, Point
from discriminant.moments.leverage import LeverageReading
from discriminant.moments.slope import Want
from discriminant.table.schema import Floats


@dataclass(frozen=True, slots=True, eq=False)
class JeffreysLoss:
    """A mean loss less its share of half the log determinant of the curvature."""

    plain: PenalisedLoss
    coordinates: Coordinates

    def at(self, theta: Floats, *, want: Want = "gradient") -> Point:
        """Two passes over the rows."""
        point = self.plain.at(theta, want="curvature")
        if not theta.size:
            return point
        assert point.curvature is not None
        try:
            low = cholesky(point.curvature * point.slope.weight, lower=True)
        except LinAlgError:  # so far out that no row tells two scores apart
            return replace(point, value=np.inf)
        half_log = float(np.log(np.diagonal(low)).sum())
        gradient = self._pull(theta, low) / point.slope.weight
        return replace(
            point,
            value=point.value - half_log / point.slope.weight,
            gradient=point.gradient - gradient,
        )

    def _pull(self, theta: Floats, low: Floats) -> Floats:
        q, m = theta.shape
        root = solve_triangular(low, np.eye(len(low)), lower=True).T.reshape(m, q, m * q)
        coordinates, summed = self.coordinates, self.coordinates.summed
        at = summed.coefficients(theta)
        reading = coordinates.reading(
            self.plain.features,
            self.plain.anchor,
            lambda anchor: LeverageReading(anchor, *at, summed.frame, summed.contrast, root),
        )
        return coordinates.gradient(self.plain.read(reading).gradient)
