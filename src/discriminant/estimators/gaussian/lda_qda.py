"""LDA, QDA, RDA and NearestMean: members of one family, told apart by two numbers.

What classifiers share that also project rows on discriminant directions.
"""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from discriminant.assessment.resampling.leave_one_out import gaussian_left_out_scores
from discriminant.errors import DiscriminantWarning, OptionError
from discriminant.estimators.base import LinearMomentClassifier, MomentClassifier
from discriminant.models.gaussian.covariance import DENOMINATORS, TARGETS, Metric
from discriminant.models.gaussian.family import (
    GaussianFamily,
    check_shrinkage,
    class_prior,
    quadratic_rule,
)
from discriminant.models.gaussian.fisher import FisherRule, ProjectionOptions
from discriminant.models.gaussian.fit import (
    family_metric,
    family_shrinkage,
    fit_family,
    fit_fisher_rule,
    scores_with_missing,
)
from discriminant.models.gaussian.wide import is_wide
from discriminant.models.rules import QuadraticRule, Rule
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.class_rows import ClassRows
from discriminant.table.blocks import Floats
from discriminant.table.memory import Table


class DiscriminantProjection(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, LinearMomentClassifier
):
    """A linear classifier with a discriminant space; a class adds `directions`."""

    def directions(self) -> FisherRule:
        """The rule in the discriminant space."""
        raise AttributeError("directions")

    def transform(self, X: Any) -> Floats:
        """(n, r) rows along the directions, counted from the prior-weighted centre of the means.

        The within-class covariance of what comes out is the identity.
        """
        rule = self.directions()
        if not self._is_plain_array(X):
            X = self._open_features(X)
        return self._score_rows(rule.project, X)

    @property
    def scalings_(self) -> Floats:
        """(d, r) directions in the user's numbers: `transform` is (X - centre_) @ scalings_."""
        rule = self.directions()
        return np.asarray(rule.scalings / rule.anchor.unit[:, None])

    @property
    def centre_(self) -> Floats:
        """(d,) prior-weighted mean of the class means."""
        return self.directions().anchor.origin

    @property
    def eigenvalues_(self) -> Floats:
        """(r,) S_b over S_w along each direction."""
        return self.directions().eigenvalues

    @property
    def canonical_correlations_(self) -> Floats:
        """(r,) correlation of each direction with the classes, sqrt(eigenvalue / (1 + it))."""
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
    """A member of the Gaussian family, and what only a generative model can say."""

    can_marginalise = True  # whether it can do without features that a row lacks

    @property
    def family(self) -> GaussianFamily:
        """The formula of the covariances, with its options checked."""
        raise AttributeError("family")

    @property
    def detail(self) -> Detail:
        """What the moments must hold for this member of the family."""
        family = self.family
        if family.shrinkage == "auto":
            return "fourth"
        if not family.linear:
            return "class"
        return "diagonal" if family.shrinkage == 1.0 else "pooled"

    def detail_for(self, rows: int, width: int) -> Detail:
        """What is kept of a table: its rows, where they are few and their products would not be."""
        return "rows" if self.detail != "diagonal" and is_wide(rows, width) else self.detail

    def accepts(self, moments: ClassMoments | ClassRows) -> bool:
        """As of every classifier; where variances are shared, pooled scatters have them too."""
        return moments.holds(self.detail) or (self.detail == "diagonal" and moments.holds("pooled"))

    def rule_from(self, moments: ClassMoments | ClassRows) -> Rule:
        """The fitted rule, from moments alone."""
        return fit_family(moments, family=self.family, prior=self.prior_from(moments))

    @property
    def shrinkage_(self) -> Any:
        """The shrinkage used, a number, or (K,) where it differs between classes.

        Where too few rows made one necessary that was not asked for, it is that.
        """
        return self._cached("shrinkage", self._work_out_shrinkage)

    def _work_out_shrinkage(self) -> Any:
        asked, rule = family_shrinkage(self._present_moments, self._asked.family), self.rule_
        linear = not isinstance(rule, QuadraticRule)
        metrics = rule.metrics if isinstance(rule, QuadraticRule) else (self._shared_metric(),)
        forced = np.array([metric.shrunk for metric in metrics])
        if not forced.any():
            return asked
        return float(forced[0]) if linear else np.maximum(forced, asked)

    def leave_one_out_scores(self, moments: Any, table: Table) -> Floats | None:
        """(N, K) scores of each row by the rule of all others, where there is a closed form."""
        return gaussian_left_out_scores(moments, table, family=self.family, prior=self.prior_from)

    @property
    def covariance_(self) -> Floats:
        """(d, d) the covariance that classes share, or (K, d, d) that of each; as it is used."""
        unit = self._present_moments.anchor.unit
        rule, square = self.rule_, unit[:, None] * unit
        if not isinstance(rule, QuadraticRule):
            return np.asarray(self._shared_metric().covariance() * square)
        return np.asarray([metric.covariance() * square for metric in rule.metrics])

    def mahalanobis(self, X: Any) -> Floats:
        """(n, K) squared Mahalanobis distance from each class mean."""
        rule = self._density()
        X = self._open_features(X)
        return self._score_rows(rule.distances, X)

    def log_density(self, X: Any, by_class: bool = False) -> Floats:
        """(n,) log p(x); with `by_class` (n, K) log p(x | class)."""
        rule = self._density()
        X = self._open_features(X)
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
        """(n, K) scores of rows by the features that they have: one that is NaN is integrated out.

        Needs moments: where features outnumber rows, rows are kept instead.
        """
        return scores_with_missing(
            X, moments=self._present_moments, family=self._asked.family, prior=self.prior_
        )

    def sample(self, n: int, seed: int | np.random.Generator) -> tuple[Floats, npt.NDArray[Any]]:
        """Draw n rows and their labels from the fitted model."""
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
        """The model as Gaussian densities, whether its scores are linear or not."""
        rule = self.rule_
        if isinstance(rule, QuadraticRule):
            return rule
        metrics = (self._shared_metric(),) * len(rule.labels)
        return quadratic_rule(self._present_moments, metrics=metrics, prior=self.prior_)

    def _shared_metric(self) -> Metric:
        """Metric of the covariance that all classes share."""
        found = self._cached("metric", self._work_out_metric)
        assert isinstance(found, Metric)
        return found

    def _work_out_metric(self) -> Metric:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiscriminantWarning)  # told when it was fitted
            return family_metric(self._present_moments, self._asked.family)


class LinearGaussianClassifier(LinearMomentClassifier, GaussianClassifier):
    """A member whose scores are linear."""


class LDA(DiscriminantProjection, LinearGaussianClassifier):
    """Linear discriminant analysis: Gaussian classes that share one covariance.

    `transform` projects on the canonical directions; see `Fisher` for more about them.

    Parameters
    ----------
    prior
        (K,) probabilities of the classes in sorted order; None: their shares in the rows. They
        enter the intercepts only, never the covariance.
    shrinkage
        0: none. A number up to 1: that much of the way to `target`; 1 with target 'diagonal' is
        diagonal LDA. 'auto': the best by Ledoit and Wolf; 'oas': the best for Gaussian rows.
    target
        'diagonal' (keep the variances), 'scaled_identity' (their mean) or 'identity'.
    denominator
        'unbiased' (n - K, as R and SAS), 'ml' (n, as scikit-learn since 1.9) or 'reliability'
        (for weights that are not counts).

    Examples
    --------
    >>> model = LDA().fit([[0.0], [1.0], [4.0], [5.0]], ["low", "low", "high", "high"])
    >>> model.predict([[0.4], [4.4]]).tolist()
    ['low', 'high']
    """

    def __init__(
        self,
        *,
        prior: Any = None,
        shrinkage: Any = 0.0,
        target: Any = "diagonal",
        denominator: Any = "unbiased",
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
        """The canonical directions."""
        found = self._cached("directions", self._work_out_directions)
        assert isinstance(found, FisherRule)
        return found

    def _work_out_directions(self) -> FisherRule:
        return fit_fisher_rule(
            self._present_moments,
            family=self._asked.family,
            prior=self.prior_,
            projection=ProjectionOptions(),
        )


class NearestMean(LinearGaussianClassifier):
    """The class whose mean is nearest, in plain (Euclidean) distance: the corner of the family.

    Posteriors are those of round Gaussian classes of one common variance. `prior=None` is equal
    priors here, so that the nearest mean wins.
    """

    def __init__(self, *, prior: Any = None, denominator: Any = "unbiased") -> None:
        self.prior = prior
        self.denominator = denominator

    @property
    def family(self) -> GaussianFamily:
        """One variance for all classes and features."""
        return check_family(GaussianFamily(1.0, 1.0, "scaled_identity", self.denominator))

    def prior_from(self, moments: ClassMoments | ClassRows) -> Floats:
        """(K,) the priors given, or equal ones."""
        K = len(moments.labels)
        return class_prior(moments, np.full(K, 1.0 / K) if self.prior is None else self.prior)


class QDA(GaussianClassifier):
    """Quadratic discriminant analysis: Gaussian classes with a covariance each.

    Parameters
    ----------
    prior, denominator
        As in `LDA`; 'unbiased' divides by n_k - 1.
    shrinkage, target
        Each class covariance is shrunk that much toward its own target. With target 'identity'
        and denominator 'ml' it is scikit-learn's `reg_param`.
    """

    def __init__(
        self,
        *,
        prior: Any = None,
        shrinkage: Any = 0.0,
        target: Any = "diagonal",
        denominator: Any = "unbiased",
    ) -> None:
        self.prior = prior
        self.shrinkage = shrinkage
        self.target = target
        self.denominator = denominator

    @property
    def family(self) -> GaussianFamily:
        """Each class its own covariance."""
        return check_family(
            GaussianFamily(0.0, self.shrinkage, self.target, self.denominator, shrink="mixed")
        )


def check_family(family: GaussianFamily) -> GaussianFamily:
    """The family, or the error that says which option cannot be."""
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
    return check_shrinkage(family)
