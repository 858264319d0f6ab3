"""Tables in plain text, as statistical packages print them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from discriminant.table.frames import pandas
from discriminant.table.schema import Floats


class Printed:
    """A result that is shown as its `text`, whether printed or left at the end of a cell."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """All of it, laid out in lines."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: a title, a head, and rows whose first cell is a name.

    >>> print("\\n".join(table("Sizes", ["", "n"], [["ash", "10"], ["elm", "7"]])))
    Sizes
    <BLANKLINE>
          n
    ash  10
    elm   7
    """
    wide = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for first, *others in [head, *rows]:
        cells = [cell.rjust(width) for cell, width in zip(others, wide[1:], strict=True)]
        lines.append("  ".join([first.ljust(wide[0]), *cells]).rstrip())
    return [title, "", *lines] if title else lines


def matrix(
    title: str, names: Sequence[object], columns: Sequence[str], values: Floats
) -> list[str]:
    """A table of numbers with a name for each row and column."""
    rows = [
        [str(name), *map(number, line)]
        for name, line in zip(names, np.asarray(values), strict=True)
    ]
    return table(title, ["", *columns], rows)


def frame_of_steps(kind: Any, steps: Sequence[Any]) -> Any:
    """A pandas frame with a row for each step of a `kind`, by its number."""
    columns = [field.name for field in fields(kind)]
    rows = [asdict(step) for step in steps]
    return pandas().DataFrame(rows, columns=columns).set_index("number")


def number(value: float, decimals: int = 6) -> str:
    """So many decimals, or six digits if it is very large or small.

    >>> number(0.02343863), number(53.4664888, 4), number(1e-9)
    ('0.023439', '53.4665', '1e-09')
    """
    plain = value == 0 or not np.isfinite(value) or 10.0**-decimals <= abs(value) < 1e9
    return f"{value:.{decimals}f}" if plain else f"{value:.6g}"


def degree(value: float) -> str:
    """Degrees of freedom: whole, or as they are.

    >>> degree(288.0), degree(77566.75)
    ('288', '77566.75')
    """
    return f"{value:.0f}" if value == round(value) else f"{value:.2f}"


def chance(p: float) -> str:
    """A p-value as SAS prints it.

    >>> chance(1e-20), chance(0.25)
    ('<.0001', '0.2500')
    """
    return "<.0001" if p < 1e-4 else f"{p:.4f}"


def in_bytes(size: float) -> str:
    """Bytes as a person says them.

    >>> in_bytes(812), in_bytes(1_234_567), in_bytes(45e9)
    ('812 B', '1.2 MB', '45 GB')
    """
    for unit in ("B", "kB", "MB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 9.95 else f"{size:.1f} {unit}"
        size /= 1000.0
    return f"{size:.0f} GB" if size >= 9.95 else f"{size:.1f} GB"
