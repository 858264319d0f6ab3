"""Trees over labels: from the rows of the labels, their frequencies, a hierarchy or class moments.

**From rows.** A label is represented by the mean of its rows, scaled to unit length. Labels with
similar rows are put together:

    balanced      repeated bisection by spherical 2-means (Prabhu et al. 2018), of which every
                  log2(arity)-th level is kept, counted from the leaves up
    wide          k-means with many centres, applied twice (Khandagale et al. 2019)
    one-vs-rest   no tree: all labels below the root

Labels are first sorted by a random projection of their means. So a tree does not depend on the
names and the order of labels: permuted labels give the permuted tree.

**From frequencies.** A Huffman tree of arity a repeatedly joins the a rarest groups, so that
frequent labels are near the root: the smallest mean number of steps from the root to the label of a
row.

**From a hierarchy** in one of two forms:

    nested    {"fruit": ["apple", "pear"], "nut": {"hard": ["hazel"], "soft": ["cashew"]}},
              or lists within lists: [["apple", "pear"], [["hazel"], ["cashew"]]]
    pairs     child and parent: [("apple", "fruit"), ("fruit", "food"), ..], or a mapping of them;
              the parent of a top node is None, or the top is the one node without a parent

Leaves are labels, each in one place. A label may also be an inner node, by name in a mapping or in
pairs: it then is a leaf below itself. A node with a single child is replaced by that child.

**From class moments**, without reading rows. All classes share their covariance C = W / n, as in
LDA. Whitened, z = C^(-1/2) x, a class is represented by its mean; a tree is then built of K points
of weights n_k:

    the tree      a node is split along a direction, at the cut with the largest distance between
                  the means of the two sides: first along the direction of largest variance, then,
                  until the sides do not change, along the discriminant direction of the two sides
    a node        two groups l and r of points. Within groups, rows scatter by
                      V = I + sum over both of n_k (z_k - z_g)(z_k - z_g)' / n
                  as follows from the grouped moments; so the log odds of r are, as for any two
                  classes of LDA,
                      m(z) = (z - (z_l + z_r) / 2)' V^-1 (z_r - z_l) + log(n_r / n_l)

A node of two classes separates them as LDA does. The child r has the margin m and l has -m, so that
with the path score 'logistic' the probabilities of the leaves sum to one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import solve

from discriminant.errors import HierarchyError
from discriminant.extreme.model.tasks import child_offsets
from discriminant.extreme.model.fitted_tree import Ints, LabelPartition, Layer, Reals, Tree
from discriminant.models.gaussian.family import GaussianFamily, check_classes, pooled_metric
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Floats

Below = list[list[int]]  # the children of each node; none of a leaf


def huffman_partition(
    frequency: Any, *, arity: int = 16, order: Ints | None = None
) -> LabelPartition:
    """Return the Huffman tree of labels with these frequencies.

    Ties are broken by `order` if given, else by the codes of the labels.
    """
    count = np.asarray(frequency, dtype=np.float64)
    L = len(count)
    rank = np.empty(L, np.int64)
    rank[np.arange(L) if order is None else order] = np.arange(L)
    heap = [(float(count[label]), int(rank[label]), label) for label in range(L)]
    heapify(heap)
    below: Below = [[] for _ in range(L)]
    joined = (L - 2) % (arity - 1) + 2 if L > 1 else 1  # so that the root has all its children
    while len(heap) > 1:
        parts = [heappop(heap) for _ in range(min(joined, len(heap)))]
        below.append([node for _, _, node in reversed(parts)])
        heappush(heap, (sum(part[0] for part in parts), len(below), len(below) - 1))
        joined = arity
    return partition_from_children(below, heap[0][2], np.arange(L))


def hierarchy_partition(hierarchy: Any, labels: Sequence[Hashable]) -> LabelPartition:
    """Return the partition for a hierarchy passed by the user.

    Examples
    --------
    >>> hierarchy = {"nut": ["hazel", "cashew"], "fruit": ["apple"]}
    >>> hierarchy_partition(hierarchy, ["apple", "cashew", "hazel"])
    ... # doctest: +NORMALIZE_WHITESPACE
    LabelPartition(label_of=array([2, 1, 0]), levels=(array([0, 3]), array([0, 2, 3]),
    array([0, 1, 2, 3])))
    """
    if not _holds(hierarchy):
        raise HierarchyError.of_kind(type(hierarchy).__name__)
    if not len(hierarchy):
        raise HierarchyError.empty(len(labels))
    tree = HierarchyBuilder()
    pairs = _pairs(hierarchy)
    try:
        if pairs is None:
            tree.add_nested(hierarchy)
        else:
            tree.add_pairs(pairs)
        return tree.to_partition(labels)
    except HierarchyError as fault:
        raise fault.with_hint(_meant(hierarchy, pairs, labels)) from None


class HierarchyBuilder:
    """Builds a tree of named nodes from a hierarchy."""

    def __init__(self) -> None:
        self.names: list[Hashable] = [None]
        self.steps: list[str] = ["tree"]  # index expression from the parent, for messages
        self.below: Below = [[]]
        self.inner: set[int] = {0}  # nodes with children in the hierarchy
        self.hollow: set[int] = set()  # empty groups

    def add(self, name: Hashable, above: int, step: str = "") -> int:
        """Add a node below another and return its index."""
        self.names.append(name)
        self.steps.append(step)
        self.below.append([])
        self.below[above].append(len(self.names) - 1)
        return len(self.names) - 1

    def add_nested(self, hierarchy: Any) -> None:
        """Add a nested hierarchy: mappings and lists are parents of their elements."""
        waiting: list[tuple[Any, int, tuple[int, ...]]] = [(hierarchy, 0, ())]
        while waiting:
            held, node, path = waiting.pop()
            if id(held) in path:
                raise HierarchyError.cycle([self.names[node], self.names[node]])
            (self.inner if len(held) else self.hollow).add(node)  # a hollow one may be a label
            inside: list[tuple[Any, int, tuple[int, ...]]] = []
            for name, part, step in _parts(held):
                child = self.add(name, node, step)
                if part is not None:
                    inside.append((part, child, (*path, id(held))))
            waiting.extend(reversed(inside))  # the first is next

    def add_pairs(self, pairs: Sequence[tuple[Hashable, Hashable]]) -> None:
        """Add a hierarchy of (child, parent) pairs."""
        above = _above(pairs)
        children: dict[Hashable, list[Hashable]] = {}
        for child, parent in above.items():
            children.setdefault(parent, []).append(child)
        waiting: list[tuple[Hashable, int]] = [(None, 0)]
        while waiting:
            name, node = waiting.pop()
            for child in children.get(name, []):
                at = self.add(child, node)
                if child in children:
                    self.inner.add(at)
                    waiting.append((child, at))
        if len(self.names) - 1 < len(above):
            raise HierarchyError.cycle(_cycle(above, set(self.names)))

    def to_partition(self, labels: Sequence[Hashable]) -> LabelPartition:
        """Match the leaves with the labels, each exactly once."""
        code = {label: place for place, label in enumerate(labels)}
        for node in sorted(self.inner - {0}):  # a label that stands above others
            if self.names[node] in code and self.names[node] is not None:
                self.add(self.names[node], node)
        leaves = [node for node in range(1, len(self.names)) if not self.below[node]]
        names = [self.names[node] for node in leaves]
        self._check(leaves, code)
        found = np.full(len(self.names), -1)
        found[leaves] = [code[name] for name in names]
        return partition_from_children(self.below, 0, found)

    def _check(self, leaves: Sequence[int], code: Mapping[Hashable, int]) -> None:
        """Raise unless the leaves are exactly the labels."""
        above = {child: node for node, children in enumerate(self.below) for child in children}
        places: dict[Hashable, list[int]] = {}
        for leaf in leaves:
            places.setdefault(self.names[leaf], []).append(leaf)
        hollow = [leaf for leaf in leaves if leaf in self.hollow and self.names[leaf] not in code]
        if hollow:
            raise HierarchyError.empty_node(len(hollow), self._place(hollow[0], above))
        unknown = [name for name in places if name not in code]
        if unknown:
            raise HierarchyError.unknown(unknown, self._place(places[unknown[0]][0], above))
        for name, found in places.items():
            if len(found) > 1:
                raise HierarchyError.duplicate(name, [self._place(leaf, above) for leaf in found])
        missing = [label for label in code if label not in places]
        if missing:
            raise HierarchyError.orphan(missing)

    def _place(self, node: int, above: Mapping[int, int]) -> str:
        """Position of a node for messages: tree['nut'][1] if nested, else its parent."""
        if not self.steps[node]:
            return f"below '{self.names[above[node]]}'" if above[node] else "at the top"
        path = []
        while node:
            path.append(self.steps[node])
            node = above[node]
        return "tree" + "".join(reversed(path))


def partition_from_children(below: Below, root: int, label: Ints) -> LabelPartition:
    """Return the partition of a tree; leaves are repeated down to the last level."""
    at = [_down(below, root)]
    rounds = [at]
    while any(below[node] for node in at):
        at = [_down(below, child) for node in at for child in (below[node] or [node])]
        rounds.append(at)
    leaves = _leaves(below, rounds[0][0])
    levels = [np.concatenate([[0], np.cumsum([leaves[node] for node in at])]) for at in rounds]
    if len(levels) == 1:  # one label alone
        levels.append(levels[0])
    return LabelPartition(np.array([label[node] for node in at]), tuple(levels))


def _down(below: Below, node: int) -> int:
    while len(below[node]) == 1:
        node = below[node][0]
    return node


def _leaves(below: Below, root: int) -> dict[int, int]:
    """Number of leaves below each node."""
    order = [root]
    for node in order:
        order.extend(_down(below, child) for child in below[node])
    found: dict[int, int] = {}
    for node in reversed(order):
        found[node] = sum(found[_down(below, child)] for child in below[node]) or 1
    return found


def _parts(held: Any) -> Iterable[tuple[Hashable, Any, str]]:
    """Name, content and index expression of each element; labels have no content."""
    if isinstance(held, Mapping):
        return [(name, part, f"[{name!r}]") for name, part in held.items()]
    steps = ("{..}" for _ in held) if isinstance(held, set | frozenset) else _numbered(held)
    parts = zip(held, steps, strict=True)
    return [(None, part, at) if _holds(part) else (part, None, at) for part, at in parts]


def _numbered(held: Any) -> Iterable[str]:
    return (f"[{place}]" for place in range(len(held)))


def _holds(part: Any) -> bool:
    return isinstance(part, Mapping | list | tuple | set | frozenset | np.ndarray)


def _pairs(hierarchy: Any) -> list[tuple[Hashable, Hashable]] | None:
    """Return the (child, parent) pairs if the hierarchy has that form, else None."""
    if isinstance(hierarchy, Mapping):
        parents = list(hierarchy.values())
        flat = parents and not any(_holds(parent) for parent in parents)
        named = any(parent is not None for parent in parents)
        return list(hierarchy.items()) if flat and named else None
    told = list(hierarchy)
    if told and all(isinstance(pair, tuple) and len(pair) == 2 for pair in told):
        return None if any(_holds(part) for pair in told for part in pair) else told
    return None


def _above(pairs: Sequence[tuple[Hashable, Hashable]]) -> dict[Hashable, Hashable]:
    """Parent of each node; None for top nodes."""
    above: dict[Hashable, Hashable] = {}
    for child, parent in pairs:
        if child in above:
            raise HierarchyError.two_parents(child, [above[child], parent])
        above[child] = parent
    loose = [parent for parent in dict.fromkeys(above.values()) if parent not in above]
    tops = [parent for parent in loose if parent is not None]
    if len(tops) > 1 or (tops and len(loose) > len(tops)):
        raise HierarchyError.two_roots([*tops, *(child for child in above if above[child] is None)])
    for parent in tops:
        above[parent] = None
    return above


def _cycle(above: dict[Hashable, Hashable], placed: set[Hashable]) -> list[Hashable]:
    """Nodes of a cycle, among those that cannot be reached from the top."""
    node = next(child for child in above if child not in placed)
    seen: dict[Hashable, None] = {}
    while node not in seen:
        seen[node] = None
        node = above[node]
    path = list(seen)
    return [*path[path.index(node) :], node]


def _meant(hierarchy: Any, pairs: Any, labels: Sequence[Hashable]) -> str | None:
    """Guess what an invalid hierarchy means: tuples as groups, or lists as pairs."""
    if isinstance(hierarchy, Mapping):
        return None
    known = set(labels)
    if pairs is not None:
        return "groups" if all(name in known for pair in pairs for name in pair) else None
    twos = all(_holds(part) and len(part) == 2 for part in hierarchy)
    flat = twos and not any(_holds(name) for part in hierarchy for name in part)
    return "pairs" if flat and all(list(part)[1] not in known for part in hierarchy) else None


_LEAST = 8  # a split leaves at least one in 8 classes on either side
_ROUNDS = 20  # largest number of iterations

Run = tuple[int, int]  # the leaves of a node: from the first, up to the last


class ClassSplit(NamedTuple):
    """Classes on the two sides of a node."""

    left: Ints
    right: Ints


def tree_from_moments(moments: ClassMoments) -> tuple[Tree, Floats]:
    """Return the tree computed from class moments, and the centre (d,) to subtract from rows.

    Its path score is 'logistic'.
    """
    check_classes(moments)
    metric = pooled_metric(moments.reduce("pooled"), GaussianFamily(denominator="ml"))
    anchor, moved = moments.anchor.shift(moments.centre)
    points = metric.whiten(moments.mean - moved)
    forks, partition = _divided(points, moments.weight)
    rules = [_rule(fork, points, moments.weight) for fork in forks]
    slope = metric.directions(np.array([rule[0] for rule in rules]).T).T / anchor.unit
    intercept = np.array([rule[1] for rule in rules])
    place = np.empty(len(points), np.int64)
    place[partition.label_of] = np.arange(len(points))
    node = {_run(fork, place): at for at, fork in enumerate(forks)}
    layers = [
        _layer(partition, level, node, slope, intercept)
        for level in range(len(partition.levels) - 1)
    ]
    return Tree(partition.label_of, tuple(layers)), anchor.origin


def _divided(points: Floats, weight: Floats) -> tuple[list[ClassSplit], LabelPartition]:
    """Split the classes recursively; return the splits and their partition."""
    K = len(points)
    below: list[list[int]] = [[] for _ in range(K + 1)]
    forks, waiting = list[ClassSplit](), [(K, np.arange(K))]
    while waiting:
        node, codes = waiting.pop()
        fork = _cut(codes, points[codes], weight[codes])
        forks.append(fork)
        for side in fork:
            if len(side) == 1:
                below[node].append(int(side[0]))
                continue
            below.append([])
            below[node].append(len(below) - 1)
            waiting.append((len(below) - 1, side))
    return forks, partition_from_children(below, K, np.arange(K))


def _cut(codes: Ints, points: Floats, weight: Floats) -> ClassSplit:
    """Split some classes into two groups that are well separated."""
    if len(codes) == 2:
        return ClassSplit(codes[:1], codes[1:])
    heavy = np.sqrt(weight)[:, None] * (points - weight @ points / weight.sum())
    fork = _across(np.linalg.svd(heavy, full_matrices=False)[2][0], points, weight)
    for _ in range(_ROUNDS):
        last, fork = fork, _across(_rule(fork, points, weight)[0], points, weight)
        if np.array_equal(last.left, fork.left):
            break
    return ClassSplit(codes[fork.left], codes[fork.right])


def _across(direction: Floats, points: Floats, weight: Floats) -> ClassSplit:
    """The two sides along a direction whose means are farthest from each other, by their weights.

    The first of the points is on the left.
    """
    n, along = len(points), points @ direction
    order = np.argsort(along, kind="stable")
    centred = along[order] - weight @ along / weight.sum()
    mass, moment = np.cumsum(weight[order]), np.cumsum(weight[order] * centred)
    apart = moment[:-1] ** 2 / (mass[:-1] * (mass[-1] - mass[:-1]))
    least = max(1, n // _LEAST)
    at = least + int(np.argmax(apart[least - 1 : n - least]))
    sides = np.sort(order[:at]), np.sort(order[at:])
    return ClassSplit(*(sides if sides[0][0] == 0 else sides[::-1]))


def _rule(fork: ClassSplit, points: Floats, weight: Floats) -> tuple[Floats, float]:
    """Direction and intercept, for whitened rows, of the log odds of the right side."""
    n = [float(weight[side].sum()) for side in fork]
    mean = [weight[side] @ points[side] / n_side for side, n_side in zip(fork, n, strict=True)]
    spread = np.concatenate(
        [
            np.sqrt(weight[side] / sum(n))[:, None] * (points[side] - centre)
            for side, centre in zip(fork, mean, strict=True)
            if len(side) > 1
        ]
        or [np.empty((0, points.shape[1]))]
    )
    direction = _within(spread, mean[1] - mean[0])
    return direction, float(np.log(n[1] / n[0]) - direction @ (mean[0] + mean[1]) / 2)


def _within(spread: Floats, apart: Floats) -> Floats:
    """(I + spread' spread)^-1 apart, in the smaller of the two dimensions."""
    n, d = spread.shape
    if n < d:
        small = np.eye(n) + spread @ spread.T
        return np.asarray(apart - spread.T @ solve(small, spread @ apart, assume_a="pos"))
    return np.asarray(solve(np.eye(d) + spread.T @ spread, apart, assume_a="pos"))


def _run(fork: ClassSplit, place: Ints) -> Run:
    """Range of the leaves of a split, in leaf order."""
    first = int(min(place[side].min() for side in fork))
    return first, first + sum(len(side) for side in fork)


def _layer(
    partition: LabelPartition, level: int, node: dict[Run, int], slope: Floats, intercept: Floats
) -> Layer:
    """Layer below a level: two children of every split, one certain child of every leaf."""
    at = [node.get(run, -1) for run in pairwise(partition.levels[level].tolist())]
    forks = np.array([one for one in at if one >= 0])
    there, d = np.array(at) >= 0, slope.shape[1]
    children = child_offsets(partition, level)
    bias = np.full(int(children[-1]), np.inf)
    left = children[:-1][there]
    bias[left], bias[left + 1] = -intercept[forks], intercept[forks]
    return Layer.of(
        children=children,
        chunks=np.concatenate([[0], np.cumsum(there * d)]),
        feature=np.tile(np.arange(d, dtype=np.int32), len(forks)),
        entries=2 * np.arange(len(forks) * d + 1),
        child=np.tile(np.array([0, 1], np.uint8), len(forks) * d),
        weight=np.stack([-slope[forks], slope[forks]], axis=-1).ravel(),
        bias=bias,
    )


_SMALL = 1e-15  # of the largest number of rows: smaller, or 1 over it, their unit is changed
_GAIN = 1e-4  # of the mean likeness, below which k-means ends


def label_means(rows: sparse.csr_matrix, labels: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return the unit mean (L, d), float32, of each label's rows; zero without rows."""
    pattern = sparse.csr_matrix(
        (np.ones(labels.nnz, np.float32), labels.indices, labels.indptr), shape=labels.shape
    )
    means = (pattern.T.tocsr() @ _single(rows)).tocsr()
    means.sort_indices()
    length = np.sqrt(
        np.add.reduceat(np.append(means.data.astype(np.float64) ** 2, 0.0), means.indptr[:-1])
    )
    length[np.diff(means.indptr) == 0] = 1.0
    length[length == 0.0] = 1.0
    means.data /= np.repeat(length, np.diff(means.indptr)).astype(np.float32)
    return sparse.csr_matrix(means)


def _single(rows: sparse.csr_matrix) -> sparse.csr_matrix:
    """Rows in float32, rescaled if their sums would overflow or underflow."""
    most = float(np.abs(rows.data).max(initial=0.0))
    if not most or _SMALL < most < 1 / _SMALL:
        return rows.astype(np.float32, copy=False)
    data = np.ldexp(rows.data.astype(np.float64), -int(np.frexp(most)[1])).astype(np.float32)
    return sparse.csr_matrix((data, rows.indices, rows.indptr), shape=rows.shape)


def projection_order(means: sparse.csr_matrix, *, seed: int) -> Ints:
    """Return labels (L,) sorted by a random projection of their means."""
    direction = np.random.default_rng(seed).standard_normal(means.shape[1], dtype=np.float32)
    return np.argsort(means @ direction, kind="stable")


def one_vs_rest_partition(n_labels: int) -> LabelPartition:
    """Return the partition with all labels below the root."""
    return LabelPartition(np.arange(n_labels), (np.array([0, n_labels]), np.arange(n_labels + 1)))


def balanced_partition(
    means: sparse.csr_matrix,
    *,
    arity: int = 16,
    leaf: int = 100,
    seed: int = 0,
    threads: int | None = None,
) -> LabelPartition:
    """Bisect the labels repeatedly until no group has more than `leaf` labels."""
    L = means.shape[0]
    groups = 1 << max(0, int(np.ceil(np.log2(max(L, 1) / leaf))))
    order = projection_order(means, seed=seed)
    halves = Bisection(means, order, seed=seed, threads=threads)
    levels, borders, held = [np.array([0, L])], np.array([0, L]), np.array([groups])
    for below in _heights(groups, arity):
        borders, held = halves.cut(borders, held, below)
        levels.append(borders)
    if len(borders) - 1 < L:
        levels.append(np.arange(L + 1))
    return LabelPartition(order, tuple(levels))


def _heights(groups: int, arity: int) -> list[int]:
    """Groups per node of each level below the root: 1 at the leaves, arity times more above."""
    found, size = [], 1
    while size < groups:
        found.append(size)
        size *= arity
    return found[::-1]


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
    """Apply spherical k-means `depth` times to groups of at least `leaf` labels."""
    L = means.shape[0]
    order, levels = projection_order(means, seed=seed), [np.array([0, L])]
    for level in range(depth):
        parts = list(pairwise(levels[-1].tolist()))
        cut = [i for i, (start, stop) in enumerate(parts) if stop - start >= max(leaf, 2)]
        if not cut:
            break
        within = 1 if len(cut) > 1 else threads or os.cpu_count() or 1

        tasks = [
            SphericalKMeans(means, order[slice(*parts[i])], arity, [seed, level, i], within)
            for i in cut
        ]
        with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
            found = pool.map(lambda task: task.divide(smallest), tasks)
            sizes_of = dict(zip(cut, found, strict=True))
        sizes = [sizes_of.get(i, [stop - start]) for i, (start, stop) in enumerate(parts)]
        levels.append(np.concatenate([[0], np.cumsum([size for some in sizes for size in some])]))
    if len(levels[-1]) - 1 < L:
        levels.append(np.arange(L + 1))
    return LabelPartition(order, tuple(levels))


def sort_by_frequency(partition: LabelPartition, frequency: Ints) -> LabelPartition:
    """Sort the children of each node by the number of rows of their labels.

    Children are trained in blocks, in this order, so that those of a block need similar rows.
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
    """Spherical k-means of the unit means of some labels."""

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
        """Sort the labels by cluster and return the cluster sizes."""
        used = np.unique(self.means[self.labels].indices)
        self.local_of = np.zeros(self.means.shape[1], np.int32)
        self.local_of[used] = np.arange(len(used))
        self.centre = np.empty((len(used), self.k), np.float32)
        code = self._code(smallest)
        del self.centre, self.local_of
        self.labels[:] = self.labels[np.argsort(code, kind="stable")]
        return [int(size) for size in np.bincount(code) if size]

    def _code(self, smallest: int) -> Ints:
        """Cluster of each label; clusters with too few labels are dissolved."""
        rng = np.random.default_rng(self.seed)
        first = rng.choice(len(self.labels), self.k, replace=False)
        self._centre(self.labels[first], np.arange(self.k))
        before = -2.0
        for _ in range(_ROUNDS):
            code, score = self._nearest(self.labels)
            now = float(score.mean(dtype=np.float64))
            if now - before < _GAIN:
                break
            before = now
            self._centre(self.labels, code)
        return self._merged(code, smallest)

    def _merged(self, code: Ints, smallest: int) -> Ints:
        count = np.bincount(code, minlength=self.k)
        self.open = count > 0
        while True:
            size = np.where(self.open, count, len(code) + 1)
            least = int(size.argmin())
            if size[least] >= smallest or self.open.sum() == 1:
                return code
            self.open[least] = False
            moved = np.flatnonzero(code == least)
            code[moved] = self._nearest(self.labels[moved])[0]
            count = np.bincount(code, minlength=self.k)

    def _nearest(self, labels: Ints) -> tuple[Ints, Reals]:
        from discriminant.extreme.model.kernels_partition import assign_nearest

        code, score = np.empty(len(labels), np.int64), np.empty(len(labels), np.float32)
        Z, step = self.means, max(len(labels) // self.workers + 1, 256)

        def some(start: int) -> None:
            part = slice(start, start + step)
            out = code[part], score[part]
            rows = Z.indptr, Z.indices, Z.data, labels[part]
            assign_nearest(*rows, self.centre, self.local_of, self.open, *out)

        if len(labels) <= step:
            some(0)
        else:
            with ThreadPoolExecutor(self.workers) as pool:
                list(pool.map(some, range(0, len(labels), step)))
        return code, score

    def _centre(self, labels: Ints, code: Ints) -> None:
        from discriminant.extreme.model.kernels_partition import update_centres

        Z = self.means
        update_centres(Z.indptr, Z.indices, Z.data, labels, code, self.local_of, self.centre)


class Bisection:
    """Repeated bisection of groups of labels."""

    def __init__(
        self, means: sparse.csr_matrix, order: Ints, *, seed: int, threads: int | None
    ) -> None:
        self.means, self.order = means, order
        self.seed, self.round = seed, 0
        self.workers = threads or os.cpu_count() or 1
        self.own = threading.local()

    def cut(self, borders: Ints, groups: Ints, most: int) -> tuple[Ints, Ints]:
        """Bisect until each part has at most `most` groups; return borders and group counts."""
        while groups.max() > most:
            borders, groups = self._round(borders, groups, most)
        return borders, groups

    def _round(self, borders: Ints, groups: Ints, most: int) -> tuple[Ints, Ints]:
        """Bisect every part with too many groups."""
        starts, held, tasks = [], [], []
        for i, (start, stop, group) in enumerate(zip(borders, borders[1:], groups, strict=False)):
            nodes = (group + most - 1) // most  # of the level, that it becomes
            left = min((nodes + 1) // 2 * most, group)
            right = (stop - start) * (group - left) // group  # labels
            starts.append(start)
            if group <= most or stop - start == 1:
                held.append(min(group, most))
                continue
            held.append(left)
            if right > 0:
                tasks.append((start, stop, stop - start - right, self._seed(i)))
                starts.append(stop - right)
                held.append(group - left)
        self.round += 1
        with ThreadPoolExecutor(self.workers) as pool:
            list(pool.map(self._divide, sorted(tasks, key=lambda task: task[0] - task[1])))
        return np.array([*starts, borders[-1]]), np.array(held)

    def _seed(self, part: int) -> int:
        return hash_integers(self.seed, self.round, part)

    def _divide(self, task: tuple[int, int, int, int]) -> None:
        from discriminant.extreme.model import kernels_partition as loops

        start, stop, first, seed = task
        if not hasattr(self.own, "centre"):
            self.own.centre = np.zeros((self.means.shape[1], 2), np.float32)
        Z = self.means
        loops.bisect_labels(
            Z.indptr,
            Z.indices,
            Z.data,
            self.order[start:stop],
            first,
            self.own.centre,
            _ROUNDS,
            seed,
        )


def hash_integers(*numbers: int) -> int:
    """Return a 63-bit hash of some integers (splitmix)."""
    key = 0
    for number in numbers:
        key = ((key ^ (number + 1)) * 0x9E3779B97F4A7C15) % 2**64
        key = ((key ^ (key >> 31)) * 0xBF58476D1CE4E5B9) % 2**64
        key ^= key >> 29
    return key >> 1 | 1
