"""Rows with columns of several kinds: opened on their way in, features on their way to a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from discriminant.errors import ShapeError, WeightError
from discriminant.estimators.base import Rows
from discriminant.table.cells import Cells, Frame
from discriminant.table.encoding import Encoded as EncodedRows, Encoding
from discriminant.table.opening import is_path, read_frame
from discriminant.table.schema import Features, dense, is_sparse, numbered
from discriminant.table.source import open_features


def has_columns(X: Any) -> bool:
    """Whether rows come with columns that may be of several kinds."""
    if isinstance(X, np.ndarray) or is_sparse(X) or isinstance(X, list | tuple):
        return False
    known = hasattr(X, "columns") and hasattr(X, "shape")
    stream = hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")
    return is_path(X) or isinstance(X, Frame) or known or hasattr(X, "column_names") or stream


def opened(X: Any) -> Any:
    """Rows of any kind as a frame, or as columns."""
    if is_path(X):
        return read_frame(X)[0]
    if has_columns(X):
        return X
    features, _ = open_features(X)
    if not features.shape[0]:
        raise ShapeError.no_rows(0)
    if not features.shape[1]:
        raise ShapeError.no_features(features.shape[0])
    return array_cells(features, numbered(features.shape[1]))


def array_cells(features: Features, names: Sequence[str]) -> Frame:
    """The columns of an array, under names that are not the user's."""
    rows = dense(features[:] if not is_sparse(features) else features)
    cells = tuple(Cells(name, "number", rows[:, j]) for j, name in enumerate(names))
    return Frame(cells, len(rows), named=False)


def count_rows(X: Any) -> int:
    """How many rows there are."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def features_for(model: Any, rows: EncodedRows, encoding: Encoding) -> Any:
    """Features as the classifier takes them: ours with their names, others as an array."""
    if not (isinstance(model, Rows) and encoding.named):
        return rows.matrix()
    import pyarrow as pa

    return pa.table(dict(zip(encoding.features, rows.features.columns, strict=True)))


def fit_weighed(model: Any, X: Any, y: Any, weight: Any) -> None:
    """Fit a classifier that may take no weights."""
    if weight is None:
        model.fit(X, y)
    elif has_fit_parameter(model, "sample_weight"):
        model.fit(X, y, sample_weight=weight)
    else:
        raise WeightError.not_taken(type(model).__name__)
