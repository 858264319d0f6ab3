"""The least of a quadratic plus absolute values: one step of a lasso, without rows.

    minimise over x    g'(x - x0)  +  (x - x0)' H (x - x0) / 2  +  sum_i a_i |x_i|

Where the signs of x are known this is a linear system; so signs are guessed, and the guess is
bettered. A face is the set of x with given signs and given zeros. In turn:

    zeros that ought to move    most do, at once: each takes its own best step, divided by how
                                many there are, which by convexity goes down
    Newton's step on the face   as far as signs last; who would change sign becomes zero

Every turn goes down and no face has its least value twice, so there is an end, and it is exact:
a coordinate that is out is zero and not nearly so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from discriminant.table.schema import Floats

_TURNS = 1000
_DRAWN = 0.5  # of the strongest pull on any zero; the weaker are mostly gone when that has moved
_DUST = 1e-12  # added to the diagonal of the curvature, relatively: columns may be copies
_FLAT = 1e-12  # of the largest eigenvalue: a curvature that is rounding
_TINY = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class AbsoluteQuadratic:
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

    def least(self, *, goal: float) -> Floats:
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
    found = x + shares.min() * step
    found[places[shares == shares.min()]] = 0.0
    return np.asarray(found)
