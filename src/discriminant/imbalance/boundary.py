"""Synthetic rows near the class boundary: ADASYN and borderline-SMOTE.

Both methods look at the neighbours of a row of the rare class among the rows of all classes, and
add synthetic rows on segments, as SMOTE does (`imbalance.smote`). With D_i the share of other
classes among the k nearest neighbours of row i:

    ADASYN (He, Bai, Garcia and Li 2008)
        round(r D_i / sum D) of the r synthetic rows start at row i, and end at a random one of its
        k nearest neighbours in the class. The number of rows may differ from r by rounding.

    borderline-SMOTE (Han, Wang and Mao 2005)
        A row is in danger if at least half, but not all, of its m nearest neighbours belong to
        other classes. Synthetic rows start at rows in danger.
        borderline-1    they end at one of the k nearest neighbours in the class
        borderline-2    they end at one of the k nearest neighbours of any class; if it belongs to
                        another class, the step is at most half of the segment

Neighbours, counts and, with the same `RandomState`, the random numbers are those of
imbalanced-learn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discriminant.errors import ResamplingError
from discriminant.imbalance.smote import Segments, scale_to_unit
from discriminant.table.blocks import Codes, Features, Floats, Places, is_sparse


@dataclass(frozen=True, slots=True, eq=False)
class ClassAmongAll:
    """Rows of one class, within the rows of all classes."""

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
        own[:, -1] |= ~own.any(axis=1)  # of many equal rows, the row itself may not be among them
        return np.asarray(near[~own].reshape(len(rows), k))
