"""A file takes the place of another whole, or not at all.

The bytes go to a temporary file in the same folder; they are forced to the disk; the temporary file
takes the name of the old one in one step; the folder is forced to the disk. Stopped at any moment,
the name leads to all of the old file or to all of the new one. Models are written so by
`store.writing`, which locks their names too.

A writer that is killed leaves its temporary file, `.name.HOST-RANDOM.tmp`. The next writer of the
same name removes it: a writer holds a lock on its temporary file, which the system releases when
the process ends, however it ends. So several processes may write one name at a time, and none
removes the file of another. Locks of some network file systems are not seen by other hosts;
therefore only temporary files of the same host are removed, and those of other hosts stay.

Locks on open files, which the system lets go of whatever ends their process.

A lock is held as long as its file is open, against other processes and against others who open the
file in this one.
"""

from __future__ import annotations

import errno
import os
import platform
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from discriminant.errors import WriteError, check_file_name

_BEYOND = 1 << 30  # the byte that is locked where bytes are: the first ones can still be read


def can_lock() -> bool:
    """Whether whole files can be locked here, as on every system but Windows."""
    return os.name == "posix"


def try_lock(handle: int, *, if_unsupported: bool = True) -> bool:
    """Lock an open file; False if another process holds the lock.

    `if_unsupported` is returned on a file system without locks.
    """
    try:
        import fcntl
    except ImportError:
        return _byte_locked(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # type: ignore[attr-defined,unused-ignore]
    except BlockingIOError:
        return False
    except OSError:
        return if_unsupported
    return True


def _byte_locked(handle: int) -> bool:
    """As Windows locks."""
    import msvcrt

    os.lseek(handle, _BEYOND, os.SEEK_SET)
    try:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    except PermissionError:
        return False
    finally:
        os.lseek(handle, 0, os.SEEK_SET)
    return True


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_WAY = (errno.EOPNOTSUPP, errno.EINVAL)  # of disks on which room cannot be taken beforehand
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_LONGEST = 100  # characters of the old name in the name of the temporary file
_ENDING = re.compile(r"[0-9a-f]{6}-[0-9a-f]{8}\.tmp|[0-9a-f]{8}")  # the latter until 0.1


@contextmanager
def atomic_write(
    path: str | os.PathLike[str], *, size: int | None = None, alone: bool = False
) -> Iterator[BinaryIO]:
    """A file to be filled; the old one is replaced when all went well. Links lead to their file.

    Who may read the old file may read the new one; without an old one it is as the umask says.

    Parameters
    ----------
    size
        The bytes that it will have, where they are known: room is taken for them before the first
        is written, and it is told how many were needed if there is none.
    alone
        Whether nobody else can write there meanwhile. The temporary file is then `.name.tmp`, and
        one that was left by a writer that was killed is removed.
    """
    place = resolve_links(path)
    if alone:
        beside = place.with_name(f".{place.name}.tmp")
        _remove(beside)
        handle, lock = _new_file(beside, place), None
    else:
        _remove_abandoned(place)
        beside, handle, lock = _locked_file(place)
    try:
        with os.fdopen(handle, "wb") as file:
            _take_room(file, size)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, place)
        sync_folder(place.parent)
    except OSError as fault:
        told = _no_room(place, beside, size, fault) if fault.errno in _FULL else fault
        _remove(beside)
        raise told from (None if told is fault else fault)
    except BaseException:
        _remove(beside)
        raise
    finally:
        if lock is not None:
            os.close(lock)


def is_temporary_of(name: str, target: str) -> bool:
    """Whether a file name is that of a temporary file for a target, of any host.

    >>> is_temporary_of(".page.html.3f0a9c-5d41c2b7.tmp", "page.html")
    True
    """
    start = f".{target[:_LONGEST]}."
    return name.startswith(start) and bool(_ENDING.fullmatch(name[len(start) :]))


def _locked_file(place: Path) -> tuple[Path, int, int | None]:
    """A new temporary file: its path, a handle to write it and one that keeps its lock."""
    while True:
        beside = place.with_name(f".{place.name[:_LONGEST]}.{_host()}-{token_hex(4)}.tmp")
        handle = _new_file(beside, place)
        if not can_lock():
            return beside, handle, None
        if try_lock(handle) and beside.exists():
            return beside, handle, os.dup(handle)
        os.close(handle)  # another writer took it for abandoned before it was locked


def _remove_abandoned(place: Path) -> None:
    """Remove temporary files for this name whose writers are gone."""
    if not can_lock():
        return
    ours = f".{place.name[:_LONGEST]}.{_host()}-"
    with suppress(OSError):
        for name in os.listdir(place.parent):
            if name.startswith(ours) and is_temporary_of(name, place.name):
                _remove_if_abandoned(place.with_name(name))


def _remove_if_abandoned(beside: Path) -> None:
    with suppress(OSError):
        handle = os.open(beside, os.O_RDONLY | NO_FOLLOW)
        try:
            if try_lock(handle, if_unsupported=False):
                os.unlink(beside)
        finally:
            os.close(handle)


def _host() -> str:
    """A short mark of this host."""
    return blake2b(platform.node().encode(), digest_size=3).hexdigest()


def _new_file(beside: Path, place: Path) -> int:
    """A handle of a file that was not there, open to those who may read the old one."""
    old = _mode_of(place)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(beside, flags, 0o666 if old is None else old)
        if old is not None:
            os.chmod(beside, old)  # the umask has no say in what was there
    except OSError as fault:
        if fault.errno in _FULL:
            free = shutil.disk_usage(place.parent).free
            raise WriteError.no_room_after(place, 0, free, fault) from None
        raise WriteError.closed_folder(place, place.parent, fault) from None
    return handle


def _take_room(file: BinaryIO, size: int | None) -> None:
    if not size or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except OSError as fault:
        if fault.errno not in _NO_WAY:
            raise


def atomic_write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file of which all bytes are there."""
    with atomic_write(path, size=len(content)) as file:
        file.write(content)


def resolve_links(path: str | os.PathLike[str]) -> Path:
    """Where a file is written: links lead to their file."""
    check_file_name(path)
    try:
        return Path(os.path.realpath(path))
    except ValueError as fault:  # a NUL
        raise WriteError.not_a_name(path, fault) from None


def _no_room(place: Path, beside: Path, size: int | None, fault: OSError) -> WriteError:
    free = shutil.disk_usage(place.parent).free
    if size is not None:
        return WriteError.no_room(place, size, free, fault)
    return WriteError.no_room_after(place, os.path.getsize(beside), free, fault)


def _remove(beside: Path) -> None:
    with suppress(OSError):
        os.unlink(beside)


def _mode_of(place: Path) -> int | None:
    """Who may read a file that is there."""
    try:
        return stat.S_IMODE(os.stat(place).st_mode)
    except FileNotFoundError:
        return None


def sync_folder(folder: Path) -> None:
    """So that the new name, too, is on the disk; not every system lets a folder be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
