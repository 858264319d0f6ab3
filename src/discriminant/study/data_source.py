"""Data sources of a study: read into memory, or opened as a partitioned table.

Unless `engine` is given, the kind of source determines how it is read:

    a file of at most 256 MB or an eighth of the free memory                in memory
    a larger file, or several (a list, a glob, a folder)                    partitioned: files
    a Dask or Spark frame, `discriminant.sql(...)`, the URL of a database   partitioned: its engine
    the result of `discriminant.rows`                                       partitioned, as it is
    anything else: a data frame, an Arrow stream                            in memory

The first line of a file shows whether the file holds sparse rows, which only label trees read:

    XMC text    three whole numbers                  3 1836 159
    svmlight    labels, then feature:value           12,47 1:0.5 17:1.25
    labels      a row without features, or a CSV of numbers
    None        anything else: a table
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.assessment.resampling.folds import FoldNumbers, fold_numbers, time_folds
from discriminant.engines.dispatch import (
    ENGINES,
    MEMORY,
    choose_engine,
    engine_of,
    partitioned_source,
    rows,
)
from discriminant.engines.partitioned_table import AnyTable, PartitionedTable
from discriminant.engines.sql import Query, sql
from discriminant.errors import CommandError, FormulaError, OptionError, SparseFileError
from discriminant.moments.class_moments import Detail
from discriminant.redaction import masked, register, split_table
from discriminant.table.column_cells import ColumnCells
from discriminant.table.files.formats import is_model_file
from discriminant.table.files.svmlight import line_blocks
from discriminant.table.labels import declared_order
from discriminant.table.load import EncodedTable, is_path, open_source, read_frame
from discriminant.table.missing_and_unseen import MISSING_IN_TABLES
from discriminant.table.partitioned_source import PartitionedSource

# `thousands` is not listed: it applies to any text
_CSV_OPTIONS = ("encoding", "delimiter", "decimal")
_MAX_NUMERIC_CLASSES = 10  # more numbers are codes rather than ordered classes
_ONLY_MEMORY = "left out: it limits a file that is read into memory"


@dataclass(frozen=True, slots=True, eq=False)
class StudySource:
    """A source that was opened: its rows are in memory, or partitioned."""

    name: str  # name that is shown to the user
    opened: EncodedTable  # the rows in memory: all of them, or a sample
    partitioned: PartitionedTable | None = None  # all rows, if they are not in memory

    @property
    def rows(self) -> AnyTable:
        """All rows."""
        return self.opened.table if self.partitioned is None else self.partitioned

    def with_model_notes(self) -> StudySource:
        """Return the source; if it is partitioned, add a note on how models are fitted to it."""
        if self.partitioned is None:
            return self
        note = (
            "Models based on moments are fitted to all rows; every model is evaluated on all rows."
        )
        if not self.partitioned.sample_is_complete:
            note += (
                " Models that need rows are fitted to a sample of "
                f"{len(self.partitioned.sample):,} rows from all partitions."
            )
        return replace(self, opened=replace(self.opened, notes=(*self.opened.notes, note)))

    def without(self, columns: Sequence[str]) -> StudySource:
        """Return the same rows without the features of some columns."""
        opened, table = self.opened, self.partitioned
        used = {column.name for column in opened.encoding.used}
        unknown = [name for name in columns if name not in used]
        if unknown or opened.encoding.formula is not None:
            allowed = f"columns that have features: {', '.join(sorted(used))}"
            if opened.encoding.formula is not None:
                allowed = "left out: the study has a formula, so write a formula without them"
            raise OptionError.of("columns", list(columns), allowed)
        encoding = opened.encoding.without(columns)
        if not encoding.used:
            raise OptionError.of("columns", list(columns), "some of the columns, not all of them")
        features = set(encoding.features)
        names = opened.table.schema.features
        places = np.array([j for j, name in enumerate(names) if name in features], dtype=np.intp)
        if table is not None:
            table = table.select(places)
        rows = opened.table.select(places) if table is None else table.sample
        return replace(
            self, opened=replace(opened, table=rows, encoding=encoding), partitioned=table
        )

    def complete(self) -> None:
        """Remove the checkpoint, if there is one."""
        if self.partitioned is not None:
            self.partitioned.complete()


def class_order(
    source: Any, target: str, labels: npt.NDArray[Any], levels: Sequence[Any] | None
) -> tuple[Any, ...] | None:
    """Return the labels of ordered classes, lowest first; None if the classes have no order.

    Classes have an order if `levels` names it, if the target is an ordered category of a data
    frame, or if the labels are 3 to 10 numbers. Two classes need no order.
    """
    known = labels.tolist()
    if levels is not None:
        written = {str(label): label for label in known}
        missing = [label for label in written if label not in set(map(str, levels))]
        if missing or len(set(map(str, levels))) < len(levels):
            allowed = f"every label once, lowest first: {', '.join(written)}"
            raise OptionError.of("ordered", {target: list(levels)}, allowed)
        order = [written[str(level)] for level in levels if str(level) in written]
        return tuple(order) if len(order) > 2 else None
    if len(known) < 3:
        return None
    declared = declared_order(source[target]) if hasattr(source, "columns") else None
    if declared is not None:
        places = {str(level): i for i, level in enumerate(declared)}
        return tuple(sorted(known, key=lambda label: places[str(label)]))
    numbers = None if labels.dtype.kind in "mMb" else _numbers(known)
    if numbers is None or len(known) > _MAX_NUMERIC_CLASSES:
        return None
    return tuple(known[i] for i in sorted(range(len(known)), key=numbers.__getitem__))


def _numbers(labels: Sequence[Any]) -> list[float] | None:
    """Return the numbers that all labels are, also as text; None if some are not."""
    try:
        return [float(label) for label in labels]
    except (TypeError, ValueError):
        return None


def open_study_source(
    source: Any,
    *,
    target: str,
    engine: str | None = None,
    table: Any = None,
    query: str | None = None,
    checkpoint: Any = None,
    pushdown: bool = False,
    detail: Detail | None = None,
    unlabelled: str = "error",
    progress: Callable[[int, int | None], None] | None = None,
    **reading: Any,
) -> StudySource:
    """Read a source into memory, or open it as a partitioned table.

    `unlabelled` applies only to sources that are not yet open.
    """
    formula = reading.pop("formula", None)
    source = resolve_database(source, table, query)
    if pushdown:
        if not isinstance(source, Query):
            raise OptionError.of(
                "pushdown",
                True,
                "left out: only a database can compute the moments of its own tables",
            )
        source = replace(source, pushdown=True)
    name = source_name(source)
    is_open = isinstance(source, PartitionedTable)
    if (source.plan.encoding.missing if is_open else reading.get("missing")) == "em":
        allowed = "one of " + ", ".join(map(repr, MISSING_IN_TABLES))
        raise OptionError.of("missing", "em", f"{allowed}: a study does not fit EM in every fold")
    if isinstance(source, PartitionedTable):
        if formula is not None:
            raise FormulaError.needs_memory("rows")
        _check_unchanged(source, target, reading)
        return StudySource(name, _sampled_table(source, "opened before"), source)
    if reading.get("max_bytes") is not None:
        reader = engine_of(source)
        readable = reader is None or ENGINES[reader].reads_files
        if engine not in (None, MEMORY) or not readable:
            raise OptionError.of("max_bytes", reading["max_bytes"], _ONLY_MEMORY)
        engine = MEMORY
    engine = choose_engine(source, engine=engine, partitioned=checkpoint is not None)
    if engine == MEMORY:
        opened = open_source(
            source, target=target, formula=formula, unlabelled=unlabelled, **reading
        )
        if opened.encoding.formula is not None and not opened.encoding.formula.intercept:
            raise FormulaError.needs_intercept()
        return StudySource(name, opened)
    if formula is not None:
        raise FormulaError.needs_memory(engine)
    options = {**reading, "detail": detail, "unlabelled": unlabelled}
    if ENGINES[engine].reads_files:
        options["progress"] = progress
    else:
        reject_csv_options({option: options.pop(option, None) for option in _CSV_OPTIONS})
    table = rows(source, target=target, engine=engine, checkpoint=checkpoint, **options)
    return StudySource(name, _sampled_table(table, engine), table)


def is_partitioned(
    source: Any, *, engine: str | None, table: Any = None, query: Any = None
) -> bool:
    """Return whether a source is opened as a partitioned table."""
    return choose_engine(resolve_database(source, table, query), engine=engine) != MEMORY


def open_partitions(
    source: Any,
    *,
    engine: str | None,
    table: Any = None,
    query: Any = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> PartitionedSource:
    """Open the partitions of a source without reading them."""
    source = resolve_database(source, table, query)
    engine = choose_engine(source, engine=engine, partitioned=True)
    options = {"progress": progress} if ENGINES[engine].reads_files else {}
    return partitioned_source(source, engine=engine, **options)


def source_name(source: Any) -> str:
    """Return the name of a source as shown to the user; secrets in an address are masked."""
    if isinstance(source, PartitionedTable):
        return source.source.name
    if isinstance(source, Query):
        text = source.text if isinstance(source.text, str) else ".".join(source.text)
        return "query" if len(text.split()) > 1 else text
    if is_path(source):
        return masked(str(os.fspath(source)))
    if isinstance(source, list | tuple) and source and is_path(source[0]):
        return f"{masked(str(os.fspath(source[0])))} and {len(source) - 1} more"
    return type(source).__name__


def check_design(
    folds: Any, groups: str | None, time: str | None, *, target: str
) -> tuple[str, ...]:
    """Return the columns that define folds, groups and time; raise an error if they conflict."""
    given = {"folds": folds if isinstance(folds, str) else None, "groups": groups, "time": time}
    columns = {option: name for option, name in given.items() if name is not None}
    for option, name in columns.items():
        if name == target:
            raise OptionError.of(option, name, "a column other than the target")
    if len(columns) > 1:
        first, second = list(columns)[:2]
        allowed = f"left out if {first}= names a column, which then determines the folds"
        raise OptionError.of(second, columns[second], allowed)
    return tuple(columns.values())


def study_folds(
    opened: EncodedTable,
    source: Any,
    folds: Any,
    *,
    groups: str | None = None,
    time: str | None = None,
    seed: int,
) -> FoldNumbers:
    """Return the fold of each row in memory.

    `folds` is the number of folds, or the name of the column that defines them. With `time`, rows
    of fold -1 are the earliest and are never held out.
    """
    codes = opened.table.codes
    if time is not None:
        return time_folds(_times_of_column(opened, source, time), folds)
    if groups is not None:
        values = _values_of_column(opened, source, groups, "groups")
        most = len(np.unique(values))
        if isinstance(folds, int | np.integer) and folds > most >= 2:
            folds = most
        return fold_numbers(folds, codes, groups=values, seed=seed)
    if isinstance(folds, str):
        folds = _values_of_column(opened, source, folds, "folds")
    return fold_numbers(folds, codes, seed=seed)


def resolve_database(source: Any, table: Any, query: str | None) -> Any:
    """Return a database table or query as one source; other sources are returned unchanged."""
    if isinstance(source, list | tuple) and len(source) == 1:
        source = source[0]
    if table is not None and query is not None:
        raise OptionError.of("query", query, "left out if table= is passed")
    given = table if query is None else query
    if given is None and isinstance(source, str) and engine_of(source) == "sql":
        register(source)
        url, given = split_table(source)
        # the engine raises an error that names what is missing
        return sql(url, given) if given else source
    return source if given is None else sql(source, given)


def reject_csv_options(given: Mapping[str, Any]) -> None:
    """Raise an error for CSV options that are given for a source that is not a CSV."""
    for name, value in given.items():
        if value is not None:
            raise OptionError.of(name, value, "left out: it applies only to CSV files")


def _check_unchanged(source: PartitionedTable, target: str, reading: Mapping[str, Any]) -> None:
    """Raise an error if options differ from those that the table was opened with."""
    if target != source.plan.target:
        raise OptionError.of("target", target, f"'{source.plan.target}', the target of these rows")
    known = {"missing": source.plan.encoding.missing, "weight": source.plan.weight}
    for name, value in reading.items():
        if value not in (None, (), known.get(name)):
            raise OptionError.of(name, value, "left out: these rows are already open")


def _sampled_table(table: PartitionedTable, engine: str) -> EncodedTable:
    """Return the sample of a partitioned table, with notes on all its rows."""
    notes = (*table.notes, f"The {len(table):,} rows are read in partitions ({engine}).")
    return EncodedTable(table.sample, table.plan.encoding, notes, None, table.rows_read)


def _cells_of_column(opened: EncodedTable, source: Any, name: str, option: str) -> ColumnCells:
    """Return the cells of a column that is not a feature, for the rows that are used."""
    frame, _ = read_frame(source, format=opened.format)
    if name not in frame.names:
        allowed = (
            "the number of folds, or the name of a column"
            if option == "folds"
            else (f"one of the columns of {source_name(source)}")
        )
        raise OptionError.of(option, name, allowed)
    cells = frame[name] if opened.kept_rows is None else frame[name].take(opened.kept_rows)
    if cells.n_missing:
        allowed = f"a column without missing cells (it has {cells.n_missing})"
        raise OptionError.of(option, name, allowed)
    return cells


def _values_of_column(opened: EncodedTable, source: Any, name: str, option: str) -> Any:
    """Return a number for each row: rows with equal cells have the same number."""
    cells = _cells_of_column(opened, source, name, option).as_text()
    numbers = {level: f for f, level in enumerate(sorted(cells.levels))}
    return np.array([numbers[level] for level in cells.levels], dtype=np.intp)[cells.values]


def _times_of_column(opened: EncodedTable, source: Any, name: str) -> Any:
    """Return a number for each row that increases with its time."""
    cells = _cells_of_column(opened, source, name, "time")
    if cells.kind != "text":
        return np.asarray(cells.values)
    import pyarrow as pa

    try:  # ISO 8601, as pandas and databases write dates
        times = pa.array(list(cells.levels)).cast(pa.timestamp("us")).cast(pa.int64())
    except pa.ArrowInvalid as fault:
        allowed = f"a column of numbers or of dates such as 2024-05-31 ({str(fault)[:80]})"
        raise OptionError.of("time", name, allowed) from None
    return np.asarray(times)[cells.values]


_LABELS = re.compile(rb"[-+]?[0-9.]+(,[-+]?[0-9.]+)*")
_PAIR = re.compile(rb"(qid|[0-9]+):\S*")


def reject_table(path: Any) -> None:
    """Raise an error if a file does not hold sparse rows."""
    if os.path.isdir(path):
        raise SparseFileError.of_folder(os.fspath(path))
    if "://" in os.fspath(path) or sniff_first_line(path) is None:
        raise SparseFileError.not_sparse(os.fspath(path))


def reject_sparse_file(source: Any) -> None:
    """Raise an error if a file holds sparse rows rather than a table."""
    if isinstance(source, list | tuple) and len(source) == 1:
        source = source[0]
    if is_path(source) and os.path.isfile(source) and not is_model_file(source):
        kind = sniff_first_line(source)
        if kind in ("XMC text", "svmlight"):
            raise CommandError.sparse_rows(source, kind)


def sniff_first_line(path: Any) -> str | None:
    """Return the format that the first line of a file indicates; see the top of this module.

    A line that contains any feature:value is treated as svmlight, so that the svmlight reader
    reports invalid words. The exception is a line that begins with neither labels nor a feature.
    """
    words = _first_words(path)
    if len(words) == 3 and all(word.isdigit() for word in words):
        return "XMC text"
    if not words or not (_LABELS.fullmatch(words[0]) or _PAIR.fullmatch(words[0])):
        return None if words else "labels"
    if any(_PAIR.fullmatch(word) for word in words):
        return "svmlight"
    return "labels" if len(words) == 1 else None


def label_columns(k: int, prefix: str = "") -> list[str]:
    """Return the column names for the k best labels and their scores."""
    return [f"{prefix}{name}_{j}" for j in range(1, k + 1) for name in ("label", "score")]


def _first_words(path: Any) -> list[bytes]:
    """Return the words of the first line of a file that is not blank."""
    for block in line_blocks(path):
        for line in block.split(b"\n", 1000):
            words = line.partition(b"#")[0].split()
            if words:
                return words
    return []
