"""Training a label tree: in every node, a linear classifier for each child, on the rows it sees.

In a node each child is told from its siblings: of the rows that reach the node, those with a label
below the child are its positives. For child k, t = +-1 and cost c,

    squared hinge    least of (|w|^2 + b^2) / 2  +  sum c max(0, 1 - t (x.w + b))^2
    logistic         least of (|w|^2 + b^2) / 2  +  sum c log(1 + exp(-t (x.w + b)))

c is the cost, times the row's weight, times (of a positive) the weight of its label. Weights not
above a threshold are left out. This is a support vector machine whose intercept is the weight of a
column of ones and is penalised as the others are.

All nodes of a level are independent, and so are the children of one node, in blocks of eight:

    task      one node, or some blocks of a large one: a pure function of rows, settings and seed
    part      what a task gives: some children's columns of the node's chunk
    layer     the parts of a level, put together in the order of nodes

So neither the number of threads nor an interruption can change a bit of the model. A child without
siblings is certain, and nothing is trained for it. A node that no row reaches says no to all of
its children: bias -1.

How large a tree will be, and how long its training takes, from a few of its tasks.

Nodes of one level are alike: in a level, weights and seconds grow with the work of a task (values
that a sweep reads). Some tasks of each level are trained, spread over its nodes, and the whole is
read off by the ratio of all work to theirs. Eight tasks are tried at least, or a given share of the
work of their level: a tree of a single large node is trained as a whole.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy import sparse

from discriminant.extreme.model.layer_store import (
    ChunkPart,
    DiskStore,
    LayerStore,
    MemoryStore,
    child_dtype,
    digest,
)
from discriminant.extreme.model.partition import hash_integers
from discriminant.extreme.model.tasks import (
    BLOCK,
    NodeRows,
    Task,
    child_offsets,
    make_tasks,
    n_blocks,
    rows_by_level,
    total_work,
)
from discriminant.extreme.model.tree import ROWS, Ints, LabelPartition, Layer, Reals, Tree
from discriminant.numba_cache import telling_of_compiling

Loss = Literal["squared_hinge", "logistic"]
Progress = Callable[[int, int], object]  # work done, work in all

_ENOUGH = 200_000  # values read by a sweep of tasks that are handed to a thread together
_LEAST = 200  # as many more: a task takes time even if no row reaches it
_GLANCE = 0.5  # seconds after which a signal that some other thread was sent is noticed


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """What is asked of the classifiers in the nodes."""

    loss: Loss = "squared_hinge"
    cost: float = 1.0  # of a row, against |w|^2 / 2
    tolerance: float = 0.1  # of the slopes; the solution is exact as it goes to 0
    max_sweeps: int = 20  # of the rows; of Newton steps for the logistic loss
    threshold: float = 0.1  # weights not above it are left out
    precision: Literal["float32", "float64"] = "float32"
    seed: int = 0

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numbers that are computed with and kept."""
        return np.dtype(self.precision)


def train_tree(
    partition: LabelPartition,
    rows: sparse.csr_matrix,
    labels: sparse.csr_matrix,
    *,
    settings: TrainingSettings,
    weight: Reals | None = None,
    threads: int | None = None,
    spool: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Tree:
    """The tree of a partition.

    Parameters
    ----------
    rows
        (N, d) features.
    labels
        (N, L) an entry where the row has the label; its value says how much the row counts as an
        example of it, 1 as a rule, 1 / propensity for rare labels to count more.
    weight
        (N,) of rows, not negative; None for 1.
    threads
        At work at a time; all cores if None. The tree is the same whatever their number.
    spool
        A folder in which parts are kept as they are done. Training that was stopped goes on from
        there; the layers of the tree lie there, memory-mapped.
    progress
        Called as parts are done with the work done so far and the work in all.
    """
    if weight is not None and (np.asarray(weight) == 0).any():
        labels = _without(labels, np.asarray(weight) == 0)
    keeps: LayerStore = MemoryStore(settings.dtype)
    if spool is not None:
        told = fingerprint(partition, rows, labels, settings=settings, weight=weight)
        keeps = DiskStore(spool, settings.dtype, told)
    with closing(keeps):
        total = 0 if progress is None else total_work(partition, labels, rows.indptr)
        crew, layers = Workers(rows.shape, threads, progress, total), []
        for level, (above, below) in enumerate(pairwise(rows_by_level(partition, labels))):
            children = child_offsets(partition, level)
            shared = LevelProblem(rows, weight, above, below, children, settings)
            layers.append(_layer(shared, level, keeps=keeps, crew=crew))
    return Tree(partition.label_of, tuple(layers))


def _layer(shared: LevelProblem, level: int, *, keeps: LayerStore, crew: Workers) -> Layer:
    """One layer: that is there, or of parts of which some may be there."""
    tasks = make_tasks(level, shared.children, shared.above, shared.rows.indptr)
    found = keeps.load_layer(level)
    there = set() if found is not None else keeps.finished_parts(level)
    left = [task for task in tasks if (task.node, task.first) not in there]
    left = [] if found is not None else left
    crew.report(sum(task.work for task in tasks) - sum(task.work for task in left))
    crew.run(shared, left, keeps)
    return keeps.assemble_layer(level, shared.children, tasks) if found is None else found


def fingerprint(
    partition: LabelPartition,
    rows: sparse.csr_matrix,
    labels: sparse.csr_matrix,
    *,
    settings: TrainingSettings,
    weight: Reals | None = None,
) -> dict[str, str]:
    """What a tree is a function of, shortly: two that differ in anything differ here."""
    import numba

    from discriminant.numba_cache import source_stamp

    return {
        "settings": " ".join(f"{name}={value}" for name, value in asdict(settings).items()),
        "rows": digest(np.array(rows.shape), rows.indptr, rows.indices, rows.data),
        "labels": digest(np.array(labels.shape), labels.indptr, labels.indices, labels.data),
        "partition": digest(partition.label_of, *partition.levels),
        "weight": "1" if weight is None else digest(weight),
        "numba": str(numba.__version__),
        "loops": source_stamp()[:16],
    }


@dataclass(frozen=True, slots=True, eq=False)
class LevelProblem:
    """All that the tasks of one level share."""

    rows: sparse.csr_matrix  # (N, d)
    weight: Reals | None  # (N,)
    above: NodeRows
    below: NodeRows
    children: Ints  # (P + 1,)
    settings: TrainingSettings

    def solve(self, task: Task, scratch: Scratch, stop: Ints) -> ChunkPart:
        """The part of one task."""
        from discriminant.extreme.model import kernels_train as loops

        members = self.above.rows[self.above.starts[task.node] : self.above.starts[task.node + 1]]
        kind, X = self.settings.dtype.type, self.rows
        if len(members) == 0:
            return _refused(task, kind)
        square = np.empty(len(members), kind)
        local = loops.gather_rows(X.indptr, X.indices, X.data, members, *scratch.arrays, square)
        found = loops.solve_children(
            *local[:3],
            square,
            len(local[3]),
            *self._positives(task),
            scratch.place_of,
            *self._inverse_costs(members, kind),
            1.0 if self.settings.loss == "logistic" else None,
            kind(self.settings.tolerance),
            self.settings.max_sweeps,
            kind(self.settings.threshold),
            self._seeds(task),
            stop,
        )
        return ChunkPart(*loops.scatter_weights(*found[:4], members, *scratch.arrays), found[4])

    def warm_up_problem(self) -> LevelProblem:
        """A level of the same kinds of arrays with one row and two children: loops get compiled."""
        one, kind = np.array([0, 1]), self.above.rows.dtype
        weight = None if self.below.weight is None else np.ones(1, self.below.weight.dtype)
        above = NodeRows(one, np.zeros(1, kind), weight)
        below = NodeRows(np.array([0, 1, 1]), np.zeros(1, kind), weight)
        settings = replace(self.settings, max_sweeps=1)
        own = None if self.weight is None else np.ones_like(self.weight)
        return LevelProblem(self.rows, own, above, below, np.array([0, 2]), settings)

    def _positives(self, task: Task) -> tuple[Ints, Ints, Reals]:
        """Where the positives of each child begin, these, and their weights (none: all 1)."""
        bounds = self.below.starts[task.first : task.last + 1]
        weight = np.empty(0, np.float64)
        if self.below.weight is not None:
            weight = self.below.weight[bounds[0] : bounds[-1]].astype(np.float64)
        elif self.weight is not None:
            weight = np.ones(int(bounds[-1] - bounds[0]))
        return bounds - bounds[0], self.below.rows[bounds[0] : bounds[-1]], weight

    def _inverse_costs(self, members: Ints, kind: Any) -> tuple[Reals, Reals]:
        """1 / (2 c) of rows as negatives, and room for that of (row, child); or one for all."""
        if self.below.weight is None and self.weight is None:
            return np.empty(0, kind), np.array([0.5 / self.settings.cost], kind)
        weight = np.ones(len(members)) if self.weight is None else self.weight[members]
        return (0.5 / (self.settings.cost * weight)).astype(kind), np.empty(
            (len(members), BLOCK), kind
        )

    def _seeds(self, task: Task) -> Ints:
        """One number per block, of the tree, the level, and where the block lies in its level."""
        blocks = range(task.block, task.block + n_blocks(task.first, task.last))
        seed = self.settings.seed
        found = [hash_integers(seed, task.level, task.node, block) for block in blocks]
        return np.array(found, np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class Scratch:
    """What one thread keeps between nodes; each task leaves it as it found it."""

    local_of: Ints  # (d,) -1
    place_of: Ints  # (N,) -1
    seen: Ints  # (d / 64 + 1,) 0

    @classmethod
    def of(cls, shape: tuple[int, int]) -> Scratch:
        """For (N, d) rows."""
        n, d = shape
        seen = np.zeros(d // 64 + 1, np.uint64)
        return cls(np.full(d, -1, np.int32), np.full(n, -1, np.int32), seen)

    @property
    def arrays(self) -> tuple[Ints, Ints, Ints]:
        """As the loops take it."""
        return self.local_of, self.place_of, self.seen


class Workers:
    """Threads that work off tasks, and tell how far they are."""

    def __init__(
        self, shape: tuple[int, int], threads: int | None, progress: Progress | None, total: int
    ) -> None:
        self.shape, self.workers = shape, threads or os.cpu_count() or 1
        self.progress, self.total, self.done = progress, total, 0
        self.local, self.stop = threading.local(), np.zeros(1, np.int8)

    def report(self, work: int) -> None:
        """Some work is done."""
        self.done += work
        if self.progress is not None and work:
            self.progress(self.done, self.total)

    def run(self, shared: LevelProblem, tasks: Sequence[Task], keeps: LayerStore) -> None:
        """Keep the parts of all tasks, the largest first.

        Stopped by an interrupt or a fault, it waits for sweeps under way, not for whole nodes; what
        was done before is kept.
        """
        if not tasks:
            return
        with telling_of_compiling("train"):
            shared.warm_up_problem().solve(
                Task(0, 0, 0, 2, 0, 0), Scratch.of(self.shape), self.stop
            )
        waiting = bundle_tasks(tasks)
        under_way: set[Future[int]] = set()
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                while True:
                    for some in waiting:
                        under_way.add(pool.submit(self._run, shared, some, keeps))
                        if len(under_way) >= 4 * self.workers:
                            break
                    if not under_way:
                        break
                    ended, under_way = wait(under_way, _GLANCE, FIRST_COMPLETED)
                    self.report(sum(one.result() for one in ended))
            except BaseException:
                self.stop[0] = 1
                for one in under_way:
                    one.cancel()
                raise

    def _run(self, shared: LevelProblem, tasks: Sequence[Task], keeps: LayerStore) -> int:
        """Some tasks; nothing is kept of one that was stopped. Returns the work done."""
        if not hasattr(self.local, "scratch"):
            self.local.scratch = Scratch.of(self.shape)
        done = 0
        for task in tasks:
            part = shared.solve(task, self.local.scratch, self.stop)
            if self.stop[0]:
                break
            keeps.add_part(task, part)
            done += task.work
        return done


def bundle_tasks(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """The largest first, small ones together: to hand one over takes longer than to do it."""
    some, work = list[Task](), 0
    for task in sorted(tasks, key=lambda task: -task.work):
        some.append(task)
        work += task.work + _LEAST
        if work >= _ENOUGH:
            yield some
            some, work = [], 0
    if some:
        yield some


def _refused(task: Task, kind: Any) -> ChunkPart:
    none = np.empty(0, np.int32)
    bias = np.full(task.last - task.first, -1, kind)
    return ChunkPart(none, none, np.empty(0, np.uint16), np.empty(0, kind), bias)


def _without(labels: sparse.csr_matrix, dropped: Reals) -> sparse.csr_matrix:
    """Labels without those of some rows, which then reach no node."""
    kept = np.repeat(~dropped, np.diff(labels.indptr))
    starts = np.concatenate([[0], np.cumsum(kept)])[labels.indptr]
    return sparse.csr_matrix((labels.data[kept], labels.indices[kept], starts), shape=labels.shape)


_FEWEST_TASKS = 8  # tasks: nodes of few are not alike


@dataclass(frozen=True, slots=True)
class TreeEstimate:
    """What one tree will be."""

    weights: int  # entries
    rows: int  # (chunk, feature) pairs
    size: int  # bytes of the layers
    seconds: float  # of one thread


def estimate_tree(
    partition: LabelPartition,
    rows: sparse.csr_matrix,
    labels: sparse.csr_matrix,
    *,
    settings: TrainingSettings,
    share: float = 0.05,
) -> TreeEstimate:
    """What a tree will be, from a `share` of its training."""
    weights, pairs, size, seconds = 0.0, 0.0, 0.0, 0.0
    for level, (above, below) in enumerate(pairwise(rows_by_level(partition, labels))):
        children = child_offsets(partition, level)
        shared = LevelProblem(rows, None, above, below, children, settings)
        tasks = make_tasks(level, children, above, rows.indptr)
        ratio, found = _tried(shared, tasks, share)
        weights += ratio * found.weights
        pairs += ratio * found.rows
        seconds += ratio * found.seconds
        each = settings.dtype.itemsize
        named = min(found.weights * child_dtype(children).itemsize, found.bits)
        row = (2 if rows.shape[1] <= 1 << 16 else 4) + 2 + 8 / ROWS
        size += ratio * (found.weights * each + named + found.rows * row)
        size += 24 * len(children) + each * int(children[-1])
    return TreeEstimate(round(weights), round(pairs), round(size), seconds)


@dataclass(slots=True)
class TrialTotals:
    """What some tasks gave."""

    weights: int = 0
    rows: int = 0
    bits: int = 0  # bytes, were their children bits
    seconds: float = 0.0


def _tried(shared: LevelProblem, tasks: Sequence[Task], share: float) -> tuple[float, TrialTotals]:
    """All work over that of the tasks tried, and what these gave."""
    total, found = sum(task.work for task in tasks), TrialTotals()
    if not total:
        return 0.0, found
    scratch, stop = Scratch.of(shared.rows.shape), np.zeros(1, np.int8)
    with telling_of_compiling("train"):
        shared.warm_up_problem().solve(Task(0, 0, 0, 2, 0, 0), scratch, stop)
    work, start = 0, time.perf_counter()
    for tries, at in enumerate(np.random.default_rng(0).permutation(len(tasks)), 1):
        part, task = shared.solve(tasks[at], scratch, stop), tasks[at]
        found.weights += len(part.weight)
        found.rows += len(part.feature)
        found.bits += len(part.feature) * (task.last - task.first + 7 >> 3)
        work += task.work
        if work >= share * total and tries >= _FEWEST_TASKS:
            break
    found.seconds = time.perf_counter() - start
    return total / work, found
