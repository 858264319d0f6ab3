"""Where a CSV is wrong: the row, line, column and text of the first mistake.

This goes through the rows one by one with Python's own reader, so it is only asked when something
is wrong, or when a row of the table must be named by its line in the file.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import TextIO

from discriminant.errors import BadNumberError, FileError
from discriminant.table.dialect import MAX_FIELD, MAX_LINE, Dialect, Kind, field_limit, fits
from discriminant.table.files import Format
from discriminant.table.stream import Stream

_WORDS = {"boolean": "truth value", "date": "date (YYYY-MM-DD)", "time": "time (YYYY-MM-DD hh:mm)"}


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the file as it is written."""

    number: int  # line that it begins in, counted from 1
    fields: list[str]
    open: bool  # a quote is never closed


def blame(format: Format, kinds: Mapping[str, Kind], missing: tuple[str, ...]) -> None:
    """Raise the error for the first mistake, if one is found."""
    dialect = _dialect(format)
    places = [(j, name, kinds[name]) for j, name in enumerate(dialect.names) if name in kinds]
    rows = _lines(format)
    next(rows, None)  # the header
    for row, line in enumerate(rows):
        if line.open:
            raise FileError.open_quote(format.path, line.number)
        if len(line.fields) != len(dialect.names):
            raise FileError.ragged(
                format.path,
                line.number,
                expected=len(dialect.names),
                found=len(line.fields),
            )
        for j, name, kind in places:
            _check_cell(format, row, line, j, name, kind, missing)


def check_quotes(
    format: Format, columns: Collection[str], span: tuple[int, int] | None = None
) -> None:
    """Refuse text after the closing quote of a field in one of these columns.

    pyarrow would join both: "1"5 would be 15.
    """
    dialect = _dialect(format)
    with Stream(format.path, gzip=format.gzip, encoding=format.encoding, span=span) as stream:
        text = stream.read()
    quote, delimiter = dialect.quote.encode(), dialect.delimiter.encode()
    before, after = b"\r\n" + delimiter, b"\r\n \t" + delimiter
    quoted, record, end = False, 0, 0
    for run in re.finditer(re.escape(quote) + b"+", text):
        start, odd = run.start(), (run.end() - run.start()) % 2 == 1
        opens = not start or text[start - 1] in before
        if not quoted:
            record = max(
                record, text.rfind(b"\n", end, start) + 1, text.rfind(b"\r", end, start) + 1
            )
        end = run.end()
        if not quoted and not opens:
            continue  # a quote within a field that has none around it
        closes = odd if quoted else not odd
        quoted = quoted != odd
        if closes and end < len(text) and text[end] not in after:
            place = _fields_before(text[record:start], quote, delimiter)
            name = dialect.names[place] if place < len(dialect.names) else ""
            if name in columns:
                line = _lines_before(format, span) + _line_ends(text[:start]) + 1
                shown = re.split(b"[%b\r\n]" % re.escape(delimiter), text[end:], maxsplit=1)[0]
                raise FileError.after_quote(
                    format.path, line, name, shown.decode(errors="replace"), dialect.quote
                )


def _fields_before(record: bytes, quote: bytes, delimiter: bytes) -> int:
    """Delimiters outside of quotes."""
    return sum(part.count(delimiter) for part in record.split(quote)[::2])


def _line_ends(text: bytes) -> int:
    return text.count(b"\n") or text.count(b"\r")


def _lines_before(format: Format, span: tuple[int, int] | None) -> int:
    if span is None or not span[0]:
        return 0
    head = (0, span[0])
    with Stream(format.path, gzip=format.gzip, encoding=format.encoding, span=head) as stream:
        return _line_ends(stream.read())


def line_at(format: Format, row: int) -> int:
    """Line of the file, counted from 1, that a row begins in."""
    return _row(format, row).number


def lines_at(format: Format, rows: Sequence[int]) -> list[int]:
    """The same of several rows, in one reading."""
    wanted, found = set(rows), dict[int, int]()
    with closing(_lines(format)) as lines:  # type: ignore[type-var]
        for row, line in enumerate(islice(lines, 1, max(rows, default=-1) + 2)):
            if row in wanted:
                found[row] = line.number
    return [found[row] for row in rows]


def cell_at(format: Format, row: int, column: str) -> str:
    """What is written in a cell."""
    return _row(format, row).fields[_dialect(format).names.index(column)]


def rows_before(format: Format, byte: int) -> int:
    """How many rows of the file end before a byte that a line begins at."""
    return max(sum(1 for _ in _lines(format, (0, byte))) - 1, 0)


def _row(format: Format, row: int) -> Line:
    with closing(_lines(format)) as rows:  # type: ignore[type-var]
        return next(islice(rows, row + 1, None))


def _check_cell(
    format: Format, row: int, line: Line, j: int, name: str, kind: Kind, missing: tuple[str, ...]
) -> None:
    text = line.fields[j]
    if len(text) > MAX_FIELD:
        raise FileError.long_field(format.path, line.number, name, MAX_FIELD)
    if text not in missing and not fits(text, kind, _dialect(format).decimal):
        word = _WORDS.get(kind, kind)
        raise BadNumberError.of(row, name, text, line=line.number, kind=word)


def _lines(format: Format, span: tuple[int, int] | None = None) -> Iterator[Line]:
    """The rows of a file, the header among them; empty lines are none."""
    dialect = _dialect(format)
    with (
        field_limit(),
        Stream(format.path, gzip=format.gzip, encoding=format.encoding, span=span) as stream,
        io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8", newline="") as text,
    ):
        source = _Source(text, format.path, dialect.quote)
        reader = csv.reader(source, delimiter=dialect.delimiter, quotechar=dialect.quote)
        while True:
            start = source.number + 1
            source.quotes = 0
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error:
                # Only a quote that is not closed makes a field longer than the longest line.
                raise FileError.open_quote(format.path, start) from None
            if fields:
                yield Line(start, fields, source.ended and source.quotes % 2 == 1)


class _Source:
    """Lines of a text, none of them too long, counted; and quotes."""

    def __init__(self, text: TextIO, path: str, quote: str) -> None:
        self._quote = quote
        self._text = text
        self._path = path
        self.number = 0
        self.quotes = 0
        self.ended = False

    def __iter__(self) -> _Source:
        return self

    def __next__(self) -> str:
        line = self._text.readline(MAX_LINE + 1)
        if not line:
            self.ended = True
            raise StopIteration
        self.number += 1
        if len(line) > MAX_LINE:
            raise FileError.long_line(self._path, self.number, MAX_LINE)
        self.quotes += line.count(self._quote)
        return line


def _dialect(format: Format) -> Dialect:
    assert format.dialect is not None
    return format.dialect
