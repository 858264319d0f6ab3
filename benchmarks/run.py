"""`make bench`: run every case, print the table, write docs/benchmarks.md.

    python benchmarks/run.py [--only NAME ...] [--quick] [--no-memory]

--only takes beginnings of case names (`--list` shows them); --quick takes a tenth of the rows. The
page is written only by a whole run at full size.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from cases import CASES
from page import as_page, as_text, lines_of

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
_PATIENCE = 1800  # seconds


def main():
    options = _options()
    if options.list:
        print("\n".join(case.name for case in CASES))
        return
    chosen = [c for c in CASES if not options.only or c.name.startswith(tuple(options.only))]
    share = 0.1 if options.quick else 1.0
    lines = []
    for case in chosen:
        print(f"{case.name} …", file=sys.stderr, flush=True)
        found = measure(case, share, memory=not options.no_memory)
        new = lines_of(case, found)
        print(as_text(new), file=sys.stderr, flush=True)
        lines += new
    print(as_text(lines))
    if len(chosen) == len(CASES) and not options.quick and not options.no_memory:
        PAGE.write_text(as_page(lines))
        print(f"written: {PAGE.relative_to(HERE.parent)}", file=sys.stderr)


def measure(case, share, *, memory):
    """Times, peaks and agreement of one case, or the fault that stood in the way."""
    peaks = {}
    found = _worker("race", case.name, share)
    if "fault" in found:
        return found
    if memory and case.memory:
        for name in found["best"]:
            if name == "discriminant" or name.split(",")[0] in case.peers:
                peaks[name] = _worker("peak", case.name, share, name).get("megabytes")
    return {**found, "peaks": peaks}


def _worker(*words):
    """What one measurement printed, or its fault; a part not built yet is no reason to stop."""
    command = [sys.executable, str(HERE / "worker.py"), *map(str, words)]
    # A stopped job must not keep the machine busy, nor a benchmark inherit a test's thread limit.
    free = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE, env=free, check=False
        )
    except subprocess.TimeoutExpired:
        return {"fault": f"not done in {_PATIENCE} s"}
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    reason = (done.stderr.strip().splitlines() or [f"stopped by signal {-done.returncode}"])[-1]
    return {"fault": f"not there yet: {reason[:80]}"}


def _options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
