"""LaplaceNB: naive Bayes with Laplace-distributed features, robust to outliers.

    log p(x | k) = - sum_j  log(2 s_kj) + |x_j - median_kj| / s_kj

with s_kj the mean absolute deviation from the median (`models.naive_bayes`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.estimators.base import MomentClassifier, Prior
from discriminant.models.laplace_naive_bayes import LaplaceRule, fit_laplace
from discriminant.moments.class_moments import Detail
from discriminant.moments.stored_rows import ClassRows
from discriminant.table.blocks import Floats


class LaplaceNB(MomentClassifier):
    """Naive Bayes with Laplace densities: medians and mean absolute deviations of each class.

    Outliers move a median less than a mean, and a Laplace density has heavier tails than a Gaussian
    one, so that outliers hardly affect this classifier. Medians do not add as moments do: the
    fitted model stores the rows, updates exactly by `partial_fit` and `forget`, and grows with
    every row. `fit_moments` needs `moments(X, y, detail="rows")`.

    Parameters
    ----------
    prior : array of shape (K,), dict by label or None, default None
        Class priors, in the order of the sorted labels. None: the class shares of the rows.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Class labels, sorted.
    prior_ : array of shape (K,)
        Class priors.
    medians_ : array of shape (K, d)
        Class medians.
    scales_ : array of shape (K, d)
        Mean absolute deviations from the medians; infinite for a constant column, which is ignored.
    means_ : array of shape (K, d)
        Class means.
    moments_ : ClassRows
        The rows of each class.
    n_features_in_, feature_names_in_
        Number of features, and their names if the rows had any.

    See Also
    --------
    LDA : Gaussian classes; `LDA(shrinkage=1.0)` also treats features as independent.

    Examples
    --------
    >>> model = LaplaceNB().fit([[0.0], [1.0], [4.0], [99.0], [5.0]], list("aabbb"))
    >>> model.medians_.ravel().tolist()
    [0.5, 5.0]
    """

    def __init__(self, *, prior: Prior | None = None) -> None:
        self.prior = prior

    @property
    def detail(self) -> Detail:
        """Detail that the moments must contain: medians need the rows."""
        return "rows"

    def rule_from(self, moments: ClassRows) -> LaplaceRule:
        """Return the rule fitted to stored rows; nothing else is stored."""
        return fit_laplace(moments, prior=self.prior_from(moments))

    @property
    def medians_(self) -> Floats:
        """(K, d) class medians."""
        rule = self._laplace()
        return rule.anchor.values(rule.median)

    @property
    def scales_(self) -> Floats:
        """(K, d) mean absolute deviations from the median; infinite for a constant column."""
        rule = self._laplace()
        return np.asarray(rule.scale * rule.anchor.unit)

    def log_density(self, X: Any, by_class: bool = False) -> Floats:
        """(n,) log density log p(x) of rows; with `by_class` (n, K) log p(x | class)."""
        rule = self._laplace()
        units = float(np.log(rule.anchor.unit).sum())
        inside = self._score_rows(rule.log_densities, X) - units
        if by_class:
            return np.asarray(inside)
        joint = inside + rule.log_prior
        return np.asarray(np.logaddexp.reduce(joint, axis=1))

    def sample(self, n: int, seed: int | np.random.Generator) -> tuple[Floats, npt.NDArray[Any]]:
        """Draw n random rows and their labels from the fitted model."""
        rng = np.random.default_rng(seed)
        rule = self._laplace()
        codes = rng.choice(len(rule.labels), size=n, p=np.exp(rule.log_prior))
        scale = np.where(np.isfinite(rule.scale), rule.scale, 0.0)[codes]
        offsets = rule.median[codes] + scale * rng.laplace(size=scale.shape)
        return rule.anchor.values(offsets), rule.labels[codes]

    def _laplace(self) -> LaplaceRule:
        rule = self.rule_
        assert isinstance(rule, LaplaceRule)
        return rule
