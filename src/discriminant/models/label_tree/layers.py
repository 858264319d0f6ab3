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

How rows find their entries, and entries their children, is kept in `packing`, in few bytes. What
is fitted does not change: the arrays of a layer and of a tree can only be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from discriminant.models.label_tree import packing
from discriminant.models.label_tree.soundness import forest_fault, layer_fault, tree_fault

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
    feature: Ints  # (R,) uint16, or int32 if one is larger
    begins: Ints  # (R // 32 + 1,) int64, the entries before every 32nd row
    beyond: Ints  # (R + 1,) uint16 or uint32, those from there to the row
    marks: Ints  # (P + 1,) where the bits of a chunk begin; empty if children are listed
    places: Ints  # (M,) bits of each row's children, bytes of uint8; or (E,) children, listed
    weight: Reals  # (E,) float32, float16 or float64
    bias: Reals  # (C,)
    checks_nan: ClassVar[bool] = True  # arrays may be larger than memory

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return why these fields cannot form a layer, or None."""
        return layer_fault(parts)

    @classmethod
    def of(
        cls,
        children: Ints,
        chunks: Ints,
        feature: Ints,
        entries: Ints,
        child: Ints,
        weight: Reals,
        bias: Reals,
    ) -> Self:
        """From plain (R + 1,) `entries`, and the `child` (E,) of each, rising in a row."""
        begins, beyond = packing.entries_packed(entries)
        marks, places = packing.children_packed(children, chunks, entries, child)
        narrow = packing.narrowed(feature)
        return cls(children, chunks, narrow, begins, beyond, marks, places, weight, bias)

    @property
    def entries(self) -> Ints:
        """(R + 1,) where the entries of a row begin."""
        return packing.entries_of(self.begins, self.beyond, 0, len(self.beyond))

    @property
    def child(self) -> Ints:
        """(E,) which child of its parent an entry is of."""
        if not len(self.marks):
            return self.places
        return packing.children_of_bits(self.children, self.chunks, self.places)

    def __post_init__(self) -> None:
        """Arrays that can only be read."""
        _seal(self)


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """One tree: the label of each leaf, and the layers from the root down."""

    label_of: Ints  # (L,) int32
    layers: tuple[Layer, ...]

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return why these fields cannot form a tree, or None."""
        return tree_fault(parts)

    def __post_init__(self) -> None:
        """Arrays that can only be read."""
        object.__setattr__(self, "label_of", np.asarray(self.label_of).astype(np.int32, copy=False))
        _seal(self)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Forest:
    """Several trees over the same labels, whose scores are averaged."""

    trees: tuple[Tree, ...]
    n_features: int
    path: str  # "hinge" or "logistic": what a margin adds to the score of a path

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return why these fields cannot form a forest, or None."""
        return forest_fault(parts)


def _seal(held: Layer | Tree) -> None:
    for field in fields(held):
        value = getattr(held, field.name)
        if isinstance(value, np.ndarray):
            sealed = np.asarray(value).view()
            sealed.flags.writeable = False
            object.__setattr__(held, field.name, sealed)
