"""Synthetic rows of a class: SMOTE, ADASYN, borderline-SMOTE, and rows from a Gaussian.

SMOTE: new rows on the segments between a row and its nearest neighbours in the class. Chawla,
Bowyer, Hall and Kegelmeyer (2002): choose at random a row i of the n rows of a class, one of its k
nearest neighbours j in the class, and a number u in (0, 1). The synthetic row is

    s = x_i + u (x_j - x_i)

Since E u = 1/2, E u^2 = 1/3 and E u (1 - u) = 1/6, the mean and covariance of s are known without
sampling. Let z = x - mean of the class, c_j = (number of rows that have j as a neighbour) / k, and
a_i the mean of z over the neighbours of row i. If s is also measured from the mean of the class,

    E s   = (1 / 2n) sum (1 + c_i) z_i
    E ss' = (1 / 6n) sum (2 + 2 c_i) z_i z_i' + z_i a_i' + a_i z_i'

If r synthetic rows are added to n rows with scatter S, the expected scatter of all m = n + r rows
about their common mean is

    S + (1 - 1/m) r E ss' - r (r - 1) / m E s E s'

The formula is the scatter of the n rows merged with r rows whose mean is E s and whose scatter is
(1 - 1/m) r times the covariance of s. `expected_moments` returns the moments of these r rows.

Nearest neighbours. With few columns scikit-learn's k-d tree is used; with many columns all pairs
are compared, one tile of rows at a time. With z = x - mean, sorting the rows j by |z_i - z_j|^2 is
the same as sorting them by v_ij:

    v_ij = |z_j|^2 / 2 - z_i . z_j        |z_i - z_j|^2 = 2 v_ij + |z_i|^2

The rows j are divided into groups, and the minimum of v_ij over each group is computed. The k-th
smallest of these minima is an upper bound on the k-th smallest v_ij. For the few pairs below this
bound (plus a margin for rounding) the distance is computed again, as a sum of squared differences,
and only these pairs are sorted. So the result is as accurate as if all distances were computed from
differences.

Categories. If there are numeric columns (SMOTE-NC, Chawla et al. 2002, section 6.1), the distance
of two different categories is the median of the standard deviations of the numeric columns in the
class. Without numeric columns (SMOTE-N, section 6.2), the distance of the categories v and w of a
column compares the class distributions of the rows with v and with w,

    delta(v, w) = sum_c |P(c|v) - P(c|w)|,    distance^2 = sum over columns of delta^2

(the value difference metric of Cost and Salzberg). A synthetic row gets the most frequent category
among the k neighbours of the row from which it starts; in SMOTE-N this row also votes. Ties are
broken at random.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import ResamplingError
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Codes, Features, Floats, Places, is_sparse

_FEW = 15  # up to this number of columns a k-d tree is faster
_DISTANCE_ROWS = 64  # rows of a tile, whose distances to all rows are computed at a time
_GROUP = 16  # rows of a group, of which only the minimum is used for the bound
_EPS = float(np.finfo(np.float64).eps)


def nearest_neighbours(features: Features, k: int, label: object, *, threads: int = 1) -> Places:
    """Return the (n, k) row numbers of the k nearest neighbours of each row, the nearest first.

    All rows belong to the class `label`; a row is not its own neighbour. Dense rows are centred, so
    that no accuracy is lost if means are far from zero. All rows are scaled, so that no square
    overflows or underflows.
    """
    n, d = features.shape
    if n <= k:
        raise ResamplingError.of_neighbours(label, int(n), k)
    features = scale_to_unit(features)
    if not is_sparse(features):
        features = scale_to_unit(features - features.mean(axis=0))
    if is_sparse(features) or d <= _FEW:
        from sklearn.neighbors import NearestNeighbors

        # algorithm="auto" computes distances of few rows from products, which are inexact if one
        # row is far from the others.
        algorithm = "brute" if is_sparse(features) else "kd_tree"
        search = NearestNeighbors(n_neighbors=k, algorithm=algorithm).fit(features)
        return np.asarray(search.kneighbors(return_distance=False))
    pairs = _PairSearch.from_rows(np.ascontiguousarray(features, dtype=np.float64), k)
    starts = range(0, n, _DISTANCE_ROWS)
    if threads == 1 or len(starts) == 1:
        return np.concatenate([pairs.nearest(lo) for lo in starts])
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(pairs.nearest, starts)))


def scale_to_unit(features: Features) -> Features:
    """Return the rows as float64, divided by a power of two so that no absolute value exceeds 1.

    The division is exact. If all values are zero, they are unchanged.
    """
    cells = features.data if is_sparse(features) else features
    extremes = float(np.max(cells, initial=0.0)), -float(np.min(cells, initial=0.0))
    power = -int(np.frexp(float(max(extremes)))[1])
    if not is_sparse(features):
        return np.ldexp(np.asarray(features, dtype=np.float64), power)
    scaled = features.astype(np.float64)
    scaled.data = np.ldexp(scaled.data, power)
    return scaled


@dataclass(frozen=True, slots=True, eq=False)
class _PairSearch:
    """Nearest neighbours by comparing all pairs of rows."""

    rows: Floats  # (n, d) z, the rows minus their mean
    transposed: Floats  # (d, n)
    half: Floats  # (n,) |z|^2 / 2
    k: int

    @classmethod
    def from_rows(cls, rows: Floats, k: int) -> _PairSearch:
        half = 0.5 * np.einsum("ij,ij->i", rows, rows)
        return cls(rows, np.ascontiguousarray(rows.T), half, k)

    def nearest(self, lo: int) -> Places:
        """Return the (t, k) neighbours of the t rows of the tile that starts at row `lo`."""
        hi = min(lo + _DISTANCE_ROWS, len(self.rows))
        v = np.dot(self.rows[lo:hi], self.transposed)
        np.subtract(self.half, v, out=v)
        tile = np.arange(hi - lo)
        v[tile, lo + tile] = np.inf  # no row is its own neighbour
        row, other = np.divmod(np.flatnonzero(v <= self._bound(v, lo, hi)[:, None]), len(self.rows))
        exact = np.square(self.rows[lo + row] - self.rows[other]).sum(axis=1)
        order = np.lexsort((other, exact, row))
        count = np.bincount(row, minlength=hi - lo)
        first = np.cumsum(count) - count
        return np.asarray(other[order[first[:, None] + np.arange(self.k)]])

    def _bound(self, v: Floats, lo: int, hi: int) -> Floats:
        """Return an upper bound on the k-th smallest number in each row of `v`.

        The bound includes a margin for rounding.
        """
        n, d = self.rows.shape
        minima = v
        if n >= 4 * _GROUP * (self.k + 1):
            groups = n // _GROUP
            minima = v[:, : groups * _GROUP].reshape(hi - lo, _GROUP, groups).min(axis=1)
        bound = np.partition(minima, self.k - 1, axis=1)[:, self.k - 1]
        own = 2.0 * self.half[lo:hi]
        return np.asarray(bound + 8 * (d + 2) * _EPS * (own + np.abs(2.0 * bound + own)))


_DISTANCES = 1 << 22  # distances in memory at a time

Nominal = npt.NDArray[np.intp]  # (n, q) category of each row in each nominal column


def mixed_neighbours(
    numbers: Floats, nominal: Nominal, k: int, label: object, *, threads: int = 1
) -> Places:
    """Return the (n, k) nearest neighbours in one class, by numeric and nominal columns (SMOTE-NC).

    The arguments are those of `nearest_neighbours`, and the nominal columns.
    """
    numbers = scale_to_unit(numbers)
    sd = float(np.median(numbers.std(axis=0)))
    dummies = [(column[:, None] == np.unique(column)) * (sd / np.sqrt(2.0)) for column in nominal.T]
    rows = np.hstack([numbers - numbers.mean(axis=0), *dummies])
    return nearest_neighbours(rows, k, label, threads=threads)


def value_differences(nominal: Nominal, codes: Codes, classes: int) -> list[Floats]:
    """Return, for each nominal column, a (C, C) matrix of delta^2 between its C categories."""
    differences = []
    for column in nominal.T:
        share = np.zeros((int(column.max()) + 1, classes))
        np.add.at(share, (column, codes), 1.0)
        share /= np.maximum(share.sum(axis=1, keepdims=True), 1.0)
        delta = np.abs(share[:, None, :] - share[None, :, :]).sum(axis=2)
        differences.append(delta**2)
    return differences


def nominal_neighbours(
    nominal: Nominal, differences: list[Floats], k: int, label: object
) -> Places:
    """Return the (n, k) nearest neighbours in one class, by nominal columns only (SMOTE-N).

    `differences` is the result of `value_differences`.
    """
    n = len(nominal)
    if n <= k:
        raise ResamplingError.of_neighbours(label, n, k)
    neighbours = np.empty((n, k), dtype=np.intp)
    size = max(_DISTANCES // n, 1)
    for lo in range(0, n, size):
        rows = np.arange(lo, min(lo + size, n))
        distances = np.zeros((len(rows), n))
        for column, difference in zip(nominal.T, differences, strict=True):
            distances += difference[column[rows]][:, column]
        distances[np.arange(len(rows)), rows] = np.inf
        neighbours[rows] = np.argpartition(distances, k - 1, axis=1)[:, :k]
    return neighbours


def vote_categories(
    nominal: Nominal, voters: Places, start: Places, random: np.random.RandomState
) -> Nominal:
    """Return the (m, q) categories of synthetic rows; ties are broken at random.

    Parameters
    ----------
    nominal
        (n, q) categories of the rows of the class.
    voters
        (n, v) row numbers: for each row of the class, the rows that vote on the category of the
        synthetic rows that start at it.
    start
        (m,) row of the class from which each synthetic row starts.
    """
    categories = np.empty((len(start), nominal.shape[1]), dtype=np.intp)
    n, rows = len(voters), np.arange(len(voters))[:, None]
    for j, column in enumerate(nominal.T):
        votes = np.zeros((n, int(column.max()) + 1))
        np.add.at(votes, (rows, column[voters]), 1.0)
        total = random.uniform(high=0.5, size=(len(start), votes.shape[1]))
        total += votes[start]
        categories[:, j] = total.argmax(axis=1)
    return categories


_TILE = 1 << 16  # values of synthetic rows computed at a time, which fit into the cache


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Positions of m synthetic rows, each on the segment between two rows of the class."""

    start: Places  # (m,) number of a row of the class
    end: Places  # (m,) number of one of its neighbours
    step: Floats  # (m,) share of the distance from start to end, in [0, 1)


def draw_segments(neighbours: Places, count: int, random: np.random.RandomState) -> Segments:
    """Sample `count` segments; every pair (row, neighbour) is equally likely."""
    k = neighbours.shape[1]
    pair = random.randint(0, neighbours.size, size=count)
    step = random.uniform(size=count)
    return Segments(pair // k, neighbours.ravel()[pair], step)


def interpolate(
    features: Features, segments: Segments, out: npt.NDArray[Any] | None = None
) -> Features:
    """Return the (m, d) synthetic rows. If `out` is given, dense rows are written into it."""
    if is_sparse(features):
        start = features[segments.start]
        difference = features[segments.end] - start
        return start + difference.multiply(segments.step[:, None]).tocsr()
    if out is None:
        out = np.empty((len(segments.step), features.shape[1]), dtype=features.dtype)
    step = segments.step.astype(out.dtype, copy=False)
    size = max(_TILE // features.shape[1], 64)
    for lo in range(0, len(step), size):
        part = slice(lo, lo + size)
        start = features.take(segments.start[part], axis=0)
        difference = features.take(segments.end[part], axis=0)
        difference -= start
        difference *= step[part, None]
        np.add(start, difference, out=out[part])
    return out


def expected_moments(
    like: ClassMoments, code: int, offsets: Floats, neighbours: Places, count: int
) -> ClassMoments:
    """Return the expected moments of `count` synthetic rows of one class.

    Parameters
    ----------
    like
        Moments that determine labels, features, anchor and detail of the result.
    code
        Code of the class of the rows.
    offsets
        (n, d) offsets of the rows of the class from the anchor of `like`.
    neighbours
        (n, k) numbers of the nearest neighbours of each row.
    count
        Number of synthetic rows.
    """
    n, k = neighbours.shape
    centre = offsets.mean(axis=0)
    z = offsets - centre
    one_plus_c = 1.0 + np.bincount(neighbours.ravel(), minlength=n) / k
    a = z[neighbours[:, 0]]
    for column in neighbours.T[1:]:
        a += z[column]
    a /= k
    mean = one_plus_c @ z / (2 * n)
    degrees = count * (1.0 - 1.0 / (n + count))
    moments = ClassMoments.empty(like.labels, like.features, detail=like.detail, anchor=like.anchor)
    moments.rows[code], moments.weight[code], moments.weight2[code] = count, count, count
    moments.mean[code] = centre + mean
    if like.detail == "diagonal":
        square = (2.0 * one_plus_c @ z**2 + 2.0 * np.einsum("ij,ij->j", z, a)) / (6 * n) - mean**2
        moments.scatter[code] = degrees * square
        return moments
    cross = z.T @ a
    square = (2.0 * (z * one_plus_c[:, None]).T @ z + cross + cross.T) / (6 * n)
    scatter = moments.scatter if like.detail == "pooled" else moments.scatter[code]
    scatter[...] = degrees * (square - mean[:, None] * mean)
    return moments


@dataclass(frozen=True, slots=True, eq=False)
class ClassAmongAll:
    """Rows of one class within the rows of all classes, for ADASYN and borderline-SMOTE.

    Both methods use the neighbours of a row of the rare class among the rows of all classes, and
    add synthetic rows on segments, as SMOTE does. With D_i the share of other classes among the k
    nearest neighbours of row i:

        ADASYN (He, Bai, Garcia and Li 2008)
            round(r D_i / sum D) of the r synthetic rows start at row i, and end at one of its k
            nearest neighbours in the class, chosen at random. The number of rows may differ from r
            by rounding.

        borderline-SMOTE (Han, Wang and Mao 2005)
            A row is in danger if at least half, but not all, of its m nearest neighbours belong to
            other classes. Synthetic rows start at rows in danger.
            borderline-1    they end at one of the k nearest neighbours in the class
            borderline-2    they end at one of the k nearest neighbours of any class; if the
                            neighbour is of another class, the step is at most half of the segment

    Neighbours, counts and, with the same `RandomState`, the random numbers are those of
    imbalanced-learn.
    """

    features: Features  # (N, d)
    codes: Codes  # (N,)
    code: int
    label: object
    rows: Places  # (n,) numbers of the rows of the class

    @classmethod
    def of(cls, features: Features, codes: Codes, code: int, label: object) -> ClassAmongAll:
        """Return the rows of class `code`, scaled so that no square overflows."""
        features = scale_to_unit(features)
        if not is_sparse(features):
            features = scale_to_unit(features - features.mean(axis=0))
        return cls(features, codes, code, label, np.flatnonzero(codes == code))

    def other_shares(self, k: int) -> Floats:
        """Return the share of other classes among the k nearest neighbours of each row (n,)."""
        near = self._neighbours(self.rows, np.arange(len(self.codes)), k)
        return np.asarray((self.codes[near] != self.code).mean(axis=1))

    def in_danger(self, m: int) -> Places:
        """Return the numbers of the rows that are in danger."""
        share = self.other_shares(m)
        return np.asarray(self.rows[(share >= 0.5) & (share < 1.0)])

    def adasyn_counts(self, count: int, k: int) -> Places:
        """Return the number of synthetic rows that start at each row (n,)."""
        share = self.other_shares(k)
        if not share.any():
            raise ResamplingError.no_other_neighbours(self.label, k)
        return np.asarray(np.rint(share / share.sum() * count).astype(np.intp))

    def adasyn(self, count: int, k: int, random: np.random.RandomState) -> Segments:
        """Return about `count` segments between rows of the class."""
        counts = self.adasyn_counts(count, k)
        start = np.repeat(np.arange(len(self.rows)), counts)
        near = self._neighbours(self.rows, self.rows, k)
        column = random.choice(k, size=len(start))
        step = random.uniform(size=len(start))
        return Segments(self.rows[start], near[start, column], step)

    def borderline(
        self, count: int, k: int, m: int, random: np.random.RandomState, *, any_class: bool
    ) -> Segments:
        """Return `count` segments that start at rows in danger."""
        danger = self.in_danger(m)
        if not len(danger):
            raise ResamplingError.no_danger(self.label, m)
        near = self._neighbours(danger, np.arange(len(self.codes)) if any_class else self.rows, k)
        pair = random.randint(0, near.size, size=count)
        step = random.uniform(size=count)
        end = near.ravel()[pair]
        segments = Segments(danger[pair // k], end, step)
        if not any_class:
            return segments
        foreign = self.codes[end] != self.code
        step[foreign] *= random.uniform(0.0, 0.5, size=int(foreign.sum()))
        return replace(segments, step=step)

    def _neighbours(self, rows: Places, among: Places, k: int) -> Places:
        """Return the (n, k) nearest neighbours of some rows; a row is not its own neighbour."""
        from sklearn.neighbors import NearestNeighbors

        if len(among) <= k:
            raise ResamplingError.of_neighbours(self.label, len(among), k)
        sparse = is_sparse(self.features)
        algorithm = "brute" if sparse or self.features.shape[1] > 15 else "kd_tree"
        search = NearestNeighbors(n_neighbors=k + 1, algorithm=algorithm).fit(self.features[among])
        near = among[search.kneighbors(self.features[rows], return_distance=False)]
        own = near == rows[:, None]
        own[:, -1] |= ~own.any(axis=1)  # the row may not be among many equal ones
        return np.asarray(near[~own].reshape(len(rows), k))


def gaussian_rows(
    features: Floats, count: int, label: object, random: np.random.RandomState
) -> Floats:
    """Sample `count` rows from the Gaussian with the mean and covariance of the rows (n, d).

    With the mean c of the n rows of a class, and their centred rows Z = U S V',

        s = c + V S g / sqrt(n - 1),    g ~ N(0, I)

    has the mean and the covariance of the class, even if there are more features than rows. If r
    such rows are added to n rows with scatter S, the expected scatter of all m = n + r rows about
    their mean is

        S (1 + (r - 1 + n / m) / (n - 1))

    The expected scatter of the r rows about their mean is (r - 1) S / (n - 1). The distance of
    their mean from c adds n r / m times the covariance of this mean, S / (n - 1) / r.
    """
    n = len(features)
    if n < 2:
        raise ResamplingError.of_gaussian(label, n)
    mean = features.mean(axis=0, dtype=np.float64)
    _, singular, directions = np.linalg.svd(features - mean, full_matrices=False)
    normal = random.standard_normal((count, len(singular)))
    return np.asarray(mean + (normal * (singular / np.sqrt(n - 1.0))) @ directions)
