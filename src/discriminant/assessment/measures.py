"""Measures as functions of the counts n[a, k]: rows of class k for which action a was taken.

    right_k = n[k, k]     true_k = sum_a n[a, k]     said_k = sum_l n[k, l]     N = sum of all

    accuracy     sum right / sum said       error             1 - accuracy
    coverage     sum said / N
    recall_k     right_k / true_k           precision_k       right_k / said_k
    specificity_k  share of the rows of other classes that are not said to be k
    F_k          (1 + b^2) right_k / (b^2 true_k + said_k)
    balanced accuracy   mean of recall over the classes that have rows
    MCC          (N sum right - sum true said) / sqrt((N^2 - sum true^2) (N^2 - sum said^2))
    kappa        (N sum right - sum true said) / (N^2 - sum true said)

Accuracy and error are those of the decided rows, the ones given to a class, so that they sum to
one; coverage says how many these are. All other measures are of all rows. There, actions that are
no classes (rejected rows among them) count in N and `true`, are never right and never wrong, and in
MCC are one more thing that is said: what scikit-learn finds if they are passed as labels. Without
such actions every row is decided. Counts may have axes before the last two, so that many tables are
measured at once.

A rate without rows below the line is NaN. In averages it counts as `zero_division`, and a class
that is neither true nor said of any row is left out: with 0, scikit-learn's own default.

Measures of a tally by their names.

A rate is a part over a whole, both sums of cells of the table; a measure of counts is any number
that follows from the table; a loss is the mean of what the posteriors of the rows were worth; a
cost is the mean price of the decisions. What formulas say is in `assessment.rates`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Literal

import numpy as np

from discriminant.decision.actions import OUTLIER, REJECT
from discriminant.decision.costs import Costs
from discriminant.errors import CostError, OptionError, PosteriorError
from discriminant.moments.confusion import Tally
from discriminant.table.blocks import Floats

Average = Literal["macro", "micro", "weighted"]
Fraction = tuple[Floats, Floats]  # above and below the line of a rate; both linear in the counts
Rate = Callable[[Floats], Fraction]
Measure = Callable[[Floats], Floats]

AVERAGES: tuple[Average, ...] = ("macro", "micro", "weighted")


def ratio(part: Fraction) -> Floats:
    """Above over below the line, NaN where nothing is below."""
    above, below = np.broadcast_arrays(*part)
    found = np.full(below.shape, np.nan)
    np.divide(above, below, out=found, where=below != 0)
    return found


def correct(cells: Floats) -> Floats:
    """(..., K) rows of each class given to it."""
    return np.asarray(np.einsum("...kk->...k", cells[..., : cells.shape[-1], :]))


def true_total(cells: Floats) -> Floats:
    """(..., K) rows of each class: its support."""
    return np.asarray(cells.sum(axis=-2))


def predicted_total(cells: Floats) -> Floats:
    """(..., K) rows given to each class."""
    return np.asarray(cells[..., : cells.shape[-1], :].sum(axis=-1))


def total(cells: Floats) -> Floats:
    """(...) all rows."""
    return np.asarray(cells.sum(axis=(-2, -1)))


# --- rates: one count over another ---------------------------------------------------------------


def accuracy(cells: Floats) -> Fraction:
    """Right, of those given to a class."""
    return correct(cells).sum(axis=-1), predicted_total(cells).sum(axis=-1)


def error(cells: Floats) -> Fraction:
    """Wrong, of those given to a class."""
    return (predicted_total(cells) - correct(cells)).sum(axis=-1), predicted_total(cells).sum(
        axis=-1
    )


def coverage(cells: Floats) -> Fraction:
    """Given to any class, of all."""
    return predicted_total(cells).sum(axis=-1), total(cells)


def recall(cells: Floats) -> Fraction:
    """(..., K) right, of the rows of a class."""
    return correct(cells), true_total(cells)


def precision(cells: Floats) -> Fraction:
    """(..., K) right, of the rows given to a class."""
    return correct(cells), predicted_total(cells)


def specificity(cells: Floats) -> Fraction:
    """(..., K) not given to a class, of the rows of others."""
    others = total(cells)[..., np.newaxis] - true_total(cells)
    return np.maximum(others - (predicted_total(cells) - correct(cells)), 0.0), others


def prevalence(cells: Floats) -> Fraction:
    """(..., K) rows of a class, of all."""
    return true_total(cells), total(cells)[..., np.newaxis]


def share(cells: Floats, place: int | None) -> Fraction:
    """Of the action at a place; None is an action that was never taken."""
    taken = 0.0 * total(cells) if place is None else cells[..., place, :].sum(axis=-1)
    return taken, total(cells)


RATES: dict[str, Rate] = {
    rate.__name__: rate
    for rate in (
        error,
        accuracy,
        coverage,
        precision,
        recall,
        specificity,
        prevalence,
    )
}


# --- other measures ------------------------------------------------------------------------------


def f_score(cells: Floats, *, beta: float = 1.0) -> Floats:
    """(..., K) F_beta of each class."""
    below = beta**2 * true_total(cells) + predicted_total(cells)
    return ratio(((1.0 + beta**2) * correct(cells), below))


def check_beta(beta: Any) -> float:
    """A number, 0 or more: how much more recall counts than precision."""
    if not isinstance(beta, int | float | np.floating | np.integer) or not 0 <= beta < np.inf:
        raise OptionError.of("beta", beta, "a number, 0 or more: 1 counts recall as precision")
    return float(beta)


def balanced_accuracy(cells: Floats) -> Floats:
    """(...) mean recall of the classes that have rows."""
    some = true_total(cells) > 0
    found = np.where(some, ratio(recall(cells)), 0.0).sum(axis=-1)
    return ratio((found, some.sum(axis=-1)))


def mcc(cells: Floats) -> Floats:
    """(...) Matthews' correlation; 0 where all rows are one class, or all are given to one."""
    spread = _spread(true_total(cells)) * _spread(cells.sum(axis=-1))
    found = ratio((_beyond_chance(cells), np.sqrt(spread)))
    return np.where(spread == 0, np.where(total(cells) > 0, 0.0, np.nan), found)


def kappa(cells: Floats) -> Floats:
    """(...) Cohen's kappa: NaN where chance alone would be right every time."""
    below = total(cells) ** 2 - (true_total(cells) * predicted_total(cells)).sum(axis=-1)
    return ratio((_beyond_chance(cells), below))


def average_over_classes(
    cells: Floats,
    measure: Literal["precision", "recall", "f"],
    average: Average,
    *,
    beta: float = 1.0,
    zero_division: float = 0.0,
) -> Floats:
    """(...) precision, recall or F over the classes that are true or said of some row.

    'macro' counts every class once, 'weighted' as often as it has rows, 'micro' sums what is above
    and below the line first. With `zero_division` NaN, undefined rates are left out.
    """
    if average == "micro":
        whole = (correct(cells), true_total(cells), predicted_total(cells))
        hit, own, told = (value.sum(axis=-1) for value in whole)
        below = {"precision": told, "recall": own, "f": beta**2 * own + told}[measure]
        found = ratio(((1.0 + beta**2) * hit if measure == "f" else hit, below))
        return np.where(np.isnan(found), zero_division, found)
    each = f_score(cells, beta=beta) if measure == "f" else ratio(RATES[measure](cells))
    occurs = (true_total(cells) + predicted_total(cells)) > 0
    each = np.where(np.isnan(each), zero_division, each)
    weight = np.where(
        occurs & ~np.isnan(each), true_total(cells) if average == "weighted" else 1.0, 0.0
    )
    return ratio(((weight * np.nan_to_num(each)).sum(axis=-1), weight.sum(axis=-1)))


def _beyond_chance(cells: Floats) -> Floats:
    """N sum right - sum true said, class by class."""
    N = total(cells)[..., np.newaxis]
    return np.asarray(
        (N * correct(cells) - true_total(cells) * predicted_total(cells)).sum(axis=-1)
    )


def _spread(counts: Floats) -> Floats:
    """N^2 - sum n^2 as sum n (N - n), which keeps its digits where one n is nearly all."""
    return np.asarray((counts * (counts.sum(axis=-1, keepdims=True) - counts)).sum(axis=-1))


_WAYS: dict[str, Measure] = {
    f"{average}_{'f1' if name == 'f' else name}": partial(
        average_over_classes, measure=name, average=average
    )
    for average in AVERAGES
    for name in ("precision", "recall", "f")
}
DECIDED = ("error", "accuracy")  # of the decided rows; all other measures are of all rows
MEASURES: dict[str, Measure] = {
    "f1": f_score,
    "balanced_accuracy": balanced_accuracy,
    "mcc": mcc,
    "kappa": kappa,
    **_WAYS,
}


LOSSES = ("log_loss", "brier", "brier_sum")
_SHARES = {"rejected": REJECT, "outliers": OUTLIER}


def rates_of(tally: Tally) -> dict[str, Rate]:
    """All rates, with the shares of the refusals that this tally may have."""
    places = {action: a for a, action in enumerate(tally.actions)}
    shares = {name: partial(share, place=places.get(action)) for name, action in _SHARES.items()}
    return RATES | shares


def formula_of(
    tally: Tally,
    measure: str,
    *,
    cost: Any = None,
    reject: float | None = None,
    outlier: float | None = None,
) -> Measure:
    """Any measure of counts, of tables (..., A, K) like that of the tally."""
    if measure == "cost" and cost is not None:
        return cost_formula(tally, cost, reject, outlier)
    if measure in MEASURES:
        return MEASURES[measure]
    rate = rates_of(tally).get(measure)
    if rate is None:
        names = [*rates_of(tally), *MEASURES, *LOSSES]
        allowed = f"one of {', '.join(names)}; or 'cost', with cost="
        raise OptionError.of("measure", measure, allowed)
    return partial(_ratio_of, rate)


def bounds_of(
    tally: Tally,
    measure: str,
    *,
    cost: Any = None,
    reject: float | None = None,
    outlier: float | None = None,
) -> tuple[float, float]:
    """The least and the largest value that a measure can have."""
    if measure == "cost":
        return 0.0, float(_prices(tally, cost, reject, outlier).max(initial=0.0))
    if measure == "log_loss":
        return 0.0, np.inf
    if measure in LOSSES:
        return 0.0, 1.0 if measure == "brier" and len(tally.labels) == 2 else 2.0
    return (-1.0 if measure in ("mcc", "kappa") else 0.0), 1.0


def cost_formula(tally: Tally, cost: Any, reject: float | None, outlier: float | None) -> Measure:
    """The mean price of a row."""
    prices = _prices(tally, cost, reject, outlier)
    return lambda cells: ratio(((cells * prices).sum(axis=(-2, -1)), total(cells)))


def loss_sums(tally: Tally, name: str) -> tuple[float, Floats]:
    """Weight of the rows that had posteriors, and (4,) sums of a loss; of two classes Brier halved.

    The sums are of w l, w l^2, w^2 l and w^2 l^2.
    """
    sums = (tally.scored.log_loss if name == "log_loss" else tally.scored.brier).sum(axis=1)
    if name == "brier" and len(tally.labels) == 2:
        sums = sums * np.array([0.5, 0.25, 0.5, 0.25])
    return float(tally.scored.weight[0].sum()), sums


def check_scored(tally: Tally, measure: str) -> None:
    """Refuse a loss where no row had posteriors."""
    if not tally.scored.weight[0].any():
        raise PosteriorError.not_given(measure)


def _prices(tally: Tally, cost: Any, reject: float | None, outlier: float | None) -> Floats:
    """(A, K) cost of each action; one that was taken must have one."""
    costs = Costs.of(cost, tally.labels)
    known: dict[Hashable, Any] = dict(zip(costs.actions, costs.cost, strict=True))
    outlier = reject if outlier is None else outlier
    known |= {a: c for a, c in ((REJECT, reject), (OUTLIER, outlier)) if c is not None}
    taken = tally.weight.sum(axis=1) > 0
    without = [a for a, some in zip(tally.actions, taken, strict=True) if some and a not in known]
    if without:
        raise CostError.missing_actions(without, list(known))
    prices = np.zeros(tally.weight.shape)
    for a, action in enumerate(tally.actions):
        prices[a] = known.get(action, 0.0)
    return prices


def _ratio_of(rate: Rate, cells: Floats) -> Floats:
    return ratio(rate(cells))
