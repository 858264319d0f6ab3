"""Maximum a posteriori (MAP) means and covariances under a normal-inverse-Wishart prior.

The prior of the mean and the covariance of a class is

    mean_k ~ N(m, S_k / strength)      S_k ~ inverse Wishart(scale, degrees)

With n rows in class k, their mean x, scatter W and d features, the joint posterior mode is (Murphy
2012, "Machine learning", section 4.6.3; Fraley and Raftery 2007)

    mean_k = (strength m + n x) / (strength + n)
    S_k    = (scale + W + strength n / (strength + n) (x - m)(x - m)') / (degrees + n + d + 2)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.linalg import eigvalsh

from discriminant.errors import OptionError
from discriminant.models.gaussian.covariance import Denominator, pooled_covariance
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Floats

MapPrior = Mapping[str, Any]
_ENTRIES = ("mean", "strength", "scale", "degrees")
_STRENGTH = 0.01  # as in mclust
_OPTION = "map_prior"


@dataclass(frozen=True, slots=True, eq=False)
class NormalInverseWishart:
    """Prior of the mean and covariance of every class, in units of the anchor of some moments."""

    mean: Floats  # (d,)
    strength: float
    scale: Floats  # (d, d)
    degrees: float

    def posterior_mode(self, moments: ClassMoments) -> ClassMoments:
        """Return moments whose means and covariances (denominator 'ml') are the posterior mode.

        The prior counts as `degrees` rows, so that a class with few rows has an invertible
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
    """Return the prior with the given options, and defaults from the moments for the others.

    The defaults are the mean of all rows, a strength of 0.01, d + 2 degrees of freedom, and the
    pooled covariance times degrees - d - 1 as scale, so that it is the prior mean of S_k. Raise
    `OptionError` if an option is invalid.
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
