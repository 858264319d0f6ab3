"""SMOTE for arrays, sparse matrices and data frames: synthetic rows of the type of the input.

Rows are split into numbers, which are interpolated, and categories, which are chosen by a vote of
the neighbours; the algorithm is in `imbalance.smote`.
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
    along,
    draw_segments,
    mixed_neighbours,
    neighbours_of,
    nominal_neighbours,
    value_differences,
    voted,
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

    X: Any  # (N, d) as given
    names: tuple[str, ...] | None  # d, of a frame
    numeric: Places  # (p,) places of the columns that are numbers
    numbers: Features  # (N, p) floats, or CSR
    nominal: Nominal  # (N, d - p) categories, in the order of the columns

    @classmethod
    def of(cls, X: Any, nominal: Any) -> SmoteTable:
        """Split rows into columns; numeric cells must be finite."""
        frame = not is_sparse(X) and not isinstance(X, np.ndarray)
        if is_sparse(X) and nominal is not None:
            raise ResamplingError.nominal_sparse()
        given = getattr(X, "column_names", None) or X.columns if frame else ()
        names = tuple(map(str, given)) if frame else None
        if len(X.shape) != 2:
            raise ShapeError.not_two_dimensional(len(X.shape))
        found = _nominal_places(X, nominal, names)
        numeric = np.setdiff1d(np.arange(X.shape[1]), found)
        numbers = _numbers(X, numeric, names)
        columns = [_categories(X, int(j), names) for j in found]
        none = np.zeros((X.shape[0], 0), dtype=np.intp)
        return cls(X, names, numeric, numbers, np.column_stack(columns) if columns else none)

    def oversample(
        self,
        codes: Codes,
        labels: Labels,
        target: Target,
        neighbours: int,
        random: np.random.RandomState,
    ) -> tuple[Any, Codes]:
        """Return the rows followed by synthetic ones, of the same type, and all class codes."""
        each = rows_by_class(codes, len(labels))
        more = np.maximum(target.wanted - np.array([len(rows) for rows in each]), 0)
        room, filled = self._room(int(more.sum())), len(codes)
        parts, donors = [], [np.zeros((0, self.nominal.shape[1]), dtype=np.intp)]
        differences = None
        if not len(self.numeric):
            differences = value_differences(self.nominal, codes, len(labels))
        for k in np.flatnonzero(more):
            near = self._near(each[k], differences, neighbours, labels[k])
            made = draw_segments(near, int(more[k]), random)
            if room is None:
                parts.append(along(self.numbers[each[k]], made))
            elif len(self.numeric):
                along(self.numbers[each[k]], made, out=room[filled : filled + int(more[k])])
            filled += int(more[k])
            if self.nominal.shape[1]:
                if differences is not None:  # the row itself votes too
                    near = np.hstack([np.arange(len(near))[:, None], near])
                chosen = voted(self.nominal[each[k]], near, made.start, random)
                donors.append(_donors(self.nominal, chosen))
        new = np.repeat(np.arange(len(labels)), more).astype(codes.dtype)
        whole = _stacked(self.numbers, parts) if room is None else room
        return self._joined(whole, np.concatenate(donors)), np.concatenate([codes, new])

    def _near(self, rows: Places, differences: Any, neighbours: int, label: object) -> Places:
        """(n, k) nearest neighbours of the rows of one class."""
        numbers, nominal = self.numbers[rows], self.nominal[rows]
        if differences is not None:
            return nominal_neighbours(nominal, differences, neighbours, label)
        with one_blas_thread():
            threads = available_threads()
            if nominal.shape[1]:
                return mixed_neighbours(numbers, nominal, neighbours, label, threads=threads)
            return neighbours_of(numbers, neighbours, label, threads=threads)

    def _room(self, more: int) -> npt.NDArray[Any] | None:
        """Array with the rows and room for more; None for sparse rows."""
        if is_sparse(self.numbers):
            return None
        N, p = self.numbers.shape
        room = np.empty((N + more, p), dtype=self.numbers.dtype)
        room[:N] = self.numbers
        return room

    def _joined(self, numbers: Any, donors: Nominal) -> Any:
        """Rows of the type of the input; `donors` are rows with the chosen categories."""
        if self.names is not None:
            return self._frame(numbers, donors)
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

    def _frame(self, numbers: Any, donors: Nominal) -> Any:
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
        if backend.is_pandas():  # synthetic rows have no index
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
        wanted = [nominal] if isinstance(nominal, str) else list(nominal)
        places = [(names or ()).index(one) if isinstance(one, str) else one for one in wanted]
        found = np.unique(np.arange(width)[places])
    except (TypeError, ValueError, IndexError):
        raise ResamplingError.of_nominal(nominal, width) from None
    return found.astype(np.intp)


def _numbers(X: Any, numeric: Places, names: tuple[str, ...] | None) -> Features:
    """(N, p) finite float32 or float64 numbers, or CSR."""
    if is_sparse(X):
        X = canonical_rows(X)
        found = X if X.dtype.kind == "f" else X.astype(np.float64)
    else:
        part = X if len(numeric) == X.shape[1] else None
        if part is None and names is not None:
            import narwhals as nw

            part = nw.from_native(X, eager_only=True)[:, numeric.tolist()].to_native()
        elif part is None:
            part = X[:, numeric]
        if not len(numeric):
            return np.zeros((X.shape[0], 0))
        found = as_features(part)[0][:]
        found = found if found.dtype.kind == "f" else found.astype(np.float64)
    called = numbered_names(X.shape[1]) if names is None else names
    cells = found.data if is_sparse(found) else found
    if not np.isfinite(cells.sum(dtype=np.float64)):
        Block(found, np.zeros(found.shape[0], dtype=np.uint8)).raise_bad_cell(
            [called[j] for j in numeric]
        )
    return found


def _categories(X: Any, place: int, names: tuple[str, ...] | None) -> npt.NDArray[np.intp]:
    """(N,) category code of each row in one column of any type."""
    called, absent = f"x{place}", 0
    if names is None:
        column = np.asarray(X[:, place])
    else:
        import narwhals as nw

        series = nw.from_native(X, eager_only=True)[:, place]
        called, absent, column = names[place], series.null_count(), np.asarray(series.to_numpy())
    if not absent:  # NaN and NaT differ from themselves
        absent = sum(cell is None or cell != cell for cell in column.tolist())
    if absent:
        raise ResamplingError.nominal_missing(called, int(absent))
    if column.dtype.kind != "O":
        return np.unique(column, return_inverse=True)[1].astype(np.intp)
    seen: dict[Any, int] = {}  # True is not 1
    each = ((isinstance(cell, bool), cell) for cell in column.tolist())
    return np.array([seen.setdefault(cell, len(seen)) for cell in each], dtype=np.intp)


def _donors(nominal: Nominal, wanted: Nominal) -> Nominal:
    """(m, q) for each synthetic row and column, a row with the chosen category."""
    found = np.empty_like(wanted)
    for j, column in enumerate(nominal.T):
        first = np.zeros(int(column.max()) + 1, dtype=np.intp)
        first[column[::-1]] = np.arange(len(column))[::-1]
        found[:, j] = first[wanted[:, j]]
    return found


def _stacked(numbers: Any, parts: list[Any]) -> Any:
    from scipy import sparse

    return sparse.vstack([numbers, *parts], format="csr") if parts else numbers
