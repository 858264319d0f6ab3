"""Checkpoint folders: intermediate results from which interrupted work resumes.

Checkpoints of sums over rows (`engines.checkpoint`) and of label trees
(`extreme.model.training_checkpoint`) use the following elements; only the folders of label trees
are locked:

    header    a record that describes the run: versions, and digests of its inputs. A folder with
              the header of another run is rejected, since the results of the two runs cannot be
              combined
    record    a JSON object with a checksum of itself, written atomically
    lock      a file that names the process working in the folder, which holds a lock on the file

Disk errors are raised as `CheckpointError`, which names the folder and states what to do.
"""

from __future__ import annotations

import json
import os
import platform
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discriminant.errors import CheckpointError, DiscriminantError, check_file_name
from discriminant.table.files.atomic import (
    LockedError,
    acquire_lock,
    atomic_write_bytes,
    is_temporary_of,
)

LOCK_FILE = "lock"
_CHECKSUM = "checksum"


def create_folder(folder: Path, header: str) -> None:
    """Create a checkpoint folder; raise `CheckpointError` if the path is something else.

    An existing folder is a checkpoint if it contains the file `header`. A folder is also a
    checkpoint if it contains only a lock file and temporary files, which a process leaves if it is
    killed before it has written the header.
    """
    check_file_name(folder)
    with translate_disk_errors(folder):
        if (folder / header).exists():
            return
        if folder.exists() and not (folder.is_dir() and _is_unused(folder, header)):
            raise CheckpointError.foreign(os.fspath(folder))
        folder.mkdir(parents=True, exist_ok=True)


def _is_unused(folder: Path, header: str) -> bool:
    return all(name == LOCK_FILE or is_temporary_of(name, header) for name in os.listdir(folder))


def lock_folder(folder: Path) -> int:
    """Lock a checkpoint folder; return a file descriptor, whose closing releases the lock."""
    try:
        return acquire_lock(folder / LOCK_FILE, f"process {os.getpid()} on {platform.node()}")
    except LockedError as error:
        raise CheckpointError.in_use(os.fspath(folder), error.owner) from None


def open_header(folder: Path, header: str, run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the header of a folder.

    If the folder has no header, write the description of the current run as its header.
    """
    path = folder / header
    with translate_disk_errors(folder):
        if not path.exists():
            write_record(path, run)
            return dict(run)
        try:
            return read_record(path)
        except ValueError as error:
            raise CheckpointError.damaged(os.fspath(path), str(error)) from None


def check_header_value(folder: Path, what: str, was: object, now: object) -> None:
    """Raise `CheckpointError` if a value in the header differs from the current run's value."""
    if was != now:
        raise CheckpointError.of_other(os.fspath(folder), what, str(was), str(now))


def write_record(path: Path, facts: Mapping[str, Any]) -> None:
    """Write a JSON object and its checksum, atomically."""
    record = {**facts, _CHECKSUM: _checksum(facts)}
    atomic_write_bytes(path, json.dumps(record, indent=1).encode())


def read_record(path: Path) -> dict[str, Any]:
    """Return a record. Raise ValueError if the file is damaged.

    Records written by version 0.1 have no checksum.
    """
    try:
        record = json.loads(path.read_bytes())
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(record, dict):
        raise ValueError("it is not a JSON object")
    if _CHECKSUM in record and record.pop(_CHECKSUM) != _checksum(record):
        raise ValueError("its checksum is wrong")
    return record


def _checksum(facts: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(facts, sort_keys=True).encode())


@contextmanager
def translate_disk_errors(folder: Path) -> Iterator[None]:
    """Translate OSError to a `CheckpointError` that names the folder and states what to do."""
    try:
        yield
    except DiscriminantError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise CheckpointError.of_disk(os.fspath(folder), reason) from error
