"""Block, Schema and the array types that all rooms share.

A Schema names the columns and classes of a table. A Block holds some consecutive rows with the code
of the class of each; a code is the position of a label in `Schema.labels`. The functions below
handle the features of a block, dense or sparse, and check sample weights.

Turning files, data frames and arrays into blocks is not done here: see `table.open` and
`table.memory`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
    named: bool = False  # whether the feature names are the user's, so that they can be matched


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some rows of a table."""

    features: Features  # (n, d)
    codes: Codes  # (n,) each in 0..K-1
    weight: Floats | None = None  # (n,) None is one for every row
    responses: Floats | None = None  # (n, m) numbers to regress on, read as m more columns
    start: int = 0  # number of the first row in its table, for messages
    fold: Places | None = None  # (n,) the fold that holds each row out, in cross-validation

    def __len__(self) -> int:
        return len(self.codes)

    def rows(self, lo: int, hi: int) -> Block:
        """Return rows lo to hi as views."""
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
        """Return the same rows with the fold of each."""
        return replace(self, fold=fold)

    def raise_bad_cell(
        self, names: Sequence[str], *, extent: tuple[int, int] | None = None
    ) -> None:
        """Raise the error for the first cell that is not a finite number, if there is one.

        `extent` is the number of rows and columns of the whole table that have missing cells.
        """
        rows, columns, missing = bad_cells(self.features)
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


def bad_cells(features: Features) -> tuple[Places, Places, npt.NDArray[np.bool_]]:
    """Return rows and columns of cells that are not finite, in order, and which are missing."""
    if is_sparse(features):  # a sparse table may be too wide to be made dense
        entries = features.tocoo()
        bad = np.flatnonzero(~np.isfinite(entries.data.astype(np.float64, copy=False)))
        bad = bad[np.lexsort((entries.col[bad], entries.row[bad]))]
        return entries.row[bad], entries.col[bad], np.isnan(entries.data[bad])
    values = dense(features).astype(np.float64, copy=False)
    rows, columns = np.nonzero(~np.isfinite(values))
    return rows, columns, np.isnan(values[rows, columns])


def dense(features: Features) -> npt.NDArray[Any]:
    """Return the features of a block as an array; a whole table is never made dense."""
    if isinstance(features, np.ndarray):  # tested first: quick, and nearly always true
        return features
    return np.asarray(features.toarray() if is_sparse(features) else features)


def row_slice(features: Features, lo: int, hi: int) -> Features:
    """Return rows lo to hi without a copy, also of CSR, whose own slices copy."""
    if not is_sparse(features):
        return features[lo:hi]
    indptr = features.indptr[lo : hi + 1]
    entries = slice(indptr[0], indptr[-1])
    arrays = features.data[entries], features.indices[entries], indptr - indptr[0]
    return type(features)(arrays, shape=(len(indptr) - 1, features.shape[1]), copy=False)


def canonical_rows(features: Any) -> Any:
    """Return a sparse matrix of any format as CSR that stores each cell once and no zeros.

    Entries of the same cell are summed, column indices sorted, and numbers brought to the byte
    order of the machine. The caller's matrix is never modified.
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
    """Return numbers that compiled loops can read, in the machine's byte order.

    float16 and long double become float64; nothing is copied without need.
    """
    dtype = values.dtype
    if dtype.kind == "f" and dtype.itemsize not in (4, 8):
        with np.errstate(over="ignore", under="ignore"):  # beyond float64: reported as infinite
            return values.astype(np.float64)
    return values if dtype.isnative else values.astype(dtype.newbyteorder("="))


def holds_throughout(
    values: npt.NDArray[Any], condition: Callable[[Any], Any], *, chunk: int = 1 << 22
) -> bool:
    """Whether a condition holds for every value, tested chunk by chunk to bound memory."""
    chunks = (values[first : first + chunk] for first in range(0, len(values), chunk))
    return all(bool(np.all(condition(part))) for part in chunks)


def is_sparse(features: Any) -> bool:
    """Whether features are a SciPy sparse matrix or array."""
    return bool(sparse.issparse(features))


def numbered_names(width: int) -> tuple[str, ...]:
    """Return names for columns that have none, as scikit-learn gives them.

    >>> numbered_names(2)
    ('x0', 'x1')
    """
    return tuple(f"x{j}" for j in range(width))


def check_weight(weight: Any, rows: int, *, some: bool = True, start: int = 0) -> Floats | None:
    """Return sample weights as float64, each finite and not negative; None stays None.

    With `some` at least one weight must be positive. Weights of one part of a table, which begins
    at row `start`, may all be zero.
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
