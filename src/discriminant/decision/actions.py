"""Choose actions from log posteriors: least expected cost, reject option, outliers.

    expected cost of action a   R_a(x) = sum_k cost[a, k] P(k|x)
    decide                      the action of least expected cost
    reject by cost              if min_a R_a(x) > cost of rejecting, which is treated as an action
    reject by threshold         if max_k P(k|x) < threshold
    outlier                     if x is not typical of any class: its largest p-value < level

If every error costs 1, then min_a R_a = 1 - max_k P(k|x). A reject cost `c` is then equivalent to a
reject threshold of `1 - c`.

Ties. A share of 80 of 100 votes is computed as 0.7999999999999999 or 0.8, depending on the order of
summation. Therefore two costs count as equal if their relative difference is at most `TIE` = 1e-9.
The curves, the tuning and all exports compare costs in the same way:

    decide   the first action with R_a <= min R (1 + TIE)
    reject   if min R > c (1 + TIE); a threshold t is treated as a cost c = 1 - t

If no costs are given, the decision is the class that the classifier predicts: the posteriors are
compared exactly, without this tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.decision.costs import Costs, check_probability
from discriminant.errors import CostError, OptionError
from discriminant.moments.probability_scores import TIE
from discriminant.table.blocks import Floats, Labels

_FEW_ACTIONS = 8

Mask = npt.NDArray[np.bool_]  # (n,)


class Verdict(Enum):
    """Outcome for a row that is not decided: REJECT or OUTLIER."""

    REJECT = "too doubtful to decide"
    OUTLIER = "unlike every class"

    def __repr__(self) -> str:
        """Return 'REJECT' or 'OUTLIER'."""
        return self.name

    __str__ = __repr__

    def __gt__(self, other: object) -> bool:
        """Return True, so that outcomes come after all labels in sorted actions and tables."""
        return self.name > other.name if isinstance(other, Verdict) else True

    def __lt__(self, other: object) -> bool:
        """Return False: an outcome never comes before a label."""
        return self.name < other.name if isinstance(other, Verdict) else False


REJECT, OUTLIER = Verdict.REJECT, Verdict.OUTLIER


@dataclass(frozen=True, slots=True)
class Reject:
    """Reject option: a cost of rejecting, a threshold on the posterior, or both."""

    cost: float = np.inf  # cost of rejecting a row: 0 rejects all rows, infinity none
    threshold: float = 0.0  # rows whose largest posterior is below this are rejected

    @classmethod
    def of(cls, given: Any) -> Reject:
        """Create from a cost, or from a mapping with the keys 'cost', 'threshold' or both.

        With None, no row is rejected.

        >>> Reject.of(0.1), Reject.of({"threshold": 0.9})
        (Reject(cost=0.1, threshold=0.0), Reject(cost=inf, threshold=0.9))
        """
        if given is None or isinstance(given, Reject):
            return given or cls()
        if not isinstance(given, Mapping):
            return cls(reject_cost(given))
        if not given or not set(given) <= {"cost", "threshold"}:
            raise OptionError.of("reject", given, "a cost, {'cost': ...} or {'threshold': ...}")
        limit = check_probability(given.get("threshold", 0.0), "The reject threshold")
        return cls(reject_cost(given.get("cost", np.inf)), limit)


def expected_cost(log_posterior: Floats, costs: Costs | None = None) -> Floats:
    """Return an (n, A) array: the expected cost of each action for each row.

    Without `costs` the actions are the classes, and every error costs 1.
    """
    with np.errstate(under="ignore"):
        if costs is None:
            return np.asarray(-np.expm1(log_posterior))
        return np.asarray(np.exp(log_posterior) @ costs.cost.T)


def least_cost(
    log_posterior: Floats, costs: Costs | None = None
) -> tuple[npt.NDArray[np.intp], Floats]:
    """Return two (n,) arrays: the index of the action of least expected cost, and this cost.

    If several actions have the least cost, the first of them is chosen. With `costs`, all actions
    whose expected cost is within a relative `TIE` of the least one are equally good.
    """
    if costs is None:  # avoids a K x K matrix of ones for very many classes
        best = log_posterior.argmax(axis=1)
        largest = np.take_along_axis(log_posterior, best[:, np.newaxis], axis=1)[:, 0]
        return best, np.asarray(-np.expm1(largest))
    cost = expected_cost(log_posterior, costs)
    # for few actions, column by column is several times as fast as a minimum over short rows
    few = cost.shape[1] <= _FEW_ACTIONS
    least = reduce(np.minimum, cost.T) if few else cost.min(axis=1)
    return exceeds(cost.T, least).argmin(axis=0), least


def rejected(log_posterior: Floats, reject: Reject, costs: Costs | None = None) -> Mask:
    """Return a boolean array (n,): True where the row is rejected.

    If rejecting costs nothing, every row is rejected.

    >>> rejected(np.log([[0.1 + 0.7, 0.2]]), Reject(threshold=0.8))  # 0.1 + 0.7 < 0.8 in binary
    array([False])
    """
    doubtful = exceeds(least_cost(log_posterior, costs)[1], reject.cost)
    if reject.cost == 0.0:
        doubtful[:] = True
    error = -np.expm1(log_posterior.max(axis=1))
    return np.asarray(doubtful | exceeds(error, 1.0 - reject.threshold))


def exceeds(cost: Floats, bound: Floats | float) -> Mask:
    """Return a boolean array: True where the cost exceeds the bound by more than a relative `TIE`.

    >>> exceeds(np.array([0.2 + 1e-12, 0.21]), 0.2)
    array([False,  True])
    """
    return np.asarray(cost > bound * (1.0 + TIE))


def decided(
    log_posterior: Floats,
    *,
    labels: Labels,
    costs: Costs | None = None,
    reject: Reject | None = None,
    outliers: Mask | None = None,
) -> npt.NDArray[np.object_]:
    """Return the (n,) decisions, each an action of least expected cost, REJECT or OUTLIER.

    A row that is both rejected and an outlier is an OUTLIER.
    """
    names = labels.tolist() if costs is None else costs.actions
    table = np.empty(len(names), dtype=object)
    table[:] = names
    actions = table[least_cost(log_posterior, costs)[0]]
    if reject is not None:
        actions[rejected(log_posterior, reject, costs)] = REJECT
    if outliers is not None:
        actions[outliers] = OUTLIER
    return actions


def reject_cost(value: Any) -> float:
    """Return the cost of rejecting as a float; it must be a number of at least 0."""
    try:
        cost = float(value)
    except (TypeError, ValueError):
        raise CostError.of_reject(repr(value)) from None
    if not cost >= 0.0:
        raise CostError.of_reject(f"{cost:g}")
    return cost
