"""What a classifier says of rows: how probable each class is, and what it decides.

The two need not agree. A cost, a threshold, weights of the classes or votes of many classifiers
decide for another class than the most probable one, and a decision may be no class at all. So what
is measured is what the model itself would do: `decide` where it has it, else `predict`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier

from discriminant.errors import LabelError, NoPosteriorWarning, OptionError, tell
from discriminant.moments.tally import Actions, in_order
from discriminant.table.schema import Floats, Labels, Places


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What is said of n rows."""

    log_posterior: Floats  # (n, K), -inf for a class that the model does not know
    decided: Places  # (n,) place of what is decided, among the K labels and then the others
    others: Actions = ()  # decisions that are no classes

    @classmethod
    def blank(cls, rows: int, classes: int) -> Answers:
        """To be filled in."""
        logs = np.full((rows, classes), -np.inf)
        return cls(logs, np.zeros(rows, dtype=np.intp))

    def put(
        self, rows: Places, columns: Places, log_posterior: Floats, codes: npt.NDArray[Any]
    ) -> None:
        """Fill in some rows by a model that knows the classes in `columns` alone."""
        self.log_posterior[np.ix_(rows, columns)] = log_posterior
        self.decided[rows] = columns[codes]


def check_classifier(estimator: Any) -> None:
    """A classifier, and not a class of them."""
    if isinstance(estimator, type):
        name = estimator.__name__
        raise OptionError.of("estimator", name, f"a model, not its class: {name}()")
    if not is_classifier(estimator):
        allowed = "a classifier: what is measured is what is said of classes"
        raise OptionError.of("estimator", type(estimator).__name__, allowed)


def said_by(model: Any, X: Any) -> tuple[npt.NDArray[Any], Actions]:
    """(n,) what a fitted classifier decides, and the decisions it has that are no classes."""
    if not hasattr(model, "decide"):
        return np.asarray(model.predict(X)), ()
    said = np.asarray(model.decide(X), dtype=object)
    classes = set(np.asarray(model.classes_).tolist())
    known = dict.fromkeys([*getattr(model, "actions_", ()), *said.tolist()])
    return said, tuple(action for action in known if action not in classes)


def log_posterior_or_none(model: Any, X: Any) -> Floats | None:
    """(n, K) log posteriors of a fitted classifier; None if it has none."""
    with np.errstate(divide="ignore"):
        if hasattr(model, "predict_log_proba"):
            return np.asarray(model.predict_log_proba(X), dtype=np.float64)
        if hasattr(model, "predict_proba"):
            return np.asarray(np.log(np.asarray(model.predict_proba(X), dtype=np.float64)))
    return None


class Gathered:
    """Answers of several fitted classifiers, each about some of N rows."""

    def __init__(self, labels: Labels, rows: int) -> None:
        self.labels = labels
        self.log_posterior = np.full((rows, len(labels)), -np.inf)
        self.said = np.empty(rows, dtype=object)
        self.others: set[Hashable] = set()

    def ask(self, model: Any, X: Any, rows: Places) -> None:
        """Put down what a model says of rows X, which have these numbers.

        Without posteriors it is taken to be sure of what it predicts.
        """
        said, others = said_by(model, X)
        self.said[rows] = said.tolist()
        self.others.update(others)
        logs = log_posterior_or_none(model, X)
        if logs is None:
            tell(NoPosteriorWarning.of(type(model).__name__))
            chosen = np.asarray(model.predict(X))[:, None] == np.asarray(model.classes_)
            with np.errstate(divide="ignore"):
                logs = np.log(chosen.astype(np.float64))
        columns = np.searchsorted(self.labels, model.classes_)
        self.log_posterior[np.ix_(rows, columns)] = logs

    def answers(self) -> Answers:
        """Decisions by their places."""
        names = self.labels.tolist()
        others = in_order(self.others.difference(names))
        place = {name: a for a, name in enumerate([*names, *others])}
        said = self.said.tolist()
        strange = [name for name in said if name not in place]
        if strange:
            raise LabelError.strange({n: strange.count(n) for n in dict.fromkeys(strange)}, names)
        decided = np.fromiter((place[name] for name in said), dtype=np.intp, count=len(said))
        return Answers(self.log_posterior, decided, tuple(others))
