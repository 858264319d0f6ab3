"""Many classes from two, out of moments: every two-class rule of a code, and one rule of them all.

The moments of a side are those of its classes merged, which is addition: no row is read again,
whether the code has K columns or thousands. Where every member is linear,

    f_m(x) = u . (w_m1 - w_m0) + (b_m1 - b_m0)

are the rows of one matrix, so that all members are one product. Each counts from an origin of its
own, near its rows; the product counts from one near all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from discriminant.errors import speaking
from discriminant.models.codes import Code
from discriminant.models.coupling import coupled
from discriminant.models.indicator import IndicatorRule
from discriminant.models.rules import LinearRule, Rule
from discriminant.moments.anchor import Anchor
from discriminant.table.schema import Features, Floats, Labels

SIDES = np.array([0, 1])  # the labels of the two-class problems: negative, positive


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """The rules of M two-class problems."""

    rules: tuple[Rule, ...]  # M, or none where all are linear and `line` is enough
    line: LinearRule | None  # M rows

    @classmethod
    def of(cls, rules: Sequence[Rule], anchor: Anchor) -> Members:
        """With one product for all, counted from `anchor`, where every rule is linear."""
        lines = [_line(rule) for rule in rules]
        whole = all(isinstance(rule, LinearRule) for rule in rules)
        found = [line for line in lines if line is not None]
        stacked = stack(found, anchor) if len(found) == len(rules) else None
        return cls(() if whole else tuple(rules), stacked)

    def said(self, features: Features) -> Floats:
        """(n, M) what each says of each row: positive for its positive side."""
        if self.line is not None:
            return self.line.bounded(features)
        return self.log_odds(features)

    def log_odds(self, features: Features) -> Floats:
        """(n, M) log odds of the positive side."""
        if not self.rules:
            return self.said(features)
        return np.column_stack([_odds(rule.scores(features)) for rule in self.rules])


@dataclass(frozen=True, slots=True, eq=False)
class DecomposedRule:
    """K classes by a code and its members."""

    code: Code
    members: Members

    @property
    def labels(self) -> Labels:
        """(K,) classes."""
        return self.code.labels

    def scores(self, features: Features) -> Floats:
        """(n, K) logs of the coupled probabilities; of two classes exact in the tails."""
        odds = self.members.log_odds(features)
        return log_coupled(odds, self.code)


def log_coupled(odds: Floats, code: Code) -> Floats:
    """(n, K) log probabilities from log odds (n, M) of the positive sides."""
    if code.signs.shape == (2, 1):
        second = odds[:, 0] * code.signs[1, 0]
        return np.column_stack([-np.logaddexp(0.0, second), -np.logaddexp(0.0, -second)])
    return np.asarray(np.log(coupled(expit(odds), code.signs)))


def fit_members(moments: Any, code: Code, *, rule_from: Callable[[Any], Rule]) -> tuple[Rule, ...]:
    """The rule of each column, from the moments of its two sides."""
    columns = range(code.signs.shape[1])
    return tuple(member_rule(moments, code, m, rule_from=rule_from) for m in columns)


def member_rule(moments: Any, code: Code, column: int, *, rule_from: Callable[[Any], Rule]) -> Rule:
    """The rule of one column; what it has to tell is told of the classes of its sides."""
    with speaking(code.sides(column)):
        return rule_from(sided(moments, code, column))


def sided(moments: Any, code: Code, column: int) -> Any:
    """Moments of the two sides of a column, labelled 0 and 1."""
    side = code.signs[:, column]
    labels = moments.labels
    if not side.all():
        moments = moments.classes(labels[side != 0].tolist())
    groups = {0: labels[side < 0].tolist(), 1: labels[side > 0].tolist()}
    return moments.group(groups)


def stack(lines: Sequence[LinearRule], anchor: Anchor) -> LinearRule:
    """Rules of two classes as rows of one: second less first, all counted from `anchor`."""
    coef = np.stack([_between(line.coef) for line in lines])
    intercept = np.array([_between(line.intercept) for line in lines])
    away = np.stack([(line.anchor.origin - anchor.origin) / anchor.unit for line in lines])
    ratio = np.stack([anchor.unit / line.anchor.unit for line in lines])
    coef = coef * ratio
    return LinearRule(
        np.arange(len(lines)), anchor, coef, intercept - np.einsum("md,md->m", coef, away)
    )


def _between(of_class: Floats) -> Any:
    """Second less first, where it is not that already."""
    return of_class[0] if len(of_class) == 1 else of_class[1] - of_class[0]


def _line(rule: Rule) -> LinearRule | None:
    """What a rule says as a line: its scores, or the fitted values of least squares."""
    if isinstance(rule, IndicatorRule):
        return rule.line if rule.basis is None else None
    return rule if isinstance(rule, LinearRule) else None


def _odds(scores: Floats) -> Floats:
    """(n,) second less first; memberships of zero are as sure as can be."""
    with np.errstate(invalid="ignore"):
        return np.clip(scores[:, 1] - scores[:, 0], -745.0, 745.0)
