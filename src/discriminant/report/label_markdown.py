"""Facts about a label tree to Markdown: the tables of its page as text (see `report.markdown`)."""

from __future__ import annotations

from typing import Any

from discriminant.assessment.layout import in_bytes
from discriminant.report.label_facts import (
    LabelPageFacts,
    LabelsReadFacts,
    MeasuredFacts,
    ShapeFacts,
    TreeFacts,
)
from discriminant.report.label_page import grown, in_short, ranks_shown, spelt
from discriminant.report.markdown import ended, plainly, spoken, table
from discriminant.report.words import between, counted, duration, number, percent, whole

_OF_ALL = " Nodes and classifiers are those of one tree; weights are of all {}."
_MEASURES = ("P", "nDCG", "recall", "PSP", "PSnDCG")


def labels_to_markdown(facts: LabelPageFacts) -> str:
    """The page of a label tree as Markdown."""
    parts = [f"# {plainly(facts['title'])}", *(spoken(line) for line in in_short(facts))]
    parts += _read(facts["read"]) + _tree(facts["tree"])
    if "measured" in facts:
        parts += _measured(facts["measured"])
    took = ", ".join(f"{what} {duration(each)}" for what, each in facts["seconds"].items())
    parts.append(f"Time taken: {took}." if took else "")
    return ended(parts, facts["made"], facts.get("use"))


def _read(read: LabelsReadFacts) -> list[str]:
    rows, found = read["rows"], counted(read["labels"], "label")
    parts = ["## What was read", f"Rows of {counted(read['features'], 'feature')}, {found}."]
    if rows is not None:
        of = f"{counted(rows, 'row')} of {plainly(read['source'], 90)}"
        parts[1] = f"{of}, {counted(read['features'], 'feature')}, {found}."
        most = [
            [plainly(row["label"], 40), whole(row["rows"]), percent(row["rows"] / rows)]
            for row in read["most"]
        ]
        parts.append(table(["Label", "Rows", "Of all rows"], most) if most else "")
    return parts


def _tree(tree: TreeFacts) -> list[str]:
    held = f"{whole(tree['weights'])} weights in {in_bytes(tree['bytes'])}"
    title = "## The tree" if tree["trees"] == 1 else "## The trees"
    parts = [title, f"{spoken(grown(tree))}. {counted(tree['trees'], 'tree')}, {held}."]
    for shape in tree["shapes"]:
        parts += _shape(shape)
    asked = ", ".join(f"{plainly(name)}={plainly(value)}" for name, value in tree["options"])
    parts.append(f"The fit was asked for {asked}." if asked else "")
    return parts


def _shape(shape: ShapeFacts) -> list[str]:
    head = ["Level", "Nodes", "Children of a node", "Classifiers", "Weights", "Features used"]
    rows = [
        [
            str(level["level"]),
            whole(level["nodes"]),
            _span(level["children"]),
            whole(level["classifiers"]),
            whole(level["weights"]),
            percent(level["features"]),
        ]
        for level in shape["levels"]
    ]
    which = ", ".join(map(str, shape["trees"]))
    leaf = f"{counted(shape['leaf']['of'], 'last node')}, of {spelt(shape['leaf'])} labels."
    return [
        f"Of {'tree' if len(shape['trees']) == 1 else 'trees'} {which}:",
        table(head, rows),
        leaf + (_OF_ALL.format(len(shape["trees"])) if len(shape["trees"]) > 1 else ""),
    ]


def _span(found: dict[str, Any]) -> str:
    return between(found["least"], found["most"])


def _measured(found: MeasuredFacts) -> list[str]:
    ranks, at = ranks_shown(found), found["at"]
    rows = [
        [f"{name}\\@k", *(percent(at[name][k - 1]) for k in ranks)]
        for name in _MEASURES
        if name in at
    ]
    parts = [
        "## How good it is",
        f"{counted(found['rows'], 'row')} of {plainly(found['source'], 60)}, with "
        f"{number(found['labels_a_row'])} labels each on average. This holds for new rows if these "
        "were new to the model.",
        table(["Among the first", *map(str, ranks)], rows),
    ]
    if found["unknown"]:
        are = "is" if found["unknown"] == 1 else "are"
        parts.append(f"{counted(found['unknown'], 'label')} {are} unknown to the model: missed.")
    if found["bins"]:
        head = ["Rows in training", "Labels", "Recall", "Precision", "F1"]
        parts += [
            "Means over labels, by the rows that they had:",
            table(head, _bins(found["bins"])),
        ]
    return parts


def _bins(bins: list[dict[str, Any]]) -> list[list[str]]:
    return [
        [
            between(one["least"], one["most"]),
            whole(one["labels"]),
            *(percent(one[name]) for name in ("recall", "precision", "f1")),
        ]
        for one in bins
    ]
