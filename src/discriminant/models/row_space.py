"""More features than rows: the few directions that the rows span.

Rows that are centred and scaled are U S V' (thin), at most N directions of d. A penalised fit lies
in them, for a coefficient outside costs and changes no score:

    score = z'gamma + b,    z = V'(x - mean) / sd,    coef = V gamma / sd,    |V gamma| = |gamma|

So a model is fitted to N columns, and no d x d matrix is ever formed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discriminant.models.metric import thin_svd
from discriminant.table.schema import Floats

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class RowSpace:
    """N rows in the r directions that they span."""

    rows: Floats  # (N, r) z
    axes: Floats  # (d, r) V / sd
    mean: Floats  # (d,) zero where rows are not centred

    @classmethod
    def of(
        cls, offsets: Floats, *, weight: Floats | None, centred: bool, standardize: bool = True
    ) -> RowSpace:
        """Of offsets (N, d); a feature that does not vary has no part in it.

        >>> space = RowSpace.of(np.array([[0.0, 0, 1], [2, 0, 1]]), weight=None, centred=True)
        >>> np.abs(space.rows).round(9).tolist()
        [[1.0], [1.0]]
        """
        mean = np.zeros(offsets.shape[1])
        if centred:
            mean = np.average(offsets, axis=0, weights=weight)
        apart = offsets - mean
        sd = np.sqrt(np.average(apart * apart, axis=0, weights=weight))
        some = sd > 16 * _EPS * np.abs(mean)
        scale = sd if standardize else np.ones_like(sd)
        per_unit = np.divide(1.0, scale, out=np.zeros_like(sd), where=some)
        left, size, right = thin_svd(apart * per_unit)
        kept = size > 8 * max(offsets.shape) * _EPS * size.max(initial=0.0)
        return cls(left[:, kept] * size[kept], right[kept].T * per_unit[:, None], mean)

    def coefficients(self, gamma: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """(d, m) coefficients and (m,) intercepts for offsets, of gamma (r, m) and theirs."""
        coef = self.axes @ gamma
        return coef, intercept - self.mean @ coef
