"""What a score costs where the truth is a number: the families of generalised linear models.

The mean of a response is mu = g^-1(s), with s the score plus the offset of the row. A row costs
half its deviance, and its curvature is the expected one (McCullagh & Nelder 1989, section 2.3):

    gaussian  V = 1          l = (y - mu)^2 / 2
    poisson   V = mu         l = y log(y / mu) - (y - mu)
    gamma     V = mu^2       l = (y - mu) / mu - log(y / mu)
    binomial  V = mu(1-mu)   l = y log(y / mu) + (1 - y) log((1 - y) / (1 - mu))

    l' = -(y - mu) mu' / V          E l'' = mu'^2 / V

Of a binomial row y is the share of successes and the weight the number of trials; its links are
two-sided, as in `moments.losses`. A score for which there is no mean (a negative one where 1 / s
is to be positive) costs infinity, so that a step that leads there is taken back.

The response is column 0 of `Block.responses`, the offset column 1, if there is one.

A loss with a wall at the edge of its means, for fits whose least lies on that edge.

Means of some links end where rows may be fitted without cost:

    binomial  log              a share of 1 at the score 0, scores below it
    poisson   identity, sqrt   a count of 0 at the score 0, scores above it

Such a row, at a distance a > 0 from its edge, costs -push log a more. The least of the whole is
inside, and as push shrinks it goes to the least there is, on the edge or not: rows then pull at
their edge by push / a, which are the multipliers of that least (Boyd & Vandenberghe 2004, 11.2).
Curvature is the observed one, which is convex here. The expected one is infinite at the edge, and
steps by it stop short of it.

What a log likelihood has of the responses alone: that of means which are the responses.

    log likelihood = that, less half the deviance over the dispersion

So a fit needs only its deviance. As R's `logLik`, the dispersion is deviance / n where a family has
one to be estimated, and it counts as one more number in AIC and BIC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, ndtri, xlog1py, xlogy

from discriminant.moments.loss import ScoreDerivatives, Want
from discriminant.moments.softmax_loss import LINK_TAILS, LinkTails
from discriminant.table.blocks import Block, Floats

# For each family its links, the canonical one first; as R's.
LINKS: dict[str, tuple[str, ...]] = {
    "gaussian": ("identity", "log", "inverse"),
    "binomial": ("logit", "probit", "cloglog", "cauchit", "log"),
    "poisson": ("log", "identity", "sqrt"),
    "gamma": ("inverse", "log", "identity"),
}
FREE_DISPERSION = ("gaussian", "gamma")  # its dispersion is estimated; that of the others is one


class RowDerivatives(NamedTuple):
    """A loss and its derivatives by the score, row by row, before weights."""

    loss: Floats  # (n,)
    slope: Floats  # (n,)
    curvature: Floats  # (n,) expected, not negative


@dataclass(frozen=True, slots=True)
class Deviance:
    """Half the deviance of responses of one family, whose mean is tied to the score by a link."""

    family: str
    link: str

    @property
    def columns(self) -> int:
        """One score."""
        return 1

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """Loss and derivatives."""
        response, offset = response_and_offset(tile)
        told = self.rows(scores[0] if offset is None else scores[0] + offset, response)
        return weighted_sums(told, tile.weight, want)

    def rows(self, scores: Floats, response: Floats) -> RowDerivatives:
        """Loss and derivatives of each row."""
        with np.errstate(all="ignore"):
            if self.family == "binomial":
                return _binomial(scores, response, self.link)
            return _told(scores, response, self.family, self.link)

    def mean(self, scores: Floats) -> Floats:
        """Mean of the response at scores that hold the offset."""
        with np.errstate(all="ignore"):
            if self.family == "binomial":
                return np.asarray(np.exp(_two_sided(scores, self.link).log_one))
            return MEANS[self.link](scores)[0]


@dataclass(frozen=True, slots=True)
class StartingFit:
    """Least squares to the link of means near the responses: where R's glm starts.

        l = v (s - g(mu_0))^2 / 2        v = mu'^2 / V at mu_0

    It is quadratic, so that one pass leads to its end.
    """

    deviance: Deviance
    level: float  # a mean that stands in where a response has no link

    @property
    def columns(self) -> int:
        """One score."""
        return 1

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """Loss and derivatives."""
        response, offset = response_and_offset(tile)
        near = self._near(response, tile.weight)
        curve = self.deviance.rows(near, response).curvature
        curve = np.where(np.isfinite(curve), curve, 0.0)
        apart = scores[0] - near if offset is None else scores[0] + offset - near
        told = RowDerivatives(0.5 * curve * apart * apart, curve * apart, curve)
        return weighted_sums(told, tile.weight, want)

    def _near(self, response: Floats, weight: Floats | None) -> Floats:
        """Scores of means near the responses."""
        if self.deviance.family == "binomial":
            trials = 1.0 if weight is None else weight
            mean = (trials * response + 0.5) / (trials + 1.0)
        else:
            mean = response + 0.1 if self.deviance.family == "poisson" else response
            if self.deviance.link != "identity":
                least = 1e-3 * abs(self.level)  # nearer to zero the link would outweigh all else
                mean = np.where(np.sign(self.level) * mean > least, mean, self.level)
        return SCORES[self.deviance.link](mean)


@dataclass(frozen=True, slots=True)
class Pearson:
    """Half of (y - mu)^2 / V: its sum over the degrees of freedom is the dispersion."""

    deviance: Deviance

    @property
    def columns(self) -> int:
        """One score."""
        return 1

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """The loss alone; its derivatives are not asked for, and are zero."""
        response, offset = response_and_offset(tile)
        told = self.deviance.rows(scores[0] if offset is None else scores[0] + offset, response)
        with np.errstate(all="ignore"):
            squares = np.where(told.curvature > 0, told.slope**2 / told.curvature, 0.0)
        none = np.zeros_like(squares)
        return weighted_sums(RowDerivatives(0.5 * squares, none, none), tile.weight, want)


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


def log_share(scores: Floats) -> LinkTails:
    """mu = exp(s) for s < 0."""
    rest = -np.expm1(scores)
    return LinkTails(scores, np.log(rest), np.ones_like(scores), np.exp(scores) / rest)


def _two_sided(scores: Floats, link: str) -> LinkTails:
    return log_share(scores) if link == "log" else LINK_TAILS[link](scores)


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


def _told(scores: Floats, response: Floats, family: str, link: str) -> RowDerivatives:
    mean, rate = MEANS[link](scores)
    bad = ~np.isfinite(mean)
    if family != "gaussian" or link == "sqrt":
        bad |= mean <= 0
    if bad.any():
        mean, rate = np.where(bad, 1.0, mean), np.where(bad, 0.0, rate)
    apart = response - mean
    pull = rate / _variance(mean, family)
    loss = np.where(bad, np.inf, half_deviance(response, mean, family))
    return RowDerivatives(loss, -apart * pull, rate * pull)


def _variance(mean: Floats, family: str) -> Floats:
    if family == "gaussian":
        return np.ones_like(mean)
    return mean if family == "poisson" else mean * mean


def half_deviance(response: Floats, mean: Floats, family: str) -> Floats:
    """(n,) half the deviance of each response from a mean."""
    if family == "binomial":
        rest = 1.0 - response
        apart = xlogy(response, response) + xlogy(rest, rest)
        return np.asarray(apart - xlogy(response, mean) - xlog1py(rest, -mean))
    apart = response - mean
    if family == "gaussian":
        return 0.5 * apart * apart
    if family == "gamma":
        return _beyond(apart / mean, response / mean)
    some = response > 0
    safe = np.where(some, response, 1.0)
    return np.where(some, safe * _beyond(-apart / safe, mean / safe), mean)


def _beyond(part: Floats, ratio: Floats) -> Floats:
    """part - log ratio, where ratio = 1 + part; from what keeps its digits."""
    return part - np.where(np.abs(part) < 0.5, np.log1p(part), np.log(ratio))


def _binomial(scores: Floats, share: Floats, link: str) -> RowDerivatives:
    bad = ~np.isfinite(scores)
    if link == "log":
        bad |= scores >= 0
    some = bool(bad.any())
    scores = np.where(bad, -1.0, scores) if some else scores
    rest = 1.0 - share
    told = _logit(scores, share, rest) if link == "logit" else _linked(scores, share, rest, link)
    loss = told.loss
    if ((share > 0) & (rest > 0)).any():  # else the saturated log likelihood is zero
        loss = loss + xlogy(share, share) + xlogy(rest, rest)
    return RowDerivatives(np.where(bad, np.inf, loss) if some else loss, told.slope, told.curvature)


def _linked(scores: Floats, share: Floats, rest: Floats, link: str) -> RowDerivatives:
    found = _two_sided(scores, link)
    gained = np.where(share > 0, share * found.log_one, 0.0)
    gained += np.where(rest > 0, rest * found.log_zero, 0.0)
    slope = rest * found.hazard_zero - share * found.hazard_one
    return RowDerivatives(-gained, slope, found.hazard_one * found.hazard_zero)


def _logit(scores: Floats, share: Floats, rest: Floats) -> RowDerivatives:
    """The logit, with few passes over the rows: log(1 + exp s) - y s, exact in both tails."""
    small = np.exp(-np.abs(scores))
    near = 1.0 / (1.0 + small)
    far = small * near
    up = scores >= 0
    loss = np.log1p(small) + np.where(up, rest, -share) * scores
    slope = rest * np.where(up, near, far) - share * np.where(up, far, near)
    return RowDerivatives(loss, slope, near * far)


# --- rows -------------------------------------------------------------------------------------


def response_and_offset(tile: Block) -> tuple[Floats, Floats | None]:
    """The response of each row, and its offset."""
    assert tile.responses is not None
    some = tile.responses.shape[1] > 1
    return tile.responses[:, 0], tile.responses[:, 1] if some else None


def weighted_sums(told: RowDerivatives, weight: Floats | None, want: Want) -> ScoreDerivatives:
    """Sums of rows, with their weights; `least` is the smallest curvature of a row that counts."""
    loss, slope, curve = told
    if weight is not None:
        counts = weight > 0
        loss = np.where(counts, loss, 0.0) * weight
        slope, curve = slope * weight, curve * weight
        least = float(curve[counts].min(initial=np.inf))
    else:
        least = float(curve.min(initial=np.inf))
    asked = None if want == "gradient" else curve[None]
    return ScoreDerivatives(float(loss.sum()), slope[None], asked, None, least)


# Where scores end, and on which side of it they are: the response there, and the sign of scores.
BOUNDARIES: dict[tuple[str, str], tuple[float, float]] = {
    ("binomial", "log"): (1.0, -1.0),
    ("poisson", "identity"): (0.0, 1.0),
    ("poisson", "sqrt"): (0.0, 1.0),
}


@dataclass(frozen=True, slots=True)
class BarrierLoss:
    """Half the deviance and a wall; `least` is how near to its edge a row comes."""

    deviance: Deviance
    strength: float

    @property
    def columns(self) -> int:
        """One score."""
        return 1

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """Loss and derivatives."""
        response, offset = response_and_offset(tile)
        score = scores[0] if offset is None else scores[0] + offset
        told, away = self.rows(score, response)
        if tile.weight is not None:
            away = away[tile.weight > 0]
        return replace(
            weighted_sums(told, tile.weight, want), least=float(away.min(initial=np.inf))
        )

    def rows(self, scores: Floats, response: Floats) -> tuple[RowDerivatives, Floats]:
        """Loss and derivatives of each row, and how far it is from its edge."""
        ends, side = BOUNDARIES[self.deviance.family, self.deviance.link]
        loss, slope, _ = self.deviance.rows(scores, response)
        at_end = response == ends
        away = np.where(at_end, side * scores, np.inf)
        safe = np.where(away > 0, away, 1.0)
        wall = np.where(at_end, self.strength / safe, 0.0)
        curve = self._observed(scores, response) + wall / safe
        loss = np.where(at_end, loss - self.strength * np.log(safe), loss)
        return RowDerivatives(loss, slope - side * wall, curve), away

    def _observed(self, scores: Floats, response: Floats) -> Floats:
        """(n,) second derivative of the loss; zero where there is no mean."""
        with np.errstate(all="ignore"):
            if self.deviance.family == "binomial":
                rest = -np.expm1(scores)
                found = (1.0 - response) * np.exp(scores) / (rest * rest)
            else:
                share = response / (scores * scores)
                found = share if self.deviance.link == "identity" else 2.0 + 2.0 * share
        return np.where(np.isfinite(found), found, 0.0)


@dataclass(frozen=True, slots=True)
class SaturatedLikelihood:
    """What the log likelihood has of the responses alone."""

    rows: int  # that count: of positive weight
    weight: float
    log: float  # see `_log_saturated`

    def __add__(self, other: SaturatedLikelihood) -> SaturatedLikelihood:
        return SaturatedLikelihood(
            self.rows + other.rows, self.weight + other.weight, self.log + other.log
        )

    def __radd__(self, other: object) -> SaturatedLikelihood:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True)
class SaturatedLikelihoodReading:
    """Read the responses of one family."""

    family: str

    @property
    def summary_size(self) -> int:
        """Size of the summary."""
        return 3

    def read(self, block: Block) -> SaturatedLikelihood:
        """Sums over the rows of one block."""
        response, _ = response_and_offset(block)
        weight = np.ones(len(block)) if block.weight is None else block.weight
        some = weight > 0
        log = _log_saturated(response[some], weight[some], self.family)
        return SaturatedLikelihood(int(some.sum()), float(weight.sum()), float(log.sum()))


def _log_saturated(response: Floats, weight: Floats, family: str) -> Floats:
    """Log likelihood at mu = y, as far as it does not depend on a dispersion.

    gaussian  log(w) / 2                 gamma     -w log y
    poisson   w (y log y - y - log y!)   binomial  log C(w, w y) + w (y log y + (1-y) log(1-y))
    """
    if family == "gaussian":
        return 0.5 * np.log(weight)
    if family == "gamma":
        return -weight * np.log(response)
    if family == "poisson":
        return weight * (xlogy(response, response) - response - gammaln(response + 1.0))
    hits, rest = weight * response, weight * (1.0 - response)
    ways = gammaln(weight + 1.0) - gammaln(hits + 1.0) - gammaln(rest + 1.0)
    return np.asarray(
        ways + weight * (xlogy(response, response) + xlogy(1 - response, 1 - response))
    )


def log_likelihood(family: str, deviance: float, responses: SaturatedLikelihood) -> float:
    """Log likelihood at a deviance, with the dispersion that R's logLik takes: deviance / n."""
    n, total = responses.rows, responses.weight
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        if family == "gaussian":
            spread = np.log(2 * np.pi * np.float64(deviance) / n)
            return float(responses.log - 0.5 * n * (spread + 1.0))
        if family == "gamma":
            shape = np.float64(total) / deviance
            each = shape * (np.log(shape) - 1.0) - gammaln(shape) - 0.5
            return float(responses.log + total * each)
    return responses.log - 0.5 * deviance
