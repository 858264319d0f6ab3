"""What the page of a label tree says, as facts: what was read, the trees, how good they are, use.

Label frequencies, from the most frequent label down, are drawn from at most some hundred of them:
ranks that are about evenly apart on a scale of logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

import numpy as np
import numpy.typing as npt

from discriminant.assessment.forest_summary import ForestSummary, level_rows
from discriminant.report.facts import Made, UseFacts, plain

_DRAWN = 120  # labels in the figure of frequencies
_NAMED = 10  # labels that are named


class LabelsReadFacts(TypedDict):
    """Section 1: the rows of the fit, as far as the model knows them."""

    source: str
    features: int
    labels: int
    rows: int | None  # None of a model that was saved without
    pairs: int | None  # labels of all rows
    unseen: int | None  # labels without rows
    median: float | None  # rows of the label in the middle
    half: int | None  # labels, the most frequent ones, that make half of the pairs
    ranks: list[int]  # from 1, of the labels drawn
    counts: list[int]  # their rows
    most: list[dict[str, Any]]  # label and rows


class ShapeFacts(TypedDict):
    """Trees of one shape."""

    trees: list[int]  # from 1
    levels: list[dict[str, Any]]
    depth: dict[str, Any]
    leaf: dict[str, Any]


class TreeFacts(TypedDict):
    """Section 2: what the labels were put into."""

    trees: int
    kind: str
    weights: int
    bytes: int
    precision: str
    path: str
    beam: int
    met: float
    classifiers: int
    shapes: list[ShapeFacts]
    options: list[list[str]]  # those that are not as they come


class MeasuredFacts(TypedDict):
    """Section 3: how good it is on rows that it had not seen."""

    source: str
    rows: int
    labels_a_row: float
    unknown: int
    seconds: float
    at: dict[str, list[float | None]]  # (k,) P, nDCG, recall, and PSP, PSnDCG
    bins: list[dict[str, Any]] | None


class LabelPageFacts(TypedDict):
    """All that the page says."""

    title: str
    made: Made
    read: LabelsReadFacts
    tree: TreeFacts
    measured: NotRequired[MeasuredFacts]
    seconds: dict[str, float]  # by what took them
    use: NotRequired[UseFacts]


def labels_read(
    source: str, summary: ForestSummary, label_rows: Any, labels: Any
) -> LabelsReadFacts:
    """Of what the model knows: the rows of each label (L,), or None."""
    found = LabelsReadFacts(
        source=source,
        features=summary.features,
        labels=summary.labels,
        rows=summary.rows,
        pairs=summary.pairs,
        unseen=summary.unseen,
        median=None,
        half=None,
        ranks=[],
        counts=[],
        most=[],
    )
    if label_rows is None or not len(label_rows):
        return found
    order = np.argsort(-np.asarray(label_rows), kind="stable")
    count = np.asarray(label_rows, dtype=np.int64)[order]
    ranks = _ranks(int((count > 0).sum()))
    found["median"] = float(np.median(count))
    found["half"] = int(np.searchsorted(np.cumsum(count), count.sum() / 2)) + 1
    found["ranks"], found["counts"] = ranks.tolist(), count[ranks - 1].tolist()
    named = order[: min(_NAMED, int((count > 0).sum()))]
    found["most"] = [{"label": str(labels[k]), "rows": int(label_rows[k])} for k in named]
    return found


def _ranks(labels: int) -> npt.NDArray[np.int64]:
    """Places from 1 to so many, evenly apart in their logs.

    >>> _ranks(4).tolist()
    [1, 2, 3, 4]
    """
    if labels == 0:
        return np.zeros(0, dtype=np.int64)
    found = np.geomspace(1, labels, min(labels * 8, _DRAWN))
    return np.unique(np.rint(found).astype(np.int64))


def tree_section(summary: ForestSummary, *, kind: str, options: Mapping[str, object]) -> TreeFacts:
    """Of the shape of the trees."""
    shapes = []
    for places in summary.alike:
        trees = [summary.trees[place] for place in places]
        shapes.append(
            ShapeFacts(
                trees=[place + 1 for place in places],
                levels=level_rows(trees, summary.features),
                depth=trees[0].depth._asdict(),
                leaf=trees[0].leaf._asdict(),
            )
        )
    return TreeFacts(
        trees=len(summary.trees),
        kind=kind,
        weights=summary.weights,
        bytes=summary.bytes,
        precision=summary.precision,
        path=summary.path,
        beam=summary.beam,
        met=summary.met,
        classifiers=sum(tree.classifiers for tree in summary.trees),
        shapes=shapes,
        options=[[name, str(value)] for name, value in options.items()],
    )


def measured_section(source: str, told: Mapping[str, Any]) -> MeasuredFacts:
    """Of plain measures by name, such as 'P@1'; by how many rows labels had."""
    at: dict[str, list[float | None]] = {}
    for name, value in told.items():
        if "@" in name:
            at.setdefault(name.partition("@")[0], []).append(value)
    return MeasuredFacts(
        source=source,
        rows=told["rows"],
        labels_a_row=told["labels_a_row"],
        unknown=told["unknown"],
        seconds=told["seconds"],
        at=at,
        bins=told.get("by_frequency"),
    )


def label_facts(
    title: str,
    *,
    made: Made,
    read: LabelsReadFacts,
    tree: TreeFacts,
    measured: MeasuredFacts | None = None,
    seconds: Mapping[str, float],
    use: UseFacts | None = None,
) -> LabelPageFacts:
    """The sections put together, and every value made plain."""
    found: dict[str, Any] = {"title": title, "made": made, "read": read, "tree": tree}
    found |= {"seconds": dict(seconds)}
    others = {"measured": measured, "use": use}
    found |= {name: section for name, section in others.items() if section is not None}
    done: LabelPageFacts = plain(found)
    return done
