"""Base classes of the estimators: opening rows, fitting, fitted state, prediction and saving.

    EstimatorMixin       options, `save`, the check that a model is fitted
    RowEstimator         matches the columns of new rows with those of the fit, by name or by place
    MomentClassifier     a function of class moments: one pass, then algebra
    IterativeEstimator   reads the rows repeatedly until a fit converges
    IterativeClassifier  the same for classes

A classifier from moments adds its options, `detail` (the sums that it needs) and
`rule_from(moments)`, a pure function: fitting and every kind of resampling call only that. A
classifier that iterates adds its options, `_check_options` and `_fit_table(table)`, which makes
its passes over the table, calls `_set_rule` and sets its other fitted attributes.

`fit(rows)`, without y, fits a partitioned table (`discriminant.rows`), which knows its own labels
and weights. A model that needs its rows in memory loads them if they are few enough, and raises
NeedsMemoryError otherwise. A model fitted that way knows the encoded features: `predict` accepts
frames that have these columns. `Encoded(model).fit(rows)` accepts the original columns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from types import MethodType
from typing import Any, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from discriminant.engines.dispatch import read_classes
from discriminant.engines.local import blas_context, map_rows
from discriminant.engines.partitioned_table import (
    AnyTable,
    PartitionedTable,
    reject_separate_labels,
    table_in_memory,
)
from discriminant.errors import (
    InfiniteValueError,
    LabelError,
    MomentsMismatchError,
    NamesUncheckedWarning,
    OptionError,
    ShapeError,
    TooFewRowsError,
    WeightError,
    merge_warnings,
    warn,
)
from discriminant.estimators.method_wrappers import (
    IgnoresUnderflow,
    OptionCopies,
    ignore_underflow,
)
from discriminant.estimators.sklearn_option_hints import OptionHints
from discriminant.models.gaussian.family import class_prior
from discriminant.models.rules import LinearRule, Rule
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.stored_rows import ClassRows
from discriminant.moments.probability_scores import max_and_argmax
from discriminant.posterior import log_posterior, posterior
from discriminant.table.blocks import Block, Features, Floats, Schema, dense, numbered_names
from discriminant.table.memory import Table, as_features, as_table

F = TypeVar("F", bound=Callable[..., Any])
Prior = npt.ArrayLike | Mapping[Any, float]  # (K,) in the order of the classes, or by label

# Members for other modules of the package and for new models: they are not listed by `dir`.
_NOT_LISTED = frozenset(
    [
        "accepts",
        "base_",
        "binary_rules_",
        "can_marginalise",
        "check_options",
        "cost_lift_",
        "costs",
        "detail",
        "detail_for",
        "directions",
        "family",
        "gaussian_classes",
        "invalid_reason",
        "known_prior",
        "leave_one_out_scores",
        "marginal_scores",
        "needs_rows",
        "needs_rows_for",
        "options_in_effect",
        "predict_with_rule",
        "prior_from",
        "prior_lift_",
        "probabilistic",
        "projection",
        "rule_from",
        "rule_from_table",
        "with_offset_",
        "write_predictions",
    ]
)


def available_if(check: Callable[[Any], bool]) -> Callable[[F], F]:
    """Decorate a method that exists only if `check(estimator)` is true.

    Unlike scikit-learn's `available_if`, an AttributeError raised by `check` reaches the caller,
    so that its message can say which estimator lacks the method, and why.
    """

    def conditional(method: F) -> F:
        return cast(F, _ConditionalMethod(ignore_underflow(method), check))

    return conditional


class _ConditionalMethod:
    def __init__(self, method: Callable[..., Any], check: Callable[[Any], bool]) -> None:
        self._method, self._check = method, check
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self._method
        if not self._check(instance):
            name = self._method.__name__
            raise AttributeError(f"This {owner.__name__!r} has no attribute {name!r}")
        return MethodType(self._method, instance)


def is_regressor(estimator: Any) -> bool:
    """Whether an estimator, or the last step of a pipeline, predicts numbers."""
    return _estimator_type(estimator) == "regressor"


def require_classifier(estimator: Any, wrapper: str, why: str) -> None:
    """Raise OptionError if an estimator declares that it is not a classifier.

    An estimator that declares no type passes.
    """
    kind = _estimator_type(estimator)
    if kind not in (None, "classifier"):
        allowed = f"a classifier (this is of type '{kind}'): {wrapper} {why}"
        raise OptionError.of("estimator", type(estimator).__name__, allowed)


def _estimator_type(estimator: Any) -> str | None:
    kind: str | None = None
    if hasattr(estimator, "__sklearn_tags__"):
        kind = get_tags(estimator).estimator_type
    return kind


def as_partitioned(X: Any, y: Any = None, weight: Any = None) -> PartitionedTable | None:
    """Return X if it is a partitioned table, else None; y and weight must then be left out."""
    if not isinstance(X, PartitionedTable):
        return None
    reject_separate_labels(y, weight)
    return X


def to_memory(X: Any, y: Any, weight: Any, who: str) -> tuple[Any, Any, Any]:
    """Return rows, labels and weights; those of a partitioned table as a frame and arrays.

    Raises NeedsMemoryError if the table has too many rows for memory.
    """
    partitioned = as_partitioned(X, y, weight)
    if partitioned is None:
        return X, y, weight
    import pyarrow as pa

    table = table_in_memory(partitioned, who)
    columns = np.asarray(dense(table.features)).T
    names = table.schema.features
    frame = pa.table({n: np.ascontiguousarray(c) for n, c in zip(names, columns, strict=True)})
    return frame, table.schema.labels[table.codes], table.weight


class EstimatorMixin(OptionHints, OptionCopies, IgnoresUnderflow):
    """Options, saving and the check that a model is fitted: common to all estimators."""

    _fitted_attribute = "estimator_"  # only a fitted model has it
    _fit_methods = "fit"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model as one file, atomically; `discriminant.load(path)` reads it.

        Parameters
        ----------
        path : str or path-like
            File to write.
        """
        from discriminant.store import save

        save(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether the model is fitted."""
        return hasattr(self, self._fitted_attribute)

    def __dir__(self) -> list[str]:
        """List the attributes for users."""
        return [name for name in super().__dir__() if name not in _NOT_LISTED]

    def _check_is_fitted(self) -> None:
        if not hasattr(self, self._fitted_attribute):
            raise NotFittedError(
                f"This {self.__class__.__name__} instance is not fitted yet: call "
                f"{self._fit_methods} first."
            )

    def _copy_input_names(self, model: Any) -> None:
        """Set the number and names of the features as those of the fitted model inside."""
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))

    def _set_input_names(self, names: Sequence[str], *, named: bool) -> None:
        """Set the number of features, and their names if the user gave any."""
        self.n_features_in_ = len(names)
        if named:
            self.feature_names_in_ = np.array(names, dtype=object)
        else:
            self.__dict__.pop("feature_names_in_", None)


class RowEstimator(EstimatorMixin, BaseEstimator):
    """An estimator that checks new rows against the columns of the fit."""

    _fitted_attribute = "moments_"
    _fit_methods = "fit, fit_moments or partial_fit"

    def __sklearn_tags__(self) -> Any:
        """Sparse rows are supported."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _set_features(self, features: tuple[str, ...], named: bool | None = None) -> None:
        """Store the column names; without `named`, default names such as x0 do not count."""
        if named is None:
            named = features != numbered_names(len(features))
        self._schema = Schema(features, np.zeros(0), named)
        self._set_input_names(features, named=named)

    def _rows_to_score(self, X: Any) -> Features:
        """Rows with columns in the order of the fit; a plain float64 array is used unchanged."""
        plain = (
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and X.shape[1] == self.n_features_in_
            and X.shape[0] > 0
            and not self._schema.named
        )
        return X if plain else self._open_features(X)

    def _open_features(self, X: Any) -> Features:
        """Validate rows, and bring their columns into the order of the fit."""
        features, names = as_features(X, match=self._schema)
        if features.shape[1] != self.n_features_in_:
            raise ShapeError.of_width(
                features.shape[1], self.n_features_in_, self.__class__.__name__
            )
        if features.shape[0] == 0:
            raise ShapeError.no_rows(0)
        if names is not None and not self._schema.named and names != self._schema.features:
            warn(NamesUncheckedWarning.fitted_without(self.__class__.__name__))
        if names is None and self._schema.named:
            warn(NamesUncheckedWarning.given_without(self.__class__.__name__))
        return features

    def _score_rows(self, score: Callable[[Features], Floats], X: Any) -> Floats:
        """Scores of the rows; raise an error that names the cell if one is not finite."""
        features = self._rows_to_score(X)

        def score_quietly(rows: Features) -> Floats:
            with np.errstate(invalid="ignore", over="ignore"):
                return score(rows)

        scores = map_rows(score_quietly, features, order="F")
        if not np.isfinite(scores).all():
            codes = np.zeros(features.shape[0], dtype=np.uint8)
            Block(features[:], codes).raise_bad_cell(self._schema.features)
            for row in np.flatnonzero(np.isnan(scores).reshape(len(scores), -1).any(axis=1)):
                raise InfiniteValueError.of_row(int(row), self.__class__.__name__)
        return scores


class MomentClassifier(ClassifierMixin, RowEstimator):
    """A classifier that is a function of class moments.

    A subclass defines `detail` and `rule_from`, and may override the methods after them.
    """

    prior: Prior | None = None
    moments_: Any  # ClassMoments, or ClassRows where the rows take less room
    _asked: Self  # options when the moments were set: later changes take effect at the next fit
    _fitted: Rule | None
    _derived: dict[str, Any]  # cache of quantities derived from the moments

    # --- defined by subclasses ------------------------------------------------------------------

    @property
    def detail(self) -> Detail:
        """Sums that the moments must contain."""
        raise AttributeError("detail")

    def rule_from(self, moments: Any) -> Rule:
        """Return the rule fitted to moments; nothing is stored."""
        raise AttributeError("rule_from")

    def detail_for(self, rows: int, width: int) -> Detail:
        """Detail to read from a table of this shape: `detail`, or more if that takes less room."""
        return self.detail

    def accepts(self, moments: ClassMoments | ClassRows) -> bool:
        """Whether moments contain what a fit needs."""
        return moments.holds(self.detail)

    def prior_from(self, moments: ClassMoments | ClassRows) -> Floats:
        """(K,) class priors of a fit to these moments."""
        return class_prior(moments, self.prior)

    def needs_rows_for(self, moments: Any) -> bool:
        """Whether moments are too inexact to replace their rows; then use `rule_from_table`."""
        return False

    def leave_one_out_scores(self, moments: Any, table: Table) -> Floats | None:
        """(N, K) scores of each row by the rule fitted to all other rows.

        NaN where that rule must be refitted; None if there is no closed form.
        """
        return None

    def predict_with_rule(
        self, rule: Rule, features: Features
    ) -> tuple[Floats, npt.NDArray[np.intp]]:
        """(n, K) log posteriors and (n,) codes of the predicted classes, by any fitted rule."""
        scores = rule.scores(features)
        return log_posterior(scores), max_and_argmax(scores.T)[1]

    # --- fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the model in one pass over the rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d), or partitioned table
            Rows. A partitioned table (`discriminant.rows`) has its own labels and weights.
        y : array of shape (n,)
            Class labels: numbers, texts or booleans.
        sample_weight : array of shape (n,), default None
            Weight of each row; an integer weight equals repeating the row.

        Returns
        -------
        self
        """
        self.__dict__.pop("_allowed", None)
        table = self._open_table(X, y, sample_weight)
        if len(table) == 1:
            raise TooFewRowsError.of_one_row(
                self.__class__.__name__, 4 if self.detail == "class" else 3
            )
        if len(table.schema.labels) < 2:
            raise LabelError.one_class(table.schema.labels[0])
        return self._fit_table(table)

    def fit_moments(self, moments: ClassMoments | ClassRows) -> Self:
        """Fit the model from moments; no rows are needed.

        Parameters
        ----------
        moments : ClassMoments
            What `discriminant.moments(X, y)` returns; may be merged, weighted or regrouped.

        Returns
        -------
        self
        """
        given: Any = moments
        if not isinstance(given, ClassMoments | ClassRows):
            allowed = "what discriminant.moments(X, y) returns; for rows there is fit(X, y)"
            raise OptionError.of("moments", type(given).__name__, allowed)
        return self._fit_from(given)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Add rows to the fit; the rule is computed when it is next used.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. New classes may appear in any call.
        classes : array, default None
            The only labels allowed in this and later calls; None allows any.

        Returns
        -------
        self
        """
        if classes is not None:
            self._allowed = np.unique(np.asarray(classes))
        allowed = getattr(self, "_allowed", None)
        table = self._open_table(X, y, sample_weight, labels=allowed, more=True)
        if not hasattr(self, "moments_"):
            first = read_classes(table, self.detail_for(len(table), table.width))
            self._set_state(first, named=table.schema.named)
            return self
        if table.width != len(self.moments_.features):
            raise ShapeError.of_width(table.width, self.n_features_in_, self.__class__.__name__)
        moments = self._reduce_rows(self.moments_ + self._read_additional(table))
        self._set_state(moments, named=self._schema.named)
        return self

    def forget(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Remove rows from the fit, as if they had never been included.

        Parameters
        ----------
        X, y, sample_weight
            Rows that were fitted before, with the same labels and weights.

        Returns
        -------
        self
        """
        self._check_is_fitted()
        table = self._open_table(X, y, sample_weight, more=True)
        moments = self.moments_ - self._read_additional(table)
        self._set_state(moments, named=self._schema.named)
        return self

    # --- fitted attributes --------------------------------------------------------------------

    @property
    def rule_(self) -> Rule:
        """Fitted rule: `rule_.scores(X)` are the scores of the classes."""
        self._check_is_fitted()
        if self._fitted is None:
            self._fitted = self._asked.rule_from(self._present_moments)
        return self._fitted

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """(K,) class labels, sorted."""
        self._check_is_fitted()
        return np.asarray(self._present_moments.labels)

    @property
    def prior_(self) -> Floats:
        """(K,) class priors."""
        self._check_is_fitted()
        return self._asked.prior_from(self._present_moments)

    @property
    def means_(self) -> Floats:
        """(K, d) class means."""
        self._check_is_fitted()
        return np.asarray(self._present_moments.means)

    # --- prediction -----------------------------------------------------------------------------

    def predict(self, X: Any, prior: Prior | None = None) -> npt.NDArray[Any]:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows; columns of a data frame are matched by name.
        prior : array of shape (K,) or dict by label, default None
            Class priors to use in place of the fitted ones.

        Returns
        -------
        array of shape (n,)
            Labels.
        """
        scores = self._scores(X, prior)
        return np.asarray(self.rule_.labels[map_rows(_argmax, scores)])

    def predict_log_proba(self, X: Any, prior: Prior | None = None) -> Floats:
        """(n, K) log posterior probabilities, exact in the tails; arguments as in `predict`."""
        return map_rows(log_posterior, self._scores(X, prior))

    def predict_proba(self, X: Any, prior: Prior | None = None) -> Floats:
        """(n, K) posterior probabilities of the classes; arguments as in `predict`."""
        return map_rows(posterior, self._scores(X, prior))

    def decision_function(self, X: Any) -> Floats:
        """(n, K) scores of the classes; with two classes (n,) log odds of the second."""
        scores = self._scores(X, None)
        if scores.shape[1] == 2:
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores

    # --- private ----------------------------------------------------------------------------------

    def _fit_table(self, table: AnyTable) -> Self:
        moments = read_classes(table, self.detail_for(len(table), table.width))
        return self._fit_from(moments, named=table.schema.named)

    def _fit_from(self, moments: ClassMoments | ClassRows, named: bool | None = None) -> Self:
        if not self.accepts(moments):
            raise MomentsMismatchError.needs_detail(
                self.__class__.__name__, self.detail, moments.detail
            )
        moments = self._reduce_rows(moments)
        with merge_warnings(), blas_context(len(moments.features)):
            rule = self.rule_from(moments)
        self._set_state(moments, rule, named=named)
        return self

    def _read_additional(self, table: AnyTable) -> Any:
        """Moments of more rows; rows themselves about the old origin, so that equal stay equal."""
        anchor = self.moments_.anchor if self.moments_.detail == "rows" else None
        return read_classes(table, self.moments_.detail, anchor=anchor)

    @property
    def _present_moments(self) -> Any:
        """Moments of the classes that have rows."""
        present = self.moments_.weight > 0
        if present.all():
            return self.moments_
        return self.moments_.classes(self.moments_.labels[present].tolist())

    def _reduce_rows(self, moments: Any) -> Any:
        """Reduce rows to moments once there are so many that moments take less room."""
        if moments.detail != "rows":
            return moments
        return moments.reduce(self.detail_for(int(moments.rows.sum()), len(moments.features)))

    def _set_state(
        self,
        moments: ClassMoments | ClassRows,
        rule: Rule | None = None,
        *,
        named: bool | None = None,
    ) -> None:
        self._asked = copy(self)
        for name in ("moments_", "_asked", "_fitted", "_derived", "_copied"):
            self._asked.__dict__.pop(name, None)
        self._asked.__dict__.update(self.options_in_effect())
        self.moments_ = moments
        self._fitted = rule
        self._derived = {}
        self._set_features(moments.features, named)

    def _cached(self, name: str, compute: Callable[[], Any]) -> Any:
        """A quantity derived from the moments, computed when it is first used."""
        self._check_is_fitted()
        if name not in self._derived:
            self._derived[name] = compute()
        return self._derived[name]

    def _open_table(
        self, X: Any, y: Any, weight: Any, labels: Any = None, *, more: bool = False
    ) -> AnyTable:
        """Validate rows and labels; with `more`, match the column names of earlier rows."""
        partitioned = as_partitioned(X, y, weight)
        if partitioned is not None:
            return partitioned
        match = self._schema if more and hasattr(self, "_schema") else None
        return as_table(
            X, y, weight=weight, labels=labels, name=self.__class__.__name__, match=match
        )

    def _rule_scores(self, X: Any) -> Floats:
        return self._score_rows(self.rule_.scores, X)

    def _scores(self, X: Any, prior: Prior | None) -> Floats:
        scores = self._rule_scores(X)
        if prior is None:
            return scores
        return scores + np.log(class_prior(self._present_moments, prior)) - np.log(self.prior_)


def _argmax(scores: Floats) -> npt.NDArray[np.intp]:
    return np.asarray(scores.argmax(axis=1))


class LinearMomentClassifier(MomentClassifier):
    """A classifier from moments whose scores are linear."""

    @property
    def coef_(self) -> Floats:
        """(K, d) coefficients in the user's units; with two classes (1, d), second minus first."""
        return self._coefficients()[0]

    @property
    def intercept_(self) -> Floats:
        """(K,) or (1,) intercepts for `coef_`; prediction uses an origin near the rows instead."""
        return self._coefficients()[1]

    def _linear_rule(self) -> LinearRule:
        rule = self.rule_
        if not isinstance(rule, LinearRule):
            raise AttributeError("This rule is not linear, so it has no coef_.")
        return rule

    def _coefficients(self) -> tuple[Floats, Floats]:
        return one_row_for_two(*self._linear_rule().slopes())


def one_row_for_two(slope: Floats, intercept: Floats) -> tuple[Floats, Floats]:
    """Coefficients as scikit-learn has them: of two classes one row, second minus first."""
    if len(intercept) == 2:
        return slope[1:] - slope[:1], intercept[1:] - intercept[:1]
    return slope, intercept


class IterativeEstimator(RowEstimator):
    """An estimator that reads the rows repeatedly and ends in a rule.

    A subclass defines `_check_options` and `fit`, which opens a table, makes its passes over it
    and calls `_set_rule`. Fitted state: `rule_`, and whatever attributes the subclass sets.
    """

    rule_: LinearRule
    _fitted_attribute = "rule_"
    _fit_methods = "fit"

    def _check_options(self) -> None:
        """Raise OptionError if an option is invalid; called once by `fit`."""
        raise NotImplementedError

    def _require_bool(self, *names: str) -> None:
        for name in names:
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise OptionError.of(name, getattr(self, name), "True or False")

    def _set_rule(self, table: AnyTable, rule: LinearRule) -> None:
        self._set_features(table.schema.features, table.schema.named)
        self.rule_ = rule

    def _rule_scores(self, X: Any) -> Floats:
        """(n, K), or with one score (n, 1)."""
        self._check_is_fitted()
        return self._score_rows(self.rule_.scores, X)


class IterativeClassifier(ClassifierMixin, IterativeEstimator):
    """A classifier that reads the rows repeatedly.

    A subclass defines `fit`, which calls `_fit_rows`, `_check_options` and `_fit_table`.
    `_partitions` says whether its passes can read a partitioned table; if not, the rows of one are
    loaded into memory.
    """

    classes_: npt.NDArray[Any]  # (K,) labels, sorted
    _partitions = False

    def _fit_table(self, table: Any) -> None:
        """Iterate over an open table, call `_set_rule`, set the other fitted attributes."""
        raise NotImplementedError

    def _fit_rows(self, X: Any, y: Any, weight: Any = None) -> Self:
        self._check_options()
        table = self._open_table(X, y, weight)
        self._fit_table(table if self._partitions else table_in_memory(table, type(self).__name__))
        return self

    def _open_table(self, X: Any, y: Any, weight: Any) -> AnyTable:
        """Validate rows: two classes or more, each with rows of positive weight."""
        name = self.__class__.__name__
        table = as_partitioned(X, y, weight) or as_table(X, y, weight=weight, name=name)
        if len(table) == 1:
            raise TooFewRowsError.of_one_row(name, 2)
        labels = table.schema.labels
        if len(labels) < 2:
            raise LabelError.one_class(labels[0])
        for k in np.flatnonzero(class_totals(table) == 0):
            raise WeightError.zero_class(labels[k])
        return table

    def _set_rule(self, table: AnyTable, rule: LinearRule) -> None:
        super()._set_rule(table, rule)
        self.classes_ = np.asarray(rule.labels)


def class_totals(table: AnyTable) -> Floats:
    """(K,) total weight of the rows of each class."""
    if isinstance(table, PartitionedTable):
        return table.moments.weight
    totals = np.bincount(table.codes, table.weight, minlength=len(table.schema.labels))
    return np.asarray(totals, dtype=np.float64)
