"""How large a tree will be, and how long its training takes, from a few of its tasks.

Nodes of one level are alike: in a level, weights and seconds grow with the work of a task (values
that a sweep reads). Some tasks of each level are trained, spread over its nodes, and the whole is
read off by the ratio of all work to theirs. Tasks are tried until they are a given share of the
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
from discriminant.models.label_tree.reaching import Task, children_of, reaching, tasks_of
from discriminant.models.label_tree.spooling import child_kind
from discriminant.models.label_tree.training import Level, Scratch, Settings


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
        weights += ratio * found[0]
        pairs += ratio * found[1]
        seconds += ratio * found[2]
        each = child_kind(children).itemsize + settings.kind.itemsize
        size += ratio * (found[0] * each + found[1] * 12) + 16 * len(children)
        size += settings.kind.itemsize * int(children[-1])
    return Estimate(round(weights), round(pairs), round(size), seconds)


def _tried(
    shared: Level, tasks: Sequence[Task], share: float
) -> tuple[float, tuple[int, int, float]]:
    """All work over that of the tasks tried, and their weights, features and seconds."""
    total = sum(task.work for task in tasks)
    if not total:
        return 0.0, (0, 0, 0.0)
    scratch, stop = Scratch.of(shared.rows.shape), np.zeros(1, np.int8)
    shared.tried().solve(Task(0, 0, 0, 2, 0, 0), scratch, stop)  # compiles what is not compiled
    weights, pairs, work, start = 0, 0, 0, time.perf_counter()
    for at in np.random.default_rng(0).permutation(len(tasks)):
        part = shared.solve(tasks[at], scratch, stop)
        weights, pairs = weights + len(part.weight), pairs + len(part.feature)
        work += tasks[at].work
        if work >= share * total:
            break
    return total / work, (weights, pairs, time.perf_counter() - start)
