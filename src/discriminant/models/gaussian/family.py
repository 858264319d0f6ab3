"""The Gaussian family: LDA, QDA and RDA (mixtures of the two), fitted from class moments.

The covariance S_k of class k is a mixture of its own covariance C_k and the pooled covariance C,
and may be shrunk before or after mixing:

    S_k = (1 - pooling) C_k + pooling C(shrinkage)          shrink="pooled" (lecture 3's table)
    S_k = [(1 - pooling) C_k + pooling C](shrinkage)        shrink="mixed" (klaR, scikit-learn)

pooling=1 is LDA, whose scores are linear; pooling=0 is QDA. With weighting="friedman" (Friedman
1989) scatters and weights are mixed instead of covariances:
[(1 - pooling) W_k + pooling W] / [(1 - pooling) n_k + pooling n].

With pooling=0, covariances may be diagonal, spherical or factor-analytic, and groups of classes may
share one: see `models.gaussian.structured_covariances`.

This module also validates priors, and scores rows with missing features (`scores_with_missing`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
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
    class_covariances,
    class_degrees,
    class_metrics_of,
    closed_form_shrinkage,
    closed_form_shrinkages,
    diagonal_metric,
    floor_variances,
    pooled_covariance,
    pooled_degrees,
    shared_metric,
    shrink,
    target_diagonal,
)
from discriminant.models.gaussian.structured_covariances import (
    DIAGONAL_STRUCTURES,
    Structure,
    group_degrees,
    group_numbers,
    structured_covariances,
)
from discriminant.models.rules import LinearRule, QuadraticRule, Rule
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.rows_instead_of_moments import ClassRows
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
    structure: Structure = "full"
    factors: int = 1  # number of factors of the structure 'factor'
    groups: tuple[tuple[Any, ...], ...] = ()  # labels of classes that share a covariance

    @property
    def linear(self) -> bool:
        """Whether all classes share one covariance."""
        return self.pooling == 1.0

    @property
    def detail(self) -> Detail:
        """Level of detail of the moments that a fit needs: which sums the moments must contain."""
        if self.structure in DIAGONAL_STRUCTURES:
            return "diagonal"
        if self.shrinkage == "auto":
            return "fourth"
        if not self.linear:
            return "class"
        return "diagonal" if self.shrinkage == 1.0 else "pooled"

    @property
    def structured(self) -> bool:
        """Whether class covariances have a structure, or are shared by groups of classes."""
        return self.structure != "full" or bool(self.groups)

    @property
    def shrinks_mixture(self) -> bool:
        """Whether class covariances are shrunk after mixing, instead of the pooled covariance."""
        return self.shrink == "mixed" or self.weighting == "friedman"


def class_prior(
    moments: ClassMoments | ClassRows, prior: npt.ArrayLike | Mapping[Any, Any] | None
) -> Floats:
    """Return the validated prior (K,), which is the class shares if `prior` is None."""
    if prior is None:
        _check_positive_weights(moments)
        return np.asarray(moments.weight / moments.weight.sum())
    return validate_prior(prior, moments.labels)


def validate_prior(prior: npt.ArrayLike | Mapping[Any, Any], labels: Labels) -> Floats:
    """Return the (K,) priors; raise an error unless they are positive and their sum is one.

    `prior` is in the order of the labels, or a mapping from label to prior. A sum that differs from
    one by rounding is normalised.
    """
    if isinstance(prior, Mapping):
        prior = _order_by_label(prior, labels.tolist())
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


def _order_by_label(prior: Mapping[Any, Any], labels: list[Any]) -> list[Any]:
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
    """Fit a rule of Gaussian classes with the covariances of the family to class moments.

    Examples
    --------
    >>> from discriminant.engines.dispatch import moments
    >>> classes = moments([[0.0], [2.0], [4.0], [6.0]], ["a", "a", "b", "b"])
    >>> rule = fit_gaussian(classes, family=GaussianFamily(), prior=np.array([0.5, 0.5]))
    >>> scores = rule.scores(np.array([[3.0]]))  # half way: a tie
    >>> bool(abs(scores[0, 0] - scores[0, 1]) < 1e-12)
    True
    """
    check_classes(moments)
    if family.linear:
        return linear_rule(moments, metric=pooled_metric(moments, family), prior=prior)
    return quadratic_rule(moments, metrics=class_metrics(moments, family), prior=prior)


def check_classes(
    moments: ClassMoments | ClassRows, estimate: str = "a within-class covariance"
) -> None:
    """Raise an error unless several classes have weight and there are more rows than classes.

    `estimate` is the name of the quantity that cannot be estimated, for the error message.
    """
    if len(moments.labels) < 2:
        raise LabelError.one_class(moments.labels[0] if len(moments.labels) else "none")
    _check_positive_weights(moments)
    if moments.rows.sum() <= len(moments.labels):
        raise TooFewRowsError.of_table(int(moments.rows.sum()), len(moments.labels), estimate)


def _check_positive_weights(moments: ClassMoments | ClassRows) -> None:
    empty = moments.weight <= 0
    if np.count_nonzero(empty):
        raise WeightError.zero_class(moments.labels[np.argmax(empty)])


def check_class_weights(
    moments: ClassMoments, denominator: Denominator, groups: Sequence[Sequence[Any]] = ()
) -> None:
    """Raise an error unless every class has enough weight to estimate its own covariance.

    Classes of one group share a covariance, so their weights are added.
    """
    for k in np.flatnonzero(group_degrees(moments, groups, denominator) <= 0):
        if moments.rows[k] > 1:
            raise WeightError.denominator_not_positive(float(moments.weight[k]), 1)
        raise TooFewRowsError.of_class(
            moments.labels[k], int(moments.rows[k]), 2, "a covariance of its own"
        )


def check_rows_for_family(moments: ClassMoments, family: GaussianFamily) -> None:
    """Raise an error unless every class has enough weight for its covariance in the family.

    With Friedman's weighting and pooling > 0 there is no requirement.
    """
    if family.weighting != "friedman" or family.pooling == 0.0:
        check_class_weights(moments, family.denominator, family.groups)


def linear_rule(moments: ClassMoments, *, metric: Metric, prior: Floats) -> LinearRule:
    """Return the linear rule of Gaussian classes that share one covariance C, given its metric.

    score_k(u) = u' C^-1 m_k - m_k' C^-1 m_k / 2 + log prior_k

    where offsets u and class means m_k are relative to the mean of the class means, weighted by
    the prior.
    """
    anchor, moved = moments.anchor.shift(prior @ moments.mean)
    mean = moments.mean - moved
    coef = metric.solve(mean)
    intercept = np.log(prior) - 0.5 * metric.squared_distances(mean)
    return LinearRule(moments.labels, anchor, coef, intercept)


def quadratic_rule(
    moments: ClassMoments, *, metrics: tuple[Metric, ...], prior: Floats
) -> QuadraticRule:
    """Return the quadratic rule of Gaussian classes, each of which has its own metric."""
    return QuadraticRule(moments.labels, moments.anchor, moments.mean, metrics, np.log(prior))


def check_shrinkage(family: GaussianFamily) -> GaussianFamily:
    """Return the family; raise an error if it lacks a formula for shrinkage 'auto' or 'oas'."""
    if not isinstance(family.shrinkage, str):
        return family
    if family.structured:
        allowed = "a number where covariances are structured or shared by groups"
        raise OptionError.of("shrinkage", family.shrinkage, allowed)
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
    """Return the amount of shrinkage, which is estimated if the option is 'auto' or 'oas'.

    The amount is (K,) if it is estimated for each class separately, else a number.
    """
    check_shrinkage(family)
    if not isinstance(family.shrinkage, str):
        return float(family.shrinkage)
    if family.shrinks_mixture and family.pooling == 0.0:
        return closed_form_shrinkages(moments, family.shrinkage, family.target)
    return closed_form_shrinkage(moments, family.shrinkage, family.target)


def pooled_metric(moments: ClassMoments, family: GaussianFamily) -> Metric:
    """Return the metric of the covariance that all classes of a linear family share."""
    amount = float(shrinkage_amount(moments, family))
    covariance = _shared_covariance(moments, family, amount)
    if covariance.ndim == 1:
        return diagonal_metric(floor_variances(moments, covariance))
    return shared_metric(moments, covariance, degrees=max_pooled_rank(moments, amount))


def _shared_covariance(moments: ClassMoments, family: GaussianFamily, amount: float) -> Floats:
    """Return the shrunk pooled covariance (d, d), or only the variances (d,) if it is diagonal."""
    pooled = pooled_covariance(moments, family.denominator)
    if amount == 1.0 or pooled.ndim == 1:
        diagonal = pooled if pooled.ndim == 1 else np.diagonal(pooled)
        return target_diagonal(diagonal, family.target, moments.anchor.unit)
    return shrink(pooled, amount, family.target, moments.anchor.unit)


def class_metrics(moments: ClassMoments, family: GaussianFamily) -> tuple[Metric, ...]:
    """Return the metric of the covariance of each class."""
    check_rows_for_family(moments, family)
    covariances = family_covariances(moments, family)
    if covariances.ndim == 2:
        variances = enumerate(covariances)
        return tuple(diagonal_metric(floor_variances(moments, each, k)) for k, each in variances)
    ranks = max_class_ranks(moments, family)
    return class_metrics_of(moments, covariances, degrees=ranks)


def max_pooled_rank(moments: ClassMoments, amount: float) -> float:
    """Return the largest rank that the pooled covariance can have, given the number of rows.

    Return infinity if the covariance is shrunk.
    """
    return np.inf if amount else float(moments.rows.sum() - len(moments.labels))


def max_class_ranks(moments: ClassMoments, family: GaussianFamily) -> list[float]:
    """Return the largest rank that each class covariance can have, given the number of rows.

    The rank is infinite if the covariance is shrunk, or has a structure.
    """
    if family.structured:
        number = group_numbers(moments.labels, family.groups)
        ranks = np.bincount(number, moments.rows - 1.0)[number]
        full = family.structure == "full" and family.shrinkage == 0.0
        return [float(rank) for rank in np.where(full, ranks, np.inf)]
    if family.pooling == 0.0 and not family.shrinks_mixture:  # shrinkage has no effect
        return [float(rows - 1) for rows in moments.rows]
    amounts = np.broadcast_to(shrinkage_amount(moments, family), len(moments.labels))
    rows = moments.rows.sum() - len(moments.labels) if family.pooling > 0.0 else moments.rows - 1
    return [float(rank) for rank in np.where(amounts > 0.0, np.inf, rows)]


def family_covariances(moments: ClassMoments, family: GaussianFamily) -> Floats:
    """Return the (K, d, d) class covariances S_k of the family; (K, d) if they are diagonal."""
    unit, pooling = moments.anchor.unit, family.pooling
    amount = shrinkage_amount(moments, family)
    if family.structured:
        covariances = structured_covariances(
            moments,
            family.structure,
            groups=family.groups,
            factors=family.factors,
            denominator=family.denominator,
        )
        if covariances.ndim == 3:
            return shrink(covariances, amount, family.target, unit)
        return (1.0 - amount) * covariances + amount * target_diagonal(
            covariances, family.target, unit
        )
    if family.shrinks_mixture:
        return shrink(_mixtures(moments, family), amount, family.target, unit)
    if pooling == 0.0:
        return class_covariances(moments, family.denominator)
    pooled = shrink(pooled_covariance(moments, family.denominator), amount, family.target, unit)
    return (1 - pooling) * class_covariances(moments, family.denominator) + pooling * pooled


def _mixtures(moments: ClassMoments, family: GaussianFamily) -> Floats:
    """Return the (K, d, d) mixtures of class and pooled covariances, before shrinkage."""
    pooling = family.pooling
    if pooling == 0.0:
        return class_covariances(moments, family.denominator)
    if family.weighting == "covariance":
        pooled = pooled_covariance(moments, family.denominator)
        return (1 - pooling) * class_covariances(moments, family.denominator) + pooling * pooled
    degrees = class_degrees(moments, family.denominator)
    mixed_degrees = (1 - pooling) * degrees + pooling * pooled_degrees(moments, family.denominator)
    mixed_scatter = (1 - pooling) * moments.scatter + pooling * moments.pooled
    return np.asarray(mixed_scatter / mixed_degrees[:, None, None])


# --- rows with missing features -----------------------------------------------------------------


def scores_with_missing(
    rows: Floats,
    *,
    moments: ClassMoments,
    family: GaussianFamily,
    prior: Floats,
    rule_from: Callable[[ClassMoments, tuple[Metric, ...]], Rule] | None = None,
) -> Floats:
    """Return the (n, K) scores of rows (n, d) that have NaN where a feature is missing.

    If a class is Gaussian in all d features, it is Gaussian in any subset o of them, with the same
    means and the corresponding block of the covariance. So a row can be scored exactly from the
    features that are present:

        score_k(x) = log p(x_o | k) + log prior_k,    x_o ~ N(mean_k[o], S_k[o, o])

    S_k is the covariance of all features in the model, after pooling and shrinking. The scores of a
    row without any feature are the log priors. Rows are grouped by the features that are present,
    so that each block is factorised once. Nothing is imputed. Values are assumed to be missing at
    random: that a value is missing carries no information about the class. Terms common to all
    classes are left out, so the scores of different rows are not comparable.

    If the class densities are not Gaussian, pass `rule_from`, a function that returns their rule,
    given the moments of the features that are present and the metrics of the classes (one metric if
    all classes share it).
    """
    missing = np.isnan(rows)
    patterns, groups = np.unique(missing, axis=0, return_inverse=True)
    covariance = (
        _shared_covariance(moments, family, float(shrinkage_amount(moments, family)))
        if family.linear
        else family_covariances(moments, family)
    )
    scores = np.empty((len(rows), len(prior)))
    for group, pattern in enumerate(patterns):
        selected = np.flatnonzero(groups.ravel() == group)
        present = np.flatnonzero(~pattern)
        if len(present):
            part = moments.select(present.tolist())
            metrics = _metrics_on_features(moments, part, covariance, present, family=family)
            rule: Rule
            if rule_from is not None:
                rule = rule_from(part, metrics)
            elif family.linear:
                rule = linear_rule(part, metric=metrics[0], prior=prior)
            else:
                rule = quadratic_rule(part, metrics=metrics, prior=prior)
            scores[selected] = rule.scores(rows[np.ix_(selected, present)])
        else:
            scores[selected] = np.log(prior)
    return scores


def _metrics_on_features(
    moments: ClassMoments,
    part: ClassMoments,
    covariance: Floats,
    present: Places,
    *,
    family: GaussianFamily,
) -> tuple[Metric, ...]:
    """Return the metrics for the features `present`, without repeating the warnings of the fit.

    `part` holds the moments of these features. If all classes share one covariance, one metric is
    returned.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscriminantWarning)
        if covariance.ndim == 1:
            return (diagonal_metric(floor_variances(part, covariance[present])),)
        if covariance.ndim == 2 and not family.linear:
            variances = enumerate(covariance[:, present])
            return tuple(diagonal_metric(floor_variances(part, each, k)) for k, each in variances)
        block = covariance[..., present[:, None], present]
        if family.linear:
            degrees = max_pooled_rank(moments, float(shrinkage_amount(moments, family)))
            return (shared_metric(part, block, degrees=degrees),)
        ranks = max_class_ranks(moments, family)
        return class_metrics_of(part, block, degrees=ranks)
