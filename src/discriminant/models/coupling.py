"""Probabilities of K classes from those of M two-class problems.

With r_m the probability that problem m gives its positive side (among the classes it knows), and
q+_m, q-_m the sums of p over its two sides, r_m should be q+_m / (q+_m + q-_m). There are more
problems than classes, so no p fits all of them.

    pairs  Wu, Lin & Weng (2004), their second method:
           min over p of  sum over pairs of (r_kj p_j - r_jk p_k)^2,  sum of p = 1
           a linear system for each row; its solution is never negative.

    codes  generalised Bradley-Terry (Zadrozny 2002; Huang, Weng & Lin 2006):
           max over p of  G(p) = sum_m  r_m log q+_m + (1 - r_m) log q-_m - log(q+_m + q-_m)
           by Newton steps inside p > 0 (primal and dual: p_k z_k = mu, mu falling), all rows at
           once. It stops at mu = 1e-10, so that no class is quite impossible: log p is finite.

    rest   the same where each class stands against all others: with the price a of a sum of one,
           a p_k^2 - (1 + a) p_k + r_k = 0, and a is the root of one equation for each row.

Both give back p where r comes from a p, and both are r itself where there are two classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from discriminant.errors import NotConvergedWarning, tell
from discriminant.models.codes import Signs, one_vs_rest
from discriminant.table.schema import Floats

_SURE = 1e-15  # nearer than this to 0 or 1 no two-class problem is believed
_CENTRED = 1e-10  # p z in the end
_TOLERANCE = 1e-9  # change of a probability in the last step
_ENOUGH = 1e-5  # a change in the last of too many steps that nobody need be told of
_STEPS = 150
_NUMBERS = 1 << 21  # held at a time


def coupled(one: Floats, signs: Signs) -> Floats:
    """(n, K) probabilities by the code (K, M), from those of the positive sides, (n, M)."""
    K, M = signs.shape
    if K == 2 and M == 1:
        share = one[:, 0] if signs[1, 0] > 0 else 1.0 - one[:, 0]
        return np.column_stack([1.0 - share, share])
    work = _pairs if is_pairs(signs) else _rest if is_rest(signs) else _sides
    size = max(_NUMBERS // max(K * K, M), 1)
    one = np.clip(one, _SURE, 1.0 - _SURE)
    found = np.empty((len(one), K))
    for lo in range(0, len(one), size):
        found[lo : lo + size] = work(one[lo : lo + size], signs)
    return found


def is_pairs(signs: Signs) -> bool:
    """Whether the problems are all the pairs of classes."""
    K, M = signs.shape
    used = signs != 0
    return M == K * (K - 1) // 2 and bool((used.sum(axis=0) == 2).all()) and K > 2


def is_rest(signs: Signs) -> bool:
    """Whether the problems are each class against all others."""
    K, M = signs.shape
    return K == M > 2 and np.array_equal(signs, one_vs_rest(K))


def _pairs(one: Floats, signs: Signs) -> Floats:
    """p of (Q + 1 1') p ~ 1, which is the least sum of squares for a sum of one."""
    n, K = len(one), len(signs)
    plus, minus = signs.argmax(axis=0), signs.argmin(axis=0)
    wins = np.zeros((n, K, K))  # [k, j] probability of k among k and j
    wins[:, plus, minus] = one
    wins[:, minus, plus] = 1.0 - one
    system = 1.0 - wins * wins.transpose(0, 2, 1)
    diagonal = np.arange(K)
    system[:, diagonal, diagonal] += (wins**2).sum(axis=1)
    shares = np.linalg.solve(system, np.ones((n, K, 1)))[:, :, 0]
    shares = np.maximum(shares, np.finfo(np.float64).tiny)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _rest(one: Floats, signs: Signs) -> Floats:
    """p of sum one, each a root of its own square; the price by Newton, kept between bounds."""
    price = np.zeros((len(one), 1))
    low, high = np.full_like(price, -np.inf), np.full_like(price, np.inf)
    for _ in range(_STEPS):
        found, spread = _root(one, price)
        over = found.sum(axis=1, keepdims=True) - 1.0
        if (np.abs(over) <= 1e-14).all():
            break
        low, high = np.where(over > 0, price, low), np.where(over > 0, high, price)
        step = price + over / (found * (1.0 - found) / spread).sum(axis=1, keepdims=True)
        between = np.where(np.isfinite(low + high), 0.5 * (low + high), 2.0 * price + np.sign(over))
        price = np.where((step > low) & (step < high), step, between)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _root(one: Floats, price: Floats) -> tuple[Floats, Floats]:
    """The root p in (0, 1) of a p^2 - (1 + a) p + r = 0, and the root of its discriminant."""
    near = 1.0 + price
    spread = np.sqrt(near**2 - 4.0 * price * one)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = (near - spread) / (2.0 * price)  # where 1 + a < 0, and the other would cancel
        return np.where(near < 0, low, 2.0 * one / (near + spread)), spread


# --- codes ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Sides:
    """G of a code, its slope and its curvature, for n rows at once."""

    plus: Floats  # (K, M)
    minus: Floats  # (K, M)
    binary: bool
    products: Floats  # (M or 2 M, K (K + 1) / 2) of the entries of each column, or side
    unions: Floats  # (M, K (K + 1) / 2) those of both sides together
    square: npt.NDArray[np.intp]  # (K, K) where each of them stands

    @classmethod
    def of(cls, signs: Signs) -> _Sides:
        K = len(signs)
        plus, minus = (signs == 1).astype(np.float64), (signs == -1).astype(np.float64)
        binary = bool(signs.all())
        # without zeros a step that keeps the sum changes q- by as much as q+, the other way
        columns = plus if binary else np.hstack([plus, minus])
        j, k = np.triu_indices(K)
        square = np.zeros((K, K), dtype=np.intp)
        square[j, k] = square[k, j] = np.arange(len(j))
        products, used = columns.T[:, j] * columns.T[:, k], (plus + minus).T
        return cls(plus, minus, binary, products, used[:, j] * used[:, k], square)

    def at(self, p: Floats, one: Floats) -> tuple[Floats, Floats, Floats | None]:
        """Slope (n, K), and curvature (n, K, K) turned positive: of the two first terms, of all."""
        up, down = np.dot(p, self.plus), np.dot(p, self.minus)
        pull, push = one / up, (1.0 - one) / down
        slope = np.dot(pull, self.plus.T) + np.dot(push, self.minus.T)
        if self.binary:
            return slope, np.dot(pull / up + push / down, self.products)[:, self.square], None
        both = up + down
        slope -= np.dot(1.0 / both, (self.plus + self.minus).T)
        bent = np.dot(np.hstack([pull / up, push / down]), self.products)[:, self.square]
        back = np.dot(1.0 / both**2, self.unions)[:, self.square]
        return slope, bent, bent - back


@dataclass(frozen=True, slots=True, eq=False)
class _Inside:
    """Where n rows are: p > 0 of sum one, and the price z > 0 of keeping it so."""

    p: Floats  # (n, K)
    z: Floats  # (n, K)

    def take(self, rows: npt.NDArray[np.bool_]) -> _Inside:
        return _Inside(self.p[rows], self.z[rows])

    def step(self, one: Floats, sides: _Sides) -> tuple[_Inside, Floats]:
        """A Newton step toward a tenth of the present p z, and how far it goes, (n,)."""
        p, z = self.p, self.z
        mu = np.maximum(0.1 * (p * z).mean(axis=1, keepdims=True), _CENTRED)
        slope, curve, whole = sides.at(p, one)
        uphill = slope + mu / p
        dp = _newton(curve, uphill, z / p)
        if whole is not None:  # G is not concave: its own step where that is short and leads up
            bold = _newton(whole, uphill, z / p)
            better = (np.vecdot(bold, uphill) > 0) & (np.abs(bold).max(axis=1) < 0.1)
            dp = np.where(better[:, None], bold, dp)
        dz = mu / p - z - z / p * dp
        went = np.abs(dp).max(axis=1)
        p = p + _within(p, dp) * dp
        moved = replace(self, p=p / p.sum(axis=1, keepdims=True), z=z + _within(z, dz) * dz)
        return moved, np.where(mu[:, 0] > _CENTRED, np.inf, went)


def _newton(curve: Floats, uphill: Floats, price: Floats) -> Floats:
    """(n, K) the step of sum zero to where slope, curvature and the price of p > 0 balance."""
    k = np.arange(uphill.shape[1])
    curve[:, k, k] += price
    wanted = np.stack([uphill, np.ones_like(uphill)], axis=-1)
    ahead, level = np.moveaxis(np.linalg.solve(curve, wanted), -1, 0)
    fall = ahead.sum(axis=1, keepdims=True) / level.sum(axis=1, keepdims=True)
    return np.asarray(ahead - fall * level)


def _within(value: Floats, change: Floats) -> Floats:
    """(n, 1) the share of a change that keeps values positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(change < 0, -value / change, np.inf).min(axis=1, keepdims=True)
    return np.asarray(np.minimum(0.99 * most, 1.0))


def _sides(one: Floats, signs: Signs) -> Floats:
    """Maximum of G for each row."""
    sides, (n, K) = _Sides.of(signs), (len(one), len(signs))
    found, rows, went = np.empty((n, K)), np.arange(n), np.full(n, np.inf)
    state = _Inside(np.full((n, K), 1.0 / K), np.full((n, K), float(signs.shape[1])))
    for _ in range(_STEPS):
        state, went = state.step(one[rows], sides)
        found[rows] = state.p
        left = went > _TOLERANCE
        if not left.any():
            return found
        if not left.all():
            rows, state = rows[left], state.take(left)
    worst = float(np.nanmax(went))
    if worst > _ENOUGH:
        tell(NotConvergedWarning.of("The coupling of probabilities", _STEPS, worst, _ENOUGH))
    return found
