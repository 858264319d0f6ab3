"""Trees over labels built from the means of their rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from discriminant.extreme.model.fitted_tree import LabelPartition
from discriminant.extreme.model.tree_construction import (
    balanced_partition,
    label_means,
    one_vs_rest_partition,
    sort_by_frequency,
    wide_partition,
)


def rows_of(*, n_labels: int, n_rows: int = 400, seed: int = 0, n_features: int = 50):
    rng = np.random.default_rng(seed)
    X = sparse.random(n_rows, n_features, 0.2, "csr", np.float32, rng)
    Y = sparse.random(n_rows, n_labels, min(3 / n_labels, 1), "csr", np.float32, rng)
    Y.data[:] = 1
    return X, Y


def means_of(**sizes: int):
    return label_means(*rows_of(**sizes))


def groups(partition: LabelPartition, level: int) -> set[frozenset[int]]:
    cuts = pairwise(partition.levels[level])
    return {frozenset(partition.label_of[a:b].tolist()) for a, b in cuts}


def sound(partition: LabelPartition, n_labels: int) -> bool:
    """Whether labels are all there and levels nested, from the root to the labels."""
    first, last = partition.levels[0].tolist(), partition.levels[-1].tolist()
    nested = all(set(a) <= set(b) for a, b in pairwise(map(np.ndarray.tolist, partition.levels)))
    ends = first == [0, n_labels] and last == list(range(n_labels + 1))
    return ends and nested and sorted(partition.label_of.tolist()) == list(range(n_labels))


def test_the_mean_of_a_label_is_that_of_its_rows_of_length_one():
    X, Y = rows_of(n_labels=7)
    total = Y.toarray().T.astype(float) @ X.toarray().astype(float)
    expected = total / np.linalg.norm(total, axis=1, keepdims=True)
    np.testing.assert_allclose(label_means(X, Y).toarray(), expected, atol=1e-6)


def test_a_label_without_rows_has_the_mean_zero():
    X, Y = rows_of(n_labels=7)
    Y = sparse.hstack([Y, sparse.csr_matrix((Y.shape[0], 1), dtype=np.float32)]).tocsr()
    assert label_means(X, Y)[7].nnz == 0


@pytest.mark.parametrize("n_labels", [1, 2, 3, 9, 100, 777])
@pytest.mark.parametrize("arity", [2, 3, 16])
def test_a_balanced_tree_is_nested_and_holds_each_label_once(n_labels, arity):
    assert sound(
        balanced_partition(means_of(n_labels=n_labels), arity=arity, leaf=4, threads=1), n_labels
    )


@pytest.mark.parametrize("n_labels", [1, 2, 3, 9, 777])
def test_a_wide_tree_is_nested_and_holds_each_label_once(n_labels):
    assert sound(wide_partition(means_of(n_labels=n_labels), arity=5, leaf=4, threads=1), n_labels)


def test_one_vs_rest_is_a_tree_of_one_layer():
    assert sound(one_vs_rest_partition(5), 5)


def test_parts_of_one_level_of_a_balanced_tree_differ_by_one_label_at_most():
    partition = balanced_partition(means_of(n_labels=777), arity=16, leaf=10, threads=1)
    assert [int(np.ptp(np.diff(level))) for level in partition.levels] == [0, 1, 1, 0]


def test_levels_of_a_balanced_tree_are_counted_from_the_leaves_up():
    partition = balanced_partition(means_of(n_labels=1000), arity=16, leaf=10, threads=1)
    assert [len(level) - 1 for level in partition.levels] == [1, 8, 128, 1000]


@pytest.mark.parametrize("build", [balanced_partition, wide_partition])
def test_two_kinds_of_labels_that_share_no_feature_are_parted(build):
    left = means_of(n_labels=20, n_features=30)
    right = means_of(n_labels=20, n_features=40, seed=1)
    means = sparse.block_diag([left, right]).tocsr().astype(np.float32)
    partition = build(means, arity=2, leaf=20, threads=1)
    assert groups(partition, 1) == {frozenset(range(20)), frozenset(range(20, 40))}


@pytest.mark.parametrize("build", [balanced_partition, wide_partition])
def test_permuted_labels_give_the_permuted_tree(build):
    means = means_of(n_labels=200)
    to = np.random.default_rng(5).permutation(200)
    plain = build(means, arity=4, leaf=10, threads=1)
    permuted = build(means[to], arity=4, leaf=10, threads=1)
    np.testing.assert_array_equal(to[permuted.label_of], plain.label_of)


@pytest.mark.parametrize("build", [balanced_partition, wide_partition])
def test_any_number_of_threads_builds_the_same_tree(build):
    means = means_of(n_labels=2000, n_rows=3000)
    one, three = (build(means, arity=8, leaf=10, threads=threads) for threads in (1, 3))
    np.testing.assert_array_equal(one.label_of, three.label_of)


def test_another_seed_gives_another_tree():
    means = means_of(n_labels=200)
    one, two = (balanced_partition(means, leaf=10, seed=seed, threads=1) for seed in (0, 1))
    assert groups(one, 1) != groups(two, 1)


LEVELS = ([0, 12], [0, 2, 7, 12], [0, 1, 2, 5, 6, 7, 9, 12], range(13))


def test_siblings_are_in_order_of_their_rows_and_stay_siblings():
    rng = np.random.default_rng(5)
    before = LabelPartition(rng.permutation(12), tuple(np.array(level) for level in LEVELS))
    frequency = rng.integers(0, 50, 12)
    after = sort_by_frequency(before, frequency)
    assert all(groups(before, level) == groups(after, level) for level in range(4))
    assert sound(after, 12)
    for above, below in pairwise(after.levels):
        rows = np.array([frequency[after.label_of[a:b]].sum() for a, b in pairwise(below)])
        for a, b in pairwise(np.searchsorted(below, above)):
            assert (np.diff(rows[a:b]) >= 0).all()
