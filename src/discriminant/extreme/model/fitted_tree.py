"""Fitted label tree: the leaf order of its labels, its layers of sparse weights, and statistics.

A tree divides labels into groups, recursively. In leaf order, the labels below a node occupy a
range of consecutive positions. A level is stored as the borders between the ranges of its nodes:

    level 0        [0, L]              the root: all labels
    level 1        [0, 9, 17, .., L]   its children
    last level     [0, 1, 2, .., L]    every label by itself

Between two consecutive levels is a layer of linear classifiers, one for each child of each node of
the upper level (its parent). The weights of a layer are grouped by parent into chunks, and within a
chunk by feature, so that a row with few features reads few entries:

    chunk of p    rows     feature[chunks[p] : chunks[p + 1]]         increasing
    row r         entries  child, weight[entries[r] : entries[r + 1]]

A node with a single label has a single child, which has no weights and an infinite bias: every row
that reaches the node descends to that child. Such a label is said to be passed down. The arrays of
a layer and of a tree are read-only. They are packed as follows:

    entries    before row r: begins[r // 32] + beyond[r], 8 bytes for 32 rows and 2 for each
    children   a list, one number per entry; or bitmaps, one bit for each child of the parent:

                   chunk of p    (rows of its chunk, bytes_p) from marks[p]
                   bytes_p       (number of children of p + 7) // 8

               whichever is smaller: bitmaps if a row has weights for many children, or there
               are few children
    feature    2 bytes each if that is enough

Arrays are used in packed form, so that a model can stay in its file (memory-mapped). Arrays may be
larger than memory, so they are processed a few million numbers at a time.

The search loops do not check bounds. Therefore the functions `invalid_*` verify, for arrays read
from a file, that every index (children, rows of chunks, features, entries, labels) is in range.
These functions return the reason why the arrays are invalid, or None if they are valid.

`forest_statistics` counts nodes, children, weights and bytes per level. A node with a single label
is not counted. Let finite(c) be 1 if child c has a classifier, and 0 if it is passed down. Then

    depth of a label       sum of finite over its path
    size of a node         labels below it: the borders of its level, from the last level up
    labels of a leaf node  its children that have a classifier and size 1

A row follows at most `beam` nodes of a level, so the number of classifiers evaluated is about

    sum over levels of min(beam, nodes) * mean children of a node
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from discriminant.table.blocks import holds_for_all_values

Ints = npt.NDArray[Any]

ROWS = 32  # rows of chunks that share one number of `begins`
_PACKED_AT_ONCE = 1 << 20  # rows of chunks that are packed at a time
_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.int64)


def narrow_features(feature: Ints) -> Ints:
    """Return feature indices as uint16 if all fit, else as int32."""
    return feature.astype(np.uint16 if int(feature.max(initial=0)) < 1 << 16 else np.int32)


def pack_entries(entries: Ints) -> tuple[Ints, Ints]:
    """Pack the offsets of entries (R + 1,) into the two arrays `begins` and `beyond`."""
    begins = np.array(entries[::ROWS], np.int64)
    after = np.append(begins[1:], entries[-1])
    most = int((after - begins).max())
    beyond = np.empty(len(entries), np.uint16 if most < 1 << 16 else np.uint32)
    for first in range(0, len(entries), _PACKED_AT_ONCE):
        part = np.asarray(entries[first : first + _PACKED_AT_ONCE])
        beyond[first : first + len(part)] = (
            part - begins[np.arange(first, first + len(part)) // ROWS]
        )
    return begins, beyond


def unpack_entries(begins: Ints, beyond: Ints, first: int, last: int) -> Ints:
    """Return the offsets of the entries of rows `first` to `last`, exclusive."""
    before = begins[np.arange(first, min(last, len(beyond))) // ROWS]
    return np.asarray(before + beyond[first:last].astype(np.int64))


def bitmap_bytes(children: Ints) -> Ints:
    """Return the bytes of one bitmap of each parent; a bitmap has one bit for each child."""
    return np.asarray((np.diff(children) + 7) >> 3)


def bitmap_offsets(children: Ints, chunks: Ints) -> Ints:
    """Return the offset of the bitmaps of each chunk, and finally their total size."""
    sizes = np.diff(chunks) * bitmap_bytes(children)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def pack_children(children: Ints, chunks: Ints, entries: Ints, child: Ints) -> tuple[Ints, Ints]:
    """Return `marks` and `places`: the children as bitmaps, or as a list if that is smaller."""
    marks = bitmap_offsets(children, chunks)
    if marks[-1] >= child.nbytes:
        return np.empty(0, np.int64), child
    places = np.zeros(int(marks[-1]), np.uint8)
    for low, high in _parent_ranges(chunks):
        bits = _first_bits(children, chunks, marks, low, high)
        count = np.diff(entries[int(chunks[low]) : int(chunks[high]) + 1])
        at = slice(int(entries[chunks[low]]), int(entries[chunks[high]]))
        bit = np.repeat(bits, count) + child[at]
        is_set = np.zeros(8 * int(marks[high] - marks[low]), np.uint8)
        is_set[bit - 8 * marks[low]] = 1
        places[int(marks[low]) : int(marks[high])] = np.packbits(is_set, bitorder="little")
    return marks, places


def unpack_children(children: Ints, chunks: Ints, places: Ints) -> Ints:
    """Return the child of each entry, decoded from bitmaps."""
    marks, parts = bitmap_offsets(children, chunks), [np.empty(0, np.int64)]
    for low, high in _parent_ranges(chunks):
        part = places[int(marks[low]) : int(marks[high])]
        bit = np.flatnonzero(np.unpackbits(part, bitorder="little")) + 8 * marks[low]
        first = _first_bits(children, chunks, marks, low, high)
        parts.append(bit - first[np.searchsorted(first, bit, side="right") - 1])
    return np.concatenate(parts)


def invalid_bitmap(
    children: Ints, chunks: Ints, entries: tuple[Ints, Ints], places: Ints
) -> str | None:
    """Return the reason why bitmaps are invalid, or None if they are valid.

    There must be one bit per entry, and each bit must stand for an existing child.
    """
    marks = bitmap_offsets(children, chunks)
    for low, high in _parent_ranges(chunks):
        first = _first_bits(children, chunks, marks, low, high) - 8 * marks[low]
        part = places[int(marks[low]) : int(marks[high])]
        n_bits = np.add.reduceat(_ONES[part], first >> 3)
        begin = unpack_entries(*entries, int(chunks[low]), int(chunks[high]) + 1)
        if not np.array_equal(n_bits, np.diff(begin)):
            return "the number of bits of a row differs from that of its weights"
        width = np.repeat(np.diff(children[low : high + 1]), np.diff(chunks[low : high + 1]))
        last = part[np.append(first[1:] >> 3, len(part)) - 1]
        if (last >> (((width - 1) & 7) + 1)).any():
            return "a bit is of a child that its parent does not have"
    return None


def _first_bits(children: Ints, chunks: Ints, marks: Ints, low: int, high: int) -> Ints:
    """Return the index of each row's first bit, for the chunks of parents `low` to `high`."""
    rows = np.diff(chunks[low : high + 1])
    within = np.arange(int(chunks[low]), int(chunks[high])) - np.repeat(chunks[low:high], rows)
    row_bytes = np.repeat(bitmap_bytes(children[low : high + 1]), rows)
    return np.asarray(8 * (np.repeat(marks[low:high], rows) + within * row_bytes))


def _parent_ranges(chunks: Ints) -> Iterator[tuple[int, int]]:
    """Yield ranges of parents whose chunks together have about a hundred thousand rows."""
    low = 0
    while low < len(chunks) - 1:
        high = int(np.searchsorted(chunks, chunks[low] + (_PACKED_AT_ONCE >> 3), side="right"))
        high = min(max(high - 1, low + 1), len(chunks) - 1)
        if chunks[high] > chunks[low]:
            yield low, high
        low = high


_AT_ONCE = 1 << 22  # how many numbers are processed at a time
_KINDS = {
    "children": ("int64",),
    "chunks": ("int64",),
    "feature": ("uint16", "int32"),
    "begins": ("int64",),
    "beyond": ("uint16", "uint32"),
    "marks": ("int64",),
    "places": ("uint8", "uint16", "uint32"),
    "weight": ("float16", "float32", "float64"),
    "bias": ("float32", "float64"),
}


def invalid_layer(parts: Mapping[str, Any]) -> str | None:
    """Return the reason why the fields of a layer are invalid, or None if they are valid."""
    for name, kinds in _KINDS.items():
        values = parts[name]
        if not isinstance(values, np.ndarray) or values.ndim != 1 or str(values.dtype) not in kinds:
            return f"{name} must be a vector of {' or '.join(kinds)}"
        if not values.flags.c_contiguous:
            return f"{name} must be contiguous"
    for name, last in (("children", len(parts["bias"])), ("chunks", len(parts["feature"]))):
        if not _rises(parts[name], last):
            return f"{name} must rise from 0 to {last}"
    if len(parts["children"]) < 2 or len(parts["children"]) != len(parts["chunks"]):
        return "children and chunks must be of the same parents, one or more"
    return _invalid_entries(parts) or _invalid_places(parts) or _invalid_numbers(parts)


def _invalid_entries(parts: Mapping[str, Any]) -> str | None:
    begins, beyond = parts["begins"], parts["beyond"]
    R, E = len(parts["feature"]), len(parts["weight"])
    if len(beyond) != R + 1 or len(begins) != R // ROWS + 1:
        return "feature, begins and beyond must be of the same rows"
    ends = unpack_entries(begins, beyond, 0, 1)[0], unpack_entries(begins, beyond, R, R + 1)[0]
    offsets = (
        unpack_entries(begins, beyond, at, at + _AT_ONCE + 1) for at in range(0, R + 1, _AT_ONCE)
    )
    if ends != (0, E) or not all((block[1:] >= block[:-1]).all() for block in offsets):
        return f"the entries of rows must rise from 0 to {E}"
    return None


def _invalid_places(parts: Mapping[str, Any]) -> str | None:
    chunks, feature = parts["chunks"], parts["feature"]
    if len(feature) and not holds_for_all_values(feature, lambda part: part >= 0):
        return "a feature is negative"
    for first, part in _blocks(feature, overlap=1):
        falls = np.flatnonzero(part[1:] <= part[:-1]) + first + 1
        if len(_not_in(falls, chunks)):
            return "the features of a chunk must rise"
    return _invalid_bits(parts) if len(parts["marks"]) else _invalid_list(parts)


def _invalid_bits(parts: Mapping[str, Any]) -> str | None:
    children, chunks, marks, places = (
        parts[name] for name in ("children", "chunks", "marks", "places")
    )
    if not np.array_equal(marks, bitmap_offsets(children, chunks)):
        return "marks are not where the bits of chunks begin"
    if str(places.dtype) != "uint8" or len(places) != marks[-1]:
        return f"bits must be {marks[-1]} bytes"
    if (np.diff(chunks)[np.diff(children) == 0] > 0).any():
        return "a parent without children has weights"
    return invalid_bitmap(children, chunks, (parts["begins"], parts["beyond"]), places)


def _invalid_list(parts: Mapping[str, Any]) -> str | None:
    children, chunks, places = parts["children"], parts["chunks"], parts["places"]
    if len(places) != len(parts["weight"]):
        return "places and weight must be of the same entries"
    if int(np.diff(children).max()) > 1 << 8 * places.itemsize:
        return f"a parent has more children than {places.dtype} can number"
    begin = parts["begins"][chunks // ROWS] + parts["beyond"][chunks].astype(np.int64)
    filled = np.flatnonzero(begin[1:] > begin[:-1])
    if len(filled):
        largest = np.maximum.reduceat(places, begin[filled]).astype(np.int64)
        if (largest >= np.diff(children)[filled]).any():
            return "an entry is of a child that its parent does not have"
    return None


def _invalid_numbers(parts: Mapping[str, Any]) -> str | None:
    if not holds_for_all_values(parts["weight"], np.isfinite):
        return "a weight is not a finite number"
    bias = parts["bias"]
    if np.isnan(bias).any() or (bias == -np.inf).any():
        return "a bias is not a number"
    return None


def invalid_tree(parts: Mapping[str, Any]) -> str | None:
    """Return the reason why the fields of a tree are invalid, or None.

    The layers must have been checked before.
    """
    label_of, layers = parts["label_of"], parts["layers"]
    if not layers or any(type(layer).__name__ != "Layer" for layer in layers):
        return "it must have layers"
    nodes = 1
    for layer in layers:
        if len(layer.children) - 1 != nodes:
            return f"a layer has {len(layer.children) - 1} parents below {nodes} nodes"
        nodes = len(layer.bias)
    if label_of.ndim != 1 or str(label_of.dtype) != "int32" or len(label_of) != nodes:
        return f"label_of must be {nodes} numbers of int32"
    if not label_of.flags.c_contiguous:
        return "label_of must be contiguous"
    if not (label_of.min() >= 0 and label_of.max() < nodes):
        return f"labels must be from 0 to {nodes - 1}"
    if np.bincount(label_of, minlength=nodes).max() > 1:
        return "a label occurs twice"
    return None


def invalid_forest(parts: Mapping[str, Any]) -> str | None:
    """Return the reason why the fields of a forest of valid trees are invalid, or None."""
    trees, d = parts["trees"], parts["n_features"]
    if not trees or any(type(tree).__name__ != "Tree" for tree in trees):
        return "it must have trees"
    if len({len(tree.label_of) for tree in trees}) > 1:
        return "its trees are of different labels"
    if parts["path"] not in ("hinge", "logistic"):
        return "path must be 'hinge' or 'logistic'"
    layers = [layer for tree in trees for layer in tree.layers]
    if len({str(layer.weight.dtype) for layer in layers}) > 1:
        return "its weights are of different precision"
    if not 0 < d < 2**31 or not all(
        holds_for_all_values(layer.feature, lambda part: part < d) for layer in layers
    ):
        return f"a feature is beyond the {d} that there are"
    return None


def invalid_model(parts: Mapping[str, Any]) -> str | None:
    """Return the reason why the fitted attributes of a `LabelTree` are invalid, or None."""
    wanted = {"forest_", "classes_", "kind_", "n_features_in_"}
    absent = wanted - set(parts)
    if absent == wanted:
        return None  # not fitted
    if absent:
        return f"it has no {min(absent)}"
    forest, labels, d = parts["forest_"], parts["classes_"], parts["n_features_in_"]
    if type(forest).__name__ != "Forest" or len(forest.trees[0].label_of) != len(labels):
        return f"its trees are not of its {len(labels)} labels"
    if parts["kind_"] not in ("one", "indicator", "sets") or forest.n_features != d:
        return f"its trees are not of its {d} features"
    if len(parts.get("feature_names_in_", range(d))) != d:
        return f"it has no names for its {d} features"
    first = parts.get("first_feature_", 0)
    if type(first) is not int or first not in (0, 1):
        return "first_feature_ must be 0 or 1"
    scale = parts.get("scale_")
    if scale is not None and not _is_scale(scale, d):
        return f"it has no means and standard deviations of its {d} features"
    if type(parts.get("unit_rows_", False)) is not bool:
        return "unit_rows_ must be true or false"
    return _invalid_counts(parts, len(labels))


def _invalid_counts(parts: Mapping[str, Any], L: int) -> str | None:
    """Return the reason why the label counts are invalid, or None.

    Files of older versions have no label counts.
    """
    if "label_rows_" not in parts and "n_rows_" not in parts:
        return None
    counts, rows = parts.get("label_rows_"), parts.get("n_rows_")
    if not isinstance(counts, np.ndarray) or counts.shape != (L,) or counts.dtype != np.int32:
        return f"label_rows_ must be {L} numbers of int32"
    if type(rows) is not int or not (counts.min() >= 0 and counts.max() <= rows):
        return "label_rows_ must be from 0 to n_rows_"
    return None


def _is_scale(scale: Any, d: int) -> bool:
    fits = isinstance(scale, np.ndarray) and scale.shape == (2, d) and scale.dtype.kind == "f"
    return bool(fits and np.isfinite(scale).all() and (scale[1] > 0).all())


def _rises(borders: Any, last: int) -> bool:
    if not len(borders) or borders[0] != 0 or borders[-1] != last:
        return False
    return all((part[1:] >= part[:-1]).all() for _, part in _blocks(borders, overlap=1))


def _not_in(places: Any, borders: Any) -> Any:
    at = np.searchsorted(borders, places)
    return places[borders[np.minimum(at, len(borders) - 1)] != places]


def _blocks(values: Any, *, overlap: int = 0) -> Iterator[tuple[int, Any]]:
    for first in range(0, len(values), _AT_ONCE):
        yield first, values[first : first + _AT_ONCE + overlap]


Reals = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class LabelPartition:
    """A tree over L labels: their leaf order, and for each level the borders between its nodes."""

    label_of: Ints  # (L,) code of the label at each position of the leaf order
    levels: tuple[Ints, ...]  # (nodes + 1,) for each level; the first is [0, L], the last 0 .. L


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """Classifiers of one layer: P parents, C children in total, E stored weights."""

    children: Ints  # (P + 1,) the nodes below parent p are children[p] : children[p + 1]
    chunks: Ints  # (P + 1,) the rows of the chunk of parent p are chunks[p] : chunks[p + 1]
    feature: Ints  # (R,) feature of each row; uint16, or int32 if one is too large
    begins: Ints  # (R // 32 + 1,) int64, number of entries before every 32nd row
    beyond: Ints  # (R + 1,) uint16 or uint32, number of entries from there to the row
    marks: Ints  # (P + 1,) offset of the bitmaps of each chunk; empty if children are a list
    places: Ints  # (M,) uint8, a bitmap of children for each row; or (E,) a list of children
    weight: Reals  # (E,) weights; float32, float16 or float64
    bias: Reals  # (C,) bias of each child
    # `invalid_reason` looks for NaN itself, in parts: arrays may be larger than memory
    checks_nan: ClassVar[bool] = True

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of a layer are invalid, or None if they are valid."""
        return invalid_layer(parts)

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
        """Create a packed layer from entry offsets (R + 1,) and the child of each entry (E,)."""
        begins, beyond = pack_entries(entries)
        marks, places = pack_children(children, chunks, entries, child)
        narrow = narrow_features(feature)
        return cls(children, chunks, narrow, begins, beyond, marks, places, weight, bias)

    @property
    def entries(self) -> Ints:
        """Offset of the entries of each row (R + 1,)."""
        return unpack_entries(self.begins, self.beyond, 0, len(self.beyond))

    @property
    def child(self) -> Ints:
        """Child of each entry (E,), as an index within its parent."""
        if not len(self.marks):
            return self.places
        return unpack_children(self.children, self.chunks, self.places)

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        _make_read_only(self)


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """One tree: the label of each leaf, and the layers, beginning at the root."""

    label_of: Ints  # (L,) int32, code of the label at each leaf
    layers: tuple[Layer, ...]

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of a tree are invalid, or None if they are valid."""
        return invalid_tree(parts)

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        object.__setattr__(self, "label_of", np.asarray(self.label_of).astype(np.int32, copy=False))
        _make_read_only(self)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Forest:
    """Several trees over the same labels, whose scores are averaged."""

    trees: tuple[Tree, ...]
    n_features: int
    path: str  # "hinge" or "logistic": the term that a margin adds to the score of a path

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of a forest are invalid, or None if they are valid."""
        return invalid_forest(parts)


def _make_read_only(part: Layer | Tree) -> None:
    for field in fields(part):
        value = getattr(part, field.name)
        if isinstance(value, np.ndarray):
            view = np.asarray(value).view()
            view.flags.writeable = False
            object.__setattr__(part, field.name, view)


class CountRange(NamedTuple):
    """Minimum, median and maximum of some counts, and the number of counts."""

    least: int
    median: float
    most: int
    of: int


@dataclass(frozen=True, slots=True)
class LevelStatistics:
    """Statistics of one level: its nodes, and the classifiers of their children."""

    nodes: int  # nodes whose children have classifiers
    children: CountRange  # number of children per node
    classifiers: int  # number of children with a classifier
    weights: int
    features: int  # features with a weight
    bytes: int


@dataclass(frozen=True, slots=True)
class TreeStatistics:
    """Statistics of one tree."""

    levels: tuple[LevelStatistics, ...]
    depth: CountRange  # number of classifiers from the root to each label
    leaf: CountRange  # number of labels per leaf node
    bytes: int

    @property
    def weights(self) -> int:
        """Number of weights in all levels."""
        return sum(level.weights for level in self.levels)

    @property
    def classifiers(self) -> int:
        """Number of classifiers in all levels."""
        return sum(level.classifiers for level in self.levels)

    def met(self, beam: int) -> float:
        """Return the approximate number of classifiers that a search evaluates for one row."""
        return sum(
            min(beam, level.nodes) * level.classifiers / max(level.nodes, 1)
            for level in self.levels
        )

    @property
    def shape(self) -> tuple[Any, ...]:
        """Statistics that describe the shape; trees of the same shape have equal statistics."""
        return *((level.nodes, level.children) for level in self.levels), self.depth, self.leaf


def forest_statistics(forest: Forest) -> tuple[TreeStatistics, ...]:
    """Return the statistics of each tree of a forest.

    Examples
    --------
    >>> from discriminant import LabelTree
    >>> model = LabelTree(tree="one-vs-rest").fit([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], list("abc"))
    >>> forest_statistics(model.forest_)[0].levels[0].children
    CountRange(least=3, median=3.0, most=3, of=1)
    """
    return tuple(tree_statistics(tree, features=forest.n_features) for tree in forest.trees)


def tree_statistics(tree: Tree, *, features: int) -> TreeStatistics:
    """Return the statistics of one tree, fitted to rows with this number of features."""
    depth, groups = np.zeros(1, np.int64), []
    for layer, size in zip(tree.layers, _sizes(tree), strict=True):
        has_classifier = np.isfinite(layer.bias)
        depth = np.repeat(depth, np.diff(layer.children)) + has_classifier
        n_labels = _per_parent(layer.children, has_classifier & (size == 1))
        groups.append(n_labels[n_labels > 0])
    levels = tuple(_level_statistics(layer, features) for layer in tree.layers)
    total = sum(level.bytes for level in levels) + tree.label_of.nbytes
    return TreeStatistics(levels, count_range(depth), count_range(np.concatenate(groups)), total)


def count_range(counts: npt.NDArray[Any]) -> CountRange:
    """Return minimum, median and maximum of some counts; the list of counts may be empty.

    >>> count_range(np.array([3, 1, 2, 9]))
    CountRange(least=1, median=2.5, most=9, of=4)
    """
    if not len(counts):
        return CountRange(0, 0.0, 0, 0)
    return CountRange(int(counts.min()), float(np.median(counts)), int(counts.max()), len(counts))


def _level_statistics(layer: Layer, features: int) -> LevelStatistics:
    classifiers = _per_parent(layer.children, np.isfinite(layer.bias))
    classifiers = classifiers[classifiers > 0]
    used = np.zeros(features, dtype=bool)
    for _, part in _blocks(layer.feature):
        used[part] = True
    return LevelStatistics(
        nodes=len(classifiers),
        children=count_range(classifiers),
        classifiers=int(classifiers.sum()),
        weights=len(layer.weight),
        features=int(used.sum()),
        bytes=sum(getattr(layer, field.name).nbytes for field in fields(layer)),
    )


def _sizes(tree: Tree) -> list[Ints]:
    """Return the number of labels below each child, for each layer beginning at the root."""
    borders = np.arange(len(tree.label_of) + 1)
    sizes = []
    for layer in reversed(tree.layers):
        sizes.append(np.diff(borders))
        borders = borders[layer.children]
    return sizes[::-1]


def _per_parent(children: Ints, flags: npt.NDArray[np.bool_]) -> Ints:
    """Return the number of flagged children of each parent."""
    before = np.concatenate([[0], np.cumsum(flags)])
    return np.asarray(np.diff(before[children]))
