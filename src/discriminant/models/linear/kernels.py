"""Compiled loops over rows in which each step depends on the one before.

This module is imported only when such a loop is about to run. A loop is compiled on first use, for
float32 and for float64 rows, and cached on disk for the next process; so there are few of them, and
they are short.

`perceptron_dense` and `perceptron_sparse` train the perceptron on rows z = (x - origin) scale;
sparse rows have origin 0. W is (1, d) for two classes, decided by the sign, or (K, d), with
intercepts b; `one` is the value of the intercept's feature, 0 for none. `dual_sweep` is one
sweep of dual coordinate descent for the SVM.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.numba_cache import fastmath_njit

ENDED, RECORD, DONE, STEP = 0, 1, 2, 3  # why a walk stops, or takes a step
ROW, RUN, UPDATES, SEEN, GO = 0, 1, 2, 3, 4  # places in the state of a walk


@fastmath_njit
def row_outcome(right: Any, row: Any, state: Any, longest: Any) -> int:
    """What follows from a row: nothing, a step, or first a record of the run that it ends."""
    if right:
        state[RUN] += 1
        return ENDED
    if state[RUN] > longest and state[GO] == 0:
        state[ROW] = row
        state[GO] = 1  # the next call makes the step
        return RECORD
    state[GO] = 0
    state[RUN] = 0
    state[UPDATES] += 1
    return STEP


@fastmath_njit
def perceptron_dense(
    X: Any,
    codes: Any,
    origin: Any,
    scale: Any,
    one: Any,
    W: Any,
    b: Any,
    late: Any,
    late_b: Any,
    z: Any,
    state: Any,
    longest: Any,
    goal: Any,
) -> int:
    """Perceptron steps from row state[ROW] on; stops before a step that ends a record run.

    `late` and `late_b` sum (rows seen before) x step, from which the average follows; empty
    where it is not asked for.
    """
    d, K = len(origin), len(b)
    for i in range(state[ROW], len(codes)):
        code = codes[i]
        for j in range(d):
            z[j] = (X[i, j] - origin[j]) * scale[j]
        true, best, rival = 0.0, -1e308, 0
        for k in range(K):
            total = b[k] * one
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
        why = row_outcome(true > best, i, state, longest)
        if why == RECORD:
            return RECORD
        if why == STEP:
            for k in range(K):
                step = sign if k == code else -1.0 if k == rival else 0.0
                if step != 0.0:
                    b[k] += step * one
                    for j in range(d):
                        W[k, j] += step * z[j]
                    if len(late_b):
                        step *= state[SEEN]
                        late_b[k] += step * one
                        for j in range(d):
                            late[k, j] += step * z[j]
        state[SEEN] += 1
        if state[RUN] >= goal:
            return DONE
    state[ROW] = 0
    return ENDED


@fastmath_njit
def perceptron_sparse(
    data: Any,
    places: Any,
    starts: Any,
    codes: Any,
    square: Any,
    one: Any,
    W: Any,
    b: Any,
    late: Any,
    late_b: Any,
    state: Any,
    longest: Any,
    goal: Any,
) -> int:
    """`perceptron_dense` over sparse rows, whose entries are starts[i] to starts[i + 1].

    W holds the weights times `scale`, so that rows are scored as they are, and moves by `square`,
    which is scale^2.
    """
    K = len(b)
    for i in range(state[ROW], len(codes)):
        lo, hi, code = starts[i], starts[i + 1], codes[i]
        true, best, rival = 0.0, -1e308, 0
        for k in range(K):
            total = b[k] * one
            for e in range(lo, hi):
                total += W[k, places[e]] * data[e]
            if K > 1 and k == code:
                true = total
            elif total > best:
                best, rival = total, k
        sign = 1.0
        if K == 1:
            sign = 2.0 * code - 1.0
            true, best, code = sign * best, 0.0, 0
        why = row_outcome(true > best, i, state, longest)
        if why == RECORD:
            return RECORD
        if why == STEP:
            for k in range(K):
                step = sign if k == code else -1.0 if k == rival else 0.0
                if step != 0.0:
                    b[k] += step * one
                    for e in range(lo, hi):
                        W[k, places[e]] += step * (data[e] * square[places[e]])
                    if len(late_b):
                        step *= state[SEEN]
                        late_b[k] += step * one
                        for e in range(lo, hi):
                            late[k, places[e]] += step * (data[e] * square[places[e]])
        state[SEEN] += 1
        if state[RUN] >= goal:
            return DONE
    state[ROW] = 0
    return ENDED


@fastmath_njit
def dual_sweep(
    data: Any,
    places: Any,
    starts: Any,
    sign: Any,
    most: Any,
    soft: Any,
    size: Any,
    inverse: Any,
    alpha: Any,
    weights: Any,
    order: Any,
    state: Any,
) -> int:
    """One sweep of dual coordinate descent over rows order[:active]; the rows left active.

    state: b0, r = sum of alpha t, B^2, largest and smallest projected gradient of the sweep
    before (rows beyond them are put aside) and of this one, active, seed. b = b0 + B^2 r.
    """
    active, seed = int(state[7]), np.uint64(state[8])
    base, tie, lift = state[0], state[1], state[2]
    top, bottom, high, low = state[3], state[4], -np.inf, np.inf
    at = 0
    while at < active:
        seed = seed * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        other = at + int((seed >> np.uint64(33)) % np.uint64(active - at))
        i = order[other]
        order[other] = order[at]
        order[at] = i
        lo, hi = starts[i], starts[i + 1]
        total = base + lift * tie
        for e in range(lo, hi):
            total += weights[places[e]] * data[e]
        slope = sign[i] * total - 1.0 + soft[i] * alpha[i]
        held = slope
        if alpha[i] <= 0.0:
            held = min(slope, 0.0)
            aside = slope > top
        else:
            aside = alpha[i] >= most[i] and slope < bottom
            if alpha[i] >= most[i]:
                held = max(slope, 0.0)
        if aside:
            active -= 1
            order[at] = order[active]
            order[active] = i
            continue
        at += 1
        high, low = max(high, held), min(low, held)
        if abs(held) > 1e-14:
            was = alpha[i]
            alpha[i] = min(max(was - slope / size[i], 0.0), most[i])
            step = (alpha[i] - was) * sign[i]
            tie += step
            if len(inverse):
                for e in range(lo, hi):
                    weights[places[e]] += step * (data[e] * inverse[places[e]])
            else:  # all are 1
                for e in range(lo, hi):
                    weights[places[e]] += step * data[e]
    state[1], state[5], state[6], state[7] = tie, high, low, active
    state[8] = seed >> np.uint64(12)  # what a float64 holds exactly
    return active
