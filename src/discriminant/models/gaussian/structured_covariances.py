"""Structured class covariances: diagonal, spherical, factor-analytic, or shared by groups.

The covariance C_k of class k is its scatter divided by its degrees of freedom. Classes of one group
g share C_g, the sum of their scatters divided by the sum of their degrees of freedom. Then one of
these structures is estimated from C_k or C_g:

    full        C
    diagonal    diag C
    spherical   (tr C / d) I
    factor      L L' + diag(psi) with L of shape (d, m): the maximum likelihood estimate

All structures are computed from class moments. For the formulas of factor analysis see
`maximise_factors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy.linalg import eigh

from discriminant.errors import NotConvergedWarning, OptionError, warn
from discriminant.models.gaussian.covariance import Denominator, class_degrees, target_diagonal
from discriminant.moments.class_moments import ClassMoments, find_labels
from discriminant.table.blocks import Floats, Labels, Places

Structure = Literal["full", "diagonal", "spherical", "factor"]
STRUCTURES: tuple[Structure, ...] = ("full", "diagonal", "spherical", "factor")
DIAGONAL_STRUCTURES: tuple[Structure, ...] = ("diagonal", "spherical")  # without covariances
LEAST_SPECIFIC = 0.005  # smallest psi of a standardised feature, as in R's factanal
_MAX_STEPS = 2000
_SHORT_STEPS = 15  # steps from every start
_MOST_STARTS = 20


def group_numbers(labels: Labels, groups: Sequence[Sequence[Any]]) -> Places:
    """Return the (K,) group numbers of the classes; a class in no group is a group by itself.

    Raise an error if a group has an unknown label, or if a label is named more than once.
    """
    numbers = np.arange(len(labels))
    names = [label for group in groups for label in group]
    if len(set(names)) < len(names):
        raise OptionError.of("groups", groups, "lists in which each label occurs once")
    for group in groups:
        members = find_labels(labels, group)
        numbers[members] = members.min(initial=len(labels))
    return np.asarray(np.unique(numbers, return_inverse=True)[1].ravel())


def group_degrees(
    moments: ClassMoments, groups: Sequence[Sequence[Any]], denominator: Denominator
) -> Floats:
    """Return a (K,) array: for each class, the degrees of freedom of its group's covariance."""
    number = group_numbers(moments.labels, groups)
    return np.asarray(np.bincount(number, class_degrees(moments, denominator))[number])


def structured_covariances(
    moments: ClassMoments,
    structure: Structure,
    *,
    groups: Sequence[Sequence[Any]],
    factors: int,
    denominator: Denominator,
) -> Floats:
    """Return the class covariances of the offsets `(x - origin) / unit`.

    The shape is (K, d, d), or (K, d) for diagonal and spherical covariances.
    """
    number = group_numbers(moments.labels, groups)
    scatter = moments.scatter
    if structure in DIAGONAL_STRUCTURES:
        scatter = moments.diagonal(scatter)
    shared = np.zeros((number.max() + 1, *scatter.shape[1:]))
    np.add.at(shared, number, scatter)
    degrees = np.bincount(number, class_degrees(moments, denominator))
    shared /= degrees.reshape(-1, *[1] * (shared.ndim - 1))
    if structure == "spherical":
        shared = target_diagonal(shared, "scaled_identity", moments.anchor.unit)
    elif structure == "factor":
        shared = np.array([factor_covariance(each, factors) for each in shared])
    return np.asarray(shared[number])


def factor_covariance(covariance: Floats, factors: int) -> Floats:
    """Return the covariance estimated by maximum likelihood factor analysis.

    It is L L' + diag(psi), with L the loadings and psi the specific variances. Features without
    variance keep variance zero. All other features are standardised first, which does not change
    the estimate.
    """
    variance = np.diagonal(covariance)
    varying = np.flatnonzero(variance > 0)
    result = np.zeros_like(covariance)
    if not len(varying):
        return result
    sd = np.sqrt(variance[varying])
    standard = covariance[np.ix_(varying, varying)] / sd[:, None] / sd
    loadings, specific = maximise_factors(standard, factors)
    fitted = loadings @ loadings.T
    fitted[np.diag_indices_from(fitted)] += specific
    result[np.ix_(varying, varying)] = fitted * sd[:, None] * sd
    return result


def maximise_factors(correlation: Floats, factors: int) -> tuple[Floats, Floats]:
    """Return the maximum likelihood loadings L (d, m) and specific variances psi (d,).

    For given psi, let theta_j be the eigenvalues, in descending order, and u_j the eigenvectors of
    psi^-1/2 R psi^-1/2 for a correlation matrix R. The best loadings are then (Joreskog 1967)

        L = psi^1/2 [u_1 ... u_m] diag(v_j - 1)^1/2,    v_j = max(theta_j, 1); v_j = 1 for j > m

    and with S = L L' + diag(psi) the function to be minimised is

        f(psi) = log |S| + tr(S^-1 R) = sum_j (log psi_j + log v_j + theta_j / v_j)
        df / d log psi_i = sum_j u_ij^2 (1 / v_j - theta_j / v_j^2)

    psi_j is at least `LEAST_SPECIFIC`, because f may have no minimum otherwise (Heywood cases).
    """
    from scipy.optimize import minimize

    d = len(correlation)
    m = min(factors, d)

    def decompose(logs: Floats) -> tuple[Floats, Floats, Floats]:
        root = np.exp(-0.5 * logs)
        theta, vectors = eigh(correlation * root[:, None] * root)
        theta, vectors = theta[::-1], vectors[:, ::-1]
        v = np.ones(d)
        v[:m] = np.maximum(theta[:m], 1.0)
        return theta, vectors, v

    def value(logs: Floats) -> tuple[float, Floats]:
        theta, vectors, v = decompose(logs)
        total = float(logs.sum() + np.log(v).sum() + (theta / v).sum())
        return total, np.asarray(vectors**2 @ (1.0 / v - theta / v**2))

    bounds = [(float(np.log(LEAST_SPECIFIC)), 0.0)] * d

    def minimise(logs: Floats, steps: int) -> Any:
        options: Any = {"maxiter": steps, "maxfun": 10 * steps, "ftol": 0.0, "gtol": 1e-10}
        return minimize(value, logs, jac=True, method="L-BFGS-B", bounds=bounds, options=options)

    # f has local minima: a few steps from every start, and all steps from the best two.
    trials = [minimise(np.log(start), _SHORT_STEPS) for start in _starts(correlation, m)]
    trials.sort(key=lambda trial: float(trial.fun))
    result = min((minimise(each.x, _MAX_STEPS) for each in trials[:2]), key=lambda each: each.fun)
    if result.nit >= _MAX_STEPS:
        warn(NotConvergedWarning.of_factors(_MAX_STEPS, m))
    _, vectors, v = decompose(result.x)
    specific = np.exp(result.x)
    loadings = np.sqrt(specific)[:, None] * vectors[:, :m] * np.sqrt(v[:m] - 1.0)
    return loadings, specific


def _starts(correlation: Floats, factors: int) -> list[Floats]:
    """Return specific variances (d,) to start from.

    The first starting values are those of R's factanal: for each feature, a share of the variance
    that the other features do not explain. Every other start has a factor along one of the features
    with the largest correlations.
    """
    d = len(correlation)
    unexplained = 1.0 / np.diagonal(np.linalg.pinv(correlation, hermitian=True))
    starts = [(1.0 - 0.5 * factors / d) * unexplained, np.full(d, 0.5)]
    for j in np.argsort(-(correlation**2).sum(axis=0), kind="stable")[:_MOST_STARTS]:
        starts.append(np.where(np.arange(d) == j, 0.05, 0.9))
    return [np.clip(start, LEAST_SPECIFIC, 1.0) for start in starts]
