"""Hierarchies given by a user, and Huffman trees."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from discriminant.errors import HierarchyError
from discriminant.extreme.model.fitted_tree import LabelPartition
from discriminant.extreme.model.tree_construction import hierarchy_partition, huffman_partition

LABELS = ["apple", "pear", "hazel", "cashew"]
NESTED = {"fruit": ["apple", "pear"], "nut": {"hard": ["hazel"], "soft": ["cashew"]}}
PAIRS = [
    ("apple", "fruit"),
    ("pear", "fruit"),
    ("hard", "nut"),
    ("soft", "nut"),
    ("hazel", "hard"),
    ("cashew", "soft"),
    ("fruit", "food"),
    ("nut", "food"),
]


def groups(partition: LabelPartition, level: int) -> set[frozenset[int]]:
    cuts = pairwise(partition.levels[level])
    return {frozenset(partition.label_of[a:b].tolist()) for a, b in cuts}


def depths(partition: LabelPartition) -> dict[int, int]:
    """Steps from the root to each label that are a choice."""
    found = dict.fromkeys(range(len(partition.label_of)), 0)
    for above, below in pairwise(partition.levels):
        for a, b in pairwise(above):
            if np.searchsorted(below, b) - np.searchsorted(below, a) > 1:
                for label in partition.label_of[a:b].tolist():
                    found[label] += 1
    return found


def test_a_partition_follows_a_nested_mapping():
    assert groups(hierarchy_partition(NESTED, LABELS), 1) == {frozenset({0, 1}), frozenset({2, 3})}


@pytest.mark.parametrize(
    "told",
    [PAIRS, dict(PAIRS), [*PAIRS, ("food", None)], [["apple", "pear"], [["hazel"], ["cashew"]]]],
    ids=["pairs", "mapping of parents", "pairs with a top", "lists"],
)
def test_every_way_of_telling_a_hierarchy_gives_the_same_groups(told):
    nested = hierarchy_partition(NESTED, LABELS)
    partition = hierarchy_partition(told, LABELS)
    assert [groups(partition, i) for i in range(3)] == [groups(nested, i) for i in range(3)]


def test_a_label_that_stands_above_others_is_a_leaf_below_itself():
    partition = hierarchy_partition(
        {"nut": ["hazel", "cashew"], "fruit": ["apple"]}, [*LABELS[2:], "nut", "apple"]
    )
    assert groups(partition, 1) == {frozenset({0, 1, 2}), frozenset({3})}


def test_levels_of_uneven_depth_end_with_every_label_by_itself():
    partition = hierarchy_partition(["apple", ["pear", ["hazel", "cashew"]]], LABELS)
    assert partition.levels[-1].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ([("apple", "a"), ("a", "b"), ("b", "a"), ("pear", "top")], ["cycle", "'a'", "'b'"]),
        ([("a", "b"), ("b", "a")], ["cycle", "'a'", "'b'"]),
        ([("apple", "fruit"), ("hazel", "nut")], ["2 roots", "'fruit'", "'nut'"]),
        (
            {"fruit": ["apple", "pear"], "nut": ["hazel", "apple", "cashew"]},
            ["'apple'", "2 times in the hierarchy: tree['fruit'][0], tree['nut'][1]"],
        ),
        (
            [["apple", "pear"], [["hazel", "apple"], ["cashew"]]],
            ["'apple'", "2 times in the hierarchy: tree[0][0], tree[1][0][1]"],
        ),
        ([*PAIRS, ("apple", "nut")], ["'apple'", "'fruit'", "'nut'"]),
        ({"fruit": ["apple", "pear"], "nut": ["hazel"]}, ["1 label", "'cashew'"]),
        (
            {"fruit": ["apple", "pear"], "nut": ["hazel", "cashew", "oak"]},
            ["are not labels", "'oak'", "at tree['nut'][2]"],
        ),
        ([*PAIRS, ("oak", "nut")], ["are not labels", "'oak'", "below 'nut'"]),
        (
            {"fruit": ["apple", "pear"], "nut": ["hazel", "cashew"], "tree": []},
            ["node tree['tree'] ", "is empty", "Leave the node out"],
        ),
        (
            [["apple", "pear"], [["hazel", "cashew"], []], {}],
            ["node tree[2] ", "is empty (and 1 more)"],
        ),
        ([], ["is empty", "4 labels"]),
        ({}, ["is empty", "4 labels"]),
        ([("apple", "pear"), ("hazel", "cashew")], ["2 roots", "[['a', 'b'], ['c', 'd']]"]),
        (
            [["apple", "fruit"], ["pear", "fruit"], ["hazel", "nut"], ["cashew", "nut"]],
            ["'fruit'", "at tree[0][1]", "[('a', 'top'), ('b', 'top')]"],
        ),
        ([("apple", "fruit"), ("pear", None)], ["2 roots: 'fruit', 'pear'", "('pear', 'all')"]),
        (7, ["int"]),
        ("fruit", ["str"]),
    ],
    ids=[
        "cycle beside a tree",
        "cycle alone",
        "orphan",
        "duplicate leaf",
        "duplicate leaf of lists",
        "two parents",
        "missing label",
        "unknown leaf",
        "unknown leaf of pairs",
        "empty node",
        "empty nodes of lists",
        "empty list",
        "empty mapping",
        "tuples that are groups",
        "lists that are pairs",
        "a root beside one without parent",
        "a number",
        "a text",
    ],
)
def test_what_is_no_tree_over_the_labels_is_refused_by_the_names_of_its_nodes(told, words):
    with pytest.raises(HierarchyError) as caught:
        hierarchy_partition(told, LABELS)
    assert [word for word in words if word not in str(caught.value)] == []


def test_a_mapping_that_holds_itself_is_refused():
    told: dict[str, object] = {"nut": ["hazel"]}
    told["fruit"] = told
    with pytest.raises(HierarchyError, match="'fruit'"):
        hierarchy_partition(told, ["hazel"])


def test_a_huffman_tree_has_the_least_mean_depth():
    frequency = [45, 13, 12, 16, 9, 5]  # Cormen et al., Introduction to Algorithms, fig. 16.4: 224
    depth = depths(huffman_partition(frequency, arity=2))
    assert sum(depth[label] * count for label, count in enumerate(frequency)) == 224


def test_the_root_of_a_wide_huffman_tree_has_all_its_children():
    partition = huffman_partition(np.arange(1, 101), arity=16)
    assert len(partition.levels[1]) - 1 == 16


@pytest.mark.parametrize("n_labels", [1, 2, 3, 16, 17])
def test_a_huffman_tree_of_few_labels_has_each_of_them(n_labels):
    partition = huffman_partition(np.ones(n_labels), arity=16)
    assert sorted(partition.label_of.tolist()) == list(range(n_labels))
