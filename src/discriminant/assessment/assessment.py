"""`Assessment` of a classifier: all measures that follow from the counts of truth and decision.

A `Tally` counts the rows by true class and decision; an `Assessment` is a `Tally` with measures.
The formulas are in `assessment.measures`, and intervals in `assessment.intervals`. This module
makes them available as attributes, a printed text, a dictionary and data frames. Assessments of
files, folds, sites or machines can be added, as tallies can.

Calibration compares observed frequencies with predicted probabilities, in the bins of a tally.

    curve             in each bin of p_k: mean p_k against the share of rows that are class k
    expected error    ECE = sum over bins of (weight of the bin / weight) |share - mean p|

Curve and error are computed for one given class, or for the most probable class (top-label
calibration, Guo et al. 2017: p is the largest posterior, and the observed frequency is the share of
rows that are of their most probable class). Bins have equal width; adjacent bins of a tally are
merged to get the number of bins requested.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from discriminant.assessment import measures
from discriminant.assessment.intervals import Interval, Weights, interval_of
from discriminant.assessment.measures import (
    AVERAGES,
    MEASURES,
    Measure,
    MeasureAttributes,
    check_scored,
    cost_formula,
    ratio,
)
from discriminant.assessment.printed_results import PrintedResult, text_table
from discriminant.errors import LabelError, OptionError
from discriminant.moments.confusion import Tally
from discriminant.table.blocks import Floats
from discriminant.table.column_cells import import_pandas

_MAX_CLASSES = 12  # with more classes, only the largest cells of the confusion matrix are printed
_LARGEST_CELLS = 10


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assessment(PrintedResult, MeasureAttributes, Tally):
    """Counts of rows by true class (K classes) and chosen action (A actions), with all measures.

    The measures in `assessment.measures.MEASURES` are attributes: numbers (`error`, `accuracy`,
    `coverage`, `rejected`, `outliers`, `balanced_accuracy`, `mcc`, `kappa`, `log_loss`, `brier`,
    `brier_sum`) and arrays of shape (K,) (`precision`, `recall`, `specificity`, `f1`).
    """

    @classmethod
    def of_tally(cls, tally: Tally) -> Assessment:
        """Return the assessment of a tally."""
        sums = tally.rows, tally.weight, tally.weight2, tally.scored
        return cls(tally.labels, tally.actions, *sums)

    def f(self, beta: float = 1.0) -> Floats:
        """Return the F score of each class, (K,).

        Recall counts `beta` times as much as precision.
        """
        return measures.f_score(self.weight, beta=measures.check_beta(beta))

    @property
    def support(self) -> Floats:
        """Total weight of the rows of each class, (K,)."""
        return measures.true_total(self.weight)

    def confusion(
        self, *, transpose: bool = False, normalise: Literal["true", "decided", "all"] | None = None
    ) -> Floats:
        """Return the confusion matrix, (A, K): decisions in rows, true classes in columns.

        Parameters
        ----------
        transpose : bool, default=False
            Put true classes in rows, as scikit-learn does.
        normalise : {'true', 'decided', 'all'}, optional
            Divide by the weight of each true class, of each decision or of all rows.
        """
        axes: dict[Any, Any] = {"true": 0, "decided": 1, "all": (0, 1)}
        matrix = self.weight
        if normalise is not None:
            if normalise not in axes:
                raise OptionError.of("normalise", normalise, "'true', 'decided', 'all' or None")
            matrix = measures.ratio((matrix, matrix.sum(axis=axes[normalise], keepdims=True)))
        return matrix.T if transpose else matrix

    def average(
        self,
        measure: Literal["precision", "recall", "f"],
        average: measures.Average = "macro",
        *,
        beta: float = 1.0,
        zero_division: float = 0.0,
    ) -> float:
        """Return precision, recall or F, averaged over the classes: 'macro', 'micro' or 'weighted'.

        A rate that is 0/0 is replaced by `zero_division`; with `zero_division=nan` it is left out.
        """
        if average not in AVERAGES:
            raise OptionError.of("average", average, "'macro', 'micro' or 'weighted'")
        if measure not in ("precision", "recall", "f"):
            raise OptionError.of("measure", measure, "'precision', 'recall' or 'f'")
        beta = measures.check_beta(beta)
        return float(
            measures.average_over_classes(
                self.weight, measure, average, beta=beta, zero_division=zero_division
            )
        )

    def calibration(self, label: Any = None, *, bins: int = 10) -> CalibrationCurve:
        """Return the calibration curve of one class.

        Without `label`, the curve is that of the largest posterior of each row.
        """
        check_scored(self, "calibration")
        if label is None:
            return calibration_curve_from_sums("top", self.scored.top, bins=bins)
        names = self.labels.tolist()
        if label not in names:
            raise LabelError.unknown([label], names)
        return calibration_curve_from_sums(
            label, self.scored.bins[:, names.index(label)], bins=bins
        )

    def calibration_error(self, label: Any = None, *, bins: int = 15) -> float:
        """Return the expected calibration error of one class.

        Without `label`, the error is that of the largest posterior of each row.
        """
        return self.calibration(label, bins=bins).error

    def cost(
        self, cost: Any, *, reject: float | None = None, outlier: float | None = None
    ) -> float:
        """Return the mean cost of a row under any cost matrix.

        Parameters
        ----------
        cost
            Cost matrix, as in `Decision`. The decisions may be based on another cost matrix.
        reject, outlier : float, optional
            Cost of a rejected row and of an outlier; `outlier` defaults to `reject`.
        """
        return float(cost_formula(self, cost, reject, outlier)(self.weight))

    def interval(
        self,
        measure: str,
        *,
        method: str | None = None,
        level: float = 0.95,
        weights: Weights = "counts",
        draws: int = 2000,
        stratified: bool = False,
        seed: Any = 0,
        cost: Any = None,
        reject: float | None = None,
        outlier: float | None = None,
    ) -> Interval:
        """Return a measure with its confidence interval.

        For a measure of each class the value and both ends are arrays of shape (K,).

        Parameters
        ----------
        measure : str
            A rate: 'error', 'accuracy', 'coverage', 'rejected', 'outliers', 'precision',
            'recall', 'specificity', 'prevalence'. Or another measure of counts: 'f1',
            'balanced_accuracy', 'mcc', 'kappa', 'cost', or an average over classes such as
            'macro_f1'. Or a loss: 'log_loss', 'brier', 'brier_sum'.
        method : str, optional
            For a rate 'wilson' (default), 'exact' (Clopper-Pearson) or 'bootstrap'; for other
            measures of counts 'bootstrap'; for losses 'score', which is Wilson's interval with the
            effective sample size (Dean and Pagano 2015) and never leaves the range of the loss.
            See `assessment.intervals`.
        level : float, default=0.95
            Confidence level.
        weights : {'counts', 'reliability'}
            'counts': a row of weight 2 stands for two rows. 'reliability': a row of weight 2 is one
            row that counts twice as much as a row of weight 1.
        draws, stratified, seed
            Options of the bootstrap. If stratified, every resample has the same number of rows of
            each class as the data.
        cost, reject, outlier
            Options of the measure 'cost', as in the method `cost`.
        """
        return interval_of(
            self,
            measure,
            method=method,
            level=level,
            weights=weights,
            draws=draws,
            stratified=stratified,
            seed=seed,
            cost=cost,
            reject=reject,
            outlier=outlier,
        )

    @property
    def text(self) -> str:
        """Number of rows, measures with intervals, confusion matrix, and a line for each class."""
        rows, weight = int(self.rows.sum()), float(self.weight.sum())
        head = f"{rows} rows" + ("" if weight == rows else f" (weight {weight:.6g})")
        head += f" of {len(self.labels)} classes"
        if self.others:
            decided = int(self.rows[: len(self.labels)].sum())
            head += f", {decided} decided (coverage {self.coverage:.1%})"
        tables = [_measure_lines(self), _confusion_lines(self), _class_lines(self)]
        return "\n".join([head, *(line for table in tables for line in ("", *table))])

    def to_dict(self) -> dict[str, Any]:
        """Return the assessment as a dictionary of plain numbers, lists and texts."""
        overall = _overall_measures(self)
        return {
            "labels": self.labels.tolist(),
            "actions": [*self.labels.tolist(), *map(str, self.others)],
            "rows": int(self.rows.sum()),
            "weight": float(self.weight.sum()),
            "confusion": self.weight.tolist(),
            "decided": float(self.weight[: len(self.labels)].sum()),
            "measures": overall,
            "measured_on": {name: _measured_rows(self, name) for name in overall},
            "classes": _class_records(self),
            "averages": _average_records(self),
            "calibration": self.calibration().to_dict() if self.scored.weight[0].any() else None,
        }

    def frame(self, what: str = "classes") -> Any:
        """Return one of the results as a pandas frame.

        Parameters
        ----------
        what : {'classes', 'confusion', 'averages', 'measures'}, default 'classes'
            Result to return.
        """
        pandas = import_pandas()
        if what == "confusion":
            index = pandas.Index(list(self.actions), dtype=object, name="decided")
            columns = pandas.Index(self.labels.tolist(), name="true")
            return pandas.DataFrame(self.weight, index=index, columns=columns)
        if what == "classes":
            return pandas.DataFrame(_class_records(self)).set_index("class")
        if what == "averages":
            return pandas.DataFrame(_average_records(self)).set_index("average")
        if what == "measures":
            return pandas.DataFrame(_measure_records(self)).set_index("measure")
        raise OptionError.of("what", what, "'classes', 'confusion', 'averages' or 'measures'")


# --- records -------------------------------------------------------------------------------------


def _class_measures() -> list[Measure]:
    return [entry for entry in MEASURES.values() if entry.per_class and entry.printed == "always"]


def _overall_measures(assessment: Assessment) -> dict[str, float]:
    """Return a dict, by name, of the measures over all classes that this assessment has."""
    values = {
        entry.name: float(entry.value(assessment))
        for entry in MEASURES.values()
        if not entry.per_class and entry.applies(assessment)
    }
    if assessment.scored.weight[0].any():
        values["calibration_error"] = assessment.calibration_error()
    return values


def _measured_rows(assessment: Assessment, name: str) -> str:
    """Return which rows a measure is computed on: 'decided' or 'all'."""
    return MEASURES[name].rows if assessment.others and name in MEASURES else "all"


def _measure_records(assessment: Assessment) -> list[dict[str, Any]]:
    """Return a record for each measure, with its interval unless that would need a bootstrap."""
    records = []
    for name, value in _overall_measures(assessment).items():
        low = high = np.nan
        if name in MEASURES and MEASURES[name].kind != "counts":
            interval = assessment.interval(name)
            low, high = interval.low, interval.high
        rows = _measured_rows(assessment, name)
        records.append({"measure": name, "value": value, "low": low, "high": high, "rows": rows})
    return records


def _class_records(assessment: Assessment) -> list[dict[str, Any]]:
    """Return a record per class."""
    columns = {"class": assessment.labels.tolist()}
    columns |= {entry.name: entry.value(assessment).tolist() for entry in _class_measures()}
    columns["support"] = assessment.support.tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _average_records(assessment: Assessment) -> list[dict[str, Any]]:
    """Return a record per kind of average."""
    return [
        {
            "average": average,
            "precision": assessment.average("precision", average),
            "recall": assessment.average("recall", average),
            "f1": assessment.average("f", average),
        }
        for average in AVERAGES
    ]


# --- text ----------------------------------------------------------------------------------------


def _measure_lines(assessment: Assessment) -> list[str]:
    head = ["", "value", "95% interval", *(["of rows"] if assessment.others else [])]
    lines = []
    for record in _measure_records(assessment):
        name, low, high = record["measure"], record["low"], record["high"]
        title = MEASURES[name].title if name in MEASURES else name.replace("_", " ")
        interval = "" if np.isnan(low) else f"{low:.4f} to {high:.4f}"
        lines.append([title, _rate(record["value"]), interval, record["rows"]][: len(head)])
    return text_table("", head, lines)


def _confusion_lines(assessment: Assessment) -> list[str]:
    decided = [str(action) for action in assessment.actions]
    true = [str(label) for label in assessment.labels.tolist()]
    if len(true) <= _MAX_CLASSES:
        counts = zip(decided, assessment.weight, strict=True)
        cells = [[name, *map(_count, line)] for name, line in counts]
        return text_table("", ["decided \\ true", *true], cells)
    wrong = assessment.weight.copy()
    np.fill_diagonal(wrong, 0.0)
    largest = np.argsort(-wrong, axis=None, kind="stable")[:_LARGEST_CELLS]
    cells = [
        [decided[a], true[k], _count(wrong[a, k])]
        for a, k in zip(*np.unravel_index(largest, wrong.shape), strict=True)
        if wrong[a, k] > 0
    ]
    return text_table("Most often confused", ["decided", "true", "rows"], cells)


def _class_lines(assessment: Assessment) -> list[str]:
    entries = _class_measures()
    lines = []
    for record in _class_records(assessment):
        rates = [_rate(record[entry.name]) for entry in entries]
        lines.append([str(record["class"]), *rates, _count(record["support"])])
    for record in _average_records(assessment):
        rates = [_rate(record[e.name]) if e.name in record else "" for e in entries]
        lines.append([record["average"], *rates, ""])
    return text_table("", ["", *(entry.title for entry in entries), "support"], lines)


def _rate(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4f}"


def _count(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.6g}"


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationCurve:
    """Calibration curve: predicted probability against observed frequency in non-empty bins."""

    of: object  # the class, or 'top' for the most probable class
    low: Floats  # (m,) lower ends of the bins
    high: Floats  # (m,) upper ends of the bins
    predicted: Floats  # (m,) mean posterior of the rows in the bin
    observed: Floats  # (m,) share of the rows in the bin whose true class is that class
    weight: Floats  # (m,) weight of the rows in the bin

    @property
    def error(self) -> float:
        """Expected calibration error: weighted mean of |observed - predicted|."""
        return float(self._gaps() @ self.weight / self.weight.sum()) if len(self.weight) else np.nan

    @property
    def largest_error(self) -> float:
        """Maximum calibration error: largest |observed - predicted| of a bin."""
        return float(self._gaps().max(initial=0.0)) if len(self.weight) else np.nan

    def _gaps(self) -> Floats:
        return np.asarray(np.abs(self.observed - self.predicted))

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as a dictionary of plain numbers and lists."""
        names = ("low", "high", "predicted", "observed", "weight")
        return {"of": self.of, "error": self.error} | {
            name: getattr(self, name).tolist() for name in names
        }

    def frame(self) -> Any:
        """Return a pandas frame with a row for each bin."""
        facts = self.to_dict()
        del facts["of"], facts["error"]
        return import_pandas().DataFrame(facts)


def calibration_curve_from_sums(of: object, sums: Floats, *, bins: int) -> CalibrationCurve:
    """Return the calibration curve, given three sums for each of the B bins of a tally (3, B).

    `bins`, the number of bins of the curve, must divide B.
    """
    B = sums.shape[1]
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1 or B % bins:
        divisors = ", ".join(str(n) for n in range(1, B + 1) if B % n == 0)
        raise OptionError.of(
            "bins", bins, f"one of {divisors}: the curve merges the {B} bins of the tally"
        )
    weight, predicted, observed = sums.reshape(3, bins, -1).sum(axis=2)
    filled = weight > 0
    ends = np.arange(bins + 1) / bins
    return CalibrationCurve(
        of,
        ends[:-1][filled],
        ends[1:][filled],
        ratio((predicted[filled], weight[filled])),
        ratio((observed[filled], weight[filled])),
        weight[filled],
    )
