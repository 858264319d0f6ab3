"""What a reader in a hurry wants to know, from the facts alone."""

from __future__ import annotations

from typing import Any

from discriminant.report.fact_types import DecisionFacts, Facts, ModelFacts
from discriminant.report.format import counted, number, percent, shown, told, whole

_EVEN = 0.8  # of an even share: a class below it is rare


def tiles(facts: Facts) -> list[dict[str, str]]:
    """Four or five figures with their names and what to hold them against."""
    model, read = chosen(facts), facts["read"]
    right = None if model["error"] is None else 1.0 - model["error"]
    ends = model["error_low"], model["error_high"]
    span = (
        ""
        if ends[0] is None or ends[1] is None
        else f"{percent(1.0 - ends[1])} to {percent(1.0 - ends[0])} is plausible"
    )
    base = facts["comparison"]["baseline"]
    weight = sum(row["weight"] for row in read["classes"])
    by = ", by weight," if read["weighted"] else ""
    found = [{"value": percent(right), "name": f"right{by} on rows not seen before", "note": span}]
    if base is not None:
        always = "by always saying the most frequent class"
        found.append({"value": percent(1.0 - base), "name": always, "note": "the bar to clear"})
    rare = rarest(facts)
    if rare is not None:
        found.append(_found_tile(rare))
    if model["auc"] is not None:
        found.append(
            {"value": percent(model["auc"]), "name": "AUC", "note": "50% is a coin, 100% perfect"}
        )
    found.append(
        {
            "value": whole(read["rows"]),
            "name": "rows" + (f", of weight {whole(weight)}" if read["weighted"] else ""),
            "note": f"{counted(read['features'], 'feature')}, "
            f"{counted(len(read['classes']), 'class', 'classes')}",
        }
    )
    return found


def in_short(facts: Facts) -> list[str]:
    """A few sentences."""
    found = [_best(facts), *verdict(facts)]
    findings = facts["matters"]["findings"] if "matters" in facts else []
    if findings:
        things = counted(len(findings), "thing")
        found.append(f"“What matters” below has {things} to know before trusting it.")
    return found


def verdict(facts: Facts) -> list[str]:
    """What mistakes alone do not say: the bar to clear, costs, rows passed on, the rarest class."""
    found = [_against_chance(facts)]
    decision = facts.get("decision")
    if decision is not None and decision["costs_given"]:
        found.append(
            f"With the costs given, deciding costs {number(100 * (decision['mean_cost'] or 0.0))} "
            f"for {'a weight of 100' if decision['weighted'] else '100 rows'}, on average."
        )
    aside = 0.0 if decision is None else _aside(decision)
    if decision is not None and (decision["reject"] is not None or aside > 0):
        found.append(
            f"{percent(aside)} of {_rows(facts)} "
            f"{'is' if decision['weighted'] else 'are'} too doubtful and passed on to a person."
        )
    rare = rarest(facts)
    if rare is not None:
        found.append(_found_words(rare))
    return [line for line in found if line]


def rarest(facts: Facts) -> dict[str, Any] | None:
    """What is decided of the rarest class, where classes are not about as frequent."""
    decision = facts.get("decision")
    if decision is None:
        return None
    own = [row for row in decision["by_class"] if row["recall"] is not None]
    total = sum(row["rows"] for row in own)
    least = min(own, key=lambda row: float(row["rows"]), default=None)
    if least is None or len(own) < 2 or least["rows"] * len(own) >= _EVEN * total:
        return None
    return dict(least)


def _found_tile(rare: dict[str, Any]) -> dict[str, str]:
    label = f"“{shown(rare['label'], 24)}”"
    of_called = (
        f"none are called {label}"
        if rare["precision"] is None
        else f"{percent(rare['precision'])} of those called {label} are"
    )
    return {"value": percent(rare["recall"]), "name": f"of {label} found", "note": of_called}


def _found_words(rare: dict[str, Any]) -> str:
    label = f"“{shown(rare['label'], 40)}”"
    if rare["precision"] is None:
        return f"No row is called {label}, so that none of this rarest class is found."
    return (
        f"{percent(rare['recall'])} of {label}, the rarest class, are found; of those called "
        f"{label}, {percent(rare['precision'])} are."
    )


def chosen(facts: Facts) -> ModelFacts:
    """The model that was taken, or else the first."""
    models = facts["comparison"]["models"]
    return next((model for model in models if model["chosen"]), models[0])


def _best(facts: Facts) -> str:
    model, count = chosen(facts), len(facts["comparison"]["models"])
    among = (
        f"Of {count} models, {told(model['label'])} was taken"
        if count > 1
        else f"The model is {told(model['label'])}"
    )
    wrong = "none" if model["error"] == 0 else percent(model["error"])
    return f"{among}: it was wrong on {wrong} of {_rows(facts)} that it had not seen before."


def _aside(decision: DecisionFacts) -> float:
    """Share of what is passed on."""
    total = sum(map(sum, decision["confusion"]))
    return (
        sum(map(sum, decision["confusion"][len(decision["actions"]) :])) / total if total else 0.0
    )


def _rows(facts: Facts) -> str:
    """What shares are of."""
    return "the weight of the rows" if facts["read"]["weighted"] else "the rows"


def _against_chance(facts: Facts) -> str:
    model, base = chosen(facts), facts["comparison"]["baseline"]
    high = model["error_high"]
    if base is None or model["error"] is None or high is None:
        return ""
    if high < base:
        return (
            f"Always saying the most frequent class would be wrong on {percent(base)}, "
            "so the features do tell the classes apart."
        )
    return (
        f"Always saying the most frequent class would be wrong on {percent(base)}: by number of "
        "mistakes alone, the model is not clearly better than that."
    )
