"""What rows drawn at random have for moments, in the mean over all draws: no row is drawn.

Of the n rows of a class, with mean c and scatter S about it, m are to be there.

    under   m of them, without replacement              E scatter = S (m - 1) / (n - 1)
    over    all, and m - n of them with replacement     E scatter = S (m - (m - n) / m) / n

and in both the mean is c in the mean. For the variance of a sample, over m - 1, has the mean of
that of the whole, over n - 1; and with row i drawn t_i times, z_i = x_i - c, the scatter is

    sum (1 + t_i) z_i z_i' - (sum t_i z_i)(sum t_i z_i)' / m

whose parts have the means S m / n and S (m - n) / (n m). Rows of weight m / n each would have the
scatter S m / n, more than any draw has in the mean. What is not linear in the moments, as slopes
are not, is that of the mean moments, not the mean of those of the draws.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discriminant.errors import MomentsMismatchError, ResamplingError
from discriminant.imbalance.drawing import Method, Target
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.removal import times
from discriminant.table.schema import Floats, Places


def scatter_shares(count: Places, target: Target, method: Method) -> Floats:
    """(K,) how much of the scatter of each class is left, or how often it comes.

    >>> scatter_shares(np.array([9, 3]), Target(np.array([3, 3]), None), "under").tolist()
    [0.25, 1.0]
    >>> scatter_shares(np.array([9, 3]), Target(np.array([9, 9]), None), "over").round(3).tolist()
    [1.0, 2.778]
    """
    n, m = count.astype(np.float64), target.wanted.astype(np.float64)
    if method == "under":
        return np.where(m == n, 1.0, (m - 1.0) / np.maximum(n - 1.0, 1.0))
    return np.asarray((m - (m - n) / m) / n)


def drawn_in_the_mean(moments: ClassMoments, target: Target, method: Method) -> ClassMoments:
    """Mean moments of draws, from those of all rows, of weight 1 each."""
    unweighted = (moments.weight == moments.rows) & (moments.weight2 == moments.rows)
    for k in np.flatnonzero(~unweighted):
        raise ResamplingError.of_weighted_moments(
            moments.labels[k], int(moments.rows[k]), float(moments.weight[k])
        )
    share = scatter_shares(moments.rows, target, method)
    if moments.detail == "pooled":
        raise MomentsMismatchError.needs_detail("Drawing rows of each class", "class", "pooled")
    if moments.detail == "fourth":
        moments = moments.reduce("class")
    scaled = replace(
        moments, scatter=times(share, moments.scatter), lost=times(share, moments.lost)
    )
    return with_rows(scaled, target)


def with_rows(moments: ClassMoments, target: Target) -> ClassMoments:
    """The same means and scatters, said to be of the rows wanted."""
    rows = target.wanted
    weight = rows.astype(np.float64)
    return replace(moments, rows=rows.astype(np.int64), weight=weight, weight2=weight)
