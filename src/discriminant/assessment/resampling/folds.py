"""Who is held out when, and the moments of everybody else.

    train_f = part_0 + ... + part_{f-1}  +  part_{f+1} + ... + part_{F-1}

The parts are added up from both ends, so some 3F additions give every training sum and nothing is
ever subtracted: no digit is lost, however much of the weight a fold holds.

Rows in parts, dealt into folds, and the moments of each fold: the first pass.

    parts_f = moments of fold f        train_f = all but parts_f        whole = all of them

A training part is rows in parts again, with the fold left out where the rows are: models that need
more than moments read it as they would read any.

Held-out answers of any scikit-learn classifier, by fitting it again for every fold.

A class that is missing from a training part cannot be predicted there: its log posterior is
-inf, and a warning names it. What each model decides is put down beside its posteriors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from discriminant.assessment.scorers import PredictionCollector, Predictions
from discriminant.engines.engine import anchor_of, read_classes
from discriminant.engines.partitioned import PartitionedTable, RowSample
from discriminant.errors import (
    ClassMissingWarning,
    InfiniteValueError,
    MissingValueError,
    OptionError,
    ShapeError,
    warn,
)
from discriminant.models.rules import Rule
from discriminant.moments.accumulate import MomentsReading
from discriminant.moments.class_moments import DETAILS, ClassMoments, Detail
from discriminant.moments.summary_base import FoldSumsReading
from discriminant.table.blocks import Codes, Floats, Labels, Places, Schema
from discriminant.table.hash_folds import ByColumn, ByRow, FoldsReading, repeats
from discriminant.table.memory import Table
from discriminant.table.partitioned import Recoded, Spread, Without
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
        table.block(0, len(table)).blame(table.schema.features)  # by its number in the table
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


_MOST = 1000  # folds of a column
_DRAWN = 50_000


@dataclass(frozen=True, slots=True, eq=False)
class Dealt:
    """Rows in F folds, with the sums of all but each."""

    rows: PartitionedTable  # whose plan deals
    parts: tuple[ClassMoments, ...]  # F
    trains: tuple[ClassMoments, ...]  # F
    drawn: Places  # fold of each row of `rows.drawn`

    @classmethod
    def of(
        cls,
        rows: PartitionedTable,
        folds: Any = None,
        *,
        groups: Any = None,
        seed: int = 0,
        detail: Detail,
    ) -> Dealt:
        """Deal the rows, and sum them once.

        Parameters
        ----------
        folds
            How many (10), rows dealt by what they hold; or a column whose cells are folds.
        groups
            A column: rows with one cell in it stay together. Each is a fold of its own, or they
            are dealt into `folds`.
        seed
            Of the dealing.
        detail
            Of the moments.
        """
        rows, many, drawn = _dealt(rows, folds, groups, _checked_seed(seed))
        schema, anchor = rows.schema, rows.moments.anchor
        reading = MomentsReading(schema.labels, schema.features, anchor, detail)
        found = rows.fold(FoldSumsReading(reading, many)).parts
        none = ClassMoments.empty(schema.labels, schema.features, detail=detail, anchor=anchor)
        parts = tuple(none if part is None else part for part in found)
        if sum(bool(part.rows.any()) for part in parts) < 2:
            raise OptionError.of("folds", folds, "such that two folds or more have rows")
        trains = tuple(sums_without_each(parts))
        whole = trains[0] + parts[0]
        made = cls(replace(rows, moments=whole), parts, trains, drawn)
        made._warn()
        return made

    @property
    def folds(self) -> int:
        """How many, empty ones too."""
        return len(self.parts)

    @property
    def some(self) -> list[int]:
        """The folds that have rows."""
        return [f for f, part in enumerate(self.parts) if part.rows.any()]

    def training(self, fold: int) -> PartitionedTable:
        """The rows of all other folds, of the classes that are left."""
        rows, train = self.rows, self.trains[fold]
        present = train.rows > 0
        codes = np.maximum(np.cumsum(present) - 1, 0)
        steps = (Without(fold),) if present.all() else (Without(fold), Recoded(codes))
        schema = replace(rows.schema, labels=rows.schema.labels[present])
        some = rows.sample.take(np.flatnonzero(self.drawn != fold))
        drawn = Table(schema, some.features, codes[some.codes], some.weight)
        return replace(
            rows,
            schema=schema,
            plan=rows.plan.and_then(*steps),
            row_sample=RowSample(drawn),
            moments=drop_empty_classes(train),
        )

    def _warn(self) -> None:
        """Name every class that some training part lacks: all its rows are in one fold."""
        count = np.array([part.rows for part in self.parts])
        for k in np.flatnonzero((count > 0).sum(axis=0) == 1):
            f = int(np.flatnonzero(count[:, k])[0])
            warn(ClassMissingWarning.of_class(self.rows.schema.labels[k], f, int(count[f, k])))


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
        deal = ByRow(many, seed)
        made = replace(rows, plan=rows.plan.and_then(deal))
        return made, many, _folds_drawn(made, deal)
    _check_column(by, rows, "folds" if by is folds else "groups")
    hashed = by is not folds and folds is not None
    dealing = _by_column(rows, by, _checked(folds, rows) if hashed else None, seed)
    return _drawn_again(rows, dealing)


def _folds_drawn(rows: PartitionedTable, deal: ByRow) -> Places:
    """The folds of the drawn rows; where these are all rows, those that they come into there."""
    block = rows.sample.block(0, len(rows.sample))
    found = None
    if rows.sample_is_complete and repeats(block):
        found = rows.fold(FoldsReading()).of(block)
    if found is None:
        found = deal(block).fold
    assert found is not None
    return np.asarray(found)


def _by_column(rows: PartitionedTable, column: str, folds: int | None, seed: int) -> ByColumn:
    if folds is not None:
        return ByColumn(column, folds=folds, seed=seed)
    found = rows.source.map_reduce(LevelsWork(column, _MOST)).checked().total
    levels = () if found is None else tuple(sorted(found.texts))
    if not 2 <= len(levels) <= _MOST:
        has = len(levels) if len(levels) <= _MOST else "more"
        allowed = (
            f"a column of 2 to {_MOST} values ('{column}' has {has}); to keep rows of "
            "one value together there is groups=, with a number of folds"
        )
        raise OptionError.of("folds", column, allowed)
    return ByColumn(column, levels)


def _drawn_again(rows: PartitionedTable, dealing: ByColumn) -> tuple[PartitionedTable, int, Places]:
    """Rows are drawn once more, with the column that deals them."""
    plan = replace(rows.plan, dealing=dealing)
    source = rows.source
    draw = source.drawn if isinstance(source, Spread) else source.sample
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


def refit_folds(
    estimator: Any,
    X: Any,
    *,
    labels: Labels,
    codes: Codes,
    weight: Floats | None,
    fold: FoldNumbers,
) -> Predictions:
    """What is said of each row by a model that has not seen its fold."""
    found = PredictionCollector(labels, len(codes))
    everybody = np.arange(len(codes))
    for test in rows_by_fold(fold):
        train = np.setdiff1d(everybody, test, assume_unique=True)
        present = present_classes(codes[train], None if weight is None else weight[train], labels)
        model = restrict_prior(clone(estimator), present, labels)
        more = {} if weight is None else {"sample_weight": weight[train]}
        model.fit(_safe_indexing(X, train), labels[codes[train]], **more)
        found.add(model, _safe_indexing(X, test), test)
    return found.predictions()


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
