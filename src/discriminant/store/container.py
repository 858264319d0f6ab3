"""File container of saved models: a safetensors file with header, arrays and digest.

    8 bytes   length n of the header, little-endian
    n bytes   JSON, ASCII, padded with spaces:
              {"__metadata__": {"format": "discriminant", "version": "1", "sha256": ...,
                                "package": ..., "kind": ..., "manifest": "..."},
               name: {"dtype": "F64", "shape": [..], "data_offsets": [from, to]}, ...}
    the rest  the arrays, little-endian, in the order of the header, without gaps

The digest is the SHA-256 of the whole file, computed with zeros in place of its own 64 digits, so
that every change is detected. When a file is read, all of it is checked:

    file type  a regular file with our first bytes; the error for another file names its format
    header     lengths, offsets, types and names are checked against the size of the file
    digest     of every byte, while the arrays are read or mapped

Objects are constructed only after these checks. No array is larger than the file, and no array is
read twice.

Files are written atomically, by one writer at a time (`table.files.atomic`). Disk space is
allocated before the first byte is written, so that the error for a full disk states how much space
is needed. A writer of the file `name` locks a small file beside it, `.name.lock`. A second writer
of that name raises an error that identifies the first writer. The operating system releases the
lock when the writer's process ends. Files left by a killed writer, `.name.tmp` and `.name.lock`,
are reused and removed by the next writer.
"""

from __future__ import annotations

import json
import mmap
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import numpy.typing as npt

from discriminant.errors import StateError, StoredFileError, WriteError, check_file_name
from discriminant.table.files.atomic import (
    LockedError,
    acquire_lock,
    atomic_write,
    resolve_links,
)

VERSION = 1
# first bytes of the header, at byte 8 of the file
MAGIC = b'{"__metadata__":{"format":"discriminant","version":"'
DIGITS = 64  # number of hexadecimal digits of a SHA-256
_MARK = b'"sha256":"'
_MIN_ALLOWED = 1 << 25  # a header may be as long as this plus the size of the arrays,
_MAX_HEADER = 100_000_000  # but not longer than the safetensors library allows
_ALIGNMENT = 64  # the arrays start at a multiple of this number of bytes
_DIMENSIONS = 32

DTYPES: dict[str, npt.DTypeLike] = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype("u1"),
    "I8": np.dtype("i1"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "F16": np.dtype("<f2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


@dataclass(frozen=True, slots=True)
class ArrayEntry:
    """Location of an array in the file."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int  # offset in the file
    stop: int


@dataclass(frozen=True, slots=True, eq=False)
class Header:
    """Parsed header of a file."""

    version: int
    package: str  # version of the package that wrote the file
    kind: str
    sha256: str
    digest_at: int  # offset in the file at which the digits of the digest begin
    manifest: Any  # JSON text that is not validated yet
    places: tuple[ArrayEntry, ...]  # arrays in the order of the file
    size: int  # size of the file in bytes


# --- writing a header -------------------------------------------------------------------------


def build_header(
    kind: str, package: str, manifest: Any, arrays: Sequence[tuple[str, npt.NDArray[Any]]]
) -> tuple[bytes, int]:
    """Return the bytes that precede the arrays in a file, and the offset of the digest."""
    metadata = {
        "format": "discriminant",
        "version": str(VERSION),
        "sha256": "0" * DIGITS,
        "package": package,
        "kind": kind,
        "manifest": _to_json(manifest),
    }
    entries: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, values in arrays:
        start, end = end, end + values.nbytes
        entries[name] = {
            "dtype": NAMES[values.dtype],
            "shape": list(values.shape),
            "data_offsets": [start, end],
        }
    text = _to_json(entries).encode("ascii")
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    if len(text) > _max_header(end):
        raise StateError.too_long(len(text), _max_header(end))
    header = len(text).to_bytes(8, "little") + text
    return header, header.index(_MARK) + len(_MARK)


def _to_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def _max_header(arrays: int) -> int:
    """Return the largest allowed size of a header, given the size of the arrays in bytes."""
    return min(_MIN_ALLOWED + arrays, _MAX_HEADER)


# --- reading a header -------------------------------------------------------------------------


def header_length(first: bytes, size: int, path: object) -> int:
    """Return the length of the header, given the first bytes and the size of a file."""
    length = int.from_bytes(first[:8], "little")
    if len(first) < 8:
        raise StoredFileError.damaged(path, size, f"it ends there, after {size} bytes")
    if 8 + length > size:
        raise StoredFileError.damaged(
            path, size, f"it ends there, within a header that should end at byte {8 + length:,}"
        )
    limit = _max_header(size - 8 - length)
    if length > limit:
        raise StoredFileError.damaged(
            path, 0, f"its header claims {length:,} bytes, and {limit:,} are the most for its size"
        )
    return length


def parse_header(text: bytes, size: int, path: object) -> Header:
    """Parse a header and check it against the size of the file."""
    entries = _parse_object(text, path)
    metadata = entries.pop("__metadata__", None)
    keys = ["format", "version", "sha256", "package", "kind", "manifest"]
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        _refuse(path, "__metadata__", "it must be texts by name")
    version = _parse_version(metadata.get("version", ""), path)
    if version > VERSION:
        raise StoredFileError.future(path, version, VERSION, metadata.get("package", "of later"))
    if list(metadata) != keys:
        _refuse(path, "__metadata__", f"it must have {', '.join(keys)}, in that order")
    sha256 = metadata["sha256"]
    if len(sha256) != DIGITS or set(sha256) - set("0123456789abcdef"):
        _refuse(path, "sha256", f"it must be {DIGITS} digits of base 16")
    at = text.find(_MARK + sha256.encode("ascii"))
    if at < 0:
        _refuse(path, "sha256", "its digits must stand there as they are")
    places = _array_entries(entries, 8 + len(text), size, path)
    content = metadata["manifest"].encode("utf-8", "surrogatepass")
    manifest = _parse_object(content, path, inner=True)
    package, kind, digest_at = metadata["package"], metadata["kind"], 8 + at + len(_MARK)
    return Header(version, package, kind, sha256, digest_at, manifest, places, size)


def _parse_version(text: str, path: object) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        _refuse(path, "version", "it must be a whole number from 1 on")
    return int(text)


def _parse_object(text: bytes, path: object, *, inner: bool = False) -> dict[str, Any]:
    """Return a JSON object; reject repeated names, and numbers that JSON does not allow."""
    start = 0 if inner else 8
    what = "the manifest" if inner else "the header"

    def reject_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        items = dict(pairs)
        if len(items) < len(pairs):
            repeated, _ = Counter(name for name, _ in pairs).most_common(1)[0]
            _refuse(path, what, f"'{repeated[:100]}' occurs twice")
        return items

    def reject_constant(name: str) -> NoReturn:
        _refuse(path, what, f"{name} is not a number of JSON")

    try:
        value = json.loads(
            text.decode("utf-8", "surrogatepass" if inner else "strict"),
            object_pairs_hook=reject_repeated,
            parse_constant=reject_constant,
        )
    except UnicodeDecodeError as fault:
        raise StoredFileError.damaged(path, start + fault.start, f"{what} is not text") from None
    except json.JSONDecodeError as fault:
        where, why = start + fault.pos, f"{what} is not valid JSON ({fault.msg})"
        raise StoredFileError.damaged(path, where, why) from None
    except RecursionError:
        _refuse(path, what, "it is nested too deep")
    except StoredFileError:
        raise
    except ValueError:  # the number has more digits than Python converts
        _refuse(path, what, "a number has too many digits")
    if not isinstance(value, dict):
        _refuse(path, what, "it must be an object of JSON")
    return value


def _array_entries(
    entries: dict[str, Any], start: int, size: int, path: object
) -> tuple[ArrayEntry, ...]:
    """Return the locations of the arrays, which must fill the file to its end without gaps."""
    arrays, end = [], start
    for name, entry in entries.items():
        array = _array_entry(name, entry, start, path)
        if array.start != end:
            _refuse(path, f"array '{name[:100]}'", f"it starts at {array.start:,}, not {end:,}")
        end = array.stop
        arrays.append(array)
    if end > size:
        raise StoredFileError.damaged(
            path, size, f"it ends there, and its arrays should end at byte {end:,}"
        )
    if end < size:
        raise StoredFileError.damaged(path, end, f"{size - end:,} bytes follow its last array")
    return tuple(arrays)


def _array_entry(name: str, entry: Any, start: int, path: object) -> ArrayEntry:
    part = f"array '{name[:100]}'"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        _refuse(path, part, "it must have dtype, shape and data_offsets")
    shape, offsets, kind = entry["shape"], entry["data_offsets"], entry["dtype"]
    if not isinstance(kind, str) or kind not in DTYPES:
        _refuse(path, part, f"its dtype is none of {', '.join(DTYPES)}")
    if not _are_counts(shape) or len(shape) > _DIMENSIONS:
        _refuse(path, part, f"its shape must be at most {_DIMENSIONS} whole numbers")
    if not _are_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        _refuse(path, part, "its data_offsets must be two whole numbers, rising")
    dtype = np.dtype(DTYPES[kind])
    n_bytes, length = prod(shape) * dtype.itemsize, offsets[1] - offsets[0]
    if n_bytes != length:
        why = f"shape {shape} of {kind} takes {n_bytes:,} bytes, its offsets have {length:,}"
        _refuse(path, part, why)
    return ArrayEntry(name, dtype, tuple(shape), start + offsets[0], start + offsets[1])


def _are_counts(values: Any) -> bool:
    """Return whether the values are a list of non-negative integers that fit into 63 bits."""
    return isinstance(values, list) and all(
        type(value) is int and 0 <= value < 1 << 63 for value in values
    )


def _refuse(path: object, part: str, why: str) -> NoReturn:
    raise StoredFileError.invalid(path, part, why)


_CHUNK = 1 << 24

# First bytes of files that can run code when they are opened, and of other known files.
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
_FOREIGN = (
    (b"\x89HDF", "an HDF5 file"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"SQLite", "an SQLite database"),
    (b"{", "a text, perhaps JSON"),
    (b"<", "a text, perhaps HTML or XML"),
    (b"#!", "a script"),
    (b"\x7fELF", "a program"),
)


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading; pipes and devices are rejected without blocking."""
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


def read_header(file: BinaryIO, path: object) -> tuple[Header, bytes]:
    """Return the header, and the bytes of the file up to the arrays."""
    size = os.fstat(file.fileno()).st_size
    first = _read_exactly(file, min(8 + len(MAGIC), size), path)
    if not MAGIC.startswith(first[8:]):
        raise _foreign_file_error(first, path)
    length = header_length(first, size, path)
    first += _read_exactly(file, 8 + length - len(first), path)
    return parse_header(first[8:], size, path), first


def read_arrays(file: BinaryIO, header: Header, first: bytes, path: object) -> dict[str, Any]:
    """Return the arrays, read into memory, after verifying the digest."""
    digest = _digest_of_header(header, first)
    arrays = {}
    for entry in header.places:
        values = np.empty(entry.shape, entry.dtype)
        for chunk in _chunks(_bytes_of(values)):
            _read_into(file, chunk, entry, path)
            digest.update(chunk)
        arrays[entry.name] = values
    _check_digest(digest, header, path)
    return arrays


def map_arrays(file: BinaryIO, header: Header, first: bytes, path: object) -> dict[str, Any]:
    """Return the arrays, mapped copy-on-write, after verifying the digest."""
    content = mmap.mmap(file.fileno(), header.size, access=mmap.ACCESS_COPY)
    digest = _digest_of_header(header, first)
    with memoryview(content) as view:
        for chunk in _chunks(view[len(first) :]):
            digest.update(chunk)
            chunk.release()
    _check_digest(digest, header, path)
    return {entry.name: _map_array(content, entry) for entry in header.places}


def _map_array(content: mmap.mmap, entry: ArrayEntry) -> npt.NDArray[Any]:
    if entry.start == entry.stop:
        return np.empty(entry.shape, entry.dtype)
    return np.ndarray(entry.shape, entry.dtype, buffer=content, offset=entry.start)


def _digest_of_header(header: Header, first: bytes) -> Any:
    at = header.digest_at
    return sha256(first[:at] + b"0" * DIGITS + first[at + DIGITS :])


def _check_digest(digest: Any, header: Header, path: object) -> None:
    if digest.hexdigest() != header.sha256:
        raise StoredFileError.wrong_digest(path, header.sha256, digest.hexdigest())


def _chunks(content: memoryview) -> Iterator[memoryview]:
    for start in range(0, len(content), _CHUNK):
        yield content[start : start + _CHUNK]


def _read_into(file: BinaryIO, chunk: memoryview, entry: ArrayEntry, path: object) -> None:
    while len(chunk):
        count = file.readinto(chunk)  # type: ignore[attr-defined]
        if not count:
            at = file.tell()
            raise StoredFileError.damaged(path, at, f"it ends there, within '{entry.name[:100]}'")
        chunk = chunk[count:]


def _read_exactly(file: BinaryIO, count: int, path: object) -> bytes:
    content = b""
    while len(content) < count:
        more = file.read(count - len(content))
        if not more:
            raise StoredFileError.damaged(path, file.tell(), "it ends there")
        content += more
    return content


def _foreign_file_error(first: bytes, path: object) -> StoredFileError:
    for start, kind in _RUNS_CODE:
        if first.startswith(start):
            return StoredFileError.runs_code(path, kind)
    for start, kind in _FOREIGN:
        if first.startswith(start):
            return StoredFileError.foreign(path, kind)
    if first[8:9] == b"{":
        return StoredFileError.foreign(path, "a safetensors file of something else")
    return StoredFileError.foreign(path, "something else")


@contextmanager
def lock_for_writing(path: Path) -> Iterator[Path]:
    """Lock a path for writing, following links; raise an error at once if it cannot be written."""
    path = resolve_links(path)
    kind = kind_of_file(path)
    if kind not in (None, "file"):
        raise WriteError.not_a_file(path, str(kind))
    lock = path.with_name(f".{path.name}.lock")
    try:
        handle = acquire_lock(lock, str(os.getpid()))
    except LockedError as error:
        raise WriteError.locked(path, error.owner) from None
    except OSError as error:
        raise WriteError.closed_folder(path, path.parent, error) from None
    try:
        yield path
    finally:
        with suppress(OSError):
            os.unlink(lock)
        os.close(handle)


def kind_of_file(path: Path) -> str | None:
    """Return what a path leads to: 'file' (a regular file), 'folder' and so on, or None."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as fault:
        raise WriteError.closed_folder(path, path.parent, fault) from None
    words = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFIFO: "pipe"}
    words |= {stat.S_IFCHR: "device", stat.S_IFBLK: "device", stat.S_IFSOCK: "socket"}
    return words.get(stat.S_IFMT(mode), "special file")


def write_file(
    path: Path, header: bytes, digest_at: int, arrays: Sequence[npt.NDArray[Any]]
) -> str:
    """Write a file whose path is locked, and return its digest."""
    size = len(header) + sum(values.nbytes for values in arrays)
    try:
        with atomic_write(path, size=size, exclusive=True) as file:
            digest = sha256()
            for part in (memoryview(header), *(_bytes_of(values) for values in arrays)):
                _write_all(file.fileno(), part, digest)
            os.pwrite(file.fileno(), digest.hexdigest().encode("ascii"), digest_at)
            return digest.hexdigest()
    except WriteError:
        raise
    except OSError as error:
        raise WriteError.failed(path, error) from error


def _bytes_of(values: npt.NDArray[Any]) -> memoryview:
    return values.reshape(-1).view(np.uint8).data


def _write_all(handle: int, part: memoryview, digest: Any) -> None:
    for chunk in _chunks(part):
        digest.update(chunk)
        while len(chunk):
            chunk = chunk[os.write(handle, chunk) :]
