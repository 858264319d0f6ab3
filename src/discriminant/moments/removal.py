"""Taking rows out of class moments again, and refusing where too few digits would be left.

With n the weight of ours, w that of theirs and m = n - w what remains of a class,

    mean'    = mean + w/m (mean - their mean)
    scatter' = scatter - their scatter - w n/m (mean - their mean)(mean - their mean)'

Both are differences, so digits can be lost: `lost` bounds what each variance has lost so far. What
remains must be possible, too: a scatter that is not positive means that their rows were not among
ours.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numpy.linalg import eigvalsh

from discriminant.errors import MomentsMismatchError, PrecisionLostError
from discriminant.moments.fourth import shift_fourth, shift_third
from discriminant.table.schema import Floats

if TYPE_CHECKING:
    from discriminant.moments.class_moments import ClassMoments

DIGITS = 6.0  # fewer than this and a removal is refused
_EPS = float(np.finfo(np.float64).eps)
_DUST = 1e-9  # of a weight: less than this is rounding


def removed(ours: ClassMoments, theirs: ClassMoments, *, digits: float) -> ClassMoments:
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
    result = _still(_without_dust(result), ours, theirs)
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
            raise MomentsMismatchError.not_among(label)
    return moments


def _without_dust(moments: ClassMoments) -> ClassMoments:
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
        scatter=times(keep, moments.scatter),
        lost=times(keep, moments.lost),
        third=None if moments.third is None else times(keep, moments.third),
        fourth=None if moments.fourth is None else times(keep, moments.fourth),
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


def times(factor: Any, values: Floats) -> Floats:
    """Each class's block by its factor."""
    factor = np.asarray(factor)
    return np.asarray(values * factor.reshape(factor.shape + (1,) * (values.ndim - factor.ndim)))
