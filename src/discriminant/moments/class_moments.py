"""Weight, mean and scatter of each class: all that a Gaussian or least-squares rule needs.

For class k with rows x of weight w, as offsets u = (x - origin) / unit:

    weight_k  = sum w
    mean_k    = sum w u / weight_k
    scatter_k = sum w (u - mean_k)(u - mean_k)'

Scatter stays a sum; whoever asks for a covariance divides it. So parts merge without knowing how
they will be normalised. `+` is associative and commutative up to rounding and moments of no rows
are its identity: tests/laws/test_summaries.py holds every summary to that.

How much of the scatter is kept is the `detail`:

    diagonal   (K, d)     variances of each class
    pooled     (d, d)     the sum of the class scatters, W
    class      (K, d, d)  the scatter of each class
    fourth     as class, and sum w z_j^2 z_l and sum w z_j^2 z_l^2 of each class (z = u - mean_k),
               from which a best shrinkage follows exactly
    rows       the rows themselves, where they are few: `moments.class_rows`

Reading rows is not done here: see `moments.reading`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.errors import MomentsMismatchError, OptionError
from discriminant.moments.alignment import aligned
from discriminant.moments.anchor import Anchor
from discriminant.moments.fourth import shift_fourth, shift_third
from discriminant.moments.naming import Places, codes_of, columns_of, grouped, per_class
from discriminant.moments.removal import DIGITS, removed, times
from discriminant.table.schema import Floats, Labels

Detail = Literal["diagonal", "pooled", "class", "fourth", "rows"]
DETAILS: tuple[Detail, ...] = ("diagonal", "pooled", "class", "fourth")
_HUGE, _FAINT = 1e125, 1e-125  # sums of squares beyond these overflow or vanish, squared again
_SMALL = 1e-40  # values larger than this that differ at all do so by more than a faint square


@dataclass(frozen=True, slots=True, eq=False)
class ClassMoments:
    """Moments of K classes in d features."""

    labels: Labels  # (K,) sorted
    features: tuple[str, ...]  # d names
    anchor: Anchor  # origin and unit of the columns
    detail: Detail
    rows: npt.NDArray[np.int64]  # (K,) how many rows of positive weight
    weight: Floats  # (K,) sum of weights
    weight2: Floats  # (K,) sum of squared weights
    mean: Floats  # (K, d) offsets, zero where a class has no rows
    scatter: Floats  # by detail: (K, d), (d, d), (K, d, d)
    lost: Floats  # (K, d), for pooled (d,): bound of what removals have cost each variance
    third: Floats | None = None  # (K, d, d) with detail fourth
    fourth: Floats | None = None  # (K, d, d) with detail fourth

    def __post_init__(self) -> None:
        if self.detail not in DETAILS:
            raise OptionError.of("detail", self.detail, f"one of {', '.join(DETAILS)}")
        K, d = len(self.labels), len(self.features)
        each, square = (K, d), (K, d, d)
        wanted = {
            "rows": (K,),
            "weight": (K,),
            "weight2": (K,),
            "mean": each,
            "scatter": {"diagonal": each, "pooled": (d, d)}.get(self.detail, square),
            "lost": (d,) if self.detail == "pooled" else each,
        }
        if self.detail == "fourth":
            wanted |= {"third": square, "fourth": square}
        for name, shape in wanted.items():
            if np.shape(getattr(self, name)) != shape:
                raise MomentsMismatchError.of_shape(name, np.shape(getattr(self, name)), shape)
        if len(self.anchor.origin) != d:
            raise MomentsMismatchError.of_shape("anchor", self.anchor.origin.shape, (d,))

    # --- making --------------------------------------------------------------------------

    @classmethod
    def empty(
        cls,
        labels: Labels,
        features: Sequence[str],
        *,
        detail: Detail = "class",
        anchor: Anchor | None = None,
    ) -> ClassMoments:
        """Moments of no rows: added to any others they change nothing, not even the last bit."""
        K, d = len(labels), len(features)
        shape = {"diagonal": (K, d), "pooled": (d, d)}.get(detail, (K, d, d))
        third, fourth = (
            (np.zeros((K, d, d)), np.zeros((K, d, d))) if detail == "fourth" else (None, None)
        )
        return cls(
            np.asarray(labels),
            tuple(features),
            Anchor.zero(d) if anchor is None else anchor,
            detail,
            np.zeros(K, dtype=np.int64),
            np.zeros(K),
            np.zeros(K),
            np.zeros((K, d)),
            np.zeros(shape),
            np.zeros(d if detail == "pooled" else (K, d)),
            third,
            fourth,
        )

    # --- adding and removing ----------------------------------------------------------------

    def __add__(self, other: ClassMoments) -> ClassMoments:
        """Moments of the rows of both; classes are the union of both, columns go by name."""
        if not isinstance(other, ClassMoments):
            return NotImplemented
        ours, theirs = aligned(self, other)
        weight = ours.weight + theirs.weight
        share = np.divide(theirs.weight, weight, out=np.zeros_like(weight), where=weight > 0)
        step = theirs.mean - ours.mean
        down, up = -share[:, None] * step, (1 - share)[:, None] * step
        third = fourth = None
        if ours.third is not None and theirs.third is not None:
            third = shift_third(ours, down) + shift_third(theirs, up)
            fourth = shift_fourth(ours, down) + shift_fourth(theirs, up)
        return replace(
            ours,
            rows=ours.rows + theirs.rows,
            weight=weight,
            weight2=ours.weight2 + theirs.weight2,
            mean=ours.mean + share[:, None] * step,
            scatter=ours.scatter + theirs.scatter + ours.drift(ours.weight * share, step),
            lost=ours.lost + theirs.lost,
            third=third,
            fourth=fourth,
        )

    def __radd__(self, other: object) -> ClassMoments:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __sub__(self, other: ClassMoments) -> ClassMoments:
        """Moments of our rows without theirs, which must be among ours."""
        return self.remove(other)

    def remove(self, other: ClassMoments, *, digits: float = DIGITS) -> ClassMoments:
        """Moments without the rows of `other`; refuses when fewer than `digits` would be left."""
        return removed(*aligned(self, other), digits=digits)

    # --- regrouping -------------------------------------------------------------------------

    def scale(self, factors: Mapping[Any, float] | npt.ArrayLike) -> ClassMoments:
        """Multiply the weight of each class: class weights, or resampling in expectation."""
        factor = per_class(self.labels, factors)
        if self.detail == "pooled" and not (factor == factor[0]).all():
            raise MomentsMismatchError.needs_detail("Weighting classes apart", "class", self.detail)
        each = factor[0] if self.detail == "pooled" else factor
        some = factor > 0  # a class of weight zero is a class of no rows
        return replace(
            self,
            rows=np.where(some, self.rows, 0),
            mean=np.where(some[:, None], self.mean, 0.0),
            weight=self.weight * factor,
            weight2=self.weight2 * factor**2,
            scatter=times(each, self.scatter),
            lost=times(each, self.lost),
            third=None if self.third is None else times(each, self.third),
            fourth=None if self.fourth is None else times(each, self.fourth),
        )

    def group(self, groups: Mapping[Any, Sequence[Any]]) -> ClassMoments:
        """Merge classes: `{"new": ["a", "b"]}`. Classes that no group names stay as they are."""
        return self._merged(*grouped(self.labels, groups))

    def classes(self, labels: Sequence[Any]) -> ClassMoments:
        """Moments of some classes only; pooled ones can leave out only classes without rows."""
        codes = np.sort(codes_of(self.labels, labels))
        if self.detail == "pooled" and self.rows[codes].sum() < self.rows.sum():
            raise MomentsMismatchError.needs_detail("Keeping some classes", "class", self.detail)
        kept = self._each_class(lambda values: values[codes])
        return replace(self, labels=self.labels[codes], **kept)

    def select(self, features: Sequence[str] | Sequence[int]) -> ClassMoments:
        """Moments of some features, by name or by place, in that order."""
        columns = columns_of(self.features, features)
        square = (..., columns[:, None], columns[None, :])
        return replace(
            self,
            features=tuple(self.features[j] for j in columns),
            anchor=self.anchor.select(columns),
            mean=self.mean[:, columns],
            scatter=self.scatter[:, columns] if self.detail == "diagonal" else self.scatter[square],
            lost=self.lost[..., columns],
            third=None if self.third is None else self.third[square],
            fourth=None if self.fourth is None else self.fourth[square],
        )

    def holds(self, detail: Detail) -> bool:
        """Whether moments of that detail follow from these."""
        if detail == "rows" or (detail == "diagonal" and self.detail == "pooled"):
            return False
        return DETAILS.index(detail) <= DETAILS.index(self.detail)

    def reduce(self, detail: Detail) -> ClassMoments:
        """The same moments in less detail."""
        if detail == self.detail:
            return self
        if not self.holds(detail):
            raise MomentsMismatchError.needs_detail("This", detail, self.detail)
        scatter = self.scatter
        if detail == "diagonal":
            scatter = np.einsum("kii->ki", self.scatter).copy()
        elif detail == "pooled":
            scatter = self.scatter.sum(axis=0)
        lost = self.lost.sum(axis=0) if detail == "pooled" else self.lost
        return replace(self, detail=detail, scatter=scatter, lost=lost, third=None, fourth=None)

    # --- looking ------------------------------------------------------------------------------

    @property
    def means(self) -> Floats:
        """(K, d) class means in the user's numbers."""
        return self.anchor.values(self.mean)

    @property
    def pooled(self) -> Floats:
        """(d, d) within-class scatter in units of the anchor; (d,) if only variances are kept."""
        return self.scatter if self.detail == "pooled" else self.scatter.sum(axis=0)

    @property
    def centre(self) -> Floats:
        """(d,) mean of all rows, as an offset."""
        share = self.weight / self.weight.sum() if self.weight.any() else self.weight
        return np.asarray(share @ self.mean)

    @property
    def digits(self) -> float:
        """Correct digits of the worst variance, as far as removals have cost any."""
        return float(self.digits_left().min(initial=16.0))

    def within(self) -> Floats:
        """S_w = sum of the class scatters, (d, d), in the user's numbers."""
        self._need_products("The within-class scatter")
        return self._valued(self.pooled)

    def between(self) -> Floats:
        """S_b = sum of weight_k (mean_k - mean)(mean_k - mean)', (d, d), in the user's numbers."""
        return self._valued(self.spread_of_means())

    def total(self) -> Floats:
        """S_t = S_w + S_b, scatter of all rows about their mean, (d, d), in the user's numbers."""
        self._need_products("The total scatter")
        return self._valued(self.pooled + self.spread_of_means())

    def spread_of_means(self) -> Floats:
        """S_b in units of the anchor."""
        apart = np.sqrt(self.weight)[:, None] * (self.mean - self.centre)
        return np.asarray(apart.T @ apart)

    def overflown(self) -> npt.NDArray[np.bool_]:
        """(d,) columns whose sums of squares are not finite."""
        squares = np.atleast_2d(self.diagonal(self.scatter))
        return np.asarray(~np.isfinite(squares.max(axis=0, initial=0.0)))

    def strained(self) -> npt.NDArray[np.bool_]:
        """(d,) columns whose sums are so large, or so small, that another unit would suit better.

        No variance at all strains nothing unless the mean shows that there were values: tiny ones.
        """
        squares = np.atleast_2d(self.diagonal(self.scatter))
        if squares.size and squares.min() >= _FAINT and squares.max() <= _HUGE:
            return np.zeros(len(self.features), dtype=np.bool_)
        with np.errstate(over="ignore", invalid="ignore"):
            total = squares.sum(axis=0)
            mean = np.abs(self.mean).max(axis=0, initial=0.0)
        tiny = (mean < _SMALL) & (np.abs(self.anchor.origin) < _SMALL * self.anchor.unit)
        vanished = (total < _FAINT) & tiny & ((mean > 0) | (total > 0))
        return np.asarray(~(total <= _HUGE) | vanished)

    def __repr__(self) -> str:
        """One line: how many rows, classes and features, and in what detail."""
        return (
            f"{type(self).__name__}({int(self.rows.sum())} rows, {len(self.labels)} classes, "
            f"{len(self.features)} features, detail='{self.detail}')"
        )

    # --- inside -------------------------------------------------------------------------------

    def at(self, anchor: Anchor) -> ClassMoments:
        """The same moments about another origin and in other units."""
        if anchor.same_as(self.anchor):
            return self
        still = self.zero_columns() | (not self.rows.any())
        ratio = np.where(still, 1.0, self.anchor.unit / anchor.unit)
        mean = np.where(
            self.rows[:, None] > 0, self.mean * ratio + self.anchor.shift_to(anchor), 0.0
        )
        square = ratio[:, None] * ratio
        return replace(
            self,
            anchor=anchor,
            mean=mean,
            scatter=self.scatter * (ratio**2 if self.detail == "diagonal" else square),
            lost=self.lost * ratio**2,
            third=None if self.third is None else self.third * (ratio[:, None] ** 2 * ratio),
            fourth=None if self.fourth is None else self.fourth * square**2,
        )

    def over(self, labels: Labels) -> ClassMoments:
        """The same moments over more classes, of which the new ones are empty."""
        if np.array_equal(labels, self.labels):
            return self
        place = np.searchsorted(labels, self.labels)

        def spread(values: Any) -> Any:
            wide = np.zeros((len(labels), *values.shape[1:]), dtype=values.dtype)
            wide[place] = values
            return wide

        return replace(self, labels=labels, **self._each_class(spread))

    def _each_class(self, change: Callable[[Any], Any]) -> dict[str, Any]:
        """Every array that has a row for each class, changed."""
        names = ["rows", "weight", "weight2", "mean"]
        if self.detail != "pooled":
            names += ["scatter", "lost"]
        if self.detail == "fourth":
            names += ["third", "fourth"]
        return {name: change(getattr(self, name)) for name in names}

    def drift(self, weight: Floats, step: Floats) -> Floats:
        """sum over classes, or each class's, weight * step step', in the shape of the scatter."""
        if self.detail == "diagonal":
            return weight[:, None] * step**2
        if self.detail == "pooled":
            root = np.sqrt(weight)[:, None] * step
            return np.asarray(root.T @ root)
        return (weight[:, None] * step)[:, :, None] * step[:, None, :]

    def diagonal(self, scatter: Floats) -> Floats:
        """Variances of something in the shape of the scatter."""
        if self.detail == "diagonal":
            return scatter
        return np.diagonal(scatter, axis1=-2, axis2=-1)

    def digits_left(self) -> Floats:
        """Of each variance, what removals have left."""
        diagonal = self.diagonal(self.scatter)
        known = self.lost > 0
        if self.detail != "pooled":
            known = known & (self.rows > 1)[:, None]
        ratio = np.divide(diagonal, self.lost, out=np.full(self.lost.shape, 1e16), where=known)
        return np.asarray(np.log10(np.maximum(ratio, 1e-16)))

    def _merged(self, labels: Labels, code: Places) -> ClassMoments:
        join = np.zeros((len(labels), len(self.labels)))
        join[code, np.arange(len(self.labels))] = 1.0
        weight = join @ self.weight
        share = self.weight / np.where(weight > 0, weight, 1.0)[code]
        mean = join @ (share[:, None] * self.mean)
        step = self.mean - mean[code]
        moved = self.drift(self.weight, step)
        pooled = self.detail == "pooled"
        both = self.scatter + moved
        return replace(
            self,
            labels=labels,
            rows=(join @ self.rows).astype(np.int64),
            weight=weight,
            weight2=join @ self.weight2,
            mean=mean,
            scatter=both if pooled else np.tensordot(join, both, axes=1),
            lost=self.lost if pooled else join @ self.lost,
            third=None
            if self.third is None
            else np.tensordot(join, shift_third(self, step), axes=1),
            fourth=None
            if self.fourth is None
            else np.tensordot(join, shift_fourth(self, step), axes=1),
        )

    def zero_columns(self) -> npt.NDArray[np.bool_]:
        """(d,) whether a column is zero in every row."""
        spread = np.atleast_2d(self.diagonal(self.scatter)).any(axis=0)
        return np.asarray((self.anchor.origin == 0) & ~self.mean.any(axis=0) & ~spread)

    def _need_products(self, what: str) -> None:
        if self.detail == "diagonal":
            raise MomentsMismatchError.needs_detail(what, "pooled", self.detail)

    def _valued(self, scatter: Floats) -> Floats:
        unit = self.anchor.unit
        return scatter if self.anchor.plain else scatter * unit[:, None] * unit
