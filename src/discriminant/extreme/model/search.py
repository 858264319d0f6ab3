"""Beam search in label trees: from the root down, keeping the best nodes of each row.

A child with margin m adds a term to the score of its path, never above 0:

    hinge       -max(0, 1 - m)^3        fast, and as accurate as any
    logistic    log sigma(m)            log of a probability

At each level a row keeps its `beam` best nodes, and at the end its best labels. Several trees are
searched one by one, and the score of a label is

    log( 1/T sum over trees of exp(path score) )

where a tree that does not rank it among its max(k, beam, 20) best adds nothing. With a beam as wide
as the number of labels the search is exhaustive, and the scores are those of `exhaustive_scores`.
Ties are ordered by the codes of the labels. Rows are searched in blocks, on several threads; the
results depend on neither.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.extreme.model.fitted_tree import Forest, Ints, Layer, Reals, Tree
from discriminant.numba_cache import log_slow_compilation

Floats = npt.NDArray[np.float64]

_BLOCK = 1 << 14  # rows searched together
_LEAST = 256  # smallest block of rows for a thread
_KEPT = 20  # labels that each of several trees ranks at least


def search_top_k(
    forest: Forest, rows: Any, *, k: int, beam: int, threads: int = 1
) -> tuple[npt.NDArray[np.int32], Floats]:
    """Return codes (N, k) and scores (N, k) of the best labels; -1 and -inf beyond the last.

    Parameters
    ----------
    rows
        (N, d) CSR matrix, or an object with its data, indices, indptr and shape; sorted columns.
    k, beam
        Labels per row, and nodes kept at each level.
    threads
        Number of blocks of rows searched in parallel.
    """
    from discriminant.extreme.model import kernels_search

    N = rows.shape[0]
    forest_arrays = forest_addresses(forest)
    values = rows.data.astype(forest_arrays.kinds[3].dtype, copy=False)
    starts = rows.indptr.astype(np.int64, copy=False)
    places = rows.indices.astype(np.int32, copy=False)
    codes, scores = np.empty((N, k), np.int32), np.empty((N, k))
    kept = min(forest_arrays.labels, k if len(forest.trees) == 1 else max(k, beam, _KEPT))
    asked = (forest.path == "hinge", forest.n_features, beam, kept, forest_arrays.labels)

    def block(first: int, last: int) -> None:
        within = starts[first : last + 1], places, values
        held = codes[first:last], scores[first:last]
        given: tuple[Any, ...] = (
            forest_arrays.table,
            forest_arrays.trees,
            forest_arrays.kinds,
            *within,
            *asked,
            *held,
        )
        kernels_search.search(*given)

    if not kernels_search.search.overloads:  # type: ignore[attr-defined]
        with log_slow_compilation("search"):
            block(0, min(N, 1))  # compile before the threads start
    size = min(_BLOCK, max(-(-N // threads), _LEAST))
    if size >= N:
        block(0, N)
        return codes, scores
    ends = [(first, min(first + size, N)) for first in range(0, N, size)]
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(block, *end) for end in ends]:
            done.result()
    return codes, scores


# --- addresses of the arrays of a forest --------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ForestAddresses:
    """Addresses of the arrays of a forest, valid while it exists."""

    table: Ints  # (layers of all trees, 19) int64: sizes, then addresses
    trees: Ints  # (T + 1,) the first layer of each tree
    kinds: tuple[Reals, ...]  # empty arrays with the types of feature, beyond, weight and bias
    labels: int
    arrays: list[Any]  # keeps the arrays alive


_CACHE: WeakKeyDictionary[Forest, ForestAddresses] = WeakKeyDictionary()


def forest_addresses(forest: Forest) -> ForestAddresses:
    """Return the addresses of a forest, cached per object."""
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
    """Widest types of feature, beyond, weight and bias over all layers."""
    layers = [layer for tree in forest.trees for layer in tree.layers]
    names = ("feature", "beyond", "weight")
    found = [np.result_type(*(getattr(layer, name) for layer in layers)) for name in names]
    real = np.dtype(np.float64 if found[2] == np.float64 else np.float32)
    return (*found, real)


def _row(
    layer: Layer, tree: Tree | None, kinds: tuple[np.dtype[Any], ...], arrays: list[Any]
) -> list[int]:
    """One row of the table; `tree` is passed for a last layer, whose children are labels."""
    feature, beyond, weight, bias = kinds
    label_of = np.empty(0, np.int32) if tree is None else tree.label_of
    held = (
        (layer.children, np.int64), (layer.chunks, np.int64), (layer.feature, feature),
        (layer.begins, np.int64), (layer.beyond, beyond), (layer.marks, np.int64),
        (layer.places, layer.places.dtype), (layer.weight, weight), (layer.bias, bias),
        (label_of, np.int32),
    )  # fmt: skip
    ready = [np.ascontiguousarray(array, kind) for array, kind in held]
    arrays += ready
    listed = 0 if len(layer.marks) else layer.places.itemsize
    widest = int(np.diff(layer.children).max(initial=0))
    sizes = (len(layer.chunks) - 1, len(layer.feature), layer.places.nbytes, len(layer.weight))
    nodes = (len(layer.bias), len(label_of))
    return [*sizes, *nodes, listed, len(layer.marks), widest, *(one.ctypes.data for one in ready)]


# --- all labels ---------------------------------------------------------------------------------


def exhaustive_scores(forest: Forest, rows: Any) -> Floats:
    """Return the score (N, L) of every label, without a beam, by matrix products."""
    scores = [_whole(forest, tree, rows) for tree in forest.trees]
    if len(scores) == 1:
        return scores[0]
    return np.asarray(np.logaddexp.reduce(scores, axis=0) - np.log(len(scores)))


def _whole(forest: Forest, tree: Tree, rows: Any) -> Floats:
    paths = np.zeros((rows.shape[0], 1))
    for layer in tree.layers:
        weights = layer_matrix(layer, forest.n_features)
        margins = np.asarray((rows.astype(np.float64) @ weights).todense()) + layer.bias
        siblings: Any = np.diff(layer.children)
        above = np.repeat(np.arange(len(siblings)), siblings)
        paths = paths[:, above] + path_terms(margins, forest.path)
    found = np.empty_like(paths)
    found[:, tree.label_of] = paths
    return found


def path_terms(margins: Floats, path: str) -> Floats:
    """Terms that margins add to path scores."""
    if path == "hinge":
        return np.asarray(-(np.maximum(0.0, 1.0 - margins) ** 3))
    return np.asarray(-np.logaddexp(0.0, -margins))


def layer_matrix(layer: Layer, n_features: int) -> sparse.csc_array:
    """Return the weights (d, C) of a layer, one column for each child of any parent."""
    per_row: Any = np.diff(layer.entries)
    per_chunk: Any = np.diff(layer.chunks)
    row_of = np.repeat(layer.feature, per_row)
    first = np.repeat(layer.children[:-1], per_chunk)  # of each row of a chunk
    column = np.repeat(first, per_row) + layer.child
    shape = (n_features, len(layer.bias))
    return sparse.coo_array((layer.weight.astype(np.float64), (row_of, column)), shape).tocsc()
