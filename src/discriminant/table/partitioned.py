"""A table in parts: rows that lie in files, on workers or in a database, read some at a time.

A Source knows its columns and its parts, and has somebody do the work on them: threads, Dask, Spark
or a database. Work is a pure function of a part whose answers add, so it does not matter who does
it, in what order, or whether some of it is done twice because a worker was lost.

A Plan says how the cells of a part become a Block. It is fixed before rows are read, so that every
worker does the same; what it did not foresee, a class or a level of a category, is told by
`Unforeseen`, and whoever made the plan makes a wider one.

What is done to the rows of a part once they are features: steps of a plan, one after the other.

    ByRow (table.dealing)    say which fold each row goes to
    Without                  leave one fold out: the training part of a cross-validation
    Weighed                  count the rows of each class so many times
    Recoded                  leave out classes that no row has any more
    Expanding                products and kernels of the features

A step is a pure function of a block, and can be pickled: it travels with the plan to the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from discriminant.errors import DiscriminantError
from discriminant.table.blocks import Block, Codes, Floats, Labels, dense
from discriminant.table.cells import Cells, Frame, encode_label_cells
from discriminant.table.encoding import Encoding, UnknownLevel
from discriminant.table.hash_folds import ColumnFolds
from discriminant.table.labels import compact_codes
from discriminant.table.memory import ColumnarFeatures, check_weight

if TYPE_CHECKING:
    from discriminant.table.column_types import ReadOptions


class Additive(Protocol):
    """Something that adds: see `moments.summary`."""

    def __add__(self, other: Self) -> Self: ...


A = TypeVar("A", bound=Additive)
B = TypeVar("B", bound=Additive, covariant=True)
BlockTransform = Callable[
    [Block], Block
]  # what is done to rows once they are features: `table.steps`


class TablePart(Protocol):
    """Some rows of a source that are read together: a row group, a partition, a range of lines.

    A part travels to a worker, so it is small and can be pickled: it says where rows are.
    """

    @property
    def name(self) -> str:
        """Where it lies, for messages."""
        ...

    @property
    def start(self) -> int:
        """Number of its first row in the source where that is known, else 0; for messages."""
        ...

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Its rows, some at a time and in their order; only these columns are read."""
        ...


class Work(Protocol[B]):
    """A pure function of a part, which travels to where the part is; its answers add."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        ...

    def __call__(self, part: TablePart) -> B:
        """What it says of a part."""
        ...


class PartitionedSource(Protocol):
    """A table in parts, and who does the work on them."""

    @property
    def name(self) -> str:
        """What is read, for messages."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found out about it: format, number of files."""
        ...

    def sample(self, columns: Sequence[str], rows: int) -> Frame:
        """Some rows, about so many or all there are, to plan from; from all over the source.

        Where only the first rows of a part are cheap, these do: such a source is `Spread`.
        """
        ...

    def map_reduce(self, work: Work[A]) -> A:
        """The sum of what `work` says of each part, every part counted exactly once."""
        ...


@runtime_checkable
class SystematicSource(Protocol):
    """A source whose sample is the first rows of its parts, and which can do better."""

    def systematic_sample(self, columns: Sequence[str], rows: int) -> Frame:
        """So many rows, at even distances all over the source; all if there are no more."""
        ...


@runtime_checkable
class TextSource(Protocol):
    """A source of texts, whose columns are read as what is wished of them."""

    def with_options(
        self, wishes: ReadOptions, fitted: Encoding | None = None
    ) -> PartitionedSource:
        """The source that reads labels and categories as texts, others as a fit had them."""
        ...


def with_read_options(
    source: PartitionedSource, wishes: ReadOptions, fitted: Encoding | None = None
) -> PartitionedSource:
    """The source with its columns read as what is wished of them, or as a fit had them."""
    return source.with_options(wishes, fitted) if isinstance(source, TextSource) else source


@dataclass(frozen=True, slots=True, eq=False)
class PartialSum(Generic[A]):
    """What was summed over some parts; or why that could not be.

    Errors travel as answers: some engines give back only the text of what a worker raised.
    """

    total: A | None  # None of no rows
    rows: int  # read, whether they count or not
    error: Exception | None = None  # the first in the order of the parts

    @classmethod
    def from_error(cls, fault: Exception, part: TablePart, rows: int) -> PartialSum[A]:
        """Why a part could not be summed; an error says where it lies."""
        if isinstance(fault, DiscriminantError):
            fault = type(fault)(f"{fault} This was in {part.name}.")
        return cls(None, rows, fault)

    def __add__(self, other: PartialSum[A]) -> PartialSum[A]:
        """Over the rows of both."""
        if self.error is not None or other.error is not None:
            return PartialSum(None, self.rows + other.rows, self.error or other.error)
        if self.total is None or other.total is None:
            total = other.total if self.total is None else self.total
            return PartialSum(total, self.rows + other.rows)
        return PartialSum(self.total + other.total, self.rows + other.rows)

    def check(self) -> PartialSum[A]:
        """Itself, or the error."""
        if self.error is not None:
            raise self.error
        return self


@dataclass(frozen=True, slots=True, eq=False)
class ReadPlan:
    """How cells become a block of rows."""

    encoding: Encoding
    labels: Labels  # (K,) sorted and distinct
    target: str
    weight: str | None = None
    fold_column: ColumnFolds | None = None  # how a column deals rows into folds
    transforms: tuple[BlockTransform, ...] = ()  # done to the rows afterwards, one after the other

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to be read."""
        more = [self.weight, None if self.fold_column is None else self.fold_column.column]
        used = [column.name for column in self.encoding.used]
        return tuple(dict.fromkeys([*used, self.target, *(name for name in more if name)]))

    @property
    def is_unmodified(self) -> bool:
        """Whether rows are taken as they come: none left out, weighed again or expanded."""
        return self.fold_column is None and not self.transforms

    def with_transforms(self, *steps: BlockTransform) -> ReadPlan:
        """The plan with more steps."""
        return replace(self, transforms=(*self.transforms, *steps))

    def block(self, frame: Frame, *, apart: bool = False) -> Block:
        """The rows of a frame that count.

        Columns may stay apart if nothing is done then; their numbers are not looked at, and a sum
        that is no number says that they should have been.
        """
        found = self._block(frame, apart and not self.transforms)
        for step in self.transforms:
            if not len(found):
                break
            found = step(found)
        return found

    def _block(self, frame: Frame, apart: bool) -> Block:
        if self.encoding.missing == "drop":
            frame = frame.drop_unlabelled(self.target)
            if not len(frame):
                none = np.zeros((0, len(self.encoding.features)))
                return Block(none, np.zeros(0, dtype=np.uint8), start=frame.start)
        codes = self._codes(frame[self.target], frame.start)
        rows = self.encoding.encode_rows(frame, fitting=True, looking=not apart)
        weight = self._weight(frame)
        fold = None if self.fold_column is None else self.fold_column.fold_numbers(frame)
        features: Any = rows.features
        if rows.incomplete.any() and self.encoding.missing in ("drop", "marginal"):
            keep = np.flatnonzero(~rows.incomplete)
            features = ColumnarFeatures(tuple(column[keep] for column in features.columns))
            codes = codes[keep]
            weight = None if weight is None else weight[keep]
            fold = None if fold is None else fold[keep]
        features = features if apart else features[:]
        return Block(features, codes, weight, start=frame.start, fold=fold)

    def _weight(self, frame: Frame) -> Floats | None:
        if self.weight is None:
            return None
        values, start = frame[self.weight].values, frame.start
        return check_weight(values, len(frame), some=False, start=start)

    def _codes(self, cells: Cells, start: int) -> Codes:
        labels, codes = encode_label_cells(cells, start=start)
        place = np.searchsorted(self.labels, labels)
        place[place == len(self.labels)] = 0
        for label in labels[self.labels[place] != labels][:1].tolist():
            raise UnknownLevel(self.target, label)
        return compact_codes(place, len(self.labels))[codes]


@dataclass(frozen=True, slots=True)
class DropFold:
    """The rows of all folds but one."""

    fold: int

    def __call__(self, block: Block) -> Block:
        """Its rows that stay."""
        assert block.fold is not None
        return block.take(np.flatnonzero(block.fold != self.fold))


@dataclass(frozen=True, slots=True, eq=False)
class Reweight:
    """Every row as often as its class says."""

    factors: Floats  # (K,)

    def __call__(self, block: Block) -> Block:
        """The block with other weights."""
        each = self.factors[block.codes]
        return replace(block, weight=each if block.weight is None else each * block.weight)


@dataclass(frozen=True, slots=True, eq=False)
class Recode:
    """Other codes for the classes."""

    codes: Codes  # (K,) the new code of each class; whatever, of one without rows

    def __call__(self, block: Block) -> Block:
        """The block with other codes."""
        return replace(block, codes=self.codes[block.codes])


@dataclass(frozen=True, slots=True, eq=False)
class Expand:
    """Features of features."""

    basis: Any  # a basis of `table.basis`

    def __call__(self, block: Block) -> Block:
        """The block in more features."""
        return replace(block, features=self.basis.expand(dense(block.features)))
