"""Wilks, Pillai, Hotelling-Lawley and Roy: four ways to say that class means differ, each as an F.

Of the eigenvalues l of W^-1 B, in d features with q = K - 1 and v = n - K degrees of freedom and
s = min(d, q):

    Wilks             prod 1 / (1 + l)     Rao's F: with t = sqrt((d^2 q^2 - 4) / (d^2 + q^2 - 5))
                                           (1 if d^2 + q^2 <= 5) and m = v - (d - q + 1) / 2,
                                           (L^(-1/t) - 1) df2 / df1 on d q, m t - d q / 2 + 1
    Pillai            sum l / (1 + l)      P / (s - P) df2 / df1 on s max(d, q), s (v - d + s)
    Hotelling-Lawley  sum l                H df2 / (s df1) on s max(d, q), s (v - d - 1) + 2
    Roy               max l                R df2 / df1 on max(d, q), v - max(d, q) + q;
                                           an upper bound of F, so that its p is a lower bound

These are the approximations of R's summary.manova. Where degrees of freedom are not positive there
is no approximation, and F and p are nan.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import special

from discriminant.table.schema import Floats


@dataclass(frozen=True, slots=True)
class Degrees:
    """Of freedom: of the features, between classes (K - 1) and within them (n - K)."""

    features: int
    between: int
    within: float


@dataclass(frozen=True, slots=True)
class FTest:
    """A statistic and what an F says of it."""

    name: str
    value: float
    f: float
    df1: float
    df2: float
    p: float

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        return asdict(self)


def four_tests(eigenvalues: Floats, degrees: Degrees) -> tuple[FTest, FTest, FTest, FTest]:
    """All four, in the order of the module's table.

    >>> [round(test.f, 6) for test in four_tests(np.array([2.0]), Degrees(1, 1, 4.0))]
    [8.0, 8.0, 8.0, 8.0]
    """
    kept = eigenvalues / (1.0 + eigenvalues)
    return (
        wilks(-float(np.log1p(eigenvalues).sum()), degrees),
        pillai(float(kept.sum()), degrees),
        _hotelling_lawley(float(eigenvalues.sum()), degrees),
        _roy(float(eigenvalues.max(initial=0.0)), degrees),
    )


def wilks(log_value: float, degrees: Degrees, *, skipped: int = 0) -> FTest:
    """Rao's F of the logarithm of Wilks' lambda; of all eigenvalues but the first `skipped`."""
    d, q = degrees.features, degrees.between
    middle = degrees.within - (d - q + 1) / 2
    d, q = d - skipped, q - skipped
    below = d * d + q * q - 5
    t = float(np.sqrt(((d * q) ** 2 - 4) / below)) if below > 0 else 1.0
    df2 = middle * t - d * q / 2 + 1
    return _test("Wilks", float(np.exp(log_value)), np.expm1(-log_value / t), d * q, df2)


def pillai(value: float, degrees: Degrees) -> FTest:
    """The F of Pillai's trace."""
    d, q = degrees.features, degrees.between
    s = min(d, q)
    ratio = value / (s - value) if value < s else np.inf
    return _test("Pillai", value, ratio, s * max(d, q), s * (degrees.within - d + s))


def f_chance(f: float | Floats, df1: float, df2: float) -> Any:
    """P(F > f)."""
    return special.fdtrc(df1, df2, f)


def _hotelling_lawley(value: float, degrees: Degrees) -> FTest:
    d, q = degrees.features, degrees.between
    s = min(d, q)
    df2 = s * (degrees.within - d - 1) + 2
    return _test("Hotelling-Lawley", value, value / s, s * max(d, q), df2)


def _roy(value: float, degrees: Degrees) -> FTest:
    most = max(degrees.features, degrees.between)
    return _test("Roy", value, value, most, degrees.within - most + degrees.between)


def _test(name: str, value: float, ratio: float, df1: float, df2: float) -> FTest:
    if df2 <= 0:
        return FTest(name, value, float("nan"), float(df1), float(df2), float("nan"))
    f = float(ratio) * df2 / df1
    return FTest(name, value, f, float(df1), float(df2), float(f_chance(f, df1, df2)))
