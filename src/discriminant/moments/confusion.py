"""Confusion matrix of decisions and true classes, and counts of predicted classes.

    weight[a, k] = sum of w over the rows of class k for which action a was chosen

Actions are the K classes, in the order of their labels, followed by all other decisions: actions
that are not classes, and rejection. A `Tally` also holds the sums of `w^2`, from which the
effective number of rows is computed, and the probability scores (`moments.probability_scores`) of
the rows that have posteriors. The classes of a sum of two tallies are the union of their classes.
`assessment.measures` computes error, recall and cost from a tally.

`PredictedCounts` needs no true classes:

    counts_k = number of rows of positive weight whose largest score is that of class k

If several classes share the largest score, the row counts for the first of these classes, as in a
prediction.
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
from discriminant.moments.summary_base import Summable, split_rows
from discriminant.table.blocks import Block, Codes, Features, Floats, Labels, Places
from discriminant.table.labels import union_labels

Actions = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tally(Summable):
    """Confusion matrix (A, K): number and weight of rows by chosen action and true class."""

    labels: Labels  # (K,) sorted and distinct
    actions: Actions  # A names: the K labels, then any others
    rows: npt.NDArray[np.int64]  # (A, K) rows of positive weight
    weight: Floats  # (A, K)
    weight2: Floats  # (A, K) sum of squared weights
    scored: ProbabilityScores  # probability scores of the rows with posteriors

    @classmethod
    def empty(cls, labels: Labels, *, others: Iterable[Hashable] = (), bins: int = BINS) -> Self:
        """Return a tally without rows."""
        actions = (*labels.tolist(), *sort_actions(others))
        shape = (len(actions), len(labels))
        scored = ProbabilityScores.empty(len(labels), bins=bins)
        return cls(
            labels,
            actions,
            np.zeros(shape, dtype=np.int64),
            np.zeros(shape),
            np.zeros(shape),
            scored,
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
        """Return the tally of some rows.

        Parameters
        ----------
        codes : array of shape (n,)
            True class of each row.
        decided : array of shape (n,)
            Index of the chosen action, in `labels` followed by `others`.
        labels : array of shape (K,)
            Sorted, distinct labels of the classes.
        others : sequence
            Actions that are not classes, in the order of `sort_actions`.
        log_posterior : array of shape (n, K), optional
            Log posteriors, from which log loss, Brier score and calibration are computed.
        weight : array of shape (n,), optional
            Weight of each row (default: one). Rows of weight 0 are ignored.
        bins : int, default=60
            Number of calibration bins.

        Examples
        --------
        >>> tally = Tally.from_decisions(
        ...     np.array([0, 0, 1]), np.array([0, 1, 1]), labels=np.array(["a", "b"])
        ... )
        >>> tally.weight.tolist()
        [[1.0, 0.0], [1.0, 1.0]]
        """
        if weight is not None and not weight.all():
            positive = weight > 0
            codes, decided, weight = codes[positive], decided[positive], weight[positive]
            log_posterior = None if log_posterior is None else log_posterior[positive]
        tally = cls.empty(labels, others=others, bins=bins)
        A, K = tally.weight.shape
        cell = decided.astype(np.intp) * K + codes
        rows = np.bincount(cell, minlength=A * K).reshape(A, K)
        sums = [rows.astype(np.float64)] * 2
        if weight is not None:
            sums = [
                np.asarray(np.bincount(cell, w, minlength=A * K), np.float64).reshape(A, K)
                for w in (weight, weight**2)
            ]
        scored = tally.scored
        if log_posterior is not None and len(codes):
            scored = ProbabilityScores.from_posteriors(log_posterior, codes, weight, bins=bins)
        return replace(tally, rows=rows, weight=sums[0], weight2=sums[1], scored=scored)

    def among(self, labels: Labels, others: Iterable[Hashable] = ()) -> Self:
        """Extend the tally to a larger set of classes and actions.

        The larger set must include all classes and actions of this tally.
        """
        wider = type(self).empty(labels, others=others, bins=self.scored.top.shape[1])
        if wider.actions == self.actions:
            return replace(self, labels=labels)
        index_of = {action: a for a, action in enumerate(wider.actions)}
        actions = np.array([index_of[action] for action in self.actions], dtype=np.intp)
        classes = actions[: len(self.labels)]
        cells = np.ix_(actions, classes)
        wider.rows[cells], wider.weight[cells] = self.rows, self.weight
        wider.weight2[cells] = self.weight2
        return replace(wider, scored=self.scored.reindex(classes, len(labels)))

    def __add__(self, other: Tally) -> Self:
        labels = union_labels(self.labels, other.labels)
        others = {*self.others, *other.others}.difference(labels.tolist())
        ours, theirs = self.among(labels, others), other.among(labels, others)
        return replace(
            ours,
            rows=ours.rows + theirs.rows,
            weight=ours.weight + theirs.weight,
            weight2=ours.weight2 + theirs.weight2,
            scored=ours.scored + theirs.scored,
        )

    @property
    def others(self) -> Actions:
        """Actions that are not classes."""
        return self.actions[len(self.labels) :]


@dataclass(frozen=True, slots=True, eq=False)
class TallyReading:
    """Predict the posteriors of rows, choose actions by the posteriors, and tally the actions."""

    labels: Labels  # (K,)
    log_posterior: Callable[[Features], Floats]  # (n, d) features to (n, K)
    decide: Callable[[Floats], Places] | None = None  # to actions; None: most probable class
    others: Actions = ()

    @property
    def summary_size(self) -> int:
        K = len(self.labels)
        return 3 * (K + len(self.others)) * K + 3 * K * BINS

    def read(self, block: Block) -> Tally:
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
    """Sort the actions that are not classes as in a tally: rejection comes last.

    >>> sort_actions(["operate", "call"])
    ['call', 'operate']
    """

    def rank(action: Any) -> tuple[bool, str, str]:
        return isinstance(action, Enum), type(action).__name__, str(action)

    return sorted(set(others), key=rank)


_TILE = 1 << 17  # number of scores computed at a time, which fit into the cache


@dataclass(frozen=True, slots=True, eq=False)
class PredictedCounts(Summable):
    """Number of rows that a linear rule assigns to each of K classes."""

    features: tuple[str, ...]  # d names
    counts: npt.NDArray[np.int64]  # (K,)

    @classmethod
    def empty(cls, features: Sequence[str], classes: int) -> PredictedCounts:
        """Return counts without rows."""
        return cls(tuple(features), np.zeros(classes, dtype=np.int64))

    def __add__(self, other: PredictedCounts) -> PredictedCounts:
        if self.features != other.features:
            raise MomentsMismatchError.of_features(self.features, other.features)
        return replace(self, counts=self.counts + other.counts)


@dataclass(frozen=True, slots=True, eq=False)
class PredictedCountsReading:
    """Count the classes predicted by a linear rule."""

    features: tuple[str, ...]  # d names
    anchor: Anchor
    coef: Floats  # (K, d) for offsets
    intercept: Floats  # (K,)

    @property
    def summary_size(self) -> int:
        return len(self.intercept)

    def read(self, block: Block) -> PredictedCounts:
        K = len(self.intercept)
        size = max(_TILE // K, 64)
        counts = np.zeros(K, dtype=np.int64)
        for tile in split_rows(block, size):
            scores = self.anchor.offsets(tile.features) @ self.coef.T
            scores += self.intercept
            predicted = scores.argmax(axis=1)
            if tile.weight is not None:
                predicted = predicted[tile.weight > 0]
            counts += np.bincount(predicted, minlength=K)
        return PredictedCounts(self.features, counts)
