"""Class moments of rows with missing cells, by maximum likelihood under Gaussian classes (EM).

A step of EM reads all rows once. In a row x of class k, let o be the cells that are present and m
the cells that are missing. Given the means and covariances of the previous step,

    E   z_m  =  mean_m + C_mo C_oo^-1 (x_o - mean_o)        expected values of the missing cells
        V    =  C_mm - C_mo C_oo^-1 C_om                    their covariance
    M   class moments of the completed rows, with V added to the scatter

So the result of a step is a `ClassMoments`, as for complete rows, and can be added over blocks,
files and sites. With moments of detail 'class', C is the covariance of the class; otherwise all
classes share C. Whether classes share C affects the estimates, so a model should be fitted from
moments that make the same assumption about C as the model. Denominators within EM are n and n_k
(maximum likelihood).

Every step increases the likelihood of the cells that are present. Cells must be missing at random:
given the cells that are present, whether a cell is missing may not depend on its value. A row whose
cells are all missing affects only the class shares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
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
_SINGULAR = 1e-9  # smallest eigenvalue of a correlation matrix during the iteration


@dataclass(frozen=True, slots=True, eq=False)
class PresentSums(Summable):
    """Sums over the cells that are present, from which EM starts."""

    weight: Floats  # (K, d)
    sums: Floats  # (K, d) of offsets
    squares: Floats  # (K, d)
    complete: Places  # (K,) number of rows without a missing cell

    def __add__(self, other: PresentSums) -> PresentSums:
        return PresentSums(
            self.weight + other.weight,
            self.sums + other.sums,
            self.squares + other.squares,
            self.complete + other.complete,
        )


@dataclass(frozen=True, slots=True, eq=False)
class PresentReading:
    """Sum the cells that are present, and their squares, by class and column."""

    classes: int
    anchor: Anchor

    @property
    def summary_size(self) -> int:
        return self.classes * (3 * len(self.anchor.origin) + 1)

    def read(self, block: Block) -> PresentSums:
        offsets, weight = self.anchor.offsets(dense(block.features)), block.weight
        present = ~np.isnan(offsets)
        offsets = np.where(present, offsets, 0.0)
        row_weight = np.ones(len(block)) if weight is None else weight
        indicator = np.zeros((self.classes, len(block)))
        indicator[block.codes, np.arange(len(block))] = row_weight
        counted = block.codes[present.all(axis=1) & (row_weight > 0)]
        complete = np.bincount(counted, minlength=self.classes)
        sums = indicator @ present, indicator @ offsets, indicator @ offsets**2
        return PresentSums(*sums, complete)


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedMomentsReading:
    """Compute the expected moments of K classes, given means and covariances (the E-step)."""

    labels: Labels
    features: tuple[str, ...]
    anchor: Anchor
    detail: Detail  # 'class' or 'pooled'
    mean: Floats  # (K, d) offsets
    covariance: Floats  # (K, d, d); with detail 'pooled' (1, d, d)

    @property
    def summary_size(self) -> int:
        K, d = self.mean.shape
        return int(K * d * d if self.detail == "class" else d * (d + K))

    def read(self, block: Block) -> ClassMoments:
        values = np.array(dense(block.features), dtype=np.float64)
        missing = np.isnan(values)
        d = self.mean.shape[1]
        added = np.zeros((len(self.covariance), d, d))
        weight = np.ones(len(block)) if block.weight is None else block.weight
        incomplete = np.flatnonzero(missing.any(axis=1))
        keys = missing[incomplete]
        if len(self.covariance) > 1:  # one group for each class and pattern
            keys = np.column_stack([keys, block.codes[incomplete]])
        groups, number = np.unique(keys, axis=0, return_inverse=True)
        order = np.argsort(number.ravel(), kind="stable")
        count = np.bincount(number.ravel(), minlength=len(groups))
        for key, n, end in zip(groups, count, np.cumsum(count), strict=True):
            rows = incomplete[order[end - n : end]]
            c = int(key[d]) if len(self.covariance) > 1 else 0
            o, m = np.flatnonzero(key[:d] == 0), np.flatnonzero(key[:d])
            slopes, residual = _regression(self.covariance[c], o, m)
            mean = self.mean[block.codes[rows]]
            gaps = self.anchor.select(o).offsets(values[np.ix_(rows, o)]) - mean[:, o]
            expected = mean[:, m] + gaps @ slopes.T
            values[np.ix_(rows, m)] = self.anchor.select(m).values(expected)
            added[c][np.ix_(m, m)] += weight[rows].sum() * residual
        reading = MomentsReading(self.labels, self.features, self.anchor, self.detail)
        moments = reading.read(replace(block, features=values))
        total = added.sum(axis=0) if self.detail == "pooled" else added
        return replace(moments, scatter=moments.scatter + total)


def _regression(covariance: Floats, o: Places, m: Places) -> tuple[Floats, Floats]:
    """Return slopes and residual covariance of the regression of cells m on cells o.

    These are C_mo C_oo^-1 and C_mm - C_mo C_oo^-1 C_om, where C is the covariance, m the missing
    and o the observed cells. Directions along which the cells o have no variance are left out of
    the inverse.
    """
    sd = np.sqrt(np.diagonal(covariance)[o])
    sd = np.where(sd > 0, sd, 1.0)
    crossed = covariance[np.ix_(m, o)] / sd
    if not len(o):
        return crossed, covariance[np.ix_(m, m)]
    values, vectors = eigh(covariance[np.ix_(o, o)] / sd[:, None] / sd, check_finite=False)
    positive = values > 8 * len(o) * _EPS * max(values[-1], _EPS)
    root = vectors[:, positive] / np.sqrt(values[positive])
    along = crossed @ root
    return along @ root.T / sd, covariance[np.ix_(m, m)] - along @ along.T


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
        'class' if each class has its own covariance, 'pooled' if all share one.
    """
    start: PresentSums = fold(PresentReading(len(labels), anchor))
    mean, variance = _start(start, labels, features)
    covariance = np.array([np.diag(own) for own in variance])
    if detail != "class":
        covariance = covariance.mean(axis=0, keepdims=True)
    change = np.inf
    for _ in range(_MAX_STEPS):
        moments: ClassMoments = fold(
            ExpectedMomentsReading(labels, features, anchor, detail, mean, covariance)
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
        converged = change <= _TOLERANCE
        _check_full_rank(updated, start, labels, moments.rows if converged else None)
        if converged:
            return moments
    warn(NotConvergedWarning.of_missing_cells(_MAX_STEPS, change, _TOLERANCE))
    return moments


def _check_full_rank(
    covariance: Floats, sums: PresentSums, labels: Labels, rows: Places | None
) -> None:
    """Raise an error if a covariance becomes singular because too few rows are complete.

    The likelihood then grows without bound, and the probabilities of the model are meaningless.
    `rows` (K,) are the rows of each class if the steps converged: a variance that goes to zero
    shrinks by the share of complete rows in each step, so it is larger than the last change by the
    inverse of this share.
    """
    d = covariance.shape[1]
    shared = len(covariance) == 1
    complete = sums.complete.sum(keepdims=True) if shared else sums.complete
    degrees = complete - (len(labels) if shared else 1)
    limit = np.full(len(covariance), _SINGULAR)
    if rows is not None:
        limit = 10.0 * _TOLERANCE * (rows.sum(keepdims=True) if shared else rows)
        limit = np.maximum(limit / np.maximum(complete, 1), _SINGULAR)
    for k in np.flatnonzero(degrees < d):
        sd = np.sqrt(np.diagonal(covariance[k]))
        used = sd > 0
        correlation = covariance[k][np.ix_(used, used)] / sd[used] / sd[used, None]
        if used.any() and eigh(correlation, eigvals_only=True)[0] < limit[k]:
            label = None if shared else labels[k]
            raise MissingCellError.of_few_complete(label, int(complete[k]), d)


def _start(sums: PresentSums, labels: Labels, features: tuple[str, ...]) -> tuple[Floats, Floats]:
    """Return the means (K, d) and variances (K, d) of the cells that are present."""
    for k, j in np.argwhere(sums.weight <= 0):
        raise MissingCellError.of_class_column(features[j], labels[k])
    mean = sums.sums / sums.weight
    return mean, np.maximum(sums.squares / sums.weight - mean**2, 0.0)
