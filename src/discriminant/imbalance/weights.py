"""How much a row of each class should count, from how many there are.

With n_k the rows (or their weight) of class k of K, and n of all,

    balanced    n / (K n_k)                    all weigh the same, together as before
    inverse     ~ 1 / n_k                      the same ratios, scaled so that the mean over k is 1
    effective   ~ (1 - beta) / (1 - beta^n_k)  likewise scaled; Cui, Jia, Lin, Song and Belongie
                                               (2019): the inverse of the effective number of rows

`effective` goes from no weights (beta = 0) to `inverse` (beta -> 1). Whoever fits multiplies the
weight of every row, or the moments of every class, which is the same: `ClassMoments.scale`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from discriminant.errors import ClassWeightError, OptionError
from discriminant.moments.naming import per_class
from discriminant.table.schema import Floats, Labels


def class_weights(count: Floats, labels: Labels, kind: Any, *, beta: float = 0.999) -> Floats:
    """(K,) what to multiply the weight of each row of a class by.

    Parameters
    ----------
    count
        (K,) rows of each class, or the sum of their weights; positive.
    kind
        'balanced', 'inverse', 'effective', {label: weight} (1 where not named), or (K,) weights.
    beta
        Of 'effective', from 0 to below 1.

    Examples
    --------
    >>> count, labels = np.array([90.0, 10.0]), np.array(["common", "rare"])
    >>> class_weights(count, labels, "balanced").round(3).tolist()
    [0.556, 5.0]
    >>> class_weights(count, labels, "inverse").round(3).tolist()
    [0.2, 1.8]
    """
    if not isinstance(kind, str):
        return _given(labels, kind)
    if kind == "balanced":
        return np.asarray(count.sum() / (len(count) * count))
    if kind == "inverse":
        return _mean_one(1.0 / count)
    if kind != "effective":
        allowed = "'balanced', 'inverse', 'effective', {label: weight} or one weight a class"
        raise OptionError.of("weights", kind, allowed)
    number = isinstance(beta, int | float | np.number) and not isinstance(beta, bool)
    if not number or not 0 <= beta < 1:
        raise OptionError.of("beta", beta, "from 0 (no weights) to below 1 ('inverse')")
    with np.errstate(divide="ignore"):
        return _mean_one(-1.0 / np.expm1(count * np.log(beta)))


def _mean_one(weight: Floats) -> Floats:
    return np.asarray(weight * (len(weight) / weight.sum()))


def _given(labels: Labels, kind: Any) -> Floats:
    if not isinstance(kind, Mapping) and np.asarray(kind).dtype.kind not in "iuf":
        allowed = "'balanced', 'inverse', 'effective', {label: weight} or one weight a class"
        raise OptionError.of("weights", kind, allowed)
    found = per_class(labels, kind, option="weights")
    for k in np.flatnonzero(found == 0):
        raise ClassWeightError.of_class(labels[k], 0.0)
    return found
