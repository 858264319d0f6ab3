"""Standard errors of likelihood fits, for Wald tests and intervals, and their log likelihoods.

Every coefficient in the user's units is a linear combination of theta (`linear.preconditioning`):

    estimate = a'theta          variance = dispersion a' H^-1 a,   H = sum of the curvature

H is factorised, H = R'R, and never inverted. A standard error is the norm of R'^-1 a, which is
computed without cancellation, however far the rows are from zero. With K classes the estimates are
differences from the first class, as in R's `multinom`.

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

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import xlogy

from discriminant.assessment.inference.coefficient_summary import Inference, Likelihood
from discriminant.models.linear.logistic import LogisticFit, penalty_factors
from discriminant.models.linear.preconditioning import Coordinates
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.loss_gradient_sums import (
    LossReading,
    LossSums,
    Pass,
    ScoreDerivatives,
    Want,
)
from discriminant.moments.softmax_loss import LINK_TAILS, LinkName
from discriminant.table.blocks import Block, Floats

INTERCEPT = "(Intercept)"


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
        Features whose coefficients are identified, see `identified_features`. None means all of
        them.
    level : float
        Constant to add to the intercept.
    """
    to_user = map_to_user_units(coordinates, anchor)
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


def map_to_user_units(coordinates: Coordinates, anchor: Anchor) -> Floats:
    """Return the (P, q) matrix that maps theta to intercept and slopes in the user's units."""
    slopes = coordinates.frame[:-1] / anchor.unit[:, None]
    if not coordinates.free:
        return slopes
    return np.vstack([coordinates.frame[-1] - anchor.origin @ slopes, slopes])


def identified_features(coordinates: Coordinates, scale: Floats) -> npt.NDArray[np.bool_]:
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
    # (d,) True where the coefficient is identified, see `identified_features`
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
class SecondClassProbability:
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
    sums = read(LossReading(features, anchor, coef, intercept, SecondClassProbability(link)))
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
        identified = identified_features(coordinates, scale)
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
