"""Errors of models with their intervals, one line a model."""

from __future__ import annotations

from discriminant.report.facts import ComparisonFacts, ModelFacts
from discriminant.report.svg import (
    WIDTH,
    Scale,
    Svg,
    as_percent,
    axis_across,
    element,
    figure,
    line,
    name_text,
    text,
)
from discriminant.report.words import percent

_ROW = 40.0


def draw_intervals(comparison: ComparisonFacts, *, weighted: bool = False) -> Svg:
    """A dot for each error and a bar for its interval; the model taken stands out."""
    models = sorted(comparison["models"], key=lambda model: model["error"] or 0.0)
    ends = [model["error_high"] or model["error"] or 0.0 for model in models]
    base = comparison["baseline"]
    near = shows_baseline(comparison)
    high = max([*ends, base if near and base is not None else 0.0, 1e-3])
    scale = Scale(0.0, 1.04 * high, 10.0, WIDTH - 14.0)
    foot = _ROW * len(models) + 8.0
    parts = axis_across(scale, 2.0, foot, as_percent(scale))
    if near and base is not None:
        parts.append(line((scale(base), 2.0), (scale(base), foot), "chance"))
    for i, model in enumerate(models):
        parts += _model(model, _ROW * i, scale)
    parts.append(
        text(
            (WIDTH / 2, foot + 38),
            f"share of {'the weight of ' if weighted else ''}held-out rows given to a wrong class",
            "middle",
            "axis",
        )
    )
    title = f"Error of {len(models)} models on held-out rows, with intervals"
    return figure("intervals", foot + 48, *parts, title=title)


def shows_baseline(comparison: ComparisonFacts) -> bool:
    """Whether there is room for the line of always saying the most frequent class."""
    ends = [model["error_high"] or model["error"] or 0.0 for model in comparison["models"]]
    base = comparison["baseline"]
    return base is not None and base <= 1.6 * max(ends)


def _model(model: ModelFacts, top: float, scale: Scale) -> list[Svg]:
    value = model["error"] or 0.0
    low, high = model["error_low"], model["error_high"]
    y = top + 29.0
    kind = "taken" if model["chosen"] else "other"
    parts = [name_text((10.0, top + 17), model["label"], kind=f"label {kind}")]
    parts.append(text((WIDTH - 14, top + 17), percent(value), "end", f"label {kind}"))
    if low is not None and high is not None:
        parts.append(line((scale(low), y), (scale(high), y), f"bar {kind}"))
    parts.append(element("circle", cx=scale(value), cy=y, r=5.5, class_=f"dot {kind}"))
    return parts
