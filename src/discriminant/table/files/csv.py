"""Reading of CSV files with pyarrow, and location of errors by row, line and column.

Each column is read as the kind that was detected from the first rows. Blocks of 1 MB are parsed in
parallel while the file is read. pyarrow assumes that a block consists of complete lines, and stops
with an error if a quoted field that contains a line end extends over two blocks. In this case the
file is parsed again in a slower mode, which can read such fields. If pyarrow stops for any other
reason, the file is invalid.

Errors are located with the CSV reader of Python, which reads row by row, so that the message can
state the row, line, column and text of the first error. This reader is used only for messages.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from discriminant.errors import BadNumberError, FileError, in_thread
from discriminant.table.column_cells import ColumnCells, Frame, cells_from_arrow_column
from discriminant.table.files.csv_dialect import (
    FALSE,
    MAX_FIELD,
    MAX_LINE,
    MISSING_TEXTS,
    TRUE,
    CsvKind,
    fits_kind,
    is_number,
    large_field_limit,
    missing_number_texts,
)
from discriminant.table.files.formats import FileFormat
from discriminant.table.files.pyarrow_readers import arrow_input
from discriminant.table.files.text_decoding import MAX_BYTES, EncodingMismatch, TextStream
from discriminant.table.text_values import number_format, text_parser

if TYPE_CHECKING:
    from discriminant.table.column_types import ReadOptions
    from discriminant.table.encoding import Encoding

_BLOCK = 1 << 20  # bytes parsed at a time
_MANY_CELLS = 1 << 20  # cells from which columns are converted by several threads
_WORDS = {"boolean": "truth value", "date": "date (YYYY-MM-DD)", "time": "time (YYYY-MM-DD hh:mm)"}


@dataclass(frozen=True, slots=True)
class CsvRow:
    """Fields of one row, exactly as in the file."""

    line: int  # line on which the row begins, counted from 1
    fields: list[str]
    unclosed_quote: bool  # whether a quote is never closed


def raise_first_error(plan: CsvColumns) -> None:
    """Raise the error for the first invalid row or cell, if there is one."""
    format, names = plan.format, plan.format.csv_dialect.names
    columns = [(j, name, plan.kinds[name]) for j, name in enumerate(names) if name in plan.kinds]
    rows = _csv_rows(format)
    next(rows, None)  # the header
    for number, row in enumerate(rows):
        if row.unclosed_quote:
            raise FileError.open_quote(format.path, row.line)
        if len(row.fields) != len(names):
            raise FileError.ragged(
                format.path, row.line, expected=len(names), found=len(row.fields)
            )
        for j, name, kind in columns:
            text = row.fields[j]
            if len(text) > MAX_FIELD:
                raise FileError.long_field(format.path, row.line, name, MAX_FIELD)
            if text not in plan.missing and not fits_kind(text, kind, format.decimal):
                word = _WORDS.get(kind, kind)
                raise BadNumberError.of(number, name, text, line=row.line, kind=word)


def check_quotes(
    format: FileFormat, columns: Collection[str], span: tuple[int, int] | None = None
) -> None:
    """Raise FileError if text follows the closing quote of a field in one of these columns.

    pyarrow would join the field and the text: `"1"5` would become 15.
    """
    dialect = format.csv_dialect
    with format.open_text(span=span) as stream:
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
            continue  # the quote is within an unquoted field
        closes = odd if quoted else not odd
        quoted = quoted != odd
        if closes and end < len(text) and text[end] not in after:
            unquoted = text[record:start].split(quote)[::2]
            column = sum(part.count(delimiter) for part in unquoted)
            name = dialect.names[column] if column < len(dialect.names) else ""
            if name in columns:
                line = _lines_before(format, span) + _line_ends(text[:start]) + 1
                shown = re.split(b"[%b\r\n]" % re.escape(delimiter), text[end:], maxsplit=1)[0]
                raise FileError.after_quote(
                    format.path, line, name, shown.decode(errors="replace"), dialect.quote
                )


def _line_ends(text: bytes) -> int:
    return text.count(b"\n") or text.count(b"\r")


def _lines_before(format: FileFormat, span: tuple[int, int] | None) -> int:
    if span is None or not span[0]:
        return 0
    with format.open_text(span=(0, span[0])) as stream:
        return _line_ends(stream.read())


def line_of_row(format: FileFormat, row: int) -> int:
    """Return the line of the file, counted from 1, on which a row begins."""
    return _csv_row(format, row).line


def lines_of_rows(format: FileFormat, rows: Sequence[int]) -> list[int]:
    """Return the lines of the file, counted from 1, on which the given rows begin."""
    wanted, lines = set(rows), dict[int, int]()
    with closing(_csv_rows(format)) as all_rows:  # type: ignore[type-var]
        for number, row in enumerate(islice(all_rows, 1, max(rows, default=-1) + 2)):
            if number in wanted:
                lines[number] = row.line
    return [lines[row] for row in rows]


def cell_of_row(format: FileFormat, row: int, column: str) -> str:
    """Return the text of a cell, exactly as in the file."""
    return _csv_row(format, row).fields[format.csv_dialect.names.index(column)]


def count_rows_before(format: FileFormat, byte: int) -> int:
    """Return the number of rows before position `byte`, at which a line begins."""
    return max(sum(1 for _ in _csv_rows(format, (0, byte))) - 1, 0)


def _csv_row(format: FileFormat, row: int) -> CsvRow:
    with closing(_csv_rows(format)) as rows:  # type: ignore[type-var]
        return next(islice(rows, row + 1, None))


def _csv_rows(format: FileFormat, span: tuple[int, int] | None = None) -> Iterator[CsvRow]:
    """Yield the rows of a file, including the header. Empty lines are skipped."""
    dialect = format.csv_dialect
    with (
        large_field_limit(),
        format.open_text(span=span) as stream,
        io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8", newline="") as text,
    ):
        lines = _CountedLines(text, format.path, dialect.quote)
        reader = csv.reader(lines, delimiter=dialect.delimiter, quotechar=dialect.quote)
        while True:
            start = lines.number + 1
            lines.quotes = 0
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error:
                # Only an unclosed quote can make a field longer than the longest allowed line.
                raise FileError.open_quote(format.path, start) from None
            if fields:
                yield CsvRow(start, fields, lines.ended and lines.quotes % 2 == 1)


class _CountedLines:
    """Iterator over lines, which counts lines and quotes and limits the length of a line."""

    def __init__(self, text: TextIO, path: str, quote: str) -> None:
        self._text, self._path, self._quote = text, path, quote
        self.number = 0
        self.quotes = 0
        self.ended = False

    def __iter__(self) -> _CountedLines:
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


@dataclass(frozen=True, slots=True)
class CsvColumns:
    """Columns to read from a CSV, with their kinds and the texts that mean "missing"."""

    format: FileFormat
    kinds: Mapping[str, CsvKind]  # kinds of the columns to read
    missing: tuple[str, ...] = MISSING_TEXTS  # texts that mean a missing number
    empty: tuple[str, ...] = ("",)  # texts that mean a missing category
    target: str | None = None  # in this column only an empty cell is missing
    max_bytes: int = MAX_BYTES

    @classmethod
    def from_options(
        cls,
        format: FileFormat,
        kinds: Mapping[str, CsvKind],
        options: ReadOptions,
        fitted: Encoding | None,
        *,
        max_bytes: int = MAX_BYTES,
    ) -> CsvColumns:
        """Create from the options, or from the encoding of a fitted model."""
        texts = options.missing_texts
        missing = {} if texts is None else {"missing": missing_number_texts(texts), "empty": texts}
        target = options.target if fitted is None else fitted.target
        return cls(format, kinds, target=target, max_bytes=max_bytes, **missing)

    def open_text(self, span: tuple[int, int] | None = None) -> TextStream:
        """Open the text of the file, or a byte range of it. The stream also counts quotes."""
        dialect = self.format.csv_dialect
        return self.format.open_text(
            max_bytes=self.max_bytes, quote=dialect.quote, delimiter=dialect.delimiter, span=span
        )

    def parse_options(self, *, multiline: bool) -> Any:
        """Return the options of pyarrow's parser."""
        from pyarrow import csv

        dialect = self.format.csv_dialect
        return csv.ParseOptions(
            delimiter=dialect.delimiter, quote_char=dialect.quote, newlines_in_values=multiline
        )

    def convert_options(self) -> Any:
        """Return the options that tell pyarrow how to convert the columns."""
        from pyarrow import csv

        dialect = self.format.csv_dialect
        position = {name: j for j, name in enumerate(dialect.names)}
        types = {
            dialect.header[position[name]]: _type(kind, dialect.mostly_distinct[position[name]])
            for name, kind in self.kinds.items()
        }
        return csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=list(self.missing),
            strings_can_be_null=False,
            true_values=list(TRUE),
            false_values=list(FALSE),
            decimal_point=dialect.decimal,
        )


def read_csv(plan: CsvColumns) -> tuple[Frame, FileFormat]:
    """Read all rows of a CSV.

    Returns
    -------
    frame : Frame
        Cells of the columns in the plan.
    format : FileFormat
        The format, with the text encoding as detected from the whole file.
    """
    import pyarrow as pa

    try:
        table = _read(plan)
    except EncodingMismatch as mismatch:
        plan = replace(plan, format=plan.format.with_encoding(mismatch.encoding))
        table = _read(plan)
    format, names = plan.format, plan.format.csv_dialect.names
    if not table.num_rows:
        raise FileError.no_rows(format.path, len(names))
    rows, tables = table.num_rows, [table]
    del table  # so that the function can release every column once it is converted
    cells = cells_from_csv(tables.pop(), plan)
    if rows * len(cells) >= _MANY_CELLS:
        pa.default_memory_pool().release_unused()  # to the system: the copies need as much
    frame = Frame(
        cells,
        rows,
        line_of=lambda row: line_of_row(format, row),
        text_of=lambda row, column: cell_of_row(format, row, column),
        excluded=tuple(name for name in names if name not in plan.kinds),
    )
    return frame, format


def _read(plan: CsvColumns) -> Any:
    """Read the file as an Arrow table, in the fast mode if possible."""
    import pyarrow as pa

    multiline, block = plan.format.csv_dialect.multiline, _BLOCK
    while True:
        try:
            return _try_read(plan, multiline=multiline, block=block)
        except pa.ArrowInvalid as fault:
            reason = str(fault)
            if "out of sync" in reason and not multiline:
                multiline = True
            elif "straddl" in reason and block == _BLOCK:
                block = 4 * MAX_LINE
            else:
                raise_first_error(plan)
                raise FileError.damaged(plan.format.path, "the text", reason) from None


def _try_read(plan: CsvColumns, *, multiline: bool, block: int) -> Any:
    from pyarrow import csv

    with plan.open_text() as stream:
        with arrow_input(stream) as open_input:
            table = csv.read_csv(
                open_input(),
                read_options=csv.ReadOptions(block_size=block),
                parse_options=plan.parse_options(multiline=multiline),
                convert_options=plan.convert_options(),
            )
        if stream.quotes % 2:
            raise_first_error(plan)
        if stream.text_after_quote:
            check_quotes(plan.format, plan.kinds)
    return table.rename_columns(list(plan.kinds))


def _type(kind: CsvKind, mostly_distinct: bool) -> Any:
    import pyarrow as pa

    if kind in ("text", "empty", "grouped"):
        return pa.string() if mostly_distinct else pa.dictionary(pa.int32(), pa.string())
    known = {"number": pa.float64(), "boolean": pa.bool_(), "date": pa.date32()}
    return known.get(kind, pa.timestamp("us"))


def cells_from_csv(table: Any, plan: CsvColumns) -> tuple[ColumnCells, ...]:
    """Convert an Arrow table to cells; release each column as soon as it is converted."""
    import pyarrow as pa

    names, columns = table.column_names, list(table.columns)
    threads = pa.cpu_count() if table.num_rows * len(names) >= _MANY_CELLS else 1
    del table

    def convert(name: str) -> ColumnCells:
        missing = ("",) if name == plan.target else plan.empty
        j = names.index(name)
        column, columns[j] = columns[j], None
        return cells_from_arrow_column(name, column, missing=missing)

    converted = []
    if threads == 1:
        cells_of = list(map(convert, names))
    else:
        with ThreadPoolExecutor(threads) as pool:
            cells_of = list(pool.map(in_thread(convert), names))
    for name, cells in zip(names, cells_of, strict=True):
        if cells.kind == "text":
            if max(map(len, cells.levels), default=0) > MAX_FIELD:
                raise_first_error(plan)
            if plan.kinds[name] == "empty":
                cells = _as_numbers_if_all(cells, plan)
            if plan.kinds[name] == "grouped":
                cells = _grouped_numbers(cells, plan)
        converted.append(cells)
    return tuple(converted)


def _grouped_numbers(cells: ColumnCells, plan: CsvColumns) -> ColumnCells:
    """Parse numbers with grouped digits in a column that must be numeric.

    The option `thousands` states the sign between the groups.
    """
    dialect = plan.format.csv_dialect
    assert dialect.thousands is not None
    parse = text_parser(number_format(dialect.thousands, dialect.decimal))
    values = [np.nan if text in plan.missing else parse(text) for text in cells.levels]
    for code, value in enumerate(values):
        rows = np.flatnonzero(cells.values == code) if value is None else ()
        for row in rows[:1]:
            raise BadNumberError.of(int(row), cells.name, cells.levels[code])
    by_code = np.array([np.nan if value is None else value for value in values] + [np.nan])
    return ColumnCells(cells.name, "number", by_code[cells.values])


def _as_numbers_if_all(cells: ColumnCells, plan: CsvColumns) -> ColumnCells:
    """Convert the column to numbers if all its values are numbers.

    This function is for columns whose first rows were empty, so that their kind was unknown.
    """
    decimal = plan.format.decimal
    texts = [text for text in cells.levels if text not in plan.missing]
    if not all(is_number(text, decimal) for text in texts):
        return cells
    number = {text: float(text.replace(decimal, ".")) for text in texts}
    by_code = np.array([number.get(text, np.nan) for text in cells.levels] + [np.nan])
    return ColumnCells(cells.name, "number", by_code[cells.values])
