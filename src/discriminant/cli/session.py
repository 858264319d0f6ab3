"""How a command is run: what it prints where, what an error looks like, which code it ends with.

Results go to stdout, as text or with --json as one JSON object and nothing else; progress, warnings
and errors go to stderr. An error of the input is one message, never a traceback.

A command that is stopped (Ctrl-C, SIGTERM, a terminal that is closed) ends with 128 + the number of
the signal, and says which of its files are new and which are as they were: none is half written.

Messages speak of options as Python has them; here they become those of the command line.

>>> in_options("Name it in missing_texts, or drop such rows with missing='drop' (--missing drop).")
'Name it with --missing-text, or drop such rows with --missing drop.'
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from discriminant.engines.memory_limit import available_threads, memory_limit, ran_out
from discriminant.redaction import masked, redact, register

if TYPE_CHECKING:
    from discriminant.errors import DiscriminantError


_SAID = (
    (r"--unseen count\b", "--unknown count"),  # of classes, when a model is assessed
    (r"\b(categories|exclude|columns|ordered)=\[('[^']*')\]", r"--\1 \2"),
    (r"\bcolumns=\[\.\.\.\]", "--columns"),
    (r"\bpass pushdown=False\b", "leave --pushdown out"),
    (r"\bpushdown=True\b", "--pushdown"),
    (r"\breference=None\b", "--reference none"),
    (r"\b(max_levels|max_classes|max_bytes|folds|seed|engine)=(?=[\w'-])", r"--\1 "),
    (r"\b(exclude|ordered|delimiter|decimal|encoding)='(?=[^']*' is not possible)", r"--\1 '"),
    (r"\bengine= out\b", "--engine out"),
    (r"\bin (missing_texts|categories|exclude|columns)\b=?", r"with --\1"),
    (r"(?<![\w'-])(missing_texts|max_levels|max_classes|max_bytes)\b(?!')", r"--\1"),
    (r"\bor in exclude\b", "or with --exclude"),
    (r": moments\.select\(\[\.\.\.\]\)", ": --exclude"),
    (r" ?\(moments\.select\(\[\.\.\.\]\)\)", " (--exclude)"),
    (r"Pass bias_reduction=\"jeffreys\" \(Firth\) or ridge > 0", "Take --model logistic"),
    (r"\bUse LinearRegression\b", "In Python, LinearRegression fits it"),
    (r"write '\.'\.", "write '.', or say --decimal ,"),
    (r"\b(thousands|decimal)='(.)'", r"--\1 \2"),
)
_NAMES = {
    "--missing_texts": "--missing-text",
    "--categories": "--category",
    "--columns": "--column",
    "--max_levels": "--max-levels",
    "--max_classes": "--max-classes",
    "--max_bytes": "--max-bytes",
}
_CHOICES = re.compile(  # missing='mean', 'indicator' or 'marginal'
    r"\b(missing|unseen|reference)=('\w+'(?:, '\w+')*(?:,? or '\w+')?)"
)
_TWICE = re.compile(r"(--[\w-]+(?: [\w']+)?) \(\1\)")


_ANSWERING = (  # what a fitted model leaves to choose
    (r", or name the column with --category if it is no number, or with --exclude\.", "."),
    (r"\bor fit with --unseen\b", "or pass --unseen"),
    (r"\bor fit with --missing\b", "or fit the model again with --missing"),
)


def in_options(text: str, *, command: str = "") -> str:
    """The same message for whoever sits at a command line, and has the options of a command.

    >>> in_options("Correct it, or fit with unseen='ignore'.", command="predict")
    'Correct it, or pass --unseen ignore.'
    """
    text = _CHOICES.sub(lambda found: f"--{found[1]} {found[2].replace(chr(39), '')}", text)
    for pattern, instead in _SAID:
        text = re.sub(pattern, instead, text)
    for name, option in _NAMES.items():
        text = text.replace(name, option)
    for pattern, instead in _ANSWERING if command == "predict" else ():
        text = re.sub(pattern, instead, text)
    return _TWICE.sub(r"\1", text)


DONE, UNFORESEEN, BAD_INPUT, NOT_CONVERGED = 0, 1, 2, 3
_LONGEST = 2000  # characters of a command that an error repeats
_EVERY = 10.0  # seconds between two lines about one step
_GONE_AWAY = ("DatabaseError", "EngineError")  # after which the same command may go on
_STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")  # not every system has them all
_CRASHES = ("SIGABRT", "SIGBUS", "SIGILL", "SIGSEGV", "SIGTRAP")  # as native code ends

_places: dict[str, object] = {}  # files that the command is to write, and how they were before


class Stopped(BaseException):
    """A signal has asked for the end. It passes through all that tidies up."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def stop_tidily() -> None:
    """From now on a signal to stop is `Stopped`; a second one is as it ever was."""
    numbers = [getattr(signal, name) for name in _STOPPING if hasattr(signal, name)]
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        for other in heard:
            signal.signal(other, signal.SIG_DFL)
        raise Stopped(number)

    for number in heard:
        signal.signal(number, stop)


def watch(place: Any) -> None:
    """Remember how a file is before it is written, to tell afterwards whether it was."""
    _places[os.fspath(place)] = _state(place)


def _instead(place: Any) -> str:
    """What is said of a file that was there before."""
    return ", in place of the one that was there" if _places.get(os.fspath(place)) else ""


def _state(place: Any) -> object:
    try:
        found = os.stat(place)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def run(args: list[str], *, limited: bool = False) -> int:
    """Run what the arguments say; the exit code. `limited`: little address space is left."""
    command = _shown(args)
    _places.clear()
    with redirect_stdout(_redacted(sys.stdout)), redirect_stderr(_redacted(sys.stderr)):
        try:
            return _run(args, command, limited=limited)
        except Stopped as fault:
            return _stopped(fault.number, command, args)


class RedactedStream:
    """Standard output or error, on which no registered secret is written."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text without secrets."""
        self._stream.write(redact(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write some texts without secrets."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _redacted(stream: Any) -> Any:
    return stream if isinstance(stream, RedactedStream) else RedactedStream(stream)


def _value(arg: str) -> tuple[str, str]:
    """The name of an option with its '=', which may be empty, and the value."""
    name, equals, value = arg.partition("=")
    return (name + equals, value) if equals and name.startswith("--") else ("", arg)


def _shown_argument(arg: str) -> str:
    """An argument without secrets.

    >>> _shown_argument("--query=SELECT * FROM postgres_scan('password=x')")
    "--query=SELECT * FROM postgres_scan('password=***')"
    """
    name, value = _value(arg)
    return name + masked(value)


def run_in_limit(args: list[str], limit: int) -> int:
    """Run what the arguments say in a child process, whose address space is limited."""
    from discriminant.cli.supervision import supervise
    from discriminant.engines.memory_limit import REQUIRED
    from discriminant.errors import OutOfMemoryError

    def work() -> int:
        stop_tidily()
        return run(args, limited=True)

    command = _shown(args)
    if limit < REQUIRED:
        refusal = OutOfMemoryError.limit_too_low(limit, REQUIRED)
        return _fail(refusal, str(refusal), command, args)
    outcome = supervise(work)
    if outcome.code is not None:
        return outcome.code
    if outcome.passed_on is not None:
        return _stopped(outcome.passed_on, command, args)
    if outcome.signal is not None and outcome.signal.name not in _CRASHES:
        return _stopped(outcome.signal, command, args)
    cause = "exit" if outcome.signal is None else outcome.signal.name
    refusal = OutOfMemoryError.ended_by(cause, limit)
    return _fail(refusal, str(refusal), command, args)


def _shown(args: list[str]) -> str:
    """The command as it is printed; its secrets are registered and appear in no other output."""
    register(*(_value(arg)[1] for arg in args))
    return shlex.join(["discriminant", *map(_shown_argument, args)])


def _run(args: list[str], command: str, *, limited: bool) -> int:
    import rich_click as click

    from discriminant.cli.commands import cli

    try:
        if limited:
            from discriminant.engines.threads import reserve_buffers

            reserve_buffers(available_threads() + 1)  # the threads of a pool, and the main thread
        with warnings.catch_warnings():  # how they are shown is set by a session
            found = cli.main(args, prog_name="discriminant", standalone_mode=False, obj=command)
        return found if isinstance(found, int) else DONE
    except click.ClickException as fault:
        vars(fault)["message"] = redact(fault.message)  # before it is wrapped into lines
        if "--json" in args:
            _fail_as_json(type(fault).__name__, fault.format_message(), command)
            if _one_screen():
                return BAD_INPUT
        fault.show(sys.stderr)
        return BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        return _stopped(signal.SIGINT, command, args)
    except _our_own() as fault:
        kept = f" {_goes_on(args)}" if type(fault).__name__ in _GONE_AWAY else ""
        told = in_options(str(fault), command="".join(args[:1]))
        return _fail(fault, told + kept.rstrip(), command, args)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as fault:
        if ran_out(fault):
            from discriminant.errors import OutOfMemoryError

            shortage = OutOfMemoryError.while_running(memory_limit())
            return _fail(shortage, str(shortage), command, args)
        if not isinstance(fault, OSError):
            return _unforeseen(fault, command, args)
        place = f"{fault.filename}: " if fault.filename else ""
        return _fail(fault, f"{place}{fault.strerror or fault}.", command, args)


def _our_own() -> type[DiscriminantError]:
    """Errors that are messages, imported once there is an error: `--help` does without them."""
    from discriminant.errors import DiscriminantError

    return DiscriminantError


def _fail(fault: BaseException, text: str, command: str, args: list[str]) -> int:
    if "--json" in args:
        _fail_as_json(type(fault).__name__, text, command)
        if _one_screen():
            return BAD_INPUT
    shown = command if len(command) <= _LONGEST else f"{command[:_LONGEST]}..."
    print(f"Error: {visible(text)}\n  in: {inline(shown)}", file=sys.stderr)
    return BAD_INPUT


def _one_screen() -> bool:
    """Whether one person reads both stdout and stderr, and need not read an error twice."""
    return sys.stdout.isatty() and sys.stderr.isatty()


def _unforeseen(fault: Exception, command: str, args: list[str]) -> int:
    """A mistake of ours: the only error with a traceback, for whoever mends it."""
    text = (
        f"This should not have happened, and is a mistake in discriminant: {type(fault).__name__}: "
        f"{fault}. Please report it with the lines above."
    )
    traceback.print_exception(fault)
    _fail(fault, text, command, args)
    return UNFORESEEN


def _stopped(number: int, command: str, args: list[str]) -> int:
    new = [place for place, before in _places.items() if _state(place) != before]
    old = [place for place, before in _places.items() if place not in new and before is not None]
    none = [place for place in _places if place not in new and place not in old]
    told = f"Stopped by {signal.Signals(number).name}; no file is half written."
    told += f" Written: {', '.join(new)}." if new else ""
    told += f" As before: {', '.join(old)}." if old else ""
    told += f" Not written: {', '.join(none)}." if none else ""
    told += f" {_goes_on(args)}" if _goes_on(args) else ""
    with suppress(OSError):  # a terminal that is closed
        if "--json" in args:
            _fail_as_json("Stopped", told, command)
        print(f"\n{inline(told)}\n  again: {inline(command)}", file=sys.stderr, flush=True)
    return 128 + number


def _goes_on(args: list[str]) -> str:
    """Where the sums of a run with a checkpoint are kept, if there are any."""
    given = dict(pairwise(args))
    given |= {name: value for name, mark, value in (one.partition("=") for one in args) if mark}
    place = given.get("--checkpoint")
    if place is None:
        return ""
    if not os.path.isdir(place) or not os.listdir(place):
        return f"No sums are kept in {place} yet: the same command begins anew."
    return f"What was done is kept in {place}: the same command goes on there."


def _fail_as_json(kind: str, text: str, command: str) -> None:
    print(json.dumps({"error": {"kind": kind, "message": text}, "command": command}))


def visible(text: str) -> str:
    """Text that cannot play tricks on a terminal: controls by their code points.

    >>> visible("a\\x1b[2Jb")
    'a⟨U+001B⟩[2Jb'
    """
    return "".join(c if c in "\n\t" or c.isprintable() else f"⟨U+{ord(c):04X}⟩" for c in text)


def inline(text: str) -> str:
    """The same within a line: a name with a line end in it cannot pass for a line of ours.

    >>> inline("a\\nb")
    'a⟨U+000A⟩b'
    """
    return visible(text).replace("\n", "⟨U+000A⟩")


@dataclass
class Session:
    """One run of a command."""

    command: str
    as_json: bool = False
    quiet: bool = False
    seed: int | None = None
    started: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        from discriminant.errors import DiscriminantWarning

        warnings.showwarning = self._warned
        warnings.simplefilter("always", DiscriminantWarning)

    def tell(
        self, found: Mapping[str, Any], text: str, *, written: Mapping[str, Any] | None = None
    ) -> None:
        """Print a result, and the line that makes it again."""
        from discriminant.report.fact_types import plain
        from discriminant.study.report import versions

        files = {name: str(path) for name, path in (written or {}).items() if path is not None}
        if self.as_json:
            made = {"version": versions(), "seed": self.seed, "command": self.command}
            whole = {**found, "written": files, "made": made}
            print(json.dumps(plain(whole), indent=1, allow_nan=False))
            return
        lines = [
            text.rstrip(),
            *(f"Written: {inline(path)} ({name}){_instead(path)}" for name, path in files.items()),
        ]
        seed = "" if self.seed is None else f", seed {self.seed}"
        again = f"Made by discriminant {versions()}{seed}: {inline(self.command)}"
        print(visible("\n".join([*filter(None, lines), "", again])))

    def say(self, text: str) -> None:
        """A line about the work under way."""
        if not self.quiet:
            print(visible(in_options(text)), file=sys.stderr, flush=True)

    def warn(self, found: object) -> None:
        """A warning."""
        print(f"Warning: {visible(in_options(str(found)))}", file=sys.stderr)

    def progress(self) -> Progress:
        """What shows the work of a study."""
        return Progress(self)

    def _warned(self, message: Any, *_: Any, **__: Any) -> None:
        self.warn(message)


class Progress:
    """A bar on a terminal, plain lines elsewhere."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._bar: Any = None
        self._task: Any = None
        self._said = time.monotonic()

    def __enter__(self) -> Callable[[str, int, int], None]:
        if sys.stderr.isatty() and not self.session.quiet:
            from rich.console import Console
            from rich.progress import BarColumn, Progress as Bar, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("reading", total=None)
        return self._show

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _show(self, what: str, done: int, of: int) -> None:
        if self._bar is not None:
            steps = {} if done < 0 else {"completed": done, "total": of if of > 1 else None}
            self._bar.update(self._task, description=visible(what), **steps)
        elif done >= 0 and what != "done":
            self._said = time.monotonic()
            self.session.say(f"[{done + 1}/{of}] {what}" if of > 1 else f"{what} ...")
        elif done < 0 and time.monotonic() - self._said > _EVERY:
            self._said = time.monotonic()
            self.session.say(what)
