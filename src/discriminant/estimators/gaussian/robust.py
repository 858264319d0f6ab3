"""Robust LDA and QDA: class means and covariances by minimum covariance determinant (MCD).

    RobustQDA   mean and covariance of each class by MCD
    RobustLDA   mean m_k of each class by MCD; the rows minus their m_k, all classes together, give
                the common covariance and a common correction of the m_k by another MCD

RobustLDA is method B of Todorov and Pires (2007), as in R's `rrcov::Linda`. The estimates are
stored as class moments, so the rules are those of `gaussian.lda_qda`. `models.gaussian.mcd` has the
formulas.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from discriminant.engines.dispatch import read_classes
from discriminant.engines.partitioned_table import AnyTable, table_in_memory
from discriminant.errors import (
    NoRobustEstimateWarning,
    OptionError,
    WeightError,
    merge_warnings,
    warn,
)
from discriminant.estimators.base import Prior, available_if
from discriminant.estimators.gaussian.lda_qda import LDA, QDA, GaussianClassifier, check_family
from discriminant.models.gaussian.covariance import Target, class_degrees, pooled_degrees
from discriminant.models.gaussian.family import GaussianFamily
from discriminant.models.gaussian.mcd import MCD, columns_with_zero_mad, cutoff, fit_mcd, least_rows
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.table.blocks import Floats, Places, dense
from discriminant.table.memory import Table

_AT_MEDIANS = "The mean of the class is replaced by the median of each feature."
_CLASSICAL = "Its ordinary mean and covariance are used, which outlying rows can shift."
_ALL_CLASSICAL = (
    "The ordinary means and covariance of all classes are used, which outlying rows can shift."
)


def _needs_rows(model: Any) -> NoReturn:
    name = type(model).__name__
    raise AttributeError(
        f"{name} cannot add or remove rows, because robust estimates are not sums over rows: fit "
        f"all rows again, or use {name.removeprefix('Robust')}."
    )


class _NeedsEstimates:
    """Attribute of LDA and QDA that robust models lack: `from_parameters`."""

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        name = owner.__name__
        raise AttributeError(
            f"{name} estimates its parameters from rows. Known parameters are not estimated: use "
            f"{name.removeprefix('Robust')}.from_parameters."
        )


class RobustGaussianClassifier(GaussianClassifier):
    """Base class of Gaussian classifiers whose means and covariances are estimated by MCD.

    Parameters
    ----------
    prior : array of shape (K,), dict by label or None, default None
        Class priors, in the order of the sorted labels. None means the class shares of all rows,
        outlying rows included.
    support_fraction : float, default 0.5
        Share of the rows whose covariance determinant is minimised, from 0.5 to 1. With 0.5, nearly
        half of the rows can be outlying. A larger share is more accurate if fewer rows are
        outlying.
    shrinkage : float, default 0.0
        Shrinkage of the robust covariance toward `target`, from 0 (none) to 1.

    Attributes
    ----------
    outlying_ : array of shape (n,), bool
        Rows of the fit that are far from the mean of their class: farther than 97.5% of the rows
        would be if the class were Gaussian.
    distances_ : array of shape (n,)
        Squared robust Mahalanobis distance of each row of the fit from the mean of its class.
    means_ : array of shape (K, d)
        Robust class means.
    moments_ : ClassMoments
        Numbers of rows, with the robust means and covariances.
    """

    needs_rows = True
    _fit_methods = "fit"
    outlying_: npt.NDArray[np.bool_]
    distances_: Floats

    def __init__(
        self,
        *,
        prior: Prior | None = None,
        support_fraction: float = 0.5,
        shrinkage: float = 0.0,
        target: Target = "diagonal",
    ) -> None:
        self.prior = prior
        self.support_fraction = support_fraction
        self.shrinkage = shrinkage
        self.target = target

    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the model. All rows must fit into memory.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d), or partitioned table
            Rows. A partitioned table (`discriminant.rows`) must be small enough for memory.
        y : array of shape (n,)
            Class labels.
        sample_weight : array of shape (n,), default None
            Weight of each row, a whole number: a row of weight 2 counts as two rows.

        Returns
        -------
        self
        """
        for name in ("outlying_", "distances_"):
            self.__dict__.pop(name, None)
        fraction: Any = self.support_fraction
        if not (isinstance(fraction, Real) and 0.5 <= float(fraction) <= 1.0):
            raise OptionError.of("support_fraction", fraction, "a number from 0.5 to 1")
        if isinstance(self.shrinkage, str):
            allowed = "a number from 0 to 1 ('auto' and 'oas' are for ordinary covariances only)"
            raise OptionError.of("shrinkage", self.shrinkage, allowed)
        return super().fit(X, y, sample_weight)

    def fit_moments(self, moments: ClassMoments | ClassRows) -> Self:
        """Raise an error: moments are not robust. Use `fit`."""
        name = type(self).__name__
        allowed = f"rows, as in {name}().fit(X, y): moments include the outlying rows"
        raise OptionError.of("moments", type(moments).__name__, allowed)

    from_parameters: Any = _NeedsEstimates()

    @available_if(_needs_rows)
    def partial_fit(self, *args: Any, **options: Any) -> Self:
        """Not available: robust estimates are not sums over rows."""
        raise NotImplementedError

    @available_if(_needs_rows)
    def forget(self, *args: Any, **options: Any) -> Self:
        """Not available: robust estimates are not sums over rows."""
        raise NotImplementedError

    def _fit_table(self, table: AnyTable) -> Self:
        rows = table_in_memory(table, type(self).__name__)
        repeats = _whole_weights(rows, type(self).__name__)
        moments = read_classes(rows, self.detail_for(len(rows), rows.width))
        for k in np.flatnonzero(moments.weight <= 0):
            raise WeightError.zero_class(moments.labels[k])
        with merge_warnings():
            if isinstance(moments, ClassMoments):
                offsets = moments.anchor.offsets(dense(rows.features[:]))
                codes = rows.codes.astype(np.intp)
                if repeats is not None:
                    offsets, codes = np.repeat(offsets, repeats, axis=0), np.repeat(codes, repeats)
                search = _Search(moments, offsets, codes, float(self.support_fraction))
                moments = self._robust_moments(search)
            else:  # more features than rows
                least = least_rows(rows.width)
                warn(
                    NoRobustEstimateWarning.few_rows(
                        "The table", len(rows), rows.width, least, _ALL_CLASSICAL
                    )
                )
            self._fit_from(moments, named=rows.schema.named)
        distances = self._score_features(self._density().distances, rows.features)
        self.distances_ = distances[np.arange(len(rows)), rows.codes]
        self.outlying_ = self.distances_ > cutoff(self.n_features_in_)
        return self

    def _robust_moments(self, search: _Search) -> ClassMoments:
        """Return moments with robust means and scatters; defined by subclasses."""
        raise NotImplementedError


class RobustLDA(RobustGaussianClassifier, LDA):
    """Linear discriminant analysis with robust class means and a robust common covariance.

    The rule and `transform` are those of `LDA`, with estimates by minimum covariance determinant
    (MCD). These estimates stay close to the majority of a class even if nearly half of its rows are
    outliers. `outlying_` marks the rows that are far from their class.

    Parameters
    ----------
    Attributes
    ----------
    See Also
    --------
    LDA : Ordinary means and covariance, which are more accurate without outlying rows.
    RobustQDA : One robust covariance per class.

    Notes
    -----
    A class has no robust estimate if it has too few rows, or if half of its rows have the same
    value of some feature. Its mean is then replaced by the medians of the features, and a warning
    names the class.

    References
    ----------
    .. [1] Hubert, Rousseeuw & Verdonck (2012), A deterministic algorithm for robust location and
       scatter.
    .. [2] Todorov & Pires (2007), Comparative performance of several robust linear discriminant
       analysis methods.

    Examples
    --------
    >>> rng = np.random.default_rng(3)
    >>> X = rng.normal(size=(200, 2)) + np.repeat([[0.0, 0.0], [4.0, 0.0]], 100, axis=0)
    >>> X[:10] += 30.0  # ten rows of class 'a' are wrong
    >>> model = RobustLDA().fit(X, list("a" * 100 + "b" * 100))
    >>> model.means_.round(1).tolist()
    [[0.1, 0.1], [4.0, 0.1]]
    >>> int(model.outlying_[:10].sum()), int(model.outlying_[10:].sum())
    (10, 3)
    """

    @property
    def family(self) -> GaussianFamily:
        """Covariance family with one common covariance."""
        return check_family(GaussianFamily(1.0, self.shrinkage, self.target))

    @property
    def detail(self) -> Detail:
        """Level of detail of the moments that a fit needs."""
        return "pooled"

    def _robust_moments(self, search: _Search) -> ClassMoments:
        moments = search.moments
        means = np.empty_like(moments.mean)
        for k in range(len(means)):
            estimate = search.estimate(k, _AT_MEDIANS)
            means[k] = search.medians(k) if estimate is None else estimate.location
        centred = replace(search, offsets=search.offsets - means[search.codes])
        common = centred.estimate(None, _ALL_CLASSICAL)
        if common is None:
            return moments
        scatter = common.covariance * pooled_degrees(moments, "unbiased")
        return replace(moments, mean=means + common.location, scatter=scatter)


class RobustQDA(RobustGaussianClassifier, QDA):
    """Quadratic discriminant analysis with robust class means and covariances.

    The rule is that of `QDA`, with estimates by minimum covariance determinant (MCD). These
    estimates stay close to the majority of a class even if nearly half of its rows are outliers.
    `outlying_` marks the rows that are far from their class.

    Parameters
    ----------
    Attributes
    ----------
    See Also
    --------
    QDA : Ordinary means and covariances, which are more accurate without outlying rows.
    RobustLDA : One common covariance, for classes with few rows.

    Notes
    -----
    A class has no robust covariance if it has fewer than two rows per feature, or if half of its
    rows have the same value of some feature. Its ordinary mean and covariance are then used, and a
    warning names the class.

    References
    ----------
    .. [1] Hubert, Rousseeuw & Verdonck (2012), A deterministic algorithm for robust location and
       scatter.

    Examples
    --------
    >>> rng = np.random.default_rng(3)
    >>> X = rng.normal(size=(200, 1)) * np.repeat([[1.0], [5.0]], 100, axis=0)
    >>> X[:10] = 100.0  # ten rows of class 'a' are wrong
    >>> model = RobustQDA().fit(X, list("a" * 100 + "b" * 100))
    >>> model.covariance_.ravel().round(1).tolist()  # 911.0 for 'a' by QDA
    [1.4, 25.4]
    """

    @property
    def family(self) -> GaussianFamily:
        """Covariance family with one covariance per class."""
        family = GaussianFamily(0.0, self.shrinkage, self.target, shrink="mixed")
        return check_family(family)

    def _robust_moments(self, search: _Search) -> ClassMoments:
        moments = search.moments
        means, scatter = moments.mean.copy(), moments.scatter.copy()
        degrees = class_degrees(moments, "unbiased")
        for k in range(len(means)):
            estimate = search.estimate(k, _CLASSICAL)
            if estimate is not None:
                means[k], scatter[k] = estimate.location, estimate.covariance * degrees[k]
        return replace(moments, mean=means, scatter=scatter)


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Rows of all classes, from which robust estimates are computed."""

    moments: ClassMoments  # ordinary moments
    offsets: Floats  # (N, d) rows, repeated by their weights
    codes: Places  # (N,)
    support_fraction: float

    def estimate(self, code: int | None, instead: str) -> MCD | None:
        """Return the MCD estimate of one class, or of all rows if `code` is None.

        If it does not exist, return None and issue a warning.

        `instead` is the sentence of the warning that names the estimate used in its place.
        """
        rows = self._rows_of(code)
        n, d = rows.shape
        what = "The table" if code is None else f"Class '{self.moments.labels[code]}'"
        if n < least_rows(d):
            warn(NoRobustEstimateWarning.few_rows(what, n, d, least_rows(d), instead))
            return None
        constant = columns_with_zero_mad(rows)
        if constant.any():
            names = np.array(self.moments.features, dtype=object)[constant].tolist()
            warn(NoRobustEstimateWarning.equal_values(what, names, instead))
            return None
        estimate = fit_mcd(rows, support_fraction=self.support_fraction)
        if estimate is None:
            warn(NoRobustEstimateWarning.on_hyperplane(what, instead))
        return estimate

    def medians(self, code: int) -> Floats:
        """Return the median of each feature in a class (d,)."""
        return np.asarray(np.median(self._rows_of(code), axis=0))

    def _rows_of(self, code: int | None) -> Floats:
        return self.offsets if code is None else self.offsets[self.codes == code]


def _whole_weights(rows: Table, name: str) -> npt.NDArray[np.intp] | None:
    """Return the weights as numbers of repetitions; reject weights that are not whole numbers."""
    if rows.weight is None:
        return None
    for row in np.flatnonzero(rows.weight != np.rint(rows.weight)):
        raise WeightError.not_whole(int(row), float(rows.weight[row]), name)
    return rows.weight.astype(np.intp)
