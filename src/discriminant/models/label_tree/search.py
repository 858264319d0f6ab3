"""Search: from the root down, keeping the best few nodes of each row.

A child with margin m adds a term to the score of the path that leads to it, never above 0:

    hinge       -max(0, 1 - m)^3        quick, and as precise as any
    logistic    log sigma(m)            the log of a probability

At each level a row keeps its `beam` best nodes, and at the end its best labels. Several trees are
asked one by one, and a label scores

    log( 1/T sum over trees of exp(path score) )

where a tree that did not find it adds nothing. With a beam as wide as there are labels nothing is
left out, and the scores are those of `everything`. Equal scores are in the order of the labels'
codes. Rows are searched in blocks, on several threads; no answer depends on either.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.models.label_tree.layers import Forest, Ints, Layer, Reals, Tree

Floats = npt.NDArray[np.float64]

_BLOCK = 1 << 14  # rows searched together
_LEAST = 256  # rows that are worth a thread
_KEPT = 20  # labels that each of several trees says at least
_PATIENCE = 1.0  # seconds of compiling after which it is told
_NO_LABELS = np.empty(0, np.int32)
_NO_LABELS.flags.writeable = False


def top(
    forest: Forest, rows: Any, *, k: int, beam: int, threads: int = 1
) -> tuple[npt.NDArray[np.int32], Floats]:
    """The k best labels of each row: codes (N, k), scores (N, k); -1 and -inf beyond the last.

    Parameters
    ----------
    rows
        (N, d) CSR, its columns in rising order.
    k, beam
        Labels to find, and nodes to keep at each level.
    threads
        How many blocks of rows are searched at the same time.
    """
    from discriminant.models.label_tree.loops_search import descend

    N = rows.shape[0]
    values = rows.data.astype(_real_of(forest), copy=False)
    starts = rows.indptr.astype(np.int64, copy=False)
    places = rows.indices.astype(np.int32, copy=False)
    codes = np.full((N, k), -1, np.int32)
    scores = np.full((N, k), -np.inf)

    def block(first: int, last: int) -> None:
        within = starts[first : last + 1]
        _search(forest, (within, places, values), beam, codes[first:last], scores[first:last])

    if not descend.signatures:  # type: ignore[attr-defined]
        _compile(block, N)
    size = min(_BLOCK, max(-(-N // threads), _LEAST))
    if size >= N:
        block(0, N)
        return codes, scores
    ends = [(first, min(first + size, N)) for first in range(0, N, size)]
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(block, *end) for end in ends]:
            done.result()
    return codes, scores


def _compile(work: Callable[[int, int], None], rows: int) -> None:
    """Answer one row, so that threads find the loops compiled; say so where that takes long."""
    text = "Compiling the loops that search label trees: some 10 seconds, once on this machine."
    timer = threading.Timer(_PATIENCE, logging.getLogger("discriminant").warning, [text])
    timer.daemon = True
    timer.start()
    try:
        work(0, min(rows, 1))
    finally:
        timer.cancel()


def _search(
    forest: Forest, rows: tuple[Ints, Ints, Reals], beam: int, codes: Ints, scores: Reals
) -> None:
    """Fill in the best labels of a block of rows."""
    from discriminant.models.label_tree.loops_search import merge

    N, k = codes.shape
    T, L = len(forest.trees), len(forest.trees[0].label_of)
    kept = min(L, k if T == 1 else max(k, beam, _KEPT))
    names, paths = np.empty((T, N, kept), np.int32), np.empty((T, N, kept))
    lengths = np.empty((T, N), np.int64)
    for t, tree in enumerate(forest.trees):
        _descend(forest, tree, rows, beam, (names[t], paths[t], lengths[t]))
    merge(names, paths, lengths, codes, scores)


def _descend(
    forest: Forest, tree: Tree, rows: tuple[Ints, Ints, Reals], beam: int, best: tuple[Any, ...]
) -> None:
    """Fill in the labels that a tree finds, their path scores, and how many each row has."""
    from discriminant.models.label_tree.loops_search import descend

    N, hinge, last = len(rows[0]) - 1, forest.path == "hinge", len(tree.layers) - 1
    held: tuple[Any, ...] = np.zeros((N, 1), np.int32), np.zeros((N, 1)), np.ones(N, np.int64)
    for at, layer in enumerate(tree.layers):
        found, names = best, tree.label_of
        if at < last:
            most = min(beam, len(layer.bias))
            found = np.empty((N, most), np.int32), np.empty((N, most)), np.empty(N, np.int64)
            names = _NO_LABELS
        sizes = (hinge, forest.n_features, _widest(layer))
        given: tuple[Any, ...] = (*rows, *held, *_arrays(layer), names, *sizes, *found)
        descend(*given)
        held = found


def _arrays(layer: Layer) -> tuple[Any, ...]:
    """What the loops are given; half precision as its bits."""
    weight = layer.weight.view(np.uint16) if layer.weight.dtype == np.float16 else layer.weight
    return (
        layer.children,
        layer.chunks,
        layer.feature,
        layer.entries,
        layer.child,
        weight,
        layer.bias,
    )


def _widest(layer: Layer) -> int:
    """At least as many as any parent has children."""
    if layer.child.dtype == np.uint8:
        return 256
    return int(np.diff(layer.children).max(initial=0))


def _real_of(forest: Forest) -> type[np.floating[Any]]:
    """The numbers that are summed."""
    double = any(layer.weight.dtype == np.float64 for tree in forest.trees for layer in tree.layers)
    return np.float64 if double else np.float32


# --- all labels ---------------------------------------------------------------------------------


def everything(forest: Forest, rows: Any) -> Floats:
    """(N, L) the score of every label, with no beam: by products of matrices."""
    scores = [_whole(forest, tree, rows) for tree in forest.trees]
    if len(scores) == 1:
        return scores[0]
    return np.asarray(np.logaddexp.reduce(scores, axis=0) - np.log(len(scores)))


def _whole(forest: Forest, tree: Tree, rows: Any) -> Floats:
    paths = np.zeros((rows.shape[0], 1))
    for layer in tree.layers:
        weights = as_matrix(layer, forest.n_features)
        margins = np.asarray((rows.astype(np.float64) @ weights).todense()) + layer.bias
        siblings: Any = np.diff(layer.children)
        above = np.repeat(np.arange(len(siblings)), siblings)
        paths = paths[:, above] + path_terms(margins, forest.path)
    found = np.empty_like(paths)
    found[:, tree.label_of] = paths
    return found


def path_terms(margins: Floats, path: str) -> Floats:
    """What margins add to the scores of paths."""
    if path == "hinge":
        return np.asarray(-(np.maximum(0.0, 1.0 - margins) ** 3))
    return np.asarray(-np.logaddexp(0.0, -margins))


def as_matrix(layer: Layer, n_features: int) -> sparse.csc_array:
    """(d, C) the weights of a layer, one column for each child of any parent."""
    per_row: Any = np.diff(layer.entries.astype(np.int64))
    per_chunk: Any = np.diff(layer.chunks)
    row_of = np.repeat(layer.feature, per_row)
    first = np.repeat(layer.children[:-1], per_chunk)  # of each row of a chunk
    column = np.repeat(first, per_row) + layer.child
    shape = (n_features, len(layer.bias))
    return sparse.coo_array((layer.weight.astype(np.float64), (row_of, column)), shape).tocsc()
