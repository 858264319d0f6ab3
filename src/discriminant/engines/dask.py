"""Dask engine: the partitions of a Dask collection are summed by the user's scheduler.

    delayed(work)(partition) for each partition; the results are added by `tree_sum`, in one graph

Tasks are pure functions: if a task is lost with its worker, it is repeated and gives bitwise the
same result. Rows do not leave the workers, except for the sample that is used to plan the encoding
of columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from discriminant.engines.sampling import Rows, systematic_positions
from discriminant.engines.summation import check_unique_names, tree_sum
from discriminant.errors import DiscriminantError, EngineError, ShapeError
from discriminant.table.blocks import numbered_names
from discriminant.table.column_cells import ColumnCells, Frame, frame_from_dataframe
from discriminant.table.partitioned_source import Additive, TablePart, Work

A = TypeVar("A", bound=Additive)
_BATCH = 1 << 16  # rows of a frame
_UNEVEN = 4  # largest sample of a partition, as a multiple of the mean
_TARGET, _WEIGHT = "y", "weight"  # column names of labels and weights that are given as arrays


@dataclass(frozen=True, slots=True, eq=False)
class DaskPartition:
    """Rows of a Dask collection in the memory of a worker."""

    number: int
    columns: tuple[Any, ...]  # a data frame, or arrays of features, labels and weights
    names: tuple[str, ...]
    start: int = 0

    @property
    def name(self) -> str:
        """Name of the partition, for messages."""
        return f"partition {self.number}"

    @property
    def rows(self) -> int:
        """Number of rows. Raises ShapeError if the arrays have different lengths."""
        rows, *others = map(len, self.columns)
        for option, length in zip(("y", "sample_weight"), others, strict=False):
            if length != rows:
                raise ShapeError.of_lengths(option, length, rows)
        return rows

    @property
    def frame(self) -> Any:
        """The data frame, with column names converted to strings."""
        frame = self.columns[0]
        if all(isinstance(name, str) for name in frame.columns):
            return frame
        return frame.set_axis([str(name) for name in frame.columns], axis=1)

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Yield the rows as several frames."""
        rows = self.rows
        for lo in range(0, rows, _BATCH):
            yield self._frame(slice(lo, min(lo + _BATCH, rows)), columns)

    def _frame(self, rows: slice, columns: Sequence[str]) -> Frame:
        wanted = set(columns)
        if len(self.columns) == 1:
            frame = self.frame.iloc[rows]
            return frame_from_dataframe(
                frame, wanted=lambda names: [n for n in names if n in wanted]
            )
        values = self.values(rows)
        cells = (_cells(name, values[name]) for name in self.names if name in wanted)
        return Frame(tuple(cells), rows.stop - rows.start)

    def values(self, rows: slice | Rows) -> dict[str, npt.NDArray[Any]]:
        """Return the given rows as arrays by column name; the partition must consist of arrays."""
        features, *others = (np.asarray(array[rows]) for array in self.columns)
        return dict(zip(self.names, (*features.T, *others), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class DaskSource:
    """A Dask data frame, a list of delayed frames, or arrays of features, labels and weights."""

    name: str
    names: tuple[str, ...]
    partitions: tuple[tuple[Any, ...], ...] = ()  # delayed frame or arrays of each
    frame: Any = None  # a data frame instead of partitions
    notes: tuple[str, ...] = ()

    def sample(self, columns: Sequence[str], rows: int) -> Frame:
        """Return a sample of rows, from each partition in proportion to its length."""
        import pyarrow as pa

        parts = self._parts(columns)
        sample = _dask().delayed(_sample_partition, pure=True)
        spread = parts[:: max(len(parts) // 16, 1)]
        for chosen in (spread, parts):  # if the chosen parts are empty, all parts are sampled
            limit = min(_UNEVEN * -(-rows // len(chosen)), rows)
            samples = _compute([sample(part, tuple(columns), limit) for part in chosen])
            tables = _thin([sample for sample in samples if sample is not None], rows)
            if tables:
                return frame_from_dataframe(pa.concat_tables(tables, promote_options="permissive"))
        raise ShapeError.no_rows(0)

    def map_reduce(self, work: Work[A]) -> A:
        """Return the sum of the results of all partitions, computed as one graph."""
        dask = _dask()
        apply = dask.delayed(_apply, pure=True)
        shared = dask.delayed(work, pure=False)  # sent to the workers once, not with every task
        total = tree_sum([apply(shared, part) for part in self._parts(work.columns)])
        result: A = _compute([total])[0]
        return result

    def _parts(self, columns: Sequence[str]) -> list[Any]:
        """Return the delayed partitions, with only the given columns of a data frame."""
        partitions = self.partitions
        if self.frame is not None:
            selected = [name for name in self.frame.columns if str(name) in columns]
            partitions = tuple((part,) for part in self.frame[selected].to_delayed())
        make = _dask().delayed(DaskPartition, pure=True)
        return [make(number, part, self.names) for number, part in enumerate(partitions)]


def accepts(source: Any) -> bool:
    """Whether a source is a Dask collection, or a list of delayed frames."""
    if isinstance(source, list | tuple) and source:
        source = source[0]
    return type(source).__module__.partition(".")[0] in ("dask", "dask_expr")


def as_source(source: Any, *, y: Any = None, weight: Any = None) -> DaskSource:
    """Return a Dask data frame, or Dask arrays, as a partitioned source.

    Parameters
    ----------
    source : Dask collection or list of delayed frames
        A Dask data frame with the target; a list of delayed pandas frames; or an array (or frame)
        of features, with the labels in `y`.
    y, weight : Dask array or series, optional
        Labels and weights, if they are not columns of the source. Labels and weights become the
        columns 'y' and 'weight'.

    Returns
    -------
    DaskSource
    """
    if isinstance(source, list | tuple):
        column_names = _dask().delayed(lambda frame: list(frame.columns))
        names = check_unique_names(_compute([column_names(source[0])])[0])
        frames = tuple((frame,) for frame in source)
        return DaskSource("delayed frames", names, frames, notes=(_describe(len(frames)),))
    if y is not None:
        return _arrays_source(source, y, weight)
    if not hasattr(source, "columns"):
        raise EngineError.of_source(f"Dask {type(source).__name__} without labels", ["dask"])
    names = check_unique_names(source.columns)
    return DaskSource("Dask frame", names, frame=source, notes=(_describe(source.npartitions),))


def _arrays_source(X: Any, y: Any, weight: Any) -> DaskSource:
    """Return a source of arrays. Labels and weights are rechunked like the features."""
    names = check_unique_names(X.columns) if hasattr(X, "columns") else None
    X, y, weight = (
        array.to_dask_array() if hasattr(array, "to_dask_array") else array
        for array in (X, y, weight)
    )
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    chunks = X.chunks[0]
    vectors = [vector for vector in (y, weight) if vector is not None]
    for k, vector in enumerate(vectors):
        if np.isnan([*chunks, *vector.chunks[0]]).any():
            continue  # lengths are unknown until the chunks are computed
        if sum(vector.chunks[0]) != sum(chunks):
            option = "y" if k == 0 else "sample_weight"
            raise ShapeError.of_lengths(option, int(sum(vector.chunks[0])), int(sum(chunks)))
        if vector.chunks[0] != chunks:
            vectors[k] = vector.rechunk({0: chunks})
    features = names or numbered_names(X.shape[1])
    added = (_TARGET,) if weight is None else (_TARGET, _WEIGHT)
    for name in (name for name in added if name in features):
        raise EngineError.duplicate_column(name)
    columns = [X.to_delayed()[:, 0], *(vector.to_delayed() for vector in vectors)]
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise EngineError.of_chunks(lengths)
    parts = tuple(zip(*columns, strict=True))
    return DaskSource("Dask array", (*features, *added), parts, notes=(_describe(len(parts)),))


def _compute(delayed: Sequence[Any]) -> Sequence[Any]:
    """Return the results of tasks. If a task fails, raise EngineError, which states the cause."""
    try:
        return tuple(_dask().compute(*delayed))
    except DiscriminantError:
        raise
    except Exception as error:
        cause = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:300]}"
        raise EngineError.stopped("Dask", cause.rstrip(".: ")) from error


def _dask() -> Any:
    try:
        return import_module("dask")
    except ModuleNotFoundError:
        raise EngineError.not_installed("Dask", "dask") from None


def _apply(work: Work[A], part: TablePart) -> A:
    return work(part)


def _sample_partition(part: DaskPartition, columns: Sequence[str], rows: int) -> Any:
    """Return the number of rows of a partition and a sample of them as an Arrow table.

    For an empty partition return None.
    """
    import pyarrow as pa

    count = part.rows
    if not count:
        return None
    positions = systematic_positions(count, rows)
    if len(part.columns) == 1:
        sample = part.frame.iloc[positions][list(columns)]
        return count, pa.Table.from_pandas(sample, preserve_index=False)
    values = part.values(positions)
    return count, pa.table({name: values[name] for name in columns})


def _thin(samples: Sequence[tuple[int, Any]], rows: int) -> list[Any]:
    """Return about `rows` rows in total, the same share from each partition."""
    share = min(rows / max(sum(count for count, _ in samples), 1), 1.0)
    return [
        table.take(systematic_positions(len(table), math.ceil(share * count)))
        for count, table in samples
    ]


def _cells(name: str, values: Any) -> ColumnCells:
    if values.dtype.kind in "fiu":
        return ColumnCells(name, "number", values)
    if values.dtype.kind == "b":
        return ColumnCells(name, "boolean", values)
    return frame_from_dataframe({name: values})[name]


def _describe(partitions: int) -> str:
    return f"Dask, {partitions} partition(s)."
