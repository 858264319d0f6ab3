"""Contributions of single rows to a likelihood fit, and robust covariances from them.

Row i has the coordinates z_i, the gradient g_i of its loss with respect to theta, and, if there is
one score, the weight c_i of Fisher scoring. With H the summed curvature, the sandwich estimate is

    H^-1 M H^-1                M = sum_i a_i g_i g_i'

    HC0   a_i = 1                         HC2   a_i = 1 / (1 - h_i)
    HC1   a_i = n / (n - P)               HC3   a_i = 1 / (1 - h_i)^2

with the leverage h_i = c_i z_i' H^-1 z_i (Zeileis 2004, 2006). For clusters, M is the sum over
clusters of G G', with G the sum of g_i in a cluster, times C / (C - 1) for C clusters, as in R's
`vcovCL` and Stata.

M is factorised, M = R'R, by a QR decomposition of the rows, so that it is never formed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from discriminant.assessment.inference.coefficient_summary import Inference
from discriminant.assessment.inference.profile_likelihood import LikelihoodMaximum
from discriminant.errors import InferenceError, OptionError, ShapeError
from discriminant.models.linear.preconditioning import Coordinates
from discriminant.moments.anchor import Anchor
from discriminant.moments.glm_families import Deviance, RowDerivatives
from discriminant.posterior import posterior
from discriminant.table.blocks import Floats, Places
from discriminant.table.labels import encode_labels
from discriminant.table.memory import Table

COVARIANCES = ("HC0", "HC1", "HC2", "HC3", "cluster")


@dataclass(frozen=True, slots=True, eq=False)
class RowTerms:
    """Coordinates and derivatives of the rows at the maximum of the likelihood."""

    z: Floats  # (n, q)
    weight: Floats  # (n,) sample weights
    gradient: Floats  # (n, P) derivative of the weighted loss by theta, stacked by columns
    curvature: Floats  # (P, P) of the summed loss
    score: Floats | None = None  # (n,) with the offset; None if there are several scores
    response: Floats | None = None  # (n,) None if there are several scores
    row: RowDerivatives | None = None  # without weights; None if there are several scores

    @property
    def count(self) -> int:
        """Number of rows of positive weight."""
        return int(np.count_nonzero(self.weight))

    @property
    def leverage(self) -> Floats:
        """Leverages (n,): the diagonal of the hat matrix."""
        if self.row is None:
            raise InferenceError.not_single("Leverages")
        lower = np.linalg.cholesky(self.curvature)
        white = solve_triangular(lower, self.z.T, lower=True)
        weighted: Floats = self.weight * self.row.curvature
        return np.asarray(weighted * np.einsum("qn,qn->n", white, white))


def row_terms(
    peak: LikelihoodMaximum,
    table: Table,
    *,
    anchor: Anchor,
    coordinates: Coordinates,
    deviance: Deviance | None,
) -> RowTerms:
    """Return the terms of all rows of a table in memory.

    Without `deviance`, the loss is the softmax loss of the class codes. Without responses, the
    response of a row is its class code.
    """
    frame, theta = coordinates.frame, peak.theta
    z = anchor.offsets(table.features[:]) @ frame[:-1] + frame[-1]
    weight = np.ones(len(table)) if table.weight is None else table.weight
    assert peak.point.curvature is not None
    curvature = peak.point.curvature * (peak.point.slope.weight * peak.unit)
    if deviance is None:
        assert coordinates.contrast is not None
        slope = posterior(z @ theta @ coordinates.contrast.T)
        slope[np.arange(len(z)), table.codes] -= 1.0
        slope = (slope @ coordinates.contrast) * weight[:, None]
        gradient = (slope[:, :, None] * z[:, None, :]).reshape(len(z), -1)
        return RowTerms(z, weight, gradient, curvature)
    columns = table.codes[:, None] if table.responses is None else table.responses
    response = columns[:, 0].astype(np.float64)
    score = z @ theta[:, 0] + (columns[:, 1] if columns.shape[1] > 1 else 0.0)
    row = deviance.rows(score, response)
    gradient = (weight * row.slope)[:, None] * z
    return RowTerms(z, weight, gradient, curvature, score, response, row)


def robust_inference(
    inference: Inference, terms: RowTerms, *, kind: str, groups: Any = None
) -> Inference:
    """Return the same estimates with robust standard errors, tests and intervals.

    Parameters
    ----------
    inference : Inference
        Estimates of the fit.
    terms : RowTerms
        Terms of the rows of the fit.
    kind : str
        One of `COVARIANCES`.
    groups : array of shape (n,), optional
        Cluster of each row, for kind 'cluster'.
    """
    gradient, P = terms.gradient, len(terms.curvature)
    if kind == "cluster":
        codes = _clusters(groups, len(terms.weight))
        codes = codes[terms.weight > 0]
        clusters = len(np.unique(codes))
        if clusters < 2:
            raise InferenceError.one_cluster()
        sums = np.zeros((int(codes.max()) + 1, P))
        np.add.at(sums, codes, gradient[terms.weight > 0])
        gradient = sums * np.sqrt(clusters / (clusters - 1.0))
    elif kind == "HC1":
        n = terms.count
        if n <= P:
            raise InferenceError.too_few_for_hc1(n, P)
        gradient = gradient * np.sqrt(n / (n - P))
    elif kind in ("HC2", "HC3"):
        rest = np.maximum(1.0 - terms.leverage, np.finfo(np.float64).eps)
        gradient = gradient / (np.sqrt(rest) if kind == "HC2" else rest)[:, None]
    upper = np.linalg.qr(gradient, mode="r")
    bread = cho_solve(cho_factor(terms.curvature), inference.directions.T)
    root = upper @ bread / np.sqrt(inference.likelihood.dispersion)
    root[:, np.isnan(inference.root).any(axis=0)] = np.nan
    return replace(inference, root=np.asarray(root), errors=kind)


def _clusters(groups: Any, rows: int) -> Places:
    """Return the number of the cluster of each row."""
    if groups is None:
        raise OptionError.of("groups", None, "the cluster of each row, for cov='cluster'")
    _, codes = encode_labels(groups)
    if len(codes) != rows:
        raise ShapeError.of_lengths("groups", len(codes), rows)
    return codes.astype(np.intp)
