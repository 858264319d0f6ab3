"""Families and links of generalised linear models: deviance, derivatives and log likelihood.

The mean of a response is mu = g^-1(s), with s the score plus the offset of the row. The loss of a
row is half its deviance, and its curvature is the expected one (McCullagh & Nelder 1989, section
2.3):

    gaussian  V = 1          l = (y - mu)^2 / 2
    poisson   V = mu         l = y log(y / mu) - (y - mu)
    gamma     V = mu^2       l = (y - mu) / mu - log(y / mu)
    binomial  V = mu(1-mu)   l = y log(y / mu) + (1 - y) log((1 - y) / (1 - mu))

    l' = -(y - mu) mu' / V          E l'' = mu'^2 / V

For a binomial row, y is the share of successes and the weight the number of trials; its links are
computed in both tails, as in `moments.softmax_loss`. A score without a mean (a negative one where
1 / s must be positive) has infinite loss, so that a step that leads there is undone. The response
is column 0 of `Block.responses`, the offset column 1, if there is one.

The means of some links end where rows may be fitted without loss:

    binomial  log              a share of 1 at the score 0, scores below it
    poisson   identity, sqrt   a count of 0 at the score 0, scores above it

If the optimum lies on such a boundary, `BarrierLoss` adds -strength log a for these rows, at a
distance a > 0 from their boundary. The optimum is then in the interior, and as the strength
decreases it converges to the constrained one; strength / a converges to the multipliers (Boyd &
Vandenberghe 2004, 11.2). The curvature is the observed one, which is convex here. The expected one
is infinite at the boundary, and steps with it stop short of it.

`SaturatedLikelihood` is the log likelihood of means equal to the responses, from which

    log likelihood = saturated log likelihood - deviance / (2 dispersion)

so a fit needs only its deviance. As in R's `logLik`, the dispersion is deviance / n where a family
estimates one, and it counts as one more parameter in AIC and BIC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, ndtri, xlog1py, xlogy

from discriminant.moments.loss import ScoreDerivatives, Want
from discriminant.moments.softmax_loss import LINK_TAILS, LinkTails
from discriminant.moments.summary_base import Summable
from discriminant.table.blocks import Block, Floats

# Links of each family, the default of R first.
LINKS: dict[str, tuple[str, ...]] = {
    "gaussian": ("identity", "log", "inverse"),
    "binomial": ("logit", "probit", "cloglog", "cauchit", "log"),
    "poisson": ("log", "identity", "sqrt"),
    "gamma": ("inverse", "log", "identity"),
}
FREE_DISPERSION = (
    "gaussian",
    "gamma",
)  # families whose dispersion is estimated; it is one for the others


class RowDerivatives(NamedTuple):
    """Loss of each row and its derivatives by the score, before weights."""

    loss: Floats  # (n,)
    slope: Floats  # (n,)
    curvature: Floats  # (n,) expected, not negative


@dataclass(frozen=True, slots=True)
class Deviance:
    """Half the deviance of responses of one family with one link."""

    family: str
    link: str

    @property
    def columns(self) -> int:
        """Number of scores: one."""
        return 1

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """Return loss and derivatives."""
        response, offset = response_and_offset(tile)
        derivatives = self.rows(scores[0] if offset is None else scores[0] + offset, response)
        return weighted_sums(derivatives, tile.weight, want)

    def rows(self, scores: Floats, response: Floats) -> RowDerivatives:
        """Return loss and derivatives of each row."""
        with np.errstate(all="ignore"):
            if self.family == "binomial":
                return _binomial(scores, response, self.link)
            return _row_derivatives(scores, response, self.family, self.link)

    def mean(self, scores: Floats) -> Floats:
        """Return the mean of the response at scores that include the offset."""
        with np.errstate(all="ignore"):
            if self.family == "binomial":
                return np.asarray(np.exp(_link_tails(scores, self.link).log_one))
            return MEANS[self.link](scores)[0]


@dataclass(frozen=True, slots=True)
class StartingFit:
    """Least squares to the link of means near the responses: where R's glm starts.

        l = v (s - g(mu_0))^2 / 2        v = mu'^2 / V at mu_0

    It is quadratic, so that one pass leads to its minimum.
    """

    deviance: Deviance
    level: float  # mean used where the link of a response is undefined

    @property
    def columns(self) -> int:
        """Number of scores: one."""
        return 1

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """Return loss and derivatives."""
        response, offset = response_and_offset(tile)
        target = self._target_scores(response, tile.weight)
        curvature = self.deviance.rows(target, response).curvature
        curvature = np.where(np.isfinite(curvature), curvature, 0.0)
        residual = scores[0] - target if offset is None else scores[0] + offset - target
        derivatives = RowDerivatives(
            0.5 * curvature * residual * residual, curvature * residual, curvature
        )
        return weighted_sums(derivatives, tile.weight, want)

    def _target_scores(self, response: Floats, weight: Floats | None) -> Floats:
        """Return scores of means near the responses."""
        if self.deviance.family == "binomial":
            trials = 1.0 if weight is None else weight
            mean = (trials * response + 0.5) / (trials + 1.0)
        else:
            mean = response + 0.1 if self.deviance.family == "poisson" else response
            if self.deviance.link != "identity":
                smallest = 1e-3 * abs(
                    self.level
                )  # nearer to zero, one row would outweigh all others
                mean = np.where(np.sign(self.level) * mean > smallest, mean, self.level)
        return SCORES[self.deviance.link](mean)


@dataclass(frozen=True, slots=True)
class Pearson:
    """Half of (y - mu)^2 / V: its sum over the degrees of freedom is the dispersion."""

    deviance: Deviance

    @property
    def columns(self) -> int:
        """Number of scores: one."""
        return 1

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """Return the loss; its derivatives are not needed, and are zero."""
        response, offset = response_and_offset(tile)
        derivatives = self.deviance.rows(
            scores[0] if offset is None else scores[0] + offset, response
        )
        with np.errstate(all="ignore"):
            squares = np.where(
                derivatives.curvature > 0, derivatives.slope**2 / derivatives.curvature, 0.0
            )
        zero = np.zeros_like(squares)
        return weighted_sums(RowDerivatives(0.5 * squares, zero, zero), tile.weight, want)


# --- links ------------------------------------------------------------------------------------


def _identity(scores: Floats) -> tuple[Floats, Floats]:
    return scores, np.ones_like(scores)


def _exponential(scores: Floats) -> tuple[Floats, Floats]:
    mean = np.exp(scores)
    return mean, mean


def _reciprocal(scores: Floats) -> tuple[Floats, Floats]:
    mean = 1.0 / scores
    return mean, -mean * mean


def _square(scores: Floats) -> tuple[Floats, Floats]:
    return np.where(scores > 0, scores * scores, -1.0), 2.0 * scores


def log_link(scores: Floats) -> LinkTails:
    """mu = exp(s) for s < 0."""
    rest = -np.expm1(scores)
    return LinkTails(scores, np.log(rest), np.ones_like(scores), np.exp(scores) / rest)


def _link_tails(scores: Floats, link: str) -> LinkTails:
    return log_link(scores) if link == "log" else LINK_TAILS[link](scores)


# mu(s) and mu'(s)
MEANS: dict[str, Callable[[Floats], tuple[Floats, Floats]]] = {
    "identity": _identity,
    "log": _exponential,
    "inverse": _reciprocal,
    "sqrt": _square,
}

# g(mu)
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
    if invalid.any():
        mean, rate = np.where(invalid, 1.0, mean), np.where(invalid, 0.0, rate)
    residual = response - mean
    rate_over_variance = rate / _variance(mean, family)
    loss = np.where(invalid, np.inf, half_deviance(response, mean, family))
    return RowDerivatives(loss, -residual * rate_over_variance, rate * rate_over_variance)


def _variance(mean: Floats, family: str) -> Floats:
    if family == "gaussian":
        return np.ones_like(mean)
    return mean if family == "poisson" else mean * mean


def half_deviance(response: Floats, mean: Floats, family: str) -> Floats:
    """Return (n,) half the deviance of each response from a mean."""
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
    safe = np.where(positive, response, 1.0)
    return np.where(positive, safe * _minus_log(-residual / safe, mean / safe), mean)


def _minus_log(part: Floats, ratio: Floats) -> Floats:
    """Return part - log ratio, where ratio = 1 + part, without cancellation."""
    return part - np.where(np.abs(part) < 0.5, np.log1p(part), np.log(ratio))


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
    if ((share > 0) & (rest > 0)).any():  # else the saturated log likelihood is zero
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
    """Return loss and derivatives of the logit: log(1 + exp s) - y s, exact in both tails."""
    small = np.exp(-np.abs(scores))
    near = 1.0 / (1.0 + small)
    far = small * near
    up = scores >= 0
    loss = np.log1p(small) + np.where(up, rest, -share) * scores
    slope = rest * np.where(up, near, far) - share * np.where(up, far, near)
    return RowDerivatives(loss, slope, near * far)


# --- rows -------------------------------------------------------------------------------------


def response_and_offset(tile: Block) -> tuple[Floats, Floats | None]:
    """Return the response of each row, and its offset or None."""
    assert tile.responses is not None
    has_offset = tile.responses.shape[1] > 1
    return tile.responses[:, 0], tile.responses[:, 1] if has_offset else None


def weighted_sums(
    derivatives: RowDerivatives, weight: Floats | None, want: Want
) -> ScoreDerivatives:
    """Return weighted sums; `least` is the smallest curvature of a row of positive weight."""
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


# Response at the boundary of the means, and the sign of the scores inside.
BOUNDARIES: dict[tuple[str, str], tuple[float, float]] = {
    ("binomial", "log"): (1.0, -1.0),
    ("poisson", "identity"): (0.0, 1.0),
    ("poisson", "sqrt"): (0.0, 1.0),
}


@dataclass(frozen=True, slots=True)
class BarrierLoss:
    """Half the deviance plus a log barrier; `least` is the smallest distance from the boundary."""

    deviance: Deviance
    strength: float

    @property
    def columns(self) -> int:
        """Number of scores: one."""
        return 1

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """Return loss and derivatives."""
        response, offset = response_and_offset(tile)
        score = scores[0] if offset is None else scores[0] + offset
        derivatives, distance = self.rows(score, response)
        if tile.weight is not None:
            distance = distance[tile.weight > 0]
        return replace(
            weighted_sums(derivatives, tile.weight, want), least=float(distance.min(initial=np.inf))
        )

    def rows(self, scores: Floats, response: Floats) -> tuple[RowDerivatives, Floats]:
        """Return loss and derivatives of each row, and its distance from the boundary."""
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
        """Return (n,) the second derivative of the loss; zero where there is no mean."""
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
    """Saturated log likelihood: the terms that depend on the responses alone."""

    rows: int  # of positive weight
    weight: float
    log: float  # see `_log_saturated`

    def __add__(self, other: SaturatedLikelihood) -> SaturatedLikelihood:
        return SaturatedLikelihood(
            self.rows + other.rows, self.weight + other.weight, self.log + other.log
        )


@dataclass(frozen=True, slots=True)
class SaturatedLikelihoodReading:
    """Sum the saturated log likelihood of one family."""

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
    """Return the log likelihood at mu = y, without terms of the dispersion.

    gaussian  log(w) / 2                 gamma     -w log y
    poisson   w (y log y - y - log y!)   binomial  log C(w, w y) + w (y log y + (1-y) log(1-y))
    """
    if family == "gaussian":
        return 0.5 * np.log(weight)
    if family == "gamma":
        return -weight * np.log(response)
    if family == "poisson":
        return weight * (xlogy(response, response) - response - gammaln(response + 1.0))
    successes, failures = weight * response, weight * (1.0 - response)
    log_binomial = gammaln(weight + 1.0) - gammaln(successes + 1.0) - gammaln(failures + 1.0)
    return np.asarray(
        log_binomial + weight * (xlogy(response, response) + xlogy(1 - response, 1 - response))
    )


def log_likelihood(family: str, deviance: float, responses: SaturatedLikelihood) -> float:
    """Return the log likelihood at a deviance, with dispersion deviance / n as in R's logLik."""
    n, total = responses.rows, responses.weight
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        if family == "gaussian":
            log_variance = np.log(2 * np.pi * np.float64(deviance) / n)
            return float(responses.log - 0.5 * n * (log_variance + 1.0))
        if family == "gamma":
            shape = np.float64(total) / deviance
            each = shape * (np.log(shape) - 1.0) - gammaln(shape) - 0.5
            return float(responses.log + total * each)
    return responses.log - 0.5 * deviance
