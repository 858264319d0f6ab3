"""What a study reads, and where its rows then are: in memory, or in parts.

One rule, unless `engine` says otherwise:

    a file of at most 256 MB, or an eighth of the memory that is free       into memory
    a larger file, several (a list, a glob, a folder)                       in parts: files
    a Dask or Spark frame, `discriminant.sql(...)`, the URL of a database   in parts: by their kind
    rows that `discriminant.rows` opened                                    in parts, as they are
    anything else: a data frame, an Arrow stream                            in memory already

Sparse rows or a table: what a file is by its first line, and who may read it.

    XMC text    three whole numbers                  3 1836 159
    svmlight    labels, then feature:value           12,47 1:0.5 17:1.25
    labels      alone: a row without features, or a CSV of numbers
    None        none of these: a table, as far as can be told

A wrong guess is refused before rows are read, with the way to what was meant.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discriminant.assessment.resampling.folds import FoldNumbers, fold_numbers
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
from discriminant.errors import CommandError, OptionError, SparseFileError
from discriminant.moments.class_moments import Detail
from discriminant.redaction import masked, register, split_table
from discriminant.table.files.formats import is_model_file
from discriminant.table.files.svmlight import line_blocks
from discriminant.table.load import EncodedTable, is_path, open_source, read_frame
from discriminant.table.partitioned import PartitionedSource

_OF_FILES = ("encoding", "delimiter", "decimal", "progress")  # thousands is of any text
_ONLY_MEMORY = "left out: it limits a file that is read into memory"


@dataclass(frozen=True, slots=True, eq=False)
class StudySource:
    """A source that was read once."""

    name: str  # for people
    opened: EncodedTable  # the rows in memory: all of them, or some
    partitioned: PartitionedTable | None = None  # all of them, where these are in parts

    @property
    def rows(self) -> AnyTable:
        """All of them."""
        return self.opened.table if self.partitioned is None else self.partitioned

    def with_model_notes(self) -> StudySource:
        """With what there is to say of models and rows in parts."""
        if self.partitioned is None:
            return self
        said = (
            "Models made from moments are fitted to all rows, and every model is measured on all "
            "of them."
        )
        if not self.partitioned.sample_is_complete:
            said += (
                " Models that must see rows are fitted to a sample of "
                f"{len(self.partitioned.sample):,} rows from all partitions; figures show it."
            )
        return replace(self, opened=replace(self.opened, notes=(*self.opened.notes, said)))

    def complete(self) -> None:
        """Remove the checkpoint, if there is one: all that was to be done is done."""
        if self.partitioned is not None:
            self.partitioned.complete()


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
    progress: Callable[[int, int | None], None] | None = None,
    **reading: Any,
) -> StudySource:
    """Read a source once, into memory or in parts."""
    source = resolve_database(source, table, query)
    if pushdown:
        source = _summed_inside(source)
    name = source_name(source)
    if isinstance(source, PartitionedTable):
        return StudySource(name, _some(_same(source, target, reading), "opened before"), source)
    whole = MEMORY if reading.get("max_bytes") is not None else None  # what only memory knows of
    if whole is not None and engine not in (None, MEMORY):
        raise OptionError.of("max_bytes", reading["max_bytes"], _ONLY_MEMORY)
    if whole is not None and not _may_be_in_memory(source):
        raise OptionError.of("max_bytes", reading["max_bytes"], _ONLY_MEMORY)
    way = choose_engine(source, engine=engine or whole, partitioned=checkpoint is not None)
    if way == MEMORY:
        return StudySource(name, open_source(source, target=target, **reading))
    given = {**reading, "detail": detail, "progress": progress}
    if not ENGINES[way].reads_files:
        reject_csv_options({n: given.get(n) for n in _OF_FILES if n != "progress"})
        given = {key: value for key, value in given.items() if key not in _OF_FILES}
    found = rows(source, target=target, engine=way, checkpoint=checkpoint, **given)
    return StudySource(name, _some(found, way), found)


def _may_be_in_memory(source: Any) -> bool:
    reader = engine_of(source)
    return reader is None or ENGINES[reader].reads_files


def is_partitioned(
    source: Any, *, engine: str | None, table: Any = None, query: Any = None
) -> bool:
    """Whether a source is to be read in parts."""
    return choose_engine(resolve_database(source, table, query), engine=engine) != MEMORY


def open_partitions(
    source: Any,
    *,
    engine: str | None,
    table: Any = None,
    query: Any = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> PartitionedSource:
    """The parts of a source, none of which is read yet."""
    source = resolve_database(source, table, query)
    way = choose_engine(source, engine=engine, partitioned=True)
    return partitioned_source(
        source, engine=way, **({"progress": progress} if ENGINES[way].reads_files else {})
    )


def source_name(source: Any) -> str:
    """What is read, for people; an address without its secrets."""
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


def study_folds(taken: StudySource, source: Any, folds: Any, *, seed: int) -> FoldNumbers:
    """The fold of each row in memory; `folds` is a number, or the column that defines them."""
    table = taken.opened.table
    if isinstance(folds, str):
        folds = _column(taken.opened, source, folds)
    return fold_numbers(folds, table.codes, seed=seed)


# --- inside ---------------------------------------------------------------------------------------


def resolve_database(source: Any, table: Any, query: str | None) -> Any:
    """A URL or connection with what is to be read from it, as one thing."""
    if isinstance(source, list | tuple) and len(source) == 1:
        source = source[0]
    if table is not None and query is not None:
        raise OptionError.of("query", query, "left out where table= names what is read")
    given = table if query is None else query
    if given is None and isinstance(source, str) and engine_of(source) == "sql":
        register(source)
        url, given = split_table(source)
        return sql(url, given) if given else source  # whose engine says what is missing
    return source if given is None else sql(source, given)


def reject_csv_options(given: Mapping[str, Any]) -> None:
    """Refuse options that describe how a CSV is written, for another source."""
    for name, value in given.items():
        if value is not None:
            raise OptionError.of(name, value, "left out: it is for CSV files")


def _summed_inside(source: Any) -> Any:
    """A table of a database that sums itself."""
    if not isinstance(source, Query):
        raise OptionError.of("pushdown", True, "left out: only a table of a database sums itself")
    return replace(source, pushdown=True)


def _same(source: PartitionedTable, target: str, reading: Mapping[str, Any]) -> PartitionedTable:
    if target != source.plan.target:
        raise OptionError.of("target", target, f"'{source.plan.target}', as these rows have it")
    usual = {"missing": source.plan.encoding.missing, "weight": source.plan.weight}
    for name, value in reading.items():
        if value not in (None, (), usual.get(name)):
            raise OptionError.of(name, value, "left out: these rows are opened already")
    return source


def _some(found: PartitionedTable, way: str) -> EncodedTable:
    """Some rows in memory, with what is to be said of all."""
    told = (*found.notes, f"The {len(found):,} rows are read in parts ({way}).")
    return EncodedTable(found.sample, found.plan.encoding, told, None, found.rows_read)


def _column(opened: EncodedTable, source: Any, name: str) -> Any:
    """Fold of each row by a column, which is read as the other columns were."""
    frame, _ = read_frame(source, format=opened.format)
    if name not in frame.names:
        raise OptionError.of("folds", name, "how many, or the name of a column")
    cells = frame[name].as_text()
    if cells.n_missing:
        raise OptionError.of("folds", name, f"a column without gaps (there are {cells.n_missing})")
    places = {level: f for f, level in enumerate(sorted(cells.levels))}
    folds = np.array([places[level] for level in cells.levels], dtype=np.intp)[cells.values]
    return folds if opened.kept_rows is None else folds[opened.kept_rows]


_LABELS = re.compile(rb"[-+]?[0-9.]+(,[-+]?[0-9.]+)*")
_PAIR = re.compile(rb"(qid|[0-9]+):\S*")


def reject_table(path: Any) -> None:
    """Say of what is no file of sparse rows how it is read as a table."""
    if os.path.isdir(path):
        raise SparseFileError.of_folder(os.fspath(path))
    if "://" in os.fspath(path) or sniff_first_line(path) is None:
        raise SparseFileError.not_sparse(os.fspath(path))


def reject_sparse_file(source: Any) -> None:
    """Say of a file of sparse rows that it is no table."""
    if isinstance(source, list | tuple) and len(source) == 1:
        source = source[0]
    if is_path(source) and os.path.isfile(source) and not is_model_file(source):
        kind = sniff_first_line(source)
        if kind in ("XMC text", "svmlight"):
            raise CommandError.sparse_rows(source, kind)


def sniff_first_line(path: Any) -> str | None:
    """What the first line of a file that holds something is of.

    A line of which any word is feature:value is of svmlight, so that its reader names what is
    wrong with the others; but not one that begins as neither labels nor features do.
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
    """Names of the columns of k labels and their scores."""
    return [f"{prefix}{name}_{j}" for j in range(1, k + 1) for name in ("label", "score")]


def _first_words(path: Any) -> list[bytes]:
    """Of the first line that holds some; none of a file without."""
    for piece in line_blocks(path):
        for line in piece.split(b"\n", 1000):
            words = line.partition(b"#")[0].split()
            if words:
                return words
    return []
