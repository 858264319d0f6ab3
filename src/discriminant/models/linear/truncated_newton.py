"""Newton's method with inexact steps (truncated Newton), for many classes and rows in memory.

The curvature of many classes is too large to be formed, and L-BFGS needs many passes. Instead, each
step is the solution of  H step = -gradient  by conjugate gradients, up to a residual that decreases
with the gradient (Nocedal & Wright, algorithm 7.1). A product of H with a vector V takes two
products with the rows and no exponentials. With t = V z the changes of the scores of a row z,

    H V  =  sum of weight (p * t - p (p't)) z'  /  total weight   +   penalty V

These products, and all passes until the gradient is small, use a copy of the rows in single
precision, which takes a third of the time. An inexact product costs more steps, but no accuracy of
the result: the last passes use double precision, and the criteria of `linear.optimise` are met by
them.

Conjugate gradients are preconditioned by the diagonal blocks of H, one for each class k:

    sum of weight p_k (1 - p_k) z z' / total weight  +  penalty

Most of this sum comes from few rows. These are summed exactly. The rest is approximated by a
multiple of the identity, since rows are white. So the inverse of a block needs only the inverse of
a matrix with as many rows as there are rows in the exact sum (Woodbury).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from discriminant.models.linear.optimise import (
    DECREMENT,
    GRADIENT,
    OptimisationResult,
    PenalisedLoss,
    Point,
    Progress,
    Trace,
    line_search,
)
from discriminant.models.linear.preconditioning import Coordinates
from discriminant.moments.loss_gradient_sums import LossSums, Want
from discriminant.table.blocks import Block, Codes, Floats, dense

MAX_NUMBERS = 1 << 25  # largest number of features and probabilities in single precision (128 MB)
_SWITCH = 1e-5  # gradient below which passes use double precision
_MAX_RESIDUAL = 0.7  # largest residual of a step, relative to the gradient
_POWER = 0.35  # residuals are proportional to this power of the gradient
_OVERSHOOT = 0.3  # smallest residual, relative to the tolerance of the gradient
_LAST_RESIDUAL = 0.1  # of the step whose decrement decides on convergence
_MAX_PRODUCTS = 200  # in one step
_STALE = 0.2  # reduction of the gradient after which the preconditioner is computed again
_LARGEST_ROWS = 64  # rows of each class that the preconditioner sums exactly
_PRECONDITIONER = 1 << 24  # largest number of features of those rows
_PART_ROWS = 8192  # largest number of rows in a part, approximately
_SMALLEST_PART = 512
_SAFE = 80.0  # exp of scores up to this size does not overflow in single precision
_LEAST_DIAGONAL = 1e-3  # relative to the curvature of all rows: for single precision
_TINY = 1e-12

Singles = npt.NDArray[np.float32]
Each = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]  # such as `map`


@dataclass(slots=True, eq=False)
class _Part:
    """Some of the rows in single precision, and their probabilities at the last point."""

    rows: Singles  # (n, q) z
    codes: Codes  # (n,)
    weight: Singles | None  # (n,)
    probability: Singles  # (K, n)

    def evaluate(self, scores_of: Singles) -> tuple[float, Singles]:
        """Return the summed loss and sum of weight p z', (K, q), at the coefficients (K, q)."""
        scores = scores_of @ self.rows.T
        true = scores[self.codes, np.arange(len(self.codes))]
        if not (scores.max() < _SAFE and scores.min() > -_SAFE):
            largest = scores.max(axis=0)
            scores -= largest
            true -= largest
        probability = np.exp(scores, out=scores)
        total = probability.sum(axis=0)
        probability /= total
        self.probability = probability
        loss = np.log(total) - true
        if self.weight is None:
            return float(loss.sum(dtype=np.float64)), probability @ self.rows
        weighted = probability * self.weight
        return float((loss * self.weight).sum(dtype=np.float64)), weighted @ self.rows

    def product(self, change: Singles) -> Singles:
        """Return the sum of weight (p * t - p (p't)) z', (K, q), for coefficients (K, q)."""
        moved = change @ self.rows.T
        moved *= self.probability
        moved -= self.probability * moved.sum(axis=0)
        if self.weight is not None:
            moved *= self.weight
        return np.asarray(moved @ self.rows)

    def uncertainty(self, classes: slice) -> Singles:
        """Return weight p (1 - p) for some of the classes and all rows."""
        probability = self.probability[classes]
        product = probability * (1.0 - probability)
        return product if self.weight is None else product * self.weight


class SinglePrecisionLoss:
    """Penalised mean loss of rows in memory, computed in single precision.

    Coefficients are those of K scores in white coordinates, rotated so that the penalty is
    diagonal. The coefficients of a coordinate sum to zero over the classes.
    """

    def __init__(self, block: Block, objective: PenalisedLoss, each: Each) -> None:
        coordinates = objective.coordinates
        assert isinstance(coordinates, Coordinates) and coordinates.contrast is not None
        assert objective.penalty is not None
        self.contrast, self.each = coordinates.contrast, each
        values, self.rotation = eigh(objective.penalty)
        self.penalty = np.maximum(values, 0.0)
        frame = coordinates.frame @ self.rotation
        K, n = len(self.contrast), len(block)
        count = max(2 * (n // (2 * _PART_ROWS) + 1), 2) if n >= 2 * _SMALLEST_PART else 1
        edges = [n * k // count for k in range(count + 1)]

        def part(k: int) -> _Part:
            rows = block.rows(edges[k], edges[k + 1])
            offsets = objective.anchor.offsets(dense(rows.features))
            z = (offsets @ frame[:-1] + frame[-1]).astype(np.float32)
            weight = None if rows.weight is None else rows.weight.astype(np.float32)
            return _Part(z, rows.codes, weight, np.zeros((K, 0), dtype=np.float32))

        self.parts = list(each(part, range(count)))
        self.total = float(n) if block.weight is None else float(block.weight.sum())
        self.rows = n
        self.class_sums = np.zeros((K, len(values)))
        for each_part in self.parts:
            z = each_part.rows.astype(np.float64)
            if each_part.weight is not None:
                z *= each_part.weight[:, None]
            np.add.at(self.class_sums, each_part.codes, z)

    def evaluate(self, theta: Floats, *, want: Want = "gradient") -> Point:
        """Return the value and the gradient at theta."""
        coef = self.to_classes(theta)
        single = coef.astype(np.float32)
        terms = list(self.each(lambda part: part.evaluate(single), self.parts))
        loss = sum(term[0] for term in terms)
        sums = sum(term[1].astype(np.float64) for term in terms) - self.class_sums
        penalty = self.penalty * coef
        gradient = self.from_classes(sums / self.total + penalty)
        slope = LossSums(self.rows, self.total, loss, sums, None, np.inf)
        value = loss / self.total + 0.5 * float((penalty * coef).sum())
        return Point(theta, value, gradient, None, slope)

    def product(self, change: Floats) -> Floats:
        """Return the product (K, q) of the curvature at the last point with `change` (K, q)."""
        single = change.astype(np.float32)
        terms = list(self.each(lambda part: part.product(single), self.parts))
        summed: Floats = sum(term.astype(np.float64) for term in terms) / self.total
        return summed + self.penalty * change

    def preconditioner(self) -> BlockPreconditioner:
        """Return the preconditioner at the last point."""
        rows = np.vstack([part.rows for part in self.parts])
        K, n = len(self.contrast), len(rows)
        largest = min(_LARGEST_ROWS, n, max(_PRECONDITIONER // (K * rows.shape[1]), 1))

        def blocks(classes: slice) -> tuple[Singles, Singles, Singles]:
            uncertainty = np.hstack([part.uncertainty(classes) for part in self.parts])
            uncertainty /= self.total
            selected = np.argpartition(uncertainty, n - largest, axis=1)[:, n - largest :]
            weight = np.take_along_axis(uncertainty, selected, axis=1)
            total = uncertainty.sum(axis=1)
            rest = np.maximum(total - weight.sum(axis=1), 0.0)[:, None]
            diagonal = np.maximum(self.penalty + rest, _LEAST_DIAGONAL * total[:, None] + _TINY)
            scale = (1.0 / np.sqrt(diagonal)).astype(np.float32)
            factor = rows[selected]
            factor *= np.sqrt(weight)[:, :, None]
            factor *= scale[:, None]
            inner = factor @ factor.transpose(0, 2, 1)
            inner[:, np.arange(largest), np.arange(largest)] += 1.0
            return scale, factor, np.linalg.inv(inner)

        halves = [slice(0, K // 2), slice(K // 2, K)]
        return BlockPreconditioner(
            *(np.concatenate(arrays) for arrays in zip(*self.each(blocks, halves), strict=True))
        )

    def to_classes(self, theta: Floats) -> Floats:
        """Convert theta (q, m) to coefficients (K, q)."""
        return np.asarray(self.contrast @ (self.rotation.T @ theta).T)

    def from_classes(self, coef: Floats) -> Floats:
        """Convert coefficients or a gradient (K, q) to theta (q, m)."""
        return np.asarray(self.rotation @ (coef.T @ self.contrast))


@dataclass(frozen=True, slots=True, eq=False)
class BlockPreconditioner:
    """Inverse of the matrices  D^1/2 (I + F'F) D^1/2,  one for each class, with D diagonal."""

    scale: Singles  # (K, q) D^-1/2
    factor: Singles  # (K, r, q) F
    inverse: Singles  # (K, r, r) inverse of I + F F'

    def solve(self, gradient: Floats) -> Floats:
        """Return the product (K, q) of the inverse and a gradient; it sums to zero over classes."""
        scaled = (gradient * self.scale).astype(np.float32)
        inner = self.inverse @ (self.factor @ scaled[:, :, None])
        scaled -= (inner.transpose(0, 2, 1) @ self.factor)[:, 0]
        result = (scaled * self.scale).astype(np.float64)
        return np.asarray(result - result.mean(axis=0))


def truncated_newton(
    objective: PenalisedLoss,
    start: Floats,
    single: SinglePrecisionLoss,
    *,
    max_passes: int = 1000,
    progress: Progress | None = None,
) -> OptimisationResult:
    """Minimise by inexact Newton steps.

    Products of the curvature with a vector are not counted as passes. The result may be not
    converged although passes remain, if rounding errors prevent further progress.
    """
    trace = Trace(single, max_passes, progress)
    point = trace.evaluate(start)
    first = float(np.linalg.norm(point.gradient))
    preconditioner, last_size = None, np.inf
    while True:
        if trace.objective is single and point.max_gradient <= _SWITCH and not trace.exhausted:
            trace.objective = objective
            point = trace.evaluate(point.theta)
        is_double = trace.objective is objective
        size = float(np.linalg.norm(point.gradient))
        if trace.exhausted or size == 0.0:
            return _result(trace, point, np.inf if size else 0.0, is_double)
        if preconditioner is None or size < _STALE * last_size:
            preconditioner, last_size = single.preconditioner(), size
        residual = max(
            min(_MAX_RESIDUAL, (size / max(first, size)) ** _POWER),
            min(_OVERSHOOT * GRADIENT / point.max_gradient, _MAX_RESIDUAL),
        )
        if is_double and point.max_gradient <= GRADIENT:  # for an accurate decrement
            residual = _LAST_RESIDUAL
        step = _conjugate_gradients(single, preconditioner, point.gradient, residual)
        decrement = -0.5 * float((point.gradient * step).sum())
        if is_double and point.max_gradient <= GRADIENT and decrement <= DECREMENT:
            return trace.result(point, decrement)
        next_point = line_search(trace, point, step, want="gradient")
        if next_point is not None:
            point = next_point
            if is_double:
                single.evaluate(point.theta)  # the probabilities for the next step
        elif is_double or trace.exhausted:
            return _result(trace, point, decrement, is_double)
        else:  # the value is only rounding error
            trace.objective = objective
            point = trace.evaluate(point.theta)


def _result(trace: Trace, point: Point, decrement: float, is_double: bool) -> OptimisationResult:
    """Return the result at a point; one in single precision is not converged."""
    result = trace.result(point, decrement)
    return result if is_double else replace(result, converged=False)


def _conjugate_gradients(
    single: SinglePrecisionLoss,
    preconditioner: BlockPreconditioner,
    gradient: Floats,
    residual: float,
) -> Floats:
    """Return an approximate solution of  H step = -gradient,  (q, m).

    The norm of the remaining error of this equation, relative to that of the gradient, is at most
    `residual`.
    """
    rest = -single.to_classes(gradient)
    limit = residual * float(np.linalg.norm(rest))
    step = np.zeros_like(rest)
    scaled = preconditioner.solve(rest)
    direction, product = scaled, float((rest * scaled).sum())
    for _ in range(_MAX_PRODUCTS):
        curved = single.product(direction)
        curvature = float((direction * curved).sum())
        if not (curvature > 0.0 and product > 0.0):  # rounding
            break
        factor = product / curvature
        step += factor * direction
        rest -= factor * curved
        if float(np.linalg.norm(rest)) <= limit:
            break
        scaled = preconditioner.solve(rest)
        product, last = float((rest * scaled).sum()), product
        direction = scaled + (product / last) * direction
    return single.from_classes(step)
