"""What a fitted label tree is: the order of its leaves, and layers of sparse weights.

A tree divides labels into parts, and parts into parts. Its labels are put in leaf order, so that
each node is a run of places in that order, and a level is the list of the borders between runs:

    level 0        [0, L]              the root: all labels
    level 1        [0, 9, 17, .., L]   its children
    last level     [0, 1, 2, .., L]    every label by itself

Between a level and the next lies a layer: for each node above (a parent), one linear score per
child. A row comes down from parent to child, so what is wanted together is what one parent holds:
weights are grouped by parent into chunks, and in a chunk by feature, so that a row with few
features touches few entries:

    chunk of p    rows     feature[chunks[p] : chunks[p + 1]]         rising
    row r         entries  child, weight[entries[r] : entries[r + 1]]

A node that already holds a single label passes it down as one child without entries whose bias is
infinite: that child is certain.

What is fitted does not change: the arrays of a layer and of a tree can only be read.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[Any]
Reals = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """A tree over L labels: their leaf order, and for each level the borders of its nodes."""

    label_of: Ints  # (L,) code of the label at each place
    levels: tuple[Ints, ...]  # (nodes + 1,) each, nested; the first [0, L], the last 0 .. L


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """The scores of one level's nodes given their parents: P parents, C children, E weights."""

    children: Ints  # (P + 1,) the nodes below parent p: places children[p] : children[p + 1]
    chunks: Ints  # (P + 1,) the rows of its chunk
    feature: Ints  # (R,) int32
    entries: Ints  # (R + 1,)
    child: Ints  # (E,) uint8 or uint16: which child of the parent
    weight: Reals  # (E,) float32, float16 or float64
    bias: Reals  # (C,)

    def __post_init__(self) -> None:
        """Arrays that can only be read."""
        _seal(self)


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """One tree: the label of each leaf, and the layers from the root down."""

    label_of: Ints  # (L,) int32
    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        """Arrays that can only be read."""
        object.__setattr__(self, "label_of", np.asarray(self.label_of).astype(np.int32, copy=False))
        _seal(self)


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Several trees over the same labels, whose scores are averaged."""

    trees: tuple[Tree, ...]
    n_features: int
    path: str  # "hinge" or "logistic": what a margin adds to the score of a path


def _seal(held: Layer | Tree) -> None:
    for field in fields(held):
        value = getattr(held, field.name)
        if isinstance(value, np.ndarray):
            sealed = np.asarray(value).view()
            sealed.flags.writeable = False
            object.__setattr__(held, field.name, sealed)
