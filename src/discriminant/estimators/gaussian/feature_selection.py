"""Base classes of Gaussian classifiers that select features.

    FeatureSelectingClassifier  the selected features as a mask and by name
    PenalisedClassifier         a penalty that is a number or chosen by cross-validation

A `PenalisedClassifier` defines `penalty_grid` and `rules_at`, both functions of class moments.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt

from discriminant.assessment.resampling.folds import restrict_prior
from discriminant.assessment.resampling.held_out_penalty_path import SelectionPath, score_path
from discriminant.errors import LabelError, OptionError
from discriminant.estimators.base import LinearMomentClassifier
from discriminant.models.rules import LinearRule
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.table.blocks import Floats

_SEED = 1  # seed of the folds of a partitioned table; an outer cross-validation uses another one


class FeatureSelectingClassifier(LinearMomentClassifier):
    """Base class of linear classifiers that use only some of the features.

    Attributes
    ----------
    support_ : boolean array of shape (d,)
        Whether each feature is selected.
    selected_features_ : array of texts
        Names of the selected features, in the order of the columns.
    n_selected_ : int
        Number of selected features.
    """

    @property
    def support_(self) -> npt.NDArray[np.bool_]:
        """Whether each feature is selected (d,)."""
        return np.asarray(self._linear_rule().coef.any(axis=0))

    @property
    def selected_features_(self) -> npt.NDArray[Any]:
        """Names of the selected features, in the order of the columns."""
        return np.array(self._schema.features, dtype=object)[self.support_]

    @property
    def n_selected_(self) -> int:
        """Number of selected features."""
        return int(self.support_.sum())


class PenalisedClassifier(FeatureSelectingClassifier):
    """Base class of classifiers with a penalty that removes features.

    Attributes
    ----------
    cv_ : SelectionPath or None
        Number of features, held-out error and log loss of every penalty on the grid, if the penalty
        is 'cv'. `partial_fit` and `forget` keep the chosen penalty; `fit` chooses again.
    """

    cv_: SelectionPath | None
    folds: Any
    _penalty_option: ClassVar[str]

    # --- defined by subclasses ------------------------------------------------------------------

    def penalty_grid(self, moments: ClassMoments) -> Floats:
        """Return the penalties, in increasing order, among which cross-validation chooses."""
        raise NotImplementedError

    def rules_at(self, moments: ClassMoments, penalties: Sequence[float]) -> tuple[LinearRule, ...]:
        """Return the rule fitted to moments for each penalty."""
        raise NotImplementedError

    def _check_options(self) -> None:
        """Raise `OptionError` if an option is not valid."""
        raise NotImplementedError

    # --- fitting ----------------------------------------------------------------------------------

    @property
    def detail(self) -> Detail:
        """Level of detail of the moments: 'diagonal' (variances without covariances)."""
        return "diagonal"

    def accepts(self, moments: ClassMoments | ClassRows) -> bool:
        """Return whether moments are enough for a fit. Pooled scatters include the variances."""
        return moments.has("diagonal") or moments.has("pooled")

    @property
    def needs_rows(self) -> bool:
        """Whether the penalty is chosen on held-out rows."""
        penalty = getattr(self, self._penalty_option)
        return isinstance(penalty, str) and penalty == "cv"

    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the model. A penalty given as 'cv' is first chosen on held-out rows.

        Parameters
        ----------
        X, y, sample_weight
            As in `LDA.fit`. With 'cv', a partitioned table is read two more times.

        Returns
        -------
        self
        """
        self._check_options()
        self.cv_ = None
        if not self.needs_rows:
            return super().fit(X, y, sample_weight)
        table = self._open_table(X, y, sample_weight)
        if len(table.schema.labels) < 2:
            raise LabelError.one_class(table.schema.labels[0])
        labels = table.schema.labels

        def fit_path(moments: ClassMoments, penalties: Floats) -> tuple[LinearRule, ...]:
            model = restrict_prior(self, np.isin(labels, moments.labels), labels)
            return cast("tuple[LinearRule, ...]", model.rules_at(moments, penalties.tolist()))

        self.cv_ = score_path(
            table,
            grid=self.penalty_grid,
            fit=fit_path,
            folds=self.folds,
            detail=self.detail,
            seed=_SEED,
        )
        return self._fit_table(table)

    def fit_moments(self, moments: ClassMoments | ClassRows) -> Self:
        """Fit the model from class moments. Raise `OptionError` with 'cv', which needs rows."""
        self._check_options()
        self.cv_ = None  # a penalty chosen by an earlier fit is not valid for these moments
        return super().fit_moments(moments)

    def _fit_from(self, moments: ClassMoments | ClassRows, named: bool | None = None) -> Self:
        self._check_classes(moments)
        return super()._fit_from(moments, named)

    def _check_classes(self, moments: ClassMoments | ClassRows) -> None:
        """Raise an error if a class has too few rows. Training sets of folds are not checked."""

    def rule_from(self, moments: ClassMoments | ClassRows) -> LinearRule:
        """Return the rule fitted to moments, without changing the model."""
        self._check_options()
        variances = moments.reduce("diagonal") if isinstance(moments, ClassRows) else moments
        return self.rules_at(variances, [self._penalty_value()])[0]

    def _penalty_value(self) -> float:
        """Return the penalty: the option, or the value chosen by cross-validation."""
        if not self.needs_rows:
            return float(getattr(self, self._penalty_option))
        path = getattr(self, "cv_", None)
        if path is None:
            allowed = "a number if there are no rows to hold out"
            raise OptionError.of(self._penalty_option, "cv", allowed)
        return float(path.penalty[path.best()])


def is_number(value: Any) -> bool:
    """Return whether an option is a finite number; truth values are not numbers."""
    is_truth = isinstance(value, bool | np.bool_)
    return isinstance(value, Real) and not is_truth and bool(np.isfinite(float(value)))


def is_whole(value: Any, least: int) -> bool:
    """Return whether an option is a whole number of at least `least`."""
    return is_number(value) and isinstance(value, Integral) and int(value) >= least


def check_grid(name: str, value: Any) -> None:
    """Raise `OptionError` unless a grid is a number of penalties or the penalties themselves."""
    if is_whole(value, 2):
        return
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.ndim != 1 or not len(array) or not (np.isfinite(array) & (array >= 0)).all():
        allowed = "a whole number of 2 or more, or an array of numbers of 0 or more"
        raise OptionError.of(name, value, allowed)
