"""Locks on open files, which the system lets go of whatever ends their process.

A lock is held as long as its file is open, against other processes and against others who open the
file in this one.
"""

from __future__ import annotations

import os

_BEYOND = 1 << 30  # the byte that is locked where bytes are: the first ones can still be read


def lockable() -> bool:
    """Whether whole files can be locked here, as on every system but Windows."""
    return os.name == "posix"


def locked(handle: int, *, if_unsupported: bool = True) -> bool:
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
