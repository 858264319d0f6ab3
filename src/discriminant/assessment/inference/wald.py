"""Wald tests and intervals, standard errors, and information criteria of likelihood fits.

Every coefficient in the user's units is a linear combination of theta (`linear.preconditioning`):

    estimate = a'theta          variance = dispersion a' H^-1 a,   H = sum of the curvature

H is factorised, H = R'R, and never inverted. A standard error is the norm of R'^-1 a, which is
computed without cancellation, however far the rows are from zero. With K classes the estimates are
differences from the first class, as in R's `multinom`.

As in R, the statistic of a test is compared with the normal distribution (z). If the dispersion is
estimated, the statistic is compared with Student's t on the residual degrees of freedom. Wald
intervals use the normal quantile in both cases, as R's `confint.default` does. Profile-likelihood
intervals and likelihood-ratio tests read the rows again: see `inference.profile_likelihood`.

For classifiers (logistic regression with any link, and softmax) the log likelihood of the labels is
minus the summed loss. The null model has only the class frequencies:

    log L = -sum w l        log L_0 = sum_k W_k log(W_k / W)

With two classes, Tjur's coefficient is the mean probability of the second class over the rows of
that class, minus its mean over the other rows. One pass computes both sums. It uses the interface
of a loss: the first sum is returned as the loss, the second as its derivative with respect to the
intercept.

`ClassFit` is the state that a logistic model stores for inference, without rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import xlogy
from scipy.stats import norm, t as student

from discriminant.errors import InferenceError
from discriminant.models.linear.logistic import LogisticFit, penalty_factors
from discriminant.models.linear.preconditioning import Coordinates
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.loss import LossReading, LossSums, Pass, ScoreDerivatives, Want
from discriminant.moments.softmax_loss import LINK_TAILS, LinkName
from discriminant.table.blocks import Block, Floats

INTERCEPT = "(Intercept)"


@dataclass(frozen=True, slots=True)
class Likelihood:
    """Likelihood of a fit and of its null model."""

    deviance: float
    null_deviance: float
    log_likelihood: float
    null_log_likelihood: float
    rows: int  # number of rows of positive weight
    df_residual: int
    df_null: int
    numbers: int  # number of estimated parameters, including an estimated dispersion
    dispersion: float = 1.0
    free: bool = False  # whether the dispersion is estimated
    # whether the response is Gaussian, so that deviances are compared by their logs
    gaussian: bool = False
    tjur: float | None = None  # Tjur's coefficient; None unless there are two classes

    @property
    def aic(self) -> float:
        """Akaike information criterion."""
        return -2.0 * self.log_likelihood + 2.0 * self.numbers

    @property
    def bic(self) -> float:
        """Bayesian (Schwarz) information criterion."""
        return -2.0 * self.log_likelihood + float(np.log(self.rows)) * self.numbers

    @property
    def pseudo_r2(self) -> dict[str, float]:
        """Dict of the share of deviance explained and the pseudo R2 of McFadden and others."""
        gain = self.log_likelihood - self.null_log_likelihood
        with np.errstate(all="ignore"):
            shares = {"deviance": float(1.0 - np.float64(self.deviance) / self.null_deviance)}
            if self.gaussian:  # here the log likelihood depends on the unit of the response
                return shares
            snell = float(-np.expm1(-2.0 * gain / self.rows))
            upper = float(-np.expm1(2.0 * self.null_log_likelihood / self.rows))
            shares |= {
                "mcfadden": float(1.0 - self.log_likelihood / np.float64(self.null_log_likelihood)),
                "cox_snell": snell,
                "nagelkerke": snell / upper if upper else float("nan"),
            }
        return shares if self.tjur is None else shares | {"tjur": self.tjur}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inference:
    """Estimates in the user's units with their tests; for each class the intercept comes first."""

    title: str  # name of the fit, for the heading of a summary
    names: tuple[str, ...]  # p names of columns
    # p classes, each compared with the first; None if there is one response
    classes: tuple[object, ...] | None
    estimate: Floats  # (p,) estimates
    # (p, q m) `a`: each estimate as a linear combination of theta in column order
    directions: Floats
    root: Floats  # (q m, p) `R'^-1 a`
    likelihood: Likelihood
    odds: bool  # whether exp(estimate) is an odds ratio
    rates: bool = False  # whether exp(estimate) is a ratio of means
    passes: int = 0
    steps: int = 0
    first: object = None  # the class that all others are compared with
    second: object = None  # the only other class, if there are two
    converged: bool = True
    thresholds: int = 0  # number of thresholds of ordered classes, which are the last estimates
    errors: str = ""  # kind of robust standard errors; empty if they are from the curvature
    # (p,) standard errors; NaN where a coefficient is not identified
    std_error: Floats = field(init=False)

    def __post_init__(self) -> None:
        length = np.sqrt(np.einsum("ip,ip->p", self.root, self.root))
        object.__setattr__(self, "std_error", np.sqrt(self.likelihood.dispersion) * length)

    @property
    def covariance(self) -> Floats:
        """Covariance matrix of the estimates, (p, p)."""
        return np.asarray(self.likelihood.dispersion * (self.root.T @ self.root))

    @property
    def statistic(self) -> Floats:
        """Test statistics, (p,).

        Estimates are divided by standard errors: z statistics, or t if the dispersion is
        estimated.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.estimate / self.std_error

    @property
    def letter(self) -> str:
        """Name of the statistic: 'z' or 't'."""
        return "t" if self.likelihood.free else "z"

    @property
    def p(self) -> Floats:
        """Two-sided p-values, (p,), accurate even if they are very small."""
        size = np.abs(self.statistic)
        if self.likelihood.free:
            return np.asarray(2.0 * student.sf(size, max(self.likelihood.df_residual, 0) or np.nan))
        return np.asarray(2.0 * norm.sf(size))

    def wald(self, level: float = 0.95) -> Floats:
        """Return the Wald intervals, (p, 2): estimate -+ normal quantile times standard error."""
        reach = norm.isf(0.5 * (1.0 - level)) * self.std_error
        return np.column_stack([self.estimate - reach, self.estimate + reach])

    def odds_ratios(self, level: float = 0.95) -> Floats:
        """Return odds ratios with Wald intervals, (p, 3), for a logit link."""
        if not self.odds:
            raise InferenceError.no_odds(self.title)
        return self._exp(level)

    def rate_ratios(self, level: float = 0.95) -> Floats:
        """Return ratios of means with Wald intervals, (p, 3), for a log link.

        If a column increases by one, the mean of the response (a rate or a risk) is multiplied by
        this ratio.
        """
        if not self.rates:
            raise InferenceError.no_rates(self.title)
        return self._exp(level)

    @property
    def text(self) -> str:
        """Text of the summary."""
        return str(self._summary().text)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as a dictionary of plain numbers, lists and texts."""
        record: dict[str, Any] = self._summary().to_dict()
        return record

    def frame(self) -> Any:
        """Return a pandas frame with a row for each estimate."""
        return self._summary().frame()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return str(self._summary()._repr_html_())

    def _summary(self) -> Any:
        from discriminant.assessment.inference.coefficient_summary import CoefficientSummary

        return CoefficientSummary(self)

    def _exp(self, level: float) -> Floats:
        with np.errstate(over="ignore"):
            return np.exp(np.column_stack([self.estimate, self.wald(level)]))

    def places(self, name: str) -> npt.NDArray[np.intp]:
        """Return the indices of the estimates that belong to a column, one for each class."""
        return np.flatnonzero(np.array(self.names, dtype=object) == name)


def infer(
    theta: Floats,
    *,
    curvature: Floats,
    coordinates: Coordinates,
    anchor: Anchor,
    features: tuple[str, ...],
    likelihood: Likelihood,
    title: str,
    labels: npt.NDArray[np.object_] | None = None,
    identified: npt.NDArray[np.bool_] | None = None,
    level: float = 0.0,
    odds: bool = False,
    rates: bool = False,
    passes: int = 0,
    steps: int = 0,
    converged: bool = True,
) -> Inference:
    """Return the estimates of a fit with their standard errors.

    Parameters
    ----------
    theta : array of shape (q, m)
        Maximum of the likelihood.
    curvature : array of shape (m q, m q)
        Second derivative of the loss at theta, summed over rows.
    labels : array of shape (K,), optional
        Classes, if theta has one column for each contrast of classes.
    identified : array of shape (d,), optional
        Features whose coefficients are identified, see `estimable`. None means all of them.
    level : float
        Constant to add to the intercept.
    """
    to_user = user_map(coordinates, anchor)
    names = ((INTERCEPT,) if coordinates.free else ()) + tuple(features)
    classes: tuple[object, ...] | None = None
    directions = to_user
    if coordinates.contrast is not None:
        assert labels is not None
        differences = coordinates.contrast[1:] - coordinates.contrast[:1]
        directions = np.asarray(np.kron(differences, to_user), dtype=np.float64)
        classes = tuple(label for label in labels[1:].tolist() for _ in names)
        names = names * (len(labels) - 1)
    estimate = directions @ theta.T.ravel()
    root = root_of_covariance(curvature, directions)
    if identified is not None and not identified.all():
        unidentified = np.append([False] * bool(coordinates.free), ~identified)
        root[:, np.tile(unidentified, len(names) // len(to_user)).astype(bool)] = np.nan
    if coordinates.free and level:
        estimate = estimate + np.where(np.array(names, dtype=object) == INTERCEPT, level, 0.0)
    return Inference(
        title,
        names,
        classes,
        estimate,
        directions,
        root,
        likelihood,
        odds,
        rates,
        passes,
        steps,
        None if labels is None else labels[0],
        labels[1] if labels is not None and len(labels) == 2 else None,
        converged,
    )


def user_map(coordinates: Coordinates, anchor: Anchor) -> Floats:
    """Return the (P, q) matrix that maps theta to intercept and slopes in the user's units."""
    slopes = coordinates.frame[:-1] / anchor.unit[:, None]
    if not coordinates.free:
        return slopes
    return np.vstack([coordinates.frame[-1] - anchor.origin @ slopes, slopes])


def estimable(coordinates: Coordinates, scale: Floats) -> npt.NDArray[np.bool_]:
    """Return a boolean array (d,): True where the feature's coefficient is identified.

    The coefficient of a feature that is collinear with others is not identified.

    Coordinates exclude every direction in which the standardised columns (`scale`) are linearly
    dependent. Such a direction is orthogonal to all coordinates, so a coefficient is identified if
    its axis lies in the span of the coordinates.
    """
    basis = scale[:, None] * coordinates.frame[:-1, coordinates.free :]
    if basis.shape[1] == len(basis):
        return np.ones(len(basis), dtype=bool)
    axes = np.linalg.qr(basis)[0]
    return np.asarray(np.einsum("dr,dr->d", axes, axes) > 1.0 - 1e-6)


def root_of_covariance(curvature: Floats, directions: Floats) -> Floats:
    """Return an (n, p) array: `R'^-1 a` for each of p combinations `a`.

    The result is infinite if the curvature is singular.
    """
    try:
        upper = cholesky(curvature)
    except LinAlgError:
        return np.full(directions.T.shape, np.inf)
    return np.asarray(solve_triangular(upper, directions.T, trans="T"))


@dataclass(frozen=True, slots=True, eq=False)
class ClassFit:
    """State of a fitted classifier that inference needs; it contains no rows."""

    theta: Floats  # (q, m) estimates
    slope: LossSums  # loss at theta without penalty, with its derivatives
    coordinates: Coordinates
    anchor: Anchor
    features: tuple[str, ...]  # names of the d features
    labels: npt.NDArray[np.object_]  # (K,) classes
    weight: Floats  # (K,) weight of each class
    rows: int  # number of rows of positive weight
    link: LinkName = "logit"
    # (d,) True where the coefficient is identified, see `estimable`
    told: npt.NDArray[np.bool_] | None = None
    tjur: float | None = None

    def infer(
        self, title: str, *, passes: int = 0, steps: int = 0, converged: bool = True
    ) -> Inference:
        """Return estimates relative to the first class, with standard errors and tests."""
        assert self.slope.curvature is not None
        return infer(
            self.theta,
            curvature=self.coordinates.curvature(self.slope.curvature),
            coordinates=self.coordinates,
            anchor=self.anchor,
            features=self.features,
            likelihood=self.likelihood,
            title=title,
            labels=self.labels,
            identified=self.told,
            odds=self.link == "logit",
            passes=passes,
            steps=steps,
            converged=converged,
        )

    @property
    def likelihood(self) -> Likelihood:
        """Likelihood of the labels, given the features."""
        m, q = len(self.labels) - 1, self.coordinates.size
        null = self._null_log_likelihood()
        return Likelihood(
            deviance=2.0 * self.slope.loss,
            null_deviance=-2.0 * null,
            log_likelihood=-self.slope.loss,
            null_log_likelihood=null,
            rows=self.rows,
            df_residual=m * (self.rows - q),
            df_null=m * (self.rows - self.coordinates.free),
            numbers=m * q,
            tjur=self.tjur,
        )

    def _null_log_likelihood(self) -> float:
        """Return the log likelihood of the null model.

        The null model predicts the class frequencies; without an intercept, all its scores are
        zero.
        """
        if self.coordinates.free:
            return float(xlogy(self.weight, self.weight / self.weight.sum()).sum())
        if len(self.weight) > 2:
            return -float(self.weight.sum() * np.log(len(self.weight)))
        zero = LINK_TAILS[self.link](np.zeros(1))
        return float(self.weight[0] * zero.log_zero[0] + self.weight[1] * zero.log_one[0])


@dataclass(frozen=True, slots=True)
class SecondClass:
    """A `RowLoss` that sums probabilities of the second class instead of losses.

    One sum is over the rows of the second class, and one over all other rows.
    """

    link: LinkName

    @property
    def columns(self) -> int:
        """Number of scores."""
        return 1

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """Return two sums of probabilities: over rows of the second class, and over other rows.

        The first sum is returned as the loss, the second as its derivative.
        """
        if self.link == "logit":
            probability = _logistic(scores[0])
        else:
            probability = np.exp(LINK_TAILS[self.link](scores[0]).log_one)
        if tile.weight is not None:
            probability = probability * tile.weight
        own = tile.codes.astype(np.float64)
        total = float(np.dot(probability, own))
        probability *= np.subtract(1.0, own, out=own)
        return ScoreDerivatives(total, probability[None], None, None, np.inf)


def _logistic(scores: Floats) -> Floats:
    """Return 1 / (1 + exp(-scores)). The array `scores` is overwritten."""
    with np.errstate(over="ignore"):  # the probability is then zero
        np.exp(np.negative(scores, out=scores), out=scores)
    scores += 1.0
    return np.divide(1.0, scores, out=scores)


def tjur(
    read: Pass,
    theta: Floats,
    *,
    coordinates: Coordinates,
    anchor: Anchor,
    features: tuple[str, ...],
    weight: Floats,
    link: LinkName = "logit",
) -> float:
    """Compute Tjur's coefficient of discrimination of two classes, in one pass."""
    coef, intercept = coordinates.coefficients(theta)
    sums = read(LossReading(features, anchor, coef, intercept, SecondClass(link)))
    return float(sums.loss / weight[1] - sums.gradient[-1, 0] / weight[0])


_MAX_STEP = 2e-8  # a longer last step would change the eighth digit of the standard errors
_MAX_PRODUCTS = 5e9  # a curvature that takes more products is not computed for inference only
_MAX_NUMBERS = 5e6  # larger tables are not read again for inference


def inference_state(
    fit: LogisticFit, read: Pass, moments: ClassMoments, link: LinkName
) -> ClassFit | None:
    """Return the state that inference needs, or None if there are too many estimates."""
    coordinates, theta = fit.coordinates, fit.descent.theta
    if not isinstance(coordinates, Coordinates):
        return None
    point = fit.descent.point
    rows = int(moments.rows.sum())
    moved = float(np.abs(point.theta - theta).max(initial=0.0)) > _MAX_STEP
    if point.slope.curvature is None and rows * float(theta.size) ** 2 > _MAX_PRODUCTS:
        return None
    if point.slope.curvature is None or (moved and rows * theta.size <= _MAX_NUMBERS):
        point = fit.objective.evaluate(theta, want="curvature")
    identified = None
    if coordinates.size - coordinates.free < len(moments.features):
        scale = penalty_factors(
            moments.at(fit.anchor), standardize=True, intercept=bool(coordinates.free)
        )
        identified = estimable(coordinates, scale)
    discrimination = None
    if len(moments.labels) == 2 and rows * len(moments.features) <= _MAX_NUMBERS:
        discrimination = tjur(
            read,
            theta,
            coordinates=coordinates,
            anchor=fit.anchor,
            features=moments.features,
            weight=moments.weight,
            link=link,
        )
    return ClassFit(
        theta,
        point.slope,
        coordinates,
        fit.anchor,
        moments.features,
        np.asarray(moments.labels, dtype=object),
        moments.weight,
        rows,
        link,
        identified,
        discrimination,
    )
