"""Memory limits: threads that fit, free memory, and whether a file fits into memory.

RLIMIT_AS (`ulimit -v`) and RLIMIT_DATA (`ulimit -d`) limit the process itself on Linux: where one
is reached, allocations fail and libraries fail with them. The limit of a container (a cgroup) is
different: there the kernel kills the process. `available_threads` considers the former,
`free_memory` both.

Each thread costs address space before it does any work: its stack, an arena of the allocator and
two buffers in each of the two copies of OpenBLAS that NumPy and SciPy bring. Many cores and a low
limit do not go together, so the number of threads follows from the limit.

This module imports no numerical library: the command line reads it before it loads one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

REQUIRED = 768 << 20  # bytes of address space that one thread and the libraries need
_SHARED = 2 << 30  # bytes for the table and one thread, before a second thread is considered
_PER_THREAD = 256 << 20
SMALL_FILE = 1 << 28  # bytes of a file that is always read into memory
_FILE_SHARE = 8  # a larger file may take this fraction of the free memory


def memory_limit() -> int | None:
    """Bytes of address space that this process may use; None without a limit."""
    if sys.platform != "linux":
        return None
    import resource

    soft = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    return min((limit for limit in soft if limit != resource.RLIM_INFINITY), default=None)


def available_threads() -> int:
    """Cores this process may use, as far as its address space suffices for their threads."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    limit = memory_limit()
    return cores if limit is None else max(1, min(cores, (limit - _SHARED) // _PER_THREAD))


def free_memory() -> int:
    """Bytes of memory available to this process; 0 if the system does not report them."""
    bounds = [_system_number("/proc/meminfo", "MemAvailable:", 1024), memory_limit()]
    limit = _system_number("/sys/fs/cgroup/memory.max", "", 1)
    if limit is not None:
        used = _system_number("/sys/fs/cgroup/memory.current", "", 1) or 0
        bounds.append(max(limit - used, 0))
    return min((bound for bound in bounds if bound is not None), default=0)


def fits_in_memory(path: str) -> bool:
    """Whether a file is small enough for memory; a missing file is, so that opening reports it."""
    if os.path.isdir(path):
        return False
    try:
        size = os.stat(path).st_size
    except OSError:
        return not any(mark in path for mark in "*?[")
    return size <= max(SMALL_FILE, free_memory() // _FILE_SHARE)


def _system_number(path: str, name: str, unit: int) -> int | None:
    """Return a number in a file of the system: the one after a name, or the only one."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(name) and line.removeprefix(name).split()[0].isdigit():
            return int(line.removeprefix(name).split()[0]) * unit
    return None


def ran_out(fault: BaseException) -> bool:
    """Whether an exception, or one that caused it, comes from an allocation that failed."""
    seen: list[BaseException] = []
    cause: BaseException | None = fault
    while cause is not None and cause not in seen:
        if isinstance(cause, MemoryError) or any(text in str(cause) for text in _SYMPTOMS):
            return True
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
    return False


_SYMPTOMS = (  # messages of other exceptions: the dynamic loader, Python's threads, Arrow, LLVM
    "failed to map segment",
    "cannot allocate memory",
    "Cannot allocate memory",
    "cannot create shared object descriptor",
    "can't start new thread",
    "Failed to launch worker thread",
    "bad_alloc",
)
