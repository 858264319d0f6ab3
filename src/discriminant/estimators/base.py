"""Base classes of the estimators: opening rows, fitting, fitted state, prediction and saving.

    EstimatorMixin       options, saving, the check that a model is fitted
    ClassifierWrapper    a classifier that wraps another classifier
    RowEstimator         matches the columns of new rows with the fitted ones, by name or position
    PosteriorMixin       predictions with the fitted or other class priors
    LogPosteriorMixin    classes and probabilities from `predict_log_proba`
    MomentClassifier     a classifier computed from class moments, in one pass over the rows
    IterativeEstimator   reads the rows repeatedly until the fit converges
    IterativeClassifier  an `IterativeEstimator` that predicts classes

A `MomentClassifier` adds its options, `detail` (which moments it needs) and `rule_from(moments)`.
`rule_from` is a pure function; fitting and resampling call no other method of the model. An
`IterativeClassifier` adds its options, `_check_options` and `_fit_table(table)`, which makes the
passes over the table, calls `_set_rule` and sets the other fitted attributes.

`fit(rows)`, without y, fits a partitioned table (`discriminant.rows`), which contains its labels
and weights. A model that needs all rows in memory loads them if they are few enough, and raises
`NeedsMemoryError` otherwise. A model fitted to a partitioned table is fitted to the encoded
features, so `predict` expects frames with these columns. To predict from the original columns, use
`Encoded(model).fit(rows)`.

Each subclass inherits the following.

Docstrings
    A class documents only the parameters and attributes that it adds or changes. The other entries
    are copied from its base classes, so that `help` shows every parameter and fitted attribute.
Copies of options
    scikit-learn requires that a constructor stores its arguments unchanged, so an option may be the
    caller's own array. Each fit copies mutable options (arrays, lists, dicts), so that a later
    change of the array does not change the fitted model. If an option is replaced after the fit, by
    `set_params` or assignment, the new object is copied when it is first used.
Underflow
    A posterior of exp(-800) is rounded to zero, even if the caller set
    `np.seterr(under="raise")`: public methods and properties ignore underflow. Overflow, division
    by zero and invalid operations follow the caller's settings.
Hints
    A constructor raises an error for an option that it does not have. If scikit-learn has the
    option, the message names the equivalent option of this package.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import cache, partial, wraps
from inspect import isfunction
from numbers import Real
from types import MethodType
from typing import Any, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from discriminant import catalog
from discriminant.engines.dispatch import read_classes
from discriminant.engines.local import blas_context, map_rows
from discriminant.engines.partitioned_table import (
    AnyTable,
    PartitionedTable,
    reject_separate_labels,
    table_in_memory,
)
from discriminant.errors import (
    FormulaError,
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
from discriminant.errors.base import format_count
from discriminant.errors.foreign_options import check_names, named_options
from discriminant.models.gaussian.family import class_prior, validate_prior
from discriminant.models.rules import CertainCodes, LinearRule, Rule
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.probability_scores import max_and_argmax
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.posterior import log_posterior, posterior
from discriminant.table.blocks import Block, Features, Floats, Schema, dense, numbered_names
from discriminant.table.memory import Table, as_features, as_table

_PRIOR = "pass prior=, by label or in sorted order; it enters the intercepts only"
_INTERCEPT = "pass intercept="
_STRENGTH = "pass ridge=1/(C*n) for n rows (or their weight) and standardize=False"
_KERNEL = "scores are linear: add columns first, in a pipeline with Basis"
_NEVER = "leave it out; it has no effect on the results here"
_EXACT = "leave it out; the solution is exact"
_LIMIT = "leave it out; a fit that has not converged after max_iter steps raises a warning"

_DISCRIMINANT = {
    "priors": _PRIOR,
    "store_covariance": "covariance_ is always available",
    "tol": "leave it out; constant and collinear columns are detected and named",
    "solver": "leave it out; the solution is unique, and the algorithm depends on the shape of "
    "the data",
    "covariance_estimator": "pass shrinkage='auto' (Ledoit and Wolf), 'oas' or a number",
}
_REG_PARAM = "RDA.from_sklearn(reg_param=...) is the same model"
_INSTEAD: dict[str, dict[str, str]] = {
    "LDA": {
        **_DISCRIMINANT,
        "n_components": "use Fisher(n_components=...), or the first columns of transform",
    },
    "Fisher": _DISCRIMINANT,
    "QDA": {**_DISCRIMINANT, "reg_param": _REG_PARAM},
    "RDA": {**_DISCRIMINANT, "reg_param": _REG_PARAM},
    "NearestMean": {
        "priors": _PRIOR,
        "metric": "distances are Euclidean; for standardised ones use LDA(shrinkage=1.0)",
        "shrink_threshold": "use ShrunkenCentroids(threshold=...)",
    },
    "ShrunkenCentroids": {
        "priors": _PRIOR,
        "metric": "distances are Euclidean, in units of the standard deviations",
        "shrink_threshold": "pass threshold=, the same number",
    },
    "Logistic": {
        "C": _STRENGTH,
        "penalty": "pass ridge > 0 for 'l2', and also l1_ratio=1 for 'l1'; by default there is no "
        "penalty",
        "fit_intercept": _INTERCEPT,
        "tol": _LIMIT,
        "dual": _NEVER,
        "random_state": _NEVER,
        "verbose": "pass progress=, a function that is called after every pass",
        "multi_class": "leave it out; for one model per class use OneVsRest(Logistic())",
    },
    "OrderedLogistic": {
        "C": _STRENGTH,
        "alpha": "pass ridge=; it is on standardised columns",
        "distr": "pass link='logit', 'probit' or 'cloglog'",
        "method": "pass link='logit' (polr's 'logistic'), 'probit' or 'cloglog'",
        "fit_intercept": "leave it out; the thresholds are the intercepts",
        "intercept": "leave it out; the thresholds are the intercepts",
        "tol": _LIMIT,
    },
    "Perceptron": {
        "alpha": "a perceptron has no penalty here; SVM(ridge=...) has one",
        "penalty": "a perceptron has no penalty here; SVM(ridge=...) has one",
        "eta0": "pass learning_rate=; it matters only with start=",
        "max_iter": "pass max_passes=",
        "fit_intercept": _INTERCEPT,
        "tol": "leave it out; training ends when every row is correct, or after max_passes",
    },
    "SVM": {
        "C": _STRENGTH,
        "penalty": "the penalty is 'l2': pass ridge=; for an 'l1' penalty use Logistic(l1_ratio=1)",
        "dual": "pass solver='dual' or 'primal'; both give the same solution",
        "tol": "pass tolerance=",
        "max_iter": "pass max_steps=",
        "fit_intercept": _INTERCEPT,
        "kernel": _KERNEL,
        "gamma": _KERNEL,
    },
    "LeastSquares": {
        "alpha": "pass ridge=, the same number",
        "fit_intercept": "an intercept is always fitted; LinearRegression has fit_intercept=",
        "solver": _EXACT,
        "tol": _EXACT,
        "max_iter": _EXACT,
        "random_state": _EXACT,
    },
    "LinearRegression": {
        "alpha": "pass ridge=, the same number",
        "intercept": "pass fit_intercept=",
    },
    "GLM": {
        "alpha": "pass ridge=; it is on standardised columns",
        "fit_intercept": _INTERCEPT,
        "solver": _NEVER,
        "tol": _LIMIT,
        "power": "pass family='poisson' (power 1) or 'gamma' (power 2)",
    },
    "PredictionSets": {
        **dict.fromkeys(("confidence_level", "alpha"), "pass coverage=, which is 1 - alpha"),
        **dict.fromkeys(("cv", "n_splits"), "pass folds="),
        "conformity_score": "pass conformity='lac' or 'aps'",
        "prefit": "pass FrozenEstimator(model), with method='split'",
        "random_state": "pass seed=",
    },
    "Calibrated": {
        **dict.fromkeys(("cv", "n_splits"), "pass folds="),
        "ensemble": "leave it out; a single calibrator is fitted to all held-out scores",
        "random_state": "pass seed=",
    },
    "Basis": {
        "interaction_only": "pass interactions='only'",
        "include_bias": "leave it out; models have their own intercept",
    },
}
_EVERYWHERE = {
    "n_jobs": "leave it out; all cores are used",
    "warm_start": "leave it out; every fit starts anew",
    "verbose": "leave it out; diagnostics are issued as warnings",
    "class_weight": "wrap it: Reweighted(estimator, 'balanced')",
    "copy_X": "leave it out; rows are never modified",
}


class PredictionHints:
    """Mixin that raises a helpful error for an unknown option of a prediction."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("predict", "predict_proba", "predict_set"):
            if isfunction(vars(cls).get(name)):
                setattr(cls, name, named_options(vars(cls)[name]))


class OptionHints(PredictionHints):
    """Mixin that raises a helpful error for an unknown constructor option."""

    def __new__(cls, *_: Any, **options: Any) -> Self:
        """Raise an error for an unknown option. `__init__` stores the values of all options."""
        known = _constructor_options(cls.__init__) if options else None
        if known is not None and not known.keys() >= options.keys():
            check_names(cls.__name__, options, list(known), partial(_hint, cls))
        return super().__new__(cls)


@cache
def _constructor_options(constructor: Callable[..., None]) -> dict[str, None] | None:
    """Return the names of all options, in order; None if a constructor accepts any name."""
    parameters = list(inspect.signature(constructor).parameters.values())[1:]
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    return dict.fromkeys(each.name for each in parameters)


def _hint(cls: type[Any], option: str) -> str | None:
    """Return the hint for an option, from the class or one of its base classes."""
    hints = [_INSTEAD.get(base.__name__, {}).get(option) for base in cls.__mro__]
    return next(filter(None, hints), _EVERYWHERE.get(option))


_FITS = ("fit", "fit_moments", "partial_fit", "forget")


class UnchangedOptions:
    """Mixin: a fitted model is not affected by later changes to the objects given as options."""

    _copied: dict[str, tuple[Any, Any]]  # option name -> the object that was given, and its copy

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in _FITS:
            if isfunction(vars(cls).get(name)):
                setattr(cls, name, _copy_options_first(vars(cls)[name]))

    def options_in_effect(self) -> dict[str, Any]:
        """Return all options by name; mutable ones are replaced by their copies."""
        kind: Any = type(self)
        copied = self.__dict__.get("_copied", {})
        options = {name: getattr(self, name) for name in _option_names(kind)}
        for name, (given, own) in copied.items():
            if options[name] is given:
                options[name] = own
        return options

    def _option(self, name: str) -> Any:
        """Return an option that is used after the fit; a replaced option is copied first."""
        given = getattr(self, name)
        if not _is_mutable(given):
            return given
        copied = self.__dict__.setdefault("_copied", {})
        if name not in copied or copied[name][0] is not given:
            copied[name] = given, deepcopy(given, _models_within(given))
        return copied[name][1]

    def _copy_options(self) -> None:
        """Copy all mutable options at once, so that an object in two options is copied once."""
        self.__dict__.pop("_copied", None)
        options = self.options_in_effect().items()
        given = {name: value for name, value in options if _is_mutable(value)}
        if given:
            copies = deepcopy(given, _models_within([*given.values()]))
            self._copied = {name: (given[name], copies[name]) for name in given}


def _copy_options_first(fit: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fit)
    def run(self: UnchangedOptions, *args: Any, **options: Any) -> Any:
        self._copy_options()
        return fit(self, *args, **options)

    return run


@cache
def _option_names(kind: Any) -> tuple[str, ...]:
    return tuple(kind._get_param_names())


def _is_mutable(value: Any) -> bool:
    """Return whether a value can be changed in place; estimators and functions do not count."""
    if value is None or isinstance(value, str | float | int):
        return False
    if isinstance(value, list | tuple | dict | set | np.ndarray):
        return True
    return hasattr(value, "shape") or hasattr(value, "__array__")  # frames, series, sparse matrices


def _models_within(value: Any) -> dict[int, Any]:
    """Return the estimators and functions inside lists, as in `Fusion`; they are not copied."""
    models: dict[int, Any] = {}
    items, visited = [value], set()
    while items:
        item = items.pop()
        if hasattr(item, "fit") or callable(item):
            models[id(item)] = item
        elif isinstance(item, list | tuple) and id(item) not in visited:
            visited.add(id(item))
            items.extend(item)
    return models


F = TypeVar("F", bound=Callable[..., Any])


def ignore_underflow(function: F) -> F:
    """Return a function that runs with underflow ignored."""

    @wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        with np.errstate(under="ignore"):
            return function(*args, **options)

    return cast(F, run)


# Members that describe a fit and compute nothing from data
_WITHOUT_ARITHMETIC = ("accepts", "detail", "detail_for", "family", "family_for", "fixed_family")


class IgnoresUnderflow:
    """Mixin: public methods and properties ignore underflow."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, member in list(vars(cls).items()):
            if name.startswith("_") or name in _WITHOUT_ARITHMETIC:
                continue
            if isfunction(member):
                setattr(cls, name, ignore_underflow(member))
            elif isinstance(member, property) and member.fget is not None:
                setattr(cls, name, member.getter(ignore_underflow(member.fget)))


_HEADING = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", flags=re.MULTILINE)
_SECTIONS = ("Parameters", "Attributes")


class InheritsDocstring:
    """Mixin: subclasses inherit the documentation of parameters and attributes."""

    _documented: dict[str, list[str]]  # section name -> entries that the class documents itself

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        introduction, *parts = _HEADING.split(inspect.cleandoc(cls.__doc__ or ""))
        sections = dict(zip(parts[::2], parts[1::2], strict=True))
        cls._documented = {name: _entries(sections.pop(name, "")) for name in _SECTIONS}
        if cls.__doc__ is None:
            return
        names = list(inspect.signature(cls.__init__).parameters)
        parameters = _with_inherited(cls, "Parameters", names)
        parameters.sort(key=lambda entry: _position(entry, names))
        attributes = _with_inherited(cls, "Attributes")
        merged = {"Parameters": "\n".join(parameters), "Attributes": "\n".join(attributes)}
        texts = [introduction.rstrip()]
        for name, body in (merged | sections).items():
            if body:
                texts.append(f"{name}\n{'-' * len(name)}\n{body.rstrip()}")
        cls.__doc__ = "\n\n".join(texts)


def _entries(section: str) -> list[str]:
    """Split a section of a docstring into entries, each a name line with its description."""
    return [entry.rstrip() for entry in re.split(r"^(?=\S)", section, flags=re.MULTILINE) if entry]


def _names(entry: str) -> list[str]:
    """Return the names in an entry: ["coef_", "intercept_"] for "coef_, intercept_ : arrays"."""
    return entry.partition("\n")[0].partition(" : ")[0].split(", ")


def _position(entry: str, names: list[str]) -> int:
    name = _names(entry)[0]
    return names.index(name) if name in names else len(names)


def _with_inherited(cls: type, section: str, wanted: list[str] | None = None) -> list[str]:
    """Return the entries of a section: first the entries of the class, then the inherited ones.

    With `wanted`, return only the entries of these names.
    """
    entries = list(vars(cls)["_documented"][section])
    known = {name for entry in entries for name in _names(entry)}
    for base in cls.__mro__[1:]:
        for entry in vars(base).get("_documented", {}).get(section, ()):
            names = _names(entry)
            if known.isdisjoint(names) and (wanted is None or names[0] in wanted):
                entries.append(entry)
                known.update(names)
    return entries


# array (K,) in the order of the classes, or dict by label
Prior = npt.ArrayLike | Mapping[Any, float]

_MANY = 1 << 14  # number of values from which `CertainCodes` computes labels of two classes

# Members that other modules of the package and new models use; `dir` does not list them.
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
        "family_for",
        "fixed_family",
        "gaussian_classes",
        "intensities",
        "invalid_reason",
        "known_prior",
        "leave_one_out_scores",
        "left_out_rules",
        "marginal_scores",
        "needs_rows",
        "needs_rows_for",
        "options_in_effect",
        "penalty_grid",
        "predict_with_rule",
        "prior_from",
        "prior_lift_",
        "probabilistic",
        "projection",
        "rule_from",
        "rule_from_table",
        "rules_at",
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
        return cast(F, _ConditionalMethod(ignore_underflow(named_options(method)), check))

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
    """Return whether an estimator, or the last step of a pipeline, is a regressor."""
    return _estimator_type(estimator) == "regressor"


def require_classifier(estimator: Any, wrapper: str, why: str) -> None:
    """Raise `OptionError` if an estimator declares a type other than 'classifier'.

    An estimator that declares no type is accepted.
    """
    kind = _estimator_type(estimator)
    if kind not in (None, "classifier"):
        allowed = f"a classifier (this is of type '{kind}'): {wrapper} {why}"
        raise OptionError.of("estimator", type(estimator).__name__, allowed)


def _estimator_type(estimator: Any) -> str | None:
    declared = hasattr(estimator, "__sklearn_tags__")
    return cast(str | None, get_tags(estimator).estimator_type) if declared else None


def has_probabilities(model: Any) -> bool:
    """Return whether a classifier has `predict_proba` or `predict_log_proba`."""
    return hasattr(model, "predict_proba") or hasattr(model, "predict_log_proba")


def fit_with_weight(model: Any, X: Any, y: Any, weight: Any) -> Any:
    """Fit an estimator and return it.

    Raise `WeightError` if weights are given and the estimator does not support them.
    """
    if weight is None:
        return model.fit(X, y)
    if hasattr(model, "steps"):  # a pipeline passes weights on to the step that is named
        return model.fit(X, y, **{f"{model.steps[-1][0]}__sample_weight": weight})
    if not has_fit_parameter(model, "sample_weight"):
        raise WeightError.not_supported(type(model).__name__)
    return model.fit(X, y, sample_weight=weight)


def check_choice(name: str, value: Any, allowed: Iterable[str]) -> None:
    """Raise `OptionError` unless the option `name` has one of the allowed values."""
    allowed = tuple(allowed)
    if not (isinstance(value, str) and value in allowed):
        raise OptionError.of(name, value, f"one of {', '.join(allowed)}")


def second_minus_first(scores: Floats) -> Floats:
    """With two classes, return the second score minus the first (n,); else the scores.

    Scores (n, K) of more classes are returned unchanged.
    """
    return np.asarray(scores[:, 1] - scores[:, 0]) if scores.shape[1] == 2 else scores


def partitioned_or_none(X: Any, y: Any = None, weight: Any = None) -> PartitionedTable | None:
    """Return X if it is a partitioned table, else None.

    Raises an error if y or weight is passed with a partitioned table, which contains both.
    """
    if not isinstance(X, PartitionedTable):
        return None
    reject_separate_labels(y, weight)
    return X


def to_memory(X: Any, y: Any, weight: Any, who: str) -> tuple[Any, Any, Any]:
    """Return rows, labels and weights that are in memory.

    A partitioned table is loaded as a data frame and arrays; anything else is returned unchanged.

    Raises `NeedsMemoryError` if the table is too large for memory.
    """
    partitioned = partitioned_or_none(X, y, weight)
    if partitioned is None:
        return X, y, weight
    import pyarrow as pa

    table = table_in_memory(partitioned, who)
    columns = np.asarray(dense(table.features)).T
    names = table.schema.features
    frame = pa.table({n: np.ascontiguousarray(c) for n, c in zip(names, columns, strict=True)})
    return frame, table.schema.labels[table.codes], table.weight


class EstimatorMixin(InheritsDocstring, OptionHints, UnchangedOptions, IgnoresUnderflow):
    """Base class of all estimators: options, saving, and the check that a model is fitted."""

    _fitted_attribute = "estimator_"  # attribute that exists only after a fit
    _fit_methods = "fit"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model to a file, which `discriminant.load(path)` reads.

        Parameters
        ----------
        path : str or path-like
            File to write.
        """
        from discriminant.store import save

        save(self, path)

    @classmethod
    def from_formula(
        cls,
        formula: str,
        data: Any,
        *,
        sample_weight: Any = None,
        missing: str = "error",
        unseen: str = "error",
        **options: Any,
    ) -> Any:
        """Fit the estimator to the features that a formula computes from the columns of a table.

        Parameters
        ----------
        formula : str
            Response and terms, as in R: 'case ~ age + C(education) + log(dose)'. The functions log,
            sqrt, poly, scale, bs and others are allowed; see the guide on formulas.
        data : data frame
            Table with the columns that the formula names.
        sample_weight : array of shape (n,), default None
            Weight of each row.
        missing : {'error', 'drop'}, default 'error'
            Whether missing cells are an error, or the fit drops the rows that have one.
        unseen : {'error', 'ignore', 'reject'}, default 'error'
            Treatment of levels not seen during fitting, as in `Encoded`.
        **options
            Options of the estimator.

        Returns
        -------
        Encoded
            The fitted estimator, which predicts from tables with the same columns.
        """
        encoded_class = catalog.estimator_class("Encoded")
        model = cls(**options)
        if _estimator_type(model) not in ("classifier", "regressor"):
            raise FormulaError.no_predictions(cls.__name__)
        reading = {"missing": missing, "unseen": unseen, "formula": formula}
        encoded = model if isinstance(model, encoded_class) else encoded_class(model)
        return encoded.set_params(**reading).fit(data, sample_weight=sample_weight)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether the model is fitted."""
        return hasattr(self, self._fitted_attribute)

    def __str__(self) -> str:
        if not self.__sklearn_is_fitted__():
            return repr(self)
        classes, features = getattr(self, "classes_", None), getattr(self, "n_features_in_", None)
        counts = [] if classes is None else [format_count(len(classes), "class")]
        counts += [] if features is None else [format_count(features, "feature")]
        counts += self._chosen_values()
        return f"{self!r}  # fitted" + (f": {', '.join(counts)}" if counts else "")

    def _chosen_values(self) -> list[str]:
        """Return the values of options that the fit chose, such as 'shrinkage 0.1'."""
        chosen = []
        options: dict[str, Any] = cast(Any, self).get_params(deep=False)
        for option, given in options.items():
            value = getattr(self, f"{option}_", None) if isinstance(given, str) else None
            if isinstance(value, Real):
                chosen.append(f"{option} {float(value):.4g}")
        return chosen

    def __dir__(self) -> list[str]:
        """List the public attributes."""
        return [name for name in super().__dir__() if name not in _NOT_LISTED]

    def _check_is_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call "
                f"{self._fit_methods} first."
            )

    def _check_width(self, width: int) -> None:
        """Raise `ShapeError` unless `width` is the number of columns in the fit."""
        if width != self.n_features_in_:
            raise ShapeError.of_width(width, self.n_features_in_, type(self).__name__)

    def _copy_input_names(self, model: Any) -> None:
        """Copy the number and names of the features from a wrapped model."""
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


class ClassifierWrapper(ClassifierMixin, MetaEstimatorMixin, EstimatorMixin, BaseEstimator):
    """Base class of classifiers that wrap another classifier, `estimator`.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Class labels, sorted.
    n_features_in_, feature_names_in_
        Those of the wrapped classifier.
    """

    estimator: Any

    def __sklearn_tags__(self) -> Any:
        """Return the tags of the wrapped classifier."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.target_tags = inner.target_tags
        tags.classifier_tags = inner.classifier_tags
        return tags


class RowEstimator(EstimatorMixin, BaseEstimator):
    """Base class of estimators that match the columns of new rows with the columns of the fit.

    Attributes
    ----------
    n_features_in_, feature_names_in_
        Number of features, and their names if the rows had any.
    """

    _fitted_attribute = "moments_"
    _fit_methods = "fit, fit_moments or partial_fit"

    def __sklearn_tags__(self) -> Any:
        """Return the tags: sparse rows are supported."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _set_features(self, features: tuple[str, ...], named: bool | None = None) -> None:
        """Store the column names and whether the user gave them.

        If `named` is None, names other than default names such as 'x0' are treated as given by the
        user.
        """
        if named is None:
            named = features != numbered_names(len(features))
        self._schema = Schema(features, np.zeros(0), named)
        self._set_input_names(features, named=named)

    def _rows_to_score(self, X: Any) -> Features:
        """Return rows with the columns in the order of the fit; a float64 array stays unchanged."""
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
        """Validate rows and reorder their columns as in the fit."""
        features, names = as_features(X, match=self._schema)
        self._check_width(features.shape[1])
        if features.shape[0] == 0:
            raise ShapeError.no_rows(0)
        if names is not None and not self._schema.named and names != self._schema.features:
            warn(NamesUncheckedWarning.fitted_without(type(self).__name__))
        if names is None and self._schema.named:
            warn(NamesUncheckedWarning.given_without(type(self).__name__))
        return features

    def _score_rows(self, score: Callable[[Features], Floats], X: Any) -> Floats:
        """Return the scores of rows; if one is not finite, raise an error that names the cell."""
        return self._score_features(score, self._rows_to_score(X))

    def _score_features(self, score: Callable[[Features], Floats], features: Features) -> Floats:
        """Return the scores of validated rows."""

        def score_quietly(rows: Features) -> Floats:
            with np.errstate(invalid="ignore", over="ignore"):
                return score(rows)

        scores = map_rows(score_quietly, features, order="F")
        if not np.isfinite(scores).all():
            codes = np.zeros(features.shape[0], dtype=np.uint8)
            Block(features[:], codes).raise_bad_cell(self._schema.features)
            for row in np.flatnonzero(np.isnan(scores).reshape(len(scores), -1).any(axis=1)):
                raise InfiniteValueError.of_row(int(row), type(self).__name__)
        return scores

    def _map_scores(
        self,
        score: Callable[[Features], Floats],
        convert: Callable[[Floats], npt.NDArray[Any]],
        X: Any,
    ) -> npt.NDArray[Any]:
        """Return `convert(score(rows))`, block by block so that scores stay in the CPU cache."""
        features = self._rows_to_score(X)
        try:
            return map_rows(lambda rows: convert(_finite_scores(score, rows)), features)
        except _NotFiniteError:  # due to a bad cell, or to scores beyond float64
            return convert(self._score_features(score, features))

    def _predict_labels(self, rule: Rule, X: Any) -> npt.NDArray[Any]:
        """Return for each row the label of the class with the largest score."""
        labels = np.asarray(rule.labels)

        def from_scores(scores: Floats) -> npt.NDArray[Any]:
            return labels.take(predicted_codes(scores))

        certain = None
        if isinstance(rule, LinearRule) and len(labels) == 2 and _is_large_block(X):
            certain = None if rule.anchor.idle else CertainCodes.of(rule)
        if certain is None:
            return self._map_scores(rule.scores, from_scores, X)
        features = self._rows_to_score(X)

        def exact_codes(rows: Features) -> npt.NDArray[np.signedinteger[Any]]:
            return predicted_codes(_finite_scores(rule.scores, rows))

        def compute(rows: Features) -> npt.NDArray[Any]:
            with np.errstate(invalid="ignore", over="ignore"):
                codes = certain.predict(rows, exact_codes)
            return labels.take(exact_codes(rows) if codes is None else codes)

        try:
            return map_rows(compute, features)
        except _NotFiniteError:
            return from_scores(self._score_features(rule.scores, features))


def _is_large_block(X: Any) -> bool:
    """Return whether rows are a large C-contiguous float64 array."""
    plain = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2
    return plain and X.size >= _MANY and bool(X.flags.c_contiguous)


def _finite_scores(score: Callable[[Features], Floats], rows: Features) -> Floats:
    """Return the scores of rows; raise `_NotFiniteError` if one of them is not finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        scores = score(rows)
    if not np.isfinite(scores).all():
        raise _NotFiniteError
    return scores


class _NotFiniteError(Exception):
    """Scores of some rows are not finite."""


def predicted_codes(scores: Floats) -> npt.NDArray[np.signedinteger[Any]]:
    """Return the index of the largest of K scores (n, K).

    A single score (n, 1) is the score of the second class minus the score of the first: the index
    is 1 where this difference is positive.
    """
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).view(np.int8)
    return max_and_argmax(scores.T)[1]


class PosteriorMixin(PredictionHints, IgnoresUnderflow):
    """Mixin: predictions from the class scores of a rule, with the fitted or other class priors.

    The class has `_rule_scores`, `classes_` and `prior_`.
    """

    classes_: Any
    prior_: Any
    _rule_scores: Callable[[Any], Floats]

    def predict(self, X: Any, prior: Prior | None = None) -> npt.NDArray[Any]:
        """Predict the most probable class of each row; if several are equal, the first of them.

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
        if prior is None:
            return self._most_probable_labels(X)
        codes = map_rows(predicted_codes, self._scores(X, prior))
        return np.asarray(self.classes_[codes])

    def predict_log_proba(self, X: Any, prior: Prior | None = None) -> Floats:
        """Return log posteriors (n, K), accurate for very small probabilities too.

        Arguments are as in `predict`.
        """
        return map_rows(log_posterior, self._scores(X, prior))

    def predict_proba(self, X: Any, prior: Prior | None = None) -> Floats:
        """Return posterior probabilities (n, K), in the order of `classes_`.

        Arguments are as in `predict`.
        """
        if prior is None:
            return self._posteriors(X)
        return map_rows(posterior, self._scores(X, prior))

    def decision_function(self, X: Any) -> Floats:
        """Return class scores (n, K); with two classes, the log odds of the second class (n,)."""
        return second_minus_first(self._scores(X, None))

    def _most_probable_labels(self, X: Any) -> npt.NDArray[Any]:
        codes = map_rows(predicted_codes, self._rule_scores(X))
        return np.asarray(self.classes_[codes])

    def _posteriors(self, X: Any) -> Floats:
        return map_rows(posterior, self._rule_scores(X))

    def _scores(self, X: Any, prior: Prior | None) -> Floats:
        scores = self._rule_scores(X)
        if prior is None:
            return scores
        new = validate_prior(prior, self.classes_)
        return np.asarray(scores + np.log(new) - np.log(self.prior_))


class LogPosteriorMixin(PredictionHints, IgnoresUnderflow):
    """Mixin: the most probable class and posterior probabilities, from `predict_log_proba`."""

    classes_: Any

    def predict_log_proba(self, X: Any) -> Floats:
        """Return log posteriors (n, K)."""
        raise NotImplementedError

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the most probable class of each row; if several are equal, the first of them."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> Floats:
        """Return posterior probabilities (n, K), in the order of `classes_`."""
        return np.asarray(np.exp(self.predict_log_proba(X)))


class MomentClassifier(PosteriorMixin, ClassifierMixin, RowEstimator):
    """Base class of classifiers that are computed from class moments.

    A subclass defines `detail` and `rule_from`. The methods that follow these two in the class body
    may be overridden.

    Parameters
    ----------
    prior : array of shape (K,), dict by label or None, default None
        Class priors, in the order of the sorted labels. None means the class shares of the rows.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Class labels, sorted.
    prior_ : array of shape (K,)
        Class priors.
    means_ : array of shape (K, d)
        Class means.
    moments_ : ClassMoments
        Moments of the fitted rows; `partial_fit` and `forget` update them.
    """

    prior: Prior | None = None
    moments_: Any  # ClassMoments, or ClassRows if the rows need less memory
    _asked: Self  # copy of the model with the options of the last fit
    _fitted: Rule | None
    _derived: dict[str, Any]  # cache of quantities derived from the moments

    # --- defined by subclasses ------------------------------------------------------------------

    @property
    def detail(self) -> Detail:
        """Level of detail of the moments that a fit needs."""
        raise AttributeError("detail")

    def rule_from(self, moments: Any) -> Rule:
        """Return the rule fitted to moments, without changing the model."""
        raise AttributeError("rule_from")

    def detail_for(self, rows: int, width: int) -> Detail:
        """Return the level of detail to read from a table of this shape.

        The detail is 'rows' (the rows themselves) if rows need less memory than their moments.
        """
        return self.detail

    def accepts(self, moments: ClassMoments | ClassRows) -> bool:
        """Return whether moments contain all that a fit needs."""
        return moments.has(self.detail)

    def prior_from(self, moments: ClassMoments | ClassRows) -> Floats:
        """Return the class priors (K,) that a fit to these moments uses."""
        return class_prior(moments, self.prior)

    def needs_rows_for(self, moments: Any) -> bool:
        """Return whether moments are not accurate enough for a fit, so that it needs the rows."""
        return False

    def leave_one_out_scores(self, moments: Any, table: Table) -> Floats | None:
        """Return scores (N, K): row i is scored by the rule fitted to all rows but i.

        Scores are NaN for rows whose rule must be refitted. Returns None if there is no closed
        form.
        """
        return None

    def predict_with_rule(
        self, rule: Rule, features: Features
    ) -> tuple[Floats, npt.NDArray[np.intp]]:
        """Return log posteriors (n, K) and predicted class codes (n,) of rows, by a given rule."""
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
            Weight of each row. An integer weight has the effect of repeating the row.

        Returns
        -------
        self
        """
        self.__dict__.pop("_allowed", None)
        table = self._open_table(X, y, sample_weight)
        if len(table) == 1:
            least = 4 if self.detail == "class" else 3
            raise TooFewRowsError.of_one_row(type(self).__name__, least)
        if len(table.schema.labels) < 2:
            raise LabelError.one_class(table.schema.labels[0])
        return self._fit_table(table)

    def fit_moments(self, moments: ClassMoments | ClassRows) -> Self:
        """Fit the model from class moments, without the rows.

        Parameters
        ----------
        moments : ClassMoments
            Result of `discriminant.moments(X, y)`. Moments may have been merged, weighted or
            regrouped.

        Returns
        -------
        self
        """
        check_moments(moments)
        if not self.accepts(moments):
            name = type(self).__name__
            raise MomentsMismatchError.needs_detail(name, self.detail, moments.detail)
        return self._fit_from(moments)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Add rows to the fit; the rule is updated when it is next used.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. New classes may appear in any call.
        classes : array, default None
            Labels allowed in this and all later calls. None means any label.

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
            raise ShapeError.of_width(table.width, self.n_features_in_, type(self).__name__)
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
        """Fitted rule; `rule_.scores(X)` returns the class scores."""
        self._check_is_fitted()
        if self._fitted is None:
            self._fitted = self._asked.rule_from(self._present_moments)
        return self._fitted

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """Class labels (K,), sorted."""
        self._check_is_fitted()
        return np.asarray(self._present_moments.labels)

    @property
    def prior_(self) -> Floats:
        """Class priors (K,)."""
        self._check_is_fitted()
        return self._asked.prior_from(self._present_moments)

    @property
    def means_(self) -> Floats:
        """Class means (K, d)."""
        self._check_is_fitted()
        return np.asarray(self._present_moments.means)

    # --- private ----------------------------------------------------------------------------------

    def _fit_table(self, table: AnyTable) -> Self:
        moments = read_classes(table, self.detail_for(len(table), table.width))
        return self._fit_from(moments, named=table.schema.named)

    def _fit_from(self, moments: ClassMoments | ClassRows, named: bool | None = None) -> Self:
        moments = self._reduce_rows(moments)
        d = len(moments.features)
        rows = int(moments.rows.sum()) if moments.detail == "rows" else len(moments.labels) + d
        with merge_warnings(), blas_context(d, rows=rows):
            rule = self.rule_from(moments)
        self._set_state(moments, rule, named=named)
        return self

    def _read_additional(self, table: AnyTable) -> Any:
        """Read the moments of additional rows.

        If the model stores rows, new rows are stored relative to the same origin.
        """
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
        """Replace stored rows by their moments if the moments need less memory."""
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
        self._asked = type(self).__new__(type(self))
        self._asked.__dict__.update(self.__dict__)
        # scikit-learn's pipelines set the last while they fit
        fitted = ("moments_", "_asked", "_fitted", "_derived", "_copied", "_parent_callback_ctx")
        for name in fitted:
            self._asked.__dict__.pop(name, None)
        self._asked.__dict__.update(self.options_in_effect())
        self.moments_ = moments
        self._fitted = rule
        self._derived = {}
        self._set_features(moments.features, named)

    def _cached(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return a quantity derived from the moments; it is computed once, on first use."""
        self._check_is_fitted()
        if name not in self._derived:
            self._derived[name] = compute()
        return self._derived[name]

    def _open_table(
        self, X: Any, y: Any, weight: Any, labels: Any = None, *, more: bool = False
    ) -> AnyTable:
        """Validate rows and labels and return them as a table.

        With `more`, columns are matched by name with the columns of the rows fitted before.
        """
        partitioned = partitioned_or_none(X, y, weight)
        if partitioned is not None:
            return partitioned
        match = self._schema if more and hasattr(self, "_schema") else None
        name = type(self).__name__
        return as_table(X, y, weight=weight, labels=labels, name=name, match=match)

    def _rule_scores(self, X: Any) -> Floats:
        return self._score_rows(self.rule_.scores, X)

    def decision_function(self, X: Any) -> Floats:
        """Return class scores (n, K); with two classes, the log odds of the second class (n,)."""
        scores = self._score_rows(self._prediction_rule().scores, X)
        return scores[:, 0] if scores.shape[1] == 1 else second_minus_first(scores)

    def _most_probable_labels(self, X: Any) -> npt.NDArray[Any]:
        return self._predict_labels(self._prediction_rule(), X)

    def _posteriors(self, X: Any) -> Floats:
        return self._map_scores(self._prediction_rule().scores, posterior, X)

    def _prediction_rule(self) -> Rule:
        """Return the rule; a linear rule of two classes is reduced to a single predictor."""
        rule = self.rule_
        if isinstance(rule, LinearRule) and len(rule.labels) == 2:
            contrast: LinearRule = self._cached("contrast", lambda: rule.contrast().for_values())
            return contrast
        return rule


def check_moments(moments: Any) -> None:
    """Raise `OptionError` unless the argument of `fit_moments` is a moments object."""
    if not isinstance(moments, ClassMoments | ClassRows):
        allowed = "the result of discriminant.moments(X, y); to fit rows, call fit(X, y)"
        raise OptionError.of("moments", type(moments).__name__, allowed)


class LinearMomentClassifier(MomentClassifier):
    """Base class of classifiers that are computed from class moments and have linear scores.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (K, d) and (K,); (1, d) and (1,) for two classes
        Coefficients in the user's units.
    """

    @property
    def coef_(self) -> Floats:
        """Coefficients in the user's units: (K, d), or (1, d) for two classes."""
        return as_sklearn_coefficients(*self._linear_rule().slopes())[0]

    @property
    def intercept_(self) -> Floats:
        """Intercepts for `coef_`: (K,), or (1,) for two classes (second minus first).

        `predict` does not use them: for accuracy, it measures features from an origin near the
        rows.
        """
        return as_sklearn_coefficients(*self._linear_rule().slopes())[1]

    def _linear_rule(self) -> LinearRule:
        rule = self.rule_
        if not isinstance(rule, LinearRule):
            raise AttributeError("This rule is not linear, so it has no coef_.")
        return rule


def as_sklearn_coefficients(slope: Floats, intercept: Floats) -> tuple[Floats, Floats]:
    """Return coefficients in scikit-learn's form: for two classes, one row (second minus first)."""
    if len(intercept) == 2:
        return slope[1:] - slope[:1], intercept[1:] - intercept[:1]
    return slope, intercept


class IterativeEstimator(RowEstimator):
    """Base class of estimators that read the rows repeatedly until the fit converges.

    A subclass defines `_check_options` and `fit`. `fit` opens a table, makes passes over it and
    calls `_set_rule`. The fitted state is `rule_` and the attributes that the subclass sets.
    """

    rule_: LinearRule
    _fitted_attribute = "rule_"
    _fit_methods = "fit"

    def _check_options(self) -> None:
        """Raise `OptionError` if an option is invalid; `fit` calls this method once."""
        raise NotImplementedError

    def _require_bool(self, *names: str) -> None:
        for name in names:
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise OptionError.of(name, getattr(self, name), "True or False")

    def _set_rule(self, table: AnyTable, rule: LinearRule) -> None:
        self._set_features(table.schema.features, table.schema.named)
        self.rule_ = rule

    def _rule_scores(self, X: Any) -> Floats:
        """Return the scores of the rule: (n, K), or (n, 1) for a rule with a single score."""
        return self._score_rows(self._prediction_rule(X).scores, X)

    def _prediction_rule(self, X: Any) -> Any:
        """Return the rule; with a single score, in the faster form for values if rows are many."""
        self._check_is_fitted()
        rule = self.rule_
        single = isinstance(rule, LinearRule) and len(rule.intercept) == 1
        return rule.for_values() if single and _is_large_block(X) else rule


class IterativeClassifier(ClassifierMixin, IterativeEstimator):
    """Base class of classifiers that read the rows repeatedly.

    A subclass defines `_check_options`, `_fit_table`, and `fit`, which calls `_fit_rows` (see
    `WeightedIterativeClassifier`).
    `_partitions` is True if the passes can read a partitioned table; otherwise the rows of such a
    table are loaded into memory.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Class labels, sorted.
    """

    classes_: npt.NDArray[Any]  # (K,) labels, sorted
    _partitions = False

    def _fit_table(self, table: Any) -> None:
        """Fit a table by iteration, call `_set_rule` and set the other fitted attributes."""
        raise NotImplementedError

    def _fit_rows(self, X: Any, y: Any, weight: Any = None) -> Self:
        self._check_options()
        table = self._open_table(X, y, weight)
        self._fit_table(table if self._partitions else table_in_memory(table, type(self).__name__))
        return self

    def _open_table(self, X: Any, y: Any, weight: Any) -> AnyTable:
        """Validate rows. There must be at least two classes, each with rows of positive weight."""
        name = type(self).__name__
        table = partitioned_or_none(X, y, weight) or as_table(X, y, weight=weight, name=name)
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


class WeightedIterativeClassifier(IterativeClassifier):
    """Base class of classifiers that read the rows repeatedly and accept row weights."""

    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the model; the rows are read several times.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d), or partitioned table
            Rows. A partitioned table (`discriminant.rows`) has its own labels and weights; a model
            that cannot be fitted in passes over its parts reads it into memory.
        y : array of shape (n,)
            Class labels.
        sample_weight : array of shape (n,), default None
            Weight of each row.

        Returns
        -------
        self
        """
        return self._fit_rows(X, y, sample_weight)


def class_totals(table: AnyTable) -> Floats:
    """Return the total weight of the rows of each class (K,)."""
    if isinstance(table, PartitionedTable):
        return table.moments.weight
    totals = np.bincount(table.codes, table.weight, minlength=len(table.schema.labels))
    return np.asarray(totals, dtype=np.float64)
