"""What a fitted model is: a rule that scores rows, class by class.

    LinearRule     score_k(u) = u . w_k + b_k
    QuadraticRule  score_k(u) = log prior_k - (logdet_k + distance_k(u)^2) / 2  [- d/2 log 2 pi]

with u = (x - origin) / unit. Scores are logs up to what is common to all classes; `posterior`
turns them into log posteriors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from discriminant.models.metric import Metric
from discriminant.moments.anchor import Anchor
from discriminant.table.schema import Features, Floats, Labels, is_sparse

_ROWS = 4096  # rows scored at a time, so that a block stays in the cache
_FEW = 8  # up to so many rows, all classes are done in one product
_STACKED = 1 << 20  # numbers that may be kept twice for that


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
    """K linear scores; of two classes perhaps one alone, the second's less the first's."""

    labels: Labels  # (K,)
    anchor: Anchor
    coef: Floats  # (K, d) for offsets, or (1, d)
    intercept: Floats  # (K,), or (1,)

    def scores(self, features: Features) -> Floats:
        """(n, K) score of each class."""
        if is_sparse(features) and not self.anchor.origin.any():
            return self._sparse_scores(features)
        rows, above = features.shape[0], self.intercept[:, None]
        if rows <= _ROWS:
            return np.asarray((self.coef @ self.anchor.offsets(features[:]).T + above).T)
        found = np.empty((len(above), rows))  # the scores of a class side by side
        for lo, hi in _spans(rows):
            np.matmul(self.coef, self.anchor.offsets(features[lo:hi]).T, out=found[:, lo:hi])
        found += above
        return found.T

    def _sparse_scores(self, features: Features) -> Floats:
        """Rows that keep their zeros, none of them made dense."""
        rows = features
        if not self.anchor.plain:
            rows = features.astype(np.float64)
            rows.data /= self.anchor.unit[rows.indices]
        return np.asarray(rows @ self.coef.T + self.intercept)

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
    constant: Floats = field(init=False)  # (K,) log prior - logdet / 2
    stack: Floats | None = field(init=False)  # (K, d, r) all bases, so that one row is quick

    def __post_init__(self) -> None:
        logdet = np.array([metric.logdet for metric in self.metrics])
        object.__setattr__(self, "constant", self.log_prior - 0.5 * logdet)
        object.__setattr__(self, "stack", _stacked(self.metrics))

    def scores(self, features: Features) -> Floats:
        """(n, K) score of each class."""
        found = self.distances(features)
        found *= -0.5
        found += self.constant
        return found

    def distances(self, features: Features) -> Floats:
        """(n, K) squared Mahalanobis distance from each class mean."""
        rows = features.shape[0]
        if rows <= _FEW and self.stack is not None:
            apart = self.anchor.offsets(features[:]) - self.mean[:, None]
            along = np.matmul(apart, self.stack)
            return np.asarray(np.vecdot(along, along).T)
        found = np.empty((len(self.metrics), rows))  # the distances from a class side by side
        for lo, hi in _spans(rows):
            offsets = np.ascontiguousarray(self.anchor.offsets(features[lo:hi]).T)  # (d, n)
            for k, metric in enumerate(self.metrics):
                metric.squared_columns(offsets - self.mean[k][:, None], out=found[k, lo:hi])
        return found.T


def _stacked(metrics: tuple[Metric, ...]) -> Floats | None:
    """Bases with their gains put in, if all classes have alike ones and they take little room."""
    shape = metrics[0].basis.shape
    alike = all(metric.basis.shape == shape and not metric.rest for metric in metrics)
    if not alike or len(metrics) * shape[0] * shape[1] > _STACKED:
        return None
    return np.stack([metric.basis * np.sqrt(metric.gain) for metric in metrics])


def _spans(rows: int) -> Iterator[tuple[int, int]]:
    for lo in range(0, rows, _ROWS):
        yield lo, min(lo + _ROWS, rows)
