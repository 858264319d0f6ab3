"""Kill a process while it writes a file, many times over: the file is always one of two.

    python tests/trust/killed_writer.py FOLDER KILLS SEED [model|text]

A child writes two models (or two texts, as pages and tables are written) in turn over one file, as
fast as it can; the parent kills it after a random while and reads the file. Prints how many files
were lost, and how many kills came while it was being written.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

import discriminant as dd
from discriminant.errors import DiscriminantError
from discriminant.table.files.atomic import atomic_write_bytes

SIZE = 100_000  # numbers in an array of the model: some milliseconds to write


def save_model(place, value):
    dd.save(dd.LDA(prior=np.full(SIZE, value), shrinkage=value), place)


def load_model(place):
    """Which of the two it is; None if neither."""
    try:
        found = dd.load(place)
    except DiscriminantError:
        return None
    whole = (found.prior == found.shrinkage).all() and len(found.prior) == SIZE
    return found.shrinkage if whole else None


def save_text(place, value):
    atomic_write_bytes(place, str(int(value)).encode() * 8 * SIZE)


def load_text(place):
    found = place.read_bytes()
    whole = len(found) == 8 * SIZE and len(set(found)) == 1
    return float(chr(found[0])) if whole else None


KINDS = {"model": (save_model, load_model), "text": (save_text, load_text)}


def write_for_ever(save, place):
    while True:
        for value in (1.0, 2.0):
            save(place, value)


def main(folder, kills, seed, kind="model"):
    place, draw, (save, load) = folder / "file.dd", random.Random(seed), KINDS[kind]
    save(place, 1.0)
    started = time.perf_counter()
    save(place, 1.0)
    one = time.perf_counter() - started
    told = {"kills": 0, "lost": 0, "while writing": 0, 1.0: 0, 2.0: 0}
    for _ in range(kills):
        child = os.fork()
        if child == 0:
            write_for_ever(save, place)
        time.sleep(draw.uniform(0.0, 4.0 * one))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found, beside = load(place), [left for left in _beside(folder) if left.suffix != ".lock"]
        told["kills"] += 1
        told["lost"] += found is None
        told["while writing"] += bool(beside)
        if found is not None:
            told[found] += 1
        if kind == "text":  # each has a name of its own, so that none finds that of another
            for left in beside:
                left.unlink()
    save(place, 1.0)  # whatever the last one left is no obstacle
    told["left over"] = len(_beside(folder))
    print(json.dumps(told))


def _beside(folder):
    return [left for left in folder.iterdir() if left.name.startswith(".file.dd.")]


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
