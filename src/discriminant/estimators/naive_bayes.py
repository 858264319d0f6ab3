"""LaplaceNB: Laplacian classes with independent features."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.estimators.base import MomentClassifier
from discriminant.models.naive_bayes import LaplaceRule, fit_laplace
from discriminant.moments.class_moments import Detail
from discriminant.moments.class_rows import ClassRows
from discriminant.table.blocks import Floats


class LaplaceNB(MomentClassifier):
    """Naive Bayes with Laplacian densities: medians and mean deviations of each class.

    Far rows pull a median less than a mean, and a Laplacian has heavier tails than a Gaussian, so
    outliers hardly move this classifier. Medians do not add as moments do: the fitted model keeps
    the rows (`moments_`, a `ClassRows`), takes `partial_fit` and `forget` exactly, and grows with
    every row. Only `fit_moments(moments(X, y, detail="rows"))` fits from moments.

    Parameters
    ----------
    prior
        (K,) probabilities of the classes in sorted order; None: their shares in the rows.

    Examples
    --------
    >>> model = LaplaceNB().fit([[0.0], [1.0], [4.0], [99.0], [5.0]], list("aabbb"))
    >>> model.medians_.ravel().tolist()
    [0.5, 5.0]
    """

    def __init__(self, *, prior: Any = None) -> None:
        self.prior = prior

    @property
    def detail(self) -> Detail:
        """Medians need the rows."""
        return "rows"

    def rule_from(self, moments: ClassRows) -> LaplaceRule:
        """The fitted rule, from the rows held."""
        return fit_laplace(moments, prior=self.prior_from(moments))

    @property
    def medians_(self) -> Floats:
        """(K, d) class medians."""
        rule = self._laplace()
        return rule.anchor.values(rule.median)

    @property
    def scales_(self) -> Floats:
        """(K, d) mean deviations from the median; infinite where a constant column is left out."""
        rule = self._laplace()
        return np.asarray(rule.scale * rule.anchor.unit)

    def log_density(self, X: Any, by_class: bool = False) -> Floats:
        """(n,) log p(x); with `by_class` (n, K) log p(x | class)."""
        rule = self._laplace()
        X = self._open_features(X)
        units = float(np.log(rule.anchor.unit).sum())
        inside = self._score_rows(rule.log_densities, X) - units
        if by_class:
            return np.asarray(inside)
        joint = inside + rule.log_prior
        return np.asarray(np.logaddexp.reduce(joint, axis=1))

    def sample(self, n: int, seed: int | np.random.Generator) -> tuple[Floats, npt.NDArray[Any]]:
        """Draw n rows and their labels from the fitted model."""
        rng = np.random.default_rng(seed)
        rule = self._laplace()
        codes = rng.choice(len(rule.labels), size=n, p=np.exp(rule.log_prior))
        spread = np.where(np.isfinite(rule.scale), rule.scale, 0.0)[codes]
        offsets = rule.median[codes] + spread * rng.laplace(size=spread.shape)
        return rule.anchor.values(offsets), rule.labels[codes]

    def _laplace(self) -> LaplaceRule:
        rule = self.rule_
        assert isinstance(rule, LaplaceRule)
        return rule
