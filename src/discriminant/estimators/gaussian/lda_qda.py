"""LDA, QDA and nearest mean: Gaussian classes with one common covariance or one covariance each.

All belong to one family, which pools and shrinks the class covariances C_k. The covariance of class
k is

    S_k = (1 - pooling) C_k + pooling [(1 - shrinkage) C + shrinkage target]

    LDA           pooling 1                          linear boundaries
    QDA           pooling 0                          quadratic boundaries
    NearestMean   pooling 1, shrinkage 1             nearest class mean
    RDA           anything between (`gaussian.rda`)

C is the pooled covariance. The formulas are in `models.gaussian`. The base class
`DiscriminantProjection`, which `gaussian.fisher` uses too, projects rows on discriminant
directions.
"""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, Literal, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from discriminant.assessment.resampling.leave_one_out import gaussian_left_out_scores
from discriminant.assessment.resampling.rda_grid import Candidates, Grid, grid_on_folds
from discriminant.errors import DiscriminantWarning, OptionError
from discriminant.estimators.base import (
    LinearMomentClassifier,
    MomentClassifier,
    Prior,
    check_choice,
)
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
    fit_fisher_rule,
    fit_gaussian_family,
    is_wide,
)
from discriminant.models.rules import QuadraticRule, Rule
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.class_rows import ClassRows
from discriminant.table.blocks import Floats
from discriminant.table.memory import Table


class DiscriminantProjection(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, LinearMomentClassifier
):
    """Base class of linear classifiers that can project rows on discriminant directions.

    Attributes
    ----------
    scalings_, centre_ : arrays of shape (d, r) and (d,)
        `transform(X)` is `(X - centre_) @ scalings_`; its within-class covariance is the identity.
    eigenvalues_, canonical_correlations_, explained_variance_ratio_ : arrays of shape (r,)
        Three values for each direction: the ratio of between-class to within-class scatter, the
        correlation with the classes, and that ratio as a share of the sum of all ratios.
    """

    shrinkage: Shrinkage
    target: Target
    denominator: Denominator

    @property
    def family(self) -> GaussianFamily:
        """Covariance family with one common covariance, with its options validated."""
        return check_family(GaussianFamily(1.0, self.shrinkage, self.target, self.denominator))

    def directions(self) -> FisherRule:
        """Return the rule in the space of the discriminant directions; defined by subclasses."""
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
        """Directions (d, r) in the user's units: `transform(X)` is `(X - centre_) @ scalings_`."""
        rule = self.directions()
        return np.asarray(rule.scalings / rule.anchor.unit[:, None])

    @property
    def centre_(self) -> Floats:
        """Mean of the class means, weighted by the priors (d,)."""
        return self.directions().anchor.origin

    @property
    def eigenvalues_(self) -> Floats:
        """Ratio of between-class to within-class scatter along each direction (r,)."""
        return self.directions().eigenvalues

    @property
    def canonical_correlations_(self) -> Floats:
        """Correlation of each direction with the classes (r,).

        The correlation is sqrt(e / (1 + e)), where e is the eigenvalue of the direction.
        """
        eigenvalues = self.eigenvalues_
        return np.asarray(np.sqrt(eigenvalues / (1.0 + eigenvalues)))

    @property
    def explained_variance_ratio_(self) -> Floats:
        """Eigenvalue of each direction as a share of the sum of all eigenvalues (r,)."""
        return self.directions().share

    @property
    def _n_features_out(self) -> int:
        return int(self.directions().scalings.shape[1])


_LOG_2PI = float(np.log(2 * np.pi))
_LARGEST = float(np.finfo(np.float64).max)


class GaussianClassifier(MomentClassifier):
    """Base class of classifiers with Gaussian classes: densities, distances and random samples.

    Parameters
    ----------
    prior : array of shape (K,), dict by label or None, default None
        Class priors, in the order of the sorted labels. None: the class shares of the rows. Priors
        do not affect the covariances.
    shrinkage : float, 'auto' or 'oas', default 0.0
        Shrinkage of the covariance toward `target`, from 0 (none) to 1. LDA with shrinkage 1 and
        target 'diagonal' is diagonal LDA. 'auto': the optimal value estimated by the method of
        Ledoit and Wolf; 'oas': the optimal value for Gaussian rows (oracle approximating
        shrinkage).
    target : {'diagonal', 'scaled_identity', 'identity'}, default 'diagonal'
        Matrix toward which the covariance is shrunk: the diagonal matrix of the variances, the
        identity times the mean variance, or the identity.
    denominator : {'unbiased', 'ml', 'reliability'}, default 'unbiased'
        Denominator of a covariance. 'unbiased': n - K for the pooled covariance and n_k - 1 for
        that of one class, as in R and SAS. 'ml': n, as in scikit-learn since 1.9. 'reliability':
        the effective number of rows, for weights that are not counts.
    """

    can_marginalise = True  # whether rows with missing features can be scored

    def __init__(
        self,
        *,
        prior: Prior | None = None,
        shrinkage: Shrinkage = 0.0,
        target: Target = "diagonal",
        denominator: Denominator = "unbiased",
    ) -> None:
        self.prior = prior
        self.shrinkage: Any = shrinkage
        self.target = target
        self.denominator = denominator

    @property
    def family(self) -> GaussianFamily:
        """Covariance family, with its options validated; defined by subclasses."""
        raise AttributeError("family")

    @property
    def detail(self) -> Detail:
        """Level of detail of the moments that a fit needs: which sums they contain."""
        family = self.family
        if family.shrinkage == "auto":
            return "fourth"
        if not family.linear:
            return "class"
        return "diagonal" if family.shrinkage == 1.0 else "pooled"

    def detail_for(self, rows: int, width: int) -> Detail:
        """Return the level of detail to read: 'rows' if there are more features than rows."""
        detail = self.detail
        return "rows" if detail != "diagonal" and is_wide(rows, width) else detail

    def accepts(self, moments: ClassMoments | ClassRows) -> bool:
        """Return whether moments are enough for a fit. Pooled scatters include the variances."""
        detail = self.detail
        return moments.has(detail) or (detail == "diagonal" and moments.has("pooled"))

    def rule_from(self, moments: ClassMoments | ClassRows) -> Rule:
        """Return the rule fitted to moments, without changing the model."""
        return fit_gaussian_family(moments, family=self.family, prior=self.prior_from(moments))

    @property
    def shrinkage_(self) -> Any:
        """Shrinkage used: a number, or an array (K,) if it differs between classes.

        The value exceeds the option `shrinkage` if the rows were too few for the shrinkage
        requested.
        """
        return self._cached("shrinkage", self._compute_shrinkage)

    def _compute_shrinkage(self) -> Any:
        shrinkage, rule = family_shrinkage(self._present_moments, self._asked.family), self.rule_
        linear = not isinstance(rule, QuadraticRule)
        metrics = rule.metrics if isinstance(rule, QuadraticRule) else (self._shared_metric(),)
        forced = np.array([metric.shrunk for metric in metrics])
        if not forced.any():
            return shrinkage
        return float(forced[0]) if linear else np.maximum(forced, shrinkage)

    def leave_one_out_scores(self, moments: Any, table: Table) -> Floats | None:
        """Return scores (N, K): row i is scored by the rule fitted to all rows but i.

        The scores have a closed form.
        """
        return gaussian_left_out_scores(moments, table, family=self.family, prior=self.prior_from)

    @property
    def covariance_(self) -> Floats:
        """Covariance that the rule uses: (d, d) if common to all classes, else (K, d, d)."""
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
            Return log p(x | class) for each class instead of log p(x).

        Returns
        -------
        array of shape (n,), or (n, K) with `by_class`
        """
        rule = self._density()
        logdet = np.array([metric.logdet for metric in rule.metrics])
        units = float(np.log(self._present_moments.anchor.unit).sum())
        constants = self.n_features_in_ * _LOG_2PI
        densities = -0.5 * (self._score_rows(rule.distances, X) + logdet + constants) - units
        if by_class:
            return np.asarray(densities)
        joint = densities + rule.log_prior
        # if every class density underflows, the log density is -inf
        top = np.maximum(joint.max(axis=1), -_LARGEST)
        with np.errstate(divide="ignore"):
            return np.asarray(top + np.log(np.exp(joint - top[:, None]).sum(axis=1)))

    def marginal_scores(self, X: Floats) -> Floats:
        """Return scores (n, K) of rows with missing features (NaN), which are integrated out.

        The model must store moments. A model with more features than rows stores rows instead.
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
        """Return the rule that evaluates the class densities; a linear rule is converted to it."""
        rule = self.rule_
        if isinstance(rule, QuadraticRule):
            return rule
        metrics = (self._shared_metric(),) * len(rule.labels)
        return quadratic_rule(self._present_moments, metrics=metrics, prior=self.prior_)

    def _shared_metric(self) -> Metric:
        """Return the metric (factorised covariance) that all classes share."""
        return cast(Metric, self._cached("metric", self._compute_metric))

    def _compute_metric(self) -> Metric:
        with warnings.catch_warnings():
            # the fit has already issued these warnings
            warnings.simplefilter("ignore", DiscriminantWarning)
            return family_metric(self._present_moments, self._asked.family)


class LinearGaussianClassifier(LinearMomentClassifier, GaussianClassifier):
    """Base class of Gaussian classifiers with one common covariance, so with linear scores."""


# values of shrinkage that "cv" compares for LDA, denser near 0, where the loss changes fast
_SHRINKAGES = (0.0, 0.001, 0.003, 0.01, 0.03, *np.linspace(0.1, 1.0, 10).round(10).tolist())


class LDA(DiscriminantProjection, LinearGaussianClassifier):
    """Linear discriminant analysis: Gaussian classes with one common covariance C.

        score_k(x) = x' C^-1 m_k  -  m_k' C^-1 m_k / 2  +  log prior_k

    The class means m_k and C are computed in one pass over the rows. Cross-validation,
    leave-one-out, and adding or removing rows need no further pass over them. `transform` projects
    rows on the canonical directions.

    Parameters
    ----------
    shrinkage : float, 'auto', 'oas' or 'cv', default 0.0
        Shrinkage of the covariance toward `target`, from 0 (none) to 1. With shrinkage 1 and target
        'diagonal' the model is diagonal LDA. 'auto': the optimal value estimated by the method of
        Ledoit and Wolf; 'oas': the optimal value for Gaussian rows. 'cv': the value among 0, 0.001,
        0.003, 0.01, 0.03, 0.1, 0.2, ... 1 with the smallest held-out log loss.
    folds : int, array of shape (n,) or splitter, default 10
        Folds for shrinkage='cv'; as in `cross_validate`.

    Attributes
    ----------
    covariance_ : array of shape (d, d)
        Common covariance, after shrinkage.
    shrinkage_ : float
        Shrinkage used.
    cv_ : Grid or None
        Held-out log loss and error of every candidate, with shrinkage='cv'. `partial_fit` and
        `forget` keep the chosen value; `fit` chooses again.

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

    cv_: Grid | None = None

    def __init__(
        self,
        *,
        prior: Prior | None = None,
        shrinkage: Shrinkage | Literal["cv"] = 0.0,
        target: Target = "diagonal",
        denominator: Denominator = "unbiased",
        folds: Any = 10,
    ) -> None:
        self.prior = prior
        self.shrinkage: Any = shrinkage
        self.target = target
        self.denominator = denominator
        self.folds = folds

    @property
    def needs_rows(self) -> bool:
        """Whether the shrinkage is chosen on held-out rows."""
        return isinstance(self.shrinkage, str) and self.shrinkage == "cv"

    @property
    def family(self) -> GaussianFamily:
        """Covariance family; its shrinkage may be chosen by cross-validation."""
        shrinkage = self.shrinkage
        if self.needs_rows:
            if self.cv_ is None:
                allowed = "a number where there are no rows to hold out"
                raise OptionError.of("shrinkage", "cv", allowed)
            shrinkage = self.cv_.shrinkage[self.cv_.best()[1]]
        return check_family(GaussianFamily(1.0, shrinkage, self.target, self.denominator))

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model in one pass over the rows; shrinkage='cv' reads them two more times.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d), or partitioned table
            Rows. A partitioned table (`discriminant.rows`) has its own labels and weights.
        y : array of shape (n,)
            Class labels: numbers, texts or booleans.
        sample_weight : array of shape (n,), default None
            Weight of each row. An integer weight has the effect of repeating the row.

        Returns
        -------
        self
        """
        self.cv_ = None
        if not self.needs_rows:
            return super().fit(X, y, sample_weight)
        family = check_family(GaussianFamily(1.0, 0.0, self.target, self.denominator))
        self.__dict__.pop("_allowed", None)
        table = self._open_table(X, y, sample_weight)
        candidates = Candidates(family, np.ones(1), _SHRINKAGES, (self.prior,))
        self.cv_ = grid_on_folds(table, candidates, self.folds)
        return self._fit_table(table)

    def fit_moments(self, moments: ClassMoments | ClassRows) -> Self:
        """Fit the model from class moments. Raise `OptionError` with 'cv', which needs rows."""
        self.cv_ = None  # a shrinkage chosen by an earlier fit is not valid for these moments
        return super().fit_moments(moments)

    def directions(self) -> FisherRule:
        """Return the rule in the space of the canonical directions."""
        return cast(FisherRule, self._cached("directions", self._fit_directions))

    def _fit_directions(self) -> FisherRule:
        family, options = self._asked.family, ProjectionOptions()
        return fit_fisher_rule(
            self._present_moments, family=family, prior=self.prior_, projection=options
        )


class NearestMean(LinearGaussianClassifier):
    """Nearest class mean by Euclidean distance.

    It is a special case of the Gaussian family: spherical classes with one common variance s^2,

        score_k(x) = -|x - m_k|^2 / (2 s^2)  +  log prior_k

    Parameters
    ----------
    prior : array of shape (K,), dict by label or None, default None
        Class priors. None: equal priors, so that the class with the nearest mean is predicted.

    Attributes
    ----------
    covariance_ : array of shape (d, d)
        s^2 times the identity.

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
        """Covariance family with one variance for all classes and features."""
        return check_family(GaussianFamily(1.0, 1.0, "scaled_identity", self.denominator))

    def prior_from(self, moments: ClassMoments | ClassRows) -> Floats:
        """Return the class priors (K,): the option `prior`, or equal priors if it is None."""
        K = len(moments.labels)
        return class_prior(moments, np.full(K, 1.0 / K) if self.prior is None else self.prior)


class QDA(GaussianClassifier):
    """Quadratic discriminant analysis: Gaussian classes, each with its own covariance C_k.

        score_k(x) = -(x - m_k)' C_k^-1 (x - m_k) / 2  -  log det C_k / 2  +  log prior_k

    Parameters
    ----------
    shrinkage : float, 'auto' or 'oas', default 0.0
        Shrinkage of each class covariance toward a target of its own, as in `LDA`. With target
        'identity' and denominator 'ml' it equals `reg_param` of scikit-learn.

    Attributes
    ----------
    covariance_ : array of shape (K, d, d)
        Class covariances, after shrinkage.
    shrinkage_ : float or array of shape (K,)
        Shrinkage used.

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

    @property
    def family(self) -> GaussianFamily:
        """Covariance family with one covariance per class."""
        family = GaussianFamily(0.0, self.shrinkage, self.target, self.denominator, shrink="mixed")
        return check_family(family)


def check_family(family: GaussianFamily) -> GaussianFamily:
    """Return the covariance family; raise `OptionError` if one of its options is invalid."""
    if not _is_share(family.pooling):
        raise OptionError.of("pooling", family.pooling, "a number from 0 to 1")
    estimated = isinstance(family.shrinkage, str) and family.shrinkage in ("auto", "oas")
    if not estimated and not _is_share(family.shrinkage):
        allowed = "a number from 0 to 1, 'auto' or 'oas' (0 for none)"
        raise OptionError.of("shrinkage", family.shrinkage, allowed)
    check_choice("target", family.target, TARGETS)
    check_choice("denominator", family.denominator, DENOMINATORS)
    check_choice("shrink", family.shrink, ("pooled", "mixed"))
    check_choice("weighting", family.weighting, ("covariance", "friedman"))
    return check_shrinkage(family)


def _is_share(value: Any) -> bool:
    return isinstance(value, float | int | Real) and 0.0 <= float(value) <= 1.0
