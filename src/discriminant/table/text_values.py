"""Numbers and dates that are written as texts: 7.039,00, $143,548, 41%, 27.10.2023, 10/27/2023.

A column of texts is one of numbers or dates if one way of writing fits all of its texts, and no
other way that fits gives them other values:

    grouped digits   1,234.5   1.234,5   1'234.5   1 234,5   1 234.5
    with a unit      the same sign in every text, before or after: $ € £ ¥ % or a code such as EUR
    dates            2023-10-27   2023/10/27   27.10.2023   27/10/2023 or 10/27/2023, - as well

    $1,234           grouped: no currency has three decimals that are never two
    1,234            may be 1.234 or 1234, and 01/02/2023 may be of January or of February: not
                     read unless another text of the column tells; then `doubt` says why. The user
                     may name the sign between `thousands`; then only it groups digits
    1,234,567        grouped: a number has one decimal comma

Plain numbers as texts are left alone: who writes these as texts may mean names. A way is kept by
its name, so that it travels with a model. A percentage is the number before its sign.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Values = Mapping[str, float]

_UNIT = r"[$€£¥%]|USD|EUR|GBP|CHF|JPY"
_SPACES = " \u00a0\u202f"
_STYLES = {  # sign between groups of three, decimal sign
    "1,234.5": (",", "."),
    "1.234,5": (".", ","),
    "1'234.5": ("'\u2019", "."),
    "1 234,5": (_SPACES, ","),
    "1 234.5": (_SPACES, "."),
}
_CLOCK = r"(?:[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?)?"
_DATES = {  # pattern, and where year, month and day stand in it
    "YYYY-MM-DD": (r"([0-9]{4})-([0-9]{2})-([0-9]{2})", (0, 1, 2)),
    "YYYY/MM/DD": (r"([0-9]{4})/([0-9]{1,2})/([0-9]{1,2})", (0, 1, 2)),
    "DD.MM.YYYY": (r"([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})", (2, 1, 0)),
    "DD/MM/YYYY": (r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})", (2, 1, 0)),
    "MM/DD/YYYY": (r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})", (2, 0, 1)),
    "DD-MM-YYYY": (r"([0-9]{1,2})-([0-9]{1,2})-([0-9]{4})", (2, 1, 0)),
    "MM-DD-YYYY": (r"([0-9]{1,2})-([0-9]{1,2})-([0-9]{4})", (2, 0, 1)),
}
_DATE_PATTERN = {name: re.compile(text + _CLOCK) for name, (text, _) in _DATES.items()}
_PARTED = re.compile(rf"([+-]?)\s*({_UNIT})?\s*([+-]?)\s*([0-9].*?)\s*({_UNIT})?")
_DIGITS = {
    name: re.compile(rf"(?:[1-9][0-9]{{0,2}}(?:[{group}][0-9]{{3}})+|[0-9]+)(?:[{decimal}][0-9]+)?")
    for name, (group, decimal) in _STYLES.items()
}
_LOOSE = re.compile(
    rf"[+-]?({_UNIT})?\s*[+-]?([0-9]{{1,3}}([.,'\u2019{_SPACES}][0-9]{{3}})*|[0-9]+)([.,][0-9]+)?"
    rf"\s*({_UNIT})?"
)
_LOOSE_DATE = re.compile(
    r"([0-9]{4}[./-][0-9]{1,2}[./-][0-9]{1,2}|[0-9]{1,2}[./-][0-9]{1,2}[./-]([0-9]{4}|[0-9]{2}))"
    + _CLOCK
)
_COMMA_GROUPS = re.compile("[+-]?[0-9]{1,3}(,[0-9]{3})+")
_SHORT_YEAR = re.compile(r"[0-9]{1,2}([./-])[0-9]{1,2}\1[0-9]{2}" + _CLOCK)
_MOSTLY = 0.8
_LOOK = 1000  # texts that show whether a column is worth a word
_START = datetime(1970, 1, 1)
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class ParsedTexts:
    """Texts that are numbers or dates."""

    kind: Literal["number", "date"]
    format: str  # the name of how they are written
    values: Values
    example: str

    @property
    def note(self) -> str:
        """How one of them was read."""
        found = self.values[self.example]
        if self.kind == "number":
            return f"written as text: {self.example!r} is {found:.12g}"
        return f"written as {self.format}"


@dataclass(frozen=True, slots=True)
class UnparsedTexts:
    """Why texts that look like numbers or dates were not read as such."""

    kind: str  # numbers or dates
    example: str
    reason: str


def parse_texts(texts: Collection[str], *, thousands: str | None = None) -> ParsedTexts | None:
    """What all of the texts are, if there is one answer.

    `thousands`: the sign that groups digits, where the user says so.

    >>> parse_texts(["1,234", "56"], thousands=",").values["1,234"]
    1234.0
    >>> found = parse_texts(["7.039,00", "120,50"])
    >>> found.kind, found.values["7.039,00"], parse_texts(["1,234", "2,345"])
    ('number', 7039.0, None)
    """
    if not texts:
        return None
    return _as_dates(texts) or _as_numbers(texts, thousands)


def grouped_format(thousands: str, decimal: str) -> str:
    """How numbers with these signs are written, as `read_as` takes it.

    >>> grouped_format(",", "."), grouped_format(" ", ",")
    ('1,234.5;', '1 234,5;')
    """
    fits = [name for name, (group, _) in _STYLES.items() if thousands in group]
    best = (name for name in fits if _STYLES[name][1] == decimal)
    return f"{next(best, fits[0])};"


def number_signs(way: str) -> tuple[str, str, str]:
    """Signs that group digits, the decimal sign and the unit of numbers that are written so.

    >>> number_signs("1.234,5;€")
    ('.', ',', '€')
    """
    style, _, unit = way.partition(";")
    return (*_STYLES[style], unit)


def text_parser(way: str) -> Callable[[str], float | None]:
    """What reads a text that is written so; None where it is not. No way at all: an ISO date."""
    if not way or way in _DATES:
        return lambda text: _day(text.strip(), way or "YYYY-MM-DD")
    style, _, unit = way.partition(";")
    return lambda text: _number(text, style, unit)


def explain_unparsed(counts: Mapping[str, int]) -> UnparsedTexts | None:
    """Why texts, with how many rows have each, were not read, if most look as if they should be."""
    some = dict(list(counts.items())[:_LOOK])
    rows = sum(some.values())
    for kind, pattern in (("dates", _LOOSE_DATE), ("numbers", _LOOSE)):
        like = [text for text in some if pattern.fullmatch(text.strip())]
        marked = like if kind == "dates" else [text for text in like if _marked(text)]
        if marked and sum(some[text] for text in like) >= _MOSTLY * rows and _worth(kind, like):
            odd = next((text for text in counts if not pattern.fullmatch(text.strip())), None)
            return UnparsedTexts(kind, marked[0], _why(kind, like, odd))
    return None


# --- numbers --------------------------------------------------------------------------------------


def _as_numbers(texts: Collection[str], thousands: str | None) -> ParsedTexts | None:
    parted = _PARTED.fullmatch(next(iter(texts)).strip())
    if parted is None:
        return None
    unit = parted[2] or parted[5] or ""
    styles = [style for style, (group, _) in _STYLES.items() if thousands in (None, *group)]
    ways = [way for style in styles if (way := _all_numbers(texts, style, unit)) is not None]
    if unit not in ("", "%"):
        ways = [way for way in ways if not _three_decimals(texts, way.format)] or ways
    if not ways or any(way.values != ways[0].values for way in ways):
        return None
    example = max(texts, key=_marks)
    if thousands is not None:
        signs = _STYLES[ways[0].format.partition(";")[0]][0]
        grouped = next((text for text in texts if any(sign in text for sign in signs)), None)
        if grouped is None:
            return None
        return ParsedTexts("number", ways[0].format, ways[0].values, grouped)
    if not unit and (not _marks(example) or not _worth("numbers", texts)):
        return None
    return ParsedTexts("number", ways[0].format, ways[0].values, example)


def _all_numbers(texts: Collection[str], style: str, unit: str) -> ParsedTexts | None:
    values = {}
    for text in texts:
        found = _number(text, style, unit)
        if found is None:
            return None
        values[text] = found
    return ParsedTexts("number", f"{style};{unit}", values, "")


def _number(text: str, style: str, unit: str) -> float | None:
    parted = _PARTED.fullmatch(text.strip())
    if parted is None or (parted[1] and parted[3]) or (parted[2] and parted[5]):
        return None
    if (parted[2] or parted[5] or "") != unit or not _DIGITS[style].fullmatch(parted[4]):
        return None
    group, decimal = _STYLES[style]
    digits = "".join(c for c in parted[4] if c not in group).replace(decimal, ".")
    return float((parted[1] or parted[3]) + digits)


def _three_decimals(texts: Collection[str], way: str) -> bool:
    """Whether all that have decimals, in this way of writing, have three."""
    decimal = re.escape(_STYLES[way.partition(";")[0]][1])
    ends = [found[1] for text in texts if (found := re.search(rf"{decimal}([0-9]+)\D*$", text))]
    return bool(ends) and all(len(end) == 3 for end in ends)


def _marks(text: str) -> int:
    """Groups of digits beyond the whole part and the decimals: 1 of 1,234 and of 1.234,5."""
    signs = re.findall(rf"(?<=[0-9])[.,'\u2019{_SPACES}](?=[0-9])", text.strip())
    return (
        len(signs) - 1
        if len(set(signs)) > 1
        else len(signs)
        if len(signs) > 1
        else (1 if signs and signs[0] not in ".," else 0)
    )


def _marked(text: str) -> bool:
    return bool(re.search(rf"{_UNIT}|[0-9][,'\u2019{_SPACES}][0-9]", text)) or _marks(text) > 0


def _worth(kind: str, texts: Collection[str]) -> bool:
    """Whether texts may be measured: groups of digits that are all of one length may be codes."""
    if kind == "dates" or any(re.search(_UNIT, text) for text in texts):
        return True
    if all(_COMMA_GROUPS.fullmatch(text.strip()) for text in texts):
        return True  # codes have no commas
    return len({len(text.strip()) for text in texts}) > 1


# --- dates ----------------------------------------------------------------------------------------


def _as_dates(texts: Collection[str]) -> ParsedTexts | None:
    ways = [way for name in _DATES if (way := _all_dates(texts, name)) is not None]
    if not ways or any(way.values != ways[0].values for way in ways):
        return None
    return ways[0]


def _all_dates(texts: Collection[str], way: str) -> ParsedTexts | None:
    values = {}
    for text in texts:
        found = _day(text.strip(), way)
        if found is None:
            return None
        values[text] = found
    return ParsedTexts("date", way, values, next(iter(texts)))


def _day(text: str, way: str) -> float | None:
    """Days since 1970-01-01."""
    found = _DATE_PATTERN[way].fullmatch(text)
    if found is None:
        return None
    year, month, day = (int(found[place + 1]) for place in _DATES[way][1])
    hour, minute, second = (int(found[place] or 0) for place in (4, 5, 6))
    micro = int((found[7] or "0").ljust(6, "0"))
    try:
        moment = datetime(year, month, day, hour, minute, second, micro)
    except ValueError:
        return None
    return (moment - _START).total_seconds() / _DAY


# --- words ----------------------------------------------------------------------------------------


def _why(kind: str, like: Sequence[str], odd: str | None) -> str:
    if odd is not None:
        return f"{odd[:80]!r} among them is not one"
    if kind == "dates":
        if any(_SHORT_YEAR.fullmatch(text.strip()) for text in like):
            return "a year of two digits may be of any century"
        if sum(_all_dates(like, way) is not None for way in _DATES) > 1:
            return "day and month could be either"
        return "not all are written in one way"
    units = {match for text in like for match in re.findall(_UNIT, text)}
    if len(units) > 1 or (units and any(not re.search(_UNIT, text) for text in like)):
        return "not all have the same unit"
    return "',' or '.' may stand before decimals or between thousands"
