"""The Gaussian family: LDA, QDA and what lies between them, as one function of the moments.

    S_k = (1 - pooling) C_k + pooling C(shrinkage)          shrink="pooled" (lecture 3's table)
    S_k = [(1 - pooling) C_k + pooling C](shrinkage)        shrink="mixed" (klaR, scikit-learn)

with C the pooled covariance and C_k that of class k. pooling=1 is linear (LDA), pooling=0 is QDA.
With weighting="friedman" (Friedman 1989) scatters and weights are mixed instead of covariances:
[(1 - pooling) W_k + pooling W] / [(1 - pooling) n_k + pooling n].

Priors are validated here, and rows with missing features are scored by the features they have
(`scores_with_missing`).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.errors import (
    DiscriminantWarning,
    LabelError,
    OptionError,
    PriorError,
    TooFewRowsError,
    WeightError,
)
from discriminant.models.gaussian.covariance import (
    Denominator,
    Metric,
    Shrinkage,
    Target,
    best_shrinkage,
    best_shrinkages,
    class_covariances,
    class_degrees,
    class_metric,
    diagonal_metric,
    floor_variances,
    pooled_covariance,
    pooled_degrees,
    shared_metric,
    shrink,
    target_diagonal,
)
from discriminant.models.rules import LinearRule, QuadraticRule
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.stored_rows import ClassRows
from discriminant.table.blocks import Floats, Labels, Places


@dataclass(frozen=True, slots=True)
class GaussianFamily:
    """Covariance structure of Gaussian classes: pooling, shrinkage and denominator."""

    pooling: float = 1.0
    shrinkage: Shrinkage = 0.0
    target: Target = "diagonal"
    denominator: Denominator = "unbiased"
    shrink: Literal["pooled", "mixed"] = "pooled"
    weighting: Literal["covariance", "friedman"] = "covariance"

    @property
    def linear(self) -> bool:
        """Whether all classes share one covariance."""
        return self.pooling == 1.0

    @property
    def shrinks_mixture(self) -> bool:
        """Whether the covariance of each class is shrunk after mixing, and not the pooled one."""
        return self.shrink == "mixed" or self.weighting == "friedman"


def class_prior(
    moments: ClassMoments | ClassRows, prior: npt.ArrayLike | Mapping[Any, Any] | None
) -> Floats:
    """(K,) validated prior; None is the share of each class in the total weight."""
    if prior is None:
        for k in np.flatnonzero(moments.weight <= 0):
            raise WeightError.zero_class(moments.labels[k])
        return np.asarray(moments.weight / moments.weight.sum())
    return validate_prior(prior, moments.labels)


def validate_prior(prior: npt.ArrayLike | Mapping[Any, Any], labels: Labels) -> Floats:
    """(K,) a positive prior for each label, normalised to a sum of one.

    `prior`: in the order of the labels, or by label.
    """
    if isinstance(prior, Mapping):
        prior = _by_label(prior, labels.tolist())
    try:
        values = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError):
        kind = f"of type {type(prior).__name__}"
        raise PriorError.not_numbers(kind, labels.tolist()) from None
    if values.shape != labels.shape:
        raise PriorError.of_length(values.size, labels.tolist())
    for k in np.flatnonzero(~(np.isfinite(values) & (values > 0))):
        raise PriorError.of_class(labels[k], float(values[k]))
    if abs(values.sum() - 1.0) > 1e-6:
        raise PriorError.of_sum(float(values.sum()))
    return np.asarray(values / values.sum())


def _by_label(prior: Mapping[Any, Any], labels: list[Any]) -> list[Any]:
    unknown = [label for label in prior if label not in labels]
    if unknown:
        raise LabelError.unknown(unknown, labels)
    missing = [label for label in labels if label not in prior]
    if missing:
        raise PriorError.of_missing(missing, labels)
    return [prior[label] for label in labels]


def fit_gaussian(
    moments: ClassMoments, *, family: GaussianFamily, prior: Floats
) -> LinearRule | QuadraticRule:
    """Rule of Gaussian classes whose covariances are those of the family.

    Examples
    --------
    >>> from discriminant.engines.dispatch import moments
    >>> found = moments([[0.0], [2.0], [4.0], [6.0]], ["a", "a", "b", "b"])
    >>> rule = fit_gaussian(found, family=GaussianFamily(), prior=np.array([0.5, 0.5]))
    >>> scores = rule.scores(np.array([[3.0]]))  # half way: a tie
    >>> bool(abs(scores[0, 0] - scores[0, 1]) < 1e-12)
    True
    """
    check_classes(moments)
    if family.linear:
        return linear_rule(moments, metric=pooled_metric(moments, family), prior=prior)
    return quadratic_rule(moments, metrics=class_metrics(moments, family), prior=prior)


def check_classes(moments: ClassMoments) -> None:
    """Raise unless there are two or more classes, each with weight, and more rows than classes."""
    if len(moments.labels) < 2:
        raise LabelError.one_class(moments.labels[0] if len(moments.labels) else "none")
    for k in np.flatnonzero(moments.weight <= 0):
        raise WeightError.zero_class(moments.labels[k])
    if moments.rows.sum() <= len(moments.labels):
        raise TooFewRowsError.of_table(
            int(moments.rows.sum()), len(moments.labels), "a within-class covariance"
        )


def check_rows_per_class(moments: ClassMoments, denominator: Denominator) -> None:
    """Raise unless every class has enough weight for a covariance of its own."""
    for k in np.flatnonzero(class_degrees(moments, denominator) <= 0):
        if moments.rows[k] > 1:
            raise WeightError.denominator_not_positive(float(moments.weight[k]), 1)
        raise TooFewRowsError.of_class(
            moments.labels[k], int(moments.rows[k]), 2, "a covariance of its own"
        )


def check_rows_for_family(moments: ClassMoments, family: GaussianFamily) -> None:
    """Raise unless every class has the rows it needs; Friedman's mixture needs none."""
    if family.weighting != "friedman" or family.pooling == 0.0:
        check_rows_per_class(moments, family.denominator)


def linear_rule(moments: ClassMoments, *, metric: Metric, prior: Floats) -> LinearRule:
    """Linear scores of classes that share one metric, about the centre of the class means.

    score_k(u) = u' C^-1 m_k - m_k' C^-1 m_k / 2 + log prior_k
    """
    anchor, moved = moments.anchor.shift(prior @ moments.mean)
    mean = moments.mean - moved
    coef = metric.solve(mean)
    intercept = np.log(prior) - 0.5 * metric.squared_distances(mean)
    return LinearRule(moments.labels, anchor, coef, intercept)


def quadratic_rule(
    moments: ClassMoments, *, metrics: tuple[Metric, ...], prior: Floats
) -> QuadraticRule:
    """Quadratic scores of classes with a metric each."""
    return QuadraticRule(moments.labels, moments.anchor, moments.mean, metrics, np.log(prior))


def check_shrinkage(family: GaussianFamily) -> GaussianFamily:
    """Return the family; raise if its optimal shrinkage has no known formula."""
    if not isinstance(family.shrinkage, str):
        return family
    if family.target == "identity":
        allowed = "a number with target='identity': the best one is known for the targets "
        raise OptionError.of(
            "shrinkage", family.shrinkage, f"{allowed}'diagonal' and 'scaled_identity'"
        )
    if family.shrinks_mixture and 0.0 < family.pooling < 1.0:
        allowed = "a number where mixtures of covariances are shrunk: the best one is known for "
        raise OptionError.of(
            "shrinkage", family.shrinkage, f"{allowed}shrink='pooled' with weighting='covariance'"
        )
    return family


def shrinkage_amount(moments: ClassMoments, family: GaussianFamily) -> float | Floats:
    """Shrinkage as a number, estimated if the family asks for that; for QDA (K,), one per class."""
    check_shrinkage(family)
    if not isinstance(family.shrinkage, str):
        return float(family.shrinkage)
    if family.shrinks_mixture and family.pooling == 0.0:
        return best_shrinkages(moments, family.shrinkage, family.target)
    return best_shrinkage(moments, family.shrinkage, family.target)


def pooled_metric(moments: ClassMoments, family: GaussianFamily) -> Metric:
    """Metric of the covariance that all classes share."""
    amount = float(shrinkage_amount(moments, family))
    pooled = pooled_covariance(moments, family.denominator)
    diagonal = pooled if pooled.ndim == 1 else np.diagonal(pooled)
    if amount == 1.0 or pooled.ndim == 1:
        variance = target_diagonal(diagonal, family.target, moments.anchor.unit)
        return diagonal_metric(floor_variances(moments, variance))
    covariance = shrink(pooled, amount, family.target, moments.anchor.unit)
    return shared_metric(moments, covariance, degrees=max_pooled_rank(moments, amount))


def class_metrics(moments: ClassMoments, family: GaussianFamily) -> tuple[Metric, ...]:
    """Metric of each class's covariance."""
    check_rows_for_family(moments, family)
    each = zip(family_covariances(moments, family), max_class_ranks(moments, family), strict=True)
    return tuple(
        class_metric(moments, covariance, k, degrees=degrees)
        for k, (covariance, degrees) in enumerate(each)
    )


def max_pooled_rank(moments: ClassMoments, amount: float) -> float:
    """Largest possible rank of the pooled covariance given its rows; unlimited if shrunk."""
    return np.inf if amount else float(moments.rows.sum() - len(moments.labels))


def max_class_ranks(moments: ClassMoments, family: GaussianFamily) -> list[float]:
    """Largest possible rank for each class: from its own rows, or if mixed, from all."""
    if family.pooling == 0.0 and not family.shrinks_mixture:  # then shrinkage has no part
        return [float(rows - 1) for rows in moments.rows]
    amounts = np.broadcast_to(shrinkage_amount(moments, family), len(moments.labels))
    rows = moments.rows.sum() - len(moments.labels) if family.pooling > 0.0 else moments.rows - 1
    return [float(most) for most in np.where(amounts > 0.0, np.inf, rows)]


def family_covariances(moments: ClassMoments, family: GaussianFamily) -> Floats:
    """(K, d, d) covariance of each class by the family's formula."""
    unit, pooling = moments.anchor.unit, family.pooling
    amount = shrinkage_amount(moments, family)
    if family.shrinks_mixture:
        return shrink(_mixtures(moments, family), amount, family.target, unit)
    if pooling == 0.0:
        return class_covariances(moments, family.denominator)
    pooled = shrink(pooled_covariance(moments, family.denominator), amount, family.target, unit)
    return (1 - pooling) * class_covariances(moments, family.denominator) + pooling * pooled


def _mixtures(moments: ClassMoments, family: GaussianFamily) -> Floats:
    """(K, d, d) mixtures before shrinkage."""
    pooling = family.pooling
    if pooling == 0.0:
        return class_covariances(moments, family.denominator)
    if family.weighting == "covariance":
        pooled = pooled_covariance(moments, family.denominator)
        return (1 - pooling) * class_covariances(moments, family.denominator) + pooling * pooled
    degrees = class_degrees(moments, family.denominator)
    below = (1 - pooling) * degrees + pooling * pooled_degrees(moments, family.denominator)
    mixed = (1 - pooling) * moments.scatter + pooling * moments.pooled
    return np.asarray(mixed / below[:, None, None])


# --- rows with missing features -----------------------------------------------------------------


def scores_with_missing(
    rows: Floats, *, moments: ClassMoments, family: GaussianFamily, prior: Floats
) -> Floats:
    """(n, K) scores of rows (n, d) with NaN where a feature is missing.

    A class that is Gaussian in all d features is Gaussian in any o of them, with the same means and
    the corresponding block of its covariance, so a row is scored exactly by the features it has:

        score_k(x) = log p(x_o | k) + log prior_k,    x_o ~ N(mean_k[o], S_k[o, o])

    S_k is the covariance the model uses for all features, shrunk and pooled as it is. A row without
    any feature gets the prior. Rows are grouped by the features they have, so that each block is
    factorised once. Nothing is imputed; values are assumed to be missing at random, so that being
    missing says nothing about the class. Terms common to all classes are left out, so scores are
    comparable within a row only.
    """
    gone = np.isnan(rows)
    patterns, which = np.unique(gone, axis=0, return_inverse=True)
    covariance = _shared_or_class_covariance(moments, family)
    scores = np.empty((len(rows), len(prior)))
    for code, pattern in enumerate(patterns):
        some = np.flatnonzero(which.ravel() == code)
        kept = np.flatnonzero(~pattern)
        if len(kept):
            rule = _rule_on_features(moments, covariance, kept, family=family, prior=prior)
            scores[some] = rule.scores(rows[np.ix_(some, kept)])
        else:
            scores[some] = np.log(prior)
    return scores


def _shared_or_class_covariance(moments: ClassMoments, family: GaussianFamily) -> Floats:
    """(d, d) that classes share, or (K, d, d), or (d,) variances, as the family says."""
    if not family.linear:
        return family_covariances(moments, family)
    amount = float(shrinkage_amount(moments, family))
    pooled = pooled_covariance(moments, family.denominator)
    if amount == 1.0 or pooled.ndim == 1:
        diagonal = pooled if pooled.ndim == 1 else np.diagonal(pooled)
        return target_diagonal(diagonal, family.target, moments.anchor.unit)
    return shrink(pooled, amount, family.target, moments.anchor.unit)


def _rule_on_features(
    moments: ClassMoments,
    covariance: Floats,
    kept: Places,
    *,
    family: GaussianFamily,
    prior: Floats,
) -> LinearRule | QuadraticRule:
    """Rule on some of the features, without repeating the warnings of the fit."""
    part = moments.select(kept.tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscriminantWarning)
        if covariance.ndim == 1:
            metric = diagonal_metric(floor_variances(part, covariance[kept]))
            return linear_rule(part, metric=metric, prior=prior)
        block = covariance[..., kept[:, None], kept]
        if family.linear:
            degrees = max_pooled_rank(moments, float(shrinkage_amount(moments, family)))
            metric = shared_metric(part, block, degrees=degrees)
            return linear_rule(part, metric=metric, prior=prior)
        each = enumerate(zip(block, max_class_ranks(moments, family), strict=True))
        metrics = tuple(class_metric(part, own, k, degrees=most) for k, (own, most) in each)
        return quadratic_rule(part, metrics=metrics, prior=prior)
