"""Schema and Block: the two shapes of data that the other rooms ever see.

A Schema says what the columns and classes are called; a Block is some consecutive rows of a table
with the codes of their classes. A code is the place of a label in `Schema.labels`. Reading files,
frames and arrays into blocks is not done here: see `table.source`.

Weights of rows at the door: numbers, one for each row, none negative, not all zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    fold: Places | None = None  # (n,) the fold that holds a row out, where rows are dealt

    def __len__(self) -> int:
        return len(self.codes)

    def rows(self, lo: int, hi: int) -> Block:
        """Rows lo to hi, as views."""
        if lo == 0 and hi == len(self):
            return self
        return Block(
            row_slice(self.features, lo, hi),
            self.codes[lo:hi],
            None if self.weight is None else self.weight[lo:hi],
            None if self.responses is None else self.responses[lo:hi],
            self.start + lo,
            None if self.fold is None else self.fold[lo:hi],
        )

    def take(self, rows: npt.NDArray[np.intp]) -> Block:
        """The rows named, in that order."""
        if len(rows) == len(self) and bool((rows == np.arange(len(rows))).all()):
            return self
        return Block(
            self.features[rows],
            self.codes[rows],
            None if self.weight is None else self.weight[rows],
            None if self.responses is None else self.responses[rows],
            self.start,
            None if self.fold is None else self.fold[rows],
        )

    def with_folds(self, fold: Places) -> Block:
        """The same rows, with the fold of each."""
        return Block(self.features, self.codes, self.weight, self.responses, self.start, fold)

    def raise_bad_cell(
        self, names: Sequence[str], *, extent: tuple[int, int] | None = None
    ) -> None:
        """Raise the error that names the first cell that is no finite number, if any.

        `extent`: rows and columns of the whole table that have missing cells.
        """
        wrong, columns, missing = bad_cells(self.features)
        if not len(wrong):
            return
        row, column = self.start + int(wrong[0]), names[int(columns[0])]
        if not missing[0]:
            raise InfiniteValueError.of_cell(row, column)
        here = len(np.unique(wrong[missing])), len(np.unique(columns[missing]))
        rows, width = here if extent is None else extent
        raise MissingValueError.of_cell(row, column, rows=rows, columns=width)


def bad_cells(features: Features) -> tuple[Places, Places, npt.NDArray[np.bool_]]:
    """Rows and columns of the cells that are no finite number, in order, and which are missing."""
    if is_sparse(features):  # a sparse table may be too wide to be made dense
        found = features.tocoo()
        some = np.flatnonzero(~np.isfinite(found.data.astype(np.float64, copy=False)))
        some = some[np.lexsort((found.col[some], found.row[some]))]
        return found.row[some], found.col[some], np.isnan(found.data[some])
    values = dense(features).astype(np.float64, copy=False)
    rows, columns = np.nonzero(~np.isfinite(values))
    return rows, columns, np.isnan(values[rows, columns])


def dense(features: Features) -> npt.NDArray[Any]:
    """The block's features as an array; only a block is ever made dense, never a table."""
    if isinstance(features, np.ndarray):  # asked first: it is quick, and nearly always so
        return features
    return np.asarray(features.toarray() if is_sparse(features) else features)


def row_slice(features: Features, lo: int, hi: int) -> Features:
    """Rows lo to hi; of CSR too without a copy, which SciPy's own slices make."""
    if not is_sparse(features):
        return features[lo:hi]
    ends = features.indptr[lo : hi + 1]
    some = slice(ends[0], ends[-1])
    parts = features.data[some], features.indices[some], ends - ends[0]
    return type(features)(parts, shape=(len(ends) - 1, features.shape[1]), copy=False)


def canonical_rows(features: Any) -> Any:
    """A sparse matrix of any format as CSR that stores each cell once, and zeros not at all.

    Entries of the same cell are summed, column indices sorted, and numbers brought to the byte
    order of the machine. The caller's matrix is never modified.
    """
    rows = features.tocsr()
    data, indices, indptr = (
        native_numbers(part) for part in (rows.data, rows.indices, rows.indptr)
    )
    rows = type(rows)(
        (data, indices, indptr), shape=rows.shape, copy=False
    )  # with flags of its own
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
    """Numbers that compiled loops can read: the machine's byte order, and no other floats.

    float16 and long double become float64; without need nothing is copied.
    """
    kind = values.dtype
    if kind.kind == "f" and kind.itemsize not in (4, 8):
        with np.errstate(over="ignore", under="ignore"):  # beyond float64: told of as infinite
            return values.astype(np.float64)
    return values if kind.isnative else values.astype(kind.newbyteorder("="))


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
    """Names for columns that have none, as scikit-learn gives them.

    >>> numbered(2)
    ('x0', 'x1')
    """
    return tuple(f"x{j}" for j in range(width))


def check_weight(weight: Any, rows: int, *, some: bool = True, start: int = 0) -> Floats | None:
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
