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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.moments.class_moments import ClassMoments
from discriminant.table.schema import Features, Floats, Places, is_sparse

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
