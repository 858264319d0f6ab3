"""Time this tree against another commit on common tasks.

    make bench-base BASE=main       # or: python benchmarks/base_head.py main --only lda_fit report

Base and head take turns, each in a process of its own, and the best time of each counts. A ratio is
the time of the base divided by that of the head: above 1, the head is faster. Nothing fails here;
differences below some 10% are noise on a shared machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
from rows import gaussian_rows
from scipy import sparse

import discriminant as dd

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
_REPEATS = 3  # in one process, after one run that is not timed


def main() -> None:
    """Time every task in both trees and print a table."""
    options = parse()
    if options.worker:
        print(best_time(TASKS[options.worker]()))
        return
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        git("worktree", "add", "--detach", "--quiet", str(base), options.base)
        try:
            compare(base, options.only or list(TASKS), options.rounds)
        finally:
            git("worktree", "remove", "--force", str(base))


def compare(base: Path, tasks: list[str], rounds: int) -> None:
    """Print one line for each task, as Markdown."""
    print("| task | base | head | ratio |\n|---|---:|---:|---:|", flush=True)
    for task in tasks:
        times = [(run(base, task), run(ROOT, task)) for _ in range(rounds)]
        before, after = map(min, zip(*times, strict=True))
        print(f"| {task} | {before:.3f} s | {after:.3f} s | {before / after:.2f} |", flush=True)


def run(tree: Path, task: str) -> float:
    """Return the seconds that a task takes with the package of one tree."""
    command = [sys.executable, str(HERE / "base_head.py"), "--worker", task]
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout.splitlines()[-1])


def best_time(task) -> float:
    """Return the best time of several runs."""
    task()  # compiles loops and fills caches
    times = []
    for _ in range(_REPEATS):
        start = perf_counter()
        task()
        times.append(perf_counter() - start)
    return min(times)


def gaussian(N=200_000, d=30, K=5):
    return gaussian_rows(N, d, K)


def lda_fit():
    X, y = gaussian()
    return lambda: dd.LDA().fit(X, y)


def qda_fit():
    X, y = gaussian()
    return lambda: dd.QDA().fit(X, y)


def logistic_fit():
    X, y = gaussian(50_000, 20, 3)
    return lambda: dd.Logistic().fit(X, y)


def cross_validate():
    X, y = gaussian(50_000)
    return lambda: dd.cross_validate(dd.LDA(), X, y)


def label_tree():
    X, y = gaussian(5_000, 100, 200)
    X = sparse.csr_array(X * (X > 1))
    return lambda: dd.LabelTree(unit_rows=True).fit(X, y)


def report():
    X, y = gaussian(2_000, 10, 3)
    folder = Path(tempfile.mkdtemp())
    names = [*(f"x{j}" for j in range(X.shape[1])), "label"]
    rows = np.column_stack([X, y])
    np.savetxt(folder / "rows.csv", rows, delimiter=",", header=",".join(names), comments="")
    return lambda: dd.study(folder / "rows.csv", target="label").report(folder / "page.html")


TASKS = {
    task.__name__: task
    for task in (lda_fit, qda_fit, logistic_fit, cross_validate, label_tree, report)
}


def git(*arguments: str) -> None:
    """Run git in this repository."""
    subprocess.run(["git", "-C", str(ROOT), *arguments], check=True)


def parse() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("base", nargs="?", default="main", help="commit to compare with")
    parser.add_argument("--only", nargs="+", choices=TASKS, help="tasks to run")
    parser.add_argument("--rounds", type=int, default=3, help="turns of base and head")
    parser.add_argument("--worker", choices=TASKS, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
