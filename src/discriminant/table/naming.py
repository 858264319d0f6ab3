"""Names that a reader may take for one another."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def lookalikes(names: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of names that differ only by case, spaces or the form of their letters.

    >>> lookalikes(["A", "a ", "b"])
    [('A', 'a ')]
    """
    first: dict[str, str] = {}
    pairs = []
    for name in names:
        plain = "".join(unicodedata.normalize("NFKC", name).casefold().split())
        if first.setdefault(plain, name) != name:
            pairs.append((first[plain], name))
    return pairs


def nearest(name: str, names: Sequence[str]) -> str | None:
    """The name that was most likely meant.

    >>> nearest("Default", ["id", "default"])
    'default'
    """
    plain = {other.casefold().strip(): other for other in names}
    found = get_close_matches(str(name).casefold().strip(), list(plain), n=1, cutoff=0.6)
    return plain[found[0]] if found else None
