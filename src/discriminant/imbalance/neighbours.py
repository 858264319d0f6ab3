"""The nearest other rows of each row of a class.

In few columns a tree finds them (scikit-learn's); in many every pair is looked at, tile by tile.
With z = x - mean, the order of |z_i - z_j|^2 over j is that of

    v_ij = |z_j|^2 / 2 - z_i . z_j        |z_i - z_j|^2 = 2 v_ij + |z_i|^2

The k-th smallest of the minima over groups of columns bounds the k-th smallest of all; the few
pairs below it (and what rounding may add) are measured again as sums of squared differences, and
only these are sorted. So the answer has the digits of the differences, not of the products.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from discriminant.errors import ResamplingError
from discriminant.table.schema import Features, Floats, Places, is_sparse

_FEW = 15  # columns; a tree is quicker up to here
_TILE = 64  # rows measured against all others at a time
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
    starts = range(0, n, _TILE)
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
        hi = min(lo + _TILE, len(self.rows))
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
