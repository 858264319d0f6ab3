"""Thresholds by group, so that the recall of two classes, or both error rates, are equal.

With one threshold for all rows, the share of positive rows that are predicted positive (the recall)
may differ between groups of rows, such as sites or populations. A threshold for each group makes
the shares equal (Hardt, Price and Srebro 2016):

    equal opportunity   equal recall
    equalised rates     equal recall and equal false positive rate

On n rows the recall of a group takes as many values as the group has positive rows, so it is equal
up to steps of one row. Both rates can be equal only approximately without random decisions:
the threshold of each group minimises the larger of the two differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.decision.costs import check_probability
from discriminant.decision.risk_and_cost_curves import HeldOutPosteriors
from discriminant.errors import LabelError, OptionError, ShapeError, ThresholdError
from discriminant.errors.foreign_options import named_options
from discriminant.table.blocks import Floats
from discriminant.table.labels import encode_labels

CRITERIA = ("recall", "rates")


@dataclass(frozen=True, slots=True, eq=False)
class GroupThresholds:
    """Thresholds of G groups, with the rates on the rows from which they were chosen."""

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
        """Return for each row 1 if it is predicted positive, else 0."""
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
        'recall': the largest threshold at which the recall of the group reaches the target.
        'rates': the threshold at which recall and false positive rate differ least from their
        targets.
    recall : float, optional
        Target recall, for criterion='recall'. None: the recall of all rows at the threshold 0.5,
        for both criteria.

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
    """Return thresholds from high to low, with the recall and the false positive rate of each."""
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
