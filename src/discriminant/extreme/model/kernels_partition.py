"""Compiled kernels that build a label tree: balanced bisection and spherical k-means.

Numba compiles them on first use and caches them on disk.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.extreme.model.kernels_train import xorshift
from discriminant.numba_cache import fastmath_njit


@fastmath_njit
def select_rank(values: Any, rank: Any) -> Any:
    """Return the value at a rank, from 0; permutes `values` (Hoare's quickselect)."""
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
    """Spherical 2-means of the unit rows `labels` with a first cluster of given size `first`.

    Each round scores a label by x.(c2 / |c2| - c1 / |c1|), where c are the sums of the clusters;
    the `first` lowest scores form the first cluster. The sums are updated by the labels that move,
    and the iteration ends when none does. On return `labels` has the first cluster in front, each
    cluster in its former order. `centre` (d, 2) must be 0 and is reset to 0. Returns the number of
    rounds.
    """
    n = len(labels)
    side, score = np.empty(n, np.int8), np.empty(n, values.dtype)
    moving, was = np.empty(n, values.dtype), np.empty(n, labels.dtype)
    for j in range(n):
        side[j], was[j] = -1, labels[j]
    long = np.ones(2)
    state = xorshift(xorshift(np.uint64(seed)))
    one = np.int64(state % np.uint64(n))
    state = xorshift(state)
    two = (one + 1 + np.int64(state % np.uint64(n - 1))) % n
    for c in range(2):
        label = labels[one if c == 0 else two]
        for p in range(starts[label], starts[label + 1]):
            centre[places[p], c] += values[p]
    done = 0
    for turn in range(rounds):
        r0 = values.dtype.type(1.0 / np.sqrt(max(long[0], 1e-12)))
        r1 = values.dtype.type(1.0 / np.sqrt(max(long[1], 1e-12)))
        for j in range(n):
            s0, s1 = values.dtype.type(0), values.dtype.type(0)
            for p in range(starts[labels[j]], starts[labels[j] + 1]):
                s0 += centre[places[p], 0] * values[p]
                s1 += centre[places[p], 1] * values[p]
            score[j] = s1 * r1 - s0 * r0
            moving[j] = score[j]
        border = select_rank(moving, first - 1)
        equal = first
        for j in range(n):
            equal -= score[j] < border
        if turn == 0:
            for c in range(2):
                label = labels[one if c == 0 else two]
                for p in range(starts[label], starts[label + 1]):
                    centre[places[p], c] = 0
                long[c] = 0.0
        moved = 0
        for j in range(n):
            new = 0 if score[j] < border else 1
            if score[j] == border and equal > 0:
                new = 0
                equal -= 1
            old = side[j]
            if new != old:
                moved += 1
                side[j] = new
                gain, loss, square = 0.0, 0.0, 0.0
                for p in range(starts[labels[j]], starts[labels[j] + 1]):
                    f, x = places[p], values[p]
                    square += x * x
                    gain += centre[f, new] * x
                    centre[f, new] += x
                    if old >= 0:
                        loss += centre[f, old] * x
                        centre[f, old] -= x
                long[new] += 2 * gain + square
                if old >= 0:
                    long[old] += square - 2 * loss
        done = turn + 1
        if moved == 0:
            break
    for j in range(n):
        for p in range(starts[labels[j]], starts[labels[j] + 1]):
            centre[places[p], 0] = 0
            centre[places[p], 1] = 0
    at, later = 0, first
    for j in range(n):
        if side[j] == 0:
            labels[at] = was[j]
            at += 1
        else:
            labels[later] = was[j]
            later += 1
    return done


@fastmath_njit
def assign_nearest(
    starts: Any,
    places: Any,
    values: Any,
    labels: Any,
    centre: Any,
    local_of: Any,
    open_to: Any,
    code: Any,
    score: Any,
) -> None:
    """Assign each of the unit rows `labels` to the centre (features, k) of largest cosine.

    `local_of` (d,) maps a feature to its row in the centres; centres that are not `open_to` (k,)
    new labels are skipped. Fills `code` and `score`.
    """
    k = centre.shape[1]
    alike = np.empty(k, values.dtype)
    for j in range(len(labels)):
        for c in range(k):
            alike[c] = 0
        for p in range(starts[labels[j]], starts[labels[j] + 1]):
            f, x = local_of[places[p]], values[p]
            for c in range(k):
                alike[c] += x * centre[f, c]
        best = -1
        for c in range(k):
            if open_to[c] and (best < 0 or alike[c] > alike[best]):
                best = c
        code[j], score[j] = best, alike[best]


@fastmath_njit
def update_centres(
    starts: Any, places: Any, values: Any, labels: Any, code: Any, local_of: Any, centre: Any
) -> None:
    """Fill centre (features, k) with the sum of the labels of each code, scaled to unit length."""
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
