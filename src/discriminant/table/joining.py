"""What the columns of two tables become, so that the moments of both add.

Tables of one kind from two sites may differ in what was met there:

    a level of one that the other never met    its indicator is 0 in every row there
    a column with one value in every row       set aside there; its features are known all the same
    nothing missing                            the indicator of missing is 0 in every row there
    another order of categories                levels are sorted, as pandas.concat drops the order

So the union of both is known exactly, with the constant that stands in each new feature. What
differs otherwise (kinds, reference levels, orders) makes features that mean different things.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from discriminant.errors import SitesError
from discriminant.table.encoding import Column, Encoding, sorted_levels

_OUT = ("identifier", "dropped", "target", "weight")


@dataclass(frozen=True, slots=True)
class JoinedEncoding:
    """The union of two encodings, and what features that one lacked are in all of its rows."""

    encoding: Encoding
    ours: Mapping[str, float]
    theirs: Mapping[str, float]


def joined_encodings(ours: Encoding, theirs: Encoding) -> JoinedEncoding:
    """The union; columns as the first has them in order."""
    for what in ("target", "missing"):
        if getattr(ours, what) != getattr(theirs, what):
            raise SitesError.of_option(what, getattr(ours, what), getattr(theirs, what))
    left, right = _by_name(ours), _by_name(theirs)
    for name in (*left, *right):
        if name not in left or name not in right:
            raise SitesError.of_absent(name, first=name in left)
    columns = [
        _joined(column, right[column.name]) if column.name in right else column
        for column in ours.columns
    ]
    decimal = ours.decimal if ours.decimal == theirs.decimal else "."
    whole = replace(ours, columns=tuple(columns), decimal=decimal)
    return JoinedEncoding(whole, _constants(ours, whole), _constants(theirs, whole))


def _by_name(encoding: Encoding) -> dict[str, Column]:
    return {column.name: column for column in encoding.columns if column.kind not in _OUT}


def _joined(one: Column, other: Column) -> Column:
    """One column of both."""
    one = replace(one, order=one.order if one.order == other.order else ())
    other = replace(other, order=one.order)
    if one.kind == other.kind == "constant":
        if one.levels == other.levels and one.fill == other.fill:
            return _marked(one, other)
        one, other = _varied(one, other)
    if one.kind == "constant":
        one, other = other, one
    if one.kind != other.kind and other.kind != "constant":
        raise SitesError.of_kinds(one.name, one.kind, other.kind)
    if other.kind == "constant" and (one.kind in ("category", "ordered")) != bool(other.levels):
        raise SitesError.of_kinds(one.name, one.kind, "a constant of another kind")
    if one.kind == "ordered" and not set(other.levels) <= set(one.levels):
        raise SitesError.of_order(one.name, one.levels, other.levels)
    if one.kind != "category":
        return _marked(one, other)
    if other.kind == "category" and one.reference != other.reference:
        raise SitesError.of_reference(one.name, one.reference, other.reference)
    levels = sorted_levels({*one.levels, *other.levels}, one.order)
    found = replace(one, levels=levels)
    names = tuple(f"{one.name}={level}" for level in found.kept)
    more = one.features[-1:] if one.indicator else ()
    return _marked(replace(found, features=names + more), other)


def _varied(one: Column, other: Column) -> tuple[Column, Column]:
    """Two constants that differ are a column after all."""
    if one.levels and other.levels:
        return replace(one, kind="category"), other
    if one.levels or other.levels:
        raise SitesError.of_kinds(one.name, "texts", "numbers")
    return replace(one, kind="number", fill=(), features=(one.name,), note=""), other


def _marked(one: Column, other: Column) -> Column:
    """With the indicator of missing if either has it, and the missing cells of both."""
    found = replace(one, missing=one.missing + other.missing)
    if other.indicator and not one.indicator:
        found = replace(found, indicator=True, features=(*one.features, other.features[-1]))
    return found


def _constants(old: Encoding, whole: Encoding) -> dict[str, float]:
    """What stands in the features that a table did not have."""
    before = {column.name: column for column in old.columns}
    known = set(old.features)
    return {
        feature: _constant(before[column.name], column, feature)
        for column in whole.columns
        for feature in column.features
        if feature not in known
    }


def _constant(before: Column, column: Column, feature: str) -> float:
    if column.indicator and feature == column.features[-1]:
        return 0.0
    if before.kind != "constant":
        return 0.0
    if column.kind == "category":
        return float(feature == f"{column.name}={before.levels[0]}")
    if column.kind == "ordered":
        return column.levels.index(before.levels[0]) / max(len(column.levels) - 1, 1)
    return before.fill[0]
