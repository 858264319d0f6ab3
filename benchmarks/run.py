"""`make bench`: run all cases in one go and write docs/benchmarks.md and README's table.

    python benchmarks/run.py [--only NAME ...] [--quick] [--full] [--no-memory] [--list]

--only takes beginnings of case names; --quick uses a tenth of the rows; --full includes the long
cases. Only a whole run at full size writes the pages. The first line is a check of the timing: two
identical contenders must be within 5%.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import growth
import xmc
from cases import CASES
from contest import identical_contenders
from page import Run, as_page, as_text, lines_of, update_readme

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGE = ROOT / "docs" / "benchmarks.md"
FULL_PAGE = ROOT / "docs" / "benchmarks_full.md"
_TIMEOUT = 1800  # seconds of one case
_ATTEMPTS = 5  # at an A/A check within 5%


def main():
    options = _options()
    cases = [case for case in CASES if options.full or not case.long]
    if options.list:
        print("\n".join(case.name for case in cases))
        return
    started = time.monotonic()
    same = _check_timing()
    chosen = [c for c in cases if not options.only or c.name.startswith(tuple(options.only))]
    lines = []
    for case in chosen:
        case_started = time.monotonic()
        result = measure(case, 0.1 if options.quick else 1.0, memory=not options.no_memory)
        new = lines_of(case, result)
        took = time.monotonic() - case_started
        print(f"{case.name} ({took:.0f} s)\n{as_text(new)}", file=sys.stderr, flush=True)
        lines += new
    print(as_text(lines))
    if options.only or options.quick or options.no_memory:
        return
    label_trees = xmc.measure_again(["bibtex", "delicious"], ["omikuji", "ours"])
    times = growth.measure()
    growth.draw(times)
    run = Run(
        lines,
        label_trees,
        growth.exponents(times),
        same,
        minutes=(time.monotonic() - started) / 60,
        date=datetime.date.today().isoformat(),
        commit=_commit(),
        command="make bench-full" if options.full else "make bench",
    )
    path = FULL_PAGE if options.full else PAGE
    path.write_text(as_page(run))
    if not options.full:
        update_readme(ROOT / "README.md", lines)
    print(f"written: {path.relative_to(ROOT)}", file=sys.stderr)


def _check_timing():
    """Return the ratio of identical contenders; exit if it is above 1.05 in every attempt."""
    ratios = []
    for _ in range(_ATTEMPTS):
        ratios.append(identical_contenders())
        if ratios[-1] <= 1.05:
            print(f"A/A: identical contenders within {ratios[-1] - 1:.1%}", flush=True)
            return ratios[-1]
    sys.exit(f"A/A: identical contenders differ by {min(ratios) - 1:.1%}; the machine is too busy")


def measure(case, share, *, memory):
    """Return times, peaks and agreement of one case, or the error that it ended with."""
    result = _worker("race", case.name, share)
    if "error" in result:
        return result
    peaks = {}
    if memory and case.memory:
        for name in result["best"]:
            if name == "discriminant" or name.split(",")[0] in case.peers:
                peaks[name] = _worker("peak", case.name, share, name).get("megabytes")
    return {**result, "peaks": peaks}


def _worker(*arguments):
    """Return what one measurement printed."""
    command = [sys.executable, str(HERE / "worker.py"), *map(str, arguments)]
    # A benchmark must not inherit the thread limits of a test run.
    env = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT, env=env, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not done in {_TIMEOUT} s"}
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    print(done.stderr, file=sys.stderr)
    reason = (done.stderr.strip().splitlines() or [f"stopped by signal {-done.returncode}"])[-1]
    return {"error": f"failed: {reason[:80]}"}


def _commit():
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="beginnings of case names")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--full", action="store_true", help="with the long cases")
    parser.add_argument("--no-memory", action="store_true", help="without peak memory")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    return parser.parse_args()


if __name__ == "__main__":
    main()
