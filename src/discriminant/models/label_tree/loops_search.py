"""Loops of the search: from the nodes that rows have reached to the best of their children.

This file imports Numba, and is itself imported when a search is about to run. A loop is compiled on
first use, for each kind of weights, and kept on disk for the next process.

A pair is a row and a node that it has reached. Its margins are

    m_c = bias_c + sum of x_f w_fc       over the features f of the row, in their order

so that every way to find f in the chunk of the node sums in the same order, and gives the same
bits. There are two: by halving, and by a map from features to rows of the chunk, which is worth
its making where many rows of a block have reached the node. The map need not be emptied between
chunks: what it says of another chunk lies outside this one. Pairs of a block are taken node by
node, so that a chunk is in the cache while it is in use; a node whose own score is no longer
among the best of its row is passed over, since no child has a better one.

The best of a row are a heap whose root is the worst of them. Scores are ordered strictly, equal
ones by the smaller number of the child, so that the order in which pairs come does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.extending import overload

F = TypeVar("F", bound=Callable[..., Any])

_FEW = 16  # rows that are searched one by one
_HALF = np.float32(2.0**112)  # what the exponents of half and single precision differ by


def compiled(loop: F) -> F:
    """The loop, compiled when it is first called; sums are made in the order that is written."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(loop))


def within(loop: F) -> F:
    """The loop, written into those that call it: a call with so many arrays is dear."""
    return cast(F, numba.njit(inline="always", error_model="numpy")(loop))


def real(weight: Any) -> Any:
    """A weight as a number; half precision comes as its 16 bits, which Numba cannot read."""
    return weight


@overload(real)
def _real(weight: Any) -> Any:
    if isinstance(weight, numba.types.Integer):
        return _half
    return _same


def _same(weight: Any) -> Any:
    return weight


def _half(weight: Any) -> Any:
    bits = np.uint32(weight)
    size = np.uint32((bits & np.uint32(0x7FFF)) << np.uint32(13)).view(np.float32) * _HALF
    return -size if bits & np.uint32(0x8000) else size


@compiled
def descend(
    starts: Any,
    features: Any,
    values: Any,
    nodes: Any,
    paths: Any,
    counts: Any,
    children: Any,
    chunks: Any,
    feature: Any,
    entries: Any,
    child: Any,
    weight: Any,
    bias: Any,
    label_of: Any,
    hinge: bool,
    width: int,
    widest: int,
    found: Any,
    scores: Any,
    lengths: Any,
) -> None:
    """The best children of the nodes that each row has reached, best first.

    Row i has reached nodes[i, :counts[i]] with scores `paths`; found[i, :lengths[i]] and `scores`
    are the answer. `label_of` names children by their labels, and is empty above the leaves.
    `width` is the number of features there are.
    """
    rows, beam, parents = len(starts) - 1, nodes.shape[1], len(chunks) - 1
    most = found.shape[1]
    margin = np.empty(widest, values.dtype)
    lengths[:] = 0
    ways = np.zeros(0 if rows < _FEW else width, np.uint32)
    if rows < _FEW or rows * beam < parents:
        for i in range(rows):
            for t in range(counts[i]):
                if lengths[i] == most and paths[i, t] < scores[i, 0]:
                    break
                _visit(
                    i, nodes[i, t], paths[i, t], starts, features, values, children, chunks,
                    feature, entries, child, weight, bias, label_of, hinge, False, ways, margin,
                    found, scores, lengths,
                )  # fmt: skip
    else:
        mean = (starts[rows] - starts[0]) // rows + 1
        order, begins = _by_node(nodes, counts, parents)
        for node in range(parents):
            low, high = chunks[node], chunks[node + 1]
            begin, end = begins[node], begins[node + 1]
            mapped = (end - begin) * mean * 4 > high - low
            if mapped:
                for r in range(low, high):
                    ways[feature[r]] = r + 1
            for at in range(begin, end):
                i, t = order[at] // beam, order[at] % beam
                if lengths[i] == most and paths[i, t] < scores[i, 0]:
                    continue
                _visit(
                    i, node, paths[i, t], starts, features, values, children, chunks,
                    feature, entries, child, weight, bias, label_of, hinge, mapped, ways,
                    margin, found, scores, lengths,
                )  # fmt: skip
    for i in range(rows):
        _sort(found, scores, i, lengths[i])


@compiled
def _by_node(nodes: Any, counts: Any, parents: int) -> Any:
    """Pairs in the order of their nodes, and where those of each node begin."""
    rows, beam = nodes.shape
    begins = np.zeros(parents + 2, np.int64)  # those of node v at v + 2, then at v + 1
    pairs = 0
    for i in range(rows):
        for t in range(counts[i]):
            begins[nodes[i, t] + 2] += 1
            pairs += 1
    for node in range(parents):
        begins[node + 2] += begins[node + 1]
    order = np.empty(pairs, np.int64)
    for i in range(rows):
        for t in range(counts[i]):
            at = nodes[i, t] + 1
            order[begins[at]] = i * beam + t
            begins[at] += 1
    return order, begins


@within
def _visit(
    i: int,
    node: int,
    path: float,
    starts: Any,
    features: Any,
    values: Any,
    children: Any,
    chunks: Any,
    feature: Any,
    entries: Any,
    child: Any,
    weight: Any,
    bias: Any,
    label_of: Any,
    hinge: bool,
    mapped: bool,
    ways: Any,
    margin: Any,
    found: Any,
    scores: Any,
    lengths: Any,
) -> None:
    """Score the children of a node for row i."""
    first, last = children[node], children[node + 1]
    for c in range(last - first):
        margin[c] = bias[first + c]
    low, high, begin, end = chunks[node], chunks[node + 1], starts[i], starts[i + 1]
    if mapped:
        _by_map(begin, end, features, values, low, high, ways, entries, child, weight, margin)
    else:
        _by_halving(
            begin, end, features, values, low, high, feature, entries, child, weight, margin
        )
    _keep(i, path, margin, first, last, label_of, hinge, found, scores, lengths)


@within
def _by_halving(
    begin: int,
    end: int,
    features: Any,
    values: Any,
    low: int,
    high: int,
    feature: Any,
    entries: Any,
    child: Any,
    weight: Any,
    margin: Any,
) -> None:
    """Margins of a pair; no search waits for the one before, so that their reads overlap."""
    for p in range(begin, end if high > low else begin):
        wanted, at, left = features[p], low, high - low
        while left > 1:
            half = left >> 1
            at = at + half if feature[at + half] <= wanted else at
            left -= half
        if feature[at] == wanted:
            x = values[p]
            for e in range(entries[at], entries[at + 1]):
                margin[child[e]] += x * real(weight[e])


@within
def _by_map(
    begin: int,
    end: int,
    features: Any,
    values: Any,
    low: int,
    high: int,
    ways: Any,
    entries: Any,
    child: Any,
    weight: Any,
    margin: Any,
) -> None:
    for p in range(begin, end):
        r = np.int64(ways[features[p]]) - 1
        if low <= r < high:
            x = values[p]
            for e in range(entries[r], entries[r + 1]):
                margin[child[e]] += x * real(weight[e])


@within
def _keep(
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
    if hinge:
        for c in range(last - first):
            short = max(zero, one - margin[c])
            margin[c] = short * short * short
    for c in range(last - first):
        m = margin[c]
        score = path - m if hinge else path + min(m, zero)
        if score < least:
            continue
        if not hinge:
            score = path - np.log1p(np.exp(-m)) if m > 0 else path + m - np.log1p(np.exp(m))
        name = label_of[first + c] if len(label_of) else first + c
        if length < most:
            length += 1
            _rise(found, scores, i, length - 1, name, score)
        elif score > least or name < found[i, 0]:
            _sink(found, scores, i, length, name, score)
        if length == most:
            least = scores[i, 0]
    lengths[i] = length


@compiled
def _rise(found: Any, scores: Any, i: int, at: int, name: int, score: float) -> None:
    """Put a new one at the end of the heap of row i, whose root is the worst."""
    while at > 0:
        above = (at - 1) >> 1
        if scores[i, above] < score or (scores[i, above] == score and found[i, above] > name):
            break
        found[i, at], scores[i, at] = found[i, above], scores[i, above]
        at = above
    found[i, at], scores[i, at] = name, score


@compiled
def _sink(found: Any, scores: Any, i: int, length: int, name: int, score: float) -> None:
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
def _sort(found: Any, scores: Any, i: int, length: int) -> None:
    """From a heap to a list, best first."""
    for last in range(length - 1, 0, -1):
        name, score = found[i, last], scores[i, last]
        found[i, last], scores[i, last] = found[i, 0], scores[i, 0]
        _sink(found, scores, i, last, name, score)


@compiled
def merge(names: Any, paths: Any, lengths: Any, codes: Any, scores: Any) -> None:
    """The best of several trees: a label's score is the log of the mean of exp(its path scores).

    names[t, i, :lengths[t, i]] are the labels that tree t found for row i; a tree that did not
    find a label counts 0 for it. A sum of exponentials is held as its largest, and the sum of all
    in units of that.
    """
    trees, rows, most = names.shape
    label = np.empty(trees * most, np.int32)
    best, units = np.empty(trees * most), np.empty(trees * most)
    quick = trees * most <= 128
    place = np.zeros(0 if quick else 1 + names.max(), np.int64)
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
                _rise(codes, scores, i, length, name, score)
                length += 1
            elif score > scores[i, 0] or (score == scores[i, 0] and name < codes[i, 0]):
                _sink(codes, scores, i, length, name, score)
        _sort(codes, scores, i, length)
