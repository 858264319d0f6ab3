"""Rows that somebody else holds: Dask with two workers and with one; inside a database and out."""

from __future__ import annotations

import atexit
import tempfile
from pathlib import Path

from contest import OURS, Case, Contest, Goal
from larger import parquet

import discriminant


def larger_dask(N, d, K):
    return Case(
        "larger-dask",
        "moments on Dask: two workers against one",
        f"{N:,} × {d}, {K} classes",
        _workers(N, d, K),
        (Goal("one worker", at_least=1.5),),
        memory=False,
    )


def larger_sql(N, d, K):
    return Case(
        "larger-sql",
        "moments of a DuckDB table: streamed out of it",
        f"{N:,} × {d}, {K} classes",
        _database(N, d, K),
        (Goal("inside as GROUP BY"), Goal("fetched then summed")),
        memory=False,
    )


def _workers(N, d, K):
    def prepare(share):
        import dask.dataframe as dd
        from distributed import Client, LocalCluster

        path = parquet(int(N * share), d, K)
        contenders = {}
        for name, workers in ((OURS, 2), ("one worker", 1)):
            cluster = LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
            )
            atexit.register(cluster.close)
            contenders[name] = _on(Client(cluster, set_as_default=False), dd, path)
        return Contest(contenders, lambda rows: [float(rows)], path.stat().st_size)

    return prepare


def _on(client, dd, path):
    def read():
        with client.as_current():
            frame = dd.read_parquet(path, split_row_groups=True)
            return discriminant.rows(frame, target="y").moments.rows.sum()

    return read


def _database(N, d, K):
    def prepare(share):
        import duckdb

        path = parquet(int(N * share), d, K)
        place = Path(tempfile.gettempdir()) / "discriminant-benchmarks" / f"{path.stem}.duckdb"
        connection = duckdb.connect(str(place))
        connection.execute(f"CREATE TABLE IF NOT EXISTS t AS SELECT * FROM '{path}'")

        def moments(pushdown):
            source = discriminant.sql(connection, "t", pushdown=pushdown)
            return discriminant.rows(source, target="y").moments

        def fetched():
            table = connection.execute("SELECT * FROM t").to_arrow_table()
            return discriminant.moments(table, target="y")

        contenders = {
            OURS: lambda: moments(False),
            "inside as GROUP BY": lambda: moments(True),
            "fetched then summed": fetched,
        }
        return Contest(contenders, lambda found: found.means.ravel(), path.stat().st_size)

    return prepare
