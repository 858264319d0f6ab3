"""LDA, QDA and NearestMean: Gaussian classes with a common covariance, or one covariance each.

All are members of one family, which pools and shrinks the class covariances C_k:

    S_k = (1 - pooling) C_k + pooling [(1 - shrinkage) C + shrinkage target]

    LDA           pooling 1                          linear boundaries
    QDA           pooling 0                          quadratic boundaries
    NearestMean   pooling 1, shrinkage 1             nearest class mean
    RDA           anything between (`gaussian.rda`)

The formulas are in `models.gaussian`. `DiscriminantProjection`, shared with `gaussian.fisher`,
projects rows on discriminant directions.
"""

from __future__ import annotations

import warnings
from dataclasses import fields
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from discriminant.assessment.resampling.leave_one_out import gaussian_left_out_scores
from discriminant.errors import DiscriminantWarning, OptionError
from discriminant.estimators.base import LinearMomentClassifier, MomentClassifier, Prior
from discriminant.models.gaussian.covariance import (
    DENOMINATORS,
    TARGETS,
    Denominator,
    Metric,
    Shrinkage,
    Target,
)
from discriminant.models.gaussian.family import (
    GaussianFamily,
    check_shrinkage,
    class_prior,
    quadratic_rule,
    scores_with_missing,
)
from discriminant.models.gaussian.fisher import FisherRule, ProjectionOptions
from discriminant.models.gaussian.wide import (
    family_metric,
    family_shrinkage,
    fit_family,
    fit_fisher_rule,
    is_wide,
)
from discriminant.models.rules import QuadraticRule, Rule
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.stored_rows import ClassRows
from discriminant.table.blocks import Floats
from discriminant.table.memory import Table


class DiscriminantProjection(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, LinearMomentClassifier
):
    """A linear classifier that projects rows on discriminant directions."""

    def directions(self) -> FisherRule:
        """Return the rule in the discriminant space; defined by subclasses."""
        raise AttributeError("directions")

    def transform(self, X: Any) -> Floats:
        """Project rows on the discriminant directions.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows; columns of a data frame are matched by name.

        Returns
        -------
        array of shape (n, r)
            `(X - centre_) @ scalings_`; its within-class covariance is the identity.
        """
        return self._score_rows(self.directions().project, X)

    @property
    def scalings_(self) -> Floats:
        """(d, r) directions in the user's units: `transform` is (X - centre_) @ scalings_."""
        rule = self.directions()
        return np.asarray(rule.scalings / rule.anchor.unit[:, None])

    @property
    def centre_(self) -> Floats:
        """(d,) prior-weighted mean of the class means."""
        return self.directions().anchor.origin

    @property
    def eigenvalues_(self) -> Floats:
        """(r,) ratio of between-class to within-class scatter along each direction."""
        return self.directions().eigenvalues

    @property
    def canonical_correlations_(self) -> Floats:
        """(r,) correlation of each direction with the classes, sqrt(e / (1 + e))."""
        eigenvalues = self.eigenvalues_
        return np.asarray(np.sqrt(eigenvalues / (1.0 + eigenvalues)))

    @property
    def explained_variance_ratio_(self) -> Floats:
        """(r,) share of each direction in the sum of all eigenvalues."""
        return self.directions().share

    @property
    def _n_features_out(self) -> int:
        return int(self.directions().scalings.shape[1])


_LOG_2PI = float(np.log(2 * np.pi))
_LARGEST = float(np.finfo(np.float64).max)


class GaussianClassifier(MomentClassifier):
    """A member of the Gaussian family, with densities, distances and samples."""

    can_marginalise = True  # whether rows with missing features can be scored

    @property
    def family(self) -> GaussianFamily:
        """Formula of the covariances, with its options checked; defined by subclasses."""
        raise AttributeError("family")

    @property
    def detail(self) -> Detail:
        """Sums that the moments must contain for this member of the family."""
        family = self.family
        if family.shrinkage == "auto":
            return "fourth"
        if not family.linear:
            return "class"
        return "diagonal" if family.shrinkage == 1.0 else "pooled"

    def detail_for(self, rows: int, width: int) -> Detail:
        """Detail to read: the rows themselves if there are fewer of them than features."""
        return "rows" if self.detail != "diagonal" and is_wide(rows, width) else self.detail

    def accepts(self, moments: ClassMoments | ClassRows) -> bool:
        """Whether moments contain what a fit needs; pooled scatters include shared variances."""
        return moments.holds(self.detail) or (self.detail == "diagonal" and moments.holds("pooled"))

    def rule_from(self, moments: ClassMoments | ClassRows) -> Rule:
        """Return the rule fitted to moments; nothing is stored."""
        return fit_family(moments, family=self.family, prior=self.prior_from(moments))

    @property
    def shrinkage_(self) -> Any:
        """Shrinkage used: a number, or (K,) if it differs between classes.

        Larger than the option if too few rows made more shrinkage necessary.
        """
        return self._cached("shrinkage", self._compute_shrinkage)

    def _compute_shrinkage(self) -> Any:
        asked, rule = family_shrinkage(self._present_moments, self._asked.family), self.rule_
        linear = not isinstance(rule, QuadraticRule)
        metrics = rule.metrics if isinstance(rule, QuadraticRule) else (self._shared_metric(),)
        forced = np.array([metric.shrunk for metric in metrics])
        if not forced.any():
            return asked
        return float(forced[0]) if linear else np.maximum(forced, asked)

    def leave_one_out_scores(self, moments: Any, table: Table) -> Floats | None:
        """(N, K) scores of each row by the rule fitted to all other rows, in closed form."""
        return gaussian_left_out_scores(moments, table, family=self.family, prior=self.prior_from)

    @property
    def covariance_(self) -> Floats:
        """(d, d) common covariance, or (K, d, d) covariance of each class, as the rule uses it."""
        unit = self._present_moments.anchor.unit
        rule, square = self.rule_, unit[:, None] * unit
        if not isinstance(rule, QuadraticRule):
            return np.asarray(self._shared_metric().covariance() * square)
        return np.asarray([metric.covariance() * square for metric in rule.metrics])

    def mahalanobis(self, X: Any) -> Floats:
        """Compute squared Mahalanobis distances from the class means.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows.

        Returns
        -------
        array of shape (n, K)
        """
        return self._score_rows(self._density().distances, X)

    def log_density(self, X: Any, by_class: bool = False) -> Floats:
        """Compute the log density of rows under the fitted model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows.
        by_class : bool, default False
            Return log p(x | class) of each class in place of log p(x).

        Returns
        -------
        array of shape (n,), or (n, K) with `by_class`
        """
        rule = self._density()
        logdet = np.array([metric.logdet for metric in rule.metrics])
        units = float(np.log(self._present_moments.anchor.unit).sum())
        inside = (
            -0.5 * (self._score_rows(rule.distances, X) + logdet + self.n_features_in_ * _LOG_2PI)
            - units
        )
        if by_class:
            return np.asarray(inside)
        joint = inside + rule.log_prior
        top = np.maximum(joint.max(axis=1), -_LARGEST)  # beyond float64 all are -inf
        with np.errstate(divide="ignore"):
            return np.asarray(top + np.log(np.exp(joint - top[:, None]).sum(axis=1)))

    def marginal_scores(self, X: Floats) -> Floats:
        """(n, K) scores of rows with missing features (NaN), which are integrated out.

        The model must hold moments, not rows (as it does if features outnumber rows).
        """
        return scores_with_missing(
            X, moments=self._present_moments, family=self._asked.family, prior=self.prior_
        )

    def sample(self, n: int, seed: int | np.random.Generator) -> tuple[Floats, npt.NDArray[Any]]:
        """Draw random rows and their labels from the fitted model.

        Parameters
        ----------
        n : int
            Number of rows.
        seed : int or Generator
            Seed.

        Returns
        -------
        rows : array of shape (n, d)
        labels : array of shape (n,)
        """
        rng = np.random.default_rng(seed)
        rule = self._density()
        codes = rng.choice(len(rule.labels), size=n, p=np.exp(rule.log_prior))
        rows = np.empty((n, self.n_features_in_))
        for k, metric in enumerate(rule.metrics):
            chosen = codes == k
            noise = metric.sample(rng.standard_normal((int(chosen.sum()), self.n_features_in_)))
            rows[chosen] = self._present_moments.anchor.values(rule.mean[k] + noise)
        return rows, rule.labels[codes]

    def _density(self) -> QuadraticRule:
        """The model as Gaussian densities, also if its scores are linear."""
        rule = self.rule_
        if isinstance(rule, QuadraticRule):
            return rule
        metrics = (self._shared_metric(),) * len(rule.labels)
        return quadratic_rule(self._present_moments, metrics=metrics, prior=self.prior_)

    def _shared_metric(self) -> Metric:
        """Metric of the common covariance."""
        metric = self._cached("metric", self._compute_metric)
        assert isinstance(metric, Metric)
        return metric

    def _compute_metric(self) -> Metric:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiscriminantWarning)  # raised by the fit already
            return family_metric(self._present_moments, self._asked.family)


class LinearGaussianClassifier(LinearMomentClassifier, GaussianClassifier):
    """A member of the Gaussian family with linear scores."""


class LDA(DiscriminantProjection, LinearGaussianClassifier):
    """Linear discriminant analysis: Gaussian classes with one common covariance C.

        score_k(x) = x' C^-1 m_k  -  m_k' C^-1 m_k / 2  +  log prior_k

    One pass over the rows gives the class means m_k and C; cross-validation, leave-one-out, adding
    and removing rows need no further pass. `transform` projects rows on the canonical directions.

    Parameters
    ----------
    prior : array of shape (K,), dict by label or None, default None
        Class priors, in the order of the sorted labels. None: the class shares of the rows. Priors
        enter the intercepts only, never the covariance.
    shrinkage : float, 'auto' or 'oas', default 0.0
        Shrinkage of the covariance toward `target`, from 0 (none) to 1; 1 with target 'diagonal' is
        diagonal LDA. 'auto': the optimum by Ledoit and Wolf; 'oas': the optimum for Gaussian rows.
    target : {'diagonal', 'scaled_identity', 'identity'}, default 'diagonal'
        Shrinkage target: the variances, their mean, or the identity.
    denominator : {'unbiased', 'ml', 'reliability'}, default 'unbiased'
        Denominator of the covariance: n - K (as R and SAS), n (as scikit-learn since 1.9), or the
        effective number for weights that are not counts.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Class labels, sorted.
    prior_ : array of shape (K,)
        Class priors.
    means_ : array of shape (K, d)
        Class means.
    covariance_ : array of shape (d, d)
        Common covariance, after shrinkage.
    coef_, intercept_ : arrays of shape (K, d) and (K,); (1, d) and (1,) for two classes
        Coefficients in the user's units.
    shrinkage_ : float
        Shrinkage used.
    scalings_, centre_ : arrays of shape (d, r) and (d,)
        `transform(X)` is (X - centre_) @ scalings_.
    eigenvalues_, canonical_correlations_, explained_variance_ratio_ : arrays of shape (r,)
        Of each canonical direction.
    moments_ : ClassMoments
        Moments of the fit; `partial_fit` and `forget` update them.
    n_features_in_, feature_names_in_
        Number of features, and their names if the rows had any.

    See Also
    --------
    QDA : One covariance per class.
    RDA : Between LDA and QDA.
    Fisher : The discriminant directions, and reduced-rank LDA.
    Logistic : Linear boundaries without the Gaussian assumption.

    Examples
    --------
    >>> model = LDA().fit([[0.0], [1.0], [4.0], [5.0]], ["low", "low", "high", "high"])
    >>> model.predict([[0.4], [4.4]]).tolist()
    ['low', 'high']
    """

    def __init__(
        self,
        *,
        prior: Prior | None = None,
        shrinkage: Shrinkage = 0.0,
        target: Target = "diagonal",
        denominator: Denominator = "unbiased",
    ) -> None:
        self.prior = prior
        self.shrinkage = shrinkage
        self.target = target
        self.denominator = denominator

    @property
    def family(self) -> GaussianFamily:
        """One covariance, shrunk."""
        return check_family(GaussianFamily(1.0, self.shrinkage, self.target, self.denominator))

    def directions(self) -> FisherRule:
        """Return the rule along the canonical directions."""
        rule = self._cached("directions", self._compute_directions)
        assert isinstance(rule, FisherRule)
        return rule

    def _compute_directions(self) -> FisherRule:
        return fit_fisher_rule(
            self._present_moments,
            family=self._asked.family,
            prior=self.prior_,
            projection=ProjectionOptions(),
        )


class NearestMean(LinearGaussianClassifier):
    """Nearest class mean by Euclidean distance.

    The corner of the Gaussian family: spherical classes with one common variance s^2,

        score_k(x) = -|x - m_k|^2 / (2 s^2)  +  log prior_k

    Parameters
    ----------
    prior : array of shape (K,), dict by label or None, default None
        Class priors. None: equal priors, so that the nearest mean wins.
    denominator : {'unbiased', 'ml', 'reliability'}, default 'unbiased'
        Denominator of the variance, as in `LDA`.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Class labels, sorted.
    prior_ : array of shape (K,)
        Class priors.
    means_ : array of shape (K, d)
        Class means.
    covariance_ : array of shape (d, d)
        s^2 times the identity.
    coef_, intercept_ : arrays of shape (K, d) and (K,); (1, d) and (1,) for two classes
        Coefficients in the user's units.
    moments_ : ClassMoments
        Moments of the fit; `partial_fit` and `forget` update them.
    n_features_in_, feature_names_in_
        Number of features, and their names if the rows had any.

    See Also
    --------
    LDA : Distances in units of the common covariance.

    Examples
    --------
    >>> model = NearestMean().fit([[0.0, 0.0], [2.0, 0.0], [5.0, 1.0], [7.0, 1.0]], list("aabb"))
    >>> model.predict([[3.0, 0.0], [4.0, 0.0]]).tolist()  # means (1, 0) and (6, 1)
    ['a', 'b']
    """

    def __init__(
        self, *, prior: Prior | None = None, denominator: Denominator = "unbiased"
    ) -> None:
        self.prior = prior
        self.denominator = denominator

    @property
    def family(self) -> GaussianFamily:
        """One variance for all classes and features."""
        return check_family(GaussianFamily(1.0, 1.0, "scaled_identity", self.denominator))

    def prior_from(self, moments: ClassMoments | ClassRows) -> Floats:
        """(K,) class priors: `prior`, or equal ones."""
        K = len(moments.labels)
        return class_prior(moments, np.full(K, 1.0 / K) if self.prior is None else self.prior)


class QDA(GaussianClassifier):
    """Quadratic discriminant analysis: Gaussian classes, each with its own covariance C_k.

        score_k(x) = -(x - m_k)' C_k^-1 (x - m_k) / 2  -  log det C_k / 2  +  log prior_k

    Parameters
    ----------
    prior : array of shape (K,), dict by label or None, default None
        Class priors, in the order of the sorted labels. None: the class shares of the rows.
    shrinkage : float, 'auto' or 'oas', default 0.0
        Shrinkage of each class covariance toward its own target, as in `LDA`. With target
        'identity' and denominator 'ml' it is scikit-learn's `reg_param`.
    target : {'diagonal', 'scaled_identity', 'identity'}, default 'diagonal'
        Shrinkage target.
    denominator : {'unbiased', 'ml', 'reliability'}, default 'unbiased'
        Denominator of the covariances; 'unbiased' divides by n_k - 1.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Class labels, sorted.
    prior_ : array of shape (K,)
        Class priors.
    means_ : array of shape (K, d)
        Class means.
    covariance_ : array of shape (K, d, d)
        Class covariances, after shrinkage.
    shrinkage_ : float or array of shape (K,)
        Shrinkage used.
    moments_ : ClassMoments
        Moments of the fit; `partial_fit` and `forget` update them.
    n_features_in_, feature_names_in_
        Number of features, and their names if the rows had any.

    See Also
    --------
    LDA : One common covariance.
    RDA : Between LDA and QDA, for classes with few rows.

    Examples
    --------
    >>> X = [[-1.0], [0.0], [1.0], [-9.0], [0.0], [9.0]]  # equal means, different variances
    >>> QDA().fit(X, list("aaabbb")).predict([[0.5], [5.0]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        *,
        prior: Prior | None = None,
        shrinkage: Shrinkage = 0.0,
        target: Target = "diagonal",
        denominator: Denominator = "unbiased",
    ) -> None:
        self.prior = prior
        self.shrinkage = shrinkage
        self.target = target
        self.denominator = denominator

    @property
    def family(self) -> GaussianFamily:
        """One covariance per class."""
        family = GaussianFamily(0.0, self.shrinkage, self.target, self.denominator, shrink="mixed")
        return check_family(family)


def check_family(family: GaussianFamily) -> GaussianFamily:
    """Return the family, or raise OptionError for an invalid option; valid ones are remembered."""
    options = tuple(getattr(family, field.name) for field in fields(family))
    try:
        _check_family(*options)
    except TypeError:  # an option without a hash is invalid: the check itself says which
        _check_family.__wrapped__(*options)
    return family


@lru_cache(maxsize=512, typed=True)
def _check_family(*options: Any) -> None:
    family = GaussianFamily(*options)
    unit = "a number from 0 to 1"
    for name in ("pooling", "shrinkage"):
        value = getattr(family, name)
        if name == "shrinkage" and isinstance(value, str) and value in ("auto", "oas"):
            continue
        if not isinstance(value, Real) or not 0.0 <= float(value) <= 1.0:
            words = f"{unit}, 'auto' or 'oas' (0 for none)" if name == "shrinkage" else unit
            raise OptionError.of(name, value, words)
    for name, allowed in (
        ("target", TARGETS),
        ("denominator", DENOMINATORS),
        ("shrink", ("pooled", "mixed")),
        ("weighting", ("covariance", "friedman")),
    ):
        if getattr(family, name) not in allowed:
            raise OptionError.of(name, getattr(family, name), f"one of {', '.join(allowed)}")
    check_shrinkage(family)
