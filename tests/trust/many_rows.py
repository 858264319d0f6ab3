"""Fit many rows and say what it took: run by test_many_rows.py in a process of its own.

    python tests/trust/many_rows.py digits          1e7 x 4 float32
    python tests/trust/many_rows.py room C float64  2 GB in that order and type
    python tests/trust/many_rows.py logistic C float64 0.01  400 MB, with that ridge

Between 64 and 128 a float32 is a multiple of 2**-17. So offsets from 100 in that unit are integers
(below 2**20), their products are too, and int64 adds ten million of those without rounding.
"""

import json
import sys

import numpy as np

from discriminant import LDA, Logistic, moments

UNIT = 2.0**-17
BLOCK = 1 << 18


def main(job, *options):
    print(json.dumps({"digits": digits, "room": room, "logistic": logistic}[job](*options)))


def digits():
    X, y = table(10_000_000, 4, "C", "float32")
    with Room() as room:
        found = moments(X, y)
    mean, scatter = exact(X, y)
    new = X[:200_000] + np.float32(0.25)
    flips = LDA(denominator="ml").fit(X, y).predict(new) != labels(new, mean, scatter, len(y))
    size = len(y) / 3
    return {
        "mean": np.abs(found.means - 100 - mean).max() / 100,
        "scatter": np.abs(found.scatter - scatter).max() / size,
        "flips": int(flips.sum()),
        "grown": room.grown,
    }


def room(order, kind):
    X, y = table((1 << 31) // np.dtype(kind).itemsize // 64, 64, order, kind)
    with Room() as room:
        LDA().fit(X, y)
    return {"grown": room.grown, "bytes": X.nbytes}


def logistic(order, kind, ridge):
    X, y = table((400 << 20) // np.dtype(kind).itemsize // 32, 32, order, kind)
    with Room() as room:
        Logistic(ridge=float(ridge)).fit(X, y)
    return {"grown": room.grown, "bytes": X.nbytes}


class Room:
    """How far the memory of this process has grown at most while something was done."""

    def __enter__(self):
        with open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")  # forget the peak so far
        self.before = status("VmRSS")
        return self

    def __exit__(self, *fault):
        self.grown = status("VmHWM") - self.before


def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


def table(rows, width, order, kind):
    """Three classes in turn, mean 100 and standard deviation 1, apart in the first column."""
    rng = np.random.default_rng(8)
    y = (np.arange(rows) % 3).astype(np.uint8)
    X = np.empty((rows, width), dtype=kind, order=order)
    for lo in range(0, rows, BLOCK):
        part = X[lo : lo + BLOCK]
        part[:] = rng.standard_normal(part.shape, dtype=np.float32)
        part[:, 0] += y[lo : lo + BLOCK]
        part += 100
    return X, y


def exact(X, y):
    """Class means, less 100, and scatters; rounded only at the end."""
    means, scatters = [], []
    for k in range(3):
        offsets = (X[y == k].astype(np.float64) - 100) / UNIT
        whole = offsets.astype(np.int64)
        assert (whole == offsets).all()
        n, total = len(whole), [int(s) for s in whole.sum(axis=0)]
        means.append([t / n * UNIT for t in total])
        products = [[int((a * b).sum()) for b in whole.T] for a in whole.T]
        scatters.append(
            [
                [
                    (n * products[i][j] - total[i] * total[j]) / n * UNIT**2
                    for j in range(len(total))
                ]
                for i in range(len(total))
            ]
        )
    return np.array(means), np.array(scatters)


def labels(new, mean, scatter, rows):
    """The nearest mean in the pooled covariance; priors differ by less than 1e-7."""
    offsets = new.astype(np.float64) - 100
    slope = np.linalg.solve(scatter.sum(axis=0) / rows, mean.T)
    return (offsets @ slope - 0.5 * np.einsum("kd,dk->k", mean, slope)).argmax(axis=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
