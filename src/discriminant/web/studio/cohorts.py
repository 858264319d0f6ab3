"""Groups of rows by the value of a column, and drift between two tables."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

import discriminant as dd
from discriminant.errors import InferenceError, InputError, capture_warnings
from discriminant.table.load import read_frame
from discriminant.web.studio.evaluation_on_all_rows import log_posteriors, named_rows
from discriminant.web.studio.sources import Source
from discriminant.web.studio.specification import Edits, ModelChoice
from discriminant.web.studio.tables import OpenTable

_MOST_SLICES = 12
_QUANTILES = 4


def slice_columns(
    table: OpenTable, choice: ModelChoice, edits: Edits, column: Any
) -> dict[str, Any]:
    """Return the group of each shown row; with more rows than are shown, also counts over all.

    A numeric column with more than 12 values is divided at its quartiles. In a text column, each of
    the most frequent values is a group.
    """
    names, group = _groups(table, column)
    answer: dict[str, Any] = {
        "column": column,
        "names": names,
        "group": group[table.shown].tolist(),
    }
    if len(table.table) > len(table.shown) and not edits:
        answer["counts"] = _counts(table, choice, group, len(names))
    return answer


def _groups(table: OpenTable, column: Any) -> tuple[list[str], npt.NDArray[np.intp]]:
    frame = table.opened.frame
    if frame is None:
        raise InputError("This table is read in partitions, so that rows cannot be grouped here.")
    if column not in frame.names:
        raise InputError("column must be a column of the table that was read.")
    cells = frame[column]
    complete = table.opened.kept_rows
    if complete is not None and len(complete) < len(cells):
        numbers = np.arange(len(cells)) if frame.row_numbers is None else frame.row_numbers
        cells = cells.take(np.searchsorted(numbers, complete))
    values = cells.values
    if cells.kind != "text" and len(np.unique(values)) > _MOST_SLICES:
        cuts = np.unique(np.nanquantile(values, np.linspace(0, 1, _QUANTILES + 1)))
        group = np.searchsorted(cuts[1:-1], values, side="left")
        names = [f"{low:.4g} to {high:.4g}" for low, high in pairwise(cuts)]
        group = np.where(np.isnan(values.astype(float)), len(names), group)
    else:
        text = cells.as_text()
        rows = np.bincount(text.values[text.values >= 0], minlength=len(text.levels))
        order = np.argsort(-rows, kind="stable")[: np.count_nonzero(rows)]
        largest = order[:_MOST_SLICES]
        place = np.full(len(text.levels) + 1, len(largest))
        place[largest] = np.arange(len(largest))
        names = [str(text.levels[level]) for level in largest]
        if len(order) > len(largest):
            names.append("other values")
        group = np.where(text.values < 0, len(names), place[text.values])
    if (group == len(names)).any():
        names.append("missing")
    return names, group.astype(np.intp)


def _counts(
    table: OpenTable, choice: ModelChoice, group: npt.NDArray[np.intp], groups: int
) -> dict[str, Any]:
    """Return, for each group and class, rows, correct rows, predicted rows, and probability."""
    model, places = table.fitted(choice, Edits()), table.places(choice)
    K = len(table.labels)
    sums = np.zeros((4, groups, K))
    for block in table.table.blocks(1 << 16):
        rows = slice(block.start, block.start + len(block.codes))
        logs = log_posteriors(model, named_rows(table, block.features, places))
        predicted, own = logs.argmax(axis=1), group[rows]
        np.add.at(sums[0], (own, block.codes), 1)
        np.add.at(sums[1], (own, block.codes), predicted == block.codes)
        np.add.at(sums[2], (own, predicted), 1)
        np.add.at(sums[3], own, np.exp(logs))
    names = ("rows", "correct", "predicted", "probability")
    return {name: each.tolist() for name, each in zip(names, sums, strict=True)}


def compare_moments(table: OpenTable, source: Source) -> dict[str, Any]:
    """Compare the means of another file with those of the table, by Hotelling's T2.

    Only moments are compared; the target of the other file is not read.
    """
    encoding = table.opened.encoding
    if encoding.missing in ("error", "drop"):  # leave out rows with missing cells, as in the table
        encoding = replace(encoding, missing="marginal")
    with capture_warnings():
        frame, _ = read_frame(source.path, encoding=encoding)
        rows = encoding.encode_rows(frame)
        left = ~rows.incomplete
        X = np.asarray(rows.features[:], dtype=np.float64)[left]
        if len(X) < 2:
            raise InputError(f"{source.name} has fewer than two complete rows.")
        second = dd.moments(X, np.zeros(len(X), dtype=int), detail="pooled")
        first, second = table.moments, replace(second, features=table.features)
        features = []
        for name in table.features:
            with suppress(InferenceError):  # a constant feature cannot be tested
                features += dd.hotelling(first.select([name]), second.select([name])).to_dict()[
                    "features"
                ]
        try:
            together = dd.hotelling(first, second).to_dict()
        except InferenceError:  # features that depend on one another have no joint test
            together = None
    features.sort(key=lambda each: -abs(each["effect"]))
    return {
        "name": source.name,
        "rows": [int(first.rows.sum()), int(second.rows.sum())],
        "d2": None if together is None else together["d2"],
        "p": None if together is None else together["t2"]["p"],
        "features": features,
    }
