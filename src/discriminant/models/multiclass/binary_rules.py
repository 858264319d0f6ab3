"""Two-class rules of an output code, fitted from class moments.

The moments of a side are the sum of those of its classes, so no row is read again, whether the code
has K columns or thousands. Where every two-class rule is linear,

    f_m(x) = u . (w_m1 - w_m0) + (b_m1 - b_m0)

are the rows of one matrix, so that all rules are one product, about an origin near all rows.

For LDA all columns are fitted at once. For a column with sides s of weights n_s, means m_s and
scatter W within its classes:

    S = W + sum over its classes of n_k (m_k - m_s)(m_k - m_s)'      the scatter within the sides
    w = C^-1 (m_1 - m_0),   f(u) = w . (u - (m_0 + m_1) / 2) + log prior_1 / prior_0

with C = S over its degrees of freedom, shrunk as the family says. The scatters of many columns are
a few products; each C is factorised once. A column whose C is nearly singular is left to the
two-class rule itself, which warns about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.special import expit

from discriminant.errors import add_context
from discriminant.models.gaussian.covariance import Denominator, shrink
from discriminant.models.gaussian.family import GaussianFamily
from discriminant.models.linear.least_squares import IndicatorRule
from discriminant.models.multiclass.codes import OutputCode, Signs
from discriminant.models.multiclass.decode import couple_probabilities
from discriminant.models.rules import LinearRule, Rule
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Features, Floats, Labels

SIDES = np.array([0, 1])  # the labels of the two-class problems: negative, positive


@dataclass(frozen=True, slots=True, eq=False)
class BinaryRules:
    """Rules of M two-class problems."""

    rules: tuple[Rule, ...]  # M, or none where all are linear and `line` is enough
    line: LinearRule | None  # M rows

    @classmethod
    def from_rules(cls, rules: Sequence[Rule], anchor: Anchor) -> BinaryRules:
        """Combine rules, stacked into one about `anchor` where every rule is linear."""
        lines = [_line(rule) for rule in rules]
        whole = all(isinstance(rule, LinearRule) for rule in rules)
        found = [line for line in lines if line is not None]
        stacked = stack_rules(found, anchor) if len(found) == len(rules) else None
        return cls(() if whole else tuple(rules), stacked)

    def scores(self, features: Features) -> Floats:
        """(n, M) decision value of each rule: positive for its positive side."""
        if self.line is not None:
            return self.line.finite_values(features)
        return self.log_odds(features)

    def log_odds(self, features: Features) -> Floats:
        """(n, M) log odds of the positive side."""
        if not self.rules:
            return self.scores(features)
        return np.column_stack([_odds(rule.scores(features)) for rule in self.rules])


@dataclass(frozen=True, slots=True, eq=False)
class OutputCodeRule:
    """Rule of K classes from an output code and its two-class rules."""

    code: OutputCode
    members: BinaryRules

    @property
    def labels(self) -> Labels:
        """(K,) classes."""
        return self.code.labels

    def scores(self, features: Features) -> Floats:
        """(n, K) logs of the coupled probabilities; exact in the tails for two classes."""
        odds = self.members.log_odds(features)
        return log_coupled_probabilities(odds, self.code)


def log_coupled_probabilities(odds: Floats, code: OutputCode) -> Floats:
    """(n, K) log probabilities from log odds (n, M) of the positive sides."""
    if code.signs.shape == (2, 1):
        second = odds[:, 0] * code.signs[1, 0]
        return np.column_stack([-np.logaddexp(0.0, second), -np.logaddexp(0.0, -second)])
    return np.asarray(np.log(couple_probabilities(expit(odds), code.signs)))


def fit_binary_rules(
    moments: Any, code: OutputCode, *, rule_from: Callable[[Any], Rule]
) -> tuple[Rule, ...]:
    """Fit the rule of each column, from the moments of its two sides."""
    columns = range(code.signs.shape[1])
    return tuple(fit_column(moments, code, m, rule_from=rule_from) for m in columns)


def fit_column(
    moments: Any, code: OutputCode, column: int, *, rule_from: Callable[[Any], Rule]
) -> Rule:
    """Fit the rule of one column; its warnings name the classes of both sides."""
    with add_context(code.describe_column(column)):
        return rule_from(group_sides(moments, code, column))


def group_sides(moments: Any, code: OutputCode, column: int) -> Any:
    """Moments of the two sides of a column, labelled 0 and 1."""
    side = code.signs[:, column]
    labels = moments.labels
    if not side.all():
        moments = moments.classes(labels[side != 0].tolist())
    groups = {0: labels[side < 0].tolist(), 1: labels[side > 0].tolist()}
    return moments.group(groups)


def stack_rules(lines: Sequence[LinearRule], anchor: Anchor) -> LinearRule:
    """Stack two-class rules as rows of one: second minus first, all about `anchor`."""
    coef = np.stack([_between(line.coef) for line in lines])
    intercept = np.array([_between(line.intercept) for line in lines])
    away = np.stack([(line.anchor.origin - anchor.origin) / anchor.unit for line in lines])
    ratio = np.stack([anchor.unit / line.anchor.unit for line in lines])
    coef = coef * ratio
    return LinearRule(
        np.arange(len(lines)), anchor, coef, intercept - np.einsum("md,md->m", coef, away)
    )


def _between(of_class: Floats) -> Any:
    """Second minus first, unless there is only the difference."""
    return of_class[0] if len(of_class) == 1 else of_class[1] - of_class[0]


def _line(rule: Rule) -> LinearRule | None:
    """Linear scores of a rule, or its linear fitted values; None if it has neither."""
    if isinstance(rule, IndicatorRule):
        return rule.line if rule.basis is None else None
    return rule if isinstance(rule, LinearRule) else None


def _odds(scores: Floats) -> Floats:
    """(n,) second minus first, clipped where a membership is zero."""
    with np.errstate(invalid="ignore"):
        return np.clip(scores[:, 1] - scores[:, 0], -745.0, 745.0)


_NUMBERS = 1 << 21  # of the scatters held at a time
_CLEAR = 1e-9  # reciprocal condition of standardised columns from which nothing is to be said
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class SideMoments:
    """Moments of the two sides of C columns."""

    rows: Floats  # (C,)
    weight: Floats  # (C, 2)
    weight2: Floats  # (C, 2)
    mean: Floats  # (C, 2, d)
    scatter: Floats  # (C, d, d) within the sides

    @classmethod
    def of(cls, moments: ClassMoments, signs: Signs) -> SideMoments:
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


def fit_linear_rules(
    moments: ClassMoments,
    code: OutputCode,
    *,
    family: GaussianFamily,
    prior: Callable[[Floats], Floats],
    rule_from: Callable[[ClassMoments], Rule],
) -> BinaryRules:
    """Fit all columns for a linear family; `prior` maps two weights to two priors."""
    anchor, moved = moments.anchor.shift(moments.centre)
    M, d = code.signs.shape[1], len(moments.features)
    coef, intercept = np.empty((M, d)), np.empty(M)
    for columns in _spans(M, d):
        sides = SideMoments.of(moments, code.signs[:, columns])
        log_prior = np.log([prior(pair) for pair in sides.weight])
        coef[columns] = _slopes(sides, family, moments.anchor.unit)
        middle = sides.mean.mean(axis=1) - moved
        intercept[columns] = log_prior[:, 1] - log_prior[:, 0]
        intercept[columns] -= np.vecdot(coef[columns], middle)
    for m in np.flatnonzero(np.isnan(coef[:, 0])):
        rule = fit_column(moments, code, int(m), rule_from=rule_from)
        assert isinstance(rule, LinearRule)
        line = stack_rules([rule], anchor)
        coef[m], intercept[m] = line.coef[0], line.intercept[0]
    return BinaryRules((), LinearRule(np.arange(M), anchor, coef, intercept))


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


def _slopes(sides: SideMoments, family: GaussianFamily, unit: Floats) -> Floats:
    """(C, d) C^-1 (m_1 - m_0), NaN where C is nearly singular."""
    degrees = sides.degrees(family.denominator)
    slopes = np.full((len(degrees), sides.mean.shape[2]), np.nan)
    least = 64 * _EPS * sides.weight.sum(axis=1)  # as in `pooled_degrees`, which then refuses
    enough = np.flatnonzero((sides.rows > 2) & (degrees > least))
    scatter = np.broadcast_to(sides.scatter, (len(degrees), *sides.scatter.shape[-2:]))
    amount = float(family.shrinkage)
    for m in enough:
        covariance = shrink(scatter[m] / degrees[m], amount, family.target, unit)
        sure = (16 * _EPS * np.abs(sides.mean[m]).max(axis=0)) ** 2
        if (np.diagonal(covariance) > sure).all():
            slopes[m] = _solved(covariance, sides.mean[m, 1] - sides.mean[m, 0])
    return slopes


def _solved(covariance: Floats, apart: Floats) -> Floats | float:
    """C^-1 apart by standardised columns; NaN where digits would be lost."""
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
