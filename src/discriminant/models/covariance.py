"""Scatters to covariances: denominators, pooling, shrinkage and its targets.

    unbiased     W / (n - K)             W_k / (n_k - 1)           weights count rows
    reliability  W / sum(n_k - q_k/n_k)  W_k / (n_k - q_k/n_k)     q_k the sum of squared weights
    ml           W / n                   W_k / n_k

    S(s) = (1 - s) S + s T,   T = diag S, or (tr S / d) I, or I

Priors never come in here. A best s by Ledoit and Wolf (2004, "A well-conditioned estimator for
large-dimensional covariance matrices", eq. 14) or by OAS (Chen et al. 2010, eq. 23) follows from
sums: see `ledoit_wolf` and `oas`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from discriminant.errors import MomentsMismatchError, WeightError
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.schema import Floats

Denominator = Literal["unbiased", "reliability", "ml"]
Target = Literal["diagonal", "scaled_identity", "identity"]
Best = Literal["auto", "oas"]
Shrinkage = float | Best
DENOMINATORS = ("unbiased", "reliability", "ml")
TARGETS = ("diagonal", "scaled_identity", "identity")
_EPS = float(np.finfo(np.float64).eps)


def class_degrees(moments: ClassMoments, denominator: Denominator) -> Floats:
    """(K,) what each class scatter is divided by; zero or less where a class is too light."""
    weight = moments.weight
    if denominator == "ml":
        return weight
    if denominator == "unbiased":
        return weight - 1.0
    squares = np.divide(moments.weight2, weight, out=np.zeros_like(weight), where=weight > 0)
    return weight - squares


def pooled_degrees(moments: ClassMoments, denominator: Denominator) -> float:
    """What the pooled scatter is divided by; the rounding of the weights is no degree."""
    total = float(class_degrees(moments, denominator)[moments.weight > 0].sum())
    weight = float(moments.weight.sum())
    if total <= 64 * _EPS * weight:
        raise WeightError.too_light(weight, int((moments.weight > 0).sum()))
    return total


def pooled_covariance(moments: ClassMoments, denominator: Denominator = "unbiased") -> Floats:
    """(d, d) within-class covariance in units of the anchor; (d,) from diagonal moments."""
    return np.asarray(moments.pooled / pooled_degrees(moments, denominator))


def class_covariances(moments: ClassMoments, denominator: Denominator = "unbiased") -> Floats:
    """(K, d, d) covariance of each class, all heavy enough to have one, in units of the anchor."""
    if not moments.holds("class"):
        raise MomentsMismatchError.needs_detail(
            "A covariance for each class", "class", moments.detail
        )
    return np.asarray(moments.scatter / class_degrees(moments, denominator)[:, None, None])


def shrink(covariance: Floats, amount: float | Floats, target: Target, unit: Floats) -> Floats:
    """(1 - amount) covariance + amount target; one matrix (d, d), or K and perhaps K amounts."""
    if not np.any(amount):
        return covariance
    diagonal = np.diagonal(covariance, axis1=-2, axis2=-1)
    each = np.asarray(amount)[..., None]
    shrunk = (1.0 - each[..., None]) * covariance
    d = np.arange(diagonal.shape[-1])
    shrunk[..., d, d] += each * target_diagonal(diagonal, target, unit)
    return shrunk


def target_diagonal(diagonal: Floats, target: Target, unit: Floats) -> Floats:
    """The diagonal of the target, in units of the anchor."""
    if target == "diagonal":
        return diagonal
    relative = (unit / unit.max()) ** 2
    if target == "identity":
        return np.broadcast_to(1.0 / unit**2, diagonal.shape)
    average = (diagonal * relative).mean(axis=-1, keepdims=True)
    return np.asarray(average / relative)


def best_shrinkage(moments: ClassMoments, rule: Best, target: Target) -> float:
    """Shrinkage of the pooled covariance that is best by Ledoit and Wolf ('auto') or OAS."""
    fourth = None if moments.fourth is None else moments.fourth.sum(axis=0)
    return _best(moments, moments.pooled, float(moments.weight.sum()), fourth, rule, target)


def best_shrinkages(moments: ClassMoments, rule: Best, target: Target) -> Floats:
    """(K,) best shrinkage of the covariance of each class, from its own rows."""
    fourth = [None] * len(moments.labels) if moments.fourth is None else moments.fourth
    each = zip(moments.scatter, moments.weight.tolist(), fourth, strict=True)
    return np.array([_best(moments, *of_class, rule, target) for of_class in each])


def _best(
    moments: ClassMoments,
    scatter: Floats,
    weight: float,
    fourth: Floats | None,
    rule: Best,
    target: Target,
) -> float:
    if scatter.ndim == 1:
        raise MomentsMismatchError.needs_detail("A best shrinkage", "pooled", moments.detail)
    scale = shrinking_scale(np.diagonal(scatter) / weight, target, moments.anchor.unit)
    within = scatter / weight / scale[:, None] / scale
    if rule == "oas":
        return oas(*size_of(within), weight)
    if fourth is None:
        raise MomentsMismatchError.needs_detail(
            "shrinkage='auto' (Ledoit and Wolf)", "fourth", moments.detail
        )
    lengths = float((fourth / scale[:, None] ** 2 / scale**2).sum())
    return ledoit_wolf(*size_of(within), weight, lengths)


def size_of(covariance: Floats) -> tuple[float, float, int]:
    """All that a best shrinkage asks of a covariance: |S|^2, tr S and d."""
    return float((covariance**2).sum()), float(np.trace(covariance)), len(covariance)


def ledoit_wolf(squares: float, trace: float, d: int, weight: float, fourth: float) -> float:
    """Best shrinkage toward (tr S / d) I; `fourth` is the sum over rows of |z|^4.

    beta = (fourth / n - |S|^2) / (n d),  delta = (|S|^2 - tr(S)^2 / d) / d,  min(beta, delta)/delta
    """
    beta = (fourth / weight - squares) / (weight * d)
    delta = (squares - trace**2 / d) / d
    return 1.0 if delta <= 0 else float(np.clip(beta / delta, 0.0, 1.0))


def oas(squares: float, trace: float, d: int, weight: float) -> float:
    """Oracle-approximating shrinkage toward (tr S / d) I, for Gaussian rows."""
    alpha = squares / d**2
    mu2 = (trace / d) ** 2
    below = (weight + 1.0) * (alpha - mu2 / d)
    return 1.0 if below <= 0 else min((alpha + mu2) / below, 1.0)


def shrinking_scale(variance: Floats, target: Target, unit: Floats) -> Floats:
    """What columns are divided by: toward the diagonal is toward I once they are standardised."""
    if target == "diagonal":
        sd = np.sqrt(variance)
        return np.asarray(np.where(sd > 0, sd, 1.0))
    return np.asarray(unit.max() / unit)
