"""Linear classifiers fitted by iteration: base class, and coordinates of the iteration.

A subclass of `LinearClassifier` adds its options, `_check_options` and `_fit_table`. `_fit_table`
sets a `LinearRule` with one score per class or, with two classes, a single score: second class
minus first.

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
from discriminant.estimators.base import (
    IterativeClassifier,
    as_sklearn_coefficients,
    class_totals,
    second_minus_first,
)
from discriminant.models.gaussian.wide import RowSpace
from discriminant.models.rules import LinearRule
from discriminant.moments.anchor import Anchor
from discriminant.table.blocks import Floats, Schema, is_sparse
from discriminant.table.memory import Table

ClassWeight = Literal["balanced"] | Mapping[Any, float]


class LinearClassifier(IterativeClassifier):
    """Base class of classifiers with linear scores that are fitted by iteration.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (K, d) and (K,); (1, d) and (1,) for two classes
        Coefficients in the user's units.
    """

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class with the highest score; ties go to the first class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows; columns of a data frame are matched by name.

        Returns
        -------
        array of shape (n,)
            Labels.
        """
        return self._predict_labels(self._prediction_rule(X), X)

    def decision_function(self, X: Any) -> Floats:
        """Return class scores (n, K); for two classes, second minus first as an (n,) array."""
        scores = self._rule_scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else second_minus_first(scores)

    @property
    def coef_(self) -> Floats:
        """Coefficients in the user's units: (K, d), or (1, d) for two classes."""
        self._check_is_fitted()
        return as_sklearn_coefficients(*self.rule_.slopes())[0]

    @property
    def intercept_(self) -> Floats:
        """Intercepts for `coef_`: (K,), or (1,) for two classes (second minus first).

        `predict` does not use them: for accuracy, it measures features from an origin near the
        rows.
        """
        self._check_is_fitted()
        return as_sklearn_coefficients(*self.rule_.slopes())[1]


def class_shares(table: AnyTable) -> Floats:
    """Return the share of each class in the total weight of the rows (K,)."""
    totals = class_totals(table)
    return np.asarray(totals / totals.sum())


def class_weight_factors(class_weight: Any, table: AnyTable) -> Floats | None:
    """Return the factors (K,) for the row weights of each class; None without `class_weight`.

    'balanced' gives all classes the same total weight, without changing the sum of all weights.
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
    """Rows as coordinates in the space they span, with the map from coordinates to features."""

    table: Table  # the rows; its columns are the directions
    anchor: Anchor  # origin and unit of each feature
    space: RowSpace

    @classmethod
    def from_table(
        cls, table: Table, anchor: Anchor, *, centred: bool, standardize: bool = True
    ) -> RowSpaceTable:
        """Return a table of the directions that the rows `(x - origin) / unit` span."""
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
        """Return the rule for the features that is equivalent to a rule for the directions."""
        slope, at_zero = rule.slopes()
        coef, intercept = self.space.coefficients(slope.T, at_zero)
        return LinearRule(rule.labels, self.anchor, coef.T, intercept)


# a column with a smaller relative deviation is constant up to rounding
_ROUNDING = 4 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnUnits:
    """Origin (the mean of the rows, or zero) and scale of each column."""

    anchor: Anchor
    spread: Floats  # (d,) scale of each column of offsets; 0 for a constant column

    @property
    def inverse_spread(self) -> Floats:
        """1 / spread (d,); 0 for a constant column, whose spread is 0."""
        spread = self.spread
        return np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)


def column_units(table: Table, *, at_zero: bool = False) -> ColumnUnits:
    """Return origin and scale of each column: mean and standard deviation, for dense rows.

    For sparse rows the origin is 0, so that zeros stay zeros, and the scale is the largest absolute
    value of the column, as in scikit-learn's `MaxAbsScaler`. With `at_zero`, the origin of dense
    rows is 0 too, and the scale is the root mean square, so that a column of ones does not count as
    constant. Constant columns of dense rows cause a warning; sparse columns do not, because they
    are often empty. Raises an error if a cell is not finite.
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
    pooled = Table(single_class, table.features, codes, table.weight)
    moments = read_moments(pooled, detail="diagonal")
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
