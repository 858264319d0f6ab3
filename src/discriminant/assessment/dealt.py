"""Rows in parts, dealt into folds, and the moments of each fold: the first pass.

    parts_f = moments of fold f        train_f = all but parts_f        whole = all of them

A training part is rows in parts again, with the fold left out where the rows are: models that need
more than moments read it as they would read any.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discriminant.assessment.folds import all_but_one, only_present
from discriminant.engines.parted import Parted, Some
from discriminant.errors import ClassMissingWarning, OptionError, tell
from discriminant.moments.by_fold import ByFoldReading
from discriminant.moments.class_moments import DETAILS, ClassMoments, Detail
from discriminant.moments.reading import MomentsReading
from discriminant.table.dealing import ByColumn, ByRow, FoldsReading, LevelsWork, repeats
from discriminant.table.parts import Spread
from discriminant.table.schema import Places, Schema
from discriminant.table.source import Table
from discriminant.table.steps import Recoded, Without

_FOLDS = 10
_MOST = 1000  # folds of a column
_DRAWN = 50_000


@dataclass(frozen=True, slots=True, eq=False)
class Dealt:
    """Rows in F folds, with the sums of all but each."""

    rows: Parted  # whose plan deals
    parts: tuple[ClassMoments, ...]  # F
    trains: tuple[ClassMoments, ...]  # F
    drawn: Places  # fold of each row of `rows.drawn`

    @classmethod
    def of(
        cls, rows: Parted, folds: Any = None, *, groups: Any = None, seed: int = 0, detail: Detail
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
        found = rows.fold(ByFoldReading(reading, many)).parts
        none = ClassMoments.empty(schema.labels, schema.features, detail=detail, anchor=anchor)
        parts = tuple(none if part is None else part for part in found)
        if sum(bool(part.rows.any()) for part in parts) < 2:
            raise OptionError.of("folds", folds, "such that two folds or more have rows")
        trains = tuple(all_but_one(parts))
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

    def training(self, fold: int) -> Parted:
        """The rows of all other folds, of the classes that are left."""
        rows, train = self.rows, self.trains[fold]
        present = train.rows > 0
        codes = np.maximum(np.cumsum(present) - 1, 0)
        steps = (Without(fold),) if present.all() else (Without(fold), Recoded(codes))
        schema = replace(rows.schema, labels=rows.schema.labels[present])
        some = rows.drawn.take(np.flatnonzero(self.drawn != fold))
        drawn = Table(schema, some.features, codes[some.codes], some.weight)
        return replace(
            rows,
            schema=schema,
            plan=rows.plan.and_then(*steps),
            some=Some(drawn),
            moments=only_present(train),
        )

    def _warn(self) -> None:
        """Name every class that some training part lacks: all its rows are in one fold."""
        count = np.array([part.rows for part in self.parts])
        for k in np.flatnonzero((count > 0).sum(axis=0) == 1):
            f = int(np.flatnonzero(count[:, k])[0])
            tell(ClassMissingWarning.of_class(self.rows.schema.labels[k], f, int(count[f, k])))


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


def check_folds(folds: Any, rows: Parted) -> None:
    """Refuse, before there is any work, folds that cannot be."""
    if isinstance(folds, str):
        _check_column(folds, rows, "folds")
    else:
        _checked(folds, rows)


def _check_column(name: str, rows: Parted, option: str) -> None:
    if name not in rows.source.names:
        allowed = f"a number, or one of the columns of {rows.source.name}"
        raise OptionError.of(option, name, allowed)


def _dealt(rows: Parted, folds: Any, groups: Any, seed: int) -> tuple[Parted, int, Places]:
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


def _folds_drawn(rows: Parted, deal: ByRow) -> Places:
    """The folds of the drawn rows; where these are all rows, those that they come into there."""
    block = rows.drawn.block(0, len(rows.drawn))
    found = None
    if rows.whole and repeats(block):
        found = rows.fold(FoldsReading()).of(block)
    if found is None:
        found = deal(block).fold
    assert found is not None
    return np.asarray(found)


def _by_column(rows: Parted, column: str, folds: int | None, seed: int) -> ByColumn:
    if folds is not None:
        return ByColumn(column, folds=folds, seed=seed)
    found = rows.source.summed(LevelsWork(column, _MOST)).checked().total
    levels = () if found is None else tuple(sorted(found.texts))
    if not 2 <= len(levels) <= _MOST:
        has = len(levels) if len(levels) <= _MOST else "more"
        allowed = (
            f"a column of 2 to {_MOST} values ('{column}' has {has}); to keep rows of "
            "one value together there is groups=, with a number of folds"
        )
        raise OptionError.of("folds", column, allowed)
    return ByColumn(column, levels)


def _drawn_again(rows: Parted, dealing: ByColumn) -> tuple[Parted, int, Places]:
    """Rows are drawn once more, with the column that deals them."""
    plan = replace(rows.plan, dealing=dealing)
    source = rows.source
    draw = source.drawn if isinstance(source, Spread) else source.sample
    block = plan.block(draw(plan.columns, _DRAWN))
    assert block.fold is not None
    schema = Schema(rows.schema.features, rows.schema.labels, rows.schema.named)
    drawn = Table(schema, block.features, block.codes, block.weight)
    made = replace(rows, plan=plan, some=Some(drawn))
    return made, len(dealing.levels) or dealing.folds, np.asarray(block.fold)


def _checked(folds: Any, rows: Parted) -> int:
    many = _FOLDS if folds is None else folds
    if isinstance(many, bool) or not isinstance(many, int | np.integer):
        allowed = "how many, or a column: rows in parts have no order that numbers could follow"
        raise OptionError.of("folds", type(many).__name__, allowed)
    if not 2 <= many <= min(len(rows), _MOST):
        raise OptionError.of("folds", many, f"from 2 to {min(len(rows), _MOST)}")
    return int(many)
