"""The rows themselves, class by class: the smallest summary where features outnumber rows.

With N rows in d > N features a scatter (d x d) is larger than the rows it was made from, so the
rows are kept: as offsets u = (x - origin) / unit, with their codes and weights. All that
`ClassMoments` says follows from them,

    weight_k = sum w,   mean_k = sum w u / weight_k,   scatter_k = sum w (u - mean_k)(u - mean_k)'

and so does what no moments say, such as a median. `+` puts rows together and `-` takes out rows
that are there, to the last bit of their offsets when both count from one anchor. Rows of no weight
are not kept. What is held are the user's rows: whoever saves it saves them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.errors import MomentsMismatchError
from discriminant.moments.accumulate import MomentsReading
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import (
    Detail,
    Places,
    class_factors,
    find_columns,
    find_labels,
    merge_labels,
)
from discriminant.table.blocks import Block, Floats, Labels
from discriminant.table.labels import same_labels, union_labels

_EPS = float(np.finfo(np.float64).eps)
_HUGE, _FAINT = 1e125, 1e-125  # sums of squares beyond these overflow or vanish, squared again
_FEW = 16  # columns compared first when a row is looked for


@dataclass(frozen=True, slots=True, eq=False)
class ClassRows:
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
        """Return why these fields cannot form class rows, or None."""
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
            own = self.codes == k
            mean[k] = self.weights[own] @ self.offsets[own] / weight[k]
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
        """No rows: added to any others they change nothing, not even the last bit."""
        d = len(features)
        anchor = Anchor.zero(d) if anchor is None else anchor
        none = np.zeros(0, dtype=np.intp)
        return cls(np.asarray(labels), tuple(features), anchor, none, np.zeros(0), np.zeros((0, d)))

    # --- adding and removing ------------------------------------------------------------------

    def __add__(self, other: ClassRows) -> ClassRows:
        """The rows of both; classes are the union of both."""
        ours, theirs = _aligned(self, other)
        return replace(
            ours,
            codes=np.concatenate([ours.codes, theirs.codes]),
            weights=np.concatenate([ours.weights, theirs.weights]),
            offsets=np.concatenate([ours.offsets, theirs.offsets]),
        )

    def __radd__(self, other: object) -> ClassRows:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __sub__(self, other: ClassRows) -> ClassRows:
        """Our rows without theirs, each of which must be among ours with the same weight."""
        ours, theirs = _aligned(self, other)
        slack = _slack(self, other)
        stay = np.ones(len(ours.codes), dtype=np.bool_)
        missing = np.zeros(len(ours.labels), dtype=np.int64)
        for i, code in enumerate(theirs.codes):
            place = _find(ours, theirs.offsets[i], float(theirs.weights[i]), code, stay, slack)
            if place is None:
                missing[code] += 1
            else:
                stay[place] = False
        for k in np.flatnonzero(missing):
            raise MomentsMismatchError.of_rows(
                ours.labels[k], int(missing[k]), int(theirs.rows[k]), int(ours.rows[k])
            )
        return ours._keep(stay)

    # --- regrouping -----------------------------------------------------------------------------

    def scale(self, factors: Mapping[Any, float] | npt.ArrayLike) -> ClassRows:
        """Multiply the weight of each class."""
        weights = self.weights * class_factors(self.labels, factors)[self.codes]
        return replace(self, weights=weights)._keep(weights > 0)

    def group(self, groups: Mapping[Any, Sequence[Any]]) -> ClassRows:
        """Merge classes: `{"new": ["a", "b"]}`. Classes that no group names stay as they are."""
        labels, code = merge_labels(self.labels, groups)
        return replace(self, labels=labels, codes=code[self.codes])

    def classes(self, labels: Sequence[Any]) -> ClassRows:
        """The rows of some classes only."""
        codes = np.sort(find_labels(self.labels, labels))
        if len(codes) == len(self.labels):
            return self
        kept = self._keep(np.isin(self.codes, codes))
        return replace(kept, labels=self.labels[codes], codes=np.searchsorted(codes, kept.codes))

    def select(self, features: Sequence[str] | Sequence[int]) -> ClassRows:
        """Some features, by name or by place, in that order."""
        columns = find_columns(self.features, features)
        return replace(
            self,
            features=tuple(self.features[j] for j in columns),
            anchor=self.anchor.select(columns),
            offsets=self.offsets[:, columns],
        )

    def at(self, anchor: Anchor) -> ClassRows:
        """The same rows from another origin and in other units."""
        if anchor.same_as(self.anchor):
            return self
        moved = self.offsets * (self.anchor.unit / anchor.unit) + self.anchor.shift_to(anchor)
        return replace(self, anchor=anchor, offsets=moved)

    def over(self, labels: Labels) -> ClassRows:
        """The same rows over more classes, of which the new ones are empty."""
        if np.array_equal(labels, self.labels):
            return self
        return replace(self, labels=labels, codes=np.searchsorted(labels, self.labels)[self.codes])

    def holds(self, detail: Detail) -> bool:
        """Whether moments of that detail follow from these rows: they all do."""
        return True

    def reduce(self, detail: Detail) -> Any:
        """Moments of these rows; with detail 'rows' these rows."""
        if detail == "rows":
            return self
        block = Block(self.offsets, self.codes, self.weights)
        inner = Anchor.zero(len(self.features))
        found = MomentsReading(self.labels, self.features, inner, detail).read(block)
        return replace(found, anchor=self.anchor)

    # --- looking --------------------------------------------------------------------------------

    @property
    def detail(self) -> Literal["rows"]:
        """All there is to know."""
        return "rows"

    @property
    def means(self) -> Floats:
        """(K, d) class means in the user's numbers."""
        return self.anchor.values(self.mean)

    @property
    def centre(self) -> Floats:
        """(d,) mean of all rows, as an offset."""
        share = self.weight / self.weight.sum() if self.weight.any() else self.weight
        return np.asarray(share @ self.mean)

    @property
    def centred(self) -> Floats:
        """(N, d) rows counted from the mean of their class."""
        return np.asarray(self.offsets - self.mean[self.codes])

    def overflown(self) -> npt.NDArray[np.bool_]:
        """(d,) columns whose sums of squares are not finite."""
        with np.errstate(over="ignore"):
            return np.asarray(~np.isfinite(np.einsum("nj,nj->j", self.offsets, self.offsets)))

    def strained(self) -> npt.NDArray[np.bool_]:
        """(d,) columns whose squares are so large, or so small, that another unit suits better."""
        with np.errstate(over="ignore"):
            size = np.einsum("nj,nj->j", self.offsets, self.offsets)
        found = np.asarray(~(size <= _HUGE))
        for j in np.flatnonzero(size < _FAINT):
            found[j] = self.offsets[:, j].any()
        return found

    def __repr__(self) -> str:
        """One line: how many rows, classes and features."""
        return (
            f"ClassRows({int(self.rows.sum())} rows, {len(self.labels)} classes, "
            f"{len(self.features)} features)"
        )

    def _zero(self) -> npt.NDArray[np.bool_]:
        """(d,) whether a column is zero in every row."""
        return np.asarray((self.anchor.origin == 0) & ~self.offsets.any(axis=0))

    def _keep(self, chosen: npt.NDArray[np.bool_]) -> ClassRows:
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
    """Read the rows of K classes in d columns as they are."""

    labels: Labels  # (K,)
    features: tuple[str, ...]  # d names
    anchor: Anchor
    count: int  # rows of the table

    @property
    def summary_size(self) -> int:
        """Size of the summary: that of the table, so that an engine reads it in one block."""
        return self.count * len(self.features)

    def read(self, block: Block) -> ClassRows:
        """The rows of one block that have a weight."""
        offsets = self.anchor.offsets(block.features)
        if not np.isfinite(offsets).all():
            block.raise_bad_cell(self.features)
        weights = np.ones(len(block)) if block.weight is None else block.weight
        codes = block.codes.astype(np.intp)
        found = ClassRows(self.labels, self.features, self.anchor, codes, weights, offsets)
        return found._keep(weights > 0)


def _aligned(ours: ClassRows, theirs: ClassRows) -> tuple[ClassRows, ClassRows]:
    """Both over the same classes, about the same origin."""
    if ours.features != theirs.features:
        raise MomentsMismatchError.of_features(ours.features, theirs.features)
    if ours.detail != theirs.detail:
        raise MomentsMismatchError.of_detail(ours.detail, theirs.detail)
    labels = ours.labels
    if not same_labels(labels, theirs.labels):
        labels = union_labels(ours.labels, theirs.labels)
    ours, theirs = ours.over(labels), theirs.over(labels)
    anchor = ours.anchor
    if not len(ours.codes):
        anchor = theirs.anchor
    elif len(theirs.codes) and not anchor.same_as(theirs.anchor):
        zero, zero_too = ours._zero(), theirs._zero()
        anchor = anchor.common_units(theirs.anchor, zero=zero, zero_too=zero_too)
    return ours.at(anchor), theirs.at(anchor)


def _slack(ours: ClassRows, theirs: ClassRows) -> Floats:
    """(d,) how far apart offsets of one row may be: nothing, unless they had another anchor."""
    if ours.anchor.same_as(theirs.anchor):
        return np.zeros(len(ours.features))
    size = np.abs(ours.anchor.origin) + np.abs(theirs.anchor.origin)
    unit = np.maximum(ours.anchor.unit, theirs.anchor.unit)
    most = np.abs(ours.offsets).max(axis=0, initial=0.0) * ours.anchor.unit
    return np.asarray(4 * _EPS * (size + most) / unit)


def _find(
    ours: ClassRows,
    row: Floats,
    weight: float,
    code: int,
    free: npt.NDArray[np.bool_],
    slack: Floats,
) -> int | None:
    """The place of a row among ours that are still free, looked for in a few columns first."""
    places = np.flatnonzero(free & (ours.codes == code) & (ours.weights == weight))
    for columns in (slice(_FEW), slice(_FEW, None)):
        apart = np.abs(ours.offsets[places, columns] - row[columns])
        places = places[(apart <= slack[columns]).all(axis=1)]
    return int(places[0]) if len(places) else None
