"""Session of a command: its results, progress and warnings, and the files it writes.

Results go to stdout, as text or, with --json, as one JSON object and nothing else. Progress and
warnings go to stderr. Messages name options as in Python; this module rewrites them as options of
the command line:

>>> in_options("Name it in missing_texts, or drop such rows with missing='drop' (--missing drop).")
'Name it with --missing-text, or drop such rows with --missing drop.'
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

DONE, INTERNAL_ERROR, BAD_INPUT, NOT_CONVERGED = 0, 1, 2, 3  # exit codes
_LOG_SECONDS = 10.0  # seconds between two lines about one step

_SHRUNK = "Use --model lda_shrunk or --model rda"
_REWRITES = (
    # this option applies to unknown classes when a model is assessed
    (r"--unseen count\b", "--unknown count"),
    (r"\b(categories|exclude|columns|ordered)=\[('[^']*')\]", r"--\1 \2"),
    (r"\bcolumns=\[\.\.\.\]", "--columns"),
    (r"\bpass pushdown=False\b", "leave --pushdown out"),
    (r"\bpushdown=True\b", "--pushdown"),
    (r"\breference=None\b", "--reference none"),
    (r"\b(max_levels|max_classes|max_bytes|folds|seed|engine)=(?=[\w'-])", r"--\1 "),
    (r"\b(exclude|ordered|delimiter|decimal|encoding)='(?=[^']*' is not valid)", r"--\1 '"),
    (r"\bengine= out\b", "--engine out"),
    (r"\bin (missing_texts|categories|exclude|columns)\b=?", r"with --\1"),
    (r"(?<![\w'-])(missing_texts|max_levels|max_classes|max_bytes)\b(?!')", r"--\1"),
    (r"\bor in exclude\b", "or with --exclude"),
    (r"(?<=with --categories) or exclude\b", " or --exclude"),
    (r"\bPass ridge > 0\b", "Use --model logistic, which has a small penalty"),
    (r"\bpass ridge > 0\b", "use --model logistic, which has a small penalty"),
    (r"\bPass shrinkage='auto', use RDA\(pooling='cv', shrinkage='cv'\)", _SHRUNK),
    (r"\bPass shrinkage(='auto'| > 0)", "Use --model lda_shrunk"),
    (r"\bpass shrinkage(='auto'| > 0)", "use --model lda_shrunk"),
    (r": moments\.select\(\[\.\.\.\]\)", ": --exclude"),
    (r" ?\(moments\.select\(\[\.\.\.\]\)\)", " (--exclude)"),
    (r"Pass bias_reduction=\"jeffreys\" \(Firth\) or ridge > 0", "Use --model logistic"),
    (r"\bUse LinearRegression\b", "In Python, LinearRegression fits it"),
    (r"write '\.'\.", "write '.', or pass --decimal ,."),
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
_CHOICES = re.compile(  # matches, for example: missing='mean', 'indicator' or 'marginal'
    r"\b(missing|unseen|reference)=('\w+'(?:, '\w+')*(?:,? or '\w+')?)"
)
_TWICE = re.compile(r"(--[\w-]+(?: [\w']+)?) \(\1\)")


_PREDICT_REWRITES = (  # options that can still be set after a model is fitted
    (r", or list the column with --category if it is not a number, or with --exclude\.", "."),
    (r"\bor fit with --unseen\b", "or pass --unseen"),
    (r"\bor fit with --missing\b", "or fit the model again with --missing"),
)


def in_options(text: str, *, command: str = "") -> str:
    """Rewrite the Python option names in a message as options of the command line.

    >>> in_options("Correct it, or fit with unseen='ignore'.", command="predict")
    'Correct it, or pass --unseen ignore.'
    """
    text = _CHOICES.sub(lambda match: f"--{match[1]} {match[2].replace(chr(39), '')}", text)
    for pattern, replacement in _REWRITES:
        text = re.sub(pattern, replacement, text)
    for name, option in _NAMES.items():
        text = text.replace(name, option)
    for pattern, replacement in _PREDICT_REWRITES if command == "predict" else ():
        text = re.sub(pattern, replacement, text)
    return _TWICE.sub(r"\1", text)


_outputs: dict[str, object] = {}  # files that the command writes, with their state before


def track_output(path: Any) -> None:
    """Record the state of a file before the command writes it."""
    _outputs[os.fspath(path)] = _state(path)


def forget_outputs() -> None:
    """Forget all tracked files."""
    _outputs.clear()


def output_states() -> tuple[list[str], list[str], list[str]]:
    """Return three lists of the tracked files: written, unchanged, and not existing."""
    written = [path for path, before in _outputs.items() if _state(path) != before]
    rest = {path: before for path, before in _outputs.items() if path not in written}
    unchanged = [path for path, before in rest.items() if before is not None]
    return written, unchanged, [path for path in rest if path not in unchanged]


def _replaced(path: Any) -> str:
    return ", replacing the previous file" if _outputs.get(os.fspath(path)) else ""


def _state(path: Any) -> object:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def visible(text: str) -> str:
    """Replace control characters, which a terminal would execute, by their code points.

    >>> visible("a\\x1b[2Jb")
    'a⟨U+001B⟩[2Jb'
    """
    return "".join(c if c in "\n\t" or c.isprintable() else f"⟨U+{ord(c):04X}⟩" for c in text)


def inline(text: str) -> str:
    """Replace control characters and line breaks by their code points, for a single line.

    >>> inline("a\\nb")
    'a⟨U+000A⟩b'
    """
    return visible(text).replace("\n", "⟨U+000A⟩")


@dataclass
class Session:
    """One run of a command: where its results, progress and warnings go."""

    command: str
    as_json: bool = False
    quiet: bool = False
    seed: int | None = None
    started: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        from discriminant.errors import DiscriminantWarning

        warnings.showwarning = self._show_warning
        warnings.simplefilter("always", DiscriminantWarning)

    def result(
        self, facts: Mapping[str, Any], text: str, *, written: Mapping[str, Any] | None = None
    ) -> None:
        """Print a result, the files written, and the command that reproduces the result."""
        from discriminant.report.fact_types import plain
        from discriminant.study.report import versions

        files = {name: str(path) for name, path in (written or {}).items() if path is not None}
        if self.as_json:
            provenance = {"version": versions(), "seed": self.seed, "command": self.command}
            provenance = {**facts.get("made", {}), **provenance}
            output = {**facts, "written": files, "made": provenance}
            print(json.dumps(plain(output), indent=1, allow_nan=False))
            return
        lines = [
            text.rstrip(),
            *(f"Written: {inline(path)} ({name}){_replaced(path)}" for name, path in files.items()),
        ]
        seed = "" if self.seed is None else f", seed {self.seed}"
        reproduce = f"Reproduce (discriminant {versions()}{seed}): {inline(self.command)}"
        print(visible("\n".join([*filter(None, lines), "", reproduce])))

    def log(self, text: str) -> None:
        """Print a line about work in progress to stderr."""
        if not self.quiet:
            print(visible(in_options(text)), file=sys.stderr, flush=True)

    def warn(self, warning: object) -> None:
        """Print a warning to stderr."""
        print(f"Warning: {visible(in_options(str(warning)))}", file=sys.stderr)

    def progress(self) -> Progress:
        """Return a context manager; its value is a callback for the progress of the work."""
        return Progress(self)

    def _show_warning(self, message: Any, *_: Any, **__: Any) -> None:
        self.warn(message)


class Progress:
    """Progress display: a bar on a terminal, plain lines elsewhere."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._bar: Any = None
        self._task: Any = None
        self._logged = self._started = time.monotonic()

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

    # `done` is negative: no step was completed
    def _show(self, what: str, done: int, of: int) -> None:
        if self._bar is not None:
            steps = {} if done < 0 else {"completed": done, "total": of if of > 1 else None}
            self._bar.update(self._task, description=visible(what), **steps)
        elif done >= 0 and what != "done":
            self._logged = time.monotonic()
            self.session.log(self._step(what, done, of) if of > 1 else f"{what} ...")
        elif done < 0 and time.monotonic() - self._logged > _LOG_SECONDS:
            self._logged = time.monotonic()
            self.session.log(what)

    def _step(self, what: str, done: int, of: int) -> str:
        """Return the progress message of a step, with an estimate of the time left."""
        if not done:
            self._started = time.monotonic()
            return f"[1/{of}] {what}"
        from discriminant.report.format import duration

        left = (time.monotonic() - self._started) / done * (of - done)
        return f"[{done + 1}/{of}] {what} (about {duration(left)} left)"
