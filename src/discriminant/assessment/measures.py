"""All measures of a classifier, from the tally of truth by decision.

An `Assessment` is a `Tally` that can be asked. Formulas of counts are in `assessment.rates`, of
calibration in `assessment.calibration`, of intervals in `assessment.intervals`; here they are
brought together, with the measures of posteriors and of costs:

    log loss   mean of -log p(truth)                infinite if a true class had posterior 0
    Brier      mean of sum_k (p_k - [y = k])^2      with two classes half of it, mean (p - [y])^2
    cost       mean of cost[action, class]

Assessments of parts add, as tallies do: of files, folds, sites or machines.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from discriminant.assessment import intervals, pages, rates
from discriminant.assessment.calibration import CalibrationCurve, curve_of
from discriminant.assessment.intervals import Interval, Weights
from discriminant.decision.actions import OUTLIER, REJECT
from discriminant.decision.costs import Costs
from discriminant.errors import CostError, LabelError, OptionError, PosteriorError
from discriminant.moments.tally import Tally
from discriminant.table.schema import Floats

_SHARES = {"rejected": REJECT, "outliers": OUTLIER}
_LOSSES = ("log_loss", "brier", "brier_sum")
_METHODS = "'wilson', 'exact' (Clopper-Pearson) or 'bootstrap'"


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
        """Share of the rows that are given to a wrong class."""
        return self._rate("error")

    @property
    def accuracy(self) -> float:
        """Share of the rows that are given to their class."""
        return self._rate("accuracy")

    @property
    def coverage(self) -> float:
        """Share of the rows that are given to any class."""
        return self._rate("coverage")

    @property
    def selective_error(self) -> float:
        """Share that is wrong of the rows that are given to a class."""
        return self._rate("selective_error")

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
        return rates.f_score(self.weight, beta=beta)

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
        found = rates.averaged(
            self.weight, measure, average, beta=beta, zero_division=zero_division
        )
        return float(found)

    # --- of posteriors and costs ------------------------------------------------------------------

    @property
    def log_loss(self) -> float:
        """Mean of -log posterior of the true class; NaN without posteriors."""
        return self._loss("log_loss")[0]

    @property
    def brier(self) -> float:
        """Mean squared distance of posterior and truth, as scikit-learn's brier_score_loss.

        Two classes: of the probability of one of them (0 to 1); more: summed over all (0 to 2).
        """
        return self._loss("brier")[0]

    @property
    def brier_sum(self) -> float:
        """Mean squared distance summed over all classes, of two classes too (0 to 2)."""
        return self._loss("brier_sum")[0]

    def calibration(self, label: Any = None, *, bins: int = 10) -> CalibrationCurve:
        """Probability against outcome: of one class, or of the most probable class (None)."""
        if not self.scored.weight[0].any():
            raise PosteriorError.none_kept("calibration")
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
        return float(self._costing(cost, reject, outlier)(self.weight))

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
            A rate: 'error', 'accuracy', 'coverage', 'selective_error', 'rejected', 'outliers',
            'precision', 'recall', 'specificity', 'prevalence'. Or 'f1', 'balanced_accuracy',
            'mcc', 'kappa', 'macro_f1' and the like, 'cost'. Or 'log_loss', 'brier', 'brier_sum'.
        method
            Of a rate 'wilson' (default), 'exact' (Clopper-Pearson) or 'bootstrap'; of other
            measures of counts 'bootstrap'; of losses 'normal'.
        weights
            'counts': a row of weight 2 is two rows. 'reliability': it is worth twice as much.
        draws, stratified, seed
            Of the bootstrap; stratified keeps the number of rows of each class.
        cost, reject, outlier
            Of the measure 'cost', as in the method `cost`.
        """
        level = intervals.check_level(level)
        if weights not in ("counts", "reliability"):
            raise OptionError.of("weights", weights, "'counts' or 'reliability'")
        if measure in _LOSSES:
            _only(method, "normal", measure)
            value, sums = self._loss(measure)
            weight = self.scored.weight.sum(axis=1)
            ends = intervals.mean_interval(sums, weight, level=level, weights=weights)
            return _interval(measure, np.asarray(value), ends, level, "normal")
        rate = self._rates().get(measure)
        if rate is not None and method in (None, "wilson", "exact"):
            way = method or "wilson"
            found, ends = intervals.rate_interval(
                self, rate, method=way, level=level, weights=weights
            )
            return _interval(measure, found, ends, level, way)
        formula = self._formula(measure, cost, reject, outlier)
        _only(method, "bootstrap", measure if rate is None else None)
        found, ends = intervals.bootstrap(
            self,
            formula,
            level=level,
            weights=weights,
            draws=draws,
            stratified=stratified,
            seed=seed,
        )
        return _interval(measure, found, ends, level, "bootstrap")

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

    def _rates(self) -> dict[str, rates.Rate]:
        places = {action: a for a, action in enumerate(self.actions)}
        shares = {
            name: partial(rates.share, place=places.get(action)) for name, action in _SHARES.items()
        }
        return rates.RATES | shares

    def _rate(self, name: str) -> float:
        return float(rates.ratio(self._rates()[name](self.weight)))

    def _formula(
        self, measure: str, cost: Any, reject: float | None, outlier: float | None
    ) -> rates.Measure:
        """Any measure of counts, by name."""
        if measure == "cost" and cost is not None:
            return self._costing(cost, reject, outlier)
        if measure in rates.MEASURES:
            return rates.MEASURES[measure]
        rate = self._rates().get(measure)
        if rate is None:
            names = [*self._rates(), *rates.MEASURES, *_LOSSES]
            allowed = f"one of {', '.join(names)}; or 'cost', with cost="
            raise OptionError.of("measure", measure, allowed)
        return partial(_ratio_of, rate)

    def _costing(self, cost: Any, reject: float | None, outlier: float | None) -> rates.Measure:
        prices = self._prices(cost, reject, outlier)
        return lambda cells: rates.ratio(((cells * prices).sum(axis=(-2, -1)), rates.total(cells)))

    def _prices(self, cost: Any, reject: float | None, outlier: float | None) -> Floats:
        """(A, K) cost of each action; one that was taken must have one."""
        costs = Costs.of(cost, self.labels)
        known: dict[Hashable, Any] = dict(zip(costs.actions, costs.cost, strict=True))
        outlier = reject if outlier is None else outlier
        known |= {a: c for a, c in ((REJECT, reject), (OUTLIER, outlier)) if c is not None}
        taken = self.weight.sum(axis=1) > 0
        without = [
            a for a, some in zip(self.actions, taken, strict=True) if some and a not in known
        ]
        if without:
            raise CostError.without(without, list(known))
        prices = np.zeros(self.weight.shape)
        for a, action in enumerate(self.actions):
            prices[a] = known.get(action, 0.0)
        return prices

    def _loss(self, name: str) -> tuple[float, Floats]:
        """Mean loss, and its (4,) sums; of two classes Brier is halved."""
        sums = (self.scored.log_loss if name == "log_loss" else self.scored.brier).sum(axis=1)
        if name == "brier" and len(self.labels) == 2:
            sums = sums * np.array([0.5, 0.25, 0.5, 0.25])
        weight = self.scored.weight[0].sum()
        return (float(sums[0] / weight) if weight > 0 else np.nan), sums

    def _code(self, label: Any) -> int:
        names = self.labels.tolist()
        if label not in names:
            raise LabelError.unknown([label], names)
        return int(names.index(label))


def interval_over(
    parts: Sequence[Tally],
    measure: str,
    *,
    method: Literal["t", "bootstrap"] = "t",
    level: float = 0.95,
    draws: int = 2000,
    seed: Any = 0,
) -> Interval:
    """A measure with an interval by how it differs among parts: folds, sites, files.

    't': mean over the parts, each counted once, with the t law of their number less one;
    'bootstrap': of the whole, with percentiles over parts drawn with replacement. Folds share
    training rows, so that these intervals of a cross-validation are rather too short.
    """
    if method not in ("t", "bootstrap"):
        raise OptionError.of("method", method, "'t' or 'bootstrap'")
    level = intervals.check_level(level)
    if len(parts) < 2:
        raise OptionError.of("parts", len(parts), "two or more tallies, to see how they differ")
    first = Assessment.of_tally(sum(parts[1:], parts[0]))
    formula = first._formula(measure, None, None, None)
    found, ends = intervals.over_parts(
        parts, formula, method=method, level=level, draws=draws, seed=seed
    )
    return _interval(measure, found, ends, level, method)


def _ratio_of(rate: rates.Rate, cells: Floats) -> Floats:
    return rates.ratio(rate(cells))


def _only(method: str | None, possible: str, measure: str | None) -> None:
    """Refuse another method than the one there is for a measure; without one, for a rate."""
    if method in (None, possible):
        return
    if measure is None:
        raise OptionError.of("method", method, _METHODS)
    raise OptionError.of("method", method, f"'{possible}': {measure} is no share of rows")


def _interval(
    measure: str, value: Floats, ends: tuple[Floats, Floats], level: float, method: str
) -> Interval:
    found = [float(v) if np.ndim(v) == 0 else np.asarray(v) for v in (value, *ends)]
    return Interval(measure, found[0], found[1], found[2], level, method)
