"""RDA: between LDA and QDA, by any of the conventions in use."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from discriminant.assessment.resampling.folds import fold_numbers
from discriminant.assessment.resampling.rda_grid import (
    STEPS,
    Candidates,
    Grid,
    grid_losses,
    grid_rows,
)
from discriminant.engines.engine import read_classes
from discriminant.engines.partitioned import Parted
from discriminant.errors import LabelError, OptionError
from discriminant.estimators.gaussian.lda_qda import GaussianClassifier, check_family
from discriminant.models.gaussian.family import GaussianFamily
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.class_rows import ClassRows

_SEED = 1  # of the folds of rows in parts; those of a cross-validation around it have others


class RDA(GaussianClassifier):
    """Regularised discriminant analysis: what lies between QDA (pooling 0) and LDA (pooling 1).

        S_k = (1 - pooling) C_k + pooling [(1 - shrinkage) C + shrinkage target]

    which is lecture 3's table with alpha = 1 - pooling and gamma = 1 - shrinkage.

    Parameters
    ----------
    pooling
        How far each class covariance goes to the pooled one, from 0 to 1. 'cv': of 0, 0.1, ... 1
        the one with the least log loss on held-out rows; of equal ones the largest.
    shrinkage, target, prior, denominator
        As in `LDA`; shrinkage may be 'cv' as well, and both are then chosen together.
    shrink
        'pooled': the pooled covariance is shrunk, as above; 'mixed': the mixture is, as klaR does.
    weighting
        'covariance': covariances are mixed; 'friedman': scatters and weights are (Friedman 1989).
    folds
        For 'cv', as in `cross_validate`: how many, the fold of each row, or a splitter.

    Attributes
    ----------
    pooling_, shrinkage_
        The numbers used.
    cv_
        With 'cv', held-out log loss and error of every candidate (`assessment.grid.Grid`); else
        None. The choice stays when rows are added or forgotten; `fit` chooses anew.
    """

    cv_: Grid | None

    def __init__(
        self,
        *,
        pooling: Any = 0.5,
        shrinkage: Any = 0.0,
        target: Any = "diagonal",
        shrink: Any = "pooled",
        weighting: Any = "covariance",
        prior: Any = None,
        denominator: Any = "unbiased",
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
        """Whether an option is to be chosen on held-out rows."""
        return any(isinstance(v, str) and v == "cv" for v in (self.pooling, self.shrinkage))

    @property
    def family(self) -> GaussianFamily:
        """The mixture asked for, or chosen."""
        pooling, shrinkage = self.pooling, self.shrinkage
        if self.needs_rows:
            chosen = getattr(self, "cv_", None)
            if chosen is None:
                name = "pooling" if pooling == "cv" else "shrinkage"
                raise OptionError.of(name, "cv", "a number where there are no rows to hold out")
            p, s, _ = chosen.best()
            pooling = float(chosen.pooling[p]) if pooling == "cv" else pooling
            shrinkage = chosen.shrinkage[s] if shrinkage == "cv" else shrinkage
        options = (self.target, self.denominator, self.shrink, self.weighting)
        return check_family(GaussianFamily(pooling, shrinkage, *options))

    @property
    def pooling_(self) -> float:
        """The pooling used."""
        self._check_is_fitted()
        return float(self._asked.family.pooling)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Read the rows once and fit; with 'cv', first score every candidate on held-out rows.

        Rows in parts (`discriminant.rows`) come without y; 'cv' reads them twice more.
        """
        self.cv_ = None
        if not self.needs_rows:
            return super().fit(X, y, sample_weight)
        table = self._open_table(X, y, sample_weight)
        if len(table.schema.labels) < 2:
            raise LabelError.one_class(table.schema.labels[0])
        if isinstance(table, Parted):
            self.cv_ = grid_rows(table, self._candidates(), self.folds, seed=_SEED)
        else:
            fold = fold_numbers(self.folds, table.codes)
            self.cv_ = grid_losses(table, self._candidates(), fold)
        moments = read_classes(table, self.detail_for(len(table), table.width))
        return self._fit_from(moments, named=table.schema.named)

    def fit_moments(self, moments: ClassMoments | ClassRows) -> Self:
        """Fit from moments; 'cv' needs rows and is refused."""
        self.cv_ = None  # what was chosen belongs to other rows; `family` now says so
        return super().fit_moments(moments)

    def _candidates(self) -> Candidates:
        tried = [STEPS if v == "cv" else (v,) for v in (self.pooling, self.shrinkage)]
        options = (self.target, self.denominator, self.shrink, self.weighting)
        for pooling in tried[0]:
            check_family(GaussianFamily(pooling, tried[1][0], *options))
        family = GaussianFamily(1.0, 0.0, *options)
        return Candidates(family, np.array(tried[0]), tuple(tried[1]), (self.prior,))

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
