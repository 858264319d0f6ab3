"""Decisions from log posteriors: costs, thresholds, the reject option, and cost curves."""

from discriminant.decision.actions import (
    OUTLIER as OUTLIER,
    REJECT as REJECT,
    Reject as Reject,
    Verdict as Verdict,
    decided as decided,
    expected_cost as expected_cost,
    least_cost as least_cost,
    rejected as rejected,
)
from discriminant.decision.costs import (
    Costs as Costs,
    cost_threshold as cost_threshold,
    rescaled_odds as rescaled_odds,
)
from discriminant.decision.risk_and_cost_curves import (
    CostCurve as CostCurve,
    RiskCoverage as RiskCoverage,
    cost_curve as cost_curve,
    risk_coverage as risk_coverage,
)
from discriminant.decision.thresholds import (
    GroupThresholds as GroupThresholds,
    TunedReject as TunedReject,
    TunedThreshold as TunedThreshold,
    group_thresholds as group_thresholds,
    tuned_reject as tuned_reject,
    tuned_threshold as tuned_threshold,
)
