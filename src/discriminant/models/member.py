"""A member of the Gaussian family from whichever summary is at hand: moments, or the rows.

Where features outnumber rows, the rows are kept and the algebra is done in their space; else the
moments are. Both give the same rules, so nobody else needs to ask which it is.
"""

from __future__ import annotations

from typing import Any

from discriminant.models.fisher import FisherRule, Projection, fit_fisher
from discriminant.models.gaussian import Family, fit_gaussian, pooled_metric, shrinkage_of
from discriminant.models.metric import Metric
from discriminant.models.rules import LinearRule, QuadraticRule
from discriminant.models.wide import fit_wide, wide_metric, wide_shrinkage
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.class_rows import ClassRows
from discriminant.table.schema import Floats

Classes = ClassMoments | ClassRows


def fit_member(classes: Classes, *, family: Family, prior: Floats) -> LinearRule | QuadraticRule:
    """The rule of the member."""
    if isinstance(classes, ClassRows):
        return fit_wide(classes, family=family, prior=prior)
    return fit_gaussian(classes, family=family, prior=prior)


def member_metric(classes: Classes, family: Family) -> Metric:
    """The metric of the covariance that all classes of a linear member share."""
    if isinstance(classes, ClassRows):
        return wide_metric(classes, family)
    return pooled_metric(classes, family)


def member_shrinkage(classes: Classes, family: Family) -> Any:
    """The shrinkage as a number, worked out if that is asked; for QDA then (K,), one a class."""
    if isinstance(classes, ClassRows):
        return wide_shrinkage(classes, family)
    return shrinkage_of(classes, family)


def fisher_member(
    classes: Classes, *, family: Family, prior: Floats, projection: Projection
) -> FisherRule:
    """Discriminant directions in the metric of a linear member."""
    if not isinstance(classes, ClassRows):
        return fit_fisher(classes, family=family, prior=prior, projection=projection)
    variances: ClassMoments = classes.reduce("diagonal")
    metric = wide_metric(classes, family)
    return fit_fisher(variances, family=family, prior=prior, projection=projection, metric=metric)
