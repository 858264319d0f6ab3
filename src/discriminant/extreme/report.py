"""Report page of a label tree, as HTML and as Markdown.

The page has the sections Data, Tree, Accuracy on the test file, and Using the model. Facts are
collected first, as plain dictionaries (`label_page_facts`), and then rendered (`render_labels`,
`labels_to_markdown`). The chart of label frequencies shows at most 120 labels, at ranks about
evenly spaced on a log scale.
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

_MAX_POINTS = 120  # labels in the chart of frequencies
_MAX_NAMES = 10  # rows in the table of the most frequent labels


class LabelDataFacts(TypedDict):
    """Section "Data": the training rows, as far as the model stores them."""

    source: str
    features: int
    labels: int
    rows: int | None  # None if the model was saved without it
    pairs: int | None  # (row, label) pairs
    unseen: int | None  # labels without rows
    median: float | None  # median number of rows per label
    half: int | None  # number of most frequent labels that account for half of the pairs
    ranks: list[int]  # from 1, of the labels in the chart
    counts: list[int]  # their rows
    most: list[dict[str, Any]]  # label and rows


class ShapeFacts(TypedDict):
    """Trees of equal shape."""

    trees: list[int]  # from 1
    levels: list[dict[str, Any]]
    depth: dict[str, Any]
    leaf: dict[str, Any]


class TreeFacts(TypedDict):
    """Section "Tree": shape and options of the trees."""

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
    options: list[list[str]]  # those that differ from the defaults


class MeasuredFacts(TypedDict):
    """Section "Accuracy on the test file"."""

    source: str
    rows: int
    labels_a_row: float
    unknown: int
    seconds: float
    at: dict[str, list[float | None]]  # (k,) P, nDCG, recall, and PSP, PSnDCG
    bins: list[dict[str, Any]] | None


class LabelPageFacts(TypedDict):
    """Facts of the whole page."""

    title: str
    made: Made
    read: LabelDataFacts
    tree: TreeFacts
    measured: NotRequired[MeasuredFacts]
    seconds: dict[str, float]  # by step
    use: NotRequired[UseFacts]


def data_section(
    source: str, summary: ForestSummary, label_rows: Any, labels: Any
) -> LabelDataFacts:
    """Facts of the section "Data"; `label_rows` (L,) may be None."""
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
    named = order[: min(_MAX_NAMES, int((count > 0).sum()))]
    found["most"] = [{"label": str(labels[k]), "rows": int(label_rows[k])} for k in named]
    return found


def _ranks(labels: int) -> npt.NDArray[np.int64]:
    """Ranks from 1 to `labels`, about evenly spaced on a log scale.

    >>> _ranks(4).tolist()
    [1, 2, 3, 4]
    """
    if labels == 0:
        return np.zeros(0, dtype=np.int64)
    found = np.geomspace(1, labels, min(labels * 8, _MAX_POINTS))
    return np.unique(np.rint(found).astype(np.int64))


def tree_section(summary: ForestSummary, *, kind: str, options: Mapping[str, object]) -> TreeFacts:
    """Facts of the section "Tree"."""
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


def measured_section(source: str, measures: Mapping[str, Any]) -> MeasuredFacts:
    """Facts of the section "Accuracy on the test file", from `FileAssessment.to_dict`."""
    at: dict[str, list[float | None]] = {}
    for name, value in measures.items():
        if "@" in name:
            at.setdefault(name.partition("@")[0], []).append(value)
    return MeasuredFacts(
        source=source,
        rows=measures["rows"],
        labels_a_row=measures["labels_a_row"],
        unknown=measures["unknown"],
        seconds=measures["seconds"],
        at=at,
        bins=measures.get("by_frequency"),
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
    """Combine the sections and convert every value to plain Python types."""
    sections: dict[str, Any] = {"title": title, "made": made, "read": read, "tree": tree}
    sections |= {"seconds": dict(seconds)}
    optional = {"measured": measured, "use": use}
    sections |= {name: facts for name, facts in optional.items() if facts is not None}
    facts: LabelPageFacts = plain(sections)
    return facts


_LEFT, _TOP, _RIGHT, _FOOT = 78.0, 12.0, WIDTH - 14.0, 290.0
_ROW = 46.0
_BAR = 15.0


def draw_frequencies(read: LabelDataFacts) -> Svg:
    """Chart of the rows of each label against its rank, both on log scales."""
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
        text(((_LEFT + _RIGHT) / 2, _FOOT + 40), "rank of the label by frequency", "middle"),
        element("text", "number of rows", text_anchor="middle", transform=turned),
    ]
    return figure("frequencies", _FOOT + 50, *parts, title="Label frequencies")


def draw_shape(shape: ShapeFacts) -> Svg:
    """Chart with two bars per level: its classifiers, centred, and its weights."""
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
    """Chart of mean recall and precision by the number of training rows of a label."""
    scale = Scale(0.0, 1.0, 10.0, WIDTH - 22.0)
    height = 62.0
    foot = height * len(bins) + 6.0
    parts = axis_across(scale, 2.0, foot, as_percent(scale, 5), 5)
    for place, one in enumerate(bins):
        top = height * place
        name = f"{training_rows_text(one)} · {count_with_noun(one['labels'], 'label')}"
        values = f"{percent(one['recall'])} · {percent(one['precision'])}"
        parts += [
            text((10, top + 18), name, "start", "label"),
            text((WIDTH - 22, top + 18), values, "end", "label"),
            _bar(10.0, top + 25, scale(one["recall"] or 0.0) - 10, 0),
            _bar(10.0, top + 25 + _BAR, scale(one["precision"] or 0.0) - 10, 1),
        ]
    title = "Mean recall and precision by number of training rows"
    return figure("bins", foot + 24, *parts, title=title)


def training_rows_text(one: dict[str, Any]) -> str:
    """Range of training rows of the labels of a bin, as text.

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
    """Points to mark: all if they are few, else the first."""
    return places if len(places) <= 12 else places[:1]


def _log_scale(low: float, high: float, start: float, stop: float) -> Scale:
    """Scale for logs to base 10, widened if the range is a single number."""
    first, last = math.log10(low), math.log10(high)
    return Scale(first, last if last > first else first + 0.3, start, stop)


def _round_numbers(scale: Scale) -> list[float]:
    """Tick values of a log scale: powers of ten, with 2 and 5 in between on a short scale.

    >>> _round_numbers(Scale(0.0, 4.0, 0.0, 1.0))
    [1, 10, 100, 1000, 10000]
    >>> _round_numbers(Scale(1.6, 2.8, 0.0, 1.0))
    [50, 100, 200, 500]
    """
    powers = range(math.floor(scale.low), math.ceil(scale.high) + 1)
    steps = (1,) if scale.high - scale.low > 2.5 else (1, 2, 5)
    ticks = [step * 10**power for power in powers for step in steps]
    return [n for n in ticks if scale.low - 1e-9 <= math.log10(n) <= scale.high + 1e-9]


_RANKS = (1, 3, 5, 10, 20, 50, 100)
_KINDS = {
    "balanced": "Labels with similar rows were grouped by repeated bisection; a level of the tree "
    "combines several bisections",
    "wide": "Labels with similar rows were grouped by k-means into many clusters, and these into "
    "clusters again",
    "huffman": "Frequent labels are near the root and rare labels further down (Huffman tree)",
    "one-vs-rest": "There is no tree: every label has one classifier against all others",
    "moments": "Classes that are hard to separate were grouped, based on the class moments",
    "given": "The tree is the label hierarchy passed by the user",
}
_FEW = "There are too few labels for a tree: every label has one classifier against all others"


def render_labels(facts: LabelPageFacts) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    facts
        Result of `label_page_facts`, or the same read from JSON.
    """
    measured = facts.get("measured")
    return framed(
        "labels.html",
        facts,
        kicker="Label tree report",
        embedded=as_script({"space": None, "decision": None, "use": facts.get("use")}),
        figures=_figures(facts),
        tiles=_tiles(facts),
        in_short=summary_sentences(facts),
        tree_description=describe_tree(facts["tree"]),
        ranks=[] if measured is None else table_ranks(measured),
        between=count_range,
        describe_counts=describe_counts,
    )


def _figures(facts: LabelPageFacts) -> dict[str, Any]:
    """Charts for the facts that are present."""
    found: dict[str, Svg | list[Svg]] = {"shapes": [draw_shape(s) for s in facts["tree"]["shapes"]]}
    if len(set(facts["read"]["counts"])) > 1:
        found["frequencies"] = draw_frequencies(facts["read"])
    bins = facts["measured"]["bins"] if "measured" in facts else None
    if bins:
        found["bins"] = draw_bins(bins)
    return found


def table_ranks(found: MeasuredFacts) -> list[int]:
    """The ranks k shown in the table: selected ones and the last."""
    k = len(found["at"]["P"])
    return sorted({rank for rank in _RANKS if rank <= k} | {k})


def _tiles(facts: LabelPageFacts) -> list[dict[str, str]]:
    """Key figures at the top of the page."""
    read, tree = facts["read"], facts["tree"]
    found = []
    if "measured" in facts:
        found = _measured_tiles(facts["measured"])
    found.append(
        {
            "value": _brief(read["labels"]),
            "name": "labels",
            "note": "" if not read["unseen"] else f"{whole(read['unseen'])} without training rows",
        }
    )
    if read["rows"] is not None:
        labels_per_row = (read["pairs"] or 0) / max(read["rows"], 1)
        features = count_with_noun(read["features"], "feature")
        note = f"{features}, {labels_per_row:.1f} labels per row"
        found.append({"value": _brief(read["rows"]), "name": "training rows", "note": note})
    if "training" in facts["seconds"]:
        took = duration(facts["seconds"]["training"])
        note = f"{count_with_noun(tree['trees'], 'tree')}, {whole(tree['weights'])} weights"
        found.append({"value": took, "name": "training time", "note": note})
    return found


def _measured_tiles(found: MeasuredFacts) -> list[dict[str, str]]:
    at, k = found["at"], len(found["at"]["P"])
    speed = found["rows"] / max(found["seconds"], 1e-9)
    return [
        {
            "value": percent(at["P"][0]),
            "name": "precision of the first label (P@1)",
            "note": f"on {count_with_noun(found['rows'], 'row')} of {quoted(found['source'], 30)}",
        },
        {
            "value": percent(at["recall"][-1]),
            "name": f"recall@{k}",
            "note": f"{found['labels_a_row']:.1f} labels per row on average",
        },
        {"value": _brief(round(speed)), "name": "predictions per second", "note": "in one batch"},
    ]


def describe_tree(tree: TreeFacts) -> str:
    """Description of the tree, a sentence without its full stop."""
    if tree["kind"] in ("balanced", "wide") and all(len(s["levels"]) == 1 for s in tree["shapes"]):
        return _FEW
    return _KINDS.get(tree["kind"], _KINDS["given"])


def summary_sentences(facts: LabelPageFacts) -> list[str]:
    """Sentences at the top of the page."""
    read, tree = facts["read"], facts["tree"]
    lines = []
    if "measured" in facts:
        found = facts["measured"]
        rows = f"{count_with_noun(found['rows'], 'row')} of {quoted(found['source'], 60)}"
        first = percent(found["at"]["P"][0])
        lines.append(f"The first label is correct for {first} of the {rows}.")
        lines += _rare(found["bins"] or [])
    lines.append(f"A prediction evaluates {_evaluated_classifiers(tree)}.")
    if read["unseen"]:
        lines.append(
            f"{count_with_noun(read['unseen'], 'label')} had no training rows and "
            f"{'is' if read['unseen'] == 1 else 'are'} almost never predicted."
        )
    return lines


def _evaluated_classifiers(tree: TreeFacts) -> str:
    met, all_of = tree["met"], tree["classifiers"]
    of = f"classifiers in {count_with_noun(tree['trees'], 'tree')}"
    if met >= all_of:
        return f"all {whole(all_of)} {of}"
    return f"about {whole(round(met))} of the {whole(all_of)} {of} ({percent(met / all_of)})"


def _rare(bins: list[dict[str, Any]]) -> list[str]:
    """Compare the recall of the rarest and of the most frequent labels."""
    some = [one for one in bins if one["least"] > 0 and one["recall"] is not None]
    if len(some) < 2:
        return []
    rare, often = some[0], some[-1]
    return [
        f"Mean recall is {percent(rare['recall'])} for labels with {training_rows_text(rare)} in "
        f"training and {percent(often['recall'])} for labels with {training_rows_text(often)}."
    ]


def _brief(count: int) -> str:
    """Abbreviate a count; the exact one is further down on the page.

    >>> _brief(37_872), _brief(123_604), _brief(1_305_265)
    ('37,872', '124k', '1.31M')
    """
    if count < 100_000:
        return whole(count)
    return f"{count / 1e3:.0f}k" if count < 999_500 else f"{count / 1e6:,.3g}M"


def describe_counts(found: dict[str, Any]) -> str:
    """Range and median of some counts, in words.

    >>> describe_counts({"least": 2, "median": 3.0, "most": 14, "of": 42})
    '2 to 14 (median 3)'
    """
    if found["least"] == found["most"]:
        return whole(found["most"])
    ends = f"{whole(found['least'])} to {whole(found['most'])}"
    return f"{ends} (median {whole(found['median'])})"


_OF_ALL = " Nodes and classifiers are per tree; weights are totals over all {}."
_MEASURES = ("P", "nDCG", "recall", "PSP", "PSnDCG")


def labels_to_markdown(facts: LabelPageFacts) -> str:
    """Return the page as Markdown."""
    parts = [
        f"# {escape_name(facts['title'])}",
        *(escape_sentence(line) for line in summary_sentences(facts)),
    ]
    parts += _read(facts["read"]) + _tree(facts["tree"])
    if "measured" in facts:
        parts += _measured(facts["measured"])
    took = ", ".join(f"{what} {duration(each)}" for what, each in facts["seconds"].items())
    parts.append(f"Time: {took}." if took else "")
    return join_parts(parts, facts["made"], facts.get("use"))


def _read(read: LabelDataFacts) -> list[str]:
    rows, found = read["rows"], count_with_noun(read["labels"], "label")
    parts = ["## Data", f"Rows with {count_with_noun(read['features'], 'feature')}, {found}."]
    if rows is not None:
        of = f"{count_with_noun(rows, 'row')} of {escape_name(read['source'], 90)}"
        parts[1] = f"{of}, {count_with_noun(read['features'], 'feature')}, {found}."
        most = [
            [escape_name(row["label"], 40), whole(row["rows"]), percent(row["rows"] / rows)]
            for row in read["most"]
        ]
        parts.append(table(["Label", "Rows", "Share of rows"], most) if most else "")
    return parts


def _tree(tree: TreeFacts) -> list[str]:
    held = f"{whole(tree['weights'])} weights in {format_bytes(tree['bytes'])}"
    title = "## The tree" if tree["trees"] == 1 else "## The trees"
    parts = [
        title,
        f"{escape_sentence(describe_tree(tree))}. "
        f"{count_with_noun(tree['trees'], 'tree')}, {held}.",
    ]
    for shape in tree["shapes"]:
        parts += _shape(shape)
    options = ", ".join(
        f"{escape_name(name)}={escape_name(value)}" for name, value in tree["options"]
    )
    parts.append(f"Options of the fit: {options}." if options else "")
    return parts


def _shape(shape: ShapeFacts) -> list[str]:
    head = ["Level", "Nodes", "Children per node", "Classifiers", "Weights", "Features used"]
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
    leaves = count_with_noun(shape["leaf"]["of"], "leaf node")
    leaf = f"{leaves} with {describe_counts(shape['leaf'])} labels."
    return [
        f"{'Tree' if len(shape['trees']) == 1 else 'Trees'} {which}:",
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
        "## Accuracy on the test file",
        f"{count_with_noun(found['rows'], 'row')} of {escape_name(found['source'], 60)}, with "
        f"{number(found['labels_a_row'])} labels per row on average. The estimates hold for new "
        "rows only if the model was not trained on this file.",
        table(["k", *map(str, ranks)], rows),
    ]
    if found["unknown"]:
        are = "is" if found["unknown"] == 1 else "are"
        parts.append(
            f"{count_with_noun(found['unknown'], 'label')} {are} unknown to the model and "
            f"{'counts as a miss' if found['unknown'] == 1 else 'count as misses'}."
        )
    if found["bins"]:
        head = ["Training rows", "Labels", "Recall", "Precision", "F1"]
        parts += [
            "Means over labels, by number of training rows:",
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


_NOT_REPORTED = ("progress", "checkpoint", "threads", "random_state", "beam", "trees", "tree")


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
    """Collect the facts of the page.

    Parameters
    ----------
    model : LabelTree
        Fitted model.
    source : str
        Name of the file of training rows.
    title : str, optional
        Title of the page (default: file name and number of labels).
    measured : FileAssessment, optional
        Accuracy on a test file.
    test : str
        Name of the test file.
    seconds : mapping, optional
        Time of each step.
    file : str
        Name of the model file, for the section "Using the model".
    command : str, optional
        Command that produced the page.
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
    """Write the page atomically."""
    write_text(path, render_labels(facts))


def _seed(model: LabelTree) -> int | None:
    return model.random_state if isinstance(model.random_state, int) else None


def _options(model: LabelTree) -> dict[str, object]:
    """Options that differ from the defaults."""
    defaults = LabelTree().get_params()
    return {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name not in _NOT_REPORTED and value != defaults[name]
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
