"""The shape of fitted label trees, counted from their layers.

Between a level and the next, a node above tells its children apart. Of such a step it is counted
how many nodes do so, how many children they have, the weights and the bytes. A node that holds one
label passes it down unasked (its child's bias is infinite), and is not counted. With
finite(c) = 1 where child c is asked about, and 0 where it is passed down:

    depth of a label       sum of finite over its path
    size of a node         labels below it: the borders of its level, from the last level up
    labels of a last node  its children that are asked about and of size 1

A row follows at most `beam` nodes of a level, so that it meets about as many classifiers as

    sum over steps of min(beam, nodes) * mean children of a node

Entries are not unpacked, and features are looked at some millions at a time: a model of a million
labels can stay in its file.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discriminant.models.label_tree.layers import Forest, Ints, Layer, Tree

_AT_ONCE = 1 << 22


class Spread(NamedTuple):
    """Of some counts, the least, the middle one and the largest; and how many there are."""

    least: int
    median: float
    most: int
    of: int


@dataclass(frozen=True, slots=True)
class LevelStatistics:
    """One step down, from nodes to their children."""

    nodes: int  # that tell children apart
    children: Spread  # of such a node
    classifiers: int  # children that are asked about
    weights: int
    features: int  # that have a weight
    bytes: int


@dataclass(frozen=True, slots=True)
class TreeStatistics:
    """One tree."""

    levels: tuple[LevelStatistics, ...]
    depth: Spread  # of labels: classifiers from the root to each
    leaf: Spread  # labels of a node that tells labels apart
    bytes: int

    @property
    def weights(self) -> int:
        """Of all levels."""
        return sum(level.weights for level in self.levels)

    @property
    def classifiers(self) -> int:
        """Of all levels."""
        return sum(level.classifiers for level in self.levels)

    def met(self, beam: int) -> float:
        """Classifiers that a row meets, about, as it follows `beam` nodes of a level."""
        return sum(
            min(beam, level.nodes) * level.classifiers / max(level.nodes, 1)
            for level in self.levels
        )

    @property
    def shape(self) -> tuple[Any, ...]:
        """What trees that are alike have in common."""
        return *((level.nodes, level.children) for level in self.levels), self.depth, self.leaf


def forest_statistics(forest: Forest) -> tuple[TreeStatistics, ...]:
    """Of each tree.

    Examples
    --------
    >>> from discriminant import LabelTree
    >>> model = LabelTree(tree="one-vs-rest").fit([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], list("abc"))
    >>> forest_statistics(model.forest_)[0].levels[0].children
    Spread(least=3, median=3.0, most=3, of=1)
    """
    return tuple(tree_statistics(tree, features=forest.n_features) for tree in forest.trees)


def tree_statistics(tree: Tree, *, features: int) -> TreeStatistics:
    """Of one tree over rows of so many features."""
    depth, groups = np.zeros(1, np.int64), []
    for layer, size in zip(tree.layers, _sizes(tree), strict=True):
        asked = np.isfinite(layer.bias)
        depth = np.repeat(depth, np.diff(layer.children)) + asked
        ends = _per_parent(layer.children, asked & (size == 1))
        groups.append(ends[ends > 0])
    levels = tuple(_level(layer, features) for layer in tree.layers)
    whole = sum(level.bytes for level in levels) + tree.label_of.nbytes
    return TreeStatistics(levels, spread(depth), spread(np.concatenate(groups)), whole)


def spread(counts: npt.NDArray[Any]) -> Spread:
    """Of counts, of which there may be none.

    >>> spread(np.array([3, 1, 2, 9]))
    Spread(least=1, median=2.5, most=9, of=4)
    """
    if not len(counts):
        return Spread(0, 0.0, 0, 0)
    return Spread(int(counts.min()), float(np.median(counts)), int(counts.max()), len(counts))


def _level(layer: Layer, features: int) -> LevelStatistics:
    asked = _per_parent(layer.children, np.isfinite(layer.bias))
    telling = asked[asked > 0]
    return LevelStatistics(
        nodes=len(telling),
        children=spread(telling),
        classifiers=int(telling.sum()),
        weights=len(layer.weight),
        features=_distinct(layer.feature, features),
        bytes=sum(getattr(layer, field.name).nbytes for field in fields(layer)),
    )


def _sizes(tree: Tree) -> list[Ints]:
    """Labels below the children of each layer, the first layer first."""
    borders = np.arange(len(tree.label_of) + 1)
    found = []
    for layer in reversed(tree.layers):
        found.append(np.diff(borders))
        borders = borders[layer.children]
    return found[::-1]


def _per_parent(children: Ints, flags: npt.NDArray[np.bool_]) -> Ints:
    """(P,) how many children of each parent are flagged."""
    before = np.concatenate([[0], np.cumsum(flags)])
    return np.asarray(np.diff(before[children]))


def _distinct(feature: Ints, features: int) -> int:
    seen = np.zeros(features, dtype=bool)
    for first in range(0, len(feature), _AT_ONCE):
        seen[feature[first : first + _AT_ONCE]] = True
    return int(seen.sum())
