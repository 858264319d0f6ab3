"""Confidence intervals of measures: Wilson, exact, bootstrap, and score intervals of losses.

Intervals are computed from a tally, without its rows. For a rate p = x/n, with z the normal
quantile of (1 + level)/2:

    wilson   (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)    inverted score test
    exact    Beta quantiles (x, n-x+1) and (x+1, n-x): Clopper and Pearson, conservative

For any other function of the counts:

    bootstrap   percentiles over resampled tables. Drawing rows with replacement and counting them
                equals drawing the counts of the table from a multinomial distribution, over all
                rows or, if stratified, within each class. If every resampled table gives the same
                value, as when no row is wrong, the observed value is one end. For the other end,
                tables are drawn again after half a row is added to each count (Jeffreys' prior).
                The half rows are added only to counts of rows predicted as a class. Jeffreys'
                interval, too, then has the observed value as one end (Brown, Cai and DasGupta
                2001).

For a mean loss m = sum w l / sum w between 0 and a bound B (2 for Brier, 1 with two classes,
infinity for the log loss), with v the estimated variance of m and t Student's quantile for n - 1:

    score    Wilson's interval of p = m / B with the effective sample size n_e = p (1 - p) B^2 / v
             and t in place of z (Korn and Graubard 1998, Dean and Pagano 2015). For B = infinity
             that is

                 m + c/2 -+ sqrt(c m + c^2/4),    c = t^2 v / m

The score interval inverts the score test whose variance is proportional to mu (B - mu), as the
variance of a proportion is. So it stays between 0 and B, and it is longer on the side of the long
tail of the losses. The normal interval m -+ z sqrt(v) may leave the range and has a lower coverage:
for 150 rows of two classes, 5 % of them misclassified, the nominal 95 % interval covers 89 %
(normal) and 92 % (score) (tests/unit/assessment/test_intervals.py).

Weights count rows: a row of weight 2 stands for two rows. With weights='reliability' the weights
are importances, and n is (sum w)^2 / sum w^2, Kish's effective number of rows.

For several parts (folds, sites, files), from the variation between the parts:

    t           the score interval of the mean over the parts, with the variance between them,
                within the bounds of the measure. If the measure is at the bound in every part,
                n_e is the number of all rows.
    bootstrap percentiles over sums of parts drawn with replacement. If all resampled sums are
    equal, the interval is computed from the rows of all parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.special import betaincinv, ndtri, stdtrit

from discriminant.assessment.measures import (
    MEASURES,
    CountFormula,
    Fraction,
    Measure,
    RateFormula,
    bounds_of,
    check_scored,
    count_formula,
    ratio,
)
from discriminant.errors import OptionError
from discriminant.moments.confusion import Tally
from discriminant.table.blocks import Floats

Weights = Literal["counts", "reliability"]

_MAX_CELLS = 1 << 22  # numbers in the tables that are resampled at a time


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """An estimate with both ends of its interval: numbers, or arrays with a value per class."""

    measure: str
    value: Any  # float or (K,)
    low: Any
    high: Any
    level: float
    method: str

    def __repr__(self) -> str:
        classes = zip(*(np.atleast_1d(v) for v in (self.value, self.low, self.high)), strict=True)
        text = ", ".join(f"{value:.4g} ({low:.4g} to {high:.4g})" for value, low, high in classes)
        return f"{self.measure} {text}"

    def to_dict(self) -> dict[str, Any]:
        """Return the interval as a dictionary of plain numbers and lists."""
        ends = {name: np.asarray(getattr(self, name)).tolist() for name in ("value", "low", "high")}
        return {"measure": self.measure} | ends | {"level": self.level, "method": self.method}


# --- rates ---------------------------------------------------------------------------------------


def wilson(fraction: Fraction, level: float = 0.95) -> Fraction:
    """Return both ends of Wilson's interval of x/n; NaN where n is 0.

    >>> [round(float(end), 4) for end in wilson((np.array(8.0), np.array(10.0)))]
    [0.4902, 0.9433]
    """
    n, p = np.asarray(fraction[1], dtype=np.float64), ratio(fraction)
    with np.errstate(divide="ignore", invalid="ignore"):
        z2 = quantile(level) ** 2 / n
        middle, reach = p + z2 / 2, np.sqrt(z2 * (p * (1 - p) + z2 / 4))
        low, high = (middle - reach) / (1 + z2), (middle + reach) / (1 + z2)
    return np.where(p == 0, 0.0, low), np.where(p == 1, 1.0, high)


def clopper_pearson(fraction: Fraction, level: float = 0.95) -> Fraction:
    """Return both ends of Clopper and Pearson's interval of x/n.

    >>> [round(float(end), 4) for end in clopper_pearson((np.array(8.0), np.array(10.0)))]
    [0.4439, 0.9748]
    """
    x, n = np.broadcast_arrays(*fraction)
    tail = (1 - level) / 2
    with np.errstate(invalid="ignore"):
        low = np.where(x > 0, betaincinv(x, n - x + 1, tail), 0.0)
        high = np.where(x < n, betaincinv(x + 1, n - x, 1 - tail), 1.0)
    return np.where(n == 0, np.nan, low), np.where(n == 0, np.nan, high)


RATE_INTERVALS: dict[str, Callable[[Fraction, float], Fraction]] = {
    "wilson": wilson,
    "exact": clopper_pearson,
}


def rate_interval(
    tally: Tally, rate: RateFormula, *, method: str, level: float, weights: Weights
) -> tuple[Floats, Fraction]:
    """Return a rate and the ends of its interval."""
    x, n = (np.asarray(counts, dtype=np.float64) for counts in rate(tally.weight))
    value = ratio((x, n))
    # the denominator is linear in the counts, so its sum of w^2 is known
    if weights == "reliability":
        n = ratio((n**2, np.asarray(rate(tally.weight2)[1])))
        x = value * n
    defined = ~np.isnan(value)
    fraction = np.where(defined, x, 0.0), np.where(defined, n, 0.0)
    return value, RATE_INTERVALS[method](fraction, level)


# --- bootstrap -----------------------------------------------------------------------------------


def bootstrap(
    tally: Tally,
    measure: CountFormula,
    *,
    level: float,
    weights: Weights,
    draws: int,
    stratified: bool,
    generator: np.random.Generator,
) -> tuple[Floats, Fraction]:
    """Return a measure of the counts, and its percentiles over resampled tables."""

    def ends_of(tally: Tally) -> Fraction:
        size = max(_MAX_CELLS // tally.weight.size, 1)
        values = []
        for start in range(0, draws, size):
            n = min(size, draws - start)
            tables = resample_tables(tally, n, generator, weights, stratified=stratified)
            values.append(measure(tables))
        return percentiles(np.concatenate(values), level)

    value = measure(tally.weight)
    return value, widen_if_degenerate(value, ends_of(tally), lambda: ends_of(with_half_rows(tally)))


def widen_if_degenerate(value: Floats, ends: Fraction, wider: Callable[[], Fraction]) -> Fraction:
    """Return both ends of an interval.

    Where the ends coincide, they are replaced by the ends of the interval `wider`, which is
    extended to include the value.
    """
    low, high = ends
    degenerate = np.isclose(low, high, rtol=1e-12, atol=1e-12)
    if not np.any(degenerate):
        return ends
    wider_low, wider_high = wider()
    low = np.where(degenerate, np.minimum(wider_low, value), low)
    return low, np.where(degenerate, np.maximum(wider_high, value), high)


def with_half_rows(tally: Tally) -> Tally:
    """Add to a tally, for each class, half a correct row and half a wrong row (Jeffreys' prior).

    The half row that is wrong is divided among the other classes that have rows. With two classes,
    half a row is added to each cell.
    """
    K = len(tally.labels)
    occurs = tally.weight.sum(axis=0) > 0
    wrong = np.outer(occurs, occurs) & ~np.eye(K, dtype=bool)
    half = np.zeros(tally.weight.shape)
    half[:K] = 0.5 * np.diag(occurs) + 0.5 * wrong / max(occurs.sum() - 1, 1)
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
    """Return `draws` resampled tables, each with as many rows as the data.

    Rows are drawn with replacement. The shape of the result is (draws, A, K).

    With reliability weights, all rows of a cell (one class and one action) are drawn with the
    weight sum w^2 / sum w. This gives the same mean and variance as drawing the rows themselves.
    """
    A, K = tally.weight.shape
    row_weight = np.ones((A, K))
    if weights == "reliability":
        row_weight = np.nan_to_num(ratio((tally.weight2, tally.weight)), nan=1.0)
    rows = tally.weight / row_weight
    nonempty = np.flatnonzero(rows)
    strata = [nonempty[nonempty % K == k] for k in range(K)] if stratified else [nonempty]
    tables = np.zeros((draws, A * K))
    for cells in strata:
        if len(cells):
            counts = rows.ravel()[cells]
            n, p = max(round(counts.sum()), 1), counts / counts.sum()
            sample = generator.multinomial(n, p, size=draws) * row_weight.ravel()[cells]
            weight = tally.weight.ravel()[cells].sum()
            tables[:, cells] = sample * (weight / sample.sum(axis=1, keepdims=True))
    return tables.reshape(draws, A, K)


def percentiles(values: Floats, level: float) -> Fraction:
    """Return the lower and the upper percentile over the first axis, ignoring NaN."""
    ends = np.full((2, *values.shape[1:]), np.nan)
    defined = ~np.isnan(values).all(axis=0)
    if defined.any():
        columns = values[:, defined] if values.ndim > 1 else values
        tails = [(1 - level) / 2, (1 + level) / 2]
        ends[:, defined] = np.nanquantile(columns, tails, axis=0).reshape(ends[:, defined].shape)
    return ends[0], ends[1]


# --- mean losses ---------------------------------------------------------------------------------


def mean_interval(
    sums: Floats, weight: Floats, *, upper: float, level: float, weights: Weights
) -> Fraction:
    """Return both ends of the interval of a mean loss between 0 and `upper`.

    Both ends are NaN if there are fewer than two rows.

    With `w` the weight and `l` the loss of a row, `sums` are the sums of `w l`, `w l^2`, `w^2 l`
    and `w^2 l^2`, and `weight` the sums of `w` and `w^2`.
    """
    mean = sums[0] / weight[0]
    n = weight[0] if weights == "counts" else weight[0] ** 2 / weight[1]
    if not n > 1.0:
        return np.asarray(np.nan), np.asarray(np.nan)
    with np.errstate(invalid="ignore"):
        if weights == "counts":
            squares = sums[1] - 2 * mean * sums[0] + mean**2 * weight[0]
        else:
            squares = sums[3] - 2 * mean * sums[2] + mean**2 * weight[1]
        variance = np.maximum(squares, 0.0) / weight[0] ** 2 * n / (n - 1.0)
    t = stdtrit(n - 1.0, (1 + level) / 2)
    return score_interval(np.asarray(mean), variance, t, bounds=(0.0, upper), rows=n)


def score_interval(
    mean: Floats, variance: Floats, t: Floats, *, bounds: tuple[float, float], rows: float
) -> Fraction:
    """Return both ends of the score interval of a mean between two bounds.

    The upper bound may be infinite.

    `variance` is the variance of the mean. If the mean is at a bound, the variance is
    uninformative, and the number of `rows` replaces the effective sample size.

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
            return _where_finite(mean, variance, low + np.maximum(middle - reach, 0.0), top)
        p = above / width if width > 0 else np.zeros_like(above)
        inside = (p > 0) & (p < 1)
        # `1 / n_e`, the inverse of the effective sample size
        share = np.where(inside, variance / width**2 / (p * (1 - p)), 1.0 / rows)
        z2 = t**2 * share
        middle, reach = p + z2 / 2, np.sqrt(z2 * (p * (1 - p) + z2 / 4))
        ends = (middle - reach) / (1 + z2), (middle + reach) / (1 + z2)
    bottom = np.where(p <= 0, low, low + width * ends[0])
    return _where_finite(mean, variance, bottom, np.where(p >= 1, high, low + width * ends[1]))


def _where_finite(mean: Floats, variance: Floats, low: Floats, high: Floats) -> Fraction:
    finite = np.isfinite(mean) & np.isfinite(variance)
    return np.where(finite, low, np.nan), np.where(finite, high, np.nan)


# --- several parts -------------------------------------------------------------------------------


def resample_parts(
    cells: Floats, measure: CountFormula, draws: int, generator: np.random.Generator
) -> Floats:
    """Return the measure in each of `draws` bootstrap samples of the parts of a table.

    `cells` (F, A, K) holds the counts of F parts. Each sample sums F parts, drawn with replacement.
    """
    F = len(cells)
    times = generator.multinomial(F, np.full(F, 1.0 / F), size=draws).astype(np.float64)
    size = max(_MAX_CELLS // cells[0].size, 1)
    values = [
        measure(np.einsum("bf,fak->bak", times[start : start + size], cells))
        for start in range(0, draws, size)
    ]
    return np.concatenate(values)


def mean_over_parts(
    values: Floats, level: float, *, bounds: tuple[float, float], rows: float
) -> tuple[Floats, Fraction]:
    """Return the mean over the first axis (parts), ignoring NaN, and both ends of its interval."""
    parts = (~np.isnan(values)).sum(axis=0)
    mean = ratio((np.nansum(values, axis=0), parts))
    variance = ratio((np.nansum((values - mean) ** 2, axis=0), np.maximum(parts - 1, 0)))
    t = stdtrit(np.maximum(parts - 1, 1), (1 + level) / 2)
    return mean, score_interval(mean, ratio((variance, parts)), t, bounds=bounds, rows=rows)


def quantile(level: float) -> float:
    """Return the normal quantile z of a two-sided level."""
    return float(ndtri((1 + level) / 2))


def check_level(level: Any, name: str = "level") -> float:
    """Return the level as a float; it must lie between 0 and 1."""
    number = isinstance(level, int | float | np.floating | np.integer)
    if not number or not 0 < level < 1:
        raise OptionError.of(name, level, "a number between 0 and 1, such as 0.95")
    return float(level)


def check_draws(draws: Any) -> int:
    """Return the number of draws; it must be an integer of 1 or more."""
    integer = isinstance(draws, int | np.integer) and not isinstance(draws, bool)
    if not integer or draws < 1:
        raise OptionError.of("draws", draws, "a whole number, 1 or more")
    return int(draws)


def generator_of(seed: Any) -> np.random.Generator:
    """Return a random generator with this seed."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        allowed = "a whole number, 0 or more, or a numpy Generator"
        raise OptionError.of("seed", seed, allowed) from None


# --- by name --------------------------------------------------------------------------------------


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
    """Return a measure with its confidence interval.

    Options are as in `Assessment.interval`.
    """
    level = check_level(level)
    if weights not in ("counts", "reliability"):
        raise OptionError.of("weights", weights, "'counts' or 'reliability'")
    entry = MEASURES.get(measure)
    if entry is not None and entry.kind == "loss":
        if method not in (None, "score"):
            raise _not_a_rate(method, "score", measure)
        return _loss_interval(tally, entry, level, weights)
    if entry is not None and entry.kind == "rate" and method in (None, *RATE_INTERVALS):
        method = method or "wilson"
        rate = entry.rate(tally)
        value, ends = rate_interval(tally, rate, method=method, level=level, weights=weights)
        return _interval(measure, value, ends, level, method)
    formula = count_formula(tally, measure, cost=cost, reject=reject, outlier=outlier)
    if method not in (None, "bootstrap"):
        if entry is not None and entry.kind == "rate":
            allowed = "'wilson', 'exact' (Clopper-Pearson) or 'bootstrap'"
            raise OptionError.of("method", method, allowed)
        raise _not_a_rate(method, "bootstrap", measure)
    value, ends = bootstrap(
        tally,
        formula,
        level=level,
        weights=weights,
        draws=check_draws(draws),
        stratified=stratified,
        generator=generator_of(seed),
    )
    return _interval(measure, value, ends, level, "bootstrap")


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
    """Return a measure with an interval from its variation between parts (folds, sites, files).

    The folds of a cross-validation share training rows, so intervals over folds are somewhat too
    short.

    Parameters
    ----------
    parts : sequence of Tally
        The parts; at least two.
    measure : str
        As in `Assessment.interval`; the same holds for `cost`, `reject` and `outlier`.
    method : {'t', 'bootstrap'}
        't': mean over the parts, each with the same weight. The interval uses Student's t with the
        number of parts minus one degrees of freedom and stays within the bounds of the measure
        (`assessment.intervals`). 'bootstrap': measure of all rows, with percentiles over parts
        drawn with replacement.
    level : float, default=0.95
        Confidence level.
    draws, seed
        Options of the bootstrap.

    Returns
    -------
    Interval

    Examples
    --------
    >>> from discriminant import assess
    >>> sites = [assess(list("ab"), list("ab")), assess(list("ab"), list("aa"))]
    >>> float(interval_over(sites, "error").value)
    0.25
    """
    if method not in ("t", "bootstrap"):
        raise OptionError.of("method", method, "'t' or 'bootstrap'")
    level, tallies = check_level(level), _check_parts(parts)
    total = sum(tallies[1:], tallies[0])
    entry = MEASURES.get(measure)
    loss = entry if entry is not None and entry.kind == "loss" else None
    if loss is not None:
        check_scored(total, measure)
        cells = np.array(
            [[[loss.formula(part)[0], part.scored.weight[0].sum()]] for part in tallies]
        )
        formula: CountFormula = _mean_loss
    else:
        cells = np.array([part.among(total.labels, total.others).weight for part in tallies])
        formula = count_formula(total, measure, cost=cost, reject=reject, outlier=outlier)
    if method == "t":
        bounds = bounds_of(total, measure, cost=cost, reject=reject, outlier=outlier)
        rows = float(total.weight.sum())
        value, ends = mean_over_parts(formula(cells), level, bounds=bounds, rows=rows)
        return _interval(measure, value, ends, level, method)
    value = formula(cells.sum(axis=0))
    generator = generator_of(seed)
    samples = resample_parts(cells, formula, check_draws(draws), generator)

    def ends_from_rows() -> Fraction:
        if loss is not None:
            interval = _loss_interval(total, loss, level, "counts")
            return np.asarray(interval.low), np.asarray(interval.high)
        return bootstrap(
            total,
            formula,
            level=level,
            weights="counts",
            draws=check_draws(draws),
            stratified=False,
            generator=generator,
        )[1]

    ends = widen_if_degenerate(value, percentiles(samples, level), ends_from_rows)
    return _interval(measure, value, ends, level, method)


def _mean_loss(cells: Floats) -> Floats:
    return ratio((cells[..., 0, 0], cells[..., 0, 1]))


def _loss_interval(tally: Tally, loss: Measure, level: float, weights: Weights) -> Interval:
    check_scored(tally, loss.name)
    sums, weight = loss.formula(tally), tally.scored.weight.sum(axis=1)
    _, upper = bounds_of(tally, loss.name)
    ends = mean_interval(sums, weight, upper=upper, level=level, weights=weights)
    return _interval(loss.name, np.asarray(loss.value(tally)), ends, level, "score")


def _check_parts(parts: Any) -> list[Tally]:
    tallies = list(parts) if isinstance(parts, list | tuple) else [parts]
    for tally in tallies:
        if not isinstance(tally, Tally):
            allowed = "assessments or tallies, such as `cross_validate(...).tallies`"
            raise OptionError.of("parts", f"of {type(tally).__name__}", allowed)
    if len(tallies) < 2:
        raise OptionError.of(
            "parts",
            len(tallies),
            "two or more tallies: the interval is computed from their variation",
        )
    return tallies


def _not_a_rate(method: str | None, possible: str, measure: str) -> OptionError:
    return OptionError.of("method", method, f"'{possible}': {measure} is not a share of rows")


def _interval(measure: str, value: Floats, ends: Fraction, level: float, method: str) -> Interval:
    mid, low, high = (float(v) if np.ndim(v) == 0 else np.asarray(v) for v in (value, *ends))
    return Interval(measure, mid, low, high, level, method)
