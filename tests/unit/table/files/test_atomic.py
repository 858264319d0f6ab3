"""Temporary files: those of writers that are gone are removed, those of others are not."""

import errno
import os
import signal
import subprocess
import sys

import pytest

import discriminant as dd
from discriminant.errors import WriteError
from discriminant.table.files import atomic as module
from discriminant.table.files.atomic import atomic_write, atomic_write_bytes, is_temporary_of
from tests.shared.estimators import FRAMES, SPECIES

posix = pytest.mark.skipif(os.name != "posix", reason="files are locked as POSIX does")

HOLD = """
import sys, time
from discriminant.table.files.atomic import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print(flush=True)
    sys.stdin.readline()
"""


def writer(place):
    """A process that is writing a file, and has got half-way."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdout.readline()
    return process


def names(folder):
    return sorted(os.listdir(folder))


@posix
def test_temporary_file_of_a_killed_writer_is_removed_by_the_next(tmp_path):
    place = tmp_path / "p.csv"
    with writer(place) as process:
        process.send_signal(signal.SIGKILL)
    assert [is_temporary_of(name, "p.csv") for name in names(tmp_path)] == [True]
    atomic_write_bytes(place, b"whole")
    assert names(tmp_path) == ["p.csv"]


@posix
def test_temporary_file_of_a_writer_at_work_is_not_removed(tmp_path):
    place = tmp_path / "p.csv"
    with writer(place) as process:
        atomic_write_bytes(place, b"ours")
        assert len(names(tmp_path)) == 2
        process.communicate(b"\n", timeout=60)
        assert process.returncode == 0
    assert names(tmp_path) == ["p.csv"]
    assert place.read_bytes() == b"half"


@posix
def test_temporary_files_of_other_hosts_and_other_names_are_not_removed(tmp_path):
    with pytest.MonkeyPatch.context() as elsewhere:
        elsewhere.setattr(module.platform, "node", lambda: "elsewhere")
        kept = [f".p.csv.{module._host()}-0a1b2c3d.tmp", ".p.csv.mine", ".q.csv.0a1b2c3d"]
    for name in kept:
        (tmp_path / name).write_bytes(b"half")
    atomic_write_bytes(tmp_path / "p.csv", b"whole")
    assert names(tmp_path) == sorted([*kept, "p.csv"])


@posix
def test_file_system_without_locks_keeps_every_temporary_file(tmp_path, monkeypatch):
    import fcntl

    def none(*_):
        raise OSError(errno.ENOLCK, "no locks")

    left = f".p.csv.{module._host()}-0a1b2c3d.tmp"
    (tmp_path / left).write_bytes(b"half")
    monkeypatch.setattr(fcntl, "flock", none)
    atomic_write_bytes(tmp_path / "p.csv", b"whole")
    assert names(tmp_path) == [left, "p.csv"]


@posix
def test_writer_whose_new_file_is_taken_for_abandoned_makes_another(tmp_path, monkeypatch):
    place, locked, removed = tmp_path / "p.csv", module.try_lock, []

    def raced(handle, **options):
        if not removed:
            removed.extend(names(tmp_path))
            os.unlink(tmp_path / removed[0])
        return locked(handle, **options)

    monkeypatch.setattr(module, "try_lock", raced)
    atomic_write_bytes(place, b"whole")
    assert removed
    assert names(tmp_path) == ["p.csv"]


@posix
def test_full_disk_leaves_nothing_and_says_so(tmp_path, monkeypatch):
    opened = os.open

    def full(path, flags, *mode):
        if flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(path, flags, *mode)

    monkeypatch.setattr(os, "open", full)
    with (
        pytest.raises(WriteError, match=r"No space for .*p\.csv"),
        atomic_write(tmp_path / "p.csv"),
    ):
        pass
    assert not names(tmp_path)


@posix
def test_killed_predict_leaves_nothing_after_the_next_run(tmp_path):
    model = dd.LDA().fit(FRAMES["pandas"], SPECIES)
    rows = tmp_path / "rows.csv"
    FRAMES["pandas"].to_csv(rows, index=False)
    with writer(tmp_path / "p.csv") as process:
        process.send_signal(signal.SIGKILL)
    dd.predict_file(model, rows, tmp_path / "p.csv")
    assert names(tmp_path) == ["p.csv", "rows.csv"]
