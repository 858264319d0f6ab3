"""Extreme classification against omikuji, napkinXC and libpecos: `make bench-xmc`.

    python benchmarks/xmc.py [--sets bibtex,debian,10k] [--tools omikuji,ours] [--seeds 3]
                             [--walls 1] [--again ours] [--page] [--show]

Every measurement is a process of its own. Those on one thread are made two at a time, one on each
core, the tools of a set and seed one after the other; those on two threads alone, of as many seeds
as --walls says. What was measured is kept in build/xmc/results.json, by
set, seed, tool, version and settings, so that a run goes on where the last one stopped; of ours the
version is a digest of its source. `--again` measures these tools anew; `--show` measures nothing
and shows the last of each, whatever the version. The page is written by --page, or by a run of all
sets.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from xmc_page import as_page, as_text
from xmc_sets import NAMES, REAL, ROOT, folder_of, load
from xmc_synth import SIZES
from xmc_tools import OURS, PEERS, TOOLS

from discriminant.extreme.model.propensity import inverse_propensity
from discriminant.extreme.ranking_measures import TopK

HERE = Path(__file__).resolve().parent
KEPT = ROOT / "build" / "xmc"
RESULTS = KEPT / "results.json"
PAGE = ROOT / "docs" / "benchmarks_xmc.md"
PEER_PYTHON = ROOT / ".venv-xmc" / "bin" / "python"
SETS = ("bibtex", "delicious", "debian", "10k", "50k", "131k", "1m")
OURS_ALONE = ("1m",)  # an hour for us, and days for some peers
_PATIENCE = 4 * 3600  # seconds
_SOURCE = ("extreme/*.py", "extreme/model/*.py", "cached_njit.py")


def main():
    options = _options()
    if not options.show:
        _measure(options)
    found = _means(_kept(), options)
    print(as_text(found))
    if options.page or set(options.sets) >= set(SETS):
        PAGE.write_text(as_page(found))
        print(f"written: {PAGE.relative_to(ROOT)}", file=sys.stderr)


def measure_again(sets, tools, *, limit):
    """Measure these tools with one seed, without regard to earlier results, and return theirs.

    A measurement that takes more than `limit` seconds is left out.
    """
    global RESULTS, _PATIENCE
    RESULTS, _PATIENCE = KEPT / "bench.json", limit
    RESULTS.unlink(missing_ok=True)
    options = argparse.Namespace(sets=sets, tools=tools, seeds=1, walls=1, again=tools, show=False)
    KEPT.mkdir(parents=True, exist_ok=True)
    _measure(options)
    return _means(_kept(), options)


def _here(names):
    """Sets whose rows are on this machine."""
    if REAL.exists():
        return names
    absent = [name for name in names if name not in SIZES]
    if absent:
        print(f"left out, not in {REAL}: {', '.join(absent)}", file=sys.stderr)
    return [name for name in names if name in SIZES]


def _measure(options):
    """Measure what is not known yet."""
    jobs = [job for threads in (1, 2) for job in _jobs(options, threads)]
    for name, seed, tool, _ in jobs:  # sets are made, and versions asked for, one by one
        folder_of(name, seed)
        _key(name, seed, tool)
    for threads in (1, 2):
        some = [job for job in jobs if job[-1] == threads]
        with ThreadPoolExecutor(2 // threads) as pool:
            list(pool.map(lambda job: _measured(*job, again=job[2] in options.again), some))


def _jobs(options, threads):
    """(set, seed, tool, threads) of what is asked for."""
    for name in _here(options.sets):
        alone = name in OURS_ALONE
        seeds = 1 if alone else options.seeds if threads == 1 else options.walls
        for seed in range(0 if alone and threads == 1 else seeds):
            for tool in options.tools:
                if not alone or tool in ("ours", "ours-1"):
                    yield name, seed, tool, threads


def _measured(name, seed, tool, threads, *, again):
    key = _key(name, seed, tool)
    if not again and str(threads) in _kept().get(key, {}):
        return
    found = _one(name, seed, tool, threads)
    told = {k: round(v, 4) for k, v in found.items() if k != "fault"} or found
    print(f"{name} seed {seed} {tool}, {threads} thread(s): {told}", file=sys.stderr, flush=True)
    if "fault" not in found:  # it may be mended by the next run: it is not kept
        _keep(key, str(threads), found)


def _one(name, seed, tool, threads):
    folder = folder_of(name, seed)
    out = KEPT / "models" / f"{name}-{seed}-{tool}-{threads}"
    out.parent.mkdir(parents=True, exist_ok=True)
    words = (tool, folder, seed, threads, out)
    trained = _worker(tool, "train", *words)
    if "fault" in trained:
        return trained
    predicted = _worker(tool, "predict", *words)
    if "fault" in predicted:
        return predicted
    return {**trained, **predicted, **assessed(folder, np.load(out.with_suffix(".npy")))}


def assessed(folder, codes):
    """Measures of the best five labels, alike for everybody."""
    train, truth = load(folder, "train_y"), load(folder, "test_y")
    frequency = np.asarray(train.sum(axis=0)).ravel()
    inverse = inverse_propensity(frequency, rows=train.shape[0])
    found = TopK.of(codes, truth, inverse_propensity=inverse)
    at = {f"p{k}": found.precision[k - 1] for k in (1, 3, 5)} | {"psp5": found.ps_precision[4]}
    return {name: 100 * float(value) for name, value in at.items()}


def _worker(tool, verb, *words):
    python = sys.executable if tool in OURS else str(PEER_PYTHON)
    command = [python, str(HERE / "xmc_worker.py"), verb, *map(str, words)]
    threads = str(words[3]) if len(words) > 3 else "1"
    limits = {f"{lib}_NUM_THREADS": threads for lib in ("OMP", "OPENBLAS", "NUMBA", "MKL")}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            env=os.environ | limits,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"fault": f"not done in {_PATIENCE} s"}
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    reason = (done.stderr.strip().splitlines() or [f"stopped by signal {-done.returncode}"])[-1]
    return {"fault": reason[:120]}


_VERSIONS: dict[str, str] = {}


def _key(name, seed, tool):
    if tool not in _VERSIONS:
        _VERSIONS[tool] = _digest() if tool in OURS else str(_worker(tool, "version", tool))
    settings = {k: v for k, v in vars(TOOLS[tool]).items() if k in ("bonsai", "settings")}
    return "|".join((name, str(seed), tool, _VERSIONS[tool], json.dumps(settings)))


def _digest():
    package = ROOT / "src" / "discriminant"
    files = sorted(file for pattern in _SOURCE for file in package.glob(pattern))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def _keep(key, threads, found):
    """Add to the file, in which another measurement may have been written meanwhile."""
    with open(RESULTS.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = _kept()
        kept[key] = kept.get(key, {}) | {threads: found}
        beside = RESULTS.with_suffix(".new")
        beside.write_text(json.dumps(kept, indent=1))
        beside.replace(RESULTS)


def _kept():
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def _means(kept, options):
    """{set: {tool: {measure: mean over seeds}}}; of two threads the measures end with 2."""
    find, found = _last if options.show else _exactly, {}
    for name in options.sets:
        runs = {
            tool: [find(kept, name, seed, tool) for seed in range(options.seeds)]
            for tool in options.tools
        }
        for tool, some in runs.items():
            one = _mean([some[seed]["1"] for seed in _shared(runs, "1") if "1" in some[seed]])
            two = _mean([some[seed]["2"] for seed in _shared(runs, "2") if "2" in some[seed]])
            if name in OURS_ALONE:
                one = two
            two = {f"{measure}2": value for measure, value in two.items()}
            if one or two:
                found.setdefault(name, {})[tool] = one | two
    return found


def _shared(runs, threads):
    """Seeds of which every tool that was measured at all has a figure: means are of the same."""
    of = [{seed for seed, run in enumerate(some) if threads in run} for some in runs.values()]
    return sorted(set.intersection(*[seeds for seeds in of if seeds] or [set()]))


def _exactly(kept, name, seed, tool):
    return kept.get(_key(name, seed, tool), {})


def _last(kept, name, seed, tool):
    found = {}
    for key, known in kept.items():
        if key.startswith(f"{name}|{seed}|{tool}|"):
            found |= known
    return found


def _mean(runs):
    if not runs:
        return {}
    return {"seeds": len(runs)} | {k: float(np.mean([run[k] for run in runs])) for k in runs[0]}


def _options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words = lambda text: [word for word in text.split(",") if word]  # noqa: E731
    parser.add_argument("--sets", type=words, default=list(SETS), help=", ".join(NAMES))
    parser.add_argument("--tools", "--peers", type=words, default=[*PEERS, *OURS])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--walls", type=int, default=1, help="seeds measured on two threads too")
    parser.add_argument("--again", type=words, default=[], help="tools to measure anew")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--show", action="store_true", help="measure nothing")
    options = parser.parse_args()
    for word, known in ((options.sets, NAMES), (options.tools, TOOLS), (options.again, TOOLS)):
        if odd := [each for each in word if each not in known]:
            parser.error(f"{odd} is not among {list(known)}")
    return options


if __name__ == "__main__":
    main()
