"""Section of the report on columns: the distribution of each column in every class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discriminant.moments.class_moments import ClassMoments
from discriminant.report.fact_types import CardFacts, ColumnFacts
from discriminant.report.sections.row_sample import (
    RowSample,
    beyond_edges,
    bin_edges,
    bin_numbers,
    bin_values,
)
from discriminant.report.sections.space import as_characters
from discriminant.table.blocks import Floats

_CARDS = 30  # largest number of columns with a card
_BINS = 12
_LEVELS = 12  # largest number of levels of a category


def columns_section(
    sample: RowSample,
    moments: ClassMoments | None,
    columns: Sequence[ColumnFacts],
    *,
    encoded: Sequence[Any] = (),
    points: RowSample | None = None,
) -> list[CardFacts]:
    """Return a card for each column that has features, the most informative columns first.

    Parameters
    ----------
    sample, moments
        Rows for the distributions, and moments of all rows (or None).
    columns
        Facts of the columns, as in the section on the data.
    encoded
        Columns of the encoding, with `features`, `levels` and `reference` (default: every feature
        is a column).
    points
        Rows of the discriminant space, whose bins are listed too.
    """
    shares = {} if moments is None else _explained_shares(moments)
    by_name = {column.name: column for column in encoded}
    cards = []
    for column in columns:
        one = by_name.get(column["name"])
        features = [column["name"]] if one is None else list(one.features)
        places = [sample.names.index(name) for name in features if name in sample.names]
        if not column["features"] or len(places) != len(features) or not places:
            continue
        card = _card(column, sample, places, one, points)
        card["explained"] = max((shares.get(name, 0.0) for name in features), default=None)
        cards.append(card)
    return sorted(cards, key=lambda card: -(card["explained"] or 0.0))[:_CARDS]


def _explained_shares(moments: ClassMoments) -> dict[str, float]:
    """Return the share of the variation of each feature that is between the classes."""
    within = moments.pooled if moments.pooled.ndim == 1 else np.diagonal(moments.pooled)
    total = within + moments.weight @ (moments.mean - moments.centre) ** 2
    share = 1.0 - np.divide(within, total, out=np.ones_like(total), where=total > 0)
    return dict(zip(moments.features, np.clip(share, 0.0, 1.0).tolist(), strict=True))


def _card(
    column: ColumnFacts,
    sample: RowSample,
    places: list[int],
    encoded: Any,
    points: RowSample | None,
) -> CardFacts:
    K = len(sample.labels)
    card = CardFacts(
        name=column["name"],
        kind=column["kind"],
        features=column["features"],
        missing=column["missing"],
        note=column["note"],
        edges=[],
        values=[],
        levels=[],
        counts=[],
        explained=None,
        bins="",
    )
    if encoded is not None and encoded.kind == "category":
        levels = _level_names(encoded)
        card["levels"] = [*levels[: _LEVELS - 1], "others"] if len(levels) > _LEVELS else levels
        numbers = _level_numbers(sample.features, places, encoded, len(card["levels"]))
        weight = np.ones(len(sample)) if sample.weight is None else sample.weight
        width = len(card["levels"])
        flat = np.bincount(sample.codes * width + numbers, weight, minlength=K * width)
        card["counts"] = flat.reshape(K, width).astype(np.float64).tolist()
        if points is not None:
            card["bins"] = as_characters(
                _level_numbers(points.features, places, encoded, len(card["levels"]))
            )
        return card
    j = places[0]
    edges = bin_edges(sample.features[:, j], _BINS)
    card["edges"] = [float(f"{edge:.5g}") for edge in edges]
    card["beyond"] = beyond_edges(sample.features[:, j], edges)
    card["values"] = bin_values(sample.features[:, j], _BINS).tolist()
    card["counts"] = [sample.histogram(j, edges, k).tolist() for k in range(K)]
    if points is not None:
        values = np.nan_to_num(points.features[:, j], nan=float(edges[0]))
        card["bins"] = as_characters(bin_numbers(values, edges))
    return card


def _level_names(encoded: Any) -> list[str]:
    """Return the names of the levels that have an indicator, then that of the reference level."""
    levels = [str(level) for level in encoded.indicator_levels]
    if encoded.reference is not None:
        levels.append(str(encoded.reference))
    return levels


def _level_numbers(features: Floats, places: list[int], encoded: Any, most: int) -> Any:
    """Return the number of the level of each row: the reference has all indicators zero."""
    count = len(encoded.indicator_levels)
    indicators = features[:, places[:count]]
    present = indicators.max(axis=1) > 0.5 if count else np.zeros(len(features), bool)
    largest = indicators.argmax(axis=1) if count else np.zeros(len(features), int)
    numbers = np.where(present, largest, count if encoded.reference is not None else 0)
    return np.minimum(numbers, most - 1)
