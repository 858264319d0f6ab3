"""Error messages for scikit-learn's option names: which option of this package to use instead.

A constructor raises an error for an option that it does not have. If scikit-learn has the option,
the message names the equivalent option of this package. Options are not translated silently,
because scales and defaults differ. Functions do the same with `errors.foreign_options`.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any, Self

from discriminant.errors.foreign_options import check_names

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
    "solver": "leave it out; there is one solution, computed as suits the shape of the rows",
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
        "multi_class": "leave it out; for one model per class use OneVsRest(Logistic())",
    },
    "Perceptron": {
        "alpha": "a perceptron has no penalty here; SVM(ridge=...) has",
        "penalty": "a perceptron has no penalty here; SVM(ridge=...) has",
        "eta0": "leave it out; starting from zero, the step size does not move the boundary",
        "max_iter": "pass max_passes=",
        "fit_intercept": _INTERCEPT,
        "tol": "leave it out; it ends when every row is correct, or after max_passes",
    },
    "SVM": {
        "C": _STRENGTH,
        "penalty": "the penalty is on squares ('l2'), pass ridge=; Logistic has l1_ratio=",
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


class OptionHints:
    """Mixin that raises a helpful error for an unknown constructor option."""

    def __new__(cls, *_: Any, **options: Any) -> Self:
        """Raise an error for an unknown option; `__init__` stores the values of known options."""
        if options:
            parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
            if all(each.kind is not each.VAR_KEYWORD for each in parameters):
                known = [each.name for each in parameters]
                check_names(cls.__name__, options, known, partial(_hint, cls))
        return super().__new__(cls)


def _hint(cls: type[Any], option: str) -> str | None:
    """Return the hint for an option, from the class or one of its base classes."""
    hints = [_INSTEAD.get(base.__name__, {}).get(option) for base in cls.__mro__]
    return next(filter(None, hints), _EVERYWHERE.get(option))
