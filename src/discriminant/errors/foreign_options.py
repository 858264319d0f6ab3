"""Option names of other libraries, and the option of ours that does the same.

Estimators have hints of their own, by class: `estimators.translation`. Functions share these: a
name of scikit-learn, SciPy, pandas or R stands for one of ours wherever a function has that option.
Nothing is translated silently: scales and defaults differ.
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
    "random_state": "leave it out; nothing here is drawn at random",
    "alpha": "pass level= or interval=, which is 1 - alpha, where a function has it",
    "scoring": _MEASURED,
    "metric": _MEASURED,
    "return_train_score": "leave it out; all that is returned is of held-out rows",
    "return_estimator": "leave it out; fit the estimator to all rows afterwards",
    "fit_params": "set the options of the estimator itself",
    "params": "set the options of the estimator itself",
    "param_grid": "pass the values of each option by its name",
    "error_score": "leave it out; what cannot be fitted raises an error that says why",
    "figsize": "pass ax=, made by matplotlib's subplots(figsize=...)",
    "initial_types": "leave it out; the columns are known from the fit",
    "target_opset": "leave it out; the graph says which operators it needs",
    "sep": "leave it out; the delimiter of a file is found, and open_source has delimiter=",
    "cv": "leave it out; cross_validate(..., folds=...) holds rows out",
    "nrows": "read the rows first, and pass them as a table",
    "drop_intermediate": "leave it out; every threshold is kept",
    "max_fpr": "cut the curve: roc(...) has fpr and tpr",
    "compress": "leave it out; arrays are stored as they are",
    "protocol": "leave it out; nothing is pickled",
}


def check_names(
    name: str,
    options: Iterable[str],
    known: Sequence[str],
    instead: Callable[[str], str | None],
) -> None:
    """Raise an error for the first option that is not known, with what to pass instead."""
    for option in options:
        if option not in known:
            raise UnknownOptionError.of(name, option, known=known, instead=instead(option))


def foreign_hint(option: str, known: Sequence[str]) -> str | None:
    """What a function with these options has for one of another library.

    >>> foreign_hint("cv", ["X", "y", "folds"])
    'pass folds='
    """
    ours = next((name for name in _SAME.get(option, ()) if name in known), None)
    return _INSTEAD.get(option) if ours is None else f"pass {ours}="


def named_options(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap a function so that an unknown option raises an error that names ours.

    A function that forwards options is called first, and its TypeError is translated.
    """
    found = inspect.signature(function).parameters.values()
    known = [one.name for one in found if one.kind is not one.VAR_KEYWORD]
    hands_on = len(known) < len(found)

    def hint(option: str) -> str | None:
        return foreign_hint(option, known)

    @wraps(function)
    def answering(*args: P.args, **options: P.kwargs) -> T:
        strange = [one for one in options if one not in known]
        if strange and not hands_on:
            check_names(function.__name__, strange, known, hint)
        try:
            return function(*args, **options)
        except TypeError as fault:
            refused = re.search(r"unexpected keyword argument '(\w+)'", str(fault))
            if refused is None or refused[1] not in strange:
                raise
            raise UnknownOptionError.of(
                function.__name__, refused[1], known=known, instead=hint(refused[1])
            ) from None

    return answering
