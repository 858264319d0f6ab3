"""A folder that can be worked in, by one process at a time.

The file `lock` is held open and locked while there is work, and says whose it is. It is the lock
that counts, not the file: whatever ends a process, kill -9 or a power cut, ends the lock with it,
and the next one goes on.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discriminant.errors import CheckpointError, DiscriminantError, check_file_name
from discriminant.table.locking import locked

NAME = "lock"


class Claim:
    """A folder that is ours until `release`."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o644)
        if not locked(self._file):
            owner = os.read(self._file, 300).decode("utf-8", "replace")
            self.release()
            raise CheckpointError.in_use(os.fspath(folder), owner)
        try:
            os.ftruncate(self._file, 0)
            os.write(self._file, f"process {os.getpid()} on {platform.node()}".encode())
        except OSError:
            self.release()
            raise

    def release(self) -> None:
        """Let others in; again is no harm."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def make(folder: Path) -> None:
    """Make a folder, and those above it, unless it is there."""
    with told(folder):
        check_file_name(folder)
        folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def told(folder: Path) -> Iterator[None]:
    """Whatever the disk refuses within is told of the folder, with the way out."""
    try:
        yield
    except DiscriminantError:
        raise
    except OSError as fault:
        reason = fault.strerror or str(fault)
        raise CheckpointError.of_disk(os.fspath(folder), reason) from fault
