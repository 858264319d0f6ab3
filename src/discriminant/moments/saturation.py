"""What a log likelihood has of the responses alone: that of means which are the responses.

    log likelihood = that, less half the deviance over the dispersion

So a fit needs only its deviance. As R's `logLik`, the dispersion is deviance / n where a family has
one to be estimated, and it counts as one more number in AIC and BIC.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, xlogy

from discriminant.moments.families import answers
from discriminant.table.schema import Block, Floats


@dataclass(frozen=True, slots=True)
class Saturation:
    """What the log likelihood has of the responses alone."""

    rows: int  # that count: of positive weight
    weight: float
    log: float  # see `_log_saturated`

    def __add__(self, other: Saturation) -> Saturation:
        return Saturation(self.rows + other.rows, self.weight + other.weight, self.log + other.log)

    def __radd__(self, other: object) -> Saturation:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True)
class SaturationReading:
    """Read the responses of one family."""

    family: str

    @property
    def numbers(self) -> int:
        """Size of the summary."""
        return 3

    def read(self, block: Block) -> Saturation:
        """Sums over the rows of one block."""
        response, _ = answers(block)
        weight = np.ones(len(block)) if block.weight is None else block.weight
        some = weight > 0
        log = _log_saturated(response[some], weight[some], self.family)
        return Saturation(int(some.sum()), float(weight.sum()), float(log.sum()))


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


def log_likelihood(family: str, deviance: float, responses: Saturation) -> float:
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
