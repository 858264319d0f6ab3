"""A code designed from moments: columns that a linear rule can separate, and rows far apart.

How well a linear rule separates the two sides of a column is the squared correlation of its
indicator with its best linear prediction. With T the scatter of all rows (within and between), q
the share of the positive side, and a_k the share times the mean of class k less the centre:

    R^2(column) = n |T^-1/2 sum of a_k over the positive side|^2 / (q (1 - q))

which is one product for all columns, since T is the same for all of them. Columns are chosen one
after the other, each by the largest

    R^2(column) * sum over pairs of classes that it tells apart of 2^-(times told apart before)

so that pairs that are still near each other count most (as in boosting with output codes,
Schapire 1997). Candidates are random columns and cuts of the classes along random directions.
"""

from __future__ import annotations

import numpy as np

from discriminant.errors import CodeError
from discriminant.models.codes import (
    MOST,
    Signs,
    columns_by_lot,
    distinct,
    exhaustive,
    length_of,
    opposed,
)
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.schema import Floats

_CANDIDATES = 2000
_ALL = 10  # classes up to which every column is a candidate
_WORK = 2e9  # multiplications that choosing may take


def designed(moments: ClassMoments, columns: int | None, rng: np.random.Generator) -> Signs:
    """(K, M) a code without zeros, from moments of any detail."""
    K = len(moments.labels)
    M, all_of_them = length_of("dense", K, columns)
    axes = whitened_means(moments)
    few = K <= _ALL or all_of_them <= min(4 * M, MOST)
    tried = exhaustive(K) if few else _candidates(axes, M, rng)
    good = separability(tried, axes, moments.weight / moments.weight.sum())
    chosen = tried[:, _greedy(tried, good, M)]
    if not opposed(chosen)[np.triu_indices(K, 1)].all():
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
    spread = q * (1.0 - q)  # zero where one side has no weight: nothing is to be told there
    told = np.vecdot(away, away)
    return np.asarray(np.divide(told, spread, out=np.zeros_like(q), where=spread > 0))


def _candidates(axes: Floats, M: int, rng: np.random.Generator) -> Signs:
    K, r = axes.shape
    many = int(np.clip(_WORK / (K * K * M), M, max(_CANDIDATES, 4 * M)))
    lot = rng.choice(np.array([-1, 1], dtype=np.int8), size=(K, many))
    along = axes @ rng.standard_normal((r, many))
    cut = np.take_along_axis(np.sort(along, axis=0), rng.integers(1, K, size=(1, many)), axis=0)
    found = distinct(np.hstack([lot, np.where(along >= cut, 1, -1).astype(np.int8)]))
    if found.shape[1] >= M:
        return found
    return distinct(np.hstack([found, columns_by_lot(K, M, rng, (-1, 1))]))


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
