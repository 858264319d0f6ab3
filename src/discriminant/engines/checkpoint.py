"""Checkpoints: work that was stopped goes on where it was, to the same last bit.

Whatever is asked of rows, by an estimator, by cross-validation, by a report, is a sum over parts,
and its work is a pure function of a part. So a sum has a name: the digest of the work and of the
parts. A Journal is a folder in which sums are kept by their names:

    journal.json       of what files and by what versions; another's is refused
    <name>.sum         one that is done: it is not worked out again
    <name>.begun       one under way: the sums of 1, 2, 4, ... parts, and how many parts are done

A run that is started again asks for the same sums in the same order, is given those that are kept,
and goes on. Files are replaced whole, every few seconds and when the process is told to stop, so a
stop, or a crash, at any moment loses a few seconds. `complete` removes the folder.

Who the rows of a source are, where no file says it: how many, and a sum over them.

    sum over rows of h(cells of the row),   modulo 2^64

The sum is of no order, so it is the same however a database or a cluster gives the rows; that other
rows have the same has one chance in 2^64. They are read once for it.

Serialise summaries as plain arrays and JSON, never as pickles, and digest readings.

A summary is a frozen dataclass of arrays, numbers, texts, tuples, dictionaries and such classes
again. It is taken apart by its fields and put together again field by field; only classes of this
package are, and none of their code runs. Arrays come back with every bit, in the order they lay.
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
    check_file_name,
    warn,
)
from discriminant.table.cells import Cells, Frame
from discriminant.table.column_types import ReadOptions
from discriminant.table.encoding import Encoding, UnknownLevel
from discriminant.table.files.atomic import atomic_write_bytes, is_temporary_of
from discriminant.table.files.formats import FileIdentity
from discriminant.table.partitioned import (
    Additive,
    PartialSum,
    PartitionedSource,
    TablePart,
    Work,
    with_read_options,
)

Bits = npt.NDArray[np.uint64]
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Of some rows."""

    rows: int
    total: int

    def __add__(self, other: Fingerprint) -> Fingerprint:
        """Of the rows of both."""
        return Fingerprint(self.rows + other.rows, (self.total + other.total) % 2**64)


@dataclass(frozen=True, slots=True)
class FingerprintWork:
    """Look at all cells of some columns."""

    columns: tuple[str, ...]

    def __call__(self, part: TablePart) -> PartialSum[Fingerprint]:
        """Of the rows of a part."""
        found = Fingerprint(0, 0)
        try:
            for frame in part.frames(self.columns):
                found += Fingerprint(len(frame), _total(frame, self.columns))
        except DiscriminantError as fault:
            return PartialSum.from_error(fault, part, found.rows)
        return PartialSum(found, found.rows)


def fingerprint(source: PartitionedSource, columns: Sequence[str]) -> Fingerprint:
    """Of all rows of a source."""
    found = source.map_reduce(FingerprintWork(tuple(columns))).check().total
    return found or Fingerprint(0, 0)


def _total(frame: Frame, columns: Sequence[str]) -> int:
    """The sum of the hashes of rows; each cell stirs the hash of its row."""
    state = np.zeros(len(frame), dtype=np.uint64)
    for name in columns:
        state ^= _bits(frame[name])
        state *= _ODD
        state ^= state >> _SHIFT
    state *= _ODD
    state ^= state >> _SHIFT
    return int(state.sum(dtype=np.uint64))


def _bits(cells: Cells) -> Bits:
    """64 bits for each cell; all that are missing have the same, and so have 0 and -0."""
    if cells.kind == "text":
        each = [int.from_bytes(blake2b(t.encode(), digest_size=8).digest()) for t in cells.levels]
        return np.asarray(np.array([*each, 1], dtype=np.uint64)[cells.values])
    if cells.values.dtype.kind != "f":
        return np.asarray(cells.values.astype(np.int64).view(np.uint64))
    numbers = cells.values.astype(np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(np.uint64)


_PACKAGE = "discriminant."
_PLAIN = (type(None), bool, int, float, str)
_DAMAGED = (  # what a file with other content than ours raises, beside ValueError
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
_CODED = (FunctionType, MethodType, BuiltinFunctionType)
_CLOSED = (GeneratorType, ModuleType, CodeType)
VERSIONED = {  # packages whose code is what a journal notes the version of
    "discriminant": "discriminant",
    "numpy": "numpy",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
}


class NotSerializableError(Exception):
    """Something is no summary that could be taken apart; then it is worked out again."""


def serialize(value: Any, facts: Mapping[str, Any]) -> bytes:
    """A summary and some facts as a file: arrays of NumPy in a zip, the rest as JSON."""
    arrays: list[npt.NDArray[Any]] = []
    text = json.dumps({"facts": facts, "value": _apart(value, arrays)})
    held = {f"a{k}": array for k, array in enumerate(arrays)}
    file = io.BytesIO()
    np.savez(file, text=np.frombuffer(text.encode(), dtype=np.uint8), **held)  # type: ignore[arg-type]
    return file.getvalue()


def deserialize(content: bytes) -> tuple[Any, dict[str, Any]]:
    """The summary and the facts; ValueError says why not."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as held:
            told = json.loads(held["text"].tobytes())
            arrays = [held[f"a{k}"] for k in range(len(held.files) - 1)]
        return _together(told["value"], arrays), told["facts"]
    except _DAMAGED as fault:
        raise ValueError(f"{type(fault).__name__}: {fault}") from None


def digest(value: Any) -> str:
    """A name for the content of a value: the same for the same work in any process.

    CannotKeepError where something cannot be looked into: better no name than a doubtful one.
    """
    found = hashlib.sha256()
    for piece in _pieces(value, ()):
        found.update(piece)
        found.update(b"\0")
    return found.hexdigest()[:32]


def _apart(value: Any, arrays: list[npt.NDArray[Any]]) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.hasobject:
            some = [_apart(one, arrays) for one in np.asarray(value).ravel().tolist()]
            return {"objects": some, "shape": value.shape}
        arrays.append(np.asarray(value))
        return {"array" if isinstance(value, np.ndarray) else "number": len(arrays) - 1}
    if type(value) in (tuple, list):
        return {type(value).__name__: [_apart(one, arrays) for one in value]}
    if type(value) is dict:
        return {"dict": [[_apart(k, arrays), _apart(v, arrays)] for k, v in value.items()]}
    if type(value) is frozenset:
        return {"frozenset": [_apart(one, arrays) for one in sorted(value, key=repr)]}
    if is_dataclass(value) and type(value).__module__.startswith(_PACKAGE):
        name = f"{type(value).__module__}:{type(value).__qualname__}"
        held = {one.name: _apart(getattr(value, one.name), arrays) for one in fields(value)}
        return {"class": name, "fields": held}
    raise NotSerializableError(type(value).__name__)


def _together(told: Any, arrays: list[npt.NDArray[Any]]) -> Any:
    if not isinstance(told, dict):
        return told
    if "array" in told:
        return arrays[told["array"]]
    if "number" in told:
        return arrays[told["number"]][()]
    if "objects" in told:
        some = np.empty(len(told["objects"]), dtype=object)
        some[:] = [_together(one, arrays) for one in told["objects"]]
        return some.reshape(told["shape"])
    for kind in (tuple, list, frozenset):
        if kind.__name__ in told:
            return kind(_together(one, arrays) for one in told[kind.__name__])
    if "dict" in told:
        return {_together(k, arrays): _together(v, arrays) for k, v in told["dict"]}
    return _instance(told, arrays)


def _instance(told: dict[str, Any], arrays: list[npt.NDArray[Any]]) -> Any:
    module, _, name = told["class"].partition(":")
    if not module.startswith(_PACKAGE):
        raise ValueError(f"{module} is not of this package")
    kind = getattr(import_module(module), name)
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise ValueError(f"{name} is no summary")
    made = object.__new__(kind)
    for each in fields(kind):
        object.__setattr__(made, each.name, _together(told["fields"][each.name], arrays))
    return made


# --- what a value is made of ---------------------------------------------------------------------

Above = tuple[int, ...]  # what is being looked into, so that nothing is for ever


def _pieces(value: Any, above: Above) -> Iterator[bytes]:
    if isinstance(value, (*_PLAIN, np.generic, bytes)):
        yield f"{type(value).__name__} {value!r}".encode()
        return
    if id(value) in above:
        yield f"above {above[::-1].index(id(value))}".encode()
        return
    above = (*above, id(value))
    if isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape}".encode()
        whole = not value.dtype.hasobject
        yield from [np.ascontiguousarray(value).tobytes()] if whole else _all(value.flat, above)
    elif isinstance(value, tuple | list | set | frozenset):
        yield f"{type(value).__name__} {len(value)}".encode()
        order = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        yield from _all(order, above)
    elif isinstance(value, Mapping):
        yield from _pieces(list(value.items()), above)
    elif isinstance(value, type):
        yield from _class(value, above)
    elif isinstance(value, _CODED):
        yield from _function(value, above)
    else:
        yield from _pieces(type(value), above)
        yield from _all(_held(value), above)


def _all(values: Iterable[Any], above: Above) -> Iterator[bytes]:
    for one in values:
        yield from _pieces(one, above)


def _class(kind: type, above: Above) -> Iterator[bytes]:
    """Its name; of a class of nobody's version also what it does."""
    yield f"{kind.__module__}.{kind.__qualname__}".encode()
    if not _versioned(kind.__module__):
        yield from _all(kind.__bases__, above)
        for name, held in sorted(vars(kind).items()):
            if isinstance(held, property | staticmethod | classmethod):
                held = getattr(held, "fget", None) or getattr(held, "__func__", None)
            own = isinstance(held, (*_PLAIN, tuple)) and not name.startswith("__")
            if own or isinstance(held, _CODED):
                yield from _all((name, held), above)


def _function(value: Any, above: Above) -> Iterator[bytes]:
    """Its name, and what it is bound to; of one of nobody's version also what it does."""
    module = getattr(value, "__module__", None)
    yield f"{module}.{value.__qualname__}".encode()
    bound = getattr(value, "__self__", None)
    if bound is not None and not isinstance(bound, ModuleType):
        yield from _pieces(bound, above)
    value = getattr(value, "__func__", value)
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        yield from _all((value.__defaults__, value.__kwdefaults__, cells), above)
        if not _versioned(module or ""):
            yield from _code(value.__code__, value.__globals__, above)


def _code(code: CodeType, around: Mapping[str, Any], above: Above) -> Iterator[bytes]:
    """What is done, with what numbers and texts, and with what that stands around it."""
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_freevars)).encode()
    for held in code.co_consts:
        inner = isinstance(held, CodeType)
        yield from _code(held, around, above) if inner else _pieces(held, above)
    for name in code.co_names:
        held = around.get(name)
        yield from _pieces(held.__name__ if isinstance(held, ModuleType) else held, above)


def _versioned(module: str) -> bool:
    """Whether a version says what its code is: the standard library, and what a journal notes."""
    first = module.split(".")[0]
    return first in VERSIONED or first in sys.stdlib_module_names


def _held(value: Any) -> list[Any]:
    """What an object is made of."""
    if is_dataclass(value):
        return [[one.name, getattr(value, one.name)] for one in fields(value)]
    if isinstance(value, _CLOSED):
        raise NotSerializableError(type(value).__name__)
    reduced: Any = dispatch_table.get(type(value), lambda value: value.__reduce_ex__(4))
    try:
        found = reduced(value)
    except Exception:  # whatever it is that keeps it from being taken apart
        raise NotSerializableError(type(value).__name__) from None
    if isinstance(found, str):  # known by its name
        return [getattr(value, "__module__", ""), found]
    return [list(one) if isinstance(one, Iterator) else one for one in found[1:]]


A = TypeVar("A", bound=Additive)
State = tuple[int, list[tuple[int, Any]]]  # parts done, sums of 1, 2, 4, ... parts
Answers = Callable[[int], Iterator[Any]]  # of the parts from one on, in their order

_FORMAT = 1
_EVERY = 4.0  # seconds between two writings of what is under way
_SHARE = 100  # a writing takes at most this part of the time


@runtime_checkable
class Resumable(Protocol):
    """A source that can begin in the middle of its parts."""

    def with_journal(self, journal: Journal) -> PartitionedSource:
        """The source with its sums kept in a journal."""
        ...


@dataclass(slots=True, eq=False)
class Journal:
    """Sums kept in a folder."""

    folder: Path
    _cost: float = field(default=0.0, init=False)  # seconds that the last writing took
    _told: bool = field(default=False, init=False)  # whether it was said that sums are not kept

    @classmethod
    def open(cls, path: str | os.PathLike[str], source: PartitionedSource) -> Self:
        """A new journal, or one of the same files and versions."""
        check_file_name(path)
        folder = Path(path)
        now = _origin(source)
        head = folder / "journal.json"
        if head.exists():
            _check_same(folder, now)
        elif folder.exists() and not (folder.is_dir() and _is_unused(folder)):
            raise CheckpointError.foreign(os.fspath(path))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            atomic_write_bytes(head, json.dumps(now, indent=1).encode())
        return cls(folder)

    def complete(self) -> None:
        """Remove the folder: all is done."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def cached_sum(self, work: Work[Any], cut: str, sum_up: Callable[[], A]) -> A:
        """A sum that is kept, or worked out as a whole."""
        name = self._name(work, cut)
        if name is None:
            return sum_up()
        kept = self._kept(f"{name}.sum")
        found: A = self._done(name, sum_up()) if kept is None else _answer(kept)
        return found

    def resumed_sum(self, work: Work[Any], cut: str, answers: Answers) -> Any:
        """A sum that is kept, or worked out from the part where it was stopped."""
        name = self._name(work, cut)
        if name is None:
            return tree_sum(answers(0))
        found = self._kept(f"{name}.sum")
        if found is not None:
            return _answer(found)
        begun = self._kept(f"{name}.begun")
        state: State = (0, []) if begun is None else begun
        return self._done(name, self._go_on(name, state, answers))

    # --- inside ---------------------------------------------------------------------------------

    def _name(self, work: Work[Any], cut: str) -> str | None:
        """Of a sum; None of work that holds what cannot be looked into."""
        try:
            return digest((work, cut))
        except NotSerializableError as kind:
            self._tell(CheckpointWarning.of_work(os.fspath(self.folder), str(kind)))
            return None

    def _tell(self, why: CheckpointWarning) -> None:
        """Once."""
        if not self._told:
            self._told = True
            warn(why)

    def _go_on(self, name: str, state: State, answers: Answers) -> Any:
        kept, last = state, time.monotonic()
        try:
            with exit_on_sigterm(), closing(answers(state[0])) as found:  # type: ignore[type-var]
                for answer in found:
                    if getattr(answer, "error", None) is not None:
                        return answer
                    waiting = list(state[1])
                    tree_push(waiting, answer)
                    state = (state[0] + 1, waiting)  # in one step: a stop may come at any moment
                    if time.monotonic() - last > max(_EVERY, _SHARE * self._cost):
                        self._keep(f"{name}.begun", state)
                        kept, last = state, time.monotonic()
        finally:
            if state is not kept:
                self._keep(f"{name}.begun", state)
        return tree_total(state[1])

    def _done(self, name: str, answer: Any) -> Any:
        fault = getattr(answer, "error", None)
        if isinstance(fault, UnknownLevel):
            answer, fault = Met(fault.column, fault.level), None
        if fault is None:
            self._keep(f"{name}.sum", answer)
            with suppress(FileNotFoundError):
                os.unlink(self.folder / f"{name}.begun")
        return _answer(answer)

    def _keep(self, name: str, value: Any) -> None:
        started = time.monotonic()
        try:
            atomic_write_bytes(self.folder / name, serialize(value, {"format": _FORMAT}))
        except NotSerializableError as kind:
            self._tell(CheckpointWarning.of_work(os.fspath(self.folder), str(kind)))
        except OSError as fault:  # the disk is full: a pity, and no reason to lose the work too
            self._tell(CheckpointWarning.not_written(os.fspath(self.folder), str(fault)))
        self._cost = time.monotonic() - started

    def _kept(self, name: str) -> Any:
        try:
            content = (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None
        try:
            return deserialize(content)[0]
        except ValueError as fault:
            raise CheckpointError.damaged(os.fspath(self.folder / name), str(fault)) from None


@dataclass(frozen=True, slots=True)
class Met:
    """That rows held what was not foreseen."""

    column: str
    level: Any


@dataclass(frozen=True, slots=True, eq=False)
class CheckpointedSource:
    """A source whose sums, once done, are kept by the rows they are of."""

    source: PartitionedSource
    journal: Journal
    wanted: tuple[str, ...] = ()  # columns that are looked at together
    _rows: dict[tuple[str, ...], str] = field(default_factory=dict, init=False)  # who they are

    @property
    def name(self) -> str:
        """Of the source."""
        return self.source.name

    @property
    def names(self) -> tuple[str, ...]:
        """Of its columns."""
        return self.source.names

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found out about it."""
        return self.source.notes

    def sample(self, columns: Sequence[str], rows: int) -> Frame:
        """Some rows."""
        return self.source.sample(columns, rows)

    def map_reduce(self, work: Work[A]) -> A:
        """The sum of what work says of each part."""
        return self.journal.cached_sum(
            work, self._who(work.columns), lambda: self.source.map_reduce(work)
        )

    def with_options(
        self, wishes: ReadOptions, fitted: Encoding | None = None
    ) -> CheckpointedSource:
        """The source with its columns read as what is wished of them."""
        wanted = tuple(wishes.columns_to_read(self.names))
        return CheckpointedSource(
            with_read_options(self.source, wishes, fitted), self.journal, wanted
        )

    def _who(self, columns: tuple[str, ...]) -> str:
        """Who the rows are: they may have been changed since sums were kept."""
        looked = self.wanted if set(columns) <= set(self.wanted) else columns
        if looked not in self._rows:
            self._rows[looked] = digest((looked, fingerprint(self.source, looked)))
        return self._rows[looked]


def with_checkpoint(source: PartitionedSource, path: str | os.PathLike[str]) -> PartitionedSource:
    """The source with its sums kept in a folder."""
    if getattr(source, "pushdown", False):  # where nothing is known of rows that may not leave
        raise EngineError.no_checkpoint(source.name)
    journal = Journal.open(path, source)
    if isinstance(source, Resumable):
        return source.with_journal(journal)
    return CheckpointedSource(source, journal)


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """SIGTERM ends what is under way in order, as Ctrl-C does, unless somebody else hears it."""
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


def _is_unused(folder: Path) -> bool:
    """Whether a folder holds nothing but temporary files of `journal.json`."""
    return all(is_temporary_of(name, "journal.json") for name in os.listdir(folder))


def _answer(kept: Any) -> Any:
    if isinstance(kept, Met):
        return PartialSum(None, 0, UnknownLevel(kept.column, kept.level))
    return kept


def _origin(source: PartitionedSource) -> dict[str, Any]:
    """What a journal is of."""
    files: Sequence[FileIdentity] = getattr(source, "identities", ())
    return {
        "format": _FORMAT,
        "versions": {name: _version(name) for name in VERSIONED.values()},
        "source": source.name,
        "files": [[os.path.abspath(one.path), one.size, one.changed] for one in files],
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # run from its folder, without being installed
        return "unknown"


def _check_same(folder: Path, now: dict[str, Any]) -> None:
    head = folder / "journal.json"
    try:
        was = json.loads(head.read_bytes())
    except ValueError as fault:
        raise CheckpointError.damaged(os.fspath(head), str(fault)) from None
    except RecursionError:
        raise CheckpointError.damaged(os.fspath(head), "it is nested too deep") from None
    if not _is_origin(was):
        raise CheckpointError.damaged(os.fspath(head), "it does not describe a run")
    for what in ("format", "source"):
        _compare(folder, what, was.get(what), now[what])
    for library, found in now["versions"].items():
        _compare(folder, f"{library}'s version", was["versions"].get(library), found)
    _compare(folder, "the number of files", len(was["files"]), len(now["files"]))
    for one, other in zip(was["files"], now["files"], strict=True):
        _compare(folder, "a file", one[0], other[0])
        _compare(folder, f"the size of {one[0]}", one[1], other[1])
        if one[2] != other[2]:
            what = f"the time of the last change of {one[0]}"
            _compare(folder, what, _moment(one[2]), _moment(other[2]))


def _is_origin(value: Any) -> bool:
    """Whether JSON has the form that `_origin` writes."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("versions"), dict)
        and isinstance(value.get("files"), list)
        and all(
            isinstance(one, list) and len(one) == 3 and isinstance(one[2], int)
            for one in value["files"]
        )
    )


def _moment(nanoseconds: int) -> str:
    """When it was, to the nanosecond.

    >>> _moment(1_500_000_000_000_000_007)
    '2017-07-14T02:40:00.000000007Z'
    """
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09}Z"


def _compare(folder: Path, what: str, was: object, now: object) -> None:
    if was != now:
        raise CheckpointError.of_other(os.fspath(folder), what, str(was), str(now))
