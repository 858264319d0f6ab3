"""Thresholds of decisions, tuned on held-out rows by their cost, or by group for equal rates.

If posteriors are calibrated, no tuning is needed: the action with the least expected cost is
chosen, and a row is rejected if this cost exceeds the cost of rejecting. The functions in this
module are for posteriors that are not calibrated. They choose, by the mean cost of the held-out
rows, one of

    reject     a bound b: a row is rejected if its least expected cost exceeds b
    threshold  thresholds t with sum t = 1: the class with the largest P(k|x) / t_k is predicted

The mean cost changes only if the decision for a row changes, so it is enough to try the values at
which this happens. The best bound b is computed exactly. The K thresholds are tuned class by class,
until changing the threshold of a single class no longer lowers the cost.

Thresholds by group. With one threshold for all rows, the share of positive rows that are predicted
positive (the recall) may differ between groups of rows, such as sites or populations. A threshold
for each group makes the shares equal (Hardt, Price and Srebro 2016):

    equal opportunity   equal recall
    equalised rates     equal recall and equal false positive rate

The recall of a group with p positive rows is a multiple of 1/p, so the recalls of groups can only
be equal up to one row. Recall and false positive rate can only both be made exactly equal by random
decisions. Here they are made approximately equal: the threshold of each group minimises the larger
of the two differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.decision.actions import exceeds, least_cost, reject_cost
from discriminant.decision.costs import check_probability
from discriminant.decision.risk_and_cost_curves import HeldOutPosteriors, actual_costs, last_of_ties
from discriminant.errors import LabelError, OptionError, ShapeError, ThresholdError
from discriminant.errors.foreign_options import named_options
from discriminant.moments.probability_scores import TIE
from discriminant.table.blocks import Floats
from discriminant.table.labels import encode_labels

_ROUNDS = 50  # largest number of passes over all classes


@dataclass(frozen=True, slots=True, eq=False)
class TunedReject:
    """Tuned bound of the reject option."""

    # Rows whose least expected cost is larger are rejected; pass it as reject={"cost": bound} to
    # `Decision`.
    bound: float
    cost: float  # mean cost on the held-out rows
    rejected: float  # share of the weight of the held-out rows that is rejected

    @property
    def threshold(self) -> float:
        """Threshold on the largest posterior that is equivalent if every error costs 1."""
        return 1.0 - self.bound


@dataclass(frozen=True, slots=True, eq=False)
class TunedThreshold:
    """Tuned thresholds of K classes."""

    threshold: Floats  # (K,) with sum 1; for two classes the second is the usual threshold
    cost: float  # mean cost on the held-out rows
    untuned: float  # mean cost of deciding by least expected cost, for comparison


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
    """Return the bound of the expected cost above which rejecting is cheaper than deciding.

    `reject` is the cost of rejecting a row. The other arguments are those of `risk_coverage`.

    >>> log_posterior = np.log([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    >>> tuned = tuned_reject(log_posterior, np.array([0, 0, 0, 1]), reject=0.3)
    >>> round(tuned.bound, 3), round(tuned.cost, 3)
    (0.35, 0.075)
    """
    reject = reject_cost(reject)
    rows = HeldOutPosteriors.of(
        log_posterior, truth, classes=classes, sample_weight=sample_weight, costs=costs
    )
    best, expected = least_cost(rows.log_posterior, rows.costs)
    weight = rows.weight
    order = np.argsort(expected, kind="stable")
    reject = min(reject, float(np.finfo(np.float64).max) / max(float(weight.sum()), 1.0) / 4)
    # cost of deciding each row minus the cost of rejecting it
    extra = weight * (actual_costs(best, rows.codes, rows.costs) - reject)
    edge, total = _best_cut(expected[order], extra[order], last_of_ties(expected[order]))
    decided = weight[~exceeds(expected, edge)].sum() / weight.sum()
    cost = max(total / float(weight.sum()) + reject, 0.0)
    return TunedReject(max(edge, 0.0), cost, float(1.0 - decided))  # a bound of 0 rejects all rows


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
        Costs of predicting each class (other actions are ignored). By default every error costs 1.
    thresholds
        For two classes only: candidates for the threshold of the second class, in increasing order.
        By default, all thresholds that lead to different decisions are tried.

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
    class_costs = None if rows.costs is None else rows.costs.classes_only()
    cost_matrix = 1.0 - np.eye(K) if class_costs is None else class_costs.cost
    share = rows.weight / rows.weight.sum()
    row_costs = cost_matrix[:, rows.codes].T * share[:, np.newaxis]  # (n, K) cost of each decision
    untuned = float(row_costs[np.arange(n), least_cost(rows.log_posterior, class_costs)[0]].sum())
    logs = np.maximum(rows.log_posterior, -1e6)  # finite, and still lowest for impossible classes
    if thresholds is not None:
        return _best_candidate(logs, row_costs, thresholds, untuned)
    mean_cost = cost_matrix.sum(axis=0) / (K - 1)
    starts = [np.zeros(K), np.log(np.maximum(mean_cost, 1e-300))][: 1 if K == 2 else 2]
    tuned = [_tune_shifts(logs, row_costs, start) for start in starts]
    shift, cost = min(tuned, key=lambda pair: pair[1])
    limits = np.exp(-(shift - shift.min()))
    return TunedThreshold(limits / limits.sum(), cost, untuned)


def _tune_shifts(logs: Floats, row_costs: Floats, shift: Floats) -> tuple[Floats, float]:
    """Return the (K,) best shifts of the log posteriors, and their mean cost.

    The search starts from `shift` and improves the shift of one class at a time.
    """
    cost = _mean_cost(logs + shift, row_costs)
    K = logs.shape[1]
    for _ in range(1 if K == 2 else _ROUNDS):  # with two classes the first shift is optimal
        before = cost
        for k in range(K - 1 if K == 2 else 0, K):
            candidate = _best_shift(logs, row_costs, shift, k)
            after = _mean_cost(logs + candidate, row_costs)
            if after < cost:
                shift, cost = candidate, after
        if not cost < before:
            break
    return shift, cost


def _best_shift(logs: Floats, row_costs: Floats, shift: Floats, k: int) -> Floats:
    """Return the (K,) shifts of least mean cost, where only the shift of class k is changed."""
    others = logs + shift
    others[:, k] = -np.inf
    rival = others.argmax(axis=1)
    rows = np.arange(len(logs))
    gap = others[rows, rival] - logs[:, k]  # class k is decided where its shift is larger
    order = np.argsort(gap, kind="stable")
    last = np.append(np.flatnonzero(np.diff(gap[order]) > TIE), len(order) - 1)
    edge, _ = _best_cut(gap[order], (row_costs[:, k] - row_costs[rows, rival])[order], last)
    best = shift.copy()
    best[k] = edge
    return best


def _best_cut(increasing: Floats, costs: Floats, last: npt.NDArray[np.intp]) -> tuple[float, float]:
    """Return the cut with the smallest sum of the costs of all values below it, and this sum.

    The values are sorted in increasing order. `last` holds the last index of each run of equal
    values; a cut never divides a run.
    """
    sums = np.append(0.0, np.cumsum(costs)[last])
    ends, starts = increasing[last], increasing[last[:-1] + 1]
    middle = ends[:-1] + (starts - ends[:-1]) / 2
    margin = max(float(np.ptp(ends)), 1.0)
    cuts = np.concatenate([[ends[0] - margin], middle, [ends[-1] + margin]])
    best = int(sums.argmin())
    return float(cuts[best]), float(sums[best])


def _mean_cost(scores: Floats, row_costs: Floats) -> float:
    return float(row_costs[np.arange(len(scores)), scores.argmax(axis=1)].sum())


def _best_candidate(
    logs: Floats, row_costs: Floats, thresholds: npt.ArrayLike, untuned: float
) -> TunedThreshold:
    """Return the candidate threshold (for the second of two classes) with the least mean cost."""
    candidates = [
        check_probability(value, "thresholds")
        for value in np.ravel(np.asarray(thresholds, dtype=float))
    ]
    if logs.shape[1] != 2:
        raise ThresholdError.of_labels(candidates, list(range(logs.shape[1])))
    for i, (before, after) in enumerate(pairwise(candidates), start=1):
        if after <= before:
            raise ThresholdError.unsorted(i, before, after)
    p, limits = np.exp(logs), np.array(candidates)
    second = exceeds(p[:, 1:] * (1.0 - limits), p[:, :1] * limits)  # compared as in `Decision`
    costs = np.where(second, row_costs[:, 1:], row_costs[:, :1]).sum(axis=0)
    best = int(costs.argmin())
    threshold = candidates[best]
    return TunedThreshold(np.array([1 - threshold, threshold]), float(costs[best]), untuned)


CRITERIA = ("recall", "rates")


@dataclass(frozen=True, slots=True, eq=False)
class GroupThresholds:
    """Thresholds of G groups, with the rates on the rows on which the thresholds were chosen."""

    groups: npt.NDArray[Any]  # (G,) sorted
    threshold: Floats  # (G,) a row is positive if the posterior of the second class exceeds it
    recall: Floats  # (G,)
    false_positive_rate: Floats  # (G,)
    target_recall: float
    target_false_positive_rate: float

    @property
    def gap(self) -> float:
        """Difference between the largest and the smallest recall."""
        return float(np.ptp(self.recall))

    def decide(self, log_posterior: Any, groups: Any) -> npt.NDArray[np.intp]:
        """Return an array: 1 for each row that is predicted positive, else 0."""
        logs = np.asarray(log_posterior, dtype=np.float64)
        if logs.ndim != 2 or logs.shape[1] != 2:
            raise ThresholdError.of_labels([0.5], list(range(logs.shape[-1])))
        codes = self._codes_of(groups, len(logs))
        return (np.exp(logs[:, 1]) > self.threshold[codes]).astype(np.intp)

    def _codes_of(self, groups: Any, rows: int) -> npt.NDArray[np.intp]:
        given = np.asarray(groups)
        if given.shape != (rows,):
            raise ShapeError.of_lengths("groups", len(given), rows)
        place = {group: code for code, group in enumerate(self.groups.tolist())}
        unknown = [group for group in dict.fromkeys(given.tolist()) if group not in place]
        if unknown:
            raise ThresholdError.unknown_groups(unknown, self.groups.tolist())
        return np.array([place[group] for group in given.tolist()], dtype=np.intp)


@named_options
def group_thresholds(
    log_posterior: Any,
    truth: Any,
    groups: Any,
    *,
    criterion: str = "recall",
    recall: float | None = None,
    classes: Any = None,
    sample_weight: Any = None,
) -> GroupThresholds:
    """Return a threshold for each group of rows, so that the groups have equal rates.

    Parameters
    ----------
    log_posterior, truth, classes, sample_weight
        As in `risk_coverage`, with two classes; the second is the positive class. The rows should
        be held out.
    groups : array of shape (n,)
        Group of each row.
    criterion : {'recall', 'rates'}, default 'recall'
        With 'recall', the largest threshold at which the recall of the group reaches the target.
        With 'rates', the threshold at which recall and false positive rate differ least from their
        targets.
    recall : float, optional
        Target recall, for criterion='recall'. By default, and always for 'rates', the target is
        computed from all rows at the threshold 0.5.

    Returns
    -------
    GroupThresholds

    Examples
    --------
    >>> posterior = [[0.2, 0.8], [0.4, 0.6], [0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.9, 0.1]]
    >>> fair = group_thresholds(np.log(posterior), [1, 1, 0, 1, 1, 0], list("aaabbb"), recall=0.5)
    >>> fair.threshold.round(2).tolist(), fair.recall.tolist()
    ([0.7, 0.3], [0.5, 0.5])
    """
    rows = HeldOutPosteriors.of(log_posterior, truth, classes=classes, sample_weight=sample_weight)
    if rows.log_posterior.shape[1] != 2:
        raise ThresholdError.of_labels([0.5], list(range(rows.log_posterior.shape[1])))
    if criterion not in CRITERIA:
        raise OptionError.of("criterion", criterion, f"one of {', '.join(CRITERIA)}")
    if recall is not None and criterion != "recall":
        raise OptionError.of("recall", recall, "None with criterion='rates'")
    target = None if recall is None else check_probability(recall, "recall")
    if np.shape(groups) != (len(rows.codes),):
        raise ShapeError.of_lengths("groups", int(np.size(groups)), len(rows.codes))
    names, codes = encode_labels(groups)
    posterior, positive = np.exp(rows.log_posterior[:, 1]), rows.codes == 1
    weight = rows.weight
    if not (weight[positive].sum() > 0 and weight[~positive].sum() > 0):
        raise LabelError.one_class(int(rows.codes[0]))
    above = posterior > 0.5
    common_recall = float(weight[positive & above].sum() / weight[positive].sum())
    common_false = float(weight[~positive & above].sum() / weight[~positive].sum())
    target = common_recall if target is None else target
    thresholds, recalls, false_rates = [], [], []
    for g, name in enumerate(names.tolist()):
        own = codes == g
        cuts, hit, false = _rates_by_cut(posterior[own], positive[own], weight[own], name)
        if criterion == "recall":
            best = int(np.flatnonzero(hit >= target - 1e-12)[0])
        else:
            best = int(np.maximum(np.abs(hit - target), np.abs(false - common_false)).argmin())
        thresholds.append(cuts[best])
        recalls.append(hit[best])
        false_rates.append(false[best])
    return GroupThresholds(
        names, np.array(thresholds), np.array(recalls), np.array(false_rates), target, common_false
    )


def _rates_by_cut(
    posterior: Floats, positive: npt.NDArray[np.bool_], weight: Floats, name: object
) -> tuple[Floats, Floats, Floats]:
    """Return thresholds in descending order, with the recall and false positive rate of each."""
    total, others = weight[positive].sum(), weight[~positive].sum()
    if not total > 0:
        raise ThresholdError.group_without_positives(name)
    order = np.argsort(-posterior, kind="stable")
    values = posterior[order]
    last = np.append(np.flatnonzero(np.diff(values) < 0), len(values) - 1)
    hit = np.append(0.0, np.cumsum(np.where(positive, weight, 0.0)[order])[last] / total)
    missed = np.cumsum(np.where(positive, 0.0, weight)[order])[last]
    false = np.append(0.0, missed / others if others > 0 else np.zeros(len(last)))
    # halfway between neighbouring posteriors; above the largest and below the smallest at the ends
    middle = (values[last[:-1]] + values[last[:-1] + 1]) / 2.0
    lowest = values[-1] / 2.0 if values[-1] > 0 else -np.inf
    return np.concatenate([[1.0], middle, [lowest]]), hit, false
