"""The RDA grid of rows in parts: moments by fold, then one pass that scores every candidate.

The bases of `assessment.grid` are worked out once for each fold and travel to the rows. Where they
would take too much room, shrinkages are tried some at a time, with a pass for each lot.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from discriminant.assessment.dealt import Dealt
from discriminant.assessment.folds import only_present
from discriminant.assessment.grid import (
    Candidates,
    Fitted,
    Grid,
    HeldOutRows,
    Sums,
    check_training,
    log_priors,
    losses,
)
from discriminant.engines.local import available_threads, one_blas_thread
from discriminant.engines.parted import Parted
from discriminant.errors import carried, gathered
from discriminant.moments.by_fold import ByFold, fold_blocks
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.table.schema import Block, Floats

_BASES = 1 << 29  # bytes of the bases of all folds
_ROOM = 1 << 21  # numbers worked on at a time


def grid_rows(
    rows: Parted, candidates: Candidates, folds: Any = None, *, groups: Any = None, seed: int = 0
) -> Grid:
    """Log loss and error of every candidate, each row scored without its fold."""
    auto = any(isinstance(s, str) for s in candidates.shrinkage)
    detail: Detail = "fourth" if auto else "class"
    with gathered():
        dealt = Dealt.of(rows, folds, groups=groups, seed=seed, detail=detail)
        sums = grid_sums_by_fold(dealt, candidates)
    return Grid.of(candidates, sums, np.zeros(0, dtype=np.intp))


def grid_sums_by_fold(dealt: Dealt, candidates: Candidates) -> list[Sums]:
    """Sums over the held-out rows of each fold that has any."""
    some = dealt.some
    for f in some:
        check_training(dealt.trains[f], candidates)
    d, K = len(dealt.parts[0].features), len(dealt.parts[0].labels)
    step = max(1, _BASES // (8 * dealt.folds * K * d * d))
    lots = range(0, len(candidates.shrinkage), step)
    read = [
        dealt.rows.fold(
            _reading(dealt, replace(candidates, shrinkage=candidates.shrinkage[lo : lo + step]))
        ).parts
        for lo in lots
    ]
    return [_side_by_side([parts[f] for parts in read]) for f in some]


def _side_by_side(lots: list[Sums | None]) -> Sums:
    """Of all shrinkages."""
    found = [lot for lot in lots if lot is not None]
    return Sums(np.concatenate([lot.losses for lot in found], axis=2), found[0].weight)


def _reading(dealt: Dealt, candidates: Candidates) -> GridReading:
    with one_blas_thread(), ThreadPoolExecutor(available_threads()) as pool:
        work = carried(partial(_fold_fit, candidates))
        return GridReading(tuple(pool.map(work, dealt.trains)))


def _fold_fit(candidates: Candidates, train: ClassMoments) -> FoldFit:
    return FoldFit(train, log_priors(train, candidates), Fitted.of(only_present(train), candidates))


@dataclass(frozen=True, slots=True, eq=False)
class FoldFit:
    """Candidates fitted without a fold."""

    train: ClassMoments
    priors: list[Floats]  # R of (K,)
    fitted: Fitted

    def losses(self, block: Block) -> Sums:
        """Over rows of that fold."""
        held = HeldOutRows.of(block, np.arange(len(block)), self.train)
        S, P = self.fitted.clear.shape
        found = np.zeros((2, S, P, len(self.priors)))
        size = max(_ROOM // (S * len(self.train.labels) * (P + held.offsets.shape[1])), 64)
        for lo in range(0, len(held.codes), size):
            part = held.rows(lo, lo + size)
            scores = self.fitted.scores(part.offsets)
            for r, prior in enumerate(self.priors):
                found[..., r] += losses(scores + prior[:, None, None], part)
        return Sums(found.transpose(0, 2, 1, 3), float(held.weight.sum()))


@dataclass(frozen=True, slots=True, eq=False)
class GridReading:
    """Score rows by every candidate that was fitted without their fold."""

    fits: tuple[FoldFit, ...]  # F

    @property
    def numbers(self) -> int:
        """Size of the summary."""
        one = self.fits[0]
        return 2 * len(self.fits) * one.fitted.clear.size * len(one.priors)

    def read(self, block: Block) -> ByFold[Sums]:
        """Of the rows of one block."""
        found: list[Sums | None] = [None] * len(self.fits)
        for f, part in fold_blocks(block):
            found[f] = self.fits[f].losses(part)
        return ByFold(tuple(found))
