"""CSV dialects: detection of delimiter, decimal sign, quote, names and kinds of columns.

The dialect is detected from the header and the first rows, and is applied to the whole file. A
later cell that does not fit the dialect is an error, and the message states its position.

A column is numeric if all its cells are numbers. A column with a few other texts is numeric too if
its numbers look like measurements (they have decimals, or many different values), or if the other
texts look like `?`; these texts are then reported as errors. A text is a number if Python's float
accepts it. Digits grouped by `_` and digits of other alphabets are not accepted.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Literal

from discriminant.errors import ColumnNamesError, FileError, OptionError
from discriminant.table.text_values import parse_texts

CsvKind = Literal["number", "grouped", "boolean", "date", "time", "text", "empty"]

MAX_FIELD = 10**6  # largest number of characters of a field
MAX_LINE = 10 * 10**6
MAX_COLUMNS = 10**5
MISSING_TEXTS = ("", "NA", "NaN", "nan", "null", "NULL")  # texts that mean a missing number


def missing_number_texts(more: Sequence[str] | None) -> tuple[str, ...]:
    """Return the texts that mean a missing number: `MISSING_TEXTS` and those given by the user.

    >>> missing_number_texts(["", "?"])
    ('', 'NA', 'NaN', 'nan', 'null', 'NULL', '?')
    """
    return tuple(dict.fromkeys((*MISSING_TEXTS, *(more or ()))))


MAYBE_MISSING = ("na", "n/a", "nan", "null", "none", "?", "-", ".", "missing")  # may mean missing
DELIMITERS = ",;\t|"
THOUSANDS = (",", ".", " ", "'")  # signs between groups of three digits
TRUE = ("true", "True", "TRUE")
FALSE = ("false", "False", "FALSE")

_SAMPLE_ROWS = 1000  # number of rows from which kinds are inferred
_NUMBER = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf(inity)?|nan)", re.I
)
_COMMA = re.compile(r"[+-]?([0-9]+,[0-9]+)([eE][+-]?[0-9]+)?")
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+")  # such as 1,234: perhaps grouped
_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")  # Python does not parse longer integers
_DIGITS_EXACT = 15  # integers of up to this many digits are exact in float64
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?")
_WORDS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """Delimiter, decimal sign, quote and columns of a CSV."""

    delimiter: str
    decimal: str
    quote: str
    names: tuple[str, ...]
    header: tuple[str, ...]  # names as written in the file; one of them may be empty
    kinds: tuple[CsvKind, ...]
    mostly_distinct: tuple[bool, ...]  # whether most texts of a column are different
    multiline: bool  # whether a field of the sample contains a line end
    thousands: str | None = None  # sign between groups of digits, if the user states one

    @property
    def description(self) -> str:
        """Description of the dialect in a few words."""
        separator = _WORDS.get(self.delimiter, repr(self.delimiter))
        fields = "one column" if len(self.names) == 1 else f"fields separated by {separator}"
        quoted = "" if self.quote == '"' else f", quotes are {self.quote}"
        comma = ", decimal comma" if self.decimal == "," else ""
        return f"{fields}{comma}{quoted}"


def detect_dialect(
    path: str,
    sample: str,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
) -> CsvDialect:
    """Detect the dialect of a CSV.

    Parameters
    ----------
    path : str
        Path of the file, for messages.
    sample : str
        Beginning of the text. The sample has at least one line.
    delimiter, decimal, thousands : str, optional
        Signs stated by the user, which are then not detected.

    Returns
    -------
    CsvDialect
        The dialect, with the kind of each column.
    """
    if delimiter is not None and (len(delimiter) != 1 or delimiter in "\"'\r\n"):
        raise OptionError.of("delimiter", delimiter, "one character, no quote and no line end")
    if decimal not in (None, ".", ","):
        raise OptionError.of("decimal", decimal, "'.' or ','")
    check_thousands(thousands, decimal)
    if thousands in (",", ".") and decimal is None:
        decimal = "." if thousands == "," else ","
    sample = _complete_lines(sample)
    quote = _detect_quote(sample)
    if delimiter is None:
        delimiter = _detect_delimiter(sample, quote)
    header, *rows = sample_rows(sample, delimiter, quote)
    if len(header) > MAX_COLUMNS:
        raise FileError.many_columns(path, len(header), MAX_COLUMNS)
    _check_names(path, header)
    _check_widths(path, header, rows, delimiter)
    names = tuple(name or f"column {j + 1}" for j, name in enumerate(header))
    columns = [[row[j] for row in rows if len(row) > j] for j in range(len(names))]
    decimal = decimal or ("," if _has_decimal_comma(columns) else ".")
    return CsvDialect(
        delimiter,
        decimal,
        quote,
        names,
        tuple(header),
        kinds=tuple(infer_kind(cells, decimal, thousands) for cells in columns),
        mostly_distinct=tuple(len(set(cells)) > 0.5 * len(cells) for cells in columns),
        multiline=any("\n" in cell or "\r" in cell for cells in columns for cell in cells),
        thousands=thousands,
    )


def check_thousands(thousands: str | None, decimal: str | None = None) -> None:
    """Raise OptionError if `thousands` cannot be used to group digits."""
    if thousands not in (None, *THOUSANDS) or (thousands is not None and thousands == decimal):
        allowed = "',', '.', ' ' or an apostrophe, and not the decimal sign"
        raise OptionError.of("thousands", thousands, allowed)


def is_number(text: str, decimal: str = ".") -> bool:
    """Whether a text is a number. Infinity and NaN count as numbers.

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
    """Whether a text (not of a missing cell) is valid in a column of this kind."""
    if kind == "number":
        return is_number(text, decimal)
    if kind == "boolean":
        return text in TRUE or text in FALSE
    return _matches(text, kind) and (kind not in ("date", "time") or _in_calendar(text))


def _matches(text: str, kind: CsvKind) -> bool:
    """Whether a text has the format of a date or time, even if no such day exists."""
    if kind == "date":
        return _DATE.fullmatch(text) is not None
    return kind != "time" or bool(_TIME.fullmatch(text) or _DATE.fullmatch(text))


def _in_calendar(text: str) -> bool:
    """Whether the day and time exist. The year 0000 counts as a leap year, like 2000."""
    try:
        datetime.fromisoformat(f"2{text[1:]}" if text.startswith("0000") else text)
    except ValueError:
        return False
    return True


def infer_kind(cells: Sequence[str], decimal: str, thousands: str | None = None) -> CsvKind:
    """Infer the kind of a column from some of its cells.

    Columns with different integers that are equal in float64, or with integers of more than 64
    bits, are texts.

    >>> infer_kind(["1", "2.5", "NA"], "."), infer_kind(["a", "1"], "."), infer_kind(["TRUE"], ".")
    ('number', 'text', 'boolean')
    """
    known = [cell for cell in cells if cell not in MISSING_TEXTS]
    if not known:
        return "empty"
    numbers = [cell for cell in known if is_number(cell, decimal)]
    if len(numbers) == len(known):
        return "text" if _long_integers(known) else "number"
    if thousands is not None and parse_texts(set(known), thousands=thousands) is not None:
        return "text"  # grouped digits are parsed when the column is encoded
    if _meant_as_numbers(numbers, known):
        return "number" if parse_texts(set(known)) is None else "text"
    if all(cell in TRUE or cell in FALSE for cell in known):
        return "boolean"
    for kind in ("date", "time"):  # 2024-02-30 is an error in a column of dates
        if all(_matches(cell, kind) for cell in known):
            return kind
    return "text"


def _long_integers(cells: Sequence[str]) -> bool:
    """Whether the cells are integers that float64 or 64 bits cannot represent.

    The result is True if different integers are equal in float64, or if an integer needs more than
    64 bits.

    >>> _long_integers(["18446744073709551617", "18446744073709551618"]), _long_integers(["1e30"])
    (True, False)
    """
    if max(map(len, cells)) <= _DIGITS_EXACT:
        return False
    texts = {cell.strip() for cell in cells}
    if not all(_INTEGER.fullmatch(text) for text in texts):
        return False
    integers = {int(text) for text in texts}
    if max(integers) >= 1 << 64 or min(integers) < -(1 << 63):
        return True
    return len({float(value) for value in integers}) < len(integers)


def sample_rows(
    sample: str, delimiter: str, quote: str, most: int = _SAMPLE_ROWS
) -> list[list[str]]:
    """Return the first rows of a text, including the header. Empty lines are skipped."""
    rows: list[list[str]] = []
    with large_field_limit():
        reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter, quotechar=quote)
        # Fields that are too long are reported, with their position, when the whole file is read.
        with suppress(csv.Error):
            for row in islice(filter(None, reader), most + 1):
                rows.append(row)
    return rows or [[""]]


@contextmanager
def large_field_limit() -> Iterator[None]:
    """Make Python's CSV reader accept long fields within a `with` block.

    The default limit of the reader is too low for long fields.
    """
    before = csv.field_size_limit(MAX_LINE)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _meant_as_numbers(numbers: Sequence[str], known: Sequence[str]) -> bool:
    """Whether a column with numbers and a few other texts is meant to be numeric."""
    distinct, others = set(numbers), {cell.casefold() for cell in set(known) - set(numbers)}
    measured = len(distinct) > 10 or any("." in cell or "," in cell for cell in distinct)
    if len(numbers) >= 0.8 * len(known) and (measured or len(distinct) > 0.5 * len(known)):
        return True
    if numbers and others <= set(MAYBE_MISSING):
        return True
    return all(_COMMA.fullmatch(cell) or _GROUPED.fullmatch(cell) for cell in known)


def _complete_lines(sample: str) -> str:
    """Remove the last line of the sample, which may be incomplete, unless it is the only one."""
    end = max(sample.rfind("\n"), sample.rfind("\r"))
    return sample[: end + 1] if end > 0 else sample


def _detect_quote(sample: str) -> str:
    """Return a single quote if all fields of the header have one, otherwise a double quote."""
    header = next((line for line in sample.splitlines() if line.strip()), "")
    for delimiter in DELIMITERS:
        if all(len(f) > 1 and f[0] == f[-1] == "'" for f in header.split(delimiter)):
            return "'"
    return '"'


def _detect_delimiter(sample: str, quote: str) -> str:
    """Return the delimiter for which most rows have as many fields as the header.

    If several delimiters are equally good, the one that gives the most fields is chosen.
    """

    def merit(delimiter: str) -> tuple[float, int]:
        rows = sample_rows(sample, delimiter, quote, 100)
        width = len(rows[0])
        if width < 2:
            return -1.0, 1
        same = sum(len(row) == width for row in rows[1:])
        return round(same / max(len(rows) - 1, 1), 1), width

    return max(DELIMITERS, key=merit)


def _has_decimal_comma(columns: Sequence[Sequence[str]]) -> bool:
    """Whether some numbers have a decimal comma, and none has a decimal point.

    1,5 has a decimal comma; the comma of 1,234 may group digits and does not count.
    """
    proven = False
    for cells in columns:
        known = [cell.strip() for cell in cells if cell not in MISSING_TEXTS]
        if known and all(is_number(cell) for cell in known) and any("." in cell for cell in known):
            return False
        commas = [cell for cell in known if _COMMA.fullmatch(cell)]
        if len(commas) >= 0.5 * len(known) and any(not _GROUPED.fullmatch(c) for c in commas):
            proven = True
    return proven


def _check_names(path: str, header: Sequence[str]) -> None:
    if len(header) > 1 and all(is_number(name) or is_number(name, ",") for name in header):
        raise FileError.no_header(path, header)
    if len(set(header)) < len(header):
        name = next(name for j, name in enumerate(header) if name in header[:j])
        positions = [j + 1 for j, other in enumerate(header) if other == name]
        raise ColumnNamesError.of_header(path, name, positions)


def _check_widths(
    path: str, header: Sequence[str], rows: Sequence[Sequence[str]], delimiter: str
) -> None:
    widths = {len(row) for row in rows}
    if len(rows) > 1 and len(widths) == 1 and (width := widths.pop()) != len(header):
        raise FileError.all_ragged(path, expected=len(header), found=width, delimiter=delimiter)
