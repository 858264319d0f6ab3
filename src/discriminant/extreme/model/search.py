"""Search: from the root down, keeping the best few nodes of each row.

A child with margin m adds a term to the score of the path that leads to it, never above 0:

    hinge       -max(0, 1 - m)^3        quick, and as precise as any
    logistic    log sigma(m)            the log of a probability

At each level a row keeps its `beam` best nodes, and at the end its best labels. Several trees are
asked one by one, and a label scores

    log( 1/T sum over trees of exp(path score) )

where a tree that did not find it among its max(k, beam, 20) best adds nothing. With a beam as wide
as there are labels nothing is left out, and the scores are those of `everything`. Equal scores are
in the order of the labels' codes. Rows are searched in blocks, on several threads; no answer
depends on either.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.extreme.model.tree import Forest, Ints, Layer, Reals, Tree
from discriminant.numba_cache import log_slow_compilation

Floats = npt.NDArray[np.float64]

_BLOCK = 1 << 14  # rows searched together
_LEAST = 256  # rows that are worth a thread
_KEPT = 20  # labels that each of several trees says at least


def search_top_k(
    forest: Forest, rows: Any, *, k: int, beam: int, threads: int = 1
) -> tuple[npt.NDArray[np.int32], Floats]:
    """The k best labels of each row: codes (N, k), scores (N, k); -1 and -inf beyond the last.

    Parameters
    ----------
    rows
        (N, d) CSR, or anything of its data, indices, indptr and shape; columns in rising order.
    k, beam
        Labels to find, and nodes to keep at each level.
    threads
        How many blocks of rows are searched at the same time.
    """
    from discriminant.extreme.model import kernels_search

    N = rows.shape[0]
    told = forest_addresses(forest)
    values = rows.data.astype(told.kinds[3].dtype, copy=False)
    starts = rows.indptr.astype(np.int64, copy=False)
    places = rows.indices.astype(np.int32, copy=False)
    codes, scores = np.empty((N, k), np.int32), np.empty((N, k))
    kept = min(told.labels, k if len(forest.trees) == 1 else max(k, beam, _KEPT))
    asked = (forest.path == "hinge", forest.n_features, beam, kept, told.labels)

    def block(first: int, last: int) -> None:
        within = starts[first : last + 1], places, values
        held = codes[first:last], scores[first:last]
        given: tuple[Any, ...] = (told.table, told.trees, told.kinds, *within, *asked, *held)
        kernels_search.search(*given)

    if not kernels_search.search.overloads:  # type: ignore[attr-defined]
        with log_slow_compilation("search"):
            block(0, min(N, 1))  # so that threads find them compiled
    size = min(_BLOCK, max(-(-N // threads), _LEAST))
    if size >= N:
        block(0, N)
        return codes, scores
    ends = [(first, min(first + size, N)) for first in range(0, N, size)]
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(block, *end) for end in ends]:
            done.result()
    return codes, scores


# --- a forest as the loops see it ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ForestAddresses:
    """Where the arrays of a forest lie, for as long as it lives."""

    table: Ints  # (layers of all trees, 19) int64: sizes, then addresses
    trees: Ints  # (T + 1,) the first layer of each tree
    kinds: tuple[Reals, ...]  # empty arrays of the kinds of feature, beyond, weight and bias
    labels: int
    arrays: list[Any]  # what addresses are of


_TOLD: WeakKeyDictionary[Forest, ForestAddresses] = WeakKeyDictionary()


def forest_addresses(forest: Forest) -> ForestAddresses:
    """Where its arrays lie; found once. A copy of a forest is another forest."""
    told = _TOLD.get(forest)
    if told is None:
        told = _TOLD[forest] = _addresses(forest)
    return told


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
    """Of feature, beyond, weight and bias: the widest there is of each."""
    layers = [layer for tree in forest.trees for layer in tree.layers]
    names = ("feature", "beyond", "weight")
    found = [np.result_type(*(getattr(layer, name) for layer in layers)) for name in names]
    real = np.dtype(np.float64 if found[2] == np.float64 else np.float32)
    return (*found, real)


def _row(
    layer: Layer, tree: Tree | None, kinds: tuple[np.dtype[Any], ...], arrays: list[Any]
) -> list[int]:
    """One row of the table; `tree` is that of a last layer, whose children have names."""
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
    """(N, L) the score of every label, with no beam: by products of matrices."""
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
    """What margins add to the scores of paths."""
    if path == "hinge":
        return np.asarray(-(np.maximum(0.0, 1.0 - margins) ** 3))
    return np.asarray(-np.logaddexp(0.0, -margins))


def layer_matrix(layer: Layer, n_features: int) -> sparse.csc_array:
    """(d, C) the weights of a layer, one column for each child of any parent."""
    per_row: Any = np.diff(layer.entries)
    per_chunk: Any = np.diff(layer.chunks)
    row_of = np.repeat(layer.feature, per_row)
    first = np.repeat(layer.children[:-1], per_chunk)  # of each row of a chunk
    column = np.repeat(first, per_row) + layer.child
    shape = (n_features, len(layer.bias))
    return sparse.coo_array((layer.weight.astype(np.float64), (row_of, column)), shape).tocsc()
