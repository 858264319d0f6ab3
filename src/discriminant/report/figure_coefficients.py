"""Standardised coefficients with their intervals, one line a feature and class."""

from __future__ import annotations

from discriminant.report.facts import CoefficientFacts, CoefficientsFacts
from discriminant.report.svg import (
    WIDTH,
    Scale,
    Svg,
    axis_across,
    colour,
    element,
    figure,
    line,
    mark,
    name_text,
    text,
)
from discriminant.report.words import fixed, shown

_LINE = 16.0
_HEAD = 30.0


def draw_coefficients(coefficients: CoefficientsFacts, codes: dict[str, int]) -> Svg:
    """Dots with bars about zero; `codes` are the codes of classes, for their colours."""
    rows = coefficients["rows"]
    features = list(dict.fromkeys(row["feature"] for row in rows))
    ends = [abs(end) for row in rows for end in (row["low"], row["high"], row["value"]) if end]
    reach = max([*ends, 1e-9]) * 1.04
    scale = Scale(-reach, reach, 8.0, WIDTH - 8.0)
    tall = _HEAD + _LINE * max(len(coefficients["groups"]), 1)
    foot = tall * len(features) + 6.0
    parts = axis_across(scale, 2.0, foot)
    parts.append(line((scale(0), 2.0), (scale(0), foot), "zero"))
    for i, feature in enumerate(features):
        top = tall * i
        parts.append(name_text((4.0, top + 20), feature, kind="label", longest=44))
        own = [row for row in rows if row["feature"] == feature]
        for j, row in enumerate(own):
            parts.append(_bar(row, top + _HEAD + _LINE * (j + 0.5), scale, codes))
    parts.append(text((WIDTH / 2, foot + 38), "for one typical step up", "middle", "axis"))
    title = f"Standardised coefficients of {len(features)} features"
    return figure("coefficients", foot + 48, *parts, title=title)


def _bar(row: CoefficientFacts, y: float, scale: Scale, codes: dict[str, int]) -> Svg:
    code = codes.get(row["of"] or "", 0)
    value = row["value"] or 0.0
    of = f"{shown(row['of'])}: " if row["of"] else ""
    said = f"{of}{fixed(value, 3)} ({fixed(row['low'], 3)} to {fixed(row['high'], 3)})"
    sure = row["low"] is not None and row["high"] is not None and row["low"] * row["high"] > 0
    parts = [element("title", said)]
    if row["low"] is not None and row["high"] is not None:
        parts.append(line((scale(row["low"]), y), (scale(row["high"]), y), f"bar {colour(code)}"))
    parts.append(mark((scale(value), y), code, "big"))
    return element("g", *parts, class_="sure" if sure else "unsure")
