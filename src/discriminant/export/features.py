"""Where the features of a row come from: columns of a table, by name.

    number, boolean, date   the cell as a number; a date is days since 1970-01-01
    text                    a number for each category: 1 and 0 for an indicator, a place for an
                            ordered one
    missing                 1 where the cell is missing, else 0

What a missing cell, or a category that was not seen, stands for is a number, or nothing: then the
row has no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from discriminant.export.steps import Step

Kind = Literal["number", "boolean", "date", "text", "missing"]


@dataclass(frozen=True, slots=True)
class Source:
    """What one feature is made from."""

    feature: str
    column: str
    kind: Kind = "number"
    fill: float | None = None  # of a missing cell
    values: tuple[tuple[str, float], ...] = ()  # of each category
    other: float | None = None  # of a category that was not seen

    @property
    def total(self) -> bool:
        """Whether every cell there can be has a number."""
        return self.kind == "missing"

    def groups(self) -> list[tuple[float, list[str]]]:
        """Categories by their number; those that are as unseen ones are left out."""
        found: dict[float, list[str]] = {}
        for level, value in self.values:
            if value != self.other:
                found.setdefault(value, []).append(level)
        return list(found.items())


def numbers(names: Sequence[str]) -> tuple[Source, ...]:
    """Columns of numbers, none of them missing."""
    return tuple(Source(name, name) for name in names)


def as_step(sources: Sequence[Source]) -> Step:
    """The features as the first step."""
    return Step(
        "features", (), len(sources), name="x", parts=tuple(source.feature for source in sources)
    )
