"""Measures of a tally by their names.

A rate is a part over a whole, both sums of cells of the table; a measure of counts is any number
that follows from the table; a loss is the mean of what the posteriors of the rows were worth; a
cost is the mean price of the decisions. What formulas say is in `assessment.rates`.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

import numpy as np

from discriminant.assessment import rates
from discriminant.decision.actions import OUTLIER, REJECT
from discriminant.decision.costs import Costs
from discriminant.errors import CostError, OptionError, PosteriorError
from discriminant.moments.tally import Tally
from discriminant.table.schema import Floats

LOSSES = ("log_loss", "brier", "brier_sum")
_SHARES = {"rejected": REJECT, "outliers": OUTLIER}


def rates_of(tally: Tally) -> dict[str, rates.Rate]:
    """All rates, with the shares of the refusals that this tally may have."""
    places = {action: a for a, action in enumerate(tally.actions)}
    shares = {
        name: partial(rates.share, place=places.get(action)) for name, action in _SHARES.items()
    }
    return rates.RATES | shares


def formula_of(
    tally: Tally,
    measure: str,
    *,
    cost: Any = None,
    reject: float | None = None,
    outlier: float | None = None,
) -> rates.Measure:
    """Any measure of counts, of tables (..., A, K) like that of the tally."""
    if measure == "cost" and cost is not None:
        return costing(tally, cost, reject, outlier)
    if measure in rates.MEASURES:
        return rates.MEASURES[measure]
    rate = rates_of(tally).get(measure)
    if rate is None:
        names = [*rates_of(tally), *rates.MEASURES, *LOSSES]
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


def costing(tally: Tally, cost: Any, reject: float | None, outlier: float | None) -> rates.Measure:
    """The mean price of a row."""
    prices = _prices(tally, cost, reject, outlier)
    return lambda cells: rates.ratio(((cells * prices).sum(axis=(-2, -1)), rates.total(cells)))


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
        raise PosteriorError.none_kept(measure)


def _prices(tally: Tally, cost: Any, reject: float | None, outlier: float | None) -> Floats:
    """(A, K) cost of each action; one that was taken must have one."""
    costs = Costs.of(cost, tally.labels)
    known: dict[Hashable, Any] = dict(zip(costs.actions, costs.cost, strict=True))
    outlier = reject if outlier is None else outlier
    known |= {a: c for a, c in ((REJECT, reject), (OUTLIER, outlier)) if c is not None}
    taken = tally.weight.sum(axis=1) > 0
    without = [a for a, some in zip(tally.actions, taken, strict=True) if some and a not in known]
    if without:
        raise CostError.without(without, list(known))
    prices = np.zeros(tally.weight.shape)
    for a, action in enumerate(tally.actions):
        prices[a] = known.get(action, 0.0)
    return prices


def _ratio_of(rate: rates.Rate, cells: Floats) -> Floats:
    return rates.ratio(rate(cells))
