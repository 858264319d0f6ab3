"""Binary rules: the two-class rules of an output code, fitted from class moments.

A column of the code puts some classes on the positive side of a two-class problem, and others on
the negative side. The moments of a side are the sum of the moments of its classes, so the rows need
not be read again for any column. If every two-class rule is linear, with weights w_m0 and w_m1 of
the two sides of problem m, the decision values

    f_m(x) = u . (w_m1 - w_m0) + (b_m1 - b_m0)

of all rules are computed by one matrix product. The common origin of the rules is near the rows.

For LDA all columns are fitted at once. The two sides s of a column have weights n_s and means m_s.
With W the sum of the scatters of its classes,

    S = W + sum over its classes of n_k (m_k - m_s)(m_k - m_s)'      the scatter within the sides
    w = C^-1 (m_1 - m_0),   f(u) = w . (u - (m_0 + m_1) / 2) + log prior_1 / prior_0

where C is S divided by its degrees of freedom, and shrunk as the family requires. The scatters of
many columns are computed by a few matrix products, and each C is factorised once. If C is nearly
singular, the column is fitted separately, as an ordinary two-class problem, and the fit warns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.special import expit

from discriminant.errors import add_context
from discriminant.models.gaussian.covariance import Denominator, shrink, standard_cholesky
from discriminant.models.gaussian.family import GaussianFamily
from discriminant.models.linear.least_squares import IndicatorRule
from discriminant.models.multiclass.codes import OutputCode, Signs, couple_probabilities
from discriminant.models.rules import LinearRule, Rule
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Features, Floats, Labels

SIDES = np.array([0, 1])  # labels of a two-class problem: 0 the negative side, 1 the positive side


@dataclass(frozen=True, slots=True, eq=False)
class BinaryRules:
    """Rules of M two-class problems."""

    rules: tuple[Rule, ...]  # M rules; empty if all are linear, so that `line` is enough
    line: LinearRule | None  # one rule with M predictors; None if some rule is not linear

    @classmethod
    def from_rules(cls, rules: Sequence[Rule], anchor: Anchor) -> BinaryRules:
        """Combine rules; linear rules are also stacked as one rule for offsets from `anchor`."""
        lines = [line for rule in rules if (line := _linear_rule(rule)) is not None]
        stacked = stack_rules(lines, anchor) if len(lines) == len(rules) else None
        all_linear = all(isinstance(rule, LinearRule) for rule in rules)
        return cls(() if all_linear else tuple(rules), stacked)

    def scores(self, features: Features) -> Floats:
        """Return the (n, M) decision values. A positive value predicts the positive side."""
        if self.line is not None:
            return self.line.finite_values(features)
        return self.log_odds(features)

    def log_odds(self, features: Features) -> Floats:
        """Return the (n, M) log odds of the positive side."""
        if not self.rules:
            return self.scores(features)
        return np.column_stack([_clipped_log_odds(rule.scores(features)) for rule in self.rules])


@dataclass(frozen=True, slots=True, eq=False)
class OutputCodeRule:
    """Rule of K classes that combines the two-class rules of an output code."""

    code: OutputCode
    members: BinaryRules

    @property
    def labels(self) -> Labels:
        """(K,) labels of the classes."""
        return self.code.labels

    def scores(self, features: Features) -> Floats:
        """Return the (n, K) logs of the coupled class probabilities.

        For two classes the logs are exact even if a probability is very small.
        """
        return log_coupled_probabilities(self.members.log_odds(features), self.code)


def log_coupled_probabilities(odds: Floats, code: OutputCode) -> Floats:
    """Return the (n, K) log class probabilities, given log odds (n, M) of the positive sides."""
    if code.signs.shape == (2, 1):
        second = odds[:, 0] * code.signs[1, 0]
        return np.column_stack([-np.logaddexp(0.0, second), -np.logaddexp(0.0, -second)])
    return np.asarray(np.log(couple_probabilities(expit(odds), code.signs)))


def fit_binary_rules(
    moments: Any, code: OutputCode, *, rule_from: Callable[[Any], Rule]
) -> tuple[Rule, ...]:
    """Fit the rule of each column of the code, from the moments of its two sides."""
    columns = range(code.signs.shape[1])
    return tuple(fit_column(moments, code, m, rule_from=rule_from) for m in columns)


def fit_column(
    moments: Any, code: OutputCode, column: int, *, rule_from: Callable[[Any], Rule]
) -> Rule:
    """Fit the rule of one column. Warnings of the fit name the classes of both sides."""
    with add_context(code.describe_column(column)):
        return rule_from(group_sides(moments, code, column))


def group_sides(moments: Any, code: OutputCode, column: int) -> Any:
    """Return the moments of the two sides of a column, labelled 0 and 1."""
    side = code.signs[:, column]
    labels = moments.labels
    if not side.all():
        moments = moments.classes(labels[side != 0].tolist())
    groups = {0: labels[side < 0].tolist(), 1: labels[side > 0].tolist()}
    return moments.group(groups)


def stack_rules(lines: Sequence[LinearRule], anchor: Anchor) -> LinearRule:
    """Stack two-class rules as one rule, whose predictors are second score minus first score.

    All predictors are converted to offsets from `anchor`.
    """
    coef = np.stack([_second_minus_first(line.coef) for line in lines])
    intercept = np.array([_second_minus_first(line.intercept) for line in lines])
    shift = np.stack([(line.anchor.origin - anchor.origin) / anchor.unit for line in lines])
    ratio = np.stack([anchor.unit / line.anchor.unit for line in lines])
    coef = coef * ratio
    return LinearRule(
        np.arange(len(lines)), anchor, coef, intercept - np.einsum("md,md->m", coef, shift)
    )


def _second_minus_first(of_class: Floats) -> Any:
    """Return the second row minus the first, or the only row."""
    return of_class[0] if len(of_class) == 1 else of_class[1] - of_class[0]


def _linear_rule(rule: Rule) -> LinearRule | None:
    """Return the linear rule of the scores or fitted values, or None if they are not linear."""
    if isinstance(rule, IndicatorRule):
        return rule.line if rule.basis is None else None
    return rule if isinstance(rule, LinearRule) else None


def _clipped_log_odds(scores: Floats) -> Floats:
    """Return the second score of each row minus its first, (n,), clipped to [-745, 745]."""
    with np.errstate(invalid="ignore"):
        return np.clip(scores[:, 1] - scores[:, 0], -745.0, 745.0)


_NUMBERS = 1 << 21  # number of entries of all scatter matrices in memory at a time
_WELL_CONDITIONED = 1e-9  # smallest reciprocal condition number that needs no warning
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class SideMoments:
    """Moments of the two sides of C columns of a code."""

    rows: Floats  # (C,) number of rows of both sides
    weight: Floats  # (C, 2) sums of weights
    weight2: Floats  # (C, 2) sums of squared weights
    mean: Floats  # (C, 2, d) means of the sides
    scatter: Floats  # (C, d, d) sum of the scatters of both sides, each about its own mean

    @classmethod
    def from_classes(cls, moments: ClassMoments, signs: Signs) -> SideMoments:
        """Sum the moments of the classes on each side of each column of `signs` (K, C)."""
        on_side = np.stack([signs == -1, signs == 1])  # (2, K, C)
        membership = on_side.transpose(2, 0, 1).astype(np.float64)  # (C, 2, K)
        weight, rows = membership @ moments.weight, (membership @ moments.rows).sum(axis=1)
        mean = membership @ (moments.weight[:, None] * moments.mean) / weight[:, :, None]
        scatter = _scatter_within_classes(moments, membership.sum(axis=1))
        if (membership.sum(axis=2) > 1).any():
            side_mean = np.matmul(membership.transpose(0, 2, 1), mean)  # (C, K, d)
            root_weight = np.sqrt(membership.sum(axis=1) * moments.weight)[:, :, None]
            offsets = root_weight * (moments.mean - side_mean)
            scatter = scatter + np.matmul(offsets.transpose(0, 2, 1), offsets)
        return cls(rows, weight, membership @ moments.weight2, mean, scatter)

    def degrees(self, denominator: Denominator) -> Floats:
        """Return the (C,) denominators of the covariances, for the named kind of denominator."""
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
    """Fit the rules of all columns, for a linear family.

    `prior` maps the weights of the two sides of a column to their priors. `rule_from` fits the
    columns whose covariance is nearly singular.
    """
    anchor, moved = moments.anchor.shift(moments.centre)
    M, d = code.signs.shape[1], len(moments.features)
    coef, intercept = np.empty((M, d)), np.empty(M)
    for columns in _spans(M, d):
        sides = SideMoments.from_classes(moments, code.signs[:, columns])
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


def _scatter_within_classes(moments: ClassMoments, used: Floats) -> Floats:
    """Return a (C, d, d) array: for each column, the sum of the scatters of the classes it uses.

    `used` (C, K) is 1 where a column uses a class. If all columns use all classes, return only the
    common sum (d, d).
    """
    if used.all():
        return moments.pooled
    K, d = moments.mean.shape
    return np.asarray(np.dot(used, moments.scatter.reshape(K, d * d)).reshape(-1, d, d))


def _slopes(sides: SideMoments, family: GaussianFamily, unit: Floats) -> Floats:
    """Return the slopes of the linear rule of each column of the code, one row for each.

    They are the inverse covariance times the difference of the means of the two sides. The slopes
    of a column are NaN if its covariance is nearly singular.
    """
    degrees = sides.degrees(family.denominator)
    slopes = np.full((len(degrees), sides.mean.shape[2]), np.nan)
    least = 64 * _EPS * sides.weight.sum(axis=1)  # `pooled_degrees` raises an error in this case
    solvable = np.flatnonzero((sides.rows > 2) & (degrees > least))
    scatter = np.broadcast_to(sides.scatter, (len(degrees), *sides.scatter.shape[-2:]))
    amount = float(family.shrinkage)
    for m in solvable:
        covariance = shrink(scatter[m] / degrees[m], amount, family.target, unit)
        rounding = (16 * _EPS * np.abs(sides.mean[m]).max(axis=0)) ** 2
        if (np.diagonal(covariance) > rounding).all():
            slopes[m] = _solve_standardised(covariance, sides.mean[m, 1] - sides.mean[m, 0])
    return slopes


def _solve_standardised(covariance: Floats, difference: Floats) -> Floats | float:
    """Return the inverse covariance times the difference; NaN if the former is ill-conditioned.

    The system is solved for standardised columns.
    """
    _, sd, lower, reciprocal = standard_cholesky(covariance)
    if reciprocal < _WELL_CONDITIONED:
        return float("nan")
    return np.asarray(lapack.dpotrs(lower, difference / sd, lower=True)[0] / sd)
