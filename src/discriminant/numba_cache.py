"""Numba decorators with an on-disk cache that is invalidated when any compiled module changes.

Numba caches a compiled loop beside its source file and trusts it until that file changes. A loop
that calls a loop of another module would stay unchanged when the other changes: after an upgrade an
old loop might read arrays with a new layout. So the cache is keyed by a digest of all modules with
compiled loops and of this module, which sets the compiler options.

A message is logged while loops are compiled: some seconds, once per machine.
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

_LOG_AFTER = 1.0  # seconds


@contextmanager
def log_slow_compilation(what: str) -> Iterator[None]:
    """Log that loops that do `what` are being compiled, if the block takes long."""
    text = (
        f"Compiling the loops that {what} label trees: some 15 seconds, once for a kind of numbers."
    )
    timer = threading.Timer(_LOG_AFTER, logging.getLogger("discriminant").warning, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


F = TypeVar("F", bound=Callable[..., Any])

# Sums may be reordered, so that they are vectorised; NaN and infinity keep their meaning.
_REORDER_SUMS = {"reassoc", "contract", "nsz"}
# Modules with compiled loops, this module, and the one with the width of a block of rows.
_SOURCES = ("kernels*.py", "numba_cache.py", "tasks.py")


def cached_njit(loop: F) -> F:
    """Compile a loop; sums keep the order in which they are written."""
    return _njit(loop)


def fastmath_njit(loop: F) -> F:
    """Compile a loop; sums may be computed in any order."""
    return _njit(loop, fastmath=_REORDER_SUMS)


def inline_njit(loop: F) -> F:
    """Compile a loop inline into its callers: a call with many arrays is expensive."""
    import numba

    return cast(F, numba.njit(forceinline=True, error_model="numpy")(loop))


def _njit(loop: F, **options: Any) -> F:
    import numba

    options |= {"nogil": True, "error_model": "numpy"}
    loop_compiled: Any = numba.njit(cache=True, **options)(loop)
    file: Any = getattr(getattr(loop_compiled, "_cache", None), "_cache_file", None)
    if hasattr(file, "_source_stamp"):
        file._source_stamp = source_stamp()
        return cast(F, loop_compiled)
    return cast(F, numba.njit(**options)(loop))  # a Numba version with another cache


@cache
def source_stamp() -> str:
    """Return a digest of all modules with compiled loops."""
    package = Path(__file__).parent
    files = sorted(file for pattern in _SOURCES for file in package.rglob(pattern))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
