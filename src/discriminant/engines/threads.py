"""BLAS on one thread, so that its threads do not fight with ours.

How many threads BLAS takes is said once for the whole process. Whoever comes first says one, who
leaves last says again what was said before: in between others may come and leave in any order, in
any thread. OpenMP has a number for each thread instead, which each says for itself.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any


@dataclass(slots=True, eq=False)
class _Room:
    """Who is inside, and what BLAS was told before the first came."""

    blas: Any  # a controller of threadpoolctl
    openmp: Any
    door: threading.Lock = field(default_factory=threading.Lock)
    inside: int = 0
    before: Any = None

    def enter(self) -> None:
        with self.door:
            if not self.inside:
                self.before = self.blas.limit(limits=1)
            self.inside += 1

    def leave(self) -> None:
        with self.door:
            self.inside -= 1
            if not self.inside:
                _let_go()
                self.before.restore_original_limits()
                _let_go()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS keeps to one thread."""
    room = _room()
    with room.openmp.limit(limits=1):
        room.enter()
        try:
            yield
        finally:
            room.leave()


def reserve_buffers(threads: int) -> None:
    """Let every OpenBLAS in this process allocate its work buffers now, one for each thread.

    OpenBLAS keeps buffers (32 MB each) for the life of the process and allocates another one when
    more threads are inside it than ever before. Where the address space is used up by then, version
    0.3.30 retries for ever in native code, where no signal handler of Python runs, and 0.3.31 calls
    exit(). With the buffers in place it allocates nothing later.
    """
    import ctypes

    for library in _room().blas.lib_controllers:
        if library.internal_api != "openblas":
            continue
        native = ctypes.CDLL(library.filepath)
        take = getattr(native, "blas_memory_alloc", None)
        give = getattr(native, "blas_memory_free", None)
        if take is None or give is None:
            continue
        take.restype, give.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        for buffer in [take(0) for _ in range(threads)]:
            give(buffer)


def _let_go() -> None:
    """From 3.8 on, threadpoolctl hears only the thread that spoke first, until it is let go."""
    from threadpoolctl import OpenBLASController

    let_go = getattr(OpenBLASController, "clear_controlling_thread", None)
    if let_go is not None:
        let_go(force=True)


@lru_cache(maxsize=1)
def _room() -> _Room:
    """The libraries that are loaded; finding them takes longer than a small fit."""
    import scipy.linalg  # noqa: F401 -- brings a BLAS of its own, which is to be found too
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController()
    return _Room(found.select(user_api="blas"), found.select(user_api="openmp"))
