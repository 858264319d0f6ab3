"""Class moments of rows with missing cells, by maximum likelihood under Gaussian classes (EM).

A step reads all rows once. In a row x of class k let o be the cells that are present and m those
that are missing. Given the means and covariances of the step before,

    E   z_m  =  mean_m + C_mo C_oo^-1 (x_o - mean_o)        expected values of the missing cells
        V    =  C_mm - C_mo C_oo^-1 C_om                    their covariance
    M   class moments of the completed rows, where V is added to the scatter

so the result of a step is a `ClassMoments` like that of complete rows, and it adds over blocks,
files and sites. With moments of detail 'class', C is the covariance of the class, otherwise one
covariance of all classes: the two likelihoods have different maxima, so the moments are for models
of the same kind. Denominators within EM are n and n_k (maximum likelihood).

Every step increases the likelihood of the cells that are present. Cells must be missing at random:
given the cells that are present, whether a cell is missing may not depend on its value. A row
without any cell counts for the class shares only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from discriminant.errors import MissingCellError, NotConvergedWarning, warn
from discriminant.moments.accumulate import MomentsReading
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.summary_base import Reading, Summable
from discriminant.table.blocks import Block, Floats, Labels, Places, dense

_EPS = float(np.finfo(np.float64).eps)
_TOLERANCE = 1e-9  # largest change of a mean or covariance in a step, in standard deviations
_MAX_STEPS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class PresentSums(Summable):
    """Sums over the cells that are present, from which EM starts."""

    weight: Floats  # (K, d)
    sums: Floats  # (K, d) of offsets
    squares: Floats  # (K, d)

    def __add__(self, other: PresentSums) -> PresentSums:
        return PresentSums(
            self.weight + other.weight, self.sums + other.sums, self.squares + other.squares
        )


@dataclass(frozen=True, slots=True, eq=False)
class PresentReading:
    """Sum the cells that are present, and their squares, by class and column."""

    classes: int
    anchor: Anchor

    @property
    def summary_size(self) -> int:
        return 3 * self.classes * len(self.anchor.origin)

    def read(self, block: Block) -> PresentSums:
        offsets, weight = self.anchor.offsets(dense(block.features)), block.weight
        present = ~np.isnan(offsets)
        offsets = np.where(present, offsets, 0.0)
        row_weight = np.ones(len(block)) if weight is None else weight
        indicator = np.zeros((self.classes, len(block)))
        indicator[block.codes, np.arange(len(block))] = row_weight
        return PresentSums(indicator @ present, indicator @ offsets, indicator @ offsets**2)


@dataclass(frozen=True, slots=True, eq=False)
class CompletedReading:
    """Compute the expected moments of K classes, given means and covariances (the E-step)."""

    labels: Labels
    features: tuple[str, ...]
    anchor: Anchor
    detail: Detail  # 'class' or 'pooled'
    mean: Floats  # (K, d) offsets
    covariance: Floats  # (K, d, d), or (1, d, d) if all classes share it

    @property
    def summary_size(self) -> int:
        K, d = self.mean.shape
        return K * d * d if self.detail == "class" else d * (d + K)

    def read(self, block: Block) -> ClassMoments:
        values = np.array(dense(block.features), dtype=np.float64)
        missing = np.isnan(values)
        added = np.zeros((len(self.mean), *self.covariance.shape[1:]))
        row_weight = np.ones(len(block)) if block.weight is None else block.weight
        incomplete = np.flatnonzero(missing.any(axis=1))
        patterns, groups = np.unique(missing[incomplete], axis=0, return_inverse=True)
        for g, pattern in enumerate(patterns):
            rows = incomplete[groups.ravel() == g]
            for k in np.unique(block.codes[rows]).tolist():
                own = rows[block.codes[rows] == k]
                self._complete(values, own, pattern, k)
                m = np.flatnonzero(pattern)
                added[k][np.ix_(m, m)] += row_weight[own].sum() * self._residual(pattern, k)
        reading = MomentsReading(self.labels, self.features, self.anchor, self.detail)
        moments = reading.read(replace(block, features=values))
        if self.detail == "pooled":
            return replace(moments, scatter=moments.scatter + added.sum(axis=0))
        return replace(moments, scatter=moments.scatter + added)

    def _slopes(self, pattern: npt.NDArray[np.bool_], k: int) -> Floats:
        """Return C_mo C_oo^-1 (m, o). Directions without variance are left out of the inverse."""
        covariance = self.covariance[k if len(self.covariance) > 1 else 0]
        o, m = np.flatnonzero(~pattern), np.flatnonzero(pattern)
        if not len(o):
            return np.zeros((len(m), 0))
        sd = np.sqrt(np.diagonal(covariance)[o])
        sd = np.where(sd > 0, sd, 1.0)
        values, vectors = eigh(covariance[np.ix_(o, o)] / sd[:, None] / sd)
        positive = values > 8 * len(o) * _EPS * max(values[-1], _EPS)
        root = vectors[:, positive] / np.sqrt(values[positive])
        return np.asarray((covariance[np.ix_(m, o)] / sd) @ root @ root.T / sd)

    def _complete(
        self, values: Floats, rows: Places, pattern: npt.NDArray[np.bool_], k: int
    ) -> None:
        """Replace the missing cells of rows of class k by their expected values."""
        o, m = np.flatnonzero(~pattern), np.flatnonzero(pattern)
        part = self.anchor.select(o)
        gaps = part.offsets(values[np.ix_(rows, o)]) - self.mean[k, o]
        expected = self.mean[k, m] + gaps @ self._slopes(pattern, k).T
        values[np.ix_(rows, m)] = self.anchor.select(m).values(expected)

    def _residual(self, pattern: npt.NDArray[np.bool_], k: int) -> Floats:
        """Return the covariance of the missing cells of class k given the others, (m, m)."""
        covariance = self.covariance[k if len(self.covariance) > 1 else 0]
        o, m = np.flatnonzero(~pattern), np.flatnonzero(pattern)
        slopes = self._slopes(pattern, k)
        residual = covariance[np.ix_(m, m)] - slopes @ covariance[np.ix_(o, m)]
        return np.asarray(0.5 * (residual + residual.T))


def em_moments(
    fold: Callable[[Reading[Any]], Any],
    *,
    labels: Labels,
    features: tuple[str, ...],
    anchor: Anchor,
    detail: Detail,
) -> ClassMoments:
    """Return the maximum-likelihood moments of rows with missing cells.

    Parameters
    ----------
    fold
        Function that returns the sum of a reading over all rows.
    labels, features
        (K,) classes and d names.
    anchor
        Anchor near the rows.
    detail
        'class': each class has its own covariance; 'pooled': one covariance.
    """
    start: PresentSums = fold(PresentReading(len(labels), anchor))
    mean, variance = _start(start, labels, features)
    covariance = np.array([np.diag(own) for own in variance])
    if detail != "class":
        covariance = covariance.mean(axis=0, keepdims=True)
    change = np.inf
    for _ in range(_MAX_STEPS):
        moments: ClassMoments = fold(
            CompletedReading(labels, features, anchor, detail, mean, covariance)
        )
        weight = np.where(moments.weight > 0, moments.weight, 1.0)
        if detail == "class":
            updated = moments.scatter / weight[:, None, None]
        else:
            updated = moments.scatter[None] / moments.weight.sum()
        scale = np.sqrt(np.diagonal(updated, axis1=1, axis2=2))
        scale = np.where(scale > 0, scale, 1.0)
        change = max(
            float(np.abs((moments.mean - mean) / scale).max()),
            float(np.abs((updated - covariance) / scale[:, :, None] / scale[:, None, :]).max()),
        )
        mean, covariance = moments.mean, updated
        if change <= _TOLERANCE:
            return moments
    warn(NotConvergedWarning.of_missing_cells(_MAX_STEPS, change, _TOLERANCE))
    return moments


def _start(
    sums: PresentSums, labels: Labels, features: tuple[str, ...]
) -> tuple[Floats, Floats]:
    """Return the means (K, d) and variances (K, d) of the cells that are present."""
    for k, j in np.argwhere(sums.weight <= 0):
        raise MissingCellError.of_class_column(features[j], labels[k])
    mean = sums.sums / sums.weight
    return mean, np.maximum(sums.squares / sums.weight - mean**2, 0.0)
