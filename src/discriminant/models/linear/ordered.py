"""Cumulative link models of ordered classes: logit (proportional odds), probit and cloglog.

With classes 1 < ... < K, one score eta = x'beta for each row, and thresholds zeta_1 < ... <
zeta_{K-1} (McCullagh 1980; the signs are those of R's `polr` and `clm`),

    P(class <= k | x) = F(zeta_k - eta)          F: inverse of the link
    P(class = k | x)  = F(a) - F(b)              a = zeta_k - eta,  b = zeta_{k-1} - eta

with zeta_0 = -inf and zeta_K = inf. The log probability of a class is computed without
cancellation in either tail:

    logit     log F(a) + log S(b) + log(1 - exp(b - a))                        S = 1 - F
    cloglog   log S(b) + log(1 - exp(-(e^a - e^b)))
    probit    log F(a) + log(1 - exp(log F(b) - log F(a))), mirrored where a + b > 0

With f = F', p = F(a) - F(b), g_a = f(a)/p, g_b = f(b)/p, h_a = f'(a)/p and h_b = f'(b)/p, the loss
l = -log p of a row has the derivatives

    l_a = -g_a        l_aa = g_a^2 - h_a        l_ab = -g_a g_b
    l_b = g_b         l_bb = g_b^2 + h_b

The loss is convex in thresholds and coefficients for these links (Pratt 1981, Burridge 1981), so
Newton steps use the observed curvature, from which the standard errors follow too. The fit
minimises

    mean loss  +  ridge / 2 sum_j (sd_j beta_j)^2

A point theta consists of the K-1 thresholds for centred scores, followed by the coefficients of
the whitened columns (`linear.preconditioning`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import log_ndtr

from discriminant.models.expressions import (
    Expression,
    cloglog_log_probabilities,
    constant,
    probit_log_probabilities,
    stack,
    where_greater,
)
from discriminant.models.linear.optimise import (
    OptimisationResult,
    Point,
    Progress,
    newton_descent,
)
from discriminant.models.linear.preconditioning import Coordinates, white_coordinates
from discriminant.models.rules import LinearRule
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.glm_families import SCORES
from discriminant.moments.loss_gradient_sums import LossSums, Pass, Want, tile_rows
from discriminant.moments.softmax_loss import logit_tails
from discriminant.moments.summary_base import split_rows
from discriminant.table.blocks import Block, Features, Floats, Labels, Places

OrderedLink = Literal["logit", "probit", "cloglog"]

_LOG_ROOT_2PI = 0.5 * np.log(2 * np.pi)
_LARGEST_SCORE = 1e300  # larger scores are replaced by it, so that differences are not NaN
_MAX_EXPONENT = 700.0
_UNDERFLOW = 1e-300


class ThresholdInterval(NamedTuple):
    """For each row, the probability of an interval (b, a) under a link, with its derivatives."""

    log_p: Floats  # log(F(a) - F(b))
    upper: Floats  # f(a) / p
    lower: Floats  # f(b) / p
    upper_rate: Floats  # f'(a) / f(a)
    lower_rate: Floats  # f'(b) / f(b)


class _Link(NamedTuple):
    """Functions of a link, accurate in both tails."""

    log_interval: Callable[[Floats, Floats], Floats]  # a, b -> log(F(a) - F(b))
    log_density: Callable[[Floats], Floats]  # log f
    rate: Callable[[Floats], Floats]  # f' / f


def _logit_interval(a: Floats, b: Floats) -> Floats:
    gap = np.log(-np.expm1(b - a))
    return np.asarray(logit_tails(a).log_one + logit_tails(b).log_zero + gap)


def _logit_density(t: Floats) -> Floats:
    tails = logit_tails(t)
    return tails.log_one + tails.log_zero


def _cloglog_interval(a: Floats, b: Floats) -> Floats:
    above = np.isneginf(b)
    low = np.where(above, 0.0, b)
    excess = np.where(above, a, low + np.log(np.expm1(a - low)))  # log(e^a - e^b)
    width = np.exp(excess)
    inside = np.where(width > _UNDERFLOW, np.log(-np.expm1(-width)), excess)
    return inside - np.where(above, 0.0, np.exp(low))


def _cloglog_density(t: Floats) -> Floats:
    return np.where(np.isposinf(t), -np.inf, t - np.exp(np.minimum(t, _MAX_EXPONENT)))


def _probit_interval(a: Floats, b: Floats) -> Floats:
    mirrored = a + b > 0
    high, low = np.where(mirrored, -b, a), np.where(mirrored, -a, b)
    log_high = log_ndtr(high)
    return np.asarray(log_high + np.log(-np.expm1(log_ndtr(low) - log_high)))


_LINKS: dict[str, _Link] = {
    "logit": _Link(_logit_interval, _logit_density, lambda t: -np.tanh(0.5 * t)),
    "probit": _Link(
        _probit_interval,
        lambda t: -0.5 * t * t - _LOG_ROOT_2PI,
        lambda t: np.where(np.isfinite(t), -t, 0.0),
    ),
    "cloglog": _Link(
        _cloglog_interval,
        _cloglog_density,
        lambda t: 1.0 - np.exp(np.minimum(t, _MAX_EXPONENT)),
    ),
}
ORDERED_LINKS = tuple(_LINKS)


def interval(link: str, a: Floats, b: Floats) -> ThresholdInterval:
    """Return the log probability, and its derivatives, of intervals from b to a.

    Ends may be infinite.

    >>> half = interval("logit", np.array([0.0]), np.array([-np.inf]))
    >>> half.log_p.round(6).tolist(), half.upper.round(6).tolist(), half.lower.tolist()
    ([-0.693147], [0.5], [0.0])
    """
    functions = _LINKS[link]
    with np.errstate(all="ignore"):
        log_p = functions.log_interval(a, b)
        return ThresholdInterval(
            log_p,
            np.exp(functions.log_density(a) - log_p),
            np.exp(functions.log_density(b) - log_p),
            functions.rate(a),
            functions.rate(b),
        )


def level_log_probabilities(link: str, eta: Floats, thresholds: Floats) -> Floats:
    """Return the (n, K) log probabilities of the ordered levels at the scores eta (n,)."""
    eta = np.clip(eta, -_LARGEST_SCORE, _LARGEST_SCORE)[:, None]
    ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
    with np.errstate(all="ignore"):
        logs = _LINKS[link].log_interval(ends[1:] - eta, ends[:-1] - eta)
    return np.where(np.isnan(logs), -np.inf, logs)  # thresholds that round to the same number


@dataclass(frozen=True, slots=True, eq=False)
class OrderedLossReading:
    """Sum the loss of a cumulative link model and its derivatives over the rows.

    Derivatives are with respect to the K-1 thresholds, the d coefficients and the constant of

        eta = u'coef + constant
    """

    features: tuple[str, ...]  # d names, for messages
    anchor: Anchor
    coef: Floats  # (d,) for offsets
    constant: float
    thresholds: Floats  # (K-1,)
    positions: Places  # (K,) position of each class code in the order of the classes
    link: str
    want: Want = "gradient"

    @property
    def summary_size(self) -> int:
        size = len(self.coef) + 1 + len(self.thresholds)
        return size if self.want == "gradient" else size * size

    def read(self, block: Block) -> LossSums:
        total = self._empty()
        with np.errstate(invalid="ignore", over="ignore"):  # bad cells are reported below
            for tile in split_rows(block, tile_rows(len(self.coef) + 2 * len(self.positions))):
                total = total + self._tile(tile)
        return total

    def _empty(self) -> LossSums:
        size = len(self.coef) + 1 + len(self.thresholds)
        curvature = None if self.want == "gradient" else np.zeros((size, size))
        return LossSums(0, 0.0, 0.0, np.zeros((size, 1)), curvature, np.inf)

    def _tile(self, tile: Block) -> LossSums:
        rows = self.anchor.offsets(tile.features)
        eta = rows @ self.coef + self.constant
        level = self.positions[tile.codes]
        ends = np.concatenate([[-np.inf], self.thresholds, [np.inf]])
        row = interval(self.link, ends[level + 1] - eta, ends[level] - eta)
        weight = np.ones(len(tile))
        if tile.weight is not None:
            weight = tile.weight
            row = ThresholdInterval(*(np.where(weight > 0, values, 0.0) for values in row))
        loss = -float(np.dot(row.log_p, weight))
        if not np.isfinite(loss):
            tile.raise_bad_cell(self.features)
        upper, lower = weight * row.upper, weight * row.lower
        K = len(self.positions)
        by_threshold = np.bincount(level, lower, K)[1:] - np.bincount(level, upper, K)[:-1]
        slope = upper - lower
        gradient = np.concatenate([by_threshold, slope @ rows, [slope.sum()]])[:, None]
        curvature = None if self.want == "gradient" else self._curvature(rows, level, weight, row)
        return LossSums(len(tile), float(weight.sum()), loss, gradient, curvature, np.inf)

    def _curvature(
        self, rows: Floats, level: Places, weight: Floats, row: ThresholdInterval
    ) -> Floats:
        """Return the observed curvature: thresholds first, then coefficients and the constant."""
        K, d = len(self.positions), rows.shape[1]
        both = -weight * row.upper * row.lower
        upper = weight * row.upper * (row.upper - row.upper_rate)
        lower = weight * row.lower * (row.lower + row.lower_rate)
        curvature = np.zeros((K + d, K + d))
        at = np.arange(K - 1)
        curvature[at, at] = np.bincount(level, upper, K)[:-1] + np.bincount(level, lower, K)[1:]
        curvature[at[:-1], at[1:]] = curvature[at[1:], at[:-1]] = np.bincount(level, both, K)[1:-1]
        mixed = np.zeros((len(rows), K + 1))  # by the thresholds 0 to K, the ends included
        each = np.arange(len(rows))
        mixed[each, level + 1] = -(upper + both)
        mixed[each, level] = -(lower + both)
        mixed = mixed[:, 1:-1]
        curvature[: K - 1, K - 1 : -1] = mixed.T @ rows
        curvature[: K - 1, -1] = mixed.sum(axis=0)
        curvature[K - 1 :, : K - 1] = curvature[: K - 1, K - 1 :].T
        total = upper + lower + 2.0 * both
        weighted = rows * total[:, None]
        curvature[K - 1 : -1, K - 1 : -1] = weighted.T @ rows
        curvature[K - 1 : -1, -1] = curvature[-1, K - 1 : -1] = weighted.sum(axis=0)
        curvature[-1, -1] = total.sum()
        return curvature


@dataclass(frozen=True, slots=True, eq=False)
class OrderedObjective:
    """Mean loss of a cumulative link model plus a ridge, as a function of theta."""

    read: Pass
    features: tuple[str, ...]
    anchor: Anchor
    coordinates: Coordinates  # of the score, centred and without an intercept
    positions: Places  # (K,)
    link: str
    penalty: Floats | None  # (q, q); None: no penalty

    def evaluate(self, theta: Floats, *, want: Want = "gradient") -> Point:
        """Return the value and the derivatives at theta, by one pass over the rows."""
        m = len(self.positions) - 1
        summed = self.coordinates.summed
        coef, centre = summed.coefficients(theta[m:])
        slope = self.read(
            self.coordinates.reading(
                self.features,
                self.anchor,
                lambda anchor: OrderedLossReading(
                    self.features,
                    anchor,
                    coef[:, 0],
                    float(centre[0]),
                    theta[:m, 0],
                    self.positions,
                    self.link,
                    want,
                ),
            )
        )
        to_theta = np.zeros((m + len(summed.frame), len(theta)))
        to_theta[:m, :m] = np.eye(m)
        to_theta[m:, m:] = summed.frame
        gradient = to_theta.T @ slope.gradient / slope.weight
        value, curvature = slope.loss / slope.weight, slope.curvature
        if curvature is not None:
            curvature = to_theta.T @ curvature @ to_theta / slope.weight
        if self.penalty is not None:
            gradient[m:] += self.penalty @ theta[m:]
            value += 0.5 * float((theta[m:] * (self.penalty @ theta[m:])).sum())
            if curvature is not None:
                curvature[m:, m:] += self.penalty
        if np.isnan(value):  # thresholds that are not in order
            value = np.inf
        return Point(theta, value, gradient, curvature, slope)


@dataclass(frozen=True, slots=True, eq=False)
class OrderedOptions:
    """Options of a fit."""

    link: OrderedLink = "logit"
    ridge: float = 0.0
    standardize: bool = True  # penalise coefficients times standard deviations
    max_passes: int = 200
    progress: Progress | None = None
    min_row_weight: float = 1.0  # smallest positive weight of a row


@dataclass(frozen=True, slots=True, eq=False)
class OrderedResult:
    """Result of a fit of a cumulative link model."""

    objective: OrderedObjective
    descent: OptimisationResult
    separated: bool  # whether the estimates tend to infinity

    @property
    def theta(self) -> Floats:
        """Estimates (K-1+q, 1): thresholds for centred scores, then coefficients."""
        return self.descent.theta

    def line(self) -> LinearRule:
        """Return the rule that computes the score eta."""
        m = len(self.objective.positions) - 1
        coef, centre = self.objective.coordinates.coefficients(self.theta[m:])
        return LinearRule(np.zeros(1), self.objective.anchor, coef.T, centre)


_MAX_STEP = 1e-3  # longest last step, in units of theta, of a finite estimate


def fit_ordered(
    read: Pass,
    moments: ClassMoments,
    positions: Places,
    options: OrderedOptions,
    *,
    scale: Floats,
    sample: Pass | None = None,
) -> OrderedResult:
    """Fit a cumulative link model by Newton's method.

    Parameters
    ----------
    read
        Function that passes over the rows: it sums over all blocks of rows what a reading computes
        for each block.
    moments
        Moments of the same rows, for the offsets with which the rows are read, of detail 'pooled'
        or finer.
    positions
        (K,) position of each class in the order of the classes.
    options
        Link, penalty and limits.
    scale
        (d,) factors of the coefficients in the ridge penalty.
    sample
        Like `read`, but over a sample of the rows, to compute the starting point.
    """
    white = white_coordinates(
        moments,
        classes=0,
        ridged=scale if options.ridge else None,
        read=read,
    )
    coordinates = replace(white, frame=white.frame[:, 1:], free=0)
    penalty = options.ridge * coordinates.penalty(scale) if options.ridge else None
    objective = OrderedObjective(
        read, moments.features, moments.anchor, coordinates, positions, options.link, penalty
    )
    start = _start(moments.weight[np.argsort(positions)], coordinates.size, options.link)
    if sample is not None:
        near = newton_descent(replace(objective, read=sample), start)
        start = near.theta if near.converged and _is_finite(near) else start
    is_complete = _separation_test(options)
    descent = newton_descent(
        objective,
        start,
        max_passes=options.max_passes,
        progress=options.progress,
        stop=is_complete,
    )
    separated = not options.ridge and (is_complete(descent.point) or not _is_finite(descent))
    return OrderedResult(objective, descent, separated)


def _separation_test(options: OrderedOptions) -> Callable[[Point], bool]:
    """Return a function that tests if the loss at a point proves that scores separate all classes.

    If the total loss is less than log 2 times the smallest weight of a row, every row has a
    probability above 1/2. The score of a row then lies between the two thresholds of its class,
    both shifted by the median of the link's distribution.
    """
    limit = 0.99 * np.log(2.0) * options.min_row_weight
    return lambda point: not options.ridge and bool(point.slope.loss < limit)


def _is_finite(descent: OptimisationResult) -> bool:
    """Return whether the last step to a converged point was short, so that a minimum is near."""
    if not descent.converged:
        return True
    return float(np.abs(descent.theta - descent.point.theta).max(initial=0.0)) <= _MAX_STEP


def _start(weight: Floats, size: int, link: str) -> Floats:
    """Return the minimum without features: thresholds at the quantiles of the class shares."""
    cumulative = np.cumsum(weight)[:-1] / weight.sum()
    return np.concatenate([SCORES[link](cumulative), np.zeros(size)])[:, None]


# --- rule -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class OrderedRule:
    """Rule of a cumulative link model: scores are log probabilities of the classes."""

    labels: Labels  # (K,) sorted
    line: LinearRule  # one predictor, eta
    thresholds: Floats  # (K-1,) increasing, for the values of `line`
    levels: Places  # (K,) indices into `labels`: the classes from lowest to highest
    tilt: Floats  # (K,) terms added to the log probabilities of `labels`, for other priors
    link: str

    def scores(self, features: Features) -> Floats:
        """Return the (n, K) log probabilities, up to a common term, in the order of `labels`."""
        eta = self.line.values(features)[:, 0]
        logs = level_log_probabilities(self.link, eta, self.thresholds)
        scores = np.empty_like(logs)
        scores[:, self.levels] = logs
        scores += self.tilt
        scores[np.isnan(eta)] = np.nan
        return scores

    def expression(self, x: Expression, names: Sequence[str]) -> Expression:
        """Return the (K,) scores as an expression of the features of one row."""
        eta = self.line.expression(x, name="linear")
        logs = _EXPRESSIONS[self.link](eta, self.thresholds)
        scores = logs.pick(np.argsort(self.levels)) + self.tilt
        return scores.with_name("score", names)

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of a rule are invalid, or None if they are valid."""
        (K,) = parts["labels"].shape
        thresholds, levels = parts["thresholds"], parts["levels"]
        if thresholds.shape != (K - 1,) or parts["tilt"].shape != (K,):
            return f"thresholds and tilt must be of {K} classes"
        if not (np.isfinite(thresholds).all() and (np.diff(thresholds) > 0).all()):
            return "thresholds must be finite and increase"
        if levels.dtype.kind not in "iu" or not np.array_equal(np.sort(levels), np.arange(K)):
            return f"levels must contain each of 0 to {K - 1} once"
        if len(parts["line"].intercept) != 1:
            return "line must have one predictor"
        return None if parts["link"] in ORDERED_LINKS else "link is not known"


def _logit_expression(eta: Expression, thresholds: Floats) -> Expression:
    """Return the (K,) log probabilities of the levels by the logit link."""
    t = (constant(thresholds) - eta).with_name("t")
    common = ((constant(0.0) - t.abs()).exp() + 1.0).log().with_name("log_common")
    below = constant(0.0) - common - (constant(0.0) - t).larger(0.0)  # log F
    above = constant(0.0) - common - t.larger(0.0)  # log S
    m = len(thresholds)
    low, high = below.with_name("log_below"), above.with_name("log_above")
    parts = [low.pick([0])]
    if m > 1:
        gaps = np.log(-np.expm1(-np.diff(thresholds)))
        parts.append(low.pick(np.arange(1, m)) + high.pick(np.arange(m - 1)) + gaps)
    return stack([*parts, high.pick([m - 1])])


def _cloglog_expression(eta: Expression, thresholds: Floats) -> Expression:
    """Return the (K,) log probabilities of the levels by the cloglog link."""
    m = len(thresholds)
    t = (constant(thresholds) - eta).with_name("t")
    excess = thresholds.copy()  # log(e^zeta_k - e^zeta_{k-1})
    excess[1:] = thresholds[:-1] + np.log(np.expm1(np.diff(thresholds)))
    inside = cloglog_log_probabilities((constant(excess) - eta).with_name("excess")).pick(
        np.arange(m, 2 * m)
    )
    rate = t.smaller(_MAX_EXPONENT).exp().with_name("threshold_rate")
    inside = inside.with_name("log_inside")
    parts = [inside.pick([0])]
    if m > 1:
        parts.append(inside.pick(np.arange(1, m)) - rate.pick(np.arange(m - 1)))
    return stack([*parts, constant(0.0) - rate.pick([m - 1])])


def _probit_expression(eta: Expression, thresholds: Floats) -> Expression:
    """Return the (K,) log probabilities of the levels by the probit link."""
    m = len(thresholds)
    t = (constant(thresholds) - eta).with_name("t")
    tails = probit_log_probabilities(t).with_name("log_tails")
    above, below = tails.pick(np.arange(m)), tails.pick(np.arange(m, 2 * m))
    parts = [below.pick([0])]
    if m > 1:
        upper, lower = np.arange(1, m), np.arange(m - 1)
        middle = (t.pick(upper) + t.pick(lower)).with_name("middle")
        high = where_greater(middle, 0.0, above.pick(lower), below.pick(upper)).with_name(
            "log_high"
        )
        low = where_greater(middle, 0.0, above.pick(upper), below.pick(lower)).with_name("log_low")
        rest = (constant(1.0) - (low - high).exp()).larger(_UNDERFLOW)
        parts.append(high + rest.log())
    return stack([*parts, above.pick([m - 1])])


_EXPRESSIONS: dict[str, Callable[[Expression, Floats], Expression]] = {
    "logit": _logit_expression,
    "probit": _probit_expression,
    "cloglog": _cloglog_expression,
}
