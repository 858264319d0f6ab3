"""Loops that keep the best few of a row, and merge what several trees found.

This file imports Numba, and is itself imported when a loop of a label tree is about to run.

The best of a row are a heap whose root is the worst of them. Scores are ordered strictly, equal
ones by the smaller number of the child, so that the order in which pairs come does not matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.moments.compiling import compiled, within

_FAR = 1e12  # a margin as bad as can be: its cube is a number yet, and so is what overflowed


@within
def keep(
    i: int,
    path: float,
    margin: Any,
    first: int,
    last: int,
    label_of: Any,
    hinge: bool,
    found: Any,
    scores: Any,
    lengths: Any,
) -> None:
    """Offer the children of a node to the best of row i."""
    most, length = found.shape[1], lengths[i]
    least = scores[i, 0] if length == most else -np.inf
    zero, one = margin.dtype.type(0), margin.dtype.type(1)
    far = margin.dtype.type(_FAR)
    if hinge:
        for c in range(last - first):
            short = one - margin[c]
            short = max(zero, short if short < far else far)  # far if it is no number
            margin[c] = short * short * short
    for c in range(last - first):
        m = margin[c] if hinge or margin[c] > -far else -far
        score = path - m if hinge else path + min(m, zero)
        if score < least:
            continue
        if not hinge:
            score = path - np.log1p(np.exp(-m)) if m > 0 else path + m - np.log1p(np.exp(m))
        name = label_of[first + c] if len(label_of) else first + c
        if length < most:
            length += 1
            rise(found, scores, i, length - 1, name, score)
        elif score > least or (score == least and name < found[i, 0]):
            sink(found, scores, i, length, name, score)
        if length == most:
            least = scores[i, 0]
    lengths[i] = length


@compiled
def rise(found: Any, scores: Any, i: int, at: int, name: int, score: float) -> None:
    """Put a new one at the end of the heap of row i, whose root is the worst."""
    while at > 0:
        above = (at - 1) >> 1
        if scores[i, above] < score or (scores[i, above] == score and found[i, above] > name):
            break
        found[i, at], scores[i, at] = found[i, above], scores[i, above]
        at = above
    found[i, at], scores[i, at] = name, score


@compiled
def sink(found: Any, scores: Any, i: int, length: int, name: int, score: float) -> None:
    """Put a new one in the place of the root."""
    at, below = 0, 1
    while below < length:
        other = below + 1
        if other < length and (
            scores[i, other] < scores[i, below]
            or (scores[i, other] == scores[i, below] and found[i, other] > found[i, below])
        ):
            below = other
        if score < scores[i, below] or (score == scores[i, below] and name > found[i, below]):
            break
        found[i, at], scores[i, at] = found[i, below], scores[i, below]
        at, below = below, 2 * below + 1
    found[i, at], scores[i, at] = name, score


@compiled
def sort(found: Any, scores: Any, i: int, length: int) -> None:
    """From a heap to a list, best first."""
    for last in range(length - 1, 0, -1):
        name, score = found[i, last], scores[i, last]
        found[i, last], scores[i, last] = found[i, 0], scores[i, 0]
        sink(found, scores, i, last, name, score)


@compiled
def merge(names: Any, paths: Any, lengths: Any, labels: int, codes: Any, scores: Any) -> None:
    """The best of several trees: a label's score is the log of the mean of exp(its path scores).

    Beyond the last, codes are -1 and scores -inf.

    names[t, i, :lengths[t, i]] are those of all `labels` that tree t found for row i; a tree that
    did not find one counts 0 for it. A sum of exponentials is held as its largest, and the sum of
    all in units of that.
    """
    trees, rows, most = names.shape
    label = np.empty(trees * most, np.int32)
    best, units = np.empty(trees * most), np.empty(trees * most)
    quick = trees * most <= 128
    place = np.zeros(0 if quick else labels, np.int64)
    for i in range(rows):
        total = 0
        for t in range(trees):
            before = total
            for j in range(lengths[t, i]):
                name, path = names[t, i, j], paths[t, i, j]
                if quick:
                    at = 0
                    while at < before and label[at] != name:
                        at += 1
                    at = total if at == before else at
                else:
                    at = place[name] - 1 if place[name] else total
                    place[name] = at + 1
                if at == total:
                    label[at], best[at], units[at] = name, path, 1.0
                    total += 1
                elif path <= best[at]:
                    units[at] += np.exp(path - best[at])
                else:
                    units[at] = units[at] * np.exp(best[at] - path) + 1.0
                    best[at] = path
        length = 0
        for at in range(total):
            name, score = label[at], best[at] + np.log(units[at] / trees)
            if not quick:
                place[name] = 0
            if length < codes.shape[1]:
                rise(codes, scores, i, length, name, score)
                length += 1
            elif score > scores[i, 0] or (score == scores[i, 0] and name < codes[i, 0]):
                sink(codes, scores, i, length, name, score)
        sort(codes, scores, i, length)
        for j in range(length, codes.shape[1]):
            codes[i, j], scores[i, j] = -1, -np.inf
