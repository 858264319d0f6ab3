"""Fit estimators to partitioned tables: `fit(rows)`, without y, with `rows` of `discriminant.rows`.

Such rows know their own labels and weights. A model that is made by folds reads them where they
are. One that must have rows at hand gets them if they are few (`rows.drawn` holds them all), and
else says so.

A model fitted that way knows the features that columns became: `predict` takes frames that have
these, by name. `Encoded(model).fit(rows)` takes tables such as the one read, categories and all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.engines.parted import Parted, alone, in_memory
from discriminant.table.schema import dense


def parted(X: Any, y: Any = None, weight: Any = None) -> Parted | None:
    """Rows in parts, if these are such; None: they are not."""
    if not isinstance(X, Parted):
        return None
    alone(y, weight)
    return X


def at_hand(X: Any, y: Any, weight: Any, who: str) -> tuple[Any, Any, Any]:
    """Rows, labels and weights as they are; of rows in parts as frame and arrays, if they are few.

    Raises NeedsMemoryError of many rows in parts.
    """
    found = parted(X, y, weight)
    if found is None:
        return X, y, weight
    import pyarrow as pa

    table = in_memory(found, who)
    columns = np.asarray(dense(table.features)).T
    names = table.schema.features
    frame = pa.table({n: np.ascontiguousarray(c) for n, c in zip(names, columns, strict=True)})
    return frame, table.schema.labels[table.codes], table.weight
