"""Sparse LDA: discriminant directions that use few features, by an L1 penalty.

The formulas are in `models.gaussian.sparse_directions`. The penalty is a number, or it is chosen by
cross-validation (`assessment.resampling.held_out_penalty_path`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt

from discriminant.errors import OptionError
from discriminant.estimators.base import Prior
from discriminant.estimators.gaussian.feature_selection import (
    PenalisedClassifier,
    check_grid,
    is_number,
    is_whole,
)
from discriminant.estimators.gaussian.lda_qda import ProjectionMixin
from discriminant.models.gaussian.fisher import FisherRule
from discriminant.models.gaussian.sparse_directions import (
    StandardisedMeans,
    fit_sparse_directions,
)
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.table.blocks import Floats

_LARGEST = 1.999  # largest penalty of the default grid; 2 removes every feature of any table
_PATH_TOLERANCE = 1e-8  # tolerance of the directions whose held-out errors are compared


class SparseLDA(ProjectionMixin, PenalisedClassifier):
    """Sparse discriminant directions: Fisher's criterion with an L1 penalty.

    Features are treated as uncorrelated within classes, as in diagonal LDA. The larger the penalty,
    the fewer features each direction uses. `predict` classifies rows along the directions, and
    `transform` projects rows on them. With penalty 0 the classifier is diagonal LDA.

    Only class means and variances are needed: they are read in one pass, from memory or from a
    partitioned table, and rows can be added and removed.

    Parameters
    ----------
    penalty : float or 'cv', default 0.05
        Strength of the penalty, at least 0 and less than 2, relative to the largest ratio of
        between-class to within-class variance, as in R's `penalizedLDA`. With many features, only
        small penalties leave some of them in the model. 'cv': the value with the smallest held-out
        error; among ties the largest.
    n_components : int or None, default None
        Number of directions, at most K - 1. None means K - 1. There are fewer if the penalty
        removes every feature from a direction.
    prior : array of shape (K,), dict by label or None, default None
        Class priors, in the order of the sorted labels. None means the class shares of the rows.
    penalties : int or array, default 30
        With penalty='cv': the penalties to try, or their number. A number gives equal steps from 0
        to the smallest penalty that removes every feature.
    folds : int, array of shape (n,) or splitter, default 10
        Folds used to choose the penalty; as in `cross_validate`.
    tolerance : float, default 1e-12
        The iteration ends when no entry of a direction changes by more than this value.
    max_steps : int, default 10000
        Maximum number of steps for a direction.

    Attributes
    ----------
    penalty_ : float
        Penalty used.
    scalings_, centre_ : arrays of shape (d, r) and (d,)
        `transform(X)` is `(X - centre_) @ scalings_`. Columns of `scalings_` are the sparse
        directions. If features are uncorrelated, projections have variance one within classes.
    eigenvalues_ : array of shape (r,)
        Ratio of between-class to within-class variance along each direction.

    See Also
    --------
    ShrunkenCentroids : Selects features class by class, by thresholds of their means.
    Fisher : Directions without a penalty that take correlations into account.

    References
    ----------
    .. [1] Witten & Tibshirani (2011), Penalized classification using Fisher's linear discriminant.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 200)), np.repeat(["a", "b", "c"], 20)
    >>> X[y == "b", :2] += 3.0
    >>> X[y == "c", 1:3] += 3.0
    >>> model = SparseLDA(penalty=0.3).fit(X, y)
    >>> model.selected_features_.tolist()
    ['x0', 'x1', 'x2']
    """

    _penalty_option: ClassVar[str] = "penalty"

    def __init__(
        self,
        *,
        penalty: float | Literal["cv"] = 0.05,
        n_components: int | None = None,
        prior: Prior | None = None,
        penalties: int | npt.ArrayLike = 30,
        folds: Any = 10,
        tolerance: float = 1e-12,
        max_steps: int = 10_000,
    ) -> None:
        self.penalty = penalty
        self.n_components = n_components
        self.prior = prior
        self.penalties = penalties
        self.folds = folds
        self.tolerance = tolerance
        self.max_steps = max_steps

    def penalty_grid(self, moments: ClassMoments) -> Floats:
        """Return the penalties, in increasing order, among which cross-validation chooses."""
        penalties = self._option("penalties")
        if not is_whole(penalties, 2):
            return np.unique(np.asarray(penalties, dtype=np.float64))
        largest = StandardisedMeans.of(moments).largest_penalty()
        return np.unique(np.linspace(0.0, min(largest, _LARGEST), int(penalties)))

    def rules_at(self, moments: ClassMoments, penalties: Sequence[float]) -> tuple[FisherRule, ...]:
        """Return the rule fitted to moments for each penalty."""
        means, prior = StandardisedMeans.of(moments), self.prior_from(moments)
        tolerance = float(self.tolerance)
        if len(penalties) > 1:  # a path, of which only errors are used
            tolerance = max(tolerance, _PATH_TOLERANCE)
        limit = len(moments.labels) - 1
        components = limit if self.n_components is None else min(int(self.n_components), limit)
        return tuple(
            fit_sparse_directions(
                means,
                penalty=penalty,
                prior=prior,
                components=components,
                tolerance=tolerance,
                max_steps=int(self.max_steps),
            )
            for penalty in penalties
        )

    def _check_options(self) -> None:
        penalty: Any = self.penalty
        if not self.needs_rows and not (is_number(penalty) and 0.0 <= float(penalty) < 2.0):
            raise OptionError.of("penalty", penalty, "a number from 0 to less than 2, or 'cv'")
        if self.n_components is not None and not is_whole(self.n_components, 1):
            allowed = "None or a whole number of 1 or more"
            raise OptionError.of("n_components", self.n_components, allowed)
        penalties = self._option("penalties")
        check_grid("penalties", penalties)
        if np.ndim(penalties) == 1 and float(np.max(penalties)) >= 2.0:
            raise OptionError.of("penalties", penalties, "numbers from 0 to less than 2")
        tolerance: Any = self.tolerance
        if not (is_number(tolerance) and float(tolerance) > 0.0):
            raise OptionError.of("tolerance", tolerance, "a positive number")
        if not is_whole(self.max_steps, 1):
            raise OptionError.of("max_steps", self.max_steps, "a whole number of 1 or more")

    def _check_classes(self, moments: ClassMoments | ClassRows) -> None:
        limit = len(moments.labels) - 1
        if self.n_components is not None and self.n_components > limit >= 1:
            allowed = f"None or a whole number from 1 to {limit} ({limit + 1} classes)"
            raise OptionError.of("n_components", self.n_components, allowed)

    # --- fitted attributes ------------------------------------------------------------------------

    @property
    def penalty_(self) -> float:
        """Penalty used."""
        self._check_is_fitted()
        return self._asked._penalty_value()

    def directions(self) -> FisherRule:
        """Return the fitted rule, which contains the directions."""
        return cast(FisherRule, self.rule_)
