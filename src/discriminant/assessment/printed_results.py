"""Base class of printed results, text tables, and formats of numbers and p-values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from html import escape
from typing import Any

import numpy as np

from discriminant.table.blocks import Floats
from discriminant.table.column_cells import import_pandas

STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"), (0.1, "."))
_LEAST_P = 2e-16  # smaller p-values are printed as `< 2e-16`


class PrintedResult:
    """Base class of results that print as their `text`, on a terminal and in a notebook."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The result as lines of text."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


def text_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table: a title, a head, and rows whose first cell is a name.

    >>> print("\\n".join(text_table("Sizes", ["", "n"], [["ash", "10"], ["elm", "7"]])))
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


def html_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], note: str) -> str:
    """Return a table for notebooks: a caption, a head, rows whose first cell is a name, a note.

    >>> html_table("Sizes", ["", "n"], [["ash", "<9"]], "").partition("<tbody>")[2]
    '<tr><th scope="row">ash</th><td>&lt;9</td></tr></tbody></table>'
    """
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    lines = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for first, *cells in rows
    )
    below = f"<p>{escape(note)}</p>" if note else ""
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{lines}</tbody></table>{below}"
    )


def text_matrix(
    title: str, names: Sequence[object], columns: Sequence[str], values: Floats
) -> list[str]:
    """Return the lines of a table of numbers with named rows and columns."""
    rows = [
        [str(name), *map(format_number, line)]
        for name, line in zip(names, np.asarray(values), strict=True)
    ]
    return text_table(title, ["", *columns], rows)


def steps_frame(kind: Any, steps: Sequence[Any]) -> Any:
    """Return a pandas frame with one row for each step, indexed by its number.

    `kind` is the dataclass of the steps; its fields are the columns.
    """
    columns = [field.name for field in fields(kind)]
    rows = [asdict(step) for step in steps]
    return import_pandas().DataFrame(rows, columns=columns).set_index("number")


def format_number(value: float, decimals: int = 6) -> str:
    """Format a number with `decimals` decimals, or with six digits if it is very large or small.

    >>> format_number(0.02343863), format_number(53.4664888, 4), format_number(1e-9)
    ('0.023439', '53.4665', '1e-09')
    """
    plain = value == 0 or not np.isfinite(value) or 10.0**-decimals <= abs(value) < 1e9
    return f"{value:.{decimals}f}" if plain else f"{value:.6g}"


def format_short(value: float) -> str:
    """Format a number with six significant digits."""
    return f"{value:.6g}"


def format_degrees(value: float) -> str:
    """Format degrees of freedom, without decimals if they are an integer.

    >>> format_degrees(288.0), format_degrees(77566.75)
    ('288', '77566.75')
    """
    return f"{value:.0f}" if value == round(value) else f"{value:.2f}"


def format_p(p: float) -> str:
    """Format a p-value as SAS prints it.

    >>> format_p(1e-20), format_p(0.25)
    ('<.0001', '0.2500')
    """
    return "<.0001" if p < 1e-4 else f"{p:.4f}"


def format_p_as_r(p: float) -> str:
    """Format a p-value as R prints it.

    >>> format_p_as_r(1e-20), format_p_as_r(0.25)
    ('< 2e-16', '0.25')
    """
    return f"< {_LEAST_P:.0e}" if p < _LEAST_P else f"{p:.3g}"


def stars(p: float) -> str:
    """Return the significance stars that R prints for a p-value.

    >>> stars(0.02), stars(0.5)
    ('*', '')
    """
    return next((mark for limit, mark in STARS if p <= limit), "")


def format_bytes(size: float) -> str:
    """Format a number of bytes.

    >>> format_bytes(812), format_bytes(1_234_567), format_bytes(45e9)
    ('812 B', '1.2 MB', '45 GB')
    """
    for unit in ("B", "kB", "MB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 9.95 else f"{size:.1f} {unit}"
        size /= 1000.0
    return f"{size:.0f} GB" if size >= 9.95 else f"{size:.1f} GB"
