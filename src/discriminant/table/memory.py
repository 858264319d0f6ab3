"""Table in memory: an array, sparse matrix or data frame, which is validated and read in blocks.

A `Table` stores the data without a copy: slices are views, and the columns of a data frame are
stacked into a matrix only for one block at a time. Cells are not checked when a table is created. A
NaN makes the sums NaN; only then does `Table.raise_bad_cell` search for its cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import (
    CellTypeError,
    ColumnNamesError,
    ColumnTypeError,
    ExtraColumnsWarning,
    InfiniteValueError,
    LabelError,
    LargeIntegerWarning,
    MissingValueError,
    ShapeError,
    TextInNumberError,
    warn,
)
from discriminant.table.blocks import (
    Block,
    Codes,
    Features,
    Floats,
    Labels,
    Places,
    Schema,
    canonical_rows,
    check_weight as check_weight,
    dense,
    is_sparse,
    native_numbers,
    non_finite_cells,
    numbered_names,
    row_slice,
)
from discriminant.table.column_cells import checked_column_names
from discriminant.table.labels import encode_known_labels, encode_labels

_SEARCH_ROWS = 1 << 14  # rows searched at a time for a bad cell
_SMALL_FRAME = 1 << 16  # largest frame, in cells, that is not read column by column
_SAMPLE = 101  # rows of a sample for the origin; odd, so that medians are data values


@dataclass(frozen=True, slots=True, eq=False)
class ColumnarFeatures:
    """Columns of a data frame, stacked into a matrix only when rows are indexed."""

    columns: tuple[npt.NDArray[Any], ...]  # d arrays of n numbers

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.columns[0]) if self.columns else 0, len(self.columns)

    def __getitem__(self, rows: Any) -> npt.NDArray[Any]:
        parts = [column[rows] for column in self.columns]
        dtype = np.result_type(*self.columns)
        block = np.empty((len(parts[0]), len(parts)), dtype=dtype, order="F")
        for j, part in enumerate(parts):
            block[:, j] = part
        return block

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self[:].astype(dtype, copy=False)


@dataclass(frozen=True, slots=True, eq=False)
class NamedFeatures:
    """Encoded features with their names: a data frame of numbers that needs no conversion."""

    column_names: tuple[str, ...]
    features: ColumnarFeatures

    @property
    def shape(self) -> tuple[int, int]:
        return self.features.shape


def select_columns(features: Features, places: Places) -> Features:
    """Return the features at the given places, in that order."""
    if isinstance(features, ColumnarFeatures):
        return ColumnarFeatures(tuple(features.columns[j] for j in places))
    return features[:, places]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows in memory: features, class codes and weights, with names of columns and classes."""

    schema: Schema
    features: Features  # (N, d) array, CSR or ColumnarFeatures
    codes: Codes  # (N,)
    weight: Floats | None = None  # (N,)
    responses: Floats | None = None  # (N, m)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def width(self) -> int:
        return int(self.features.shape[1])

    @property
    def numbers_per_row(self) -> int:
        """Mean number of stored numbers per row. The zeros of a sparse matrix do not count."""
        if not is_sparse(self.features):
            return self.width
        return max(int(self.features.nnz) // max(len(self), 1), 1)

    def block(self, lo: int, hi: int) -> Block:
        """Return rows lo to hi as views."""
        return Block(
            row_slice(self.features, lo, hi),
            self.codes[lo:hi],
            None if self.weight is None else self.weight[lo:hi],
            None if self.responses is None else self.responses[lo:hi],
            lo,
        )

    def blocks(self, size: int) -> Iterator[Block]:
        """Yield all rows, `size` at a time."""
        for lo in range(0, len(self), size):
            yield self.block(lo, min(lo + size, len(self)))

    def take(self, rows: npt.NDArray[np.intp]) -> Table:
        """Return the given rows, in that order."""
        return Table(
            self.schema,
            self.features[rows],
            self.codes[rows],
            None if self.weight is None else self.weight[rows],
            None if self.responses is None else self.responses[rows],
        )

    def select(self, places: Places) -> Table:
        """Return the table with the given features, in that order."""
        schema = replace(self.schema, features=tuple(self.schema.features[j] for j in places))
        return replace(self, schema=schema, features=select_columns(self.features, places))

    def raise_bad_cell(self) -> None:
        """Raise the error for the first cell that is not finite.

        The message states the number of missing cells.
        """
        rows, columns = 0, np.zeros(self.width, dtype=bool)
        for block in self.blocks(_SEARCH_ROWS):
            bad_rows, bad_columns, missing = non_finite_cells(block.features)
            rows += len(np.unique(bad_rows[missing]))
            columns[bad_columns[missing]] = True
        for block in self.blocks(_SEARCH_ROWS):
            block.raise_bad_cell(self.schema.features, extent=(rows, int(columns.sum())))

    def sample(self) -> npt.NDArray[Any]:
        """Return a few evenly spaced rows, to estimate the location and scale of columns."""
        rows = _spread_rows(len(self))
        few = len(rows) == len(self)  # all rows, in order: no copy is needed
        features = dense(self.features[:] if few else self.features[rows])
        return features if self.responses is None else np.hstack([features, self.responses[rows]])


@lru_cache(maxsize=8)
def _spread_rows(rows: int) -> npt.NDArray[np.intp]:
    """Return the numbers of at most `_SAMPLE` evenly spaced rows."""
    return np.linspace(0, rows - 1, min(rows, _SAMPLE)).astype(np.intp)


def as_table(
    X: Any,
    y: Any = None,
    *,
    weight: Any = None,
    labels: Labels | None = None,
    responses: Any = None,
    name: str = "This model",
    match: Schema | None = None,
) -> Table:
    """Check rows, labels and weights, and return them as a table.

    Parameters
    ----------
    X : array-like of shape (N, d)
        Array, nested list, SciPy sparse matrix or data frame.
    y : array-like of shape (N,), optional
        Labels, which may be omitted if `responses` are given; all rows then have the class code 0.
    weight : array-like of shape (N,), optional
        Non-negative sample weights.
    labels : array of shape (K,), optional
        Classes, if they are already known. Any other label is then an error.
    responses : array of shape (N, m), optional
        Numeric responses of a regression.
    name : str, default='This model'
        Name of the caller, for messages.
    match : Schema, optional
        Schema to which the columns of a data frame are matched by name.

    Returns
    -------
    Table
        The checked rows.
    """
    features, names = as_features(X, match=match)
    rows = features.shape[0]
    if not rows:
        raise ShapeError.no_rows(rows)
    if not features.shape[1]:
        raise ShapeError.no_features(rows)
    if y is None and responses is None:
        raise LabelError.absent(name)
    if y is None:
        labels, codes = np.zeros(1, dtype=np.intp), np.zeros(rows, dtype=np.uint8)
    elif labels is None:
        labels, codes = encode_labels(y)
    else:
        codes = encode_known_labels(y, labels)
    if len(codes) != rows:
        raise ShapeError.of_lengths("y", len(codes), rows)
    schema = Schema(names or numbered_names(features.shape[1]), labels, bool(names))
    return Table(schema, features, codes, check_weight(weight, rows), responses)


def as_features(X: Any, *, match: Schema | None = None) -> tuple[Features, tuple[str, ...] | None]:
    """Return features that can be sliced by rows, and the column names (None if unnamed).

    If a schema `match` is given, the columns of a data frame are put in the order of the schema.
    """
    if isinstance(X, NamedFeatures):
        return _select_features(X, match), X.column_names if match is None else match.features
    if is_sparse(X):
        if X.dtype.kind == "c":
            raise ColumnTypeError.of_column("x0", str(X.dtype))
        if X.ndim != 2:
            raise ShapeError.not_two_dimensional(X.ndim)
        return canonical_rows(X), None
    if not isinstance(X, np.ndarray) and _is_frame(X):
        return _open_frame(X, match)
    return _open_array(X), None


def as_indexable(X: Any) -> Any:
    """Return rows that have a shape and can be indexed by row number."""
    if is_sparse(X):
        return canonical_rows(X) if X.ndim == 2 else X
    return X if hasattr(X, "shape") else np.asarray(X)


def encode_classes(X: Any, y: Any) -> tuple[Labels, Codes]:
    """Return the class labels (K,) and the class code of each row (n,).

    Raises an error if there are fewer than two classes.
    """
    if len(X.shape) != 2:
        raise ShapeError.not_two_dimensional(len(X.shape))
    if y is None:
        raise LabelError.absent("This model")
    labels, codes = encode_labels(y)
    rows = X.shape[0]
    if len(codes) != rows:
        raise ShapeError.of_lengths("y", len(codes), rows)
    if len(labels) < 2:
        raise LabelError.one_class(labels[0]) if rows else ShapeError.no_rows(rows)
    return labels, codes


def _select_features(X: NamedFeatures, match: Schema | None) -> ColumnarFeatures:
    """Put encoded features in the order of a schema."""
    names = X.column_names
    if match is None or match.features == names:
        return X.features
    position = {name: j for j, name in enumerate(names)}
    wanted = _match_names(list(names), match)
    return ColumnarFeatures(tuple(X.features.columns[position[name]] for name in wanted))


def _is_frame(X: Any) -> bool:
    if type(X).__name__ == "LazyFrame":
        raise ShapeError.not_a_table("a LazyFrame")
    return (
        hasattr(X, "__dataframe__")
        or hasattr(X, "__narwhals_dataframe__")
        or (hasattr(X, "columns") and hasattr(X, "shape"))
        or hasattr(X, "column_names")
    )


def _open_frame(X: Any, match: Schema | None) -> tuple[Features, tuple[str, ...] | None]:
    import narwhals as nw

    given = checked_column_names(X)
    # The integers 0 to d - 1, in any order, are positions; anything else is a name.
    named = isinstance(given[0], str) or sorted(given) != list(range(len(given)))
    given = [str(name) for name in given] if named else given
    wanted = given if named else sorted(given)
    if match is not None and named:
        wanted = _match_names(given, match)
    whole = _float_frame(X)
    if whole is not None:
        if wanted != given:
            position = {name: j for j, name in enumerate(given)}
            whole = whole[:, [position[name] for name in wanted]]
        return whole, tuple(wanted) if named else None
    series = dict(zip(given, nw.from_native(X, eager_only=True).iter_columns(), strict=True))
    columns = tuple(_open_series(series[name], str(name)) for name in wanted)
    return ColumnarFeatures(columns), tuple(wanted) if named else None


def _float_frame(X: Any) -> npt.NDArray[Any] | None:
    """Convert a small pandas frame of float64 columns to one array (faster), or return None."""
    if type(X).__module__.partition(".")[0] != "pandas" or X.size > _SMALL_FRAME:
        return None
    if any(dtype != np.float64 for dtype in X.dtypes.to_numpy()):
        return None
    return np.asarray(X.to_numpy())


def _match_names(given: list[str], match: Schema) -> list[str]:
    if not match.named:  # the user may have named columns x0, x1, ...
        return list(match.features) if set(given) == set(match.features) else given
    present, wanted = set(given), set(match.features)  # sets: there may be very many columns
    missing = [name for name in match.features if name not in present]
    extra = [name for name in given if name not in wanted]
    if missing:
        raise ColumnNamesError.of_missing(missing, extra)
    if extra:
        warn(ExtraColumnsWarning.of_columns(extra))
    return list(match.features)


def _open_array(X: Any) -> npt.NDArray[Any]:
    if isinstance(X, np.ma.MaskedArray):
        _check_mask(X)
    array = _as_array(X)
    if array.ndim == 0:
        raise ShapeError.not_a_table(type(X).__name__)
    if array.dtype.kind == "c":
        raise ColumnTypeError.of_column("x0", str(array.dtype))
    if array.ndim != 2:
        raise ShapeError.not_two_dimensional(array.ndim)
    if array.dtype.kind in "fb":
        return native_numbers(array)
    return _as_numbers(array, numbered_names(array.shape[1]))


def _check_mask(X: np.ma.MaskedArray[Any, Any]) -> None:
    """Raise the error for the first masked cell of a masked array, if any cell is masked."""
    mask = np.atleast_2d(np.ma.getmaskarray(X))
    for row, column in np.argwhere(mask)[:1]:
        rows, columns = int(mask.any(axis=1).sum()), int(mask.any(axis=0).sum())
        raise MissingValueError.of_cell(int(row), f"x{column}", rows=rows, columns=columns)


def _as_array(X: Any) -> npt.NDArray[Any]:
    try:
        return np.asarray(X)
    except ValueError:
        lengths = [len(row) if hasattr(row, "__len__") else 1 for row in X]
        for row, length in enumerate(lengths):
            if length != lengths[0]:
                raise ShapeError.ragged(row, length, lengths[0]) from None
        raise


def _open_series(series: Any, name: str) -> npt.NDArray[Any]:
    import narwhals as nw

    if series.dtype in (nw.Categorical, nw.Enum):
        # Categories that are numbers are names too: their differences have no meaning.
        raise ColumnTypeError.of_categories(name, int(series.drop_nulls().n_unique()))
    return _as_numbers(series.to_numpy()[:, None], (name,))[:, 0]


def _as_numbers(array: npt.NDArray[Any], names: Sequence[str]) -> npt.NDArray[Any]:
    """Convert a two-dimensional array to numbers.

    Raise the error for the first value that is not a number.
    """
    if array.dtype.kind in "cmM":
        raise ColumnTypeError.of_column(names[0], str(array.dtype))
    if array.dtype.kind in "iu":
        _warn_of_large_integers(array, names)
    return native_numbers(array) if array.dtype.kind in "fbiu" else _parse_objects(array, names)


def _parse_objects(array: npt.NDArray[Any], names: Sequence[str]) -> Floats:
    """Convert objects and texts to float64.

    Raise the error for the first value that is not a number.
    """
    if any(isinstance(value, complex) for value in array[:1].ravel()):
        raise ColumnTypeError.of_column(names[0], "complex")
    try:
        numbers = array.astype(np.float64)
    except (TypeError, ValueError) as fault:
        missing = np.frompyfunc(_is_missing, 1, 1)(array).astype(bool)
        rows, columns = int(missing.any(axis=1).sum()), int(missing.any(axis=0).sum())
        for (row, column), value in np.ndenumerate(array):
            name = names[column]
            if missing[row, column]:
                raise MissingValueError.of_cell(row, name, rows=rows, columns=columns) from None
            _check_number(row, name, value)
        raise CellTypeError.of_cell(0, names[0], str(array.dtype)) from fault
    for row, column in np.argwhere(np.isinf(numbers))[:1]:
        if isinstance(array[row, column], str):
            text = str(array[row, column])
            raise InfiniteValueError.of_text(int(row), names[column], text)
    return numbers


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _check_number(row: int, column: str, value: Any) -> None:
    try:
        float(value)
    except (TypeError, ValueError):
        if isinstance(value, str):
            raise TextInNumberError.of_cell(row, column, str(value)) from None
        raise CellTypeError.of_cell(row, column, type(value).__name__) from None


def _warn_of_large_integers(array: npt.NDArray[Any], names: Sequence[str]) -> None:
    if array.dtype.itemsize < 8 or not array.size:
        return
    if int(array.max()) <= 1 << 53 and int(array.min()) >= -(1 << 53):
        return
    large = (array.max(axis=0) > 1 << 53) | (array.min(axis=0) < -(1 << 53))
    columns = [name for name, beyond in zip(names, large, strict=True) if beyond]
    warn(LargeIntegerWarning.of_columns(columns))
