"""Formatting for the report: numbers, names, and the reasons that error messages give.

Numbers are rounded to the digits that matter. Names of columns and classes are untrusted:
characters that reverse the text direction or are invisible are replaced by their code points, and
long names are shortened in the middle. (Markup is escaped by the templates.)

Error messages mention Python options and calls. `plain_reason` removes them for readers of a page,
and replaces terms of linear algebra by what they mean for the data.

Definitions of terms are in assets/terms.json.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_MAX_LENGTH = 60  # largest number of characters of a name
_FEW = 30  # with fewer cases, a share is given as counts


def shown(name: object, longest: int = _MAX_LENGTH) -> str:
    """Return a name in a safe form: short, and without invisible or direction-changing characters.

    >>> shown("safe\\u202etxt.exe")
    'safe⟨U+202E⟩txt.exe'
    """
    text = "".join(f"⟨U+{ord(c):04X}⟩" if _unseen(c) else c for c in str(name))
    if len(text) > longest:
        keep = longest * 2 // 3
        text = f"{text[:keep]}…{text[-(longest - keep - 1) :]}"
    return text or "⟨empty⟩"


def quoted(name: object, longest: int = _MAX_LENGTH) -> str:
    """Return a name for use in a sentence, in quotation marks if it contains a comma.

    >>> quoted("LDA, shrunk"), quoted("LDA")
    ('“LDA, shrunk”', 'LDA')
    """
    text = shown(name, longest)
    return f"“{text}”" if "," in text else text


def _unseen(char: str) -> bool:
    """Whether a character is a control, format (bidirectional marks) or surrogate character."""
    joins = char in "\u200c\u200d"  # several scripts and emoji need these format characters
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") and not joins


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share as a percentage.

    >>> percent(0.0266), percent(0.00042), percent(1e-9), percent(0.99996), percent(None)
    ('2.7%', '0.04%', '< 0.01%', '> 99.9%', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    scaled = 100.0 * value
    if scaled in (0.0, 100.0):
        return f"{scaled:.0f}%"
    if round(scaled, digits) == 100.0:
        return f"> {100 - 10**-digits:.{digits}f}%"
    while round(scaled, digits) == 0.0 and digits < 2:
        digits += 1
    if round(scaled, digits) == 0.0:
        return f"< {10**-digits:.{digits}f}%"
    return f"{scaled:.{digits}f}%"


def share(part: float, total: float) -> str:
    """Return a share of cases: as a percentage, or as counts if there are fewer than 30 cases.

    >>> share(7, 9), share(70, 90), share(1.5, 9)
    ('7 of 9', '77.8%', '16.7%')
    """
    part, total = round(part, 6), round(total, 6)
    if total < _FEW and part == int(part) and total == int(total):
        return f"{int(part)} of {int(total)}"
    return percent(part / total) if total else "–"


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with a few significant digits, without a needless exponent.

    >>> number(1180.16), number(0.02344), number(0.0), number(None), number(3.2e-9)
    ('1,180', '0.0234', '0', '–', '3.2e-09')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size < -4 or size > 8:
        return f"{value:.{digits - 1}g}"
    places = max(digits - 1 - size, 0)
    return f"{value:,.{places}f}".replace("-", "−")


def axis_number(value: float | None) -> str:
    """Return a value of a column: whole numbers without decimals, and years without a comma.

    >>> axis_number(2007.0), axis_number(32.1), axis_number(26849.3), axis_number(1.0)
    ('2007', '32.1', '26,849', '1')
    """
    if value is not None and float(value).is_integer() and abs(value) < 1e9:
        return f"{value:,.0f}".replace("-", "−").replace(",", "" if abs(value) < 1e4 else ",")
    text = number(value)
    return text if value is None or abs(value) >= 1e4 else text.replace(",", "")


def fixed(value: float | None, places: int = 2) -> str:
    """Return a number with a fixed number of decimal places, for table columns.

    >>> fixed(-0.5), fixed(None)
    ('−0.50', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{round(value, places) + 0.0:,.{places}f}".replace("-", "−")


def loss(value: float | None) -> str:
    """Return a log loss or a Brier score with three significant digits.

    >>> loss(0.01323), loss(1.0486), loss(2e-16), loss(3.2e11), loss(0.0), loss(None)
    ('0.0132', '1.05', '< 0.001', '> 1,000', '0', '–')
    """
    if value is not None and math.isfinite(value) and value > 1000:
        return "> 1,000"
    return "< 0.001" if value is not None and 0 < value < 0.001 else number(value)


def area(value: float | None) -> str:
    """Return an area under the ROC curve.

    >>> area(0.9487), area(0.99996), area(1.0), area(None)
    ('0.949', '> 0.999', '1.000', '–')
    """
    if value is not None and 0.9995 <= value < 1.0:
        return "> 0.999"
    return fixed(value, 3)


def p_value(p: float | None) -> str:
    """Return a p-value.

    >>> p_value(0.0312), p_value(1e-20)
    ('0.031', '< 0.001')
    """
    if p is None or not math.isfinite(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def whole(value: float | None) -> str:
    """Return a count, or a fractional weight with one decimal place.

    >>> whole(9644.0), whole(0.25)
    ('9,644', '0.2')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def count_range(least: float, most: float | None) -> str:
    """Return a range of counts.

    >>> count_range(1, 1), count_range(5, 19), count_range(500, None), count_range(500, math.inf)
    ('1', '5 to 19', '500 or more', '500 or more')
    """
    if most is None or most == math.inf:
        return f"{whole(least)} or more"
    return whole(least) if least == most else f"{whole(least)} to {whole(most)}"


def duration(seconds: float | None) -> str:
    """Return a duration.

    >>> duration(0.00213), duration(12.3), duration(None)
    ('2 ms', '12 s', '–')
    """
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if seconds < 0.9995:
        return f"{max(1000 * seconds, 1):.0f} ms"
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:,.0f} s"


def count_with_noun(n: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun.

    >>> count_with_noun(1, "class", "classes"), count_with_noun(1200, "row")
    ('1 class', '1,200 rows')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def name_list(names: Sequence[object], most: int = 4) -> str:
    """Return names as a list in a sentence; names that contain a comma are quoted.

    >>> name_list(["a", "b", "c"]), name_list("abcdef", 2), name_list(["a, b", "c"])
    ('a, b and c', 'a, b and 4 more', '“a, b” and c')
    """
    texts = [quoted(name, 40) for name in names]
    if len(texts) > most:
        return f"{', '.join(texts[:most])} and {len(texts) - most} more"
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


_CALL = r"moments\.\w+\((?:\[\.\.\.\]|\{\.\.\.\})\)"
_PHRASES = (
    (
        r"^(\d+) row\(s\) \(n_samples=\d+\) in (\d+) class\(es\)",
        r"the models compared were fitted to \1 rows of \2 classes",
    ),
    (r"since 1 sample a class gives", "since one row a class gives"),
    (rf" \({_CALL}\)", ""),
    (rf": {_CALL}", ""),
    (r" \(n_samples=\d+\)", ""),
    (r" Pass sample_weight=None, or use another classifier\.", ""),
    (r"\w+ does not support sample_weight\b", "it does not support weights"),
    (r" \(rank \d+ of \d+\)", ""),
    (r"depend linearly on one another", "are redundant"),
    (r"so that (?:the scatter|its covariance) has no inverse", "so that this cannot be computed"),
    (
        r"the scatter within classes has no inverse",
        "too few to estimate the covariance of the features",
    ),
    (r"a within-class covariance needs", "estimating the spread of a class needs"),
    (r"a mean deviation needs", "estimating the spread of a class needs"),
    (r"A multivariate analysis of variance", "The tests of equal means"),
    (r"\b1 (row|column|class|sample)\((?:e?s)\)", r"1 \1"),
    (r"\b([Rr]ow|[Cc]olumn|[Ss]ample)\(s\)", r"\1s"),
    (r"\bclass\(es\)", "classes"),
)

_PLURALS = (
    ("The model gives", "These models give"),
    ("its fits", "their fits"),
    ("its log loss is", "their log losses are"),
    ("its predictions equal", "their predictions equal"),
)


def plain_reason(reason: object) -> str:
    """Return the reason in an error message, without Python calls and options.

    >>> plain_reason("Column(s) 'a' have one value only. Leave it out: moments.select([...]).")
    "Columns 'a' have one value only. Leave it out."
    """
    text = str(reason)
    for pattern, replacement in _PHRASES:
        text = re.sub(pattern, replacement, text)
    return text


def excluded_models(models: Iterable[tuple[str, str]]) -> list[str]:
    """Return one sentence for each reason, with all excluded models that share this reason.

    `models` are pairs (name, reason).

    >>> excluded_models([("A", "no rows."), ("B", "no rows."), ("C", "too wide.")])
    ['A and B were excluded: no rows.', 'C was excluded: too wide.']
    >>> excluded_models([("A", "its predictions equal C."), ("B", "its predictions equal C.")])
    ['A and B were excluded: their predictions equal C.']
    """
    groups = group_by_text((name, plain_reason(why)) for name, why in models)
    return [
        f"{name_list(names, 12)} {'was' if len(names) == 1 else 'were'} excluded: "
        + pluralise(why, len(names))
        for names, why in groups
    ]


def group_by_text(pairs: Iterable[tuple[str, str]]) -> list[tuple[list[str], str]]:
    """Group the names that have the same text; names with an empty text are dropped.

    >>> group_by_text([("A", "slow"), ("B", ""), ("C", "slow")])
    [(['A', 'C'], 'slow')]
    """
    reasons: dict[str, list[str]] = {}
    for name, words in pairs:
        if words:
            reasons.setdefault(words, []).append(name)
    return [(names, words) for words, names in reasons.items()]


def model_notes(models: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the notes on models; equal notes are merged."""
    groups = group_by_text((str(model["label"]), str(model["note"])) for model in models)
    return [f"{name_list(names, 12)}: {pluralise(words, len(names))}" for names, words in groups]


def pluralise(words: str, count: int) -> str:
    """Return a reason that concerns one model, worded for this number of models."""
    for singular, plural in _PLURALS if count > 1 else ():
        words = words.replace(singular, plural)
    return words
