"""Report page of a label tree, as HTML and as Markdown.

The page has the sections Data, Tree, Accuracy on the test file, and Using the model. First the
facts are collected as plain dictionaries (`label_page_facts`); then they are rendered as HTML
(`render_labels`) or Markdown (`labels_to_markdown`). The chart of label frequencies shows at most
120 labels, whose ranks are about evenly spaced on a log scale.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

import numpy as np
import numpy.typing as npt

from discriminant.assessment.printed_results import format_bytes
from discriminant.extreme.file_predictions import FileAssessment
from discriminant.extreme.label_tree import LabelTree
from discriminant.extreme.tree_size import ForestSummary, level_rows
from discriminant.redaction import redact_facts
from discriminant.report.fact_types import Provenance, UseFacts, plain
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
from discriminant.report.sections.usage import use_section
from discriminant.report.svg import (
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

_MAX_POINTS = 120  # largest number of labels in the chart of frequencies
_MAX_NAMES = 10  # number of labels in the table of the most frequent ones


class LabelDataFacts(TypedDict):
    """Facts of the section "Data": what the model stores about its training rows."""

    source: str
    features: int
    labels: int
    rows: int | None  # None if the model does not store the label counts
    pairs: int | None  # number of (row, label) pairs
    unseen: int | None  # number of labels without rows
    median: float | None  # median number of rows per label
    half: int | None  # number of most frequent labels that account for half of the pairs
    ranks: list[int]  # frequency ranks, from 1, of the labels in the chart
    counts: list[int]  # number of rows of each of these labels
    most: list[dict[str, Any]]  # most frequent labels, each with its number of rows


class ShapeFacts(TypedDict):
    """Facts about a group of trees of equal shape."""

    trees: list[int]  # numbers of the trees, from 1
    levels: list[dict[str, Any]]
    depth: dict[str, Any]
    leaf: dict[str, Any]


class TreeFacts(TypedDict):
    """Facts of the section "Tree": shape and options of the trees."""

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
    options: list[list[str]]  # options that differ from the defaults


class MeasuredFacts(TypedDict):
    """Facts of the section "Accuracy on the test file"."""

    source: str
    rows: int
    labels_a_row: float
    unknown: int
    seconds: float
    at: dict[str, list[float | None]]  # (k,) values of P, nDCG, recall, PSP and PSnDCG
    bins: list[dict[str, Any]] | None


class LabelPageFacts(TypedDict):
    """Facts of the whole page."""

    title: str
    made: Provenance
    read: LabelDataFacts
    tree: TreeFacts
    measured: NotRequired[MeasuredFacts]
    seconds: dict[str, float]  # step -> duration
    use: NotRequired[UseFacts]


def data_section(
    source: str, summary: ForestSummary, label_rows: Any, labels: Any
) -> LabelDataFacts:
    """Return the facts of the section "Data".

    `label_rows` (L,), the number of rows of each label, may be None.
    """
    facts = LabelDataFacts(
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
        return facts
    order = np.argsort(-np.asarray(label_rows), kind="stable")
    count = np.asarray(label_rows, dtype=np.int64)[order]
    n_seen = int((count > 0).sum())
    ranks = _log_spaced_ranks(n_seen)
    facts["median"] = float(np.median(count))
    facts["half"] = int(np.searchsorted(np.cumsum(count), count.sum() / 2)) + 1
    facts["ranks"], facts["counts"] = ranks.tolist(), count[ranks - 1].tolist()
    most_frequent = order[: min(_MAX_NAMES, n_seen)]
    facts["most"] = [{"label": str(labels[k]), "rows": int(label_rows[k])} for k in most_frequent]
    return facts


def _log_spaced_ranks(labels: int) -> npt.NDArray[np.int64]:
    """Return ranks from 1 to `labels`, about evenly spaced on a log scale.

    >>> _log_spaced_ranks(4).tolist()
    [1, 2, 3, 4]
    """
    if labels == 0:
        return np.zeros(0, dtype=np.int64)
    ranks = np.geomspace(1, labels, min(labels * 8, _MAX_POINTS))
    return np.unique(np.rint(ranks).astype(np.int64))


def tree_section(summary: ForestSummary, *, kind: str, options: Mapping[str, object]) -> TreeFacts:
    """Return the facts of the section "Tree"."""
    shapes = []
    for indices in summary.tree_groups:
        trees = [summary.trees[index] for index in indices]
        shapes.append(
            ShapeFacts(
                trees=[index + 1 for index in indices],
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
    """Return the facts of "Accuracy on the test file"; see `FileAssessment.to_dict`."""
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


_LEFT, _TOP, _RIGHT, _FOOT = 78.0, 12.0, WIDTH - 14.0, 290.0
_ROW = 46.0
_BAR = 15.0


def draw_frequencies(read: LabelDataFacts) -> Svg:
    """Draw the number of rows of each label against its rank, both on log scales."""
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
    points = [
        (across(math.log10(rank)), up(math.log10(count)))
        for rank, count in zip(read["ranks"], read["counts"], strict=True)
    ]
    area = [(points[0][0], _FOOT), *points, (points[-1][0], _FOOT)]
    parts += [path(area, "under", closed=True), path(points, "curve")]
    marked = points if len(points) <= 12 else points[:1]
    parts += [element("circle", cx=x, cy=y, r=3.0, class_="dot taken") for x, y in marked]
    transform = f"translate(14 {(_FOOT + _TOP) / 2:.0f}) rotate(-90)"
    parts += [
        text(((_LEFT + _RIGHT) / 2, _FOOT + 40), "rank of the label by frequency", "middle"),
        element("text", "number of rows", text_anchor="middle", transform=transform),
    ]
    return figure("frequencies", _FOOT + 50, *parts, title="Label frequencies")


def draw_shape(shape: ShapeFacts) -> Svg:
    """Draw two bars per level: the number of classifiers and the number of weights."""
    levels = shape["levels"]
    max_classifiers = max(math.log1p(level["classifiers"]) for level in levels)
    max_weights = max(max(level["weights"] for level in levels), 1)
    middle, half, start, width = 116.0, 106.0, 252.0, WIDTH - 266.0
    parts = [text((middle, 16), "classifiers", "middle"), text((start, 16), "weights")]
    for row, level in enumerate(levels):
        top = 28.0 + _ROW * row
        size = max(half * math.log1p(level["classifiers"]) / max_classifiers, 2.0)
        length = max(width * level["weights"] / max_weights, 2.0)
        parts += [
            _bar(middle - size, top + 20, 2 * size, 0),
            text((middle, top + 15), whole(level["classifiers"]), "middle", "label"),
            _bar(start, top + 20, length, 2),
            text((start, top + 15), whole(level["weights"]), "start", "label"),
        ]
    n_levels = count_with_noun(len(levels), "level")
    title = f"Classifiers and weights of {n_levels}, from the root down"
    return figure("shape", 32.0 + _ROW * len(levels), *parts, title=title)


def draw_bins(bins: list[dict[str, Any]]) -> Svg:
    """Draw mean recall and precision by the number of training rows of a label."""
    scale = Scale(0.0, 1.0, 10.0, WIDTH - 22.0)
    height = 62.0
    foot = height * len(bins) + 6.0
    parts = axis_across(scale, 2.0, foot, as_percent(scale, 5), 5)
    for row, group in enumerate(bins):
        top = height * row
        name = f"{training_rows_text(group)} · {count_with_noun(group['labels'], 'label')}"
        values = f"{percent(group['recall'])} · {percent(group['precision'])}"
        parts += [
            text((10, top + 18), name, "start", "label"),
            text((WIDTH - 22, top + 18), values, "end", "label"),
            _bar(10.0, top + 25, scale(group["recall"] or 0.0) - 10, 0),
            _bar(10.0, top + 25 + _BAR, scale(group["precision"] or 0.0) - 10, 1),
        ]
    title = "Mean recall and precision by number of training rows"
    return figure("bins", foot + 24, *parts, title=title)


def training_rows_text(group: dict[str, Any]) -> str:
    """Return the range of training rows of the labels in a bin, as text.

    >>> training_rows_text({"least": 5, "most": 19}), training_rows_text({"least": 0, "most": 0})
    ('5 to 19 rows', 'no rows')
    """
    least, most = group["least"], group["most"]
    if most == 0:
        return "no rows"
    return f"{count_range(least, most)} {'row' if least == most == 1 else 'rows'}"


def _bar(x: float, y: float, width: float, code: int) -> Svg:
    shape = {"width": max(width, 0.0), "height": _BAR - 2, "rx": 2}
    return element("rect", x=x, y=y, **shape, class_=f"big k{code}")


def _log_scale(low: float, high: float, start: float, stop: float) -> Scale:
    """Return a scale for base-10 logs; if the range is a single number, it is widened."""
    first, last = math.log10(low), math.log10(high)
    return Scale(first, last if last > first else first + 0.3, start, stop)


def _round_numbers(scale: Scale) -> list[float]:
    """Return the ticks of a log scale: powers of ten; on a short scale also 2 and 5 times these.

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
        Result of `label_page_facts`, possibly saved as JSON and read again.
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
    """Draw the charts for which the facts contain data."""
    charts: dict[str, Svg | list[Svg]] = {
        "shapes": [draw_shape(s) for s in facts["tree"]["shapes"]]
    }
    if len(set(facts["read"]["counts"])) > 1:
        charts["frequencies"] = draw_frequencies(facts["read"])
    bins = facts["measured"]["bins"] if "measured" in facts else None
    if bins:
        charts["bins"] = draw_bins(bins)
    return charts


def table_ranks(measured: MeasuredFacts) -> list[int]:
    """Return the ranks k that the table shows: round numbers and the last rank."""
    k = len(measured["at"]["P"])
    return sorted({rank for rank in _RANKS if rank <= k} | {k})


def _tiles(facts: LabelPageFacts) -> list[dict[str, str]]:
    """Return the key figures at the top of the page."""
    read, tree = facts["read"], facts["tree"]
    tiles = _measured_tiles(facts["measured"]) if "measured" in facts else []
    tiles.append(
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
        tiles.append({"value": _brief(read["rows"]), "name": "training rows", "note": note})
    if "training" in facts["seconds"]:
        seconds = duration(facts["seconds"]["training"])
        note = f"{count_with_noun(tree['trees'], 'tree')}, {whole(tree['weights'])} weights"
        tiles.append({"value": seconds, "name": "training time", "note": note})
    return tiles


def _measured_tiles(measured: MeasuredFacts) -> list[dict[str, str]]:
    at, k = measured["at"], len(measured["at"]["P"])
    rows = count_with_noun(measured["rows"], "row")
    speed = measured["rows"] / max(measured["seconds"], 1e-9)
    return [
        {
            "value": percent(at["P"][0]),
            "name": "precision of the first label (P@1)",
            "note": f"on {rows} of {quoted(measured['source'], 30)}",
        },
        {
            "value": percent(at["recall"][-1]),
            "name": f"recall@{k}",
            "note": f"{measured['labels_a_row']:.1f} labels per row on average",
        },
        {"value": _brief(round(speed)), "name": "predictions per second", "note": "in one batch"},
    ]


def describe_tree(tree: TreeFacts) -> str:
    """Describe the tree in one sentence, without the final full stop."""
    if tree["kind"] in ("balanced", "wide") and all(len(s["levels"]) == 1 for s in tree["shapes"]):
        return _FEW
    return _KINDS.get(tree["kind"], _KINDS["given"])


def summary_sentences(facts: LabelPageFacts) -> list[str]:
    """Return the sentences at the top of the page."""
    read, tree = facts["read"], facts["tree"]
    lines = []
    if "measured" in facts:
        measured = facts["measured"]
        rows = f"{count_with_noun(measured['rows'], 'row')} of {quoted(measured['source'], 60)}"
        first = percent(measured["at"]["P"][0])
        lines.append(f"The first label is correct for {first} of the {rows}.")
        lines += _compare_rare_labels(measured["bins"] or [])
    lines.append(f"A prediction evaluates {_evaluated_classifiers(tree)}.")
    if read["unseen"]:
        lines.append(
            f"{count_with_noun(read['unseen'], 'label')} had no training rows and "
            f"{'is' if read['unseen'] == 1 else 'are'} almost never predicted."
        )
    return lines


def _evaluated_classifiers(tree: TreeFacts) -> str:
    evaluated, total = tree["met"], tree["classifiers"]
    noun = f"classifiers in {count_with_noun(tree['trees'], 'tree')}"
    if evaluated >= total:
        return f"all {whole(total)} {noun}"
    share = percent(evaluated / total)
    return f"about {whole(round(evaluated))} of the {whole(total)} {noun} ({share})"


def _compare_rare_labels(bins: list[dict[str, Any]]) -> list[str]:
    """Return a sentence that compares the recall of the rarest and the most frequent labels."""
    trained = [group for group in bins if group["least"] > 0 and group["recall"] is not None]
    if len(trained) < 2:
        return []
    rare, frequent = trained[0], trained[-1]
    return [
        f"Mean recall is {percent(rare['recall'])} for labels with {training_rows_text(rare)} in "
        f"training and {percent(frequent['recall'])} for labels with "
        f"{training_rows_text(frequent)}."
    ]


def _brief(count: int) -> str:
    """Return a count in abbreviated form; the page shows the exact number further down.

    >>> _brief(37_872), _brief(123_604), _brief(1_305_265)
    ('37,872', '124k', '1.31M')
    """
    if count < 100_000:
        return whole(count)
    return f"{count / 1e3:.0f}k" if count < 999_500 else f"{count / 1e6:,.3g}M"


def describe_counts(counts: dict[str, Any]) -> str:
    """Return the range and the median of counts as text.

    >>> describe_counts({"least": 2, "median": 3.0, "most": 14, "of": 42})
    '2 to 14 (median 3)'
    """
    if counts["least"] == counts["most"]:
        return whole(counts["most"])
    ends = f"{whole(counts['least'])} to {whole(counts['most'])}"
    return f"{ends} (median {whole(counts['median'])})"


_SEVERAL_TREES = " Nodes and classifiers are per tree; weights are totals over all {}."
_MEASURES = ("P", "nDCG", "recall", "PSP", "PSnDCG")


def labels_to_markdown(facts: LabelPageFacts) -> str:
    """Return the page as Markdown."""
    parts = [
        f"# {escape_name(facts['title'])}",
        *(escape_sentence(line) for line in summary_sentences(facts)),
    ]
    parts += _data_markdown(facts["read"]) + _tree_markdown(facts["tree"])
    if "measured" in facts:
        parts += _measured_markdown(facts["measured"])
    times = ", ".join(f"{step} {duration(each)}" for step, each in facts["seconds"].items())
    parts.append(f"Time: {times}." if times else "")
    return join_parts(parts, facts["made"], facts.get("use"))


def _data_markdown(read: LabelDataFacts) -> list[str]:
    rows, labels = read["rows"], count_with_noun(read["labels"], "label")
    columns = f"{count_with_noun(read['features'], 'feature')}, {labels}."
    if rows is None:
        return ["## Data", f"Rows with {columns}"]
    source = f"{count_with_noun(rows, 'row')} of {escape_name(read['source'], 90)}"
    most = [
        [escape_name(row["label"], 40), whole(row["rows"]), percent(row["rows"] / rows)]
        for row in read["most"]
    ]
    frequent = table(["Label", "Rows", "Share of rows"], most) if most else ""
    return ["## Data", f"{source}, {columns}", frequent]


def _tree_markdown(tree: TreeFacts) -> list[str]:
    size = f"{whole(tree['weights'])} weights in {format_bytes(tree['bytes'])}"
    title = "## The tree" if tree["trees"] == 1 else "## The trees"
    parts = [
        title,
        f"{escape_sentence(describe_tree(tree))}. "
        f"{count_with_noun(tree['trees'], 'tree')}, {size}.",
    ]
    for shape in tree["shapes"]:
        parts += _shape_markdown(shape)
    options = ", ".join(
        f"{escape_name(name)}={escape_name(value)}" for name, value in tree["options"]
    )
    parts.append(f"Options of the fit: {options}." if options else "")
    return parts


def _shape_markdown(shape: ShapeFacts) -> list[str]:
    head = ["Level", "Nodes", "Children per node", "Classifiers", "Weights", "Features used"]
    rows = [
        [
            str(level["level"]),
            whole(level["nodes"]),
            count_range(level["children"]["least"], level["children"]["most"]),
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
        leaf + (_SEVERAL_TREES.format(len(shape["trees"])) if len(shape["trees"]) > 1 else ""),
    ]


def _measured_markdown(measured: MeasuredFacts) -> list[str]:
    ranks, at = table_ranks(measured), measured["at"]
    n_rows, unknown = count_with_noun(measured["rows"], "row"), measured["unknown"]
    rows = [
        [f"{name}\\@k", *(percent(at[name][k - 1]) for k in ranks)]
        for name in _MEASURES
        if name in at
    ]
    parts = [
        "## Accuracy on the test file",
        f"{n_rows} of {escape_name(measured['source'], 60)}, with "
        f"{number(measured['labels_a_row'])} labels per row on average. The estimates hold for new "
        "rows only if the model was not trained on this file.",
        table(["k", *map(str, ranks)], rows),
    ]
    if unknown:
        are = "is unknown to the model and counts as a miss"
        if unknown > 1:
            are = "are unknown to the model and count as misses"
        parts.append(f"{count_with_noun(unknown, 'label')} {are}.")
    if measured["bins"]:
        head = ["Training rows", "Labels", "Recall", "Precision", "F1"]
        cells = [
            [
                count_range(group["least"], group["most"]),
                whole(group["labels"]),
                *(percent(group[name]) for name in ("recall", "precision", "f1")),
            ]
            for group in measured["bins"]
        ]
        parts += ["Means over labels, by number of training rows:", table(head, cells)]
    return parts


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
        Duration of each step of the command in seconds.
    file : str
        Name of the model file, for the section "Using the model".
    command : str, optional
        Command that produced the page.
    """
    summary = model.summary()
    kind = model.tree if isinstance(model.tree, str) else "given"
    seed = model.random_state if isinstance(model.random_state, int) else None
    provenance = Provenance(version=versions(), date=date.today().isoformat(), seed=seed)
    if command:
        provenance["command"] = command
    label_rows = getattr(model, "label_rows_", None)
    facts: dict[str, Any] = {
        "title": title or f"{Path(source).name}: {len(model.classes_):,} labels",
        "made": provenance,
        "read": data_section(source, summary, label_rows, model.classes_),
        "tree": tree_section(summary, kind=kind, options=_options(model)),
        "seconds": dict(seconds or {}),
    }
    if measured is not None:
        facts["measured"] = measured_section(test, measured.to_dict())
    if file and (use := _use(file)) is not None:
        facts["use"] = use
    return cast(LabelPageFacts, redact_facts(plain(facts)))


def write_label_page(path: Path, facts: LabelPageFacts) -> None:
    """Write the page atomically."""
    write_text(path, render_labels(facts))


def _options(model: LabelTree) -> dict[str, object]:
    """Return the options that differ from the defaults."""
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
    command = f"discriminant predict {shlex.quote(file)} new.txt --top 5 --out labels.csv"
    return use_section(file=file, python="\n".join(lines), command=command)
