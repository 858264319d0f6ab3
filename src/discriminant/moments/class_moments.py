"""Class moments: weight, mean and scatter matrix of each class, which can be added and removed.

For class k with rows x of weight w, as offsets u = (x - origin) / unit:

    weight_k  = sum w
    mean_k    = sum w u / weight_k
    scatter_k = sum w (u - mean_k)(u - mean_k)'

All Gaussian and least-squares models are fitted from these moments. The scatter is stored as a sum,
and only divided by a denominator when a covariance is computed, so that merging does not depend on
the denominator. `+` is associative and commutative up to rounding, and adding empty moments changes
nothing; `tests/laws/test_summaries.py` checks this for every summary.

The `detail` says how much of the scatter is stored:

    diagonal   (K, d)     variances of each class
    pooled     (d, d)     the sum of the class scatters, W
    class      (K, d, d)  the scatter of each class
    fourth     as class, and for each class sum w z_j^2 z_l and sum w z_j^2 z_l^2 with z = u -
               mean_k, from which the optimal shrinkage follows exactly
    rows       the rows themselves, if they are fewer than the features, as in
               `moments.rows_instead_of_moments`

Third and fourth moments about another point can be computed from those about the mean. Let `S = sum
w z z'`, `C_jl = sum w z_j^2 z_l` and `Q_jl = sum w z_j^2 z_l^2`. Replacing `z` by `z + t` gives
(terms with `sum w z` vanish, since this sum is zero):

    C'_jl = C_jl + t_l S_jj + 2 t_j S_jl + n t_j^2 t_l
    Q'_jl = Q_jl + 2 t_l C_jl + 2 t_j C_lj + t_l^2 S_jj + t_j^2 S_ll + 4 t_j t_l S_jl
            + n t_j^2 t_l^2

When rows are removed from a class of weight `n`, with `w` the weight of the removed rows ("their")
and `m = n - w` the remaining weight:

    mean'    = mean + w/m (mean - their mean)
    scatter' = scatter - their scatter - w n/m (mean - their mean)(mean - their mean)'

The formulas for removing rows contain differences, so digits can be lost. `lost` is an upper bound,
for each variance, on the error caused by all removals. A removal that leaves too few correct digits
raises an error. An error is also raised if the remaining scatter is not positive semidefinite,
because this shows that the removed rows were not part of the moments.

`moments.accumulate` computes moments from rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from numpy.linalg import eigvalsh

from discriminant.errors import LabelError, MomentsMismatchError, OptionError, PrecisionLostError
from discriminant.moments.anchor import Anchor, align_anchors
from discriminant.moments.summary_base import Summable
from discriminant.table.blocks import Floats, Labels, Places
from discriminant.table.labels import encode_labels, same_labels, union_labels


def align(ours: ClassMoments, theirs: ClassMoments) -> tuple[ClassMoments, ClassMoments]:
    """Convert two moments to the same classes, in the same order, and to the same anchor."""
    if ours.features != theirs.features:
        if sorted(ours.features) != sorted(theirs.features):
            raise MomentsMismatchError.of_features(ours.features, theirs.features)
        theirs = theirs.select(ours.features)
    if ours.detail != theirs.detail:
        raise MomentsMismatchError.of_detail(ours.detail, theirs.detail)
    if not same_labels(ours.labels, theirs.labels):
        labels = union_labels(ours.labels, theirs.labels)
        ours, theirs = ours.over(labels), theirs.over(labels)
    return align_anchors(ours, theirs, empty=not ours.rows.any(), other_empty=not theirs.rows.any())


def shift_third(moments: ClassMoments, step: Floats) -> Floats:
    """Return the third moments `C` of each class about a point at distance `step` from its mean.

    `step` has shape (K, d); see the module docstring for `C`.
    """
    scatter, weight, third = moments.scatter, moments.weight[:, None, None], moments.third
    assert third is not None
    variance = np.einsum("kjj->kj", scatter)
    tj, tl = step[:, :, None], step[:, None, :]
    return np.asarray(third + tl * variance[:, :, None] + 2 * tj * scatter + weight * tj**2 * tl)


def shift_fourth(moments: ClassMoments, step: Floats) -> Floats:
    """Return the fourth moments `Q` of each class about a point at distance `step` from its mean.

    `step` has shape (K, d); see the module docstring for `Q`.
    """
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


def find_labels(labels: Labels, wanted: Sequence[Any]) -> Places:
    """Return the code of each wanted label."""
    code_of = {label: code for code, label in enumerate(labels.tolist())}
    unknown = [label for label in wanted if label not in code_of]
    if unknown:
        raise LabelError.unknown(unknown, labels.tolist())
    if len(set(wanted)) < len(wanted):
        raise OptionError.of("labels", list(wanted), "named once each")
    return np.array([code_of[label] for label in wanted], dtype=np.intp)


def find_columns(features: Sequence[str], wanted: Sequence[str] | Sequence[int]) -> Places:
    """Return the index of each wanted feature, by name, index or boolean mask."""
    features_wanted: list[Any] = list(wanted)
    if features_wanted and all(isinstance(f, (bool, np.bool_)) for f in features_wanted):
        if len(features_wanted) != len(features):
            allowed = f"one for each of the {len(features)} features"
            raise OptionError.of("features", f"{len(features_wanted)} truth values", allowed)
        return np.flatnonzero(features_wanted)
    index_of: dict[Any, int] = {name: j for j, name in enumerate(features)}
    d = len(features)
    valid_index = {j: j % d for j in range(-d, d)}
    unknown = [
        f for f in features_wanted if f not in (index_of if isinstance(f, str) else valid_index)
    ]
    unknown += [f for f in features_wanted if isinstance(f, (bool, np.bool_))]
    if unknown:
        allowed = f"among {list(features)[:20]} or their places 0 to {d - 1}"
        raise OptionError.of("features", unknown, allowed)
    columns = [index_of[f] if isinstance(f, str) else valid_index[int(f)] for f in features_wanted]
    if len(set(columns)) < len(columns):
        repeated = sorted({features[j] for j in columns if columns.count(j) > 1})
        raise OptionError.of("features", repeated, "named once each")
    return np.array(columns, dtype=np.intp)


def class_factors(
    labels: Labels, factors: Mapping[Any, float] | npt.ArrayLike, *, option: str = "factors"
) -> Floats:
    """Return the (K,) factors of the classes.

    A class that a mapping omits has the factor 1. `option` is the name of the option in error
    messages.
    """
    if isinstance(factors, Mapping):
        find_labels(labels, list(factors))
        factors = [float(factors.get(label, 1.0)) for label in labels.tolist()]
    values = np.array(factors, dtype=np.float64)  # a copy: the caller may change the array later
    if values.shape != labels.shape:
        raise OptionError.of(
            option, f"array of shape {values.shape}", f"one number for {len(labels)} classes"
        )
    for invalid in values[~(np.isfinite(values) & (values >= 0))]:
        raise OptionError.of(option, float(invalid), "finite and not negative")
    return values


def merge_labels(labels: Labels, groups: Mapping[Any, Sequence[Any]]) -> tuple[Labels, Places]:
    """Return the sorted labels after merging classes, and for each old class its new code.

    A class that is in no group keeps its label.
    """
    merged = [label for members in groups.values() for label in members]
    find_labels(labels, merged)
    unmerged = {label: [label] for label in labels.tolist() if label not in set(merged)}
    for name in groups:
        if name in unmerged:
            raise OptionError.of("groups", name, "a name that no class outside the group has")
    members_of = {**unmerged, **groups}
    names = np.empty(len(members_of), dtype=object)
    names[:] = list(members_of)
    labels_after, new_codes = encode_labels(names)
    code = np.zeros(len(labels), dtype=np.intp)
    for new, members in zip(new_codes, members_of.values(), strict=True):
        code[find_labels(labels, members)] = new
    return labels_after, code


DIGITS = 6.0  # a removal that leaves fewer digits is an error
_EPS = float(np.finfo(np.float64).eps)
_ROUNDING = 1e-9  # differences below this multiple of a weight count as rounding


def subtract(ours: ClassMoments, theirs: ClassMoments, *, digits: float) -> ClassMoments:
    """Return the moments `ours` without the rows of `theirs`.

    Both moments must have the same classes and the same anchor.
    """
    _check_removal(ours, theirs)
    rows = ours.rows - theirs.rows
    remaining = rows > 0
    weight = np.where(remaining, ours.weight - theirs.weight, 0.0)
    share = np.divide(
        theirs.weight, weight, out=np.zeros_like(weight), where=remaining & (weight > 0)
    )
    step = ours.mean - theirs.mean
    shift = share[:, None] * step
    mean = np.where(remaining[:, None], ours.mean + shift, 0.0)
    mean[np.abs(mean) <= 4 * _EPS * (np.abs(ours.mean) + np.abs(shift))] = 0.0  # rounding
    between = ours.drift(theirs.weight * (1 + share), step)
    scatter = ours.scatter - theirs.scatter - between
    cost = 4 * _EPS * (np.abs(ours.diagonal(ours.scatter)) + np.abs(ours.diagonal(between)))
    result = replace(
        ours,
        rows=rows,
        weight=weight,
        weight2=np.where(remaining, ours.weight2 - theirs.weight2, 0.0),
        mean=mean,
        scatter=scatter,
        lost=ours.lost + theirs.lost + cost,
    )
    if ours.third is not None and theirs.third is not None:
        our_step, their_step = mean - ours.mean, mean - theirs.mean
        result = replace(
            result,
            third=shift_third(ours, -our_step) - shift_third(theirs, -their_step),
            fourth=shift_fourth(ours, -our_step) - shift_fourth(theirs, -their_step),
        )
    result = _clear_constant(_clear_rounding(result), ours, theirs)
    _check_digits(result, digits)
    _check_semidefinite(result)
    return result


def _check_digits(moments: ClassMoments, digits: float) -> None:
    left = moments.digits_left()
    if left.size and left.min() < digits:
        index = np.unravel_index(int(np.argmin(left)), left.shape)
        label = "all" if moments.detail == "pooled" else moments.labels[index[0]]
        feature = moments.features[int(index[-1])]
        raise PrecisionLostError.of_column(feature, label, float(left.min()))


def _check_semidefinite(moments: ClassMoments) -> None:
    """Raise an error if a scatter matrix is not positive semidefinite.

    The scatter of actual rows is always positive semidefinite. If the remaining scatter is not
    positive semidefinite, the removed rows were not part of the moments.
    """
    if moments.detail == "diagonal":
        return
    scatters = moments.scatter[None] if moments.detail == "pooled" else moments.scatter
    for k, scatter in enumerate(scatters):
        variance = np.diagonal(scatter)
        varying = variance > 0
        sd = np.sqrt(variance[varying])
        smallest = eigvalsh(scatter[np.ix_(varying, varying)] / sd[:, None] / sd).min(initial=0.0)
        if smallest < -(10.0**-DIGITS) * max(len(sd), 1):
            label = None if moments.detail == "pooled" else moments.labels[k]
            raise MomentsMismatchError.not_included(label)


def _clear_rounding(moments: ClassMoments) -> ClassMoments:
    """Set the scatter of classes with at most one row to zero."""
    if moments.detail == "pooled":
        if (moments.rows > 1).any():
            return moments
        return replace(moments, scatter=moments.scatter * 0, lost=moments.lost * 0)
    keep = (moments.rows > 1).astype(np.float64)
    return replace(
        moments,
        scatter=scale_classes(keep, moments.scatter),
        lost=scale_classes(keep, moments.lost),
        **moments._map_powers(lambda power: scale_classes(keep, power)),
    )


def _clear_constant(
    moments: ClassMoments, ours: ClassMoments, theirs: ClassMoments
) -> ClassMoments:
    """Set the variance of a column to zero if the remaining values are certainly constant.

    Only variances that are zero within the error caused by the removal are considered.

    Integers of weight one are certainly constant if their scatter is below 1/2. A column is treated
    as integer if its origin and its remaining means are integers up to rounding.
    """
    diagonal = moments.diagonal(moments.scatter)
    constant = (moments.lost > 0) & (diagonal <= 2 * moments.lost) & (moments.lost < 1 / 16)
    if not constant.any():
        return moments
    value = moments.anchor.values(moments.mean)
    size = np.abs(ours.mean) + np.abs(theirs.mean) + np.abs(moments.anchor.origin) + 1.0
    integers = np.abs(value - np.rint(value)) <= 64 * _EPS * size
    integers &= (moments.anchor.unit == 1.0) & (
        moments.anchor.origin == np.rint(moments.anchor.origin)
    )
    integers &= (moments.weight == moments.rows)[:, None]
    integers |= (moments.rows == 0)[:, None]
    constant &= integers.all(axis=0) if moments.detail == "pooled" else integers
    return _clear_variances(moments, constant)


def _clear_variances(moments: ClassMoments, constant: npt.NDArray[np.bool_]) -> ClassMoments:
    """Return the moments with variances set to zero where `constant` is True.

    `constant` has the shape (d,) or, to distinguish classes, (K, d).
    """
    keep = np.where(constant, 0.0, 1.0)
    square = keep if moments.detail == "diagonal" else keep[..., :, None] * keep[..., None, :]
    return replace(
        moments,
        scatter=moments.scatter * square,
        lost=moments.lost * keep,
        **moments._map_powers(lambda power: power * square),
    )


def _check_removal(ours: ClassMoments, theirs: ClassMoments) -> None:
    """Raise an error if more rows or more weight are to be removed from a class than it has."""
    for k in np.flatnonzero(theirs.rows > ours.rows):
        raise MomentsMismatchError.of_removal(
            ours.labels[k], int(ours.rows[k]), int(theirs.rows[k])
        )
    surplus = theirs.weight - ours.weight
    mismatch = (theirs.rows == ours.rows) & (np.abs(surplus) > _ROUNDING * ours.weight)
    for k in np.flatnonzero((surplus > _ROUNDING * ours.weight) | mismatch):
        raise MomentsMismatchError.of_weight_removal(
            ours.labels[k], float(ours.weight[k]), float(theirs.weight[k])
        )


def scale_classes(factor: Any, values: Floats) -> Floats:
    """Return `values` with the slice of each class multiplied by the factor of the class."""
    factor = np.asarray(factor)
    return np.asarray(values * factor.reshape(factor.shape + (1,) * (values.ndim - factor.ndim)))


Detail = Literal["diagonal", "pooled", "class", "fourth", "rows"]
DETAILS: tuple[Detail, ...] = ("diagonal", "pooled", "class", "fourth")
_HUGE, _FAINT = 1e125, 1e-125  # squares of sums above or below these overflow or underflow
_SMALL = 1e-40  # if values above this differ at all, their variance is above _FAINT


@dataclass(frozen=True, slots=True, eq=False)
class ClassMoments(Summable):
    """Weight, mean and scatter of K classes in d features.

    `discriminant.moments` computes class moments. Moments of disjoint sets of rows can be added
    with `+`, and rows can be removed with `-`. Every estimator that has `fit_moments` can be fitted
    from moments, without reading rows.

    Parameters
    ----------
    labels : array of shape (K,)
        Class labels, sorted.
    features : tuple of str
        Names of the d features.
    anchor : Anchor
        Origin and unit of the columns.
    detail : {'diagonal', 'pooled', 'class', 'fourth'}
        How much of the scatter is stored.
    rows : integer array of shape (K,)
        Number of rows of positive weight.
    weight, weight2 : array of shape (K,)
        Sums of the weights and of their squares.
    mean : array of shape (K, d)
        Means as offsets from the origin, zero for a class without rows.
    scatter : array
        Its shape depends on `detail`: (K, d) for 'diagonal', (d, d) for 'pooled', otherwise (K, d,
        d).
    lost : array of shape (K, d), for 'pooled' (d,)
        Upper bound, for each variance, on the error caused by removals.
    third, fourth : array of shape (K, d, d), optional
        Third and fourth moments, with detail 'fourth'.

    See Also
    --------
    discriminant.moments : Compute moments from rows.

    Examples
    --------
    >>> from discriminant.engines.dispatch import moments
    >>> morning = moments([[0.0], [2.0]], ["a", "b"])
    >>> evening = moments([[2.0], [4.0]], ["a", "b"])
    >>> (morning + evening).means.ravel().tolist()
    [1.0, 3.0]
    """

    labels: Labels
    features: tuple[str, ...]
    anchor: Anchor
    detail: Detail
    rows: npt.NDArray[np.int64]
    weight: Floats
    weight2: Floats
    mean: Floats
    scatter: Floats
    lost: Floats
    third: Floats | None = None
    fourth: Floats | None = None

    def __post_init__(self) -> None:
        if self.detail not in DETAILS:
            raise OptionError.of("detail", self.detail, f"one of {', '.join(DETAILS)}")
        K, d = len(self.labels), len(self.features)
        by_class, square = (K, d), (K, d, d)
        shapes = {
            "rows": (K,),
            "weight": (K,),
            "weight2": (K,),
            "mean": by_class,
            "scatter": {"diagonal": by_class, "pooled": (d, d)}.get(self.detail, square),
            "lost": (d,) if self.detail == "pooled" else by_class,
        }
        if self.detail == "fourth":
            shapes |= {"third": square, "fourth": square}
        for name, shape in shapes.items():
            if np.shape(getattr(self, name)) != shape:
                raise MomentsMismatchError.of_shape(name, np.shape(getattr(self, name)), shape)
        if len(self.anchor.origin) != d:
            raise MomentsMismatchError.of_shape("anchor", self.anchor.origin.shape, (d,))

    @classmethod
    def empty(
        cls,
        labels: Labels,
        features: Sequence[str],
        *,
        detail: Detail = "class",
        anchor: Anchor | None = None,
    ) -> ClassMoments:
        """Return moments without rows; adding them to other moments changes nothing."""
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

    def __add__(self, other: ClassMoments) -> ClassMoments:
        """Return the moments of all rows of both operands.

        The classes of the result are the union of the classes of both. Columns are matched by name.
        """
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

    def __sub__(self, other: ClassMoments) -> ClassMoments:
        """Return these moments without the rows of `other`, which must be included in these
        moments.
        """
        return self.remove(other)

    def remove(self, other: ClassMoments, *, digits: float = DIGITS) -> ClassMoments:
        """Return these moments without the rows of `other`.

        Raise an error if a variance would have fewer than `digits` correct digits.
        """
        return subtract(*align(self, other), digits=digits)

    def scale(self, factors: Mapping[Any, float] | npt.ArrayLike) -> ClassMoments:
        """Multiply the weight of each class by a factor.

        Use this method to apply class weights. The result also equals the expected moments after
        over- or undersampling the classes by these factors.
        """
        factor = class_factors(self.labels, factors)
        if self.detail == "pooled" and not (factor == factor[0]).all():
            raise MomentsMismatchError.needs_detail("Weighting classes apart", "class", self.detail)
        scatter_factor = factor[0] if self.detail == "pooled" else factor
        positive = factor > 0  # a class of weight zero has no rows
        return replace(
            self,
            rows=np.where(positive, self.rows, 0),
            mean=np.where(positive[:, None], self.mean, 0.0),
            weight=self.weight * factor,
            weight2=self.weight2 * factor**2,
            scatter=scale_classes(scatter_factor, self.scatter),
            lost=scale_classes(scatter_factor, self.lost),
            **self._map_powers(lambda power: scale_classes(scatter_factor, power)),
        )

    def group(self, groups: Mapping[Any, Sequence[Any]]) -> ClassMoments:
        """Merge classes:

        `{"new": ["a", "b"]}` merges a and b. Classes in no group are unchanged.
        """
        return self._merged(*merge_labels(self.labels, groups))

    def classes(self, labels: Sequence[Any]) -> ClassMoments:
        """Return the moments of the given classes.

        With detail 'pooled', only classes without rows can be left out.
        """
        codes = np.sort(find_labels(self.labels, labels))
        if self.detail == "pooled" and self.rows[codes].sum() < self.rows.sum():
            raise MomentsMismatchError.needs_detail("Keeping some classes", "class", self.detail)
        arrays = self._each_class(lambda values: values[codes])
        return replace(self, labels=self.labels[codes], **arrays)

    def select(self, features: Sequence[str] | Sequence[int]) -> ClassMoments:
        """Return moments of the given features (names, indices or a mask), in that order."""
        columns = find_columns(self.features, features)
        square = (..., columns[:, None], columns[None, :])
        return replace(
            self,
            features=tuple(self.features[j] for j in columns),
            anchor=self.anchor.select(columns),
            mean=self.mean[:, columns],
            scatter=self.scatter[:, columns] if self.detail == "diagonal" else self.scatter[square],
            lost=self.lost[..., columns],
            **self._map_powers(lambda power: power[square]),
        )

    def has(self, detail: Detail) -> bool:
        """Whether moments of this `detail` can be computed from these moments."""
        if detail == "rows" or (detail == "diagonal" and self.detail == "pooled"):
            return False
        return DETAILS.index(detail) <= DETAILS.index(self.detail)

    def reduce(self, detail: Detail) -> ClassMoments:
        """Return the same moments in less detail."""
        if detail == self.detail:
            return self
        if not self.has(detail):
            raise MomentsMismatchError.needs_detail("This", detail, self.detail)
        scatter = self.scatter
        if detail == "diagonal":
            scatter = np.einsum("kii->ki", self.scatter).copy()
        elif detail == "pooled":
            scatter = self.scatter.sum(axis=0)
        lost = self.lost.sum(axis=0) if detail == "pooled" else self.lost
        return replace(self, detail=detail, scatter=scatter, lost=lost, third=None, fourth=None)

    @property
    def means(self) -> Floats:
        """(K, d) class means in data units."""
        return self.anchor.values(self.mean)

    @property
    def pooled(self) -> Floats:
        """Within-class scatter of the offsets: (d, d), or (d,) with detail 'diagonal'."""
        return self.scatter if self.detail == "pooled" else self.scatter.sum(axis=0)

    @property
    def centre(self) -> Floats:
        """(d,) mean of all rows, as an offset."""
        share = self.weight / self.weight.sum() if self.weight.any() else self.weight
        return np.asarray(share @ self.mean)

    @property
    def digits(self) -> float:
        """Number of correct digits of the least accurate variance after removals."""
        return float(self.digits_left().min(initial=16.0))

    def within(self) -> Floats:
        """Return the within-class scatter `S_w`, (d, d), in data units.

        The within-class scatter is the sum of the class scatters.
        """
        self._need_products("The within-class scatter")
        return self._in_data_units(self.pooled)

    def between(self) -> Floats:
        """Return the between-class scatter `S_b`, (d, d), in data units.

        The between-class scatter is the sum over classes of `weight_k (mean_k - mean)(mean_k -
        mean)'`.
        """
        return self._in_data_units(self.spread_of_means())

    def total(self) -> Floats:
        """Return the total scatter `S_t = S_w + S_b`, (d, d), in data units.

        The total scatter is the scatter of all rows about their common mean.
        """
        self._need_products("The total scatter")
        return self._in_data_units(self.pooled + self.spread_of_means())

    def spread_of_means(self) -> Floats:
        """Return the between-class scatter `S_b` of the offsets `(x - origin) / unit`."""
        root = np.sqrt(self.weight)[:, None] * (self.mean - self.centre)
        return np.asarray(root.T @ root)

    def overflowed(self) -> npt.NDArray[np.bool_]:
        """Return a boolean array (d,): True for columns whose sum of squares is not finite."""
        squares = np.atleast_2d(self.diagonal(self.scatter))
        return np.asarray(~np.isfinite(squares.max(axis=0, initial=0.0)))

    def badly_scaled(self) -> npt.NDArray[np.bool_]:
        """Return a boolean array (d,): True for columns whose sums overflow or underflow.

        A column with zero variance is well scaled, unless its mean is so small that squares of its
        values would underflow.
        """
        squares = self.diagonal(self.scatter)
        if squares.size and squares.min() >= _FAINT and squares.max() <= _HUGE:
            return np.zeros(len(self.features), dtype=np.bool_)
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.atleast_2d(squares).sum(axis=0)
            mean = np.abs(self.mean).max(axis=0, initial=0.0)
        tiny = (mean < _SMALL) & (np.abs(self.anchor.origin) < _SMALL * self.anchor.unit)
        vanished = (total < _FAINT) & tiny & ((mean > 0) | (total > 0))
        return np.asarray(~(total <= _HUGE) | vanished)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({int(self.rows.sum())} rows, {len(self.labels)} classes, "
            f"{len(self.features)} features, detail='{self.detail}')"
        )

    def at(self, anchor: Anchor) -> ClassMoments:
        """Convert the moments to another origin and other units."""
        if anchor.same_as(self.anchor):
            return self
        any_unit = self.zero_columns() | (not self.rows.any())
        ratio = np.where(any_unit, 1.0, self.anchor.unit / anchor.unit)
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
        """Return the same moments over a larger set of classes; the added classes have no rows."""
        if np.array_equal(labels, self.labels):
            return self
        codes = np.searchsorted(labels, self.labels)

        def widen(values: Any) -> Any:
            wider = np.zeros((len(labels), *values.shape[1:]), dtype=values.dtype)
            wider[codes] = values
            return wider

        return replace(self, labels=labels, **self._each_class(widen))

    def _map_powers(self, change: Callable[[Floats], Floats]) -> dict[str, Any]:
        """Apply `change` to the third and fourth moments, if they are stored."""
        if self.third is None or self.fourth is None:
            return {}
        return {"third": change(self.third), "fourth": change(self.fourth)}

    def _each_class(self, change: Callable[[Any], Any]) -> dict[str, Any]:
        """Apply `change` to every array that has an axis of classes."""
        names = ["rows", "weight", "weight2", "mean"]
        if self.detail != "pooled":
            names += ["scatter", "lost"]
        if self.detail == "fourth":
            names += ["third", "fourth"]
        return {name: change(getattr(self, name)) for name in names}

    def drift(self, weight: Floats, step: Floats) -> Floats:
        """Return `weight * step step'` in the shape of the scatter.

        With detail 'pooled' the result is the sum over the classes, otherwise one array for each
        class.
        """
        if self.detail == "diagonal":
            return weight[:, None] * step**2
        if self.detail == "pooled":
            root = np.sqrt(weight)[:, None] * step
            return np.asarray(root.T @ root)
        return (weight[:, None] * step)[:, :, None] * step[:, None, :]

    def diagonal(self, scatter: Floats) -> Floats:
        """Return the diagonal of `scatter`, which may have the shape of any `detail`."""
        if self.detail == "diagonal":
            return scatter
        return scatter.diagonal(axis1=-2, axis2=-1)

    def digits_left(self) -> Floats:
        """Return the number of correct digits of each variance after removals."""
        diagonal = self.diagonal(self.scatter)
        known = self.lost > 0
        if self.detail != "pooled":
            known = known & (self.rows > 1)[:, None]
        ratio = np.divide(diagonal, self.lost, out=np.full(self.lost.shape, 1e16), where=known)
        return np.asarray(np.log10(np.maximum(ratio, 1e-16)))

    def _merged(self, labels: Labels, code: Places) -> ClassMoments:
        membership = np.zeros((len(labels), len(self.labels)))
        membership[code, np.arange(len(self.labels))] = 1.0
        weight = membership @ self.weight
        share = self.weight / np.where(weight > 0, weight, 1.0)[code]
        mean = membership @ (share[:, None] * self.mean)
        step = self.mean - mean[code]
        between = self.drift(self.weight, step)
        scatter, lost = self.scatter + between, self.lost
        third, fourth = self.third, self.fourth
        if self.detail != "pooled":
            scatter, lost = np.tensordot(membership, scatter, axes=1), membership @ lost
        if self.detail == "fourth":
            third = np.tensordot(membership, shift_third(self, step), axes=1)
            fourth = np.tensordot(membership, shift_fourth(self, step), axes=1)
        return replace(
            self,
            labels=labels,
            rows=(membership @ self.rows).astype(np.int64),
            weight=weight,
            weight2=membership @ self.weight2,
            mean=mean,
            scatter=scatter,
            lost=lost,
            third=third,
            fourth=fourth,
        )

    def zero_columns(self) -> npt.NDArray[np.bool_]:
        """Return a boolean array (d,): True for columns that are zero in every row."""
        varies = np.atleast_2d(self.diagonal(self.scatter)).any(axis=0)
        return np.asarray((self.anchor.origin == 0) & ~self.mean.any(axis=0) & ~varies)

    def _need_products(self, what: str) -> None:
        if self.detail == "diagonal":
            raise MomentsMismatchError.needs_detail(what, "pooled", self.detail)

    def _in_data_units(self, scatter: Floats) -> Floats:
        unit = self.anchor.unit
        return scatter if self.anchor.plain else scatter * unit[:, None] * unit
