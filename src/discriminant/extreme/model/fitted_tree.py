"""Fitted label tree: the leaf order of its labels, and layers of sparse weights.

A tree divides labels into groups, recursively. Its labels are put in leaf order, so that each node
is a range of positions in that order, and a level is the list of the borders between ranges:

    level 0        [0, L]              the root: all labels
    level 1        [0, 9, 17, .., L]   its children
    last level     [0, 1, 2, .., L]    every label by itself

Between a level and the next is a layer: for each node above (a parent), one linear score per child.
A row descends from parent to child, so weights are grouped by parent into chunks, and in a chunk by
feature, so that a row with few features touches few entries:

    chunk of p    rows     feature[chunks[p] : chunks[p + 1]]         increasing
    row r         entries  child, weight[entries[r] : entries[r + 1]]

A node with a single label passes it down as one child without entries whose bias is infinite: that
child is certain. The arrays of a layer and of a tree are read-only. They are packed as follows:

    entries    before row r: begins[r // 32] + beyond[r], 8 bytes for 32 rows and 2 for each
    children   a list, one number per entry; or bitmaps, one bit for each child of the parent:

                   chunk of p    (rows of its chunk, bytes_p) from marks[p]
                   bytes_p       (children of p + 7) // 8

               whichever is smaller: bitmaps where a row has weights for many children, or there
               are few children
    feature    2 bytes where that is enough

Nothing is unpacked before use: a model can stay in its file. Arrays may be larger than memory, so
they are processed a few million numbers at a time.

The kernels of the search check nothing. The functions `invalid_*` therefore verify, for arrays read
from a file, that every index (children, rows of chunks, features, entries, labels) is in range;
they return the reason why the arrays are invalid, or None.

`forest_statistics` counts nodes, children, weights and bytes per level. A node that passes down a
single label is not counted. With finite(c) = 1 where child c has a classifier, and 0 where it is
passed down:

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

from discriminant.table.blocks import holds_throughout

Ints = npt.NDArray[Any]

ROWS = 32  # for each number of `begins`
_PACKED_AT_ONCE = 1 << 20
_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.int64)


def narrow_features(feature: Ints) -> Ints:
    """Convert to uint16 if all numbers fit, else to int32."""
    return feature.astype(np.uint16 if int(feature.max(initial=0)) < 1 << 16 else np.int32)


def pack_entries(entries: Ints) -> tuple[Ints, Ints]:
    """Return `begins` and `beyond` of entries (R + 1,)."""
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
    """(P,) bytes of the bitmap of each parent's children."""
    return np.asarray((np.diff(children) + 7) >> 3)


def bitmap_offsets(children: Ints, chunks: Ints) -> Ints:
    """(P + 1,) offsets of the bitmaps of each chunk."""
    sizes = np.diff(chunks) * bitmap_bytes(children)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def pack_children(children: Ints, chunks: Ints, entries: Ints, child: Ints) -> tuple[Ints, Ints]:
    """Return `marks` and `places`."""
    marks = bitmap_offsets(children, chunks)
    if marks[-1] >= child.nbytes:
        return np.empty(0, np.int64), child
    places = np.zeros(int(marks[-1]), np.uint8)
    for low, high in _parents(chunks):
        bits = _first_bits(children, chunks, marks, low, high)
        count = np.diff(entries[int(chunks[low]) : int(chunks[high]) + 1])
        at = slice(int(entries[chunks[low]]), int(entries[chunks[high]]))
        bit = np.repeat(bits, count) + child[at]
        some = np.zeros(8 * int(marks[high] - marks[low]), np.uint8)
        some[bit - 8 * marks[low]] = 1
        places[int(marks[low]) : int(marks[high])] = np.packbits(some, bitorder="little")
    return marks, places


def unpack_children(children: Ints, chunks: Ints, places: Ints) -> Ints:
    """(E,) children encoded in bitmaps."""
    marks, found = bitmap_offsets(children, chunks), [np.empty(0, np.int64)]
    for low, high in _parents(chunks):
        part = places[int(marks[low]) : int(marks[high])]
        bit = np.flatnonzero(np.unpackbits(part, bitorder="little")) + 8 * marks[low]
        first = _first_bits(children, chunks, marks, low, high)
        found.append(bit - first[np.searchsorted(first, bit, side="right") - 1])
    return np.concatenate(found)


def invalid_bitmap(
    children: Ints, chunks: Ints, entries: tuple[Ints, Ints], places: Ints
) -> str | None:
    """Return why bitmaps are invalid, or None: one bit per entry, each of an existing child."""
    marks = bitmap_offsets(children, chunks)
    for low, high in _parents(chunks):
        first = _first_bits(children, chunks, marks, low, high) - 8 * marks[low]
        part = places[int(marks[low]) : int(marks[high])]
        found = np.add.reduceat(_ONES[part], first >> 3)
        begin = unpack_entries(*entries, int(chunks[low]), int(chunks[high]) + 1)
        if not np.array_equal(found, np.diff(begin)):
            return "the bits of a row are not as many as its weights"
        width = np.repeat(np.diff(children[low : high + 1]), np.diff(chunks[low : high + 1]))
        last = part[np.append(first[1:] >> 3, len(part)) - 1]
        if (last >> (((width - 1) & 7) + 1)).any():
            return "a bit is of a child that its parent does not have"
    return None


def _first_bits(children: Ints, chunks: Ints, marks: Ints, low: int, high: int) -> Ints:
    """Index of the first bit of every row of the chunks of some parents."""
    rows = np.diff(chunks[low : high + 1])
    within = np.arange(int(chunks[low]), int(chunks[high])) - np.repeat(chunks[low:high], rows)
    each = np.repeat(bitmap_bytes(children[low : high + 1]), rows)
    return np.asarray(8 * (np.repeat(marks[low:high], rows) + within * each))


def _parents(chunks: Ints) -> Iterator[tuple[int, int]]:
    """Yield ranges of parents whose chunks have about a hundred thousand rows together."""
    low = 0
    while low < len(chunks) - 1:
        high = int(np.searchsorted(chunks, chunks[low] + (_PACKED_AT_ONCE >> 3), side="right"))
        high = min(max(high - 1, low + 1), len(chunks) - 1)
        if chunks[high] > chunks[low]:
            yield low, high
        low = high


_AT_ONCE = 1 << 22
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


def invalid_layer(of: Mapping[str, Any]) -> str | None:
    """Return why the fields of a layer are invalid, or None."""
    for name, kinds in _KINDS.items():
        values = of[name]
        if not isinstance(values, np.ndarray) or values.ndim != 1 or str(values.dtype) not in kinds:
            return f"{name} must be a vector of {' or '.join(kinds)}"
        if not values.flags.c_contiguous:
            return f"{name} must lie in one piece"
    for name, last in (("children", len(of["bias"])), ("chunks", len(of["feature"]))):
        if not _rises(of[name], last):
            return f"{name} must rise from 0 to {last}"
    if len(of["children"]) < 2 or len(of["children"]) != len(of["chunks"]):
        return "children and chunks must be of the same parents, one or more"
    return _invalid_entries(of) or _invalid_places(of) or _invalid_numbers(of)


def _invalid_entries(of: Mapping[str, Any]) -> str | None:
    begins, beyond, R, E = of["begins"], of["beyond"], len(of["feature"]), len(of["weight"])
    if len(beyond) != R + 1 or len(begins) != R // ROWS + 1:
        return "feature, begins and beyond must be of the same rows"
    ends = unpack_entries(begins, beyond, 0, 1)[0], unpack_entries(begins, beyond, R, R + 1)[0]
    parts = (
        unpack_entries(begins, beyond, at, at + _AT_ONCE + 1) for at in range(0, R + 1, _AT_ONCE)
    )
    if ends != (0, E) or not all((part[1:] >= part[:-1]).all() for part in parts):
        return f"the entries of rows must rise from 0 to {E}"
    return None


def _invalid_places(of: Mapping[str, Any]) -> str | None:
    chunks, feature = of["chunks"], of["feature"]
    if len(feature) and not holds_throughout(feature, lambda part: part >= 0):
        return "a feature is negative"
    for first, part in _parts(feature, overlap=1):
        falls = np.flatnonzero(part[1:] <= part[:-1]) + first + 1
        if len(_not_in(falls, chunks)):
            return "the features of a chunk must rise"
    return _invalid_bits(of) if len(of["marks"]) else _invalid_list(of)


def _invalid_bits(of: Mapping[str, Any]) -> str | None:
    children, chunks, marks, places = (of[n] for n in ("children", "chunks", "marks", "places"))
    if not np.array_equal(marks, bitmap_offsets(children, chunks)):
        return "marks are not where the bits of chunks begin"
    if str(places.dtype) != "uint8" or len(places) != marks[-1]:
        return f"bits must be {marks[-1]} bytes"
    if (np.diff(chunks)[np.diff(children) == 0] > 0).any():
        return "a parent without children has weights"
    return invalid_bitmap(children, chunks, (of["begins"], of["beyond"]), places)


def _invalid_list(of: Mapping[str, Any]) -> str | None:
    children, chunks, places = of["children"], of["chunks"], of["places"]
    if len(places) != len(of["weight"]):
        return "places and weight must be of the same entries"
    if int(np.diff(children).max()) > 1 << 8 * places.itemsize:
        return f"a parent has more children than {places.dtype} can number"
    begin = of["begins"][chunks // ROWS] + of["beyond"][chunks].astype(np.int64)
    some = np.flatnonzero(begin[1:] > begin[:-1])
    if len(some):
        largest = np.maximum.reduceat(places, begin[some]).astype(np.int64)
        if (largest >= np.diff(children)[some]).any():
            return "an entry is of a child that its parent does not have"
    return None


def _invalid_numbers(of: Mapping[str, Any]) -> str | None:
    if not holds_throughout(of["weight"], np.isfinite):
        return "a weight is no finite number"
    bias = of["bias"]
    if np.isnan(bias).any() or (bias == -np.inf).any():
        return "a bias is no number"
    return None


def invalid_tree(of: Mapping[str, Any]) -> str | None:
    """Return why the fields of a tree with valid layers are invalid, or None."""
    label_of, layers = of["label_of"], of["layers"]
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
        return "label_of must lie in one piece"
    if not (label_of.min() >= 0 and label_of.max() < nodes):
        return f"labels must be from 0 to {nodes - 1}"
    if np.bincount(label_of, minlength=nodes).max() > 1:
        return "a label comes twice"
    return None


def invalid_forest(of: Mapping[str, Any]) -> str | None:
    """Return why the fields of a forest with valid trees are invalid, or None."""
    trees, d = of["trees"], of["n_features"]
    if not trees or any(type(tree).__name__ != "Tree" for tree in trees):
        return "it must have trees"
    if len({len(tree.label_of) for tree in trees}) > 1:
        return "its trees are of different labels"
    if of["path"] not in ("hinge", "logistic"):
        return "path must be 'hinge' or 'logistic'"
    layers = [layer for tree in trees for layer in tree.layers]
    if len({str(layer.weight.dtype) for layer in layers}) > 1:
        return "its weights are of different precision"
    if not 0 < d < 2**31 or not all(
        holds_throughout(layer.feature, lambda part: part < d) for layer in layers
    ):
        return f"a feature is beyond the {d} that there are"
    return None


def invalid_model(of: Mapping[str, Any]) -> str | None:
    """Return why the fitted attributes of a `LabelTree` are invalid, or None."""
    wanted = {"forest_", "classes_", "kind_", "n_features_in_"}
    absent = wanted - set(of)
    if absent == wanted:
        return None  # not fitted
    if absent:
        return f"it has no {min(absent)}"
    forest, labels, d = of["forest_"], of["classes_"], of["n_features_in_"]
    if type(forest).__name__ != "Forest" or len(forest.trees[0].label_of) != len(labels):
        return f"its trees are not of its {len(labels)} labels"
    if of["kind_"] not in ("one", "indicator", "sets") or forest.n_features != d:
        return f"its trees are not of its {d} features"
    if len(of.get("feature_names_in_", range(d))) != d:
        return f"it has no names for its {d} features"
    first = of.get("first_feature_", 0)
    if type(first) is not int or first not in (0, 1):
        return "first_feature_ must be 0 or 1"
    scale = of.get("scale_")
    if scale is not None and not _is_scale(scale, d):
        return f"it has no means and standard deviations of its {d} features"
    if type(of.get("unit_rows_", False)) is not bool:
        return "unit_rows_ must be true or false"
    return _invalid_counts(of, len(labels))


def _invalid_counts(of: Mapping[str, Any], L: int) -> str | None:
    """Check the label counts, which older files do not have."""
    if "label_rows_" not in of and "n_rows_" not in of:
        return None
    counts, rows = of.get("label_rows_"), of.get("n_rows_")
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
    return all((part[1:] >= part[:-1]).all() for _, part in _parts(borders, overlap=1))


def _not_in(places: Any, borders: Any) -> Any:
    at = np.searchsorted(borders, places)
    return places[borders[np.minimum(at, len(borders) - 1)] != places]


def _parts(values: Any, *, overlap: int = 0) -> Iterator[tuple[int, Any]]:
    for first in range(0, len(values), _AT_ONCE):
        yield first, values[first : first + _AT_ONCE + overlap]


Reals = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class LabelPartition:
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
        """From plain (R + 1,) `entries`, and the `child` (E,) of each, rising in a row."""
        begins, beyond = pack_entries(entries)
        marks, places = pack_children(children, chunks, entries, child)
        narrow = narrow_features(feature)
        return cls(children, chunks, narrow, begins, beyond, marks, places, weight, bias)

    @property
    def entries(self) -> Ints:
        """(R + 1,) where the entries of a row begin."""
        return unpack_entries(self.begins, self.beyond, 0, len(self.beyond))

    @property
    def child(self) -> Ints:
        """(E,) which child of its parent an entry is of."""
        if not len(self.marks):
            return self.places
        return unpack_children(self.children, self.chunks, self.places)

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        _make_read_only(self)


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """One tree: the label of each leaf, and the layers from the root down."""

    label_of: Ints  # (L,) int32
    layers: tuple[Layer, ...]

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return why these fields cannot form a tree, or None."""
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
    path: str  # "hinge" or "logistic": what a margin adds to the score of a path

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return why these fields cannot form a forest, or None."""
        return invalid_forest(parts)


def _make_read_only(held: Layer | Tree) -> None:
    for field in fields(held):
        value = getattr(held, field.name)
        if isinstance(value, np.ndarray):
            sealed = np.asarray(value).view()
            sealed.flags.writeable = False
            object.__setattr__(held, field.name, sealed)


class CountRange(NamedTuple):
    """Minimum, median and maximum of some counts, and how many there are."""

    least: int
    median: float
    most: int
    of: int


@dataclass(frozen=True, slots=True)
class LevelStatistics:
    """Statistics of one level: nodes and the classifiers of their children."""

    nodes: int  # with classifiers
    children: CountRange  # per node
    classifiers: int  # children with a classifier
    weights: int
    features: int  # with a weight
    bytes: int


@dataclass(frozen=True, slots=True)
class TreeStatistics:
    """Statistics of one tree."""

    levels: tuple[LevelStatistics, ...]
    depth: CountRange  # classifiers from the root to each label
    leaf: CountRange  # labels per leaf node
    bytes: int

    @property
    def weights(self) -> int:
        """Total over all levels."""
        return sum(level.weights for level in self.levels)

    @property
    def classifiers(self) -> int:
        """Total over all levels."""
        return sum(level.classifiers for level in self.levels)

    def met(self, beam: int) -> float:
        """Approximate number of classifiers evaluated for a row with this beam."""
        return sum(
            min(beam, level.nodes) * level.classifiers / max(level.nodes, 1)
            for level in self.levels
        )

    @property
    def shape(self) -> tuple[Any, ...]:
        """Statistics that trees of equal shape share."""
        return *((level.nodes, level.children) for level in self.levels), self.depth, self.leaf


def forest_statistics(forest: Forest) -> tuple[TreeStatistics, ...]:
    """Return the statistics of each tree.

    Examples
    --------
    >>> from discriminant import LabelTree
    >>> model = LabelTree(tree="one-vs-rest").fit([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], list("abc"))
    >>> forest_statistics(model.forest_)[0].levels[0].children
    CountRange(least=3, median=3.0, most=3, of=1)
    """
    return tuple(tree_statistics(tree, features=forest.n_features) for tree in forest.trees)


def tree_statistics(tree: Tree, *, features: int) -> TreeStatistics:
    """Return the statistics of one tree over rows with this number of features."""
    depth, groups = np.zeros(1, np.int64), []
    for layer, size in zip(tree.layers, _sizes(tree), strict=True):
        asked = np.isfinite(layer.bias)
        depth = np.repeat(depth, np.diff(layer.children)) + asked
        ends = _per_parent(layer.children, asked & (size == 1))
        groups.append(ends[ends > 0])
    levels = tuple(_level(layer, features) for layer in tree.layers)
    whole = sum(level.bytes for level in levels) + tree.label_of.nbytes
    return TreeStatistics(levels, count_range(depth), count_range(np.concatenate(groups)), whole)


def count_range(counts: npt.NDArray[Any]) -> CountRange:
    """Return the range of some counts, which may be empty.

    >>> count_range(np.array([3, 1, 2, 9]))
    CountRange(least=1, median=2.5, most=9, of=4)
    """
    if not len(counts):
        return CountRange(0, 0.0, 0, 0)
    return CountRange(int(counts.min()), float(np.median(counts)), int(counts.max()), len(counts))


def _level(layer: Layer, features: int) -> LevelStatistics:
    asked = _per_parent(layer.children, np.isfinite(layer.bias))
    telling = asked[asked > 0]
    return LevelStatistics(
        nodes=len(telling),
        children=count_range(telling),
        classifiers=int(telling.sum()),
        weights=len(layer.weight),
        features=_distinct(layer.feature, features),
        bytes=sum(getattr(layer, field.name).nbytes for field in fields(layer)),
    )


def _sizes(tree: Tree) -> list[Ints]:
    """Number of labels below the children of each layer, from the root down."""
    borders = np.arange(len(tree.label_of) + 1)
    found = []
    for layer in reversed(tree.layers):
        found.append(np.diff(borders))
        borders = borders[layer.children]
    return found[::-1]


def _per_parent(children: Ints, flags: npt.NDArray[np.bool_]) -> Ints:
    """(P,) number of flagged children of each parent."""
    before = np.concatenate([[0], np.cumsum(flags)])
    return np.asarray(np.diff(before[children]))


def _distinct(feature: Ints, features: int) -> int:
    seen = np.zeros(features, dtype=bool)
    for first in range(0, len(feature), _AT_ONCE):
        seen[feature[first : first + _AT_ONCE]] = True
    return int(seen.sum())
