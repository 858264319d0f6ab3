"""How often an adapter called this package, and how an adapter says that a feature is missing."""

from __future__ import annotations


class Lacks(Exception):  # noqa: N818
    """The test needs a feature that this package does not have.

    Derived from no other exception, so that a test which expects an error does not pass by it.
    """


class LacksAttributeError(Lacks, AttributeError):
    """The attribute of the peer has no counterpart."""


class _Calls:
    total = 0


def count_call() -> None:
    """Note a call of this package."""
    _Calls.total += 1


def calls_so_far() -> int:
    """Calls since the start of the process."""
    return _Calls.total
