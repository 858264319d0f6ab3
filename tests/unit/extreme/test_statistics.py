"""The shape of label trees, counted another way: by hand, label by label, and by np.unique."""

from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

import discriminant as dd
from discriminant.extreme.model.fitted_tree import (
    CountRange,
    Forest,
    Layer,
    LevelStatistics,
    Tree,
    forest_statistics,
)

pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    X = sparse.random_array((300, 60), density=0.15, format="csr", rng=rng)
    Y = (sparse.random_array((300, 40), density=0.06, format="csr", rng=rng) > 0).astype(np.int8)
    Y = sparse.lil_array(Y)
    Y[:, [7, 21]] = 0  # labels without rows
    return X, sparse.csr_array(Y)


@pytest.fixture(scope="module", params=["balanced", "wide", "huffman", "one-vs-rest"])
def model(rows, request):
    return dd.LabelTree(tree=request.param, trees=2, arity=4, leaf=5).fit(*rows)


def layer(children, features, entries, child, bias):
    """A layer whose chunks are the features of each parent."""
    chunks = np.cumsum([0, *map(len, features)])
    weight = np.ones(len(child), np.float32)
    flat = np.array([one for some in features for one in some], dtype=np.int32)
    places = (np.array(children), chunks, flat, np.array(entries), np.array(child, np.uint8))
    return Layer.of(*places, weight, np.array(bias, dtype=np.float32))


@pytest.fixture
def by_hand():
    """Over four labels: three below one child of the root, and one that is the other child."""
    root = layer([0, 2], [[0, 4]], [0, 2, 3], [0, 1, 0], [0.5, -0.5])
    below = layer([0, 3, 4], [[1, 4, 9], []], [0, 1, 3, 4], [2, 0, 1, 1], [0, 0, 0, np.inf])
    return Forest((Tree(np.array([2, 0, 3, 1]), (root, below)),), 10, "hinge")


def test_a_tree_made_by_hand_has_the_levels_that_it_was_given(by_hand):
    root, below = by_hand.trees[0].layers
    found = forest_statistics(by_hand)[0].levels
    size = [sum(getattr(one, field.name).nbytes for field in fields(one)) for one in (root, below)]
    wanted = (
        LevelStatistics(1, CountRange(2, 2.0, 2, 1), 2, 3, 2, size[0]),
        LevelStatistics(1, CountRange(3, 3.0, 3, 1), 3, 4, 3, size[1]),
    )
    assert found == wanted


def test_a_label_that_is_passed_down_is_no_deeper_for_it(by_hand):
    tree = forest_statistics(by_hand)[0]
    assert (tree.depth, tree.leaf) == (CountRange(1, 2.0, 2, 4), CountRange(1, 2.0, 3, 2))


def paths(tree):
    """Of each label the nodes of its path: (place among its parent's level, asked about)."""
    for place in range(len(tree.label_of)):
        node, path = place, []
        for step in reversed(tree.layers):
            path.append((int(np.searchsorted(step.children, node, side="right")) - 1, node))
            node = path[-1][0]
        yield list(reversed(path))


def test_depths_and_last_nodes_are_those_met_on_the_way_to_each_label(model):
    for tree, found in zip(model.forest_.trees, forest_statistics(model.forest_), strict=True):
        depths, last = [], []
        for path in paths(tree):
            asked = [
                np.isfinite(step.bias[n]) for step, (_, n) in zip(tree.layers, path, strict=True)
            ]
            depths.append(sum(asked))
            level = max(i for i, one in enumerate(asked) if one)
            last.append((level, path[level][0]))
        sizes = np.unique(last, axis=0, return_counts=True)[1]
        wanted = (min(depths), np.median(depths), max(depths), len(depths))
        assert found.depth == wanted
        assert found.leaf == (sizes.min(), np.median(sizes), sizes.max(), len(sizes))


def test_levels_count_the_entries_children_and_features_that_there_are(model):
    for tree, found in zip(model.forest_.trees, forest_statistics(model.forest_), strict=True):
        for step, level in zip(tree.layers, found.levels, strict=True):
            own = [np.isfinite(step.bias[lo:hi]).sum() for lo, hi in pairwise(step.children)]
            own = [n for n in own if n]
            assert level.nodes == len(own)
            assert level.children == (min(own), np.median(own), max(own), len(own))
            assert (level.classifiers, level.weights) == (sum(own), len(step.child))
            assert level.features == len(np.unique(step.feature))


def test_a_beam_as_wide_as_the_tree_meets_every_classifier(model):
    found = forest_statistics(model.forest_)
    asked = [
        sum(int(np.isfinite(step.bias).sum()) for step in tree.layers)
        for tree in model.forest_.trees
    ]
    assert [tree.met(10**6) for tree in found] == asked


def test_the_summary_knows_rows_labels_and_those_without_rows(rows, model):
    found = model.summary()
    counts = rows[1].toarray().sum(axis=0)
    assert np.array_equal(model.label_rows_, counts)
    wanted = (300, 40, 60, int((counts == 0).sum()), model.n_weights_)
    told = (found.rows, found.labels, found.features, found.unseen, found.weights)
    assert told == wanted and found.unseen >= 2
    assert f"{found.unseen} labels had no row" in str(found)


def test_a_model_left_in_its_file_says_the_same(model, tmp_path):
    model.save(tmp_path / "tree.model")
    assert str(dd.load(tmp_path / "tree.model").summary()) == str(model.summary())


def test_the_table_of_trees_of_one_shape_sums_their_weights(rows):
    model = dd.LabelTree(trees=3, arity=4, leaf=5).fit(*rows)
    found = model.summary()
    assert sum(len(places) for places in found.tree_groups) == 3
    levels = [line.split() for line in str(found).splitlines() if "%" in line]
    assert sum(int(words[4].replace(",", "")) for words in levels) == model.n_weights_


def test_a_model_saved_without_counts_still_has_a_summary(rows):
    model = dd.LabelTree(trees=1).fit(*rows)
    del model.label_rows_, model.n_rows_
    assert model.summary().rows is None and "fitted to" not in str(model.summary())


def test_trees_of_class_moments_know_the_rows_of_each_class():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 200)
    X = rng.normal(size=(200, 4)) + y[:, None]
    model = dd.LabelTree(tree="moments").fit(X, y)
    assert model.label_rows_.tolist() == np.bincount(y).tolist()
    assert model.summary().rows == 200
