"""Section 4 of the report, decisions: costs and the reject option on held-out rows.

The action with the lowest expected cost is chosen, given the posterior p and cost[action, class]. A
row is rejected if its lowest expected cost exceeds the cost of rejecting. Without costs and a
reject option, the model's own prediction is used.

For two classes whose actions are the classes, all figures follow from the ROC curve. So the page
has about 512 points of the curve with exact counts, including every point that a slider can select,

    p >= alarm / (alarm + miss)      predict the positive class
    p >= 1 - reject / alarm          certain enough not to reject it
    p >  reject / miss               not certain enough to predict the other

so that the figures beside the sliders are exact too. Numbers that differ by at most a relative
`TIE` count as equal, as in `decision.actions`. In all other cases the page holds a stratified
sample of the held-out rows, with weights. Posteriors are stored as -1000 log p, rounded,
which keeps the digits of small probabilities.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from discriminant.assessment.ranking.auc import auc
from discriminant.assessment.ranking.roc import roc
from discriminant.decision.actions import Reject, least_cost, rejected
from discriminant.decision.costs import Costs
from discriminant.decision.risk_and_cost_curves import risk_coverage
from discriminant.errors import DiscriminantError
from discriminant.moments.probability_scores import TIE
from discriminant.report.fact_types import (
    DecisionFacts,
    HeldOutFacts,
    RocFacts,
    UnequalCostFacts,
)
from discriminant.report.sections.comparison import log_odds
from discriminant.table.blocks import Codes, Floats, Labels, Places

_ROC_POINTS = 512  # number of points in addition to those that sliders select
_COSTS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)  # steps of a slider
_REJECT_COSTS = (
    *(0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 1.5, 2.0, 3.0, 5.0, 10.0),
)
_RATIOS = (2.0, 5.0, 10.0)  # costs of missing one of two classes
_RATIO = 5.0  # cost of missing one of several classes
_MAX_UNEQUAL = 12  # largest number of classes for which unequal costs are listed
_RISK_POINTS = 160  # number of points of a risk-coverage curve
_CELLS = 60_000  # largest number of posteriors on a page
_LARGEST = 99_999  # largest value of -1000 log posterior


def decision_section(
    labels: Labels,
    codes: Codes,
    log_posterior: Floats,
    *,
    decided: Places | None = None,
    weight: Floats | None = None,
    positive: Any = None,
    cost: Any = None,
    reject: Any = None,
    most: int = 2000,
    seed: int = 0,
) -> DecisionFacts:
    """Return the decisions, their curve and their cost.

    Parameters
    ----------
    labels, codes, log_posterior, weight
        (K,) labels, (N,) true codes, (N, K) held-out log posteriors and (N,) weights, as in
        `HeldOutPredictions`.
    decided
        (N,) codes predicted by the model, used if there are neither costs nor a reject option
        (default: the most probable class).
    positive
        Label of the positive class, for two classes (default: the rarer one).
    cost, reject
        {action: {class: cost}} or a matrix, and the cost of rejecting a row, as in `Decision`.
    most, seed
        Largest number of held-out rows in the facts, and the seed for sampling them.
    """
    costs = Costs.zero_one(labels) if cost is None else Costs.of(cost, labels)
    option = Reject.of(reject)
    logs = np.where(np.isnan(log_posterior), -np.inf, log_posterior)
    action = _actions(logs, costs, option, decided if cost is None and reject is None else None)
    confusion = _confusion(action, codes, weight, costs)
    section: DecisionFacts = DecisionFacts(
        labels=[str(label) for label in labels.tolist()],
        actions=[str(action) for action in costs.actions],
        positive=_positive(labels, codes, weight, positive),
        rows=float(len(codes) if weight is None else weight.sum()),
        cost=costs.cost.tolist(),
        weighted=weight is not None,
        costs_given=cost is not None,
        dials={"cost": list(_COSTS), "aside": list(_REJECT_COSTS)},
        tie=TIE,
        reject=option.cost if np.isfinite(option.cost) else None,
        confusion=confusion.tolist(),
        **_rates(confusion, costs, option),  # type: ignore[typeddict-item]
        by_class=_class_rates(
            labels, codes, logs, weight, confusion=confusion, n_actions=len(costs.actions)
        ),
        risk_coverage=_risk_coverage(logs, codes, weight),
    )
    classes_only = costs.actions == tuple(labels.tolist())
    if cost is None and reject is None and 2 <= len(labels) <= _MAX_UNEQUAL:
        section["unequal"] = _unequal_costs(labels, codes, logs, weight, confusion)
    if len(labels) == 2 and classes_only and len(np.unique(codes)) == 2:
        section["roc"] = _roc(codes, logs, weight, action, section)
    else:
        section["held"] = held_facts(codes, logs, weight, most=most, seed=seed)
    return section


def _unequal_costs(
    labels: Labels, codes: Codes, logs: Floats, weight: Floats | None, confusion: Floats
) -> list[UnequalCostFacts]:
    """Return the decisions if missing a class costs a multiple of any other error.

    `confusion` is that of the decisions of the report.
    """
    K = len(labels)
    total = confusion.sum(axis=0)
    order = np.argsort(total, kind="stable")  # the rarest class first
    rows = []
    for k in order[total[order] > 0].tolist():
        for ratio in _RATIOS if K == 2 else (_RATIO,):
            matrix = 1.0 - np.eye(K)
            matrix[:, k] *= ratio
            costs = Costs.of(matrix, labels)
            action = least_cost(logs, costs)[0]
            table = _confusion(action, codes, weight, costs)[:K]
            guess = int((matrix @ total).argmin())
            low, high = _mean_interval(matrix[guess, codes] - matrix[action, codes], weight)
            rows.append(
                UnequalCostFacts(
                    label=str(labels[k]),
                    ratio=ratio,
                    threshold=1.0 / (1.0 + ratio) if K == 2 else None,
                    recall=float(table[k, k] / total[k]),
                    precision=_ratio(table[k, k], table[k].sum()),
                    recall_before=float(confusion[k, k] / total[k]),
                    precision_before=_ratio(confusion[k, k], confusion[k].sum()),
                    error=float(1.0 - np.trace(table) / total.sum()),
                    cost_before=float((confusion[:K] * matrix).sum() / total.sum()),
                    cost=float((table * matrix).sum() / total.sum()),
                    guess=float(matrix[guess] @ total / total.sum()),
                    saved_low=low,
                    saved_high=high,
                )
            )
    return rows


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None


def _mean_interval(values: Floats, weight: Floats | None) -> tuple[float | None, float | None]:
    """Return both ends of the 95% interval of a weighted mean; None for fewer than two rows.

    With values v of n rows, the interval is mean(v) -+ 1.96 sd(v) / sqrt(n - 1).
    """
    rows = slice(None) if weight is None else np.flatnonzero(weight > 0)
    own = values[rows]
    if len(own) < 2:
        return None, None
    share = None if weight is None else weight[rows]
    mean = float(np.average(own, weights=share))
    variance = float(np.average((own - mean) ** 2, weights=share))
    reach = 1.959963984540054 * np.sqrt(variance / (len(own) - 1))
    return mean - float(reach), mean + float(reach)


def held_facts(
    codes: Codes, logs: Floats, weight: Floats | None, *, most: int = 2000, seed: int = 0
) -> HeldOutFacts:
    """Return a sample of the rows, stratified by class, with posteriors as integers."""
    K = logs.shape[1]
    most = max(min(most, _CELLS // K), K)
    rows = np.bincount(codes, minlength=K)
    share = most * rows / max(len(codes), 1)
    size = np.minimum(rows, np.floor(np.maximum(share, min(20, most / K)))).astype(int)
    if len(codes) <= most:
        size = rows
    generator = np.random.default_rng(seed)
    parts = [
        generator.choice(np.flatnonzero(codes == k), int(n), replace=False)
        for k, n in enumerate(size)
    ]
    sample = np.sort(np.concatenate(parts))
    total = rows if weight is None else np.bincount(codes, weight, minlength=K)
    sampled = np.bincount(codes[sample], minlength=K)
    weights = np.divide(total, sampled, out=np.zeros(K), where=sampled > 0)
    return HeldOutFacts(
        truth=codes[sample].tolist(), logs=_integer_logs(logs[sample]), weight=weights.tolist()
    )


def _integer_logs(logs: Floats) -> list[list[int]]:
    """Return -1000 times the log posteriors, rounded to whole numbers.

    In each row the class with the largest posterior keeps the smallest number.
    """
    rounded = np.rint(np.minimum(-1000.0 * logs, _LARGEST)).astype(int)
    top = logs.argmax(axis=1)
    rows = np.flatnonzero(rounded.argmin(axis=1) != top)
    rounded[rows, top[rows]] = rounded[rows].min(axis=1) - 1
    listed: list[list[int]] = rounded.tolist()
    return listed


def _actions(logs: Floats, costs: Costs, option: Reject, decided: Places | None) -> Places:
    """Return the index of each row's action, (N,).

    The index of a rejected row is the number of actions.
    """
    A = len(costs.actions)
    if decided is not None:
        return np.minimum(decided, A)  # every decision that is not a class counts as rejected
    action = least_cost(logs, costs)[0]
    if np.isfinite(option.cost) or option.threshold > 0:
        action = np.where(rejected(logs, option, costs), A, action)
    return action


def _confusion(action: Places, codes: Codes, weight: Floats | None, costs: Costs) -> Floats:
    """Return the weight by action and true class, (A, K).

    If rows can be rejected, the shape is (A + 1, K), and the last row is the rejected weight.
    """
    K, A = len(costs.labels), len(costs.actions)
    rows = A + bool((action == A).any())
    totals = np.bincount(action * K + codes, weight, minlength=rows * K)
    return totals.reshape(-1, K).astype(float)


def _rates(confusion: Floats, costs: Costs, option: Reject) -> dict[str, float | None]:
    total, A = confusion.sum(), len(costs.actions)
    code = {label: k for k, label in enumerate(costs.labels.tolist())}
    classes = [(a, code[action]) for a, action in enumerate(costs.actions) if action in code]
    decided = sum(confusion[a].sum() for a, _ in classes)
    correct = sum(confusion[a, k] for a, k in classes)
    reject_cost = option.cost if np.isfinite(option.cost) else 0.0
    cost = (confusion[:A] * costs.cost).sum() + confusion[A:].sum() * reject_cost
    return {
        "error": float((decided - correct) / decided) if decided else None,
        "coverage": float(decided / total),
        "mean_cost": float(cost / total),
    }


def _class_rates(
    labels: Labels,
    codes: Codes,
    logs: Floats,
    weight: Floats | None,
    *,
    confusion: Floats,
    n_actions: int,
) -> list[dict[str, Any]]:
    """Return, for each class, recall and precision of the decisions and AUC against the rest."""
    K, rejects = len(labels), len(confusion) > n_actions
    rates = []
    for k in range(K):
        own = confusion[k] if len(confusion) >= K else np.zeros(K)
        predicted, true = own.sum(), confusion[:, k].sum()
        rates.append(
            {
                "label": str(labels[k]),
                "rows": float(true),
                "recall": float(own[k] / true) if true else None,
                "precision": float(own[k] / predicted) if predicted else None,
                "passed": float(confusion[-1, k] / true) if rejects and true else 0.0,
                "auc": _auc(codes == k, logs, k, weight),
            }
        )
    return rates


def _auc(own: Any, logs: Floats, k: int, weight: Floats | None) -> float | None:
    scores = log_odds(logs) * (2 * k - 1) if logs.shape[1] == 2 else logs[:, k]
    try:
        return auc(own.astype(int), scores, None, positive=1, sample_weight=weight).value
    except DiscriminantError:
        return None


def _risk_coverage(logs: Floats, codes: Codes, weight: Floats | None) -> dict[str, Any]:
    """Return points of the risk-coverage curve: error of the decided rows against coverage."""
    curve = risk_coverage(logs, codes, sample_weight=weight)
    points = _spaced(curve.coverage, _RISK_POINTS)
    return {
        "coverage": np.round(curve.coverage[points], 5).tolist(),
        "risk": np.round(curve.risk[points], 6).tolist(),
        "area": curve.area,
    }


def _positive(labels: Labels, codes: Codes, weight: Floats | None, positive: Any) -> int | None:
    """Return the code of the positive class: the given one, or the rarer of two classes.

    None unless there are two classes.
    """
    if len(labels) != 2:
        return None
    if positive is not None:
        return int(labels.tolist().index(positive))
    total = np.bincount(codes, weight, minlength=2)
    return int(total[0] < total[1]) ^ 1 if total[0] != total[1] else 1


def _roc(
    codes: Codes, logs: Floats, weight: Floats | None, action: Places, section: DecisionFacts
) -> RocFacts:
    """Return points of the ROC curve.

    The point of the decision is included, so that its counts are exact.
    """
    positive = section["positive"] or 0
    own = codes == positive
    scores = log_odds(logs) * (2 * positive - 1)
    curve = roc(own.astype(int), scores, positive=1, sample_weight=weight)
    total = np.bincount(own.astype(int), weight, minlength=2).astype(float)
    tp, fp = curve.tpr * total[1], curve.fpr * total[0]
    with np.errstate(over="ignore"):
        threshold = 1.0 / (1.0 + np.exp(-curve.threshold))
    start = _decision_point(section, threshold, tp + fp, weight, action == positive)
    selectable = _slider_points(section, threshold)
    spaced = _spaced(curve.tpr + curve.fpr, _ROC_POINTS)
    points = np.unique(np.concatenate([spaced, selectable, [start]])).astype(int)
    low, high = _auc_interval(own, scores, weight)
    return RocFacts(
        threshold=[None, *threshold[points][1:].tolist()],
        tp=tp[points].round(6).tolist(),
        fp=fp[points].round(6).tolist(),
        positives=float(total[1]),
        negatives=float(total[0]),
        area=curve.area,
        low=low,
        high=high,
        start=int(np.searchsorted(points, start)),
    )


def _decision_point(
    section: DecisionFacts, threshold: Floats, totals: Floats, weight: Floats | None, predicted: Any
) -> int:
    """Return the index of the point on the curve that corresponds to the decision.

    If rows are rejected, the point is located by its threshold; otherwise by the number of rows
    `predicted` as positive, which is compared with the `totals` of the points.
    """
    positive = section["positive"] or 0
    if section["coverage"] != 1.0:
        miss = section["cost"][1 - positive][positive]
        alarm = section["cost"][positive][1 - positive]
        limit = np.array([alarm / max(alarm + miss, 1e-300)])
        return int(_last_at_least(threshold, limit, positive)[0])
    n_predicted = float(predicted.sum() if weight is None else weight[predicted].sum())
    return int(np.argmin(np.abs(totals - n_predicted)))


def _last_at_least(threshold: Floats, p: Floats, positive: int) -> Places:
    """Return the indices of the last points with at least probability p; ties as in `decide`."""
    limit = p / (1.0 + TIE) if positive == 0 else p * (1.0 + TIE)
    side: Literal["left", "right"] = "right" if positive == 0 else "left"
    return np.asarray(np.maximum(np.searchsorted(-threshold, -limit, side=side) - 1, 0))


def _slider_points(section: DecisionFacts, threshold: Floats) -> Places:
    """Return the indices of the points that sliders can select; see the module docstring."""
    if len(threshold) <= _ROC_POINTS:
        return np.arange(len(threshold))
    costs = np.unique([*_COSTS, *np.ravel(section["cost"])])
    costs = costs[costs > 0]
    given = [] if section["reject"] is None else [section["reject"]]
    reject = np.unique([*_REJECT_COSTS, *given])
    decided = np.ravel(costs / (costs + costs[:, None]))
    certain, uncertain = np.ravel(1.0 - reject[:, None] / costs), np.ravel(reject[:, None] / costs)
    limits = np.concatenate([decided, certain, uncertain])
    points = [_last_at_least(threshold, limits, positive) for positive in (0, 1)]
    return np.unique(np.concatenate(points))


def _auc_interval(
    own: Any, scores: Floats, weight: Floats | None
) -> tuple[float | None, float | None]:
    """Return both ends of DeLong's interval of the AUC; None if undefined or of zero width."""
    try:
        area = auc(own.astype(int), scores, positive=1, sample_weight=weight)
    except DiscriminantError:
        return None, None
    return (area.low, area.high) if area.low != area.high else (None, None)


def _spaced(rising: Floats, most: int) -> Any:
    """Return the indices of about `most` entries, evenly spaced along a rising curve.

    Both ends are included.
    """
    if len(rising) <= most:
        return np.arange(len(rising))
    levels = np.linspace(rising[0], rising[-1], most - 2)
    nearest = np.searchsorted(rising, levels).clip(0, len(rising) - 1)
    return np.unique(np.concatenate([[0, len(rising) - 1], nearest])).astype(int)
