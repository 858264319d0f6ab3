"""Regularised discriminant analysis (RDA): between LDA and QDA, in every common parametrisation.

The formula is in `gaussian.lda_qda`. `assessment.resampling.rda_grid` computes the held-out losses
by which hyperparameters are chosen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from discriminant.assessment.resampling.rda_grid import STEPS, Candidates, Grid, grid_on_folds
from discriminant.errors import OptionError
from discriminant.estimators.base import Prior
from discriminant.estimators.gaussian.lda_qda import (
    SHRINKAGE_WITH_CV,
    GaussianClassifier,
    Predictive,
    check_family,
)
from discriminant.models.gaussian.covariance import Denominator, Shrinkage, Target
from discriminant.models.gaussian.family import GaussianFamily
from discriminant.models.gaussian.inverse_wishart_prior import friedman_pooling
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.table.blocks import Floats
from discriminant.table.memory import Table

_POOLING = "a number from 0 to 1, 'cv' or 'empirical_bayes'"


class RDA(GaussianClassifier):
    """Regularised discriminant analysis: between QDA (pooling 0) and LDA (pooling 1).

        S_k = (1 - pooling) C_k + pooling [(1 - shrinkage) C + shrinkage target]

    C_k is the covariance of class k and C the pooled covariance. Lecture 3 writes alpha
    for 1 - pooling, and gamma for 1 - shrinkage.

    Parameters
    ----------
    pooling : float, 'cv' or 'empirical_bayes', default 0.5
        Weight of the pooled covariance C, from 0 to 1; the class covariance C_k has the weight 1 -
        pooling. 'cv': the value among 0, 0.1, ... 1 with the smallest held-out log loss; among
        equal losses the largest. 'empirical_bayes': the value with the largest marginal likelihood,
        if class covariances vary about C according to an inverse Wishart distribution; no rows are
        held out, and weighting is 'friedman'.
    shrinkage : float, 'auto', 'oas' or 'cv', default 0.0
        Shrinkage toward `target`, as in `LDA`. 'cv': chosen by cross-validation as for `pooling`;
        if both are 'cv', they are chosen jointly.
    shrink : {'pooled', 'mixed'}, default 'pooled'
        What is shrunk. 'pooled': the pooled covariance, as in the formula above. 'mixed': the
        mixture of class and pooled covariance, as in klaR.
    weighting : {'covariance', 'friedman'}, default 'covariance'
        What is mixed. 'covariance': the class and pooled covariances. 'friedman': the scatters,
        and likewise the weights that they are divided by (Friedman 1989).
    predictive : {'plug-in', 'student'}, default 'plug-in'
        As in `LDA`. For 'student', pooling by p counts as a prior with p / (1 - p) times the
        degrees of freedom of the class, but at most those of C. 'student' requires numbers for
        `pooling` and `shrinkage`.
    folds : int, array of shape (n,) or splitter, default 10
        Folds used to choose hyperparameters given as 'cv'; as in `cross_validate`.

    Attributes
    ----------
    covariance_ : array of shape (K, d, d), or (d, d) with pooling 1
        Covariances used by the rule.
    pooling_, shrinkage_ : float
        Hyperparameters used. `shrinkage_` is an array (K,) if it differs between classes.
    cv_ : Grid or None
        Held-out log loss and error of every candidate, if a hyperparameter is 'cv'. `partial_fit`
        and `forget` keep the chosen values; `fit` chooses again.

    See Also
    --------
    rda_grid : Held-out losses over a grid of pooling, shrinkage and priors.
    LDA, QDA : The special cases pooling=1 and pooling=0.

    References
    ----------
    .. [1] Friedman (1989), Regularized discriminant analysis.
    .. [2] Haff (1980), Empirical Bayes estimation of the multivariate normal covariance matrix.

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
        pooling: float | Literal["cv", "empirical_bayes"] = 0.5,
        shrinkage: Shrinkage | Literal["cv"] = 0.0,
        target: Target = "diagonal",
        shrink: Literal["pooled", "mixed"] = "pooled",
        weighting: Literal["covariance", "friedman"] = "covariance",
        prior: Prior | None = None,
        denominator: Denominator = "unbiased",
        predictive: Predictive = "plug-in",
        folds: Any = 10,
    ) -> None:
        self.pooling = pooling
        self.shrinkage = shrinkage
        self.target = target
        self.shrink = shrink
        self.weighting = weighting
        self.prior = prior
        self.denominator = denominator
        self.predictive = predictive
        self.folds = folds

    @property
    def needs_rows(self) -> bool:
        """Whether a hyperparameter is chosen by cross-validation, which needs the rows."""
        return any(isinstance(v, str) and v == "cv" for v in (self.pooling, self.shrinkage))

    @property
    def _conventions(self) -> tuple[Any, ...]:
        """Return the options of the covariance family other than pooling and shrinkage."""
        return self.target, self.denominator, self.shrink, self.weighting

    @property
    def family(self) -> GaussianFamily:
        """Covariance family; its hyperparameters may be chosen by cross-validation.

        With pooling='empirical_bayes', `family_for` returns the family with the estimated pooling.
        """
        pooling: Any = self.pooling
        shrinkage: Any = self.shrinkage
        if self._pools_by_bayes:
            if self.needs_rows:
                allowed = "a number with pooling='empirical_bayes'"
                raise OptionError.of("shrinkage", shrinkage, allowed)
            family = GaussianFamily(0.5, shrinkage, *self._conventions)
            return check_family(replace(family, weighting="friedman"))
        if self.needs_rows:
            grid = getattr(self, "cv_", None)
            if grid is None:
                name = "pooling" if pooling == "cv" else "shrinkage"
                raise OptionError.of(name, "cv", "a number if there are no rows to hold out")
            p, s, _ = grid.best()
            pooling = float(grid.pooling[p]) if pooling == "cv" else pooling
            shrinkage = grid.shrinkage[s] if shrinkage == "cv" else shrinkage
        return check_family(
            GaussianFamily(pooling, shrinkage, *self._conventions),
            pooling=_POOLING,
            shrinkage=SHRINKAGE_WITH_CV,
        )

    @property
    def _pools_by_bayes(self) -> bool:
        return isinstance(self.pooling, str) and self.pooling == "empirical_bayes"

    def family_for(self, moments: Any) -> GaussianFamily:
        """Return the covariance family of a fit to these moments, which may determine pooling."""
        family = self.family
        if not self._pools_by_bayes:
            return family
        return replace(family, pooling=friedman_pooling(moments, family.denominator))

    @property
    def fixed_family(self) -> GaussianFamily | None:
        """Covariance family of plug-in densities; None if pooling is estimated from moments."""
        return None if self._pools_by_bayes else super().fixed_family

    def detail_for(self, rows: int, width: int) -> Detail:
        """Return the level of detail to read from a table of this shape."""
        return self.detail if self._pools_by_bayes else super().detail_for(rows, width)

    def leave_one_out_scores(self, moments: Any, table: Table) -> Floats | None:
        """Return scores (N, K): row i is scored by the rule fitted to all rows but i.

        Returns None if there is no closed form.
        """
        if self._pools_by_bayes:
            return None
        return super().leave_one_out_scores(moments, table)

    @property
    def pooling_(self) -> float:
        """Value of `pooling` that the rule uses."""
        return float(self._cached("pooling", self._compute_pooling))

    def _compute_pooling(self) -> float:
        return float(self._asked.family_for(self._present_moments).pooling)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model. Hyperparameters given as 'cv' are first chosen on held-out rows.

        Parameters
        ----------
        X, y, sample_weight
            As in `LDA.fit`. With 'cv', a partitioned table is read two more times.

        Returns
        -------
        self
        """
        self.cv_ = None
        if not self.needs_rows:
            return super().fit(X, y, sample_weight)
        if self.predictive == "student":
            allowed = (
                "'plug-in' if pooling or shrinkage is 'cv', because these minimise "
                "the plug-in log loss. For 'student', pass the chosen pooling_ and shrinkage_ as "
                "numbers"
            )
            raise OptionError.of("predictive", "student", allowed)
        table = self._open_table(X, y, sample_weight)
        self.cv_ = grid_on_folds(table, self._candidates(), self.folds)
        return self._fit_table(table)

    def fit_moments(self, moments: ClassMoments | ClassRows) -> Self:
        """Fit the model from class moments. Raise `OptionError` with 'cv', which needs rows."""
        self.cv_ = None  # hyperparameters chosen by an earlier fit are not valid for these moments
        return super().fit_moments(moments)

    def _candidates(self) -> Candidates:
        poolings, shrinkages = (
            STEPS if value == "cv" else (value,) for value in (self.pooling, self.shrinkage)
        )
        for pooling in poolings:
            check_family(
                GaussianFamily(pooling, shrinkages[0], *self._conventions),
                pooling=_POOLING,
                shrinkage=SHRINKAGE_WITH_CV,
            )
        family = GaussianFamily(1.0, 0.0, *self._conventions)
        return Candidates(family, np.array(poolings), tuple(shrinkages), (self.prior,))

    @classmethod
    def from_lecture(cls, alpha: float, gamma: float = 1.0, **options: Any) -> RDA:
        """Use the parameters of lecture 3: S_k = alpha C_k + (1 - alpha) [gamma C + (1 - gamma)
        diag C].

        Without `gamma`, S_k = alpha C_k + (1 - alpha) C.
        """
        return cls(pooling=1 - alpha, shrinkage=1 - gamma, target="diagonal", **options)

    @classmethod
    def from_klar(cls, gamma: float, lambda_: float, **options: Any) -> RDA:
        """Use the parameters of `klaR::rda`.

        The mixture (1 - lambda) C_k + lambda C is shrunk by gamma toward its mean variance.
        """
        return cls(
            pooling=lambda_, shrinkage=gamma, target="scaled_identity", shrink="mixed", **options
        )

    @classmethod
    def from_esl(cls, alpha: float, gamma: float = 1.0, **options: Any) -> RDA:
        """Use the parameters of ESL (4.13) and (4.14): alpha C_k + (1 - alpha) [gamma C + (1 -
        gamma) s^2 I].
        """
        return cls(pooling=1 - alpha, shrinkage=1 - gamma, target="scaled_identity", **options)

    @classmethod
    def from_friedman(cls, lambda_: float, gamma: float, **options: Any) -> RDA:
        """Use the parameters of Friedman (1989).

        Scatters are mixed by lambda, then shrunk by gamma toward the mean variance.
        """
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
        """Use the parameter of scikit-learn's QDA: S_k = (1 - reg_param) C_k + reg_param I."""
        options = {"denominator": "ml", **options}
        return cls(pooling=0.0, shrinkage=reg_param, target="identity", shrink="mixed", **options)

    @classmethod
    def from_matlab(cls, gamma: float = 0.0, **options: Any) -> RDA:
        """Use the parameter of MATLAB's linear `fitcdiscr`: (1 - Gamma) C + Gamma diag C."""
        return cls(pooling=1.0, shrinkage=gamma, target="diagonal", **options)
