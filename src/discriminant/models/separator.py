"""Whether any linear rule separates classes, proved by a linear programme (small tables only).

    maximise gamma   with   w_t.z - w_k.z >= gamma   for every row z of class t and every k != t,
                            all |w| <= 1,  gamma <= 1

w = 0 is always possible, so gamma >= 0; the classes are separable if and only if gamma > 0. The
programme is solved to 1e-7 or so: a gap between classes that is much narrower than that, in
units of the spread of the rows, counts as none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from discriminant.table.schema import Codes, Floats

_ENTRIES = (
    200_000  # of the constraints; beyond, the programme takes longer than the answer is worth
)
_NONE = 1e-8


def is_small(rows: int, width: int, classes: int) -> bool:
    """Whether the programme is quick."""
    return rows * (classes - 1) * 2 * (width + 1) <= _ENTRIES


def is_separable(z: Floats, codes: Codes, *, classes: int, one: float = 1.0) -> bool | None:
    """Whether rows z (n, d) are separable; None if the programme does not say."""
    from scipy.optimize import linprog

    rows = np.hstack([z, np.full((len(z), 1), one)])
    wide = classes * rows.shape[1]
    limits = _constraints(rows, codes, classes)
    goal = np.zeros(wide + 1)
    goal[-1] = -1.0
    bounds = [(-1.0, 1.0)] * wide + [(None, 1.0)]
    found = linprog(goal, A_ub=limits, b_ub=np.zeros(limits.shape[0]), bounds=bounds)
    return None if found.fun is None else bool(found.fun < -_NONE)


def _constraints(rows: Floats, codes: Codes, classes: int) -> Any:
    """gamma + w_k.z - w_t.z <= 0, one line for each row and other class."""
    d = rows.shape[1]
    line, other = np.nonzero(np.arange(classes) != codes[:, None])
    entries = np.hstack([-rows[line], rows[line], np.ones((len(line), 1))])
    places = np.hstack(
        [
            codes[line][:, None] * d + np.arange(d),
            other[:, None] * d + np.arange(d),
            np.full((len(line), 1), classes * d),
        ]
    )
    starts = np.arange(len(line) + 1) * (2 * d + 1)
    shape = (len(line), classes * d + 1)
    return sparse.csr_array((entries.ravel(), places.ravel(), starts), shape=shape)
