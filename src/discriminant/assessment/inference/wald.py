"""What a fit by likelihood says of its own estimates: standard errors, tests, intervals, criteria.

Every estimate in the user's numbers is a combination of theta (`models.coordinates`):

    estimate = a'theta          variance = dispersion a' H^-1 a,   H = sum of the curvature

H is factorised and never inverted, H = R'R, and a standard error is the length of R'^-1 a: a norm,
in which nothing cancels however far the rows are from zero. Of K classes the estimates are the
differences to the first class, as R's `multinom` has them.

As in R, z is normal; where the dispersion is estimated it is t with the residual degrees of
freedom, but Wald intervals use the normal quantile all the same (`confint.default`). Intervals by
the profile of the likelihood, and tests that leave columns out, read rows again:
`assessment.profile`.

Inference for classes: logistic regression by any link, and softmax.

The log likelihood is that of the labels, minus the summed loss; its null has the shares of the
classes alone:

    log L = -sum w l        log L_0 = sum_k W_k log(W_k / W)

Two classes have Tjur's coefficient too: the mean probability of the second class among its own rows
less that among the others. Both sums are read in one pass, as loss and as slope of the intercept.

What a logistic fit keeps so that it can say later how sure it is; no rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import xlogy
from scipy.stats import norm, t as student

from discriminant.errors import InferenceError
from discriminant.models.linear.logistic import LogisticFit, penalty_scale
from discriminant.models.linear.optimise import Point
from discriminant.models.linear.preconditioning import Coordinates
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.loss import LossReading, LossSums, Pass, ScoreDerivatives, Want
from discriminant.moments.softmax_loss import LINK_TAILS, LinkName
from discriminant.table.blocks import Block, Floats

INTERCEPT = "(Intercept)"


@dataclass(frozen=True, slots=True)
class Likelihood:
    """How well the rows are fitted, by all columns and by none."""

    deviance: float
    null_deviance: float
    log_likelihood: float
    null_log_likelihood: float
    rows: int  # that count: of positive weight
    df_residual: int
    df_null: int
    numbers: int  # estimated, a dispersion among them
    dispersion: float = 1.0
    free: bool = False  # whether the dispersion is estimated
    gaussian: bool = False  # deviances are then compared by their logs
    tjur: float | None = None  # of two classes: mean probability of the second there and elsewhere

    @property
    def aic(self) -> float:
        """Akaike's criterion."""
        return -2.0 * self.log_likelihood + 2.0 * self.numbers

    @property
    def bic(self) -> float:
        """Schwarz's criterion."""
        return -2.0 * self.log_likelihood + float(np.log(self.rows)) * self.numbers

    @property
    def pseudo_r2(self) -> dict[str, float]:
        """Shares explained: of deviance, and as McFadden, Cox & Snell, Nagelkerke and Tjur say."""
        gain = self.log_likelihood - self.null_log_likelihood
        if self.gaussian:  # whose log likelihood depends on the unit of the response
            with np.errstate(all="ignore"):
                return {"deviance": float(1.0 - np.float64(self.deviance) / self.null_deviance)}
        with np.errstate(all="ignore"):
            snell = float(-np.expm1(-2.0 * gain / self.rows))
            most = float(-np.expm1(2.0 * self.null_log_likelihood / self.rows))
            found = {
                "deviance": float(1.0 - np.float64(self.deviance) / self.null_deviance),
                "mcfadden": float(1.0 - self.log_likelihood / np.float64(self.null_log_likelihood)),
                "cox_snell": snell,
                "nagelkerke": snell / most if most else float("nan"),
            }
        return found if self.tjur is None else found | {"tjur": self.tjur}


@dataclass(frozen=True, slots=True, eq=False)
class Inference:
    """p estimates in the user's numbers, class by class, the intercept first."""

    title: str  # what was fitted, for the head of a summary
    names: tuple[str, ...]  # p
    classes: tuple[object, ...] | None  # p, each against the first class; None where there is one
    estimate: Floats  # (p,)
    directions: Floats  # (p, q m) each as a combination of theta, taken column by column
    root: Floats  # (q m, p) R'^-1 a
    likelihood: Likelihood
    odds: bool  # whether exp(estimate) is a ratio of odds
    rates: bool = False  # whether it is a ratio of means
    passes: int = 0
    steps: int = 0
    first: object = None  # the class that the others are compared with
    second: object = None  # the only other one, if there are two
    converged: bool = True
    std_error: Floats = field(init=False)  # (p,) NaN where the rows do not tell

    def __post_init__(self) -> None:
        length = np.sqrt(np.einsum("ip,ip->p", self.root, self.root))
        object.__setattr__(self, "std_error", np.sqrt(self.likelihood.dispersion) * length)

    @property
    def covariance(self) -> Floats:
        """(p, p) covariance of the estimates."""
        return np.asarray(self.likelihood.dispersion * (self.root.T @ self.root))

    @property
    def statistic(self) -> Floats:
        """(p,) estimate over standard error: z, or t where the dispersion is estimated."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.estimate / self.std_error

    @property
    def letter(self) -> str:
        """What the statistic is called."""
        return "t" if self.likelihood.free else "z"

    @property
    def p(self) -> Floats:
        """(p,) two-sided p-values, from the tail itself."""
        far = np.abs(self.statistic)
        if self.likelihood.free:
            return np.asarray(2.0 * student.sf(far, max(self.likelihood.df_residual, 0) or np.nan))
        return np.asarray(2.0 * norm.sf(far))

    def wald(self, level: float = 0.95) -> Floats:
        """(p, 2) estimate -+ normal quantile times standard error."""
        reach = norm.isf(0.5 * (1.0 - level)) * self.std_error
        return np.column_stack([self.estimate - reach, self.estimate + reach])

    def odds_ratios(self, level: float = 0.95) -> Floats:
        """(p, 3) exp of each estimate and of the ends of its Wald interval, of a logit."""
        if not self.odds:
            raise InferenceError.no_odds(self.title)
        with np.errstate(over="ignore"):
            return np.exp(np.column_stack([self.estimate, self.wald(level)]))

    def rate_ratios(self, level: float = 0.95) -> Floats:
        """(p, 3) exp of each estimate and of the ends of its Wald interval, of a log link.

        A step of one in a column multiplies the mean by it: a rate, or of shares a risk.
        """
        if not self.rates:
            raise InferenceError.no_rates(self.title)
        with np.errstate(over="ignore"):
            return np.exp(np.column_stack([self.estimate, self.wald(level)]))

    def places(self, name: str) -> npt.NDArray[np.intp]:
        """Which estimates belong to a column, one for each class."""
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
    told: npt.NDArray[np.bool_] | None = None,
    level: float = 0.0,
    odds: bool = False,
    rates: bool = False,
    passes: int = 0,
    steps: int = 0,
    converged: bool = True,
) -> Inference:
    """Estimates and their errors, from where a fit ended.

    Parameters
    ----------
    theta
        (q, m) where the likelihood is largest.
    curvature
        (m q, m q) of the loss, summed over rows and not averaged, by theta there.
    labels
        (K,) classes where theta has a contrast, else None.
    told
        (d,) features whose coefficient the rows tell; `estimable` finds them. None: all of them.
    level
        What is to be added to the intercept.
    """
    across = user_map(coordinates, anchor)
    names = ((INTERCEPT,) if coordinates.free else ()) + tuple(features)
    classes: tuple[object, ...] | None = None
    directions = across
    if coordinates.contrast is not None:
        assert labels is not None
        apart = coordinates.contrast[1:] - coordinates.contrast[:1]
        directions = np.asarray(np.kron(apart, across), dtype=np.float64)
        classes = tuple(label for label in labels[1:].tolist() for _ in names)
        names = names * (len(labels) - 1)
    estimate = directions @ theta.T.ravel()
    root = _root(curvature, directions)
    if told is not None and not told.all():
        lost = np.tile(
            np.append([False] * bool(coordinates.free), ~told), len(names) // len(across)
        )
        root[:, lost.astype(bool)] = np.nan
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
    """(P, q) from theta to the intercept, if there is one, and the slopes in the user's numbers."""
    slopes = coordinates.frame[:-1] / anchor.unit[:, None]
    if not coordinates.free:
        return slopes
    return np.vstack([coordinates.frame[-1] - anchor.origin @ slopes, slopes])


def estimable(coordinates: Coordinates, scale: Floats) -> npt.NDArray[np.bool_]:
    """(d,) whose coefficients the rows tell: those that no dependence between columns touches.

    A dependence has no coordinate, and in columns of standard deviation one (`scale`) it is at
    right angles to all coordinates; so a coefficient that is told lies within them.
    """
    basis = scale[:, None] * coordinates.frame[:-1, coordinates.free :]
    if basis.shape[1] == len(basis):
        return np.ones(len(basis), dtype=bool)
    axes = np.linalg.qr(basis)[0]
    return np.asarray(np.einsum("dr,dr->d", axes, axes) > 1.0 - 1e-6)


def _root(curvature: Floats, directions: Floats) -> Floats:
    """(n, p) R'^-1 a for each of p combinations; where curvature is lost, errors are infinite."""
    try:
        upper = cholesky(curvature)
    except LinAlgError:
        return np.full(directions.T.shape, np.inf)
    return np.asarray(solve_triangular(upper, directions.T, trans="T"))


@dataclass(frozen=True, slots=True, eq=False)
class ClassFit:
    """What inference keeps of a fit to classes; no rows."""

    theta: Floats  # (q, m)
    slope: LossSums  # of the loss without penalty at theta, with its curvature
    coordinates: Coordinates
    anchor: Anchor
    features: tuple[str, ...]  # d
    labels: npt.NDArray[np.object_]  # (K,)
    weight: Floats  # (K,) of each class
    rows: int  # of positive weight
    link: LinkName = "logit"
    told: npt.NDArray[np.bool_] | None = None  # (d,) see `inference.estimable`
    tjur: float | None = None

    def infer(
        self, title: str, *, passes: int = 0, steps: int = 0, converged: bool = True
    ) -> Inference:
        """Estimates against the first class, with their errors and tests."""
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
            told=self.told,
            odds=self.link == "logit",
            passes=passes,
            steps=steps,
            converged=converged,
        )

    @property
    def likelihood(self) -> Likelihood:
        """Of the labels, given the features."""
        m, q = len(self.labels) - 1, self.coordinates.size
        null = self._null()
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

    def _null(self) -> float:
        """Log likelihood without features: of the shares, or without an intercept of score zero."""
        if self.coordinates.free:
            return float(xlogy(self.weight, self.weight / self.weight.sum()).sum())
        if len(self.weight) > 2:
            return -float(self.weight.sum() * np.log(len(self.weight)))
        zero = LINK_TAILS[self.link](np.zeros(1))
        return float(self.weight[0] * zero.log_zero[0] + self.weight[1] * zero.log_one[0])


@dataclass(frozen=True, slots=True)
class SecondClass:
    """Probability of the second class, summed over its own rows (loss) and the others (slope)."""

    link: LinkName

    @property
    def columns(self) -> int:
        """One score."""
        return 1

    def at(self, scores: Floats, tile: Block, *, want: Want) -> ScoreDerivatives:
        """The two sums."""
        chance = np.exp(LINK_TAILS[self.link](scores[0]).log_one)
        if tile.weight is not None:
            chance = chance * tile.weight
        own = tile.codes.astype(bool)
        others = np.where(own, 0.0, chance)[None]
        return ScoreDerivatives(float(chance[own].sum()), others, None, None, np.inf)


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
    """Tjur's coefficient of discrimination of two classes; one pass."""
    coef, intercept = coordinates.coefficients(theta)
    found = read(LossReading(features, anchor, coef, intercept, SecondClass(link)))
    return float(found.loss / weight[1] - found.gradient[-1, 0] / weight[0])


_STILL = 2e-9  # a longer last step changes digits of standard errors that a few rows can show
_WORTH = 5e9  # products: a curvature that takes more is read only if the way asks for it
_SHORT = 5e6  # numbers of a table that is quickly read once more


def inference_state(
    found: LogisticFit, read: Pass, moments: ClassMoments, link: LinkName
) -> ClassFit | None:
    """The curvature at the end of the way; None where there are too many estimates for it."""
    coordinates, theta = found.coordinates, found.descent.theta
    if not isinstance(coordinates, Coordinates):
        return None
    point = found.descent.point
    rows = int(moments.rows.sum())
    cheap = rows * float(theta.size) ** 2 <= _WORTH
    if (_moved(point, theta) and rows * theta.size <= _SHORT) or point.slope.curvature is None:
        if point.slope.curvature is None and not cheap:
            return None
        point = found.objective.evaluate(theta, want="curvature")
    at = moments.at(found.anchor)
    two = len(moments.labels) == 2
    return ClassFit(
        theta,
        point.slope,
        coordinates,
        found.anchor,
        moments.features,
        np.asarray(moments.labels, dtype=object),
        moments.weight,
        rows,
        link,
        estimable(
            coordinates,
            penalty_scale(at, standardize=True, intercept=bool(coordinates.free)),
        ),
        _tjur(found, read, moments, link) if two and rows * len(at.features) <= _SHORT else None,
    )


def _moved(point: Point, theta: Floats) -> bool:
    return float(np.abs(point.theta - theta).max(initial=0.0)) > _STILL


def _tjur(found: LogisticFit, read: Pass, moments: ClassMoments, link: LinkName) -> float:
    assert isinstance(found.coordinates, Coordinates)
    return tjur(
        read,
        found.descent.theta,
        coordinates=found.coordinates,
        anchor=found.anchor,
        features=moments.features,
        weight=moments.weight,
        link=link,
    )
