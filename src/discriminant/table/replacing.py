"""A file takes the place of another whole, or not at all.

The bytes go to a temporary file in the same folder; they are forced to the disk; the temporary file
takes the name of the old one in one step; the folder is forced to the disk. Stopped at any moment,
the name leads to all of the old file or to all of the new one. Models, which are locked too, are
written by `store.writing`.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from discriminant.errors import WriteError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LONGEST = 100  # characters of the old name in the name of the temporary file


@contextmanager
def replacing(path: str | os.PathLike[str], *, size: int | None = None) -> Iterator[BinaryIO]:
    """A file to be filled; the old one is replaced when all went well. Links lead to their file.

    Parameters
    ----------
    size
        The bytes that it will have, where they are known: told if there is no room for them.
    """
    place = real_place(path)
    try:
        handle, beside = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name[:_LONGEST]}.")
    except OSError as fault:
        raise WriteError.closed_folder(place, place.parent, fault) from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, mode_of(place, 0o644))
        os.replace(beside, place)
        force_folder(place.parent)
    except OSError as fault:
        told = _no_room(place, beside, size, fault) if fault.errno in _FULL else fault
        _remove(beside)
        raise told from (None if told is fault else fault)
    except BaseException:
        _remove(beside)
        raise


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file of which all bytes are there."""
    with replacing(path, size=len(content)) as file:
        file.write(content)


def real_place(path: str | os.PathLike[str]) -> Path:
    """Where a file is written: links lead to their file."""
    try:
        return Path(os.path.realpath(path))
    except ValueError as fault:  # a NUL
        raise WriteError.not_a_name(path, fault) from None


def _no_room(place: Path, beside: str, size: int | None, fault: OSError) -> WriteError:
    free = shutil.disk_usage(place.parent).free
    if size is not None:
        return WriteError.no_room(place, size, free, fault)
    return WriteError.no_room_after(place, os.path.getsize(beside), free, fault)


def _remove(beside: str) -> None:
    with suppress(OSError):
        os.unlink(beside)


def mode_of(place: Path, otherwise: int) -> int:
    """Who may read the new file: those who may read the old one."""
    try:
        return stat.S_IMODE(os.stat(place).st_mode)
    except FileNotFoundError:
        return otherwise


def force_folder(folder: Path) -> None:
    """So that the new name, too, is on the disk; not every system lets a folder be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
