"""Rebalancing of classes: random under- and over-sampling, expected moments, class weights.

Random under-sampling and over-sampling follow imbalanced-learn: with the same seed both libraries
choose the same rows. Only row numbers are sampled; this does not require the features.

The moments of a random sample have a closed-form expectation, so a model can be fitted to the
expected moments without sampling. If a class of n rows with mean c and scatter S is resampled to m
rows:

    under   m rows without replacement                   E scatter = S (m - 1) / (n - 1)
    over    all rows and m - n more with replacement     E scatter = S (m - (m - n) / m) / n
    gaussian    m - n more from the class's Gaussian     see `imbalance.synthetic_rows`

The expected mean is c in both cases. For under-sampling, the expectation of the sample variance
(scatter over m - 1) is the variance of all rows (scatter over n - 1). For over-sampling, if row i
is repeated t_i times and z_i = x_i - c, the scatter is

    sum (1 + t_i) z_i z_i' - (sum t_i z_i)(sum t_i z_i)' / m

and its two terms have the expectations S m / n and S (m - n) / (n m). Weighting each row by m / n
would give the scatter S m / n, which is larger than the expected scatter of a sample. Quantities
that are not linear in the moments, such as slopes, are computed from the expected moments; this is
not the same as the expected value of such a quantity over samples.

The moments of T subsets of the rows, such as under-samples, are summed in one pass over the table:
a `SubsetsReading` sums, for each subset, the rows of a block that belong to it. The rows that all
subsets share (the rows of the rare classes) are summed once, and this sum is added to the sum of
each subset.

Class weights are computed from the class sizes. Let n_k be the number of rows (or the sum of the
weights) of class k of K, and n the sum of all n_k:

    balanced    n / (K n_k)                    every class has the total weight n / K
    inverse     ~ 1 / n_k                      as balanced, but scaled so that the mean over k is 1
    effective   ~ (1 - beta) / (1 - beta^n_k)  scaled likewise; inverse effective number of rows
                                               (Cui, Jia, Lin, Song and Belongie 2019)

`effective` ranges from equal weights (beta = 0) to `inverse` (beta -> 1). A fit multiplies the
weights of the rows by the weight of their class or, equivalently, scales the class moments
(`ClassMoments.scale`).
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
Method = Literal["under", "over", "smote", "adasyn", "borderline-1", "borderline-2", "gaussian"]
_OVER_STRATEGIES = ("auto", "not majority", "not minority", "minority", "all")
STRATEGIES = {
    "under": ("auto", "not minority", "not majority", "majority", "all"),
    "over": _OVER_STRATEGIES,
    "smote": _OVER_STRATEGIES,
    "adasyn": _OVER_STRATEGIES,
    "borderline-1": _OVER_STRATEGIES,
    "borderline-2": _OVER_STRATEGIES,
    "gaussian": _OVER_STRATEGIES,
}


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Number of rows of each class after resampling."""

    wanted: RowNumbers  # (K,)
    resampled: npt.NDArray[np.bool_]  # (K,) classes to resample; the others are unchanged


def target_of(count: RowNumbers, labels: Labels, strategy: Any, method: Method) -> Target:
    """Return the number of rows of each class that a strategy requires.

    Parameters
    ----------
    count
        (K,) number of rows of each class.
    labels
        (K,) classes.
    strategy
        With 'auto', all classes get as many rows as the rarest class ('under') or the most frequent
        class (all other methods). With 'minority', 'majority', 'not minority', 'not majority' or
        'all', only these classes are resampled, to the same size. A number in (0, 1], for two
        classes, is the ratio of the rows of the rare class to those of the frequent class. A
        mapping {label: rows} states the number of rows of each class.
    method
        'under', 'over', or a method that adds synthetic rows.

    Examples
    --------
    >>> target_of(np.array([90, 10]), np.array(["a", "b"]), 0.5, "over").wanted.tolist()
    [90, 45]
    """
    if isinstance(strategy, str):
        return _by_name(count, strategy, method)
    if isinstance(strategy, Mapping):
        return _by_label(count, labels, strategy, method)
    if not _is_number(strategy) or not 0 < strategy <= 1:
        raise _strategy_error(strategy, method)
    return _by_ratio(count, labels, float(strategy), method)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _strategy_error(strategy: Any, method: Method) -> OptionError:
    allowed = f"one of {', '.join(STRATEGIES[method])}, a ratio in (0, 1], or {{class: rows}}"
    return OptionError.of("strategy", strategy, allowed)


def under_sample(codes: Codes, target: Target, random: np.random.RandomState) -> RowNumbers:
    """Return the sorted numbers of the rows of an under-sample, chosen without replacement."""
    return under_samples(codes, target, random, 1)[0]


def under_samples(
    codes: Codes, target: Target, random: np.random.RandomState, times: int
) -> list[RowNumbers]:
    """Return `times` independent under-samples; see `under_sample`."""
    class_rows = rows_by_class(codes, len(target.wanted))
    samples = []
    for _ in range(times):
        selected = np.zeros(len(codes), dtype=np.bool_)
        for k, rows in enumerate(class_rows):
            if target.resampled[k]:
                rows = rows[random.choice(len(rows), int(target.wanted[k]), replace=False)]
            selected[rows] = True
        samples.append(np.flatnonzero(selected))
    return samples


def split_under_samples(
    codes: Codes, target: Target, random: np.random.RandomState
) -> list[RowNumbers]:
    """Return under-samples that together contain every row.

    If a class of n rows is resampled to m rows, its rows are shuffled and split into n / m
    (rounded) disjoint chunks, whose sizes differ by at most one. The number of under-samples is the
    largest number of chunks of any class; a class with fewer chunks uses its chunks repeatedly, in
    turn.

    >>> target = Target(np.array([2, 2]), np.array([True, False]))
    >>> samples = split_under_samples(
    ...     np.array([0, 0, 0, 0, 0, 1, 1]), target, np.random.RandomState(0)
    ... )
    >>> [sample.tolist() for sample in samples]
    [[0, 2, 5, 6], [1, 3, 5, 6], [4, 5, 6]]
    """
    class_parts = []
    for k, rows in enumerate(rows_by_class(codes, len(target.wanted))):
        if target.resampled[k]:
            parts = max(int(len(rows) / target.wanted[k] + 0.5), 1)
            class_parts.append(np.array_split(random.permutation(rows), parts))
        else:
            class_parts.append([rows])
    times = max(map(len, class_parts))
    return [
        np.sort(np.concatenate([parts[t % len(parts)] for parts in class_parts]))
        for t in range(times)
    ]


def over_sample(codes: Codes, target: Target, random: np.random.RandomState) -> RowNumbers:
    """Return the numbers of all rows, then those of rows to repeat (sampled with replacement)."""
    rows = [np.arange(len(codes))]
    for k, own in enumerate(rows_by_class(codes, len(target.wanted))):
        if target.resampled[k]:
            rows.append(random.choice(own, int(target.wanted[k]) - len(own), replace=True))
    return np.concatenate(rows)


def rows_by_class(codes: Codes, classes: int) -> list[RowNumbers]:
    """Return the sorted row numbers of each class."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes, minlength=classes))[:-1])


def _by_name(count: RowNumbers, strategy: str, method: Method) -> Target:
    if strategy not in STRATEGIES[method]:
        raise _strategy_error(strategy, method)
    if strategy == "auto":
        strategy = "not minority" if method == "under" else "not majority"
    codes = np.arange(len(count))
    named = codes == (count.argmin() if "minority" in strategy else count.argmax())
    resampled = ~named if strategy.startswith("not ") else named | (strategy == "all")
    number = count.min() if method == "under" else count.max()
    return Target(np.where(resampled, number, count), resampled)


def _by_label(count: RowNumbers, labels: Labels, strategy: Any, method: Method) -> Target:
    codes = find_labels(labels, list(strategy))
    wanted, resampled = count.copy(), np.zeros(len(count), dtype=np.bool_)
    for k, rows in zip(codes, strategy.values(), strict=True):
        is_integer = isinstance(rows, int | np.integer) and not isinstance(rows, bool)
        if not is_integer or rows < 1:
            raise OptionError.of("strategy", dict(strategy), "{class: rows}, each 1 or more")
        if (rows > count[k]) if method == "under" else (rows < count[k]):
            raise ResamplingError.of_rows(labels[k], int(rows), int(count[k]), method)
        wanted[k], resampled[k] = rows, True
    return Target(wanted, resampled)


def _by_ratio(count: RowNumbers, labels: Labels, ratio: float, method: Method) -> Target:
    if len(count) != 2:
        raise ResamplingError.ratio_of_many(ratio, labels.tolist())
    fewer, more = int(count.min()), int(count.max())
    if method == "under":
        wanted, changed = int(fewer / ratio), 1 - int(count.argmin())
        impossible = wanted > more
    else:
        wanted, changed = fewer + int(more * ratio - fewer), 1 - int(count.argmax())
        impossible = wanted <= fewer
    if impossible:
        raise ResamplingError.of_ratio(ratio, fewer / more)
    resampled = np.arange(2) == changed
    return Target(np.where(resampled, wanted, count), resampled)


def scatter_factors(count: Places, target: Target, method: Method) -> Floats:
    """Return (K,) ratios: expected scatter after resampling divided by scatter before.

    >>> scatter_factors(np.array([9, 3]), Target(np.array([3, 3]), None), "under").tolist()
    [0.25, 1.0]
    >>> scatter_factors(np.array([9, 3]), Target(np.array([9, 9]), None), "over").round(3).tolist()
    [1.0, 2.778]
    """
    n, m = count.astype(np.float64), target.wanted.astype(np.float64)
    if method == "under":
        return np.where(m == n, 1.0, (m - 1.0) / np.maximum(n - 1.0, 1.0))
    if method == "gaussian":
        return np.asarray(1.0 + (m - n - 1.0 + n / m) / np.maximum(n - 1.0, 1.0))
    return np.asarray((m - (m - n) / m) / n)


def expected_sample_moments(moments: ClassMoments, target: Target, method: Method) -> ClassMoments:
    """Return the expected moments of a random sample, given the moments of all rows.

    Every row must have weight 1.
    """
    unweighted = (moments.weight == moments.rows) & (moments.weight2 == moments.rows)
    for k in np.flatnonzero(~unweighted):
        raise ResamplingError.of_weighted_moments(
            moments.labels[k], int(moments.rows[k]), float(moments.weight[k])
        )
    factor = scatter_factors(moments.rows, target, method)
    if moments.detail == "pooled":
        raise MomentsMismatchError.needs_detail("Drawing rows of each class", "class", "pooled")
    if moments.detail == "fourth":
        moments = moments.reduce("class")
    scaled = replace(
        moments,
        scatter=scale_classes(factor, moments.scatter),
        lost=scale_classes(factor, moments.lost),
    )
    return with_rows(scaled, target)


def with_rows(moments: ClassMoments, target: Target) -> ClassMoments:
    """Return the moments with the class sizes of `target`, and unchanged means and scatters."""
    rows = target.wanted
    weight = rows.astype(np.float64)
    return replace(moments, rows=rows.astype(np.int64), weight=weight, weight2=weight)


@dataclass(frozen=True, slots=True, eq=False)
class SubsetMoments:
    """Class moments of T subsets of the rows."""

    parts: tuple[ClassMoments, ...]  # T

    def __add__(self, other: SubsetMoments) -> SubsetMoments:
        """Add the moments subset by subset."""
        pairs = zip(self.parts, other.parts, strict=True)
        return SubsetMoments(tuple(ours + theirs for ours, theirs in pairs))

    def __radd__(self, other: object) -> SubsetMoments:
        """Support `sum`, which starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class SubsetsReading:
    """Sum the moments of T subsets of a table, given by row numbers, in one pass."""

    moments: MomentsReading  # what is summed over each subset
    subsets: tuple[Places, ...]  # T, each sorted and without repeats

    @property
    def summary_size(self) -> int:
        """Number of values that are summed over a block."""
        return len(self.subsets) * self.moments.summary_size

    def read(self, block: Block) -> SubsetMoments:
        """Return, for each subset, the moments of the rows of the block that belong to it."""
        self._check_finite(block)
        return SubsetMoments(
            tuple(self.moments.read(_select_rows(block, subset)) for subset in self.subsets)
        )

    def _check_finite(self, block: Block) -> None:
        """Raise an error if any value is not finite, even in a row that belongs to no subset."""
        cells = block.features.data if is_sparse(block.features) else block.features
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(np.sum(cells, dtype=np.float64)):
                block.raise_bad_cell(self.moments.features)


def _select_rows(block: Block, subset: Places) -> Block:
    ends = np.searchsorted(subset, [block.start, block.start + len(block)])
    rows = subset[slice(*ends)] - block.start
    return Block(
        block.features[rows],
        block.codes[rows],
        None if block.weight is None else block.weight[rows],
        start=block.start,
    )


def class_weights(count: Floats, labels: Labels, kind: Any, *, beta: float = 0.999) -> Floats:
    """Return the (K,) class weights, by which the weights of the rows are multiplied.

    Parameters
    ----------
    count
        (K,) number of rows of each class, or the sum of their weights; positive.
    labels
        (K,) classes.
    kind
        'balanced', 'inverse' or 'effective'; a mapping {label: weight}, where classes that are not
        listed have weight 1; or an array of (K,) weights.
    beta
        Parameter of 'effective', at least 0 and below 1.

    Examples
    --------
    >>> count, labels = np.array([90.0, 10.0]), np.array(["common", "rare"])
    >>> class_weights(count, labels, "balanced").round(3).tolist()
    [0.556, 5.0]
    >>> class_weights(count, labels, "inverse").round(3).tolist()
    [0.2, 1.8]
    """
    if not isinstance(kind, str):
        return _given_weights(labels, kind)
    if kind == "balanced":
        return np.asarray(count.sum() / (len(count) * count))
    if kind == "inverse":
        return _scale_to_mean_one(1.0 / count)
    if kind != "effective":
        raise OptionError.of("weights", kind, _ALLOWED_WEIGHTS)
    if not _is_number(beta) or not 0 <= beta < 1:
        raise OptionError.of("beta", beta, "from 0 (no weights) to below 1 ('inverse')")
    with np.errstate(divide="ignore"):
        return _scale_to_mean_one(-1.0 / np.expm1(count * np.log(beta)))


_ALLOWED_WEIGHTS = "'balanced', 'inverse', 'effective', {label: weight} or one weight a class"


def _scale_to_mean_one(weight: Floats) -> Floats:
    return np.asarray(weight * (len(weight) / weight.sum()))


def _given_weights(labels: Labels, kind: Any) -> Floats:
    if not isinstance(kind, Mapping) and np.asarray(kind).dtype.kind not in "iuf":
        raise OptionError.of("weights", kind, _ALLOWED_WEIGHTS)
    weights = class_factors(labels, kind, option="weights")
    for k in np.flatnonzero(weights == 0):
        raise ClassWeightError.of_class(labels[k], 0.0)
    return weights
