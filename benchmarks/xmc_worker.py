"""One measurement of one tool in an interpreter of its own; the last line it prints is JSON.

    train TOOL FOLDER SEED THREADS OUT      CPU and wall seconds, peak memory of the process, size
    predict TOOL FOLDER SEED THREADS OUT    CPU ms a row in a batch, wall ms of single rows
    version TOOL                            of its package

Reading the rows, importing and (for us) compiling are outside the times, inside the peak.
"""

from __future__ import annotations

import json
import resource
import shutil
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from xmc_tools import TOOLS, folder_size

_SINGLE = 500  # rows asked one by one


def train(tool, folder, seed, threads, out):
    rows, labels = _part(folder, "train_x"), _part(folder, "train_y")
    shutil.rmtree(out, ignore_errors=True)  # or the size would be that of two models
    tool.open(folder, rows, labels, threads)
    if tool.package == "omikuji":
        del rows, labels  # it has read its own
    cpu, wall = time.process_time(), time.perf_counter()
    tool.train(seed, threads, out)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    tool.save(out)
    return {"cpu": cpu, "wall": wall, "peak": peak, "size": folder_size(out) / 1e6}


def predict(tool, folder, seed, threads, out):
    rows = _part(folder, "test_x")
    tool.load(out, threads)
    ready = tool.ready(rows)
    for i in range(min(20, rows.shape[0])):
        tool.one(tool.single(ready, i))
    times = []
    for _ in range(2):
        cpu, wall = time.process_time(), time.perf_counter()
        answers = tool.best(ready)
        times.append((time.process_time() - cpu, time.perf_counter() - wall))
    np.save(out.with_suffix(".npy"), tool.codes(answers))
    n = rows.shape[0]
    return {
        "row_ms": 1e3 * min(cpu for cpu, _ in times) / n,
        "rows_per_second": n / min(wall for _, wall in times),
        "single_ms": _single(tool, ready, n),
        "predict_peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _single(tool, ready, n):
    """Median wall ms of a row by itself, each made ready beforehand."""
    took, rows = [], [tool.single(ready, i) for i in range(min(_SINGLE, n))]
    for row in rows:
        start = time.perf_counter()
        tool.one(row)
        took.append(time.perf_counter() - start)
    return 1e3 * float(np.median(took))


def _part(folder, name):
    found = sp.csr_matrix(sp.load_npz(folder / f"{name}.npz"))
    found.sort_indices()
    return found


def main(verb, name, folder="", seed="0", threads="1", out=""):
    tool = TOOLS[name]
    if verb == "version":
        print(json.dumps(version(tool.package)))
        return
    job = {"train": train, "predict": predict}[verb]
    print(json.dumps(job(tool, Path(folder), int(seed), int(threads), Path(out))))


if __name__ == "__main__":
    main(*sys.argv[1:])
