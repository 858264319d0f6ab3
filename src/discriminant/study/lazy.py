"""Predict where rows are: on Dask's workers or Spark's executors, when somebody asks.

    frame -> the same frame, with columns of answers; nothing is read before it is computed

The model travels with the task. Columns that are added are those of `predict_file`: predicted,
decision (of a model with costs or a reject option), and p(label) of each class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from discriminant.errors import ColumnNamesError, OptionError
from discriminant.estimators.available import is_regressor
from discriminant.posterior import gives_posterior
from discriminant.study.scoring import decides, with_encoding
from discriminant.table.frames import pandas


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
    answering = _Answering(model, used, prefix, probabilities)
    if module.startswith(("dask", "dask_expr")):
        answering.check([str(name) for name in source.columns])
        meta = answering.meta(source._meta)
        return source.map_partitions(answering.of_pandas, meta=meta)
    if module.startswith("pyspark.sql"):
        answering.check(list(source.columns))
        return source.mapInArrow(answering.of_batches, answering.schema(source.schema))
    raise OptionError.of("source", type(source).__name__, "a Dask array, or a Dask or Spark frame")


@dataclass(frozen=True, slots=True)
class _Answering:
    """The columns that a model adds to some rows."""

    model: Any
    used: tuple[str, ...]  # columns that it reads
    prefix: str
    probabilities: bool

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        found = ["predicted", *(["decision"] if decides(self.model) else [])]
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
        if decides(self.model):
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
        frames = pandas()
        kinds = [self._labels(), *(["U"] if decides(self.model) else [])]
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
        made += [types.StringType()] * decides(self.model)
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
