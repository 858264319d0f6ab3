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
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from discriminant.engines.fingerprint import fingerprint
from discriminant.engines.keeping import VERSIONED, CannotKeepError, digest, packed, unpacked
from discriminant.engines.summing import add_up, push, total
from discriminant.errors import (
    CheckpointError,
    CheckpointWarning,
    EngineError,
    check_file_name,
    tell,
)
from discriminant.table.cells import Frame
from discriminant.table.encoding import Encoding, Unforeseen
from discriminant.table.files import Identity
from discriminant.table.learning import Wishes
from discriminant.table.parts import Adds, Partial, Source, Work, reading_as
from discriminant.table.replacing import is_temporary_of, write_whole

A = TypeVar("A", bound=Adds)
State = tuple[int, list[tuple[int, Any]]]  # parts done, sums of 1, 2, 4, ... parts
Answers = Callable[[int], Iterator[Any]]  # of the parts from one on, in their order

_FORMAT = 1
_EVERY = 4.0  # seconds between two writings of what is under way
_SHARE = 100  # a writing takes at most this part of the time


@runtime_checkable
class Resumable(Protocol):
    """A source that can begin in the middle of its parts."""

    def resuming(self, journal: Journal) -> Source:
        """The source with its sums kept in a journal."""
        ...


@dataclass(slots=True, eq=False)
class Journal:
    """Sums kept in a folder."""

    folder: Path
    _cost: float = field(default=0.0, init=False)  # seconds that the last writing took
    _told: bool = field(default=False, init=False)  # whether it was said that sums are not kept

    @classmethod
    def open(cls, path: str | os.PathLike[str], source: Source) -> Self:
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
            write_whole(head, json.dumps(now, indent=1).encode())
        return cls(folder)

    def complete(self) -> None:
        """Remove the folder: all is done."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def summed(self, work: Work[Any], cut: str, sum_up: Callable[[], A]) -> A:
        """A sum that is kept, or worked out as a whole."""
        name = self._name(work, cut)
        if name is None:
            return sum_up()
        kept = self._kept(f"{name}.sum")
        found: A = self._done(name, sum_up()) if kept is None else _answer(kept)
        return found

    def resumed(self, work: Work[Any], cut: str, answers: Answers) -> Any:
        """A sum that is kept, or worked out from the part where it was stopped."""
        name = self._name(work, cut)
        if name is None:
            return add_up(answers(0))
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
        except CannotKeepError as kind:
            self._tell(CheckpointWarning.of_work(os.fspath(self.folder), str(kind)))
            return None

    def _tell(self, why: CheckpointWarning) -> None:
        """Once."""
        if not self._told:
            self._told = True
            tell(why)

    def _go_on(self, name: str, state: State, answers: Answers) -> Any:
        kept, last = state, time.monotonic()
        try:
            with ends_when_told(), closing(answers(state[0])) as found:  # type: ignore[type-var]
                for answer in found:
                    if getattr(answer, "fault", None) is not None:
                        return answer
                    waiting = list(state[1])
                    push(waiting, answer)
                    state = (state[0] + 1, waiting)  # in one step: a stop may come at any moment
                    if time.monotonic() - last > max(_EVERY, _SHARE * self._cost):
                        self._keep(f"{name}.begun", state)
                        kept, last = state, time.monotonic()
        finally:
            if state is not kept:
                self._keep(f"{name}.begun", state)
        return total(state[1])

    def _done(self, name: str, answer: Any) -> Any:
        fault = getattr(answer, "fault", None)
        if isinstance(fault, Unforeseen):
            answer, fault = Met(fault.column, fault.level), None
        if fault is None:
            self._keep(f"{name}.sum", answer)
            with suppress(FileNotFoundError):
                os.unlink(self.folder / f"{name}.begun")
        return _answer(answer)

    def _keep(self, name: str, value: Any) -> None:
        started = time.monotonic()
        try:
            write_whole(self.folder / name, packed(value, {"format": _FORMAT}))
        except CannotKeepError as kind:
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
            return unpacked(content)[0]
        except ValueError as fault:
            raise CheckpointError.damaged(os.fspath(self.folder / name), str(fault)) from None


@dataclass(frozen=True, slots=True)
class Met:
    """That rows held what was not foreseen."""

    column: str
    level: Any


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A source whose sums, once done, are kept by the rows they are of."""

    source: Source
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
    def said(self) -> tuple[str, ...]:
        """What was found out about it."""
        return self.source.said

    def sample(self, columns: Sequence[str], rows: int) -> Frame:
        """Some rows."""
        return self.source.sample(columns, rows)

    def summed(self, work: Work[A]) -> A:
        """The sum of what work says of each part."""
        return self.journal.summed(work, self._who(work.columns), lambda: self.source.summed(work))

    def wishing(self, wishes: Wishes, fitted: Encoding | None = None) -> Kept:
        """The source with its columns read as what is wished of them."""
        wanted = tuple(wishes.wanted(self.names))
        return Kept(reading_as(self.source, wishes, fitted), self.journal, wanted)

    def _who(self, columns: tuple[str, ...]) -> str:
        """Who the rows are: they may have been changed since sums were kept."""
        looked = self.wanted if set(columns) <= set(self.wanted) else columns
        if looked not in self._rows:
            self._rows[looked] = digest((looked, fingerprint(self.source, looked)))
        return self._rows[looked]


def with_checkpoint(source: Source, path: str | os.PathLike[str]) -> Source:
    """The source with its sums kept in a folder."""
    if getattr(source, "pushdown", False):  # where nothing is known of rows that may not leave
        raise EngineError.no_checkpoint(source.name)
    journal = Journal.open(path, source)
    if isinstance(source, Resumable):
        return source.resuming(journal)
    return Kept(source, journal)


@contextmanager
def ends_when_told() -> Iterator[None]:
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
        return Partial(None, 0, Unforeseen(kept.column, kept.level))
    return kept


def _origin(source: Source) -> dict[str, Any]:
    """What a journal is of."""
    files: Sequence[Identity] = getattr(source, "identities", ())
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
