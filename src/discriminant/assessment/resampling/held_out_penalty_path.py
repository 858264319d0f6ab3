"""Penalty path: held-out errors of a sparse linear model for every penalty on a grid.

The models of all training sets follow from fold moments (`folds`), so one pass over the rows gives
the moments of every fold, and another pass scores every held-out row with every penalty. No model
is fitted to rows. The same code (`PathReading`) scores rows in memory and partitioned tables.

    error(penalty) = weighted share of held-out rows that are misclassified

The best penalty is the largest of the penalties with the smallest error. It gives the model with
the fewest features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.assessment.resampling.folds import (
    FoldNumbers,
    PartitionedFolds,
    check_training_classes,
    drop_empty_classes,
    fold_moments,
    fold_numbers,
    rows_by_fold,
    sums_without_each,
)
from discriminant.engines.local import fold as fold_rows
from discriminant.engines.partitioned_table import AnyTable, PartitionedTable
from discriminant.errors import (
    NoFeatureSelectedWarning,
    capture_warnings,
    merge_warnings,
    warn,
)
from discriminant.models.rules import LinearRule
from discriminant.moments.class_moments import Detail
from discriminant.moments.probability_scores import max_and_argmax
from discriminant.moments.summary_base import FoldSums, split_by_fold
from discriminant.posterior import log_posterior
from discriminant.table.blocks import Block, Floats, Places

_TOGETHER = 1 << 20  # largest number of scores that are computed together
_ROUNDING = 1e-12  # errors that differ by less are equal


@dataclass(frozen=True, slots=True, eq=False)
class SelectionPath:
    """Held-out error and number of features of every penalty on a grid."""

    penalty: Floats  # (P,) penalties or thresholds, increasing
    n_features: Places  # (P,) features selected by the fit to all rows
    error: Floats  # (P,) weighted share of held-out rows that are misclassified
    log_loss: Floats  # (P,) mean of -log posterior of the true class
    fold: FoldNumbers  # (N,) fold of each row; (0,) for a partitioned table

    def __repr__(self) -> str:
        best = self.best()
        return (
            f"SelectionPath({len(self.penalty)} penalties, best: {self.penalty[best]:.4g} with "
            f"{int(self.n_features[best])} features, error={self.error[best]:.4g})"
        )

    def best(self) -> int:
        """Return the index of the largest penalty with the smallest error."""
        return int(np.flatnonzero(self.error <= self.error.min() + _ROUNDING)[-1])

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why these fields do not form a valid path, or None if they do."""
        arrays = [parts[name] for name in ("penalty", "n_features", "error", "log_loss")]
        if parts["penalty"].ndim != 1 or not len(parts["penalty"]):
            return "penalty must hold one or more numbers"
        if any(array.shape != parts["penalty"].shape for array in arrays):
            return "n_features, error and log_loss must have one entry for each penalty"
        return None


Grid = Callable[[Any], Floats]  # moments -> penalties
FitPath = Callable[[Any, Floats], tuple[LinearRule, ...]]  # moments, penalties -> rules


def score_path(
    table: AnyTable, *, grid: Grid, fit: FitPath, folds: Any, detail: Detail, seed: int
) -> SelectionPath:
    """Return the held-out errors of every penalty.

    Parameters
    ----------
    table
        Rows in memory or partitioned.
    grid
        Function that returns the penalties, given the moments of all rows.
    fit
        Function that returns one rule for each penalty, given moments and penalties.
    folds
        As in `cross_validate`.
    detail
        Detail of the moments.
    seed
        Seed of the hash that assigns the rows of a partitioned table to folds.
    """
    with merge_warnings():
        if isinstance(table, PartitionedTable):
            folded = PartitionedFolds.of(table, folds, seed=seed, detail=detail)
            penalties = grid(folded.rows.moments)
            reading = _reading(list(folded.trains), penalties, fit)
            sums = [part for part in folded.rows.fold(reading).parts if part is not None]
            rules = _fit_quietly(fit, folded.rows.moments, penalties)
            return _path(penalties, sums, rules, np.zeros(0, dtype=np.intp))
        numbers = fold_numbers(folds, table.codes)
        parts = fold_moments(table, numbers, detail)
        trains = list(sums_without_each(parts))
        whole = trains[0] + parts[0]
        penalties = grid(whole)
        reading = _reading(trains, penalties, fit)
        sums = []
        for f, rows in enumerate(rows_by_fold(numbers)):
            one_fold = FoldPathReading(reading.fits[f])
            sums.append(fold_rows(table.take(rows), one_fold))
        return _path(penalties, sums, _fit_quietly(fit, whole, penalties), numbers)


def _path(
    penalties: Floats, sums: list[PathSums], rules: tuple[LinearRule, ...], fold: FoldNumbers
) -> SelectionPath:
    weight = sum(each.weight for each in sums)
    loss, wrong = np.sum([each.losses for each in sums], axis=0) / weight
    counts = np.array([int(rule.coef.any(axis=0).sum()) for rule in rules], dtype=np.intp)
    return SelectionPath(penalties, counts, wrong, loss, fold)


def _reading(trains: list[Any], penalties: Floats, fit: FitPath) -> PathReading:
    """Return a `PathReading` with rules fitted to every training set for every penalty."""
    for train in trains:
        check_training_classes(train.rows > 0, train.labels)
    return PathReading(
        tuple(
            PathFit(train.rows > 0, _fit_quietly(fit, drop_empty_classes(train), penalties))
            for train in trains
        )
    )


def _fit_quietly(fit: FitPath, moments: Any, penalties: Floats) -> tuple[LinearRule, ...]:
    """Fit a rule for every penalty, without warnings that a large one removes every feature."""
    with capture_warnings() as captured:
        rules = fit(moments, penalties)
    for warning in captured:
        if not isinstance(warning, NoFeatureSelectedWarning):
            warn(warning)
    return rules


@dataclass(frozen=True, slots=True, eq=False)
class PathSums:
    """Sums of losses over held-out rows."""

    losses: Floats  # (2, P) summed -log posterior of the true class, and misclassified weight
    weight: float

    def __add__(self, other: PathSums) -> PathSums:
        return PathSums(self.losses + other.losses, self.weight + other.weight)


@dataclass(frozen=True, slots=True, eq=False)
class PathFit:
    """Rules for all penalties, fitted to the moments of the rows outside one fold."""

    present: npt.NDArray[np.bool_]  # (K,) classes that have rows there
    rules: tuple[LinearRule, ...]  # P rules

    def losses(self, block: Block) -> PathSums:
        """Sum the losses over rows, without rows of classes that are unknown to the rules."""
        known = self.present[block.codes]
        codes = (np.cumsum(self.present) - 1)[block.codes[known]]
        weight = np.ones(len(codes)) if block.weight is None else block.weight[known]
        features = block.features[known]
        losses, lo = np.zeros((2, len(self.rules))), 0
        for scores in self._scores(features) if len(codes) else ():
            n, together, K = scores.shape
            logs = log_posterior(scores.reshape(-1, K))
            predicted = max_and_argmax(logs.T)[1].reshape(n, together)
            own = logs.reshape(scores.shape)[np.arange(n), :, codes]
            several = slice(lo, lo + together)
            losses[0, several] = -weight @ own
            losses[1, several] = weight @ (predicted != codes[:, None])
            lo += together
        return PathSums(losses, float(weight.sum()))

    def _scores(self, features: Any) -> Iterator[Floats]:
        """Yield the (n, G, K) scores of G rules at a time.

        Rules with the same anchor share one product.
        """
        first = self.rules[0]
        numbers = features.shape[0] * len(first.intercept)
        size = max(_TOGETHER // numbers, 1)
        for rules in (self.rules[lo : lo + size] for lo in range(0, len(self.rules), size)):
            if len(rules) > 1 and all(rule.anchor.same_as(first.anchor) for rule in rules):
                coef = np.concatenate([rule.coef for rule in rules])
                intercept = np.concatenate([rule.intercept for rule in rules])
                stacked = LinearRule(first.labels, first.anchor, coef, intercept).values(features)
                if np.isfinite(stacked).all():
                    yield stacked.reshape(len(stacked), len(rules), -1)
                    continue
            yield from (rule.scores(features)[:, None] for rule in rules)


@dataclass(frozen=True, slots=True, eq=False)
class FoldPathReading:
    """Reading that scores the rows of one fold."""

    fit: PathFit

    @property
    def summary_size(self) -> int:
        """Number of sums that `read` returns."""
        return 2 * len(self.fit.rules) + 1

    def read(self, block: Block) -> PathSums:
        """Sum the losses over the rows of one block."""
        return self.fit.losses(block)


@dataclass(frozen=True, slots=True, eq=False)
class PathReading:
    """Reading that scores each row by the rules that were fitted without the row's fold."""

    fits: tuple[PathFit, ...]  # F fits, one for each fold

    @property
    def summary_size(self) -> int:
        """Number of sums that `read` returns."""
        return len(self.fits) * (2 * len(self.fits[0].rules) + 1)

    def read(self, block: Block) -> FoldSums[PathSums]:
        """Sum the losses over the rows of one block."""
        sums: list[PathSums | None] = [None] * len(self.fits)
        for f, part in split_by_fold(block):
            sums[f] = self.fits[f].losses(part)
        return FoldSums(tuple(sums))
