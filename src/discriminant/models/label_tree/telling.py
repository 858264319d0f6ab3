"""Say so when loops are being compiled: some seconds, once on a machine."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_PATIENCE = 1.0  # seconds after which it is told


@contextmanager
def telling_of_compiling(what: str) -> Iterator[None]:
    """Say in the log that loops that do `what` are compiled, if what is inside takes long."""
    text = (
        f"Compiling the loops that {what} label trees: some 15 seconds, once for a kind of numbers."
    )
    timer = threading.Timer(_PATIENCE, logging.getLogger("discriminant").warning, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
