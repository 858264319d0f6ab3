"""Open a table with any engine and sum over its rows: `rows`, `moments` and `fold`.

    source -> engine -> partitions -> plan (from a sample) -> one pass over all rows -> table

`choose_engine` decides whether a source is read into memory or in partitions, and by which engine;
estimators, studies and the command line all use it. An engine is a module with two functions,
`accepts(source)` and `as_source(source, **options)`, the latter returning a
`PartitionedSource`, and one line in ENGINES. A source that is read in partitions becomes a
`PartitionedTable`; how columns are encoded is planned from a sample, and planned again from a
survey of all rows if these contain a class or category that the sample lacks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from inspect import signature
from typing import Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from discriminant.engines import local
from discriminant.engines.checkpoint import with_checkpoint
from discriminant.engines.memory_limit import fits_in_memory
from discriminant.engines.partitioned_table import AnyTable, PartitionedTable, RowSample, table_in_memory
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
from discriminant.moments.stored_rows import ClassRows, RowsReading
from discriminant.moments.summary_base import Reading, Summary
from discriminant.table.blocks import Floats, Schema, is_sparse
from discriminant.table.cells import Frame
from discriminant.table.column_types import ReadOptions, long_integers_as_categories
from discriminant.table.encoding import Encoding, UnknownLevel
from discriminant.table.memory import Table, as_table
from discriminant.table.load import dropped_rows_note, is_path
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
    """Return the sum of a reading over all rows of a table, in memory or partitioned."""
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
    """Compute weight, mean and scatter of every class, in one pass over the rows.

    Parameters
    ----------
    X : array, sparse matrix, data frame or source
        (N, d) features. With a `target` any source of rows: files that need not fit into memory (a
        path, a glob, a folder, a list), a Dask or Spark frame, a database (`discriminant.sql`), a
        data frame.
    y : array of shape (N,), optional
        Labels; not with a `target`.
    weight : array of shape (N,) or str, optional
        Weight of each row: how often it counts. None is once. With a `target` the name of a column.
    detail : {'class', 'pooled', 'diagonal', 'fourth', 'rows'}, default='class'
        'class' for the scatter of each class; 'pooled' if classes share a covariance; 'diagonal'
        for variances only; 'fourth' adds the moments that optimal shrinkage needs; 'rows' stores
        the rows themselves, which is smallest where there are fewer rows than features.
    threads : int, optional
        None: all cores.
    target : str, optional
        Name of the column of labels.
    **options
        With a `target`: the options of `discriminant.rows`. With reference=None moments of tables
        with different categories add; fit models to `with_reference()` of their sum.

    Returns
    -------
    ClassMoments or ClassRows

    See Also
    --------
    discriminant.rows : Open rows that need not fit into memory.

    Examples
    --------
    >>> both = moments([[0.0], [2.0], [5.0], [7.0]], ["a", "a", "b", "b"])
    >>> both.means.ravel().tolist(), both.within().tolist()
    ([1.0, 6.0], [[4.0]])
    """
    if detail not in (*DETAILS, "rows"):
        raise OptionError.of("detail", detail, f"one of {', '.join(DETAILS)} or rows")
    if target is not None:
        return _source_moments(X, y, detail, target=target, weight=weight, **options)
    for name in options:
        _check_option(name)
        raise OptionError.of(name, options[name], "left out, or given along with target=")
    if y is None:
        raise OptionError.of("y", None, "the labels; or name their column by target=")
    table = as_table(X, y, weight=weight)
    if detail == "rows":
        return read_rows(table)
    return read_moments(table, detail=detail, threads=threads)


def _check_option(option: str) -> None:
    """Raise a TypeError for an option that no source has, with or without target=."""
    from discriminant.table.load import open_source

    if option not in {*signature(rows).parameters, *signature(open_source).parameters}:
        raise TypeError(f"moments() got an unexpected keyword argument '{option}'")


def _source_moments(
    source: Any, y: Any, detail: Detail, **options: Any
) -> ClassMoments | ClassRows:
    """Return moments of rows whose labels are in a column."""
    from discriminant.engines.table_moments import TableMoments
    from discriminant.table.load import open_source

    if y is not None:
        raise OptionError.of("y", "labels", "left out, since target= names their column")
    if choose_engine(source, partitioned=True) != MEMORY and detail != "rows":
        table = rows(source, detail=detail, **options)
        return TableMoments.from_moments(read_moments(table, detail=detail), table.plan.encoding)
    opened = open_source(source, **options)
    if detail == "rows":
        return read_rows(opened.table)
    return TableMoments.from_moments(read_moments(opened.table, detail=detail), opened.encoding)


def read_moments(
    table: AnyTable, *, detail: Detail, anchor: Anchor | None = None, threads: int | None = None
) -> ClassMoments:
    """Return class moments of an open table, about `anchor` or one chosen near its rows.

    The unit of a column is estimated from a few rows. Where the sums show that the estimate was
    bad, the rows are read again in a unit that suits them all.
    """
    if detail not in DETAILS:
        raise OptionError.of("detail", detail, f"one of {', '.join(DETAILS)}")
    if isinstance(table, PartitionedTable) and table.moments.holds(detail) and anchor is None:
        return table.moments.reduce(detail)  # computed when it was opened
    anchor = anchor_of(table) if anchor is None else anchor
    names = table.schema.features
    if isinstance(table, Table) and table.responses is not None:
        names = (*names, *(f"response {j}" for j in range(table.responses.shape[1])))

    def read(anchor: Anchor) -> ClassMoments:
        rows = (
            len(table) if isinstance(table, PartitionedTable) else 0
        )  # in memory, columns are adjacent
        reading = MomentsReading(table.schema.labels, names, anchor, detail, rows)
        return fold(table, reading, threads=threads)

    return _rescale_if_needed(table, read(anchor), read)


def read_rows(table: Table, *, anchor: Anchor | None = None) -> ClassRows:
    """Return the rows of an open table as a summary, about `anchor` or one chosen near them."""
    anchor = anchor_of(table) if anchor is None else anchor
    schema = table.schema

    def read(anchor: Anchor) -> ClassRows:
        return fold(table, RowsReading(schema.labels, schema.features, anchor, len(table)))

    return _rescale_if_needed(table, read(anchor), read)


def read_classes(
    table: AnyTable, detail: Detail, *, anchor: Anchor | None = None
) -> ClassMoments | ClassRows:
    """Return moments of an open table in that detail, or its rows."""
    if detail == "rows":
        return read_rows(table_in_memory(table, "A model that keeps rows"), anchor=anchor)
    return read_moments(table, detail=detail, anchor=anchor)


def _rescale_if_needed(table: AnyTable, moments: M, read: Callable[[Anchor], M]) -> M:
    """Return the moments, read again in other units where sums overflow or underflow."""
    columns = moments.strained()
    if not columns.any():
        return moments
    extent = np.zeros(len(columns))
    extent[columns] = _extent(table, moments.anchor, np.flatnonzero(columns))
    anchor = moments.anchor.rescale_to(extent)
    if not anchor.same_as(moments.anchor):
        moments = read(anchor)
    for j in np.flatnonzero(moments.overflown()):
        raise InfiniteValueError.of_sums(moments.features[j])
    return moments


def _extent(table: AnyTable, anchor: Anchor, columns: npt.NDArray[np.intp]) -> Floats:
    """Return the largest distance of any row from the origin, in some columns."""
    return fold(table, ExtentReading(anchor.origin[columns], columns)).max_abs


def anchor_of(table: AnyTable) -> Anchor:
    """Return origin and unit near the rows of a table; a sparse table keeps its zeros."""
    rows = table.row_sample.planning_rows if isinstance(table, PartitionedTable) else table
    return Anchor.from_sample(np.asarray(rows.sample()), at_zero=is_sparse(rows.features))


MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine for partitioned tables."""

    module: str  # with the functions `accepts` and `as_source`
    parses_text: bool = True  # numbers and dates written as text are recognised
    reads_files: bool = False  # options of CSV files apply; a small file is read into memory

    def accepts(self, source: Any) -> bool:
        """Whether the engine reads such a source."""
        return bool(import_module(self.module).accepts(source))

    def as_source(self, source: Any, **options: Any) -> PartitionedSource:
        """Return the partitions of a source, none of them read yet."""
        partitions: PartitionedSource = import_module(self.module).as_source(source, **options)
        return partitions


ENGINES: Mapping[str, Engine] = {  # tried in this order
    "sql": Engine("discriminant.engines.sql", parses_text=False),
    "spark": Engine("discriminant.engines.spark"),
    "dask": Engine("discriminant.engines.dask"),
    "files": Engine("discriminant.engines.files", reads_files=True),
}
_SAMPLE_ROWS = 50_000  # rows from which the encoding is planned
_MAX_CLASS_BYTES = 1 << 29  # larger moments of detail 'class' are reduced to 'pooled' on opening


def choose_engine(source: Any, *, engine: str | None = None, partitioned: bool = False) -> str:
    """Return the engine that reads a source: 'memory', or one of ENGINES.

    A file of at most 256 MB, or an eighth of the free memory, is read into memory, unless
    `partitioned`. Larger files, several files, and the sources of other engines are partitioned.

    Parameters
    ----------
    source : object
        A path, glob, folder or list of paths, a Dask or Spark frame, a database, a data frame.
    engine : str, optional
        The user's choice, which is checked.
    partitioned : bool, default=False
        Whether to prefer partitions for a file of any size.
    """
    reader = engine_of(source)
    from_file = reader is None or ENGINES[reader].reads_files
    if engine is None:
        small = from_file and is_path(source) and fits_in_memory(os.fspath(source))
        return reader if reader is not None and (partitioned or not small) else MEMORY
    if engine not in (*ENGINES, MEMORY):
        raise EngineError.unknown(engine, [*ENGINES, MEMORY])
    if engine == MEMORY and reader is not None and not from_file:
        raise EngineError.other(engine, reader)
    if engine == MEMORY and is_path(source) and not os.path.isfile(source):
        allowed = "'files' or left out: into memory goes one file, or a data frame"
        raise OptionError.of("engine", engine, allowed)
    return engine


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
    source : object
        A file, several by a glob or a list, a folder, a Dask or Spark frame, or the result of
        `discriminant.sql`.
    target : str
        Name of the column of labels.
    weight : str or Dask array, optional
        Name of the column of weights; with `y` of a Dask array, the weights.
    engine : {'files', 'dask', 'spark', 'sql'}, optional
        Engine that reads the source. None: by the kind of source.
    ordered, categories, missing, unseen, columns, exclude, reference
        As for `discriminant.open_source`.
    max_classes : int, default=1000
        Stop if the target has more classes than this.
    min_classes : int, default=2
        Stop if the target has fewer classes. 1 is for moments of a part of the rows, to be merged.
    max_levels : int, default=100
        Drop a categorical column with more categories than this.
    detail : {'diagonal', 'pooled', 'class', 'fourth'}, optional
        Detail of the moments. None: 'class' if they fit into memory, else 'pooled'.
    missing_texts, thousands
        As for `discriminant.open_source`.
    checkpoint : path, optional
        Folder for intermediate sums over these rows. A run that was stopped and is started again
        resumes there, and gives bitwise the same result. `complete()` of the result removes it.
    **options
        Options of the engine. Files: `progress`, called with the rows read and the total number of
        rows (for text an estimate), and for CSV `encoding`, `delimiter` and `decimal`.

    Returns
    -------
    PartitionedTable
        A table for `fit`, `cross_validate`, `evaluate` and `study`.

    See Also
    --------
    discriminant.open_source : Read a table into memory.
    discriminant.moments : Moments in one pass.
    """
    if weight is not None and not isinstance(weight, str):
        if "y" not in options:
            allowed = "the name of a column; an array only beside y= of Dask"
            raise OptionError.of("weight", type(weight).__name__, allowed)
        options, weight = {**options, "weight": weight}, "weight"
    reader = ENGINES.get(engine or engine_of(source) or "")
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
        parse_texts=reader is None or reader.parses_text,
    )
    if thousands is not None and reader is not None and reader.reads_files:
        options = {**options, "thousands": thousands}
    partitions = partitioned_source(source, engine=engine, **options)
    if checkpoint is not None:
        partitions = with_checkpoint(partitions, checkpoint)
    return open_partitioned(
        partitions, wishes, max_classes=max_classes, min_classes=min_classes, detail=detail
    )


def partitioned_source(
    source: Any, *, engine: str | None = None, **options: Any
) -> PartitionedSource:
    """Return the partitions of a source, by the given engine or the one that accepts it."""
    if engine is not None and engine not in ENGINES:
        raise EngineError.unknown(engine, list(ENGINES))
    reader = engine_of(source)
    if engine is not None and reader is not None and not ENGINES[engine].accepts(source):
        raise EngineError.other(engine, reader)
    if engine is None and reader is None:
        raise EngineError.of_source(type(source).__name__, list(ENGINES))
    return ENGINES[engine or reader or ""].as_source(source, **options)


def engine_of(source: Any) -> str | None:
    """Return the name of the engine that accepts a source, or None: it is in memory."""
    return next((name for name, engine in ENGINES.items() if engine.accepts(source)), None)


def open_partitioned(
    source: PartitionedSource,
    wishes: ReadOptions,
    *,
    max_classes: int = 1000,
    min_classes: int = 2,
    detail: Detail | None = None,
) -> PartitionedTable:
    """Plan the encoding, read once, and plan again if rows contain an unknown category."""
    while True:
        wishes.check_names(source.names)
        source = with_read_options(source, wishes)
        names = source.names
        table = _plan_and_read(
            source, wishes, max_classes=max_classes, min_classes=min_classes, detail=detail
        )
        if source.names == names:  # else later rows have columns that the first ones lack
            return table


def _plan_and_read(
    source: PartitionedSource,
    wishes: ReadOptions,
    *,
    max_classes: int,
    min_classes: int,
    detail: Detail | None,
) -> PartitionedTable:
    look = source.sample(wishes.columns_to_read(source.names), _SAMPLE_ROWS)
    look = replace(look, excluded=tuple(n for n in source.names if n not in look.positions))
    if wishes.target is not None and look[wishes.target].n_missing:
        if wishes.missing == "drop":
            read, look = len(look), look.drop_unlabelled(wishes.target)
            if not len(look):
                raise LabelError.none_left(wishes.target, read)
        else:  # the source knows the positions of its rows, a sample does not
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
                return _check_classes(made, min_classes)
        except UnknownLevel as new:
            if survey is not None:  # all rows were surveyed before
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
    no_columns = np.zeros(0)
    weights_only = ExtentReading(no_columns, no_columns.astype(np.intp))
    try:
        block = plan.block(look)
    except DiscriminantError:  # read the source up to the error, for its position
        source.map_reduce(ReadingTask(plan, weights_only)).check()
        raise
    schema = Schema(plan.encoding.features, plan.labels, True)
    planning_rows = Table(schema, block.features, block.codes, block.weight)
    anchor = Anchor.from_sample(np.asarray(planning_rows.sample()))
    K, d = len(plan.labels), planning_rows.width
    wanted: Detail = detail or ("class" if 8 * K * d * d <= _MAX_CLASS_BYTES else "pooled")
    result = source.map_reduce(
        ReadingTask(
            plan,
            MomentsReading(
                plan.labels, schema.features, anchor, wanted, getattr(source, "rows", 0)
            ),
        )
    ).check()
    if result.total is None:
        raise LabelError.absent(source.name)
    moments = result.total
    row_sample = RowSample(
        planning_rows, _spread_sample(source, plan, schema, len(planning_rows), result.rows)
    )
    table = PartitionedTable(
        schema, source, plan, row_sample, moments, result.rows, notes=(*source.notes, *said)
    )
    if plan.weight is None:
        return table
    return replace(table, min_weight=table.fold(weights_only).min_weight)


def _spread_sample(
    source: PartitionedSource, plan: ReadPlan, schema: Schema, at_hand: int, rows: int
) -> Callable[[], Table] | None:
    """Return a function that samples rows spread over a source, or None if the sample is spread."""
    if not isinstance(source, SystematicSource) or at_hand >= rows:
        return None

    def read_sample() -> Table:
        block = plan.block(source.systematic_sample(plan.columns, _SAMPLE_ROWS))
        return Table(schema, block.features, block.codes, block.weight)

    return read_sample


def _with_decimal(encoding: Encoding, source: PartitionedSource) -> Encoding:
    return replace(encoding, decimal=getattr(source, "decimal", "."))


def _check_classes(table: PartitionedTable, min_classes: int) -> PartitionedTable:
    """Raise an error if too few classes have rows; add a note on dropped rows."""
    moments, missing = table.moments, table.plan.encoding.missing
    present = moments.weight > 0
    if present.sum() < min_classes:
        raise LabelError.one_class(moments.labels[int(np.argmax(present))])
    if missing not in ("drop", "marginal") or len(table) == table.rows_read:
        return table
    note = dropped_rows_note(table.rows_read, len(table), missing, labels=True)
    return replace(table, notes=(*table.notes, note))
