"""What a fitted model is: a rule that scores rows, class by class.

    LinearRule     score_k(u) = u . w_k + b_k
    QuadraticRule  score_k(u) = log prior_k - (logdet_k + distance_k(u)^2) / 2  [- d/2 log 2 pi]

with u = (x - origin) / unit. Scores are logs up to what is common to all classes; `posterior`
turns them into log posteriors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discriminant.models.metric import Metric
from discriminant.moments.anchor import Anchor
from discriminant.table.schema import Features, Floats, Labels

_ROWS = 2048  # rows scored at a time, so that a block stays in the cache


class Rule(Protocol):
    """A fitted model."""

    @property
    def labels(self) -> Labels:
        """(K,) classes, in the order of the scores."""
        ...

    def scores(self, features: Features) -> Floats:
        """(n, K) score of each class for rows (n, d)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class LinearRule:
    """K linear scores."""

    labels: Labels  # (K,)
    anchor: Anchor
    coef: Floats  # (K, d) for offsets
    intercept: Floats  # (K,)

    def scores(self, features: Features) -> Floats:
        """(n, K) score of each class."""
        if features.shape[0] <= _ROWS:
            return np.asarray(self.anchor.offsets(features[:]) @ self.coef.T + self.intercept)
        found = np.empty((features.shape[0], len(self.intercept)))
        for lo, hi in _spans(features.shape[0]):
            np.matmul(self.anchor.offsets(features[lo:hi]), self.coef.T, out=found[lo:hi])
        found += self.intercept
        return found

    def slopes(self) -> tuple[Floats, Floats]:
        """(K, d) slopes and (K,) intercepts for x itself, in the user's numbers."""
        slope = self.coef / self.anchor.unit
        return slope, self.intercept - slope @ self.anchor.origin


@dataclass(frozen=True, slots=True, eq=False)
class QuadraticRule:
    """K Gaussian classes, each with its own metric."""

    labels: Labels  # (K,)
    anchor: Anchor
    mean: Floats  # (K, d) offsets
    metrics: tuple[Metric, ...]  # K
    log_prior: Floats  # (K,)

    def scores(self, features: Features) -> Floats:
        """(n, K) score of each class."""
        found = self.distances(features)
        found += [metric.logdet for metric in self.metrics]
        found *= -0.5
        found += self.log_prior
        return found

    def distances(self, features: Features) -> Floats:
        """(n, K) squared Mahalanobis distance from each class mean."""
        found = np.empty((features.shape[0], len(self.metrics)))
        for lo, hi in _spans(features.shape[0]):
            offsets = self.anchor.offsets(features[lo:hi])
            for k, metric in enumerate(self.metrics):
                found[lo:hi, k] = metric.squared(offsets - self.mean[k])
        return found


def _spans(rows: int) -> Iterator[tuple[int, int]]:
    for lo in range(0, rows, _ROWS):
        yield lo, min(lo + _ROWS, rows)
