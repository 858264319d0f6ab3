"""Storage of partial results while a label tree is trained: in memory or in a checkpoint folder.

A training task yields a part of a node's chunk. Parts are stored in the order in which they are
finished, by node and first child:

    MemoryStore   in memory
    DiskStore     in a folder: training needs memory only for the current tasks, and can resume
                  after it was killed at any moment

    spool.json       what is trained: digests of rows, labels, partition and settings
    level-2.parts    the parts of an unfinished level, one after the other, each with a checksum
    level-2/         a finished level: its layer, memory-mapped after its checksums were verified
    lock             locked during training (`FolderLock`)

An incomplete part at the end of a file is cut off; all parts before it remain valid. A folder of
other rows or settings is rejected: a tree of both would be a tree of neither.

The file `lock` is kept open and locked during training, and names its owner. The lock counts, not
the file: whatever ends a process, kill -9 or a power cut, releases the lock.

The manifest of a finished level, `kinds.json`, has the types of the arrays, the size and checksum
(CRC-32) of each file, and a checksum of itself. Files are read a few megabytes at a time.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from discriminant.errors import CheckpointError, DiscriminantError, check_file_name
from discriminant.extreme.model.tasks import Task
from discriminant.extreme.model.fitted_tree import Ints, Layer, Reals
from discriminant.table.files.atomic import (
    atomic_write_bytes,
    is_temporary_of,
    sync_folder,
    try_lock,
)

LOCK_FILE = "lock"


class FolderLock:
    """Exclusive lock of a folder, until `release`."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        if not try_lock(self._file):
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
        """Release the lock; may be called twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def make_folder(folder: Path) -> None:
    """Create a folder and its parents unless they exist."""
    with translate_disk_errors(folder):
        check_file_name(folder)
        folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def translate_disk_errors(folder: Path) -> Iterator[None]:
    """Turn OSError into CheckpointError, with the folder and the way out."""
    try:
        yield
    except DiscriminantError:
        raise
    except OSError as fault:
        reason = fault.strerror or str(fault)
        raise CheckpointError.of_disk(os.fspath(folder), reason) from fault


MANIFEST_FILE = "kinds.json"
_PIECE = 1 << 22


def write_manifest(folder: Path, kinds: Mapping[str, str]) -> None:
    """Write the manifest of the files of a folder and force everything to the disk."""
    files = {path.name: [path.stat().st_size, _checksum(path)] for path in folder.iterdir()}
    manifest: dict[str, Any] = {"kinds": dict(kinds), "files": files}
    (folder / MANIFEST_FILE).write_text(
        json.dumps(manifest | {"checksum": _text_checksum(manifest)})
    )
    for path in folder.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    sync_folder(folder)


def read_manifest(folder: Path) -> dict[str, str]:
    """Verify all files of a folder and return the types of its arrays."""
    try:
        manifest = json.loads((folder / MANIFEST_FILE).read_text())
        if manifest.pop("checksum") != _text_checksum(manifest):
            raise ValueError(f"{MANIFEST_FILE} is not what was written")
        for name, (size, checksum) in manifest["files"].items():
            _check(folder / name, size, checksum)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        raise CheckpointError.damaged(os.fspath(folder), _reason(fault)) from None
    return dict(manifest["kinds"])


def _check(path: Path, size: int, checksum: int) -> None:
    found = path.stat().st_size
    if found != size:
        raise ValueError(f"{path.name} has {found} bytes of {size}")
    if _checksum(path) != checksum:
        raise ValueError(f"{path.name} is not what was written")


def _checksum(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found = zlib.crc32(piece, found)
    return found


def _text_checksum(manifest: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(manifest, sort_keys=True).encode())


def _reason(fault: Exception) -> str:
    if isinstance(fault, FileNotFoundError):
        return f"{Path(fault.filename).name} is not there"
    if isinstance(fault, json.JSONDecodeError | UnicodeDecodeError):
        return f"{MANIFEST_FILE} cannot be read"
    if isinstance(fault, KeyError | TypeError | AttributeError | RecursionError):
        return f"{MANIFEST_FILE} does not say what the files should be"
    return str(fault)


Key = tuple[int, int]  # node, first child

_HEAD = struct.Struct("<4sqqqqqI")  # mark, node, first child, features, weights, children, checksum
_MARK = b"part"
_FORMAT = 2
_ARRAYS = ("children", "chunks", "feature", "entries", "child", "weight", "bias")


@dataclass(frozen=True, slots=True, eq=False)
class ChunkPart:
    """Result of a task: E weights of R features for its C children."""

    feature: Ints  # (R,) int32, increasing
    count: Ints  # (R,) int32, weights of each
    child: Ints  # (E,) uint16, from the task's first
    weight: Reals  # (E,)
    bias: Reals  # (C,)


class LayerStore(Protocol):
    """Store of parts, from which layers are assembled."""

    def load_layer(self, level: int) -> Layer | None:
        """Return the layer of a finished level, or None."""
        ...

    def finished_parts(self, level: int) -> set[Key]:
        """Return the keys of the parts of a level that are stored already."""
        ...

    def add_part(self, task: Task, part: ChunkPart) -> None:
        """Store a part; may be called by several threads."""
        ...

    def assemble_layer(self, level: int, children: Ints, tasks: Sequence[Task]) -> Layer:
        """Assemble the layer of a level from its parts."""
        ...

    def close(self) -> None:
        """Release memory, files and locks."""
        ...


class MemoryStore:
    """Store parts in memory."""

    def __init__(self, kind: Any) -> None:
        self.kind, self.parts = kind, dict[Key, ChunkPart]()

    def load_layer(self, level: int) -> Layer | None:
        return None

    def finished_parts(self, level: int) -> set[Key]:
        return set()

    def close(self) -> None:
        self.parts = {}

    def add_part(self, task: Task, part: ChunkPart) -> None:
        self.parts[task.node, task.first] = part

    def assemble_layer(self, level: int, children: Ints, tasks: Sequence[Task]) -> Layer:
        whole: dict[str, list[Any]] = {name: [] for name in ("feature", "count", "child", "weight")}
        chunk, bias = np.zeros(len(children) - 1, np.int64), _infinite_bias(children, self.kind)
        for node, part in merge_chunks(
            children, tasks, lambda task: self.parts.pop(_key(task)), bias
        ):
            chunk[node] = len(part.feature)
            for name, pieces in whole.items():
                pieces.append(getattr(part, name))
        return Layer.of(
            children=children,
            chunks=_offsets(chunk),
            feature=_concatenate(whole["feature"], np.dtype(np.int32)),
            entries=_offsets(_concatenate(whole["count"], np.dtype(np.int32))),
            child=_concatenate(whole["child"], child_dtype(children)),
            weight=_concatenate(whole["weight"], self.kind),
            bias=bias,
        )


class DiskStore:
    """Store the parts of one tree in a folder."""

    def __init__(self, folder: str | os.PathLike[str], kind: Any, work: dict[str, str]) -> None:
        self.folder, self.kind, self.lock = Path(folder), kind, threading.Lock()
        self.offsets: dict[Key, tuple[int, int, int, int]] = {}  # offset and sizes of each part
        self.file: BinaryIO | None = None
        with translate_disk_errors(self.folder):
            _check_folder(self.folder)
            make_folder(self.folder)
            self.folder_lock = FolderLock(self.folder)
            try:
                _open_folder(self.folder, {"format": str(_FORMAT), **work})
            except BaseException:
                self.folder_lock.release()
                raise

    def load_layer(self, level: int) -> Layer | None:
        place = self.folder / f"level-{level}"
        return _map_layer(place, read_manifest(place)) if place.is_dir() else None

    def finished_parts(self, level: int) -> set[Key]:
        path = self.folder / f"level-{level}.parts"
        self._close_file()
        with translate_disk_errors(self.folder):
            path.touch()
            self.file, self.offsets = path.open("r+b"), {}
            end = 0
            for key, found, last in _scan_parts(self.file, self.kind):
                self.offsets[key], end = found, last
            self.file.truncate(end)
            self.file.seek(end)
        return set(self.offsets)

    def add_part(self, task: Task, part: ChunkPart) -> None:
        content = b"".join(
            np.ascontiguousarray(getattr(part, f.name)).tobytes() for f in fields(part)
        )
        sizes = (len(part.feature), len(part.weight), len(part.bias))
        head = _HEAD.pack(_MARK, *_key(task), *sizes, zlib.crc32(content))
        with self.lock, translate_disk_errors(self.folder):
            assert self.file is not None
            offset = self.file.tell()
            self.file.write(head)
            self.file.write(content)
            self.file.flush()
            self.offsets[_key(task)] = (offset + _HEAD.size, *sizes)

    def assemble_layer(self, level: int, children: Ints, tasks: Sequence[Task]) -> Layer:
        place, temporary = self.folder / f"level-{level}", self.folder / f"level-{level}.new"
        with translate_disk_errors(self.folder):
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            kinds = self._write(temporary, children, tasks)
            temporary.rename(place)
            sync_folder(self.folder)  # before the parts go
            self._close_file()
            os.unlink(self.folder / f"level-{level}.parts")
            return _map_layer(place, kinds)

    def close(self) -> None:
        """Close the files and release the lock; the folder stays."""
        try:
            with translate_disk_errors(self.folder):
                self._close_file()
        finally:
            self.folder_lock.release()

    def remove(self) -> None:
        """Remove the folder; memory-mapped layers stay readable where the system allows it."""
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- inside ---------------------------------------------------------------------------------

    def _close_file(self) -> None:
        file, self.file = self.file, None
        if file is not None:
            file.close()

    def _write(self, folder: Path, children: Ints, tasks: Sequence[Task]) -> dict[str, str]:
        chunk, bias = np.zeros(len(children) - 1, np.int64), _infinite_bias(children, self.kind)
        entries, total = folder / "entries", 0
        with (
            (folder / "feature").open("wb") as feature,
            entries.open("wb") as ends,
            (folder / "child").open("wb") as child,
            (folder / "weight").open("wb") as weight,
        ):
            ends.write(np.zeros(1, np.int64).tobytes())
            for node, part in merge_chunks(children, tasks, self._read, bias):
                chunk[node] = len(part.feature)
                feature.write(part.feature.tobytes())
                ends.write((total + np.cumsum(part.count, dtype=np.int64)).tobytes())
                child.write(part.child.tobytes())
                weight.write(part.weight.tobytes())
                total += len(part.weight)
        for name, array in (("children", children), ("chunks", _offsets(chunk)), ("bias", bias)):
            (folder / name).write_bytes(array.tobytes())
        kinds = {"weight": self.kind.name, "bias": self.kind.name, "feature": "int32"}
        kinds["child"] = child_dtype(children).name
        write_manifest(folder, kinds)
        return kinds

    def _read(self, task: Task) -> ChunkPart:
        assert self.file is not None
        offset, *sizes = self.offsets[_key(task)]
        self.file.seek(offset)
        return _part(self.file.read(_length(sizes, self.kind)), sizes, self.kind)


def merge_chunks(
    children: Ints, tasks: Sequence[Task], read: Callable[[Task], ChunkPart], bias: Reals
) -> Iterator[tuple[int, ChunkPart]]:
    """Yield nodes with their complete chunks, in order; fills `bias`."""
    kind, at = child_dtype(children), 0
    while at < len(tasks):
        node, parts, firsts = tasks[at].node, list[ChunkPart](), list[int]()
        while at < len(tasks) and tasks[at].node == node:
            parts.append(read(tasks[at]))
            firsts.append(tasks[at].first - int(children[node]))
            bias[tasks[at].first : tasks[at].last] = parts[-1].bias
            at += 1
        yield node, join_parts(parts, firsts, kind)


def join_parts(parts: Sequence[ChunkPart], firsts: Sequence[int], kind: Any) -> ChunkPart:
    """Merge the parts of one node, sorted by feature, then by child."""
    if len(parts) == 1:
        part = parts[0]
        return ChunkPart(part.feature, part.count, part.child.astype(kind), part.weight, part.bias)
    feature = np.concatenate([np.repeat(part.feature, part.count) for part in parts])
    places = [part.child + np.int64(first) for part, first in zip(parts, firsts, strict=True)]
    order = np.argsort(feature, kind="stable")
    distinct, count = np.unique(feature, return_counts=True)
    child = np.concatenate(places)[order].astype(kind)
    weight = np.concatenate([part.weight for part in parts])[order]
    bias = np.concatenate([part.bias for part in parts])
    return ChunkPart(distinct, count.astype(np.int32), child, weight, bias)


def child_dtype(children: Ints) -> np.dtype[Any]:
    """Smallest integer type for the index of a child within its parent."""
    return np.dtype(np.min_scalar_type(max(int(np.diff(children).max(initial=1)) - 1, 0)))


def digest(*arrays: Any) -> str:
    """Digest of the types, shapes and contents of arrays."""
    found = blake2b(digest_size=16)
    for array in arrays:
        whole = np.ascontiguousarray(array)
        found.update(f"{whole.dtype.str}{whole.shape}".encode())
        found.update(whole.view(np.uint8).data if whole.size else b"")
    return found.hexdigest()


def _check_folder(folder: Path) -> None:
    """Raise if the path is not a checkpoint folder."""
    if (folder / "spool.json").exists():
        return
    if folder.is_file() or (
        folder.is_dir() and set(os.listdir(folder)) - {LOCK_FILE, *_temporary_files(folder)}
    ):
        raise CheckpointError.foreign(os.fspath(folder))


def _temporary_files(folder: Path) -> list[str]:
    """Temporary files of a process that was killed while it wrote `spool.json`."""
    return [name for name in os.listdir(folder) if is_temporary_of(name, "spool.json")]


def _open_folder(folder: Path, work: dict[str, str]) -> None:
    """Start a new folder, or check that an existing one is for the same training."""
    head = folder / "spool.json"
    for name in _temporary_files(folder):
        os.unlink(folder / name)
    if not head.exists():
        atomic_write_bytes(head, json.dumps(work, indent=1).encode())
        return
    try:
        was = json.loads(head.read_text())
    except ValueError as fault:
        raise CheckpointError.damaged(os.fspath(head), str(fault)) from None
    except RecursionError:
        raise CheckpointError.damaged(os.fspath(head), "it is nested too deep") from None
    if not isinstance(was, dict):
        raise CheckpointError.damaged(os.fspath(head), "it does not describe a fit")
    for what, now in work.items():
        if was.get(what) != now:
            raise CheckpointError.of_other(os.fspath(folder), what, str(was.get(what)), now)


def _scan_parts(file: BinaryIO, kind: Any) -> Iterator[tuple[Key, tuple[int, int, int, int], int]]:
    """Yield the complete parts of a file: key, offset and sizes, and the end of the part."""
    end = 0
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        mark, node, first, *sizes, checksum = _HEAD.unpack(head)
        length = _length(sizes, kind) if mark == _MARK else -1
        content = file.read(length) if length >= 0 else b""
        if len(content) != length or zlib.crc32(content) != checksum:
            return
        start, end = end + _HEAD.size, end + _HEAD.size + length
        yield (node, first), (start, *sizes), end


def _length(sizes: Sequence[int], kind: Any) -> int:
    features, weights, children = sizes
    return int(8 * features + (2 + kind.itemsize) * weights + kind.itemsize * children)


def _part(content: bytes, sizes: Sequence[int], kind: Any) -> ChunkPart:
    features, weights, children = sizes
    found, at = list[Any](), 0
    wanted = ((features, "<i4"), (features, "<i4"), (weights, "<u2"), (weights, kind))
    for size, what in (*wanted, (children, kind)):
        found.append(np.frombuffer(content, what, size, at))
        at += found[-1].nbytes
    return ChunkPart(*found)


def _map_layer(folder: Path, kinds: dict[str, str]) -> Layer:
    """Memory-map a finished layer."""
    found = {}
    for name in _ARRAYS:
        path, kind = folder / name, kinds.get(name, "int64")
        empty = path.stat().st_size == 0  # a file without bytes cannot be mapped
        found[name] = np.empty(0, kind) if empty else np.memmap(path, kind, mode="r")
    return Layer.of(**found)


def _key(task: Task) -> Key:
    return task.node, task.first


def _infinite_bias(children: Ints, kind: Any) -> Reals:
    return np.full(int(children[-1]), np.inf, kind)


def _offsets(counts: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def _concatenate(pieces: list[Any], kind: Any) -> Any:
    return np.concatenate(pieces).astype(kind, copy=False) if pieces else np.empty(0, kind)
