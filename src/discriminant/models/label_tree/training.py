"""Training a label tree: in every node, a linear classifier for each child, on the rows it sees.

A row reaches a node when one of its labels lies below it. There each child is told from its
siblings: rows with a label below the child are its positives, the others that reach the node are
not. All nodes of a level are independent; so are the children of one node, which are solved in
blocks of eight (`loops_training`).

    task      one node, or some blocks of a large one: a pure function of rows, settings and seed
    part      what a task gives: some children's columns of the node's chunk
    layer     the parts of a level, put together in the order of nodes

So neither the number of threads nor an interruption can change a bit of the model. A child without
siblings is certain, and nothing is trained for it. A node that no row reaches says no to all of
its children: bias -1.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse

from discriminant.models.label_tree.layers import Ints, Layer, Partition, Reals, Tree
from discriminant.models.label_tree.partition import hash_of

Loss = Literal["squared_hinge", "logistic"]
Progress = Callable[[int, int], object]  # work done, work in all

_LARGE = 4_000_000  # values of a node's rows times blocks, from which a task is divided
_BLOCK = 8  # children of a block: as in loops_training
_MOST = 2**16  # children of a part


@dataclass(frozen=True, slots=True)
class Settings:
    """What is asked of the classifiers in the nodes."""

    loss: Loss = "squared_hinge"
    cost: float = 1.0  # of a row, against |w|^2 / 2
    tolerance: float = 0.1  # of the slopes; the solution is exact as it goes to 0
    max_sweeps: int = 20
    threshold: float = 0.1  # weights not above it are left out
    precision: Literal["float32", "float64"] = "float32"
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """Which rows reach each of the M nodes of a level."""

    starts: Ints  # (M + 1,)
    rows: Ints  # rows of node m, rising: rows[starts[m] : starts[m + 1]]


@dataclass(frozen=True, slots=True)
class Task:
    """Some children of one node."""

    level: int
    node: int
    first: int  # child of the level below
    last: int  # one after
    work: int  # values read by one sweep


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What a task gives: R features that matter to some of its C children, E weights."""

    feature: Ints  # (R,) int32, rising
    count: Ints  # (R,) int32, weights of each
    child: Ints  # (E,) uint16, from the task's first
    weight: Reals  # (E,)
    bias: Reals  # (C,)


def train(
    partition: Partition,
    rows: sparse.csr_matrix,
    labels: sparse.csr_matrix,
    *,
    settings: Settings,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Tree:
    """The tree of a partition.

    Parameters
    ----------
    rows
        (N, d) features.
    labels
        (N, L) an entry where the row has the label.
    progress
        Called from time to time with the work done and the work in all, of the level under way.
    """
    reaches = list(reaching(partition, labels))
    layers = []
    for level in range(len(partition.levels) - 1):
        above, below = partition.levels[level : level + 2]
        children = np.searchsorted(below, above)
        tasks = tasks_of(level, children, reaches[level], rows.indptr)
        node = Node(rows, reaches[level], reaches[level + 1], children, settings)
        found = worked(node, tasks, threads=threads, progress=progress)
        layers.append(put_together(children, tasks, found, settings))
    return Tree(partition.label_of, tuple(layers))


def reaching(partition: Partition, labels: sparse.csr_matrix) -> Iterator[Reach]:
    """The rows that reach the nodes of each level, from the root down; places are sorted once."""
    n, L = labels.shape
    place = np.empty(L, np.int32)
    place[partition.label_of] = np.arange(L, dtype=np.int32)
    placed = sparse.csr_matrix(
        (np.ones(labels.nnz, np.int8), place[labels.indices], labels.indptr), shape=(n, L)
    )
    placed.sort_indices()
    row_starts = placed.indptr[:-1][np.diff(placed.indptr) > 0]
    for borders in partition.levels:
        nodes = len(borders) - 1
        node = np.repeat(np.arange(nodes, dtype=np.int32), np.diff(borders))[placed.indices]
        new = np.ones(len(node), bool)
        new[1:] = node[1:] != node[:-1]
        new[row_starts] = True
        starts = np.concatenate([[0], np.cumsum(new)])[placed.indptr]
        kept = node[new]
        by_row = sparse.csr_matrix((np.ones(len(kept), np.int8), kept, starts), shape=(n, nodes))
        by_node = by_row.tocsc()
        yield Reach(by_node.indptr.astype(np.int64), by_node.indices)


def tasks_of(level: int, children: Ints, reach: Reach, row_starts: Ints) -> list[Task]:
    """Nodes with more than one child, the large ones in several tasks; in the order of nodes."""
    size = np.concatenate([[0], np.cumsum(np.diff(row_starts)[reach.rows], dtype=np.int64)])
    size = np.diff(size[reach.starts]) + np.diff(reach.starts)
    tasks = []
    for node in np.flatnonzero(np.diff(children) > 1).tolist():
        at_once = max(1, min(_LARGE // max(int(size[node]), 1), _MOST // _BLOCK)) * _BLOCK
        for first in range(int(children[node]), int(children[node + 1]), at_once):
            last = min(first + at_once, int(children[node + 1]))
            work = int(size[node]) * (-(-(last - first) // _BLOCK) + 1)
            tasks.append(Task(level, node, first, last, work))
    return tasks


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """All that the tasks of one level share."""

    rows: sparse.csr_matrix  # (N, d)
    above: Reach
    below: Reach
    children: Ints  # (P + 1,)
    settings: Settings

    def solve(self, task: Task, scratch: Scratch, stop: Ints) -> Part:
        """The part of one task."""
        from discriminant.models.label_tree import loops_training as loops

        kind = np.dtype(self.settings.precision).type
        members = self.above.rows[self.above.starts[task.node] : self.above.starts[task.node + 1]]
        if len(members) == 0:
            return _refused(task, kind)
        bounds = self.below.starts[task.first : task.last + 1]
        listed = self.below.rows[bounds[0] : bounds[-1]]
        square = np.empty(len(members), kind)
        X = self.rows
        begin, local, value, feature = loops.gather(
            X.indptr, X.indices, X.data, members, *scratch.all, square
        )
        half = np.array([0.5 / self.settings.cost], kind)
        found = loops.solved(
            begin,
            local,
            value,
            square,
            len(feature),
            bounds - bounds[0],
            listed,
            scratch.place_of,
            half,
            kind(self.settings.tolerance),
            self.settings.max_sweeps,
            kind(self.settings.threshold),
            self._seeds(task),
            stop,
        )
        chunk = loops.scattered(*found[:4], members, *scratch.all)
        return Part(*chunk, found[4])

    def _seeds(self, task: Task) -> Ints:
        """One number per block, of the tree, the level, and where the block lies in its level."""
        start = (task.first - int(self.children[task.node])) // _BLOCK
        blocks = range(start, start + -(-(task.last - task.first) // _BLOCK))
        seed = self.settings.seed
        found = [hash_of(seed, task.level, task.node, block) for block in blocks]
        return np.array(found, np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class Scratch:
    """What one thread keeps between nodes; each task leaves it as it found it."""

    local_of: Ints  # (d,) -1
    place_of: Ints  # (N,) -1
    seen: Ints  # (d / 64 + 1,) 0

    @classmethod
    def of(cls, shape: tuple[int, int]) -> Scratch:
        n, d = shape
        return cls(
            np.full(d, -1, np.int32), np.full(n, -1, np.int32), np.zeros(d // 64 + 1, np.uint64)
        )

    @property
    def all(self) -> tuple[Ints, Ints, Ints]:
        return self.local_of, self.place_of, self.seen


def _refused(task: Task, kind: Any) -> Part:
    none = np.empty(0, np.int32)
    bias = np.full(task.last - task.first, -1, kind)
    return Part(none, none, np.empty(0, np.uint16), np.empty(0, kind), bias)


def worked(
    node: Node, tasks: list[Task], *, threads: int | None, progress: Progress | None
) -> dict[tuple[int, int], Part]:
    """The parts of all tasks of a level, by node and first child; the largest are begun first."""
    workers = threads or os.cpu_count() or 1
    stop, own = np.zeros(1, np.int8), threading.local()
    total, done = sum(task.work for task in tasks), 0

    def run(task: Task) -> tuple[Task, Part]:
        if not hasattr(own, "scratch"):
            own.scratch = Scratch.of(node.rows.shape)
        return task, node.solve(task, own.scratch, stop)

    found: dict[tuple[int, int], Part] = {}
    waiting = iter(sorted(tasks, key=lambda task: -task.work))
    with ThreadPoolExecutor(workers) as pool:
        under_way: set[Future[tuple[Task, Part]]] = set()
        try:
            while True:
                for task in waiting:
                    under_way.add(pool.submit(run, task))
                    if len(under_way) >= 4 * workers:
                        break
                if not under_way:
                    return found
                ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                for one in ended:
                    task, part = one.result()
                    found[task.node, task.first] = part
                    done += task.work
                if progress is not None:
                    progress(done, total)
        finally:
            stop[0] = 1
            for one in under_way:
                one.cancel()


def put_together(
    children: Ints, tasks: list[Task], found: dict[tuple[int, int], Part], settings: Settings
) -> Layer:
    """One layer of all its parts, in the order of nodes and children."""
    kind = np.dtype(settings.precision).type
    widest = int(np.diff(children).max(initial=0))
    code = np.min_scalar_type(max(widest - 1, 0))
    bias = np.full(int(children[-1]), np.inf, kind)
    chunk = np.zeros(len(children) - 1, np.int64)
    pieces: list[Part] = []
    by_node: dict[int, list[Task]] = {}
    for task in tasks:
        by_node.setdefault(task.node, []).append(task)
    for node, its in by_node.items():
        parts = [found.pop((task.node, task.first)) for task in its]
        for task, part in zip(its, parts, strict=True):
            bias[task.first : task.last] = part.bias
        whole = joined(parts, [task.first - int(children[node]) for task in its], code)
        chunk[node] = len(whole.feature)
        pieces.append(whole)
    return Layer(
        children=children.astype(np.int64),
        chunks=np.concatenate([[0], np.cumsum(chunk)]),
        feature=_all([part.feature for part in pieces], np.int32),
        entries=np.concatenate([[0], np.cumsum(_all([part.count for part in pieces], np.int64))]),
        child=_all([part.child for part in pieces], code),
        weight=_all([part.weight for part in pieces], kind),
        bias=bias,
    )


def joined(parts: list[Part], firsts: list[int], code: Any) -> Part:
    """The parts of one node as one: by feature, then by child."""
    if len(parts) == 1:
        part = parts[0]
        return Part(part.feature, part.count, part.child.astype(code), part.weight, part.bias)
    feature = np.concatenate([np.repeat(part.feature, part.count) for part in parts])
    child = np.concatenate(
        [part.child.astype(np.int64) + first for part, first in zip(parts, firsts, strict=True)]
    )
    order = np.argsort(feature, kind="stable")
    distinct, count = np.unique(feature, return_counts=True)
    weight = np.concatenate([part.weight for part in parts])[order]
    bias = np.concatenate([part.bias for part in parts])
    return Part(distinct, count.astype(np.int32), child[order].astype(code), weight, bias)


def _all(pieces: list[Any], kind: Any) -> Any:
    return np.concatenate(pieces).astype(kind, copy=False) if pieces else np.empty(0, kind)
