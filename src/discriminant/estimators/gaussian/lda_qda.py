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
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from discriminant.engines.partitioned_table import AnyTable
from discriminant.errors import (
    DiscriminantWarning,
    MomentsMismatchError,
    OptionError,
    ScarceRowsWarning,
    warn,
)
from discriminant.estimators.base import (
    IgnoresUnderflow,
    LinearMomentClassifier,
    MomentClassifier,
    Prior,
    check_choice,
    to_memory,
)
from discriminant.models.gaussian.bayes_error import (
    BayesError,
    estimate_bayes_error,
    exact_bayes_error,
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
    linear_rule,
    quadratic_rule,
    scores_with_missing,
)
from discriminant.models.gaussian.fisher import FisherRule, ProjectionOptions
from discriminant.models.gaussian.inverse_wishart_prior import MapPrior, conjugate_prior
from discriminant.models.gaussian.known_parameters import ClassParameters, class_parameters
from discriminant.models.gaussian.mixture import (
    MixtureRule,
    scores_with_missing as mixture_scores_with_missing,
)
from discriminant.models.gaussian.predictive_densities import (
    PREDICTIVE,
    StudentRule,
    fit_student,
    student_scores_with_missing,
)
from discriminant.models.gaussian.structured_covariances import STRUCTURES, Structure
from discriminant.models.gaussian.wide import (
    family_shrinkage,
    fit_fisher_rule,
    fit_gaussian_from_moments_or_rows,
    is_wide,
    shared_family_metric,
)
from discriminant.models.rules import QuadraticRule, Rule
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.posterior import posterior
from discriminant.table.blocks import Codes, Features, Floats, Labels, numbered_names
from discriminant.table.labels import encode_known_labels
from discriminant.table.memory import Table, as_table

if TYPE_CHECKING:  # the assessment is imported when it is used: a fit does not need it
    from discriminant.assessment.inference.proc_discrim_summary import DiscriminantSummary
    from discriminant.assessment.resampling.leave_one_out import (
        LeftOutQuadraticRules,
        LeftOutRules,
    )
    from discriminant.assessment.resampling.rda_grid import Grid


class ProjectionMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin, IgnoresUnderflow):
    """Mixin of classifiers that can project rows on discriminant directions."""

    _score_rows: Callable[[Callable[[Features], Floats], Any], Floats]

    def directions(self) -> FisherRule:
        """Return the rule in the space of the discriminant directions; defined by the class."""
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
            `(X - centre_) @ scalings_`.
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
    def _n_features_out(self) -> int:
        return int(self.directions().scalings.shape[1])


class DiscriminantProjection(ProjectionMixin, LinearMomentClassifier):
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


Predictive = Literal["plug-in", "student"]
OutlierKind = Literal["mahalanobis", "relative_mahalanobis", "energy"]
OUTLIER_KINDS: tuple[OutlierKind, ...] = ("mahalanobis", "relative_mahalanobis", "energy")

_LOG_2PI = float(np.log(2 * np.pi))
_LARGEST = float(np.finfo(np.float64).max)


class GaussianClassifier(MomentClassifier):
    """Base class of classifiers with Gaussian classes: densities, distances and random samples.

    Parameters
    ----------
    prior : array of shape (K,), dict by label or None, default None
        Class priors, in the order of the sorted labels. None means the class shares of the rows.
        Priors do not affect the covariances.
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
    predictive : {'plug-in', 'student'}, default 'plug-in'
        Density of a new row of a class. 'plug-in': Gaussian with the estimated mean and covariance.
        'student': the Student-t density that averages over the uncertainty of both, so that
        posteriors are less extreme where classes have few rows.
    """

    can_marginalise = True  # whether rows with missing features can be scored
    predictive: Predictive = "plug-in"

    def __init__(
        self,
        *,
        prior: Prior | None = None,
        shrinkage: Shrinkage = 0.0,
        target: Target = "diagonal",
        denominator: Denominator = "unbiased",
        predictive: Predictive = "plug-in",
    ) -> None:
        self.prior = prior
        self.shrinkage: Any = shrinkage
        self.target = target
        self.denominator = denominator
        self.predictive = predictive

    @property
    def family(self) -> GaussianFamily:
        """Covariance family, with its options validated; defined by subclasses."""
        raise AttributeError("family")

    def family_for(self, moments: Any) -> GaussianFamily:
        """Return the covariance family of a fit to these moments."""
        return self.family

    @property
    def fixed_family(self) -> GaussianFamily | None:
        """Covariance family of plug-in densities if it is the same for all moments, else None."""
        return self.family if self.predictive == "plug-in" else None

    @property
    def detail(self) -> Detail:
        """Level of detail of the moments that a fit needs."""
        return self.family.detail

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
        check_choice("predictive", self.predictive, PREDICTIVE)
        family, prior = self.family_for(moments), self.prior_from(moments)
        if self.predictive == "student":
            return fit_student(moments, family=family, prior=prior)
        return fit_gaussian_from_moments_or_rows(moments, family=family, prior=prior)

    @property
    def shrinkage_(self) -> Any:
        """Shrinkage used: a number, or an array (K,) if it differs between classes.

        The value exceeds the option `shrinkage` if the rows were too few for the shrinkage
        requested.
        """
        return self._cached("shrinkage", self._compute_shrinkage)

    def _compute_shrinkage(self) -> Any:
        moments, family = self._present_moments, self._asked.family
        if isinstance(moments, ClassParameters):
            return 0.0
        shrinkage, linear = family_shrinkage(moments, family), family.linear
        metrics = (self._shared_metric(),) if linear else cast(QuadraticRule, self.rule_).metrics
        forced = np.array([metric.shrunk for metric in metrics])
        if not forced.any():
            return shrinkage
        return float(forced[0]) if linear else np.maximum(forced, shrinkage)

    def leave_one_out_scores(self, moments: Any, table: Table) -> Floats | None:
        """Return scores (N, K): row i is scored by the rule fitted to all rows but i.

        The scores have a closed form, except Student-t scores with several covariances.
        """
        from discriminant.assessment.resampling.leave_one_out import (
            gaussian_left_out_scores,
            student_left_out_scores,
        )

        student = self.predictive == "student"
        left_out_scores = student_left_out_scores if student else gaussian_left_out_scores
        return left_out_scores(moments, table, family=self.family, prior=self.prior_from)

    def left_out_rules(
        self, moments: Any, table: Table
    ) -> LeftOutRules | LeftOutQuadraticRules | None:
        """Return for each row the rule fitted without it; None if there is no closed form."""
        from discriminant.assessment.resampling.leave_one_out import left_out_rules

        if self.predictive == "student":
            return None
        return left_out_rules(moments, table, family=self.family, prior=self.prior_from)

    @property
    def covariance_(self) -> Floats:
        """Covariance that the rule uses: (d, d) if common to all classes, else (K, d, d)."""
        unit = self._present_moments.anchor.unit
        square = unit[:, None] * unit
        if self._asked.family.linear:
            return np.asarray(self._shared_metric().covariance() * square)
        rule = cast(QuadraticRule, self.rule_)
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
        units = float(np.log(self._present_moments.anchor.unit).sum())
        if isinstance(rule, StudentRule):
            densities = self._score_rows(rule.log_joint, X) - rule.log_prior - units
        else:
            logdet = np.array([metric.logdet for metric in rule.metrics])
            constants = self.n_features_in_ * _LOG_2PI
            distances = self._score_rows(rule.distances, X)
            densities = -0.5 * (distances + logdet + constants) - units
        if by_class:
            return np.asarray(densities)
        joint = densities + rule.log_prior
        # if every class density underflows, the log density is -inf
        top = np.maximum(joint.max(axis=1), -_LARGEST)
        with np.errstate(divide="ignore"):
            return np.asarray(top + np.log(np.exp(joint - top[:, None]).sum(axis=1)))

    def outlier_scores(self, X: Any, kind: OutlierKind = "mahalanobis") -> Floats:
        """Score how unusual rows are; larger scores are more unusual.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows.
        kind : {'mahalanobis', 'relative_mahalanobis', 'energy'}, default 'mahalanobis'
            'mahalanobis': squared Mahalanobis distance from the nearest class mean.
            'relative_mahalanobis': that distance minus the squared Mahalanobis distance from the
            mean of all rows, computed with the covariance of all rows (Ren et al. 2021). It is
            meant for classes with one common covariance; otherwise it may decrease as a row moves
            away. 'energy': -log p(x), the energy -log sum_k exp f_k of the scores f_k = log p(x |
            k) + log prior_k.

        Returns
        -------
        array of shape (n,)
        """
        check_choice("kind", kind, OUTLIER_KINDS)
        if kind == "energy":
            return -self.log_density(X)
        nearest = np.asarray(self.mahalanobis(X).min(axis=1))
        if kind == "mahalanobis":
            return nearest
        background: QuadraticRule = self._cached("background", self._fit_background)
        return nearest - self._score_rows(background.distances, X)[:, 0]

    def _fit_background(self) -> QuadraticRule:
        """Return the rule of a single Gaussian fitted to all rows, shrunken as in the model."""
        moments, family = self._present_moments, self._asked.family
        merged = merge_classes(moments)
        amount = float(np.max(self.shrinkage_))
        one = GaussianFamily(1.0, amount, family.target, family.denominator)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiscriminantWarning)
            metric = shared_family_metric(merged, one)
        mean = np.atleast_2d(merged.centre)
        return QuadraticRule(merged.labels, merged.anchor, mean, (metric,), np.zeros(1))

    def marginal_scores(self, X: Floats) -> Floats:
        """Return scores (n, K) of rows with missing features (NaN), which are integrated out.

        The model must store moments. A model with more features than rows stores rows instead.
        """
        moments, rule = self._present_moments, self.rule_
        if isinstance(moments, ClassParameters):
            classes = MixtureRule(moments.labels, self._density(), np.arange(len(moments.labels)))
            return mixture_scores_with_missing(np.asarray(X), classes, self._density())
        family, prior = self._asked.family_for(moments), self.prior_
        if isinstance(rule, StudentRule):
            return student_scores_with_missing(X, rule, moments=moments, family=family, prior=prior)
        return scores_with_missing(X, moments=moments, family=family, prior=prior)

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
        for k in range(len(rule.labels)):
            chosen = codes == k
            count = int(chosen.sum())
            normal = rng.standard_normal((count, self.n_features_in_))
            uniform = rng.random(count) if isinstance(rule, StudentRule) else None
            rows[chosen] = self._rows_of_class(k, normal, uniform)
        return rows, rule.labels[codes]

    def bayes_error(
        self, prior: Prior | None = None, n: int = 1 << 16, seed: int | np.random.Generator = 0
    ) -> BayesError:
        """Compute the Bayes error, the error of the best possible classifier if the model is true.

        The result is exact for two classes with one covariance. Otherwise it is an integral,
        estimated by quasi-Monte Carlo with a standard error. The estimated densities are treated as
        true, so the result does not estimate the error on new rows; `cross_validate` does.

        Parameters
        ----------
        prior : array of shape (K,) or dict by label, default None
            Class priors to use in place of the fitted ones.
        n : int, default 65536
            Number of points for each class.
        seed : int or Generator, default 0
            Seed of the points.

        Returns
        -------
        BayesError
            The error, its standard error (0 if exact), and the error of each class.
        """
        from scipy.special import ndtri

        rule, own = self._density(), self.prior_
        new = own if prior is None else class_prior(self._present_moments, prior)
        student = isinstance(rule, StudentRule)
        if self._asked.family.linear and not student and len(rule.labels) == 2:
            gap = rule.mean[1] - rule.mean[0]
            return exact_bayes_error(rule.labels, gap, rule.metrics[0], new)
        change = np.log(new) - np.log(own)

        def draw(code: int, uniform: Floats) -> Floats:
            normal: Floats = ndtri(uniform[:, : self.n_features_in_])
            return self._rows_of_class(code, normal, uniform[:, -1] if student else None)

        return estimate_bayes_error(
            lambda rows: posterior(self.rule_.scores(rows) + change),
            draw,
            labels=rule.labels,
            prior=new,
            dimensions=self.n_features_in_ + student,
            n=n,
            seed=seed,
        )

    def _rows_of_class(self, code: int, normal: Floats, uniform: Floats | None) -> Floats:
        """Return random rows of a class, given standard normal numbers (n, d).

        Student-t densities need uniform numbers (n,) too.
        """
        rule = self._density()
        noise = rule.metrics[code].sample(normal)
        if isinstance(rule, StudentRule) and uniform is not None:
            noise *= rule.radii(code, uniform)[:, None]
        return np.asarray(self._present_moments.anchor.values(rule.mean[code] + noise))

    def _read_additional(self, table: AnyTable) -> Any:
        if isinstance(self.moments_, ClassParameters):
            raise MomentsMismatchError.known_parameters("Adding or removing rows")
        return super()._read_additional(table)

    @classmethod
    def _of_parameters(cls, parameters: ClassParameters, prior: Prior | None) -> Self:
        """Return a fitted model with known parameters; a given `prior` is stored as its option."""
        model = cls(prior=None if prior is None else parameters.weight)
        model._copy_options()
        named = parameters.features != numbered_names(len(parameters.features))
        state: Any = parameters
        model._set_state(state, parameters.rule(parameters.weight), named=named)
        return model

    def summary(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        cross_validate: bool = True,
    ) -> DiscriminantSummary:
        """Summarise classes, covariances, distances and discriminant functions.

        Parameters
        ----------
        X, y, sample_weight
            Rows with labels. If they are passed, the summary includes tables of their
            classification.
        cross_validate : bool, default True
            Whether to add the table in which each row is left out of its fit, with the class shares
            of all rows as priors.

        Returns
        -------
        DiscriminantSummary
            `print` shows it in the layout of SAS's PROC DISCRIM; `frame` and `to_dict` convert it.
        """
        from discriminant.assessment.inference.proc_discrim_summary import summarise_gaussian
        from discriminant.assessment.resampling.cross_validate import leave_one_out

        moments, rule = self._present_moments, self._density()
        resubstitution = left_out = None
        if X is not None:
            X, y, sample_weight = to_memory(X, y, sample_weight, "A classification table")
            table = as_table(X, y, weight=sample_weight, labels=rule.labels)
            weight = np.ones(len(table)) if table.weight is None else table.weight
            predicted = self.predict(X)
            resubstitution = _classified(table.codes, predicted, weight, rule.labels)
            if cross_validate:
                held = leave_one_out(
                    self._asked, X, y, sample_weight=sample_weight, prior="fixed"
                ).predicted
                left_out = _classified(table.codes, held, weight, rule.labels)
        return summarise_gaussian(
            type(self).__name__,
            rule,
            features=moments.features,
            rows=moments.rows,
            weight=moments.weight,
            prior=self.prior_,
            linear=not isinstance(self.rule_, QuadraticRule),
            resubstitution=resubstitution,
            left_out=left_out,
        )

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
            moments = self._present_moments
            if isinstance(moments, ClassParameters):
                return moments.metrics[0]
            return shared_family_metric(moments, self._asked.family)


def merge_classes(moments: ClassMoments | ClassRows) -> Any:
    """Return the moments of all rows as one class."""
    labels = moments.labels.tolist()
    return moments.group({labels[0]: labels})


class LinearGaussianClassifier(LinearMomentClassifier, GaussianClassifier):
    """Base class of Gaussian classifiers with one common covariance, so with linear scores."""


# values of shrinkage that "cv" compares for LDA, closer together near 0, where the loss changes
# fast
_SHRINKAGES = (0.0, 0.001, 0.003, 0.01, 0.03, *np.linspace(0.1, 1.0, 10).round(10).tolist())


class LDA(DiscriminantProjection, LinearGaussianClassifier):
    """Linear discriminant analysis: Gaussian classes with one common covariance C.

        score_k(x) = x' C^-1 m_k  -  m_k' C^-1 m_k / 2  +  log prior_k

    The class means m_k and C are computed in one pass over the rows. Cross-validation and
    leave-one-out need no refitting, and rows can be added to a fit and removed from it. `transform`
    projects rows on the canonical directions.

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
        predictive: Predictive = "plug-in",
        folds: Any = 10,
    ) -> None:
        self.prior = prior
        self.shrinkage: Any = shrinkage
        self.target = target
        self.denominator = denominator
        self.predictive = predictive
        self.folds = folds

    @property
    def needs_rows(self) -> bool:
        """Whether the shrinkage is chosen by cross-validation, which needs the rows."""
        return self._chooses_shrinkage

    @property
    def _chooses_shrinkage(self) -> bool:
        return isinstance(self.shrinkage, str) and self.shrinkage == "cv"

    @property
    def family(self) -> GaussianFamily:
        """Covariance family; its shrinkage may be chosen by cross-validation."""
        shrinkage = self.shrinkage
        if self._chooses_shrinkage:
            if self.cv_ is None:
                allowed = "a number if there are no rows to hold out"
                raise OptionError.of("shrinkage", "cv", allowed)
            shrinkage = self.cv_.shrinkage[self.cv_.best()[1]]
        family = GaussianFamily(1.0, shrinkage, self.target, self.denominator)
        return check_family(family, shrinkage=SHRINKAGE_WITH_CV)

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
        if not self._chooses_shrinkage:
            return super().fit(X, y, sample_weight)
        if self.predictive == "student":
            allowed = "'plug-in' with shrinkage='cv', which minimises the loss of plug-in densities"
            raise OptionError.of("predictive", "student", allowed)
        from discriminant.assessment.resampling.rda_grid import Candidates, grid_on_folds

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

    @classmethod
    def from_parameters(
        cls,
        mean: npt.ArrayLike,
        covariance: npt.ArrayLike,
        prior: Prior | None = None,
        *,
        classes: npt.ArrayLike | None = None,
        features: Sequence[str] | None = None,
    ) -> LDA:
        """Create a fitted model from known parameters, without rows.

        Parameters
        ----------
        mean : array of shape (K, d)
            Class means.
        covariance : array of shape (d, d)
            Common covariance.
        prior : array of shape (K,), dict by label or None, default None
            Class priors, in the order of the means. None means equal priors.
        classes : array of shape (K,), default None
            Class labels, in the order of the means. None means 0 to K - 1.
        features : sequence of d str, default None
            Column names. None means that columns have no names.

        Returns
        -------
        LDA
            Model that predicts and samples, and that can be saved and exported. Methods that need
            rows or moments, such as `partial_fit` and `transform`, raise an error.

        Examples
        --------
        >>> model = LDA.from_parameters([[0.0], [2.0]], [[1.0]], classes=["low", "high"])
        >>> model.predict([[0.9], [1.1]]).tolist(), model.bayes_error()
        (['low', 'high'], BayesError(0.158655, exact))
        """
        parameters = class_parameters(
            mean, covariance, prior, shared=True, classes=classes, features=features
        )
        return cls._of_parameters(parameters, prior)

    def directions(self) -> FisherRule:
        """Return the rule in the space of the canonical directions."""
        if isinstance(self._present_moments, ClassParameters):
            raise MomentsMismatchError.known_parameters("A projection on canonical directions")
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

    One row for each class is enough to predict classes; s^2 is then the variance of all rows, with
    a warning, because the probabilities are not reliable.

    Parameters
    ----------
    prior : array of shape (K,), dict by label or None, default None
        Class priors. None means equal priors, so that the class with the nearest mean is predicted.

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

    def rule_from(self, moments: ClassMoments | ClassRows) -> Rule:
        """Return the rule fitted to moments, without changing the model.

        With one row for each class, the variance within classes cannot be estimated. The variance
        of all rows is used instead, which does not affect the predicted classes.
        """
        if not _one_row_per_class(moments):
            return super().rule_from(moments)
        warn(ScarceRowsWarning.one_row_per_class(len(moments.labels)))
        metric = shared_family_metric(merge_classes(moments), self.family)
        return linear_rule(
            moments.reduce("diagonal"), metric=metric, prior=self.prior_from(moments)
        )

    def _compute_metric(self) -> Metric:
        if not _one_row_per_class(self._present_moments):
            return super()._compute_metric()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiscriminantWarning)
            return shared_family_metric(merge_classes(self._present_moments), self._asked.family)


def _one_row_per_class(moments: ClassMoments | ClassRows) -> bool:
    """Return whether there are two or more classes, and exactly one row of each."""
    return len(moments.labels) > 1 and bool((moments.rows == 1).all())


class QDA(GaussianClassifier):
    """Quadratic discriminant analysis: Gaussian classes, each with its own covariance C_k.

        score_k(x) = -(x - m_k)' C_k^-1 (x - m_k) / 2  -  log det C_k / 2  +  log prior_k

    Parameters
    ----------
    shrinkage : float, 'auto' or 'oas', default 0.0
        Shrinkage of each class covariance toward a target of its own, as in `LDA`. With target
        'identity' and denominator 'ml' it equals `reg_param` of scikit-learn.
    covariance : {'full', 'diagonal', 'spherical', 'factor'}, default 'full'
        Structure of the class covariances. 'diagonal': uncorrelated features (Gaussian naive
        Bayes). 'spherical': uncorrelated features of equal variance. 'factor': a matrix of rank
        `factors` plus a diagonal matrix, by maximum likelihood (factor analysis).
    factors : int, default 1
        Number of factors of covariance='factor'.
    groups : list of lists of labels or None, default None
        Classes of one list share a covariance; other classes have their own. Boundaries between
        classes of one group are linear.
    map_prior : dict, 'default' or None, default None
        Normal-inverse-Wishart prior of the mean and covariance of each class, which are then
        estimated by their joint posterior mode (MAP); see Notes. None means no prior.

    Attributes
    ----------
    covariance_ : array of shape (K, d, d)
        Class covariances, after shrinkage.
    means_ : array of shape (K, d)
        Class means; with `map_prior`, their posterior modes.
    shrinkage_ : float or array of shape (K,)
        Shrinkage used.

    See Also
    --------
    LDA : One common covariance.
    RDA : Between LDA and QDA, for classes with few rows.

    Notes
    -----
    The prior of `map_prior` is mean_k ~ N(m, S_k / strength), S_k ~ inverse Wishart(scale,
    degrees). With n rows in class k, their mean x, scatter W and d features, the posterior mode is

        mean_k = (strength m + n x) / (strength + n)
        S_k    = (scale + W + strength n / (strength + n) (x - m)(x - m)') / (degrees + n + d + 2)

    The dict has any of the entries 'mean' (d,), 'strength', 'scale' (d, d) and 'degrees'. Entries
    that are left out (all of them with 'default') are: the mean of all rows; 0.01; the pooled
    covariance times degrees - d - 1, so that it is the prior mean of S_k; and d + 2. The option
    `denominator` applies to the pooled covariance only.

    Examples
    --------
    >>> X = [[-1.0], [0.0], [1.0], [-9.0], [0.0], [9.0]]  # equal means, different variances
    >>> QDA().fit(X, list("aaabbb")).predict([[0.5], [5.0]]).tolist()
    ['a', 'b']
    >>> model = QDA(groups=[["b", "c"]]).fit(X + [[4.0], [6.0]], list("aaabbbcc"))
    >>> model.covariance_.ravel().round(2).tolist()  # (162 + 2) / (2 + 1) for 'b' and 'c'
    [1.0, 54.67, 54.67]
    """

    map_prior: MapPrior | Literal["default"] | None = None

    def __init__(
        self,
        *,
        prior: Prior | None = None,
        shrinkage: Shrinkage = 0.0,
        target: Target = "diagonal",
        denominator: Denominator = "unbiased",
        predictive: Predictive = "plug-in",
        covariance: Structure = "full",
        factors: int = 1,
        groups: Sequence[Sequence[Any]] | None = None,
        map_prior: MapPrior | Literal["default"] | None = None,
    ) -> None:
        super().__init__(
            prior=prior,
            shrinkage=shrinkage,
            target=target,
            denominator=denominator,
            predictive=predictive,
        )
        self.covariance = covariance
        self.factors = factors
        self.groups = groups
        self.map_prior = map_prior

    @classmethod
    def from_parameters(
        cls,
        mean: npt.ArrayLike,
        covariance: npt.ArrayLike,
        prior: Prior | None = None,
        *,
        classes: npt.ArrayLike | None = None,
        features: Sequence[str] | None = None,
    ) -> QDA:
        """Create a fitted model from known parameters, without rows.

        Parameters
        ----------
        mean : array of shape (K, d)
            Class means.
        covariance : array of shape (K, d, d)
            Covariance of each class.
        prior, classes, features
            As in `LDA.from_parameters`.

        Returns
        -------
        QDA
            Model that predicts and samples, and that can be saved and exported. Methods that need
            rows or moments, such as `partial_fit`, raise an error.

        Examples
        --------
        >>> model = QDA.from_parameters([[0.0], [0.0]], [[[1.0]], [[9.0]]], classes=["in", "out"])
        >>> model.predict([[0.5], [5.0]]).tolist()
        ['in', 'out']
        """
        parameters = class_parameters(
            mean, covariance, prior, shared=False, classes=classes, features=features
        )
        return cls._of_parameters(parameters, prior)

    @property
    def family(self) -> GaussianFamily:
        """Covariance family with one covariance per class, or per group of classes."""
        check_choice("covariance", self.covariance, STRUCTURES)
        factors: Any = self.factors
        if not isinstance(factors, Integral) or int(factors) < 1:
            raise OptionError.of("factors", factors, "a whole number of 1 or more")
        groups: Any = [] if self.groups is None else self.groups
        lists = (list, tuple, set, np.ndarray)
        if not (isinstance(groups, lists) and all(isinstance(each, lists) for each in groups)):
            raise OptionError.of("groups", groups, "a list of lists of labels")
        family = GaussianFamily(
            0.0,
            self.shrinkage,
            self.target,
            self.denominator,
            shrink="mixed",
            structure=self.covariance,
            factors=int(factors),
            groups=tuple(map(tuple, groups)),
        )
        if self.map_prior is not None and (family.structured or family.shrinkage != 0.0):
            allowed = "None with covariance=, groups= or shrinkage="
            raise OptionError.of("map_prior", self.map_prior, allowed)
        if self.predictive == "student" and (family.structured or self.map_prior is not None):
            allowed = "'plug-in' with covariance=, groups= or map_prior="
            raise OptionError.of("predictive", self.predictive, allowed)
        return check_family(family)

    @property
    def fixed_family(self) -> GaussianFamily | None:
        """Covariance family of plug-in densities; None with `map_prior`."""
        return super().fixed_family if self.map_prior is None else None

    def detail_for(self, rows: int, width: int) -> Detail:
        """Return the level of detail to read from a table of this shape."""
        family = self.family
        plain = self.map_prior is None and not family.structured
        return super().detail_for(rows, width) if plain else family.detail

    def accepts(self, moments: ClassMoments | ClassRows) -> bool:
        """Return whether moments are enough for a fit."""
        return moments.has(self.detail)

    def rule_from(self, moments: ClassMoments | ClassRows) -> Rule:
        """Return the rule fitted to moments, without changing the model."""
        if self.map_prior is None:
            return super().rule_from(moments)
        estimates, family = self._estimates(moments)
        return fit_gaussian_from_moments_or_rows(
            estimates, family=family, prior=self.prior_from(moments)
        )

    def leave_one_out_scores(self, moments: Any, table: Table) -> Floats | None:
        """Return scores (N, K): row i is scored by the rule fitted to all rows but i.

        Returns None if there is no closed form.
        """
        if self.map_prior is not None or self.family.structured:
            return None
        return super().leave_one_out_scores(moments, table)

    def marginal_scores(self, X: Floats) -> Floats:
        """Return scores (n, K) of rows with missing features (NaN), which are integrated out."""
        if self._asked.map_prior is None:
            return super().marginal_scores(X)
        moments, family = self._asked._estimates(self._present_moments)
        return scores_with_missing(X, moments=moments, family=family, prior=self.prior_)

    @property
    def means_(self) -> Floats:
        """Class means (K, d)."""
        self._check_is_fitted()
        if self._asked.map_prior is None:
            return super().means_
        return np.asarray(self._asked._estimates(self._present_moments)[0].means)

    def _estimates(self, moments: Any) -> tuple[Any, GaussianFamily]:
        """Return moments with the estimated means and covariances, and the covariance family."""
        family = self.family
        if self.map_prior is None:
            return moments, family
        prior = conjugate_prior(self.map_prior, moments, family.denominator)
        return prior.posterior_mode(moments), replace(family, denominator="ml")


def _classified(
    codes: Codes, predicted: npt.NDArray[Any], weight: Floats, labels: Labels
) -> Floats:
    """Return the (K, K) confusion matrix of row weights: true class by predicted class."""
    table = np.zeros((len(labels), len(labels)))
    np.add.at(table, (codes, encode_known_labels(predicted, labels)), weight)
    return table


SHRINKAGE_WITH_CV = "a number from 0 to 1, 'auto', 'oas' or 'cv' (0 for none)"


def check_family(
    family: GaussianFamily,
    *,
    pooling: str = "a number from 0 to 1",
    shrinkage: str = "a number from 0 to 1, 'auto' or 'oas' (0 for none)",
) -> GaussianFamily:
    """Return the covariance family; raise `OptionError` if one of its options is invalid.

    The texts `pooling` and `shrinkage` describe the values that the estimator accepts.
    """
    if not _is_share(family.pooling):
        raise OptionError.of("pooling", family.pooling, pooling)
    estimated = isinstance(family.shrinkage, str) and family.shrinkage in ("auto", "oas")
    if not estimated and not _is_share(family.shrinkage):
        raise OptionError.of("shrinkage", family.shrinkage, shrinkage)
    check_choice("target", family.target, TARGETS)
    check_choice("denominator", family.denominator, DENOMINATORS)
    check_choice("shrink", family.shrink, ("pooled", "mixed"))
    check_choice("weighting", family.weighting, ("covariance", "friedman"))
    return check_shrinkage(family)


def _is_share(value: Any) -> bool:
    return isinstance(value, float | int | Real) and 0.0 <= float(value) <= 1.0
