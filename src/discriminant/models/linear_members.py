"""All two-class LDA members of a code at once, from the moments of the K classes.

For a column with sides s of weights n_s, means m_s and scatter W within its classes:

    S = W + sum over its classes of n_k (m_k - m_s)(m_k - m_s)'      the scatter within the sides
    w = C^-1 (m_1 - m_0),   f(u) = w . (u - (m_0 + m_1) / 2) + log prior_1 / prior_0

with C = S over its degrees, shrunk as the family says. Sides and scatters of many columns are a few
products; each C is factorised once. A column whose C has no clear inverse is left to the two-class
rule itself, which says what it does about that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from discriminant.models.codes import Code, Signs
from discriminant.models.covariance import Denominator, shrink
from discriminant.models.decomposition import Members, member_rule, stack
from discriminant.models.gaussian import Family
from discriminant.models.rules import LinearRule, Rule
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.schema import Floats

_NUMBERS = 1 << 21  # of the scatters held at a time
_CLEAR = 1e-9  # reciprocal condition of standardised columns from which nothing is to be said
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """Moments of the two sides of C columns."""

    rows: Floats  # (C,)
    weight: Floats  # (C, 2)
    weight2: Floats  # (C, 2)
    mean: Floats  # (C, 2, d)
    scatter: Floats  # (C, d, d) within the sides

    @classmethod
    def of(cls, moments: ClassMoments, signs: Signs) -> Sides:
        on = np.stack([signs == -1, signs == 1]).transpose(2, 0, 1).astype(np.float64)  # (C, 2, K)
        weight, rows = on @ moments.weight, (on @ moments.rows).sum(axis=1)
        mean = on @ (moments.weight[:, None] * moments.mean) / weight[:, :, None]
        scatter = _within(moments, on.sum(axis=1))
        if (on.sum(axis=2) > 1).any():
            own = np.matmul(on.transpose(0, 2, 1), mean)  # (C, K, d) mean of the side of each class
            heavy = np.sqrt(on.sum(axis=1) * moments.weight)[:, :, None]
            apart = heavy * (moments.mean - own)
            scatter = scatter + np.matmul(apart.transpose(0, 2, 1), apart)
        return cls(rows, weight, on @ moments.weight2, mean, scatter)

    def degrees(self, denominator: Denominator) -> Floats:
        """(C,) what the scatters are divided by."""
        total = self.weight.sum(axis=1)
        if denominator == "ml":
            return np.asarray(total)
        if denominator == "unbiased":
            return np.asarray(total - 2.0)
        return np.asarray(total - (self.weight2 / self.weight).sum(axis=1))


def linear_members(
    moments: ClassMoments,
    code: Code,
    *,
    family: Family,
    prior: Callable[[Floats], Floats],
    rule_from: Callable[[ClassMoments], Rule],
) -> Members:
    """Members of a linear family of known shrinkage; `prior` is a function of two weights."""
    anchor, moved = moments.anchor.moved(moments.centre)
    M, d = code.signs.shape[1], len(moments.features)
    coef, intercept = np.empty((M, d)), np.empty(M)
    for columns in _spans(M, d):
        sides = Sides.of(moments, code.signs[:, columns])
        log_prior = np.log([prior(pair) for pair in sides.weight])
        coef[columns] = _slopes(sides, family, moments.anchor.unit)
        middle = sides.mean.mean(axis=1) - moved
        intercept[columns] = log_prior[:, 1] - log_prior[:, 0]
        intercept[columns] -= np.vecdot(coef[columns], middle)
    for m in np.flatnonzero(np.isnan(coef[:, 0])):
        rule = member_rule(moments, code, int(m), rule_from=rule_from)
        assert isinstance(rule, LinearRule)
        line = stack([rule], anchor)
        coef[m], intercept[m] = line.coef[0], line.intercept[0]
    return Members((), LinearRule(np.arange(M), anchor, coef, intercept))


def _spans(columns: int, d: int) -> Iterator[slice]:
    size = max(_NUMBERS // (d * d), 1)
    for lo in range(0, columns, size):
        yield slice(lo, min(lo + size, columns))


def _within(moments: ClassMoments, used: Floats) -> Floats:
    """(C, d, d) the sum of the scatters of the classes used (C, K), or (d, d) of all."""
    if used.all():
        return moments.pooled
    K, d = moments.mean.shape
    return np.asarray(np.dot(used, moments.scatter.reshape(K, d * d)).reshape(-1, d, d))


def _slopes(sides: Sides, family: Family, unit: Floats) -> Floats:
    """(C, d) C^-1 (m_1 - m_0), NaN where that is not clear."""
    degrees = sides.degrees(family.denominator)
    found = np.full((len(degrees), sides.mean.shape[2]), np.nan)
    least = 64 * _EPS * sides.weight.sum(axis=1)  # as in `pooled_degrees`, which then refuses
    enough = np.flatnonzero((sides.rows > 2) & (degrees > least))
    scatter = np.broadcast_to(sides.scatter, (len(degrees), *sides.scatter.shape[-2:]))
    amount = float(family.shrinkage)
    for m in enough:
        covariance = shrink(scatter[m] / degrees[m], amount, family.target, unit)
        sure = (16 * _EPS * np.abs(sides.mean[m]).max(axis=0)) ** 2
        if (np.diagonal(covariance) > sure).all():
            found[m] = _solved(covariance, sides.mean[m, 1] - sides.mean[m, 0])
    return found


def _solved(covariance: Floats, apart: Floats) -> Floats | float:
    """C^-1 apart by way of standardised columns; NaN where digits would be lost."""
    sd = np.sqrt(np.diagonal(covariance))
    standard = covariance / sd[:, None] / sd
    low, fault = lapack.dpotrf(standard, lower=True)
    if fault:
        return float("nan")
    norm = float(np.abs(standard).sum(axis=0).max())
    reciprocal, _ = lapack.dpocon(low, norm, uplo="L")
    if reciprocal < _CLEAR:
        return float("nan")
    return np.asarray(lapack.dpotrs(low, apart / sd, lower=True)[0] / sd)
