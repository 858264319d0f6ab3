"""How far rows are on the right side of a linear score, and which rows are least so.

A row u of class y has, for each other class c, the margin

    m_c(u) = score_y(u) - score_c(u)        score_k(u) = u . w_k + b_k

Counted are the margins that are negative, zero and positive, by class of the row and other class.
Zero is what rounding cannot tell from it,

    |m_c| <= slack * ( sum_j (|u_j| + spread_j) (|w_yj| + |w_cj|) + |b_y| + |b_c| )

where `slack` is (8 + d) eps, which bounds the rounding of two inner products, unless the one who
made the coefficients knows them less exactly.

Kept are, of each class, the `keep` rows whose smallest margin is smallest, each different row once.
Rows of equal margin are kept in the order of a number drawn from their bits, so that what is kept
of many ties (all rows, at coefficients zero) is a sample, the same whatever the order of the rows.

How a perceptron's weights do on rows: how many are wrong, by how much, and what they ask for.

A row z = (x - origin) scale, and a 1 for the intercept, of class t has the lead

    two classes   sign z.w                  K classes   z.w_t - z.w_r     r the best of the others

and is wrong unless that is positive. A wrong row asks for the move  w += sign z,  or for
w_t += z, w_r -= z;  the criterion J_p is the sum of what the wrong rows lack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import MomentsMismatchError
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import Places
from discriminant.table.blocks import Block, Codes, Features, Floats, dense, is_sparse

_MISTAKE_ROWS = 4096  # rows judged at a time
_SAFE = 1e150  # what can be squared


@dataclass(frozen=True, slots=True, eq=False)
class RowScaling:
    """Where rows stand: z = (x - origin) scale, and the feature of the intercept."""

    origin: Floats  # (d,) zero for sparse rows
    scale: Floats  # (d,) zero leaves a column out
    intercept: float  # 1, or 0 for no intercept

    @property
    def squarable(self) -> bool:
        """Whether scales can be squared."""
        some = self.scale[self.scale > 0]
        return not len(some) or bool(some.max() < _SAFE and some.min() > 1.0 / _SAFE)

    def rows(self, features: Features) -> Any:
        """(n, d) rows z; sparse stay sparse."""
        if is_sparse(features):
            found = features.astype(np.float64)
            found.data *= self.scale[found.indices]
            return found
        return (np.asarray(dense(features), dtype=np.float64) - self.origin) * self.scale


@dataclass(frozen=True, slots=True, eq=False)
class LinearWeights:
    """Weights of one score for two classes, or of K."""

    slope: Floats  # (1, d) or (K, d)
    intercept: Floats  # (1,) or (K,)

    @classmethod
    def zero(cls, classes: int, width: int) -> LinearWeights:
        scores = 1 if classes == 2 else classes
        return cls(np.zeros((scores, width)), np.zeros(scores))

    def copy(self) -> LinearWeights:
        return LinearWeights(self.slope.copy(), self.intercept.copy())

    def add_scaled(self, other: LinearWeights, factor: float) -> LinearWeights:
        return LinearWeights(
            self.slope + factor * other.slope, self.intercept + factor * other.intercept
        )

    @property
    def norm(self) -> float:
        """Norm of all weights as one long vector."""
        return float(np.hypot(np.linalg.norm(self.slope), np.linalg.norm(self.intercept)))


@dataclass(frozen=True, slots=True, eq=False)
class Mistakes:
    """How weights do on rows. Judgements of parts add."""

    count: int
    min_margin: float  # the least lead
    radius: float  # the longest |z|, with the 1
    criterion: float  # J_p
    update: LinearWeights  # sum of what the wrong rows ask for

    def __add__(self, other: Mistakes) -> Mistakes:
        return Mistakes(
            self.count + other.count,
            min(self.min_margin, other.min_margin),
            max(self.radius, other.radius),
            self.criterion + other.criterion,
            self.update.add_scaled(other.update, 1.0),
        )

    def __radd__(self, other: object) -> Mistakes:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class MistakesReading:
    """Judge weights, row by row."""

    weights: LinearWeights
    scaling: RowScaling
    detailed: bool = True  # else only what is wrong is counted, which is quicker

    @property
    def summary_size(self) -> int:
        """Size of the summary."""
        return int(self.weights.slope.size)

    def read(self, block: Block) -> Mistakes:
        """Judgement of the rows of a block, tile by tile."""
        if is_sparse(block.features) and not self.detailed:
            return self._count(block)
        total = self._tile(block.rows(0, _MISTAKE_ROWS))
        for lo in range(_MISTAKE_ROWS, len(block), _MISTAKE_ROWS):
            total = total + self._tile(block.rows(lo, min(lo + _MISTAKE_ROWS, len(block))))
        return total

    def _tile(self, tile: Block) -> Mistakes:
        if not self.detailed:
            return self._count(tile)
        z, one = self.scaling.rows(tile.features), self.scaling.intercept
        scores = z @ self.weights.slope.T + one * self.weights.intercept
        lead, pull = true_class_margins(scores, tile.codes)
        wrong = ~(lead > 0)
        pull = pull[wrong]
        moves = LinearWeights(np.asarray((z[wrong].T @ pull).T), one * pull.sum(axis=0))
        size = z.power(2).sum(axis=1) if is_sparse(z) else np.einsum("ij,ij->i", z, z)
        radius = float(np.sqrt(np.max(size) + one)) if len(lead) else 0.0
        return Mistakes(
            int(wrong.sum()),
            float(lead.min(initial=np.inf)),
            radius,
            float(-lead[wrong].sum()),
            moves,
        )

    def _count(self, tile: Block) -> Mistakes:
        slope, rows = self.weights.slope * self.scaling.scale, tile.features
        if not is_sparse(rows):
            rows = np.subtract(dense(rows), self.scaling.origin, dtype=np.float64)
        scores = np.asarray(rows @ slope.T) + self.scaling.intercept * self.weights.intercept
        lead = true_class_margins(scores, tile.codes)[0]
        none = LinearWeights(np.zeros((0, 0)), np.zeros(0))
        wrong = int(np.count_nonzero(~(lead > 0)))
        return Mistakes(wrong, float(lead.min(initial=np.inf)), np.nan, np.nan, none)


def true_class_margins(scores: Floats, codes: Codes) -> tuple[Floats, Floats]:
    """(n,) lead of the true class over the best other, and (n, m) which way each row pulls."""
    rows = np.arange(len(codes))
    if scores.shape[1] == 1:
        sign = 2.0 * codes.astype(np.float64) - 1.0
        return sign * scores[:, 0], sign[:, None]
    others = scores.copy()
    others[rows, codes] = -np.inf
    rival = others.argmax(axis=1)
    pull = np.zeros_like(scores)
    pull[rows, codes] = 1.0
    pull[rows, rival] = -1.0
    return scores[rows, codes] - scores[rows, rival], pull


_EPS = float(np.finfo(np.float64).eps)
_TILE = 1 << 19  # numbers worked on at a time: long tiles, for each is merged
_MIX = (0x9E3779B97F4A7C15, 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)  # of MurmurHash3

Counts = npt.NDArray[np.int64]
Draws = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Margins:
    """Margins of rows of K classes in d features at one set of coefficients."""

    features: tuple[str, ...]  # d names
    anchor: Anchor
    keep: int  # most rows kept of a class
    negative: Counts  # (K, K) how many, by class of the row and other class
    zero: Counts  # (K, K)
    positive: Counts  # (K, K)
    codes: Places  # (m,) classes of the rows kept, sorted
    margin: Floats  # (m,) their smallest margins, from the smallest up in each class
    tiebreak: Draws  # (m,) what orders rows of equal margin
    offsets: Floats  # (m, d)

    @classmethod
    def empty(cls, features: Sequence[str], classes: int, *, anchor: Anchor, keep: int) -> Margins:
        """Margins of no rows: added to any others they change nothing, not even the last bit."""
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
        """Over the rows of both, at the same coefficients, about whatever anchors."""
        if self.features != other.features:
            raise MomentsMismatchError.of_features(self.features, other.features)
        ours, theirs = _aligned(self, other)
        both = replace(
            ours,
            negative=ours.negative + theirs.negative,
            zero=ours.zero + theirs.zero,
            positive=ours.positive + theirs.positive,
            codes=np.concatenate([ours.codes, theirs.codes]),
            margin=np.concatenate([ours.margin, theirs.margin]),
            tiebreak=np.concatenate([ours.tiebreak, theirs.tiebreak]),
            offsets=np.concatenate([ours.offsets, theirs.offsets]),
        )
        return both._first() if len(ours.codes) and len(theirs.codes) else both

    def __radd__(self, other: object) -> Margins:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def at(self, anchor: Anchor) -> Margins:
        """The same, with the rows kept from another origin and in other units."""
        if anchor.same_as(self.anchor):
            return self
        moved = self.offsets * (self.anchor.unit / anchor.unit) + self.anchor.shift_to(anchor)
        return replace(self, anchor=anchor, offsets=moved)

    def _first(self) -> Margins:
        """Only the rows to be kept, each different one once, in their order."""
        once = np.lexsort((self.margin, self.tiebreak, self.codes))
        codes, draw = self.codes[once], self.tiebreak[once]
        new = np.append(True, (codes[1:] != codes[:-1]) | (draw[1:] != draw[:-1]))
        once = once[new[: len(once)]]
        order = once[np.lexsort((self.tiebreak[once], self.margin[once], self.codes[once]))]
        codes = self.codes[order]
        place = np.arange(len(codes)) - np.searchsorted(codes, codes)
        order = order[place < self.keep]
        return replace(
            self,
            codes=self.codes[order],
            margin=self.margin[order],
            tiebreak=self.tiebreak[order],
            offsets=self.offsets[order],
        )

    def _zero(self) -> npt.NDArray[np.bool_]:
        """(d,) columns that are zero in every row kept."""
        return np.asarray((self.anchor.origin == 0) & ~self.offsets.any(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class MarginReading:
    """Read the margins of rows at given coefficients."""

    features: tuple[str, ...]  # d names
    anchor: Anchor
    coef: Floats  # (K, d) for offsets
    intercept: Floats  # (K,)
    keep: int  # rows of each class
    offset_range: Floats | None = (
        None  # (d,) of offsets; None is zero: the size of a column counts not
    )
    slack: float | None = None  # None is (8 + d) eps

    @property
    def summary_size(self) -> int:
        """Size of the summary."""
        K, d = self.coef.shape
        return int(K * self.keep * (d + 3) + 3 * K * K)

    def read(self, block: Block) -> Margins:
        """Margins of the rows of one block that have a weight."""
        K, d = self.coef.shape
        total = Margins.empty(self.features, K, anchor=self.anchor, keep=self.keep)
        size = max(_TILE // (d + 4 * K), 256)
        with np.errstate(invalid="ignore", over="ignore"):  # a cell that is no number is named
            for lo in range(0, len(block), size):
                total = total + self._tile(block.rows(lo, min(lo + size, len(block))))
        return total

    def _tile(self, tile: Block) -> Margins:
        if tile.weight is not None and not tile.weight.all():
            some = tile.weight > 0
            tile = replace(tile, features=tile.features[some], codes=tile.codes[some], weight=None)
        K = len(self.intercept)
        codes, each = tile.codes.astype(np.intp), np.arange(len(tile))
        offsets = self.anchor.offsets(tile.features)
        margins = self._margins(tile, offsets, codes)
        margins[each, codes] = np.inf
        kept = self._smallest(margins.min(axis=1), codes, tile)
        counts = [_by_class(which, codes) for which in (margins < 0, margins == 0, margins > 0)]
        counts[2][np.arange(K), np.arange(K)] = 0
        values = dense(tile.features[kept])
        found = Margins(
            features=self.features,
            anchor=self.anchor,
            keep=self.keep,
            negative=counts[0],
            zero=counts[1],
            positive=counts[2],
            codes=codes[kept],
            margin=margins[kept].min(axis=1, initial=np.inf),
            tiebreak=_draw(values.astype(np.float64)),
            offsets=self.anchor.offsets(values),
        )
        return found._first()

    def _margins(self, tile: Block, offsets: Floats, codes: Places) -> Floats:
        """(n, K) margins, zero where they may be; the offsets are used up."""
        scores = offsets @ self.coef.T
        scores += self.intercept
        if not np.isfinite(scores).all():
            tile.raise_bad_cell(self.features)
        own = codes[:, None]
        margins = np.take_along_axis(scores, own, axis=1) - scores
        size = np.abs(offsets, out=offsets) @ np.abs(self.coef.T)
        size += self._floor()
        size += np.take_along_axis(size, own, axis=1)
        size *= (8 + len(self.features)) * _EPS if self.slack is None else self.slack
        margins[np.abs(margins) <= size] = 0.0
        return np.asarray(margins)

    def _floor(self) -> Floats:
        """(K,) size of the terms of a score at the origin."""
        size = np.abs(self.intercept)
        return size if self.offset_range is None else size + np.abs(self.coef) @ self.offset_range

    def _smallest(self, margin: Floats, codes: Places, tile: Block) -> Places:
        """Places of rows among which are the `keep` of each class to be kept."""
        found = []
        for k in range(len(self.intercept)):
            places = np.flatnonzero(codes == k)
            if len(places) > self.keep:
                own = margin[places]
                places = places[own <= self._last(own)]
                if len(places) > 4 * self.keep:  # ties, most likely
                    draw = _draw(dense(tile.features[places]).astype(np.float64))
                    order = np.lexsort((draw, margin[places]))
                    new = np.append(True, draw[order][1:] != draw[order][:-1])
                    places = places[order[new][: self.keep]]
            found.append(places)
        return np.concatenate(found)

    def _last(self, margin: Floats) -> float:
        """The largest margin to be kept; if few differ, for rows may be equal, of those that do."""
        last = np.partition(margin, self.keep - 1)[self.keep - 1]
        if 2 * len(np.unique(margin[margin <= last])) < self.keep:
            differ = np.unique(margin)
            last = differ[min(self.keep, len(differ)) - 1]
        return float(last)


def _by_class(which: npt.NDArray[np.bool_], codes: Places) -> Counts:
    """(K, K) how many of (n, K), by class of the row."""
    K = which.shape[1]
    columns = [np.bincount(codes[which[:, c]], minlength=K) for c in range(K)]
    return np.stack(columns, axis=1).astype(np.int64)


def _draw(values: Floats) -> Draws:
    """(n,) a number from the bits of each row: equal for equal rows, else as if at random."""
    bits = (values + 0.0).view(np.uint64)  # there are two zeros, but they are one number
    bits ^= bits >> np.uint64(32)  # small whole numbers differ in their first bits only
    odd = _mixed(np.arange(1, bits.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    return _mixed(bits @ odd)


def _mixed(bits: Draws) -> Draws:
    for factor in _MIX[1:]:
        bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(factor)
    return np.asarray(bits ^ (bits >> np.uint64(33)))


def _aligned(ours: Margins, theirs: Margins) -> tuple[Margins, Margins]:
    """Both about the same anchor; where one keeps no row, that of the other."""
    anchor = ours.anchor
    if not len(ours.codes):
        anchor = theirs.anchor
    elif len(theirs.codes) and not anchor.same_as(theirs.anchor):
        zero, zero_too = ours._zero(), theirs._zero()
        anchor = anchor.common_units(theirs.anchor, zero=zero, zero_too=zero_too)
    return ours.at(anchor), theirs.at(anchor)
