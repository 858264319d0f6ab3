"""Control of warnings: issue, merge and capture the warnings of the package.

Inside `merge_warnings`, `capture_warnings` and `add_context`, warnings are collected in a context
variable and not by Python's warning filters, because the filters belong to the whole process and
the variable belongs to one thread.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import ParamSpec, TypeVar

from discriminant.errors.base import DiscriminantError

P = ParamSpec("P")
R = TypeVar("R")

_LIBRARY_MODULES = (__name__.partition(".")[0] + ".", "sklearn.", "contextlib", "concurrent.")
_COLLECTED: ContextVar[list[Warning] | None] = ContextVar("collected warnings", default=None)


def warn(warning: Warning) -> None:
    """Issue a warning that points to the line of the user's code that called this package."""
    collected = _COLLECTED.get()
    if collected is not None:
        collected.append(warning)
        return
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_LIBRARY_MODULES):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


@contextmanager
def merge_warnings() -> Iterator[None]:
    """Merge the warnings raised inside: issue the first of each class, with a count of the other
    warnings of the class.

    If such blocks are nested (`merge_warnings` or `capture_warnings`), only the outermost block
    merges.
    """
    if _COLLECTED.get() is not None:
        yield
        return
    with _collect_warnings() as collected:
        yield
    for warning in _merge(collected):
        warn(warning)


@contextmanager
def capture_warnings() -> Iterator[list[Warning]]:
    """Capture the warnings raised inside; on exit the list holds one warning of each class."""
    merged: list[Warning] = []
    collected: list[Warning] = []
    try:
        with _collect_warnings() as collected:
            yield merged
    finally:
        merged += _merge(collected)


@contextmanager
def add_context(context: str) -> Iterator[None]:
    """Append a sentence to every error and warning raised inside."""
    try:
        with _collect_warnings() as collected:
            yield
    except DiscriminantError as error:
        raise type(error)(f"{error} {context}") from error
    for warning in collected:
        warn(type(warning)(f"{warning} {context}"))


def in_thread(work: Callable[P, R]) -> Callable[P, R]:
    """Return `work` for use in another thread.

    Warnings of `work` are collected together with the warnings of this thread.
    """
    collected = _COLLECTED.get()

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        token = _COLLECTED.set(collected)
        try:
            return work(*args, **kwargs)
        finally:
            _COLLECTED.reset(token)

    return run


@contextmanager
def _collect_warnings() -> Iterator[list[Warning]]:
    collected: list[Warning] = []
    token = _COLLECTED.set(collected)
    try:
        yield collected
    finally:
        _COLLECTED.reset(token)


def _merge(collected: Sequence[Warning]) -> list[Warning]:
    """Return one warning of each class: the first, with a count of the other texts."""
    texts: dict[type[Warning], dict[str, None]] = {}
    for warning in collected:
        texts.setdefault(type(warning), {})[str(warning)] = None
    merged = []
    for category, distinct in texts.items():
        first, more = next(iter(distinct)), len(distinct) - 1
        merged.append(
            category(f"{first} (And {more} more warning(s) of this kind.)" if more else first)
        )
    return merged
