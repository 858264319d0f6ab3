"""A model is written whole or not at all, by one writer at a time.

How a file takes the place of another is `table.replacing`. Room is taken before the first byte is
written, so that a full disk is told with what was needed.

Two writers of one name: the first holds a lock on a small file beside it, `.name.lock`; the second
is told who holds it. The lock is the system's, and ends with its process, however that ends. What a
killed writer leaves, `.name.tmp` and `.name.lock`, the next one uses and removes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import WriteError
from discriminant.table.locking import locked
from discriminant.table.replacing import NOT_LINKED, real_place, replacing

_CHUNK = 1 << 24  # bytes given to the system at a time


@contextmanager
def claimed(path: Path) -> Iterator[Path]:
    """Hold a name for writing; says at once if it cannot be written. Links lead to their file."""
    path = real_place(path)
    kind = kind_of_file(path)
    if kind not in (None, "file"):
        raise WriteError.not_a_file(path, str(kind))
    lock = path.with_name(f".{path.name}.lock")
    held = _locked(lock, path)
    try:
        yield path
    finally:
        with suppress(OSError):
            os.unlink(lock)
        os.close(held)


def kind_of_file(path: Path) -> str | None:
    """What lies at a path: 'file', another word, or None if nothing does."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as fault:
        raise WriteError.closed_folder(path, path.parent, fault) from None
    words = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFIFO: "pipe"}
    words |= {stat.S_IFCHR: "device", stat.S_IFBLK: "device", stat.S_IFSOCK: "socket"}
    return words.get(stat.S_IFMT(mode), "special file")


def write(path: Path, header: bytes, digest_at: int, arrays: Sequence[npt.NDArray[Any]]) -> str:
    """Write a claimed file; returns its digest."""
    size = len(header) + sum(values.nbytes for values in arrays)
    try:
        with replacing(path, size=size, alone=True) as file:
            return _fill(file.fileno(), header, digest_at, arrays)
    except WriteError:
        raise
    except OSError as fault:
        raise WriteError.failed(path, fault) from fault


def _fill(handle: int, header: bytes, digest_at: int, arrays: Sequence[npt.NDArray[Any]]) -> str:
    digest = sha256()
    for part in (memoryview(header), *(_bytes_of(values) for values in arrays)):
        _put(handle, part, digest)
    found = digest.hexdigest()
    os.pwrite(handle, found.encode("ascii"), digest_at)
    return found


def _bytes_of(values: npt.NDArray[Any]) -> memoryview:
    return values.reshape(-1).view(np.uint8).data


def _put(handle: int, part: memoryview, digest: Any) -> None:
    for start in range(0, len(part), _CHUNK):
        chunk = part[start : start + _CHUNK]
        digest.update(chunk)
        while len(chunk):
            chunk = chunk[os.write(handle, chunk) :]


def _locked(lock: Path, path: Path) -> int:
    """An open lock, held; the error says who holds it otherwise."""
    while True:
        try:
            held = os.open(lock, os.O_RDWR | os.O_CREAT | NOT_LINKED, 0o600)
        except OSError as fault:
            raise WriteError.closed_folder(path, path.parent, fault) from None
        if not locked(held):
            pid = os.read(held, 20).decode("ascii", "replace").strip()
            os.close(held)
            raise WriteError.locked(path, pid)
        if _is_there(held, lock):
            with suppress(OSError):  # a full disk: the lock holds without its owner's number
                os.ftruncate(held, 0)
                os.write(held, str(os.getpid()).encode("ascii"))
            return held
        os.close(held)  # whoever held it before has just removed it


def _is_there(held: int, lock: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(held), os.stat(lock))
    except FileNotFoundError:
        return False
