"""How many rows of each class there shall be, and which: drawn without or with replacement.

Strategies are those of imbalanced-learn, and so are the draws: of one seed both choose the same
rows. What is drawn here is numbers of rows; nobody looks at features.

What rows drawn at random have for moments, in the mean over all draws: no row is drawn.

Of the n rows of a class, with mean c and scatter S about it, m are to be there.

    under   m of them, without replacement              E scatter = S (m - 1) / (n - 1)
    over    all, and m - n of them with replacement     E scatter = S (m - (m - n) / m) / n

and in both the mean is c in the mean. For the variance of a sample, over m - 1, has the mean of
that of the whole, over n - 1; and with row i drawn t_i times, z_i = x_i - c, the scatter is

    sum (1 + t_i) z_i z_i' - (sum t_i z_i)(sum t_i z_i)' / m

whose parts have the means S m / n and S (m - n) / (n m). Rows of weight m / n each would have the
scatter S m / n, more than any draw has in the mean. What is not linear in the moments, as slopes
are not, is that of the mean moments, not the mean of those of the draws.

Moments of several subsets of the rows, overlapping or not, from one reading of the table.

A block is looked at once, and of each subset the rows that lie in it are summed. Sums of parts
add, subset by subset. So T under-samples cost one pass over the rows, wherever these are, and
what all of them share (the rare classes) is one more subset, to be added to each.

How much a row of each class should count, from how many there are.

With n_k the rows (or their weight) of class k of K, and n of all,

    balanced    n / (K n_k)                    all weigh the same, together as before
    inverse     ~ 1 / n_k                      the same ratios, scaled so that the mean over k is 1
    effective   ~ (1 - beta) / (1 - beta^n_k)  likewise scaled; Cui, Jia, Lin, Song and Belongie
                                               (2019): the inverse of the effective number of rows

`effective` goes from no weights (beta = 0) to `inverse` (beta -> 1). Whoever fits multiplies the
weight of every row, or the moments of every class, which is the same: `ClassMoments.scale`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.errors import ClassWeightError, MomentsMismatchError, OptionError, ResamplingError
from discriminant.moments.accumulate import MomentsReading
from discriminant.moments.class_moments import (
    ClassMoments,
    class_factors,
    find_labels,
    scale_classes,
)
from discriminant.table.blocks import Block, Codes, Floats, Labels, Places, is_sparse

RowNumbers = npt.NDArray[np.intp]
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

    wanted: RowNumbers  # (K,)
    drawn: npt.NDArray[np.bool_]  # (K,) whether the class is drawn from at all; others stay


def target_of(count: RowNumbers, labels: Labels, strategy: Any, method: Method) -> Target:
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


def under_sample(codes: Codes, target: Target, random: np.random.RandomState) -> RowNumbers:
    """Rows to keep, in their order, drawn without replacement."""
    return under_samples(codes, target, random, 1)[0]


def under_samples(
    codes: Codes, target: Target, random: np.random.RandomState, times: int
) -> list[RowNumbers]:
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


def divided(codes: Codes, target: Target, random: np.random.RandomState) -> list[RowNumbers]:
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


def over_sample(codes: Codes, target: Target, random: np.random.RandomState) -> RowNumbers:
    """All rows, then those to repeat, drawn with replacement."""
    parts = [np.arange(len(codes))]
    for k, rows in enumerate(rows_by_class(codes, len(target.wanted))):
        if target.drawn[k]:
            parts.append(random.choice(rows, int(target.wanted[k]) - len(rows), replace=True))
    return np.concatenate(parts)


def rows_by_class(codes: Codes, classes: int) -> list[RowNumbers]:
    """The rows of each class, in their order."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes, minlength=classes))[:-1])


def _by_name(count: RowNumbers, strategy: str, method: Method) -> Target:
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


def _by_label(count: RowNumbers, labels: Labels, strategy: Any, method: Method) -> Target:
    codes = find_labels(labels, list(strategy))
    wanted, drawn = count.copy(), np.zeros(len(count), dtype=np.bool_)
    for k, rows in zip(codes, strategy.values(), strict=True):
        whole = isinstance(rows, int | np.integer) and not isinstance(rows, bool)
        if not whole or rows < 1:
            raise OptionError.of("strategy", dict(strategy), "{class: rows}, each 1 or more")
        if (rows > count[k]) if method == "under" else (rows < count[k]):
            raise ResamplingError.of_rows(labels[k], int(rows), int(count[k]), method)
        wanted[k], drawn[k] = rows, True
    return Target(wanted, drawn)


def _by_ratio(count: RowNumbers, labels: Labels, ratio: float, method: Method) -> Target:
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


def scatter_shares(count: Places, target: Target, method: Method) -> Floats:
    """(K,) how much of the scatter of each class is left, or how often it comes.

    >>> scatter_shares(np.array([9, 3]), Target(np.array([3, 3]), None), "under").tolist()
    [0.25, 1.0]
    >>> scatter_shares(np.array([9, 3]), Target(np.array([9, 9]), None), "over").round(3).tolist()
    [1.0, 2.778]
    """
    n, m = count.astype(np.float64), target.wanted.astype(np.float64)
    if method == "under":
        return np.where(m == n, 1.0, (m - 1.0) / np.maximum(n - 1.0, 1.0))
    return np.asarray((m - (m - n) / m) / n)


def drawn_in_the_mean(moments: ClassMoments, target: Target, method: Method) -> ClassMoments:
    """Mean moments of draws, from those of all rows, of weight 1 each."""
    unweighted = (moments.weight == moments.rows) & (moments.weight2 == moments.rows)
    for k in np.flatnonzero(~unweighted):
        raise ResamplingError.of_weighted_moments(
            moments.labels[k], int(moments.rows[k]), float(moments.weight[k])
        )
    share = scatter_shares(moments.rows, target, method)
    if moments.detail == "pooled":
        raise MomentsMismatchError.needs_detail("Drawing rows of each class", "class", "pooled")
    if moments.detail == "fourth":
        moments = moments.reduce("class")
    scaled = replace(
        moments,
        scatter=scale_classes(share, moments.scatter),
        lost=scale_classes(share, moments.lost),
    )
    return with_rows(scaled, target)


def with_rows(moments: ClassMoments, target: Target) -> ClassMoments:
    """The same means and scatters, said to be of the rows wanted."""
    rows = target.wanted
    weight = rows.astype(np.float64)
    return replace(moments, rows=rows.astype(np.int64), weight=weight, weight2=weight)


@dataclass(frozen=True, slots=True, eq=False)
class SubsetMoments:
    """Moments of T subsets."""

    parts: tuple[ClassMoments, ...]  # T

    def __add__(self, other: SubsetMoments) -> SubsetMoments:
        """Of the rows of both, subset by subset."""
        pairs = zip(self.parts, other.parts, strict=True)
        return SubsetMoments(tuple(ours + theirs for ours, theirs in pairs))

    def __radd__(self, other: object) -> SubsetMoments:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class SubsetsReading:
    """Read the moments of T subsets of a table, given by the numbers of their rows."""

    moments: MomentsReading  # what is read of each
    subsets: tuple[Places, ...]  # T, each sorted and without repeats

    @property
    def summary_size(self) -> int:
        """Size of the summary."""
        return len(self.subsets) * self.moments.summary_size

    def read(self, block: Block) -> SubsetMoments:
        """Moments of the rows of one block that lie in each subset."""
        self._look(block)
        return SubsetMoments(
            tuple(self.moments.read(_taken(block, subset)) for subset in self.subsets)
        )

    def _look(self, block: Block) -> None:
        """Rows that no subset has are still to be numbers."""
        cells = block.features.data if is_sparse(block.features) else block.features
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(np.sum(cells, dtype=np.float64)):
                block.raise_bad_cell(self.moments.features)


def _taken(block: Block, subset: Places) -> Block:
    ends = np.searchsorted(subset, [block.start, block.start + len(block)])
    rows = subset[slice(*ends)] - block.start
    return Block(
        block.features[rows],
        block.codes[rows],
        None if block.weight is None else block.weight[rows],
        start=block.start,
    )


def class_weights(count: Floats, labels: Labels, kind: Any, *, beta: float = 0.999) -> Floats:
    """(K,) what to multiply the weight of each row of a class by.

    Parameters
    ----------
    count
        (K,) rows of each class, or the sum of their weights; positive.
    kind
        'balanced', 'inverse', 'effective', {label: weight} (1 where not named), or (K,) weights.
    beta
        Of 'effective', from 0 to below 1.

    Examples
    --------
    >>> count, labels = np.array([90.0, 10.0]), np.array(["common", "rare"])
    >>> class_weights(count, labels, "balanced").round(3).tolist()
    [0.556, 5.0]
    >>> class_weights(count, labels, "inverse").round(3).tolist()
    [0.2, 1.8]
    """
    if not isinstance(kind, str):
        return _given(labels, kind)
    if kind == "balanced":
        return np.asarray(count.sum() / (len(count) * count))
    if kind == "inverse":
        return _mean_one(1.0 / count)
    if kind != "effective":
        allowed = "'balanced', 'inverse', 'effective', {label: weight} or one weight a class"
        raise OptionError.of("weights", kind, allowed)
    number = isinstance(beta, int | float | np.number) and not isinstance(beta, bool)
    if not number or not 0 <= beta < 1:
        raise OptionError.of("beta", beta, "from 0 (no weights) to below 1 ('inverse')")
    with np.errstate(divide="ignore"):
        return _mean_one(-1.0 / np.expm1(count * np.log(beta)))


def _mean_one(weight: Floats) -> Floats:
    return np.asarray(weight * (len(weight) / weight.sum()))


def _given(labels: Labels, kind: Any) -> Floats:
    if not isinstance(kind, Mapping) and np.asarray(kind).dtype.kind not in "iuf":
        allowed = "'balanced', 'inverse', 'effective', {label: weight} or one weight a class"
        raise OptionError.of("weights", kind, allowed)
    found = class_factors(labels, kind, option="weights")
    for k in np.flatnonzero(found == 0):
        raise ClassWeightError.of_class(labels[k], 0.0)
    return found
