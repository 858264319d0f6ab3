"""Where the features of a row come from: columns of a table, by name.

    number, boolean, date   the cell as a number; a date is days since 1970-01-01
    text                    a number for each category: 1 and 0 for an indicator, its rank for an
                            ordered category
    missing                 1 where the cell is missing, else 0

A missing cell or an unknown category has a number of its own, or none: then nothing is predicted
for the row. This is `table.encoding`, written out cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from discriminant.errors import ExportError
from discriminant.models.expressions import Expression
from discriminant.table.encoding import Column, Encoding
from discriminant.table.files.csv_dialect import MISSING_TEXTS
from discriminant.table.labels import other_spellings
from discriminant.table.text_values import number_signs

Kind = Literal["number", "boolean", "date", "text", "missing"]


@dataclass(frozen=True, slots=True)
class FeatureSource:
    """What one number of a row is made from."""

    feature: str
    column: str
    kind: Kind = "number"
    fill: float | None = None  # of a missing cell
    values: tuple[tuple[str, float], ...] = ()  # of each category, in all its spellings
    other: float | None = None  # of a category that was not seen
    signs: tuple[str, str, str] | None = None  # group, decimal, unit of a number that may be text
    missing: tuple[str, ...] = ()  # texts that mean missing, of such a number

    def groups(self) -> list[tuple[float, list[str]]]:
        """Categories by their number; those that are as unseen ones are left out."""
        levels_by_number: dict[float, list[str]] = {}
        for level, value in self.values:
            if value != self.other:
                levels_by_number.setdefault(value, []).append(level)
        return list(levels_by_number.items())


@dataclass(frozen=True, slots=True)
class FeatureSources:
    """What all features of a row are made from."""

    features: tuple[FeatureSource, ...]  # d
    named: bool  # whether columns have names of their own
    checks: tuple[FeatureSource, ...] = ()  # that must be known, though no feature
    unseen: tuple[FeatureSource, ...] = ()  # 1 where a row has a category that is to be rejected

    def as_step(self) -> Expression:
        """The features, and after them what says that a row is to be rejected."""
        every = (*self.features, *self.unseen)
        names = tuple(source.feature for source in every)
        return Expression("features", (), len(every), name="x", components=names)


def number_columns(names: Sequence[str], *, named: bool) -> FeatureSources:
    """Columns of numbers, none of them missing."""
    return FeatureSources(tuple(FeatureSource(name, name) for name in names), named)


def encoding_sources(encoding: Encoding) -> FeatureSources:
    """What an encoding does, cell by cell."""
    if encoding.missing == "marginal":
        raise ExportError.of_part(
            "missing='marginal'",
            "a row with missing cells has a covariance of its own",
            "Fit with missing='mean' or 'indicator'.",
        )
    features = [one for column in encoding.used for one in _of_column(column, encoding)]
    texts = [column for column in encoding.used if column.kind in ("ordered", "category")]
    filled = 0.0 if encoding.missing in ("mean", "indicator") else None
    checks, unseen = [], []
    for column in texts:
        levels = tuple((text, 0.0) for texts in _spelled(column).values() for text in texts)
        if encoding.unseen == "error":
            checks.append(
                FeatureSource(f"known {column.name}", column.name, "text", filled, levels)
            )
        if encoding.unseen == "reject":
            name = f"unseen {column.name}"
            unseen.append(FeatureSource(name, column.name, "text", 0.0, levels, 1.0))
    return FeatureSources(tuple(features), encoding.named, tuple(checks), tuple(unseen))


def _of_column(column: Column, encoding: Encoding) -> Iterator[FeatureSource]:
    filled = encoding.missing in ("mean", "indicator")
    fill: tuple[float | None, ...] = column.fill if filled else (None,) * len(column.features)
    signs = _signs(column, encoding)
    absent = MISSING_TEXTS if encoding.missing_texts is None else encoding.missing_texts
    gone = () if signs is None else absent
    if column.kind == "category":
        spelled = _spelled(column)
        for name, level, value in zip(column.features, column.indicator_levels, fill, strict=False):
            texts = tuple((text, 1.0) for text in spelled[level])
            yield FeatureSource(name, column.name, "text", value, texts, 0.0)
    elif column.kind == "ordered":
        top = max(len(column.levels) - 1, 1)
        values = tuple(
            (text, place / top)
            for place, texts in enumerate(_spelled(column).values())
            for text in texts
        )
        other = column.fill[0] if column.fill else 0.0
        yield FeatureSource(column.features[0], column.name, "text", fill[0], values, other)
    else:
        kind: Kind = "number"
        if column.kind in ("boolean", "date"):
            kind = "boolean" if column.kind == "boolean" else "date"
        yield FeatureSource(
            column.features[0], column.name, kind, fill[0], signs=signs, missing=gone
        )
    if column.indicator:
        yield FeatureSource(column.features[-1], column.name, "missing", signs=signs, missing=gone)


def _signs(column: Column, encoding: Encoding) -> tuple[str, str, str] | None:
    """How a number is written where a database has the text of the file; None: as SQL writes it."""
    if column.kind != "number":
        return None
    if column.written:
        return number_signs(column.written)
    return ("", ",", "") if encoding.decimal == "," else None


def _spelled(column: Column) -> dict[str, list[str]]:
    """Every level of a column, in every way that it may be written."""
    spellings = {level: [level] for level in column.levels}
    for text, level in other_spellings(column.levels).items():
        spellings[level].append(text)
    return spellings
