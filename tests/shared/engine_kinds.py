"""Every engine, as the laws see it. A new one joins by one entry in `ENGINES`.

An entry says how rows of a frame are laid down in so many parts, and opened again from there.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import discriminant as dd
from discriminant.engines.sql import connection as unloading
from tests.shared import databases, sparks


@dataclass(frozen=True)
class Engine:
    """One way to sum rows that are not in memory."""

    name: str
    laid: Callable[[pd.DataFrame, int, Path], Any]  # a source of these rows in so many parts
    needs: tuple[str, ...] = ()  # modules
    options: dict[str, Any] = field(default_factory=dict)  # of `discriminant.rows`
    ready: Callable[[], str] = lambda: ""  # why it cannot be had here, if it cannot
    inside: bool = False  # whether rows stay where they are, and only sums come

    def __repr__(self):
        return self.name

    def rows(self, frame, parts, folder, **options):
        """Rows laid down in parts and opened."""
        return dd.rows(self.laid(frame, parts, folder), **self.options, **options)


def pieces_of(frame, parts):
    """The frame in so many pieces, some of which may be empty."""
    ends = np.linspace(0, len(frame), parts + 1).astype(int)
    return [frame.iloc[lo:hi] for lo, hi in pairwise(ends)]


def _files(ending, write):
    def laid(frame, parts, folder):
        place = folder / f"{ending} {parts}"
        place.mkdir()
        for number, piece in enumerate(pieces_of(frame, parts)):
            write(piece, place / f"{number:03d}.{ending}")
        return place

    return laid


def _parquet(frame, path):
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)


def _arrow(frame, path):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _csv(frame, path):
    frame.to_csv(path, index=False)


def _gzip(frame, path):
    frame.to_csv(path, index=False, compression="gzip")


def _json(frame, path):
    frame.to_json(path, orient="records", lines=True, double_precision=15)


def _row_groups(frame, parts, folder):
    """One Parquet file."""
    path = folder / f"groups {parts}.parquet"
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with pq.ParquetWriter(path, table.schema) as writer:
        for piece in pieces_of(frame, parts):
            writer.write_table(pa.Table.from_pandas(piece, schema=table.schema))
    return str(path)


def _dask(frame, parts, folder):
    import dask

    return [dask.delayed(piece) for piece in pieces_of(frame, parts)]


def _spark(frame, parts, folder):
    return sparks.lay(frame, min(parts, 9))  # a task takes its time; more in test_spark.py


def _database(kind, pushdown=False):
    def laid(frame, parts, folder):
        connection = databases.connect(kind)
        unloading._BATCH = max(len(frame) // parts, 1)  # until conftest.py sets it back
        return dd.sql(connection, (databases.lay(connection, frame),), pushdown=pushdown)

    return laid


def _server():
    return databases.postgres()[1]


ENGINES = [
    Engine("files-parquet", _files("parquet", _parquet)),
    Engine("files-row-groups", _row_groups),
    Engine("files-arrow", _files("arrow", _arrow)),
    Engine("files-csv", _files("csv", _csv)),
    Engine("files-csv-gzip", _files("csv.gz", _gzip)),
    Engine("dask", _dask, needs=("dask", "distributed")),
    Engine("spark", _spark, needs=("pyspark",), ready=sparks.why_not),
    Engine("sql-duckdb", _database("duckdb"), needs=("duckdb",)),
    Engine("sql-sqlite", _database("sqlite")),
    Engine("sql-postgres", _database("postgres"), needs=("psycopg",), ready=_server),
    Engine("sql-duckdb-inside", _database("duckdb", True), needs=("duckdb",), inside=True),
    Engine("sql-sqlite-inside", _database("sqlite", True), inside=True),
    Engine("sql-postgres-inside", _database("postgres", True), ready=_server, inside=True),
]
