"""Feature columns of an export: how each feature is computed from a named column of a table.

    number, boolean, date   the cell as a number; a date is days since 1970-01-01
    text                    a number for each category: 1 and 0 for an indicator, its rank for an
                            ordered category
    missing                 1 if the cell is missing, else 0

The encoding stores a number that replaces a missing cell, and a number for an unknown category. If
the encoding stores no number for such a cell, nothing is predicted for the row. The features are
the same as in `table.encoding`, but are computed cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from discriminant.errors import ExportError
from discriminant.models.expressions import Expression
from discriminant.table.encoding import Column, Encoding
from discriminant.table.files.csv_dialect import missing_number_texts
from discriminant.table.labels import other_spellings
from discriminant.table.text_values import number_signs

Kind = Literal["number", "boolean", "date", "text", "missing"]


@dataclass(frozen=True, slots=True)
class FeatureSource:
    """Source of one feature: a column, and the number for each of its cells."""

    feature: str
    column: str
    kind: Kind = "number"
    fill: float | None = None  # number that replaces a missing cell
    # number of each category; a category may have several spellings
    values: tuple[tuple[str, float], ...] = ()
    other: float | None = None  # number that replaces a category not seen during fitting
    # group sign, decimal sign and unit sign of numbers that may be stored as text
    signs: tuple[str, str, str] | None = None
    missing: tuple[str, ...] = ()  # texts that mean a missing number or date
    cells: Kind = "number"  # kind of the cells, if `kind` is "missing"
    written: str = ""  # format of dates that may be stored as text: see `table.text_values`
    encoded: bool = False  # whether the model reads numbers that are stored as text
    more_missing: bool = False  # whether the user named texts that mean a missing cell

    def groups(self) -> list[tuple[float, list[str]]]:
        """Return the categories grouped by their number, except those whose number is `other`."""
        levels_by_number: dict[float, list[str]] = {}
        for level, value in self.values:
            if value != self.other:
                levels_by_number.setdefault(value, []).append(level)
        return list(levels_by_number.items())


@dataclass(frozen=True, slots=True)
class FeatureSources:
    """Sources of all features of a row."""

    features: tuple[FeatureSource, ...]  # d sources
    named: bool  # whether the columns have names
    # columns whose categories must be known, although they are not features
    checks: tuple[FeatureSource, ...] = ()
    # indicators: 1 where a row has an unseen category and is therefore rejected
    unseen: tuple[FeatureSource, ...] = ()

    def as_expression(self) -> Expression:
        """Return an expression: the features, and the indicators of categories to be rejected."""
        names = tuple(source.feature for source in (*self.features, *self.unseen))
        return Expression("features", (), len(names), name="x", components=names)


def number_columns(names: Sequence[str], *, named: bool) -> FeatureSources:
    """Return the sources of numeric columns without missing cells."""
    return FeatureSources(tuple(FeatureSource(name, name) for name in names), named)


def encoding_sources(encoding: Encoding) -> FeatureSources:
    """Return the sources of the features of an encoding."""
    if encoding.formula is not None:
        raise ExportError.of_part(
            "A model with a formula",
            "its features are functions of the columns",
            "Add these features to the table as columns, fit the model to them, and export that.",
        )
    if encoding.missing in ("marginal", "em"):
        raise ExportError.of_part(
            f"missing='{encoding.missing}'",
            "a row with missing cells has a covariance of its own",
            "Fit with missing='mean' or 'indicator'.",
        )
    filled = encoding.missing in ("mean", "indicator")
    features = [s for column in encoding.used for s in _column_sources(column, encoding, filled)]
    checks, unseen = [], []
    for column in encoding.used:
        if column.kind not in ("ordered", "category"):
            continue
        name = column.name
        levels = tuple((text, 0.0) for texts in _spellings(column).values() for text in texts)
        if encoding.unseen == "error":
            fill = 0.0 if filled else None
            checks.append(FeatureSource(f"known {name}", name, "text", fill, levels))
        if encoding.unseen == "reject":
            unseen.append(FeatureSource(f"unseen {name}", name, "text", 0.0, levels, 1.0))
    return FeatureSources(tuple(features), encoding.named, tuple(checks), tuple(unseen))


def _column_sources(column: Column, encoding: Encoding, filled: bool) -> Iterator[FeatureSource]:
    fill: tuple[float | None, ...] = column.fill if filled else (None,) * len(column.features)
    cells = _cells(column, encoding)
    if column.kind == "category":
        spellings = _spellings(column)
        for name, level, value in zip(column.features, column.indicator_levels, fill, strict=False):
            texts = tuple((text, 1.0) for text in spellings[level])
            yield FeatureSource(name, column.name, "text", value, texts, 0.0)
    elif column.kind == "ordered":
        top = max(len(column.levels) - 1, 1)
        values = tuple(
            (text, place / top)
            for place, texts in enumerate(_spellings(column).values())
            for text in texts
        )
        other = column.fill[0] if column.fill else 0.0
        yield FeatureSource(column.features[0], column.name, "text", fill[0], values, other)
    else:
        yield replace(cells, kind=cells.cells, fill=fill[0])
    if column.indicator:
        yield replace(cells, feature=column.features[-1], kind="missing")


def _cells(column: Column, encoding: Encoding) -> FeatureSource:
    """Return a source that states in which forms the cells of a column may be stored."""
    kinds: dict[str, Kind] = {"number": "number", "boolean": "boolean", "date": "date"}
    kind = kinds.get(column.kind, "text")
    if kind == "text":
        return FeatureSource(column.features[0], column.name, kind, cells=kind)
    return FeatureSource(
        column.features[0],
        column.name,
        kind,
        signs=_signs(column, encoding),
        missing=missing_number_texts(encoding.missing_texts),
        cells=kind,
        written=column.written if kind == "date" else "",
        encoded=True,
        more_missing=any(encoding.missing_texts or ()),
    )


def _signs(column: Column, encoding: Encoding) -> tuple[str, str, str] | None:
    """Return the grouping sign, the decimal sign and the unit of numbers stored as text.

    Return None if the numbers are written as in SQL.
    """
    if column.kind != "number":
        return None
    if column.written:
        return number_signs(column.written)
    return ("", ",", "") if encoding.decimal == "," else None


def _spellings(column: Column) -> dict[str, list[str]]:
    """Return all spellings of each level of a column."""
    spellings = {level: [level] for level in column.levels}
    for text, level in other_spellings(column.levels).items():
        spellings[level].append(text)
    return spellings
