"""Verdict of a report: whether to use the model, by a rule applied to the facts of the report.

    no     the corrected log loss is not below that of the class shares by more than its interval,
           and the error is not significantly below that of always predicting the most frequent
           class; the interval is that of the gain over guessing on the same rows, if it is known
    care   a data check of severity "stop" or "warning"; a class of fewer than 10 rows; a recall
           whose 95% interval reaches below 50%; poor calibration; boosted trees that are clearly
           better; a fit that did not converge; a class that is never predicted correctly
    use    otherwise

If there are no corrected values, the uncorrected values of the selected model are compared.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from discriminant.assessment.intervals import wilson
from discriminant.report.fact_types import (
    CheckFacts,
    ComparisonFacts,
    DecisionFacts,
    Facts,
    GainFacts,
    ModelFacts,
    VerdictFacts,
)
from discriminant.report.format import (
    count_with_noun,
    loss,
    name_list,
    number,
    percent,
    share,
    shown,
)

FEW_ROWS = 10  # with fewer rows, a class cannot be assessed
_LEAST_RECALL = 0.5
_REASONS = 3  # largest number of reasons in the sentence of the verdict
_RULE = (
    "Do not use: neither the log loss on held-out rows (corrected for the selection of the model) "
    "nor the error is better than guessing by more than the 95% interval (for the log loss, that "
    "of the difference row by row), or without a leaking column it is no better. Use with care: a "
    "data check found a problem, a class has fewer than 10 rows or a recall whose interval reaches "
    "below 50%, the probabilities are off, boosted trees are clearly better, or a fit did not "
    "converge. Use: none of these."
)
_FINDINGS = {  # kinds of findings that call for care
    "not converged": "a fit did not converge",
    "masked": "a class is hardly ever predicted correctly",
    "worse than chance": "the ranking of held-out rows is worse than chance",
}


SHORT_RULES = {
    "use": "“Use it” means: better than guessing by more than the 95% interval, and none of the "
    "problems listed in the rule.",
    "care": (
        "“Use it with care” means: better than guessing by more than the 95% interval, but with at "
        "least one of the problems listed in the rule."
    ),
    "no": (
        "“Do not use it” means: neither the error nor the log loss on held-out rows is better than "
        "guessing by more than the 95% interval."
    ),
}


class Headline(NamedTuple):
    """Error and log loss of the selected model with intervals, corrected if possible."""

    error: float | None
    error_low: float | None
    error_high: float | None
    log_loss: float | None
    log_loss_low: float | None
    log_loss_high: float | None
    corrected: bool
    interval: str = "Wilson's"  # method of the interval of the error


def headline(facts: Facts) -> Headline:
    """Return the corrected measures of the selected model, or its raw measures."""
    one: Any = facts["comparison"].get("headline")
    model = selected(facts)
    if one is not None:
        ends = (one["log_loss_low"], one["log_loss_high"])
        low, high = one["error_low"], one["error_high"]
        same = abs(one["error"] - one["error_raw"]) < 1e-12  # nothing was selected
        if same or low == high:  # Wilson's interval of the raw figure; no resample has an error
            low, high = model["error_low"] or 0.0, model["error_high"] or high
        corrected = not same or one["log_loss"] != one["log_loss_raw"]
        by = "Wilson's" if same or one["error_low"] == one["error_high"] else "bootstrap"
        return Headline(one["error"], low, high, one["log_loss"], *ends, corrected, by)
    ends = (model["error_low"], model["error_high"])
    return Headline(model["error"], *ends, model["log_loss"], None, None, False)


def shown_comparison(facts: Facts) -> ComparisonFacts:
    """Return the comparison with one interval for the error of the selected model.

    If the correction for the selection is too small to show, the interval at the top of the page
    also replaces Wilson's interval in the table and in the figure.
    """
    comparison, one = facts["comparison"], facts["comparison"].get("headline")
    if one is None or percent(one["error"]) != percent(one["error_raw"]):
        return comparison
    ends = headline(facts)
    models = [
        ModelFacts(**{**model, "error_low": ends.error_low, "error_high": ends.error_high})
        if model["chosen"]
        else model
        for model in comparison["models"]
    ]
    return ComparisonFacts(**{**comparison, "models": models})


def selected(facts: Facts) -> ModelFacts:
    """Return the selected model, or the first model if no model is selected."""
    models = facts["comparison"]["models"]
    return next((model for model in models if model["chosen"]), models[0])


def baseline_log_loss(facts: Facts) -> float:
    """Return the log loss of predicting the class shares: their entropy.

    >>> shares = {"comparison": {}, "read": {"classes": [{"weight": 1.0}, {"weight": 3.0}]}}
    >>> round(baseline_log_loss(shares), 4)
    0.5623
    """
    given = facts["comparison"].get("baseline_log_loss")
    if given is not None:
        return given
    weight = np.array([row["weight"] for row in facts["read"]["classes"]])
    p = weight[weight > 0] / weight.sum()
    return float(-(p @ np.log(p)))


def guess_cost(decision: DecisionFacts) -> float:
    """Return the mean cost of the best constant decision, the same for all rows.

    >>> rows = [[6.0, 1.0], [0.0, 3.0]]
    >>> guess_cost({"confusion": rows, "cost": [[0, 1], [1, 0]], "reject": None})
    0.4
    """
    rows = np.array(decision["confusion"]).sum(axis=0)
    costs = np.array(decision["cost"]) @ rows / rows.sum()
    reject = decision["reject"]
    return float(min(costs.min(), np.inf if reject is None else reject))


class CostHeadline(NamedTuple):
    """Mean costs of decisions at given costs, and their error with these and with equal costs."""

    cost: float
    guess: float  # of the best single decision for all rows
    error: float | None  # of the decisions at the given costs, of the rows that are not rejected
    equal_error: float | None  # of the decisions with equal costs, corrected if possible
    per: str

    @property
    def compared(self) -> str:
        """Mean costs of the decisions and of guessing."""
        return f"{number(self.cost)} {self.per} on average, against {number(self.guess)}"

    @property
    def errors(self) -> str:
        """Both errors, each with its costs."""
        with_these = "" if self.error is None else f"{percent(self.error)} with these costs, "
        return f"{with_these}{percent(self.equal_error)} with equal costs"


def cost_headline(facts: Facts) -> CostHeadline | None:
    """Return the costs of the decisions compared with guessing; None if no costs are given."""
    decision = facts.get("decision")
    if decision is None or not decision["costs_given"] or decision["mean_cost"] is None:
        return None
    return CostHeadline(
        decision["mean_cost"],
        guess_cost(decision),
        decision["error"],
        headline(facts).error,
        "per unit of weight" if decision["weighted"] else "per row",
    )


def verdict_of(facts: Facts) -> VerdictFacts:
    """Return the verdict on the selected model."""
    reasons = care_reasons(facts)
    if useless_without_leaks(facts):
        return VerdictFacts(
            level="no",
            text="Do not use it: no better than guessing without "
            f"{name_list(facts['comparison']['without'][0]['columns'])}, which may contain the "
            "outcome (leak).",
            rule=_RULE,
            reasons=reasons,
        )
    if not better_than_guessing(facts):
        return VerdictFacts(
            level="no",
            text=f"Do not use it: no better than guessing. {_against_guessing(facts)}",
            rule=_RULE,
            reasons=reasons,
        )
    one, baseline = headline(facts), facts["comparison"]["baseline"]
    costs = cost_headline(facts)
    if costs is not None:
        if costs.cost >= costs.guess * (1 - 1e-9):
            reasons = [
                f"its decisions are no better than guessing: they cost {costs.compared} for the "
                "best single decision for all rows",
                *reasons,
            ]
    elif one.error is not None and baseline is not None and one.error >= baseline:
        reasons = [
            "its decisions are no better than guessing, only its probabilities are",
            *reasons,
        ]
    if not reasons:
        text = f"Use it. {_against_guessing(facts)}"
        return VerdictFacts(level="use", text=text, rule=_RULE, reasons=[])
    first = reasons[0].replace("(leak)", f"(leak{_without_leaks(facts)})")
    shown_reasons = [first, *reasons[1:_REASONS]]
    if len(reasons) > _REASONS:
        shown_reasons.append(count_with_noun(len(reasons) - _REASONS, "more reason"))
    *others, last = shown_reasons
    text = f"Use it with care, because {'; '.join(others)}{'; and ' * bool(others)}{last}."
    return VerdictFacts(level="care", text=text, rule=_RULE, reasons=reasons)


def useless_without_leaks(facts: Facts) -> bool:
    """Whether a column stops the use, and without it the model is no better than guessing.

    The log loss is then not at least 1% lower, and the error not significantly lower.
    """
    without = facts["comparison"].get("without")
    stops = any(c["kind"] == "leak" and c["severity"] == "stop" for c in facts.get("checks", []))
    if not without or not stops or without[0]["log_loss"] is None:
        return False
    error, baseline = without[0]["error"], facts["comparison"]["baseline"]
    rows = float(facts["read"]["rows"])
    no_fewer_errors = (
        error is None
        or baseline is None
        or float(wilson((np.array(error * rows), np.array(rows)))[1]) >= baseline
    )
    return no_fewer_errors and without[0]["log_loss"] >= 0.99 * baseline_log_loss(facts)


def _without_leaks(facts: Facts) -> str:
    """Return the error without the columns that reveal the class, as the end of a remark."""
    without = facts["comparison"].get("without")
    if not without or without[0]["error"] is None:
        return ""
    which = "it" if len(without[0]["columns"]) == 1 else "such columns"
    return f"; without {which} the error is {percent(without[0]['error'])}"


def better_than_guessing(facts: Facts) -> bool:
    """Whether the log loss or the error is significantly better than guessing."""
    one, baseline = headline(facts), facts["comparison"]["baseline"]
    if one.error_high is not None and baseline is not None and one.error_high < baseline:
        return True
    if one.log_loss is None:
        return False
    gain = gain_over_guessing(facts)
    if gain is not None:
        return gain["low"] > 0
    highest = one.log_loss if one.log_loss_high is None else one.log_loss_high
    return highest < baseline_log_loss(facts)


def gain_over_guessing(facts: Facts) -> GainFacts | None:
    """Return by how much the log loss of guessing is higher, with a 95% interval.

    The interval has the width of that of the gains of the rows in the first division into folds,
    about the difference of the figures that the page shows: of all divisions, and corrected for the
    selection.
    """
    gain, one = facts["comparison"].get("gain"), headline(facts)
    if gain is None or one.log_loss is None:
        return gain
    value, reach = baseline_log_loss(facts) - one.log_loss, (gain["high"] - gain["low"]) / 2
    return GainFacts(value=value, low=value - reach, high=value + reach)


def _against_guessing(facts: Facts) -> str:
    """Compare the error and the log loss with those of guessing, in one sentence."""
    one, baseline = headline(facts), facts["comparison"]["baseline"]
    parts = []
    rows = "the weight of held-out rows" if facts["read"]["weighted"] else "held-out rows"
    costs = cost_headline(facts)
    if costs is not None:
        parts.append(f"its decisions cost {costs.compared} for guessing")
        guess = "" if baseline is None else f" (guessing: {percent(baseline)})"
        parts.append(f"its error is {costs.errors}{guess}")
    elif one.error is not None and baseline is not None:
        wrong = "none" if one.error == 0 else percent(one.error)
        parts.append(
            f"it misclassifies {wrong} of the {rows}, against {percent(baseline)} for guessing"
        )
    if one.log_loss is not None and math.isfinite(one.log_loss):
        guess = loss(baseline_log_loss(facts))
        parts.append(f"its log loss is {loss(one.log_loss)}, against {guess}")
    text = "; ".join(parts).replace("of the the", "of the")
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def care_reasons(facts: Facts) -> list[str]:
    """Return the reasons for care, the most serious first."""
    return [_check_reason(check) for check in warning_checks(facts)] + other_reasons(facts)


def other_reasons(facts: Facts) -> list[str]:
    """Return the reasons for care that are not data checks."""
    reasons = _class_reasons(facts, {check["kind"] for check in warning_checks(facts)})
    calibration = facts.get("calibration")
    if calibration is not None and calibration["poor"]:
        gap = number(100 * calibration["gap"], 2)
        reasons.append(f"its probabilities are off by {gap} percentage points on average")
    yardstick = facts["comparison"].get("yardstick")
    if yardstick is not None and yardstick["better"]:
        groups = any(check["kind"] == "groups" for check in warning_checks(facts))
        reasons.append(
            "boosted trees are clearly better, perhaps because they recognise rows of the same "
            "group in other folds"
            if groups
            else "boosted trees are clearly better: the boundary is more complicated than these "
            "models can represent"
        )
    findings = facts["matters"]["findings"] if "matters" in facts else []
    for kind in dict.fromkeys(finding["kind"] for finding in findings):
        if kind in _FINDINGS and not (kind == "masked" and "decision" in facts):  # a low recall
            reasons.append(_FINDINGS[kind])
    return reasons


_CHECKS = {  # what a check found, as the end of a sentence; {} is the first column
    "leak": "column {} may contain the outcome (leak)",
    "imbalance": "the classes are imbalanced",
    "labels": "the classes are spelled in several ways",
    "spelling": "column {} contains mixed spellings",
    "identifier": "the identifier {} is used as a feature",
    "rare_levels": "the category {} has many rare levels",
    "fold_column": "column {} looks like numbers of folds",
    "matched_sets": "the rows form matched sets ({})",
    "groups": "rows belong to groups ({})",
}


def _check_reason(check: CheckFacts) -> str:
    """Return the result of a data check, worded as the end of a sentence.

    >>> check = {"kind": "duplicates", "title": "3 duplicate rows", "columns": []}
    >>> _check_reason(check), _check_reason({"kind": "groups", "title": "", "columns": ["site"]})
    ('the data checks found 3 duplicate rows', 'rows belong to groups (site)')
    """
    title, column = _lower_first(check["title"]), (check["columns"] or [""])[0]
    title = check["title"].removeprefix("Drift: ") if check["kind"] == "time_drift" else title
    if check["kind"] in _CHECKS:
        return _CHECKS[check["kind"]].format(shown(column, 40))
    verbs = ("duplicates ", "probably means", "depends on", "depend on", "differ between")
    if any(verb in title for verb in verbs):
        return title
    return f"the data checks found {title}"


def warning_checks(facts: Facts) -> list[CheckFacts]:
    """Return the data checks to show at the top of the page, those of severity "stop" first."""
    rank = {"stop": 0, "warning": 1}
    checks = [check for check in facts.get("checks", []) if check["severity"] in rank]
    return sorted(checks, key=lambda check: rank[check["severity"]])


def _class_reasons(facts: Facts, kinds: set[str]) -> list[str]:
    reasons = []
    few = [row["label"] for row in facts["read"]["classes"] if 0 < row["rows"] < FEW_ROWS]
    if few and "rare_class" not in kinds:
        noun = "class" if len(few) == 1 else "classes"
        reasons.append(f"{noun} {name_list(few)} has fewer than {FEW_ROWS} rows")
        if len(few) > 1:
            reasons[-1] = reasons[-1].replace(" has ", " have ")
    decision = facts.get("decision")
    if decision is None:
        return reasons
    low = []
    for row in decision["by_class"]:
        if row["recall"] is None or row["label"] in few:
            continue
        correct = row["recall"] * row["rows"]
        if float(wilson((np.array(correct), np.array(row["rows"])))[0]) < _LEAST_RECALL:
            low.append((row["label"], correct, row["rows"]))
    if len(low) == 1:
        label, correct, rows = low[0]
        reasons.append(f"its recall for {name_list([label])} is only {share(correct, rows)}")
    elif low:
        label, correct, rows = min(low, key=lambda one: one[1] / one[2])
        reasons.append(
            f"the recall of {count_with_noun(len(low), 'class', 'classes')} may be below 50% "
            f"(lowest: {name_list([label])}, {share(correct, rows)})"
        )
    return reasons


def _lower_first(text: str) -> str:
    """Return a title as part of a sentence: its first letter is in lower case, unless it is a name.

    >>> _lower_first("Column x leaks the class."), _lower_first("ID column")
    ('column x leaks the class', 'ID column')
    """
    text = text.rstrip(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
