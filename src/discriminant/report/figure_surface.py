"""The loss of RDA over pooling and shrinkage, as a map: strong colours are low losses."""

from __future__ import annotations

import numpy as np

from discriminant.report.facts import SurfaceFacts
from discriminant.report.svg import WIDTH, Svg, element, figure, text
from discriminant.report.words import fixed, number, percent

_LEFT, _TOP = 52.0, 8.0
_SAME = 1e-9  # relative difference of losses that are the same


def draw_surface(surface: SurfaceFacts) -> Svg:
    """A cell for each candidate; a ring around the one taken."""
    P, S = len(surface["pooling"]), len(surface["shrinkage"])
    wide, tall = (WIDTH - _LEFT - 8) / S, min((WIDTH - _LEFT - 8) / P, 30.0)
    depth = _depths(surface)
    parts = []
    for p in range(P):
        y = _TOP + tall * (P - 1 - p)  # pooling rises upwards
        if p % _every(P) == 0 or p == P - 1:
            parts.append(
                text((_LEFT - 6, y + tall / 2 + 5), fixed(surface["pooling"][p], 1), "end")
            )
        if surface["pooling"][p] == 0:  # shrinkage has no part there: one cell for all
            parts.append(_cell(surface, p, None, (_LEFT, y, wide * S, tall), depth[p, 0]))
            continue
        for s in range(S):
            parts.append(_cell(surface, p, s, (_LEFT + wide * s, y, wide, tall), depth[p, s]))
    foot = _TOP + tall * P
    for s in range(0, S, _every(S)):
        parts.append(text((_LEFT + wide * (s + 0.5), foot + 17), surface["shrinkage"][s], "middle"))
    p, s = surface["best"]
    free = surface["pooling"][p] == 0
    box = _LEFT + (0.0 if free else wide * s), _TOP + tall * (P - 1 - p)
    parts.append(
        element(
            "rect",
            x=box[0],
            y=box[1],
            width=wide * (S if free else 1),
            height=tall,
            class_="taken",
        )
    )
    parts.append(text(((_LEFT + WIDTH) / 2, foot + 38), "shrinkage →", "middle", "axis"))
    up = element(
        "text",
        "pooling →",
        class_="axis",
        text_anchor="middle",
        transform=f"translate(13 {foot / 2:.0f}) rotate(-90)",
    )
    title = f"Held-out log loss of {P * S} settings of RDA; the lowest is marked"
    return figure("surface", foot + 48, *parts, up, title=title)


def _cell(
    surface: SurfaceFacts, p: int, s: int | None, box: tuple[float, ...], depth: float
) -> Svg:
    """The cell of a candidate, or of all shrinkages (None)."""
    shrinkage = "any shrinkage" if s is None else f"shrinkage {surface['shrinkage'][s]}"
    loss, error = surface["log_loss"][p][s or 0], surface["error"][p][s or 0]
    said = (
        f"pooling {fixed(surface['pooling'][p], 2)}, {shrinkage}: "
        f"log loss {number(loss)}, error {percent(error)}"
    )
    return element(
        "rect",
        element("title", said),
        x=box[0],
        y=box[1],
        width=box[2],
        height=box[3],
        class_="cell",
        shape_rendering="crispEdges",
        fill_opacity=f"{depth:.2f}",
    )


def _depths(surface: SurfaceFacts) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """(P, S) from 0.04 for the worst to 1 for the best, by rank: losses spread over decades.

    Losses that a rounding tells apart have one rank.
    """
    loss = np.array(surface["log_loss"], dtype=float)
    loss = np.where(np.isnan(loss), np.inf, loss)
    levels = np.unique(loss)
    with np.errstate(invalid="ignore"):
        new = np.r_[True, ~(np.diff(levels) <= _SAME * np.abs(levels[1:]))]
    grade = np.cumsum(new) - 1
    rank = grade[np.searchsorted(levels, loss)] / max(int(grade[-1]), 1)
    found: np.ndarray[tuple[int, int], np.dtype[np.float64]] = 0.04 + 0.92 * (1.0 - rank) ** 1.6
    return found


def _every(count: int) -> int:
    return max(1, (count + 5) // 6)
