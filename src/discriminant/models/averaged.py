"""The mean of several linear classifiers' posteriors, by one product.

T rules of K classes have T K rows of slopes, all counted from one origin near the rows; of two
classes T rows are enough, the second score less the first,

    f_t(u) = u . w_t + b_t        P(2|x) = mean_t 1 / (1 + exp(-f_t)),  P(1|x) = mean_t of the other

each side worked out for itself, so that neither loses its digits where it is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discriminant.models.rules import LinearRule
from discriminant.moments.anchor import Anchor
from discriminant.table.schema import Features, Floats, Labels


@dataclass(frozen=True, slots=True, eq=False)
class MeanRule:
    """T linear rules of the same K classes."""

    labels: Labels  # (K,)
    line: LinearRule  # (T, d) of two classes, else (T K, d): the classes of a rule side by side

    @classmethod
    def of(cls, rules: Sequence[LinearRule]) -> MeanRule:
        """All counted from the origin of the first, in its units."""
        anchor, labels = rules[0].anchor, rules[0].labels
        parts = [_counted_from(rule, anchor) for rule in rules]
        coef = np.concatenate([part for part, _ in parts])
        intercept = np.concatenate([part for _, part in parts])
        return cls(labels, LinearRule(np.arange(len(coef)), anchor, coef, intercept))

    def posterior(self, features: Features) -> Floats:
        """(n, K) mean posteriors; NaN where a score is no number."""
        scores = self.line.bounded(features)
        found = _two(scores) if len(self.labels) == 2 else _many(scores, len(self.labels))
        found[np.isnan(scores).any(axis=1)] = np.nan
        return found


def _counted_from(rule: LinearRule, anchor: Anchor) -> tuple[Floats, Floats]:
    """Slopes and intercepts about another origin; of two classes second less first."""
    coef = rule.coef * (anchor.unit / rule.anchor.unit)
    intercept = rule.intercept - coef @ ((rule.anchor.origin - anchor.origin) / anchor.unit)
    if len(coef) == len(rule.labels) == 2:
        return coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    return coef, intercept


def _two(scores: Floats) -> Floats:
    """(n, 2) from log odds (n, T); one rule at a time stays in the cache."""
    total = np.zeros((2, len(scores)))
    for odds in scores.T:
        small = np.exp(-np.abs(odds))
        large = 1.0 / (1.0 + small)
        small *= large
        second = odds > 0
        total[0] += np.where(second, small, large)
        total[1] += np.where(second, large, small)
    total /= scores.shape[1]
    return total.T


def _many(scores: Floats, classes: int) -> Floats:
    """(n, K) from scores (n, T K)."""
    each = scores.reshape(len(scores), -1, classes)
    powers = np.exp(each - each.max(axis=2, keepdims=True))
    powers /= powers.sum(axis=2, keepdims=True)
    return np.asarray(powers.mean(axis=1))
