"""Ranking of rows by a score, in bounded memory, for ROC curves, precision-recall and AUC.

One class is positive and all others negative. ROC curve, precision, recall and AUC are computed
from the weights of the negative and of the positive rows at each score:

    negative_b, positive_b = weight of the rows of each kind with score s_b     s_1 < s_2 < ...

A `Ranking` stores these weights for at most `bins` scores. If the 64 bits of a float64 are read as
an integer (after flipping the sign bit, and all bits of negative numbers), the integers have the
same order as the numbers. If there are at most `bins` distinct scores, all bits are stored and the
scores are exact. If there are more than `bins` distinct scores, trailing bits are dropped from
every score, as few as possible, and scores that agree in the remaining bits share a bin. The number
of dropped bits depends only on the set of scores, and a subset of the scores never drops more bits
than all scores. So merging the rankings of several parts of a table, in any order and grouping,
gives exactly the result of one pass over all rows.

The error of this approximation is bounded. The weight of the rows with scores at or above the lower
edge of a bin is exact, so every corner of the computed curve lies on the true curve. Within a bin
the order of the rows is unknown. Rows in one bin count as ties, and the error of the AUC is at most

    1/2 sum_b (share of positives in b) (share of negatives in b)

`assessment.ranking` reports this bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import OptionError, ScoreError
from discriminant.moments.summary_base import Summable
from discriminant.table.blocks import Block, Features, Floats

Keys = npt.NDArray[np.uint64]
BINS = 1 << 16
_SIGN = np.uint64(1 << 63)
_MIN_KEY = np.uint64((1 << 52) - 1)  # key of -inf; smaller keys would be NaN


@dataclass(frozen=True, slots=True, eq=False)
class ScoreCounts:
    """Weight of positive and negative rows at each score."""

    threshold: Floats  # (m,) increasing
    negative: Floats  # (m,)
    positive: Floats  # (m,)
    exact: bool = True  # whether all rows at a threshold have exactly that score


@dataclass(frozen=True, slots=True, eq=False)
class Ranking(Summable):
    """Weight of positive and negative rows at up to `bins` scores; rankings can be added.

    `discriminant.ranking` computes it from labels and scores.

    Parameters
    ----------
    positive : label
        Label of the class that high scores indicate.
    bins : int
        Maximum number of distinct scores that are stored.
    dropped : int
        Number of trailing bits of the scores that are dropped.
    keys : array of shape (m,)
        Integers that have the same order as the scores; sorted.
    weight : array of shape (2, m)
        Weight of the negative rows and of the positive rows at each score.

    See Also
    --------
    discriminant.ranking : Rank rows by labels and scores.
    discriminant.auc : Area under the ROC curve.
    """

    positive: Any
    bins: int
    dropped: int
    keys: Keys  # (m,) increasing
    weight: Floats  # (2, m) weight of the negative rows, then of the positive rows

    @classmethod
    def empty(cls, positive: Any, *, bins: int = BINS) -> Ranking:
        """Return a ranking without rows."""
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
        """Rank some rows. The ranking can be added to rankings of other rows.

        Parameters
        ----------
        scores : array of shape (n,)
            Numbers; NaN is not allowed.
        own : boolean array of shape (n,)
            True for the rows of the positive class.
        positive : label
            Label of the positive class.
        weight : array of shape (n,), optional
            Weight of each row; a row of weight 0 is ignored.
        bins : int, default=65536
            Maximum number of distinct scores that are stored. A bin takes 24 bytes.

        Returns
        -------
        Ranking

        See Also
        --------
        discriminant.ranking : Compute the ranking from labels instead of a boolean array.

        Examples
        --------
        >>> ill = Ranking.of(np.array([0.9, 0.2]), np.array([True, False]), positive="ill")
        >>> ill.steps().threshold.tolist(), ill.steps().positive.tolist()
        ([0.2, 0.9], [0.0, 1.0])
        """
        return cls.empty(positive, bins=bins)._read(scores, own, weight)

    def __add__(self, other: Ranking) -> Ranking:
        if self.positive != other.positive:
            raise ScoreError.of_positives(self.positive, other.positive)
        if self.bins != other.bins:
            raise ScoreError.of_bins(self.bins, other.bins)
        if not len(self.keys) or not len(other.keys):
            return self if len(self.keys) else other
        keys = np.concatenate([self.keys, other.keys])
        weight = np.concatenate([self.weight, other.weight], axis=1)
        return self._with_bins(keys, weight, max(self.dropped, other.dropped))

    def __repr__(self) -> str:
        negative, positive = self.weight.sum(axis=1)
        precision = (
            "all bits of scores" if not self.dropped else f"{64 - self.dropped} bits of scores"
        )
        return (
            f"Ranking(positive={self.positive!r}: {positive:g}, others: {negative:g}, "
            f"{len(self.keys)} of {self.bins} bins, {precision})"
        )

    def steps(self) -> ScoreCounts:
        """Return the weight of positive and negative rows in each bin, with its lower edge."""
        return ScoreCounts(
            scores_from_keys(self.keys), self.weight[0], self.weight[1], self.dropped == 0
        )

    def _read(
        self, scores: npt.NDArray[Any], own: npt.NDArray[np.bool_], weight: Floats | None
    ) -> Ranking:
        """Rank other rows, with the same positive class and number of bins."""
        if weight is not None:
            counted = weight > 0
            scores, own, weight = scores[counted], own[counted], weight[counted]
        keys = score_keys(scores)
        distinct_keys, weights = [], []
        for kind in (False, True):
            of_kind = own == kind
            distinct, count = _distinct(keys[of_kind], None if weight is None else weight[of_kind])
            both = np.zeros((2, len(distinct)))
            both[int(kind)] = count
            distinct_keys.append(distinct)
            weights.append(both)
        return self._with_bins(np.concatenate(distinct_keys), np.concatenate(weights, axis=1), 0)

    def _with_bins(self, keys: Keys, weight: Floats, dropped: int) -> Ranking:
        """Return a ranking with these keys.

        If there are more keys than bins, more trailing bits are dropped.
        """
        keys, weight = _merge_equal(_drop_bits(keys, dropped), weight)
        needed = _bits_to_drop(keys, self.bins)
        if needed > dropped:
            dropped = needed
            keys, weight = _merge_equal(_drop_bits(keys, dropped), weight)
        return Ranking(self.positive, self.bins, dropped, keys, weight)


@dataclass(frozen=True, slots=True, eq=False)
class RankingReading:
    """Compute the scores of rows and rank the rows by them."""

    positive: Any  # label of the positive class
    code: int  # code of the positive class
    scores: Callable[[Features], npt.NDArray[Any]]  # (n, d) rows to (n,) scores
    bins: int = BINS

    @property
    def summary_size(self) -> int:
        return 3 * self.bins

    def read(self, block: Block) -> Ranking:
        scores = self.scores(block.features)
        values = score_values(scores, len(block), [self.positive], start=block.start)
        own = block.codes == self.code
        return Ranking.of(values, own, positive=self.positive, weight=block.weight, bins=self.bins)


def score_values(scores: Any, rows: int, labels: list[Any], *, start: int = 0) -> npt.NDArray[Any]:
    """Return the scores as numbers, (n,). NaN raises ScoreError; infinite scores are allowed."""
    values = as_numbers(scores)
    if values.shape != (rows,):
        raise ScoreError.of_shape(values.shape, rows, labels)
    check_missing(values, start=start)
    return values


def as_numbers(scores: Any) -> npt.NDArray[Any]:
    """Return scores unchanged if they are numbers, else converted to float64."""
    values = np.asarray(scores)
    if values.dtype.kind in "iu" or values.dtype in (np.float32, np.float64):
        return values
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise ScoreError.not_numbers(f"{values.dtype}") from None


def check_missing(scores: npt.NDArray[Any], column: object = None, *, start: int = 0) -> None:
    """Raise ScoreError if a score is NaN. Rows in the message are counted from `start`."""
    if scores.dtype.kind == "f" and np.isnan(scores).any():
        missing = np.flatnonzero(np.isnan(scores))
        raise ScoreError.missing(start + int(missing[0]), len(missing), column)


def score_keys(scores: npt.NDArray[Any]) -> Keys:
    """Return integers with the same order as the scores; -0 and 0 give the same integer.

    >>> scores_from_keys(score_keys(np.array([-np.inf, -1.5, -0.0, 2.0]))).tolist()
    [-inf, -1.5, 0.0, 2.0]
    """
    bits = np.ascontiguousarray(scores.astype(np.float64) + 0.0).view(np.uint64)
    return np.asarray(np.where(bits & _SIGN, ~bits, bits | _SIGN))


def scores_from_keys(keys: Keys) -> Floats:
    """Convert integer keys back to scores. Keys below the key of -inf become -inf."""
    keys = np.maximum(keys, _MIN_KEY)
    return np.asarray(np.where(keys & _SIGN, keys ^ _SIGN, ~keys)).view(np.float64)


def _drop_bits(keys: Keys, dropped: int) -> Keys:
    if dropped == 64:
        return np.zeros_like(keys)
    return np.asarray((keys >> np.uint64(dropped)) << np.uint64(dropped))


def _bits_to_drop(keys: Keys, bins: int) -> int:
    """Return the number of trailing bits to drop from the sorted keys.

    The result is the smallest number of bits that leaves at most `bins` distinct keys.
    """
    differing = keys[1:] ^ keys[:-1]  # keys remain distinct as long as one of these bits is stored
    for dropped in range(64):
        if np.count_nonzero(differing >> np.uint64(dropped)) < bins:
            return dropped
    return 64


def _distinct(keys: Keys, weight: Floats | None) -> tuple[Keys, Floats]:
    """Return the distinct keys, sorted, and their weights."""
    if weight is not None:
        distinct, sums = _merge_equal(keys, weight[None])
        return distinct, sums[0]
    keys = np.sort(keys)
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    return keys[first], np.diff(first, append=len(keys)).astype(np.float64)


def _merge_equal(keys: Keys, weight: Floats) -> tuple[Keys, Floats]:
    """Return the distinct keys, sorted, with the sums (2, m) of their weights."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    if len(first) == len(keys):
        return keys, weight[:, order]
    return keys[first], np.add.reduceat(weight[:, order], first, axis=1)
