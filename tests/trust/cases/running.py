"""How a case is run: a folder with good and old files, a command in it, and what came of it."""

import io
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import NamedTuple

import discriminant as dd
from discriminant.cli import run as command_line
from tests.trust.cases.tables import FRAME

GOOD = FRAME.assign(c=["u", "v", "w", "u"] * 10)[["a", "b", "c", "y"]]
OLD = ("out.model", "out.csv", "out.html", "out.moments", "out.sql")


class Said(NamedTuple):
    """What a command left."""

    code: int
    stdout: str
    stderr: str
    seconds: float  # of this process, not of others on the same machine

    @property
    def all(self):
        return self.stderr + self.stdout


def call(line, folder):
    """A command in a folder, in this process; `line` as one types it, or a list."""
    args = shlex.split(line) if isinstance(line, str) else [str(arg) for arg in line]
    out, err = io.StringIO(), io.StringIO()
    started = time.process_time()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        code = command_line.run(args)
    return Said(code, out.getvalue(), err.getvalue(), time.process_time() - started)


@cache
def _template():
    folder = Path(tempfile.mkdtemp(prefix="cases"))
    GOOD.to_csv(folder / "good.csv", index=False)
    assert call("fit good.csv --target y --model lda --out good.model", folder).code == 0
    assert call("moments good.csv --target y --out good.moments", folder).code == 0
    rest = dd.Encoded(dd.OneVsRest(dd.LDA())).fit(GOOD[["a", "b"]], GOOD.c.to_numpy())
    rest.save(folder / "rest.model")
    found = {file.name: file.read_bytes() for file in folder.iterdir()}
    shutil.rmtree(folder)
    return found


def prepare(folder):
    """Put the good files and the old ones there."""
    for name, content in _template().items():
        (folder / name).write_bytes(content)
    for name in OLD:
        (folder / name).write_bytes(b"old")
    return folder


def give(given, folder):
    """Put the bad thing there."""
    if callable(given):
        given(folder)
    elif given is not None:
        content = given if isinstance(given, bytes) else given.encode()
        (folder / "t.csv").write_bytes(content)


def state(folder):
    """All that lies in a folder, hidden files too: what it holds, or that it is no file."""
    return {
        place.name: place.read_bytes() if place.is_file() else place.stat().st_mode
        for place in folder.iterdir()
    }


@contextmanager
def small_files(most):
    """A disk on which no file can grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Cost(NamedTuple):
    """What a command took."""

    code: int
    seconds: float  # of CPU
    bytes: int  # at the largest of its process so far


_COSTS = """
import json, re, shlex, sys, time
from pathlib import Path
from discriminant.cli import run as command_line

for line in json.load(sys.stdin):
    started = time.process_time()
    code = command_line.run(shlex.split(line))
    # not ru_maxrss, which begins with that of the parent
    most = 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
    print(json.dumps([code, time.process_time() - started, most]), file=sys.__stdout__)
"""


def costs_of(lines, folder):
    """The code, time and memory of commands, one after the other in a process of their own."""
    found = subprocess.run(
        [sys.executable, "-c", _COSTS],
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    said = [line for line in found.stdout.splitlines() if line.startswith("[")]
    return [Cost(*json.loads(line)) for line in said]
