"""How fast rows go by, and how long the rest of them will take.

rate = rows / seconds       left = (of - rows) / rate
"""

from __future__ import annotations

import time
from collections.abc import Callable

from discriminant.report.words import duration

Told = Callable[[str, int, int], object]
_EVERY = 0.2  # seconds between two words


class Pace:
    """Passes on what is told of a study, and tells of rows while they are read."""

    def __init__(self, told: Told | None) -> None:
        self._told = told or (lambda what, done, of: None)
        self._what = "reading"
        self._began = self._last = time.monotonic()
        self._rows = 0

    def __call__(self, what: str, done: int, of: int) -> None:
        """A step of the work."""
        if done >= 0:
            self._what = what
        self._told(what, done, of)

    def rows(self, rows: int, of: int | None) -> None:
        """So many rows are read, of so many; fewer than before is another pass over them."""
        now = time.monotonic()
        if rows <= self._rows:
            self._began = self._last = now
        self._rows = rows
        if now - self._last < _EVERY:
            return
        self._last = now
        rate = rows / max(now - self._began, 1e-9)
        self._told(f"{self._what}: {paced(rows, of, rate)}", -1, 0)


def paced(rows: int, of: int | None, rate: float) -> str:
    """Rows, how many a second, and the time that is left.

    >>> paced(2_000_000, 8_000_000, 1_000_000.0)
    '2,000,000 of 8,000,000 rows, 1,000,000 a second, 6.0 s left'
    """
    whole = "" if of is None else f" of {of:,}"
    left = "" if of is None else f", {duration(max(of - rows, 0) / rate)} left"
    return f"{rows:,}{whole} rows, {rate:,.0f} a second{left}"
