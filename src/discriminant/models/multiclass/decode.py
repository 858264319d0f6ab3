"""Decoding: classes and class probabilities from the outputs of M two-class classifiers.

With f_m the output of classifier m (positive for its positive side) and s = sign f the code word:

    hamming    distance_k = sum_m (1 - s_m signs[k, m]) / 2; ties by sum_m f_m signs[k, m]
    euclidean  distance_k = |v - signs_k|,  v = 2 P(positive) - 1, or f clipped to [-1, 1]
    loss       loss_k = sum_m loss(f_m signs[k, m]): the loss of the row if k were its class

In the Hamming distance a classifier that leaves out class k counts a half. The loss is logistic,
log(1 + exp -z), for classifiers with probabilities, and else the hinge, max(0, 1 - z). All are
returned as scores, of which the largest wins. A code word is ambiguous if it belongs to no class:
with one against the rest, none or several classifiers are positive; with pairs, no class wins
against all others (the regions drawn in lecture 4).

Probabilities are coupled. With r_m the probability that problem m gives its positive side (among
the classes it includes), and q+_m, q-_m the sums of p over its two sides, r_m should equal
q+_m / (q+_m + q-_m). There are more problems than classes, so no p fits all of them.

    pairs  Wu, Lin & Weng (2004), their second method:
           min over p of  sum over pairs of (r_kj p_j - r_jk p_k)^2,  sum of p = 1
           a linear system for each row; its solution is never negative.

    codes  without zeros: generalised Bradley-Terry (Zadrozny 2002; Huang, Weng & Lin 2006),
           max over p of  sum_m  r_m log q+_m + (1 - r_m) log q-_m
           with zeros that is not concave and has local maxima; then as for pairs
           min over p of  sum_m ((1 - r_m) q+_m - r_m q-_m)^2,  p >= 0
           both by primal-dual Newton steps inside p > 0 (p_k z_k = mu, mu decreasing), all rows
           at once, to a mu that leaves every class possible: log p is finite.

    rest   Bradley-Terry where each class is against all others: with the multiplier a of the
           constraint sum p = 1, a p_k^2 - (1 + a) p_k + r_k = 0, and a is the root of one
           equation for each row.

All return p where r comes from a p, and r itself where there are two classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from discriminant.errors import CouplingWarning, warn
from discriminant.models.multiclass.codes import Signs, one_vs_rest_code
from discriminant.table.blocks import Floats

_SURE = 1e-15  # nearer than this to 0 or 1 no two-class problem is believed
_TOLERANCE = 1e-9  # change of a probability in the last step
_ENOUGH = 1e-5  # a change in the last of too many steps that nobody need be told of
_STEPS = 150
_NUMBERS = 1 << 21  # held at a time


def couple_probabilities(one: Floats, signs: Signs) -> Floats:
    """(n, K) probabilities by the code (K, M), from those of the positive sides, (n, M)."""
    K, M = signs.shape
    if K == 2 and M == 1:
        share = one[:, 0] if signs[1, 0] > 0 else 1.0 - one[:, 0]
        return np.column_stack([1.0 - share, share])
    work = _pairs if is_pairs(signs) else _rest if is_rest(signs) else _sides
    size = max(_NUMBERS // max(K * K, M), 1)
    one = np.clip(one, _SURE, 1.0 - _SURE)
    probabilities = np.empty((len(one), K))
    for lo in range(0, len(one), size):
        probabilities[lo : lo + size] = work(one[lo : lo + size], signs)
    return probabilities


def is_pairs(signs: Signs) -> bool:
    """Whether the problems are all the pairs of classes."""
    K, M = signs.shape
    used = signs != 0
    return M == K * (K - 1) // 2 and bool((used.sum(axis=0) == 2).all()) and K > 2


def is_rest(signs: Signs) -> bool:
    """Whether the problems are each class against all others."""
    K, M = signs.shape
    return K == M > 2 and np.array_equal(signs, one_vs_rest_code(K))


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
        roots, spread = _root(one, price)
        over = roots.sum(axis=1, keepdims=True) - 1.0
        if (np.abs(over) <= 1e-14).all():
            break
        low, high = np.where(over > 0, price, low), np.where(over > 0, high, price)
        step = price + over / (roots * (1.0 - roots) / spread).sum(axis=1, keepdims=True)
        between = np.where(np.isfinite(low + high), 0.5 * (low + high), 2.0 * price + np.sign(over))
        price = np.where((step > low) & (step < high), step, between)
    return np.asarray(roots / roots.sum(axis=1, keepdims=True))


def _root(one: Floats, price: Floats) -> tuple[Floats, Floats]:
    """The root p in (0, 1) of a p^2 - (1 + a) p + r = 0, and the root of its discriminant."""
    near = 1.0 + price
    spread = np.sqrt(near**2 - 4.0 * price * one)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = (near - spread) / (2.0 * price)  # where 1 + a < 0, and the other would cancel
        return np.where(near < 0, low, 2.0 * one / (near + spread)), spread


# --- codes ---------------------------------------------------------------------------------------


class _CouplingObjective(Protocol):
    """What p of n rows is to make large."""

    @property
    def centred(self) -> float:
        """p z in the end."""
        ...

    def at(self, p: Floats) -> tuple[Floats, Floats]:
        """Slope (n, K), and curvature (n, K, K) turned positive."""
        ...

    def take(self, rows: npt.NDArray[np.bool_]) -> _CouplingObjective:
        """Of some rows."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Likelihood:
    """sum_m r log q+ + (1 - r) log q-, where q+ and q- sum to one."""

    one: Floats  # (n, M) r
    plus: Floats  # (K, M)
    products: Floats  # (M, K, K) of the entries of each column
    centred: float = 1e-10

    @classmethod
    def of(cls, one: Floats, signs: Signs) -> _Likelihood:
        plus = (signs == 1).astype(np.float64)
        return cls(one, plus, np.einsum("jm,km->mjk", plus, plus))

    def at(self, p: Floats) -> tuple[Floats, Floats]:
        # a step that keeps the sum changes q- by as much as q+, the other way
        up = np.dot(p, self.plus)
        down = np.dot(p, 1.0 - self.plus)
        pull, push = self.one / up, (1.0 - self.one) / down
        slope = np.dot(pull, self.plus.T) + np.dot(push, 1.0 - self.plus.T)
        return slope, np.tensordot(pull / up + push / down, self.products, axes=1)

    def take(self, rows: npt.NDArray[np.bool_]) -> _Likelihood:
        return replace(self, one=self.one[rows])


@dataclass(frozen=True, slots=True, eq=False)
class _Squares:
    """- sum_m ((1 - r) q+ - r q-)^2 / 2 = - p' Q p / 2."""

    square: Floats  # (n, K, K) Q
    centred: float = 1e-18

    @classmethod
    def of(cls, one: Floats, signs: Signs) -> _Squares:
        plus, minus = (signs == 1).astype(np.float64), (signs == -1).astype(np.float64)
        sides = (plus, plus), (minus, minus), (plus, minus), (minus, plus)
        products = np.concatenate([np.einsum("jm,km->mjk", a, b) for a, b in sides])
        across = -one * (1.0 - one)
        shares = np.hstack([(1.0 - one) ** 2, one**2, across, across])
        return cls(np.tensordot(shares, products, axes=1))

    def at(self, p: Floats) -> tuple[Floats, Floats]:
        return -np.matvec(self.square, p), self.square + 1.0  # no step changes the sum

    def take(self, rows: npt.NDArray[np.bool_]) -> _Squares:
        return replace(self, square=self.square[rows])


@dataclass(frozen=True, slots=True, eq=False)
class _InteriorState:
    """Where n rows are: p > 0 of sum one, and the price z > 0 of keeping it so."""

    p: Floats  # (n, K)
    z: Floats  # (n, K)

    def take(self, rows: npt.NDArray[np.bool_]) -> _InteriorState:
        return _InteriorState(self.p[rows], self.z[rows])

    def step(self, fit: _CouplingObjective) -> tuple[_InteriorState, Floats]:
        """A Newton step toward a tenth of the present p z, and how far it goes, (n,)."""
        p, z = self.p, self.z
        mu = np.maximum(0.1 * (p * z).mean(axis=1, keepdims=True), fit.centred)
        slope, curve = fit.at(p)
        dp = _newton(curve, slope + mu / p, z / p)
        dz = mu / p - z - z / p * dp
        went = np.abs(dp).max(axis=1)
        p = p + _within(p, dp) * dp
        moved = replace(self, p=p / p.sum(axis=1, keepdims=True), z=z + _within(z, dz) * dz)
        return moved, np.where(mu[:, 0] > fit.centred, np.inf, went)


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
    """The best p of each row."""
    n, K = len(one), len(signs)
    fit: _CouplingObjective = _Likelihood.of(one, signs) if signs.all() else _Squares.of(one, signs)
    probabilities, rows, went = np.empty((n, K)), np.arange(n), np.full(n, np.inf)
    state = _InteriorState(np.full((n, K), 1.0 / K), np.full((n, K), float(signs.shape[1])))
    for _ in range(_STEPS):
        state, went = state.step(fit)
        probabilities[rows] = state.p
        left = went > _TOLERANCE
        if not left.any():
            return probabilities
        if not left.all():
            rows, state, fit = rows[left], state.take(left), fit.take(left)
    worst = float(np.nanmax(went))
    if worst > _ENOUGH:
        warn(CouplingWarning.of(len(rows), n, _STEPS, worst))
    return probabilities


Decoding = Literal["hamming", "euclidean", "loss"]
DECODINGS: tuple[Decoding, ...] = ("hamming", "euclidean", "loss")


@dataclass(frozen=True, slots=True, eq=False)
class Ambiguity:
    """How many classes claim each row, and where the nearest code word is not the only one."""

    claims: npt.NDArray[np.intp]  # (n,) classes that say yes, or whose code word it is
    tied: npt.NDArray[np.bool_]  # (n,) whether several classes are nearest, counting signs alone

    @property
    def none(self) -> float:
        """Share of rows that no class claims."""
        return float((self.claims == 0).mean())

    @property
    def several(self) -> float:
        """Share of rows that more than one class claims."""
        return float((self.claims > 1).mean())

    @property
    def tie(self) -> float:
        """Share of rows that signs alone cannot decide."""
        return float(self.tied.mean())

    def __repr__(self) -> str:
        """One line: the shares."""
        return (
            f"Ambiguity({len(self.claims)} rows: none says yes {self.none:.2%}, "
            f"several {self.several:.2%}, tied {self.tie:.2%})"
        )


def hamming_scores(said: Floats, signs: Signs) -> Floats:
    """(n, K) less the number of classifiers that say otherwise, and a little for confidence.

    Lecture 5, figure 3.5: one of five classifiers errs, and the word still is that of class 2.

    >>> signs = [[-1, 1, -1, 1, 1], [1, -1, -1, 1, -1], [-1, 1, 1, -1, 1], [-1, -1, 1, 1, -1]]
    >>> word = np.array([[-1.0, -1.0, 1.0, -1.0, 1.0]])
    >>> hamming_scores(word, np.array(signs)).round().tolist()
    [[-3.0, -4.0, -1.0, -2.0]]
    """
    real = signs.T.astype(np.float64)
    scores = np.dot(np.sign(said), real)
    scores -= signs.shape[1]
    scores /= 2
    sure = np.dot(said, real)
    most = np.abs(sure).max(axis=1, keepdims=True)
    scores += sure / (6.0 * np.where(most > 0, most, 1.0))  # less than half of the least step
    return np.asarray(scores)


def euclidean_scores(word: Floats, signs: Signs) -> Floats:
    """(n, K) less the distance of words in [-1, 1] from those of the classes."""
    real = signs.T.astype(np.float64)
    squares = (word**2).sum(axis=1)[:, None] - 2 * np.dot(word, real) + (real**2).sum(axis=0)
    return np.asarray(-np.sqrt(np.maximum(squares, 0.0)))


def loss_scores(said: Floats, signs: Signs, *, logistic: bool) -> Floats:
    """(n, K) less the sum of losses, up to what is common to all classes.

    log(1 + exp -z s) = log(2 cosh z/2) - z s / 2, so that without zeros only z s counts: then
    linear members make a linear rule.
    """
    if logistic:
        return _by_logistic(said, signs)
    plus, minus = ((signs == side).T.astype(np.float64) for side in (1, -1))
    scores = np.dot(np.maximum(0.0, 1.0 - said), plus)
    scores += np.dot(np.maximum(0.0, 1.0 + said), minus)
    return np.asarray(-scores - (signs == 0).sum(axis=1))


def _by_logistic(said: Floats, signs: Signs) -> Floats:
    scores = np.dot(0.5 * said, signs.T.astype(np.float64))
    if signs.all():
        return np.asarray(scores)
    even = np.abs(said)
    even = 0.5 * even + np.log1p(np.exp(-even))
    scores -= np.dot(even, np.abs(signs).T.astype(np.float64))
    return np.asarray(scores - (signs == 0).sum(axis=1) * np.log(2.0))


def measure_ambiguity(said: Floats, signs: Signs, *, rest: bool) -> Ambiguity:
    """Who claims rows: those that say yes (one against the `rest`), or those whose word it is."""
    real = signs.T.astype(np.float64)
    agree = np.dot(np.sign(said), real)
    apart = np.abs(signs).sum(axis=1) - agree  # twice as many as say otherwise
    yes = said > 0 if rest else apart == 0
    nearest = agree == agree.max(axis=1, keepdims=True)
    return Ambiguity(yes.sum(axis=1), nearest.sum(axis=1) > 1)
