"""A PostgreSQL server of our own, if the programs are there; it listens to a socket file alone.

It is started when it is first asked for and lives as long as the tests: `stop` is called when they
end.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pandas as pd

_running = []  # folders of servers
_numbers = count()
_TYPES = {"f": "DOUBLE PRECISION", "i": "BIGINT", "b": "BOOLEAN", "M": "TIMESTAMP"}


@lru_cache(maxsize=1)
def postgres():
    """The URL of the server, and why there is none if there is none."""
    if find_spec("psycopg") is None:
        return "", "no psycopg to talk to PostgreSQL with"
    programs = _programs()
    if programs is None:
        return "", "no PostgreSQL server is installed: no initdb"
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    if _user() is not None:
        shutil.chown(folder, _user())
    data = folder / "data"
    try:
        _call(folder, "initdb", "-D", data, "-A", "trust", "-U", "tests", "-E", "UTF8", "-N")
        options = f"-c listen_addresses='' -k {folder} -F"
        _call(folder, "pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start")
    except subprocess.CalledProcessError as failed:
        shutil.rmtree(folder, ignore_errors=True)
        return "", f"the PostgreSQL server does not start: {failed.stderr[-200:]!r}"
    _running.append(folder)
    return f"postgresql://tests@/postgres?host={folder}", ""


def connect(kind):
    """A connection to a database: PostgreSQL's server, or an empty one in memory."""
    if kind == "postgres":
        import psycopg

        return psycopg.connect(postgres()[0], autocommit=True)
    if kind == "duckdb":
        import duckdb

        return duckdb.connect()
    import sqlite3

    return sqlite3.connect(":memory:", isolation_level=None)


def lay(connection, frame, name=None, types=None):
    """A table of these rows; its name. None and NaN are NULL."""
    name = f"rows {next(_numbers)}" if name is None else name
    kinds = {c: _TYPES.get(frame[c].dtype.kind, "TEXT") for c in frame.columns} | (types or {})
    columns = ", ".join(f"{quoted(c)} {kinds[c]}" for c in frame.columns)
    connection.execute(f"CREATE TABLE {quoted(name)} ({columns})")
    plain = frame.astype(object).where(frame.notna(), None)
    rows = [tuple(map(_plain, row)) for row in plain.itertuples(index=False, name=None)]
    insert(connection, name, rows)
    return name


def insert(connection, name, rows):
    """Rows into a table."""
    if not rows:
        return
    module = type(connection).__module__.partition(".")[0]
    mark = "%s" if module == "psycopg" else "?"
    marks = ", ".join([mark] * len(rows[0]))
    if "duckdb" in module:
        import pyarrow as pa

        table = pa.table({f"c{j}": pa.array(c) for j, c in enumerate(zip(*rows, strict=True))})
        connection.register("laid", table)
        connection.execute(f"INSERT INTO {quoted(name)} SELECT * FROM laid")
        connection.unregister("laid")
    else:
        into = quoted(name).replace("%", "%%") if mark == "%s" else quoted(name)
        connection.cursor().executemany(f"INSERT INTO {into} VALUES ({marks})", rows)


def quoted(name):
    """A name as all three databases quote it."""
    return '"' + name.replace('"', '""') + '"'


def _plain(value):
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime()
    return value.item() if hasattr(value, "item") else value


def stop():
    """Stop what was started."""
    while _running:
        folder = _running.pop()
        with suppress(subprocess.CalledProcessError):
            _call(folder, "pg_ctl", "-D", folder / "data", "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def _call(folder, program, *words):
    command = [_programs() / program, *words]
    subprocess.run(command, user=_user(), check=True, capture_output=True, cwd=folder)


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
