"""Linear classification: read the data once; every linear classifier after that is algebra."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from discriminant.engines.engine import moments
from discriminant.moments.class_moments import ClassMoments

__version__ = "0.1.0.dev0"

_HOMES = {
    "LDA": "estimators.gaussian",
    "QDA": "estimators.gaussian",
    "RDA": "estimators.gaussian",
    "NearestMean": "estimators.gaussian",
    "Fisher": "estimators.fisher",
    "LeastSquares": "estimators.least_squares",
    "LinearRegression": "estimators.regression",
    "LaplaceNB": "estimators.laplace",
    "cross_validate": "assessment.resampling",
    "leave_one_out": "assessment.resampling",
    "rda_grid": "assessment.resampling",
}
__all__ = ["ClassMoments", "moments", *_HOMES]


def __getattr__(name: str) -> Any:
    """Estimators are imported when they are first named, so that `import discriminant` is quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'discriminant' has no attribute {name!r}")
    return getattr(import_module(f"discriminant.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """All public names, imported or not."""
    return sorted(__all__)
