"""Class moments of a table together with the encoding of its columns.

`TableMoments` can be added and subtracted like class moments. `TableMoments` record which feature
is the indicator of which category. Therefore moments of tables with different categories can be
added (`merge_encodings`): if a table lacks a category, the indicator of this category is 0 in all
of its rows. A model fitted to such moments can predict from tables with the original columns.
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
    """Moments of K classes in d features, and the encoding from columns to features."""

    encoding: Encoding = Encoding(())  # noqa: RUF009 -- frozen

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of moments are invalid, or None if they are valid."""
        encoded, features = parts["encoding"].features, parts["features"]
        if encoded != features:
            return f"its {len(features)} features are not the {len(encoded)} of its encoding"
        return None

    @classmethod
    def from_moments(cls, moments: ClassMoments, encoding: Encoding) -> TableMoments:
        """Combine class moments with the encoding of their features."""
        return cls(**_fields(moments), encoding=encoding)

    def __add__(self, other: ClassMoments) -> ClassMoments:
        """Return the moments of the rows of both operands, with the union of their categories."""
        if not isinstance(other, TableMoments):
            return ClassMoments.__add__(self, other)
        ours, theirs = align_encodings(self, other)
        total = ClassMoments.__add__(ours, theirs)
        return TableMoments.from_moments(total, _fill_with_means(ours.encoding, total))

    def remove(self, other: ClassMoments, *, digits: float = DIGITS) -> ClassMoments:
        """Remove the rows of `other`, whose encoding may lack some of the categories."""
        if not isinstance(other, TableMoments):
            return ClassMoments.remove(self, other, digits=digits)
        ours, theirs = align_encodings(self, other)
        return ClassMoments.remove(ours, theirs, digits=digits)

    def select(self, features: Sequence[str] | Sequence[int]) -> ClassMoments:
        """Return the moments of the given features, without the encoding."""
        return ClassMoments.select(without_encoding(self), features)

    def with_reference(self) -> TableMoments:
        """Drop the indicator of the most frequent category of each column.

        Columns that already have a reference category are not changed.

        The indicators of a column then no longer sum to one, and coefficients are unique.
        """
        if self.encoding.formula is not None:
            return self
        share = _feature_means(self)
        columns = tuple(_with_reference(column, share) for column in self.encoding.columns)
        encoding = replace(self.encoding, columns=columns)
        return TableMoments.from_moments(self.select(encoding.features), encoding)


def without_encoding(moments: ClassMoments) -> ClassMoments:
    """Return the moments as plain class moments, without the encoding."""
    return ClassMoments(**_fields(moments))


def align_encodings(ours: TableMoments, theirs: TableMoments) -> tuple[TableMoments, TableMoments]:
    """Convert two moments to the features of their common encoding."""
    merged = merge_encodings(ours.encoding, theirs.encoding)

    def align(moments: TableMoments, constants: Mapping[str, float]) -> TableMoments:
        wider = _add_constants(without_encoding(moments), constants)
        return TableMoments.from_moments(wider.select(merged.encoding.features), merged.encoding)

    return align(ours, merged.ours), align(theirs, merged.theirs)


def _fields(moments: ClassMoments) -> dict[str, Any]:
    return {field.name: getattr(moments, field.name) for field in fields(ClassMoments)}


def _add_constants(moments: ClassMoments, constants: Mapping[str, float]) -> ClassMoments:
    """Append features that are constant in all rows; each equals its origin in every row."""
    if not constants:
        return moments
    d, anchor = len(constants), moments.anchor
    origin = np.concatenate([anchor.origin, list(constants.values())])

    def pad(values: Floats, axes: int) -> Floats:
        return np.pad(values, [(0, 0)] * (values.ndim - axes) + [(0, d)] * axes)

    return replace(
        moments,
        features=(*moments.features, *constants),
        anchor=Anchor(origin, np.concatenate([anchor.unit, np.ones(d)])),
        mean=pad(moments.mean, 1),
        scatter=pad(moments.scatter, 1 if moments.detail == "diagonal" else 2),
        lost=pad(moments.lost, 1),
        third=None if moments.third is None else pad(moments.third, 2),
        fourth=None if moments.fourth is None else pad(moments.fourth, 2),
    )


def _feature_means(moments: ClassMoments) -> dict[str, float]:
    means = moments.anchor.values(moments.centre).tolist()
    return dict(zip(moments.features, means, strict=True))


def _fill_with_means(encoding: Encoding, moments: ClassMoments) -> Encoding:
    """Return an encoding that fills missing cells with the means of these moments."""
    mean = _feature_means(moments)
    columns = tuple(
        replace(column, fill=tuple(mean[name] for name in _value_features(column)))
        if column.features and column.fill
        else column
        for column in encoding.columns
    )
    return replace(encoding, columns=columns)


def _value_features(column: Column) -> tuple[str, ...]:
    """Return the features of a column without the indicator of missing cells."""
    return column.features[:-1] if column.indicator else column.features


def _with_reference(column: Column, share: Mapping[str, float]) -> Column:
    if column.kind != "category" or column.reference is not None:
        return column
    feature_of = dict(zip(column.indicator_levels, _value_features(column), strict=True))
    reference = max(column.levels, key=lambda level: share[feature_of[level]])
    fill = dict(zip(column.indicator_levels, column.fill, strict=False))
    levels = replace(column, reference=reference).indicator_levels
    return replace(
        column,
        reference=reference,
        features=tuple(name for name in column.features if name != feature_of[reference]),
        fill=tuple(fill[level] for level in levels) if fill else (),
    )
