"""Influence of single rows on a fit with one score: leverage, Cook's distance and dfbetas.

Let H be the curvature, z_i the coordinates of row i, c_i its weight in Fisher scoring, r_i its
Pearson residual and d_i its deviance residual. As in R's `influence.measures` of a `glm`:

    leverage        h_i = c_i z_i' H^-1 z_i
    Cook            D_i = r_i^2 h_i / ((1 - h_i)^2 P dispersion)
    dfbeta          H^-1 z_i sqrt(c_i) d_i / (1 - h_i)
    dfbetas         dfbeta_j / (s_(i) sqrt((H^-1)_jj))
    s_(i)^2         (sum d^2 - d_i^2 / (1 - h_i)) / (n - P - 1)

These are one-step approximations to the results of refits without the row (Pregibon 1981). They are
exact for a Gaussian response with identity link.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from discriminant.assessment.inference.coefficient_summary import Inference
from discriminant.assessment.inference.row_terms import RowTerms
from discriminant.assessment.printed_results import PrintedResult, format_number, text_table
from discriminant.table.blocks import Floats
from discriminant.table.column_cells import import_pandas

_SHOWN = 10  # rows in the text


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Influence(PrintedResult):
    """Influence of each of n rows on p estimates."""

    title: str
    names: tuple[str, ...]  # p estimates
    leverage: Floats  # (n,)
    cooks_distance: Floats  # (n,)
    dfbetas: Floats  # (n, p) change of each estimate without the row, in standard errors
    pearson: Floats  # (n,) residuals
    deviance: Floats  # (n,) residuals

    @property
    def text(self) -> str:
        """The rows with the largest Cook's distances."""
        order = np.argsort(-self.cooks_distance, kind="stable")[:_SHOWN]
        values = [self.leverage, self.cooks_distance, self.pearson, self.deviance]
        rows = [[str(i), *(format_number(float(each[i]), 4) for each in values)] for i in order]
        head = ["row", "leverage", "Cook's D", "Pearson", "deviance"]
        title = f"{self.title}: rows by Cook's distance ({len(order)} of {len(self.leverage)})"
        return "\n".join(text_table(title, head, rows))

    def to_dict(self) -> dict[str, Any]:
        """Return the measures as a dictionary of lists."""
        return {
            "names": list(self.names),
            "leverage": self.leverage.tolist(),
            "cooks_distance": self.cooks_distance.tolist(),
            "dfbetas": self.dfbetas.tolist(),
            "pearson": self.pearson.tolist(),
            "deviance": self.deviance.tolist(),
        }

    def frame(self) -> Any:
        """Return a pandas frame with a row for each row of the fit."""
        columns = {
            "leverage": self.leverage,
            "cooks_distance": self.cooks_distance,
            "pearson": self.pearson,
            "deviance": self.deviance,
        }
        columns |= {f"dfbetas {n}": self.dfbetas[:, j] for j, n in enumerate(self.names)}
        return import_pandas().DataFrame(columns).rename_axis("row")


def influence(inference: Inference, terms: RowTerms, *, decreasing: bool) -> Influence:
    """Return the influence of each row.

    `decreasing` says whether the mean decreases with the score, as for the inverse link.
    """
    h = terms.leverage
    assert terms.row is not None and terms.score is not None and terms.response is not None
    loss, slope, curvature = terms.row
    n, P, dispersion = terms.count, len(terms.curvature), inference.likelihood.dispersion
    sign = -np.sign(slope)
    deviance = sign * np.sqrt(np.maximum(2.0 * terms.weight * loss, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        pearson = np.where(curvature > 0, -slope * np.sqrt(terms.weight / curvature), 0.0)
        rest = 1.0 - h
        cook = (pearson / rest) ** 2 * h / (P * dispersion)
        without = (float(deviance @ deviance) - deviance**2 / rest) / (n - P - 1)
        step = cho_solve(cho_factor(terms.curvature), terms.z.T)
        change = np.sqrt(terms.weight * curvature) * deviance / rest
        length = np.sqrt(np.einsum("ip,ip->p", inference.root, inference.root))
        dfbetas = (inference.directions @ step) * change / np.sqrt(without) / length[:, None]
    direction = -1.0 if decreasing else 1.0
    return Influence(
        inference.title,
        inference.names,
        h,
        cook,
        dfbetas.T,
        direction * pearson,
        direction * deviance,
    )
