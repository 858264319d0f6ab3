"""Bayes error: the smallest possible error for given class densities and priors.

    error    =  1 - integral of max_k P(k) p(x|k)  =  sum_k P(k) error_k
    error_k  =  P(another class has the largest posterior | class k)

For two Gaussian classes with one covariance and squared Mahalanobis distance D^2 of the means, the
log odds of class 2 are normal with mean -+ D^2/2 + t and variance D^2, where t = log P(2)/P(1), so

    error_1 = Phi(-D/2 + t/D)        error_2 = Phi(-D/2 - t/D)

Otherwise the integral is estimated by randomised quasi-Monte Carlo. Points x of each class l are
computed from a Sobol sequence u with a random shift, and

    error_k  =  (1 / P(k)) sum_l P(l) mean over x of class l of  P(k|x) [k is not the largest]

An average of posteriors has a smaller variance than the share of misclassified points. The standard
error comes from independent random shifts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr

from discriminant.errors import OptionError
from discriminant.models.gaussian.covariance import Metric
from discriminant.table.blocks import Floats, Labels

_SHIFTS = 16  # independent random shifts
_EDGE = 2.0**-53  # least distance of the uniform numbers from 0 and 1


@dataclass(frozen=True, slots=True, eq=False)
class BayesError:
    """Error of the best possible classifier, assuming that the class densities are correct."""

    error: float
    standard_error: float  # of `error`; 0 if it is exact
    by_class: Floats  # (K,) probability that a row of the class is misclassified
    classes: Labels  # (K,)
    method: Literal["exact", "quasi-Monte Carlo"]

    def __float__(self) -> float:
        return self.error

    def __repr__(self) -> str:
        accuracy = f"standard error {self.standard_error:.1g}"
        accuracy = "exact" if self.method == "exact" else accuracy
        return f"BayesError({self.error:.6g}, {accuracy})"


def exact_bayes_error(labels: Labels, gap: Floats, metric: Metric, prior: Floats) -> BayesError:
    """Return the Bayes error of two Gaussian classes with one covariance.

    `gap` (d,) is the difference of their means. If the means are equal, the more probable class is
    always predicted, and the first class if both are equally probable.
    """
    distance = float(np.sqrt(metric.squared_distances(gap[None])[0]))
    log_odds = float(np.log(prior[1]) - np.log(prior[0]))
    if distance == 0.0:
        second = log_odds > 0.0
        by_class = np.array([float(second), float(not second)])
    else:
        shift = log_odds / distance * np.array([1.0, -1.0])
        by_class = np.asarray(ndtr(-0.5 * distance + shift))
    return BayesError(float(prior @ by_class), 0.0, by_class, labels, "exact")


def estimate_bayes_error(
    posterior: Callable[[Floats], Floats],
    draw: Callable[[int, Floats], Floats],
    *,
    labels: Labels,
    prior: Floats,
    dimensions: int,
    n: int,
    seed: Any,
) -> BayesError:
    """Estimate the Bayes error by quasi-Monte Carlo.

    Parameters
    ----------
    posterior
        Function that computes posteriors (m, K) from rows (m, d).
    draw
        Function that samples rows (m, d) of a class, given the code of the class and points (m,
        dimensions) that are uniform in the unit cube.
    labels, prior
        (K,) classes and their priors.
    dimensions
        Number of uniform numbers from which one row is computed.
    n
        Number of points for each class; it is rounded up to 16 times a power of two.
    seed
        Seed of the random shifts.
    """
    from scipy.stats import qmc

    count: Any = n
    if isinstance(count, bool) or not isinstance(count, Integral) or int(count) < 1:
        raise OptionError.of("n", n, "a whole number of 1 or more")
    rng = np.random.default_rng(seed)
    power = max(int(np.ceil(np.log2(int(n) / _SHIFTS))), 1)
    points = qmc.Sobol(dimensions, scramble=False).random_base2(power)
    by_class = np.zeros((_SHIFTS, len(prior)))
    for s in range(_SHIFTS):
        uniform = (points + rng.random(dimensions)) % 1.0
        np.clip(uniform, _EDGE, 1.0 - _EDGE, out=uniform)
        for code, share in enumerate(prior):
            probabilities = posterior(draw(code, uniform))
            probabilities[np.arange(len(points)), probabilities.argmax(axis=1)] = 0.0
            by_class[s] += share * probabilities.mean(axis=0)
    by_class /= prior
    errors = by_class @ prior
    return BayesError(
        float(errors.mean()),
        float(errors.std(ddof=1) / np.sqrt(_SHIFTS)),
        by_class.mean(axis=0),
        labels,
        "quasi-Monte Carlo",
    )
