"""Naive Bayes with Laplace-distributed features, robust to outliers.

    log p(x | k) = - sum_j  log(2 s_kj) + |x_j - median_kj| / s_kj

where s_kj is the mean absolute deviation from the median (`models.laplace_naive_bayes`).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from discriminant.estimators.base import MomentClassifier, Prior
from discriminant.models.laplace_naive_bayes import LaplaceRule, fit_laplace
from discriminant.moments.class_moments import Detail
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.table.blocks import Floats


class LaplaceNB(MomentClassifier):
    """Naive Bayes with Laplace densities, estimated by medians and mean absolute deviations.

    Outliers move a median less than a mean, and a Laplace density has heavier tails than a Gaussian
    one, so that outliers hardly affect this classifier. Unlike moments, medians are not additive,
    so the fitted model stores the rows: `partial_fit` and `forget` are exact, and the model grows
    with every row. `fit_moments` needs `moments(X, y, detail="rows")`.

    Attributes
    ----------
    medians_ : array of shape (K, d)
        Class medians.
    scales_ : array of shape (K, d)
        Mean absolute deviations from the medians. The scale of a constant column is infinite, so
        that the column is ignored.
    moments_ : ClassRows
        The rows of each class.

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
        """Level of detail of the moments: 'rows', because medians need the rows."""
        return "rows"

    def rule_from(self, moments: ClassRows) -> LaplaceRule:
        """Return the rule fitted to stored rows, without changing the model."""
        return fit_laplace(moments, prior=self.prior_from(moments))

    @property
    def medians_(self) -> Floats:
        """Class medians (K, d)."""
        rule = self._laplace_rule()
        return rule.anchor.values(rule.median)

    @property
    def scales_(self) -> Floats:
        """Mean absolute deviations from the medians (K, d); infinite for a constant column."""
        rule = self._laplace_rule()
        return np.asarray(rule.scale * rule.anchor.unit)

    def log_density(self, X: Any, by_class: bool = False) -> Floats:
        """Return the log density log p(x) of rows (n,).

        With `by_class`, return log p(x | class) for each class (n, K).
        """
        rule = self._laplace_rule()
        units = float(np.log(rule.anchor.unit).sum())
        densities = self._score_rows(rule.log_densities, X) - units
        if by_class:
            return np.asarray(densities)
        return np.asarray(np.logaddexp.reduce(densities + rule.log_prior, axis=1))

    def sample(self, n: int, seed: int | np.random.Generator) -> tuple[Floats, npt.NDArray[Any]]:
        """Draw n random rows and their labels from the fitted model."""
        rng = np.random.default_rng(seed)
        rule = self._laplace_rule()
        codes = rng.choice(len(rule.labels), size=n, p=np.exp(rule.log_prior))
        scale = np.where(np.isfinite(rule.scale), rule.scale, 0.0)[codes]
        offsets = rule.median[codes] + scale * rng.laplace(size=scale.shape)
        return rule.anchor.values(offsets), rule.labels[codes]

    def _laplace_rule(self) -> LaplaceRule:
        return cast(LaplaceRule, self.rule_)
