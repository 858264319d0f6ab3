"""How the time of a fit grows with the rows, the features and the classes.

The exponent is the slope of log time by log size, by least squares; `largest step` is the largest
ratio of neighbouring times divided by the ratio that the exponent predicts. Two neighbours differ
by a few per cent in d where blocks of a product change (63, 66) and by a factor of three in K.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from contest import Contest, race
from rows import scored_rows

import discriminant

HERE = Path(__file__).resolve().parent
FIGURE = HERE.parent / "docs" / "growth.svg"
SIZES = {
    "N": [(N, 20, 3) for N in (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)],
    "d": [(20_000, d, 3) for d in (8, 16, 32, 63, 66, 96, 128, 192)],
    "K": [(20_000, 20, K) for K in (2, 3, 5, 10, 30, 100)],
}
_LIMIT = 300  # seconds
_SECONDS = 1.5  # timed seconds of one size
MODELS = ("LDA", "QDA", "Logistic", "GLM")


def measure():
    """Return {model: {variable: [(size, seconds)]}}, measured in a process of its own."""
    command = [sys.executable, str(HERE / "growth.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_LIMIT)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    times = {model: {} for model in MODELS}
    for variable, sizes in SIZES.items():
        for N, d, K in sizes:
            X, y = scored_rows(N, d, K)
            contenders = {
                "LDA": lambda: discriminant.LDA().fit(X, y),  # noqa: B023
                "QDA": lambda: discriminant.QDA().fit(X, y),  # noqa: B023
                "Logistic": lambda: discriminant.Logistic(ridge=1e-4).fit(X, y),  # noqa: B023
            }
            if variable != "K":
                counts = np.random.default_rng(0).poisson(np.exp(0.1 * X[:, 0])).astype(float)
                contenders["GLM"] = lambda: discriminant.GLM(family="poisson").fit(
                    X,  # noqa: B023
                    counts,  # noqa: B023
                )
            best, _ = race(Contest(contenders, lambda _: [], 0), _SECONDS)
            for model, seconds in best.items():
                size = {"N": N, "d": d, "K": K}[variable]
                times[model].setdefault(variable, []).append((size, seconds))
    print(json.dumps(times))


def exponents(times):
    """Return rows of a table: model, variable, range, exponent, largest step."""
    rows = []
    for model, by_variable in times.items():
        for variable, pairs in by_variable.items():
            size, seconds = np.log(np.array(pairs).T)
            slope = np.polyfit(size, seconds, 1)[0]
            step = np.exp(np.max(np.diff(seconds) - slope * np.diff(size)))
            span = f"{pairs[0][0]:,} to {pairs[-1][0]:,}"
            rows.append((model, variable, span, f"{slope:.2f}", f"{step:.2f}×"))
    return rows


def draw(times):
    """Write the figure of the page."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "discriminant"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    titles = {
        "N": "rows (d = 20, K = 3)",
        "d": "features (N = 20,000, K = 3)",
        "K": "classes (N = 20,000, d = 20)",
    }
    for axis, (variable, title) in zip(axes, titles.items(), strict=True):
        for model, by_variable in times.items():
            if variable in by_variable:
                axis.loglog(*np.array(by_variable[variable]).T, marker="o", ms=3, label=model)
        axis.set(xlabel=title, ylabel="seconds" if variable == "N" else None)
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    figure.savefig(FIGURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
