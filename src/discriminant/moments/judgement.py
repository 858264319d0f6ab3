"""How a perceptron's weights do on rows: how many are wrong, by how much, and what they ask for.

A row z = (x - origin) scale, and a 1 for the intercept, of class t has the lead

    two classes   sign z.w                  K classes   z.w_t - z.w_r     r the best of the others

and is wrong unless that is positive. A wrong row asks for the move  w += sign z,  or for
w_t += z, w_r -= z;  the criterion J_p is the sum of what the wrong rows lack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discriminant.table.schema import Block, Codes, Features, Floats, dense, is_sparse

_TILE = 4096  # rows judged at a time
_SAFE = 1e150  # what can be squared


@dataclass(frozen=True, slots=True, eq=False)
class Stand:
    """Where rows stand: z = (x - origin) scale, and the feature of the intercept."""

    origin: Floats  # (d,) zero for sparse rows
    scale: Floats  # (d,) zero leaves a column out
    one: float  # 1, or 0 for no intercept

    @property
    def squares(self) -> bool:
        """Whether scales can be squared."""
        some = self.scale[self.scale > 0]
        return not len(some) or bool(some.max() < _SAFE and some.min() > 1.0 / _SAFE)

    def rows(self, features: Features) -> Any:
        """(n, d) rows z; sparse stay sparse."""
        if is_sparse(features):
            found = features.astype(np.float64)
            found.data *= self.scale[found.indices]
            return found
        return (np.asarray(dense(features), dtype=np.float64) - self.origin) * self.scale


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Weights of one score for two classes, or of K."""

    slope: Floats  # (1, d) or (K, d)
    intercept: Floats  # (1,) or (K,)

    @classmethod
    def zero(cls, classes: int, width: int) -> Weights:
        scores = 1 if classes == 2 else classes
        return cls(np.zeros((scores, width)), np.zeros(scores))

    def copy(self) -> Weights:
        return Weights(self.slope.copy(), self.intercept.copy())

    def plus(self, other: Weights, factor: float) -> Weights:
        return Weights(self.slope + factor * other.slope, self.intercept + factor * other.intercept)

    @property
    def length(self) -> float:
        """Norm of all weights as one long vector."""
        return float(np.hypot(np.linalg.norm(self.slope), np.linalg.norm(self.intercept)))


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """How weights do on rows. Judgements of parts add."""

    wrong: int
    least: float  # the least lead
    radius: float  # the longest |z|, with the 1
    criterion: float  # J_p
    moves: Weights  # sum of what the wrong rows ask for

    def __add__(self, other: Judgement) -> Judgement:
        return Judgement(
            self.wrong + other.wrong,
            min(self.least, other.least),
            max(self.radius, other.radius),
            self.criterion + other.criterion,
            self.moves.plus(other.moves, 1.0),
        )

    def __radd__(self, other: object) -> Judgement:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class JudgeReading:
    """Judge weights, row by row."""

    weights: Weights
    stand: Stand
    fully: bool = True  # else only what is wrong is counted, which is quicker

    @property
    def numbers(self) -> int:
        """Size of the summary."""
        return int(self.weights.slope.size)

    def read(self, block: Block) -> Judgement:
        """Judgement of the rows of a block, tile by tile."""
        if is_sparse(block.features) and not self.fully:
            return self._count(block)
        total = self._tile(block.rows(0, _TILE))
        for lo in range(_TILE, len(block), _TILE):
            total = total + self._tile(block.rows(lo, min(lo + _TILE, len(block))))
        return total

    def _tile(self, tile: Block) -> Judgement:
        if not self.fully:
            return self._count(tile)
        z, one = self.stand.rows(tile.features), self.stand.one
        scores = z @ self.weights.slope.T + one * self.weights.intercept
        lead, pull = leads(scores, tile.codes)
        wrong = ~(lead > 0)
        pull = pull[wrong]
        moves = Weights(np.asarray((z[wrong].T @ pull).T), one * pull.sum(axis=0))
        size = z.power(2).sum(axis=1) if is_sparse(z) else np.einsum("ij,ij->i", z, z)
        radius = float(np.sqrt(np.max(size) + one)) if len(lead) else 0.0
        return Judgement(
            int(wrong.sum()),
            float(lead.min(initial=np.inf)),
            radius,
            float(-lead[wrong].sum()),
            moves,
        )

    def _count(self, tile: Block) -> Judgement:
        slope, rows = self.weights.slope * self.stand.scale, tile.features
        if not is_sparse(rows):
            rows = np.subtract(dense(rows), self.stand.origin, dtype=np.float64)
        scores = np.asarray(rows @ slope.T) + self.stand.one * self.weights.intercept
        lead = leads(scores, tile.codes)[0]
        none = Weights(np.zeros((0, 0)), np.zeros(0))
        wrong = int(np.count_nonzero(~(lead > 0)))
        return Judgement(wrong, float(lead.min(initial=np.inf)), np.nan, np.nan, none)


def leads(scores: Floats, codes: Codes) -> tuple[Floats, Floats]:
    """(n,) lead of the true class over the best other, and (n, m) which way each row pulls."""
    rows = np.arange(len(codes))
    if scores.shape[1] == 1:
        sign = 2.0 * codes.astype(np.float64) - 1.0
        return sign * scores[:, 0], sign[:, None]
    others = scores.copy()
    others[rows, codes] = -np.inf
    rival = others.argmax(axis=1)
    pull = np.zeros_like(scores)
    pull[rows, codes] = 1.0
    pull[rows, rival] = -1.0
    return scores[rows, codes] - scores[rows, rival], pull
