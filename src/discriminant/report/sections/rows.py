"""Section of the report on rows to look at: mislabelled, misclassified, unsure and odd rows.

    label          the posterior of the row's own class is below 0.01 and a tenth of its frequency
    misclassified  decided as another class, the most confident first
    unsure         the smallest difference between the two largest posteriors
    odd            far from the mean of its class: beyond the chi-squared limit of a Gaussian class

The columns named with a row are those farthest from the mean of its class, in standard deviations
within that class.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from discriminant.assessment.resampling.held_out_folds import HeldOutPredictions
from discriminant.moments.class_moments import ClassMoments
from discriminant.report.fact_types import OddColumnFacts, RowFacts, RowListFacts, RowsFacts
from discriminant.report.sections.features import Lines, far_rows, mislabelled_rows
from discriminant.report.sections.space import decided_probability
from discriminant.table.blocks import Floats, Places, dense
from discriminant.table.memory import Table

_MOST = 8  # rows of each list
_COLUMNS = 3  # columns named with a row
_UNUSUAL = 1.5  # number of standard deviations from which a column is named
_UNSURE = 0.2  # difference between the two largest posteriors below which a row is unsure


def rows_section(
    table: Table,
    held: HeldOutPredictions,
    moments: ClassMoments | None,
    *,
    lines: Lines | None = None,
    numbering: str = "",
    far: Places | None = None,
) -> RowsFacts:
    """Return the rows to look at.

    Parameters
    ----------
    table, held, moments
        Rows in memory, their held-out predictions, and moments with detail 'class' (or None).
    lines
        Function from row numbers to lines of the file.
    numbering
        What row numbers refer to, if not to the rows of the file.
    far
        Result of `far_rows`, if it is known.
    """
    named = "Rows are numbered from 0" + (f" among the rows {numbering}." if numbering else ".")
    confidence = decided_probability(held)
    lists: list[_Listed] = []
    if held.probabilistic:
        own = held.log_posterior[np.arange(len(held.codes)), held.codes]
        labels = mislabelled_rows(held)
        text = (
            "The model gives the class of these rows almost no probability (below 1% and a tenth "
            "of its frequency): check their labels first."
        )
        lists.append(
            _Listed("label", "Possible label errors", text, labels[np.argsort(own[labels])])
        )
    wrong = np.flatnonzero(held.wrong & _counted(held))
    key = np.where(np.isnan(confidence), 0.0, confidence)
    text = "Misclassified although held out, the most confident mistakes first."
    order = wrong[np.argsort(-key[wrong], kind="stable")]
    lists.append(_Listed("misclassified", "Misclassified", text, order))
    if held.probabilistic:
        two = np.partition(held.log_posterior, -2, axis=1)[:, -2:]
        margin = np.exp(two[:, 1]) - np.exp(two[:, 0])
        unsure = np.flatnonzero((margin < _UNSURE) & _counted(held))
        text = (
            "The two most probable classes differ by less than "
            f"{100 * _UNSURE:.0f} percentage points: let a person decide."
        )
        order = unsure[np.argsort(margin[unsure], kind="stable")]
        lists.append(_Listed("unsure", "Unsure", text, order))
    if moments is not None:
        text = (
            "Farther from the mean of their class than a Gaussian class would allow: typing "
            "errors, mixed units or heavy tails."
        )
        odd = far_rows(table, moments) if far is None else far
        lists.append(_Listed("odd", "Odd", text, odd))
    lists = [one for one in lists if len(one.rows)]
    numbers = sorted({int(row) for one in lists for row in one.rows[:_MOST]})
    described = _describe(table, held, moments, confidence, numbers)
    if lines is not None and numbers:
        for row, line in zip(numbers, lines(numbers), strict=True):
            described[row]["line"] = int(line)
    return RowsFacts(
        numbering=named,
        lists=[
            RowListFacts(
                kind=one.kind,
                title=one.title,
                text=one.text,
                count=len(one.rows),
                rows=[described[int(i)] for i in one.rows[:_MOST]],
            )
            for one in lists
        ],
    )


class _Listed(NamedTuple):
    """Rows to look at for one reason, in order."""

    kind: str
    title: str
    text: str
    rows: Places


def _counted(held: HeldOutPredictions) -> npt.NDArray[np.bool_]:
    if held.weight is None:
        return np.ones(len(held.codes), dtype=np.bool_)
    return np.asarray(held.weight > 0)


def _describe(
    table: Table,
    held: HeldOutPredictions,
    moments: ClassMoments | None,
    confidence: Floats,
    numbers: list[int],
) -> dict[int, RowFacts]:
    predicted = held.predicted
    odd = _odd_columns(table, moments, numbers)
    rows = {}
    for i, columns in zip(numbers, odd, strict=True):
        own = float(np.exp(held.log_posterior[i, held.codes[i]])) if held.probabilistic else None
        p = float(confidence[i])
        rows[i] = RowFacts(
            row=i,
            code=int(held.codes[i]),
            decided=str(predicted[i]),
            probability=None if np.isnan(p) else p,
            own=own,
            odd=columns,
            text="" if columns else "No single column is unusual.",
        )
    return rows


def _odd_columns(
    table: Table, moments: ClassMoments | None, numbers: list[int]
) -> list[list[OddColumnFacts]]:
    if moments is None or not numbers:
        return [[] for _ in numbers]
    places = np.asarray(numbers)
    part = table.take(places)
    values = np.asarray(dense(part.features[:]), dtype=np.float64)
    scatter = np.stack([np.diagonal(one) if one.ndim == 2 else one for one in moments.scatter])
    degrees = np.maximum(moments.weight - 1.0, 1.0)[:, None]
    sd = np.sqrt(np.maximum(scatter, 0.0) / degrees)[part.codes]
    offsets = moments.anchor.offsets(values) - moments.mean[part.codes]
    z = np.divide(offsets, sd, out=np.zeros_like(offsets), where=sd > 0)
    z = np.nan_to_num(z)
    rows = []
    for i in range(len(places)):
        order = np.argsort(-np.abs(z[i]), kind="stable")[:_COLUMNS]
        rows.append(
            [
                OddColumnFacts(
                    feature=moments.features[j], value=float(values[i, j]), sd=float(z[i, j])
                )
                for j in order
                if abs(z[i, j]) >= _UNUSUAL
            ]
        )
    return rows
