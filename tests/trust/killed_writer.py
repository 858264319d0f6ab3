"""Kill a process while it saves, many times over: the file is always one of the two it writes.

    python tests/trust/killed_writer.py FOLDER KILLS SEED

A child saves two models in turn over one file, as fast as it can; the parent kills it after a
random while and loads the file. Prints how many files were lost, and how many kills came while it
was being written.
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

SIZE = 100_000  # numbers in an array of the model: some milliseconds to write


def model(value):
    return dd.LDA(prior=np.full(SIZE, value), shrinkage=value)


def save_for_ever(place, models):
    while True:
        for each in models:
            dd.save(each, place)


def main(folder, kills, seed):
    place, models, draw = folder / "model.dd", [model(1.0), model(2.0)], random.Random(seed)
    dd.save(models[0], place)
    told = {"kills": 0, "lost": 0, "while writing": 0, "first": 0, "second": 0}
    started = time.perf_counter()
    dd.save(models[0], place)
    one = time.perf_counter() - started
    for _ in range(kills):
        child = os.fork()
        if child == 0:
            save_for_ever(place, models)
        time.sleep(draw.uniform(0.0, 4.0 * one))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        told["kills"] += 1
        told["while writing"] += (folder / ".model.dd.tmp").exists()
        try:
            found = dd.load(place)
            whole = (found.prior == found.shrinkage).all() and len(found.prior) == SIZE
            told["first" if found.shrinkage == 1.0 else "second"] += 1
            told["lost"] += not whole
        except DiscriminantError:
            told["lost"] += 1
    dd.save(models[0], place)  # whatever the last one left is no obstacle
    told["left over"] = len(list(folder.iterdir())) - 1
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
