"""Coordinates and a sketch of the curvature for more features than their products can be kept of.

    coef = scale theta,    intercept = theta_0 - mean'coef        scale = 1 / sd

Columns have variance one but stay correlated. The curvature is sketched as the mean curvature of
the scores of some rows, the same for every column, plus the penalty: a step takes no product of
columns, and what they have in common is learnt by L-BFGS.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from discriminant.models.coordinates import Coordinates
from discriminant.moments.slope import Loss
from discriminant.table.schema import Block, Features, Floats

_LEAST = 1e-8  # relative to the largest, so that a flat direction is not followed without end


@dataclass(frozen=True, slots=True, eq=False)
class ScaledCoordinates:
    """The map from theta (q, m) to coefficients and intercepts of the scores."""

    scale: Floats  # (d,) zero where a column does not vary
    mean: Floats  # (d,) zero where there is no intercept
    contrast: Floats | None  # (K, m)
    free: int  # 1, or 0 where there is no intercept

    @property
    def size(self) -> int:
        """q."""
        return len(self.scale) + self.free

    def coefficients(self, theta: Floats) -> tuple[Floats, Floats]:
        """(d, K) coefficients and (K,) intercepts."""
        coef = self.scale[:, None] * theta[self.free :]
        intercept = (theta[0] if self.free else 0.0) - self.mean @ coef
        if self.contrast is None:
            return coef, intercept
        return coef @ self.contrast.T, intercept @ self.contrast.T

    def gradient(self, gradient: Floats) -> Floats:
        """(q, m) by theta, of a gradient (d+1, K) by coefficients."""
        if self.contrast is not None:
            gradient = gradient @ self.contrast
        slope = self.scale[:, None] * (gradient[:-1] - self.mean[:, None] * gradient[-1])
        return np.vstack([gradient[-1:], slope]) if self.free else slope

    def curvature(self, curvature: Floats) -> Floats:
        """(m q, m q) by theta; only where there is room for it."""
        frame = np.zeros((len(self.scale) + 1, self.size))
        frame[:-1, self.free :] = np.diag(self.scale)
        frame[-1, self.free :] = -self.mean * self.scale
        frame[-1, : self.free] = 1.0
        return Coordinates(frame, self.contrast, self.free).curvature(curvature)

    def penalty(self, scale: Floats) -> Floats:
        """(q,) Q with theta' diag(Q) theta = sum_j (scale_j coef_j)^2."""
        return np.concatenate([np.zeros(self.free), (scale * self.scale) ** 2])


@dataclass(frozen=True, slots=True, eq=False)
class ScaledSample:
    """Some rows, to say how steep the loss is near theta."""

    block: Block
    loss: Loss
    coordinates: ScaledCoordinates
    penalty: Floats  # (q,)

    def sketch(self, theta: Floats) -> ScaledSketch:
        """The mean curvature of the scores of the rows."""
        coef, intercept = self.coordinates.coefficients(theta)
        rows: Features = self.block.features
        scores = np.ascontiguousarray((rows @ coef + intercept).T)
        local = self.loss.at(scores, self.block, want="curvature")
        assert local.curve is not None
        mean = np.diag(local.curve.sum(axis=1))
        if local.cross is not None:
            mean = mean - local.cross @ local.cross.T
        weight = self.block.weight
        mean /= len(self.block) if weight is None else weight.sum()
        contrast = self.coordinates.contrast
        values, turn = eigh(mean if contrast is None else contrast.T @ mean @ contrast)
        values = np.maximum(values, _LEAST * max(float(values[-1]), 1e-300))
        return ScaledSketch(turn, self.penalty[:, None] + values)


@dataclass(frozen=True, slots=True, eq=False)
class ScaledSketch:
    """A curvature that is alike in all columns, but for the penalty."""

    turn: Floats  # (m, m)
    share: Floats  # (q, m)

    def solve(self, gradient: Floats) -> Floats:
        """(q, m) its inverse times a gradient."""
        return np.asarray((gradient @ self.turn / self.share) @ self.turn.T)
