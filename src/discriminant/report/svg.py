"""The figures of the report page as SVG: elements, scales, axes, markers and charts.

A figure has a `viewBox` 480 units wide, so that it scales to any screen; the style sheet enlarges
its text on a phone. Colours are set by the style sheet: `k0`..`k11` are the colours of classes, and
`s0`..`s11` their markers, so that classes are distinguishable without colour. All text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from discriminant.assessment.intervals import wilson
from discriminant.report.fact_types import (
    CalibrationFacts,
    CardFacts,
    CoefficientFacts,
    CoefficientsFacts,
    ComparisonFacts,
    DecisionFacts,
    EllipseFacts,
    LearningCurveFacts,
    ModelFacts,
    RegionsFacts,
    RocFacts,
    SpaceFacts,
    StripFacts,
    SurfaceFacts,
)
from discriminant.report.format import axis_number, fixed, number, percent, share, shown, whole
from discriminant.table.blocks import Floats

TickFormat = Callable[[float], str]
WIDTH = 480.0
COLOURS = 12

# Paths around (0, 0) that look about equally large.
SHAPES = (
    "M3.4 0A3.4 3.4 0 1 1-3.4 0A3.4 3.4 0 1 1 3.4 0Z",
    "M-3-3H3V3H-3Z",
    "M0-4L3.8 2.7H-3.8Z",
    "M0-4.4L4.4 0 0 4.4-4.4 0Z",
    "M-1.2-4H1.2V-1.2H4V1.2H1.2V4H-1.2V1.2H-4V-1.2H-1.2Z",
    "M0 4L3.8-2.7H-3.8Z",
    "M-3.7-2L-2-3.7 0-1.7 2-3.7 3.7-2 1.7 0 3.7 2 2 3.7 0 1.7-2 3.7-3.7 2-1.7 0Z",
    "M0-4.2L4-1.3 2.5 3.4H-2.5L-4-1.3Z",
    "M4 0L-2.7 3.8V-3.8Z",
    "M0-4.8L1.3-1.6 4.6-1.5 2 .6 2.9 3.8 0 2-2.9 3.8-2 .6-4.6-1.5-1.3-1.6Z",
    "M-4 0L2.7 3.8V-3.8Z",
    "M-1.6-4.4H1.6V4.4H-1.6Z",
)

# Arrows whose tip is at (0, 0): left, right, up and down.
ARROWS = ("M0 0L7-3.4V3.4Z", "M0 0L-7-3.4V3.4Z", "M0 0L3.4 7H-3.4Z", "M0 0L3.4-7H-3.4Z")


class Svg(str):
    """Markup that templates insert without escaping."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


def element(tag: str, *children: str, **attributes: object) -> Svg:
    """Return one SVG element.

    In attribute names `_` becomes `-`; texts are escaped.

    >>> element("text", "a < b", x=1.0, text_anchor="end")
    '<text x="1" text-anchor="end">a &lt; b</text>'
    """
    names = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    inside = "".join(child if isinstance(child, Svg) else escape(child) for child in children)
    return Svg(f"<{tag}{names}>{inside}</{tag}>" if inside else f"<{tag}{names}/>")


def figure(kind: str, height: float, *children: str, title: str, width: float = WIDTH) -> Svg:
    """Return a complete figure with its title for screen readers."""
    return element(
        "svg",
        element("title", title),
        *children,
        class_=f"figure {kind}",
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=title,
    )


def text(at: tuple[float, float], words: object, anchor: str = "start", kind: str = "") -> Svg:
    """Return text at a position."""
    return element("text", str(words), x=at[0], y=at[1], text_anchor=anchor, class_=kind or None)


def name_text(
    at: tuple[float, float], name: object, anchor: str = "start", kind: str = "", longest: int = 30
) -> Svg:
    """Return text with an untrusted name, which is shortened; the full name is a tooltip."""
    inside = element("tspan", shown(name, longest), class_="name")
    full = element("title", shown(name, 300))
    place = {"x": at[0], "y": at[1], "text_anchor": anchor}
    return element("text", full, inside, class_=kind or None, **place)


def line(start: tuple[float, float], end: tuple[float, float], kind: str) -> Svg:
    """Return a straight line."""
    return element("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], class_=kind)


def path(points: Sequence[tuple[float, float]], kind: str, *, closed: bool = False) -> Svg:
    """Return a line through points."""
    places = "L".join(f"{_short(x)} {_short(y)}" for x, y in points)
    return element("path", d=f"M{places}{'Z' if closed else ''}", class_=kind)


def mark(at: tuple[float, float], code: int, kind: str = "") -> Svg:
    """Return the marker of a class."""
    names = f"{colour(code)} {kind}".strip()
    return element("use", href=f"#{shape(code)}", x=at[0], y=at[1], class_=names)


def symbols() -> Svg:
    """Return the marker shapes that `mark` refers to; they are needed once per page."""
    parts = [element("path", id=f"s{i}", d=d) for i, d in enumerate(SHAPES)]
    parts += [element("path", id=f"out{i}", d=d) for i, d in enumerate(ARROWS)]
    return element("svg", element("defs", *parts), width=0, height=0, aria_hidden="true")


def colour(code: int) -> str:
    """Return the CSS class for the colour of a class."""
    return f"k{code % COLOURS}"


def shape(code: int) -> str:
    """Return the marker shape of a class; when colours repeat, the shapes are shifted."""
    return f"s{(code + code // COLOURS) % COLOURS}"


@dataclass(frozen=True, slots=True)
class Scale:
    """Linear scale: maps the values [low, high] to the positions [start, stop]."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        part = (value - self.low) / span if span > 0 else 0.5
        return self.start + part * (self.stop - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Return round numbers between low and high.

        >>> Scale(0.0, 0.37, 0.0, 1.0).ticks(4)
        [0.0, 0.1, 0.2, 0.3]
        """
        span = self.high - self.low
        if not span > 0 or not math.isfinite(span):
            return [self.low]
        raw = span / most
        size = 10.0 ** math.floor(math.log10(raw))
        step = next(size * k for k in (1, 2, 2.5, 5, 10) if size * k >= raw * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(i * step, 12) + 0.0 for i in range(first, last + 1)]

    def tick_format(self, most: int = 6) -> TickFormat:
        """Return a formatter that gives all ticks the same number of decimal places.

        >>> Scale(0.0, 1.0, 0.0, 1.0).tick_format(4)(0.5)
        '0.50'
        >>> Scale(-9.0, 9.0, 0.0, 1.0).tick_format(4)(-5)
        '−5'
        """
        ticks = self.ticks(most)
        step = abs(ticks[1] - ticks[0]) if len(ticks) > 1 else abs(ticks[0]) or 1.0
        places = max(-math.floor(math.log10(step) + 1e-9), 0)
        places += places < 12 and abs(round(step, places) - step) > 1e-9 * step
        return lambda value: fixed(value, places)


def as_percent(scale: Scale, most: int = 6) -> TickFormat:
    """Return a formatter for ticks that are percentages.

    >>> as_percent(Scale(0.0, 0.06, 0.0, 1.0))(0.01)
    '1%'
    """
    percentages = Scale(100 * scale.low, 100 * scale.high, scale.start, scale.stop)
    tick_format = percentages.tick_format(most)
    return lambda value: f"{tick_format(100 * value)}%"


def axis_across(
    scale: Scale, top: float, bottom: float, tick_format: TickFormat | None = None, most: int = 6
) -> list[Svg]:
    """Return grid lines and tick labels of the horizontal axis."""
    parts, tick_format = [], tick_format or scale.tick_format(most)
    for value in scale.ticks(most):
        x = scale(value)
        parts += [
            line((x, top), (x, bottom), "grid"),
            text((x, bottom + 17), tick_format(value), "middle"),
        ]
    return parts


def axis_up(
    scale: Scale, left: float, right: float, tick_format: TickFormat | None = None, most: int = 5
) -> list[Svg]:
    """Return grid lines and tick labels of the vertical axis."""
    parts, tick_format = [], tick_format or scale.tick_format(most)
    for value in scale.ticks(most):
        y = scale(value)
        parts.append(line((left, y), (right, y), "grid"))
        if y != scale.start:  # a label here would touch the first number of the other axis
            parts.append(text((left - 6, y + 4.5), tick_format(value), "end"))
    return parts


def axis_title_up(words: str, x: int, y: float) -> Svg:
    """Return the title of the vertical axis, rotated about its position."""
    position = f"translate({x} {y:.0f}) rotate(-90)"
    return element("text", words, class_="axis", text_anchor="middle", transform=position)


def _value(value: object) -> str:
    return _short(value) if isinstance(value, float) else escape(str(value), quote=True)


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


_LINE = 16.0  # height of the line of one coefficient
_HEAD = 26.0  # height of the line with the name of a feature
_GAP = 10.0  # height of the empty space below the coefficients of a feature
_ROW = 48.0  # height of a class or a model: its name, and its interval below
_NAME, _DOT = 19.0, 31.0  # positions of the name and of the dot in this height


def draw_coefficients(coefficients: CoefficientsFacts, codes: dict[str, int]) -> Svg:
    """Draw coefficients with their intervals; `codes` determine the colours of classes."""
    rows = coefficients["rows"]
    features = list(dict.fromkeys(row["feature"] for row in rows))
    ends = [abs(end) for row in rows for end in (row["low"], row["high"], row["value"]) if end]
    limit = max([*ends, 1e-9]) * 1.04
    scale = Scale(-limit, limit, 8.0, WIDTH - 8.0)
    height = _HEAD + _LINE * max(len(coefficients["groups"]), 1) + _GAP
    foot = height * len(features) + 6.0
    parts = axis_across(scale, 2.0, foot)
    parts.append(line((scale(0), 2.0), (scale(0), foot), "zero"))
    for i, feature in enumerate(features):
        top = height * i
        parts += _between_rows(i, top)
        parts.append(name_text((4.0, top + 20), feature, kind="label", longest=44))
        own = [row for row in rows if row["feature"] == feature]
        for j, row in enumerate(own):
            parts.append(_bar(row, top + _HEAD + _LINE * (j + 0.5), scale, codes))
    parts.append(text((WIDTH / 2, foot + 38), "per standard deviation", "middle", "axis"))
    title = f"Standardised coefficients of {len(features)} features"
    return figure("coefficients", foot + 48, *parts, title=title)


def _bar(row: CoefficientFacts, y: float, scale: Scale, codes: dict[str, int]) -> Svg:
    code = codes.get(row["of"] or "", 0)
    value, low, high = row["value"] or 0.0, row["low"], row["high"]
    label = f"{shown(row['of'])}: " if row["of"] else ""
    tooltip = f"{label}{fixed(value, 3)} ({fixed(low, 3)} to {fixed(high, 3)})"
    parts, significant = [element("title", tooltip)], False
    if low is not None and high is not None:
        parts.append(line((scale(low), y), (scale(high), y), f"bar {colour(code)}"))
        significant = low * high > 0
    parts.append(mark((scale(value), y), code, "big"))
    return element("g", *parts, class_="sure" if significant else "unsure")


_CURVE_LEFT, _CURVE_TOP, _CURVE_RIGHT, _CURVE_FOOT = 62.0, 10.0, WIDTH - 12.0, 400.0


def draw_roc(roc: RocFacts) -> Svg:
    """Draw the ROC curve."""
    across = Scale(0.0, 1.0, _CURVE_LEFT, _CURVE_RIGHT)
    up = Scale(0.0, 1.0, _CURVE_FOOT, _CURVE_TOP)
    points = [
        (across(fp / roc["negatives"]), up(tp / roc["positives"]))
        for tp, fp in zip(roc["tp"], roc["fp"], strict=True)
    ]
    parts = [
        line((across(0), up(0)), (across(1), up(1)), "chance"),
        path([*points, (across(1), up(0))], "under", closed=True),
        path(points, "curve"),
        _handle(points[roc["start"]]),
    ]
    names = "false positive rate", "true positive rate"
    title = "ROC curve; the threshold can be dragged"
    return _curve_figure("roc", across, up, parts, names, title=title)


def draw_coverage(curve: dict[str, Any], at: tuple[float | None, float | None]) -> Svg:
    """Draw the risk-coverage curve."""
    foot = 250.0
    top = max([*curve["risk"], at[1] or 0.0, 1e-3])
    across = Scale(0.0, 1.0, _CURVE_LEFT, _CURVE_RIGHT)
    up = Scale(0.0, 1.12 * top, foot, _CURVE_TOP)
    points = [(across(c), up(r)) for c, r in zip(curve["coverage"], curve["risk"], strict=True)]
    area = [(points[0][0], foot), *points, (points[-1][0], foot)]
    parts = [path(area, "under", closed=True), path(points, "curve")]
    if at[0] is not None and at[1] is not None:
        parts.append(_handle((across(at[0]), up(at[1]))))
    names = "coverage (share of rows not rejected)", "error"
    return _curve_figure("coverage", across, up, parts, names, title="Risk–coverage curve")


def _handle(at: tuple[float, float]) -> Svg:
    return element("circle", cx=at[0], cy=at[1], r=8.0, class_="handle")


def _curve_figure(
    kind: str, across: Scale, up: Scale, parts: list[Svg], names: tuple[str, str], *, title: str
) -> Svg:
    """Return the figure of a curve with axes and their names.

    The figure includes the positions and ranges of the axes, for the script that moves the point.
    """
    foot = up.start
    drawing = figure(
        kind,
        foot + 48,
        *axis_across(across, _CURVE_TOP, foot, as_percent(across, 5), 5),
        *axis_up(up, _CURVE_LEFT, _CURVE_RIGHT, as_percent(up, 5), 5),
        *parts,
        text(((_CURVE_LEFT + _CURVE_RIGHT) / 2, foot + 38), names[0], "middle", "axis"),
        axis_title_up(names[1], 12, (foot + _CURVE_TOP) / 2),
        title=title,
    )
    ends = (across.low, across.high, across.start, across.stop, up.low, up.high, up.start, up.stop)
    frame = " ".join(f"{end:.6g}" for end in ends)
    return Svg(drawing.replace("<svg ", f'<svg data-frame="{frame}" ', 1))


_LOWEST = 12  # number of classes whose recall is drawn


def draw_recalls(decision: DecisionFacts) -> Svg:
    """Draw the recall of each class with Wilson's interval, in the order of the classes."""
    rows = [(k, row) for k, row in enumerate(decision["by_class"]) if row["recall"] is not None]
    lowest = sorted(rows, key=lambda one: float(one[1]["recall"]))[:_LOWEST]
    lowest.sort(key=lambda one: one[0])
    start = recall_axis_start(decision)
    scale = Scale(start, 1.0, 10.0, WIDTH - 64.0)
    foot = _ROW * len(lowest) + 8.0
    parts = axis_across(scale, 2.0, foot, as_percent(scale, 5), 5)
    for i, (k, row) in enumerate(lowest):
        correct, top = row["recall"] * row["rows"], _ROW * i
        parts += _between_rows(i, top)
        low, high = (float(end) for end in wilson((np.array(correct), np.array(row["rows"]))))
        y = top + _DOT
        tooltip = f"{share(correct, row['rows'])}, 95% interval {percent(low)} to {percent(high)}"
        bar = line((scale(low), y), (scale(high), y), f"bar {colour(k)}")
        parts.append(
            element("g", element("title", tooltip), bar, mark((scale(row["recall"]), y), k, "big"))
        )
        parts.append(name_text((10.0, top + _NAME), row["label"], kind="label"))
        parts.append(text((WIDTH - 6, y + 5), share(correct, row["rows"]), "end", "label"))
    parts.append(text((WIDTH / 2, foot + 38), "recall", "middle", "axis"))
    title = f"Recall of {len(lowest)} classes on held-out rows, with intervals"
    return figure("recalls", foot + 48, *parts, title=title)


def recall_axis_start(decision: DecisionFacts) -> float:
    """Return where the axis of recalls starts: at 50% if all intervals are above it, else at 0."""
    rows = [
        (row["recall"], row["rows"]) for row in decision["by_class"] if row["recall"] is not None
    ]
    lows = [float(wilson((np.array(recall * n), np.array(n)))[0]) for recall, n in rows]
    return 0.5 if lows and min(lows) >= 0.5 else 0.0


def _between_rows(i: int, top: float) -> list[Svg]:
    """Return the line above row `i` of a chart; the first row has none."""
    return [line((0.0, top + 2), (WIDTH, top + 2), "apart")] if i else []


def draw_intervals(comparison: ComparisonFacts, *, weighted: bool = False) -> Svg:
    """Draw the error of each model with its interval; the selected model is highlighted."""
    models = sorted(comparison["models"], key=lambda model: model["error"] or 0.0)
    ends = [model["error_high"] or model["error"] or 0.0 for model in models]
    base = comparison["baseline"]
    near = shows_baseline(comparison)
    high = max([*ends, base if near and base is not None else 0.0, 1e-3])
    scale = Scale(0.0, 1.04 * high, 10.0, WIDTH - 64.0)  # the percentages stand to the right
    foot = _ROW * len(models) + 8.0
    parts = axis_across(scale, 2.0, foot, as_percent(scale))
    if near and base is not None:
        parts.append(line((scale(base), 2.0), (scale(base), foot), "chance"))
    for i, model in enumerate(models):
        parts += [*_between_rows(i, _ROW * i), *_model(model, _ROW * i, scale)]
    words = f"{'weighted ' if weighted else ''}error on held-out rows"
    parts.append(text((WIDTH / 2, foot + 38), words, "middle", "axis"))
    title = f"Error of {len(models)} models on held-out rows, with intervals"
    return figure("intervals", foot + 48, *parts, title=title)


def shows_baseline(comparison: ComparisonFacts) -> bool:
    """Whether the baseline error fits into the plot."""
    ends = [model["error_high"] or model["error"] or 0.0 for model in comparison["models"]]
    base = comparison["baseline"]
    return base is not None and base <= 1.6 * max(ends)


def _model(model: ModelFacts, top: float, scale: Scale) -> list[Svg]:
    value = model["error"] or 0.0
    low, high = model["error_low"], model["error_high"]
    y = top + _DOT
    kind = "selected" if model["chosen"] else "other"
    parts = [name_text((10.0, top + _NAME), model["label"], kind=f"label {kind}")]
    parts.append(text((WIDTH - 14, top + _NAME), percent(value), "end", f"label {kind}"))
    if low is not None and high is not None:
        parts.append(line((scale(low), y), (scale(high), y), f"bar {kind}"))
    parts.append(element("circle", cx=scale(value), cy=y, r=5.5, class_=f"dot {kind}"))
    return parts


_LEFT, _TOP, _RIGHT = 48.0, 26.0, WIDTH - 6.0
_EDGE = 8.0  # top margin of a plot without text above it
_NAMED = 15  # largest number of classes whose names are written above their ellipses


def draw_space(space: SpaceFacts) -> Svg:
    """Draw the projection: a scatter plot of two directions, or histograms along one direction."""
    return _along(space) if len(space["axes"]) == 1 else _plane(space)


def _plane(space: SpaceFacts) -> Svg:
    """Draw the first pair of directions; the script draws the other pairs in the same way."""
    region = space["regions"][0]
    i, j = region["directions"]
    across, up = _scales(region)
    foot = up.start
    parts = [element("g", *_regions(region, across, up), class_="regions")]
    parts.append(element("g", *axis_across(across, _TOP, foot), class_="ticks-across"))
    parts.append(element("g", *axis_up(up, _LEFT, _RIGHT), class_="ticks-up"))
    decided = space.get("decided", space["codes"])
    box = (_LEFT, _RIGHT, _TOP, foot)
    dots = [
        _dot((across(point[i]), up(point[j])), code, "missed" if decided[row] != code else "", box)
        for row, (point, code) in enumerate(zip(space["points"], space["codes"], strict=True))
    ]
    parts.append(element("g", *dots, class_="points"))
    ellipses = [_ellipse(ellipse, (i, j), across, up) for ellipse in space["ellipses"]]
    inside = {"x": _LEFT, "y": _TOP, "width": _RIGHT - _LEFT, "height": foot - _TOP}
    parts.append(element("clipPath", element("rect", **inside), id="plane"))
    parts.append(element("g", *ellipses, class_="ellipses", clip_path="url(#plane)"))
    parts.append(element("g", *_names(space, (i, j), across, up), class_="names"))
    parts.append(text(((_LEFT + _RIGHT) / 2, foot + 36), space["axes"][i], "middle", "axis across"))
    parts.append(text((_LEFT, _TOP - 9), space["axes"][j], kind="axis up"))
    title = f"{len(space['points'])} rows in the plane of two discriminant directions"
    drawing = figure("space", foot + 46, *parts, title=title)
    frame = f"{_LEFT:g} {_RIGHT:g} {_TOP:g} {foot:.1f}"
    return Svg(drawing.replace("<svg ", f'<svg data-box="{frame}" ', 1))


def _dot(at: tuple[float, float], code: int, kind: str, box: tuple[float, ...]) -> Svg:
    """Return the marker of a row, or an arrow at the border for a row outside the plot."""
    x, y = min(max(at[0], box[0]), box[1]), min(max(at[1], box[2]), box[3])
    if abs(x - at[0]) <= 0.5 and abs(y - at[1]) <= 0.5:
        return mark(at, code, kind)
    across, up = abs(x - at[0]), abs(y - at[1])
    side = (0 if at[0] < x else 1) if across >= up else (2 if at[1] < y else 3)
    return element("use", href=f"#out{side}", x=x, y=y, class_=f"{colour(code)} {kind}".strip())


def _scales(region: RegionsFacts) -> tuple[Scale, Scale]:
    """Return the scales of the axes.

    Both axes have the same unit, unless the plot would be too flat.
    """
    left, right, low, high = region["frame"]
    width = _RIGHT - _LEFT
    height = min(max(width * (high - low) / max(right - left, 1e-9), 0.62 * width), 0.86 * width)
    return Scale(left, right, _LEFT, _RIGHT), Scale(low, high, _TOP + height, _TOP)


def _regions(region: RegionsFacts, across: Scale, up: Scale) -> list[Svg]:
    """Draw one path for each predicted class: runs of equal cells in each line of the grid."""
    if not region["codes"]:
        return []
    columns, lines = region["across"], region["up"]
    width = (across.stop - across.start) / columns
    height = (up.start - up.stop) / lines
    paths: dict[int, list[str]] = {}
    for row in range(lines):
        codes = region["codes"][row * columns : (row + 1) * columns]
        y = up.start - (row + 1) * height
        start = 0
        for column in range(1, columns + 1):
            if column == columns or codes[column] != codes[start]:
                x, run = across.start + start * width, (column - start) * width
                box = f"M{x:.1f} {y:.1f}h{run:.1f}v{height:.2f}h{-run:.1f}z"
                paths.setdefault(ord(codes[start]) - 65, []).append(box)
                start = column
    return [
        element("path", d="".join(boxes), class_=f"region {colour(code)}")
        for code, boxes in sorted(paths.items())
    ]


def _ellipse(ellipse: EllipseFacts, pair: tuple[int, int], across: Scale, up: Scale) -> Svg:
    covariance = np.array(ellipse["covariance"])[np.ix_(pair, pair)]
    variances, directions = np.linalg.eigh(covariance)
    axes = ellipse["radius"] * np.sqrt(np.maximum(variances, 0.0)) * directions
    x, y = (ellipse["centre"][place] for place in pair)
    angles = np.linspace(0.0, 2.0 * math.pi, 60, endpoint=False)
    around = axes @ np.stack([np.cos(angles), np.sin(angles)])
    points = [(across(x + dx), up(y + dy)) for dx, dy in around.T.tolist()]
    return path(points, f"ellipse {colour(ellipse['code'])}", closed=True)


def _names(space: SpaceFacts, pair: tuple[int, int], across: Scale, up: Scale) -> list[Svg]:
    """Draw class names above the ellipses; names that would overlap are moved down."""
    i, j = pair
    if len(space["labels"]) > _NAMED:
        return [
            name_text(
                (
                    min(max(across(mean[i]), _LEFT), _RIGHT),
                    min(max(up(mean[j]), _TOP), up.start) + 5,
                ),
                label,
                "middle",
                f"mean {colour(k)}",
                longest=8,
            )
            for k, (mean, label) in enumerate(zip(space["means"], space["labels"], strict=True))
        ]
    tops = [mean[j] for mean in space["means"]]
    for ellipse in space["ellipses"]:
        reach = ellipse["radius"] * math.sqrt(max(ellipse["covariance"][j][j], 0.0))
        tops[ellipse["code"]] = ellipse["centre"][j] + reach
    order = sorted(range(len(space["means"])), key=lambda k: up(tops[k]))
    positions: list[tuple[float, float]] = []
    names = []
    for k in order:
        x, y = across(space["means"][k][i]), min(max(up(tops[k]) - 10, _TOP + 12), up.start - 8)
        half_width = 4.5 * min(len(space["labels"][k]), 18)
        x = min(max(x, _LEFT + half_width), _RIGHT - half_width)
        while any(abs(x - a) < 60 and abs(y - b) < 16 for a, b in positions):
            y += 4.0
        positions.append((x, y))
        kind = f"mean {colour(k)}"
        names.append(name_text((x, y + 5), space["labels"][k], "middle", kind, longest=18))
    return names


def _along(space: SpaceFacts) -> Svg:
    """Draw a histogram for each class and the decision boundaries."""
    bins = space.get("bins", {"edges": [0.0, 1.0], "counts": []})
    edges, counts = bins["edges"], bins["counts"]
    totals = [max(float(np.sum(count)), 1e-12) for count in counts]
    top = max(
        (max(count) / total for count, total in zip(counts, totals, strict=True)), default=1.0
    )
    below, above = bins.get("beyond", _NOT_BEYOND)
    across = Scale(edges[0], edges[-1], _LEFT - 20, _RIGHT)
    up = Scale(0.0, 1.08 * top, 250.0, _EDGE)
    parts = axis_across(across, _EDGE, 250.0)
    for k, (count, total) in enumerate(zip(counts, totals, strict=True)):
        outline = [(across(edges[0]), 250.0)]
        for i, height in enumerate(count):
            y = up(height / total)
            outline += [(across(edges[i]), y), (across(edges[i + 1]), y)]
        outline.append((across(edges[-1]), 250.0))
        parts.append(path(outline, f"hill {colour(k)}", closed=True))
    for border in visible_borders(space):
        parts.append(line((across(border), _EDGE), (across(border), 250.0), "border"))
    for k, mean in enumerate(space["means"]):
        parts.append(mark((across(min(max(mean[0], edges[0]), edges[-1])), 250.0), k, "mean-sign"))
    ends = [
        *([f"first bin ≤ {axis_number(edges[1])}"] if below else []),
        *([f"last bin ≥ {axis_number(edges[-2])}"] if above else []),
    ]
    axis = f"direction 1 ({', '.join(ends)})" if ends else "direction 1"
    parts.append(text(((_LEFT + _RIGHT) / 2, 288), axis, "middle", "axis"))
    decided, K = space.get("decided", space["codes"]), len(space["labels"])
    band = max(min(160.0 / K, 44.0), 6.0)
    box = (across.start, across.stop, -math.inf, math.inf)
    dots = [
        _dot(
            (across(point[0]), 300.0 + band * (code + 0.15 + 0.7 * (number * 0.618034 % 1.0))),
            code,
            "missed" if decided[row] != code else "",
            box,
        )
        for row, (point, code, number) in enumerate(
            zip(space["points"], space["codes"], space["numbers"], strict=True)
        )
    ]
    parts.append(element("g", *dots, class_="points"))
    title = "Rows of each class along the direction that separates them best"
    return figure("along", 306.0 + band * K, *parts, title=title)


def visible_borders(space: SpaceFacts) -> list[float]:
    """Return the decision boundaries along one direction that lie within the histograms."""
    edges = space.get("bins", {"edges": [0.0, 1.0]})["edges"]
    return [border for border in space["borders"] if edges[0] < border < edges[-1]]


_STRIP = 62.0  # height of the distributions of a strip


def draw_strip(strip: StripFacts, codes: Sequence[int]) -> Svg:
    """Draw the distributions of a feature in two classes, one above and one below the axis."""
    edges, width = strip["edges"], WIDTH
    across = Scale(edges[0], edges[-1], 10.0, width - 10.0)
    parts = []
    totals = [max(sum(counts), 1e-12) for counts in strip["counts"]]
    top = max(max(counts) / total for counts, total in zip(strip["counts"], totals, strict=True))
    middle = _STRIP + 4.0
    for counts, total, code, sign in zip(strip["counts"], totals, codes, (-1, 1), strict=True):
        outline = [(across(edges[0]), middle)]
        for b, count in enumerate(counts):
            y = middle + sign * _STRIP * count / total / max(top, 1e-12)
            outline += [(across(edges[b]), y), (across(edges[b + 1]), y)]
        outline.append((across(edges[-1]), middle))
        parts.append(path(outline, f"hill {colour(code)}", closed=True))
    for mean, code, sign in zip(strip["means"], codes, (-1, 1), strict=True):
        x = across(min(max(mean, edges[0]), edges[-1]))
        parts.append(line((x, middle), (x, middle + sign * _STRIP), f"at-mean {colour(code)}"))
    parts.append(line((10.0, middle), (width - 10.0, middle), "zero"))
    foot = middle + _STRIP + 4.0
    beyond = strip.get("beyond", _NOT_BEYOND)
    parts += _number_ends(edges, across, foot + 14.0, strip["values"], beyond)
    for b in range(len(edges) - 1):
        left, right = across(edges[b]), across(edges[b + 1])
        cover = {"x": left, "y": 0.0, "width": right - left, "height": foot}
        name = element("title", bin_name(strip, b))
        parts.append(element("rect", name, **cover, class_="cover", data_bin=b))
    title = f"Distribution of {shown(strip['feature'], 40)} in two classes"
    return figure("strip", foot + 20.0, *parts, title=title)


_NOT_BEYOND = (False, False)


def _number_ends(
    edges: Sequence[float],
    across: Scale,
    y: float,
    values: Sequence[float] = (),
    beyond: Sequence[bool] = _NOT_BEYOND,
) -> list[Svg]:
    """Return the labels of an axis: both ends and the middle, or a few of the given values.

    An end is marked with ≤ or ≥ if the outermost bin holds values beyond it.
    """
    if values:
        every = -(-len(values) // 6)
        return [text((across(v), y), axis_number(v), "middle") for v in values[::every]]
    ends = [
        (edges[0], "start", "≤ " if beyond[0] else ""),
        ((edges[0] + edges[-1]) / 2, "middle", ""),
        (edges[-1], "end", "≥ " if beyond[1] else ""),
    ]
    return [
        text((across(value), y), f"{sign}{axis_number(value)}", anchor)
        for value, anchor, sign in ends
    ]


def draw_card(card: CardFacts) -> Svg:
    """Draw the distribution of a column: stacked bars, one for each bin or level."""
    counts = np.array(card["counts"], dtype=float)
    bins, total = counts.shape[1], counts.sum(axis=0)
    top, foot, left, right = 6.0, 126.0, 10.0, WIDTH - 10.0
    width = (right - left) / bins
    heights = counts * (foot - top) / max(float(total.max()), 1e-12)
    floor = foot - np.vstack([np.zeros(bins), heights]).cumsum(axis=0)  # (K + 1, bins)
    parts = []
    for k in range(len(counts)):
        bars = [
            f"M{left + b * width + 1:.1f} {floor[k, b]:.1f}h{width - 2:.1f}v{-heights[k, b]:.1f}"
            f"h{2 - width:.1f}z"
            for b in range(bins)
            if heights[k, b] > 0
        ]
        parts.append(element("path", d="".join(bars), class_=f"block {colour(k)}"))
    for b in range(bins):
        name = element("title", f"{bin_name(card, b)}: {whole(float(total[b]))} rows")
        cover = {"x": left + b * width, "y": top, "width": width, "height": foot - top}
        parts.append(element("rect", name, **cover, class_="cover", data_bin=b))
    parts.append(line((left, foot), (right, foot), "zero"))
    lines = 1
    if card["edges"]:
        scale = Scale(card["edges"][0], card["edges"][-1], left, right)
        beyond = card.get("beyond", _NOT_BEYOND)
        parts += _number_ends(card["edges"], scale, foot + 17, card["values"], beyond)
    else:
        names, lines = _level_names(card["levels"], left, width, foot + 17)
        parts += names
    title = f"Distribution of {shown(card['name'], 40)} by class"
    drawing = figure("card", foot + 24.0 * lines, *parts, title=title)
    tallest = f"{float(total.max()):.6g}"
    return Svg(drawing.replace("<svg ", f'<svg data-tallest="{tallest}" ', 1))


_LETTER = 12.0  # width of a letter below the bars of a card


def _level_names(
    levels: Sequence[str], left: float, width: float, y: float
) -> tuple[list[Svg], int]:
    """Return the names of levels below their bars, and the number of lines: two if they are long.

    With two lines, the names alternate between them, so that each may be twice as wide as its bar.
    """
    fit = max(int(width / _LETTER), 3)
    lines = 2 if len(levels) > 1 and max(map(len, levels)) > fit else 1
    names = []
    for b, level in enumerate(levels):
        at = (left + (b + 0.5) * width, y + 24.0 * (b % lines))
        x, anchor = at[0], "middle"
        if lines == 2 and b == 0:
            x, anchor = left, "start"
        elif lines == 2 and b == len(levels) - 1:
            x, anchor = left + width * len(levels), "end"
        longest = int(fit * 1.9) if lines == 2 else fit
        names.append(name_text((x, at[1]), level, anchor, longest=longest))
    return names, lines


def bin_name(card: CardFacts | StripFacts, place: int) -> str:
    """Return the range or the value of a bin, or the name of a level."""
    levels: Any = card.get("levels")
    if levels:
        return shown(levels[place], 24)
    if card["values"]:
        return axis_number(card["values"][place])
    low, high = card["edges"][place : place + 2]
    below, above = card.get("beyond", _NOT_BEYOND)
    if below and place == 0:
        return f"≤ {axis_number(high)}"
    if above and place == len(card["edges"]) - 2:
        return f"≥ {axis_number(low)}"
    return f"{axis_number(low)} to {axis_number(high)}"


def draw_calibration(calibration: CalibrationFacts) -> Svg:
    """Draw observed shares with their intervals against predicted probabilities."""
    largest = max(max(one["predicted"], one["high"]) for one in calibration["bins"])
    end = next(end for end in (0.1, 0.2, 0.4, 1.0) if largest <= end or end == 1.0)
    across = Scale(0.0, end, _CURVE_LEFT, _CURVE_RIGHT)
    up = Scale(0.0, end, 330.0, _CURVE_TOP)
    parts = [line((across(0), up(0)), (across(end), up(end)), "chance")]
    points = [(across(one["predicted"]), up(one["observed"])) for one in calibration["bins"]]
    parts.append(path(points, "curve thin"))
    for one, (x, y) in zip(calibration["bins"], points, strict=True):
        tooltip = (
            f"predicted {percent(one['predicted'])}, observed {percent(one['observed'])} "
            f"(95% interval {percent(one['low'])} to {percent(one['high'])}), "
            f"{whole(one['rows'])} rows"
        )
        bar = line((x, up(one["low"])), (x, up(one["high"])), "bar selected")
        dot = element("circle", cx=x, cy=y, r=5.5, class_="dot selected")
        parts.append(element("g", element("title", tooltip), bar, dot))
    names = "predicted probability", "observed share"
    return _curve_figure("calibration", across, up, parts, names, title="Reliability diagram")


def draw_learning_curve(curve: LearningCurveFacts) -> Svg:
    """Draw the error against the number of training rows."""
    known = [(n, e) for n, e in zip(curve["rows"], curve["error"], strict=True) if e is not None]
    most = max([n for n, _ in known], default=1)
    across = Scale(0.0, 1.04 * most, _CURVE_LEFT, _CURVE_RIGHT)
    up = Scale(0.0, 1.15 * max([e for _, e in known], default=1e-3) or 1e-3, 170.0, _CURVE_TOP)
    points = [(across(n), up(e)) for n, e in known]
    parts = [path(points, "curve")] if len(points) > 1 else []
    parts += [element("circle", cx=x, cy=y, r=5.0, class_="dot selected") for x, y in points]
    foot = up.start
    return figure(
        "learning",
        foot + 46,
        *axis_across(across, _CURVE_TOP, foot, number, 5),
        *axis_up(up, _CURVE_LEFT, _CURVE_RIGHT, as_percent(up, 4), 4),
        *parts,
        text(((_CURVE_LEFT + _CURVE_RIGHT) / 2, foot + 38), "training rows", "middle", "axis"),
        axis_title_up("error", 12, (foot + _CURVE_TOP) / 2),
        title="Held-out error against the number of training rows",
    )


_SURFACE_LEFT, _SURFACE_TOP = 52.0, 8.0
_SAME = 1e-9  # losses count as equal up to this relative difference


def draw_surface(surface: SurfaceFacts) -> Svg:
    """Draw a cell for each candidate, with a ring around the best."""
    P, S = len(surface["pooling"]), len(surface["shrinkage"])
    width, height = (WIDTH - _SURFACE_LEFT - 8) / S, min((WIDTH - _SURFACE_LEFT - 8) / P, 30.0)
    opacity = _opacities(surface)

    def box(p: int, s: int | None) -> dict[str, float]:  # pooling rises upwards
        x, y = _SURFACE_LEFT + width * (s or 0), _SURFACE_TOP + height * (P - 1 - p)
        return {"x": x, "y": y, "width": width * (S if s is None else 1), "height": height}

    parts = []
    for p in range(P):
        if p % _label_step(P) == 0 or p == P - 1:
            middle = box(p, None)["y"] + height / 2
            label = fixed(surface["pooling"][p], 1)
            parts.append(text((_SURFACE_LEFT - 6, middle + 5), label, "end"))
        for s in _cells(surface, p):
            parts.append(_cell(surface, p, s, box(p, s), opacity[p, s or 0]))
    foot = _SURFACE_TOP + height * P
    for s in range(0, S, _label_step(S)):
        middle = _SURFACE_LEFT + width * (s + 0.5)
        parts.append(text((middle, foot + 17), surface["shrinkage"][s], "middle"))
    p, s = surface["best"]
    best = box(p, None if surface["pooling"][p] == 0 else s)
    parts += [
        element("rect", **best, class_="selected"),
        text(((_SURFACE_LEFT + WIDTH) / 2, foot + 38), "shrinkage →", "middle", "axis"),
        axis_title_up("pooling →", 13, foot / 2),
    ]
    title = f"Held-out log loss of {P * S} settings of RDA; the lowest is marked"
    return figure("surface", foot + 48, *parts, title=title)


def _cells(surface: SurfaceFacts, p: int) -> list[int] | list[None]:
    """Return the shrinkages that have separate cells, for pooling number `p`.

    Without pooling, all shrinkages share one cell, and the result is [None].
    """
    return [None] if surface["pooling"][p] == 0 else list(range(len(surface["shrinkage"])))


def _cell(
    surface: SurfaceFacts, p: int, s: int | None, box: dict[str, float], opacity: float
) -> Svg:
    shrinkage = "any shrinkage" if s is None else f"shrinkage {surface['shrinkage'][s]}"
    loss, error = surface["log_loss"][p][s or 0], surface["error"][p][s or 0]
    tooltip = (
        f"pooling {fixed(surface['pooling'][p], 2)}, {shrinkage}: "
        f"log loss {number(loss)}, error {percent(error)}"
    )
    return element(
        "rect",
        element("title", tooltip),
        **box,
        class_="cell",
        shape_rendering="crispEdges",
        fill_opacity=f"{opacity:.2f}",
    )


def _opacities(surface: SurfaceFacts) -> Floats:
    """Return the opacity of each cell, from 0.04 for the worst loss to 0.96 for the best.

    The result has a row for each pooling and a column for each shrinkage. Opacities depend on the
    rank of a loss, since losses may span orders of magnitude. Losses that differ only by rounding
    have the same rank.
    """
    loss = np.array(surface["log_loss"], dtype=float)
    loss = np.where(np.isnan(loss), np.inf, loss)
    levels = np.unique(loss)
    with np.errstate(invalid="ignore"):
        new = np.r_[True, ~(np.diff(levels) <= _SAME * np.abs(levels[1:]))]
    grade = np.cumsum(new) - 1
    rank = grade[np.searchsorted(levels, loss)] / max(int(grade[-1]), 1)
    return np.asarray(0.04 + 0.92 * (1.0 - rank) ** 1.6)


def _label_step(count: int) -> int:
    """Return the number of ticks from one label to the next, for about six labels."""
    return max(1, (count + 5) // 6)
