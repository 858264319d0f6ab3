"""Stored rows of each class, which take less memory than moments if d > N (wide tables).

With N rows in d > N features, a scatter matrix (d x d) is larger than the rows. So the rows are
stored as offsets `u = (x - origin) / unit`, with their class codes and weights. All class moments
can be computed from them,

    weight_k = sum w,   mean_k = sum w u / weight_k,   scatter_k = sum w (u - mean_k)(u - mean_k)'

and so can statistics that are not moments, such as medians. `+` concatenates rows. `-` removes
rows, which must be among the stored rows; if both summaries have the same anchor, rows are compared
bit by bit. Rows of zero weight are not stored. Note that a file with this summary contains the
user's data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.errors import MomentsMismatchError
from discriminant.moments.accumulate import MomentsReading
from discriminant.moments.anchor import Anchor, align_anchors
from discriminant.moments.class_moments import (
    Detail,
    class_factors,
    find_columns,
    find_labels,
    merge_labels,
)
from discriminant.moments.summary_base import Summable
from discriminant.table.blocks import Block, Floats, Labels, Places
from discriminant.table.labels import same_labels, union_labels

_EPS = float(np.finfo(np.float64).eps)
_HUGE, _FAINT = 1e125, 1e-125  # squares of sums above or below these overflow or underflow
_FIRST = 16  # number of columns that are compared first in a search for a row


@dataclass(frozen=True, slots=True, eq=False)
class ClassRows(Summable):
    """N rows of K classes in d features."""

    labels: Labels  # (K,) sorted
    features: tuple[str, ...]  # d names
    anchor: Anchor  # origin and unit of the columns
    codes: Places  # (N,)
    weights: Floats  # (N,) positive
    offsets: Floats  # (N, d)
    rows: npt.NDArray[np.int64] = field(init=False)  # (K,)
    weight: Floats = field(init=False)  # (K,) sum of weights
    weight2: Floats = field(init=False)  # (K,) sum of squared weights
    mean: Floats = field(init=False)  # (K, d) offsets, zero where a class has no rows

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of class rows are invalid, or None if they are valid."""
        codes, K = parts["codes"], len(parts["labels"])
        if codes.ndim != 1 or (len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < K):
            return f"codes must be from 0 to {K - 1}"
        return None

    def __post_init__(self) -> None:
        K, N = len(self.labels), len(self.codes)
        for name, shape in (("weights", (N,)), ("offsets", (N, len(self.features)))):
            if getattr(self, name).shape != shape:
                raise MomentsMismatchError.of_shape(name, getattr(self, name).shape, shape)
        weight = np.bincount(self.codes, self.weights, minlength=K).astype(np.float64)
        mean = np.zeros((K, len(self.features)))
        for k in np.flatnonzero(weight):
            of_class = self.codes == k
            mean[k] = self.weights[of_class] @ self.offsets[of_class] / weight[k]
        count = np.bincount(self.codes, minlength=K).astype(np.int64)
        object.__setattr__(self, "rows", count)
        object.__setattr__(self, "weight", weight)
        squares = np.bincount(self.codes, self.weights**2, minlength=K).astype(np.float64)
        object.__setattr__(self, "weight2", squares)
        object.__setattr__(self, "mean", mean)

    @classmethod
    def empty(
        cls, labels: Labels, features: Sequence[str], *, anchor: Anchor | None = None
    ) -> ClassRows:
        """Return a summary without rows; adding it to another summary changes nothing."""
        d = len(features)
        anchor = Anchor.zero(d) if anchor is None else anchor
        none = np.zeros(0, dtype=np.intp)
        return cls(np.asarray(labels), tuple(features), anchor, none, np.zeros(0), np.zeros((0, d)))

    def __add__(self, other: ClassRows) -> ClassRows:
        """Return the rows of both operands, with the union of their classes."""
        ours, theirs = _align(self, other)
        return replace(
            ours,
            codes=np.concatenate([ours.codes, theirs.codes]),
            weights=np.concatenate([ours.weights, theirs.weights]),
            offsets=np.concatenate([ours.offsets, theirs.offsets]),
        )

    def __sub__(self, other: ClassRows) -> ClassRows:
        """Remove the rows of `other`.

        Each row of `other` must be among these rows, with the same weight.
        """
        ours, theirs = _align(self, other)
        tolerance = _tolerance(self, other)
        remaining = np.ones(len(ours.codes), dtype=np.bool_)
        missing = np.zeros(len(ours.labels), dtype=np.int64)
        for i, code in enumerate(theirs.codes):
            index = _find_row(
                ours, theirs.offsets[i], float(theirs.weights[i]), code, remaining, tolerance
            )
            if index is None:
                missing[code] += 1
            else:
                remaining[index] = False
        for k in np.flatnonzero(missing):
            raise MomentsMismatchError.of_rows(
                ours.labels[k], int(missing[k]), int(theirs.rows[k]), int(ours.rows[k])
            )
        return ours._take(remaining)

    def scale(self, factors: Mapping[Any, float] | npt.ArrayLike) -> ClassRows:
        """Multiply the weight of each class by a factor."""
        weights = self.weights * class_factors(self.labels, factors)[self.codes]
        return replace(self, weights=weights)._take(weights > 0)

    def group(self, groups: Mapping[Any, Sequence[Any]]) -> ClassRows:
        """Merge classes:

        `{"new": ["a", "b"]}` merges a and b. Classes in no group are unchanged.
        """
        labels, code = merge_labels(self.labels, groups)
        return replace(self, labels=labels, codes=code[self.codes])

    def classes(self, labels: Sequence[Any]) -> ClassRows:
        """Return the rows of the given classes."""
        codes = np.sort(find_labels(self.labels, labels))
        if len(codes) == len(self.labels):
            return self
        chosen = self._take(np.isin(self.codes, codes))
        return replace(
            chosen, labels=self.labels[codes], codes=np.searchsorted(codes, chosen.codes)
        )

    def select(self, features: Sequence[str] | Sequence[int]) -> ClassRows:
        """Return the rows with the given features (names, indices or a mask), in that order."""
        columns = find_columns(self.features, features)
        return replace(
            self,
            features=tuple(self.features[j] for j in columns),
            anchor=self.anchor.select(columns),
            offsets=self.offsets[:, columns],
        )

    def at(self, anchor: Anchor) -> ClassRows:
        """Convert the rows to another origin and other units."""
        if anchor.same_as(self.anchor):
            return self
        offsets = self.offsets * (self.anchor.unit / anchor.unit) + self.anchor.shift_to(anchor)
        return replace(self, anchor=anchor, offsets=offsets)

    def over(self, labels: Labels) -> ClassRows:
        """Return the same rows over a larger set of classes; the added classes have no rows."""
        if np.array_equal(labels, self.labels):
            return self
        return replace(self, labels=labels, codes=np.searchsorted(labels, self.labels)[self.codes])

    def has(self, detail: Detail) -> bool:
        """Whether moments of this `detail` can be computed from the rows: always True."""
        return True

    def reduce(self, detail: Detail) -> Any:
        """Return the class moments of these rows, or with detail 'rows' the rows themselves."""
        if detail == "rows":
            return self
        block = Block(self.offsets, self.codes, self.weights)
        zero = Anchor.zero(len(self.features))
        moments = MomentsReading(self.labels, self.features, zero, detail).read(block)
        return replace(moments, anchor=self.anchor)

    @property
    def detail(self) -> Literal["rows"]:
        """Always 'rows'."""
        return "rows"

    @property
    def means(self) -> Floats:
        """(K, d) class means in data units."""
        return self.anchor.values(self.mean)

    @property
    def centre(self) -> Floats:
        """(d,) mean of all rows, as an offset."""
        share = self.weight / self.weight.sum() if self.weight.any() else self.weight
        return np.asarray(share @ self.mean)

    @property
    def centred(self) -> Floats:
        """(N, d) rows centred at the mean of their class."""
        means = self.mean[self.codes]
        return np.subtract(self.offsets, means, out=means)

    def overflowed(self) -> npt.NDArray[np.bool_]:
        """Return a boolean array (d,): True for columns whose sum of squares is not finite."""
        with np.errstate(over="ignore"):
            return np.asarray(~np.isfinite(np.einsum("nj,nj->j", self.offsets, self.offsets)))

    def badly_scaled(self) -> npt.NDArray[np.bool_]:
        """Return a boolean array (d,): True for columns whose squares overflow or underflow."""
        with np.errstate(over="ignore"):
            size = np.einsum("nj,nj->j", self.offsets, self.offsets)
        badly_scaled = np.asarray(~(size <= _HUGE))
        for j in np.flatnonzero(size < _FAINT):
            badly_scaled[j] = self.offsets[:, j].any()
        return badly_scaled

    def __repr__(self) -> str:
        return (
            f"ClassRows({int(self.rows.sum())} rows, {len(self.labels)} classes, "
            f"{len(self.features)} features)"
        )

    def zero_columns(self) -> npt.NDArray[np.bool_]:
        """Return a boolean array (d,): True for columns that are zero in every row."""
        return np.asarray((self.anchor.origin == 0) & ~self.offsets.any(axis=0))

    def _take(self, chosen: npt.NDArray[np.bool_]) -> ClassRows:
        if chosen.all():
            return self
        return replace(
            self,
            codes=self.codes[chosen],
            weights=self.weights[chosen],
            offsets=self.offsets[chosen],
        )


@dataclass(frozen=True, slots=True, eq=False)
class RowsReading:
    """Store the rows of K classes in d columns."""

    labels: Labels  # (K,)
    features: tuple[str, ...]  # d names
    anchor: Anchor
    count: int  # rows of the table

    @property
    def summary_size(self) -> int:
        """Number of values in the table, so that an engine reads it in one block."""
        return self.count * len(self.features)

    def read(self, block: Block) -> ClassRows:
        """Return the rows of one block that have positive weight."""
        offsets = self.anchor.offsets(block.features)
        if not np.isfinite(offsets).all():
            block.raise_bad_cell(self.features)
        weights = np.ones(len(block)) if block.weight is None else block.weight
        codes = block.codes.astype(np.intp)
        rows = ClassRows(self.labels, self.features, self.anchor, codes, weights, offsets)
        return rows._take(weights > 0)


def _align(ours: ClassRows, theirs: ClassRows) -> tuple[ClassRows, ClassRows]:
    """Convert two summaries to the same classes, in the same order, and to the same anchor."""
    if ours.features != theirs.features:
        raise MomentsMismatchError.of_features(ours.features, theirs.features)
    if ours.detail != theirs.detail:
        raise MomentsMismatchError.of_detail(ours.detail, theirs.detail)
    labels = ours.labels
    if not same_labels(labels, theirs.labels):
        labels = union_labels(ours.labels, theirs.labels)
    ours, theirs = ours.over(labels), theirs.over(labels)
    empty, other_empty = not len(ours.codes), not len(theirs.codes)
    return align_anchors(ours, theirs, empty=empty, other_empty=other_empty)


def _tolerance(ours: ClassRows, theirs: ClassRows) -> Floats:
    """Return the tolerances (d,) by which the offsets of equal rows may differ.

    The tolerance is 0 if both anchors are equal.
    """
    if ours.anchor.same_as(theirs.anchor):
        return np.zeros(len(ours.features))
    size = np.abs(ours.anchor.origin) + np.abs(theirs.anchor.origin)
    unit = np.maximum(ours.anchor.unit, theirs.anchor.unit)
    largest = np.abs(ours.offsets).max(axis=0, initial=0.0) * ours.anchor.unit
    return np.asarray(4 * _EPS * (size + largest) / unit)


def _find_row(
    ours: ClassRows,
    row: Floats,
    weight: float,
    code: int,
    free: npt.NDArray[np.bool_],
    tolerance: Floats,
) -> int | None:
    """Return the index of an equal row among the rows that are not matched yet.

    A few columns are compared first.
    """
    candidates = np.flatnonzero(free & (ours.codes == code) & (ours.weights == weight))
    for columns in (slice(_FIRST), slice(_FIRST, None)):
        difference = np.abs(ours.offsets[candidates, columns] - row[columns])
        candidates = candidates[(difference <= tolerance[columns]).all(axis=1)]
    return int(candidates[0]) if len(candidates) else None
