"""What classifiers share that read their rows again and again and end in a linear rule.

A class adds its options and `fit`, which opens the rows, finds a `LinearRule` and keeps it:

    table = self._open(X, y, sample_weight)
    self._keep(table, rule)

The rule has a score for each class, or for two classes one score alone: the second's less the
first's.

Tables with more features than rows, in the few directions that their rows span.

Where the rows of a table lie and how far they spread: the origin and units of iterations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from discriminant.engines.engine import anchor_of, read_moments
from discriminant.engines.partitioned import AnyTable, Parted
from discriminant.errors import (
    ConstantColumnWarning,
    LabelError,
    OptionError,
    TooFewRowsError,
    WeightError,
    warn,
)
from discriminant.estimators.base import RowEstimator, as_partitioned
from discriminant.models.gaussian.wide import RowSpace
from discriminant.models.rules import LinearRule
from discriminant.moments.anchor import Anchor
from discriminant.table.blocks import Floats, Schema, is_sparse
from discriminant.table.memory import Table, open_table


class LinearClassifier(ClassifierMixin, RowEstimator):
    """A linear rule of classes."""

    rule_: LinearRule  # K scores, or one for two classes
    classes_: npt.NDArray[Any]  # (K,) labels, sorted

    _fitted_attribute = "rule_"
    _fit_methods = "fit"

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

    def _open_table(self, X: Any, y: Any, weight: Any = None) -> AnyTable:
        """Rows at the door: two classes or more, each with rows that count."""
        table = as_partitioned(X, y, weight) or open_table(
            X, y, weight=weight, name=self.__class__.__name__
        )
        if len(table) == 1:
            raise TooFewRowsError.of_one_row(self.__class__.__name__, 2)
        labels = table.schema.labels
        if len(labels) < 2:
            raise LabelError.one_class(labels[0])
        for k in np.flatnonzero(class_totals(table) == 0):
            raise WeightError.class_without(labels[k])
        return table

    def _set_rule(self, table: AnyTable, rule: LinearRule) -> None:
        """Remember the columns of the table, and the rule found."""
        self._set_features(table.schema.features, table.schema.named)
        self.classes_ = np.asarray(rule.labels)
        self.rule_ = rule

    def _scores(self, X: Any) -> Floats:
        """(n, K) or (n, 1) scores of rows."""
        self._check_is_fitted()
        if not self._is_plain_array(X):
            X = self._open_features(X)
        return self._score_rows(self.rule_.scores, X)

    def _slopes(self) -> tuple[Floats, Floats]:
        self._check_is_fitted()
        slope, intercept = self.rule_.slopes()
        if len(intercept) == 2:
            return slope[1:] - slope[:1], intercept[1:] - intercept[:1]
        return slope, intercept


def class_totals(table: AnyTable) -> Floats:
    """(K,) weight of the rows of each class."""
    if isinstance(table, Parted):
        return table.moments.weight
    found = np.bincount(table.codes, table.weight, minlength=len(table.schema.labels))
    return np.asarray(found, dtype=np.float64)


def class_shares(table: AnyTable) -> Floats:
    """(K,) share of each class in the weight of the rows."""
    count = class_totals(table)
    return np.asarray(count / count.sum())


def class_weight_factors(class_weight: Any, table: AnyTable) -> Floats | None:
    """(K,) what `class_weight` multiplies the weights of rows of each class by; None for nothing.

    'balanced' makes classes count alike and leaves the sum of weights as it is.
    """
    labels = table.schema.labels.tolist()
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.asarray(1.0 / (len(labels) * class_shares(table)))
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


@dataclass(frozen=True, slots=True, eq=False)
class RowSpaceTable:
    """A table of directions, and the way back to the features."""

    table: Table  # the same rows; its columns are directions
    anchor: Anchor  # of the features
    space: RowSpace

    @classmethod
    def of(
        cls, table: Table, anchor: Anchor, *, centred: bool, standardize: bool = True
    ) -> RowSpaceTable:
        """Directions of a table about an anchor of its features."""
        table.blame()
        offsets = anchor.offsets(table.features[:])
        space = RowSpace.from_rows(
            offsets, weight=table.weight, centred=centred, standardize=standardize
        )
        names = tuple(f"direction {j}" for j in range(space.rows.shape[1]))
        schema = Schema(names, table.schema.labels)
        narrow = Table(schema, space.rows, table.codes, table.weight, table.responses)
        return cls(narrow, anchor, space)

    def to_features(self, rule: LinearRule) -> LinearRule:
        """The rule for the features, of one for the directions."""
        slope, at_zero = rule.slopes()
        coef, intercept = self.space.coefficients(slope.T, at_zero)
        return LinearRule(rule.labels, self.anchor, coef.T, intercept)


_DUST = 4 * float(np.finfo(np.float64).eps)  # a spread of less than this, relative, is rounding


@dataclass(frozen=True, slots=True, eq=False)
class ColumnUnits:
    """An anchor at the mean of the rows, or at zero, and the spread of each column about it."""

    anchor: Anchor
    spread: Floats  # (d,) in units of the anchor; 0 for a column that is all at the anchor

    @property
    def inverse_spread(self) -> Floats:
        """(d,) 1 / spread, and 0 where there is none."""
        some = self.spread > 0
        return np.divide(1.0, self.spread, out=np.zeros_like(self.spread), where=some)


def column_units(table: Table, *, at_zero: bool = False) -> ColumnUnits:
    """Mean and standard deviation of each column; the cells are checked on the way.

    Sparse rows are counted from 0, so that zeros stay zeros, and their spread is the largest size
    in the column, as in scikit-learn's MaxAbsScaler. `at_zero` counts dense rows from 0 too: their
    spread is the root mean square, so that a column of ones is a column. Dense columns that do not
    spread are told of; a sparse one is often empty.
    """
    if is_sparse(table.features):
        return _sparse_units(table)
    found = _dense_units(table, at_zero=at_zero)
    still = found.spread == 0
    if still.any():
        names = np.array(table.schema.features, dtype=object)[still].tolist()
        warn(ConstantColumnWarning.of_columns(names))
    return found


def _dense_units(table: Table, *, at_zero: bool) -> ColumnUnits:
    one = Schema(table.schema.features, np.zeros(1), table.schema.named)
    codes = np.zeros(len(table), dtype=np.uint8)
    found = read_moments(Table(one, table.features, codes, table.weight), detail="diagonal")
    spread = np.sqrt(found.scatter[0] / found.weight[0])
    anchor, _ = found.anchor.moved(found.mean[0])
    if at_zero:
        size = np.hypot(spread * anchor.unit, anchor.origin)
        anchor = Anchor(np.zeros(table.width), anchor.unit).fit_to(size)
        return ColumnUnits(anchor, size / anchor.unit)
    spread[spread <= _DUST * np.abs(anchor.origin / anchor.unit)] = 0.0
    return ColumnUnits(anchor, spread)


def _sparse_units(table: Table) -> ColumnUnits:
    features = table.features
    if not np.isfinite(features.data).all():
        table.blame()
    anchor = anchor_of(table) if features.shape[1] < 1 << 12 else Anchor.zero(table.width)
    spread, sizes, places = np.zeros(table.width), np.abs(features.data), features.indices
    if table.weight is not None and not table.weight.all():  # rows that do not count do not count
        some = np.repeat(table.weight > 0, np.diff(features.indptr))
        sizes, places = sizes[some], places[some]
    np.maximum.at(spread, places, sizes)
    return ColumnUnits(anchor, spread / anchor.unit)
