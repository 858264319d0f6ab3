"""Values of texts: parse numbers and dates such as 7.039,00, $143,548, 41% or 27.10.2023.

A column of texts is parsed if all of its texts fit one of the following formats, and no other
format that fits all of them would give different values:

    grouped digits   1,234.5   1.234,5   1'234.5   1 234,5   1 234.5
    with a unit      the same unit in every text, before or after: $ € £ ¥ % or a code such as EUR
    dates            2023-10-27   2023/10/27   27.10.2023   27/10/2023 or 10/27/2023, also with -

    $1,234           grouped: amounts of money have two decimals, not three
    1,234 ambiguous: 1.234 or 1234. The date 01/02/2023 is ambiguous too: January or February.
    Ambiguous texts are parsed only if another text of the column decides which format is used;
    otherwise `explain_unparsed` gives the reason. If the user states the sign `thousands`, only
    that sign groups digits 1,234,567        grouped: a number has only one decimal comma

Plain numbers that are stored as texts stay texts, because they may be names. The format is stored
with the model. The value of 41% is 41.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

Values = Mapping[str, float]

_UNIT = r"[$€£¥%]|USD|EUR|GBP|CHF|JPY"
_SPACES = " \u00a0\u202f"
_STYLES = {  # sign between groups of three digits, and decimal sign
    "1,234.5": (",", "."),
    "1.234,5": (".", ","),
    "1'234.5": ("'\u2019", "."),
    "1 234,5": (_SPACES, ","),
    "1 234.5": (_SPACES, "."),
}
ISO_DATE = "YYYY-MM-DD"
_CLOCK = r"(?:[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?)?"
_DATES = {  # pattern, and positions of year, month and day in it
    "YYYY-MM-DD": (r"([0-9]{4})-([0-9]{2})-([0-9]{2})", (0, 1, 2)),
    "YYYY/MM/DD": (r"([0-9]{4})/([0-9]{1,2})/([0-9]{1,2})", (0, 1, 2)),
    "DD.MM.YYYY": (r"([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})", (2, 1, 0)),
    "DD/MM/YYYY": (r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})", (2, 1, 0)),
    "MM/DD/YYYY": (r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})", (2, 0, 1)),
    "DD-MM-YYYY": (r"([0-9]{1,2})-([0-9]{1,2})-([0-9]{4})", (2, 1, 0)),
    "MM-DD-YYYY": (r"([0-9]{1,2})-([0-9]{1,2})-([0-9]{4})", (2, 0, 1)),
}
_DATE_PATTERN = {name: re.compile(text + _CLOCK) for name, (text, _) in _DATES.items()}
_NUMBER_PARTS = re.compile(rf"([+-]?)\s*({_UNIT})?\s*([+-]?)\s*([0-9].*?)\s*({_UNIT})?")
_DIGITS = {
    name: re.compile(rf"(?:[1-9][0-9]{{0,2}}(?:[{group}][0-9]{{3}})+|[0-9]+)(?:[{decimal}][0-9]+)?")
    for name, (group, decimal) in _STYLES.items()
}
_LIKE_NUMBER = re.compile(
    rf"[+-]?({_UNIT})?\s*[+-]?([0-9]{{1,3}}([.,'\u2019{_SPACES}][0-9]{{3}})*|[0-9]+)([.,][0-9]+)?"
    rf"\s*({_UNIT})?"
)
_LIKE_DATE = re.compile(
    r"([0-9]{4}[./-][0-9]{1,2}[./-][0-9]{1,2}|[0-9]{1,2}[./-][0-9]{1,2}[./-]([0-9]{4}|[0-9]{2}))"
    + _CLOCK
)
_COMMA_GROUPS = re.compile("[+-]?[0-9]{1,3}(,[0-9]{3})+")
_SHORT_YEAR = re.compile(r"[0-9]{1,2}([./-])[0-9]{1,2}\1[0-9]{2}" + _CLOCK)
_MIN_SHARE = 0.8  # least share of number-like or date-like rows for a report
_MAX_TEXTS = 1000  # number of texts examined to explain why a column was not parsed
_EPOCH = datetime(1970, 1, 1)
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class ParsedTexts:
    """Values of texts that are numbers or dates."""

    kind: Literal["number", "date"]
    format: str  # "1.234,5;€" (style; unit) or "DD.MM.YYYY"
    values: Values
    example: str

    @property
    def note(self) -> str:
        """Note on how one of the texts was parsed."""
        if self.kind == "number":
            return f"written as text: {self.example!r} is {self.values[self.example]:.12g}"
        return f"written as {self.format}"


@dataclass(frozen=True, slots=True)
class UnparsedReason:
    """Reason why texts that look like numbers or dates were not parsed."""

    kind: str  # numbers or dates
    example: str
    reason: str


def parse_texts(texts: Collection[str], *, thousands: str | None = None) -> ParsedTexts | None:
    """Parse texts as numbers or dates, if exactly one interpretation fits all of them.

    Parameters
    ----------
    texts : collection of str
        Distinct texts of a column, without the texts that mean "missing".
    thousands : str, optional
        Sign between groups of digits, if the user states it.

    Returns
    -------
    ParsedTexts or None None if no format fits, or if several formats fit with different values.

    Examples
    --------
    >>> parse_texts(["1,234", "56"], thousands=",").values["1,234"]
    1234.0
    >>> parsed = parse_texts(["7.039,00", "120,50"])
    >>> parsed.kind, parsed.values["7.039,00"], parse_texts(["1,234", "2,345"])
    ('number', 7039.0, None)
    """
    if not texts:
        return None
    return _parse_dates(texts) or _parse_numbers(texts, thousands)


def number_format(thousands: str, decimal: str) -> str:
    """Return the format of numbers with these signs, in the notation of `text_parser`.

    >>> number_format(",", "."), number_format(" ", ",")
    ('1,234.5;', '1 234,5;')
    """
    styles = [name for name, (group, _) in _STYLES.items() if thousands in group]
    exact = (name for name in styles if _STYLES[name][1] == decimal)
    return f"{next(exact, styles[0])};"


def number_signs(format: str) -> tuple[str, str, str]:
    """Return the grouping sign, the decimal sign and the unit of a number format.

    >>> number_signs("1.234,5;€")
    ('.', ',', '€')
    """
    style, _, unit = format.partition(";")
    return (*_STYLES[style], unit)


def date_pattern(format: str) -> tuple[str, tuple[int, int, int]]:
    """Return the regular expression of a date format, and the groups of year, month and day.

    >>> date_pattern("DD.MM.YYYY")
    ('([0-9]{1,2})\\\\.([0-9]{1,2})\\\\.([0-9]{4})', (2, 1, 0))
    """
    return _DATES[format]


def text_parser(format: str) -> Callable[[str], float | None]:
    """Return a function that parses texts in a format.

    The function returns None for a text that is not in this format.

    A format that is an empty text stands for ISO dates.
    """
    if not format or format in _DATES:
        return lambda text: _parse_date(text.strip(), format or "YYYY-MM-DD")
    style, _, unit = format.partition(";")
    return lambda text: _parse_number(text, style, unit)


def explain_unparsed(counts: Mapping[str, int]) -> UnparsedReason | None:
    """Explain why texts were not parsed although most look like numbers or dates.

    Parameters
    ----------
    counts : dict of str to int
        Number of rows of each text.

    Returns
    -------
    UnparsedReason or None
        None if the texts do not look like numbers or dates.
    """
    examined = dict(list(counts.items())[:_MAX_TEXTS])
    rows = sum(examined.values())
    for kind, pattern in (("dates", _LIKE_DATE), ("numbers", _LIKE_NUMBER)):
        like = [text for text in examined if pattern.fullmatch(text.strip())]
        marked = like if kind == "dates" else [text for text in like if _has_sign(text)]
        frequent = sum(examined[text] for text in like) >= _MIN_SHARE * rows
        if marked and frequent and (kind == "dates" or _may_be_measured(like)):
            odd = next((text for text in counts if not pattern.fullmatch(text.strip())), None)
            return UnparsedReason(kind, marked[0], _reason(kind, like, odd))
    return None


def _parse_all(
    kind: Literal["number", "date"], format: str, texts: Collection[str]
) -> ParsedTexts | None:
    """Parse texts in one format. If the format does not fit all texts, return None."""
    parse, values = text_parser(format), {}
    for text in texts:
        value = parse(text)
        if value is None:
            return None
        values[text] = value
    return ParsedTexts(kind, format, values, next(iter(texts)))


def _unambiguous(candidates: Sequence[ParsedTexts]) -> ParsedTexts | None:
    """Return the first candidate if all candidates have the same values, otherwise None."""
    if not candidates or any(other.values != candidates[0].values for other in candidates):
        return None
    return candidates[0]


# --- numbers --------------------------------------------------------------------------------------


def _parse_numbers(texts: Collection[str], thousands: str | None) -> ParsedTexts | None:
    match = _NUMBER_PARTS.fullmatch(next(iter(texts)).strip())
    if match is None:
        return None
    unit = match[2] or match[5] or ""
    formats = [f"{k};{unit}" for k, (group, _) in _STYLES.items() if thousands in (None, *group)]
    fits = [fit for form in formats if (fit := _parse_all("number", form, texts)) is not None]
    if unit not in ("", "%"):
        fits = [fit for fit in fits if not _has_three_decimals(texts, fit.format)] or fits
    parsed = _unambiguous(fits)
    if parsed is None:
        return None
    if thousands is not None:
        signs = number_signs(parsed.format)[0]
        grouped = next((text for text in texts if any(sign in text for sign in signs)), None)
        return None if grouped is None else replace(parsed, example=grouped)
    example = max(texts, key=_count_groups)
    if not unit and (not _count_groups(example) or not _may_be_measured(texts)):
        return None
    return replace(parsed, example=example)


def _parse_number(text: str, style: str, unit: str) -> float | None:
    match = _NUMBER_PARTS.fullmatch(text.strip())
    if match is None or (match[1] and match[3]) or (match[2] and match[5]):
        return None
    if (match[2] or match[5] or "") != unit or not _DIGITS[style].fullmatch(match[4]):
        return None
    group, decimal = _STYLES[style]
    digits = "".join(c for c in match[4] if c not in group).replace(decimal, ".")
    return float((match[1] or match[3]) + digits)


def _has_three_decimals(texts: Collection[str], format: str) -> bool:
    """Whether all texts that have decimals in this format have exactly three decimals."""
    decimal = re.escape(number_signs(format)[1])
    matches = (re.search(rf"{decimal}([0-9]+)\D*$", text) for text in texts)
    decimals = [match[1] for match in matches if match]
    return bool(decimals) and all(len(digits) == 3 for digits in decimals)


def _count_groups(text: str) -> int:
    """Count the signs in a text that certainly group digits: 1 in 1.234,5 but 0 in 1,234."""
    signs = re.findall(rf"(?<=[0-9])[.,'\u2019{_SPACES}](?=[0-9])", text.strip())
    if len(signs) == 1 and signs[0] in ".,":
        return 0
    return len(signs) - (len(set(signs)) > 1)


def _has_sign(text: str) -> bool:
    pattern = rf"{_UNIT}|[0-9][,'\u2019{_SPACES}][0-9]"
    return re.search(pattern, text) is not None or _count_groups(text) > 0


def _may_be_measured(texts: Collection[str]) -> bool:
    """Whether texts may be measurements. Grouped digits of equal length may be codes instead."""
    if any(re.search(_UNIT, text) for text in texts):
        return True
    if all(_COMMA_GROUPS.fullmatch(text.strip()) for text in texts):
        return True  # codes have no commas
    return len({len(text.strip()) for text in texts}) > 1


# --- dates ----------------------------------------------------------------------------------------


def _parse_dates(texts: Collection[str]) -> ParsedTexts | None:
    return _unambiguous([p for k in _DATES if (p := _parse_all("date", k, texts)) is not None])


def _parse_date(text: str, format: str) -> float | None:
    """Return a date as days since 1970-01-01, or None if the text is not a date in this format."""
    match = _DATE_PATTERN[format].fullmatch(text)
    if match is None:
        return None
    year, month, day = (int(match[position + 1]) for position in _DATES[format][1])
    hour, minute, second = (int(match[position] or 0) for position in (4, 5, 6))
    micro = int((match[7] or "0").ljust(6, "0"))
    try:
        moment = datetime(year, month, day, hour, minute, second, micro)
    except ValueError:
        return None
    return (moment - _EPOCH).total_seconds() / _DAY


# --- reasons --------------------------------------------------------------------------------------


def _reason(kind: str, like: Sequence[str], odd: str | None) -> str:
    if odd is not None:
        return f"{odd[:80]!r} among them is not one"
    if kind == "dates":
        if any(_SHORT_YEAR.fullmatch(text.strip()) for text in like):
            return "a year of two digits may be of any century"
        if sum(_parse_all("date", format, like) is not None for format in _DATES) > 1:
            return "day and month could be either"
        return "not all are written in one way"
    units = {unit for text in like for unit in re.findall(_UNIT, text)}
    if len(units) > 1 or (units and any(not re.search(_UNIT, text) for text in like)):
        return "not all have the same unit"
    return "',' or '.' may stand before decimals or between thousands"
