"""Intervals of measures by their names, of one tally or of several parts.

A rate has its own interval, any other measure of counts a bootstrap, a loss that of a bounded mean;
over several parts a measure of any kind varies from part to part. Formulas: `assessment.intervals`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from discriminant.assessment.formulas import (
    LOSSES,
    bounds_of,
    check_scored,
    formula_of,
    loss_sums,
    rates_of,
)
from discriminant.assessment.intervals import (
    Interval,
    Weights,
    bootstrap,
    check_draws,
    check_level,
    generator_of,
    mean_interval,
    of_each,
    percentiles,
    rate_interval,
    redrawn,
    widened,
)
from discriminant.assessment.rates import Measure, Part, ratio
from discriminant.errors import OptionError
from discriminant.moments.tally import Tally
from discriminant.table.schema import Floats

_METHODS = "'wilson', 'exact' (Clopper-Pearson) or 'bootstrap'"


def interval_of(
    tally: Tally,
    measure: str,
    *,
    method: str | None,
    level: float,
    weights: Weights,
    draws: int,
    stratified: bool,
    seed: Any,
    cost: Any,
    reject: float | None,
    outlier: float | None,
) -> Interval:
    """A measure with its interval; the options are those of `Assessment.interval`."""
    level = check_level(level)
    if weights not in ("counts", "reliability"):
        raise OptionError.of("weights", weights, "'counts' or 'reliability'")
    if measure in LOSSES:
        _only(method, "score", measure)
        return _interval_of_loss(tally, measure, level, weights)
    rate = rates_of(tally).get(measure)
    if rate is not None and method in (None, "wilson", "exact"):
        way = method or "wilson"
        found, ends = rate_interval(tally, rate, method=way, level=level, weights=weights)
        return _interval(measure, found, ends, level, way)
    formula = formula_of(tally, measure, cost=cost, reject=reject, outlier=outlier)
    _only(method, "bootstrap", measure if rate is None else None)
    found, ends = bootstrap(
        tally,
        formula,
        level=level,
        weights=weights,
        draws=check_draws(draws),
        stratified=stratified,
        generator=generator_of(seed),
    )
    return _interval(measure, found, ends, level, "bootstrap")


def interval_over(
    parts: Sequence[Tally],
    measure: str,
    *,
    method: Literal["t", "bootstrap"] = "t",
    level: float = 0.95,
    draws: int = 2000,
    seed: Any = 0,
    cost: Any = None,
    reject: float | None = None,
    outlier: float | None = None,
) -> Interval:
    """A measure with an interval by how it differs among parts: folds, sites, files.

    't': mean over the parts, each counted once, with the t law of their number less one, between
    the bounds of the measure (`assessment.intervals`);
    'bootstrap': of the whole, with percentiles over parts drawn with replacement. Folds share
    training rows, so that these intervals of a cross-validation are rather too short. Measures,
    and what they cost, are named as in `Assessment.interval`.
    """
    if method not in ("t", "bootstrap"):
        raise OptionError.of("method", method, "'t' or 'bootstrap'")
    level, parts = check_level(level), _checked_parts(parts)
    whole = sum(parts[1:], parts[0])
    if measure in LOSSES:
        check_scored(whole, measure)
        cells = np.array([_loss_cell(part, measure) for part in parts])
        formula: Measure = _mean_of_cell
    else:
        cells = np.array([part.among(whole.labels, whole.others).weight for part in parts])
        formula = formula_of(whole, measure, cost=cost, reject=reject, outlier=outlier)
    if method == "t":
        bounds = bounds_of(whole, measure, cost=cost, reject=reject, outlier=outlier)
        rows = float(whole.weight.sum())
        found, ends = of_each(formula(cells), level, bounds=bounds, rows=rows)
    else:
        found = formula(cells.sum(axis=0))
        generator = generator_of(seed)
        drawn_parts = redrawn(cells, formula, check_draws(draws), generator)

        def of_rows() -> Part:
            if measure in LOSSES:
                loss = _interval_of_loss(whole, measure, level, "counts")
                return np.asarray(loss.low), np.asarray(loss.high)
            return bootstrap(
                whole,
                formula,
                level=level,
                weights="counts",
                draws=check_draws(draws),
                stratified=False,
                generator=generator,
            )[1]

        ends = widened(found, percentiles(drawn_parts, level), of_rows)
    return _interval(measure, found, ends, level, method)


def _loss_cell(part: Tally, measure: str) -> list[list[float]]:
    """(1, 2) sum of a loss, and the weight it is of."""
    weight, sums = loss_sums(part, measure)
    return [[float(sums[0]), weight]]


def _mean_of_cell(cells: Floats) -> Floats:
    return ratio((cells[..., 0, 0], cells[..., 0, 1]))


def _interval_of_loss(tally: Tally, measure: str, level: float, weights: Weights) -> Interval:
    check_scored(tally, measure)
    weight, sums = loss_sums(tally, measure)
    both = tally.scored.weight.sum(axis=1)
    _, most = bounds_of(tally, measure)
    ends = mean_interval(sums, both, most=most, level=level, weights=weights)
    return _interval(measure, np.asarray(sums[0] / weight), ends, level, "score")


def _checked_parts(parts: Any) -> list[Tally]:
    found = list(parts) if isinstance(parts, list | tuple) else [parts]
    for part in found:
        if not isinstance(part, Tally):
            allowed = "assessments or tallies, such as `cross_validate(...).tallies`"
            raise OptionError.of("parts", f"of {type(part).__name__}", allowed)
    if len(found) < 2:
        raise OptionError.of("parts", len(found), "two or more tallies, to see how they differ")
    return found


def _only(method: str | None, possible: str, measure: str | None) -> None:
    """Refuse another method than the one there is for a measure; without one, for a rate."""
    if method in (None, possible):
        return
    if measure is None:
        raise OptionError.of("method", method, _METHODS)
    raise OptionError.of("method", method, f"'{possible}': {measure} is no share of rows")


def _interval(
    measure: str, value: Floats, ends: tuple[Floats, Floats], level: float, method: str
) -> Interval:
    found = [float(v) if np.ndim(v) == 0 else np.asarray(v) for v in (value, *ends)]
    return Interval(measure, found[0], found[1], found[2], level, method)
