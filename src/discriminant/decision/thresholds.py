"""Tune thresholds and reject bounds by their cost on held-out rows.

With calibrated posteriors there is nothing to tune: the least expected cost decides, and a row is
rejected where it exceeds the cost of rejecting. These are for posteriors that are not calibrated.

    reject     the bound b with the least mean cost: of deciding where the least expected cost is
               <= b, of rejecting elsewhere
    threshold  t with the least mean cost of deciding the largest P(k|x) / t_k, sum t = 1

The mean cost changes only where a row changes sides, so each search is exact: over all rows for a
bound, and class by class for K thresholds, until no change of a single class lowers the cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.decision.actions import exceeds, least_cost, reject_cost
from discriminant.decision.costs import unit
from discriminant.decision.curves import HeldOutPosteriors, last_of_ties, paid_costs
from discriminant.errors import ThresholdError
from discriminant.errors.foreign_options import named_options
from discriminant.moments.probability_scores import TIE
from discriminant.table.blocks import Floats

_ROUNDS = 50  # over all classes


@dataclass(frozen=True, slots=True, eq=False)
class TunedReject:
    """Tuned bound of the reject option."""

    bound: float  # reject where the least expected cost is larger; Decision's reject={"cost": ...}
    cost: float  # mean cost on the held-out rows
    rejected: float  # share of their weight that is rejected

    @property
    def threshold(self) -> float:
        """Equivalent threshold on the posterior, if every error costs 1."""
        return 1.0 - self.bound


@dataclass(frozen=True, slots=True, eq=False)
class TunedThreshold:
    """Tuned thresholds of K classes."""

    threshold: Floats  # (K,) sum to 1; with two classes the second is the usual threshold
    cost: float  # mean cost on the held-out rows
    untuned: float  # mean cost by least expected cost, for comparison


@named_options
def tuned_reject(
    log_posterior: Any,
    truth: Any,
    *,
    reject: float,
    classes: Any = None,
    costs: Any = None,
    sample_weight: Any = None,
) -> TunedReject:
    """Return the bound of the expected cost above which rejecting, at cost `reject`, is cheaper.

    The other arguments are those of `risk_coverage`.

    >>> log_posterior = np.log([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    >>> tuned = tuned_reject(log_posterior, np.array([0, 0, 0, 1]), reject=0.3)
    >>> round(tuned.bound, 3), round(tuned.cost, 3)
    (0.35, 0.075)
    """
    reject = reject_cost(reject)
    rows = HeldOutPosteriors.of(
        log_posterior, truth, classes=classes, sample_weight=sample_weight, costs=costs
    )
    best, doubt = least_cost(rows.log_posterior, rows.costs)
    weight = rows.weight
    order = np.argsort(doubt, kind="stable")
    reject = min(reject, float(np.finfo(np.float64).max) / max(float(weight.sum()), 1.0) / 4)
    gain = weight * (
        paid_costs(best, rows.codes, rows.costs) - reject
    )  # of deciding rather than rejecting
    edge, total = _best_cut(doubt[order], gain[order], last_of_ties(doubt[order]))
    decided = weight[~exceeds(doubt, edge)].sum() / weight.sum()
    cost = max(total / float(weight.sum()) + reject, 0.0)
    return TunedReject(max(edge, 0.0), cost, float(1.0 - decided))  # 0 rejects all


@named_options
def tuned_threshold(
    log_posterior: Any,
    truth: Any,
    *,
    classes: Any = None,
    costs: Any = None,
    sample_weight: Any = None,
    thresholds: npt.ArrayLike | None = None,
) -> TunedThreshold:
    """Return the thresholds with the least mean cost on held-out rows.

    Parameters
    ----------
    log_posterior, truth, classes, sample_weight
        As in `risk_coverage`.
    costs
        Costs of deciding each class (other actions are ignored); None: every error costs 1.
    thresholds
        For two classes, increasing candidates for the second; None: all that differ.

    Examples
    --------
    >>> log_posterior = np.log([[0.9, 0.1], [0.7, 0.3], [0.6, 0.4], [0.3, 0.7]])
    >>> tuned_threshold(log_posterior, np.array([0, 0, 1, 1])).threshold.round(3)
    array([0.652, 0.348])
    """
    rows = HeldOutPosteriors.of(
        log_posterior, truth, classes=classes, sample_weight=sample_weight, costs=costs
    )
    n, K = rows.log_posterior.shape
    some = None if rows.costs is None else rows.costs.classes_only()
    table = 1.0 - np.eye(K) if some is None else some.cost
    share = rows.weight / rows.weight.sum()
    price = table[:, rows.codes].T * share[:, np.newaxis]  # (n, K) of each decision
    untuned = float(price[np.arange(n), least_cost(rows.log_posterior, some)[0]].sum())
    logs = np.maximum(rows.log_posterior, -1e6)  # what is impossible stays last, and finite
    if thresholds is not None:
        return _of_candidates(logs, price, thresholds, untuned)
    usual = table.sum(axis=0) / (K - 1)
    starts = [np.zeros(K), np.log(np.maximum(usual, 1e-300))][: 1 if K == 2 else 2]
    tuned = [_descended(logs, price, start) for start in starts]
    shift, cost = min(tuned, key=lambda pair: pair[1])
    limits = np.exp(-(shift - shift.min()))
    return TunedThreshold(limits / limits.sum(), cost, untuned)


def _descended(logs: Floats, price: Floats, shift: Floats) -> tuple[Floats, float]:
    """Shifts of the logs, improved class by class, and the mean cost."""
    cost = _cost_of(logs + shift, price)
    K = logs.shape[1]
    for _ in range(1 if K == 2 else _ROUNDS):  # of two classes one is moved, once, to the best
        before = cost
        for k in range(K - 1 if K == 2 else 0, K):
            moved = _moved(logs, price, shift, k)
            after = _cost_of(logs + moved, price)
            if after < cost:
                shift, cost = moved, after
        if not cost < before:
            break
    return shift, cost


def _moved(logs: Floats, price: Floats, shift: Floats, k: int) -> Floats:
    """The best shift of class k alone: it takes the rows whose best other is not far above it."""
    others = logs + shift
    others[:, k] = -np.inf
    rival = others.argmax(axis=1)
    rows = np.arange(len(logs))
    apart = others[rows, rival] - logs[:, k]  # class k is decided where its shift is larger
    order = np.argsort(apart, kind="stable")
    last = np.append(np.flatnonzero(np.diff(apart[order]) > TIE), len(order) - 1)  # logs: relative
    edge, _ = _best_cut(apart[order], (price[:, k] - price[rows, rival])[order], last)
    found = shift.copy()
    found[k] = edge
    return found


def _best_cut(rising: Floats, gain: Floats, last: npt.NDArray[np.intp]) -> tuple[float, float]:
    """A value between the entries so that those below it have the least sum, and that sum.

    `last` are the places of the last of each run of equal entries, which are not divided.
    """
    sums = np.append(0.0, np.cumsum(gain)[last])
    ends, starts = rising[last], rising[last[:-1] + 1]
    middle = ends[:-1] + (starts - ends[:-1]) / 2
    wide = max(float(np.ptp(ends)), 1.0)
    cuts = np.concatenate([[ends[0] - wide], middle, [ends[-1] + wide]])
    best = int(sums.argmin())
    return float(cuts[best]), float(sums[best])


def _cost_of(scores: Floats, price: Floats) -> float:
    return float(price[np.arange(len(scores)), scores.argmax(axis=1)].sum())


def _of_candidates(
    logs: Floats, price: Floats, thresholds: npt.ArrayLike, untuned: float
) -> TunedThreshold:
    """The best of some thresholds for the second of two classes."""
    found = [unit(value, "thresholds") for value in np.ravel(np.asarray(thresholds, dtype=float))]
    if logs.shape[1] != 2:
        raise ThresholdError.of_labels(found, list(range(logs.shape[1])))
    for place in range(1, len(found)):
        if found[place] <= found[place - 1]:
            raise ThresholdError.unsorted(place, found[place - 1], found[place])
    p, limits = np.exp(logs), np.array(found)
    said = exceeds(p[:, 1:] * (1.0 - limits), p[:, :1] * limits)  # as `Decision` compares them
    costs = np.where(said, price[:, 1:], price[:, :1]).sum(axis=0)
    best = int(costs.argmin())
    return TunedThreshold(np.array([1 - found[best], found[best]]), float(costs[best]), untuned)
