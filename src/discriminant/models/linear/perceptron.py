"""The perceptron, trained row by row or in batches; only misclassified rows change the weights.

Let z be (x - origin) scale with a constant feature 1 appended for the intercept, and t the true
class of the row:

    two classes   wrong if  sign z.w <= 0           w   += sign z
    K classes     wrong if  z.w_t <= z.w_r          w_t += z,  w_r -= z     r: best other class

The update for K classes is the update for two classes applied to Kesler's long vectors: K blocks,
with +z in block t, -z in block r, and 0 in all other blocks. A row on the boundary counts as
misclassified, so that training can start at w = 0. The margin of a row is sign z.w, or z.w_t -
z.w_r for K classes. Batch training decreases the perceptron criterion,

    J_p(w) = - sum of the margins of misclassified rows    w += mean update of misclassified rows

The mean is used instead of the sum, so that the convergence theorem holds for batch steps as well
as for single rows: if, for some w*, every row has a margin of at least gamma |w*|, and no long
vector has a length above R, then

    number of updates <= R^2 / gamma^2.

If the classes are not separable, training never ends by itself. So if the number of updates per
pass no longer decreases, the caller tests whether such a w* exists; if not, training ends. The
pocket algorithm (Gallant 1990, with ratchet) then returns the best weights. Weights are evaluated
on all rows after they have classified more consecutive rows correctly than any weights before.
Weights are also evaluated after each of the first few hundred updates, since small tables have no
long runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal

import numpy as np

from discriminant.moments.margins_and_mistakes import LinearWeights, Mistakes, RowScaling
from discriminant.table.blocks import Codes, Features, is_sparse


def as_compiled_csr(rows: Any) -> Any:
    """Convert sparse rows to the format of the compiled loops, without a copy if possible.

    The result is a canonical CSR matrix of float32 or float64 with 32-bit indices.
    """
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    dtype = rows.dtype if rows.dtype.char in "fd" else np.dtype(np.float64)
    if rows.indices.dtype == np.int32 and rows.indptr.dtype == np.int32 and rows.dtype == dtype:
        return rows
    return type(rows)(
        (
            rows.data.astype(dtype, copy=False),
            rows.indices.astype(np.int32, copy=False),
            rows.indptr.astype(np.int32 if rows.nnz < 1 << 31 else np.int64, copy=False),
        ),
        shape=rows.shape,
    )


def unsigned_indices(rows: Any) -> Any:
    """Return the column indices as unsigned integers, so that loops need not check their sign."""
    return rows.indices.view(np.uint32)


Keep = Literal["pocket", "last", "average"]

_PART_BYTES = 1 << 23  # bytes copied at a time if the compiled loop cannot read rows in place
# Default limits: at least _ROWS rows are processed, at most _PASSES passes are made, and training
# ends if _PATIENCE passes bring no improvement.
_ROWS, _PASSES, _PATIENCE = 2_000_000, 1000, 5
_ROWS_BEFORE_TEST = 20_000  # rows processed before separability is tested; the pocket needs some
# Evaluations after every update: at most _FREE, and at most _FREE_ROWS rows in all.
_FREE_ROWS, _FREE = 200_000, 200
_NEVER = np.iinfo(np.int64).max


Evaluate = Callable[[LinearWeights, bool], Mistakes]  # weights, whether to compute more than counts


@dataclass(frozen=True, slots=True, eq=False)
class PerceptronFit:
    """Result of training a perceptron."""

    weights: LinearWeights
    mistakes: Mistakes
    updates: int
    converged: bool
    path: tuple[int, ...]  # updates in each pass; in batch training the errors before each step
    balanced: bool = False  # the updates of all errors cancel: every boundary has errors
    separable: bool | None = None  # whether the classes are separable, if this was tested
    criteria: tuple[float, ...] = ()  # J_p at the start and after each pass or step, if recorded
    history: tuple[LinearWeights, ...] = ()  # weights at the start and after each update


def train_online(
    features: Features,
    codes: Codes,
    *,
    classes: int,
    scaling: RowScaling,
    evaluate: Evaluate,
    keep: Keep = "pocket",
    max_passes: int | None = None,
    rng: np.random.Generator | None = None,
    is_separable: Callable[[], bool | None] | None = None,
    start: LinearWeights | None = None,
    record: bool = False,
) -> PerceptronFit:
    """Train row by row. With `rng` the rows are in a new random order in every pass.

    `start` holds the initial weights, zero by default. With `record`, the weights after each update
    and the criterion after each pass are stored.

    `is_separable` returns whether the classes are separable, or None if this is not known. If
    `max_passes` is None, the function is called once when training makes no more progress.
    """
    if is_sparse(features) and not scaling.squarable:
        features, scaling = (
            scaling.rows(features),
            replace(scaling, scale=np.ones(len(scaling.scale))),
        )
    training = _OnlineTraining(
        features, codes.astype(np.int32), scaling, classes, keep == "average", start, record
    )
    count = training.count_mistakes if training.countable else lambda w: evaluate(w, False).count
    pocket = _Pocket(count, rows=len(codes), enabled=keep == "pocket")
    converged, path, separable = False, list[int](), None
    to_test = is_separable if max_passes is None and keep == "pocket" else None
    criteria = [evaluate(training.weights, True).criterion] if record else []
    while not converged and should_continue(path, rows=len(codes), max_passes=max_passes):
        before = training.updates
        order = None if rng is None else rng.permutation(len(codes))
        all_correct = training.run_pass(order, pocket)
        path.append(training.updates - before)
        if record:
            criteria.append(evaluate(training.weights, True).criterion)
        converged = all_correct or training.updates == before
        enough = len(path) * len(codes) >= _ROWS_BEFORE_TEST and _has_stalled(path)
        if to_test is not None and not converged and enough:
            separable, to_test = to_test(), None
            if separable is False:
                break
    weights = training.average() if keep == "average" else training.weights
    mistakes = evaluate(weights, True)
    if not converged and pocket.best is not None and pocket.best[1] < mistakes.count:
        weights = pocket.best[0]
        mistakes = evaluate(weights, True)
    return PerceptronFit(
        weights,
        mistakes,
        training.updates,
        converged,
        tuple(path),
        separable=separable,
        criteria=tuple(criteria),
        history=(*training.history, training.weights.copy()) if record else (),
    )


def train_full_batch(
    *,
    classes: int,
    width: int,
    evaluate: Evaluate,
    rows: int,
    max_passes: int | None = None,
    start: LinearWeights | None = None,
    record: bool = False,
) -> PerceptronFit:
    """Train on all misclassified rows at once; return the weights with the fewest errors.

    `start` and `record` are as for `train_online`.
    """
    weights, path = LinearWeights.zero(classes, width) if start is None else start, list[int]()
    best, balanced = (weights, evaluate(weights, True)), False
    mistakes, history = best[1], [weights]
    criteria = [mistakes.criterion]
    while mistakes.count and should_continue(path, rows=rows, max_passes=max_passes):
        path.append(mistakes.count)
        if not mistakes.update.norm:  # error-free weights would have a positive lead on the sum
            balanced = True
            break
        weights = weights.add_scaled(mistakes.update, 1.0 / mistakes.count)
        mistakes = evaluate(weights, True)
        criteria.append(mistakes.criterion)
        if record:
            history.append(weights)
        if mistakes.count < best[1].count:
            best = weights, mistakes
    return PerceptronFit(
        *best,
        len(path),
        not best[1].count,
        tuple(path),
        balanced,
        criteria=tuple(criteria),
        history=tuple(history) if record else (),
    )


def should_continue(path: list[int], *, rows: int, max_passes: int | None) -> bool:
    """Return whether to make another pass.

    Without `max_passes`, training stops once enough rows have been processed and the number of
    updates per pass no longer decreases.
    """
    passes = len(path)
    if max_passes is not None:
        return passes < max_passes
    return passes < _PASSES and (passes * rows < _ROWS or not _has_stalled(path))


def _has_stalled(path: list[int]) -> bool:
    """Return whether the number of updates did not decrease in the last passes."""
    return len(path) > _PATIENCE and min(path[-_PATIENCE:]) >= min(path[:-_PATIENCE])


class _Pocket:
    """Weights with the fewest errors so far.

    To limit their cost, evaluations (except the first few) may process at most half as many rows as
    training has processed.
    """

    def __init__(self, count: Callable[[LinearWeights], int], *, rows: int, enabled: bool) -> None:
        self._count, self._rows = count, rows
        self._free = min(_FREE, _FREE_ROWS // rows)
        self._evaluations, self._record = 0, 0
        # weights are evaluated only after more consecutive correct rows than this
        self.longest = (-1 if self._free else 0) if enabled else _NEVER
        self.best: tuple[LinearWeights, int] | None = None  # weights and number of errors

    def consider(self, weights: LinearWeights, *, run: int, seen: int) -> None:
        """Evaluate weights after `run` consecutive correct rows, unless that is too costly.

        `seen` is the number of rows that training has processed.
        """
        self._record = max(self._record, run)
        if self._evaluations >= self._free:
            self.longest = self._record
            if 2 * self._evaluations * self._rows > seen:
                return
        self._evaluations += 1
        mistakes = self._count(weights)
        if self.best is None or mistakes < self.best[1]:
            self.best = weights.copy(), mistakes


class _OnlineTraining:
    """State of row-by-row training: weights that the compiled loop updates in place."""

    def __init__(
        self,
        features: Features,
        codes: Codes,
        scaling: RowScaling,
        classes: int,
        averaging: bool,
        start: LinearWeights | None,
        record: bool,
    ) -> None:
        from discriminant.models.linear import compiled_perceptron_svm as loops

        self._loops, self._features, self._codes, self._scaling = loops, features, codes, scaling
        width = features.shape[1]
        self._weights = LinearWeights.zero(classes, width)  # for sparse rows: weights times scale
        self._average_correction = (
            self._weights.copy()
        )  # from which the average of the weights follows
        if not averaging:
            self._average_correction = LinearWeights(np.zeros((0, 0)), np.zeros(0))
        self._state = np.zeros(5, dtype=np.int64)
        self._row, self._square = np.empty(width), scaling.scale**2
        self._sparse = is_sparse(features)
        if start is not None:
            self._weights.intercept[:] = start.intercept
            self._weights.slope[:] = start.slope * scaling.scale if self._sparse else start.slope
        self._record = record
        self.history: list[LinearWeights] = []  # weights before each update, if recorded

    @property
    def updates(self) -> int:
        return int(self._state[self._loops.UPDATES])

    @property
    def weights(self) -> LinearWeights:
        """Current weights."""
        return self._unscaled(self._weights)

    @property
    def countable(self) -> bool:
        """Whether the compiled loop can count errors: rows are dense and can be read in place."""
        return not is_sparse(self._features) and readable_in_place(self._features)

    def count_mistakes(self, weights: LinearWeights) -> int:
        """Return the number of misclassified rows."""
        rows = self._features, self._codes, self._scaling.origin, self._scaling.scale
        arrays = self._scaling.intercept, weights.slope, weights.intercept, self._row
        return int(self._loops.count_mistakes_dense(*rows, *arrays))

    def average(self) -> LinearWeights:
        """Return the mean, over all processed rows, of the weights after each row."""
        seen = max(int(self._state[self._loops.SEEN]), 1)
        return self._unscaled(self._weights.add_scaled(self._average_correction, -1.0 / seen))

    def _unscaled(self, weights: LinearWeights) -> LinearWeights:
        if not self._sparse:
            return weights
        scale = np.where(self._scaling.scale > 0, self._scaling.scale, 1.0)
        return LinearWeights(weights.slope / scale, weights.intercept)

    def run_pass(self, order: Any, pocket: _Pocket) -> bool:
        """Make one pass; return whether the weights classify every row of the table correctly."""
        target = len(self._codes) if order is None else _NEVER
        for features, codes in self._parts(order):
            while True:
                longest = -1 if self._record else pocket.longest  # -1: stop before every update
                outcome = self._step(features, codes, longest, target)
                if outcome != self._loops.RECORD:
                    break
                run, seen = (int(self._state[i]) for i in (self._loops.RUN, self._loops.SEEN))
                if self._record:
                    self.history.append(self.weights.copy())
                if run > pocket.longest:
                    pocket.consider(self.weights, run=run, seen=seen)
            if outcome == self._loops.DONE:
                return True
        return False

    def _step(self, features: Any, codes: Codes, longest: int, goal: int) -> int:
        weights, correction, scaling = self._weights, self._average_correction, self._scaling
        arrays = (weights.slope, weights.intercept, correction.slope, correction.intercept)
        if self._sparse:
            entries = (
                features.data,
                unsigned_indices(features),
                features.indptr,
                codes,
                self._square,
            )
            return self._loops.perceptron_sparse(
                *entries, scaling.intercept, *arrays, self._state, longest, goal
            )
        rows = (features, codes, scaling.origin, scaling.scale, scaling.intercept)
        return self._loops.perceptron_dense(*rows, *arrays, self._row, self._state, longest, goal)

    def _parts(self, order: Any) -> Iterator[tuple[Any, Codes]]:
        """Yield the rows in the format of the compiled loop: in place if possible, or in chunks."""
        features, codes = self._features, self._codes
        if order is None and readable_in_place(features):
            yield features, codes
            return
        size = max(_PART_BYTES // (8 * _entries_per_row(features)), 1)
        for lo in count(0, size):
            if lo >= len(codes):
                return
            rows = slice(lo, lo + size) if order is None else order[lo : lo + size]
            yield _as_compiled(features[rows]), codes[rows]


def readable_in_place(features: Features) -> bool:
    """Return whether the compiled loop can read the rows in place."""
    if is_sparse(features):
        return features.data.dtype.char in "fd" and features.indices.dtype == np.int32
    supported = isinstance(features, np.ndarray) and features.dtype.char in "fd"
    return supported and features.flags.c_contiguous and features.flags.aligned


def _as_compiled(rows: Any) -> Any:
    if is_sparse(rows):
        return as_compiled_csr(rows)
    dtype = rows.dtype if rows.dtype.char in "fd" else np.float64
    return np.ascontiguousarray(rows, dtype=dtype)


def _entries_per_row(features: Features) -> int:
    """Return the number of stored entries per row (for sparse rows the average, rounded up)."""
    rows, width = features.shape
    return max(-(-features.nnz // rows), 1) if is_sparse(features) else int(width)
