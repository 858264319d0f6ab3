"""Bayesian logistic regression by the Laplace approximation (Bishop 2006, 3.5, 4.4 and 4.5).

The n slopes theta of standardised columns have independent normal priors with mean 0 and the same
precision; intercepts have a flat prior. With L the summed loss, the posterior is approximated by a
normal distribution at its mode:

    mode          argmin  L(theta) + precision / 2 |theta|^2
    covariance    A^-1,   A = L''(mode) + precision Q       Q: 1 for slopes, 0 for the f intercepts

The evidence for the precision, which is the integral of the likelihood times the prior, is
approximated by

    log evidence = -L(mode) - precision / 2 |mode|^2  +  n/2 log precision  -  log det A / 2
                   + f/2 log 2 pi

A search over log precision maximises the evidence; every evaluation is a fit that starts from the
previous fit. The flat prior of the intercepts has density 1, so the evidences of two models are
comparable if both have the same intercepts.

A prediction integrates over the posterior. The score of a row, s = z'theta, is normal with mean a
and variance v = z'A^-1 z. The integral of the logistic function over this distribution has no
formula; it is approximated by the integral of a probit function (MacKay 1992):

    p = 1 / (1 + exp(-a / sqrt(1 + pi v / 8)))

With K > 2 classes the scores of all classes are divided by their own sqrt(1 + pi v_k / 8) before
the softmax (Gibbs 1997).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, eigh, solve_triangular
from scipy.optimize import minimize_scalar

from discriminant.models.linear.penalty_path import PathProblem, PathSolver, null_fits
from discriminant.moments.anchor import Anchor
from discriminant.table.blocks import Features, Floats

_RANGE = 1e-6, 1e8  # precisions among which the evidence is maximised
_TOLERANCE = 1e-6  # tolerance of log precision


@dataclass(frozen=True, slots=True, eq=False)
class LaplaceFit:
    """Normal approximation of the posterior of theta (coefficients of standardised columns)."""

    theta: Floats  # (q, m) mode
    precision: float
    log_evidence: float
    effective: float  # number of slopes that the rows determine: n - precision tr(A^-1 Q)
    root: Floats  # (m, q, m q) R with A^-1 = R R'; theta is stacked by columns
    converged: bool


def fit_laplace(problem: PathProblem, free: int, precision: float | None) -> LaplaceFit:
    """Fit the approximation; if `precision` is None, it is chosen to maximise the evidence.

    Parameters
    ----------
    problem
        Problem with a single fit to all rows, and a ridge of one for every slope.
    free
        Number of leading columns that are intercepts.
    precision
        Precision of the prior.
    """
    solver = PathSolver(problem, null_fits(problem, free))
    total = float(problem.totals[-1])

    def negative_evidence(log_precision: float) -> float:
        value = float(np.exp(log_precision))
        solver.recent = []  # evaluations are not in order, so they are not extrapolated
        theta = solver.fit(value / total, exact=True)[0]
        return -_log_evidence(problem, theta, free, value)

    if precision is None:
        low, high = (float(np.log(bound)) for bound in _RANGE)
        search = minimize_scalar(
            negative_evidence, bounds=(low, high), method="bounded", options={"xatol": _TOLERANCE}
        )
        precision = float(np.exp(search.x))
    log_evidence = -negative_evidence(float(np.log(precision)))
    theta = solver.theta[0]
    q, m = theta.shape
    matrix = _posterior_curvature(problem, theta, precision)
    root = _inverse_root(matrix)
    slopes = root.reshape(m, q, m * q)[:, free:]
    trace = float((problem.ridge[-1, free:, None] * (slopes * slopes).sum(axis=0)).sum())
    effective = m * (q - free) - precision * trace
    unfinished = solver.unfinished > 0
    return LaplaceFit(
        theta.copy(),
        precision,
        log_evidence,
        effective,
        root.reshape(m, q, m * q),
        converged=not unfinished,
    )


def _posterior_curvature(problem: PathProblem, theta: Floats, precision: float) -> Floats:
    """Return the posterior precision matrix of the coefficients, (m q, m q)."""
    total, m = float(problem.totals[-1]), theta.shape[1]
    curvature = total * problem.curvature_without(theta, len(problem.totals) - 1)
    return curvature + np.kron(np.eye(m), np.diag(precision * problem.ridge[-1]))


def _log_evidence(problem: PathProblem, theta: Floats, free: int, precision: float) -> float:
    total = float(problem.totals[-1])
    q, m = theta.shape
    penalised = total * problem.value(theta, len(problem.totals) - 1, precision / total)
    factor = _inverse_root(_posterior_curvature(problem, theta, precision))
    half_logdet = -float(np.linalg.slogdet(factor)[1])  # log det A / 2
    slopes, intercepts = m * (q - free), m * free
    return float(
        -penalised
        + 0.5 * slopes * float(np.log(precision))
        - half_logdet
        + 0.5 * intercepts * float(np.log(2.0 * np.pi))
    )


def _inverse_root(matrix: Floats) -> Floats:
    """Return a root R of the inverse of a matrix A: R R' = A^-1."""
    try:
        factor, _ = cho_factor(matrix, lower=True)
        return np.asarray(solve_triangular(factor, np.eye(len(matrix)), lower=True, trans="N").T)
    except LinAlgError:
        values, vectors = eigh(matrix)
        least = 1e-14 * max(float(values[-1]), 1e-300)
        return np.asarray(vectors / np.sqrt(np.maximum(values, least)))


@dataclass(frozen=True, slots=True, eq=False)
class ScoreVariance:
    """Posterior variance of the scores of a row, as a function of its features."""

    anchor: Anchor
    root: (
        Floats  # (s, d + 1, r) maps offsets, and 1, to vectors whose squared lengths are variances
    )

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of the variances are invalid, or None."""
        root, width = parts["root"], len(parts["anchor"].origin)
        if root.ndim != 3 or root.shape[1] != width + 1:
            return f"root has shape {root.shape} for {width} features"
        return None

    def variances(self, features: Features) -> Floats:
        """Return the (n, s) variances of the scores: s is 1 for two classes, otherwise K."""
        offsets = self.anchor.offsets(features)
        vectors = [offsets @ part[:-1] + part[-1] for part in self.root]
        return np.column_stack([np.vecdot(each, each) for each in vectors])

    def moderate(self, scores: Floats, features: Features) -> Floats:
        """Return scores divided by sqrt(1 + pi v / 8), where v is the variance of the score."""
        return np.asarray(scores / np.sqrt(1.0 + 0.125 * np.pi * self.variances(features)))
