"""A loop that looks at the rows of a CSR matrix once: loops that search them check nothing.

This file imports Numba, and is itself imported when rows are about to be looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.moments.compiling import compiled

SOUND, POINTERS, SHORT, COLUMNS, NUMBERS = 0, 1, 2, 3, 4  # what may be wrong


@compiled
def fault_of(starts: Any, places: Any, values: Any, size: int, n: int, width: int) -> int:
    """What is wrong with (n, width) rows of `size` values, of which some may be looked at."""
    if len(starts) != n + 1 or starts[0] != 0:
        return POINTERS
    for i in range(n):
        if starts[i + 1] < starts[i]:
            return POINTERS
    if starts[n] > len(places) or starts[n] > size:
        return SHORT
    for place in places[: starts[n]]:
        if place < 0 or place >= width:
            return COLUMNS
    for value in values[: starts[n]]:
        if not np.isfinite(value):
            return NUMBERS
    return SOUND
