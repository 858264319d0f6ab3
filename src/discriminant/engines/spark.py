"""Spark engine: the partitions of a Spark data frame are summed on the executors.

`mapInArrow` turns each partition into one row: the number of the partition and the sum over its
rows. If sums are large, the executors first add the sums of consecutive partitions by `tree_sum`,
and send only the results to the driver. Spark discards the result of a failed task, and no
accumulator is used, so every row is counted once, even if its task is repeated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar, cast

from discriminant.engines.summation import check_unique_names, tree_sum
from discriminant.errors import DiscriminantError, EngineError, ShapeError
from discriminant.table.column_cells import Frame, columns_from_arrow
from discriminant.table.partitioned_source import Additive, Work

A = TypeVar("A", bound=Additive)
_GROUP = 64  # partitions per group; a power of two, as in the tree of `tree_sum`
_SMALL = 8192  # summaries of up to this many numbers are all sent to the driver
_SCHEMA = "part long, total binary"
_ERROR = re.compile(r"[A-Za-z_.]*(Error|Exception): ")


@dataclass(frozen=True, slots=True, eq=False)
class SparkPartition:
    """Rows that Spark passes to a task. The rows can be read only once."""

    number: int
    batches: Any  # iterator of Arrow batches
    names: tuple[str, ...]  # names of the columns
    start: int = 0

    @property
    def name(self) -> str:
        """Name of the partition, for messages."""
        return f"partition {self.number}"

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Yield the rows, one batch at a time."""
        import pyarrow as pa

        for batch in self.batches:
            if batch.num_rows:
                table = pa.Table.from_batches([batch]).rename_columns(list(self.names))
                yield Frame(columns_from_arrow(table.select(list(columns))), table.num_rows)


@dataclass(frozen=True, slots=True, eq=False)
class SparkSource:
    """A Spark data frame."""

    frame: Any
    names: tuple[str, ...]
    name: str = "Spark frame"
    notes: tuple[str, ...] = ("Spark.",)

    def sample(self, columns: Sequence[str], rows: int) -> Frame:
        """Return a random sample of rows from all partitions, with a fixed seed."""
        frame = self._select(columns)
        with _translate_errors():
            count = frame.count()
            if not count:
                raise ShapeError.no_rows(0)
            if count > rows:
                frame = frame.sample(fraction=min(1.1 * rows / count, 1.0), seed=1)
            table = frame.toArrow().combine_chunks().rename_columns(list(columns))
        return Frame(columns_from_arrow(table), table.num_rows)

    def map_reduce(self, work: Work[A]) -> A:
        """Return the sum of the results of all partitions, added in order."""
        sums = self._select(work.columns).mapInArrow(_partition_task(work), _SCHEMA)
        if getattr(getattr(work, "reading", None), "summary_size", _SMALL + 1) > _SMALL:
            sums = sums.groupBy((sums["part"] / _GROUP).cast("long").alias("group"))
            sums = sums.applyInArrow(_add_group, _SCHEMA)
        with _translate_errors():
            totals = sorted((int(row["part"]), bytes(row["total"])) for row in sums.collect())
        return cast(A, _add_pickled(totals))

    def _select(self, columns: Sequence[str]) -> Any:
        """Select some columns and rename them to c0, c1, ...

        Names with dots or quotes cause errors in Spark.
        """
        col = import_module("pyspark.sql.functions").col
        quoted = [f"`{name.replace('`', '``')}`" for name in columns]
        return self.frame.select(*(col(name).alias(f"c{j}") for j, name in enumerate(quoted)))


def accepts(source: Any) -> bool:
    """Whether a source is a data frame of Spark, Spark Connect or pandas on Spark."""
    module, name = type(source).__module__, type(source).__name__
    return name == "DataFrame" and module.startswith(("pyspark.sql", "pyspark.pandas"))


def as_source(source: Any) -> SparkSource:
    """Return a Spark data frame as a partitioned source."""
    if not accepts(source):
        raise EngineError.of_source(type(source).__name__, ["spark"])
    if type(source).__module__.startswith("pyspark.pandas"):
        source = source.to_spark()
    return SparkSource(source, check_unique_names(source.columns))


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate the very long errors of Spark to an EngineError that states the cause."""
    try:
        yield
    except DiscriminantError:
        raise
    except Exception as error:
        module = type(error).__module__.partition(".")[0]
        if module not in ("pyspark", "py4j", "grpc"):
            raise
        raise EngineError.stopped("Spark", _cause(str(error))) from error


def _cause(text: str) -> str:
    """Return the last error in a worker's traceback, or the first line if it contains no error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line)]
    return (errors or lines or [""])[-1 if errors else 0][:300].rstrip(".")


def _partition_task(work: Work[A]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function that a task applies to its partition."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        result = work(SparkPartition(number, batches, work.columns))
        for _ in batches:  # Spark requires that all rows are read, even after an error
            pass
        yield from _sum_row(number, result).to_batches()

    return run


def _add_group(sums: Any) -> Any:
    """Add the sums of neighbouring partitions in order."""
    totals = sorted(zip(sums["part"].to_pylist(), sums["total"].to_pylist(), strict=True))
    return _sum_row(totals[0][0], _add_pickled(totals))


def _add_pickled(totals: list[tuple[int, bytes]]) -> Any:
    load = _serializer().loads
    return tree_sum(load(total) for _, total in totals)


def _sum_row(number: int, total: Any) -> Any:
    """Return an Arrow table of one row with the pickled sum.

    Spark itself also sends objects as pickles.
    """
    import pyarrow as pa

    schema = pa.schema([("part", pa.int64()), ("total", pa.binary())])
    row = {"part": [number], "total": [bytes(_serializer().dumps(total))]}
    return pa.Table.from_pydict(row, schema=schema)


def _serializer() -> Any:
    return import_module("pyspark.serializers").CPickleSerializer()
