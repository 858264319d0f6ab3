"""Drawings of a label tree: frequencies of labels, the shape of trees, measures by frequency."""

from __future__ import annotations

import math
from typing import Any

from discriminant.report.label_facts import LabelsReadFacts, ShapeFacts
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
from discriminant.report.words import between, counted, percent, whole

_LEFT, _TOP, _RIGHT, _FOOT = 78.0, 12.0, WIDTH - 14.0, 290.0
_ROW = 46.0
_BAR = 15.0


def draw_frequencies(read: LabelsReadFacts) -> Svg:
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
    title = f"Classifiers and weights of {counted(len(levels), 'level')}, from the root down"
    return figure("shape", 32.0 + _ROW * len(levels), *parts, title=title)


def draw_bins(bins: list[dict[str, Any]]) -> Svg:
    """Recall and precision of labels, by how many rows they had in training."""
    scale = Scale(0.0, 1.0, 10.0, WIDTH - 22.0)
    height = 62.0
    foot = height * len(bins) + 6.0
    parts = axis_across(scale, 2.0, foot, as_percent(scale, 5), 5)
    for place, one in enumerate(bins):
        top = height * place
        name = f"{span(one)} · {counted(one['labels'], 'label')}"
        said = f"{percent(one['recall'])} · {percent(one['precision'])}"
        parts += [
            text((10, top + 18), name, "start", "label"),
            text((WIDTH - 22, top + 18), said, "end", "label"),
            _bar(10.0, top + 25, scale(one["recall"] or 0.0) - 10, 0),
            _bar(10.0, top + 25 + _BAR, scale(one["precision"] or 0.0) - 10, 1),
        ]
    title = "Recall and precision of labels, by how many rows they had in training"
    return figure("bins", foot + 24, *parts, title=title)


def span(one: dict[str, Any]) -> str:
    """Rows that labels of a bin had in training.

    >>> span({"least": 5, "most": 19}), span({"least": 0, "most": 0})
    ('5 to 19 rows', 'no rows')
    """
    least, most = one["least"], one["most"]
    if most == 0:
        return "no rows"
    return f"{between(least, most)} {'row' if least == most == 1 else 'rows'}"


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
