"""A table in partitions: rows in files, on workers or in a database, read some at a time.

A PartitionedSource knows its columns and its parts, and runs work on them with threads, Dask, Spark
or a database. Work is a pure function of a part whose results add, so it does not matter who runs
it, in what order, or whether some of it runs twice because a worker was lost.

A ReadPlan turns the cells of a part into a Block. It is fixed before rows are read, so that every
worker does the same. A class or level that it does not know raises `UnknownLevel`; the caller then
makes a wider plan and reads again.

The transforms of a plan are applied to its blocks one after the other:

    RowHashFolds (table.hash_folds)   assign each row to a fold
    DropFold                          leave one fold out: the training rows of cross-validation
    Reweight                          multiply the weights of each class by a factor
    Recode                            renumber the classes
    Expand                            expand the features in a basis

A transform is a pure function of a block and can be pickled: it travels with the plan to the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from discriminant.errors import DiscriminantError
from discriminant.table.blocks import Block, Codes, Floats, Labels, check_weight, dense
from discriminant.table.cells import Cells, Frame, encode_label_cells
from discriminant.table.encoding import Encoding, UnknownLevel
from discriminant.table.hash_folds import ColumnFolds
from discriminant.table.labels import compact_codes
from discriminant.table.memory import ColumnarFeatures

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

    A part travels to a worker, so it is small and can be pickled: it says where the rows are.
    """

    @property
    def name(self) -> str:
        """Where the part lies, for messages."""
        ...

    @property
    def start(self) -> int:
        """Number of its first row in the source if known, else 0; for messages."""
        ...

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Yield the rows in order, some at a time; only these columns are read."""
        ...


class Work(Protocol[B]):
    """A pure function of a part, which travels to where the part is; its results add."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        ...

    def __call__(self, part: TablePart) -> B:
        """Return the result for one part."""
        ...


class PartitionedSource(Protocol):
    """A table in parts, with the engine that runs work on them."""

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
        """Return about `rows` rows (or all, if fewer) from all over the source, to plan from.

        A source that samples only the first rows of its parts, because these are cheap, is also a
        `SystematicSource`.
        """
        ...

    def map_reduce(self, work: Work[A]) -> A:
        """Return the sum of the results of `work`, every part counted exactly once."""
        ...


@runtime_checkable
class SystematicSource(Protocol):
    """A source that can also sample rows systematically, at more cost than `sample`."""

    def systematic_sample(self, columns: Sequence[str], rows: int) -> Frame:
        """Return `rows` rows at even distances all over the source, or all if fewer."""
        ...


@runtime_checkable
class TextSource(Protocol):
    """A source of texts, whose column types depend on the read options."""

    def with_options(
        self, options: ReadOptions, fitted: Encoding | None = None
    ) -> PartitionedSource:
        """Return the source that reads labels and categories as text, others as at the fit."""
        ...


def with_read_options(
    source: PartitionedSource, options: ReadOptions, fitted: Encoding | None = None
) -> PartitionedSource:
    """Return the source with its columns read by the options, or as at the fit."""
    return source.with_options(options, fitted) if isinstance(source, TextSource) else source


@dataclass(frozen=True, slots=True, eq=False)
class PartialSum(Generic[A]):
    """Sum of results over some parts, or the error that prevented it.

    Errors are returned as values: some engines transmit only the text of what a worker raised.
    """

    total: A | None  # None if there are no rows
    rows: int  # rows read, whether they count or not
    error: Exception | None = None  # the first in the order of the parts

    @classmethod
    def from_error(cls, error: Exception, part: TablePart, rows: int) -> PartialSum[A]:
        """Return an empty sum with the error, which names the part."""
        if isinstance(error, DiscriminantError):
            error = type(error)(f"{error} This was in {part.name}.")
        return cls(None, rows, error)

    def __add__(self, other: PartialSum[A]) -> PartialSum[A]:
        """Return the sum over the rows of both."""
        rows = self.rows + other.rows
        if self.error is not None or other.error is not None:
            return PartialSum(None, rows, self.error or other.error)
        if self.total is None or other.total is None:
            return PartialSum(other.total if self.total is None else self.total, rows)
        return PartialSum(self.total + other.total, rows)

    def check(self) -> PartialSum[A]:
        """Return self, or raise the error."""
        if self.error is not None:
            raise self.error
        return self


@dataclass(frozen=True, slots=True, eq=False)
class ReadPlan:
    """How the cells of a frame become a block of rows."""

    encoding: Encoding
    labels: Labels  # (K,) sorted and distinct
    target: str
    weight: str | None = None
    fold_column: ColumnFolds | None = None  # folds that are defined by a column
    transforms: tuple[BlockTransform, ...] = ()  # applied to the block in this order

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""
        more = [self.weight, None if self.fold_column is None else self.fold_column.column]
        used = [column.name for column in self.encoding.used]
        return tuple(dict.fromkeys([*used, self.target, *(name for name in more if name)]))

    @property
    def is_unmodified(self) -> bool:
        """Whether the plan has neither folds nor transforms."""
        return self.fold_column is None and not self.transforms

    def with_transforms(self, *transforms: BlockTransform) -> ReadPlan:
        """Return the plan with more transforms at the end."""
        return replace(self, transforms=(*self.transforms, *transforms))

    def block(self, frame: Frame, *, apart: bool = False) -> Block:
        """Return the rows of a frame that count, as a block.

        With `apart`, columns may stay separate arrays if there are no transforms. Their numbers are
        then not checked; a missing one shows as a sum that is not finite.
        """
        block = self._encode(frame, apart and not self.transforms)
        for transform in self.transforms:
            if not len(block):
                break
            block = transform(block)
        return block

    def _encode(self, frame: Frame, apart: bool) -> Block:
        if self.encoding.missing == "drop":
            frame = frame.drop_unlabelled(self.target)
            if not len(frame):
                empty = np.zeros((0, len(self.encoding.features)))
                return Block(empty, np.zeros(0, dtype=np.uint8), start=frame.start)
        codes = self._codes(frame[self.target], frame.start)
        rows = self.encoding.encode_rows(frame, fitting=True, looking=not apart)
        weight = self._weight(frame)
        fold = None if self.fold_column is None else self.fold_column.fold_numbers(frame)
        features: Any = rows.features
        if rows.incomplete.any() and self.encoding.missing in ("drop", "marginal"):
            complete = np.flatnonzero(~rows.incomplete)
            features = ColumnarFeatures(tuple(column[complete] for column in features.columns))
            codes = codes[complete]
            weight = None if weight is None else weight[complete]
            fold = None if fold is None else fold[complete]
        features = features if apart else features[:]
        return Block(features, codes, weight, start=frame.start, fold=fold)

    def _weight(self, frame: Frame) -> Floats | None:
        if self.weight is None:
            return None
        values = frame[self.weight].values
        return check_weight(values, len(frame), some=False, start=frame.start)

    def _codes(self, cells: Cells, start: int) -> Codes:
        labels, codes = encode_label_cells(cells, start=start)
        place = np.searchsorted(self.labels, labels)
        place[place == len(self.labels)] = 0
        for label in labels[self.labels[place] != labels][:1].tolist():
            raise UnknownLevel(self.target, label)
        return compact_codes(place, len(self.labels))[codes]


@dataclass(frozen=True, slots=True)
class DropFold:
    """Drop the rows of one fold."""

    fold: int

    def __call__(self, block: Block) -> Block:
        """Return the rows of all other folds."""
        assert block.fold is not None
        return block.take(np.flatnonzero(block.fold != self.fold))


@dataclass(frozen=True, slots=True, eq=False)
class Reweight:
    """Multiply the weight of every row by the factor of its class."""

    factors: Floats  # (K,)

    def __call__(self, block: Block) -> Block:
        """Return the block with new weights."""
        each = self.factors[block.codes]
        return replace(block, weight=each if block.weight is None else each * block.weight)


@dataclass(frozen=True, slots=True, eq=False)
class Recode:
    """Renumber the classes."""

    codes: Codes  # (K,) new code of each class; arbitrary for classes without rows

    def __call__(self, block: Block) -> Block:
        """Return the block with new codes."""
        return replace(block, codes=self.codes[block.codes])


@dataclass(frozen=True, slots=True, eq=False)
class Expand:
    """Expand the features in a basis."""

    basis: Any  # a basis of `table.basis`

    def __call__(self, block: Block) -> Block:
        """Return the block with the expanded features."""
        return replace(block, features=self.basis.expand(dense(block.features)))
