"""Penalty chosen by cross-validation: the held-out losses of a path of penalties.

    loss(r)  =  mean over the held-out rows of the loss of the fit with penalty r to the other folds
    se(r)    =  sqrt( sum_f W_f (loss_f - loss)^2 / sum_f W_f / (F - 1) )

with W_f the weight of the rows of fold f and loss_f their mean loss, as in glmnet's `cv.glmnet`.
The rule 'min' chooses the penalty with the smallest loss, and 'one_se' the largest penalty whose
loss exceeds the smallest by at most one standard error.

`models.linear.penalty_path` computes all fits and reads the rows in memory. Columns are
standardised within each training set. If there are more features than rows, every training set is
fitted in the directions that its rows span.

Every class must have rows in every training set. The rows of a class are therefore never held out
if they are all in one fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from discriminant.assessment.resampling.folds import fold_numbers, sums_without_each
from discriminant.engines.dispatch import read_moments
from discriminant.errors import ClassMissingWarning, OptionError, warn
from discriminant.models.gaussian.wide import RowSpace
from discriminant.models.linear.elastic_net import ColumnScales
from discriminant.models.linear.least_squares import Coding, class_codes
from discriminant.models.linear.logistic import LogisticOptions
from discriminant.models.linear.penalty_path import (
    ClassLoss,
    HalfDeviance,
    NetPath,
    PathProblem,
    PathSolver,
    RowLoss,
    SquaredHingeLoss,
    TwoClassLoss,
    null_fits,
)
from discriminant.models.linear.preconditioning import ScaledCoordinates, contrasts
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.glm_families import Deviance
from discriminant.table.blocks import Floats, dense, is_sparse
from discriminant.table.memory import Table

Criterion = Literal["log_loss", "error"]
ChoiceRule = Literal["min", "one_se"]
CRITERIA = ("log_loss", "error")
RULES = ("min", "one_se")
_COUNT = 50  # penalties of an automatic path
_SHRINKAGE_RANGE = 10.0, 1e-5  # ends of a ridge path, relative to the largest gradient
_NET_RANGE = 1e-4, 1e-2  # smallest penalty relative to the largest: tall, wide tables
_MIN_SHARE = 0.05  # smaller values of l1_ratio are replaced by this to compute the largest penalty
_MAX_NUMBERS = 1 << 28  # numbers in the rows, which are copied
_MAX_COEFFICIENTS = 3000  # a matrix of their products takes 72 MB
_MANY = 200  # features from which fits to fewer rows use the directions that the rows span
_PATIENCE, _RISE = 3, 1.02  # a path ends after so many losses above 1.02 of the least
# A column with a smaller relative deviation within a training set keeps its scale of all rows. Else
# a level that one row has would be worth thousands of deviations where that row is held out.
_FLAT = 1e-2


@dataclass(frozen=True, slots=True, eq=False)
class PenaltyPath:
    """Held-out loss of every penalty on a path, and the chosen penalty.

    Attributes
    ----------
    ridges : array of shape (P,)
        Penalties, from large to small.
    loss, standard_error : arrays of shape (P,)
        Mean held-out loss, and its standard error over the folds.
    nonzero : array of shape (P,)
        Number of features with a coefficient that is not zero, in the fit to all rows.
    criterion : str
        Measure of the loss.
    rule : {'min', 'one_se'}
        Rule by which `ridge` was chosen.
    ridge : float
        The chosen penalty.
    """

    ridges: Floats
    loss: Floats
    standard_error: Floats
    nonzero: npt.NDArray[np.intp]
    criterion: str
    rule: str

    @property
    def minimum(self) -> int:
        """Index of the smallest loss; among ties the largest penalty."""
        least = float(self.loss.min())
        return int(np.flatnonzero(self.loss <= least + 1e-12 * (1.0 + abs(least)))[0])

    @property
    def one_standard_error(self) -> int:
        """Index of the largest penalty with a loss within one standard error of the smallest."""
        limit = self.loss[self.minimum] + self.standard_error[self.minimum]
        return int(np.flatnonzero(self.loss <= limit)[0])

    @property
    def chosen(self) -> int:
        """Index of the chosen penalty."""
        return self.minimum if self.rule == "min" else self.one_standard_error

    @property
    def ridge(self) -> float:
        """The chosen penalty."""
        return float(self.ridges[self.chosen])

    def to_dict(self) -> dict[str, list[float]]:
        """Return a dict of columns: penalty, loss, standard error, number of non-zero features."""
        return {
            "ridge": self.ridges.tolist(),
            "loss": self.loss.tolist(),
            "standard_error": self.standard_error.tolist(),
            "nonzero": self.nonzero.tolist(),
        }

    def __repr__(self) -> str:
        i = self.chosen
        return (
            f"PenaltyPath({len(self.ridges)} penalties from {self.ridges[0]:.3g} to "
            f"{self.ridges[-1]:.3g}, chosen: {self.ridge:.3g} with {self.criterion} "
            f"{self.loss[i]:.4g})"
        )


@dataclass(frozen=True, slots=True, eq=False)
class PenaltySearch:
    """Options for choosing a penalty by cross-validation."""

    ridges: Any = None  # None: an automatic path; a number: its length; an array: the penalties
    folds: Any = 10
    criterion: str = "log_loss"
    rule: str = "min"

    default_seed: ClassVar[int] = 0  # seed of the folds, if they are given as a number

    def check(self) -> None:
        """Raise `OptionError` if an option is invalid; folds are checked with the rows."""
        if self.rule not in RULES:
            raise OptionError.of("rule", self.rule, f"one of {', '.join(RULES)}")
        self.given()

    def given(self) -> Floats | None:
        """Return the penalties that the user gave, from large to small; None if they gave none."""
        allowed = "None, a number of penalties from 2 to 1000, or an array of positive numbers"
        if self.ridges is None:
            return None
        if isinstance(self.ridges, int | np.integer) and self.ridges is not True:
            if not 2 <= int(self.ridges) <= 1000:
                raise OptionError.of("ridges", self.ridges, allowed)
            return None
        try:
            values = np.unique(np.asarray(self.ridges, dtype=np.float64))[::-1]
        except (TypeError, ValueError):
            raise OptionError.of("ridges", self.ridges, allowed) from None
        if np.ndim(self.ridges) != 1 or not len(values) or not np.isfinite(values).all():
            raise OptionError.of("ridges", self.ridges, allowed)
        if not values[-1] > 0:
            raise OptionError.of("ridges", self.ridges, allowed)
        return values

    @property
    def count(self) -> int:
        """Number of penalties of an automatic path."""
        return _COUNT if self.ridges is None else int(self.ridges)

    def path(self, largest_gradient: float, l1_ratio: float, *, wide: bool) -> Floats:
        """Return the decreasing penalties.

        The automatic path of an elastic net starts where the first coefficient becomes non-zero, as
        in glmnet. The path of a ridge starts at ten times and ends at 1e-5 times the penalty at
        which a lasso path would start; at its start, coefficients are nearly zero.
        """
        given = self.given()
        if given is not None:
            return given
        top = largest_gradient if largest_gradient > 0 else 1.0
        if l1_ratio == 0:
            high, low = (top * factor for factor in _SHRINKAGE_RANGE)
        else:
            high = (1.0 + 1e-9) * top / max(l1_ratio, _MIN_SHARE)  # rounding must not matter
            low = high * _NET_RANGE[int(wide)]
        return np.geomspace(high, low, self.count)

    def fold_of_rows(self, table: Table, *, split_classes: bool = False) -> npt.NDArray[np.intp]:
        """Return the fold of each row, and -1 for rows that are in every training set.

        Rows of weight zero have no influence on folds that are given as a number. With
        `split_classes`, a class may be missing from a training set.
        """
        counted = np.ones(len(table), dtype=bool) if table.weight is None else table.weight > 0
        fold = np.full(len(table), -1, dtype=np.intp)
        codes = table.codes
        if np.ndim(self.folds) == 0 and not hasattr(self.folds, "get_n_splits"):
            fold[counted] = fold_numbers(self.folds, codes[counted], seed=self.default_seed)
        else:
            fold[counted] = fold_numbers(self.folds, codes)[counted]
        labels = table.schema.labels
        for k in np.unique(codes[counted]) if len(labels) > 1 else ():
            rows = np.flatnonzero(counted & (codes == k))
            if len(np.unique(fold[rows])) == 1:
                warn(ClassMissingWarning.of_choice(labels[k], len(rows)))
                if not split_classes:
                    fold[rows] = -1
        return _renumber(fold)


def warn_response_in_one_fold(table: Table, search: PenaltySearch) -> None:
    """Warn if all successes, or all failures, of a binomial response are in one fold."""
    assert table.responses is not None
    share, fold = table.responses[:, 0], search.fold_of_rows(table)
    for value, present in ((0, share < 1.0), (1, share > 0.0)):
        rows = np.flatnonzero(present & (fold >= 0))
        if len(np.unique(fold[rows])) == 1:
            warn(ClassMissingWarning.of_choice(value, len(rows)))


def _renumber(fold: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return consecutive fold numbers; -1 is unchanged."""
    held = fold >= 0
    numbers = np.unique(fold[held])
    if len(numbers) < 2:
        allowed = "a choice that puts the rows of some class into two folds"
        raise OptionError.of("folds", len(numbers), allowed)
    renumbered = fold.copy()
    renumbered[held] = np.searchsorted(numbers, fold[held])
    return renumbered


@dataclass(frozen=True, slots=True, eq=False)
class PenalisedModel:
    """The loss and the penalty of a linear model."""

    l1_ratio: float
    standardize: bool
    intercept: bool


def logistic_penalty_path(
    table: Table, options: LogisticOptions, search: PenaltySearch
) -> PenaltyPath:
    """Return the held-out losses of logistic regression for a path of penalties."""
    loss = logistic_loss_function(table, l1=bool(options.l1_ratio))
    if options.link != "logit":
        second = (table.codes == 1).astype(np.float64)
        loss = HalfDeviance(Deviance("binomial", options.link), second)
    model = PenalisedModel(options.l1_ratio, options.standardize, options.intercept)
    return penalty_path(table, loss, model, search)


def logistic_loss_function(table: Table, *, l1: bool) -> RowLoss:
    """Return the logistic loss function; with `l1`, every class has its own coefficients."""
    K = len(table.schema.labels)
    if K == 2:
        return TwoClassLoss((table.codes == 1).astype(np.float64))
    return ClassLoss(table.codes.astype(np.intp), np.eye(K) if l1 else contrasts(K))


def penalty_path(
    table: Table, loss: RowLoss, model: PenalisedModel, search: PenaltySearch
) -> PenaltyPath:
    """Return the held-out losses of a linear model for a path of penalties.

    Parameters
    ----------
    table
        Rows in memory.
    loss
        Loss of these rows.
    model
        Penalty of the model.
    search
        Penalties and folds.
    """
    _check_size(table)
    rows = FoldedRows.of(table, loss, model, search.fold_of_rows(table))
    size = rows.gradient_size()
    wide = table.width >= len(table)
    ridges = search.path(size, model.l1_ratio, wide=wide)
    error = search.criterion == "error"
    path = (rows.wide_path if needs_row_space(table, model.l1_ratio) else rows.path)(
        ridges, error=error
    )
    return _path_of_sums(ridges, path.losses, rows.fold_weight, path.nonzero, search)


def _has_risen(losses: Floats) -> bool:
    """Return whether the last losses on a path are clearly above the smallest loss.

    `losses` has a row for each penalty and a column for each fold.
    """
    total = losses.sum(axis=1)
    return bool(len(total) > _PATIENCE and (total[-_PATIENCE:] > _RISE * total.min()).all())


def needs_row_space(table: Table, l1_ratio: float) -> bool:
    """Return whether training sets are fitted in the directions that their rows span."""
    return l1_ratio == 0 and table.width >= len(table) and table.width > _MANY


def _path_of_sums(
    ridges: Floats, sums: Floats, weight: Floats, nonzero: Any, search: PenaltySearch
) -> PenaltyPath:
    """Return the path, given the summed loss and the weight of each fold.

    `sums` has a row for each penalty and a column for each fold.
    """
    loss_by_fold = sums / weight
    mean = loss_by_fold @ weight / weight.sum()
    variance = (loss_by_fold - mean[:, None]) ** 2 @ weight / weight.sum()
    standard_error = np.sqrt(variance / (len(weight) - 1))
    return PenaltyPath(ridges, mean, standard_error, nonzero, search.criterion, search.rule)


def svm_penalty_path(table: Table, model: PenalisedModel, search: PenaltySearch) -> PenaltyPath:
    """Return the held-out errors of linear SVMs with squared hinge, each class against the rest."""
    _check_size(table)
    K, codes = len(table.schema.labels), table.codes
    classes = [1] if K == 2 else range(K)
    fold = search.fold_of_rows(table)
    rows = [
        FoldedRows.of(table, SquaredHingeLoss(np.where(codes == k, 1.0, -1.0)), model, fold)
        for k in classes
    ]
    ridges = search.path(max(each.gradient_size() for each in rows), 0.0, wide=False)
    problems, free = [each.problem() for each in rows], int(model.intercept)
    check_coefficients(problems[0].shape[1])
    solvers = [PathSolver(problem, null_fits(problem, free)) for problem in problems]
    sums = np.zeros((len(ridges), len(rows[0].starts) - 1))
    own = ClassLoss(codes[rows[0].order].astype(np.intp), np.eye(K))
    for i, ridge in enumerate(ridges.tolist()):
        theta = np.concatenate([solver.fit(ridge) for solver in solvers], axis=2)
        if search.criterion != "error":
            parts = [
                problem.held_out_sums(solver.theta)
                for problem, solver in zip(problems, solvers, strict=True)
            ]
            sums[i] = np.sum(parts, axis=0)
            continue
        if K == 2:
            theta = np.concatenate([-theta, theta], axis=2)
        sums[i] = replace(problems[0], loss=own).held_out_sums(theta, error=True)
    nonzero = np.full(len(ridges), int((rows[0].spread[-1] > 0).sum()))
    return _path_of_sums(ridges, sums, rows[0].fold_weight, nonzero, search)


def least_squares_penalty_path(
    parts: Sequence[ClassMoments], coding: Coding, search: PenaltySearch
) -> PenaltyPath:
    """Return the held-out squared errors of the regression on class codes, from fold moments.

    With B the coefficients of a training set with means x0 and c0, and S the scatter of the
    held-out rows about x0, their squared error is

        sum_k W_k |c_k - c0|^2  -  2 sum_k W_k (m_k - x0)' B (c_k - c0)  +  tr B' S B
    """
    whole = _sum(parts)
    unit, codes = whole.anchor.unit, class_codes(whole.weight, coding)
    centre = whole.centre
    values = [_codes_regression(whole, codes).values]
    given = search.given()
    top = float(values[0].max(initial=0.0)) or 1.0
    ridges = np.geomspace(10.0 * top, 1e-10 * top, search.count) if given is None else given
    sums = np.zeros((len(ridges), len(parts)))
    for f, (part, train) in enumerate(zip(parts, sums_without_each(parts), strict=True)):
        fit = _codes_regression(train, codes)
        away = (part.mean - fit.mean) * unit
        code = codes - fit.code
        scatter = part.pooled * unit[:, None] * unit + (part.weight[:, None] * away).T @ away
        cross = (part.weight[:, None] * away).T @ code
        square = float(part.weight @ (code * code).sum(axis=1))
        rotated_scatter = fit.vectors.T @ scatter @ fit.vectors
        rotated_cross = fit.vectors.T @ cross
        for i, ridge in enumerate(ridges):
            slope = fit.rotated / (fit.values + ridge)[:, None]
            quadratic = float((slope * (rotated_scatter @ slope)).sum())
            sums[i, f] = square - 2.0 * float((rotated_cross * slope).sum()) + quadratic
    weight = np.array([part.weight.sum() for part in parts])
    nonzero = np.full(len(ridges), len(centre))
    return _path_of_sums(ridges, sums, weight, nonzero, search)


class _CodesRegression(NamedTuple):
    """Regression of class codes in the directions of the eigenvectors of the scatter."""

    mean: Floats  # (d,) mean of the features, as an offset
    code: Floats  # (m,) mean of the codes
    values: Floats  # (d,) eigenvalues, in the user's units
    vectors: Floats  # (d, d)
    rotated: Floats  # (d, m) scatter of features and codes in the directions of the eigenvectors


def _codes_regression(moments: ClassMoments, codes: Floats) -> _CodesRegression:
    weight, unit = moments.weight, moments.anchor.unit
    mean, code = moments.centre, weight @ codes / weight.sum()
    scatter = (moments.pooled + moments.spread_of_means()) * unit[:, None] * unit
    values, vectors = eigh(scatter)
    cross = (weight[:, None] * (moments.mean - mean) * unit).T @ (codes - code)
    return _CodesRegression(mean, code, np.maximum(values, 0.0), vectors, vectors.T @ cross)


def _sum(parts: Sequence[ClassMoments]) -> ClassMoments:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


@dataclass(frozen=True, slots=True, eq=False)
class NetFit:
    """Fit of an elastic net, in columns of variance one."""

    anchor: Anchor
    coordinates: ScaledCoordinates
    theta: Floats  # (q, m)
    converged: bool


def fit_net(table: Table, loss: RowLoss, model: PenalisedModel, ridge: float) -> NetFit:
    """Fit an elastic net for one penalty; fits with larger penalties provide the start."""
    _check_size(table)
    rows = FoldedRows.of(table, loss, model, np.full(len(table), -1))
    problem, free = rows.problem(), int(model.intercept)
    top = rows.gradient_size() / max(model.l1_ratio, _MIN_SHARE)
    steps = int(np.ceil(np.log2(max(top / ridge, 1.0)))) + 1
    penalties = np.append(np.geomspace(max(top, ridge), ridge, steps)[:-1], ridge)
    path = NetPath(problem, null_fits(problem, free), free)
    for penalty in penalties:
        theta = path.fit(float(penalty), exact=penalty == ridge)
    return NetFit(rows.anchor, rows.coordinates(None), theta[0], not path.unfinished)


def check_coefficients(count: int, option: str = "ridge", value: Any = "cv") -> None:
    """Raise `OptionError` if there are too many coefficients for a matrix of their products."""
    if count > _MAX_COEFFICIENTS:
        allowed = (
            f"used with at most {_MAX_COEFFICIENTS:,} coefficients (there are {count:,}). Keep "
            "fewer columns, fit with ridge a number, or choose the penalty of a lasso: Logistic "
            "with ridge='cv' and l1_ratio=1"
        )
        raise OptionError.of(option, value, allowed)


def _check_size(table: Table) -> None:
    numbers = len(table) * table.width
    if numbers <= _MAX_NUMBERS:
        return
    kind = "sparse rows" if is_sparse(table.features) else "rows"
    allowed = (
        f"a number for {len(table):,} {kind} of {table.width:,} features, since a search copies "
        f"{numbers:.1e} numbers (at most {_MAX_NUMBERS:.1e}). Choose it with 'cv' on some of the "
        "rows, then multiply it by their share of all rows"
    )
    raise OptionError.of("ridge", "cv", allowed)


@dataclass(frozen=True, slots=True, eq=False)
class FoldPath:
    """Fits for each penalty of a path and each training set, with their held-out losses."""

    losses: Floats  # (P, F) summed losses of the rows of each fold
    nonzero: npt.NDArray[np.intp]  # (P,) number of features used by the fit to all rows
    # F functions from theta (q, m) to the (d, K) coefficients and (K,) intercepts for offsets
    maps: tuple[Callable[[Floats], tuple[Floats, Floats]], ...]
    fits: Sequence[Any]  # P times F thetas (q, m); empty if they were not kept
    unfinished: int  # number of fits that did not converge

    def coefficients(self, penalty: int, fold: int) -> tuple[Floats, Floats]:
        """Return the (d, K) coefficients and (K,) intercepts of a fit to `(x - origin) / unit`."""
        return self.maps[fold](self.fits[penalty][fold])


@dataclass(frozen=True, slots=True, eq=False)
class FoldedRows:
    """Rows of positive weight, sorted by fold, with the scales of the columns in training sets."""

    anchor: Anchor
    order: npt.NDArray[np.intp]  # (n,) row numbers in the table
    offsets: Floats  # (n, d)
    loss: RowLoss
    model: PenalisedModel
    weight: Floats | None  # (n,)
    starts: tuple[int, ...]  # F + 1 row numbers; later rows are in every training set
    mean: Floats  # (F + 1, d) means of the columns: without each fold, then of all rows
    spread: Floats  # (F + 1, d) scales of the columns in the same sets; 0 if constant in all rows
    factors: Floats  # (F + 1, d) factors of coefficients in the penalty

    @classmethod
    def of(
        cls, table: Table, loss: RowLoss, model: PenalisedModel, fold: npt.NDArray[np.intp]
    ) -> FoldedRows:
        """Sort the rows of a table by fold, and compute the scales of the columns."""
        narrow = replace(table, responses=None)
        columns = ColumnScales.of_moments(
            read_moments(narrow, detail="diagonal"), intercept=model.intercept
        )
        keep = fold >= 0 if table.weight is None else (fold >= 0) | (table.weight > 0)
        keep = np.ones(len(fold), dtype=bool) if table.weight is None else keep
        F = int(fold.max()) + 1
        place = np.where(fold < 0, F, fold)
        order = np.flatnonzero(keep)[np.argsort(place[keep], kind="stable")]
        starts = np.searchsorted(place[order], np.arange(F + 1))
        offsets = columns.anchor.offsets(dense(table.features[order]))
        weight = None if table.weight is None else table.weight[order]
        mean, spread = _training_scales(offsets, weight, starts)
        if not model.intercept:
            spread, mean = np.hypot(spread, mean), np.zeros_like(mean)
        whole = columns.penalty_factors(standardize=True, intercept=model.intercept)
        spread[:, whole == 0] = 0.0
        flat = spread < _FLAT * whole
        spread = np.where(flat, whole, spread)
        factors = spread.copy()
        if not model.standardize:
            factors = np.broadcast_to(1.0 / columns.anchor.unit, spread.shape)
        return cls(
            columns.anchor,
            order,
            offsets,
            loss.take(order),
            model,
            weight,
            tuple(starts.tolist()),
            mean,
            spread,
            factors,
        )

    @property
    def fold_weight(self) -> Floats:
        """(F,) weight of the rows of each fold."""
        weight = np.ones(len(self.offsets)) if self.weight is None else self.weight
        return np.array([weight[lo:hi].sum() for lo, hi in self._folds()])

    def gradient_size(self) -> float:
        """Return the largest derivative of the loss by a penalised coefficient, at zero slopes."""
        free = int(self.model.intercept)
        ones = np.ones((len(self.offsets), free))
        loss, weight = self.loss, self.weight
        narrow = PathProblem(ones, loss, weight, (0,), np.zeros((1, free)))
        theta = null_fits(narrow, free)[0]
        every = slice(0, len(self.offsets))
        slopes = loss.slopes((ones @ theta)[:, None], every)[:, 0]
        if self.weight is not None:
            slopes = slopes * self.weight[:, None]
        if isinstance(loss, ClassLoss):
            slopes = slopes @ loss.contrast.T
        gradient = np.abs(self.offsets.T @ slopes).max(axis=1) / narrow.totals[-1]
        factor = self.factors[-1]
        sizes = np.divide(gradient, factor, out=np.zeros_like(gradient), where=self.spread[-1] > 0)
        return float(sizes.max(initial=0.0))

    def path(self, ridges: Floats, *, error: bool = False, keep: bool = False) -> FoldPath:
        """Return the held-out losses of each penalty.

        With `keep`, the fits are returned too, and the path ends where the loss has risen clearly.
        """
        problem, free = self.problem(), int(self.model.intercept)
        T, q, m = problem.shape
        if not self.model.l1_ratio:
            check_coefficients(m * q)
        start = null_fits(problem, free)
        net = None if problem.corner is None else NetPath(problem, start, free)
        path = PathSolver(problem, start) if net is None else net
        sums, nonzero = np.zeros((len(ridges), T - 1)), np.zeros(len(ridges), dtype=np.intp)
        fits: list[Floats] = []
        unfinished = 0
        for i, ridge in enumerate(ridges.tolist()):
            theta = path.fit(ridge)
            unfinished += path.unfinished if net is not None else 0
            sums[i] = problem.held_out_sums(theta, error=error)
            nonzero[i] = int((theta[-1, free:] != 0).any(axis=1).sum())
            if keep:
                fits.append(theta[:-1].copy())
                if _has_risen(sums[: i + 1]):
                    sums, nonzero = sums[: i + 1], nonzero[: i + 1]
                    break
        maps = (self.coordinates(getattr(self.loss, "contrast", None)).coefficients,) * (T - 1)
        unfinished = path.unfinished if net is None else unfinished
        return FoldPath(sums, nonzero, maps, fits, unfinished)

    def wide_path(self, ridges: Floats, *, error: bool = False, keep: bool = False) -> FoldPath:
        """Return the result of `path`, from fits in the directions that each training set spans."""
        sums, free = np.zeros((len(ridges), len(self.starts) - 1)), int(self.model.intercept)
        fits: list[list[Floats]] = [[] for _ in ridges]
        maps: list[Callable[[Floats], tuple[Floats, Floats]]] = []
        unfinished = 0
        for f, (lo, hi) in enumerate(self._folds()):
            train = np.r_[0:lo, hi : len(self.offsets)]
            weight = None if self.weight is None else self.weight[train]
            scale = 1.0 if self.model.standardize else 1.0 / self.factors[-1]
            space = RowSpace.from_rows(
                self.offsets[train] * scale,
                weight=weight,
                centred=self.model.intercept,
                standardize=self.model.standardize,
            )
            rows = np.hstack([np.ones((len(train), free)), space.rows])
            check_coefficients(rows.shape[1] * self.loss.columns)
            ridge = np.ones((1, rows.shape[1]))
            ridge[:, :free] = 0.0
            problem = PathProblem(rows, self.loss.take(train), weight, (0,), ridge)
            held = self.loss.take(np.arange(lo, hi))
            z = (self.offsets[lo:hi] * scale - space.mean) @ space.axes
            held_rows = np.hstack([np.ones((hi - lo, free)), z])
            every = slice(0, hi - lo)
            solver = PathSolver(problem, null_fits(problem, free))
            for i, penalty in enumerate(ridges.tolist()):
                theta = solver.fit(penalty)[0]
                scores = (held_rows @ theta)[:, None]
                losses = held.errors(scores, every) if error else held.losses(scores, every)
                held_weight = 1.0 if self.weight is None else self.weight[lo:hi]
                sums[i, f] = float((losses[:, 0] * held_weight).sum())
                if keep:
                    fits[i].append(theta.copy())
            unfinished += solver.unfinished
            maps.append(partial(self._row_space_coefficients, space, scale))
        nonzero = np.full(len(ridges), int((self.spread[-1] > 0).sum()))
        return FoldPath(sums, nonzero, tuple(maps), fits, unfinished)

    def _row_space_coefficients(
        self, space: RowSpace, scale: Any, theta: Floats
    ) -> tuple[Floats, Floats]:
        """Return the (d, K) coefficients and (K,) intercepts of theta in a row space."""
        free = int(self.model.intercept)
        contrast = getattr(self.loss, "contrast", None)
        theta = theta if contrast is None else theta @ contrast.T
        at_mean = theta[0] if free else np.zeros(theta.shape[1])
        coef, intercept = space.coefficients(theta[free:], at_mean)
        return np.broadcast_to(scale, (len(coef),))[:, None] * coef, intercept

    def coordinates(self, contrast: Floats | None) -> ScaledCoordinates:
        """Return the coordinates of the problem."""
        scale = self.spread[-1]
        inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        return ScaledCoordinates(inverse, self.mean[-1], contrast, int(self.model.intercept))

    def problem(self) -> PathProblem:
        """Return the problem with every column scaled to variance one over all rows.

        The scale of a column is the same in every training set.
        """
        free = int(self.model.intercept)
        scale = self.spread[-1]
        inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        rows = np.empty((len(self.offsets), len(scale) + free))
        rows[:, :free] = 1.0
        np.subtract(self.offsets, self.mean[-1], out=rows[:, free:])
        rows[:, free:] *= inverse
        T = len(self.factors)
        factors = np.ones((T, len(scale) + free))
        factors[:, :free] = 0.0
        factors[:, free:] = np.where(scale > 0, self.factors * inverse, 1.0)
        return PathProblem(
            rows,
            self.loss,
            self.weight,
            self.starts,
            factors**2,
            factors if self.model.l1_ratio else None,
            self.model.l1_ratio,
        )

    def _folds(self) -> list[tuple[int, int]]:
        return list(zip(self.starts[:-1], self.starts[1:], strict=True))


def _training_scales(
    offsets: Floats, weight: Floats | None, starts: npt.NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """Return the means and standard deviations (F + 1, d) of each training set and of all rows."""
    ends = [*starts.tolist(), len(offsets)]
    total = np.zeros(len(starts))
    mean, scatter = np.zeros((2, len(starts), offsets.shape[1]))
    for f in range(len(starts)):
        part = offsets[ends[f] : ends[f + 1]]
        share = np.ones(len(part)) if weight is None else weight[ends[f] : ends[f + 1]]
        total[f] = share.sum()
        if total[f] > 0:
            mean[f] = share @ part / total[f]
            scatter[f] = share @ (part - mean[f]) ** 2
    # Sums of scatters, and of squared differences of means: a difference of sums of squares would
    # give a column that is constant without a fold a scale of rounding errors.
    own = np.tile(total, (len(starts), 1))
    np.fill_diagonal(own[:-1], 0.0)
    n = own.sum(axis=1)[:, None]
    means = own @ mean / n
    between = np.stack(
        [share @ (mean - centre) ** 2 for share, centre in zip(own, means, strict=True)]
    )
    return means, np.sqrt(((own > 0) @ scatter + between) / n)


def check_penalty(ridge: Any, *, allow_none: bool = False) -> None:
    """Raise `OptionError` unless a penalty is a number of at least 0, or 'cv'."""
    if (ridge is None and allow_none) or is_cv(ridge):
        return
    if not (isinstance(ridge, Real) and 0.0 <= float(ridge) < np.inf):
        raise OptionError.of("ridge", ridge, "a number, 0 or more, or 'cv'")


def is_cv(value: Any) -> bool:
    """Return whether an option is to be chosen by cross-validation."""
    return isinstance(value, str) and value == "cv"
