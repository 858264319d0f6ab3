"""The file container: header, arrays and digest of a safetensors file, read and written safely.

    8 bytes   length n of the header, little-endian
    n bytes   JSON, ASCII, padded with spaces:
              {"__metadata__": {"format": "discriminant", "version": "1", "sha256": ...,
                                "package": ..., "kind": ..., "manifest": "..."},
               name: {"dtype": "F64", "shape": [..], "data_offsets": [from, to]}, ...}
    the rest  the arrays, little-endian, in the order of the header, without gaps

The digest is SHA-256 of the whole file with its own 64 digits as zeros, so that every change is
detected. Reading trusts nothing:

    file type  a regular file whose first bytes are ours; other formats are named in the error
    header     lengths, offsets, types and names are checked against the size of the file
    digest     of every byte, while the arrays are read or mapped

Objects are constructed only after that. No array is larger than the file, and none is read twice.

Writing is atomic, by one writer at a time (`table.files.atomic`). Disk space is allocated before
the first byte is written, so that a full disk is reported with the space needed. The first of two
writers of one name locks a small file beside it, `.name.lock`; the second raises an error that
names the first. The operating system releases the lock when its process ends. Files left by a
killed writer, `.name.tmp` and `.name.lock`, are reused and removed by the next one.
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
from discriminant.table.files.atomic import NO_FOLLOW, atomic_write, resolve_links, try_lock

VERSION = 1
MAGIC = b'{"__metadata__":{"format":"discriminant","version":"'  # from byte 8 on
DIGITS = 64  # of a SHA-256
_MARK = b'"sha256":"'
_ROOM = 1 << 25  # bytes that a header may always have: names of 100,000 columns; and as many more
# as the arrays have
_MOST = 100_000_000  # the most that any reader of safetensors takes
_PAGE = 64  # the arrays start at a multiple of this
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
    start: int  # byte of the file
    stop: int


@dataclass(frozen=True, slots=True, eq=False)
class Header:
    """Parsed header of a file."""

    version: int
    package: str  # the version that wrote it
    kind: str
    sha256: str
    digest_at: int  # byte of the file where its digits begin
    manifest: Any  # JSON, not looked at yet
    places: tuple[ArrayEntry, ...]  # in the order of the file
    size: int  # of the whole file


# --- making -----------------------------------------------------------------------------------


def build_header(
    kind: str, package: str, manifest: Any, arrays: Sequence[tuple[str, npt.NDArray[Any]]]
) -> tuple[bytes, int]:
    """The first bytes of a file, up to its arrays, and where the digest is to be put."""
    told = {
        "format": "discriminant",
        "version": str(VERSION),
        "sha256": "0" * DIGITS,
        "package": package,
        "kind": kind,
        "manifest": _dumped(manifest),
    }
    entries: dict[str, Any] = {"__metadata__": told}
    end = 0
    for name, values in arrays:
        start, end = end, end + values.nbytes
        entries[name] = {
            "dtype": NAMES[values.dtype],
            "shape": list(values.shape),
            "data_offsets": [start, end],
        }
    text = _dumped(entries).encode("ascii")
    text += b" " * (-(8 + len(text)) % _PAGE)
    if len(text) > _longest(end):
        raise StateError.too_long(len(text), _longest(end))
    found = len(text).to_bytes(8, "little") + text
    return found, found.index(_MARK) + len(_MARK)


def _dumped(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def _longest(arrays: int) -> int:
    """How long a header may be before so many bytes of arrays."""
    return min(_ROOM + arrays, _MOST)


# --- reading ----------------------------------------------------------------------------------


def header_length(first: bytes, size: int, path: object) -> int:
    """Length of the header, from the first bytes of a file of that size."""
    length = int.from_bytes(first[:8], "little")
    if len(first) < 8:
        raise StoredFileError.damaged(path, size, f"it ends there, after {size} bytes")
    if 8 + length > size:
        raise StoredFileError.damaged(
            path, size, f"it ends there, within a header that should end at byte {8 + length:,}"
        )
    most = _longest(size - 8 - length)
    if length > most:
        raise StoredFileError.damaged(
            path, 0, f"its header claims {length:,} bytes, and {most:,} are the most for its size"
        )
    return length


def parse_header(text: bytes, size: int, path: object) -> Header:
    """Parse a header and check it against the size of the file."""
    entries = _parsed(text, path)
    told = entries.pop("__metadata__", None)
    keys = ["format", "version", "sha256", "package", "kind", "manifest"]
    if not isinstance(told, dict) or not all(isinstance(v, str) for v in told.values()):
        _refuse(path, "__metadata__", "it must be texts by name")
    version = _version(told, path)
    if version > VERSION:
        raise StoredFileError.future(path, version, VERSION, told.get("package", "of later"))
    if list(told) != keys:
        _refuse(path, "__metadata__", f"it must have {', '.join(keys)}, in that order")
    sha256 = told["sha256"]
    if len(sha256) != DIGITS or set(sha256) - set("0123456789abcdef"):
        _refuse(path, "sha256", f"it must be {DIGITS} digits of base 16")
    at = text.find(_MARK + sha256.encode("ascii"))
    if at < 0:
        _refuse(path, "sha256", "its digits must stand there as they are")
    places = _places(entries, 8 + len(text), size, path)
    manifest = _parsed(told["manifest"].encode("utf-8", "surrogatepass"), path, inner=True)
    return Header(
        version, told["package"], told["kind"], sha256, 8 + at + len(_MARK), manifest, places, size
    )


def _version(told: dict[str, str], path: object) -> int:
    text = told.get("version", "")
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        _refuse(path, "version", "it must be a whole number from 1 on")
    return int(text)


def _parsed(text: bytes, path: object, *, inner: bool = False) -> dict[str, Any]:
    """A JSON object without names given twice, without numbers that JSON does not know."""
    start = 0 if inner else 8
    what = "the manifest" if inner else "the header"

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
            _refuse(path, what, f"'{twice[:100]}' is there twice")
        return found

    def constant(name: str) -> NoReturn:
        _refuse(path, what, f"{name} is no number of JSON")

    try:
        found = json.loads(
            text.decode("utf-8", "surrogatepass" if inner else "strict"),
            object_pairs_hook=once,
            parse_constant=constant,
        )
    except UnicodeDecodeError as fault:
        raise StoredFileError.damaged(path, start + fault.start, f"{what} is no text") from None
    except json.JSONDecodeError as fault:
        where, why = start + fault.pos, f"{what} is no JSON ({fault.msg})"
        raise StoredFileError.damaged(path, where, why) from None
    except RecursionError:
        _refuse(path, what, "it is nested too deep")
    except StoredFileError:
        raise
    except ValueError:  # a number of more digits than Python reads
        _refuse(path, what, "a number has too many digits")
    if not isinstance(found, dict):
        _refuse(path, what, "it must be an object of JSON")
    return found


def _places(entries: dict[str, Any], start: int, size: int, path: object) -> tuple[ArrayEntry, ...]:
    """Where the arrays lie: one after the other, to the end of the file."""
    places, end = [], start
    for name, entry in entries.items():
        place = _place(name, entry, start, path)
        if place.start != end:
            _refuse(path, f"array '{name[:100]}'", f"it starts at {place.start:,}, not {end:,}")
        end = place.stop
        places.append(place)
    if end > size:
        raise StoredFileError.damaged(
            path, size, f"it ends there, and its arrays should end at byte {end:,}"
        )
    if end < size:
        raise StoredFileError.damaged(path, end, f"{size - end:,} bytes follow its last array")
    return tuple(places)


def _place(name: str, entry: Any, start: int, path: object) -> ArrayEntry:
    part = f"array '{name[:100]}'"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        _refuse(path, part, "it must have dtype, shape and data_offsets")
    shape, offsets, kind = entry["shape"], entry["data_offsets"], entry["dtype"]
    if not isinstance(kind, str) or kind not in DTYPES:
        _refuse(path, part, f"its dtype is none of {', '.join(DTYPES)}")
    if not _counts(shape) or len(shape) > _DIMENSIONS:
        _refuse(path, part, f"its shape must be at most {_DIMENSIONS} whole numbers")
    if not _counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        _refuse(path, part, "its data_offsets must be two whole numbers, rising")
    dtype = np.dtype(DTYPES[kind])
    if prod(shape) * dtype.itemsize != offsets[1] - offsets[0]:
        _refuse(
            path,
            part,
            f"shape {shape} of {kind} takes {prod(shape) * dtype.itemsize:,} bytes, its offsets "
            f"have {offsets[1] - offsets[0]:,}",
        )
    return ArrayEntry(name, dtype, tuple(shape), start + offsets[0], start + offsets[1])


def _counts(values: Any) -> bool:
    """Whether these are whole numbers from 0 on that fit 63 bits."""
    return isinstance(values, list) and all(
        type(value) is int and 0 <= value < 1 << 63 for value in values
    )


def _refuse(path: object, part: str, why: str) -> NoReturn:
    raise StoredFileError.invalid(path, part, why)


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


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading; reject pipes and devices without blocking."""
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
    """Read the header, and return it with the bytes up to the arrays."""
    size = os.fstat(file.fileno()).st_size
    first = _exactly(file, min(8 + len(MAGIC), size), path)
    if not MAGIC.startswith(first[8:]):
        raise _stranger(first, path)
    length = header_length(first, size, path)
    first += _exactly(file, 8 + length - len(first), path)
    return parse_header(first[8:], size, path), first


def read_arrays(file: BinaryIO, head: Header, first: bytes, path: object) -> dict[str, Any]:
    """Read the arrays into memory and verify the digest."""
    digest = _begun(head, first)
    arrays = {}
    for place in head.places:
        values = np.empty(place.shape, place.dtype)
        flat = values.reshape(-1).view(np.uint8).data
        for chunk in _chunks(flat):
            _fill(file, chunk, place, path)
            digest.update(chunk)
        arrays[place.name] = values
    _check(digest, head, path)
    return arrays


def map_arrays(file: BinaryIO, head: Header, first: bytes, path: object) -> dict[str, Any]:
    """Map the arrays copy-on-write and verify the digest."""
    bytes_of = mmap.mmap(file.fileno(), head.size, access=mmap.ACCESS_COPY)
    digest = _begun(head, first)
    with memoryview(bytes_of) as whole:
        for chunk in _chunks(whole[len(first) :]):
            digest.update(chunk)
            chunk.release()
    _check(digest, head, path)
    return {place.name: _mapped(bytes_of, place) for place in head.places}


def _mapped(bytes_of: mmap.mmap, place: ArrayEntry) -> npt.NDArray[Any]:
    if place.start == place.stop:
        return np.empty(place.shape, place.dtype)
    return np.ndarray(place.shape, place.dtype, buffer=bytes_of, offset=place.start)


def _begun(head: Header, first: bytes) -> Any:
    at = head.digest_at
    return sha256(first[:at] + b"0" * DIGITS + first[at + DIGITS :])


def _check(digest: Any, head: Header, path: object) -> None:
    if digest.hexdigest() != head.sha256:
        raise StoredFileError.wrong_digest(path, head.sha256, digest.hexdigest())


def _chunks(whole: memoryview) -> Iterator[memoryview]:
    for start in range(0, len(whole), _CHUNK):
        yield whole[start : start + _CHUNK]


def _fill(file: BinaryIO, chunk: memoryview, place: ArrayEntry, path: object) -> None:
    while len(chunk):
        count = file.readinto(chunk)  # type: ignore[attr-defined]
        if not count:
            at = file.tell()
            raise StoredFileError.damaged(path, at, f"it ends there, within '{place.name[:100]}'")
        chunk = chunk[count:]


def _exactly(file: BinaryIO, count: int, path: object) -> bytes:
    content = b""
    while len(content) < count:
        more = file.read(count - len(content))
        if not more:
            raise StoredFileError.damaged(path, file.tell(), "it ends there")
        content += more
    return content


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


@contextmanager
def lock_for_writing(path: Path) -> Iterator[Path]:
    """Lock a path for writing; raise at once if it cannot be written. Follows links."""
    path = resolve_links(path)
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


def write_file(
    path: Path, header: bytes, digest_at: int, arrays: Sequence[npt.NDArray[Any]]
) -> str:
    """Write a locked file; return its digest."""
    size = len(header) + sum(values.nbytes for values in arrays)
    try:
        with atomic_write(path, size=size, alone=True) as file:
            return _fill_file(file.fileno(), header, digest_at, arrays)
    except WriteError:
        raise
    except OSError as fault:
        raise WriteError.failed(path, fault) from fault


def _fill_file(
    handle: int, header: bytes, digest_at: int, arrays: Sequence[npt.NDArray[Any]]
) -> str:
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
    """Acquire a lock file; the error names the process that holds it otherwise."""
    while True:
        try:
            held = os.open(lock, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o600)
        except OSError as fault:
            raise WriteError.closed_folder(path, path.parent, fault) from None
        if not try_lock(held):
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
