"""Training of a label tree: a linear classifier for each child of every node.

A classifier separates a child of a node from its siblings. The classifier is trained on the rows
that reach the node; its positive rows are those with a label below the child. With t = 1 for
positive rows, t = -1 for other rows, and costs c, the classifier is the solution of

    squared hinge    least of (|w|^2 + b^2) / 2  +  sum c max(0, 1 - t (x.w + b))^2
    logistic         least of (|w|^2 + b^2) / 2  +  sum c log(1 + exp(-t (x.w + b)))

The cost c of a row is the option `cost` times the weight of the row; for a positive row, it is also
multiplied by the weight of its label. Weights w of at most the threshold in absolute value are
dropped. With the squared hinge, a classifier is a support vector machine whose intercept b is
penalised like its weights.

All nodes of a level are independent, and so are the children of one node, in blocks of eight:

    task      one node, or some blocks of a large one: a pure function of rows, settings and seed
    part      result of a task: the columns of some children in the node's chunk
    layer     the parts of a level, assembled in the order of nodes

Therefore the model is the same to the last bit for any number of threads, and after an
interruption. A child without siblings needs no classifier. If no row reaches a node, its children
have no weights and the bias -1, so that they are seldom followed.

`estimate_tree` predicts size and training time from a sample of tasks. The prediction assumes that,
within a level, the number of weights and the time are proportional to the work of a task (the
number of values that one sweep reads). A random sample of the tasks of each level is trained: at
least eight of them, and at least a given share of the work. The results are multiplied by the total
work divided by the work of the sample. A tree with a single large node is trained completely.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy import sparse

from discriminant.cached_njit import log_slow_compilation
from discriminant.extreme.model.fitted_tree import ROWS, Ints, LabelPartition, Layer, Reals, Tree
from discriminant.extreme.model.training_checkpoint import (
    ChunkPart,
    DiskStore,
    LayerStore,
    MemoryStore,
    child_dtype,
)
from discriminant.extreme.model.training_tasks import (
    BLOCK,
    NodeRows,
    Task,
    child_offsets,
    make_tasks,
    n_blocks,
    rows_by_level,
    total_work,
)
from discriminant.extreme.model.tree_construction import hash_integers

Loss = Literal["squared_hinge", "logistic"]
Progress = Callable[[int, int], object]  # called with the work done and the total work

_MIN_WORK = 200_000  # tasks are submitted to a thread together up to this amount of work
_TASK_OVERHEAD = 200  # work added to each task: it takes time even if no row reaches the node
_POLL_SECONDS = 0.5  # seconds between checks for interrupts


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """Options of the classifiers in the nodes."""

    loss: Loss = "squared_hinge"
    cost: float = 1.0  # weight of the loss of a row, relative to |w|^2 / 2
    # tolerance for projected gradients; the solution is exact as it approaches 0
    tolerance: float = 0.1
    # largest number of passes over the rows, or of Newton steps for the logistic loss
    max_sweeps: int = 20
    threshold: float = 0.1  # weights of at most this absolute value are dropped
    precision: Literal["float32", "float64"] = "float32"
    seed: int = 0

    @property
    def dtype(self) -> np.dtype[Any]:
        """Floating-point type for training and for the stored weights."""
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
        Matrix with an entry for each label of a row. The value is the weight of the row as an
        example of the label: usually 1, or 1 / propensity to give rare labels more weight.
    settings : TrainingSettings
        Options of the classifiers.
    weight : ndarray of shape (N,), optional
        Non-negative row weights (default: 1).
    threads : int, optional
        Number of threads (default: all cores). The tree does not depend on the number of threads.
    checkpoint : path-like, optional
        Folder in which finished parts are stored. Interrupted training resumes from this folder;
        the layers of the tree are memory-mapped from it.
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
    """Return the layer of a level: load a finished layer, or train the missing parts."""
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
    """Return digests (hashes) of all inputs that determine a tree, for a checkpoint's header."""
    import numba

    from discriminant.cached_njit import source_stamp

    return {
        "settings": " ".join(f"{name}={value}" for name, value in asdict(settings).items()),
        "rows": _digest(np.array(rows.shape), rows.indptr, rows.indices, rows.data),
        "labels": _digest(np.array(labels.shape), labels.indptr, labels.indices, labels.data),
        "partition": _digest(partition.label_of, *partition.levels),
        "weight": "1" if weight is None else _digest(weight),
        "numba": str(numba.__version__),
        "loops": source_stamp()[:16],
    }


def _digest(*arrays: Any) -> str:
    """Return a digest of the types, shapes and contents of arrays, without copying them."""
    digest = blake2b(digest_size=16)
    for array in map(np.ascontiguousarray, arrays):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.view(np.uint8).data if array.size else b"")
    return digest.hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class LevelProblem:
    """Data shared by the tasks of one level."""

    rows: sparse.csr_matrix  # (N, d) features
    weight: Reals | None  # (N,) row weights; None if all are 1
    above: NodeRows
    below: NodeRows
    children: Ints  # (P + 1,) offsets of the children of each node
    settings: TrainingSettings

    def solve(self, task: Task, scratch: Scratch, stop: Ints) -> ChunkPart:
        """Train the children of one task."""
        from discriminant.extreme.model import compiled_train as loops

        members = self.above.rows[self.above.starts[task.node] : self.above.starts[task.node + 1]]
        kind, X = self.settings.dtype.type, self.rows
        if len(members) == 0:
            return _reject_all(task, kind)
        square = np.empty(len(members), kind)
        local = loops.gather_rows(X.indptr, X.indices, X.data, members, *scratch.arrays, square)
        solution = loops.solve_children(
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
            *loops.scatter_weights(*solution[:4], members, *scratch.arrays), solution[4]
        )

    def warm_up_problem(self) -> LevelProblem:
        """Return a tiny problem with arrays of the same types, for compiling the loops."""
        starts, kind = np.array([0, 1]), self.above.rows.dtype
        weight = None if self.below.weight is None else np.ones(1, self.below.weight.dtype)
        above = NodeRows(starts, np.zeros(1, kind), weight)
        below = NodeRows(np.array([0, 1, 1]), np.zeros(1, kind), weight)
        settings = replace(self.settings, max_sweeps=1)
        own = None if self.weight is None else np.ones_like(self.weight)
        return LevelProblem(self.rows, own, above, below, np.array([0, 2]), settings)

    def _positives(self, task: Task) -> tuple[Ints, Ints, Reals]:
        """Return the positive rows of each child, as arrays of offsets, rows and weights.

        The weights are empty if neither rows nor labels have weights.
        """
        bounds = self.below.starts[task.first : task.last + 1]
        weight = np.empty(0, np.float64)
        if self.below.weight is not None:
            weight = self.below.weight[bounds[0] : bounds[-1]].astype(np.float64)
        elif self.weight is not None:
            weight = np.ones(int(bounds[-1] - bounds[0]))
        return bounds - bounds[0], self.below.rows[bounds[0] : bounds[-1]], weight

    def _inverse_costs(self, members: Ints, kind: Any) -> tuple[Reals, Reals]:
        """Return 1 / (2 c) for each row, where c is its cost as a negative row, and a work array.

        The work array has the shape (rows, 8). If neither rows nor labels have weights, all costs
        are equal: return an empty array, and an array with the single value 1 / (2 c).
        """
        if self.below.weight is None and self.weight is None:
            return np.empty(0, kind), np.array([0.5 / self.settings.cost], kind)
        weight = np.ones(len(members)) if self.weight is None else self.weight[members]
        return (0.5 / (self.settings.cost * weight)).astype(kind), np.empty(
            (len(members), BLOCK), kind
        )

    def _seeds(self, task: Task) -> Ints:
        """Return one seed per block, from the seed of the tree and the position of the block."""
        place = self.settings.seed, task.level, task.node
        blocks = range(task.block, task.block + n_blocks(task.first, task.last))
        return np.array([hash_integers(*place, block) for block in blocks], np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class Scratch:
    """Work arrays of one thread; every task resets the arrays to their initial values."""

    local_of: Ints  # (d,) initially -1
    place_of: Ints  # (N,) initially -1
    seen: Ints  # (d / 64 + 1,) initially 0

    @classmethod
    def of(cls, shape: tuple[int, int]) -> Scratch:
        """Allocate work arrays for rows of shape (N, d)."""
        n, d = shape
        seen = np.zeros(d // 64 + 1, np.uint64)
        return cls(np.full(d, -1, np.int32), np.full(n, -1, np.int32), seen)

    @property
    def arrays(self) -> tuple[Ints, Ints, Ints]:
        """The arrays, in the order in which the loops expect them."""
        return self.local_of, self.place_of, self.seen


class Workers:
    """Thread pool that runs tasks and reports progress."""

    def __init__(
        self, shape: tuple[int, int], threads: int | None, progress: Progress | None, total: int
    ) -> None:
        self.shape, self.workers = shape, threads or os.cpu_count() or 1
        self.progress, self.total, self.done = progress, total, 0
        self.local, self.stop = threading.local(), np.zeros(1, np.int8)

    def report(self, work: int) -> None:
        """Increase the amount of work done, and call the progress callback."""
        self.done += work
        if self.progress is not None and work:
            self.progress(self.done, self.total)

    def run(self, problem: LevelProblem, tasks: Sequence[Task], store: LayerStore) -> None:
        """Run all tasks, the largest first, and store their parts.

        After an interrupt or an error, running tasks stop at the end of their current sweep. Parts
        that were finished before stay in the store.
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
        """Run some tasks; return the amount of work done. A task that is stopped stores nothing."""
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
    """Group tasks into bundles, the largest tasks first.

    Submitting a small task on its own would take longer than running it.
    """
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
    """Remove the labels of dropped rows from the label matrix, so that these rows reach no node."""
    stays = np.repeat(~dropped, np.diff(labels.indptr))
    starts = np.concatenate([[0], np.cumsum(stays)])[labels.indptr]
    return sparse.csr_matrix(
        (labels.data[stays], labels.indices[stays], starts), shape=labels.shape
    )


_MIN_TASKS = 8  # smallest number of tasks to sample from a level, since nodes differ


@dataclass(frozen=True, slots=True)
class TreeEstimate:
    """Estimated size and training time of one tree."""

    weights: int  # number of stored weights
    rows: int  # number of rows of chunks: (chunk, feature) pairs
    size: int  # size of the layers in bytes
    seconds: float  # training time with one thread


def estimate_tree(
    partition: LabelPartition,
    rows: sparse.csr_matrix,
    labels: sparse.csr_matrix,
    *,
    settings: TrainingSettings,
    share: float = 0.05,
) -> TreeEstimate:
    """Estimate size and training time by training a sample, a `share` of the total work."""
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
    """Totals over the sampled tasks."""

    weights: int = 0
    rows: int = 0
    bits: int = 0  # size in bytes of the children if stored as bitmaps
    seconds: float = 0.0


def _run_trial(
    problem: LevelProblem, tasks: Sequence[Task], share: float
) -> tuple[float, TrialTotals]:
    """Train a sample of tasks.

    Return the total work divided by the work of the sample, and the totals over the sample.
    """
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
