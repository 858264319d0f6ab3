"""Linear support vectors of sparse rows, by descent along one dual coordinate at a time.

The least of  w'P w / 2 + sum c loss(t (x.w + b))  is the most of

    sum alpha  -  w'P w / 2  -  sum soft alpha^2 / 2        P w = sum alpha t x,  0 <= alpha <= most

    hinge            most = c          soft = 0
    squared hinge    most = infinity   soft = 1 / (2 c)

One alpha at a time is set to its best, in a random order, while w follows (Hsieh et al. 2008);
rows that stay at a border are put aside until the end. A free intercept asks for sum alpha t = 0,
held by multipliers:  b = b0 + B^2 sum alpha t,  and after each sweep b0 = b. With a bias instead,
b0 stays 0 and b is one more weight, of a feature that is always `bias`, penalised as the others
are (as liblinear does it).

What is reported is the gap between the two sides above, relative: it bounds the error,
|w - w*|^2 <= 2 gap (for P = 1). It is summed row by row, from terms that are never negative, and
so to full precision however small it is (`row_gaps`). For a free intercept the other side is that
of the alpha scaled down to sum alpha t = 0 (`balanced`), for only such an alpha proves anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discriminant.models.entries import places_of
from discriminant.models.svm import Loss, balanced, lagging, row_gaps
from discriminant.table.schema import Floats

_FIRST = 10.0  # range of gradients, over the root of the tolerance, at which to look first
_ROUNDING = 1e-13  # range of gradients that no sweep need make smaller


@dataclass(frozen=True, slots=True, eq=False)
class Dual:
    """What a descent came to."""

    weights: Floats  # (d,)
    intercept: float
    alpha: Floats  # (n,)
    sweeps: int
    gap: float  # relative
    objective: float


def fit_dual(
    rows: Any,
    sign: Floats,
    *,
    cost: Floats | float = 1.0,
    loss: Loss = "squared_hinge",
    bias: float | None = 1.0,
    penalty: Floats | None = None,
    tolerance: float = 1e-8,
    max_sweeps: int = 1000,
    seed: int = 0,
) -> Dual:
    """Weights that tell rows of sign +1 from rows of sign -1.

    Parameters
    ----------
    rows
        (n, d) CSR of float32 or float64 with 32-bit indices. It is not copied.
    sign
        (n,) +1 or -1.
    cost
        (n,) or one for all: what a row's loss counts against |w|^2 / 2.
    bias
        Value of one more feature that all rows have; 0 for no intercept; None for an intercept
        that is not penalised.
    penalty
        (d,) diagonal of P; None is 1. 0 leaves a column out.
    tolerance
        On the relative gap.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> found = fit_dual(csr_array([[1.0], [-1.0]]), np.array([1.0, -1.0]), cost=100.0, bias=0.0)
    >>> found.weights.round(3).tolist()
    [0.998]
    """
    descent = _Descent(rows, sign, np.broadcast_to(np.asarray(cost, float), sign.shape), loss)
    descent.begin(bias, penalty, seed)
    return descent.run(tolerance, max_sweeps)


class _Descent:
    """Alpha and weights under way, moved in place by the compiled loop."""

    def __init__(self, rows: Any, sign: Floats, cost: Floats, loss: Loss) -> None:
        from discriminant.models import loops

        self._sweep = loops.sweep
        self.rows, self.sign, self.cost = rows, np.ascontiguousarray(sign, dtype=float), cost
        self.squared = loss == "squared_hinge"
        some = cost > 0
        soft = np.divide(0.5, cost, out=np.zeros(len(cost)), where=some)
        self.soft = soft if self.squared else np.zeros(len(cost))
        self.most = np.where(some, np.inf, 0.0) if self.squared else np.array(cost)
        self.alpha = np.zeros(len(cost))
        self.order = np.flatnonzero(some).astype(np.int32)

    def begin(self, bias: float | None, penalty: Floats | None, seed: int) -> None:
        width = self.rows.shape[1]
        P = np.ones(width) if penalty is None else penalty
        self.inverse = np.divide(1.0, P, out=np.zeros(width), where=P > 0)
        self.penalty = P
        self.weights = np.zeros(width)
        squares = self.rows.copy()
        squares.data = np.square(squares.data, dtype=np.float64)
        norms = np.asarray(squares @ self.inverse, dtype=np.float64) + self.soft
        if (P == 1.0).all():
            self.inverse = np.zeros(0)
        self.free = bias is None
        # Too large a lift makes sweeps slow, too small a one the intercept.
        lift = (float(norms.mean()) or 1.0) / np.sqrt(len(norms)) if bias is None else bias**2
        size = norms + lift
        self.size = np.where(size > 0, size, 1.0)
        self.state = np.array([0.0, 0.0, lift, np.inf, -np.inf, 0.0, 0.0, len(self.order), seed])

    @property
    def intercept(self) -> float:
        return float(self.state[0] + self.state[2] * self.state[1])

    def run(self, tolerance: float, max_sweeps: int) -> Dual:
        """Sweep until the gap is closed.

        It falls as the square of the range of projected gradients, so that range says when it is
        worth a look. Where the range has nothing to say (it can be zero while the intercept is
        still on its way), a look at sweeps 1, 2, 4, 8, ... takes twice the sweeps needed at most.
        """
        gap, value = self.gap()
        narrow, sweep = _FIRST * np.sqrt(tolerance), 0
        while sweep < max_sweeps and gap > tolerance:
            sweep += 1
            left = self.once()
            if self.free:
                self.state[0] = self.intercept
            width = float(self.state[5] - self.state[6])
            near = width <= narrow
            if near and left < len(self.order):
                self.unshrink()
                near = False  # until all rows are
            if near or sweep == max_sweeps or sweep & (sweep - 1) == 0:
                gap, value = self.gap()
            if near:
                narrow = max(width * min(0.7 * np.sqrt(tolerance / (gap or 1.0)), 0.7), _ROUNDING)
        return Dual(self.weights, self.intercept, self.alpha, sweep, gap, value)

    def once(self) -> int:
        entries = (self.rows.data, places_of(self.rows), self.rows.indptr)
        left = self._sweep(
            *entries,
            self.sign,
            self.most,
            self.soft,
            self.size,
            self.inverse,
            self.alpha,
            self.weights,
            self.order,
            self.state,
        )
        self.state[3] = self.state[5] if self.state[5] > 0 else np.inf
        self.state[4] = self.state[6] if self.state[6] < 0 else -np.inf
        return left

    def unshrink(self) -> None:
        """Bring back the rows put aside."""
        self.state[7] = len(self.order)
        self.state[3], self.state[4] = np.inf, -np.inf

    def gap(self) -> tuple[float, float]:
        """Relative gap, and the objective."""
        energy = 0.5 * float(self.penalty @ self.weights**2)
        tie, lift = float(self.state[1]), float(self.state[2])
        energy += 0.0 if self.free else 0.5 * lift * tie**2
        margin = self.sign * (np.asarray(self.rows @ self.weights) + self.intercept)
        short = np.maximum(1.0 - margin, 0.0)
        value = energy + float(self.cost @ (short**2 if self.squared else short))
        proof = balanced(self.alpha, self.sign) if self.free else self.alpha
        gap = float(row_gaps(margin, proof, self.cost, squared=self.squared).sum())
        if self.free:  # else the weights are those of alpha
            back = np.asarray(self.rows.T @ (self.sign * proof), dtype=np.float64)
            gap += lagging(self.penalty * self.weights - back, self.penalty)
        return gap / (value or 1.0), value
