"""Output codes: matrices that divide K classes into the two sides of M two-class problems.

    signs[k, m] = +1   class k is on the positive side of problem m
                  -1   on the negative side
                   0   left out

The M classifiers predict a code word of M signs for a row, and the row is assigned to the class
whose signs are nearest. In the distance of two classes, a column that puts them on opposite sides
counts 1, and a column that leaves one of them out counts a half (Allwein, Schapire & Singer 2000):

    distance(j, k) = sum_m (1 - signs[j, m] signs[k, m]) / 2

The distance of a code is the smallest distance of two of its classes. Without zeros the distance is
the Hamming distance, and a code of distance D corrects any floor((D - 1) / 2) errors of
classifiers. A classifier that leaves out the class of a row may predict either side, so a code with
zeros is guaranteed to correct fewer errors (`OutputCode.corrects`).

    one-vs-rest  K columns          each class against all others
    one-vs-one   K (K - 1) / 2      each pair of classes, the others left out
    exhaustive   2^(K - 1) - 1      every partition of the classes into two sides
    dense        10 log2 K          random; of several codes the one with the largest distance
    sparse       15 log2 K          likewise, with half of the entries 0 on average
    designed     10 log2 K          from moments: sides that a linear rule can separate

In these codes no column equals another column or its complement, since both would give the same
classifier. A matrix given by the user may have equal or complementary columns, with a warning. A
matrix is rejected if two classes are never on opposite sides.

How well a linear rule separates the two sides of a column is measured by R^2, the squared
correlation of the indicator of the positive side with its best linear prediction. Let T be the
total scatter of all n rows, q the share of the rows that are on the positive side, and a_k the
share of class k times the difference of its mean from the centre:

    R^2(column) = n |T^-1/2 sum of a_k over the positive side|^2 / (q (1 - q))

T is the same for all columns, so the R^2 of all columns take one matrix product. A designed code
adds one column after the other, each time the one with the largest

    R^2(column) * sum over pairs of classes that it separates of 2^-(times separated before)

so that pairs of classes with a small distance so far count most (as in boosting with output codes,
Schapire 1997). Candidates are random columns, and columns that divide the class means at a random
point along a random direction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from discriminant.errors import CodeError, RepeatedColumnsWarning, quote, warn
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
        """Raise if a column has only one side, or if two classes are never on opposite sides.

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
        """Distance of the code: the smallest distance of two classes."""
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
    """Return, for each pair of classes, the number of columns with the two on opposite sides,
    (K, K).
    """
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
    """Return the (K, K) code of each class against all others; two classes need only one column."""
    if K == 2:
        return np.array([[-1], [1]], dtype=np.int8)
    return (2 * np.eye(K) - 1).astype(np.int8)


def one_vs_one_code(K: int) -> Signs:
    """Return the (K, K (K - 1) / 2) code of all pairs; the later class of a pair is positive."""
    first, second = np.triu_indices(K, 1)
    signs = np.zeros((K, len(first)), dtype=np.int8)
    signs[first, np.arange(len(first))] = -1
    signs[second, np.arange(len(first))] = 1
    return signs


def exhaustive_code(K: int) -> Signs:
    """Return the (K, 2^(K-1) - 1) code of all partitions of the classes into two sides.

    The last class is always on the positive side. Raise if there are too many columns.
    """
    columns = 2 ** (K - 1) - 1
    if columns > MAX_COLUMNS:
        raise CodeError.too_many("exhaustive", columns, K, MAX_COLUMNS)
    bits = np.arange(columns) >> np.arange(K - 1)[:, None] & 1
    return np.vstack([2 * bits - 1, np.ones(columns)]).astype(np.int8)


def ternary_code(K: int) -> Signs:
    """Return the code of all partitions of any of the classes into two sides.

    The shape of the code is (K, (3^K - 2^(K+1) + 1) / 2); a column may leave classes out.
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
    """Return, from several random codes, the code with the largest distance.

    Entries are chosen from `sides`.
    """
    M, n_distinct = code_length(kind, K, columns)
    if n_distinct <= max(2 * M, 64) and (kind == "sparse" or n_distinct <= MAX_COLUMNS):
        pool = ternary_code(K) if kind == "sparse" else exhaustive_code(K)
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
    """Return the distinct columns that have both sides.

    The sign of a column is chosen such that its last class that is not left out is positive.
    """
    signs = signs[:, (signs == 1).any(axis=0) & (signs == -1).any(axis=0)]
    oriented = signs * _last_side(signs)
    _, first = np.unique(oriented, axis=1, return_index=True)
    return np.asarray(oriented[:, np.sort(first)])


def _last_side(signs: Signs) -> Signs:
    """Return for each column the side of the last class that it does not leave out, (M,)."""
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


FIXED: dict[str, Callable[[int], Signs]] = {
    "one-vs-rest": one_vs_rest_code,
    "one-vs-one": one_vs_one_code,
    "exhaustive": exhaustive_code,
}
RANDOM: dict[str, Callable[[int, int | None, np.random.Generator], Signs]] = {
    "dense": dense_code,
    "sparse": sparse_code,
}
CODES = (*FIXED, *RANDOM, "designed")


_CANDIDATES = 2000
_FEW_CLASSES = 10  # up to this number of classes every possible column is a candidate
_DESIGN_WORK = 2e9  # largest number of multiplications to choose columns


def design_code(moments: ClassMoments, columns: int | None, rng: np.random.Generator) -> Signs:
    """Return a (K, M) code without zeros whose sides linear rules separate well.

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

    `axes` (K, r) are the class means of `means_in_total_metric`, `share` (K,) the class shares.
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
