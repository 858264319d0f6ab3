"""Assignment of rows to folds, and the training moments of every fold by addition.

    train_f = part_0 + ... + part_{f-1}  +  part_{f+1} + ... + part_{F-1}

with part_f the moments of fold f. Parts are added from both ends, so that about 3F additions give
every training sum and nothing is ever subtracted: no digit is lost, however much of the weight a
fold holds.

A `FoldedTable` is a table divided into folds. `MemoryFolds` holds rows in memory, stratified by
class; `PartitionedFolds` assigns each row of a partitioned table by a hash of its values, where the
row is, and keeps the moments of every fold. `held_out.score_folds` fits and scores models on
either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from discriminant.engines.dispatch import anchor_of, read_classes, read_moments
from discriminant.engines.local import available_threads, one_blas_thread
from discriminant.engines.partitioned_table import AnyTable, PartitionedTable, RowSample
from discriminant.errors import (
    ClassMissingWarning,
    InfiniteValueError,
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
from discriminant.table.blocks import Codes, Floats, Labels, Places, Schema, dense, is_sparse
from discriminant.table.hash_folds import (
    ColumnFolds,
    ObservedFoldsReading,
    RowHashFolds,
    has_repeated_rows,
)
from discriminant.table.memory import Table
from discriminant.table.partitioned import DropFold, Recode, SystematicSource
from discriminant.table.survey import LevelsWork

FoldNumbers = npt.NDArray[np.intp]  # (N,) each in 0..F-1
RowNumbers = npt.NDArray[np.intp]  # numbers of rows
_FOLDS = 10


def fold_numbers(
    folds: Any, codes: Codes, *, groups: Any = None, seed: Any = 0, X: Any = None
) -> FoldNumbers:
    """The fold that holds out each row.

    Parameters
    ----------
    folds
        How many; or (N,) the fold of each row; or a scikit-learn splitter. None: 10, or one for
        each group.
    codes
        (N,) classes: rows are dealt so that every fold has its share of each.
    groups
        (N,) rows of one group are held out together.
    seed
        Of the shuffle, where rows are dealt.
    X
        Handed on to a splitter.

    Examples
    --------
    >>> fold_numbers(2, np.array([0, 0, 0, 0, 1, 1])).tolist().count(0)
    3
    >>> fold_numbers(None, np.array([0, 0, 1]), groups=["site", "home", "site"]).tolist()
    [1, 0, 1]
    """
    if groups is not None:
        groups = _one_each("groups", groups, len(codes))
    if hasattr(folds, "get_n_splits"):
        return _of_splitter(folds, codes, groups, X)
    if folds is not None and np.ndim(folds) == 1:
        return _numbered(_one_each("folds", folds, len(codes)), "folds")
    if folds is None and groups is not None:
        return _numbered(groups, "groups")
    many = _FOLDS if folds is None else folds
    if not isinstance(many, int | np.integer) or not 2 <= many <= len(codes):
        allowed = f"from 2 to the number of rows ({len(codes)}), fold numbers, or a splitter"
        raise OptionError.of("folds", many, allowed)
    if groups is not None:
        from sklearn.model_selection import StratifiedGroupKFold

        splitter = StratifiedGroupKFold(int(many), shuffle=True, random_state=seed)
        return _of_splitter(splitter, codes, groups, X)
    return stratified_folds(codes, int(many), seed)


def stratified_folds(codes: Codes, folds: int, seed: Any) -> FoldNumbers:
    """Shuffle the rows within their class, then deal them out like cards, class after class.

    Of each class, and in all, the folds' numbers of rows differ by at most one.
    """
    order = np.random.default_rng(seed).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    found = np.empty(len(codes), dtype=np.intp)
    found[order] = np.arange(len(codes)) % folds
    return found


def rows_by_fold(fold: FoldNumbers) -> list[RowNumbers]:
    """The rows of each fold, in order."""
    small = fold.max(initial=0) < 1 << 16  # then they are sorted by their digits, ten times as fast
    order = np.argsort(fold.astype(np.uint16) if small else fold, kind="stable")
    return np.split(order, np.cumsum(np.bincount(fold))[:-1])


def fold_moments(table: Table, fold: FoldNumbers, detail: Detail) -> list[Any]:
    """Moments of the rows of each fold, all about one origin and over the same classes."""
    anchor = anchor_of(table)
    parts = (table.take(rows) for rows in rows_by_fold(fold))
    try:
        return [read_classes(part, detail, anchor=anchor) for part in parts]
    except (MissingValueError, InfiniteValueError):
        table.block(0, len(table)).raise_bad_cell(
            table.schema.features
        )  # by its number in the table
        raise


def sums_without_each(parts: Sequence[Any]) -> Iterator[Any]:
    """The sum of all parts but the first, of all but the second, and so on."""
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
    """The moments without the classes that have no rows."""
    some = moments.rows > 0
    return moments if some.all() else moments.classes(moments.labels[some].tolist())


def _of_splitter(splitter: Any, codes: Codes, groups: Any, X: Any) -> FoldNumbers:
    """Fold numbers of a splitter that holds out every row once and trains on all the others."""
    found = np.full(len(codes), -1, dtype=np.intp)
    rows = np.zeros((len(codes), 1)) if X is None else X
    for f, (train, test) in enumerate(splitter.split(rows, codes, groups)):
        if (found[test] >= 0).any() or len(np.union1d(train, test)) < len(codes):
            raise OptionError.of("folds", splitter, _PARTITION)
        found[test] = f
    if (found < 0).any():
        raise OptionError.of("folds", splitter, _PARTITION)
    return _numbered(found, "folds")


_PARTITION = (
    "a splitter that holds out every row once and trains on all the others, as KFold and "
    "GroupKFold do"
)


def _one_each(name: str, values: Any, rows: int) -> npt.NDArray[Any]:
    found = np.asarray(values)
    if found.shape != (rows,):
        raise ShapeError.of_lengths(name, len(found) if found.ndim else 1, rows)
    return found


def _numbered(values: npt.NDArray[Any], name: str) -> FoldNumbers:
    distinct, found = np.unique(values, return_inverse=True)
    if len(distinct) < 2:
        raise OptionError.of(name, distinct.tolist(), "of two or more kinds: one is held out")
    return found


class FoldedTable(Protocol):
    """A table divided into folds, in memory or partitioned."""

    @property
    def labels(self) -> Labels:
        """(K,) classes of the table."""
        ...

    @property
    def n_folds(self) -> int:
        """Number of folds, including empty ones."""
        ...

    def training_moments(self, fold: int, detail: Detail) -> Any:
        """Moments of all rows outside the fold, in this detail or a finer one."""
        ...

    def training(self, fold: int) -> AnyTable:
        """Table of all rows outside the fold."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class MemoryFolds:
    """Rows in memory, divided into folds."""

    X: Any  # rows, as an estimator takes them
    labels: Labels  # (K,)
    codes: Codes  # (N,)
    weight: Floats | None  # (N,)
    fold: FoldNumbers  # (N,)
    rows: tuple[RowNumbers, ...]  # F: row numbers of each fold
    table: Table | None = None  # the same rows as a table of numbers
    trains: tuple[Any, ...] = ()  # F: moments without each fold; empty: models are fitted to rows
    whole: Any = None  # moments of all rows, if there are any
    parts: tuple[Table, ...] = ()  # F: contiguous rows of each fold, where several models use them

    @classmethod
    def of_rows(
        cls, X: Any, labels: Labels, codes: Codes, weight: Floats | None, fold: FoldNumbers
    ) -> MemoryFolds:
        """Divide rows of any kind, to which models are refitted."""
        return cls(X, labels, codes, weight, fold, tuple(rows_by_fold(fold)))

    @classmethod
    def of_table(
        cls, table: Table, fold: FoldNumbers, *, detail: Detail | None = None
    ) -> MemoryFolds:
        """Divide a table and sum the moments of its folds for one model (None: no moments)."""
        trains: tuple[Any, ...] = ()
        if detail is not None:
            trains = tuple(sums_without_each(fold_moments(table, fold, detail)))
        return cls._over(table, fold, tuple(rows_by_fold(fold)), trains)

    @classmethod
    def shared(
        cls, table: Table, fold: FoldNumbers, *, detail: Detail | None = None
    ) -> MemoryFolds:
        """Divide a table once for many models: contiguous folds, summed in parallel."""
        rows = tuple(rows_by_fold(fold))
        anchor = None if detail is None else anchor_of(table)

        def read(some: RowNumbers) -> tuple[Table, ClassMoments | None]:
            part = contiguous(table.take(some))
            moments = None if detail is None else read_moments(part, detail=detail, anchor=anchor)
            return part, moments

        with one_blas_thread(), ThreadPoolExecutor(available_threads()) as pool:
            parts, sums = zip(*pool.map(in_thread(read), rows), strict=True)
        if detail is None:
            return cls._over(table, fold, rows, (), None, parts)
        trains = tuple(sums_without_each(sums))
        return cls._over(table, fold, rows, trains, trains[0] + sums[0], parts)

    @classmethod
    def sample(
        cls, table: Table, fold: FoldNumbers, trains: Sequence[ClassMoments], whole: ClassMoments
    ) -> MemoryFolds:
        """Divide a sample of a larger table, with the moments of all rows of that table."""
        rows = tuple(np.flatnonzero(fold == f) for f in range(len(trains)))
        parts = tuple(contiguous(table.take(some)) for some in rows)
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
        schema = table.schema
        return cls(
            table.features,
            schema.labels,
            table.codes,
            table.weight,
            fold,
            rows,
            table,
            trains,
            whole,
            parts,
        )

    def select(self, columns: Places) -> MemoryFolds:
        """The same folds with some of the columns."""
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
        """Moments of all rows outside the fold."""
        return self.trains[fold]

    def training_rows(self, fold: int) -> RowNumbers:
        """Numbers of the rows outside the fold."""
        return np.flatnonzero(self.fold != fold)

    def training(self, fold: int) -> Table:
        """Table of all rows outside the fold."""
        assert self.table is not None
        return self.table.take(self.training_rows(fold))

    def held_out(self, fold: int) -> Any:
        """Rows of the fold, as a model takes them."""
        if self.parts:
            return self.parts[fold].features
        return self.take(self.rows[fold])

    def take(self, rows: RowNumbers) -> Any:
        """Rows by their numbers, as a model takes them."""
        if self.table is None:
            return _safe_indexing(self.X, rows)
        return contiguous(self.table.take(rows)).features

    def training_samples(self, max_rows: int, seed: int) -> list[RowNumbers]:
        """Numbers of at most `max_rows` rows outside each fold, sampled without replacement."""
        draw = np.random.default_rng(seed)
        return [sample_rows(self.training_rows(f), max_rows, draw) for f in range(self.n_folds)]

    def largest_training_sample(self, max_rows: int) -> int:
        """Number of rows that a model is fitted to, in the largest training set."""
        return min(max_rows, len(self.codes) - min(map(len, self.rows)))


def sample_rows(rows: RowNumbers, most: int, generator: np.random.Generator) -> RowNumbers:
    """At most `most` of the rows, in order."""
    if len(rows) <= most:
        return rows
    return np.sort(generator.choice(rows, most, replace=False))


def contiguous(part: Table) -> Table:
    """Copy the rows to C order in double precision, which is fastest to score."""
    if is_sparse(part.features):
        return part
    features = np.ascontiguousarray(dense(part.features), dtype=np.float64)
    return Table(part.schema, features, part.codes, part.weight, part.responses)


_MOST = 1000  # folds of a column
_DRAWN = 50_000


@dataclass(frozen=True, eq=False)
class PartitionedFolds:
    """Rows of a partitioned table, divided into folds where they are."""

    rows: PartitionedTable  # its plan assigns the folds
    parts: tuple[ClassMoments, ...]  # F: moments of each fold
    trains: tuple[ClassMoments, ...]  # F: moments without each fold
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
        """Assign the folds and sum the moments of each, in one pass.

        Parameters
        ----------
        folds
            Number of folds (default 10), assigned by a hash of each row's values; or the name of a
            column, with one fold for each of its values.
        groups
            Name of a column whose equal values stay together: one fold for each value, or `folds`
            of them.
        seed
            Seed of the hash.
        detail
            Detail of the moments.
        """
        rows, many, sample_fold = _dealt(rows, folds, groups, _checked_seed(seed))
        schema, anchor = rows.schema, rows.moments.anchor
        reading = MomentsReading(schema.labels, schema.features, anchor, detail)
        sums = rows.fold(FoldSumsReading(reading, many)).parts
        empty = ClassMoments.empty(schema.labels, schema.features, detail=detail, anchor=anchor)
        parts = tuple(empty if part is None else part for part in sums)
        if sum(bool(part.rows.any()) for part in parts) < 2:
            raise OptionError.of("folds", folds, "such that two folds or more have rows")
        trains = tuple(sums_without_each(parts))
        whole = trains[0] + parts[0]
        warn_missing_classes(np.array([part.rows for part in parts]), schema.labels)
        return cls(replace(rows, moments=whole), parts, trains, sample_fold)

    @property
    def labels(self) -> Labels:
        """(K,) classes of the table."""
        return self.rows.schema.labels

    @property
    def n_folds(self) -> int:
        """Number of folds, including empty ones."""
        return len(self.parts)

    @property
    def filled(self) -> list[int]:
        """The folds that have rows."""
        return [f for f, part in enumerate(self.parts) if part.rows.any()]

    def training_moments(self, fold: int, detail: Detail) -> ClassMoments:
        """Moments of all rows outside the fold."""
        return self.trains[fold].reduce(detail)

    def training(self, fold: int) -> PartitionedTable:
        """Partitioned table of all rows outside the fold, with the classes that remain."""
        rows, train = self.rows, self.trains[fold]
        present = train.rows > 0
        codes = np.maximum(np.cumsum(present) - 1, 0)
        steps = (DropFold(fold),) if present.all() else (DropFold(fold), Recode(codes))
        schema = replace(rows.schema, labels=rows.schema.labels[present])
        others = rows.sample.take(np.flatnonzero(self.sample_fold != fold))
        in_memory = Table(schema, others.features, codes[others.codes], others.weight)
        return replace(
            rows,
            schema=schema,
            plan=rows.plan.with_transforms(*steps),
            row_sample=RowSample(in_memory),
            moments=drop_empty_classes(train),
        )

    @cached_property
    def in_memory(self) -> MemoryFolds:
        """The sample of rows in memory, in the same folds, with the moments of all rows."""
        fold = self.sample_fold.astype(np.intp, copy=False)
        return MemoryFolds.sample(self.rows.sample, fold, self.trains, self.rows.moments)


def warn_missing_classes(count: npt.NDArray[Any], labels: Labels) -> None:
    """Warn of every class whose rows are all in one fold, given (F, K) rows of each."""
    for k in np.flatnonzero((count > 0).sum(axis=0) == 1):
        f = int(np.flatnonzero(count[:, k])[0])
        warn(ClassMissingWarning.of_class(labels[k], f, int(count[f, k])))


def class_counts(
    codes: Codes, weight: Floats | None, labels: Labels, fold: FoldNumbers
) -> npt.NDArray[Any]:
    """(F, K) rows of positive weight of each class in each fold."""
    F, K = int(fold.max()) + 1, len(labels)
    some = None if weight is None else weight > 0
    return np.bincount(fold * K + codes, some, minlength=F * K).reshape(F, K)


def least_detail(wanted: Iterable[Detail]) -> Detail:
    """The least detail from which all of these follow."""
    wanted = set(wanted)
    if wanted == {"diagonal"} or not wanted:
        return "diagonal" if wanted else "pooled"
    top: Detail = max(wanted, key=DETAILS.index)
    return "class" if top == "pooled" and "diagonal" in wanted else top


def _checked_seed(seed: Any) -> int:
    if not isinstance(seed, int | np.integer) or not 0 <= seed < 1 << 63:
        raise OptionError.of("seed", seed, "a whole number, 0 or more")
    return int(seed)


def check_folds(folds: Any, rows: PartitionedTable) -> None:
    """Refuse, before there is any work, folds that cannot be."""
    if isinstance(folds, str):
        _check_column(folds, rows, "folds")
    else:
        _checked(folds, rows)


def _check_column(name: str, rows: PartitionedTable, option: str) -> None:
    if name not in rows.source.names:
        allowed = f"a number, or one of the columns of {rows.source.name}"
        raise OptionError.of(option, name, allowed)


def _dealt(
    rows: PartitionedTable, folds: Any, groups: Any, seed: int
) -> tuple[PartitionedTable, int, Places]:
    """The rows with a plan that deals, how many folds there are, and those of the drawn rows."""
    by = folds if isinstance(folds, str) else groups
    if by is None:
        many = _checked(folds, rows)
        deal = RowHashFolds(many, seed)
        made = replace(rows, plan=rows.plan.with_transforms(deal))
        return made, many, _folds_drawn(made, deal)
    _check_column(by, rows, "folds" if by is folds else "groups")
    hashed = by is not folds and folds is not None
    dealing = _by_column(rows, by, _checked(folds, rows) if hashed else None, seed)
    return _drawn_again(rows, dealing)


def _folds_drawn(rows: PartitionedTable, deal: RowHashFolds) -> Places:
    """The folds of the drawn rows; where these are all rows, those that they come into there."""
    block = rows.sample.block(0, len(rows.sample))
    found = None
    if rows.sample_is_complete and has_repeated_rows(block):
        found = rows.fold(ObservedFoldsReading()).match(block)
    if found is None:
        found = deal(block).fold
    assert found is not None
    return np.asarray(found)


def _by_column(rows: PartitionedTable, column: str, folds: int | None, seed: int) -> ColumnFolds:
    if folds is not None:
        return ColumnFolds(column, folds=folds, seed=seed)
    found = rows.source.map_reduce(LevelsWork(column, _MOST)).check().total
    levels = () if found is None else tuple(sorted(found.texts))
    if not 2 <= len(levels) <= _MOST:
        has = len(levels) if len(levels) <= _MOST else "more"
        allowed = (
            f"a column of 2 to {_MOST} values ('{column}' has {has}); to keep rows of "
            "one value together there is groups=, with a number of folds"
        )
        raise OptionError.of("folds", column, allowed)
    return ColumnFolds(column, levels)


def _drawn_again(
    rows: PartitionedTable, dealing: ColumnFolds
) -> tuple[PartitionedTable, int, Places]:
    """Rows are drawn once more, with the column that deals them."""
    plan = replace(rows.plan, fold_column=dealing)
    source = rows.source
    draw = source.systematic_sample if isinstance(source, SystematicSource) else source.sample
    block = plan.block(draw(plan.columns, _DRAWN))
    assert block.fold is not None
    schema = Schema(rows.schema.features, rows.schema.labels, rows.schema.named)
    drawn = Table(schema, block.features, block.codes, block.weight)
    made = replace(rows, plan=plan, row_sample=RowSample(drawn))
    return made, len(dealing.levels) or dealing.folds, np.asarray(block.fold)


def _checked(folds: Any, rows: PartitionedTable) -> int:
    many = _FOLDS if folds is None else folds
    if isinstance(many, bool) or not isinstance(many, int | np.integer):
        allowed = "how many, or a column: rows in parts have no order that numbers could follow"
        raise OptionError.of("folds", type(many).__name__, allowed)
    if not 2 <= many <= min(len(rows), _MOST):
        raise OptionError.of("folds", many, f"from 2 to {min(len(rows), _MOST)}")
    return int(many)


PRIORS = ("prior", "priors", "class_prior")  # options that state priors: ours, scikit-learn's


def is_moment_based(estimator: Any) -> bool:
    """Whether a classifier, with the options that it has, is a function of class moments."""
    return hasattr(estimator, "rule_from") and not getattr(estimator, "needs_rows", False)


def prior_option(estimator: Any) -> tuple[str, Any] | None:
    """The option that states priors, if the estimator has one, and what it is."""
    options = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    found = next(((name, options[name]) for name in PRIORS if name in options), None)
    if found is None and getattr(estimator, "_priors_within", False):
        inner = prior_option(estimator.estimator)
        return None if inner is None else (f"estimator__{inner[0]}", inner[1])
    return found


def fit_rule_without(estimator: Any, moments: Any, table: Table, rows: Any) -> Rule:
    """The rule of all but some rows: of their moments, or of themselves if those lack digits."""
    if not estimator.needs_rows_for(moments):
        return cast(Rule, estimator.rule_from(moments))
    others = np.delete(np.arange(len(table)), rows)
    return cast(Rule, estimator.rule_from_table(table.take(others)))


def present_classes(codes: Codes, weight: Floats | None, labels: Labels) -> npt.NDArray[np.bool_]:
    """(K,) which classes have a row of positive weight."""
    some = codes if weight is None else codes[weight > 0]
    return np.bincount(some, minlength=len(labels)) > 0


def restrict_prior(estimator: Any, present: npt.NDArray[np.bool_], labels: Labels) -> Any:
    """The estimator with its priors, if it was given any, for the classes present alone."""
    if present.all():
        return estimator
    found = prior_option(estimator)
    if found is None or found[1] is None:
        return estimator
    name, prior = found
    if isinstance(prior, Mapping):
        some = labels[present].tolist()
        total = sum(prior.get(label, 0.0) for label in some)
        named = {label: prior[label] / total for label in some if label in prior}
        return clone(estimator).set_params(**{name: named})
    if np.shape(prior) != present.shape:
        return estimator
    kept = np.asarray(prior, dtype=np.float64)[present]
    return clone(estimator).set_params(**{name: kept / kept.sum()})
