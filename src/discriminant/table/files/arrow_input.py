"""Safe reading of Python streams by Arrow, whose own threads read ahead.

Arrow's readers may return, or raise, while their threads still hold blocks of a Python stream. To
release a block such a thread needs the interpreter lock, and if the interpreter exits meanwhile,
the whole process is aborted ("terminate called without an active exception"). `arrow_input`
therefore waits until Arrow has released the stream and every block read from it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

_TIMEOUT = 10.0  # seconds; blocks are released within milliseconds, so this is never reached


@contextmanager
def arrow_input(stream: Any) -> Iterator[Callable[[], Any]]:
    """Provide a stream to one of Arrow's readers, and wait on exit until Arrow has released it.

    Parameters
    ----------
    stream : file-like
        Stream with the method `read`.

    Yields
    ------
    callable
        Function without arguments, whose result is passed to Arrow. Keep no reference to this
        result, nor to a reader that was created from it.
    """
    held: dict[int, weakref.ref[Any]] = {}  # by identity, as equal blocks have equal references
    released = Event()

    def release(reference: weakref.ref[Any]) -> None:
        del held[id(reference)]
        if not held:
            released.set()

    def track(value: Any) -> Any:
        reference = weakref.ref(value, release)
        held[id(reference)] = reference
        return value

    read = stream.read

    def open_input() -> Any:
        # A closure, not a method: the traceback of a read that fails must not keep the handle.
        return track(_Handle(lambda size: track(memoryview(read(size)))))

    try:
        yield open_input
    finally:
        if held:
            released.wait(_TIMEOUT)


class _Handle:
    """File that Arrow reads."""

    closed = False

    def __init__(self, read: Callable[[int], Any]) -> None:
        self.read = read

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        pass
