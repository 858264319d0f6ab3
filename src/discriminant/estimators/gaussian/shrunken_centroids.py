"""Nearest shrunken centroids (PAM): a diagonal Gaussian classifier that selects features.

The formulas are in `models.gaussian.shrunken_centroids`. The threshold is a number, or it is chosen
by cross-validation (`assessment.resampling.held_out_penalty_path`).
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
from discriminant.models.gaussian.shrunken_centroids import (
    CentroidDifferences,
    ShrunkenCentroidRule,
    check_class_rows,
)
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.table.blocks import Floats


class ShrunkenCentroids(PenalisedClassifier):
    """Nearest shrunken centroids (PAM): class means shrunk towards the overall mean.

    For every feature and class, the difference between the class mean and the overall mean is
    divided by its standard error. A difference below `threshold` is set to zero, and a larger
    difference is reduced by `threshold`. A feature whose differences are all zero is not used, so
    that few of many features remain. Features are treated as independent within classes, as in
    diagonal LDA.

    Only class means and variances are needed: they are read in one pass, from memory or from a
    partitioned table, and rows can be added and removed.

    Parameters
    ----------
    threshold : float or 'cv', default 1.0
        Amount by which standardised differences are reduced. 'cv': the value with the smallest
        held-out error; among equal errors the largest, which leaves the fewest features. With the
        default `offset_percent` the standard errors of typical features are doubled, so that a
        threshold of 1 corresponds to a t statistic of about 2.
    offset_percent : float, default 50.0
        Percentile of the standard deviations of all features that is added to each of them. It
        keeps features with very small standard deviations from being selected by chance. The
        percentile ignores columns that are constant in all rows.
    prior : array of shape (K,), dict by label or None, default None
        Class priors, in the order of the sorted labels. None means the class shares of the rows.
    thresholds : int or array, default 30
        With threshold='cv': the thresholds to try, or their number. A number gives equal steps from
        0 to the threshold that removes every feature.
    folds : int, array of shape (n,) or splitter, default 10
        Folds used to choose the threshold; as in `cross_validate`.

    Attributes
    ----------
    threshold_ : float
        Threshold used.
    centroids_ : array of shape (K, d)
        Shrunken centroids. A feature that is not selected has its overall mean in every class.
    differences_ : array of shape (K, d)
        Standardised differences after shrinking; zero where a class does not differ.
    scales_ : array of shape (d,)
        Standard deviations within classes, plus the offset. 1 for a constant column.
    offset_ : float
        Offset that is added to the standard deviations.

    See Also
    --------
    SDA : Selects features by scores that are adjusted for correlation.
    SparseLDA : Sparse discriminant directions.
    LDA : `LDA(shrinkage=1.0)` is diagonal LDA with all features.

    References
    ----------
    .. [1] Tibshirani, Hastie, Narasimhan & Chu (2002), Diagnosis of multiple cancer types by
       shrunken centroids of gene expression, PNAS 99.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 1000)), np.repeat(["a", "b"], 20)
    >>> X[y == "b", :3] += 2.0
    >>> model = ShrunkenCentroids(threshold="cv").fit(X, y)
    >>> model.selected_features_[:3].tolist()
    ['x0', 'x1', 'x2']
    """

    _penalty_option: ClassVar[str] = "threshold"

    def __init__(
        self,
        *,
        threshold: float | Literal["cv"] = 1.0,
        offset_percent: float = 50.0,
        prior: Prior | None = None,
        thresholds: int | npt.ArrayLike = 30,
        folds: Any = 10,
    ) -> None:
        self.threshold = threshold
        self.offset_percent = offset_percent
        self.prior = prior
        self.thresholds = thresholds
        self.folds = folds

    def penalty_grid(self, moments: ClassMoments) -> Floats:
        """Return the thresholds, in increasing order, among which cross-validation chooses."""
        thresholds = self._option("thresholds")
        if not is_whole(thresholds, 2):
            return np.unique(np.asarray(thresholds, dtype=np.float64))
        largest = self._standardised(moments).largest
        return np.unique(np.linspace(0.0, largest, int(thresholds)))

    def rules_at(self, moments: ClassMoments, penalties: Sequence[float]) -> tuple[Any, ...]:
        """Return the rule fitted to moments for each threshold."""
        differences, prior = self._standardised(moments), self.prior_from(moments)
        return tuple(differences.rule(threshold, prior=prior) for threshold in penalties)

    def _standardised(self, moments: ClassMoments) -> CentroidDifferences:
        return CentroidDifferences.of(moments, offset_percent=float(self.offset_percent))

    def _check_classes(self, moments: ClassMoments | ClassRows) -> None:
        check_class_rows(moments)

    def _check_options(self) -> None:
        threshold: Any = self.threshold
        if not self.needs_rows and not (is_number(threshold) and float(threshold) >= 0.0):
            raise OptionError.of("threshold", threshold, "a number of 0 or more, or 'cv'")
        percent: Any = self.offset_percent
        if not (is_number(percent) and 0.0 <= float(percent) <= 100.0):
            raise OptionError.of("offset_percent", percent, "a number from 0 to 100")
        check_grid("thresholds", self._option("thresholds"))

    # --- fitted attributes --------------------------------------------------------------------

    @property
    def threshold_(self) -> float:
        """Threshold used."""
        return self._centroid_rule().threshold

    @property
    def centroids_(self) -> Floats:
        """Shrunken centroids (K, d)."""
        rule = self._centroid_rule()
        return np.asarray(rule.anchor.values(rule.centroid))

    @property
    def differences_(self) -> Floats:
        """Standardised differences after shrinking (K, d)."""
        return self._centroid_rule().shrunken

    @property
    def scales_(self) -> Floats:
        """Standard deviations within classes, plus the offset (d,)."""
        rule = self._centroid_rule()
        return np.asarray(rule.scale * rule.anchor.unit)

    @property
    def offset_(self) -> float:
        """Offset that is added to the standard deviations."""
        return self._centroid_rule().offset

    def _centroid_rule(self) -> ShrunkenCentroidRule:
        return cast(ShrunkenCentroidRule, self.rule_)
