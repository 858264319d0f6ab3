"""Decoding of output codes: class scores and probabilities from M two-class classifiers.

Let f_m be the output of classifier m, positive where it predicts the positive side. The code word
of a row is s = sign f. There are three scores of class k:

    hamming    distance_k = sum_m (1 - s_m signs[k, m]) / 2; ties by sum_m f_m signs[k, m]
    euclidean  distance_k = |v - signs_k|,  v = 2 P(positive) - 1, or f clipped to [-1, 1]
    loss       loss_k = sum_m loss(f_m signs[k, m]): the loss of the row if k were its class

In the Hamming distance to class k, a classifier that leaves out class k counts as 1/2. The loss is
logistic, log(1 + exp -z), if the classifiers have probabilities, otherwise it is the hinge, max(0,
1 - z). Distances and losses are returned with a negative sign, so the class with the largest score
is predicted. A row is ambiguous if its code word does not belong to exactly one class: with
one-vs-rest, if none or several classifiers are positive; with one-vs-one, if no class wins against
all others (the regions shown in lecture 4).

Class probabilities p are estimated by coupling. Let r_m be the probability that classifier m gives
to its positive side, among the classes of problem m. Let q+_m and q-_m be the sums of p over the
two sides. Then r_m should equal q+_m / (q+_m + q-_m). There are usually more problems than classes,
so in general no p satisfies all of these equations, and one of these criteria is optimised:

    pairs  Wu, Lin & Weng (2004), their second method:
           min over p of  sum over pairs of (r_kj p_j - r_jk p_k)^2,  sum of p = 1
           a linear system for each row; its solution is never negative.

    codes  without zeros: generalised Bradley-Terry (Zadrozny 2002; Huang, Weng & Lin 2006),
           max over p of  sum_m  r_m log q+_m + (1 - r_m) log q-_m
           with zeros: that function may have several local maxima, so as for pairs
           min over p of  sum_m ((1 - r_m) q+_m - r_m q-_m)^2,  p >= 0
           Both are solved by a primal-dual interior-point method for all rows at once:
           p_k z_k = mu, with multipliers z and decreasing mu. The last mu is positive, so
           every p_k is positive and log p is finite.

    rest   one-vs-rest: Bradley-Terry as above. With a the multiplier of the constraint
           sum p = 1, every p_k is a root of a p_k^2 - (1 + a) p_k + r_k = 0. For each row
           a solves one equation: the sum of these roots is 1.

If some p gives exactly the observed r_m, every criterion returns this p. For two classes the result
is r itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from discriminant.errors import CouplingWarning, warn
from discriminant.models.multiclass.codes import Signs, one_vs_rest_code
from discriminant.table.blocks import Floats

_MIN_PROBABILITY = 1e-15  # two-class probabilities are clipped at this distance from 0 and 1
_TOLERANCE = 1e-9  # largest change of a probability in the last step
_NEGLIGIBLE = 1e-5  # no warning if a probability changes by less than this in the last step
_STEPS = 150  # largest number of steps
_NUMBERS = 1 << 21  # size of the largest array; rows are coupled in chunks of this size


def couple_probabilities(positive: Floats, signs: Signs) -> Floats:
    """Return the (n, K) class probabilities from the (n, M) probabilities of the positive sides."""
    K, M = signs.shape
    if K == 2 and M == 1:
        second = positive[:, 0] if signs[1, 0] > 0 else 1.0 - positive[:, 0]
        return np.column_stack([1.0 - second, second])
    couple = _couple_pairs if is_pairs(signs) else _couple_rest if is_rest(signs) else _couple_code
    size = max(_NUMBERS // max(K * K, M), 1)
    positive = np.clip(positive, _MIN_PROBABILITY, 1.0 - _MIN_PROBABILITY)
    probabilities = np.empty((len(positive), K))
    for lo in range(0, len(positive), size):
        probabilities[lo : lo + size] = couple(positive[lo : lo + size], signs)
    return probabilities


def is_pairs(signs: Signs) -> bool:
    """Return whether the code is one-vs-one: every column is a pair of classes."""
    K, M = signs.shape
    used = signs != 0
    return M == K * (K - 1) // 2 and bool((used.sum(axis=0) == 2).all()) and K > 2


def is_rest(signs: Signs) -> bool:
    """Return whether the code is one-vs-rest: every column is one class against all others."""
    K, M = signs.shape
    return K == M > 2 and np.array_equal(signs, one_vs_rest_code(K))


def _couple_pairs(positive: Floats, signs: Signs) -> Floats:
    """Return the coupled probabilities of pairs: least squares subject to sum p = 1.

    With Q the matrix of the sum of squares p' Q p, p is proportional to the solution x of
    (Q + 1 1') x = 1.
    """
    n, K = len(positive), len(signs)
    plus, minus = signs.argmax(axis=0), signs.argmin(axis=0)
    wins = np.zeros((n, K, K))  # [k, j] probability of k among k and j
    wins[:, plus, minus] = positive
    wins[:, minus, plus] = 1.0 - positive
    system = 1.0 - wins * wins.transpose(0, 2, 1)
    diagonal = np.arange(K)
    system[:, diagonal, diagonal] += (wins**2).sum(axis=1)
    p = np.linalg.solve(system, np.ones((n, K, 1)))[:, :, 0]
    p = np.maximum(p, np.finfo(np.float64).tiny)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _couple_rest(positive: Floats, signs: Signs) -> Floats:
    """Return the coupled probabilities of one-vs-rest: roots of quadratics whose sum is one.

    The multiplier is computed by Newton's method. A Newton step that leaves the interval known to
    contain the multiplier is replaced by bisection.
    """
    multiplier = np.zeros((len(positive), 1))
    low, high = np.full_like(multiplier, -np.inf), np.full_like(multiplier, np.inf)
    for _ in range(_STEPS):
        roots, root = _quadratic_root(positive, multiplier)
        excess = roots.sum(axis=1, keepdims=True) - 1.0
        if (np.abs(excess) <= 1e-14).all():
            break
        low, high = np.where(excess > 0, multiplier, low), np.where(excess > 0, high, multiplier)
        newton = multiplier + excess / (roots * (1.0 - roots) / root).sum(axis=1, keepdims=True)
        middle, outward = 0.5 * (low + high), 2.0 * multiplier + np.sign(excess)
        bisected = np.where(np.isfinite(low + high), middle, outward)
        multiplier = np.where((newton > low) & (newton < high), newton, bisected)
    return np.asarray(roots / roots.sum(axis=1, keepdims=True))


def _quadratic_root(positive: Floats, multiplier: Floats) -> tuple[Floats, Floats]:
    """Return the root p in (0, 1) of `a p^2 - (1 + a) p + r = 0`, and sqrt((1 + a)^2 - 4 a r).

    `positive` holds r, `multiplier` holds a.
    """
    linear = 1.0 + multiplier
    root = np.sqrt(linear**2 - 4.0 * multiplier * positive)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = (linear - root) / (2.0 * multiplier)  # for 1 + a < 0; else the form below is accurate
        return np.where(linear < 0, low, 2.0 * positive / (linear + root)), root


# --- codes ---------------------------------------------------------------------------------------


class _CouplingObjective(Protocol):
    """Concave function of the class probabilities p of n rows, to be maximised."""

    @property
    def final_product(self) -> float:
        """Value mu of the products p_k z_k at which the iteration ends."""
        ...

    def derivatives(self, p: Floats) -> tuple[Floats, Floats]:
        """Return the slope (n, K) and the negative of the curvature (n, K, K)."""
        ...

    def select(self, rows: npt.NDArray[np.bool_]) -> _CouplingObjective:
        """Return the objective of the selected rows."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Likelihood:
    """Bradley-Terry log likelihood sum_m r log q+ + (1 - r) log q-, for codes without zeros."""

    positive: Floats  # (n, M) r
    plus: Floats  # (K, M) 1 where a class is on the positive side, else 0
    products: Floats  # (M, K, K) products of the entries of each column of `plus`
    final_product: float = 1e-10

    @classmethod
    def create(cls, positive: Floats, signs: Signs) -> _Likelihood:
        plus = (signs == 1).astype(np.float64)
        return cls(positive, plus, np.einsum("jm,km->mjk", plus, plus))

    def derivatives(self, p: Floats) -> tuple[Floats, Floats]:
        # A step that preserves the sum of p changes q- by the negative of its change of q+.
        q_plus = np.dot(p, self.plus)
        q_minus = np.dot(p, 1.0 - self.plus)
        to_plus, to_minus = self.positive / q_plus, (1.0 - self.positive) / q_minus
        slope = np.dot(to_plus, self.plus.T) + np.dot(to_minus, 1.0 - self.plus.T)
        weights = to_plus / q_plus + to_minus / q_minus
        return slope, np.tensordot(weights, self.products, axes=1)

    def select(self, rows: npt.NDArray[np.bool_]) -> _Likelihood:
        return replace(self, positive=self.positive[rows])


@dataclass(frozen=True, slots=True, eq=False)
class _Squares:
    """Negative sum of squares - sum_m ((1 - r) q+ - r q-)^2 / 2 = - p' Q p / 2, with zeros."""

    square: Floats  # (n, K, K) Q
    final_product: float = 1e-18

    @classmethod
    def create(cls, positive: Floats, signs: Signs) -> _Squares:
        plus, minus = (signs == 1).astype(np.float64), (signs == -1).astype(np.float64)
        sides = (plus, plus), (minus, minus), (plus, minus), (minus, plus)
        products = np.concatenate([np.einsum("jm,km->mjk", a, b) for a, b in sides])
        cross = -positive * (1.0 - positive)
        weights = np.hstack([(1.0 - positive) ** 2, positive**2, cross, cross])
        return cls(np.tensordot(weights, products, axes=1))

    def derivatives(self, p: Floats) -> tuple[Floats, Floats]:
        return -np.matvec(self.square, p), self.square + 1.0  # steps preserve the sum

    def select(self, rows: npt.NDArray[np.bool_]) -> _Squares:
        return replace(self, square=self.square[rows])


@dataclass(frozen=True, slots=True, eq=False)
class _InteriorState:
    """Iterate of the interior-point method: p > 0 with sum one, and multipliers z > 0 of p >= 0."""

    p: Floats  # (n, K)
    z: Floats  # (n, K)

    def select(self, rows: npt.NDArray[np.bool_]) -> _InteriorState:
        return _InteriorState(self.p[rows], self.z[rows])

    def step(self, objective: _CouplingObjective) -> tuple[_InteriorState, Floats]:
        """Return the next iterate, and for each row the length of the step, (n,).

        The Newton step aims at products p z of a tenth of their current mean. The length is
        infinite for rows whose products are still to decrease.
        """
        p, z = self.p, self.z
        mu = np.maximum(0.1 * (p * z).mean(axis=1, keepdims=True), objective.final_product)
        slope, curvature = objective.derivatives(p)
        dp = _newton_step(curvature, slope + mu / p, z / p)
        dz = mu / p - z - z / p * dp
        length = np.abs(dp).max(axis=1)
        p = p + _step_share(p, dp) * dp
        state = _InteriorState(p / p.sum(axis=1, keepdims=True), z + _step_share(z, dz) * dz)
        return state, np.where(mu[:, 0] > objective.final_product, np.inf, length)


def _newton_step(curvature: Floats, gradient: Floats, barrier: Floats) -> Floats:
    """Return the (n, K) Newton steps, each with sum zero.

    `barrier` is added to the diagonal of the curvature, in place.
    """
    k = np.arange(gradient.shape[1])
    curvature[:, k, k] += barrier
    rhs = np.stack([gradient, np.ones_like(gradient)], axis=-1)
    step, ones_solution = np.moveaxis(np.linalg.solve(curvature, rhs), -1, 0)
    multiplier = step.sum(axis=1, keepdims=True) / ones_solution.sum(axis=1, keepdims=True)
    return np.asarray(step - multiplier * ones_solution)


def _step_share(value: Floats, change: Floats) -> Floats:
    """Return the (n, 1) step lengths: at most 1, and such that all values stay positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        limit = np.where(change < 0, -value / change, np.inf).min(axis=1, keepdims=True)
    return np.asarray(np.minimum(0.99 * limit, 1.0))


def _couple_code(positive: Floats, signs: Signs) -> Floats:
    """Return the (n, K) coupled probabilities of a code, by the interior-point method."""
    n, K = len(positive), len(signs)
    objective: _CouplingObjective = (
        _Likelihood.create(positive, signs) if signs.all() else _Squares.create(positive, signs)
    )
    probabilities, rows, change = np.empty((n, K)), np.arange(n), np.full(n, np.inf)
    state = _InteriorState(np.full((n, K), 1.0 / K), np.full((n, K), float(signs.shape[1])))
    for _ in range(_STEPS):
        state, change = state.step(objective)
        probabilities[rows] = state.p
        unfinished = change > _TOLERANCE
        if not unfinished.any():
            return probabilities
        if not unfinished.all():
            rows, state = rows[unfinished], state.select(unfinished)
            objective = objective.select(unfinished)
    worst = float(np.nanmax(change))
    if worst > _NEGLIGIBLE:
        warn(CouplingWarning.of(len(rows), n, _STEPS, worst))
    return probabilities


Decoding = Literal["hamming", "euclidean", "loss"]
DECODINGS: tuple[Decoding, ...] = ("hamming", "euclidean", "loss")


@dataclass(frozen=True, slots=True, eq=False)
class Ambiguity:
    """How many classes the code word of each row fits, and whether the nearest class is unique."""

    claims: npt.NDArray[np.intp]  # (n,) number of classes that the code word fits
    tied: npt.NDArray[np.bool_]  # (n,) whether several classes are nearest in Hamming distance

    @property
    def none(self) -> float:
        """Share of rows whose code word fits no class."""
        return float((self.claims == 0).mean())

    @property
    def several(self) -> float:
        """Share of rows whose code word fits more than one class."""
        return float((self.claims > 1).mean())

    @property
    def tie(self) -> float:
        """Share of rows with several nearest classes in Hamming distance."""
        return float(self.tied.mean())

    def __repr__(self) -> str:
        """Return the three shares in one line."""
        return (
            f"Ambiguity({len(self.claims)} rows: none says yes {self.none:.2%}, "
            f"several {self.several:.2%}, tied {self.tie:.2%})"
        )


def hamming_scores(outputs: Floats, signs: Signs) -> Floats:
    """Return the (n, K) negative Hamming distances, plus a small term that breaks ties.

    The term is proportional to the confidence sum_m f_m signs[k, m]. In the example (lecture 5,
    figure 3.5) one of five classifiers errs, and class 2 is still predicted.

    >>> signs = [[-1, 1, -1, 1, 1], [1, -1, -1, 1, -1], [-1, 1, 1, -1, 1], [-1, -1, 1, 1, -1]]
    >>> word = np.array([[-1.0, -1.0, 1.0, -1.0, 1.0]])
    >>> hamming_scores(word, np.array(signs)).round().tolist()
    [[-3.0, -4.0, -1.0, -2.0]]
    """
    columns = signs.T.astype(np.float64)
    scores = np.dot(np.sign(outputs), columns)
    scores -= signs.shape[1]
    scores /= 2
    confidence = np.dot(outputs, columns)
    largest = np.abs(confidence).max(axis=1, keepdims=True)
    # Distances that differ do so by 1/2 or more; the added terms differ by at most 1/3.
    scores += confidence / (6.0 * np.where(largest > 0, largest, 1.0))
    return np.asarray(scores)


def euclidean_scores(word: Floats, signs: Signs) -> Floats:
    """Return the (n, K) negative Euclidean distances of words from the signs of each class.

    `word` (n, M) has entries in [-1, 1].
    """
    columns = signs.T.astype(np.float64)
    squares = (word**2).sum(axis=1)[:, None] - 2 * np.dot(word, columns) + (columns**2).sum(axis=0)
    return np.asarray(-np.sqrt(np.maximum(squares, 0.0)))


def loss_scores(outputs: Floats, signs: Signs, *, logistic: bool) -> Floats:
    """Return the (n, K) negative losses, up to a term common to all classes.

    The logistic loss is log(1 + exp -z s) = log(2 cosh z/2) - z s / 2 for s = +-1. So in a code
    without zeros only z s / 2 depends on the class, and linear two-class rules give a linear rule.
    """
    if logistic:
        return _logistic_scores(outputs, signs)
    plus, minus = ((signs == side).T.astype(np.float64) for side in (1, -1))
    scores = np.dot(np.maximum(0.0, 1.0 - outputs), plus)
    scores += np.dot(np.maximum(0.0, 1.0 + outputs), minus)
    return np.asarray(-scores - (signs == 0).sum(axis=1))


def _logistic_scores(outputs: Floats, signs: Signs) -> Floats:
    scores = np.dot(0.5 * outputs, signs.T.astype(np.float64))
    if signs.all():
        return np.asarray(scores)
    symmetric = np.abs(outputs)
    symmetric = 0.5 * symmetric + np.log1p(np.exp(-symmetric))
    scores -= np.dot(symmetric, np.abs(signs).T.astype(np.float64))
    return np.asarray(scores - (signs == 0).sum(axis=1) * np.log(2.0))


def measure_ambiguity(outputs: Floats, signs: Signs, *, rest: bool) -> Ambiguity:
    """Return how many classes the code word of each row fits, and which rows are tied.

    With `rest` (one-vs-rest) a row fits each class whose classifier is positive. With other codes,
    a row fits each class whose signs equal the code word in all columns that do not leave out the
    class.
    """
    columns = signs.T.astype(np.float64)
    agree = np.dot(np.sign(outputs), columns)
    disagreement = np.abs(signs).sum(axis=1) - agree  # twice the number of disagreeing columns
    claims = outputs > 0 if rest else disagreement == 0
    nearest = agree == agree.max(axis=1, keepdims=True)
    return Ambiguity(claims.sum(axis=1), nearest.sum(axis=1) > 1)
