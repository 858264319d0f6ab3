"""Output codes: which classes each of M two-class problems puts on which side.

    signs[k, m] = +1   class k is on the positive side of problem m
                  -1   on the negative side
                   0   left out

The M classifiers give a row a code word; it is assigned to the class with the nearest signs. Two
classes differ in a column that puts them on opposite sides; a column that leaves one of them out
counts a half (Allwein, Schapire & Singer 2000):

    distance(j, k) = sum_m (1 - signs[j, m] signs[k, m]) / 2

The smallest of these is the distance of the code. With no zeros it is the Hamming distance, and a
code of distance D corrects any floor((D - 1) / 2) errors. A classifier that leaves out the class of
a row may predict either side, so with zeros fewer errors are sure to be corrected: `corrects`.

    one-vs-rest  K columns          each class against all others
    one-vs-one   K (K - 1) / 2      each pair, the others left out
    exhaustive   2^(K - 1) - 1      every partition into two sides
    dense        10 log2 K          random, the most distant of several draws
    sparse       15 log2 K          random, with half of the entries 0 on average
    designed     10 log2 K          from moments: sides that a linear rule can separate

No column equals another or its complement, which would be the same classifier; a matrix given by
the user warns about that, and is rejected if two classes are never on opposite sides.

How well a linear rule separates the two sides of a column is the squared correlation of its
indicator with its best linear prediction. With T the scatter of all rows (within and between), q
the share of the positive side, and a_k the share times the mean of class k minus the centre:

    R^2(column) = n |T^-1/2 sum of a_k over the positive side|^2 / (q (1 - q))

which is one product for all columns, since T is the same for all of them. A designed code chooses
columns greedily, each by the largest

    R^2(column) * sum over pairs of classes that it separates of 2^-(times separated before)

so that pairs that are still near each other count most (as in boosting with output codes,
Schapire 1997). Candidates are random columns and cuts of the classes along random directions.
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

MOST = 4095  # columns of an exhaustive code
_DRAWS = 100  # random codes of which the most distant is taken
_WORK = 2e8  # multiplications that comparing them may take


@dataclass(frozen=True, slots=True, eq=False)
class OutputCode:
    """Sides of K classes in M two-class problems."""

    labels: Labels  # (K,)
    signs: Signs  # (K, M)

    @classmethod
    def from_matrix(cls, matrix: npt.ArrayLike, labels: Labels) -> OutputCode:
        """Validate a code matrix given by the user."""
        given = np.asarray(matrix)
        if given.ndim != 2 or given.shape[0] != len(labels) or not given.shape[1]:
            raise CodeError.of_shape(given.shape, labels.tolist())
        for k, m in np.argwhere(~np.isin(given, (-1, 0, 1))):
            raise CodeError.of_entry(labels[k], int(m), given[k, m])
        made = cls(labels, given.astype(np.int8))
        made.check()
        return made

    def check(self) -> None:
        """Raise unless columns have both sides and classes differ; warn about repeated columns."""
        for side in (-1, 1):
            for m in np.flatnonzero(~(self.signs == side).any(axis=0)):
                raise CodeError.one_sided(int(m), side)
        alike = np.argwhere(np.triu(count_opposed(self.signs) == 0, 1)).tolist()
        if alike:
            raise CodeError.equal_rows([(self.labels[j], self.labels[k]) for j, k in alike])
        repeated = _repeated(self.signs)
        if repeated:
            warn(RepeatedColumnsWarning.of_columns(repeated))

    def describe_column(self, column: int) -> str:
        """Sentence that names the classes on each side of a column."""
        side = self.signs[:, column]
        negative, positive = (quote(self.labels[side == s].tolist(), 3) for s in (-1, 1))
        return f"(Said of a two-class problem: '0' is {negative}; '1' is {positive}.)"

    @property
    def binary(self) -> bool:
        """Whether no class is left out of any problem."""
        return bool(self.signs.all())

    @property
    def distance(self) -> float:
        """Least distance between two classes, halves for columns that leave one of them out."""
        return code_distance(self.signs)

    @property
    def corrects(self) -> int:
        """Number of classifier errors that never change the predicted class.

        Class k against j: a column that has both apart counts 1 for k, and -1 if it errs; one that
        leaves out j a half of that; one that leaves out k may count a half against it, unerring.
        """
        used = np.abs(self.signs).astype(np.int64)
        apart = count_opposed(self.signs)
        own = used @ (1 - used).T  # [k, j] columns with k and without j
        margin = 2 * apart + own - own.T  # in halves; each error takes 4 of it, then 2
        full = np.minimum((margin - 1) // 4, apart)
        half = np.minimum((margin - 4 * apart - 1) // 2, own)
        sure = np.where(full == apart, apart + np.maximum(half, 0), full)
        np.fill_diagonal(sure, np.iinfo(np.int64).max)
        return max(int(sure.min()), 0)


def count_opposed(signs: Signs) -> npt.NDArray[np.int64]:
    """(K, K) number of columns that put two classes on opposite sides."""
    plus, minus = (signs == 1).astype(np.float64), (signs == -1).astype(np.float64)
    one_way = plus @ minus.T
    return np.asarray((one_way + one_way.T).astype(np.int64))


def code_distance(signs: Signs) -> float:
    """Least distance between two rows.

    >>> code_distance(one_vs_rest_code(4)), code_distance(one_vs_one_code(3))
    (2.0, 2.0)
    """
    K, M = signs.shape
    real = signs.astype(np.float64)
    apart = (M - real @ real.T) / 2
    return float(apart[np.triu_indices(K, 1)].min())


# --- fixed codes ---------------------------------------------------------------------------------


def one_vs_rest_code(K: int) -> Signs:
    """(K, K) each class against all others; with two classes one column, the second positive."""
    if K == 2:
        return np.array([[-1], [1]], dtype=np.int8)
    return (2 * np.eye(K) - 1).astype(np.int8)


def one_vs_one_code(K: int) -> Signs:
    """(K, K (K - 1) / 2) each pair, the later class positive."""
    first, second = np.triu_indices(K, 1)
    signs = np.zeros((K, len(first)), dtype=np.int8)
    signs[first, np.arange(len(first))] = -1
    signs[second, np.arange(len(first))] = 1
    return signs


def exhaustive_code(K: int) -> Signs:
    """(K, 2^(K-1) - 1) every way to take sides, the last class always positive."""
    columns = 2 ** (K - 1) - 1
    if columns > MOST:
        raise CodeError.too_many("exhaustive", columns, K, MOST)
    bits = np.arange(columns) >> np.arange(K - 1)[:, None] & 1
    return np.vstack([2 * bits - 1, np.ones(columns)]).astype(np.int8)


def ternary_code(K: int) -> Signs:
    """(K, (3^K - 2^(K+1) + 1) / 2) every way to take sides or to be left out."""
    digits = np.arange(3**K) // 3 ** np.arange(K)[:, None] % 3 - 1
    return distinct_columns(digits.astype(np.int8))


# --- random codes --------------------------------------------------------------------------------


def dense_code(K: int, columns: int | None, rng: np.random.Generator) -> Signs:
    """(K, M) random sides."""
    return _drawn("dense", K, columns, rng, (-1, 1))


def sparse_code(K: int, columns: int | None, rng: np.random.Generator) -> Signs:
    """(K, M) every other class left out of a column, on average."""
    return _drawn("sparse", K, columns, rng, (-1, 0, 0, 1))


def code_length(kind: str, K: int, columns: int | None) -> tuple[int, int]:
    """Number of columns of a random code, and the number of distinct columns."""
    ternary = kind == "sparse"
    all_of_them = (3**K - 2 ** (K + 1) + 1) // 2 if ternary else 2 ** (K - 1) - 1
    if columns is None:
        usual = int(np.ceil((15 if ternary else 10) * np.log2(K)))
        return min(usual, all_of_them), all_of_them
    if columns > all_of_them:
        raise CodeError.too_long(kind, columns, K, all_of_them)
    return int(columns), all_of_them


def _drawn(
    kind: str, K: int, columns: int | None, rng: np.random.Generator, sides: tuple[int, ...]
) -> Signs:
    """The code with the largest distance among several random codes."""
    M, all_of_them = code_length(kind, K, columns)
    if all_of_them <= max(2 * M, 64) and (kind == "sparse" or all_of_them <= MOST):
        pool = ternary_code(K) if kind == "sparse" else exhaustive_code(K)
    else:
        pool = random_columns(K, max(min(4 * M, all_of_them // 2), M), rng, sides)
    if pool.shape[1] == M:
        return pool
    best, far = None, 0.0
    for _ in range(int(np.clip(_WORK / (K * K * M), 2, _DRAWS))):
        signs = pool[:, rng.choice(pool.shape[1], M, replace=False)]
        distance = code_distance(signs)
        if distance > far and count_opposed(signs)[np.triu_indices(K, 1)].all():
            best, far = signs, distance
    if best is None:
        raise CodeError.too_short(kind, M, K)
    return best


def random_columns(K: int, M: int, rng: np.random.Generator, sides: tuple[int, ...]) -> Signs:
    """M distinct random columns."""
    columns = np.zeros((K, 0), dtype=np.int8)
    while columns.shape[1] < M:
        more = rng.choice(np.array(sides, dtype=np.int8), size=(K, 2 * M))
        columns = distinct_columns(np.hstack([columns, more]))
    return columns[:, :M]


def distinct_columns(signs: Signs) -> Signs:
    """The distinct columns with both sides, each with a positive last side."""
    signs = signs[:, (signs == 1).any(axis=0) & (signs == -1).any(axis=0)]
    turned = signs * _last_side(signs)
    _, first = np.unique(turned, axis=1, return_index=True)
    return np.asarray(turned[:, np.sort(first)])


def _last_side(signs: Signs) -> Signs:
    """(M,) the side of the last class that is not left out."""
    last = signs.shape[0] - 1 - (signs[::-1] != 0).argmax(axis=0)
    return np.asarray(signs[last, np.arange(signs.shape[1])])


def _repeated(signs: Signs) -> list[tuple[int, int, bool]]:
    """Pairs of columns that are equal, or complements."""
    side = _last_side(signs)
    places: dict[bytes, list[int]] = {}
    for m, column in enumerate(np.ascontiguousarray((signs * side).T)):
        places.setdefault(column.tobytes(), []).append(m)
    same = (pair for alike in places.values() for pair in combinations(alike, 2))
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
_ALL = 10  # classes up to which every column is a candidate
_DESIGN_WORK = 2e9  # multiplications that choosing may take


def design_code(moments: ClassMoments, columns: int | None, rng: np.random.Generator) -> Signs:
    """(K, M) a code without zeros, from moments of any detail."""
    K = len(moments.labels)
    M, all_of_them = code_length("dense", K, columns)
    axes = whitened_means(moments)
    few = K <= _ALL or all_of_them <= min(4 * M, MOST)
    tried = exhaustive_code(K) if few else _candidates(axes, M, rng)
    good = separability(tried, axes, moments.weight / moments.weight.sum())
    chosen = tried[:, _greedy(tried, good, M)]
    if not count_opposed(chosen)[np.triu_indices(K, 1)].all():
        raise CodeError.too_short("designed", M, K)
    return np.asarray(chosen)


def whitened_means(moments: ClassMoments) -> Floats:
    """(K, r) class means less the centre, in units in which all rows together have variance one."""
    apart = moments.mean - moments.centre
    total = float(moments.weight.sum())
    if moments.detail == "diagonal":
        variance = (moments.pooled + moments.weight @ apart**2) / total
        return np.asarray(apart / np.sqrt(np.where(variance > 0, variance, np.inf)))
    spread = (moments.pooled + moments.spread_of_means()) / total
    scale = np.sqrt(np.diagonal(spread))
    scale = np.where(scale > 0, scale, np.inf)
    values, vectors = np.linalg.eigh(spread / scale[:, None] / scale)
    kept = values > 8 * len(values) * np.finfo(float).eps * values[-1]
    return np.asarray(apart / scale @ vectors[:, kept] / np.sqrt(values[kept]))


def separability(signs: Signs, axes: Floats, share: Floats) -> Floats:
    """(M,) share of the variance of each column's sides that a linear rule explains."""
    positive = share[:, None] * (signs == 1)
    q = positive.sum(axis=0)
    away = positive.T @ axes
    spread = q * (1.0 - q)  # zero where one side has no weight
    told = np.vecdot(away, away)
    return np.asarray(np.divide(told, spread, out=np.zeros_like(q), where=spread > 0))


def _candidates(axes: Floats, M: int, rng: np.random.Generator) -> Signs:
    K, r = axes.shape
    many = int(np.clip(_DESIGN_WORK / (K * K * M), M, max(_CANDIDATES, 4 * M)))
    lot = rng.choice(np.array([-1, 1], dtype=np.int8), size=(K, many))
    along = axes @ rng.standard_normal((r, many))
    cut = np.take_along_axis(np.sort(along, axis=0), rng.integers(1, K, size=(1, many)), axis=0)
    candidates = distinct_columns(np.hstack([lot, np.where(along >= cut, 1, -1).astype(np.int8)]))
    if candidates.shape[1] >= M:
        return candidates
    return distinct_columns(np.hstack([candidates, random_columns(K, M, rng, (-1, 1))]))


def _greedy(tried: Signs, good: Floats, M: int) -> list[int]:
    """Places of M columns, in the order in which they were chosen."""
    real, K = tried.T.astype(np.float64), len(tried)
    urgent = np.ones((K, K)) - np.eye(K)
    gain, chosen = good.copy(), []
    for _ in range(M):
        told = urgent.sum() - np.vecdot(real @ urgent, real)
        m = int((gain * told).argmax())
        chosen.append(m)
        gain[m] = -1.0  # told is positive while any pair counts
        urgent[real[m][:, None] != real[m]] /= 2.0
        urgent /= urgent.max()  # only shares count, and after a thousand halvings none would
    return chosen
