"""Where the rows of a table lie and how far they spread: the origin and units of iterations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discriminant.engines.engine import anchor_of, read_moments
from discriminant.errors import ConstantColumnWarning, tell
from discriminant.moments.anchor import Anchor
from discriminant.table.schema import Floats, Schema, is_sparse
from discriminant.table.source import Table

_DUST = 4 * float(np.finfo(np.float64).eps)  # a spread of less than this, relative, is rounding


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """An anchor at the mean of the rows, or at zero, and the spread of each column about it."""

    anchor: Anchor
    spread: Floats  # (d,) in units of the anchor; 0 for a column that is all at the anchor

    @property
    def gain(self) -> Floats:
        """(d,) 1 / spread, and 0 where there is none."""
        some = self.spread > 0
        return np.divide(1.0, self.spread, out=np.zeros_like(self.spread), where=some)


def units_of(table: Table, *, at_zero: bool = False) -> Units:
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
        tell(ConstantColumnWarning.of_columns(names))
    return found


def _dense_units(table: Table, *, at_zero: bool) -> Units:
    one = Schema(table.schema.features, np.zeros(1), table.schema.named)
    codes = np.zeros(len(table), dtype=np.uint8)
    found = read_moments(Table(one, table.features, codes, table.weight), detail="diagonal")
    spread = np.sqrt(found.scatter[0] / found.weight[0])
    anchor, _ = found.anchor.moved(found.mean[0])
    if at_zero:
        size = np.hypot(spread * anchor.unit, anchor.origin)
        anchor = Anchor(np.zeros(table.width), anchor.unit).fit_to(size)
        return Units(anchor, size / anchor.unit)
    spread[spread <= _DUST * np.abs(anchor.origin / anchor.unit)] = 0.0
    return Units(anchor, spread)


def _sparse_units(table: Table) -> Units:
    features = table.features
    if not np.isfinite(features.data).all():
        table.blame()
    anchor = anchor_of(table) if features.shape[1] < 1 << 12 else Anchor.zero(table.width)
    spread, sizes, places = np.zeros(table.width), np.abs(features.data), features.indices
    if table.weight is not None and not table.weight.all():  # rows that do not count do not count
        some = np.repeat(table.weight > 0, np.diff(features.indptr))
        sizes, places = sizes[some], places[some]
    np.maximum.at(spread, places, sizes)
    return Units(anchor, spread / anchor.unit)
