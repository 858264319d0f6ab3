"""Held-out answers of any scikit-learn classifier, by fitting it again for every fold.

A class that is missing from a training part cannot be predicted there: its log posterior is
-inf, and a warning names it. What each model decides is put down beside its posteriors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from discriminant.assessment.answers import Answers, Gathered
from discriminant.assessment.folds import FoldNumbers, rows_by_fold
from discriminant.models.rules import Rule
from discriminant.table.schema import Codes, Floats, Labels
from discriminant.table.source import Table

PRIORS = ("prior", "priors", "class_prior")  # options that state priors: ours, scikit-learn's


def refit_folds(
    estimator: Any,
    X: Any,
    *,
    labels: Labels,
    codes: Codes,
    weight: Floats | None,
    fold: FoldNumbers,
) -> Answers:
    """What is said of each row by a model that has not seen its fold."""
    found = Gathered(labels, len(codes))
    everybody = np.arange(len(codes))
    for test in rows_by_fold(fold):
        train = np.setdiff1d(everybody, test, assume_unique=True)
        present = present_classes(codes[train], None if weight is None else weight[train], labels)
        model = for_classes(clone(estimator), present, labels)
        more = {} if weight is None else {"sample_weight": weight[train]}
        model.fit(_safe_indexing(X, train), labels[codes[train]], **more)
        found.ask(model, _safe_indexing(X, test), test)
    return found.answers()


def made_from_moments(estimator: Any) -> bool:
    """Whether a classifier, with the options that it has, is a function of class moments."""
    return hasattr(estimator, "rule_from") and not getattr(estimator, "needs_rows", False)


def given_prior(estimator: Any) -> tuple[str, Any] | None:
    """The option that states priors, if the estimator has one, and what it is."""
    options = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    found = next(((name, options[name]) for name in PRIORS if name in options), None)
    if found is None and getattr(estimator, "_priors_within", False):
        inner = given_prior(estimator.estimator)
        return None if inner is None else (f"estimator__{inner[0]}", inner[1])
    return found


def rule_without(estimator: Any, moments: Any, table: Table, rows: Any) -> Rule:
    """The rule of all but some rows: of their moments, or of themselves if those lack digits."""
    if not estimator.needs_rows_for(moments):
        return cast(Rule, estimator.rule_from(moments))
    others = np.delete(np.arange(len(table)), rows)
    return cast(Rule, estimator.rule_of(table.take(others)))


def present_classes(codes: Codes, weight: Floats | None, labels: Labels) -> npt.NDArray[np.bool_]:
    """(K,) which classes have a row of positive weight."""
    some = codes if weight is None else codes[weight > 0]
    return np.bincount(some, minlength=len(labels)) > 0


def for_classes(estimator: Any, present: npt.NDArray[np.bool_], labels: Labels) -> Any:
    """The estimator with its priors, if it was given any, for the classes present alone."""
    if present.all():
        return estimator
    found = given_prior(estimator)
    if found is None or found[1] is None:
        return estimator
    name, prior = found
    if isinstance(prior, Mapping):
        some = labels[present].tolist()
        total = sum(prior.get(label, 0.0) for label in some)
        named = {label: prior[label] / total for label in some if label in prior}
        return clone(estimator).set_params(**{name: named})
    if np.shape(prior) != present.shape:
        return estimator
    kept = np.asarray(prior, dtype=np.float64)[present]
    return clone(estimator).set_params(**{name: kept / kept.sum()})
