"""The bytes of a file: a safetensors container, which any reader of that format opens.

    8 bytes   length n of the header, little-endian
    n bytes   JSON, ASCII, padded with spaces:
              {"__metadata__": {"format": "discriminant", "version": "1", "sha256": ...,
                                "package": ..., "kind": ..., "manifest": "..."},
               name: {"dtype": "F64", "shape": [..], "data_offsets": [from, to]}, ...}
    the rest  the arrays, little-endian, in the order of the header, without gaps

The digest is SHA-256 of the whole file with its own 64 digits as zeros, so that no bit can change
unseen. Everything here is arithmetic on a header; arrays are neither read nor written. A header is
believed in nothing: lengths, offsets, types and names are held to the size of the file before
anything is made of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from discriminant.errors import StateError, StoredFileError

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
class Place:
    """Where an array lies."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int  # byte of the file
    stop: int


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """What the header of a file says."""

    version: int
    package: str  # the version that wrote it
    kind: str
    sha256: str
    digest_at: int  # byte of the file where its digits begin
    manifest: Any  # JSON, not looked at yet
    places: tuple[Place, ...]  # in the order of the file
    size: int  # of the whole file


# --- making -----------------------------------------------------------------------------------


def header_of(
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
    """Bytes of the header, by the first bytes of a file of that size."""
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


def read_head(text: bytes, size: int, path: object) -> Head:
    """What a header says, held to the size of the file."""
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
    return Head(
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


def _places(entries: dict[str, Any], start: int, size: int, path: object) -> tuple[Place, ...]:
    """Where the arrays lie: one after the other, to the end of the file."""
    found, end = [], start
    for name, entry in entries.items():
        place = _place(name, entry, start, path)
        if place.start != end:
            _refuse(path, f"array '{name[:100]}'", f"it starts at {place.start:,}, not {end:,}")
        end = place.stop
        found.append(place)
    if end > size:
        raise StoredFileError.damaged(
            path, size, f"it ends there, and its arrays should end at byte {end:,}"
        )
    if end < size:
        raise StoredFileError.damaged(path, end, f"{size - end:,} bytes follow its last array")
    return tuple(found)


def _place(name: str, entry: Any, start: int, path: object) -> Place:
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
    return Place(name, dtype, tuple(shape), start + offsets[0], start + offsets[1])


def _counts(values: Any) -> bool:
    """Whether these are whole numbers from 0 on that fit 63 bits."""
    return isinstance(values, list) and all(
        type(value) is int and 0 <= value < 1 << 63 for value in values
    )


def _refuse(path: object, part: str, why: str) -> NoReturn:
    raise StoredFileError.unsound(path, part, why)
