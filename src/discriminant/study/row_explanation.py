"""Explanations of predictions: column contributions, and values that alter the prediction.

The contribution of a column is the difference of two log odds of the predicted class against the
next most probable class: once for the row, and once with the column's value replaced by that of a
reference row:

    c_j = log p_k(x) / p_l(x)  -  log p_k(x') / p_l(x'),    x' = x with column j of the reference

For a linear model, c_j is the weight times the distance from the reference; for other models the
contributions need not add up to the log odds. The reference consists of the means that fill missing
cells, if the encoding has them; otherwise it is the origin of the model, near the middle of the
rows of the fit.

For a column of numbers or dates, the nearest value that changes the prediction (with all other
columns unchanged) is searched on a grid within the range of the training rows, and by bisection.
For categories, ordered levels and truth values, every level is tried. A model that stores no range
(only studies of rows in memory store it) has no such value for numbers and dates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from discriminant.assessment.printed_results import PrintedResult
from discriminant.errors import StudyError, capture_warnings
from discriminant.estimators.meta.decision import Decision, log_posterior_of
from discriminant.posterior import gives_posterior
from discriminant.report.format import number, percent, quoted, shown
from discriminant.study.prediction_writers import iso_date
from discriminant.table.blocks import Floats
from discriminant.table.encoding import Column, Encoding

_SHOWN = 12  # largest number of columns in the text of a row
_GRID = np.linspace(0.0, 1.0, 49)  # changes that are tried, as shares of the way to the range's end
_BISECTIONS = 40

CellValue = float | bool | str  # dates and levels are texts


@dataclass(frozen=True, slots=True)
class ColumnContribution:
    """Contribution of one column to a prediction."""

    column: str
    value: CellValue
    contribution: float  # log odds
    flips_at: CellValue | None  # nearest value that changes the prediction; None if there is none
    becomes: str | None  # the prediction at that value
    searched: bool = True  # whether other values were tried


@dataclass(frozen=True, slots=True)
class RowExplanation:
    """Prediction for one row, and the contributions of its columns, the largest first."""

    row: int  # number of the row, from 0
    decision: str
    probability: float
    against: str  # the most probable other class
    against_probability: float
    columns: tuple[ColumnContribution, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explanation(PrintedResult):
    """Explanations of some rows."""

    rows: tuple[RowExplanation, ...]
    has_reference: bool

    @property
    def text(self) -> str:
        """The explanations as text."""
        return "\n\n".join("\n".join(self._lines(row)) for row in self.rows)

    def _lines(self, row: RowExplanation) -> Iterator[str]:
        yield (
            f"Row {row.row}: {shown(row.decision)} (probability {percent(row.probability)}; "
            f"next {quoted(shown(row.against))}, {percent(row.against_probability)})"
        )
        if self.has_reference:
            yield (
                f"  Contributions to {quoted(shown(row.decision))} against "
                f"{quoted(shown(row.against))}, in log odds, compared with a typical row:"
            )
        width = max((len(shown(one.column, 30)) for one in row.columns[:_SHOWN]), default=0)
        for one in row.columns[:_SHOWN]:
            sign = "+" if one.contribution >= 0 else "−"
            part = f"{sign}{number(abs(one.contribution))}" if self.has_reference else ""
            flip = f"{one.becomes} at {_cell_text(one.flips_at, 24)}"
            if one.flips_at is None:
                none = "none within the range" if isinstance(one.value, float) else "none"
                flip = none if one.searched else ""
            name, value = shown(one.column, 30), _cell_text(one.value, 12)
            yield f"    {name:<{width}}  {value:>12}  {part:>9}  {flip}".rstrip()
        if len(row.columns) > _SHOWN:
            yield f"    and {len(row.columns) - _SHOWN} more columns with smaller contributions"
        if not all(one.searched for one in row.columns):
            yield (
                "  The model stores no range of its columns, so changes of numbers and dates are "
                "not searched: fit it with `discriminant fit` or `study` to rows in memory."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the explanations as a dictionary of plain numbers, lists and texts."""
        return {"rows": [asdict(row) for row in self.rows]}


def _cell_text(cell: CellValue | None, longest: int) -> str:
    """Return a cell for a line of text.

    >>> _cell_text(30941.33, 12), _cell_text("low", 12), _cell_text(True, 12)
    ('30,941', 'low', 'True')
    """
    if isinstance(cell, float):
        return number(cell, 4)
    return shown(cell, longest)


def explain_rows(model: Any, source: Any, encoding: Encoding, *, most: int) -> Explanation:
    """Explain the predictions for the first `most` rows of a source.

    Parameters
    ----------
    model
        A fitted model with an encoding of columns; with or without costs.
    source
        Rows with the columns of the model.
    encoding
        Encoding of the model.
    most
        Largest number of rows.
    """
    inner = model.estimator_ if isinstance(model, Decision) else model
    if not gives_posterior(inner):
        raise StudyError.no_probabilities(type(inner).__name__)
    matrix = encoding.encode_rows(source).matrix()[:most]
    if np.isnan(matrix).any():
        row = int(np.isnan(matrix).any(axis=1).argmax())
        raise StudyError.incomplete_row(row)
    rows = _Rows(model, inner.estimator_, encoding, getattr(inner, "training_range_", None))
    with capture_warnings():  # the encoding has matched the columns by name
        explained = tuple(rows.explain(i, x) for i, x in enumerate(matrix))
    return Explanation(explained, rows.reference is not None)


class _Rows:
    """A fitted classifier of encoded features, and typical values of the features."""

    def __init__(
        self, model: Any, classifier: Any, encoding: Encoding, limits: Floats | None
    ) -> None:
        self.classifier, self.encoding = classifier, encoding
        self.limits = limits  # (2, d) lowest and highest value of each feature
        self.decides = classifier
        if isinstance(model, Decision):
            options = {name: getattr(model, name) for name in ("cost", "reject")}
            self.decides = Decision.of_fitted(classifier, **options)
        self.names = [str(label) for label in np.asarray(classifier.classes_).tolist()]
        places = np.cumsum([0, *(len(column.features) for column in encoding.used)])
        self.columns = list(
            zip(encoding.used, places[:-1].tolist(), places[1:].tolist(), strict=True)
        )
        self.reference = typical_row(classifier, encoding)

    def explain(self, i: int, x: Floats) -> RowExplanation:
        logs = self._logs(x[None])[0]
        order = np.argsort(-logs, kind="stable")
        k, other = int(order[0]), int(order[1])
        decision = self._decisions(x[None])[0]
        if decision in self.names and decision != self.names[k]:
            k, other = self.names.index(decision), k
        contributions = []
        for column, lo, hi in self.columns:
            contributions.append(self._column(column, x, slice(lo, hi), logs, (k, other), decision))
        contributions.sort(key=lambda one: -abs(one.contribution))
        return RowExplanation(
            row=i,
            decision=decision,
            probability=float(np.exp(logs[k])),
            against=self.names[other],
            against_probability=float(np.exp(logs[other])),
            columns=tuple(contributions),
        )

    def _column(
        self,
        column: Column,
        x: Floats,
        place: slice,
        logs: Floats,
        pair: tuple[int, int],
        decision: str,
    ) -> ColumnContribution:
        k, other = pair
        contribution = 0.0
        if self.reference is not None:
            typical = x.copy()
            typical[place] = self.reference[place]
            changed = self._logs(typical[None])[0]
            contribution = float((logs[k] - logs[other]) - (changed[k] - changed[other]))
        if column.kind in ("number", "date"):
            return self._number(column, x, place.start, contribution, decision)
        return self._levels(column, x, place, contribution, decision)

    def _levels(
        self, column: Column, x: Floats, place: slice, contribution: float, decision: str
    ) -> ColumnContribution:
        """Return the nearest level that changes the prediction."""
        value, others = _other_levels(column, x[place])
        rows = np.tile(x, (len(others), 1))
        for row, (_, features) in zip(rows, others, strict=True):
            row[place] = features
        decisions = self._decisions(rows) if others else []
        for (level, _), other in zip(others, decisions, strict=True):
            if other != decision:
                return ColumnContribution(column.name, value, contribution, level, other)
        return ColumnContribution(column.name, value, contribution, None, None)

    def _number(
        self, column: Column, x: Floats, j: int, contribution: float, decision: str
    ) -> ColumnContribution:
        """Return the nearest value within the range that changes the prediction."""
        cell = iso_date if column.kind == "date" else float
        own = float(x[j])
        if self.limits is None:
            return ColumnContribution(
                column.name, cell(own), contribution, None, None, searched=False
            )
        ends = self.limits[:, j].tolist()
        days = column.kind == "date" and all(value.is_integer() for value in (own, *ends))
        changes = []
        for end in ends:
            value = self._nearest(x, j, min(max(own, ends[0]), ends[1]), end, decision)
            if value is None:
                continue
            if days:
                value = float(np.ceil(value) if value > own else np.floor(value))
            becomes = self._at(x, j, value)
            if becomes != decision:
                changes.append((abs(value - own), value, becomes))
        if not changes:
            return ColumnContribution(column.name, cell(own), contribution, None, None)
        _, value, becomes = min(changes)
        return ColumnContribution(column.name, cell(own), contribution, cell(value), becomes)

    def _nearest(self, x: Floats, j: int, start: float, end: float, decision: str) -> float | None:
        """Return the value nearest to `start`, on the way to `end`, that changes the prediction."""
        values = start + (end - start) * _GRID
        values[-1] = end
        rows = np.tile(x, (len(values), 1))
        rows[:, j] = values
        differs = np.array([other != decision for other in self._decisions(rows)])
        if not differs.any():
            return None
        first = int(differs.argmax())
        if first == 0:
            return start
        near, far = float(values[first - 1]), float(values[first])
        for _ in range(_BISECTIONS):
            middle = 0.5 * (near + far)
            if self._at(x, j, middle) == decision:
                near = middle
            else:
                far = middle
            if abs(far - near) <= 1e-4 * abs(far - start):
                break
        return far

    def _at(self, x: Floats, j: int, value: float) -> str:
        row = x.copy()[None]
        row[0, j] = value
        return self._decisions(row)[0]

    def _logs(self, rows: Floats) -> Floats:
        return np.maximum(log_posterior_of(self.classifier, rows), -700.0)

    def _decisions(self, rows: Floats) -> list[str]:
        decide = getattr(self.decides, "decide", self.decides.predict)
        return [str(one) for one in np.asarray(decide(rows)).tolist()]


def typical_row(classifier: Any, encoding: Encoding) -> Floats | None:
    """Return the features of the reference row, or None if the model stores none."""
    used = encoding.used
    if all(len(column.fill) == len(column.features) for column in used):
        return np.array([value for column in used for value in column.fill], dtype=np.float64)
    width = sum(len(column.features) for column in used)
    for rule in _rules(classifier):
        anchor = getattr(rule, "anchor", None)
        if anchor is not None and len(anchor.origin) == width:
            return np.asarray(anchor.origin, dtype=np.float64)
    return None


def _other_levels(column: Column, own: Floats) -> tuple[CellValue, list[tuple[CellValue, Floats]]]:
    """Return the level of a row, and the other levels with their features, the nearest first."""
    if column.kind == "category":
        levels = column.indicator_levels
        hot = int(own[: len(levels)].argmax()) if own[: len(levels)].any() else None
        value = str(column.reference) if hot is None else levels[hot]
        others: list[tuple[CellValue, Floats]] = []
        for level in column.levels:
            features = np.zeros(len(own))
            if level in levels:
                features[levels.index(level)] = 1.0
            if level != value:
                others.append((level, features))
        return value, others
    names: tuple[CellValue, ...] = (False, True) if column.kind == "boolean" else column.levels
    places = np.linspace(0.0, 1.0, len(names)) if len(names) > 1 else np.zeros(len(names))
    distance = np.abs(places - own[0])
    order = np.argsort(distance, kind="stable").tolist()
    rest = np.zeros(len(own) - 1)  # of an indicator of missing cells
    return names[order[0]], [(names[i], np.r_[places[i], rest]) for i in order[1:]]


def _rules(classifier: Any) -> Iterator[Any]:
    """Yield the rules and bases of a classifier, and those of the classifiers inside it."""
    for name in ("rule_", "basis_"):
        value = getattr(classifier, name, None)
        yield from getattr(value, "parts", (value,))
    inner = [*getattr(classifier, "estimators_", []), getattr(classifier, "estimator_", None)]
    inner += [step for _, step in getattr(classifier, "steps", [])]
    for each in inner:
        if each is not None:
            yield from _rules(each)
