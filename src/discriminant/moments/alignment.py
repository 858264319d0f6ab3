"""Two class moments brought to the same columns, classes and origin, so that they can be added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discriminant.errors import MomentsMismatchError
from discriminant.table.labels import joined, same_labels

if TYPE_CHECKING:
    from discriminant.moments.class_moments import ClassMoments


def aligned(ours: ClassMoments, theirs: ClassMoments) -> tuple[ClassMoments, ClassMoments]:
    """Both over the same classes, about the same origin."""
    if ours.features != theirs.features:
        if sorted(ours.features) != sorted(theirs.features):
            raise MomentsMismatchError.of_features(ours.features, theirs.features)
        theirs = theirs.select(ours.features)
    if ours.detail != theirs.detail:
        raise MomentsMismatchError.of_detail(ours.detail, theirs.detail)
    if not same_labels(ours.labels, theirs.labels):
        labels = joined(ours.labels, theirs.labels)
        ours, theirs = ours.over(labels), theirs.over(labels)
    if ours.anchor.same_as(theirs.anchor):
        return ours, theirs
    if not ours.rows.any():
        return ours.at(theirs.anchor), theirs
    if not theirs.rows.any():
        return ours, theirs.at(ours.anchor)
    common = ours.anchor.with_unit_for(
        theirs.anchor, zero=ours.zero_columns(), zero_too=theirs.zero_columns()
    )
    return ours.at(common), theirs.at(common)
