"""How a CSV is written: delimiter, decimal sign, quote, names, and the kind of each column.

All is judged on the header and the first rows, and then holds for the whole file: a cell further
down that does not fit is an error with its place, never a change of mind.

A column is of numbers if its cells are, and also if nearly all are and they look measured (with
decimals, or many different ones), or if the others look like `?`: then these are to be told. A
text is a number if Python's float takes it, but for digits grouped by `_` and other alphabets'
digits, which are refused.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from discriminant.errors import ColumnNamesError, FileError, OptionError
from discriminant.table.text_values import parse_texts

CsvKind = Literal["number", "grouped", "boolean", "date", "time", "text", "empty"]

MAX_FIELD = 10**6  # characters
MAX_LINE = 10 * 10**6
MAX_COLUMNS = 10**5
MISSING_TEXTS = ("", "NA", "NaN", "nan", "null", "NULL")  # texts that stand for no number
MAYBE_MISSING = ("na", "n/a", "nan", "null", "none", "?", "-", ".", "missing")  # perhaps missing
DELIMITERS = ",;\t|"
THOUSANDS = (",", ".", " ", "'")  # signs between groups of three digits
TRUE = ("true", "True", "TRUE")
FALSE = ("false", "False", "FALSE")

_ROWS = 1000  # of the sample, to judge kinds by
_NUMBER = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf(inity)?|nan)", re.I
)
_COMMA = re.compile(r"[+-]?([0-9]+,[0-9]+)([eE][+-]?[0-9]+)?")
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+")  # 1,234: perhaps grouped digits
_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")  # Python refuses to read integers of more digits
_DIGITS_EXACT = 15  # that float64 always holds
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?")
_WORDS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """How a CSV is written."""

    delimiter: str
    decimal: str
    quote: str
    names: tuple[str, ...]
    header: tuple[str, ...]  # the names as they are written, one of which may be empty
    kinds: tuple[CsvKind, ...]
    mostly_distinct: tuple[bool, ...]  # texts of which most are different
    multiline: bool  # some field of the sample has a line end in it
    thousands: str | None = None  # sign between groups of digits, where the user named one

    @property
    def description(self) -> str:
        """The dialect in a few words."""
        by = _WORDS.get(self.delimiter, repr(self.delimiter))
        alone = len(self.names) == 1
        quoted = "" if self.quote == '"' else f", quotes are {self.quote}"
        comma = ", decimal comma" if self.decimal == "," else ""
        return f"{'one column' if alone else f'fields separated by {by}'}{comma}{quoted}"


def detect_dialect(
    path: str,
    sample: str,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
) -> CsvDialect:
    """The dialect of a text that begins with `sample`, at least one line."""
    if delimiter is not None and (len(delimiter) != 1 or delimiter in "\"'\r\n"):
        raise OptionError.of("delimiter", delimiter, "one character, no quote and no line end")
    if decimal not in (None, ".", ","):
        raise OptionError.of("decimal", decimal, "'.' or ','")
    check_thousands(thousands, decimal)
    if thousands in (",", ".") and decimal is None:
        decimal = "." if thousands == "," else ","
    sample = _whole_lines(sample)
    quote = _quote_of(sample)
    if delimiter is None:
        delimiter = _delimiter_of(sample, quote)
    rows = sample_rows(sample, delimiter, quote)
    header, rows = rows[0], rows[1:]
    if len(header) > MAX_COLUMNS:
        raise FileError.many_columns(path, len(header), MAX_COLUMNS)
    _check_names(path, header)
    _check_widths(path, header, rows, delimiter)
    names = tuple(name or f"column {j + 1}" for j, name in enumerate(header))
    columns = [[row[j] for row in rows if len(row) > j] for j in range(len(names))]
    decimal = decimal or ("," if _decimal_comma(columns) else ".")
    kinds = tuple(infer_kind(cells, decimal, thousands) for cells in columns)
    varied = tuple(len(set(cells)) > 0.5 * len(cells) for cells in columns)
    broken = any("\n" in cell or "\r" in cell for cells in columns for cell in cells)
    return CsvDialect(
        delimiter, decimal, quote, names, tuple(header), kinds, varied, broken, thousands
    )


def check_thousands(thousands: str | None, decimal: str | None = None) -> None:
    """Refuse a sign between thousands that no number is written with."""
    if thousands not in (None, *THOUSANDS) or (thousands is not None and thousands == decimal):
        allowed = "',', '.', ' ' or an apostrophe, and not the decimal sign"
        raise OptionError.of("thousands", thousands, allowed)


def is_number(text: str, decimal: str = ".") -> bool:
    """Whether a text is a number, or an infinity.

    >>> [is_number(text) for text in ("1e5", " +.5", "0xFF", "1_000", "TRUE", "1,5")]
    [True, True, False, False, False, False]
    """
    text = text.strip(" \t")
    if decimal == ",":
        if "." in text:
            return False
        text = text.replace(",", ".")
    return _NUMBER.fullmatch(text) is not None


def fits_kind(text: str, kind: CsvKind, decimal: str) -> bool:
    """Whether a cell that is not missing can stand in a column of that kind."""
    if kind == "number":
        return is_number(text, decimal)
    if kind == "boolean":
        return text in TRUE or text in FALSE
    return _looks(text, kind) and (kind not in ("date", "time") or _in_calendar(text))


def _looks(text: str, kind: CsvKind) -> bool:
    """Whether a cell is written as a date or time is; whether there is such a day is not asked."""
    if kind == "date":
        return _DATE.fullmatch(text) is not None
    return kind != "time" or bool(_TIME.fullmatch(text) or _DATE.fullmatch(text))


def _in_calendar(text: str) -> bool:
    """Whether there is such a day, and such a time in it; 0000 is a leap year, as 2000 is."""
    try:
        datetime.fromisoformat(f"2{text[1:]}" if text.startswith("0000") else text)
    except ValueError:
        return False
    return True


def infer_kind(cells: Sequence[str], decimal: str, thousands: str | None = None) -> CsvKind:
    """The kind of a column, from some of its cells.

    Integers that float64 cannot tell apart, or that need more than 64 bits, are texts.

    >>> infer_kind(["1", "2.5", "NA"], "."), infer_kind(["a", "1"], "."), infer_kind(["TRUE"], ".")
    ('number', 'text', 'boolean')
    """
    some = [cell for cell in cells if cell not in MISSING_TEXTS]
    if not some:
        return "empty"
    numbers = [cell for cell in some if is_number(cell, decimal)]
    if len(numbers) == len(some):
        return "text" if _long_integers(some) else "number"
    if thousands is not None and parse_texts(set(some), thousands=thousands) is not None:
        return "text"  # grouped digits are read where the column is encoded
    if _meant_as_numbers(numbers, some):
        return "number" if parse_texts(set(some)) is None else "text"
    if all(cell in TRUE or cell in FALSE for cell in some):
        return "boolean"
    for kind in ("date", "time"):  # 2024-02-30 is a mistake in a column of dates
        if all(_looks(cell, kind) for cell in some):
            return kind
    return "text"


def _long_integers(cells: Sequence[str]) -> bool:
    """Whether numbers are integers that float64 would merge, or of more than 64 bits.

    >>> _long_integers(["18446744073709551617", "18446744073709551618"]), _long_integers(["1e30"])
    (True, False)
    """
    if max(map(len, cells)) <= _DIGITS_EXACT:
        return False
    texts = {cell.strip() for cell in cells}
    if not all(_INTEGER.fullmatch(text) for text in texts):
        return False
    whole = {int(text) for text in texts}
    if max(whole) >= 1 << 64 or min(whole) < -(1 << 63):
        return True
    return len({float(value) for value in whole}) < len(whole)


def sample_rows(sample: str, delimiter: str, quote: str, most: int = _ROWS) -> list[list[str]]:
    """The first rows of a text; empty lines are none."""
    with large_field_limit():
        reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter, quotechar=quote)
        found: list[list[str]] = []
        try:
            for row in reader:
                if row:
                    found.append(row)
                if len(found) > most:
                    break
        except csv.Error:  # a field too long: told with its place when all is read
            pass
    return found or [[""]]


@contextmanager
def large_field_limit() -> Iterator[None]:
    """Let Python's reader take fields as long as lines may be; its own limit is smaller."""
    before = csv.field_size_limit(MAX_LINE)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _meant_as_numbers(numbers: Sequence[str], some: Sequence[str]) -> bool:
    """Whether a column with texts among its numbers is one of numbers, with mistakes."""
    distinct, others = set(numbers), {cell.casefold() for cell in set(some) - set(numbers)}
    measured = len(distinct) > 10 or any("." in cell or "," in cell for cell in distinct)
    if len(numbers) >= 0.8 * len(some) and (measured or len(distinct) > 0.5 * len(some)):
        return True
    if numbers and others <= set(MAYBE_MISSING):
        return True
    return all(_COMMA.fullmatch(cell) or _GROUPED.fullmatch(cell) for cell in some)


def _whole_lines(sample: str) -> str:
    """The sample without a last line that may be cut; of one line, that line."""
    end = max(sample.rfind("\n"), sample.rfind("\r"))
    return sample[: end + 1] if end > 0 else sample


def _first_line(sample: str) -> str:
    return next((line for line in sample.splitlines() if line.strip()), "")


def _quote_of(sample: str) -> str:
    """A single quote where the fields of the header all stand in such, else a double one."""
    for delimiter in DELIMITERS:
        fields = _first_line(sample).split(delimiter)
        if all(len(f) > 1 and f[0] == f[-1] == "'" for f in fields):
            return "'"
    return '"'


def _delimiter_of(sample: str, quote: str) -> str:
    """The delimiter by which most rows have as many fields as the header, and that is many."""

    def merit(delimiter: str) -> tuple[float, int]:
        rows = sample_rows(sample, delimiter, quote, 100)
        width = len(rows[0])
        if width < 2:
            return -1.0, 1
        same = sum(len(row) == width for row in rows[1:])
        return round(same / max(len(rows) - 1, 1), 1), width

    return max(DELIMITERS, key=merit)


def _decimal_comma(columns: Sequence[Sequence[str]]) -> bool:
    """Whether numbers are written 1,5: some are, none is written 1.5, and 1,234 proves nothing."""
    proven = False
    for cells in columns:
        some = [cell.strip() for cell in cells if cell not in MISSING_TEXTS]
        if some and all(is_number(cell) for cell in some) and any("." in cell for cell in some):
            return False
        commas = [cell for cell in some if _COMMA.fullmatch(cell)]
        if len(commas) >= 0.5 * len(some) and any(not _GROUPED.fullmatch(c) for c in commas):
            proven = True
    return proven


def _check_names(path: str, header: Sequence[str]) -> None:
    if len(header) > 1 and all(is_number(name) or is_number(name, ",") for name in header):
        raise FileError.no_header(path, header)
    if len(set(header)) < len(header):
        name = next(name for j, name in enumerate(header) if name in header[:j])
        places = [j + 1 for j, other in enumerate(header) if other == name]
        raise ColumnNamesError.of_header(path, name, places)


def _check_widths(
    path: str, header: Sequence[str], rows: Sequence[Sequence[str]], delimiter: str
) -> None:
    widths = {len(row) for row in rows}
    if len(rows) > 1 and len(widths) == 1 and (found := widths.pop()) != len(header):
        raise FileError.all_ragged(path, expected=len(header), found=found, delimiter=delimiter)
