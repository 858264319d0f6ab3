"""Sums of the losses of many models, from how far the wrong classes are ahead of the true one.

    t_k = score_k - score_true       wrong: some t_k > 0       log loss: log(1 + sum_k exp t_k)

Of equal scores the first class is taken. Logs are taken of products of as many rows as cannot
overflow: sum log z = log prod z.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from discriminant.table.schema import Floats

Sums = Callable[[Iterable[Floats], int, Floats | None], Floats]
_RANGE = 600.0  # logs up to which a product of doubles is a double
_SMALL = 80.0  # t up to which exp t is summed as it is


def error_sums(ahead: Iterable[Floats], code: int, weight: Floats | None) -> Floats:
    """(m,) weight of the rows of class `code` gone wrong; of each other class (m, n)."""
    wrong = None
    for k, one in enumerate(ahead):
        over = one >= 0.0 if k < code else one > 0.0
        wrong = over if wrong is None else np.logical_or(wrong, over, out=wrong)
    assert wrong is not None
    if weight is None:
        return np.asarray(wrong.sum(axis=1, dtype=np.float64))
    return np.asarray(np.dot(wrong.astype(np.float64), weight))


def log_loss_sums(ahead: Iterable[Floats], code: int, weight: Floats | None) -> Floats:
    """(m,) log loss of the rows of class `code`; what is handed in is used up."""
    each = list(ahead)
    largest = max(0.0, *(float(one.max(initial=0.0)) for one in each))
    top = None if largest < _SMALL else _largest(each)
    total = np.ones(1) if top is None else np.exp(-top)
    for one in each:
        if top is not None:
            one -= top
        total = np.add(total, np.exp(one, out=one), out=one)
    if weight is not None:
        sums = np.dot(np.log(total), weight)
        return np.asarray(sums if top is None else sums + np.dot(top, weight))
    sums = _log_product(total, np.log(len(each) + 1) + (largest if top is None else 0.0))
    return np.asarray(sums if top is None else sums + top.sum(axis=1))


def _largest(ahead: list[Floats]) -> Floats:
    """(m, n) the largest t_k, or zero, that of the true class."""
    top = np.maximum(ahead[0], 0.0)
    for one in ahead[1:]:
        np.maximum(top, one, out=top)
    return top


def _log_product(values: Floats, largest: float) -> Floats:
    """(m,) sum of the logs of (m, n) numbers, each log from 0 to `largest`."""
    many = 1
    while values.shape[1] > 1 and (2 * many + 1) * largest < _RANGE:
        half, odd = divmod(values.shape[1], 2)
        paired = values[:, :half] * values[:, half : 2 * half]
        if odd:
            paired[:, 0] *= values[:, -1]
        values, many = paired, 2 * many + 1
    return np.asarray(np.log(values).sum(axis=1))
