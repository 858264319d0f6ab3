"""Why something could not be worked out, for a reader who writes no code.

Errors speak to whoever called a function: they name its options, and end with a call that would
help. On a page the reason stays and the calls go; terms of linear algebra are said as what they
mean here. What is not known to this list is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from discriminant.report.words import several

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
