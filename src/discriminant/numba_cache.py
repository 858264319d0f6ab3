"""Loops that are compiled when they are first called, and kept on disk for the next process.

Numba keeps a compiled loop beside the file of its source, and believes it until that file changes.
A loop that calls one of another file would stay as it was when the other changes: after an upgrade
of this library an old loop might read arrays that are laid out anew. So what is kept is believed
only while all files of loops, and what says how they are compiled, are what they were.

Say so when loops are being compiled: some seconds, once on a machine.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

_PATIENCE = 1.0  # seconds after which it is told


@contextmanager
def log_slow_compilation(what: str) -> Iterator[None]:
    """Say in the log that loops that do `what` are compiled, if what is inside takes long."""
    text = (
        f"Compiling the loops that {what} label trees: some 15 seconds, once for a kind of numbers."
    )
    timer = threading.Timer(_PATIENCE, logging.getLogger("discriminant").warning, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


F = TypeVar("F", bound=Callable[..., Any])

# Sums may be reordered, so that they run in vector registers; NaN and infinity keep their meaning.
_REORDERED = {"reassoc", "contract", "nsz"}
# Compiled loops, how they are compiled, and the width of a block of rows.
_LOOPS = ("kernels*.py", "numba_cache.py", "tasks.py")


def cached_njit(loop: F) -> F:
    """The loop, compiled; sums are made in the order that is written."""
    return _kept(loop)


def fastmath_njit(loop: F) -> F:
    """The loop, compiled; sums are made in any order."""
    return _kept(loop, fastmath=_REORDERED)


def inline_njit(loop: F) -> F:
    """The loop, written into those that call it: a call with many arrays is dear."""
    import numba

    return cast(F, numba.njit(forceinline=True, error_model="numpy")(loop))


def _kept(loop: F, **options: Any) -> F:
    import numba

    options |= {"nogil": True, "error_model": "numpy"}
    loop_compiled: Any = numba.njit(cache=True, **options)(loop)
    file: Any = getattr(getattr(loop_compiled, "_cache", None), "_cache_file", None)
    if hasattr(file, "_source_stamp"):
        file._source_stamp = source_stamp()
        return cast(F, loop_compiled)
    return cast(F, numba.njit(**options)(loop))  # a Numba that keeps loops in another way


@cache
def source_stamp() -> str:
    """A digest of all files of loops."""
    package = Path(__file__).parent
    files = sorted(file for pattern in _LOOPS for file in package.rglob(pattern))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
