"""CSV to cells, by pyarrow: every column of the kind that the sample showed.

Blocks of 1 MB are parsed in parallel while the file is read. pyarrow takes a block at a time for
whole lines; a quoted field with a line end in it that happens to lie at the border of two blocks
makes it stop, and only then is the slower way taken that looks for such fields. What else stops it
is a mistake in the file: `table.csv_faults` finds the place.

Where a CSV is wrong: the row, line, column and text of the first mistake.

This goes through the rows one by one with Python's own reader, so it is only asked when something
is wrong, or when a row of the table must be named by its line in the file.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TextIO

import numpy as np

from discriminant.errors import BadNumberError, FileError
from discriminant.table.cells import Cells, Frame, cells_from_arrow
from discriminant.table.files.csv_dialect import (
    FALSE,
    MAX_FIELD,
    MAX_LINE,
    MISSING_TEXTS,
    TRUE,
    CsvDialect,
    CsvKind,
    fits_kind,
    is_number,
    large_field_limit,
)
from discriminant.table.files.formats import FileFormat
from discriminant.table.files.text_decoding import MAX_BYTES, EncodingMismatch, TextStream
from discriminant.table.text_values import grouped_format, text_parser

_WORDS = {"boolean": "truth value", "date": "date (YYYY-MM-DD)", "time": "time (YYYY-MM-DD hh:mm)"}


@dataclass(frozen=True, slots=True)
class CsvRow:
    """A row of the file as it is written."""

    number: int  # line that it begins in, counted from 1
    fields: list[str]
    unclosed_quote: bool  # a quote is never closed


def raise_first_error(
    format: FileFormat, kinds: Mapping[str, CsvKind], missing: tuple[str, ...]
) -> None:
    """Raise the error for the first mistake, if one is found."""
    dialect = _dialect(format)
    places = [(j, name, kinds[name]) for j, name in enumerate(dialect.names) if name in kinds]
    rows = _lines(format)
    next(rows, None)  # the header
    for row, line in enumerate(rows):
        if line.unclosed_quote:
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
    format: FileFormat, columns: Collection[str], span: tuple[int, int] | None = None
) -> None:
    """Refuse text after the closing quote of a field in one of these columns.

    pyarrow would join both: "1"5 would be 15.
    """
    dialect = _dialect(format)
    with TextStream(format.path, gzip=format.gzip, encoding=format.encoding, span=span) as stream:
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


def _lines_before(format: FileFormat, span: tuple[int, int] | None) -> int:
    if span is None or not span[0]:
        return 0
    head = (0, span[0])
    with TextStream(format.path, gzip=format.gzip, encoding=format.encoding, span=head) as stream:
        return _line_ends(stream.read())


def line_of_row(format: FileFormat, row: int) -> int:
    """Line of the file, counted from 1, that a row begins in."""
    return _row(format, row).number


def lines_of_rows(format: FileFormat, rows: Sequence[int]) -> list[int]:
    """The same of several rows, in one reading."""
    wanted, found = set(rows), dict[int, int]()
    with closing(_lines(format)) as lines:  # type: ignore[type-var]
        for row, line in enumerate(islice(lines, 1, max(rows, default=-1) + 2)):
            if row in wanted:
                found[row] = line.number
    return [found[row] for row in rows]


def cell_of_row(format: FileFormat, row: int, column: str) -> str:
    """What is written in a cell."""
    return _row(format, row).fields[_dialect(format).names.index(column)]


def count_rows_before(format: FileFormat, byte: int) -> int:
    """How many rows of the file end before a byte that a line begins at."""
    return max(sum(1 for _ in _lines(format, (0, byte))) - 1, 0)


def _row(format: FileFormat, row: int) -> CsvRow:
    with closing(_lines(format)) as rows:  # type: ignore[type-var]
        return next(islice(rows, row + 1, None))


def _check_cell(
    format: FileFormat,
    row: int,
    line: CsvRow,
    j: int,
    name: str,
    kind: CsvKind,
    missing: tuple[str, ...],
) -> None:
    text = line.fields[j]
    if len(text) > MAX_FIELD:
        raise FileError.long_field(format.path, line.number, name, MAX_FIELD)
    if text not in missing and not fits_kind(text, kind, _dialect(format).decimal):
        word = _WORDS.get(kind, kind)
        raise BadNumberError.of(row, name, text, line=line.number, kind=word)


def _lines(format: FileFormat, span: tuple[int, int] | None = None) -> Iterator[CsvRow]:
    """The rows of a file, the header among them; empty lines are none."""
    dialect = _dialect(format)
    with (
        large_field_limit(),
        TextStream(format.path, gzip=format.gzip, encoding=format.encoding, span=span) as stream,
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
                yield CsvRow(start, fields, source.ended and source.quotes % 2 == 1)


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


def _dialect(format: FileFormat) -> CsvDialect:
    assert format.dialect is not None
    return format.dialect


_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class CsvColumns:
    """What to read of a CSV, and as what."""

    format: FileFormat
    kinds: Mapping[str, CsvKind]  # of the columns to read
    missing: tuple[str, ...] = MISSING_TEXTS  # texts that stand for no number
    empty: tuple[str, ...] = ("",)  # texts that stand for no category
    target: str | None = None  # of which only an empty cell is missing
    max_bytes: int = MAX_BYTES


def read_csv(plan: CsvColumns) -> tuple[Frame, FileFormat]:
    """All rows, and the format with the encoding that it was found to have."""
    try:
        table = _read(plan)
    except EncodingMismatch as found:
        plan = replace(plan, format=plan.format.with_encoding(found.encoding))
        table = _read(plan)
    if not table.num_rows:
        assert plan.format.dialect is not None
        raise FileError.no_rows(plan.format.path, len(plan.format.dialect.names))
    assert plan.format.dialect is not None
    rows, cells = table.num_rows, cells_from_csv(table, plan)
    others = tuple(name for name in plan.format.dialect.names if name not in plan.kinds)
    frame = Frame(
        cells,
        rows,
        line_of=lambda row: line_of_row(plan.format, row),
        text_of=lambda row, column: cell_of_row(plan.format, row, column),
        excluded=others,
    )
    return frame, plan.format


def _read(plan: CsvColumns) -> Any:
    """The table, tried the quick way first."""
    import pyarrow as pa

    dialect = plan.format.dialect
    assert dialect is not None
    broken, block = dialect.multiline, _BLOCK
    while True:
        try:
            return _attempt(plan, broken=broken, block=block)
        except pa.ArrowInvalid as fault:
            text = str(fault)
            if "out of sync" in text and not broken:
                broken = True
            elif "straddl" in text and block == _BLOCK:
                block = 4 * MAX_LINE
            else:
                raise_first_error(plan.format, plan.kinds, plan.missing)
                raise FileError.damaged(plan.format.path, "the text", text) from None


def _attempt(plan: CsvColumns, *, broken: bool, block: int) -> Any:
    from pyarrow import csv

    dialect = plan.format.dialect
    assert dialect is not None
    text = plan.format.encoding
    with TextStream(
        plan.format.path,
        gzip=plan.format.gzip,
        encoding=text,
        max_bytes=plan.max_bytes,
        quote=dialect.quote,
        delimiter=dialect.delimiter,
    ) as stream:
        table = csv.read_csv(
            stream,
            read_options=csv.ReadOptions(block_size=block),
            parse_options=csv.ParseOptions(
                delimiter=dialect.delimiter, quote_char=dialect.quote, newlines_in_values=broken
            ),
            convert_options=convert_options(plan),
        )
        if stream.quotes % 2:
            raise_first_error(plan.format, plan.kinds, plan.missing)
        if stream.text_after_quote:
            check_quotes(plan.format, plan.kinds)
    return table.rename_columns(list(plan.kinds))


def convert_options(plan: CsvColumns) -> Any:
    """How pyarrow shall turn the columns to be read."""
    from pyarrow import csv

    dialect = plan.format.dialect
    assert dialect is not None
    place = {name: j for j, name in enumerate(dialect.names)}
    types = {
        dialect.header[place[name]]: _type(kind, dialect.mostly_distinct[place[name]])
        for name, kind in plan.kinds.items()
    }
    return csv.ConvertOptions(
        column_types=types,
        include_columns=list(types),
        null_values=list(plan.missing),
        strings_can_be_null=False,
        true_values=list(TRUE),
        false_values=list(FALSE),
        decimal_point=dialect.decimal,
    )


def _type(kind: CsvKind, varied: bool) -> Any:
    import pyarrow as pa

    if kind in ("text", "empty", "grouped"):
        return pa.string() if varied else pa.dictionary(pa.int32(), pa.string())
    known = {"number": pa.float64(), "boolean": pa.bool_(), "date": pa.date32()}
    return known.get(kind, pa.timestamp("us"))


def cells_from_csv(table: Any, plan: CsvColumns) -> tuple[Cells, ...]:
    """Cells column by column, each let go by Arrow when it is turned."""
    assert plan.format.dialect is not None
    names, columns = table.column_names, list(table.columns)
    del table
    found = []
    for name in names:
        gone = ("",) if name == plan.target else plan.empty
        cells = cells_from_arrow(name, columns.pop(0), missing=gone)
        if cells.kind == "text":
            _check_lengths(cells, plan)
            if plan.kinds[name] == "empty":
                cells = _numbers_after_all(cells, plan.missing, plan.format.dialect.decimal)
            if plan.kinds[name] == "grouped":
                cells = _grouped_numbers(cells, plan)
        found.append(cells)
    return tuple(found)


def _check_lengths(cells: Cells, plan: CsvColumns) -> None:
    if max(map(len, cells.levels), default=0) > MAX_FIELD:
        raise_first_error(plan.format, plan.kinds, plan.missing)


def _grouped_numbers(cells: Cells, plan: CsvColumns) -> Cells:
    """Numbers with grouped digits, where the user named the sign and the model has a number."""
    dialect = plan.format.dialect
    assert dialect is not None and dialect.thousands is not None
    read = text_parser(grouped_format(dialect.thousands, dialect.decimal))
    values = [np.nan if text in plan.missing else read(text) for text in cells.levels]
    for code, value in enumerate(values):
        rows = np.flatnonzero(cells.values == code) if value is None else ()
        for row in rows[:1]:
            raise BadNumberError.of(int(row), cells.name, cells.levels[code])
    table = np.array([np.nan if value is None else value for value in values] + [np.nan])
    return Cells(cells.name, "number", table[cells.values])


def _numbers_after_all(cells: Cells, missing: Sequence[str], decimal: str) -> Cells:
    """A column that had no value in the sample: numbers, if all its values are."""
    values = [text for text in cells.levels if text not in missing]
    if not all(is_number(text, decimal) for text in values):
        return cells
    number = {text: float(text.replace(decimal, ".")) for text in values}
    table = np.array([number.get(text, np.nan) for text in cells.levels] + [np.nan])
    return Cells(cells.name, "number", table[cells.values])
