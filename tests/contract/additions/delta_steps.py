"""The delta rule of Widrow and Hoff over all rows: W += rate mean of (target - W u) u'."""

from __future__ import annotations

import numpy as np

from discriminant.table.blocks import Floats


def delta_steps(rows: Floats, targets: Floats, weight: Floats, *, passes: int) -> Floats:
    """(K, d + 1) weights after some passes over rows (n, d) with targets (n, K)."""
    augmented = np.column_stack([rows, np.ones(len(rows))])
    share = weight / weight.sum()
    rate = 1.0 / (share @ (augmented**2).sum(axis=1))
    weights = np.zeros((targets.shape[1], augmented.shape[1]))
    for _ in range(passes):
        weights += rate * ((targets - augmented @ weights.T) * share[:, None]).T @ augmented
    return weights
