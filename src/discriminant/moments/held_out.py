"""Held-out performance of several models on the same rows, as sums over these rows.

For M models, each row scored by the models fitted without its fold:

    tally_mf     true class by decision of model m on the rows of fold f, with probability scores
    ranking_mk   ranking of the rows of class k above the others by the score of class k
    right_mn     weight of the rows that models m and n both classify correctly, so that

                 right_mm - right_mn = weight of the rows that only m classifies correctly

which McNemar's test compares for a pair of models. No row is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from discriminant.moments.confusion import Actions, Tally
from discriminant.moments.ranking import BINS, Ranking
from discriminant.moments.summary_base import Summable, split_by_fold
from discriminant.table.blocks import Block, Features, Floats, Labels, Places

_CHUNK = 8192  # rows scored at a time, so that they stay in the cache
_MAX_RANKED = 20  # classes; with more of them no ranking is computed


class Scorer(Protocol):
    """A fitted model that scores the rows of a block; it can be pickled.

    A model without posteriors may have `scores(features)`, (n, K), by which rows are then ranked.
    """

    def predict(self, features: Features) -> tuple[Floats, Places, Actions]:
        """Return (n, K) log posteriors, (n,) decisions, and the actions that are not classes."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ModelSums(Summable):
    """Tallies and rankings of one model."""

    tallies: tuple[Tally, ...]  # one of each fold
    rankings: tuple[Ranking, ...]  # of the second of two classes, or of each class; see _MAX_RANKED

    def __add__(self, other: ModelSums) -> ModelSums:
        return ModelSums(
            tuple(a + b for a, b in zip(self.tallies, other.tallies, strict=True)),
            tuple(a + b for a, b in zip(self.rankings, other.rankings, strict=True)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutSums(Summable):
    """Sums of M models on the same rows."""

    models: tuple[ModelSums, ...]
    right: Floats  # (M, M)
    weight: float  # of all rows

    def __add__(self, other: HeldOutSums) -> HeldOutSums:
        models = tuple(a + b for a, b in zip(self.models, other.models, strict=True))
        return HeldOutSums(models, self.right + other.right, self.weight + other.weight)


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutReading:
    """Score every row by the models that were fitted without its fold."""

    labels: Labels  # (K,)
    scorers: tuple[tuple[Scorer | None, ...], ...]  # M x F; None for a fold that has no rows
    ranked: bool = True

    @property
    def summary_size(self) -> int:
        K, M = len(self.labels), len(self.scorers)
        return M * len(self.scorers[0]) * 10 * K * K + M * len(self._ranked_classes()) * 3 * BINS

    def read(self, block: Block) -> HeldOutSums:
        """Sum over the rows of one block; without folds, all rows are in fold 0."""
        if block.fold is None:
            block = block.with_folds(np.zeros(len(block), dtype=np.intp))
        if not len(block):
            return self.empty()
        folds = [*split_by_fold(block)]
        codes = np.concatenate([part.codes for _, part in folds])
        weight = _concatenate_weights(folds)
        right = np.empty((len(self.scorers), len(block)))
        models = []
        for m, scorers in enumerate(self.scorers):
            scored = [self._score_part(scorers[f], part) for f, part in folds]
            decided = np.concatenate([each[1] for each in scored])
            right[m] = decided == codes
            places = [f for f, _ in folds]
            ranks = [self._ranking_scores(scorers[f], part) for f, part in folds]
            parts = [part for _, part in folds]
            models.append(self._sums(places, parts, scored, _concatenate_scores(ranks)))
        heavy = right if weight is None else right * weight
        total = float(len(block)) if weight is None else float(weight.sum())
        return HeldOutSums(tuple(models), np.dot(heavy, right.T), total)

    def empty(self) -> HeldOutSums:
        """Return the sums over zero rows."""
        M, F = len(self.scorers), len(self.scorers[0])
        ranked = tuple(Ranking.empty(label) for _, label in self._ranked_classes())
        none = ModelSums((Tally.empty(self.labels),) * F, ranked)
        return HeldOutSums((none,) * M, np.zeros((M, M)), 0.0)

    def _score_part(self, scorer: Scorer | None, part: Block) -> tuple[Floats, Places, Actions]:
        assert scorer is not None
        chunks = [
            scorer.predict(part.rows(lo, min(lo + _CHUNK, len(part))).features)
            for lo in range(0, len(part), _CHUNK)
        ]
        if len(chunks) == 1:
            return chunks[0]
        logs, decided = (np.concatenate([chunk[j] for chunk in chunks]) for j in (0, 1))
        if not all(chunk[2] == chunks[0][2] for chunk in chunks):
            return scorer.predict(part.features)
        return logs, decided, chunks[0][2]

    def _ranking_scores(self, scorer: Scorer | None, part: Block) -> Floats | None:
        """Return (n, K) scores of a model without posteriors, to rank by."""
        scores = getattr(scorer, "scores", None)
        return None if scores is None or not self._ranked_classes() else scores(part.features)

    def _sums(
        self,
        fold_numbers: list[int],
        parts: list[Block],
        scored: list[tuple[Floats, Places, Actions]],
        ranks: Floats | None,
    ) -> ModelSums:
        tallies = [Tally.empty(self.labels)] * len(self.scorers[0])
        for f, part, (logs, decided, others) in zip(fold_numbers, parts, scored, strict=True):
            tallies[f] = Tally.from_decisions(
                part.codes,
                decided,
                labels=self.labels,
                others=others,
                log_posterior=logs,
                weight=part.weight,
            )
        logs = np.concatenate([each[0] for each in scored]) if ranks is None else ranks
        codes = np.concatenate([part.codes for part in parts])
        weight = _concatenate_weights([*zip(fold_numbers, parts, strict=True)])
        rankings = tuple(
            Ranking.of(_score(logs, k), codes == k, positive=label, weight=weight)
            for k, label in self._ranked_classes()
        )
        return ModelSums(tuple(tallies), rankings)

    def _ranked_classes(self) -> list[tuple[int, Any]]:
        """Return codes and labels of the classes that are ranked."""
        names = [*enumerate(self.labels.tolist())]
        if not self.ranked or len(names) > _MAX_RANKED:
            return []
        return names[1:] if len(names) == 2 else names


def _score(logs: Floats, k: int) -> Floats:
    """Return (n,) log odds of the second of two classes, or the log posterior of a class."""
    if logs.shape[1] > 2:
        return logs[:, k]
    with np.errstate(invalid="ignore"):
        log_odds = logs[:, 1] - logs[:, 0]
    return np.where(np.isnan(log_odds), 0.0, log_odds)


def _concatenate_scores(ranks: list[Floats | None]) -> Floats | None:
    known = [scores for scores in ranks if scores is not None]
    return np.concatenate(known) if len(known) == len(ranks) else None


def _concatenate_weights(folds: list[tuple[int, Block]]) -> Floats | None:
    if folds[0][1].weight is None:
        return None
    return np.concatenate([part.weight for _, part in folds if part.weight is not None])
