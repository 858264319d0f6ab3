"""The least of a deviance on the edge of what its means can be, by a path inside.

At a least on the edge the gradient does not vanish. What holds there (Karush, Kuhn, Tucker) is

    gradient = sum of multipliers times the rows at their edge,    multipliers >= 0

and on the path of a barrier (`moments.barrier`) it holds with multipliers push / distance, up to a
gap of push for every row. Its places go to the least as a smooth function of push, so the last
three tell where it ends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discriminant.models.descent import Descent, PenalisedLoss, Progress, newton
from discriminant.models.logistic import later
from discriminant.moments.barrier import Barrier
from discriminant.moments.families import Deviance
from discriminant.table.schema import Floats

_PUSHES = tuple(0.1**k for k in range(7))  # smaller ones are lost in rounding
_TO_ZERO = np.array([1.0, -110.0, 1000.0]) / 891.0  # of a parabola at 0 by 1, 0.1 and 0.01
_NEAR = 1e-4  # a score so near to its edge, against the last push, is on it
_BACK = (1e-6, 1e-4, 1e-2, 1.0)  # shares of the way back from the end until all rows have a mean


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """Where the path ended."""

    descent: Descent
    touched: bool  # whether a row is at its edge
    passes: int


def to_edge(
    objective: PenalisedLoss, start: Floats, *, most: int, progress: Progress | None = None
) -> Edge:
    """The least that a path from `start`, where every row has a mean, leads to."""
    assert isinstance(objective.loss, Deviance)
    deviance, passes, places = objective.loss, 0, [start]

    def least(push: float) -> Descent:
        walled = replace(objective, loss=Barrier(deviance, push))
        told = later(progress, passes)
        return newton(walled, places[-1], most=max(most - passes, 1), progress=told)

    for push in _PUSHES:
        last = least(push)
        places.append(last.theta)
        passes += last.passes
        if not last.converged:
            return Edge(last, touched=False, passes=passes)
    if last.point.slope.least > _NEAR:
        found = least(0.0)
        passes += found.passes
        if found.converged:
            return Edge(found, touched=False, passes=passes)
    return _end(objective, places[-3:], last, passes)


def _end(objective: PenalisedLoss, places: list[Floats], last: Descent, passes: int) -> Edge:
    """Where the path ends, from its last three places, which lie as a parabola in push."""
    limit = np.einsum("k,kqm->qm", _TO_ZERO, np.stack(places))
    for back in _BACK:
        theta = limit + back * (places[-1] - limit)
        point = objective.at(theta, want="curvature")
        passes += 1
        if np.isfinite(point.value):
            break
    end = Descent(theta, point, True, last.decrement, (point.value,))
    return Edge(end, touched=True, passes=passes)
