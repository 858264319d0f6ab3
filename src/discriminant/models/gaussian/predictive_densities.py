"""Predictive densities of Gaussian classes: Student's t, which accounts for estimation error.

A plug-in rule treats the estimated means and covariances as exact, so its posteriors are
overconfident if a class has few rows. The predictive density of a class averages its Gaussian
density over the posterior distribution of mean and covariance. With the reference prior

    p(m_1, ..., m_K, C)  ~  |C|^(-(d+1)/2)            one covariance (LDA)
    p(m_k, C_k)          ~  |C_k|^(-(d+1)/2)          one for each class (QDA)

(the multivariate Jeffreys prior of Gelman et al. 2013, Bayesian Data Analysis, section 3.6) the
posterior is normal-inverse-Wishart and the predictive density a multivariate t (Geisser 1964;
Murphy 2007, Conjugate Bayesian analysis of the Gaussian distribution, section 9):

    p(x | k)  =  t(x; freedom v, location mean_k, scale matrix (1 + 1/n_k) V / v),   v = m - d + 1

where V is the scatter about the class means, with m degrees of freedom: V = W and m = n - K for
LDA, and V = W_k and m = n_k - 1 for QDA. So, with D^2 the squared Mahalanobis distance for the
covariance S = V / g (any g, since it cancels),

    log p(x | k)  =  constant_k - (v + d) / 2  log(1 + D^2 / s_k),      s_k = (1 + 1/n_k) g

    constant_k  =  log Gamma((v + d) / 2) - log Gamma(v / 2) - d/2 log(pi s_k) - log|S| / 2

Pooling and shrinkage are conjugate priors. An inverse-Wishart prior with `a` degrees of freedom and
scatter a T adds `a` to the degrees of freedom, and a T to the scatter of the rows, so the
covariance is a mixture again:

    (V + a T) / (g + a)  =  (1 - s) V / g  +  s T,      a = s g / (1 - s)

Hence

    shrinkage by s        T the target: s g / (1 - s) more degrees; infinite for s = 1, where the
                          covariance is treated as known and the density is Gaussian
    pooling by p          T = C, the pooled covariance: p g_k / (1 - p) more degrees, but the sum is
                          at most the degrees of C itself
    weighting="friedman"  the other classes count p times (a power prior): m = (1 - p) m_k + p m

A density needs m >= d. If the degrees of freedom, including those of the priors, are fewer than d,
the covariance is treated as if it had d degrees of freedom, with a warning. The target T, and C in
pooling, are estimated from the same rows but treated as known, as in every empirical Bayes
estimate. With weights that are not counts (denominator='reliability') the degrees of freedom are
that denominator, and 1 / n_k is replaced by sum w^2 / (sum w)^2.

The marginal density of a subset of the features is again t, with the same v and s_k and the
corresponding block of S, so rows with missing features are scored exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtri, gammaln

from discriminant.errors import ScarceRowsWarning, warn
from discriminant.models.expressions import Expression, stack
from discriminant.models.gaussian.covariance import (
    Denominator,
    Metric,
    class_degrees,
    pooled_degrees,
)
from discriminant.models.gaussian.family import (
    GaussianFamily,
    check_classes,
    scores_with_missing,
)
from discriminant.models.gaussian.wide import (
    Classes,
    family_shrinkage,
    fit_gaussian_from_moments_or_rows,
    shared_family_metric,
)
from discriminant.models.rules import (
    QuadraticRule,
    overflow_rows,
    relative_to_largest,
    scale_by_power,
)
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.table.blocks import Features, Floats

PREDICTIVE = ("plug-in", "student")


@dataclass(frozen=True, slots=True, eq=False)
class StudentRule(QuadraticRule):
    """Rule of K classes with Student's t densities, each with its own metric.

    `constant` includes the log prior; the score of a class is its log joint density for offsets.
    """

    freedom: Floats  # (K,) v; infinite: Gaussian
    scale: Floats  # (K,) s, the divisor of the squared distances

    def __post_init__(self) -> None:
        constant = [
            log_prior + _log_constant(freedom, scale, metric)
            for log_prior, freedom, scale, metric in zip(
                self.log_prior, self.freedom, self.scale, self.metrics, strict=True
            )
        ]
        QuadraticRule.__post_init__(self)
        object.__setattr__(self, "constant", np.array(constant))

    @property
    def power(self) -> Floats:
        """Exponents (v + d) / 2 of the densities, (K,)."""
        ranks = np.array([metric.rank for metric in self.metrics], dtype=np.float64)
        return np.asarray(0.5 * (self.freedom + ranks))

    def scores(self, features: Features) -> Floats:
        """Return the (n, K) scores of the classes."""
        distances = self._distances(features)
        scores = self.from_distances(distances)
        for rows in overflow_rows(distances):
            scaled, power = self._scaled(features[rows])
            scores[rows] = self._far_scores(scaled, power)
        return scores

    @np.errstate(over="ignore")
    def from_distances(self, distances: Floats) -> Floats:
        """Return the (n, K) scores, given the squared Mahalanobis distances from the means."""
        relative = distances / self.scale
        gaussian = np.isinf(self.freedom)
        logs = np.log1p(relative)
        if not gaussian.any():
            return np.asarray(self.constant - self.power * logs)
        power = np.where(gaussian, 0.0, self.power)
        return np.asarray(self.constant - np.where(gaussian, 0.5 * relative, power * logs))

    def log_joint(self, features: Features) -> Floats:
        """Return the (n, K) log joint densities log p(offsets, class); no maximum is subtracted."""
        if np.isinf(self.freedom).all():
            return self.from_distances(self.distances(features))
        return self.scores(features)

    def _far_scores(self, scaled: Floats, power: Any) -> Floats:
        """Return the scores of very distant rows: squared distances are `scaled` times 4^power."""
        relative = scaled / self.scale
        gaussian = np.isinf(self.freedom)
        if gaussian.all():
            return relative_to_largest(-0.5 * relative, 2 * power) + self.constant
        values = scale_by_power(relative, 2 * power)
        far = np.isinf(values)
        logs = np.log1p(np.where(far, 0.0, values))
        by_log = np.log(np.where(far, relative, 1.0)) + 2.0 * np.log(2.0) * power[:, None]
        exponent = np.where(gaussian, 0.0, self.power)
        student = exponent * np.where(far, by_log, logs)
        return np.asarray(self.constant - np.where(gaussian, 0.5 * values, student))

    def expression(self, x: Expression, names: Sequence[str]) -> Expression:
        """Return the (K,) scores as an expression of the features of one row."""
        relative = self.distance_expression(x, names) * (1.0 / self.scale)
        relative = relative.with_name("relative_distance", names)
        gaussian = np.isinf(self.freedom)
        if gaussian.all():
            kernel = relative * -0.5
        elif not gaussian.any():
            kernel = _log1p(relative, names) * -self.power
        else:
            kernel = stack(
                [
                    relative[k] * -0.5
                    if gaussian[k]
                    else _log1p(relative[k], (name,)) * -self.power[k]
                    for k, name in enumerate(names)
                ]
            )
        return (kernel + self.constant).with_name("score", names)

    def radii(self, code: int, uniform: Floats) -> Floats:
        """Return the factors (n,) that turn Gaussian random offsets into Student-t offsets.

        `uniform` (n,) holds random numbers, uniform from 0 to 1.
        """
        freedom, scale = float(self.freedom[code]), float(self.scale[code])
        if np.isinf(freedom):
            return np.full(len(uniform), np.sqrt(scale))
        return np.asarray(np.sqrt(scale / chdtri(freedom, uniform)))

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of a rule are invalid, or None if they are valid."""
        freedom, scale = parts["freedom"], parts["scale"]
        if freedom.shape != parts["log_prior"].shape or scale.shape != freedom.shape:
            return "freedom and scale must have one number per class"
        if not ((freedom > 0).all() and (scale > 0).all() and np.isfinite(scale).all()):
            return "freedom and scale must be positive, and scale finite"
        return QuadraticRule.invalid_reason(parts)


def _log1p(z: Expression, names: Sequence[str]) -> Expression:
    """Return log(1 + z) as an expression, accurate for small z despite the rounding of 1 + z."""
    u = (z + 1.0).with_name("one_plus", names)
    return u.log() - ((u - 1.0) - z) / u


def _log_constant(freedom: float, scale: float, metric: Metric) -> float:
    """Return the log density at the class mean."""
    d = metric.rank
    if np.isinf(freedom):
        return float(-0.5 * d * np.log(2.0 * np.pi * scale) - 0.5 * metric.logdet)
    ratio = log_gamma_ratio(0.5 * freedom, d)
    return float(ratio - 0.5 * d * np.log(np.pi * scale) - 0.5 * metric.logdet)


def log_gamma_ratio(x: float, d: int) -> float:
    """Return log Gamma(x + d/2) - log Gamma(x), accurate for large x too.

    >>> round(log_gamma_ratio(3.0, 4), 12) == round(float(np.log(3.0 * 4.0)), 12)
    True
    """
    whole, half = divmod(d, 2)
    start = x + 0.5 * half
    ratio = float(np.log(start + np.arange(whole)).sum())
    if not half:
        return ratio
    if x < 30.0:
        return ratio + float(gammaln(x + 0.5) - gammaln(x))
    series = -1.0 / (8.0 * x) + 1.0 / (192.0 * x**3) - 1.0 / (640.0 * x**5)  # of Stirling
    return ratio + float(0.5 * np.log(x) + series + 17.0 / (14336.0 * x**7))


def fit_student(classes: Classes, *, family: GaussianFamily, prior: Floats) -> StudentRule:
    """Fit the predictive densities of Gaussian classes with the covariances of the family.

    Examples
    --------
    >>> from discriminant.engines.dispatch import moments
    >>> classes = moments([[0.0], [2.0], [4.0], [6.0]], ["a", "a", "b", "b"])
    >>> rule = fit_student(classes, family=GaussianFamily(), prior=np.array([0.5, 0.5]))
    >>> rule.freedom.tolist()  # 4 rows, 2 means
    [2.0, 2.0]
    """
    if family.linear:
        check_classes(classes)
        metrics = (shared_family_metric(classes, family),) * len(classes.labels)
        mean = classes.mean
    else:
        rule = fit_gaussian_from_moments_or_rows(classes, family=family, prior=prior)
        assert isinstance(rule, QuadraticRule)
        metrics, mean = rule.metrics, rule.mean
    return student_rule(classes, mean, metrics, family=family, prior=prior)


def student_rule(
    classes: Classes,
    mean: Floats,
    metrics: tuple[Metric, ...],
    *,
    family: GaussianFamily,
    prior: Floats,
) -> StudentRule:
    """Return the rule of predictive densities, given the metrics of the covariances."""
    shrinkage = np.broadcast_to(family_shrinkage(classes, family), len(metrics))
    degrees, denominator = posterior_degrees(classes, family, np.asarray(shrinkage))
    forced = np.array([metric.shrunk for metric in metrics])  # too few rows for the covariance
    degrees, denominator = _with_prior(degrees, denominator, forced)
    ranks = np.array([metric.rank for metric in metrics], dtype=np.float64)
    _warn_few_degrees(classes, family, degrees, ranks)
    short = np.maximum(ranks - degrees, 0.0)  # degrees of a prior centred on the covariance itself
    freedom = degrees + short - ranks + 1.0
    if family.denominator == "reliability":
        spread = classes.weight2 / classes.weight**2
    else:
        spread = 1.0 / classes.weight
    scale = (1.0 + spread) * np.where(np.isinf(degrees), 1.0, denominator + short)
    return StudentRule(classes.labels, classes.anchor, mean, metrics, np.log(prior), freedom, scale)


def _warn_few_degrees(
    classes: Classes, family: GaussianFamily, degrees: Floats, ranks: Floats
) -> None:
    """Warn about covariances with fewer degrees of freedom than features."""
    for k in np.flatnonzero(degrees < ranks):
        what = f"The covariance of class '{classes.labels[k]}'"
        if family.linear:
            what = "The pooled covariance"
        warn(ScarceRowsWarning.of_predictive(what, float(degrees[k]), int(ranks[k])))
        if family.linear:
            return


def posterior_degrees(
    classes: Classes, family: GaussianFamily, shrinkage: Floats
) -> tuple[Floats, Floats]:
    """Return two (K,) arrays: degrees of freedom and denominator of the covariance of each class.

    The degrees of freedom include those of the priors to which pooling and `shrinkage` (K,)
    correspond.
    """
    kind: Denominator = "reliability" if family.denominator == "reliability" else "unbiased"
    moments: Any = classes
    if isinstance(classes, ClassRows):
        moments = classes.reduce("diagonal")
    own = class_degrees(moments, kind)
    own_denominator = class_degrees(moments, family.denominator)
    total = np.full(len(own), pooled_degrees(moments, kind))
    total_denominator = np.full(len(own), pooled_degrees(moments, family.denominator))
    p = family.pooling
    if family.linear:
        return _with_prior(total, total_denominator, shrinkage)
    if p > 0.0 and family.weighting == "friedman":
        own = (1.0 - p) * own + p * total
        own_denominator = (1.0 - p) * own_denominator + p * total_denominator
    elif p > 0.0:
        if not family.shrinks_mixture:
            total, total_denominator = _with_prior(total, total_denominator, shrinkage)
        added = own_denominator * (p / (1.0 - p))
        own = np.minimum(own + added, total)
        own_denominator = np.minimum(own_denominator + added, total_denominator)
    if family.shrinks_mixture:
        return _with_prior(own, own_denominator, shrinkage)
    return own, own_denominator


def _with_prior(degrees: Floats, denominator: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Add the degrees of freedom and denominators of a prior with this share of the covariance."""
    known = (share >= 1.0) | np.isinf(denominator)
    odds = np.where(known, 0.0, share) / np.where(known, 1.0, 1.0 - share)
    added = np.where(known, np.inf, np.where(known, 0.0, denominator) * odds)
    return degrees + added, denominator + added


def student_scores_with_missing(
    rows: Floats, rule: StudentRule, *, moments: ClassMoments, family: GaussianFamily, prior: Floats
) -> Floats:
    """Return the (n, K) scores of rows in which NaN stands for a missing feature."""

    def marginal(part: ClassMoments, metrics: tuple[Metric, ...]) -> StudentRule:
        if family.linear:
            metrics = metrics * len(part.labels)
        return StudentRule(
            part.labels, part.anchor, part.mean, metrics, np.log(prior), rule.freedom, rule.scale
        )

    return scores_with_missing(
        rows, moments=moments, family=family, prior=prior, rule_from=marginal
    )
