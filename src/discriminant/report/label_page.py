"""Facts about a label tree to a page of HTML, in the frame of all pages: see `report.render`."""

from __future__ import annotations

from typing import Any

from discriminant.report.figure_labels import draw_bins, draw_frequencies, draw_shape, span
from discriminant.report.label_facts import LabelPageFacts, MeasuredFacts, TreeFacts
from discriminant.report.render import as_script, framed
from discriminant.report.svg import Svg
from discriminant.report.words import between, counted, duration, percent, told, whole

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
        in_short=in_short(facts),
        grown=grown(facts["tree"]),
        ranks=[] if found is None else ranks_shown(found),
        between=between,
        spelt=spelt,
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


def ranks_shown(found: MeasuredFacts) -> list[int]:
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
        note = f"{counted(read['features'], 'feature')}, {_each(read['pairs'], read['rows'])} each"
        found.append({"value": _brief(read["rows"]), "name": "rows to learn from", "note": note})
    if "training" in facts["seconds"]:
        took = duration(facts["seconds"]["training"])
        note = f"{counted(tree['trees'], 'tree')}, {whole(tree['weights'])} weights"
        found.append({"value": took, "name": "to train", "note": note})
    return found


def _measured_tiles(found: MeasuredFacts) -> list[dict[str, str]]:
    at, k = found["at"], len(found["at"]["P"])
    speed = found["rows"] / max(found["seconds"], 1e-9)
    return [
        {
            "value": percent(at["P"][0]),
            "name": "of first labels right",
            "note": f"on {counted(found['rows'], 'row')} of {told(found['source'], 30)}",
        },
        {
            "value": percent(at["recall"][-1]),
            "name": f"of a row's labels among the first {k}",
            "note": f"rows have {found['labels_a_row']:.1f} on average",
        },
        {"value": _brief(round(speed)), "name": "rows answered a second", "note": "all at once"},
    ]


def grown(tree: TreeFacts) -> str:
    """How labels were put into the tree, as a sentence without its full stop."""
    if tree["kind"] in ("balanced", "wide") and all(len(s["levels"]) == 1 for s in tree["shapes"]):
        return _FEW
    return _KINDS.get(tree["kind"], _KINDS["given"])


def in_short(facts: LabelPageFacts) -> list[str]:
    """What is to be known first."""
    read, tree = facts["read"], facts["tree"]
    lines = []
    if "measured" in facts:
        found = facts["measured"]
        rows = f"{counted(found['rows'], 'row')} of {told(found['source'], 60)}"
        first = percent(found["at"]["P"][0])
        lines.append(f"The label put first was right for {first} of the {rows}.")
        lines += _rare(found["bins"] or [])
    lines.append(f"To find labels, a row is put to {_put(tree)}.")
    if read["unseen"]:
        lines.append(
            f"{counted(read['unseen'], 'label')} had no row to learn from, so that nothing is "
            "known of them and they are hardly ever found."
        )
    return lines


def _put(tree: TreeFacts) -> str:
    """How many of the classifiers a row meets."""
    met, all_of = tree["met"], tree["classifiers"]
    of = f"classifiers of {counted(tree['trees'], 'tree')}"
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
        f"Labels that had {span(rare)} in training are found in {percent(rare['recall'])} of the "
        f"rows that have them; those that had {span(often)}, in {percent(often['recall'])}."
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


def spelt(found: dict[str, Any]) -> str:
    """A spread in words.

    >>> spelt({"least": 2, "median": 3.0, "most": 14, "of": 42})
    '2 to 14, half of them up to 3'
    """
    if found["least"] == found["most"]:
        return whole(found["most"])
    return f"{whole(found['least'])} to {whole(found['most'])}, half of them up to " + whole(
        found["median"]
    )
