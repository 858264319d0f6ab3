"""Scorers: obtain log posteriors and decisions from fitted classifiers.

The most probable class and the decision need not agree. A cost, a threshold, class weights or the
votes of several classifiers may lead to another class than the most probable one, and a decision
need not be a class. So the model's own decisions are measured: the results of `decide` if the model
has this method, otherwise those of `predict`.

The classes `...Scorer` wrap a fitted model so that it can be sent to the partitions of a table.
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
from discriminant.models.rules import LinearRule, Rule
from discriminant.moments.confusion import Actions, sort_actions
from discriminant.posterior import gives_posterior, log_posterior
from discriminant.table.basis import JoinedBasis
from discriminant.table.blocks import Features, Floats, Labels, Places, dense


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Log posteriors and decisions for n rows."""

    log_posterior: Floats  # (n, K), -inf for a class that the model does not know
    decided: Places  # (n,) index of the decision in the list of the K labels followed by `others`
    others: Actions = ()  # decisions that are not classes

    @classmethod
    def empty(cls, rows: int, classes: int) -> Predictions:
        """Return uninitialised arrays for the predictions of `rows` rows."""
        logs = np.full((classes, rows), -np.inf).T  # columns are contiguous in memory
        return cls(logs, np.zeros(rows, dtype=np.intp))

    def take(self, rows: Places) -> Predictions:
        """Return the predictions for some of the rows."""
        logs = np.array([column[rows] for column in self.log_posterior.T]).T
        return Predictions(logs, self.decided[rows], self.others)

    def fill(
        self,
        rows: Places | slice,
        columns: Places,
        log_posterior: Floats,
        codes: npt.NDArray[Any],
    ) -> None:
        """Fill in predictions of some rows by a model that knows only the classes `columns`."""
        for k, column in zip(columns, log_posterior.T, strict=True):
            self.log_posterior[rows, k] = column
        self.decided[rows] = columns[codes]


def check_classifier(estimator: Any) -> None:
    """Raise an error unless `estimator` is an instance of a classifier (and not a Python class)."""
    if isinstance(estimator, type):
        name = estimator.__name__
        raise OptionError.of("estimator", name, f"an instance, such as {name}()")
    if not is_classifier(estimator):
        allowed = "a classifier: only class predictions can be assessed"
        raise OptionError.of("estimator", type(estimator).__name__, allowed)


def decisions_of(model: Any, X: Any) -> tuple[npt.NDArray[Any], Actions]:
    """Return the decisions (n,) of a fitted classifier, and those that are not classes."""
    if not hasattr(model, "decide"):
        return np.asarray(model.predict(X)), ()
    decisions = np.asarray(model.decide(X), dtype=object)
    classes = set(np.asarray(model.classes_).tolist())
    actions = dict.fromkeys([*getattr(model, "actions_", ()), *decisions.tolist()])
    return decisions, tuple(action for action in actions if action not in classes)


def log_posterior_or_none(model: Any, X: Any) -> Floats | None:
    """Return the log posteriors of a fitted classifier, (n, K); None if it has no posteriors."""
    return log_predict_proba(model, X) if gives_posterior(model) else None


def log_predict_proba(model: Any, X: Any) -> Floats | None:
    """Return the logs of `predict_proba`, (n, K); None if the model lacks this method.

    The probabilities need not be calibrated.
    """
    with np.errstate(divide="ignore"):
        if hasattr(model, "predict_log_proba"):
            return np.asarray(model.predict_log_proba(X), dtype=np.float64)
        if hasattr(model, "predict_proba"):
            return np.asarray(np.log(np.asarray(model.predict_proba(X), dtype=np.float64)))
    return None


def class_scores(model: Any, features: Any, labels: Labels) -> Floats:
    """Return `decision_function` for all classes, (n, K); -inf for classes the model does not know.

    If the model has two classes and returns one score `s` for each row, the two columns are `-s/2`
    and `s/2`.
    """
    scores = np.asarray(model.decision_function(features))
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores]) / 2.0
    all_scores = np.full((len(scores), len(labels)), -np.inf)
    all_scores[:, np.searchsorted(labels, model.classes_)] = scores
    return all_scores


class PredictionCollector:
    """Collects predictions for N rows from several classifiers, each for some of the rows."""

    def __init__(self, labels: Labels, rows: int) -> None:
        self.labels = labels
        self.predicted = Predictions.empty(rows, len(labels))
        # row numbers, and the decisions for those rows
        self._decisions: list[tuple[Places, npt.NDArray[Any]]] = []
        self._others: set[Hashable] = set()

    def add(self, model: Any, X: Any, rows: Places, *, decide: bool = True) -> None:
        """Predict the rows `X`, whose row numbers are `rows`, and collect the predictions.

        For a model without probabilities the predicted class has probability one. If `decide` is
        False, the result of `predict` is collected even if the model has a method `decide`.
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
        """Return all predictions.

        A decision is coded by its index in the list of the classes followed by all other
        decisions.
        """
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


def _distinct(decisions: npt.NDArray[Any], labels: Labels) -> tuple[list[Any], Places]:
    """Return the distinct decisions, and the index of each decision in them.

    The decisions need not be sortable.

    >>> _distinct(np.array(["no", "yes", "no"], dtype=object), np.array(["no", "yes"]))
    (['no', 'yes'], array([0, 1, 0]))
    """
    if decisions.dtype != object and decisions.dtype.kind == labels.dtype.kind:
        which = np.minimum(np.searchsorted(labels, decisions), len(labels) - 1)
        if np.array_equal(labels[which], decisions):
            return labels.tolist(), which
    index: dict[Any, int] = {}
    which = np.fromiter((index.setdefault(d, len(index)) for d in decisions.tolist()), np.intp)
    return list(index), which


@dataclass(frozen=True, slots=True, eq=False)
class RuleScorer:
    """Scorer that applies a rule fitted to moments."""

    model: Any  # unfitted estimator, which converts scores of the rule to posteriors
    rule: Rule
    columns: Places  # (k,) indices of the classes that the rule knows
    classes: int  # `K`, the number of all classes

    def predict(self, features: Features) -> tuple[Floats, Places, Actions]:
        """Return log posteriors, decisions, and the actions that are not classes."""
        logs, codes = self.model.predict_with_rule(self.rule, features)
        return *_among_all_classes(logs, codes, self.columns, self.classes), ()


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxRuleScorer:
    """Scorer that applies a linear rule whose scores are log posteriors up to a constant."""

    rule: LinearRule
    columns: Places  # (k,) indices of the classes that the rule knows
    classes: int  # `K`, the number of all classes

    def predict(self, features: Features) -> tuple[Floats, Places, Actions]:
        """Return log posteriors, decisions, and the actions that are not classes."""
        scores = self.rule.scores(features)
        if scores.shape[1] == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        logs, codes = log_posterior(scores), scores.argmax(axis=1)
        return *_among_all_classes(logs, codes, self.columns, self.classes), ()


@dataclass(frozen=True, slots=True, eq=False)
class BasisScorer:
    """Scorer that applies a basis expansion to the features before it scores them."""

    basis: JoinedBasis
    scorer: Any  # scorer of the expanded features

    def predict(self, features: Features) -> tuple[Floats, Places, Actions]:
        """Return log posteriors, decisions, and the actions that are not classes."""
        rows = np.asarray(dense(features), dtype=np.float64)
        predictions: tuple[Floats, Places, Actions] = self.scorer.predict(self.basis.expand(rows))
        return predictions


@dataclass(frozen=True, slots=True, eq=False)
class ModelScorer:
    """Scorer that calls the public methods of a fitted model."""

    model: Any
    labels: Labels  # (K,) all classes
    places: Places | None = None  # (d,) indices, in a row, of the features of the model

    def predict(self, features: Features) -> tuple[Floats, Places, Actions]:
        """Return log posteriors, decisions, and the actions that are not classes."""
        rows = np.asarray(dense(features), dtype=np.float64)
        if self.places is not None:
            rows = rows[:, self.places]
        if not hasattr(self.model, "predict_log_proba") or hasattr(self.model, "decide"):
            collector = PredictionCollector(self.labels, len(rows))
            collector.add(self.model, rows, np.arange(len(rows)))
            predictions = collector.predictions()
            return predictions.log_posterior, predictions.decided, predictions.others
        columns = np.searchsorted(self.labels, self.model.classes_)
        codes = np.searchsorted(self.model.classes_, self.model.predict(rows))
        logs = self.model.predict_log_proba(rows)
        return *_among_all_classes(logs, codes, columns, len(self.labels)), ()


@dataclass(frozen=True, slots=True, eq=False)
class DecisionScorer:
    """Scorer of a fitted model without posteriors; rows are ranked by its decision function."""

    model: Any
    labels: Labels  # (K,) all classes

    def predict(self, features: Features) -> tuple[Floats, Places, Actions]:
        """Return predictions in which the predicted class has probability one."""
        rows = np.asarray(dense(features), dtype=np.float64)
        codes = np.searchsorted(self.labels, self.model.predict(rows))
        logs = np.full((len(codes), len(self.labels)), -np.inf)
        logs[np.arange(len(codes)), codes] = 0.0
        return logs, codes, ()

    def scores(self, features: Features) -> Floats:
        """Return the scores that rank the rows, (n, K)."""
        rows = np.asarray(dense(features), dtype=np.float64)
        return class_scores(self.model, rows, self.labels)


def without_feature_names(model: Any) -> Any:
    """Return a copy of a fitted model that accepts arrays without a check of column names."""
    model = copy(model)
    schema = getattr(model, "_schema", None)
    if schema is not None:
        model._schema = replace(schema, named=False)
    if "feature_names_in_" in model.__dict__:
        del model.feature_names_in_
    if hasattr(model, "estimator_"):
        model.estimator_ = without_feature_names(model.estimator_)
    return model


def _among_all_classes(
    logs: Floats, codes: Places, columns: Places, classes: int
) -> tuple[Floats, Places]:
    """Return predictions over all classes.

    Classes that the model does not know have posterior 0.
    """
    if len(columns) == classes:
        return logs, codes
    all_logs = np.full((len(logs), classes), -np.inf)
    all_logs[:, columns] = logs
    return all_logs, columns[codes]
