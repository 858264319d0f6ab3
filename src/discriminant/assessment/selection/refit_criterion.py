"""Criteria of a feature search, the held-out error or log loss; `RefitCriterion` refits models.

A `Criterion` stores the features selected so far. All models with one feature more or less are
evaluated at once. The criteria in `selection.sweep` never fit a model. `RefitCriterion` fits every
candidate, so it works for any classifier: a moment-based classifier is fitted to blocks of the
moment matrices of each training set, any other classifier to the rows of the selected columns.

    criterion        mean over held-out rows of [wrong class], or of -log posterior of true class
    standard error   sqrt(mean_f (c_f - c)^2 / (F - 1)), c_f of fold f; means weighted by rows
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from discriminant.assessment.classifier_outputs import Predictions
from discriminant.assessment.resampling.folds import (
    FoldNumbers,
    MemoryFolds,
    is_moment_based,
    prior_option,
)
from discriminant.assessment.resampling.held_out_folds import FoldModel, score_one_model
from discriminant.assessment.resampling.leave_one_out import predict_left_out
from discriminant.models.gaussian.family import validate_prior
from discriminant.table.blocks import Floats
from discriminant.table.memory import Table

CriterionName = Literal["error", "log_loss"]
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class CriterionValues:
    """Values of a criterion for m models."""

    mean: Floats  # (m,) values
    se: Floats  # (m,) standard error of the mean

    @classmethod
    def of_folds(cls, sums: Floats, weight: Floats) -> CriterionValues:
        """Return the values from sums (F, m) of losses over F folds with weights (F,)."""
        share = weight / weight.sum()
        fold_means = sums / weight[:, None]
        mean = share @ fold_means
        with np.errstate(invalid="ignore"):  # an infinite loss has no standard error
            return cls(mean, np.sqrt(share @ (fold_means - mean) ** 2 / max(len(weight) - 1, 1)))

    @classmethod
    def of_rows(cls, losses: Floats, weight: Floats, fold: FoldNumbers) -> CriterionValues:
        """Return the mean loss of one model over its rows, all of positive weight."""
        sums, total = np.zeros((2, int(fold.max()) + 1))
        np.add.at(sums, fold, losses * weight)
        np.add.at(total, fold, weight)
        return cls.of_folds(sums[total > 0][:, None], total[total > 0])


class Criterion(Protocol):
    """Selected features, and the criterion of the models with one feature added or removed."""

    chosen: Mask  # (d,) True where the feature is selected

    def evaluate_changes(self, places: Places, criterion: CriterionName) -> CriterionValues:
        """Return the criterion of each model with one feature added or removed.

        `places` are the indices of these features.
        """
        ...

    def current(self, criterion: CriterionName) -> CriterionValues:
        """Return the criterion of the current model."""
        ...

    def excluded(self) -> Mask:
        """Return a mask of features that cannot enter: constant ones, or collinear with others."""
        ...

    def toggle(self, place: int) -> None:
        """Add a feature, or remove it if it is selected."""
        ...

    def include_all(self) -> None:
        """Add all features that are not constant."""
        ...


class RefitCriterion:
    """Criterion that fits every candidate model."""

    def __init__(self, estimator: Any, table: Table, fold: FoldNumbers, constant: Mask) -> None:
        self.estimator, self.table, self.fold, self.constant = estimator, table, fold, constant
        self.chosen: Mask = np.zeros(table.width, dtype=np.bool_)
        self.log_prior = fold_log_priors(estimator, table, fold)
        # (N,) True where the class of the row occurs in its training set
        self.learned = np.isfinite(self.log_prior[fold, table.codes])
        self.leave_one_out = len(self.log_prior) == len(table)
        self.from_moments = is_moment_based(estimator)
        adds = self.from_moments and not self.leave_one_out
        self.folded = MemoryFolds.of_table(table, fold, detail=estimator.detail if adds else None)

    def evaluate_changes(self, places: Places, criterion: CriterionName) -> CriterionValues:
        """Fit the models with one feature more or less, one by one."""
        values = []
        for place in places:
            columns = self.chosen.copy()
            columns[place] ^= True
            values.append(self.evaluate(np.flatnonzero(columns), criterion))
        mean, se = ([getattr(value, name) for value in values] for name in ("mean", "se"))
        return CriterionValues(np.concatenate(mean), np.concatenate(se))

    def current(self, criterion: CriterionName) -> CriterionValues:
        """Fit the current model again."""
        return self.evaluate(np.flatnonzero(self.chosen), criterion)

    def excluded(self) -> Mask:
        """Return a mask of the constant features; the model itself handles collinear ones."""
        return self.constant

    def toggle(self, place: int) -> None:
        """Add a feature, or remove it if it is selected."""
        self.chosen[place] ^= True

    def include_all(self) -> None:
        """Add all features that are not constant."""
        self.chosen |= ~self.constant

    def evaluate(self, columns: Places, criterion: CriterionName) -> CriterionValues:
        """Return the criterion of the model with these columns."""
        predictions = self._held_out(columns)
        codes, decided = self.table.codes, predictions.decided
        if criterion == "error":
            wrong = (decided != codes) & (decided < len(self.table.schema.labels))
            losses = wrong.astype(np.float64)
        else:
            losses = -predictions.log_posterior[np.arange(len(codes)), codes]
        weight = np.ones(len(codes)) if self.table.weight is None else self.table.weight
        rows = self.learned & (weight > 0)
        return CriterionValues.of_rows(losses[rows], weight[rows], self.fold[rows])

    def _held_out(self, columns: Places) -> Predictions:
        """Return the held-out predictions of the model with these columns.

        Without columns, the model predicts from its priors.
        """
        if not len(columns):
            logs = self.log_prior[self.fold]
            return Predictions(logs, logs.argmax(axis=1))
        folded = self.folded.select(columns)
        if self.from_moments and self.leave_one_out:
            assert folded.table is not None
            return predict_left_out(self.estimator, folded.table, fixed_prior=False)
        scores = score_one_model(folded, FoldModel(self.estimator, self.from_moments))
        assert scores.predictions is not None
        return scores.predictions


def fold_log_priors(estimator: Any, table: Table, fold: FoldNumbers) -> Floats:
    """Return the log priors in each training set, (F, K); -inf for a class that is missing there.

    The priors are the estimator's, or the class frequencies if it has none. A model without
    features predicts every held-out row from its priors.
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
