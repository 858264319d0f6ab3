"""What a logistic fit keeps so that it can say later how sure it is; no rows."""

from __future__ import annotations

import numpy as np

from discriminant.assessment.class_inference import ClassFit, tjur
from discriminant.assessment.inference import estimable
from discriminant.models.coordinates import Coordinates
from discriminant.models.descent import Point
from discriminant.models.logistic import Fit, penalty_scale
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.losses import LinkName
from discriminant.moments.slope import Pass
from discriminant.table.schema import Floats

_STILL = 2e-9  # a longer last step changes digits of standard errors that a few rows can show
_WORTH = 5e9  # products: a curvature that takes more is read only if the way asks for it
_SHORT = 5e6  # numbers of a table that is quickly read once more


def kept_for_inference(
    found: Fit, read: Pass, moments: ClassMoments, link: LinkName
) -> ClassFit | None:
    """The curvature at the end of the way; None where there are too many estimates for it."""
    coordinates, theta = found.coordinates, found.descent.theta
    if not isinstance(coordinates, Coordinates):
        return None
    point = found.descent.point
    rows = int(moments.rows.sum())
    cheap = rows * float(theta.size) ** 2 <= _WORTH
    if (_moved(point, theta) and rows * theta.size <= _SHORT) or point.slope.curvature is None:
        if point.slope.curvature is None and not cheap:
            return None
        point = found.objective.at(theta, want="curvature")
    at = moments.at(found.anchor)
    two = len(moments.labels) == 2
    return ClassFit(
        theta,
        point.slope,
        coordinates,
        found.anchor,
        moments.features,
        np.asarray(moments.labels, dtype=object),
        moments.weight,
        rows,
        link,
        estimable(
            coordinates,
            penalty_scale(at, standardize=True, intercept=bool(coordinates.free)),
        ),
        _tjur(found, read, moments, link) if two and rows * len(at.features) <= _SHORT else None,
    )


def _moved(point: Point, theta: Floats) -> bool:
    return float(np.abs(point.theta - theta).max(initial=0.0)) > _STILL


def _tjur(found: Fit, read: Pass, moments: ClassMoments, link: LinkName) -> float:
    assert isinstance(found.coordinates, Coordinates)
    return tjur(
        read,
        found.descent.theta,
        coordinates=found.coordinates,
        anchor=found.anchor,
        features=moments.features,
        weight=moments.weight,
        link=link,
    )
