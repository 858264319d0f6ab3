"""Search: what a beam finds, against scores worked out label by label with plain arithmetic."""

import gc
import math
import pickle
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from discriminant.extreme.model.fitted_tree import Forest, Layer, Tree
from discriminant.extreme.model.search import exhaustive_scores, search_top_k

D = 30


def random_layer(rng, children, dtype=np.float32, density=0.4):
    """Weights at random; a parent of one child passes it down."""
    chunks, feature, entries, child, weight = [0], [], [0], [], []
    bias = rng.normal(-0.5, 0.5, children[-1])
    for first, last in pairwise(children):
        if last - first == 1:
            bias[first] = np.inf
        for f in range(D):
            held = np.flatnonzero(rng.random(last - first) < density) if last - first > 1 else []
            if len(held):
                feature.append(f)
                child.extend(held)
                weight.extend(0.3 * rng.normal(size=len(held)))
                entries.append(len(child))
        chunks.append(len(feature))
    return Layer.of(
        np.array(children, np.int64),
        np.array(chunks, np.int64),
        np.array(feature, np.int32),
        np.array(entries, np.int64),
        np.array(child, np.min_scalar_type(max(np.diff(children)) - 1)),
        np.array(weight, dtype),
        bias.astype(np.float64 if dtype == np.float64 else np.float32),
    )


def random_forest(seed, trees=3, dtype=np.float32, path="hinge", density=0.4):
    """Trees of three levels over 40 labels, some of whose nodes are leaves early."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(trees):
        layers = (
            random_layer(rng, [0, 4], dtype, density),
            random_layer(rng, [0, 3, 4, 9, 12], dtype, density),
            random_layer(rng, [0, 5, 9, 10, 11, 15, 20, 21, 25, 30, 33, 37, 40], dtype, density),
        )
        made.append(Tree(rng.permutation(40).astype(np.int32), layers))
    return Forest(tuple(made), D, path)


def random_rows(seed, N=60):
    rng = np.random.default_rng(seed)
    rows = sparse.random_array((N, D), density=0.3, format="csr", rng=rng)
    rows.data = rng.normal(size=rows.nnz)
    return rows


def scored_by_hand(forest, row):
    """The score of every label of one row: walk from each leaf up, in Python's own numbers."""
    held = dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
    found = []
    for tree in forest.trees:
        paths = [0.0]
        for layer in tree.layers:
            below = []
            for p, path in enumerate(paths):
                first, last = int(layer.children[p]), int(layer.children[p + 1])
                margins = [float(layer.bias[c]) for c in range(first, last)]
                for r in range(int(layer.chunks[p]), int(layer.chunks[p + 1])):
                    x = held.get(int(layer.feature[r]), 0.0)
                    for e in range(int(layer.entries[r]), int(layer.entries[r + 1])):
                        margins[int(layer.child[e])] += x * float(layer.weight[e])
                below += [path + term(m, forest.path) for m in margins]
            paths = below
        found.append({int(label): path for label, path in zip(tree.label_of, paths, strict=True)})
    return [
        math.log(sum(math.exp(paths[label]) for paths in found) / len(found))
        for label in range(len(found[0]))
    ]


def term(margin, path):
    if path == "hinge":
        return -(max(0.0, 1.0 - margin) ** 3)
    return -math.log1p(math.exp(-margin))


@pytest.mark.parametrize("path", ["hinge", "logistic"])
@pytest.mark.parametrize("trees", [1, 3])
def test_every_score_is_what_its_path_adds_up_to(path, trees):
    forest, rows = random_forest(1, trees, np.float64, path), random_rows(2, 8)
    by_hand = [scored_by_hand(forest, rows[[i]]) for i in range(8)]
    np.testing.assert_allclose(exhaustive_scores(forest, rows), by_hand, rtol=1e-9)


@pytest.mark.parametrize("path", ["hinge", "logistic"])
@pytest.mark.parametrize("trees", [1, 3])
@pytest.mark.parametrize("rows", [3, 60], ids=["few rows", "a block"])
def test_a_beam_of_all_leaves_leaves_nothing_out(path, trees, rows):
    forest, rows = random_forest(3, trees, np.float64, path), random_rows(4, rows)
    codes, scores = search_top_k(forest, rows, k=40, beam=40)
    whole = exhaustive_scores(forest, rows)
    np.testing.assert_allclose(scores, np.take_along_axis(whole, codes, 1), rtol=1e-9)
    assert np.array_equal(np.sort(codes, 1), np.tile(np.arange(40), (rows.shape[0], 1)))
    assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize("width", [50, 40_000], ids=["short rows", "long rows"])
def test_more_nodes_than_are_looked_through_at_once_are_all_visited(width):
    forest, rng = one_weight_a_feature(5, parents=40, width=width), np.random.default_rng(6)
    rows = sparse.csr_array(rng.normal(size=(3, width)) / np.sqrt(width))
    codes, scores = search_top_k(forest, rows, k=80, beam=40)
    whole = exhaustive_scores(forest, rows)
    np.testing.assert_allclose(scores, np.take_along_axis(whole, codes, 1), rtol=1e-9)
    assert np.array_equal(np.sort(codes, 1), np.tile(np.arange(80), (3, 1)))


def one_weight_a_feature(seed, parents, width):
    """A tree of two levels: parents of two children each; every second has all features."""
    rng = np.random.default_rng(seed)
    layers = []
    for above, below in ((1, parents), (parents, 2 * parents)):
        rows = width * np.where(np.arange(above) % 2, 0, 1)
        total, children = int(rows.sum()), below // above
        layers.append(
            Layer.of(
                np.arange(0, below + 1, children),
                np.concatenate([[0], np.cumsum(rows)]),
                np.tile(np.arange(width, dtype=np.int32), total // width),
                np.arange(total + 1),
                rng.integers(0, children, total).astype(np.uint8),
                rng.normal(size=total),
                rng.normal(-0.5, 0.5, below),
            )
        )
    return Forest((Tree(rng.permutation(2 * parents), tuple(layers)),), width, "hinge")


@pytest.mark.parametrize("round_", range(20))
def test_labels_that_few_trees_find_are_merged_whatever_lay_in_memory(round_):
    """Room for names beyond those that were found holds anything: it must not be looked at."""
    forest, rows = random_forest(7, 5, np.float32, "hinge"), random_rows(8, 1 + round_ % 3)
    junk = [np.full(4000 + 100 * j, 2**30 + round_, np.int32) for j in range(50)]
    junk += [np.full((rows.shape[0], 40), 3 + round_, kind) for kind in (np.int32, float) * 20]
    del junk
    codes, scores = search_top_k(forest, rows, k=40, beam=1)
    whole = exhaustive_scores(forest, rows)
    assert (codes < 40).all() and (codes[:, 0] >= 0).all()
    assert (codes[~np.isfinite(scores)] == -1).all() and (codes[np.isfinite(scores)] >= 0).all()
    assert (scores[codes < 0] == -np.inf).all()
    assert (scores[codes >= 0] <= np.take_along_axis(whole, codes, 1)[codes >= 0] + 1e-6).all()


@pytest.mark.parametrize("path", ["hinge", "logistic"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_margins_beyond_numbers_are_the_worst_and_no_nan(path, dtype):
    forest, rows = random_forest(9, 3, dtype, path), random_rows(10, 60)
    rows.data = (rows.data * 1e36).astype(rows.dtype)
    _, scores = search_top_k(forest, rows, k=5, beam=10)
    assert not np.isnan(scores).any()
    assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize("path", ["hinge", "logistic"])
@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize("rows", [3, 300], ids=["few rows", "a block"])
def test_the_few_best_are_the_first_of_all(path, k, rows):
    forest, rows = random_forest(5, 1, np.float64, path), random_rows(6, rows)
    few, best = search_top_k(forest, rows, k=k, beam=40), search_top_k(forest, rows, k=40, beam=40)
    for some, whole in zip(few, best, strict=True):
        np.testing.assert_array_equal(some, whole[:, :k])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("beam", [1, 3, 10])
@pytest.mark.parametrize("density", [0.05, 0.4], ids=["few weights", "chunks filled up"])
def test_no_answer_depends_on_the_batch_or_the_threads(dtype, beam, density):
    forest, rows = random_forest(5, dtype=dtype, density=density), random_rows(6, 900)
    codes, scores = search_top_k(forest, rows, k=5, beam=beam)
    for threads in (2, 3):
        again = search_top_k(forest, rows, k=5, beam=beam, threads=threads)
        assert np.array_equal(again[0], codes) and np.array_equal(again[1], scores)
    for i in range(0, 900, 37):
        alone = search_top_k(forest, rows[[i]], k=5, beam=beam)
        assert np.array_equal(alone[0][0], codes[i]) and np.array_equal(alone[1][0], scores[i])


@pytest.mark.parametrize("size", [1e-7, 6e-5, 1.0, 6e4], ids=["tiny", "least normal", "1", "large"])
def test_half_precision_is_read_as_numpy_reads_it(size):
    rng = np.random.default_rng(7)
    forest = random_forest(8, 1, np.float16)
    bits = [
        (rng.uniform(-size, size, len(layer.weight))).astype(np.float16) for layer in one(forest)
    ]
    half, single = (with_weights(forest, [b.astype(t) for b in bits]) for t in ("f2", "f4"))
    rows = random_rows(9, 40)
    for found, wanted in zip(
        search_top_k(half, rows, k=5, beam=3), search_top_k(single, rows, k=5, beam=3), strict=True
    ):
        assert np.array_equal(found, wanted)


def one(forest):
    return forest.trees[0].layers


def with_weights(forest, weights):
    layers = tuple(
        replace(layer, weight=values) for layer, values in zip(one(forest), weights, strict=True)
    )
    return Forest((Tree(forest.trees[0].label_of, layers),), D, forest.path)


def test_equal_scores_are_in_the_order_of_the_codes():
    bias = np.full(6, 2.0, np.float32)  # all are certain enough: a margin above 1 costs nothing
    none = np.zeros(1, np.int64)
    layer = Layer.of(
        np.array([0, 6]), np.array([0, 0]), none[:0].astype(np.int32), none,
        none[:0].astype(np.uint8), none[:0].astype(np.float32), bias,
    )  # fmt: skip
    forest = Forest((Tree(np.array([3, 5, 0, 4, 1, 2], np.int32), (layer,)),), D, "hinge")
    codes, _ = search_top_k(forest, random_rows(0, 20), k=4, beam=1)
    assert codes.tolist() == [[0, 1, 2, 3]] * 20


def test_beyond_the_last_label_there_is_none():
    forest, rows = random_forest(10, 1), random_rows(11, 20)
    codes, scores = search_top_k(forest, rows, k=50, beam=40)
    assert (codes[:, 40:] == -1).all() and (scores[:, 40:] == -np.inf).all()
    assert (codes[:, :40] >= 0).all()


def test_a_narrow_beam_finds_labels_of_the_nodes_it_kept():
    forest, rows = random_forest(12, 1, np.float64), random_rows(13, 30)
    codes, scores = search_top_k(forest, rows, k=3, beam=2)
    whole = exhaustive_scores(forest, rows)
    found = codes >= 0
    taken = np.take_along_axis(whole, np.maximum(codes, 0), 1)
    np.testing.assert_allclose(scores[found], taken[found], rtol=1e-9)
    assert (scores[:, 0] <= whole.max(axis=1) + 1e-9).all()


def test_a_row_without_features_goes_by_the_biases():
    forest = random_forest(14, 1, np.float64)
    codes, _ = search_top_k(forest, sparse.csr_array((1, D)), k=1, beam=40)
    assert codes[0, 0] == np.argmax(scored_by_hand(forest, sparse.csr_array((1, D))))


def test_relabelling_relabels_the_answers():
    forest, rows = random_forest(15), random_rows(16)
    moved = np.random.default_rng(17).permutation(40).astype(np.int32)
    trees = tuple(Tree(moved[tree.label_of], tree.layers) for tree in forest.trees)
    codes, scores = search_top_k(forest, rows, k=5, beam=4)
    again = search_top_k(Forest(trees, D, "hinge"), rows, k=5, beam=4)
    assert np.array_equal(again[0], moved[codes])
    np.testing.assert_allclose(again[1], scores, rtol=1e-12)


@pytest.mark.parametrize("rows", [3, 60], ids=["few rows", "a block"])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32])
def test_children_as_bits_and_listed_give_the_same_bits(rows, kind):
    forest, rows = random_forest(18), random_rows(19, rows)
    trees = tuple(
        Tree(tree.label_of, tuple(listed(layer, kind) for layer in tree.layers))
        for tree in forest.trees
    )
    assert all(len(layer.marks) for tree in forest.trees for layer in tree.layers)
    found, again = (search_top_k(f, rows, k=5, beam=4) for f in (forest, Forest(trees, D, "hinge")))
    assert np.array_equal(found[0], again[0]) and np.array_equal(found[1], again[1])


def listed(layer, kind):
    return replace(layer, marks=layer.marks[:0], places=layer.child.astype(kind))


def test_a_parent_of_many_children_is_searched_by_their_bits():
    rng = np.random.default_rng(20)
    layer = random_layer(rng, [0, 700])
    forest = Forest((Tree(rng.permutation(700).astype(np.int32), (layer,)),), D, "hinge")
    rows = random_rows(21, 40)
    assert len(layer.marks) and np.array_equal(
        search_top_k(forest, rows, k=1, beam=1)[0][:, 0],
        exhaustive_scores(forest, rows).argmax(axis=1),
    )


def test_features_beyond_two_bytes_are_found():
    forest, rows = random_forest(22), random_rows(23)
    far = 100_000
    trees = tuple(
        Tree(
            tree.label_of,
            tuple(replace(la, feature=la.feature.astype(np.int32) + far) for la in tree.layers),
        )
        for tree in forest.trees
    )
    moved = sparse.csr_array((rows.data, rows.indices + far, rows.indptr), (60, far + D))
    found = search_top_k(Forest(trees, far + D, "hinge"), moved, k=5, beam=4)
    assert np.array_equal(found[0], search_top_k(forest, rows, k=5, beam=4)[0])


def test_a_copy_of_a_forest_is_searched_where_it_lies():
    forest, rows = random_forest(24), random_rows(25)
    wanted = search_top_k(forest, rows, k=5, beam=4)
    copies = pickle.loads(pickle.dumps(forest)), deepcopy(forest)
    del forest
    gc.collect()
    for copy in copies:
        assert np.array_equal(search_top_k(copy, rows, k=5, beam=4)[1], wanted[1])


@pytest.mark.parametrize("path", ["hinge", "logistic"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_margin_that_is_no_number_is_the_worst(path, dtype):
    """Two weights of other signs, and values so large that both products are infinite."""
    large = float(np.finfo(dtype).max)
    layer = Layer.of(
        np.array([0, 3]), np.array([0, 2]), np.array([0, 1], np.int32), np.array([0, 1, 2]),
        np.array([0, 0], np.uint8), np.array([4, -4], dtype), np.array([0.0, 0.5, -3.0], dtype),
    )  # fmt: skip
    forest = Forest((Tree(np.arange(3), (layer,)),), 2, path)
    codes, scores = search_top_k(forest, sparse.csr_array(np.array([[large, large]])), k=3, beam=3)
    assert (codes.tolist(), np.isfinite(scores).all()) == ([[1, 2, 0]], True)
