"""pandas, for those who ask for a frame: nothing else here needs it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from discriminant.errors import LibraryMissingError


def pandas() -> Any:
    """The library.

    >>> pandas().__name__
    'pandas'
    """
    try:
        return import_module("pandas")
    except ImportError:
        raise LibraryMissingError.of("pandas", what="A frame") from None
