"""RDA: regularised discriminant analysis, between LDA and QDA, by any convention in use.

The formula is in `gaussian.lda_qda`; `assessment.resampling.rda_grid` chooses hyperparameters.
"""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np

from discriminant.assessment.resampling.folds import fold_numbers
from discriminant.assessment.resampling.rda_grid import (
    STEPS,
    Candidates,
    Grid,
    score_grid,
)
from discriminant.engines.dispatch import read_classes
from discriminant.engines.partitioned_table import PartitionedTable
from discriminant.errors import LabelError, OptionError
from discriminant.estimators.base import Prior
from discriminant.estimators.gaussian.lda_qda import GaussianClassifier, check_family
from discriminant.models.gaussian.covariance import Denominator, Shrinkage, Target
from discriminant.models.gaussian.family import GaussianFamily
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.stored_rows import ClassRows

_SEED = 1  # of the folds of a partitioned table; differs from that of an outer cross-validation


class RDA(GaussianClassifier):
    """Regularised discriminant analysis: between QDA (pooling 0) and LDA (pooling 1).

        S_k = (1 - pooling) C_k + pooling [(1 - shrinkage) C + shrinkage target]

    which is lecture 3's table with alpha = 1 - pooling and gamma = 1 - shrinkage.

    Parameters
    ----------
    pooling : float or 'cv', default 0.5
        Weight of the pooled covariance C against the class covariance C_k, from 0 to 1. 'cv': of
        0, 0.1, ... 1 the one with the smallest held-out log loss; of equal ones the largest.
    shrinkage : float, 'auto', 'oas' or 'cv', default 0.0
        Shrinkage toward `target`, as in `LDA`; 'cv' chooses as for `pooling`, both together.
    target : {'diagonal', 'scaled_identity', 'identity'}, default 'diagonal'
        Shrinkage target.
    shrink : {'pooled', 'mixed'}, default 'pooled'
        'pooled': shrink the pooled covariance, as above; 'mixed': shrink the mixture, as klaR does.
    weighting : {'covariance', 'friedman'}, default 'covariance'
        'covariance' mixes covariances; 'friedman' mixes scatters and weights (Friedman 1989).
    prior : array of shape (K,), dict by label or None, default None
        Class priors. None: the class shares of the rows.
    denominator : {'unbiased', 'ml', 'reliability'}, default 'unbiased'
        Denominator of the covariances, as in `LDA`.
    folds : int, array of shape (n,) or splitter, default 10
        Folds for 'cv', as in `cross_validate`.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Class labels, sorted.
    prior_ : array of shape (K,)
        Class priors.
    means_ : array of shape (K, d)
        Class means.
    covariance_ : array of shape (K, d, d), or (d, d) with pooling 1
        Covariances used by the rule.
    pooling_, shrinkage_ : float
        Hyperparameters used; `shrinkage_` is (K,) if it differs between classes.
    cv_ : Grid or None
        With 'cv', held-out log loss and error of every candidate. The choice stays when rows are
        added or removed; `fit` chooses again.
    moments_ : ClassMoments
        Moments of the fit; `partial_fit` and `forget` update them.
    n_features_in_, feature_names_in_
        Number of features, and their names if the rows had any.

    See Also
    --------
    rda_grid : Held-out losses over a grid of pooling, shrinkage and priors.
    LDA, QDA : The ends of the family.

    References
    ----------
    .. [1] Friedman (1989), Regularized discriminant analysis.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [4.0], [5.0], [9.0]]
    >>> model = RDA(pooling=0.5).fit(X, list("aaabbb"))
    >>> model.covariance_.ravel().round(6).tolist()  # between 1 and 7, whose pooled value is 4
    [2.5, 5.5]
    """

    cv_: Grid | None

    def __init__(
        self,
        *,
        pooling: float | Literal["cv"] = 0.5,
        shrinkage: Shrinkage | Literal["cv"] = 0.0,
        target: Target = "diagonal",
        shrink: Literal["pooled", "mixed"] = "pooled",
        weighting: Literal["covariance", "friedman"] = "covariance",
        prior: Prior | None = None,
        denominator: Denominator = "unbiased",
        folds: Any = 10,
    ) -> None:
        self.pooling = pooling
        self.shrinkage = shrinkage
        self.target = target
        self.shrink = shrink
        self.weighting = weighting
        self.prior = prior
        self.denominator = denominator
        self.folds = folds

    @property
    def needs_rows(self) -> bool:
        """Whether an option is chosen on held-out rows."""
        return any(isinstance(v, str) and v == "cv" for v in (self.pooling, self.shrinkage))

    @property
    def family(self) -> GaussianFamily:
        """The mixture given by the options, or chosen by cross-validation."""
        pooling: Any = self.pooling
        shrinkage: Any = self.shrinkage
        if self.needs_rows:
            grid = getattr(self, "cv_", None)
            if grid is None:
                name = "pooling" if pooling == "cv" else "shrinkage"
                raise OptionError.of(name, "cv", "a number where there are no rows to hold out")
            p, s, _ = grid.best()
            pooling = float(grid.pooling[p]) if pooling == "cv" else pooling
            shrinkage = grid.shrinkage[s] if shrinkage == "cv" else shrinkage
        options = (self.target, self.denominator, self.shrink, self.weighting)
        return check_family(GaussianFamily(pooling, shrinkage, *options))

    @property
    def pooling_(self) -> float:
        """Pooling used."""
        self._check_is_fitted()
        return float(self._asked.family.pooling)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model; with 'cv', first score every candidate on held-out rows.

        Parameters
        ----------
        X, y, sample_weight
            As in `LDA.fit`; 'cv' reads a partitioned table twice more.

        Returns
        -------
        self
        """
        self.cv_ = None
        if not self.needs_rows:
            return super().fit(X, y, sample_weight)
        table = self._open_table(X, y, sample_weight)
        if len(table.schema.labels) < 2:
            raise LabelError.one_class(table.schema.labels[0])
        if isinstance(table, PartitionedTable):
            self.cv_ = score_grid(table, self._candidates(), self.folds, seed=_SEED)
        else:
            fold = fold_numbers(self.folds, table.codes)
            self.cv_ = score_grid(table, self._candidates(), fold)
        moments = read_classes(table, self.detail_for(len(table), table.width))
        return self._fit_from(moments, named=table.schema.named)

    def fit_moments(self, moments: ClassMoments | ClassRows) -> Self:
        """Fit the model from moments; 'cv' needs rows and raises OptionError."""
        self.cv_ = None  # an earlier choice belongs to other rows
        return super().fit_moments(moments)

    def _candidates(self) -> Candidates:
        poolings, shrinkages = (
            STEPS if value == "cv" else (value,) for value in (self.pooling, self.shrinkage)
        )
        options = (self.target, self.denominator, self.shrink, self.weighting)
        for pooling in poolings:
            check_family(GaussianFamily(pooling, shrinkages[0], *options))
        family = GaussianFamily(1.0, 0.0, *options)
        return Candidates(family, np.array(poolings), tuple(shrinkages), (self.prior,))

    @classmethod
    def from_lecture(cls, alpha: float, gamma: float = 1.0, **options: Any) -> RDA:
        """Lecture 3: S_k = alpha C_k + (1 - alpha) [gamma C + (1 - gamma) diag C].

        Without `gamma`, S_k = alpha C_k + (1 - alpha) C.
        """
        return cls(pooling=1 - alpha, shrinkage=1 - gamma, target="diagonal", **options)

    @classmethod
    def from_klar(cls, gamma: float, lambda_: float, **options: Any) -> RDA:
        """R's klaR::rda: [(1 - lambda) C_k + lambda C], then gamma toward its mean variance."""
        return cls(
            pooling=lambda_, shrinkage=gamma, target="scaled_identity", shrink="mixed", **options
        )

    @classmethod
    def from_esl(cls, alpha: float, gamma: float = 1.0, **options: Any) -> RDA:
        """ESL 4.13 and 4.14: alpha C_k + (1 - alpha) [gamma C + (1 - gamma) s^2 I]."""
        return cls(pooling=1 - alpha, shrinkage=1 - gamma, target="scaled_identity", **options)

    @classmethod
    def from_friedman(cls, lambda_: float, gamma: float, **options: Any) -> RDA:
        """Friedman 1989: scatters mixed by lambda, then gamma toward the mean variance."""
        return cls(
            pooling=lambda_,
            shrinkage=gamma,
            target="scaled_identity",
            shrink="mixed",
            weighting="friedman",
            **options,
        )

    @classmethod
    def from_sklearn(cls, reg_param: float = 0.0, **options: Any) -> RDA:
        """scikit-learn's QuadraticDiscriminantAnalysis: (1 - reg_param) C_k + reg_param I."""
        options = {"denominator": "ml", **options}
        return cls(pooling=0.0, shrinkage=reg_param, target="identity", shrink="mixed", **options)

    @classmethod
    def from_matlab(cls, gamma: float = 0.0, **options: Any) -> RDA:
        """MATLAB's fitcdiscr with a linear type: (1 - Gamma) C + Gamma diag C."""
        return cls(pooling=1.0, shrinkage=gamma, target="diagonal", **options)
