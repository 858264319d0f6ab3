"""What every classifier made from moments shares: open the rows, fold, hand the moments on.

A class adds its options, `detail` (what its moments must hold) and `rule_from(moments)`, a pure
function: the fit, cross-validation and everything that refits call only that.

What a meta-estimator may ask of the estimator it wraps: its kind, and the methods it has.

Fit estimators to partitioned tables: `fit(rows)`, without y, with `rows` of `discriminant.rows`.

Such rows know their own labels and weights. A model that is made by folds reads them where they
are. One that must have rows at hand gets them if they are few (`rows.drawn` holds them all), and
else says so.

A model fitted that way knows the features that columns became: `predict` takes frames that have
these, by name. `Encoded(model).fit(rows)` takes tables such as the one read, categories and all.

The one word that every estimator of ours has for its file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from types import MethodType
from typing import Any, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from discriminant.engines.engine import read_classes
from discriminant.engines.local import blas_for, map_rows
from discriminant.engines.partitioned import AnyTable, Parted, alone, in_memory
from discriminant.errors import (
    InfiniteValueError,
    LabelError,
    MomentsMismatchError,
    NamesUncheckedWarning,
    OptionError,
    ShapeError,
    TooFewRowsError,
    merge_warnings,
    warn,
)
from discriminant.estimators.method_wrappers import (
    IgnoresUnderflow,
    OptionCopies,
    ignore_underflow,
)
from discriminant.estimators.sklearn_options import OptionHints
from discriminant.models.gaussian.family import class_prior
from discriminant.models.rules import LinearRule, Rule
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.class_rows import ClassRows
from discriminant.moments.probability_scores import first_largest
from discriminant.posterior import log_posterior, posterior
from discriminant.table.blocks import Block, Features, Floats, Schema, dense, numbered
from discriminant.table.memory import Table, open_features, open_table

F = TypeVar("F", bound=Callable[..., Any])


def available_if(check: Callable[[Any], bool]) -> Callable[[F], F]:
    """A method that exists only where `check` of its object is true.

    As scikit-learn's `available_if`, but an AttributeError raised by `check` is what the caller
    sees, so that its message can say which estimator lacks the method, and why.
    """

    def conditional(method: F) -> F:
        return cast(F, _Conditional(ignore_underflow(method), check))

    return conditional


class _Conditional:
    """Descriptor of a method that some objects have."""

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
    """Whether an estimator, or the last one of a pipeline, predicts numbers."""
    return _kind_of(estimator) == "regressor"


def require_classifier(estimator: Any, wrapper: str, why: str) -> None:
    """Raise OptionError if an estimator says that it is something other than a classifier.

    An estimator that does not say what it is passes.
    """
    kind = _kind_of(estimator)
    if kind not in (None, "classifier"):
        allowed = f"a classifier (this is of type '{kind}'): {wrapper} {why}"
        raise OptionError.of("estimator", type(estimator).__name__, allowed)


def _kind_of(estimator: Any) -> str | None:
    """What an estimator says it is, in scikit-learn's words; None if it does not."""
    kind: str | None = None
    if hasattr(estimator, "__sklearn_tags__"):
        kind = get_tags(estimator).estimator_type
    return kind


def as_partitioned(X: Any, y: Any = None, weight: Any = None) -> Parted | None:
    """Rows in parts, if these are such; None: they are not."""
    if not isinstance(X, Parted):
        return None
    alone(y, weight)
    return X


def to_memory(X: Any, y: Any, weight: Any, who: str) -> tuple[Any, Any, Any]:
    """Rows, labels and weights as they are; of rows in parts as frame and arrays, if they are few.

    Raises NeedsMemoryError of many rows in parts.
    """
    found = as_partitioned(X, y, weight)
    if found is None:
        return X, y, weight
    import pyarrow as pa

    table = in_memory(found, who)
    columns = np.asarray(dense(table.features)).T
    names = table.schema.features
    frame = pa.table({n: np.ascontiguousarray(c) for n, c in zip(names, columns, strict=True)})
    return frame, table.schema.labels[table.codes], table.weight


class EstimatorMixin(OptionHints, OptionCopies, IgnoresUnderflow):
    """An estimator that can be saved, and that knows the names of its options."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as one file, whole or not at all; `discriminant.load(path)` gives it back."""
        from discriminant.store import save

        save(self, path)


class RowEstimator(EstimatorMixin, BaseEstimator):
    """The door for rows: names remembered at fit, matched by name afterwards."""

    _fitted_attribute = "moments_"  # the attribute that only a fitted model has
    _fit_methods = "fit, fit_moments or partial_fit"

    def __sklearn_tags__(self) -> Any:
        """Sparse rows are taken as they are."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _set_features(self, features: tuple[str, ...], named: bool | None = None) -> None:
        """Keep the names of the columns; without word of it, invented names are known by sight."""
        if named is None:
            named = features != numbered(len(features))
        self.n_features_in_ = len(features)
        self._schema = Schema(features, np.zeros(0), named)
        if self._schema.named:
            self.feature_names_in_ = np.array(features, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def __sklearn_is_fitted__(self) -> bool:
        """Whether rows or moments have been seen."""
        return hasattr(self, self._fitted_attribute)

    def _check_is_fitted(self) -> None:
        if not hasattr(self, self._fitted_attribute):
            raise NotFittedError(
                f"This {self.__class__.__name__} instance is not fitted yet: call "
                f"{self._fit_methods} first."
            )

    def _is_plain_array(self, X: Any) -> bool:
        """Whether rows can be scored as they are: a float64 array of the right width."""
        return (
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and X.shape[1] == self.n_features_in_
            and X.shape[0] > 0
            and not self._schema.named
        )

    def _open_features(self, X: Any) -> Features:
        """Rows checked at the door, columns in the order of the fit."""
        features, names = open_features(X, match=self._schema)
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

    def _score_rows(self, scoring: Callable[[Features], Floats], features: Features) -> Floats:
        """What `scoring` says of the rows, or the error that names the cell that spoilt it."""

        def quietly(rows: Features) -> Floats:
            with np.errstate(invalid="ignore", over="ignore"):
                return scoring(rows)

        found = map_rows(quietly, features, order="F")
        if not np.isfinite(found).all():
            codes = np.zeros(features.shape[0], dtype=np.uint8)
            Block(features[:], codes).blame(self._schema.features)
            for row in np.flatnonzero(np.isnan(found).reshape(len(found), -1).any(axis=1)):
                raise InfiniteValueError.of_row(int(row), self.__class__.__name__)
        return found


class MomentClassifier(ClassifierMixin, RowEstimator):
    """A classifier that is a function of class moments."""

    prior: npt.ArrayLike | None = None
    moments_: Any  # ClassMoments, or ClassRows where the rows are the smaller thing
    _asked: Self  # the options as they were when the moments came: later changes wait for a fit
    _fitted: Rule | None
    _derived: dict[str, Any]  # what else was worked out from the moments

    # --- what a class adds ----------------------------------------------------------------------

    @property
    def detail(self) -> Detail:
        """What the moments must hold."""
        raise AttributeError("detail")

    def rule_from(self, moments: Any) -> Rule:
        """The fitted rule, from moments alone; nothing is stored."""
        raise AttributeError("rule_from")

    def detail_for(self, rows: int, width: int) -> Detail:
        """What is kept of a table of that shape: `detail`, or more if more takes less room."""
        return self.detail

    def accepts(self, moments: ClassMoments | ClassRows) -> bool:
        """Whether moments hold what a fit needs: `detail`, or something else that does as well."""
        return moments.holds(self.detail)

    def prior_from(self, moments: ClassMoments | ClassRows) -> Floats:
        """(K,) the priors that a fit to these moments has."""
        return class_prior(moments, self.prior)

    def needs_rows_for(self, moments: Any) -> bool:
        """Whether moments are too inexact to replace their rows; then use `rule_from_table`."""
        return False

    def leave_one_out_scores(self, moments: Any, table: Table) -> Floats | None:
        """(N, K) scores of each row by the rule of all others, NaN where that is to be refitted.

        None where there is no closed form.
        """
        return None

    def predict_with_rule(
        self, rule: Rule, features: Features
    ) -> tuple[Floats, npt.NDArray[np.intp]]:
        """(n, K) log posteriors, and (n,) codes of the classes that `predict` says, by a rule."""
        scores = rule.scores(features)
        return log_posterior(scores), first_largest(scores.T)[1]

    # --- fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Read the rows once and fit; of rows in parts (`discriminant.rows`) without y."""
        self.__dict__.pop("_allowed", None)
        table = self._open_table(X, y, sample_weight)
        if len(table) == 1:
            raise TooFewRowsError.of_one_row(
                self.__class__.__name__, 4 if self.detail == "class" else 3
            )
        if len(table.schema.labels) < 2:
            raise LabelError.one_class(table.schema.labels[0])
        return self._fit_table(table)

    def fit_moments(self, moments: Any) -> Self:
        """Fit from moments: read earlier, merged, weighted or regrouped; no rows are needed."""
        if not isinstance(moments, ClassMoments | ClassRows):
            allowed = "what discriminant.moments(X, y) returns; for rows there is fit(X, y)"
            raise OptionError.of("moments", type(moments).__name__, allowed)
        return self._fit_from(moments)

    def _fit_from(self, moments: ClassMoments | ClassRows, named: bool | None = None) -> Self:
        if not self.accepts(moments):
            raise MomentsMismatchError.needs_detail(
                self.__class__.__name__, self.detail, moments.detail
            )
        moments = self._reduce_rows(moments)
        with merge_warnings(), blas_for(len(moments.features)):
            rule = self.rule_from(moments)
        self._set_state(moments, rule, named=named)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows. New classes may come at any time; the rule is worked out when it is asked for.

        `classes`, if given in the first call or any other, are the only labels allowed from then
        on. A class is known from its first row on.
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
        self._set_state(
            self._reduce_rows(self.moments_ + self._read_additional(table)), named=self._named
        )
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows that were fitted before, as if they had never been there."""
        self._check_is_fitted()
        table = self._open_table(X, y, sample_weight, more=True)
        self._set_state(self.moments_ - self._read_additional(table), named=self._named)
        return self

    @property
    def rule_(self) -> Rule:
        """The fitted rule."""
        self._check_is_fitted()
        if self._fitted is None:
            self._fitted = self._asked.rule_from(self._present_moments)
        return self._fitted

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """(K,) labels, sorted."""
        self._check_is_fitted()
        return np.asarray(self._present_moments.labels)

    @property
    def prior_(self) -> Floats:
        """(K,) prior of each class."""
        self._check_is_fitted()
        return self._asked.prior_from(self._present_moments)

    @property
    def means_(self) -> Floats:
        """(K, d) class means."""
        self._check_is_fitted()
        return np.asarray(self._present_moments.means)

    # --- using ------------------------------------------------------------------------------------

    def predict(self, X: Any, prior: npt.ArrayLike | None = None) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        scores = self._scores(X, prior)
        return np.asarray(self.rule_.labels[map_rows(_first_largest, scores)])

    def predict_log_proba(self, X: Any, prior: npt.ArrayLike | None = None) -> Floats:
        """(n, K) log posterior, exact in the tails."""
        return map_rows(log_posterior, self._scores(X, prior))

    def predict_proba(self, X: Any, prior: npt.ArrayLike | None = None) -> Floats:
        """(n, K) posterior of each class; `prior` in place of the fitted one."""
        return map_rows(posterior, self._scores(X, prior))

    def decision_function(self, X: Any) -> Floats:
        """Scores (n, K); with two classes the log odds of the second, (n,)."""
        scores = self._scores(X, None)
        if scores.shape[1] == 2:
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores

    # --- inside -----------------------------------------------------------------------------------

    def _fit_table(self, table: AnyTable) -> Self:
        moments = read_classes(table, self.detail_for(len(table), table.width))
        return self._fit_from(moments, named=table.schema.named)

    def _read_additional(self, table: AnyTable) -> Any:
        """More rows: moments about an origin of their own, rows so that equal ones stay equal."""
        held = self.moments_
        anchor = held.anchor if held.detail == "rows" else None
        return read_classes(table, held.detail, anchor=anchor)

    @property
    def _named(self) -> bool:
        return self._schema.named

    @property
    def _present_moments(self) -> Any:
        """The moments of the classes that have rows."""
        some = self.moments_.weight > 0
        if some.all():
            return self.moments_
        return self.moments_.classes(self.moments_.labels[some].tolist())

    def _reduce_rows(self, moments: Any) -> Any:
        """Rows brought down to moments once there are so many that moments take less room."""
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

    def _cached(self, name: str, work_out: Callable[[], Any]) -> Any:
        """Something that follows from the moments, worked out when it is first asked for."""
        self._check_is_fitted()
        if name not in self._derived:
            self._derived[name] = work_out()
        return self._derived[name]

    def _open_table(
        self, X: Any, y: Any, weight: Any, labels: Any = None, *, more: bool = False
    ) -> AnyTable:
        """Rows at the door; `more` of them go by the column names of those before."""
        found = as_partitioned(X, y, weight)
        if found is not None:
            return found
        match = self._schema if more and hasattr(self, "_schema") else None
        return open_table(
            X, y, weight=weight, labels=labels, name=self.__class__.__name__, match=match
        )

    def _rule_scores(self, X: Any) -> Floats:
        rule = self.rule_
        if not self._is_plain_array(X):
            X = self._open_features(X)
        return self._score_rows(rule.scores, X)

    def _scores(self, X: Any, prior: npt.ArrayLike | None) -> Floats:
        scores = self._rule_scores(X)
        if prior is None:
            return scores
        return scores + np.log(class_prior(self._present_moments, prior)) - np.log(self.prior_)


def _first_largest(scores: Floats) -> npt.NDArray[np.intp]:
    return np.asarray(scores.argmax(axis=1))


class LinearMomentClassifier(MomentClassifier):
    """A classifier whose scores are linear, and their slopes."""

    @property
    def coef_(self) -> Floats:
        """Slopes in the user's numbers: (K, d), with two classes (1, d), second minus first."""
        return self._slopes()[0]

    @property
    def intercept_(self) -> Floats:
        """Intercepts to go with `coef_`. Scoring does not use them: it counts from an origin."""
        return self._slopes()[1]

    def _linear_rule(self) -> LinearRule:
        rule = self.rule_
        if not isinstance(rule, LinearRule):
            raise AttributeError("This rule is not linear, so it has no coef_.")
        return rule

    def _slopes(self) -> tuple[Floats, Floats]:
        slope, intercept = self._linear_rule().slopes()
        if len(intercept) == 2:
            return slope[1:] - slope[:1], intercept[1:] - intercept[:1]
        return slope, intercept
