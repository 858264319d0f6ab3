"""LDA, QDA, RDA and NearestMean: members of one family, told apart by two numbers."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from discriminant.assessment.folds import fold_numbers
from discriminant.assessment.grid import STEPS, Candidates, Grid, grid_losses
from discriminant.assessment.leave_one_out import gaussian_without_each
from discriminant.engines.engine import read_classes
from discriminant.errors import DiscriminantWarning, LabelError, OptionError
from discriminant.estimators.base import LinearScores, MomentClassifier
from discriminant.estimators.projecting import Projecting
from discriminant.models.covariance import DENOMINATORS, TARGETS
from discriminant.models.fisher import FisherRule, Projection
from discriminant.models.gaussian import Family, check_shrinkage, class_prior, quadratic_rule
from discriminant.models.member import fisher_member, fit_member, member_metric, member_shrinkage
from discriminant.models.metric import Metric
from discriminant.models.rules import QuadraticRule, Rule
from discriminant.models.wide import is_wide
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.class_rows import ClassRows
from discriminant.table.schema import Floats
from discriminant.table.source import Table

_LOG_2PI = float(np.log(2 * np.pi))


class GaussianClassifier(MomentClassifier):
    """A member of the Gaussian family, and what only a generative model can say."""

    @property
    def family(self) -> Family:
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

    def rule_from(self, moments: ClassMoments | ClassRows) -> Rule:
        """The fitted rule, from moments alone."""
        return fit_member(moments, family=self.family, prior=self.prior_from(moments))

    @property
    def shrinkage_(self) -> Any:
        """The shrinkage used, a number, or (K,) where it differs between classes.

        Where too few rows made one necessary that was not asked for, it is that.
        """
        return self._once("shrinkage", self._work_out_shrinkage)

    def _work_out_shrinkage(self) -> Any:
        asked, rule = member_shrinkage(self._present, self._asked.family), self.rule_
        linear = not isinstance(rule, QuadraticRule)
        metrics = rule.metrics if isinstance(rule, QuadraticRule) else (self._shared_metric(),)
        forced = np.array([metric.shrunk for metric in metrics])
        if not forced.any():
            return asked
        return float(forced[0]) if linear else np.maximum(forced, asked)

    def scores_without_each(self, moments: Any, table: Table) -> Floats | None:
        """(N, K) scores of each row by the rule of all others, where there is a closed form."""
        return gaussian_without_each(moments, table, family=self.family, prior=self.prior_from)

    @property
    def covariance_(self) -> Floats:
        """(d, d) the covariance that classes share, or (K, d, d) that of each; as it is used."""
        unit = self._present.anchor.unit
        rule, square = self.rule_, unit[:, None] * unit
        if not isinstance(rule, QuadraticRule):
            return np.asarray(self._shared_metric().covariance() * square)
        return np.asarray([metric.covariance() * square for metric in rule.metrics])

    def mahalanobis(self, X: Any) -> Floats:
        """(n, K) squared Mahalanobis distance from each class mean."""
        rule = self._density()
        X = self._features(X)
        return self._finite(rule.distances, X)

    def log_density(self, X: Any, by_class: bool = False) -> Floats:
        """(n,) log p(x); with `by_class` (n, K) log p(x | class)."""
        rule = self._density()
        X = self._features(X)
        logdet = np.array([metric.logdet for metric in rule.metrics])
        units = float(np.log(self._present.anchor.unit).sum())
        inside = (
            -0.5 * (self._finite(rule.distances, X) + logdet + self.n_features_in_ * _LOG_2PI)
            - units
        )
        if by_class:
            return np.asarray(inside)
        joint = inside + rule.log_prior
        top = joint.max(axis=1)
        return np.asarray(top + np.log(np.exp(joint - top[:, None]).sum(axis=1)))

    def sample(self, n: int, seed: int | np.random.Generator) -> tuple[Floats, npt.NDArray[Any]]:
        """Draw n rows and their labels from the fitted model."""
        rng = np.random.default_rng(seed)
        rule = self._density()
        codes = rng.choice(len(rule.labels), size=n, p=np.exp(rule.log_prior))
        rows = np.empty((n, self.n_features_in_))
        for k, metric in enumerate(rule.metrics):
            chosen = codes == k
            noise = metric.draw(rng.standard_normal((int(chosen.sum()), self.n_features_in_)))
            rows[chosen] = self._present.anchor.values(rule.mean[k] + noise)
        return rows, rule.labels[codes]

    def _density(self) -> QuadraticRule:
        """The model as Gaussian densities, whether its scores are linear or not."""
        rule = self.rule_
        if isinstance(rule, QuadraticRule):
            return rule
        metrics = (self._shared_metric(),) * len(rule.labels)
        return quadratic_rule(self._present, metrics=metrics, prior=self.prior_)

    def _shared_metric(self) -> Metric:
        """Metric of the covariance that all classes share."""
        found = self._once("metric", self._work_out_metric)
        assert isinstance(found, Metric)
        return found

    def _work_out_metric(self) -> Metric:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiscriminantWarning)  # told when it was fitted
            return member_metric(self._present, self._asked.family)


class LinearClassifier(LinearScores, GaussianClassifier):
    """A member whose scores are linear."""


class LDA(Projecting, LinearClassifier):
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
    def family(self) -> Family:
        """One covariance, shrunk."""
        return checked(Family(1.0, self.shrinkage, self.target, self.denominator))

    def directions(self) -> FisherRule:
        """The canonical directions."""
        found = self._once("directions", self._work_out_directions)
        assert isinstance(found, FisherRule)
        return found

    def _work_out_directions(self) -> FisherRule:
        return fisher_member(
            self._present, family=self._asked.family, prior=self.prior_, projection=Projection()
        )


class NearestMean(LinearClassifier):
    """The class whose mean is nearest, in plain (Euclidean) distance: the corner of the family.

    Posteriors are those of round Gaussian classes of one common variance. `prior=None` is equal
    priors here, so that the nearest mean wins.
    """

    def __init__(self, *, prior: Any = None, denominator: Any = "unbiased") -> None:
        self.prior = prior
        self.denominator = denominator

    @property
    def family(self) -> Family:
        """One variance for all classes and features."""
        return checked(Family(1.0, 1.0, "scaled_identity", self.denominator))

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
    def family(self) -> Family:
        """Each class its own covariance."""
        return checked(Family(0.0, self.shrinkage, self.target, self.denominator, shrink="mixed"))


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
    def family(self) -> Family:
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
        return checked(Family(pooling, shrinkage, *options))

    @property
    def pooling_(self) -> float:
        """The pooling used."""
        self._need_fit()
        return float(self._asked.family.pooling)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Read the rows once and fit; with 'cv', first score every candidate on held-out rows."""
        self.cv_ = None
        if not self.needs_rows:
            return super().fit(X, y, sample_weight)
        table = self._open(X, y, sample_weight)
        if len(table.schema.labels) < 2:
            raise LabelError.one_class(table.schema.labels[0])
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
            checked(Family(pooling, tried[1][0], *options))
        family = Family(1.0, 0.0, *options)
        return Candidates(family, np.array(tried[0]), tuple(tried[1]), (self.prior,))

    @classmethod
    def from_lecture(cls, alpha: float, gamma: float, **options: Any) -> RDA:
        """Lecture 3: S_k = alpha C_k + (1 - alpha) [gamma C + (1 - gamma) diag C]."""
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


def checked(family: Family) -> Family:
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
