"""Inputs of a label tree: validated rows as CSR arrays, and labels as a sparse matrix.

Validating a single row must not take longer than the search for its labels, so a CSR matrix is
validated without being copied or rebuilt. Dense rows may be standardised, (x - centre) / scale in
float64, and rows may be scaled to unit length, x / |x|, which is useful for word counts. Labels
have one of three forms:

    one          y is a vector: one label for each row
    indicator    y is an (N, L) matrix, sparse or dense, with 1 where a row has a label
    sets         y is a list of sets (or lists) of labels

All are converted to a sparse matrix `members`, which has a 1 where a row has a label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.errors import (
    LabelError,
    LabelSetError,
    LabelTreeError,
    LongRowsWarning,
    ShapeError,
    UnlabelledRowsWarning,
    UnseenLabelsWarning,
    warn,
)
from discriminant.table.blocks import (
    Block,
    Floats,
    Labels,
    canonical_rows,
    dense,
    is_sparse,
    native_numbers,
    numbered_names,
)
from discriminant.table.labels import encode_labels

_LONG = 0.5  # a row is long if its length exceeds this number divided by the threshold
_REAL = (np.float32, np.float64)
_BLOCK = 1 << 14  # number of rows of a dense table that are processed together


class CsrArrays(NamedTuple):
    """Arrays of a CSR matrix without SciPy's checks, which take longer than a search for a row."""

    data: Any
    indices: Any
    indptr: Any
    shape: tuple[int, int]

    def to_matrix(self) -> sparse.csr_matrix:
        """Return the arrays as a SciPy matrix."""
        return sparse.csr_matrix((self.data, self.indices, self.indptr), shape=self.shape)


def column_scale(features: Any) -> Floats:
    """Return mean and scale (2, d) of each dense column.

    The scale is the standard deviation, or 1 for a constant column.
    """
    if is_sparse(features):
        raise LabelTreeError.sparse_to_standardize()
    n, unit = features.shape[0], np.zeros(features.shape[1])
    blocks = [slice(first, first + _BLOCK) for first in range(0, n, _BLOCK)]
    with np.errstate(invalid="ignore", over="ignore"):
        centre = sum(dense(features[at]).sum(axis=0) / n for at in blocks)
        for at in blocks:  # squares of numbers up to 1 do not overflow
            unit = np.maximum(unit, np.abs(dense(features[at]) - centre).max(axis=0))
        unit = np.where(unit > 0, unit, 1.0)
        square = sum((((dense(features[at]) - centre) / unit) ** 2).sum(axis=0) for at in blocks)
        std = unit * np.sqrt(square / n)
    constant = ~(std > 1e-12 * np.maximum(np.abs(centre), np.finfo(float).tiny))
    return np.array([centre, np.where(constant, 1.0, std)])


def as_csr_rows(
    features: Any,
    kind: Any,
    *,
    names: tuple[str, ...] | None = None,
    scale: Floats | None = None,
    unit: bool = False,
) -> CsrArrays:
    """Return rows (n, d) as sorted CSR arrays of type `kind`, float32 or float64.

    Raises an error if a value is NaN or infinite.
    """
    if scale is not None and is_sparse(features):
        features = features.toarray()
    if not is_sparse(features):
        features = _from_dense(features, np.float64 if unit else kind, names, scale)
    rows = features if features.format == "csr" else features.tocsr()
    if np.iscomplexobj(rows.data):
        raise LabelTreeError.invalid_sparse_rows("it holds complex numbers")
    finite = _check_structure(rows)
    checked = rows.data
    # entries are out of order, or a cell has several entries, which are added
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    # drop stored zeros: they must change neither the tree nor the order of sums
    if not rows.data.all():
        rows = rows.copy()
        rows.eliminate_zeros()
    values = _unit_length(rows.data, rows.indptr) if unit else rows.data
    if values.dtype != kind:
        with np.errstate(over="ignore"):
            values = values.astype(kind)
    if values is not checked:
        finite = finite and bool(np.isfinite(values[: rows.indptr[-1]]).all())
    if not finite:
        _raise_for_cell(rows, names)
    places, starts = native_numbers(rows.indices), native_numbers(rows.indptr)
    return CsrArrays(native_numbers(values), places[: len(values)], starts, rows.shape)


def check_magnitudes(rows: sparse.csr_matrix, *, names: tuple[str, ...] | None) -> None:
    """Raise an error if a value is so large that sums of squares in training may overflow."""
    limit = float(np.sqrt(np.finfo(rows.dtype).max) / 1e3)
    if float(np.abs(rows.data).max(initial=0.0)) > limit:
        at = int(np.argmax(np.abs(rows.data)))
        row = int(np.searchsorted(rows.indptr, at, side="right")) - 1
        column = _column_name(names, int(rows.indices[at]))
        raise LabelTreeError.squares_overflow(row, column, str(rows.dtype), limit)


def warn_long_rows(model: Any, rows: sparse.csr_matrix) -> None:
    """Warn if rows have such large norms that relevant weights would fall below the threshold."""
    if model.standardize or not model.threshold:
        return
    sample = rows[:: max(1, rows.shape[0] // 1000)].astype(np.float64)
    length = float(np.median(np.sqrt(np.asarray(sample.multiply(sample).sum(axis=1)).ravel())))
    if length * float(model.threshold) > _LONG:
        warn(LongRowsWarning.of(length, float(model.threshold)))


def _from_dense(
    features: Any, kind: Any, names: tuple[str, ...] | None, scale: Floats | None
) -> Any:
    """Convert dense rows to CSR arrays without zeros, block by block."""
    parts = []
    for first in range(0, features.shape[0], _BLOCK):
        block = dense(features[first : first + _BLOCK])
        if not np.isfinite(block).all():
            _raise_for_cell(features, names)
        if scale is not None:
            block = (block - scale[0]) / scale[1]
        with np.errstate(over="ignore"):
            converted = block.astype(kind)
        if not np.isfinite(converted).all():
            row, column = np.argwhere(~np.isfinite(converted))[0]
            raise LabelTreeError.overflows_float32(
                first + int(row), _column_name(names, int(column))
            )
        parts.append(sparse.csr_matrix(converted))
    if not parts:
        raise ShapeError.no_rows(0)
    return parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")


def _unit_length(values: Any, starts: Any) -> Any:
    """Scale each row to unit length in float64; rows of zeros are unchanged."""
    count = np.diff(starts)
    if not len(values) or not count.any():
        return values
    first, wide = starts[:-1][count > 0], values[: starts[-1]].astype(np.float64)
    largest = np.maximum.reduceat(np.abs(wide), first)
    largest[~(largest > 0)] = 1.0  # squares of numbers up to 1 do not overflow
    with np.errstate(invalid="ignore"):
        wide /= np.repeat(largest, count[count > 0])
        length = np.sqrt(np.add.reduceat(wide**2, first))
        length[~(length > 0)] = 1.0
        return wide / np.repeat(length, count[count > 0])


def _check_structure(rows: Any) -> bool:
    """Return whether all values are finite; raise an error for invalid row pointers or columns.

    Values that are neither float32 nor float64 are checked later, when they are converted.
    """
    from discriminant.extreme.model import compiled_train as loops

    n, width = rows.shape
    values = rows.data if rows.data.dtype in _REAL else np.empty(0, np.float32)
    starts, places = native_numbers(rows.indptr), native_numbers(rows.indices)
    result = loops.check_csr(starts, places, native_numbers(values), len(rows.data), n, width)
    reasons = {
        loops.BAD_POINTERS: "its row pointers do not rise from 0",
        loops.TOO_SHORT: "its row pointers lead beyond its entries",
        loops.BAD_COLUMNS: f"it has columns outside of 0 to {width - 1}",
    }
    if result in reasons:
        raise LabelTreeError.invalid_sparse_rows(reasons[result])
    return result != loops.NOT_FINITE


def _raise_for_cell(features: Any, names: tuple[str, ...] | None) -> None:
    """Raise the error for the first cell that is NaN, infinite or too large for float32."""
    block = Block(
        features if is_sparse(features) else features[:], np.zeros(features.shape[0], np.uint8)
    )
    block.raise_bad_cell(numbered_names(features.shape[1]) if names is None else names)
    cells = features.tocoo()
    at = int(np.flatnonzero(np.abs(cells.data) > np.finfo(np.float32).max)[0])
    column = _column_name(names, int(cells.col[at]))
    raise LabelTreeError.overflows_float32(int(cells.row[at]), column)


def _column_name(names: tuple[str, ...] | None, column: int) -> str:
    return f"x{column}" if names is None else names[column]


LabelKind = Literal["one", "indicator", "sets"]
_SETS = (set, frozenset, list, tuple, np.ndarray)


@dataclass(frozen=True, slots=True, eq=False)
class LabelSets:
    """Labels of N rows, with L distinct labels."""

    kind: LabelKind
    labels: Labels  # (L,) distinct labels, sorted
    members: sparse.csr_matrix  # (N, L) float32, 1 where a row has a label

    def warn_missing(self) -> None:
        """Warn if there are labels without rows or rows without labels."""
        count = np.bincount(self.members.indices, minlength=len(self.labels))
        unseen = np.flatnonzero(count == 0)
        if len(unseen):
            names = [*self.labels[unseen[:5]].tolist(), *unseen[5:].tolist()]
            warn(UnseenLabelsWarning.of(names, len(self.labels)))
        unlabelled = int((np.diff(self.members.indptr) == 0).sum())
        if unlabelled:
            warn(UnlabelledRowsWarning.of(unlabelled, self.members.shape[0]))


def as_label_sets(y: Any, *, name: str) -> LabelSets:
    """Return the label sets of y, which may have any of the three forms."""
    if y is None:
        raise LabelError.absent(name)
    if is_sparse(y):
        return _from_matrix(sparse.csr_matrix(canonical_rows(y)))
    if _are_sets(y):
        return _from_sets(y)
    if hasattr(y, "columns") and len(getattr(y, "shape", ())) == 2 and y.shape[1] > 1:
        sets = as_label_sets(np.asarray(y), name=name)  # a data frame with one column per label
        return replace(sets, labels=np.array(list(y.columns)))
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] > 1 and y.dtype.kind in "biuf":
        return _from_matrix(sparse.csr_matrix(y))
    shape = getattr(y, "shape", ())
    if len(shape) > 2 or shape[1:] == (0,):
        raise LabelSetError.of_shape(shape)
    labels, codes = encode_labels(y)
    starts = np.arange(len(codes) + 1)
    return LabelSets("one", labels, _indicator(codes, starts, len(labels)))


def _are_sets(y: Any) -> bool:
    if not isinstance(y, list | tuple):
        y = np.asarray(y)
        if y.ndim != 1 or y.dtype.kind != "O":
            return False
    return len(y) > 0 and isinstance(y[0], _SETS)


def _from_sets(y: Sequence[Any]) -> LabelSets:
    for row, labels in enumerate(y):
        if not isinstance(labels, _SETS):
            raise LabelSetError.not_a_set(row, type(labels).__name__)
    starts = np.concatenate([[0], np.cumsum([len(labels) for labels in y])])
    if not starts[-1]:
        raise LabelSetError.all_empty(len(y))
    distinct, codes = encode_labels(list(chain.from_iterable(y)))
    return LabelSets("sets", distinct, _indicator(codes, starts, len(distinct)))


def _from_matrix(y: sparse.csr_matrix) -> LabelSets:
    if y.dtype.kind not in "biuf":
        raise LabelSetError.of_shape(y.shape)
    y.check_format(full_check=True)
    # counts are allowed, and become 1
    for at in np.flatnonzero(~((y.data >= 0) & (y.data % 1 == 0))):
        row = int(np.searchsorted(y.indptr, at, side="right")) - 1
        raise LabelSetError.of_entry(row, int(y.indices[at]), y.data[at])
    if not y.data.all():
        y = y.copy()  # a copy, since the arrays may be the caller's own
        y.eliminate_zeros()
    if not y.nnz:
        raise LabelSetError.all_empty(y.shape[0])
    return LabelSets(
        "indicator", np.arange(y.shape[1]), _indicator(y.indices, y.indptr, y.shape[1])
    )


def _indicator(codes: npt.NDArray[Any], starts: npt.NDArray[Any], labels: int) -> sparse.csr_matrix:
    ones, shape = np.ones(len(codes), np.float32), (len(starts) - 1, labels)
    members = sparse.csr_matrix((ones, codes.astype(np.int32), starts), shape=shape)
    members.sum_duplicates()
    members.data[:] = 1.0
    return members
