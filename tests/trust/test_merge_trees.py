"""However parts are merged, the sums agree (trust.md, N6): held to exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

import discriminant as dd

TREES = 1000
NEAR = 1e-13  # relative to the largest of its kind


def rows_far_away():
    rng = np.random.default_rng(6)
    code = rng.integers(0, 3, 640)
    return 1000.0 + rng.normal(size=(640, 3)) * [1.0, 30.0, 0.01], code


def exact_scatter(X, code):
    """(K, d) means and (d, d) scatter within classes, by whole numbers."""
    means = np.empty((3, 3))
    scatter = [[Fraction(0)] * 3 for _ in range(3)]
    for k in range(3):
        rows = [[Fraction(value) for value in row] for row in X[code == k].tolist()]
        mean = [sum(column, Fraction(0)) / len(rows) for column in zip(*rows, strict=True)]
        means[k] = [float(value) for value in mean]
        for row in rows:
            off = [value - centre for value, centre in zip(row, mean, strict=True)]
            for i in range(3):
                for j in range(3):
                    scatter[i][j] += off[i] * off[j]
    return means, np.array([[float(value) for value in line] for line in scatter])


def merged_in_some_order(parts, rng):
    """Two at random become one, until one is left."""
    left = list(parts)
    while len(left) > 1:
        one = left.pop(rng.integers(len(left)))
        other = left.pop(rng.integers(len(left)))
        left.append(one + other)
    return left[0]


@pytest.fixture(scope="module")
def parts_of():
    """Moments of 1 to 64 parts of the same rows, cut anywhere; each part knows all classes."""
    X, code = rows_far_away()
    rng = np.random.default_rng(7)
    found = {}
    for workers in (1, 2, 3, 5, 8, 13, 21, 34, 55, 64):
        place = rng.permutation(np.arange(len(X)) % workers)
        found[workers] = [
            dd.moments(X[place == part], code[place == part]) for part in range(workers)
        ]
    return found


def test_a_thousand_merge_trees_of_up_to_64_parts_agree_with_exact_sums(parts_of):
    means, scatter = exact_scatter(*rows_far_away())
    spread = np.sqrt(np.diag(scatter))  # columns have units of their own
    rng = np.random.default_rng(8)
    worst = 0.0
    for tree in range(TREES):
        parts = parts_of[(1, 2, 3, 5, 8, 13, 21, 34, 55, 64)[tree % 10]]
        found = merged_in_some_order(parts, rng)
        assert found.rows.sum() == 640
        apart = np.abs(found.within() - scatter) / (spread[:, None] * spread)
        worst = max(worst, apart.max(), (np.abs(found.means - means) / np.abs(means)).max())
    assert worst <= NEAR, f"{worst:.1e}"
