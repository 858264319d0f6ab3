"""Section 4 of the report: decisions on held-out rows, and their cost.

With posterior p and cost[action, class] the action with the lowest expected cost is chosen, and a
row whose lowest expected cost exceeds the cost of rejecting is rejected. Without costs and reject
option the model's own prediction is used.

For two classes whose actions are the classes, everything follows from the ROC curve, so the page
holds about 512 of its points with exact counts, and every point that a slider can select,

    p >= alarm / (alarm + miss)      predict the positive class
    p >= 1 - reject / alarm          certain enough not to reject it
    p >  reject / miss               not certain enough to predict the other

(numbers within a relative `TIE` are equal, as in `decision.actions`), so that the figures beside
the sliders are exact too. Otherwise the page holds a stratified sample of the held-out rows, each
with its weight, and posteriors as rounded 1000 log p, which keeps the digits of rare classes.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from discriminant.assessment.ranking.auc import auc
from discriminant.assessment.ranking.roc import roc
from discriminant.decision.actions import Reject, least_cost, rejected
from discriminant.decision.costs import Costs
from discriminant.decision.curves import risk_coverage
from discriminant.errors import DiscriminantError
from discriminant.moments.probability_scores import TIE
from discriminant.report.fact_types import DecisionFacts, HeldOutFacts, RocFacts
from discriminant.report.sections.comparison import log_odds
from discriminant.table.blocks import Codes, Floats, Labels, Places

_CURVE = 512  # points of a ROC curve, besides those that sliders select
_COSTS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)  # steps of a slider
_ASIDE = (
    *(0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 1.5, 2.0, 3.0, 5.0, 10.0),
)
_RISK = 160  # points of a risk-coverage curve
_CELLS = 60_000  # posteriors on a page
_FAR = 99_999  # of -1000 log posterior


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
        As of `HeldOut`: (K,) labels, (N,) true codes, (N, K) held-out log posteriors, (N,) weights.
    decided
        (N,) codes that the model decided for, as of `HeldOut`; it is asked where there are neither
        costs nor a reject option. None: the most probable class.
    positive
        Of two classes, the label that is looked for; None: the rarer one.
    cost, reject
        As of `Decision`: {action: {class: cost}} or a matrix; the cost of passing a row on.
    most, seed
        How many held-out rows go with the facts, and how they are drawn.
    """
    costs = Costs.zero_one(labels) if cost is None else Costs.of(cost, labels)
    option = Reject.of(reject)
    logs = np.where(np.isnan(log_posterior), -np.inf, log_posterior)
    action = _action(logs, costs, option, decided if cost is None and reject is None else None)
    done = _done(action, codes, weight, costs)
    section: DecisionFacts = DecisionFacts(
        labels=[str(label) for label in labels.tolist()],
        actions=[str(action) for action in costs.actions],
        positive=_positive(labels, codes, weight, positive),
        rows=float(len(codes) if weight is None else weight.sum()),
        cost=costs.cost.tolist(),
        weighted=weight is not None,
        costs_given=cost is not None,
        dials={"cost": list(_COSTS), "aside": list(_ASIDE)},
        tie=TIE,
        reject=option.cost if np.isfinite(option.cost) else None,
        confusion=done.tolist(),
        **_rates(done, costs, option),  # type: ignore[typeddict-item]
        by_class=_by_class(labels, codes, logs, weight, done=done, actions=len(costs.actions)),
        risk_coverage=_risk(logs, codes, weight),
    )
    plainly = costs.actions == tuple(labels.tolist())
    if len(labels) == 2 and plainly and len(np.unique(codes)) == 2:
        section["roc"] = _roc(codes, logs, weight, action, section)
    else:
        section["held"] = held_facts(codes, logs, weight, most=most, seed=seed)
    return section


def held_facts(
    codes: Codes, logs: Floats, weight: Floats | None, *, most: int = 2000, seed: int = 0
) -> HeldOutFacts:
    """Rows drawn class by class, with posteriors as whole numbers."""
    K = logs.shape[1]
    most = max(min(most, _CELLS // K), K)
    rows = np.bincount(codes, minlength=K)
    share = most * rows / max(len(codes), 1)
    size = np.minimum(rows, np.ceil(np.maximum(share, min(20, most / K)))).astype(int)
    if len(codes) <= most:
        size = rows
    draw = np.random.default_rng(seed)
    places = [
        draw.choice(np.flatnonzero(codes == k), int(n), replace=False) for k, n in enumerate(size)
    ]
    some = np.sort(np.concatenate(places))
    total = rows if weight is None else np.bincount(codes, weight, minlength=K)
    kept = np.bincount(codes[some], minlength=K)
    each = np.divide(total, kept, out=np.zeros(K), where=kept > 0)
    return HeldOutFacts(
        truth=codes[some].tolist(), logs=_whole_logs(logs[some]), weight=each.tolist()
    )


def _whole_logs(logs: Floats) -> list[list[int]]:
    """(m, K) of -1000 log p; the largest stays the only largest when it is rounded."""
    found = np.rint(np.minimum(-1000.0 * logs, _FAR)).astype(int)
    top = logs.argmax(axis=1)
    rows = np.flatnonzero(found.argmin(axis=1) != top)
    found[rows, top[rows]] = found[rows].min(axis=1) - 1
    whole: list[list[int]] = found.tolist()
    return whole


def _action(logs: Floats, costs: Costs, option: Reject, decided: Places | None) -> Places:
    """(N,) place among the actions, or after them for what is passed on."""
    A = len(costs.actions)
    if decided is not None:
        return np.minimum(decided, A)  # whatever is no class is left to somebody
    action = least_cost(logs, costs)[0]
    if np.isfinite(option.cost) or option.threshold > 0:
        action = np.where(rejected(logs, option, costs), A, action)
    return action


def _done(action: Places, codes: Codes, weight: Floats | None, costs: Costs) -> Floats:
    """(A, K), or (A + 1, K) with what is passed on: weight by action and true class."""
    K, A = len(costs.labels), len(costs.actions)
    rows = A + bool((action == A).any())
    found = np.bincount(action * K + codes, weight, minlength=rows * K)
    return found.reshape(-1, K).astype(float)


def _rates(done: Floats, costs: Costs, option: Reject) -> dict[str, float | None]:
    total, A = done.sum(), len(costs.actions)
    named = {action: k for k, action in enumerate(costs.labels.tolist())}
    own = [(a, named[action]) for a, action in enumerate(costs.actions) if action in named]
    decided = sum(done[a].sum() for a, _ in own)
    right = sum(done[a, k] for a, k in own)
    aside = option.cost if np.isfinite(option.cost) else 0.0
    paid = (done[:A] * costs.cost).sum() + done[A:].sum() * aside
    return {
        "error": float((decided - right) / decided) if decided else None,
        "coverage": float(decided / total),
        "mean_cost": float(paid / total),
    }


def _by_class(
    labels: Labels,
    codes: Codes,
    logs: Floats,
    weight: Floats | None,
    *,
    done: Floats,
    actions: int,
) -> list[dict[str, Any]]:
    """Recall and precision of the decision, with the AUC of each class against the rest."""
    K = len(labels)
    passes = len(done) > actions
    found = []
    for k in range(K):
        said, true = done[k].sum() if len(done) >= K else 0.0, done[:, k].sum()
        right = done[k, k] if len(done) >= K else 0.0
        found.append(
            {
                "label": str(labels[k]),
                "rows": float(true),
                "recall": float(right / true) if true else None,
                "precision": float(right / said) if said else None,
                "passed": float(done[-1, k] / true) if passes and true else 0.0,
                "auc": _auc(codes == k, logs, k, weight),
            }
        )
    return found


def _auc(own: Any, logs: Floats, k: int, weight: Floats | None) -> float | None:
    scores = log_odds(logs) * (2 * k - 1) if logs.shape[1] == 2 else logs[:, k]
    try:
        return auc(own.astype(int), scores, None, positive=1, sample_weight=weight).value
    except DiscriminantError:
        return None


def _risk(logs: Floats, codes: Codes, weight: Floats | None) -> dict[str, Any]:
    """Error of what is decided, the least doubtful rows first."""
    found = risk_coverage(logs, codes, sample_weight=weight)
    some = _spaced(found.coverage, _RISK)
    return {
        "coverage": np.round(found.coverage[some], 5).tolist(),
        "risk": np.round(found.risk[some], 6).tolist(),
        "area": found.area,
    }


def _positive(labels: Labels, codes: Codes, weight: Floats | None, positive: Any) -> int | None:
    if len(labels) != 2:
        return None
    if positive is not None:
        return int(labels.tolist().index(positive))
    total = np.bincount(codes, weight, minlength=2)
    return int(total[0] < total[1]) ^ 1 if total[0] != total[1] else 1


def _roc(
    codes: Codes, logs: Floats, weight: Floats | None, action: Places, section: DecisionFacts
) -> RocFacts:
    """The curve, thinned; the point of the decision stays, so its counts are exact."""
    positive = section["positive"] or 0
    own = codes == positive
    scores = log_odds(logs) * (2 * positive - 1)
    curve = roc(own.astype(int), scores, positive=1, sample_weight=weight)
    total = np.bincount(own.astype(int), weight, minlength=2).astype(float)
    tp, fp = curve.tpr * total[1], curve.fpr * total[0]
    with np.errstate(over="ignore"):
        threshold = 1.0 / (1.0 + np.exp(-curve.threshold))
    start = _start(section, threshold, tp + fp, weight, action == positive)
    stops = _stops(section, threshold)
    some = _spaced(curve.tpr + curve.fpr, _CURVE)
    some = np.unique(np.concatenate([some, stops, [start]])).astype(int)
    low, high = _span(own, scores, weight)
    return RocFacts(
        threshold=[None, *threshold[some][1:].tolist()],
        tp=tp[some].round(6).tolist(),
        fp=fp[some].round(6).tolist(),
        positives=float(total[1]),
        negatives=float(total[0]),
        area=curve.area,
        low=low,
        high=high,
        start=int(np.searchsorted(some, start)),
    )


def _start(
    section: DecisionFacts, threshold: Floats, called: Floats, weight: Floats | None, said: Any
) -> int:
    """Place of the decision: by its threshold if rows are passed on, else by how many it calls."""
    positive = section["positive"] or 0
    if section["coverage"] != 1.0:
        miss, alarm = (
            section["cost"][1 - positive][positive],
            section["cost"][positive][1 - positive],
        )
        return int(_from(threshold, np.array([alarm / max(alarm + miss, 1e-300)]), positive)[0])
    many = float(said.sum() if weight is None else weight[said].sum())
    return int(np.argmin(np.abs(called - many)))


def _from(threshold: Floats, p: Floats, positive: int) -> Places:
    """Place of the last point of at least probability p; a tie goes to the first of the classes."""
    limit = p / (1.0 + TIE) if positive == 0 else p * (1.0 + TIE)
    side: Literal["left", "right"] = "right" if positive == 0 else "left"
    return np.asarray(np.maximum(np.searchsorted(-threshold, -limit, side=side) - 1, 0))


def _stops(section: DecisionFacts, threshold: Floats) -> Places:
    """Places that dials can call for: see the head of this module."""
    if len(threshold) <= _CURVE:
        return np.arange(len(threshold))
    costs = np.unique([*_COSTS, *np.ravel(section["cost"])])
    costs = costs[costs > 0]
    aside = np.unique([*_ASIDE, *([] if section["reject"] is None else [section["reject"]])])
    decided = np.ravel(costs / (costs + costs[:, None]))
    sure, clear = np.ravel(1.0 - aside[:, None] / costs), np.ravel(aside[:, None] / costs)
    limits = np.concatenate([decided, sure, clear])
    both = [_from(threshold, limits, positive) for positive in (0, 1)]
    return np.unique(np.concatenate(both))


def _span(own: Any, scores: Floats, weight: Floats | None) -> tuple[float | None, float | None]:
    """Ends of DeLong's interval of the AUC; None where there is none, or one without a width."""
    try:
        found = auc(own.astype(int), scores, positive=1, sample_weight=weight)
    except DiscriminantError:
        return None, None
    return (found.low, found.high) if found.low != found.high else (None, None)


def _spaced(rising: Floats, most: int) -> Any:
    """Places of about so many entries, evenly along a rising curve, both ends among them."""
    if len(rising) <= most:
        return np.arange(len(rising))
    marks = np.linspace(rising[0], rising[-1], most - 2)
    near = np.searchsorted(rising, marks).clip(0, len(rising) - 1)
    return np.unique(np.concatenate([[0, len(rising) - 1], near])).astype(int)
