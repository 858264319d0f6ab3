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

Two class moments brought to the same columns, classes and origin, so that they can be added.

Third and fourth moments about a mean, and what they become about another point.

With z = u - mean_k, S = sum w z z', C_jl = sum w z_j^2 z_l, Q_jl = sum w z_j^2 z_l^2, moving the
mean away so that z becomes z + t (sum w z = 0 drops the odd terms):

    C'_jl = C_jl + t_l S_jj + 2 t_j S_jl + n t_j^2 t_l
    Q'_jl = Q_jl + 2 t_l C_jl + 2 t_j C_lj + t_l^2 S_jj + t_j^2 S_ll + 4 t_j t_l S_jl
            + n t_j^2 t_l^2

Classes by label and columns by name: what every summary that knows both has to look up.

Taking rows out of class moments again, and refusing where too few digits would be left.

With n the weight of ours, w that of theirs and m = n - w what remains of a class,

    mean'    = mean + w/m (mean - their mean)
    scatter' = scatter - their scatter - w n/m (mean - their mean)(mean - their mean)'

Both are differences, so digits can be lost: `lost` bounds what each variance has lost so far. What
remains must be possible, too: a scatter that is not positive means that their rows were not among
ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from numpy.linalg import eigvalsh

from discriminant.errors import LabelError, MomentsMismatchError, OptionError, PrecisionLostError
from discriminant.moments.anchor import Anchor
from discriminant.table.blocks import Floats, Labels
from discriminant.table.labels import encode_labels, same_labels, union_labels


def align(ours: ClassMoments, theirs: ClassMoments) -> tuple[ClassMoments, ClassMoments]:
    """Both over the same classes, about the same origin."""
    if ours.features != theirs.features:
        if sorted(ours.features) != sorted(theirs.features):
            raise MomentsMismatchError.of_features(ours.features, theirs.features)
        theirs = theirs.select(ours.features)
    if ours.detail != theirs.detail:
        raise MomentsMismatchError.of_detail(ours.detail, theirs.detail)
    if not same_labels(ours.labels, theirs.labels):
        labels = union_labels(ours.labels, theirs.labels)
        ours, theirs = ours.over(labels), theirs.over(labels)
    if ours.anchor.same_as(theirs.anchor):
        return ours, theirs
    if not ours.rows.any():
        return ours.at(theirs.anchor), theirs
    if not theirs.rows.any():
        return ours, theirs.at(ours.anchor)
    common = ours.anchor.common_units(
        theirs.anchor, zero=ours.zero_columns(), zero_too=theirs.zero_columns()
    )
    return ours.at(common), theirs.at(common)


class HasFourthMoments(Protocol):
    """Moments of K classes up to the fourth."""

    @property
    def weight(self) -> Floats: ...
    @property
    def scatter(self) -> Floats: ...
    @property
    def third(self) -> Floats | None: ...
    @property
    def fourth(self) -> Floats | None: ...


@dataclass(frozen=True, slots=True, eq=False)
class FourthMoments:
    """Moments of one class up to the fourth, as a stack of one."""

    weight: Floats  # (1,)
    scatter: Floats  # (1, d, d)
    third: Floats  # (1, d, d)
    fourth: Floats  # (1, d, d)

    @classmethod
    def of_class(cls, weight: Any, scatter: Floats, third: Floats, fourth: Floats) -> FourthMoments:
        """The stack of one."""
        return cls(np.array([weight]), scatter[None], third[None], fourth[None])


def shift_third(moments: HasFourthMoments, step: Floats) -> Floats:
    """C of each class after a step (K, d) away from its mean."""
    scatter, weight, third = moments.scatter, moments.weight[:, None, None], moments.third
    assert third is not None
    variance = np.einsum("kjj->kj", scatter)
    tj, tl = step[:, :, None], step[:, None, :]
    return np.asarray(third + tl * variance[:, :, None] + 2 * tj * scatter + weight * tj**2 * tl)


def shift_fourth(moments: HasFourthMoments, step: Floats) -> Floats:
    """Q of each class after a step (K, d) away from its mean."""
    scatter, weight, third = moments.scatter, moments.weight[:, None, None], moments.third
    assert third is not None and moments.fourth is not None
    variance = np.einsum("kjj->kj", scatter)
    tj, tl = step[:, :, None], step[:, None, :]
    crossed = 2 * tl * third
    crossed = crossed + crossed.transpose(0, 2, 1)
    squares = tl**2 * variance[:, :, None]
    squares = squares + squares.transpose(0, 2, 1)
    return np.asarray(
        moments.fourth + crossed + squares + 4 * tj * tl * scatter + weight * tj**2 * tl**2
    )


Places = npt.NDArray[np.intp]


def find_labels(labels: Labels, wanted: Sequence[Any]) -> Places:
    """The place of each label wanted among `labels`."""
    place = {label: code for code, label in enumerate(labels.tolist())}
    unknown = [label for label in wanted if label not in place]
    if unknown:
        raise LabelError.unknown(unknown, labels.tolist())
    if len(set(wanted)) < len(wanted):
        raise OptionError.of("labels", list(wanted), "named once each")
    return np.array([place[label] for label in wanted], dtype=np.intp)


def find_columns(features: Sequence[str], wanted: Sequence[str] | Sequence[int]) -> Places:
    """The place of each feature wanted, by name, by place, or by a truth value for each of all."""
    asked: list[Any] = list(wanted)
    if asked and all(isinstance(f, (bool, np.bool_)) for f in asked):
        if len(asked) != len(features):
            allowed = f"one for each of the {len(features)} features"
            raise OptionError.of("features", f"{len(asked)} truth values", allowed)
        return np.flatnonzero(asked)
    place: dict[Any, int] = {name: j for j, name in enumerate(features)}
    d = len(features)
    whole = {j: j % d for j in range(-d, d)}
    wrong = [f for f in asked if f not in (place if isinstance(f, str) else whole)]
    wrong += [f for f in asked if isinstance(f, (bool, np.bool_))]
    if wrong:
        allowed = f"among {list(features)[:20]} or their places 0 to {d - 1}"
        raise OptionError.of("features", wrong, allowed)
    chosen = [place[f] if isinstance(f, str) else whole[int(f)] for f in asked]
    if len(set(chosen)) < len(chosen):
        twice = sorted({features[j] for j in chosen if chosen.count(j) > 1})
        raise OptionError.of("features", twice, "named once each")
    return np.array(chosen, dtype=np.intp)


def class_factors(
    labels: Labels, factors: Mapping[Any, float] | npt.ArrayLike, *, option: str = "factors"
) -> Floats:
    """(K,) a factor for each class; one that a mapping does not name is 1. `option`: its name."""
    if isinstance(factors, Mapping):
        find_labels(labels, list(factors))
        factors = [float(factors.get(label, 1.0)) for label in labels.tolist()]
    found = np.array(factors, dtype=np.float64)  # a copy: the caller may change the array later
    if found.shape != labels.shape:
        raise OptionError.of(
            option, f"array of shape {found.shape}", f"one number for {len(labels)} classes"
        )
    for wrong in found[~(np.isfinite(found) & (found >= 0))]:
        raise OptionError.of(option, float(wrong), "finite and not negative")
    return found


def merge_labels(labels: Labels, groups: Mapping[Any, Sequence[Any]]) -> tuple[Labels, Places]:
    """Labels after merging, sorted, and the new code of each old class; unnamed classes stay."""
    taken = [label for members in groups.values() for label in members]
    find_labels(labels, taken)
    whole = {label: [label] for label in labels.tolist() if label not in set(taken)}
    for name in groups:
        if name in whole:
            raise OptionError.of("groups", name, "a name no class that stays apart already has")
    wanted = {**whole, **groups}
    names = np.empty(len(wanted), dtype=object)
    names[:] = list(wanted)
    labels_after, places = encode_labels(names)
    code = np.zeros(len(labels), dtype=np.intp)
    for new, members in zip(places, wanted.values(), strict=True):
        code[find_labels(labels, members)] = new
    return labels_after, code


DIGITS = 6.0  # fewer than this and a removal is refused
_EPS = float(np.finfo(np.float64).eps)
_DUST = 1e-9  # of a weight: less than this is rounding


def subtract(ours: ClassMoments, theirs: ClassMoments, *, digits: float) -> ClassMoments:
    """Our moments without theirs; both have the same classes and origin."""
    _check_removal(ours, theirs)
    rows = ours.rows - theirs.rows
    left = rows > 0
    weight = np.where(left, ours.weight - theirs.weight, 0.0)
    share = np.divide(theirs.weight, weight, out=np.zeros_like(weight), where=left & (weight > 0))
    step = ours.mean - theirs.mean
    moved = share[:, None] * step
    mean = np.where(left[:, None], ours.mean + moved, 0.0)
    mean[np.abs(mean) <= 4 * _EPS * (np.abs(ours.mean) + np.abs(moved))] = 0.0  # dust
    spread = ours.drift(theirs.weight * (1 + share), step)
    scatter = ours.scatter - theirs.scatter - spread
    cost = 4 * _EPS * (np.abs(ours.diagonal(ours.scatter)) + np.abs(ours.diagonal(spread)))
    result = replace(
        ours,
        rows=rows,
        weight=weight,
        weight2=np.where(left, ours.weight2 - theirs.weight2, 0.0),
        mean=mean,
        scatter=scatter,
        lost=ours.lost + theirs.lost + cost,
    )
    if ours.third is not None and theirs.third is not None:
        back, apart = mean - ours.mean, mean - theirs.mean
        result = replace(
            result,
            third=shift_third(ours, -back) - shift_third(theirs, -apart),
            fourth=shift_fourth(ours, -back) - shift_fourth(theirs, -apart),
        )
    result = _still(_clear_rounding(result), ours, theirs)
    return _possible(_checked(result, digits))


def _checked(moments: ClassMoments, digits: float) -> ClassMoments:
    left = moments.digits_left()
    if left.size and left.min() < digits:
        place = np.unravel_index(int(np.argmin(left)), left.shape)
        label = "all" if moments.detail == "pooled" else moments.labels[place[0]]
        raise PrecisionLostError.of_column(
            moments.features[int(place[-1])], label, float(left.min())
        )
    return moments


def _possible(moments: ClassMoments) -> ClassMoments:
    """The moments, unless no rows have such a scatter: then what was removed was not in it."""
    if moments.detail == "diagonal":
        return moments
    scatters = moments.scatter[None] if moments.detail == "pooled" else moments.scatter
    for k, scatter in enumerate(scatters):
        variance = np.diagonal(scatter)
        moving = variance > 0
        sd = np.sqrt(variance[moving])
        least = eigvalsh(scatter[np.ix_(moving, moving)] / sd[:, None] / sd).min(initial=0.0)
        if least < -(10.0**-DIGITS) * max(len(sd), 1):
            label = None if moments.detail == "pooled" else moments.labels[k]
            raise MomentsMismatchError.not_included(label)
    return moments


def _clear_rounding(moments: ClassMoments) -> ClassMoments:
    """Scatter that must be zero made zero: of no row, or of one."""
    if moments.detail == "pooled":
        alone = bool((moments.rows <= 1).all())
        return (
            replace(moments, scatter=moments.scatter * 0, lost=moments.lost * 0)
            if alone
            else moments
        )
    keep = (moments.rows > 1).astype(np.float64)
    return replace(
        moments,
        scatter=scale_classes(keep, moments.scatter),
        lost=scale_classes(keep, moments.lost),
        third=None if moments.third is None else scale_classes(keep, moments.third),
        fourth=None if moments.fourth is None else scale_classes(keep, moments.fourth),
    )


def _still(moments: ClassMoments, ours: ClassMoments, theirs: ClassMoments) -> ClassMoments:
    """Variances that are zero up to what the removal has cost made zero, where that is sure.

    It is sure of whole numbers counted once each: if they vary at all, their scatter is at
    least 1/2. Columns are taken for whole numbers if their origin and what remains of their
    means are, up to rounding.
    """
    diagonal = moments.diagonal(moments.scatter)
    none = (moments.lost > 0) & (diagonal <= 2 * moments.lost) & (moments.lost < 1 / 16)
    if not none.any():
        return moments
    value = moments.anchor.values(moments.mean)
    size = np.abs(ours.mean) + np.abs(theirs.mean) + np.abs(moments.anchor.origin) + 1.0
    whole = np.abs(value - np.rint(value)) <= 64 * _EPS * size
    whole &= (moments.anchor.unit == 1.0) & (
        moments.anchor.origin == np.rint(moments.anchor.origin)
    )
    whole &= (moments.weight == moments.rows)[:, None]
    whole |= (moments.rows == 0)[:, None]
    none &= whole.all(axis=0) if moments.detail == "pooled" else whole
    return _without(moments, none)


def _without(moments: ClassMoments, none: npt.NDArray[np.bool_]) -> ClassMoments:
    """The same moments with no spread at all in some columns, or columns of some classes."""
    keep = np.where(none, 0.0, 1.0)
    square = keep if moments.detail == "diagonal" else keep[..., :, None] * keep[..., None, :]
    return replace(
        moments,
        scatter=moments.scatter * square,
        lost=moments.lost * keep,
        third=None if moments.third is None else moments.third * square,
        fourth=None if moments.fourth is None else moments.fourth * square,
    )


def _check_removal(ours: ClassMoments, theirs: ClassMoments) -> None:
    """Refuse to remove more rows of a class, or more weight, than there is."""
    for k in np.flatnonzero(theirs.rows > ours.rows):
        raise MomentsMismatchError.of_removal(
            ours.labels[k], int(ours.rows[k]), int(theirs.rows[k])
        )
    surplus = theirs.weight - ours.weight
    all_gone = (theirs.rows == ours.rows) & (np.abs(surplus) > _DUST * ours.weight)
    for k in np.flatnonzero((surplus > _DUST * ours.weight) | all_gone):
        raise MomentsMismatchError.of_weight_removal(
            ours.labels[k], float(ours.weight[k]), float(theirs.weight[k])
        )


def scale_classes(factor: Any, values: Floats) -> Floats:
    """Each class's block by its factor."""
    factor = np.asarray(factor)
    return np.asarray(values * factor.reshape(factor.shape + (1,) * (values.ndim - factor.ndim)))


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
        ours, theirs = align(self, other)
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
        return subtract(*align(self, other), digits=digits)

    # --- regrouping -------------------------------------------------------------------------

    def scale(self, factors: Mapping[Any, float] | npt.ArrayLike) -> ClassMoments:
        """Multiply the weight of each class: class weights, or resampling in expectation."""
        factor = class_factors(self.labels, factors)
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
            scatter=scale_classes(each, self.scatter),
            lost=scale_classes(each, self.lost),
            third=None if self.third is None else scale_classes(each, self.third),
            fourth=None if self.fourth is None else scale_classes(each, self.fourth),
        )

    def group(self, groups: Mapping[Any, Sequence[Any]]) -> ClassMoments:
        """Merge classes: `{"new": ["a", "b"]}`. Classes that no group names stay as they are."""
        return self._merged(*merge_labels(self.labels, groups))

    def classes(self, labels: Sequence[Any]) -> ClassMoments:
        """Moments of some classes only; pooled ones can leave out only classes without rows."""
        codes = np.sort(find_labels(self.labels, labels))
        if self.detail == "pooled" and self.rows[codes].sum() < self.rows.sum():
            raise MomentsMismatchError.needs_detail("Keeping some classes", "class", self.detail)
        kept = self._each_class(lambda values: values[codes])
        return replace(self, labels=self.labels[codes], **kept)

    def select(self, features: Sequence[str] | Sequence[int]) -> ClassMoments:
        """Moments of some features, by name or by place, in that order."""
        columns = find_columns(self.features, features)
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
