"""Beam search in label trees: it descends from the root and keeps the best nodes of each row.

The score of a path is a sum over its nodes. A node with margin m adds one of these terms, which are
never above 0:

    hinge       -max(0, 1 - m)^3        fast, and as accurate as other terms
    logistic    log sigma(m)            log of a probability

At each level, the search keeps the `beam` best nodes of a row, and at the last level its best
labels. Several trees are searched one after the other, and the score of a label is

    log( 1/T sum over trees of exp(path score) )

where a tree adds 0 if the label is not among its max(k, beam, 20) best labels. If
the beam is as large as the number of labels, the search is exhaustive, and the scores equal those
of `exhaustive_scores`. Ties are ordered by the codes of the labels. Rows are searched in blocks, on
several threads; the results depend neither on the blocks nor on the number of threads.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.cached_njit import log_slow_compilation
from discriminant.extreme.model.fitted_tree import Forest, Ints, Layer, Reals, Tree

Floats = npt.NDArray[np.float64]

_BLOCK = 1 << 14  # number of rows that are searched together
_MIN_BLOCK = 256  # smallest number of rows for which a thread is used
_MIN_RANKED = 20  # smallest number of labels that each of several trees ranks


def search_top_k(
    forest: Forest, rows: Any, *, k: int, beam: int, threads: int = 1
) -> tuple[npt.NDArray[np.int32], Floats]:
    """Return codes (N, k) and scores (N, k) of the k best labels of each row.

    If the search reaches fewer labels, the remaining codes are -1 and the remaining scores -inf.

    Parameters
    ----------
    forest
        Fitted trees.
    rows
        CSR matrix (N, d) with sorted columns, or an object with the attributes `data`, `indices`,
        `indptr` and `shape`.
    k, beam
        Number of labels per row, and number of nodes kept at each level.
    threads
        Number of blocks of rows searched in parallel.
    """
    from discriminant.extreme.model import compiled_search

    N = rows.shape[0]
    forest_arrays = forest_addresses(forest)
    values = rows.data.astype(forest_arrays.kinds[3].dtype, copy=False)
    starts = rows.indptr.astype(np.int64, copy=False)
    places = rows.indices.astype(np.int32, copy=False)
    codes, scores = np.empty((N, k), np.int32), np.empty((N, k))
    per_tree = k if len(forest.trees) == 1 else max(k, beam, _MIN_RANKED)
    per_tree, is_hinge = min(forest_arrays.labels, per_tree), forest.path == "hinge"

    def search_block(first: int, last: int) -> None:
        compiled_search.search(
            forest_arrays.table, forest_arrays.trees, forest_arrays.kinds,
            starts[first : last + 1], places, values,
            is_hinge, forest.n_features, beam, per_tree, forest_arrays.labels,
            codes[first:last], scores[first:last],
        )  # fmt: skip

    if not compiled_search.search.overloads:  # type: ignore[attr-defined]
        with log_slow_compilation("search"):
            search_block(0, min(N, 1))  # compile the loops before the threads start
    size = min(_BLOCK, max(-(-N // threads), _MIN_BLOCK))
    if size >= N:
        search_block(0, N)
        return codes, scores
    firsts = range(0, N, size)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(search_block, firsts, (min(first + size, N) for first in firsts)))
    return codes, scores


# --- addresses of the arrays of a forest --------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ForestAddresses:
    """Memory addresses of the arrays of a forest; valid while this object exists."""

    table: Ints  # (layers of all trees, 19) int64; a row has sizes, then addresses
    trees: Ints  # (T + 1,) index of the first layer of each tree
    kinds: tuple[Reals, ...]  # empty arrays that have the types of feature, beyond, weight and bias
    labels: int
    arrays: list[Any]  # references that keep the arrays in memory


_CACHE: WeakKeyDictionary[Forest, ForestAddresses] = WeakKeyDictionary()


def forest_addresses(forest: Forest) -> ForestAddresses:
    """Return the addresses of the arrays of a forest, which are cached for each forest."""
    forest_arrays = _CACHE.get(forest)
    if forest_arrays is None:
        forest_arrays = _CACHE[forest] = _addresses(forest)
    return forest_arrays


def _addresses(forest: Forest) -> ForestAddresses:
    kinds = _kinds(forest)
    arrays: list[Any] = []
    table = [
        _row(layer, tree if at == len(tree.layers) - 1 else None, kinds, arrays)
        for tree in forest.trees
        for at, layer in enumerate(tree.layers)
    ]
    trees = np.cumsum([0, *(len(tree.layers) for tree in forest.trees)])
    empty = tuple(np.empty(0, np.uint16 if kind == np.float16 else kind) for kind in kinds)
    labels = len(forest.trees[0].label_of)
    return ForestAddresses(np.array(table, np.int64), trees, empty, labels, arrays)


def _kinds(forest: Forest) -> tuple[np.dtype[Any], ...]:
    """Return the widest types of feature, beyond, weight and bias over all layers."""
    layers = [layer for tree in forest.trees for layer in tree.layers]
    names = ("feature", "beyond", "weight")
    kinds = [np.result_type(*(getattr(layer, name) for layer in layers)) for name in names]
    return (*kinds, np.dtype(np.float64 if kinds[2] == np.float64 else np.float32))


def _row(
    layer: Layer, tree: Tree | None, kinds: tuple[np.dtype[Any], ...], arrays: list[Any]
) -> list[int]:
    """Return the row of the address table for one layer.

    `tree` is given only for a last layer, whose children are labels.
    """
    feature, beyond, weight, bias = kinds
    label_of = np.empty(0, np.int32) if tree is None else tree.label_of
    typed = (
        (layer.children, np.int64), (layer.chunks, np.int64), (layer.feature, feature),
        (layer.begins, np.int64), (layer.beyond, beyond), (layer.marks, np.int64),
        (layer.places, layer.places.dtype), (layer.weight, weight), (layer.bias, bias),
        (label_of, np.int32),
    )  # fmt: skip
    own = [np.ascontiguousarray(array, kind) for array, kind in typed]
    arrays += own
    listed = 0 if len(layer.marks) else layer.places.itemsize
    widest = int(np.diff(layer.children).max(initial=0))
    sizes = (len(layer.chunks) - 1, len(layer.feature), layer.places.nbytes, len(layer.weight))
    nodes = (len(layer.bias), len(label_of))
    addresses = (array.ctypes.data for array in own)
    return [*sizes, *nodes, listed, len(layer.marks), widest, *addresses]


# --- all labels ---------------------------------------------------------------------------------


def exhaustive_scores(forest: Forest, rows: Any) -> Floats:
    """Return the score of every label (N, L) by matrix products, without a beam."""
    scores = [_exhaustive_paths(forest, tree, rows) for tree in forest.trees]
    if len(scores) == 1:
        return scores[0]
    return np.asarray(np.logaddexp.reduce(scores, axis=0) - np.log(len(scores)))


def _exhaustive_paths(forest: Forest, tree: Tree, rows: Any) -> Floats:
    paths = np.zeros((rows.shape[0], 1))
    for layer in tree.layers:
        weights = layer_matrix(layer, forest.n_features)
        margins = np.asarray((rows.astype(np.float64) @ weights).todense()) + layer.bias
        siblings: Any = np.diff(layer.children)
        parent = np.repeat(np.arange(len(siblings)), siblings)
        paths = paths[:, parent] + path_terms(margins, forest.path)
    scores = np.empty_like(paths)
    scores[:, tree.label_of] = paths
    return scores


def path_terms(margins: Floats, path: str) -> Floats:
    """Return the terms that margins add to the scores of paths."""
    if path == "hinge":
        return np.asarray(-(np.maximum(0.0, 1.0 - margins) ** 3))
    return np.asarray(-np.logaddexp(0.0, -margins))


def layer_matrix(layer: Layer, n_features: int) -> sparse.csc_array:
    """Return the weights of a layer (d, C), with one column for each child of any parent."""
    per_row: Any = np.diff(layer.entries)
    per_chunk: Any = np.diff(layer.chunks)
    row_of = np.repeat(layer.feature, per_row)
    first = np.repeat(layer.children[:-1], per_chunk)  # parent of each row of a chunk
    column = np.repeat(first, per_row) + layer.child
    shape = (n_features, len(layer.bias))
    return sparse.coo_array((layer.weight.astype(np.float64), (row_of, column)), shape).tocsc()
