"""Linear classifiers that read their rows repeatedly, and the coordinates in which they iterate.

A class adds its options, `_check_options` and `_fit_table`, which ends in a `LinearRule` with one
score per class, or for two classes a single score, second minus first.

    RowSpaceTable   a table with more features than rows, in the few directions that the rows span
    ColumnUnits     origin and scale of each column, so that iterations do not depend on units
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.engines.dispatch import anchor_of, read_moments
from discriminant.engines.partitioned_table import AnyTable
from discriminant.errors import ConstantColumnWarning, LabelError, OptionError, warn
from discriminant.estimators.base import IterativeClassifier, class_totals, one_row_for_two
from discriminant.models.gaussian.wide import RowSpace
from discriminant.models.rules import LinearRule
from discriminant.moments.anchor import Anchor
from discriminant.table.blocks import Floats, Schema, is_sparse
from discriminant.table.memory import Table

ClassWeight = Literal["balanced"] | Mapping[Any, float]


class LinearClassifier(IterativeClassifier):
    """A classifier with linear scores, fitted by iteration."""

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class with the highest score; of equal scores the first class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows; columns of a data frame are matched by name.

        Returns
        -------
        array of shape (n,)
            Labels.
        """
        scores = self._rule_scores(X)
        if scores.shape[1] == 1:
            return np.asarray(self.classes_[(scores[:, 0] > 0).astype(np.intp)])
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def decision_function(self, X: Any) -> Floats:
        """(n, K) scores of the classes; with two classes (n,), second minus first."""
        scores = self._rule_scores(X)
        if scores.shape[1] > 2:
            return scores
        return np.asarray(scores[:, -1] - (scores[:, 0] if scores.shape[1] == 2 else 0.0))

    @property
    def coef_(self) -> Floats:
        """(K, d) coefficients in the user's units; with two classes (1, d), second minus first."""
        self._check_is_fitted()
        return one_row_for_two(*self.rule_.slopes())[0]

    @property
    def intercept_(self) -> Floats:
        """(K,) or (1,) intercepts for `coef_`; prediction uses an origin near the rows instead."""
        self._check_is_fitted()
        return one_row_for_two(*self.rule_.slopes())[1]


def class_shares(table: AnyTable) -> Floats:
    """(K,) share of each class in the total weight."""
    totals = class_totals(table)
    return np.asarray(totals / totals.sum())


def class_weight_factors(class_weight: Any, table: AnyTable) -> Floats | None:
    """(K,) factors of the row weights by class, from the option `class_weight`; None for None.

    'balanced' gives all classes the same total weight and keeps the sum of the weights.
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
    """A table whose columns are the directions that its rows span, and the map back to features."""

    table: Table  # the same rows in coordinates of the directions
    anchor: Anchor  # of the features
    space: RowSpace

    @classmethod
    def of(
        cls, table: Table, anchor: Anchor, *, centred: bool, standardize: bool = True
    ) -> RowSpaceTable:
        """Find the directions of a table about an anchor of its features."""
        table.raise_bad_cell()
        offsets = anchor.offsets(table.features[:])
        space = RowSpace.from_rows(
            offsets, weight=table.weight, centred=centred, standardize=standardize
        )
        names = tuple(f"direction {j}" for j in range(space.rows.shape[1]))
        schema = Schema(names, table.schema.labels)
        narrow = Table(schema, space.rows, table.codes, table.weight, table.responses)
        return cls(narrow, anchor, space)

    def to_features(self, rule: LinearRule) -> LinearRule:
        """Return the rule in the features that equals a rule in the directions."""
        slope, at_zero = rule.slopes()
        coef, intercept = self.space.coefficients(slope.T, at_zero)
        return LinearRule(rule.labels, self.anchor, coef.T, intercept)


_ROUNDING = 4 * float(np.finfo(np.float64).eps)  # a smaller relative deviation is rounding


@dataclass(frozen=True, slots=True, eq=False)
class ColumnUnits:
    """An anchor at the mean of the rows, or at zero, and the scale of each column about it."""

    anchor: Anchor
    spread: Floats  # (d,) scale in units of the anchor; 0 for a constant column

    @property
    def inverse_spread(self) -> Floats:
        """(d,) 1 / spread, and 0 where the spread is 0."""
        spread = self.spread
        return np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)


def column_units(table: Table, *, at_zero: bool = False) -> ColumnUnits:
    """Mean and standard deviation of each column; checks that all cells are finite.

    Sparse rows keep the origin 0, so that zeros stay zeros, and are scaled by the largest absolute
    value in the column, as by scikit-learn's MaxAbsScaler. With `at_zero` dense rows have the
    origin 0 too and are scaled by their root mean square, so that a column of ones is not constant.
    Constant dense columns raise a warning; a sparse column is often empty.
    """
    if is_sparse(table.features):
        return _sparse_units(table)
    units = _dense_units(table, at_zero=at_zero)
    constant = units.spread == 0
    if constant.any():
        names = np.array(table.schema.features, dtype=object)[constant].tolist()
        warn(ConstantColumnWarning.of_columns(names))
    return units


def _dense_units(table: Table, *, at_zero: bool) -> ColumnUnits:
    single_class = Schema(table.schema.features, np.zeros(1), table.schema.named)
    codes = np.zeros(len(table), dtype=np.uint8)
    whole = Table(single_class, table.features, codes, table.weight)
    moments = read_moments(whole, detail="diagonal")
    spread = np.sqrt(moments.scatter[0] / moments.weight[0])
    anchor, _ = moments.anchor.shift(moments.mean[0])
    if at_zero:
        size = np.hypot(spread * anchor.unit, anchor.origin)  # root mean square
        anchor = Anchor(np.zeros(table.width), anchor.unit).rescale_to(size)
        return ColumnUnits(anchor, size / anchor.unit)
    spread[spread <= _ROUNDING * np.abs(anchor.origin / anchor.unit)] = 0.0
    return ColumnUnits(anchor, spread)


def _sparse_units(table: Table) -> ColumnUnits:
    features = table.features
    if not np.isfinite(features.data).all():
        table.raise_bad_cell()
    anchor = anchor_of(table) if features.shape[1] < 1 << 12 else Anchor.zero(table.width)
    spread, sizes, columns = np.zeros(table.width), np.abs(features.data), features.indices
    if table.weight is not None and not table.weight.all():
        weighted = np.repeat(table.weight > 0, np.diff(features.indptr))
        sizes, columns = sizes[weighted], columns[weighted]
    np.maximum.at(spread, columns, sizes)
    return ColumnUnits(anchor, spread / anchor.unit)
