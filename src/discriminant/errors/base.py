"""The roots of all errors and warnings, and how they are told."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import ParamSpec, TypeVar

from discriminant.redaction import redact

P = ParamSpec("P")
R = TypeVar("R")

_NOT_THE_USER = (__name__.partition(".")[0] + ".", "sklearn.", "contextlib", "concurrent.")


class DiscriminantError(Exception):
    """Root of everything this package raises on purpose. Its text shows no registered secret."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(redact(arg) if isinstance(arg, str) else arg for arg in args))


class InputError(DiscriminantError, ValueError):
    """The rows, labels, weights or options handed in cannot be used."""


class DiscriminantWarning(UserWarning):
    """Root of everything this package warns of. Its text shows no registered secret."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(redact(arg) if isinstance(arg, str) else arg for arg in args))


_HELD: ContextVar[list[Warning] | None] = ContextVar("warnings held back", default=None)


def warn(warning: Warning) -> None:
    """Warn at the line of the user's own code, however deep in the package it was noticed."""
    held = _HELD.get()
    if held is not None:
        held.append(warning)
        return
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_NOT_THE_USER):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


@contextmanager
def merge_warnings() -> Iterator[None]:
    """Tell our warnings of one kind once: the first, and how many others there were.

    They are held in a variable of the thread: Python's own filters belong to the whole process.
    Inside another, the outer one tells.
    """
    if _HELD.get() is not None:
        yield
        return
    held: list[Warning] = []
    token = _HELD.set(held)
    try:
        yield
    finally:
        _HELD.reset(token)
    for found in _merged(held):
        warn(found)


@contextmanager
def capture_warnings() -> Iterator[list[Warning]]:
    """Keep our warnings instead of telling them: in the list, once it is over, one of each kind."""
    held: list[Warning] = []
    found: list[Warning] = []
    token = _HELD.set(held)
    try:
        yield found
    finally:
        _HELD.reset(token)
        found += _merged(held)


def _merged(held: Sequence[Warning]) -> list[Warning]:
    """The first of each kind, and how many others there were."""
    kinds: dict[type[Warning], dict[str, None]] = {}
    for found in held:
        kinds.setdefault(type(found), {})[str(found)] = None
    merged = []
    for kind, texts in kinds.items():
        first, more = next(iter(texts)), len(texts) - 1
        merged.append(
            kind(f"{first} (And {more} more warning(s) of this kind.)" if more else first)
        )
    return merged


@contextmanager
def add_context(of: str) -> Iterator[None]:
    """Add to all that is told inside, errors and warnings, what it is said of."""
    held: list[Warning] = []
    token = _HELD.set(held)
    try:
        yield
    except DiscriminantError as fault:
        raise type(fault)(f"{fault} {of}") from fault
    finally:
        _HELD.reset(token)
    for found in held:
        warn(type(found)(f"{found} {of}"))


def in_thread(work: Callable[P, R]) -> Callable[P, R]:
    """The same work for another thread, whose warnings are gathered with those of this one."""
    held = _HELD.get()

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        token = _HELD.set(held)
        try:
            return work(*args, **kwargs)
        finally:
            _HELD.reset(token)

    return run


def quote_names(names: Sequence[object], most: int = 5) -> str:
    """Names in quotes, the first few of them.

    >>> quote_names(["a", "b"])
    "'a', 'b'"
    >>> quote_names(range(7), most=2)
    "'0', '1' and 5 more"
    """
    shown = ", ".join(f"'{name}'" for name in list(names)[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
