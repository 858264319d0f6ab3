"""Moments of a table, with what became of its columns.

They are class moments, and add and subtract as such; but they know that a feature is the indicator
of a level, so that moments of sites that met different levels add (`table.joining`): an indicator
of a level that was never met is 0 in every row, which changes nothing but the width. And a model
that is made from them takes tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import DIGITS, ClassMoments
from discriminant.table.blocks import Floats
from discriminant.table.encoding import Column, Encoding, merge_encodings


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableMoments(ClassMoments):
    """Moments of K classes in d features, and the columns that these are made of."""

    encoding: Encoding = Encoding(())  # noqa: RUF009 -- frozen

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return why these fields cannot form the moments of a table, or None."""
        encoded, features = parts["encoding"].features, parts["features"]
        if encoded != features:
            return f"its {len(features)} features are not the {len(encoded)} of its encoding"
        return None

    @classmethod
    def from_moments(cls, moments: ClassMoments, encoding: Encoding) -> TableMoments:
        """Moments of the features of an encoding."""
        return cls(**_fields(moments), encoding=encoding)

    def __add__(self, other: ClassMoments) -> ClassMoments:
        """Moments of the rows of both, over the levels of both."""
        if not isinstance(other, TableMoments):
            return ClassMoments.__add__(self, other)
        ours, theirs = align_encodings(self, other)
        found = ClassMoments.__add__(ours, theirs)
        return TableMoments.from_moments(found, _refilled(ours.encoding, found))

    def remove(self, other: ClassMoments, *, digits: float = DIGITS) -> ClassMoments:
        """Moments without the rows of `other`, which may lack some levels."""
        ours, theirs = (
            align_encodings(self, other) if isinstance(other, TableMoments) else (self, other)
        )
        return ClassMoments.remove(ours, theirs, digits=digits)

    def select(self, features: Sequence[str] | Sequence[int]) -> ClassMoments:
        """Moments of some features, which are no longer all of those of the columns."""
        return ClassMoments.select(without_encoding(self), features)

    def with_reference(self) -> TableMoments:
        """Without the indicator of the most frequent level, where all levels have one.

        So that indicators do not sum to one, and models have one answer.
        """
        share = dict(zip(self.features, self.anchor.values(self.centre).tolist(), strict=True))
        columns = tuple(_referred(column, share) for column in self.encoding.columns)
        encoding = replace(self.encoding, columns=columns)
        return TableMoments.from_moments(self.select(encoding.features), encoding)


def without_encoding(moments: ClassMoments) -> ClassMoments:
    """Moments that know nothing of columns."""
    return ClassMoments(**_fields(moments))


def align_encodings(ours: TableMoments, theirs: TableMoments) -> tuple[TableMoments, TableMoments]:
    """Both over the same features."""
    both = merge_encodings(ours.encoding, theirs.encoding)
    names = both.encoding.features
    found = [
        TableMoments.from_moments(
            _widened(without_encoding(one), constants).select(names), both.encoding
        )
        for one, constants in ((ours, both.ours), (theirs, both.theirs))
    ]
    return found[0], found[1]


def _fields(moments: ClassMoments) -> dict[str, Any]:
    return {field.name: getattr(moments, field.name) for field in fields(ClassMoments)}


def _widened(moments: ClassMoments, constants: Mapping[str, float]) -> ClassMoments:
    """With features that are one number in all rows: they lie at their origin and do not vary."""
    if not constants:
        return moments
    more, anchor = len(constants), moments.anchor
    origin = np.concatenate([anchor.origin, list(constants.values())])
    squares = 1 if moments.detail == "diagonal" else 2
    return replace(
        moments,
        features=(*moments.features, *constants),
        anchor=Anchor(origin, np.concatenate([anchor.unit, np.ones(more)])),
        mean=_padded(moments.mean, more, 1),
        scatter=_padded(moments.scatter, more, squares),
        lost=_padded(moments.lost, more, 1),
        third=None if moments.third is None else _padded(moments.third, more, 2),
        fourth=None if moments.fourth is None else _padded(moments.fourth, more, 2),
    )


def _padded(values: Floats, more: int, axes: int) -> Floats:
    """With zeros after the end of the last axes."""
    before = values.ndim - axes
    return np.pad(values, [(0, 0)] * before + [(0, more)] * axes)


def _refilled(encoding: Encoding, moments: ClassMoments) -> Encoding:
    """With the means of all rows for what is missing."""
    centre = dict(
        zip(moments.features, moments.anchor.values(moments.centre).tolist(), strict=True)
    )
    columns = tuple(
        replace(column, fill=tuple(centre[name] for name in _valued(column)))
        if column.features and column.fill
        else column
        for column in encoding.columns
    )
    return replace(encoding, columns=columns)


def _valued(column: Column) -> tuple[str, ...]:
    """Its features but for the indicator of missing."""
    return column.features[:-1] if column.indicator else column.features


def _referred(column: Column, share: Mapping[str, float]) -> Column:
    if column.kind != "category" or column.reference is not None:
        return column
    named = dict(zip(column.indicator_levels, _valued(column), strict=True))
    reference = max(column.levels, key=lambda level: share[named[level]])
    fill = dict(zip(column.indicator_levels, column.fill, strict=False))
    found = replace(column, reference=reference)
    return replace(
        found,
        features=tuple(name for name in column.features if name != named[reference]),
        fill=tuple(fill[level] for level in found.indicator_levels) if fill else (),
    )
