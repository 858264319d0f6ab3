"""The perceptron: each misclassified row moves the boundary, correctly classified rows never do.

With z = (x - origin) scale and a 1 for the intercept, and the true class t of a row:

    two classes   wrong if  sign z.w <= 0           w   += sign z
    K classes     wrong if  z.w_t <= z.w_r          w_t += z,  w_r -= z     r the best of the others

The second is the first for Kesler's long vectors (+z in block t, -z in block r, else 0). A row on
the boundary is wrong, so that w = 0 is a valid start. Batch training descends the criterion of all
wrong rows,

    J_p(w) = - sum over the wrong of (their lead)        w += mean of their updates,

with the mean and not the sum, so that the convergence theorem holds for its steps as for rows: if
any w* leads on every row by gamma |w*| and no long vector is longer than R, then

    number of updates <= R^2 / gamma^2.

If there is no such w*, training never ends. The pocket algorithm (Gallant 1990, with ratchet) then
returns the best rule: whenever a run of correct rows longer than any before ends, the rule is
evaluated on all rows; and after each of the first few hundred updates, so that a small table in
which no run begins gets a good rule too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal

import numpy as np

from discriminant.moments.margin_counts import LinearWeights, Mistakes, RowScaling
from discriminant.table.blocks import Codes, Features, is_sparse


def as_compiled_csr(rows: Any) -> Any:
    """CSR of float32 or float64 with 32-bit indices, each cell once; what fits is not copied."""
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    kind = rows.dtype if rows.dtype.char in "fd" else np.dtype(np.float64)
    if rows.indices.dtype == np.int32 and rows.indptr.dtype == np.int32 and rows.dtype == kind:
        return rows
    return type(rows)(
        (
            rows.data.astype(kind, copy=False),
            rows.indices.astype(np.int32, copy=False),
            rows.indptr.astype(np.int32 if rows.nnz < 1 << 31 else np.int64, copy=False),
        ),
        shape=rows.shape,
    )


def unsigned_indices(rows: Any) -> Any:
    """Column indices as unsigned integers, which compiled loops need not check for sign."""
    return rows.indices.view(np.uint32)


Keep = Literal["pocket", "last", "average"]

_PART_BYTES = 1 << 23  # rows copied at a time where they cannot be walked as they lie
_ROWS, _PASSES, _PATIENCE = 2_000_000, 1000, 5  # the budget where none is given
_FREE_ROWS, _FREE = 200_000, 200  # judged after every move: so many rows, so many times
_NEVER = np.iinfo(np.int64).max


Judge = Callable[[LinearWeights, bool], Mistakes]  # fully, or only counted


@dataclass(frozen=True, slots=True, eq=False)
class PerceptronFit:
    """What a perceptron came to."""

    weights: LinearWeights
    mistakes: Mistakes
    updates: int
    converged: bool
    path: tuple[int, ...]  # moves of each pass; for the batch rows wrong before each step
    balanced: bool = False  # the moves of the wrong rows cancel: no border has every row right


def train_online(
    features: Features,
    codes: Codes,
    *,
    classes: int,
    stand: RowScaling,
    judge: Judge,
    keep: Keep = "pocket",
    max_passes: int | None = None,
    rng: np.random.Generator | None = None,
) -> PerceptronFit:
    """Train row by row, in order, or with `rng` in a new order each pass."""
    if is_sparse(features) and not stand.squarable:
        features, stand = stand.rows(features), replace(stand, scale=np.ones(len(stand.scale)))
    walk = _OnlinePasses(features, codes.astype(np.int32), stand, classes, keep == "average")
    pocket = _Pocket(judge, rows=len(codes), open=keep == "pocket")
    converged, path = False, list[int]()
    while not converged and continues(path, rows=len(codes), most=max_passes):
        before = walk.updates
        order = None if rng is None else rng.permutation(len(codes))
        done = walk.once(order, pocket)
        path.append(walk.updates - before)
        converged = done or walk.updates == before
    if keep == "average":
        weights = walk.average()
        return PerceptronFit(weights, judge(weights, True), walk.updates, converged, tuple(path))
    last = judge(walk.weights, True)
    if not converged and pocket.held is not None and pocket.held[1].count < last.count:
        best = pocket.held[0]
        return PerceptronFit(best, judge(best, True), walk.updates, converged, tuple(path))
    return PerceptronFit(walk.weights, last, walk.updates, converged, tuple(path))


def train_batch(
    *, classes: int, width: int, judge: Judge, rows: int, max_passes: int | None = None
) -> PerceptronFit:
    """Train on all misclassified rows at once; return the best weights seen."""
    weights, path = LinearWeights.zero(classes, width), list[int]()
    best, balanced = (weights, judge(weights, True)), False
    now = best[1]
    while now.count and continues(path, rows=rows, most=max_passes):
        path.append(now.count)
        if not now.update.norm:  # a border would have a positive lead on their sum, which is zero
            balanced = True
            break
        weights = weights.add_scaled(now.update, 1.0 / now.count)
        now = judge(weights, True)
        if now.count < best[1].count:
            best = weights, now
    return PerceptronFit(*best, len(path), not best[1].count, tuple(path), balanced)


def continues(path: list[int], *, rows: int, most: int | None) -> bool:
    """Whether to make another pass; without a limit, while it is cheap or mistakes decrease."""
    done = len(path)
    if most is not None:
        return done < most
    if done * rows < _ROWS or done <= _PATIENCE:
        return done < _PASSES
    return done < _PASSES and min(path[-_PATIENCE:]) < min(path[:-_PATIENCE])


class _Pocket:
    """The best weights seen, evaluated on at most half as many rows as were trained on."""

    def __init__(self, judge: Judge, *, rows: int, open: bool) -> None:
        self._judge, self._rows = judge, rows
        self._free = min(_FREE, _FREE_ROWS // rows)
        self._judged, self._record = 0, 0
        self.longest = (-1 if self._free else 0) if open else _NEVER  # run that need not be judged
        self.held: tuple[LinearWeights, Mistakes] | None = None

    def consider(self, weights: LinearWeights, *, run: int, seen: int) -> None:
        """Evaluate weights that classified `run` consecutive rows correctly."""
        self._record = max(self._record, run)
        if self._judged >= self._free:
            self.longest = self._record
            if 2 * self._judged * self._rows > seen:
                return
        self._judged += 1
        found = self._judge(weights, False)
        if self.held is None or found.count < self.held[1].count:
            self.held = weights.copy(), found


class _OnlinePasses:
    """Weights during training, updated in place by the compiled loop."""

    def __init__(
        self, features: Features, codes: Codes, stand: RowScaling, classes: int, averaging: bool
    ) -> None:
        from discriminant.models.linear import kernels

        self._loops, self._features, self._codes, self._stand = kernels, features, codes, stand
        width = features.shape[1]
        self._now = LinearWeights.zero(classes, width)  # sparse ones times scale
        self._late = self._now.copy()  # what the average lacks
        if not averaging:
            self._late = LinearWeights(np.zeros((0, 0)), np.zeros(0))
        self._state = np.zeros(5, dtype=np.int64)
        self._room, self._square = np.empty(width), stand.scale**2

    @property
    def updates(self) -> int:
        return int(self._state[self._loops.UPDATES])

    @property
    def weights(self) -> LinearWeights:
        """The weights as they stand."""
        return self._of_rows(self._now)

    def average(self) -> LinearWeights:
        """Mean of the weights after each row seen."""
        seen = max(int(self._state[self._loops.SEEN]), 1)
        return self._of_rows(self._now.add_scaled(self._late, -1.0 / seen))

    def _of_rows(self, weights: LinearWeights) -> LinearWeights:
        if not is_sparse(self._features):
            return weights
        scale = np.where(self._stand.scale > 0, self._stand.scale, 1.0)
        return LinearWeights(weights.slope / scale, weights.intercept)

    def once(self, order: Any, pocket: _Pocket) -> bool:
        """Make one pass; return whether a run of correct rows covered the whole table."""
        goal = len(self._codes) if order is None else _NEVER
        for features, codes in self._parts(order):
            while True:
                why = self._step(features, codes, pocket.longest, goal)
                if why != self._loops.RECORD:
                    break
                run, seen = (int(self._state[i]) for i in (self._loops.RUN, self._loops.SEEN))
                pocket.consider(self.weights, run=run, seen=seen)
            if why == self._loops.DONE:
                return True
        return False

    def _step(self, features: Any, codes: Codes, longest: int, goal: int) -> int:
        now, late, stand = self._now, self._late, self._stand
        moved = (now.slope, now.intercept, late.slope, late.intercept)
        if is_sparse(features):
            entries = (
                features.data,
                unsigned_indices(features),
                features.indptr,
                codes,
                self._square,
            )
            return self._loops.perceptron_sparse(
                *entries, stand.intercept, *moved, self._state, longest, goal
            )
        rows = (features, codes, stand.origin, stand.scale, stand.intercept)
        return self._loops.perceptron_dense(*rows, *moved, self._room, self._state, longest, goal)

    def _parts(self, order: Any) -> Iterator[tuple[Any, Codes]]:
        """Rows as the loop takes them: as they lie where that can be, else some at a time."""
        features, codes = self._features, self._codes
        if order is None and readable_in_place(features):
            yield features, codes
            return
        size = max(_PART_BYTES // (8 * _entries(features)), 1)
        for lo in count(0, size):
            if lo >= len(codes):
                return
            rows = slice(lo, lo + size) if order is None else order[lo : lo + size]
            yield _as_walked(features[rows]), codes[rows]


def readable_in_place(features: Features) -> bool:
    """Whether the compiled loop can read the rows in place."""
    if is_sparse(features):
        return features.data.dtype.char in "fd" and features.indices.dtype == np.int32
    plain = isinstance(features, np.ndarray) and features.dtype.char in "fd"
    return plain and features.flags.c_contiguous and features.flags.aligned


def _as_walked(part: Any) -> Any:
    if is_sparse(part):
        return as_compiled_csr(part)
    kind = part.dtype if part.dtype.char in "fd" else np.float64
    return np.ascontiguousarray(part, dtype=kind)


def _entries(features: Features) -> int:
    """Entries of a row, on average for sparse ones."""
    rows, width = features.shape
    return max(-(-features.nnz // rows), 1) if is_sparse(features) else int(width)
