"""Linear models fitted along a path of penalties, to all rows and to the training set of each fold.

Fit t minimises over theta (q, m), for each penalty of the path from the largest to the smallest,

    sum_i v_it l_i(z_i' theta)  +  ridge ( (1 - a) / 2 theta' Q_t theta  +  a sum_j c_tj |theta_j| )

Here z_i is row i in the coordinates of the fits, v_it its weight divided by the sum of the weights
in fit t, and a the share of the l1 penalty. Fits 0 to F - 1 leave out the rows of one fold, and the
last fit uses all rows. Standardisation is part of Q_t and c_t, so it is repeated within each
training set.

All fits read the rows together: the scores of all fits are one matrix product. The solutions of all
fits are close to each other, and close to the solutions for the last penalty. Each fit therefore
starts from its own previous solutions, extrapolated by a parabola in the log of the penalty. The
steps of a fit use the curvature H at the solution for all rows, corrected by the last steps of this
fit, as in L-BFGS. If there are few coefficients, H is summed for each fold, and the curvature of a
training set is the sum over the other folds; if there are many, all fits use the curvature of all
rows. A step is verified by the next decrement g' H^-1 g / 2, not by the value of the objective. A
fit whose decrement grows, or is not small after some steps, takes Newton steps with a line search.

With an l1 penalty, a step goes to the minimum of the quadratic approximation plus the penalty
(`elastic_net.L1Quadratic`). Columns are screened by the sequential strong rule (Tibshirani et al.
2012): at penalty r, after penalty s, the coefficients of column j stay zero if

    |gradient_j at the last solution|  <  a c_j (2 r - s)

The rule can fail, so the conditions of Karush, Kuhn and Tucker are checked for all columns. Columns
that violate the conditions are added to the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from discriminant.models.linear.elastic_net import L1Quadratic
from discriminant.moments.glm_families import SCORES, Deviance, RowDerivatives
from discriminant.table.blocks import Codes, Floats

_DECREMENT = 1e-12  # a step is the last one if it decreases the objective by less
_SHRINKAGE = 0.5  # with an l1 penalty, a decrement must shrink at least by this factor
_GROWTH = 4.0  # otherwise it must not grow by more: L-BFGS does not shrink it in every step
_FAST = 0.05  # shrinkage with the curvature of an earlier penalty, else the curvature is renewed
_MAX_STEPS = 40  # largest number of steps with one curvature, and of Newton steps
_HALVINGS = 30
_ARMIJO = 1e-4
_FEW = 64  # up to this number of coefficients the curvature is summed for each fold
_FEW_NET = 640  # the same with an l1 penalty, whose steps are not corrected
_CHUNK = 1 << 16  # scores computed at a time: they stay in the cache
_VIOLATION = 1e-9  # smaller violations of the KKT conditions are rounding errors
_SINGULAR = 1e-13  # added to the diagonal of a singular curvature, relative to the largest entry

# families and links for which every score has a valid mean
_EVERYWHERE = (
    ("gaussian", "identity"),
    *(("binomial", link) for link in ("logit", "probit", "cloglog", "cauchit")),
    ("poisson", "log"),
    ("gamma", "log"),
)


class RowLoss(Protocol):
    """Loss of each row as a function of its m scores, computed for T fits at once.

    In the shapes n is the number of rows.
    """

    @property
    def columns(self) -> int:
        """Number m of scores."""
        ...

    @property
    def guarded(self) -> bool:
        """Whether some scores have no corresponding mean, so that steps need a line search."""
        ...

    def slopes(self, scores: Floats, rows: slice) -> Floats:
        """Return the derivatives of the losses at scores (n, T, m), which may be overwritten."""
        ...

    def losses(self, scores: Floats, rows: slice) -> Floats:
        """Return the losses (n, T) at scores (n, T, m)."""
        ...

    def curvatures(self, scores: Floats, rows: slice) -> Floats:
        """Return the second derivatives (n, m, m) of the losses of one fit, at scores (n, m)."""
        ...

    def errors(self, scores: Floats, rows: slice) -> Floats:
        """Return an (n, T) array: 1 where the predicted class is not the true class, else 0."""
        ...

    def null_scores(self, weight: Floats) -> Floats:
        """Return constant scores (m,) that nearly minimise the loss, given row weights (n,)."""
        ...

    def take(self, rows: npt.NDArray[np.intp]) -> RowLoss:
        """Return the loss restricted to the selected rows."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class TwoClassLoss:
    """Logistic loss of two classes with a single score."""

    second: Floats  # (n,) 1 for rows of the second class, else 0
    guarded: ClassVar[bool] = False

    @property
    def columns(self) -> int:
        """Number of scores: one."""
        return 1

    def slopes(self, scores: Floats, rows: slice) -> Floats:
        """Return the probability of the second class minus its indicator."""
        np.negative(scores, out=scores)
        with np.errstate(over="ignore"):  # exp of a large number is infinite, its inverse zero
            np.exp(scores, out=scores)
        scores += 1.0
        np.reciprocal(scores, out=scores)
        scores -= self.second[rows, None, None]
        return scores

    def losses(self, scores: Floats, rows: slice) -> Floats:
        """Return log(1 + exp(s)) - y s, with s the score and y 1 for the second class, else 0."""
        single = scores[..., 0]
        positive = np.maximum(single, 0.0)
        loss = np.log1p(np.exp(-np.abs(single))) + positive
        return np.asarray(loss - self.second[rows, None] * single)

    def curvatures(self, scores: Floats, rows: slice) -> Floats:
        """Return p (1 - p), with p the probability of the second class."""
        small = np.exp(-np.abs(scores))
        return np.asarray((small / (1.0 + small) ** 2)[:, :, None])

    def errors(self, scores: Floats, rows: slice) -> Floats:
        """Return an array: 1 for rows whose score has the wrong sign, else 0."""
        predicted = scores[..., 0] > 0
        return np.asarray(predicted != (self.second[rows, None] > 0), dtype=np.float64)

    def null_scores(self, weight: Floats) -> Floats:
        """Return the log odds of the class shares."""
        second = float(weight @ self.second)
        return np.log([second / (weight.sum() - second)])

    def take(self, rows: npt.NDArray[np.intp]) -> TwoClassLoss:
        """Return the loss restricted to the selected rows."""
        return TwoClassLoss(self.second[rows])


@dataclass(frozen=True, slots=True, eq=False)
class ClassLoss:
    """Softmax loss of K classes, as a function of m = K - 1 contrasts of scores or of K scores."""

    codes: Codes  # (n,)
    contrast: Floats  # (K, m)
    guarded: ClassVar[bool] = False

    @property
    def columns(self) -> int:
        """Number m of columns of the contrasts."""
        return int(self.contrast.shape[1])

    def slopes(self, scores: Floats, rows: slice) -> Floats:
        """Return the contrasts of the differences between probabilities and class indicators."""
        probability = self._probabilities(scores)
        probability[self.codes[rows], np.arange(len(scores))] -= 1.0
        flat = probability.reshape(len(probability), -1)
        return np.asarray(flat.T @ self.contrast).reshape(scores.shape)

    def losses(self, scores: Floats, rows: slice) -> Floats:
        """Return the negative log probability of the true class."""
        centred = self._centred_scores(scores)
        own = centred[self.codes[rows], np.arange(len(scores))]
        return np.asarray(np.log(np.exp(centred, out=centred).sum(axis=0)) - own)

    def curvatures(self, scores: Floats, rows: slice) -> Floats:
        """Return C' (diag(p) - p p') C, with p the class probabilities and C the contrasts."""
        K, m = self.contrast.shape
        probability = self._probabilities(scores).T
        squares = (self.contrast[:, :, None] * self.contrast[:, None, :]).reshape(K, m * m)
        mean = probability @ self.contrast
        diagonal = (probability @ squares).reshape(-1, m, m)
        return np.asarray(diagonal - mean[:, :, None] * mean[:, None, :])

    def errors(self, scores: Floats, rows: slice) -> Floats:
        """Return an array: 1 for rows in which another class has the largest score, else 0."""
        predicted = (scores @ self.contrast.T).argmax(axis=2)
        return np.asarray(predicted != self.codes[rows, None], dtype=np.float64)

    def null_scores(self, weight: Floats) -> Floats:
        """Return contrasts of the logs of the class shares."""
        logs = np.log(np.bincount(self.codes, weight, minlength=len(self.contrast)))
        return np.asarray((logs - logs.mean()) @ self.contrast)

    def take(self, rows: npt.NDArray[np.intp]) -> ClassLoss:
        """Return the loss restricted to the selected rows."""
        return ClassLoss(self.codes[rows], self.contrast)

    def _probabilities(self, scores: Floats) -> Floats:
        """Return the probabilities of the classes (K, ...), given contrasts or scores (..., m)."""
        probability = self._centred_scores(scores)
        np.exp(probability, out=probability)
        probability /= probability.sum(axis=0)
        return probability

    def _centred_scores(self, scores: Floats) -> Floats:
        """Return the class scores (K, ...) minus the largest, given contrasts or scores (..., m).

        The axis of the classes comes first, since NumPy is slow along a short last axis.
        """
        K, m = self.contrast.shape
        centred = (self.contrast @ scores.reshape(-1, m).T).reshape(K, *scores.shape[:-1])
        centred -= centred.max(axis=0)
        return np.asarray(centred)


@dataclass(frozen=True, slots=True, eq=False)
class HalfDeviance:
    """Half the deviance of responses, with a single score and an optional offset."""

    deviance: Deviance
    response: Floats  # (n,)
    offset: Floats | None = None  # (n,)

    @property
    def columns(self) -> int:
        """Number of scores: one."""
        return 1

    @property
    def guarded(self) -> bool:
        """Whether some scores have no corresponding mean, so that steps need a line search."""
        return (self.deviance.family, self.deviance.link) not in _EVERYWHERE

    def slopes(self, scores: Floats, rows: slice) -> Floats:
        """Return the derivative of half the deviance with respect to the score."""
        return self._derivatives(scores[..., 0], rows).slope[..., None]

    def losses(self, scores: Floats, rows: slice) -> Floats:
        """Return half the deviance."""
        return self._derivatives(scores[..., 0], rows).loss

    def curvatures(self, scores: Floats, rows: slice) -> Floats:
        """Return the expected curvature, or the observed one for gamma responses with log link."""
        derivatives = self._derivatives(scores, rows)
        if (self.deviance.family, self.deviance.link) == ("gamma", "log"):
            return np.asarray((1.0 - derivatives.slope)[:, :, None])
        return derivatives.curvature[:, :, None]

    def errors(self, scores: Floats, rows: slice) -> Floats:
        """Return an array: 1 for rows (with response 0 or 1) whose score has the wrong sign."""
        predicted = scores[..., 0] > 0
        return np.asarray(predicted != (self.response[rows, None] > 0.5), dtype=np.float64)

    def null_scores(self, weight: Floats) -> Floats:
        """Return the score of the mean response, minus the mean offset."""
        with np.errstate(all="ignore"):
            score = float(SCORES[self.deviance.link](weight @ self.response / weight.sum()))
        offset = 0.0 if self.offset is None else float(weight @ self.offset / weight.sum())
        return np.array([score - offset if np.isfinite(score) else 0.0])

    def take(self, rows: npt.NDArray[np.intp]) -> HalfDeviance:
        """Return the loss restricted to the selected rows."""
        offset = None if self.offset is None else self.offset[rows]
        return HalfDeviance(self.deviance, self.response[rows], offset)

    def _derivatives(self, scores: Floats, rows: slice) -> RowDerivatives:
        if self.offset is not None:
            scores = scores + self.offset[rows, None]
        response = np.broadcast_to(self.response[rows, None], scores.shape)
        return self.deviance.rows(scores, response)


@dataclass(frozen=True, slots=True, eq=False)
class SquaredHingeLoss:
    """Squared hinge max(0, 1 - t s)^2 of two classes with a single score."""

    sign: Floats  # (n,) t: 1 for rows of the class with positive scores, else -1
    guarded: ClassVar[bool] = False

    @property
    def columns(self) -> int:
        """Number of scores: one."""
        return 1

    def slopes(self, scores: Floats, rows: slice) -> Floats:
        """Return -2 t max(0, 1 - t s), with s the score and t the sign of the class."""
        sign = self.sign[rows, None, None]
        return np.asarray(-2.0 * sign * np.maximum(1.0 - sign * scores, 0.0))

    def losses(self, scores: Floats, rows: slice) -> Floats:
        """Return max(0, 1 - t s)^2, with s the score and t the sign of the class."""
        return np.maximum(1.0 - self.sign[rows, None] * scores[..., 0], 0.0) ** 2

    def curvatures(self, scores: Floats, rows: slice) -> Floats:
        """Return an array: 2 for rows with a positive loss, else 0."""
        return np.asarray(2.0 * (self.sign[rows, None] * scores < 1.0))[:, :, None]

    def errors(self, scores: Floats, rows: slice) -> Floats:
        """Return an array: 1 for rows whose score has the wrong sign, else 0."""
        return np.asarray((scores[..., 0] > 0) != (self.sign[rows, None] > 0), dtype=np.float64)

    def null_scores(self, weight: Floats) -> Floats:
        """Return zero."""
        return np.zeros(1)

    def take(self, rows: npt.NDArray[np.intp]) -> SquaredHingeLoss:
        """Return the loss restricted to the selected rows."""
        return SquaredHingeLoss(self.sign[rows])


@dataclass(frozen=True, slots=True, eq=False)
class PathProblem:
    """Rows, loss and penalties of T = F + 1 fits; the rows are sorted by fold."""

    rows: Floats  # (n, q)
    loss: RowLoss
    weight: Floats | None  # (n,) None: all weights are 1
    starts: tuple[int, ...]  # F + 1 row numbers: fold f is starts[f] to starts[f + 1]
    ridge: Floats  # (T, q, q) Q of each fit, or (T, q) its diagonal
    corner: Floats | None = None  # (T, q) c of each fit; None without an l1 penalty
    l1_ratio: float = 0.0
    totals: Floats = field(init=False)  # (T,) sum of the weights of each fit

    def __post_init__(self) -> None:
        weight = np.ones(len(self.rows)) if self.weight is None else self.weight
        parts = [weight[lo:hi].sum() for lo, hi in pairwise(self.starts)]
        object.__setattr__(self, "totals", np.append(weight.sum() - np.array(parts), weight.sum()))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of fits T, number of coordinates q, and number of scores m."""
        return len(self.totals), self.rows.shape[1], self.loss.columns

    def select(self, columns: npt.NDArray[np.intp]) -> PathProblem:
        """Return the problem restricted to some of the columns; Q must be diagonal."""
        assert self.ridge.ndim == 2
        return replace(
            self,
            rows=np.ascontiguousarray(self.rows[:, columns]),
            ridge=self.ridge[:, columns],
            corner=None if self.corner is None else self.corner[:, columns],
        )

    def gradients(self, theta: Floats, fits: npt.NDArray[np.intp], penalty: float) -> Floats:
        """Return the gradients (S, q, m) of S fits at theta (S, q, m), without the l1 penalty."""
        S, q, m = theta.shape
        coefficients = np.ascontiguousarray(theta.transpose(1, 0, 2)).reshape(q, S * m)
        total = np.zeros((q, S * m))
        for start in range(0, len(self.rows), size := self._chunk_size(S * m)):
            rows = slice(start, start + size)
            z = self.rows[rows]
            slopes = self.loss.slopes((z @ coefficients).reshape(-1, S, m), rows)
            if self.weight is not None:
                slopes *= self.weight[rows, None, None]
            for s, t in enumerate(fits):  # the rows of a fold do not count for its own fit
                if t < len(self.starts) - 1:
                    lo, hi = (max(end - start, 0) for end in self.starts[t : t + 2])
                    slopes[lo:hi, s] = 0.0
            total += z.T @ slopes.reshape(len(z), S * m)
        gradient = total.reshape(q, S, m).transpose(1, 0, 2) / self.totals[fits, None, None]
        return np.asarray(gradient + self._penalty_gradient(theta, fits, penalty))

    def held_out_sums(self, theta: Floats, *, error: bool = False) -> Floats:
        """Return the (F,) weighted losses (or errors) of the folds, by the fits without them."""
        measure = self.loss.errors if error else self.loss.losses
        sums = np.zeros(len(self.starts) - 1)
        for f, (lo, hi) in enumerate(pairwise(self.starts)):
            rows = slice(lo, hi)
            values = measure((self.rows[rows] @ theta[f])[:, None], rows)[:, 0]
            sums[f] = values.sum() if self.weight is None else values @ self.weight[rows]
        return sums

    def value(self, theta: Floats, fit: int, penalty: float) -> float:
        """Return the objective (with the l1 penalty) of one fit at theta (q, m)."""
        total = 0.0
        for fold, rows in self._chunks(theta.shape[1]):
            if fold != fit:
                losses = self.loss.losses((self.rows[rows] @ theta)[:, None], rows)[:, 0]
                total += float(losses.sum() if self.weight is None else losses @ self.weight[rows])
        fits = np.array([fit])
        square = 0.5 * float((theta * self._penalty_gradient(theta[None], fits, penalty)[0]).sum())
        value = total / float(self.totals[fit]) + square
        if self.corner is not None:
            corner = penalty * self.l1_ratio * self.corner[fit]
            value += float((corner[:, None] * np.abs(theta)).sum())
        return value

    def curvature_sums(
        self, theta: Floats, *, by_fold: bool = False, without: int | None = None
    ) -> Floats:
        """Return the (F + 1, m q, m q) sums of w z z' l'' over each fold, and over all other rows.

        The last sum is over the rows that no fold contains. Without `by_fold`, return only the sum
        (1, m q, m q) over all rows, or over all rows except those of the fold `without`.
        """
        F, (q, m) = len(self.starts) - 1, theta.shape
        sums = np.zeros((F + 1 if by_fold else 1, m, q, m, q))
        for fold, rows in self._chunks(q + m * m):
            if fold == without:
                continue
            z = self.rows[rows]
            curvature = self.loss.curvatures(z @ theta, rows)
            if self.weight is not None:
                curvature = curvature * self.weight[rows, None, None]
            target = sums[fold if by_fold else 0]
            if m == 1:
                weighted = z * np.sqrt(np.maximum(curvature[:, 0], 0.0))
                target[0, :, 0] += weighted.T @ weighted
                continue
            for a in range(m):
                for b in range(a + 1):
                    block = z.T @ (z * curvature[:, a, b, None])
                    target[a, :, b] += block
                    if b < a:
                        target[b, :, a] += block
        return sums.reshape(len(sums), m * q, m * q)

    def curvature_without(self, theta: Floats, fit: int) -> Floats:
        """Return the mean curvature (m q, m q) over the rows of one fit at theta (q, m)."""
        return np.asarray(self.curvature_sums(theta, without=fit)[0] / self.totals[fit])

    def penalty_matrix(self, fit: int, penalty: float) -> Floats:
        """Return the (q, q) curvature of the ridge penalty in one fit."""
        matrix = self.ridge[fit] if self.ridge.ndim == 3 else np.diag(self.ridge[fit])
        return penalty * (1.0 - self.l1_ratio) * matrix

    def _penalty_gradient(
        self, theta: Floats, fits: npt.NDArray[np.intp], penalty: float
    ) -> Floats:
        ridge = self.ridge[fits]
        product = ridge @ theta if ridge.ndim == 3 else ridge[:, :, None] * theta
        return np.asarray(penalty * (1.0 - self.l1_ratio) * product)

    @staticmethod
    def _chunk_size(width: int) -> int:
        """Return the number of rows for which `width` numbers are computed at a time."""
        return int(np.clip(_CHUNK // max(width, 1), 64, 8192))

    def _chunks(self, width: int) -> Iterator[tuple[int, slice]]:
        """Yield the fold and the rows of each chunk; the fold is -1 if all fits use the rows."""
        size = self._chunk_size(width)
        ends = [*self.starts, len(self.rows)]
        for fold, (lo, hi) in enumerate(pairwise(ends)):
            for start in range(lo, hi, size):
                yield (
                    fold if fold < len(self.starts) - 1 else -1,
                    slice(start, min(start + size, hi)),
                )


class _CurvatureModel:
    """Curvatures of the T fits at one point, from which steps are computed."""

    def __init__(self, problem: PathProblem, theta: Floats) -> None:
        self.problem = problem
        T, q, m = problem.shape
        self.by_fold = m * q <= (_FEW if problem.corner is None else _FEW_NET) and T > 1
        sums = problem.curvature_sums(theta, by_fold=self.by_fold)
        if not self.by_fold:
            self.mean = sums / problem.totals[-1]
            return
        whole = sums.sum(axis=0)
        self.mean = np.concatenate([whole - sums[:-1], whole[None]]) / problem.totals[:, None, None]

    def at(self, penalty: float) -> _StepModel:
        """Return a step model for one penalty."""
        return _StepModel(self, penalty)


class _StepModel:
    """Steps to the minimum of the quadratic approximation plus the penalty."""

    def __init__(self, curvature: _CurvatureModel, penalty: float) -> None:
        self.problem, self.penalty = curvature.problem, penalty
        m = curvature.problem.loss.columns
        self.by_fold = curvature.by_fold
        fits = slice(None) if self.by_fold else slice(-1, None)
        self.matrices = curvature.mean
        ridge_share = 1.0 - self.problem.l1_ratio
        if ridge_share:
            self.matrices = self.matrices.copy()
            self._add_ridge(penalty * ridge_share * self.problem.ridge[fits], m)
        if self.problem.corner is not None:
            return
        if self.by_fold:
            self.inverse = _inverses(self.matrices)
        else:
            self.solve_shared = _solver(self.matrices[0])

    def _add_ridge(self, ridge: Floats, m: int) -> None:
        """Add the penalties, (S, q, q) or diagonals (S, q), to the block of each of m scores."""
        blocks = self.matrices.reshape(len(ridge), m, -1, m, ridge.shape[-1])
        for score in range(m):
            block = blocks[:, score, :, score]
            target = block if ridge.ndim == 3 else np.einsum("tii->ti", block)
            target += ridge

    def _solve(self, flat: Floats, fits: npt.NDArray[np.intp]) -> Floats:
        """Return the inverse curvature of each fit times its row of `flat`."""
        if self.by_fold:
            return np.asarray((self.inverse[fits] @ flat[:, :, None])[:, :, 0])
        return np.asarray(self.solve_shared(flat.T).T)

    def steps(
        self,
        theta: Floats,
        gradient: Floats,
        fits: npt.NDArray[np.intp],
        corrections: _Corrections,
    ) -> tuple[Floats, Floats]:
        """Return the steps (S, q, m) of S fits, and half the predicted decreases (S,)."""
        S, q, m = theta.shape
        flat = gradient.transpose(0, 2, 1).reshape(S, m * q)
        if self.problem.corner is None:
            corrections.follow(theta.transpose(0, 2, 1).reshape(S, m * q), flat, fits)
            step = -corrections.solve(flat, fits, partial(self._solve, fits=fits))
            decrease = -0.5 * (flat * step).sum(axis=1)
        else:
            start = theta.transpose(0, 2, 1).reshape(S, m * q)
            step, decrease = np.empty_like(flat), np.empty(S)
            for s, t in enumerate(fits):
                matrix = self.matrices[t if self.by_fold else 0]
                corner = self.penalty * self.problem.l1_ratio * self.problem.corner[t]
                corner = corner if m == 1 else np.tile(corner, m)
                step[s], decrease[s] = l1_step(flat[s], matrix, corner, start[s])
        return step.reshape(S, m, q).transpose(0, 2, 1), decrease


class _Corrections:
    """Last steps of T fits and changes of their gradients, by which a curvature is corrected.

    The correction is that of L-BFGS (`linear.optimise`), and is computed for S of the T fits at
    once.
    """

    def __init__(self, fits: int) -> None:
        self.fits = fits
        self.pairs: list[tuple[Floats, Floats, Floats]] = []  # (T, n), (T, n), (T,) 1 / product
        self._last: tuple[Floats, Floats] | None = None  # coefficients and gradients (T, n)

    def follow(self, theta: Floats, gradient: Floats, fits: npt.NDArray[np.intp]) -> None:
        """Add the steps of S fits to theta (S, n), and the changes of their gradients (S, n)."""
        if self._last is None:
            self._last = (
                np.zeros((self.fits, theta.shape[1])),
                np.zeros((self.fits, theta.shape[1])),
            )
        else:
            pair = np.zeros_like(self._last[0]), np.zeros_like(self._last[0])
            pair[0][fits], pair[1][fits] = (
                theta - self._last[0][fits],
                gradient - self._last[1][fits],
            )
            product = np.vecdot(*pair)
            inverse = np.divide(1.0, product, out=np.zeros_like(product), where=product > 0)
            self.pairs.append((*pair, inverse))
        self._last[0][fits], self._last[1][fits] = theta, gradient

    def solve(
        self, flat: Floats, fits: npt.NDArray[np.intp], solve: Callable[[Floats], Floats]
    ) -> Floats:
        """Return the corrected inverse curvature times the gradient, one row for each fit."""
        direction, weights = flat, []
        for moves, changes, inverse in reversed(self.pairs):
            weights.append(inverse[fits] * np.vecdot(moves[fits], direction))
            direction = direction - weights[-1][:, None] * changes[fits]
        direction = solve(direction)
        for (moves, changes, inverse), weight in zip(self.pairs, reversed(weights), strict=True):
            rest = weight - inverse[fits] * np.vecdot(changes[fits], direction)
            direction = direction + rest[:, None] * moves[fits]
        return direction


def l1_step(
    gradient: Floats, curvature: Floats, corner: Floats, start: Floats
) -> tuple[Floats, float]:
    """Return the step to the minimum of a quadratic plus an l1 penalty, and half its decrease."""
    quadratic = L1Quadratic(gradient, curvature, corner, start)
    end = quadratic.minimise(tolerance=1e-9 * float(np.abs(gradient).max(initial=0.0)) + 1e-13)
    step = end - start
    change = float(gradient @ step) + float(corner @ (np.abs(end) - np.abs(start)))
    return step, -0.5 * change


def extrapolate(solutions: list[tuple[float, Floats]], x: float) -> Floats:
    """Return the polynomial through solutions at some places, evaluated at x."""
    theta = np.zeros_like(solutions[0][1])
    for place, solution in solutions:
        others = [p for p, _ in solutions if p != place]
        theta += float(np.prod([(x - p) / (place - p) for p in others])) * solution
    return theta


def _inverses(matrices: Floats) -> Floats:
    """Return the inverses of positive definite matrices (T, n, n)."""
    regular = _regularised(matrices)
    try:
        return np.asarray(np.linalg.inv(regular))
    except LinAlgError:
        return np.asarray(np.linalg.pinv(regular, hermitian=True))


def _solver(matrix: Floats) -> Callable[[Floats], Floats]:
    """Return a function that solves systems with a positive definite matrix (n, n)."""
    regular = _regularised(matrix[None])[0]
    try:
        return partial(cho_solve, cho_factor(regular, check_finite=False), check_finite=False)
    except LinAlgError:
        return partial(np.matmul, np.linalg.pinv(regular, hermitian=True))


def _regularised(matrices: Floats) -> Floats:
    size = np.einsum("tii->ti", matrices).max(axis=1, initial=1e-300)
    return np.asarray(matrices + _SINGULAR * size[:, None, None] * np.eye(matrices.shape[1]))


class PathSolver:
    """Fits a problem for a sequence of penalties."""

    def __init__(self, problem: PathProblem, start: Floats) -> None:
        """Start from the fits without slopes, theta (T, q, m)."""
        self.problem, self.theta = problem, start
        self.curvature: _CurvatureModel | None = None
        self.recent: list[tuple[float, Floats]] = []  # last log penalties and solutions
        self.unfinished = 0  # number of fits that did not converge

    def fit(self, penalty: float, *, exact: bool = False) -> Floats:
        """Return theta (T, q, m) for a penalty.

        With `exact`, the curvature is computed anew for every step of every fit.
        """
        T, _, m = self.problem.shape
        theta = self._extrapolate(penalty)
        cheap = m == 1 or self.curvature is None
        if cheap:
            self.curvature = _CurvatureModel(self.problem, theta[-1])
        remaining, last = np.arange(T), np.full(T, np.inf)
        slow = np.full(T, exact or self.problem.loss.guarded)
        remaining = remaining[~slow]
        assert self.curvature is not None
        model, renewed = self.curvature.at(penalty), cheap
        corrections = _Corrections(T)
        slowest = _GROWTH if self.problem.corner is None else _SHRINKAGE
        for _ in range(_MAX_STEPS if len(remaining) else 0):
            gradient = self.problem.gradients(theta[remaining], remaining, penalty)
            step, decrement = model.steps(theta[remaining], gradient, remaining, corrections)
            limit = (slowest if renewed else _FAST) * last[remaining]
            failing = ~(decrement < limit) & ~(decrement <= _DECREMENT)
            if failing.any() and not renewed:
                self.curvature = _CurvatureModel(self.problem, theta[-1])
                model, renewed, last[:] = self.curvature.at(penalty), True, np.inf
                continue
            slow[remaining[failing]] = True
            moving = remaining[~failing]
            theta[moving] += step[~failing]
            last[moving] = decrement[~failing]
            remaining = moving[last[moving] > _DECREMENT]
            if not len(remaining):
                break
        slow[remaining] = True
        for t in np.flatnonzero(slow):
            theta[t] = self._newton(theta[t], int(t), penalty)
        self.recent = [*self.recent[-2:], (float(np.log(penalty)), theta.copy())]
        self.theta = theta
        return theta

    def _extrapolate(self, penalty: float) -> Floats:
        """Return the parabola through the last three solutions, evaluated at log(penalty).

        With fewer than three solutions, the last one is returned.
        """
        if self.problem.corner is not None or len(self.recent) < 3:
            return self.theta.copy()
        return extrapolate(self.recent, float(np.log(penalty)))

    def _newton(self, theta: Floats, fit: int, penalty: float) -> Floats:
        """Return the solution of one fit, by Newton steps with a line search."""
        problem, (q, m) = self.problem, theta.shape
        if not np.isfinite(theta).all():
            theta = np.where(np.isfinite(self.theta[fit]), self.theta[fit], 0.0)
        fits, value = np.array([fit]), problem.value(theta, fit, penalty)
        if not np.isfinite(value):
            theta = self.theta[fit].copy()
            value = problem.value(theta, fit, penalty)
        for _ in range(_MAX_STEPS):
            matrix = problem.curvature_without(theta, fit)
            matrix += np.kron(np.eye(m), problem.penalty_matrix(fit, penalty))
            flat = problem.gradients(theta[None], fits, penalty)[0].T.ravel()
            if problem.corner is None:
                direction = -_solver(matrix)(flat)
                decrease = -0.5 * float(flat @ direction)
            else:
                corner = np.tile(penalty * problem.l1_ratio * problem.corner[fit], m)
                direction, decrease = l1_step(flat, matrix, corner, theta.T.ravel())
            step, factor, rounding = direction.reshape(m, q).T, 1.0, 1e-15 * abs(value)
            if decrease <= _DECREMENT:
                return np.asarray(theta + step)
            for _ in range(_HALVINGS):
                after = problem.value(theta + factor * step, fit, penalty)
                if after <= value - 2.0 * _ARMIJO * factor * decrease + rounding:
                    break
                factor *= 0.5
            else:
                break
            theta, value = theta + factor * step, after
        self.unfinished += 1
        return theta


def null_fits(problem: PathProblem, free: int) -> Floats:
    """Return theta (T, q, m) of the fits without slopes; without an intercept, theta is zero."""
    T, q, m = problem.shape
    theta = np.zeros((T, q, m))
    if not free:
        return theta
    column = np.ascontiguousarray(problem.rows[:, :1])
    narrow = replace(problem, rows=column, ridge=np.zeros((T, 1)), corner=None)
    weight = np.ones(len(column)) if problem.weight is None else problem.weight
    start = np.empty((T, 1, m))
    for t in range(T):
        own = weight.copy()
        if t < T - 1:
            own[problem.starts[t] : problem.starts[t + 1]] = 0.0
        start[t] = problem.loss.null_scores(own)
    theta[:, :1] = PathSolver(narrow, start).fit(1.0)
    return theta


class NetPath:
    """Fits a problem with an l1 penalty for a sequence of penalties, on screened columns."""

    def __init__(self, problem: PathProblem, start: Floats, free: int) -> None:
        """Start from the fits without slopes, theta (T, q, m); `free` columns are not penalised."""
        assert problem.corner is not None
        self.problem, self.theta, self.free = problem, start, free
        self.corner = problem.l1_ratio * problem.corner[:, :, None]
        self.every = np.arange(len(start))
        self.gradient = problem.gradients(start, self.every, 0.0)
        self.last: float | None = None
        self.recent: list[tuple[float, Floats]] = []  # last penalties and solutions
        self.inside = np.zeros(start.shape[1], dtype=bool)
        self.solver: PathSolver | None = None
        self.unfinished = 0

    def fit(self, penalty: float, *, exact: bool = False) -> Floats:
        """Return theta (T, q, m) for a penalty."""
        last = penalty if self.last is None else max(self.last, penalty)
        strong = np.abs(self.gradient) >= self.corner * (2.0 * penalty - last)
        wanted = (strong | (self.theta != 0)).any(axis=(0, 2))
        wanted[: self.free] = True
        self.theta = self._extrapolate(penalty)
        while True:
            self._fit_columns(wanted, penalty, exact)
            excess = np.abs(self.gradient) - penalty * self.corner > _VIOLATION
            violated = excess.any(axis=(0, 2)) & ~self.inside
            if not violated.any():
                break
            wanted = self.inside | violated
        self.last = penalty
        self.recent = [*self.recent[-2:], (penalty, self.theta)]
        return self.theta

    def _extrapolate(self, penalty: float) -> Floats:
        """Return the parabola through the last three solutions, evaluated at the penalty.

        No coefficient with a penalty becomes nonzero or changes its sign.
        """
        theta = extrapolate(self.recent, penalty) if len(self.recent) > 1 else self.theta
        flips = theta * self.theta < 0
        flips[:, : self.free] = False
        return np.asarray(np.where(flips | (self.theta == 0), 0.0, theta))

    def _fit_columns(self, wanted: npt.NDArray[np.bool_], penalty: float, exact: bool) -> None:
        """Fit the selected columns, and compute the gradients of all columns."""
        columns = np.flatnonzero(wanted)
        if self.solver is None or not (self.inside == wanted).all():
            self.inside = wanted
            self.solver = PathSolver(self.problem.select(columns), self.theta[:, columns])
        self.solver.theta = self.theta[:, columns]
        theta = np.zeros_like(self.theta)
        before = self.solver.unfinished
        theta[:, columns] = self.solver.fit(penalty, exact=exact)
        self.unfinished = self.solver.unfinished - before
        self.theta = theta
        self.gradient = self.problem.gradients(theta, self.every, 0.0)
