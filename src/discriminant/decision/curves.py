"""Risk-coverage curves and cost curves of held-out rows, over all thresholds at once.

Risk and coverage: rows are decided in the order of their least expected cost. If a share of them is
rejected,

    risk = cost of the decided rows / their weight        area = integral of risk over coverage

Cost curve (Drummond and Holte 2006), two classes: each threshold is a line, and the best ones form
the lower envelope, which corresponds to the hull of the ROC curve:

    PC = p(+) C(-|+) / [p(+) C(-|+) + p(-) C(+|-)]
    normalised expected cost = FNR PC + FPR (1 - PC)      area = that of the lower envelope

The area is 1/4 for scores without information and 0 for perfect ones.

True classes are passed as codes, the column numbers of the posteriors from 0; or as labels, if the
label of each column is known: from `classes`, from the column names of a data frame, or from the
labels of the costs.
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
from discriminant.table.blocks import Codes, Floats, Labels, check_weight
from discriminant.table.labels import classes_of_columns, encode_known_labels, encode_labels


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
        """Validate the input; the columns are put in the order of `classes`, if given.

        >>> classes = ["well", "ill"]
        >>> HeldOutPosteriors.of(np.log([[0.9, 0.1]]), ["ill"], classes=classes).codes.tolist()
        [1]
        """
        known = _known(log_posterior, classes, costs)
        logs = checked_logs(log_posterior, None if known is None else len(known))
        if known is not None:
            logs = logs[:, _places(log_posterior, known)]
        codes = _codes(truth, known, logs.shape[1], by_label=classes is not None)
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


def _known(log_posterior: Any, classes: Any, costs: Any) -> Labels | None:
    """Return the (K,) labels in the order of the codes; None if they are not known."""
    if classes is None and isinstance(costs, Costs):
        return costs.labels
    if classes is None:
        classes = classes_of_columns(log_posterior, found=[], classes=None, what="log_posterior")
    if classes is None:
        return None
    labels, codes = encode_labels(classes)
    if len(labels) < len(codes):
        raise LabelError.duplicate_classes(np.asarray(classes).tolist())
    return np.asarray(labels[codes])


def _places(log_posterior: Any, known: Labels) -> list[int]:
    """Return the (K,) column of each label."""
    names = known.tolist()
    found = classes_of_columns(log_posterior, found=names, classes=names, what="log_posterior")
    return [list(found).index(name) for name in names]


def _codes(truth: Any, known: Labels | None, classes: int, *, by_label: bool) -> Codes:
    labels, place = encode_labels(truth)
    if by_label or labels.dtype.kind not in "iubf":
        if known is None:
            raise LabelError.without_classes(labels.tolist())
        return encode_known_labels(labels[place], known)
    codes = labels.astype(np.intp)[place]
    for row in np.flatnonzero((codes < 0) | (codes >= classes)):
        raise LabelError.code_out_of_range(int(row), int(codes[row]), classes)
    return codes


@dataclass(frozen=True, slots=True, eq=False)
class RiskCoverage:
    """Risk of the decided rows for every possible coverage, in increasing order."""

    coverage: Floats  # (m,) share of the weight that is decided, up to 1
    risk: Floats  # (m,) mean cost of the decided rows
    bound: Floats  # (m,) largest least expected cost among the decided rows
    area: float

    @property
    def rejected(self) -> Floats:
        """(m,) share of the weight that is rejected."""
        return np.asarray(1.0 - self.coverage)


@dataclass(frozen=True, slots=True, eq=False)
class CostCurve:
    """Corners of the lower envelope of the normalised expected cost."""

    probability_cost: Floats  # (m,) from 0 to 1
    cost: Floats  # (m,) normalised expected cost
    threshold: Floats  # (m - 1,) least posterior to predict the second class, between corners
    area: float

    def at(self, probability_cost: Floats) -> Floats:
        """Return the least cost at other probability costs."""
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
    """Return the error, or cost, of the decided rows for every coverage.

    Parameters
    ----------
    log_posterior
        (n, K) log posteriors of held-out rows.
    truth
        (n,) codes of the true classes, column numbers from 0; or, with `classes`, labels.
    classes
        (K,) label of each column, such as `model.classes_`; default: the column names of a frame.
    sample_weight
        (n,) weights of the rows.
    costs
        As the cost of `Decision`, or a `Costs`; None: every error costs 1.

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
    best, doubt = least_cost(rows.log_posterior, rows.costs)
    paid, weight = paid_costs(best, rows.codes, rows.costs), rows.weight
    order = np.argsort(doubt, kind="stable")
    last = last_of_ties(doubt[order])
    decided = np.cumsum(weight[order])[last]
    cost = np.cumsum((weight * paid)[order])[last]
    some = decided > 0  # rows with weight 0 at the start
    decided, cost, bound = decided[some], cost[some], doubt[order][last][some]
    coverage, risk = decided / decided[-1], cost / decided
    area = float(np.diff(coverage, prepend=0.0) @ risk)
    return RiskCoverage(coverage, risk, bound, area)


@named_options
def cost_curve(
    log_posterior: Any, truth: Any, *, classes: Any = None, sample_weight: Any = None
) -> CostCurve:
    """Return the cost curve of two classes, of which the second is the positive one.

    The arguments are those of `risk_coverage`.

    >>> log_posterior = np.log([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    >>> cost_curve(log_posterior, np.array([0, 0, 1, 1])).area
    0.0
    """
    rows = HeldOutPosteriors.of(log_posterior, truth, classes=classes, sample_weight=sample_weight)
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
    """Return the last index of each run of equal costs, whose rows are decided together.

    >>> last_of_ties(np.array([0.1, 0.2, 0.2 + 1e-16, 0.3])).tolist()
    [0, 2, 3]
    """
    return np.append(np.flatnonzero(exceeds(rising[1:], rising[:-1])), len(rising) - 1)


def paid_costs(decided: Codes, codes: Codes, costs: Costs | None) -> Floats:
    """Return the (n,) costs of the decisions, given the true classes."""
    if costs is None:
        return np.asarray(decided != codes, dtype=np.float64)
    return np.asarray(costs.cost[decided, codes])


def _roc(rows: HeldOutPosteriors) -> tuple[Floats, Floats, Floats]:
    """Return (m,) false and true positive rates, and the least posterior predicted as +."""
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
    """Return the indices on the upper convex hull, from (0, 0) to (1, 1).

    The slopes of the hull are the isotonic regression of the share of positives on the order.
    """
    from scipy.optimize import isotonic_regression

    across, up = np.diff(fpr), np.diff(tpr)
    some = np.flatnonzero(across + up > 0)  # the others are rows with weight 0
    weight = (across + up)[some]
    slopes = isotonic_regression(up[some] / weight, weights=weight, increasing=False)
    return np.asarray(np.append(0, some[slopes.blocks[1:] - 1] + 1))
