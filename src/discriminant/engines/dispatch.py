"""Choice of the engine for a table, and the functions that open and sum it with any engine.

    source -> engine -> partitions -> plan (from a sample) -> one pass over all rows -> table

`rows` opens a table, `moments` computes class moments, and `fold` sums any reading over the rows.
`choose_engine` decides whether a source is read into memory or in partitions, and by which engine;
estimators, studies and the command line all use it. An engine is a module with two functions,
`accepts(source)`, and `as_source(source, **options)`, which returns a `PartitionedSource`. Each
engine has one entry in `ENGINES`. A source that is read in partitions becomes a `PartitionedTable`.
The encoding of its columns is planned from a sample. If the rows contain a class or category that
the sample lacks, the encoding is planned again from a survey of all rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any, Literal, TypeVar, overload

import numpy as np

from discriminant.engines import local
from discriminant.engines.available_memory import file_fits_in_memory
from discriminant.engines.checkpoint import with_checkpoint
from discriminant.engines.missing_cells import PresentReading, em_moments
from discriminant.engines.partitioned_table import (
    AnyTable,
    PartitionedTable,
    PlanningSample,
    table_in_memory,
)
from discriminant.engines.summation import ReadingTask
from discriminant.errors import (
    DiscriminantError,
    EngineError,
    InfiniteValueError,
    LabelError,
    OptionError,
    SourceChangedError,
    UnlabelledRowsWarning,
    warn,
)
from discriminant.moments.accumulate import MomentsReading
from discriminant.moments.anchor import Anchor, ColumnMagnitudesReading
from discriminant.moments.class_moments import DETAILS, ClassMoments, Detail
from discriminant.moments.rows_instead_of_moments import ClassRows, RowsReading
from discriminant.moments.summary_base import Reading, Summary
from discriminant.table.blocks import Schema, is_sparse
from discriminant.table.column_cells import Frame
from discriminant.table.column_types import ReadOptions, long_integers_as_categories
from discriminant.table.encoding import LevelNotInPlan
from discriminant.table.load import dropped_rows_note, is_path, open_source
from discriminant.table.memory import Table, as_table
from discriminant.table.partitioned_source import (
    PartitionedSource,
    ReadPlan,
    SystematicSource,
    with_read_options,
)
from discriminant.table.survey import (
    Survey,
    columns_to_survey_for_new_level,
    plan_reading,
    survey_columns,
)

M = TypeVar("M", ClassMoments, ClassRows)
S = TypeVar("S", bound=Summary)


def fold(table: AnyTable, reading: Reading[S], *, threads: int | None = None) -> S:
    """Add up, over all blocks of rows of a table, what `reading` computes for each block.

    The table may be in memory or partitioned.
    """
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
        Features, (N, d). With a `target`, any source of rows: files that need not fit into memory
        (a path, a glob, a folder, a list), a Dask or Spark frame, a database (`discriminant.sql`)
        or a data frame.
    y : array of shape (N,), optional
        Labels. Pass either `y` or `target`, not both.
    weight : array of shape (N,) or str, optional
        Weight of each row: how often the row counts (default: once). With a
        `target`, `weight` is the name of a column.
    detail : {'class', 'pooled', 'diagonal', 'fourth', 'rows'}, default='class'
        Which sums are computed. 'class' gives the scatter of each class; 'pooled' the sum of the
        scatters, for models in which classes share a covariance; 'diagonal' only variances;
        'fourth' the scatters and the fourth moments that optimal shrinkage needs; 'rows' the rows
        themselves, which take the least memory if there are fewer rows than features.
    threads : int, optional
        Number of threads (default: one per core).
    target : str, optional
        Name of the column of labels.
    **options
        With a `target`, the options of `discriminant.rows`. Pass `reference=None` if moments of
        tables with different categories are to be added; then call `with_reference()` on the sum
        before fitting models.

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
        if name not in {*signature(rows).parameters, *signature(open_source).parameters}:
            raise TypeError(f"moments() got an unexpected keyword argument '{name}'")
        raise OptionError.of(name, options[name], "left out, or given along with target=")
    if y is None:
        raise OptionError.of("y", None, "the labels; or name their column by target=")
    table = as_table(X, y, weight=weight)
    if detail == "rows":
        return read_rows(table)
    return read_moments(table, detail=detail, threads=threads)


def _source_moments(
    source: Any, y: Any, detail: Detail, **options: Any
) -> ClassMoments | ClassRows:
    """Return the moments of a source whose labels are in a column."""
    from discriminant.engines.moments_with_encoding import TableMoments

    if y is not None:
        raise OptionError.of("y", "labels", "left out, since target= names their column")
    if options.get("missing") == "em":
        allowed = (
            "left out: moments completed by EM do not add up. Pass rows(..., missing='em') to fit"
        )
        raise OptionError.of("missing", "em", allowed)
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
    """Return the class moments of an open table.

    If no `anchor` is given, an anchor near the rows is chosen.

    The unit of a column is estimated from a few rows. If the sums show that the estimate was bad,
    the rows are read again with a unit that fits all of them.
    """
    if detail not in DETAILS:
        raise OptionError.of("detail", detail, f"one of {', '.join(DETAILS)}")
    if isinstance(table, PartitionedTable):
        if table.plan.encoding.missing == "em" and detail != table.moments.detail:
            return read_incomplete_moments(table, detail=detail)
        if table.moments.has(detail) and anchor is None:
            return table.moments.reduce(detail)  # computed when the table was opened
    anchor = anchor_of(table) if anchor is None else anchor
    names = table.schema.features
    if isinstance(table, Table) and table.responses is not None:
        names = (*names, *(f"response {j}" for j in range(table.responses.shape[1])))

    def read(anchor: Anchor) -> ClassMoments:
        # the number of rows matters only for columns stored separately
        rows = len(table) if isinstance(table, PartitionedTable) else 0
        reading = MomentsReading(table.schema.labels, names, anchor, detail, rows)
        return fold(table, reading, threads=threads)

    return _rescale_if_needed(table, read(anchor), read)


def read_incomplete_moments(table: AnyTable, *, detail: Detail) -> ClassMoments:
    """Return the maximum-likelihood moments of a table with missing cells (NaN), by EM.

    With detail 'class' each class has its own covariance. Otherwise the detail is 'pooled'.
    """
    if detail in ("fourth", "rows"):
        allowed = "'mean' or 'indicator' with shrinkage='auto' or more features than rows"
        raise OptionError.of("missing", "em", allowed)
    return em_moments(
        partial(fold, table),
        labels=table.schema.labels,
        features=table.schema.features,
        anchor=anchor_of(table),
        detail="class" if detail == "class" else "pooled",
    )


def read_rows(table: Table, *, anchor: Anchor | None = None) -> ClassRows:
    """Return the rows of an open table as a summary.

    If no `anchor` is given, an anchor near the rows is chosen.
    """
    anchor = anchor_of(table) if anchor is None else anchor
    schema = table.schema

    def read(anchor: Anchor) -> ClassRows:
        return fold(table, RowsReading(schema.labels, schema.features, anchor, len(table)))

    return _rescale_if_needed(table, read(anchor), read)


def read_classes(
    table: AnyTable, detail: Detail, *, anchor: Anchor | None = None
) -> ClassMoments | ClassRows:
    """Return the class moments of an open table, or its rows if the detail is 'rows'."""
    if detail == "rows":
        return read_rows(table_in_memory(table, "A model that stores rows"), anchor=anchor)
    return read_moments(table, detail=detail, anchor=anchor)


def _rescale_if_needed(table: AnyTable, moments: M, read: Callable[[Anchor], M]) -> M:
    """Return the moments. If sums overflow or underflow, read the rows again in other units."""
    columns = np.flatnonzero(moments.badly_scaled())
    if not len(columns):
        return moments
    extent = np.zeros(len(moments.features))
    extent[columns] = fold(
        table, ColumnMagnitudesReading(moments.anchor.origin[columns], columns)
    ).max_abs
    anchor = moments.anchor.rescale_to(extent)
    if not anchor.same_as(moments.anchor):
        moments = read(anchor)
    for j in np.flatnonzero(moments.overflowed()):
        raise InfiniteValueError.of_sums(moments.features[j])
    return moments


def anchor_of(table: AnyTable) -> Anchor:
    """Return an anchor near the rows of a table. For a sparse table the origin is zero."""
    rows = table.row_sample.planning_rows if isinstance(table, PartitionedTable) else table
    return Anchor.from_sample(np.asarray(rows.sample()), at_zero=is_sparse(rows.features))


MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that sums over the rows of partitioned tables."""

    module: str  # module with the functions `accepts` and `as_source`
    parses_text: bool = True  # whether numbers and dates written as text are recognised
    reads_files: bool = False  # whether CSV options apply, and small files are read into memory

    def accepts(self, source: Any) -> bool:
        """Whether the engine can read this source."""
        return bool(import_module(self.module).accepts(source))

    def as_source(self, source: Any, **options: Any) -> PartitionedSource:
        """Convert the source to a partitioned source, without reading a partition."""
        partitions: PartitionedSource = import_module(self.module).as_source(source, **options)
        return partitions


ENGINES: Mapping[str, Engine] = {  # tried in this order
    "sql": Engine("discriminant.engines.sql", parses_text=False),
    "spark": Engine("discriminant.engines.spark"),
    "dask": Engine("discriminant.engines.dask"),
    "files": Engine("discriminant.engines.out_of_core", reads_files=True),
}
_SAMPLE_ROWS = 50_000  # number of rows from which the encoding is planned
_MAX_CLASS_BYTES = 1 << 29  # larger moments of detail 'class' are reduced to 'pooled' on opening


def choose_engine(source: Any, *, engine: str | None = None, partitioned: bool = False) -> str:
    """Return the engine that reads a source: 'memory', or one of ENGINES.

    A file of at most 256 MB, or of at most an eighth of the free memory, is read into memory unless
    `partitioned` is True. Larger files, several files, and the sources of other engines are read in
    partitions.

    Parameters
    ----------
    source : object
        A path, glob, folder or list of paths, a Dask or Spark frame, a database, a data frame.
    engine : str, optional
        Engine chosen by the user. An error is raised if it cannot read the source.
    partitioned : bool, default=False
        Whether to read files of any size in partitions.
    """
    reader = engine_of(source)
    from_file = reader is None or ENGINES[reader].reads_files
    if engine is None:
        small = from_file and is_path(source) and file_fits_in_memory(os.fspath(source))
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
    unlabelled: str = "error",
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
        A file, several files (a glob or a list), a folder, a Dask or Spark frame, or the result of
        `discriminant.sql`.
    target : str
        Name of the column of labels.
    weight : str or Dask array, optional
        Name of the column of weights or, if features and `y` are Dask arrays, an array of weights.
    engine : {'files', 'dask', 'spark', 'sql'}, optional
        Engine that reads the source. By default the kind of source determines the engine.
    ordered, categories, missing, unlabelled, unseen, columns, exclude, reference
        See `discriminant.open_source`.
    max_classes : int, default=1000
        Stop if the target has more classes than this.
    min_classes : int, default=2
        Stop if the target has fewer classes than this. Use 1 for moments of a part of the rows that
        will be merged later.
    max_levels : int, default=100
        Drop a categorical column with more categories than this.
    detail : {'diagonal', 'pooled', 'class', 'fourth'}, optional
        Detail of the moments, as for `discriminant.moments`. The default is 'class' if moments of
        this detail fit into memory, otherwise 'pooled'.
    missing_texts, thousands
        See `discriminant.open_source`.
    checkpoint : path, optional
        Folder for intermediate sums over these rows. If a run is interrupted and started again with
        the same folder, it resumes where it stopped and gives bitwise the same result. The method
        `complete()` of the returned table removes the folder.
    **options
        Options of the engine. For files, `progress` is a function that is called with the number of
        rows read and the total number of rows (estimated for text files); for CSV files there are
        also `encoding`, `delimiter` and `decimal`.

    Returns
    -------
    PartitionedTable
        A table for `fit`, `cross_validate`, `evaluate` and `study`.

    See Also
    --------
    discriminant.open_source : Read a table into memory.
    discriminant.moments : Compute class moments in one pass.
    """
    if weight is not None and not isinstance(weight, str):
        if "y" not in options:
            allowed = "the name of a column; an array only beside y= of Dask"
            raise OptionError.of("weight", type(weight).__name__, allowed)
        options, weight = {**options, "weight": weight}, "weight"
    reader = ENGINES.get(engine or engine_of(source) or "")
    read_options = ReadOptions.from_arguments(
        target=target,
        weight=weight,
        columns=columns,
        exclude=exclude,
        ordered=ordered,
        categories=categories,
        missing=missing,
        unlabelled=unlabelled,
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
        partitions, read_options, max_classes=max_classes, min_classes=min_classes, detail=detail
    )


def partitioned_source(
    source: Any, *, engine: str | None = None, **options: Any
) -> PartitionedSource:
    """Return a partitioned source.

    Without an `engine`, use the first engine that accepts the source.
    """
    if engine is not None and engine not in ENGINES:
        raise EngineError.unknown(engine, list(ENGINES))
    reader = engine_of(source)
    if engine is not None and reader is not None and not ENGINES[engine].accepts(source):
        raise EngineError.other(engine, reader)
    if engine is None and reader is None:
        raise EngineError.of_source(type(source).__name__, list(ENGINES))
    return ENGINES[engine or reader or ""].as_source(source, **options)


def engine_of(source: Any) -> str | None:
    """Return the name of the engine that accepts a source, or None if the source is in memory."""
    return next((name for name, engine in ENGINES.items() if engine.accepts(source)), None)


def open_partitioned(
    source: PartitionedSource,
    options: ReadOptions,
    *,
    max_classes: int = 1000,
    min_classes: int = 2,
    detail: Detail | None = None,
) -> PartitionedTable:
    """Plan the encoding and read all rows.

    If rows contain an unknown category, the encoding is planned again, and the rows are read again.
    """
    while True:
        options.check_names(source.names)
        source = with_read_options(source, options)
        names = source.names
        table = _plan_and_read(
            source, options, max_classes=max_classes, min_classes=min_classes, detail=detail
        )
        if source.names == names:  # otherwise later rows may have columns that the first rows lack
            return table


def _plan_and_read(
    source: PartitionedSource,
    options: ReadOptions,
    *,
    max_classes: int,
    min_classes: int,
    detail: Detail | None,
) -> PartitionedTable:
    sample = source.sample(options.columns_to_read(source.names), _SAMPLE_ROWS)
    sample = replace(sample, excluded=tuple(n for n in source.names if n not in sample.positions))
    if options.target is not None and sample[options.target].n_missing:
        if options.drops_unlabelled:
            size, sample = len(sample), sample.drop_unlabelled(options.target)
            if not len(sample):
                raise LabelError.none_left(options.target, size)
        else:  # the source knows the positions of its rows, the sample does not
            survey_columns(source, options, options.target_and_weight)
    options = long_integers_as_categories(sample, options)
    decimal = getattr(source, "decimal", ".")
    survey: Survey | None = None
    while True:
        planned = plan_reading(
            sample, options, survey=survey, max_classes=max_classes, min_classes=min_classes
        )
        columns = planned.columns_to_survey
        try:
            if planned.plan is not None:
                encoding = replace(planned.plan.encoding, decimal=decimal)
                plan = replace(planned.plan, encoding=encoding)
                table = _read(source, sample, plan, notes=planned.notes, detail=detail)
                return _check_classes(table, min_classes)
        except LevelNotInPlan as new:
            if survey is not None:  # all rows have already been surveyed
                raise SourceChangedError.of_class(source.name, new.column, new.level) from None
            columns = columns_to_survey_for_new_level(sample, options)
        survey = survey_columns(source, options, columns)


def _read(
    source: PartitionedSource,
    sample: Frame,
    plan: ReadPlan,
    *,
    notes: Sequence[str],
    detail: Detail | None,
) -> PartitionedTable:
    """Compute the moments of all rows."""
    no_columns = np.zeros(0)
    weights_only = ColumnMagnitudesReading(no_columns, no_columns.astype(np.intp))
    try:
        block = plan.block(sample)
    except DiscriminantError:  # read the source again to find the position of the error
        source.map_reduce(ReadingTask(plan, weights_only)).check()
        raise
    schema = Schema(plan.encoding.features, plan.labels, True)
    planning_rows = Table(schema, block.features, block.codes, block.weight)
    anchor = Anchor.from_sample(np.asarray(planning_rows.sample()))
    K, d = len(plan.labels), planning_rows.width
    detail = detail or ("class" if 8 * K * d * d <= _MAX_CLASS_BYTES else "pooled")
    count = getattr(source, "rows", 0)
    incomplete = plan.encoding.missing == "em"
    reading: Reading[Any] = MomentsReading(plan.labels, schema.features, anchor, detail, count)
    if incomplete:  # the moments are added when the number of rows is known
        reading = PresentReading(K, anchor)
    result = source.map_reduce(ReadingTask(plan, reading)).check()
    if result.total is None:
        raise LabelError.absent(source.name)
    read_sample = None
    if isinstance(source, SystematicSource) and len(planning_rows) < result.rows:
        read_sample = partial(_systematic_sample, source, plan, schema)
    moments: Any = result.total
    if incomplete:
        moments = ClassMoments.empty(plan.labels, schema.features, detail="class", anchor=anchor)
    table = PartitionedTable(
        schema,
        source,
        plan,
        PlanningSample(planning_rows, read_sample),
        moments,
        result.rows,
        notes=(*source.notes, *notes),
    )
    if incomplete:
        table = replace(table, moments=read_incomplete_moments(table, detail="pooled"))
    if plan.weight is None:
        return table
    weights = table.fold(weights_only)
    return replace(
        table, min_weight=weights.min_weight, rows_of_weight_zero=weights.rows_of_weight_zero
    )


def _systematic_sample(source: SystematicSource, plan: ReadPlan, schema: Schema) -> Table:
    block = plan.block(source.systematic_sample(plan.columns, _SAMPLE_ROWS))
    return Table(schema, block.features, block.codes, block.weight)


def _check_classes(table: PartitionedTable, min_classes: int) -> PartitionedTable:
    """Raise an error if too few classes have rows; return the table with a note on dropped rows."""
    moments, missing = table.moments, table.plan.encoding.missing
    present = moments.weight > 0
    if present.sum() < min_classes:
        raise LabelError.one_class(moments.labels[int(np.argmax(present))])
    remaining = len(table) + table.rows_of_weight_zero
    if remaining == table.rows_read:
        return table
    if missing not in ("drop", "marginal"):  # only rows without a label are dropped
        warn(UnlabelledRowsWarning.dropped(table.rows_read - remaining, table.rows_read))
        return table
    note = dropped_rows_note(table.rows_read, remaining, missing, labels=True)
    return replace(table, notes=(*table.notes, note))
