"""Training of a label tree: in every node, a linear classifier for each child.

In a node each child is separated from its siblings: of the rows that reach the node, those with a
label below the child are its positives. For child k, t = +-1 and cost c,

    squared hinge    least of (|w|^2 + b^2) / 2  +  sum c max(0, 1 - t (x.w + b))^2
    logistic         least of (|w|^2 + b^2) / 2  +  sum c log(1 + exp(-t (x.w + b)))

c is the cost, times the row's weight, times (for a positive) the weight of its label. Weights of at
most the threshold are dropped. With the squared hinge this is a support vector machine whose
intercept is the weight of a column of ones, penalised like the other weights.

All nodes of a level are independent, and so are the children of one node, in blocks of eight:

    task      one node, or some blocks of a large one: a pure function of rows, settings and seed
    part      result of a task: the columns of some children in the node's chunk
    layer     the parts of a level, assembled in the order of nodes

So the model does not depend, to the last bit, on the number of threads or on interruptions. A child
without siblings is certain, and nothing is trained for it. A node that no row reaches rejects all
of its children: bias -1.

`estimate_tree` predicts size and training time from a few tasks. Within a level, weights and
seconds are proportional to the work of a task (values read by one sweep). A random sample of the
tasks of each level is trained, at least eight of them and a given share of the work, and scaled up
by the ratio of all work to theirs: a tree of a single large node is trained completely.
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
from discriminant.extreme.model.fitted_tree import ROWS, Ints, LabelPartition, Layer, Reals, Tree
from discriminant.numba_cache import log_slow_compilation

Loss = Literal["squared_hinge", "logistic"]
Progress = Callable[[int, int], object]  # work done, total work

_MIN_WORK = 200_000  # work of the tasks that are submitted to a thread together
_TASK_OVERHEAD = 200  # work added per task: it takes time even if no row reaches it
_POLL_SECONDS = 0.5  # interval at which interrupts are noticed


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """Options of the classifiers in the nodes."""

    loss: Loss = "squared_hinge"
    cost: float = 1.0  # weight of the loss of a row, relative to |w|^2 / 2
    tolerance: float = 0.1  # on projected gradients; the solution is exact in the limit 0
    max_sweeps: int = 20  # passes over the rows; Newton steps for the logistic loss
    threshold: float = 0.1  # weights of at most this size are dropped
    precision: Literal["float32", "float64"] = "float32"
    seed: int = 0

    @property
    def dtype(self) -> np.dtype[Any]:
        """Floating-point type of the computation and of the weights."""
        return np.dtype(self.precision)


def train_tree(
    partition: LabelPartition,
    rows: sparse.csr_matrix,
    labels: sparse.csr_matrix,
    *,
    settings: TrainingSettings,
    weight: Reals | None = None,
    threads: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Tree:
    """Train the classifiers of a partition.

    Parameters
    ----------
    partition : LabelPartition
        Tree over the labels.
    rows : csr_matrix of shape (N, d)
        Features.
    labels : csr_matrix of shape (N, L)
        An entry where the row has the label; its value is the weight of the row as an example of
        the label: usually 1, or 1 / propensity so that rare labels count more.
    settings : TrainingSettings
        Options of the classifiers.
    weight : ndarray of shape (N,), optional
        Non-negative row weights (default: 1).
    threads : int, optional
        Number of threads (default: all cores). The tree does not depend on it.
    checkpoint : path-like, optional
        Folder in which finished parts are stored. Interrupted training resumes from there; the
        layers of the tree are memory-mapped from this folder.
    progress : callable, optional
        Called with the work done and the total work as parts are finished.

    Returns
    -------
    Tree
    """
    if weight is not None and (np.asarray(weight) == 0).any():
        labels = _drop_rows(labels, np.asarray(weight) == 0)
    store: LayerStore = MemoryStore(settings.dtype)
    if checkpoint is not None:
        inputs = fingerprint(partition, rows, labels, settings=settings, weight=weight)
        store = DiskStore(checkpoint, settings.dtype, inputs)
    with closing(store):
        total = 0 if progress is None else total_work(partition, labels, rows.indptr)
        workers, layers = Workers(rows.shape, threads, progress, total), []
        for level, (above, below) in enumerate(pairwise(rows_by_level(partition, labels))):
            children = child_offsets(partition, level)
            problem = LevelProblem(rows, weight, above, below, children, settings)
            layers.append(_train_layer(problem, level, store=store, workers=workers))
    return Tree(partition.label_of, tuple(layers))


def _train_layer(
    problem: LevelProblem, level: int, *, store: LayerStore, workers: Workers
) -> Layer:
    """Load a finished layer from the store, or train the parts that it lacks."""
    tasks = make_tasks(level, problem.children, problem.above, problem.rows.indptr)
    total = sum(task.work for task in tasks)
    layer = store.load_layer(level)
    if layer is not None:
        workers.report(total)
        return layer
    finished = store.finished_parts(level)
    remaining = [task for task in tasks if (task.node, task.first) not in finished]
    workers.report(total - sum(task.work for task in remaining))
    workers.run(problem, remaining, store)
    return store.assemble_layer(level, problem.children, tasks)


def fingerprint(
    partition: LabelPartition,
    rows: sparse.csr_matrix,
    labels: sparse.csr_matrix,
    *,
    settings: TrainingSettings,
    weight: Reals | None = None,
) -> dict[str, str]:
    """Digests of everything that determines a tree."""
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
    """Data shared by the tasks of one level."""

    rows: sparse.csr_matrix  # (N, d)
    weight: Reals | None  # (N,)
    above: NodeRows
    below: NodeRows
    children: Ints  # (P + 1,)
    settings: TrainingSettings

    def solve(self, task: Task, scratch: Scratch, stop: Ints) -> ChunkPart:
        """Train the children of one task."""
        from discriminant.extreme.model import kernels_train as kernels

        members = self.above.rows[self.above.starts[task.node] : self.above.starts[task.node + 1]]
        kind, X = self.settings.dtype.type, self.rows
        if len(members) == 0:
            return _reject_all(task, kind)
        square = np.empty(len(members), kind)
        local = kernels.gather_rows(X.indptr, X.indices, X.data, members, *scratch.arrays, square)
        solution = kernels.solve_children(
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
        return ChunkPart(
            *kernels.scatter_weights(*solution[:4], members, *scratch.arrays), solution[4]
        )

    def warm_up_problem(self) -> LevelProblem:
        """A tiny problem with arrays of the same types, to compile the kernels with."""
        one, kind = np.array([0, 1]), self.above.rows.dtype
        weight = None if self.below.weight is None else np.ones(1, self.below.weight.dtype)
        above = NodeRows(one, np.zeros(1, kind), weight)
        below = NodeRows(np.array([0, 1, 1]), np.zeros(1, kind), weight)
        settings = replace(self.settings, max_sweeps=1)
        own = None if self.weight is None else np.ones_like(self.weight)
        return LevelProblem(self.rows, own, above, below, np.array([0, 2]), settings)

    def _positives(self, task: Task) -> tuple[Ints, Ints, Reals]:
        """Offsets of each child's positives, the positives, and their weights (empty if all 1)."""
        bounds = self.below.starts[task.first : task.last + 1]
        weight = np.empty(0, np.float64)
        if self.below.weight is not None:
            weight = self.below.weight[bounds[0] : bounds[-1]].astype(np.float64)
        elif self.weight is not None:
            weight = np.ones(int(bounds[-1] - bounds[0]))
        return bounds - bounds[0], self.below.rows[bounds[0] : bounds[-1]], weight

    def _inverse_costs(self, members: Ints, kind: Any) -> tuple[Reals, Reals]:
        """1 / (2 c) of rows as negatives and space for (row, child); or empty and one number."""
        if self.below.weight is None and self.weight is None:
            return np.empty(0, kind), np.array([0.5 / self.settings.cost], kind)
        weight = np.ones(len(members)) if self.weight is None else self.weight[members]
        return (0.5 / (self.settings.cost * weight)).astype(kind), np.empty(
            (len(members), BLOCK), kind
        )

    def _seeds(self, task: Task) -> Ints:
        """One seed per block, from the seed of the tree and the position of the block."""
        blocks = range(task.block, task.block + n_blocks(task.first, task.last))
        seed = self.settings.seed
        seeds = [hash_integers(seed, task.level, task.node, block) for block in blocks]
        return np.array(seeds, np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class Scratch:
    """Work arrays of one thread; every task restores their initial values."""

    local_of: Ints  # (d,) -1
    place_of: Ints  # (N,) -1
    seen: Ints  # (d / 64 + 1,) 0

    @classmethod
    def of(cls, shape: tuple[int, int]) -> Scratch:
        """Allocate work arrays for (N, d) rows."""
        n, d = shape
        seen = np.zeros(d // 64 + 1, np.uint64)
        return cls(np.full(d, -1, np.int32), np.full(n, -1, np.int32), seen)

    @property
    def arrays(self) -> tuple[Ints, Ints, Ints]:
        """The arrays in the order of the kernels' arguments."""
        return self.local_of, self.place_of, self.seen


class Workers:
    """Thread pool that solves tasks and reports progress."""

    def __init__(
        self, shape: tuple[int, int], threads: int | None, progress: Progress | None, total: int
    ) -> None:
        self.shape, self.workers = shape, threads or os.cpu_count() or 1
        self.progress, self.total, self.done = progress, total, 0
        self.local, self.stop = threading.local(), np.zeros(1, np.int8)

    def report(self, work: int) -> None:
        """Add finished work and call the progress callback."""
        self.done += work
        if self.progress is not None and work:
            self.progress(self.done, self.total)

    def run(self, problem: LevelProblem, tasks: Sequence[Task], store: LayerStore) -> None:
        """Solve all tasks, the largest first, and store their parts.

        After an interrupt or an error it waits for the current sweeps, not for whole nodes; parts
        finished before stay in the store.
        """
        if not tasks:
            return
        with log_slow_compilation("train"):
            problem.warm_up_problem().solve(
                Task(0, 0, 0, 2, 0, 0), Scratch.of(self.shape), self.stop
            )
        bundles = bundle_tasks(tasks)
        running: set[Future[int]] = set()
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                while True:
                    for bundle in bundles:
                        running.add(pool.submit(self._run_bundle, problem, bundle, store))
                        if len(running) >= 4 * self.workers:
                            break
                    if not running:
                        break
                    finished, running = wait(running, _POLL_SECONDS, FIRST_COMPLETED)
                    self.report(sum(future.result() for future in finished))
            except BaseException:
                self.stop[0] = 1
                for future in running:
                    future.cancel()
                raise

    def _run_bundle(self, problem: LevelProblem, tasks: Sequence[Task], store: LayerStore) -> int:
        """Solve some tasks and return the work done; a stopped task stores nothing."""
        if not hasattr(self.local, "scratch"):
            self.local.scratch = Scratch.of(self.shape)
        done = 0
        for task in tasks:
            part = problem.solve(task, self.local.scratch, self.stop)
            if self.stop[0]:
                break
            store.add_part(task, part)
            done += task.work
        return done


def bundle_tasks(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """Group tasks, the largest first: submitting a small task takes longer than solving it."""
    bundle, work = list[Task](), 0
    for task in sorted(tasks, key=lambda task: -task.work):
        bundle.append(task)
        work += task.work + _TASK_OVERHEAD
        if work >= _MIN_WORK:
            yield bundle
            bundle, work = [], 0
    if bundle:
        yield bundle


def _reject_all(task: Task, kind: Any) -> ChunkPart:
    none = np.empty(0, np.int32)
    bias = np.full(task.last - task.first, -1, kind)
    return ChunkPart(none, none, np.empty(0, np.uint16), np.empty(0, kind), bias)


def _drop_rows(labels: sparse.csr_matrix, dropped: Reals) -> sparse.csr_matrix:
    """Remove the labels of some rows, which then reach no node."""
    kept = np.repeat(~dropped, np.diff(labels.indptr))
    starts = np.concatenate([[0], np.cumsum(kept)])[labels.indptr]
    return sparse.csr_matrix((labels.data[kept], labels.indices[kept], starts), shape=labels.shape)


_MIN_TASKS = 8  # tasks of a level that are tried: nodes differ


@dataclass(frozen=True, slots=True)
class TreeEstimate:
    """Estimated size and training time of one tree."""

    weights: int  # entries
    rows: int  # (chunk, feature) pairs
    size: int  # bytes of the layers
    seconds: float  # training time of one thread


def estimate_tree(
    partition: LabelPartition,
    rows: sparse.csr_matrix,
    labels: sparse.csr_matrix,
    *,
    settings: TrainingSettings,
    share: float = 0.05,
) -> TreeEstimate:
    """Estimate size and training time from a `share` of the work."""
    weights, pairs, size, seconds = 0.0, 0.0, 0.0, 0.0
    for level, (above, below) in enumerate(pairwise(rows_by_level(partition, labels))):
        children = child_offsets(partition, level)
        problem = LevelProblem(rows, None, above, below, children, settings)
        tasks = make_tasks(level, children, above, rows.indptr)
        ratio, trial = _run_trial(problem, tasks, share)
        weights += ratio * trial.weights
        pairs += ratio * trial.rows
        seconds += ratio * trial.seconds
        each = settings.dtype.itemsize
        child_bytes = min(trial.weights * child_dtype(children).itemsize, trial.bits)
        row = (2 if rows.shape[1] <= 1 << 16 else 4) + 2 + 8 / ROWS
        size += ratio * (trial.weights * each + child_bytes + trial.rows * row)
        size += 24 * len(children) + each * int(children[-1])
    return TreeEstimate(round(weights), round(pairs), round(size), seconds)


@dataclass(slots=True)
class TrialTotals:
    """Totals over the tasks that were tried."""

    weights: int = 0
    rows: int = 0
    bits: int = 0  # bytes of the children if stored as bitmaps
    seconds: float = 0.0


def _run_trial(
    problem: LevelProblem, tasks: Sequence[Task], share: float
) -> tuple[float, TrialTotals]:
    """Ratio of all work to that of the tasks tried, and the totals over these."""
    total, trial = sum(task.work for task in tasks), TrialTotals()
    if not total:
        return 0.0, trial
    scratch, stop = Scratch.of(problem.rows.shape), np.zeros(1, np.int8)
    with log_slow_compilation("train"):
        problem.warm_up_problem().solve(Task(0, 0, 0, 2, 0, 0), scratch, stop)
    work, start = 0, time.perf_counter()
    for tries, at in enumerate(np.random.default_rng(0).permutation(len(tasks)), 1):
        part, task = problem.solve(tasks[at], scratch, stop), tasks[at]
        trial.weights += len(part.weight)
        trial.rows += len(part.feature)
        trial.bits += len(part.feature) * (task.last - task.first + 7 >> 3)
        work += task.work
        if work >= share * total and tries >= _MIN_TASKS:
            break
    trial.seconds = time.perf_counter() - start
    return total / work, trial
