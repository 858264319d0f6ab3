"""What a classifier says of rows: how probable each class is, and what it decides.

The two need not agree. A cost, a threshold, weights of the classes or votes of many classifiers
decide for another class than the most probable one, and a decision may be no class at all. So what
is measured is what the model itself would do: `decide` where it has it, else `predict`.

Fitted models as scorers of blocks: what travels to where the rows are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier

from discriminant.errors import LabelError, NoPosteriorWarning, OptionError, warn
from discriminant.models.rules import Rule
from discriminant.moments.confusion import Actions, sort_actions
from discriminant.posterior import gives_posterior
from discriminant.table.blocks import Features, Floats, Labels, Places, dense


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """What is said of n rows."""

    log_posterior: Floats  # (n, K), -inf for a class that the model does not know
    decided: Places  # (n,) place of what is decided, among the K labels and then the others
    others: Actions = ()  # decisions that are no classes

    @classmethod
    def empty(cls, rows: int, classes: int) -> Predictions:
        """To be filled in."""
        logs = np.full((classes, rows), -np.inf).T  # those of a class side by side
        return cls(logs, np.zeros(rows, dtype=np.intp))

    def take(self, rows: Places) -> Predictions:
        """What is said of some of them."""
        logs = np.array([column[rows] for column in self.log_posterior.T]).T
        return Predictions(logs, self.decided[rows], self.others)

    def fill(
        self,
        rows: Places | slice,
        columns: Places,
        log_posterior: Floats,
        codes: npt.NDArray[Any],
    ) -> None:
        """Fill in some rows by a model that knows the classes in `columns` alone."""
        for k, column in zip(columns, log_posterior.T, strict=True):
            self.log_posterior[rows, k] = column
        self.decided[rows] = columns[codes]


def check_classifier(estimator: Any) -> None:
    """A classifier, and not a class of them."""
    if isinstance(estimator, type):
        name = estimator.__name__
        raise OptionError.of("estimator", name, f"a model, not its class: {name}()")
    if not is_classifier(estimator):
        allowed = "a classifier: what is measured is what is said of classes"
        raise OptionError.of("estimator", type(estimator).__name__, allowed)


def decisions_of(model: Any, X: Any) -> tuple[npt.NDArray[Any], Actions]:
    """(n,) what a fitted classifier decides, and the decisions it has that are no classes."""
    if not hasattr(model, "decide"):
        return np.asarray(model.predict(X)), ()
    said = np.asarray(model.decide(X), dtype=object)
    classes = set(np.asarray(model.classes_).tolist())
    known = dict.fromkeys([*getattr(model, "actions_", ()), *said.tolist()])
    return said, tuple(action for action in known if action not in classes)


def log_posterior_or_none(model: Any, X: Any) -> Floats | None:
    """(n, K) log posteriors of a fitted classifier; None if it gives no probabilities."""
    return log_predict_proba(model, X) if gives_posterior(model) else None


def log_predict_proba(model: Any, X: Any) -> Floats | None:
    """(n, K) logs of `predict_proba`, whether or not these are probabilities; None without it."""
    with np.errstate(divide="ignore"):
        if hasattr(model, "predict_log_proba"):
            return np.asarray(model.predict_log_proba(X), dtype=np.float64)
        if hasattr(model, "predict_proba"):
            return np.asarray(np.log(np.asarray(model.predict_proba(X), dtype=np.float64)))
    return None


def class_scores(model: Any, features: Any, labels: Labels) -> Floats:
    """(n, K) scores of all classes; one of two classes is that of the second."""
    said = np.asarray(model.decision_function(features))
    if said.ndim == 1:
        said = np.column_stack([-said, said]) / 2.0
    found = np.full((len(said), len(labels)), -np.inf)
    found[:, np.searchsorted(labels, model.classes_)] = said
    return found


class PredictionCollector:
    """Predictions of several fitted classifiers, each for some of N rows."""

    def __init__(self, labels: Labels, rows: int) -> None:
        self.labels = labels
        self.predicted = Predictions.empty(rows, len(labels))
        self._decisions: list[tuple[Places, npt.NDArray[Any]]] = []  # row numbers, their decisions
        self._others: set[Hashable] = set()

    def add(self, model: Any, X: Any, rows: Places, *, decide: bool = True) -> None:
        """Predict rows X, which have these numbers.

        A model without probabilities counts as certain of the class it predicts. With `decide`
        False its predictions are collected even where it has a method `decide`.
        """
        decisions, others = decisions_of(model, X) if decide else (model.predict(X), ())
        self._decisions.append((rows, np.asarray(decisions)))
        self._others.update(others)
        logs = log_predict_proba(model, X)
        if logs is None:
            warn(NoPosteriorWarning.of(type(model).__name__))
            predicted = np.asarray(model.predict(X))[:, None] == np.asarray(model.classes_)
            with np.errstate(divide="ignore"):
                logs = np.log(predicted.astype(np.float64))
        for k, column in zip(np.searchsorted(self.labels, model.classes_), logs.T, strict=True):
            self.predicted.log_posterior[rows, k] = column

    def predictions(self) -> Predictions:
        """All predictions, with decisions as codes of the classes and then of other actions."""
        names = self.labels.tolist()
        others = sort_actions(self._others.difference(names))
        place: dict[Any, int] = {name: a for a, name in enumerate([*names, *others])}
        unknown: Counter[Any] = Counter()
        for rows, decisions in self._decisions:
            distinct, which = _distinct(decisions, self.labels)
            counts = np.bincount(which, minlength=len(distinct)).tolist()
            unknown.update({n: c for n, c in zip(distinct, counts, strict=True) if n not in place})
            self.predicted.decided[rows] = np.array([place.get(n, -1) for n in distinct])[which]
        if unknown:
            raise LabelError.unknown_decisions(dict(unknown), names)
        return Predictions(self.predicted.log_posterior, self.predicted.decided, tuple(others))


def _distinct(said: npt.NDArray[Any], labels: Labels) -> tuple[list[Any], Places]:
    """Different decisions, and which of them each is; they need not be alike enough to be sorted.

    >>> _distinct(np.array(["no", "yes", "no"], dtype=object), np.array(["no", "yes"]))
    (['no', 'yes'], array([0, 1, 0]))
    """
    if said.dtype != object and said.dtype.kind == labels.dtype.kind:
        which = np.minimum(np.searchsorted(labels, said), len(labels) - 1)
        if np.array_equal(labels[which], said):
            return labels.tolist(), which
    known: dict[Any, int] = {}
    which = np.fromiter((known.setdefault(one, len(known)) for one in said.tolist()), dtype=np.intp)
    return list(known), which


@dataclass(frozen=True, slots=True, eq=False)
class RuleScorer:
    """A rule made from moments, and the model, not fitted, that says what it means."""

    model: Any
    rule: Rule
    columns: Places  # (k,) the classes that it knows
    classes: int  # K of all

    def predict(self, features: Features) -> tuple[Floats, Places, Actions]:
        """Log posteriors of all classes, and what is decided."""
        logs, codes = self.model.predict_with_rule(self.rule, features)
        return *_placed(logs, codes, self.columns, self.classes), ()


@dataclass(frozen=True, slots=True, eq=False)
class ModelScorer:
    """A fitted model, asked as anybody would ask it."""

    model: Any
    labels: Labels  # (K,) all classes
    places: Places | None = None  # (d,) where its features are among those of a row

    def predict(self, features: Features) -> tuple[Floats, Places, Actions]:
        """Log posteriors of all classes, and what is decided."""
        rows = np.asarray(dense(features), dtype=np.float64)
        if self.places is not None:
            rows = rows[:, self.places]
        if not self._plain:
            collector = PredictionCollector(self.labels, len(rows))
            collector.add(self.model, rows, np.arange(len(rows)))
            predictions = collector.predictions()
            return predictions.log_posterior, predictions.decided, predictions.others
        columns = np.searchsorted(self.labels, self.model.classes_)
        codes = np.searchsorted(self.model.classes_, self.model.predict(rows))
        logs = self.model.predict_log_proba(rows)
        return *_placed(logs, codes, columns, len(self.labels)), ()

    @property
    def _plain(self) -> bool:
        """Whether it decides for classes that it gives a probability, and nothing else."""
        return hasattr(self.model, "predict_log_proba") and not hasattr(self.model, "decide")


@dataclass(frozen=True, slots=True, eq=False)
class DecisionScorer:
    """A fitted model without posteriors: it is sure of what it says, and ranks rows by scores."""

    model: Any
    labels: Labels  # (K,) all classes

    def predict(self, features: Features) -> tuple[Floats, Places, Actions]:
        """All belief in the class that is said."""
        rows = np.asarray(dense(features), dtype=np.float64)
        codes = np.searchsorted(self.labels, self.model.predict(rows))
        logs = np.full((len(codes), len(self.labels)), -np.inf)
        logs[np.arange(len(codes)), codes] = 0.0
        return logs, codes, ()

    def scores(self, features: Features) -> Floats:
        """(n, K) by which rows are ranked."""
        rows = np.asarray(dense(features), dtype=np.float64)
        return class_scores(self.model, rows, self.labels)


def without_feature_names(model: Any) -> Any:
    """A fitted model that takes arrays without asking for the names of their columns."""
    made = copy(model)
    schema = getattr(made, "_schema", None)
    if schema is not None:
        made._schema = replace(schema, named=False)
    if "feature_names_in_" in made.__dict__:
        del made.feature_names_in_
    if hasattr(made, "estimator_"):
        made.estimator_ = without_feature_names(made.estimator_)
    return made


def _placed(logs: Floats, codes: Places, columns: Places, classes: int) -> tuple[Floats, Places]:
    """Among all classes; one that the model does not know has posterior 0."""
    if len(columns) == classes:
        return logs, codes
    found = np.full((len(logs), classes), -np.inf)
    found[:, columns] = logs
    return found, columns[codes]
