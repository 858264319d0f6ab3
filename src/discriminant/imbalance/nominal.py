"""SMOTE where columns are categories: how far apart rows are, and what category a new row has.

Beside numbers (SMOTE-NC, Chawla et al. 2002, section 6.1) a differing category is as far as the
median over the numeric columns of their standard deviations in the class. Without numbers
(SMOTE-N, section 6.2) categories v, w of a column are as far apart as the classes of their rows,

    delta(v, w) = sum_c |P(c|v) - P(c|w)|,    distance^2 = sum over columns of delta^2

(the value difference metric of Cost and Salzberg). A synthetic row has the category that most of
the k neighbours of its row have, and in SMOTE-N the row itself votes too; ties go by chance.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discriminant.errors import ResamplingError
from discriminant.imbalance.neighbours import in_unit, neighbours_of
from discriminant.table.schema import Codes, Floats, Places

_TILE = 1 << 22  # distances held at a time

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
    size = max(_TILE // n, 1)
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
