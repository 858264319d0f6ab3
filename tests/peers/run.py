"""Run the suites of peers against this package: `make peers`.

    python -m tests.peers.run [SUITE ...] [--list VERDICT] [--only-classify]

Each suite is one test file of a peer, taken from its source distribution, with the estimators under
test imported from an adapter. The exit code is 1 where a test is wrong or an expectation stale.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.peers.classification import Classification, Outcome, classify, read_entries
from tests.peers.download import fetch_source
from tests.peers.imports import rewrite_imports
from tests.peers.suites import SUITES, Suite

_HERE = Path(__file__).parent
_BUILD = _HERE.parent.parent / "build" / "peers"
_SECONDS = 3600  # for one suite
_COLUMNS = ("passed", "convention", "lacks", "wrong", "stale", "untouched")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="default: all")
    parser.add_argument("--list", action="append", default=[], choices=_COLUMNS, dest="lists")
    parser.add_argument("--only-classify", action="store_true", help="use the last run's outcomes")
    options = parser.parse_args(arguments)
    unknown = set(options.suites) - {suite.name for suite in SUITES}
    if unknown:
        parser.error(f"no suite {sorted(unknown)}; there are {[suite.name for suite in SUITES]}")
    chosen = [suite for suite in SUITES if not options.suites or suite.name in options.suites]
    entries = read_entries(_HERE / "expected.toml")
    classified = {}
    for suite in chosen:
        outcomes = _BUILD / "outcomes" / f"{suite.name}.jsonl"
        if not options.only_classify:
            print(f"{suite.name}: {suite.distribution}, {suite.file}", flush=True)
            run_suite(suite, outcomes)
        lines = outcomes.read_text().splitlines()
        classified[suite] = classify([Outcome.from_json(line) for line in lines], entries)
    print_lists(classified, ["wrong", "stale", *options.lists])
    print_table(classified)
    return 0 if all(one.clean for one in classified.values()) else 1


def run_suite(suite: Suite, outcomes: Path) -> None:
    """Run one test file in a process of its own and write its outcomes."""
    file = prepare(suite)
    outcomes.parent.mkdir(parents=True, exist_ok=True)
    outcomes.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider"]
    command += ["-c", str(_BUILD / "pytest.ini"), "--rootdir", str(file.parent)]
    command += ["-p", "recorder", "-p", suite.adapter]
    if suite.package != "imblearn":  # which has no fixtures of its own
        command += ["-p", f"{suite.package}.conftest"]
    for test in suite.without:
        command += ["--deselect", f"{file.name}::{test}"]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(_HERE / "adapters"), os.environ.get("PYTHONPATH")])
        ),
        "PEERS_OUTCOMES": str(outcomes),
        "PEERS_SUITE": suite.name,
        "OPENBLAS_NUM_THREADS": "1",
    }
    log = outcomes.with_suffix(".log")
    with log.open("w") as output:
        done = subprocess.run(
            [*command, str(file)],
            cwd=file.parent,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
        )
    if done.returncode not in (0, 1) and not outcomes.exists():
        raise SystemExit(f"pytest could not run {suite.name}: see {log}")


def prepare(suite: Suite) -> Path:
    """A copy of the test and the data beside it, with the imports of the test rewritten."""
    source = fetch_source(suite.distribution, _BUILD / "sources") / suite.package
    folder = _BUILD / "run" / suite.name
    shutil.rmtree(folder, ignore_errors=True)
    target = folder / suite.file
    no_tests = shutil.ignore_patterns("test_*.py")
    for part in (Path(suite.file).parent, *suite.data):
        shutil.copytree(source / part, folder / part, ignore=no_tests)
    (_BUILD / "pytest.ini").write_text("[pytest]\n")
    text = (source / suite.file).read_text()
    if suite.names:
        text = rewrite_imports(
            text, package=suite.package, names=suite.names, adapter=suite.adapter
        )
    target.write_text(text)
    return target


def print_lists(classified: dict[Suite, Classification], wanted: Sequence[str]) -> None:
    for column in dict.fromkeys(wanted):
        for suite, found in classified.items():
            for one in getattr(found, column):
                print(f"{column}: {suite.name}: {_line(column, one)}")


def _line(column: str, one) -> str:
    if column in ("convention", "lacks"):
        outcome, entry = one
        return f"{outcome.test}: {entry.reason}"
    if column == "stale":
        return f"{one.test}: {one.why}"
    if column == "wrong":
        where = "the adapter crashed: " if one.adapter_crashed else ""
        return f"{one.test}: {where}{' '.join(one.message.split())[:300]}"
    return one.test


def print_table(classified: dict[Suite, Classification]) -> None:
    rows = [
        [suite.name, *(len(getattr(found, column)) for column in _COLUMNS)]
        for suite, found in classified.items()
    ]
    totals = [sum(column) for column in zip(*(row[1:] for row in rows), strict=True)]
    print(f"\n{'suite':<14}" + "".join(f"{column:>12}" for column in _COLUMNS))
    for name, *counts in [*rows, ["all", *totals]]:
        print(f"{name:<14}" + "".join(f"{count:>12}" for count in counts))


if __name__ == "__main__":
    sys.exit(main())
