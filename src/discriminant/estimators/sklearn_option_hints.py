"""Hints for scikit-learn's option names: what to pass here instead.

A constructor raises at once for an option that it does not have; for an option of scikit-learn the
message says what to use here. Nothing is translated silently, because scales and defaults differ.
Functions do the same by `errors.foreign_options`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, Self

from discriminant.errors.foreign_options import check_names

_PRIOR = "pass prior=, by label or in sorted order; it enters the intercepts only"
_INTERCEPT = "pass intercept="
_STRENGTH = "pass ridge=1/(C*n) for n rows (or their weight) and standardize=False"
_KERNEL = "scores are linear: make columns first, in a pipeline with Basis"
_NEVER = "leave it out; it changes no answer here"
_EXACT = "leave it out; the answer is exact"
_LIMIT = "leave it out; what has not converged after max_iter steps is told in a warning"

_DISCRIMINANT = {
    "priors": _PRIOR,
    "store_covariance": "covariance_ is always there",
    "tol": "leave it out; columns without a spread of their own are found and named",
    "solver": "leave it out; there is one answer, and whatever the shape the way to it is chosen",
    "covariance_estimator": "pass shrinkage='auto' (Ledoit and Wolf), 'oas' or a number",
}
_REG_PARAM = "RDA.from_sklearn(reg_param=...) makes the same model"
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
        "metric": "distances are Euclidean; in units of the spread use LDA(shrinkage=1.0)",
        "shrink_threshold": "choose features with select_features, or use LDA(shrinkage=...)",
    },
    "Logistic": {
        "C": _STRENGTH,
        "penalty": "pass ridge > 0 for 'l2', with l1_ratio=1 for 'l1'; there is none by default",
        "fit_intercept": _INTERCEPT,
        "tol": _LIMIT,
        "dual": _NEVER,
        "random_state": _NEVER,
        "verbose": "pass progress=, a function that is called after every pass",
        "multi_class": "leave it out; for a model of each class use OneVsRest(Logistic())",
    },
    "Perceptron": {
        "alpha": "a perceptron has no penalty here; SVM(ridge=...) has",
        "penalty": "a perceptron has no penalty here; SVM(ridge=...) has",
        "eta0": "leave it out; starting from zero, the length of steps changes no border",
        "max_iter": "pass max_passes=",
        "fit_intercept": _INTERCEPT,
        "tol": "leave it out; it ends when every row is right, or after max_passes",
    },
    "SVM": {
        "C": _STRENGTH,
        "penalty": "the penalty is on squares ('l2'), pass ridge=; Logistic has l1_ratio=",
        "dual": "pass solver='dual' or 'primal'; both come to the same answer",
        "tol": "pass tolerance=",
        "max_iter": "pass max_steps=",
        "fit_intercept": _INTERCEPT,
        "kernel": _KERNEL,
        "gamma": _KERNEL,
    },
    "LeastSquares": {
        "alpha": "pass ridge=, the same number",
        "fit_intercept": "there is always one; LinearRegression(fit_intercept=False) has none",
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
    "Basis": {
        "interaction_only": "pass interactions='only'",
        "include_bias": "leave it out; models have their own intercept",
    },
}
_EVERYWHERE = {
    "n_jobs": "leave it out; all cores are used",
    "warm_start": "leave it out; every fit starts anew",
    "verbose": "leave it out; what there is to know is told in warnings",
    "class_weight": "wrap it: Reweighted(estimator, 'balanced')",
    "copy_X": "leave it out; rows are never changed",
}


class OptionHints:
    """Mixin that raises a helpful error for an unknown constructor option."""

    def __new__(cls, *_: Any, **options: Any) -> Self:
        """Check the names of the options; `__init__` stores their values."""
        if options:
            _check(cls, options)
        return super().__new__(cls)


def _check(kind: Any, options: Iterable[str]) -> None:
    """Raise if the class does not have these options."""
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return
    known = [each.name for each in parameters]
    check_names(kind.__name__, options, known, lambda option: _instead(kind, option))


def _instead(kind: Any, option: str) -> str | None:
    """Hint for an option of the class or of one of its bases."""
    hints = [_INSTEAD.get(base.__name__, {}).get(option) for base in kind.__mro__]
    return next(filter(None, hints), _EVERYWHERE.get(option))
