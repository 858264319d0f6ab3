"""A run over many small parts, to be stopped in the middle: slow_run.py FOLDER MODEL [PAUSE].

Prints what is read, and at the end the bits of what was fitted.
"""

import hashlib
import sys
import time
from pathlib import Path

import numpy as np

import discriminant as dd
from discriminant.engines import checkpoint
from discriminant.table.files import splits


def main(folder, model, pause="0"):
    splits.SMALL = 1
    checkpoint._INTERVAL, checkpoint._MIN_WORK = 0.02, 0  # as often as if it took minutes
    folder = Path(folder)
    told = []

    def progress(done, whole):
        time.sleep(float(pause))
        told.append(done)
        print("read", len(told), flush=True)

    keep = {} if model.endswith("-plain") else {"checkpoint": folder / "kept"}
    rows = dd.rows(folder / "rows.parquet", target="y", progress=progress, **keep)
    print("parts", len(rows.source.parts), flush=True)
    if model.startswith("moments"):
        found = [rows.moments.mean, rows.moments.scatter]
    else:
        fitted = dd.Logistic().fit(rows)
        found = [fitted.coef_, fitted.intercept_]
    bits = b"".join(np.ascontiguousarray(array).tobytes() for array in found)
    print("bits", hashlib.sha256(bits).hexdigest(), len(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
