"""SMOTE: rows made up on the segments between a row of a class and its near neighbours.

Chawla, Bowyer, Hall and Kegelmeyer (2002): with row i drawn from the n rows of a class, j from its
k nearest neighbours in the class and u from (0, 1), a synthetic row is

    s = x_i + u (x_j - x_i)

As E u = 1/2, E u^2 = 1/3 and E u (1 - u) = 1/6, mean and covariance of s follow without a draw.
With z = x - mean of the class, c_j = (how many rows have j for a neighbour) / k, a_i the mean of
the neighbours of row i:

    E s   = (1 / 2n) sum (1 + c_i) z_i
    E ss' = (1 / 6n) sum (2 + 2 c_i) z_i z_i' + z_i a_i' + a_i z_i'

With S the scatter of the class and r synthetic rows beside its n, m = n + r in all, the scatter of
all about their mean has the mean, over all draws,

    S + (1 - 1/m) r E ss' - r (r - 1) / m E s E s'

which is what n rows and r others come to whose covariance is that of s and whose scatter is
(1 - 1/m) r times it: `expected_moments`. Columns that are categories are not interpolated but voted
on: `imbalance.nominal`. Who is near whom is found in `imbalance.neighbours`.

The nearest other rows of each row of a class.

In few columns a tree finds them (scikit-learn's); in many every pair is looked at, tile by tile.
With z = x - mean, the order of |z_i - z_j|^2 over j is that of

    v_ij = |z_j|^2 / 2 - z_i . z_j        |z_i - z_j|^2 = 2 v_ij + |z_i|^2

The k-th smallest of the minima over groups of columns bounds the k-th smallest of all; the few
pairs below it (and what rounding may add) are measured again as sums of squared differences, and
only these are sorted. So the answer has the digits of the differences, not of the products.

SMOTE where columns are categories: how far apart rows are, and what category a new row has.

Beside numbers (SMOTE-NC, Chawla et al. 2002, section 6.1) a differing category is as far as the
median over the numeric columns of their standard deviations in the class. Without numbers
(SMOTE-N, section 6.2) categories v, w of a column are as far apart as the classes of their rows,

    delta(v, w) = sum_c |P(c|v) - P(c|w)|,    distance^2 = sum over columns of delta^2

(the value difference metric of Cost and Salzberg). A synthetic row has the category that most of
the k neighbours of its row have, and in SMOTE-N the row itself votes too; ties go by chance.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import ResamplingError
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Codes, Features, Floats, Places, is_sparse

_FEW = 15  # columns; a tree is quicker up to here
_DISTANCE_ROWS = 64  # rows measured against all others at a time
_GROUP = 16  # columns of a tile whose minimum is taken first
_EPS = float(np.finfo(np.float64).eps)


def neighbours_of(features: Features, k: int, label: object, *, threads: int = 1) -> Places:
    """(n, k) the nearest other rows of each row of one class, the nearest first.

    Distances are taken about the middle of the rows, so that a far origin costs no digit, and in a
    unit in which no square overflows or vanishes.
    """
    n, d = features.shape
    if n <= k:
        raise ResamplingError.of_neighbours(label, int(n), k)
    features = in_unit(features)
    if not is_sparse(features):
        features = in_unit(features - features.mean(axis=0))
    if is_sparse(features) or d <= _FEW:
        from sklearn.neighbors import NearestNeighbors

        # Left to choose, it takes products for few rows, which a row far away blurs.
        way = "brute" if is_sparse(features) else "kd_tree"
        search = NearestNeighbors(n_neighbors=k, algorithm=way).fit(features)
        return np.asarray(search.kneighbors(return_distance=False))
    pairs = _Pairs.of(np.ascontiguousarray(features, dtype=np.float64), k)
    starts = range(0, n, _DISTANCE_ROWS)
    if threads == 1 or len(starts) == 1:
        return np.concatenate([pairs.nearest(lo) for lo in starts])
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(pairs.nearest, starts)))


def in_unit(features: Features) -> Features:
    """The same rows in float64 and in a unit such that none is beyond 1: a power of two, so exact.

    Rows of zeros stay.
    """
    cells = features.data if is_sparse(features) else features
    most = float(np.max(cells, initial=0.0)), -float(np.min(cells, initial=0.0))
    down = -int(np.frexp(float(max(most)))[1])
    if not is_sparse(features):
        return np.ldexp(np.asarray(features, dtype=np.float64), down)
    found = features.astype(np.float64)
    found.data = np.ldexp(found.data, down)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """All rows, ready to be measured against one another."""

    rows: Floats  # (n, d) about their mean
    across: Floats  # (d, n)
    half: Floats  # (n,) |z|^2 / 2
    k: int

    @classmethod
    def of(cls, rows: Floats, k: int) -> _Pairs:
        half = 0.5 * np.einsum("ij,ij->i", rows, rows)
        return cls(rows, np.ascontiguousarray(rows.T), half, k)

    def nearest(self, lo: int) -> Places:
        """(t, k) the neighbours of the rows of one tile."""
        hi = min(lo + _DISTANCE_ROWS, len(self.rows))
        apart = np.dot(self.rows[lo:hi], self.across)
        np.subtract(self.half, apart, out=apart)
        place = np.arange(hi - lo)
        apart[place, lo + place] = np.inf  # no row is its own neighbour
        near, other = np.divmod(
            np.flatnonzero(apart <= self._bound(apart, lo, hi)[:, None]), len(self.rows)
        )
        exact = np.square(self.rows[lo + near] - self.rows[other]).sum(axis=1)
        order = np.lexsort((other, exact, near))
        count = np.bincount(near, minlength=hi - lo)
        first = np.cumsum(count) - count
        return np.asarray(other[order[first[:, None] + np.arange(self.k)]])

    def _bound(self, apart: Floats, lo: int, hi: int) -> Floats:
        """(t,) what the k-th smallest of each row is not above, rounding allowed for."""
        n, d = self.rows.shape
        low = apart
        if n >= 4 * _GROUP * (self.k + 1):
            wide = n // _GROUP
            low = apart[:, : wide * _GROUP].reshape(hi - lo, _GROUP, wide).min(axis=1)
        bound = np.partition(low, self.k - 1, axis=1)[:, self.k - 1]
        own = 2.0 * self.half[lo:hi]
        return np.asarray(bound + 8 * (d + 2) * _EPS * (own + np.abs(2.0 * bound + own)))


_DISTANCES = 1 << 22  # distances held at a time

Nominal = npt.NDArray[np.intp]  # (n, q) category of each row in each nominal column


def mixed_neighbours(
    numbers: Floats, nominal: Nominal, k: int, label: object, *, threads: int = 1
) -> Places:
    """(n, k) the nearest other rows of each row of one class, by numbers and categories."""
    numbers = in_unit(numbers)
    unit = float(np.median(numbers.std(axis=0)))
    flags = [(column[:, None] == np.unique(column)) * (unit / np.sqrt(2.0)) for column in nominal.T]
    rows = np.hstack([numbers - numbers.mean(axis=0), *flags])
    return neighbours_of(rows, k, label, threads=threads)


def value_differences(nominal: Nominal, codes: Codes, classes: int) -> list[Floats]:
    """Of each column, (C, C) squared difference of its categories, from the rows of all classes."""
    found = []
    for column in nominal.T:
        share = np.zeros((int(column.max()) + 1, classes))
        np.add.at(share, (column, codes), 1.0)
        share /= np.maximum(share.sum(axis=1, keepdims=True), 1.0)
        apart = np.abs(share[:, None, :] - share[None, :, :]).sum(axis=2)
        found.append(apart**2)
    return found


def nominal_neighbours(
    nominal: Nominal, differences: list[Floats], k: int, label: object
) -> Places:
    """(n, k) the nearest other rows of each row of one class, by categories alone."""
    n = len(nominal)
    if n <= k:
        raise ResamplingError.of_neighbours(label, n, k)
    found = np.empty((n, k), dtype=np.intp)
    size = max(_DISTANCES // n, 1)
    for lo in range(0, n, size):
        rows = np.arange(lo, min(lo + size, n))
        apart = np.zeros((len(rows), n))
        for column, table in zip(nominal.T, differences, strict=True):
            apart += table[column[rows]][:, column]
        apart[np.arange(len(rows)), rows] = np.inf
        found[rows] = np.argpartition(apart, k - 1, axis=1)[:, :k]
    return found


def voted(
    nominal: Nominal, voters: Places, start: Places, random: np.random.RandomState
) -> Nominal:
    """(m, q) categories of synthetic rows that start at these rows, whose `voters` (n, v) decide.

    Ties go by chance.
    """
    found = np.empty((len(start), nominal.shape[1]), dtype=np.intp)
    n, rows = len(voters), np.arange(len(voters))[:, None]
    for j, column in enumerate(nominal.T):
        votes = np.zeros((n, int(column.max()) + 1))
        np.add.at(votes, (rows, column[voters]), 1.0)
        lot = random.uniform(high=0.5, size=(len(start), votes.shape[1]))
        lot += votes[start]
        found[:, j] = lot.argmax(axis=1)
    return found


_TILE = 1 << 16  # numbers of synthetic rows made at a time, so that they stay in the cache


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Where m synthetic rows lie: between two rows of their class."""

    start: Places  # (m,) row of the class
    end: Places  # (m,) one of its neighbours
    step: Floats  # (m,) how far from start to end, in [0, 1)


def draw_segments(neighbours: Places, count: int, random: np.random.RandomState) -> Segments:
    """`count` segments, every pair of a row and a neighbour as likely as any other."""
    k = neighbours.shape[1]
    pair = random.randint(0, neighbours.size, size=count)
    step = random.uniform(size=count)
    return Segments(pair // k, neighbours.ravel()[pair], step)


def along(features: Features, segments: Segments, out: npt.NDArray[Any] | None = None) -> Features:
    """(m, d) the synthetic rows: into `out`, if given."""
    if is_sparse(features):
        start = features[segments.start]
        apart = features[segments.end] - start
        return start + apart.multiply(segments.step[:, None]).tocsr()
    if out is None:
        out = np.empty((len(segments.step), features.shape[1]), dtype=features.dtype)
    step = segments.step.astype(out.dtype, copy=False)
    size = max(_TILE // features.shape[1], 64)
    for lo in range(0, len(step), size):
        part = slice(lo, lo + size)
        start = features.take(segments.start[part], axis=0)
        apart = features.take(segments.end[part], axis=0)
        apart -= start
        apart *= step[part, None]
        np.add(start, apart, out=out[part])
    return out


def expected_moments(
    like: ClassMoments, code: int, offsets: Floats, neighbours: Places, count: int
) -> ClassMoments:
    """Moments to add to those of one class for `count` synthetic rows, in the mean over all draws.

    `like` says of which classes, features, anchor and detail; `offsets` (n, d) are the rows of the
    class about that anchor.
    """
    n, k = neighbours.shape
    centre = offsets.mean(axis=0)
    z = offsets - centre
    chosen = 1.0 + np.bincount(neighbours.ravel(), minlength=n) / k
    beside = z[neighbours[:, 0]]
    for column in neighbours.T[1:]:
        beside += z[column]
    beside /= k
    mean = chosen @ z / (2 * n)
    spread = count * (1.0 - 1.0 / (n + count))
    found = ClassMoments.empty(like.labels, like.features, detail=like.detail, anchor=like.anchor)
    found.rows[code], found.weight[code], found.weight2[code] = count, count, count
    found.mean[code] = centre + mean
    if like.detail == "diagonal":
        square = (2.0 * chosen @ z**2 + 2.0 * np.einsum("ij,ij->j", z, beside)) / (6 * n) - mean**2
        found.scatter[code] = spread * square
        return found
    cross = z.T @ beside
    square = (2.0 * (z * chosen[:, None]).T @ z + cross + cross.T) / (6 * n)
    scatter = found.scatter if like.detail == "pooled" else found.scatter[code]
    scatter[...] = spread * (square - mean[:, None] * mean)
    return found
