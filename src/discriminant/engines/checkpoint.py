"""Checkpoints: an interrupted run resumes where it stopped, with bitwise the same result.

Everything that is computed from a partitioned table is a sum of the form `sum of work(part)` over
the parts of the table, where `work` is a pure function. A sum can therefore be identified by a
digest (a hash) of the function and of the parts. A `Journal` is a folder of sums; the name of a
file is the digest of its sum:

    journal.json       files and versions that the sums belong to; a run with other files or
                       versions is rejected
    <digest>.sum       a finished sum, which is not computed again
    <digest>.begun     an unfinished sum: the number of parts done, and sums of 1, 2, 4, ... parts

A restarted run computes the same sums in the same order. It reads the finished sums from the folder
and continues the unfinished sum. Files are replaced atomically, every few seconds and when the
process is terminated, so a crash loses at most a few seconds of work. `Journal.complete` removes
the folder.

Rows that are not in files are identified by a fingerprint, which takes one pass over the rows:

    number of rows,   sum over rows of h(cells of the row) modulo 2^64

The sum does not depend on the order in which a database or a cluster returns the rows. Different
rows have the same fingerprint with a probability of 2^-64.

Summaries are stored as arrays and JSON, never as pickles. A summary is a frozen dataclass whose
fields are arrays, numbers, strings, tuples, dictionaries and other such dataclasses. A summary is
restored field by field. Only classes of this package are accepted, and their code is not run.
Arrays are restored bitwise, with the same memory layout.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import signal
import sys
import threading
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from copyreg import dispatch_table
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from discriminant.engines.summation import tree_push, tree_sum, tree_total
from discriminant.errors import (
    CheckpointError,
    CheckpointWarning,
    DiscriminantError,
    EngineError,
    warn,
)
from discriminant.table.column_cells import ColumnCells, Frame
from discriminant.table.column_types import ReadOptions
from discriminant.table.encoding import Encoding, LevelNotInPlan
from discriminant.table.files.atomic import atomic_write_bytes
from discriminant.table.files.checkpoint_folder import (
    check_header_value,
    create_folder,
    open_header,
)
from discriminant.table.files.formats import FileIdentity
from discriminant.table.partitioned_source import (
    Additive,
    PartialSum,
    PartitionedSource,
    TablePart,
    Work,
    with_read_options,
)

A = TypeVar("A", bound=Additive)
State = tuple[int, list[tuple[int, Any]]]  # number of parts done, sums of 1, 2, 4, ... parts
Results = Callable[[int], Iterator[Any]]  # results of the parts from a given index on

_FORMAT = 1
_HEADER = "journal.json"
_INTERVAL = 4.0  # seconds between two writes of an unfinished sum
_MIN_WORK = 100  # least seconds of work for each second of writing


@runtime_checkable
class Resumable(Protocol):
    """A source of rows that can resume an interrupted sum."""

    def with_journal(self, journal: Journal) -> PartitionedSource:
        """Return a source that stores its sums in a journal."""
        ...


@dataclass(slots=True, eq=False)
class Journal:
    """A folder of finished and unfinished sums."""

    folder: Path
    _write_seconds: float = field(default=0.0, init=False)  # duration of the last write
    _warned: bool = field(default=False, init=False)

    @classmethod
    def open(cls, path: str | os.PathLike[str], source: PartitionedSource) -> Self:
        """Open a journal folder.

        A new folder is created; an existing one must belong to the same files and versions.
        """
        folder, origin = Path(path), _origin(source)
        create_folder(folder, _HEADER)
        _check_origin(folder, open_header(folder, _HEADER, origin), origin)
        return cls(folder)

    def complete(self) -> None:
        """Remove the journal folder, because the run is complete."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def cached_sum(self, work: Work[Any], rows: str, compute: Callable[[], A]) -> A:
        """Return the stored sum of `work` over the rows; `rows` is the digest of these rows.

        If no sum is stored, compute and store it.
        """
        name = self._name(work, rows)
        if name is None:
            return compute()
        stored = self._load(f"{name}.sum")
        result: A = self._finish(name, compute()) if stored is None else _restore(stored)
        return result

    def resumed_sum(self, work: Work[Any], parts: str, results: Results) -> Any:
        """Return the stored sum of `work` over the parts; `parts` is the digest of these parts.

        If the sum is unfinished or new, compute the remaining parts and store the sum.
        """
        name = self._name(work, parts)
        if name is None:
            return tree_sum(results(0))
        stored = self._load(f"{name}.sum")
        if stored is not None:
            return _restore(stored)
        state: State = self._load(f"{name}.begun") or (0, [])
        return self._finish(name, self._resume(name, state, results))

    def _name(self, work: Work[Any], rows: str) -> str | None:
        """Return the digest of `work` and the rows, or None if `work` has no digest."""
        try:
            return digest((work, rows))
        except NotSerializableError as error:
            self._warn_once(CheckpointWarning.of_work(os.fspath(self.folder), str(error)))
            return None

    def _warn_once(self, warning: CheckpointWarning) -> None:
        if not self._warned:
            self._warned = True
            warn(warning)

    def _resume(self, name: str, state: State, results: Results) -> Any:
        stored, last = state, time.monotonic()
        try:
            with exit_on_sigterm(), closing(results(state[0])) as remaining:  # type: ignore[type-var]
                for result in remaining:
                    if getattr(result, "error", None) is not None:
                        return result
                    sums = list(state[1])
                    tree_push(sums, result)
                    state = (state[0] + 1, sums)  # one assignment: SIGTERM may arrive at any time
                    if time.monotonic() - last > max(_INTERVAL, _MIN_WORK * self._write_seconds):
                        self._store(f"{name}.begun", state)
                        stored, last = state, time.monotonic()
        finally:
            if state is not stored:
                self._store(f"{name}.begun", state)
        return tree_total(state[1])

    def _finish(self, name: str, result: Any) -> Any:
        """Store a finished sum and return it. An error is raised instead of being stored."""
        error = getattr(result, "error", None)
        if isinstance(error, LevelNotInPlan):
            result, error = StoredLevelNotInPlan(error.column, error.level), None
        if error is None:
            self._store(f"{name}.sum", result)
            with suppress(FileNotFoundError):
                os.unlink(self.folder / f"{name}.begun")
        return _restore(result)

    def _store(self, name: str, value: Any) -> None:
        started = time.monotonic()
        try:
            atomic_write_bytes(self.folder / name, serialize(value, {"format": _FORMAT}))
        except NotSerializableError as error:
            self._warn_once(CheckpointWarning.of_work(os.fspath(self.folder), str(error)))
        except OSError as error:  # a full disk must not stop the run
            self._warn_once(CheckpointWarning.not_written(os.fspath(self.folder), str(error)))
        self._write_seconds = time.monotonic() - started

    def _load(self, name: str) -> Any:
        try:
            content = (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None
        try:
            return deserialize(content)[0]
        except ValueError as error:
            raise CheckpointError.damaged(os.fspath(self.folder / name), str(error)) from None


@dataclass(frozen=True, slots=True)
class StoredLevelNotInPlan:
    """Stored in place of a sum if the rows contain a category that the encoding plan lacks."""

    column: str
    level: Any


def _restore(stored: Any) -> Any:
    if isinstance(stored, StoredLevelNotInPlan):
        return PartialSum(None, 0, LevelNotInPlan(stored.column, stored.level))
    return stored


@dataclass(frozen=True, slots=True, eq=False)
class CheckpointedSource:
    """A source that stores each completed sum on disk, under the fingerprint of the rows summed."""

    source: PartitionedSource
    journal: Journal
    wanted: tuple[str, ...] = ()  # columns for which a single fingerprint is computed
    _fingerprints: dict[tuple[str, ...], str] = field(default_factory=dict, init=False)

    @property
    def name(self) -> str:
        """Name of the source."""
        return self.source.name

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.source.names

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on how the source is read."""
        return self.source.notes

    def sample(self, columns: Sequence[str], rows: int) -> Frame:
        """Return a sample of the rows."""
        return self.source.sample(columns, rows)

    def map_reduce(self, work: Work[A]) -> A:
        """Return the sum of the results of all parts, which is stored or computed now."""
        rows = self._rows_digest(work.columns)
        return self.journal.cached_sum(work, rows, lambda: self.source.map_reduce(work))

    def with_options(
        self, options: ReadOptions, fitted: Encoding | None = None
    ) -> CheckpointedSource:
        """Return the source with its columns read according to the options."""
        source = with_read_options(self.source, options, fitted)
        wanted = tuple(options.columns_to_read(self.names))
        return CheckpointedSource(source, self.journal, wanted)

    def _rows_digest(self, columns: tuple[str, ...]) -> str:
        """Return a digest of the current rows, which may have changed since the last run."""
        columns = self.wanted if set(columns) <= set(self.wanted) else columns
        if columns not in self._fingerprints:
            rows = fingerprint(self.source, columns)
            self._fingerprints[columns] = digest((columns, rows))
        return self._fingerprints[columns]


def with_checkpoint(source: PartitionedSource, path: str | os.PathLike[str]) -> PartitionedSource:
    """Return the source with its sums stored in the folder `path`."""
    if getattr(source, "pushdown", False):  # no fingerprint, since rows must not leave the database
        raise EngineError.no_checkpoint(source.name)
    journal = Journal.open(path, source)
    if isinstance(source, Resumable):
        return source.with_journal(journal)
    return CheckpointedSource(source, journal)


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """Raise SystemExit on SIGTERM within a `with` block.

    If the signal already has a handler, the handler is not replaced.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


# --- the origin of a journal ----------------------------------------------------------------------

VERSIONED = {  # packages whose versions a journal records
    "discriminant": "discriminant",
    "numpy": "numpy",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
}


def _origin(source: PartitionedSource) -> dict[str, Any]:
    """Return the source, files and versions to which the sums of a journal belong."""
    files: Sequence[FileIdentity] = getattr(source, "identities", ())
    return {
        "format": _FORMAT,
        "versions": {name: _version(name) for name in VERSIONED.values()},
        "source": source.name,
        "files": [[os.path.abspath(file.path), file.size, file.changed] for file in files],
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # the package is not installed
        return "unknown"


def _check_origin(folder: Path, stored: dict[str, Any], origin: dict[str, Any]) -> None:
    """Raise CheckpointError if the journal belongs to another source, other files or versions."""
    if not _is_origin(stored):
        path = os.fspath(folder / _HEADER)
        raise CheckpointError.damaged(path, "it does not describe a run")
    for key in ("format", "source"):
        check_header_value(folder, key, stored.get(key), origin[key])
    for library, number in origin["versions"].items():
        check_header_value(folder, f"{library}'s version", stored["versions"].get(library), number)
    check_header_value(folder, "the number of files", len(stored["files"]), len(origin["files"]))
    for (path, size, changed), now in zip(stored["files"], origin["files"], strict=True):
        check_header_value(folder, "a file", path, now[0])
        check_header_value(folder, f"the size of {path}", size, now[1])
        if changed != now[2]:
            what = f"the time of the last change of {path}"
            check_header_value(folder, what, _timestamp(changed), _timestamp(now[2]))


def _is_origin(value: dict[str, Any]) -> bool:
    """Whether a value read from JSON has the form that `_origin` writes."""
    return (
        isinstance(value.get("versions"), dict)
        and isinstance(value.get("files"), list)
        and all(
            isinstance(file, list) and len(file) == 3 and isinstance(file[2], int)
            for file in value["files"]
        )
    )


def _timestamp(nanoseconds: int) -> str:
    """Return a time in ISO format, with nanoseconds.

    >>> _timestamp(1_500_000_000_000_000_007)
    '2017-07-14T02:40:00.000000007Z'
    """
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09}Z"


# --- fingerprints ---------------------------------------------------------------------------------

Bits = npt.NDArray[np.uint64]
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Number of rows, and the sum of their hashes modulo 2^64."""

    rows: int
    total: int

    def __add__(self, other: Fingerprint) -> Fingerprint:
        """Return the fingerprint of the rows of both operands."""
        return Fingerprint(self.rows + other.rows, (self.total + other.total) % 2**64)


@dataclass(frozen=True, slots=True)
class FingerprintWork:
    """Function of a part that computes a fingerprint from the cells of some columns."""

    columns: tuple[str, ...]

    def __call__(self, part: TablePart) -> PartialSum[Fingerprint]:
        """Return the fingerprint of a part."""
        result = Fingerprint(0, 0)
        try:
            for frame in part.frames(self.columns):
                result += Fingerprint(len(frame), _sum_hashes(frame, self.columns))
        except DiscriminantError as error:
            return PartialSum.from_error(error, part, result.rows)
        return PartialSum(result, result.rows)


def fingerprint(source: PartitionedSource, columns: Sequence[str]) -> Fingerprint:
    """Return the fingerprint of all rows of a source."""
    result = source.map_reduce(FingerprintWork(tuple(columns))).check().total
    return result or Fingerprint(0, 0)


def _sum_hashes(frame: Frame, columns: Sequence[str]) -> int:
    """Return the sum of the hashes of all rows. The hash of a row depends on all of its cells."""
    state = np.zeros(len(frame), dtype=np.uint64)
    for name in columns:
        state ^= _bits(frame[name])
        state *= _ODD
        state ^= state >> _SHIFT
    state *= _ODD
    state ^= state >> _SHIFT
    return int(state.sum(dtype=np.uint64))


def _bits(cells: ColumnCells) -> Bits:
    """Return 64 bits for each cell. All missing cells have the same bits, and 0 and -0 have the
    same bits.
    """
    if cells.kind == "text":
        hashes = [int.from_bytes(blake2b(t.encode(), digest_size=8).digest()) for t in cells.levels]
        return np.asarray(np.array([*hashes, 1], dtype=np.uint64)[cells.values])
    if cells.values.dtype.kind != "f":
        return np.asarray(cells.values.astype(np.int64).view(np.uint64))
    numbers = cells.values.astype(np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(np.uint64)


# --- serialisation --------------------------------------------------------------------------------

_PACKAGE = "discriminant."
_PLAIN = (type(None), bool, int, float, str)
_DAMAGED = (  # errors besides ValueError that a damaged file may raise
    zipfile.BadZipFile,
    zlib.error,
    LookupError,
    EOFError,
    TypeError,
    AttributeError,
    ImportError,
    RecursionError,
    NotImplementedError,
)


class NotSerializableError(Exception):
    """Raised for a value that cannot be stored or has no digest."""


def serialize(value: Any, facts: Mapping[str, Any]) -> bytes:
    """Return the bytes of a file that contains a summary and metadata (`facts`).

    The file is a zip archive of NumPy arrays and JSON.
    """
    arrays: list[npt.NDArray[Any]] = []
    text = json.dumps({"facts": facts, "value": _to_json(value, arrays)})
    named = {f"a{k}": array for k, array in enumerate(arrays)}
    file = io.BytesIO()
    np.savez(file, text=np.frombuffer(text.encode(), dtype=np.uint8), **named)  # type: ignore[arg-type]
    return file.getvalue()


def deserialize(content: bytes) -> tuple[Any, dict[str, Any]]:
    """Return the summary and the metadata from the bytes of a file.

    Raise ValueError with the reason if the content is anything else.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            record = json.loads(archive["text"].tobytes())
            arrays = [archive[f"a{k}"] for k in range(len(archive.files) - 1)]
        return _from_json(record["value"], arrays), record["facts"]
    except _DAMAGED as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _to_json(value: Any, arrays: list[npt.NDArray[Any]]) -> Any:
    """Convert a value to a form that can be stored as JSON.

    Arrays in the value are appended to `arrays`, and replaced by their index.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.hasobject:
            objects = [_to_json(item, arrays) for item in np.asarray(value).ravel().tolist()]
            return {"objects": objects, "shape": value.shape}
        arrays.append(np.asarray(value))
        return {"array" if isinstance(value, np.ndarray) else "number": len(arrays) - 1}
    if type(value) in (tuple, list):
        return {type(value).__name__: [_to_json(item, arrays) for item in value]}
    if type(value) is dict:
        return {"dict": [[_to_json(k, arrays), _to_json(v, arrays)] for k, v in value.items()]}
    if type(value) is frozenset:
        return {"frozenset": [_to_json(item, arrays) for item in sorted(value, key=repr)]}
    if is_dataclass(value) and type(value).__module__.startswith(_PACKAGE):
        name = f"{type(value).__module__}:{type(value).__qualname__}"
        parts = {item.name: _to_json(getattr(value, item.name), arrays) for item in fields(value)}
        return {"class": name, "fields": parts}
    raise NotSerializableError(type(value).__name__)


def _from_json(record: Any, arrays: list[npt.NDArray[Any]]) -> Any:
    if not isinstance(record, dict):
        return record
    if "array" in record:
        return arrays[record["array"]]
    if "number" in record:
        return arrays[record["number"]][()]
    if "objects" in record:
        objects = np.empty(len(record["objects"]), dtype=object)
        objects[:] = [_from_json(item, arrays) for item in record["objects"]]
        return objects.reshape(record["shape"])
    for kind in (tuple, list, frozenset):
        if kind.__name__ in record:
            return kind(_from_json(item, arrays) for item in record[kind.__name__])
    if "dict" in record:
        return {_from_json(k, arrays): _from_json(v, arrays) for k, v in record["dict"]}
    return _instance(record, arrays)


def _instance(record: dict[str, Any], arrays: list[npt.NDArray[Any]]) -> Any:
    """Restore an instance of a dataclass of this package, without running its code."""
    module, _, name = record["class"].partition(":")
    if not module.startswith(_PACKAGE):
        raise ValueError(f"{module} is not part of this package")
    kind = getattr(import_module(module), name)
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise ValueError(f"{name} is not a summary")
    instance = object.__new__(kind)
    for item in fields(kind):
        object.__setattr__(instance, item.name, _from_json(record["fields"][item.name], arrays))
    return instance


# --- digests --------------------------------------------------------------------------------------

Parents = tuple[int, ...]  # ids of the objects that contain a value, to detect cycles
_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType)
_OPAQUE = (GeneratorType, ModuleType, CodeType)


def digest(value: Any) -> str:
    """Return a digest of the content of a value.

    Equal content has the same digest in every process.

    Raises NotSerializableError if the content of the value cannot be inspected.
    """
    hashed = hashlib.sha256()
    for content in _content(value, ()):
        hashed.update(content)
        hashed.update(b"\0")
    return hashed.hexdigest()[:32]


def _content(value: Any, parents: Parents) -> Iterator[bytes]:
    """Yield the content of a value and, recursively, of the values that it contains."""
    if isinstance(value, (*_PLAIN, np.generic, bytes)):
        yield f"{type(value).__name__} {value!r}".encode()
        return
    if id(value) in parents:
        yield f"above {parents[::-1].index(id(value))}".encode()
        return
    parents = (*parents, id(value))
    if isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape}".encode()
        if value.dtype.hasobject:
            yield from _contents(value.flat, parents)
        else:
            yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, tuple | list | set | frozenset):
        yield f"{type(value).__name__} {len(value)}".encode()
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        yield from _contents(items, parents)
    elif isinstance(value, Mapping):
        yield from _content(list(value.items()), parents)
    elif isinstance(value, type):
        yield from _class_content(value, parents)
    elif isinstance(value, _FUNCTIONS):
        yield from _function_content(value, parents)
    else:
        yield from _content(type(value), parents)
        yield from _contents(_object_parts(value), parents)


def _contents(values: Iterable[Any], parents: Parents) -> Iterator[bytes]:
    for value in values:
        yield from _content(value, parents)


def _class_content(kind: type, parents: Parents) -> Iterator[bytes]:
    """Yield the name of a class, and its code.

    The code is omitted if the journal records the version of the package that defines it.
    """
    yield f"{kind.__module__}.{kind.__qualname__}".encode()
    if not _is_versioned(kind.__module__):
        yield from _contents(kind.__bases__, parents)
        for name, member in sorted(vars(kind).items()):
            if isinstance(member, property | staticmethod | classmethod):
                member = getattr(member, "fget", None) or getattr(member, "__func__", None)
            constant = isinstance(member, (*_PLAIN, tuple)) and not name.startswith("__")
            if constant or isinstance(member, _FUNCTIONS):
                yield from _contents((name, member), parents)


def _function_content(value: Any, parents: Parents) -> Iterator[bytes]:
    """Yield the name of a function, the object to which it is bound, and its code.

    The code is omitted if the journal records the version of the package that defines it.
    """
    module = getattr(value, "__module__", None)
    yield f"{module}.{value.__qualname__}".encode()
    bound = getattr(value, "__self__", None)
    if bound is not None and not isinstance(bound, ModuleType):
        yield from _content(bound, parents)
    value = getattr(value, "__func__", value)
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        yield from _contents((value.__defaults__, value.__kwdefaults__, cells), parents)
        if not _is_versioned(module or ""):
            yield from _code_content(value.__code__, value.__globals__, parents)


def _code_content(
    code: CodeType, namespace: Mapping[str, Any], parents: Parents
) -> Iterator[bytes]:
    """Yield byte code, its constants, and the global values that it uses."""
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_freevars)).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_content(constant, namespace, parents)
        else:
            yield from _content(constant, parents)
    for name in code.co_names:
        value = namespace.get(name)
        yield from _content(value.__name__ if isinstance(value, ModuleType) else value, parents)


def _is_versioned(module: str) -> bool:
    """Whether a module belongs to a package whose version a journal records."""
    package = module.split(".")[0]
    return package in VERSIONED or package in sys.stdlib_module_names


def _object_parts(value: Any) -> list[Any]:
    """Return the fields of a dataclass, or the state that pickle would store for another object."""
    if is_dataclass(value):
        return [[item.name, getattr(value, item.name)] for item in fields(value)]
    if isinstance(value, _OPAQUE):
        raise NotSerializableError(type(value).__name__)
    reduce: Any = dispatch_table.get(type(value), lambda value: value.__reduce_ex__(4))
    try:
        reduced = reduce(value)
    except Exception:  # an object may refuse to be pickled for any reason
        raise NotSerializableError(type(value).__name__) from None
    if isinstance(reduced, str):  # the name of a global object
        return [getattr(value, "__module__", ""), reduced]
    return [list(item) if isinstance(item, Iterator) else item for item in reduced[1:]]
