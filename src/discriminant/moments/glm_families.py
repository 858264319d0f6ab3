"""Families and links of generalised linear models: deviance, derivatives and log likelihood.

The mean of a response is `mu = g^-1(s)`, where `g` is the link and `s` is the score plus the offset
of the row. The loss `l` of a row is half its deviance. With the variance function `V`, the
derivative and the expected curvature are (McCullagh & Nelder 1989, section 2.3):

    gaussian  V = 1          l = (y - mu)^2 / 2
    poisson   V = mu         l = y log(y / mu) - (y - mu)
    gamma     V = mu^2       l = (y - mu) / mu - log(y / mu)
    binomial  V = mu(1-mu)   l = y log(y / mu) + (1 - y) log((1 - y) / (1 - mu))

    l' = -(y - mu) mu' / V          E l'' = mu'^2 / V

For a binomial row, `y` is the share of successes and the weight is the number of trials. Binomial
links are computed accurately in both tails, as in `moments.softmax_loss`. If no valid mean
corresponds to a score (for example, a negative score if `1 / s` must be positive), the loss is
infinite, and the optimiser rejects the step. Column 0 of `Block.responses` is the response; column
1, if there is one, is the offset.

With some links, a row can reach the boundary of the valid means, where it is fitted without loss:

    binomial  log              share 1 at the score 0; other scores are below 0
    poisson   identity, sqrt   count 0 at the score 0; other scores are above 0

The optimum may lie on the boundary. `BarrierLoss` therefore adds `-strength log a` for each of
these rows, where `a > 0` is the distance of the row from the boundary. The optimum is then in the
interior. As `strength` decreases, the optimum converges to the constrained optimum, and `strength /
a` converges to the Lagrange multipliers (Boyd & Vandenberghe 2004, 11.2). The optimiser uses the
observed curvature, which is positive for these families. The expected curvature is infinite at the
boundary and would make steps too short.

`SaturatedLikelihood` is the log likelihood of a model in which every mean equals its response. With

    log likelihood = saturated log likelihood - deviance / (2 dispersion)

the log likelihood of a fit is computed from its deviance. If the family has a free dispersion, it
is estimated as `deviance / n`, and counts as one more parameter in AIC and BIC, as in R's `logLik`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, ndtri, xlog1py, xlogy

from discriminant.moments.loss_gradient_sums import ScoreDerivatives, Want
from discriminant.moments.softmax_loss import LINK_TAILS, LinkTails
from discriminant.moments.summary_base import Summable
from discriminant.table.blocks import Block, Floats

# Links of each family; the first one is R's default.
LINKS: dict[str, tuple[str, ...]] = {
    "gaussian": ("identity", "log", "inverse"),
    "binomial": ("logit", "probit", "cloglog", "cauchit", "log"),
    "poisson": ("log", "identity", "sqrt"),
    "gamma": ("inverse", "log", "identity"),
}
FREE_DISPERSION = ("gaussian", "gamma")  # families whose dispersion is estimated; else it is one


class RowDerivatives(NamedTuple):
    """Loss of each row and its derivatives with respect to the score, without weights."""

    loss: Floats  # (n,)
    slope: Floats  # (n,)
    curvature: Floats  # (n,) expected second derivative, not negative


class ResponseLoss:
    """Base class of losses that depend on a single score, a response and an optional offset."""

    __slots__ = ()

    @property
    def columns(self) -> int:
        """Number of scores: one."""
        return 1

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """Return the weighted loss and its derivatives with respect to the scores."""
        response, offset = response_and_offset(tile)
        score = scores[0] if offset is None else scores[0] + offset
        return self._sums(score, response, tile.weight, want)

    def _sums(
        self, score: Floats, response: Floats, weight: Floats | None, want: Want
    ) -> ScoreDerivatives:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Deviance(ResponseLoss):
    """Half the deviance of the responses, for a given family and link."""

    family: str
    link: str

    def _sums(
        self, score: Floats, response: Floats, weight: Floats | None, want: Want
    ) -> ScoreDerivatives:
        sums = None
        if self.link == "log" and weight is None and self.family == "poisson":
            sums = _poisson_sums(score, response, want)
        elif self.link == "log" and weight is None and self.family == "gamma":
            sums = _gamma_sums(score, response, want, observed=False)
        if sums is not None:
            return sums
        return weighted_sums(self.rows(score, response), weight, want)

    def rows(self, scores: Floats, response: Floats) -> RowDerivatives:
        """Return the loss and its derivatives for each row."""
        with np.errstate(all="ignore"):
            if self.family == "binomial":
                return _binomial(scores, response, self.link)
            return _row_derivatives(scores, response, self.family, self.link)

    def mean(self, scores: Floats) -> Floats:
        """Return the mean of the response, given scores that include the offset."""
        with np.errstate(all="ignore"):
            if self.family == "binomial":
                return np.asarray(np.exp(_link_tails(scores, self.link).log_one))
            return MEANS[self.link](scores)[0]


# Families with their canonical links, for which the expected curvature is the observed one.
CANONICAL = (("gaussian", "identity"), ("binomial", "logit"), ("poisson", "log"))
OBSERVABLE = (("gamma", "log"),)  # family and link of `ObservedDeviance`


@dataclass(frozen=True, slots=True)
class ObservedDeviance(ResponseLoss):
    """Half the deviance of the gamma family with log link, and the observed curvature.

        l = y / mu + log(mu / y) - 1        l' = 1 - y / mu        l'' = y / mu

    The expected curvature is 1, so steps that use it converge only linearly.
    """

    deviance: Deviance

    def _sums(
        self, score: Floats, response: Floats, weight: Floats | None, want: Want
    ) -> ScoreDerivatives:
        sums = None if weight is not None else _gamma_sums(score, response, want, observed=True)
        if sums is not None:
            return sums
        derivatives = self.deviance.rows(score, response)
        observed = derivatives._replace(curvature=1.0 - derivatives.slope)
        return weighted_sums(observed, weight, want)


@dataclass(frozen=True, slots=True)
class StartingFit(ResponseLoss):
    """Least-squares fit to g(mu_0), with means mu_0 near the responses; R's `glm` starts with it.

        l = v (s - g(mu_0))^2 / 2        v = mu'^2 / V at mu_0

    This loss is quadratic, so one pass over the rows finds its minimum.
    """

    deviance: Deviance
    level: float  # mean used where the link of a response is undefined

    def _sums(
        self, score: Floats, response: Floats, weight: Floats | None, want: Want
    ) -> ScoreDerivatives:
        target = self._target_scores(response, weight)
        curvature = self.deviance.rows(target, response).curvature
        curvature = np.where(np.isfinite(curvature), curvature, 0.0)
        residual = score - target
        loss = 0.5 * curvature * residual * residual
        return weighted_sums(RowDerivatives(loss, curvature * residual, curvature), weight, want)

    def _target_scores(self, response: Floats, weight: Floats | None) -> Floats:
        """Return the score (the link function) of a mean near each response."""
        if self.deviance.family == "binomial":
            trials = 1.0 if weight is None else weight
            mean = (trials * response + 0.5) / (trials + 1.0)
        else:
            mean = response + 0.1 if self.deviance.family == "poisson" else response
            if self.deviance.link != "identity":
                # with a mean closer to zero, one row would outweigh all others
                smallest = 1e-3 * abs(self.level)
                mean = np.where(np.sign(self.level) * mean > smallest, mean, self.level)
        return SCORES[self.deviance.link](mean)


@dataclass(frozen=True, slots=True)
class PearsonStatistic(ResponseLoss):
    """Half the Pearson statistic, (y - mu)^2 / V.

    The Pearson statistic divided by the residual degrees of freedom estimates the dispersion.
    """

    deviance: Deviance

    def _sums(
        self, score: Floats, response: Floats, weight: Floats | None, want: Want
    ) -> ScoreDerivatives:
        """Return the loss. The derivatives are not needed, and are set to zero."""
        with np.errstate(all="ignore"):
            if self.deviance.family == "binomial":  # accurate in both tails
                _, slope, curvature = self.deviance.rows(score, response)
                squares = slope**2 / curvature
            else:
                mean = self.deviance.mean(score)
                residual = response - mean
                squares = residual * residual / _variance(mean, self.deviance.family)
        squares = np.where(np.isfinite(squares), squares, 0.0)
        zero = np.zeros_like(squares)
        return weighted_sums(RowDerivatives(0.5 * squares, zero, zero), weight, want)


# --- links ------------------------------------------------------------------------------------


def _inverse_identity_link(scores: Floats) -> tuple[Floats, Floats]:
    return scores, np.ones_like(scores)


def _inverse_log_link(scores: Floats) -> tuple[Floats, Floats]:
    mean = np.exp(scores)
    return mean, mean


def _inverse_reciprocal_link(scores: Floats) -> tuple[Floats, Floats]:
    mean = 1.0 / scores
    return mean, -mean * mean


def _inverse_sqrt_link(scores: Floats) -> tuple[Floats, Floats]:
    return np.where(scores > 0, scores * scores, -1.0), 2.0 * scores


def log_tails(scores: Floats) -> LinkTails:
    """Return the log probabilities and hazards of the log link, mu = exp(s) for s < 0."""
    rest = -np.expm1(scores)
    return LinkTails(scores, np.log(rest), np.ones_like(scores), np.exp(scores) / rest)


def _link_tails(scores: Floats, link: str) -> LinkTails:
    return log_tails(scores) if link == "log" else LINK_TAILS[link](scores)


# Inverse links: each function returns the mean `mu(s)` and its derivative `mu'(s)`.
MEANS: dict[str, Callable[[Floats], tuple[Floats, Floats]]] = {
    "identity": _inverse_identity_link,
    "log": _inverse_log_link,
    "inverse": _inverse_reciprocal_link,
    "sqrt": _inverse_sqrt_link,
}

# Links: each function returns the score `g(mu)`.
SCORES: dict[str, Callable[[Floats], Floats]] = {
    "identity": lambda mean: mean,
    "log": np.log,
    "inverse": np.reciprocal,
    "sqrt": np.sqrt,
    "logit": lambda mean: np.log(mean) - np.log1p(-mean),
    "probit": lambda mean: np.asarray(ndtri(mean)),
    "cloglog": lambda mean: np.log(-np.log1p(-mean)),
    "cauchit": lambda mean: np.tan(np.pi * (mean - 0.5)),
}


# --- families ---------------------------------------------------------------------------------


def _row_derivatives(scores: Floats, response: Floats, family: str, link: str) -> RowDerivatives:
    mean, rate = MEANS[link](scores)
    invalid = ~np.isfinite(mean)
    if family != "gaussian" or link == "sqrt":
        invalid |= mean <= 0
    any_invalid = bool(invalid.any())
    if any_invalid:
        mean, rate = np.where(invalid, 1.0, mean), np.where(invalid, 0.0, rate)
    loss = half_deviance(response, mean, family)
    if any_invalid:
        loss = np.where(invalid, np.inf, loss)
    elif family == "poisson" and link == "log":  # the rate equals the variance
        return RowDerivatives(loss, mean - response, mean)
    rate_over_variance = rate / _variance(mean, family)
    return RowDerivatives(loss, (mean - response) * rate_over_variance, rate * rate_over_variance)


_SAFE_SCORE = 600.0  # exp of smaller scores is neither zero nor infinite
_CANCELLED = 1e-3  # loss, relative to the size of its terms, below which rows are summed accurately


def _poisson_sums(scores: Floats, response: Floats, want: Want) -> ScoreDerivatives | None:
    """Return the sums for a Poisson response with log link, in few passes over the rows.

    The loss is `y (log y - s) + mu - y`. Return None if most of the loss cancels, or if a mean is
    invalid.
    """
    with np.errstate(all="ignore"):
        mean = np.exp(scores)
        slope = mean - response
        terms = np.log(np.where(response > 0, response, 1.0))
        terms -= scores
        loss = float(np.dot(terms, response)) + float(slope.sum())
        furthest = max(abs(float(scores.max(initial=0.0))), abs(float(scores.min(initial=0.0))))
        size = furthest * float(response.sum()) + float(mean.sum())
    least = float(mean.min(initial=np.inf))
    if not (least > 0 and _CANCELLED * size < loss < np.inf):
        return None
    curvature = None if want == "gradient" else mean[None]
    return ScoreDerivatives(loss, slope[None], curvature, None, least)


def _gamma_sums(
    scores: Floats, response: Floats, want: Want, *, observed: bool
) -> ScoreDerivatives | None:
    """Return the sums for a gamma response with log link, in few passes over the rows.

    The loss is `t - 1 - (log y - s)` with `t = y / mu`; the observed curvature is `t`, the expected
    curvature 1. Return None if most of the loss cancels, or if a mean is invalid.
    """
    with np.errstate(all="ignore"):
        furthest = max(abs(float(scores.max(initial=0.0))), abs(float(scores.min(initial=0.0))))
        ratio = np.exp(-scores)
        ratio *= response
        slope = 1.0 - ratio
        log = np.log(response)
        loss = float(scores.sum()) - float(log.sum()) - float(slope.sum())
        size = float(ratio.sum()) + len(log) * (1.0 + furthest) + float(np.abs(log).sum())
    if not (furthest < _SAFE_SCORE and _CANCELLED * size < loss < np.inf):
        return None
    curvature = ratio if observed else np.ones_like(ratio)
    least = float(curvature.min(initial=np.inf))
    wanted_curvature = None if want == "gradient" else curvature[None]
    return ScoreDerivatives(loss, slope[None], wanted_curvature, None, least)


def _variance(mean: Floats, family: str) -> Floats:
    if family == "gaussian":
        return np.ones_like(mean)
    return mean if family == "poisson" else mean * mean


def half_deviance(response: Floats, mean: Floats, family: str) -> Floats:
    """Return half the deviance (n,) of each response from its mean."""
    if family == "binomial":
        rest = 1.0 - response
        residual = xlogy(response, response) + xlogy(rest, rest)
        return np.asarray(residual - xlogy(response, mean) - xlog1py(rest, -mean))
    residual = response - mean
    if family == "gaussian":
        return 0.5 * residual * residual
    if family == "gamma":
        return _minus_log(residual / mean, response / mean)
    positive = response > 0
    if positive.all():
        return np.asarray(response * _minus_log(-residual / response, mean / response))
    safe = np.where(positive, response, 1.0)
    return np.where(positive, safe * _minus_log(-residual / safe, mean / safe), mean)


def _minus_log(part: Floats, ratio: Floats) -> Floats:
    """Return `part - log(ratio)` without cancellation, where `ratio = 1 + part`.

    If `ratio` is near one, `log(1 + part)` equals `log(ratio)` plus a correction for the rounding
    of the ratio.
    """
    rounding = np.where(np.abs(part) < 0.5, (part - (ratio - 1.0)) / ratio, 0.0)
    return np.asarray(part - (np.log(ratio) + rounding))


def _binomial(scores: Floats, share: Floats, link: str) -> RowDerivatives:
    invalid = ~np.isfinite(scores)
    if link == "log":
        invalid |= scores >= 0
    any_invalid = bool(invalid.any())
    scores = np.where(invalid, -1.0, scores) if any_invalid else scores
    rest = 1.0 - share
    derivatives = (
        _logit(scores, share, rest)
        if link == "logit"
        else _binomial_link(scores, share, rest, link)
    )
    loss = derivatives.loss
    if ((share > 0) & (rest > 0)).any():  # otherwise the saturated log likelihood is zero
        loss = loss + xlogy(share, share) + xlogy(rest, rest)
    return RowDerivatives(
        np.where(invalid, np.inf, loss) if any_invalid else loss,
        derivatives.slope,
        derivatives.curvature,
    )


def _binomial_link(scores: Floats, share: Floats, rest: Floats, link: str) -> RowDerivatives:
    tails = _link_tails(scores, link)
    log_likelihood = np.where(share > 0, share * tails.log_one, 0.0)
    log_likelihood += np.where(rest > 0, rest * tails.log_zero, 0.0)
    slope = rest * tails.hazard_zero - share * tails.hazard_one
    return RowDerivatives(-log_likelihood, slope, tails.hazard_one * tails.hazard_zero)


def _logit(scores: Floats, share: Floats, rest: Floats) -> RowDerivatives:
    """Return the logistic loss `log(1 + exp s) - y s` and its derivatives, exact in both tails."""
    small = np.exp(-np.abs(scores))
    near = 1.0 / (1.0 + small)
    far = small * near
    up = scores >= 0
    loss = np.log1p(small) + np.where(up, rest, -share) * scores
    slope = rest * np.where(up, near, far) - share * np.where(up, far, near)
    return RowDerivatives(loss, slope, near * far)


# --- rows -------------------------------------------------------------------------------------


def response_and_offset(tile: Block) -> tuple[Floats, Floats | None]:
    """Return the response of each row and the offset of each row, or None without offsets."""
    assert tile.responses is not None
    has_offset = tile.responses.shape[1] > 1
    return tile.responses[:, 0], tile.responses[:, 1] if has_offset else None


def weighted_sums(
    derivatives: RowDerivatives, weight: Floats | None, want: Want
) -> ScoreDerivatives:
    """Return the loss and its derivatives, multiplied by the row weights.

    `least` is the smallest weighted curvature of a row of positive weight.
    """
    loss, slope, curvature = derivatives
    if weight is not None:
        positive = weight > 0
        loss = np.where(positive, loss, 0.0) * weight
        slope, curvature = slope * weight, curvature * weight
        least = float(curvature[positive].min(initial=np.inf))
    else:
        least = float(curvature.min(initial=np.inf))
    wanted_curvature = None if want == "gradient" else curvature[None]
    return ScoreDerivatives(float(loss.sum()), slope[None], wanted_curvature, None, least)


# Response that is fitted exactly at the boundary, and sign of the scores in the interior.
BOUNDARIES: dict[tuple[str, str], tuple[float, float]] = {
    ("binomial", "log"): (1.0, -1.0),
    ("poisson", "identity"): (0.0, 1.0),
    ("poisson", "sqrt"): (0.0, 1.0),
}


@dataclass(frozen=True, slots=True)
class BarrierLoss(ResponseLoss):
    """Half the deviance plus a log barrier.

    The field `least` of its results is the smallest distance of a row from the boundary.
    """

    deviance: Deviance
    strength: float

    def _sums(
        self, score: Floats, response: Floats, weight: Floats | None, want: Want
    ) -> ScoreDerivatives:
        derivatives, distance = self.rows(score, response)
        if weight is not None:
            distance = distance[weight > 0]
        least = float(distance.min(initial=np.inf))
        return replace(weighted_sums(derivatives, weight, want), least=least)

    def rows(self, scores: Floats, response: Floats) -> tuple[RowDerivatives, Floats]:
        """Return the loss and its derivatives for each row, and the distance from the boundary."""
        boundary, side = BOUNDARIES[self.deviance.family, self.deviance.link]
        loss, slope, _ = self.deviance.rows(scores, response)
        at_boundary = response == boundary
        distance = np.where(at_boundary, side * scores, np.inf)
        safe = np.where(distance > 0, distance, 1.0)
        barrier_slope = np.where(at_boundary, self.strength / safe, 0.0)
        curvature = self._observed(scores, response) + barrier_slope / safe
        loss = np.where(at_boundary, loss - self.strength * np.log(safe), loss)
        return RowDerivatives(loss, slope - side * barrier_slope, curvature), distance

    def _observed(self, scores: Floats, response: Floats) -> Floats:
        """Return the second derivatives (n,) of the loss, with zero where the mean is not valid."""
        with np.errstate(all="ignore"):
            if self.deviance.family == "binomial":
                rest = -np.expm1(scores)
                curvature = (1.0 - response) * np.exp(scores) / (rest * rest)
            else:
                share = response / (scores * scores)
                curvature = share if self.deviance.link == "identity" else 2.0 + 2.0 * share
        return np.where(np.isfinite(curvature), curvature, 0.0)


@dataclass(frozen=True, slots=True)
class SaturatedLikelihood(Summable):
    """Saturated log likelihood: the terms that depend only on the responses."""

    rows: int  # number of rows of positive weight
    weight: float
    log: float  # see `_log_saturated`

    def __add__(self, other: SaturatedLikelihood) -> SaturatedLikelihood:
        return SaturatedLikelihood(
            self.rows + other.rows, self.weight + other.weight, self.log + other.log
        )


@dataclass(frozen=True, slots=True)
class SaturatedLikelihoodReading:
    """Sum the saturated log likelihood of one family over the rows."""

    family: str

    @property
    def summary_size(self) -> int:
        return 3

    def read(self, block: Block) -> SaturatedLikelihood:
        response, _ = response_and_offset(block)
        weight = np.ones(len(block)) if block.weight is None else block.weight
        positive = weight > 0
        log = _log_saturated(response[positive], weight[positive], self.family)
        return SaturatedLikelihood(int(positive.sum()), float(weight.sum()), float(log.sum()))


def _log_saturated(response: Floats, weight: Floats, family: str) -> Floats:
    """Return the log likelihood at `mu = y`, without the terms that contain the dispersion.

    gaussian  log(w) / 2                 gamma     -w log y
    poisson   w (y log y - y - log y!)   binomial  log C(w, w y) + w (y log y + (1-y) log(1-y))
    """
    if family == "gaussian":
        return 0.5 * np.log(weight)
    if family == "gamma":
        return -weight * np.log(response)
    if family == "poisson":
        return weight * _log_saturated_counts(response)
    successes, failures = weight * response, weight * (1.0 - response)
    log_binomial = gammaln(weight + 1.0) - gammaln(successes + 1.0) - gammaln(failures + 1.0)
    return np.asarray(
        log_binomial + weight * (xlogy(response, response) + xlogy(1 - response, 1 - response))
    )


_MAX_TABLE = 1 << 12  # largest count whose terms are looked up


def _log_saturated_counts(response: Floats) -> Floats:
    """Return the Poisson log likelihood of each response y at mean y: y log y - y - log y!

    If all responses are small counts, the value is computed only once for each distinct count.
    """
    largest = float(response.max(initial=0.0))
    if largest < min(_MAX_TABLE, len(response)):
        counts = response.astype(np.intp)
        if (counts == response).all():
            return np.asarray(_log_poisson_at_mode(np.arange(largest + 1.0))[counts])
    return _log_poisson_at_mode(response)


def _log_poisson_at_mode(y: Floats) -> Floats:
    return np.asarray(xlogy(y, y) - y - gammaln(y + 1.0))


def log_likelihood(family: str, deviance: float, responses: SaturatedLikelihood) -> float:
    """Return the log likelihood of a fit, given its deviance.

    A free dispersion is estimated as `deviance / n`, as in R's `logLik`.
    """
    n, total = responses.rows, responses.weight
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        if family == "gaussian":
            log_variance = np.log(2 * np.pi * np.float64(deviance) / n)
            return float(responses.log - 0.5 * n * (log_variance + 1.0))
        if family == "gamma":
            shape = np.float64(total) / deviance
            per_weight = shape * (np.log(shape) - 1.0) - gammaln(shape) - 0.5
            return float(responses.log + total * per_weight)
    return responses.log - 0.5 * deviance
