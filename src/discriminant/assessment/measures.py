"""Measures of a confusion matrix (error, recall, MCC, ...), and the registry of all measures.

n[a, k] is the weight of the rows of class k for which action a was chosen.

    correct_k = n[k, k]   true_k = sum_a n[a, k]   predicted_k = sum_l n[k, l]   N = sum of all

    accuracy       sum correct / sum predicted     error          1 - accuracy
    coverage       sum predicted / N
    recall_k       correct_k / true_k              precision_k    correct_k / predicted_k
    specificity_k  share of the rows of the other classes that are not predicted as k
    F_k            (1 + b^2) correct_k / (b^2 true_k + predicted_k)
    balanced accuracy   mean of recall over the classes that have rows
    MCC            (N sum correct - sum true predicted)
                       / sqrt((N^2 - sum true^2) (N^2 - sum predicted^2))
    kappa          (N sum correct - sum true predicted) / (N^2 - sum true predicted)
    log loss       mean of -log p(true class)         infinite if a true class had posterior 0
    Brier          mean of sum_k (p_k - [y = k])^2    with two classes half of it, mean (p - [y])^2
    cost           mean of cost[action, class]

Accuracy and error are computed on the decided rows (rows that are assigned to a class), so that
they sum to one. Coverage is the share of rows that are decided. All other measures use all rows: a
row whose action is not a class, such as a rejection, counts in N and in `true`, and is neither
correct nor wrong. MCC treats all actions that are not classes as one more predicted class. The
results equal those of scikit-learn if these actions are passed as labels.

The counts `cells` have the shape (..., A, K): the leading axes, if there are any, count several
confusion matrices. A result has one entry for each matrix, or the shape (..., K) with one entry for
each class.

A rate with denominator 0 is NaN. An average replaces a NaN rate by `zero_division`; it leaves out
classes that are neither the true nor the predicted class of any row. zero_division=0 is
scikit-learn's default.

To add a measure, write its formula and append one `Measure` to `_REGISTRY`. The attributes
of `Assessment`, its methods `interval`, `to_dict` and `frame`, and the printed text all read the
registry. `Study.choose(by=...)` reads it too, for entries that have a `criterion`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from discriminant.decision.actions import OUTLIER, REJECT
from discriminant.decision.costs import Costs
from discriminant.errors import CostError, OptionError, PosteriorError
from discriminant.moments.confusion import Tally
from discriminant.table.blocks import Floats

Average = Literal["macro", "micro", "weighted"]
Bounds = tuple[float, float]
Fraction = tuple[Floats, Floats]  # numerator and denominator of a rate, both linear in the counts
RateFormula = Callable[[Floats], Fraction]
CountFormula = Callable[[Floats], Floats]

AVERAGES: tuple[Average, ...] = ("macro", "micro", "weighted")


def ratio(fraction: Fraction) -> Floats:
    """Return numerator over denominator, NaN where the denominator is 0."""
    numerator, denominator = np.broadcast_arrays(*fraction)
    quotient = np.full(denominator.shape, np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator != 0)
    return quotient


def correct(cells: Floats) -> Floats:
    """Return the weight of the correctly classified rows of each class, (..., K)."""
    return np.asarray(np.einsum("...kk->...k", cells[..., : cells.shape[-1], :]))


def true_total(cells: Floats) -> Floats:
    """Return the weight of the rows of each class, which is its support, (..., K)."""
    return np.asarray(cells.sum(axis=-2))


def predicted_total(cells: Floats) -> Floats:
    """Return the weight of the rows predicted as each class, (..., K)."""
    return np.asarray(cells[..., : cells.shape[-1], :].sum(axis=-1))


def total(cells: Floats) -> Floats:
    """Return the total weight of each confusion matrix."""
    return np.asarray(cells.sum(axis=(-2, -1)))


# --- rates: numerator and denominator are sums of counts -----------------------------------------


def accuracy(cells: Floats) -> Fraction:
    """Return the weights of the correct and of the decided rows of each confusion matrix."""
    return correct(cells).sum(axis=-1), predicted_total(cells).sum(axis=-1)


def error(cells: Floats) -> Fraction:
    """Return the weights of the misclassified and of the decided rows of each matrix."""
    predicted = predicted_total(cells)
    return (predicted - correct(cells)).sum(axis=-1), predicted.sum(axis=-1)


def coverage(cells: Floats) -> Fraction:
    """Return the weights of the decided and of all rows of each confusion matrix."""
    return predicted_total(cells).sum(axis=-1), total(cells)


def recall(cells: Floats) -> Fraction:
    """Return, for each class, the weights of its correct rows and of all its rows, (..., K)."""
    return correct(cells), true_total(cells)


def precision(cells: Floats) -> Fraction:
    """Return, for each class, the weights of its correct rows and of all rows predicted as it.

    Both results have shape (..., K).
    """
    return correct(cells), predicted_total(cells)


def specificity(cells: Floats) -> Fraction:
    """Return the numerator and the denominator of the specificity of each class k, (..., K).

    The numerator is the weight of the rows of other classes that are not predicted as k; the
    denominator is the weight of all rows of other classes.
    """
    others = total(cells)[..., np.newaxis] - true_total(cells)
    return np.maximum(others - (predicted_total(cells) - correct(cells)), 0.0), others


def prevalence(cells: Floats) -> Fraction:
    """Return the weight of the rows of each class, (..., K), and of all rows together, (..., 1)."""
    return true_total(cells), total(cells)[..., np.newaxis]


def action_share(cells: Floats, *, place: int | None) -> Fraction:
    """Return the weight of the rows with one action, and the weight of all rows.

    `place` is the index of the action; None means that no row has it.
    """
    chosen = 0.0 * total(cells) if place is None else cells[..., place, :].sum(axis=-1)
    return chosen, total(cells)


# --- other functions of the counts ---------------------------------------------------------------


def f_score(cells: Floats, *, beta: float = 1.0) -> Floats:
    """Return the F score of each class, (..., K).

    Recall counts `beta` times as much as precision.
    """
    denominator = beta**2 * true_total(cells) + predicted_total(cells)
    return ratio(((1.0 + beta**2) * correct(cells), denominator))


def check_beta(beta: Any) -> float:
    """Return `beta`, the weight of recall relative to precision; a negative weight is an error."""
    if not isinstance(beta, int | float | np.floating | np.integer) or not 0 <= beta < np.inf:
        raise OptionError.of(
            "beta", beta, "a number, 0 or more: at 1 recall counts as much as precision"
        )
    return float(beta)


def balanced_accuracy(cells: Floats) -> Floats:
    """Return the mean recall of the classes that have rows, for each confusion matrix."""
    occurs = true_total(cells) > 0
    sums = np.where(occurs, ratio(recall(cells)), 0.0).sum(axis=-1)
    return ratio((sums, occurs.sum(axis=-1)))


def mcc(cells: Floats) -> Floats:
    """Return the Matthews correlation of each confusion matrix.

    The correlation is 0 where all rows are of one class, or all rows are predicted as one class.
    """
    variation = _sum_of_products(true_total(cells)) * _sum_of_products(cells.sum(axis=-1))
    correlation = ratio((_beyond_chance(cells), np.sqrt(variation)))
    return np.where(variation == 0, np.where(total(cells) > 0, 0.0, np.nan), correlation)


def kappa(cells: Floats) -> Floats:
    """Return Cohen's kappa; NaN where the agreement expected by chance is already 1."""
    denominator = total(cells) ** 2 - (true_total(cells) * predicted_total(cells)).sum(axis=-1)
    return ratio((_beyond_chance(cells), denominator))


def average_over_classes(
    cells: Floats,
    measure: Literal["precision", "recall", "f"],
    average: Average,
    *,
    beta: float = 1.0,
    zero_division: float = 0.0,
) -> Floats:
    """Return the average of precision, recall or F over the classes that occur.

    Classes that are neither the true nor the predicted class of any row are left out. 'macro'
    weights all classes equally, 'weighted' by their support; 'micro' sums numerators and
    denominators before it divides. If `zero_division` is NaN, undefined rates are left out.
    """
    hits, own, predicted = correct(cells), true_total(cells), predicted_total(cells)
    if average == "micro":
        hits, own, predicted = (counts.sum(axis=-1) for counts in (hits, own, predicted))
        below = {"precision": predicted, "recall": own, "f": beta**2 * own + predicted}[measure]
        pooled = ratio(((1.0 + beta**2) * hits if measure == "f" else hits, below))
        return np.where(np.isnan(pooled), zero_division, pooled)
    if measure == "f":
        values = f_score(cells, beta=beta)
    else:
        values = ratio((hits, own if measure == "recall" else predicted))
    values = np.where(np.isnan(values), zero_division, values)
    counted = (own + predicted > 0) & ~np.isnan(values)
    weight = np.where(counted, own if average == "weighted" else 1.0, 0.0)
    return ratio(((weight * np.nan_to_num(values)).sum(axis=-1), weight.sum(axis=-1)))


def _beyond_chance(cells: Floats) -> Floats:
    """Return the agreement beyond chance: `N sum correct - sum true * predicted`, over classes."""
    N = total(cells)[..., np.newaxis]
    return np.asarray(
        (N * correct(cells) - true_total(cells) * predicted_total(cells)).sum(axis=-1)
    )


def _sum_of_products(counts: Floats) -> Floats:
    """Return `N^2 - sum n^2` for counts n whose sum is N, computed as `sum n (N - n)`.

    This is accurate even if one of the counts is nearly N.
    """
    return np.asarray((counts * (counts.sum(axis=-1, keepdims=True) - counts)).sum(axis=-1))


# --- losses of probabilities ---------------------------------------------------------------------


def log_loss_sums(tally: Tally) -> Floats:
    """Return four sums over rows, from which the mean log loss and its interval are computed.

    With l the log loss of a row and w its weight, the sums are those of w l, w l^2, w^2 l and
    w^2 l^2.
    """
    return np.asarray(tally.scored.log_loss.sum(axis=1))


def brier_sums(tally: Tally) -> Floats:
    """Return the same four sums as `log_loss_sums`, with the Brier score as the loss `l`.

    The score is the squared distance of the posteriors from the indicator of the true class.
    """
    return np.asarray(tally.scored.brier.sum(axis=1))


def halved_brier_sums(tally: Tally) -> Floats:
    """Return the same four sums as `log_loss_sums`, with scikit-learn's Brier score as the loss.

    With two classes the loss is half the squared distance of `brier_sums`.
    """
    sums = brier_sums(tally)
    return sums * np.array([0.5, 0.25, 0.5, 0.25]) if len(tally.labels) == 2 else sums


def check_scored(tally: Tally, measure: str) -> None:
    """Raise an error if no row has posteriors."""
    if not tally.scored.weight[0].any():
        raise PosteriorError.not_given(measure)


# --- the registry --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure: how it is computed, named and printed.

    Parameters
    ----------
    name : str
        Name of the attribute of `Assessment`, argument of `interval`, and key in dictionaries and
        frames.
    formula : callable
        For a 'rate', a function that maps counts (..., A, K) to numerator and denominator, both of
        which are sums of counts. For 'counts', a function that maps counts (..., A, K) to values.
        For a 'loss', a function that maps a tally to four sums: of `w l`, `w l^2`, `w^2 l` and `w^2
        l^2`.
    title : str
        Heading in printed tables.
    kind : {'rate', 'counts', 'loss'}
        Rates have Wilson and exact intervals, other functions of the counts bootstrap intervals,
        mean losses score intervals.
    description : str
        Docstring of the attribute.
    per_class : bool
        True: one value for each class; False: one number.
    printed : {'always', 'refusals', 'never'}
        Whether text, dictionary and frame include the measure. 'refusals': only if some actions
        are not classes. Losses are included only if there are posteriors.
    attribute : bool
        Whether the measure is an attribute of `Assessment`.
    rows : {'all', 'decided'}
        Rows that the measure is computed on.
    action : hashable, optional
        Action that the formula is about; the index of its row in the table is passed as `place`.
    bounds : tuple or callable
        Least and largest possible value, or a function of the tally that returns them.
    criterion : str
        Name by which a study selects models by this measure; empty if a study cannot.
    best : {'lowest', 'highest'}
        Whether the lowest or the highest value is best.
    """

    name: str
    formula: Callable[..., Any]
    title: str
    kind: Literal["rate", "counts", "loss"]
    description: str = ""
    per_class: bool = False
    printed: Literal["always", "refusals", "never"] = "always"
    attribute: bool = True
    rows: Literal["all", "decided"] = "all"
    action: Hashable | None = None
    bounds: Bounds | Callable[[Tally], Bounds] = (0.0, 1.0)
    criterion: str = ""
    best: Literal["lowest", "highest"] = "lowest"

    def rate(self, tally: Tally) -> RateFormula:
        """Return the formula of a rate, for tables with the same actions as the tally."""
        if self.action is None:
            return self.formula
        places = {action: a for a, action in enumerate(tally.actions)}
        return partial(self.formula, place=places.get(self.action))

    def of_counts(self, tally: Tally) -> CountFormula:
        """Return a function of confusion matrices with the actions and classes of the tally."""
        if self.kind != "rate":
            return self.formula
        rate = self.rate(tally)
        return lambda cells: ratio(rate(cells))

    def value(self, tally: Tally) -> Any:
        """Return the value of the measure: a float, or an array of shape (K,)."""
        if self.kind == "loss":
            weight = float(tally.scored.weight[0].sum())
            return float(self.formula(tally)[0] / weight) if weight > 0 else np.nan
        value = self.of_counts(tally)(tally.weight)
        return value if self.per_class else float(value)

    def applies(self, tally: Tally) -> bool:
        """Return whether the text, dictionary and frame of this tally include the measure."""
        if self.kind == "loss" and not tally.scored.weight[0].any():
            return False
        return self.printed == "always" or (self.printed == "refusals" and bool(tally.others))


_REGISTRY = (
    Measure(
        "error",
        error,
        "error",
        "rate",
        "Share of the decided rows that are misclassified; NaN if no row is decided.",
        rows="decided",
        criterion="error",
    ),
    Measure(
        "accuracy",
        accuracy,
        "accuracy",
        "rate",
        "Share of the decided rows that are classified correctly: 1 - `error`.",
        rows="decided",
    ),
    Measure(
        "coverage",
        coverage,
        "coverage",
        "rate",
        "Share of all rows that are decided, that is, assigned to a class.",
        printed="refusals",
    ),
    Measure(
        "precision",
        precision,
        "precision",
        "rate",
        "Share of correct rows among the rows predicted as each class, (K,); NaN for a class "
        "without such rows.",
        per_class=True,
    ),
    Measure(
        "recall",
        recall,
        "recall",
        "rate",
        "Share of the rows of each class that are predicted correctly, (K,); NaN for a class "
        "without rows.",
        per_class=True,
    ),
    Measure(
        "f1",
        f_score,
        "F1",
        "counts",
        "Harmonic mean of precision and recall of each class, (K,).",
        per_class=True,
    ),
    Measure(
        "specificity",
        specificity,
        "specificity",
        "rate",
        "Share of the rows of other classes that are not predicted as each class, (K,).",
        per_class=True,
    ),
    Measure(
        "prevalence",
        prevalence,
        "prevalence",
        "rate",
        per_class=True,
        printed="never",
        attribute=False,
    ),
    Measure(
        "rejected",
        action_share,
        "rejected",
        "rate",
        "Share of the rows that are rejected.",
        printed="refusals",
        action=REJECT,
    ),
    Measure(
        "outliers",
        action_share,
        "outliers",
        "rate",
        "Share of the rows that are reported as outliers, far from every class.",
        printed="refusals",
        action=OUTLIER,
    ),
    Measure(
        "balanced_accuracy",
        balanced_accuracy,
        "balanced accuracy",
        "counts",
        "Mean recall of the classes that have rows.",
    ),
    Measure(
        "mcc",
        mcc,
        "MCC",
        "counts",
        "Matthews' correlation of true class and decision.",
        bounds=(-1.0, 1.0),
    ),
    Measure(
        "kappa",
        kappa,
        "kappa",
        "counts",
        "Cohen's kappa: agreement beyond chance.",
        bounds=(-1.0, 1.0),
    ),
    *(
        Measure(
            f"{average}_{'f1' if measure == 'f' else measure}",
            partial(average_over_classes, measure=measure, average=average),
            f"{average} {measure}",
            "counts",
            printed="never",
            attribute=False,
        )
        for average in AVERAGES
        for measure in ("precision", "recall", "f")
    ),
    Measure(
        "log_loss",
        log_loss_sums,
        "log loss",
        "loss",
        "Mean of -log posterior of the true class; NaN without posteriors.",
        bounds=(0.0, np.inf),
        criterion="log loss",
    ),
    Measure(
        "brier",
        halved_brier_sums,
        "Brier",
        "loss",
        "Mean squared distance of posterior and true class, as scikit-learn's brier_score_loss.\n\n"
        "With two classes it is the squared error of the probability of one class (0 to 1); with\n"
        "more classes, the squared errors are summed over all classes (0 to 2).",
        bounds=lambda tally: (0.0, 1.0 if len(tally.labels) == 2 else 2.0),
        criterion="Brier score",
    ),
    Measure(
        "brier_sum",
        brier_sums,
        "Brier sum",
        "loss",
        "Mean squared distance, summed over all classes even if there are only two (0 to 2).",
        printed="never",
        bounds=(0.0, 2.0),
    ),
)
MEASURES = {measure.name: measure for measure in _REGISTRY}


class _Number(Protocol):
    """Type of an attribute that is a single number."""

    def __get__(self, tally: Any, owner: type) -> float: ...


class _Vector(Protocol):
    """Type of an attribute that has a value for each class."""

    def __get__(self, tally: Any, owner: type) -> Floats: ...


class MeasureAttributes:
    """The registered measures as attributes of a tally.

    The loop below adds an attribute for every registered measure. The annotations are for type
    checkers; a measure without one has an attribute, too.
    """

    __slots__ = ()

    error: ClassVar[_Number]
    accuracy: ClassVar[_Number]
    coverage: ClassVar[_Number]
    rejected: ClassVar[_Number]
    outliers: ClassVar[_Number]
    balanced_accuracy: ClassVar[_Number]
    mcc: ClassVar[_Number]
    kappa: ClassVar[_Number]
    log_loss: ClassVar[_Number]
    brier: ClassVar[_Number]
    brier_sum: ClassVar[_Number]
    precision: ClassVar[_Vector]
    recall: ClassVar[_Vector]
    specificity: ClassVar[_Vector]
    f1: ClassVar[_Vector]


for _measure in _REGISTRY:
    if _measure.attribute:
        setattr(
            MeasureAttributes, _measure.name, property(_measure.value, doc=_measure.description)
        )


def count_formula(
    tally: Tally,
    measure: str,
    *,
    cost: Any = None,
    reject: float | None = None,
    outlier: float | None = None,
) -> CountFormula:
    """Return a measure as a function of tables (..., A, K) with the tally's actions and classes."""
    if measure == "cost" and cost is not None:
        return cost_formula(tally, cost, reject, outlier)
    entry = MEASURES.get(measure)
    if entry is None:
        kinds = ("rate", "counts", "loss")
        names = [entry.name for kind in kinds for entry in _REGISTRY if entry.kind == kind]
        allowed = f"one of {', '.join(names)}; or 'cost', with cost="
        raise OptionError.of("measure", measure, allowed)
    return entry.of_counts(tally)


def bounds_of(
    tally: Tally,
    measure: str,
    *,
    cost: Any = None,
    reject: float | None = None,
    outlier: float | None = None,
) -> Bounds:
    """Return the least and the largest possible value of a measure."""
    if measure == "cost":
        return 0.0, float(_prices(tally, cost, reject, outlier).max(initial=0.0))
    bounds = MEASURES[measure].bounds
    return bounds(tally) if callable(bounds) else bounds


def cost_formula(
    tally: Tally, cost: Any, reject: float | None, outlier: float | None
) -> CountFormula:
    """Return a function that computes the mean cost per row from tables of counts."""
    prices = _prices(tally, cost, reject, outlier)
    return lambda cells: ratio(((cells * prices).sum(axis=(-2, -1)), total(cells)))


def _prices(tally: Tally, cost: Any, reject: float | None, outlier: float | None) -> Floats:
    """Return the cost of each action and class, (A, K).

    Raises an error if an action that occurs has no cost.
    """
    costs = Costs.of(cost, tally.labels)
    known: dict[Hashable, Any] = dict(zip(costs.actions, costs.cost, strict=True))
    outlier = reject if outlier is None else outlier
    known |= {a: c for a, c in ((REJECT, reject), (OUTLIER, outlier)) if c is not None}
    occurs = tally.weight.sum(axis=1) > 0
    missing = [a for a, n in zip(tally.actions, occurs, strict=True) if n and a not in known]
    if missing:
        raise CostError.missing_actions(missing, list(known))
    prices = np.zeros(tally.weight.shape)
    for a, action in enumerate(tally.actions):
        prices[a] = known.get(action, 0.0)
    return prices
