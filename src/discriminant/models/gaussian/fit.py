"""A member of the Gaussian family from whichever summary is at hand: moments, or the rows.

Where features outnumber rows, the rows are kept and the algebra is done in their space; else the
moments are. Both give the same rules, so nobody else needs to ask which it is.

Scores of rows of which some features are missing, by the features that are there.

If a class is Gaussian in all d features, it is Gaussian in any o of them, with the same means and
the block of its covariance that belongs to them. So a row is scored, exactly, by

    score_k(x) = log p(x_o | k) + log prior_k,    x_o ~ N(mean_k[o], S_k[o, o])

where S_k is the covariance that the model uses for all features, shrunk and pooled as it is. A row
without any feature has the prior. Rows are grouped by which features they have, so that each block
is factorised once. Nothing is filled in, and nothing is assumed but that values are missing at
random: that they are missing says nothing of the class.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from discriminant.errors import DiscriminantWarning
from discriminant.models.gaussian.covariance import (
    Metric,
    class_metric,
    diagonal_metric,
    floor_variances,
    pooled_covariance,
    shared_metric,
    shrink,
    target_diagonal,
)
from discriminant.models.gaussian.family import (
    GaussianFamily,
    family_covariances,
    fit_gaussian,
    linear_rule,
    max_class_ranks,
    max_pooled_rank,
    pooled_metric,
    quadratic_rule,
    shrinkage_amount,
)
from discriminant.models.gaussian.fisher import FisherRule, ProjectionOptions, fit_fisher
from discriminant.models.gaussian.wide import fit_wide, wide_metric, wide_shrinkage
from discriminant.models.rules import LinearRule, QuadraticRule
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.class_rows import ClassRows
from discriminant.table.blocks import Floats, Places


def scores_with_missing(
    rows: Floats, *, moments: ClassMoments, family: GaussianFamily, prior: Floats
) -> Floats:
    """(n, K) scores of rows (n, d) with NaN where a feature is missing.

    Scores of a row are comparable with one another, not with those of other rows: what is common
    to all classes is left out.
    """
    gone = np.isnan(rows)
    patterns, which = np.unique(gone, axis=0, return_inverse=True)
    covariance = _covariance(moments, family)
    found = np.empty((len(rows), len(prior)))
    for code, pattern in enumerate(patterns):
        some = np.flatnonzero(which.ravel() == code)
        kept = np.flatnonzero(~pattern)
        if len(kept):
            rule = _rule(moments, covariance, kept, family=family, prior=prior)
            found[some] = rule.scores(rows[np.ix_(some, kept)])
        else:
            found[some] = np.log(prior)
    return found


def _covariance(moments: ClassMoments, family: GaussianFamily) -> Floats:
    """(d, d) that classes share, or (K, d, d), or (d,) variances, as the family says."""
    if not family.linear:
        return family_covariances(moments, family)
    amount = float(shrinkage_amount(moments, family))
    pooled = pooled_covariance(moments, family.denominator)
    if amount == 1.0 or pooled.ndim == 1:
        diagonal = pooled if pooled.ndim == 1 else np.diagonal(pooled)
        return target_diagonal(diagonal, family.target, moments.anchor.unit)
    return shrink(pooled, amount, family.target, moments.anchor.unit)


def _rule(
    moments: ClassMoments,
    covariance: Floats,
    kept: Places,
    *,
    family: GaussianFamily,
    prior: Floats,
) -> LinearRule | QuadraticRule:
    """The rule of some features; what there was to warn of was told at the fit."""
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


Classes = ClassMoments | ClassRows


def fit_family(
    classes: Classes, *, family: GaussianFamily, prior: Floats
) -> LinearRule | QuadraticRule:
    """The rule of the member."""
    if isinstance(classes, ClassRows):
        return fit_wide(classes, family=family, prior=prior)
    return fit_gaussian(classes, family=family, prior=prior)


def family_metric(classes: Classes, family: GaussianFamily) -> Metric:
    """The metric of the covariance that all classes of a linear member share."""
    if isinstance(classes, ClassRows):
        return wide_metric(classes, family)
    return pooled_metric(classes, family)


def family_shrinkage(classes: Classes, family: GaussianFamily) -> Any:
    """The shrinkage as a number, worked out if that is asked; for QDA then (K,), one a class."""
    if isinstance(classes, ClassRows):
        return wide_shrinkage(classes, family)
    return shrinkage_amount(classes, family)


def fit_fisher_rule(
    classes: Classes, *, family: GaussianFamily, prior: Floats, projection: ProjectionOptions
) -> FisherRule:
    """Discriminant directions in the metric of a linear member."""
    if not isinstance(classes, ClassRows):
        return fit_fisher(classes, family=family, prior=prior, projection=projection)
    variances: ClassMoments = classes.reduce("diagonal")
    metric = wide_metric(classes, family)
    return fit_fisher(variances, family=family, prior=prior, projection=projection, metric=metric)
