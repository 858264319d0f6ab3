"""How many rows of each class there shall be, and which: drawn without or with replacement.

Strategies are those of imbalanced-learn, and so are the draws: of one seed both choose the same
rows. What is drawn here is numbers of rows; nobody looks at features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.errors import OptionError, ResamplingError
from discriminant.moments.naming import codes_of
from discriminant.table.schema import Codes, Labels

Places = npt.NDArray[np.intp]
Method = Literal["under", "over", "smote"]
_MORE = ("auto", "not majority", "not minority", "minority", "all")
STRATEGIES = {
    "under": ("auto", "not minority", "not majority", "majority", "all"),
    "over": _MORE,
    "smote": _MORE,
}


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Rows of each class after resampling."""

    wanted: Places  # (K,)
    drawn: npt.NDArray[np.bool_]  # (K,) whether the class is drawn from at all; others stay


def target_of(count: Places, labels: Labels, strategy: Any, method: Method) -> Target:
    """What a strategy asks for.

    Parameters
    ----------
    count
        (K,) rows of each class.
    strategy
        'auto': equal numbers, as many as the rarest class has ('under') or the most frequent
        ('over', 'smote'). 'minority', 'majority', 'not minority', 'not majority', 'all': that
        number for these classes only. A ratio in (0, 1], of rare to frequent rows, for two classes.
        Or {label: rows}.

    Examples
    --------
    >>> target_of(np.array([90, 10]), np.array(["a", "b"]), 0.5, "over").wanted.tolist()
    [90, 45]
    """
    if isinstance(strategy, str):
        return _by_name(count, strategy, method)
    if isinstance(strategy, Mapping):
        return _by_label(count, labels, strategy, method)
    number = isinstance(strategy, int | float | np.number) and not isinstance(strategy, bool)
    if not number or not 0 < strategy <= 1:
        allowed = f"one of {', '.join(STRATEGIES[method])}, a ratio in (0, 1], or {{class: rows}}"
        raise OptionError.of("strategy", strategy, allowed)
    return _by_ratio(count, labels, float(strategy), method)


def under_sample(codes: Codes, target: Target, random: np.random.RandomState) -> Places:
    """Rows to keep, in their order, drawn without replacement."""
    return under_samples(codes, target, random, 1)[0]


def under_samples(
    codes: Codes, target: Target, random: np.random.RandomState, times: int
) -> list[Places]:
    """Several such draws, one after the other."""
    each = rows_by_class(codes, len(target.wanted))
    found = []
    for _ in range(times):
        kept = np.zeros(len(codes), dtype=np.bool_)
        for k, rows in enumerate(each):
            if target.drawn[k]:
                rows = rows[random.choice(len(rows), int(target.wanted[k]), replace=False)]
            kept[rows] = True
        found.append(np.flatnonzero(kept))
    return found


def divided(codes: Codes, target: Target, random: np.random.RandomState) -> list[Places]:
    """Under-samples that together have every row: each class to be drawn from is divided.

    A class of n rows, m of which are wanted, is shuffled and divided into n / m disjoint parts, to
    the nearest whole number, whose sizes differ by one at most. There are as many under-samples as
    the class with most parts has; a class with fewer parts repeats them in turn.

    >>> parts = divided(np.array([0, 0, 0, 0, 0, 1, 1]), Target(np.array([2, 2]),
    ...     np.array([True, False])), np.random.RandomState(0))
    >>> [part.tolist() for part in parts]
    [[0, 2, 5, 6], [1, 3, 5, 6], [4, 5, 6]]
    """
    each = []
    for k, rows in enumerate(rows_by_class(codes, len(target.wanted))):
        parts = max(int(len(rows) / target.wanted[k] + 0.5), 1) if target.drawn[k] else 1
        order = random.permutation(rows) if target.drawn[k] else rows
        each.append(np.array_split(order, parts))
    times = max(map(len, each))
    return [
        np.sort(np.concatenate([parts[t % len(parts)] for parts in each])) for t in range(times)
    ]


def over_sample(codes: Codes, target: Target, random: np.random.RandomState) -> Places:
    """All rows, then those to repeat, drawn with replacement."""
    parts = [np.arange(len(codes))]
    for k, rows in enumerate(rows_by_class(codes, len(target.wanted))):
        if target.drawn[k]:
            parts.append(random.choice(rows, int(target.wanted[k]) - len(rows), replace=True))
    return np.concatenate(parts)


def rows_by_class(codes: Codes, classes: int) -> list[Places]:
    """The rows of each class, in their order."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes, minlength=classes))[:-1])


def _by_name(count: Places, strategy: str, method: Method) -> Target:
    if strategy not in STRATEGIES[method]:
        allowed = f"one of {', '.join(STRATEGIES[method])}, a ratio in (0, 1], or {{class: rows}}"
        raise OptionError.of("strategy", strategy, allowed)
    if strategy == "auto":
        strategy = "not minority" if method == "under" else "not majority"
    place = np.arange(len(count))
    named = place == (count.argmin() if "minority" in strategy else count.argmax())
    drawn = ~named if strategy.startswith("not ") else named | (strategy == "all")
    number = count.min() if method == "under" else count.max()
    return Target(np.where(drawn, number, count), drawn)


def _by_label(count: Places, labels: Labels, strategy: Any, method: Method) -> Target:
    codes = codes_of(labels, list(strategy))
    wanted, drawn = count.copy(), np.zeros(len(count), dtype=np.bool_)
    for k, rows in zip(codes, strategy.values(), strict=True):
        whole = isinstance(rows, int | np.integer) and not isinstance(rows, bool)
        if not whole or rows < 1:
            raise OptionError.of("strategy", dict(strategy), "{class: rows}, each 1 or more")
        if (rows > count[k]) if method == "under" else (rows < count[k]):
            raise ResamplingError.of_rows(labels[k], int(rows), int(count[k]), method)
        wanted[k], drawn[k] = rows, True
    return Target(wanted, drawn)


def _by_ratio(count: Places, labels: Labels, ratio: float, method: Method) -> Target:
    if len(count) != 2:
        raise ResamplingError.ratio_of_many(ratio, labels.tolist())
    few, many = int(count.min()), int(count.max())
    rare = int(count.argmin())
    if method == "under":
        wanted, changed = int(few / ratio), 1 - rare
        impossible = wanted > many
    else:
        changed = 1 - int(count.argmax())
        wanted = few + int(many * ratio - few)
        impossible = wanted <= few
    if impossible:
        raise ResamplingError.of_ratio(ratio, few / many)
    drawn = np.arange(2) == changed
    return Target(np.where(drawn, wanted, count), drawn)
