"""Adaline: a linear classifier that reads its rows repeatedly."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from discriminant.models.linear.delta import delta_steps

from discriminant.errors import OptionError
from discriminant.estimators.linear.iterative import LinearClassifier, column_units
from discriminant.models.rules import LinearRule
from discriminant.table.blocks import dense
from discriminant.table.memory import Table


class Adaline(LinearClassifier):
    """Widrow and Hoff's adaptive linear neuron, one for each class.

    Parameters
    ----------
    passes : int, default=50
        Passes over the rows.
    """

    def __init__(self, *, passes: int = 50) -> None:
        self.passes = passes

    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the model."""
        return self._fit_rows(X, y, sample_weight)

    def _check_options(self) -> None:
        if self.passes < 1:
            raise OptionError.of("passes", self.passes, "1 or more")

    def _fit_table(self, table: Table) -> None:
        units = column_units(table)
        rows = units.anchor.offsets(dense(table.features[:]))
        targets = np.eye(len(table.schema.labels))[table.codes]
        weight = np.ones(len(table)) if table.weight is None else table.weight
        weights = delta_steps(rows, targets, weight, passes=self.passes)
        rule = LinearRule(table.schema.labels, units.anchor, weights[:, :-1], weights[:, -1])
        self._set_rule(table, rule)
        self.n_iter_ = self.passes
