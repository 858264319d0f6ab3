"""Option names of other libraries, and the equivalent options of this package.

Hints for the options of estimators are in `estimators.base`. This module lists
option names of scikit-learn, SciPy, pandas and R; the hints apply to every function that has the
equivalent option. No option is translated silently, because scales and defaults differ.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from discriminant.errors.inputs import UnknownOptionError

P = ParamSpec("P")
T = TypeVar("T")

_FOLDS, _SEED, _LEVEL, _DRAWS = ("folds",), ("seed",), ("level", "interval"), ("draws",)
_MODEL, _ROWS, _PATH = ("estimator", "model", "thing"), ("X", "source", "moments"), ("path", "out")
_TRUTH, _SCORES = ("truth", "labels", "y"), ("scores", "posterior", "log_posterior")
_SAME: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("cv", "n_splits", "n_folds", "nfolds", "number", "k", "K", "fold"), _FOLDS),
    **dict.fromkeys(("random_state", "rng"), _SEED),
    **dict.fromkeys(("confidence", "confidence_level", "conf_level", "ci"), _LEVEL),
    **dict.fromkeys(("n_resamples", "n_boot", "n_bootstraps", "boot_n", "B", "R"), _DRAWS),
    **dict.fromkeys(("estimator", "classifier", "clf", "model", "obj", "object"), _MODEL),
    **dict.fromkeys(("data", "df", "newdata", "x", "X"), _ROWS),
    **dict.fromkeys(("filename", "file", "fname", "filepath", "path_or_buf"), _PATH),
    **dict.fromkeys(("y_true", "response", "grouping"), _TRUTH),
    **dict.fromkeys(("y_score", "y_prob", "y_proba", "predictor"), _SCORES),
    **dict.fromkeys(("weights", "sample_weights", "sample_weight"), ("sample_weight", "weight")),
    **dict.fromkeys(("weight",), ("sample_weight",)),
    **dict.fromkeys(("priors", "class_prior"), ("prior", "old")),
    **dict.fromkeys(("scoring", "metric"), ("criterion", "loss", "measure")),
    **dict.fromkeys(("n_features_to_select", "k_features", "nvmax"), ("n_features",)),
    **dict.fromkeys(("sep", "delim"), ("delimiter",)),
    **dict.fromkeys(("na_values", "na_strings"), ("missing_texts",)),
    "y_pred": ("decided",),
    "pos_label": ("positive",),
    "labels": ("classes",),
    "multi_class": ("versus",),
    "normalize": ("normalise",),
    "n_bins": ("bins",),
    "tol": ("tolerance",),
    "usecols": ("columns",),
    "mmap_mode": ("mmap",),
    "dec": ("decimal",),
    "verbose": ("progress",),
    "callback": ("progress",),
}
_MEASURED = "leave it out; the result has every measure, such as error, log_loss and tally"
_INSTEAD = {
    "n_jobs": "leave it out; all cores are used",
    "verbose": "leave it out; diagnostics are issued as warnings",
    "random_state": "leave it out; the result is not random",
    "alpha": "pass level= or interval=, which is 1 - alpha, where a function has it; for "
    "PredictionSets set the option coverage",
    "coverage": "set it with set_params(coverage=...); no other fit is needed",
    "scoring": _MEASURED,
    "metric": _MEASURED,
    "return_train_score": "leave it out; all measures are computed on held-out rows",
    "return_estimator": "leave it out; fit the estimator to all rows afterwards",
    "fit_params": "set the options of the estimator itself",
    "params": "set the options of the estimator itself",
    "param_grid": "pass the values of each option by its name",
    "error_score": "leave it out; a failed fit raises an error that says why",
    "figsize": "pass ax=, created by matplotlib's subplots(figsize=...)",
    "initial_types": "leave it out; the fitted model knows its columns",
    "target_opset": "leave it out; the graph declares the operators it needs",
    "sep": "leave it out; delimiters are detected, and open_source has delimiter=",
    "cv": "leave it out; cross_validate(..., folds=...) holds rows out",
    "interval": "leave it out; Logistic and OrderedLogistic have intervals of predict_proba, and "
    "GLM and LogLinear of predict",
    "nrows": "read the rows first, and pass them as a table",
    "drop_intermediate": "leave it out; every threshold is returned",
    "max_fpr": "truncate the curve: roc(...) has fpr and tpr",
    "compress": "leave it out; arrays are stored as they are",
    "protocol": "leave it out; nothing is pickled",
}


def check_names(
    name: str,
    options: Iterable[str],
    known: Sequence[str],
    instead: Callable[[str], str | None],
) -> None:
    """Raise an error for the first unknown option; the message states what to pass instead."""
    for option in options:
        if option not in known:
            raise UnknownOptionError.of(name, option, known=known, instead=instead(option))


def foreign_hint(option: str, known: Sequence[str]) -> str | None:
    """Return a hint on what to pass in place of an option of another library, or None.

    `known` are the options of the function that was called.

    >>> foreign_hint("cv", ["X", "y", "folds"])
    'pass folds='
    """
    ours = next((name for name in _SAME.get(option, ()) if name in known), None)
    return _INSTEAD.get(option) if ours is None else f"pass {ours}="


def named_options(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap a function so that an unknown option raises an error that names the equivalent option.

    If the function forwards options to other functions, it is called, and if it raises a TypeError
    for an unknown option, this error is translated.
    """
    parameters = inspect.signature(function).parameters.values()
    known = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD and p.name != "self"]
    forwards = any(p.kind is p.VAR_KEYWORD for p in parameters)

    def hint(option: str) -> str | None:
        return foreign_hint(option, known)

    @wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> T:
        unknown = [option for option in options if option not in known]
        if not forwards:
            check_names(function.__name__, unknown, known, hint)
        try:
            return function(*args, **options)
        except TypeError as error:
            match = re.search(r"unexpected keyword argument '(\w+)'", str(error))
            if match is None or match[1] not in unknown:
                raise
            raise UnknownOptionError.of(
                function.__name__, match[1], known=known, instead=hint(match[1])
            ) from None

    return checked
