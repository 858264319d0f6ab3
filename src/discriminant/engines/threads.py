"""Limit BLAS to one thread, so that its threads do not compete with the threads of the engines.

The number of BLAS threads is a setting of the process, and `with` blocks of several Python threads
may overlap in any order. So the first block that is entered sets the number to one, and the last
block that is exited restores it. In OpenMP, however, each thread has its own setting; every block
sets and restores the setting of its thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import product
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class _Library:
    """The two functions that get and set the number of threads of a library."""

    get_num_threads: Callable[[], int]
    set_num_threads: Callable[[int], object]


@dataclass(slots=True, eq=False)
class _BlasLimit:
    """Number of active `with` blocks, and the number of threads to restore after the last block."""

    blas: list[_Library]
    openmp: list[_Library]
    lock: threading.Lock = field(default_factory=threading.Lock)
    active: int = 0
    before: list[int] = field(default_factory=list)

    def __enter__(self) -> None:
        with self.lock:
            if not self.active:
                self.before = _limit_to_one(self.blas)
            self.active += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.active -= 1
            if not self.active:
                _restore(self.blas, self.before)


_BLOCKS = threading.local()  # `limited`: whether the Python thread is inside a `with` block


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread within a `with` block.

    A block nested in another block of the same Python thread does not set OpenMP again.
    """
    limit = _blas_limit()
    if getattr(_BLOCKS, "limited", False):
        with limit:
            yield
        return
    before = [library.get_num_threads() for library in limit.openmp]
    try:
        _limit_to_one(limit.openmp)
        with limit:
            _BLOCKS.limited = True
            yield
    finally:
        _BLOCKS.limited = False
        _restore(limit.openmp, before)


def _limit_to_one(libraries: list[_Library]) -> list[int]:
    """Limit libraries to one thread; return the previous numbers."""
    before = [library.get_num_threads() for library in libraries]
    for library, number in zip(libraries, before, strict=True):
        if number != 1:
            library.set_num_threads(1)
    return before


def _restore(libraries: list[_Library], numbers: list[int]) -> None:
    """Set libraries that are limited to one thread to the previous numbers."""
    for library, number in zip(libraries, numbers, strict=True):
        if number != 1:
            library.set_num_threads(number)


def reserve_blas_buffers(threads: int) -> None:
    """Let every OpenBLAS of this process allocate its work buffers now, one for each thread.

    OpenBLAS does not free its buffers (32 MB each) until the process ends. OpenBLAS allocates
    another buffer whenever more threads than ever before use OpenBLAS at the same time. If no
    address space is left, version 0.3.30 retries for ever in native code, where no signal handler
    of Python runs, and 0.3.31 calls exit(). If the buffers are allocated in advance, no later
    allocation is needed.
    """
    import ctypes

    for library in _thread_pool_libraries():
        if library.internal_api != "openblas":
            continue
        native = ctypes.CDLL(library.filepath)
        allocate = getattr(native, "blas_memory_alloc", None)
        free = getattr(native, "blas_memory_free", None)
        if allocate is None or free is None:
            continue
        allocate.restype, free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        for buffer in [allocate(0) for _ in range(threads)]:
            free(buffer)


@lru_cache(maxsize=1)
def _clear_controlling_thread() -> Callable[[], object]:
    """Return a function that allows any thread to set the number of BLAS threads.

    From version 3.8 on, threadpoolctl allows only the first thread that set the number to set it
    again.
    """
    from threadpoolctl import OpenBLASController

    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    return (lambda: None) if clear is None else partial(clear, force=True)


def _functions_of(controller: Any) -> _Library:
    """Return the functions of a library.

    For an OpenBLAS with threads of its own they are the functions of the library, which are called
    in a fraction of the time of the methods of threadpoolctl.
    """
    if controller.internal_api == "openblas" and controller.threading_layer != "openmp":
        import ctypes

        native = ctypes.CDLL(controller.filepath)
        for prefix, suffix in product(("", "scipy_"), ("", "64_", "_64")):
            getter = getattr(native, f"{prefix}openblas_get_num_threads{suffix}", None)
            setter = getattr(native, f"{prefix}openblas_set_num_threads{suffix}", None)
            if getter is not None and setter is not None:
                return _Library(getter, setter)
    clear = _clear_controlling_thread()

    def set_num_threads(number: int) -> None:
        clear()
        controller.set_num_threads(number)
        clear()

    return _Library(controller.get_num_threads, set_num_threads)


@lru_cache(maxsize=1)
def _blas_limit() -> _BlasLimit:
    """Return the limit for all loaded libraries. The limit is cached, because finding the libraries
    takes time.
    """
    libraries = _thread_pool_libraries()
    return _BlasLimit(
        [_functions_of(library) for library in libraries if library.user_api == "blas"],
        [_functions_of(library) for library in libraries if library.user_api == "openmp"],
    )


def _thread_pool_libraries() -> list[Any]:
    """Return a controller of threadpoolctl for each loaded library with threads of its own."""
    import scipy.linalg  # noqa: F401 -- loads a BLAS of its own, which must be found too
    from threadpoolctl import ThreadpoolController

    controllers: list[Any] = ThreadpoolController().lib_controllers
    return controllers


_POOLS: dict[int, ThreadPoolExecutor] = {}  # by number of threads
_POOLS_LOCK = threading.Lock()


def thread_pool(threads: int) -> ThreadPoolExecutor:
    """Return a pool with this number of threads, which later calls reuse.

    Tasks of the pool must not wait for other tasks of the pool.
    """
    with _POOLS_LOCK:
        if threads not in _POOLS:
            _POOLS[threads] = ThreadPoolExecutor(threads, thread_name_prefix="discriminant")
        return _POOLS[threads]


def _reset_in_child() -> None:
    """Forget the threads of the parent, which do not exist in a forked child."""
    global _POOLS_LOCK
    _POOLS_LOCK = threading.Lock()
    _POOLS.clear()
    _BLOCKS.limited = False
    if _blas_limit.cache_info().currsize:
        limit = _blas_limit()
        limit.lock = threading.Lock()
        if limit.active:
            limit.active = 0
            _restore(limit.blas, limit.before)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_in_child)
