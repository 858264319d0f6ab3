"""Blocks of rows, the schema of a table, and the array types that all packages share.

A `Schema` has the names of the features and classes of a table. A `Block` holds some consecutive
rows, with the class code of each row; a code is the position of a label in `Schema.labels`. The
functions below handle the features of a block, dense or sparse, and check sample weights.

`table.load` and `table.memory` turn files, data frames and arrays into blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.errors import InfiniteValueError, MissingValueError, ShapeError, WeightError

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]
Places = npt.NDArray[np.integer[Any]]
Labels = npt.NDArray[Any]
Features = Any  # (n, d) numeric array of any order and dtype, or SciPy CSR


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """Names of d features and K classes."""

    features: tuple[str, ...]
    labels: Labels  # (K,) sorted and distinct
    named: bool = False  # whether the user gave the feature names; columns are then matched by name


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some rows of a table."""

    features: Features  # (n, d)
    codes: Codes  # (n,) each in 0..K-1
    weight: Floats | None = None  # (n,) sample weights; None means one for every row
    responses: Floats | None = None  # (n, m) numeric responses of a regression
    start: int = 0  # number of the first row in its table, for messages
    fold: Places | None = None  # (n,) fold in which each row is held out

    def __len__(self) -> int:
        return len(self.codes)

    def rows(self, lo: int, hi: int) -> Block:
        """Return rows `lo` to `hi` (exclusive) as views."""
        if lo == 0 and hi == len(self):
            return self
        some = slice(lo, hi)
        return self._subset(row_slice(self.features, lo, hi), some, self.start + lo)

    def take(self, rows: npt.NDArray[np.intp]) -> Block:
        """Return the given rows, in that order."""
        if len(rows) == len(self) and bool((rows == np.arange(len(rows))).all()):
            return self
        return self._subset(self.features[rows], rows, self.start)

    def with_folds(self, fold: Places) -> Block:
        """Return the block with the fold numbers `fold` (n,) of its rows."""
        return replace(self, fold=fold)

    def raise_bad_cell(
        self, names: Sequence[str], *, extent: tuple[int, int] | None = None
    ) -> None:
        """Raise the error for the first cell that is not a finite number.

        If all cells are finite, no error is raised. `extent` holds, for the whole table, the number
        of rows with missing cells and the number of columns with missing cells.
        """
        rows, columns, missing = non_finite_cells(self.features)
        if not len(rows):
            return
        row, column = self.start + int(rows[0]), names[int(columns[0])]
        if not missing[0]:
            raise InfiniteValueError.of_cell(row, column)
        here = len(np.unique(rows[missing])), len(np.unique(columns[missing]))
        n_rows, n_columns = here if extent is None else extent
        raise MissingValueError.of_cell(row, column, rows=n_rows, columns=n_columns)

    def _subset(self, features: Features, rows: Any, start: int) -> Block:
        return Block(
            features,
            self.codes[rows],
            None if self.weight is None else self.weight[rows],
            None if self.responses is None else self.responses[rows],
            start,
            None if self.fold is None else self.fold[rows],
        )


def non_finite_cells(features: Features) -> tuple[Places, Places, npt.NDArray[np.bool_]]:
    """Return row and column of each cell that is not finite, and whether the cell is missing."""
    if is_sparse(features):  # a sparse table may be too wide for a dense array
        entries = features.tocoo()
        bad = np.flatnonzero(~np.isfinite(entries.data.astype(np.float64, copy=False)))
        bad = bad[np.lexsort((entries.col[bad], entries.row[bad]))]
        return entries.row[bad], entries.col[bad], np.isnan(entries.data[bad])
    values = dense(features).astype(np.float64, copy=False)
    rows, columns = np.nonzero(~np.isfinite(values))
    return rows, columns, np.isnan(values[rows, columns])


def dense(features: Features) -> npt.NDArray[Any]:
    """Return the features of a block as a dense array.

    Use this function for blocks only, not for a whole table.
    """
    if isinstance(features, np.ndarray):  # tested first, because it is fast and nearly always true
        return features
    return np.asarray(features.toarray() if is_sparse(features) else features)


def row_slice(features: Features, lo: int, hi: int) -> Features:
    """Return rows `lo` to `hi` without a copy, even of a CSR matrix (whose own slicing copies)."""
    if not is_sparse(features):
        return features[lo:hi]
    indptr = features.indptr[lo : hi + 1]
    entries = slice(indptr[0], indptr[-1])
    arrays = features.data[entries], features.indices[entries], indptr - indptr[0]
    return type(features)(arrays, shape=(len(indptr) - 1, features.shape[1]), copy=False)


def canonical_rows(features: Any) -> Any:
    """Convert a sparse matrix of any format to CSR without duplicates and explicit zeros.

    Entries of the same cell are summed, column indices are sorted, and numbers are converted to the
    byte order of the machine. The matrix that is passed is never modified.
    """
    rows = features.tocsr()
    data, indices, indptr = (
        native_numbers(part) for part in (rows.data, rows.indices, rows.indptr)
    )
    # A new matrix: its flags (has_canonical_format) must not be those of the caller's.
    rows = type(rows)((data, indices, indptr), shape=rows.shape, copy=False)
    if not rows.has_canonical_format:
        if (np.diff(indptr) < 0).any() or indptr[-1] > len(indices):
            raise ShapeError.of_pointers()
        rows = rows.copy()
        rows.sum_duplicates()
    if not rows.data.all():
        rows = rows.copy()
        rows.eliminate_zeros()
    return rows


def native_numbers(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert numbers to a type and a byte order that compiled loops can read.

    float16 and long double become float64. Other arrays are copied only if their byte order
    differs.
    """
    dtype = values.dtype
    if dtype.kind == "f" and dtype.itemsize not in (4, 8):
        with np.errstate(over="ignore", under="ignore"):  # values beyond float64 become infinite
            return values.astype(np.float64)
    return values if dtype.isnative else values.astype(dtype.newbyteorder("="))


def holds_for_all_values(
    values: npt.NDArray[Any], condition: Callable[[Any], Any], *, chunk: int = 1 << 22
) -> bool:
    """Whether a condition holds for every value. The condition is tested chunk by chunk to limit
    memory.
    """
    chunks = (values[first : first + chunk] for first in range(0, len(values), chunk))
    return all(bool(np.all(condition(part))) for part in chunks)


def is_sparse(features: Any) -> bool:
    """Whether features are a SciPy sparse matrix or array."""
    return bool(sparse.issparse(features))


@lru_cache(maxsize=8)
def numbered_names(width: int) -> tuple[str, ...]:
    """Return names for unnamed columns, in the style of scikit-learn.

    >>> numbered_names(2)
    ('x0', 'x1')
    """
    return tuple(f"x{j}" for j in range(width))


def check_weight(weight: Any, rows: int, *, some: bool = True, start: int = 0) -> Floats | None:
    """Return sample weights as float64, or None if `weight` is None.

    Every weight must be finite and not negative.

    If `some` is True, at least one weight must be positive. Pass `some=False` for a part of a
    table, since its weights may all be zero. `start` is the number of its first row, for messages.
    """
    if weight is None:
        return None
    try:
        weights = np.array(weight, dtype=np.float64)
    except (TypeError, ValueError):
        first = np.asarray(weight, dtype=object).ravel()[:1]
        raise WeightError.not_numbers(f"a {type(first[0]).__name__}") from None
    if weights.ndim == 0:
        weights = np.full(rows, float(weights))
    if weights.ndim != 1:
        raise WeightError.wrong_shape(weights.shape, rows)
    if len(weights) != rows:
        raise ShapeError.of_lengths("sample_weight", len(weights), rows)
    if not np.isfinite(weights).all():
        row = int(np.argmin(np.isfinite(weights)))
        raise WeightError.not_finite(start + row, float(weights[row]))
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise WeightError.negative(start + row, float(weights[row]))
    if some and not weights.any():
        raise WeightError.all_zero()
    return weights
