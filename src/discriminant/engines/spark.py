"""Spark: parts are partitions, summed by `mapInArrow` on the executors.

Each partition gives one row: its number and the sum over its rows. Large sums are added on the
executors in groups of neighbours, by the same tree as everywhere, and only the sums of groups come
to the driver. What a task that failed had summed is thrown away by Spark with the task;
nothing is added on the side, so a row is counted once however often its task was tried.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar, cast

from discriminant.engines.summation import tree_sum
from discriminant.errors import ColumnNamesError, DiscriminantError, EngineError, ShapeError
from discriminant.table.cells import Frame, columns_from_arrow
from discriminant.table.partitioned import Additive, Work

A = TypeVar("A", bound=Additive)
_GROUP = 64  # partitions whose sums are added on an executor: a power of two keeps the tree
_LIGHT = 8192  # numbers of a sum; such sums of all partitions come to the driver
_SUMS = "part long, total binary"
_ERROR = re.compile(r"[A-Za-z_.]*(Error|Exception): ")


@dataclass(frozen=True, slots=True, eq=False)
class SparkPartition:
    """Rows that Spark gives to a task, some at a time, once."""

    number: int
    batches: Any  # iterator of Arrow batches
    names: tuple[str, ...]  # of their columns
    start: int = 0

    @property
    def name(self) -> str:
        """Which it is."""
        return f"partition {self.number}"

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Its rows."""
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
        """Rows drawn from all partitions, by the same seed every time."""
        some = self._select(columns)
        with _told():
            count = some.count()
            if not count:
                raise ShapeError.no_rows(0)
            if count > rows:
                some = some.sample(fraction=min(1.1 * rows / count, 1.0), seed=1)
            table = some.toArrow().combine_chunks().rename_columns(list(columns))
        return Frame(columns_from_arrow(table), table.num_rows)

    def map_reduce(self, work: Work[A]) -> A:
        """One row for each partition or group of them, added here in their order."""
        told = self._select(work.columns).mapInArrow(_summing(work), _SUMS)
        if getattr(getattr(work, "reading", None), "summary_size", _LIGHT + 1) > _LIGHT:
            told = told.groupBy((told["part"] / _GROUP).cast("long").alias("group"))
            told = told.applyInArrow(_adding, _SUMS)
        with _told():
            found = sorted((int(row["part"]), bytes(row["total"])) for row in told.collect())
        return cast(A, tree_sum(_taken(total) for _, total in found))

    def _select(self, columns: Sequence[str]) -> Any:
        """Some columns by other names: Spark trips over dots and quotes in them."""
        col = import_module("pyspark.sql.functions").col
        named = (col(_quoted(name)).alias(f"c{j}") for j, name in enumerate(columns))
        return self.frame.select(*named)


def accepts(source: Any) -> bool:
    """Whether it is a Spark data frame, with or without Connect, or one of pandas on Spark."""
    module, name = type(source).__module__, type(source).__name__
    return name == "DataFrame" and module.startswith(("pyspark.sql", "pyspark.pandas"))


def as_source(source: Any) -> SparkSource:
    """Partitions of a data frame."""
    if not accepts(source):
        raise EngineError.of_source(type(source).__name__, ["spark"])
    if type(source).__module__.startswith("pyspark.pandas"):
        source = source.to_spark()
    names = tuple(source.columns)
    for name in (n for n, count in Counter(names).items() if count > 1):
        places = [j for j, other in enumerate(names) if other == name]
        raise ColumnNamesError.of_duplicates(name, places)
    return SparkSource(source, names)


@contextmanager
def _told() -> Iterator[None]:
    """Faults of Spark, whose texts fill pages, by what caused them."""
    try:
        yield
    except DiscriminantError:
        raise
    except Exception as fault:
        module = type(fault).__module__.partition(".")[0]
        if module not in ("pyspark", "py4j", "grpc"):
            raise
        raise EngineError.stopped("Spark", _cause(str(fault))) from fault


def _cause(text: str) -> str:
    """The last error that a worker's traceback names, or the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line)]
    return (errors or lines or [""])[-1 if errors else 0][:300].rstrip(".")


def _summing(work: Work[A]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What a task does with its partition."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        found = work(SparkPartition(number, batches, work.columns))
        for _ in batches:  # a fault leaves rows behind, and Spark wants all to be taken
            pass
        rows = {"part": [number], "total": [_sent(found)]}
        yield pa.RecordBatch.from_pydict(rows, schema=_sums_schema())

    return run


def _adding(sums: Any) -> Any:
    """Add the sums of neighbours in their order."""
    import pyarrow as pa

    found = sorted(zip(sums["part"].to_pylist(), sums["total"].to_pylist(), strict=True))
    total: Any = tree_sum(_taken(one) for _, one in found)
    rows = {"part": [found[0][0]], "total": [_sent(total)]}
    return pa.Table.from_pydict(rows, schema=_sums_schema())


def _sent(found: Any) -> bytes:
    """A sum as Spark itself sends objects between its processes; it never lies in a file."""
    return bytes(_serializer().dumps(found))


def _taken(found: bytes) -> Any:
    return _serializer().loads(found)


def _serializer() -> Any:
    return import_module("pyspark.serializers").CPickleSerializer()


def _sums_schema() -> Any:
    import pyarrow as pa

    return pa.schema([("part", pa.int64()), ("total", pa.binary())])


def _quoted(name: str) -> str:
    """A column by its name, whatever is in it."""
    return f"`{name.replace('`', '``')}`"
