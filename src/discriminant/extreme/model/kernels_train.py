"""Compiled kernels that train the classifiers of a node, eight children at a time.

The children of a node share its rows, so memory access is shared too: children are solved in blocks
of eight, W[feature] holds the weights of all eight side by side, and one step of coordinate descent
updates eight dual variables (`kernels_simd`). For child k of a block, with t = +-1 and cost c, the
squared hinge

    least over w, b    (|w|^2 + b^2) / 2  +  sum c max(0, 1 - t (x.w + b))^2

is solved in the dual (Hsieh et al. 2008): alpha >= 0, w = sum alpha t x, b = sum alpha t, and

    slope = t (x.w + b) - 1 + alpha / (2 c)
    alpha <- max(0, alpha - slope / (|x|^2 + 1 + 1 / (2 c)))

A row whose projected gradients are all small is left out (shrinking) until the others have
converged; then all rows are visited again. The solution is final when the projected gradients of
all rows lie within the tolerance, or after as many visits as `max_sweeps` passes over all rows.

The logistic loss, with margins m = t (x.w + b),

    least over w, b    (|w|^2 + b^2) / 2  +  sum c log(1 + exp(-m))

is minimised by Newton steps. A step solves (1 + X'DX) s = -gradient, D = c sigma(m) sigma(-m), by
conjugate gradients, more accurately as the gradient falls; it is halved until the objective falls
enough, which needs only the margins of the rows. All eight children share each pass over the rows
and have their own step lengths.

`check_csr` validates a CSR matrix once, since the other kernels check nothing. Numba compiles the
kernels on first use and caches them on disk.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.extreme.model.kernels_simd import (
    ACTIVE,
    MOVED,
    add_scaled_row,
    dual_step,
    lanes_above,
    lowest_bit,
    prefetch,
    row_scores,
)
from discriminant.extreme.model.tasks import BLOCK
from discriminant.numba_cache import cached_njit, fastmath_njit, inline_njit


@fastmath_njit
def block_scores(starts: Any, places: Any, values: Any, P: Any, out: Any) -> None:
    """out (rows, 8) = x.P + the bias of P (features + 1, 8)."""
    for i in range(len(out)):
        row_scores(places, values, P, starts[i], starts[i + 1], out[i])


@fastmath_njit
def add_transposed(
    starts: Any, places: Any, values: Any, R: Any, scale: Any, P: Any, out: Any
) -> None:
    """out (features + 1, 8) = P + X'(scale R), with R and scale (rows, 8)."""
    for j in range(len(out)):
        for k in range(BLOCK):
            out[j, k] = P[j, k]
    pull = np.empty(BLOCK, out.dtype)
    for i in range(len(R)):
        for k in range(BLOCK):
            pull[k] = R[i, k] * scale[i, k]
        add_scaled_row(places, values, out, starts[i], starts[i + 1], pull)


@fastmath_njit
def lane_dots(P: Any, Q: Any, total: Any) -> None:
    """total (8,) = P.Q of each child, summed in float64."""
    for k in range(BLOCK):
        total[k] = 0.0
    for j in range(len(P)):
        for k in range(BLOCK):
            total[k] += np.float64(P[j, k]) * np.float64(Q[j, k])


@fastmath_njit
def logistic_loss(margin: Any) -> Any:
    """log(1 + exp(-m)), without overflow."""
    if margin > 0:
        return np.log1p(np.exp(-margin))
    return np.log1p(np.exp(margin)) - margin


@fastmath_njit
def newton(
    starts: Any,
    places: Any,
    values: Any,
    sign: Any,
    half: Any,
    tolerance: Any,
    most: Any,
    W: Any,
    stop: Any,
) -> int:
    """Fit W (features + 1, 8), which must be 0 on entry; return the number of steps."""
    n, kind = len(sign), W.dtype
    score, curve = np.zeros((n, BLOCK), kind), np.empty((n, BLOCK), kind)
    move, one = np.empty((n, BLOCK), kind), np.ones((n, BLOCK), kind)
    slope, way = np.empty(W.shape, kind), np.empty(W.shape, kind)
    rest, turn, image = np.empty(W.shape, kind), np.empty(W.shape, kind), np.empty(W.shape, kind)
    goal, steep, was, now = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    bent, length = np.empty(BLOCK), np.empty(BLOCK)
    still = 0.0
    for i in range(n):
        still += 1e-4 * np.finfo(kind).eps * 0.5 / (half[i, 0] if half.ndim == 2 else half[0])
    for step in range(most):
        for i in range(n):
            for k in range(BLOCK):
                t = kind.type(sign[i, k])
                lean = half[i, k] if half.ndim == 2 else half[0]
                c = kind.type(0.5) / lean
                miss = kind.type(1) / (kind.type(1) + np.exp(t * score[i, k]))
                move[i, k] = -c * t * miss
                curve[i, k] = c * miss * (kind.type(1) - miss)
        add_transposed(starts, places, values, move, one, W, slope)
        lane_dots(slope, slope, steep)
        if step == 0:
            for k in range(BLOCK):
                positive = 0
                for i in range(n):
                    positive += sign[i, k] > 0
                share = max(min(positive, n - positive), 1) / n
                goal[k] = steep[k] * (tolerance * share) ** 2
        going = 0
        for k in range(BLOCK):
            going += steep[k] > goal[k]
        if going == 0 or stop[0]:
            return int(step)
        for j in range(len(W)):
            for k in range(BLOCK):
                way[j, k] = 0
                rest[j, k] = -slope[j, k]
                turn[j, k] = rest[j, k]
        for k in range(BLOCK):
            was[k] = steep[k]
        for _ in range(len(W) + 10):
            active = 0
            for k in range(BLOCK):
                near = min(0.1, np.sqrt(steep[k]) / (1.0 + np.sqrt(steep[k])))
                active += steep[k] > goal[k] and was[k] > near * near * steep[k]
            if active == 0:
                break
            block_scores(starts, places, values, turn, move)
            add_transposed(starts, places, values, move, curve, turn, image)
            lane_dots(turn, image, bent)
            for k in range(BLOCK):
                near = min(0.1, np.sqrt(steep[k]) / (1.0 + np.sqrt(steep[k])))
                runs = steep[k] > goal[k] and was[k] > near * near * steep[k]
                length[k] = was[k] / bent[k] if runs and bent[k] > 0 else 0.0
            for j in range(len(W)):
                for k in range(BLOCK):
                    way[j, k] += kind.type(length[k]) * turn[j, k]
                    rest[j, k] -= kind.type(length[k]) * image[j, k]
            lane_dots(rest, rest, now)
            for k in range(BLOCK):
                bent[k] = now[k] / was[k] if length[k] > 0 else 0.0
                was[k] = now[k] if length[k] > 0 else was[k]
            for j in range(len(W)):
                for k in range(BLOCK):
                    turn[j, k] = rest[j, k] + kind.type(bent[k]) * turn[j, k]
        block_scores(starts, places, values, way, move)
        line_search(score, move, sign, half, W, slope, way, length)
        lane_dots(slope, way, bent)
        going = 0
        for k in range(BLOCK):
            going += -bent[k] > still and length[k] > 0
        for j in range(len(W)):
            for k in range(BLOCK):
                W[j, k] += kind.type(length[k]) * way[j, k]
        for i in range(n):
            for k in range(BLOCK):
                score[i, k] += kind.type(length[k]) * move[i, k]
        if going == 0:  # any further gain is below the rounding error of the objective
            return int(step)
    return int(most)


@fastmath_njit
def line_search(
    score: Any, move: Any, sign: Any, half: Any, W: Any, slope: Any, way: Any, length: Any
) -> None:
    """Set length (8,) of each child's step: 1, 1/2, 1/4, .. until the objective falls enough."""
    down, cross, square = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    lane_dots(slope, way, down)
    lane_dots(W, way, cross)
    lane_dots(way, way, square)
    for k in range(BLOCK):
        length[k] = 0.0
        if down[k] < 0:
            trial, fell = 2.0, 0.0
            for _ in range(30):
                trial /= 2
                fell = trial * cross[k] + 0.5 * trial * trial * square[k]
                for i in range(len(sign)):
                    t = np.float64(sign[i, k])
                    lean = half[i, k] if half.ndim == 2 else half[0]
                    old = t * np.float64(score[i, k])
                    new = old + trial * t * np.float64(move[i, k])
                    fell += 0.5 / lean * (logistic_loss(new) - logistic_loss(old))
                if fell <= 1e-4 * trial * down[k]:
                    length[k] = trial
                    break


VALID, BAD_POINTERS, TOO_SHORT, BAD_COLUMNS, NOT_FINITE = 0, 1, 2, 3, 4  # results of check_csr


@cached_njit
def check_csr(starts: Any, places: Any, values: Any, size: int, n: int, width: int) -> int:
    """Validate (n, width) rows of `size` values; `values` may be empty."""
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


_NEAR = 1 << 15  # bytes of weights that fit the first-level cache
_LATER, _SOON = 8, 3  # rows ahead whose entries, and whose weights, are prefetched


@fastmath_njit
def xorshift(state: Any) -> Any:
    """Next 64-bit pseudo-random number (Marsaglia's xorshift)."""
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
    half: Any,
    tolerance: Any,
    sweeps: Any,
    W: Any,
    alpha: Any,
    order: Any,
    seed: Any,
    stop: Any,
) -> int:
    """Fit W (features + 1, 8) of one block, the bias last; return the number of rows visited.

    `half` is 1 / (2 c): one number for all, or (rows, 8).
    """
    n, zero = len(square), square.dtype.type(0)
    step, bounds = np.empty(BLOCK, square.dtype), np.empty((2, BLOCK), square.dtype)
    rest, tiny = tolerance / 2, tolerance * square.dtype.type(1e-6)
    state, visits, m = np.uint64(seed), 0, n
    far = W.nbytes > _NEAR
    for i in range(n):
        order[i] = i
    while visits // n < sweeps:
        if stop[0]:
            break
        bounds[0], bounds[1] = -np.inf, np.inf
        for s in range(m - 1, 0, -1):
            state = xorshift(state)
            other = np.int64(((state >> np.uint64(32)) * np.uint64(s + 1)) >> np.uint64(32))
            order[s], order[other] = order[other], order[s]
        visits += m
        kept = 0
        for s in range(m):
            if far:
                _fetch(starts, places, values, alpha, sign, W, order, s, m)
            i = order[s]
            first, beyond = starts[i], starts[i + 1]
            row_scores(places, values, W, first, beyond, step)
            told = dual_step(sign, alpha, half, i, square[i], tiny, rest, step, bounds)
            if told & MOVED:
                add_scaled_row(places, values, W, first, beyond, step)
            if told & ACTIVE:
                order[s], order[kept] = order[kept], i
                kept += 1
        spread = zero
        for k in range(BLOCK):
            spread = max(spread, bounds[0, k] - bounds[1, k])
        if spread <= tolerance:
            if m == n:
                break
            m = n
        else:
            m = max(kept, 1)
    return visits


@inline_njit
def _fetch(
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
    """Prefetch the next rows: first a row, then the weights of its features."""
    if s + _LATER < m:
        later = order[s + _LATER]
        prefetch(places, starts[later])
        prefetch(values, starts[later])
        prefetch(alpha, later)
        prefetch(sign, later)
    if s + _SOON < m:
        soon = order[s + _SOON]
        for p in range(starts[soon], starts[soon + 1]):
            prefetch(W, places[p])


@fastmath_njit
def gather_rows(
    starts: Any,
    places: Any,
    values: Any,
    members: Any,
    local_of: Any,
    place_of: Any,
    seen: Any,
    square: Any,
) -> tuple[Any, Any, Any, Any]:
    """Copy the rows of a node, its features renumbered in order of appearance; also the features.

    On entry `local_of` (d,) and `place_of` (N,) are -1 and `seen` (d / 64,) is 0; they are filled,
    and `scatter_weights` resets them. `square` (rows,) is filled with |x|^2.
    """
    n, total = len(members), 0
    for i in range(n):
        total += starts[members[i] + 1] - starts[members[i]]
    begin, local = np.empty(n + 1, np.int64), np.empty(total, np.int32)
    value, feature = np.empty(total, square.dtype), np.empty(total, np.int32)
    t, width = 0, 0
    begin[0] = 0
    for i in range(n):
        row = members[i]
        place_of[row] = i
        length = square.dtype.type(0)
        for p in range(starts[row], starts[row + 1]):
            f = places[p]
            if local_of[f] < 0:
                local_of[f] = width
                seen[f >> 6] |= np.uint64(1) << np.uint64(f & 63)
                feature[width] = f
                width += 1
            x = square.dtype.type(values[p])
            local[t], value[t] = local_of[f], x
            length += x * x
            t += 1
        begin[i + 1], square[i] = t, length
    return begin, local, value, feature[:width]


@fastmath_njit
def grow(old: Any, size: Any) -> Any:
    """Copy an array into a larger one."""
    new = np.empty(size, old.dtype)
    for i in range(len(old)):
        new[i] = old[i]
    return new


@fastmath_njit
def reset(W: Any, alpha: Any, sign: Any) -> None:
    """Set weights and duals to 0 and all rows to negative."""
    for j in range(len(W)):
        for k in range(BLOCK):
            W[j, k] = 0
    for i in range(len(alpha)):
        for k in range(BLOCK):
            alpha[i, k], sign[i, k] = 0, -1


@fastmath_njit
def fill_inverse_costs(
    half: Any,
    row_half: Any,
    lists: Any,
    listed: Any,
    listed_weight: Any,
    place_of: Any,
    served: Any,
) -> None:
    """Fill 1 / (2 c) of each row for each child of a block, `served` (8,)."""
    for i in range(len(half)):
        for k in range(BLOCK):
            half[i, k] = row_half[i]
    for k in range(BLOCK):
        for p in range(lists[served[k]], lists[served[k] + 1]):
            half[place_of[listed[p]], k] /= listed_weight[p]


@fastmath_njit
def solve_children(
    begin: Any,
    local: Any,
    value: Any,
    square: Any,
    width: Any,
    lists: Any,
    listed: Any,
    listed_weight: Any,
    place_of: Any,
    row_half: Any,
    half: Any,
    curved: Any,
    tolerance: Any,
    sweeps: Any,
    threshold: Any,
    seeds: Any,
    stop: Any,
) -> tuple[Any, Any, Any, Any, Any]:
    """Train the children whose positives are listed[lists[k] : lists[k + 1]].

    `half` is 1 / (2 c), one for all; or (rows, 8), filled from `row_half` (rows,) and the weights
    of positives. `curved` is None for the squared hinge, a number for the logistic loss. Returns
    the number of weights above the threshold of each local feature; local feature, child and value
    of each such weight, in the order of blocks; and the biases.
    """
    K, n = len(lists) - 1, len(square)
    W, alpha = np.empty((width + 1, BLOCK), square.dtype), np.empty((n, BLOCK), square.dtype)
    sign, order = np.empty((n, BLOCK), np.int8), np.empty(n, np.int32)
    count, bias = np.zeros(width, np.int32), np.empty(K, square.dtype)
    room, size = 1024, 0
    at, child = np.empty(room, np.int32), np.empty(room, np.uint16)
    weight = np.empty(room, square.dtype)
    served = np.empty(BLOCK, np.int64)
    for first in range(0, K, BLOCK):
        lanes = min(BLOCK, K - first)
        reset(W, alpha, sign)
        for k in range(BLOCK):
            # A lane without a child repeats the first, so it needs no sweeps of its own.
            served[k] = first + k if k < lanes else first
            for p in range(lists[served[k]], lists[served[k] + 1]):
                sign[place_of[listed[p]], k] = 1
        if half.ndim == 2:
            fill_inverse_costs(half, row_half, lists, listed, listed_weight, place_of, served)
        if curved is None:
            seed = seeds[first // BLOCK]
            coordinate_descent(
                begin,
                local,
                value,
                square,
                sign,
                half,
                tolerance,
                sweeps,
                W,
                alpha,
                order,
                seed,
                stop,
            )
        else:
            newton(begin, local, value, sign, half, tolerance, sweeps, W, stop)
        asked = np.uint64((1 << lanes) - 1)
        for j in range(width):
            bits = lanes_above(W, j, threshold) & asked
            if bits and size + BLOCK > room:
                room *= 2
                at, child = grow(at, room), grow(child, room)
                weight = grow(weight, room)
            while bits:
                lane = lowest_bit(bits)
                at[size], child[size], weight[size] = j, served[lane], W[j, lane]
                count[j] += 1
                size += 1
                bits &= bits - np.uint64(1)
        for k in range(lanes):
            bias[served[k]] = W[width, k]
    return count, at[:size], child[:size], weight[:size], bias


@fastmath_njit
def scatter_weights(
    count: Any,
    at: Any,
    child: Any,
    weight: Any,
    members: Any,
    local_of: Any,
    place_of: Any,
    seen: Any,
) -> tuple[Any, Any, Any, Any]:
    """Return a chunk (sorted features, entries of each, the entries); reset the scratch arrays."""
    rows = 0
    for j in range(len(count)):
        rows += count[j] > 0
    feature, number = np.empty(rows, np.int32), np.empty(rows, np.int32)
    to, r, e = np.empty(len(count), np.int64), 0, 0
    for word in range(len(seen)):
        bits, f = seen[word], word << 6
        while bits:
            if bits & np.uint64(1):
                j = local_of[f]
                to[j] = e
                if count[j] > 0:
                    feature[r], number[r] = f, count[j]
                    e += count[j]
                    r += 1
                local_of[f] = -1
            bits >>= np.uint64(1)
            f += 1
        seen[word] = 0
    for row in members:
        place_of[row] = -1
    children, weights = np.empty_like(child), np.empty_like(weight)
    for q in range(len(at)):
        z = to[at[q]]
        children[z], weights[z] = child[q], weight[q]
        to[at[q]] = z + 1
    return feature, number, children, weights
