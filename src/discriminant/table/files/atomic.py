"""Atomic writing of files, and locks on files.

The bytes are written to a temporary file in the same folder and flushed to the disk. Then the
temporary file replaces the target by renaming, in one step, and the folder is flushed to the disk.
If the process stops at any moment, the target is either the complete old file or the complete new
one. `store.container` writes models in this way, and also locks their names.

If a writer is killed, its temporary file, `.name.HOST-RANDOM.tmp`, remains, and is removed by the
next writer of the same name. A writer holds a lock on its temporary file, which the system releases
when the process ends for any reason; only unlocked files are removed. So several processes may
write the same name at the same time, and no process removes the file of another. On some network
file systems, locks are not visible to other hosts; therefore only temporary files of the same host
are removed.

A lock is held as long as its file is open. Neither other processes nor other handles of the same
process can then acquire it.
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

_LOCKED_BYTE = 1 << 30  # Windows locks bytes, and the first bytes must stay readable


def can_lock() -> bool:
    """Whether the system can lock whole files: all systems except Windows."""
    return os.name == "posix"


def try_lock(handle: int, *, if_unsupported: bool = True) -> bool:
    """Lock an open file. Return False if another process holds the lock.

    If the file system does not support locks, return `if_unsupported`.
    """
    try:
        import fcntl
    except ImportError:
        return _try_lock_byte(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # type: ignore[attr-defined,unused-ignore]
    except BlockingIOError:
        return False
    except OSError:
        return if_unsupported
    return True


def _try_lock_byte(handle: int) -> bool:
    """Lock one byte of an open file, on Windows."""
    import msvcrt

    os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
    try:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    except PermissionError:
        return False
    finally:
        os.lseek(handle, 0, os.SEEK_SET)
    return True


class LockedError(Exception):
    """Raised if another process, `owner`, holds a lock."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self.owner = owner


def acquire_lock(path: Path, owner: str) -> int:
    """Create and lock a file, and write its owner into it.

    Returns a file descriptor; closing it, or the end of the process, releases the lock. Raises
    `LockedError` with the name of the owner if another process holds the lock.
    """
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o600)
        if not try_lock(handle):
            other = os.read(handle, 300).decode("utf-8", "replace").strip()
            os.close(handle)
            raise LockedError(other)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                with suppress(OSError):  # disk full: the lock works without the owner's name
                    os.ftruncate(handle, 0)
                    os.write(handle, owner.encode())
                return handle
        os.close(handle)  # the previous owner has removed the file in the meantime


_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.EINVAL)  # the file system cannot reserve space
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_MAX_STEM = 100  # largest part of the target's name in the temporary name
_ENDING = re.compile(r"[0-9a-f]{6}-[0-9a-f]{8}\.tmp|[0-9a-f]{8}")  # second form: version 0.1


@contextmanager
def atomic_write(
    path: str | os.PathLike[str], *, size: int | None = None, exclusive: bool = False
) -> Iterator[BinaryIO]:
    """Open a temporary file for writing, which on success replaces the file at `path`.

    Symbolic links are followed. The new file has the permissions of the old file; if there is no
    old file, the umask determines the permissions.

    Parameters
    ----------
    path : path
        File to create or replace.
    size : int, optional
        Number of bytes, if known. The space is then reserved before the first byte is written, and
        the error for a full disk states how many bytes are needed.
    exclusive : bool, default=False
        True if the caller ensures that no other process writes the same name at the same time. The
        temporary file is then `.name.tmp`, and replaces any such file that remained from a killed
        writer.

    Yields
    ------
    file
        Binary file to write to.
    """
    target = resolve_links(path)
    if exclusive:
        temporary = target.with_name(f".{target.name}.tmp")
        _remove(temporary)
        handle, lock = _create_file(temporary, target), None
    else:
        _remove_abandoned(target)
        temporary, handle, lock = _create_locked(target)
    try:
        with os.fdopen(handle, "wb") as file:
            _reserve_space(file, size)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        sync_folder(target.parent)
    except OSError as fault:
        if fault.errno not in _DISK_FULL:
            _remove(temporary)
            raise
        error = _disk_full_error(target, temporary, size, fault)
        _remove(temporary)
        raise error from fault
    except BaseException:
        _remove(temporary)
        raise
    finally:
        if lock is not None:
            os.close(lock)


def is_temporary_of(name: str, target: str) -> bool:
    """Whether `name` is the name of a temporary file for `target`, from this or another host.

    >>> is_temporary_of(".page.html.3f0a9c-5d41c2b7.tmp", "page.html")
    True
    """
    start = f".{target[:_MAX_STEM]}."
    return name.startswith(start) and bool(_ENDING.fullmatch(name[len(start) :]))


def _create_locked(target: Path) -> tuple[Path, int, int | None]:
    """Create a temporary file.

    The result is the path, a handle for writing and a handle that holds the lock.
    """
    while True:
        temporary = target.with_name(f".{target.name[:_MAX_STEM]}.{_host()}-{token_hex(4)}.tmp")
        handle = _create_file(temporary, target)
        if not can_lock():
            return temporary, handle, None
        if try_lock(handle) and temporary.exists():
            return temporary, handle, os.dup(handle)
        os.close(handle)  # before it was locked, another writer removed it as abandoned


def _remove_abandoned(target: Path) -> None:
    """Remove temporary files with this name whose writers have ended."""
    if not can_lock():
        return
    ours = f".{target.name[:_MAX_STEM]}.{_host()}-"
    with suppress(OSError):
        for name in os.listdir(target.parent):
            if name.startswith(ours) and is_temporary_of(name, target.name):
                _remove_if_abandoned(target.with_name(name))


def _remove_if_abandoned(temporary: Path) -> None:
    with suppress(OSError):
        handle = os.open(temporary, os.O_RDONLY | NO_FOLLOW)
        try:
            if try_lock(handle, if_unsupported=False):
                os.unlink(temporary)
        finally:
            os.close(handle)


def _host() -> str:
    return blake2b(platform.node().encode(), digest_size=3).hexdigest()


def _create_file(temporary: Path, target: Path) -> int:
    """Create a file with the permissions of the target and return its handle."""
    mode = _mode_of(target)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(temporary, flags, 0o666 if mode is None else mode)
        if mode is not None:
            os.chmod(temporary, mode)  # sets the mode independently of the umask
    except OSError as fault:
        if fault.errno in _DISK_FULL:
            free = shutil.disk_usage(target.parent).free
            raise WriteError.no_room_after(target, 0, free, fault) from None
        raise WriteError.closed_folder(target, target.parent, fault) from None
    return handle


def _reserve_space(file: BinaryIO, size: int | None) -> None:
    if size and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as fault:
            if fault.errno not in _UNSUPPORTED:
                raise


def atomic_write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file atomically."""
    with atomic_write(path, size=len(content)) as file:
        file.write(content)


def resolve_links(path: str | os.PathLike[str]) -> Path:
    """Follow symbolic links; return the path of the file that is actually written."""
    check_file_name(path)
    try:
        return Path(os.path.realpath(path))
    except ValueError as fault:  # the path contains a NUL
        raise WriteError.not_a_name(path, fault) from None


def _disk_full_error(target: Path, temporary: Path, size: int | None, fault: OSError) -> WriteError:
    free = shutil.disk_usage(target.parent).free
    if size is not None:
        return WriteError.no_room(target, size, free, fault)
    return WriteError.no_room_after(target, os.path.getsize(temporary), free, fault)


def _remove(temporary: Path) -> None:
    with suppress(OSError):
        os.unlink(temporary)


def _mode_of(target: Path) -> int | None:
    """Return the permissions of a file, or None if it does not exist."""
    try:
        return stat.S_IMODE(os.stat(target).st_mode)
    except FileNotFoundError:
        return None


def sync_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to the disk, if the system allows it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
