"""Compiled loops of the beam search in a label tree.

A pair consists of a row and a node that the search has reached for this row. The margins of the
node's children are

    m_c = bias_c + sum of x_f w_fc       over the features f of the row, in their order

There are two ways to look up the features of a row in the chunk of a node: binary search
(`bisect_features`), or a map from features to rows of the chunk, which is faster if many rows of a
block have reached the node. In both cases terms are added in the order of features, so the results
agree to the last bit. The map need not be cleared between chunks: entries left by another chunk are
outside the range of the current chunk. Pairs of a block are processed node by node, so that a chunk
stays in the cache. A node whose score is no longer among the best of its row is skipped, since no
child can have a better score. If a chunk has weights for many of its children, it is first expanded
to a dense array, and then the terms of eight children are added at a time: the additional zeros do
not change a sum.

For a single row, memory latency dominates. Therefore its features are looked up in the chunks of
all its nodes at the same time, and the entries for the sums are prefetched. Passing arrays from
Python layer by layer would take longer than the search. So the whole search is one call, which
receives a table with the addresses of all arrays of a forest (`search.forest_addresses`).

The best candidates of a row form a heap whose root is the worst of them. If scores are equal, the
child with the smaller number is preferred, so that the result does not depend on the order of
pairs.

Numba compiles the loops on first use, for each type of weights, and caches them on disk.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numba
import numpy as np

from discriminant.cached_njit import cached_njit, inline_njit
from discriminant.extreme.model.compiled_simd_primitives import (
    add_bits,
    as_real,
    densify,
    expand_children,
    is_dense,
    pointer,
    prefetch,
)

# largest absolute value of a margin, also after overflow: its cube is still finite
_MARGIN_BOUND = 1e12


@inline_njit
def push_children(
    i: int,
    path: float,
    margin: Any,
    first: int,
    last: int,
    label_of: Any,
    hinge: bool,
    best: Any,
    scores: Any,
    lengths: Any,
) -> None:
    """Push the children of a node onto the heap of the best candidates of row i."""
    size, length = best.shape[1], lengths[i]
    worst = scores[i, 0] if length == size else -np.inf
    zero, one = margin.dtype.type(0), margin.dtype.type(1)
    bound = margin.dtype.type(_MARGIN_BOUND)
    if hinge:
        for c in range(last - first):
            shortfall = one - margin[c]
            # a margin that is NaN counts as very low
            shortfall = max(zero, shortfall if shortfall < bound else bound)
            margin[c] = shortfall * shortfall * shortfall
    for c in range(last - first):
        m = margin[c] if hinge or margin[c] > -bound else -bound
        score = path - m if hinge else path + min(m, zero)
        if score < worst:
            continue
        if not hinge:
            score = path - np.log1p(np.exp(-m)) if m > 0 else path + m - np.log1p(np.exp(m))
        code = label_of[first + c] if len(label_of) else first + c
        if length < size:
            length += 1
            sift_up(best, scores, i, length - 1, code, score)
        elif score > worst or (score == worst and code < best[i, 0]):
            sift_down(best, scores, i, length, code, score)
        if length == size:
            worst = scores[i, 0]
    lengths[i] = length


@cached_njit
def sift_up(best: Any, scores: Any, i: int, at: int, code: int, score: float) -> None:
    """Append a candidate to the heap of row i, whose root is the worst candidate."""
    while at > 0:
        parent = (at - 1) >> 1
        if scores[i, parent] < score or (scores[i, parent] == score and best[i, parent] > code):
            break
        best[i, at], scores[i, at] = best[i, parent], scores[i, parent]
        at = parent
    best[i, at], scores[i, at] = code, score


@cached_njit
def sift_down(best: Any, scores: Any, i: int, length: int, code: int, score: float) -> None:
    """Replace the root of the heap of row i, its worst candidate, by another candidate."""
    at, child = 0, 1
    while child < length:
        sibling = child + 1
        if sibling < length and (
            scores[i, sibling] < scores[i, child]
            or (scores[i, sibling] == scores[i, child] and best[i, sibling] > best[i, child])
        ):
            child = sibling
        if score < scores[i, child] or (score == scores[i, child] and code > best[i, child]):
            break
        best[i, at], scores[i, at] = best[i, child], scores[i, child]
        at, child = child, 2 * child + 1
    best[i, at], scores[i, at] = code, score


@cached_njit
def sort_heap(best: Any, scores: Any, i: int, length: int) -> None:
    """Sort the heap of row i into a list, best first."""
    for last in range(length - 1, 0, -1):
        code, score = best[i, last], scores[i, last]
        best[i, last], scores[i, last] = best[i, 0], scores[i, 0]
        sift_down(best, scores, i, last, code, score)


@cached_njit
def merge_trees(
    ranked: Any, paths: Any, lengths: Any, labels: int, codes: Any, scores: Any
) -> None:
    """Merge several trees: a label's score is the log of the mean of exp(its path scores).

    `ranked[t, i, :lengths[t, i]]` holds the labels that tree t ranks for row i. If a tree does not
    rank a label, it adds 0 to the sum of this label. To avoid underflow, a sum of exponentials is
    stored as its largest term and the sum divided by that term. After the last label, codes are -1
    and scores -inf.
    """
    trees, rows, size = ranked.shape
    seen = np.empty(trees * size, np.int32)
    largest, sums = np.empty(trees * size), np.empty(trees * size)
    few = trees * size <= 128
    index_of = np.zeros(0 if few else labels, np.int64)
    for i in range(rows):
        count = 0
        for t in range(trees):
            before = count
            for j in range(lengths[t, i]):
                code, path = ranked[t, i, j], paths[t, i, j]
                if few:
                    at = 0
                    while at < before and seen[at] != code:
                        at += 1
                    at = count if at == before else at
                else:
                    at = index_of[code] - 1 if index_of[code] else count
                    index_of[code] = at + 1
                if at == count:
                    seen[at], largest[at], sums[at] = code, path, 1.0
                    count += 1
                elif path <= largest[at]:
                    sums[at] += np.exp(path - largest[at])
                else:
                    sums[at] = sums[at] * np.exp(largest[at] - path) + 1.0
                    largest[at] = path
        length = 0
        for at in range(count):
            code, score = seen[at], largest[at] + np.log(sums[at] / trees)
            if not few:
                index_of[code] = 0
            if length < codes.shape[1]:
                sift_up(codes, scores, i, length, code, score)
                length += 1
            elif score > scores[i, 0] or (score == scores[i, 0] and code < codes[i, 0]):
                sift_down(codes, scores, i, length, code, score)
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
    is_filled: bool,
    chunk_rows: Any,
    expanded: Any,
    dense: Any,
    margin: Any,
    best: Any,
    scores: Any,
    lengths: Any,
) -> None:
    """Score the children of a node for row i.

    `chunk_rows` holds the positions of the row's features in the chunk of the node.
    """
    first, last = layer.children[node], layer.children[node + 1]
    for c in range(last - first):
        margin[c] = layer.bias[first + c]
    low, high = layer.chunks[node], layer.chunks[node + 1]
    places, rows = layer.places, (begin, end, values, low, high, chunk_rows)
    if is_filled:
        _add_dense(rows, dense, last - first, margin)
    elif layer.listed == 1:
        _add_listed(rows, layer, places, 0, margin)
    elif layer.listed == 2:
        _add_listed(rows, layer, places.view(np.uint16), 0, margin)
    elif layer.listed == 4:
        _add_listed(rows, layer, places.view(np.uint32), 0, margin)
    elif mapped and layer.widest <= 256:
        first_entry = layer.begins[low >> 5] + layer.beyond[low]
        _add_listed(rows, layer, expanded, first_entry, margin)
    else:
        row_bytes = (last - first + 7) >> 3
        _add_bitmaps(rows, layer, layer.marks[node], row_bytes, margin)
    push_children(i, path, margin, first, last, layer.label_of, hinge, best, scores, lengths)


@inline_njit
def _add_listed(rows: Any, layer: Any, child: Any, before: int, margin: Any) -> None:
    """Add the terms of a row to the margins of children that are stored as a list.

    `child` starts at entry `before`.
    """
    begin, end, values, low, high, chunk_rows = rows
    weight, begins, beyond = layer.weight[before:], layer.begins, layer.beyond
    for p in range(begin, end):
        r = chunk_rows[p - begin]
        if low <= r < high:
            x = values[p]
            first = begins[r >> 5] + beyond[r] - before
            last = begins[(r + 1) >> 5] + beyond[r + 1] - before
            for e in range(first, last):
                margin[child[e]] += x * as_real(weight[e])


@inline_njit
def _add_bitmaps(rows: Any, layer: Any, first: int, row_bytes: int, margin: Any) -> None:
    """Add the terms of a row to the margins of children stored as bitmaps.

    A bitmap has `row_bytes` bytes; the first bitmap begins at byte `first`.
    """
    begin, end, values, low, high, chunk_rows = rows
    for p in range(begin, end):
        r = chunk_rows[p - begin]
        if low <= r < high:
            e = layer.begins[r >> 5] + layer.beyond[r]
            at = first + (r - low) * row_bytes
            add_bits(e, values[p], layer.weight, layer.places, at, row_bytes, margin)


@inline_njit
def _add_dense(rows: Any, dense: Any, children: int, margin: Any) -> None:
    """Add the terms of a row to the margins, for a chunk that was expanded to a dense array."""
    begin, end, values, low, high, chunk_rows = rows
    for p in range(begin, end):
        r = chunk_rows[p - begin]
        if low <= r < high:
            x = values[p]
            weight = dense[(r - low) * children : (r - low + 1) * children]
            for c in range(children):
                margin[c] += x * weight[c]


@inline_njit
def bisect_features(
    features: Any, begin: int, end: int, nodes: Any, layer: Any, chunk_rows: Any, remaining: Any
) -> None:
    """Find the features of a row in the chunks of some nodes by binary search (-1 if absent).

    All searches advance together, step by step, so that their memory accesses overlap.
    """
    n, feature, widest = end - begin, layer.feature, 0
    for q in range(len(nodes)):
        low, high = layer.chunks[nodes[q]], layer.chunks[nodes[q] + 1]
        remaining[q] = high - low
        widest = max(widest, high - low)
        for p in range(n):
            chunk_rows[q, p] = low if high > low else -1
    while widest > 1:
        widest -= widest >> 1
        for q in range(len(nodes)):
            half = remaining[q] >> 1
            remaining[q] -= half
            for p in range(n if half else 0):
                at = chunk_rows[q, p]
                chunk_rows[q, p] = at + half if feature[at + half] <= features[begin + p] else at
    for q in range(len(nodes)):
        for p in range(n if remaining[q] else 0):
            if feature[chunk_rows[q, p]] != features[begin + p]:
                chunk_rows[q, p] = -1


@inline_njit
def prefetch_entries(count: int, nodes: Any, layer: Any, chunk_rows: Any) -> None:
    """Prefetch the data for a row's sums: first the offsets of the entries, then the entries."""
    for q in range(len(nodes)):
        node = nodes[q]
        low, first, last = layer.chunks[node], layer.children[node], layer.children[node + 1]
        row_bytes = (last - first + 7) >> 3
        for c in range(first, last, 16):
            prefetch(layer.bias, c)
        for p in range(count):
            r = chunk_rows[q, p]
            if r >= 0:
                prefetch(layer.beyond, r)
                prefetch(layer.begins, r >> 5)
                if layer.listed == 0:
                    prefetch(layer.places, layer.marks[node] + (r - low) * row_bytes)
    for q in range(len(nodes)):
        for p in range(count):
            r = chunk_rows[q, p]
            if r >= 0:
                e = layer.begins[r >> 5] + layer.beyond[r]
                prefetch(layer.weight, e)
                if layer.listed:
                    prefetch(layer.places, e * layer.listed)


carray: Any = cast(Any, numba).carray
_FEW_ROWS = 16  # with fewer rows, each row is searched separately
_MAX_BATCH = 16  # nodes of such a row whose chunks are searched together; fewer for a long row
_MAX_LOCATED = 1 << 18  # limit on features times nodes that are looked up together


class LayerArrays(NamedTuple):
    """Arrays of a layer as the loops use them, with children as a list or as bitmaps."""

    children: Any
    chunks: Any
    feature: Any
    begins: Any
    beyond: Any
    marks: Any
    places: Any
    listed: Any  # bytes per child in the list; 0 for bitmaps
    weight: Any
    bias: Any
    label_of: Any  # labels of the children, in the last layer only
    widest: Any  # largest number of children of any parent


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
    per_tree: int,
    labels: int,
    codes: Any,
    scores: Any,
) -> None:
    """Find the best labels of a block of rows; fill codes (n, k) and scores (n, k).

    After the last label that the search reaches for a row, codes are -1.

    Parameters
    ----------
    table, trees
        Layers, from `search.forest_addresses`, and the first layer of each tree (T + 1,).
    kinds
        Empty arrays with the types of the arrays feature, beyond, weight and bias.
    starts, features, values
        Rows in CSR form.
    hinge, width
        Whether the path score is 'hinge', and the number of features.
    beam, per_tree, labels
        Number of nodes per level and of labels per tree for each row, and total number of labels.
    """
    n, T = len(starts) - 1, len(trees) - 1
    ranked, paths = np.empty((T, n, per_tree), np.int32), np.empty((T, n, per_tree))
    lengths, longest = np.empty((T, n), np.int64), _longest_row(starts)
    batch = max(1, min(_MAX_BATCH, _MAX_LOCATED // max(longest, 1)))
    chunk_rows = np.empty((batch, longest), np.int64)
    rows = starts, features, values
    for t in range(T):
        reached = np.zeros((n, 1), np.int32), np.zeros((n, 1)), np.ones(n, np.int64)
        for at in range(trees[t], trees[t + 1]):
            layer = _layer_arrays(table[at], kinds)
            best = ranked[t], paths[t], lengths[t]
            if at < trees[t + 1] - 1:
                size = min(beam, len(layer.bias))
                best = np.empty((n, size), np.int32), np.empty((n, size)), np.empty(n, np.int64)
            _descend(rows, reached, layer, hinge, width, chunk_rows, best)
            reached = best
    merge_trees(ranked, paths, lengths, labels, codes, scores)


@cached_njit
def _layer_arrays(row: Any, kinds: Any) -> Any:
    """Return the arrays of a layer from its row of `search.forest_addresses`."""
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
    rows: Any, reached: Any, layer: Any, hinge: bool, width: int, chunk_rows: Any, best: Any
) -> None:
    """Find, for each row, the best children of the nodes reached so far, best first.

    `rows` are starts, features and values in CSR form. `reached` consists of three arrays: the
    nodes of this level, their scores, and their number for each row. `best` holds the corresponding
    arrays of the next level, which are filled. `chunk_rows` is a work array for the positions of a
    row's features in the chunks of several nodes.
    """
    starts, nodes = rows[0], reached[0]
    codes, scores, lengths = best
    lengths[:] = 0
    n, parents = len(starts) - 1, len(layer.chunks) - 1
    if n < _FEW_ROWS or n * nodes.shape[1] < parents:
        _row_by_row(rows, reached, layer, hinge, chunk_rows, best)
    else:
        _node_by_node(rows, reached, layer, hinge, width, chunk_rows, best)
    for i in range(n):
        sort_heap(codes, scores, i, lengths[i])


@cached_njit
def _row_by_row(
    rows: Any, reached: Any, layer: Any, hinge: bool, chunk_rows: Any, best: Any
) -> None:
    """Descend one level row by row, which is faster for few rows."""
    starts, features, values = rows
    nodes, paths, counts = reached
    codes, scores, lengths = best
    batch = len(chunk_rows)
    margin, remaining = np.empty(layer.widest, values.dtype), np.empty(batch, np.int64)
    no_children, no_weights = np.empty(0, np.uint8), np.empty(0, values.dtype)
    for i in range(len(starts) - 1):
        begin, end = starts[i], starts[i + 1]
        for first in range(0, counts[i], batch):
            last = min(first + batch, counts[i])
            while last > first and _is_pruned(i, paths[i, last - 1], codes, scores, lengths):
                last -= 1
            batch_nodes = nodes[i, first:last]
            bisect_features(features, begin, end, batch_nodes, layer, chunk_rows, remaining)
            prefetch_entries(end - begin, batch_nodes, layer, chunk_rows)
            for t in range(first, last):
                if _is_pruned(i, paths[i, t], codes, scores, lengths):
                    break
                score_children(
                    i, nodes[i, t], paths[i, t], begin, end, values, layer, hinge, False, False,
                    chunk_rows[t - first], no_children, no_weights, margin, codes, scores, lengths,
                )  # fmt: skip


@inline_njit
def _is_pruned(i: int, path: float, best: Any, scores: Any, lengths: Any) -> Any:
    """Return whether a node with this path score can be pruned for row i.

    A node can be pruned if none of its children can be among the best candidates of the row.
    """
    return lengths[i] == best.shape[1] and path < scores[i, 0]


@cached_njit
def _node_by_node(
    rows: Any, reached: Any, layer: Any, hinge: bool, width: int, chunk_rows: Any, best: Any
) -> None:
    """Descend one level node by node, which is faster for many rows."""
    starts, features, values = rows
    nodes, paths, counts = reached
    codes, scores, lengths = best
    chunks, feature = layer.chunks, layer.feature
    n, beam, parents = len(starts) - 1, nodes.shape[1], len(chunks) - 1
    margin, remaining = np.empty(layer.widest, values.dtype), np.empty(1, np.int64)
    expanded, dense = np.empty(0, np.uint8), np.empty(0, values.dtype)
    row_of = np.zeros(width, np.uint32)
    order, begins = _sort_by_node(nodes, counts, parents)
    mean_length = (starts[n] - starts[0]) // n + 1
    for node in range(parents):
        low, high, pairs = chunks[node], chunks[node + 1], begins[node + 1] - begins[node]
        mapped = pairs * mean_length * 4 > high - low
        for r in range(low, high if mapped else low):
            row_of[feature[r]] = r + 1
        is_filled = mapped and is_dense(node, layer)
        if is_filled:
            dense = densify(node, layer, dense)
        elif mapped and layer.listed == 0 and layer.widest <= 256:
            expanded = expand_children(node, layer, expanded)
        for at in range(begins[node], begins[node + 1]):
            i, t = order[at] // beam, order[at] % beam
            begin, end = starts[i], starts[i + 1]
            if _is_pruned(i, paths[i, t], codes, scores, lengths):
                continue
            if mapped:
                for p in range(begin, end):
                    chunk_rows[0, p - begin] = np.int64(row_of[features[p]]) - 1
            else:
                node_only = nodes[i, t : t + 1]
                bisect_features(features, begin, end, node_only, layer, chunk_rows, remaining)
            score_children(
                i, node, paths[i, t], begin, end, values, layer, hinge, mapped, is_filled,
                chunk_rows[0], expanded, dense, margin, codes, scores, lengths,
            )  # fmt: skip


@cached_njit
def _sort_by_node(nodes: Any, counts: Any, parents: int) -> Any:
    """Sort pairs (row, node) by node; return the order and the offset of each node."""
    rows, beam = nodes.shape
    # counting sort: the counts of node v are at v + 2, later its offset at v + 1
    begins = np.zeros(parents + 2, np.int64)
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
def _longest_row(starts: Any) -> Any:
    """Return the largest number of entries of a row."""
    longest = np.int64(0)
    for i in range(len(starts) - 1):
        longest = max(longest, starts[i + 1] - starts[i])
    return longest
