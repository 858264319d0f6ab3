"""All measures of a classifier, from the tally of truth by decision.

An `Assessment` is a `Tally` that can be asked. Formulas of counts are in `assessment.rates`, by
name in `assessment.formulas`, of calibration in `assessment.calibration`, of intervals in
`assessment.intervals`; here they are brought together, with those of posteriors and of costs:

    log loss   mean of -log p(truth)                infinite if a true class had posterior 0
    Brier      mean of sum_k (p_k - [y = k])^2      with two classes half of it, mean (p - [y])^2
    cost       mean of cost[action, class]

Assessments of parts add, as tallies do: of files, folds, sites or machines.

An assessment as text, as a dictionary and as data frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from discriminant.assessment import measures
from discriminant.assessment.calibration import CalibrationCurve, curve_of
from discriminant.assessment.inference.summary import text_table
from discriminant.assessment.intervals import Interval, Weights, interval_of
from discriminant.assessment.measures import (
    AVERAGES,
    DECIDED,
    check_scored,
    cost_formula,
    loss_sums,
    rates_of,
)
from discriminant.errors import LabelError, OptionError
from discriminant.moments.confusion import Tally
from discriminant.table.blocks import Floats
from discriminant.table.cells import import_pandas

_CLASS_MEASURES = ("precision", "recall", "f1", "specificity", "support")
_SHOWN = 12  # classes whose confusion matrix is printed whole; of more, the largest cells
_LARGEST = 10
_NAMES = {"mcc": "MCC", "f1": "F1", "brier": "Brier"}


def text_of(found: Assessment) -> str:
    """A page: what was measured, the confusion matrix, a line for each class."""
    rows, weight = int(found.rows.sum()), float(found.weight.sum())
    worth = "" if weight == rows else f" (weight {weight:.6g})"
    lines = [f"{rows} rows{worth} of {len(found.labels)} classes{_decided_words(found)}", ""]
    lines += _measure_lines(found)
    lines += ["", *_confusion_lines(found), "", *_class_lines(found)]
    return "\n".join(lines)


def facts_of(found: Assessment) -> dict[str, Any]:
    """Plain numbers, lists and texts."""
    scored = bool(found.scored.weight[0].any())
    return {
        "labels": found.labels.tolist(),
        "actions": [*found.labels.tolist(), *map(str, found.others)],
        "rows": int(found.rows.sum()),
        "weight": float(found.weight.sum()),
        "confusion": found.weight.tolist(),
        "decided": float(found.weight[: len(found.labels)].sum()),
        "measures": measures_of(found),
        "measured_on": {name: rows_of(found, name) for name in measures_of(found)},
        "classes": class_records(found),
        "averages": average_records(found),
        "calibration": found.calibration().to_dict() if scored else None,
    }


def frame_of(found: Assessment, what: str) -> Any:
    """A pandas frame of the classes, the confusion matrix, the averages or all measures."""
    frame = import_pandas().DataFrame
    if what == "confusion":
        index = import_pandas().Index(list(found.actions), dtype=object, name="decided")
        columns = import_pandas().Index(found.labels.tolist(), name="true")
        return frame(found.weight, index=index, columns=columns)
    if what == "classes":
        return frame(class_records(found)).set_index("class")
    if what == "averages":
        return frame(average_records(found)).set_index("average")
    if what == "measures":
        return frame([_with_ends(found, name) for name in measures_of(found)]).set_index("measure")
    raise OptionError.of("what", what, "'classes', 'confusion', 'averages' or 'measures'")


def measures_of(found: Assessment) -> dict[str, float]:
    """The measures over all classes, those that there are."""
    names = ["error", "accuracy"]
    if found.others:
        names += ["coverage", "rejected", "outliers"]
    names += ["balanced_accuracy", "mcc", "kappa"]
    scored = bool(found.scored.weight[0].any())
    names += ["log_loss", "brier"] if scored else []
    facts = {name: float(getattr(found, name)) for name in names}
    return facts | ({"calibration_error": found.calibration_error()} if scored else {})


def rows_of(found: Assessment, measure: str) -> str:
    """The rows that a measure is of: 'decided' or 'all'."""
    return "decided" if found.others and measure in DECIDED else "all"


def class_records(found: Assessment) -> list[dict[str, Any]]:
    """A record for each class."""
    columns = {name: getattr(found, name).tolist() for name in _CLASS_MEASURES}
    return [
        {"class": label} | {name: values[k] for name, values in columns.items()}
        for k, label in enumerate(found.labels.tolist())
    ]


def average_records(found: Assessment) -> list[dict[str, Any]]:
    """A record for each way to average."""
    return [
        {
            "average": way,
            "precision": found.average("precision", way),
            "recall": found.average("recall", way),
            "f1": found.average("f", way),
        }
        for way in AVERAGES
    ]


def _with_ends(found: Assessment, name: str) -> dict[str, Any]:
    """A measure with its interval, where that needs no drawing."""
    if name in ("balanced_accuracy", "mcc", "kappa", "calibration_error"):
        value = measures_of(found)[name]
        low = high = np.nan
    else:
        ends = found.interval(name)
        value, low, high = ends.value, ends.low, ends.high
    of = rows_of(found, name)
    return {"measure": name, "value": value, "low": low, "high": high, "rows": of}


def _measure_lines(found: Assessment) -> list[str]:
    rows, several = [], bool(found.others)
    for name in measures_of(found):
        facts = _with_ends(found, name)
        ends = "" if np.isnan(facts["low"]) else f"{facts['low']:.4f} to {facts['high']:.4f}"
        title = _NAMES.get(name, name.replace("_", " "))
        rows.append([title, _rate(facts["value"]), ends, *([facts["rows"]] if several else [])])
    return text_table("", ["", "value", "95% interval", *(["of rows"] if several else [])], rows)


def _decided_words(found: Assessment) -> str:
    """How many rows are decided, where some are not."""
    if not found.others:
        return ""
    decided = found.rows[: len(found.labels)].sum()
    return f", {int(decided)} decided (coverage {found.coverage:.1%})"


def _confusion_lines(found: Assessment) -> list[str]:
    names = [str(action) for action in found.actions]
    truth = [str(label) for label in found.labels.tolist()]
    if len(truth) <= _SHOWN:
        cells = [[name, *map(_count, line)] for name, line in zip(names, found.weight, strict=True)]
        return text_table("", ["decided \\ true", *truth], cells)
    wrong = found.weight.copy()
    np.fill_diagonal(wrong, 0.0)
    places = np.argsort(-wrong, axis=None, kind="stable")[:_LARGEST]
    cells = [
        [names[a], truth[k], _count(wrong[a, k])]
        for a, k in zip(*np.unravel_index(places, wrong.shape), strict=True)
        if wrong[a, k] > 0
    ]
    return text_table("Most often confused", ["decided", "true", "rows"], cells)


def _class_lines(found: Assessment) -> list[str]:
    rows = [
        [
            str(line["class"]),
            *(_rate(line[name]) for name in _CLASS_MEASURES[:-1]),
            _count(line["support"]),
        ]
        for line in class_records(found)
    ]
    rows += [
        [
            line["average"],
            _rate(line["precision"]),
            _rate(line["recall"]),
            _rate(line["f1"]),
            "",
            "",
        ]
        for line in average_records(found)
    ]
    return text_table("", ["", "precision", "recall", "F1", "specificity", "support"], rows)


def _rate(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4f}"


def _count(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.6g}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assessment(Tally):
    """Rows of K classes by the A actions taken, and all that follows."""

    @classmethod
    def of_tally(cls, tally: Tally) -> Assessment:
        """A tally that was read or stored elsewhere."""
        sums = tally.rows, tally.weight, tally.weight2, tally.scored
        return cls(tally.labels, tally.actions, *sums)

    # --- of all rows ------------------------------------------------------------------------------

    @property
    def error(self) -> float:
        """Share of the decided rows that are given to a wrong class; NaN if none is decided."""
        return self._rate("error")

    @property
    def accuracy(self) -> float:
        """Share of the decided rows that are given to their class: 1 - `error`."""
        return self._rate("accuracy")

    @property
    def coverage(self) -> float:
        """Share of all rows that are decided, that is, given to a class."""
        return self._rate("coverage")

    @property
    def rejected(self) -> float:
        """Share of the rows that are rejected."""
        return self._rate("rejected")

    @property
    def outliers(self) -> float:
        """Share of the rows that are found unlike every class."""
        return self._rate("outliers")

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall of the classes that have rows."""
        return float(measures.balanced_accuracy(self.weight))

    @property
    def mcc(self) -> float:
        """Matthews' correlation of truth and decision."""
        return float(measures.mcc(self.weight))

    @property
    def kappa(self) -> float:
        """Cohen's kappa: agreement beyond chance."""
        return float(measures.kappa(self.weight))

    # --- of each class ----------------------------------------------------------------------------

    @property
    def precision(self) -> Floats:
        """(K,) share that is right of the rows given to a class; NaN if there are none."""
        return measures.ratio(measures.precision(self.weight))

    @property
    def recall(self) -> Floats:
        """(K,) share of the rows of a class that are given to it; NaN if there are none."""
        return measures.ratio(measures.recall(self.weight))

    @property
    def specificity(self) -> Floats:
        """(K,) share of the rows of other classes that are not given to a class."""
        return measures.ratio(measures.specificity(self.weight))

    @property
    def f1(self) -> Floats:
        """(K,) harmonic mean of precision and recall."""
        return measures.f_score(self.weight)

    def f(self, beta: float = 1.0) -> Floats:
        """(K,) F of each class; recall counts `beta` times as much as precision."""
        return measures.f_score(self.weight, beta=measures.check_beta(beta))

    @property
    def support(self) -> Floats:
        """(K,) weight of the rows of each class."""
        return measures.true_total(self.weight)

    def confusion(
        self, *, transpose: bool = False, normalise: Literal["true", "decided", "all"] | None = None
    ) -> Floats:
        """(A, K) weight of the rows decided so (a row of the matrix) where a class is true.

        `transpose` puts true classes in rows, as scikit-learn does. `normalise` to shares of each
        true class, of each decision or of all rows.
        """
        axes: dict[Any, Any] = {"true": 0, "decided": 1, "all": (0, 1)}
        found = self.weight
        if normalise is not None:
            if normalise not in axes:
                raise OptionError.of("normalise", normalise, "'true', 'decided', 'all' or None")
            found = measures.ratio((found, found.sum(axis=axes[normalise], keepdims=True)))
        return found.T if transpose else found

    def average(
        self,
        measure: Literal["precision", "recall", "f"],
        average: measures.Average = "macro",
        *,
        beta: float = 1.0,
        zero_division: float = 0.0,
    ) -> float:
        """Precision, recall or F over the classes: 'macro', 'micro' or 'weighted' by support.

        A rate that is 0/0 counts as `zero_division`; NaN leaves it out.
        """
        if average not in measures.AVERAGES:
            raise OptionError.of("average", average, "'macro', 'micro' or 'weighted'")
        if measure not in ("precision", "recall", "f"):
            raise OptionError.of("measure", measure, "'precision', 'recall' or 'f'")
        beta = measures.check_beta(beta)
        found = measures.average_over_classes(
            self.weight, measure, average, beta=beta, zero_division=zero_division
        )
        return float(found)

    # --- of posteriors and costs ------------------------------------------------------------------

    @property
    def log_loss(self) -> float:
        """Mean of -log posterior of the true class; NaN without posteriors."""
        return self._loss("log_loss")

    @property
    def brier(self) -> float:
        """Mean squared distance of posterior and truth, as scikit-learn's brier_score_loss.

        Two classes: of the probability of one of them (0 to 1); more: summed over all (0 to 2).
        """
        return self._loss("brier")

    @property
    def brier_sum(self) -> float:
        """Mean squared distance summed over all classes, of two classes too (0 to 2)."""
        return self._loss("brier_sum")

    def calibration(self, label: Any = None, *, bins: int = 10) -> CalibrationCurve:
        """Probability against outcome: of one class, or of the most probable class (None)."""
        check_scored(self, "calibration")
        if label is None:
            return curve_of("top", self.scored.top, bins=bins)
        return curve_of(label, self.scored.bins[:, self._code(label)], bins=bins)

    def calibration_error(self, label: Any = None, *, bins: int = 15) -> float:
        """Expected calibration error, as `calibration`."""
        return self.calibration(label, bins=bins).error

    def cost(
        self, cost: Any, *, reject: float | None = None, outlier: float | None = None
    ) -> float:
        """Mean cost of a row under any cost matrix, whatever the decisions were made by.

        `cost` as in `Decision`; `reject` and `outlier` are what these refusals cost, `outlier` as
        much as `reject` unless it is given.
        """
        return float(cost_formula(self, cost, reject, outlier)(self.weight))

    # --- intervals --------------------------------------------------------------------------------

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
        """A measure with its interval; of a measure of each class, (K,) of them.

        Parameters
        ----------
        measure
            A rate: 'error', 'accuracy', 'coverage', 'rejected', 'outliers', 'precision',
            'recall', 'specificity', 'prevalence'. Or 'f1', 'balanced_accuracy', 'mcc', 'kappa',
            'macro_f1' and the like, 'cost'. Or 'log_loss', 'brier', 'brier_sum'.
        method
            Of a rate 'wilson' (default), 'exact' (Clopper-Pearson) or 'bootstrap'; of other
            measures of counts 'bootstrap'; of losses 'score': Wilson's with the effective sample
            size (Dean and Pagano 2015), which never leaves the range of the loss. See
            `assessment.intervals`.
        weights
            'counts': a row of weight 2 is two rows. 'reliability': it is worth twice as much.
        draws, stratified, seed
            Of the bootstrap; stratified keeps the number of rows of each class.
        cost, reject, outlier
            Of the measure 'cost', as in the method `cost`.
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

    # --- as pages ---------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The whole as a page of text."""
        return text_of(self)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts."""
        return facts_of(self)

    def frame(self, what: str = "classes") -> Any:
        """A pandas frame: 'classes', 'confusion', 'averages' or 'measures'."""
        return frame_of(self, what)

    # --- inside -----------------------------------------------------------------------------------

    def _rate(self, name: str) -> float:
        return float(measures.ratio(rates_of(self)[name](self.weight)))

    def _loss(self, name: str) -> float:
        weight, sums = loss_sums(self, name)
        return float(sums[0] / weight) if weight > 0 else np.nan

    def _code(self, label: Any) -> int:
        names = self.labels.tolist()
        if label not in names:
            raise LabelError.unknown([label], names)
        return int(names.index(label))
