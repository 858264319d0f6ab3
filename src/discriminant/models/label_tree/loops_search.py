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
among the best of its row is passed over, since no child has a better one. Where a chunk has a
weight for many of its children, its rows are filled up with zeros first, so that they are added
eight children at a time: a zero more changes no bit of a sum.

A single row waits for memory more than for sums: its features are looked for all at once, and what
it needs next is asked for ahead.

A single row takes less time than to tell Python's arrays to a loop, layer by layer. So a forest is
told once, as a table of the addresses of its arrays (`addresses`), and one call does all.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numba
import numpy as np

from discriminant.models.label_tree.loops_best import compiled, keep, merge, sort, within
from discriminant.models.label_tree.loops_chunks import (
    add_bits,
    filled as filled_up,
    is_full,
    pointer,
    real,
    spread as spread_out,
)
from discriminant.models.label_tree.loops_lanes import fetched

carray: Any = cast(Any, numba).carray
_FEW = 16  # rows that are searched one by one


class Held(NamedTuple):
    """A layer as the loops see it; children that are listed, in the first two sizes, or as bits."""

    children: Any
    chunks: Any
    feature: Any
    begins: Any
    beyond: Any
    marks: Any
    places: Any
    listed: Any  # bytes of each child, 0 for bits
    weight: Any
    bias: Any
    label_of: Any  # of a last layer: the names of its children
    widest: Any  # children of one parent, at most


@compiled
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
    """The best labels of a block of rows: codes (n, k), -1 where there are none, and their scores.

    Parameters
    ----------
    table, trees
        Layers, as `search.addresses` has them, and where those of each tree begin (T + 1,).
    kinds
        Arrays of the kinds of feature, beyond and weight.
    starts, features, values
        Rows, as CSR.
    hinge, width
        What a margin adds to a path, and the number of features there are.
    beam, kept, labels
        Nodes of a level, and labels of a tree, for each row; and all labels that there are.
    """
    rows, T = len(starts) - 1, len(trees) - 1
    names, paths = np.empty((T, rows, kept), np.int32), np.empty((T, rows, kept))
    lengths, spots = np.empty((T, rows), np.int64), np.empty(_longest(starts), np.int64)
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
    merge(names, paths, lengths, labels, codes, scores)


@compiled
def _held(row: Any, kinds: Any) -> Any:
    """A layer from its addresses; the order of its numbers is that of `search.addresses`."""
    parents, rows, places, entries, nodes, labels = row[0], row[1], row[2], row[3], row[4], row[5]
    listed, marked, widest = row[6], row[7], row[8]
    feature, beyond, weight, bias = kinds
    return Held(
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


@compiled
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
    """The best children of the nodes that each row has reached, best first.

    Row i has reached nodes[i, :counts[i]] with scores `paths`; found[i, :lengths[i]] and `scores`
    are the answer. `spots` has room for the entries of any row.
    """
    lengths[:] = 0
    chunks, feature = layer.chunks, layer.feature
    rows, beam, parents = len(starts) - 1, nodes.shape[1], len(chunks) - 1
    most, few = found.shape[1], rows < _FEW or rows * nodes.shape[1] < parents
    margin, spread = np.empty(layer.widest, values.dtype), np.empty(0, np.uint8)
    filled = np.empty(0, values.dtype)
    ways = np.zeros(0 if few else width, np.uint32)
    order, begins = _by_node(nodes, counts, 0 if few else parents)
    mean, mapped, full = (starts[rows] - starts[0]) // rows + 1, False, False
    for group in range(rows if few else parents):
        begin, end = (0, counts[group]) if few else (begins[group], begins[group + 1])
        if not few:
            low, high = chunks[group], chunks[group + 1]
            mapped = (end - begin) * mean * 4 > high - low
            for r in range(low, high if mapped else low):
                ways[feature[r]] = r + 1
            full = mapped and is_full(group, layer)
            if full:
                filled = filled_up(group, layer, filled)
            elif mapped and layer.listed == 0 and layer.widest <= 256:
                spread = spread_out(group, layer, spread)
        for at in range(begin, end):
            i, t = (group, at) if few else (order[at] // beam, order[at] % beam)
            if lengths[i] == most and paths[i, t] < scores[i, 0]:
                continue
            if few and at + 1 < end:
                _announce(nodes[i, t + 1], layer)
            _visit(
                i, nodes[i, t], paths[i, t], starts, features, values, layer, hinge, mapped, full,
                ways, spots, spread, filled, margin, found, scores, lengths,
            )  # fmt: skip
    for i in range(rows):
        sort(found, scores, i, lengths[i])


@compiled
def _by_node(nodes: Any, counts: Any, parents: int) -> Any:
    """Pairs in the order of their nodes, and where those of each node begin; none of no parents."""
    rows, beam = nodes.shape
    begins = np.zeros(parents + 2, np.int64)  # those of node v at v + 2, then at v + 1
    rows, pairs = rows if parents else 0, 0
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
    layer: Any,
    hinge: bool,
    mapped: bool,
    full: bool,
    ways: Any,
    spots: Any,
    spread: Any,
    filled: Any,
    margin: Any,
    found: Any,
    scores: Any,
    lengths: Any,
) -> None:
    """Score the children of a node for row i."""
    first, last = layer.children[node], layer.children[node + 1]
    for c in range(last - first):
        margin[c] = layer.bias[first + c]
    low, high, begin, end = layer.chunks[node], layer.chunks[node + 1], starts[i], starts[i + 1]
    if high > low:
        if mapped:
            for p in range(begin, end):
                spots[p - begin] = np.int64(ways[features[p]]) - 1
        else:
            _halved(features, begin, end, low, high, layer.feature, spots)
            _ask(node, last - first, low, end - begin, layer, spots)
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
    keep(i, path, margin, first, last, layer.label_of, hinge, found, scores, lengths)


@within
def _sum(rows: Any, layer: Any, child: Any, before: int, margin: Any) -> None:
    """Add what the features of a row say; `child` is of the entries from `before` on."""
    begin, end, values, low, high, spots = rows
    weight, begins, beyond = layer.weight[before:], layer.begins, layer.beyond
    for p in range(begin, end):
        r = spots[p - begin]
        if low <= r < high:
            x = values[p]
            first = begins[r >> 5] + beyond[r] - before
            last = begins[(r + 1) >> 5] + beyond[r + 1] - before
            for e in range(first, last):
                margin[child[e]] += x * real(weight[e])


@within
def _sum_bits(rows: Any, layer: Any, first: int, each: int, margin: Any) -> None:
    """The same with bits, `each` bytes a row from byte `first` on."""
    begin, end, values, low, high, spots = rows
    for p in range(begin, end):
        r = spots[p - begin]
        if low <= r < high:
            e = layer.begins[r >> 5] + layer.beyond[r]
            at = first + (r - low) * each
            add_bits(e, values[p], layer.weight, layer.places, at, each, margin)


@within
def _sum_filled(rows: Any, filled: Any, children: int, margin: Any) -> None:
    """The same where the chunk is filled up."""
    begin, end, values, low, high, spots = rows
    for p in range(begin, end):
        r = spots[p - begin]
        if low <= r < high:
            x = values[p]
            weight = filled[(r - low) * children : (r - low + 1) * children]
            for c in range(children):
                margin[c] += x * weight[c]


@within
def _halved(
    features: Any, begin: int, end: int, low: int, high: int, feature: Any, spots: Any
) -> None:
    """The rows of features in a chunk, -1 where there is none.

    All are searched for at the same time, half by half: none waits for what another asks of memory.
    """
    for p in range(end - begin):
        spots[p] = low
    left = high - low
    while left > 1:
        half = left >> 1
        for p in range(end - begin):
            at = spots[p]
            spots[p] = at + half if feature[at + half] <= features[begin + p] else at
        left -= half
    for p in range(end - begin):
        if feature[spots[p]] != features[begin + p]:
            spots[p] = -1


@within
def _announce(node: int, layer: Any) -> None:
    """Ask for what a search of a chunk looks at first."""
    low, size = layer.chunks[node], layer.chunks[node + 1] - layer.chunks[node]
    fetched(layer.bias, layer.children[node])
    for eighth in range(1, 8):
        fetched(layer.feature, low + ((size * eighth) >> 3))


@within
def _ask(node: int, children: int, low: int, count: int, layer: Any, spots: Any) -> None:
    """Ask for the entries of rows of a chunk ahead of their sum."""
    each = (children + 7) >> 3
    for p in range(count):
        r = spots[p]
        if r >= 0:
            fetched(layer.beyond, r)
            fetched(layer.begins, r >> 5)
            if layer.listed == 0:
                fetched(layer.places, layer.marks[node] + (r - low) * each)
    for p in range(count):
        r = spots[p]
        if r >= 0:
            e = layer.begins[r >> 5] + layer.beyond[r]
            fetched(layer.weight, e)
            if layer.listed:
                fetched(layer.places, e * layer.listed)


@compiled
def _longest(starts: Any) -> Any:
    """Entries of a row, at most."""
    most = np.int64(0)
    for i in range(len(starts) - 1):
        most = max(most, starts[i + 1] - starts[i])
    return most
