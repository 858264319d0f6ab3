"""Criterion of a feature search: how good the model is with one feature more or one less.

A judge holds the features chosen so far and answers for many changes at once. Two of them never
fit a model: `assessment.swept_folds` and `assessment.swept_alone`. The one here fits every
candidate, so it serves any classifier: one made from moments takes a block of the matrices of each
training part, others are fitted to the columns.

    criterion    mean over held-out rows of [class is wrong], or of -log posterior of the true class
    its error    sqrt(mean_f (c_f - c)^2 / (F - 1)), c_f of fold f: both means weighted by the rows
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from discriminant.assessment.resampling.folds import (
    FoldNumbers,
    MemoryFolds,
    is_moment_based,
    prior_option,
)
from discriminant.assessment.resampling.held_out import FoldModel, score_model
from discriminant.assessment.resampling.leave_one_out import predict_left_out
from discriminant.assessment.scorers import Predictions
from discriminant.models.gaussian.family import validate_prior
from discriminant.table.blocks import Floats
from discriminant.table.memory import Table

CriterionName = Literal["error", "log_loss"]
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class CriterionValues:
    """A criterion of m models."""

    mean: Floats  # (m,)
    se: Floats  # (m,) standard error of the mean

    @classmethod
    def of_folds(cls, sums: Floats, weight: Floats) -> CriterionValues:
        """From sums (F, m) over the rows of F folds of a given weight (F,)."""
        share = weight / weight.sum()
        each = sums / weight[:, None]
        mean = share @ each
        with np.errstate(invalid="ignore"):  # an infinite loss has no standard error
            return cls(mean, np.sqrt(share @ (each - mean) ** 2 / max(len(weight) - 1, 1)))

    @classmethod
    def of_rows(cls, losses: Floats, weight: Floats, fold: FoldNumbers) -> CriterionValues:
        """Of one model, from the loss of each row, all of positive weight."""
        sums, total = np.zeros((2, int(fold.max()) + 1))
        np.add.at(sums, fold, losses * weight)
        np.add.at(total, fold, weight)
        return cls.of_folds(sums[total > 0][:, None], total[total > 0])


class Criterion(Protocol):
    """Features chosen, and what each of the others would add."""

    chosen: Mask  # (d,)

    def evaluate_changes(self, places: Places, criterion: CriterionName) -> CriterionValues:
        """The criterion of each model that differs from the chosen one by one of the features."""
        ...

    def current(self, criterion: CriterionName) -> CriterionValues:
        """That of the chosen one."""
        ...

    def excluded(self) -> Mask:
        """(d,) features outside that cannot enter: of no variance beside those chosen."""
        ...

    def toggle(self, place: int) -> None:
        """Let a feature in, or out if it was in."""
        ...

    def include_all(self) -> None:
        """Let all in that are not constant."""
        ...


class RefitCriterion:
    """A judge that fits every candidate."""

    def __init__(self, estimator: Any, table: Table, fold: FoldNumbers, constant: Mask) -> None:
        self.estimator, self.table, self.fold, self.constant = estimator, table, fold, constant
        self.chosen: Mask = np.zeros(table.width, dtype=np.bool_)
        self.log_prior = fold_log_priors(estimator, table, fold)
        self.told = np.isfinite(self.log_prior[fold, table.codes])
        self.alone = len(self.log_prior) == len(table)
        self.by_moments = is_moment_based(estimator)
        adds = self.by_moments and not self.alone
        self.folded = MemoryFolds.of_table(table, fold, detail=estimator.detail if adds else None)

    def evaluate_changes(self, places: Places, criterion: CriterionName) -> CriterionValues:
        """Fitted one by one."""
        found = []
        for place in places:
            columns = self.chosen.copy()
            columns[place] ^= True
            found.append(self.of(np.flatnonzero(columns), criterion))
        return CriterionValues(
            np.concatenate([one.mean for one in found]), np.concatenate([one.se for one in found])
        )

    def current(self, criterion: CriterionName) -> CriterionValues:
        """The chosen one, fitted again."""
        return self.of(np.flatnonzero(self.chosen), criterion)

    def excluded(self) -> Mask:
        """Only constants: what a model does with dependent columns is its own affair."""
        return self.constant

    def toggle(self, place: int) -> None:
        """Remembered, no more."""
        self.chosen[place] ^= True

    def include_all(self) -> None:
        """All but constants."""
        self.chosen |= ~self.constant

    def of(self, columns: Places, criterion: CriterionName) -> CriterionValues:
        """The criterion of one model."""
        found = self._held_out(columns) if len(columns) else self._without_features()
        codes, weight = self.table.codes, self.table.weight
        if criterion == "error":
            wrong = (found.decided != codes) & (found.decided < len(self.table.schema.labels))
            losses = wrong.astype(np.float64)
        else:
            losses = -found.log_posterior[np.arange(len(codes)), codes]
        weight = np.ones(len(codes)) if weight is None else weight
        some = self.told & (weight > 0)
        return CriterionValues.of_rows(losses[some], weight[some], self.fold[some])

    def _without_features(self) -> Predictions:
        """The most probable class is all there is to say."""
        logs = self.log_prior[self.fold]
        return Predictions(logs, logs.argmax(axis=1))

    def _held_out(self, columns: Places) -> Predictions:
        """Held-out predictions of the model with these columns."""
        folded = self.folded.select(columns)
        if self.by_moments and self.alone:
            assert folded.table is not None
            return predict_left_out(self.estimator, folded.table, fixed_prior=False)
        scores = score_model(folded, FoldModel(self.estimator, self.by_moments))
        assert scores.predictions is not None
        return scores.predictions


def fold_log_priors(estimator: Any, table: Table, fold: FoldNumbers) -> Floats:
    """(F, K) logs of the priors given, or of the shares in each training part; -inf if not there.

    They are what is known of a held-out row without any feature.
    """
    weight = np.ones(len(table)) if table.weight is None else table.weight
    shape = int(fold.max()) + 1, len(table.schema.labels)
    inside, count = np.zeros(shape), np.zeros(shape)
    np.add.at(inside, (fold, table.codes), weight)
    np.add.at(count, (fold, table.codes), weight > 0)
    _, given = prior_option(estimator) or ("", None)
    outside = inside.sum(axis=0) - inside
    if given is not None:
        outside = validate_prior(given, table.schema.labels) + 0.0 * inside
    outside = np.where(count.sum(axis=0) > count, outside, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(outside / outside.sum(axis=1, keepdims=True)))
