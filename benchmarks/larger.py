"""Rows in files larger than memory: against the speed at which pyarrow alone reads them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
from contest import OURS, Case, Contest, Goal

import discriminant

_GROUP = 1 << 20  # rows of a row group, as pyarrow writes them


def larger_moments(N, d, K):
    return Case(
        "larger-moments",
        "moments of Parquet files, including reading",
        f"{N:,} × {d}, {K} classes",
        _contest(N, d, K),
        (Goal("pyarrow", at_least=0.9),),
        memory_goal=600.0,
        peers=("pyarrow",),
    )


def larger_logistic(N, d, K, *, long=False):
    return Case(
        f"larger-logistic-{N}",
        "Logistic of Parquet, a pass",
        f"{N:,} × {d}, {K} classes",
        _logistic(N, d, K),
        (Goal("pyarrow"),),
        memory_goal=1000.0,
        peers=(),
        long=long,
    )


def _contest(N, d, K):
    def prepare(share):
        path = parquet(int(N * share), d, K)
        contenders = {OURS: lambda: discriminant.rows(path, target="y").moments.rows.sum()}
        return Contest(contenders | _alone(path), lambda rows: [float(rows)], path.stat().st_size)

    return prepare


def _logistic(N, d, K):
    def prepare(share):
        path = parquet(int(N * share), d, K)
        contenders = {
            OURS: lambda: discriminant.Logistic().fit(discriminant.rows(path, target="y"))
        }
        return Contest(contenders, lambda _: [], path.stat().st_size, run=lambda: _passes(path))

    return prepare


def _passes(path):
    """Seconds of a pass of the fit, and of pyarrow alone."""
    told = []
    rows = discriminant.rows(path, target="y", progress=lambda *done: told.append(done))
    told.clear()
    start = perf_counter()
    discriminant.Logistic().fit(rows)
    seconds = perf_counter() - start
    passes = sum(done == whole for done, whole in told)
    best = {OURS: seconds / passes}
    for name, read in _alone(path).items():
        start = perf_counter()
        read()
        best[name] = perf_counter() - start
    notes = {OURS: f"{passes} passes, {seconds:.0f} s in all"}
    return {"best": best, "apart": None, "unreached": {}, "notes": notes, "passes": passes}


def _alone(path):
    """The same columns read by pyarrow, and let go."""

    def batches():
        with pq.ParquetFile(path, pre_buffer=False) as file:
            return sum(batch.num_rows for batch in file.iter_batches(1 << 16))

    def groups():
        with pq.ParquetFile(path, pre_buffer=False) as file:
            return sum(file.read_row_group(k).num_rows for k in range(file.num_row_groups))

    def scanner():
        return sum(batch.num_rows for batch in pyarrow.dataset.dataset(path).to_batches())

    contenders = {"batches": batches, "row groups": groups, "scanner": scanner}
    return {f"pyarrow, {name}": way for name, way in contenders.items()}


def parquet(N, d, K, seed=0):
    """A file of Gaussian classes, made once."""
    folder = Path(tempfile.gettempdir()) / "discriminant-benchmarks"
    path = folder / f"{N}-{d}-{K}-{seed}.parquet"
    if path.exists():
        return path
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(seed)
    means, labels = rng.normal(size=(K, d)), np.array([f"class {k}" for k in range(K)])
    fields = [*((f"x{j}", pa.float64()) for j in range(d)), ("y", pa.string())]
    beside = path.with_suffix(".part")
    with pq.ParquetWriter(beside, pa.schema(fields)) as writer:
        for lo in range(0, N, _GROUP):
            code = rng.integers(K, size=min(_GROUP, N - lo))
            columns = [rng.standard_normal(len(code)) + means[code, j] for j in range(d)]
            writer.write_table(pa.table([*columns, labels[code]], schema=writer.schema))
    return beside.rename(path)
