"""How scores rank the rows of one class above the others, in bounded memory.

All of ROC, precision and recall and AUC follows from how much of each kind has which score:

    negative_b, positive_b = weight of the rows of each kind with score s_b     s_1 < s_2 < ...

A `Ranking` keeps these for at most `bins` scores. A float64 is 64 bits whose order is that of the
numbers (the sign turned about, negative numbers inverted). As long as there are at most `bins`
distinct scores all bits are kept, and nothing is lost. Then as many of the last bits of every score
are dropped as needed, and no more: scores that agree in the others share a bin. How many that are
depends on the set of scores alone, and a part never needs to drop more than the whole. So parts
merge to exactly what reading the whole gives, in any order and grouping.

What is lost is known. The lower edge of a bin is a threshold with exact counts at and above it, so
every corner of a curve is a true point of it. Within a bin the order of the rows is not known; they
count as ties, and the AUC is off by at most

    1/2 sum_b (share of positives in b) (share of negatives in b)

which is worked out from what was read: `assessment.auc` and `assessment.roc` state it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import OptionError, ScoreError
from discriminant.table.blocks import Block, Features, Floats

Keys = npt.NDArray[np.uint64]
BINS = 1 << 16
_TOP = np.uint64(1 << 63)
_LEAST = np.uint64((1 << 52) - 1)  # of -inf; what is below would be NaN


@dataclass(frozen=True, slots=True, eq=False)
class ScoreCounts:
    """Weight of the rows of both kinds at each score."""

    threshold: Floats  # (m,) rising
    negative: Floats  # (m,)
    positive: Floats  # (m,)
    exact: bool = True  # whether rows of one step have one score, or only nearly


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Weight of positive and negative rows at up to `bins` scores. Rankings of parts add."""

    positive: Any  # the label that high scores speak for
    bins: int
    dropped: int  # last bits of scores that are not told apart
    keys: Keys  # (m,) rising
    weight: Floats  # (2, m) of the negative rows, of the positive ones

    @classmethod
    def empty(cls, positive: Any, *, bins: int = BINS) -> Ranking:
        """Ranking of no rows."""
        if not isinstance(bins, int | np.integer) or bins < 1:
            raise OptionError.of("bins", bins, "a whole number of 1 or more")
        return cls(positive, int(bins), 0, np.zeros(0, dtype=np.uint64), np.zeros((2, 0)))

    @classmethod
    def of(
        cls,
        scores: npt.NDArray[Any],
        own: npt.NDArray[np.bool_],
        *,
        positive: Any,
        weight: Floats | None = None,
        bins: int = BINS,
    ) -> Ranking:
        """Rank some rows; add what other rows give. For labels there is `discriminant.ranking`.

        Parameters
        ----------
        scores
            (n,) numbers, none of them NaN.
        own
            (n,) which rows are of the positive class.
        positive
            Its label.
        weight
            (n,) how many rows each counts for; one of 0 is absent.
        bins
            Scores told apart. A bin takes 24 bytes.

        Examples
        --------
        >>> one = Ranking.of(np.array([0.9, 0.2]), np.array([True, False]), positive="ill")
        >>> one.steps().threshold.tolist(), one.steps().positive.tolist()
        ([0.2, 0.9], [0.0, 1.0])
        """
        return cls.empty(positive, bins=bins)._read(scores, own, weight)

    def __add__(self, other: Ranking) -> Ranking:
        """Over the rows of both."""
        if self.positive != other.positive:
            raise ScoreError.of_positives(self.positive, other.positive)
        if self.bins != other.bins:
            raise ScoreError.of_bins(self.bins, other.bins)
        if not len(self.keys) or not len(other.keys):
            return self if len(self.keys) else other
        keys = np.concatenate([self.keys, other.keys])
        weight = np.concatenate([self.weight, other.weight], axis=1)
        return self._fitted(keys, weight, max(self.dropped, other.dropped))

    def __radd__(self, other: object) -> Ranking:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __repr__(self) -> str:
        """One line: how many rows, in how many bins."""
        negative, positive = self.weight.sum(axis=1)
        lost = "all bits of scores" if not self.dropped else f"{64 - self.dropped} bits of scores"
        return (
            f"Ranking(positive={self.positive!r}: {positive:g}, others: {negative:g}, "
            f"{len(self.keys)} of {self.bins} bins, {lost})"
        )

    def steps(self) -> ScoreCounts:
        """The weights at the lower edges of the bins."""
        return ScoreCounts(scores_of(self.keys), self.weight[0], self.weight[1], self.dropped == 0)

    def _read(
        self, scores: npt.NDArray[Any], own: npt.NDArray[np.bool_], weight: Floats | None
    ) -> Ranking:
        """The ranking of other rows, of the same kind as this one."""
        if weight is not None:
            some = weight > 0
            scores, own, weight = scores[some], own[some], weight[some]
        keys = keys_of(scores)
        parts, weights = [], []
        for kind in (False, True):
            mine = own == kind
            distinct, count = _counted(keys[mine], None if weight is None else weight[mine])
            both = np.zeros((2, len(distinct)))
            both[int(kind)] = count
            parts.append(distinct)
            weights.append(both)
        return self._fitted(np.concatenate(parts), np.concatenate(weights, axis=1), 0)

    def _fitted(self, keys: Keys, weight: Floats, dropped: int) -> Ranking:
        """One bin for each key, with as many bits dropped as the number of bins asks for."""
        keys, weight = _gathered(_cut(keys, dropped), weight)
        needed = _bits_to_drop(keys, self.bins)
        if needed > dropped:
            dropped = needed
            keys, weight = _gathered(_cut(keys, dropped), weight)
        return Ranking(self.positive, self.bins, dropped, keys, weight)


@dataclass(frozen=True, slots=True, eq=False)
class RankingReading:
    """Score rows and rank them."""

    positive: Any  # the label that high scores speak for
    code: int  # and its code
    scores: Callable[[Features], npt.NDArray[Any]]  # (n, d) rows to (n,) scores
    bins: int = BINS

    @property
    def summary_size(self) -> int:
        """Size of the summary."""
        return 3 * self.bins

    def read(self, block: Block) -> Ranking:
        """Ranking of the rows of one block."""
        scores = self.scores(block.features)
        values = score_values(scores, len(block), [self.positive], start=block.start)
        own = block.codes == self.code
        return Ranking.of(values, own, positive=self.positive, weight=block.weight, bins=self.bins)


def score_values(scores: Any, rows: int, labels: list[Any], *, start: int = 0) -> npt.NDArray[Any]:
    """(n,) scores as numbers, none of them NaN; infinities have a rank."""
    found = as_numbers(scores)
    if found.shape != (rows,):
        raise ScoreError.of_shape(found.shape, rows, labels)
    check_missing(found, start=start)
    return found


def as_numbers(scores: Any) -> npt.NDArray[Any]:
    """Scores as they are if they are numbers, or made into float64."""
    found = np.asarray(scores)
    if found.dtype.kind in "iu" or found.dtype in (np.float32, np.float64):
        return found
    try:
        return found.astype(np.float64)
    except (TypeError, ValueError):
        raise ScoreError.not_numbers(f"{found.dtype}") from None


def check_missing(scores: npt.NDArray[Any], column: object = None, *, start: int = 0) -> None:
    """Refuse NaN by its row, counted from `start`."""
    if scores.dtype.kind == "f" and np.isnan(scores).any():
        wrong = np.flatnonzero(np.isnan(scores))
        raise ScoreError.missing(start + int(wrong[0]), len(wrong), column)


def keys_of(scores: npt.NDArray[Any]) -> Keys:
    """Whole numbers in the order of the scores; -0 and 0 are one.

    >>> scores_of(keys_of(np.array([-np.inf, -1.5, -0.0, 2.0]))).tolist()
    [-inf, -1.5, 0.0, 2.0]
    """
    bits = np.ascontiguousarray(scores.astype(np.float64) + 0.0).view(np.uint64)
    return np.asarray(np.where(bits & _TOP, ~bits, bits | _TOP))


def scores_of(keys: Keys) -> Floats:
    """The scores that whole numbers stand for; below -inf there is none."""
    keys = np.maximum(keys, _LEAST)
    return np.asarray(np.where(keys & _TOP, keys ^ _TOP, ~keys)).view(np.float64)


def _cut(keys: Keys, dropped: int) -> Keys:
    """Without the last bits."""
    if dropped == 64:
        return np.zeros_like(keys)
    return np.asarray((keys >> np.uint64(dropped)) << np.uint64(dropped))


def _bits_to_drop(keys: Keys, bins: int) -> int:
    """The fewest last bits whose loss leaves no more than `bins` of the rising keys distinct."""
    apart = keys[1:] ^ keys[:-1]  # neighbours stay two as long as a bit of this is kept
    for dropped in range(64):
        if np.count_nonzero(apart >> np.uint64(dropped)) < bins:
            return dropped
    return 64


def _counted(keys: Keys, weight: Floats | None) -> tuple[Keys, Floats]:
    """Distinct keys, rising, and their weights."""
    if weight is not None:
        distinct, sums = _gathered(keys, weight[None])
        return distinct, sums[0]
    keys = np.sort(keys)
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    return keys[first], np.diff(first, append=len(keys)).astype(np.float64)


def _gathered(keys: Keys, weight: Floats) -> tuple[Keys, Floats]:
    """Equal keys as one, with the sum (2, m) of their weights."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    if len(first) == len(keys):
        return keys, weight[:, order]
    return keys[first], np.add.reduceat(weight[:, order], first, axis=1)
