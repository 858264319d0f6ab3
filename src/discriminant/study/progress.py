"""Progress of a study: the current step, and the rate at which rows are read.

rate = rows / seconds       time left = (total - rows) / rate
"""

from __future__ import annotations

import time
from collections.abc import Callable

from discriminant.report.format import duration

StudyProgress = Callable[[str, int, int], object]  # called as progress(step, done, total)
_INTERVAL = 0.2  # seconds between two reports of the rate


class ProgressRate:
    """Callback that forwards the steps of a study, and reports the rows while they are read."""

    def __init__(self, progress: StudyProgress | None) -> None:
        self._progress = progress or (lambda step, done, total: None)
        self._step = "reading"
        self._started = self._reported = time.monotonic()
        self._rows = 0

    def __call__(self, step: str, done: int, total: int) -> None:
        """Report a step. If `done` is -1, the text describes progress within the current step."""
        if done >= 0:
            self._step = step
        self._progress(step, done, total)

    def rows(self, rows: int, total: int | None) -> None:
        """Report the number of rows read so far; if it decreases, another pass has begun."""
        now = time.monotonic()
        if rows <= self._rows:
            self._started = self._reported = now
        self._rows = rows
        if now - self._reported < _INTERVAL:
            return
        self._reported = now
        rate = rows / max(now - self._started, 1e-9)
        self._progress(f"{self._step}: {rate_text(rows, total, rate)}", -1, 0)


def rate_text(rows: int, total: int | None, rate: float) -> str:
    """Return the rows read, the rows per second, and the time left.

    >>> rate_text(2_000_000, 8_000_000, 1_000_000.0)
    '2,000,000 of 8,000,000 rows, 1,000,000 a second, 6.0 s left'
    """
    if total is None:
        return f"{rows:,} rows, {rate:,.0f} a second"
    left = duration(max(total - rows, 0) / rate)
    return f"{rows:,} of {total:,} rows, {rate:,.0f} a second, {left} left"
