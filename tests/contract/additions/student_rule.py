"""Naive Bayes with Student's t: log p(x|k) = - sum_j (nu + 1)/2 log(1 + z_kj^2 / nu) + log s_kj."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discriminant.models.expressions import Expression, offset_expression, stack
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Features, Floats, Labels, dense


@dataclass(frozen=True, slots=True, eq=False)
class StudentRule:
    """K classes of independent features with t distributions."""

    labels: Labels  # (K,)
    anchor: Anchor
    mean: Floats  # (K, d) offsets
    scale: Floats  # (K, d)
    log_prior: Floats  # (K,)
    freedom: float

    def scores(self, features: Features) -> Floats:
        """(n, K) score of each class."""
        z = (self.anchor.offsets(dense(features))[:, None] - self.mean) / self.scale
        return self._heights() - self._power() * np.log(z**2 / self.freedom + 1.0).sum(axis=2)

    def expression(self, x: Expression, names: Sequence[str]) -> Expression:
        """(K,) scores as an expression of the features of one row."""
        u = offset_expression(x, self.anchor)
        terms = []
        for mean, scale in zip(self.mean, self.scale, strict=True):
            z = (u - mean) / scale
            terms.append((z * z / self.freedom + 1.0).log().sum())
        return (stack(terms) * -self._power() + self._heights()).with_name("score", names)

    def _power(self) -> float:
        return 0.5 * (self.freedom + 1.0)

    def _heights(self) -> Floats:
        return np.asarray(self.log_prior - np.log(self.scale).sum(axis=1))


def fit_student(moments: ClassMoments, *, prior: Floats, freedom: float) -> StudentRule:
    """Return the rule with the class means and standard deviations."""
    scale = np.sqrt(moments.scatter / moments.weight[:, None])
    scale[scale == 0] = 1.0  # a constant feature
    return StudentRule(
        moments.labels, moments.anchor, moments.mean, scale, np.log(prior), float(freedom)
    )
