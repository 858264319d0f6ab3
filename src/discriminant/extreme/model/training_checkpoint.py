"""Storage of partial results while a label tree is trained: in memory or in a checkpoint folder.

A training task returns a part of the chunk of a node: the weights of some of its children. Parts
are stored as they are finished, and are identified by node and first child:

    MemoryStore   in memory
    DiskStore     in a folder: training needs memory only for the current tasks, and can resume
                  after it was killed at any moment

    training.json    header: digests of rows, labels, partition and settings
    level-2.parts    the parts of an unfinished level, one after the other, each with a checksum
    level-2/         a finished level: its layer, memory-mapped after its checksums were verified
    lock             locked during training

Header and lock have the same form as in every checkpoint (`table.files.checkpoint_folder`). An
error is raised for a folder with results for other rows or settings, and for a folder in which
another process is training. An incomplete part at the end of a file is cut off; all parts before it
remain valid.

The manifest of a finished level, `kinds.json`, records the types of the arrays, and the size and
checksum (CRC-32) of each file. Files are read a few megabytes at a time.
"""

from __future__ import annotations

import os
import shutil
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from json import JSONDecodeError
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from discriminant.errors import CheckpointError
from discriminant.extreme.model.fitted_tree import Ints, Layer, Reals
from discriminant.extreme.model.training_tasks import Task
from discriminant.table.files.atomic import sync_folder
from discriminant.table.files.checkpoint_folder import (
    check_header_value,
    create_folder,
    lock_folder,
    open_header,
    read_record,
    translate_disk_errors,
    write_record,
)

HEADER_FILE = "training.json"
MANIFEST_FILE = "kinds.json"
_PIECE = 1 << 22


def write_manifest(folder: Path, kinds: Mapping[str, str]) -> None:
    """Write the manifest of the files of a folder, and flush everything to the disk."""
    files = {path.name: [path.stat().st_size, _checksum(path)] for path in folder.iterdir()}
    write_record(folder / MANIFEST_FILE, {"kinds": dict(kinds), "files": files})
    for path in folder.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    sync_folder(folder)


def read_manifest(folder: Path) -> dict[str, str]:
    """Verify all files of a folder by the manifest; return the types of the arrays."""
    try:
        manifest = read_record(folder / MANIFEST_FILE)
        for name, (size, checksum) in manifest["files"].items():
            n_bytes = (folder / name).stat().st_size
            if n_bytes != size:
                raise ValueError(f"{name} has {n_bytes} bytes of {size}")
            if _checksum(folder / name) != checksum:
                raise ValueError(f"{name} is not what was written")
        return dict(manifest["kinds"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError.damaged(os.fspath(folder), _describe_damage(error)) from None


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            checksum = zlib.crc32(piece, checksum)
    return checksum


def _describe_damage(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{Path(error.filename).name} is missing"
    if isinstance(error, JSONDecodeError | UnicodeDecodeError):
        return f"{MANIFEST_FILE} cannot be read"
    if isinstance(error, KeyError | TypeError | AttributeError):
        return f"{MANIFEST_FILE} does not list the files"
    return str(error)


Key = tuple[int, int]  # node, first child

_HEAD = struct.Struct("<4sqqqqqI")  # mark, node, first child, features, weights, children, checksum
_MARK = b"part"
_FORMAT = 3
_ARRAYS = ("children", "chunks", "feature", "entries", "child", "weight", "bias")


@dataclass(frozen=True, slots=True, eq=False)
class ChunkPart:
    """Result of a training task: E weights of R features for its C children."""

    feature: Ints  # (R,) int32, features in increasing order
    count: Ints  # (R,) int32, number of weights of each feature
    child: Ints  # (E,) uint16, child of each weight, relative to the first child of the task
    weight: Reals  # (E,) the weights
    bias: Reals  # (C,) bias of each child


class LayerStore(Protocol):
    """Interface of a store of parts, from which layers are assembled."""

    def load_layer(self, level: int) -> Layer | None:
        """Return the layer of a level, or None if the level is not finished."""
        ...

    def finished_parts(self, level: int) -> set[Key]:
        """Return the keys of those parts of a level that are already stored."""
        ...

    def add_part(self, task: Task, part: ChunkPart) -> None:
        """Store a part. Several threads may call this method at the same time."""
        ...

    def assemble_layer(self, level: int, children: Ints, tasks: Sequence[Task]) -> Layer:
        """Assemble the layer of a level from its parts."""
        ...

    def close(self) -> None:
        """Release memory, files and locks."""
        ...


class MemoryStore:
    """Store of parts in memory."""

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
        n_rows, bias = np.zeros(len(children) - 1, np.int64), _infinite_bias(children, self.kind)
        chunks = list[ChunkPart]()
        for node, chunk in merge_chunks(children, tasks, self._pop, bias):
            n_rows[node] = len(chunk.feature)
            chunks.append(chunk)

        def concatenate(name: str, kind: Any) -> Any:
            arrays = [getattr(chunk, name) for chunk in chunks]
            return np.concatenate(arrays).astype(kind, copy=False) if arrays else np.empty(0, kind)

        return Layer.of(
            children=children,
            chunks=_offsets(n_rows),
            feature=concatenate("feature", np.int32),
            entries=_offsets(concatenate("count", np.int32)),
            child=concatenate("child", child_dtype(children)),
            weight=concatenate("weight", self.kind),
            bias=bias,
        )

    def _pop(self, task: Task) -> ChunkPart:
        return self.parts.pop(_key(task))


class DiskStore:
    """Store of the parts of one tree in a folder."""

    def __init__(self, folder: str | os.PathLike[str], kind: Any, inputs: dict[str, str]) -> None:
        self.folder, self.kind, self.lock = Path(folder), kind, threading.Lock()
        # key of each part -> its offset and sizes
        self.offsets: dict[Key, tuple[int, int, int, int]] = {}
        self.file: BinaryIO | None = None
        create_folder(self.folder, HEADER_FILE)
        with translate_disk_errors(self.folder):
            self.folder_lock = lock_folder(self.folder)
        try:
            run = {"format": str(_FORMAT), **inputs}
            header = open_header(self.folder, HEADER_FILE, run)
            for name, now in run.items():
                check_header_value(self.folder, name, header.get(name), now)
        except BaseException:
            self._release_lock()
            raise

    def load_layer(self, level: int) -> Layer | None:
        folder = self.folder / f"level-{level}"
        return _map_layer(folder, read_manifest(folder)) if folder.is_dir() else None

    def finished_parts(self, level: int) -> set[Key]:
        path = self.folder / f"level-{level}.parts"
        self._close_file()
        with translate_disk_errors(self.folder):
            path.touch()
            self.file, self.offsets = path.open("r+b"), {}
            end = 0
            for key, offsets, part_end in _scan_parts(self.file, self.kind):
                self.offsets[key], end = offsets, part_end
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
        target, temporary = self.folder / f"level-{level}", self.folder / f"level-{level}.new"
        with translate_disk_errors(self.folder):
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            kinds = self._write_layer(temporary, children, tasks)
            temporary.rename(target)
            # the finished layer must be on the disk before the parts are removed
            sync_folder(self.folder)
            self._close_file()
            os.unlink(self.folder / f"level-{level}.parts")
            return _map_layer(target, kinds)

    def close(self) -> None:
        """Close the files and release the lock; the folder is not deleted."""
        try:
            with translate_disk_errors(self.folder):
                self._close_file()
        finally:
            self._release_lock()

    def _release_lock(self) -> None:
        handle, self.folder_lock = self.folder_lock, -1
        if handle >= 0:
            os.close(handle)

    def _close_file(self) -> None:
        file, self.file = self.file, None
        if file is not None:
            file.close()

    def _write_layer(self, folder: Path, children: Ints, tasks: Sequence[Task]) -> dict[str, str]:
        n_rows, bias = np.zeros(len(children) - 1, np.int64), _infinite_bias(children, self.kind)
        total = 0
        with (
            (folder / "feature").open("wb") as feature,
            (folder / "entries").open("wb") as entries,
            (folder / "child").open("wb") as child,
            (folder / "weight").open("wb") as weight,
        ):
            entries.write(np.zeros(1, np.int64).tobytes())
            for node, chunk in merge_chunks(children, tasks, self._read, bias):
                n_rows[node] = len(chunk.feature)
                feature.write(chunk.feature.tobytes())
                entries.write((total + np.cumsum(chunk.count, dtype=np.int64)).tobytes())
                child.write(chunk.child.tobytes())
                weight.write(chunk.weight.tobytes())
                total += len(chunk.weight)
        for name, array in (("children", children), ("chunks", _offsets(n_rows)), ("bias", bias)):
            (folder / name).write_bytes(array.tobytes())
        kinds = {"weight": self.kind.name, "bias": self.kind.name, "feature": "int32"}
        kinds["child"] = child_dtype(children).name
        write_manifest(folder, kinds)
        return kinds

    def _read(self, task: Task) -> ChunkPart:
        assert self.file is not None
        offset, *sizes = self.offsets[_key(task)]
        self.file.seek(offset)
        content = self.file.read(_part_bytes(sizes, self.kind))
        return _decode_part(content, sizes, self.kind)


def merge_chunks(
    children: Ints, tasks: Sequence[Task], read: Callable[[Task], ChunkPart], bias: Reals
) -> Iterator[tuple[int, ChunkPart]]:
    """Yield each node with its complete chunk, in the order of nodes; fill `bias`."""
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
    """Return the chunk of a node, merged from its parts and sorted by feature, then by child."""
    if len(parts) == 1:
        return replace(parts[0], child=parts[0].child.astype(kind))
    feature = np.concatenate([np.repeat(part.feature, part.count) for part in parts])
    children = [part.child + np.int64(first) for part, first in zip(parts, firsts, strict=True)]
    order = np.argsort(feature, kind="stable")
    distinct, count = np.unique(feature, return_counts=True)
    child = np.concatenate(children)[order].astype(kind)
    weight = np.concatenate([part.weight for part in parts])[order]
    bias = np.concatenate([part.bias for part in parts])
    return ChunkPart(distinct, count.astype(np.int32), child, weight, bias)


def child_dtype(children: Ints) -> np.dtype[Any]:
    """Return the smallest integer type for the index of a child within its parent."""
    return np.dtype(np.min_scalar_type(max(int(np.diff(children).max(initial=1)) - 1, 0)))


def _scan_parts(file: BinaryIO, kind: Any) -> Iterator[tuple[Key, tuple[int, int, int, int], int]]:
    """Yield key, offset and sizes, and end position of each complete part of a file."""
    end = 0
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        mark, node, first, *sizes, checksum = _HEAD.unpack(head)
        length = _part_bytes(sizes, kind) if mark == _MARK else -1
        content = file.read(length) if length >= 0 else b""
        if len(content) != length or zlib.crc32(content) != checksum:
            return
        start, end = end + _HEAD.size, end + _HEAD.size + length
        yield (node, first), (start, *sizes), end


def _part_bytes(sizes: Sequence[int], kind: Any) -> int:
    features, weights, children = sizes
    return int(8 * features + (2 + kind.itemsize) * weights + kind.itemsize * children)


def _decode_part(content: bytes, sizes: Sequence[int], kind: Any) -> ChunkPart:
    features, weights, children = sizes
    counts_and_types = (
        (features, "<i4"),
        (features, "<i4"),
        (weights, "<u2"),
        (weights, kind),
        (children, kind),
    )
    arrays, offset = list[Any](), 0
    for count, dtype in counts_and_types:
        arrays.append(np.frombuffer(content, dtype, count, offset))
        offset += arrays[-1].nbytes
    return ChunkPart(*arrays)


def _map_layer(folder: Path, kinds: dict[str, str]) -> Layer:
    """Return a finished layer, memory-mapped from its files."""
    arrays = {}
    for name in _ARRAYS:
        path, kind = folder / name, kinds.get(name, "int64")
        empty = path.stat().st_size == 0  # an empty file cannot be mapped
        arrays[name] = np.empty(0, kind) if empty else np.memmap(path, kind, mode="r")
    return Layer.of(**arrays)


def _key(task: Task) -> Key:
    return task.node, task.first


def _infinite_bias(children: Ints, kind: Any) -> Reals:
    return np.full(int(children[-1]), np.inf, kind)


def _offsets(counts: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
