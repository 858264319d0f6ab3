"""SVG elements, scales, axes and markers.

A figure has a `viewBox` 480 units wide, so that it scales to any screen; the style sheet enlarges
its text on a phone. Colours are set by the style sheet: `k0`..`k7` are the colours of classes, and
`s0`..`s7` their markers, so that classes are distinguishable without colour. All text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from discriminant.report.format import fixed, shown

TickFormat = Callable[[float], str]
WIDTH = 480.0
COLOURS = 8

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
)


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
    return element("svg", element("defs", *parts), width=0, height=0, aria_hidden="true")


def colour(code: int) -> str:
    """Return the CSS class for the colour of a class."""
    return f"k{code % COLOURS}"


def shape(code: int) -> str:
    """Return the marker shape of a class; when colours repeat, the shapes are shifted."""
    return f"s{(code + code // COLOURS) % COLOURS}"


@dataclass(frozen=True, slots=True)
class Scale:
    """Linear scale that maps values from low to high to positions from start to stop."""

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
        if y != scale.start:  # here the label would touch the first number of the other axis
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
