"""Row numbers: a column of k, k+1, k+2 and so on is a position, not a feature.

    rows in memory    whole numbers that go up by one from row to row
    rows in parts     they do so in every part, and the parts, put in order, go on from one another
    some rows         whole numbers, all different: whatever lies between them, they may count rows
    sums of columns   whole numbers, all different, from k to k + rows - 1, for there is no order

A few rows may well be numbered by a measurement.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[Any]
Runs: TypeAlias = tuple[tuple[float, float], ...]  # first and last of each; integers stay exact

FEW = 20  # rows below which 1, 2, 3, ... may well be a measurement


def run_of(values: Numbers) -> Runs | None:
    """First and last of numbers that count their rows, else None.

    >>> run_of(np.array([3.0, 4.0, 5.0])), run_of(np.array([3.0, 5.0])), run_of(np.array([0.5]))
    (((3.0, 5.0),), None, None)
    """
    first, last, rows = values[0].item(), values[-1].item(), len(values)
    if not float(first).is_integer() or last - first != rows - 1:
        return None
    counting = bool((np.diff(values) == 1).all())
    return ((first, last),) if counting else None


def joined_runs(left: Runs | None, right: Runs | None) -> Runs | None:
    """Runs of two sets of rows; those that go on from one another are one. None if they overlap.

    >>> joined_runs(((1.0, 4.0), (9.0, 9.0)), ((5.0, 8.0),))
    ((1.0, 9.0),)
    """
    if left is None or right is None:
        return None
    found: list[tuple[float, float]] = []
    for first, last in sorted((*left, *right)):
        if found and first <= found[-1][1]:
            return None
        if found and first == found[-1][1] + 1:
            first = found.pop()[0]
        found.append((first, last))
    return tuple(found)


def counts_rows(runs: Runs | None, rows: int) -> bool:
    """Whether all rows are one run."""
    return runs is not None and len(runs) == 1 and rows >= FEW


def may_count(values: Numbers) -> bool:
    """Whether some rows of a column leave it open that it counts all of them.

    >>> may_count(np.arange(5, 500, 7)), may_count(np.arange(5, 500, 7) / 2), may_count(np.ones(30))
    (True, False, False)
    """
    if len(values) < FEW:
        return False
    return _differ(values[:FEW]) and _differ(values)  # mostly the first few show that it does not


def _differ(values: Numbers) -> bool:
    """Whether numbers are whole and all different."""
    whole = values.dtype.kind != "f" or bool((np.floor(values) == values).all())
    return whole and len(np.unique(values)) == len(values)
