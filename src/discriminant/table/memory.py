"""Open an array, a sparse matrix or a data frame, check it at the door, stream it as Blocks.

A Table holds what it was given: slices are views, and a frame's columns are put side by side only
for the block at hand. Cells are not looked at here; a NaN shows itself in the sums (it spreads),
and only then is the place looked for: `Block.blame`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
    Schema,
    bad_cells,
    canonical_rows,
    check_weight as check_weight,
    dense,
    is_sparse,
    native_numbers,
    numbered_names,
    row_slice,
)
from discriminant.table.labels import encode_known_labels, encode_labels

_LOOK = 1 << 14  # rows looked at together when a bad cell is searched
_SAMPLE = 101  # rows looked at to place the origin; odd, so that a median is one of the values


@dataclass(frozen=True, slots=True, eq=False)
class ColumnarFeatures:
    """Columns of a data frame, kept apart until a block of rows is asked for."""

    columns: tuple[npt.NDArray[Any], ...]  # d arrays of n numbers

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.columns[0]) if self.columns else 0, len(self.columns)

    def __getitem__(self, rows: Any) -> npt.NDArray[Any]:
        kind = np.result_type(*self.columns)
        parts = [column[rows] for column in self.columns]
        block = np.empty((len(parts[0]), len(parts)), dtype=kind, order="F")
        for j, part in enumerate(parts):
            block[:, j] = part
        return block

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """All rows, the columns side by side."""
        return self[:].astype(dtype, copy=False)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows at hand in memory: features, codes, weights, and what they are called."""

    schema: Schema
    features: Features  # (N, d) array, CSR or Columns
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
        """How many numbers a row holds, zeros that are not stored left out."""
        if not is_sparse(self.features):
            return self.width
        return max(int(self.features.nnz) // max(len(self), 1), 1)

    def block(self, lo: int, hi: int) -> Block:
        """Rows lo to hi."""
        return Block(
            row_slice(self.features, lo, hi),
            self.codes[lo:hi],
            None if self.weight is None else self.weight[lo:hi],
            None if self.responses is None else self.responses[lo:hi],
            lo,
        )

    def blocks(self, size: int) -> Iterator[Block]:
        """All rows, `size` at a time."""
        for lo in range(0, len(self), size):
            yield self.block(lo, min(lo + size, len(self)))

    def take(self, rows: npt.NDArray[np.intp]) -> Table:
        """The rows named, in that order."""
        return Table(
            self.schema,
            self.features[rows],
            self.codes[rows],
            None if self.weight is None else self.weight[rows],
            None if self.responses is None else self.responses[rows],
        )

    def raise_bad_cell(self) -> None:
        """Raise the error that names the first missing cell, and says how many there are."""
        rows, columns = 0, np.zeros(self.width, dtype=bool)
        for block in self.blocks(_LOOK):
            wrong, places, missing = bad_cells(block.features)
            rows += len(np.unique(wrong[missing]))
            columns[places[missing]] = True
        for block in self.blocks(_LOOK):
            block.raise_bad_cell(self.schema.features, extent=(rows, int(columns.sum())))

    def sample(self) -> npt.NDArray[Any]:
        """A few rows, evenly spread: enough to say where the data lie and how far they spread."""
        count = min(len(self), _SAMPLE)
        rows = np.linspace(0, len(self) - 1, count).astype(np.intp)
        chosen = self.features[rows]
        found = dense(chosen)
        if self.responses is None:
            return found
        return np.hstack([found, self.responses[rows]])


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
    """Check rows, labels and weights at the door.

    Parameters
    ----------
    X
        Array, nested list, SciPy sparse matrix or data frame.
    y
        One label a row; None where no classes are meant (one class, coded 0).
    weight
        One non-negative number a row.
    labels
        The classes when they are already known; another label is then an error.
    responses
        Numbers to regress on, one or more columns.
    name
        Who is asking, for messages.
    match
        Columns of a frame are put into the order of this schema, by name.
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
        found, codes = np.zeros(1, dtype=np.intp), np.zeros(rows, dtype=np.uint8)
    elif labels is None:
        found, codes = encode_labels(y)
    else:
        found, codes = labels, encode_known_labels(y, labels)
    if len(codes) != rows:
        raise ShapeError.of_lengths("y", len(codes), rows)
    schema = Schema(
        numbered_names(features.shape[1]) if names is None else names, found, bool(names)
    )
    return Table(schema, features, codes, check_weight(weight, rows), responses)


def as_features(X: Any, *, match: Schema | None = None) -> tuple[Features, tuple[str, ...] | None]:
    """Features as something that can be sliced by rows, and their names if they have any.

    With `match`, columns of a frame are put into the order of that schema by name.
    """
    if is_sparse(X):
        if X.dtype.kind == "c":
            raise ColumnTypeError.of_column("x0", str(X.dtype))
        if X.ndim != 2:
            raise ShapeError.not_two_dimensional(X.ndim)
        return canonical_rows(X), None
    if not isinstance(X, np.ndarray) and _is_frame(X):
        return _open_frame(X, match)
    return _open_array(X), None


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

    given = list(getattr(X, "column_names", None) or X.columns)
    if not given:
        raise ShapeError.no_features(len(X))
    if len(set(given)) < len(given):
        name = next(name for i, name in enumerate(given) if name in given[:i])
        places = [i for i, other in enumerate(given) if other == name]
        raise ColumnNamesError.of_duplicates(str(name), places)
    texts = [name for name in given if isinstance(name, str)]
    if texts and len(texts) < len(given):
        others = [name for name in given if not isinstance(name, str)]
        raise ColumnNamesError.of_mixed(texts, others)
    # Whole numbers from 0 on are places, whatever their order; any other names are names.
    named = bool(texts) or sorted(given) != list(range(len(given)))
    given = [str(name) for name in given] if named else given
    wanted = sorted(given) if not named else given
    if match is not None and named:
        wanted = _match_names(given, match)
    series = dict(zip(given, nw.from_native(X, eager_only=True).iter_columns(), strict=True))
    columns = tuple(_open_series(series[name], str(name)) for name in wanted)
    return ColumnarFeatures(columns), tuple(wanted) if named else None


def _match_names(given: list[str], match: Schema) -> list[str]:
    if not match.named:  # names such as x0 may still be the user's own
        return list(match.features) if set(given) == set(match.features) else given
    here, wanted = set(given), set(match.features)  # once: there may be very many columns
    missing = [name for name in match.features if name not in here]
    extra = [name for name in given if name not in wanted]
    if missing:
        raise ColumnNamesError.of_missing(missing, extra)
    if extra:
        warn(ExtraColumnsWarning.of_columns(extra))
    return list(match.features)


def _open_array(X: Any) -> npt.NDArray[Any]:
    if isinstance(X, np.ma.MaskedArray):
        _blame_mask(X)
    array = _as_array(X)
    if array.ndim == 0:
        raise ShapeError.not_a_table(type(X).__name__)
    if array.dtype.kind == "c":
        raise ColumnTypeError.of_column("x0", str(array.dtype))
    if array.ndim != 2:
        raise ShapeError.not_two_dimensional(array.ndim)
    if array.dtype.kind in "fb":
        return native_numbers(array)
    if array.dtype.kind in "iu":
        _warn_of_large_integers(array, numbered_names(array.shape[1]))
        return native_numbers(array)
    if array.dtype.kind in "mM":
        raise ColumnTypeError.of_column("x0", str(array.dtype))
    return _to_numbers(array, numbered_names(array.shape[1]))


def _blame_mask(X: np.ma.MaskedArray[Any, Any]) -> None:
    """Raise the error that names the first masked cell, if any: under its mask is no number."""
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
        # Even categories that are numbers: they are names, and their distances mean nothing.
        raise ColumnTypeError.of_categories(name, int(series.drop_nulls().n_unique()))
    return _open_column(series.to_numpy(), name)


def _open_column(column: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    if column.dtype.kind in "iu":
        _warn_of_large_integers(column[:, None], (name,))
    if column.dtype.kind in "fbiu":
        return native_numbers(column)
    if column.dtype.kind in "cmM":
        raise ColumnTypeError.of_column(name, str(column.dtype))
    return _to_numbers(column[:, None], (name,))[:, 0]


def _to_numbers(array: npt.NDArray[Any], names: Sequence[str]) -> Floats:
    """Objects and texts as float64, or an error that names the first that is none."""
    if any(isinstance(value, complex) for value in array[:1].ravel()):
        raise ColumnTypeError.of_column(names[0], "complex")
    try:
        found = array.astype(np.float64)
    except (TypeError, ValueError) as fault:
        missing = np.frompyfunc(_is_missing, 1, 1)(array).astype(bool)
        extent = int(missing.any(axis=1).sum()), int(missing.any(axis=0).sum())
        for (row, column), value in np.ndenumerate(array):
            if missing[row, column]:
                rows, columns = extent
                raise MissingValueError.of_cell(
                    row, names[column], rows=rows, columns=columns
                ) from None
            _blame_object(row, names[column], value)
        raise CellTypeError.of_cell(0, names[0], str(array.dtype)) from fault
    for row, column in np.argwhere(np.isinf(found))[:1]:
        if isinstance(array[row, column], str):
            text = str(array[row, column])
            raise InfiniteValueError.of_text(int(row), names[column], text)
    return found


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _blame_object(row: int, column: str, value: Any) -> None:
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
