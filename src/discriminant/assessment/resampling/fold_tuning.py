"""Hyperparameters in a cross-validation: those of each fold are chosen on the other folds.

With L_pf the summed loss of the rows of fold f by the fit with hyperparameter p to the other folds,

    hyperparameter of fold f       minimises  sum over g != f of L_pg
    hyperparameter for all rows    minimises  sum over all g  of L_pg

The rows of a fold therefore do not influence the hyperparameter with which they are scored. If
losses are equal, the larger penalty or shrinkage is chosen.

`logistic_by_fold` chooses the penalty of logistic regression: one path of penalties is fitted
without each fold and to all rows (`models.linear.penalty_path`), and no fit is repeated. If there
are more features than rows, every training set is fitted in the directions that its rows span.

`lda_by_fold` chooses the shrinkage of LDA, from the moments of the folds. It is for tables of
expanded features, for which the grid of RDA would need a covariance of each class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discriminant.assessment.classifier_outputs import RuleScorer, SoftmaxRuleScorer
from discriminant.assessment.resampling.folds import FoldNumbers, MemoryFolds, class_counts
from discriminant.assessment.resampling.held_out_folds import fit_without_fold
from discriminant.assessment.resampling.penalty_search import (
    FoldedRows,
    PenalisedModel,
    PenaltySearch,
    logistic_loss_function,
    needs_row_space,
)
from discriminant.errors import StudyError, capture_warnings
from discriminant.models.rules import LinearRule
from discriminant.table.blocks import Floats
from discriminant.table.memory import Table

_COUNT = 25  # penalties of a path: four for each factor of ten
_L1_COUNT = 13  # with a penalty on absolute values, which takes longer: two
SHRINKAGES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class FoldPenalties:
    """Penalty chosen for each fold, and the fit with this penalty to the rows outside the fold."""

    ridges: Floats  # (P,) penalties, from large to small
    losses: Floats  # (P, F) summed loss of the rows of each fold
    scorers: tuple[SoftmaxRuleScorer, ...]  # F scorers, one for each fold
    rows: int  # number of rows in all folds together
    converged: bool

    @property
    def ridge(self) -> float:
        """Penalty with the smallest loss summed over all folds."""
        return float(self.ridges[_least(self.losses.sum(axis=1))])


def logistic_by_fold(table: Table, fold: FoldNumbers, *, l1_ratio: float = 0.0) -> FoldPenalties:
    """Fit logistic regression without each fold, with the penalty that the other folds choose.

    If all rows of a class are in one fold, they stay in every training set; only the fit for that
    fold gives the class probability zero.

    Parameters
    ----------
    table
        Rows in memory.
    fold
        (N,) fold of each row.
    l1_ratio
        Share of the penalty on absolute coefficients.
    """
    labels = table.schema.labels
    K, F = len(labels), int(fold.max()) + 1
    counts = class_counts(table.codes, table.weight, labels, fold)
    single = (counts > 0).sum(axis=0) == 1
    if (~single).sum() < 2:
        raise StudyError.one_class_in_training(labels[single].tolist())
    loss = logistic_loss_function(table, l1=l1_ratio > 0)
    model = PenalisedModel(l1_ratio, standardize=True, intercept=True)
    rows = FoldedRows.of(table, loss, model, np.where(single[table.codes], -1, fold))
    wide = table.width >= len(table)
    ridges = PenaltySearch(_L1_COUNT if l1_ratio else _COUNT).path(
        rows.gradient_size(), l1_ratio, wide=wide
    )
    path = (rows.wide_path if needs_row_space(table, l1_ratio) else rows.path)(ridges, keep=True)
    scorers = []
    for f in range(F):
        others = np.delete(path.losses, f, axis=1).sum(axis=1)
        coef, intercept = path.coefficients(_least(others), f)
        known = np.flatnonzero(~(single & (counts[f] > 0)))
        if len(known) < K:
            coef, intercept = coef[:, known], intercept[known]
        rule = LinearRule(labels[known], rows.anchor, coef.T, intercept)
        scorers.append(SoftmaxRuleScorer(rule, known, K))
    ridges = ridges[: len(path.losses)]
    return FoldPenalties(ridges, path.losses, tuple(scorers), len(table), not path.unfinished)


@dataclass(frozen=True, slots=True, eq=False)
class FoldShrinkages:
    """Shrinkage chosen for each fold, and the fit with this shrinkage to the other rows."""

    shrinkages: Floats  # (S,) increasing
    losses: Floats  # (S, F) summed loss of the rows of each fold
    scorers: tuple[RuleScorer, ...]  # F scorers, one for each fold
    rows: int  # number of rows in all folds together

    @property
    def shrinkage(self) -> float:
        """Shrinkage with the smallest loss summed over all folds."""
        return float(self.shrinkages[_least(self.losses.sum(axis=1), -1)])


def lda_by_fold(folded: MemoryFolds, make: Callable[[float], Any]) -> FoldShrinkages:
    """Fit LDA without each fold, with the shrinkage that the other folds choose.

    Parameters
    ----------
    folded
        Table divided into folds, with the moments of each training set.
    make
        Function that returns an unfitted LDA, given the amount of shrinkage.
    """
    F, S = folded.n_folds, len(SHRINKAGES)
    losses = np.zeros((S, F))
    scorers: list[list[RuleScorer]] = []
    with capture_warnings():
        for s, shrinkage in enumerate(SHRINKAGES):
            scorers.append([fit_without_fold(folded, make(shrinkage), f) for f in range(F)])
            for f, scorer in enumerate(scorers[s]):
                losses[s, f] = _loss(folded, scorer, f)
    total = losses.sum(axis=1)
    chosen = [_least(total - losses[:, f], -1) for f in range(F)]
    rows = sum(map(len, folded.rows))
    return FoldShrinkages(
        np.array(SHRINKAGES), losses, tuple(scorers[s][f] for f, s in enumerate(chosen)), rows
    )


def _loss(folded: MemoryFolds, scorer: RuleScorer, fold: int) -> float:
    """Return the summed log loss of a fold, without rows of classes absent from training."""
    part = folded.parts[fold]
    logs, _, _ = scorer.predict(part.features)
    known = np.isin(part.codes, scorer.columns)
    weight = np.ones(len(known)) if part.weight is None else part.weight
    own = logs[np.flatnonzero(known), part.codes[known]]
    return float(-(weight[known] @ own))


def _least(losses: Floats, place: int = 0) -> int:
    """Return the index of the smallest loss; `place` selects among ties (0 first, -1 last)."""
    least = float(losses.min())
    return int(np.flatnonzero(losses <= least + 1e-12 * (1.0 + abs(least)))[place])
