"""Supervision of commands under a memory limit: a parent process reports how the child ended.

When the address space is used up, libraries do not only raise MemoryError: OpenBLAS retries for
ever or calls exit(), Arrow and LLVM abort, the dynamic loader fails. Such failures cannot be caught
in the process itself, and a signal handler of Python does not run while native code runs. So, where
there is a limit, a small parent process starts the command in a child process and waits:

    limit too low for the libraries       the command is refused before they are loaded
    child ends with its own exit code     the parent exits with the same code
    child is ended by a library           exit code 2, "out of memory"
    SIGINT, SIGTERM or SIGHUP             passed to the child; if it does not end, it is killed

The child uses few threads, one arena of the allocator, and no memory pool that reserves address
space in advance. OpenBLAS allocates its buffers before anything else does. Without a limit there is
no child: the command runs in the first process.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from discriminant.engines.available_memory import available_threads

_GRACE = 10.0  # seconds that a command has to end after a signal
_LONG = 3600.0
_STOPPING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "ARROW_IO_THREADS")
_ARENA_MAX = -8  # option of mallopt
_PARENT_DEATH_SIGNAL = 1  # option of prctl


@dataclass(frozen=True, slots=True)
class ChildResult:
    """How the child process ended."""

    code: int | None  # exit code of the command; None if the command did not finish
    # signal that ended the process; None if the process called exit()
    signal: signal.Signals | None
    passed_on: int | None  # signal that was passed on to the child


def supervise(command: Callable[[], int]) -> ChildResult:
    """Run a command in a child process and wait for its end."""
    reading, writing = os.pipe()
    handled = {number for number in _STOPPING if signal.getsignal(number) is not signal.SIG_IGN}
    handled.add(signal.SIGCHLD)
    signal.pthread_sigmask(signal.SIG_BLOCK, handled)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)  # Ctrl-C reaches only the parent, which passes it on once
        _exit_with_parent(parent)
        _limit_reserved_memory()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, handled)
        code = command()
        os.write(writing, bytes([code]))
        sys.exit(code)
    os.close(writing)
    status, passed_on = _wait(child, handled)
    reported = os.read(reading, 1)
    ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    return ChildResult(
        reported[0] if reported else None,
        None if ended_by is None else signal.Signals(ended_by),
        passed_on,
    )


def _wait(child: int, handled: set[signal.Signals]) -> tuple[int, int | None]:
    """Return the exit status of the child after its end, and the last signal passed on to it."""
    deadline, passed_on = None, None
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status, passed_on
        left = _LONG if deadline is None else max(deadline - time.monotonic(), 0.0)
        received = signal.sigtimedwait(handled, left)
        if received is None and deadline is not None:
            os.kill(child, signal.SIGKILL)
            deadline = None
        elif received is not None and received.si_signo != signal.SIGCHLD:
            deadline, passed_on = time.monotonic() + _GRACE, received.si_signo
            os.kill(child, passed_on)


def _limit_reserved_memory() -> None:
    """Limit the address space that libraries reserve; call this function before any library is
    loaded.
    """
    threads = available_threads()
    for name in _THREADS:
        given = os.environ.get(name, "")
        os.environ[name] = str(
            min(threads, int(given)) if given.isdecimal() and int(given) else threads
        )
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    _libc("mallopt", _ARENA_MAX, threads)


def _exit_with_parent(parent: int) -> None:
    """Let the kernel end this process when its parent is killed."""
    _libc("prctl", _PARENT_DEATH_SIGNAL, int(signal.SIGKILL))
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _libc(name: str, *values: int) -> None:
    """Call a function of the C library, if the library has this function."""
    import ctypes

    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*values)
