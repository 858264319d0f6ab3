"""How a report says numbers, names and terms.

Numbers are rounded to what they are good for. A name is whatever somebody called a column or a
class, so it is taken for hostile: characters that turn the direction of text, or cannot be seen,
are shown by their code point, and what is too long for a line is cut in the middle. (Markup is made
harmless where markup is made, by autoescaping.) What terms mean is in assets/terms.json.

Why something could not be worked out, for a reader who writes no code.

Errors speak to whoever called a function: they name its options, and end with a call that would
help. On a page the reason stays and the calls go; terms of linear algebra are said as what they
mean here. What is not known to this list is left as it is.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_LONGEST = 60  # characters of a name


def shown(name: object, longest: int = _LONGEST) -> str:
    """A name that cannot turn text around, hide, or overflow.

    >>> shown("safe\\u202etxt.exe")
    'safe⟨U+202E⟩txt.exe'
    """
    text = "".join(f"⟨U+{ord(c):04X}⟩" if _unseen(c) else c for c in str(name))
    if len(text) > longest:
        keep = longest * 2 // 3
        text = f"{text[:keep]}…{text[-(longest - keep - 1) :]}"
    return text or "⟨empty⟩"


def told(name: object, longest: int = _LONGEST) -> str:
    """A name within a sentence: in quotes where it has a comma, which would end it too early.

    >>> told("LDA, shrunk"), told("LDA")
    ('“LDA, shrunk”', 'LDA')
    """
    text = shown(name, longest)
    return f"“{text}”" if "," in text else text


def _unseen(char: str) -> bool:
    """Controls, format characters (bidirectional ones among them), surrogates, odd line ends."""
    joins = char in "\u200c\u200d"  # several scripts and emoji need these
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") and not joins


def percent(value: float | None, digits: int = 1) -> str:
    """A share as a person says it.

    >>> percent(0.0266), percent(0.00042), percent(0.99996), percent(None), percent(1.0)
    ('2.7%', '0.04%', '99.996%', '–', '100%')
    """
    if value is None or not math.isfinite(value):
        return "–"
    scaled = 100.0 * value
    if scaled in (0.0, 100.0):
        return f"{scaled:.0f}%"
    while round(scaled, digits) in (0.0, 100.0) and digits < 4:  # not quite none, or all
        digits += 1
    return f"{scaled:.{digits}f}%"


def number(value: float | None, digits: int = 3) -> str:
    """A number to some significant digits, without a needless exponent.

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


def fixed(value: float | None, places: int = 2) -> str:
    """A number with so many decimal places, for columns that line up.

    >>> fixed(-0.5), fixed(None)
    ('−0.50', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{round(value, places) + 0.0:,.{places}f}".replace("-", "−")


def chance(p: float | None) -> str:
    """A p-value.

    >>> chance(0.0312), chance(1e-20)
    ('0.031', '< 0.001')
    """
    if p is None or not math.isfinite(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def whole(value: float | None) -> str:
    """A count; of broken weights one decimal place.

    >>> whole(9644.0), whole(0.25)
    ('9,644', '0.2')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def between(least: float, most: float | None) -> str:
    """A span of counts.

    >>> between(1, 1), between(5, 19), between(500, None), between(500, math.inf)
    ('1', '5 to 19', '500 or more', '500 or more')
    """
    if most is None or most == math.inf:
        return f"{whole(least)} or more"
    return whole(least) if least == most else f"{whole(least)} to {whole(most)}"


def duration(seconds: float | None) -> str:
    """A time.

    >>> duration(0.00213), duration(12.3), duration(None)
    ('2 ms', '12 s', '–')
    """
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if seconds < 0.9995:
        return f"{max(1000 * seconds, 1):.0f} ms"
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:,.0f} s"


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun.

    >>> counted(1, "class", "classes"), counted(1200, "row")
    ('1 class', '1,200 rows')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def several(names: Sequence[object], most: int = 4) -> str:
    """Names in a sentence; one that has a comma of its own is put in quotes.

    >>> several(["a", "b", "c"]), several("abcdef", 2), several(["a, b", "c"])
    ('a, b and c', 'a, b and 4 more', '“a, b” and c')
    """
    texts = [told(name, 40) for name in names]
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
    (r": pass sample_weight=None, or another classifier", ""),
    (r"\w+ takes no sample_weight, so rows cannot be weighed", "it cannot take weights"),
    (r" \(rank \d+ of \d+\)", ""),
    (r"depend linearly on one another", "follow from one another"),
    (r"so that (?:the scatter|its covariance) has no inverse", "so that this cannot be worked out"),
    (r"the scatter within classes has no inverse", "too few to tell how features go together"),
    (r"a within-class covariance needs", "telling how far a class is spread needs"),
    (r"a mean deviation needs", "telling how far a class is spread needs"),
    (r"A multivariate analysis of variance", "The tests of equal means"),
    (r"\b1 (row|column|class|sample)\((?:e?s)\)", r"1 \1"),
    (r"\b(row|column|sample)\(s\)", r"\1s"),
    (r"\bclass\(es\)", "classes"),
)

_PLURALS = (
    ("It gives", "They give"),
    ("its fits", "their fits"),
    ("its log loss is", "their log losses are"),
)


def in_words(reason: object) -> str:
    """The reason without calls and options.

    >>> in_words("Box's M: column(s) 'a' have one value only. Leave it out: moments.select([...]).")
    "Box's M: columns 'a' have one value only. Leave it out."
    """
    text = str(reason)
    for pattern, said in _PHRASES:
        text = re.sub(pattern, said, text)
    return text


def left_out(models: Iterable[tuple[str, str]]) -> list[str]:
    """One sentence for all models, given as (name, reason), that one reason keeps out.

    >>> left_out([("A", "no rows."), ("B", "no rows."), ("C", "too wide.")])
    ['A and B are left out: no rows.', 'C is left out: too wide.']
    """
    found = by_reason((name, in_words(why)) for name, why in models)
    return [
        f"{several(names, 12)} {'is' if len(names) == 1 else 'are'} left out: {why}"
        for names, why in found
    ]


def by_reason(said: Iterable[tuple[str, str]]) -> list[tuple[list[str], str]]:
    """What is said of several, once: the names, and the words.

    >>> by_reason([("A", "slow"), ("B", ""), ("C", "slow")])
    [(['A', 'C'], 'slow')]
    """
    reasons: dict[str, list[str]] = {}
    for name, words in said:
        if words:
            reasons.setdefault(words, []).append(name)
    return [(names, words) for words, names in reasons.items()]


def noted(models: Iterable[Mapping[str, Any]]) -> list[str]:
    """Notes of models, each once."""
    found = by_reason((str(model["label"]), str(model["note"])) for model in models)
    return [f"{several(names, 12)}: {_of_many(words, len(names))}" for names, words in found]


def _of_many(words: str, many: int) -> str:
    for one, more in _PLURALS if many > 1 else ():
        words = words.replace(one, more)
    return words
