"""QR factor of the rows, accumulated block by block (TSQR), and column sums of sparse rows.

Let `A` have the rows `[1, u]`, where `u` are the offsets of the columns, each row multiplied by the
square root of its weight. Then

    A = Q R   so   R'R = A'A

`R` is as accurate as the rows themselves. In contrast, `A'A` (and so every moment) has only half as
many correct digits if columns are nearly collinear. To merge the factors of two sets of rows, stack
them and factor the result (TSQR). Because the column of ones comes first,

    R = | sqrt(n)  sqrt(n) mean' |      C'C = scatter about the mean
        |    0           C       |

so the lower right block `C` is the QR factor of the centred rows, and a new origin changes only the
first row of `R`. Rows can be removed from moments, but not from a QR factor.

`ColumnSums` gives weight, mean and standard deviation of each column of sparse rows, without
visiting the zeros:

    weight = sum w      total = sum w x      squares = sum w (x - centre)^2

The zeros of a column are not stored; they contribute their total weight times `centre^2` to
`squares`. The first pass computes sums about zero, which give the means; the second pass computes
sums about these means, so that no value is squared far from its mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.linalg import qr

from discriminant.errors import MomentsMismatchError
from discriminant.moments.anchor import Anchor, align_anchors
from discriminant.moments.summary_base import Summable, split_rows
from discriminant.table.blocks import Block, Floats


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSums(Summable):
    """Sums of each column over the rows."""

    centre: Floats  # (d,)
    weight: float
    total: Floats  # (d,)
    squares: Floats  # (d,)

    def __add__(self, other: ColumnSums) -> ColumnSums:
        return ColumnSums(
            self.centre,
            self.weight + other.weight,
            self.total + other.total,
            self.squares + other.squares,
        )

    @property
    def mean(self) -> Floats:
        """(d,) means of the columns."""
        return self.total / self.weight

    @property
    def std(self) -> Floats:
        """(d,) standard deviations of the columns; the denominator is the sum of the weights."""
        variance = self.squares / self.weight - (self.mean - self.centre) ** 2
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSumsReading:
    """Sum the columns of sparse rows."""

    features: tuple[str, ...]  # d names, for messages
    centre: Floats  # (d,)

    @property
    def summary_size(self) -> int:
        return 2 * len(self.features)

    def read(self, block: Block) -> ColumnSums:
        weight = np.ones(len(block)) if block.weight is None else block.weight
        rows = block.features
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        entry_weight, d = np.repeat(weight, np.diff(rows.indptr)), len(self.centre)
        with np.errstate(invalid="ignore", over="ignore"):  # bad cells are reported
            total = np.bincount(rows.indices, entry_weight * rows.data, minlength=d)
            deviation = rows.data - self.centre[rows.indices]
            squares = np.bincount(rows.indices, entry_weight * deviation * deviation, minlength=d)
        if not np.isfinite(total).all():
            block.raise_bad_cell(self.features)
        stored = np.bincount(rows.indices, entry_weight, minlength=d)
        squares += (weight.sum() - stored) * self.centre**2
        sums = np.asarray([total, squares], dtype=np.float64)
        return ColumnSums(self.centre, float(weight.sum()), sums[0], sums[1])


_TILE = 512  # rows factored at a time, unless there are many columns


@dataclass(frozen=True, slots=True, eq=False)
class ScatterFactor(Summable):
    """Triangular QR factor `R` of rows in p columns."""

    columns: tuple[str, ...]  # p names
    anchor: Anchor  # origin and unit of the columns
    rows: int  # number of rows of positive weight
    root: Floats  # (r, 1 + p) upper triangular R, r <= 1 + p, diagonal not negative

    @classmethod
    def empty(cls, columns: Sequence[str], *, anchor: Anchor | None = None) -> ScatterFactor:
        """Return the QR factor of an empty table; adding it to another factor changes nothing."""
        p = len(columns)
        anchor = Anchor.zero(p) if anchor is None else anchor
        return cls(tuple(columns), anchor, 0, np.zeros((0, 1 + p)))

    def __add__(self, other: ScatterFactor) -> ScatterFactor:
        if self.columns != other.columns:
            raise MomentsMismatchError.of_features(self.columns, other.columns)
        if not other.rows:
            return self
        if not self.rows:
            return other
        ours, theirs = align_anchors(self, other)
        root = triangular_factor(np.vstack([ours.root, theirs.root]))
        return replace(ours, rows=self.rows + other.rows, root=root)

    def at(self, anchor: Anchor) -> ScatterFactor:
        """Return the factor of the same rows, as offsets from another anchor."""
        if anchor.same_as(self.anchor):
            return self
        root = self.root.copy()
        root[:, 1:] *= np.where(self.zero_columns(), 1.0, self.anchor.unit / anchor.unit)
        root[:, 1:] += root[:, :1] * self.anchor.shift_to(anchor)
        return replace(self, anchor=anchor, root=root)

    def reindex(self, columns: Sequence[str], places: npt.NDArray[np.intp]) -> ScatterFactor:
        """Return the factor of the same rows with more columns; the added columns are zero.

        Column j of this factor has the index `places[j]` in the result; `places` must be sorted.
        """
        p = len(columns)
        root, origin, unit = np.zeros((len(self.root), 1 + p)), np.zeros(p), np.ones(p)
        root[:, np.append(0, 1 + places)] = self.root
        origin[places], unit[places] = self.anchor.origin, self.anchor.unit
        return replace(self, columns=tuple(columns), anchor=Anchor(origin, unit), root=root)

    @property
    def weight(self) -> float:
        """Sum of weights."""
        return float(self.root[0, 0] ** 2) if self.rows else 0.0

    @property
    def mean(self) -> Floats:
        """(p,) mean of the rows, as an offset."""
        if not self.rows:
            return np.zeros(len(self.columns))
        return np.asarray(self.root[0, 1:] / self.root[0, 0])

    @property
    def centred(self) -> Floats:
        """QR factor (r, p) of the rows centred at their mean."""
        return self.root[1:, 1:]

    @property
    def uncentred(self) -> Floats:
        """QR factor (r, p) of the rows x / unit, which are not centred."""
        about_zero = self.at(Anchor(np.zeros(len(self.columns)), self.anchor.unit))
        return triangular_factor(about_zero.root[:, 1:])

    def zero_columns(self) -> npt.NDArray[np.bool_]:
        """Return a boolean array (p,): True for columns that are zero in every row."""
        return np.asarray((self.anchor.origin == 0) & ~self.root[:, 1:].any(axis=0))


def triangular_factor(rows: Floats) -> Floats:
    """Return the triangular QR factor of an array of rows.

    No entry of the diagonal is negative, which makes the factor unique.

    >>> triangular_factor(np.array([[3.0, 1.0], [4.0, 2.0]])).round(3)
    array([[5. , 2.2],
           [0. , 0.4]])
    """
    root: Floats = np.asarray(qr(rows, mode="r", check_finite=False)[0])
    root = root[: min(root.shape)]
    return np.asarray(root * np.where(np.diagonal(root) < 0, -1.0, 1.0)[:, None])


@dataclass(frozen=True, slots=True, eq=False)
class ScatterFactorReading:
    """Compute the QR factor of features and responses.

    If `coding` is given, the responses of a row are the code of its class; otherwise the block
    contains the responses.
    """

    columns: tuple[str, ...]  # p = d + m names
    anchor: Anchor  # origin and unit of all p columns
    coding: Floats | None = None  # (K, m) response offsets of each class

    @property
    def summary_size(self) -> int:
        return (1 + len(self.columns)) ** 2

    def read(self, block: Block) -> ScatterFactor:
        p = len(self.columns)
        size, root = max(_TILE, 4 * p), np.zeros((0, 1 + p))
        for tile in split_rows(block, size):
            root = triangular_factor(np.vstack([root, self._weighted(tile)]))
        counted = len(block) if block.weight is None else int((block.weight > 0).sum())
        return ScatterFactor(self.columns, self.anchor, counted, root)

    def _weighted(self, tile: Block) -> Floats:
        u, v = row_offsets(tile, self.anchor, self.coding)
        rows = np.hstack([np.ones((len(tile), 1)), u, v])
        if not np.isfinite(rows).all():
            tile.raise_bad_cell(self.columns)
        return rows if tile.weight is None else rows * np.sqrt(tile.weight)[:, None]


def row_offsets(tile: Block, anchor: Anchor, coding: Floats | None) -> tuple[Floats, Floats]:
    """Return features (n, d) and responses (n, m) of a tile, with the origin subtracted."""
    d = tile.features.shape[1]
    columns = np.arange(len(anchor.origin))
    features = anchor.select(columns[:d]).offsets(tile.features)
    if coding is not None:
        return features, coding[tile.codes]
    assert tile.responses is not None
    return features, anchor.select(columns[d:]).offsets(tile.responses)
