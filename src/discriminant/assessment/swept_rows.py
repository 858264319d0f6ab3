"""Rows swept along with a covariance: what every feature adds to the distance of every row.

With S the chosen features, C a covariance, x a row and m a mean, about any origin, sweeping on a
feature p makes

    C_ij - C_ip C_pj / C_pp,   C_ip / C_pp,   C_pp -> -1 / C_pp         x and m as rows of C

so that outside of S x_j is what is left of feature j when it is regressed on S, and within S it is
the j-th number of C_S^-1 x. In both cases entering or leaving j changes a squared distance and a
log determinant by

    (x_j - m_j)^2 / C_jj         log |C_jj|                              C_jj < 0 within S

One turn costs N d operations, a rank-one update by BLAS; a model is never solved for.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

from discriminant.assessment.judging import Mask
from discriminant.assessment.standard import solid
from discriminant.assessment.sweeping import sweep
from discriminant.errors import InferenceError
from discriminant.table.schema import Floats


class SweptRows:
    """A covariance, some means and some rows, and which features they are swept on."""

    def __init__(self, within: Floats, means: Floats, rows: Floats) -> None:
        self.within = within  # (d, d)
        self.means = means  # (g, d)
        self.rows = rows  # (d, n), those of a feature side by side
        self.first = np.diagonal(within).copy()  # (d,)

    def turn(self, place: int, *, back: bool) -> None:
        """Sweep on a feature, which enters, or goes `back` out."""
        pivot = self.within[place, place]
        slope = self.within[place] / pivot
        line, mean = self.rows[place].copy(), self.means[:, place].copy()
        blas.dger(-1.0, line, slope, a=self.rows.T, overwrite_a=1)
        self.means -= np.multiply.outer(mean, slope)
        sign = -pivot if back else pivot
        self.rows[place], self.means[:, place] = line / sign, mean / sign
        sweep(self.within, place, back=back)

    def fill(self, features: tuple[str, ...], rows: float, classes: int) -> float:
        """Sweep on all features at once; the log determinant. Names those that depend on others."""
        d = len(self.first)
        if rows - classes < d:
            raise InferenceError.too_wide(_BACKWARD, rows, classes, d)
        sd = np.sqrt(self.first)
        solid(self.within / sd[:, None] / sd, features, _BACKWARD)
        low, _ = lapack.dpotrf(self.within, lower=True)
        inverse, _ = lapack.dpotri(low, lower=True)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        self.rows, self.means = np.dot(inverse, self.rows), np.dot(self.means, inverse)
        self.within = -inverse
        return 2.0 * float(np.log(np.diagonal(low)).sum())

    def spent(self, tolerance: float) -> Mask:
        """(d,) features of which less than `tolerance` is left; of those chosen nothing is said."""
        return np.asarray(np.diagonal(self.within) < tolerance * self.first)


_BACKWARD = "Backward selection"
