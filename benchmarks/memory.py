"""Peak memory of a call: the highest resident size during it, less the resident size before."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/status")
_LIMIT = 14 << 30  # bytes; a call that wants more is stopped instead of the machine


def peak_beyond(run: Callable[[], Any]) -> float:
    """MB that the call needs beyond what was there before, its input included in the latter."""
    before = _level()
    run()
    return (_resident("VmHWM") - before) / 1024


def bound_memory() -> None:
    """Turn a call that would eat the machine into a MemoryError."""
    resource.setrlimit(resource.RLIMIT_AS, (_LIMIT, _LIMIT))


def _level() -> int:
    """Give freed memory back, restart the high-water mark, and say where it stands."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _resident("VmRSS")


def _resident(name: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    raise LookupError(f"{_STATUS} has no {name}: peak memory is measured on Linux only")
