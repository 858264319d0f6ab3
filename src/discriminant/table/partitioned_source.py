"""Partitioned tables: rows in files, on workers or in a database, read part by part.

A `PartitionedSource` knows its columns and its parts, and applies functions to the parts with
threads, Dask, Spark or a database. Such a function, called work, is pure, and its results can be
added. So the sum does not depend on which worker processes a part, in what order, or whether a part
is processed again because a worker was lost.

A `ReadPlan` turns the cells of a part into a `Block`. The plan is fixed before rows are read, so
that every worker does the same. A class or level that is not in the plan raises `LevelNotInPlan`.
The caller then makes a plan that includes the class or level, and reads the rows again.

A plan may have transforms, which are applied to each block one after the other:

    RowHashFolds (table.hash_folds)   assign each row to a fold
    DropFold                          drop one fold, so that its training rows remain
    Reweight                          multiply the weights of each class by a factor
    Recode                            renumber the classes
    SelectFeatures                    keep some of the features
    Expand                            expand the features in a basis

A transform is a pure function of a block. A transform must support pickling, because it is sent to
the workers with the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from discriminant.errors import DiscriminantError
from discriminant.table.blocks import Block, Codes, Floats, Labels, Places, check_weight, dense
from discriminant.table.column_cells import ColumnCells, Frame, encode_label_cells
from discriminant.table.encoding import Encoding, LevelNotInPlan
from discriminant.table.hash_folds import ColumnFolds
from discriminant.table.labels import compact_codes
from discriminant.table.memory import ColumnarFeatures, select_columns

if TYPE_CHECKING:
    from discriminant.table.column_types import ReadOptions


class Additive(Protocol):
    """A value that supports `+`: see `moments.summary_base`."""

    def __add__(self, other: Self) -> Self: ...


A = TypeVar("A", bound=Additive)
B = TypeVar("B", bound=Additive, covariant=True)
BlockTransform = Callable[[Block], Block]


class TablePart(Protocol):
    """Rows of a source that are read together: a row group, a partition, a range of lines.

    A part is sent to a worker, so it is small and can be pickled: it describes where the rows are
    and does not hold them.
    """

    @property
    def name(self) -> str:
        """Position of the part in the source, for messages."""
        ...

    @property
    def start(self) -> int:
        """Number of the part's first row in the source, or 0 if unknown; for messages."""
        ...

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Yield the rows in order, as several frames. Only the given columns are read."""
        ...


class Work(Protocol[B]):
    """A pure function of a part, which is sent to the worker that reads the part.

    The results for different parts can be added.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the work reads."""
        ...

    def __call__(self, part: TablePart) -> B:
        """Return the result for one part."""
        ...


class PartitionedSource(Protocol):
    """A partitioned table, with the engine that runs work on its parts."""

    @property
    def name(self) -> str:
        """Name of the source, for messages."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on how the source is read: format, number of files."""
        ...

    def sample(self, columns: Sequence[str], rows: int) -> Frame:
        """Return about `rows` rows, spread over the source, from which a plan is made.

        If the source has fewer rows, all are returned.

        If a source samples only the first rows of its parts, which is fast, it must also be a
        `SystematicSource`.
        """
        ...

    def map_reduce(self, work: Work[A]) -> A:
        """Return the sum of the results of `work` over all parts.

        Each part is counted exactly once.
        """
        ...


@runtime_checkable
class SystematicSource(Protocol):
    """A source that can also sample evenly spaced rows, which takes longer than `sample`."""

    def systematic_sample(self, columns: Sequence[str], rows: int) -> Frame:
        """Return `rows` evenly spaced rows of the source.

        If the source has fewer rows, all are returned.
        """
        ...


@runtime_checkable
class TextSource(Protocol):
    """A source of text files, whose column types depend on the read options."""

    def with_options(
        self, options: ReadOptions, fitted: Encoding | None = None
    ) -> PartitionedSource:
        """Return the source with labels and categories read as text.

        Other columns have the kind that they had when the model was fitted.
        """
        ...


def with_read_options(
    source: PartitionedSource, options: ReadOptions, fitted: Encoding | None = None
) -> PartitionedSource:
    """Return the source with columns read by the options, or as when the model was fitted."""
    return source.with_options(options, fitted) if isinstance(source, TextSource) else source


@dataclass(frozen=True, slots=True, eq=False)
class PartialSum(Generic[A]):
    """Sum of results over some parts, or the error that prevented it.

    Errors are returned as values, because some engines transmit only the text of an exception.
    """

    total: A | None  # None if there are no rows
    rows: int  # number of rows read, including rows that were dropped
    error: Exception | None = None  # error of the first part that failed

    @classmethod
    def from_error(cls, error: Exception, part: TablePart, rows: int) -> PartialSum[A]:
        """Return an empty sum with an error; the name of the part is added to the error message."""
        if isinstance(error, DiscriminantError):
            error = type(error)(f"{error} This was in {part.name}.")
        return cls(None, rows, error)

    def __add__(self, other: PartialSum[A]) -> PartialSum[A]:
        """Return the sum over the rows of both operands."""
        rows = self.rows + other.rows
        if self.error is not None or other.error is not None:
            return PartialSum(None, rows, self.error or other.error)
        if self.total is None or other.total is None:
            return PartialSum(other.total if self.total is None else self.total, rows)
        return PartialSum(self.total + other.total, rows)

    def check(self) -> PartialSum[A]:
        """Return self if there is no error; otherwise raise the error."""
        if self.error is not None:
            raise self.error
        return self


@dataclass(frozen=True, slots=True, eq=False)
class ReadPlan:
    """Plan of how the cells of a frame are converted to a block of rows."""

    encoding: Encoding
    labels: Labels  # (K,) sorted and distinct
    target: str
    weight: str | None = None
    fold_column: ColumnFolds | None = None  # if folds are defined by a column
    drop_unlabelled: bool = False
    transforms: tuple[BlockTransform, ...] = ()  # applied to the block in this order

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns to read."""
        more = [self.weight, None if self.fold_column is None else self.fold_column.column]
        used = [column.name for column in self.encoding.used]
        return tuple(dict.fromkeys([*used, self.target, *(name for name in more if name)]))

    @property
    def is_unmodified(self) -> bool:
        """Whether the plan has neither folds nor transforms."""
        return self.fold_column is None and not self.transforms

    def with_transforms(self, *transforms: BlockTransform) -> ReadPlan:
        """Return the plan with further transforms appended."""
        return replace(self, transforms=(*self.transforms, *transforms))

    def block(self, frame: Frame, *, columnar: bool = False) -> Block:
        """Convert a frame to a block of rows, without the rows that are dropped.

        With `columnar`, and if there are no transforms, the columns may remain separate arrays. The
        numbers in such columns are not checked; a missing number is detected later, as a sum that
        is not finite.
        """
        block = self._encode(frame, columnar and not self.transforms)
        for transform in self.transforms:
            if not len(block):
                break
            block = transform(block)
        return block

    def _encode(self, frame: Frame, columnar: bool) -> Block:
        if self.drop_unlabelled:
            frame = frame.drop_unlabelled(self.target)
            if not len(frame):
                empty = np.zeros((0, len(self.encoding.features)))
                return Block(empty, np.zeros(0, dtype=np.uint8), start=frame.start)
        codes = self._codes(frame[self.target], frame.start)
        rows = self.encoding.encode_rows(frame, fitting=True, check_finite=not columnar)
        weight = self._weight(frame)
        fold = None if self.fold_column is None else self.fold_column.fold_numbers(frame)
        features: Any = rows.features
        if rows.incomplete.any() and self.encoding.missing in ("drop", "marginal"):
            complete = np.flatnonzero(~rows.incomplete)
            features = ColumnarFeatures(tuple(column[complete] for column in features.columns))
            codes = codes[complete]
            weight = None if weight is None else weight[complete]
            fold = None if fold is None else fold[complete]
        features = features if columnar else features[:]
        return Block(features, codes, weight, start=frame.start, fold=fold)

    def _weight(self, frame: Frame) -> Floats | None:
        if self.weight is None:
            return None
        values = frame[self.weight].values
        return check_weight(values, len(frame), some=False, start=frame.start)

    def _codes(self, cells: ColumnCells, start: int) -> Codes:
        labels, codes = encode_label_cells(cells, start=start)
        known = np.searchsorted(self.labels, labels)
        known[known == len(self.labels)] = 0
        for label in labels[self.labels[known] != labels][:1].tolist():
            raise LevelNotInPlan(self.target, label)
        return compact_codes(known, len(self.labels))[codes]


@dataclass(frozen=True, slots=True)
class DropFold:
    """Drop the rows of one fold."""

    fold: int

    def __call__(self, block: Block) -> Block:
        """Return the rows of all other folds."""
        assert block.fold is not None
        return block.take(np.flatnonzero(block.fold != self.fold))


@dataclass(frozen=True, slots=True, eq=False)
class ReweightClasses:
    """Multiply the weight of every row by the factor of its class."""

    factors: Floats  # (K,)

    def __call__(self, block: Block) -> Block:
        """Return the block with new weights."""
        factor = self.factors[block.codes]
        return replace(block, weight=factor if block.weight is None else factor * block.weight)


@dataclass(frozen=True, slots=True, eq=False)
class SelectFeatures:
    """Keep some of the features."""

    places: Places

    def __call__(self, block: Block) -> Block:
        """Return the block with these features."""
        return replace(block, features=select_columns(block.features, self.places))


@dataclass(frozen=True, slots=True, eq=False)
class RenumberClasses:
    """Renumber the classes."""

    codes: Codes  # (K,) new code of each class; arbitrary for classes without rows

    def __call__(self, block: Block) -> Block:
        """Return the block with new codes."""
        return replace(block, codes=self.codes[block.codes])


@dataclass(frozen=True, slots=True, eq=False)
class ExpandBasis:
    """Expand the features in a basis."""

    basis: Any  # a basis of `table.basis`

    def __call__(self, block: Block) -> Block:
        """Return the block with the expanded features."""
        return replace(block, features=self.basis.expand(dense(block.features)))
