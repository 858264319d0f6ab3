"""Dask: parts are partitions, summed on whatever scheduler the user has.

    delayed(work)(partition) for each, added by the same tree as everywhere, as one graph

Tasks are pure: one that was lost with its worker is done again and gives the same bits. Rows never
come to the client, but for the sample that a plan is made from.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from discriminant.engines.sampling import systematic_positions
from discriminant.engines.summation import tree_sum
from discriminant.errors import ColumnNamesError, DiscriminantError, EngineError, ShapeError
from discriminant.table.blocks import numbered_names
from discriminant.table.cells import Cells, Frame, to_frame
from discriminant.table.partitioned import Additive, TablePart, Work

A = TypeVar("A", bound=Additive)
_BATCH = 1 << 16  # rows of a frame
_UNEVEN = 4  # times the mean length that a partition may have and be drawn from fully
_TARGET, _WEIGHT = "y", "weight"  # names for arrays that have none


@dataclass(frozen=True, slots=True, eq=False)
class DaskPartition:
    """Rows that Dask has put into the memory of a worker."""

    number: int
    columns: tuple[Any, ...]  # a frame, or the arrays of features, labels and weights
    names: tuple[str, ...]
    start: int = 0

    @property
    def name(self) -> str:
        """Which it is."""
        return f"partition {self.number}"

    @property
    def rows(self) -> int:
        """How many; arrays of unknown lengths are only known here to have the same."""
        first, *others = (len(one) for one in self.columns)
        for what, found in zip(("y", "sample_weight"), others, strict=False):
            if found != first:
                raise ShapeError.of_lengths(what, found, first)
        return first

    @property
    def frame(self) -> Any:
        """The frame; its columns are called by texts."""
        found = self.columns[0]
        named = all(isinstance(name, str) for name in found.columns)
        return found if named else found.set_axis([str(name) for name in found.columns], axis=1)

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Its rows, some at a time."""
        rows = self.rows
        for lo in range(0, rows, _BATCH):
            yield self._frame(slice(lo, min(lo + _BATCH, rows)), columns)

    def _frame(self, rows: slice, columns: Sequence[str]) -> Frame:
        if len(self.columns) == 1:
            some = self.frame.iloc[rows]
            asked = set(columns)
            return to_frame(some, wanted=lambda names: [n for n in names if n in asked])
        features = np.asarray(self.columns[0][rows])
        found = [_cells(n, features[:, j]) for j, n in enumerate(self.names[: features.shape[1]])]
        for name, values in zip(self.names[features.shape[1] :], self.columns[1:], strict=True):
            found.append(_cells(name, np.asarray(values[rows])))
        return Frame(tuple(c for c in found if c.name in columns), rows.stop - rows.start)


@dataclass(frozen=True, slots=True, eq=False)
class DaskSource:
    """A data frame, delayed frames, or arrays of features, labels and weights."""

    name: str
    names: tuple[str, ...]
    pieces: tuple[tuple[Any, ...], ...] = ()  # delayed frame, or delayed arrays, of each partition
    frame: Any = None  # a data frame instead of pieces
    notes: tuple[str, ...] = ()

    def sample(self, columns: Sequence[str], rows: int) -> Frame:
        """Rows of partitions all over the source, of each in proportion to its length."""
        dask, parts = _dask(), self._parts(columns)
        some = parts[:: max(len(parts) // 16, 1)]
        head = dask.delayed(_some, pure=True)
        frames: list[Any] = []
        for chosen in (some, parts):  # all of them only if those chosen have no rows
            most = min(_UNEVEN * -(-rows // len(chosen)), rows)
            found = [head(part, tuple(columns), most) for part in chosen]
            frames = _by_length([one for one in _computed(found) if one is not None], rows)
            if frames:
                break
        if not frames:
            raise ShapeError.no_rows(0)
        return to_frame(_joined(frames))

    def map_reduce(self, work: Work[A]) -> A:
        """One graph: work on every partition, and the tree that adds."""
        dask = _dask()
        do = dask.delayed(_do, pure=True)
        shared = dask.delayed(work, pure=False)  # sent once, not with every task
        whole = tree_sum([do(shared, part) for part in self._parts(work.columns)])
        found: A = _computed([whole])[0]
        return found

    def _parts(self, columns: Sequence[str]) -> list[Any]:
        """Delayed partitions; of a frame only the columns asked for are read."""
        pieces = self.pieces
        if self.frame is not None:
            some = [name for name in self.frame.columns if str(name) in columns]
            pieces = tuple((piece,) for piece in self.frame[some].to_delayed())
        make = _dask().delayed(DaskPartition, pure=True)
        return [make(number, piece, self.names) for number, piece in enumerate(pieces)]


def accepts(source: Any) -> bool:
    """Whether it is a collection of Dask, or a list of delayed frames."""
    if isinstance(source, list | tuple) and source:
        source = source[0]
    return type(source).__module__.partition(".")[0] in ("dask", "dask_expr")


def as_source(source: Any, *, y: Any = None, weight: Any = None) -> DaskSource:
    """Partitions of a data frame or of arrays.

    Parameters
    ----------
    source
        A Dask data frame that holds the target; a list of delayed pandas frames; or an array (or
        frame) of features, with the labels in `y`.
    y, weight
        Labels and weights, if they are not columns of the source: Dask arrays or series. They are
        then the columns 'y' and 'weight'.
    """
    if isinstance(source, list | tuple):
        return _of_delayed(list(source))
    if y is not None:
        return _of_arrays(source, y, weight)
    if not hasattr(source, "columns"):
        raise EngineError.of_source(f"Dask {type(source).__name__} without labels", ["dask"])
    names = _texts(source.columns)
    return DaskSource("Dask frame", names, frame=source, notes=(_describe(source.npartitions),))


def _of_delayed(pieces: list[Any]) -> DaskSource:
    names = _texts(_computed([_dask().delayed(lambda frame: list(frame.columns))(pieces[0])])[0])
    made = tuple((piece,) for piece in pieces)
    return DaskSource("delayed frames", names, made, notes=(_describe(len(made)),))


def _of_arrays(X: Any, y: Any, weight: Any) -> DaskSource:
    """Features, labels and weights cut at the same rows."""
    names = _texts(X.columns) if hasattr(X, "columns") else None
    X, y, weight = (_array(one) for one in (X, y, weight))
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    others = [one for one in (y, weight) if one is not None]
    for k, one in enumerate(others):
        known = not np.isnan([*X.chunks[0], *one.chunks[0]]).any()
        if known and sum(one.chunks[0]) != sum(X.chunks[0]):
            what = "y" if k == 0 else "sample_weight"
            raise ShapeError.of_lengths(what, int(sum(one.chunks[0])), int(sum(X.chunks[0])))
        if known and one.chunks[0] != X.chunks[0]:
            others[k] = one.rechunk({0: X.chunks[0]})
    features = names or numbered_names(X.shape[1])
    beside = (_TARGET, *([] if weight is None else [_WEIGHT]))
    for name in (name for name in beside if name in features):
        raise EngineError.duplicate_column(name)
    columns = [X.to_delayed()[:, 0], *(one.to_delayed() for one in others)]
    if len({len(one) for one in columns}) > 1:
        raise EngineError.of_chunks([len(one) for one in columns])
    pieces = tuple(zip(*columns, strict=True))
    return DaskSource("Dask array", (*features, *beside), pieces, notes=(_describe(len(pieces)),))


def _array(one: Any) -> Any:
    return one.to_dask_array() if hasattr(one, "to_dask_array") else one


def _texts(columns: Iterable[Any]) -> tuple[str, ...]:
    """Names as texts, each once."""
    names = tuple(str(name) for name in columns)
    for name in (n for n, count in Counter(names).items() if count > 1):
        places = [j for j, other in enumerate(names) if other == name]
        raise ColumnNamesError.of_duplicates(name, places)
    return names


def _computed(delayed: Sequence[Any]) -> Sequence[Any]:
    """What tasks give; one that fails is told by its cause."""
    try:
        return tuple(_dask().compute(*delayed))
    except DiscriminantError:
        raise
    except Exception as fault:
        cause = f"{type(fault).__name__}: {str(fault).strip().partition(chr(10))[0][:300]}"
        raise EngineError.stopped("Dask", cause.rstrip(".: ")) from fault


def _dask() -> Any:
    try:
        return import_module("dask")
    except ModuleNotFoundError:
        raise EngineError.not_installed("Dask", "dask") from None


def _do(work: Work[A], part: TablePart) -> A:
    return work(part)


def _some(part: DaskPartition, columns: Sequence[str], rows: int) -> Any:
    """How many rows there are, and some as an Arrow table; None of an empty partition."""
    import pyarrow as pa

    count = part.rows
    if not count:
        return None
    places = systematic_positions(count, rows)
    if len(part.columns) == 1:
        some = part.frame.iloc[places][list(columns)]
        return count, pa.Table.from_pandas(some, preserve_index=False)
    taken = [one[places] for one in part.columns]
    features = np.asarray(taken[0])
    values = [*features.T, *(np.asarray(one) for one in taken[1:])]
    found = dict(zip(part.names, values, strict=True))
    return count, pa.table({name: found[name] for name in columns})


def _by_length(found: Sequence[tuple[int, Any]], rows: int) -> list[Any]:
    """At most so many rows, of each partition as many as its share of all."""
    share = min(rows / max(sum(count for count, _ in found), 1), 1.0)
    return [
        some.take(systematic_positions(len(some), math.ceil(share * count)))
        for count, some in found
    ]


def _joined(frames: Sequence[Any]) -> Any:
    import pyarrow as pa

    return pa.concat_tables(frames, promote_options="permissive")


def _cells(name: str, values: Any) -> Cells:
    if values.dtype.kind in "fiu":
        return Cells(name, "number", values)
    if values.dtype.kind == "b":
        return Cells(name, "boolean", values)
    found = to_frame({name: values})
    return found[name]


def _describe(pieces: int) -> str:
    return f"Dask, {pieces} partition(s)."
