"""What a classifier has that passes rows on to another which projects them."""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.estimators.available import only_if
from discriminant.table.schema import Floats


def _projects(model: Any) -> bool:
    return hasattr(getattr(model, "estimator_", model.estimator), "transform")


class ProjectingInside:
    """The discriminant space of `estimator_`, if it has one."""

    estimator: Any
    estimator_: Any
    fit: Any

    @only_if(_projects)
    def transform(self, X: Any) -> Floats:
        """(n, r) rows along the discriminant directions of the classifier."""
        return np.asarray(self.estimator_.transform(self._as_given(X)))

    @only_if(_projects)
    def fit_transform(self, X: Any, y: Any = None, **fitting: Any) -> Floats:
        """Fit, and the same rows along the directions."""
        return np.asarray(self.fit(X, y, **fitting).transform(X))

    @property
    def scalings_(self) -> Floats:
        """(d, r) the directions, in the features of the classifier."""
        return np.asarray(self.estimator_.scalings_)

    @property
    def centre_(self) -> Floats:
        """(d,) where these are counted from."""
        return np.asarray(self.estimator_.centre_)

    @property
    def canonical_correlations_(self) -> Floats:
        """(r,) correlation of each direction with the classes."""
        return np.asarray(self.estimator_.canonical_correlations_)

    @property
    def explained_variance_ratio_(self) -> Floats:
        """(r,) share of each direction in the separation of the classes."""
        return np.asarray(self.estimator_.explained_variance_ratio_)

    def _as_given(self, X: Any) -> Any:
        """Rows as the classifier takes them."""
        raise NotImplementedError
