"""What classifiers share that read their rows again and again and end in a linear rule.

A class adds its options and `fit`, which opens the rows, finds a `LinearRule` and keeps it:

    table = self._open(X, y, sample_weight)
    self._keep(table, rule)

The rule has a score for each class, or for two classes one score alone: the second's less the
first's.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from discriminant.engines.parted import AnyTable, Parted
from discriminant.errors import LabelError, OptionError, TooFewRowsError, WeightError
from discriminant.estimators.base import Rows
from discriminant.estimators.in_parts import parted
from discriminant.models.rules import LinearRule
from discriminant.table.schema import Floats
from discriminant.table.source import open_table


class LinearClassifier(ClassifierMixin, Rows):
    """A linear rule of classes."""

    rule_: LinearRule  # K scores, or one for two classes
    classes_: npt.NDArray[Any]  # (K,) labels, sorted

    _mark = "rule_"
    _ways_to_fit = "fit"

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class with the highest score; of equal ones the first."""
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return np.asarray(self.classes_[(scores[:, 0] > 0).astype(np.intp)])
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def decision_function(self, X: Any) -> Floats:
        """Scores (n, K); with two classes (n,), the second's less the first's."""
        scores = self._scores(X)
        if scores.shape[1] > 2:
            return scores
        return np.asarray(scores[:, -1] - (scores[:, 0] if scores.shape[1] == 2 else 0.0))

    @property
    def coef_(self) -> Floats:
        """Slopes in the user's numbers: (K, d), with two classes (1, d), second less first."""
        return self._slopes()[0]

    @property
    def intercept_(self) -> Floats:
        """Intercepts to go with `coef_`. Scoring does not use them: it counts from an origin."""
        return self._slopes()[1]

    # --- for the classes ----------------------------------------------------------------------

    def _open(self, X: Any, y: Any, weight: Any = None) -> AnyTable:
        """Rows at the door: two classes or more, each with rows that count."""
        table = parted(X, y, weight) or open_table(
            X, y, weight=weight, name=self.__class__.__name__
        )
        if len(table) == 1:
            raise TooFewRowsError.of_one_row(self.__class__.__name__, 2)
        labels = table.schema.labels
        if len(labels) < 2:
            raise LabelError.one_class(labels[0])
        for k in np.flatnonzero(class_sums(table) == 0):
            raise WeightError.class_without(labels[k])
        return table

    def _keep(self, table: AnyTable, rule: LinearRule) -> None:
        """Remember the columns of the table, and the rule found."""
        self._remember(table.schema.features, table.schema.named)
        self.classes_ = np.asarray(rule.labels)
        self.rule_ = rule

    def _scores(self, X: Any) -> Floats:
        """(n, K) or (n, 1) scores of rows."""
        self._need_fit()
        if not self._plain(X):
            X = self._features(X)
        return self._finite(self.rule_.scores, X)

    def _slopes(self) -> tuple[Floats, Floats]:
        self._need_fit()
        slope, intercept = self.rule_.slopes()
        if len(intercept) == 2:
            return slope[1:] - slope[:1], intercept[1:] - intercept[:1]
        return slope, intercept


def class_sums(table: AnyTable) -> Floats:
    """(K,) weight of the rows of each class."""
    if isinstance(table, Parted):
        return table.moments.weight
    found = np.bincount(table.codes, table.weight, minlength=len(table.schema.labels))
    return np.asarray(found, dtype=np.float64)


def shares(table: AnyTable) -> Floats:
    """(K,) share of each class in the weight of the rows."""
    count = class_sums(table)
    return np.asarray(count / count.sum())


def class_factors(class_weight: Any, table: AnyTable) -> Floats | None:
    """(K,) what `class_weight` multiplies the weights of rows of each class by; None for nothing.

    'balanced' makes classes count alike and leaves the sum of weights as it is.
    """
    labels = table.schema.labels.tolist()
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.asarray(1.0 / (len(labels) * shares(table)))
    if not isinstance(class_weight, Mapping):
        allowed = "None, 'balanced' or a dict with a weight for each label"
        raise OptionError.of("class_weight", class_weight, allowed)
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise LabelError.unknown(unknown, labels)
    for value in class_weight.values():
        if not (isinstance(value, Real) and 0 < float(value) < np.inf):
            allowed = "positive and finite for every class"
            raise OptionError.of("class_weight", class_weight, allowed)
    return np.array([float(class_weight.get(label, 1.0)) for label in labels])
