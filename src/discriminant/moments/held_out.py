"""What several models say of rows that they have not seen, as sums over these rows.

For M models on the same rows, each row scored by the models fitted without its fold:

    tally_mf     truth by decision of model m on the rows of fold f, with losses and calibration
    ranking_mk   how the score of class k ranks its rows above the others
    right_mn     weight of the rows that models m and n both have right, so that

                 right_mm - right_mn = weight of the rows that m has right and n has wrong

which is what McNemar's test asks of a pair. No row is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from discriminant.moments.confusion import Actions, Tally
from discriminant.moments.ranking import BINS, Ranking
from discriminant.moments.summary_base import split_by_fold
from discriminant.table.blocks import Block, Features, Floats, Labels, Places

_PIECE = 8192  # rows scored at a time, so that they stay in the cache
_RANKED = 20  # classes; of more, no ranking is kept


class Scorer(Protocol):
    """A fitted model, ready for rows of a block; it can be pickled.

    One without posteriors may have `scores(features)`, (n, K), by which rows are then ranked.
    """

    def predict(self, features: Features) -> tuple[Floats, Places, Actions]:
        """(n, K) log posteriors, (n,) places of decisions, and those that are no classes."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ModelSums:
    """Of one model."""

    tallies: tuple[Tally, ...]  # F
    rankings: tuple[Ranking, ...]  # of the second of two classes; of each of more; of many, none

    def __add__(self, other: ModelSums) -> ModelSums:
        """Over the rows of both."""
        return ModelSums(
            tuple(a + b for a, b in zip(self.tallies, other.tallies, strict=True)),
            tuple(a + b for a, b in zip(self.rankings, other.rankings, strict=True)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutSums:
    """Of M models on the same rows."""

    models: tuple[ModelSums, ...]
    right: Floats  # (M, M)
    weight: float  # of all rows

    def __add__(self, other: HeldOutSums) -> HeldOutSums:
        """Over the rows of both."""
        models = tuple(a + b for a, b in zip(self.models, other.models, strict=True))
        return HeldOutSums(models, self.right + other.right, self.weight + other.weight)

    def __radd__(self, other: object) -> HeldOutSums:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutReading:
    """Score every row by the models that were fitted without its fold."""

    labels: Labels  # (K,)
    scorers: tuple[tuple[Scorer | None, ...], ...]  # M x F; None for a fold that has no rows
    ranked: bool = True

    @property
    def summary_size(self) -> int:
        """Size of the summary."""
        K, M = len(self.labels), len(self.scorers)
        return M * len(self.scorers[0]) * 10 * K * K + M * len(self._positive()) * 3 * BINS

    def read(self, block: Block) -> HeldOutSums:
        """Of the rows of one block; without folds, all rows are of fold 0."""
        if block.fold is None:
            block = block.with_folds(np.zeros(len(block), dtype=np.intp))
        if not len(block):
            return self.empty()
        folds = [*split_by_fold(block)]
        together = np.concatenate([part.codes for _, part in folds])
        weight = _joined(folds)
        right = np.empty((len(self.scorers), len(block)))
        models = []
        for m, scorers in enumerate(self.scorers):
            found = [self._scored(scorers[f], part) for f, part in folds]
            decided = np.concatenate([one[1] for one in found])
            right[m] = decided == together
            places = [f for f, _ in folds]
            ranks = [self._ranks(scorers[f], part) for f, part in folds]
            parts = [part for _, part in folds]
            models.append(self._sums(places, parts, found, _together(ranks)))
        heavy = right if weight is None else right * weight
        total = float(len(block)) if weight is None else float(weight.sum())
        return HeldOutSums(tuple(models), np.dot(heavy, right.T), total)

    def empty(self) -> HeldOutSums:
        """Of no rows."""
        M, F = len(self.scorers), len(self.scorers[0])
        ranked = tuple(Ranking.empty(label) for _, label in self._positive())
        none = ModelSums((Tally.empty(self.labels),) * F, ranked)
        return HeldOutSums((none,) * M, np.zeros((M, M)), 0.0)

    def _scored(self, scorer: Scorer | None, part: Block) -> tuple[Floats, Places, Actions]:
        """Piece by piece."""
        assert scorer is not None
        pieces = [
            scorer.predict(part.rows(lo, min(lo + _PIECE, len(part))).features)
            for lo in range(0, len(part), _PIECE)
        ]
        if len(pieces) == 1:
            return pieces[0]
        logs, decided = (np.concatenate([piece[j] for piece in pieces]) for j in (0, 1))
        if not all(piece[2] == pieces[0][2] for piece in pieces):
            return scorer.predict(part.features)
        return logs, decided, pieces[0][2]

    def _ranks(self, scorer: Scorer | None, part: Block) -> Floats | None:
        """(n, K) scores of a model that has no posteriors to be ranked by."""
        scores = getattr(scorer, "scores", None)
        return None if scores is None or not self._positive() else scores(part.features)

    def _sums(
        self,
        places: list[int],
        parts: list[Block],
        found: list[tuple[Floats, Places, Actions]],
        ranks: Floats | None,
    ) -> ModelSums:
        tallies = [Tally.empty(self.labels)] * len(self.scorers[0])
        for f, part, (logs, decided, others) in zip(places, parts, found, strict=True):
            tallies[f] = Tally.from_decisions(
                part.codes,
                decided,
                labels=self.labels,
                others=others,
                log_posterior=logs,
                weight=part.weight,
            )
        logs = np.concatenate([one[0] for one in found]) if ranks is None else ranks
        codes = np.concatenate([part.codes for part in parts])
        weight = _joined([*zip(places, parts, strict=True)])
        rankings = tuple(
            Ranking.of(_score(logs, k), codes == k, positive=label, weight=weight)
            for k, label in self._positive()
        )
        return ModelSums(tuple(tallies), rankings)

    def _positive(self) -> list[tuple[int, Any]]:
        """The classes that are ranked."""
        names = [*enumerate(self.labels.tolist())]
        if not self.ranked or len(names) > _RANKED:
            return []
        return names[1:] if len(names) == 2 else names


def _score(logs: Floats, k: int) -> Floats:
    """(n,) log odds of the second of two classes, or the log posterior of a class."""
    if logs.shape[1] > 2:
        return logs[:, k]
    with np.errstate(invalid="ignore"):
        found = logs[:, 1] - logs[:, 0]
    return np.where(np.isnan(found), 0.0, found)


def _together(ranks: list[Floats | None]) -> Floats | None:
    some = [one for one in ranks if one is not None]
    return np.concatenate(some) if len(some) == len(ranks) else None


def _joined(folds: list[tuple[int, Block]]) -> Floats | None:
    if folds[0][1].weight is None:
        return None
    return np.concatenate([part.weight for _, part in folds if part.weight is not None])
