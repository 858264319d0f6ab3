"""Section 5: which features matter, and what is odd about the rows.

Coefficients with intervals come from moments alone. For a class k against all others, least squares
of the indicator of k on the features, in typical steps (sd over all rows) of each feature:

    T = total scatter, c_k = weight_k (mean_k - mean)       b = T^-1 c_k      value_j = b_j sd_j
    s^2 = (weight_k (1 - weight_k / n) - c_k' b) / (n - d - 1)
    b_j -+ t s sqrt((T^-1)_jj)

so a value of 0.2 says: one step up raises the chance of k by about 20 points, other features held
fixed. Of two classes b has the direction of LDA. Weights count rows. A Logistic or GLM that was
fitted gives its own (`coefficients_of`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student

from discriminant.assessment.inference import Inference
from discriminant.assessment.standard import check_products
from discriminant.assessment.stepwise import Stepwise
from discriminant.errors import DiscriminantError, InferenceError
from discriminant.models.metric import factor
from discriminant.moments.class_moments import ClassMoments
from discriminant.report.facts import (
    CoefficientFacts,
    CoefficientsFacts,
    FindingFacts,
    MattersFacts,
)
from discriminant.table.schema import Floats

_FEATURES = 24  # shown at most
_GROUPS = 8  # classes shown
_DOTS = 60  # shown of all classes together
_WHAT = "Coefficients"
_DONE = {"No other feature meets the significance to enter.": "No other feature comes so far."}


def matters_section(
    *,
    coefficients: CoefficientsFacts | None = None,
    stepwise: Stepwise | None = None,
    findings: Iterable[FindingFacts] = (),
) -> MattersFacts:
    """The three parts, those that there are."""
    section = MattersFacts(findings=list(findings))
    if coefficients is not None:
        section["coefficients"] = coefficients
    if stepwise is not None:
        section["stepwise"] = _stepwise(stepwise)
    return section


def coefficients_from(moments: ClassMoments, *, level: float = 0.95) -> CoefficientsFacts | None:
    """What tells each class from all others, by least squares; None where rows do not tell."""
    try:
        fitted = _least_squares(moments, level)
    except DiscriminantError:
        return None
    labels = [str(label) for label in moments.labels.tolist()]
    groups = [1] if len(labels) == 2 else list(range(min(len(labels), _GROUPS)))
    features = [moments.features[j] for j in fitted.places]
    order = np.argsort(-np.abs(fitted.value[groups]).max(axis=0), kind="stable")
    order = order[: _room(len(groups))]
    return CoefficientsFacts(
        title="least squares, "
        + ("one class against the other" if len(labels) == 2 else "each class against all others"),
        unit="change of the chance of the class for one typical step up",
        groups=[labels[k] for k in groups],
        rows=[
            CoefficientFacts(
                feature=features[j],
                of=labels[k],
                value=float(fitted.value[k, j]),
                low=float(fitted.value[k, j] - fitted.reach[k, j]),
                high=float(fitted.value[k, j] + fitted.reach[k, j]),
            )
            for k in groups
            for j in order
        ],
        left_out=len(features) - len(order),
        groups_left_out=0 if len(labels) == 2 else len(labels) - len(groups),
    )


def coefficients_of(
    inference: Inference, sd: Mapping[str, float], *, level: float = 0.95
) -> CoefficientsFacts:
    """Estimates of a Logistic or GLM, its `inference()`, for one sd of each feature.

    Intervals are Wald's. Features that are not in `sd` (the intercept) are left out.
    """
    ends = inference.wald(level)
    of = inference.classes or (None,) * len(inference.names)
    rows = [
        CoefficientFacts(
            feature=name,
            of=None if of[i] is None else str(of[i]),
            value=float(inference.estimate[i] * sd[name]),
            low=float(ends[i, 0] * sd[name]),
            high=float(ends[i, 1] * sd[name]),
        )
        for i, name in enumerate(inference.names)
        if name in sd
    ]
    every = list(dict.fromkeys(row["of"] or "" for row in rows))
    groups = every[:_GROUPS]
    size: dict[str, float] = {}
    for row in rows:
        size[row["feature"]] = max(size.get(row["feature"], 0.0), abs(row["value"] or 0.0))
    kept = sorted(size, key=lambda name: -size[name])[: _room(len(groups))]
    place = {name: j for j, name in enumerate(kept)}
    some = [row for row in rows if row["feature"] in place and (row["of"] or "") in groups]
    against = "" if inference.first is None else f", against {inference.first}"
    return CoefficientsFacts(
        title=f"logistic regression{against}" if inference.odds else inference.title,
        unit="change of the log odds for one typical step up"
        if inference.odds
        else "change of the linear predictor for one typical step up",
        groups=groups,
        rows=sorted(some, key=lambda r: (groups.index(r["of"] or ""), place[r["feature"]])),
        left_out=len(size) - len(kept),
        groups_left_out=len(every) - len(groups),
    )


def _room(groups: int) -> int:
    """How many features there is room for."""
    return min(max(_DOTS // max(groups, 1), 6), _FEATURES)


def spreads(moments: ClassMoments) -> dict[str, float]:
    """{feature: sd over all rows}, in the user's units."""
    total = _total_diagonal(moments) / (moments.weight.sum() - 1.0)
    values = np.sqrt(total) * moments.anchor.unit
    return dict(zip(moments.features, values.tolist(), strict=True))


class _Fitted:
    """Standardised coefficients of every class, with the reach of their intervals."""

    def __init__(self, places: Any, value: Floats, reach: Floats) -> None:
        self.places, self.value, self.reach = places, value, reach  # (d'), (K, d'), (K, d')


def _least_squares(moments: ClassMoments, level: float) -> _Fitted:
    check_products(moments, _WHAT)
    n, weight = float(moments.weight.sum()), moments.weight
    apart = moments.mean - moments.centre
    total = moments.pooled + (weight[:, None] * apart).T @ apart
    places = np.flatnonzero(np.diagonal(total) > 0)
    root = np.sqrt(np.diagonal(total)[places])
    correlation = total[np.ix_(places, places)] / root[:, None] / root
    degrees = n - len(places) - 1
    metric, lost = factor(correlation)
    if metric is None or lost is not None or degrees < 1:
        names = [moments.features[j] for j in places]
        rank = len(places) if lost is None else lost.rank
        raise InferenceError.collinear(_WHAT, names, rank, len(names))
    covaries = weight[:, None] * apart[:, places] / root  # (K, d')
    slope = metric.solve(covaries)
    left = np.maximum(weight * (1.0 - weight / n) - np.einsum("kj,kj->k", covaries, slope), 0.0)
    inverse = np.diagonal(metric.solve(np.eye(len(places))))
    step = 1.0 / np.sqrt(n - 1.0)  # slope is for a change of root, which is sd sqrt(n - 1)
    error = np.sqrt(left[:, None] / degrees * inverse)
    reach = float(student.isf(0.5 * (1.0 - level), degrees))
    return _Fitted(places, slope * step, reach * error * step)


def _total_diagonal(moments: ClassMoments) -> Floats:
    within = moments.pooled if moments.pooled.ndim == 1 else np.diagonal(moments.pooled)
    return np.asarray(within + moments.weight @ (moments.mean - moments.centre) ** 2)


def _stepwise(found: Stepwise) -> dict[str, Any]:
    return {
        "steps": [
            {
                "number": step.number,
                "entered": step.entered,
                "removed": step.removed,
                "f": step.f,
                "p": step.p,
                "wilks": step.wilks,
            }
            for step in found.steps[:_FEATURES]
        ],
        "left_out": max(len(found.steps) - _FEATURES, 0),
        "enter": found.enter,
        "stay": found.stay,
        "selected": list(found.selected),
        "features": len(found.features),
        "reason": _DONE.get(found.reason, found.reason),
    }


def listed(findings: Sequence[FindingFacts]) -> list[FindingFacts]:
    """Findings without repetitions."""
    return list({finding["text"]: finding for finding in findings}.values())
