"""Facts about a label tree to a page of HTML, in the frame of all pages: see `report.render`.

What the page of a label tree says, as facts: what was read, the trees, how good they are, use.

Label frequencies, from the most frequent label down, are drawn from at most some hundred of them:
ranks that are about evenly apart on a scale of logs.

Drawings of a label tree: frequencies of labels, the shape of trees, measures by frequency.

Facts about a label tree to Markdown: the tables of its page as text (see `report.markdown`).

The page of a label tree: what the model knows of its fit, and how good it is on other rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

import numpy as np
import numpy.typing as npt

from discriminant.assessment.inference.summary import format_bytes
from discriminant.extreme.files import FileAssessment
from discriminant.extreme.label_tree import LabelTree
from discriminant.extreme.summary import ForestSummary, level_rows
from discriminant.redaction import redact_facts
from discriminant.report.fact_types import Made, UseFacts, plain
from discriminant.report.format import (
    count_range,
    count_with_noun,
    duration,
    number,
    percent,
    quoted,
    whole,
)
from discriminant.report.html import as_script, framed
from discriminant.report.markdown import escape_name, escape_sentence, join_parts, table
from discriminant.report.sections.data import use_section
from discriminant.report.svg.elements import (
    WIDTH,
    Scale,
    Svg,
    as_percent,
    axis_across,
    element,
    figure,
    line,
    path,
    text,
)
from discriminant.study.report import versions, write_text

_DRAWN = 120  # labels in the figure of frequencies
_NAMED = 10  # labels that are named


class LabelDataFacts(TypedDict):
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
    read: LabelDataFacts
    tree: TreeFacts
    measured: NotRequired[MeasuredFacts]
    seconds: dict[str, float]  # by what took them
    use: NotRequired[UseFacts]


def data_section(
    source: str, summary: ForestSummary, label_rows: Any, labels: Any
) -> LabelDataFacts:
    """Of what the model knows: the rows of each label (L,), or None."""
    found = LabelDataFacts(
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
    for places in summary.tree_groups:
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


def assemble_facts(
    title: str,
    *,
    made: Made,
    read: LabelDataFacts,
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


_LEFT, _TOP, _RIGHT, _FOOT = 78.0, 12.0, WIDTH - 14.0, 290.0
_ROW = 46.0
_BAR = 15.0


def draw_frequencies(read: LabelDataFacts) -> Svg:
    """Rows of each label against its rank, both on scales of logs."""
    across = _log_scale(1, read["ranks"][-1], _LEFT, _RIGHT)
    up = _log_scale(min(read["counts"]), read["counts"][0], _FOOT, _TOP)
    parts = []
    for value in _round_numbers(across):
        x = across(math.log10(value))
        parts.append(line((x, _TOP), (x, _FOOT), "grid"))
        parts.append(text((x, _FOOT + 17), whole(value), "middle"))
    for value in _round_numbers(up):
        y = up(math.log10(value))
        parts.append(line((_LEFT, y), (_RIGHT, y), "grid"))
        parts.append(text((_LEFT - 6, y + 4.5), whole(value), "end"))
    places = [
        (across(math.log10(rank)), up(math.log10(count)))
        for rank, count in zip(read["ranks"], read["counts"], strict=True)
    ]
    area = [(places[0][0], _FOOT), *places, (places[-1][0], _FOOT)]
    parts += [path(area, "under", closed=True), path(places, "curve")]
    parts += [element("circle", cx=x, cy=y, r=3.0, class_="dot taken") for x, y in _ends(places)]
    turned = f"translate(14 {(_FOOT + _TOP) / 2:.0f}) rotate(-90)"
    parts += [
        text(((_LEFT + _RIGHT) / 2, _FOOT + 40), "labels, the most frequent first", "middle"),
        element("text", "rows with the label", text_anchor="middle", transform=turned),
    ]
    return figure("frequencies", _FOOT + 50, *parts, title="How frequent labels are")


def draw_shape(shape: ShapeFacts) -> Svg:
    """For each level, a bar for its classifiers about the middle, and one for its weights."""
    levels = shape["levels"]
    most = max(math.log1p(level["classifiers"]) for level in levels)
    heavy = max(max(level["weights"] for level in levels), 1)
    middle, half, start, wide = 116.0, 106.0, 252.0, WIDTH - 266.0
    parts = [text((middle, 16), "classifiers", "middle"), text((start, 16), "weights")]
    for place, level in enumerate(levels):
        top = 28.0 + _ROW * place
        size = max(half * math.log1p(level["classifiers"]) / most, 2.0)
        heft = max(wide * level["weights"] / heavy, 2.0)
        parts += [
            _bar(middle - size, top + 20, 2 * size, 0),
            text((middle, top + 15), whole(level["classifiers"]), "middle", "label"),
            _bar(start, top + 20, heft, 2),
            text((start, top + 15), whole(level["weights"]), "start", "label"),
        ]
    title = (
        f"Classifiers and weights of {count_with_noun(len(levels), 'level')}, from the root down"
    )
    return figure("shape", 32.0 + _ROW * len(levels), *parts, title=title)


def draw_bins(bins: list[dict[str, Any]]) -> Svg:
    """Recall and precision of labels, by how many rows they had in training."""
    scale = Scale(0.0, 1.0, 10.0, WIDTH - 22.0)
    height = 62.0
    foot = height * len(bins) + 6.0
    parts = axis_across(scale, 2.0, foot, as_percent(scale, 5), 5)
    for place, one in enumerate(bins):
        top = height * place
        name = f"{training_rows_text(one)} · {counted(one['labels'], 'label')}"
        said = f"{percent(one['recall'])} · {percent(one['precision'])}"
        parts += [
            text((10, top + 18), name, "start", "label"),
            text((WIDTH - 22, top + 18), said, "end", "label"),
            _bar(10.0, top + 25, scale(one["recall"] or 0.0) - 10, 0),
            _bar(10.0, top + 25 + _BAR, scale(one["precision"] or 0.0) - 10, 1),
        ]
    title = "Recall and precision of labels, by how many rows they had in training"
    return figure("bins", foot + 24, *parts, title=title)


def training_rows_text(one: dict[str, Any]) -> str:
    """Rows that labels of a bin had in training.

    >>> training_rows_text({"least": 5, "most": 19}), training_rows_text({"least": 0, "most": 0})
    ('5 to 19 rows', 'no rows')
    """
    least, most = one["least"], one["most"]
    if most == 0:
        return "no rows"
    return f"{count_range(least, most)} {'row' if least == most == 1 else 'rows'}"


def _bar(x: float, y: float, width: float, code: int) -> Svg:
    sign = f"big k{code}"
    return element("rect", x=x, y=y, width=max(width, 0.0), height=_BAR - 2, rx=2, class_=sign)


def _ends(places: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points of single labels, where they are few enough to be told apart."""
    return places if len(places) <= 12 else places[:1]


def _log_scale(low: float, high: float, start: float, stop: float) -> Scale:
    """Of logs to base 10, with some room where there is a single number."""
    first, last = math.log10(low), math.log10(high)
    return Scale(first, last if last > first else first + 0.3, start, stop)


def _round_numbers(scale: Scale) -> list[float]:
    """Numbers to write on a scale of logs: powers of ten, and some between where they are few.

    >>> _round_numbers(Scale(0.0, 4.0, 0.0, 1.0))
    [1, 10, 100, 1000, 10000]
    >>> _round_numbers(Scale(1.6, 2.8, 0.0, 1.0))
    [50, 100, 200, 500]
    """
    powers = range(math.floor(scale.low), math.ceil(scale.high) + 1)
    steps = (1,) if scale.high - scale.low > 2.5 else (1, 2, 5)
    found = [step * 10**power for power in powers for step in steps]
    return [n for n in found if scale.low - 1e-9 <= math.log10(n) <= scale.high + 1e-9]


_RANKS = (1, 3, 5, 10, 20, 50, 100)
_KINDS = {
    "balanced": "Labels were halved again and again, those whose rows are alike together, and "
    "only every few halvings are kept as a level",
    "wide": "Labels were put into many groups at once, those whose rows are alike together, and "
    "these into groups again",
    "huffman": "Frequent labels lie near the root, rare ones further down",
    "one-vs-rest": "There is no tree: every label is told from all others",
    "moments": "Labels were put together by how hard they are to tell apart",
    "given": "The labels lie as in the hierarchy that was given",
}
_FEW = "The labels are so few that they were not divided: every one is told from all others"


def render_labels(facts: LabelPageFacts) -> str:
    """The page.

    Parameters
    ----------
    facts
        What `report.label_facts.label_facts` returned, or the same read back from JSON.
    """
    found = facts.get("measured")
    return framed(
        "labels.html",
        facts,
        kicker="Label tree report",
        embedded=as_script({"space": None, "decision": None, "use": facts.get("use")}),
        figures=_figures(facts),
        tiles=_tiles(facts),
        in_short=summary_sentences(facts),
        grown=describe_tree(facts["tree"]),
        ranks=[] if found is None else table_ranks(found),
        between=between,
        spelt=describe_counts,
    )


def _figures(facts: LabelPageFacts) -> dict[str, Any]:
    """Every drawing that there are facts for."""
    found: dict[str, Svg | list[Svg]] = {"shapes": [draw_shape(s) for s in facts["tree"]["shapes"]]}
    if len(set(facts["read"]["counts"])) > 1:
        found["frequencies"] = draw_frequencies(facts["read"])
    bins = facts["measured"]["bins"] if "measured" in facts else None
    if bins:
        found["bins"] = draw_bins(bins)
    return found


def table_ranks(found: MeasuredFacts) -> list[int]:
    """The places of a list that the table has: some, and the last."""
    k = len(found["at"]["P"])
    return sorted({rank for rank in _RANKS if rank <= k} | {k})


def _tiles(facts: LabelPageFacts) -> list[dict[str, str]]:
    """Four or five figures with their names and what to hold them against."""
    read, tree = facts["read"], facts["tree"]
    found = []
    if "measured" in facts:
        found = _measured_tiles(facts["measured"])
    found.append(
        {
            "value": _brief(read["labels"]),
            "name": "labels",
            "note": "" if not read["unseen"] else f"{whole(read['unseen'])} of them without a row",
        }
    )
    if read["rows"] is not None:
        features = count_with_noun(read["features"], "feature")
        note = f"{features}, {_each(read['pairs'], read['rows'])} each"
        found.append({"value": _brief(read["rows"]), "name": "rows to learn from", "note": note})
    if "training" in facts["seconds"]:
        took = duration(facts["seconds"]["training"])
        note = f"{count_with_noun(tree['trees'], 'tree')}, {whole(tree['weights'])} weights"
        found.append({"value": took, "name": "to train", "note": note})
    return found


def _measured_tiles(found: MeasuredFacts) -> list[dict[str, str]]:
    at, k = found["at"], len(found["at"]["P"])
    speed = found["rows"] / max(found["seconds"], 1e-9)
    return [
        {
            "value": percent(at["P"][0]),
            "name": "of first labels right",
            "note": f"on {count_with_noun(found['rows'], 'row')} of {quoted(found['source'], 30)}",
        },
        {
            "value": percent(at["recall"][-1]),
            "name": f"of a row's labels among the first {k}",
            "note": f"rows have {found['labels_a_row']:.1f} on average",
        },
        {"value": _brief(round(speed)), "name": "rows answered a second", "note": "all at once"},
    ]


def describe_tree(tree: TreeFacts) -> str:
    """How labels were put into the tree, as a sentence without its full stop."""
    if tree["kind"] in ("balanced", "wide") and all(len(s["levels"]) == 1 for s in tree["shapes"]):
        return _FEW
    return _KINDS.get(tree["kind"], _KINDS["given"])


def summary_sentences(facts: LabelPageFacts) -> list[str]:
    """What is to be known first."""
    read, tree = facts["read"], facts["tree"]
    lines = []
    if "measured" in facts:
        found = facts["measured"]
        rows = f"{count_with_noun(found['rows'], 'row')} of {quoted(found['source'], 60)}"
        first = percent(found["at"]["P"][0])
        lines.append(f"The label put first was right for {first} of the {rows}.")
        lines += _rare(found["bins"] or [])
    lines.append(f"To find labels, a row is put to {_put(tree)}.")
    if read["unseen"]:
        lines.append(
            f"{count_with_noun(read['unseen'], 'label')} had no training rows and are hardly "
            "ever predicted."
        )
    return lines


def _put(tree: TreeFacts) -> str:
    """How many of the classifiers a row meets."""
    met, all_of = tree["met"], tree["classifiers"]
    of = f"classifiers of {count_with_noun(tree['trees'], 'tree')}"
    if met >= all_of:
        return f"all {whole(all_of)} {of}"
    return f"about {whole(round(met))} of the {whole(all_of)} {of} ({percent(met / all_of)})"


def _rare(bins: list[dict[str, Any]]) -> list[str]:
    """The rarest labels against the most frequent ones."""
    some = [one for one in bins if one["least"] > 0 and one["recall"] is not None]
    if len(some) < 2:
        return []
    rare, often = some[0], some[-1]
    return [
        f"Mean recall is {percent(rare['recall'])} for labels with {training_rows_text(rare)} in "
        f"training and {percent(often['recall'])} for labels with {training_rows_text(often)}."
    ]


def _brief(count: int) -> str:
    """A count that fits a tile; the exact one is further down.

    >>> _brief(37_872), _brief(123_604), _brief(1_305_265)
    ('37,872', '124k', '1.31M')
    """
    if count < 100_000:
        return whole(count)
    return f"{count / 1e3:.0f}k" if count < 999_500 else f"{count / 1e6:,.3g}M"


def _each(pairs: int | None, rows: int) -> str:
    return f"{(pairs or 0) / max(rows, 1):.1f} labels"


def describe_counts(found: dict[str, Any]) -> str:
    """A spread in words.

    >>> describe_counts({"least": 2, "median": 3.0, "most": 14, "of": 42})
    '2 to 14, half of them up to 3'
    """
    if found["least"] == found["most"]:
        return whole(found["most"])
    return f"{whole(found['least'])} to {whole(found['most'])}, half of them up to " + whole(
        found["median"]
    )


_OF_ALL = " Nodes and classifiers are those of one tree; weights are of all {}."
_MEASURES = ("P", "nDCG", "recall", "PSP", "PSnDCG")


def labels_to_markdown(facts: LabelPageFacts) -> str:
    """The page of a label tree as Markdown."""
    parts = [f"# {plainly(facts['title'])}", *(spoken(line) for line in summary_sentences(facts))]
    parts += _read(facts["read"]) + _tree(facts["tree"])
    if "measured" in facts:
        parts += _measured(facts["measured"])
    took = ", ".join(f"{what} {duration(each)}" for what, each in facts["seconds"].items())
    parts.append(f"Time taken: {took}." if took else "")
    return join_parts(parts, facts["made"], facts.get("use"))


def _read(read: LabelDataFacts) -> list[str]:
    rows, found = read["rows"], counted(read["labels"], "label")
    parts = ["## What was read", f"Rows of {counted(read['features'], 'feature')}, {found}."]
    if rows is not None:
        of = f"{count_with_noun(rows, 'row')} of {escape_name(read['source'], 90)}"
        parts[1] = f"{of}, {count_with_noun(read['features'], 'feature')}, {found}."
        most = [
            [escape_name(row["label"], 40), whole(row["rows"]), percent(row["rows"] / rows)]
            for row in read["most"]
        ]
        parts.append(table(["Label", "Rows", "Of all rows"], most) if most else "")
    return parts


def _tree(tree: TreeFacts) -> list[str]:
    held = f"{whole(tree['weights'])} weights in {format_bytes(tree['bytes'])}"
    title = "## The tree" if tree["trees"] == 1 else "## The trees"
    parts = [title, f"{spoken(describe_tree(tree))}. {counted(tree['trees'], 'tree')}, {held}."]
    for shape in tree["shapes"]:
        parts += _shape(shape)
    asked = ", ".join(
        f"{escape_name(name)}={escape_name(value)}" for name, value in tree["options"]
    )
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
    leaf = (
        f"{counted(shape['leaf']['of'], 'last node')}, of {describe_counts(shape['leaf'])} labels."
    )
    return [
        f"Of {'tree' if len(shape['trees']) == 1 else 'trees'} {which}:",
        table(head, rows),
        leaf + (_OF_ALL.format(len(shape["trees"])) if len(shape["trees"]) > 1 else ""),
    ]


def _span(found: dict[str, Any]) -> str:
    return count_range(found["least"], found["most"])


def _measured(found: MeasuredFacts) -> list[str]:
    ranks, at = table_ranks(found), found["at"]
    rows = [
        [f"{name}\\@k", *(percent(at[name][k - 1]) for k in ranks)]
        for name in _MEASURES
        if name in at
    ]
    parts = [
        "## How good it is",
        f"{count_with_noun(found['rows'], 'row')} of {escape_name(found['source'], 60)}, with "
        f"{number(found['labels_a_row'])} labels each on average. This holds for new rows if these "
        "were new to the model.",
        table(["Among the first", *map(str, ranks)], rows),
    ]
    if found["unknown"]:
        are = "is" if found["unknown"] == 1 else "are"
        parts.append(
            f"{count_with_noun(found['unknown'], 'label')} {are} unknown to the model: missed."
        )
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
            count_range(one["least"], one["most"]),
            whole(one["labels"]),
            *(percent(one[name]) for name in ("recall", "precision", "f1")),
        ]
        for one in bins
    ]


_NOT_SAID = ("progress", "checkpoint", "threads", "random_state", "beam", "trees", "tree")


def label_page_facts(
    model: LabelTree,
    *,
    source: str,
    title: str | None = None,
    measured: FileAssessment | None = None,
    test: str = "",
    seconds: Mapping[str, float] | None = None,
    file: str = "",
    command: str | None = None,
) -> LabelPageFacts:
    """All that the page says.

    Parameters
    ----------
    source
        What the model was made from: the name of a file.
    measured, test
        How good it is, and on which file.
    seconds
        What took how long.
    file
        The name of the file of the model, for those who use it.
    """
    summary = model.summary()
    kind = model.tree if isinstance(model.tree, str) else "given"
    found = None if measured is None else measured_section(test, measured.to_dict())
    made = Made(version=versions(), date=date.today().isoformat(), seed=_seed(model))
    if command:
        made["command"] = command
    facts = assemble_facts(
        title or f"{Path(source).name}: {len(model.classes_):,} labels",
        made=made,
        read=data_section(source, summary, getattr(model, "label_rows_", None), model.classes_),
        tree=tree_section(summary, kind=kind, options=_options(model)),
        measured=found,
        seconds=seconds or {},
        use=_use(file) if file else None,
    )
    return cast(LabelPageFacts, redact_facts(facts))


def write_label_page(path: Path, facts: LabelPageFacts) -> None:
    """The page, whole or not at all."""
    write_text(path, render_labels(facts))


def _seed(model: LabelTree) -> int | None:
    return model.random_state if isinstance(model.random_state, int) else None


def _options(model: LabelTree) -> dict[str, object]:
    """Those that are not as they come."""
    plain = LabelTree().get_params()
    return {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name not in _NOT_SAID and value != plain[name]
    }


def _use(file: str) -> UseFacts | None:
    lines = [
        "import discriminant as dd",
        "",
        f"model = dd.load({file!r})",
        'rows = dd.read_xmc("new.txt").features         # or any sparse matrix',
        "codes, scores = model.predict_topk(rows, k=5)  # best first; -1 where there are no more",
        "model.classes_[codes[0]]                       # the labels of the first row",
    ]
    command = f"discriminant predict {_quoted(file)} new.txt --top 5 --out labels.csv"
    return use_section(file=file, python="\n".join(lines), command=command)


def _quoted(file: str) -> str:
    import shlex

    return shlex.quote(file)
