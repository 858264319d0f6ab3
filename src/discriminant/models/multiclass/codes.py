"""Output codes and their decoding: K classes as the two sides of M two-class problems.

    signs[k, m] = +1   class k is on the positive side of problem m
                  -1   on the negative side
                   0   left out

The M classifiers predict a code word of M signs for a row, and the row is assigned to the class
whose signs are nearest. In the distance between two classes, a column counts 1 if it puts the
classes on opposite sides, and 1/2 if it leaves one of them out (Allwein, Schapire & Singer 2000):

    distance(j, k) = sum_m (1 - signs[j, m] signs[k, m]) / 2

The distance of a code is the smallest distance between two of its classes. In a code without zeros
this is the Hamming distance, and if the code has distance D, up to floor((D - 1) / 2) wrong
classifiers do not change the prediction. A classifier that leaves out the class of a row may
predict either side, so a code with zeros is guaranteed to correct fewer errors
(`OutputCode.corrects`).

    one-vs-rest  K columns          each class against all others
    reference    K - 1              each class but the last against all others
    one-vs-one   K (K - 1) / 2      each pair of classes, the others left out
    exhaustive   2^(K - 1) - 1      every partition of the classes into two sides
    dense        10 log2 K          random; the code with the largest distance out of several
    sparse       15 log2 K          as dense, with half of the entries 0 on average
    designed     10 log2 K          from moments: sides that a linear rule can separate
    optimal      K                  the largest distance of all codes of this length, K <= 8

In these codes no column equals another column or its complement, since both would give the same
classifier. A matrix given by the user may have equal or complementary columns, with a warning. A
matrix is rejected if two classes are never on opposite sides.

How well a linear rule separates the two sides of a column is measured by R^2, the squared
correlation of the indicator of the positive side with its best linear prediction. Let T be the
total scatter of all n rows, q the share of the rows that are on the positive side, and a_k the
share of class k times (its mean minus the centre):

    R^2(column) = n |T^-1/2 sum of a_k over the positive side|^2 / (q (1 - q))

T does not depend on the column, so one matrix product gives the R^2 of all columns. A designed code
is built column by column. The next column is the one with the largest

    R^2(column) * sum over pairs of classes that it separates of 2^-(times separated before)

so that the pairs of classes that were separated least often count most (as in boosting with output
codes, Schapire 1997). Candidates are random columns, and columns that divide the class means at a
random point along a random direction.

Decoding of output codes: class scores and probabilities from M two-class classifiers.

Let f_m be the output of classifier m, positive where it predicts the positive side. The code word
of a row is s = sign f. There are three scores of class k:

    hamming    distance_k = sum_m (1 - s_m signs[k, m]) / 2; ties by sum_m f_m signs[k, m]
    euclidean  distance_k = |v - signs_k|,  v = 2 P(positive) - 1, or f clipped to [-1, 1]
    loss       loss_k = sum_m loss(f_m signs[k, m]): the loss of the row if k were its class

In the Hamming distance to class k, a classifier that leaves out class k counts as 1/2. The loss is
logistic, log(1 + exp(-z)), if the classifiers have probabilities; otherwise it is the hinge,
max(0, 1 - z). Distances and losses are returned with a negative sign, so the class with the largest
score is predicted. A row is ambiguous if its code word does not belong to exactly one class: with
one-vs-rest, if none or several classifiers are positive; with one-vs-one, if no class wins against
all others (the regions shown in lecture 4).

Class probabilities p are estimated by coupling. Let r_m be the probability of the positive side by
classifier m, given that the class of the row occurs in problem m. Let q+_m and q-_m be the sums of
the class probabilities p over the two sides of problem m. The aim is r_m = q+_m / (q+_m + q-_m).
There are usually more problems than classes, so in general no p satisfies all of these equations,
and one of these criteria is optimised:

    pairs  Wu, Lin & Weng (2004), their second method:
           min over p of  sum over pairs of (r_kj p_j - r_jk p_k)^2,  sum of p = 1
           a linear system for each row; its solution is never negative.

    codes  without zeros: generalised Bradley-Terry (Zadrozny 2002; Huang, Weng & Lin 2006),
           max over p of  sum_m  r_m log q+_m + (1 - r_m) log q-_m
           with zeros: that function may have several local maxima, so least squares are used:
           min over p of  sum_m ((1 - r_m) q+_m - r_m q-_m)^2,  p >= 0
           Both are solved by a primal-dual interior-point method for all rows at once:
           p_k z_k = mu, with multipliers z and decreasing mu. The last mu is positive, so
           every p_k is positive and log p is finite.

    rest   one-vs-rest: Bradley-Terry as above. With `a` the multiplier of the constraint
           sum p = 1, every p_k is a root of a p_k^2 - (1 + a) p_k + r_k = 0. For each row `a`
           solves one equation: the sum of these roots is 1.

If some p gives exactly the observed r_m, every criterion returns this p. For two classes the result
is r itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from discriminant.errors import CodeError, CouplingWarning, RepeatedColumnsWarning, quote, warn
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Floats, Labels

Signs = npt.NDArray[np.int8]

MAX_COLUMNS = 4095  # largest number of columns of an exhaustive code
_DRAWS = 100  # largest number of random codes that are compared
_WORK = 2e8  # largest number of multiplications to compare them


@dataclass(frozen=True, slots=True, eq=False)
class OutputCode:
    """Output code: sides of K classes in M two-class problems."""

    labels: Labels  # (K,)
    signs: Signs  # (K, M)

    @classmethod
    def from_matrix(cls, matrix: npt.ArrayLike, labels: Labels) -> OutputCode:
        """Validate a code matrix given by the user."""
        entries = np.asarray(matrix)
        if entries.ndim != 2 or entries.shape[0] != len(labels) or not entries.shape[1]:
            raise CodeError.of_shape(entries.shape, labels.tolist())
        for k, m in np.argwhere(~np.isin(entries, (-1, 0, 1))):
            raise CodeError.of_entry(labels[k], int(m), entries[k, m])
        code = cls(labels, entries.astype(np.int8))
        code.check()
        return code

    def check(self) -> None:
        """Reject columns with only one side, and classes that are never on opposite sides.

        Warn about repeated columns.
        """
        for side in (-1, 1):
            for m in np.flatnonzero(~(self.signs == side).any(axis=0)):
                raise CodeError.one_sided(int(m), side)
        alike = np.argwhere(np.triu(count_opposed(self.signs) == 0, 1)).tolist()
        if alike:
            raise CodeError.equal_rows([(self.labels[j], self.labels[k]) for j, k in alike])
        repeated = _repeated_columns(self.signs)
        if repeated:
            warn(RepeatedColumnsWarning.of_columns(repeated))

    def describe_column(self, column: int) -> str:
        """Return a sentence that names the classes on each side of a column."""
        side = self.signs[:, column]
        negative, positive = (quote(self.labels[side == s].tolist(), 3) for s in (-1, 1))
        return f"(This concerns a two-class problem: '0' is {negative}; '1' is {positive}.)"

    @property
    def binary(self) -> bool:
        """Whether no class is left out of any problem."""
        return bool(self.signs.all())

    @property
    def distance(self) -> float:
        """Distance of the code: the smallest distance between two classes."""
        return code_distance(self.signs)

    @property
    def corrects(self) -> int:
        """Largest number of classifiers that may err without ever changing the predicted class.

        In the comparison of the true class k with class j, a column with k and j on opposite sides
        counts 1 for k, or 1 against k if its classifier errs. A column that leaves out j counts
        half as much. A column that leaves out k may count 1/2 against k even if its classifier does
        not err.
        """
        used = np.abs(self.signs).astype(np.int64)
        opposed = count_opposed(self.signs)
        own = used @ (1 - used).T  # [k, j] number of columns with k and without j
        # In units of 1/2. An error costs 4 in a column with opposite sides, else 2.
        margin = 2 * opposed + own - own.T
        opposed_errors = np.minimum((margin - 1) // 4, opposed)
        other_errors = np.minimum((margin - 4 * opposed - 1) // 2, own)
        sure = np.where(
            opposed_errors == opposed, opposed + np.maximum(other_errors, 0), opposed_errors
        )
        np.fill_diagonal(sure, np.iinfo(np.int64).max)
        return max(int(sure.min()), 0)


def count_opposed(signs: Signs) -> npt.NDArray[np.int64]:
    """Return the (K, K) numbers of columns that have two classes on opposite sides."""
    plus, minus = (signs == 1).astype(np.float64), (signs == -1).astype(np.float64)
    one_way = plus @ minus.T
    return np.asarray((one_way + one_way.T).astype(np.int64))


def code_distance(signs: Signs) -> float:
    """Return the distance of a code: the smallest distance between two rows of `signs`.

    >>> code_distance(one_vs_rest_code(4)), code_distance(one_vs_one_code(3))
    (2.0, 2.0)
    """
    K, M = signs.shape
    real = signs.astype(np.float64)
    distances = (M - real @ real.T) / 2
    return float(distances[np.triu_indices(K, 1)].min())


# --- fixed codes ---------------------------------------------------------------------------------


def one_vs_rest_code(K: int) -> Signs:
    """Return the (K, K) one-vs-rest code; for two classes it has a single column."""
    if K == 2:
        return np.array([[-1], [1]], dtype=np.int8)
    return (2 * np.eye(K) - 1).astype(np.int8)


def reference_code(K: int) -> Signs:
    """Return the (K, K - 1) code that compares each class but the last with all others.

    If all classifiers are negative, the row is assigned to the last class, the reference (lecture
    4).

    >>> reference_code(3).tolist()
    [[1, -1], [-1, 1], [-1, -1]]
    """
    return one_vs_rest_code(K)[:, :-1] if K > 2 else np.array([[1], [-1]], dtype=np.int8)


def one_vs_one_code(K: int) -> Signs:
    """Return the (K, K (K - 1) / 2) code of all pairs; the later class of a pair is positive."""
    first, second = np.triu_indices(K, 1)
    signs = np.zeros((K, len(first)), dtype=np.int8)
    signs[first, np.arange(len(first))] = -1
    signs[second, np.arange(len(first))] = 1
    return signs


def exhaustive_code(K: int) -> Signs:
    """Return the (K, 2^(K-1) - 1) code of all partitions of the classes into two sides.

    The last class is always on the positive side. Raises an error if there are too many columns.
    """
    columns = 2 ** (K - 1) - 1
    if columns > MAX_COLUMNS:
        raise CodeError.too_many("exhaustive", columns, K, MAX_COLUMNS)
    bits = np.arange(columns) >> np.arange(K - 1)[:, None] & 1
    return np.vstack([2 * bits - 1, np.ones(columns)]).astype(np.int8)


def exhaustive_ternary_code(K: int) -> Signs:
    """Return the code with all partitions of all subsets of the classes into two sides.

    The shape of the code is (K, (3^K - 2^(K+1) + 1) / 2). A column leaves out the classes that are
    not in its subset.
    """
    digits = np.arange(3**K) // 3 ** np.arange(K)[:, None] % 3 - 1
    return distinct_columns(digits.astype(np.int8))


# --- random codes --------------------------------------------------------------------------------


def dense_code(K: int, columns: int | None, rng: np.random.Generator) -> Signs:
    """Return a (K, M) random code without zeros."""
    return _best_random_code("dense", K, columns, rng, (-1, 1))


def sparse_code(K: int, columns: int | None, rng: np.random.Generator) -> Signs:
    """Return a (K, M) random code; a column leaves out half of the classes on average."""
    return _best_random_code("sparse", K, columns, rng, (-1, 0, 0, 1))


def code_length(kind: str, K: int, columns: int | None) -> tuple[int, int]:
    """Return the number of columns of a random code, and the number of possible distinct columns.

    `columns` is the requested number of columns. If `columns` is None, the usual number is
    returned.
    """
    ternary = kind == "sparse"
    n_distinct = (3**K - 2 ** (K + 1) + 1) // 2 if ternary else 2 ** (K - 1) - 1
    if columns is None:
        usual = int(np.ceil((15 if ternary else 10) * np.log2(K)))
        return min(usual, n_distinct), n_distinct
    if columns > n_distinct:
        raise CodeError.too_long(kind, columns, K, n_distinct)
    return int(columns), n_distinct


def _best_random_code(
    kind: str, K: int, columns: int | None, rng: np.random.Generator, sides: tuple[int, ...]
) -> Signs:
    """Generate several random codes; return the one with the largest distance.

    Entries are chosen from `sides`.
    """
    M, n_distinct = code_length(kind, K, columns)
    if n_distinct <= max(2 * M, 64) and (kind == "sparse" or n_distinct <= MAX_COLUMNS):
        pool = exhaustive_ternary_code(K) if kind == "sparse" else exhaustive_code(K)
    else:
        pool = random_columns(K, max(min(4 * M, n_distinct // 2), M), rng, sides)
    if pool.shape[1] == M:
        return pool
    best, largest = None, 0.0
    for _ in range(int(np.clip(_WORK / (K * K * M), 2, _DRAWS))):
        signs = pool[:, rng.choice(pool.shape[1], M, replace=False)]
        distance = code_distance(signs)
        if distance > largest and count_opposed(signs)[np.triu_indices(K, 1)].all():
            best, largest = signs, distance
    if best is None:
        raise CodeError.too_short(kind, M, K)
    return best


def random_columns(K: int, M: int, rng: np.random.Generator, sides: tuple[int, ...]) -> Signs:
    """Return a (K, M) array of distinct random columns with entries from `sides`."""
    columns = np.zeros((K, 0), dtype=np.int8)
    while columns.shape[1] < M:
        more = rng.choice(np.array(sides, dtype=np.int8), size=(K, 2 * M))
        columns = distinct_columns(np.hstack([columns, more]))
    return columns[:, :M]


def distinct_columns(signs: Signs) -> Signs:
    """Return the distinct columns that have classes on both sides.

    The sign of each column is chosen so that the last class that it does not leave out is on the
    positive side.
    """
    signs = signs[:, (signs == 1).any(axis=0) & (signs == -1).any(axis=0)]
    oriented = signs * _last_side(signs)
    _, first = np.unique(oriented, axis=1, return_index=True)
    return np.asarray(oriented[:, np.sort(first)])


def _last_side(signs: Signs) -> Signs:
    """Return an (M,) array: for each column, the side of the last class that takes part in it."""
    last = signs.shape[0] - 1 - (signs[::-1] != 0).argmax(axis=0)
    return np.asarray(signs[last, np.arange(signs.shape[1])])


def _repeated_columns(signs: Signs) -> list[tuple[int, int, bool]]:
    """Return the pairs of columns that are equal or complementary.

    Each pair is a tuple (first column, second column, whether they are complementary).
    """
    side = _last_side(signs)
    groups: dict[bytes, list[int]] = {}
    for m, column in enumerate(np.ascontiguousarray((signs * side).T)):
        groups.setdefault(column.tobytes(), []).append(m)
    same = (pair for alike in groups.values() for pair in combinations(alike, 2))
    return sorted((a, b, bool(side[a] != side[b])) for a, b in same)


# --- codes of the largest distance ---------------------------------------------------------------

_OPTIMAL_CLASSES = 8  # largest number of classes for which codes are searched
_SEARCH_NODES = 20_000  # largest number of partial codes that the search visits


def optimal_code(K: int, columns: int | None) -> Signs:
    """Return a (K, M) code without zeros whose distance is the largest possible for its length.

    To find such a code is NP-hard, so only few classes are allowed. For each distance D, from an
    upper bound downwards, branch and bound looks for M different columns that separate every pair
    of classes at least D times. If a pair has been separated s < D times, it still needs D - s
    columns. A partial code is abandoned if a pair needs more columns than remain, or if all pairs
    together need more separations than the remaining columns can provide. The columns are sorted by
    the number of pairs that they separate. First columns with the same number of classes on one
    side differ only in the order of the classes, so it is enough to try one of them.

    >>> code_distance(optimal_code(4, 5)), code_distance(optimal_code(5, 6))
    (2.0, 3.0)
    """
    M = K if columns is None else int(columns)
    M = min(M, 2 ** (K - 1) - 1) if columns is None else M
    if K > _OPTIMAL_CLASSES:
        raise CodeError.no_search(K, _OPTIMAL_CLASSES)
    if M > 2 ** (K - 1) - 1:
        raise CodeError.too_long("optimal", M, K, 2 ** (K - 1) - 1)
    if 2**M < K:
        raise CodeError.too_short("optimal", M, K)
    pool = exhaustive_code(K)
    smaller = np.minimum((pool == 1).sum(axis=0), (pool == -1).sum(axis=0))
    order = np.argsort(-smaller, kind="stable")
    pool, smaller = pool[:, order], smaller[order]
    first, second = np.triu_indices(K, 1)
    separated = (pool[first] != pool[second]).T.astype(np.int64)  # (columns, pairs)
    starts = np.unique(smaller, return_index=True)[1]
    search = _ColumnSearch(separated, starts)
    for distance in range(M * int(separated[0].sum()) // separated.shape[1], 0, -1):
        chosen = search.columns(M, distance)
        if chosen is not None:
            return np.asarray(pool[:, chosen])
    raise CodeError.too_short("optimal", M, K)


class _ColumnSearch:
    """Branch and bound: search for distinct columns that separate every pair often enough."""

    def __init__(self, separated: npt.NDArray[np.int64], starts: npt.NDArray[np.intp]) -> None:
        self._separated = separated  # (columns, pairs) in order of their numbers of pairs
        self._starts = starts  # first columns to try
        self._nodes = 0

    def columns(self, M: int, distance: int) -> list[int] | None:
        """Return the indices of M columns, or None if no code has this distance."""
        lacking = np.full(self._separated.shape[1], distance)
        return self._extend([], lacking, self._starts, M)

    def _extend(
        self, chosen: list[int], lacking: npt.NDArray[np.int64], candidates: Any, M: int
    ) -> list[int] | None:
        if not M:
            return chosen
        self._nodes += 1
        if self._nodes > _SEARCH_NODES:
            raise CodeError.search_too_long(len(chosen) + M, _SEARCH_NODES)
        after = np.maximum(lacking - self._separated[candidates], 0)
        largest = self._separated[candidates].sum(axis=1)  # later columns separate no more pairs
        possible = (after.max(axis=1) < M) & (after.sum(axis=1) <= (M - 1) * largest)
        possible &= len(self._separated) - candidates >= M
        order = np.argsort(after[possible].sum(axis=1), kind="stable")
        for i in np.flatnonzero(possible)[order]:
            column = int(candidates[i])
            later = np.arange(column + 1, len(self._separated))
            columns = self._extend([*chosen, column], after[i], later, M - 1)
            if columns is not None:
                return columns
        return None


FIXED: dict[str, Callable[[int], Signs]] = {
    "one-vs-rest": one_vs_rest_code,
    "reference": reference_code,
    "one-vs-one": one_vs_one_code,
    "exhaustive": exhaustive_code,
}
RANDOM: dict[str, Callable[[int, int | None, np.random.Generator], Signs]] = {
    "dense": dense_code,
    "sparse": sparse_code,
}
CODES = (*FIXED, *RANDOM, "designed", "optimal")


_CANDIDATES = 2000
_FEW_CLASSES = 10  # up to this number of classes every possible column is a candidate
_DESIGN_WORK = 2e9  # largest number of multiplications to choose columns


def design_code(moments: ClassMoments, columns: int | None, rng: np.random.Generator) -> Signs:
    """Return a (K, M) code without zeros, with sides that a linear rule separates well.

    Moments of any detail can be used.
    """
    K = len(moments.labels)
    M, n_distinct = code_length("dense", K, columns)
    axes = means_in_total_metric(moments)
    few = K <= _FEW_CLASSES or n_distinct <= min(4 * M, MAX_COLUMNS)
    candidates = exhaustive_code(K) if few else _candidate_columns(axes, M, rng)
    quality = separability(candidates, axes, moments.weight / moments.weight.sum())
    chosen = candidates[:, _greedy_columns(candidates, quality, M)]
    if not count_opposed(chosen)[np.triu_indices(K, 1)].all():
        raise CodeError.too_short("designed", M, K)
    return np.asarray(chosen)


def means_in_total_metric(moments: ClassMoments) -> Floats:
    """Return the (K, r) class means minus the centre, whitened by the total covariance.

    The total covariance is the covariance of all rows, whatever their class. Moments of detail
    'diagonal' give only variances, so the means are then divided by standard deviations.
    """
    offsets = moments.mean - moments.centre
    total = float(moments.weight.sum())
    if moments.detail == "diagonal":
        variance = (moments.pooled + moments.weight @ offsets**2) / total
        return np.asarray(offsets / np.sqrt(np.where(variance > 0, variance, np.inf)))
    covariance = (moments.pooled + moments.spread_of_means()) / total
    scale = np.sqrt(np.diagonal(covariance))
    scale = np.where(scale > 0, scale, np.inf)
    values, vectors = np.linalg.eigh(covariance / scale[:, None] / scale)
    nonzero = values > 8 * len(values) * np.finfo(float).eps * values[-1]
    return np.asarray(offsets / scale @ vectors[:, nonzero] / np.sqrt(values[nonzero]))


def separability(signs: Signs, axes: Floats, share: Floats) -> Floats:
    """Return the (M,) R^2 of the columns: how well a linear rule separates their two sides.

    `axes` (K, r) holds the class means returned by `means_in_total_metric`, `share` (K,) the class
    shares.
    """
    positive = share[:, None] * (signs == 1)
    q = positive.sum(axis=0)
    shift = positive.T @ axes
    variance = q * (1.0 - q)  # zero where one side has no weight
    explained = np.vecdot(shift, shift)
    return np.asarray(np.divide(explained, variance, out=np.zeros_like(q), where=variance > 0))


def _candidate_columns(axes: Floats, M: int, rng: np.random.Generator) -> Signs:
    K, r = axes.shape
    n = int(np.clip(_DESIGN_WORK / (K * K * M), M, max(_CANDIDATES, 4 * M)))
    random = rng.choice(np.array([-1, 1], dtype=np.int8), size=(K, n))
    projected = axes @ rng.standard_normal((r, n))
    cut = np.take_along_axis(np.sort(projected, axis=0), rng.integers(1, K, size=(1, n)), axis=0)
    candidates = distinct_columns(
        np.hstack([random, np.where(projected >= cut, 1, -1).astype(np.int8)])
    )
    if candidates.shape[1] >= M:
        return candidates
    return distinct_columns(np.hstack([candidates, random_columns(K, M, rng, (-1, 1))]))


def _greedy_columns(candidates: Signs, quality: Floats, M: int) -> list[int]:
    """Return the indices of M candidate columns, in the order in which the design chooses them.

    `quality` holds the R^2 of the candidates.
    """
    signs, K = candidates.T.astype(np.float64), len(candidates)
    urgency = np.ones((K, K)) - np.eye(K)
    gain, chosen = quality.copy(), []
    for _ in range(M):
        separated = urgency.sum() - np.vecdot(signs @ urgency, signs)
        m = int((gain * separated).argmax())
        chosen.append(m)
        gain[m] = -1.0  # never chosen again, since `separated` is positive for every column
        urgency[signs[m][:, None] != signs[m]] /= 2.0
        urgency /= urgency.max()  # avoids underflow; only the ratios matter
    return chosen


_MIN_PROBABILITY = 1e-15  # two-class probabilities are clipped at this distance from 0 and 1
_TOLERANCE = 1e-9  # largest change of a probability in the last step
_NEGLIGIBLE = 1e-5  # there is no warning if no probability changes by more in the last step
_STEPS = 150  # largest number of steps
_NUMBERS = 1 << 21  # size of the largest array; rows are coupled in chunks of this size


def couple_probabilities(positive: Floats, signs: Signs) -> Floats:
    """Convert (n, M) probabilities of the positive sides to (n, K) class probabilities."""
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
    """Return the root p in (0, 1) of a quadratic equation, and the root of its discriminant.

    The equation is a p^2 - (1 + a) p + r = 0, where `multiplier` holds a and `positive` holds r.
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
        # A step that preserves the sum of p changes q- by the negative of the change of q+.
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
    """Negative squares - sum_m ((1 - r) q+ - r q-)^2 / 2 = - p' Q p / 2, for codes with zeros."""

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
    """State of the interior-point method: p > 0 with sum one, and multipliers z > 0 of p >= 0."""

    p: Floats  # (n, K)
    z: Floats  # (n, K)

    def select(self, rows: npt.NDArray[np.bool_]) -> _InteriorState:
        return _InteriorState(self.p[rows], self.z[rows])

    def step(self, objective: _CouplingObjective) -> tuple[_InteriorState, Floats]:
        """Return the next state, and the (n,) step lengths.

        The Newton step aims at products p z of a tenth of their current mean. A row whose products
        have not yet decreased enough has an infinite step length.
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
            f"Ambiguity({len(self.claims)} rows: no class {self.none:.2%}, "
            f"several classes {self.several:.2%}, ties {self.tie:.2%})"
        )


def hamming_scores(outputs: Floats, signs: Signs) -> Floats:
    """Return the (n, K) negative Hamming distances, plus a small term that breaks ties.

    The term is proportional to the confidence sum_m f_m signs[k, m]. In the example (lecture 5,
    figure 3.5) one of five classifiers is wrong, but class 2 is still predicted.

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
    # Different distances differ by 1/2 or more; the added terms differ by at most 1/3.
    scores += confidence / (6.0 * np.where(largest > 0, largest, 1.0))
    return np.asarray(scores)


def euclidean_scores(word: Floats, signs: Signs) -> Floats:
    """Return the (n, K) negative Euclidean distances between predicted and class code words.

    `word` (n, M) holds the predicted code words, with entries from -1 to 1.
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
