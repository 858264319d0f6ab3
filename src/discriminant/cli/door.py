"""How a command is run: what it prints where, what an error looks like, which code it ends with.

Results go to stdout, as text or with --json as one JSON object and nothing else; progress, warnings
and errors go to stderr. An error of the input is one message, never a traceback.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from discriminant.errors import DiscriminantError

DONE, BAD_INPUT, NOT_CONVERGED, STOPPED = 0, 2, 3, 130


def run(args: list[str]) -> int:
    """Run what the arguments say; the exit code."""
    import rich_click as click

    from discriminant.cli.commands import cli

    command = shlex.join(["discriminant", *args])
    try:
        with warnings.catch_warnings():  # how they are shown is set by a session
            found = cli.main(args, prog_name="discriminant", standalone_mode=False, obj=command)
        return found if isinstance(found, int) else DONE
    except click.ClickException as fault:
        if "--json" in args:
            _fail_as_json(type(fault).__name__, fault.format_message(), command)
        fault.show(sys.stderr)
        return BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        print("\nStopped.", file=sys.stderr)
        return STOPPED
    except DiscriminantError as fault:
        return _fail(fault, str(fault), command, args)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except MemoryError:
        text = "There is not enough memory for this table. Take fewer rows or columns."
        return _fail(MemoryError(), text, command, args)
    except OSError as fault:
        place = f"{fault.filename}: " if fault.filename else ""
        return _fail(fault, f"{place}{fault.strerror or fault}.", command, args)


def _fail(fault: BaseException, text: str, command: str, args: list[str]) -> int:
    if "--json" in args:
        _fail_as_json(type(fault).__name__, text, command)
    print(f"Error: {visible(text)}\n  in: {visible(command)}", file=sys.stderr)
    return BAD_INPUT


def _fail_as_json(kind: str, text: str, command: str) -> None:
    print(json.dumps({"error": {"kind": kind, "message": text}, "command": command}))


def visible(text: str) -> str:
    """Text that cannot play tricks on a terminal: controls by their code points.

    >>> visible("a\\x1b[2Jb")
    'a⟨U+001B⟩[2Jb'
    """
    return "".join(c if c in "\n\t" or c.isprintable() else f"⟨U+{ord(c):04X}⟩" for c in text)


@dataclass
class Session:
    """One run of a command."""

    command: str
    as_json: bool = False
    quiet: bool = False
    seed: int | None = None
    started: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        warnings.showwarning = self._warned

    def tell(
        self, found: Mapping[str, Any], text: str, *, written: Mapping[str, Any] | None = None
    ) -> None:
        """Print a result, and the line that makes it again."""
        from discriminant.report.facts import plain
        from discriminant.study.telling import versions

        files = {name: str(path) for name, path in (written or {}).items() if path is not None}
        if self.as_json:
            made = {"version": versions(), "seed": self.seed, "command": self.command}
            whole = {**found, "written": files, "made": made}
            print(json.dumps(plain(whole), indent=1, allow_nan=False))
            return
        lines = [text.rstrip(), *(f"Written: {path} ({name})" for name, path in files.items())]
        seed = "" if self.seed is None else f", seed {self.seed}"
        again = f"Made by discriminant {versions()}{seed}: {self.command}"
        print(visible("\n".join([*filter(None, lines), "", again])))

    def say(self, text: str) -> None:
        """A line about the work under way."""
        if not self.quiet:
            print(visible(text), file=sys.stderr, flush=True)

    def warn(self, found: object) -> None:
        """A warning."""
        print(f"Warning: {visible(str(found))}", file=sys.stderr)

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
            self.session.say(f"[{done + 1}/{of}] {what}" if of > 1 else f"{what} ...")
