"""Compare the speed of two commits: `python benchmarks/compare.py BASE [HEAD]`, about 3 minutes.

    make bench-base BASE=main                     this tree against a commit
    python benchmarks/compare.py v1 v2 --only lda_fit predict

Base and head each run in one process, with the same tasks on the same data, and take turns: the
best time of each counts. A ratio is the time of the base divided by that of the head: above 1, the
head is faster. The first task, `numpy`, uses no code of either, so its ratio shows the noise;
differences below that are not differences. Nothing fails here.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

import numpy as np
from rows import gaussian_rows, scored_rows, sparse_rows

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
_SECONDS = 6.0  # of one task, both trees together
_LIMIT = 12.0  # of one task, if its calls take longer than the first one did
_MIN_ROUNDS, _MAX_ROUNDS = 3, 30
_TURN = 0.05  # seconds of calls in one turn


def main() -> None:
    """Time every task in both trees and print a table."""
    options = parse()
    if options.worker:
        work()
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that worktrees are removed
    with ExitStack() as stack:
        trees = [checkout(commit, stack) for commit in (options.base, options.head)]
        workers = [Worker(tree) for tree in trees]
        print("| task | base | head | ratio |\n|---|---:|---:|---:|", flush=True)
        for task in options.only or TASKS:
            before, after = compare(workers, task)
            print(f"| {task} | {show(before)} | {show(after)} | {before / after:.2f} |", flush=True)


def checkout(commit: str | None, stack: ExitStack) -> Path:
    """Return a folder with the files of a commit; of None, this tree."""
    if commit is None:
        return ROOT
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "tree"
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--detach", "--quiet", str(folder), commit], check=True)
    stack.callback(subprocess.run, [*git, "remove", "--force", str(folder)], check=True)
    return folder


def compare(workers: list[Worker], task: str) -> list[float]:
    """Return the best seconds of each tree, in turns."""
    first = [worker.prepare(task) for worker in workers]
    calls = max(int(_TURN / min(first)), 1)
    rounds = int(np.clip(_SECONDS / (calls * sum(first)), _MIN_ROUNDS, _MAX_ROUNDS))
    best, end = list(first), perf_counter() + _LIMIT
    for r in range(rounds):
        if perf_counter() > end:
            break
        for k in (0, 1) if r % 2 else (1, 0):
            best[k] = min(best[k], workers[k].best(calls))
    return best


class Worker:
    """A process with the package of one tree."""

    def __init__(self, tree: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "compare.py"), "--worker"],
            env=os.environ | {"PYTHONPATH": str(tree / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def prepare(self, task: str) -> float:
        """Return the seconds of a call after a first one."""
        return self._ask(f"prepare {task}")

    def best(self, calls: int) -> float:
        """Return the best seconds of some calls."""
        return self._ask(f"time {calls}")

    def _ask(self, line: str) -> float:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"'{line}' ended the process of a tree: {self.process.args}")
        return float(answer)


def work() -> None:
    """Answer the lines of standard input with seconds."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a task prints is not an answer
    call = None
    for line in sys.stdin:
        verb, argument = line.split()
        if verb == "prepare":
            call = TASKS[argument]()
            call()
        calls = 1 if verb == "prepare" else int(argument)
        best = np.inf
        for _ in range(calls):
            start = perf_counter()
            call()
            best = min(best, perf_counter() - start)
        print(best, file=answers, flush=True)


def numpy():
    X, _ = gaussian_rows(20_000, 50, 2)
    return lambda: X.T @ X


def lda_fit_small():
    return fit("LDA", gaussian_rows(150, 4, 3))


def lda_fit():
    return fit("LDA", gaussian_rows(200_000, 30, 5))


def qda_fit():
    return fit("QDA", gaussian_rows(200_000, 30, 5))


def logistic_fit_small():
    return fit("Logistic", scored_rows(500, 10, 2))


def logistic_fit():
    return fit("Logistic", scored_rows(20_000, 20, 3))


def logistic_fit_sparse():
    X, y = sparse_rows(20_000, 20_000, 50)
    return fit("Logistic", (X, y), ridge=1e-4, standardize=False)


def glm_fit():
    X, _ = gaussian_rows(20_000, 20, 2)
    y = np.random.default_rng(0).poisson(np.exp(0.1 * X[:, 0])).astype(float)
    return fit("GLM", (X, y), family="poisson")


def svm_fit():
    return fit("SVM", scored_rows(20_000, 20, 2))


def perceptron_fit():
    return fit("Perceptron", scored_rows(20_000, 20, 2))


def predict():
    return predictor("predict", 2)


def predict_proba():
    return predictor("predict_proba", 2)


def predict_many():
    return predictor("predict", 5)


def predict_one_frame():
    import pandas

    X, y = gaussian_rows(1_000, 20, 3)
    frame = pandas.DataFrame(X, columns=[f"x{j}" for j in range(20)])
    import discriminant

    model, row = discriminant.LDA().fit(frame, y), frame.iloc[:1]
    return lambda: model.predict(row)


def cross_validate():
    import discriminant

    X, y = gaussian_rows(50_000, 20, 5)
    return lambda: discriminant.cross_validate(discriminant.LDA(), X, y)


def label_tree():
    import discriminant

    X, y = sparse_rows(5_000, 5_000, 30)
    labels = np.random.default_rng(0).integers(200, size=len(y))
    return lambda: discriminant.LabelTree(unit_rows=True).fit(X, labels)


def report():
    import discriminant

    X, y = gaussian_rows(2_000, 10, 3)
    folder = Path(tempfile.mkdtemp())
    names = [*(f"x{j}" for j in range(X.shape[1])), "label"]
    rows = np.column_stack([X, y])
    np.savetxt(folder / "rows.csv", rows, delimiter=",", header=",".join(names), comments="")
    return lambda: discriminant.study(folder / "rows.csv", target="label").report(
        folder / "page.html"
    )


def fit(name, rows, **options):
    import discriminant

    model = getattr(discriminant, name)(**options)
    return lambda: model.fit(*rows)


def predictor(method, K):
    import discriminant

    X, y = gaussian_rows(200_000, 20, K)
    call = getattr(discriminant.LDA().fit(X[:5_000], y[:5_000]), method)
    return lambda: call(X)


TASKS = {
    task.__name__: task
    for task in (
        numpy,
        lda_fit_small,
        lda_fit,
        qda_fit,
        logistic_fit_small,
        logistic_fit,
        logistic_fit_sparse,
        glm_fit,
        svm_fit,
        perceptron_fit,
        predict,
        predict_proba,
        predict_many,
        predict_one_frame,
        cross_validate,
        label_tree,
        report,
    )
}


def show(seconds: float) -> str:
    """Return a time with its unit."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def parse() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("base", nargs="?", default="main", help="commit to compare with")
    parser.add_argument("head", nargs="?", help="commit to compare (default: this tree)")
    parser.add_argument("--only", nargs="+", choices=TASKS, help="tasks to run")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
