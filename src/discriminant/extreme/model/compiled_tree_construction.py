"""Compiled loops that build a label tree: balanced bisection and spherical k-means.

Numba compiles the loops on first use and caches them on disk.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.cached_njit import fastmath_njit
from discriminant.extreme.model.compiled_train import xorshift


@fastmath_njit
def select_rank(values: Any, rank: Any) -> Any:
    """Return the value with a given rank, from 0 (Hoare's quickselect); `values` is reordered."""
    low, high = 0, len(values) - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return values[rank]


@fastmath_njit
def bisect_labels(
    starts: Any,
    places: Any,
    values: Any,
    labels: Any,
    first: Any,
    centre: Any,
    rounds: Any,
    seed: Any,
) -> int:
    """Divide labels by spherical 2-means into two clusters, the first of size `first`.

    Each label is represented by a vector x of length one, a row of the CSR matrix; `labels` holds
    row numbers. In each round, the score of a label is x.(c2 / |c2| - c1 / |c1|), where c1 and c2
    are the sums of the clusters, and the labels with the lowest scores form the first cluster. The
    sums are then updated for the labels that changed cluster; the iteration ends when no label
    changes cluster. Finally, `labels` begins with the first cluster; the order within each cluster
    is unchanged. `centre` (d, 2) must be 0 and is reset to 0. Returns the number of rounds.
    """
    n = len(labels)
    cluster, score = np.empty(n, np.int8), np.empty(n, values.dtype)
    permuted, original = np.empty(n, values.dtype), np.empty(n, labels.dtype)
    for j in range(n):
        cluster[j], original[j] = -1, labels[j]
    squares = np.ones(2)
    state = xorshift(xorshift(np.uint64(seed)))
    first_seed = np.int64(state % np.uint64(n))
    state = xorshift(state)
    second_seed = (first_seed + 1 + np.int64(state % np.uint64(n - 1))) % n
    for c in range(2):
        label = labels[first_seed if c == 0 else second_seed]
        for p in range(starts[label], starts[label + 1]):
            centre[places[p], c] += values[p]
    rounds_done = 0
    for round_number in range(rounds):
        r0 = values.dtype.type(1.0 / np.sqrt(max(squares[0], 1e-12)))
        r1 = values.dtype.type(1.0 / np.sqrt(max(squares[1], 1e-12)))
        for j in range(n):
            s0, s1 = values.dtype.type(0), values.dtype.type(0)
            for p in range(starts[labels[j]], starts[labels[j] + 1]):
                s0 += centre[places[p], 0] * values[p]
                s1 += centre[places[p], 1] * values[p]
            score[j] = s1 * r1 - s0 * r0
            permuted[j] = score[j]
        cut = select_rank(permuted, first - 1)
        ties = first
        for j in range(n):
            ties -= score[j] < cut
        if round_number == 0:
            for c in range(2):
                label = labels[first_seed if c == 0 else second_seed]
                for p in range(starts[label], starts[label + 1]):
                    centre[places[p], c] = 0
                squares[c] = 0.0
        n_moved = 0
        for j in range(n):
            new = 0 if score[j] < cut else 1
            if score[j] == cut and ties > 0:
                new = 0
                ties -= 1
            old = cluster[j]
            if new != old:
                n_moved += 1
                cluster[j] = new
                gain, loss, square = 0.0, 0.0, 0.0
                for p in range(starts[labels[j]], starts[labels[j] + 1]):
                    f, x = places[p], values[p]
                    square += x * x
                    gain += centre[f, new] * x
                    centre[f, new] += x
                    if old >= 0:
                        loss += centre[f, old] * x
                        centre[f, old] -= x
                squares[new] += 2 * gain + square
                if old >= 0:
                    squares[old] += square - 2 * loss
        rounds_done = round_number + 1
        if n_moved == 0:
            break
    for j in range(n):
        for p in range(starts[labels[j]], starts[labels[j] + 1]):
            centre[places[p], 0] = 0
            centre[places[p], 1] = 0
    at, second_at = 0, first
    for j in range(n):
        if cluster[j] == 0:
            labels[at] = original[j]
            at += 1
        else:
            labels[second_at] = original[j]
            second_at += 1
    return rounds_done


@fastmath_njit
def assign_nearest(
    starts: Any,
    places: Any,
    values: Any,
    labels: Any,
    centre: Any,
    local_of: Any,
    is_open: Any,
    code: Any,
    score: Any,
) -> None:
    """Assign each label to the open centre with the largest cosine similarity.

    The vector of label `labels[j]`, of length one, is row `labels[j]` of the CSR matrix `starts`,
    `places`, `values`. The centres are the columns of `centre` (features, k); `local_of` (d,) maps
    a feature to its row of `centre`. A centre is open if `is_open` (k,) is True. Fills `code` with
    the index of the centre, and `score` with the cosine.
    """
    k = centre.shape[1]
    cosine = np.empty(k, values.dtype)
    for j in range(len(labels)):
        for c in range(k):
            cosine[c] = 0
        for p in range(starts[labels[j]], starts[labels[j] + 1]):
            f, x = local_of[places[p]], values[p]
            for c in range(k):
                cosine[c] += x * centre[f, c]
        best = -1
        for c in range(k):
            if is_open[c] and (best < 0 or cosine[c] > cosine[best]):
                best = c
        code[j], score[j] = best, cosine[best]


@fastmath_njit
def update_centres(
    starts: Any, places: Any, values: Any, labels: Any, code: Any, local_of: Any, centre: Any
) -> None:
    """Fill `centre` (features, k) with the sums of the clusters' vectors, scaled to length one."""
    d, k = centre.shape
    for j in range(d):
        for c in range(k):
            centre[j, c] = 0
    for j in range(len(labels)):
        for p in range(starts[labels[j]], starts[labels[j] + 1]):
            centre[local_of[places[p]], code[j]] += values[p]
    length = np.zeros(k)
    for j in range(d):
        for c in range(k):
            length[c] += np.float64(centre[j, c]) ** 2
    for c in range(k):
        length[c] = 1.0 / np.sqrt(length[c]) if length[c] > 0 else 0.0
    for j in range(d):
        for c in range(k):
            centre[j, c] *= length[c]
