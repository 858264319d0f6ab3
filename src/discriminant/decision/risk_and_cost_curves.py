"""Risk-coverage curves and cost curves of held-out rows, for all thresholds at once.

Risk-coverage curve: rows are sorted by the expected cost of their best action. The rows with the
largest cost are rejected, and all other rows are decided. Coverage is the weight of the decided
rows divided by the weight of all rows, and

    risk = cost of the decided rows / their weight        area = integral of risk over coverage

Cost curve (Drummond and Holte 2006), for two classes: each threshold gives a straight line as a
function of PC, defined below. The lower envelope of these lines is the cost of the best threshold
for each PC, and corresponds to the convex hull of the ROC curve:

    PC = p(+) C(-|+) / [p(+) C(-|+) + p(-) C(+|-)]
    normalised expected cost = FNR PC + FPR (1 - PC)      area = area under the lower envelope

The area is 1/4 for scores without information and 0 for perfect scores.

True classes are passed as codes: column numbers of the posteriors, counted from 0. True classes may
also be passed as labels if the label of each column is known: from `classes`, from the column names
of a data frame, or from the labels of the costs.
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
from discriminant.posterior import validate_log_posterior
from discriminant.table.blocks import Codes, Floats, Labels, check_weight
from discriminant.table.labels import classes_of_score_columns, encode_known_labels, encode_labels


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutPosteriors:
    """Validated log posteriors, true classes, weights and costs of n held-out rows."""

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
    ) -> HeldOutPosteriors:
        """Validate the input. If `classes` is given, the columns are sorted in the order of
        `classes`.

        >>> classes = ["well", "ill"]
        >>> HeldOutPosteriors.of(np.log([[0.9, 0.1]]), ["ill"], classes=classes).codes.tolist()
        [1]
        """
        known = _known_labels(log_posterior, classes, costs)
        logs = validate_log_posterior(log_posterior, None if known is None else len(known))
        if known is not None:
            logs = logs[:, _columns_of(log_posterior, known)]
        codes = _class_codes(truth, known, logs.shape[1], by_label=classes is not None)
        if len(codes) != len(logs):
            raise ShapeError.of_lengths("log_posterior", len(logs), len(codes))
        weight = check_weight(sample_weight, len(codes))
        labels = np.arange(logs.shape[1]) if known is None else known
        return cls(
            logs,
            codes,
            np.ones(len(codes)) if weight is None else weight,
            None if costs is None else Costs.of(costs, labels),
        )


def _known_labels(log_posterior: Any, classes: Any, costs: Any) -> Labels | None:
    """Return the (K,) labels in the order of the codes, or None if the labels are not known."""
    if classes is None and isinstance(costs, Costs):
        return costs.labels
    if classes is None:
        classes = classes_of_score_columns(
            log_posterior, labels=[], classes=None, what="log_posterior"
        )
    if classes is None:
        return None
    labels, codes = encode_labels(classes)
    if len(labels) < len(codes):
        raise LabelError.duplicate_classes(np.asarray(classes).tolist())
    return np.asarray(labels[codes])


def _columns_of(log_posterior: Any, known: Labels) -> list[int]:
    """Return the column number of each of the K labels."""
    names = known.tolist()
    columns = classes_of_score_columns(
        log_posterior, labels=names, classes=names, what="log_posterior"
    )
    return [list(columns).index(name) for name in names]


def _class_codes(truth: Any, known: Labels | None, classes: int, *, by_label: bool) -> Codes:
    """Return the (n,) codes of the true classes; `truth` holds codes or labels."""
    labels, positions = encode_labels(truth)
    if by_label or labels.dtype.kind not in "iubf":
        if known is None:
            raise LabelError.without_classes(labels.tolist())
        return encode_known_labels(labels[positions], known)
    codes = labels.astype(np.intp)[positions]
    for row in np.flatnonzero((codes < 0) | (codes >= classes)):
        raise LabelError.code_out_of_range(int(row), int(codes[row]), classes)
    return codes


@dataclass(frozen=True, slots=True, eq=False)
class RiskCoverage:
    """Risk of the decided rows for every possible coverage, sorted by coverage."""

    coverage: Floats  # (m,) share of the weight that is decided, up to 1
    risk: Floats  # (m,) mean cost of the decided rows
    bound: Floats  # (m,) bounds: rows with a least expected cost up to the bound are decided
    area: float

    @property
    def rejected(self) -> Floats:
        """(m,) shares of the total weight that are rejected."""
        return np.asarray(1.0 - self.coverage)


@dataclass(frozen=True, slots=True, eq=False)
class CostCurve:
    """Corners of the lower envelope of the normalised expected cost."""

    probability_cost: Floats  # (m,) from 0 to 1
    cost: Floats  # (m,) normalised expected cost
    threshold: Floats  # (m - 1,) between two corners: least posterior to predict the second class
    area: float

    def at(self, probability_cost: Floats) -> Floats:
        """Return the lowest normalised expected cost for each given value of PC."""
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
    """Return the error rate or mean cost of the decided rows for every coverage.

    Parameters
    ----------
    log_posterior
        (n, K) log posteriors of held-out rows.
    truth
        (n,) true classes, as column numbers counted from 0 or, if `classes` is given, as labels.
    classes
        (K,) label of each column, such as `model.classes_`. The default is the column names if
        `log_posterior` is a data frame.
    sample_weight
        (n,) weights of the rows.
    costs
        Costs in any form that `Decision` accepts, or a `Costs`. By default every error costs 1.

    Examples
    --------
    >>> log_posterior = np.log([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    >>> curve = risk_coverage(log_posterior, np.array([0, 0, 0, 1]))
    >>> curve.coverage.tolist(), curve.risk.tolist()
    ([0.25, 0.5, 0.75, 1.0], [0.0, 0.0, 0.0, 0.25])
    """
    rows = HeldOutPosteriors.of(
        log_posterior, truth, classes=classes, sample_weight=sample_weight, costs=costs
    )
    best, expected = least_cost(rows.log_posterior, rows.costs)
    weighted_cost = rows.weight * actual_costs(best, rows.codes, rows.costs)
    order = np.argsort(expected, kind="stable")
    last = last_of_ties(expected[order])
    decided = np.cumsum(rows.weight[order])[last]
    cost = np.cumsum(weighted_cost[order])[last]
    positive = decided > 0  # excludes rows of weight 0 at the start
    decided, cost, bound = decided[positive], cost[positive], expected[order][last][positive]
    coverage, risk = decided / decided[-1], cost / decided
    area = float(np.diff(coverage, prepend=0.0) @ risk)
    return RiskCoverage(coverage, risk, bound, area)


@named_options
def cost_curve(
    log_posterior: Any, truth: Any, *, classes: Any = None, sample_weight: Any = None
) -> CostCurve:
    """Return the cost curve of two classes. The second class is the positive class.

    The arguments are those of `risk_coverage`.

    >>> log_posterior = np.log([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    >>> cost_curve(log_posterior, np.array([0, 0, 1, 1])).area
    0.0
    """
    rows = HeldOutPosteriors.of(log_posterior, truth, classes=classes, sample_weight=sample_weight)
    if rows.log_posterior.shape[1] != 2:
        raise PosteriorError.of_shape(rows.log_posterior.shape, 2)
    fpr, tpr, least = _roc(rows)
    hull = _upper_hull(fpr, tpr)
    fpr_step, tpr_step = np.diff(fpr[hull]), np.diff(tpr[hull])
    corner = fpr_step / (fpr_step + tpr_step)
    cost = (1.0 - tpr[hull][1:]) * corner + fpr[hull][1:] * (1.0 - corner)
    probability_cost = np.concatenate([[0.0], corner, [1.0]])
    cost = np.concatenate([[0.0], cost, [0.0]])
    area = float(np.trapezoid(cost, probability_cost))
    return CostCurve(probability_cost, cost, least[hull], area)


def last_of_ties(rising: Floats) -> npt.NDArray[np.intp]:
    """Return the last index of each run of equal costs; `rising` is sorted in increasing order.

    >>> last_of_ties(np.array([0.1, 0.2, 0.2 + 1e-16, 0.3])).tolist()
    [0, 2, 3]
    """
    return np.append(np.flatnonzero(exceeds(rising[1:], rising[:-1])), len(rising) - 1)


def actual_costs(decided: Codes, codes: Codes, costs: Costs | None) -> Floats:
    """Return the (n,) costs of the decisions `decided`, given the true classes `codes`."""
    if costs is None:
        return np.asarray(decided != codes, dtype=np.float64)
    return np.asarray(costs.cost[decided, codes])


def _roc(rows: HeldOutPosteriors) -> tuple[Floats, Floats, Floats]:
    """Return three (m,) arrays: false positive rates, true positive rates, and thresholds.

    The threshold is the smallest posterior of the second class for which this class is predicted.
    """
    log_posterior, codes, weight = rows.log_posterior, rows.codes, rows.weight
    odds = log_posterior[:, 1] - log_posterior[:, 0]
    order = np.argsort(-odds, kind="stable")
    last = np.append(np.flatnonzero(np.diff(odds[order]) < -TIE), len(order) - 1)
    positive = np.cumsum((weight * (codes == 1))[order])[last]
    negative = np.cumsum((weight * (codes == 0))[order])[last]
    for code, total in enumerate((negative[-1], positive[-1])):
        if total <= 0:
            raise LabelError.one_class(1 - code)
    least = np.exp(log_posterior[order, 1])[last]
    return (
        np.append(0.0, negative / negative[-1]),
        np.append(0.0, positive / positive[-1]),
        np.append(np.inf, least),
    )


def _upper_hull(fpr: Floats, tpr: Floats) -> npt.NDArray[np.intp]:
    """Return the indices of the ROC points on the upper convex hull, from (0, 0) to (1, 1).

    The slopes of the hull are computed by isotonic regression of the share of true positives in
    each step along the curve.
    """
    from scipy.optimize import isotonic_regression

    fpr_step, tpr_step = np.diff(fpr), np.diff(tpr)
    steps = np.flatnonzero(fpr_step + tpr_step > 0)  # steps of rows of weight 0 are left out
    weight = (fpr_step + tpr_step)[steps]
    slopes = isotonic_regression(tpr_step[steps] / weight, weights=weight, increasing=False)
    return np.asarray(np.append(0, steps[slopes.blocks[1:] - 1] + 1))
