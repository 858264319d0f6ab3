"""Compiled loops (Numba) over the rows of the perceptron and of the SVM's dual solver.

These loops are compiled because each row depends on the result of the previous row, so NumPy cannot
process all rows at once. The module is imported only when a loop is about to run. A loop is
compiled on first use, for float32 and for float64 rows, and cached on disk for later processes.
Compiling takes time, so the loops are few and short.

`perceptron_dense` and `perceptron_sparse` train the perceptron on rows z = (x - origin) scale;
sparse rows have origin 0. The weights W are (K, d) with intercepts b (K,). For two classes W is
(1, d) and b is (1,), and the sign of the score decides. `intercept` is the value of the constant
feature; 0 means no intercept. `dual_sweep` is one sweep of dual coordinate descent for the SVM.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.cached_njit import fastmath_njit

# ENDED, RECORD and DONE are reasons to return from a loop: all rows are read, a record run of
# correct rows ends, or `target` consecutive rows are correct. STEP means: update the weights.
ENDED, RECORD, DONE, STEP = 0, 1, 2, 3
ROW, RUN, UPDATES, SEEN, GO = 0, 1, 2, 3, 4  # indices of the training state


@fastmath_njit
def row_outcome(correct: Any, row: Any, state: Any, longest: Any) -> int:
    """Return what to do after a row has been classified; update the counters in `state`.

    The result is ENDED if the row is classified correctly, so that there is nothing to do. It is
    STEP if the row is misclassified, so that the weights are to be updated. It is RECORD if the row
    is misclassified after more than `longest` consecutive correctly classified rows; evaluate the
    current weights before updating them.
    """
    if correct:
        state[RUN] += 1
        return ENDED
    if state[RUN] > longest and state[GO] == 0:
        state[ROW] = row
        state[GO] = 1  # the next call updates
        return RECORD
    state[GO] = 0
    state[RUN] = 0
    state[UPDATES] += 1
    return STEP


@fastmath_njit
def count_mistakes_dense(
    X: Any, codes: Any, origin: Any, scale: Any, intercept: Any, W: Any, b: Any, z: Any
) -> int:
    """Return the number of misclassified rows; rows on the boundary count as misclassified."""
    d, K, count = len(origin), len(b), 0
    for i in range(len(codes)):
        code = codes[i]
        for j in range(d):
            z[j] = (X[i, j] - origin[j]) * scale[j]
        true, best = 0.0, -1e308
        for k in range(K):
            total = b[k] * intercept
            for j in range(d):
                total += W[k, j] * z[j]
            if K == 1:
                true, best = (2.0 * code - 1.0) * total, 0.0
            elif k == code:
                true = total
            elif total > best:
                best = total
        if not true > best:
            count += 1
    return count


@fastmath_njit
def perceptron_dense(
    X: Any,
    codes: Any,
    origin: Any,
    scale: Any,
    intercept: Any,
    W: Any,
    b: Any,
    correction: Any,
    correction_b: Any,
    z: Any,
    state: Any,
    longest: Any,
    target: Any,
) -> int:
    """Train on the rows from `state[ROW]`; stop after a new longest run without an error.

    An update ends a run of consecutive correctly classified rows. If the run has more than
    `longest` rows, the function returns before this update. `correction` and `correction_b` are
    sums over all updates of the update times the number of rows before it; the average of the
    weights follows from them. These arrays are empty if the average is not needed.
    """
    d, K = len(origin), len(b)
    for i in range(state[ROW], len(codes)):
        code = codes[i]
        for j in range(d):
            z[j] = (X[i, j] - origin[j]) * scale[j]
        true, best, rival = 0.0, -1e308, 0
        for k in range(K):
            total = b[k] * intercept
            for j in range(d):
                total += W[k, j] * z[j]
            if K > 1 and k == code:
                true = total
            elif total > best:
                best, rival = total, k
        sign = 1.0
        if K == 1:  # the sign decides
            sign = 2.0 * code - 1.0
            true, best, code = sign * best, 0.0, 0
        outcome = row_outcome(true > best, i, state, longest)
        if outcome == RECORD:
            return RECORD
        if outcome == STEP:
            for k in range(K):
                step = sign if k == code else -1.0 if k == rival else 0.0
                if step != 0.0:
                    b[k] += step * intercept
                    for j in range(d):
                        W[k, j] += step * z[j]
                    if len(correction_b):
                        step *= state[SEEN]
                        correction_b[k] += step * intercept
                        for j in range(d):
                            correction[k, j] += step * z[j]
        state[SEEN] += 1
        if state[RUN] >= target:
            return DONE
    state[ROW] = 0
    return ENDED


@fastmath_njit
def perceptron_sparse(
    data: Any,
    columns: Any,
    starts: Any,
    codes: Any,
    square: Any,
    intercept: Any,
    W: Any,
    b: Any,
    correction: Any,
    correction_b: Any,
    state: Any,
    longest: Any,
    target: Any,
) -> int:
    """Train as `perceptron_dense`, on sparse rows (CSR).

    Row i has the entries from starts[i] to starts[i + 1]. W holds the weights times `scale`, so
    that rows need not be scaled to score them. Updates of W are multiplied by `square`, which is
    scale^2.
    """
    K = len(b)
    for i in range(state[ROW], len(codes)):
        lo, hi, code = starts[i], starts[i + 1], codes[i]
        true, best, rival = 0.0, -1e308, 0
        for k in range(K):
            total = b[k] * intercept
            for e in range(lo, hi):
                total += W[k, columns[e]] * data[e]
            if K > 1 and k == code:
                true = total
            elif total > best:
                best, rival = total, k
        sign = 1.0
        if K == 1:
            sign = 2.0 * code - 1.0
            true, best, code = sign * best, 0.0, 0
        outcome = row_outcome(true > best, i, state, longest)
        if outcome == RECORD:
            return RECORD
        if outcome == STEP:
            for k in range(K):
                step = sign if k == code else -1.0 if k == rival else 0.0
                if step != 0.0:
                    b[k] += step * intercept
                    for e in range(lo, hi):
                        W[k, columns[e]] += step * (data[e] * square[columns[e]])
                    if len(correction_b):
                        step *= state[SEEN]
                        correction_b[k] += step * intercept
                        for e in range(lo, hi):
                            correction[k, columns[e]] += step * (data[e] * square[columns[e]])
        state[SEEN] += 1
        if state[RUN] >= target:
            return DONE
    state[ROW] = 0
    return ENDED


@fastmath_njit
def dual_sweep(
    data: Any,
    columns: Any,
    starts: Any,
    sign: Any,
    upper: Any,
    soft: Any,
    size: Any,
    inverse: Any,
    alpha: Any,
    weights: Any,
    order: Any,
    state: Any,
) -> int:
    """Make one sweep of dual coordinate descent; return the number of rows that are still active.

    The active rows are order[:active]. The intercept is b0 + B^2 r, where r is the sum of alpha t.
    `state` holds b0, r, B^2, the largest and smallest projected gradients of the previous sweep and
    of this sweep, `active`, and the seed. A row at a bound becomes inactive if its gradient lies
    beyond all gradients of the previous sweep.
    """
    active, seed = int(state[7]), np.uint64(state[8])
    base_intercept, total_alpha, bias_square = state[0], state[1], state[2]
    upper_bound, lower_bound, largest, smallest = state[3], state[4], -np.inf, np.inf
    position = 0
    while position < active:
        seed = seed * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        other = position + int((seed >> np.uint64(33)) % np.uint64(active - position))
        i = order[other]
        order[other] = order[position]
        order[position] = i
        lo, hi = starts[i], starts[i + 1]
        score = base_intercept + bias_square * total_alpha
        for e in range(lo, hi):
            score += weights[columns[e]] * data[e]
        slope = sign[i] * score - 1.0 + soft[i] * alpha[i]
        projected = slope
        if alpha[i] <= 0.0:
            projected = min(slope, 0.0)
            shrunk = slope > upper_bound
        else:
            shrunk = alpha[i] >= upper[i] and slope < lower_bound
            if alpha[i] >= upper[i]:
                projected = max(slope, 0.0)
        if shrunk:
            active -= 1
            order[position] = order[active]
            order[active] = i
            continue
        position += 1
        largest, smallest = max(largest, projected), min(smallest, projected)
        if abs(projected) > 1e-14:
            before = alpha[i]
            alpha[i] = min(max(before - slope / size[i], 0.0), upper[i])
            step = (alpha[i] - before) * sign[i]
            total_alpha += step
            if len(inverse):
                for e in range(lo, hi):
                    weights[columns[e]] += step * (data[e] * inverse[columns[e]])
            else:  # all penalties are 1
                for e in range(lo, hi):
                    weights[columns[e]] += step * data[e]
    state[1], state[5], state[6], state[7] = total_alpha, largest, smallest, active
    state[8] = seed >> np.uint64(12)  # exact in float64
    return active
