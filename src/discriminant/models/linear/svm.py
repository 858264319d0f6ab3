"""Linear support vector machines: primal solvers, and a dual solver for sparse rows.

A row u has a sign t = +-1, a cost c and the margin m = t (u.w + b). Minimise over the weights w and
the intercept b, which is not penalised:

    squared hinge    w'P w / 2  +  sum c max(0, 1 - m)^2
    hinge            w'P w / 2  +  sum c max(0, 1 - m)

with P diagonal. With the costs c = weight / (ridge sum of weights), the objective is proportional
to mean loss + ridge / 2 |w|^2.

`fit_squared_hinge` minimises the squared hinge. The objective is quadratic as long as the set of
active rows (m < 1) does not change. So Newton steps on the active rows, with an exact line search,
reach the exact minimum after a few steps. `fit_hinge` minimises the hinge by a primal-dual
interior-point method (Mehrotra; Ferris and Munson 2002) for the conditions

    P w = sum alpha t u    sum alpha t = 0    0 <= alpha <= c    slack >= 0

Both solvers bound the distance of the objective from its minimum by duality. Take any alpha >= 0
that satisfies alpha <= c for the hinge and, if there is an intercept, sum alpha t = 0. Any such
alpha proves that the objective exceeds its minimum by at most

    sum of `row_duality_gaps`  +  lag' P^-1 lag / 2        lag = P w - sum alpha t u

The alpha of an intermediate point need not satisfy sum alpha t = 0, so the alpha of the class with
the larger sum are scaled down (`balance_dual`). The solvers of both primal problems need only
products of the rows: scores u.w, and weighted sums of u u' and of u. The engine that reads the
table computes these products, so the rows need not be in memory.

`fit_dual` fits sparse rows by dual coordinate descent. The minimum over w and b of
w'P w / 2 + sum c loss(t (x.w + b)) equals the maximum over alpha of

    sum alpha  -  w'P w / 2  -  sum soft alpha^2 / 2        P w = sum alpha t x,  0 <= alpha <= most

    hinge            most = c          soft = 0
    squared hinge    most = infinity   soft = 1 / (2 c)

In random order, one alpha at a time is set to its optimum, and w is updated (Hsieh et al. 2008).
Rows whose alpha stays at a bound are skipped until the solution is nearly reached. An intercept
without penalty requires sum alpha t = 0. The condition is enforced by the method of multipliers: b
= b0 + B^2 sum alpha t, and b0 is set to b after each sweep. If the intercept is penalised (`bias`
is a number), b0 remains 0, and b is the score of a constant feature with the value `bias`. The
weight of this feature is penalised like all other weights, as in liblinear. The duality gap bounds
the error: |w - w*|^2 <= 2 gap if P = 1. The gap is a sum over rows of terms that are never
negative, so it is computed to full precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.linalg.lapack import dposv

from discriminant.models.linear.perceptron import unsigned_indices
from discriminant.moments.loss_gradient_sums import WeightedProducts
from discriminant.table.blocks import Floats

Loss = Literal["squared_hinge", "hinge"]

_SETTLED = 1e-13  # the iteration ends if a step would gain less, relative to the objective
_REDUCTION = 0.5  # a useful step reduces the gap at least by this factor
_TO_BOUNDARY = 0.995  # a step goes at most this share of the way to the boundary


@dataclass(frozen=True, slots=True, eq=False)
class SVMProblem:
    """Data of a two-class SVM: signs and costs of N rows, penalty, and functions of the rows.

    The rows u themselves are not stored. The functions `scores` and `products` compute from them
    what the solvers need: scores, and weighted sums of rows and of their products.
    """

    sign: Floats  # (N,) t: +1 or -1
    cost: Floats  # (N,) c, not negative
    penalty: Floats  # (d,) diagonal of P; 0 leaves a column out
    free: bool  # whether there is an intercept, which is not penalised
    scores: Callable[[Floats], Floats]  # (d,) weights -> (N,) u.w
    products: Callable[[Floats, Floats | None], WeightedProducts]  # (N, m), weights (N,) -> sums

    def step(self, gram: Floats, rhs: Floats) -> Floats:
        """Return the (d + 1, m) solution of the system whose matrix is the penalty plus `gram`.

        The matrix is scaled to a unit diagonal before the system is solved. The step is 0 for
        columns that are left out.
        """
        lower = np.tril(gram) + np.diag(np.append(self.penalty, 0.0))
        size = np.sqrt(np.diagonal(lower)).copy()
        excluded = (size == 0.0) | np.append(self.penalty == 0.0, not self.free)
        size[excluded] = 1.0
        lower /= size[:, None] * size
        lower[excluded], lower[:, excluded] = 0.0, 0.0
        lower[excluded, excluded] = 1.0
        rhs = np.where(excluded[:, None], 0.0, rhs / size[:, None])
        return _solve_regularised(lower, rhs) / size[:, None]

    def margins(self, weights: Floats) -> Floats:
        """Return the (N,) margins t (u.w + b); `weights` (d + 1,) holds w, then b."""
        return np.asarray(self.sign * (self.scores(weights[:-1]) + weights[-1]))

    def proof(self, alpha: Floats) -> Floats:
        """Return the (N,) alpha that the duality gap uses; if `free`, alpha is balanced first."""
        return balance_dual(alpha, self.sign) if self.free else alpha


@dataclass(frozen=True, slots=True, eq=False)
class SVMFit:
    """Result of a primal fit."""

    weights: Floats  # (d + 1,) the last one is the intercept
    steps: int
    gap: float  # upper bound of the relative distance of the objective from its minimum
    objective: float


def fit_squared_hinge(
    problem: SVMProblem, *, tolerance: float = 1e-8, max_steps: int = 100
) -> SVMFit:
    """Fit with the squared hinge loss by Newton steps on the active rows."""
    weights = np.zeros(len(problem.penalty) + 1)
    margin = np.zeros(len(problem.sign))
    gap, before, objective, steps = np.inf, np.inf, np.inf, 0
    target = min(tolerance, _SETTLED)
    while steps < max_steps:
        shortfall = np.maximum(1.0 - margin, 0.0)
        curvature = np.where(shortfall > 0, 2.0 * problem.cost, 0.0)
        alpha = curvature * shortfall
        proof = problem.proof(alpha)
        sums = problem.products(problem.sign[:, None] * np.stack([alpha, proof], axis=1), curvature)
        penalty_gradient = problem.penalty * weights[:-1]
        gradient = sums.rhs[:, 0] - np.append(penalty_gradient, 0.0)
        step = problem.step(sums.gram, gradient[:, None])[:, 0]
        objective = _penalty_value(problem, weights) + float(problem.cost @ shortfall**2)
        before, gap = gap, float(row_duality_gaps(margin, proof, problem.cost, squared=True).sum())
        gap = (gap + stationarity_gap(penalty_gradient - sums.rhs[:-1, 1], problem.penalty)) / (
            objective or 1.0
        )
        gain = 0.5 * float(gradient @ step)
        steps += 1
        # The gap may converge later than the weights: with many rows it is small only if the
        # gradient is almost zero.
        if gain <= target * objective and (gap <= tolerance or gap > _REDUCTION * before):
            break
        margin_change = problem.margins(step)
        factor = _line_search(problem, weights, step, margin, margin_change)
        weights += factor * step
        margin += factor * margin_change
    return SVMFit(weights, steps, gap, objective)


def _line_search(
    problem: SVMProblem, weights: Floats, step: Floats, margin: Floats, change: Floats
) -> float:
    """Return the factor of the step that minimises the objective.

    The factor is the root of the slope along the step, which is piecewise linear in the factor.
    """
    P, w, s = problem.penalty, weights[:-1], step[:-1]
    slope0, square = float(P @ (w * s)), float(P @ (s * s))
    weighted = 2.0 * problem.cost * change
    # The slope is a difference of terms of this size, so a slope below their rounding is zero.
    size = float(np.abs(weighted) @ np.maximum(1.0 - margin, 0.0))
    factor, lo, hi = 1.0, 0.0, np.inf
    for _ in range(60):
        shortfall = 1.0 - margin - factor * change
        active = shortfall > 0
        slope = slope0 + factor * square - float(weighted @ np.where(active, shortfall, 0.0))
        curvature = square + float(weighted @ np.where(active, change, 0.0))
        lo, hi = (factor, hi) if slope < 0 else (lo, factor)
        if curvature <= 0 or abs(slope) <= 1e-14 * (abs(slope0) + abs(factor * square) + size):
            break
        trial = factor - slope / curvature
        trial = trial if lo < trial < hi else (lo + hi) / 2 if hi < np.inf else 2 * factor
        if trial == factor:
            break
        factor = trial
    return factor


def fit_hinge(problem: SVMProblem, *, tolerance: float = 1e-8, max_steps: int = 200) -> SVMFit:
    """Fit with the hinge loss by interior-point steps, with 0 < alpha < cost."""
    path = _InteriorPath(problem)
    target, steps = min(tolerance, 1e-14), 0
    best = path.fit(0)
    while steps < max_steps and best.gap > target:
        if not path.advance():
            break
        steps += 1
        current = path.fit(steps)
        if current.gap < best.gap:
            best = current
        elif current.gap > 1e3 * best.gap or best.gap < tolerance:
            break  # only rounding is left
    return best


class _InteriorPath:
    """Iterate of the interior-point method. Rows with a cost of zero are left out."""

    def __init__(self, problem: SVMProblem) -> None:
        self.problem = problem
        self.used = problem.cost > 0
        self.cost, self.sign = problem.cost[self.used], problem.sign[self.used]
        self.weights = np.zeros(len(problem.penalty) + 1)
        self.margin = np.zeros(len(self.cost))
        self.alpha = self.cost / 2  # multipliers of the constraint margin + over - slack = 1
        self.upper = self.cost / 2  # cost - alpha, stored since the difference may round to 0
        self.over = np.full(len(self.cost), 2.0)  # xi, the loss of each row in the objective
        self.slack = np.ones(len(self.cost))
        self._update_sums()

    def fit(self, steps: int) -> SVMFit:
        """Return the current weights with their duality gap."""
        loss = float(self.cost @ np.maximum(1.0 - self.margin, 0.0))
        value = _penalty_value(self.problem, self.weights) + loss
        P = self.problem.penalty
        gap = float(row_duality_gaps(self.margin, self.proof, self.cost, squared=False).sum())
        gap += stationarity_gap(P * self.weights[:-1] - self.proved[:-1], P)
        return SVMFit(self.weights.copy(), steps, gap / (value or 1.0), value)

    def advance(self) -> bool:
        """Take a predictor-corrector step. Return False if no progress is possible."""
        upper = self.upper
        weight = 1.0 / (self.over / upper + self.slack / self.alpha)
        error = self.margin + self.over - self.slack - 1.0
        mean = (self.alpha @ self.slack + upper @ self.over) / (2 * len(self.cost))
        gram = self._gram(weight)
        predictor = self._solve(gram, weight, error, -self.alpha * self.slack, -upper * self.over)
        factor = self._max_factor(*predictor[1:])
        point = self.alpha, self.over, self.slack
        alpha, over, slack = (
            value + factor * change for value, change in zip(point, predictor[1:], strict=True)
        )
        predicted_mean = (alpha @ slack + (self.cost - alpha) @ over) / (2 * len(self.cost))
        target = mean * min(max(predicted_mean / mean, 0.0), 1.0) ** 3
        step, d_alpha, d_over, d_slack = self._solve(
            gram,
            weight,
            error,
            target - self.alpha * self.slack - predictor[1] * predictor[3],
            target - upper * self.over + predictor[1] * predictor[2],
        )
        factor = _TO_BOUNDARY * self._max_factor(d_alpha, d_over, d_slack)
        if not (np.isfinite(factor) and np.isfinite(step).all() and factor > 1e-10):
            return False
        factor = min(factor, 1.0)
        self.weights += factor * step
        self.alpha += factor * d_alpha
        self.upper -= factor * d_alpha
        self.over += factor * d_over
        self.slack += factor * d_slack
        self.margin = self.problem.margins(self.weights)[self.used]
        self._update_sums()
        return True

    def _update_sums(self) -> None:
        """Update the sums of alpha t u for the current alpha and for the balanced alpha."""
        self.proof = balance_dual(self.alpha, self.sign) if self.problem.free else self.alpha
        both = self.sign[:, None] * np.stack([self.alpha, self.proof], axis=1)
        self.back, self.proved = self.problem.products(self._to_all_rows(both), None).rhs.T

    def _solve(
        self,
        gram: Floats,
        weight: Floats,
        error: Floats,
        slack_change: Floats,
        over_change: Floats,
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the Newton step of weights, alpha, over and slack.

        `slack_change` is the required change of the product of alpha and slack; `over_change` is
        the required change of the product of (cost - alpha) and over.
        """
        upper = self.upper
        rhs = -error - over_change / upper + slack_change / self.alpha
        lag = np.append(self.problem.penalty * self.weights[:-1], 0.0) - self.back
        step = self.problem.step(gram, (self._sums(self.sign * weight * rhs) - lag)[:, None])[:, 0]
        margin_change = self.problem.margins(step)[self.used]
        d_alpha = weight * (rhs - margin_change)
        d_over = (over_change + self.over * d_alpha) / upper
        d_slack = (slack_change - self.slack * d_alpha) / self.alpha
        return step, d_alpha, d_over, d_slack

    def _max_factor(self, d_alpha: Floats, d_over: Floats, d_slack: Floats) -> float:
        """Return the largest factor that keeps alpha, cost - alpha, over and slack positive."""
        pairs = (
            (self.alpha, d_alpha),
            (self.upper, -d_alpha),
            (self.over, d_over),
            (self.slack, d_slack),
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            limits = [np.min(np.where(by < 0, -at / by, np.inf)) for at, by in pairs]
        return float(min(1.0 / _TO_BOUNDARY, *limits))

    def _sums(self, weights: Floats) -> Floats:
        return self.problem.products(self._to_all_rows(weights)[:, None], None).rhs[:, 0]

    def _gram(self, weights: Floats) -> Floats:
        no_columns = np.zeros((len(self.used), 0))
        return self.problem.products(no_columns, self._to_all_rows(weights)).gram

    def _to_all_rows(self, values: Floats) -> Floats:
        if self.used.all():
            return values
        padded = np.zeros((len(self.used), *values.shape[1:]))
        padded[self.used] = values
        return padded


def balance_dual(alpha: Floats, sign: Floats) -> Floats:
    """Return the (n,) balanced alpha, with sum alpha t = 0.

    The alpha of the class with the larger sum are scaled down.
    """
    positive = sign > 0
    low, high = float(alpha[~positive].sum()), float(alpha[positive].sum())
    least = min(low, high)
    factors = least / high if high > 0 else 0.0, least / low if low > 0 else 0.0
    return np.asarray(alpha * np.where(positive, *factors))


def stationarity_gap(residual: Floats, penalty: Floats) -> float:
    """Return half the sum of residual^2 / penalty over the columns with a positive penalty."""
    positive = penalty > 0
    return 0.5 * float((residual[positive] ** 2 / penalty[positive]).sum())


def row_duality_gaps(margin: Floats, alpha: Floats, cost: Floats, *, squared: bool) -> Floats:
    """Return the (n,) duality gaps of the rows; all are at least 0.

    The gap of a row is its loss plus the conjugate of the loss minus their product. For a row with
    margin m = 1 - s < 1 it is

        squared hinge    (2 c s - alpha)^2 / 4c        hinge    (c - alpha) s

    and for any other row

        squared hinge    alpha (m - 1) + alpha^2 / 4c        hinge    alpha (m - 1)
    """
    shortfall, excess = np.maximum(1.0 - margin, 0.0), np.maximum(margin - 1.0, 0.0)
    if not squared:
        return np.asarray((cost - alpha) * shortfall + alpha * excess)
    square = (2.0 * cost * shortfall - alpha) ** 2
    return alpha * excess + np.divide(square, 4.0 * cost, out=np.zeros_like(square), where=cost > 0)


def _solve_regularised(lower: Floats, rhs: Floats) -> Floats:
    """Solve a linear system whose matrix has a unit diagonal.

    If the matrix is singular up to rounding, a small ridge is added. LAPACK is called directly,
    since for few unknowns the checks of `cho_factor` take longer than the solution.
    """
    if not np.isfinite(lower).all():
        return np.full_like(rhs, np.nan)
    for ridge in (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-10, 1e-8):
        ridged = lower + ridge * np.eye(len(lower)) if ridge else lower
        _, solution, info = dposv(ridged, rhs, lower=1)
        if not info:
            return np.asarray(solution)
    return np.full_like(rhs, np.nan)


def _penalty_value(problem: SVMProblem, weights: Floats) -> float:
    return 0.5 * float(problem.penalty @ weights[:-1] ** 2)


_FIRST_RANGE = 10.0  # the gap is first computed at a range of gradients of this x sqrt(tolerance)
_ROUNDING = 1e-13  # a smaller range of gradients counts as zero


@dataclass(frozen=True, slots=True, eq=False)
class DualFit:
    """Result of a dual fit."""

    weights: Floats  # (d,)
    intercept: float
    alpha: Floats  # (n,)
    sweeps: int
    gap: float  # duality gap relative to the objective
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
    """Fit a linear SVM to sparse rows by dual coordinate descent.

    Parameters
    ----------
    rows
        (n, d) CSR of float32 or float64 with 32-bit indices. It is not copied.
    sign
        (n,) +1 or -1.
    cost
        (n,) costs c of the rows, or one cost for all rows.
    loss
        'squared_hinge' or 'hinge'.
    bias
        Value of a constant feature, whose weight is penalised; 0 means no intercept. With None the
        intercept is not penalised.
    penalty
        (d,) diagonal of P; by default all penalties are 1. A column with a penalty of 0 is left
        out.
    tolerance
        Relative duality gap at which to stop.
    max_sweeps
        Maximum number of sweeps over the rows.
    seed
        Seed of the random order of rows.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> fit = fit_dual(csr_array([[1.0], [-1.0]]), np.array([1.0, -1.0]), cost=100.0, bias=0.0)
    >>> fit.weights.round(3).tolist()
    [0.998]
    """
    descent = _DualDescent(rows, sign, np.broadcast_to(np.asarray(cost, float), sign.shape), loss)
    descent.begin(bias, penalty, seed)
    return descent.run(tolerance, max_sweeps)


class _DualDescent:
    """Iterate of dual coordinate descent, which the compiled loop updates in place."""

    def __init__(self, rows: Any, sign: Floats, cost: Floats, loss: Loss) -> None:
        from discriminant.models.linear import compiled_perceptron_svm as loops

        self._sweep = loops.dual_sweep
        self.rows, self.sign, self.cost = rows, np.ascontiguousarray(sign, dtype=float), cost
        self.squared = loss == "squared_hinge"
        positive = cost > 0
        soft = np.divide(0.5, cost, out=np.zeros(len(cost)), where=positive)
        self.soft = soft if self.squared else np.zeros(len(cost))
        self.most = np.where(positive, np.inf, 0.0) if self.squared else np.array(cost)
        self.alpha = np.zeros(len(cost))
        self.order = np.flatnonzero(positive).astype(np.int32)

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
        # With a large B^2 the sweeps converge slowly; with a small B^2 the intercept does.
        bias2 = (float(norms.mean()) or 1.0) / np.sqrt(len(norms)) if bias is None else bias**2
        size = norms + bias2
        self.size = np.where(size > 0, size, 1.0)
        self.state = np.array([0.0, 0.0, bias2, np.inf, -np.inf, 0.0, 0.0, len(self.order), seed])

    @property
    def intercept(self) -> float:
        return float(self.state[0] + self.state[2] * self.state[1])

    def run(self, tolerance: float, max_sweeps: int) -> DualFit:
        """Sweep until the duality gap is within the tolerance.

        The gap is about proportional to the square of the range of projected gradients, so it is
        computed only when the range is small enough. The range can be zero before the intercept has
        converged; therefore the gap is also computed after sweeps 1, 2, 4, 8, ...
        """
        gap, value = self.gap()
        range_to_check, sweep = _FIRST_RANGE * np.sqrt(tolerance), 0
        while sweep < max_sweeps and gap > tolerance:
            sweep += 1
            active = self.once()
            if self.free:
                self.state[0] = self.intercept
            gradient_range = float(self.state[5] - self.state[6])
            narrow = gradient_range <= range_to_check
            if narrow and active < len(self.order):
                self.unshrink()
                narrow = False  # until all rows are active again
            if narrow or sweep == max_sweeps or sweep & (sweep - 1) == 0:
                gap, value = self.gap()
            if narrow:
                range_to_check = max(
                    gradient_range * min(0.7 * np.sqrt(tolerance / (gap or 1.0)), 0.7), _ROUNDING
                )
        return DualFit(self.weights, self.intercept, self.alpha, sweep, gap, value)

    def once(self) -> int:
        entries = (self.rows.data, unsigned_indices(self.rows), self.rows.indptr)
        active = self._sweep(
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
        return active

    def unshrink(self) -> None:
        """Make all rows active again."""
        self.state[7] = len(self.order)
        self.state[3], self.state[4] = np.inf, -np.inf

    def gap(self) -> tuple[float, float]:
        """Return the relative duality gap and the objective."""
        penalty_value = 0.5 * float(self.penalty @ self.weights**2)
        total_alpha, bias_square = float(self.state[1]), float(self.state[2])
        penalty_value += 0.0 if self.free else 0.5 * bias_square * total_alpha**2
        margin = self.sign * (np.asarray(self.rows @ self.weights) + self.intercept)
        shortfall = np.maximum(1.0 - margin, 0.0)
        value = penalty_value + float(self.cost @ (shortfall**2 if self.squared else shortfall))
        proof = balance_dual(self.alpha, self.sign) if self.free else self.alpha
        gap = float(row_duality_gaps(margin, proof, self.cost, squared=self.squared).sum())
        if self.free:  # otherwise the weights follow from alpha exactly
            back = np.asarray(self.rows.T @ (self.sign * proof), dtype=np.float64)
            gap += stationarity_gap(self.penalty * self.weights - back, self.penalty)
        return gap / (value or 1.0), value
