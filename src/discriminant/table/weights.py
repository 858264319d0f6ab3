"""Weights of rows at the door: numbers, one for each row, none negative, not all zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.errors import ShapeError, WeightError
from discriminant.table.schema import Floats


def open_weight(weight: Any, rows: int, *, some: bool = True, start: int = 0) -> Floats | None:
    """Weights as float64, each finite and not negative; None stays None.

    They may all be 0 where `some` need not count: in a part of the rows, which begins at `start`.
    """
    if weight is None:
        return None
    try:
        found = np.array(weight, dtype=np.float64)
    except (TypeError, ValueError):
        kind = np.asarray(weight, dtype=object).ravel()[:1]
        raise WeightError.not_numbers(f"a {type(kind[0]).__name__}") from None
    if found.ndim == 0:
        found = np.full(rows, float(found))
    if found.ndim != 1:
        raise WeightError.wrong_shape(found.shape, rows)
    if len(found) != rows:
        raise ShapeError.of_lengths("sample_weight", len(found), rows)
    if not np.isfinite(found).all():
        row = int(np.argmin(np.isfinite(found)))
        raise WeightError.not_finite(start + row, float(found[row]))
    if (found < 0).any():
        row = int(np.argmax(found < 0))
        raise WeightError.negative(start + row, float(found[row]))
    if some and not found.any():
        raise WeightError.all_zero()
    return found
