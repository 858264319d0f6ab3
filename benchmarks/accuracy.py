"""`make contest`: what `report` selects, against classifiers of scikit-learn and glmnet.

    python benchmarks/accuracy.py [--only NAME ...] [--contenders NAME ...] [--repeats 5] [--keep]

Every table is halved at random, stratified by class, five times; each half is the training set once
and the test set once (5 x 2 folds). Every contender sees the same rows. The measures are the log
loss and the error on the test rows, averaged over the ten test sets. A whole run writes
docs/contest.md and a sentence of the README. With --keep, results in build/contest are used again,
and nothing is written.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from accuracy_page import Result, as_page, as_text, update_readme
from accuracy_peers import OURS, contenders
from accuracy_tables import describe, public_tables
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "contest.md"
KEPT = ROOT / "build" / "contest"
_LEAST = 1e-15  # probabilities are at least this


def main():
    options = _options()
    started = time.monotonic()
    names = [name for name in contenders() if name in (options.contenders or contenders())]
    tables = [t.name for t in public_tables() if not options.only or t.name in options.only]
    KEPT.mkdir(parents=True, exist_ok=True)
    jobs = [(table, name, options.repeats, options.keep) for table in tables for name in names]
    results = []
    # one thread each: the processes use the cores
    with ProcessPoolExecutor(options.workers, initializer=_one_thread) as pool:
        for job in as_completed([pool.submit(_measure, *job) for job in jobs]):
            result = job.result()
            results.append(result)
            print(_line(result, len(results), len(jobs)), file=sys.stderr, flush=True)
    minutes = (time.monotonic() - started) / 60
    print(as_text(results))
    if not (options.only or options.contenders or options.keep or options.repeats != 5):
        PAGE.write_text(as_page(results, minutes))
        update_readme(ROOT / "README.md", results)
        print(f"written: {PAGE.relative_to(ROOT)}", file=sys.stderr)


def _one_thread():
    threadpool_limits(1)


def _measure(table_name, contender, repeats, keep):
    """Return the measures of one contender on one table."""
    place = KEPT / f"{table_name}__{contender.replace(' ', '_')}__{repeats}.json"
    if keep and place.exists():
        return Result(**json.loads(place.read_text()))
    table = next(t for t in public_tables() if t.name == table_name)
    rows, target = table.frame(), table.target
    evaluate = contenders()[contender]
    losses, errors, headlines, selected = [], [], [], []
    started = time.process_time()
    failure = ""
    for train, test in _splits(rows[target].to_numpy(), repeats):
        try:
            answer = evaluate(rows.iloc[train], rows.iloc[test], target)
        except Exception as error:  # a contender that fails loses; the page says why
            failure = f"{type(error).__name__}: {str(error)[:200]}"
            break
        truth = rows[target].to_numpy(dtype=str)[test]
        errors.append(float(np.mean(answer.labels.astype(str) != truth)))
        losses.append(_log_loss(answer, truth))
        headlines.append(answer.headline)
        selected.append(answer.selected)
    result = Result(
        table_name,
        table.source,
        describe(rows, target),
        contender,
        losses,
        errors,
        headlines,
        selected,
        time.process_time() - started,
        failure,
    )
    place.write_text(json.dumps(result.__dict__))
    return result


def _splits(labels, repeats):
    """Yield training and test rows of `repeats` random halvings, each half once as test set."""
    from sklearn.model_selection import StratifiedKFold

    for repeat in range(repeats):
        halves = StratifiedKFold(2, shuffle=True, random_state=repeat)
        yield from halves.split(labels, labels)


def _log_loss(answer, truth):
    if answer.probabilities is None:
        return None
    place = {str(label): k for k, label in enumerate(answer.classes)}
    proba = np.asarray(answer.probabilities, dtype=np.float64)
    proba = proba / proba.sum(axis=1, keepdims=True)
    own = proba[np.arange(len(truth)), [place[label] for label in truth]]
    return float(-np.mean(np.log(np.clip(own, _LEAST, 1))))


def _line(result, done, total):
    loss = "-" if result.losses in ([], [None] * len(result.losses)) else f"{result.loss:.4f}"
    error = f"{result.error:.4f}" if result.errors else result.failure
    chosen = f" {sorted(set(result.selected))}" if result.contender == OURS else ""
    return (
        f"[{done}/{total}] {result.table}: {result.contender}: log loss {loss}, error {error}, "
        f"{result.seconds:.1f} s{chosen}"
    )


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="names of tables")
    parser.add_argument("--contenders", nargs="*", default=[], help="names of contenders")
    parser.add_argument("--repeats", type=int, default=5, help="number of random halvings")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", action="store_true", help="use stored results again")
    return parser.parse_args()


if __name__ == "__main__":
    main()
