"""Inverse-Wishart priors of class covariances: MAP estimates, and empirical Bayes pooling.

Maximum a posteriori (MAP) estimates. The prior of the mean and the covariance of a class is

    mean_k ~ N(m, S_k / strength)      S_k ~ inverse Wishart(scale, degrees)

With n rows in class k, their mean x, scatter W and d features, the joint posterior mode is (Murphy
2012, "Machine learning", section 4.6.3; Fraley and Raftery 2007)

    mean_k = (strength m + n x) / (strength + n)
    S_k    = (scale + W + strength n / (strength + n) (x - m)(x - m)') / (degrees + n + d + 2)

Empirical Bayes pooling: how similar class covariances are, from their marginal likelihood.
Let the scatter of class k with v_k degrees of freedom be W_k ~ Wishart(v_k, S_k), and let the
covariances vary between classes about the pooled covariance C,

    S_k ~ inverse Wishart(t C, t + d + 1),   so that E S_k = C,   t > 0

If t is small, the class covariances differ; if t is large, they are nearly equal. The mean of S_k
given W_k is

    (W_k + t C) / (v_k + t)

which is Friedman's mixture [(1 - p) W_k + p W] / [(1 - p) v_k + p v] with p = t / (t + v), where W
and v are the sums over all classes. S_k can be integrated out: up to terms that do not depend on t,
with a = t + d + 1 and G the multivariate gamma function of dimension d, log p(W_k | t) is

    log G((a + v_k) / 2) - log G(a / 2) + a / 2 log |t C| - (a + v_k) / 2 log |t C + W_k|

(Haff 1980, "Empirical Bayes estimation of the multivariate normal covariance matrix", Annals of
Statistics 8; Chen 1979 estimates the degrees of freedom by this likelihood). C is replaced by its
estimate. With l_ki the eigenvalues of C^-1 W_k, the determinants are those of C times t^d and the
product of the t + l_ki, so one eigenproblem for each class serves all values of t.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.linalg import eigh, eigvalsh
from scipy.special import digamma, multigammaln

from discriminant.errors import OptionError
from discriminant.models.gaussian.covariance import (
    Denominator,
    class_degrees,
    pooled_covariance,
    pooled_degrees,
)
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Floats

MapPrior = Mapping[str, Any]
_ENTRIES = ("mean", "strength", "scale", "degrees")
_STRENGTH = 0.01  # as in mclust
_OPTION = "map_prior"


@dataclass(frozen=True, slots=True, eq=False)
class NormalInverseWishart:
    """Prior of the mean and covariance of every class, for offsets `(x - origin) / unit`."""

    mean: Floats  # (d,)
    strength: float
    scale: Floats  # (d, d)
    degrees: float

    def posterior_mode(self, moments: ClassMoments) -> ClassMoments:
        """Return moments whose means and 'ml' covariances are the posterior mode.

        The prior has the weight of `degrees` rows, so even a class with few rows has an invertible
        covariance.
        """
        n, d = moments.weight, len(self.mean)
        total = self.strength + n
        away = moments.mean - self.mean
        share = (self.strength * n / total)[:, None, None]
        scatter = self.scale + moments.scatter + share * (away[:, :, None] * away[:, None, :])
        covariance = scatter / (self.degrees + n + d + 2)[:, None, None]
        return replace(
            moments,
            rows=moments.rows + int(self.degrees),
            mean=(self.strength * self.mean + n[:, None] * moments.mean) / total[:, None],
            scatter=covariance * n[:, None, None],
        )


def conjugate_prior(
    options: MapPrior | Literal["default"], moments: ClassMoments, denominator: Denominator
) -> NormalInverseWishart:
    """Return the prior with the given options; options that are missing are set from the moments.

    The defaults are the mean of all rows, a strength of 0.01, d + 2 degrees of freedom, and a scale
    of (degrees - d - 1) times the pooled covariance, so that the prior mean of S_k is the pooled
    covariance. Raise `OptionError` if an option is invalid.
    """
    if isinstance(options, str) and options == "default":
        options = {}
    if not isinstance(options, Mapping) or not set(options) <= set(_ENTRIES):
        allowed = f"None, 'default' or a dict with entries among {', '.join(_ENTRIES)}"
        raise OptionError.of(_OPTION, options, allowed)
    d, unit = len(moments.features), moments.anchor.unit
    strength, degrees = (
        _number(name, options.get(name, default))
        for name, default in (("strength", _STRENGTH), ("degrees", d + 2.0))
    )
    if strength < 0:
        raise OptionError.of(f"{_OPTION}['strength']", strength, "0 or more")
    if degrees <= d - 1:
        raise OptionError.of(f"{_OPTION}['degrees']", degrees, f"more than {d - 1} (features - 1)")
    mean = moments.centre
    if "mean" in options:
        mean = (_array("mean", options["mean"], (d,)) - moments.anchor.origin) / unit
    if "scale" in options:
        scale = _array("scale", options["scale"], (d, d))
        if not np.allclose(scale, scale.T) or eigvalsh(scale)[0] <= 0:
            raise OptionError.of(f"{_OPTION}['scale']", scale, "symmetric and positive definite")
        scale = scale / (unit[:, None] * unit)
    else:
        if degrees <= d + 1:
            allowed = f"more than {d + 1} (features + 1) without 'scale'"
            raise OptionError.of(f"{_OPTION}['degrees']", degrees, allowed)
        scale = pooled_covariance(moments, denominator) * (degrees - d - 1)
    return NormalInverseWishart(mean, strength, scale, degrees)


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise OptionError.of(f"{_OPTION}['{name}']", value, "a finite number")
    return number


def _array(name: str, value: Any, shape: tuple[int, ...]) -> Floats:
    try:
        values = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.zeros(0)
    if values.shape != shape or not np.isfinite(values).all():
        allowed = f"an array of shape {shape} of finite numbers"
        raise OptionError.of(f"{_OPTION}['{name}']", value, allowed)
    return values


_GRID = np.geomspace(1e-3, 1e5, 60)  # t relative to the mean of v_k
_EPS = float(np.finfo(np.float64).eps)


def friedman_pooling(moments: ClassMoments, denominator: Denominator) -> float:
    """Return the pooling p for which Friedman's mixture has the largest marginal likelihood."""
    from scipy.optimize import brentq

    degrees = class_degrees(moments, denominator)
    total = pooled_degrees(moments, denominator)
    eigenvalues = scatter_eigenvalues(moments, total)
    if not eigenvalues.size:
        return 0.5  # no feature varies within classes
    grid = total / len(degrees) * _GRID
    best = int(np.argmax([marginal_log_likelihood(t, eigenvalues, degrees) for t in grid]))
    t, low, high = grid[best], grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    slopes = [marginal_slope(each, eigenvalues, degrees) for each in (low, high)]
    if slopes[0] > 0.0 > slopes[1]:  # otherwise the maximum is at an end of the grid
        t = brentq(marginal_slope, low, high, args=(eigenvalues, degrees), xtol=1e-300, rtol=1e-14)
    return float(t / (t + total))


def scatter_eigenvalues(moments: ClassMoments, total: float) -> Floats:
    """Return the eigenvalues of C^-1 W_k: class scatter relative to the pooled covariance.

    The result has a row for each class; directions without variance are left out.
    """
    pooled = moments.pooled
    noise = (16 * _EPS * np.abs(moments.mean).max(axis=0, initial=0.0)) ** 2 * total
    varying = np.flatnonzero(np.diagonal(pooled) > noise)
    square = np.ix_(varying, varying)
    sd = np.sqrt(np.diagonal(pooled)[varying] / total)
    scale = sd[:, None] * sd
    if not len(varying):
        return np.zeros((len(moments.labels), 0))
    values, vectors = eigh(pooled[square] / total / scale)
    positive = values > 8 * len(values) * _EPS * values[-1]
    white = vectors[:, positive] / np.sqrt(values[positive])
    rows = [eigvalsh(white.T @ (w[square] / scale) @ white) for w in moments.scatter]
    return np.maximum(np.array(rows), 0.0)


def marginal_log_likelihood(t: float, eigenvalues: Floats, degrees: Floats) -> float:
    """Return the log likelihood of the class scatters for the strength t of the prior.

    This is the sum over classes of log p(W_k | t), up to terms that do not depend on t.
    `eigenvalues` (K, m) holds the eigenvalues of C^-1 W_k, and `degrees` (K,) the v_k.
    """
    m = eigenvalues.shape[1]
    a = t + m + 1.0
    gammas = multigammaln(0.5 * (a + degrees), m) - multigammaln(0.5 * a, m)
    # log |t C| and log |t C + W_k| without log |C|, and both minus d log t: nothing cancels
    dets = np.log1p(eigenvalues / t).sum(axis=1)
    return float((gammas - 0.5 * degrees * m * np.log(t) - 0.5 * (a + degrees) * dets).sum())


def marginal_slope(t: float, eigenvalues: Floats, degrees: Floats) -> float:
    """Return the derivative of `marginal_log_likelihood` with respect to t."""
    m = eigenvalues.shape[1]
    a = t + m + 1.0
    steps = 0.5 * np.arange(m)[:, None]
    gammas = 0.5 * (digamma(0.5 * (a + degrees) - steps) - digamma(0.5 * a - steps)).sum(axis=0)
    dets = 0.5 * np.log1p(eigenvalues / t).sum(axis=1)
    change = 0.5 * (a + degrees) * (eigenvalues / (t * (t + eigenvalues))).sum(axis=1)
    return float((gammas - 0.5 * degrees * m / t - dets + change).sum())
