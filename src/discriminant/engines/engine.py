"""Fold a reading over rows in one pass with any engine, and compute moments that way.

One door to rows wherever they are: the table of engines, and how a source in parts is opened.

    source -> engine -> parts -> plan (from some rows) -> one reading of all -> Parted

An engine is one file with two functions: `takes(source)`, whether it reads such a thing, and
`source_of(source, **options)`, a `table.parts.Source`. It joins by its line in ENGINES.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from inspect import signature
from typing import Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from discriminant.engines import local
from discriminant.engines.checkpoint import with_checkpoint
from discriminant.engines.partitioned import AnyTable, PartitionedTable, RowSample, table_in_memory
from discriminant.engines.summation import ReadingTask
from discriminant.errors import (
    DiscriminantError,
    EngineError,
    InfiniteValueError,
    LabelError,
    OptionError,
    SourceChangedError,
)
from discriminant.moments.accumulate import MomentsReading
from discriminant.moments.anchor import Anchor, ExtentReading
from discriminant.moments.class_moments import DETAILS, ClassMoments, Detail
from discriminant.moments.class_rows import ClassRows, RowsReading
from discriminant.moments.summary_base import Reading, Summary
from discriminant.table.blocks import Floats, Schema, is_sparse
from discriminant.table.cells import Frame
from discriminant.table.column_types import ReadOptions, long_integers_as_categories
from discriminant.table.encoding import Encoding, UnknownLevel
from discriminant.table.memory import Table, as_table
from discriminant.table.open import dropped_rows_note
from discriminant.table.partitioned import (
    PartitionedSource,
    ReadPlan,
    SystematicSource,
    with_read_options,
)
from discriminant.table.survey import Survey, columns_to_resurvey, plan_reading, survey_columns

M = TypeVar("M", ClassMoments, ClassRows)
S = TypeVar("S", bound=Summary)


def fold(table: AnyTable, reading: Reading[S], *, threads: int | None = None) -> S:
    """The sum of a reading over all rows of a table, whoever does the summing."""
    if isinstance(table, PartitionedTable):
        return table.fold(reading)
    return local.fold(table, reading, threads=threads)


@overload
def moments(
    X: Any,
    y: Any = None,
    weight: Any = None,
    *,
    detail: Literal["rows"],
    threads: int | None = None,
    target: None = None,
) -> ClassRows: ...


@overload
def moments(
    X: Any,
    y: Any = None,
    weight: Any = None,
    detail: Literal["diagonal", "pooled", "class", "fourth"] = "class",
    *,
    threads: int | None = None,
    target: str | None = None,
    **options: Any,
) -> ClassMoments: ...


@np.errstate(under="ignore")
def moments(
    X: Any,
    y: Any = None,
    weight: Any = None,
    detail: Detail = "class",
    *,
    threads: int | None = None,
    target: str | None = None,
    **options: Any,
) -> ClassMoments | ClassRows:
    """Read the rows once: weight, mean and scatter of every class.

    Parameters
    ----------
    X
        (N, d) array of any order and number type, SciPy sparse matrix, or data frame. With a
        `target` any source of rows: files that need not fit into memory (a path, a glob, a
        folder, a list), a Dask or Spark frame, a database (`discriminant.sql`), a data frame.
    y
        (N,) labels.
    weight
        (N,) weight of each row: how often it counts. None is once. With a `target` the name of
        the column.
    detail
        'class' for everything; 'pooled' if classes share a covariance; 'diagonal' for variances
        only; 'fourth' also has what the best shrinkage needs; 'rows' keeps the rows themselves,
        which is the least where there are fewer rows than features.
    threads
        None: all cores.
    target
        The column of labels.
    options
        With a `target`: all that `discriminant.rows` takes. With reference=None moments of tables
        that met different levels add; `with_reference()` of the sum is what models are made from.

    Examples
    --------
    >>> found = moments([[0.0], [2.0], [5.0], [7.0]], ["a", "a", "b", "b"])
    >>> found.means.ravel().tolist(), found.within().tolist()
    ([1.0, 6.0], [[4.0]])
    """
    if detail not in (*DETAILS, "rows"):
        raise OptionError.of("detail", detail, f"one of {', '.join(DETAILS)} or rows")
    if target is not None:
        return _of_source(X, y, detail, target=target, weight=weight, **options)
    for name in options:
        _check_reads(name)
        raise OptionError.of(name, options[name], "left out, or given along with target=")
    if y is None:
        raise OptionError.of("y", None, "the labels; or name their column by target=")
    table = as_table(X, y, weight=weight)
    if detail == "rows":
        return read_rows(table)
    return read_moments(table, detail=detail, threads=threads)


def _check_reads(option: str) -> None:
    """Raise a TypeError for an option that no source has, with or without target=."""
    from discriminant.table.open import open_source

    if option not in {*signature(rows).parameters, *signature(open_source).parameters}:
        raise TypeError(f"moments() got an unexpected keyword argument '{option}'")


def _of_source(source: Any, y: Any, detail: Detail, **options: Any) -> ClassMoments | ClassRows:
    """Moments of rows that have their labels in a column, wherever they are."""
    from discriminant.engines.table_moments import TableMoments
    from discriminant.table.open import open_source

    if y is not None:
        raise OptionError.of("y", "labels", "left out, since target= names their column")
    if is_partitioned(source) and detail != "rows":
        parts = rows(source, detail=detail, **options)
        return TableMoments.from_moments(read_moments(parts, detail=detail), parts.plan.encoding)
    opened = open_source(source, **options)
    if detail == "rows":
        return read_rows(opened.table)
    return TableMoments.from_moments(read_moments(opened.table, detail=detail), opened.encoding)


def read_moments(
    table: AnyTable, *, detail: Detail, anchor: Anchor | None = None, threads: int | None = None
) -> ClassMoments:
    """Class moments of an open table, about `anchor` or one placed near its rows.

    The unit of a column is a guess from a few rows. Where the sums show that it was a bad one, the
    rows are read again in a unit that suits them all.
    """
    if detail not in DETAILS:
        raise OptionError.of("detail", detail, f"one of {', '.join(DETAILS)}")
    if isinstance(table, PartitionedTable) and table.moments.holds(detail) and anchor is None:
        return table.moments.reduce(detail)  # they were read when it was opened
    anchor = anchor_of(table) if anchor is None else anchor
    names = table.schema.features
    if isinstance(table, Table) and table.responses is not None:
        names = (*names, *(f"response {j}" for j in range(table.responses.shape[1])))

    def read(anchor: Anchor) -> ClassMoments:
        rows = (
            len(table) if isinstance(table, PartitionedTable) else 0
        )  # in memory, rows lie side by side
        reading = MomentsReading(table.schema.labels, names, anchor, detail, rows)
        return fold(table, reading, threads=threads)

    return _in_units_that_suit(table, read(anchor), read)


def read_rows(table: Table, *, anchor: Anchor | None = None) -> ClassRows:
    """The rows of an open table as a summary, about `anchor` or one placed near them."""
    anchor = anchor_of(table) if anchor is None else anchor
    schema = table.schema

    def read(anchor: Anchor) -> ClassRows:
        return fold(table, RowsReading(schema.labels, schema.features, anchor, len(table)))

    return _in_units_that_suit(table, read(anchor), read)


def read_classes(
    table: AnyTable, detail: Detail, *, anchor: Anchor | None = None
) -> ClassMoments | ClassRows:
    """Moments of an open table in that detail, or its rows; about `anchor` or one of its own."""
    if detail == "rows":
        return read_rows(table_in_memory(table, "A model that keeps rows"), anchor=anchor)
    return read_moments(table, detail=detail, anchor=anchor)


def _in_units_that_suit(table: AnyTable, found: M, read: Callable[[Anchor], M]) -> M:
    """What was read, or where sums overflow or vanish what is read in other units."""
    columns = found.strained()
    if not columns.any():
        return found
    spread = np.zeros(len(columns))
    spread[columns] = _spread(table, found.anchor, np.flatnonzero(columns))
    anchor = found.anchor.rescale_to(spread)
    if not anchor.same_as(found.anchor):
        found = read(anchor)
    for j in np.flatnonzero(found.overflown()):
        raise InfiniteValueError.of_sums(found.features[j])
    return found


def _spread(table: AnyTable, anchor: Anchor, columns: npt.NDArray[np.intp]) -> Floats:
    """How far from the origin rows of any weight go, in some columns."""
    return fold(table, ExtentReading(anchor.origin[columns], columns)).max_abs


def anchor_of(table: AnyTable) -> Anchor:
    """Origin and unit near the rows of a table; a sparse table keeps its zeros."""
    some = table.row_sample.planning_rows if isinstance(table, PartitionedTable) else table
    return Anchor.from_sample(np.asarray(some.sample()), at_zero=is_sparse(some.features))


ENGINES: Mapping[str, str] = {  # asked in this order
    "sql": "discriminant.engines.sql",
    "spark": "discriminant.engines.spark",
    "dask": "discriminant.engines.dask",
    "files": "discriminant.engines.files",
}
_LOOK = 50_000  # rows that a plan is made from
_ROOM = 1 << 29  # bytes of moments that are read when a source is opened


def rows(
    source: Any,
    *,
    target: str,
    weight: Any = None,
    engine: str | None = None,
    ordered: Mapping[str, Sequence[str]] | None = None,
    categories: Iterable[str] = (),
    missing: str = "error",
    unseen: str = "error",
    columns: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    reference: str | None = "frequent",
    max_classes: int = 1000,
    min_classes: int = 2,
    max_levels: int = 100,
    detail: Detail | None = None,
    missing_texts: Iterable[str] | None = None,
    thousands: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    **options: Any,
) -> PartitionedTable:
    """Open rows that need not fit into memory, and read them once.

    Parameters
    ----------
    source
        A file, several by a glob or a list, a folder, a Dask or Spark frame, or what
        `discriminant.sql` returns.
    engine
        Who does the summing: 'files', 'dask', 'spark' or 'sql'. None: by the kind of source.
    weight
        The name of a column; with `y` of a Dask array, the weights beside it.
    target, ordered, categories, missing, unseen, columns, exclude, reference
        As for `discriminant.open_source`.
    max_classes, max_levels
        More classes are refused; a category of more levels is set aside.
    min_classes
        Fewer classes are refused. 1: for moments of a part of the rows, which are merged later.
    detail
        Of the moments that are read. None: 'class' if there is room for it, else 'pooled'.
    missing_texts
        Texts of a CSV that stand for a missing cell, as for `discriminant.open_source`.
    thousands
        The sign between groups of three digits, as for `discriminant.open_source`.
    checkpoint
        A folder in which all sums over these rows are kept, those under way too: a run that was
        stopped and is started again goes on where it was, and gives the same to the last bit.
        `complete()` of what is returned removes it.
    options
        Of the engine. Files: `progress`, called with the rows read and the rows in all (of text
        an estimate), and of CSV `encoding`, `delimiter` and `decimal`.
    """
    if weight is not None and not isinstance(weight, str):
        if "y" not in options:
            allowed = "the name of a column; an array only beside y= of Dask"
            raise OptionError.of("weight", type(weight).__name__, allowed)
        options, weight = {**options, "weight": weight}, "weight"
    wishes = ReadOptions.from_arguments(
        target=target,
        weight=weight,
        columns=columns,
        exclude=exclude,
        ordered=ordered,
        categories=categories,
        missing=missing,
        unseen=unseen,
        reference=reference,
        max_levels=max_levels,
        missing_texts=missing_texts,
        thousands=thousands,
        parse_texts=(engine or engine_of(source)) != "sql",  # it sums what is written as it is
    )
    if thousands is not None and (engine or engine_of(source)) == "files":
        options = {**options, "thousands": thousands}
    found = partitioned_source(source, engine=engine, **options)
    if checkpoint is not None:
        found = with_checkpoint(found, checkpoint)
    return open_partitioned(
        found, wishes, max_classes=max_classes, min_classes=min_classes, detail=detail
    )


def partitioned_source(
    source: Any, *, engine: str | None = None, **options: Any
) -> PartitionedSource:
    """The source in parts, by the engine that reads it."""
    if engine is not None and engine not in ENGINES:
        raise EngineError.unknown(engine, list(ENGINES))
    reader = None if engine is None else engine_of(source)
    if engine is not None and reader is not None and not _reads(engine, source):
        raise EngineError.other(engine, reader)
    for name in [engine] if engine else ENGINES:
        room = import_module(ENGINES[name])
        if engine or room.accepts(source):
            found: PartitionedSource = room.as_source(source, **options)
            return found
    raise EngineError.of_source(type(source).__name__, list(ENGINES))


def engine_of(source: Any) -> str | None:
    """The engine other than memory that reads such a thing, if there is one."""
    return next((name for name in ENGINES if _reads(name, source)), None)


def _reads(engine: str, source: Any) -> bool:
    return bool(import_module(ENGINES[engine]).accepts(source))


def is_partitioned(source: Any) -> bool:
    """Whether some engine other than memory reads such a thing."""
    return engine_of(source) is not None


def open_partitioned(
    source: PartitionedSource,
    wishes: ReadOptions,
    *,
    max_classes: int = 1000,
    min_classes: int = 2,
    detail: Detail | None = None,
) -> PartitionedTable:
    """Plan, read once, and plan again if rows held what was not foreseen."""
    while True:
        wishes.check_names(source.names)
        source = with_read_options(source, wishes)
        names = source.names
        found = _opened(
            source, wishes, max_classes=max_classes, min_classes=min_classes, detail=detail
        )
        if source.names == names:  # else later rows had columns that the first had not
            return found


def _opened(
    source: PartitionedSource,
    wishes: ReadOptions,
    *,
    max_classes: int,
    min_classes: int,
    detail: Detail | None,
) -> PartitionedTable:
    look = source.sample(wishes.columns_to_read(source.names), _LOOK)
    look = replace(look, excluded=tuple(n for n in source.names if n not in look.positions))
    if wishes.target is not None and look[wishes.target].n_missing:
        if wishes.missing == "drop":
            read, look = len(look), look.drop_unlabelled(wishes.target)
            if not len(look):
                raise LabelError.none_left(wishes.target, read)
        else:  # rows of a sample do not know where they lie, those of the source do
            survey_columns(source, wishes, wishes.target_and_weight)
    wishes = long_integers_as_categories(look, wishes)
    survey: Survey | None = None
    while True:
        found = plan_reading(
            look, wishes, survey=survey, max_classes=max_classes, min_classes=min_classes
        )
        doubtful = found.columns_to_survey
        try:
            if found.plan is not None:
                plan = replace(found.plan, encoding=_with_decimal(found.plan.encoding, source))
                made = _read(source, look, plan, said=found.notes, detail=detail)
                return _checked(made, min_classes)
        except UnknownLevel as new:
            if survey is not None:  # all rows were surveyed
                raise SourceChangedError.of_class(source.name, new.column, new.level) from None
            doubtful = columns_to_resurvey(look, wishes)
        survey = survey_columns(source, wishes, doubtful)


def _read(
    source: PartitionedSource,
    look: Frame,
    plan: ReadPlan,
    *,
    said: Sequence[str],
    detail: Detail | None,
) -> PartitionedTable:
    none = np.zeros(0)
    nothing = ExtentReading(none, none.astype(np.intp))
    try:
        block = plan.block(look)
    except DiscriminantError:  # some rows do not know where they lie: read on to the place
        source.map_reduce(ReadingTask(plan, nothing)).check()
        raise
    schema = Schema(plan.encoding.features, plan.labels, True)
    at_hand = Table(schema, block.features, block.codes, block.weight)
    anchor = Anchor.from_sample(np.asarray(at_hand.sample()))
    K, d = len(plan.labels), at_hand.width
    wanted: Detail = detail or ("class" if 8 * K * d * d <= _ROOM else "pooled")
    found = source.map_reduce(
        ReadingTask(
            plan,
            MomentsReading(
                plan.labels, schema.features, anchor, wanted, getattr(source, "rows", 0)
            ),
        )
    ).check()
    if found.total is None:
        raise LabelError.absent(source.name)
    moments = found.total
    some = RowSample(at_hand, _draw(source, plan, schema, len(at_hand), found.rows))
    made = PartitionedTable(
        schema, source, plan, some, moments, found.rows, notes=(*source.notes, *said)
    )
    if plan.weight is None:
        return made
    return replace(made, min_weight=made.fold(nothing).min_weight)


def _draw(
    source: PartitionedSource, plan: ReadPlan, schema: Schema, at_hand: int, rows: int
) -> Callable[[], Table] | None:
    """How rows are drawn from all over a source whose rows at hand are the first of its parts."""
    if not isinstance(source, SystematicSource) or at_hand >= rows:
        return None

    def drawn() -> Table:
        block = plan.block(source.systematic_sample(plan.columns, _LOOK))
        return Table(schema, block.features, block.codes, block.weight)

    return drawn


def _with_decimal(encoding: Encoding, source: PartitionedSource) -> Encoding:
    return replace(encoding, decimal=getattr(source, "decimal", "."))


def _checked(found: PartitionedTable, min_classes: int) -> PartitionedTable:
    """The rows, if enough classes have any, with a note on those that were dropped."""
    moments, missing = found.moments, found.plan.encoding.missing
    some = moments.weight > 0
    if some.sum() < min_classes:
        raise LabelError.one_class(moments.labels[int(np.argmax(some))])
    if missing not in ("drop", "marginal") or len(found) == found.rows_read:
        return found
    note = dropped_rows_note(found.rows_read, len(found), missing, labels=True)
    return replace(found, notes=(*found.notes, note))
