"""Truth by decision: all measures of a classifier follow from it, and tallies add.

    weight[a, k] = sum of w over the rows of class k for which action a was taken

Actions are the K classes, in the order of their labels, and after them whatever else was decided:
an action that is no class, or a refusal to decide. Beside it the sums of w^2, which tell how many
rows weights are worth, and of what the posteriors were worth (`moments.scored`), if there were any.

Parts that know different classes add to the union; a class that a part does not know has no rows
there. What error, recall or cost follow is not said here: see `assessment.measures`.

How many rows a linear rule gives to each class.

    told_k = number of rows of positive weight whose largest score is that of class k

Of equal scores the first counts, as in a prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from discriminant.errors import MomentsMismatchError
from discriminant.moments.anchor import Anchor
from discriminant.moments.probability_scores import BINS, ProbabilityScores
from discriminant.table.blocks import Block, Codes, Features, Floats, Labels, Places
from discriminant.table.labels import union_labels

Actions = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Rows of K classes by the A actions taken."""

    labels: Labels  # (K,) sorted and distinct
    actions: Actions  # A names: the K labels, then any others
    rows: npt.NDArray[np.int64]  # (A, K) rows of positive weight
    weight: Floats  # (A, K)
    weight2: Floats  # (A, K) sum of squared weights
    scored: ProbabilityScores  # of the rows that came with posteriors

    @classmethod
    def empty(cls, labels: Labels, *, others: Iterable[Hashable] = (), bins: int = BINS) -> Self:
        """Of no rows."""
        actions = (*labels.tolist(), *sort_actions(others))
        size = (len(actions), len(labels))
        scored = ProbabilityScores.empty(len(labels), bins=bins)
        return cls(
            labels, actions, np.zeros(size, dtype=np.int64), np.zeros(size), np.zeros(size), scored
        )

    @classmethod
    def from_decisions(
        cls,
        codes: Codes,
        decided: Places,
        *,
        labels: Labels,
        others: Sequence[Hashable] = (),
        log_posterior: Floats | None = None,
        weight: Floats | None = None,
        bins: int = BINS,
    ) -> Self:
        """Count rows.

        Parameters
        ----------
        codes
            (n,) the true class of each row.
        decided
            (n,) the place of the action taken, in `labels` and then in `others`.
        labels
            (K,) sorted and distinct.
        others
            Actions that are no classes, as `in_order` has them.
        log_posterior
            (n, K), for losses and calibration.
        weight
            (n,) None is one for every row; a row of weight 0 is absent.

        Examples
        --------
        >>> truth, decided = np.array([0, 0, 1]), np.array([0, 1, 1])
        >>> found = Tally.from_decisions(truth, decided, labels=np.array(["a", "b"]))
        >>> found.weight.tolist()
        [[1.0, 0.0], [1.0, 1.0]]
        """
        if weight is not None and not weight.all():
            some = weight > 0
            codes, decided, weight = codes[some], decided[some], weight[some]
            log_posterior = None if log_posterior is None else log_posterior[some]
        found = cls.empty(labels, others=others, bins=bins)
        A, K = found.weight.shape
        cell = decided.astype(np.intp) * K + codes
        rows = np.bincount(cell, minlength=A * K).reshape(A, K)
        sums = [rows.astype(np.float64)] * 2
        if weight is not None:
            sums = [
                np.asarray(np.bincount(cell, each, minlength=A * K), np.float64).reshape(A, K)
                for each in (weight, weight**2)
            ]
        scored = found.scored
        if log_posterior is not None and len(codes):
            scored = ProbabilityScores.from_posteriors(log_posterior, codes, weight, bins=bins)
        return replace(found, rows=rows, weight=sums[0], weight2=sums[1], scored=scored)

    def among(self, labels: Labels, others: Iterable[Hashable] = ()) -> Self:
        """The same rows among more classes and actions, all of its own included."""
        found = type(self).empty(labels, others=others, bins=self.scored.top.shape[1])
        if found.actions == self.actions:
            return replace(self, labels=labels)
        place = {action: a for a, action in enumerate(found.actions)}
        columns = np.array([place[label] for label in self.labels.tolist()], dtype=np.intp)
        lines = np.array([place[action] for action in self.actions], dtype=np.intp)
        cells = np.ix_(lines, columns)
        found.rows[cells], found.weight[cells] = self.rows, self.weight
        found.weight2[cells] = self.weight2
        return replace(found, scored=self.scored.reindex(columns, len(labels)))

    def __add__(self, other: Tally) -> Self:
        """Over the rows of both."""
        labels = union_labels(self.labels, other.labels)
        others = {*self.others, *other.others}.difference(labels.tolist())
        one, two = self.among(labels, others), other.among(labels, others)
        return replace(
            one,
            rows=one.rows + two.rows,
            weight=one.weight + two.weight,
            weight2=one.weight2 + two.weight2,
            scored=one.scored + two.scored,
        )

    def __radd__(self, other: object) -> Self:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    @property
    def others(self) -> Actions:
        """The actions that are no classes."""
        return self.actions[len(self.labels) :]


@dataclass(frozen=True, slots=True, eq=False)
class TallyReading:
    """Decide rows by their posteriors and count."""

    labels: Labels  # (K,)
    log_posterior: Callable[[Features], Floats]  # of (n, d) features, (n, K)
    decide: Callable[[Floats], Places] | None = None  # of these; None: the most probable class
    others: Actions = ()

    @property
    def summary_size(self) -> int:
        """Size of the summary."""
        K = len(self.labels)
        return 3 * (K + len(self.others)) * K + 3 * K * BINS

    def read(self, block: Block) -> Tally:
        """Tally of the rows of one block."""
        logs = self.log_posterior(block.features)
        decided = logs.argmax(axis=1) if self.decide is None else self.decide(logs)
        return Tally.from_decisions(
            block.codes,
            decided,
            labels=self.labels,
            others=self.others,
            log_posterior=logs,
            weight=block.weight,
        )


def sort_actions(others: Iterable[Hashable]) -> list[Hashable]:
    """Actions that are no classes in the one order they have in every tally: refusals are last.

    >>> sort_actions(["operate", "call"])
    ['call', 'operate']
    """

    def rank(action: Any) -> tuple[bool, str, str]:
        return isinstance(action, Enum), type(action).__name__, str(action)

    return sorted(set(others), key=rank)


_TILE = 1 << 17  # scores worked out at a time, so that they stay in the cache


@dataclass(frozen=True, slots=True, eq=False)
class PredictedCounts:
    """Rows in d features given to each of K classes by one rule."""

    features: tuple[str, ...]  # d names
    counts: npt.NDArray[np.int64]  # (K,)

    @classmethod
    def empty(cls, features: Sequence[str], classes: int) -> PredictedCounts:
        """Of no rows."""
        return cls(tuple(features), np.zeros(classes, dtype=np.int64))

    def __add__(self, other: PredictedCounts) -> PredictedCounts:
        """Over the rows of both, told by the same rule."""
        if self.features != other.features:
            raise MomentsMismatchError.of_features(self.features, other.features)
        return replace(self, counts=self.counts + other.counts)

    def __radd__(self, other: object) -> PredictedCounts:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class PredictedCountsReading:
    """Tell rows by a linear rule and count."""

    features: tuple[str, ...]  # d names
    anchor: Anchor
    coef: Floats  # (K, d) for offsets
    intercept: Floats  # (K,)

    @property
    def summary_size(self) -> int:
        """Size of the summary."""
        return len(self.intercept)

    def read(self, block: Block) -> PredictedCounts:
        """Over the rows of one block."""
        K = len(self.intercept)
        size = max(_TILE // K, 64)
        told = np.zeros(K, dtype=np.int64)
        for lo in range(0, len(block), size):
            tile = block.rows(lo, min(lo + size, len(block)))
            scores = self.anchor.offsets(tile.features) @ self.coef.T
            scores += self.intercept
            chosen = scores.argmax(axis=1)
            if tile.weight is not None:
                chosen = chosen[tile.weight > 0]
            told += np.bincount(chosen, minlength=K)
        return PredictedCounts(self.features, told)
