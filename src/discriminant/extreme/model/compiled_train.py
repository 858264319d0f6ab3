"""Compiled loops that train the classifiers of a label tree node, eight children at a time.

All children of a node are trained on the same rows. The classifiers of eight children, a block, are
trained together, so that each row is read once for all eight: W[feature] contains their eight
weights side by side, and one step of coordinate descent updates eight dual variables
(`compiled_simd_primitives`). For each child of a block, with t = +-1 and cost c, the squared hinge
problem

    least over w, b    (|w|^2 + b^2) / 2  +  sum c max(0, 1 - t (x.w + b))^2

is solved in the dual (Hsieh et al. 2008): alpha >= 0, w = sum alpha t x, b = sum alpha t, and

    slope = t (x.w + b) - 1 + alpha / (2 c)
    alpha <- max(0, alpha - slope / (|x|^2 + 1 + 1 / (2 c)))

A row whose eight projected gradients are all small is left out (shrinking) until the other rows
have converged; then all rows are visited again. The iteration ends when the projected gradients of
all rows are within the tolerance, or when the number of visits reaches `max_sweeps` times the
number of rows.

The logistic loss, with margins m = t (x.w + b),

    least over w, b    (|w|^2 + b^2) / 2  +  sum c log(1 + exp(-m))

is minimised by Newton steps. A step s solves (1 + X'DX) s = -gradient, with
D = c sigma(m) sigma(-m), by conjugate gradients. The system is solved more accurately as the
gradient decreases. The step is halved until the objective decreases enough, which requires only the
margins of the rows. All eight children of a block share the passes over the rows, but each has its
own step length.

`check_csr` validates a CSR matrix once, since the other loops do not check their arguments. Numba
compiles the loops on first use and caches them on disk.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.cached_njit import cached_njit, fastmath_njit, inline_njit
from discriminant.extreme.model.compiled_simd_primitives import (
    ACTIVE,
    MOVED,
    add_scaled_row,
    dual_step,
    lanes_above,
    lowest_bit,
    prefetch,
    row_scores,
)
from discriminant.extreme.model.training_tasks import BLOCK


@fastmath_njit
def block_scores(starts: Any, places: Any, values: Any, P: Any, out: Any) -> None:
    """Set `out` (rows, 8) to x.P + bias; the bias is the last row of P (features + 1, 8)."""
    for i in range(len(out)):
        row_scores(places, values, P, starts[i], starts[i + 1], out[i])


@fastmath_njit
def add_transposed(
    starts: Any, places: Any, values: Any, R: Any, scale: Any, P: Any, out: Any
) -> None:
    """Set `out` (features + 1, 8) to P + X'(scale R), where R and scale have shape (rows, 8)."""
    for j in range(len(out)):
        for k in range(BLOCK):
            out[j, k] = P[j, k]
    step = np.empty(BLOCK, out.dtype)
    for i in range(len(R)):
        for k in range(BLOCK):
            step[k] = R[i, k] * scale[i, k]
        add_scaled_row(places, values, out, starts[i], starts[i + 1], step)


@fastmath_njit
def lane_dots(P: Any, Q: Any, total: Any) -> None:
    """Set `total` (8,) to the dot products of P and Q for each child, summed in float64."""
    for k in range(BLOCK):
        total[k] = 0.0
    for j in range(len(P)):
        for k in range(BLOCK):
            total[k] += np.float64(P[j, k]) * np.float64(Q[j, k])


@fastmath_njit
def logistic_loss(margin: Any) -> Any:
    """Return log(1 + exp(-m)), without overflow."""
    if margin > 0:
        return np.log1p(np.exp(-margin))
    return np.log1p(np.exp(margin)) - margin


@fastmath_njit
def newton(
    starts: Any,
    places: Any,
    values: Any,
    sign: Any,
    diagonal: Any,
    tolerance: Any,
    max_steps: Any,
    W: Any,
    stop: Any,
) -> int:
    """Fit W (features + 1, 8), which must be 0 initially; return the number of steps.

    G is the gradient and S the Newton step; R and P are the residual and the search direction of
    the conjugate gradients, and HP is the product of the Hessian and P. Two lower-case letters
    denote a dot product for each child, for example gg = G.G. `row_change` is the change of the
    scores of rows.
    """
    n, kind = len(sign), W.dtype
    score, row_curvature = np.zeros((n, BLOCK), kind), np.empty((n, BLOCK), kind)
    row_change, ones = np.empty((n, BLOCK), kind), np.ones((n, BLOCK), kind)
    G, S = np.empty(W.shape, kind), np.empty(W.shape, kind)
    R, P, HP = np.empty(W.shape, kind), np.empty(W.shape, kind), np.empty(W.shape, kind)
    goal, gg, rr, new_rr = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    php, beta = np.empty(BLOCK), np.empty(BLOCK)
    slope, length = np.empty(BLOCK), np.empty(BLOCK)
    negligible = 0.0
    for i in range(n):
        diag = diagonal[i, 0] if diagonal.ndim == 2 else diagonal[0]
        negligible += 1e-4 * np.finfo(kind).eps * 0.5 / diag
    for step in range(max_steps):
        for i in range(n):
            for k in range(BLOCK):
                t = kind.type(sign[i, k])
                diag = diagonal[i, k] if diagonal.ndim == 2 else diagonal[0]
                c = kind.type(0.5) / diag
                error = kind.type(1) / (kind.type(1) + np.exp(t * score[i, k]))
                row_change[i, k] = -c * t * error
                row_curvature[i, k] = c * error * (kind.type(1) - error)
        add_transposed(starts, places, values, row_change, ones, W, G)
        lane_dots(G, G, gg)
        if step == 0:
            for k in range(BLOCK):
                positives = 0
                for i in range(n):
                    positives += sign[i, k] > 0
                share = max(min(positives, n - positives), 1) / n
                goal[k] = gg[k] * (tolerance * share) ** 2
        unfinished = 0
        for k in range(BLOCK):
            unfinished += gg[k] > goal[k]
        if unfinished == 0 or stop[0]:
            return int(step)
        for j in range(len(W)):
            for k in range(BLOCK):
                S[j, k] = 0
                R[j, k] = -G[j, k]
                P[j, k] = R[j, k]
        for k in range(BLOCK):
            rr[k] = gg[k]
        for _ in range(len(W) + 10):
            active = 0
            for k in range(BLOCK):
                forcing = min(0.1, np.sqrt(gg[k]) / (1.0 + np.sqrt(gg[k])))
                active += gg[k] > goal[k] and rr[k] > forcing * forcing * gg[k]
            if active == 0:
                break
            block_scores(starts, places, values, P, row_change)
            add_transposed(starts, places, values, row_change, row_curvature, P, HP)
            lane_dots(P, HP, php)
            for k in range(BLOCK):
                forcing = min(0.1, np.sqrt(gg[k]) / (1.0 + np.sqrt(gg[k])))
                is_active = gg[k] > goal[k] and rr[k] > forcing * forcing * gg[k]
                length[k] = rr[k] / php[k] if is_active and php[k] > 0 else 0.0
            for j in range(len(W)):
                for k in range(BLOCK):
                    S[j, k] += kind.type(length[k]) * P[j, k]
                    R[j, k] -= kind.type(length[k]) * HP[j, k]
            lane_dots(R, R, new_rr)
            for k in range(BLOCK):
                beta[k] = new_rr[k] / rr[k] if length[k] > 0 else 0.0
                rr[k] = new_rr[k] if length[k] > 0 else rr[k]
            for j in range(len(W)):
                for k in range(BLOCK):
                    P[j, k] = R[j, k] + kind.type(beta[k]) * P[j, k]
        block_scores(starts, places, values, S, row_change)
        line_search(score, row_change, sign, diagonal, W, G, S, length)
        lane_dots(G, S, slope)
        unfinished = 0
        for k in range(BLOCK):
            unfinished += -slope[k] > negligible and length[k] > 0
        for j in range(len(W)):
            for k in range(BLOCK):
                W[j, k] += kind.type(length[k]) * S[j, k]
        for i in range(n):
            for k in range(BLOCK):
                score[i, k] += kind.type(length[k]) * row_change[i, k]
        if unfinished == 0:  # a further gain would be below the rounding error of the objective
            return int(step)
    return int(max_steps)


@fastmath_njit
def line_search(
    score: Any,
    row_change: Any,
    sign: Any,
    diagonal: Any,
    W: Any,
    G: Any,
    S: Any,
    length: Any,
) -> None:
    """Set `length` (8,) to the step length of each child.

    The step length is the first of the numbers 1, 1/2, 1/4 and so on for which the objective
    decreases enough.
    """
    descent, cross, square = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    lane_dots(G, S, descent)
    lane_dots(W, S, cross)
    lane_dots(S, S, square)
    for k in range(BLOCK):
        length[k] = 0.0
        if descent[k] < 0:
            trial, change = 2.0, 0.0
            for _ in range(30):
                trial /= 2
                change = trial * cross[k] + 0.5 * trial * trial * square[k]
                for i in range(len(sign)):
                    t = np.float64(sign[i, k])
                    diag = diagonal[i, k] if diagonal.ndim == 2 else diagonal[0]
                    old = t * np.float64(score[i, k])
                    new = old + trial * t * np.float64(row_change[i, k])
                    change += 0.5 / diag * (logistic_loss(new) - logistic_loss(old))
                if change <= 1e-4 * trial * descent[k]:
                    length[k] = trial
                    break


# return values of `check_csr`
VALID, BAD_POINTERS, TOO_SHORT, BAD_COLUMNS, NOT_FINITE = 0, 1, 2, 3, 4


@cached_njit
def check_csr(starts: Any, places: Any, values: Any, size: int, n: int, width: int) -> int:
    """Validate a CSR matrix (n, width) of `size` values; return a code defined in this module.

    If `values` is empty, the values are not checked.
    """
    if len(starts) != n + 1 or starts[0] != 0:
        return BAD_POINTERS
    for i in range(n):
        if starts[i + 1] < starts[i]:
            return BAD_POINTERS
    if starts[n] > len(places) or starts[n] > size:
        return TOO_SHORT
    for place in places[: starts[n]]:
        if place < 0 or place >= width:
            return BAD_COLUMNS
    for value in values[: starts[n]]:
        if not np.isfinite(value):
            return NOT_FINITE
    return VALID


_CACHE_BYTES = 1 << 15  # size in bytes of weights that fit into the first-level cache
# how many rows ahead the entries of a row, and their weights, are prefetched
_FETCH_ROW, _FETCH_WEIGHTS = 8, 3


@fastmath_njit
def xorshift(state: Any) -> Any:
    """Return the next 64-bit pseudo-random number (Marsaglia's xorshift)."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@fastmath_njit
def coordinate_descent(
    starts: Any,
    places: Any,
    values: Any,
    square: Any,
    sign: Any,
    diagonal: Any,
    tolerance: Any,
    max_sweeps: Any,
    W: Any,
    alpha: Any,
    order: Any,
    seed: Any,
    stop: Any,
) -> int:
    """Fit weights and biases W (features + 1, 8) of a block; return the number of rows visited.

    `diagonal` is 1 / (2 c): one number for all, or (rows, 8).
    """
    n, zero = len(square), square.dtype.type(0)
    step, bounds = np.empty(BLOCK, square.dtype), np.empty((2, BLOCK), square.dtype)
    active_limit, min_step = tolerance / 2, tolerance * square.dtype.type(1e-6)
    state, visits, m = np.uint64(seed), 0, n
    is_large = W.nbytes > _CACHE_BYTES
    for i in range(n):
        order[i] = i
    while visits // n < max_sweeps:
        if stop[0]:
            break
        bounds[0], bounds[1] = -np.inf, np.inf
        for s in range(m - 1, 0, -1):
            state = xorshift(state)
            other = np.int64(((state >> np.uint64(32)) * np.uint64(s + 1)) >> np.uint64(32))
            order[s], order[other] = order[other], order[s]
        visits += m
        active = 0
        for s in range(m):
            if is_large:
                _prefetch_rows(starts, places, values, alpha, sign, W, order, s, m)
            i = order[s]
            first, last = starts[i], starts[i + 1]
            row_scores(places, values, W, first, last, step)
            flags = dual_step(
                sign, alpha, diagonal, i, square[i], min_step, active_limit, step, bounds
            )
            if flags & MOVED:
                add_scaled_row(places, values, W, first, last, step)
            if flags & ACTIVE:
                order[s], order[active] = order[active], i
                active += 1
        violation = zero
        for k in range(BLOCK):
            violation = max(violation, bounds[0, k] - bounds[1, k])
        if violation <= tolerance:
            if m == n:
                break
            m = n
        else:
            m = max(active, 1)
    return visits


@inline_njit
def _prefetch_rows(
    starts: Any,
    places: Any,
    values: Any,
    alpha: Any,
    sign: Any,
    W: Any,
    order: Any,
    s: int,
    m: int,
) -> None:
    """Prefetch the next rows: first the entries of a row, then the weights of its features."""
    if s + _FETCH_ROW < m:
        far = order[s + _FETCH_ROW]
        prefetch(places, starts[far])
        prefetch(values, starts[far])
        prefetch(alpha, far)
        prefetch(sign, far)
    if s + _FETCH_WEIGHTS < m:
        near = order[s + _FETCH_WEIGHTS]
        for p in range(starts[near], starts[near + 1]):
            prefetch(W, places[p])


@fastmath_njit
def gather_rows(
    starts: Any,
    places: Any,
    values: Any,
    members: Any,
    local_of: Any,
    place_of: Any,
    used: Any,
    square: Any,
) -> tuple[Any, Any, Any, Any]:
    """Gather the rows of a node, with features renumbered by first appearance, and these features.

    Initially, `local_of` (d,) and `place_of` (N,) must contain -1, and `used` (d / 64,) must
    contain 0. This function fills these arrays, and `scatter_weights` resets them. `square` (rows,)
    is filled with |x|^2.
    """
    n, total = len(members), 0
    for i in range(n):
        total += starts[members[i] + 1] - starts[members[i]]
    begin, local = np.empty(n + 1, np.int64), np.empty(total, np.int32)
    value, feature = np.empty(total, square.dtype), np.empty(total, np.int32)
    t, n_features = 0, 0
    begin[0] = 0
    for i in range(n):
        row = members[i]
        place_of[row] = i
        length = square.dtype.type(0)
        for p in range(starts[row], starts[row + 1]):
            f = places[p]
            if local_of[f] < 0:
                local_of[f] = n_features
                used[f >> 6] |= np.uint64(1) << np.uint64(f & 63)
                feature[n_features] = f
                n_features += 1
            x = square.dtype.type(values[p])
            local[t], value[t] = local_of[f], x
            length += x * x
            t += 1
        begin[i + 1], square[i] = t, length
    return begin, local, value, feature[:n_features]


@fastmath_njit
def grow(old: Any, size: Any) -> Any:
    """Return a larger array that begins with a copy of `old`."""
    new = np.empty(size, old.dtype)
    for i in range(len(old)):
        new[i] = old[i]
    return new


@fastmath_njit
def reset(W: Any, alpha: Any, sign: Any) -> None:
    """Set all weights and dual variables to 0 and all signs to negative."""
    for j in range(len(W)):
        for k in range(BLOCK):
            W[j, k] = 0
    for i in range(len(alpha)):
        for k in range(BLOCK):
            alpha[i, k], sign[i, k] = 0, -1


@fastmath_njit
def fill_diagonal(
    diagonal: Any,
    row_diagonal: Any,
    offsets: Any,
    positives: Any,
    positive_weight: Any,
    place_of: Any,
    children: Any,
) -> None:
    """Fill `diagonal` (rows, 8) with 1 / (2 c), where c is the cost of a row for a child.

    For the positive rows of a child, the cost is multiplied by their weight as positives.
    """
    for i in range(len(diagonal)):
        for k in range(BLOCK):
            diagonal[i, k] = row_diagonal[i]
    for k in range(BLOCK):
        for p in range(offsets[children[k]], offsets[children[k] + 1]):
            diagonal[place_of[positives[p]], k] /= positive_weight[p]


@fastmath_njit
def solve_children(
    begin: Any,
    local: Any,
    value: Any,
    square: Any,
    width: Any,
    offsets: Any,
    positives: Any,
    positive_weight: Any,
    place_of: Any,
    row_diagonal: Any,
    diagonal: Any,
    logistic: Any,
    tolerance: Any,
    max_sweeps: Any,
    threshold: Any,
    seeds: Any,
    stop: Any,
) -> tuple[Any, Any, Any, Any, Any]:
    """Train children; the positive rows of child k are positives[offsets[k] : offsets[k + 1]].

    `diagonal` is 1 / (2 c): one number for all rows, or an array (rows, 8) that is filled here from
    `row_diagonal` (rows,) and the weights of the positives. `logistic` is None for the squared
    hinge, and a number for the logistic loss. Only weights above the threshold are returned. The
    return values are the number of weights of each local feature; for each weight, in the order of
    blocks, the local feature, the child and the value; and the biases.
    """
    K, n = len(offsets) - 1, len(square)
    W, alpha = np.empty((width + 1, BLOCK), square.dtype), np.empty((n, BLOCK), square.dtype)
    sign, order = np.empty((n, BLOCK), np.int8), np.empty(n, np.int32)
    count, bias = np.zeros(width, np.int32), np.empty(K, square.dtype)
    capacity, size = 1024, 0
    local_feature, child = np.empty(capacity, np.int32), np.empty(capacity, np.uint16)
    weight = np.empty(capacity, square.dtype)
    children = np.empty(BLOCK, np.int64)
    for first in range(0, K, BLOCK):
        lanes = min(BLOCK, K - first)
        reset(W, alpha, sign)
        for k in range(BLOCK):
            # a vector has a place (lane) for each of BLOCK children; a lane without a child repeats
            # the first child, so that it needs no additional sweeps
            children[k] = first + k if k < lanes else first
            for p in range(offsets[children[k]], offsets[children[k] + 1]):
                sign[place_of[positives[p]], k] = 1
        if diagonal.ndim == 2:
            fill_diagonal(
                diagonal, row_diagonal, offsets, positives, positive_weight, place_of, children
            )
        if logistic is None:
            seed = seeds[first // BLOCK]
            coordinate_descent(
                begin, local, value, square, sign, diagonal, tolerance, max_sweeps, W, alpha,
                order, seed, stop,
            )  # fmt: skip
        else:
            newton(begin, local, value, sign, diagonal, tolerance, max_sweeps, W, stop)
        lane_mask = np.uint64((1 << lanes) - 1)
        for j in range(width):
            bits = lanes_above(W, j, threshold) & lane_mask
            if bits and size + BLOCK > capacity:
                capacity *= 2
                local_feature, child = grow(local_feature, capacity), grow(child, capacity)
                weight = grow(weight, capacity)
            while bits:
                lane = lowest_bit(bits)
                local_feature[size], child[size], weight[size] = j, children[lane], W[j, lane]
                count[j] += 1
                size += 1
                bits &= bits - np.uint64(1)
        for k in range(lanes):
            bias[children[k]] = W[width, k]
    return count, local_feature[:size], child[:size], weight[:size], bias


@fastmath_njit
def scatter_weights(
    count: Any,
    local_feature: Any,
    child: Any,
    weight: Any,
    members: Any,
    local_of: Any,
    place_of: Any,
    used: Any,
) -> tuple[Any, Any, Any, Any]:
    """Assemble a chunk from the weights, and reset the work arrays.

    The chunk consists of its sorted features, the number of entries of each feature, and the
    entries.
    """
    rows = 0
    for j in range(len(count)):
        rows += count[j] > 0
    feature, counts = np.empty(rows, np.int32), np.empty(rows, np.int32)
    target, n_rows, n_entries = np.empty(len(count), np.int64), 0, 0
    for word in range(len(used)):
        bits, f = used[word], word << 6
        while bits:
            if bits & np.uint64(1):
                j = local_of[f]
                target[j] = n_entries
                if count[j] > 0:
                    feature[n_rows], counts[n_rows] = f, count[j]
                    n_entries += count[j]
                    n_rows += 1
                local_of[f] = -1
            bits >>= np.uint64(1)
            f += 1
        used[word] = 0
    for row in members:
        place_of[row] = -1
    children, weights = np.empty_like(child), np.empty_like(weight)
    for q in range(len(local_feature)):
        z = target[local_feature[q]]
        children[z], weights[z] = child[q], weight[q]
        target[local_feature[q]] = z + 1
    return feature, counts, children, weights
