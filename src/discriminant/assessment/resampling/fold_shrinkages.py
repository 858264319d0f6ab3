"""Shrunken LDA in a cross-validation: shrinkage is chosen for each fold by the other folds.

With L_sf the summed loss of the rows of fold f by LDA with shrinkage s fitted to the other folds,

    shrinkage of fold f       minimises  sum over g != f of L_sg
    shrinkage for all rows    minimises  sum over all g  of L_sg

All fits are computed from the moments of the folds. If losses are equal, the larger amount is
chosen. This module is for tables of expanded features, for which the grid of RDA would need a
covariance of each class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discriminant.assessment.classifier_outputs import RuleScorer
from discriminant.assessment.resampling.folds import MemoryFolds
from discriminant.assessment.resampling.held_out import fit_without_fold
from discriminant.errors import capture_warnings
from discriminant.table.blocks import Floats

SHRINKAGES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class FoldShrinkages:
    """Amount of shrinkage chosen for each fold, and the fit with it to the other rows."""

    shrinkages: Floats  # (S,) increasing
    losses: Floats  # (S, F) summed loss of the rows of each fold
    scorers: tuple[RuleScorer, ...]  # F scorers, one for each fold
    rows: int  # number of rows in all folds together

    @property
    def shrinkage(self) -> float:
        """Shrinkage with the smallest loss summed over all folds."""
        return float(self.shrinkages[_least(self.losses.sum(axis=1))])


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
    chosen = [_least(total - losses[:, f]) for f in range(F)]
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


def _least(losses: Floats) -> int:
    """Return the index of the least loss; among ties the last."""
    least = float(losses.min())
    return int(np.flatnonzero(losses <= least + 1e-12 * (1.0 + abs(least)))[-1])
