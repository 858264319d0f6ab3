"""What deciding costs, over all thresholds at once.

Risk and coverage: rows are decided from the least doubtful on (least expected cost). Where a share
is rejected,

    risk = cost of the decided rows / their weight        area = integral of risk over coverage

Cost curve (Drummond and Holte 2006), two classes: a threshold is a line, and the best ones
make the lower envelope, which is the hull of the ROC curve:

    PC = p(+) C(-|+) / [p(+) C(-|+) + p(-) C(+|-)]
    normalised expected cost = FNR PC + FPR (1 - PC)      area = that of the lower envelope

The area is 1/4 for scores that say nothing and 0 for perfect ones.

Held-out rows at the door of curves and tuning: log posteriors, true classes, weights, costs.

Codes count the columns of the posteriors, from 0. Labels do as well, where it is known which column
is whose: by `classes`, by the names of the columns of a data frame, or by the labels of the costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.decision.actions import exceeds, least_cost
from discriminant.decision.costs import Costs
from discriminant.errors import LabelError, PosteriorError, ShapeError
from discriminant.errors.foreign_options import named_options
from discriminant.moments.probability_scores import TIE
from discriminant.posterior import checked_logs
from discriminant.table.blocks import Codes, Floats, Labels, open_weight
from discriminant.table.labels import classes_of_columns, code_labels, encode_labels


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """n rows of K classes that were not fitted."""

    log_posterior: Floats  # (n, K)
    codes: Codes  # (n,)
    weight: Floats  # (n,)
    costs: Costs | None

    @classmethod
    def of(
        cls,
        log_posterior: Any,
        truth: Any,
        *,
        classes: Any = None,
        sample_weight: Any = None,
        costs: Any = None,
    ) -> HeldOut:
        """Checked; the columns in the order of `classes`, or else as they are.

        >>> HeldOut.of(np.log([[0.9, 0.1]]), ["ill"], classes=["well", "ill"]).codes.tolist()
        [1]
        """
        known = _known(log_posterior, classes, costs)
        logs = checked_logs(log_posterior, None if known is None else len(known))
        if known is not None:
            logs = logs[:, _places(log_posterior, known)]
        codes = _codes(truth, known, logs.shape[1], by_label=classes is not None)
        if len(codes) != len(logs):
            raise ShapeError.of_lengths("log_posterior", len(logs), len(codes))
        weight = open_weight(sample_weight, len(codes))
        labels = np.arange(logs.shape[1]) if known is None else known
        return cls(
            logs,
            codes,
            np.ones(len(codes)) if weight is None else weight,
            None if costs is None else Costs.of(costs, labels),
        )


def _known(log_posterior: Any, classes: Any, costs: Any) -> Labels | None:
    """(K,) labels in the order that codes have; None if nothing says them."""
    if classes is None and isinstance(costs, Costs):
        return costs.labels
    if classes is None:
        classes = classes_of_columns(log_posterior, found=[], classes=None, what="log_posterior")
    if classes is None:
        return None
    found, place = encode_labels(classes)
    if len(found) < len(place):
        raise LabelError.duplicate_classes(np.asarray(classes).tolist())
    return np.asarray(found[place])


def _places(log_posterior: Any, known: Labels) -> list[int]:
    """(K,) the column of each label."""
    names = known.tolist()
    found = classes_of_columns(log_posterior, found=names, classes=names, what="log_posterior")
    return [list(found).index(name) for name in names]


def _codes(truth: Any, known: Labels | None, classes: int, *, by_label: bool) -> Codes:
    labels, place = encode_labels(truth)
    if by_label or labels.dtype.kind not in "iubf":
        if known is None:
            raise LabelError.without_classes(labels.tolist())
        return code_labels(labels[place], known)
    codes = labels.astype(np.intp)[place]
    for row in np.flatnonzero((codes < 0) | (codes >= classes)):
        raise LabelError.code_out_of_range(int(row), int(codes[row]), classes)
    return codes


@dataclass(frozen=True, slots=True, eq=False)
class RiskCoverage:
    """Risk of the decided rows for every share that can be rejected, rising coverage."""

    coverage: Floats  # (m,) share of the weight that is decided, up to 1
    risk: Floats  # (m,) mean cost of what is decided
    bound: Floats  # (m,) the largest least expected cost that is still decided
    area: float

    @property
    def rejected(self) -> Floats:
        """(m,) share of the weight that is rejected."""
        return np.asarray(1.0 - self.coverage)


@dataclass(frozen=True, slots=True, eq=False)
class CostCurve:
    """Lower envelope of the normalised expected cost, a corner at a time."""

    probability_cost: Floats  # (m,) from 0 to 1
    cost: Floats  # (m,) normalised expected cost
    threshold: Floats  # (m - 1,) least posterior of the second class to say it, between corners
    area: float

    def at(self, probability_cost: Floats) -> Floats:
        """The least cost at other probability costs."""
        return np.interp(probability_cost, self.probability_cost, self.cost)


@named_options
def risk_coverage(
    log_posterior: Any,
    truth: Any,
    *,
    classes: Any = None,
    sample_weight: Any = None,
    costs: Any = None,
) -> RiskCoverage:
    """Error, or cost, of the rows that are decided against their share.

    Parameters
    ----------
    log_posterior
        (n, K) logarithms of posteriors of rows that were not fitted.
    truth
        (n,) codes of the true classes, which count the columns from 0; or, with `classes`, labels.
    classes
        (K,) label of each column, such as `model.classes_`; a data frame may name its columns so.
    sample_weight
        (n,) how often each row counts.
    costs
        As the cost of `Decision`, or a `Costs`; None: every error costs 1.

    Examples
    --------
    >>> log_posterior = np.log([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    >>> found = risk_coverage(log_posterior, np.array([0, 0, 0, 1]))
    >>> found.coverage.tolist(), found.risk.tolist()
    ([0.25, 0.5, 0.75, 1.0], [0.0, 0.0, 0.0, 0.25])
    """
    rows = HeldOut.of(
        log_posterior, truth, classes=classes, sample_weight=sample_weight, costs=costs
    )
    best, doubt = least_cost(rows.log_posterior, rows.costs)
    paid, weight = paid_costs(best, rows.codes, rows.costs), rows.weight
    order = np.argsort(doubt, kind="stable")
    last = last_of_ties(doubt[order])
    decided = np.cumsum(weight[order])[last]
    cost = np.cumsum((weight * paid)[order])[last]
    some = decided > 0  # rows of no weight at the start
    decided, cost, bound = decided[some], cost[some], doubt[order][last][some]
    coverage, risk = decided / decided[-1], cost / decided
    area = float(np.diff(coverage, prepend=0.0) @ risk)
    return RiskCoverage(coverage, risk, bound, area)


@named_options
def cost_curve(
    log_posterior: Any, truth: Any, *, classes: Any = None, sample_weight: Any = None
) -> CostCurve:
    """Least normalised expected cost of two classes; the second one is the positive one.

    The arguments are those of `risk_coverage`.

    >>> log_posterior = np.log([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    >>> cost_curve(log_posterior, np.array([0, 0, 1, 1])).area
    0.0
    """
    rows = HeldOut.of(log_posterior, truth, classes=classes, sample_weight=sample_weight)
    if rows.log_posterior.shape[1] != 2:
        raise PosteriorError.of_shape(rows.log_posterior.shape, 2)
    fpr, tpr, least = _roc(rows)
    keep = _hull(fpr, tpr)
    across, up = np.diff(fpr[keep]), np.diff(tpr[keep])
    corner = across / (across + up)
    cost = (1.0 - tpr[keep][1:]) * corner + fpr[keep][1:] * (1.0 - corner)
    x = np.concatenate([[0.0], corner, [1.0]])
    y = np.concatenate([[0.0], cost, [0.0]])
    return CostCurve(x, y, least[keep], float(np.trapezoid(y, x)))


def last_of_ties(rising: Floats) -> npt.NDArray[np.intp]:
    """Places of the last of each run of equal costs, which are decided together or not at all.

    >>> last_of_ties(np.array([0.1, 0.2, 0.2 + 1e-16, 0.3])).tolist()
    [0, 2, 3]
    """
    return np.append(np.flatnonzero(exceeds(rising[1:], rising[:-1])), len(rising) - 1)


def paid_costs(decided: Codes, codes: Codes, costs: Costs | None) -> Floats:
    """(n,) what deciding so cost, now that the classes are known."""
    if costs is None:
        return np.asarray(decided != codes, dtype=np.float64)
    return np.asarray(costs.cost[decided, codes])


def _roc(rows: HeldOut) -> tuple[Floats, Floats, Floats]:
    """(m,) false and true positive rates from none to all, and the least posterior called +."""
    log_posterior, codes, weight = rows.log_posterior, rows.codes, rows.weight
    odds = log_posterior[:, 1] - log_posterior[:, 0]
    order = np.argsort(-odds, kind="stable")
    last = np.append(np.flatnonzero(np.diff(odds[order]) < -TIE), len(order) - 1)  # of log odds
    positive = np.cumsum((weight * (codes == 1))[order])[last]
    negative = np.cumsum((weight * (codes == 0))[order])[last]
    for code, total in enumerate((negative[-1], positive[-1])):
        if total <= 0:
            raise LabelError.one_class(1 - code)
    least = np.exp(log_posterior[order, 1])[last]
    starting = np.zeros(1)
    return (
        np.concatenate([starting, negative / negative[-1]]),
        np.concatenate([starting, positive / positive[-1]]),
        np.concatenate([np.full(1, np.inf), least]),
    )


def _hull(fpr: Floats, tpr: Floats) -> npt.NDArray[np.intp]:
    """Places on the upper convex hull, from (0, 0) to (1, 1), by pooling adjacent violators.

    The slopes of the hull are the isotonic regression of the share of positives on the order.
    """
    from scipy.optimize import isotonic_regression

    across, up = np.diff(fpr), np.diff(tpr)
    some = np.flatnonzero(across + up > 0)  # the others are rows of no weight
    weight = (across + up)[some]
    found = isotonic_regression(up[some] / weight, weights=weight, increasing=False)
    return np.asarray(np.append(0, some[found.blocks[1:] - 1] + 1))
