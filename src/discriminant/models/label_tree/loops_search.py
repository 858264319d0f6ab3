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

A single row waits for memory more than for sums: its features are looked for in the chunks of all
its nodes at once, half by half, and what their sums need is asked for ahead.

A single row takes less time than to tell Python's arrays to a loop, layer by layer. So a forest is
told once, as a table of the addresses of its arrays (`addresses`), and one call does all.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numba
import numpy as np

from discriminant.models.label_tree.loops_best import merge, sort
from discriminant.models.label_tree.loops_chunks import (
    filled as filled_up,
    is_full,
    pointer,
    spread as spread_out,
)
from discriminant.models.label_tree.loops_visit import ask, halved, visit
from discriminant.moments.compiling import compiled, within

carray: Any = cast(Any, numba).carray
_FEW = 16  # rows that are searched one by one
_TOGETHER = 16  # nodes of such a row whose chunks are looked through at once; of long rows fewer:
_ROOM = 1 << 18  # places that are found at once


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
    are the answer. `spots` has room for the entries of any row, of some nodes.
    """
    lengths[:] = 0
    rows, parents = len(starts) - 1, len(layer.chunks) - 1
    given = starts, features, values, nodes, paths, counts, layer, hinge
    if rows < _FEW or rows * nodes.shape[1] < parents:
        _row_by_row(*given, spots, found, scores, lengths)
    else:
        _node_by_node(*given, width, spots, found, scores, lengths)
    for i in range(rows):
        sort(found, scores, i, lengths[i])


@compiled
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
    """For few rows: some nodes of one at a time."""
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
            halved(features, begin, end, some, layer, spots, left)
            ask(end - begin, some, layer, spots)
            for t in range(first, last):
                if _passed(i, paths[i, t], found, scores, lengths):
                    break
                visit(
                    i, nodes[i, t], paths[i, t], begin, end, values, layer, hinge, False, False,
                    spots[t - first], none, nothing, margin, found, scores, lengths,
                )  # fmt: skip


@within
def _passed(i: int, path: float, found: Any, scores: Any, lengths: Any) -> Any:
    """Whether no child of a node with such a path is among the best of row i."""
    return lengths[i] == found.shape[1] and path < scores[i, 0]


@compiled
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
    """For many rows: all that have reached a node."""
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
        full = mapped and is_full(node, layer)
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
                halved(features, begin, end, nodes[i, t : t + 1], layer, spots, left)
            visit(
                i, node, paths[i, t], begin, end, values, layer, hinge, mapped, full,
                spots[0], spread, filled, margin, found, scores, lengths,
            )  # fmt: skip


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


@compiled
def _longest(starts: Any) -> Any:
    """Entries of a row, at most."""
    most = np.int64(0)
    for i in range(len(starts) - 1):
        most = max(most, starts[i + 1] - starts[i])
    return most
