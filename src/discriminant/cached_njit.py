"""Numba decorators with a cache on disk that is renewed when a module with compiled loops changes.

Numba caches a compiled loop beside its source file and reuses it until that file changes. If a loop
calls a loop of another module and only that module changes, Numba does not notice: after an
upgrade, an old loop might read arrays with a new layout. So the cache key contains a digest of all
modules with compiled loops, and of this module, which sets the compiler options.

Code is compiled once per machine; this takes some seconds, and a message is logged.
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

_LOG_AFTER = 1.0  # seconds of compilation after which a message is logged


@contextmanager
def log_slow_compilation(what: str) -> Iterator[None]:
    """Log a message if the `with` block takes long, because its loops are being compiled.

    `what` is a verb for the message, such as "train" or "search".
    """
    text = f"Compiling the loops that {what} label trees: about 15 seconds, once per number type."
    timer = threading.Timer(_LOG_AFTER, logging.getLogger("discriminant").warning, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


F = TypeVar("F", bound=Callable[..., Any])

# Sums may be reordered, which allows vectorisation; NaN and infinity keep their meaning.
_REORDER_SUMS = {"reassoc", "contract", "nsz"}
# Modules with compiled loops, this module, and the one with the width of a block of rows.
_SOURCES = ("compiled_*.py", "cached_njit.py", "training_tasks.py")


def cached_njit(loop: F) -> F:
    """Compile a loop with Numba; the terms of sums are added in the order of the code."""
    return _njit(loop)


def fastmath_njit(loop: F) -> F:
    """Compile a loop with Numba; the terms of sums may be reordered, which is faster."""
    return _njit(loop, fastmath=_REORDER_SUMS)


def inline_njit(loop: F) -> F:
    """Compile a loop with Numba and inline it in its callers: calls with many arrays are slow."""
    import numba

    return cast(F, numba.njit(forceinline=True, error_model="numpy")(loop))


def _njit(loop: F, **options: Any) -> F:
    import numba

    options |= {"nogil": True, "error_model": "numpy"}
    compiled: Any = numba.njit(cache=True, **options)(loop)
    file: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(file, "_source_stamp"):
        file._source_stamp = source_stamp()
        return cast(F, compiled)
    return cast(F, numba.njit(**options)(loop))  # this Numba version has another cache


@cache
def source_stamp() -> str:
    """Return a digest of all modules with compiled loops."""
    package = Path(__file__).parent
    files = sorted(file for pattern in _SOURCES for file in package.rglob(pattern))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
