"""Section of the report on calibration: whether the predicted probabilities can be trusted.

Held-out rows are sorted by a predicted probability: that of the positive class, or with more than
two classes that of the predicted class. In each of up to 10 bins of equally many rows (bins
whose mean probabilities differ by less than 0.01 are one bin)

    predicted  the mean probability p         observed  the share of rows where it came true
    interval   Wilson's, for the observed share
    gap        mean |predicted - observed| over the rows
    test       sum (observed - expected)^2 / sum p (1 - p) over the bins ~ chi-squared(bins)

The test has one degree of freedom for each bin, since the rows are held out. Calibration counts as
poor if p < 0.01 and the gap is at least 3 percentage points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import chdtrc

from discriminant.assessment.intervals import wilson
from discriminant.assessment.resampling.held_out_folds import HeldOutPredictions
from discriminant.report.fact_types import CalibrationBinFacts, CalibrationFacts
from discriminant.report.format import name_list, number, percent
from discriminant.table.blocks import Floats

_BINS = 10
_LEAST_ROWS = 15  # smallest number of rows of a bin
_NEAR = 0.01  # bins whose mean probabilities differ by less are merged
_LEVEL = 0.01
_GAP = 0.03


def calibration_section(
    held: HeldOutPredictions, *, positive: int | None = None
) -> CalibrationFacts | None:
    """Return the reliability of the probabilities; None if the model gives none.

    `positive` is the code of the positive class, if there are two classes.
    """
    if not held.probabilistic:
        return None
    posterior = np.exp(np.where(np.isnan(held.log_posterior), -np.inf, held.log_posterior))
    weight = np.ones(len(held.codes)) if held.weight is None else held.weight
    if positive is None:
        predicted = posterior.argmax(axis=1)
        p, true = posterior.max(axis=1), predicted == held.codes
        of = "the predicted class"
    else:
        p, true = posterior[:, positive], held.codes == positive
        of = name_list([held.labels[positive]])
    rows = np.flatnonzero(weight > 0)
    bins, statistic = _bins(p[rows], true[rows].astype(float), weight[rows])
    total = sum(one["rows"] for one in bins)
    gap = sum(one["rows"] * abs(one["predicted"] - one["observed"]) for one in bins) / total
    p_value = float(chdtrc(len(bins), statistic)) if np.isfinite(statistic) else 0.0
    poor = p_value < _LEVEL and gap >= _GAP
    confidence = float(np.average(posterior.max(axis=1)[rows], weights=weight[rows]))
    right = float(np.average((posterior.argmax(axis=1) == held.codes)[rows], weights=weight[rows]))
    return CalibrationFacts(
        of=of,
        bins=bins,
        gap=float(gap),
        p=p_value,
        poor=poor,
        text=_describe(gap, poor, confidence, right),
    )


def _bins(p: Floats, true: Floats, weight: Floats) -> tuple[list[CalibrationBinFacts], float]:
    """Return the bins, and the statistic of the test."""
    bins, statistic = [], 0.0
    for rows in _groups(p):
        total = float(weight[rows].sum())
        hits, expected = float(weight[rows] @ true[rows]), float(weight[rows] @ p[rows])
        low, high = (float(end) for end in wilson((np.array(hits), np.array(total))))
        bins.append(
            CalibrationBinFacts(
                rows=total, predicted=expected / total, observed=hits / total, low=low, high=high
            )
        )
        variance = float(weight[rows] @ (p[rows] * (1.0 - p[rows])))
        if variance > 0:
            statistic += (hits - expected) ** 2 / variance
        elif hits != expected:
            statistic = np.inf
    return bins, statistic


def _groups(p: Floats) -> list[Any]:
    """Return the row numbers of the bins; neighbours with nearly equal means are merged."""
    order = np.argsort(p, kind="stable")
    bins = int(np.clip(len(p) // _LEAST_ROWS, 1, _BINS))
    cuts = p[order][[len(p) * i // bins for i in range(1, bins)]]
    ends = np.unique(np.searchsorted(p[order], cuts, side="left"))
    groups: list[Any] = []
    for rows in np.split(order, ends[ends > 0]):
        if groups and p[rows].mean() - p[groups[-1]].mean() < _NEAR:
            groups[-1] = np.concatenate([groups[-1], rows])
        else:
            groups.append(rows)
    return groups


def _describe(gap: float, poor: bool, confidence: float, right: float) -> str:
    """Return a sentence on whether the probabilities can be trusted, and what to do if not."""
    if not poor:
        points = "less than 0.1" if gap < 0.001 else number(100 * gap, 2)
        if gap >= _GAP:
            return (
                "No error of the probabilities can be proved: on average they differ from the "
                f"observed frequencies by {points} percentage points (calibration gap), which is "
                "within chance for this number of rows. Trust them roughly, not to the last points."
            )
        return (
            "The probabilities can be trusted: on average they differ from the observed "
            f"frequencies by {points} percentage points (calibration gap)."
        )
    kind = f"the model is too {'confident' if confidence > right else 'cautious'}: the "
    kind += (
        f"mean probability of its predictions is {percent(confidence)}, but {percent(right)} of "
        "them are right"
    )
    if abs(confidence - right) < 0.5 * gap:
        kind = "they are too high for some rows and too low for others"
    return (
        "Do not take the probabilities at face value: they differ from the observed frequencies "
        f"by {number(100 * gap, 2)} percentage points on average (calibration gap), and {kind}. "
        "Recalibrate the model, Calibrated(model) in Python, or use its decisions only."
    )
