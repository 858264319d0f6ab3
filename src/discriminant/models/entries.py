"""Sparse rows as compiled loops take them."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_entries(rows: Any) -> Any:
    """CSR of float32 or float64 with 32-bit indices, each cell once; what fits is not copied."""
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    kind = rows.dtype if rows.dtype.char in "fd" else np.dtype(np.float64)
    if rows.indices.dtype == np.int32 and rows.indptr.dtype == np.int32 and rows.dtype == kind:
        return rows
    return type(rows)(
        (
            rows.data.astype(kind, copy=False),
            rows.indices.astype(np.int32, copy=False),
            rows.indptr.astype(np.int32 if rows.nnz < 1 << 31 else np.int64, copy=False),
        ),
        shape=rows.shape,
    )


def places_of(rows: Any) -> Any:
    """Columns of the entries as unsigned numbers: loops need not ask whether they are negative."""
    return rows.indices.view(np.uint32)
