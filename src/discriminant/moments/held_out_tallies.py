"""Held-out performance of several models on the same rows, as sums over these rows.

Each row is scored by M models that were fitted without the fold of this row. The sums are

    tally_mf     true class by decision of model m on the rows of fold f, with probability scores
    ranking_mk   ranking of the rows of class k above the others by the score of class k
    right_mn     weight of the rows that models m and n both classify correctly, so that

                 right_mm - right_mn = weight of the rows that only m classifies correctly

McNemar's test compares this weight with the weight of the rows that only n classifies correctly. No
row is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from discriminant.moments.confusion import Actions, Tally
from discriminant.moments.ranking import BINS, Ranking
from discriminant.moments.summary_base import Summable, split_by_fold
from discriminant.table.blocks import Block, Features, Floats, Labels, Places

_CHUNK = 8192  # rows scored at a time, so that they stay in the cache
_MAX_RANKED = 20  # largest number of classes for which rankings are computed


class Scorer(Protocol):
    """A fitted model that scores the rows of a block. It must be picklable.

    A model without posteriors may have a method `scores(features)` that returns (n, K) scores; rows
    are then ranked by these scores.
    """

    def predict(self, features: Features) -> tuple[Floats, Places, Actions]:
        """Return log posteriors (n, K), decisions (n,), and the actions that are not classes."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ModelSums(Summable):
    """Tallies and rankings of one model."""

    tallies: tuple[Tally, ...]  # one per fold
    rankings: tuple[Ranking, ...]  # by class; for two classes only the second; see _MAX_RANKED

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
    """Score every row by the models fitted without its fold, and sum up their performance."""

    labels: Labels  # (K,)
    scorers: tuple[tuple[Scorer | None, ...], ...]  # M x F; None for a fold that has no rows
    ranked: bool = True

    @property
    def summary_size(self) -> int:
        K, M = len(self.labels), len(self.scorers)
        return M * len(self.scorers[0]) * 10 * K * K + M * len(self._ranked_classes()) * 3 * BINS

    def read(self, block: Block) -> HeldOutSums:
        """Return the sums over the rows of one block.

        If there are no folds, all rows belong to fold 0.
        """
        if block.fold is None:
            block = block.with_folds(np.zeros(len(block), dtype=np.intp))
        if not len(block):
            return self.empty()
        folds = [*split_by_fold(block)]
        codes = np.concatenate([part.codes for _, part in folds])
        weight = None
        if block.weight is not None:
            weight = np.concatenate([part.weight for _, part in folds if part.weight is not None])
        right = np.empty((len(self.scorers), len(block)))
        models = []
        for m, scorers in enumerate(self.scorers):
            predictions = [self._predict_part(scorers[f], part) for f, part in folds]
            right[m] = np.concatenate([decided for _, decided, _ in predictions]) == codes
            scores = self._ranking_scores(scorers, folds)
            if scores is None:
                scores = np.concatenate([logs for logs, _, _ in predictions])
            rankings = tuple(
                Ranking.of(_score(scores, k), codes == k, positive=label, weight=weight)
                for k, label in self._ranked_classes()
            )
            models.append(ModelSums(self._tallies(folds, predictions), rankings))
        weighted = right if weight is None else right * weight
        total = float(len(block)) if weight is None else float(weight.sum())
        return HeldOutSums(tuple(models), np.dot(weighted, right.T), total)

    def empty(self) -> HeldOutSums:
        """Return sums without rows, which are zero."""
        M, F = len(self.scorers), len(self.scorers[0])
        ranked = tuple(Ranking.empty(label) for _, label in self._ranked_classes())
        model = ModelSums((Tally.empty(self.labels),) * F, ranked)
        return HeldOutSums((model,) * M, np.zeros((M, M)), 0.0)

    def _predict_part(self, scorer: Scorer | None, part: Block) -> tuple[Floats, Places, Actions]:
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

    def _ranking_scores(
        self, scorers: Sequence[Scorer | None], folds: list[tuple[int, Block]]
    ) -> Floats | None:
        """Return the (n, K) scores by which rows are ranked; None means by their posteriors.

        Scores are used only if the models of all folds have a method `scores`.
        """
        functions = [getattr(scorers[f], "scores", None) for f, _ in folds]
        if not self._ranked_classes() or None in functions:
            return None
        parts = zip(functions, folds, strict=True)
        return np.concatenate([scores(part.features) for scores, (_, part) in parts])  # type: ignore[misc]

    def _tallies(
        self,
        folds: list[tuple[int, Block]],
        predictions: list[tuple[Floats, Places, Actions]],
    ) -> tuple[Tally, ...]:
        tallies = [Tally.empty(self.labels)] * len(self.scorers[0])
        for (f, part), (logs, decided, others) in zip(folds, predictions, strict=True):
            tallies[f] = Tally.from_decisions(
                part.codes,
                decided,
                labels=self.labels,
                others=others,
                log_posterior=logs,
                weight=part.weight,
            )
        return tuple(tallies)

    def _ranked_classes(self) -> list[tuple[int, Any]]:
        """Return the code and the label of each class for which a ranking is computed."""
        names = [*enumerate(self.labels.tolist())]
        if not self.ranked or len(names) > _MAX_RANKED:
            return []
        return names[1:] if len(names) == 2 else names


def _score(logs: Floats, k: int) -> Floats:
    """Return the ranking score of class `k` for each row, (n,).

    The score is the log odds if there are two classes, otherwise the log posterior.
    """
    if logs.shape[1] > 2:
        return logs[:, k]
    with np.errstate(invalid="ignore"):
        log_odds = logs[:, 1] - logs[:, 0]
    return np.where(np.isnan(log_odds), 0.0, log_odds)
