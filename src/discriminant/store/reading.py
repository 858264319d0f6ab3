"""Bytes of a file that may be anybody's, up to arrays of a known size and a digest that is right.

    what it is      a regular file; its first bytes say what wrote it, and only ours are read on
    what it claims  every length and offset, held to the size of the file (`store.container`)
    its digest      of every byte, while the arrays are read or mapped

Only then is anything made from it. No array is larger than the file, and none is read twice.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from discriminant.errors import StoredFileError, check_file_name
from discriminant.store.container import DIGITS, MAGIC, Head, Place, header_length, read_head

_CHUNK = 1 << 24

# By their first bytes: files that run code when they are opened, and files of others.
_RUNS_CODE = (
    (b"\x80", "a pickle (as joblib writes, too)"),
    (b"PK\x03\x04", "a zip archive (as .npz, .skops, .keras and .pt files are)"),
    (b"\x93NUMPY", "a NumPy array file"),
    (b"\x1f\x8b", "a gzip file (as compressed pickles are)"),
    (b"BZh", "a bzip2 file (as compressed pickles are)"),
    (b"\xfd7zXZ", "an xz file (as compressed pickles are)"),
    (b"]\x00\x00", "an lzma file (as compressed pickles are)"),
    (b"\x04\x22\x4d\x18", "an lz4 file (as compressed pickles are)"),
    (b"x\x9c", "a zlib file (as compressed pickles are)"),
    (b"x\x01", "a zlib file (as compressed pickles are)"),
    (b"x\xda", "a zlib file (as compressed pickles are)"),
    (b"x^", "a zlib file (as compressed pickles are)"),
)
_OTHERS = (
    (b"\x89HDF", "an HDF5 file"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"SQLite", "an SQLite database"),
    (b"{", "a text, perhaps JSON"),
    (b"<", "a text, perhaps HTML or XML"),
    (b"#!", "a script"),
    (b"\x7fELF", "a program"),
)


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """A regular file, open to be read; a pipe or a device is refused and not waited for."""
    check_file_name(path)
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        raise StoredFileError.absent(path) from None
    except (OSError, ValueError) as fault:
        why = getattr(fault, "strerror", None) or str(fault)
        raise StoredFileError.unreadable(path, why) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        kind = "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "pipe or device"
        os.close(handle)
        raise StoredFileError.not_a_file(path, kind)
    return os.fdopen(handle, "rb", buffering=0)


def head_of(file: BinaryIO, path: object) -> tuple[Head, bytes]:
    """What the file says of itself, and its bytes up to the arrays."""
    size = os.fstat(file.fileno()).st_size
    first = _exactly(file, min(8 + len(MAGIC), size), path)
    if not MAGIC.startswith(first[8:]):
        raise _stranger(first, path)
    length = header_length(first, size, path)
    first += _exactly(file, 8 + length - len(first), path)
    return read_head(first[8:], size, path), first


def read_arrays(file: BinaryIO, head: Head, first: bytes, path: object) -> dict[str, Any]:
    """The arrays, each in memory of its own; the digest is right."""
    digest = _begun(head, first)
    found = {}
    for place in head.places:
        values = np.empty(place.shape, place.dtype)
        flat = values.reshape(-1).view(np.uint8).data
        for chunk in _chunks(flat):
            _fill(file, chunk, place, path)
            digest.update(chunk)
        found[place.name] = values
    _check(digest, head, path)
    return found


def map_arrays(file: BinaryIO, head: Head, first: bytes, path: object) -> dict[str, Any]:
    """The arrays where they lie in the file; what is changed in them stays in this process."""
    bytes_of = mmap.mmap(file.fileno(), head.size, access=mmap.ACCESS_COPY)
    digest = _begun(head, first)
    with memoryview(bytes_of) as whole:
        for chunk in _chunks(whole[len(first) :]):
            digest.update(chunk)
            chunk.release()
    _check(digest, head, path)
    return {place.name: _mapped(bytes_of, place) for place in head.places}


def _mapped(bytes_of: mmap.mmap, place: Place) -> npt.NDArray[Any]:
    if place.start == place.stop:
        return np.empty(place.shape, place.dtype)
    return np.ndarray(place.shape, place.dtype, buffer=bytes_of, offset=place.start)


def _begun(head: Head, first: bytes) -> Any:
    at = head.digest_at
    return sha256(first[:at] + b"0" * DIGITS + first[at + DIGITS :])


def _check(digest: Any, head: Head, path: object) -> None:
    if digest.hexdigest() != head.sha256:
        raise StoredFileError.wrong_digest(path, head.sha256, digest.hexdigest())


def _chunks(whole: memoryview) -> Iterator[memoryview]:
    for start in range(0, len(whole), _CHUNK):
        yield whole[start : start + _CHUNK]


def _fill(file: BinaryIO, chunk: memoryview, place: Place, path: object) -> None:
    while len(chunk):
        count = file.readinto(chunk)  # type: ignore[attr-defined]
        if not count:
            at = file.tell()
            raise StoredFileError.damaged(path, at, f"it ends there, within '{place.name[:100]}'")
        chunk = chunk[count:]


def _exactly(file: BinaryIO, count: int, path: object) -> bytes:
    found = b""
    while len(found) < count:
        more = file.read(count - len(found))
        if not more:
            raise StoredFileError.damaged(path, file.tell(), "it ends there")
        found += more
    return found


def _stranger(first: bytes, path: object) -> StoredFileError:
    for start, kind in _RUNS_CODE:
        if first.startswith(start):
            return StoredFileError.runs_code(path, kind)
    for start, kind in _OTHERS:
        if first.startswith(start):
            return StoredFileError.foreign(path, kind)
    if first[8:9] == b"{":
        return StoredFileError.foreign(path, "a safetensors file of something else")
    return StoredFileError.foreign(path, "something else")
