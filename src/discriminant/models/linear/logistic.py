"""Logistic regression for K classes; for two classes also with the links probit, cloglog, cauchit.

    minimise  mean loss  +  ridge / 2 sum_j (sd_j coef_j)^2

in white coordinates (`linear.preconditioning`), starting from the linear discriminant. Without a
ridge the likelihood has a maximum only if the classes are not separated. The fit tries to prove
that the classes are not separated. Let g be the gradient and H the curvature of the summed loss.
Then

    sqrt(g' H^-1 g) R <= 1/2        R = sqrt(2) / sqrt(least weight times probability of any row)

implies that the likelihood has a maximum nearby (Bach 2010, proposition 2: |l'''| <= R l'' along
any direction of unit length in H, since the curvature of a single row never exceeds H). For
separated classes this inequality never holds. If the inequality does not hold, `linear.separation`
decides whether the classes are separated. If Newton steps converge slowly, separation is tested
during the iteration, since for separated classes the steps would never end.

With Jeffreys' prior (Firth 1993) estimates are finite even for separated classes:

    minimise  loss / weight  -  log det H / (2 weight)

with H the curvature of the summed loss. Each evaluation takes two passes over the rows: one for the
determinant, one for its gradient. As is usual, steps use H and ignore the curvature of the prior;
this does not change the minimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from discriminant.errors import OptionError
from discriminant.models.linear.optimise import (
    GRADIENT,
    ExactCurvature,
    Objective,
    OptimisationResult,
    PenalisedLoss,
    Point,
    Progress,
    exact_curvature,
    gradient_descent,
    lbfgs,
    newton_descent,
    solve_positive,
)
from discriminant.models.linear.preconditioning import (
    Coordinates,
    ScaledCoordinates,
    ScaledCurvatureSample,
    WhiteSample,
    contrasts,
    white_coordinates,
)
from discriminant.models.linear.separation import Separation
from discriminant.models.linear.truncated_newton import (
    MAX_NUMBERS,
    Each,
    SinglePrecisionLoss,
    truncated_newton,
)
from discriminant.models.rules import LinearRule
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.loss_gradient_sums import Pass, Want
from discriminant.moments.qr_factor import ColumnSums
from discriminant.moments.softmax_loss import (
    BinaryLoss,
    JeffreysGradientReading,
    LinkName,
    SoftmaxLoss,
)
from discriminant.table.blocks import Block, Floats, dense


@dataclass(frozen=True, slots=True, eq=False)
class JeffreysLoss:
    """Mean loss minus half the log determinant of the curvature, the log of Jeffreys' prior."""

    plain: PenalisedLoss
    coordinates: Coordinates

    def evaluate(self, theta: Floats, *, want: Want = "gradient") -> Point:
        """Return the point at theta with value and gradient, by two passes over the rows."""
        point = self.plain.evaluate(theta, want="curvature")
        if not theta.size:
            return point
        assert point.curvature is not None
        try:
            lower = cholesky(point.curvature * point.slope.weight, lower=True)
        except LinAlgError:  # theta is so large that all probabilities are 0 or 1
            return replace(point, value=np.inf)
        half_logdet = float(np.log(np.diagonal(lower)).sum())
        gradient = self._log_determinant_gradient(theta, lower) / point.slope.weight
        return replace(
            point,
            value=point.value - half_logdet / point.slope.weight,
            gradient=point.gradient - gradient,
        )

    def _log_determinant_gradient(self, theta: Floats, lower: Floats) -> Floats:
        q, m = theta.shape
        root = solve_triangular(lower, np.eye(len(lower)), lower=True).T.reshape(m, q, m * q)
        coordinates, summed = self.coordinates, self.coordinates.summed
        coefficients = summed.coefficients(theta)
        reading = coordinates.reading(
            self.plain.features,
            self.plain.anchor,
            lambda anchor: JeffreysGradientReading(
                anchor, *coefficients, summed.frame, summed.contrast, root
            ),
        )
        return coordinates.gradient(self.plain.read(reading).gradient)


Solver = Literal["auto", "newton", "lbfgs", "gradient"]
SOLVERS = ("auto", "newton", "lbfgs", "gradient")

NEAR_ZERO = 4.0  # rows are not centred if all means are within this many standard deviations of 0
FEW_COEFFICIENTS = 64  # up to this number the curvature is summed about as fast as the gradient
SOME_COEFFICIENTS = 1500  # up to this number exact curvature is worth its cost if L-BFGS is slow
_PATIENCE = 24  # number of passes of L-BFGS before Newton steps are tried
_MAX_CHANGE = 3.0  # largest change of a score in a step with Jeffreys' prior
_LONG_MEMORY = 100  # L-BFGS corrections with Jeffreys' prior, whose curvature is not computed
_MAX_COEFFICIENTS = 4000  # largest number with Jeffreys' prior: the curvature takes 128 MB
_MAX_PRODUCTS = 3e10  # largest number in a step with Jeffreys' prior: takes about ten seconds
_SLOW_REDUCTION = 0.2  # reduction of the gradient by a step that may indicate separation
_SLOW_STEPS = 3  # number of such steps after which separation is tested
_ROWS_PER_COEFFICIENT = 50  # number of sample rows per coefficient needed to fit a starting point
SLOW_TOLERANCE = 1e-12  # tolerance of the gradient if Newton steps do not converge quadratically


@dataclass(frozen=True, slots=True, eq=False)
class LogisticOptions:
    """Options of a logistic fit."""

    link: LinkName = "logit"
    ridge: float = 0.0
    standardize: bool = True  # penalise coefficients times standard deviations
    intercept: bool = True
    jeffreys: bool = False
    solver: Solver = "auto"
    max_passes: int = 1000  # largest number of passes over the rows
    progress: Progress | None = None
    l1_ratio: float = 0.0  # share of the l1 penalty (`linear.elastic_net`)
    min_row_weight: float = 1.0  # smallest positive weight of a row
    skip_confirmation: bool = False  # stop before a pass that would only confirm convergence
    reuse_curvature: bool = False  # reuse an expensive curvature: for rows in memory


@dataclass(frozen=True, slots=True, eq=False)
class LogisticFit:
    """Result of a logistic fit."""

    objective: Objective
    coordinates: Coordinates | ScaledCoordinates
    anchor: Anchor
    descent: OptimisationResult
    overlap: bool  # whether the likelihood is proved to have a maximum
    separation: Separation | None = None  # result of a test during the iteration, if there was one

    def rule(self, labels: Any) -> LinearRule:
        """Return the rule, with K scores or, for two classes, one score."""
        coef, intercept = self.coordinates.coefficients(self.descent.theta)
        return LinearRule(labels, self.anchor, coef.T, intercept)


SeparationTest = Callable[[Coordinates, Anchor, Floats], Separation]  # arguments: maps, theta


def fit_logistic(
    read: Pass,
    moments: ClassMoments,
    sample: Block,
    options: LogisticOptions,
    *,
    test: SeparationTest | None = None,
    rows: Callable[[], Block] | None = None,
    each: Each = map,
) -> LogisticFit:
    """Fit logistic regression by passes over the rows.

    Parameters
    ----------
    read
        Function that passes over the rows: it sums over all blocks of rows what a reading computes
        for each block.
    moments
        Class moments of the same rows, of detail 'pooled' or finer.
    sample
        Representative sample of the rows.
    options
        Link, penalty, solver and limits.
    test
        Test of separation, for fits without a penalty.
    rows
        Function that returns all rows, if they are in memory and dense.
    each
        Function such as `map`, which applies a function to parts of these rows.
    """
    moments = moments.at(reading_anchor(moments, intercept=options.intercept))
    K = len(moments.labels)
    loss = SoftmaxLoss(K) if K > 2 else BinaryLoss(options.link)
    scale = None
    if options.ridge > 0:
        scale = penalty_factors(
            moments, standardize=options.standardize, intercept=options.intercept
        )
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
    white = white_sample(sample, plain, coordinates)
    start = intercept_only_start(moments, coordinates)
    approximation: ExactCurvature | None = None
    # With Jeffreys' prior classes may be separated: the curvature vanishes at the discriminant.
    if not options.jeffreys:
        start = white.best_between(start, discriminant_start(moments, coordinates))
        is_small = 4 * len(white.rows) <= moments.rows.sum()
        reuses = options.reuse_curvature and options.solver == "auto"
        if reuses and start.size <= FEW_COEFFICIENTS and is_small:
            approximation = sample_curvature(white, start)
    anchor = moments.anchor
    watch = _SeparationWatch(
        options, None if test is None else lambda theta: test(coordinates, anchor, theta)
    )
    count = int(moments.rows.sum())
    if rows is not None and _suits_truncated_newton(count, plain, start, options):
        descent = truncated_newton(
            plain,
            start,
            SinglePrecisionLoss(rows(), plain, each),
            max_passes=options.max_passes,
            progress=options.progress,
        )
        if not descent.converged and descent.passes < options.max_passes:
            left = _remaining_options(options, descent.passes)
            second = _descend(objective, descent.theta, white, left, watch)
            descent = replace(second, path=descent.path + second.path)
    else:
        descent = _descend(objective, start, white, options, watch, approximation)
    remaining = options.max_passes - descent.passes
    separated = proves_separation(descent.point, options) or bool(watch.result)
    failed = not descent.converged and not separated
    if failed and remaining > 0:  # the curvature may have vanished at the first start
        low_start = intercept_only_start(moments, coordinates)
        left = _remaining_options(options, descent.passes)
        second = _descend(objective, low_start, white, left, watch)
        if second.converged or second.point.value < descent.point.value:
            descent = replace(second, path=descent.path + second.path)
    overlap = (
        options.ridge > 0
        or options.jeffreys
        or (watch.result is not None and not watch.result)
        or proves_overlap(descent.point, white, link=options.link)
    )
    return LogisticFit(objective, coordinates, moments.anchor, descent, overlap, watch.result)


def _suits_truncated_newton(
    rows: int, objective: PenalisedLoss, start: Floats, options: LogisticOptions
) -> bool:
    """Return whether inexact Newton steps are faster than L-BFGS, and their memory is limited."""
    numbers = rows * (objective.coordinates.size + objective.loss.columns)
    return (
        options.ridge > 0
        and options.solver == "auto"
        and objective.loss.columns > 2
        and start.size > SOME_COEFFICIENTS
        and numbers <= MAX_NUMBERS
    )


class _SeparationWatch:
    """Returns whether to end the iteration because the classes are separated.

    If the gradient decreases slowly over several Newton steps, separation is tested once. For
    separated classes each step divides the gradient by about e.
    """

    def __init__(
        self, options: LogisticOptions, test: Callable[[Floats], Separation] | None
    ) -> None:
        self._options, self._test = options, test
        self.result: Separation | None = None
        self._last: Point | None = None
        self._slow_steps = 0

    def __call__(self, point: Point) -> bool:
        if proves_separation(point, self._options):
            return True
        if self._test is None or self.result is not None:
            return bool(self.result)
        last, self._last = self._last, point
        if last is None or last.theta is point.theta:
            return False
        is_slow = point.max_gradient > _SLOW_REDUCTION * last.max_gradient
        self._slow_steps = self._slow_steps + 1 if is_slow else 0
        if self._slow_steps == _SLOW_STEPS:
            self.result = self._test(point.theta)
        return bool(self.result)


def _check_jeffreys_size(moments: ClassMoments, numbers: int) -> None:
    """Raise an error if it is too expensive to compute the curvature for Jeffreys' prior."""
    rows = int(moments.rows.sum())
    if rows * float(numbers) ** 2 > _MAX_PRODUCTS or numbers > _MAX_COEFFICIENTS:
        raise OptionError.of(
            "bias_reduction",
            "jeffreys",
            f"None for {numbers:,} coefficients and {rows:,} rows, since a step would take "
            f"{rows * float(numbers) ** 2:.0e} products (at most {_MAX_PRODUCTS:.0e}, and "
            f"{_MAX_COEFFICIENTS:,} coefficients). Pass ridge > 0 instead, keep fewer columns, "
            "merge classes, or fit to some of the rows",
        )


def proves_separation(point: Point, options: LogisticOptions) -> bool:
    """Return whether the point proves complete separation.

    Separation is proved if the total loss is so small that no row has a loss of log 2 or more.
    """
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
    """Fit logistic regression with a ridge to sparse rows, without a d x d matrix.

    Parameters
    ----------
    read
        Function that passes over the rows: it sums over all blocks of rows what a reading computes
        for each block.
    sums
        Sums of the columns.
    weight
        (K,) weight of each class.
    sample
        Sample of the rows.
    features
        Names of the columns.
    options
        Link, penalty and limits.
    """
    K, d = len(weight), len(sums.total)
    loss = SoftmaxLoss(K) if K > 2 else BinaryLoss(options.link)
    spread = sums.std if options.intercept else np.hypot(sums.std, sums.mean)
    contrast = contrasts(K) if K > 2 else None
    coordinates = ScaledCoordinates.from_spread(
        spread, sums.mean, intercept=options.intercept, contrast=contrast
    )
    penalty = options.ridge * coordinates.penalty(spread if options.standardize else np.ones(d))
    objective = PenalisedLoss(read, features, Anchor.zero(d), loss, coordinates, penalty)
    start = np.zeros((coordinates.size, loss.columns if contrast is None else K - 1))
    if options.intercept:
        log_share = np.log(weight / weight.sum())
        start[0] = log_share[1] - log_share[0] if contrast is None else log_share @ contrast
    scaled = ScaledCurvatureSample(sample, loss, coordinates, penalty)
    descent = lbfgs(
        objective,
        start,
        sketch=lambda point: scaled.sketch(point.theta),
        max_passes=options.max_passes,
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
    objective: Objective,
    start: Floats,
    white: WhiteSample,
    options: LogisticOptions,
    watch: _SeparationWatch,
    approximation: ExactCurvature | None = None,
) -> OptimisationResult:
    """Minimise with the solver that the options name.

    'auto' means Newton's method if there are few coefficients, else L-BFGS, followed by Newton
    steps if L-BFGS converges slowly. `watch` ends Newton's method early for separated classes.
    `approximation` is the curvature of a sample near the start, for Newton's method.
    """
    solver, size = options.solver, start.size
    if not size:  # no column varies and there is no intercept
        return newton_descent(objective, start, max_passes=1)
    if options.jeffreys:  # L-BFGS, since the curvature is computed without that of the prior

        def step_factor(step: Floats) -> float:
            """Return the factor that shortens a step if it would change the scores too much."""
            return _MAX_CHANGE / max(float(np.abs(white.rows @ step).max(initial=0.0)), _MAX_CHANGE)

        return lbfgs(
            objective,
            start,
            sketch=exact_curvature,
            resketch_after=None,
            max_passes=options.max_passes,
            progress=options.progress,
            tolerance=SLOW_TOLERANCE,
            step_factor=step_factor,
            memory=_LONG_MEMORY,
        )
    if solver == "newton" or (solver == "auto" and size <= FEW_COEFFICIENTS):
        tolerance = GRADIENT if options.link == "logit" else SLOW_TOLERANCE  # else expected
        return newton_descent(
            objective,
            start,
            max_passes=options.max_passes,
            progress=options.progress,
            tolerance=tolerance,
            skip_confirmation=options.skip_confirmation and options.link == "logit",
            stop=watch,
            reuse_curvature=options.reuse_curvature,
            approximation=approximation,
        )
    if solver == "gradient":
        bound = white.curvature_bound()
        return gradient_descent(
            objective, start, scale=bound, max_passes=options.max_passes, progress=options.progress
        )
    only_lbfgs = solver == "lbfgs" or size > SOME_COEFFICIENTS
    first = lbfgs(
        objective,
        start,
        sketch=lambda point: white.sketch(point.theta),
        max_passes=options.max_passes if only_lbfgs else min(options.max_passes, _PATIENCE),
        progress=options.progress,
        accept=None
        if options.ridge
        else lambda point: proves_overlap(point, white, link=options.link),
        stop=lambda point: proves_separation(point, options),
    )
    left = options.max_passes - first.passes
    if first.converged or proves_separation(first.point, options) or only_lbfgs or left < 1:
        return first
    progress = shift_progress(options.progress, first.passes)
    second = newton_descent(
        objective,
        first.theta,
        max_passes=left,
        progress=progress,
        stop=watch,
        reuse_curvature=options.reuse_curvature,
    )
    return replace(second, path=first.path + second.path)


def shift_progress(progress: Progress | None, passes: int) -> Progress | None:
    """Return a progress callback that adds `passes`, the number of earlier passes, to the count."""
    if progress is None:
        return None
    return lambda count, value, gradient: progress(passes + count, value, gradient)


def reading_anchor(moments: ClassMoments, *, intercept: bool) -> Anchor:
    """Return the origin and the units with which the rows are read, as an anchor.

    The origin is zero if this costs no accuracy, since offsets then need no subtraction. Without an
    intercept the origin is always zero, since scores must be zero at x = 0.
    """
    at_zero = Anchor(np.zeros_like(moments.anchor.origin), moments.anchor.unit)
    if not intercept:
        return at_zero
    sd = np.sqrt(np.diagonal(moments.pooled) / moments.weight.sum())
    centre = moments.centre + moments.anchor.shift_to(at_zero)
    near = np.abs(centre) <= NEAR_ZERO * sd
    return at_zero if near.all() else moments.anchor


def penalty_factors(moments: ClassMoments, *, standardize: bool, intercept: bool) -> Floats:
    """Return the (d,) factors by which coefficients are multiplied in the penalty.

    With `standardize` the factors are the standard deviations of the columns or, without an
    intercept, the root mean squares. Otherwise the factors convert coefficients to the units of the
    data.
    """
    if not standardize:
        return np.asarray(1.0 / moments.anchor.unit)
    offsets = moments.mean - (moments.centre if intercept else 0.0)
    total = np.diagonal(moments.pooled) + moments.weight @ offsets**2
    return np.asarray(np.sqrt(total / moments.weight.sum()))


def white_sample(sample: Block, objective: PenalisedLoss, coordinates: Coordinates) -> WhiteSample:
    """Return the sample in white coordinates, without rows of weight zero."""
    frame = coordinates.frame
    rows = objective.anchor.offsets(dense(sample.features)) @ frame[:-1] + frame[-1]
    codes = sample.codes
    if sample.weight is None:
        weight = np.ones(len(rows))
    else:
        positive = sample.weight > 0
        rows, codes, weight = rows[positive], codes[positive], sample.weight[positive]
    total = float(weight.sum())
    return WhiteSample(
        rows,
        codes,
        weight / total,
        total,
        objective.loss,
        coordinates.contrast,
        objective.penalty,
    )


def discriminant_start(moments: ClassMoments, coordinates: Coordinates) -> Floats:
    """Return the linear discriminant as a starting point theta (q, m).

    In white coordinates the covariance within classes is S_w = I - M' diag(share) M, with M the
    class means. A small multiple of I is added, since S_w is nearly singular if the classes are far
    apart.
    """
    frame = coordinates.frame
    share = moments.weight / moments.weight.sum()
    means = moments.mean @ frame[:-1, coordinates.free :] + frame[-1, coordinates.free :]
    within = np.eye(means.shape[1]) - (share[:, None] * means).T @ means
    within += 0.01 * np.eye(len(within))
    slope = np.linalg.solve(within, means.T)
    intercept = np.log(share) - 0.5 * np.einsum("kr,rk->k", means, slope)
    theta = np.vstack([intercept[None], slope]) if coordinates.free else slope
    if coordinates.contrast is None:
        return np.asarray(theta[:, 1:] - theta[:, :1])
    return np.asarray(theta @ coordinates.contrast)


def sample_curvature(sample: WhiteSample, theta: Floats) -> ExactCurvature | None:
    """Return the curvature of the sample at theta, or None if the sample is too small.

    Only the curvature of the sample is used, not its coefficients: their sampling error would be as
    large as the error of the linear discriminant.
    """
    if len(sample.rows) < _ROWS_PER_COEFFICIENT * theta.size:
        return None
    q = sample.rows.shape[1]
    plain = Coordinates(np.vstack([np.eye(q), np.zeros((1, q))]), sample.contrast, 0)
    block = Block(sample.rows, sample.codes, sample.weight)
    names = tuple(f"coordinate {j}" for j in range(q))
    objective = PenalisedLoss(
        lambda reading: reading.read(block),
        names,
        Anchor.zero(q),
        sample.loss,
        plain,
        sample.penalty,
    )
    return exact_curvature(objective.evaluate(theta, want="curvature"))


def intercept_only_start(moments: ClassMoments, coordinates: Coordinates) -> Floats:
    """Return theta (q, m) with slopes of zero and intercepts that predict the class shares."""
    contrast = coordinates.contrast
    columns = 1 if contrast is None else contrast.shape[1]
    start = np.zeros((coordinates.size, columns))
    if coordinates.free:
        log_share = np.log(moments.weight / moments.weight.sum())
        start[0] = log_share[1] - log_share[0] if contrast is None else log_share @ contrast
    return start


def proves_overlap(point: Point, sample: WhiteSample, *, link: LinkName = "logit") -> bool:
    """Return whether Bach's inequality proves that the likelihood has a maximum near the point."""
    weight, least = point.slope.weight, point.slope.least
    if link != "logit" or not np.isfinite(least) or least <= 0:
        return False
    square = weight * _decrement(point, sample)
    return bool(square * 2.0 / least <= 0.25)


def _decrement(point: Point, sample: WhiteSample) -> float:
    """Return the squared Newton decrement g' H^-1 g of the mean loss.

    g is the gradient and H the curvature. If H is known only from a sample, return an upper bound
    of this value. If H is singular, return infinity.
    """
    gradient = point.gradient
    if point.curvature is not None:
        gradient = gradient.T.reshape(-1, 1)
        solution = solve_positive(point.curvature, gradient)
    else:
        floor = sample.curvature_floor(point.theta) / point.slope.weight
        solution = solve_positive(floor, gradient)
    return np.inf if solution is None else float((gradient * solution).sum())
