"""A loss with a wall at the edge of its means, for fits whose least lies on that edge.

Means of some links end where rows may be fitted without cost:

    binomial  log              a share of 1 at the score 0, scores below it
    poisson   identity, sqrt   a count of 0 at the score 0, scores above it

Such a row, at a distance a > 0 from its edge, costs -push log a more. The least of the whole is
inside, and as push shrinks it goes to the least there is, on the edge or not: rows then pull at
their edge by push / a, which are the multipliers of that least (Boyd & Vandenberghe 2004, 11.2).
Curvature is the observed one, which is convex here. The expected one is infinite at the edge, and
steps by it stop short of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discriminant.moments.families import Deviance, Told, answers, weighted
from discriminant.moments.slope import Local, Want
from discriminant.table.schema import Block, Floats

# Where scores end, and on which side of it they are: the response there, and the sign of scores.
EDGES: dict[tuple[str, str], tuple[float, float]] = {
    ("binomial", "log"): (1.0, -1.0),
    ("poisson", "identity"): (0.0, 1.0),
    ("poisson", "sqrt"): (0.0, 1.0),
}


@dataclass(frozen=True, slots=True)
class Barrier:
    """Half the deviance and a wall; `least` is how near to its edge a row comes."""

    deviance: Deviance
    push: float

    @property
    def columns(self) -> int:
        """One score."""
        return 1

    def at(self, scores: Floats, tile: Block, *, want: Want) -> Local:
        """Loss and derivatives."""
        response, offset = answers(tile)
        score = scores[0] if offset is None else scores[0] + offset
        told, away = self.rows(score, response)
        if tile.weight is not None:
            away = away[tile.weight > 0]
        return replace(weighted(told, tile.weight, want), least=float(away.min(initial=np.inf)))

    def rows(self, scores: Floats, response: Floats) -> tuple[Told, Floats]:
        """Loss and derivatives of each row, and how far it is from its edge."""
        ends, side = EDGES[self.deviance.family, self.deviance.link]
        loss, slope, _ = self.deviance.rows(scores, response)
        at_end = response == ends
        away = np.where(at_end, side * scores, np.inf)
        safe = np.where(away > 0, away, 1.0)
        wall = np.where(at_end, self.push / safe, 0.0)
        curve = self._observed(scores, response) + wall / safe
        loss = np.where(at_end, loss - self.push * np.log(safe), loss)
        return Told(loss, slope - side * wall, curve), away

    def _observed(self, scores: Floats, response: Floats) -> Floats:
        """(n,) second derivative of the loss; zero where there is no mean."""
        with np.errstate(all="ignore"):
            if self.deviance.family == "binomial":
                rest = -np.expm1(scores)
                found = (1.0 - response) * np.exp(scores) / (rest * rest)
            else:
                share = response / (scores * scores)
                found = share if self.deviance.link == "identity" else 2.0 + 2.0 * share
        return np.where(np.isfinite(found), found, 0.0)
