"""Rows in the plane of the first two directions, or along a single one."""

from __future__ import annotations

import math

import numpy as np

from discriminant.report.facts import EllipseFacts, SpaceFacts
from discriminant.report.svg import (
    WIDTH,
    Scale,
    Svg,
    axis_across,
    axis_up,
    colour,
    element,
    figure,
    line,
    mark,
    name_text,
    path,
    text,
)

_LEFT, _TOP, _RIGHT = 48.0, 26.0, WIDTH - 6.0
_EDGE = 8.0  # top where nothing is written above
_NAMED = 15  # classes whose names are written at their means


def draw_space(space: SpaceFacts) -> Svg:
    """The projection: a plane where there are two directions, counts along one otherwise."""
    return _plane(space) if len(space["axes"]) == 2 else _along(space)


def _plane(space: SpaceFacts) -> Svg:
    across, up = _scales(space)
    foot = up.start
    parts = [_region(region["code"], region["polygon"], across, up) for region in space["regions"]]
    parts += axis_across(across, _TOP, foot) + axis_up(up, _LEFT, _RIGHT)
    dots = [mark((across(x), up(y)), int(code)) for x, y, code in space["points"]]
    parts.append(element("g", *dots, class_="points"))
    parts += [_ellipse(ellipse, across, up) for ellipse in space["ellipses"]]
    if len(space["labels"]) <= _NAMED:
        parts += _names(space, across, up)
    else:
        parts += _numbers(space, across, up)
    parts.append(text(((_LEFT + _RIGHT) / 2, foot + 36), "direction 1", "middle", "axis"))
    parts.append(text((_LEFT, _TOP - 9), "direction 2, upwards", kind="axis"))
    title = f"{len(space['points'])} rows in the plane of the first two directions"
    return figure("space", foot + 46, *parts, title=title)


def _scales(space: SpaceFacts) -> tuple[Scale, Scale]:
    """Frames of what is drawn; both directions have one unit, unless that makes a ribbon."""
    corners = np.concatenate([np.array(region["polygon"]) for region in space["regions"]])
    (left, low), (right, high) = corners.min(axis=0), corners.max(axis=0)
    wide = _RIGHT - _LEFT
    tall = min(max(wide * (high - low) / max(right - left, 1e-9), 0.62 * wide), wide)
    return Scale(left, right, _LEFT, _RIGHT), Scale(low, high, _TOP + tall, _TOP)


def _region(code: int, polygon: list[list[float]], across: Scale, up: Scale) -> Svg:
    places = [(across(x), up(y)) for x, y in polygon]
    return path(places, f"region {colour(code)}", closed=True)


def _ellipse(ellipse: EllipseFacts, across: Scale, up: Scale) -> Svg:
    (x, y), ((ax, ay), (bx, by)) = ellipse["centre"], ellipse["axes"]
    turns = [2 * math.pi * i / 60 for i in range(60)]
    places = [
        (
            across(x + math.cos(turn) * ax + math.sin(turn) * bx),
            up(y + math.cos(turn) * ay + math.sin(turn) * by),
        )
        for turn in turns
    ]
    return path(places, f"ellipse {colour(ellipse['code'])}", closed=True)


def _names(space: SpaceFacts, across: Scale, up: Scale) -> list[Svg]:
    """Names on top of the ellipses, where few rows are; one that would overlap moves down."""
    tops = [mean[1] for mean in space["means"]]
    for ellipse in space["ellipses"]:
        (_, ay), (_, by) = ellipse["axes"]
        tops[ellipse["code"]] = ellipse["centre"][1] + math.hypot(ay, by)
    order = sorted(range(len(space["means"])), key=lambda k: up(tops[k]))
    taken: list[tuple[float, float]] = []
    found = []
    for k in order:
        x, y = across(space["means"][k][0]), max(up(tops[k]) - 10, _TOP + 12)
        reach = 4.5 * min(len(space["labels"][k]), 18)
        x = min(max(x, _LEFT + reach), _RIGHT - reach)
        while any(abs(x - a) < 60 and abs(y - b) < 16 for a, b in taken):
            y += 4.0
        taken.append((x, y))
        kind = f"mean {colour(k)}"
        found.append(name_text((x, y + 5), space["labels"][k], "middle", kind, longest=18))
    return found


def _numbers(space: SpaceFacts, across: Scale, up: Scale) -> list[Svg]:
    return [
        name_text((across(m[0]), up(m[1]) + 5), label, "middle", f"mean {colour(k)}", longest=8)
        for k, (m, label) in enumerate(zip(space["means"], space["labels"], strict=True))
    ]


def _along(space: SpaceFacts) -> Svg:
    """A histogram for each class above the one line, and the borders."""
    bins = space.get("bins", {"edges": [0.0, 1.0], "counts": []})
    edges, counts = bins["edges"], bins["counts"]
    totals = [max(float(np.sum(count)), 1e-12) for count in counts]
    top = max(
        (max(count) / total for count, total in zip(counts, totals, strict=True)), default=1.0
    )
    across = Scale(edges[0], edges[-1], _LEFT - 20, _RIGHT)
    up = Scale(0.0, 1.08 * top, 250.0, _EDGE)
    parts = axis_across(across, _EDGE, 250.0)
    for k, (count, total) in enumerate(zip(counts, totals, strict=True)):
        places = [(across(edges[0]), 250.0)]
        for i, height in enumerate(count):
            y = up(height / total)
            places += [(across(edges[i]), y), (across(edges[i + 1]), y)]
        places.append((across(edges[-1]), 250.0))
        parts.append(path(places, f"hill {colour(k)}", closed=True))
    for border in space["borders"]:
        if edges[0] < border < edges[-1]:
            parts.append(line((across(border), _EDGE), (across(border), 250.0), "border"))
    for k, mean in enumerate(space["means"]):
        parts.append(mark((across(mean[0]), 262.0 - 12), k, "mean-sign"))
    parts.append(text(((_LEFT + _RIGHT) / 2, 288), "direction 1", "middle", "axis"))
    title = "Rows of each class along the direction that tells them apart best"
    return figure("along", 298, *parts, title=title)
