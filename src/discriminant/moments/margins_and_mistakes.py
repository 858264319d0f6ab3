"""Margins of rows summed over a table: counts by sign, smallest margins, perceptron mistakes.

A row u of class y has, for each other class c, the margin

    m_c(u) = score_y(u) - score_c(u)        score_k(u) = u . w_k + b_k

`Margins` counts negative, zero and positive margins for each pair of a row's class y and another
class c. A margin counts as zero if it differs from zero by at most the rounding error,

    |m_c| <= slack * ( sum_j (|u_j| + offset_range_j) (|w_yj| + |w_cj|) + |b_y| + |b_c| )

where `slack` is `(8 + d) eps`, a bound on the relative rounding error of two inner products. If the
coefficients themselves are less accurate, the caller passes a larger `slack`.

For each class `Margins` also stores the `keep` distinct rows with the smallest margins. Ties are
broken by a hash of the row. If many rows have equal margins (as all rows have at zero
coefficients), the stored rows are therefore a random sample that does not depend on the order of
the rows.

`Mistakes` holds the sums that training a perceptron needs. Let `z = (x - origin) scale` be a row of
class `t`, followed by the constant 1 for the intercept. Its margin is

    two classes   sign z.w              K classes   z.w_t - z.w_r, r the best-scoring other class

and the row is misclassified unless its margin is positive. A misclassified row adds `sign z` to the
update of w for two classes; for K classes it adds `z` to the update of w_t and `-z` to that of w_r.
The criterion `J_p` is the sum of the negated margins of the misclassified rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import MomentsMismatchError
from discriminant.moments.anchor import Anchor, align_anchors
from discriminant.moments.summary_base import Summable, split_rows
from discriminant.table.blocks import Block, Codes, Features, Floats, Places, dense, is_sparse

_MISTAKE_ROWS = 4096  # rows of a tile
_SAFE = 1e150  # squares of numbers up to this size are finite


@dataclass(frozen=True, slots=True, eq=False)
class RowScaling:
    """Standardisation `z = (x - origin) scale` of rows, and the constant appended to each row."""

    origin: Floats  # (d,) zero for sparse rows
    scale: Floats  # (d,) zero excludes a column
    intercept: float  # appended constant: 1, or 0 without intercept

    @property
    def squarable(self) -> bool:
        """Whether the scales can be squared without overflow."""
        positive = self.scale[self.scale > 0]
        return not len(positive) or bool(positive.max() < _SAFE and positive.min() > 1.0 / _SAFE)

    def rows(self, features: Features) -> Any:
        """Return the standardised rows `z`, (n, d). Sparse rows stay sparse."""
        if is_sparse(features):
            scaled = features.astype(np.float64)
            scaled.data *= self.scale[scaled.indices]
            return scaled
        return (np.asarray(dense(features), dtype=np.float64) - self.origin) * self.scale


@dataclass(frozen=True, slots=True, eq=False)
class LinearWeights:
    """Weights of one score for two classes, or of K scores."""

    slope: Floats  # (1, d) or (K, d)
    intercept: Floats  # (1,) or (K,)

    @classmethod
    def zero(cls, classes: int, width: int) -> LinearWeights:
        scores = 1 if classes == 2 else classes
        return cls(np.zeros((scores, width)), np.zeros(scores))

    def copy(self) -> LinearWeights:
        return LinearWeights(self.slope.copy(), self.intercept.copy())

    def scale(self, factor: float) -> LinearWeights:
        return LinearWeights(factor * self.slope, factor * self.intercept)

    def add_scaled(self, other: LinearWeights, factor: float) -> LinearWeights:
        return LinearWeights(
            self.slope + factor * other.slope, self.intercept + factor * other.intercept
        )

    @property
    def norm(self) -> float:
        """Euclidean norm of all weights."""
        return float(np.hypot(np.linalg.norm(self.slope), np.linalg.norm(self.intercept)))


@dataclass(frozen=True, slots=True, eq=False)
class Mistakes(Summable):
    """Sums over the misclassified rows of a perceptron."""

    count: int
    min_margin: float  # smallest margin
    radius: float  # largest norm of a row z, including the constant 1
    criterion: float  # J_p
    update: LinearWeights  # sum of the updates of misclassified rows

    def __add__(self, other: Mistakes) -> Mistakes:
        return Mistakes(
            self.count + other.count,
            min(self.min_margin, other.min_margin),
            max(self.radius, other.radius),
            self.criterion + other.criterion,
            self.update.add_scaled(other.update, 1.0),
        )


@dataclass(frozen=True, slots=True, eq=False)
class MistakesReading:
    """Sum the updates of the rows that the given weights misclassify."""

    weights: LinearWeights
    scaling: RowScaling
    detailed: bool = True  # if False, only the count and min_margin are computed

    @property
    def summary_size(self) -> int:
        return int(self.weights.slope.size)

    def read(self, block: Block) -> Mistakes:
        if is_sparse(block.features) and not self.detailed:
            return self._count(block)
        total = self._tile(block.rows(0, _MISTAKE_ROWS))
        for lo in range(_MISTAKE_ROWS, len(block), _MISTAKE_ROWS):
            total = total + self._tile(block.rows(lo, min(lo + _MISTAKE_ROWS, len(block))))
        return total

    def _tile(self, tile: Block) -> Mistakes:
        if not self.detailed:
            return self._count(tile)
        z, constant = self.scaling.rows(tile.features), self.scaling.intercept
        scores = z @ self.weights.slope.T + constant * self.weights.intercept
        margin, direction = margins_and_directions(scores, tile.codes)
        misclassified = ~(margin > 0)
        direction = direction[misclassified]
        update = LinearWeights(
            np.asarray((z[misclassified].T @ direction).T), constant * direction.sum(axis=0)
        )
        squares = z.power(2).sum(axis=1) if is_sparse(z) else np.einsum("ij,ij->i", z, z)
        radius = float(np.sqrt(np.max(squares) + constant)) if len(margin) else 0.0
        return Mistakes(
            int(misclassified.sum()),
            float(margin.min(initial=np.inf)),
            radius,
            float(-margin[misclassified].sum()),
            update,
        )

    def _count(self, tile: Block) -> Mistakes:
        slope, rows = self.weights.slope * self.scaling.scale, tile.features
        if not is_sparse(rows):
            rows = np.subtract(dense(rows), self.scaling.origin, dtype=np.float64)
        scores = np.asarray(rows @ slope.T) + self.scaling.intercept * self.weights.intercept
        margin = margins_and_directions(scores, tile.codes)[0]
        no_update = LinearWeights(np.zeros((0, 0)), np.zeros(0))
        count = int(np.count_nonzero(~(margin > 0)))
        return Mistakes(count, float(margin.min(initial=np.inf)), np.nan, np.nan, no_update)


def margins_and_directions(scores: Floats, codes: Codes) -> tuple[Floats, Floats]:
    """Return the margins of the rows (n,) and the directions of their updates (n, m).

    The margin is the score of the true class minus the largest other score.
    """
    rows = np.arange(len(codes))
    if scores.shape[1] == 1:
        sign = 2.0 * codes.astype(np.float64) - 1.0
        return sign * scores[:, 0], sign[:, None]
    others = scores.copy()
    others[rows, codes] = -np.inf
    rival = others.argmax(axis=1)
    direction = np.zeros_like(scores)
    direction[rows, codes] = 1.0
    direction[rows, rival] = -1.0
    return scores[rows, codes] - scores[rows, rival], direction


_EPS = float(np.finfo(np.float64).eps)
_TILE = 1 << 19  # numbers in a tile; tiles are long, because merging each one takes time
_MIX = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)  # MurmurHash3

Counts = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Margins(Summable):
    """Counts of margins, and rows with the smallest margins, for one set of coefficients."""

    features: tuple[str, ...]  # d names
    anchor: Anchor
    keep: int  # largest number of rows stored per class
    negative: Counts  # (K, K) number of margins by class of the row and by other class
    zero: Counts  # (K, K)
    positive: Counts  # (K, K)
    codes: Places  # (m,) classes of the stored rows, sorted
    margin: Floats  # (m,) their smallest margins, increasing within each class
    tiebreak: Hashes  # (m,) hashes that order rows of equal margin
    offsets: Floats  # (m, d)

    @classmethod
    def empty(cls, features: Sequence[str], classes: int, *, anchor: Anchor, keep: int) -> Margins:
        """Return counts without rows; adding them to other counts changes nothing."""
        none = np.zeros((classes, classes), dtype=np.int64)
        return cls(
            tuple(features),
            anchor,
            keep,
            none,
            none,
            none,
            np.zeros(0, dtype=np.intp),
            np.zeros(0),
            np.zeros(0, dtype=np.uint64),
            np.zeros((0, len(features))),
        )

    def __add__(self, other: Margins) -> Margins:
        """Add margins computed with the same coefficients; their origins and units may differ."""
        if self.features != other.features:
            raise MomentsMismatchError.of_features(self.features, other.features)
        empty, other_empty = not len(self.codes), not len(other.codes)
        ours, theirs = align_anchors(self, other, empty=empty, other_empty=other_empty)
        total = replace(
            ours,
            negative=ours.negative + theirs.negative,
            zero=ours.zero + theirs.zero,
            positive=ours.positive + theirs.positive,
            codes=np.concatenate([ours.codes, theirs.codes]),
            margin=np.concatenate([ours.margin, theirs.margin]),
            tiebreak=np.concatenate([ours.tiebreak, theirs.tiebreak]),
            offsets=np.concatenate([ours.offsets, theirs.offsets]),
        )
        return total if empty or other_empty else total._smallest_rows()

    def at(self, anchor: Anchor) -> Margins:
        """Convert the stored rows to offsets from another anchor."""
        if anchor.same_as(self.anchor):
            return self
        offsets = self.offsets * (self.anchor.unit / anchor.unit) + self.anchor.shift_to(anchor)
        return replace(self, anchor=anchor, offsets=offsets)

    def _smallest_rows(self) -> Margins:
        """Remove all rows except those to be stored, which are sorted and distinct."""
        distinct = np.lexsort((self.margin, self.tiebreak, self.codes))
        codes, hashes = self.codes[distinct], self.tiebreak[distinct]
        new = np.append(True, (codes[1:] != codes[:-1]) | (hashes[1:] != hashes[:-1]))
        distinct = distinct[new[: len(distinct)]]
        keys = self.tiebreak[distinct], self.margin[distinct], self.codes[distinct]
        order = distinct[np.lexsort(keys)]
        codes = self.codes[order]
        rank = np.arange(len(codes)) - np.searchsorted(codes, codes)
        order = order[rank < self.keep]
        return replace(
            self,
            codes=self.codes[order],
            margin=self.margin[order],
            tiebreak=self.tiebreak[order],
            offsets=self.offsets[order],
        )

    def zero_columns(self) -> npt.NDArray[np.bool_]:
        """Return a boolean array (d,): True for columns that are zero in every stored row."""
        return np.asarray((self.anchor.origin == 0) & ~self.offsets.any(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class MarginReading:
    """Compute the margins of rows at given coefficients."""

    features: tuple[str, ...]  # d names
    anchor: Anchor
    coef: Floats  # (K, d) for offsets
    intercept: Floats  # (K,)
    keep: int  # rows stored per class
    offset_range: Floats | None = None  # (d,) size of the offsets, for the rounding bound
    slack: float | None = None  # None means (8 + d) eps

    @property
    def summary_size(self) -> int:
        K, d = self.coef.shape
        return int(K * self.keep * (d + 3) + 3 * K * K)

    def read(self, block: Block) -> Margins:
        K, d = self.coef.shape
        total = Margins.empty(self.features, K, anchor=self.anchor, keep=self.keep)
        size = max(_TILE // (d + 4 * K), 256)
        with np.errstate(invalid="ignore", over="ignore"):  # bad cells are reported
            for tile in split_rows(block, size):
                total = total + self._tile(tile)
        return total

    def _tile(self, tile: Block) -> Margins:
        if tile.weight is not None and not tile.weight.all():
            counted = tile.weight > 0
            tile = replace(
                tile, features=tile.features[counted], codes=tile.codes[counted], weight=None
            )
        K = len(self.intercept)
        codes = tile.codes.astype(np.intp)
        offsets = self.anchor.offsets(tile.features)
        if K == 2:
            smallest = self._two_class_margins(tile, offsets, codes)
            signs = (smallest < 0, smallest == 0, smallest > 0)
            counts = [_by_class_of_two(which, codes) for which in signs]
        else:
            margins = self._margins(tile, offsets, codes)
            margins[np.arange(len(tile)), codes] = np.inf
            smallest = margins.min(axis=1)
            counts = [_by_class(which, codes) for which in (margins < 0, margins == 0, margins > 0)]
            counts[2][np.arange(K), np.arange(K)] = 0
        stored = self._smallest(smallest, codes, tile)
        values = dense(tile.features[stored])
        margins_of_tile = Margins(
            features=self.features,
            anchor=self.anchor,
            keep=self.keep,
            negative=counts[0],
            zero=counts[1],
            positive=counts[2],
            codes=codes[stored],
            margin=smallest[stored],
            tiebreak=_hash_rows(values.astype(np.float64)),
            offsets=self.anchor.offsets(values),
        )
        return margins_of_tile._smallest_rows()

    def _margins(self, tile: Block, offsets: Floats, codes: Places) -> Floats:
        """Return the margins (n, K); a margin within rounding error of zero is set to zero.

        The array `offsets` is overwritten.
        """
        scores, size = self._scores_and_sizes(tile, offsets)
        true = codes[:, None]
        margins = np.take_along_axis(scores, true, axis=1) - scores
        size += np.take_along_axis(size, true, axis=1)
        size *= self._slack
        margins[np.abs(margins) <= size] = 0.0
        return np.asarray(margins)

    def _two_class_margins(self, tile: Block, offsets: Floats, codes: Places) -> Floats:
        """Return the margins (n,) of two classes: the same as those of `_margins`, but faster.

        The array `offsets` is overwritten.
        """
        scores, size = self._scores_and_sizes(tile, offsets)
        margins = scores[:, 1] - scores[:, 0]
        np.negative(margins, out=margins, where=codes == 0)
        margins[np.abs(margins) <= self._slack * (size[:, 0] + size[:, 1])] = 0.0
        return np.asarray(margins)

    def _scores_and_sizes(self, tile: Block, offsets: Floats) -> tuple[Floats, Floats]:
        """Return the scores (n, K), and the sums (n, K) of the absolute values of their terms.

        The array `offsets` is overwritten.
        """
        scores = offsets @ self.coef.T
        scores += self.intercept
        if not np.isfinite(scores).all():
            tile.raise_bad_cell(self.features)
        size = np.abs(offsets, out=offsets) @ np.abs(self.coef.T)
        size += self._floor()
        return scores, size

    @property
    def _slack(self) -> float:
        return (8 + len(self.features)) * _EPS if self.slack is None else self.slack

    def _floor(self) -> Floats:
        """Return the (K,) parts of the rounding bounds that are common to all rows."""
        size = np.abs(self.intercept)
        return size if self.offset_range is None else size + np.abs(self.coef) @ self.offset_range

    def _smallest(self, margin: Floats, codes: Places, tile: Block) -> Places:
        """Return indices of candidate rows.

        The candidates include, for each class, the `keep` rows that are to be stored.
        """
        indices = []
        for k in range(len(self.intercept)):
            candidates = np.flatnonzero(codes == k)
            if len(candidates) > self.keep:
                margins = margin[candidates]
                candidates = candidates[margins <= self._margin_limit(margins)]
                if len(candidates) > 4 * self.keep:  # probably because of ties
                    hashes = _hash_rows(dense(tile.features[candidates]).astype(np.float64))
                    candidates = candidates[self._first(margin[candidates], hashes)]
            indices.append(candidates)
        return np.concatenate(indices)

    def _first(self, margin: Floats, hashes: Hashes) -> Places:
        """Return the indices of the first `keep` distinct rows, sorted by margin and then by hash.

        Many rows usually share the largest of these margins. To save time, only the ones with the
        smallest hashes are sorted, unless too many of those are equal rows.
        """
        ties = np.flatnonzero(margin == margin.max())
        few = 4 * self.keep
        if len(ties) > 2 * few:
            limit = np.partition(hashes[ties], few)[few]
            chosen = np.flatnonzero((margin < margin[ties[0]]) | (hashes <= limit))
            first = self._sorted_distinct(margin[chosen], hashes[chosen])
            if len(first) == self.keep:
                return np.asarray(chosen[first])
        return self._sorted_distinct(margin, hashes)

    def _sorted_distinct(self, margin: Floats, hashes: Hashes) -> Places:
        order = np.lexsort((hashes, margin))
        new = np.append(True, hashes[order][1:] != hashes[order][:-1])
        return np.asarray(order[new][: self.keep])

    def _margin_limit(self, margin: Floats) -> float:
        """Return the largest margin to be stored.

        If rows occur repeatedly, each distinct margin counts once.
        """
        if margin.min() == margin.max():
            return float(margin[0])
        last = np.partition(margin, self.keep - 1)[self.keep - 1]
        if 2 * len(np.unique(margin[margin <= last])) < self.keep:
            distinct = np.unique(margin)
            last = distinct[min(self.keep, len(distinct)) - 1]
        return float(last)


def _by_class(which: npt.NDArray[np.bool_], codes: Places) -> Counts:
    """Return (K, K) counts: how often each column of `flags` is True, by class of the row."""
    K = which.shape[1]
    columns = [np.bincount(codes[which[:, c]], minlength=K) for c in range(K)]
    return np.stack(columns, axis=1).astype(np.int64)


def _by_class_of_two(which: npt.NDArray[np.bool_], codes: Places) -> Counts:
    """Return (2, 2) counts of the rows with a flag, by class of the row and by the other class."""
    counts = np.zeros((2, 2), dtype=np.int64)
    total, second = np.count_nonzero(which), np.count_nonzero(which & (codes == 1))
    counts[0, 1], counts[1, 0] = total - second, second
    return counts


def _hash_rows(values: Floats) -> Hashes:
    """Return a 64-bit hash of each row, (n,). Equal rows have equal hashes."""
    bits = (values + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    bits ^= bits >> np.uint64(32)  # small integers differ only in their leading bits
    odd = _mix64(np.arange(1, bits.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    return _mix64(bits @ odd)


def _mix64(bits: Hashes) -> Hashes:
    for factor in _MIX:
        bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(factor)
    return np.asarray(bits ^ (bits >> np.uint64(33)))
