"""Fisher's scoring: Newton's steps by the expected curvature, to an end that can be told.

After the tests of `models.descent` are met, steps go on until the gradient is rounding: with a link
that is not canonical they only gain some digits each, and where responses are far from their means
next to none: then L-BFGS corrects the curvature. Where means end at a value that responses
have (a share of 1 by the log link, a count of 0 by the identity) the least may lie on that edge,
and steps stop short of it: `models.edge` leads there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discriminant.models.descent import (
    Descent,
    PenalisedLoss,
    Point,
    Progress,
    lbfgs,
    newton,
    read_curvature,
)
from discriminant.models.edge import to_edge
from discriminant.models.logistic import later
from discriminant.moments.barrier import EDGES
from discriminant.moments.families import Deviance
from discriminant.moments.slope import Want
from discriminant.table.schema import Floats

_SETTLED = 1e-14  # a gradient that is nearly rounding
_FALLING = 0.9  # what is left of the gradient after a step that helps
_STEPS = 40  # after the tests are met, at most
_LONG = 40  # passes after which steps by the expected curvature alone have taken too long
PATIENCE = 20  # passes after which the least is taken to lie on an edge, if there is one


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """An objective in other units of loss."""

    objective: PenalisedLoss
    unit: float

    def at(self, theta: Floats, *, want: Want = "gradient") -> Point:
        """One pass over the rows."""
        found = self.objective.at(theta, want=want)
        curvature = None if found.curvature is None else found.curvature / self.unit
        return replace(
            found,
            value=found.value / self.unit,
            gradient=found.gradient / self.unit,
            curvature=curvature,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """How a fit came to its end."""

    end: Descent  # its point is the last pass that went down
    path: tuple[float, ...]  # of the passes by the loss itself
    passes: int
    converged: bool
    at_edge: bool = False


def descend(
    objective: Scaled, starts: tuple[Floats, Floats], most: int, progress: Progress | None
) -> Way:
    """Steps until the gradient is rounding, or along an edge that stands in their way."""
    edged = _edged(objective.objective)
    few = min(most, PATIENCE if edged else _LONG)
    start, descent = starts[0], newton(objective, starts[0], most=few, progress=progress)
    if not np.isfinite(descent.path[0]):
        start, descent = starts[1], newton(objective, starts[1], most=few, progress=progress)
    short = not descent.converged and descent.passes < most
    if edged and short and np.isfinite(descent.path[0]):
        inside = starts[1] if objective.objective.coordinates.free else start
        return _along_edge(objective, inside, descent, most, progress)
    path = descent.path
    if short and np.isfinite(path[0]):
        descent = _by_pairs(objective, descent, most, progress)
        path += descent.path
    end, more = settle(objective, descent, later(progress, len(path)))
    path += more
    return Way(end, path, len(path), descent.converged)


def _by_pairs(objective: Scaled, first: Descent, most: int, progress: Progress | None) -> Descent:
    """Where the expected curvature is far from the observed one: corrected by what passes find."""
    guess, done = read_curvature(first.point), first.passes
    found = lbfgs(
        objective,
        first.point.theta,
        sketch=lambda point: guess,
        most=most - done,
        progress=later(progress, done),
    )
    told = later(progress, done + found.passes)
    rest = newton(objective, found.theta, most=1, progress=told)
    return replace(rest, path=found.path + rest.path)


def _edged(objective: PenalisedLoss) -> bool:
    loss = objective.loss
    return isinstance(loss, Deviance) and (loss.family, loss.link) in EDGES


def _along_edge(
    objective: Scaled, start: Floats, first: Descent, most: int, progress: Progress | None
) -> Way:
    """The least after a way that stopped short of it."""
    done = first.passes
    more = later(progress, done)
    edge = to_edge(objective.objective, start, most=max(most - done, 1), progress=more)
    done, end = done + edge.passes, edge.descent
    if edge.touched:
        path = (*first.path, end.point.value)
        return Way(end, path, done, end.converged, at_edge=True)
    if not end.converged:
        return Way(replace(first, theta=first.point.theta), first.path, done, converged=False)
    rest = newton(objective, end.theta, most=max(most - done, 1), progress=later(progress, done))
    end, last = settle(objective, rest, later(progress, done + rest.passes))
    path = first.path + rest.path + last
    return Way(end, path, done + rest.passes + len(last), rest.converged)


def settle(
    objective: Scaled | PenalisedLoss, descent: Descent, progress: Progress | None = None
) -> tuple[Descent, tuple[float, ...]]:
    """Further steps from where the tests were met, as long as the gradient falls.

    The point returned is the last pass that helped, so that its curvature is the one at theta; and
    the losses of all passes that it took.
    """
    best, path = descent, tuple[float, ...]()
    if not descent.converged:
        return replace(best, theta=best.point.theta), path
    while len(path) < _STEPS and best.point.steepness > _SETTLED:
        after = newton(objective, best.theta, most=1, progress=later(progress, len(path)))
        path += after.path
        if not (after.converged and after.point.steepness < _FALLING * best.point.steepness):
            break
        best = after
    return best, path
