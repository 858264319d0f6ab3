"""Overview at the top of the report: headline figures, and the result as sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.assessment.intervals import wilson
from discriminant.report.fact_types import DecisionFacts, Facts
from discriminant.report.format import area, fixed, loss, number, percent, quoted, share, shown
from discriminant.report.verdict import (
    baseline_log_loss,
    cost_headline,
    gain_over_guessing,
    headline,
    selected,
    verdict_of,
)


def tiles(facts: Facts) -> list[dict[str, str]]:
    """Return the three key figures, each with its interval and the figure for guessing."""
    one, baseline = headline(facts), facts["comparison"]["baseline"]
    weighted = "weighted " if facts["read"]["weighted"] else ""
    corrected = ", corrected for the selection" if one.corrected else ""
    costs = cost_headline(facts)
    figures = [
        {
            "value": number(costs.cost),
            "name": f"mean cost {costs.per} of the decisions at the given costs",
            "note": f"error: {costs.errors}",
            "guess": f"guessing: {number(costs.guess)}",
        }
        if costs is not None
        else {
            "value": percent(one.error),
            "name": f"{weighted}error on held-out rows{corrected}",
            "note": _interval(one.error_low, one.error_high, percent, one.interval),
            "guess": "" if baseline is None else f"guessing: {percent(baseline)}",
        }
    ]
    if one.log_loss is not None:
        figures.append(
            {
                "value": loss(one.log_loss),
                "name": f"log loss of its probabilities{corrected}",
                "note": _interval(one.log_loss_low, one.log_loss_high, loss, "bootstrap"),
                "guess": f"guessing: {loss(baseline_log_loss(facts))}{_gain(facts)}",
            }
        )
    worst = lowest_recall(facts)
    if worst is not None:
        figures.append(
            {
                "value": worst["recall"],
                "name": f"recall for “{shown(worst['label'], 24)}”, the lowest of all classes",
                "note": worst["interval"],
                "guess": "never predicted"
                if worst["precision"] is None
                else f"precision {worst['precision']}",
            }
        )
    return figures


def _gain(facts: Facts) -> str:
    """Return the mean gain in log loss over guessing, by which the verdict is decided."""
    gain = gain_over_guessing(facts)
    if gain is None:
        return ""
    low, high = fixed(gain["low"], 3), fixed(gain["high"], 3)
    return f", higher by {fixed(gain['value'], 3)} ({low} to {high})"


def _interval(low: float | None, high: float | None, form: Any, method: str) -> str:
    if low is None or high is None:
        return ""
    return f"95% interval {form(low)} to {form(high)} ({method})"


def in_short(facts: Facts) -> list[str]:
    """Return the verdict, its reasons, and the result as sentences."""
    decided = facts.get("verdict") or verdict_of(facts)
    lines = [decided["text"]]
    if len(decided["reasons"]) > 1 or decided["level"] == "no":
        lines += [f"{reason[:1].upper()}{reason[1:]}." for reason in decided["reasons"]]
    return [*lines, *result(facts)]


def result(facts: Facts) -> list[str]:
    """Return sentences on the model, costs, rejected rows and the best single model."""
    lines = [_result(facts), *_worth(facts)]
    lines[1:1] = [one["text"] for one in facts["comparison"].get("without", [])]
    costs = cost_headline(facts)
    if costs is not None:
        lines.insert(
            1,
            f"With the given costs, decisions cost {costs.compared} for guessing (the best single "
            f"decision for all rows). The error is {costs.errors}.",
        )
    decision = facts.get("decision")
    rejected = 0.0 if decision is None else _rejected_share(decision)
    if decision is not None and (decision["reject"] is not None or rejected > 0):
        verb = "is" if decision["weighted"] else "are"
        lines.append(
            f"{percent(rejected)} of {_rows(facts)} {verb} rejected as too uncertain and referred "
            "to a person."
        )
    rare = lowest_recall(facts)
    if rare is not None:
        lines.append(_recall_sentence(rare))
    single = facts["comparison"].get("best_single")
    if single is not None:
        lines.append(single["text"])
    yardstick = facts["comparison"].get("yardstick")
    if yardstick is not None:
        lines.append(yardstick["text"])
    return lines


def lowest_recall(facts: Facts) -> dict[str, Any] | None:
    """Return recall and precision of the class with the lowest recall as text, if there is one."""
    decision = facts.get("decision")
    if decision is None:
        return None
    classes = [row for row in decision["by_class"] if row["recall"] is not None]
    if len(classes) < 2:
        return None
    row = min(classes, key=lambda row: (float(row["recall"]), float(row["rows"])))
    correct = row["recall"] * row["rows"]
    low, high = map(float, wilson((np.array(correct), np.array(row["rows"]))))
    precision = row["precision"]
    return {
        "label": row["label"],
        "recall": share(correct, row["rows"]),
        "interval": f"95% interval {percent(low)} to {percent(high)}",
        "precision": "0%" if precision == 0 else precision and share(correct, correct / precision),
    }


def _recall_sentence(rare: dict[str, Any]) -> str:
    label = f"“{shown(rare['label'], 40)}”"
    if rare["precision"] is None:
        return f"{label} is never predicted: its recall is 0."
    return (
        f"The lowest recall is that of {label}: {rare['recall']} ({rare['interval']}); its "
        f"precision is {rare['precision']}."
    )


def _result(facts: Facts) -> str:
    model, comparison = selected(facts), facts["comparison"]
    count = comparison.get("selectable", len(comparison["models"]))
    name = quoted(model["label"])
    if count > 1 and _requested(facts):
        subject = f"{name} was used as requested ({len(comparison['models'])} models were compared)"
    elif count > 1:
        subject = f"{name} was selected among {count} models"
    else:
        subject = f"The model is {name}"
    wrong = "none" if model["error"] == 0 else percent(model["error"])
    equal = "" if cost_headline(facts) is None else "with equal costs "
    sentence = f"{subject}; {equal}it misclassified {wrong} of {_rows(facts)} that were held out"
    one = facts["comparison"].get("headline")
    if one is None or percent(one["error"]) == percent(model["error"]):
        return f"{sentence}."
    return f"{sentence}, or {percent(one['error'])} when corrected for the selection."


def _requested(facts: Facts) -> bool:
    """Whether the user named the model of the report."""
    return "was selected as requested" in facts["comparison"]["why"]


def _worth(facts: Facts) -> list[str]:
    """Return a sentence on how much better the model is than guessing, unless the verdict says so.

    Both measures are compared with guessing: a model of an imbalanced target may have useful
    probabilities although its error is that of the most frequent class.
    """
    decided = facts.get("verdict") or verdict_of(facts)
    one, baseline = headline(facts), facts["comparison"]["baseline"]
    if decided["level"] != "care" or one.error is None or one.log_loss is None or baseline is None:
        return []
    error = f"{percent(one.error)} against {percent(baseline)}"
    log_loss = f"{loss(one.log_loss)} against {loss(baseline_log_loss(facts))}"
    costs = cost_headline(facts) is not None
    if one.error < baseline:
        subject = "With equal costs, it" if costs else "It"
        if one.error_high is not None and one.error_high >= baseline:
            error += ", a difference within the interval"
        return [
            f"{subject} is better than guessing: by its error ({error}) and by the log loss of its "
            f"probabilities ({log_loss})."
        ]
    if costs:
        return [
            f"With equal costs, its decisions are no better than guessing (error {error}), but its "
            f"probabilities are (log loss {log_loss})."
        ]
    return [
        f"Its decisions are no better than guessing (error {error}), but its probabilities are "
        f"(log loss {log_loss}{_auc(facts)}): use them to rank rows, or lower the threshold (see "
        "“Costs”)."
    ]


def _auc(facts: Facts) -> str:
    """Return the AUC of the selected model as the end of a list of figures."""
    value = selected(facts)["auc"]
    return "" if value is None else f"; AUC {area(value)}, where 0.5 is chance"


def _rejected_share(decision: DecisionFacts) -> float:
    total = sum(map(sum, decision["confusion"]))
    rejected = sum(map(sum, decision["confusion"][len(decision["actions"]) :]))
    return rejected / total if total else 0.0


def _rows(facts: Facts) -> str:
    return "the weight of the rows" if facts["read"]["weighted"] else "the rows"


def compare_with_baseline(baseline: float, error_high: float) -> str:
    """Compare the upper limit of an error with the error of always predicting the largest class."""
    always = f"Always predicting the most frequent class has an error of {percent(baseline)}"
    if error_high < baseline:
        return (
            f"{always}. This is above the 95% interval of the model's error, so the model is "
            "significantly better than this baseline."
        )
    return (
        f"{always}. This is not above the 95% interval of the model's error, so by its error the "
        "model is not significantly better than this baseline."
    )
