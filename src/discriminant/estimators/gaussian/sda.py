"""SDA, shrinkage discriminant analysis: LDA for many features and few rows, with CAT scores.

The formulas are in `models.gaussian.correlation_adjusted`.
"""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from discriminant.errors import OptionError
from discriminant.estimators.base import Prior
from discriminant.estimators.gaussian.feature_selection import (
    FeatureSelectingClassifier,
    is_number,
    is_whole,
)
from discriminant.models.gaussian.correlation_adjusted import (
    CorrelationAdjustedRule,
    Intensities,
    class_shares,
    fit_correlation_adjusted,
)
from discriminant.models.gaussian.family import class_prior
from discriminant.models.gaussian.wide import is_wide
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.table.blocks import Floats, Places


class SDA(FeatureSelectingClassifier):
    """Shrinkage discriminant analysis: LDA with shrunken correlations, variances and class shares.

    The amounts of shrinkage are estimated by formulas, without cross-validation. Features are
    ranked by correlation-adjusted t (CAT) scores, which measure how much a feature contributes to
    the separation of the classes beyond the features correlated with it. With `n_features`, the
    model is fitted to the features with the highest scores, and the amounts of shrinkage are
    estimated again for them.

    Parameters
    ----------
    n_features : int, 'fdr' or None, default None
        Number of features to select. 'fdr': those with a false discovery rate of at most `fdr`.
        None means all features.
    fdr : float, default 0.05
        With n_features='fdr': limit of the false discovery rate, by the method of Benjamini and
        Hochberg. The p-values are those of F tests, exact for Gaussian features without shrinkage
        and approximate with it.
    shrinkage : float or 'auto', default 'auto'
        Shrinkage of the correlations toward zero, from 0 to 1. With 1 the features are treated as
        uncorrelated, as in diagonal LDA, and CAT scores are t scores.
    variance_shrinkage : float or 'auto', default 'auto'
        Shrinkage of the variances toward their median, from 0 to 1.
    frequency_shrinkage : float or 'auto', default 'auto'
        Shrinkage of the class shares toward equal shares, from 0 to 1.
    prior : array of shape (K,), dict by label or None, default None
        Class priors, in the order of the sorted labels. None means the shrunken class shares.
        Priors do not affect the ranking.

    Attributes
    ----------
    prior_ : array of shape (K,)
        Class priors.
    shrinkage_, variance_shrinkage_, frequency_shrinkage_ : float
        Amounts of shrinkage used for the selected features.
    cat_scores_ : array of shape (K, d)
        CAT score of each class and feature: how far the class mean is from the mean of all classes.
    scores_ : array of shape (d,)
        Squared CAT scores, weighted by one minus the class share and summed over the classes.
        Without shrinkage and correlations, the score is K - 1 times the F statistic.
    p_values_ : array of shape (d,)
        p-values of the scores.
    ranking_ : array of shape (number of selected features,)
        Columns of the selected features, by decreasing score.

    See Also
    --------
    ShrunkenCentroids : Selects features by a threshold; features are treated as independent.
    LDA : `LDA(shrinkage="auto")` shrinks the covariance toward its diagonal.

    References
    ----------
    .. [1] Ahdesmäki & Strimmer (2010), Feature selection in omics prediction problems using cat
       scores and false nondiscovery rate control, Ann. Appl. Stat. 4.
    .. [2] Zuber & Strimmer (2009), Gene ranking and biomarker discovery under correlation,
       Bioinformatics 25.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 1000)), np.repeat(["a", "b"], 20)
    >>> X[y == "b", :3] += 2.0
    >>> model = SDA(n_features=3).fit(X, y)
    >>> model.selected_features_.tolist()
    ['x0', 'x1', 'x2']
    """

    def __init__(
        self,
        *,
        n_features: int | Literal["fdr"] | None = None,
        fdr: float = 0.05,
        shrinkage: float | Literal["auto"] = "auto",
        variance_shrinkage: float | Literal["auto"] = "auto",
        frequency_shrinkage: float | Literal["auto"] = "auto",
        prior: Prior | None = None,
    ) -> None:
        self.n_features = n_features
        self.fdr = fdr
        self.shrinkage = shrinkage
        self.variance_shrinkage = variance_shrinkage
        self.frequency_shrinkage = frequency_shrinkage
        self.prior = prior

    @property
    def intensities(self) -> Intensities:
        """Amounts of shrinkage, with the options validated."""
        names = "shrinkage", "variance_shrinkage", "frequency_shrinkage"
        for name in names:
            value = getattr(self, name)
            estimated = isinstance(value, str) and value == "auto"
            if not estimated and not (is_number(value) and 0.0 <= float(value) <= 1.0):
                raise OptionError.of(name, value, "a number from 0 to 1, or 'auto'")
        if not (is_number(self.fdr) and 0.0 < float(self.fdr) <= 1.0):
            raise OptionError.of("fdr", self.fdr, "a number above 0, at most 1")
        by_rate = isinstance(self.n_features, str) and self.n_features == "fdr"
        if self.n_features is not None and not by_rate and not is_whole(self.n_features, 1):
            allowed = "a whole number of 1 or more, 'fdr' or None"
            raise OptionError.of("n_features", self.n_features, allowed)
        return Intensities(*(getattr(self, name) for name in names))

    @property
    def detail(self) -> Detail:
        """Level of detail of the moments that a fit needs."""
        intensities = self.intensities
        if intensities.need_fourth:
            return "fourth"
        return "diagonal" if intensities.correlation == 1.0 else "pooled"

    def detail_for(self, rows: int, width: int) -> Detail:
        """Return the level of detail to read: 'rows' if there are more features than rows."""
        detail = self.detail
        return "rows" if detail != "diagonal" and is_wide(rows, width) else detail

    def accepts(self, moments: ClassMoments | ClassRows) -> bool:
        """Return whether moments are enough for a fit. Pooled scatters include the variances."""
        detail = self.detail
        return moments.has(detail) or (detail == "diagonal" and moments.has("pooled"))

    def prior_from(self, moments: ClassMoments | ClassRows) -> Floats:
        """Return the class priors (K,): the option `prior`, or the shrunken class shares."""
        if self.prior is not None:
            return class_prior(moments, self.prior)
        class_prior(moments, None)  # raises if a class has no weight
        return class_shares(moments, self.intensities.frequency)[1]

    def rule_from(self, moments: ClassMoments | ClassRows) -> CorrelationAdjustedRule:
        """Return the rule fitted to moments, without changing the model."""
        intensities, number = self.intensities, self.n_features
        d = len(moments.features)
        if isinstance(number, int | np.integer) and number > d:
            raise OptionError.of("n_features", number, f"at most {d}: the rows have {d} feature(s)")
        return fit_correlation_adjusted(
            moments,
            intensities=intensities,
            prior=self.prior_from(moments),
            n_features=None if isinstance(number, str) or number is None else int(number),
            fdr=float(self.fdr) if isinstance(number, str) else None,
        )

    # --- fitted attributes --------------------------------------------------------------------

    @property
    def shrinkage_(self) -> float:
        """Shrinkage of the correlations of the selected features."""
        return self._adjusted_rule().amounts[0]

    @property
    def variance_shrinkage_(self) -> float:
        """Shrinkage of the variances of the selected features."""
        return self._adjusted_rule().amounts[1]

    @property
    def frequency_shrinkage_(self) -> float:
        """Shrinkage of the class shares."""
        return self._adjusted_rule().amounts[2]

    @property
    def cat_scores_(self) -> Floats:
        """CAT score of each class and feature (K, d)."""
        return self._adjusted_rule().cat

    @property
    def scores_(self) -> Floats:
        """Sum of squared CAT scores, weighted by one minus the class share (d,)."""
        return self._adjusted_rule().score

    @property
    def p_values_(self) -> Floats:
        """p-values of the scores (d,)."""
        return self._adjusted_rule().p_value

    @property
    def ranking_(self) -> Places:
        """Columns of the selected features, by decreasing score."""
        return self._adjusted_rule().selected

    @property
    def support_(self) -> npt.NDArray[np.bool_]:
        """Whether each feature is selected (d,)."""
        rule: Any = self._adjusted_rule()
        support = np.zeros(rule.coef.shape[1], dtype=np.bool_)
        support[rule.selected] = True
        return support

    def _adjusted_rule(self) -> CorrelationAdjustedRule:
        return cast(CorrelationAdjustedRule, self.rule_)
