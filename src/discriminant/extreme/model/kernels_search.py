"""Compiled kernels of the beam search in a label tree.

A pair is a row and a node that it has reached. The margins of its children are

    m_c = bias_c + sum of x_f w_fc       over the features f of the row, in their order

There are two ways to look up the features of a row in the chunk of a node: binary search
(`bisect_features`), and a map from features to rows of the chunk, which pays off where many rows of
a block have reached the node. Both sum in the order of features, so the results agree to the last
bit. The map need not be cleared between chunks: entries of another chunk lie outside this one.
Pairs of a block are processed node by node, so that a chunk stays in the cache; a node whose score
is no longer among the best of its row is skipped, since no child has a better one. If a chunk has
weights for many of its children, its rows are first filled with zeros and then added eight children
at a time: adding a zero does not change a sum.

For a single row memory latency dominates: its features are searched in the chunks of all its nodes
together, and the entries for the sums are prefetched. Passing arrays from Python layer by layer
would take longer than the search, so a forest is passed once, as a table of the addresses of its
arrays (`search.forest_addresses`), and one call does everything.

The best candidates of a row are a heap whose root is the worst of them. Scores are ordered
strictly, ties by the smaller number of the child, so that the order of pairs does not matter.

Numba compiles the kernels on first use, for each type of weights, and caches them on disk.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numba
import numpy as np

from discriminant.extreme.model.kernels_simd import (
    add_bits,
    as_real,
    densify as filled_up,
    expand_children as spread_out,
    is_dense,
    pointer,
    prefetch,
)
from discriminant.numba_cache import cached_njit, inline_njit

_FAR = 1e12  # bound of a margin, also after overflow: its cube is still finite


@inline_njit
def push_children(
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
    """Push the children of a node onto the heap of the best candidates of row i."""
    most, length = found.shape[1], lengths[i]
    least = scores[i, 0] if length == most else -np.inf
    zero, one = margin.dtype.type(0), margin.dtype.type(1)
    far = margin.dtype.type(_FAR)
    if hinge:
        for c in range(last - first):
            short = one - margin[c]
            short = max(zero, short if short < far else far)  # far if it is NaN
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
            sift_up(found, scores, i, length - 1, name, score)
        elif score > least or (score == least and name < found[i, 0]):
            sift_down(found, scores, i, length, name, score)
        if length == most:
            least = scores[i, 0]
    lengths[i] = length


@cached_njit
def sift_up(found: Any, scores: Any, i: int, at: int, name: int, score: float) -> None:
    """Append a candidate to the heap of row i, whose root is the worst."""
    while at > 0:
        above = (at - 1) >> 1
        if scores[i, above] < score or (scores[i, above] == score and found[i, above] > name):
            break
        found[i, at], scores[i, at] = found[i, above], scores[i, above]
        at = above
    found[i, at], scores[i, at] = name, score


@cached_njit
def sift_down(found: Any, scores: Any, i: int, length: int, name: int, score: float) -> None:
    """Replace the root of the heap of row i by a candidate."""
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


@cached_njit
def sort_heap(found: Any, scores: Any, i: int, length: int) -> None:
    """Turn the heap of row i into a list, best first."""
    for last in range(length - 1, 0, -1):
        name, score = found[i, last], scores[i, last]
        found[i, last], scores[i, last] = found[i, 0], scores[i, 0]
        sift_down(found, scores, i, last, name, score)


@cached_njit
def merge_trees(names: Any, paths: Any, lengths: Any, labels: int, codes: Any, scores: Any) -> None:
    """Merge several trees: a label's score is the log of the mean of exp(its path scores).

    names[t, i, :lengths[t, i]] are the labels that tree t ranks for row i; a tree that does not
    rank a label counts 0 for it. A sum of exponentials is stored as its largest term and the sum in
    units of that term. Beyond the last label, codes are -1 and scores -inf.
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
                sift_up(codes, scores, i, length, name, score)
                length += 1
            elif score > scores[i, 0] or (score == scores[i, 0] and name < codes[i, 0]):
                sift_down(codes, scores, i, length, name, score)
        sort_heap(codes, scores, i, length)
        for j in range(length, codes.shape[1]):
            codes[i, j], scores[i, j] = -1, -np.inf


@inline_njit
def score_children(
    i: int,
    node: int,
    path: float,
    begin: int,
    end: int,
    values: Any,
    layer: Any,
    hinge: bool,
    mapped: bool,
    full: bool,
    spots: Any,
    spread: Any,
    filled: Any,
    margin: Any,
    found: Any,
    scores: Any,
    lengths: Any,
) -> None:
    """Score the children of a node for row i, whose features are at `spots` of its chunk."""
    first, last = layer.children[node], layer.children[node + 1]
    for c in range(last - first):
        margin[c] = layer.bias[first + c]
    low, high = layer.chunks[node], layer.chunks[node + 1]
    places, rows = layer.places, (begin, end, values, low, high, spots)
    if full:
        _sum_filled(rows, filled, last - first, margin)
    elif layer.listed == 1:
        _sum(rows, layer, places, 0, margin)
    elif layer.listed == 2:
        _sum(rows, layer, places.view(np.uint16), 0, margin)
    elif layer.listed == 4:
        _sum(rows, layer, places.view(np.uint32), 0, margin)
    elif mapped and layer.widest <= 256:
        before = layer.begins[low >> 5] + layer.beyond[low]
        _sum(rows, layer, spread, before, margin)
    else:
        each = (last - first + 7) >> 3
        _sum_bits(rows, layer, layer.marks[node], each, margin)
    push_children(i, path, margin, first, last, layer.label_of, hinge, found, scores, lengths)


@inline_njit
def _sum(rows: Any, layer: Any, child: Any, before: int, margin: Any) -> None:
    """Add the features of a row; `child` starts at entry `before`."""
    begin, end, values, low, high, spots = rows
    weight, begins, beyond = layer.weight[before:], layer.begins, layer.beyond
    for p in range(begin, end):
        r = spots[p - begin]
        if low <= r < high:
            x = values[p]
            first = begins[r >> 5] + beyond[r] - before
            last = begins[(r + 1) >> 5] + beyond[r + 1] - before
            for e in range(first, last):
                margin[child[e]] += x * as_real(weight[e])


@inline_njit
def _sum_bits(rows: Any, layer: Any, first: int, each: int, margin: Any) -> None:
    """As `_sum`, with children as bitmaps of `each` bytes per row from byte `first` on."""
    begin, end, values, low, high, spots = rows
    for p in range(begin, end):
        r = spots[p - begin]
        if low <= r < high:
            e = layer.begins[r >> 5] + layer.beyond[r]
            at = first + (r - low) * each
            add_bits(e, values[p], layer.weight, layer.places, at, each, margin)


@inline_njit
def _sum_filled(rows: Any, filled: Any, children: int, margin: Any) -> None:
    """As `_sum`, for a chunk filled with zeros."""
    begin, end, values, low, high, spots = rows
    for p in range(begin, end):
        r = spots[p - begin]
        if low <= r < high:
            x = values[p]
            weight = filled[(r - low) * children : (r - low + 1) * children]
            for c in range(children):
                margin[c] += x * weight[c]


@inline_njit
def bisect_features(
    features: Any, begin: int, end: int, nodes: Any, layer: Any, spots: Any, left: Any
) -> None:
    """Find the features of a row in the chunks of some nodes by binary search; -1 if absent.

    All searches advance together, step by step, so that none waits for the memory of another.
    """
    n, feature, longest = end - begin, layer.feature, 0
    for q in range(len(nodes)):
        low, high = layer.chunks[nodes[q]], layer.chunks[nodes[q] + 1]
        left[q] = high - low
        longest = max(longest, high - low)
        for p in range(n):
            spots[q, p] = low if high > low else -1
    while longest > 1:
        longest -= longest >> 1
        for q in range(len(nodes)):
            half = left[q] >> 1
            left[q] -= half
            for p in range(n if half else 0):
                at = spots[q, p]
                spots[q, p] = at + half if feature[at + half] <= features[begin + p] else at
    for q in range(len(nodes)):
        for p in range(n if left[q] else 0):
            if feature[spots[q, p]] != features[begin + p]:
                spots[q, p] = -1


@inline_njit
def prefetch_entries(count: int, nodes: Any, layer: Any, spots: Any) -> None:
    """Prefetch the memory for the sums of a row: offsets of the entries, then the entries."""
    for q in range(len(nodes)):
        node = nodes[q]
        low, first, last = layer.chunks[node], layer.children[node], layer.children[node + 1]
        each = (last - first + 7) >> 3
        for c in range(first, last, 16):
            prefetch(layer.bias, c)
        for p in range(count):
            r = spots[q, p]
            if r >= 0:
                prefetch(layer.beyond, r)
                prefetch(layer.begins, r >> 5)
                if layer.listed == 0:
                    prefetch(layer.places, layer.marks[node] + (r - low) * each)
    for q in range(len(nodes)):
        for p in range(count):
            r = spots[q, p]
            if r >= 0:
                e = layer.begins[r >> 5] + layer.beyond[r]
                prefetch(layer.weight, e)
                if layer.listed:
                    prefetch(layer.places, e * layer.listed)


carray: Any = cast(Any, numba).carray
_FEW = 16  # fewer rows are searched one by one
_TOGETHER = 16  # nodes of such a row whose chunks are searched together, fewer for long rows:
_ROOM = 1 << 18  # features located together


class LayerArrays(NamedTuple):
    """Arrays of a layer as seen by the kernels; children as a list or as bitmaps."""

    children: Any
    chunks: Any
    feature: Any
    begins: Any
    beyond: Any
    marks: Any
    places: Any
    listed: Any  # bytes per child, 0 for bitmaps
    weight: Any
    bias: Any
    label_of: Any  # last layer only: the labels of its children
    widest: Any  # largest number of children of a parent


@cached_njit
def search(
    table: Any,
    trees: Any,
    kinds: Any,
    starts: Any,
    features: Any,
    values: Any,
    hinge: bool,
    width: int,
    beam: int,
    kept: int,
    labels: int,
    codes: Any,
    scores: Any,
) -> None:
    """Find the best labels of a block of rows; fills codes (n, k), -1 beyond the last, and scores.

    Parameters
    ----------
    table, trees
        Layers, from `search.forest_addresses`, and the first layer of each tree (T + 1,).
    kinds
        Empty arrays with the types of feature, beyond, weight and bias.
    starts, features, values
        Rows in CSR form.
    hinge, width
        Whether the path score is 'hinge', and the number of features.
    beam, kept, labels
        Nodes per level and labels per tree for each row; total number of labels.
    """
    rows, T = len(starts) - 1, len(trees) - 1
    names, paths = np.empty((T, rows, kept), np.int32), np.empty((T, rows, kept))
    lengths, longest = np.empty((T, rows), np.int64), _longest(starts)
    together = max(1, min(_TOGETHER, _ROOM // max(longest, 1)))
    spots = np.empty((together, longest), np.int64)
    for t in range(T):
        nodes, reached = np.zeros((rows, 1), np.int32), np.zeros((rows, 1))
        counts = np.ones(rows, np.int64)
        for at in range(trees[t], trees[t + 1]):
            layer = _held(table[at], kinds)
            found, path, length = names[t], paths[t], lengths[t]
            if at < trees[t + 1] - 1:
                most = min(beam, len(layer.bias))
                found, path = np.empty((rows, most), np.int32), np.empty((rows, most))
                length = np.empty(rows, np.int64)
            _descend(
                starts, features, values, nodes, reached, counts, layer, hinge, width, spots,
                found, path, length,
            )  # fmt: skip
            nodes, reached, counts = found, path, length
    merge_trees(names, paths, lengths, labels, codes, scores)


@cached_njit
def _held(row: Any, kinds: Any) -> Any:
    """Layer from its row of `search.forest_addresses`."""
    parents, rows, places, entries, nodes, labels = row[0], row[1], row[2], row[3], row[4], row[5]
    listed, marked, widest = row[6], row[7], row[8]
    feature, beyond, weight, bias = kinds
    return LayerArrays(
        carray(pointer(row[9]), parents + 1, np.int64),
        carray(pointer(row[10]), parents + 1, np.int64),
        carray(pointer(row[11]), rows, feature.dtype),
        carray(pointer(row[12]), rows // 32 + 1, np.int64),
        carray(pointer(row[13]), rows + 1, beyond.dtype),
        carray(pointer(row[14]), marked, np.int64),
        carray(pointer(row[15]), places, np.uint8),
        listed,
        carray(pointer(row[16]), entries, weight.dtype),
        carray(pointer(row[17]), nodes, bias.dtype),
        carray(pointer(row[18]), labels, np.int32),
        widest,
    )


@cached_njit
def _descend(
    starts: Any,
    features: Any,
    values: Any,
    nodes: Any,
    paths: Any,
    counts: Any,
    layer: Any,
    hinge: bool,
    width: int,
    spots: Any,
    found: Any,
    scores: Any,
    lengths: Any,
) -> None:
    """Find the best children of the nodes that each row has reached, best first.

    Row i has reached nodes[i, :counts[i]] with scores `paths`; fills found[i, :lengths[i]] and
    `scores`. `spots` has space for the features of any row in several nodes.
    """
    lengths[:] = 0
    rows, parents = len(starts) - 1, len(layer.chunks) - 1
    given = starts, features, values, nodes, paths, counts, layer, hinge
    if rows < _FEW or rows * nodes.shape[1] < parents:
        _row_by_row(*given, spots, found, scores, lengths)
    else:
        _node_by_node(*given, width, spots, found, scores, lengths)
    for i in range(rows):
        sort_heap(found, scores, i, lengths[i])


@cached_njit
def _row_by_row(
    starts: Any,
    features: Any,
    values: Any,
    nodes: Any,
    paths: Any,
    counts: Any,
    layer: Any,
    hinge: bool,
    spots: Any,
    found: Any,
    scores: Any,
    lengths: Any,
) -> None:
    """Descend one level row by row, for few rows."""
    together = len(spots)
    margin, left = np.empty(layer.widest, values.dtype), np.empty(together, np.int64)
    none, nothing = np.empty(0, np.uint8), np.empty(0, values.dtype)
    for i in range(len(starts) - 1):
        begin, end = starts[i], starts[i + 1]
        for first in range(0, counts[i], together):
            last = min(first + together, counts[i])
            while last > first and _passed(i, paths[i, last - 1], found, scores, lengths):
                last -= 1
            some = nodes[i, first:last]
            bisect_features(features, begin, end, some, layer, spots, left)
            prefetch_entries(end - begin, some, layer, spots)
            for t in range(first, last):
                if _passed(i, paths[i, t], found, scores, lengths):
                    break
                score_children(
                    i, nodes[i, t], paths[i, t], begin, end, values, layer, hinge, False, False,
                    spots[t - first], none, nothing, margin, found, scores, lengths,
                )  # fmt: skip


@inline_njit
def _passed(i: int, path: float, found: Any, scores: Any, lengths: Any) -> Any:
    """Whether no child of a node with this path score can be among the best of row i."""
    return lengths[i] == found.shape[1] and path < scores[i, 0]


@cached_njit
def _node_by_node(
    starts: Any,
    features: Any,
    values: Any,
    nodes: Any,
    paths: Any,
    counts: Any,
    layer: Any,
    hinge: bool,
    width: int,
    spots: Any,
    found: Any,
    scores: Any,
    lengths: Any,
) -> None:
    """Descend one level node by node, for many rows."""
    chunks, feature = layer.chunks, layer.feature
    rows, beam, parents = len(starts) - 1, nodes.shape[1], len(chunks) - 1
    margin, left = np.empty(layer.widest, values.dtype), np.empty(1, np.int64)
    spread, filled = np.empty(0, np.uint8), np.empty(0, values.dtype)
    ways = np.zeros(width, np.uint32)
    order, begins = _by_node(nodes, counts, parents)
    mean = (starts[rows] - starts[0]) // rows + 1
    for node in range(parents):
        low, high, pairs = chunks[node], chunks[node + 1], begins[node + 1] - begins[node]
        mapped = pairs * mean * 4 > high - low
        for r in range(low, high if mapped else low):
            ways[feature[r]] = r + 1
        full = mapped and is_dense(node, layer)
        if full:
            filled = filled_up(node, layer, filled)
        elif mapped and layer.listed == 0 and layer.widest <= 256:
            spread = spread_out(node, layer, spread)
        for at in range(begins[node], begins[node + 1]):
            i, t = order[at] // beam, order[at] % beam
            begin, end = starts[i], starts[i + 1]
            if _passed(i, paths[i, t], found, scores, lengths):
                continue
            if mapped:
                for p in range(begin, end):
                    spots[0, p - begin] = np.int64(ways[features[p]]) - 1
            else:
                bisect_features(features, begin, end, nodes[i, t : t + 1], layer, spots, left)
            score_children(
                i, node, paths[i, t], begin, end, values, layer, hinge, mapped, full,
                spots[0], spread, filled, margin, found, scores, lengths,
            )  # fmt: skip


@cached_njit
def _by_node(nodes: Any, counts: Any, parents: int) -> Any:
    """Sort pairs by node; return the order and the offset of each node."""
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


@cached_njit
def _longest(starts: Any) -> Any:
    """Largest number of entries of a row."""
    most = np.int64(0)
    for i in range(len(starts) - 1):
        most = max(most, starts[i + 1] - starts[i])
    return most
