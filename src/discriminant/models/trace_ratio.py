"""The true trace ratio: the orthonormal W (d, r) that maximises tr(W' S_b W) / tr(W' S_w W).

It is often replaced by the ratio trace tr((W' S_w W)^-1 (W' S_b W)), which has a closed form and
does not change with the units of the columns; the two agree for r = 1 only. This one has none. But

    f(t) = max over W of tr(W' (S_b - t S_w) W) = the sum of the r largest eigenvalues

falls and is convex, and the largest ratio is its zero. Newton's method on f (Dinkelbach 1967) sets
t to the ratio of the W that attains f(t): from t = 0 it climbs without a step back and ends
quadratically (Wang et al. 2007, CVPR; Jia, Nie and Zhang 2009). At the end W spans the r largest
eigenvectors of S_b - t S_w, and t is its ratio: that is the condition for the optimum.

Directions along which nothing varies at all are taken out first: they would be free to choose.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from discriminant.errors import NotConvergedWarning, tell
from discriminant.table.schema import Floats

_EPS = float(np.finfo(np.float64).eps)
_TOLERANCE = 1e-13


def best_trace_ratio(means: Floats, *, within: Floats, components: int, steps: int = 100) -> Floats:
    """(d, r) orthonormal directions of the largest trace ratio.

    Parameters
    ----------
    means
        (K, d) with means' means = S_b.
    within
        (d, d) S_w.
    components
        r; fewer come back if fewer directions vary.
    """
    basis = _varying(means.T @ means + within)
    means, within = means @ basis, basis.T @ within @ basis
    between = means.T @ means
    r = min(components, len(between))
    ratio, change = 0.0, np.inf
    for _ in range(steps):
        directions = _largest(between - ratio * within, r)
        better = _ratio(directions, between, within)
        change = abs(better - ratio) / better if better > 0 else 0.0
        ratio = max(ratio, better)
        if change <= _TOLERANCE:
            return np.asarray(basis @ directions)
    tell(NotConvergedWarning.of("The trace ratio", steps, change, _TOLERANCE))
    return np.asarray(basis @ directions)


def _varying(total: Floats) -> Floats:
    """(d, m) orthonormal directions along which rows vary."""
    values, vectors = eigh(total)
    return np.asarray(vectors[:, values > len(values) * _EPS * values[-1]])


def _largest(matrix: Floats, r: int) -> Floats:
    """(d, r) eigenvectors of the r largest eigenvalues."""
    d = len(matrix)
    return np.asarray(eigh(matrix, subset_by_index=[d - r, d - 1])[1][:, ::-1])


def _ratio(directions: Floats, between: Floats, within: Floats) -> float:
    above = np.einsum("ir,ij,jr->", directions, between, directions, optimize=True)
    below = np.einsum("ir,ij,jr->", directions, within, directions, optimize=True)
    return float(above / below)
