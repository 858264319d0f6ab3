"""Run a command: exit codes, signals and error messages.

Errors are printed to stderr, and with --json also to stdout as a JSON object. An error in the input
is printed as one message, never as a traceback.

A command that is interrupted (Ctrl-C, SIGTERM, a closed terminal) exits with 128 + the number of
the signal. It lists which of its output files are new and which are unchanged; no file is
incomplete.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import traceback
import warnings
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout, suppress
from itertools import pairwise
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from discriminant.cli.session import (
    BAD_INPUT,
    DONE,
    INTERNAL_ERROR,
    forget_outputs,
    in_options,
    inline,
    output_states,
    visible,
)
from discriminant.engines.available_memory import available_threads, memory_limit, ran_out_of_memory
from discriminant.redaction import masked, redact, register

if TYPE_CHECKING:
    from discriminant.errors import DiscriminantError

_SHOWN_LENGTH = 2000  # largest number of characters of a command that an error message repeats
# errors after which the same command may succeed later
_RESUMABLE = ("DatabaseError", "EngineError")
_STOP_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # signals; not every system has all of them
_CRASHES = (
    "SIGABRT",
    "SIGBUS",
    "SIGILL",
    "SIGSEGV",
    "SIGTRAP",
)  # exceptions raised when native code crashes


class Stopped(BaseException):
    """Raised by a signal that asks the command to stop, so that clean-up code runs."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def raise_on_signals() -> None:
    """Raise `Stopped` on the first signal that asks to stop. A second signal ends the process."""
    numbers = [getattr(signal, name) for name in _STOP_SIGNALS if hasattr(signal, name)]
    handled = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        for other in handled:
            signal.signal(other, signal.SIG_DFL)
        raise Stopped(number)

    for number in handled:
        signal.signal(number, stop)


def run(args: list[str], *, limited: bool = False) -> int:
    """Run a command line and return its exit code.

    If `limited`, the address space is limited, and the buffers of BLAS are reserved first.
    """
    command = _shown(args)
    forget_outputs()
    with (
        redirect_stdout(_redacted_stream(sys.stdout)),
        redirect_stderr(_redacted_stream(sys.stderr)),
    ):
        try:
            return _run(args, command, limited=limited)
        except Stopped as fault:
            return _stopped(fault.number, command, args)


class RedactedStream:
    """Standard output or error stream that masks registered secrets."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text with its secrets masked."""
        self._stream.write(redact(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts with their secrets masked."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _redacted_stream(stream: Any) -> Any:
    return stream if isinstance(stream, RedactedStream) else RedactedStream(stream)


def _split_argument(arg: str) -> tuple[str, str]:
    """Return the name of an option with its '=', and its value.

    For other arguments the name is empty.
    """
    name, equals, value = arg.partition("=")
    return (name + equals, value) if equals and name.startswith("--") else ("", arg)


def _shown_argument(arg: str) -> str:
    """Return an argument with its secrets masked.

    >>> _shown_argument("--query=SELECT * FROM postgres_scan('password=x')")
    "--query=SELECT * FROM postgres_scan('password=***')"
    """
    name, value = _split_argument(arg)
    return name + masked(value)


def run_supervised(args: list[str], limit: int) -> int:
    """Run a command line in a child process, because the address space is limited."""
    from discriminant.cli.memory_limited_process import supervise
    from discriminant.engines.available_memory import REQUIRED
    from discriminant.errors import OutOfMemoryError

    def work() -> int:
        raise_on_signals()
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
    """Return the command with its secrets masked, and register the secrets, to mask them in all
    output.
    """
    register(*(_split_argument(arg)[1] for arg in args))
    return shlex.join(["discriminant", *map(_shown_argument, args)])


def _run(args: list[str], command: str, *, limited: bool) -> int:
    import rich_click as click

    from discriminant.cli.commands import cli

    try:
        if limited:
            from discriminant.engines.threads import reserve_blas_buffers

            reserve_blas_buffers(available_threads() + 1)  # threads of a pool, and the main thread
        with warnings.catch_warnings():  # a Session changes how warnings are shown
            code = cli.main(args, prog_name="discriminant", standalone_mode=False, obj=command)
        return code if isinstance(code, int) else DONE
    except click.ClickException as fault:
        # redact before the text is wrapped into lines
        vars(fault)["message"] = redact(fault.message)
        if "--json" in args:
            _fail_as_json(type(fault).__name__, fault.format_message(), command)
            if _is_one_terminal():
                return BAD_INPUT
        fault.show(sys.stderr)
        return BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        return _stopped(signal.SIGINT, command, args)
    except _package_error() as fault:
        hint = f" {_resume_hint(args)}" if type(fault).__name__ in _RESUMABLE else ""
        message = in_options(str(fault), command="".join(args[:1]))
        return _fail(fault, message + hint.rstrip(), command, args)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as fault:
        if ran_out_of_memory(fault):
            from discriminant.errors import OutOfMemoryError

            shortage = OutOfMemoryError.while_running(memory_limit())
            return _fail(shortage, str(shortage), command, args)
        if not isinstance(fault, OSError):
            return _internal_error(fault, command, args)
        place = f"{fault.filename}: " if fault.filename else ""
        return _fail(fault, f"{place}{fault.strerror or fault}.", command, args)


def _package_error() -> type[DiscriminantError]:
    """Return the base class of our errors.

    The class is imported only after an error, so that `--help` stays fast.
    """
    from discriminant.errors import DiscriminantError

    return DiscriminantError


def _fail(fault: BaseException, text: str, command: str, args: list[str]) -> int:
    if "--json" in args:
        _fail_as_json(type(fault).__name__, text, command)
        if _is_one_terminal():
            return BAD_INPUT
    shown = command if len(command) <= _SHOWN_LENGTH else f"{command[:_SHOWN_LENGTH]}..."
    print(f"Error: {visible(text)}\n  in: {inline(shown)}", file=sys.stderr)
    return BAD_INPUT


def _is_one_terminal() -> bool:
    """Whether stdout and stderr are the same terminal: then an error is printed only once."""
    return sys.stdout.isatty() and sys.stderr.isatty()


def _internal_error(fault: Exception, command: str, args: list[str]) -> int:
    """Report a bug in this package: the only error with a traceback."""
    text = (
        f"This is a bug in discriminant: {type(fault).__name__}: {fault}. Please report it with "
        "the traceback above."
    )
    traceback.print_exception(fault)
    _fail(fault, text, command, args)
    return INTERNAL_ERROR


def _stopped(number: int, command: str, args: list[str]) -> int:
    written, unchanged, absent = output_states()
    message = f"Stopped by {signal.Signals(number).name}; no file is half written."
    message += f" Written: {', '.join(written)}." if written else ""
    message += f" Unchanged: {', '.join(unchanged)}." if unchanged else ""
    message += f" Not written: {', '.join(absent)}." if absent else ""
    message += f" {_resume_hint(args)}" if _resume_hint(args) else ""
    with suppress(OSError):  # the terminal may be closed
        if "--json" in args:
            _fail_as_json("Stopped", message, command)
        print(f"\n{inline(message)}\n  rerun: {inline(command)}", file=sys.stderr, flush=True)
    return 128 + number


def _resume_hint(args: list[str]) -> str:
    """Return a sentence that says whether the same command would resume; '' without checkpoint."""
    options = dict(pairwise(args))
    options |= {name: value for name, mark, value in (arg.partition("=") for arg in args) if mark}
    folder = options.get("--checkpoint")
    if folder is None:
        return ""
    if not os.path.isdir(folder) or not os.listdir(folder):
        return f"Checkpoint {folder} has no intermediate results yet: the same command starts over."
    return f"Intermediate results are in {folder}: rerun the same command to resume."


def _fail_as_json(kind: str, text: str, command: str) -> None:
    print(json.dumps({"error": {"kind": kind, "message": text}, "command": command}))
