"""What classifiers share that also project rows on discriminant directions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from discriminant.estimators.base import LinearScores
from discriminant.models.fisher import FisherRule
from discriminant.table.schema import Floats


class Projecting(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LinearScores):
    """A linear classifier with a discriminant space; a class adds `directions`."""

    def directions(self) -> FisherRule:
        """The rule in the discriminant space."""
        raise AttributeError("directions")

    def transform(self, X: Any) -> Floats:
        """(n, r) rows along the directions, counted from the prior-weighted centre of the means.

        The within-class covariance of what comes out is the identity.
        """
        rule = self.directions()
        if not self._plain(X):
            X = self._features(X)
        return self._finite(rule.project, X)

    @property
    def scalings_(self) -> Floats:
        """(d, r) directions in the user's numbers: `transform` is (X - centre_) @ scalings_."""
        rule = self.directions()
        return np.asarray(rule.scalings / rule.anchor.unit[:, None])

    @property
    def centre_(self) -> Floats:
        """(d,) prior-weighted mean of the class means."""
        return self.directions().anchor.origin

    @property
    def eigenvalues_(self) -> Floats:
        """(r,) S_b over S_w along each direction."""
        return self.directions().eigenvalues

    @property
    def canonical_correlations_(self) -> Floats:
        """(r,) correlation of each direction with the classes, sqrt(eigenvalue / (1 + it))."""
        eigenvalues = self.eigenvalues_
        return np.asarray(np.sqrt(eigenvalues / (1.0 + eigenvalues)))

    @property
    def explained_variance_ratio_(self) -> Floats:
        """(r,) share of each direction in the sum of all eigenvalues."""
        return self.directions().share

    @property
    def _n_features_out(self) -> int:
        return int(self.directions().scalings.shape[1])
