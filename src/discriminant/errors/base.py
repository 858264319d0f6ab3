"""Base classes of every error and warning of the package."""

from __future__ import annotations

from collections.abc import Sequence

from discriminant.redaction import redact


class DiscriminantError(Exception):
    """Root of everything this package raises on purpose. Its text shows no registered secret."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(redact(arg) if isinstance(arg, str) else arg for arg in args))


class InputError(DiscriminantError, ValueError):
    """The rows, labels, weights or options handed in cannot be used."""


class DiscriminantWarning(UserWarning):
    """Root of everything this package warns of. Its text shows no registered secret."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(redact(arg) if isinstance(arg, str) else arg for arg in args))


def quote(names: Sequence[object], most: int = 5) -> str:
    """Names in quotes, the first few of them.

    >>> quote(["a", "b"])
    "'a', 'b'"
    >>> quote(range(7), most=2)
    "'0', '1' and 5 more"
    """
    shown = ", ".join(f"'{name}'" for name in list(names)[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
