"""Predict from file to file or from a database, and for Dask and Spark frames.

`predict_file` reads, predicts and writes a few thousand rows at a time, so memory does not grow
with the number of rows. Rows of a database are read as a stream. The new file replaces an existing
one only when it is complete; if the work stops for any reason, the old file is unchanged.

`predict_frame` adds the same columns to a Dask or Spark frame. The columns are computed on the
workers, when the frame is computed. The added columns are

    predicted      the predicted class; for a regressor, the predicted number
    decision       the decision of a model with costs or a reject option
    p(label)       probability of each class; for a label tree label_1, score_1, ... instead
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from discriminant.assessment.evaluate import encoding_of
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
from discriminant.estimators.meta.encoded import Encoded, check_unseen_option
from discriminant.posterior import gives_posterior
from discriminant.study.data_source import label_columns, reject_csv_options, reject_sparse_file
from discriminant.study.prediction_writers import ArrowWriter, CsvWriter, TableWriter
from discriminant.table.column_cells import Frame, columns_from_arrow, import_pandas
from discriminant.table.column_types import ReadOptions
from discriminant.table.encoding import Column, Encoding
from discriminant.table.files.atomic import atomic_write
from discriminant.table.files.dataset import Dataset, DatasetFile, list_files, open_dataset
from discriminant.table.files.formats import FileFormat
from discriminant.table.files.splits import CsvPart, SplitError
from discriminant.table.load import read_frame

Progress = Callable[[int, int], object]
_ARROW_SUFFIXES = (".parquet", ".arrow", ".feather")
_SUFFIXES = ("", ".csv", ".txt", *_ARROW_SUFFIXES)
_MAX_REREAD = 1 << 28  # size of a file up to which it is read again to count all its invalid cells


@dataclass(frozen=True, slots=True)
class PredictedRows:
    """Summary of the predictions written to a file."""

    rows: int
    counts: dict[str, int]  # number of rows by class or decision
    columns: tuple[str, ...]  # names of the added columns


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
    """Predict every row of a file or database table, and write the rows with the predictions.

    Parameters
    ----------
    model : estimator
        A fitted classifier or regressor that accepts tables (`Encoded`, or a model of a study), or
        one fitted to named numeric columns. A `LabelTree` fitted to rows without names predicts
        files of sparse rows (XMC text or svmlight); only the predicted labels are then written.
    source : path, list of paths, or database table
        One file, or several with the same schema: CSV, Parquet, Arrow IPC or JSON lines. Or a
        table of a database: `discriminant.sql(connection, table_or_query)`, or its URL with
        `#table`; its rows are streamed.
    out : path
        File to write: Parquet if the name ends in .parquet, Arrow IPC for .arrow or .feather,
        CSV for .csv, .txt or no suffix; any other suffix is an error. An existing file
        is replaced only when the new one is complete.
    prefix : str
        Prefix for the names of the added columns. The added columns are `predicted`, `decision`
        (for a model with costs or a reject option), and `p(label)` for each class; for a label tree
        `label_1`, `score_1`, ... instead.
    probabilities : bool
        Whether to add p(label), or the best labels of a label tree.
    safe : bool
        Whether to escape text cells of a CSV that a spreadsheet would run as formulas.
    k : int
        Number of labels to predict for each row with a label tree.
    progress : callable, optional
        Called as progress(rows, total); total is 0 if it is not known.
    encoding, delimiter, decimal, thousands : str, optional
        Format of a CSV, as for `discriminant.open_source`. If the source has a decimal comma, the
        predictions have one too, and are written with the same delimiter.

    Returns
    -------
    PredictedRows
        Number of rows, rows of each class, and the names of the added columns.

    Examples
    --------
    >>> import tempfile, pandas as pd, discriminant as dd
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 6.0, 9.0], "kind": list("aabb")})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame[["size"]].to_csv(f"{folder}/rows.csv", index=False)
    ...     model = dd.Encoded(dd.NearestMean()).fit(frame[["size"]], frame["kind"])
    ...     predict_file(model, f"{folder}/rows.csv", f"{folder}/predictions.csv").counts
    {'a': 2, 'b': 2}
    """
    check_suffix(out)
    progress = progress or (lambda rows, total: None)
    if hasattr(model, "write_predictions") and not hasattr(model, "feature_names_in_"):
        return PredictedRows(
            *model.write_predictions(source, out, k=k, safe=safe, progress=progress)
        )
    style = {
        "encoding": encoding,
        "delimiter": delimiter,
        "decimal": decimal,
        "thousands": thousands,
    }
    model, columns = with_encoding(model)
    predictor = _FilePredictor(model, columns, Path(out), prefix, probabilities, safe, k, style)
    if engine_of(source) == "sql":
        reject_csv_options(style)
        return predictor.write(DatabaseRows.of(source), progress)
    reject_sparse_file(source)
    options = ReadOptions(missing_texts=columns.missing_texts, thousands=thousands)
    dataset = open_dataset(list_files(source), style).with_options(options, columns)
    while True:
        try:
            return predictor.write(dataset, progress)
        except SplitError as error:
            dataset = dataset.split_again(error)


def check_suffix(out: str | os.PathLike[str]) -> None:
    """Raise an error if the suffix of a file of predictions does not name a known format."""
    suffix = Path(out).suffix.lower()
    if suffix not in _SUFFIXES:
        raise CommandError.unknown_suffix(str(out), suffix, [s for s in _SUFFIXES if s])


def with_encoding(model: Any) -> tuple[Any, Encoding]:
    """Return two things: a model that accepts tables, and the encoding of the tables' columns."""
    encoding = encoding_of(model)
    if encoding is not None:
        if is_regressor(model):
            check_unseen_option(encoding.unseen)
        return model, encoding
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        allowed = "one that knows its columns: Encoded(...), or fitted to a frame with names"
        raise OptionError.of("model", type(model).__name__, allowed)
    columns = tuple(Column(str(name), "number", features=(str(name),)) for name in names)
    encoded = Encoded.of_fitted(model, Encoding(columns))
    return encoded, encoded.encoding_


def has_decision(model: Any) -> bool:
    """Whether a model may choose another action than the most probable class."""
    options = (getattr(model, name, None) for name in ("cost", "reject", "outlier"))
    return any(option is not None for option in options) or encoding_of(model).unseen == "reject"


def _added_names(model: Any, prefix: str, *, posteriors: bool) -> list[str]:
    names = ["predicted", *(["decision"] if has_decision(model) else [])]
    if posteriors and gives_posterior(model):
        names += [f"p({label})" for label in model.classes_.tolist()]
    return [f"{prefix}{name}" for name in names]


# --- files ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class DatabaseRows:
    """Rows of a table, view or query of a database, streamed in order like the rows of files."""

    source: SqlSource
    files: tuple[DatasetFile, ...] = ()

    @classmethod
    def of(cls, source: Any) -> DatabaseRows:
        """Open the result of `discriminant.sql`, or the URL of a table."""
        source = as_source(source)
        if source.pushdown:
            raise DatabaseError.must_stay(source.name, "To predict each row")
        return cls(source)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return self.source.names

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[Any, Frame]]:
        """Yield batches of rows, each as an Arrow table and as a frame of cells."""
        start = 0
        with closing(self.source.stream_tables(columns)) as tables:
            for table in tables:
                yield table, Frame(columns_from_arrow(table), table.num_rows, start=start)
                start += table.num_rows


@dataclass(frozen=True, slots=True)
class _FilePredictor:
    """Predictor that writes the rows of a source with their predictions."""

    model: Any
    encoding: Encoding
    out: Path
    prefix: str
    probabilities: bool
    safe: bool
    k: int  # number of labels for each row, for a label tree
    style: Mapping[str, str | None]  # options of the format of a CSV, if they are not detected

    def write(self, source: Dataset | DatabaseRows, progress: Progress) -> PredictedRows:
        """Read, predict and write the rows in batches."""
        name = (
            source.source.name if isinstance(source, DatabaseRows) else source.files[0].format.path
        )
        added = self._added()
        if clash := [column for column in added if column in source.names]:
            raise CommandError.duplicate_column(name, clash)
        with atomic_write(self.out) as file:
            writer = self._writer(file, source)
            try:
                rows, counts = self._write_batches(writer, source, progress)
                if not rows:
                    raise FileError.no_rows(name, len(source.names))
                writer.close()
            except BaseException:
                writer.abort()
                raise
        return PredictedRows(rows, dict(counts), added)

    def _write_batches(
        self, writer: TableWriter, source: Dataset | DatabaseRows, progress: Progress
    ) -> tuple[int, Counter[str]]:
        rows, counts, total = 0, Counter[str](), 0
        if isinstance(source, Dataset) and source.knows_row_count:
            total = sum(part.size for part in source.parts())
        counted = f"{self.prefix}{'decision' if has_decision(self.model) else 'predicted'}"
        for table, frame in self._batches(source):
            try:
                predictions = self._predict(frame)
            except (MissingCellError, CategoryError):
                self._raise_for_whole_file(source)
                raise
            writer.add(table, frame, predictions)
            if not is_regressor(self.model):
                counts.update(predictions[counted])
            rows += len(frame)
            progress(rows, total)
        return rows, counts

    def _batches(self, source: Dataset | DatabaseRows) -> Iterator[tuple[Any, Frame]]:
        """Yield batches of rows in order, each as an Arrow table and as a frame of cells."""
        columns, unread = self._columns_to_read(source)
        if isinstance(source, DatabaseRows):
            yield from source.batches(columns)
            return
        row = 0
        for part in source.parts():
            part.identity.check()
            if isinstance(part, CsvPart) and len(source.files) == 1:
                part = replace(part, start=row, before=row)
            first = row
            for table in part.tables(columns):
                frame = part.frame(table, place=row - first)
                yield table, replace(frame, start=row, excluded=unread)
                row, unread = row + len(frame), ()
            part.identity.check()

    def _columns_to_read(self, source: Dataset | DatabaseRows) -> tuple[list[str], tuple[str, ...]]:
        """Return the columns that the model reads, and all other columns, which are copied as text
        to a CSV.
        """
        if not self._copies_text(source):
            return list(source.names), ()
        used = {column.name for column in self.encoding.used}
        columns = [name for name in source.names if name in used]
        return columns, tuple(name for name in source.names if name not in used)

    def _copies_text(self, source: Dataset | DatabaseRows) -> bool:
        """Whether rows are copied from CSV to CSV exactly as they are written in the source."""
        if isinstance(source, DatabaseRows) or self.out.suffix.lower() in _ARROW_SUFFIXES:
            return False
        return (
            source.files[0].format.kind == "csv"
            and len({file.format.decimal for file in source.files}) == 1
            and not any(file.keys.names for file in source.files)
        )

    def _writer(self, file: Any, source: Dataset | DatabaseRows) -> TableWriter:
        if self.out.suffix.lower() in _ARROW_SUFFIXES:
            return ArrowWriter(file, parquet=self.out.suffix.lower() == ".parquet")
        formats: list[FileFormat] = []
        if self._copies_text(source):
            formats = [file.format for file in source.files]
        names = [*source.names, *self._added()]
        return CsvWriter(file, names, safe=self.safe, formats=formats)

    def _predict(self, frame: Frame) -> dict[str, Any]:
        """Return the columns to add: class and decision as text, probabilities as numbers."""
        model, prefix = self.model, self.prefix
        used = tuple(
            frame[column.name] for column in self.encoding.used if column.name in frame.positions
        )
        if frame.start:  # the first batch has already warned about unused columns
            frame = replace(frame, columns=used)
        predicted = model.predict(frame)
        if predicted.ndim > 1:
            raise ResponseError.several(type(model.estimator_).__name__, predicted.shape[1])
        columns: dict[str, Any] = {
            f"{prefix}predicted": predicted if is_regressor(model) else _texts(predicted),
        }
        frame = replace(frame, columns=used, excluded=())
        if has_decision(model):
            columns[f"{prefix}decision"] = _texts(model.decide(frame))
        if self._n_labels:
            columns |= self._best_labels(frame)
        elif self.probabilities and gives_posterior(model):
            p = np.asarray(model.predict_proba(frame))
            for j, label in enumerate(model.classes_.tolist()):
                columns[f"{prefix}p({label})"] = p[:, j]
        return columns

    def _best_labels(self, frame: Frame) -> dict[str, Any]:
        """Return the best labels of each row with scores; empty where there are fewer labels."""
        import pyarrow as pa

        texts = np.array([*map(str, self.model.classes_.tolist()), ""], dtype=object)
        codes, scores = self.model.predict_topk(frame, k=self._n_labels)
        columns: dict[str, Any] = {}
        for j, name in enumerate(label_columns(self._n_labels, self.prefix)):
            code = codes[:, j // 2]
            columns[name] = (
                pa.array(scores[:, j // 2], mask=code < 0) if j % 2 else texts[code].tolist()
            )
        return columns

    def _raise_for_whole_file(self, source: Dataset | DatabaseRows) -> None:
        """Predict a small file at once, so that the error counts invalid cells of all rows."""
        files = source.files
        if len(files) == 1 and files[0].identity.size <= _MAX_REREAD:
            frame, _ = read_frame(files[0].format.path, encoding=self.encoding, style=self.style)
            self.model.predict(frame)

    @property
    def _n_labels(self) -> int:
        """Number of labels written for each row; 0 if every class gets a probability instead."""
        if not (self.probabilities and hasattr(self.model, "predict_topk")):
            return 0
        return min(self.k, len(self.model.classes_))

    def _added(self) -> tuple[str, ...]:
        posteriors = self.probabilities and not self._n_labels
        names = _added_names(self.model, self.prefix, posteriors=posteriors)
        return (*names, *label_columns(self._n_labels, self.prefix))


def _texts(values: Any) -> list[str]:
    return [str(value) for value in values.tolist()]


# --- Dask and Spark -------------------------------------------------------------------------------


@np.errstate(under="ignore")
def predict_frame(model: Any, source: Any, *, prefix: str = "", probabilities: bool = True) -> Any:
    """Add the predictions of a model to a Dask or Spark frame, without computing it yet.

    Parameters
    ----------
    model : estimator
        A fitted classifier that accepts tables (`Encoded`, or a model of a study), or one fitted
        to named numeric columns; for an array any fitted classifier.
    source : Dask frame, Spark frame or Dask array
        Rows to predict; an array holds the features.
    prefix : str
        Prefix for the names of the added columns.
    probabilities : bool
        Whether to add p(label) for each class.

    Returns
    -------
    Dask frame, Spark frame or Dask array
        The frame with the added columns. For an array, the posteriors (n, K), or the labels (n,)
        without `probabilities`.
    """
    module = type(source).__module__
    if module.startswith("dask.array"):
        return _predict_dask_array(model, source, probabilities)
    model, encoding = with_encoding(model)
    used = tuple(column.name for column in encoding.used)
    predictor = _FramePredictor(model, used, prefix, probabilities)
    if module.startswith(("dask", "dask_expr")):
        predictor.check_names([str(name) for name in source.columns])
        meta = predictor.empty_frame(source._meta)
        return source.map_partitions(predictor.predict_pandas, meta=meta)
    if module.startswith("pyspark.sql"):
        predictor.check_names(list(source.columns))
        schema = predictor.spark_schema(source.schema)
        return source.mapInArrow(predictor.predict_batches, schema)
    raise OptionError.of("source", type(source).__name__, "a Dask array, or a Dask or Spark frame")


@dataclass(frozen=True, slots=True)
class _FramePredictor:
    """Predictor that adds the columns of a model's predictions; it is sent to the workers."""

    model: Any
    used: tuple[str, ...]  # columns that the model reads
    prefix: str
    probabilities: bool

    @property
    def names(self) -> list[str]:
        """Names of the added columns."""
        return _added_names(self.model, self.prefix, posteriors=self.probabilities)

    @property
    def kinds(self) -> list[str]:
        """NumPy kind of each added column: the kind of the labels, text, then floats."""
        model = self.model
        kinds = ["f" if is_regressor(model) else str(model.classes_.dtype.kind)]
        kinds += ["U"] * has_decision(model)
        return kinds + ["f"] * (len(self.names) - len(kinds))

    def check_names(self, present: list[str]) -> None:
        """Raise an error if an added column has the name of a column of the source."""
        for name in self.names:
            if name in present:
                raise ColumnNamesError.of_duplicates(name, [present.index(name), len(present)])

    def columns(self, frame: Any) -> dict[str, Any]:
        """Return the added columns for some rows."""
        columns = [self.model.predict(frame)]
        if has_decision(self.model):
            columns.append(np.array(_texts(self.model.decide(frame))))
        if len(self.names) > len(columns):
            columns += list(np.asarray(self.model.predict_proba(frame)).T)
        return dict(zip(self.names, columns, strict=True))

    def predict_pandas(self, frame: Any) -> Any:
        """Return a pandas frame with the added columns."""
        if not len(frame):
            return self.empty_frame(frame)
        columns = self.columns(frame[[name for name in self.used if name in frame.columns]])
        return frame.assign(
            **{name: list(c) if c.dtype.kind == "U" else c for name, c in columns.items()}
        )

    def empty_frame(self, frame: Any) -> Any:
        """Return the frame with the added columns and their types, but no rows."""
        pandas = import_pandas()
        types = {"f": "float64", "i": "int64", "b": "bool"}
        return frame.iloc[:0].assign(
            **{
                name: pandas.Series(dtype=types.get(kind, "str"))
                for name, kind in zip(self.names, self.kinds, strict=True)
            }
        )

    def predict_batches(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield Arrow batches with the added columns."""
        import pyarrow as pa

        for batch in batches:
            if batch.num_rows:
                table = pa.Table.from_batches([batch])
                used = table.select([name for name in self.used if name in table.column_names])
                for name, column in self.columns(used).items():
                    table = table.append_column(name, pa.array(column.tolist()))
                yield from table.combine_chunks().to_batches()

    def spark_schema(self, schema: Any) -> Any:
        """Return a Spark schema with the added columns."""
        types = import_module("pyspark.sql.types")
        known = {"f": types.DoubleType(), "i": types.LongType(), "b": types.BooleanType()}
        fields = [
            types.StructField(name, known.get(kind, types.StringType()))
            for name, kind in zip(self.names, self.kinds, strict=True)
        ]
        return types.StructType([*schema.fields, *fields])


def _predict_dask_array(model: Any, source: Any, probabilities: bool) -> Any:
    if len(source.chunks[1]) > 1:
        source = source.rechunk({1: -1})
    if probabilities:
        chunks = (source.chunks[0], (len(model.classes_),))
        return source.map_blocks(
            model.predict_proba, dtype=np.float64, chunks=chunks, meta=np.empty((0, 0))
        )
    meta = np.empty(0, dtype=model.classes_.dtype)
    return source.map_blocks(model.predict, dtype=meta.dtype, drop_axis=1, meta=meta)
