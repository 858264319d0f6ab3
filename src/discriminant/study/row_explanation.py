"""Explanations of predictions: column contributions, and values that alter the prediction.

The contribution of a column is the difference of two log odds of the predicted class against the
next most probable class: once for the row, and once with the column's value replaced by that of a
reference row:

    c_j = log p_k(x) / p_l(x)  -  log p_k(x') / p_l(x'),    x' = x with column j of the reference

For a linear model, c_j is the weight times the distance from the reference; for other models the
contributions need not add up to the log odds. The reference consists of the means that fill missing
cells, if the encoding has them; otherwise it is the origin of the model, near the middle of the
rows of the fit.

For a column of numbers, the nearest value that changes the prediction (with all other columns
unchanged) is computed on a grid and by bisection; for a category, every level is tried.
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
from discriminant.table.blocks import Floats
from discriminant.table.encoding import Column, Encoding

_SHOWN = 12  # largest number of columns in the text of a row
_GRID = np.geomspace(1e-3, 1e3, 61)  # changes that are tried, in units of the column
_BISECTIONS = 40


@dataclass(frozen=True, slots=True)
class ColumnContribution:
    """Contribution of one column to a prediction."""

    column: str
    value: str
    contribution: float  # log odds
    flips_at: str | None  # nearest value that changes the prediction; None if there is none
    becomes: str | None  # the prediction at that value


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
            f"Row {row.row + 1}: {shown(row.decision)} (probability {percent(row.probability)}; "
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
            flip = "" if one.flips_at is None else f"{one.becomes} at {one.flips_at}"
            name = shown(one.column, 30)
            yield f"    {name:<{width}}  {one.value:>12}  {part:>9}  {flip}".rstrip()
        if len(row.columns) > _SHOWN:
            yield f"    and {len(row.columns) - _SHOWN} more columns with smaller contributions"

    def to_dict(self) -> dict[str, Any]:
        """Return the explanations as a dictionary of plain numbers, lists and texts."""
        return {"rows": [asdict(row) for row in self.rows]}


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
        raise StudyError.incomplete_row(row + 1)
    rows = _Rows(model, inner.estimator_, encoding)
    with capture_warnings():  # the encoding has matched the columns by name
        explained = tuple(rows.explain(i, x) for i, x in enumerate(matrix))
    return Explanation(explained, rows.reference is not None)


class _Rows:
    """A fitted classifier of encoded features, and typical values of the features."""

    def __init__(self, model: Any, classifier: Any, encoding: Encoding) -> None:
        self.classifier, self.encoding = classifier, encoding
        self.decides = classifier
        if isinstance(model, Decision):
            options = {name: getattr(model, name) for name in ("cost", "reject")}
            self.decides = Decision.of_fitted(classifier, **options)
        self.names = [str(label) for label in np.asarray(classifier.classes_).tolist()]
        places = np.cumsum([0, *(len(column.features) for column in encoding.used)])
        self.columns = list(
            zip(encoding.used, places[:-1].tolist(), places[1:].tolist(), strict=True)
        )
        self.reference = self._typical_row()

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
        if column.kind == "category":
            value, flip = self._category(column, x, place, decision)
        else:
            value = number(float(x[place.start]), 4)
            flip = self._number(x, place.start, decision)
        return ColumnContribution(column.name, value, contribution, *flip)

    def _category(
        self, column: Column, x: Floats, place: slice, decision: str
    ) -> tuple[str, tuple[str | None, str | None]]:
        levels = [level for level in column.levels if level != column.reference]
        own = x[place][: len(levels)]
        hot = int(own.argmax()) if own.any() else None
        value = str(column.reference) if hot is None else levels[hot]
        others = [level for level in column.levels if level != value]
        if not others:
            return value, (None, None)
        rows = np.tile(x, (len(others), 1))
        rows[:, place] = 0.0
        for i, level in enumerate(others):
            if level in levels:
                rows[i, place.start + levels.index(level)] = 1.0
        decisions = self._decisions(rows)
        for level, other in zip(others, decisions, strict=True):
            if other != decision:
                return shown(value, 12), (shown(level, 24), other)
        return shown(value, 12), (None, None)

    def _number(self, x: Floats, j: int, decision: str) -> tuple[str | None, str | None]:
        """Return the nearest value of a number that changes the prediction, and that prediction."""
        typical = 0.0 if self.reference is None else float(self.reference[j])
        unit = max(abs(float(x[j]) - typical), 0.1 * abs(typical), 0.1 * abs(float(x[j]))) or 1.0
        steps = np.concatenate([_GRID, -_GRID]) * unit
        rows = np.tile(x, (len(steps), 1))
        rows[:, j] += steps
        differs = np.array([other != decision for other in self._decisions(rows)])
        if not differs.any():
            return None, None
        nearest = np.flatnonzero(differs)[np.abs(steps[differs]).argmin()]
        far = float(steps[nearest])
        same = np.abs(steps[(np.sign(steps) == np.sign(far)) & (np.abs(steps) < abs(far))])
        near = float(np.sign(far) * same.max(initial=0.0))
        row = x.copy()[None]
        for _ in range(_BISECTIONS):
            middle = 0.5 * (near + far)
            row[0, j] = x[j] + middle
            if self._decisions(row)[0] == decision:
                near = middle
            else:
                far = middle
            if abs(far - near) <= 1e-4 * abs(far):
                break
        row[0, j] = x[j] + far
        return number(float(row[0, j]), 4), self._decisions(row)[0]

    def _logs(self, rows: Floats) -> Floats:
        return np.maximum(log_posterior_of(self.classifier, rows), -700.0)

    def _decisions(self, rows: Floats) -> list[str]:
        decide = getattr(self.decides, "decide", self.decides.predict)
        return [str(one) for one in np.asarray(decide(rows)).tolist()]

    def _typical_row(self) -> Floats | None:
        fills = [column.fill for column, _, _ in self.columns]
        if all(len(fill) == hi - lo for fill, (_, lo, hi) in zip(fills, self.columns, strict=True)):
            return np.array([value for fill in fills for value in fill], dtype=np.float64)
        width = self.columns[-1][2] if self.columns else 0
        for rule in _rules(self.classifier):
            anchor = getattr(rule, "anchor", None)
            if anchor is not None and len(anchor.origin) == width:
                return np.asarray(anchor.origin, dtype=np.float64)
        return None


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
