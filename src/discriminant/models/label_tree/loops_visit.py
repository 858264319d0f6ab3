"""Loops of the search: what a row finds in the chunks of nodes that it has reached.

This file brings Numba along, and is itself imported when a search is about to run.

Features of a row are first looked for in a chunk (`halved`, unless a map of the chunk is at hand),
then what it has of them is summed (`visit`). Every way of summing adds in the order of features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.models.label_tree.loops_best import keep
from discriminant.models.label_tree.loops_chunks import add_bits, real
from discriminant.models.label_tree.loops_lanes import fetched
from discriminant.moments.compiling import within


@within
def visit(
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
def halved(
    features: Any, begin: int, end: int, nodes: Any, layer: Any, spots: Any, left: Any
) -> None:
    """Where the features of a row are in the chunks of some nodes, -1 where they are not.

    All are searched for at the same time, half by half: none waits for what another asks of memory.
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


@within
def ask(count: int, nodes: Any, layer: Any, spots: Any) -> None:
    """Ask for what the sums of a row need, of some nodes: where entries begin, then these."""
    for q in range(len(nodes)):
        node = nodes[q]
        low, first, last = layer.chunks[node], layer.children[node], layer.children[node + 1]
        each = (last - first + 7) >> 3
        for c in range(first, last, 16):
            fetched(layer.bias, c)
        for p in range(count):
            r = spots[q, p]
            if r >= 0:
                fetched(layer.beyond, r)
                fetched(layer.begins, r >> 5)
                if layer.listed == 0:
                    fetched(layer.places, layer.marks[node] + (r - low) * each)
    for q in range(len(nodes)):
        for p in range(count):
            r = spots[q, p]
            if r >= 0:
                e = layer.begins[r >> 5] + layer.beyond[r]
                fetched(layer.weight, e)
                if layer.listed:
                    fetched(layer.places, e * layer.listed)
