"""SMOTE rows for arrays, sparse matrices and data frames, in the type of the input.

Numeric columns of a synthetic row are interpolated; its categories are chosen by a vote of the
neighbours. The algorithm is in `imbalance.smote`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.engines.local import available_threads, one_blas_thread
from discriminant.errors import ResamplingError, ShapeError
from discriminant.imbalance.rebalance import Target, rows_by_class
from discriminant.imbalance.smote import (
    Nominal,
    draw_segments,
    interpolate,
    mixed_neighbours,
    nearest_neighbours,
    nominal_neighbours,
    value_differences,
    vote_categories,
)
from discriminant.table.blocks import (
    Block,
    Codes,
    Features,
    Labels,
    Places,
    canonical_rows,
    is_sparse,
    numbered_names,
)
from discriminant.table.memory import as_features


@dataclass(frozen=True, slots=True, eq=False)
class SmoteTable:
    """Rows split into numeric and categorical columns."""

    X: Any  # (N, d) the rows of the user
    names: tuple[str, ...] | None  # d column names of a frame; None for others
    numeric: Places  # (p,) positions of the numeric columns
    numbers: Features  # (N, p) numeric columns, as floats or CSR
    nominal: Nominal  # (N, d - p) category codes, in the order of the columns

    @classmethod
    def from_rows(cls, X: Any, nominal: Any) -> SmoteTable:
        """Split rows into numeric and categorical columns; numeric cells must be finite."""
        frame = not is_sparse(X) and not isinstance(X, np.ndarray)
        if is_sparse(X) and nominal is not None:
            raise ResamplingError.nominal_sparse()
        given = getattr(X, "column_names", None) or X.columns if frame else ()
        names = tuple(map(str, given)) if frame else None
        if len(X.shape) != 2:
            raise ShapeError.not_two_dimensional(len(X.shape))
        places = _nominal_places(X, nominal, names)
        numeric = np.setdiff1d(np.arange(X.shape[1]), places)
        numbers = _numeric_columns(X, numeric, names)
        columns = [_category_codes(X, int(j), names) for j in places]
        empty = np.zeros((X.shape[0], 0), dtype=np.intp)
        return cls(X, names, numeric, numbers, np.column_stack(columns) if columns else empty)

    def oversample(
        self,
        codes: Codes,
        labels: Labels,
        target: Target,
        neighbours: int,
        random: np.random.RandomState,
    ) -> tuple[Any, Codes]:
        """Return the rows followed by synthetic rows of the same type, and the class codes of all
        rows.
        """
        class_rows = rows_by_class(codes, len(labels))
        more = np.maximum(target.wanted - np.array([len(rows) for rows in class_rows]), 0)
        room, filled = self._allocate_rows(int(more.sum())), len(codes)
        parts, donors = [], [np.zeros((0, self.nominal.shape[1]), dtype=np.intp)]
        differences = None
        if not len(self.numeric):
            differences = value_differences(self.nominal, codes, len(labels))
        for k in np.flatnonzero(more):
            rows, count = class_rows[k], int(more[k])
            near = self._neighbours(rows, differences, neighbours, labels[k])
            segments = draw_segments(near, count, random)
            if room is None:
                parts.append(interpolate(self.numbers[rows], segments))
            elif len(self.numeric):
                interpolate(self.numbers[rows], segments, out=room[filled : filled + count])
            filled += count
            if self.nominal.shape[1]:
                if differences is not None:  # each row also votes for its own category
                    near = np.hstack([np.arange(len(near))[:, None], near])
                chosen = vote_categories(self.nominal[rows], near, segments.start, random)
                donors.append(_donors(self.nominal, chosen))
        new = np.repeat(np.arange(len(labels)), more).astype(codes.dtype)
        numbers = _stack_sparse(self.numbers, parts) if room is None else room
        return self._join_columns(numbers, np.concatenate(donors)), np.concatenate([codes, new])

    def _neighbours(self, rows: Places, differences: Any, neighbours: int, label: object) -> Places:
        """Return the nearest neighbours (n, k) of each row of one class."""
        numbers, nominal = self.numbers[rows], self.nominal[rows]
        if differences is not None:
            return nominal_neighbours(nominal, differences, neighbours, label)
        with one_blas_thread():
            threads = available_threads()
            if nominal.shape[1]:
                return mixed_neighbours(numbers, nominal, neighbours, label, threads=threads)
            return nearest_neighbours(numbers, neighbours, label, threads=threads)

    def _allocate_rows(self, more: int) -> npt.NDArray[Any] | None:
        """Return an array of the rows followed by `more` empty rows; None for sparse rows."""
        if is_sparse(self.numbers):
            return None
        N, p = self.numbers.shape
        room = np.empty((N + more, p), dtype=self.numbers.dtype)
        room[:N] = self.numbers
        return room

    def _join_columns(self, numbers: Any, donors: Nominal) -> Any:
        """Return rows of the type of the input, from numeric columns and categories.

        `donors` are, for each synthetic row and column, the row whose category is copied.
        """
        if self.names is not None:
            return self._join_frame(numbers, donors)
        if not self.nominal.shape[1]:
            return numbers
        rows = np.empty((len(numbers), self.X.shape[1]), dtype=np.result_type(self.X, numbers))
        if self.X.dtype.kind == "O":
            rows = rows.astype(object)
        rows[:, self.numeric] = numbers
        old = len(self.X)
        others = np.setdiff1d(np.arange(self.X.shape[1]), self.numeric)
        for donor, j in zip(donors.T, others, strict=True):
            rows[:old, j], rows[old:, j] = self.X[:, j], self.X[donor, j]
        return rows

    def _join_frame(self, numbers: Any, donors: Nominal) -> Any:
        import narwhals as nw

        assert self.names is not None
        given = nw.from_native(self.X, eager_only=True)
        backend = given.implementation
        place = {int(j): i for i, j in enumerate(self.numeric)}
        others = [j for j in range(len(self.names)) if j not in place]
        rows = np.arange(self.X.shape[0])
        columns = {}
        for j, name in enumerate(given.columns):
            if j in place:
                columns[name] = nw.new_series(str(name), numbers[:, place[j]], backend=backend)
            else:
                donor = donors[:, others.index(j)]
                columns[name] = given[:, j][np.concatenate([rows, donor])]
        if backend.is_pandas():  # synthetic rows have no index of their own
            native = {
                name: column.to_native().reset_index(drop=True) for name, column in columns.items()
            }
            return type(self.X)(native)
        return nw.from_dict(columns, backend=backend).to_native()


def _nominal_places(X: Any, nominal: Any, names: tuple[str, ...] | None) -> Places:
    width = int(X.shape[1])
    if nominal is None:
        if names is None:
            return np.zeros(0, dtype=np.intp)
        import narwhals as nw

        kinds = nw.from_native(X, eager_only=True).schema.values()
        flags = [not (kind.is_numeric() or kind == nw.Boolean) for kind in kinds]
        return np.flatnonzero(flags)
    try:
        columns = [nominal] if isinstance(nominal, str) else list(nominal)
        places = [(names or ()).index(c) if isinstance(c, str) else c for c in columns]
        return np.unique(np.arange(width)[places]).astype(np.intp)
    except (TypeError, ValueError, IndexError):
        raise ResamplingError.of_nominal(nominal, width) from None


def _numeric_columns(X: Any, numeric: Places, names: tuple[str, ...] | None) -> Features:
    """Return the numeric columns (N, p) as float32 or float64, or CSR; raise if not finite."""
    if not len(numeric) and not is_sparse(X):
        return np.zeros((X.shape[0], 0))
    columns = X
    if is_sparse(X):
        numbers = canonical_rows(X)
    else:
        if len(numeric) < X.shape[1] and names is not None:
            import narwhals as nw

            columns = nw.from_native(X, eager_only=True)[:, numeric.tolist()].to_native()
        elif len(numeric) < X.shape[1]:
            columns = X[:, numeric]
        numbers = as_features(columns)[0][:]
    numbers = numbers if numbers.dtype.kind == "f" else numbers.astype(np.float64)
    cells = numbers.data if is_sparse(numbers) else numbers
    if not np.isfinite(cells.sum(dtype=np.float64)):
        labels = numbered_names(X.shape[1]) if names is None else names
        block = Block(numbers, np.zeros(numbers.shape[0], dtype=np.uint8))
        block.raise_bad_cell([labels[j] for j in numeric])
    return numbers


def _category_codes(X: Any, place: int, names: tuple[str, ...] | None) -> npt.NDArray[np.intp]:
    """Return the category code of each row (N,) in one column of any type."""
    name, missing = f"x{place}", 0
    if names is None:
        column = np.asarray(X[:, place])
    else:
        import narwhals as nw

        series = nw.from_native(X, eager_only=True)[:, place]
        name, missing, column = names[place], series.null_count(), np.asarray(series.to_numpy())
    if not missing:  # NaN and NaT: the values that differ from themselves
        missing = sum(cell is None or cell != cell for cell in column.tolist())
    if missing:
        raise ResamplingError.nominal_missing(name, int(missing))
    if column.dtype.kind != "O":
        return np.unique(column, return_inverse=True)[1].astype(np.intp)
    codes: dict[Any, int] = {}
    # True and 1 are different categories
    cells = ((isinstance(cell, bool), cell) for cell in column.tolist())
    return np.array([codes.setdefault(cell, len(codes)) for cell in cells], dtype=np.intp)


def _donors(nominal: Nominal, chosen: Nominal) -> Nominal:
    """Return the number of a row with the chosen category, for each synthetic row and column."""
    donors = np.empty_like(chosen)
    for j, column in enumerate(nominal.T):
        first = np.zeros(int(column.max()) + 1, dtype=np.intp)
        first[column[::-1]] = np.arange(len(column))[::-1]
        donors[:, j] = first[chosen[:, j]]
    return donors


def _stack_sparse(numbers: Any, parts: list[Any]) -> Any:
    from scipy import sparse

    return sparse.vstack([numbers, *parts], format="csr") if parts else numbers
