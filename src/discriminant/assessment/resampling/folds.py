"""Folds: assignment of rows to folds, and the moments of every training set by addition.

    train_f = part_0 + ... + part_{f-1}  +  part_{f+1} + ... + part_{F-1}

with part_f the moments of fold f. Parts are added from both ends, so that about 3F additions give
the moments of every training set. Nothing is subtracted, so no digits are lost, however much of the
weight is in one fold.

A `FoldedTable` is a table divided into folds. `MemoryFolds` holds rows in memory, stratified by
class. `PartitionedFolds` assigns each row of a partitioned table by a hash of its values, on the
worker that reads the row, and keeps the moments of every fold. `held_out_folds.score_folds` fits
and scores models on both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from operator import add
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from discriminant.engines.dispatch import anchor_of, read_classes, read_moments
from discriminant.engines.local import available_threads, one_blas_thread
from discriminant.engines.partitioned_table import AnyTable, PartitionedTable, PlanningSample
from discriminant.errors import (
    ClassMissingWarning,
    InfiniteValueError,
    LabelError,
    MissingValueError,
    OptionError,
    ShapeError,
    in_thread,
    warn,
)
from discriminant.models.rules import Rule
from discriminant.moments.accumulate import MomentsReading
from discriminant.moments.class_moments import DETAILS, ClassMoments, Detail
from discriminant.moments.summary_base import FoldSumsReading
from discriminant.table.blocks import (
    Codes,
    Features,
    Floats,
    Labels,
    Places,
    Schema,
    dense,
    is_sparse,
)
from discriminant.table.hash_folds import (
    ColumnFolds,
    FoldRecordReading,
    RowHashFolds,
    has_repeated_rows,
    row_hashes,
)
from discriminant.table.memory import ColumnarFeatures, Table
from discriminant.table.partitioned_source import DropFold, RenumberClasses, SystematicSource
from discriminant.table.survey import LevelsWork

FoldNumbers = npt.NDArray[np.intp]  # (N,) fold of each row, 0 to F - 1
RowNumbers = npt.NDArray[np.intp]  # row numbers
_DEFAULT_FOLDS = 10
_HASHED = 8192  # rows hashed at a time
_MOST_COPIES = 10.0  # largest mean weight of the distinct rows for which copies stay together


def fold_numbers(
    folds: Any, codes: Codes, *, groups: Any = None, seed: Any = 0, X: Any = None
) -> FoldNumbers:
    """Return the fold that holds out each row.

    Parameters
    ----------
    folds : int, array of shape (N,), splitter or None
        Number of folds, stratified by class; or the fold of each row; or a scikit-learn splitter.
        None means 10 folds, or one for each group.
    codes : array of shape (N,)
        Class of each row.
    groups : array of shape (N,), optional
        Rows of one group are held out together.
    seed
        Seed of the shuffle, if rows are shuffled.
    X : optional
        Rows, passed to a splitter.

    Examples
    --------
    >>> fold_numbers(2, np.array([0, 0, 0, 0, 1, 1])).tolist().count(0)
    3
    >>> fold_numbers(None, np.array([0, 0, 1]), groups=["site", "home", "site"]).tolist()
    [1, 0, 1]
    """
    if groups is not None:
        groups = _check_length("groups", groups, len(codes))
    if hasattr(folds, "get_n_splits"):
        return _splitter_folds(folds, codes, groups, X)
    if folds is not None and np.ndim(folds) == 1:
        return _consecutive(_check_length("folds", folds, len(codes)), "folds")
    if folds is None and groups is not None:
        return _consecutive(groups, "groups")
    n_folds = _DEFAULT_FOLDS if folds is None else folds
    if not isinstance(n_folds, int | np.integer) or not 2 <= n_folds <= len(codes):
        allowed = f"from 2 to the number of rows ({len(codes)}), fold numbers, or a splitter"
        raise OptionError.of("folds", n_folds, allowed)
    if groups is not None:
        from sklearn.model_selection import StratifiedGroupKFold

        splitter = StratifiedGroupKFold(int(n_folds), shuffle=True, random_state=seed)
        return _splitter_folds(splitter, codes, groups, X)
    return stratified_folds(codes, int(n_folds), seed)


def stratified_folds(codes: Codes, folds: int, seed: Any) -> FoldNumbers:
    """Shuffle the rows within each class and assign them to the folds in turn.

    The folds differ by at most one row, within each class and in total.
    """
    order = np.random.default_rng(seed).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(len(codes), dtype=np.intp)
    fold[order] = np.arange(len(codes)) % folds
    return fold


def content_folds(
    features: Features, codes: Codes, weight: Floats | None, folds: int, *, seed: int = 0
) -> FoldNumbers:
    """Assign rows to folds by a hash of their features, stratified by class.

    The order of the rows has no effect, and rows with equal features are held out together, so an
    integer weight is equivalent to repeated rows. Weights must be positive. Copies of a row are
    divided among the folds, by position, in three cases: there are fewer distinct rows than folds,
    more than ten copies of each row on average, or more copies of one row than fit in a fold.

    >>> rows, codes = np.array([[3.0], [1.0], [4.0], [1.5]]), np.array([0, 0, 1, 1])
    >>> fold = content_folds(rows, codes, None, 2)
    >>> np.bincount(fold).tolist(), int(fold[0] + fold[1]), int(fold[2] + fold[3])
    ([2, 2], 1, 1)
    """
    places = content_order(features, codes, weight, folds, seed=seed)
    return stratified_folds(codes, folds, seed) if places is None else places % folds


def content_order(
    features: Features, codes: Codes, weight: Floats | None, folds: int, *, seed: int = 0
) -> FoldNumbers | None:
    """Return the place of each row in an order by class and hash; copies have the same place.

    Return None if copies of a row have to be divided among the folds; see `content_folds`.
    """
    keys = np.concatenate(
        [
            row_hashes(dense(features[lo : lo + _HASHED]), codes[lo : lo + _HASHED] * 0, seed=seed)
            for lo in range(0, len(codes), _HASHED)
        ]
    )
    distinct, first, group = np.unique(keys, return_index=True, return_inverse=True)
    total = np.bincount(group, weight)
    copies = total.sum() / len(distinct)
    if len(distinct) < folds or copies > _MOST_COPIES or total.max() * folds > total.sum():
        return None
    own = codes[first].astype(np.intp)
    if len(distinct) < len(codes):
        pairs, pair = np.unique(group * (int(codes.max()) + 1) + codes, return_inverse=True)
        groups, classes = np.divmod(pairs, int(codes.max()) + 1)
        # if equal rows have several classes, the heaviest class is written last
        heaviest = np.argsort(np.bincount(pair, weight), kind="stable")
        own[groups[heaviest]] = classes[heaviest]
    place = np.empty(len(distinct), dtype=np.intp)
    place[np.lexsort((distinct, own))] = np.arange(len(distinct))
    return place[group]


def time_folds(times: npt.NDArray[Any], folds: int) -> FoldNumbers:
    """Return folds in order of time, for forward chaining. Rows of equal time share a fold.

    The earliest rows, about 1 / (folds + 1) of all, have fold -1: they are never held out.

    >>> time_folds(np.array([3, 1, 2, 2, 4, 5]), 2).tolist()
    [0, -1, 0, 0, 1, 1]
    """
    distinct, index, counts = np.unique(times, return_inverse=True, return_counts=True)
    if not isinstance(folds, int | np.integer) or not 2 <= folds < len(distinct):
        allowed = (
            f"a number from 2 to one less than the number of different times ({len(distinct)})"
        )
        raise OptionError.of("folds", folds, allowed)
    middle = np.cumsum(counts) - 0.5 * counts
    block = np.minimum((middle * (folds + 1) / len(times)).astype(np.intp), folds)
    _, block = np.unique(block, return_inverse=True)
    if block.max() < 2:
        allowed = "a column whose times are not nearly all equal"
        raise OptionError.of("time", f"{len(distinct)} times", allowed)
    return np.asarray(block[index] - 1, dtype=np.intp)


def rows_by_fold(fold: FoldNumbers) -> list[RowNumbers]:
    """Return the row numbers of each fold, in order; rows of fold -1 are left out."""
    if fold.min(initial=0) < 0:
        return rows_by_fold(fold + 1)[1:]
    small = fold.max(initial=0) < 1 << 16  # NumPy then sorts by radix, ten times as fast
    order = np.argsort(fold.astype(np.uint16) if small else fold, kind="stable")
    return np.split(order, np.cumsum(np.bincount(fold))[:-1])


def fold_moments(table: Table, fold: FoldNumbers, detail: Detail) -> list[Any]:
    """Return the moments of each fold, all about one origin and with the same classes."""
    anchor = anchor_of(table)
    parts = (table.take(rows) for rows in rows_by_fold(fold))
    try:
        return [read_classes(part, detail, anchor=anchor) for part in parts]
    except (MissingValueError, InfiniteValueError):
        block = table.block(0, len(table))
        block.raise_bad_cell(table.schema.features)  # errors give the row number in the whole table
        raise


def sums_without_each(parts: Sequence[Any]) -> Iterator[Any]:
    """Yield the sum of all parts but the first, of all but the second, and so on."""
    after = list(parts[1:])
    for f in range(len(after) - 2, -1, -1):
        after[f] = after[f] + after[f + 1]
    before = parts[0]
    yield after[0]
    for f in range(1, len(parts) - 1):
        yield before + after[f]
        before = before + parts[f]
    yield before


def drop_empty_classes(moments: Any) -> Any:
    """Return the moments without the classes that have no rows."""
    present = moments.rows > 0
    return moments if present.all() else moments.classes(moments.labels[present].tolist())


def _splitter_folds(splitter: Any, codes: Codes, groups: Any, X: Any) -> FoldNumbers:
    """Return the fold numbers of a splitter; each row must be held out exactly once."""
    allowed = (
        "a splitter that holds out every row once and trains on all the others, as KFold and "
        "GroupKFold do"
    )
    fold = np.full(len(codes), -1, dtype=np.intp)
    rows = np.zeros((len(codes), 1)) if X is None else X
    for f, (train, test) in enumerate(splitter.split(rows, codes, groups)):
        if (fold[test] >= 0).any() or len(np.union1d(train, test)) < len(codes):
            raise OptionError.of("folds", splitter, allowed)
        fold[test] = f
    if (fold < 0).any():
        raise OptionError.of("folds", splitter, allowed)
    return _consecutive(fold, "folds")


def _check_length(name: str, values: Any, rows: int) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.shape != (rows,):
        raise ShapeError.of_lengths(name, len(array) if array.ndim else 1, rows)
    return array


def _consecutive(values: npt.NDArray[Any], name: str) -> FoldNumbers:
    """Return the index of each value in the sorted distinct values."""
    distinct, fold = np.unique(values, return_inverse=True)
    if len(distinct) < 2:
        raise OptionError.of(
            name,
            distinct.tolist(),
            "two or more distinct values: the rows of each are held out in turn",
        )
    return fold


class FoldedTable(Protocol):
    """A table divided into folds, in memory or partitioned."""

    @property
    def labels(self) -> Labels:
        """Classes of the table, (K,)."""
        ...

    @property
    def n_folds(self) -> int:
        """Number of folds, including empty ones."""
        ...

    def training_moments(self, fold: int, detail: Detail) -> Any:
        """Return the moments of all rows outside the fold, in this detail or a finer one."""
        ...

    def training(self, fold: int) -> AnyTable:
        """Return the table of all rows outside the fold."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class MemoryFolds:
    """Rows in memory, divided into folds."""

    X: Any  # rows in the form in which they are passed to an estimator
    labels: Labels  # (K,) classes
    codes: Codes  # (N,) index of each row's class
    weight: Floats | None  # (N,) weight of each row
    fold: FoldNumbers  # (N,) fold of each row
    rows: tuple[RowNumbers, ...]  # row numbers of each of the F folds
    table: Table | None = None  # the same rows as a table of numbers
    # moments without each of the F folds; empty if models are fitted to rows
    trains: tuple[Any, ...] = ()
    whole: Any = None  # moments of all rows, if they were computed
    # contiguous copies of the rows of each fold, if several models use them
    parts: tuple[Table, ...] = ()
    # whether the training rows of a fold are those of the folds before it, and of fold -1
    forward: bool = False
    # moments of each fold, if they were computed
    sums: tuple[Any, ...] = ()
    # samples of training rows, by their largest number of rows and seed
    _samples: dict[tuple[int, int], list[RowNumbers]] = field(default_factory=dict, init=False)

    @classmethod
    def of_rows(
        cls, X: Any, labels: Labels, codes: Codes, weight: Floats | None, fold: FoldNumbers
    ) -> MemoryFolds:
        """Divide rows into folds, for models that are refitted to the rows outside each fold.

        X may have any type that the models accept.
        """
        return cls(X, labels, codes, weight, fold, tuple(rows_by_fold(fold)))

    @classmethod
    def of_table(
        cls, table: Table, fold: FoldNumbers, *, detail: Detail | None = None
    ) -> MemoryFolds:
        """Divide a table and compute the moments of its folds for one model.

        If `detail` is None, no moments are computed.
        """
        trains: tuple[Any, ...] = ()
        if detail is not None:
            trains = tuple(sums_without_each(fold_moments(table, fold, detail)))
        return cls._over(table, fold, tuple(rows_by_fold(fold)), trains)

    @classmethod
    def shared(
        cls,
        table: Table,
        fold: FoldNumbers,
        *,
        detail: Detail | None = None,
        forward: bool = False,
    ) -> MemoryFolds:
        """Divide a table once for many models.

        The rows of a fold are contiguous; the moments are computed in parallel. With `forward`, a
        model is fitted only to the rows of fold -1 and of the folds before the held-out fold.
        """
        rows = tuple(rows_by_fold(fold))
        if forward:
            rows = (np.flatnonzero(fold < 0), *rows)
        anchor = None if detail is None else anchor_of(table)

        def read(numbers: RowNumbers) -> tuple[Table, ClassMoments | None]:
            part = contiguous_rows(table, numbers)
            moments = None if detail is None else read_moments(part, detail=detail, anchor=anchor)
            return part, moments

        with one_blas_thread(), ThreadPoolExecutor(available_threads()) as pool:
            parts, sums = zip(*pool.map(in_thread(read), rows), strict=True)
        whole = None
        if forward:
            rows, parts = rows[1:], parts[1:]
            trains, whole = ((), None) if detail is None else _sums_before_each(sums)
            folded = cls._over(table, fold, rows, trains, whole, parts)
            return replace(folded, forward=True, sums=sums[1:] if trains else ())
        if detail is None:
            return cls._over(table, fold, rows, (), None, parts)
        trains = tuple(sums_without_each(sums))
        folded = cls._over(table, fold, rows, trains, trains[0] + sums[0], parts)
        return replace(folded, sums=sums)

    @classmethod
    def sample(
        cls, table: Table, fold: FoldNumbers, trains: Sequence[ClassMoments], whole: ClassMoments
    ) -> MemoryFolds:
        """Divide a sample of a larger table into folds, with the moments of the larger table."""
        rows = tuple(np.flatnonzero(fold == f) for f in range(len(trains)))
        parts = tuple(contiguous(table.take(numbers)) for numbers in rows)
        return cls._over(table, fold, rows, tuple(trains), whole, parts)

    @classmethod
    def _over(
        cls,
        table: Table,
        fold: FoldNumbers,
        rows: tuple[RowNumbers, ...],
        trains: tuple[Any, ...],
        whole: Any = None,
        parts: tuple[Table, ...] = (),
    ) -> MemoryFolds:
        rows_and_classes = table.features, table.schema.labels, table.codes, table.weight
        return cls(*rows_and_classes, fold, rows, table, trains, whole, parts)

    def select(self, columns: Places) -> MemoryFolds:
        """Return the same folds with only some of the columns."""
        assert self.table is not None
        schema = self.table.schema
        names = tuple(schema.features[j] for j in columns)
        features = self.table.features[:, columns]
        table = replace(self.table, schema=replace(schema, features=names), features=features)
        trains = tuple(train.select(columns.tolist()) for train in self.trains)
        return self._over(table, self.fold, self.rows, trains)

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.rows)

    def training_moments(self, fold: int, detail: Detail) -> Any:
        """Return the moments of all rows outside the fold."""
        return self.trains[fold]

    def training_rows(self, fold: int) -> RowNumbers:
        """Return the row numbers of the training set that belongs to the fold."""
        return np.flatnonzero(self.fold < fold if self.forward else self.fold != fold)

    def training(self, fold: int) -> Table:
        """Return the table of all rows outside the fold."""
        assert self.table is not None
        return self.table.take(self.training_rows(fold))

    def held_out(self, fold: int) -> Any:
        """Return the rows of the fold, in the form in which they are passed to a model."""
        if self.parts:
            return self.parts[fold].features
        return self.take(self.rows[fold])

    def take(self, rows: RowNumbers) -> Any:
        """Return the rows with these numbers, in the form in which they are passed to a model."""
        if self.table is None:
            return _safe_indexing(self.X, rows)
        return contiguous_rows(self.table, rows).features

    def training_samples(self, max_rows: int, seed: int) -> list[RowNumbers]:
        """Sample row numbers outside each fold, at most `max_rows`, without replacement."""
        if (max_rows, seed) not in self._samples:
            generator = np.random.default_rng(seed)
            self._samples[max_rows, seed] = [
                sample_rows(self.training_rows(f), max_rows, generator) for f in range(self.n_folds)
            ]
        return self._samples[max_rows, seed]

    def largest_training_sample(self, max_rows: int) -> int:
        """Return the largest number of rows that a model is fitted to in any fold."""
        return min(max_rows, len(self.codes) - min(map(len, self.rows)))


def _sums_before_each(sums: Sequence[Any]) -> tuple[tuple[Any, ...], Any]:
    """For each part but the first, return the sum of all earlier parts; also return the total."""
    before = list(accumulate(sums, add))
    return tuple(before[:-1]), before[-1]


def sample_rows(rows: RowNumbers, max_rows: int, generator: np.random.Generator) -> RowNumbers:
    """Sample at most `max_rows` of the rows without replacement, in order."""
    if len(rows) <= max_rows:
        return rows
    return np.sort(generator.choice(rows, max_rows, replace=False))


def contiguous(part: Table) -> Table:
    """Copy the rows to C order in double precision, in which they are scored fastest."""
    if is_sparse(part.features):
        return part
    features = np.ascontiguousarray(dense(part.features), dtype=np.float64)
    return Table(part.schema, features, part.codes, part.weight, part.responses)


def contiguous_rows(table: Table, rows: RowNumbers) -> Table:
    """Return the given rows of a table in C order in double precision, as `contiguous` does."""
    if not isinstance(table.features, ColumnarFeatures):
        return contiguous(table.take(rows))
    columns = table.features.columns
    features = np.empty((len(rows), len(columns)))
    for lo in range(0, len(rows), _COPIED_ROWS):  # so few rows that they stay in the cache
        piece = slice(lo, lo + _COPIED_ROWS)
        numbers = rows[piece]
        for j, column in enumerate(columns):
            features[piece, j] = column[numbers]
    return Table(
        table.schema,
        features,
        table.codes[rows],
        None if table.weight is None else table.weight[rows],
        None if table.responses is None else table.responses[rows],
    )


_COPIED_ROWS = 4096
_MAX_FOLDS = 1000
_SAMPLE_ROWS = 50_000


@dataclass(frozen=True, eq=False)
class PartitionedFolds:
    """Rows of a partitioned table, divided into folds on the workers that read them."""

    rows: PartitionedTable  # table whose plan assigns the folds
    parts: tuple[ClassMoments, ...]  # moments of each of the F folds
    trains: tuple[ClassMoments, ...]  # moments without each of the F folds
    sample_fold: Places  # fold of each row of the sample in memory

    @classmethod
    def of(
        cls,
        rows: PartitionedTable,
        folds: Any = None,
        *,
        groups: Any = None,
        seed: int = 0,
        detail: Detail,
    ) -> PartitionedFolds:
        """Assign the folds and compute the moments of each fold, in one pass.

        Parameters
        ----------
        folds
            Number of folds (default 10), assigned by a hash of each row's values; or the name of a
            column, with one fold for each of its values.
        groups
            Name of a column whose equal values stay together: one fold for each value, or `folds`
            folds in all.
        seed
            Seed of the hash.
        detail
            Detail of the moments.
        """
        if not isinstance(seed, int | np.integer) or not 0 <= seed < 1 << 63:
            raise OptionError.of("seed", seed, "a whole number, 0 or more")
        if rows.plan.encoding.missing == "em":
            allowed = (
                "'drop', 'mean' or 'indicator' to hold out folds of a partitioned table. For rows "
                "in memory, Encoded(LDA(), missing='em') can be cross-validated"
            )
            raise OptionError.of("missing", "em", allowed)
        rows, n_folds, sample_fold = _assign_folds(rows, folds, groups, int(seed))
        schema, anchor = rows.schema, rows.moments.anchor
        reading = MomentsReading(schema.labels, schema.features, anchor, detail)
        sums = rows.fold(FoldSumsReading(reading, n_folds)).parts
        empty = ClassMoments.empty(schema.labels, schema.features, detail=detail, anchor=anchor)
        parts = tuple(empty if part is None else part for part in sums)
        if sum(bool(part.rows.any()) for part in parts) < 2:
            raise OptionError.of("folds", folds, "a choice for which at least two folds have rows")
        trains = tuple(sums_without_each(parts))
        whole = trains[0] + parts[0]
        warn_classes_in_one_fold(np.array([part.rows for part in parts]), schema.labels)
        return cls(replace(rows, moments=whole), parts, trains, sample_fold)

    @property
    def labels(self) -> Labels:
        """Classes of the table, (K,)."""
        return self.rows.schema.labels

    @property
    def n_folds(self) -> int:
        """Number of folds, including empty ones."""
        return len(self.parts)

    @property
    def filled(self) -> list[int]:
        """Folds that have rows."""
        return [f for f, part in enumerate(self.parts) if part.rows.any()]

    def training_moments(self, fold: int, detail: Detail) -> ClassMoments:
        """Return the moments of all rows outside the fold."""
        return self.trains[fold].reduce(detail)

    def training(self, fold: int) -> PartitionedTable:
        """Return the partitioned table of all rows outside the fold.

        Classes without rows outside the fold are dropped.
        """
        rows, train = self.rows, self.trains[fold]
        present = train.rows > 0
        codes = np.maximum(np.cumsum(present) - 1, 0)
        steps = (DropFold(fold),) if present.all() else (DropFold(fold), RenumberClasses(codes))
        schema = replace(rows.schema, labels=rows.schema.labels[present])
        others = rows.sample.take(np.flatnonzero(self.sample_fold != fold))
        in_memory = Table(schema, others.features, codes[others.codes], others.weight)
        return replace(
            rows,
            schema=schema,
            plan=rows.plan.with_transforms(*steps),
            row_sample=PlanningSample(in_memory),
            moments=drop_empty_classes(train),
        )

    @cached_property
    def in_memory(self) -> MemoryFolds:
        """Sample of rows in memory, in the same folds, with the moments of the whole table."""
        fold = self.sample_fold.astype(np.intp, copy=False)
        return MemoryFolds.sample(self.rows.sample, fold, self.trains, self.rows.moments)


def warn_classes_in_one_fold(count: npt.NDArray[Any], labels: Labels) -> None:
    """Warn about every class whose rows are all in one fold.

    `count` holds the number of rows of each fold and class, (F, K).
    """
    for k in np.flatnonzero((count > 0).sum(axis=0) == 1):
        f = int(np.flatnonzero(count[:, k])[0])
        warn(ClassMissingWarning.of_class(labels[k], f, int(count[f, k])))


def check_training_classes(present: npt.NDArray[np.bool_], labels: Labels) -> None:
    """Raise `LabelError` if the rows outside a fold are of one class.

    `present` (K,) tells which classes have rows outside the fold.
    """
    if present.sum() == 1 < len(labels):
        raise LabelError.one_class_in_training(labels[~present].tolist(), labels[present][0])


def class_counts(
    codes: Codes, weight: Floats | None, labels: Labels, fold: FoldNumbers
) -> npt.NDArray[Any]:
    """Count the rows of positive weight of each class in each fold, (F, K)."""
    F, K = int(fold.max()) + 1, len(labels)
    positive = None if weight is None else weight > 0
    return np.bincount(fold * K + codes, positive, minlength=F * K).reshape(F, K)


def least_detail(details: Iterable[Detail]) -> Detail:
    """Return the lowest detail of moments that includes all of these details."""
    details = set(details)
    if details == {"diagonal"} or not details:
        return "diagonal" if details else "pooled"
    top: Detail = max(details, key=DETAILS.index)
    return "class" if top == "pooled" and "diagonal" in details else top


def check_folds(folds: Any, rows: PartitionedTable) -> None:
    """Raise an error, before any work starts, if the folds are invalid."""
    if isinstance(folds, str):
        check_column(folds, rows, "folds")
    else:
        _check_n_folds(folds, rows)


def check_column(name: str, rows: PartitionedTable, option: str) -> None:
    """Raise an error unless a partitioned table has the column."""
    if name not in rows.source.names:
        allowed = f"a number, or one of the columns of {rows.source.name}"
        raise OptionError.of(option, name, allowed)


def _assign_folds(
    rows: PartitionedTable, folds: Any, groups: Any, seed: int
) -> tuple[PartitionedTable, int, Places]:
    """Return the table with assigned folds, the number of folds, and the folds of its sample."""
    column = folds if isinstance(folds, str) else groups
    if column is None:
        n_folds = _check_n_folds(folds, rows)
        assign = RowHashFolds(n_folds, seed)
        rows = replace(rows, plan=rows.plan.with_transforms(assign))
        return rows, n_folds, _sample_folds(rows, assign)
    check_column(column, rows, "folds" if column is folds else "groups")
    if column is folds or folds is None:
        return _sample_with_column(rows, _level_folds(rows, column))
    n_folds = _check_n_folds(folds, rows)
    return _sample_with_column(rows, ColumnFolds(column, folds=n_folds, seed=seed))


def _sample_folds(rows: PartitionedTable, assign: RowHashFolds) -> Places:
    """Return the fold of each row of the sample.

    If the sample contains all rows of the table, each row has the same fold here as when the
    table is read.
    """
    block = rows.sample.block(0, len(rows.sample))
    fold = None
    if rows.sample_is_complete and has_repeated_rows(block):
        fold = rows.fold(FoldRecordReading()).match(block)
    if fold is None:
        fold = assign(block).fold
    assert fold is not None
    return np.asarray(fold)


def _level_folds(rows: PartitionedTable, column: str) -> ColumnFolds:
    """Return fold numbers: each distinct value of the column is one fold."""
    values = rows.source.map_reduce(LevelsWork(column, _MAX_FOLDS)).check().total
    levels = () if values is None else tuple(sorted(values.texts))
    if not 2 <= len(levels) <= _MAX_FOLDS:
        has = len(levels) if len(levels) <= _MAX_FOLDS else "more"
        allowed = (
            f"a column of 2 to {_MAX_FOLDS} values ('{column}' has {has}); to keep rows of "
            "one value together, pass groups= and a number of folds"
        )
        raise OptionError.of("folds", column, allowed)
    return ColumnFolds(column, levels)


def _sample_with_column(
    rows: PartitionedTable, fold_column: ColumnFolds
) -> tuple[PartitionedTable, int, Places]:
    """Sample the rows again, with the column that defines the folds."""
    plan = replace(rows.plan, fold_column=fold_column)
    source = rows.source
    draw = source.systematic_sample if isinstance(source, SystematicSource) else source.sample
    block = plan.block(draw(plan.columns, _SAMPLE_ROWS))
    assert block.fold is not None
    schema = Schema(rows.schema.features, rows.schema.labels, rows.schema.named)
    sample = PlanningSample(Table(schema, block.features, block.codes, block.weight))
    n_folds = len(fold_column.levels) or fold_column.folds
    return replace(rows, plan=plan, row_sample=sample), n_folds, np.asarray(block.fold)


def _check_n_folds(folds: Any, rows: PartitionedTable) -> int:
    n_folds = _DEFAULT_FOLDS if folds is None else folds
    if isinstance(n_folds, bool) or not isinstance(n_folds, int | np.integer):
        allowed = "a number of folds or a column: the rows of a partitioned table have no order"
        raise OptionError.of("folds", type(n_folds).__name__, allowed)
    if not 2 <= n_folds <= min(len(rows), _MAX_FOLDS):
        raise OptionError.of("folds", n_folds, f"from 2 to {min(len(rows), _MAX_FOLDS)}")
    return int(n_folds)


# names of the option for priors: in this package and in scikit-learn
PRIORS = ("prior", "priors", "class_prior")


def is_moment_based(estimator: Any) -> bool:
    """Return whether a classifier, with its current options, is fitted from class moments only."""
    return hasattr(estimator, "rule_from") and not getattr(estimator, "needs_rows", False)


def prior_option(estimator: Any) -> tuple[str, Any] | None:
    """Return name and value of the option for priors, or None if there is no such option."""
    options = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    option = next(((name, options[name]) for name in PRIORS if name in options), None)
    if option is None and getattr(estimator, "_priors_within", False):
        inner = prior_option(estimator.estimator)
        return None if inner is None else (f"estimator__{inner[0]}", inner[1])
    return option


def fit_rule_without(estimator: Any, moments: Any, table: Table, rows: Any) -> Rule:
    """Fit a rule to the moments of all rows except the given ones.

    If these moments have too few correct digits, the rule is fitted to the remaining rows.
    """
    if not estimator.needs_rows_for(moments):
        return cast(Rule, estimator.rule_from(moments))
    others = np.delete(np.arange(len(table)), rows)
    return cast(Rule, estimator.rule_from_table(table.take(others)))


def present_classes(codes: Codes, weight: Floats | None, labels: Labels) -> npt.NDArray[np.bool_]:
    """Return a boolean array (K,): True where the class has a row of positive weight."""
    counted = codes if weight is None else codes[weight > 0]
    return np.bincount(counted, minlength=len(labels)) > 0


def estimator_with_class_order(estimator: Any, order: Sequence[Any] | None) -> Any:
    """Return the estimator with the declared order of the labels (`declared_order`), if any.

    It is set as the option `order` of each OrderedLogistic whose `order` is None, also inside
    wrappers and pipelines.
    """
    if order is None or not hasattr(estimator, "get_params"):
        return estimator
    models = {"": estimator, **estimator.get_params()}
    options = [
        f"{name}__order" if name else "order"
        for name, model in models.items()
        if getattr(model, "_orders_classes", False) and model.order is None
    ]
    return clone(estimator).set_params(**dict.fromkeys(options, order)) if options else estimator


def restrict_prior(estimator: Any, present: npt.NDArray[np.bool_], labels: Labels) -> Any:
    """Return the estimator; a given option for priors is restricted to the present classes."""
    if present.all():
        return estimator
    option = prior_option(estimator)
    if option is None or option[1] is None:
        return estimator
    name, prior = option
    if isinstance(prior, Mapping):
        names = labels[present].tolist()
        total = sum(prior.get(label, 0.0) for label in names)
        restricted: Any = {label: prior[label] / total for label in names if label in prior}
    elif np.shape(prior) != present.shape:
        return estimator
    else:
        restricted = np.asarray(prior, dtype=np.float64)[present]
        restricted = restricted / restricted.sum()
    return clone(estimator).set_params(**{name: restricted})
