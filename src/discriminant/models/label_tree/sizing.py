"""How large a tree will be, and how long its training takes, from a few of its tasks.

Nodes of one level are alike: in a level, weights and seconds grow with the work of a task (values
that a sweep reads). Some tasks of each level are trained, spread over its nodes, and the whole is
read off by the ratio of all work to theirs. Eight tasks are tried at least, or a given share of the
work of their level: a tree of a single large node is trained as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse

from discriminant.models.label_tree.layers import Partition
from discriminant.models.label_tree.packing import ROWS
from discriminant.models.label_tree.reaching import Task, children_of, reaching, tasks_of
from discriminant.models.label_tree.spooling import child_kind
from discriminant.models.label_tree.telling import telling_of_compiling
from discriminant.models.label_tree.training import Level, Scratch, Settings

_LEAST = 8  # tasks: nodes of few are not alike


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one tree will be."""

    weights: int  # entries
    rows: int  # (chunk, feature) pairs
    size: int  # bytes of the layers
    seconds: float  # of one thread


def estimate(
    partition: Partition,
    rows: sparse.csr_matrix,
    labels: sparse.csr_matrix,
    *,
    settings: Settings,
    share: float = 0.05,
) -> Estimate:
    """What a tree will be, from a `share` of its training."""
    weights, pairs, size, seconds = 0.0, 0.0, 0.0, 0.0
    for level, (above, below) in enumerate(pairwise(reaching(partition, labels))):
        children = children_of(partition, level)
        shared = Level(rows, None, above, below, children, settings)
        tasks = tasks_of(level, children, above, rows.indptr)
        ratio, found = _tried(shared, tasks, share)
        weights += ratio * found.weights
        pairs += ratio * found.rows
        seconds += ratio * found.seconds
        each = settings.kind.itemsize
        named = min(found.weights * child_kind(children).itemsize, found.bits)
        row = (2 if rows.shape[1] <= 1 << 16 else 4) + 2 + 8 / ROWS
        size += ratio * (found.weights * each + named + found.rows * row)
        size += 24 * len(children) + each * int(children[-1])
    return Estimate(round(weights), round(pairs), round(size), seconds)


@dataclass(slots=True)
class Tried:
    """What some tasks gave."""

    weights: int = 0
    rows: int = 0
    bits: int = 0  # bytes, were their children bits
    seconds: float = 0.0


def _tried(shared: Level, tasks: Sequence[Task], share: float) -> tuple[float, Tried]:
    """All work over that of the tasks tried, and what these gave."""
    total, found = sum(task.work for task in tasks), Tried()
    if not total:
        return 0.0, found
    scratch, stop = Scratch.of(shared.rows.shape), np.zeros(1, np.int8)
    with telling_of_compiling("train"):
        shared.tried().solve(Task(0, 0, 0, 2, 0, 0), scratch, stop)
    work, start = 0, time.perf_counter()
    for tries, at in enumerate(np.random.default_rng(0).permutation(len(tasks)), 1):
        part, task = shared.solve(tasks[at], scratch, stop), tasks[at]
        found.weights += len(part.weight)
        found.rows += len(part.feature)
        found.bits += len(part.feature) * (task.last - task.first + 7 >> 3)
        work += task.work
        if work >= share * total and tries >= _LEAST:
            break
    found.seconds = time.perf_counter() - start
    return total / work, found
