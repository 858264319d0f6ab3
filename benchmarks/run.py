"""`make bench`: run all cases in one go and write docs/benchmarks.md and README's table.

    python benchmarks/run.py [--only NAME ...] [--quick] [--full] [--no-memory] [--resume] [--list]

--only takes beginnings of case names; --quick uses a tenth of the rows; --full includes the long
cases. Only a whole run at full size writes the pages. The first line is a check of the timing: two
identical contenders must be within 5%.

Every case has a time limit. If it is exceeded, the contender that was running is reported as "not
done", with the times of the others. The whole run has a limit as well: cases that would start later
are reported as not run. Each result is stored in build/bench when it is there; --resume continues a
run of the same day and commit that was interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import growth
import xmc
from cases import CASES
from contest import OURS, identical_contenders
from page import NOT_DONE, Run, as_page, as_text, lines_of, update_readme

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGE = ROOT / "docs" / "benchmarks.md"
FULL_PAGE = ROOT / "docs" / "benchmarks_full.md"
STORED = ROOT / "build" / "bench"
_WHOLE = 44 * 60  # seconds of `make bench`
_AFTER = 6 * 60  # seconds of it for label trees and growth, after the cases
_LABEL_TREE = 240  # seconds of one measurement of a label tree
_LONG = 1800  # seconds of a case in `make bench-full`
_LONG_LABEL_TREE = 2 * 3600  # seconds of one measurement of a label tree in `make bench-full`
_ATTEMPTS = 5  # at an A/A check within 5%


def main():
    options = _options()
    cases = [case for case in CASES if options.full or not case.long]
    if options.list:
        print("\n".join(case.name for case in cases))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that workers are stopped too
    same = _check_timing()
    whole = not (options.only or options.quick or options.no_memory)
    kind = ("full" if options.full else "bench") if whole else "part"
    store = Store.open(STORED / kind, options.resume)
    chosen = [c for c in cases if not options.only or c.name.startswith(tuple(options.only))]
    end = perf_counter() + (float("inf") if options.full else _WHOLE - store.seconds())
    lines = []
    for case in chosen:
        limit = min(_LONG if options.full else case.limit, end - _AFTER - perf_counter())
        share, memory = 0.1 if options.quick else 1.0, not options.no_memory
        work = lambda: _or_error(lambda: measure(case, share, limit, memory=memory))  # noqa: E731, B023
        result, took = store.get(case.name, work)
        new = _lines_or_error(case, result)
        print(f"{case.name} ({took:.0f} s)\n{as_text(new)}", file=sys.stderr, flush=True)
        lines += new
    print(as_text(lines))
    if not whole:
        return
    label_trees, _ = store.get("label-trees", lambda: _or_error(lambda: _label_trees(options.full)))
    times, _ = store.get("growth", lambda: _or_error(growth.measure))
    if "error" not in times:
        times = _or_error(lambda: growth.draw(times) or times)
    run = Run(
        lines,
        label_trees,
        times,
        same,
        minutes=store.seconds() / 60,
        date=datetime.date.today().isoformat(),
        commit=_commit(),
        command="make bench-full" if options.full else "make bench",
    )
    path = FULL_PAGE if options.full else PAGE
    path.write_text(as_page(run))
    if not options.full:
        update_readme(ROOT / "README.md", lines)
    print(f"written: {path.relative_to(ROOT)}", file=sys.stderr)


@dataclass(frozen=True)
class Store:
    """Results of one run, each in a file that is written when it is there."""

    folder: Path

    @classmethod
    def open(cls, folder: Path, resume: bool) -> Store:
        """Return the store of a new run, or of an interrupted one of the same day and commit."""
        folder.mkdir(parents=True, exist_ok=True)
        run, about = folder / "run.json", [datetime.date.today().isoformat(), _commit()]
        if resume and not (run.exists() and json.loads(run.read_text()) == about):
            sys.exit(f"There is no run of today and of this commit in {folder} to resume.")
        if not resume:
            for old in folder.glob("*.json"):
                old.unlink()
            run.write_text(json.dumps(about))
        return cls(folder)

    def get(self, name: str, measure: Callable[[], dict]) -> tuple[dict, float]:
        """Return a result, measured unless it is stored, and the seconds that it took."""
        path = self.folder / f"{name}.json"
        if not path.exists():
            started = perf_counter()
            result = measure()
            stored = {"result": result, "seconds": perf_counter() - started}
            path.write_text(json.dumps(stored, indent=1))
        stored = json.loads(path.read_text())
        return stored["result"], stored["seconds"]

    def seconds(self) -> float:
        """Return the seconds of all results together."""
        paths = [path for path in self.folder.glob("*.json") if path.name != "run.json"]
        return sum(json.loads(path.read_text())["seconds"] for path in paths)


def _check_timing():
    """Return the ratio of identical contenders; exit if it is above 1.05 in every attempt."""
    ratios = []
    for _ in range(_ATTEMPTS):
        ratios.append(identical_contenders())
        if ratios[-1] <= 1.05:
            print(f"A/A: identical contenders within {ratios[-1] - 1:.1%}", flush=True)
            return ratios[-1]
    sys.exit(f"A/A: identical contenders differ by {min(ratios) - 1:.1%}; the machine is too busy")


def _label_trees(full):
    """Measure label trees on two sets; in a full run, on large sets and with Bonsai trees too."""
    if not full:
        return xmc.measure_again(["bibtex", "delicious"], ["omikuji", "ours"], limit=_LABEL_TREE)
    sets, tools = ["bibtex", "delicious", "131k", "1m"], ["omikuji", "omikuji-bonsai"]
    return xmc.measure_again(sets, [*tools, "ours", "ours-bonsai"], limit=_LONG_LABEL_TREE)


def _lines_or_error(case, result):
    """Return the lines of a case; if a result lacks something, a line that says so."""
    try:
        return lines_of(case, result)
    except Exception as error:  # one case must not end the run
        return lines_of(case, {"error": f"failed: {type(error).__name__}: {error}"[:80]})


def _or_error(work):
    """Return the result of some work, or the error that it ended with: the page is written."""
    try:
        return work()
    except Exception as error:  # whatever it is, it is printed and is on the page
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return {"error": f"{type(error).__name__}: {error}"[:120]}


def measure(case, share, limit, *, memory):
    """Return times, peaks and agreement of one case, or the error that it ended with.

    `limit` is the number of seconds of the race, and of each measurement of memory.
    """
    if limit < 5:
        return {"error": "not run: the time of the whole run is over"}
    with tempfile.TemporaryDirectory(prefix="discriminant-bench-") as folder:
        result = _worker(folder, limit, "race", case.name, share)
        if "announced" in result:
            result = results_so_far(case, result)
        if "error" in result:
            return result
        peaks = {}
        if memory and case.memory:
            for name in _fastest_of_each(result["best"]):
                if name == OURS or name.split(",")[0] in case.peers:
                    found = _worker(folder, limit, "peak", case.name, share, name)
                    peaks[name] = found.get("megabytes")
        return {**result, "peaks": peaks}


def _fastest_of_each(seconds):
    """Return the fastest variant of each contender ('peer, variant'): the table shows these."""
    slowest_first = sorted(seconds, key=seconds.get, reverse=True)
    return list({name.split(",")[0]: name for name in slowest_first}.values())


def results_so_far(case, stopped):
    """Return the results of a race that exceeded its time limit.

    A peer without any time is reported as not done, in the seconds from its start to the end.
    """
    best, starts = {}, {}
    for name, at, seconds in stopped["announced"]:
        if seconds is None:
            starts.setdefault(name.split(",")[0], at)
        else:
            best[name] = min(seconds, best.get(name, seconds))
    if OURS not in best:
        return {"error": f"not done in {stopped['limit']:.0f} s"}
    done = {name.split(",")[0] for name in best}
    unreached = {
        goal.peer: {
            "note": NOT_DONE if goal.peer in starts else "not started in time",
            "seconds": stopped["end"] - starts.get(goal.peer, stopped["end"]),
        }
        for goal in case.goals
        if goal.peer not in done
    }
    return {"best": best, "unreached": unreached, "apart": None, "bytes": 0}


def _worker(folder, limit, *arguments):
    """Return what one measurement printed; after `limit` seconds, what it announced until then."""
    command = [sys.executable, str(HERE / "worker.py"), *map(str, arguments)]
    # A benchmark must not inherit the thread limits of a test run. Installed packages are compiled
    # to bytecode, and so must this one be.
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith("_NUM_THREADS") and name != "PYTHONDONTWRITEBYTECODE"
    }
    output, errors = Path(folder) / "output", Path(folder) / "errors"
    with output.open("w") as out, errors.open("w") as err:
        process = subprocess.Popen(
            command, stdout=out, stderr=err, env=env | {"TMPDIR": folder}, start_new_session=True
        )
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            return {"announced": _announced(output), "end": perf_counter(), "limit": limit}
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with processes that a peer has started
            process.wait()
    if process.returncode == 0:
        for line in reversed(output.read_text().splitlines()):  # a peer may print when it ends
            with contextlib.suppress(json.JSONDecodeError):
                if isinstance(found := json.loads(line), dict):
                    return found
    print(errors.read_text(), file=sys.stderr)
    last = errors.read_text().strip().splitlines() or [f"stopped by signal {-process.returncode}"]
    return {"error": f"failed: {last[-1][:80]}"}


def _announced(path):
    """Return [contender, clock, seconds or None] of each announcement."""
    found = []
    for line in path.read_text().splitlines():
        with contextlib.suppress(json.JSONDecodeError):  # what a peer prints, or half a line
            found.append(json.loads(line))
    return [each for each in found if isinstance(each, list) and len(each) == 3]


def _commit():
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="beginnings of case names")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--full", action="store_true", help="with the long cases")
    parser.add_argument("--no-memory", action="store_true", help="without peak memory")
    parser.add_argument("--resume", action="store_true", help="continue a run of today")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    return parser.parse_args()


if __name__ == "__main__":
    main()
