"""A PostgreSQL server of our own, if the programs are there; it listens to a socket file alone."""

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

TARGETS = ("duckdb", "sqlite", "postgres", "onnx", "python")


@pytest.fixture(scope="session")
def postgres():
    """A connection to a server that lives as long as the tests."""
    psycopg = pytest.importorskip("psycopg", reason="no psycopg to talk to PostgreSQL with")
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed: no initdb")
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    user = _user()
    if user is not None:
        shutil.chown(folder, user)
    data = folder / "data"

    def call(*command):
        subprocess.run(command, user=user, check=True, capture_output=True, cwd=folder)

    try:
        call(programs / "initdb", "-D", data, "-A", "trust", "-U", "tests", "-E", "UTF8", "-N")
        options = f"-c listen_addresses='' -k {folder} -F"
        log = ("-l", folder / "log")
        call(programs / "pg_ctl", "-D", data, "-o", options, *log, "-w", "start")
    except subprocess.CalledProcessError as failed:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"the PostgreSQL server does not start: {failed.stderr[-200:]!r}")
    try:
        with psycopg.connect(
            host=str(folder), user="tests", dbname="postgres", autocommit=True
        ) as connection:
            yield connection
    finally:
        with suppress(subprocess.CalledProcessError):
            call(programs / "pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=TARGETS)
def target(request):
    """A target, and for PostgreSQL the connection."""
    if request.param == "postgres":
        return request.param, request.getfixturevalue("postgres")
    return request.param, None


def _programs():
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


def _user():
    """The server refuses to run as root."""
    if os.geteuid():
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    return None
