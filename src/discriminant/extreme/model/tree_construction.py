"""Partition of labels into a tree: by similar rows, frequency, a given hierarchy or class moments.

**From rows.** A label is represented by the mean of its rows, scaled to unit length. Labels with
similar rows are grouped together:

    balanced      repeated bisection by spherical 2-means (Prabhu et al. 2018), of which every
                  log2(arity)-th level is kept, counted from the leaves up
    wide          k-means with many centres, applied twice (Khandagale et al. 2019)
    one-vs-rest   no tree: all labels below the root

Labels are first sorted by a random projection of their means, so that the tree depends neither on
their names nor on their order.

**From frequencies.** A Huffman tree of arity `a` repeatedly joins the `a` rarest groups, so that
frequent labels are near the root. A Huffman tree minimises the mean number of steps from the root
to the label of a row.

**From a hierarchy** in one of two forms:

    nested    {"fruit": ["apple", "pear"], "nut": {"hard": ["hazel"], "soft": ["cashew"]}},
              or lists within lists: [["apple", "pear"], [["hazel"], ["cashew"]]]
    pairs     child and parent: [("apple", "fruit"), ("fruit", "food"), ..], or a mapping of them;
              the parent of a top node is None, or the top is the only node without a parent

The leaves are the labels, and each label occurs once. In a mapping or in pairs, an inner node may
have the same name as a label; this label becomes a leaf below the node. A node with a single child
is replaced by that child.

**From class moments**, without reading rows. All classes share the covariance C = W / n, as in LDA.
In whitened coordinates z = C^(-1/2) x each class is represented by its mean, so that the tree is
built from K points with weights n_k:

    the tree      a node is split along a direction, at the cut with the largest distance between
                  the means of the two sides: first along the direction of largest variance, then
                  repeatedly along the discriminant direction of the two sides, until the sides do
                  not change
    a node        two groups l and r of points. Within groups, rows scatter by
                      V = I + sum over both of n_k (z_k - z_g)(z_k - z_g)' / n
                  as follows from the grouped moments; so the log odds of r are, as for any two
                  classes of LDA,
                      m(z) = (z - (z_l + z_r) / 2)' V^-1 (z_r - z_l) + log(n_r / n_l)

A node with two classes separates them as LDA does. The child r has the margin m and the child l has
-m, so that with the path score 'logistic' the probabilities of the leaves sum to one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from heapq import heapify, heappop, heappush
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import solve

from discriminant.errors import HierarchyError
from discriminant.extreme.model.fitted_tree import Ints, LabelPartition, Layer, Reals, Tree
from discriminant.extreme.model.training_tasks import child_offsets
from discriminant.models.gaussian.family import GaussianFamily, check_classes, pooled_metric
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Floats

Children = list[list[int]]  # children of each node; empty for a leaf


def huffman_partition(
    frequency: Any, *, arity: int = 16, order: Ints | None = None
) -> LabelPartition:
    """Return the Huffman tree of labels with these frequencies.

    Ties are broken by the order of the labels in `order`, or by their codes if `order` is None.
    """
    count = np.asarray(frequency, dtype=np.float64)
    L = len(count)
    rank = np.empty(L, np.int64)
    rank[np.arange(L) if order is None else order] = np.arange(L)
    heap = [(float(count[label]), int(rank[label]), label) for label in range(L)]
    heapify(heap)
    children: Children = [[] for _ in range(L)]
    # number of groups joined first, so that the root has `arity` children
    n_joined = (L - 2) % (arity - 1) + 2 if L > 1 else 1
    while len(heap) > 1:
        parts = [heappop(heap) for _ in range(min(n_joined, len(heap)))]
        children.append([node for _, _, node in reversed(parts)])
        heappush(heap, (sum(part[0] for part in parts), len(children), len(children) - 1))
        n_joined = arity
    return partition_from_children(children, heap[0][2], np.arange(L))


def hierarchy_partition(hierarchy: Any, labels: Sequence[Hashable]) -> LabelPartition:
    """Return the partition for a hierarchy of labels given by the user.

    Examples
    --------
    >>> hierarchy = {"nut": ["hazel", "cashew"], "fruit": ["apple"]}
    >>> hierarchy_partition(hierarchy, ["apple", "cashew", "hazel"])
    ... # doctest: +NORMALIZE_WHITESPACE
    LabelPartition(label_of=array([2, 1, 0]), levels=(array([0, 3]), array([0, 2, 3]),
    array([0, 1, 2, 3])))
    """
    if not _is_container(hierarchy):
        raise HierarchyError.of_kind(type(hierarchy).__name__)
    if not len(hierarchy):
        raise HierarchyError.empty(len(labels))
    builder = HierarchyBuilder()
    pairs = _as_pairs(hierarchy)
    try:
        if pairs is None:
            builder.add_nested(hierarchy)
        else:
            builder.add_pairs(pairs)
        return builder.to_partition(labels)
    except HierarchyError as error:
        raise error.with_hint(_guess_form(hierarchy, pairs, labels)) from None


class HierarchyBuilder:
    """Builder of a tree of named nodes from a hierarchy."""

    def __init__(self) -> None:
        self.names: list[Hashable] = [None]
        # index expression of each node within its parent, for error messages
        self.steps: list[str] = ["tree"]
        self.children: Children = [[]]
        self.inner: set[int] = {0}  # nodes that have children in the hierarchy
        self.empty: set[int] = set()  # groups that have no elements

    def add(self, name: Hashable, parent: int, step: str = "") -> int:
        """Add a node below another and return its index."""
        self.names.append(name)
        self.steps.append(step)
        self.children.append([])
        self.children[parent].append(len(self.names) - 1)
        return len(self.names) - 1

    def add_nested(self, hierarchy: Any) -> None:
        """Add a nested hierarchy: mappings and lists are parents of their elements."""
        waiting: list[tuple[Any, int, tuple[int, ...]]] = [(hierarchy, 0, ())]
        while waiting:
            group, node, path = waiting.pop()
            if id(group) in path:
                raise HierarchyError.cycle([self.names[node], self.names[node]])
            (self.inner if len(group) else self.empty).add(node)  # an empty tuple may be a label
            subgroups: list[tuple[Any, int, tuple[int, ...]]] = []
            for name, content, step in _elements(group):
                child = self.add(name, node, step)
                if content is not None:
                    subgroups.append((content, child, (*path, id(group))))
            # reversed, so that the first element is processed next
            waiting.extend(reversed(subgroups))

    def add_pairs(self, pairs: Sequence[tuple[Hashable, Hashable]]) -> None:
        """Add a hierarchy of (child, parent) pairs."""
        parents = _parents(pairs)
        children: dict[Hashable, list[Hashable]] = {}
        for child, parent in parents.items():
            children.setdefault(parent, []).append(child)
        waiting: list[tuple[Hashable, int]] = [(None, 0)]
        while waiting:
            name, node = waiting.pop()
            for child in children.get(name, []):
                index = self.add(child, node)
                if child in children:
                    self.inner.add(index)
                    waiting.append((child, index))
        if len(self.names) - 1 < len(parents):
            raise HierarchyError.cycle(_find_cycle(parents, set(self.names)))

    def to_partition(self, labels: Sequence[Hashable]) -> LabelPartition:
        """Return the partition after matching the leaves with the labels, each exactly once."""
        code = {label: place for place, label in enumerate(labels)}
        # a label that is also an inner node becomes a leaf below it
        for node in sorted(self.inner - {0}):
            if self.names[node] in code and self.names[node] is not None:
                self.add(self.names[node], node)
        leaves = [node for node in range(1, len(self.names)) if not self.children[node]]
        self._check_leaves(leaves, code)
        label = np.full(len(self.names), -1)
        label[leaves] = [code[self.names[node]] for node in leaves]
        return partition_from_children(self.children, 0, label)

    def _check_leaves(self, leaves: Sequence[int], code: Mapping[Hashable, int]) -> None:
        """Raise an error unless the leaves and the labels are the same."""
        parent = {child: node for node, below in enumerate(self.children) for child in below}
        places: dict[Hashable, list[int]] = {}
        for leaf in leaves:
            places.setdefault(self.names[leaf], []).append(leaf)
        empty = [leaf for leaf in leaves if leaf in self.empty and self.names[leaf] not in code]
        if empty:
            raise HierarchyError.empty_node(len(empty), self._position(empty[0], parent))
        unknown = [name for name in places if name not in code]
        if unknown:
            raise HierarchyError.unknown(unknown, self._position(places[unknown[0]][0], parent))
        for name, nodes in places.items():
            if len(nodes) > 1:
                positions = [self._position(leaf, parent) for leaf in nodes]
                raise HierarchyError.duplicate(name, positions)
        missing = [label for label in code if label not in places]
        if missing:
            raise HierarchyError.orphan(missing)

    def _position(self, node: int, parent: Mapping[int, int]) -> str:
        """Describe the position of a node: by an index such as tree['nut'][1], or by its parent."""
        if not self.steps[node]:
            return f"below '{self.names[parent[node]]}'" if parent[node] else "at the top"
        path = []
        while node:
            path.append(self.steps[node])
            node = parent[node]
        return "tree" + "".join(reversed(path))


def partition_from_children(children: Children, root: int, label: Ints) -> LabelPartition:
    """Return the partition for a tree; a leaf is repeated on every level below it."""
    nodes = [_skip_single_children(children, root)]
    rounds = [nodes]
    while any(children[node] for node in nodes):
        below = [child for node in nodes for child in (children[node] or [node])]
        nodes = [_skip_single_children(children, child) for child in below]
        rounds.append(nodes)
    n_leaves = _count_leaves(children, rounds[0][0])
    levels = [np.concatenate([[0], np.cumsum([n_leaves[n] for n in level])]) for level in rounds]
    if len(levels) == 1:  # the tree has a single label
        levels.append(levels[0])
    return LabelPartition(np.array([label[node] for node in nodes]), tuple(levels))


def _skip_single_children(children: Children, node: int) -> int:
    while len(children[node]) == 1:
        node = children[node][0]
    return node


def _count_leaves(children: Children, root: int) -> dict[int, int]:
    """Return the number of leaves below each node."""
    order = [root]
    for node in order:
        order.extend(_skip_single_children(children, child) for child in children[node])
    count: dict[int, int] = {}
    for node in reversed(order):
        below = (_skip_single_children(children, child) for child in children[node])
        count[node] = sum(count[child] for child in below) or 1
    return count


def _elements(group: Any) -> Iterable[tuple[Hashable, Any, str]]:
    """Return the name, the content and the index expression of each element of a group.

    The content of a label is None.
    """
    if isinstance(group, Mapping):
        return [(name, content, f"[{name!r}]") for name, content in group.items()]
    is_set = isinstance(group, set | frozenset)
    steps = ["{..}" if is_set else f"[{index}]" for index in range(len(group))]
    return [
        (None, element, step) if _is_container(element) else (element, None, step)
        for element, step in zip(group, steps, strict=True)
    ]


def _is_container(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple | set | frozenset | np.ndarray)


def _as_pairs(hierarchy: Any) -> list[tuple[Hashable, Hashable]] | None:
    """Return the (child, parent) pairs if the hierarchy is given as pairs, else None."""
    if isinstance(hierarchy, Mapping):
        parents = list(hierarchy.values())
        flat = parents and not any(_is_container(parent) for parent in parents)
        named = any(parent is not None for parent in parents)
        return list(hierarchy.items()) if flat and named else None
    pairs = list(hierarchy)
    if not pairs or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        return None
    return None if any(_is_container(name) for pair in pairs for name in pair) else pairs


def _parents(pairs: Sequence[tuple[Hashable, Hashable]]) -> dict[Hashable, Hashable]:
    """Return the parent of each node, which is None for a top node."""
    parents: dict[Hashable, Hashable] = {}
    for child, parent in pairs:
        if child in parents:
            raise HierarchyError.two_parents(child, [parents[child], parent])
        parents[child] = parent
    loose = [parent for parent in dict.fromkeys(parents.values()) if parent not in parents]
    tops = [parent for parent in loose if parent is not None]
    if len(tops) > 1 or (tops and len(loose) > len(tops)):
        top_children = [child for child, parent in parents.items() if parent is None]
        raise HierarchyError.two_roots([*tops, *top_children])
    for parent in tops:
        parents[parent] = None
    return parents


def _find_cycle(parents: dict[Hashable, Hashable], placed: set[Hashable]) -> list[Hashable]:
    """Return the nodes of a cycle; `placed` holds the nodes that can be reached from the top."""
    node = next(child for child in parents if child not in placed)
    visited: dict[Hashable, None] = {}
    while node not in visited:
        visited[node] = None
        node = parents[node]
    path = list(visited)
    return [*path[path.index(node) :], node]


def _guess_form(hierarchy: Any, pairs: Any, labels: Sequence[Hashable]) -> str | None:
    """Guess what the user meant by an invalid hierarchy: tuples as groups, or lists as pairs."""
    if isinstance(hierarchy, Mapping):
        return None
    known = set(labels)
    if pairs is not None:
        return "groups" if all(name in known for pair in pairs for name in pair) else None
    twos = all(_is_container(group) and len(group) == 2 for group in hierarchy)
    flat = twos and not any(_is_container(name) for group in hierarchy for name in group)
    return "pairs" if flat and all(list(group)[1] not in known for group in hierarchy) else None


_MIN_SHARE = 8  # each side of a split has at least one eighth of the classes
_ROUNDS = 20  # largest number of iterations

LeafRange = tuple[int, int]  # range of leaves below a node: first, and one after the last


class ClassSplit(NamedTuple):
    """Classes on the two sides of a node."""

    left: Ints
    right: Ints


def tree_from_moments(moments: ClassMoments) -> tuple[Tree, Floats]:
    """Return the tree computed from class moments, and the centre (d,) to subtract from rows.

    The path score of the tree is 'logistic'.
    """
    check_classes(moments)
    metric = pooled_metric(moments.reduce("pooled"), GaussianFamily(denominator="ml"))
    anchor, moved = moments.anchor.shift(moments.centre)
    points = metric.whiten(moments.mean - moved)
    splits, partition = _split_recursively(points, moments.weight)
    rules = [_two_class_rule(split, points, moments.weight) for split in splits]
    slope = metric.directions(np.array([rule[0] for rule in rules]).T).T / anchor.unit
    intercept = np.array([rule[1] for rule in rules])
    place = np.empty(len(points), np.int64)
    place[partition.label_of] = np.arange(len(points))
    split_of = {_leaf_range(split, place): index for index, split in enumerate(splits)}
    layers = [
        _layer(partition, level, split_of, slope, intercept)
        for level in range(len(partition.levels) - 1)
    ]
    return Tree(partition.label_of, tuple(layers)), anchor.origin


def _split_recursively(points: Floats, weight: Floats) -> tuple[list[ClassSplit], LabelPartition]:
    """Split the classes recursively; return the splits and the partition that they form."""
    K = len(points)
    children: Children = [[] for _ in range(K + 1)]
    splits, waiting = list[ClassSplit](), [(K, np.arange(K))]
    while waiting:
        node, codes = waiting.pop()
        split = _split_classes(codes, points[codes], weight[codes])
        splits.append(split)
        for side in split:
            if len(side) == 1:
                children[node].append(int(side[0]))
                continue
            children.append([])
            children[node].append(len(children) - 1)
            waiting.append((len(children) - 1, side))
    return splits, partition_from_children(children, K, np.arange(K))


def _split_classes(codes: Ints, points: Floats, weight: Floats) -> ClassSplit:
    """Split some classes into two well separated groups."""
    if len(codes) == 2:
        return ClassSplit(codes[:1], codes[1:])
    weighted = np.sqrt(weight)[:, None] * (points - weight @ points / weight.sum())
    split = _split_along(np.linalg.svd(weighted, full_matrices=False)[2][0], points, weight)
    for _ in range(_ROUNDS):
        direction = _two_class_rule(split, points, weight)[0]
        last, split = split, _split_along(direction, points, weight)
        if np.array_equal(last.left, split.left):
            break
    return ClassSplit(codes[split.left], codes[split.right])


def _split_along(direction: Floats, points: Floats, weight: Floats) -> ClassSplit:
    """Split points along a direction so that the weighted means of both sides are farthest apart.

    The first point is always on the left side.
    """
    n, along = len(points), points @ direction
    order = np.argsort(along, kind="stable")
    centred = along[order] - weight @ along / weight.sum()
    mass, moment = np.cumsum(weight[order]), np.cumsum(weight[order] * centred)
    distance = moment[:-1] ** 2 / (mass[:-1] * (mass[-1] - mass[:-1]))
    least = max(1, n // _MIN_SHARE)
    at = least + int(np.argmax(distance[least - 1 : n - least]))
    sides = np.sort(order[:at]), np.sort(order[at:])
    return ClassSplit(*(sides if sides[0][0] == 0 else sides[::-1]))


def _two_class_rule(split: ClassSplit, points: Floats, weight: Floats) -> tuple[Floats, float]:
    """Return direction and intercept of the log odds of the right side, for whitened rows."""
    n = [float(weight[side].sum()) for side in split]
    mean = [weight[side] @ points[side] / n_side for side, n_side in zip(split, n, strict=True)]
    deviations = np.concatenate(
        [
            np.sqrt(weight[side] / sum(n))[:, None] * (points[side] - centre)
            for side, centre in zip(split, mean, strict=True)
            if len(side) > 1
        ]
        or [np.empty((0, points.shape[1]))]
    )
    direction = _solve_within(deviations, mean[1] - mean[0])
    return direction, float(np.log(n[1] / n[0]) - direction @ (mean[0] + mean[1]) / 2)


def _solve_within(deviations: Floats, difference: Floats) -> Floats:
    """Return (I + D'D)^-1 times `difference`, where I is the identity and D is `deviations`.

    The system is solved in the smaller dimension of D.
    """
    n, d = deviations.shape
    if n < d:
        small = np.eye(n) + deviations @ deviations.T
        solution = solve(small, deviations @ difference, assume_a="pos")
        return np.asarray(difference - deviations.T @ solution)
    return np.asarray(solve(np.eye(d) + deviations.T @ deviations, difference, assume_a="pos"))


def _leaf_range(split: ClassSplit, place: Ints) -> LeafRange:
    first = int(min(place[side].min() for side in split))
    return first, first + sum(len(side) for side in split)


def _layer(
    partition: LabelPartition,
    level: int,
    split_of: dict[LeafRange, int],
    slope: Floats,
    intercept: Floats,
) -> Layer:
    """Return the layer below a level: two children for a split, one without weights for a leaf."""
    ranges = pairwise(partition.levels[level].tolist())
    index = np.array([split_of.get(leaves, -1) for leaves in ranges])
    is_split, d = index >= 0, slope.shape[1]
    splits = index[is_split]
    children = child_offsets(partition, level)
    bias = np.full(int(children[-1]), np.inf)
    left = children[:-1][is_split]
    bias[left], bias[left + 1] = -intercept[splits], intercept[splits]
    return Layer.of(
        children=children,
        chunks=np.concatenate([[0], np.cumsum(is_split * d)]),
        feature=np.tile(np.arange(d, dtype=np.int32), len(splits)),
        entries=2 * np.arange(len(splits) * d + 1),
        child=np.tile(np.array([0, 1], np.uint8), len(splits) * d),
        weight=np.stack([-slope[splits], slope[splits]], axis=-1).ravel(),
        bias=bias,
    )


# rows are rescaled if their largest absolute value is below this, or above its inverse
_SMALL = 1e-15
_GAIN = 1e-4  # k-means ends when the mean cosine rises by less than this


def label_means(rows: sparse.csr_matrix, labels: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return the mean of the rows of each label, scaled to unit length (L, d), in float32.

    The mean is zero for a label without rows.
    """
    pattern = sparse.csr_matrix(
        (np.ones(labels.nnz, np.float32), labels.indices, labels.indptr), shape=labels.shape
    )
    means = (pattern.T.tocsr() @ _to_single(rows)).tocsr()
    means.sort_indices()
    length = np.sqrt(
        np.add.reduceat(np.append(means.data.astype(np.float64) ** 2, 0.0), means.indptr[:-1])
    )
    length[np.diff(means.indptr) == 0] = 1.0
    length[length == 0.0] = 1.0
    means.data /= np.repeat(length, np.diff(means.indptr)).astype(np.float32)
    return sparse.csr_matrix(means)


def _to_single(rows: sparse.csr_matrix) -> sparse.csr_matrix:
    """Convert rows to float32, rescaled if sums of them would overflow or underflow."""
    largest = float(np.abs(rows.data).max(initial=0.0))
    if not largest or _SMALL < largest < 1 / _SMALL:
        return rows.astype(np.float32, copy=False)
    data = np.ldexp(rows.data.astype(np.float64), -int(np.frexp(largest)[1])).astype(np.float32)
    return sparse.csr_matrix((data, rows.indices, rows.indptr), shape=rows.shape)


def projection_order(means: sparse.csr_matrix, *, seed: int) -> Ints:
    """Return the labels (L,), sorted by a random projection of their means."""
    direction = np.random.default_rng(seed).standard_normal(means.shape[1], dtype=np.float32)
    return np.argsort(means @ direction, kind="stable")


def one_vs_rest_partition(n_labels: int) -> LabelPartition:
    """Return the partition in which all labels are children of the root."""
    return LabelPartition(np.arange(n_labels), (np.array([0, n_labels]), np.arange(n_labels + 1)))


def balanced_partition(
    means: sparse.csr_matrix,
    *,
    arity: int = 16,
    leaf: int = 100,
    seed: int = 0,
    threads: int | None = None,
) -> LabelPartition:
    """Return the partition by repeated bisection, until no group has more than `leaf` labels."""
    L = means.shape[0]
    groups = 1 << max(0, int(np.ceil(np.log2(max(L, 1) / leaf))))
    order = projection_order(means, seed=seed)
    bisection = Bisection(means, order, seed=seed, threads=threads)
    levels, borders, n_groups = [np.array([0, L])], np.array([0, L]), np.array([groups])
    sizes = [1]  # number of groups per node of each level below the root, from the leaves up
    while sizes[-1] * arity < groups:
        sizes.append(sizes[-1] * arity)
    for size in reversed(sizes if groups > 1 else []):
        borders, n_groups = bisection.cut(borders, n_groups, size)
        levels.append(borders)
    if len(borders) - 1 < L:
        levels.append(np.arange(L + 1))
    return LabelPartition(order, tuple(levels))


def wide_partition(
    means: sparse.csr_matrix,
    *,
    arity: int = 100,
    depth: int = 2,
    leaf: int = 100,
    smallest: int = 2,
    seed: int = 0,
    threads: int | None = None,
) -> LabelPartition:
    """Return the partition by spherical k-means.

    Clustering is applied `depth` times, to groups of at least `leaf` labels.
    """
    L = means.shape[0]
    order, levels = projection_order(means, seed=seed), [np.array([0, L])]
    for level in range(depth):
        parts = list(pairwise(levels[-1].tolist()))
        cut = [i for i, (start, stop) in enumerate(parts) if stop - start >= max(leaf, 2)]
        if not cut:
            break
        workers = 1 if len(cut) > 1 else threads or os.cpu_count() or 1
        tasks = [
            SphericalKMeans(means, order[slice(*parts[i])], arity, [seed, level, i], workers)
            for i in cut
        ]
        with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
            divided = pool.map(lambda task: task.divide(smallest), tasks)
            sizes_of = dict(zip(cut, divided, strict=True))
        sizes = [sizes_of.get(i, [stop - start]) for i, (start, stop) in enumerate(parts)]
        levels.append(np.concatenate([[0], np.cumsum(list(chain.from_iterable(sizes)))]))
    if len(levels[-1]) - 1 < L:
        levels.append(np.arange(L + 1))
    return LabelPartition(order, tuple(levels))


def sort_by_frequency(partition: LabelPartition, frequency: Ints) -> LabelPartition:
    """Return the partition with the children of each node sorted by their number of rows.

    Children are trained in blocks in this order, so that the children of a block have similar
    frequencies.
    """
    before = np.concatenate([[0], np.cumsum(frequency[partition.label_of])])
    levels, place, order = [partition.levels[0]], np.zeros(1, np.int64), np.zeros(1, np.int64)
    for above, below in pairwise(partition.levels):
        parent = np.searchsorted(above, below[:-1], side="right") - 1
        order = np.lexsort((np.diff(before[below]), place[parent]))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        levels.append(np.concatenate([[0], np.cumsum(np.diff(below)[order])]))
    return LabelPartition(partition.label_of[order], tuple(levels))


class SphericalKMeans:
    """Spherical k-means of labels, each represented by its unit mean."""

    def __init__(
        self,
        means: sparse.csr_matrix,
        labels: Ints,
        k: int,
        seed: Sequence[int],
        workers: int,
    ) -> None:
        self.means, self.labels, self.k = means, labels, min(k, len(labels))
        self.workers, self.seed = workers, seed
        self.open = np.ones(self.k, bool)

    def divide(self, smallest: int) -> list[int]:
        """Sort the labels by cluster in place, and return the cluster sizes."""
        used = np.unique(self.means[self.labels].indices)
        self.local_of = np.zeros(self.means.shape[1], np.int32)
        self.local_of[used] = np.arange(len(used))
        self.centre = np.empty((len(used), self.k), np.float32)
        code = self._cluster(smallest)
        del self.centre, self.local_of
        self.labels[:] = self.labels[np.argsort(code, kind="stable")]
        return [int(size) for size in np.bincount(code) if size]

    def _cluster(self, smallest: int) -> Ints:
        """Return the cluster of each label.

        The labels of clusters with fewer than `smallest` labels are assigned to other clusters.
        """
        rng = np.random.default_rng(self.seed)
        first = rng.choice(len(self.labels), self.k, replace=False)
        self._update_centres(self.labels[first], np.arange(self.k))
        before = -2.0
        for _ in range(_ROUNDS):
            code, score = self._assign(self.labels)
            now = float(score.mean(dtype=np.float64))
            if now - before < _GAIN:
                break
            before = now
            self._update_centres(self.labels, code)
        return self._dissolve_small(code, smallest)

    def _dissolve_small(self, code: Ints, smallest: int) -> Ints:
        count = np.bincount(code, minlength=self.k)
        self.open = count > 0
        while True:
            size = np.where(self.open, count, len(code) + 1)
            least = int(size.argmin())
            if size[least] >= smallest or self.open.sum() == 1:
                return code
            self.open[least] = False
            moved = np.flatnonzero(code == least)
            code[moved] = self._assign(self.labels[moved])[0]
            count = np.bincount(code, minlength=self.k)

    def _assign(self, labels: Ints) -> tuple[Ints, Reals]:
        """Return the nearest open centre for each label, and the cosine between both."""
        from discriminant.extreme.model.compiled_tree_construction import assign_nearest

        code, score = np.empty(len(labels), np.int64), np.empty(len(labels), np.float32)
        Z, step = self.means, max(len(labels) // self.workers + 1, 256)

        def assign_block(start: int) -> None:
            part = slice(start, start + step)
            out = code[part], score[part]
            rows = Z.indptr, Z.indices, Z.data, labels[part]
            assign_nearest(*rows, self.centre, self.local_of, self.open, *out)

        if len(labels) <= step:
            assign_block(0)
        else:
            with ThreadPoolExecutor(self.workers) as pool:
                list(pool.map(assign_block, range(0, len(labels), step)))
        return code, score

    def _update_centres(self, labels: Ints, code: Ints) -> None:
        from discriminant.extreme.model.compiled_tree_construction import update_centres

        Z = self.means
        update_centres(Z.indptr, Z.indices, Z.data, labels, code, self.local_of, self.centre)


class Bisection:
    """Repeated bisection of groups of labels by spherical 2-means."""

    def __init__(
        self, means: sparse.csr_matrix, order: Ints, *, seed: int, threads: int | None
    ) -> None:
        self.means, self.order = means, order
        self.seed, self.round = seed, 0
        self.workers = threads or os.cpu_count() or 1
        self.local = threading.local()

    def cut(self, borders: Ints, groups: Ints, most: int) -> tuple[Ints, Ints]:
        """Bisect until each part consists of at most `most` groups.

        Return the borders of the parts and the number of groups in each.
        """
        while groups.max() > most:
            borders, groups = self._bisect_parts(borders, groups, most)
        return borders, groups

    def _bisect_parts(self, borders: Ints, groups: Ints, most: int) -> tuple[Ints, Ints]:
        """Bisect every part that has too many groups, once."""
        starts, n_groups, tasks = [], [], []
        for i, (start, stop, group) in enumerate(zip(borders, borders[1:], groups, strict=False)):
            nodes = (group + most - 1) // most  # number of groups that each part is divided into
            left = min((nodes + 1) // 2 * most, group)
            right = (stop - start) * (group - left) // group  # number of labels in each part
            starts.append(start)
            if group <= most or stop - start == 1:
                n_groups.append(min(group, most))
                continue
            n_groups.append(left)
            if right > 0:
                seed = hash_integers(self.seed, self.round, i)
                tasks.append((start, stop, stop - start - right, seed))
                starts.append(stop - right)
                n_groups.append(group - left)
        self.round += 1
        with ThreadPoolExecutor(self.workers) as pool:
            list(pool.map(self._bisect, sorted(tasks, key=lambda task: task[0] - task[1])))
        return np.array([*starts, borders[-1]]), np.array(n_groups)

    def _bisect(self, task: tuple[int, int, int, int]) -> None:
        from discriminant.extreme.model.compiled_tree_construction import bisect_labels

        start, stop, first, seed = task
        if not hasattr(self.local, "centre"):
            self.local.centre = np.zeros((self.means.shape[1], 2), np.float32)
        rows = self.means.indptr, self.means.indices, self.means.data, self.order[start:stop]
        bisect_labels(*rows, first, self.local.centre, _ROUNDS, seed)


def hash_integers(*numbers: int) -> int:
    """Return a 63-bit hash of some integers (splitmix)."""
    key = 0
    for number in numbers:
        key = ((key ^ (number + 1)) * 0x9E3779B97F4A7C15) % 2**64
        key = ((key ^ (key >> 31)) * 0xBF58476D1CE4E5B9) % 2**64
        key ^= key >> 29
    return key >> 1 | 1
