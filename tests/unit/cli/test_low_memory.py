"""Commands whose address space is limited: they work, or end with exit code 2; never a hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from discriminant.engines import available_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux enforces them")

resource = pytest.importorskip("resource")
MB = 1 << 20


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 300)
    rows = rng.normal(size=(300, 4)) + codes[:, None]
    lines = [
        ",".join([*(f"{x:.4f}" for x in row), f"c{code}"])
        for row, code in zip(rows, codes, strict=True)
    ]
    path = tmp_path / "table.csv"
    path.write_text("a,b,c,d,y\n" + "\n".join(lines) + "\n")
    return path


def limited(arguments: list[str], megabytes: int, **options: object) -> subprocess.Popen[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * MB, megabytes * MB))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return subprocess.Popen(
        [sys.executable, *arguments],
        preexec_fn=limit,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )


def report(table: Path, megabytes: int) -> tuple[int, str]:
    command = ["-m", "discriminant", "report", str(table), "--target", "y", "--models", "lda,qda"]
    process = limited([*command, "--out", str(table.with_suffix(".html"))], megabytes)
    try:
        _, err = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, err


@pytest.mark.parametrize("megabytes", [400, 700])
def test_limit_too_low_for_the_libraries_is_refused_before_they_are_loaded(
    table: Path, megabytes: int
) -> None:
    code, err = report(table, megabytes)
    assert code == 2
    assert f"Out of memory: this process is limited to {megabytes} MB" in err
    assert "ulimit -v 786432" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("megabytes", [800, 1900])
def test_report_works_where_threads_and_memory_pools_did_not_fit(
    table: Path, megabytes: int
) -> None:
    assert report(table, megabytes)[0] == 0
    assert table.with_suffix(".html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [*range(400, 1000, 25), *range(1000, 2050, 50)])
def test_report_ends_at_every_limit(table: Path, megabytes: int) -> None:
    code, err = report(table, megabytes)
    assert code == 0 or (code == 2 and "Out of memory" in err)
    assert "Traceback" not in err


def test_table_that_does_not_fit_is_out_of_memory(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("y,a\n" + "c0,1.5\nc1,2.5\n" * 4_000_000)
    command = ["-m", "discriminant", "fit", str(path), "--target", "y", "--engine", "memory"]
    process = limited([*command, "--model", "lda", "--out", str(tmp_path / "m")], 775)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "Out of memory at the limit of 775 MB of address space" in err
    assert "Traceback" not in err


def test_help_needs_no_memory_for_the_libraries() -> None:
    process = limited(["-m", "discriminant", "report", "--help"], 200)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Usage" in out


# --- the parent process ---------------------------------------------------------------------------

_SCRIPT = """
    import os, signal, sys, time
    from discriminant.cli import run as command_line, memory_limited_process
    memory_limited_process._GRACE = 0.5
    def run(args, *, limited):
        {body}
    command_line.run = run
    sys.exit(command_line.run_supervised(["report", "x.csv"], 1 << 30))
"""


def parent_of(body: str) -> subprocess.Popen[str]:
    script = textwrap.dedent(_SCRIPT).format(body=body)
    return limited(["-c", script], 1024, start_new_session=True)


@pytest.mark.parametrize(
    ("body", "ended_by"),
    [
        ("os.abort()", "SIGABRT"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("os._exit(1)", "exit"),  # as OpenBLAS 0.3.31 does
    ],
)
def test_library_that_ends_the_process_is_out_of_memory(body: str, ended_by: str) -> None:
    _, err = parent_of(body).communicate(timeout=60)
    assert f"a library ended the process ({ended_by})" in err
    assert "Out of memory at the limit of 1,024 MB" in err


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_exit_code_of_the_command_is_that_of_the_parent(code: int) -> None:
    process = parent_of(f"return {code}")
    process.communicate(timeout=60)
    assert process.returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_ends_a_command_that_hangs_in_native_code(number: signal.Signals) -> None:
    """Blocked signals stand for a loop in a library, where no handler of Python runs."""
    hang = (
        "signal.pthread_sigmask(signal.SIG_BLOCK, {2, 15, 1}); "
        "print(os.getpid(), flush=True); time.sleep(300)"
    )
    process = parent_of(hang)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert f"Stopped by {number.name}" in err
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


@pytest.mark.parametrize(("given", "used"), [("64", "1"), ("", "1"), ("many", "1")])
def test_thread_count_of_the_environment_is_lowered_to_what_fits(
    monkeypatch: pytest.MonkeyPatch, given: str, used: str
) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", given)
    process = parent_of("print(os.environ['OPENBLAS_NUM_THREADS'], flush=True); return 0")
    out, _ = process.communicate(timeout=60)
    assert out.strip() == used


def test_signal_lets_the_command_end_in_order() -> None:
    process = parent_of(
        "\n    ".join(
            [
                "print(flush=True)",
                "try: time.sleep(300)",
                "except command_line.Stopped as stop:",
                "    return command_line._stopped(stop.number, 'it', args)",
            ]
        )
    )
    assert process.stdout is not None
    process.stdout.readline()
    os.kill(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 143
    assert err.count("Stopped by SIGTERM") == 1


def test_killing_the_parent_ends_the_command() -> None:
    process = parent_of("print(os.getpid(), flush=True); time.sleep(300)")
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.kill()
    process.wait()
    for _ in range(100):
        if not Path(f"/proc/{child}").exists() or _is_zombie(child):
            return
        time.sleep(0.1)
    pytest.fail("the command goes on without its parent")


def _is_zombie(process: int) -> bool:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


# --- what counts as out of memory -----------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        MemoryError(),
        ImportError("/x/libscipy_openblas.so: failed to map segment from shared object"),
        OSError(12, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
        OSError("Unknown error: Failed to launch worker thread: Resource temporarily unavailable"),
    ],
    ids=lambda fault: type(fault).__name__,
)
def test_failed_allocations_are_recognised_also_as_a_cause(fault: BaseException) -> None:
    outer = RuntimeError("another message")
    outer.__cause__ = fault
    assert available_memory.ran_out_of_memory(fault)
    assert available_memory.ran_out_of_memory(outer)
    assert not available_memory.ran_out_of_memory(RuntimeError("another message"))


@pytest.mark.parametrize(
    ("limit", "threads"), [(None, 64), (1 << 30, 1), (2 << 30, 1), (3 << 30, 4), (1 << 40, 64)]
)
def test_threads_follow_from_the_limit(
    monkeypatch: pytest.MonkeyPatch, limit: int | None, threads: int
) -> None:
    monkeypatch.setattr(available_memory, "memory_limit", lambda: limit)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    assert available_memory.available_threads() == threads
