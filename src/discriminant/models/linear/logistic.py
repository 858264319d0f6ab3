"""Logistic regression: maximum likelihood for K classes, or for two classes with another link.

    minimise  mean loss  +  ridge / 2 sum_j (sd_j coef_j)^2

in white coordinates (`linear.whitening`), starting from the linear discriminant. That the
likelihood has a maximum is proved. With g the gradient and H the curvature of the summed loss,

    sqrt(g' H^-1 g) R <= 1/2        R = sqrt(2) / sqrt(least weight times probability of any row)

implies a maximum nearby (Bach 2010, proposition 2: |l'''| <= R l'' along any direction of unit
length in H, since no row's own curvature exceeds H). For separated classes this never holds; where
it does not hold, `linear.separation` decides.

With Jeffreys' prior (Firth 1993) estimates are finite even for separated classes:

    minimise  loss / weight  -  log det H / (2 weight)

with H the curvature of the summed loss. The determinant needs one pass, its gradient another; steps
use H alone, as is usual, which leads to the same minimum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular

from discriminant.errors import OptionError
from discriminant.models.linear.optimise import (
    GRADIENT,
    Objective,
    OptimisationResult,
    PenalisedLoss,
    Point,
    Progress,
    exact_curvature,
    gradient_descent,
    lbfgs,
    newton_descent,
)
from discriminant.models.linear.preconditioning import (
    Coordinates,
    ScaledCoordinates,
    ScaledSample,
    WhiteSample,
    contrasts,
    white_coordinates,
)
from discriminant.models.rules import LinearRule
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.loss import Pass, Want
from discriminant.moments.qr_factor import ColumnSums
from discriminant.moments.softmax_loss import BinaryLoss, JeffreysReading, LinkName, SoftmaxLoss
from discriminant.table.blocks import Block, Floats, dense


@dataclass(frozen=True, slots=True, eq=False)
class JeffreysLoss:
    """A mean loss less its share of half the log determinant of the curvature."""

    plain: PenalisedLoss
    coordinates: Coordinates

    def evaluate(self, theta: Floats, *, want: Want = "gradient") -> Point:
        """Two passes over the rows."""
        point = self.plain.evaluate(theta, want="curvature")
        if not theta.size:
            return point
        assert point.curvature is not None
        try:
            low = cholesky(point.curvature * point.slope.weight, lower=True)
        except LinAlgError:  # so far out that no row tells two scores apart
            return replace(point, value=np.inf)
        half_log = float(np.log(np.diagonal(low)).sum())
        gradient = self._pull(theta, low) / point.slope.weight
        return replace(
            point,
            value=point.value - half_log / point.slope.weight,
            gradient=point.gradient - gradient,
        )

    def _pull(self, theta: Floats, low: Floats) -> Floats:
        q, m = theta.shape
        root = solve_triangular(low, np.eye(len(low)), lower=True).T.reshape(m, q, m * q)
        coordinates, summed = self.coordinates, self.coordinates.summed
        at = summed.coefficients(theta)
        reading = coordinates.reading(
            self.plain.features,
            self.plain.anchor,
            lambda anchor: JeffreysReading(anchor, *at, summed.frame, summed.contrast, root),
        )
        return coordinates.gradient(self.plain.read(reading).gradient)


Solver = Literal["auto", "newton", "lbfgs", "gradient"]
SOLVERS = ("auto", "newton", "lbfgs", "gradient")

_CENTRED = 4.0  # a mean of so many standard deviations costs no digit worth a subtraction
_FEW = 64  # coefficients; up to so many, their curvature is read about as fast as their gradient
_SOME = 1500  # coefficients; up to so many, it is better read than guessed for long
_PATIENCE = 24  # passes
_FAR = 3.0  # scores may change by so much in a step toward Jeffreys' prior
_LONG_MEMORY = 100  # passes that correct a curvature which lacks that of the prior
_MOST_NUMBERS = 4000  # coefficients with Jeffreys' prior: their curvature takes 128 MB
_MOST_PRODUCTS = 3e10  # in a step toward it: some ten seconds, of which it takes hundreds
_MANY = 50  # rows for each number, enough for a start
_SLOW_GOAL = 1e-12  # largest gradient to aim at where the last step does not square the error


@dataclass(frozen=True, slots=True, eq=False)
class LogisticOptions:
    """Options of a logistic fit."""

    link: LinkName = "logit"
    ridge: float = 0.0
    standardize: bool = True  # the penalty is on coefficients times standard deviations
    intercept: bool = True
    jeffreys: bool = False
    solver: Solver = "auto"
    max_passes: int = 1000  # passes
    progress: Progress | None = None
    l1_ratio: float = 0.0  # share of the l1 penalty: `linear.elastic_net`
    min_row_weight: float = 1.0  # smallest positive weight of a row
    skip_confirmation: bool = False  # stop before a pass that would only confirm convergence


@dataclass(frozen=True, slots=True, eq=False)
class LogisticFit:
    """Result of a logistic fit."""

    objective: Objective
    coordinates: Coordinates | ScaledCoordinates
    anchor: Anchor
    descent: OptimisationResult
    overlap: bool  # the likelihood is proved to have a maximum

    def rule(self, labels: Any) -> LinearRule:
        """K scores, or one for two classes."""
        coef, intercept = self.coordinates.coefficients(self.descent.theta)
        return LinearRule(labels, self.anchor, coef.T, intercept)


def fit_logistic(
    read: Pass, moments: ClassMoments, sample: Block, options: LogisticOptions
) -> LogisticFit:
    """Fit by passes over the rows.

    Parameters
    ----------
    read
        Function that sums a reading over all rows.
    moments
        Of the same rows, in detail pooled or finer.
    sample
        Some of the rows, evenly spread.
    """
    moments = moments.at(reading_anchor(moments, intercept=options.intercept))
    K = len(moments.labels)
    loss = SoftmaxLoss(K) if K > 2 else BinaryLoss(options.link)
    scale = None
    if options.ridge > 0:
        scale = penalty_scale(moments, standardize=options.standardize, intercept=options.intercept)
    coordinates = white_coordinates(
        moments,
        classes=K if K > 2 else 0,
        intercept=options.intercept,
        ridged=scale,
        read=read,
        remedy=None if options.jeffreys else "ridge",
    )
    if options.jeffreys:
        _check_jeffreys_size(moments, coordinates.size * (K - 1))
    penalty = None if scale is None else options.ridge * coordinates.penalty(scale)
    plain = PenalisedLoss(read, moments.features, moments.anchor, loss, coordinates, penalty)
    objective: Objective = JeffreysLoss(plain, coordinates) if options.jeffreys else plain
    some = white_sample(sample, plain, coordinates)
    start = intercept_only_start(moments, coordinates)
    if (
        not options.jeffreys
    ):  # separated classes put the discriminant where the curvature is nothing
        start = some.best_between(start, discriminant_start(moments, coordinates))
        few = 4 * len(some.rows) <= moments.rows.sum()
        if options.solver == "auto" and start.size <= _FEW and few:
            start = sample_start(some, start)
    descent = _descend(objective, start, some, options)
    left = options.max_passes - descent.passes
    if (
        not descent.converged and left > 0 and not proves_separation(descent.point, options)
    ):  # lost where the curvature is nothing: begin lower
        lower = intercept_only_start(moments, coordinates)
        again = _descend(objective, lower, some, _remaining_options(options, descent.passes))
        if again.converged or again.point.value < descent.point.value:
            descent = replace(again, path=descent.path + again.path)
    overlap = (
        options.ridge > 0
        or options.jeffreys
        or proves_overlap(descent.point, some, link=options.link)
    )
    return LogisticFit(objective, coordinates, moments.anchor, descent, overlap)


def _check_jeffreys_size(moments: ClassMoments, numbers: int) -> None:
    """Raise if Jeffreys' prior, which needs the curvature in every pass, would take too long."""
    rows = int(moments.rows.sum())
    if rows * float(numbers) ** 2 > _MOST_PRODUCTS or numbers > _MOST_NUMBERS:
        raise OptionError.of(
            "bias_reduction",
            "jeffreys",
            f"None for {numbers:,} coefficients and {rows:,} rows, since a step would take "
            f"{rows * float(numbers) ** 2:.0e} products (at most {_MOST_PRODUCTS:.0e}, and "
            f"{_MOST_NUMBERS:,} coefficients). Pass ridge > 0 instead, keep fewer columns, merge "
            "classes, or fit to some of the rows",
        )


def proves_separation(point: Point, options: LogisticOptions) -> bool:
    """Whether the classes are proved to be completely separated: no row has a loss of log 2."""
    if options.ridge or options.jeffreys or options.link == "cloglog":
        return False
    return bool(point.slope.loss < 0.99 * np.log(2.0) * options.min_row_weight)


def fit_logistic_scaled(
    read: Pass,
    sums: ColumnSums,
    weight: Floats,
    sample: Block,
    *,
    features: tuple[str, ...],
    options: LogisticOptions,
) -> LogisticFit:
    """Fit sparse rows with a ridge, for more features than products of them can be stored.

    Parameters
    ----------
    sums
        Of the columns.
    weight
        (K,) of each class.
    sample
        Some of the rows.
    """
    K, d = len(weight), len(sums.total)
    loss = SoftmaxLoss(K) if K > 2 else BinaryLoss(options.link)
    spread = sums.std if options.intercept else np.hypot(sums.std, sums.mean)
    scale = np.divide(1.0, spread, out=np.zeros(d), where=spread > 0)
    mean = sums.mean if options.intercept else np.zeros(d)
    contrast = contrasts(K) if K > 2 else None
    coordinates = ScaledCoordinates(scale, mean, contrast, int(options.intercept))
    penalty = options.ridge * coordinates.penalty(spread if options.standardize else np.ones(d))
    objective = PenalisedLoss(read, features, Anchor.zero(d), loss, coordinates, penalty)
    start = np.zeros((coordinates.size, loss.columns if contrast is None else K - 1))
    if options.intercept:
        level = np.log(weight / weight.sum())
        start[0] = level[1] - level[0] if contrast is None else level @ contrast
    some = ScaledSample(sample, loss, coordinates, penalty)
    descent = lbfgs(
        objective,
        start,
        sketch=lambda point: some.sketch(point.theta),
        most=options.max_passes,
        progress=options.progress,
    )
    return LogisticFit(objective, coordinates, Anchor.zero(d), descent, overlap=True)


def _remaining_options(options: LogisticOptions, passes: int) -> LogisticOptions:
    return replace(
        options,
        max_passes=options.max_passes - passes,
        progress=shift_progress(options.progress, passes),
    )


def _descend(
    objective: Objective, start: Floats, some: WhiteSample, options: LogisticOptions
) -> OptimisationResult:
    """The way asked for; left to us, Newton where it is cheap and L-BFGS where it is not."""
    solver, size = options.solver, start.size
    if not size:  # no column varies and there is no intercept: nothing is sought
        return newton_descent(objective, start, most=1)
    if options.jeffreys:  # the curvature that is read is not that of the prior, so it is corrected

        def share(step: Floats) -> float:
            """Where rows are far out there is next to no curvature: a step would go anywhere."""
            return _FAR / max(float(np.abs(some.rows @ step).max(initial=0.0)), _FAR)

        return lbfgs(
            objective,
            start,
            sketch=exact_curvature,
            renewed=None,
            most=options.max_passes,
            progress=options.progress,
            goal=_SLOW_GOAL,
            share=share,
            memory=_LONG_MEMORY,
        )
    stop = partial(proves_separation, options=options)
    if solver == "newton" or (solver == "auto" and size <= _FEW):
        goal = GRADIENT if options.link == "logit" else _SLOW_GOAL  # others expect their curvature
        return newton_descent(
            objective,
            start,
            most=options.max_passes,
            progress=options.progress,
            goal=goal,
            foresee=options.skip_confirmation and options.link == "logit",
            stop=stop,
        )
    if solver == "gradient":
        steep = some.curvature_bound()
        return gradient_descent(
            objective, start, scale=steep, most=options.max_passes, progress=options.progress
        )
    patience = (
        options.max_passes
        if solver == "lbfgs" or size > _SOME
        else min(options.max_passes, _PATIENCE)
    )
    first = lbfgs(
        objective,
        start,
        sketch=lambda point: some.sketch(point.theta),
        most=patience,
        progress=options.progress,
        enough=None
        if options.ridge
        else lambda point: proves_overlap(point, some, link=options.link),
        stop=stop,
    )
    left = options.max_passes - first.passes
    settled = first.converged or stop(first.point)
    if settled or solver == "lbfgs" or size > _SOME or left < 1:
        return first
    progress = shift_progress(options.progress, first.passes)
    rest = newton_descent(objective, first.theta, most=left, progress=progress, stop=stop)
    return replace(rest, path=first.path + rest.path)


def shift_progress(progress: Progress | None, passes: int) -> Progress | None:
    """Progress callback of a minimisation that continues after `passes` passes."""
    if progress is None:
        return None
    return lambda more, value, steepness: progress(passes + more, value, steepness)


def reading_anchor(moments: ClassMoments, *, intercept: bool) -> Anchor:
    """Anchor of the rows: zero where that costs no digit, since nothing is subtracted then.

    Without an intercept the scores are zero where the features are, so it must be zero.
    """
    at_zero = Anchor(np.zeros_like(moments.anchor.origin), moments.anchor.unit)
    if not intercept:
        return at_zero
    there = moments.at(at_zero)
    spread = np.sqrt(np.diagonal(there.pooled) / there.weight.sum())
    near = np.abs(there.centre) <= _CENTRED * spread
    return at_zero if near.all() else moments.anchor


def penalty_scale(moments: ClassMoments, *, standardize: bool, intercept: bool) -> Floats:
    """(d,) factor of each coefficient in the penalty.

    Without an intercept columns are standardised about zero, where scores are.
    """
    if not standardize:
        return np.asarray(1.0 / moments.anchor.unit)
    apart = moments.mean - (moments.centre if intercept else 0.0)
    total = np.diagonal(moments.pooled) + moments.weight @ apart**2
    return np.asarray(np.sqrt(total / moments.weight.sum()))


def white_sample(sample: Block, objective: PenalisedLoss, coordinates: Coordinates) -> WhiteSample:
    """Rows in white coordinates."""
    frame = coordinates.frame
    rows = objective.anchor.offsets(dense(sample.features)) @ frame[:-1] + frame[-1]
    weight = np.ones(len(rows)) if sample.weight is None else sample.weight
    some = weight > 0
    return WhiteSample(
        rows[some],
        sample.codes[some],
        weight[some] / weight.sum(),
        float(weight.sum()),
        objective.loss,
        coordinates.contrast,
        objective.penalty,
    )


def discriminant_start(moments: ClassMoments, coordinates: Coordinates) -> Floats:
    """(q, m) the linear discriminant: in white coordinates S_w = I - M' share M, M class means.

    Where classes are so far apart that S_w is nearly singular, a little is added to it.
    """
    frame = coordinates.frame
    share = moments.weight / moments.weight.sum()
    means = moments.mean @ frame[:-1, coordinates.free :] + frame[-1, coordinates.free :]
    within = np.eye(means.shape[1]) - (share[:, None] * means).T @ means
    within += 0.01 * np.eye(len(within))
    slope = np.linalg.solve(within, means.T)
    level = np.log(share) - 0.5 * np.einsum("kr,rk->k", means, slope)
    theta = np.vstack([level[None], slope]) if coordinates.free else slope
    if coordinates.contrast is None:
        return np.asarray(theta[:, 1:] - theta[:, :1])
    return np.asarray(theta @ coordinates.contrast)


def sample_start(some: WhiteSample, start: Floats) -> Floats:
    """Start from the maximum likelihood on the sample, if that has enough rows."""
    if len(some.rows) < _MANY * start.size:
        return start
    q = some.rows.shape[1]
    plain = Coordinates(np.vstack([np.eye(q), np.zeros((1, q))]), some.contrast, 0)
    block = Block(some.rows, some.codes, some.weight)
    names = tuple(f"coordinate {j}" for j in range(q))
    objective = PenalisedLoss(
        lambda reading: reading.read(block), names, Anchor.zero(q), some.loss, plain, some.penalty
    )
    return newton_descent(objective, start, most=_PATIENCE // 4).theta


def intercept_only_start(moments: ClassMoments, coordinates: Coordinates) -> Floats:
    """(q, m) zero slopes, and intercepts from the class shares."""
    contrast = coordinates.contrast
    columns = 1 if contrast is None else contrast.shape[1]
    start = np.zeros((coordinates.size, columns))
    if coordinates.free:
        level = np.log(moments.weight / moments.weight.sum())
        start[0] = level[1] - level[0] if contrast is None else level @ contrast
    return start


def proves_overlap(point: Point, some: WhiteSample, *, link: LinkName = "logit") -> bool:
    """Whether Bach's bound proves that the likelihood has a maximum near a point."""
    weight, least = point.slope.weight, point.slope.least
    if link != "logit" or not np.isfinite(least) or least <= 0:
        return False
    square = weight * _decrement(point, some)
    return bool(square * 2.0 / least <= 0.25)


def _decrement(point: Point, some: WhiteSample) -> float:
    """g' H^-1 g of the mean loss, or more than that if only some rows tell of H."""
    try:
        if point.curvature is not None:
            flat = point.gradient.T.ravel()
            return float(flat @ cho_solve(cho_factor(point.curvature), flat))
        floor = some.curvature_floor(point.theta) / point.slope.weight
        return float((point.gradient * cho_solve(cho_factor(floor), point.gradient)).sum())
    except LinAlgError:
        return np.inf
