"""One level, several spellings: 1 is 1.0, True is true.

A category of whole numbers or of truth values is written as its source writes it: 1 by a column of
integers, 1.0 by a column of floats in CSV, true by a database, 1 by a database that has no truth
values. A text that is a level is that level. Any other leads to the level that it is a spelling of,
unless it could be one of two.

    whole numbers   1, 1.0
    truth values    True, true, TRUE; where no level is anything else, 1 and 1.0 too
    yes and no      True and False too, where there is nothing else: databases read them as such
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from discriminant.table.dialect import FALSE, TRUE

_TRUTHS = (TRUE, FALSE)
_DIGITS = (("1", "1.0"), ("0", "0.0", "-0.0"))
_ANSWERS = (("yes", "no"), ("y", "n"), ("t", "f"))  # in any case
_WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,17})(\.0)?")


def other_spellings(levels: Sequence[str]) -> dict[str, str]:
    """The level of each text that is not one of the levels but spells one of them.

    >>> other_spellings(["1", "2"])
    {'1.0': '1', '2.0': '2'}
    >>> other_spellings(["True", "False"])["false"], other_spellings(["1", "1.0"])
    ('False', {})
    """
    if answers := _answers(levels):
        return answers
    found: dict[str, list[str]] = {}
    every = [*_TRUTHS[0], *_TRUTHS[1], *_DIGITS[0], *_DIGITS[1]]
    truths = all(level in every for level in levels)
    for level in levels:
        for other in _ways(level, truths):
            found.setdefault(other, []).append(level)
    known = set(levels)
    return {o: of[0] for o, of in found.items() if len(of) == 1 and o not in known}


def _answers(levels: Sequence[str]) -> dict[str, str]:
    """Truth values as the levels of a column of nothing but yes and no.

    >>> _answers(["No", "Yes"])["true"], _answers(["No", "Yes", "?"])
    ('Yes', {})
    """
    said = {level.casefold(): level for level in levels}
    pair = next((pair for pair in _ANSWERS if set(pair) == set(said)), None)
    if pair is None or len(levels) != 2:
        return {}
    return {o: said[word] for word, others in zip(pair, _TRUTHS, strict=True) for o in others}


def _ways(level: str, truths: bool) -> list[str]:
    """Other ways to write a level, each once."""
    ways = [level]
    for words, digits in zip(_TRUTHS, _DIGITS, strict=True):
        if level in words or (truths and level in digits):
            ways += [*words, *(digits if truths else ())]
    if whole := _WHOLE.fullmatch(level):
        ways += [whole[1], repr(float(whole[1])), f"{whole[1]}.0"]
        ways += ["-0.0"] if whole[1] == "0" else []
    return [way for way in dict.fromkeys(ways) if way != level]
