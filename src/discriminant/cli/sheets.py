"""Rows as they were, with answers beside them, as a CSV that is safe to open in a spreadsheet.

A text that begins with = + - @ (of any width), a tab, a line end or a NUL may be a formula to a
spreadsheet. Such texts get a ' in front, header included; numbers are left as they are. Cells of a
CSV are passed on as they were written; those of other files are written as Python writes them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from discriminant.table.cells import Cells, Frame
from discriminant.table.dialect import is_number
from discriminant.table.files import Format
from discriminant.table.replacing import replacing
from discriminant.table.stream import Stream

_RISKY = ("=", "+", "-", "@", "\t", "\r", "\n", "\0", "＝", "＋", "－", "＠")
_BATCH = 50_000  # rows written at a time


def safe_cell(text: str, decimal: str = ".") -> str:
    """A text that no spreadsheet takes for a formula.

    >>> [safe_cell(text) for text in ("=1+1", "-5.2", "-cmd", "plain")]
    ["'=1+1", '-5.2', "'-cmd", 'plain']
    """
    if text.startswith(_RISKY) and not (is_number(text) or is_number(text, decimal)):
        return f"'{text}"
    return text


class Sheet:
    """The rows of a source, to be written with more columns."""

    def __init__(self, frame: Frame, format: Format | None, *, safe: bool) -> None:
        self.frame, self.format, self.safe = frame, format, safe
        self._text = format is not None and format.kind == "csv"
        self.names: tuple[str, ...] = frame.names
        self.decimal = "."
        if format is not None and format.dialect is not None:
            self.names, self.decimal = format.dialect.names, format.dialect.decimal

    def write(self, path: Path, added: Mapping[str, Sequence[Any]]) -> None:
        """Whole or not at all."""
        with replacing(path) as file:
            text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
            self._fill(text, added)
            text.detach()  # which `replacing` forces to the disk

    def _fill(self, file: Any, added: Mapping[str, Sequence[Any]]) -> None:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(self._safely([*self.names, *added]))
        rows = self._written() if self._text else self._cells()
        answers = zip(*added.values(), strict=True)
        both = zip(rows, answers, strict=True)
        while batch := list(islice(both, _BATCH)):
            out.writerows(self._safely([*row, *answer]) for row, answer in batch)

    def _safely(self, cells: Sequence[Any]) -> list[Any]:
        if not self.safe:
            return list(cells)
        sign = self.decimal
        return [safe_cell(cell, sign) if isinstance(cell, str) else cell for cell in cells]

    def _written(self) -> Iterator[list[str]]:
        """Cells of a CSV as they stand there."""
        format = self.format
        assert format is not None and format.dialect is not None
        dialect = format.dialect
        stream = Stream(
            format.path, gzip=format.gzip, encoding=format.encoding, quote=dialect.quote
        )
        with io.TextIOWrapper(io.BufferedReader(stream), "utf-8", newline="") as text:
            rows = csv.reader(text, delimiter=dialect.delimiter, quotechar=dialect.quote)
            next(rows)
            yield from (row for row in rows if row)

    def _cells(self) -> Iterator[list[Any]]:
        columns = [_values(cells) for cells in self.frame.columns]
        return map(list, zip(*columns, strict=True))


def _values(cells: Cells) -> list[Any]:
    if cells.kind == "text":
        return [None if code < 0 else cells.levels[code] for code in cells.values.tolist()]
    if cells.kind == "boolean":
        return [None if value != value else bool(value) for value in cells.values.tolist()]
    if cells.kind == "date":
        return [_day(value) for value in cells.values.tolist()]
    return [None if value != value else value for value in cells.values.tolist()]


def _day(value: float) -> str | None:
    """A day, or an instant, as ISO writes it."""
    from datetime import datetime, timedelta

    if value != value:
        return None
    found = datetime(1970, 1, 1) + timedelta(days=value)
    return found.date().isoformat() if value == int(value) else found.isoformat()
