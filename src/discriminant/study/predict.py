"""Predict file to file: rows are read, answered and written some thousand at a time.

Rows of a database are streamed out of it. Memory does not grow with the rows. The answers take the
place of an old file whole or not at all: whatever stops the work in the middle leaves what was
there.

Rows of a database that are answered one after the other, as those of files are.

Predict where rows are: on Dask's workers or Spark's executors, when somebody asks.

    frame -> the same frame, with columns of answers; nothing is read before it is computed

The model travels with the task. Columns that are added are those of `predict_file`: predicted,
decision (of a model with costs or a reject option), and p(label) of each class.

How fast rows go by, and how long the rest of them will take.

rate = rows / seconds       left = (of - rows) / rate
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from discriminant.engines.dispatch import engine_of
from discriminant.engines.sql import SqlSource, as_source
from discriminant.errors import (
    CategoryError,
    ColumnNamesError,
    CommandError,
    DatabaseError,
    FileError,
    MissingCellError,
    OptionError,
    ResponseError,
)
from discriminant.estimators.base import is_regressor
from discriminant.estimators.meta.encoded import Encoded, check_unseen
from discriminant.posterior import gives_posterior
from discriminant.report.format import duration
from discriminant.study.data_source import label_columns, reject_csv_options, reject_sparse_file
from discriminant.study.writers import ArrowWriter, CsvWriter, TableWriter
from discriminant.table.cells import Frame, columns_from_arrow, import_pandas
from discriminant.table.column_types import ReadOptions
from discriminant.table.encoding import Column, Encoding
from discriminant.table.files.atomic import atomic_write
from discriminant.table.files.dataset import Dataset, DatasetFile, list_files, open_dataset
from discriminant.table.files.formats import FileFormat
from discriminant.table.files.splits import CsvPart, SplitError
from discriminant.table.load import read_frame


@dataclass(frozen=True, slots=True, eq=False)
class DatabaseRows:
    """The rows of a table, a view or a query."""

    source: SqlSource
    files: tuple[DatasetFile, ...] = ()
    counted: bool = False  # to count them may take as long as to read them

    @classmethod
    def of(cls, source: Any) -> DatabaseRows:
        """What `discriminant.sql` returned, or the URL of a table."""
        found = as_source(source)
        if found.pushdown:
            raise DatabaseError.must_stay(found.name, "To answer each row")
        return cls(found)

    @property
    def name(self) -> str:
        """Of the table."""
        return self.source.name

    @property
    def names(self) -> tuple[str, ...]:
        """Of all columns."""
        return self.source.names

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[Any, Frame]]:
        """Rows as they come, as Arrow has them and as cells."""
        place = 0
        with closing(self.source.stream_tables(columns)) as tables:
            for table in tables:
                yield table, Frame(columns_from_arrow(table), table.num_rows, start=place)
                place += table.num_rows


Progress = Callable[[int, int], object]
Rows = Dataset | DatabaseRows
_READ_AGAIN = 1 << 28  # bytes; up to so many a fault is told as of the whole file


@dataclass(frozen=True, slots=True)
class PredictedRows:
    """What was written."""

    rows: int
    counts: dict[str, int]  # rows of each class, or decision
    columns: tuple[str, ...]  # those added


@np.errstate(under="ignore")
def predict_file(
    model: Any,
    source: Any,
    out: str | os.PathLike[str],
    *,
    prefix: str = "",
    probabilities: bool = True,
    safe: bool = True,
    k: int = 5,
    progress: Progress | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
) -> PredictedRows:
    """Predict the class (of a regressor, the number) of every row of a file, and write them.

    Parameters
    ----------
    model
        A fitted classifier or regressor that takes tables (`Encoded`, or what a study makes), or
        one that was fitted to named columns, which are then numbers; or a `LabelTree` fitted to
        rows without names, for files of sparse rows (XMC text or svmlight), of which only the
        labels found are written: `study.label_files`.
    source
        A file, or several of one schema: CSV, Parquet, Arrow IPC or JSON lines. Or a table of a
        database: `discriminant.sql(connection, table_or_query)`, or its URL with `#table`; its
        rows are streamed out of it.
    out
        The file to write: Parquet if it ends with .parquet, Arrow IPC with .arrow or .feather,
        else a CSV. Written whole, or not at all.
    prefix
        Before the names of the columns that are added: predicted, decision (of a model with
        costs or a reject option), and p(label) of each class; of a label tree label_1, score_1,
        ... of the best, instead.
    probabilities
        Whether to add p(label), or the best labels of a label tree.
    safe
        Whether texts in a CSV are made safe for spreadsheets.
    k
        Of a label tree: how many labels to say of each row.
    progress
        Called as progress(rows, of) while there is work; of is 0 where it is not known.
    encoding, delimiter, decimal, thousands
        How a CSV is written, as for `discriminant.open_source`. Answers to a CSV with a decimal
        comma are written with one too, and with its delimiter.

    Examples
    --------
    >>> import tempfile, pandas as pd, discriminant as dd
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 6.0, 9.0], "kind": list("aabb")})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame[["size"]].to_csv(f"{folder}/rows.csv", index=False)
    ...     model = dd.Encoded(dd.NearestMean()).fit(frame[["size"]], frame["kind"])
    ...     predict_file(model, f"{folder}/rows.csv", f"{folder}/said.csv").counts
    {'a': 2, 'b': 2}
    """
    told = progress or (lambda rows, of: None)
    if hasattr(model, "write_predictions") and not hasattr(model, "feature_names_in_"):
        return PredictedRows(*model.write_predictions(source, out, k=k, safe=safe, progress=told))
    style = {
        "encoding": encoding,
        "delimiter": delimiter,
        "decimal": decimal,
        "thousands": thousands,
    }
    model, columns = with_encoding(model)
    answering = _FilePredictor(model, columns, Path(out), prefix, probabilities, safe, k, style)
    if engine_of(source) == "sql":
        reject_csv_options(style)
        return answering.write(DatabaseRows.of(source), told)
    reject_sparse_file(source)
    found = open_dataset(list_files(source), style)
    wishes = ReadOptions(missing_texts=columns.missing_texts, thousands=thousands)
    found = found.with_options(wishes, columns)
    while True:
        try:
            return answering.write(found, told)
        except SplitError as other:
            found = found.split_again(other)


def with_encoding(model: Any) -> tuple[Any, Encoding]:
    """A model that takes tables, and what it knows of their columns."""
    found = encoding_of(model)
    if found is not None:
        if is_regressor(model):
            check_unseen(found.unseen)
        return model, found
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        allowed = "one that knows its columns: Encoded(...), or fitted to a frame with names"
        raise OptionError.of("model", type(model).__name__, allowed)
    columns = tuple(Column(str(name), "number", features=(str(name),)) for name in names)
    made = Encoded.of_fitted(model, Encoding(columns))
    return made, made.encoding_


def encoding_of(model: Any) -> Any:
    """What the model knows of columns, however deep inside; None if nothing."""
    while model is not None:
        if hasattr(model, "encoding_"):
            return model.encoding_
        model = getattr(model, "estimator_", None)
    return None


def has_decision(model: Any) -> bool:
    """Whether it may decide for something else than the most probable class."""
    costly = any(getattr(model, name, None) is not None for name in ("cost", "reject", "outlier"))
    return costly or encoding_of(model).unseen == "reject"


@dataclass(frozen=True, slots=True)
class _FilePredictor:
    """One file answered."""

    model: Any
    encoding: Encoding
    out: Path
    prefix: str
    probabilities: bool
    safe: bool
    most: int  # labels of a row to say, of a label tree
    style: Mapping[str, str | None]  # how a CSV is written, where it is not guessed

    def write(self, source: Rows, progress: Progress) -> PredictedRows:
        """Read, answer and write, some rows at a time."""
        self._check_names(source)
        with atomic_write(self.out) as file:
            sheet = self._sheet(file, source)
            try:
                rows, counts = self._fill(sheet, source, progress)
                sheet.close()
            except BaseException:
                sheet.abort()
                raise
        return PredictedRows(rows, dict(counts), self._added())

    def _fill(
        self, sheet: TableWriter, source: Rows, progress: Progress
    ) -> tuple[int, Counter[str]]:
        rows, counts = 0, Counter[str]()
        told = f"{self.prefix}{'decision' if has_decision(self.model) else 'predicted'}"
        total = _total(source)
        for table, frame in self._batches(source):
            said = self._answers(frame, source)
            sheet.add(table, frame, said)
            if not is_regressor(self.model):
                counts.update(said[told])
            rows += len(frame)
            progress(rows, total)
        if not rows:
            raise FileError.no_rows(_name(source), len(source.names))
        return rows, counts

    def _batches(self, source: Rows) -> Iterator[tuple[Any, Frame]]:
        """Rows in their order, as Arrow has them and as cells."""
        wanted, others = self._wanted(source)
        if isinstance(source, DatabaseRows):
            yield from source.batches(wanted)
            return
        place = 0
        for part in source.parts():
            part.identity.check()
            if isinstance(part, CsvPart) and len(source.files) == 1:
                part = replace(part, start=place, before=place)
            begun = place
            for table in part.tables(wanted):
                frame = part.frame(table, place=place - begun)
                yield table, replace(frame, start=place, excluded=others)
                place, others = place + len(frame), ()
            part.identity.check()

    def _wanted(self, source: Rows) -> tuple[list[str], tuple[str, ...]]:
        """The columns to read, and those that need not be: a CSV passes its text on."""
        if not self._passes(source):
            return list(source.names), ()
        used = {column.name for column in self.encoding.used}
        wanted = [name for name in source.names if name in used]
        return wanted, tuple(name for name in source.names if name not in used)

    def _passes(self, source: Rows) -> bool:
        if isinstance(source, DatabaseRows):
            return False
        keyed = any(file.keys.names for file in source.files)
        text = source.files[0].format.kind == "csv"
        decimals = {one.format.decimal for one in source.files}
        text = text and len(decimals) == 1  # one file has one decimal sign
        return text and not keyed and self.out.suffix not in (".parquet", ".arrow", ".feather")

    def _sheet(self, file: Any, source: Rows) -> TableWriter:
        if self.out.suffix in (".parquet", ".arrow", ".feather"):
            return ArrowWriter(file, parquet=self.out.suffix == ".parquet")
        formats: list[FileFormat] = []
        if self._passes(source):
            formats = [one.format for one in source.files]
        names = [*source.names, *self._added()]
        return CsvWriter(file, names, safe=self.safe, formats=formats)

    def _answers(self, frame: Frame, source: Rows) -> dict[str, Any]:
        """The columns to add: class and decision as texts, probabilities as numbers."""
        try:
            return self._said(frame)
        except (MissingCellError, CategoryError):
            self._blame(source)
            raise

    def _said(self, frame: Frame) -> dict[str, Any]:
        model, prefix = self.model, self.prefix
        used = tuple(
            frame[column.name] for column in self.encoding.used if column.name in frame.positions
        )
        if frame.start:  # what is too much is told once
            frame = replace(frame, columns=used)
        predicted = model.predict(frame)
        if predicted.ndim > 1:
            raise ResponseError.several(type(model.estimator_).__name__, predicted.shape[1])
        numbers = is_regressor(model)
        found: dict[str, Any] = {
            f"{prefix}predicted": predicted if numbers else _texts(predicted),
        }
        frame = replace(frame, columns=used, excluded=())
        if has_decision(model):
            found[f"{prefix}decision"] = _texts(model.decide(frame))
        if self._few:
            found |= self._best(frame)
        elif self._probable:
            p = np.asarray(model.predict_proba(frame))
            for k, label in enumerate(model.classes_.tolist()):
                found[f"{prefix}p({label})"] = p[:, k]
        return found

    def _best(self, frame: Frame) -> dict[str, Any]:
        """The best labels, empty beyond the last that a row reaches, and their scores."""
        import pyarrow as pa

        texts = np.array([*map(str, self.model.classes_.tolist()), ""], dtype=object)
        codes, scores = self.model.predict_topk(frame, k=self._few)
        found: dict[str, Any] = {}
        for j, name in enumerate(label_columns(self._few, self.prefix)):
            there = codes[:, j // 2] >= 0
            score = pa.array(scores[:, j // 2], mask=~there)
            found[name] = score if j % 2 else texts[codes[:, j // 2]].tolist()
        return found

    def _blame(self, source: Rows) -> None:
        """Raise the fault as of all rows: how many there are of it can be counted only there."""
        files = source.files
        if len(files) == 1 and files[0].identity.size <= _READ_AGAIN:
            path = files[0].format.path
            frame, _ = read_frame(path, encoding=self.encoding, style=self.style)
            self.model.predict(frame)

    @property
    def _few(self) -> int:
        """How many labels to say of each row; 0 of a model that says how probable all are."""
        if not (self.probabilities and hasattr(self.model, "predict_topk")):
            return 0
        return min(self.most, len(self.model.classes_))

    @property
    def _probable(self) -> bool:
        return self.probabilities and gives_posterior(self.model)

    def _added(self) -> tuple[str, ...]:
        names = ["predicted", *(["decision"] if has_decision(self.model) else [])]
        if self._probable and not self._few:
            names += [f"p({label})" for label in self.model.classes_.tolist()]
        return (*(f"{self.prefix}{name}" for name in names), *label_columns(self._few, self.prefix))

    def _check_names(self, source: Rows) -> None:
        clash = [name for name in self._added() if name in source.names]
        if clash:
            raise CommandError.duplicate_column(_name(source), clash)


def _name(source: Rows) -> str:
    return source.name if isinstance(source, DatabaseRows) else source.files[0].format.path


def _total(source: Rows) -> int:
    """Rows in all, where they are counted; else 0."""
    if isinstance(source, DatabaseRows) or not source.knows_row_count:
        return 0
    return sum(part.size for part in source.parts())


def _texts(values: Any) -> list[str]:
    return [str(value) for value in values.tolist()]


@np.errstate(under="ignore")
def predict_frame(model: Any, source: Any, *, prefix: str = "", probabilities: bool = True) -> Any:
    """Add what a model says of each row to a Dask or Spark frame, without reading it yet.

    Parameters
    ----------
    model
        A fitted classifier that takes tables (`Encoded`, or what a study makes), or one that was
        fitted to named columns, which are then numbers; for an array any fitted classifier.
    source
        A Dask or Spark data frame: what is returned is one too. Of a Dask array of features, the
        Dask array (n, K) of posteriors is returned, or of labels (n,) without `probabilities`.
    prefix
        Before the names of the columns that are added.
    probabilities
        Whether to add p(label) of each class.
    """
    module = type(source).__module__
    if module.startswith("dask.array"):
        return _dask_array(model, source, probabilities)
    model, encoding = with_encoding(model)
    used = tuple(column.name for column in encoding.used)
    answering = _FramePredictor(model, used, prefix, probabilities)
    if module.startswith(("dask", "dask_expr")):
        answering.check([str(name) for name in source.columns])
        meta = answering.meta(source._meta)
        return source.map_partitions(answering.of_pandas, meta=meta)
    if module.startswith("pyspark.sql"):
        answering.check(list(source.columns))
        return source.mapInArrow(answering.of_batches, answering.schema(source.schema))
    raise OptionError.of("source", type(source).__name__, "a Dask array, or a Dask or Spark frame")


@dataclass(frozen=True, slots=True)
class _FramePredictor:
    """The columns that a model adds to some rows."""

    model: Any
    used: tuple[str, ...]  # columns that it reads
    prefix: str
    probabilities: bool

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        found = ["predicted", *(["decision"] if has_decision(self.model) else [])]
        if self.probabilities and gives_posterior(self.model):
            found += [f"p({label})" for label in self.model.classes_.tolist()]
        return [f"{self.prefix}{name}" for name in found]

    def check(self, taken: list[str]) -> None:
        """Refuse to add a column of a name that there is."""
        for name in (name for name in self.names if name in taken):
            raise ColumnNamesError.of_duplicates(name, [taken.index(name), len(taken)])

    def said(self, frame: Any) -> dict[str, Any]:
        """Of the columns that it reads of some rows."""
        columns = [self.model.predict(frame)]
        if has_decision(self.model):
            columns.append(np.array([str(value) for value in self.model.decide(frame).tolist()]))
        if len(self.names) > len(columns):
            columns += list(np.asarray(self.model.predict_proba(frame)).T)
        return dict(zip(self.names, columns, strict=True))

    def of_pandas(self, frame: Any) -> Any:
        """A pandas frame with the answers."""
        if not len(frame):
            return self.meta(frame)
        said = self.said(frame[[name for name in self.used if name in frame.columns]])
        return frame.assign(**{n: list(c) if c.dtype.kind == "U" else c for n, c in said.items()})

    def meta(self, frame: Any) -> Any:
        """No rows, but the columns and their types."""
        frames = import_pandas()
        kinds = [self._labels(), *(["U"] if has_decision(self.model) else [])]
        kinds += ["f"] * (len(self.names) - len(kinds))
        made = {"f": "float64", "i": "int64", "b": "bool"}
        empty = frame.iloc[:0]
        return empty.assign(
            **{
                n: frames.Series(dtype=made.get(k, "str"))
                for n, k in zip(self.names, kinds, strict=True)
            }
        )

    def of_batches(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Arrow batches with the answers."""
        import pyarrow as pa

        for batch in batches:
            if batch.num_rows:
                table = pa.Table.from_batches([batch])
                given = table.select([n for n in self.used if n in table.column_names])
                for name, column in self.said(given).items():
                    table = table.append_column(name, pa.array(column.tolist()))
                yield from table.combine_chunks().to_batches()

    def schema(self, given: Any) -> Any:
        """Spark's, with the answers."""
        types = import_module("pyspark.sql.types")
        known = {"f": types.DoubleType(), "i": types.LongType(), "b": types.BooleanType()}
        made = [known.get(self._labels(), types.StringType())]
        made += [types.StringType()] * has_decision(self.model)
        made += [types.DoubleType()] * (len(self.names) - len(made))
        more = [types.StructField(n, t) for n, t in zip(self.names, made, strict=True)]
        return types.StructType([*given.fields, *more])

    def _labels(self) -> str:
        """Kind of the predictions: that of the labels, or numbers of a regressor."""
        return "f" if is_regressor(self.model) else str(self.model.classes_.dtype.kind)


def _dask_array(model: Any, source: Any, probabilities: bool) -> Any:
    if len(source.chunks[1]) > 1:
        source = source.rechunk({1: -1})
    if probabilities:
        width = (len(model.classes_),)
        return source.map_blocks(
            model.predict_proba, dtype=np.float64, chunks=(source.chunks[0], width), meta=_EMPTY
        )
    meta = np.empty(0, dtype=model.classes_.dtype)
    return source.map_blocks(model.predict, dtype=meta.dtype, drop_axis=1, meta=meta)


_EMPTY = np.empty((0, 0))


StudyProgress = Callable[[str, int, int], object]
_EVERY = 0.2  # seconds between two words


class ProgressRate:
    """Passes on what is told of a study, and tells of rows while they are read."""

    def __init__(self, told: StudyProgress | None) -> None:
        self._told = told or (lambda what, done, of: None)
        self._what = "reading"
        self._began = self._last = time.monotonic()
        self._rows = 0

    def __call__(self, what: str, done: int, of: int) -> None:
        """A step of the work."""
        if done >= 0:
            self._what = what
        self._told(what, done, of)

    def rows(self, rows: int, of: int | None) -> None:
        """So many rows are read, of so many; fewer than before is another pass over them."""
        now = time.monotonic()
        if rows <= self._rows:
            self._began = self._last = now
        self._rows = rows
        if now - self._last < _EVERY:
            return
        self._last = now
        rate = rows / max(now - self._began, 1e-9)
        self._told(f"{self._what}: {rate_text(rows, of, rate)}", -1, 0)


def rate_text(rows: int, of: int | None, rate: float) -> str:
    """Rows, how many a second, and the time that is left.

    >>> rate_text(2_000_000, 8_000_000, 1_000_000.0)
    '2,000,000 of 8,000,000 rows, 1,000,000 a second, 6.0 s left'
    """
    whole = "" if of is None else f" of {of:,}"
    left = "" if of is None else f", {duration(max(of - rows, 0) / rate)} left"
    return f"{rows:,}{whole} rows, {rate:,.0f} a second{left}"
