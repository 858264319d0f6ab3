"""Fitted models as scorers of blocks: what travels to where the rows are."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discriminant.assessment.answers import Gathered, class_scores
from discriminant.models.rules import Rule
from discriminant.moments.tally import Actions
from discriminant.table.schema import Features, Floats, Labels, Places, dense


@dataclass(frozen=True, slots=True, eq=False)
class ByRule:
    """A rule made from moments, and the model, not fitted, that says what it means."""

    model: Any
    rule: Rule
    columns: Places  # (k,) the classes that it knows
    classes: int  # K of all

    def said(self, features: Features) -> tuple[Floats, Places, Actions]:
        """Log posteriors of all classes, and what is decided."""
        logs, codes = self.model.answers_by(self.rule, features)
        return *_placed(logs, codes, self.columns, self.classes), ()


@dataclass(frozen=True, slots=True, eq=False)
class ByModel:
    """A fitted model, asked as anybody would ask it."""

    model: Any
    labels: Labels  # (K,) all classes
    places: Places | None = None  # (d,) where its features are among those of a row

    def said(self, features: Features) -> tuple[Floats, Places, Actions]:
        """Log posteriors of all classes, and what is decided."""
        rows = np.asarray(dense(features), dtype=np.float64)
        if self.places is not None:
            rows = rows[:, self.places]
        if not self._plain:
            found = Gathered(self.labels, len(rows))
            found.ask(self.model, rows, np.arange(len(rows)))
            answers = found.answers()
            return answers.log_posterior, answers.decided, answers.others
        columns = np.searchsorted(self.labels, self.model.classes_)
        codes = np.searchsorted(self.model.classes_, self.model.predict(rows))
        logs = self.model.predict_log_proba(rows)
        return *_placed(logs, codes, columns, len(self.labels)), ()

    @property
    def _plain(self) -> bool:
        """Whether it decides for classes that it gives a probability, and nothing else."""
        return hasattr(self.model, "predict_log_proba") and not hasattr(self.model, "decide")


@dataclass(frozen=True, slots=True, eq=False)
class ByScores:
    """A fitted model without posteriors: it is sure of what it says, and ranks rows by scores."""

    model: Any
    labels: Labels  # (K,) all classes

    def said(self, features: Features) -> tuple[Floats, Places, Actions]:
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


def unnamed(model: Any) -> Any:
    """A fitted model that takes arrays without asking for the names of their columns."""
    made = copy(model)
    schema = getattr(made, "_schema", None)
    if schema is not None:
        made._schema = replace(schema, named=False)
    if "feature_names_in_" in made.__dict__:
        del made.feature_names_in_
    if hasattr(made, "estimator_"):
        made.estimator_ = unnamed(made.estimator_)
    return made


def _placed(logs: Floats, codes: Places, columns: Places, classes: int) -> tuple[Floats, Places]:
    """Among all classes; one that the model does not know has posterior 0."""
    if len(columns) == classes:
        return logs, codes
    found = np.full((len(logs), classes), -np.inf)
    found[:, columns] = logs
    return found, columns[codes]
