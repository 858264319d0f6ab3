"""Intervals of what a tally measures, from the tally alone: no row is needed.

Of a rate p = x/n, with z the normal quantile of (1 + level)/2:

    wilson   (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)    score test turned round
    exact    Beta quantiles (x, n-x+1) and (x+1, n-x): Clopper and Pearson, never too short

Of anything else that follows from counts:

    bootstrap   percentiles over tables drawn anew. To draw rows with replacement and count them is
                to draw the cells of the table from a multinomial law, of all rows or, stratified,
                of each class by itself. Where every table drawn gives the same value, as if no
                row is wrong, the observed value is one end, and the other is that of tables drawn
                with half a row added to each cell of classes (Jeffreys' prior; its interval has
                the observed value as an end, too: Brown, Cai and DasGupta 2001).

Of a mean loss m = sum w l / sum w between 0 and a bound B (2 for Brier, 1 with two classes,
infinity for the log loss), with v the estimated variance of m and t Student's quantile for n - 1:

    score    Wilson's interval of p = m / B with the effective sample size n_e = p (1 - p) B^2 / v
             and t for z (Korn and Graubard 1998, Dean and Pagano 2015). For B = infinity that is

                 m + c/2 -+ sqrt(c m + c^2/4),    c = t^2 v / m

It inverts the score test whose variance is proportional to mu (B - mu), as that of a share is, so
it stays between 0 and B and is longer on the side where losses have their long tail. The normal
interval m -+ z sqrt(v) leaves the range and covers less: 89 % in place of 95 % for 150 rows of two
classes, 5 % of which are wrong, where this covers 92 % (tests/unit/assessment/test_intervals.py).

Weights count rows (a row of weight 2 is two rows); with weights='reliability' they say how much a
row is worth, and n is (sum w)^2 / sum w^2, Kish's effective number.

Of several parts (folds, sites, files), the spread from part to part:

    t           the score interval of the mean of the parts with their variance, between the
                bounds of the measure; if every part is at the bound, with n_e = the rows of all
    bootstrap   percentiles over sums of parts drawn with replacement; if these are all equal, the
                interval of the rows of all parts

Intervals of measures by their names, of one tally or of several parts.

A rate has its own interval, any other measure of counts a bootstrap, a loss that of a bounded mean;
over several parts a measure of any kind varies from part to part. Formulas: `assessment.intervals`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.special import betaincinv, ndtri, stdtrit

from discriminant.assessment.measures import (
    LOSSES,
    Fraction,
    Measure,
    Rate,
    bounds_of,
    check_scored,
    formula_of,
    loss_sums,
    rates_of,
    ratio,
)
from discriminant.errors import OptionError
from discriminant.moments.confusion import Tally
from discriminant.table.blocks import Floats

Weights = Literal["counts", "reliability"]

_CELLS = 1 << 22  # drawn at a time


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """An estimate with its ends: numbers, or (K,) one for each class."""

    measure: str
    value: Any  # float or (K,)
    low: Any
    high: Any
    level: float
    method: str

    def __repr__(self) -> str:
        """Value and ends."""
        parts = zip(*(np.atleast_1d(v) for v in (self.value, self.low, self.high)), strict=True)
        text = ", ".join(f"{value:.4g} ({low:.4g} to {high:.4g})" for value, low, high in parts)
        return f"{self.measure} {text}"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists."""
        ends = {name: np.asarray(getattr(self, name)).tolist() for name in ("value", "low", "high")}
        return {"measure": self.measure} | ends | {"level": self.level, "method": self.method}


# --- rates ---------------------------------------------------------------------------------------


def wilson(part: Fraction, level: float = 0.95) -> Fraction:
    """Both ends of Wilson's interval of x/n; NaN where n is 0.

    >>> [round(float(end), 4) for end in wilson((np.array(8.0), np.array(10.0)))]
    [0.4902, 0.9433]
    """
    n, p = np.asarray(part[1], dtype=np.float64), ratio(part)
    with np.errstate(divide="ignore", invalid="ignore"):
        z2 = quantile(level) ** 2 / n
        middle, reach = p + z2 / 2, np.sqrt(z2 * (p * (1 - p) + z2 / 4))
        low, high = (middle - reach) / (1 + z2), (middle + reach) / (1 + z2)
    return np.where(p == 0, 0.0, low), np.where(p == 1, 1.0, high)


def exact(part: Fraction, level: float = 0.95) -> Fraction:
    """Both ends of Clopper and Pearson's interval of x/n.

    >>> [round(float(end), 4) for end in exact((np.array(8.0), np.array(10.0)))]
    [0.4439, 0.9748]
    """
    x, n = np.broadcast_arrays(*part)
    tail = (1 - level) / 2
    with np.errstate(invalid="ignore"):
        low = np.where(x > 0, betaincinv(x, n - x + 1, tail), 0.0)
        high = np.where(x < n, betaincinv(x + 1, n - x, 1 - tail), 1.0)
    none = n == 0
    return np.where(none, np.nan, low), np.where(none, np.nan, high)


RATE_INTERVALS: dict[str, Callable[[Fraction, float], Fraction]] = {
    "wilson": wilson,
    "exact": exact,
}


def rate_interval(
    tally: Tally, rate: Rate, *, method: str, level: float, weights: Weights
) -> tuple[Floats, Fraction]:
    """A rate and the ends of its interval."""
    above, below = (np.asarray(value, dtype=np.float64) for value in rate(tally.weight))
    value = ratio((above, below))
    if weights == "reliability":  # what is below the line is linear, so it has its sum of w^2
        below = ratio((below**2, np.asarray(rate(tally.weight2)[1])))
        above = value * below
    some = ~np.isnan(value)
    part = np.where(some, above, 0.0), np.where(some, below, 0.0)
    return value, RATE_INTERVALS[method](part, level)


# --- bootstrap -----------------------------------------------------------------------------------


def bootstrap(
    tally: Tally,
    measure: Measure,
    *,
    level: float,
    weights: Weights,
    draws: int,
    stratified: bool,
    generator: np.random.Generator,
) -> tuple[Floats, Fraction]:
    """A measure of the counts, and percentiles of it over tables drawn anew."""

    def over(cells: Tally) -> Floats:
        size = max(_CELLS // cells.weight.size, 1)
        found = [
            measure(
                resample_tables(
                    cells, min(size, draws - lo), generator, weights, stratified=stratified
                )
            )
            for lo in range(0, draws, size)
        ]
        return np.concatenate(found)

    value = measure(tally.weight)
    ends = percentiles(over(tally), level)
    return value, widen_if_degenerate(
        value, ends, lambda: percentiles(over(with_half_rows(tally)), level)
    )


def widen_if_degenerate(value: Floats, ends: Fraction, wider: Callable[[], Fraction]) -> Fraction:
    """The ends; where both are one point, those of a wider interval, with the value inside."""
    low, high = ends
    point = np.isclose(low, high, rtol=1e-12, atol=1e-12)
    if not np.any(point):
        return ends
    more = wider()
    low = np.where(point, np.minimum(more[0], value), low)
    return low, np.where(point, np.maximum(more[1], value), high)


def with_half_rows(tally: Tally) -> Tally:
    """Tally with Jeffreys' half rows: for each class half a row correct, and half a row wrong.

    The wrong half is divided among the other classes that have rows. For two classes that is half
    a row in each cell.
    """
    K = len(tally.labels)
    some = tally.weight.sum(axis=0) > 0
    wrong = np.outer(some, some) & ~np.eye(K, dtype=bool)
    half = np.zeros(tally.weight.shape)
    half[:K] = 0.5 * np.diag(some) + 0.5 * wrong / max(some.sum() - 1, 1)
    unit = tally.weight2.sum() / tally.weight.sum()
    weight, weight2 = tally.weight + half * unit, tally.weight2 + half * unit**2
    return replace(tally, weight=weight, weight2=weight2)


def resample_tables(
    tally: Tally,
    draws: int,
    generator: np.random.Generator,
    weights: Weights = "counts",
    *,
    stratified: bool = False,
) -> Floats:
    """(draws, A, K) tables of as many rows, drawn with replacement.

    A cell of reliability weights is drawn as rows of its mean weight sum w^2 / sum w, which has the
    mean and the variance of drawing its rows.
    """
    A, K = tally.weight.shape
    step = np.ones((A, K))
    if weights == "reliability":
        step = np.nan_to_num(ratio((tally.weight2, tally.weight)), nan=1.0)
    rows = tally.weight / step
    every = np.flatnonzero(rows)  # an empty cell stays empty
    strata = [every[every % K == k] for k in range(K)] if stratified else [every]
    found = np.zeros((draws, A * K))
    for cells in strata:
        number = rows.ravel()[cells]
        if len(cells):
            n = max(round(number.sum()), 1)
            some = generator.multinomial(n, number / number.sum(), size=draws) * step.ravel()[cells]
            weight = tally.weight.ravel()[cells].sum()
            found[:, cells] = some * (weight / some.sum(axis=1, keepdims=True))
    return found.reshape(draws, A, K)


def percentiles(found: Floats, level: float) -> Fraction:
    """Both ends over the first axis; tables in which the measure has no value do not count."""
    ends = np.full((2, *found.shape[1:]), np.nan)
    some = ~np.isnan(found).all(axis=0)
    if some.any():
        inside = found[:, some] if found.ndim > 1 else found
        tails = [(1 - level) / 2, (1 + level) / 2]
        ends[:, some] = np.nanquantile(inside, tails, axis=0).reshape(ends[:, some].shape)
    return ends[0], ends[1]


# --- mean losses ---------------------------------------------------------------------------------


def mean_interval(
    sums: Floats, weight: Floats, *, most: float, level: float, weights: Weights
) -> Fraction:
    """Ends for a mean loss from 0 to `most`; NaN for less than two rows.

    From the sums of w l, w l^2, w^2 l, w^2 l^2 and of w, w^2.
    """
    mean = sums[0] / weight[0]
    n = weight[0] if weights == "counts" else weight[0] ** 2 / weight[1]
    if not n > 1.0:
        return np.asarray(np.nan), np.asarray(np.nan)
    with np.errstate(invalid="ignore"):
        if weights == "counts":
            apart = sums[1] - 2 * mean * sums[0] + mean**2 * weight[0]
        else:
            apart = sums[3] - 2 * mean * sums[2] + mean**2 * weight[1]
        variance = np.maximum(apart, 0.0) / weight[0] ** 2 * n / (n - 1.0)
    t = stdtrit(n - 1.0, (1 + level) / 2)
    return score_interval(np.asarray(mean), variance, t, bounds=(0.0, most), rows=n)


def score_interval(
    mean: Floats, variance: Floats, t: Floats, *, bounds: tuple[float, float], rows: float
) -> Fraction:
    """Ends for a mean between two bounds, of which the upper may be infinite.

    `variance` is that of the mean. Where the mean is at a bound it says nothing, and the number of
    `rows` takes the place of the effective sample size.

    >>> ends = score_interval(np.array(0.1), np.array(0.0009), 1.96, bounds=(0.0, 1.0), rows=100)
    >>> [round(float(end), 4) for end in ends]  # 10 of 100: Wilson's
    [0.0552, 0.1744]
    """
    low, high = bounds
    width = high - low
    above = np.asarray(mean - low, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if np.isinf(high):
            c = np.where(variance > 0, t**2 * variance / above, 0.0)
            middle, reach = above + c / 2, np.sqrt(c * above + c**2 / 4)
            top = np.where(above > 0, low + middle + reach, np.inf)
            return _known(mean, variance, low + np.maximum(middle - reach, 0.0), top)
        p = above / width if width > 0 else np.zeros_like(above)
        inside = (p > 0) & (p < 1)
        share = np.where(inside, variance / width**2 / (p * (1 - p)), 1.0 / rows)  # 1 / n_e
        z2 = t**2 * share
        middle, reach = p + z2 / 2, np.sqrt(z2 * (p * (1 - p) + z2 / 4))
        ends = (middle - reach) / (1 + z2), (middle + reach) / (1 + z2)
    bottom = np.where(p <= 0, low, low + width * ends[0])
    return _known(mean, variance, bottom, np.where(p >= 1, high, low + width * ends[1]))


def _known(mean: Floats, variance: Floats, low: Floats, high: Floats) -> Fraction:
    """Ends; NaN where the mean is infinite or its variance is not known."""
    some = np.isfinite(mean) & np.isfinite(variance)
    return np.where(some, low, np.nan), np.where(some, high, np.nan)


# --- several parts -------------------------------------------------------------------------------


def resample_parts(
    cells: Floats, measure: Measure, draws: int, generator: np.random.Generator
) -> Floats:
    """(draws, ...) a measure of as many parts, drawn from parts (F, A, K) with replacement."""
    F = len(cells)
    times = generator.multinomial(F, np.full(F, 1.0 / F), size=draws).astype(np.float64)
    size = max(_CELLS // cells[0].size, 1)
    found = [
        measure(np.einsum("bf,fak->bak", times[lo : lo + size], cells))
        for lo in range(0, draws, size)
    ]
    return np.concatenate(found)


def mean_over_parts(
    values: Floats, level: float, *, bounds: tuple[float, float], rows: float
) -> tuple[Floats, Fraction]:
    """Mean over the first axis and its ends; a part where there is no value does not count."""
    parts = (~np.isnan(values)).sum(axis=0)
    mean = ratio((np.nansum(values, axis=0), parts))
    apart = ratio((np.nansum((values - mean) ** 2, axis=0), np.maximum(parts - 1, 0)))
    t = stdtrit(np.maximum(parts - 1, 1), (1 + level) / 2)
    return mean, score_interval(mean, ratio((apart, parts)), t, bounds=bounds, rows=rows)


def quantile(level: float) -> float:
    """z of a two-sided level."""
    return float(ndtri((1 + level) / 2))


def check_level(level: Any, name: str = "level") -> float:
    """A number between 0 and 1."""
    number = isinstance(level, int | float | np.floating | np.integer)
    if not number or not 0 < level < 1:
        raise OptionError.of(name, level, "a number between 0 and 1, such as 0.95")
    return float(level)


def check_draws(draws: Any) -> int:
    """A whole number of 1 or more."""
    whole = isinstance(draws, int | np.integer) and not isinstance(draws, bool)
    if not whole or draws < 1:
        raise OptionError.of("draws", draws, "a whole number, 1 or more")
    return int(draws)


def generator_of(seed: Any) -> np.random.Generator:
    """Random numbers of a seed."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        allowed = "a whole number, 0 or more, or a numpy Generator"
        raise OptionError.of("seed", seed, allowed) from None


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
        found, ends = mean_over_parts(formula(cells), level, bounds=bounds, rows=rows)
    else:
        found = formula(cells.sum(axis=0))
        generator = generator_of(seed)
        drawn_parts = resample_parts(cells, formula, check_draws(draws), generator)

        def of_rows() -> Fraction:
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

        ends = widen_if_degenerate(found, percentiles(drawn_parts, level), of_rows)
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
