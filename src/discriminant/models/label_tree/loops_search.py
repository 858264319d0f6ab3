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

A single row takes less time than to tell Python's arrays to a loop, layer by layer. So a forest is
told once, as a table of the addresses of its arrays (`addresses`), and one call does all.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from discriminant.models.label_tree.loops_best import F, compiled, keep, merge, sort, within

carray: Any = cast(Any, numba).carray
_FEW = 16  # rows that are searched one by one
_FILLED = 1 << 18  # numbers of a chunk, at most, that is filled up with zeros
_FULL = 4  # as many times its weights, at most, are the numbers of such a chunk
_HALF = np.float32(2.0**112)  # what the exponents of half and single precision differ by


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


def native(made: F) -> F:
    """An instruction that Python has no word for."""
    return cast(F, intrinsic(made))


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


@native
def _pointer(context: Any, address: Any = None) -> Any:
    """An address as a pointer."""

    def made(_: Any, builder: Any, __: Any, given: Any) -> Any:
        return builder.inttoptr(given[0], cgutils.voidptr_t)

    return types.voidptr(address), made


@native
def _lowest(context: Any, bits: Any = None) -> Any:
    """Which is the lowest bit that is set, of one or more."""

    def made(_: Any, builder: Any, __: Any, given: Any) -> Any:
        return builder.cttz(given[0], cgutils.true_bit)

    return bits(bits), made


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
    lengths = np.empty((T, rows), np.int64)
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
                starts, features, values, nodes, reached, counts, layer, hinge, width,
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
        carray(_pointer(row[9]), parents + 1, np.int64),
        carray(_pointer(row[10]), parents + 1, np.int64),
        carray(_pointer(row[11]), rows, feature.dtype),
        carray(_pointer(row[12]), rows // 32 + 1, np.int64),
        carray(_pointer(row[13]), rows + 1, beyond.dtype),
        carray(_pointer(row[14]), marked, np.int64),
        carray(_pointer(row[15]), places, np.uint8),
        listed,
        carray(_pointer(row[16]), entries, weight.dtype),
        carray(_pointer(row[17]), nodes, bias.dtype),
        carray(_pointer(row[18]), labels, np.int32),
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
    found: Any,
    scores: Any,
    lengths: Any,
) -> None:
    """The best children of the nodes that each row has reached, best first.

    Row i has reached nodes[i, :counts[i]] with scores `paths`; found[i, :lengths[i]] and `scores`
    are the answer.
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
            full = mapped and _is_full(group, layer)
            if full:
                filled = _filled(group, layer, filled)
            elif mapped and layer.listed == 0 and layer.widest <= 256:
                spread = _spread(group, layer, spread)
        for at in range(begin, end):
            i, t = (group, at) if few else (order[at] // beam, order[at] % beam)
            if lengths[i] == most and paths[i, t] < scores[i, 0]:
                continue
            _visit(
                i, nodes[i, t], paths[i, t], starts, features, values, layer, hinge, mapped, full,
                ways, spread, filled, margin, found, scores, lengths,
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
        places, rows = layer.places, (begin, end, features, values, low, high)
        if full:
            _sum_filled(rows, ways, filled, last - first, margin)
        elif layer.listed == 1:
            _sum(rows, layer, mapped, ways, places, 0, margin)
        elif layer.listed == 2:
            _sum(rows, layer, mapped, ways, places.view(np.uint16), 0, margin)
        elif layer.listed == 4:
            _sum(rows, layer, mapped, ways, places.view(np.uint32), 0, margin)
        elif mapped and layer.widest <= 256:
            before = layer.begins[low >> 5] + layer.beyond[low]
            _sum(rows, layer, True, ways, spread, before, margin)
        else:
            each = (last - first + 7) >> 3
            _sum_bits(rows, layer, mapped, ways, layer.marks[node], each, margin)
    keep(i, path, margin, first, last, layer.label_of, hinge, found, scores, lengths)


@within
def _sum(
    rows: Any, layer: Any, mapped: bool, ways: Any, child: Any, before: int, margin: Any
) -> None:
    """Add what the features of a row say; `child` is of the entries from `before` on."""
    begin, end, features, values, low, high = rows
    weight, begins, beyond = layer.weight[before:], layer.begins, layer.beyond
    for p in range(begin, end):
        r, there = _row_of(features[p], low, high, layer.feature, mapped, ways)
        if there:
            x = values[p]
            first = begins[r >> 5] + beyond[r] - before
            last = begins[(r + 1) >> 5] + beyond[r + 1] - before
            for e in range(first, last):
                margin[child[e]] += x * real(weight[e])


@within
def _sum_bits(
    rows: Any, layer: Any, mapped: bool, ways: Any, first: int, each: int, margin: Any
) -> None:
    """The same with bits, `each` bytes a row from byte `first` on."""
    begin, end, features, values, low, high = rows
    for p in range(begin, end):
        r, there = _row_of(features[p], low, high, layer.feature, mapped, ways)
        if there:
            e = layer.begins[r >> 5] + layer.beyond[r]
            at = first + (r - low) * each
            _add_bits(e, values[p], layer.weight, layer.places, at, each, margin)


@within
def _sum_filled(rows: Any, ways: Any, filled: Any, children: int, margin: Any) -> None:
    """The same where the chunk is filled up."""
    begin, end, features, values, low, high = rows
    for p in range(begin, end):
        r = np.int64(ways[features[p]]) - 1
        if low <= r < high:
            x = values[p]
            weight = filled[(r - low) * children : (r - low + 1) * children]
            for c in range(children):
                margin[c] += x * weight[c]


@within
def _row_of(
    wanted: int, low: int, high: int, feature: Any, mapped: bool, ways: Any
) -> tuple[Any, Any]:
    """The row of a feature in a chunk, and whether there is one."""
    if mapped:
        r = np.int64(ways[wanted]) - 1
        there = low <= r < high
    else:
        r = _halved(wanted, low, high, feature)
        there = feature[r] == wanted
    return r, there


@within
def _halved(wanted: int, low: int, high: int, feature: Any) -> Any:
    """The last row whose feature is not above; no search waits for the one before."""
    at, left = low, high - low
    while left > 1:
        half = left >> 1
        at = at + half if feature[at + half] <= wanted else at
        left -= half
    return at


@compiled
def _spread(node: int, layer: Any, spread: Any) -> Any:
    """The children of a chunk's entries, from their bits, in `spread` or a larger array."""
    low, high = layer.chunks[node], layer.chunks[node + 1]
    each = (layer.children[node + 1] - layer.children[node] + 7) >> 3
    most = 8 * (high - low) * each
    if len(spread) < most:
        spread = np.empty(most, np.uint8)
    e, at = 0, layer.marks[node]
    for _ in range(low, high):
        for byte in range(each):
            bits = np.uint64(layer.places[at + byte])
            while bits != np.uint64(0):
                spread[e] = 8 * byte + np.int64(_lowest(bits))
                e += 1
                bits &= bits - np.uint64(1)
        at += each
    return spread


@compiled
def _is_full(node: int, layer: Any) -> Any:
    """Whether the rows of a chunk have so many weights that zeros for the others are worth it."""
    low, high = layer.chunks[node], layer.chunks[node + 1]
    cells = (high - low) * (layer.children[node + 1] - layer.children[node])
    begin = layer.begins[low >> 5] + layer.beyond[low]
    end = layer.begins[high >> 5] + layer.beyond[high]
    return cells <= _FILLED and cells <= _FULL * (end - begin)


@compiled
def _filled(node: int, layer: Any, filled: Any) -> Any:
    """The weights of a chunk, zeros where there are none, in `filled` or a larger array."""
    low, high = layer.chunks[node], layer.chunks[node + 1]
    children = layer.children[node + 1] - layer.children[node]
    if len(filled) < (high - low) * children:
        filled = np.empty((high - low) * children, filled.dtype)
    filled[: (high - low) * children] = 0
    each = (children + 7) >> 3
    for r in range(low, high):
        margin = filled[(r - low) * children : (r - low + 1) * children]
        first = layer.begins[r >> 5] + layer.beyond[r]
        last = layer.begins[(r + 1) >> 5] + layer.beyond[r + 1]
        if layer.listed == 0:
            at = layer.marks[node] + (r - low) * each
            _add_bits(first, 1.0, layer.weight, layer.places, at, each, margin)
        for e in range(first, last if layer.listed else first):
            margin[_child(e, layer)] = real(layer.weight[e])
    return filled


@within
def _child(e: int, layer: Any) -> Any:
    """The child of an entry, of children that are listed."""
    if layer.listed == 1:
        return np.int64(layer.places[e])
    if layer.listed == 2:
        return np.int64(layer.places.view(np.uint16)[e])
    return np.int64(layer.places.view(np.uint32)[e])


@within
def _add_bits(
    e: int, x: float, weight: Any, places: Any, bits: int, each: int, margin: Any
) -> None:
    for first in range(0, each, 8):
        word = np.uint64(0)
        for b in range(min(each - first, 8)):
            word |= np.uint64(places[bits + first + b]) << np.uint64(8 * b)
        while word != np.uint64(0):
            margin[8 * first + np.int64(_lowest(word))] += x * real(weight[e])
            e += 1
            word &= word - np.uint64(1)
