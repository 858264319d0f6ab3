"""Penalised logistic regression in a cross-validation: one path of penalties for all folds.

Every penalty is fitted without each fold and to all rows (`models.linear.penalty_path`). With
L_pf the summed loss of the rows of fold f by the fit with penalty p to the other folds,

    penalty of fold f       minimises  sum over g != f of L_pg
    penalty for all rows    minimises  sum over all g  of L_pg

The rows of a fold therefore do not influence the penalty with which they are scored, and no fit is
repeated. If losses are equal, the larger penalty is chosen.

If there are more features than rows, every training set is fitted in the directions that its rows
span.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discriminant.assessment.classifier_outputs import LogitScorer
from discriminant.assessment.resampling.folds import FoldNumbers, class_counts
from discriminant.assessment.resampling.penalty_search import (
    FoldedRows,
    PenalisedModel,
    PenaltySearch,
    class_loss,
    needs_row_space,
)
from discriminant.errors import StudyError
from discriminant.models.rules import LinearRule
from discriminant.table.blocks import Floats
from discriminant.table.memory import Table

_COUNT = 25  # penalties of a path: four for each factor of ten
_L1_COUNT = 13  # with a penalty on absolute values, which takes longer: two


@dataclass(frozen=True, slots=True, eq=False)
class FoldPenalties:
    """Penalty chosen for each fold, and the fit with it to the rows outside the fold."""

    ridges: Floats  # (P,) penalties, from large to small
    losses: Floats  # (P, F) summed loss of the rows of each fold
    scorers: tuple[LogitScorer, ...]  # F scorers, one for each fold
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
    loss = class_loss(table, l1=l1_ratio > 0)
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
        scorers.append(LogitScorer(rule, known, K))
    ridges = ridges[: len(path.losses)]
    return FoldPenalties(ridges, path.losses, tuple(scorers), len(table), not path.unfinished)


def _least(losses: npt.NDArray[np.float64]) -> int:
    """Return the index of the smallest loss; if several are equal, the first."""
    least = float(losses.min())
    return int(np.flatnonzero(losses <= least + 1e-12 * (1.0 + abs(least)))[0])
