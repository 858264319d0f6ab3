"""Linear support vector machines: primal solvers from products of rows, dual for sparse rows.

For rows u with sign t = +-1 and cost c, and margins m = t (u.w + b), minimise over w and a free b

    squared hinge    w'P w / 2  +  sum c max(0, 1 - m)^2
    hinge            w'P w / 2  +  sum c max(0, 1 - m)

with P diagonal. Divided by the sum of weights this is mean loss + ridge / 2 |w|^2 for costs
c = weight / (ridge sum of weights).

`fit_squared_hinge` minimises the first, which is quadratic between the points where rows become
active (m < 1), so that Newton steps on the active rows, with an exact line search, end after a few
steps, exactly. `fit_hinge` minimises the second by a primal-dual interior-point method (Mehrotra;
Ferris and Munson 2002) for

    P w = sum alpha t u    sum alpha t = 0    0 <= alpha <= c    slack >= 0

Both bound their distance from the minimum by duality: any alpha with 0 <= alpha (<= c for the
hinge) and, for a free b, sum alpha t = 0 proves that the objective exceeds the minimum by at most

    sum of `row_duality_gaps`  +  lag' P^-1 lag / 2        lag = P w - sum alpha t u

An intermediate point has such an alpha except for its sum: the heavier side is scaled down
(`balance_dual`). Both need only products of the rows: scores u.w, sums of weight u u' and of
weight u. An engine computes these, so rows may be anywhere.

`fit_dual` fits sparse rows by dual coordinate descent. The minimum of
w'P w / 2 + sum c loss(t (x.w + b)) is the maximum of

    sum alpha  -  w'P w / 2  -  sum soft alpha^2 / 2        P w = sum alpha t x,  0 <= alpha <= most

    hinge            most = c          soft = 0
    squared hinge    most = infinity   soft = 1 / (2 c)

One alpha at a time is set to its optimum, in random order, while w follows (Hsieh et al. 2008);
rows that stay at a bound are set aside until the end. A free intercept requires sum alpha t = 0,
enforced by multipliers:  b = b0 + B^2 sum alpha t,  and after each sweep b0 = b. With a bias
instead, b0 stays 0 and b is one more weight, of a constant feature `bias`, penalised like the
others (as in liblinear). The relative duality gap bounds the error, |w - w*|^2 <= 2 gap (for
P = 1). It is summed row by row from terms that are never negative, and so to full precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from discriminant.models.linear.perceptron import unsigned_indices
from discriminant.moments.loss import WeightedProducts
from discriminant.table.blocks import Floats

Loss = Literal["squared_hinge", "hinge"]

_SETTLED = 1e-13  # of the objective: what a further step would gain at most
_FALLING = 0.5  # of the gap, by a step that still helps
_TO_BORDER = 0.995  # how far towards the border an interior step may go


@dataclass(frozen=True, slots=True, eq=False)
class SVMProblem:
    """Two classes, and how to ask of their rows."""

    sign: Floats  # (N,) +-1
    cost: Floats  # (N,) not negative
    penalty: Floats  # (d,) the diagonal of P; 0 leaves a column out
    free: bool  # whether there is an intercept
    scores: Callable[[Floats], Floats]  # (d,) weights -> (N,) u.w
    products: Callable[[Floats, Floats | None], WeightedProducts]  # pull (N, m), curve -> sums

    def step(self, gram: Floats, pull: Floats) -> Floats:
        """(d + 1, m) solution of (P + gram) step = pull, in units of its diagonal."""
        lower = np.tril(gram) + np.diag(np.append(self.penalty, 0.0))
        size = np.sqrt(np.diagonal(lower)).copy()
        out = (size == 0.0) | np.append(self.penalty == 0.0, not self.free)
        size[out] = 1.0
        lower /= size[:, None] * size
        lower[out], lower[:, out] = 0.0, 0.0
        lower[out, out] = 1.0
        pull = np.where(out[:, None], 0.0, pull / size[:, None])
        return _solved(lower, pull) / size[:, None]

    def margins(self, weights: Floats) -> Floats:
        """(N,) t (u.w + b) for (d + 1,) weights."""
        return np.asarray(self.sign * (self.scores(weights[:-1]) + weights[-1]))

    def proof(self, alpha: Floats) -> Floats:
        """(N,) alpha that proves how far the least is: with an intercept, balanced."""
        return balance_dual(alpha, self.sign) if self.free else alpha


@dataclass(frozen=True, slots=True, eq=False)
class SVMFit:
    """What a search came to."""

    weights: Floats  # (d + 1,) the last is the intercept
    steps: int
    gap: float  # how far the objective is from the least, relative, at most
    objective: float


def fit_squared_hinge(
    problem: SVMProblem, *, tolerance: float = 1e-8, max_steps: int = 100
) -> SVMFit:
    """Squared hinge, by Newton steps on the active rows."""
    weights = np.zeros(len(problem.penalty) + 1)
    margin = np.zeros(len(problem.sign))
    gap, before, objective, steps = np.inf, np.inf, np.inf, 0
    goal = min(tolerance, _SETTLED)
    while steps < max_steps:
        short = np.maximum(1.0 - margin, 0.0)
        curve = np.where(short > 0, 2.0 * problem.cost, 0.0)
        alpha = curve * short
        proof = problem.proof(alpha)
        sums = problem.products(problem.sign[:, None] * np.stack([alpha, proof], axis=1), curve)
        force = problem.penalty * weights[:-1]
        down = sums.rhs[:, 0] - np.append(force, 0.0)
        step = problem.step(sums.gram, down[:, None])[:, 0]
        objective = _energy(problem, weights) + float(problem.cost @ short**2)
        before, gap = gap, float(row_duality_gaps(margin, proof, problem.cost, squared=True).sum())
        gap = (gap + stationarity_gap(force - sums.rhs[:-1, 1], problem.penalty)) / (
            objective or 1.0
        )
        gain = 0.5 * float(down @ step)
        steps += 1
        # The proof can lag behind: of many rows it wants a gradient that is almost zero.
        if gain <= goal * objective and (gap <= tolerance or gap > _FALLING * before):
            break
        change = problem.margins(step)
        far = _search(problem, weights, step, margin, change)
        weights += far * step
        margin += far * change
    return SVMFit(weights, steps, gap, objective)


def _search(
    problem: SVMProblem, weights: Floats, step: Floats, margin: Floats, change: Floats
) -> float:
    """How far along the step the least lies: the root of an increasing, piecewise linear slope."""
    P, w, s = problem.penalty, weights[:-1], step[:-1]
    level, rise = float(P @ (w * s)), float(P @ (s * s))
    heavy = 2.0 * problem.cost * change
    # What the slope is a difference of: less than its rounding cannot be told from zero.
    summed = float(np.abs(heavy) @ np.maximum(1.0 - margin, 0.0))
    far, lo, hi = 1.0, 0.0, np.inf
    for _ in range(60):
        short = 1.0 - margin - far * change
        active = short > 0
        slope = level + far * rise - float(heavy @ np.where(active, short, 0.0))
        steep = rise + float(heavy @ np.where(active, change, 0.0))
        lo, hi = (far, hi) if slope < 0 else (lo, far)
        if steep <= 0 or abs(slope) <= 1e-14 * (abs(level) + abs(far * rise) + summed):
            break
        near = far - slope / steep
        near = near if lo < near < hi else (lo + hi) / 2 if hi < np.inf else 2 * far
        if near == far:
            break
        far = near
    return far


def fit_hinge(problem: SVMProblem, *, tolerance: float = 1e-8, max_steps: int = 200) -> SVMFit:
    """Hinge, by steps inside 0 < alpha < cost towards the border."""
    path = _Path(problem)
    goal, steps = min(tolerance, 1e-14), 0
    best = path.vectors(0)
    while steps < max_steps and best.gap > goal:
        if not path.advance():
            break
        steps += 1
        now = path.vectors(steps)
        if now.gap < best.gap:
            best = now
        elif now.gap > 1e3 * best.gap or best.gap < tolerance:
            break  # rounding has the last word
    return best


class _Path:
    """The point under way. Rows of no cost take no part."""

    def __init__(self, problem: SVMProblem) -> None:
        self.problem = problem
        self.some = problem.cost > 0
        self.cost, self.sign = problem.cost[self.some], problem.sign[self.some]
        self.weights = np.zeros(len(problem.penalty) + 1)
        self.margin = np.zeros(len(self.cost))
        self.alpha = self.cost / 2  # of margin + over - slack = 1
        self.rest = self.cost / 2  # cost - alpha, followed for itself: their difference rounds to 0
        self.over = np.full(len(self.cost), 2.0)  # xi, paid for
        self.slack = np.ones(len(self.cost))
        self._look_back()

    def vectors(self, steps: int) -> SVMFit:
        """The weights, with the gap between what they cost and what alpha proves."""
        loss = float(self.cost @ np.maximum(1.0 - self.margin, 0.0))
        value = _energy(self.problem, self.weights) + loss
        P = self.problem.penalty
        gap = float(row_duality_gaps(self.margin, self.proof, self.cost, squared=False).sum())
        gap += stationarity_gap(P * self.weights[:-1] - self.proved[:-1], P)
        return SVMFit(self.weights.copy(), steps, gap / (value or 1.0), value)

    def advance(self) -> bool:
        """One predictor and one corrector step; False where they lead nowhere."""
        rest = self.rest
        ease = 1.0 / (self.over / rest + self.slack / self.alpha)
        lack = self.margin + self.over - self.slack - 1.0
        mean = (self.alpha @ self.slack + rest @ self.over) / (2 * len(self.cost))
        gram = self._gram(ease)
        first = self._solve(gram, ease, lack, -self.alpha * self.slack, -rest * self.over)
        far = self._reach(*first[1:])
        alpha, over, slack = (
            at + far * by for at, by in zip(self._point(), first[1:], strict=True)
        )
        then = (alpha @ slack + (self.cost - alpha) @ over) / (2 * len(self.cost))
        aim = mean * min(max(then / mean, 0.0), 1.0) ** 3
        step, d_alpha, d_over, d_slack = self._solve(
            gram,
            ease,
            lack,
            aim - self.alpha * self.slack - first[1] * first[3],
            aim - rest * self.over + first[1] * first[2],
        )
        far = _TO_BORDER * self._reach(d_alpha, d_over, d_slack)
        if not (np.isfinite(far) and np.isfinite(step).all() and far > 1e-10):
            return False
        far = min(far, 1.0)
        self.weights += far * step
        self.alpha += far * d_alpha
        self.rest -= far * d_alpha
        self.over += far * d_over
        self.slack += far * d_slack
        self.margin = self.problem.margins(self.weights)[self.some]
        self._look_back()
        return True

    def _look_back(self) -> None:
        """Sums of alpha t u, and of what proves the gap."""
        self.proof = balance_dual(self.alpha, self.sign) if self.problem.free else self.alpha
        both = self.sign[:, None] * np.stack([self.alpha, self.proof], axis=1)
        self.back, self.proved = self.problem.products(self._spread(both), None).rhs.T

    def _point(self) -> tuple[Floats, Floats, Floats]:
        return self.alpha, self.over, self.slack

    def _solve(
        self, gram: Floats, ease: Floats, lack: Floats, low: Floats, high: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """The Newton step: weights, alpha, over, slack. `low`, `high`: what alpha slack and
        (cost - alpha) over are to gain."""
        rest = self.rest
        wish = -lack - high / rest + low / self.alpha
        lag = np.append(self.problem.penalty * self.weights[:-1], 0.0) - self.back
        step = self.problem.step(gram, (self._pull(self.sign * ease * wish) - lag)[:, None])[:, 0]
        along = self.problem.margins(step)[self.some]
        d_alpha = ease * (wish - along)
        d_over = (high + self.over * d_alpha) / rest
        d_slack = (low - self.slack * d_alpha) / self.alpha
        return step, d_alpha, d_over, d_slack

    def _reach(self, d_alpha: Floats, d_over: Floats, d_slack: Floats) -> float:
        """How far one may go until alpha, cost - alpha, over or slack is zero."""
        pairs = (
            (self.alpha, d_alpha),
            (self.rest, -d_alpha),
            (self.over, d_over),
            (self.slack, d_slack),
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            limits = [np.min(np.where(by < 0, -at / by, np.inf)) for at, by in pairs]
        return float(min(1.0 / _TO_BORDER, *limits))

    def _pull(self, pull: Floats) -> Floats:
        return self.problem.products(self._spread(pull)[:, None], None).rhs[:, 0]

    def _gram(self, curve: Floats) -> Floats:
        none = np.zeros((len(self.some), 0))
        return self.problem.products(none, self._spread(curve)).gram

    def _spread(self, values: Floats) -> Floats:
        if self.some.all():
            return values
        spread = np.zeros((len(self.some), *values.shape[1:]))
        spread[self.some] = values
        return spread


def balance_dual(alpha: Floats, sign: Floats) -> Floats:
    """(n,) alpha with the heavier side scaled down, so that sum alpha t = 0."""
    sides = np.array([alpha[sign < 0].sum(), alpha[sign > 0].sum()])
    factor = np.divide(sides.min(), sides, out=np.zeros(2), where=sides > 0)
    return np.asarray(alpha * np.where(sign > 0, factor[1], factor[0]))


def stationarity_gap(lag: Floats, penalty: Floats) -> float:
    """lag' P^-1 lag / 2, columns left out aside."""
    some = penalty > 0
    return 0.5 * float((lag[some] ** 2 / penalty[some]).sum())


def row_duality_gaps(margin: Floats, alpha: Floats, cost: Floats, *, squared: bool) -> Floats:
    """(n,) what each row adds to the gap: loss + its conjugate - their product, never negative.

    For the squared hinge a row short by s adds (2 c s - alpha)^2 / 4c, else alpha (m - 1) +
    alpha^2 / 4c; for the hinge (c - alpha) s, else alpha (m - 1).
    """
    short, far = np.maximum(1.0 - margin, 0.0), np.maximum(margin - 1.0, 0.0)
    if not squared:
        return np.asarray((cost - alpha) * short + alpha * far)
    off = (2.0 * cost * short - alpha) ** 2
    return alpha * far + np.divide(off, 4.0 * cost, out=np.zeros_like(off), where=cost > 0)


def _solved(lower: Floats, pull: Floats) -> Floats:
    """Solution for a matrix of diagonal 1; near its end a path makes it singular to rounding."""
    if not np.isfinite(lower).all():
        return np.full_like(pull, np.nan)
    for bump in (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-10, 1e-8):
        try:
            factor = cho_factor(lower + bump * np.eye(len(lower)), lower=True)
        except np.linalg.LinAlgError:
            continue
        return np.asarray(cho_solve(factor, pull))
    return np.full_like(pull, np.nan)


def _energy(problem: SVMProblem, weights: Floats) -> float:
    return 0.5 * float(problem.penalty @ weights[:-1] ** 2)


_FIRST = 10.0  # range of gradients, over the root of the tolerance, at which to look first
_ROUNDING = 1e-13  # range of gradients that no sweep need make smaller


@dataclass(frozen=True, slots=True, eq=False)
class DualFit:
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
) -> DualFit:
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
        from discriminant.models.linear import kernels

        self._sweep = kernels.dual_sweep
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

    def run(self, tolerance: float, max_sweeps: int) -> DualFit:
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
        return DualFit(self.weights, self.intercept, self.alpha, sweep, gap, value)

    def once(self) -> int:
        entries = (self.rows.data, unsigned_indices(self.rows), self.rows.indptr)
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
        proof = balance_dual(self.alpha, self.sign) if self.free else self.alpha
        gap = float(row_duality_gaps(margin, proof, self.cost, squared=self.squared).sum())
        if self.free:  # else the weights are those of alpha
            back = np.asarray(self.rows.T @ (self.sign * proof), dtype=np.float64)
            gap += stationarity_gap(self.penalty * self.weights - back, self.penalty)
        return gap / (value or 1.0), value
