"""All measures of a classifier, from the tally of truth by decision.

An `Assessment` is a `Tally` that can be asked. Formulas of counts are in `assessment.rates`, by
name in `assessment.formulas`, of calibration in `assessment.calibration`, of intervals in
`assessment.intervals`; here they are brought together, with those of posteriors and of costs:

    log loss   mean of -log p(truth)                infinite if a true class had posterior 0
    Brier      mean of sum_k (p_k - [y = k])^2      with two classes half of it, mean (p - [y])^2
    cost       mean of cost[action, class]

Assessments of parts add, as tallies do: of files, folds, sites or machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from discriminant.assessment import pages, rates
from discriminant.assessment.calibration import CalibrationCurve, curve_of
from discriminant.assessment.formulas import check_scored, costing, loss_sums, rates_of
from discriminant.assessment.intervals import Interval, Weights
from discriminant.assessment.named_intervals import interval_of
from discriminant.errors import LabelError, OptionError
from discriminant.moments.tally import Tally
from discriminant.table.schema import Floats


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
        return float(rates.balanced_accuracy(self.weight))

    @property
    def mcc(self) -> float:
        """Matthews' correlation of truth and decision."""
        return float(rates.mcc(self.weight))

    @property
    def kappa(self) -> float:
        """Cohen's kappa: agreement beyond chance."""
        return float(rates.kappa(self.weight))

    # --- of each class ----------------------------------------------------------------------------

    @property
    def precision(self) -> Floats:
        """(K,) share that is right of the rows given to a class; NaN if there are none."""
        return rates.ratio(rates.precision(self.weight))

    @property
    def recall(self) -> Floats:
        """(K,) share of the rows of a class that are given to it; NaN if there are none."""
        return rates.ratio(rates.recall(self.weight))

    @property
    def specificity(self) -> Floats:
        """(K,) share of the rows of other classes that are not given to a class."""
        return rates.ratio(rates.specificity(self.weight))

    @property
    def f1(self) -> Floats:
        """(K,) harmonic mean of precision and recall."""
        return rates.f_score(self.weight)

    def f(self, beta: float = 1.0) -> Floats:
        """(K,) F of each class; recall counts `beta` times as much as precision."""
        return rates.f_score(self.weight, beta=rates.check_beta(beta))

    @property
    def support(self) -> Floats:
        """(K,) weight of the rows of each class."""
        return rates.true(self.weight)

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
            found = rates.ratio((found, found.sum(axis=axes[normalise], keepdims=True)))
        return found.T if transpose else found

    def average(
        self,
        measure: Literal["precision", "recall", "f"],
        average: rates.Average = "macro",
        *,
        beta: float = 1.0,
        zero_division: float = 0.0,
    ) -> float:
        """Precision, recall or F over the classes: 'macro', 'micro' or 'weighted' by support.

        A rate that is 0/0 counts as `zero_division`; NaN leaves it out.
        """
        if average not in rates.AVERAGES:
            raise OptionError.of("average", average, "'macro', 'micro' or 'weighted'")
        if measure not in ("precision", "recall", "f"):
            raise OptionError.of("measure", measure, "'precision', 'recall' or 'f'")
        beta = rates.check_beta(beta)
        found = rates.averaged(
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
        return float(costing(self, cost, reject, outlier)(self.weight))

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
        return pages.text_of(self)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts."""
        return pages.facts_of(self)

    def frame(self, what: str = "classes") -> Any:
        """A pandas frame: 'classes', 'confusion', 'averages' or 'measures'."""
        return pages.frame_of(self, what)

    # --- inside -----------------------------------------------------------------------------------

    def _rate(self, name: str) -> float:
        return float(rates.ratio(rates_of(self)[name](self.weight)))

    def _loss(self, name: str) -> float:
        weight, sums = loss_sums(self, name)
        return float(sums[0] / weight) if weight > 0 else np.nan

    def _code(self, label: Any) -> int:
        names = self.labels.tolist()
        if label not in names:
            raise LabelError.unknown([label], names)
        return int(names.index(label))
