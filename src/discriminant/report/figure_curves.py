"""The ROC curve, with a point that can be moved, and the risk-coverage curve."""

from __future__ import annotations

from typing import Any

from discriminant.report.facts import RocFacts
from discriminant.report.svg import (
    WIDTH,
    Scale,
    Svg,
    as_percent,
    axis_across,
    axis_up,
    element,
    figure,
    line,
    path,
    text,
)

_LEFT, _TOP, _RIGHT, _FOOT = 62.0, 10.0, WIDTH - 12.0, 400.0


def draw_roc(roc: RocFacts) -> Svg:
    """Share of positives found against share of others called positive."""
    across, up = Scale(0.0, 1.0, _LEFT, _RIGHT), Scale(0.0, 1.0, _FOOT, _TOP)
    places = [
        (across(fp / roc["negatives"]), up(tp / roc["positives"]))
        for tp, fp in zip(roc["tp"], roc["fp"], strict=True)
    ]
    parts = _frame(across, up, _FOOT)
    parts += [
        line((across(0), up(0)), (across(1), up(1)), "chance"),
        path([*places, (across(1), up(0))], "under", closed=True),
        path(places, "curve"),
        _point(places[roc["start"]]),
        *_sides("others called positive by mistake", "positives found", _FOOT),
    ]
    drawn = figure("roc", _FOOT + 48, *parts, title="ROC curve; the threshold can be dragged")
    return _with_frame(drawn, across, up)


def draw_coverage(curve: dict[str, Any], at: tuple[float | None, float | None]) -> Svg:
    """How often decided rows are wrong against the share that is decided."""
    foot = 250.0
    top = max([*curve["risk"], at[1] or 0.0, 1e-3])
    across, up = Scale(0.0, 1.0, _LEFT, _RIGHT), Scale(0.0, 1.12 * top, foot, _TOP)
    places = [(across(c), up(r)) for c, r in zip(curve["coverage"], curve["risk"], strict=True)]
    parts = _frame(across, up, foot)
    area = [(places[0][0], foot), *places, (places[-1][0], foot)]
    parts += [path(area, "under", closed=True), path(places, "curve")]
    if at[0] is not None and at[1] is not None:
        parts.append(_point((across(at[0]), up(at[1]))))
    parts += _sides("share of rows that is decided", "of these, wrong", foot)
    drawn = figure("coverage", foot + 48, *parts, title="Risk–coverage curve")
    return _with_frame(drawn, across, up)


def _frame(across: Scale, up: Scale, foot: float) -> list[Svg]:
    return [
        *axis_across(across, _TOP, foot, as_percent(across, 5), 5),
        *axis_up(up, _LEFT, _RIGHT, as_percent(up, 5), 5),
    ]


def _point(at: tuple[float, float]) -> Svg:
    return element("circle", cx=at[0], cy=at[1], r=8.0, class_="handle")


def _sides(across: str, up: str, foot: float) -> list[Svg]:
    turned = f"translate(12 {(foot + _TOP) / 2:.0f}) rotate(-90)"
    return [
        text(((_LEFT + _RIGHT) / 2, foot + 38), across, "middle", "axis"),
        element("text", up, text_anchor="middle", class_="axis", transform=turned),
    ]


def _with_frame(drawn: Svg, across: Scale, up: Scale) -> Svg:
    """Where the axes lie and what they hold, for the script that moves the point."""
    ends = (across.low, across.high, across.start, across.stop, up.low, up.high, up.start, up.stop)
    frame = " ".join(f"{end:.6g}" for end in ends)
    return Svg(drawn.replace("<svg ", f'<svg data-frame="{frame}" ', 1))
