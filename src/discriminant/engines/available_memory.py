"""Memory limits of the process: free memory, number of threads, and files that fit into memory.

On Linux, RLIMIT_AS (`ulimit -v`) and RLIMIT_DATA (`ulimit -d`) limit the process itself: if one is
reached, allocations fail and libraries fail with them. At the limit of a container (a cgroup), the
kernel kills the process instead. `available_threads` considers only the limits of the process;
`free_memory` considers those of the container too.

Each thread reserves address space before it does any work: its stack, an arena of the allocator,
and two buffers in each of the two copies of OpenBLAS that come with NumPy and SciPy. With many
cores and a low limit, the threads alone could exceed the limit, so the limit determines the number
of threads.

This module imports no numerical library, because the command line imports it before any such
library.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

REQUIRED = 768 << 20  # bytes of address space that one thread and the libraries need
_SHARED = 2 << 30  # bytes left for the table and one thread; a second thread needs more
_PER_THREAD = 256 << 20
SMALL_FILE = 1 << 28  # files up to this many bytes are always read into memory
_FILE_SHARE = 8  # a larger file may take 1 / _FILE_SHARE of the free memory


def memory_limit() -> int | None:
    """Return how many bytes of address space this process may use, or None without a limit."""
    if sys.platform != "linux":
        return None
    import resource

    soft = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    return min((limit for limit in soft if limit != resource.RLIM_INFINITY), default=None)


def available_threads() -> int:
    """Return the number of threads to use.

    Use one thread per available core, or fewer if the threads would exceed the memory limit.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    limit = memory_limit()
    return cores if limit is None else max(1, min(cores, (limit - _SHARED) // _PER_THREAD))


def free_memory() -> int:
    """Return how many bytes of memory are available to this process, or 0 if this is unknown."""
    bounds = [_system_number("/proc/meminfo", "MemAvailable:", 1024), memory_limit()]
    limit = _system_number("/sys/fs/cgroup/memory.max", "", 1)
    if limit is not None:
        used = _system_number("/sys/fs/cgroup/memory.current", "", 1) or 0
        bounds.append(max(limit - used, 0))
    return min((bound for bound in bounds if bound is not None), default=0)


def file_fits_in_memory(path: str) -> bool:
    """Whether a file is small enough to be read into memory.

    The result is True for a missing file, so that the error is raised when the file is opened.
    """
    if os.path.isdir(path):
        return False
    try:
        size = os.stat(path).st_size
    except OSError:
        return not any(mark in path for mark in "*?[")
    return size <= max(SMALL_FILE, free_memory() // _FILE_SHARE)


def _system_number(path: str, name: str, unit: int) -> int | None:
    """Read a number from a system file: the number after `name`, or the only number in the file."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(name) and line.removeprefix(name).split()[0].isdigit():
            return int(line.removeprefix(name).split()[0]) * unit
    return None


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether an exception, or one of its causes, is due to a failed memory allocation."""
    checked: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in checked:
        if isinstance(cause, MemoryError) or any(text in str(cause) for text in _SYMPTOMS):
            return True
        checked.append(cause)
        cause = cause.__cause__ or cause.__context__
    return False


_SYMPTOMS = (  # messages of the dynamic loader, Python's threads, Arrow and LLVM
    "failed to map segment",
    "cannot allocate memory",
    "Cannot allocate memory",
    "cannot create shared object descriptor",
    "can't start new thread",
    "Failed to launch worker thread",
    "bad_alloc",
)
