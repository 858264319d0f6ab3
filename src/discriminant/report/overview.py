"""Overview at the top of the report: headline figures and the verdict, from the facts alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.assessment.intervals import wilson
from discriminant.report.fact_types import DecisionFacts, Facts, ModelFacts
from discriminant.report.format import count_with_noun, fixed, number, percent, quoted, shown, whole

_RARE = 0.8  # a class with less than this fraction of an even share of the rows is rare
_FEW = 30  # number of cases below which a share is given as counts


def tiles(facts: Facts) -> list[dict[str, str]]:
    """Return four or five headline figures, each with a name and a note that puts it in context."""
    model, read = selected(facts), facts["read"]
    accuracy = None if model["error"] is None else 1.0 - model["error"]
    low, high = model["error_low"], model["error_high"]
    interval = (
        ""
        if low is None or high is None
        else f"95% interval {percent(1.0 - high)} to {percent(1.0 - low)}"
    )
    baseline = facts["comparison"]["baseline"]
    weight = sum(row["weight"] for row in read["classes"])
    weighted = "weighted " if read["weighted"] else ""
    figures = [
        {
            "value": percent(accuracy),
            "name": f"{weighted}accuracy on held-out rows",
            "note": interval,
        }
    ]
    if baseline is not None:
        name = "accuracy of always predicting the most frequent class"
        figures.append({"value": percent(1.0 - baseline), "name": name, "note": "baseline"})
    rare = rarest(facts)
    if rare is not None:
        label = f"“{shown(rare['label'], 24)}”"
        note = "never predicted" if rare["precision"] is None else f"precision {rare['precision']}"
        figures.append({"value": rare["recall"], "name": f"recall for {label}", "note": note})
    if model["auc"] is not None:
        note = "0.5 is random, 1 perfect"
        figures.append({"value": fixed(model["auc"], 3), "name": "AUC", "note": note})
    figures.append(
        {
            "value": whole(read["rows"]),
            "name": "rows" + (f", total weight {whole(weight)}" if read["weighted"] else ""),
            "note": f"{count_with_noun(read['features'], 'feature')}, "
            f"{count_with_noun(len(read['classes']), 'class', 'classes')}",
        }
    )
    return figures


def in_short(facts: Facts) -> list[str]:
    """Return the result, the verdict and the number of warnings as sentences."""
    lines = [_result(facts), *verdict(facts)]
    findings = facts["matters"]["findings"] if "matters" in facts else []
    if findings:
        lines.append(f"{count_with_noun(len(findings), 'warning')}: see “What matters”.")
    return lines


def verdict(facts: Facts) -> list[str]:
    """Return sentences on the baseline, costs, rejected rows and the rarest class."""
    lines = [_against_baseline(facts)]
    decision = facts.get("decision")
    if decision is not None and decision["costs_given"]:
        per = "a weight of 100" if decision["weighted"] else "100 rows"
        cost = number(100 * (decision["mean_cost"] or 0.0))
        lines.append(f"With the given costs, decisions cost {cost} per {per} on average.")
    rejected = 0.0 if decision is None else _rejected_share(decision)
    if decision is not None and (decision["reject"] is not None or rejected > 0):
        verb = "is" if decision["weighted"] else "are"
        lines.append(
            f"{percent(rejected)} of {_rows(facts)} {verb} rejected as too uncertain and referred "
            "to a person."
        )
    rare = rarest(facts)
    if rare is not None:
        lines.append(_rare_class(rare))
    return [line for line in lines if line]


def rarest(facts: Facts) -> dict[str, Any] | None:
    """Return recall and precision of the rarest class as text, or None if no class is rare."""
    decision = facts.get("decision")
    if decision is None:
        return None
    classes = [row for row in decision["by_class"] if row["recall"] is not None]
    total = sum(row["rows"] for row in classes)
    row = min(classes, key=lambda row: float(row["rows"]), default=None)
    if row is None or len(classes) < 2 or row["rows"] * len(classes) >= _RARE * total:
        return None
    correct = row["recall"] * row["rows"]
    low, high = map(float, wilson((np.array(correct), np.array(row["rows"]))))
    precision = row["precision"]
    return {
        "label": row["label"],
        "recall": _share(correct, row["rows"]),
        "interval": f"95% interval {percent(low)} to {percent(high)}",
        "precision": "0%" if precision == 0 else precision and _share(correct, correct / precision),
    }


def _share(part: float, whole_count: float) -> str:
    """Return a share as a percentage, or as counts if there are few cases."""
    part, whole_count = round(part, 6), round(whole_count, 6)
    if whole_count < _FEW and part == int(part) and whole_count == int(whole_count):
        return f"{int(part)} of {int(whole_count)}"
    return percent(part / whole_count)


def _rare_class(rare: dict[str, Any]) -> str:
    label = f"“{shown(rare['label'], 40)}”"
    if rare["precision"] is None:
        return f"The rarest class, {label}, is never predicted: its recall is 0."
    return (
        f"Recall for {label}, the rarest class, is {rare['recall']} ({rare['interval']}); "
        f"precision is {rare['precision']}."
    )


def selected(facts: Facts) -> ModelFacts:
    """Return the selected model, or the first model if no model is selected."""
    models = facts["comparison"]["models"]
    return next((model for model in models if model["chosen"]), models[0])


def _result(facts: Facts) -> str:
    model, count = selected(facts), len(facts["comparison"]["models"])
    name = quoted(model["label"])
    subject = f"{name} was selected among {count} models" if count > 1 else f"The model is {name}"
    wrong = "none" if model["error"] == 0 else percent(model["error"])
    return f"{subject}; it misclassified {wrong} of {_rows(facts)} that were held out."


def _rejected_share(decision: DecisionFacts) -> float:
    total = sum(map(sum, decision["confusion"]))
    rejected = sum(map(sum, decision["confusion"][len(decision["actions"]) :]))
    return rejected / total if total else 0.0


def _rows(facts: Facts) -> str:
    return "the weight of the rows" if facts["read"]["weighted"] else "the rows"


def _against_baseline(facts: Facts) -> str:
    model, baseline = selected(facts), facts["comparison"]["baseline"]
    if baseline is None or model["error"] is None or model["error_high"] is None:
        return ""
    return compare_with_baseline(baseline, model["error_high"])


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
