"""Section of the report on single rows: a form in which the page predicts a row by itself.

The page runs the JavaScript export of the model. For each column that the model reads, the form
has a field with the type, the levels and the observed range of the column. Examples are, for
each class, the row nearest to its mean (in units of the standard deviation of each feature) that is
decided as the class, and the rows to look at.

The page computes the contributions of the columns. Let a be the predicted class, b the class with
the second largest probability, and v(S) the log odds of a against b for a row whose columns in S
have the values of the form and whose other columns have those of a typical row (the mean, or the
most frequent level). The contribution of a column is its Shapley value:

    c_j = mean of v(S + j) - v(S) over the orders of the columns, S the columns before j

With at most 7 columns all sets S are evaluated, otherwise 2 to 20 orders, each with its reverse.
The contributions sum to the log odds of the row minus those of the typical row. For a model with
linear scores, c_j = w_j (x_j - mean_j).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from discriminant.errors import DiscriminantError
from discriminant.export.javascript import to_javascript
from discriminant.moments.class_moments import ClassMoments
from discriminant.report.fact_types import Cell, ExampleFacts, FieldFacts, OneRowFacts, RowsFacts
from discriminant.report.format import shown
from discriminant.report.sections.row_sample import RowSample
from discriminant.table.blocks import Codes, Floats, dense
from discriminant.table.memory import Table

_MAX_CODE = 300_000  # largest number of characters of the code of a model
_FIELDS = 150  # largest number of fields
_CLASSES = 12  # largest number of classes with a typical row
_NEAREST = 200  # number of rows of a class among which a typical one is chosen
_DAY = np.timedelta64(1, "D")


def one_row_section(
    model: Any,
    table: Table,
    sample: RowSample,
    moments: ClassMoments | None,
    *,
    encoded: Sequence[Any] = (),
    fills_missing: bool = False,
    rows: RowsFacts | None = None,
    title: str = "",
    unchanged: Collection[str] = (),
    decide: Callable[[Floats], Codes] | None = None,
) -> OneRowFacts | None:
    """Return the form and the code of the model; None if the model has no export or is too large.

    Parameters
    ----------
    model
        The fitted model, which reads the columns.
    table, sample, moments
        Rows in memory, a sample of them, and the moments of all rows (or None).
    encoded
        Columns of the encoding (default: every feature is a numeric column).
    fills_missing
        Whether the model accepts missing cells.
    rows
        The section on rows to look at, whose rows are examples.
    title
        Name of the model.
    unchanged
        Columns of which the page suggests no change: identifiers, and those that reveal the label.
    decide
        Function from features to the codes of the decisions, for rows that are typical of a class.
    """
    columns = list(encoded) or [_NumericColumn(name) for name in sample.names]
    columns = [column for column in columns if column.features]
    if not 0 < len(columns) <= _FIELDS:
        return None
    try:
        code = to_javascript(model)
    except DiscriminantError:  # a model without an export
        return None
    if len(code) > _MAX_CODE or "function outputs(row)" not in code:
        return None
    places = {name: j for j, name in enumerate(sample.names)}
    centre = None if moments is None else moments.anchor.values(moments.centre[None, :])[0]
    fields = [_field(column, sample, places, centre, fills_missing) for column in columns]
    for field in fields:
        field["suggested"] = field["name"] not in unchanged
    described = _typical_rows(sample, decide)
    for number, kind in _listed_rows(rows).items():
        described[number] = ", ".join([described.get(number, f"row {number:,}"), kind])
    numbers = list(described)
    features = np.asarray(dense(table.take(np.array(numbers, int)).features[:]), dtype=np.float64)
    examples = [
        ExampleFacts(
            row=number,
            text=described[number],
            cells=[_cell(column, values, places) for column in columns],
        )
        for number, values in zip(numbers, features, strict=True)
    ]
    return OneRowFacts(
        model=title,
        javascript=_as_script(code),
        classes=[str(label) for label in np.asarray(model.classes_).tolist()],
        fields=fields,
        examples=examples,
    )


class _NumericColumn:
    """A numeric column that is a feature."""

    kind = "number"
    indicator = False

    def __init__(self, name: str) -> None:
        self.name, self.features = name, (name,)


def _as_script(code: str) -> str:
    """Return a module as a script that defines `rowModel`."""
    plain = re.sub(r"^export (const|function) ", r"\1 ", code, flags=re.MULTILINE)
    return (
        f"const rowModel = (() => {{\n{plain}\n"
        'return { outputs, classes: typeof classes === "undefined" ? [] : classes };\n})();\n'
    )


def _field(
    column: Any, sample: RowSample, places: Mapping[str, int], centre: Floats | None, missing: bool
) -> FieldFacts:
    field = FieldFacts(
        name=column.name,
        kind=column.kind,
        levels=[],
        typical=None,
        low=None,
        high=None,
        sd=None,
        whole=False,
        missing=missing,
        suggested=True,
    )
    j = places[column.features[0]]
    values = sample.features[:, j]
    known = values[np.isfinite(values)]
    if column.kind in ("category", "ordered", "boolean"):
        field["levels"] = [] if column.kind == "boolean" else [str(one) for one in column.levels]
        field["typical"] = _most_frequent(column, sample, places)
        return field
    mean = float(known.mean() if centre is None else centre[j]) if len(known) else 0.0
    field["low"], field["high"] = (
        (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    )
    field["sd"] = float(known.std())
    field["whole"] = bool((known == np.round(known)).all())
    field["typical"] = float(f"{mean:.6g}")
    if column.kind == "date":
        field["typical"] = _date(mean)
    return field


def _most_frequent(column: Any, sample: RowSample, places: Mapping[str, int]) -> Cell:
    """Return the most frequent level of a category, an ordered column or a boolean column."""
    names = column.features[: len(column.features) - bool(column.indicator)]
    values = sample.features[:, [places[name] for name in names]]
    if column.kind != "category":
        levels, counts = np.unique(values[~np.isnan(values)], return_counts=True)
        row = np.zeros(len(sample.names))
        row[places[names[0]]] = levels[counts.argmax()] if len(levels) else 0.0
        return _cell(column, row, places)
    frequency = dict(zip(column.indicator_levels, values.mean(axis=0), strict=True))
    if column.reference is not None:
        frequency[column.reference] = 1.0 - sum(frequency.values())
    return str(max(frequency, key=lambda level: frequency[level]))


def _cell(column: Any, values: Floats, places: Mapping[str, int]) -> Cell:
    """Return the cell of a row from its features."""
    if column.indicator and values[places[column.features[-1]]] > 0.5:
        return None
    first = float(values[places[column.features[0]]])
    if not np.isfinite(first):
        return None
    if column.kind == "category":
        levels = column.indicator_levels
        own = values[[places[name] for name in column.features[: len(levels)]]]
        if len(own) and own.max() > 0.5:
            return str(levels[int(own.argmax())])
        return None if column.reference is None else str(column.reference)
    if column.kind == "ordered":
        return str(column.levels[round(first * max(len(column.levels) - 1, 1))])
    if column.kind == "boolean":
        return first > 0.5
    if column.kind == "date":
        return _date(first)
    return first


def _date(days: float) -> Cell:
    """Return a date as text, or as a number of days if it has a time of day.

    >>> _date(19657.0), _date(0.5)
    ('2023-10-27', 0.5)
    """
    if not days.is_integer():
        return days
    return str(np.datetime64(0, "D") + int(days) * _DAY)


def _typical_rows(sample: RowSample, decide: Callable[[Floats], Codes] | None) -> dict[int, str]:
    """Return a typical row of each class, with a description.

    It is the row nearest to the mean of its class among those that are decided as their class; if
    none of the nearest is, the nearest of all.
    """
    features = np.nan_to_num(sample.features)
    sd = features.std(axis=0)
    scaled = features / np.where(sd > 0, sd, 1.0)
    described = {}
    for k, label in enumerate(sample.labels[:_CLASSES]):
        own = np.flatnonzero(sample.codes == k)
        if not len(own):
            continue
        distance = ((scaled[own] - scaled[own].mean(axis=0)) ** 2).sum(axis=1)
        near = own[np.argsort(distance, kind="stable")[:_NEAREST]]
        row, decided = near[0], ""
        if decide is not None:
            codes = decide(sample.features[near])
            row = near[int((codes == k).argmax())]
            if codes[0] != k and row == near[0]:
                decided = f", but decided as {_decided(sample.labels, int(codes[0]))}"
        number = int(sample.numbers[row])
        described[number] = f"row {number:,}, typical of {shown(label, 30)}{decided}"
    return described


def _decided(labels: Sequence[str], code: int) -> str:
    return shown(labels[code], 30) if code < len(labels) else "rejected"


def _listed_rows(rows: RowsFacts | None) -> dict[int, str]:
    """Return the kind of each row to look at."""
    kinds = {
        "label": "possible label error",
        "misclassified": "misclassified",
        "unsure": "unsure",
        "odd": "odd",
    }
    described: dict[int, str] = {}
    for one in [] if rows is None else rows["lists"]:
        for row in one["rows"]:
            described.setdefault(row["row"], kinds[one["kind"]])
    return described
