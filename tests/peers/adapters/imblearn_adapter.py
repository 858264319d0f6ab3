"""imbalanced-learn's samplers on `Resampled.resample` of this package."""

from __future__ import annotations

from collections import Counter

import numpy as np
from calls import Lacks, LacksAttributeError, count_call
from sklearn.base import BaseEstimator

import discriminant as dd


class _Sampler(BaseEstimator):
    """A sampler whose rows are drawn or made up by `Resampled`."""

    _method = ""

    def fit(self, X, y):
        self.fit_resample(X, y)
        return self

    def fit_resample(self, X, y):
        count_call()
        if callable(self.sampling_strategy):
            raise Lacks("a function as sampling_strategy")
        sampler = dd.Resampled(
            dd.LDA(),
            self._method,
            strategy=self.sampling_strategy,
            random_state=self.random_state,
            **self._options(X),
        )
        rows, labels = sampler.resample(X, y)
        before, after = Counter(np.ravel(y).tolist()), Counter(labels.tolist())
        self.sampling_strategy_ = {
            label: number - before[label] if self._method != "under" else number
            for label, number in after.items()
            if number != before[label]
        }
        return rows, labels

    def _options(self, X):
        return {}

    def __getattr__(self, name):
        raise LacksAttributeError(f"{type(self).__name__} has no attribute {name!r}")


class RandomOverSampler(_Sampler):
    _method = "over"

    def __init__(self, *, sampling_strategy="auto", random_state=None, shrinkage=None):
        self.sampling_strategy = sampling_strategy
        self.random_state = random_state
        self.shrinkage = shrinkage

    def _options(self, X):
        if self.shrinkage is not None:
            raise Lacks("shrinkage, a smoothed bootstrap")
        self.shrinkage_ = None
        return {}


class RandomUnderSampler(_Sampler):
    _method = "under"

    def __init__(self, *, sampling_strategy="auto", random_state=None, replacement=False):
        self.sampling_strategy = sampling_strategy
        self.random_state = random_state
        self.replacement = replacement

    def _options(self, X):
        if self.replacement:
            raise Lacks("under-sampling with replacement")
        return {}


class SMOTE(_Sampler):
    _method = "smote"

    def __init__(self, *, sampling_strategy="auto", random_state=None, k_neighbors=5):
        self.sampling_strategy = sampling_strategy
        self.random_state = random_state
        self.k_neighbors = k_neighbors

    def _options(self, X):
        others = getattr(self.k_neighbors, "n_neighbors", None)  # theirs counts the row itself
        return {"neighbours": self.k_neighbors if others is None else others - 1}


class SMOTENC(SMOTE):
    def __init__(
        self,
        categorical_features,
        *,
        categorical_encoder=None,
        sampling_strategy="auto",
        random_state=None,
        k_neighbors=5,
    ):
        super().__init__(
            sampling_strategy=sampling_strategy, random_state=random_state, k_neighbors=k_neighbors
        )
        self.categorical_features = categorical_features
        self.categorical_encoder = categorical_encoder

    def _options(self, X):
        if self.categorical_encoder is not None:
            raise Lacks("categorical_encoder")
        nominal = self.categorical_features
        if isinstance(nominal, str):
            nominal = None  # 'auto': by the types of a frame
        elif np.asarray(nominal).dtype == bool:
            nominal = np.flatnonzero(nominal)
        return {**super()._options(X), "nominal": nominal}
